"""Columns of the caller's table: their names, and categories as numbers.

A table is a 2-dimensional array, or a data frame: anything with `columns` that gives
one of them by `X[name]`, as pandas and polars do, neither of which is imported.
"""

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import as_array, listed
from .features import check_features
from .labels import is_missing, read_labels
from .sparse import CSR, frozen


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What the columns of a training table were, to read others alike.

    Attributes
    ----------
    names : tuple of (d,) str
        Those of the data frame, else x1..xd.
    categories : tuple of (d,) arrays or None
        The values that a column of categories had, in their declared order or
        increasing; None for a column of numbers.
    """

    names: tuple[str, ...]
    categories: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, X: Any, categorical: Iterable[str | int] = ()) -> "Columns":
        """The columns of a training table.

        Parameters
        ----------
        X : (n, d) array-like of numbers, or of objects, or data frame
        categorical : names or numbers of columns
            Whose values are categories; those of a categorical type are anyway.

        Raises
        ------
        ValueError, TypeError
            For names that are not distinct, columns that there are not, or labels that
            are neither numbers nor strings.
        """
        names = _names(X)
        if isinstance(categorical, str) or not isinstance(categorical, Iterable):
            raise ValueError(
                "categorical must be a sequence of columns by name or number, got "
                f"{categorical!r}"
            )
        chosen = {column_number(c, names, "categorical") for c in categorical}
        if not is_frame(X) and not chosen:
            return cls(names, (None,) * len(names))
        categories: list[np.ndarray | None] = []
        for j, (name, column) in enumerate(zip(names, _columns(X), strict=True)):
            declared = getattr(getattr(column, "dtype", None), "categories", None)
            is_category = j in chosen or declared is not None
            categories.append(
                _categories(column, declared, name) if is_category else None
            )
        return cls(names, tuple(categories))

    def read(self, X: Any) -> np.ndarray:
        """X as (n, d) float64 with numbers of categories; NaN for what is missing.

        A category that is not among `categories` is missing too. Columns of a data
        frame are found by name, unless those of the training table had none.

        Raises
        ------
        ValueError, TypeError
            If columns are missing, or hold anything but finite numbers and NaN.
        """
        d = len(self.names)
        if not is_frame(X) and not any(c is not None for c in self.categories):
            if isinstance(a := check_features(X, d, missing=True), CSR):
                raise TypeError("X is sparse, and zeros are values: pass X.toarray()")
            return a
        if is_frame(X) and self.names != default_names(d):
            keys = dict(zip(_names(X), X.columns, strict=True))
            absent = [name for name in self.names if name not in keys]
            if absent:
                raise ValueError(f"X has no column {', '.join(map(repr, absent))}")
            columns: list[Any] = [X[keys[name]] for name in self.names]
        else:
            columns = list(_columns(X))
        if len(columns) != d:
            raise ValueError(
                f"X has {len(columns)} features, the model was fitted on {d}"
            )
        read = [
            _numbers(column, name) if labels is None else _codes(column, labels)
            for column, name, labels in zip(
                columns, self.names, self.categories, strict=True
            )
        ]
        a = check_features(np.column_stack(read), missing=True)
        assert isinstance(a, np.ndarray)
        return a


def default_names(d: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(1, d + 1))


def is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


def column_number(column: Any, names: tuple[str, ...], argument: str) -> int:
    """The number of a column given by name or number, or ValueError."""
    if isinstance(column, str):
        if column not in names:
            raise ValueError(
                f"{argument} names {column!r}, which is not among {listed(names)}"
            )
        return names.index(column)
    whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if not whole or not 0 <= column < len(names):
        raise ValueError(
            f"{argument} must name columns or number them 0 to {len(names) - 1}, got "
            f"{column!r}"
        )
    return int(column)


def _names(X: Any) -> tuple[str, ...]:
    if not is_frame(X):
        shape = _as_array(X).shape
        if len(shape) != 2 or 0 in shape:
            raise ValueError(
                f"X must be 2-dimensional and non-empty, got shape {shape}"
            )
        return default_names(shape[1])
    names = tuple(map(str, X.columns))
    if not names:
        raise ValueError("X has no columns")
    for j, name in enumerate(names):
        if name in names[:j]:
            raise ValueError(f"X has two columns {name!r}")
    return names


def _as_array(X: Any) -> Any:
    """X with a shape; rows of numbers and strings as objects, not all as strings."""
    if hasattr(X, "shape"):
        return X
    a = as_array(X, "X")
    return np.array(X, dtype=object) if a.dtype.kind in "UST" else a


def _columns(X: Any) -> Iterator[Any]:
    if is_frame(X):
        return (X[name] for name in X.columns)
    if hasattr(X, "indptr"):
        raise TypeError("X is sparse, and zeros are values: pass X.toarray()")
    return iter(as_array(_as_array(X), "X").T)


def _values(column: Any) -> list:
    return np.asarray(column).tolist()


def _categories(column: Any, declared: Any, name: str) -> np.ndarray:
    """The values of a column, those it declares first and in their order."""
    seen = {value: None for value in _values(column) if not is_missing(value)}
    # the categories of polars' Categorical are a name, no list
    if isinstance(declared, Iterable):
        order = [value for value in np.asarray(declared).tolist() if value in seen]
    else:
        order = list(seen)
    labels = read_labels(order, f"column {name!r}")
    return frozen(labels if isinstance(declared, Iterable) else np.sort(labels))


def _codes(column: Any, labels: np.ndarray) -> np.ndarray:
    code = {label: float(k) for k, label in enumerate(labels.tolist())}
    return np.array(
        [np.nan if is_missing(v) else code.get(v, np.nan) for v in _values(column)]
    )


def _numbers(column: Any, name: str) -> np.ndarray:
    a = np.asarray(column)
    if a.dtype.kind == "O":
        for row, value in enumerate(a.tolist()):
            if not (is_missing(value) or isinstance(value, numbers.Real | np.bool_)):
                raise _no_number(name, value, row)
        values = [np.nan if is_missing(value) else value for value in a.tolist()]
        a = np.array(values, dtype=np.float64)
    if a.dtype.kind not in "biuf":
        raise _no_number(name, a.reshape(-1)[0].item(), 0)
    return a.astype(np.float64)


def _no_number(name: str, value: Any, row: int) -> TypeError:
    return TypeError(
        f"column {name!r} of X holds {value!r} in row {row}, not a number: name it in "
        "categorical= if its values are categories"
    )
