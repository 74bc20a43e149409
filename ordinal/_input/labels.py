"""Validation of labels, and their ranks."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from .checks import as_array, listed, shown
from .immutable import read_only

_DROP = ": drop the rows without a label"
DROP_ARGUMENT = f"{_DROP}, or pass missing_labels='drop'"  # of training rows


def declared_categories(y: Any, argument: str = "classes", name: str = "y") -> Any:
    """Return the rank order of a pandas Categorical or a polars Enum, or None."""
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, np.dtype):
        return None
    known = categories_of(y)
    if _is_polars_categorical(dtype):
        known = np.unique([v for v in as_array(y, name).tolist() if not is_missing(v)])
    if known is None:
        return None
    if is_ordered(dtype):
        return read_labels(known, f"the categories of {name}")
    raise TypeError(
        f"{name} is an unordered categorical: make it ordered (pandas) or an Enum "
        f"(polars), or pass {argument}= with the labels {listed(known)} in rank "
        "order, the lowest first"
    )


def categories_of(values: Any) -> Any:
    """Return the categories that the type of a vector declares, or None.

    The categories of a polars Categorical are those that this process has met so far,
    and are not declared.
    """
    dtype = getattr(values, "dtype", None)
    return None if _is_polars_categorical(dtype) else getattr(dtype, "categories", None)


def is_ordered(dtype: Any) -> bool:
    """Return whether a categorical type has its categories in rank order."""
    return type(dtype).__name__ == "Enum" or bool(getattr(dtype, "ordered", False))


def _is_polars_categorical(dtype: Any) -> bool:
    """Return whether a dtype is the Categorical of polars, which has no order."""
    return type(dtype).__name__ == "Categorical" and not hasattr(dtype, "ordered")


def read_labels(values: Any, name: str, remedy: str = _DROP) -> np.ndarray:
    """Return a 1-D array of booleans, integers, finite floats or strings.

    `remedy` ends the message about a label that is missing.
    """
    a = as_array(values, name)
    if isinstance(values, str):
        raise ValueError(
            f"{name} must be a sequence of labels, such as a column of a table, got "
            f"the string {shown(values)}"
        )
    if a.ndim != 1:
        remedy = f": {_of_column(values, name)}" if a.shape[1:] == (1,) else ""
        raise ValueError(f"{name} must be 1-dimensional, got shape {a.shape}{remedy}")
    if a.dtype.kind in "UT" and not isinstance(values, np.ndarray):
        # numpy turns a list such as [1, "a"] into strings: read its values instead.
        a = np.array(values, dtype=object)
    if a.dtype.kind in "OT":
        a = _as_strings(a.tolist(), name, remedy)
    if a.dtype.kind not in "biufU":
        raise TypeError(f"{name} must hold integers or strings, got dtype {a.dtype}")
    if a.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(a))
        if bad.size:
            value = a[bad[0]].item()
            raise ValueError(
                f"{name} holds {value} in row {bad[0]}"
                f"{remedy if math.isnan(value) else ''}"
            )
    return a


def _as_strings(labels: list[Any], name: str, remedy: str) -> np.ndarray:
    """Return strings, and intervals of pandas as their text; raise for other labels."""
    lacking = [row for row, label in enumerate(labels) if is_missing(label)]
    if lacking:
        raise ValueError(f"{name} has no label in row {lacking[0]}{remedy}")
    for row, label in enumerate(labels):
        if type(label).__name__ == "Interval":
            labels[row] = str(label)
        elif not isinstance(label, str):
            raise TypeError(
                f"{name} must hold integers or strings, got "
                f"{type(label).__name__} {shown(label)} in row {row}"
            )
    return np.array(labels, dtype=np.str_)


def label_text(label: Any) -> str:
    """Return a label as text; 1.0, Decimal("1.0") and 1 are the same."""
    if isinstance(label, Decimal) and label.is_finite():
        whole = label == label.to_integral_value()
        return str(int(label) if whole else float(label))
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if whole else label)


def level_places(values: Iterable[Any], levels: Sequence[Any]) -> dict[Any, float]:
    """Return the places of values among the levels of a column, by value.

    Values that are no level are left out. A value is equal to a level if Python says so
    or, because columns come as numbers from one file and as strings from another, if
    both are the same text: 2, 2.0 and "2", but not "02".
    """
    own = {level: float(k) for k, level in enumerate(levels)}
    texts = [label_text(level) for level in levels]
    by_text = dict(zip(texts, own.values(), strict=True))
    if len(by_text) < len(texts):  # levels 2 and "2" differ
        by_text = {}
    found = {}
    for value in values:
        place = own.get(value)
        if place is None and not is_missing(value):
            place = by_text.get(label_text(value))
        if place is not None:
            found[value] = place
    return found


def _of_column(values: Any, name: str) -> str:
    """Return how to get the labels out of a table or matrix of one column."""
    table = type(values)  # `columns` of a table of pyarrow are values
    by_name = "column_names" if hasattr(table, "column_names") else "columns"
    columns = getattr(values, by_name, None)
    if columns is not None:
        return f"pass its column, {name}[{shown(next(iter(columns)))}]"
    return f"pass {name}.ravel()" if hasattr(values, "ravel") else "pass one label each"


def lacks_label(labels: np.ndarray) -> np.ndarray:
    """Return whether each entry of a vector is missing, (n,); of no other array is."""
    if labels.ndim != 1 or labels.dtype.kind not in "fOT":
        return np.zeros(len(labels) if labels.ndim else 0, dtype=bool)
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    return np.array([is_missing(label) for label in labels.tolist()], dtype=bool)


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or pandas.NA."""
    is_nan = isinstance(label, float) and math.isnan(label)
    return label is None or is_nan or type(label).__name__ == "NAType"


