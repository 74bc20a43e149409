"""Figures of what a prediction depends on: one feature, and all by their relevance."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from .._input.checks import (
    as_array,
    as_real_array,
    check_choice,
    check_count,
    check_entries,
    shown,
    with_suggestions,
)
from .._input.columns import column_number, feature_names, read_frame
from .._input.frame import Frame, default_names
from .._input.labels import sample_weights, shares
from .._input.types import ArrayLike
from .._model.column_names import innermost, with_names
from .._model.model import Model, names_read
from ..kernels.functions import kernel_class
from ..model_selection import Selection
from ..preprocessing.model import within
from .predictions import finite_thresholds, fitted, has_errors, is_process, score_of
from .style import (
    MOST_RANKS,
    PALETTE,
    Axes,
    axes_of,
    category_ticks,
    check_ranks,
    check_room,
    label_right,
    literal,
    logarithmic_ticks,
    mark_density,
    name_bars,
    rank_colours,
    room_for,
)

_LEVEL, _Z = 0.9, 1.644854  # of the bands, and its two-sided normal quantile
_LARGEST, _FAR = 1e300, 38.0  # beyond that many deviations the density is 0
_MOST_TERMS = 300


class GridRows:
    """Rows of a table in which a column can be set to one value.

    Attributes
    ----------
    frame : Frame
    names : tuple of (d,) str
    weight : (n,) array
        Weights of the rows, which sum to 1.
    """

    def __init__(self, model: Model, X: Any, sample_weight: Any, most: int):
        X = with_names(X, model.feature_names)
        is_named = feature_names(X) is not None
        frame = read_frame(X, names_read(model) if is_named else None)
        n, d = frame.shape
        weight = sample_weights(sample_weight, n)
        held = np.flatnonzero(weight)
        if held.size > most:
            held = held[np.arange(most) * held.size // most]
        self.frame, self.weight = frame.rows(held), shares(weight[held])
        self.names = frame.names or model.feature_names or default_names(d)

    def with_value(self, j: int, value: Any) -> Frame:
        """Return the rows with this value in column j."""
        if self.frame.labels[j] is None:
            return self.frame.with_column(j, value)
        return self.frame.with_column(j, 0, np.array([value]))  # the one label left


class Dependence(NamedTuple):
    """Mean over rows at each value of a feature.

    `mean`, `low` and `high` are (m,) of the score, or (m, r - 1) of the probabilities
    that the label is at most the j-th; the last two are None without uncertainty.
    """

    at: np.ndarray
    is_category: bool
    mean: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None


def dependence_of(
    model: Any, rows: GridRows, j: int, at: np.ndarray, is_category: bool, of: str
) -> Dependence:
    """Return the partial dependence on column j at some values.

    Every value takes a prediction for all rows.
    """
    mean_of = _mean_score if of == "score" else _mean_probabilities
    found = [
        mean_of(model, rows.with_value(j, value), rows.weight) for value in at.tolist()
    ]
    mean = np.array([here for here, _ in found])
    if found[0][1] is None:
        return Dependence(at, is_category, mean, None, None)
    low, high = np.moveaxis(np.array([ends for _, ends in found]), 1, 0)
    return Dependence(at, is_category, mean, low, high)


def _mean_score(
    model: Any, X: Frame, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the mean score, and the ends of its band, (2,), or None."""
    mean = weight @ score_of(model, X)
    if not is_process(model):
        return mean, None
    process, features = within(model, X)
    cov = process.latent_covariance(features)
    half = _Z * np.sqrt(max(weight @ cov @ weight, 0.0))
    return mean, np.array([mean - half, mean + half])


