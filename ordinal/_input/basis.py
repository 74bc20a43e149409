"""`basis=`: the rows that carry a model of low rank."""

import numbers
from typing import Any

import numpy as np

from .checks import as_array, check_count, check_real, shown


def read_basis(basis: Any, n: int) -> int | float | np.ndarray:
    """A checked `basis` for n rows: a count, a share in (0, 1], or the increasing
    numbers of rows, (m,). A ValueError says what else it is."""
    if not isinstance(basis, numbers.Real) or isinstance(basis, bool):
        return _row_numbers(basis, n)
    if isinstance(basis, numbers.Integral):
        return check_count("basis", basis)
    return check_real("basis as a share", basis, lambda v: 0 < v <= 1, "in (0, 1]")


def _row_numbers(basis: Any, n: int) -> np.ndarray:
    rows = as_array(basis, "basis")
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError(
            "basis must be a count, a share of the rows or a vector of row numbers, "
            f"got {shown(basis)}"
        )
    bad = np.flatnonzero((rows < 0) | (rows >= n))
    if bad.size:
        raise ValueError(f"basis names row {rows[bad[0]]}, X has {n} rows")
    values, counts = np.unique(rows, return_counts=True)
    if values.size < rows.size:
        raise ValueError(f"basis names row {values[counts > 1][0]} more than once")
    return values.astype(np.intp)
