"""Cells of text and their values, and optional libraries that read them faster.

None of the libraries is required. They read only regular CSV text, on which all of them
agree, and with the same result as `parse`: a column is numeric if every cell is a
number or missing. Doubtful cells are left as text, and then read like those of `parse`.
Irregular text is always read by `parse`.
"""

import csv
import inspect
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np

from .._input.columns import feature_names, frame_columns

# Cells that stand for a missing value, in lower case.
MISSING = ("", "?", "na", "n/a", "nan", "null", "none")
# Text of a missing value of Parquet, where any other text is a value.
NULL = "\0null"
_TRUTH = {"true": 1.0, "false": 0.0}

Column: TypeAlias = np.ndarray | list[str]  # (n,) float64 with NaN; or strings


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a table in text: separator, decimal mark, and missing values.

    `missing` holds the cells that stand for a missing value, in lower case.
    """

    separator: str = ","
    decimal: str = "."
    missing: tuple[str, ...] = MISSING

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


_Reader: TypeAlias = Callable[..., Any]

WORTH = 1_000_000  # bytes of a table from which importing a library pays


def csv_reader(data: bytes, layout: Layout) -> Callable[..., list[Column]] | None:
    """Return a function that reads the columns of rows of this UTF-8 text.

    Its arguments are the rows and the layout. None if no library is installed, or if
    the text is short or not regular.
    """
    read = _installed(CSV_READERS)
    if read is None or len(data) < WORTH or not _is_regular(data, layout):
        return None

    def columns(rows: bytes, layout: Layout) -> list[Column]:
        return [
            column if isinstance(column, np.ndarray) else column_of(column, layout)
            for column in read(rows, layout)
        ]

    return columns


def read_parquet(path: str, data: bytes) -> dict[str, Any]:
    """Return the columns of a Parquet file by name, in the type of the library."""
    read = _installed(PARQUET_READERS)
    if read is None:
        raise ValueError(
            f"{path} is a Parquet file: to read it, install one of "
            f"{', '.join(PARQUET_READERS)}"
        )
    try:
        frame = read(io.BytesIO(data))
        index = index_columns(io.BytesIO(data))
    except Exception as error:  # each library has its own classes of errors
        raise _unreadable(path, error) from error
    columns = zip(feature_names(frame) or (), frame_columns(frame), strict=True)
    return {name: column for name, column in columns if not index(name)}


_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def index_columns(file: Any) -> Callable[[str], bool]:
    """Return a function that tells which columns of a Parquet file are pandas' index.

    pandas writes the index of a frame as columns, and lists them in the metadata.
    Without pyarrow, which reads these, an index without a name is known by its column.
    """
    named: set[str] = set()
    if find_spec("pyarrow"):
        metadata = import_module("pyarrow.parquet").read_schema(file).metadata or {}
        about = json.loads(metadata.get(b"pandas", b"{}"))
        # A range is not stored as a column, but as a mapping.
        named = {
            name for name in about.get("index_columns", []) if isinstance(name, str)
        }
    return lambda name: name in named or bool(_UNNAMED_INDEX.fullmatch(name))


def parquet_batches(
    path: str, rows: int, columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield columns of a Parquet file for `rows` rows at a time.

    All columns are read unless `columns` names some. Without pyarrow, all rows are
    yielded at once, with all columns.
    """
    if not find_spec("pyarrow"):
        yield read_parquet(path, Path(path).read_bytes())
        return
    parquet: Any = import_module("pyarrow.parquet")
    table: Any = import_module("pyarrow").Table
    try:
        index = index_columns(path)
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            known = [name for name in file.schema_arrow.names if not index(name)]
            asked = [name for name in columns or known if name in known] or None
            for batch in file.iter_batches(rows, columns=asked, use_threads=False):
                frame = table.from_batches([batch])
                names = feature_names(frame) or ()
                yield dict(zip(names, frame_columns(frame), strict=True))
    except OSError:
        raise
    except Exception as error:  # each library has its own classes of errors
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> ValueError:
    """Return the error for a file that a library could not read."""
    return ValueError(f"{path} is not a readable table: {error}")


