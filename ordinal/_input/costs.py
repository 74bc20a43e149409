"""Cost matrices: what it costs to predict one rank for a row of another."""

from typing import Any

import numpy as np

from .checks import as_real_array
from .sparse import read_only
from .weights import check_spread


def check_cost(cost: Any, n_classes: int, convex: bool = False) -> np.ndarray:
    """Return the cost of predicting column j for row i, (r, r), or raise.

    Parameters
    ----------
    cost : (r, r) array-like
        Zero on the diagonal, positive elsewhere; along a row it must not fall with
        the distance from the diagonal.
    n_classes : int
    convex : bool
        Whether the rows must be convex too.
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
    if convex:
        # a row such as 0.1 * |i - j| is convex up to the rounding of its entries
        rounding = 4 * np.finfo(float).eps * a.max(axis=1, keepdims=True, initial=0)
        _every_row(np.diff(step, axis=1) >= -rounding, "must be convex")
    return read_only(a)


def optional_cost(cost: Any, n_classes: int) -> np.ndarray | None:
    """Return what `check_cost` returns, or None without a cost."""
    return None if cost is None else check_cost(cost, n_classes)


def absolute_cost(n_classes: int) -> np.ndarray:
    """Return the absolute costs |j - k|, (r, r)."""
    rank = np.arange(float(n_classes))
    return np.abs(rank[:, None] - rank)


def _every_row(holds: np.ndarray, rule: str) -> None:
    bad = np.flatnonzero(~holds.all(axis=1))
    if bad.size:
        raise ValueError(f"every row of cost {rule}; row {bad[0]} breaks this")
