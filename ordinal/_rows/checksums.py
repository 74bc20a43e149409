"""Checksums of rows that are read more than once, to notice passes that differ.

A checksum belongs to `SPAN` consecutive rows and does not depend on how a source cuts
them into blocks. It is the CRC-32 of a sample of these rows: of the first 64 and of
every 127th of the others. One of all entries would take longer than reading them from
memory. Every change of 127 neighbouring rows or more is noticed.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np

from .._input.types import Matrix

SPAN = 8192  # rows of a checksum
_HEAD, _STEP = 64, 127


class Checksums:
    """Checksums of the spans of rows that are read in their order.

    Parameters
    ----------
    first : Checksums, optional
        Those of the first pass, with which these are compared.
    start : int
        The number of the first row, which begins a span.

    Attributes
    ----------
    stop : int
        The number of the row to be read next.
    sums : list of int
        Of a first pass: one per span that has ended.
    missing : (d,) array of bool, or None
        Of a first pass: the columns that lack values; None where none does.
    unlike : range, or None
        The first span whose rows are others than in the first pass.
    """

    def __init__(self, first: Checksums | None = None, start: int = 0):
        self.stop = start
        self.sums: list[int] = []
        self.missing: np.ndarray | None = None
        self.unlike: range | None = None
        self._first, self._begin, self._sum = first, start, 0

    def add(self, X: Matrix) -> None:
        """Continue with the next rows."""
        done, n = 0, X.shape[0]
        while done < n:
            size = min(self._begin + SPAN - self.stop, n - done)
            place, end = self.stop - self._begin, done + size
            # the first rows of the span, and the next one behind them that is sampled
            head = min(done + max(_HEAD - place, 0), end)
            after = done + max(_HEAD - place, (_HEAD - place) % _STEP)
            for rows in (slice(done, head), slice(after, end, _STEP)):
                if rows.start < rows.stop:
                    self._sum = _continued(self._sum, X, rows, place - done)
            done, self.stop = end, self.stop + size
            if self.stop - self._begin == SPAN:
                self.end_span()

    def add_missing(self, X: np.ndarray) -> int | None:
        """Learn which columns lack values, and return one that lacked none before the
        end of the first pass.
        """
        if not np.isnan(X.min()):  # one comparison per entry, which is cheap
            return None
        found = np.isnan(X).any(axis=0)
        if self._first is None:
            self.missing = found if self.missing is None else self.missing | found
            return None
        known = self._first.missing
        new = found if known is None else found & ~known
        return int(new.argmax()) if new.any() else None

    def end_span(self) -> None:
        """End a span where one was begun, and compare its checksum."""
        if self.stop == self._begin:
            return
        first = self._first
        if first is None:
            self.sums.append(self._sum)
        # of an incomplete span the number of rows is wrong, which is reported elsewhere
        elif (
            self.stop == min(self._begin + SPAN, first.stop)
            and self._sum != first.sums[self._begin // SPAN]
            and self.unlike is None
        ):
            self.unlike = range(self._begin, self.stop)
        self._begin, self._sum = self.stop, 0


def _continued(total: int, X: Matrix, rows: slice, place: int) -> int:
    """Return the CRC-32 of some rows, continued from that of those before.

    `place` is that of row 0 in its span.
    """
    if isinstance(X, np.ndarray):
        return crc32(np.ascontiguousarray(X[rows]).data, total)
    some = X.rows(rows)
    row = np.repeat(place + np.arange(X.shape[0])[rows], np.diff(some.indptr))
    # as triples, so that rows without entries count
    return crc32(np.column_stack([row, some.indices, some.data]).data, total)
