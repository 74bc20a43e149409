"""Some rows, as they are sent to another process that is to read them.

Rows of a file that is mapped are sent as its name, a source of blocks as itself, to be
read there; others are sent as they are.
"""

from __future__ import annotations

import mmap
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .blocks import Arrays, Reader, Rows, rows_of
from .types import Index, Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A range of rows of a file that is mapped."""

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    def opened(self) -> np.ndarray:
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """Rows from `start` on of those that a source has.

    Attributes
    ----------
    rows : matrix, Mapped, or source of blocks
    reader : Reader, or None
        Of rows that are read in blocks, without its source.
    n : int
        How many rows the source has.
    start, stop : int
    """

    rows: Any
    reader: Reader | None
    n: int
    start: int
    stop: int

    @classmethod
    def of(cls, X: Any, rows: slice) -> Sent:
        """Of a matrix, or of rows that are read in blocks."""
        size = rows.stop - rows.start
        if not isinstance(X, Rows):
            return cls(rows_of(X, rows), None, size, 0, size)
        reader, source = copy(X.reader), X.reader.source
        reader.source = None
        if isinstance(source, Arrays):
            reader.start += rows.start
            return cls(_of_array(source.X, rows), reader, size, 0, size)
        return cls(source, reader, len(X), rows.start, rows.stop)

    def opened(self) -> Any:
        """What the rows are asked of, by numbers from 0 on."""
        if self.reader is None:
            return self.rows
        rows = self.rows.opened() if isinstance(self.rows, Mapped) else self.rows
        reader = copy(self.reader)
        whole = isinstance(rows, np.ndarray)
        reader.source = Arrays(rows) if whole else rows
        read = Rows(reader, self.n)
        return read if whole else Stretch(read, self.start, self.stop)


def _of_array(X: Any, rows: slice) -> Any:
    """Some rows of an array: where they are, if they are in a file as they are here."""
    part = X[rows]
    in_file = isinstance(X, np.memmap) and X.mode != "c" and part.flags.c_contiguous
    if not in_file or not isinstance(X.filename, str | Path) or not part.size:
        return np.asarray(part)
    # numpy maps a file from a multiple of the granularity on
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    first = np.frombuffer(X._mmap, np.uint8).ctypes.data
    offset = begin + part.ctypes.data - first
    return Mapped(str(X.filename), part.dtype, part.shape, int(offset))


class Stretch:
    """Rows `start` to `stop` of rows that are read in blocks, numbered from 0 on."""

    def __init__(self, rows: Rows, start: int, stop: int):
        self._rows, self._start = rows, start
        self.shape = stop - start, rows.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Index) -> Matrix:
        if not isinstance(rows, slice):
            return self._rows[self._start + rows]
        start, stop, _ = rows.indices(len(self))
        return self._rows[self._start + start : self._start + stop]

    def close(self) -> None:
        self._rows.close()
