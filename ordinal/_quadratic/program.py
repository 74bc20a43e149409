"""Quadratic programs over one kernel matrix, their points and their optimality.

Each of P problems has T groups of n variables, one per row of K and group:

    min_g  1/2 beta'K beta + sum_ij phi_ij(g_ij) [+ 1/2 sum_j z_j^2 / price_j]      (Q)
    s.t.   lo_ij <= g_ij <= hi_ij,  and for each group j

      sum_i g_ij = 0                            separate groups
      sum_i g_ij = mu_j - mu_{j+1},  mu >= 0    coupled groups: b_1 <= ... <= b_T
      sum_i g_ij = -z_j                         priced: price_j b_j^2 / 2 in the primal

(coupled groups may have a constant `total_j` on the right as well), with mu_1 =
mu_{T+1} = 0, beta_i = sum_j g_ij and f = K beta. phi_ij(v) is pp_ij v for
v >= 0 and pn_ij v for v < 0, with pn_ij <= pp_ij. C-SVC, eps-SVR and every rank of
NPSVOR have one group; the SVOR family has one per threshold. With

    R_ij = f_i + phi_ij'(g_ij+)  where g_ij < hi_ij, else +inf
    L_ij = f_i + phi_ij'(g_ij-)  where g_ij > lo_ij, else -inf
    up_j  = min R_ij over i, and z_j / price_j
    low_j = max L_ij over i, and z_j / price_j

a feasible g is optimal iff violation = max_j (low_j - up_j) <= 0                  (KKT)

and any b_j in [low_j, up_j] is then a multiplier of the equality of group j. In
coupled groups, a variable of group j may grow while one of a lower group shrinks, which
raises the mu between the two, or while one of a higher group does as long as the mu
between them are positive: low_j is then the maximum over all groups up to the last that
positive mu tie to j, and up_j the minimum from the first one on, as in (17) and (18) of
Chu and Keerthi.

A problem may be over some of the rows only: rows whose variables all have lo = hi = 0
take no part in it, and SMO passes over them where they lie together. The problems of
pairs of ranks thus share K at the cost of their own rows, if X is in the order of its
ranks. The entries of f at such rows are valid only after `Points.refresh`.

In this folder and its kernels:

    P, T, n     problems, groups, rows of K
    g, beta, f  variables, their sums over the groups, K beta
    z, mu, b    slack of a price, ties of coupled groups, multipliers of the equalities
    phi, pn/pp  piecewise linear cost; its slope left and right of 0, where its kink is
    R, L        one-sided slopes of (Q): cost of growing a variable, gain by shrinking
    free        a variable inside a linear piece of its box; the others are at an end
    entry e     of g and z in one array: j n + i is g_ij, T n + j is z_j

`Gram` is the kernel matrix of the training rows in float32: all of its rows where
`cache_mb` allows it, or else the most recently used ones. Solvers take steps on these
rows. Tolerances are judged by `product`, in double and from the kernel itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from .._numerics.rows import TILE, strips, take
from .._numerics.threads import Pool
from .._solvers import _kernel_values
from .._watch.cancellation import check_cancelled
from ..kernels.functions import KernelFunction
from ..kernels.tiles import Evaluator, Products, diagonal_of, on_itself

_ROUNDING = 1e-15  # a mu below this share of the sum of all |g| counts as 0
_GAP = 32  # idle rows that cost less to pass over than a further range of rows costs


@dataclass(frozen=True, eq=False)
class Program:
    """Quadratic program (Q) without its matrix K; arrays have shape (P, T, n)."""

    lo: np.ndarray
    hi: np.ndarray
    pn: np.ndarray
    pp: np.ndarray
    coupled: bool = False
    price: np.ndarray | None = None  # (T,)
    total: np.ndarray | None = None  # (T,) constants in the sums of coupled groups

    def __post_init__(self) -> None:
        if self.coupled and self.price is not None:
            raise ValueError("coupled groups have no price")

    @property
    def curvature(self) -> np.ndarray:
        """Curvature of (Q) in z, (T,): 1 / price, or 0 where there is none."""
        T = self.lo.shape[1]
        return np.zeros(T) if self.price is None else 1 / np.asarray(self.price, float)

    def row_ranges(self, k: int) -> np.ndarray:
        """Return ranges of the rows that take part in problem k.

        They are starts and ends, (m, 2), of one or more ranges. Small gaps between rows
        are included.
        """
        part = (self.lo[k] != 0) | (self.hi[k] != 0)
        rows = np.flatnonzero(part.any(axis=0))
        if rows.size == 0:
            return np.array([[0, 1]], np.int32)
        after = np.flatnonzero(np.diff(rows) > _GAP)
        begin, end = rows[np.r_[0, after + 1]], rows[np.r_[after, rows.size - 1]] + 1
        return np.ascontiguousarray(np.stack([begin, end], axis=1), np.int32)

    def by_entry(self, a: np.ndarray, of_z: float = 0.0) -> np.ndarray:
        """Return values (P, T, n), and that of every z if priced, as (P, entries)."""
        P, T, _ = a.shape
        a = np.ascontiguousarray(a.reshape(P, -1), dtype=float)
        if self.price is None:
            return a
        return np.concatenate([a, np.full((P, T), of_z)], axis=1)

    def phi(self, g: np.ndarray) -> np.ndarray:
        """Return the sum of all phi_ij(g_ij), (P,)."""
        return np.asarray(np.where(g > 0, self.pp * g, self.pn * g).sum(axis=(1, 2)))

    def loss(self, f: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sum of the losses of the primal problem (P) at f - b, (P,).

        The loss of a row is the conjugate of its phi on its box. Its maximum is
        attained at an end of the box or at the kink.
        """
        d = f[:, None] - b[:, :, None]
        ends = np.maximum(-self.hi * (d + self.pp), -self.lo * (d + self.pn))
        return np.asarray(np.maximum(ends, 0).sum(axis=(1, 2)))


