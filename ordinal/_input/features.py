"""Whatever holds rows of features becomes a matrix that a solver can trust."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import columns as col
from .checks import shortened, shown
from .sparse import CSR, is_sparse


def read_features(
    X: Any,
    n_features: int | None = None,
    name: str = "X",
    missing: bool = False,
    feature_names: Sequence[str] | None = None,
    categories: col.Categories | None = None,
) -> np.ndarray | CSR:
    """Return X as a finite C-contiguous (n, d) float64 array or a CSR, or raise.

    Parameters
    ----------
    X : 2-dimensional array-like of real numbers, sparse matrix, or data frame
        A data frame is read column by column, so that each may have a type of its own:
        booleans beside floats, and types with missing values. So is an array of
        objects. A sparse matrix is anything with the attributes of a CSR, or `tocsr`.
    n_features : int, optional
        The number of columns that a fitted model expects.
    name : str
        What the messages call X.
    missing : bool
        Whether a dense X may hold NaN, for entries that are not known.
    feature_names : sequence of str, optional
        The columns that a fitted model expects of a data frame, in its order.
    categories : tuple of (d,) arrays or None, optional
        As `column_categories` gives them: such a column is read as the numbers of its
        categories. Not for a sparse X.
    """
    if is_sparse(X):
        if categories is not None:
            raise TypeError(f"{name} is sparse, and zeros are values: pass an array")
        sparse = CSR.from_any(X, name)
        col.check_shape(sparse.shape, n_features, name)
        return sparse
    names: Sequence[str | int] | None = None
    if col.is_frame(X):
        names = feature_names or col.feature_names(X) or ()
        columns = col.frame_columns(X, feature_names)
        col.check_shape((1, len(columns)), n_features, name)
        a = col.read_columns(columns, names, categories, name)
    else:
        a = col.as_objects(X, name)
        if a.dtype.kind == "O" or any(c is not None for c in categories or ()):
            col.check_shape(a.shape, n_features, name)
            a = col.read_columns(list(a.T), range(a.shape[1]), categories, name)
        elif a.dtype.kind not in "biuf":
            raise TypeError(
                f"{name} must hold real numbers, got dtype {shortened(a.dtype)}"
            )
    col.check_shape(a.shape, n_features, name)
    with np.errstate(over="ignore"):  # a long double too large becomes an infinity
        a = np.require(a, np.float64, ["C", "A"])
    bad = np.isinf(a) if missing else ~np.isfinite(a)
    if bad.any():
        row, j = (int(k) for k in np.argwhere(bad)[0])
        column = j if names is None else names[j]
        raise ValueError(
            f"{name} must be {'finite or NaN' if missing else 'finite'}; first bad row "
            f"is {row}, with {a[row, j]} in column {shown(column)}"
        )
    return a
