"""Read a table of comma-separated values, and say where it is wrong."""

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .checks import listed, shown

_MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The cells of a file as text, numbers only where they are asked for.

    A file without a header has the names x1..xd and, for its last column, y.
    """

    path: str
    names: tuple[str, ...]
    has_header: bool
    rows: list[list[str]]  # (n, len(names)) cells without surrounding blanks
    lines: list[int]  # (n,) line of the file on which each row ends

    def column(self, name: str) -> list[str]:
        """The cells of one column; ValueError if there is none of that name."""
        if name not in self.names:
            raise ValueError(
                f"{self.path} has no column {shown(name)}; it has {listed(self.names)}"
            )
        j = self.names.index(name)
        return [row[j] for row in self.rows]

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """(n, len(names)) float64, all finite; ValueError names the first bad cell."""
        X = np.empty((len(self.rows), len(names)))
        for k, name in enumerate(names):
            cells = self.column(name)
            values = _floats(cells)
            if values is None:
                bad = next(i for i, cell in enumerate(cells) if _floats([cell]) is None)
                raise self.error(bad, name, "is not a finite number")
            X[:, k] = values
        return X

    def labels(self, name: str) -> np.ndarray:
        """(n,) int64 if all cells are whole numbers, else float64, else str."""
        cells = self.column(name)
        values = _floats(cells)
        if values is None:
            for i, cell in enumerate(cells):
                if cell.lower() in _MISSING:
                    raise self.error(i, name, "is no label")
            return np.array(cells)
        # Beyond 2**53 doubles skip integers, so such labels stay as they were read.
        whole = np.all((values == np.rint(values)) & (np.abs(values) < 2**53))
        return values.astype(np.int64) if whole else values

    def error(self, row: int, name: str, problem: str) -> ValueError:
        """A complaint about one cell, for the caller to raise."""
        cell = self.rows[row][self.names.index(name)]
        if cell.lower() in _MISSING:
            problem = "is missing" if cell == "" else "stands for a missing value"
        what = f"{shown(cell)} " if cell else ""
        return ValueError(
            f"{self.path}, line {self.lines[row]}, column {shown(name)}: "
            f"{what}{problem}"
        )


def read_table(path: str) -> Table:
    """Read `path`, gzipped or not, in UTF-8.

    The first line is data if all its cells are numbers (or missing), or if some are,
    in just the columns where the last line has numbers (features before a text
    label); otherwise it is the header. Blank lines are skipped.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is not such a table: the message has the line.
    """
    try:
        reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
        read = [(row, reader.line_num) for row in reader if row]
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a readable table: {error}") from error
    if not read:
        raise ValueError(f"{path} is empty")
    rows = [[cell.strip() for cell in row] for row, _ in read]
    lines = [line for _, line in read]

    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise ValueError(
                f"{path}, line {line}: {len(row)} cells, but line {lines[0]} has "
                f"{width}"
            )
    if not _starts_with_header(rows):
        names = (*(f"x{j}" for j in range(1, width)), "y")
        return Table(path, names, False, rows, lines)

    names = tuple(rows[0])
    for j, name in enumerate(names):
        if not name:
            raise ValueError(f"{path}: the header has no name for column {j + 1}")
        if name in names[:j]:
            raise ValueError(f"{path}: the header names {shown(name)} twice")
    if len(rows) == 1:
        raise ValueError(f"{path} holds a header but no rows")
    return Table(path, names, True, rows[1:], lines[1:])


def _text(path: str) -> str:
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":  # gzip, whatever the file is called
        data = gzip.decompress(data)
    return data.decode("utf-8-sig")


def _starts_with_header(rows: list[list[str]]) -> bool:
    first, last = ([_reads_as_float(c) for c in row] for row in (rows[0], rows[-1]))
    if not any(first):
        return True
    # A gap in a line of numbers is a gap, to be reported, and not a name.
    numbers = all(
        number or cell.lower() in _MISSING
        for number, cell in zip(first, rows[0], strict=True)
    )
    return not numbers and first != last


def _reads_as_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _floats(cells: list[str]) -> np.ndarray | None:
    """The cells as finite numbers, or None if one of them is not."""
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None
    # float() takes 1_000 for a number; in a table it is a code or a slip
    if not np.isfinite(values).all() or any("_" in cell for cell in cells):
        return None
    return values
