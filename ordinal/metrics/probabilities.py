"""Metrics of predicted probabilities of ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import with_suggestions
from .._input.intervals import RankIntervals
from .._input.predictions import read_probabilities
from .predictions import weighted_mean


@with_suggestions
def rps(
    y_true: ArrayLike | RankIntervals,
    proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the ranked probability score: squared error of cumulative probabilities.

    The sum over the r - 1 thresholds is not divided by their number, so that the score
    of certain predictions (probabilities 0 and 1) is their `mae` in ranks.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings, or RankIntervals
        Thresholds within an interval do not count.
    proba : (n, r) array_like
        Probabilities, one column per label; rows sum to 1 within 1e-3 (rounded tables).
    labels : (r,) array_like, optional
        As for `mze`, but the default depends on `y_true` only.
    sample_weight : (n,) array_like, optional
        As for `mze`.

    Returns
    -------
    float in [0, r - 1]

    Raises
    ------
    TypeError, ValueError
        As for `mze`; also if `proba` does not hold probabilities with one column per
        label.

    See Also
    --------
    log_loss : Mean negative logarithm of the probability of the true label.
    mae : Compute the mean absolute error of the predicted labels.
    ordinal.plot.reliability : Plot the calibration of predicted probabilities, per
        threshold.

    References
    ----------
    E. S. Epstein, "A scoring system for probability forecasts of ranked categories",
    Journal of Applied Meteorology 8(6):985-987, 1969.

    Examples
    --------
    >>> rps([1, 3], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], labels=[1, 2, 3])
    0.125
    """
    (a, last), P, weight = read_probabilities(y_true, proba, labels, sample_weight)
    threshold = np.arange(P.shape[1] - 1)
    event, within = last[:, None] <= threshold, a[:, None] <= threshold
    squares = (np.cumsum(P[:, :-1], axis=1) - event) ** 2
    return weighted_mean(np.where(event == within, squares, 0.0).sum(axis=1), weight)


@with_suggestions
def log_loss(
    y_true: ArrayLike | RankIntervals,
    proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean negative logarithm of the probability of the true label.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings, or RankIntervals
        The probability is that of the interval.
    proba : (n, r) array_like
    labels, sample_weight : optional
        As for `rps`.

    Returns
    -------
    float >= 0
        inf if a row's label had probability 0: nothing is clipped.

    Raises
    ------
    TypeError, ValueError
        As for `rps`.

    See Also
    --------
    rps : Compute the ranked probability score: squared error of cumulative
        probabilities.
    ordinal.plot.reliability : Plot the calibration of predicted probabilities, per
        threshold.

    Examples
    --------
    >>> round(log_loss([1, 2], [[0.5, 0.5], [0.25, 0.75]]), 4)
    0.4904
    """
    (a, last), P, weight = read_probabilities(y_true, proba, labels, sample_weight)
    known = P[np.arange(a.size), a]
    several = np.flatnonzero(a < last)
    rank = np.arange(P.shape[1])
    within = (a[several, None] <= rank) & (rank <= last[several, None])
    known[several] = np.where(within, P[several], 0.0).sum(axis=1)
    with np.errstate(divide="ignore"):
        return weighted_mean(-np.log(known), weight)
