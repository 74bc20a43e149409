"""Figures of coefficients, random effects and importances, and of residuals."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .._input.checks import (
    check_choice,
    check_count,
    check_flag,
    check_share,
    shown,
    with_suggestions,
)
from .._input.types import ArrayLike
from .._model.column_names import innermost
from .._model.explanation import Explanation
from .._numerics.tails import normal_margin
from ..inference import simulation, tables
from ..inference.diagnostics import (
    RankedRows,
    Residual,
    feature_values,
    read_rows,
)
from ..linear import PomModel, RatioModel
from ..mixed import ClmmModel
from ..model_selection.selection import model_in
from .style import (
    PALETTE,
    Axes,
    axes_of,
    category_ticks,
    literal,
    logarithmic_ticks,
    name_bars,
    room_for,
)


@with_suggestions
def coefficients(
    model: PomModel | RatioModel,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    method: Literal["wald", "profile"] = "wald",
    odds_ratios: bool = False,
) -> Axes:
    """Plot coefficients of a linear model with confidence intervals.

    There is one line per coefficient, in the order of the model, with a dot at the
    estimate and a bar over the interval. The bar is blue if the interval excludes no
    effect (the dashed line), and grey otherwise. A coefficient to the right of the
    dashed line means that larger values of the feature make higher ranks more probable.
    A bar that ends in an arrow is unbounded.

    Parameters
    ----------
    model : PomModel or RatioModel, or Selection or estimator that holds one
        Model fitted without penalties. Its `coef` is drawn; nominal and scale effects
        are in `model.table()`.
    ax : matplotlib Axes, optional
    level : float in (0, 1), default 0.95
    method : {"wald", "profile"}, default "wald"
        Method of `model.confint`.
    odds_ratios : bool, default False
        Whether to draw exp(coef) on a logarithmic axis; for the logit link only.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If the model is not one of these or has no coefficients; also as in
        `model.confint` and `ordinal.inference.odds_ratios`.

    See Also
    --------
    random_effects : Plot the conditional modes of one random effect with their
        intervals, sorted.
    residuals : Plot residuals of the training rows by fitted value or along a feature.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.plot.coefficients(model, odds_ratios=True).get_xlabel()
    'odds ratio, with 95% intervals'
    """
    model = _linear(innermost(model_in(model)), PomModel, RatioModel)
    if not model.coef.size:
        raise ValueError(
            "model must have coefficients that all thresholds share, and this one has "
            "none"
        )
    if check_flag("odds_ratios", odds_ratios):
        table = tables.odds_ratios(model, level, method=method)
        column, none = "odds_ratio", 1.0
    else:
        table, column, none = model.confint(level, method=method), "estimate", 0.0
    own = np.isin(table["name"], model.coef_names)
    estimate, lower, upper = (table[of][own] for of in (column, "lower", "upper"))

    ax = axes_of(ax, 6.0, 0.9 + 0.32 * estimate.size)
    if odds_ratios:
        ax.set_xscale("log")
    known = np.concatenate([estimate, lower, upper, [none]])
    ends = lower > 0 if odds_ratios else np.isfinite(lower)
    known = known[np.isfinite(known) & ((known > 0) | (not odds_ratios))]
    ax.plot(known, np.zeros(known.size), alpha=0)  # for the limits alone
    low, high = ax.get_xlim()
    if odds_ratios:
        logarithmic_ticks(ax)
    for i, (at, a, b, closed) in enumerate(
        zip(estimate, lower, upper, ends, strict=True)
    ):
        colour = PALETTE[7] if a <= none <= b else PALETTE[0]
        ax.plot([max(a, low), min(b, high)], [i, i], color=colour, lw=2, zorder=2)
        ax.plot(at, i, "o", color=colour, ms=6, zorder=3)
        if not closed:
            ax.plot(low, i, "<", color=colour, clip_on=False, zorder=3)
        if not np.isfinite(b):
            ax.plot(high, i, ">", color=colour, clip_on=False, zorder=3)
    ax.axvline(none, color="black", lw=1, ls="--", zorder=1)
    for text, side in (("← lower ranks  ", "right"), ("  higher ranks →", "left")):
        ax.annotate(
            text,
            (none, 1),
            xycoords=("data", "axes fraction"),
            ha=side,
            va="bottom",
            fontsize="small",
            color="0.4",
            annotation_clip=False,
        )
    name_bars(ax, table["name"][own].tolist())
    what = "odds ratio" if odds_ratios else "coefficient"
    ax.set(
        xlim=(low, high),
        ylim=(estimate.size - 0.5, -0.5),
        xlabel=f"{what}, with {100 * level:.4g}% intervals",
    )
    return ax


@with_suggestions
def random_effects(
    model: ClmmModel,
    group: str | None = None,
    ax: Axes | None = None,
    *,
    effect: str | None = None,
    level: float = 0.95,
) -> Axes:
    """Plot the conditional modes of one random effect with their intervals, sorted.

    There is one line per level of the factor, the largest mode on top, with a dot at
    the mode and a bar over the interval. The bar is blue if the interval excludes 0,
    the mean of all levels (the dashed line), and grey otherwise. Intervals treat the
    estimates of the fixed parameters and of the covariance as known.

    Parameters
    ----------
    model : ClmmModel, or estimator that holds one
    group : str, optional
        Name of the factor; required if there are several.
    ax : matplotlib Axes, optional
    effect : str, optional
        "(Intercept)" or a column with a random slope. Default: the first effect.
    level : float in (0, 1), default 0.95

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If the model is not one of `fit_clmm`, or has no such factor or effect.

    See Also
    --------
    coefficients : Plot coefficients of a linear model with confidence intervals.
    ordinal.fit_clmm : Fit a cumulative link mixed model, with random effects of groups.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> judges = [i // 8 for i in range(72)]
    >>> model = ordinal.fit_clmm(X[:, :2], y, groups={"judge": judges})
    >>> ordinal.plot.random_effects(model).get_ylabel()
    'judge'
    """
    model = _linear(model_in(model), ClmmModel)
    z = normal_margin(check_share("level", level))
    if group is None and len(model.random) == 1:
        group = model.random[0].name
    table = model.ranef(group)
    effects = tuple(dict.fromkeys(table["effect"].tolist()))
    effect = effects[0] if effect is None else effect
    check_choice("effect", effect, effects)
    own = np.flatnonzero(table["effect"] == effect)
    own = own[np.argsort(table["mode"][own], kind="stable")]
    mode, half = table["mode"][own], z * table["standard_error"][own]

    ax = axes_of(ax, 6.0, min(0.9 + 0.25 * own.size, 12.0))
    place = np.arange(own.size)
    apart = np.abs(mode) > half
    for which, colour in ((apart, PALETTE[0]), (~apart, PALETTE[7])):
        ax.errorbar(
            mode[which], place[which], xerr=half[which], fmt="o", color=colour, ms=5
        )
    ax.axvline(0, color="black", lw=1, ls="--", zorder=1)
    name_bars(ax, table["level"][own].tolist())
    ax.set(
        ylim=(-0.5, own.size - 0.5),
        ylabel=literal(group),
        xlabel=f"{literal(effect)}, with {100 * level:.4g}% intervals",
    )
    return ax


@with_suggestions
def importance(
    explanation: Explanation, ax: Axes | None = None, *, top: int | None = None
) -> Axes:
    """Plot importances of features with their standard errors, the largest on top.

    Parameters
    ----------
    explanation : Explanation
        Result of the method `explain` of a model.
    ax : matplotlib Axes, optional
    top : int, optional
        Number of features to show. Default: all.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `explanation` is not an Explanation, or if `top` is not a positive integer.

    See Also
    --------
    partial_dependence : Plot how predictions change along one feature, on average over
        rows.
    relevance : Plot the relevance of each feature to a Gaussian process, the largest
        first.
    contributions : Plot the contributions to the score of one row, the largest first.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_election(as_frame=True)
    >>> ax = ordinal.plot.importance(ordinal.fit_pom(X, y).explain(X), top=3)
    >>> len(ax.get_yticklabels())
    3
    """
    if not isinstance(explanation, Explanation):
        raise TypeError(
            f"explanation must be model.explain(X) of a model, got {shown(explanation)}"
        )
    k = len(explanation.names)
    k = k if top is None else min(k, check_count("top", top))
    value, error = explanation.importance[:k], explanation.standard_error[:k]
    ax = axes_of(ax, 5.6, 0.9 + 0.28 * k)
    place = np.arange(k)
    ax.barh(place, value, color=PALETTE[0], height=0.6)
    ax.errorbar(value, place, xerr=error, fmt="none", ecolor="black", lw=1, capsize=2)
    ax.set(ylim=(k - 0.4, -0.6), xlabel=f"{explanation.unit} (± one standard error)")
    ax.set_yticks(place, [literal(name) for name in explanation.names[:k]])
    ax.tick_params(axis="y", length=0)
    return ax


_FITTED = "fitted value"
_QUARTILES = 0.25, 0.5, 0.75
_GRID = 60
_SPAN = 0.75  # share of the rows in a window of the smooth, that of R's loess


@with_suggestions
def residuals(
    model: PomModel,
    along: str | None = None,
    ax: Axes | None = None,
    *,
    kind: Residual = "surrogate",
    partial: bool = False,
    rng: Any = 0,
) -> Axes:
    """Plot residuals of the training rows by fitted value or along a feature.

    The line is a local linear smooth (loess), which is close to 0 everywhere if the
    model fits. Levels of a category are shown as box plots.

    Parameters
    ----------
    model : PomModel, or estimator that holds one
        Model in the process that fitted it.
    along : str, optional
        Name of a feature. Default: the fitted value x'beta.
    ax : matplotlib Axes, optional
    kind : {"probability", "surrogate", "score", "deviance"}, default "surrogate"
        Kind of `model.residuals`. Unlike the others, surrogate residuals do not form
        one band per rank.
    partial : bool, default False
        Whether to add the effect of the feature, its coefficient times its value minus
        the mean. The smooth then shows the shape of the effect. It needs a numeric
        feature with a coefficient.
    rng : int, Generator or None, default 0
        Source of the random numbers of surrogate residuals.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If the model is not one of `fit_pom`, has no feature of this name, or has no
        coefficient for partial residuals; also as in `model.residuals`.

    See Also
    --------
    coefficients : Plot coefficients of a linear model with confidence intervals.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.plot.residuals(model, "x2").get_xlabel()
    'x2'
    """
    model = _linear(model_in(model), PomModel)
    value = model.residuals(kind=kind, rng=rng)
    rows = read_rows(model, "residuals")
    used = rows.weight > 0
    name = _FITTED if along is None else along
    x, labels = _values_along(model, rows, name)
    if check_flag("partial", partial):
        if labels is not None or name not in model.coef_names:
            raise ValueError(
                "partial must be numeric features with a coefficient, got "
                f"{shown(name)}"
            )
        effect = model.coef[model.coef_names.index(name)]
        value = value + effect * (x - x[used].mean())
    x, value = x[used], value[used]

    ax = _axes_along(ax, labels)
    ax.axhline(0, color="black", lw=1, ls="--", zorder=1)
    if labels is not None:
        _draw_boxes(ax, x, value, labels)
    else:
        ax.plot(x, value, "o", ms=3, color=PALETTE[0], alpha=0.5, zorder=2)
        grid, line = smooth(x, value, rows.weight[used])
        ax.plot(grid, line, color=PALETTE[5], lw=2, zorder=3)
    what = f"partial residual ({kind})" if partial else f"{kind} residual"
    ax.set(xlabel=literal(name), ylabel=what)
    return ax


def _values_along(
    model: Any, rows: RankedRows, name: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the fitted values or those of a feature, (n,), and labels or None."""
    if not isinstance(name, str):
        raise TypeError(
            f"along must be the name of a feature, got {shown(name)}: pass None for "
            "the fitted values; the rows are those of the model"
        )
    if name != _FITTED:
        return feature_values(rows, name)
    Z, offset, _ = rows.source.at(slice(0, rows.rank.size))
    return Z[:, model.predictor.location] @ model.coef + offset, None


def _axes_along(ax: Axes | None, labels: np.ndarray | None) -> Axes:
    return axes_of(ax, 5.6 + (0 if labels is None else room_for(labels.size)), 3.8)


def _draw_boxes(ax: Axes, x: np.ndarray, value: np.ndarray, labels: np.ndarray) -> None:
    """Draw a box plot for each label of a category."""
    parts = [value[x == k] for k in range(labels.size)]
    ax.boxplot(parts, positions=range(labels.size), medianprops={"color": PALETTE[1]})
    category_ticks(ax, "x", labels)


@with_suggestions
def simulated_residuals(
    model: PomModel | RatioModel | ClmmModel,
    along: str | None = None,
    ax: Axes | None = None,
    *,
    by: ArrayLike | None = None,
    n: int = 250,
    rng: Any = 0,
) -> Axes:
    """Plot residuals by simulation against the uniform distribution or a feature.

    The points of the first plot are close to the diagonal if the model fits, and within
    the band of simulated data sets. The p-value is that of
    `ordinal.inference.simulated_residuals`. Along a feature, the lines are moving
    quartiles, which are close to 0.25, 0.5 and 0.75 everywhere if the model fits.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel, or estimator that holds one
        Model in the process that fitted it.
    along : str, optional
        Name of a feature, or "fitted value" for x'beta. Default: the uniform
        distribution.
    ax : matplotlib Axes, optional
    by : (n,) array-like of labels, optional
        Groups whose sums of ranks have the residuals; without `along`.
    n : int, default 250
        Number of simulated data sets.
    rng : int, Generator or None, default 0
        Source of the random numbers.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If the model has no feature of this name, or if `along` and `by` are given; also
        as in `ordinal.inference.simulated_residuals`.

    See Also
    --------
    residuals : Plot residuals of the training rows by fitted value or along a feature.
    ordinal.inference.simulated_residuals : Return the places of the ranks among
        simulated ones, as R's DHARMa does.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> judges = [i // 8 for i in range(72)]
    >>> model = ordinal.fit_clmm(X[:, :2], y, groups={"judge": judges})
    >>> ordinal.plot.simulated_residuals(model).get_xlabel()
    'uniform quantile (p = 0.952)'
    """
    model = _linear(model_in(model), PomModel, RatioModel, ClmmModel)
    if along is not None and by is not None:
        raise ValueError(
            f"by must be None along {shown(along)}: a feature belongs to rows, not to "
            "their groups"
        )
    found = simulation.simulated_residuals(model, by=by, n=n, rng=rng)
    value = found.values
    if along is None:
        x = (np.arange(value.size) + 0.5) / value.size
        ax = axes_of(ax, 4.2, 3.8)
        ax.fill_between(x, *found.band, color=PALETTE[0], alpha=0.2, lw=0, zorder=1)
        ax.plot([0, 1], [0, 1], color="black", lw=1, ls="--", zorder=2)
        ax.plot(x, np.sort(value), "o", ms=3, color=PALETTE[5], zorder=3)
        what = f"uniform quantile (p = {found.p_value:.3f})"
        ax.set(xlabel=what, ylabel="simulated residual")
        return ax
    rows = model._ranked_rows("simulated_residuals", None, None, None, True)
    x, labels = _values_along(model, rows, along)
    x, ax = x[rows.weight > 0], _axes_along(ax, labels)
    for level in _QUARTILES:
        ax.axhline(level, color="black", lw=1, ls="--", zorder=1)
    if labels is not None:
        _draw_boxes(ax, x, value, labels)
    else:
        ax.plot(x, value, "o", ms=3, color=PALETTE[0], alpha=0.5, zorder=2)
        grid = np.linspace(x.min(), x.max(), _GRID)
        ax.plot(grid, _quartiles(x, value, grid), color=PALETTE[5], lw=2, zorder=3)
    ax.set(xlabel=literal(along), ylabel="simulated residual", ylim=(-0.02, 1.02))
    return ax


def _quartiles(x: np.ndarray, y: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return quartiles of y in windows of the nearest x, (grid, 3)."""
    nearest = max(2, int(_SPAN * x.size)) - 1
    out = np.empty((grid.size, 3))
    for k, at in enumerate(grid):
        far = np.abs(x - at)
        within = far <= np.partition(far, nearest)[nearest]
        out[k] = np.quantile(y[within], _QUARTILES)
    return out


def smooth(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a local linear regression with tricube weights at equally spaced points.

    W. S. Cleveland, "Robust locally weighted regression and smoothing scatterplots",
    JASA 74:829-836, 1979, without the robust steps.
    """
    grid = np.linspace(x.min(), x.max(), _GRID)
    nearest = max(2, int(_SPAN * x.size)) - 1
    line = np.empty(_GRID)
    for k, at in enumerate(grid):
        far = np.abs(x - at)
        # a window of equal values has the width of the range
        width = np.partition(far, nearest)[nearest] or np.ptp(x) or 1.0
        w = weight * np.clip(1 - (far / width) ** 3, 0, None) ** 3
        if not w.any():  # the nearest rows are at the edge of the window
            w = weight * (far <= far.min())
        mean = w @ x / w.sum()
        spread = w @ (x - mean) ** 2
        slope = w @ ((x - mean) * y) / spread if spread > 0 else 0.0
        line[k] = w @ y / w.sum() + slope * (at - mean)
    return grid, line


def _linear(model: Any, *kinds: type) -> Any:
    """Return a model if it is of one of the kinds, or raise TypeError."""
    if not isinstance(model, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"model must be a {names}, got {shown(model)}")
    return model
