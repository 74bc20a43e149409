"""Validation of features: arrays, data frames and sparse matrices become matrices."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from . import columns as col
from .checks import as_real, by_table_preprocessor, can_be_listed, shortened, shown
from .frame import Frame, number_kind
from .sparse import CSR, is_sparse


def read_features(
    X: Any,
    n_features: int | None = None,
    name: str = "X",
    missing: bool = False,
    feature_names: Sequence[str] | None = None,
    categories: col.Categories | None = None,
    empty: bool = False,
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
        Name of X in messages.
    missing : bool
        Whether a dense X may hold NaN, for entries that are not known.
    feature_names : sequence of str, optional
        The columns that a fitted model expects of a data frame, in its order.
    categories : tuple of (d,) arrays or None, optional
        Categories from `column_categories`. A categorical column is read as the numbers
        of its categories, which a sparse X does not have.
    empty : bool
        Whether X may have no rows, as the rows of a prediction may.
    """
    if is_sparse(X):
        if any(labels is not None for labels in categories or ()):
            raise col.zeros_are_values(name)
        sparse = CSR.from_any(X, name)
        col.check_shape(sparse.shape, n_features, name, empty)
        return sparse
    names: Sequence[str | int] | None = None
    if isinstance(X, Frame) and _is_as_expected(X, feature_names, categories):
        names, a = X.names, X.values
    elif col.is_frame(X):
        columns = col.frame_columns(X, feature_names)
        names = feature_names or col.feature_names(X) or range(len(columns))
        col.check_shape((1, len(columns)), n_features, name)
        a = col.read_columns(columns, names, categories, name)
    else:
        a = col.as_objects(X, name)
        if a.dtype.kind == "O" or any(c is not None for c in categories or ()):
            col.check_shape(a.shape, n_features, name, empty)
            a = col.read_columns(list(a.T), range(a.shape[1]), categories, name)
        elif a.dtype.kind not in "biuf":
            raise TypeError(
                f"{name} must hold real numbers, got dtype {shortened(a.dtype)}"
            )
    col.check_shape(a.shape, n_features, name, empty)
    with np.errstate(over="ignore"):  # a long double too large becomes an infinity
        a = np.require(a, np.float64, ["C", "A"])
    bad = np.isinf(a) if missing else ~np.isfinite(a)
    if bad.any():
        row, j = (int(k) for k in np.argwhere(bad)[0])
        column = j if names is None else names[j]
        fill = f"; {by_table_preprocessor('imputes missing values')}"
        raise ValueError(
            f"{name} must be {'finite or NaN' if missing else 'finite'}; first bad row "
            f"is {row}, with {a[row, j]} in column {shown(column)}"
            f"{fill if np.isnan(a[row, j]) else ''}"
        )
    return a


def read_dense(
    X: Any, n_features: int | None = None, name: str = "X", **options: Any
) -> np.ndarray:
    """Return a dense matrix; raise TypeError if X is sparse."""
    if is_sparse(X):
        raise TypeError(f"{name} is sparse, and the result would not be: make it dense")
    dense = read_features(X, n_features, name, **options)
    assert isinstance(dense, np.ndarray)
    return dense


def _is_as_expected(
    X: Frame, names: Sequence[str] | None, categories: col.Categories | None
) -> bool:
    """Return whether a table already has the form that a model or fit expects."""
    in_order = names is None or X.names is None or X.names == tuple(names)
    numbers = all(labels is None for labels in categories or ())
    return in_order and numbers and X.is_of_numbers


def read_frame_of(X: Any, categorical: Any = ()) -> Frame:
    """Return a training table as a frame, with missing values.

    `categorical` names numeric columns that hold categories.
    """
    if col.is_frame(X) or (a := col.as_objects(X)).dtype.kind == "O":
        return col.read_frame(X, kept=col.check_categorical(categorical))
    return _frame_of_numbers(X, a.dtype)


def read_rows_of(X: Any, feature_names: tuple[str, ...] | None) -> Frame | CSR:
    """Return rows for a model as a frame, with missing values, or as a CSR matrix.

    Columns of a data frame that the model does not use are not read.
    """
    if is_sparse(X):
        return cast(CSR, read_features(X))
    if (names := col.feature_names(X)) is not None:
        wanted = [name for name in feature_names or names if name in names]
        return col.read_frame(X, wanted or None)
    if (a := col.as_objects(X)).dtype.kind == "O":
        return col.read_frame(X)
    return _frame_of_numbers(X, a.dtype)


def _frame_of_numbers(X: Any, dtype: np.dtype[Any]) -> Frame:
    """Return the frame of a matrix that has this dtype."""
    values = cast(np.ndarray, read_features(X, missing=True))
    return Frame.of_numbers(values, None, number_kind(dtype))


def signs_of(
    monotone: Any, names: Sequence[str], categories: col.Categories
) -> np.ndarray:
    """Return -1, 0 or 1 for every feature, (d,) int8, from the argument `monotone`."""
    sign = np.zeros(len(names), np.int8)
    if monotone is None:
        return sign
    if isinstance(monotone, Mapping):
        given = col.by_column(monotone, names, "monotone")
    else:
        values = np.asarray(monotone).tolist()
        if not isinstance(values, list) or len(values) != len(names):
            raise ValueError(
                f"monotone must name features or have {len(names)} entries, got "
                f"{shown(monotone)}"
            )
        given = dict(enumerate(values))
    for j, value in given.items():
        if as_real(value) not in (-1, 0, 1):
            raise ValueError(
                f"monotone of {shown(names[j])} must be -1, 0 or 1, got {shown(value)}"
            )
        if value and categories[j] is not None:
            raise ValueError(
                f"monotone names {shown(names[j])}, whose categories have no "
                "order: leave it out, or code the column by numbers"
            )
        sign[j] = value
    return sign


def column_groups(groups: Any, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return `interactions` as groups of columns by number, and the remaining columns.

    The list is empty if groups is None.
    """
    if groups is None:
        return []
    rule = "interactions must be a sequence of sequences of columns by name or number"
    if not can_be_listed(groups):
        raise ValueError(f"{rule}, got {shown(groups)}")
    found = []
    for group in groups:
        if not can_be_listed(group):
            raise ValueError(f"{rule}, got {shown(group)} as a group")
        found.append(tuple(col.column_number(c, names, "interactions") for c in group))
        if not found[-1]:
            raise ValueError(f"{rule}, got an empty group: leave it out")
    rest = set(range(len(names))).difference(*found)
    return [*found, tuple(sorted(rest))] if rest else found
