"""The mean logistic loss of LIT and LAT as a function of the direction beta only.

With the score f = x'beta and the losses of `_solvers/_threshold_losses.pyx`,

    V(beta) = min { L(f, b) : b_1 <= ... <= b_T } + l2/2 |beta|^2                    (V)

L is a sum of one convex function per threshold, so that b for given scores takes T
searches for a root. Where the roots are out of order, adjacent thresholds are pooled
and have a common root: pooling adjacent violators minimises such a sum under an order.
V is convex, and at its b, with one variable per pool,

    dV = dL/dbeta,   d2V = L_beta,beta - L_beta,b L_b,b^-1 L_b,beta                  (H)

where L_b,b is diagonal. V is minimised by Newton's method, or by L-BFGS if there are
too many features for a Hessian.

Without a penalty there may be no minimum. Along a direction of scores and thresholds in
which no loss grows, each row stays between the two thresholds about its rank, so that
thresholds with rows in between stay in order. Such a direction separates the ranks for
cumulative models, too, and `separation` finds it.

R. E. Barlow, H. D. Brunk, "The isotonic regression problem and its dual", JASA
67:140-147, 1972, for pools of convex functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .._cumulative.design import HESSIAN_COLUMNS, l2_penalties
from .._cumulative.fitting import length_in_errors
from .._cumulative.matrices import ChunkedColumns, Columns, columns_of
from .._input.problem import Problem
from .._numerics import lbfgs
from .._numerics.cholesky import Cholesky
from .._numerics.descent import armijo, shifted
from .._rows.columns import moments_of
from .._rows.first_pass import ChunkedProblem
from .._solvers import _threshold_losses
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor

_EXACT = 1e-8  # relative step of a threshold, whose error is then about its square
_SEARCHES = 200  # most steps to the roots
_RIDGE = 1e-10  # ridge for collinear features, relative to the curvature of the losses


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdPoint:
    """Point with V and its derivatives, by the centred and scaled features.

    Attributes
    ----------
    x : (d,) array
        beta.
    b : (T,) array
        The best thresholds for these scores, in order.
    pools : int array
        Index of the first threshold of each pool; all, if none are equal.
    f, curvature : (n,) arrays
        The scores, and the second derivatives of L by them.
    value : float
    gradient : (d,) array
    """

    x: np.ndarray
    b: np.ndarray
    pools: np.ndarray
    f: np.ndarray
    curvature: np.ndarray
    value: float
    gradient: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class DescentEnd:
    """End of a descent and its reason.

    `step` is the next step of (b, beta); for L-BFGS it is the end point itself.
    """

    point: ThresholdPoint
    step: np.ndarray
    violation: float
    status: Status
    n_iter: int


class ThresholdLoss:
    """V of a training set, with the T thresholds between ranks that have rows.

    Parameters
    ----------
    problem : Problem
    beside : bool
        Whether rows have losses only at the thresholds about their rank (LIT).
    l2 : float
        Penalty of beta in the units of the features.
    n_threads : int
    unit : (d,) array, optional
        Units in which the penalty sees the features, if not in their own.
    """

    def __init__(
        self,
        problem: Problem,
        beside: bool,
        l2: float,
        n_threads: int,
        unit: np.ndarray | None = None,
    ):
        self.beside, self.n_threads = beside, n_threads
        self.total = float(problem.weight.sum())
        # With weights of sum 1, V and tolerances do not depend on the number of rows.
        self.weight = problem.weight / self.total
        self.centre, self.spread = moments_of(problem, self.total)
        about = self.centre, self.spread, n_threads
        self.columns: Columns | ChunkedColumns = (
            ChunkedColumns(problem.X, *about)
            if isinstance(problem, ChunkedProblem)
            else columns_of(problem.X, *about)
        )
        self.penalties = l2_penalties(l2, self.spread / (1.0 if unit is None else unit))
        present = np.flatnonzero(problem.present)
        self.rank = problem.rank_among_present
        # Two thresholds about a rank without rows are one variable. In LAT it has the
        # losses of both. In LIT each would have rows on one side only, so that the
        # variable has the losses of the rows on both sides once.
        gaps = np.diff(present).astype(float)
        self.times = np.ones(gaps.size) if beside else gaps
        mass = np.bincount(self.rank, self.weight, minlength=present.size)
        # Summed from both ends, because 1 - below loses the digits of a rare top rank.
        below, above = np.cumsum(mass)[:-1], np.cumsum(mass[::-1])[-2::-1]
        self.sides = (mass[:-1], mass[1:]) if beside else (below, above)

    def at(self, x: np.ndarray, b: np.ndarray) -> ThresholdPoint:
        """Return V and its gradient at x; the search for the thresholds begins at b."""
        f = self.columns.matvec(x)
        b, pools = self._thresholds(f, b)
        slope, curvature = np.empty(f.size), np.empty(f.size)
        by_chunk = np.empty(_threshold_losses.n_chunks(f.size))
        _threshold_losses.by_row(
            f,
            b,
            self.rank,
            self.weight,
            self.times,
            self.beside,
            slope,
            curvature,
            by_chunk,
            self.n_threads,
        )
        ridge = self.penalties * x
        value = float(by_chunk.sum() + 0.5 * (ridge @ x))
        gradient = self.columns.rmatvec(slope) + ridge
        return ThresholdPoint(x, b, pools, f, curvature, value, gradient)

    def start(self) -> ThresholdPoint:
        """Return the point without effects."""
        low, high = self.sides
        return self.at(np.zeros(self.spread.size), np.log(low / high))

    def hessian(self, here: ThresholdPoint) -> tuple[np.ndarray, np.ndarray]:
        """Return the Hessian (H), (d, d), and the derivative of b by beta, (T, d).

        The latter is -L_b,b^-1 L_b,beta. O(n d^2).
        """
        if isinstance(self.columns, ChunkedColumns):
            gram, border = self.columns.summed(partial(self._second, here))
        else:
            gram, border = self._second(here, slice(0, here.f.size), self.columns)
        H = np.diag(self.penalties) + gram
        pooled = np.add.reduceat(border, here.pools)
        # L_b,b is diagonal, because no loss depends on two thresholds; its entries may
        # underflow.
        by_pools = self._slopes(here.f, here.b, here.pools)[1]
        moves = pooled / np.maximum(by_pools, np.finfo(float).tiny)[:, None]
        H -= pooled.T @ moves
        return H, np.repeat(moves, self._sizes(here.pools), axis=0)

    def _second(
        self, here: ThresholdPoint, rows: slice, columns: Columns
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return L_beta,beta and -L_b,beta of some rows, whose columns are given."""
        f, rank, weight = here.f[rows], self.rank[rows], self.weight[rows]
        border = np.zeros((here.b.size, here.x.size))
        for some, Z in columns.blocks():
            _threshold_losses.across(
                f[some],
                here.b,
                rank[some],
                weight[some],
                self.times,
                self.beside,
                Z,
                border,
            )
        return columns.gram(here.curvature[rows]), border

    def _thresholds(
        self, f: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best ordered thresholds for scores f, from b on, and the pools."""
        pools = np.arange(b.size)
        while True:
            # Pool adjacent violators, for any convex losses (Barlow and Brunk, 1972).
            b = self._roots(f, b, pools)
            in_order = np.append(True, b[1:] >= b[:-1])
            if in_order.all():
                return np.repeat(b, self._sizes(pools)), pools
            # Adjacent thresholds in disorder are equal in the solution.
            runs = np.flatnonzero(in_order)
            b = np.add.reduceat(b, runs) / np.diff(np.append(runs, b.size))
            pools = pools[runs]

    def _roots(self, f: np.ndarray, b: np.ndarray, pools: np.ndarray) -> np.ndarray:
        """Return the root of the slope by each pool, by Newton's method in brackets."""
        sums = (np.add.reduceat(self.times * side, pools) for side in self.sides)
        level = np.subtract(*(np.log(side) for side in sums))
        # If all scores were f, the root would be f plus the log odds of the two sides.
        # The margin of 1 keeps the bounds away from the root in spite of rounding.
        lo, hi = f.min() + level - 1, f.max() + level + 1
        for _ in range(_SEARCHES):
            b = np.clip(b, lo, hi)
            slope, curvature = self._slopes(f, b, pools)
            # Newton's steps alone may diverge where the losses are nearly linear.
            lo, hi = np.where(slope < 0, b, lo), np.where(slope > 0, b, hi)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                there = b - slope / curvature
            inside = (there >= lo) & (there <= hi)
            step = np.where(inside, there, (lo + hi) / 2) - b
            b = b + step
            if (np.abs(step) <= _EXACT * np.maximum(1, np.abs(b))).all():
                break
        return np.asarray(b)

    def _slopes(self, f: np.ndarray, b: np.ndarray, pools: np.ndarray) -> np.ndarray:
        """Return the first and second derivatives of L by the pools, (2, p).

        b has one threshold per pool, or all T of them.
        """
        if b.size < self.times.size:
            b = np.repeat(b, self._sizes(pools))
        by_chunk = np.empty((_threshold_losses.n_chunks(f.size), b.size, 2))
        _threshold_losses.by_threshold(
            f,
            b,
            self.rank,
            self.weight,
            self.times,
            self.beside,
            by_chunk,
            self.n_threads,
        )
        return np.asarray(np.add.reduceat(by_chunk.sum(axis=0), pools).T)

    def _sizes(self, pools: np.ndarray) -> np.ndarray:
        """Return the number of thresholds of each pool."""
        return np.diff(np.append(pools, self.times.size))


def minimum(loss: ThresholdLoss, max_iter: int, monitor: Monitor) -> DescentEnd:
    """Minimise V."""
    # A Hessian of more columns costs more than the steps that it saves.
    descend = _newton if loss.spread.size <= HESSIAN_COLUMNS else _lbfgs
    return descend(loss, max_iter, monitor)


def _newton(loss: ThresholdLoss, max_iter: int, monitor: Monitor) -> DescentEnd:
    """Minimise V by Newton's method.

    The violation is the length of the next step in standard errors.
    """
    here, n_iter, violation = loss.start(), 0, np.inf
    ahead = np.zeros(here.b.size + here.x.size)
    while True:
        there = stop = None
        try:
            with monitor.limited():
                H, moves = loss.hessian(here)
                step = _solved(H, loss.penalties, -here.gradient)
                ahead = np.concatenate([moves @ step, step])
                slope = float(here.gradient @ step)
                violation = length_in_errors(slope, loss.total)
                stop = monitor.stop(n_iter, violation)
                if violation <= monitor.tol:
                    return DescentEnd(here, ahead, violation, Status.CONVERGED, n_iter)
                if stop is None and n_iter >= max_iter:
                    stop = Status.MAX_ITER
                if stop is None:
                    line = partial(_along, loss, here, step, moves @ step)
                    there = armijo(line, here, slope)
        except OutOfTime:
            stop = monitor.stop(n_iter, violation)
        if there is None:
            return DescentEnd(here, ahead, violation, stop or Status.STALLED, n_iter)
        here, n_iter = there, n_iter + 1


def _solved(H: np.ndarray, penalties: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return H^-1 v, where H may be singular and v is in its range."""
    # The ridge is relative to the curvature of the losses only. A feature with almost
    # no spread has a penalty like 1e20; a ridge relative to that would hide all others.
    of_losses = float((np.diagonal(H) - penalties).max(initial=0.0))
    shift = _RIDGE * max(of_losses, np.finfo(float).tiny)

    def solved(shift: float) -> np.ndarray:
        return Cholesky(H + np.diag(np.full(len(H), shift))).solve(v[:, None])[:, 0]

    found = shifted(solved, shift, least=0, growth=100, most=np.finfo(float).max)
    # If H is not finite, no step is made.
    return np.full_like(v, np.nan) if found is None else found[0]


def _along(
    loss: ThresholdLoss,
    here: ThresholdPoint,
    step: np.ndarray,
    moves: np.ndarray,
    size: float,
) -> ThresholdPoint:
    """Return a point on a line; the search for thresholds begins on it, too."""
    return loss.at(here.x + size * step, here.b + size * moves)


def _lbfgs(loss: ThresholdLoss, max_iter: int, monitor: Monitor) -> DescentEnd:
    """Minimise V by L-BFGS; the violation is the largest slope of V."""
    here = loss.start()

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal here
        here = loss.at(x, here.b)
        return here.value, here.gradient

    end = lbfgs.minimize(
        fun, here.x, tol=monitor.tol, max_iter=max_iter, monitor=monitor
    )
    point = loss.at(end.x, here.b)
    ahead = np.concatenate([point.b, point.x])
    return DescentEnd(point, ahead, end.violation, end.status, end.n_iter)
