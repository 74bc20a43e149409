"""HTML of models and results, as notebooks show them.

Every text is escaped. Colours are those of the page around, so that light and dark
themes both work; nothing is loaded from anywhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

_CELL = "padding:2px 10px;text-align:"
_WIDTH, _MARGIN = 420, 12  # pixels of the line of thresholds
_MOST_ROWS = 60  # of a table; the others are counted


def html_table(
    head: Sequence[Any], rows: Sequence[Sequence[Any]], caption: str = ""
) -> str:
    """Return a table; the first column is aligned to the left, numbers to the right."""
    lines = ['<table style="border-collapse:collapse">']
    if caption:
        lines.append(
            f'<caption style="text-align:left;font-weight:bold">{escape(caption)}'
            "</caption>"
        )
    lines.append(f"<thead>{_row('th', head)}</thead><tbody>")
    lines += [_row("td", row) for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines.append(_row("td", [f"... {len(rows) - _MOST_ROWS} more rows"]))
    return "".join([*lines, "</tbody></table>"])


def html_lines(title: str, lines: Mapping[str, Any]) -> str:
    """Return named values below a title."""
    rows = "".join(
        f'<tr><td style="{_CELL}left"><b>{escape(str(name))}</b></td>'
        f'<td style="{_CELL}left">{escape(str(value))}</td></tr>'
        for name, value in lines.items()
    )
    return f"<div><b>{escape(title)}</b></div><table>{rows}</table>"


def html_notes(notes: Iterable[str]) -> str:
    """Return a paragraph for each note."""
    return "".join(f"<p>{escape(note)}</p>" for note in notes)


def html_thresholds(thresholds: np.ndarray, classes: Sequence[Any]) -> str:
    """Return the score as a line, cut by the thresholds, with the labels between."""
    b = np.sort(np.asarray(thresholds, dtype=float))
    if b.size == 0 or not np.isfinite(b).all():
        return ""
    gap = max(float(np.ptp(b)) / max(b.size - 1, 1), 1e-12 * max(1.0, abs(b).max()))
    low, high = b[0] - gap, b[-1] + gap
    ends = _MARGIN + (np.array([low, *b, high]) - low) / (high - low) * (
        _WIDTH - 2 * _MARGIN
    )
    middles = (ends[1:] + ends[:-1]) / 2
    marks = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="16" y2="30"/>' for x in ends[1:-1]
    )
    labels = "".join(
        f'<text x="{x:.1f}" y="12" text-anchor="middle">{escape(str(label)[:12])}'
        "</text>"
        for x, label in zip(middles, classes, strict=False)
    )
    values = "".join(
        f'<text x="{x:.1f}" y="42" text-anchor="middle">{value:.3g}</text>'
        for x, value in zip(ends[1:-1], b, strict=True)
    )
    return (
        f'<svg width="{_WIDTH}" height="46" role="img" aria-label="thresholds" '
        'style="max-width:100%" font-size="10" fill="currentColor">'
        f'<g stroke="currentColor"><line x1="{ends[0]:.1f}" x2="{ends[-1]:.1f}" '
        f'y1="23" y2="23"/>{marks}</g>{labels}{values}</svg>'
    )


def html_bar(share: float) -> str:
    """Return a bar that fills this share of its cell."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        '<div style="background:#4477aa;height:0.8em;min-width:1px;'
        f'width:{width:.1f}%"></div>'
    )


def _row(tag: str, cells: Sequence[Any]) -> str:
    inner = "".join(
        f'<{tag} style="{_CELL}{"left" if j == 0 else "right"}">{escape(str(cell))}'
        f"</{tag}>"
        for j, cell in enumerate(cells)
    )
    return f"<tr>{inner}</tr>"
