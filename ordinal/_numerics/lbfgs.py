"""Minimum of a smooth function by the limited-memory BFGS method.

The inverse Hessian is that of the last `memory` steps (two-loop recursion), a step ends
where the weak Wolfe conditions hold, or near the optimum, where values differ by their
rounding only, the approximate ones of Hager and Zhang, which look at slopes.

J. Nocedal, S. J. Wright, Numerical Optimization, Springer, 2006, Algorithms 7.4, 7.5.
W. W. Hager, H. Zhang, SIAM J. Optim. 16:170-192, 2005, (4).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._model.convergence import Status
from .._model.monitor import Monitor, OutOfTime

_FALL, _FLATTEN = 1e-4, 0.9  # the two Wolfe constants
_ROUNDING = 1e-12  # of a value, relative to it
_STEEPEST = 1e150  # slope by one variable
_MEMORY = 10  # steps whose curvature is remembered
_TRIALS = 40  # points on one line

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
Pair = tuple[np.ndarray, np.ndarray, float]  # (s, y, 1 / s'y) of a step


class NotFiniteError(ValueError):
    """The function is not finite where the search was to begin."""


@dataclass(slots=True, eq=False)
class Point:
    """Where a function was evaluated, what it is there, and its slope along a line."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    at: float = 0.0
    slope: float = 0.0

    @property
    def finite(self) -> bool:
        """Whether the value is finite, and the slopes are and have finite squares."""
        largest = np.abs(self.gradient).max(initial=0.0)
        return bool(np.isfinite(self.value) and largest <= _STEEPEST)


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """The best point found; `violation` is its largest slope, |gradient|_inf."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    n_iter: int
    n_eval: int
    status: Status

    @property
    def violation(self) -> float:
        return float(np.abs(self.gradient).max(initial=0.0))


def minimize(
    fun: Function,
    x: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    max_step: float = np.inf,
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

    Returns
    -------
    Minimum
        `Status.STALLED` where no point along the descent direction is lower, which
        rounding brings about near the optimum. Where not even the given x could be
        evaluated in time, value and gradient are infinite.
    """
    n_iter, n_eval, status = 0, 0, None

    def in_time(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal n_eval
        if n_eval and monitor.late():
            raise OutOfTime
        n_eval += 1
        return fun(x)

    try:
        here = Point(x, *in_time(x))
    except OutOfTime:
        return Minimum(x, np.inf, np.full_like(x, np.inf), 0, 1, Status.MAX_TIME)
    pairs: deque[Pair] = deque(maxlen=_MEMORY)
    if not here.finite:
        raise NotFiniteError("the function is not finite at the given point")
    while np.abs(here.gradient).max(initial=0.0) > tol:
        worst = float(np.abs(here.gradient).max())
        status = Status.MAX_ITER if n_iter >= max_iter else monitor.stop(n_iter, worst)
        if status is not None:
            break
        d = _direction(pairs, here.gradient)
        length = float(np.linalg.norm(d))
        first = 1.0 if pairs else 1.0 / length  # without curvature, a step of length 1
        step = min(first, max_step / length)
        try:
            there = _search(in_time, here, d, step, max_step)
        except OutOfTime:
            status = Status.MAX_TIME
            break
        if there is None:
            if not pairs:
                status = Status.STALLED
                break
            pairs.clear()  # steepest descent may still get somewhere
            continue
        n_iter += 1
        s, y = there.x - here.x, there.gradient - here.gradient
        if s @ y > 1e-14 * np.linalg.norm(s) * np.linalg.norm(y):
            pairs.append((s, y, 1.0 / float(s @ y)))
        here = there
    status = status or Status.CONVERGED
    return Minimum(here.x, here.value, here.gradient, n_iter, n_eval, status)


def _direction(pairs: deque[Pair], gradient: np.ndarray) -> np.ndarray:
    """-H gradient, H the inverse Hessian that the pairs (s, y, 1 / s'y) imply."""
    d = -gradient
    if not pairs:
        return d
    weights = []
    for s, y, rho in reversed(pairs):
        weights.append(rho * (s @ d))
        d -= weights[-1] * y
    _, y, rho = pairs[-1]
    d /= rho * (y @ y)
    for (s, y, rho), a in zip(pairs, reversed(weights), strict=True):
        d += (a - rho * (y @ d)) * s
    return d


def _search(
    fun: Function, start: Point, d: np.ndarray, step: float, max_step: float
) -> Point | None:
    """A point on start + t d where the Wolfe conditions hold.

    `low` is the best point that still falls too steeply, `high` one that rises again;
    a minimum lies between. None where they meet and nothing was found.
    """
    slope = float(start.gradient @ d)
    farthest = max_step / float(np.linalg.norm(d))
    if not slope < 0:
        return None
    first = step
    low, high = Point(start.x, start.value, start.gradient, 0.0, slope), None
    for _ in range(_TRIALS):
        x = start.x + step * d
        point = Point(x, *fun(x), step)
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


def _beyond(low: Point, slope: float, step: float) -> float:
    """Where the slope would vanish if it went on as from 0 to `low`: 2 to 10 times."""
    change = low.slope - slope
    guess = step * -slope / change if change > 0 else np.inf
    return min(max(guess, 2 * step), 10 * step)


def _between(low: Point, high: Point) -> float:
    """Minimum of the cubic through both points, away from either."""
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
