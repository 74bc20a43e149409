"""Style of the figures: axes, colours and ticks."""

from __future__ import annotations  # matplotlib is imported when a figure is drawn

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import check_entries, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # for those who resolve type hints without matplotlib

# Okabe and Ito's colours, which the colour-blind can tell apart; grey for their black,
# on which a median is not seen.
PALETTE = [
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#999999",
]
MOST_RANKS = 50  # with a part of a figure each: 400 take minutes, and nobody reads them
_LARGEST = 1e300  # on an axis
_LABEL = "label beside the right edge"
_FEW, _LABEL_INCHES = 8, 0.14  # names of normal size on an axis; that of a small one
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
    """Return the caller's axes, or those of a new figure of that size in inches."""
    if ax is None:
        ax = pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return _opened(check_axes("ax", ax))


def _opened(ax: Axes) -> Axes:
    """Hide the upper and right edges, whatever the caller's style has."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def room_for(labels: int) -> float:
    """Return the inches that the names of so many categories take on an x axis."""
    return _LABEL_INCHES * labels if labels > _FEW else 0.0


def check_axes(name: str, ax: Any) -> Axes:
    if not hasattr(ax, "get_subplotspec"):
        raise TypeError(f"{name} must be matplotlib's Axes, got {shown(ax)}")
    checked: Axes = ax
    return checked


def fill(method: int) -> dict[str, str]:
    """Fill of a method; all differ for the first 32."""
    row, column = divmod(method, len(PALETTE))
    return {"facecolor": PALETTE[column], "hatch": _HATCHES[row % len(_HATCHES)]}


def check_room(name: str, values: np.ndarray) -> None:
    """Raise ValueError for values so large that no axis can show them."""
    far = np.abs(values) > _LARGEST
    check_entries(name, values, ~far, f"lie within {_LARGEST:g} to be drawn")


def check_ranks(asked: str, r: int) -> None:
    """Raise ValueError for a figure with a part per rank if the ranks are too many."""
    if r > MOST_RANKS:
        raise ValueError(
            f"{asked} draws every rank, and there are {r}, more than {MOST_RANKS}: "
            "group them, as ordinal.preprocessing.Binning does"
        )


def literal(name: object) -> str:
    """Return the text of a name from the data, in which "$" begins no mathematics."""
    return str(name).replace("$", r"\$")


def category_ticks(ax: Axes, name: str, labels: ArrayLike) -> None:
    """Label categories on axis "x" or "y"; every second, third ... where room is short.

    More than `_FEW` names on an x axis are small and vertical.
    """
    texts = [
        f"{label:.4g}" if isinstance(label, float) else literal(label)
        for label in np.asarray(labels).tolist()
    ]
    box = ax.get_window_extent()
    inches = (box.width if name == "x" else box.height) / ax.figure.dpi
    most = max(_FEW, int(inches / (0.75 * _LABEL_INCHES)))
    step = 1 + (len(texts) - 1) // most
    shown = texts[::step]
    many = len(shown) > _FEW
    slanted = name == "x" and not many and sum(map(len, shown)) > 16
    (ax.xaxis if name == "x" else ax.yaxis).set_ticks(
        range(0, len(texts), step),
        shown,
        rotation=0 if name == "y" else 90 if many else 40 if slanted else 0,
        ha="right" if slanted or name == "y" else "center",
        fontsize="x-small" if many else None,
    )


def name_bars(ax: Axes, names: Sequence[str]) -> None:
    """Name what is drawn at 0, 1, ... of the y axis, which loses line and ticks."""
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def logarithmic_ticks(ax: Axes) -> None:
    """Label a logarithmic x axis by 1, 2, 5, 10 ..., or if long by powers of ten."""
    from matplotlib.ticker import LogLocator

    low, high = ax.get_xlim()
    few = (1, 2, 5) if high < 100 * low else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=few))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def legend_below(ax: Axes, columns: int, **style: Any) -> None:
    """Draw a legend in one line below the name of the x axis."""
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=columns,
        frameon=False,
        borderaxespad=3.6,  # in font sizes: the tick labels and the name of the axis
        **style,
    )


def rank_colours(r: int) -> np.ndarray:
    """Return (r, 4) colours of ranks from dark to light, which show their order."""
    from matplotlib import colormaps

    return np.asarray(colormaps["viridis"](np.linspace(0.05, 0.88, r)))


def spread(at: ArrayLike, gap: float) -> np.ndarray:
    """Return positions for labels, no two of them closer than `gap`.

    They have the least squared distance from the given increasing positions, by pooling
    neighbours that are too close.
    """
    want = np.asarray(at, dtype=float) - gap * np.arange(np.size(at))
    blocks: list[tuple[float, int]] = []  # mean and number of labels
    for place in want:
        mean, size = float(place), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean = (before * count + mean * size) / (count + size)
            size += count
        blocks.append((mean, size))
    means = np.array([mean for mean, size in blocks for _ in range(size)])
    placed: np.ndarray = means + gap * np.arange(means.size)
    return placed


def panels(
    axes: Sequence[Axes] | None,
    k: int,
    what: str,
    columns: int,
    size: tuple[float, float],
    **shared: Any,
) -> list[Axes]:
    """Return k axes: those of the caller, or of a new figure with this number of
    columns, whose axes have this size in inches.
    """
    if axes is None:
        rows = -(-k // columns)
        columns = -(-k // rows)  # as few empty cells as so many rows allow
        figsize = (size[0] * columns + 0.4, size[1] * rows)
        figure = pyplot().figure(figsize=figsize, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, **shared).ravel()
        for spare in grid[k:]:
            spare.remove()
        return list(map(_opened, grid[:k]))
    vector = isinstance(axes, np.ndarray) and axes.ndim == 1
    if not (vector or isinstance(axes, Sequence)):
        raise TypeError(f"axes must be a sequence of Axes, got {shown(axes)}")
    if len(axes) != k:
        raise ValueError(f"axes must be one for each of {k} {what}, got {len(axes)}")
    return [_opened(check_axes("axes", ax)) for ax in axes]


def mark_density(
    ax: Axes, values: np.ndarray, weight: np.ndarray, ends: tuple[float, float]
) -> None:
    """Draw a grey histogram of the values along the lower edge.

    It has one bar per value if there are few distinct values.
    """
    bins = 40
    inside = (values >= ends[0]) & (values <= ends[1])
    values, weight = values[inside], weight[inside]
    centres = np.unique(values)
    if centres.size <= bins // 2:
        heights = np.array([weight[values == centre].sum() for centre in centres])
        width = (ends[1] - ends[0]) / bins
    else:
        heights, edges = np.histogram(values, bins, ends, weights=weight)
        centres, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    ax.bar(
        centres,
        0.08 * heights / (heights.max(initial=0) or 1.0),
        width,
        color="0.7",
        transform=ax.get_xaxis_transform(),
        zorder=0,
        clip_on=False,
    )


def label_right(
    ax: Axes,
    at: Sequence[float] | np.ndarray,
    texts: Sequence[str],
    colours: Any = None,
) -> None:
    """Names at increasing heights beside the right edge, apart from one another; a
    square in the colour of each before it, if colours are given. They take the place of
    those that stood there.
    """
    for old in [text for text in ax.texts if text.get_gid() == _LABEL]:
        old.remove()
    low, high = ax.get_ylim()
    line = 11 * ax.figure.dpi / 72 / ax.get_window_extent().height * (high - low)
    places = np.maximum(spread(at, line), low + line * np.arange(len(texts)))
    marks = [] if colours is None else [("\N{BLACK SQUARE}", 5, c) for c in colours]
    for k, (place, text) in enumerate(zip(places, texts, strict=True)):
        words = [(text, 17 if marks else 5, "black")]
        for word, shift, colour in marks[k : k + 1] + words:
            ax.annotate(
                word,
                (1, place),
                xycoords=("axes fraction", "data"),
                color=colour,
                xytext=(shift, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
                annotation_clip=False,
                gid=_LABEL,
            )
