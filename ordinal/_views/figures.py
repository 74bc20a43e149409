"""Figures of a report, as SVG: those of `ordinal.plot`, if matplotlib is installed."""

from __future__ import annotations

import io
import re
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._input.frame import Frame
from .._model.explanation import Explanation
from .._model.printing import html_notes

EXTRA = "matplotlib: pip install 'ordinal-regression[plot]'"
_EFFECTS = 3  # features whose effects are drawn
_AT = 25  # values of such a feature
_MOST_BARS = 12
_WIDTH = 4.4  # inches of a figure, so that its text is legible on a telephone
_SETTINGS = {
    "svg.fonttype": "none",  # text that can be searched and copied
    "svg.hashsalt": "ordinal",  # so that equal reports have equal bytes
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
}


class Figures:
    """Figures about a model on rows with labels.

    Attributes
    ----------
    available : bool
        Whether matplotlib is installed; otherwise every figure is an empty string.
    """

    def __init__(self, model: Any, rows: Any, labels: np.ndarray, some: Any):
        self._model, self._rows, self._labels, self._some = model, rows, labels, some
        self._n = 0
        self.available = find_spec("matplotlib") is not None

    def confusion(self) -> str:
        """Draw the confusion matrix."""
        from .. import plot

        side = max(2.6, 0.55 * np.size(self._model.classes))
        given = self._model, self._rows, self._labels
        return self._drawn(
            (side + 1.2, side + 1.0),
            1,
            lambda axes: plot.confusion_matrix(*given, *axes),
        )

    def reliability(self) -> str:
        """Draw the calibration of the probabilities, with a panel per threshold."""
        from .. import plot

        k = np.size(self._model.classes) - 1
        given = self._model, self._rows, self._labels
        return self._drawn(
            (2.2, 2.3), k, lambda axes: plot.reliability(*given, axes), columns=2
        )

    def importance(self, found: Explanation) -> str:
        """Draw the importances of an explanation."""
        from .. import plot

        height = 0.8 + 0.28 * min(len(found.names), _MOST_BARS)
        return self._drawn(
            (_WIDTH, height), 1,
            lambda axes: plot.importance(found, *axes, top=_MOST_BARS),
        )  # fmt: skip

    def effects(self, found: Explanation) -> str:
        """Draw the effects of the most important features on the prediction."""
        from .. import plot

        if not isinstance(self._some, Frame):
            return ""
        keys = dict(zip(self._some.shown_names, self._some.columns, strict=True))
        chosen = [keys[name] for name in found.names if name in keys][:_EFFECTS]

        def effect(key: str | int) -> str:
            return self._drawn(
                (_WIDTH, 3.0), 1,
                lambda axes: plot.partial_dependence(
                    self._model, self._some, key, *axes, at=_AT
                ),
            )  # fmt: skip

        return "".join(map(effect, chosen))

    def _drawn(
        self, size: tuple[float, float], k: int, draw: Any, columns: int = 1
    ) -> str:
        """Return a figure of k panels of this size, or the reason why there is none."""
        if not self.available:
            return ""
        import matplotlib.style
        from matplotlib.figure import Figure

        columns = min(columns, k)
        lines = -(-k // columns)
        # The style of the caller may be for dark windows; no window is opened.
        with matplotlib.style.context(["default", _SETTINGS]):
            figure = Figure((size[0] * columns, size[1] * lines), layout="constrained")
            axes = figure.subplots(lines, columns, squeeze=False).ravel()
            for spare in axes[k:]:
                spare.remove()
            try:
                draw(list(axes[:k]))
            except (TypeError, ValueError) as error:  # a model without scores
                return html_notes([f"No figure: {error}."])
            content = io.BytesIO()
            figure.savefig(content, format="svg", metadata={"Date": None})
        self._n += 1
        return f"<figure>{_embedded(content.getvalue().decode(), self._n)}</figure>"


def _embedded(svg: str, number: int) -> str:
    """Return the element of an SVG file, whose ids differ from those of other files."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg, count=2)
    svg = svg.replace("xlink:href", "href")
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>f{number}-", svg)
