"""Warnings at the caller of the package, and of rows in another order."""

import os
import sys
import warnings
from collections.abc import Mapping
from types import FrameType
from typing import Any

from .checks import shown

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first caller outside this package."""
    frame, level = sys._getframe(1), 2
    while (up := frame.f_back) is not None and _is_own(up):
        frame, level = up, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame belongs to this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def warn_of_other_order(X: object, name: str = "X", **by_row: object) -> None:
    """Warn of each argument that has the index of a table, of pandas, in another order.

    Rows are matched by position, so that each row would get the entry of another one.
    `name` is the name of the table; an argument may be a mapping of names to columns.
    """
    rows = _index_of(X)
    for argument, given in by_row.items() if rows is not None else ():
        parts = {argument: given}
        if isinstance(given, Mapping):
            parts = {f"{argument}[{shown(k)}]": given[k] for k in given}
        for part, values in parts.items():
            if _in_another_order(rows, _index_of(values)):
                warn(
                    f"{part} has the index of {name} in another order, and rows are "
                    f"matched by position: pass {part}.loc[{name}.index] to match "
                    f"them by index, or {part}.to_numpy() to keep them",
                    UserWarning,
                )


def _index_of(values: Any) -> Any:
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