class Points:
    """Feasible points of all problems of a program, with their scores and slopes.

    Attributes
    ----------
    entries : (P, T n) array, or (P, T n + T) if priced
        g and z in contiguous memory.
    terms : tuple of arrays like `entries`
        lo, hi, pn and pp of the entries. z is unbounded and has no linear term.
    g, z : (P, T, n) and (P, T) arrays
        Views of `entries`; without prices, z is a separate array of zeros.
    mu : (P, T + 1) array
    f : (P, n) array
    low, up : (P, T) arrays
    """

    def __init__(self, gram: Gram, program: Program, g: np.ndarray):
        P, T, n = g.shape
        self.gram, self.program = gram, program
        self.entries = program.by_entry(g).copy()
        self.terms = (
            program.by_entry(program.lo, -np.inf),
            program.by_entry(program.hi, np.inf),
            program.by_entry(program.pn),
            program.by_entry(program.pp),
        )
        self.g = self.entries[:, : T * n].reshape(P, T, n)
        self.z, self.mu = np.zeros((P, T)), np.zeros((P, T + 1))
        sums = self.g.sum(axis=2)
        if program.price is not None:
            self.z = self.entries[:, T * n :]
            self.z[:] = -sums
        if program.coupled:
            # The sums of the groups determine mu, which is 0 within rounding or more.
            if program.total is not None:
                sums = sums - program.total
            mu = -np.cumsum(sums, axis=1)[:, :-1]
            rounding = _ROUNDING * np.abs(self.g).sum(axis=(1, 2))[:, None]
            self.mu[:, 1:-1] = np.where(mu > rounding, mu, 0)
        self.f = np.zeros((P, n))
        self.low, self.up = np.zeros((P, T)), np.zeros((P, T))
        self.refresh()

    def refresh(self) -> None:
        """Recompute f from the kernel itself."""
        self.gram.share_double()
        beta = self.g.sum(axis=1)
        self.f[:] = self.gram.product(beta) if beta.any() else 0.0

    def violations_afresh(self) -> np.ndarray:
        """Recompute f from the kernel; return the violations, (P,)."""
        self.refresh()
        return self.violations()

    def violations(self) -> np.ndarray:
        """Return the violations, (P,), with low and up from the present f."""
        self.update_extremes()
        return np.asarray((self.low - self.up).max(axis=1))

    def update_extremes(self) -> None:
        """Set low and up of all problems, by the present f."""
        for k in range(len(self.g)):
            R, L = self.one_sided(k)
            self.set_extremes(k, R, L)

    def one_sided(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the one-sided derivatives R and L of problem k, (T, n)."""
        q, g, f = self.program, self.g[k], self.f[k]
        up = down = f + q.pp[k]
        if q.pn is not q.pp:
            left = f + q.pn[k]
            up, down = np.where(g < 0, left, up), np.where(g > 0, up, left)
        R = np.where(g < q.hi[k], up, np.inf)
        return R, np.where(g > q.lo[k], down, -np.inf)

    def set_extremes(self, k: int, R: np.ndarray, L: np.ndarray) -> None:
        """Set low and up of problem k from its R and L."""
        low, up = L.max(axis=1), R.min(axis=1)
        if self.program.price is not None:
            b = self.z[k] * self.program.curvature
            low, up = np.maximum(low, b), np.minimum(up, b)
        if self.program.coupled:
            first, last = self.tied(k)
            low = np.maximum.accumulate(low)[last]
            up = np.minimum.accumulate(up[::-1])[::-1][first]
        self.low[k], self.up[k] = low, up

    def tied(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and last group that positive mu tie to each, (T,)."""
        T = self.low.shape[1]
        j, tied = np.arange(T), self.mu[k, 1:-1] > 0
        first = np.maximum.accumulate(np.where(np.r_[False, tied], 0, j))
        last = np.minimum.accumulate(np.where(np.r_[tied, False], T - 1, j)[::-1])[::-1]
        return first, last

    def has_negative_curvature(self) -> bool:
        """Return whether some beta'K beta is below 0 by more than rounding.

        K is then not positive semi-definite.
        """
        beta = self.g.sum(axis=1)
        floor = -1e-8 * self.gram.diagonal.max() * np.abs(beta).sum(axis=1) ** 2
        return bool((np.einsum("pn,pn->p", beta, self.f) < floor).any())


def snap_to_bounds(g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Return g in its box, with entries within rounding of an end moved to that end.

    SMO would otherwise have to move each such variable to its bound, one at a time.
    """
    near = 1e-12 * (hi - lo)
    return np.where(g <= lo + near, lo, np.where(g >= hi - near, hi, g))


def restore_sums(
    g: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return a point near g in each row's box with the given sum, as a start for SMO.

    Entries at an end of their box stay there if the others can make up the sum, so that
    the start has the bounded variables of g.
    """
    g = snap_to_bounds(g, lo, hi)
    excess = g.sum(axis=-1) - total
    inside = (lo < g) & (g < hi)
    room = np.where(inside, np.where(excess[..., None] > 0, g - lo, hi - g), 0.0)
    all_room = room.sum(axis=-1)
    enough = all_room > np.abs(excess)
    part = np.where(enough, excess / np.where(enough, all_room, 1), 0)
    restored: np.ndarray = np.clip(g - part[..., None] * room, lo, hi)
    whole = np.broadcast_to(total, excess.shape)
    poor = ~enough & (excess != 0)
    if poor.any():
        restored[poor] = project(g[poor], lo[poor], hi[poor], whole[poor])
    return restored


def project(
    g: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return the point of each row's box with the given sum that is nearest to that row
    of g.

    The point is clip(g - t, lo, hi), where bisection finds t. The rounding error of the
    sum is spread over the room that is left in the box.
    """
    total = np.asarray(total)[..., None]
    low = (g - hi).min(axis=-1, keepdims=True)
    high = (g - lo).max(axis=-1, keepdims=True)
    for _ in range(60):
        t = 0.5 * (low + high)
        above = np.clip(g - t, lo, hi).sum(axis=-1, keepdims=True) > total
        low, high = np.where(above, t, low), np.where(above, high, t)
    g = np.clip(g - t, lo, hi)
    excess = g.sum(axis=-1, keepdims=True) - total
    room = np.where(excess > 0, g - lo, hi - g)
    all_room = room.sum(axis=-1, keepdims=True)
    part = np.where(all_room > 0, excess / np.where(all_room > 0, all_room, 1), 0)
    return np.asarray(np.clip(g - part * room, lo, hi))


def nearest_feasible(g: np.ndarray, program: Program) -> np.ndarray:
    """Return a feasible point of (Q) near g: a start for SMO."""
    lo, hi = program.lo, program.hi
    g = snap_to_bounds(g, lo, hi)
    if program.price is not None:
        return g
    total = np.zeros(g.shape[:2])
    if program.coupled:
        mu = np.maximum(-np.cumsum(g.sum(axis=2), axis=1), 0)
        mu[:, -1] = 0
        wanted = np.diff(-mu, axis=1, prepend=0.0)
        if ((lo.sum(axis=2) < wanted) & (wanted < hi.sum(axis=2))).all():
            total = wanted
    return restore_sums(g, lo, hi, total)


def extrapolated(
    g: np.ndarray, f: np.ndarray, old: Program, new: Program
) -> np.ndarray:
    """Return a start for the next point of a path from the last solution g, f = K g.

    (Q) is a parabola along the ray through the solution of a problem. The start is its
    vertex, or for each variable the point that its box allows.
    """
    curve = np.einsum("pn,pn->p", g.sum(axis=1), f)
    top = -new.phi(g) / np.where(curve > 0, curve, np.inf)
    before, after = old.hi - old.lo, new.hi - new.lo
    growth = np.where(before > 0, after / np.where(before > 0, before, 1), 1.0)
    return np.asarray(g * np.minimum(growth, np.maximum(top, 1.0)[:, None, None]))


_MISSING, _AT_ONCE = 64, 4096  # rows and columns of K computed at a time
_MOST_IN_DOUBLE = 4096  # rows up to which K in double is computed on request


class Gram:
    """Rows of K = k(X, X) for the SMO kernels.

    Attributes
    ----------
    K : (capacity, n) float32
    slot : (n,) int32
        Row i of the kernel matrix is K[slot[i]]; -1 for a row that is not cached.
    diagonal : (n,) float64
    full : bool
        Whether every row is cached, row i at slot i.
    exact : (n, n) float64 or None
        K in double, once it has been computed and shared. `block` and `product` then
        read it. Because its rounding differs from that of the kernel, their results
        must not depend on the moment at which a thread computed it.
    room_for_double : bool
        Whether K in double fits into memory.
    doubles : bool
        Whether K in double is also worth caching, because it is used several times.
    concurrent : bool
        Whether several threads may ask for rows and blocks.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        X: Any,
        cache_mb: float,
        n_threads: int,
        least: int,
        products: Products | None = None,
    ):
        """Compute the kernel matrix if it fits into `cache_mb`.

        At least `least` rows are held, even if that takes more memory. `products` are
        the inner products of X, which a path of fits has computed. Each of its fits
        calls `product` more than once, so that K is held in double as well.
        """
        n = len(X)
        self.kernel, self.X, self.n_threads = kernel, X, n_threads
        rows = int(min(cache_mb * 1e6 / (4 * n), 3 * n))  # more would not be used
        self.full = rows >= n
        if not self.full:
            products = None  # they are read by tiles, not by single rows
        self._values = on_itself(kernel, X, n_threads, products)
        # The diagonal comes first, because its error names a row that is too long.
        # Values beyond a float raise an error with their tile.
        with np.errstate(over="ignore"):
            self.diagonal = diagonal_of(kernel, X).astype(np.float32).astype(float)
        self.concurrent = self.full and self._values.concurrent
        self.capacity = n if self.full else min(n, max(rows, least))
        self.K = np.empty((self.capacity, n), dtype=np.float32)
        self.exact: np.ndarray | None = None
        self._double: np.ndarray | None = None
        self.room_for_double = self.doubles = False
        self._lock = Lock()
        if self.full:
            self.slot = np.arange(n, dtype=np.int32)
            small = n <= _MOST_IN_DOUBLE or products is not None
            # K in double takes two more arrays of the size of K in single precision.
            self.room_for_double = small and rows >= 3 * n
            self.doubles = self.room_for_double and kernel.is_radial
            if self.doubles and products is not None:
                self.K[:] = self.in_double()
                self.share_double()
            else:
                self._values.triangle(self.K, mirror=True)
            # Rounded as K is, so that equal rows have a distance of exactly 0.
            self.diagonal = np.diagonal(self.K).astype(float)
        else:
            self.slot = np.full(n, -1, dtype=np.int32)
            self._holder = np.full(self.capacity, -1)  # which row a slot holds
            self._used = np.zeros(self.capacity, dtype=np.int64)  # when it was asked
            self._clock = 0
            # Used by all calls of `ensure`: C libraries return memory of this size to
            # the system, and its page faults cost more than the values in it.
            size = _MISSING * min(n, _AT_ONCE)
            self._buffers = np.empty(size, np.float32), np.empty(size)

    def in_double(self) -> np.ndarray:
        """Return K in double, which is cached from now on; only if `doubles`."""
        with self._lock:
            if self._double is None:
                n = len(self.X)
                exact = np.empty((n, n))
                self._values.triangle(exact, mirror=False)
                for part in strips(n):
                    below = slice(part.stop, n)
                    exact[below, part] = exact[part, below].T
                self._double = exact
            return self._double

    def share_double(self) -> None:
        """Let `block` and `product` use K in double if it has been computed.

        It is called while no thread is at work, so that whether K has been computed
        depends on the input alone.
        """
        self.exact = self._double

    def ensure(self, rows: np.ndarray) -> None:
        """Cache these rows, at most `capacity`, in place of the least used ones.

        After OutOfTime, some of the new and of the replaced rows are not cached.
        """
        if self.full:
            return
        self._clock += 1
        held = self.slot[rows]
        self._used[held[held >= 0]] = self._clock
        missing = rows[held < 0]
        if missing.size == 0:
            return
        oldest = np.argsort(self._used, kind="stable")[: missing.size]
        evicted = self._holder[oldest]
        self.slot[evicted[evicted >= 0]] = -1
        tile, scratch = self._buffers
        for part in strips(missing.size, _MISSING):
            into = oldest[part]
            for columns in strips(self.slot.size, _AT_ONCE):
                check_cancelled()
                shape = into.size, columns.stop - columns.start
                out = tile[: shape[0] * shape[1]].reshape(shape)
                self._values.tile(missing[part], columns, out, scratch)
                self.K[into, columns] = out
        self._holder[oldest] = missing
        self._used[oldest] = self._clock
        self.slot[missing] = oldest

    def add_rows(self, rows: np.ndarray, change: np.ndarray, G: np.ndarray) -> None:
        """Add sum_a change[a] K[rows[a]] to G, (n,), over changes that are not 0."""
        moved = change != 0
        rows = rows[moved].astype(np.int32)
        self.ensure(rows)
        _kernel_values.add_rows(self.K, self.slot[rows], change[moved], G)

    def block(self, index: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """Return k(X[index], X[index]) in double, from the kernel itself.

        Only the tiles of its lower triangle are computed.
        """
        if self.exact is not None:
            return np.asarray(self.exact[np.ix_(index, index)])
        out = np.empty((index.size, index.size))

        def fill(rows: slice) -> None:
            for columns in strips(rows.stop):
                tile = out[rows, columns]
                self._values.tile(index[rows], index[columns], tile)

        several = self._values.concurrent and index.size > TILE
        with Pool(n_threads if several else 1) as pool:
            pool.run(fill, strips(index.size))
        return out

    def product(self, g: np.ndarray) -> np.ndarray:
        """Return g K for g (r, n), in double and from the kernel itself."""
        if self.exact is not None:
            return np.asarray(g @ self.exact)
        used = np.flatnonzero((g != 0).any(axis=0))
        if self.kernel.by_number:
            parts = (g[:, rows] @ self.X[rows] for rows in strips(len(self.X)))
            return sum(parts, np.zeros(g.shape))
        values = Evaluator(self.kernel, self.X, take(self.X, used), self.n_threads)
        return np.ascontiguousarray(values.product(g[:, used].T).T)
