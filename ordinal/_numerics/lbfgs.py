"""Minimum of a smooth function by the BFGS method, with limited memory or a matrix.

The inverse Hessian is that of the last `memory` steps (two-loop recursion) or, for few
variables, a matrix that all steps update. The line search ends where the weak Wolfe
conditions hold or, near the optimum, where values differ by rounding only, the
approximate conditions of Hager and Zhang on the slopes.

J. Nocedal, S. J. Wright, Numerical Optimization, Springer, 2006, Algorithms 6.1, 7.4
and 7.5.
W. W. Hager, H. Zhang, SIAM J. Optim. 16:170-192, 2005, (4).

Other methods of descent use `armijo` and `shortened`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._solvers import _two_loops
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .descent import FALL, HALVINGS

_FLATTEN = 0.9  # the second of the Wolfe constants, beside FALL
_ROUNDING = 1e-12  # relative rounding error of a value
_STEEPEST = 1e150  # largest partial derivative whose square is finite
_DIFFERENCE = 1e-2  # change of an entry of x in the differences for the Hessian
_LEAST_BEND = 1e-4  # least eigenvalue of a measured Hessian, relative to the largest
_MEMORY = 10  # number of steps in the limited-memory matrix
_TRIALS = 40  # evaluations per line search

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


class NotFiniteError(ValueError):
    """The function is not finite at the starting point."""


@dataclass(slots=True, eq=False)
class SearchPoint:
    """Point of a line search, with the value and gradient of the function there."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    at: float = 0.0  # position on the line of the last search
    slope: float = 0.0  # derivative along that line
    steepest: float = field(init=False)  # |gradient|_inf

    def __post_init__(self) -> None:
        self.steepest = float(np.abs(self.gradient).max(initial=0.0))

    @property
    def finite(self) -> bool:
        """Return whether the value is finite, and the slopes have finite squares."""
        return math.isfinite(self.value) and self.steepest <= _STEEPEST


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Result of `minimize`; `violation` is the number compared with the tolerance."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    violation: float
    n_iter: int
    n_eval: int
    status: Status


class Curvature:
    """Inverse Hessian by the last `_MEMORY` pairs of steps s and gradient changes y."""

    def __init__(self, p: int):
        # A ring of preallocated arrays, so that no step allocates memory.
        self._steps, self._changes = np.empty((2, _MEMORY, p))
        self._rho, self._weights = np.ones((2, _MEMORY))
        self._last = -1
        self.count = 0

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Store a pair, unless the derivative along the step has not risen."""
        rise = float(step @ change)
        # The curvature of a rise within rounding is noise.
        if rise > 1e-14 * norm(step) * norm(change):
            self._last = (self._last + 1) % _MEMORY
            self._steps[self._last], self._changes[self._last] = step, change
            self._rho[self._last] = 1.0 / rise
            self.count = min(self.count + 1, _MEMORY)

    def forget(self) -> None:
        self.count = 0

    def scale(self, factor: float) -> None:
        """Multiply the inverse Hessian."""
        self._changes /= factor
        self._rho *= factor

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Return -H gradient for the inverse Hessian H of the pairs; H = 1 for none."""
        if not self.count:
            return -gradient
        out = np.empty_like(gradient)
        _two_loops.direction(
            self._steps,
            self._changes,
            self._rho,
            self._last,
            self.count,
            gradient,
            self._weights,
            out,
        )
        return out


