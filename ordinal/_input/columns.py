"""Columns of tables: their names, and their values as numbers.

A data frame is any object with `columns`, each of which `X[name]` returns, as in
pandas, polars and pyarrow, none of which is imported. An array of objects is read in
the same way, with columns by number.
"""

import datetime
import numbers
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from .checks import (
    NO_NUMBERS,
    as_array,
    by_dates,
    by_table_preprocessor,
    can_be_listed,
    check_entries,
    enumerated,
    listed,
    shown,
    to_double,
)
from .frame import Column, Frame, Kind, date_of, days_near, default_names, number_kind
from .immutable import read_only
from .labels import categories_of, is_missing, is_ordered, level_places, read_labels
from .sparse import is_sparse
from .warning import warn

Categories = tuple[np.ndarray | None, ...]  # per column; None for numbers
_DATES = (datetime.date, np.datetime64)
_TIMES = (*_DATES, datetime.time, datetime.timedelta, np.timedelta64)
_NUMBERS = (numbers.Real, np.bool_, Decimal)
_MAX_STRINGS = 20  # distinct strings that may exceed half of the rows


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame; TypeError for a lazy one."""
    if hasattr(type(X), "collect"):  # a lazy frame has no columns before a query
        raise TypeError(
            f"X must hold its rows, got a lazy {type(X).__name__}: pass X.collect()"
        )
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


def feature_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame, or None for any other X.

    Raises ValueError if there are no columns, or two of the same name.
    """
    if isinstance(X, Frame):
        return X.names
    if not is_frame(X):
        return None
    names = tuple(map(str, _keys(X)))
    if not names:
        raise ValueError("X has no columns")
    check_distinct(names, "X")
    return names


def _keys(X: Any) -> Iterable[Any]:
    """Return the keys of the columns of a data frame."""
    # In pyarrow, `columns` are values. The attribute is looked up in the class, because
    # a data frame of pandas may have a column called "column_names".
    by_name = hasattr(type(X), "column_names")
    keys: Iterable[Any] = X.column_names if by_name else X.columns
    return keys


def column_number(column: Any, names: Sequence[str], argument: str) -> int:
    """Return the number of a column given by name or number, or ValueError."""
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


V = TypeVar("V")


def by_column(
    given: Mapping[Any, V], names: Sequence[str], argument: str
) -> dict[int, V]:
    """Return a mapping of columns, by name or number, as one of their numbers."""
    found: dict[int, V] = {}
    for column, value in given.items():
        number = column_number(column, names, argument)
        if number in found:
            raise ValueError(
                f"{argument} names column {shown(names[number])} twice, by its name "
                f"and by its number {number}: leave one of them out"
            )
        found[number] = value
    return found


def frame_columns(X: Any, wanted: Sequence[str] | None = None) -> list[Any]:
    """Return the columns of a data frame: all in its order, or those of these names.

    Missing columns raise a ValueError that names them; further columns are ignored.
    """
    if isinstance(X, Frame) and X.names is None:
        return list(X)
    keys = dict(zip(feature_names(X) or (), _keys(X), strict=True))
    names = list(keys) if wanted is None else wanted
    check_columns("X", names, list(keys))
    return [X[keys[name]] for name in names]


def check_columns(table: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raise ValueError that lists the columns of a model that a table lacks."""
    absent = [name for name in names if name not in known]
    if absent:
        s, them = ("s", "them") if len(absent) > 1 else ("", "it")
        raise ValueError(
            f"{table} has no column{s} {enumerated(absent)}, which the model was "
            f"fitted on: add {them}; {table} has {enumerated(known, at_most=6)}"
        )


def only_column(y: Any) -> Any:
    """Return the column of a table or matrix that has only one; others as they are."""
    if getattr(y, "shape", ())[1:] != (1,):
        return y
    if isinstance(y, np.ndarray):
        return y.ravel()
    return frame_columns(y)[0] if is_frame(y) else y


def columns_of(X: Any, names: Sequence[str]) -> Any:
    """Return a data frame of some columns of a data frame X, without copying them."""
    return X.columns_of(names) if isinstance(X, Frame) else Selection(X, tuple(names))


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Some columns of a data frame, as a data frame."""

    frame: Any
    columns: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, name: str) -> Any:
        return frame_columns(self.frame, [name])[0]


