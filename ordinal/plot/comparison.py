"""Figures that compare methods: critical differences, box plots by size, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import shown, with_suggestions
from .._input.predictions import score_tables
from ..comparison import Friedman
from .style import PALETTE, Axes, axes_of, fill, literal, name_bars, panels


@with_suggestions
def critical_difference(
    result: Friedman, names: Sequence[str], ax: Axes | None = None
) -> Axes:
    """Plot a critical difference diagram: methods by their average rank.

    Thick lines join methods whose average ranks differ by at most the critical
    difference, which is shown above. The best ranks are on the right.

    Parameters
    ----------
    result : Friedman
        Result of `ordinal.comparison.friedman`.
    names : sequence of k str
        Names of the methods, in the order of the columns of the scores.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If there is not one name per method.

    See Also
    --------
    errors_by_method : Plot the errors of methods on the splits of each data set.
    ordinal.comparison.friedman : Compare k methods on N data sets by the Friedman test
        and Nemenyi's post-hoc test.

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
    ax = axes_of(ax, 7, 0.25 * (rows + 4.5))

    rightmost = min(1, k - cd)  # the difference may be longer than the axis
    ax.set(xlim=(k, rightmost), ylim=(-rows, 3.2), xlabel="average rank")
    ax.set(yticks=[], xticks=range(1, k + 1, 1 + k // 14))
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.spines["top"].set_visible(True)  # the scale
    ax.spines["top"].set_position(("data", 0))
    ax.spines["top"].set_bounds(1, k)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")

    edge = 0.04 * (k - 1)
    for place, method in enumerate(order):
        right, name = place < n_right, literal(names[method])
        y = -(first + (place if right else k - 1 - place))
        x, end = rank[place], rightmost - edge if right else k + edge
        ax.plot([x, x, end], [0, y, y], color="black", lw=0.8, clip_on=False)
        ax.annotate(
            f"{name}  {x:.2f}" if right else f"{x:.2f}  {name}",
            (end, y),
            xytext=(4 if right else -4, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            annotation_clip=False,
        )
    for (best, worst), row in zip(bars, row_of_bar, strict=True):
        x, y = [rank[best] - edge / 2, rank[worst] + edge / 2], -(0.5 * row + 0.6)
        ax.plot(x, [y, y], color=PALETTE[0], lw=4, clip_on=False, solid_capstyle="butt")
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
    """Return (first, last) of the largest runs of 2 or more ranks within cd."""
    runs: list[tuple[int, int]] = []
    for first in range(rank.size):
        last = int(np.flatnonzero(rank - rank[first] <= cd)[-1])
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def _stacked(runs: list[tuple[int, int]]) -> list[int]:
    """Return the row in which each run is drawn; runs in one row share no method."""
    ends: list[int] = []  # the last method of each row
    rows = []
    for first, last in runs:
        row = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[row : row + 1] = [last]
        rows.append(row)
    return rows


@with_suggestions
def boxplots_by_size(
    scores: Iterable[ArrayLike],
    sizes: Sequence[Any],
    names: Sequence[str],
    ax: Axes | None = None,
    *,
    ylabel: str = "MAE",
) -> Axes:
    """Plot boxes of scores by training size and method.

    Parameters
    ----------
    scores : iterable of (n_trials, k) array_like
        One table per size, each with its own number of trials; one column per method.
    sizes : sequence
        Sizes of the training sets as they are to be shown, one per table.
    names : sequence of k str
        Names of the methods.
    ax : matplotlib Axes, optional
    ylabel : str, default "MAE"
        Name of the scores on the axis.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If scores are not finite real numbers in tables with the same number of columns,
        at least 2, or if there is not one size per table or one name per method.

    See Also
    --------
    errors_by_method : Plot the errors of methods on the splits of each data set.
    critical_difference : Plot a critical difference diagram: methods by their average
        rank.

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
    ax = axes_of(ax, min(16, max(6.4, 2.5 + 0.13 * n * k)), 4)
    slot = 0.84 / k
    for j in range(k):
        ax.boxplot(
            [table[:, j] for table in tables],
            positions=np.arange(n) + (j - (k - 1) / 2) * slot,
            widths=0.8 * slot,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"lw": 0.6, **fill(j)},
            medianprops={"color": "black", "lw": 1.5},
            whiskerprops={"lw": 0.6},
            capprops={"lw": 0.6},
            flierprops={"marker": ".", "ms": 3},
            label=literal(names[j]),
        )
    ax.set(xlim=(-0.5, n - 0.5), xlabel="training rows", ylabel=ylabel)
    ax.set_xticks(range(n), [literal(size) for size in sizes])
    ax.set_xticks(np.arange(n - 1) + 0.5, minor=True)  # between the groups
    ax.tick_params(axis="x", which="both", length=0)
    ax.grid(axis="x", which="minor", color="0.85")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return ax


@with_suggestions
def errors_by_method(
    scores: Mapping[str, ArrayLike],
    names: Sequence[str],
    axes: Sequence[Axes] | None = None,
    *,
    xlabel: str = "MAE",
) -> list[Axes]:
    """Plot the errors of methods on the splits of each data set.

    There is one dot per split, and a mark at the mean. Methods are in the order of
    their means, the best on top. Because some splits are harder than others, only dots
    of the same split can be compared; `ordinal.comparison.wilcoxon` tests the
    differences.

    Parameters
    ----------
    scores : mapping of str to (n_splits, k) array_like
        Scores by the name of the data set, with one column per method.
    names : sequence of k str
        Names of the methods.
    axes : sequence of matplotlib Axes, optional
        One entry per data set.
    xlabel : str, default "MAE"
        Name of the scores on the axis.

    Returns
    -------
    list of matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `scores` is not a mapping of tables of finite real numbers with the same
        number of columns, or `names` has not one name per method, or `axes` not one
        entry per data set.

    See Also
    --------
    boxplots_by_size : Plot boxes of scores by training size and method.
    critical_difference : Plot a critical difference diagram: methods by their average
        rank.
    ordinal.compare : Compare methods by cross-validation.

    Examples
    --------
    >>> from ordinal import plot
    >>> scores = {"wine": [[0.6, 0.5], [0.7, 0.4]]}
    >>> (ax,) = plot.errors_by_method(scores, ["npsvor", "svorim"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['svorim', 'npsvor']
    """
    if not isinstance(scores, Mapping):
        raise TypeError(f"scores must be a mapping of tables, got {shown(scores)}")
    tables = score_tables(scores.values(), least=1)
    k = tables[0].shape[1]
    names = _names(names, k)
    size = 5.2, 1.1 + 0.3 * k
    axes = panels(axes, len(tables), "data sets", 2, size)
    for ax, title, table in zip(axes, scores, tables, strict=True):
        mean = table.mean(axis=0)
        order = np.argsort(mean, kind="stable")
        n = len(table)
        # dots of equal scores side by side, in the order of the splits
        shift = 0.25 * (np.arange(n) - (n - 1) / 2) / max(n - 1, 1)
        for place, j in enumerate(order):
            ax.plot(table[:, j], place + shift, ".", color=PALETTE[0], alpha=0.5, ms=6)
        ax.plot(mean[order], range(k), "|", color="black", ms=14, mew=2)
        for place, j in enumerate(order):
            ax.annotate(
                f"{mean[j]:.3f}",
                (1.0, place),
                (4, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        ax.set(title=literal(title), ylim=(k - 0.5, -0.5))
        ax.set_xlabel(f"{xlabel} (one dot per split, a bar their mean)")
        name_bars(ax, [names[j] for j in order])
        ax.grid(axis="y", color="0.92")
        ax.set_axisbelow(True)
    return axes


def _names(names: Sequence[str], k: int) -> list[str]:
    several = hasattr(names, "__len__") and not isinstance(names, str)
    words = list(names) if several else []  # what it gives may differ from its length
    if len(words) != k:
        raise ValueError(
            f"names must hold a name for each of {k} methods, got {shown(names)}"
        )
    return [str(name) for name in words]
