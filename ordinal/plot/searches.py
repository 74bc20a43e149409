"""Figures of searches: the surface of scores, what hold-outs chose, and learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import check_choice, listed, shown, with_suggestions
from ..model_selection import Nested, Selection
from ..model_selection.spaces import Point, columns_of, described, value_key
from .style import PALETTE, Axes, axes_of, label_right, legend_below, literal, name_bars

_WIDE = 8  # a range of positive values with this ratio gets a logarithmic scale
_CELLS = 300  # along each side of a map between points
_FIRST = ("C", "gamma")  # what the axes show where there is a choice


class Dimensions(NamedTuple):
    """Arguments on the axes, which differ between points; None for an unused axis."""

    x: str | None
    y: str | None
    numeric: tuple[str, ...]


def dimensions_of(points: Sequence[Point], x: Any = None, y: Any = None) -> Dimensions:
    """Return the arguments that the caller has chosen, after a check.

    By default they are the first two numeric arguments, or one and an argument of
    another type.
    """
    columns = {
        name: values.tolist()
        for name, values in columns_of(points).items()
        if len({value_key(value) for value in values.tolist()}) > 1
    }
    numeric = [name for name, values in columns.items() if all(map(_is_number, values))]
    numeric.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    if x is not None:
        check_choice("x", x, numeric)
    if y is not None:
        check_choice("y", y, [name for name in columns if name != x])
    if x is None:
        x = next((name for name in numeric if name != y), None)
    if y is None and x is not None:
        others = [name for name in numeric if name != x]
        others += [name for name in columns if name not in numeric]
        y = next(iter(others), None)
    return Dimensions(x, y, tuple(numeric))


def best_along(
    points: Sequence[Point], loss: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """Return the best point for each combination of values of some arguments.

    It has the least loss over all other arguments, and no score only if none of these
    points has one.
    """
    first: dict[Any, int] = {}
    for number in np.argsort(loss, kind="stable").tolist():  # nan comes last
        point = points[number]
        first.setdefault(tuple(value_key(point.get(name)) for name in names), number)
    return np.array(sorted(first.values()))


@with_suggestions
def search(
    found: Selection | Nested,
    ax: Axes | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
) -> Axes:
    """Plot mean scores of a search over two arguments, or the chosen points.

    For a Selection, two numeric hyperparameters are drawn as a map, in which darker is
    better, with a dot for each point that was fitted. A numeric and another
    hyperparameter are drawn as one line per value of the latter, with standard errors
    of the means. All other hyperparameters have their best values. A ring marks the
    best point, a diamond the simplest one within one standard error of it, and a cross
    a point that could not be fitted.

    For a Nested, the chosen points are drawn with their numbers of hold-outs.

    Parameters
    ----------
    found : Selection or Nested
    ax : matplotlib Axes, optional
    x, y : str, optional
        Hyperparameters to show; `x` must be numeric. Default: C and gamma, otherwise
        the first two that are numeric.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `found` is neither a Selection nor a Nested, or if a hyperparameter was not
        searched.

    See Also
    --------
    learning_curve : Plot scores on test rows by the number of training rows.
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.
    ordinal.model_selection.nested : Estimate the error of tuned models by hold-outs
        with a search in each.

    Examples
    --------
    >>> import ordinal
    >>> from ordinal.model_selection import Grid, select
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> grid = Grid(C=[0.1, 1.0, 10.0], gamma=[0.05, 0.5])
    >>> found = select(ordinal.fit_svorim, X, y, search=grid, cv=3)
    >>> ax = ordinal.plot.search(found)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('C', 'gamma')
    """
    if isinstance(found, Nested):
        points = [point for one in found.selections for point in one.points]
        return _draw_chosen(found, dimensions_of(points, x, y), ax)
    if not isinstance(found, Selection):
        raise TypeError(f"found must be a Selection or a Nested, got {shown(found)}")
    along = dimensions_of(found.points, x, y)
    if along.x is None:
        ax = _draw_list(found, ax)
    elif along.y in along.numeric:
        ax = _draw_surface(found, along, ax)
    else:
        ax = _draw_lines(found, along, ax)
    error = found.standard_error[found.best]
    best = f"{found.scoring} {found.best_score:.3g} ± {error:.1g}"
    params = described(found.params)
    ax.set_title(f"{best} at {literal(params)}", loc="left", fontsize="medium")
    return ax


class Learning(NamedTuple):
    """Mean scores by the number of training rows, with standard errors (0 for a single
    score), and the scores themselves.
    """

    sizes: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray
    single: tuple[np.ndarray, ...]


def learning_of(found: Selection | Nested) -> Learning:
    """Return scores of the best or the chosen points by size of the training set."""
    scores = (
        found.scores[found.best]
        if isinstance(found, Selection)
        else next(iter(found.scores.values()))
    )
    of_split = np.array([train.size for train, _ in found.splits])
    known = np.isfinite(scores)
    sizes = np.unique(of_split[known])
    if sizes.size < 2:
        raise ValueError(
            "found must have training sets of two sizes or more, as those of "
            f"model_selection.learning_splits are, got {listed(sizes)}"
        )
    single = tuple(scores[known & (of_split == size)] for size in sizes)
    return Learning(
        sizes,
        np.array([of.mean() for of in single]),
        np.array(
            [of.std(ddof=1) / of.size**0.5 if of.size > 1 else 0 for of in single]
        ),
        single,
    )


@with_suggestions
def learning_curve(
    found: Selection | Nested, ax: Axes | None = None, *, label: str | None = None
) -> Axes:
    """Plot scores on test rows by the number of training rows.

    The curve shows means over the hold-outs with standard errors, and dots the single
    scores. If an error curve still decreases at its end, more rows will help; if it is
    flat, other features or another model may.

    Parameters
    ----------
    found : Selection or Nested
        Result of `select(..., cv=learning_splits(y))`, whose best point is drawn, or of
        `nested(..., outer=learning_splits(y))`, in which hyperparameters are tuned on
        each training set, by the first metric.
    ax : matplotlib Axes, optional
        Several curves on one Axes have different colours.
    label : str, optional
        Name of the curve, which is printed beside its end.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `found` is neither a Selection nor a Nested, or if all training sets have the
        same size.

    See Also
    --------
    search : Plot mean scores of a search over two arguments, or the chosen points.
    ordinal.model_selection.learning_splits : Return hold-out splits with training sets
        of increasing size.

    Examples
    --------
    >>> import ordinal
    >>> from ordinal.model_selection import Grid, learning_splits, select
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> cv = learning_splits(y, [20, 60, 180], n_splits=3)
    >>> found = select(ordinal.fit_svorim, X, y, search=Grid(C=[1.0]), cv=cv)
    >>> ax = ordinal.plot.learning_curve(found, label="SVORIM")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('training rows', 'mae')
    """
    if not isinstance(found, Selection | Nested):
        raise TypeError(f"found must be a Selection or a Nested, got {shown(found)}")
    curve = learning_of(found)
    ax = axes_of(ax, 5.6, 3.6)
    colour = PALETTE[len(ax.containers) % len(PALETTE)]
    for size, scores in zip(curve.sizes, curve.single, strict=True):
        at = np.full(scores.size, size)
        ax.plot(at, scores, ".", color=colour, alpha=0.35, ms=5, mew=0)
    ax.errorbar(
        curve.sizes,
        curve.mean,
        curve.standard_error,
        fmt="o-",
        ms=4,
        lw=1.5,
        elinewidth=1,
        color=colour,
        label=label,
    )
    if _set_scale(ax, "x", np.array(ax.get_xlim()).clip(curve.sizes[0], None)):
        ax.set_xticks(curve.sizes, [str(size) for size in curve.sizes])
    curves: list[Any] = ax.containers
    # without a name matplotlib gives one that begins with "_", or, before 3.10, none
    named = [c for c in curves if not str(c.get_label() or "_").startswith("_")]
    ends = sorted(
        (c.lines[0].get_ydata()[-1], c.get_label(), c.lines[0].get_color())
        for c in named
    )
    if ends:
        label_right(ax, *zip(*ends, strict=True))
    name = found.scoring if isinstance(found, Selection) else next(iter(found.scores))
    ax.set(xlabel="training rows", ylabel=name)
    return ax


def _draw_surface(found: Selection, along: Dimensions, ax: Axes | None) -> Axes:
    """Draw a map with one cell per point of a full grid, else with shaded areas."""
    ax = axes_of(ax, 6.2, 4.4)
    names = [str(along.x), str(along.y)]
    numbers = best_along(found.points, _losses(found), names)
    xy = _places(found.points, names)[numbers]
    score = found.mean[numbers]
    fitted = np.isfinite(score)
    logs = [_set_scale(ax, axis, of) for axis, of in zip("xy", xy.T, strict=True)]
    least, most, extend = _limits(score[fitted], found.greater_is_better)
    colours: dict[str, Any] = {
        "cmap": "Blues" if found.greater_is_better else "Blues_r",
        "vmin": least,
        "vmax": most,
    }
    edges, cells = _cells(xy, score, logs)
    drawn = ax.pcolormesh(
        *edges,
        cells,
        edgecolors="white" if cells.size == len(xy) else "none",
        linewidth=0.5 if cells.size == len(xy) else 0,
        **colours,
    )
    if cells.size != len(xy):
        ax.plot(*xy[fitted].T, ".", color="0.4", ms=3)
    bar = ax.figure.colorbar(drawn, ax=ax, extend=extend, label=found.scoring)
    bar.outline.set_visible(False)
    if not fitted.all():
        ax.plot(*xy[~fitted].T, "x", color="0.4", ms=6, ls="", label="not fitted")
    _mark(ax, found, _places(found.points, names))
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.spines[:].set_visible(False)
    return ax


def _cells(
    xy: np.ndarray, score: np.ndarray, logs: Sequence[bool]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the edges of cells along both axes, and their scores.

    There is one cell per point of a full grid, else many cells between the points.
    """
    from matplotlib.tri import LinearTriInterpolator, Triangulation

    sides = [np.unique(values) for values in xy.T]
    if len(xy) == sides[0].size * sides[1].size:  # in the order of x, then y
        table = score[np.lexsort(xy.T[::-1])].reshape(sides[0].size, -1)
        return [_edges(*of) for of in zip(sides, logs, strict=True)], table.T
    fitted = np.isfinite(score)
    at = [_scaled(*of) for of in zip(xy[fitted].T, logs, strict=True)]
    ends = [np.linspace(values.min(), values.max(), _CELLS + 1) for values in at]
    centres = np.meshgrid(*((end[1:] + end[:-1]) / 2 for end in ends))
    cells = np.full((_CELLS, _CELLS), np.nan)
    if np.linalg.matrix_rank(np.array(at).T - np.mean(at, axis=1)) == 2:
        between = LinearTriInterpolator(Triangulation(*at), score[fitted])
        cells = between(*centres).filled(np.nan)
    return [
        10.0**end if log else end for end, log in zip(ends, logs, strict=True)
    ], cells