def as_table(X: Any, wanted: Collection[str] | None = ()) -> Any:
    """Return a record, or a list of records, as a data frame; others as they are.

    A record is a mapping from names to single values. A name that is `wanted` and that
    only some records have is a ValueError, because it may be misspelt in the others.
    """
    records = [X] if isinstance(X, Mapping) else X
    several = isinstance(records, list | tuple) and len(records) > 0
    if not (several and all(isinstance(record, Mapping) for record in records)):
        return X
    for name, value in records[0].items():
        if can_be_listed(value):
            raise ValueError(
                f"X must be an array or a data frame, or a record with one value per "
                f"column, got a mapping with {shown(value)} for {shown(name)}: pass a "
                "data frame of it, such as pandas.DataFrame(X)"
            )
    names = dict.fromkeys(name for record in records for name in record)
    for name in names:
        row = next((k for k, record in enumerate(records) if name not in record), None)
        if row is not None and str(name) in (wanted or ()):
            raise ValueError(
                f"X has no value of {shown(str(name))} in record {row}, and has one in "
                "another: write None if it is missing"
            )
    columns = {name: np.empty(len(records), dtype=object) for name in names}
    for name, column in columns.items():
        column[:] = [record.get(name) for record in records]
    return Records(columns)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Records as a data frame."""

    content: Mapping[Any, np.ndarray]

    @property
    def columns(self) -> tuple[Any, ...]:
        return tuple(self.content)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.content)

    def __len__(self) -> int:
        return len(next(iter(self.content.values()), ()))

    def __getitem__(self, name: Any) -> np.ndarray:
        return self.content[name]


def as_objects(X: Any, name: str = "X") -> np.ndarray:
    """Return X as an array, where mixed rows are objects instead of strings.

    TypeError for an iterator, such as one over chunks of a file.
    """
    if isinstance(X, Iterator):
        raise TypeError(
            f"{name} must hold its rows, got an iterator ({type(X).__name__}), which "
            "can be read only once; for rows in chunks pass "
            "ordinal.data.blocks(path, target=...), or an object whose method blocks() "
            "starts anew at each call"
        )
    a = as_array(X, name)
    if a.ndim == 1 and a.size and isinstance(a[0], Mapping):
        raise ValueError(
            f"{name} must be an array or a data frame, got a list of records: pass "
            f"pandas.DataFrame({name})"
        )
    if a.ndim == 0:
        chunks = (
            ", which predictions and write_predictions of ordinal.data read in chunks"
            if hasattr(X, "blocks")
            else ""
        )
        if isinstance(X, str) and "~" in X:
            chunks = (
                ": fit_pom, fit_pom_path, fit_ratio and fit_clmm read formulas, and "
                "other fits the columns and the labels"
            )
        raise ValueError(
            f"{name} must be an array or a data frame, got {shown(X)}{chunks}"
        )
    texts = a.dtype.kind in "UST" and not isinstance(X, np.ndarray)
    # A view that repeats its entries is copied, so its full size must fit into memory.
    return np.array(X, dtype=object) if texts else np.ascontiguousarray(a)


def read_once(X: Any) -> Any:
    """Return X in a form that can be read more than once.

    An object that converts itself to an array may give another array each time, and is
    therefore converted here, once.
    """
    if isinstance(X, np.ndarray | list | tuple) or is_sparse(X) or is_frame(X):
        return X
    return as_objects(X)


def column_categories(X: Any, categorical: Iterable[str | int] = ()) -> Categories:
    """Return the categories of the columns of a training table.

    Parameters
    ----------
    X : (n, d) array-like of numbers, or of objects, sparse matrix or data frame
    categorical : names or numbers of columns
        Categorical columns, beside those of a categorical type.

    Returns
    -------
    tuple of (d,) arrays or None
        The categories of a categorical column, in declared or increasing order; None
        for a numeric column.

    Raises
    ------
    ValueError, TypeError
        For a column that does not exist, or is sparse, for labels that are neither
        numbers nor strings, and for strings that identify the rows, unless the column
        is among `categorical`.
    """
    categorical = check_categorical(categorical)
    if is_sparse(X) and not categorical:
        check_shape(tuple(X.shape))
        return (None,) * int(X.shape[1])
    names, columns = _named_columns(X)
    chosen = {column_number(c, names, "categorical") for c in categorical}
    _check_columns(names, columns, chosen)
    categories: list[np.ndarray | None] = []
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        declared = categories_of(column)
        is_category = j in chosen or declared is not None or _holds_strings(column)
        categories.append(_categories(column, declared, name) if is_category else None)
    return tuple(categories)


def check_categorical(categorical: Any) -> tuple[str | int, ...]:
    """Return the argument `categorical` as a tuple; ValueError unless a sequence."""
    if not can_be_listed(categorical):
        raise ValueError(
            "categorical must be a sequence of columns by name or number, got "
            f"{shown(categorical)}"
        )
    return tuple(categorical)


def identify_rows(words: Sequence[str]) -> bool:
    """Return whether strings identify the rows, such as names or dates.

    These are more than 20 different strings that make up more than half of the values
    that are not missing.
    """
    return len(set(words)) > max(_MAX_STRINGS, len(words) / 2)


_MIN_DISGUISED = 6  # different strings; fewer may be codes, such as sizes
_DISGUISED = 0.9  # share of the different strings
# A sign, a currency, digits with separators, and a decimal part, unit or currency.
_NUMBER = re.compile(
    r"[+\-\u2212(]?\s*[$\u20ac\u00a3\u00a5]?\s*[+-]?"
    r"(\d{1,3}([ ,.'\u00a0\u202f]\d{3})+|\d+)([.,]\d+)?\s*[%$\u20ac\u00a3\u00a5]?\)?"
)
# Plain numbers, and labels such as "(1)" and "030 100".
_PLAIN = re.compile(r"[+-]?\d+(\.\d+)?|\(\d+\)|0\d.*")
_PLAIN_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))([T ]\d.*)?"
)


def disguise_of(words: Collection[str]) -> tuple[str, str] | None:
    """Return what a column of strings holds in disguise, and an example.

    This is "dates", or "numbers" that are written with a decimal comma, a thousands
    separator, a percent sign or a currency. At least nine of ten different strings must
    be of this form, and six at least; plain numbers as strings may be codes, and are
    none.
    """
    distinct = {word.strip() for word in set(words)}
    least = max(_MIN_DISGUISED, _DISGUISED * len(distinct))
    dates = [word for word in distinct if _DATE.fullmatch(word)]
    if len(dates) >= least:
        return "dates", min(dates)
    numbers = [word for word in distinct if _NUMBER.fullmatch(word)]
    decorated = [word for word in numbers if is_decorated(word)]
    if decorated and len(numbers) >= least:
        return "numbers", min(decorated)
    return None


def is_decorated(word: str) -> bool:
    """Return whether a word is a number with a separator, a unit or a currency."""
    return bool(_NUMBER.fullmatch(word)) and not _PLAIN.fullmatch(word)


def disguise_shown(kind: str, example: str, name: str) -> str:
    """Return the message about a column of X in disguise, with its remedy."""
    rewrite = "rewrite them as 2024-01-31, as pandas.to_datetime does, and " * (
        kind == "dates" and date_of(example) is None
    )
    remedy = (
        rewrite + by_dates(name)
        if kind == "dates"
        else "pass numbers, without signs and with a decimal point, as "
        "pandas.read_csv(decimal=',', thousands='.') reads them"
    )
    held = f"{kind} as text, such as {shown(example)}"
    return f"column {name} of X holds {held}: {remedy}"


def identifiers_shown(columns: Mapping[str, Sequence[str]]) -> str:
    """Return the words of a message about columns whose strings identify the rows."""
    first = enumerated([words[0] for words in columns.values()])
    if len(columns) > 1:
        return f"mostly different strings, such as {first}"
    (words,) = columns.values()
    return f"{len(set(words))} different strings in {len(words)} rows, such as {first}"


_DECLARE = (
    "declare {} as a category, by the type of the column (categorical= of "
    "TablePreprocessor and of fit_xofm does as well)"
)


def _check_columns(
    names: Sequence[str], columns: Sequence[Any], kept: Collection[str | int]
) -> None:
    """Raise ValueError for columns of a training table whose strings identify rows, or
    are numbers or dates in disguise. The message names all of them.

    Columns that are `kept` or of a categorical type are not checked: the caller has
    declared them categorical.
    """
    found: dict[str, list[str]] = {}
    problems: list[str] = []
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        known = j in kept or name in kept or categories_of(column) is not None
        if not known and _holds_strings(column):
            words = list(filter({*_distinct(column)}.__contains__, _values(column)))
            if (disguise := disguise_of(words)) is not None:
                said = disguise_shown(*disguise, shown(name))
                problems.append(f"{said}; leave it out, or {_DECLARE.format('it')}")
            elif not identify_rows(words):
                continue
            elif all(map(_PLAIN_NUMBER.fullmatch, words)):
                problems.append(
                    f"column {shown(name)} of X holds numbers as text, such as "
                    f"{shown(words[0])}: pass numbers, as pandas.to_numeric reads "
                    f"them; leave it out, or {_DECLARE.format('it')}"
                )
            else:
                found[name] = words
    if found:
        s, them = ("s", "them") if len(found) > 1 else ("", "it")
        problems.append(
            f"column{s} {enumerated(list(found))} of X: {identifiers_shown(found)}; "
            f"leave {them} out, or {_DECLARE.format(them)}"
        )
    if problems:
        raise ValueError("; and ".join(problems))


def read_frame(
    X: Any,
    wanted: Sequence[str] | None = None,
    empty: bool = False,
    kept: Collection[str | int] | None = None,
) -> Frame:
    """Return the `wanted` columns of a table, or all columns, as a `Frame`.

    With `empty` the table may have no rows. Strings and values of a categorical type
    become categories. Ordered types keep all labels, because predictions may need them.
    For a training table, `kept` lists the columns, by name or number, whose strings may
    identify the rows and which may hold dates; it is None for any other table.

    Raises
    ------
    ValueError, TypeError
        For a table that is sparse or empty, or lacks a column; for a column of dates,
        of strings among numbers, or of infinite values; for strings that identify the
        rows of a training table.
    """
    if isinstance(X, Frame) and (wanted is None or wanted == X.names):
        return X
    names, columns = _named_columns(X, wanted, empty)
    if wanted is not None and not names:  # as for the formula "y ~ 1"
        return Frame(np.empty((len(X), 0)), (), (), ())
    check_shape((len(columns[0]), len(columns)), empty=empty)
    if kept is not None:
        _check_columns(names, columns, kept)
    read = [_read(column, name) for name, column in zip(names, columns, strict=True)]
    values, labels, kinds = zip(*read, strict=True)
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kept is not None and kind == "date" and not {j, name}.intersection(kept):
            numbers_of(columns[j], f"column {shown(name)} of X")  # raises TypeError
    own = None if feature_names(X) is None else names
    return Frame(np.column_stack(values), own, labels, kinds)


def check_zeros_are_values(X: Any) -> None:
    """Raise TypeError for sparse rows in a method that treats 0 like other values."""
    if is_sparse(X):
        raise zeros_are_values()


def zeros_are_values(name: str = "X") -> TypeError:
    """Return the error for sparse rows in a method that treats 0 like other values."""
    return TypeError(f"{name} is sparse, and zeros are values: pass {name}.toarray()")


def _named_columns(
    X: Any, wanted: Sequence[str] | None = None, empty: bool = False
) -> tuple[tuple[str, ...], list[Any]]:
    """Return the columns of a table, and the names by which they are shown."""
    check_zeros_are_values(X)
    if is_frame(X):
        columns = frame_columns(X, wanted)
        names = wanted
        if names is None:
            names = feature_names(X) or default_names(len(columns))
        return tuple(names), columns
    a = as_objects(X)
    check_shape(a.shape, empty=empty)
    return default_names(a.shape[1]), list(a.T)


def _read(column: Any, name: str) -> tuple[np.ndarray, np.ndarray | None, Kind]:
    """Return values, labels and kind of a column for a `Frame`."""
    if isinstance(column, Column):
        return column.values, column.labels, column.kind
    declared = categories_of(column)
    if declared is None and not _holds_strings(column):
        if (times := _times_in(column, name)) is not None:
            return days_near(times, f"column {shown(name)} of X"), None, "date"
        values = numbers_of(column, f"column {shown(name)} of X")
        finite = ~np.isinf(values)
        check_entries(f"column {shown(name)} of X", values, finite, "be finite or NaN")
        return values, None, _kind_of_numbers(as_array(column, name))
    labels = _categories(column, declared, name)
    if is_ordered(getattr(column, "dtype", None)):
        labels = read_labels(declared, f"column {shown(name)}")
        return _codes(column, labels), read_only(labels.copy()), "ordered"
    return _codes(column, labels), labels, "category"


def _times_in(column: Any, name: str) -> np.ndarray | None:
    """Return a column of dates as datetime64, (n,), or None for any other column.

    Python's dates with a time zone, and those of pandas, keep their local time.
    """
    a = as_array(column, name)
    if a.dtype.kind != "O":
        return a if a.dtype.kind == "M" else None
    values = [None if is_missing(v) else v for v in a.tolist()]
    known = [v for v in values if v is not None]
    if not known or not all(isinstance(v, _DATES) for v in known):
        return None
    local = [
        v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v
        for v in values
    ]
    return np.array(local, dtype="datetime64[us]")


def _kind_of_numbers(column: np.ndarray) -> Kind:
    """Return the kind of a numeric column, which may be one of objects."""
    if column.dtype.kind != "O":
        return number_kind(column.dtype)
    kinds = {type(v) for v in column.tolist() if not is_missing(v)}
    return "truth" if kinds and kinds <= {bool, np.bool_} else "number"


def read_columns(
    columns: Sequence[Any],
    names: Sequence[str | int],
    categories: Categories | None = None,
    X: str = "X",
) -> np.ndarray:
    """Return the columns as numbers, (n, d) float64.

    A category is replaced by its position. Missing values and unknown categories are
    NaN. Other values raise a TypeError that names the column.
    """
    labels = categories or (None,) * len(columns)
    read = [
        numbers_of(column, f"column {shown(name)} of {X}", of_table=categories is None)
        if known is None
        else _codes(column, known)
        for column, name, known in zip(columns, names, labels, strict=True)
    ]
    return np.column_stack(read)


def check_shape(
    shape: tuple[int, ...],
    n_features: int | None = None,
    X: str = "X",
    empty: bool = False,
) -> None:
    """Raise ValueError unless a matrix has rows, and the expected number of columns.

    With `empty` it may have no rows.
    """
    if len(shape) != 2 or 0 in shape[empty:]:
        one = ""
        if len(shape) == 1:  # such as a Series
            one = (
                f": pass one row as {X}.iloc[[0]] of a data frame or {X}[[0]] of an "
                f"array, and one column as {X}[['name']] or {X}[:, [0]]"
            )
        raise ValueError(
            f"{X} must be 2-dimensional and non-empty, got shape {shape}{one}"
        )
    if n_features is not None and shape[1] != n_features:
        raise ValueError(
            f"{X} has {shape[1]} features, the model was fitted on {n_features}"
        )


def _holds_strings(column: Any) -> bool:
    """Return whether a column holds strings only, apart from missing values."""
    if isinstance(column, Column):
        return False  # its kind says whether it is categorical
    a = as_array(column, "a column")
    if a.dtype.kind not in "OT":
        # In an array of text, numeric columns are text, too.
        return a.dtype.kind == "U" and not isinstance(column, np.ndarray)
    try:
        known = _distinct(column)
    except TypeError:  # lists and similar objects have no hash
        return False
    return bool(known) and all(isinstance(value, str) for value in known)


def _values(column: Any) -> list[Any]:
    """Return the values of a column as Python objects."""
    values: list[Any] = as_array(column, "a column").tolist()
    return values


def _distinct(column: Any) -> list[Any]:
    """Return the distinct values of a column, without missing ones."""
    return [v for v in dict.fromkeys(_values(column)) if not is_missing(v)]


def _categories(column: Any, declared: Any, name: str) -> np.ndarray:
    """Return the distinct values of a column, declared categories first."""
    seen, what = dict.fromkeys(_distinct(column)), f"column {shown(name)}"
    order = list(seen)
    if declared is not None:
        order = [value for value in np.asarray(declared).tolist() if value in seen]
        what = f"the categories of {what}"
    labels = read_labels(order, what)
    return read_only(np.sort(labels) if declared is None else labels)


def _codes(column: Any, labels: np.ndarray) -> np.ndarray:
    """Return positions of the values among labels, (n,); NaN for all other values."""
    if isinstance(column, Column):
        return column.places(labels)
    values = _values(column)
    code = level_places(dict.fromkeys(values), labels.tolist())
    return np.fromiter(map(code.get, values, repeat(np.nan)), float, len(values))


def unknown_levels(column: Any, labels: np.ndarray) -> tuple[list[Any], dict[Any, Any]]:
    """Return the distinct values of a column that are not among labels.

    Returned are these values, and the labels that are equal to some of them as numbers,
    by value.
    """
    of_frame = isinstance(column, Column)
    seen = column.labels_present().tolist() if of_frame else _distinct(column)
    known = labels.tolist()
    found = level_places(seen, known)
    unknown = sorted((v for v in seen if v not in found), key=str)
    numbers = {as_number(label): label for label in reversed(known)}
    alike = {
        value: numbers[number]
        for value in unknown
        if (number := as_number(value)) is not None and number in numbers
    }
    return unknown, alike


def as_number(value: Any) -> float | None:
    """Return a level as a number, also from its text; None if it is no number."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return to_double(value) if isinstance(value, _NUMBERS) else None


