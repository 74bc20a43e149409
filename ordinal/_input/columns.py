"""Tables column by column: their names, and what stands in them as numbers.

A data frame is anything with `columns` that gives one of them by `X[name]`, as pandas,
polars and pyarrow do, none of which is imported. An array of objects is read in the
same way, its columns by number.
"""

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .checks import NO_NUMBERS, as_array, listed, shown, to_double
from .labels import is_missing, read_labels
from .sparse import frozen, is_sparse

Categories = tuple[np.ndarray | None, ...]  # of every column; None: it holds numbers


def is_frame(X: Any) -> bool:
    if hasattr(type(X), "collect"):  # whose columns are known after a query only
        raise TypeError(f"a {type(X).__name__} holds no rows yet: pass X.collect()")
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


def feature_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame, None for all else.

    Raises ValueError if there are no columns, or two of one name.
    """
    if not is_frame(X):
        return None
    names = tuple(map(str, _keys(X)))
    if not names:
        raise ValueError("X has no columns")
    if len(set(names)) < len(names):
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise ValueError(f"X has two columns {shown(twice)}")
    return names


def _keys(X: Any) -> Iterable[Any]:
    """What the columns of a data frame are asked for by."""
    # `columns` of pyarrow are their values; pandas may have a column "column_names"
    by_name = hasattr(type(X), "column_names")
    keys: Iterable[Any] = X.column_names if by_name else X.columns
    return keys


def default_names(d: int) -> tuple[str, ...]:
    """x1..xd, by which columns without names are shown."""
    return tuple(f"x{j}" for j in range(1, d + 1))


def column_number(column: Any, names: Sequence[str], argument: str) -> int:
    """The number of a column given by name or number, or ValueError."""
    if isinstance(column, str):
        if column not in names:
            raise ValueError(
                f"{argument} names {shown(column)}, which is not among {listed(names)}"
            )
        return names.index(column)
    whole = isinstance(column, int | np.integer) and not isinstance(column, NO_NUMBERS)
    if not whole or not 0 <= column < len(names):
        raise ValueError(
            f"{argument} must name columns or number them 0 to {len(names) - 1}, got "
            f"{shown(column)}"
        )
    return int(column)


def frame_columns(X: Any, wanted: Sequence[str] | None = None) -> list[Any]:
    """The columns of a data frame: all in its order, or those of these names.

    Raises ValueError that names the columns that it lacks; others it may have.
    """
    keys = dict(zip(feature_names(X) or (), _keys(X), strict=True))
    names = list(keys) if wanted is None else wanted
    absent = [name for name in names if name not in keys]
    if absent:
        raise ValueError(
            f"X has no column {listed(absent)[1:-1]}, which the model was fitted on"
        )
    return [X[keys[name]] for name in names]


def as_objects(X: Any, name: str = "X") -> np.ndarray:
    """X as an array; rows of numbers and strings as objects, not all as strings."""
    a = as_array(X, name)
    texts = a.dtype.kind in "UST" and not isinstance(X, np.ndarray)
    # of a view that repeats its entries, a copy: there must be room for all of them
    return np.array(X, dtype=object) if texts else np.ascontiguousarray(a)


def column_categories(X: Any, categorical: Iterable[str | int] = ()) -> Categories:
    """The categories of the columns of a training table.

    Parameters
    ----------
    X : (n, d) array-like of numbers, or of objects, or data frame
    categorical : names or numbers of columns
        Whose values are categories; those of a categorical type are anyway.

    Returns
    -------
    tuple of (d,) arrays or None
        The values that a column of categories had, in their declared order or
        increasing; None for a column of numbers.

    Raises
    ------
    ValueError, TypeError
        For a column that there is not, or labels that are neither numbers nor strings.
    """
    if isinstance(categorical, str) or not isinstance(categorical, Iterable):
        raise ValueError(
            "categorical must be a sequence of columns by name or number, got "
            f"{shown(categorical)}"
        )
    if is_sparse(X):
        raise TypeError("X is sparse, and zeros are values: pass X.toarray()")
    if (names := feature_names(X)) is not None:
        columns = frame_columns(X)
    else:
        a = as_objects(X)
        check_shape(a.shape)
        names, columns = default_names(a.shape[1]), list(a.T)
    chosen = {column_number(c, names, "categorical") for c in categorical}
    categories: list[np.ndarray | None] = []
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        declared = getattr(getattr(column, "dtype", None), "categories", None)
        is_category = j in chosen or declared is not None
        categories.append(_categories(column, declared, name) if is_category else None)
    return tuple(categories)


def read_columns(
    columns: Sequence[Any],
    names: Sequence[str | int],
    categories: Categories | None = None,
    X: str = "X",
) -> np.ndarray:
    """The columns as numbers, (n, d) float64: a category by its place, NaN for what is
    missing or a category that is not known. Raises TypeError that names the column."""
    labels = categories or (None,) * len(columns)
    read = [
        numbers_of(column, f"column {shown(name)} of {X}")
        if known is None
        else _codes(column, known)
        for column, name, known in zip(columns, names, labels, strict=True)
    ]
    return np.column_stack(read)


def check_shape(
    shape: tuple[int, ...], n_features: int | None = None, X: str = "X"
) -> None:
    """Raise ValueError unless a matrix has rows and columns: so many, if known."""
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{X} must be 2-dimensional and non-empty, got shape {shape}")
    if n_features is not None and shape[1] != n_features:
        raise ValueError(
            f"{X} has {shape[1]} features, the model was fitted on {n_features}"
        )


def _values(column: Any) -> list[Any]:
    values: list[Any] = as_array(column, "a column").tolist()
    return values


def _categories(column: Any, declared: Any, name: str) -> np.ndarray:
    """The values of a column, those it declares first and in their order."""
    seen = {value: None for value in _values(column) if not is_missing(value)}
    # the categories of polars' Categorical are a name, no list
    if isinstance(declared, Iterable):
        order = [value for value in np.asarray(declared).tolist() if value in seen]
    else:
        order = list(seen)
    labels = read_labels(order, f"column {shown(name)}")
    return frozen(labels if isinstance(declared, Iterable) else np.sort(labels))


def _codes(column: Any, labels: np.ndarray) -> np.ndarray:
    code = {label: float(k) for k, label in enumerate(labels.tolist())}
    return np.array(
        [np.nan if is_missing(v) else code.get(v, np.nan) for v in _values(column)]
    )


def numbers_of(column: Any, name: str) -> np.ndarray:
    """A vector of real numbers, (n,) float64, NaN for what is missing. Raises TypeError
    that names the first other value."""
    a = as_array(column, name)
    if a.dtype.kind == "O":
        values = a.tolist()
        for row, value in enumerate(values):
            if not (is_missing(value) or isinstance(value, numbers.Real | np.bool_)):
                raise _no_number(name, value, row)
        a = np.array([np.nan if is_missing(v) else to_double(v) for v in values])
    if a.dtype.kind not in "biuf" or a.ndim != 1:
        raise _no_number(name, a.tolist()[0] if a.size else a, 0)
    with np.errstate(over="ignore"):  # of long doubles, refused with what is infinite
        return a.astype(np.float64)


def _no_number(name: str, value: Any, row: int) -> TypeError:
    return TypeError(f"{name} must hold real numbers, got {shown(value)} in row {row}")
