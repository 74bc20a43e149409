"""Results as columns by name, printed as text and shown as HTML in notebooks.

Every text in HTML is escaped. Colours are those of the page around, so that light and
dark themes both work; nothing is loaded from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._input.immutable import read_only

_CELL = "padding:2px 10px;text-align:"
_NUMBER = re.compile(r"<?[-+]?(\d|\.\d|nan\b|inf\b)[\d.e+-]*( |%|$)")
_LONG = re.compile(r"\d+\.\d{6,}(?:e[-+]?\d+)?")
_MOST_ROWS = 30  # of a table in HTML; the others are counted
_MOST_LINES, _HEAD = 60, 10  # of a table in text; of a longer one, its first rows


def html_table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table, whose first column and columns of text are aligned to the left.

    It scrolls where a page is narrower.
    """
    shown = [[str(cell) for cell in row] for row in rows[:_MOST_ROWS]]
    sides = [
        "left" if j == 0 or is_text(row[j] for row in shown) else "right"
        for j in range(len(head))
    ]
    lines = ['<table style="border-collapse:collapse">']
    lines.append(f"<thead>{_row('th', head, sides)}</thead><tbody>")
    lines += [_row("td", row, sides) for row in shown]
    if len(rows) > _MOST_ROWS:
        lines.append(_row("td", [f"... {len(rows) - _MOST_ROWS} more rows"], sides))
    return _scrolled("".join([*lines, "</tbody></table>"]))


def html_lines(title: str, lines: Mapping[str, Any]) -> str:
    """Return named values below a title."""
    rows = "".join(
        f'<tr><td style="{_CELL}left"><b>{escape(str(name))}</b></td>'
        f'<td style="{_CELL}left">{escape(rounded(value))}</td></tr>'
        for name, value in lines.items()
    )
    table = _scrolled(f"<table>{rows}</table>")
    return f"<div><b>{escape(title)}</b></div>{table}"


def _scrolled(html: str) -> str:
    """Return an element that scrolls where a page is narrower."""
    return f'<div style="overflow-x:auto">{html}</div>'


def is_text(cells: Iterable[str]) -> bool:
    """Return whether cells hold no number, such as 1.5, 3 ± 1, 2 % or <2e-16."""
    return not any(_NUMBER.match(cell) for cell in cells)


def rounded(value: Any) -> str:
    """Return a value as text, in which long fractions have six significant digits."""

    def short(found: re.Match[str]) -> str:
        number = float(found[0])
        return f"{number:.{6 if number < 1e6 else 10}g}"

    return _LONG.sub(short, str(value))


def html_notes(notes: Iterable[str]) -> str:
    """Return a paragraph for each note."""
    return "".join(f"<p>{escape(note)}</p>" for note in notes)


def html_record(record: Any) -> str:
    """Return the fields of a named tuple, such as the result of a test."""
    return html_lines(type(record).__name__, record._asdict())


def _row(tag: str, cells: Sequence[Any], sides: Sequence[str]) -> str:
    """Return a row of a table, with cells of this tag."""
    inner = "".join(
        f'<{tag} style="{_CELL}{side}">{escape(str(cell))}</{tag}>'
        for side, cell in zip(sides, cells, strict=False)
    )
    return f"<tr>{inner}</tr>"


_STARS = (0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, ".")
LEGEND = "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"
_LEAST_P = float(np.finfo(float).eps)  # below it R prints "<2e-16"


