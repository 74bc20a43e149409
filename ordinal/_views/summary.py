"""Summary of a model as HTML, with its thresholds as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from .._model.column_names import innermost
from .._model.model import Model
from .._model.printing import html_lines, html_notes

_WIDTH, _MARGIN = 420, 12  # pixels of the line of thresholds
_LETTER = 6  # pixels of a letter or digit, at most, in the font size of that line


def summary_html(model: Model) -> str:
    """Return what a notebook shows of a model."""
    inner = innermost(model)  # may be the model of a caller's own function
    text = html_lines(type(model).__name__, model._summary())
    thresholds = np.asarray(getattr(inner, "thresholds", ()))
    if thresholds.ndim == 1:
        text += html_thresholds(thresholds, model.classes.tolist())
    remedy = (inner if isinstance(inner, Model) else model)._remedy()
    return text + html_notes([f"Remedy: {remedy}."] * bool(remedy))


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
    fitting = [
        _cut(str(label), room)
        for label, room in zip(classes, np.diff(ends).tolist(), strict=False)
    ]
    marks = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="16" y2="30"/>' for x in ends[1:-1]
    )
    labels = _texts(middles, fitting, 12)
    values = _texts(ends[1:-1], [f"{value:.3g}" for value in b], 42)
    return (
        f'<svg width="{_WIDTH}" viewBox="0 0 {_WIDTH} 46" role="img" '
        'aria-label="thresholds" style="max-width:100%;height:auto" font-size="10" '
        'fill="currentColor">'
        f'<g stroke="currentColor"><line x1="{ends[0]:.1f}" x2="{ends[-1]:.1f}" '
        f'y1="23" y2="23"/>{marks}</g>{labels}{values}</svg>'
    )


def _cut(text: str, room: float) -> str:
    """Return a text that is at most so many pixels wide, or none."""
    letters = int(room / _LETTER)
    if len(text) <= letters:
        return text
    return text[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}" if letters > 2 else ""


def _texts(places: np.ndarray, texts: Sequence[str], y: int) -> str:
    """Return texts on a line at height y, without those that would overlap."""
    shown, end = [], -np.inf
    for x, text in zip(places.tolist(), texts, strict=False):
        half = _LETTER / 2 * len(text)
        if text and x - half >= end:
            shown.append(
                f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{escape(text)}</text>'
            )
            end = x + half
    return "".join(shown)
