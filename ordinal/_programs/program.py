"""Quadratic programs over one kernel matrix, their points and their optimality.

Each of P problems has T groups of n variables, one a row of K and group:

    min_g  1/2 beta'K beta + sum_ij phi_ij(g_ij) [+ 1/2 sum_j z_j^2 / price_j]      (Q)
    s.t.   lo_ij <= g_ij <= hi_ij,  and for each group j

      sum_i g_ij = 0                            separate groups
      sum_i g_ij = mu_j - mu_{j+1},  mu >= 0    coupled groups: b_1 <= ... <= b_T
      sum_i g_ij = -z_j                         priced: price_j b_j^2 / 2 in the primal

with mu_1 = mu_{T+1} = 0, beta_i = sum_j g_ij and f = K beta. phi_ij(v) is pp_ij v for
v >= 0 and pn_ij v for v < 0, with pn_ij <= pp_ij. C-SVC, eps-SVR and every rank of
NPSVOR are of one group; the SVOR family has one for each threshold. With

    R_ij = f_i + phi_ij'(g_ij+)  where g_ij < hi_ij, else +inf
    L_ij = f_i + phi_ij'(g_ij-)  where g_ij > lo_ij, else -inf
    up_j  = min R_ij over i, and z_j / price_j
    low_j = max L_ij over i, and z_j / price_j

a feasible g is optimal iff violation = max_j (low_j - up_j) <= 0                  (KKT)

and any b_j in [low_j, up_j] is then a multiplier of the equality of group j. Coupled,
what shrinks may also be of a lower group, which raises mu between the two, or of a
higher one as long as the mu between them are positive: low_j is then the maximum over
all groups up to the last that positive mu tie to j, and up_j the minimum from the first
one on, as in (17) and (18) of Chu and Keerthi.

A problem may be of some of the rows only: those whose variables all have lo = hi = 0
take no part in it, and SMO passes over them where they lie together. The problems of
pairs of ranks thus share K at the cost of their own rows, if X is in the order of its
ranks. f of such rows is that of K where it was computed afresh, and no number before.

In this folder and its kernels:

    P, T, n     problems, groups, rows of K
    g, beta, f  variables, their sums over the groups, K beta
    z, mu, b    slack of a price, ties of coupled groups, multipliers of the equalities
    phi, pn/pp  piecewise linear cost; its slope left and right of 0, where its kink is
    R, L        what growing a variable costs, and what shrinking it gains
    free        a variable inside a linear piece of its box; the others are at an end
    entry e     of g and z in one array: j n + i is g_ij, T n + j is z_j

The kernel matrix of the training rows: float32 rows within a memory limit.

`Gram` holds all rows where `cache_mb` allows it, or else the most recently used ones.
Solvers step on the float32 rows; `product` gives what tolerances look at, in double
and from the kernel itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from .. import kernels
from .._input.types import Kernel
from .._numerics.pool import Pool
from .._numerics.rows import TILE, strips, take
from .._solvers import _kernel_values
from .._watch.monitor import Monitor, OutOfTime, check_cancelled
from ..kernels.tiles import Evaluator, Products, diagonal_of, on_itself

_ROUNDING = 1e-15  # of the sum of all |g|: a mu that is 0 but for rounding
_GAP = 32  # rows that take no part, which are passed over for less than a new stretch


@dataclass(frozen=True, eq=False)
class Program:
    """Quadratic program (Q) but for K. Arrays are (P, T, n)."""

    lo: np.ndarray
    hi: np.ndarray
    pn: np.ndarray
    pp: np.ndarray
    coupled: bool = False
    price: np.ndarray | None = None  # (T,)

    def __post_init__(self) -> None:
        if self.coupled and self.price is not None:
            raise ValueError("coupled groups have no price")

    @property
    def curvature(self) -> np.ndarray:
        """(T,) 1 / price, zeros if there is none: of (Q) by z."""
        T = self.lo.shape[1]
        return np.zeros(T) if self.price is None else 1 / np.asarray(self.price, float)

    def row_ranges(self, k: int) -> np.ndarray:
        """Return ranges of the rows that take part in problem k.

        They are (m, 2) starts and ends of at least one range, and leave out no small
        gaps.
        """
        part = (self.lo[k] != 0) | (self.hi[k] != 0)
        rows = np.flatnonzero(part.any(axis=0))
        if rows.size == 0:
            return np.array([[0, 1]], np.int32)
        after = np.flatnonzero(np.diff(rows) > _GAP)
        begin, end = rows[np.r_[0, after + 1]], rows[np.r_[after, rows.size - 1]] + 1
        return np.ascontiguousarray(np.stack([begin, end], axis=1), np.int32)

    def by_entry(self, a: np.ndarray, of_z: float = 0.0) -> np.ndarray:
        """(P, entries) array of (P, T, n) values and, if priced, that of every z."""
        P, T, _ = a.shape
        a = np.ascontiguousarray(a.reshape(P, -1), dtype=float)
        if self.price is None:
            return a
        return np.concatenate([a, np.full((P, T), of_z)], axis=1)

    def phi(self, g: np.ndarray) -> np.ndarray:
        """(P,) the sum of all phi_ij(g_ij)."""
        return np.asarray(np.where(g > 0, self.pp * g, self.pn * g).sum(axis=(1, 2)))

    def loss(self, f: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(P,) the sum of the losses of (P), the primal problem, at f - b: of each row
        the conjugate of its phi on its box, which is at an end of it or at the kink.
        """
        d = f[:, None] - b[:, :, None]
        ends = np.maximum(-self.hi * (d + self.pp), -self.lo * (d + self.pn))
        return np.asarray(np.maximum(ends, 0).sum(axis=(1, 2)))


