"""Validation of labels and their ranks, of weights, and of costs."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from .checks import (
    LEAST,
    MOST,
    SIMILAR,
    as_array,
    as_real_array,
    check_entries,
    check_nonnegative,
    listed,
    shown,
    string_shown,
)
from .immutable import read_only

_DROP = ": drop the rows without a label"
DROP_ARGUMENT = f"{_DROP}, or pass missing_labels='drop'"  # of training rows
_NUMBER = re.compile(r"[+-]?\d{1,300}(\.\d{1,300})?")
_LARGE = 1e300
_RATIO = 1e15  # largest ratio of weights: sums in double lose lighter rows


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
        f"(polars), or pass {argument}= with the labels {listed(by_number(known))} in "
        "rank order, the lowest first"
    )


def by_number(labels: Any) -> np.ndarray:
    """Return strings of digits in the order of their numbers, others as they are.

    The alphabet would put "10" before "9".
    """
    known = np.asarray(labels)
    texts = known.tolist()
    if not all(isinstance(text, str) and _is_number(text) for text in texts):
        return known
    return known[np.argsort([float(text) for text in texts], kind="stable")]


def _is_number(text: str) -> bool:
    """Return whether a string is the text of an integer or a decimal fraction."""
    return _NUMBER.fullmatch(text) is not None


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


def no_labels(name: str, given: str) -> ValueError:
    """Return the error for a string in place of labels, which may name a column."""
    return ValueError(f"{name} must be a sequence of labels, got {string_shown(given)}")


def read_labels(values: Any, name: str, remedy: str = _DROP) -> np.ndarray:
    """Return a 1-D array of booleans, integers, finite floats or strings.

    `remedy` ends the message about a label that is missing.
    """
    a = as_array(values, name)
    if isinstance(values, str):
        raise no_labels(name, values)
    if a.ndim != 1:
        remedy = ""
        if a.shape[1:] == (1,):
            remedy = f": {_column_remedy(values, name)}"
        elif a.shape[1:] == (2,) and name in ("y", "y_true"):
            remedy = ": two columns of first and last ranks are RankIntervals(a, b)"
        raise ValueError(f"{name} must be 1-dimensional, got shape {a.shape}{remedy}")
    if a.dtype.kind in "UT" and not isinstance(values, np.ndarray):
        # numpy turns a list such as [1, "a"] into strings: read its values instead.
        a = np.array(values, dtype=object)
    if a.dtype.kind in "OT":
        labels = a.tolist()
        # Numbers picked from an array that also holds None are still objects.
        numbers = np.array(labels if all(isinstance(v, Real) for v in labels) else "")
        is_numeric = labels and numbers.dtype.kind in "biuf"
        a = numbers if is_numeric else _as_strings(labels, name, remedy)
    if a.dtype.kind not in "biufU":
        raise _no_label(name, f"dtype {a.dtype}")
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
    if {*map(type, labels)} == {str}:
        return np.array(labels, dtype=np.str_)
    lacking = [row for row, label in enumerate(labels) if is_missing(label)]
    if lacking:
        raise ValueError(f"{name} has no label in row {lacking[0]}{remedy}")
    for row, label in enumerate(labels):
        if type(label).__name__ == "Interval":
            labels[row] = str(label)
        elif not isinstance(label, str):
            what = f"{type(label).__name__} {shown(label)} in row {row}"
            raise _no_label(name, what)
    return np.array(labels, dtype=np.str_)


def _no_label(name: str, what: str) -> TypeError:
    """Return the error for labels or categories of another type, such as dates."""
    remedy = "pass their text, as astype(str) makes it, and classes= in rank order"
    if name.startswith("the categories"):
        remedy = "make text of them, by rename_categories(str), which keeps their order"
    elif name.startswith("column"):
        remedy = "make text of them, by astype(str)"
    elif name not in ("y", "lower or upper"):
        remedy = "pass integers or text"
    return TypeError(f"{name} must hold integers or strings, got {what}: {remedy}")


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


def _column_remedy(values: Any, name: str) -> str:
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
    values = labels.tolist()
    if {*map(type, values)} <= {str, int}:
        return np.zeros(len(values), dtype=bool)
    return np.array([is_missing(label) for label in values], dtype=bool)


def rounded_labels(labels: np.ndarray) -> np.ndarray:
    """Return labels as they are printed: to six digits where these tell them apart."""
    if labels.dtype.kind != "f":
        return labels
    rounded = np.array([float(f"{label:.6g}") for label in labels.tolist()])
    return rounded if np.unique(rounded).size == labels.size else labels


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or pandas.NA."""
    is_nan = isinstance(label, float) and math.isnan(label)
    return label is None or is_nan or type(label).__name__ == "NAType"


