"""Figures of predictions beside true labels: scores, confusion, reliability, sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import check_count, shown, with_suggestions
from .._input.intervals import known_labels
from .._input.labels import check_spread, ranks_of, read_labels, sample_weights
from .._input.types import ArrayLike, Labels, MatrixLike
from .._model.column_names import innermost
from .._model.model import Model
from ..inference.fitted import has_errors as has_standard_errors
from ..linear import PomModel
from ..model_selection import Selection
from ..model_selection.selection import model_in
from ..prediction_sets import ConformalModel
from ..preprocessing.model import within
from .style import (
    MOST_RANKS,
    PALETTE,
    Axes,
    axes_of,
    category_ticks,
    check_ranks,
    legend_below,
    literal,
    name_bars,
    panels,
    spread,
)


def fitted(model: Any) -> Model:
    """Return the fitted model within a Selection, an estimator of `ordinal.sklearn` or
    a model of prediction sets; a model itself is returned as it is.

    Raises TypeError for other objects.
    """
    if isinstance(model, Selection) and model.model is None:
        raise ValueError("model must be refitted: the search had refit=False")
    found = model_in(model)
    if isinstance(found, ConformalModel):
        found = found.model
    if not isinstance(found, Model):
        raise TypeError(
            f"model must be a fitted model or a Selection, got {shown(model)}"
        )
    return found


def is_process(model: Model) -> bool:
    """Return whether a model is a Gaussian process with a latent function."""
    return hasattr(innermost(model), "predict_latent")


def has_errors(model: Model) -> bool:
    """Return whether a model is a cumulative link model with standard errors."""
    of = innermost(model)
    return isinstance(of, PomModel) and has_standard_errors(of)


def score_of(model: Any, X: Any) -> np.ndarray:
    """Return a score that increases with the rank, (n,): the latent score, or the mean
    of the latent function. Raises TypeError for a model that has neither.
    """
    if is_process(model):
        process, features = within(model, X)
        return np.asarray(process.predict_latent(features)[0])
    score = np.asarray(model.decision_function(X))
    if score.ndim != 1:
        raise TypeError(
            f"model must have one score per row; {type(innermost(model)).__name__} has "
            f"{score.shape[1]}"
        )
    return score


def finite_thresholds(model: Model) -> tuple[list[float], list[str]]:
    """Return thresholds on the scale of the score, and the labels on their sides.

    Infinite thresholds, of ranks without rows, are left out, and all if they are too
    many to be told apart; there are none if the model has no thresholds.
    """
    of = innermost(model)
    b = getattr(of, "thresholds", np.empty(0))
    finite = np.flatnonzero(np.isfinite(b))
    if finite.size >= MOST_RANKS:
        return [], []
    return b[finite].tolist(), [of.threshold_names[j] for j in finite]


def true_ranks(
    model: Model, y: Any, n: int, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of n labels, and the weights of the rows, after checks."""
    labels = known_labels("a figure of predictions by rank", y)
    rank = ranks_of(read_labels(labels, "y"), model.classes)
    if rank.size != n:
        raise ValueError(f"y has {rank.size} labels, and X {n} rows")
    weight = sample_weights(sample_weight, n)
    check_spread("sample_weight", weight)  # amounts are shown
    return rank, weight


_Z95 = 1.959964  # of a normal distribution, two-sided
_OUTCOMES = {"predicted right": PALETTE[0], "wrong": PALETTE[1]}


