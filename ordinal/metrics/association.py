"""Association of true ranks with scores, and standard errors of agreement.

With w_i the weights, C_i and D_i the weight of the rows that are concordant and
discordant with row i (a_i - a_k and s_i - s_k of the same sign, and of opposite signs),
P = sum_i w_i C_i and Q = sum_i w_i D_i, u_i the weight of the rows of other true ranks
than a_i, and U = sum_i w_i u_i,

    somers_d = (P - Q) / U
    c_index = (1 + somers_d) / 2
    gamma = (P - Q) / (P + Q)

and their standard errors by the delta method, for weights that are frequencies,

    se(somers_d) = 2/U sqrt(sum_i w_i (C_i - D_i - somers_d u_i)^2)
    se(gamma) = 4/(P + Q)^2 sqrt(sum_i w_i (Q C_i - P D_i)^2)

L. A. Goodman, W. H. Kruskal, "Measures of association for cross classifications IV",
JASA 67:415-421, 1972. R. H. Somers, "A new asymmetric measure of association for
ordinal variables", American Sociological Review 27:799-811, 1962. F. E. Harrell et al.,
"Evaluating the yield of medical tests", JAMA 247:2543-2546, 1982.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import (
    as_array,
    as_real_array,
    check_choice,
    check_share,
    shown,
    with_suggestions,
)
from .._input.columns import warn_of_other_order
from .._input.labels import sample_weights
from .._input.predictions import read_ranks
from .._numerics.tails import normal_margin
from .predictions import (
    below_less_above,
    distances_of_ranks,
    rank_table,
    ratio,
)

_LOWEST = {"kappa": -math.inf, "somers_d": -1.0, "gamma": -1.0, "c_index": 0.0}


class Interval(NamedTuple):
    """Result of `confidence_interval`.

    Attributes
    ----------
    estimate : float
        The value of the metric.
    standard_error : float
        Of large samples.
    lower, upper : float
        Ends of the interval, within the range of the metric.
    """

    estimate: float
    standard_error: float
    lower: float
    upper: float


class _Pairs(NamedTuple):
    """Weights, for each row, of the concordant, discordant and untied other rows."""

    weight: np.ndarray
    concordant: np.ndarray
    discordant: np.ndarray
    untied: np.ndarray

    @classmethod
    def read(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        labels: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> Self:
        """Count pairs by sorting; O(n log n) per bit of the number of ranks."""
        score = as_array(y_score, "y_score")
        if score.dtype.kind in "biuf":
            warn_of_other_order(y_true, "y_true", y_score=y_score)
            a, _, weight, _ = read_ranks(y_true, y_true, labels, sample_weight)
            numbers = as_real_array(score, "y_score", (a.size,), " as y_true")
            if np.isnan(numbers).any():
                row = int(np.isnan(numbers).argmax())
                raise ValueError(f"y_score must hold no nan, got one in row {row}")
            _, s = np.unique(numbers, return_inverse=True)
        else:
            a, s, weight, _ = read_ranks(y_true, y_score, labels, sample_weight)
        down_a, down_s = a.max() - a, s.max() - s
        concordant = _dominated(a, s, weight) + _dominated(down_a, down_s, weight)
        discordant = _dominated(a, down_s, weight) + _dominated(down_a, s, weight)
        untied = weight.sum() - np.bincount(a, weight)[a]
        return cls(weight, concordant, discordant, untied)


@with_suggestions
def somers_d(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute Somers' D between ordered labels and scores.

    Among pairs of different true ranks, the share that the score puts in the right
    order minus the share that it puts in the wrong one. Pairs with equal scores count
    as neither. This is the Dxy of R's Hmisc, and D(C|R) of a table whose rows are the
    true ranks.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings
    y_score : (n,) array_like
        Scores that are larger for higher ranks, such as `decision_function` returns, or
        predicted labels.
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [-1, 1]
        nan if all true labels are one.

    Raises
    ------
    TypeError, ValueError
        As for `mze`, or a NaN among the scores.

    See Also
    --------
    c_index : Concordance index (Harrell's c) of scores.
    gamma : Goodman and Kruskal's gamma: Somers' D of the pairs without ties.
    confidence_interval : Estimate a metric of agreement with its standard error and
        confidence interval.

    Examples
    --------
    >>> somers_d([1, 2, 3, 3], [0.1, 0.5, 0.4, 0.9])
    0.6
    """
    return _somers(_Pairs.read(y_true, y_score, labels, sample_weight))[0]


