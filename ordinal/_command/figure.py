"""The picture of a comparison."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from .._files.writing import writing
from .._input.checks import shown

_SUFFIXES = (".pdf", ".png", ".svg")


def check_figure(path: str) -> None:
    """Raise ValueError unless a picture can be made of this name."""
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise ValueError(
            f"--plot {shown(path)}: the name must end with {', '.join(_SUFFIXES)}"
        )
    _plot()


def save_figure(path: str, errors: dict[str, np.ndarray], methods: list[str]) -> None:
    """Draw the (n_splits, k) mean absolute errors of methods, a panel a set."""
    axes = _plot().errors_by_method(errors, methods)
    content = io.BytesIO()
    suffix = Path(path).suffix.lower().removeprefix(".")
    axes[0].figure.savefig(content, format=suffix, dpi=200)
    with writing(path) as file:
        file.write(content.getvalue())


def _plot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ValueError(
            "--plot needs matplotlib: pip install 'ordinal-regression[plot]'"
        ) from None
    matplotlib.use("agg", force=False)
    from .. import plot

    return plot
