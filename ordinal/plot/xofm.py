"""Figures that explain XOFM: its score functions, interactions and contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._input.checks import check_count, listed, shown, with_suggestions
from .._input.frame import default_names
from .._model.explanation import of_pair
from ..preprocessing import Standardizer
from ..preprocessing.model import PreprocessedModel, within
from ..preprocessing.scaling import units
from ..xofm import ScoreFunction, XofmModel
from .predictions import fitted
from .style import (
    PALETTE,
    Axes,
    axes_of,
    category_ticks,
    check_room,
    literal,
    name_bars,
    panels,
    room_for,
)

_FINE = 60  # cells of a heat-map along an axis of numbers


@with_suggestions
def score_functions(
    model: XofmModel, *, top: int | None = None, axes: Sequence[Axes] | None = None
) -> np.ndarray:
    """Plot the main effect of every feature, on one scale, the most important first.

    Numeric features are drawn as lines between breakpoints, categories as bars. The
    grey histogram below shows the distribution of the training rows; where there are
    few, the curve is uncertain. A ring on the right is the score of a missing value,
    unless this is 0, the mean, as it is without missing values in the training rows.

    Parameters
    ----------
    model : XofmModel, or Selection or estimator that holds one
    top : int, optional
        Features to show; default all.
    axes : sequence of matplotlib Axes, optional
        One per feature shown. Default: those of a new figure with up to six panels in a
        row.

    Returns
    -------
    (k,) array of matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `top` is not a positive integer, or if there is not one entry of `axes` per
        feature shown.

    See Also
    --------
    interaction : Plot a heat map of the joint effect of two features.
    contributions : Plot the contributions to the score of one row, the largest first.
    ordinal.fit_xofm : Fit XOFM: an additive model of piecewise linear curves and
        surfaces.

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
    model = _additive(model)
    importance = model.importance().values[: model.n_features]
    order = np.argsort(-importance, kind="stable")
    if top is not None:
        top = check_count("top", top)
        order = order[:top]
    k = order.size
    functions = model.score_functions()
    names = [functions[j].at.size for j in order if model.categories[j] is not None]
    wide = max(2.6, 0.6 + room_for(max(names, default=0)))
    columns = max(1, int((6 if k > 12 else 4) * 2.6 / wide))
    axes = panels(axes, k, "features", columns, (wide, 2.2), sharey=True)
    ends = [v for j in order for v in (*functions[j].score, functions[j].missing)]
    low, high = min(ends), max(ends)
    margin = 0.08 * ((high - low) or 1.0)
    for ax, j in zip(axes, order, strict=True):
        _score_function(ax, functions[j], model.categories[j] is not None)
        # the rows have the lowest fifth of the axes for themselves
        ax.set_ylim(low - 0.25 * (high - low) - 2 * margin, high + margin)
        place = ax.get_subplotspec()
        if place is None or place.is_first_col():
            ax.set_ylabel("score")
    return np.array(axes)


def _score_function(ax: Axes, f: ScoreFunction, of_categories: bool) -> None:
    ax.axhline(0, color="0.8", lw=0.8, zorder=0)
    height = 0.17 * f.share / (f.share.max(initial=0.0) or 1.0)
    below: Any = {
        "color": "0.8",
        "transform": ax.get_xaxis_transform(),
        "label": "rows",
    }
    if of_categories:
        ax.bar(range(len(f.at)), f.score, color=PALETTE[0], width=0.7, label="score")
        ax.bar(range(len(f.at)), height, width=0.7, **below)
        category_ticks(ax, "x", f.at)
        end = len(f.at) - 0.5
    else:
        check_room(f"values of {shown(f.name)}", f.at)
        ax.plot(f.at, f.score, color=PALETTE[0], marker="o", ms=3, lw=1.5)
        width = (f.at[-1] - f.at[0]) / f.share.size or 0.1
        ax.bar(
            f.at[0] + width * np.arange(f.share.size),
            height,
            width,
            align="edge",
            **below,
        )
        ax.locator_params(axis="x", nbins=4)
        end = f.at[-1] + 0.08 * ((f.at[-1] - f.at[0]) or 1.0)
    if abs(f.missing) > 1e-9 * np.abs(f.score).max(initial=1.0):
        (ring,) = ax.plot(end, f.missing, "o", c=PALETTE[5], mfc="none")
        ring.set_label("missing")
        ax.legend(
            handles=[ring],
            frameon=False,
            handletextpad=0.1,
            loc="best",
        )
    ax.set_xlabel(literal(f.name))
    ax.margins(x=0.05)


