"""Figures of the papers, on matplotlib: `pip install 'ordinal-regression[plot]'`.

Every function takes the Axes to draw on, by default those of a new figure of fitting
size, and returns them.
"""

from __future__ import annotations  # matplotlib is imported when a figure is drawn

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._input.checks import check_count, listed, shown
from ._input.scores import score_tables
from .comparison import Friedman
from .xofm import XofmModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any  # for those who resolve type hints without matplotlib

__all__ = [
    "boxplots_by_size",
    "contributions",
    "critical_difference",
    "interaction",
    "score_functions",
]

# Okabe and Ito's colours, which the colour-blind can tell apart; grey for their black,
# on which a median is not seen.
_PALETTE = "#0072B2 #E69F00 #009E73 #CC79A7 #56B4E9 #D55E00 #F0E442 #999999".split()
_HATCHES = ("", "////", "....", "xxxx")  # of the 1st, 2nd, ... eight methods


def __dir__() -> list[str]:
    return __all__


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "ordinal.plot needs matplotlib: pip install 'ordinal-regression[plot]'"
        ) from error
    return plt


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The caller's axes, or those of a new figure of that size in inches."""
    if ax is not None:
        return _checked("ax", ax)
    made: Axes = _pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return made


def _checked(name: str, ax: Any) -> Axes:
    if not hasattr(ax, "get_subplotspec"):
        raise TypeError(f"{name} must be matplotlib's Axes, got {shown(ax)}")
    checked: Axes = ax
    return checked


def _check_model(model: Any) -> None:
    if not isinstance(model, XofmModel):
        raise TypeError(f"model must be an XofmModel, got {shown(model)}")


def _style(method: int) -> dict[str, str]:
    """Fill of a method; all differ for the first 32."""
    row, column = divmod(method, len(_PALETTE))
    return {"facecolor": _PALETTE[column], "hatch": _HATCHES[row % len(_HATCHES)]}


def _names(names: Sequence[str], k: int) -> list[str]:
    several = hasattr(names, "__len__") and not isinstance(names, str)
    words = list(names) if several else []  # what it gives may differ from its length
    if len(words) != k:
        raise ValueError(
            f"names must hold a name for each of {k} methods, got {shown(names)}"
        )
    return [str(name) for name in words]


