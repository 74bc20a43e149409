"""Solver of (P) of `ordinal.ofmhs` on a path of penalties, with a duality gap.

Let L be the mean loss with the best thresholds for the score, g_j and G_jk its slopes
by beta_j and Theta_jk, and P the penalty. The dual of (P) has the constraints

    |g_j| <= l1,   sqrt(g_j^2 + g_k^2 + G_jk^2) <= l_pair     for all j < k          (1)

because g_j is the slope by own_j and by all m_jk. L is convex and not negative, so that
c times its tangent lies below it for every c in [0, 1]. If c times the slopes satisfy
(1), the minimum of this bound plus P is at 0 effects, and

    c (L - g'beta - G'Theta) <= min (P).                                             (2)

The largest of these bounds is the dual value. At the optimum (1) holds and c is 1. At
0 effects (1) gives the least l1 for which they are the solution.

A step is a proximal Newton step over the groups that are not 0 or that violate (1), the
largest violations first. The quadratic model of L has its thresholds eliminated. The
sum of it and P is minimised by block coordinate descent
(`_solvers/_pair_descent.pyx`), which finds the groups that are 0, in alternation with
Newton steps over the groups that are not, for which P is smooth.
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
    root_of,
    with_best_thresholds,
)
from .._input.problem import Problem
from .._numerics.cholesky import Cholesky
from .._numerics.descent import halved
from .._numerics.rows import matmul, matvec, strips
from .._solvers import _pair_descent
from .._watch.cancellation import OutOfTime, check_cancelled
from .._watch.convergence import Status
from .._watch.monitor import Monitor

_ENTRIES, _LEAST = 65_536, 256  # entries, and fewest rows, of an array of some rows


def scores(Z: np.ndarray, main: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return z'main + 1/2 z' pairs z for every row z of Z, (n,).

    `pairs` is symmetric, (d, d). O(n d^2), or less if few features have pairs; products
    of features are not stored.
    """
    f = matvec(Z, main)
    paired = np.flatnonzero(pairs.any(axis=1))  # mostly few features
    if paired.size:
        own = pairs[np.ix_(paired, paired)]
        for rows in strips(len(Z), max(_LEAST, _ENTRIES // paired.size)):
            check_cancelled()
            part = Z[rows][:, paired]
            f[rows] += 0.5 * np.einsum("ij,ij->i", matmul(part, own), part)
    return f


def both_ways(
    d: int, first: np.ndarray, second: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return the symmetric matrix, (d, d), with a value per pair of features."""
    out = np.zeros((d, d))
    out[first, second] = out[second, first] = values
    return out


_ROUNDING = 1e-14  # relative rounding error of the value
_HALVINGS = 10  # of a step of the quadratic model
_FEW = 16  # groups that may enter at a step, or as many as are not 0
_INNER = 1e-8  # decrease by the last sweep over a quadratic, relative to the gap
_FINER = 1e-3  # factor of this tolerance when steps no longer decrease the value
_SWEEPS = 5  # sweeps between two Newton steps for a quadratic
_ROUNDS = 200  # most Newton steps for a quadratic
_LARGEST = 6000  # most parts of the Hessian of a Newton step
_RIDGE = 1e-12  # share added to its diagonal, for more effects than rows
_SECONDS = 2e-9  # seconds per entry in a sweep
_MARGIN = 1e-12  # so that no feature is active at the largest penalty
_FAR = 4.0  # ratio of adjacent penalties on the path to a single one


@dataclass(frozen=True, slots=True, eq=False)
class PairPenalties:
    """Penalties l1 of a main effect and l_pair of a pair, which may be infinite."""

    own: float
    pair: float

    @classmethod
    def from_arguments(cls, l1: float, ratio: float) -> PairPenalties:
        """Make the penalties of (P).

        With |g_j| = |g_k| = l1 a pair enters the model where |G_jk| = ratio l1.
        """
        return cls(l1, l1 * math.hypot(ratio, math.sqrt(2)))

    def __call__(self, own: np.ndarray, parts: np.ndarray) -> float:
        """Return P for the parts `own`, (d,), and `parts`, (K, 3)."""
        sizes = np.linalg.norm(parts, axis=1)
        of_pairs = self.pair * float(sizes.sum()) if sizes.any() else 0.0
        return self.own * float(np.abs(own).sum()) + of_pairs


@dataclass(frozen=True, slots=True, eq=False)
class PairPoint:
    """Point with the value of (P).

    Attributes
    ----------
    u : (T,) array
        The best thresholds.
    own : (d,) array
    parts : (P, 3) array
        m_jk, m_kj and Theta_jk of the pairs j < k.
    rows : RowTerms
        Terms of the derivatives of L.
    value : float
        Value of (P).
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
    """Quadratic model of L by m effects, plus P; the effects are changed in place.

    Attributes
    ----------
    H : (m, m) array
        Hessian by m - K main effects and K pairs.
    first, second : (K,) int32 arrays
        Positions of the features of each pair among the main effects.
    penalties : PairPenalties
    slope : (m,) array
        Slope of the quadratic at the present effects.
    own : (m - K,) array
    parts : (K, 3) array
    """

    H: np.ndarray
    first: np.ndarray
    second: np.ndarray
    penalties: PairPenalties
    slope: np.ndarray
    own: np.ndarray
    parts: np.ndarray

    def descend(self, tol: float, sweeps: int) -> float:
        """Sweep by block coordinate descent, which finds the parts that are 0.

        Return the decrease of the value by the last sweep.
        """
        P = self.penalties
        return _pair_descent.descend(
            self.H, self.first, self.second, P.own, P.pair, tol, sweeps, self.slope,
            self.own, self.parts,
        )[1]  # fmt: skip

    def newton(self) -> None:
        """Take a Newton step over the parts that are not 0, where P is smooth.

        How the parts of a main effect are divided takes coordinate descent many sweeps,
        and Newton's method one step. Parts that would change their sign become 0. If no
        step decreases the value, nothing changes.
        """
        d, kept = self.own.size, np.flatnonzero(self.parts.any(axis=1))
        mains = np.flatnonzero(self.own)
        if not 0 < mains.size + 3 * kept.size <= _LARGEST:
            return
        places = np.stack([self.first[kept], self.second[kept], d + kept], axis=1)
        effects = np.concatenate([mains, places.ravel()])
        sizes = np.linalg.norm(self.parts[kept], axis=1)[:, None]
        # For nonzero parts |.| is linear, and |.|_2 has the Hessian (I - uu') / |.|_2.
        unit, sign = self.parts[kept] / sizes, np.sign(self.own[mains])
        A = self.H[np.ix_(effects, effects)]
        bends = np.eye(3) - unit[:, :, None] * unit[:, None, :]
        at = mains.size + np.arange(3 * kept.size).reshape(-1, 3)
        A[at[:, :, None], at[:, None, :]] += (
            self.penalties.pair / sizes[:, :, None] * bends
        )
        of_P = [self.penalties.own * sign, self.penalties.pair * unit.ravel()]
        slope = self.slope[effects] + np.concatenate(of_P)
        # A share of the diagonal: effects in any units are affected alike.
        A[np.diag_indices_from(A)] *= 1 + _RIDGE
        try:
            step = -Cholesky(A).solve(slope[:, None])[:, 0]
        except np.linalg.LinAlgError:
            return
        for halving in range(_HALVINGS):
            moved = 0.5**halving * step
            own = self.own[mains] + moved[: mains.size]
            # Beyond 0 the penalty has another slope than this quadratic.
            own[own * sign < 0] = 0.0
            parts = self.parts[kept] + moved[mains.size :].reshape(-1, 3)
            parts[(parts * unit).sum(axis=1) < 0] = 0.0
            change = np.zeros(self.slope.size)
            # A feature is in several pairs, of which `change[places] += ...` would add
            # only one.
            np.add.at(change, mains, own - self.own[mains])
            np.add.at(change, places, parts - self.parts[kept])
            by_slope = self.H @ change
            rise = float(change @ (self.slope + 0.5 * by_slope))
            rise += self.penalties(own, parts)
            rise -= self.penalties(self.own[mains], self.parts[kept])
            if rise < 0:
                self.own[mains], self.parts[kept] = own, parts
                self.slope[:] += by_slope
                return


class HierarchyPath:
    """Solver of (P) for one pair of penalties after another, each warm started.

    Parameters
    ----------
    problem : Problem
        With dense features.
    n_threads, max_iter : int
    monitor : Monitor
        A point has converged if its duality gap is at most `tol` times the loss without
        effects.

    Attributes
    ----------
    design : Design
        Its centres and spreads are those of the features.
    first, second : (P,) int arrays
        The features of the pairs.
    null : float
        The loss without effects.
    slopes : (d,), (P,) arrays
        g and G of the loss without effects.
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
        self._last = self.at(u, own, parts, PairPenalties(1.0, 1.0))
        self._last_l1 = math.inf
        self.null, self.slopes = self._last.value, self.slopes_at(self._last)

    def largest(self, ratio: float) -> float:
        """Return the least l1 for which all effects are 0."""
        g, G = self.slopes
        # (1) for pairs, solved for l1.
        sizes = self._sizes(g, G) / math.hypot(ratio, math.sqrt(2))
        largest = max(np.abs(g).max(initial=0.0), sizes.max(initial=0.0))
        return float(largest) * (1 + _MARGIN)

    def effects(
        self, own: np.ndarray, parts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return beta, (d,), and Theta, (P,)."""
        d = own.size
        of_pairs = np.bincount(self.first, parts[:, 0], d)
        of_pairs += np.bincount(self.second, parts[:, 1], d)
        return own + of_pairs, parts[:, 2]

    def at(
        self,
        u: np.ndarray,
        own: np.ndarray,
        parts: np.ndarray,
        penalties: PairPenalties,
    ) -> PairPoint:
        """Evaluate (P) at given effects, with the best thresholds, found from u.

        O(n d^2).
        """
        main, theta = self.effects(own, parts)
        pairs = both_ways(main.size, self.first, self.second, theta)
        u, rows = with_best_thresholds(self._loss, u, scores(self.Z, main, pairs))
        return PairPoint(u, own, parts, rows, rows.value + penalties(own, parts))

    def slopes_at(self, here: PairPoint) -> tuple[np.ndarray, np.ndarray]:
        """Return the slopes g and G. O(n d^2)."""
        columns, slope = self._loss.columns, here.rows.slope
        G = columns.gram(slope)[self.first, self.second]
        return columns.rmatvec(slope), G

    def bound(
        self,
        here: PairPoint,
        penalties: PairPenalties,
        slopes: tuple[np.ndarray, np.ndarray],
    ) -> float:
        """Return the best bound (2), or 0 if that is larger: (P) is never negative."""
        (g, G), (main, theta) = slopes, self.effects(here.own, here.parts)
        tangent = here.rows.value - float(g @ main) - float(G @ theta)
        with np.errstate(divide="ignore", over="ignore"):
            c = min(
                # A slope of 0 allows every c: infinity is what is meant.
                (penalties.own / np.abs(g)).min(initial=1.0),
                (penalties.pair / self._sizes(g, G)).min(initial=1.0),
            )
        return max(0.0, float(c) * tangent)

    def reach(self, l1: float, ratio: float) -> DescentEnd:
        """Return the minimum, by a path of penalties if the last one is far.

        `n_iter` of the result counts the steps for all of them.
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
        """Return the minimum, warm started at the last one, `before` steps later."""
        penalties, n_iter, finer = PairPenalties.from_arguments(l1, ratio), 0, 1.0
        here = self.at(self._last.u, self._last.own, self._last.parts, penalties)
        while True:
            slopes = self.slopes_at(here)
            dual = self.bound(here, penalties, slopes)
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
                    there = self._step(here, penalties, slopes, gap)
            except OutOfTime:
                there = None
            n_iter += 1
            # The quadratic was not solved accurately enough for a measurable decrease.
            if there is None or here.value - there.value <= _ROUNDING * here.value:
                finer *= _FINER
            here = there or here
        self._last, self._last_l1 = here, l1
        return DescentEnd(here, here.value, dual, violation, stop, n_iter)

    def _step(
        self,
        here: PairPoint,
        penalties: PairPenalties,
        slopes: tuple[np.ndarray, np.ndarray],
        gap: float,
    ) -> PairPoint | None:
        """Return the next point, or None if none is lower."""
        mains, chosen = self._working_set(here, penalties, slopes)
        own, parts = here.own.copy(), here.parts.copy()
        own[mains], parts[chosen] = self._quadratic_minimum(
            here, mains, chosen, penalties, _INNER * gap
        )
        before, after = self.effects(here.own, here.parts), self.effects(own, parts)
        promised = penalties(own, parts) - (here.value - here.rows.value)
        for slope, old, new in zip(slopes, before, after, strict=True):
            promised += float(slope @ (new - old))

        def along(size: float) -> PairPoint:
            return self.at(
                here.u,
                # The full step is taken as it is, so that parts which became 0 are 0
                # to the bit.
                here.own + size * (own - here.own) if size < 1 else own,
                here.parts + size * (parts - here.parts) if size < 1 else parts,
                penalties,
            )

        found = halved(along, here.value, promised, _ROUNDING * here.value)
        return None if found is None else found[0]

    def _working_set(
        self,
        here: PairPoint,
        penalties: PairPenalties,
        slopes: tuple[np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the features and of the pairs of the next step.

        These are the groups that are not 0, and those that violate (1) most.
        """
        g, G = slopes
        excess = np.concatenate(
            [np.abs(g) / penalties.own, self._sizes(g, G) / penalties.pair]
        )
        active = np.concatenate([here.own != 0, here.parts.any(axis=1)])
        new = np.flatnonzero(~active & (excess > 1))
        # The number of groups at most doubles: few of those that violate (1) at first
        # are in the solution, and the Hessian costs the square of their number.
        most = max(_FEW, np.count_nonzero(active))
        active[new[np.argsort(-excess[new], kind="stable")[:most]]] = True
        chosen = np.flatnonzero(active[g.size :])
        features = [np.flatnonzero(active[: g.size])]
        features += [self.first[chosen], self.second[chosen]]
        return np.unique(np.concatenate(features)), chosen

    def _quadratic_minimum(
        self,
        here: PairPoint,
        mains: np.ndarray,
        chosen: np.ndarray,
        penalties: PairPenalties,
        tol: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Minimise the quadratic model at a point plus P over some groups.

        Return the main effects `own` and the parts of the pairs.

        Thresholds are eliminated: with H_uu = C C' and k = C^-1 H_ux, the Hessian by
        the effects x is H_xx - k'k. The slopes by x are those of L, because its slopes
        by thresholds are 0.
        """
        first, second = self.first[chosen], self.second[chosen]
        loss, rows = self._loss_of(self._columns(mains, first, second)), here.rows
        k = root_of(self._loss.free_hessian(rows)).whitened(loss.border(rows))
        H = loss.columns.gram(rows.curvature) - k.T @ k
        slope = loss.columns.rmatvec(rows.slope)
        own, parts = here.own[mains].copy(), here.parts[chosen].copy()
        a, b = (np.searchsorted(mains, j).astype(np.int32) for j in (first, second))
        quadratic = Quadratic(H, a, b, penalties, slope, own, parts)
        cost = _SECONDS * (mains.size + 3 * chosen.size) * max(1, slope.size)
        sweeps = min(_SWEEPS, max(1, int(self.monitor.SLICE / cost)))
        for i in range(_ROUNDS if slope.size else 0):
            check_cancelled()
            decrease = quadratic.descend(tol, sweeps)
            # Sweeps may decrease little far from the optimum, so that there is at least
            # one Newton step.
            if self.monitor.late() or (i and not decrease > tol):
                break
            quadratic.newton()
        return own, parts

    def _columns(
        self, mains: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> np.ndarray:
        """Return the features `mains`, and the products of pairs, (n, m)."""
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
        """Return the loss by coefficients of the columns D, (n, m)."""
        n, m = D.shape
        design = replace(
            self.design, location=np.arange(m), centre=np.zeros(m), spread=np.ones(m)
        )
        none = np.zeros((n, 0))
        parts = DenseColumns(D), none, none
        return RowwiseLikelihood(design, "logit", 0.0, self._n_threads, parts)