@with_suggestions
def interaction(
    model: XofmModel, a: str | int, b: str | int, ax: Axes | None = None
) -> Axes:
    """Plot a heat map of the joint effect of two features.

    Colours show the change of the score at each pair of values; white is always 0. A
    strip at the side shows the effect of a missing value of one of the two, unless this
    is 0.

    Parameters
    ----------
    model : XofmModel, or Selection or estimator that holds one
    a, b : names or numbers of two columns
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If there is no such column, if a and b are the same, or if one has no values.

    See Also
    --------
    score_functions : Plot the main effect of every feature, on one scale, the most
        important first.
    contributions : Plot the contributions to the score of one row, the largest first.
    ordinal.fit_xofm : Fit XOFM: an additive model of piecewise linear curves and
        surfaces.

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
    model = _additive(model)
    found = model.interaction(a, b)
    if found.values.size == 0:
        raise ValueError(
            f"a and b must be features with values, got {listed(found.names)}"
        )
    ax = axes_of(ax, 5.2, 4.2)
    # the effect at all values; the last row and column are where one is missing
    grid = np.block(
        [
            [found.values, found.missing[1][:, None]],
            [found.missing[0][None], np.array([[found.both_missing]])],
        ]
    )
    names = [f.name for f in model.score_functions()]
    labels = [model.categories[names.index(name)] for name in found.names]
    least = 1e-9 * np.abs(grid).max()
    matter = np.abs(grid[-1]).max() > least, np.abs(grid[:, -1]).max() > least
    (x, of_x), (y, of_y) = map(_cells, found.at, labels, matter)
    values = of_x @ grid @ of_y.T
    most = float(np.nanmax(np.abs(values))) or 1.0
    mesh = ax.pcolormesh(
        x, y, values.T, cmap="PuOr_r", vmin=-most, vmax=most, rasterized=True
    )
    ax.locator_params(nbins=6)
    for axis, edges, known in zip("xy", (x, y), labels, strict=True):
        if known is not None:
            category_ticks(ax, axis, known)
        if matter["xy".index(axis)]:
            _name_strip(ax, axis, (edges[-2] + edges[-1]) / 2)
    bar = ax.figure.colorbar(mesh, ax=ax)
    bar.set_label("effect on the score")
    bar.outline.set_visible(False)
    ax.set(xlabel=literal(found.names[0]), ylabel=literal(found.names[1]))
    return ax


def _name_strip(ax: Axes, axis: str, place: float) -> None:
    """Label the strips of missing values: above the x axis, and left of the y axis."""
    if axis == "x":
        beside = ax.get_xaxis_transform()
        ax.text(place, 1.015, "missing", transform=beside, ha="center")
    else:
        beside = ax.get_yaxis_transform()
        ax.text(-0.02, place, "missing", transform=beside, ha="right", va="center")


def _cells(
    at: np.ndarray, labels: np.ndarray | None, missing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return edges of cells along an axis, and weights of the values at the nodes.

    A category has one cell, a numeric axis enough of them to look smooth. Missing
    values have a strip after a gap, whose cell is NaN.
    """
    n = len(at)
    if labels is not None or n == 1:
        start = 0.0 if labels is not None else at[0]
        edges, shares = start + np.arange(n + 1) - 0.5, np.eye(n)
    else:
        edges = np.linspace(at[0], at[-1], _FINE + 1)
        middle = edges[1:] / 2 + edges[:-1] / 2  # whose sum may overflow
        shares = np.stack([np.interp(middle, at, node) for node in np.eye(n)], axis=1)
    shares = np.pad(shares, ((0, 2 * missing), (0, 1)))
    if missing:
        shares[-2], shares[-1, -1] = np.nan, 1.0
        beyond = np.array([0.03, 0.1]) * (edges[-1] - edges[0])
        edges = np.append(edges, edges[-1] + beyond)
    return edges, shares


