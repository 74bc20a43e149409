"""Cells of text and their values, and pyarrow, which reads them faster, and Parquet.

pyarrow is optional. It reads only regular CSV text, and with the same result as
`parse`: a column is numeric if every cell is a number or missing. Other columns are
left as text, and then read like those of `parse`. Irregular text is always read by
`parse`.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from .._input.columns import (
    check_distinct,
    feature_names,
    frame_columns,
)

# Cells that stand for a missing value, in lower case.
MISSING = ("", "?", "na", "n/a", "#n/a", "nan", "null", "none")
# Text of a missing value of Parquet, where any other text is a value.
NULL = "\0null"
_RECOGNISED = ",;\t|"  # separators that the first line may show
_TRUTH = {"true": 1.0, "false": 0.0}

Column: TypeAlias = np.ndarray | list[str]  # (n,) float64 with NaN; or strings


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a table in text: separator, decimal mark, missing values, encoding.

    `missing` holds the cells that stand for a missing value, in lower case. The first
    line may show another separator if it is `assumed`.
    """

    separator: str = ","
    decimal: str = "."
    missing: tuple[str, ...] = MISSING
    encoding: str = "utf-8"
    assumed: bool = False

    def seen_in(self, line: str) -> "Layout":
        """Return the layout of a table with this first line.

        Where it lacks the assumed separator, and has one other separator, this one is
        taken.
        """
        bare = re.sub('"[^"]*"', "", line)
        seen = [c for c in _RECOGNISED if c in bare and c != self.decimal]
        found = self.assumed and self.separator not in bare and len(seen) == 1
        return replace(self, separator=seen[0]) if found else self

    def is_missing(self, cell: str) -> bool:
        """Return whether a cell stands for a missing value."""
        return cell.lower() in self.missing


class Cells(NamedTuple):
    """Cells of a file without surrounding blanks, and the last line of each row."""

    rows: list[list[str]]
    lines: list[int]


def parse(text: str, layout: Layout) -> Cells:
    """Return the cells of CSV text; blank lines are skipped.

    Raises csv.Error if quotes do not match.
    """
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, strict=True, delimiter=layout.separator)
    read = [(row, reader.line_num) for row in reader if row]
    rows = [[cell.strip() for cell in row] for row, _ in read]
    return Cells(rows, [line for _, line in read])


def column_of(cells: list[str], layout: Layout) -> Column:
    """Return the cells of a column as numbers if possible, otherwise as they are.

    All cells must be numbers or missing, or all true (1), false (0) or missing.
    """
    values = as_numbers(cells, layout)
    truth = _TRUTH | dict.fromkeys(layout.missing, np.nan)
    if values is None and all(cell.lower() in truth for cell in cells):
        values = np.array([truth[cell.lower()] for cell in cells])
    return cells if values is None else values


def as_numbers(cells: Sequence[str], layout: Layout) -> np.ndarray | None:
    """Return cells as numbers, (n,) float64 with NaN for missing values.

    None if any other cell is no finite number.
    """
    # float() accepts 1_000, which in a table is a code or a mistake.
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
    is_known = [not layout.is_missing(cell) for cell in cells]
    if all(is_known):
        return None
    numbers = as_numbers(
        [c for c, k in zip(cells, is_known, strict=True) if k], Layout()
    )
    if numbers is None:
        return None
    values = np.full(len(cells), np.nan)
    values[is_known] = numbers
    return values


WORTH = 1_000_000  # bytes of a table from which importing pyarrow pays


def is_for_pyarrow(data: bytes, layout: Layout) -> bool:
    """Return whether pyarrow is to read this UTF-8 text.

    It must be importable, and the text long enough and regular.
    """
    worth = len(data) >= WORTH and not failure_of("pyarrow")
    return worth and _is_regular(data, layout)


def failure_of(package: str) -> str:
    """Return why an optional package cannot be imported, or nothing.

    One that is installed may need another numpy.
    """
    try:
        import_module(package)
    except ImportError as error:
        return str(error)
    return ""


