"""Points of a search: how they are told apart, put in order and shown."""

from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .._input.checks import shown

Point = dict[str, Any]  # values by the name of their argument

_FIRST = ("C", "C2", "gamma")  # arguments that decide first between equals


def point_key(point: Point, without: Sequence[str] = ()) -> Hashable:
    """Return a key that equal points share, ignoring some arguments."""
    return tuple(
        sorted((k, value_key(v)) for k, v in point.items() if k not in without)
    )


def value_key(value: Any) -> tuple[str, Hashable]:
    """Return a value to compare by: 1, 1.0 and True differ; a list or array is only
    itself.
    """
    try:
        hash(value)
    except TypeError:
        return type(value).__name__, id(value)
    return type(value).__name__, value


def in_order_of_ties(points: Sequence[Point], numbers: Sequence[int]) -> list[int]:
    """Sort points by the rule for equal scores.

    Least C comes first, then least gamma, then the other arguments in the order in
    which they came; values that are not numbers count by that order, too.
    """
    names = list(dict.fromkeys(name for point in points for name in point))
    first = [name for name in _FIRST if name in names]
    names = [*first, *(name for name in names if name not in first)]
    seen: dict[Hashable, int] = {}

    def place(number: int) -> list[tuple[int, Any]]:
        values = (points[number].get(name) for name in names)
        return [
            (0, value)
            if isinstance(value, Real) and not isinstance(value, bool)
            else (1, seen.setdefault(value_key(value), len(seen)))
            for value in values
        ]

    places = [place(number) for number in range(len(points))]
    return sorted(numbers, key=lambda number: places[number])


def columns_of(points: Sequence[Point]) -> dict[str, np.ndarray]:
    """Return an array for every argument; None where a point does not have it."""
    names = dict.fromkeys(name for point in points for name in point)
    return {name: _column([point.get(name) for point in points]) for name in names}


def described(point: Point) -> str:
    """Return the point in a line, such as "C=0.1, gamma=2"."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={shown(value)}"
        for name, value in point.items()
    )


def _column(values: list[Any]) -> np.ndarray:
    """Numbers or strings as such, anything else as objects."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds == {str}:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
