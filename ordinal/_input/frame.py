"""Tables as arrays of numbers, independent of the library of the caller's data frame.

Data frames of pandas or polars are read once into a `Frame`, which consists of arrays:
it can be sent to other processes, compared by its bytes and indexed by rows. Its
columns are accessed as in a data frame, so that fits and preprocessors read it like the
caller's table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from .checks import check_entries, shown
from .immutable import read_only
from .labels import level_places
from .types import Index

Kind = Literal["number", "whole", "truth", "date", "category", "ordered"]
_DTYPES = {"whole": np.int64, "truth": np.bool_}
_FARTHEST = 1e13  # most days from 1970; their seconds must fit into 64 bits
_LARGEST_WHOLE = 2.0**53  # doubles represent all integers up to it


def number_kind(dtype: np.dtype[Any]) -> Kind:
    """Return the kind of numbers that an array of this dtype holds."""
    kinds: dict[str, Kind] = {"b": "truth", "i": "whole", "u": "whole"}
    return kinds.get(dtype.kind, "number")


def days_of(times: np.ndarray) -> np.ndarray:
    """Return datetime64 values as days since 1970-01-01, (n,); NaN is missing."""
    missing = np.isnat(times)
    days = times.astype("datetime64[D]")
    of_day = (times - days) / np.timedelta64(1, "D")
    return np.where(missing, np.nan, days.astype(np.int64) + of_day)


# A year, month and day in this order, or with dots the other way round; slashes after a
# day or a month leave open which of them it is.
_DATE = re.compile(
    r"\s*(?:(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{1,2})\.(\d{1,2})\.(\d{4}))(?=$|[T\s])"
)


def days_near(times: np.ndarray, name: str) -> np.ndarray:
    """Return `days_of`; raise ValueError for times too far from 1970."""
    days = days_of(times)
    near = np.isnan(days) | (np.abs(days) <= _FARTHEST)
    check_entries(name, times, near, f"hold dates within {_FARTHEST:g} days of 1970")
    return days


def date_of(text: str) -> datetime | None:
    """Return a date such as 2024-01-31, 2024/1/31 or 31.01.2024, or None for others.

    A time may follow, as in ISO 8601; its zone is left out.
    """

    def iso(found: re.Match[str]) -> str:
        year, _, month, day, day_first, of_day_first, its_year = found.groups()
        parts = year or its_year, month or of_day_first, day or day_first
        return "-".join(part.zfill(2) for part in parts)

    try:
        return datetime.fromisoformat(_DATE.sub(iso, text).strip()).replace(tzinfo=None)
    except ValueError:
        return None


def times_of(days: np.ndarray) -> np.ndarray:
    """Return days since 1970-01-01 as datetime64, to the second."""
    missing = np.isnan(days)
    seconds = np.rint(np.where(missing, 0.0, days) * 86400).astype("timedelta64[s]")
    return np.where(missing, np.datetime64("NaT"), np.datetime64(0, "s") + seconds)


@lru_cache(maxsize=8)  # a path of penalties has many models of the same columns
def default_names(d: int) -> tuple[str, ...]:
    """Return x1..xd, the names of columns without names."""
    return tuple(f"x{j}" for j in range(1, d + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Numeric and categorical columns, stored as numbers.

    Attributes
    ----------
    values : (n, d) float64, C-contiguous
        Numbers, or for a categorical column positions among its labels, and for dates
        days since 1970-01-01. NaN is missing.
    names : tuple of (d,) str, or None
        None for columns without names.
    labels : tuple of (d,) arrays or None
        Labels of each categorical column.
    kinds : tuple of (d,) str
        "number", "whole" or "truth" (booleans) for numbers; "date"; "category", or
        "ordered" if the categories have an order, which is that of the labels.
    """

    values: np.ndarray
    names: tuple[str, ...] | None
    labels: tuple[np.ndarray | None, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of_numbers(
        cls, values: np.ndarray, names: tuple[str, ...] | None, kind: Kind = "number"
    ) -> Frame:
        """Make a frame of a matrix."""
        d = values.shape[1]
        return cls(values, names, (None,) * d, (kind,) * d)

    @property
    def columns(self) -> tuple[str | int, ...]:
        """Return the keys by which `frame[name]` finds columns."""
        return self.names or tuple(range(self.values.shape[1]))

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def shown_names(self) -> tuple[str, ...]:
        """Return the names of the columns, or x1..xd."""
        return self.names or default_names(self.shape[1])

    @property
    def is_of_numbers(self) -> bool:
        """Return whether no column holds categories or dates."""
        return not {"date", "category", "ordered"}.intersection(self.kinds)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str | int) -> Column:
        return self.column(self.columns.index(name))

    def __iter__(self) -> Iterator[Column]:
        return map(self.column, range(len(self.labels)))

    def column(self, j: int) -> Column:
        """Return the column of this number."""
        return Column(self.values[:, j], self.labels[j], self.kinds[j])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if not self.is_of_numbers:
            columns = zip(self.columns, self.kinds, strict=True)
            wrong = {"date": "dates", "category": "categories", "ordered": "categories"}
            name, kind = next((n, k) for n, k in columns if k in wrong)
            raise TypeError(f"column {shown(name)} holds {wrong[kind]}, not numbers")
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)

    def rows(self, index: Index) -> Frame:
        """Return some rows, by slice or indices."""
        return replace(self, values=self.values[index])

    def columns_of(self, names: Sequence[str]) -> Frame:
        """Return the frame of some columns."""
        at = [self.columns.index(name) for name in names]
        labels = tuple(self.labels[j] for j in at)
        kinds = tuple(self.kinds[j] for j in at)
        values = np.ascontiguousarray(self.values[:, at])
        return Frame(values, tuple(names), labels, kinds)

    def with_column(
        self, j: int, values: Any, labels: np.ndarray | None = None
    ) -> Frame:
        """Return a copy with other values in column j: numbers, or places among labels.

        A column of numbers becomes one of the kind "number", because an integer dtype
        would truncate values between two integers. Dates stay dates.
        """
        changed, kinds, every = self.values.copy(), list(self.kinds), list(self.labels)
        changed[:, j], every[j] = values, labels
        if labels is None and kinds[j] != "date":
            kinds[j] = "number"
        return Frame(changed, self.names, tuple(every), tuple(kinds))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Column of a `Frame`, with the dtype that it represents."""

    values: np.ndarray
    labels: np.ndarray | None
    kind: Kind

    @property
    def dtype(self) -> Any:
        """Return the dtype, with `categories` and `ordered` if categorical."""
        if self.labels is not None:
            return Categorical(self.labels, self.kind == "ordered")
        return np.asarray(self).dtype

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        missing = np.isnan(self.values)
        if self.labels is not None:
            made = np.full(len(self.values), None, dtype=object)
            places = self.values[~missing].astype(np.intp)
            made[~missing] = np.array(self.labels.tolist(), dtype=object)[places]
        elif self.kind == "date":
            made = times_of(self.values)
        elif (missing | (np.abs(self.values) > _LARGEST_WHOLE)).any():
            made = self.values
        else:
            made = self.values.astype(_DTYPES.get(self.kind, np.float64))
        return made if dtype is None else made.astype(dtype)

    def labels_present(self) -> np.ndarray:
        """Return the distinct values, in the order of the labels or increasing."""
        present = np.unique(self.values[~np.isnan(self.values)])
        if self.labels is not None:
            return read_only(self.labels[present.astype(np.intp)])
        return read_only(np.asarray(replace(self, values=present)))

    def places(self, known: np.ndarray) -> np.ndarray:
        """Return the positions of the values among these labels, (n,).

        Missing and unknown values are NaN. Equality is that of `level_places`.
        """
        if self.labels is not None:
            values, code = self.labels, self.values
        else:
            values, code = np.unique(self.values, return_inverse=True)
        listed = values.tolist()
        if self.kind == "truth":  # the text of 1.0 is not that of True
            listed = [v if np.isnan(v) else bool(v) for v in listed]
        place = level_places(listed, known.tolist())
        of_value = np.array([place.get(v, np.nan) for v in listed] + [np.nan])
        return of_value[np.where(np.isnan(code), -1, code).astype(np.intp)]


@dataclass(frozen=True, slots=True, eq=False)
class Categorical:
    """Dtype of a categorical column, with the attributes of that of pandas."""

    categories: np.ndarray
    ordered: bool
