"""Tables as text: their cells, and what a column of cells says."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

# In lower case, what stands for a value that is missing.
MISSING = ("", "?", "na", "n/a", "nan", "null", "none")
_TRUTH = {"true": 1.0, "false": 0.0, **dict.fromkeys(MISSING, np.nan)}

Column: TypeAlias = np.ndarray | list[str]  # (n,) float64, NaN for a gap; or words


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a table in text: cell separator and decimal mark."""

    separator: str = ","
    decimal: str = "."


class Cells(NamedTuple):
    """Every cell of a file without surrounding blanks, and the line on which each row
    ends.
    """

    rows: list[list[str]]
    lines: list[int]


def parse(text: str, layout: Layout) -> Cells:
    """Blank lines are skipped; csv.Error if quotes do not match."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, strict=True, delimiter=layout.separator)
    read = [(row, reader.line_num) for row in reader if row]
    rows = [[cell.strip() for cell in row] for row, _ in read]
    return Cells(rows, [line for _, line in read])


def is_gap(cell: str) -> bool:
    return cell.lower() in MISSING


def column_of(cells: list[str], layout: Layout) -> Column:
    """Return numbers if every cell is one or missing, 1 and 0 if every cell is true,
    false or missing, and else the cells as they are.
    """
    values = as_numbers(cells, layout)
    if values is None and all(cell.lower() in _TRUTH for cell in cells):
        values = np.array([_TRUTH[cell.lower()] for cell in cells])
    return cells if values is None else values


def as_numbers(cells: Sequence[str], layout: Layout) -> np.ndarray | None:
    """(n,) float64 with NaN for gaps, or None if another cell is no finite number."""
    # float() takes 1_000 for a number; in a table it is a code or a slip
    foreign = "_" if layout.decimal == "." else "_."
    if any(mark in cell for mark in foreign for cell in cells):
        return None
    if layout.decimal != ".":
        cells = [cell.replace(layout.decimal, ".") for cell in cells]
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        values = None
    if values is not None and np.isfinite(values).all():
        return values
    known = [cell for cell in cells if not is_gap(cell)]
    if len(known) == len(cells):
        return None
    numbers = as_numbers(known, Layout())
    if numbers is None:
        return None
    values = np.full(len(cells), np.nan)
    values[[not is_gap(cell) for cell in cells]] = numbers
    return values
