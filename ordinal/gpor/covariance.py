"""The prior covariance of a Gaussian process at the training rows, and what a diagonal
W of site precisions makes of it.

With B = I + W^1/2 Sigma W^1/2, whose eigenvalues are 1 or more, and
R = W^1/2 B^-1 W^1/2 = (W^-1 + Sigma)^-1,

    (Sigma^-1 + W)^-1 = Sigma - Sigma R Sigma,    |I + Sigma W| = |B|,

so that Sigma, which is singular for duplicate rows, is never inverted, nor W.

`Dense` holds Sigma, and `LowRank` features of a basis. C. E. Rasmussen,
C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press, 2006, sections
3.4 and 3.6.

The prior covariance of low rank is Sigma = Phi Phi', from m basis rows B.

    phi(x) = L^-1 k(B, x),    L L' = k(B, B),    C = I + Phi'W Phi

    x = (I + W Sigma)^-1 v = v - W Phi s,    Sigma x = Phi s,    s = C^-1 Phi'v

    A = (Sigma^-1 + W)^-1 = Phi C^-1 Phi',    (W^-1 + Sigma)^-1 Phi = W Phi C^-1

so that whatever is asked of n rows are sums over them of m and m x m numbers, and n
numbers that follow from such sums. Chunks of rows are summed one by one, and in a tree:
no byte depends on where the rows are, on the number of threads, or on how many of the
features Phi are kept.

What k(x, x) has beside |phi(x)|^2 is `rest`, which the likelihood of a row takes as
noise of its own: the FITC approximation. E. Snelson, Z. Ghahramani, NIPS 18, 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from .._input.types import Kernel, Matrix
from .._numerics.cholesky import Cholesky, lower_inverse
from .._numerics.pool import in_order
from .._numerics.rows import inner, matmul, strips, take
from .._rows.chunks import Chunk, InProcess, chunks, in_room
from .._rows.source import CHUNK
from .._rows.sums import Parts, pairwise
from .._solvers import _gp_products
from .._watch.monitor import check_cancelled
from ..kernels import Precomputed
from ..kernels.tiles import Evaluator, diagonal_of, diagonal_slopes, gamma_slopes

ROWS = 1024  # of a tile: what is made of them stays in the cache


class ReadAgainError(Exception):
    """Holds an error of a source that is read again: one that says nothing about the
    hyperparameters that were tried.
    """

    def __init__(self, error: ValueError):
        super().__init__(str(error))
        self.error = error


class Tile(NamedTuple):
    """k(X, B) of some rows.

    Attributes
    ----------
    rows : slice
        Which they are.
    X : matrix
        They themselves.
    K : (rows, m) array
        The memory of the tiles of a chunk is the same.
    """

    rows: slice
    X: Any
    K: np.ndarray


class BasisValues:
    """k(X, B) and k(x, x) of n rows X and m basis rows B.

    Parameters
    ----------
    kernel : callable
    X : (n, d) matrix, or rows that are read again at every pass
    B : (m, d) matrix; for a Precomputed kernel the numbers of the basis rows

    Attributes
    ----------
    shape : (n, m)
    K_mm : (m, m) array
        k(B, B).
    concurrent : bool
        Whether several threads may ask at once.
    """

    def __init__(self, kernel: Kernel, X: InProcess, B: Matrix):
        self._kernel, self._X, self._B = kernel, X, B
        self.shape = len(X), len(B)
        itself: Any = take(X, B) if isinstance(kernel, Precomputed) else B  # type: ignore[arg-type]
        values = Evaluator(kernel, itself, B)
        self.concurrent = values.concurrent
        self.K_mm = np.empty((len(B), len(B)))
        values.fill(self.K_mm)

    def chunks(self, start: int = 0) -> Generator[Chunk, None, None]:
        """Return the rows from `start` on, which begins a chunk."""
        try:
            yield from chunks(self._X, start)
        except ValueError as error:
            raise ReadAgainError(error) from None

    def tiles(self, chunk: Chunk) -> Iterator[Tile]:
        """Yield the tiles of a chunk, which do not depend on how its rows were read."""
        first, part = chunk[0].start, chunk[1]
        values = Evaluator(self._kernel, part, self._B)
        n, m = values.shape
        room = np.empty((min(n, ROWS), m))
        for rows in strips(n, ROWS):
            K = room[: rows.stop - rows.start]
            values.tile(rows, slice(0, m), K, K.reshape(-1))
            among = slice(first + rows.start, first + rows.stop)
            yield Tile(among, take(part, rows), K)

    def diagonal(self, tile: Tile) -> np.ndarray:
        """Return k(x, x) of the rows of a tile."""
        if isinstance(self._kernel, Precomputed):
            return np.diagonal(tile.X[:, tile.rows])
        return diagonal_of(self._kernel, tile.X)

    def slopes(self, tile: Tile, G: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the derivative of <G, k(X, B)> + sum_i c_i k(x_i, x_i) by ln gamma."""
        of_values = gamma_slopes(self._kernel, tile.X, self._B, tile.K, G)
        return np.asarray(of_values + diagonal_slopes(self._kernel, tile.X, c))

    def slopes_of_basis(self, G: np.ndarray) -> np.ndarray:
        """Return the derivative of <G, k(B, B)> by ln gamma."""
        return gamma_slopes(self._kernel, self._B, self._B, self.K_mm, G)