def _draw_lines(found: Selection, along: Dimensions, ax: Axes | None) -> Axes:
    """Draw means with standard errors along one argument, per value of another."""
    ax = axes_of(ax, 6.2, 3.8)
    x = str(along.x)
    names = [x] if along.y is None else [x, along.y]
    numbers = best_along(found.points, _losses(found), names)
    numbers = numbers[np.isfinite(found.mean[numbers])]
    lines: dict[Any, list[int]] = {}
    for i in sorted(numbers.tolist(), key=lambda i: float(found.points[i][x])):
        lines.setdefault(value_key(found.points[i].get(str(along.y))), []).append(i)
    along_x = _places(found.points, [x])[:, 0]
    _set_scale(ax, "x", along_x[numbers])
    ends = []
    for k, line in enumerate(lines.values()):
        ax.errorbar(
            along_x[line],
            found.mean[line],
            found.standard_error[line],
            fmt="o-",
            ms=4,
            lw=1.5,
            elinewidth=0.8,
            color=PALETTE[k % len(PALETTE)],
        )
        name = literal(_text(found.points[line[0]].get(str(along.y))))
        ends.append((found.mean[line[-1]], name, PALETTE[k % len(PALETTE)]))
    if along.y is not None:
        heights, texts, colours = zip(*sorted(ends), strict=True)
        label_right(ax, heights, texts, colours)
    _mark(ax, found, np.column_stack([along_x, found.mean]))
    ax.set_xlabel(x)
    ax.set_ylabel(found.scoring)
    return ax