class Points:
    """Feasible points of all problems of a program, and what follows from them.

    Attributes
    ----------
    entries : (P, T n) array, or (P, T n + T) if priced
        g and z in one piece of memory.
    terms : tuple of arrays like `entries`
        lo, hi, pn and pp of the entries; z is free and has no slope.
    g, z : (P, T, n) and (P, T) arrays
        Views of it; z is zeros of its own unless priced.
    mu : (P, T + 1) array
    f : (P, n) array
    low, up : (P, T) arrays
    """

    def __init__(self, gram: Gram, program: Program, g: np.ndarray):
        P, T, n = g.shape
        self.gram, self.program = gram, program
        self.entries = program.by_entry(g).copy()
        ends = (program.lo, -np.inf), (program.hi, np.inf)
        slopes = (program.pn, 0.0), (program.pp, 0.0)
        self.terms = tuple(program.by_entry(a, of_z) for a, of_z in (*ends, *slopes))
        self.g = self.entries[:, : T * n].reshape(P, T, n)
        self.z, self.mu = np.zeros((P, T)), np.zeros((P, T + 1))
        sums = self.g.sum(axis=2)
        if program.price is not None:
            self.z = self.entries[:, T * n :]
            self.z[:] = -sums
        if program.coupled:
            mu = -np.cumsum(sums, axis=1)[:, :-1]
            rounding = _ROUNDING * np.abs(self.g).sum(axis=(1, 2))[:, None]
            self.mu[:, 1:-1] = np.where(mu > rounding, mu, 0)
        self.f = np.zeros((P, n))
        self.low, self.up = np.zeros((P, T)), np.zeros((P, T))
        self.refresh()

    def refresh(self) -> None:
        """Return f from the kernel itself."""
        self.gram.share_double()
        beta = self.g.sum(axis=1)
        self.f[:] = self.gram.product(beta) if beta.any() else 0.0

    def judge(self) -> np.ndarray:
        """Return f from the kernel itself, low and up from it; the violations, (P,)."""
        self.refresh()
        return self.violations()

    def violations(self) -> np.ndarray:
        """(P,), with low and up from f as it is."""
        self.slopes()
        return np.asarray((self.low - self.up).max(axis=1))

    def slopes(self) -> None:
        """Update low and up from f."""
        for k in range(len(self.g)):
            R, L = self.one_sided(k)
            self.set_extremes(k, R, L)

    def one_sided(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """R and L of problem k, (T, n)."""
        q, g, f = self.program, self.g[k], self.f[k]
        up = down = f + q.pp[k]
        if q.pn is not q.pp:
            left = f + q.pn[k]
            up, down = np.where(g < 0, left, up), np.where(g > 0, up, left)
        R = np.where(g < q.hi[k], up, np.inf)
        return R, np.where(g > q.lo[k], down, -np.inf)

    def set_extremes(self, k: int, R: np.ndarray, L: np.ndarray) -> None:
        """Return low and up of problem k from its R and L."""
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
        """First and last group that positive mu tie to each, (T,)."""
        T = self.low.shape[1]
        j, tied = np.arange(T), self.mu[k, 1:-1] > 0
        first = np.maximum.accumulate(np.where(np.r_[False, tied], 0, j))
        last = np.minimum.accumulate(np.where(np.r_[tied, False], T - 1, j)[::-1])[::-1]
        return first, last

    def curve_down(self) -> bool:
        """Return whether some beta'K beta is below 0 by more than rounding."""
        beta = self.g.sum(axis=1)
        floor = -1e-8 * self.gram.diagonal.max() * np.abs(beta).sum(axis=1) ** 2
        return bool((np.einsum("pn,pn->p", beta, self.f) < floor).any())


def snap_to_bounds(g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """G in its box, with what is at an end of it up to rounding at just that end.

    SMO would otherwise have to move each such variable to its bound, one at a time.
    """
    near = 1e-12 * (hi - lo)
    return np.where(g <= lo + near, lo, np.where(g >= hi - near, hi, g))


def restore_sums(
    g: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return a point of each row's box with the given sum, near g: a start for SMO.

    What lies at an end of its box stays there, if the others can make up the sum.
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

    It is clip(g - t, lo, hi) for some t, found by bisection; what rounding leaves of
    the sum is spread over the room in the box.
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

    (Q) along the ray through the solution of a problem is a parabola: to its top, or
    for each variable as far as its box grew.
    """
    curve = np.einsum("pn,pn->p", g.sum(axis=1), f)
    top = -new.phi(g) / np.where(curve > 0, curve, np.inf)
    before, after = old.hi - old.lo, new.hi - new.lo
    growth = np.where(before > 0, after / np.where(before > 0, before, 1), 1.0)
    return np.asarray(g * np.minimum(growth, np.maximum(top, 1.0)[:, None, None]))


_MOST_IN_DOUBLE = 4096  # rows of K that are computed in double when they are wanted


class Gram:
    """Rows of K = k(X, X) for the SMO kernels.

    Attributes
    ----------
    K : (capacity, n) float32
    slot : (n,) int32
        Row i of the kernel matrix is K[slot[i]]; -1 where it is not held.
    diagonal : (n,) float64
    full : bool
        Every row is held, row i at slot i.
    exact : (n, n) float64 or None
        K in double, once it was made and shared. It is what `block` and `product`
        take their numbers from, whose rounding differs from that of the kernel: they
        must not depend on when a thread made it.
    room_for_double : bool
        There is room for that.
    doubles : bool
        And it is worth holding, for several uses.
    concurrent : bool
        Several threads may ask for rows and blocks.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        cache_mb: float,
        n_threads: int,
        least: int,
        products: Products | None = None,
    ):
        """`least` rows are held even if that takes more than `cache_mb`; `products` are
        the `Products` of X, if there are any: for a path of fits, each of which
        asks for `product` more than once, K is then held in double as well.
        """
        n = len(X)
        self.kernel, self.X, self.n_threads = kernel, X, n_threads
        rows = int(min(cache_mb * 1e6 / (4 * n), 3 * n))  # no use of more
        self.full = rows >= n
        products = products if self.full else None  # of tiles, and not of single rows
        self._values = on_itself(kernel, X, n_threads, products)
        # first of all: it names a row that is too long. What a float cannot hold is
        # refused with its tile
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
            # that fits in `cache_mb` too
            self.room_for_double = small and rows >= 3 * n
            self.doubles = self.room_for_double and isinstance(kernel, kernels.RBF)
            if self.doubles and products is not None:
                self.K[:] = self.in_double()
                self.share_double()
            else:
                self._values.triangle(self.K, mirror=True)
            # as rounded as K, so that equal rows have a distance of exactly 0
            self.diagonal = np.diagonal(self.K).astype(float)
        else:
            self.slot = np.full(n, -1, dtype=np.int32)
            self._holder = np.full(self.capacity, -1)  # which row a slot holds
            self._used = np.zeros(self.capacity, dtype=np.int64)  # when it was asked
            self._clock = 0

    def in_double(self) -> np.ndarray:
        """K in double, kept from now on; for `doubles` only."""
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
        """Let `block` and `product` use K in double if it was made.

        Called while no thread is at work: whether it was made is then a matter of the
        input alone.
        """
        self.exact = self._double

    def ensure(self, rows: np.ndarray) -> None:
        """Hold these rows, at most `capacity` of them, in place of the least used.

        After OutOfTime some of either are not held.
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
        for part in strips(missing.size, 64):
            into = oldest[part]
            for columns in strips(self.slot.size, 4096):
                check_cancelled()
                tile = np.empty((into.size, columns.stop - columns.start), np.float32)
                self.K[into, columns] = self._values.tile(missing[part], columns, tile)
        self._holder[oldest] = missing
        self._used[oldest] = self._clock
        self.slot[missing] = oldest

    def add_rows(self, rows: np.ndarray, change: np.ndarray, G: np.ndarray) -> None:
        """G += sum_a change[a] K[rows[a]], where the change is not 0; G is (n,)."""
        moved = change != 0
        rows = rows[moved].astype(np.int32)
        self.ensure(rows)
        _kernel_values.add_rows(self.K, self.slot[rows], change[moved], G)

    def block(self, index: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """k(X[index], X[index]) in double and from the kernel itself.

        The tiles that hold its lower triangle.
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
        if isinstance(self.kernel, kernels.Precomputed):
            parts = (g[:, rows] @ self.X[rows] for rows in strips(len(self.X)))
            return sum(parts, np.zeros(g.shape))
        values = Evaluator(self.kernel, self.X, take(self.X, used), self.n_threads)
        return np.ascontiguousarray(values.product(g[:, used].T).T)


def gram_in_time(
    monitor: Monitor,
    kernel: Kernel,
    X: Any,
    cache_mb: float,
    n_threads: int,
    least: int,
    products: Products | None,
) -> Gram:
    """Return a Gram, which holds no rows of K as yet if it is late before it has all of
    them: enough to judge the point that a fit begins with.
    """
    try:
        with monitor.stage("kernel matrix"), monitor.limited():
            return Gram(kernel, X, cache_mb, n_threads, least, products)
    except OutOfTime:
        return Gram(kernel, X, 0.0, n_threads, least)