def _mean_probabilities(
    model: Any, X: Frame, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the mean probabilities, (r - 1,), and the ends of their bands, (2, r - 1),
    or None.
    """
    if has_errors(model):
        found = model.predictions(
            X, kind="cumulative", level=_LEVEL, sample_weight=weight
        )
        return found["estimate"], np.array([found["lower"], found["upper"]])
    mean = weight @ np.cumsum(model.predict_proba(X), axis=1)[:, :-1]
    if not is_process(model):
        return mean, None
    process, features = within(model, X)
    f, cov = score_of(model, X), process.latent_covariance(features)
    half = _Z * deviation_of_mean(f, cov, process.thresholds, process.noise, weight)
    return mean, np.array([np.maximum(mean - half, 0), np.minimum(mean + half, 1)])


def deviation_of_mean(
    mean: np.ndarray,
    cov: np.ndarray,
    thresholds: np.ndarray,
    noise: float,
    weight: np.ndarray,
) -> np.ndarray:
    """Posterior deviation of sum_i w_i Phi((b_j - f_i) / sigma) for each b_j, (r - 1,),
    with f of this mean and covariance.

    With t_i^2 = sigma^2 + cov_ii, h_i = (b_j - mean_i) / t_i and the correlations
    rho_ik = cov_ik / (t_i t_k), the covariance of two terms is the tetrachoric series

        phi(h_i) phi(h_k) sum_m He_{m-1}(h_i) He_{m-1}(h_k) rho_ik^m / m!

    of Hermite polynomials, which is summed until a term is 1e-9 of the sum.
    """
    t = np.sqrt(noise**2 + cov.diagonal())
    rho = cov / np.multiply.outer(t, t)
    b = np.clip(thresholds, -_LARGEST, _LARGEST)  # at infinity the probability is known
    h = np.clip((b - mean[:, None]) / t[:, None], -_FAR, _FAR)
    now = weight[:, None] * np.exp(-(h**2) / 2) / np.sqrt(2 * np.pi)
    before, power = np.zeros_like(now), np.ones_like(rho)
    total = np.zeros(b.size)
    for m in range(1, _MOST_TERMS + 1):
        power *= rho
        term = np.einsum("ij,ij->j", now, power @ now) / m
        total += term
        if np.all(np.abs(term) <= 1e-9 * total):
            break
        # He_m / sqrt(m!) from the two before it
        now, before = (h * now - np.sqrt(m - 1) * before) / np.sqrt(m), now
    return np.sqrt(np.maximum(total, 0.0))


def values_along(
    model: Model, rows: GridRows, j: int, at: int | ArrayLike
) -> tuple[np.ndarray, bool]:
    """Return the values of a column to evaluate, and whether they are categories."""
    column, labels = rows.frame.values[:, j], rows.frame.labels[j]
    # XOFM may have been told that numbers are categories
    columns = getattr(model, "predictor", model)  # the record of a linear model
    known = getattr(columns, "categories", None) if innermost(model) is model else None
    codes = None if known is None or labels is not None else known[j]
    truths = rows.frame.kinds[j] == "truth"
    is_category = labels is not None or codes is not None or truths
    if not isinstance(at, int | np.integer):
        given = as_array(at, "at")
        if given.ndim != 1 or given.size == 0:
            raise ValueError(f"at must be a number or values, got {shown(at)}")
        if is_category:
            return given, True
        values = as_real_array(given, "at")
        check_entries("at", values, np.isfinite(values), "be finite")
        check_room("at", values)
        return np.unique(values), np.unique(values).size == 1
    at = check_count("at", at, 2)
    distinct = np.unique(column[~np.isnan(column)])
    if not distinct.size:
        raise ValueError(f"column {shown(rows.names[j])} of X has no values")
    if labels is not None:
        return labels[distinct.astype(np.intp)], True
    if is_category:
        return distinct.astype(bool) if truths else distinct, True
    check_room(f"column {shown(rows.names[j])} of X", column)
    if distinct.size <= at:
        return distinct, distinct.size == 1  # a bar: there is no way along it
    low, high = np.nanquantile(column, [0.01, 0.99])
    return np.linspace(low, high, at), False


@with_suggestions
def partial_dependence(
    model: Model | Selection,
    X: Any,
    feature: str | int,
    ax: Axes | None = None,
    *,
    of: Literal["probability", "score"] | None = None,
    at: int | ArrayLike = 50,
    max_rows: int = 500,
    sample_weight: ArrayLike | None = None,
) -> Axes:
    """Plot how predictions change along one feature, on average over rows.

    For each value of the feature, the column is set to it in all rows, and the mean
    prediction is drawn: the stacked probabilities of the ranks, the lowest rank at the
    bottom, or the score with the thresholds. The grey histogram below shows the values
    of the rows; where there are none, the model extrapolates.

    Bands are pointwise 90 % intervals of the mean, not of single rows. Two kinds of
    models have them. For a Gaussian process they are 1.64 posterior standard deviations
    wide on either side, computed with the covariance of f between the rows. For the
    probabilities of a cumulative link model without penalties they are those of
    `PomModel.predictions`; its score has none, because the origin of the score is
    arbitrary.

    Parameters
    ----------
    model : model with probabilities or one score per row, or Selection
    X : (n, n_features) array-like or data frame
        Rows to average over, such as the training rows.
    feature : name or number of a column of X
    ax : matplotlib Axes, optional
    of : {"probability", "score"}, optional
        Quantity to draw. Default: probabilities if the model has them, and at most 50
        ranks.
    at : int or (m,) array-like, default 50
        Number of values between the 1st and the 99th percentile of the column (or its
        own values, if these are fewer), or the values themselves. For a column of
        strings, all values that occur.
    max_rows : int, default 500
        Limit on the number of rows; of more rows, evenly spaced ones are used.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows in the mean.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If there is no such column, if X is sparse, if the model has no probabilities or
        score as requested, or a precomputed kernel, or if an argument is invalid.

    See Also
    --------
    importance : Plot importances of features with their standard errors, the largest on
        top.
    score_functions : Plot the main effect of every feature, on one scale, the most
        important first.
    relevance : Plot the relevance of each feature to a Gaussian process, the largest
        first.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", The
    Annals of Statistics 29(5):1189-1232, 2001, section 8.2.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorim(X, y, probability=True)
    >>> ax = ordinal.plot.partial_dependence(model, X, "x1", at=10)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x1', 'probability')
    """
    model = fitted(model)
    check_choice("of", of, (None, "probability", "score"))
    if kernel_class(getattr(innermost(model), "kernel", None)).by_number:
        raise ValueError(
            "model must be fitted to features, and this one has a precomputed kernel"
        )
    rows = GridRows(model, X, sample_weight, check_count("max_rows", max_rows))
    j = column_number(feature, rows.names, "feature")
    values, is_category = values_along(model, rows, j, at)
    if of is None:
        few = model.classes.size <= MOST_RANKS
        of = "probability" if few and _has_proba(model) else "score"
    if of == "probability":
        check_ranks("partial_dependence of the probability", model.classes.size)
    found = dependence_of(model, rows, j, values, is_category, of)
    ax = axes_of(ax, 5.6 + (room_for(len(values)) if is_category else 0), 3.6)
    (_draw_score if of == "score" else _draw_probabilities)(ax, model, found)
    if is_category:
        category_ticks(ax, "x", values)
    else:
        own = rows.frame.values[:, j]
        mark_density(ax, own, rows.weight, (values[0], values[-1]))
        ax.set_xlim(values[0], values[-1])
        ax.locator_params(axis="x", nbins=6)  # long numbers would overlap
    ax.set_xlabel(literal(rows.names[j]))
    return ax


def _draw_probabilities(ax: Axes, model: Model, found: Dependence) -> None:
    """Draw stacked bands, or bars for categories, the lowest rank at the bottom."""
    m, r = len(found.mean), model.classes.size
    edges = np.column_stack([np.zeros(m), found.mean, np.ones(m)])
    colours = rank_colours(r)
    x = np.arange(m) if found.is_category else found.at
    for k in range(r):
        low, high = edges[:, k], edges[:, k + 1]
        if found.is_category:
            ax.bar(x, high - low, 0.8, low, color=colours[k], edgecolor="white")
        else:
            ax.fill_between(x, low, high, color=colours[k], lw=0)
            ax.plot(x, high, color="white", lw=1.5)
    if found.low is not None and found.high is not None:
        for k, (low, high) in enumerate(zip(found.low.T, found.high.T, strict=True)):
            if found.is_category:  # side by side, as neighbours may reach as far
                aside = 0.4 * ((k + 0.5) / (r - 1) - 0.5)
                ax.vlines(x + aside, low, high, color="white", lw=3, alpha=0.8)
            else:
                ax.fill_between(x, low, high, color="white", alpha=0.22, lw=0)
    ax.set(ylim=(0 if found.is_category else -0.1, 1))
    ax.set_ylabel(_with_intervals("probability", found))
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    ax.spines["left"].set_bounds(0, 1)
    middle = (edges[-1, 1:] + edges[-1, :-1]) / 2
    label_right(ax, middle, [literal(c) for c in model.classes.tolist()], colours)


def _draw_score(ax: Axes, model: Model, found: Dependence) -> None:
    """Draw a line between thresholds, or points, with a band or bars about it."""
    x = np.arange(len(found.at)) if found.is_category else found.at
    thresholds, names = finite_thresholds(model)
    for b in thresholds:
        ax.axhline(b, color="0.2", lw=0.8, ls=(0, (4, 2)), zorder=0)
    if found.low is not None and found.high is not None:
        if found.is_category:
            ax.vlines(x, found.low, found.high, color=PALETTE[4], lw=3)
        else:
            ax.fill_between(x, found.low, found.high, color=PALETTE[4], alpha=0.4, lw=0)
    ax.plot(x, found.mean, "o" if found.is_category else "-", color=PALETTE[0], lw=1.8)
    low, high = ax.get_ylim()
    ax.set(ylim=(low - 0.1 * (high - low), high))
    ax.set_ylabel(_with_intervals("score", found))
    order = np.argsort(thresholds)
    places = [thresholds[k] for k in order]
    label_right(ax, places, [literal(names[k]) for k in order])


def _with_intervals(label: str, found: Dependence) -> str:
    return label if found.low is None else f"{label}, with {_LEVEL:.0%} intervals"


def _has_proba(model: Model) -> bool:
    return getattr(innermost(model), "link", True) is not None


@with_suggestions
def relevance(
    model: Model | Selection, ax: Axes | None = None, *, top: int | None = None
) -> Axes:
    """Plot the relevance of each feature to a Gaussian process, the largest first.

    The relevance is the weight gamma of a feature in an ARD kernel, drawn on a
    logarithmic scale: the larger it is, the faster the latent function changes along
    the feature. Relevances of standardised features can be compared; a feature several
    powers of ten below the others is irrelevant.

    Parameters
    ----------
    model : GporModel with kernel="ard" or "ard_linear", or Selection
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
        If the model has no relevance per feature, or if `top` is not a positive
        integer.

    See Also
    --------
    importance : Plot importances of features with their standard errors, the largest on
        top.
    ordinal.fit_gpor : Fit GPOR: a Gaussian process with an ordinal likelihood.

    References
    ----------
    W. Chu, Z. Ghahramani, JMLR 6:1019-1041, 2005, (19) and section 5.3.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_gpor(X[::5], y[::5], kernel="ard", max_iter=20)
    >>> ordinal.plot.relevance(model).get_xlabel()
    'relevance (gamma of the kernel)'
    """
    model = fitted(model)
    of = innermost(model)
    if not is_process(model):
        raise TypeError(f"model must be a GporModel, got a {type(of).__name__}")
    gamma = of.relevance()
    names = of.feature_names or default_names(gamma.size)
    if of.feature_names is None and gamma.size == len(model.feature_names or ()):
        names = model.feature_names or names
    order = np.argsort(-gamma, kind="stable")
    if top is not None:
        order = order[: check_count("top", top)]
    ax = axes_of(ax, 5.6, 0.9 + 0.28 * order.size)
    place = np.arange(order.size)
    ax.set_xscale("log")
    ax.plot(gamma[order], place, "o", color=PALETTE[0], ms=6)
    low, high = ax.get_xlim()
    logarithmic_ticks(ax)
    ax.hlines(place, low, high, color="0.88", lw=1, zorder=0)
    ax.set(xlim=(low, high), ylim=(order.size - 0.4, -0.6))
    name_bars(ax, [names[j] for j in order])
    ax.set_xlabel("relevance (gamma of the kernel)")
    return ax