class Table(dict[str, np.ndarray]):
    """Mapping of names to columns, read-only arrays of equal length; prints as a table.

    It can be passed to `pandas.DataFrame` and `polars.DataFrame`. A table of rows of a
    pandas DataFrame has their `index`, which `to_pandas` returns as well.
    """

    def __init__(self, columns: dict[str, np.ndarray], index: Any = None):
        super().__init__({k: read_only(np.asarray(v)) for k, v in columns.items()})
        self.index = index

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Self:
        """Return a table from its rows, given the names of its columns."""
        columns = zip(*rows, strict=True)
        return cls({k: np.array(v) for k, v in zip(names, columns, strict=True)})

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            remedy = "; to_pandas() has the methods of a data frame"
            raise AttributeError(
                f"'Table' object has no attribute '{name}'"
                f"{'' if name.startswith('_') else remedy}"
            )

    def __repr__(self) -> str:
        n = next(iter(self.values())).size if self else 0
        if n <= _MOST_LINES:
            return self.to_text()
        head = Table({name: a[:_HEAD] for name, a in self.items()})
        rest = f"... {n - _HEAD} more rows, which to_text() and to_pandas() have"
        return f"{head.to_text()}\n{rest}"

    def to_text(self) -> str:
        """Return all rows as text; the `repr` has the first ones of a long table."""
        columns = [
            aligned(name, cells, left=self[name].dtype.kind == "U" or is_text(cells))
            for name, cells in self._cells().items()
        ]
        lines = zip(*columns, strict=True)
        return "\n".join(" ".join(line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return html_table(list(self), list(zip(*self._cells().values(), strict=True)))

    def _cells(self) -> dict[str, list[str]]:
        """Return the entries of every column as text."""
        return {
            name: [f"{v:.6g}" if a.dtype.kind == "f" else str(v) for v in a]
            for name, a in self.items()
        }

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame, which has the index of rows of a data frame.

        Raises ImportError without pandas.
        """
        import pandas

        return pandas.DataFrame(dict(self), self.index)


def aligned(head: str, cells: list[str], left: bool = False) -> list[str]:
    """Return the lines of a column, of one width."""
    width = max(map(len, [head, *cells]))
    return [c.ljust(width) if left else c.rjust(width) for c in [head, *cells]]


def coefficient_lines(
    names: tuple[str, ...],
    estimate: np.ndarray,
    error: np.ndarray,
    p_value: np.ndarray | None,
) -> Iterator[str]:
    """Yield lines of a table of coefficients as R prints them.

    Without `p_value` the columns of the test are left out, as for thresholds: that one
    of them is 0 is no hypothesis of interest.
    """
    columns = [
        aligned("", list(names), left=True),
        aligned("Estimate", decimals(estimate, estimate, error)),
        aligned("Std. Error", decimals(error, estimate, error)),
        aligned("z value", [f"{v:.3f}" for v in estimate / error]),
    ]
    if p_value is not None:
        columns.append(aligned("Pr(>|z|)", [shown_p(p) for p in p_value]))
        columns.append(aligned("", [stars(p) for p in p_value], left=True))
    for line in zip(*columns, strict=True):
        yield " ".join(line).rstrip()


def decimals(values: np.ndarray, *shown: np.ndarray) -> list[str]:
    """Return values as text, with as many decimals as R would print.

    The smallest of the numbers `shown` gets four significant digits, and at most eight
    decimals.
    """
    sizes = np.abs(np.concatenate(shown))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    least = float(sizes.min()) if sizes.size else 1.0
    places = int(np.clip(3 - np.floor(np.log10(least)), 0, 8))
    return [f"{v:.{places}f}" if abs(v) < 1e8 else f"{v:.4g}" for v in values.tolist()]


def shown_p(p: float) -> str:
    """Return a p-value as R prints it."""
    return "<2e-16" if p < _LEAST_P else f"{p:.3g}"


def stars(p: float) -> str:
    """Return the mark of the significance of a p-value; `LEGEND` explains it."""
    return next((mark for level, mark in _STARS if p <= level), "")


class Text(str):
    """String whose `repr` is its text, so that shells and notebooks display it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        # Notebooks that are converted to pages would wrap lines, in their own font.
        style = "white-space:pre;overflow-x:auto;font-family:monospace"
        return f'<pre style="{style}">{escape(str(self))}</pre>'


class Page(str):
    """HTML text of a whole page, which notebooks display in a frame of its own."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self)} characters of HTML"

    def _repr_html_(self) -> str:
        style = "width:100%;height:80vh;border:0"
        return f'<iframe srcdoc="{escape(self)}" style="{style}"></iframe>'


def rows_left_out(n_labels: int, n_values: int = 0) -> str:
    """Return in words the rows that lack labels and values; empty for none."""
    counts = (n_labels, "without a label"), (n_values, "with missing values")
    found = [f"{n} row{'s' * (n > 1)} {what}" for n, what in counts if n]
    return " and ".join(found)


def left_out(n: int) -> str:
    """Return the end of a summary in brackets about rows without a label, if any."""
    return f"; {rows_left_out(n)} left out" if n else ""