@with_suggestions
def scores(
    model: Model | Selection,
    X: MatrixLike,
    y: Labels,
    ax: Axes | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> Axes:
    """Plot histograms of scores, one per rank, with the thresholds.

    The blue part of a bar counts the rows that are predicted correctly, the orange part
    the others; the share of correct rows per rank is printed beside. Every histogram
    has its own height. On training rows the figure is too optimistic.

    Parameters
    ----------
    model : model with one score per row, or Selection
        Model to draw. The score of a Gaussian process is the mean of its latent
        function. XOFM has no thresholds, because its ranks come from the scores of the
        training rows.
    X : (n, n_features) array-like or data frame
    y : (n,) array-like
        True labels, among `model.classes`.
    ax : matplotlib Axes, optional
    sample_weight : (n,) array-like >= 0, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `X`, `y` or a weight is invalid, or if the model does not have one score per
        row, such as NPSVOR.

    See Also
    --------
    confusion_matrix : Plot the number of rows of each true label by predicted label.
    reliability : Plot the calibration of predicted probabilities, per threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.plot.scores(ordinal.fit_svorim(X, y), X, y).get_xlabel()
    'score'
    """
    model = fitted(model)
    check_ranks("scores", model.classes.size)
    score = score_of(model, X)
    rank, weight = true_ranks(model, y, score.size, sample_weight)
    right = read_labels(model.predict(X), "labels") == model.classes[rank]
    r = model.classes.size
    ax = axes_of(ax, 6.4, 1.3 + 0.55 * r)
    edges = np.histogram_bin_edges(score, min(80, 10 + int(2 * score.size**0.5)))
    for k in range(r):
        of_rank = rank == k
        parts = [
            np.histogram(score[rows], edges, weights=weight[rows])[0]
            for rows in (of_rank & right, of_rank & ~right)
        ]
        bottom, most = np.full(edges.size - 1, float(k)), (parts[0] + parts[1]).max()
        ax.axhline(k, color="0.8", lw=0.8, zorder=0)
        for part, (label, colour) in zip(parts, _OUTCOMES.items(), strict=True):
            height = 0.85 * part / (most or 1.0)
            ax.bar(
                edges[:-1],
                height,
                np.diff(edges),
                bottom,
                align="edge",
                color=colour,
                label=label if k == 0 else None,
            )
            bottom += height
        ax.annotate(
            _share(parts[0].sum(), parts[1].sum()),
            (1, k),
            xycoords=("axes fraction", "data"),
            xytext=(5, 0),
            textcoords="offset points",
            va="bottom",
            fontsize="small",
            color="0.3",
        )
    _mark_thresholds(ax, *finite_thresholds(model))
    name_bars(ax, [str(label) for label in model.classes.tolist()])
    ax.set(ylim=(-0.1, r), ylabel="true label")
    ax.set_xlabel("score")
    legend_below(ax, 2)
    return ax


@with_suggestions
def confusion_matrix(
    model: Model | Selection,
    X: MatrixLike,
    y: Labels,
    ax: Axes | None = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> Axes:
    """Plot the number of rows of each true label by predicted label.

    Cells show the number of rows, or their weight; the larger its share in the rows of
    the true label, the darker the cell. Correct predictions are on the diagonal from
    the lower left to the upper right.

    Parameters
    ----------
    model : any model, or Selection
    X : (n, n_features) array-like or data frame
        Rows to predict. Use rows that the model was not fitted to for an unbiased
        figure.
    y : (n,) array-like
        True labels, among `model.classes`.
    ax : matplotlib Axes, optional
    sample_weight : (n,) array-like >= 0, optional

    Returns
    -------
    matplotlib Axes
        Axes whose title states the mean absolute error in ranks and the accuracy.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `X`, `y` or a weight is invalid.

    See Also
    --------
    scores : Plot histograms of scores, one per rank, with the thresholds.
    ordinal.metrics.confusion_matrix : Count the rows of each true (row) and predicted
        (column) label.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ax = ordinal.plot.confusion_matrix(ordinal.fit_svorim(X, y), X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted label', 'true label')
    """
    model = fitted(model)
    check_ranks("confusion_matrix", model.classes.size)
    predicted = ranks_of(read_labels(model.predict(X), "labels"), model.classes)
    rank, weight = true_ranks(model, y, predicted.size, sample_weight)
    r = model.classes.size
    counts = np.bincount(rank * r + predicted, weight, minlength=r * r).reshape(r, r)
    total = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, total, out=np.zeros((r, r)), where=total > 0)
    side = max(2.6, 0.55 * r)
    ax = axes_of(ax, side + 1.2, side + 1.0)
    ax.pcolormesh(
        np.arange(r + 1) - 0.5,
        np.arange(r + 1) - 0.5,
        share,
        cmap="Blues",
        vmin=0,
        vmax=1,
        edgecolors="white",
        linewidth=1,
    )
    size = "medium" if r <= 8 else "small" if r <= 12 else "xx-small"
    for j, k in np.argwhere(counts):
        ax.text(
            k,
            j,
            _amount(counts[j, k]),
            ha="center",
            va="center",
            fontsize=size,
            color="white" if share[j, k] > 0.55 else "0.15",
        )
    labels = [literal(label) for label in model.classes.tolist()]
    slanted = sum(map(len, labels)) > 5 * r
    ax.set_xticks(
        range(r), labels, rotation=40 * slanted, ha="right" if slanted else "center"
    )
    ax.set_yticks(range(r), labels)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(aspect="equal", xlabel="predicted label", ylabel="true label")
    off = np.abs(np.subtract.outer(np.arange(r), np.arange(r)))
    mae, right = (counts * off).sum() / counts.sum(), np.trace(counts) / counts.sum()
    ax.set_title(f"MAE {mae:.2f}, {right:.0%} right", loc="left", fontsize="medium")
    return ax


class Reliability(NamedTuple):
    """Reliability of one event in bins of its predicted probability.

    There are means of the probabilities, shares of the rows in which the event
    happened, and 95 % intervals of these shares.
    """

    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray


def reliability_of(
    p: np.ndarray, happened: np.ndarray, weight: np.ndarray, n_bins: int
) -> Reliability:
    """Compute the reliability in bins with about the same number of rows.

    Rows with equal probabilities are in the same bin. The intervals are Wilson's, for
    the effective number of rows.
    """
    n_bins = min(n_bins, p.size)
    weight = weight / weight.max()  # whose sums and squares are finite
    order = np.argsort(p, kind="stable")
    cumulative = np.cumsum(weight[order])
    inside = cumulative[-1] * np.arange(1, n_bins) / n_bins
    cuts = p[order][np.searchsorted(cumulative, inside)]
    bin_of = np.searchsorted(cuts, p)  # what equals a cut lies below it

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(bin_of, values, minlength=n_bins)

    mass = total(weight)
    held = mass > 0
    mass = mass[held]
    effective = mass**2 / total(weight**2)[held]
    predicted = total(weight * p)[held] / mass
    observed = total(weight * happened)[held] / mass
    z2 = _Z95**2 / effective
    centre = (observed + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * observed * (1 - observed) + z2**2 / 4) / (1 + z2)
    return Reliability(predicted, observed, centre - half, centre + half)


@with_suggestions
def reliability(
    model: Model | Selection,
    X: MatrixLike,
    y: Labels,
    axes: Sequence[Axes] | None = None,
    *,
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Plot the calibration of predicted probabilities, per threshold.

    There is one panel per threshold, for the event that the label is above it. It shows
    the observed frequency of the event against its predicted probability, in bins with
    numbers of rows that are as equal as possible. Vertical lines are 95 % intervals;
    calibrated probabilities lie on the diagonal. The ticks along the lower edge are the
    predicted probabilities.

    Parameters
    ----------
    model : model with probabilities, or Selection
    X : (n, n_features) array-like or data frame
        Rows that the model was not fitted to; on training rows the figure is too
        optimistic.
    y : (n,) array-like
        True labels, among `model.classes`.
    axes : sequence of r - 1 matplotlib Axes, optional
        Default: those of a new figure with up to four panels in a row.
    n_bins : int, default 10
        Number of bins. Use fewer for few rows, because a bin of ten rows has a wide
        interval.
    sample_weight : (n,) array-like >= 0, optional

    Returns
    -------
    (r - 1,) array of matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If the model has no probabilities, or if an argument is invalid.

    See Also
    --------
    scores : Plot histograms of scores, one per rank, with the thresholds.
    ordinal.metrics.rps : Compute the ranked probability score: squared error of
        cumulative probabilities.
    ordinal.metrics.log_loss : Mean negative logarithm of the probability of the true
        label.

    References
    ----------
    M. H. DeGroot, S. E. Fienberg, "The comparison and evaluation of forecasters", The
    Statistician 32:12-22, 1983.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorim(X, y, probability=True)
    >>> axes = ordinal.plot.reliability(model, X, y, n_bins=4)
    >>> [ax.get_title(loc="left") for ax in axes]
    ['above 1', 'above 2']
    """
    model = fitted(model)
    check_ranks("reliability", model.classes.size)
    n_bins = check_count("n_bins", n_bins)
    P = np.asarray(model.predict_proba(X))
    rank, weight = true_ranks(model, y, len(P), sample_weight)
    k = model.classes.size - 1
    drawn = panels(axes, k, "thresholds", 4, (2.5, 2.6), sharex=True, sharey=True)
    above = np.cumsum(P[:, ::-1], axis=1)[:, ::-1]  # sums of what is small keep digits
    for j, ax in enumerate(drawn):
        p = np.minimum(above[:, j + 1], 1.0)
        found = reliability_of(p, rank > j, weight, n_bins)
        ax.plot([0, 1], [0, 1], color="0.75", lw=0.8, zorder=0)
        ax.vlines(found.predicted, found.low, found.high, color=PALETTE[0], lw=1)
        ax.plot(found.predicted, found.observed, "o-", color=PALETTE[0], ms=4, lw=1)
        shown = np.unique(np.round(500 * p)) / 500
        # one line with gaps, because a file would hold each of many markers
        ax.plot(
            np.column_stack([shown, shown, np.full(shown.size, np.nan)]).ravel(),
            np.tile([-0.02, 0.02, np.nan], shown.size),
            color="0.4",
            lw=0.5,
            alpha=0.5,
            transform=ax.get_xaxis_transform(),
            clip_on=False,
        )
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        ax.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        ax.set_title(
            f"above {literal(model.classes[j])}", loc="left", fontsize="medium"
        )
        place = ax.get_subplotspec()
        if place is None or place.is_first_col():
            ax.set_ylabel("share above")
        if place is None or place.is_last_row():
            ax.set_xlabel("predicted")
    return np.array(drawn)


def _mark_thresholds(ax: Axes, at: list[float], names: list[str]) -> None:
    """Draw vertical lines with their names at the top, in one or two lines of text.

    If names would overlap even so, they are slanted and connected to their lines.
    """
    order = np.argsort(at)
    low, high = ax.get_xlim()
    points = 72 * ax.get_window_extent().width / ax.figure.dpi / (high - low)
    place = points * np.array(at)[order]
    half = np.array([3 + 2.6 * len(names[j]) for j in order])  # of a name, in points
    n_lines = next((k for k in (1, 2) if _has_room(place, half, k)), 0)
    if not n_lines:
        place = spread(place, 13)
    for k, (j, x) in enumerate(zip(order, place, strict=True)):
        ax.axvline(at[j], color="0.2", lw=0.8, ls=(0, (4, 2)))
        up = 3 + 12 * (k % n_lines) if n_lines else 12
        lead = {"arrowstyle": "-", "lw": 0.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate(
            literal(names[j]),
            (at[j], 1),
            xycoords=("data", "axes fraction"),
            xytext=(x - points * at[j], up),
            textcoords="offset points",
            va="bottom",
            fontsize="small",
            ha="center" if n_lines else "left",
            rotation=0 if n_lines else 45,
            rotation_mode="anchor",
            arrowprops=lead if up > 3 else None,
        )


def _has_room(place: np.ndarray, half: np.ndarray, n_lines: int) -> bool:
    """Return whether names of these half widths fit into so many lines of text."""
    gap = place[n_lines:] - place[:-n_lines]
    return bool((gap >= half[n_lines:] + half[:-n_lines]).all())


def _share(right: float, wrong: float) -> str:
    total = right + wrong
    return f"{right / total:.0%} of {_amount(total)} right" if total else "no rows"


def _amount(weight: float) -> str:
    """Return a number of rows, or a weight, as text of three digits."""
    return f"{weight:.0f}" if weight == round(weight) else f"{weight:.3g}"


_SET, _HELD, _MISSED = PALETTE[4], PALETTE[0], PALETTE[5]


@with_suggestions
def prediction_sets(
    sets: ConformalModel,
    X: MatrixLike,
    y: Labels,
    ax: Axes | None = None,
    *,
    coverage: float | None = None,
) -> Axes:
    """Plot sets of neighbouring ranks, with the true ranks of their rows.

    Rows with the same set form a block, whose height is the set and whose width is the
    number of rows, sorted by their true ranks. True ranks are dots, blue inside and red
    outside the set. The title states the share of dots inside and the mean size of the
    sets.

    Parameters
    ----------
    sets : ConformalModel
        Result of `ordinal.conformal` or `ordinal.cross_conformal`.
    X : (n, n_features) array-like or data frame
        Rows that were used neither for the fit nor for the calibration.
    y : (n,) array-like
        Their labels, among `sets.classes`.
    ax : matplotlib Axes, optional
    coverage : float in (0, 1), default that of the sets

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `sets` is not a ConformalModel, or if `X`, `y` or `coverage` is invalid.

    See Also
    --------
    ordinal.conformal : Calibrate prediction sets of neighbouring ranks around a fitted
        model.
    ordinal.cross_conformal : Fit a model and calibrate its prediction sets on the same
        rows.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_svorim(X[::3], y[::3])
    >>> sets = ordinal.conformal(model, X[1::3], y[1::3])
    >>> ordinal.plot.prediction_sets(sets, X[2::3], y[2::3]).get_ylabel()
    'rank'
    """
    if not isinstance(sets, ConformalModel):
        raise TypeError(f"sets must be a ConformalModel, got {shown(sets)}")
    member = sets.predict_set(X, coverage=coverage)
    n, r = member.shape
    rank, _ = true_ranks(sets, y, n, None)
    low, size = member.argmax(axis=1), member.sum(axis=1)
    order = np.lexsort((rank, low, 2 * low + size))  # by the middle of the set
    low, size, rank = low[order], size[order], rank[order]
    held = (low <= rank) & (rank < low + size)

    ax = axes_of(ax, 6.4, 1.4 + 0.45 * r)
    first = np.flatnonzero(
        (np.diff(low, prepend=-1) != 0) | (np.diff(size, prepend=-1) != 0)
    )
    ax.bar(
        first, size[first], np.diff(first, append=n), low[first] - 0.5,
        align="edge", color=_SET, alpha=0.45, edgecolor="white", lw=1.0, zorder=1,
    )  # fmt: skip
    side = float(np.clip(2000 / n, 4, 30))
    for rows, colour, z in ((held, _HELD, 2), (~held, _MISSED, 3)):
        at = np.flatnonzero(rows)
        ax.scatter(at + 0.5, rank[at], side, colour, lw=0, zorder=z)
    asked = sets.coverage if coverage is None else coverage
    ax.set_title(
        f"{held.mean():.1%} of {n} rows in their set ({100 * asked:.4g}% asked for)\n"
        f"{size.mean():.2f} ranks in a set",
        fontsize="medium",
    )
    ax.set(
        xlim=(0, n), ylim=(-0.6, r - 0.4), xlabel="rows, by their set", ylabel="rank"
    )
    category_ticks(ax, "y", sets.classes)
    return ax