@with_suggestions
def c_index(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Concordance index (Harrell's c) of scores.

    The index is the share of pairs of rows with different true ranks whose scores are
    in the correct order; equal scores count half. With two ranks it is the area under
    the ROC curve.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings
    y_score : (n,) array_like
        As for `somers_d`.
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [0, 1]
        1/2 for scores without information; nan if all true labels are equal.

    Raises
    ------
    TypeError, ValueError
        As for `somers_d`.

    See Also
    --------
    somers_d : Compute Somers' D between ordered labels and scores.
    gamma : Goodman and Kruskal's gamma: Somers' D of the pairs without ties.
    confidence_interval : Estimate a metric of agreement with its standard error and
        confidence interval.

    Examples
    --------
    >>> c_index([1, 2, 3, 3], [0.1, 0.5, 0.4, 0.9])
    0.8
    """
    return (
        1 + somers_d(y_true, y_score, labels=labels, sample_weight=sample_weight)
    ) / 2


@with_suggestions
def gamma(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Goodman and Kruskal's gamma: Somers' D of the pairs without ties.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings
    y_score : (n,) array_like
        As for `somers_d`.
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [-1, 1]
        nan if every pair is tied.

    Raises
    ------
    TypeError, ValueError
        As for `somers_d`.

    See Also
    --------
    somers_d : Compute Somers' D between ordered labels and scores.
    c_index : Concordance index (Harrell's c) of scores.
    confidence_interval : Estimate a metric of agreement with its standard error and
        confidence interval.

    Examples
    --------
    >>> gamma([1, 2, 3, 3], [1, 2, 2, 3])  # one of five pairs has equal scores
    1.0
    """
    return _gamma(_Pairs.read(y_true, y_score, labels, sample_weight))[0]


@with_suggestions
def confidence_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    metric: Literal["kappa", "somers_d", "gamma", "c_index"] = "kappa",
    *,
    level: float = 0.95,
    weights: Literal["linear", "quadratic"] | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Interval:
    """Estimate a metric of agreement with its standard error and confidence interval.

    Standard errors are those of large samples of independent rows (delta method). They
    are 0 if all rows agree or all pairs are in order; the interval then has no width
    and says nothing about other samples.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings
    y_pred : (n,) array_like
        Predicted labels for "kappa"; labels or scores for the others.
    metric : {"kappa", "somers_d", "gamma", "c_index"}, default "kappa"
    level : float in (0, 1), default 0.95
    weights : {"linear", "quadratic"}, optional
        Weights of "kappa", "quadratic" by default; the other metrics have none.
    labels : (r,) array_like, optional
        As for `mze`.
    sample_weight : (n,) array_like, optional
        Frequencies of the rows; weight 2 has the same effect as writing the row twice.

    Returns
    -------
    Interval
        A named tuple (estimate, standard_error, lower, upper). All are nan if the
        metric is not defined: for "kappa" if all true and predicted labels are equal,
        for the others if no two rows have different true labels (for "gamma", and
        different scores). For a single row they are nan, except that kappa is 0 if its
        label is wrong.

    Raises
    ------
    TypeError, ValueError
        As for the metric; also if `metric` or `level` is invalid.

    See Also
    --------
    kappa : Compute weighted kappa: agreement beyond that expected by chance.
    somers_d : Compute Somers' D between ordered labels and scores.
    gamma : Goodman and Kruskal's gamma: Somers' D of the pairs without ties.
    c_index : Concordance index (Harrell's c) of scores.

    References
    ----------
    J. L. Fleiss, J. Cohen, B. S. Everitt, "Large sample standard errors of kappa and
    weighted kappa", Psychological Bulletin 72:323-327, 1969.

    Examples
    --------
    >>> found = confidence_interval([1, 2, 3, 3, 1], [1, 2, 3, 2, 2])
    >>> [round(value, 3) for value in found]
    [0.667, 0.222, 0.231, 1.0]
    """
    z = normal_margin(check_share("level", level))
    check_choice("metric", metric, tuple(_LOWEST))
    if weights is not None:
        check_choice("weights", weights, ("linear", "quadratic"))
        if metric != "kappa":
            raise ValueError(
                f"weights is for metric='kappa' only, got metric={shown(metric)}: "
                "leave it out"
            )
    if metric == "kappa":
        C = rank_table(y_true, y_pred, labels, sample_weight)
        value, error = _kappa(C, 1 if weights == "linear" else 2)
    else:
        pairs = _Pairs.read(y_true, y_pred, labels, sample_weight)
        value, error = _gamma(pairs) if metric == "gamma" else _somers(pairs)
        if metric == "c_index":
            value, error = (1 + value) / 2, error / 2
    # the weights of the rows are divided by the largest one
    error /= math.sqrt(
        sample_weights(sample_weight, len(as_array(y_true, "y_true"))).max()
    )
    lower, upper = max(_LOWEST[metric], value - z * error), min(1.0, value + z * error)
    if math.isnan(value):
        lower = upper = error = math.nan
    return Interval(value, error, lower, upper)


def _somers(pairs: _Pairs) -> tuple[float, float]:
    """Return Somers' D and its standard error."""
    w, net, total = pairs.weight, pairs.concordant - pairs.discordant, pairs.untied
    value = ratio(w @ net, w @ total)
    return value, ratio(2 * math.sqrt(w @ (net - value * total) ** 2), w @ total)


def _gamma(pairs: _Pairs) -> tuple[float, float]:
    """Return gamma and its standard error."""
    w, C, D = pairs.weight, pairs.concordant, pairs.discordant
    P, Q = w @ C, w @ D
    return ratio(P - Q, P + Q), ratio(
        4 * math.sqrt(w @ (Q * C - P * D) ** 2), (P + Q) ** 2
    )


def _kappa(C: np.ndarray, power: int) -> tuple[float, float]:
    """Return weighted kappa and its standard error, from the table of the ranks."""
    n, r = C.sum(), len(C)
    D = distances_of_ranks(r) ** power / max(r - 1, 1) ** power
    p, rows, columns = C / n, C.sum(axis=1) / n, C.sum(axis=0) / n
    chance = float(rows @ D @ columns)
    value = ratio(chance - float((p * D).sum()), chance)
    if not chance:
        return value, math.nan
    # disagreement that a row, or a column, has by chance
    mean = (D @ columns)[:, None] + (rows @ D)[None, :]
    moved = D - mean * (1 - value)
    variance = float((p * moved**2).sum()) - (chance * (1 - value)) ** 2
    return value, math.sqrt(max(variance, 0.0) / n) / chance


def _dominated(a: np.ndarray, s: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the weight of rows with a smaller a and smaller s than each row, (n,).

    Two numbers a differ first at one bit. For every bit, rows that agree in the bits
    above it are sorted by s, and those whose bit is 0 are summed below each row whose
    bit is 1. O(n log n) for each bit.
    """
    found = np.zeros(a.size)
    by_score = np.argsort(s, kind="stable")
    place = np.arange(a.size)
    for bit in range(int(a.max()).bit_length()):
        order = by_score[np.argsort(a[by_score] >> (bit + 1), kind="stable")]
        group, score = a[order] >> (bit + 1), s[order]
        is_high = (a[order] >> bit) & 1 == 1
        below = np.concatenate([[0.0], np.cumsum(np.where(is_high, 0.0, w[order]))])
        starts = np.concatenate([[True], group[1:] != group[:-1]])
        new = starts | np.concatenate([[True], score[1:] != score[:-1]])
        first, tie = (
            np.maximum.accumulate(np.where(at, place, 0)) for at in (starts, new)
        )
        found[order] += np.where(is_high, below[tie] - below[first], 0.0)
    return found


@with_suggestions
def spearman(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute Spearman's rank correlation between true and predicted ranks.

    Ties get their mean rank.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [-1, 1]
        nan if all true or all predicted labels are equal.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    See Also
    --------
    kendall : Compute Kendall's tau-b between true and predicted ranks.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [1, 3, 2, 4])
    0.8
    """
    C = rank_table(y_true, y_pred, labels, sample_weight)
    N, M = C.sum(axis=1), C.sum(axis=0)
    u, v = below_less_above(N), below_less_above(M)  # twice a mean place, centred
    return ratio(u @ C @ v, np.sqrt((N @ u**2) * (M @ v**2)))
