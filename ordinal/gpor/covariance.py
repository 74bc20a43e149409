"""Prior covariance of the latent values, and solutions with a diagonal matrix W.

W holds the precisions of the sites (EP) or the curvatures of the likelihood (Laplace).
With B = I + W^1/2 Sigma W^1/2, whose eigenvalues are 1 or more, and
R = W^1/2 B^-1 W^1/2 = (W^-1 + Sigma)^-1,

    (Sigma^-1 + W)^-1 = Sigma - Sigma R Sigma,    |I + Sigma W| = |B|,

so neither W nor Sigma, which is singular for duplicate rows, is ever inverted.

`Dense` holds all of Sigma. C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for
Machine Learning, MIT Press, 2006, sections 3.4 and 3.6.

`LowRank` has Sigma = Phi Phi', with features Phi (n, m) on m basis rows B:

    phi(x) = L^-1 k(B, x),    L L' = k(B, B),    C = I + Phi'W Phi

    x = (I + W Sigma)^-1 v = v - W Phi s,    Sigma x = Phi s,    s = C^-1 Phi'v

    A = (Sigma^-1 + W)^-1 = Phi C^-1 Phi',    (W^-1 + Sigma)^-1 Phi = W Phi C^-1

Every result is a sum over the rows of m or m x m numbers, or n numbers computed from
such sums. Chunks of rows are summed one by one, and their sums in a tree, so the bytes
of the result depend neither on where the rows are, nor on the number of threads, nor
on how many features are cached.

The variance k(x, x) - |phi(x)|^2, which the basis misses, is `extra_variance`. The
likelihood of a row treats it as noise of its own: the FITC approximation. E. Snelson,
Z. Ghahramani, NIPS 18, 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from .._input.types import Matrix
from .._numerics.cholesky import Cholesky, lower_inverse, times_lower, times_upper
from .._numerics.rows import inner, matmul, strips, take
from .._numerics.threads import in_order
from .._rows.rows import Chunk, InProcess, chunks, in_room
from .._rows.source import CHUNK
from .._rows.sums import Parts, pairwise
from .._solvers import _gp_products
from .._watch.cancellation import check_cancelled
from ..kernels.functions import KernelFunction
from ..kernels.tiles import Evaluator, diagonal_of

ROWS = 1024  # of a tile: what is made of them stays in the cache


class ReadAgainError(Exception):
    """Wrapper of an error of a source in a later pass over its rows.

    Such an error ends the fit. Other values of theta would not help, as they do after
    a ValueError of the evidence.
    """

    def __init__(self, error: ValueError):
        super().__init__(str(error))
        self.error = error


class Tile(NamedTuple):
    """Kernel values k(X, B) of consecutive rows of X.

    Attributes
    ----------
    rows : slice
        Numbers of these rows among all.
    X : matrix
        These rows.
    K : (len(X), m) array
        Kernel values, in memory that the next tile of the chunk overwrites.
    """

    rows: slice
    X: Any
    K: np.ndarray


class BasisValues:
    """Kernel values k(X, B) and k(x, x) of n rows X and m basis rows B.

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
        Whether several threads may compute values at the same time.
    """

    def __init__(self, kernel: KernelFunction, X: InProcess, B: Matrix):
        self._kernel, self._X, self._B = kernel, X, B
        self.shape = len(X), len(B)
        itself: Any = take(X, B) if kernel.by_number else B  # type: ignore[arg-type]
        values = Evaluator(kernel, itself, B)
        self.concurrent = values.concurrent
        self.K_mm = np.empty((len(B), len(B)))
        values.fill(self.K_mm)

    def chunks(self, start: int = 0) -> Generator[Chunk, None, None]:
        """Yield the chunks of the rows from number `start` on, the first of a chunk."""
        try:
            yield from chunks(self._X, start)
        except ValueError as error:
            raise ReadAgainError(error) from None

    def tiles(self, chunk: Chunk) -> Iterator[Tile]:
        """Yield the tiles of a chunk, in the same shapes however its rows were read."""
        first, part = chunk[0].start, chunk[1]
        values = Evaluator(self._kernel, part, self._B)
        n, m = values.shape
        room = np.empty((min(n, ROWS), m))
        for rows in strips(n, ROWS):
            K = room[: rows.stop - rows.start]
            values.tile(rows, slice(0, m), K, K.reshape(-1))
            numbers = slice(first + rows.start, first + rows.stop)
            yield Tile(numbers, take(part, rows), K)

    def diagonal(self, tile: Tile) -> np.ndarray:
        """Return k(x, x) of the rows of a tile."""
        if self._kernel.by_number:
            return np.diagonal(tile.X[:, tile.rows])
        return diagonal_of(self._kernel, tile.X)

    def slopes(self, tile: Tile, G: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the derivative of <G, k(X, B)> + sum_i c_i k(x_i, x_i) by ln gamma."""
        of_values = self._kernel.slopes(tile.X, self._B, tile.K, G)
        return np.asarray(of_values + self._kernel.diagonal_slopes(tile.X, c))

    def slopes_of_basis(self, G: np.ndarray) -> np.ndarray:
        """Return the derivative of <G, k(B, B)> by ln gamma."""
        return self._kernel.slopes(self._B, self._B, self.K_mm, G)


