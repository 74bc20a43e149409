"""Chunks of tables in files that are larger than memory."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

import numpy as np

from .._input.checks import shown
from .._input.frame import Frame
from .._input.immutable import Immutable
from .readers import Layout, parquet_tables
from .table import (
    GZIP,
    PARQUET,
    STDIN,
    Above,
    Table,
    as_utf8,
    check_text,
    layout_of,
    parquet_table,
    read_table,
    text_table,
    unreadable,
)

PIECE = 1 << 23  # bytes of text per chunk; its numbers take about as many
ROWS = 1 << 16  # rows of a Parquet file per chunk


def table_pieces(
    path: str,
    *,
    separator: str | None = None,
    decimal: str = ".",
    missing: Sequence[str] | None = None,
    encoding: str = "utf-8",
    columns: Sequence[str] | None = None,
) -> Generator[Table, None, None]:
    """Yield the table of a file in chunks of rows, each read as by `read_table`.

    The first chunk determines whether the first line of text is a header. Standard
    input, and Parquet that is gzipped, are read in one chunk.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns that are needed; other columns of a Parquet file are not read.
    """
    layout = layout_of(path, separator, decimal, missing, encoding)
    whole = partial(
        read_table,
        path,
        separator=separator,
        decimal=decimal,
        missing=missing,
        encoding=encoding,
    )
    if path == STDIN:
        yield whole()
        return
    with open(path, "rb") as file:
        is_gzip = file.peek(2).startswith(GZIP)
        # The stream of gzip holds nothing that closing `file` does not release.
        text: Any = gzip.open(file) if is_gzip else file  # noqa: SIM115
        text = as_utf8(text, layout.encoding)
        with unreadable(path):
            start = text.read(len(PARQUET))
        if start != PARQUET:
            yield from _text_pieces(path, text, start, layout)
        elif is_gzip:
            yield whole()
        else:
            yield from _parquet_pieces(path, columns, layout)


def _text_pieces(
    path: str, file: IO[bytes], held: bytes, layout: Layout
) -> Generator[Table, None, None]:
    """Yield chunks of a file of text, whose first bytes `held` have been read."""
    above: Above | None = None
    lines, more = 0, True
    while more:
        with unreadable(path):
            read = file.read(PIECE)
        held, more = held + read, len(read) == PIECE  # a small file is one chunk
        if not lines:
            held = held.removeprefix(codecs.BOM_UTF8)
        end = end_of_rows(held) if more else len(held)
        check_text(path, read if lines else held, len(held) - end)
        if above is None and more and held[:end].strip(b"\r\n").count(b"\n") < 1:
            continue  # a header is recognised by the rows below it
        piece, held = held[:end], held[end:]
        # A file without rows is read as well, for its error message.
        if piece.strip(b"\r\n") or not (more or above):
            table = text_table(path, piece, layout, above)
            yield table
            layout = table.layout
            above = Above(table.names, table.has_header, 0, table.skipped)
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
    """Yield chunks of a Parquet file."""
    start = 0
    for batch in parquet_tables(path, path, ROWS, columns):
        table = parquet_table(path, batch, layout, start)
        yield table
        start += len(table)
    if not start:
        raise ValueError(f"{path} is empty")


@dataclass(frozen=True, slots=True)
class TableBlocks(Immutable):
    """Rows of a file as a source of blocks, with labels and weights in its columns.

    Attributes
    ----------
    path : str
    target, weight : str, optional
        Columns of labels and of weights.
    features : tuple of str, optional
        By default all other columns but `drop`.
    drop : tuple of str
    separator, decimal, missing, encoding
        As for `read_table`.
    levels : mapping of str to sequence of str
        Words that are values of a column, as for `Table`.
    held : Table, optional
        Content of the file, if it has been read already, as of a pipe.
    """

    path: str
    target: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    separator: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] | None = None
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    encoding: str = "utf-8"
    held: Table | None = None

    def tables(
        self, columns: Sequence[str] | None = None
    ) -> Generator[Table, None, None]:
        """Yield the chunks of the file; other columns may be left out."""
        if self.held is not None:
            yield replace(self.held, levels=self.levels)
            return
        pieces = table_pieces(
            self.path,
            separator=self.separator,
            decimal=self.decimal,
            missing=self.missing,
            encoding=self.encoding,
            columns=columns,
        )
        with closing(pieces):
            for piece in pieces:
                yield replace(piece, levels=self.levels)

    def features_of(self, table: Table) -> tuple[str, ...]:
        """Return the names of the features."""
        if self.features is not None:
            return self.features
        others = {self.target, self.weight, *self.drop}
        for name in others - {None}:
            table.column(str(name))  # raises if there is no such column
        names = tuple(name for name in table.names if name not in others)
        if not names:
            raise ValueError(
                f"{self.path} has no columns other than "
                f"{', '.join(map(shown, table.names))}: there are no features"
            )
        return names

    def blocks(self) -> Generator[tuple[Any, ...], None, None]:
        """Yield (X,), (X, y) or (X, y, weight), chunk by chunk."""
        asked = None
        if self.features is not None:
            others = (self.target, self.weight)
            asked = [*self.features, *(name for name in others if name is not None)]
        categorical: bool | None = None
        with closing(self.tables(asked)) as tables:
            for table in tables:
                names = self.features_of(table)
                try:
                    X = Frame.of_numbers(table.numbers(names), names)
                except ValueError as error:
                    if "decimal=" in str(error):  # the remedy
                        raise
                    raise ValueError(
                        f"{error}; fill in missing values and encode words first, or "
                        "leave such columns out"
                    ) from None
                if self.target is None:
                    yield (X,)
                    continue
                if categorical is None:
                    categorical = table.is_categorical(self.target)
                y = table.labels(self.target, categorical)
                yield (X, y, *self._weights(table))

    def _weights(self, table: Table) -> list[np.ndarray]:
        """Return the weights of a chunk, if there is a column of weights."""
        return [] if self.weight is None else [table.numbers([self.weight])[:, 0]]
