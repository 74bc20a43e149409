"""How far to go along a direction of descent."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

_FALL = 1e-4  # of Armijo's rule
_ROUNDING = 1e-14  # of the value, relative to it
HALVINGS = 50


class Evaluated(Protocol):
    """Where a function was evaluated."""

    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> np.ndarray: ...


P = TypeVar("P", bound=Evaluated)


def armijo(at: Callable[[float], P], here: P, slope: float) -> P | None:
    """The first of at(1), at(1/2), at(1/4), ... that is lower than here by a share of
    what its slope along the direction promises; None where none is.

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
