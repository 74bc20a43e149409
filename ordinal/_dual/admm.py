"""The alternating direction method of multipliers for NPSVOR's duals, all at once.

    min_{g,z}  1/2 g'Kg + sum_i phi_i(z_i)   s.t.  g = z,  sum_i g_i = 0,  lo <= z <= hi

for several (lo, hi, phi) over one K. With the scaled dual variable u and penalty rho,

    q = z - u,  a = M q,  g = a - (sum a / sum m) m,  M = rho (K + rho I)^-1,  m = M 1
    z = clip(soft(g + u + shift, width), lo, hi)
    u = u + g - z

phi_i(v) = pp_i v above 0 and pn_i v below it, so that shift = -(pp + pn) / (2 rho) and
width = (pp - pn) / (2 rho). The multiplier of sum g = 0, the intercept b, is
rho sum a / sum m.

Wang et al. (see `npsvor`), Algorithm 2; (12) and (13) there lack their rho / 2. The
penalty method is Boyd et al., Foundations and Trends in ML 3(1):1-122, 2011.
"""

from dataclasses import dataclass

import numpy as np

from .. import kernels
from .._kernel_matrix.tiles import diagonal_of, on_itself
from .._model.convergence import Status
from .._model.monitor import Monitor
from .._numerics.cholesky import Cholesky, lower_inverse
from .._numerics.rows import strips
from .._solvers import _admm_updates

_NOTHING = 1e-100  # products with entries near 1e-308 are many times slower
_THIN = 128  # rows from which it pays to look for a low rank
_STRIP = 8192  # rows of a tall factor in one product: a few hundredths of a second


@dataclass(frozen=True, slots=True, eq=False)
class AdmmResult:
    """Arrays have one entry a problem; g is (p, n), its sum 0, not yet in its box."""

    g: np.ndarray
    b: np.ndarray
    ratio: np.ndarray  # the larger residual over its allowance; <= 1 ends a problem
    n_iter: np.ndarray
    status: Status


def solve_admm(
    factor,
    lo: np.ndarray,
    hi: np.ndarray,
    pn: np.ndarray,
    pp: np.ndarray,
    *,
    rho: float,
    e_abs: float,
    e_rel: float,
    max_iter: int,
    n_threads: int,
    monitor: Monitor,
) -> AdmmResult:
    """Iterate every row of (lo, hi, pn, pp) until it meets (19) and (20)."""
    p, n = lo.shape
    g_end, b = np.zeros((p, n)), np.zeros(p)
    ratio, n_iter = np.full(p, np.inf), np.zeros(p, np.int64)
    m = factor.apply(np.ones((1, n)))[0]

    live = np.arange(p)  # problems that still iterate; the arrays below are theirs
    z, u = np.zeros((p, n)), np.zeros((p, n))
    shift, width = -(pp + pn) / (2 * rho), (pp - pn) / (2 * rho)
    status = Status.MAX_ITER
    for iteration in range(1, max_iter + 1):
        a = factor.apply(z - u)
        multiple = a.sum(axis=1) / m.sum()
        g = a - multiple[:, None] * m
        sums = np.empty((live.size, 5))
        _admm_updates.clip(g, z, u, shift, width, lo, hi, sums, n_threads)
        primal, dual, g_norm, z_norm, u_norm = np.sqrt(sums).T
        base = np.sqrt(n) * e_abs
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio[live] = np.fmax(
                primal / (base + e_rel * np.maximum(g_norm, z_norm)),
                rho * dual / (base + e_rel * rho * u_norm),
            )
        n_iter[live], b[live], g_end[live] = iteration, rho * multiple, g
        stopped = monitor.stop(iteration, ratio[live].max())
        going = ratio[live] > 1
        if stopped is not None or not going.any():
            status = stopped or Status.CONVERGED
            break
        if not going.all():
            live = live[going]
            z, u, shift, width, lo, hi = (
                np.ascontiguousarray(x[going]) for x in (z, u, shift, width, lo, hi)
            )
    return AdmmResult(g=g_end, b=b, ratio=ratio, n_iter=n_iter, status=status)


class _Exact:
    """What asks the kernel itself: all rows are support rows."""

    def __init__(self, kernel, X, n_threads: int, products):
        self._values = on_itself(kernel, X, n_threads, products)
        self.support = np.arange(len(X))

    def product(self, z: np.ndarray) -> np.ndarray:
        """K z for every row of z, from the kernel itself."""
        return np.ascontiguousarray(self._values.product(np.ascontiguousarray(z.T)).T)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Of the support rows, a column for every row of g."""
        return g.T


class DenseFactor(_Exact):
    """M = rho (K + rho I)^-1 itself: n^2 doubles, n^3 operations once.

    Raises ValueError if K + rho I is not positive definite.
    """

    def __init__(self, kernel, X, rho: float, n_threads: int, products=None):
        super().__init__(kernel, X, n_threads, products)
        n = len(X)
        A = np.empty((n, n))
        self._values.triangle(A, mirror=False)
        A[np.diag_indices(n)] += rho
        try:
            self._M = Cholesky(A.T).inverse()
        except np.linalg.LinAlgError:
            raise ValueError(
                f"kernel must be positive semi-definite: K + {rho:g} I is not"
            ) from None
        for rows in strips(n):
            M = self._M[rows]
            M *= rho
            M[np.abs(M) < _NOTHING] = 0

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
        inner = np.zeros((m, m))
        for rows in strips(len(L), _STRIP):
            inner += L[rows].T @ L[rows]
        inner[np.diag_indices(m)] += rho
        self._C = np.linalg.cholesky(inner)
        inverse = lower_inverse(self._C)
        for rows in strips(len(L), _STRIP):
            L[rows] = L[rows] @ inverse.T
        self._B = L

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
        return Q - self._up(self._down(Q))


class ThinFactor(_Thin, _Exact):
    """M by L L', which leaves next to nothing of K; all else by K itself."""

    def __init__(self, kernel, X, L, rho: float, n_threads: int, products=None):
        _Exact.__init__(self, kernel, X, n_threads, products)
        _Thin.__init__(self, L, rho)


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

    def __init__(self, kernel, X, rho: float, rank: int | float, n_threads: int):
        L, self.support, self.residual = incomplete_cholesky(kernel, X, rank, n_threads)
        self._top = np.tril(L[self.support])  # its square is K_PP
        super().__init__(L, rho)

    def product(self, z: np.ndarray) -> np.ndarray:
        """L L'z = B C'C B'z for every row of z."""
        return self._up(self._down(z) @ self._C.T @ self._C)

    def coefficients(self, g: np.ndarray) -> np.ndarray:
        """Of the support rows, a column c for every row g: sum_i g_i k~(x_i, x) =
        c'k(P, x)."""
        # L'g = (C B')g, and the rows of L at the pivots are `top`
        return np.linalg.solve(self._top.T, self._C @ self._down(g).T)


