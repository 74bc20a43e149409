"""How far predicted ranks are from the true ones.

With a_i and p_i the ranks of row i's true and predicted label, w_i its weight and
W = sum_i w_i:

    mze = 1/W sum_i w_i [a_i != p_i]         mean zero-one error
    mae = 1/W sum_i w_i |a_i - p_i|          mean absolute error

A rank is a position in `labels`: only the order of the labels counts, never the
distance between them. Every metric takes (y_true, y_pred, *, labels, sample_weight).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._problem import _categories, _labels, _listed, _sample_weights


def mze(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean zero-one error: the weighted share of rows with a wrong label.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels : (r,) array_like, optional
        Every label in rank order; may name labels that neither array holds. By
        default the categories of `y_true`, if it is an ordered pandas Categorical or
        a polars Enum, else the sorted union of both arrays. Strings have no default:
        alphabetical order is seldom the one that is meant.
    sample_weight : (n,) array_like, optional
        Weights >= 0, not all 0; by default every row counts once.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError
        Strings without `labels`, numbers compared with strings, or other objects.
    ValueError
        Empty or unequal arrays, a label outside `labels`, a NaN, a bad weight.

    Examples
    --------
    >>> mze([1, 2, 3, 3], [1, 2, 3, 1])
    0.25
    """
    a, p, weight, _ = _ranks(y_true, y_pred, labels, sample_weight)
    return float(np.average(a != p, weights=weight))


def mae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean absolute error: by how many ranks predictions miss on average.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels : (r,) array_like, optional
        As for `mze`. Give it wherever a label might occur in neither array: the
        default cannot know the ranks in between, so 1 predicted as 3 is then a miss
        by one rank, not by two.
    sample_weight : (n,) array_like, optional
        As for `mze`.

    Returns
    -------
    float in [0, r - 1]

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    Examples
    --------
    >>> mae(["low", "mid"], ["high", "mid"], labels=["low", "mid", "high"])
    1.0
    """
    a, p, weight, _ = _ranks(y_true, y_pred, labels, sample_weight)
    return float(np.average(np.abs(a - p), weights=weight))


class _Ranks(NamedTuple):
    true: np.ndarray  # (n,) int64, values 0..r-1
    pred: np.ndarray  # (n,) int64, values 0..r-1
    weight: np.ndarray  # (n,) float64 in [0, 1], the largest exactly 1
    labels: np.ndarray  # (r,) in rank order


def _ranks(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> _Ranks:
    """Validate the arguments that every metric shares."""
    if labels is None:
        labels = _categories(y_true)
    y_true, y_pred = _labels(y_true, "y_true"), _labels(y_pred, "y_pred")
    if y_true.size != y_pred.size:
        raise ValueError(
            f"y_true has {y_true.size} rows and y_pred {y_pred.size}; they must match"
        )
    if y_true.size == 0:
        raise ValueError("y_true and y_pred must not be empty")
    text = y_true.dtype.kind == "U"
    if text != (y_pred.dtype.kind == "U"):
        raise TypeError("y_true and y_pred must both hold numbers or both strings")
    if labels is None:
        if text:
            raise TypeError(
                "y_true holds strings, whose order is not known: pass "
                f"labels={_listed(np.union1d(y_true, y_pred))} in rank order"
            )
        labels = np.union1d(y_true, y_pred)
    else:
        labels = _labels(labels, "labels")
        if text != (labels.dtype.kind == "U"):
            raise TypeError("labels must be of the same kind as y_true and y_pred")
        if labels.size == 0 or np.unique(labels).size < labels.size:
            raise ValueError(
                f"labels must be distinct and not empty, got {_listed(labels)}"
            )
    weight = _sample_weights(sample_weight, y_true.size)
    return _Ranks(
        _positions("y_true", y_true, labels),
        _positions("y_pred", y_pred, labels),
        weight / weight.max(),  # so that no sum of weights overflows
        labels,
    )


def _positions(name: str, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    order = np.argsort(labels)
    nearest = np.searchsorted(labels, values, sorter=order)
    position = order[np.minimum(nearest, labels.size - 1)]
    unknown = np.flatnonzero(labels[position] != values)
    if unknown.size:
        row = unknown[0]
        raise ValueError(
            f"{name} holds {values[row].item()!r} in row {row}, which is not among "
            f"labels={_listed(labels)}"
        )
    return position
