"""Multiplication by M = rho (K + rho I)^-1 for ADMM: dense, thin or low-rank.

A factor is made once and serves all problems, iterations, boxes and slopes over one K.
"""

import numpy as np

from .. import kernels
from .._input.types import Kernel, Matrix
from .._numerics.cholesky import Cholesky, lower_inverse
from .._numerics.pivoted_cholesky import Tile, pivoted_cholesky
from .._numerics.rows import inner, matmul, strips
from .._watch.monitor import check_cancelled
from ..kernels.tiles import Products, diagonal_of, on_itself

_TINY = 1e-100  # products with entries near 1e-308 are many times slower
_THIN = 128  # rows from which it pays to look for a low rank
_STRIP = 8192  # rows of a tall factor in one product: a few hundredths of a second


class _Exact:
    """Products with the kernel matrix itself: all rows are support rows."""

    def __init__(
        self, kernel: Kernel, X: Matrix, n_threads: int, products: Products | None
    ):
        self._values = on_itself(kernel, X, n_threads, products)
        self.support = np.arange(len(X))

    def product(self, z: np.ndarray) -> np.ndarray:
        """K z for every row of z, from the kernel itself."""
        return np.ascontiguousarray(self._values.product(np.ascontiguousarray(z.T)).T)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients of the support rows, one column per row of g."""
        return g.T


class DenseFactor(_Exact):
    """M = rho (K + rho I)^-1 itself: n^2 doubles, n^3 operations once.

    Raises ValueError if K + rho I is not positive definite.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        rho: float,
        n_threads: int,
        products: Products | None = None,
    ):
        super().__init__(kernel, X, n_threads, products)
        n = len(X)
        A = np.empty((n, n))
        self._values.triangle(A, mirror=False)
        largest = float(A.diagonal().max())
        A[np.diag_indices(n)] += rho
        try:
            self._M = Cholesky(A.T, n_threads).inverse()
        except np.linalg.LinAlgError:
            raise ValueError(
                f"kernel must be positive semi-definite: K + {rho:g} I is not, "
                f"as rounded where K reaches {largest:.3g}: scale the features of X or "
                "raise rho"
            ) from None
        for rows in strips(n):
            M = self._M[rows]
            M *= rho
            M[np.abs(M) < _TINY] = 0

    def apply(self, Q: np.ndarray) -> np.ndarray:
        """M q for every row q of Q."""
        out = np.empty_like(Q)
        for columns in strips(Q.shape[1], _STRIP):
            out[:, columns] = Q @ self._M[:, columns]
        return out


class _Thin:
    """M for K = L L': with rho I + L'L = C C' and B = L C'^-1, M q is q - B B'q.

    B takes the place of L.
    """

    def __init__(self, L: np.ndarray, rho: float):
        m = L.shape[1]
        squared = inner(L, L)
        squared[np.diag_indices(m)] += rho
        self._C = np.linalg.cholesky(squared)
        self._B = matmul(L, lower_inverse(self._C).T, out=L)

    def _down(self, Q: np.ndarray) -> np.ndarray:
        """B'q for every row q of Q: (p, m)."""
        out = np.zeros((Q.shape[0], self._B.shape[1]))
        for rows in strips(len(self._B), _STRIP):
            out += Q[:, rows] @ self._B[rows]
        return out

    def _up(self, T: np.ndarray) -> np.ndarray:
        """B t for every row t of T: (p, n)."""
        out = np.empty((T.shape[0], len(self._B)))
        for rows in strips(len(self._B), _STRIP):
            out[:, rows] = T @ self._B[rows].T
        return out

    def apply(self, Q: np.ndarray) -> np.ndarray:
        """M q for every row q of Q."""
        return np.asarray(Q - self._up(self._down(Q)))


class ThinFactor(_Thin, _Exact):
    """M by L L', which leaves next to nothing of K; all else by K itself."""

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        L: np.ndarray,
        rho: float,
        n_threads: int,
        products: Products | None = None,
    ):
        _Exact.__init__(self, kernel, X, n_threads, products)
        _Thin.__init__(self, L, rho)


