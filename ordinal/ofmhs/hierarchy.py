"""The path of (P) of `ordinal.ofmhs`: Newton's method, certified.

With L the mean loss whose thresholds are at their optimum for the score, g_j and G_jk
its slopes by beta_j and Theta_jk, and P the penalty, the dual of (P) has constraints

    |g_j| <= l1,   sqrt(g_j^2 + g_k^2 + G_jk^2) <= l_pair     for all j < k          (1)

since g_j is the slope by own_j and by all m_jk alike. L is convex and not negative, so
that c times its tangent lies below it for every c in [0, 1]; where c makes the slopes
satisfy (1) the minimum of that and P is at 0 effects, and

    c (L - g'beta - G'Theta) <= min (P).                                             (2)

The largest such bound is the dual value. At the optimum (1) holds and c is 1. With no
effects (1) says which is the least l1 for which they are the solution.

Every step takes L's quadratic by the effects of the groups that are not 0 or break (1),
the largest breaks first, with thresholds eliminated. It is minimised together with P
by block coordinate descent (`_solvers/_pair_descent.pyx`), which finds the groups that
are 0, in turns with Newton's method among those that are not, where P is smooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._cumulative.design import Design
from .._cumulative.matrices import DenseColumns
from .._cumulative.rowwise import (
    LEAST,
    RowTerms,
    RowwiseLikelihood,
    factor,
    with_best_free,
)
from .._input.problem import Problem
from .._numerics.cholesky import Cholesky
from .._numerics.rows import strips
from .._solvers import _pair_descent
from .._watch.convergence import Status
from .._watch.monitor import Monitor, OutOfTime, check_cancelled

_ENTRIES, _LEAST = 65_536, 256  # of an array at a time, in so many rows or more


def scores(Z: np.ndarray, main: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return z'main + 1/2 z' pairs z for every row z of Z, (n,).

    `pairs` is symmetric, and products of features are not stored. O(n d^2), or less
    where few pairs are not 0.
    """
    f = np.asarray(Z @ main)
    # Few pairs are not 0: only their features enter the quadratic form.
    held = np.flatnonzero(pairs.any(axis=1))
    if held.size:
        among = pairs[np.ix_(held, held)]
        for rows in strips(len(Z), max(_LEAST, _ENTRIES // held.size)):
            check_cancelled()
            part = Z[rows][:, held]
            f[rows] += 0.5 * np.einsum("ij,ij->i", part @ among, part)
    return f


def both_ways(
    d: int, first: np.ndarray, second: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return the symmetric (d, d) matrix of what the pairs have."""
    out = np.zeros((d, d))
    out[first, second] = out[second, first] = values
    return out


_FALL = 1e-4  # of Armijo's rule
_ROUNDING = 1e-14  # of the value, relative to it
_HALVINGS = 40
_FEW = 16  # groups that may join at a step, or as many as are there
_INNER = 1e-8  # share of the gap that the last sweep over a quadratic may be worth
_FINER = 1e-3  # factor of it where steps promise nothing any more
_SWEEPS = 5  # between two steps of Newton's method for a quadratic
_ROUNDS = 200  # of both
_LARGEST = 6000  # parts that are not 0, of which a matrix is made
_RIDGE = 1e-12  # of its diagonal, where effects are more than rows
_SECONDS = 2e-9  # of an entry in a sweep
_ABOVE = 1e-12  # lest rounding lets a feature take part at the largest penalty
_FAR = 4.0  # between the penalties on the way to one of them


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Penalties of a main effect and of the parts of a pair, which may be infinite."""

    own: float
    pair: float

    @classmethod
    def from_arguments(cls, l1: float, ratio: float) -> Prices:
        """Return l_pair of (P): a pair whose features have |g_j| = |g_k| = l1 comes in
        where |G_jk| is ratio times that.
        """
        return cls(l1, l1 * math.hypot(ratio, math.sqrt(2)))

    def __call__(self, own: np.ndarray, parts: np.ndarray) -> float:
        """Return the number of pairs, P."""
        sizes = np.linalg.norm(parts, axis=1)
        of_pairs = self.pair * float(sizes.sum()) if sizes.any() else 0.0
        return self.own * float(np.abs(own).sum()) + of_pairs


@dataclass(frozen=True, slots=True, eq=False)
class PairPoint:
    """Point where (P) was evaluated.

    Attributes
    ----------
    u : (T,) array
        The best thresholds.
    own : (d,) array
    parts : (P, 3) array
        m_jk, m_kj and Theta_jk of the pairs j < k.
    rows : Rows
    value : float
        Of (P).
    """

    u: np.ndarray
    own: np.ndarray
    parts: np.ndarray
    rows: RowTerms
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class DescentEnd:
    """End of a descent and its reason.

    `violation` is the gap relative to the loss without effects.
    """

    point: PairPoint
    primal: float
    dual: float
    violation: float
    status: Status
    n_iter: int


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """The quadratic of L by some effects, together with P; it is minimised in place.

    Attributes
    ----------
    H : (m, m) array
    first, second : (K,) int32 arrays
        Of the pairs, by the numbers of the features that take part.
    prices : Prices
    slope : (m,) array
        Of the quadratic where the parts are.
    own : (m - K,) array
    parts : (K, 3) array
    """

    H: np.ndarray
    first: np.ndarray
    second: np.ndarray
    prices: Prices
    slope: np.ndarray
    own: np.ndarray
    parts: np.ndarray

    def descend(self, tol: float, sweeps: int) -> float:
        """Sweeps of block coordinate descent, which find the parts that are 0.

        What the last one was worth.
        """
        return _pair_descent.descend(
            self.H, self.first, self.second, self.prices.own, self.prices.pair, tol,
            sweeps, self.slope, self.own, self.parts,
        )[1]  # fmt: skip

    def newton(self) -> None:
        """Take a Newton step among the parts that are not 0, where P is smooth.

        It sees how main effects are shared, which takes coordinate descent many sweeps.
        Parts that would change their sign become 0. Nothing happens where none is
        lower.
        """
        d, kept = self.own.size, np.flatnonzero(self.parts.any(axis=1))
        mains = np.flatnonzero(self.own)
        if not 0 < mains.size + 3 * kept.size <= _LARGEST:
            return
        places = np.stack([self.first[kept], self.second[kept], d + kept], axis=1)
        effects = np.concatenate([mains, places.ravel()])
        sizes = np.linalg.norm(self.parts[kept], axis=1)[:, None]
        # Among nonzero parts |.| is linear and |.|_2 smooth, with the Hessian (I - uu')
        # / |.|.
        unit, sign = self.parts[kept] / sizes, np.sign(self.own[mains])
        A = self.H[np.ix_(effects, effects)]
        bends = np.eye(3) - unit[:, :, None] * unit[:, None, :]
        at = mains.size + np.arange(3 * kept.size).reshape(-1, 3)
        A[at[:, :, None], at[:, None, :]] += (
            self.prices.pair / sizes[:, :, None] * bends
        )
        of_P = [self.prices.own * sign, self.prices.pair * unit.ravel()]
        slope = self.slope[effects] + np.concatenate(of_P)
        # A share of the diagonal: effects in any units are affected alike.
        A[np.diag_indices_from(A)] *= 1 + _RIDGE
        try:
            step = -Cholesky(A).solve(slope[:, None])[:, 0]
        except np.linalg.LinAlgError:
            return
        for halving in range(_HALVINGS // 4):
            moved = 0.5**halving * step
            own = self.own[mains] + moved[: mains.size]
            # Beyond 0 the penalty has another slope, which this quadratic does not
            # know.
            own[own * sign < 0] = 0.0
            parts = self.parts[kept] + moved[mains.size :].reshape(-1, 3)
            parts[(parts * unit).sum(axis=1) < 0] = 0.0
            change = np.zeros(self.slope.size)
            # A feature is in several pairs: `change[places] += ...` would add one of
            # them.
            np.add.at(change, mains, own - self.own[mains])
            np.add.at(change, places, parts - self.parts[kept])
            by_slope = self.H @ change
            rise = float(change @ (self.slope + 0.5 * by_slope))
            rise += self.prices(own, parts)
            rise -= self.prices(self.own[mains], self.parts[kept])
            if rise < 0:
                self.own[mains], self.parts[kept] = own, parts
                self.slope[:] += by_slope
                return


class HierarchyPath:
    """Minima of (P) for one pair of penalties after another, each begun at the last.

    Parameters
    ----------
    problem : Problem
        Of dense features.
    n_threads, max_iter : int
    monitor : Monitor
        A point has converged where its duality gap is at most `tol` times the loss
        without effects.

    Attributes
    ----------
    design : Design
        Its centres and spreads are those of the features.
    first, second : (P,) int arrays
        The features of the pairs.
    null : float
        The loss without effects.
    slopes : (d,), (P,) arrays
        Of the loss without effects.
    """

    def __init__(
        self, problem: Problem, n_threads: int, max_iter: int, monitor: Monitor
    ):
        assert isinstance(problem.X, np.ndarray)
        self.max_iter, self.monitor, self._n_threads = max_iter, monitor, n_threads
        d, none = problem.n_features, np.zeros(0, np.int64)
        self.design = Design.from_problem(problem, none, none, none, None, "flexible")
        self.Z = (problem.X - self.design.centre) / self.design.spread
        self.first, self.second = np.triu_indices(d, 1)
        self._loss = self._loss_of(self.Z)
        u = self._loss.start()[: self.design.T]
        own, parts = np.zeros(d), np.zeros((self.first.size, 3))
        # With no effects the penalties do not matter.
        self._last = self.at(u, own, parts, Prices(1.0, 1.0))
        self._last_l1 = math.inf
        self.null, self.slopes = self._last.value, self.slopes_at(self._last)

    def largest(self, ratio: float) -> float:
        """Return the least l1 for which no effects are the solution."""
        g, G = self.slopes
        # (1) for pairs, solved for l1.
        sizes = self._sizes(g, G) / math.hypot(ratio, math.sqrt(2))
        largest = max(np.abs(g).max(initial=0.0), sizes.max(initial=0.0))
        return float(largest) * (1 + _ABOVE)

    def effects(
        self, own: np.ndarray, parts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return beta, (d,), and Theta, (P,)."""
        d = own.size
        of_pairs = np.bincount(self.first, parts[:, 0], d)
        of_pairs += np.bincount(self.second, parts[:, 1], d)
        return own + of_pairs, parts[:, 2]

    def at(
        self, u: np.ndarray, own: np.ndarray, parts: np.ndarray, prices: Prices
    ) -> PairPoint:
        """Return (P) at some effects, with the best thresholds, looked for from u on.

        O(n d^2).
        """
        main, theta = self.effects(own, parts)
        pairs = both_ways(main.size, self.first, self.second, theta)
        u, rows = with_best_free(self._loss, u, scores(self.Z, main, pairs))
        return PairPoint(u, own, parts, rows, rows.value + prices(own, parts))

    def slopes_at(self, here: PairPoint) -> tuple[np.ndarray, np.ndarray]:
        """Return the slopes g and G. O(n d^2)."""
        columns, slope = self._loss.columns, here.rows.slope
        G = columns.gram(slope)[self.first, self.second]
        return columns.rmatvec(slope), G

    def bound(
        self, here: PairPoint, prices: Prices, slopes: tuple[np.ndarray, np.ndarray]
    ) -> float:
        """Return (2), or 0 if that is more, because the loss is never negative."""
        (g, G), (main, theta) = slopes, self.effects(here.own, here.parts)
        tangent = here.rows.value - float(g @ main) - float(G @ theta)
        with np.errstate(divide="ignore", over="ignore"):
            c = min(
                # A slope of 0 allows every c: infinity is what is meant.
                (prices.own / np.abs(g)).min(initial=1.0),
                (prices.pair / self._sizes(g, G)).min(initial=1.0),
            )
        return max(0.0, float(c) * tangent)

    def reach(self, l1: float, ratio: float) -> DescentEnd:
        """Return the minimum, by way of larger penalties where the last one is far.

        `n_iter` counts the steps to all.
        """
        n_iter = 0
        largest = min(self._last_l1, self.largest(ratio))
        # The active groups then change little from one penalty to the next.
        while largest > _FAR * l1 and not self.monitor.ended:
            largest /= _FAR
            n_iter += self.solve(largest, ratio, n_iter).n_iter
        found = self.solve(l1, ratio, n_iter)
        return replace(found, n_iter=n_iter + found.n_iter)

    def solve(self, l1: float, ratio: float, before: int = 0) -> DescentEnd:
        """Return the minimum, from the last one on, after so many steps to others."""
        prices, n_iter, finer = Prices.from_arguments(l1, ratio), 0, 1.0
        here = self.at(self._last.u, self._last.own, self._last.parts, prices)
        while True:
            slopes = self.slopes_at(here)
            dual = self.bound(here, prices, slopes)
            violation = (here.value - dual) / self.null
            stop = self.monitor.stop(before + n_iter, violation)
            if violation <= self.monitor.tol:
                stop = Status.CONVERGED
            elif stop is None and n_iter >= self.max_iter:
                stop = Status.MAX_ITER
            elif stop is None and finer < LEAST:
                stop = Status.STALLED
            if stop is not None:
                break
            try:
                with self.monitor.limited(self.monitor.GRACE):
                    gap = finer * (here.value - dual)
                    there = self._step(here, prices, slopes, gap)
            except OutOfTime:
                there = None
            n_iter += 1
            # The quadratic was not solved well enough to promise a fall that shows.
            if there is None or here.value - there.value <= _ROUNDING * here.value:
                finer *= _FINER
            here = there or here
        self._last, self._last_l1 = here, l1
        return DescentEnd(here, here.value, dual, violation, stop, n_iter)

    def _step(
        self,
        here: PairPoint,
        prices: Prices,
        slopes: tuple[np.ndarray, np.ndarray],
        gap: float,
    ) -> PairPoint | None:
        """Return the next point; None where none is lower."""
        mains, chosen = self._taking_part(here, prices, slopes)
        own, parts = here.own.copy(), here.parts.copy()
        own[mains], parts[chosen] = self._of_quadratic(
            here, mains, chosen, prices, _INNER * gap
        )
        before, after = self.effects(here.own, here.parts), self.effects(own, parts)
        promised = prices(own, parts) - (here.value - here.rows.value)
        for slope, old, new in zip(slopes, before, after, strict=True):
            promised += float(slope @ (new - old))
        for halving in range(_HALVINGS):
            size = 0.5**halving
            there = self.at(
                here.u,
                # The full step is taken as it is, so that parts that became 0 are 0 to
                # the bit.
                here.own + size * (own - here.own) if halving else own,
                here.parts + size * (parts - here.parts) if halving else parts,
                prices,
            )
            rise = there.value - here.value
            if rise <= _FALL * size * promised + _ROUNDING * here.value:
                return there
        return None

    def _taking_part(
        self,
        here: PairPoint,
        prices: Prices,
        slopes: tuple[np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers of the features and pairs whose groups are not 0, or break (1)
        by most: no more new ones than there are old, or a few.
        """
        g, G = slopes
        excess = np.concatenate(
            [np.abs(g) / prices.own, self._sizes(g, G) / prices.pair]
        )
        held = np.concatenate([here.own != 0, here.parts.any(axis=1)])
        new = np.flatnonzero(~held & (excess > 1))
        # At most doubled: of all groups that break (1) at first, few are in the
        # solution, and the Hessian costs the square of their number.
        most = max(_FEW, np.count_nonzero(held))
        new = new[np.argsort(-excess[new], kind="stable")[:most]]
        held[new] = True
        chosen = np.flatnonzero(held[g.size :])
        features = [np.flatnonzero(held[: g.size])]
        features += [self.first[chosen], self.second[chosen]]
        return np.unique(np.concatenate(features)), chosen

    def _of_quadratic(
        self,
        here: PairPoint,
        mains: np.ndarray,
        chosen: np.ndarray,
        prices: Prices,
        tol: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of some groups where the quadratic of L and P are least.

        Thresholds are eliminated: with H_uu = C C' and k = C^-1 H_ux the Hessian by the
        effects x is H_xx - k'k, and their slopes are those of L, whose slopes by the
        thresholds are 0.
        """
        first, second = self.first[chosen], self.second[chosen]
        loss, rows = self._loss_of(self._columns(mains, first, second)), here.rows
        k = np.linalg.solve(factor(self._loss.free_hessian(rows)), loss.border(rows))
        H = loss.columns.gram(rows.curvature) - k.T @ k
        slope = loss.columns.rmatvec(rows.slope)
        own, parts = here.own[mains].copy(), here.parts[chosen].copy()
        at, to = (np.searchsorted(mains, of).astype(np.int32) for of in (first, second))
        quadratic = Quadratic(H, at, to, prices, slope, own, parts)
        cost = _SECONDS * (mains.size + 3 * chosen.size) * max(1, slope.size)
        sweeps = min(_SWEEPS, max(1, int(self.monitor.SLICE / cost)))
        for i in range(_ROUNDS if slope.size else 0):
            check_cancelled()
            worth = quadratic.descend(tol, sweeps)
            if self.monitor.late() or (i and not worth > tol):
                break
            # once at least: sweeps may be worth little far from the optimum
            quadratic.newton()
        return own, parts

    def _columns(
        self, mains: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> np.ndarray:
        """Return some features, and products of two, (n, m)."""
        D = np.empty((len(self.Z), mains.size + first.size))
        for rows in strips(len(D)):
            check_cancelled()
            Z = self.Z[rows]
            D[rows, : mains.size] = Z[:, mains]
            D[rows, mains.size :] = Z[:, first] * Z[:, second]
        return D

    def _sizes(self, g: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the norms of the slopes by the parts of a pair, (P,)."""
        of_mains = np.hypot(g[self.first], g[self.second])
        return np.asarray(np.hypot(of_mains, G))

    def _loss_of(self, D: np.ndarray) -> RowwiseLikelihood:
        """Return the loss of scores that are sums over these columns."""
        n, m = D.shape
        design = replace(
            self.design, location=np.arange(m), centre=np.zeros(m), spread=np.ones(m)
        )
        none = np.zeros((n, 0))
        parts = DenseColumns(D), none, none
        return RowwiseLikelihood(design, "logit", 0.0, self._n_threads, parts)
