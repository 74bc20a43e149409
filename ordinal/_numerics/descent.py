"""Steps of descent: Armijo's rule, and factors of a matrix that is made positive."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

FALL = 1e-4  # constant of Armijo's rule
HALVINGS = 50  # limit on the halvings of a step
_RESOLVED = 1e-14  # relative change of a value that is rounding
_LONGEST = 1e6  # largest change of a parameter in one step


class Valued(Protocol):
    """Point where a function was evaluated."""

    @property
    def value(self) -> float: ...


class Evaluated(Valued, Protocol):
    """Point where a function and its gradient were evaluated."""

    @property
    def gradient(self) -> np.ndarray: ...


V = TypeVar("V", bound=Valued)
P = TypeVar("P", bound=Evaluated)
F = TypeVar("F")


def bounded_step(step: np.ndarray) -> np.ndarray:
    """Return the step, scaled to at most 1e6 in any parameter.

    Where the curvature vanishes, steps may be so long that 50 halvings do not bring
    them back to where the function is curved.
    """
    return step * min(1.0, _LONGEST / max(1.0, float(np.abs(step).max(initial=0.0))))


def halved(
    at: Callable[[float], V],
    value: float,
    slope: float,
    rounding: float = 0.0,
    settles: Callable[[V, float], Any] | None = None,
) -> tuple[V, float] | None:
    """Return the first of at(1), at(1/2), at(1/4), ... by Armijo's rule, and its size.

    The result is None if none of them satisfies it.

    Parameters
    ----------
    at : callable
        Function of the step size that returns the point there; an infinite value marks
        a point outside of the domain.
    value : float
        Value at size 0.
    slope : float < 0
        Derivative of the value by the size, at size 0.
    rounding : float, optional
        Rounding error of the value, by which it may rise.
    settles : callable, optional
        Whether a point is accepted nevertheless, given the rise of its value: near a
        minimum, where values differ by rounding only.
    """
    for halving in range(HALVINGS):
        size = 0.5**halving
        there = at(size)
        rise = there.value - value
        if rise <= FALL * size * slope + rounding:
            return there, size
        if settles is not None and settles(there, rise):
            return there, size
    return None


def armijo(at: Callable[[float], P], here: P, slope: float) -> P | None:
    """Return the point of `halved`, which gradients settle, or None.

    Parameters
    ----------
    at, slope
        As for `halved`.
    here : Evaluated
        Point of size 0.
    """
    resolved = _RESOLVED * max(1.0, abs(here.value))

    def settles(there: P, rise: float) -> bool:
        half = 0.5 * np.abs(here.gradient).max()
        return bool(rise <= resolved and np.abs(there.gradient).max() <= half)

    found = halved(at, here.value, slope, settles=settles)
    return None if found is None else found[0]


def shifted(
    factor: Callable[[float], F],
    shift: float = 0.0,
    *,
    least: float,
    growth: float,
    most: float,
) -> tuple[F, float] | None:
    """Return the factor of a matrix with the first shift that makes it positive.

    The shift multiplies a positive diagonal that `factor` adds; the second value is the
    shift. The result is None if it would exceed `most`.

    Parameters
    ----------
    factor : callable
        Factorise the matrix with a shift, or raise LinAlgError.
    shift : float, optional
        The first one.
    least, growth : float
        After each failure, the shift is multiplied by `growth`, to at least `least`.
    """
    while shift <= most:
        try:
            return factor(shift), shift
        except np.linalg.LinAlgError:
            shift = max(least, growth * shift)
    return None
