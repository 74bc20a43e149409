"""Weights of rows and of classes, and costs of predicting a rank for another one."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from .checks import (
    LEAST,
    MOST,
    as_real_array,
    check_entries,
    check_nonnegative,
    listed,
    shown,
)
from .immutable import read_only

_LARGE = 1e300
_RATIO = 1e15  # largest ratio of weights: sums in double lose lighter rows


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
