"""Scores of methods on folds and data sets become arrays."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from .checks import as_real_array, can_be_listed, check_entries, shown


def score_tables(scores: Iterable[ArrayLike]) -> list[np.ndarray]:
    """Return the (n_folds, k) tables of scores, all of the same k >= 2."""
    if not can_be_listed(scores):
        raise TypeError(f"scores must be a sequence of tables, got {shown(scores)}")
    tables = [scores_of(table, f"scores[{i}]", 2) for i, table in enumerate(scores)]
    if not tables:
        raise ValueError("scores must not be empty")
    k = tables[0].shape[1]
    for i, table in enumerate(tables):
        if table.shape[1] != k or k < 2 or len(table) == 0:
            raise ValueError(
                f"scores[{i}] must have a row or more and a column for each of "
                f"{max(k, 2)} methods, got shape {table.shape}"
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