def _draw_list(found: Selection, ax: Axes | None) -> Axes:
    """Draw means with standard errors of points without numeric differences."""
    order = np.argsort(_losses(found), kind="stable")
    order = order[np.isfinite(found.mean[order])]
    ax = axes_of(ax, 6.2, 1.4 + 0.28 * order.size)
    ax.errorbar(
        found.mean[order],
        np.arange(order.size),
        xerr=found.standard_error[order],
        fmt="o",
        ms=5,
        color=PALETTE[0],
        elinewidth=0.8,
    )
    name_bars(ax, [described(found.points[i]) for i in order])
    place = np.full(len(found.points), np.nan)
    place[order] = np.arange(order.size)
    _mark(ax, found, np.column_stack([found.mean, place]))
    ax.set_ylim(order.size - 0.4, -0.6)
    ax.set_xlabel(found.scoring)
    return ax


def _draw_chosen(found: Nested, along: Dimensions, ax: Axes | None) -> Axes:
    """Draw tried points, and circles with the number of hold-outs that chose them."""
    tried = [point for one in found.selections for point in one.points]
    if along.x is None or (along.y is not None and along.y not in along.numeric):
        raise ValueError(
            "found must be a search of one numeric parameter: name two of its "
            "parameters by x and y"
        )
    names = [along.x] if along.y is None else [along.x, along.y]
    ax = axes_of(ax, 5.6, 4.2 if along.y else 1.8)
    places = _places(tried, names)
    for axis, values in zip("xy", places.T, strict=False):
        _set_scale(ax, axis, values)
    if along.y is None:
        places = np.column_stack([places, np.zeros(len(places))])
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    ax.plot(*np.unique(places, axis=0).T, ".", color="0.75", ms=3, zorder=0)
    chosen = _places(found.params, names)
    counts = Counter(tuple(place) for place in chosen.tolist())
    most = max(counts.values())
    for place, count in counts.items():
        x, y = (*place, 0.0)[:2]
        size = 90 + 420 * count / most
        ax.scatter(x, y, size, color=PALETTE[0], alpha=0.85, lw=0)
        ax.text(x, y, str(count), color="white", ha="center", va="center", size="small")
    ax.margins(0.08)
    ax.set(xlabel=names[0], ylabel=names[1] if along.y else "")
    ax.set_title(
        f"chosen in {len(found.params)} hold-outs", loc="left", fontsize="medium"
    )
    return ax


