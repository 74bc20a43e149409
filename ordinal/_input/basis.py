"""Validation of the argument `basis=`: the basis rows, or the way to choose them."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import as_array, check_choice, check_count, check_real, check_share, shown
from .features import read_features
from .sparse import is_sparse

WAYS = "random", "kmeans++", "cholesky"  # ways to choose a number of rows


@dataclass(frozen=True, slots=True, eq=False)
class BasisChoice:
    """Choice of a basis.

    Attributes
    ----------
    way : str
        One of WAYS, "numbers" or "own" for `rows`, "auto", or "columns" for the unit
        vectors, which a linear kernel has for a basis.
    m : int
        Number of rows, for WAYS without `left`.
    left : float or None
        For "cholesky": the share of the trace of the kernel matrix that may remain.
    rows : (m,) row numbers, (m, d) matrix or None
    seed : int
        Draws rows, and samples of the rows of a fit.
    """

    way: str
    m: int = 0
    left: float | None = None
    rows: Any = None
    seed: int = 0


def read_choice(basis: Any, n: int, d: int, share_of: int | None = None) -> BasisChoice:
    """Return the checked `basis` of a fit to n rows of d columns.

    A float is a share of the trace of the kernel matrix or, if `share_of` is given, a
    share of so many rows. Raises ValueError or TypeError for an invalid value.
    """
    if isinstance(basis, str):
        check_choice("basis as a word", basis, ("auto",))
        return BasisChoice("auto")
    if isinstance(basis, tuple) and len(basis) == 2 and isinstance(basis[0], str):
        check_choice("basis[0]", basis[0], WAYS)
        return BasisChoice(basis[0], check_count("basis[1]", basis[1]))
    if is_sparse(basis) or _has_two_dimensions(basis):
        rows = read_features(basis, name="basis")
        if rows.shape[1] != d:
            raise ValueError(
                f"basis must have the columns of X: it has {rows.shape[1]}, and X has "
                f"{d}"
            )
        # The model keeps these rows, so they must not share memory with the caller's.
        return BasisChoice("own", rows=rows.copy())
    if isinstance(basis, numbers.Real) and not isinstance(basis, numbers.Integral):
        if share_of is not None:
            return BasisChoice("random", max(1, round(_share(basis) * share_of)))
        left = check_share("basis as a part of the trace", basis)
        return BasisChoice("cholesky", left=left)
    if isinstance(basis, numbers.Integral) and not isinstance(basis, bool):
        return BasisChoice("random", check_count("basis", basis))
    part = "a part of the trace" if share_of is None else "a share of the rows"
    rule = f"a count, {part}, 'auto', (way, count), row numbers or rows"
    return BasisChoice("numbers", rows=_row_numbers(basis, n, rule))


def _has_two_dimensions(basis: Any) -> bool:
    """Return whether a `basis` is a matrix of rows."""
    if not hasattr(basis, "ndim"):
        basis = as_array(basis, "basis")
    return bool(basis.ndim == 2)


def read_basis(basis: Any, n: int) -> int | float | np.ndarray:
    """Return a checked `basis` for n rows.

    It is a count, a share in (0, 1], or the increasing numbers of rows, (m,). Raises
    ValueError for any other value.
    """
    if not isinstance(basis, numbers.Real) or isinstance(basis, bool):
        rule = "a count, a share of the rows or a vector of row numbers"
        return _row_numbers(basis, n, rule)
    if isinstance(basis, numbers.Integral):
        return check_count("basis", basis)
    return _share(basis)


def _share(basis: Any) -> float:
    """Return a share in (0, 1]."""
    return check_real("basis as a share", basis, lambda v: 0 < v <= 1, "in (0, 1]")


def _row_numbers(basis: Any, n: int, rule: str) -> np.ndarray:
    """Return distinct row numbers below n, increasing; `rule` is for the message."""
    rows = as_array(basis, "basis")
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError(f"basis must be {rule}, got {shown(basis)}")
    bad = np.flatnonzero((rows < 0) | (rows >= n))
    if bad.size:
        raise ValueError(f"basis must name rows of X, 0 to {n - 1}, got {rows[bad[0]]}")
    values, counts = np.unique(rows, return_counts=True)
    if values.size < rows.size:
        raise ValueError(
            f"basis must name each row at most once, got row {values[counts > 1][0]} "
            "more than once"
        )
    return values.astype(np.intp)