def places_of(column: Column, known: np.ndarray, name: str) -> np.ndarray:
    """Return the positions of values among the categories of their column, (n,).

    Missing values are NaN; any other value raises ValueError.
    """
    places = column.places(known)
    new = np.isnan(places) & ~np.isnan(column.values)
    if new.any():
        value = np.asarray(column).tolist()[new.argmax()]
        raise ValueError(
            f"column {shown(name)} of X holds {shown(value)} in row {new.argmax()}, "
            f"which is not among its categories {listed(known)}"
        )
    return places


def read_table(X: Any, names: Sequence[str] | None, n_features: int) -> Frame:
    """Read the table of a coding: the columns of these names, or all by position.

    Raises
    ------
    ValueError, TypeError
        If X lacks a column, has another width, or is sparse.
    """
    frame = read_frame(X, names, empty=True)
    if n_features or names is None:  # a formula may have no columns at all
        check_shape(frame.shape, n_features, empty=True)
    return frame


def coded_column(
    frame: Frame, j: int, labels: np.ndarray | None, unseen_is_missing: bool = False
) -> np.ndarray:
    """Return a column as numbers, (n,) float64, or positions of categories in `labels`.

    Missing values are NaN. A category that is not among `labels` is NaN, too, or raises
    an error that names it.
    """
    name, column = frame.shown_names[j], frame.column(j)
    if labels is None:
        return numbers_of(column, f"column {shown(name)} of X")
    return (
        column.places(labels) if unseen_is_missing else places_of(column, labels, name)
    )


