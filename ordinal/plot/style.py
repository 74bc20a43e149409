"""What the figures have in common: axes, colours and ticks."""

from __future__ import annotations  # matplotlib is imported when a figure is drawn

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # for those who resolve type hints without matplotlib

# Okabe and Ito's colours, which the colour-blind can tell apart; grey for their black,
# on which a median is not seen.
PALETTE = "#0072B2 #E69F00 #009E73 #CC79A7 #56B4E9 #D55E00 #F0E442 #999999".split()
_HATCHES = ("", "////", "....", "xxxx")  # of the 1st, 2nd, ... eight methods


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "ordinal.plot needs matplotlib: pip install 'ordinal-regression[plot]'"
        ) from error
    return plt


def axes_of(ax: Axes | None, width: float, height: float) -> Axes:
    """The caller's axes, or those of a new figure of that size in inches."""
    if ax is not None:
        return check_axes("ax", ax)
    made: Axes = pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return made


def check_axes(name: str, ax: Any) -> Axes:
    if not hasattr(ax, "get_subplotspec"):
        raise TypeError(f"{name} must be matplotlib's Axes, got {shown(ax)}")
    checked: Axes = ax
    return checked


def fill(method: int) -> dict[str, str]:
    """Fill of a method; all differ for the first 32."""
    row, column = divmod(method, len(PALETTE))
    return {"facecolor": PALETTE[column], "hatch": _HATCHES[row % len(_HATCHES)]}


def category_ticks(ax: Axes, name: str, labels: ArrayLike) -> None:
    """Every category by name on axis "x" or "y"; of many, every second, third ..."""
    texts = [str(label) for label in np.asarray(labels).tolist()]
    step = 1 + (len(texts) - 1) // 8
    shown = texts[::step]
    slanted = name == "x" and sum(map(len, shown)) > 16
    (ax.xaxis if name == "x" else ax.yaxis).set_ticks(
        range(0, len(texts), step),
        shown,
        rotation=40 if slanted else 0,
        ha="right" if slanted or name == "y" else "center",
    )