@with_suggestions
def contributions(
    model: XofmModel, x: Any, ax: Axes | None = None, *, top: int = 12
) -> Axes:
    """Plot the contributions to the score of one row, the largest first.

    Parameters
    ----------
    model : XofmModel, or Selection or estimator that holds one
    x : (1, d) array-like or data frame, or (d,) array-like
        The row.
    ax : matplotlib Axes, optional
    top : int, default 12
        Number of contributions to show; the sum of the others is one more bar.

    Returns
    -------
    matplotlib Axes
        Axes whose title states the score and the predicted label.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError, TypeError
        If x is not one row as for `decision_function`, or if `top` is not a positive
        integer.

    See Also
    --------
    score_functions : Plot the main effect of every feature, on one scale, the most
        important first.
    importance : Plot importances of features with their standard errors, the largest on
        top.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.plot.contributions(ordinal.fit_xofm(X, y), X[0]).get_xlabel()
    'contribution to the score'
    """
    _additive(model)  # for the error of another model
    top = check_count("top", top)
    row = [x] if not hasattr(x, "columns") and np.ndim(x) == 1 else x
    found = fitted(model)
    inner, features = within(found, row)
    parts = inner.contributions(features)
    if len(parts.values) != 1:
        raise ValueError(f"x must be one row, got {len(parts.values)}")
    base = parts.values[0, 0]
    terms = found._score_terms(row)
    assert terms is not None  # of an XOFM model
    values = terms.values[0]
    known = found.feature_names or default_names(found.n_features)
    order = np.argsort(-np.abs(values), kind="stable")
    shown, others = order[:top], order[top:]
    parts_of = [of_pair(terms.names[j], known) or (terms.names[j],) for j in shown]
    labels = ["base", *map(" \N{MULTIPLICATION SIGN} ".join, parts_of)]
    lengths = [base, *values[shown]]
    if others.size:
        labels.append(f"{others.size} others")
        lengths.append(values[others].sum())
    ax = axes_of(ax, 6.4, 0.9 + 0.3 * len(lengths))
    colours = ["0.6", *(PALETTE[5] if v < 0 else PALETTE[0] for v in lengths[1:])]
    bars = ax.barh(range(len(lengths)), lengths, color=colours, height=0.7)
    ax.bar_label(bars, fmt="%+.2f", padding=3, fontsize="small")
    ax.axvline(0, color="black", lw=0.8)
    name_bars(ax, labels)
    ax.invert_yaxis()
    ax.margins(x=0.15)
    label = literal(found.predict(row)[0])
    ax.set_title(f"score {values.sum() + base:.2f}, predicted {label}", loc="left")
    ax.set_xlabel("contribution to the score")
    return ax


def _additive(model: Any) -> XofmModel:
    """Return the XOFM model, also within a Selection or an estimator.

    Behind a preprocessor that scales, its breakpoints are in the units of the table.
    """
    found = fitted(model)
    if isinstance(found, PreprocessedModel) and isinstance(found.model, XofmModel):
        scaled = getattr(found.preprocessor, "standardizer", found.preprocessor)
        inner = found.model
        if not isinstance(scaled, Standardizer):
            return inner
        ends = zip(inner.breakpoints, units(scaled.scale), scaled.mean, strict=True)
        return replace(inner, breakpoints=tuple(b * s + m for b, s, m in ends))
    if not isinstance(found, XofmModel):
        raise TypeError(f"model must be an XofmModel, got {shown(model)}")
    return found
