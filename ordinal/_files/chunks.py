"""Tables of files that are larger than memory: some megabytes of rows at a time."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from .._input.checks import shown
from .._input.frame import Frame
from .._input.sparse import Immutable
from .readers import Layout, parquet_batches
from .table import (
    GZIP,
    PARQUET,
    STDIN,
    Above,
    Table,
    layout_of,
    parquet_table,
    read_table,
    text_table,
    unreadable,
)

PIECE = 1 << 23  # bytes of text; its numbers take about as many
ROWS = 1 << 16  # of a Parquet file


def table_pieces(
    path: str,
    *,
    separator: str | None = None,
    decimal: str = ".",
    columns: Sequence[str] | None = None,
) -> Generator[Table, None, None]:
    """Yield the tables of `read_table` for some rows at a time.

    Whether the first line of text is a header is said by the first of them. Standard
    input, and Parquet without pyarrow, come as one.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns that are asked for; a Parquet file is read no further than these.
    """
    layout = layout_of(path, separator, decimal)
    if path == STDIN:
        yield read_table(path, separator=separator, decimal=decimal)
        return
    with open(path, "rb") as file:
        is_gzip = file.peek(2).startswith(GZIP)
        # closing `file` ends the stream of gzip, which holds nothing else
        text: Any = gzip.open(file) if is_gzip else file  # noqa: SIM115
        with unreadable(path):
            start = text.read(len(PARQUET))
        if start != PARQUET:
            yield from _text_pieces(path, text, start, layout)
        elif is_gzip:
            yield read_table(path, separator=separator, decimal=decimal)
        else:
            yield from _parquet_pieces(path, columns, layout)


def _text_pieces(
    path: str, file: IO[bytes], held: bytes, layout: Layout
) -> Generator[Table, None, None]:
    above: Above | None = None
    lines, more = 0, True
    while more:
        with unreadable(path):
            read = file.read(PIECE)
        held, more = held + read, len(read) == PIECE  # a small file is one piece
        if not lines:
            held = held.removeprefix(codecs.BOM_UTF8)
        end = end_of_rows(held) if more else len(held)
        if above is None and more and held[:end].strip(b"\r\n").count(b"\n") < 1:
            continue  # what is the header is seen by the rows below it
        piece, held = held[:end], held[end:]
        # without rows it is read for what is wrong with it
        if piece.strip(b"\r\n") or not (more or above):
            table = text_table(path, piece, layout, above)
            yield table
            above = Above(table.names, table.has_header, 0)
        lines += piece.count(b"\n")
        above = above and replace(above, lines=lines)


def end_of_rows(text: bytes) -> int:
    """Return the end of the last row whose quotes are closed."""
    end = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end)
    while end and quotes % 2:
        before = text.rfind(b"\n", 0, end - 1) + 1
        quotes -= text.count(b'"', before, end)
        end = before
    return end


def _parquet_pieces(
    path: str, columns: Sequence[str] | None, layout: Layout
) -> Generator[Table, None, None]:
    start = 0
    for batch in parquet_batches(path, ROWS, columns):
        table = parquet_table(path, batch, layout, start)
        yield table
        start += len(table)
    if not start:
        raise ValueError(f"{path} is empty")


@dataclass(frozen=True, slots=True)
class TableBlocks(Immutable):
    """The rows of a file as a source of blocks: features by name, labels and weights
    of columns of the same file.

    Attributes
    ----------
    path : str
    target, weight : str, optional
        Columns of labels and of weights.
    features : tuple of str, optional
        By default all other columns but `drop`.
    drop : tuple of str
    separator, decimal
        As for `read_table`.
    """

    path: str
    target: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    separator: str | None = None
    decimal: str = "."

    def tables(
        self, columns: Sequence[str] | None = None
    ) -> Generator[Table, None, None]:
        """Return the file in pieces, read no further than these columns where it can
        be.
        """
        return table_pieces(
            self.path, separator=self.separator, decimal=self.decimal, columns=columns
        )

    def features_of(self, table: Table) -> tuple[str, ...]:
        """Return the names of the features."""
        if self.features is not None:
            return self.features
        others = {self.target, self.weight, *self.drop}
        for name in others - {None}:
            table.column(str(name))  # so that a misspelt one is not taken for a feature
        names = tuple(name for name in table.names if name not in others)
        if not names:
            raise ValueError(
                f"{self.path} has no columns other than "
                f"{', '.join(map(shown, table.names))}: there are no features"
            )
        return names

    def blocks(self) -> Generator[tuple[Any, ...], None, None]:
        """Yield (X,), (X, y) or (X, y, weight) of some rows at a time."""
        asked = None
        if self.features is not None:
            others = (self.target, self.weight)
            asked = [*self.features, *(name for name in others if name is not None)]
        words: bool | None = None
        with closing(self.tables(asked)) as tables:
            for table in tables:
                names = self.features_of(table)
                X = Frame.of_numbers(table.numbers(names), names)
                if self.target is None:
                    yield (X,)
                    continue
                if words is None:
                    words = table.is_of_words(self.target)
                y = table.labels(self.target, words)
                yield (X, y, *self._weights(table))

    def _weights(self, table: Table) -> list[np.ndarray]:
        return [] if self.weight is None else [table.numbers([self.weight])[:, 0]]