def classes_in_rank_order(y: np.ndarray, classes: Any) -> np.ndarray:
    """Return the caller's classes, or the labels of y if their values have an order.

    For classes="values" they are the distinct numbers of y, of which there may be as
    many as rows.
    """
    by_value = is_by_value(classes)
    if isinstance(classes, str) and not by_value:
        raise ValueError(
            "classes must be labels in rank order, or 'values' for a rank per distinct "
            f"number, got {shown(classes)}"
        )
    if classes is not None and not by_value:
        classes = read_labels(classes, "classes")
        values, counts = np.unique(classes, return_counts=True)
        if values.size < classes.size:
            twice = listed(values[counts > 1])
            raise ValueError(f"classes must be distinct, got {twice} more than once")
        return read_only(classes.copy())
    if y.dtype.kind == "U":
        # Sorting strings would silently order high < low < medium.
        reason = "whose order is not known: pass classes="
        if by_value:
            reason = (
                "and classes='values' ranks numbers alone: leave it out where y is an "
                "ordered categorical, or pass classes="
            )
        raise TypeError(
            f"y holds strings, {reason} with the labels "
            f"{listed(by_number(np.unique(y)))} in rank order, the lowest first"
        )
    if y.dtype.kind == "f" and not by_value and not in_halves(y):
        row = np.flatnonzero(2 * y != np.floor(2 * y))[0]
        raise ValueError(
            f"y holds {y[row].item()} in row {row}, which is not a multiple of one "
            "half: bin it with ordinal.preprocessing.Binning, or pass classes= in rank "
            "order, or classes='values' for a rank per distinct value"
        )
    return read_only(np.unique(y))


def is_by_value(classes: Any) -> bool:
    """Return whether the caller asks for a rank per distinct number of y."""
    return isinstance(classes, str) and classes == "values"


def in_halves(y: np.ndarray) -> bool:
    """Return whether numbers are multiples of one half, such as ratings by stars."""
    return y.dtype.kind == "f" and bool((2 * y == np.floor(2 * y)).all())


def check_not_numbered(labels: np.ndarray, classes: Any) -> None:
    """Raise ValueError for numbers in the place of the strings that `classes` ranks:
    some meta-estimators replace strings by their places in alphabetical order.
    """
    if classes is None or is_by_value(classes) or labels.dtype.kind not in "iu":
        return
    words = read_labels(classes, "classes")
    if words.dtype.kind == "U":
        numbers = np.argsort(np.argsort(words)).tolist()
        raise ValueError(
            f"y holds numbers, but classes={listed(words)} are strings; a "
            "meta-estimator that numbers labels by the alphabet loses their order: "
            "label the rows by integers in rank order, as "
            "ordinal.sklearn.RankEncoder does, without classes=; or, if every fit of "
            f"the tool has numbers, pass classes={numbers}, their rank order"
        )


def ranks_of(
    y: np.ndarray, classes: np.ndarray, name: str = "y", argument: str = "classes"
) -> np.ndarray:
    """Return the position of every label among the classes, (n,) int32."""
    values, inverse = np.unique(y, return_inverse=True)
    if values.dtype == classes.dtype and np.array_equal(values, classes):
        return read_only(inverse.astype(np.int32))  # of as many ranks as rows, at once
    # Equality as in Python: exact between int64, uint64 and float64, and "1" != 1.
    known = classes.tolist()
    position = dict(zip(known, range(len(known)), strict=True))
    of_value = [position.get(label, -1) for label in values.tolist()]
    rank = np.array(of_value, dtype=np.int32)[inverse]
    bad = np.flatnonzero(rank < 0)
    if bad.size:
        named = f"{argument}{'=' if argument.isidentifier() else ', '}"
        label = y[bad[0]].item()
        raise ValueError(
            f"{name} holds {shown(label)} in row {bad[0]}, which is not "
            f"among {named}{listed(classes)}{_similar_label(label, known)}"
        )
    return read_only(rank)


def _similar_label(label: Any, known: Iterable[Any]) -> str:
    """Return the end of a message about an unknown label, if a known one is similar.

    A number is similar to its text, such as "1"; two texts may have a typing error.
    """
    by_text = {str(k).strip().casefold(): k for k in known}
    text = str(label).strip().casefold()
    texts = [t for t, k in by_text.items() if isinstance(k, str)]
    meant = [text] if text in by_text else []
    if not meant and isinstance(label, str):
        meant = get_close_matches(text, texts, n=1, cutoff=SIMILAR)
    return (
        f": if it means {shown(by_text[meant[0]])}, write both alike" if meant else ""
    )


def sample_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return the caller's weights, or ones."""
    if sample_weight is None:
        return read_only(np.ones(n))
    a = row_weights(sample_weight, n)
    if not a.any():
        raise ValueError("sample_weight must not be zero everywhere")
    return read_only(a)