def check_distinct(names: Sequence[str], table: str = "") -> None:
    """Raise ValueError if two columns of a table, or of a coding, have one name."""
    if len(set(names)) < len(names):
        name = Counter(names).most_common(1)[0][0]
        at = [number for number, other in enumerate(names, 1) if other == name]
        twice = f"{shown(name)} (columns {enumerated(at)} of {len(names)})"
        of_table = f"{table} has two columns {twice}: give one of them another name"
        raise ValueError(of_table if table else f"two columns would be called {twice}")


def numbers_of(column: Any, name: str, of_table: bool = False) -> np.ndarray:
    """Return a vector of real numbers, (n,) float64, where missing values are NaN.

    Any other value raises a TypeError that names it and, for a column of a table, the
    remedy.
    """
    a = as_array(column, name)
    if a.dtype.kind == "O":
        values = a.tolist()
        for row, value in enumerate(values):
            if not (is_missing(value) or isinstance(value, _NUMBERS)):
                raise _no_number(name, value, row, of_table and _holds_strings(column))
        a = np.array([np.nan if is_missing(v) else to_double(v) for v in values])
    if a.dtype.kind not in "biuf" or a.ndim != 1:
        times = a.dtype.kind in "mM"
        value = (a[0] if times else a.tolist()[0]) if a.size else a
        raise _no_number(name, value, 0, of_table and _holds_strings(column))
    with np.errstate(over="ignore"):  # long doubles may overflow; callers check that
        return a.astype(np.float64)