_JITTER = 1e-10  # of the mean diagonal of k(B, B)
_ROUNDING = 1e-14  # of a matrix of norm 1, at first

# numbers of the rows, and the rows unless their features are cached
_Chunk = tuple[slice, Matrix | None]


class LowRank:
    """Covariance Phi Phi' on a basis, and its factor C at the latest W.

    Parameters
    ----------
    values : BasisValues
    cache_mb : float
        Memory for features, in 10^6 bytes. The features of the first chunks of rows
        are cached as far as they fit, the others computed again in every pass.
    n_threads : int

    Attributes
    ----------
    cached : (k, m) array
        Features of the first k rows.
    extra_variance : (n,) array
        k(x, x) - |phi(x)|^2 of each row.
    log_det : float
        ln |I + Sigma W|.
    """

    def __init__(self, values: BasisValues, cache_mb: float, n_threads: int = 1):
        self._values = values
        # A kernel function that the caller wrote may not be thread-safe.
        self._n_threads = n_threads if values.concurrent else 1
        n, m = values.shape
        # Basis rows that are nearly equal make k(B, B) singular to rounding.
        jitter = _JITTER * np.diagonal(values.K_mm).mean()
        L = np.linalg.cholesky(values.K_mm + jitter * np.eye(m))
        self._L_inverse = lower_inverse(L)
        # Of the first rows, so that a chunk is cached as a whole or not at all.
        self.cached = np.empty((in_room(n, cache_mb * 1e6 / (8 * m)), m))
        self.extra_variance = np.empty(n)
        self._sum(self._measure, values.chunks())
        self.W = np.zeros(n)
        self.log_det, self._C_root = 0.0, np.eye(m)  # of C^-1 = root' root

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Sigma v."""
        return self._scores(self._products(v))

    def solve(
        self, v: np.ndarray, W: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return x = (I + W Sigma)^-1 v and Sigma x, for a new W (n,) >= 0 if given.

        Two passes of O(n m), or O(n m^2) with a new W.
        """
        f = self._scores(self._coefficients(v, W))
        return v - self.W * f, f

    def posterior(
        self, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return x and Sigma x of `solve`, the diagonal of A, and 1 - W_i A_ii.

        Two passes of O(n m^2).
        """
        A = np.empty(len(W))
        f = self._scores(self._coefficients(v, W), A)
        return v - W * f, f, A, 1 - W * A

    def variances(self, W: np.ndarray) -> np.ndarray:
        """Return the diagonal of A for a new W. Two passes of O(n m^2)."""
        return self.posterior(np.zeros(len(W)), W)[2]

    def slopes(self, a: np.ndarray, u: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the derivatives by every ln gamma, (p,).

        They are those of 1/2 a'dSigma a - 1/2 tr(R dSigma) + u'dSigma a plus
        sum_i c_i `extra_variance`_i. Two passes of O(n m^2).

        With P = K_nm K_mm^-1 = Phi L^-1 this is <G, dK_nm> + <H, dK_mm> + c'd k(x, x),
        where G = -R P + (a + u) a'P + a u'P - 2 c P and H = -1/2 P'G.
        """
        # Where it was clipped at 0, it does not change with the gammas.
        c = np.where(self.extra_variance > 0, c, 0.0)
        m, (t, s) = len(self._C_root), self._products(np.column_stack([a, u]))
        C_inverse = inner(self._C_root, self._C_root)
        # G + 2 c P is the product of (W Phi, a + u, a) with these m + 2 rows.
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
                G += times_lower(left[:, :-2], self._L_inverse, _COLUMNS)
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
        """Return coef (m,) and root (m, m) of the predictions, in one pass.

        The posterior mean at x is k(x, B) coef, the variance k(x, x) -
        |root k(B, x)|^2.
        """
        # K_mm^-1 - L^-T C^-1 L^-1 = L^-T (I - C^-1) L^-1
        # I - C^-1 subtracts matrices of norm 1; K_mm^-1 may have any norm.
        held = np.eye(len(self._C_root)) - inner(self._C_root, self._C_root)
        coef = self._L_inverse.T @ self._products(a)
        return coef, matmul(_root(held), self._L_inverse)

    def _coefficients(self, v: np.ndarray, W: np.ndarray | None) -> np.ndarray:
        """Return C^-1 Phi'v, (m,), for a new W if given."""
        products = self._products(v, W)
        return np.asarray(self._C_root.T @ (self._C_root @ products))

    def _products(self, v: np.ndarray, W: np.ndarray | None = None) -> np.ndarray:
        """Return Phi'v, a row per column of v; also factor C of a new W."""
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
        """Return Phi s, (n,), and write the diagonal of Phi C^-1 Phi' to A."""
        f = np.empty(self._values.shape[0])

        def of_chunk(chunk: _Chunk) -> Parts:
            for rows, Phi in self._blocks(chunk):
                f[rows] = Phi @ s
                if A is not None:
                    T = np.empty_like(Phi)
                    times_upper(Phi, self._C_root.T, T, _COLUMNS)
                    A[rows] = np.einsum("ij,ij->i", T, T)
            return ()

        self._sum(of_chunk, self._chunks())
        return f

    def _measure(self, chunk: Chunk) -> Parts:
        """Compute `extra_variance` of a chunk, and fill the cache of features."""
        for tile in self._values.tiles(chunk):
            rows, Phi = tile.rows, self._compute_features(tile)
            if rows.stop <= len(self.cached):
                self.cached[rows] = Phi
            held = np.einsum("ij,ij->i", Phi, Phi)
            # It is 0 at the basis rows, where rounding may leave a negative number.
            missed = self._values.diagonal(tile) - held
            self.extra_variance[rows] = np.maximum(missed, 0)
        return ()

    def _chunks(self) -> Generator[_Chunk, None, None]:
        """Yield all chunks, those with cached features first."""
        for rows in strips(len(self.cached), CHUNK):
            yield rows, None
        if len(self.cached) < self._values.shape[0]:
            yield from self._values.chunks(len(self.cached))

    def _sum(
        self, of_chunk: Callable[[Any], Parts], chunks: Generator[Any, None, None]
    ) -> Parts:
        with closing(chunks), closing(in_order(of_chunk, chunks, self._n_threads)) as p:
            return pairwise(p)

    def _blocks(self, chunk: _Chunk) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the features of a chunk, in the same blocks whether cached or not."""
        rows, part = chunk
        if part is None:
            for some in strips(rows.stop, ROWS, rows.start):
                yield some, self.cached[some]
        else:
            for tile in self._values.tiles((rows, part)):
                yield tile.rows, self._compute_features(tile)

    def _features(self, tile: Tile) -> np.ndarray:
        """Return the features of a tile, from the cache if they are there."""
        if tile.rows.stop <= len(self.cached):
            return self.cached[tile.rows]
        return self._compute_features(tile)

    def _compute_features(self, tile: Tile) -> np.ndarray:
        Phi = np.empty_like(tile.K)
        times_upper(tile.K, self._L_inverse.T, Phi, _COLUMNS)
        return Phi


def _root(A: np.ndarray) -> np.ndarray:
    """Return R with R'R = A up to rounding, for a semi-definite A of norm <= 1.

    A Cholesky factorisation takes a tenth of the time of one by eigenvalues.
    """
    # Eigenvalues of A may be 0, and negative by rounding. The least shift is used with
    # which the factorisation succeeds.
    shift = _ROUNDING
    while True:
        try:
            return np.linalg.cholesky(A + shift * np.eye(len(A))).T
        except np.linalg.LinAlgError:
            shift *= 4


_COLUMNS = 64  # of a triangular product computed at a time
_SMALL = 1e-6  # W_i Sigma_ii below which 1 - (B^-1)_ii has lost digits
_NOTHING = 1e-14  # W_i max Sigma_jj below which row i carries no information in double
_MOST = 0.9  # share of the rows up to which a factor of them is worth a copy of Sigma
_FEW = 64  # rows of an (n, n) matrix at a time, which stay in the processor's cache
_ROWS = 1024  # rows of B computed between checks for cancellation


class Dense:
    """Covariance Sigma (n, n), and the factor of B at the latest W.

    A row far inside the interval of its rank has a curvature W_i of almost 0, and its
    row of B is that of the unit matrix. If there are many such rows, only the submatrix
    of the other rows, the active ones, is factored.
    """

    def __init__(self, Sigma: np.ndarray, n_threads: int = 1):
        self.Sigma = Sigma
        self.extra_variance = np.zeros(len(Sigma))
        self._n_threads = n_threads
        self._B = np.empty_like(Sigma)
        self._inner, self._active = self._B, np.arange(len(Sigma))
        self.log_det, self._inverted = 0.0, False  # those of W = 0

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Sigma v."""
        return np.asarray(self.Sigma @ v)

    def factor(self, W: np.ndarray) -> None:
        """Factor B of a new W (n,) >= 0. O(m^3 / 3) for m active rows."""
        self.W, self.root, self._inverted = W, np.sqrt(W), False
        Sigma = self._take_active()
        root = self.root[self._active]
        for rows in strips(root.size, _ROWS):
            check_cancelled()
            _gp_products.scaled(
                Sigma, root, rows.start, rows.stop, self._inner, self._n_threads
            )
        # B has eigenvalues of 1 and more, so it needs no jitter.
        self._cholesky = Cholesky(self._inner, self._n_threads)
        self.log_det = self._cholesky.log_det

    def _take_active(self) -> np.ndarray:
        """Choose the active rows, and return their covariance."""
        size = self.W * np.diagonal(self.Sigma).max()
        # NaN counts as active, so that the factorisation fails. If no row has any
        # curvature, all are active.
        active = np.flatnonzero(~(size < min(_NOTHING, size.max())))
        if active.size > _MOST * size.size:
            self._inner, self._active = self._B, np.arange(size.size)
            return self.Sigma
        m = active.size
        self._inner, self._active = self._B.reshape(-1)[: m * m].reshape(m, m), active
        return self.Sigma.take(active, axis=0).take(active, axis=1)

    def _of_all_rows(self, inner: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """Return the (n, n) matrix that is `inner` in the active rows and diagonal in
        the others; `inner` itself if all rows are active.
        """
        if len(inner) == len(self.Sigma):
            return inner
        out = np.diag(diagonal)
        out[np.ix_(self._active, self._active)] = inner
        return out

    def solve(
        self, v: np.ndarray, W: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return x = (I + W Sigma)^-1 v = v - R Sigma v and Sigma x, for a new W
        (n,) >= 0 if given. O(n^2), or O(n^3 / 3) with a new W.
        """
        if W is not None:
            self.factor(W)
        x = v - self._R_times(self.matvec(v))
        return x, self.matvec(x)

    def posterior(
        self, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return x and Sigma x of `solve`, the diagonal of A, and 1 - W_i A_ii.

        O(2/3 n^3).
        """
        return *self.solve(v, W), *self.marginals()

    def _R_times(self, v: np.ndarray) -> np.ndarray:
        active, out = self._active, np.asarray(self.W * v)
        scaled = self.root[active] * v[active]
        # After `marginals` the memory of the factor holds its inverse.
        if self._inverted:
            inner = self._inner.T @ (self._inner @ scaled)
        else:
            inner = self._cholesky.solve(scaled[:, None])[:, 0]
        out[active] = self.root[active] * inner
        return out

    def variances(self, W: np.ndarray) -> np.ndarray:
        """Return the diagonal of A for a new W, as it enters the gradient of `log_det`.

        That has no part of the rows that are not active; their entries are the prior
        variances. O(2/3 m^3) for m active rows.
        """
        self.factor(W)
        return self.marginals(active_only=True)[0]

    def marginals(self, active_only: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of the posterior covariance A, and 1 - W_i A_ii.

        O(n^3 / 3).
        """
        L_inverse = self._cholesky.invert_factor()
        self._inverted = True
        norms = np.empty(len(L_inverse))
        _gp_products.column_norms(L_inverse, norms)
        q = np.ones(len(self.W))  # the diagonal of B^-1
        q[self._active] = norms
        diagonal = np.diagonal(self.Sigma)
        # 1 - q has lost its digits where W is small. There A is computed from the
        # columns of L^-1 W^1/2 Sigma.
        is_small = self.W * diagonal < _SMALL
        with np.errstate(divide="ignore", invalid="ignore"):
            A = np.where(is_small, diagonal, (1 - q) / self.W)
        rows = self._active if active_only else np.arange(A.size)
        small = rows[is_small[rows]]
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
        """Return the first-order response of the posterior to its sites. O(n^3 / 3).

        It is a function of t = d eta - dW h and dW, (n,) arrays, that returns A t and
        (A o A) dW / diag A in O(n^2). Call it after `marginals`, whose result in the
        memory of the factor it overwrites.
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

    def sensitivity(
        self, a: np.ndarray, u: np.ndarray
    ) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Yield blocks (rows, columns, G) of the derivative by Sigma. O(n^3 / 3).

        For a symmetric change dSigma, the sum of <G, dSigma[rows, columns]> is
        1/2 a'dSigma a - 1/2 tr(R dSigma) + u'dSigma a. The blocks cover the upper
        triangle. Call it after `marginals`, whose result in the memory of the factor it
        overwrites.
        """
        R, active = self._cholesky.inverse_from_factor(), self._active
        root, left = self.root[active], 0.25 * a + 0.5 * u
        # A matrix of n^2 entries takes longer to fetch than to compute: few rows at a
        # time stay in the cache.
        for rows in strips(len(a), _FEW):
            first = rows.start
            G = np.outer(left[rows], a[first:])
            G += np.outer(a[rows], left[first:])
            # R is diagonal in the other rows, and below the rounding of the rest there.
            i, j = np.searchsorted(active, (first, rows.stop))
            scaled = R[i:j, i:] * (-0.5 * root[i:j, None]) * root[i:]
            if active.size == len(a):
                G += scaled
            else:
                G[np.ix_(active[i:j] - first, active[i:] - first)] += scaled
            # Entries to the right of the block on the diagonal stand for two.
            G[:, rows.stop - first :] *= 2
            yield rows, slice(first, len(a)), G

    def predictor(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coef (n,) and root (n, n) of the predictions.

        The posterior mean at x is k(x, X) coef, the variance k(x, x) -
        |root k(X, x)|^2. Before `marginals` the variance is that of the prior.
        """
        if not self._inverted:
            return a, np.zeros(self._B.shape)  # memory that nothing has touched yet
        root = np.tril(self._inner)
        root *= self.root[self._active]
        return a, self._of_all_rows(root, self.root)


Covariance = Dense | LowRank