def _installed(readers: dict[str, _Reader]) -> _Reader | None:
    """Return the reader of the first installed library."""
    return next((read for name, read in readers.items() if find_spec(name)), None)


def _is_regular(data: bytes, layout: Layout) -> bool:
    """Return whether text has a plain layout that every library reads alike.

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


def _stripped(cells: list[str]) -> list[str]:
    """Return cells without surrounding blanks."""
    return [cell.strip() for cell in cells]


def _with_polars(data: bytes, layout: Layout) -> list[Column]:
    """Return the columns of regular text, read by polars."""
    pl: Any = import_module("polars")
    text = pl.read_csv(
        data, has_header=False, separator=layout.separator, infer_schema_length=0
    ).fill_null("")

    def as_float(cells: Any) -> Any:
        if layout.decimal != ".":
            # A cell with a point is then no number; "_" makes the cast fail.
            cells = cells.str.replace_all(".", "_", literal=True)
            cells = cells.str.replace_all(layout.decimal, ".", literal=True)
        return cells.cast(pl.Float64, strict=False)

    numbers = text.select(as_float(pl.all()))
    finite = numbers.select(pl.all().is_finite().fill_null(False).all()).row(0)
    rest = [name for name, fine in zip(text.columns, finite, strict=True) if not fine]
    words = []
    if rest:
        bare = text.select(pl.col(rest).str.strip_chars())
        known = ~pl.all().str.to_lowercase().is_in(layout.missing)
        number = as_float(pl.all())
        numbers = numbers.with_columns(bare.select(pl.when(known).then(number)))
        of_words = bare.select((known & ~number.is_finite().fill_null(False)).any())
        words = [name for name in rest if of_words[name][0]]
    return [
        _stripped(text[name].to_list())
        if name in words
        else numbers[name].fill_null(np.nan).to_numpy()
        for name in text.columns
    ]


def _with_pyarrow(data: bytes, layout: Layout) -> list[Column]:
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
            gap = pc.is_in(pc.utf8_lower(bare), pa.array(layout.missing, pa.string()))
            values = as_float(pc.if_else(gap, None, bare))
        if values is None:
            return _stripped(cells.to_pylist())
        numbers: np.ndarray = values.fill_null(np.nan).to_numpy()
        return numbers

    return [column(text[name]) for name in names]


def _with_pandas(data: bytes, layout: Layout) -> list[Column]:
    """Return the columns of regular text, read by pandas."""
    pd: Any = import_module("pandas")
    options: dict[str, Any] = {"header": None, "sep": layout.separator}
    # Exact digits are the default in later versions, where the option is deprecated.
    if "float_precision" in inspect.signature(pd.read_csv).parameters:
        options["float_precision"] = "round_trip"
    if layout.decimal == "." or b"." not in data:  # else 1.5 could be read as a number
        options["decimal"] = layout.decimal
    else:
        options["dtype"] = str
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.read_csv(io.BytesIO(data), na_filter=False, **options)
        words = [
            name
            for name, column in frame.items()
            if not (column.dtype.kind in "iuf" and np.isfinite(column).all())
        ]
        if words:  # read again as text, because pandas has converted some cells
            options["dtype"] = str
            text = pd.read_csv(
                io.BytesIO(data), na_filter=False, usecols=words, **options
            )
    return [
        _stripped(text[name].tolist()) if name in words else column.to_numpy(np.float64)
        for name, column in frame.items()
    ]


def _parquet_with_polars(file: BinaryIO) -> Any:
    return import_module("polars").read_parquet(file)


def _parquet_with_pyarrow(file: BinaryIO) -> Any:
    return import_module("pyarrow.parquet").read_table(file)


def _parquet_with_pandas(file: BinaryIO) -> Any:
    return import_module("pandas").read_parquet(file)


# In the order in which they are tried: the fastest first.
CSV_READERS: dict[str, _Reader] = {
    "polars": _with_polars,
    "pyarrow": _with_pyarrow,
    "pandas": _with_pandas,
}
PARQUET_READERS: dict[str, _Reader] = {
    "polars": _parquet_with_polars,
    "pyarrow": _parquet_with_pyarrow,
    "pandas": _parquet_with_pandas,
}
