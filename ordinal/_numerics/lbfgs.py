"""Minimum of a smooth function by the BFGS method, with limited memory or a matrix.

The inverse Hessian is that of the last `memory` steps (two-loop recursion) or, for few
variables, a matrix that takes in all steps. A step ends where the weak Wolfe conditions
hold, or near the optimum, where values differ by their rounding only, the approximate
ones of Hager and Zhang, which look at slopes.

J. Nocedal, S. J. Wright, Numerical Optimization, Springer, 2006, Algorithms 6.1, 7.4
and 7.5.
W. W. Hager, H. Zhang, SIAM J. Optim. 16:170-192, 2005, (4).

`armijo` and `shortened` are for other directions of descent.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from .._solvers import _two_loops
from .._watch.convergence import Status
from .._watch.monitor import Monitor, OutOfTime

_FALL, _FLATTEN = 1e-4, 0.9  # the two Wolfe constants
_ROUNDING = 1e-12  # of a value, relative to it
_STEEPEST = 1e150  # slope by one variable
_DIFFERENCE = 1e-2  # of an entry of x, for the Hessian
_LEAST_BEND = 1e-4  # eigenvalue of a measured Hessian, of the largest
_MEMORY = 10  # steps whose curvature is remembered
_TRIALS = 40  # points on one line

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


class NotFiniteError(ValueError):
    """The function is not finite where the search was to begin."""


@dataclass(slots=True, eq=False)
class SearchPoint:
    """Value and slope of a function at a point of a line."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    at: float = 0.0  # of the line of the last search
    slope: float = 0.0
    steepest: float = field(init=False)  # |gradient|_inf

    def __post_init__(self) -> None:
        self.steepest = float(np.abs(self.gradient).max(initial=0.0))

    @property
    def finite(self) -> bool:
        """Return whether the value is finite, and the slopes have finite squares."""
        return math.isfinite(self.value) and self.steepest <= _STEEPEST


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """The best point found; `violation` is what was compared with the tolerance."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    violation: float
    n_iter: int
    n_eval: int
    status: Status


class Curvature:
    """Curvature of the last `_MEMORY` steps s and gradient changes y.

    The pairs define the approximate inverse of the Hessian.
    """

    def __init__(self, p: int):
        # A ring of arrays that are written over: no step allocates memory.
        self._steps, self._changes = np.empty((2, _MEMORY, p))
        self._rho, self._weights = np.ones((2, _MEMORY))
        self._last = -1
        self.count = 0

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Remember a pair, unless the gradient has not risen along the step."""
        rise = float(step @ change)
        # A rise within rounding would give a curvature of noise, and steps of any
        # length.
        if rise > 1e-14 * length_of(step) * length_of(change):
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
    """Inverse of the Hessian as a matrix, which every step s and gradient change y
    updates; the first pair sets its scale.

    Attributes
    ----------
    inverse : (p, p) array
    count : int
        How many pairs the matrix has taken in.
    """

    def __init__(self, p: int):
        self.count, self.inverse = 0, np.eye(p)

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Take in a pair, unless the gradient has not risen along the step."""
        rise = float(step @ change)
        if rise <= 1e-14 * length_of(step) * length_of(change):
            return
        if not self.count:
            self.inverse = rise / float(change @ change) * np.eye(step.size)
        Hy = self.inverse @ change
        along = (1 + float(change @ Hy) / rise) / rise
        across = np.outer(Hy, step) / rise
        self.inverse += along * np.outer(step, step) - across - across.T
        self.count += 1

    def measure(self, fun: Function, x: np.ndarray, gradient: np.ndarray) -> None:
        """Take the Hessian at x from differences of the gradient, p evaluations.

        Along directions in which it is not positive, its size alone is taken. Nothing
        changes where the function is not finite; `OutOfTime` of fun is passed on.
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