def critical_difference(
    result: Friedman, names: Sequence[str], ax: Axes | None = None
) -> Axes:
    """Critical difference diagram: methods on a line by their average rank.

    Thick lines join methods whose average ranks differ by no more than the critical
    difference, whose length is shown above. The best ranks are on the right.

    Parameters
    ----------
    result : Friedman
        From `ordinal.comparison.friedman`.
    names : sequence of k str
        Of the methods, in the order of the columns that were compared.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        Not a name a method.

    References
    ----------
    J. Demsar, Journal of Machine Learning Research 7:1-30, 2006, Figure 1; the NPSVOR
    paper, Figure 5.

    Examples
    --------
    >>> from ordinal import comparison, plot
    >>> result = comparison.friedman([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5]])
    >>> plot.critical_difference(result, ["npsvor", "svorim", "svr"]).get_xlabel()
    'average rank'
    """
    if not isinstance(result, Friedman):
        raise TypeError(f"result must be of comparison.friedman, got {shown(result)}")
    k = result.ranks.size
    names = _names(names, k)
    order = np.argsort(result.ranks, kind="stable")
    rank, cd = result.ranks[order], result.critical_difference
    bars = _cliques(rank, cd)
    # one row a unit, downwards from the axis at 0: first the bars, then the names
    row_of_bar = _stacked(bars)
    first = 0.5 * max(row_of_bar, default=-1) + 1.4
    n_right = (k + 1) // 2
    rows = first + n_right
    ax = _axes(ax, 7, 0.25 * (rows + 4.5))

    rightmost = min(1, k - cd)  # the difference may be longer than the axis
    ax.set(xlim=(k, rightmost), ylim=(-rows, 3.2), xlabel="average rank")
    ax.set(yticks=[], xticks=range(1, k + 1, 1 + k // 14))
    ax.spines[["left", "right", "bottom"]].set_visible(False)
    ax.spines["top"].set_position(("data", 0))
    ax.spines["top"].set_bounds(1, k)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")

    edge = 0.04 * (k - 1)
    for place, method in enumerate(order):
        right = place < n_right
        y = -(first + (place if right else k - 1 - place))
        x, end = rank[place], rightmost - edge if right else k + edge
        ax.plot([x, x, end], [0, y, y], color="black", lw=0.8, clip_on=False)
        ax.annotate(
            f"{names[method]}  {x:.2f}" if right else f"{x:.2f}  {names[method]}",
            (end, y),
            xytext=(4 if right else -4, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            annotation_clip=False,
        )
    for (best, worst), row in zip(bars, row_of_bar, strict=True):
        x, y = [rank[best] - edge / 2, rank[worst] + edge / 2], -(0.5 * row + 0.6)
        ax.plot(
            x, [y, y], color=_PALETTE[0], lw=4, clip_on=False, solid_capstyle="butt"
        )
    ax.plot([k, k - cd], [2.6, 2.6], color="black", marker="|", lw=1.5, clip_on=False)
    ax.annotate(
        rf"CD = {cd:.2f}, $\alpha$ = {result.alpha:g}",
        (k, 2.6),
        xytext=(0, 5),
        textcoords="offset points",
        va="bottom",
    )
    return ax


def _cliques(rank: np.ndarray, cd: float) -> list[tuple[int, int]]:
    """Largest runs of increasing ranks within cd: (first, last) of each, 2 or more."""
    runs: list[tuple[int, int]] = []
    for first in range(rank.size):
        last = int(np.flatnonzero(rank - rank[first] <= cd)[-1])
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def _stacked(runs: list[tuple[int, int]]) -> list[int]:
    """The row of each run; those in one row share no method."""
    ends: list[int] = []  # the last method of each row
    rows = []
    for first, last in runs:
        row = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[row : row + 1] = [last]
        rows.append(row)
    return rows


def boxplots_by_size(
    scores: Iterable[ArrayLike],
    sizes: Sequence[Any],
    names: Sequence[str],
    ax: Axes | None = None,
    *,
    ylabel: str = "MAE",
) -> Axes:
    """Box plots of scores, grouped by training size, a box a method.

    Parameters
    ----------
    scores : iterable of (n_trials, k) array_like
        A table a size, each with its own number of trials; a column a method.
    sizes : sequence
        Of the training sets, as they are to be shown, one a table.
    names : sequence of k str
        Of the methods.
    ax : matplotlib Axes, optional
    ylabel : str, default "MAE"
        What the scores are.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        Scores that are not finite real numbers in tables with the same 2 columns or
        more; not a size a table or a name a method.

    References
    ----------
    The NPSVOR paper, Figure 8.

    Examples
    --------
    >>> from ordinal import plot
    >>> scores = [[[0.6, 0.5], [0.7, 0.5]], [[0.5, 0.3], [0.4, 0.4]]]
    >>> ax = plot.boxplots_by_size(scores, [100, 200], ["svorim", "npsvor"])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('training rows', 'MAE')
    """
    tables = score_tables(scores)
    k, n = tables[0].shape[1], len(tables)
    names = _names(names, k)
    if not hasattr(sizes, "__len__") or len(sizes) != n:
        raise ValueError(
            f"sizes must hold a size for each of {n} tables of scores, got "
            f"{shown(sizes)}"
        )
    ax = _axes(ax, min(16, max(6.4, 2.5 + 0.13 * n * k)), 4)
    slot = 0.84 / k
    for j in range(k):
        ax.boxplot(
            [table[:, j] for table in tables],
            positions=np.arange(n) + (j - (k - 1) / 2) * slot,
            widths=0.8 * slot,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"lw": 0.6, **_style(j)},
            medianprops={"color": "black", "lw": 1.5},
            whiskerprops={"lw": 0.6},
            capprops={"lw": 0.6},
            flierprops={"marker": ".", "ms": 3},
            label=names[j],
        )
    ax.set(xlim=(-0.5, n - 0.5), xlabel="training rows", ylabel=ylabel)
    ax.set_xticks(range(n), [str(size) for size in sizes])
    ax.set_xticks(np.arange(n - 1) + 0.5, minor=True)  # between the groups
    ax.tick_params(axis="x", which="both", length=0)
    ax.grid(axis="x", which="minor", color="0.85")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return ax


def score_functions(
    model: XofmModel, *, top: int | None = None, axes: Sequence[Axes] | None = None
) -> np.ndarray:
    """The main effect of every feature, on one scale, the most important first.

    Lines are drawn between the breakpoints, bars for categories. A ring on the right is
    the score of a missing value, unless that is 0, the mean, as it is if none was seen.

    Parameters
    ----------
    model : XofmModel
    top : int, optional
        Features to show; default all.
    axes : sequence of matplotlib Axes, optional
        One a feature shown; default a new figure, up to six in a row.

    Returns
    -------
    (k,) array of matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        `top` is not a positive integer, or `axes` are not as many as features shown.

    References
    ----------
    The XOFM paper, Figures 1 and 4.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> axes = ordinal.plot.score_functions(ordinal.fit_xofm(X, y))
    >>> axes[0].get_ylabel()
    'score'
    """
    _check_model(model)
    order = np.argsort(-model.importance().values, kind="stable")
    if top is not None:
        top = check_count("top", top)
        order = order[:top]
    k = order.size
    if axes is None:
        columns = min(k, 6 if k > 12 else 4)
        rows = -(-k // columns)
        size = (2.6 * columns + 0.4, 2.2 * rows)
        figure = _pyplot().figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for spare in grid[k:]:
            spare.remove()
        axes = list(grid[:k])
    vector = isinstance(axes, np.ndarray) and axes.ndim == 1
    if not (vector or isinstance(axes, Sequence)):
        raise TypeError(f"axes must be a sequence of Axes, got {shown(axes)}")
    if len(axes) != k:
        raise ValueError(f"axes must be one for each of {k} features, got {len(axes)}")
    axes = [_checked("axes", ax) for ax in axes]
    functions = model.score_functions()
    for ax, j in zip(axes, order, strict=True):
        _score_function(ax, functions[j], model.categories[j] is not None)
        place = ax.get_subplotspec()
        if place is None or place.is_first_col():
            ax.set_ylabel("score")
    return np.array(axes)


def _score_function(ax: Axes, f: Any, of_categories: bool) -> None:
    ax.axhline(0, color="0.8", lw=0.8, zorder=0)
    if of_categories:
        ax.bar(range(len(f.at)), f.score, color=_PALETTE[0], width=0.7)
        _category_ticks(ax, "x", f.at)
        end = len(f.at) - 0.5
    else:
        ax.plot(f.at, f.score, color=_PALETTE[0], marker="o", ms=3, lw=1.5)
        ax.locator_params(axis="x", nbins=4)
        end = f.at[-1] + 0.08 * ((f.at[-1] - f.at[0]) or 1.0)
    if abs(f.missing) > 1e-9 * np.abs(f.score).max(initial=1.0):
        ax.plot(end, f.missing, "o", c=_PALETTE[5], mfc="none", label="missing")
        ax.legend(frameon=False, fontsize="small", handletextpad=0.1, loc="best")
    ax.set_xlabel(f.name)
    ax.margins(x=0.05, y=0.1)


def _category_ticks(ax: Axes, name: str, labels: ArrayLike) -> None:
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


def interaction(
    model: XofmModel, a: str | int, b: str | int, ax: Axes | None = None
) -> Axes:
    """Heat-map of how two features act together: <v_a, v_b> over their pieces.

    What the score gains where both values have passed their pieces; for the colour 0 is
    white, whatever the range.

    Parameters
    ----------
    model : XofmModel
    a, b : names or numbers of two columns
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        If there is no such column, it is the same twice, or one has no pieces.

    References
    ----------
    The XOFM paper, Figures 2 and 3.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.plot.interaction(ordinal.fit_xofm(X, y), "x1", "x2").get_xlabel()
    'x1'
    """
    _check_model(model)
    found = model.interaction(a, b)
    if found.values.size == 0:
        raise ValueError(f"a and b must have pieces, got {listed(found.names)}")
    ax = _axes(ax, 5.2, 4.2)
    # a piece of a number reaches from one breakpoint to the next
    edges = [
        np.arange(size + 1) - 0.5 if len(at) == size else at
        for at, size in zip(found.at, found.values.shape, strict=True)
    ]
    most = float(np.abs(found.values).max()) or 1.0
    mesh = ax.pcolormesh(
        *edges, found.values.T, cmap="PuOr_r", vmin=-most, vmax=most,
        edgecolors="white", linewidth=0.5,
    )  # fmt: skip
    ax.locator_params(nbins=6)
    for name, at, size in zip("xy", found.at, found.values.shape, strict=True):
        if len(at) == size:
            _category_ticks(ax, name, at)
    bar = ax.figure.colorbar(mesh, ax=ax)
    bar.set_label("interaction")
    bar.outline.set_visible(False)
    ax.set(xlabel=found.names[0], ylabel=found.names[1])
    return ax


def contributions(
    model: XofmModel, x: Any, ax: Axes | None = None, *, top: int = 12
) -> Axes:
    """Bars of what the score of one row is made of, the largest first.

    Parameters
    ----------
    model : XofmModel
    x : (1, d) array-like or data frame, or (d,) array-like
        The row.
    ax : matplotlib Axes, optional
    top : int, default 12
        Parts to show; the sum of the others is one more bar.

    Returns
    -------
    matplotlib Axes
        Its title says the score and the rank that is predicted.

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError, TypeError
        If x is not one row as for `decision_function`, or `top` not a positive integer.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.plot.contributions(ordinal.fit_xofm(X, y), X[0]).get_xlabel()
    'contribution to the score'
    """
    _check_model(model)
    top = check_count("top", top)
    row = [x] if not hasattr(x, "columns") and np.ndim(x) == 1 else x
    parts = model.contributions(row)
    if len(parts.values) != 1:
        raise ValueError(f"x must be one row, got {len(parts.values)}")
    values, names = parts.values[0], list(parts.names)
    base, values, names = values[0], values[1:], names[1:]
    order = np.argsort(-np.abs(values), kind="stable")
    shown, others = order[:top], order[top:]
    labels = [
        "base",
        *(names[j].replace(":", " \N{MULTIPLICATION SIGN} ") for j in shown),
    ]
    lengths = [base, *values[shown]]
    if others.size:
        labels.append(f"{others.size} others")
        lengths.append(values[others].sum())
    ax = _axes(ax, 6.4, 0.9 + 0.3 * len(lengths))
    colours = ["0.6", *(_PALETTE[5] if v < 0 else _PALETTE[0] for v in lengths[1:])]
    bars = ax.barh(range(len(lengths)), lengths, color=colours, height=0.7)
    ax.bar_label(bars, fmt="%+.2f", padding=3, fontsize="small")
    ax.axvline(0, color="black", lw=0.8)
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    label = model.predict(row)[0]
    ax.set_title(f"score {values.sum() + base:.2f}, predicted {label}", loc="left")
    ax.set_xlabel("contribution to the score")
    return ax