def _no_number(name: str, value: Any, row: int, of_strings: bool) -> TypeError:
    """Return the error for a value that is no number, with a remedy if one is known."""
    needs = ""
    if isinstance(value, str) and value.casefold() in ("true", "false"):
        needs = "; column.astype(str).str.lower() == 'true' makes booleans of text"
    elif isinstance(value, str) and (not of_strings or _PLAIN_NUMBER.fullmatch(value)):
        needs = "; pass numbers, and NaN for missing values (pandas.to_numeric reads "
        needs += "numbers that are text)"
    elif of_strings:
        needs = f"; {by_table_preprocessor('encodes categories')}"
    elif isinstance(value, _DATES):
        needs = f"; {by_dates(name.removeprefix('column ').removesuffix(' of X'))}"
    elif isinstance(value, _TIMES):
        needs = "; convert times to numbers, such as hours"
    return TypeError(
        f"{name} must hold real numbers, got {shown(value)} in row {row}{needs}"
    )


def warn_of_other_order(X: object, name: str = "X", **by_row: object) -> None:
    """Warn of each argument that has the index of a table, of pandas, in another order.

    Rows are matched by position, so that each row would get the entry of another one.
    `name` is the name of the table, which is the argument `y` of a formula X. An
    argument may be a mapping of names to columns, or RankIntervals, whose ends are
    columns.
    """
    if isinstance(X, str) and "y" in by_row:
        X, name = by_row.pop("y"), "the table"
    rows = index_of(X)
    for argument, given in by_row.items() if rows is not None else ():
        parts = getattr(given, "ends_by_name", {argument: given})
        if isinstance(given, Mapping):
            parts = {f"{argument}[{shown(k)}]": given[k] for k in given}
        for part, values in parts.items():
            if _in_another_order(rows, index_of(values)):
                warn(
                    f"{part} has the index of {name} in another order, and rows are "
                    f"matched by position: pass {part}.loc[{name}.index] to match "
                    f"them by index, or {part}.to_numpy() to keep them",
                    UserWarning,
                )


def index_of(values: Any) -> Any:
    """Return the index of a frame or series of pandas, or None for anything else."""
    index = getattr(values, "index", None)
    return index if type(index).__module__.partition(".")[0] == "pandas" else None


def _in_another_order(rows: Any, other: Any) -> bool:
    """Return whether an index holds the distinct labels of another one, reordered."""
    if other is None or len(rows) != len(other):
        return False
    if rows.equals(other) or not rows.is_unique:
        return False
    try:
        return bool(rows.sort_values().equals(other.sort_values()))
    except TypeError:  # numbers and strings do not sort
        return False
