"""Tables of true and predicted ranks, and sums of them that metrics share."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._input.predictions import read_ranks


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Weighted mean; values in rows without weight may be infinite."""
    rows = weight > 0
    return float(values[rows] @ weight[rows] / weight.sum())


def rank_table(*arguments: Any) -> np.ndarray:
    """C of the module's docstring in a unit that does not overflow."""
    a, p, weight, labels = read_ranks(*arguments)
    return counted(a, p, weight, labels.size)


def counted(
    a: np.ndarray, p: np.ndarray, weight: ArrayLike | None, r: int
) -> np.ndarray:
    return np.bincount(a * r + p, weight, minlength=r * r).reshape(r, r)


def below_less_above(x: np.ndarray) -> np.ndarray:
    """sum_l sgn(j - l) x_l along the first axis."""
    return np.asarray(2 * np.cumsum(x, axis=0) - x - x.sum(axis=0))


def distances_of_ranks(r: int) -> np.ndarray:
    """Return the absolute costs |j - k|, (r, r)."""
    return np.abs(np.subtract.outer(np.arange(r), np.arange(r)))


def ratio(a: float, b: float) -> float:
    return float(a / b) if b > 0 else float("nan")
