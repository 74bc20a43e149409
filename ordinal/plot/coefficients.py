"""Figures of coefficients, random effects and importances."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .._input.checks import (
    check_choice,
    check_count,
    check_flag,
    check_share,
    shown,
)
from .._model.explanation import Explanation
from .._numerics.tails import normal_margin
from ..linear import ClmmModel, PomModel
from .style import PALETTE, Axes, axes_of, logarithmic_ticks


def coefficients(
    model: PomModel,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    method: Literal["wald", "profile"] = "wald",
    odds_ratios: bool = False,
) -> Axes:
    """Plot coefficients of a cumulative link model with confidence intervals.

    A line a coefficient, in the order of the model, with a dot at the estimate and a
    bar over the interval: blue where it leaves out no effect, which is the dashed line,
    grey where it does not. Right of that line a larger feature makes higher ranks more
    probable. A bar that ends in an arrow goes on without end.

    Parameters
    ----------
    model : PomModel
        Without penalties. Drawn is its `coef`: nominal effects, one slope per
        threshold, and those on the scale are in `model.table()`.
    ax : matplotlib Axes, optional
    level : float in (0, 1), default 0.95
    method : {"wald", "profile"}, default "wald"
        Of `model.confint`.
    odds_ratios : bool, default False
        Draw exp(coef) on a logarithmic axis, for the logit link.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        If the model is not of `fit_pom` or has no coefficients; as `model.confint` and
        `model.odds_ratios`.

    See Also
    --------
    random_effects : Plot the conditional modes of one random effect with their
        intervals, sorted.
    residuals : Plot residuals of the training rows by fitted value or along a feature.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as the
        proportional odds model.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.plot.coefficients(model, odds_ratios=True).get_xlabel()
    'odds ratio, with 95% intervals'
    """
    if not isinstance(model, PomModel):
        raise TypeError(f"model must be a PomModel, got {shown(model)}")
    if not model.coef.size:
        raise ValueError("model has no coefficients that all thresholds share")
    if check_flag("odds_ratios", odds_ratios):
        table, column, none = model.odds_ratios(level, method=method), "odds_ratio", 1.0
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
    ax.set_yticks(range(estimate.size), table["name"][own].tolist())
    what = "odds ratio" if odds_ratios else "coefficient"
    ax.set(
        xlim=(low, high),
        ylim=(estimate.size - 0.5, -0.5),
        xlabel=f"{what}, with {100 * level:.4g}% intervals",
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def random_effects(
    model: ClmmModel,
    group: str | None = None,
    ax: Axes | None = None,
    *,
    effect: str | None = None,
    level: float = 0.95,
) -> Axes:
    """Plot the conditional modes of one random effect with their intervals, sorted.

    A line per level of the factor, the largest mode on top, with a dot at the mode and
    a bar over the interval: blue where it leaves out 0, the mean of all levels, which
    is the dashed line, grey where it does not. Intervals hold the estimates of the
    fixed parameters and of the covariance as known.

    Parameters
    ----------
    model : ClmmModel
    group : str, optional
        Name of the factor; needed where there are several.
    ax : matplotlib Axes, optional
    effect : str, optional
        "(Intercept)" or a column with a random slope; default the first effect.
    level : float in (0, 1), default 0.95

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        If the model is not of `fit_clmm`; if it has no such factor or effect.

    See Also
    --------
    coefficients : Plot coefficients of a cumulative link model with confidence
        intervals.
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
    if not isinstance(model, ClmmModel):
        raise TypeError(f"model must be a ClmmModel, got {shown(model)}")
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
    ax.set_yticks(place, table["level"][own].tolist())
    ax.set(
        ylim=(-0.5, own.size - 0.5),
        ylabel=group,
        xlabel=f"{effect}, with {100 * level:.4g}% intervals",
    )
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def importance(
    explanation: Explanation, ax: Axes | None = None, *, top: int | None = None
) -> Axes:
    """Plot importances of features with their standard errors, the largest on top.

    Parameters
    ----------
    explanation : Explanation
        Of `explain` of a model.
    ax : matplotlib Axes, optional
    top : int, optional
        Features to show; default all.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError, ValueError
        If it is no explanation, or `top` is not a positive integer.

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
            "explanation must be what a model's explain returns, got "
            f"{shown(explanation)}"
        )
    k = len(explanation.names)
    k = k if top is None else min(k, check_count("top", top))
    value, error = explanation.importance[:k], explanation.standard_error[:k]
    ax = axes_of(ax, 5.6, 0.9 + 0.28 * k)
    place = np.arange(k)
    ax.barh(place, value, color=PALETTE[0], height=0.6)
    ax.errorbar(value, place, xerr=error, fmt="none", ecolor="black", lw=1, capsize=2)
    ax.set(ylim=(k - 0.4, -0.6), xlabel=f"{explanation.unit} (± one standard error)")
    ax.set_yticks(place, explanation.names[:k])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
