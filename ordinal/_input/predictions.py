"""Arguments of the metrics, and scores of methods on folds and data sets."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from .checks import as_real_array, can_be_listed, check_entries, listed, shown
from .columns import warn_of_other_order
from .intervals import RankIntervals
from .labels import (
    by_number,
    declared_categories,
    is_ordered,
    ranks_of,
    read_labels,
    sample_weights,
)

# Metrics that score a prediction by the nearest rank of an interval, or a probability
# by what is known of the rank
OF_SETS = ("mze", "accuracy", "mae", "accuracy_off", "rps", "log_loss")


def read_ranks(
    y_true: ArrayLike | RankIntervals,
    y_pred: ArrayLike,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
    sets: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return true ranks, predicted ranks, weights and labels of a metric.

    The ranks are (n,) int64. The weights lie in [0, 1], and the largest is exactly 1.
    The labels are in rank order.

    With `sets`, true labels may be intervals: their true ranks are those of the
    interval that are nearest to the predicted ones.
    """
    warn_of_other_order(y_true, "y_true", y_pred=y_pred, sample_weight=sample_weight)
    intervals = y_true if isinstance(y_true, RankIntervals) else None
    if intervals is not None:
        _check_sets(sets)
    if labels is None:
        labels = _declared(y_true, y_pred)
    y_true = y_true if intervals is None else intervals.ends
    y_true, y_pred = read_labels(y_true, "y_true"), read_labels(y_pred, "y_pred")
    n = y_true.size if intervals is None else len(intervals)
    if n != y_pred.size:
        raise ValueError(
            f"y_true has {n} rows and y_pred {y_pred.size}; they must match"
        )
    if n == 0:
        raise ValueError("y_true must not be empty")
    text = y_true.dtype.kind == "U"
    if text != (y_pred.dtype.kind == "U"):
        raise TypeError("y_true and y_pred must both hold numbers or both strings")
    if labels is None:
        if text:
            raise TypeError(
                "y_true holds strings, whose order is not known: pass labels= with the "
                f"labels {listed(by_number(np.union1d(y_true, y_pred)))} in "
                "rank order, the lowest first"
            )
        labels = np.union1d(y_true, y_pred)
    else:
        labels = read_labels(labels, "labels")
        if text != (labels.dtype.kind == "U"):
            raise TypeError("labels must be of the same kind as y_true")
        if labels.size == 0 or np.unique(labels).size < labels.size:
            raise ValueError(
                f"labels must be distinct and not empty, got {listed(labels)}"
            )
    weight = sample_weights(sample_weight, n)
    if intervals is None:
        ends = (ranks_of(y_true, labels, "y_true", "labels"),) * 2
    else:
        ends = intervals.ranks(labels, "y_true", "labels")
    p = ranks_of(y_pred, labels, "y_pred", "labels").astype(np.int64)
    return (
        np.clip(p, *ends).astype(np.int64),
        p,
        weight / weight.max(),  # so that no sum of weights overflows
        labels,
    )


def _declared(y_true: ArrayLike | RankIntervals, y_pred: ArrayLike) -> ArrayLike | None:
    """Return the categories of y_true or, if it declares none, of an ordered y_pred."""
    known: ArrayLike | None
    if isinstance(y_true, RankIntervals):
        known = y_true.declared
    else:
        known = declared_categories(y_true, "labels", "y_true")
    if known is None and is_ordered(getattr(y_pred, "dtype", None)):
        known = declared_categories(y_pred, "labels", "y_pred")
    return known


def _check_sets(sets: bool) -> None:
    """Raise TypeError for intervals where a metric needs the rank of each row."""
    if not sets:
        raise TypeError(
            "y_true holds RankIntervals, and this metric needs the rank of each row: "
            f"take one of {', '.join(OF_SETS)}, or the rows y_true.is_known"
        )


def read_distances(
    y_true: ArrayLike | RankIntervals,
    y_pred: ArrayLike,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
    sets: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the error of every prediction, (n,) float64, true ranks and weights.

    Errors are in ranks if `labels` gives their order, and otherwise differences of
    numbers.
    """
    if labels is None:
        labels = _declared(y_true, y_pred)
    a, p, weight, known = read_ranks(y_true, y_pred, labels, sample_weight, sets)
    if labels is not None:
        return np.abs(a - p).astype(np.float64), a, weight
    least, most = known[0].item(), known[-1].item()
    if not math.isfinite(a.size * (float(most) - float(least))):
        raise ValueError(
            f"y_true and y_pred hold {least} and {most}, whose distances are too "
            "large to be summed: pass labels= to count ranks instead"
        )
    # Differences of integers are exact modulo 2^64.
    known = known.astype(np.float64 if known.dtype.kind == "f" else np.uint64)
    distance = known[np.maximum(a, p)] - known[np.minimum(a, p)]
    return distance.astype(np.float64), a, weight


def read_probabilities(
    y_true: ArrayLike | RankIntervals,
    proba: ArrayLike,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """Read first and last true ranks, (n,) each, probabilities (n, r), weights (n,)."""
    warn_of_other_order(y_true, "y_true", proba=proba)
    if isinstance(y_true, RankIntervals):
        known = y_true.classes(labels)
        a, last = y_true.ranks(known, "y_true", "labels")
        weight, labels = sample_weights(sample_weight, a.size), known
    else:
        a, last, weight, labels = read_ranks(y_true, y_true, labels, sample_weight)
    whose = f" for the rows of y_true and labels={listed(labels)}"
    P = as_real_array(proba, "proba", (a.size, labels.size), whose)
    check_entries("proba", P, P >= 0, "be >= 0")
    with np.errstate(over="ignore"):  # an infinite sum raises an error below
        total = P.sum(axis=1)
    check_entries("rows of proba", total, abs(total - 1) <= 1e-3, "sum to 1")
    return (a, last), P, weight


def score_tables(scores: Iterable[ArrayLike], least: int = 2) -> list[np.ndarray]:
    """Return tables of scores, (n_folds, k), all with the same k >= `least`."""
    if not can_be_listed(scores):
        raise TypeError(f"scores must be a sequence of tables, got {shown(scores)}")
    tables = [scores_of(table, f"scores[{i}]", 2) for i, table in enumerate(scores)]
    if not tables:
        raise ValueError("scores must not be empty")
    k = tables[0].shape[1]
    for i, table in enumerate(tables):
        if table.shape[1] != k or k < least or len(table) == 0:
            raise ValueError(
                f"scores[{i}] must have a row or more and a column for each of "
                f"{max(k, least)} methods, got shape {table.shape}"
            )
    return tables


def scores_of(values: ArrayLike, name: str, ndim: int) -> np.ndarray:
    """Return a vector or matrix of finite scores, float64."""
    a = as_real_array(values, name)
    if a.ndim != ndim:
        raise ValueError(f"{name} must be {ndim}-dimensional, got shape {a.shape}")
    check_entries(name, a, np.isfinite(a), "be finite")
    return a


def values_of(values: ArrayLike, name: str, columns: int) -> np.ndarray:
    """Validate a `decision_function`: a real matrix of `columns` columns."""
    a = as_real_array(values, name)
    if a.ndim != 2 or a.shape[1] != columns:
        raise ValueError(f"{name} has shape {a.shape}, expected (n, {columns})")
    return a


def class_means(values: np.ndarray, a: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted mean in each class of y_true, in rank order."""
    total = np.bincount(a, weight)
    present = total > 0
    return np.asarray(np.bincount(a, weight * values)[present] / total[present])