_JITTER = 1e-10  # of the mean diagonal of k(B, B)
_ROUNDING = 1e-14  # of a matrix of norm 1, at first

# which rows, and these themselves where their features are not kept
_Chunk = tuple[slice, Matrix | None]


class LowRank:
    """Sigma and what its factor C at the latest W tells of the posterior.

    Parameters
    ----------
    values : BasisValues
        Of the rows with those of the basis.
    cache_mb : float
        Memory for features, in 10^6 bytes: those of as many of the first chunks of rows
        are kept, and the others made anew at every pass.
    n_threads : int

    Attributes
    ----------
    rest : (n,) array
        What Phi Phi' lacks of k(x, x).
    log_det : float
        ln |I + Sigma W|.
    """

    def __init__(self, values: BasisValues, cache_mb: float, n_threads: int = 1):
        self._values = values
        # A kernel function of the caller's may not be safe in two threads.
        self._n_threads = n_threads if values.concurrent else 1
        n, m = values.shape
        # Basis rows that are nearly equal make k(B, B) singular to rounding.
        jitter = _JITTER * np.diagonal(values.K_mm).mean()
        L = np.linalg.cholesky(values.K_mm + jitter * np.eye(m))
        self._L_inverse = lower_inverse(L)
        # The first rows: chunks are then cached or not as a whole, whatever the cache.
        self.kept = np.empty((in_room(n, cache_mb * 1e6 / (8 * m)), m))
        self.rest = np.empty(n)
        self._sum(self._measure, values.chunks())
        self.W = np.zeros(n)
        self.log_det, self._C_root = 0.0, np.eye(m)  # of C^-1 = root' root

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Sigma v."""
        return self._scores(self._products(v))

    def solve(
        self, v: np.ndarray, W: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return x = (I + W Sigma)^-1 v and Sigma x; a W (n,) >= 0 that is given is
        taken first. O(n m), and O(n m^2) for a new W, in two passes.
        """
        f = self._scores(self._coefficients(v, W))
        return v - self.W * f, f

    def posterior(
        self, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return (x, Sigma x) as `solve` has them, the diagonal of A, and 1 - W_i A_ii.

        Two passes of O(n m^2).
        """
        A = np.empty(len(W))
        f = self._scores(self._coefficients(v, W), A)
        return v - W * f, f, A, 1 - W * A

    def slopes(self, a: np.ndarray, u: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the derivatives by the gammas.

        They are those of 1/2 a'dSigma a - 1/2 tr(R dSigma) + u'dSigma a, and of sum_i
        c_i `rest`_i. Two passes of O(n m^2).

        That is <G, dK_nm> + <H, dK_mm> + c'd k(x, x) where, with P = K_nm K_mm^-1 =
        Phi L^-1, G = -R P + (a + u) a'P + a u'P - 2 c P and H = -1/2 P'G.
        """
        # `rest` was clipped at 0 there, where it does not change with the gammas.
        c = np.where(self.rest > 0, c, 0.0)
        m, (t, s) = len(self._C_root), self._products(np.column_stack([a, u]))
        C_inverse = inner(self._C_root, self._C_root)
        # G is the product of (W Phi, a + u, a) with this, beside -2 c P.
        right = matmul(np.concatenate([-C_inverse, [t, s]]), self._L_inverse)

        def of_chunk(chunk: Chunk) -> Parts:
            total, weighted = np.zeros(()), np.zeros((m, m))
            for tile in self._values.tiles(chunk):
                rows, Phi = tile.rows, self._features(tile)
                left = np.empty((len(Phi), m + 2))
                np.multiply(Phi, self.W[rows, None], out=left[:, :-2])
                left[:, -2], left[:, -1] = a[rows] + u[rows], a[rows]
                G = left @ right
                np.multiply(Phi, -2 * c[rows, None], out=left[:, :-2])
                _add_times_lower(left[:, :-2], self._L_inverse, G)
                # A product of a matrix and its transpose takes half the work.
                for sign in (1, -1):
                    some = sign * c[rows] > 0
                    scaled = Phi[some] * np.sqrt(np.abs(c[rows][some, None]))
                    weighted += sign * (scaled.T @ scaled)
                total = total + self._values.slopes(tile, G, c[rows])
            return total, weighted

        by_rows, weighted = self._sum(of_chunk, self._values.chunks())
        H = C_inverse - np.eye(m) + np.outer(t + s, t) + np.outer(t, s)
        H = inner(self._L_inverse, matmul(H - 2 * weighted, self._L_inverse))
        return np.asarray(by_rows + self._values.slopes_of_basis(-0.5 * H))

    def predictor(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (coef, root) with posterior mean k(x, B) coef and variance k(x, x) -
        |root k(B, x)|^2. A pass.
        """
        # K_mm^-1 - L^-T C^-1 L^-1 = L^-T (I - C^-1) L^-1
        # A difference of matrices of norm 1, not of the norm of K_mm^-1.
        held = np.eye(len(self._C_root)) - inner(self._C_root, self._C_root)
        coef = self._L_inverse.T @ self._products(a)
        return coef, matmul(_root(held), self._L_inverse)

    def _coefficients(self, v: np.ndarray, W: np.ndarray | None) -> np.ndarray:
        """Return C^-1 Phi'v, with a new W."""
        products = self._products(v, W)
        return np.asarray(self._C_root.T @ (self._C_root @ products))

    def _products(self, v: np.ndarray, W: np.ndarray | None = None) -> np.ndarray:
        """Return Phi'v, one row per column of v, and C of a new W in the same pass."""
        m = self._values.shape[1]
        root = None if W is None else np.sqrt(W)

        def of_chunk(chunk: _Chunk) -> Parts:
            products = np.zeros((*v.shape[1:], m))
            C = np.zeros((0, m) if root is None else (m, m))
            for rows, Phi in self._blocks(chunk):
                products += v[rows].T @ Phi
                if root is not None:
                    scaled = root[rows, None] * Phi
                    C += scaled.T @ scaled
            return products, C

        products, C = self._sum(of_chunk, self._chunks())
        if W is not None:
            # The unit matrix bounds the condition: no jitter is needed.
            L = np.linalg.cholesky(C + np.eye(m))
            self.W, self._C_root = W, lower_inverse(L)
            self.log_det = 2 * float(np.log(np.diagonal(L)).sum())
        return products

    def _scores(self, s: np.ndarray, A: np.ndarray | None = None) -> np.ndarray:
        """Return Phi s, (n,), and the diagonal of the posterior's covariance into A."""
        f = np.empty(self._values.shape[0])

        def of_chunk(chunk: _Chunk) -> Parts:
            for rows, Phi in self._blocks(chunk):
                f[rows] = Phi @ s
                if A is not None:
                    T = _times_transposed(Phi, self._C_root)
                    A[rows] = np.einsum("ij,ij->i", T, T)
            return ()

        self._sum(of_chunk, self._chunks())
        return f

    def _measure(self, chunk: Chunk) -> Parts:
        """Take `rest` of a chunk, and its features where they are kept."""
        for tile in self._values.tiles(chunk):
            rows, Phi = tile.rows, self._made(tile)
            if rows.stop <= len(self.kept):
                self.kept[rows] = Phi
            held = np.einsum("ij,ij->i", Phi, Phi)
            # Rounding leaves a negative rest at the basis rows themselves, where it is
            # 0.
            self.rest[rows] = np.maximum(self._values.diagonal(tile) - held, 0)
        return ()

    def _chunks(self) -> Generator[_Chunk, None, None]:
        """Yield all chunks of the rows."""
        for rows in strips(len(self.kept), CHUNK):
            yield rows, None
        if len(self.kept) < self._values.shape[0]:
            yield from self._values.chunks(len(self.kept))

    def _sum(
        self,
        of_chunk: Callable[[Any], Parts],
        chunks: Generator[Any, None, None],
    ) -> Parts:
        with closing(chunks), closing(in_order(of_chunk, chunks, self._n_threads)) as p:
            return pairwise(p)

    def _blocks(self, chunk: _Chunk) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield features of a chunk, in blocks of the same size, cached or not."""
        rows, part = chunk
        if part is None:
            for some in strips(rows.stop, ROWS, rows.start):
                yield some, self.kept[some]
        else:
            for tile in self._values.tiles((rows, part)):
                yield tile.rows, self._made(tile)

    def _features(self, tile: Tile) -> np.ndarray:
        """Return the features of a tile."""
        if tile.rows.stop <= len(self.kept):
            return self.kept[tile.rows]
        return self._made(tile)

    def _made(self, tile: Tile) -> np.ndarray:
        return _times_transposed(tile.K, self._L_inverse)


def _times_transposed(A: np.ndarray, L: np.ndarray) -> np.ndarray:
    """Multiply A L', L lower triangular, some columns at a time without zeros."""
    out = np.empty_like(A)
    for columns in strips(len(L), _COLUMNS):
        end = min(columns.stop, len(L))
        np.matmul(A[:, :end], L[columns, :end].T, out=out[:, columns])
    return out


def _add_times_lower(A: np.ndarray, L: np.ndarray, out: np.ndarray) -> None:
    """Add A L, L lower triangular, some columns at a time without zeros."""
    for columns in strips(len(L), _COLUMNS):
        out[:, columns] += A[:, columns.start :] @ L[columns.start :, columns]


def _root(A: np.ndarray) -> np.ndarray:
    """Return R with R'R = A up to rounding, for a positive semi-definite A of norm 1 or
    less.

    By a Cholesky factorisation, a tenth of the work of one by eigenvalues.
    """
    # Eigenvalues of A may be 0, and negative by rounding: the least shift that works.
    shift = _ROUNDING
    while True:
        try:
            return np.linalg.cholesky(A + shift * np.eye(len(A))).T
        except np.linalg.LinAlgError:
            shift *= 4


_COLUMNS = 64  # of a triangular product made at a time
_SMALL = 1e-6  # W_i Sigma_ii below which 1 - (B^-1)_ii has lost digits
_NOTHING = 1e-14  # W_i max Sigma_jj below which row i tells nothing in double
_MOST = 0.9  # of the rows: a factor of fewer is worth a copy of their covariance
_FEW = 64  # rows of a matrix whose squares stay in the cache
_ROWS = 1024  # of B made at a time: its memory is new, and costs as much as its values


class Dense:
    """Sigma (n, n) and its factor at the latest W.

    A row far inside the interval of its rank has a curvature W_i that is next to 0, and
    its row of B = I + root Sigma root is that of the unit matrix. The factor is that of
    the other rows, if they are few enough.
    """

    def __init__(self, Sigma: np.ndarray, n_threads: int = 1):
        self.Sigma = Sigma
        self.rest = np.zeros(len(Sigma))
        self._n_threads = n_threads
        self._B = np.empty_like(Sigma)
        self._inner, self._active = self._B, np.arange(len(Sigma))
        self.log_det, self._inverted = 0.0, False  # as for W = 0

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Sigma v."""
        return np.asarray(self.Sigma @ v)

    def factor(self, W: np.ndarray) -> None:
        """Take W (n,) >= 0. O(m^3 / 3) for m rows with curvature."""
        self.W, self.root, self._inverted = W, np.sqrt(W), False
        Sigma = self._take_active()
        root = self.root[self._active]
        for rows in strips(root.size, _ROWS):
            check_cancelled()
            _gp_products.scaled(
                Sigma, root, rows.start, rows.stop, self._inner, self._n_threads
            )
        # B = I + root K root has eigenvalues of 1 and more: it needs no jitter.
        self._cholesky = Cholesky(self._inner, self._n_threads)
        self.log_det = self._cholesky.log_det

    def _take_active(self) -> np.ndarray:
        """Choose the rows that the factor is to have, and return their covariance."""
        size = self.W * np.diagonal(self.Sigma).max()
        # What is not a number stays, so that the factorisation fails. So do all rows
        # where none has any curvature.
        active = np.flatnonzero(~(size < min(_NOTHING, size.max())))
        if active.size > _MOST * size.size:
            self._inner, self._active = self._B, np.arange(size.size)
            return self.Sigma
        self._inner, self._active = np.empty((active.size, active.size)), active
        return np.ascontiguousarray(self.Sigma[np.ix_(active, active)])

    def _of_all_rows(self, inner: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """Return a matrix of the rows of the factor with the other rows, for which it
        is diagonal; `inner` itself where there are none.
        """
        if self._inner is self._B:
            return inner
        out = np.diag(diagonal)
        out[np.ix_(self._active, self._active)] = inner
        return out

    def solve(
        self, v: np.ndarray, W: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return x = (I + W Sigma)^-1 v = v - R Sigma v and Sigma x; a W (n,) >= 0
        that is given is taken first, in O(n^3 / 3).
        """
        if W is not None:
            self.factor(W)
        x = v - self._R_times(self.matvec(v))
        return x, self.matvec(x)

    def posterior(
        self, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return (x, Sigma x) as `solve` has them, the diagonal of A, and 1 - W_i A_ii.

        O(2/3 n^3).
        """
        return *self.solve(v, W), *self.marginals()

    def _R_times(self, v: np.ndarray) -> np.ndarray:
        active, out = self._active, np.asarray(self.W * v)
        scaled = self.root[active] * v[active]
        # `marginals` has put the inverse where the factor was.
        if self._inverted:
            inner = self._inner.T @ (self._inner @ scaled)
        else:
            inner = self._cholesky.solve(scaled[:, None])[:, 0]
        out[active] = self.root[active] * inner
        return out

    def marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (diagonal of the posterior covariance A, 1 - W_i A_ii). O(n^3 / 3)."""
        L_inverse = self._cholesky.invert_factor()
        self._inverted = True
        norms = np.empty(len(L_inverse))
        _gp_products.column_norms(L_inverse, norms)
        q = np.ones(len(self.W))  # the diagonal of B^-1
        q[self._active] = norms
        diagonal = np.diagonal(self.Sigma)
        # (1 - q) / W is a difference of numbers near 1 there: computed from the
        # columns.
        small = np.flatnonzero(self.W * diagonal < _SMALL)
        with np.errstate(divide="ignore", invalid="ignore"):
            A = (1 - q) / self.W
        for part in (small[columns] for columns in strips(small.size, 64)):
            check_cancelled()
            # Sigma is symmetric, and its rows are adjacent in memory.
            values = self.Sigma[part][:, self._active] * self.root[self._active]
            columns = L_inverse @ values.T
            A[part] = diagonal[part] - np.einsum("ij,ij->j", columns, columns)
        return A, q

    def response(
        self,
    ) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Return how the posterior moves with its sites, to first order. O(n^3 / 3).

        The function takes t = d eta - dW h and dW, (n,) arrays, and returns A t and
        (A o A) dW / diag A, in O(n^2). After `marginals`, whose factor it spends.
        """
        inverse, active = self._cholesky.inverse_from_factor(), self._active
        self._inverted = False
        # A = W^-1/2 (I - B^-1) W^-1/2
        root = np.maximum(self.root[active], _SMALL * self.root.max())
        M = np.negative(inverse, out=inverse)
        M.flat[:: len(M) + 1] += 1
        own = np.maximum(np.diagonal(M), _SMALL**2)

        def moved(t: np.ndarray, dW: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            v, w, n = t[active] / root, dW[active] / root**2, len(M)
            mean, falls = np.zeros(t.size), np.zeros(t.size)
            for rows in strips(n, _FEW):
                mean[active[rows]] = M[rows] @ v / root[rows]
                falls[active[rows]] = np.square(M[rows]) @ w / own[rows]
            return mean, falls

        return moved

    def sensitivity(self, a: np.ndarray, u: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return M with 1/2 a'dK a - 1/2 tr(R dK) + u'dK a = <M, dK>. O(n^3 / 3).

        After `marginals`, whose factor it spends. There is no `rest` to change by c.
        """
        R, root = self._cholesky.inverse_from_factor(), self.root[self._active]
        R *= -0.5 * root[:, None]
        # Rows and columns are scaled in place: M is the largest array of a fit.
        R *= root
        M = self._of_all_rows(R, -0.5 * self.W)
        M += np.outer(0.5 * a + u, a)
        return M

    def predictor(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (coef, root) with posterior mean k(x, X) coef and variance k(x, x) -
        |root k(X, x)|^2; after `marginals`, without which the variance is that of the
        prior.
        """
        if not self._inverted:
            return a, np.zeros(self._B.shape)  # whose memory is not touched as yet
        root = np.tril(self._inner)
        root *= self.root[self._active]
        return a, self._of_all_rows(root, self.root)


Covariance = Dense | LowRank
