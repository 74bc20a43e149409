"""Results as columns by name, and how they are printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._input.sparse import read_only
from .display import html_table

_STARS = (0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, ".")
LEGEND = "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"
_LEAST_P = float(np.finfo(float).eps)  # below it R prints "<2e-16"


class Table(dict[str, np.ndarray]):
    """Columns of equal length by name, read-only arrays; prints as a table.

    `pandas.DataFrame` and `polars.DataFrame` take it as it is.
    """

    def __init__(self, columns: dict[str, np.ndarray]):
        super().__init__({k: read_only(np.asarray(v)) for k, v in columns.items()})

    def __repr__(self) -> str:
        words = [
            aligned(
                name,
                [_number(v) if a.dtype.kind == "f" else str(v) for v in a],
                left=a.dtype.kind == "U",
            )
            for name, a in self.items()
        ]
        return "\n".join(" ".join(line).rstrip() for line in zip(*words, strict=True))

    def _repr_html_(self) -> str:
        cells = [
            [_number(v) if a.dtype.kind == "f" else str(v) for v in a]
            for a in self.values()
        ]
        return html_table(list(self), list(zip(*cells, strict=True)))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame; ImportError without pandas."""
        import pandas

        return pandas.DataFrame(dict(self))


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
    """Lines of a table of coefficients as R prints them.

    Thresholds have no p-value, because that they are 0 is nobody's hypothesis.
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
    """Values with the decimals that give the smallest of the numbers shown four
    significant digits, as R counts them, but at most eight decimals.
    """
    sizes = np.abs(np.concatenate(shown))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    least = float(sizes.min()) if sizes.size else 1.0
    places = int(np.clip(3 - np.floor(np.log10(least)), 0, 8))
    return [f"{v:.{places}f}" if abs(v) < 1e8 else f"{v:.4g}" for v in values.tolist()]


def shown_p(p: float) -> str:
    return "<2e-16" if p < _LEAST_P else f"{p:.3g}"


def stars(p: float) -> str:
    return next((mark for level, mark in _STARS if p <= level), "")


def _number(v: float) -> str:
    return f"{v:.6g}"


class Text(str):
    """A text that shows itself where it is the value of a line typed in a shell."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
