"""Line searches along a direction of descent."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

_FALL = 1e-4  # of Armijo's rule
_ROUNDING = 1e-14  # of the value, relative to it
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
        if rise <= _FALL * size * slope:
            return there
        # near the minimum values differ by their rounding only
        if rise <= _ROUNDING * max(1.0, abs(here.value)) and (
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