def parquet_tables(
    path: str,
    file: str | IO[bytes],
    rows: int | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the columns of a Parquet file by name, as pyarrow has them.

    Parameters
    ----------
    path : str
        Name of the file in messages.
    file : path, or file in memory
    rows : int, optional
        Number of rows at a time; by default all are yielded at once.
    columns : sequence of str, optional
        Columns that are needed; by default all. The index of pandas is left out.
    """
    if failure := failure_of("pyarrow"):
        raise ValueError(
            f"{path} is a Parquet file, which pyarrow reads: install it (pip install "
            f"pyarrow), or save the table as CSV ({failure})"
        )
    parquet: Any = import_module("pyarrow.parquet")
    table: Any = import_module("pyarrow").Table
    try:
        with parquet.ParquetFile(file, pre_buffer=False) as opened:
            names = _without_index(opened.schema_arrow)
            check_distinct(names, path)
            asked = [name for name in columns or names if name in names] or None
            if rows is None:
                batches = iter([opened.read(asked)])
            else:
                pieces = opened.iter_batches(rows, columns=asked, use_threads=False)
                batches = (table.from_batches([piece]) for piece in pieces)
            lost = _without_dictionary(opened.metadata)
            for batch in batches:
                known = feature_names(batch) or ()
                held = zip(known, frame_columns(batch), strict=True)
                yield {k: _as_array(_decoded(c) if k in lost else c) for k, c in held}
    except Exception as error:  # pyarrow has its own classes of errors
        if str(error).startswith(path):  # of `check_distinct`
            raise
        if isinstance(error, OSError) and error.errno is not None:  # of the system
            raise
        raise ValueError(f"{path} is not a readable table: {error}") from error


_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def _without_index(schema: Any) -> list[str]:
    """Return the columns of a file but those in which pandas has written an index.

    The metadata of pandas list them. Where another library has written the file anew,
    without metadata, an index that had no name is known by the name of its column.
    """
    about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    index = about.get("index_columns", [])  # a mapping stands for a range, not stored
    named = (name for name in schema.names if name not in index)
    return [name for name in named if not _UNNAMED_INDEX.fullmatch(name)]


def _without_dictionary(metadata: Any) -> set[str]:
    """Return the columns that some row group holds without a dictionary."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
    return {c.path_in_schema for c in chunks if not c.has_dictionary_page}


def _decoded(column: Any) -> Any:
    """Return the values of ordered categories, whose order the file does not hold.

    pyarrow puts them in the order in which they appear, and calls them ordered still.
    """
    kind = column.type
    return column.cast(kind.value_type) if getattr(kind, "ordered", False) else column


def _is_regular(data: bytes, layout: Layout) -> bool:
    """Return whether text has a plain layout that pyarrow reads as `parse` does.

    It has at least two rows and two columns, equally many cells in each row, quotes
    around whole cells of one line only, no empty lines, and no line that exceeds the
    largest cell of our own reader.
    """
    if b"\0" in data:
        return False
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    if max(map(len, data.split(b"\n"))) > csv.field_size_limit():
        return False
    separator = layout.separator.encode()
    if b'"' in data:
        mark = re.escape(separator)
        cell = rb'(?:(?<=[%s\n])|\A)"[^"\n]*"(?=[%s\r\n]|\Z)' % (mark, mark)
        data = re.sub(cell, b"", data)
        if b'"' in data:
            return False
    others = bytes(set(range(256)) - {*separator, *b"\n"})
    marks = data.translate(None, delete=others).removesuffix(b"\n") + b"\n"
    line = marks[: marks.index(b"\n") + 1]
    n_rows = len(marks) // len(line)
    return len(line) > 1 and n_rows > 1 and marks == line * n_rows


def columns_by_pyarrow(data: bytes, layout: Layout) -> list[Column]:
    """Return the columns of regular text, read by pyarrow."""
    pa: Any = import_module("pyarrow")
    arrow: Any = import_module("pyarrow.csv")
    pc: Any = import_module("pyarrow.compute")
    first = data.partition(b"\n")[0].decode()
    names = [str(j) for j in range(len(parse(first, layout).rows[0]))]
    text = arrow.read_csv(
        io.BytesIO(data),
        read_options=arrow.ReadOptions(column_names=names),
        parse_options=arrow.ParseOptions(delimiter=layout.separator),
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string())
        ),
    )

    missing = _strings(layout.missing)

    def as_float(cells: Any) -> Any:
        if layout.decimal != ".":
            cells = pc.replace_substring(cells, ".", "_")
            cells = pc.replace_substring(cells, layout.decimal, ".")
        try:
            values = pc.cast(cells, pa.float64())
        except pa.ArrowInvalid:  # a cell that is no number
            return None
        return values if pc.all(pc.is_finite(values), min_count=0).as_py() else None

    def column(cells: Any) -> Column:
        values = as_float(cells)
        if values is None:
            bare = pc.utf8_trim_whitespace(cells)
            gap = pc.is_in(pc.utf8_lower(bare), missing)
            values = as_float(pc.if_else(gap, pa.nulls(len(bare), pa.string()), bare))
        if values is None:
            return column_of([cell.strip() for cell in cells.to_pylist()], layout)
        numbers: np.ndarray = _as_array(values)
        return numbers

    return [column(text[name]) for name in names]


def _as_array(column: Any) -> Any:
    """Return a column of strings, of floats, or of integers all known as an array.

    A missing float is NaN, a missing string None; other columns are returned as they
    are. numpy's conversion would import pandas where it is installed, which takes
    longer than reading 100 000 rows.
    """
    pa: Any = import_module("pyarrow")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array(column.to_pylist(), dtype=object)
    is_float = pa.types.is_floating(column.type)
    if not (is_float or (pa.types.is_integer(column.type) and not column.null_count)):
        return column
    values = _buffered(column)
    if column.null_count:
        valid = import_module("pyarrow.compute").is_valid(column)
        values[_buffered(valid.cast(pa.uint8())) == 0] = np.nan
    return values


def ordered_categories(column: Any) -> list[str]:
    """Return the categories of a column of Parquet, if they are ordered strings."""
    if not getattr(getattr(column, "type", None), "ordered", False):
        return []
    known = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
    return known if all(isinstance(text, str) for text in known) else []


def _buffered(column: Any) -> np.ndarray:
    """Return the numbers of a column, of any value where they are missing."""
    kind = np.dtype(column.type.to_pandas_dtype())
    parts = [
        np.frombuffer(part.buffers()[1], kind, len(part), part.offset * kind.itemsize)
        for part in column.chunks
        if len(part)
    ]
    return np.concatenate([np.empty(0, kind), *parts])


def _strings(words: Sequence[str]) -> Any:
    """Return strings as an array of pyarrow, for the reason of `_as_array`."""
    pa: Any = import_module("pyarrow")
    encoded = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    buffers = pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(words), *buffers)
