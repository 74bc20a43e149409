"""Rules for the fields of records, declared in annotations and checked on loading.

    coef: Annotated[np.ndarray, Array("f8", "m r"), FINITE]

An annotation has the type, and as metadata the dtype, shape and rules of the values.
Sizes have names. Within one object, equal names are equal sizes, and "r-1" is one less
than "r", so that arrays that do not fit together are detected. A record annotated with
`SHARED` shares the names of sizes with the object that holds it.
"""

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import shown

SHARED = "its sizes are those of the object that holds it"
LABELS = "biufU"  # kinds of dtype: booleans, numbers, strings
_Sizes = dict[str, int]


class Array(NamedTuple):
    """Array of one dtype, such as "f8", or of one of several kinds, such as "iu".

    Names of its sizes are separated by spaces; "_" allows any size.
    """

    dtype: str
    shape: str


class Length(NamedTuple):
    """Sequence or matrix with a given number of items or rows."""

    size: str


class Size(NamedTuple):
    """Number that is a size of arrays."""

    size: str


class Rule(NamedTuple):
    """Rule for the values of a field, with its statement for messages."""

    says: str
    holds: Callable[[np.ndarray], Any]


def _is_threshold_like(a: np.ndarray) -> bool:
    """Return whether an array is finite apart from infinite thresholds at its ends."""
    inner = np.flatnonzero(np.isfinite(a))
    if not inner.size:
        return False
    first, end = inner[0], inner[-1] + 1
    return bool(
        inner.size == end - first
        and (a[:first] == -np.inf).all()
        and (a[end:] == np.inf).all()
    )


FINITE = Rule("be finite", lambda a: a.dtype.kind == "U" or np.isfinite(a))
NOT_NAN = Rule("not be NaN", lambda a: ~np.isnan(a))
POSITIVE = Rule("be positive", lambda a: a > 0)
NONNEGATIVE = Rule("be >= 0", lambda a: a >= 0)
RISING = Rule("not fall", lambda a: a[:-1] <= a[1:])
INCREASING = Rule("increase", lambda a: a[:-1] < a[1:])
DISTINCT = Rule("be distinct", lambda a: np.unique(a).size == a.size)
THRESHOLDS = Rule(
    "be finite but for -inf at the low end and inf at the high end", _is_threshold_like
)


def finite_or(absent: float) -> Rule:
    """Return the rule for one number per rank, which is `absent` for absent ranks."""

    def holds(a: np.ndarray) -> bool:
        known = np.isfinite(a)
        return bool(known.any() and (known | (a == absent)).all())

    return Rule(f"be finite somewhere, and elsewhere {absent}", holds)


def field_values(made: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without copies.

    `asdict` would copy them.
    """
    return {f.name: getattr(made, f.name) for f in dataclasses.fields(made)}


def check_fields(cls: type, values: Mapping[str, Any]) -> None:
    """Raise unless these values are valid for the fields of a dataclass.

    Raises
    ------
    TypeError
        If a value does not have the type of its field.
    ValueError
        If a value has another dtype or size, or breaks a rule.
    """
    _check_fields(cls, values, {})


def _check_fields(cls: type, values: Mapping[str, Any], sizes: _Sizes) -> None:
    """Check values as `check_fields` does, given sizes that are known already."""
    hints = _hints(cls)
    for name, value in values.items():
        _check(value, hints[name], f"{cls.__name__}.{name}", sizes)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


def _check(value: Any, hint: Any, where: str, sizes: _Sizes) -> None:
    """Check a value against an annotation, and note the sizes that it determines."""
    hint = _alternative(value, hint)
    if hint is None:
        raise TypeError(f"{where} cannot be of type {type(value).__name__}")
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        _check(value, args[0], where, sizes)
        for declared in hint.__metadata__:
            _check_metadata(value, declared, where, sizes)
    elif origin is dict:
        for key, item in value.items():
            _check(item, args[1], f"{where}[{shown(key)}]", sizes)
    elif origin is tuple and Ellipsis not in args:
        if len(value) != len(args):
            raise ValueError(f"{where} must have {len(args)} items, got {len(value)}")
        for i, (item, of) in enumerate(zip(value, args, strict=True)):
            _check(item, of, f"{where}[{i}]", sizes)
    elif origin in (list, tuple):
        for i, item in enumerate(value):
            _check(item, args[0], f"{where}[{i}]", sizes)


def _alternative(value: Any, hint: Any) -> Any:
    """Return the annotation, or the alternative in it that fits the type of the value.

    Return None if there is none.
    """
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        suited = (_alternative(value, arg) for arg in typing.get_args(hint))
        return next((arg for arg in suited if arg is not None), None)
    return hint if _is_of(value, hint) else None


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value has the annotated type; its contents are not checked."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is typing.Annotated:
        return _alternative(value, args[0]) is not None
    if origin is typing.Literal:
        return type(value) in map(type, args) and value in args
    if getattr(hint, "_is_protocol", False):  # kernels: isinstance needs @runtime
        return callable(value)
    if hint in (int, float) and type(value) is int:
        return hint is int or abs(value) < 2**1023  # of which a float can be made
    return isinstance(value, origin or hint) and not (
        hint is int and isinstance(value, bool)
    )


def _check_metadata(value: Any, declared: Any, where: str, sizes: _Sizes) -> None:
    """Check dtype, shape and rules of a value that has the right type."""
    if isinstance(declared, Array):
        _check_array(value, declared, where, sizes)
    elif isinstance(declared, Length):
        _note(declared.size, len(value), f"{where} has {len(value)} items", sizes)
    elif isinstance(declared, Size):
        _note(declared.size, value, f"{where} is {value}", sizes)
    elif isinstance(declared, Rule):
        if not np.all(declared.holds(np.asarray(value))):
            got = f", got {shown(value)}" if isinstance(value, int | float) else ""
            raise ValueError(f"{where} must {declared.says}{got}")
    elif declared is SHARED:
        _check_fields(type(value), field_values(value), sizes)


def _check_array(a: np.ndarray, declared: Array, where: str, sizes: _Sizes) -> None:
    """Check the dtype and the shape of an array."""
    by_kind = declared.dtype.isalpha()
    if (a.dtype.kind not in declared.dtype) if by_kind else (a.dtype != declared.dtype):
        wanted = "a kind in " * by_kind + repr(declared.dtype)
        raise ValueError(f"{where} must have dtype {wanted}, got {a.dtype}")
    names = declared.shape.split()
    if a.ndim != len(names):
        raise ValueError(
            f"{where} must have the shape ({', '.join(names)}), got {a.shape}"
        )
    for size, found in zip(names, a.shape, strict=True):
        _note(size, found, f"{where} has the shape {a.shape}", sizes)


def _note(size: str, found: int, what: str, sizes: _Sizes) -> None:
    """Note a size under its name, or compare it with the size noted before."""
    if size == "_":
        return
    name, offset = re.fullmatch(r"(\w+?)([+-]\d+)?", size).groups()  # type: ignore[union-attr]
    implied = found - int(offset or 0)
    known = sizes.setdefault(name, implied)
    if not 0 <= known == implied:
        raise ValueError(f"{what}, which makes {name} {implied}, elsewhere {known}")