def _factor_at(
    diagonal: np.ndarray, tile: Tile, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Factorise as `pivoted_cholesky`, with pivots among these rows.

    Rows on which K depends on the others are left out.
    """
    K_PP = np.empty((rows.size, rows.size))
    for strip in strips(rows.size):
        check_cancelled()
        tile(rows[strip], rows, K_PP[strip])

    def within(some: np.ndarray | slice, columns: np.ndarray, out: np.ndarray) -> None:
        out[:] = K_PP[some][:, columns]

    top, order, _ = pivoted_cholesky(diagonal[rows], within, rows.size)
    pivots, top = rows[order], np.tril(top[order])
    L = np.empty((diagonal.size, pivots.size))
    for strip in strips(len(L)):
        check_cancelled()
        tile(strip, pivots, L[strip])
    matmul(L, lower_inverse(top).T, out=L)
    L[pivots] = top
    left = np.maximum(diagonal - np.einsum("ij,ij->i", L, L), 0)
    return L, pivots, float(left.sum() / diagonal.sum())


class LowRankFactor(_Thin):
    """K replaced by L L', a pivoted incomplete Cholesky factor: n x m, never n x n.

    The rows of K at the pivots are kept exactly, and the approximation is
    k~(x, x') = k(x, P) K_PP^-1 k(P, x'): a model has the pivot rows P for its support.

    Attributes
    ----------
    support : (m,) numbers of the pivot rows
    residual : float
        Part of the trace of K that L L' leaves.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        rho: float,
        basis: int | float | np.ndarray,
        n_threads: int,
    ):
        tile, diagonal = on_itself(kernel, X, n_threads).tile, diagonal_of(kernel, X)
        if isinstance(basis, np.ndarray):
            found = _factor_at(diagonal, tile, basis)
        else:
            found = pivoted_cholesky(diagonal, tile, basis)
        L, self.support, self.residual = found
        self._top = np.tril(L[self.support])  # its square is K_PP
        super().__init__(L, rho)

    def product(self, z: np.ndarray) -> np.ndarray:
        """L L'z = B C'C B'z for every row of z."""
        return self._up(self._down(z) @ self._C.T @ self._C)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients of the support rows, one column c per row g.

        sum_i g_i k~(x_i, x) = c'k(P, x).
        """
        # L'g = (C B')g, and the rows of L at the pivots are `top`
        return np.linalg.solve(self._top.T, self._C @ self._down(g).T)


def exact_factor(
    kernel: Kernel,
    X: Matrix,
    rho: float,
    allowed: float,
    n_threads: int,
    products: Products | None = None,
) -> DenseFactor | ThinFactor:
    """Return an operator that multiplies by M, with n x m matrices where they suffice.

    K of a smooth kernel, or of rows that repeat, is nearly of low rank. `allowed` is
    the trace of K that may be left out of M; as much is the most that M q / |q| is off,
    in units of rho.
    """
    n = len(X)
    # of these the diagonal bounds the rest of K: they are positive semi-definite
    if n >= _THIN and isinstance(kernel, kernels.RBF | kernels.Linear):
        diagonal = diagonal_of(kernel, X)
        trace = float(diagonal.sum())
        if 0 < allowed < trace:
            most = n // 3  # half of n would cost as much as M itself
            tile = on_itself(kernel, X, n_threads).tile
            L, _, left = pivoted_cholesky(diagonal, tile, allowed / trace, most)
            if left * trace <= allowed:
                return ThinFactor(kernel, X, L, rho, n_threads, products)
            del L
    return DenseFactor(kernel, X, rho, n_threads, products)


class NoFactor:
    """Replacement for a factor that was not computed: its models predict nothing."""

    support = np.empty(0, np.intp)

    def product(self, z: np.ndarray) -> np.ndarray:
        """Return K z = 0 for z = 0."""
        return np.zeros_like(z)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Return coefficients of no support rows."""
        return np.zeros((0, len(g)))


Factor = DenseFactor | ThinFactor | LowRankFactor