def classes_in_rank_order(y: np.ndarray, classes: Any) -> np.ndarray:
    """Return the caller's classes, or the labels of y if their values have an order."""
    if classes is not None:
        classes = read_labels(classes, "classes")
        values, counts = np.unique(classes, return_counts=True)
        if values.size < classes.size:
            twice = listed(values[counts > 1])
            raise ValueError(f"classes must be distinct, got {twice} more than once")
        return read_only(classes.copy())
    if y.dtype.kind == "U":
        # Sorting strings would silently order high < low < medium.
        raise TypeError(
            "y holds strings, whose order is not known: pass classes= with the labels "
            f"{listed(np.unique(y))} in rank order, the lowest first"
        )
    if y.dtype.kind == "f" and not in_halves(y):
        row = np.flatnonzero(2 * y != np.floor(2 * y))[0]
        raise ValueError(
            f"y holds {y[row].item()} in row {row}, which is no multiple of one half: "
            "bin it with ordinal.preprocessing.Binning, or pass classes= in rank order"
        )
    return read_only(np.unique(y))


def in_halves(y: np.ndarray) -> bool:
    """Return whether numbers are multiples of one half, such as ratings by stars."""
    return y.dtype.kind == "f" and bool((2 * y == np.floor(2 * y)).all())


def check_not_numbered(labels: np.ndarray, classes: Any) -> None:
    """Raise ValueError for numbers in the place of the strings that `classes` ranks:
    some meta-estimators replace strings by their places in alphabetical order.
    """
    if classes is None or labels.dtype.kind not in "iu":
        return
    words = read_labels(classes, "classes")
    if words.dtype.kind == "U":
        numbers = np.argsort(np.argsort(words)).tolist()
        raise ValueError(
            f"y holds numbers, but classes={listed(words)} are strings; a "
            "meta-estimator that numbers labels by the alphabet loses their order: "
            f"pass classes={numbers}, which is the rank order in its numbers, or "
            "label the rows by integers in rank order"
        )


def ranks_of(
    y: np.ndarray, classes: np.ndarray, name: str = "y", argument: str = "classes"
) -> np.ndarray:
    """Return the position of every label among the classes, (n,) int32."""
    # Equality as in Python: exact between int64, uint64 and float64, and "1" != 1.
    position = {label: k for k, label in enumerate(classes.tolist())}
    values, inverse = np.unique(y, return_inverse=True)
    of_value = [position.get(label, -1) for label in values.tolist()]
    rank = np.array(of_value, dtype=np.int32)[inverse]
    bad = np.flatnonzero(rank < 0)
    if bad.size:
        named = f"{argument}{'=' if argument.isidentifier() else ', '}"
        raise ValueError(
            f"{name} holds {shown(y[bad[0]].item())} in row {bad[0]}, which is not "
            f"among {named}{listed(classes)}"
        )
    return read_only(rank)