class DenseCurvature:
    """Inverse Hessian as a matrix, which every pair (s, y) updates.

    The first pair sets the scale of the unit matrix.

    Attributes
    ----------
    inverse : (p, p) array
    count : int
        Number of pairs in the matrix.
    """

    def __init__(self, p: int):
        self.count, self.inverse = 0, np.eye(p)

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Update the matrix, unless the derivative along the step has not risen."""
        rise = float(step @ change)
        if rise <= 1e-14 * norm(step) * norm(change):
            return
        if not self.count:
            self.inverse = rise / float(change @ change) * np.eye(step.size)
        Hy = self.inverse @ change
        along = (1 + float(change @ Hy) / rise) / rise
        across = np.outer(Hy, step) / rise
        self.inverse += along * np.outer(step, step) - across - across.T
        self.count += 1

    def measure(self, fun: Function, x: np.ndarray, gradient: np.ndarray) -> None:
        """Set the matrix to the inverse Hessian at x, by differences of the gradient.

        This takes p evaluations. Negative eigenvalues are replaced by their absolute
        values. The matrix stays as it was if the function is not finite. `OutOfTime` of
        `fun` is passed on.
        """
        points = x + _DIFFERENCE * np.eye(x.size)
        H = (np.array([fun(point)[1] for point in points]) - gradient) / _DIFFERENCE
        if not np.isfinite(H).all():
            return
        size, axes = np.linalg.eigh((H + H.T) / 2)
        size = np.maximum(np.abs(size), _LEAST_BEND * np.abs(size).max())
        if size[0] > 0:
            self.inverse, self.count = (axes / size) @ axes.T, self.count + 1

    def forget(self) -> None:
        self.count = 0

    def scale(self, factor: float) -> None:
        """Multiply the inverse Hessian."""
        self.inverse *= factor

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Return -H gradient; -gradient after `forget`."""
        return -(self.inverse @ gradient) if self.count else -gradient


def norm(x: np.ndarray) -> float:
    """Return |x|_2 of a vector, in a fraction of the time of `numpy.linalg.norm`."""
    return math.sqrt(x.dot(x))