def _mark(ax: Axes, found: Selection, places: np.ndarray) -> None:
    """Mark the best point by a ring and the simplest not clearly worse by a diamond.

    They are named below the axes; places (p, 2) are those of all points.
    """
    simplest = "simplest within one standard error"
    marks = [("best", "o", found.best), (simplest, "D", found.one_se)]
    for name, marker, number in marks:
        if name == "best" or found.one_se != found.best:
            ax.plot(
                *places[number],
                marker,
                ms=13 if marker == "o" else 10,
                mfc="none",
                mec=PALETTE[5],
                mew=2,
                ls="",
                label=name,
                clip_on=False,
            )
    legend_below(ax, 3, handletextpad=0.4, columnspacing=1.2, markerscale=0.6)


def _losses(found: Selection) -> np.ndarray:
    return -found.mean if found.greater_is_better else found.mean


def _places(points: Sequence[Point], names: Sequence[str]) -> np.ndarray:
    """Return the values of numeric arguments, (p, len(names))."""
    return np.array([[point[name] for name in names] for point in points], dtype=float)


def _limits(score: np.ndarray, greater: bool) -> tuple[float, float, Any]:
    """Return the limits of the colour scale, and the ends at which scores exceed it.

    The worst tenth has one colour, because a few outliers would hide the differences
    between the others.
    """
    least, most = float(score.min()), float(score.max())
    worst = float(np.quantile(score, 0.1 if greater else 0.9))
    if greater:
        return worst, most, "min" if least < worst else "neither"
    return least, worst, "max" if most > worst else "neither"


def _set_scale(ax: Axes, axis: str, values: np.ndarray) -> bool:
    """Set a logarithmic scale if the values span a wide range; return whether."""
    log = bool(values.min() > 0 and values.max() >= _WIDE * values.min())
    if log:
        (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
        ax.minorticks_off()
    return log


def _scaled(values: np.ndarray, log: bool) -> np.ndarray:
    return np.log10(values) if log else values


def _edges(centres: np.ndarray, log: bool) -> np.ndarray:
    """Return the edges of cells, halfway between increasing centres on the scale."""
    at = _scaled(centres, log)
    middle = (at[1:] + at[:-1]) / 2
    ends = [2 * at[0] - middle[0]], [2 * at[-1] - middle[-1]]
    edges = np.concatenate([ends[0], middle, ends[1]])
    return 10.0**edges if log else edges


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)