def exact_factor(
    kernel, X, rho: float, allowed: float, n_threads: int, products=None
) -> DenseFactor | ThinFactor:
    """What multiplies by M: through n x m matrices where they do for K.

    K of a smooth kernel, or of rows that repeat, is nearly of low rank. `allowed` is
    the trace of K that may be left out of M; as much is the most that M q / |q| is off,
    in units of rho.
    """
    n = len(X)
    # of these the diagonal bounds the rest of K: they are positive semi-definite
    if n >= _THIN and isinstance(kernel, kernels.RBF | kernels.Linear):
        trace = float(diagonal_of(kernel, X).sum())
        if 0 < allowed < trace:
            most = n // 3  # half of n would cost as much as M itself
            L, _, left = incomplete_cholesky(
                kernel, X, allowed / trace, n_threads, most
            )
            if left * trace <= allowed:
                return ThinFactor(kernel, X, L, rho, n_threads, products)
            del L
    return DenseFactor(kernel, X, rho, n_threads, products)


def incomplete_cholesky(
    kernel, X, rank: int | float, n_threads: int, most: int | None = None
):
    """L (n, m), pivot rows and relative trace residual of K ~ L L'. O(n m^2).

    Pivots are taken in blocks: of the rows with the largest residuals, those that
    remain large when the others of the block are accounted for. `rank` is the number
    of pivots, or the part of the trace at which to stop, before `most` pivots or then.
    """
    n = len(X)
    values = on_itself(kernel, X, n_threads)
    left = diagonal_of(kernel, X)  # diagonal of K - L L'
    trace = left.sum()
    most = min(n, (most or n) if isinstance(rank, float) else int(rank))
    floor = 1e-12 * left.max()
    if not left.min() >= 0:
        raise ValueError("kernel must be positive semi-definite: a k(x, x) is below 0")
    L = np.zeros((n, min(most, 128)))
    pivots = np.empty(0, np.intp)
    while pivots.size < most and left.max() > floor:
        if isinstance(rank, float) and left.sum() <= rank * trace:
            break
        width = min(64, n)
        candidates = np.argpartition(-left, width - 1)[:width]
        block = np.empty((width, width))
        values.tile(candidates, candidates, block)
        m = pivots.size
        block -= L[candidates, :m] @ L[candidates, :m].T
        order, small = _pivoted_block(block, floor, min(32, most - m))
        new = candidates[order]
        if new.size == 0:
            left[candidates] = 0  # rounding is all that these have left
            continue
        if m + new.size > L.shape[1]:
            wider = np.zeros((n, min(most, 2 * L.shape[1])))
            wider[:, :m] = L[:, :m]
            L = wider
        columns = slice(m, m + new.size)
        inverse = np.linalg.inv(small)
        for rows in strips(n, _STRIP):
            part = np.empty((rows.stop - rows.start, new.size))
            values.tile(rows, new, part)
            part -= L[rows, :m] @ L[new, :m].T
            L[rows, columns] = part @ inverse.T
        L[new, columns] = small  # triangular to the last bit
        left -= np.einsum("ij,ij->i", L[:, columns], L[:, columns])
        np.maximum(left, 0, out=left)
        pivots = np.concatenate([pivots, new])
        left[pivots] = 0
    if pivots.size == 0:
        raise ValueError("kernel is zero on every row")
    return np.ascontiguousarray(L[:, : pivots.size]), pivots, left.sum() / trace


def _pivoted_block(block: np.ndarray, floor: float, most: int):
    """Pivots of a small Cholesky factorisation, and its lower triangular factor.

    Stops where the best pivot falls to a quarter of the first: rows outside the block
    may then have more to give.
    """
    left = np.diagonal(block).copy()
    factor = np.zeros((block.shape[0], most))
    order: list[int] = []
    enough = max(floor, 0.25 * left.max())
    while len(order) < most:
        p = int(left.argmax())
        if not left[p] > (enough if order else floor):
            break
        j = len(order)
        column = (block[:, p] - factor[:, :j] @ factor[p, :j]) / np.sqrt(left[p])
        factor[:, j] = column
        left -= column**2
        left[[*order, p]] = -np.inf
        order.append(p)
    return np.array(order, np.intp), np.tril(factor[order, : len(order)])
