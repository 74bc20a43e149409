"""Arguments that are numbers, choices, flags or generators: a bad one is a ValueError,
whatever its type, that names the argument, the rule and the value."""

from __future__ import annotations  # numpy.random is slow to import

import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


def check_positive(**values: Any) -> None:
    _check(values, lambda v: 0 < as_real(v) < math.inf, "a positive finite number")


def check_nonnegative(**values: Any) -> None:
    _check(values, lambda v: 0 <= as_real(v) < math.inf, "a finite number >= 0")


def check_share(**values: Any) -> None:
    _check(values, lambda v: 0 < as_real(v) < 1, "a number between 0 and 1")


def check_count(least: int = 1, /, **values: Any) -> None:
    rule = "a positive integer" if least == 1 else f"an integer >= {least}"
    # below what a kernel's counter can hold
    _check(values, lambda v: _is_whole(v) and least <= v < 2**63, rule)


def check_flag(**values: Any) -> None:
    _check(values, lambda v: isinstance(v, bool | np.bool_), "True or False")


def check_choice(name: str, value: Any, allowed: Iterable[str | None]) -> None:
    allowed = list(allowed)
    if not (value is None or isinstance(value, str)) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")


def resolve_rng(rng: Any) -> np.random.Generator:
    """A Generator from itself, a seed, or None for one the system chooses."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if not _is_whole(rng) or rng < 0:
        raise ValueError(
            f"rng must be None, an integer >= 0 or a numpy Generator, got {rng!r}"
        )
    return np.random.default_rng(int(rng))


def as_real(value: Any) -> float:
    """The value of a real number; NaN, which no rule accepts, for anything else."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def as_array(values: Any, name: str) -> np.ndarray:
    """np.asarray that names the argument and does not drop a mask."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: fill or drop what it masks")
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{name} is not an array: {error}") from error


def as_real_array(
    values: Any, name: str, shape: tuple[int, ...] | None = None, of: str = ""
) -> np.ndarray:
    """An array of real numbers, of the shape if one is given; `of` says whose it is."""
    a = as_array(values, name)
    if a.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {a.dtype}")
    if shape is not None and a.shape != shape:
        raise ValueError(f"{name} has shape {a.shape}, expected {shape}{of}")
    return a


def check_entries(name: str, a: np.ndarray, holds: np.ndarray, rule: str) -> None:
    """Raise ValueError for the first entry of a vector or matrix that breaks a rule."""
    bad = np.argwhere(~holds)
    if bad.size:
        place = zip(("row", "column"), bad[0], strict=False)
        raise ValueError(
            f"{name} must {rule}, got {a[tuple(bad[0])]} in "
            f"{', '.join(f'{line} {k}' for line, k in place)}"
        )


def listed(labels: Iterable[Any], at_most: int = 10) -> str:
    """The labels as a list to paste, cut short."""
    shown = [repr(label) for label in np.asarray(labels).tolist()]
    return f"[{', '.join(shown[:at_most] + ['...'] * (len(shown) > at_most))}]"


def _check(values: dict[str, Any], holds: Callable[[Any], bool], rule: str) -> None:
    for name, value in values.items():
        if not holds(value):
            raise ValueError(f"{name} must be {rule}, got {value!r}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
