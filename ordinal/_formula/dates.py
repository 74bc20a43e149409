"""Numbers that are made of a column of dates: its year, month, weekday and days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from .._input.checks import can_be_listed, listed, shown
from .._input.columns import coded_column
from .._input.frame import Frame, date_of, days_of

Part = Literal["year", "month", "weekday", "days"]
PARTS: tuple[Part, ...] = get_args(Part)


def check_dates(dates: Any) -> dict[str | int, tuple[Part, ...]]:
    """Return the argument `dates` as a mapping from columns to their parts."""
    if not isinstance(dates, Mapping) and not can_be_listed(dates):
        raise ValueError(
            "dates must be a sequence of columns by name or number, or a mapping from "
            f"them to parts, got {shown(dates)}"
        )
    given = dates if isinstance(dates, Mapping) else dict.fromkeys(dates, PARTS)
    for column, parts in given.items():
        chosen = set(parts) if can_be_listed(parts) else {parts}
        if not chosen or not chosen <= set(PARTS) or not can_be_listed(parts):
            raise ValueError(
                f"dates[{shown(column)}] must be a sequence of {listed(PARTS)}, got "
                f"{shown(parts)}"
            )
    # The order of the parts is always the same, so that equal options are equal.
    return {c: tuple(p for p in PARTS if p in parts) for c, parts in given.items()}


def part_of_dates(frame: Frame, j: int, part: Part) -> np.ndarray:
    """Return one part of the dates of a column, (n,) float64; NaN is missing.

    Weekdays are numbered from 0, Monday, and days from 1970-01-01; times of day are
    fractions of days. Strings must be dates that `date_of` reads.
    """
    days = _days(frame, j)
    if part == "days":
        return days
    known = ~np.isnan(days)
    whole = np.floor(days[known]).astype(np.int64)
    if part == "weekday":
        numbers = (whole + 3) % 7  # 1970-01-01 was a Thursday
    else:
        dates = whole.astype("datetime64[D]")
        months = dates.astype("datetime64[M]").astype(np.int64)
        numbers = months // 12 + 1970 if part == "year" else months % 12 + 1
    values = np.full(days.shape, np.nan)
    values[known] = numbers
    return values


def _days(frame: Frame, j: int) -> np.ndarray:
    """Return a column of dates as days since 1970-01-01, (n,)."""
    name, column = f"column {shown(frame.shown_names[j])} of X", frame.column(j)
    if column.kind == "date":
        return column.values
    if column.labels is None:
        if not np.isnan(column.values).all():
            row = int(np.isnan(column.values).argmin())
            raise TypeError(
                f"{name} must hold dates, got {column.values[row]:g} in row {row}: "
                "pandas.to_datetime makes dates of numbers"
            )
        return column.values
    places = coded_column(frame, j, column.labels)
    used = np.unique(places[~np.isnan(places)]).astype(np.intp)
    days = np.full(len(column.labels) + 1, np.nan)
    for place in used.tolist():
        text = str(column.labels[place])
        time = date_of(text)
        if time is None:
            raise ValueError(
                f"{name} holds {shown(text)}, which is not written as 2024-01-31 or "
                "31.01.2024: rewrite the column, as pandas.to_datetime does"
            )
        days[place] = days_of(np.array([time], dtype="datetime64[us]"))[0]
    return days[np.where(np.isnan(places), -1, places).astype(np.intp)]