def minimize(
    fun: Function,
    x: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    max_step: float = np.inf,
    curvature: Curvature | DenseCurvature | None = None,
    by_gain: int | None = None,
) -> Minimum:
    """Minimise a function until |gradient|_inf <= tol.

    Parameters
    ----------
    fun : callable
        fun(x) -> (value, gradient). A value that is not finite, or a partial derivative
        beyond 1e150, marks a point outside of the domain, and the step is shortened.
        The starting point must be in the domain. `fun` may raise `OutOfTime`.
    x : (p,) array
    tol : float
    max_iter : int
        Number of steps after which the search ends with `Status.MAX_ITER`.
    monitor : Monitor
        Asked whether to stop once per step; its time limit is checked before every
        evaluation.
    max_step : float
        Longest change of x in one step.
    curvature : Curvature or DenseCurvature, optional
        Inverse Hessian at the start, which steps update. Default: a new `Curvature`.
    by_gain : int, optional
        Number of steps after which the search ends as soon as the predicted decrease of
        the next step, 1/2 gradient' H gradient with the inverse Hessian H, is at most
        tol. Default: the gradient decides.

    Returns
    -------
    Minimum
        The status is `Status.STALLED` if no point along the direction of descent is
        lower, which rounding causes near the optimum. If time ran out before the
        starting point was evaluated, value and gradient are infinite.
    """
    n_iter, n_eval = 0, 0

    def evaluated(x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient at x, or raise OutOfTime."""
        nonlocal n_eval
        # The first evaluation is always made, so that there is a point to return.
        if n_eval and (monitor.ended or monitor.late()):
            raise OutOfTime
        n_eval += 1
        return fun(x)

    try:
        here = SearchPoint(x, *evaluated(x))
    except OutOfTime:
        beyond = np.full_like(x, np.inf)
        return Minimum(x, np.inf, beyond, np.inf, 0, 1, monitor.cut_short)
    pairs = Curvature(x.size) if curvature is None else curvature
    if not here.finite:
        raise NotFiniteError("the function is not finite at the starting point")
    while True:
        d, left = None, here.steepest
        if by_gain is not None and n_iter >= by_gain and pairs.count:
            d = pairs.direction(here.gradient)
            left = -0.5 * float(here.gradient @ d)
        status = _status(left, tol, n_iter, max_iter, monitor)
        if status is not None:
            break
        d = pairs.direction(here.gradient) if d is None else d
        length = norm(d)
        # Without any pair, the first step has length 1.
        step = min(1.0 if pairs.count else 1.0 / length, max_step / length)
        try:
            there = _search(evaluated, here, d, step, max_step)
        except OutOfTime:
            status = monitor.cut_short
            break
        if there is None:
            if not pairs.count:
                status = Status.STALLED
                break
            pairs.forget()  # steepest descent may still find a lower point
            continue
        n_iter += 1
        pairs.add(there.x - here.x, there.gradient - here.gradient)
        here = there
    return Minimum(here.x, here.value, here.gradient, left, n_iter, n_eval, status)


def _status(
    left: float, tol: float, n_iter: int, max_iter: int, monitor: Monitor
) -> Status | None:
    """Return the status with which the search ends here, or None to continue."""
    if left <= tol:
        return Status.CONVERGED
    return monitor.stop(n_iter, left) if n_iter < max_iter else Status.MAX_ITER


def _search(
    fun: Function, start: SearchPoint, d: np.ndarray, step: float, max_step: float
) -> SearchPoint | None:
    """Return a point on start + t d where the Wolfe conditions hold.

    `low` is the best point where the function still falls too steeply, `high` one where
    it is too high; a minimum lies between them. None if they meet at the start.
    """
    slope = float(start.gradient @ d)
    farthest = max_step / norm(d)
    if not slope < 0:
        return None
    first = step
    start.at, start.slope = 0.0, slope
    low, high = start, None
    for _ in range(_TRIALS):
        x = start.x + step * d
        point = SearchPoint(x, *fun(x), step)
        finite = point.finite
        point.slope = float(point.gradient @ d) if finite else np.inf
        fall = start.value - point.value
        falls = fall >= -FALL * step * slope or (
            fall >= -_ROUNDING * abs(start.value)
            and point.slope <= (2 * FALL - 1) * slope
        )
        if not (finite and falls):
            high = point
        elif point.slope < _FLATTEN * slope and step < farthest:
            low = point
        else:
            return point
        if high is None:
            step = min(_beyond(low, slope, step), farthest)
        else:
            step = _between(low, high)
            if not min(low.at, high.at) < step < max(low.at, high.at):
                break
            if abs(high.at - low.at) <= 1e-15 * max(first, high.at):
                break
    return low if low.at > 0 else None


def _beyond(low: SearchPoint, slope: float, step: float) -> float:
    """Extrapolate the slope to its zero, at 2 to 10 times the step of `low`."""
    change = low.slope - slope
    guess = step * -slope / change if change > 0 else np.inf
    return min(max(guess, 2 * step), 10 * step)


def _between(low: SearchPoint, high: SearchPoint) -> float:
    """Return the minimum of the cubic through both points, not too near either."""
    width = high.at - low.at
    if not high.finite:
        return low.at + 0.1 * width
    rise = 3 * (high.value - low.value) / width
    unit = max(abs(low.slope), abs(high.slope), abs(rise))  # so no square overflows
    first, last = low.slope / unit, high.slope / unit
    a = first + last - rise / unit
    root = a * a - first * last
    share = 0.5
    if root >= 0:
        b = np.sqrt(root)
        divisor = last - first + 2 * b
        if divisor > 0:
            share = 1 - (last + b - a) / divisor
    return low.at + min(max(share, 0.1), 0.9) * width


_NEAR = 0.1  # share of the slope at the start that counts as 0
_FLAT = 1e-6  # rise that is tolerated, relative to the slope at the start
_FARTHEST = 64.0  # largest multiple of the step


def rising_zero(slope: Callable[[float], float], begin: float) -> float:
    """Return about the zero of an increasing function with slope(0) = `begin` < 0.

    The function is the derivative of a convex function along a direction. At the result
    its absolute value is at most a tenth of -`begin`, and the convex function is not
    higher than at 0.

    The zero is bracketed by doubling, and found by secants that shorten the bracket by
    at least a tenth. Behind the zero the convex function may have risen by more than it
    fell before, even where it is nearly flat, so a point there is accepted only if a
    bound on the rise excludes this.
    """
    left, below, right = 0.0, begin, 1.0
    above = slope(right)
    while above < -_NEAR * abs(begin) and right < _FARTHEST:
        left, below, right = right, above, 2 * right
        above = slope(right)
    x, here = right, above
    for _ in range(HALVINGS):
        fall = max(-below * left, -_FLAT * begin)
        if abs(here) <= -_NEAR * begin and here * (x - left) <= fall:
            break
        share = -below / (above - below) if above > below else 0.5
        x = left + (right - left) * min(max(share, 0.1), 0.9)
        here = slope(x)
        if here < 0:
            left, below = x, here
        else:
            right, above = x, here
    return x