def row_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return the weights of n rows, which may all be 0."""
    a = as_real_array(sample_weight, "sample_weight", (n,), " as X")
    holds = np.isfinite(a) & (a >= 0)
    check_entries("sample_weight", a, holds, "be finite and >= 0")
    return a


def shares(weight: np.ndarray) -> np.ndarray:
    """Return weights, not all 0, as shares of their sum, even if it would overflow."""
    weight = weight / weight.max()
    return np.asarray(weight / weight.sum())


def check_spread(name: str, weight: np.ndarray) -> None:
    """Raise ValueError for weights whose sums and products are unsafe in double.

    The weights are >= 0, and one or more are positive. Their sum must lie between 1e-50
    and 1e50, and positive weights must not differ by more than a factor of 1e15.
    """
    with np.errstate(over="ignore"):  # an infinite sum raises an error below
        total = weight.sum()
    if not LEAST <= total <= MOST:
        raise ValueError(
            f"the sum of {name} must be between {LEAST:g} and {MOST:g}, got {total:.3g}"
        )
    low, high = weight[weight > 0].min(), weight.max()
    if high > _RATIO * low:
        raise ValueError(
            f"{name} must not differ by more than a factor of {_RATIO:g}, got "
            f"{low:.3g} and {high:.3g}"
        )


def total_weights(
    sample_weight: np.ndarray, class_weight: Any, classes: np.ndarray, rank: np.ndarray
) -> np.ndarray:
    """Return checked weights of rows times those of their classes, (n,)."""
    check_spread("sample_weight", sample_weight)
    if class_weight is None:
        return sample_weight
    factor = class_weights(class_weight, classes, rank, sample_weight)
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        weight = read_only(sample_weight * factor[rank])
    if weight.any():
        check_spread("sample_weight times class_weight", weight)
    return weight


def class_weights(
    class_weight: Any, classes: np.ndarray, rank: np.ndarray, sample_weight: np.ndarray
) -> np.ndarray:
    """Return the weight of every class, (r,)."""
    factor = np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        held = np.bincount(rank, sample_weight, minlength=classes.size)
        present = held > 0
        with np.errstate(over="ignore", invalid="ignore"):  # seen in the product
            factor[present] = held.sum() / present.sum() / held[present]
        return factor
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a mapping from label to weight, "
            f"got {shown(class_weight)}"
        )
    position = {label: k for k, label in enumerate(classes.tolist())}
    for label, weight in class_weight.items():
        if label not in position:
            raise ValueError(
                f"class_weight names {shown(label)}, which is not among "
                f"classes={listed(classes)}"
            )
        name = f"class_weight[{shown(label)}]"
        factor[position[label]] = check_nonnegative(name, weight)
    return factor


def weights_among(classes: np.ndarray, class_weight: Any) -> Any:
    """Return `class_weight` without the labels that no row has, if it is a mapping.

    Labels of another type than the classes are left for `class_weights` to refuse.
    """
    if not isinstance(class_weight, Mapping):
        return class_weight
    kind = str if classes.dtype.kind == "U" else Real
    known = classes.tolist()
    absent = [k for k in class_weight if isinstance(k, kind) and k not in known]
    return {k: w for k, w in class_weight.items() if k not in absent}


def check_cost(cost: Any, n_classes: int) -> np.ndarray:
    """Return the cost of predicting column j for row i, (r, r), or raise.

    Parameters
    ----------
    cost : (r, r) array-like
        Zero on the diagonal, positive elsewhere; along a row it must not fall with
        the distance from the diagonal.
    n_classes : int
    """
    a = as_real_array(cost, "cost", (n_classes, n_classes))
    _every_row(np.isfinite(a), "must be finite")
    diagonal = np.eye(n_classes, dtype=bool)
    _every_row((a == 0) | ~diagonal, "must be zero on the diagonal")
    _every_row((a > 0) | diagonal, "must be positive off the diagonal")
    if n_classes > 1:
        check_spread("cost", a)
    step = np.diff(a, axis=1)
    to_the_left = np.tri(n_classes, n_classes - 1, -1, dtype=bool)
    _every_row(
        np.where(to_the_left, step <= 0, step >= 0),
        "must not fall with the distance from the diagonal",
    )
    return read_only(a)


def cost_of_decision(cost: Any, n_classes: int) -> np.ndarray:
    """Return finite costs of predicting column j for row i, (r, r), or raise.

    They may have any sign: probabilities decide by sums of them, which need no order.
    """
    a = as_real_array(cost, "cost", (n_classes, n_classes))
    _every_row(np.isfinite(a), "must be finite")
    # A sum of shares of the largest doubles must not overflow by rounding.
    return a if np.abs(a).max(initial=0.0) < _LARGE else np.ldexp(a, -8)


def optional_cost(cost: Any, n_classes: int) -> np.ndarray | None:
    """Return the cost matrix as `check_cost` does, or None without a cost."""
    return None if cost is None else check_cost(cost, n_classes)


def absolute_cost(n_classes: int) -> np.ndarray:
    """Return the absolute costs |j - k|, (r, r)."""
    rank = np.arange(float(n_classes))
    return np.abs(rank[:, None] - rank)


def _every_row(holds: np.ndarray, rule: str) -> None:
    """Raise ValueError for the first row of a cost matrix that breaks a rule."""
    bad = np.flatnonzero(~holds.all(axis=1))
    if bad.size:
        raise ValueError(f"every row of cost {rule}; row {bad[0]} breaks this")