def length_of(x: np.ndarray) -> float:
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
    by_gain: bool = False,
) -> Minimum:
    """Go from x downhill to where |gradient|_inf <= tol.

    Parameters
    ----------
    fun : callable
        fun(x) -> (value, gradient). A value that is not finite, or a slope beyond
        1e150, marks a point beyond the domain, and the step is shortened; at the given
        x both must be. It may raise `OutOfTime`.
    x : (p,) array
    tol : float
    max_iter : int
        Steps; `Status.MAX_ITER` after them.
    monitor : Monitor
        Asked once a step; its time limit before every evaluation.
    max_step : float
        Longest change of x in one step.
    curvature : Curvature or DenseCurvature, optional
        What is known of the Hessian; the steps add to it. Default: nothing as yet, and
        limited memory.
    by_gain : bool
        Whether the search ends, once there is curvature, where the next step promises
        to lower the value by no more than tol: 1/2 gradient' H gradient, H the inverse
        Hessian.

    Returns
    -------
    Minimum
        `Status.STALLED` where no point along the descent direction is lower, which
        rounding brings about near the optimum. Where not even the given x could be
        evaluated in time, value and gradient are infinite.
    """
    n_iter, n_eval = 0, 0

    def in_time(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal n_eval
        # The first evaluation is always made: there is then a point to return.
        if n_eval and monitor.late():
            raise OutOfTime
        n_eval += 1
        return fun(x)

    try:
        here = SearchPoint(x, *in_time(x))
    except OutOfTime:
        beyond = np.full_like(x, np.inf)
        return Minimum(x, np.inf, beyond, np.inf, 0, 1, Status.MAX_TIME)
    pairs = Curvature(x.size) if curvature is None else curvature
    if not here.finite:
        raise NotFiniteError("the function is not finite at the given point")
    while True:
        d, left = None, here.steepest
        if by_gain and pairs.count:
            d = pairs.direction(here.gradient)
            left = -0.5 * float(here.gradient @ d)
        status = _status(left, tol, n_iter, max_iter, monitor)
        if status is not None:
            break
        d = pairs.direction(here.gradient) if d is None else d
        length = length_of(d)
        # without curvature, a step of length 1
        step = min(1.0 if pairs.count else 1.0 / length, max_step / length)
        try:
            there = _search(in_time, here, d, step, max_step)
        except OutOfTime:
            status = Status.MAX_TIME
            break
        # No lower point along the direction of quasi-Newton.
        if there is None:
            if not pairs.count:
                status = Status.STALLED
                break
            pairs.forget()  # steepest descent may still get somewhere
            continue
        n_iter += 1
        pairs.add(there.x - here.x, there.gradient - here.gradient)
        here = there
    return Minimum(here.x, here.value, here.gradient, left, n_iter, n_eval, status)


def _status(
    left: float, tol: float, n_iter: int, max_iter: int, monitor: Monitor
) -> Status | None:
    """Return the status with which a search ends here, or None to go on."""
    if left <= tol:
        return Status.CONVERGED
    return monitor.stop(n_iter, left) if n_iter < max_iter else Status.MAX_ITER


def _search(
    fun: Function, start: SearchPoint, d: np.ndarray, step: float, max_step: float
) -> SearchPoint | None:
    """Return a point on start + t d where the Wolfe conditions hold.

    `low` is the best point that still falls too steeply, `high` one that rises again;
    a minimum lies between. None where they meet and nothing was found.
    """
    slope = float(start.gradient @ d)
    farthest = max_step / length_of(d)
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
        falls = fall >= -_FALL * step * slope or (
            fall >= -_ROUNDING * abs(start.value)
            and point.slope <= (2 * _FALL - 1) * slope
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
    """Extrapolate to a zero of the slope beyond `low`, by 2 to 10 times its step."""
    change = low.slope - slope
    guess = step * -slope / change if change > 0 else np.inf
    return min(max(guess, 2 * step), 10 * step)


def _between(low: SearchPoint, high: SearchPoint) -> float:
    """Return the minimum of the cubic through both points, away from either."""
    width = high.at - low.at
    if not high.finite:
        return low.at + 0.1 * width
    rise = 3 * (high.value - low.value) / width
    unit = max(abs(low.slope), abs(high.slope), abs(rise))  # no square overflows
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


_ARMIJO = 1e-4  # of Armijo's rule
_RESOLVED = 1e-14  # of the value, relative to it
HALVINGS = 50
_LONGEST = 1e6  # parameter of a step
_NEAR = 0.1  # of the slope at the start, which is as good as none
_FLAT = 1e-6  # of it, by which a step of 1 may rise without being noticed
_FARTHEST = 64.0  # steps


class Evaluated(Protocol):
    """Point where a function was evaluated."""

    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> np.ndarray: ...


P = TypeVar("P", bound=Evaluated)


def shortened(step: np.ndarray) -> np.ndarray:
    """Return a step of at most 1e6 in any parameter: where the curvature vanishes,
    halving a longer one 50 times does not bring it back to where the function bends.
    """
    return step * min(1.0, _LONGEST / max(1.0, float(np.abs(step).max(initial=0.0))))


def armijo(at: Callable[[float], P], here: P, slope: float) -> P | None:
    """Return the first of at(1), at(1/2), at(1/4), ... that is lower than here by a
    share of what its slope along the direction promises;

    None where none is.

    Parameters
    ----------
    at : callable
        at(size) is the point so many steps along the direction; an infinite value marks
        one beyond the domain.
    here : its start
    slope : float < 0
        Of the value by the size, at the start.
    """
    for halving in range(HALVINGS):
        size = 0.5**halving
        there = at(size)
        rise = there.value - here.value
        if rise <= _ARMIJO * size * slope:
            return there
        # near the minimum values differ by their rounding only
        if rise <= _RESOLVED * max(1.0, abs(here.value)) and (
            np.abs(there.gradient).max() <= 0.5 * np.abs(here.gradient).max()
        ):
            return there
    return None


def rising_zero(slope: Callable[[float], float], begin: float) -> float:
    """Find the zero of a rising function, `begin` < 0 at 0, up to a tenth of `begin`.

    It is the step at which a convex function is near its minimum along a direction, and
    not higher than at 0.

    It is bracketed by doubling, and found by a secant that takes off a tenth of the
    bracket at the least. Behind the zero the convex function may have risen by more
    than it fell before, even where it is nearly flat: a point there is taken if it
    cannot have.
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
