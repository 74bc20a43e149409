"""Tables of files or standard input, with errors that name the line or row."""

import codecs
import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from .._input.checks import (
    as_array,
    check_choice,
    enumerated,
    listed,
    shown,
    similar_to,
)
from .._input.columns import check_distinct, numbers_of
from .._input.frame import Frame, Kind, default_names
from .._input.immutable import read_only
from .._input.labels import is_missing
from .readers import (
    MISSING,
    NULL,
    Cells,
    Column,
    Layout,
    as_numbers,
    column_of,
    columns_by_pyarrow,
    is_for_pyarrow,
    ordered_categories,
    parquet_tables,
    parse,
)

STDIN = "-"

SEPARATORS = {".": ",", ",": ";"}  # by decimal mark, as in R and spreadsheets

# pandas writes integers of a column with missing values as 1.0, 2.0, ...
_WHOLE = re.compile(r"^(-?\d+)\.0+$")

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"  # first bytes of files, whatever their names


class Source(Protocol):
    """Origin of a table, for details that its numbers do not contain."""

    def cells_of(self, column: int) -> list[str]:
        """Return the cells of a column without surrounding blanks."""

    def place(self, row: int) -> str:
        """Return the place of a row, such as "line 4"."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of a file, each as numbers with NaN for missing values, or as strings.

    Without a header, the columns have the names x1..xd and, for the last one, y.
    `levels` holds texts of columns that are values there, also if they stand for a
    missing value elsewhere, and `orders` the ordered categories that a file declares.
    """

    path: str
    names: tuple[str, ...]
    has_header: bool
    columns: tuple[Column, ...]
    layout: Layout
    source: "Source"
    levels: Mapping[str, Collection[str]] = field(default_factory=dict)
    skipped: int = 0  # nameless columns on the left, which are left out
    orders: Mapping[str, list[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns[0])

    def column(self, name: str) -> Column:
        """Return one column; ValueError if there is none of that name."""
        return self.columns[self._number(name)]

    def is_missing(self, name: str, cell: str) -> bool:
        """Return whether a cell of a column stands for a missing value."""
        return self.layout.is_missing(cell) and cell not in self.levels.get(name, ())

    def is_categorical(self, name: str) -> bool:
        """Return whether a cell of the column is neither a number nor missing.

        Levels that stand for a missing value elsewhere, such as NA, are such cells.
        """
        levels = self.levels.get(name, ())
        return isinstance(self.column(name), list) or any(
            map(self.layout.is_missing, levels)
        )

    def cells_of(self, name: str) -> list[str]:
        """Return the cells of a column as they stand in the file."""
        column = self.column(name)
        if isinstance(column, list):
            return column
        return self.source.cells_of(self._number(name))

    def numbers(self, names: Sequence[str], missing: bool = False) -> np.ndarray:
        """Return columns as numbers, (n, len(names)) float64.

        Missing values are NaN if `missing`. ValueError names the first other cell that
        is no finite number, and the other columns with such cells.
        """
        X, first = np.empty((len(self), len(names))), dict[str, int]()
        for k, name in enumerate(names):
            column = self.column(name)
            if isinstance(column, list):
                values = (as_numbers([cell], self.layout) for cell in column)
                column = np.array([np.inf if v is None else v[0] for v in values])
            bad = np.isinf(column) if missing else ~np.isfinite(column)
            if bad.any():
                first[name] = int(bad.argmax())
            X[:, k] = column
        if first:
            (name, row), *others = first.items()
            comma = Layout(decimal=",")
            remedy = "; decimal=',' reads decimal commas"
            remedy *= as_numbers([self.cells_of(name)[row]], comma) is not None
            error = self.error(row, name, f"is not a finite number{remedy}")
            if others:
                also = enumerated([other for other, _ in others])
                error = ValueError(f"{error}; other columns with such cells: {also}")
            raise error
        return X

    def frame(self, names: Sequence[str], categorical: Container[str]) -> Frame:
        """Return columns as a frame for a fit.

        Columns in `categorical` become categories in alphabetical order. The others
        become numbers with missing values; ValueError names a cell that is neither.
        """
        values = np.empty((len(self), len(names)))
        labels: list[np.ndarray | None] = []
        for j, name in enumerate(names):
            if name in categorical:
                cells = [_WHOLE.sub(r"\1", cell) for cell in self.cells_of(name)]
                known = sorted({c for c in cells if not self.is_missing(name, c)})
                place = {cell: float(k) for k, cell in enumerate(known)}
                values[:, j] = [place.get(cell, np.nan) for cell in cells]
                labels.append(read_only(np.array(known, dtype=np.str_)))
            else:
                values[:, j] = self.numbers([name], missing=True)[:, 0]
                labels.append(None)
        kinds: list[Kind] = [
            "number" if known is None else "category" for known in labels
        ]
        return Frame(values, tuple(names), tuple(labels), tuple(kinds))

    def labels(self, name: str, categorical: bool | None = None) -> np.ndarray:
        """Return labels, (n,): int64 if all cells are whole numbers, float64, or str.

        `categorical` says whether they are strings, as in the first chunk of the table;
        by default this chunk decides.
        """
        if self.is_categorical(name) if categorical is None else categorical:
            cells = self.cells_of(name)
            for row, cell in enumerate(cells):
                if self.is_missing(name, cell):
                    raise self._no_label(row, name)
            return np.array(cells)
        values = self.numbers([name], missing=True)[:, 0]
        if np.isnan(values).any():
            raise self._no_label(int(np.isnan(values).argmax()), name)
        # Beyond 2**53 doubles skip integers, so such labels stay as they were read.
        whole = np.all((values == np.rint(values)) & (np.abs(values) < 2**53))
        return values.astype(np.int64) if whole else values

    def labelled(self, name: str) -> "Table":
        """Return the table without the rows in which a column is missing."""
        missing = [self.is_missing(name, cell) for cell in self.cells_of(name)]
        rows = np.flatnonzero(~np.array(missing, dtype=bool))
        columns = tuple(
            column[rows]
            if isinstance(column, np.ndarray)
            else [column[k] for k in rows]
            for column in self.columns
        )
        return replace(self, columns=columns, source=_Some(self.source, rows))

    def texts(self, name: str) -> list[str]:
        """Return the cells of a column as they stand in the file."""
        return ["" if cell == NULL else cell for cell in self.cells_of(name)]

    def error(self, row: int, name: str, problem: str) -> ValueError:
        """Make an error about one cell, for the caller to raise."""
        cell = self.cells_of(name)[row]
        if self.is_missing(name, cell):
            cell = "" if cell == NULL else cell
            problem = "stands for a missing value" if cell else "is missing"
        what = f"{shown(cell)} " if cell else ""
        place = f"{self.path}, {self.source.place(row)}"
        return ValueError(f"{place}, column {shown(name)}: {what}{problem}")

    def _no_label(self, row: int, name: str) -> ValueError:
        """Make the error about a row whose label is missing."""
        error = self.error(row, name, "is not a label")
        remedy = "--missing-labels drop of the command leaves such rows out"
        return ValueError(f"{error}; {remedy}")

    def _number(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(
                f"{self.path} has no column {shown(name)}; it has {listed(self.names)}"
                f"{similar_to(name, self.names)}"
            )
        return self.names.index(name)


class _Some:
    """Source of some rows of another source."""

    def __init__(self, source: Source, rows: np.ndarray):
        self.source, self.rows = source, rows

    def cells_of(self, column: int) -> list[str]:
        cells = self.source.cells_of(column)
        return [cells[k] for k in self.rows.tolist()]

    def place(self, row: int) -> str:
        return self.source.place(int(self.rows[row]))


class _Text:
    """Source of a table of text, whose cells are parsed at the first use."""

    def __init__(self, path: str, data: bytes, layout: Layout, above: int):
        self.path, self.data, self.layout = path, data, layout
        self.above = above  # lines of the file before these
        self.has_header = False
        self.skipped = 0  # nameless columns on the left
        self._cells: Cells | None = None

    @property
    def cells(self) -> Cells:
        if self._cells is None:
            with unreadable(self.path):
                self._cells = parse(self.data.decode("utf-8"), self.layout)
        return self._cells

    def cells_of(self, column: int) -> list[str]:
        column += self.skipped
        return [row[column] for row in self.cells.rows[self.has_header :]]

    @property
    def lines(self) -> list[int]:
        """Return the lines on which the rows end."""
        return [self.above + line for line in self.cells.lines]

    def place(self, row: int) -> str:
        return f"line {self.lines[row + self.has_header]}"


class _Frame:
    """Source of a table of a Parquet file, whose rows have numbers but no lines."""

    def __init__(self, columns: Sequence[Any], start: int):
        self.columns, self.start = columns, start

    def cells_of(self, column: int) -> list[str]:
        values = as_array(self.columns[column], "a column")
        if values.dtype.kind in "mM":  # tolist would turn dates into integers
            values = np.where(np.isnat(values), NULL, _dates(values))
        return [NULL if is_missing(v) else str(v).strip() for v in values.tolist()]

    def place(self, row: int) -> str:
        return f"row {self.start + row}"


def _dates(values: np.ndarray) -> np.ndarray:
    """Return dates and times as text, and dates alone if all times are midnight."""
    if values.dtype.kind == "M":
        days = values.astype("M8[D]")
        known = ~np.isnat(values)
        if (values[known] == days[known]).all():
            return days.astype(str)
        seconds = values.astype("M8[s]")
        if (values[known] == seconds[known]).all():
            values = seconds
    return np.char.replace(values.astype(str), "T", " ")


def read_table(
    path: str,
    *,
    separator: str | None = None,
    decimal: str = ".",
    missing: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Table:
    """Read a table: text, gzipped or not, or Parquet.

    The first line of text is the header if none of its cells is a number, or if a cell
    that is no number (and not missing) has a number below it in the last line. Blank
    lines are skipped. A column is numeric if all its cells are numbers or missing, or
    all true, false or missing (1 and 0); any other column holds strings. Text columns
    of Parquet are read in the same way.

    Parameters
    ----------
    path : str
        "-" is standard input.
    separator : str, optional
        One character between cells; by default a tab in files called .tsv, else a comma
        or, where that is the decimal mark, a semicolon. Where the first line lacks this
        one, the default is the comma, semicolon, tab or bar that it has.
    decimal : {".", ","}, default "."
    missing : sequence of str, optional
        Cells of text that stand for a missing value, in any case; by default `MISSING`.
        In Parquet, nulls and NaN are missing, and no text is.
    encoding : str, default "utf-8"
        Encoding of text, by a name that Python knows.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is not such a table: the message has the line.
    """
    layout = layout_of(path, separator, decimal, missing, encoding)
    name, data = _content(path, layout.encoding)
    if data.startswith(PARQUET):
        (columns,) = parquet_tables(name, io.BytesIO(data))
        if not columns or not len(next(iter(columns.values()))):
            raise ValueError(f"{name} is empty")
        return parquet_table(name, columns, layout)
    return text_table(name, data, layout)


@dataclass(frozen=True, slots=True)
class Above:
    """Properties of a table that are known from its earlier chunks.

    Attributes
    ----------
    names : tuple of str
    has_header : bool
    lines : int
        Number of lines in these chunks.
    skipped : int
        Number of nameless columns on the left, which are left out.
    """

    names: tuple[str, ...]
    has_header: bool
    lines: int
    skipped: int = 0


def text_table(
    path: str, data: bytes, layout: Layout, above: Above | None = None
) -> Table:
    """Return the table of text in UTF-8, or of a chunk of whole lines of it."""
    if not data.isascii():  # a faster test that most files pass
        with unreadable(path):
            data.decode("utf-8")
    if above is None:
        layout = layout.seen_in(data.lstrip().partition(b"\n")[0].decode("utf-8"))
    text = _Text(path, data, layout, above.lines if above else 0)
    fast = is_for_pyarrow(data, layout)
    if not fast:
        ends, lines = text.cells.rows, text.lines
    else:
        # Only the first and the last line are parsed here; no copy of all text is made.
        first = data[: data.index(b"\n")]
        last = data[data.rindex(b"\n", 0, len(data) - 1) + 1 :]
        ends = parse((first + b"\n" + last).decode("utf-8"), layout).rows
        lines = [text.above + 1] * len(ends)  # regular text has rows of one width
    _check_width(path, ends, lines, above, layout)
    if above is None:
        text.has_header = _starts_with_header(ends, layout)
        names = _header(path, ends) if text.has_header else _default_names(len(ends[0]))
        # pandas writes the index of a frame as a first column without a name.
        text.skipped = len(ends[0]) - len(names)
    else:
        names, text.skipped = above.names, above.skipped
    if not fast:
        rows = text.cells.rows[text.has_header :]
        columns = [column_of(list(cells), layout) for cells in zip(*rows, strict=True)]
    else:
        rest = data[(len(first) + 1) * text.has_header :]
        columns = columns_by_pyarrow(rest, layout)
    has_header = above.has_header if above else text.has_header
    columns = columns[text.skipped :]
    return Table(
        path, names, has_header, tuple(columns), layout, text, skipped=text.skipped
    )


def parquet_table(
    path: str, columns: Mapping[str, Any], layout: Layout, start: int = 0
) -> Table:
    """Return the table of columns of a Parquet file, from its row `start` on."""
    source = _Frame(list(columns.values()), start)
    layout = replace(layout, missing=(NULL,))
    read = tuple(
        numbers_of(column, name)
        if _holds_numbers(column)
        else column_of(source.cells_of(j), layout)
        for j, (name, column) in enumerate(columns.items())
    )
    declared = {name: ordered_categories(column) for name, column in columns.items()}
    orders = {name: order for name, order in declared.items() if order}
    return Table(path, tuple(columns), True, read, layout, source, orders=orders)


def layout_of(
    path: str,
    separator: str | None,
    decimal: str,
    missing: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Layout:
    """Return the checked layout of a file, with the separator that its name implies."""
    check_choice("decimal", decimal, SEPARATORS)
    assumed = separator is None
    if separator is None:
        is_tsv = path.removesuffix(".gz").endswith(".tsv")
        separator = "\t" if is_tsv else SEPARATORS[decimal]
    fits = isinstance(separator, str) and len(separator) == 1 and separator.isascii()
    if not fits or separator in f'"\r\n{decimal}':
        raise ValueError(
            "separator must be one ASCII character other than a quote, a line end "
            f"and the decimal mark, got {shown(separator)}"
        )
    words = MISSING if missing is None else ("", *(word.lower() for word in missing))
    try:
        "".encode(encoding)  # raises LookupError for a codec of bytes as well
        known = codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            "encoding must be one that Python knows, such as cp1252, latin-1 or "
            f"utf-16, got {shown(encoding)}"
        ) from None
    return Layout(separator, decimal, tuple(dict.fromkeys(words)), known, assumed)


_PART = 1 << 20  # bytes read at a time
_LONGEST = 1 << 28  # bytes of a line
_ZIP = b"PK\x03\x04"  # first bytes of workbooks and models
_PACKED = b"BZh91AY&SY", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"  # of bzip2, xz and zstd


def check_text(path: str, part: bytes, line: int) -> None:
    """Raise ValueError for a part of a file that no table of text has.

    `line` counts the bytes since the last end of a line. Such files may be endless.
    """
    if part.startswith(_ZIP):
        raise ValueError(
            f"{path} is an archive, such as a zip file, an Excel workbook or a saved "
            "model, and not a table: unpack the zip file, or save the sheet as CSV in "
            "UTF-8, or as Parquet"
        )
    if part.startswith(_PACKED):
        raise ValueError(
            f"{path} is compressed, and not by gzip: decompress it, or compress it by "
            "gzip, which is read as it is"
        )
    if b"\0" in part:
        raise ValueError(
            f"{path} is not a table: it holds zero bytes; if it is text in UTF-16, "
            "state encoding='utf-16', else save it as CSV in UTF-8, or as Parquet"
        )
    if line > _LONGEST:
        raise ValueError(
            f"{path} is not a table: a line has more than {_LONGEST} bytes"
        )


def _read(name: str, file: IO[bytes]) -> bytes:
    """Return the bytes of a file, which may be endless if it is no table."""
    parts = [file.read(_PART)]
    is_text = not parts[0].startswith((GZIP, PARQUET))
    line = 0
    while parts[-1]:
        if is_text:
            end = parts[-1].rfind(b"\n")
            line = len(parts[-1]) - end - 1 if end >= 0 else line + len(parts[-1])
            check_text(name, parts[-1], line)
        parts.append(file.read(_PART))
    return b"".join(parts)


class InUtf8:
    """Binary file of text in another encoding, read as UTF-8.

    Content that is compressed, or Parquet, is read as it is.
    """

    def __init__(self, file: IO[bytes], encoding: str):
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._held, self._ended = b"", False
        self._plain: bool | None = None

    def read(self, size: int) -> bytes:
        """Return so many bytes, or fewer at the end of the file."""
        while len(self._held) < size and not self._ended:
            part = self._file.read(_PART)
            self._ended = not part
            if self._plain is None:
                self._plain = not part.startswith((GZIP, PARQUET))
            if self._plain:
                part = self._decoder.decode(part, self._ended).encode("utf-8")
            self._held += part
        read, self._held = self._held[:size], self._held[size:]
        return read


def as_utf8(file: Any, encoding: str) -> Any:
    """Return a binary file as one of text in UTF-8."""
    return file if encoding == "utf-8" else InUtf8(file, encoding)


def check_rereadable(needs: str, path: str) -> None:
    """Raise ValueError for standard input and pipes, whose content is gone once read.

    `needs` begins the message, such as "path must be".
    """
    is_pipe = path != STDIN and Path(path).exists() and not _is_stored(Path(path))
    if path == STDIN or is_pipe:
        what = f"{shown(path)}, a pipe," if is_pipe else "standard input"
        raise ValueError(
            f"{needs} a file, because {what} can be read only once: save the input to "
            "a file and pass its path"
        )


def _is_stored(path: Path) -> bool:
    """Return whether a path is a file, or a folder, which its reader refuses."""
    return path.is_file() or path.is_dir()


def _content(path: str, encoding: str) -> tuple[str, bytes]:
    """Return the name of a table for messages, and its decompressed bytes in UTF-8."""
    name = "standard input" if path == STDIN else path
    with unreadable(name):
        if path == STDIN:
            data = _read(name, as_utf8(sys.stdin.buffer, encoding))
        else:
            with open(path, "rb") as file:
                data = _read(name, as_utf8(file, encoding))
        if data.startswith(GZIP):
            data = gzip.decompress(data)
            if encoding != "utf-8" and not data.startswith(PARQUET):
                data = data.decode(encoding).encode("utf-8")
    return name, data.removeprefix(codecs.BOM_UTF8)


@contextmanager
def unreadable(path: str) -> Iterator[None]:
    """Raise errors about damaged or invalid text as ValueErrors that name the file."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeError, csv.Error) as error:
        problem = str(error)
        if isinstance(error, UnicodeDecodeError):
            problem = (
                f"{shown(error.object[error.start : error.end])} is not text in "
                f"{error.encoding}: state the encoding of the file, such as "
                "encoding='cp1252'"
            )
        elif isinstance(error, csv.Error):
            problem += (
                "; if cells are not separated by commas, state the separator, such as "
                "separator=' '; or close the quotes, and double those within cells"
            )
        raise ValueError(f"{path} is not a readable table: {problem}") from error


def _holds_numbers(column: Any) -> bool:
    """Return whether a column of Parquet holds numbers and missing values only."""
    a = as_array(column, "a column")
    return a.dtype.kind in "biuf" or (
        a.dtype.kind == "O"
        and all(is_missing(v) or isinstance(v, Real | np.bool_) for v in a.tolist())
    )


def _check_width(
    path: str,
    rows: list[list[str]],
    lines: list[int],
    above: Above | None,
    layout: Layout,
) -> None:
    """Raise ValueError unless all rows are as wide as the first one of the table."""
    if not rows:
        raise ValueError(f"{path} is empty")
    width, others = len(rows[0]), f"line {lines[0]} has"
    if above is not None:
        width, others = len(above.names) + above.skipped, "those above have"
    for k, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) != width:
            ways = ["put quotes around cells that contain it"]
            if above is None and k == 1 and len(row) > width:
                ways.append("remove lines above the names of the columns")
            if above is None and k == 1 and len(row) == width + 1:
                ways.append("begin line 1 with a separator if the rows have names")
            other = "," if layout.separator == ";" else ";"
            ways.append(f"state another separator, such as separator={shown(other)}")
            raise ValueError(
                f"{path}, line {line} has {len(row)} cells, but {others} {width}; "
                f"cells were separated by {shown(layout.separator)}: "
                f"{', or '.join(ways)}"
            )


def _default_names(width: int) -> tuple[str, ...]:
    """Return the names of the columns of a table without a header."""
    return (*default_names(width - 1), "y")


def _header(path: str, rows: list[list[str]]) -> tuple[str, ...]:
    """Return the names in the first row; ValueError if one is empty or repeated.

    The name of the first column may be missing, which is then left out.
    """
    skipped = len(rows[0]) > 1 and not rows[0][0]
    names = tuple(rows[0][skipped:])
    for j, name in enumerate(names):
        if not name:
            number = j + 1 + skipped
            raise ValueError(
                f"{path}: the header has no name for column {number}: give it one, or "
                "remove separators at the ends of lines"
            )
    check_distinct(names, path)
    if len(rows) == 1:
        raise ValueError(f"{path} holds a header but no rows")
    return names


def _starts_with_header(rows: list[list[str]], layout: Layout) -> bool:
    """Return whether the first row is a header, judged by itself and the last row."""
    first, last = ([_reads_as_float(c, layout) for c in rows[i]] for i in (0, -1))
    if not any(first):
        return True
    # A string above a string, or a missing value in a line of numbers, is data.
    return any(
        below and not (number or layout.is_missing(cell))
        for cell, number, below in zip(rows[0], first, last, strict=True)
    )


def _reads_as_float(cell: str, layout: Layout) -> bool:
    """Return whether a cell is a number."""
    try:
        float(cell.replace(layout.decimal, "."))
    except ValueError:
        return False
    return True
