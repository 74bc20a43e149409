"""Comparison of several methods by their scores on folds and data sets.

Scores are errors, so that smaller ones are better; negate scores of which larger ones
are. Scores that differ by at most 1e-12 of the largest are ties: 5/75 - 4/75 and
3/75 - 2/75 are the same difference in spite of rounding.

As in section V of the NPSVOR paper; F. Wilcoxon, "Individual comparisons by ranking
methods", Biometrics Bulletin 1(6):80-83, 1945, which has both of his tests; J. Demsar,
"Statistical comparisons of classifiers over multiple data sets", Journal of Machine
Learning Research 7:1-30, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import check_share, with_suggestions
from .._input.immutable import read_only
from .._input.predictions import score_tables, scores_of
from .._model.printing import html_record
from .._numerics.tails import chi2_tail, f_tail, range_quantile

__all__ = [
    "Friedman",
    "RankSum",
    "SignedRank",
    "WinDrawLoss",
    "friedman",
    "rank_sum",
    "wilcoxon",
    "win_draw_loss",
]

_MAX_EXACT = 50  # pairs, or scores of a method, whose orders are counted exactly
_ROUNDING = 1e-12


def __dir__() -> list[str]:
    return __all__


class SignedRank(NamedTuple):
    """Result of `wilcoxon`.

    Attributes
    ----------
    plus, minus : float
        Sums of the ranks of the differences a - b that are > 0 and < 0.
    p_value : float
        Two-sided.
    exact : bool
        Whether `p_value` is exact or a normal approximation.
    """

    plus: float
    minus: float
    p_value: float
    exact: bool

    def _repr_html_(self) -> str:
        return html_record(self)


@with_suggestions
def wilcoxon(a: ArrayLike, b: ArrayLike) -> SignedRank:
    """Test paired scores by Wilcoxon's signed-rank test.

    Pairs without a difference are dropped. The p-value is exact for at most 50
    remaining pairs without ties; otherwise it is that of the normal approximation, with
    the variance corrected for ties and without continuity correction.

    Parameters
    ----------
    a, b : (n,) array_like of real numbers
        Scores of two methods on the same n folds. The smallest possible p-value is
        2 / 2^n, so that 5 folds are never significant at 0.05.

    Returns
    -------
    SignedRank

    Raises
    ------
    TypeError
        If scores are not real numbers.
    ValueError
        If scores are not finite, or not two vectors of the same length > 0.

    See Also
    --------
    friedman : Compare k methods on N data sets by the Friedman test and Nemenyi's post-
        hoc test.
    win_draw_loss : Count the data sets on which a method significantly beats another.
    ordinal.compare : Compare methods by cross-validation.

    Examples
    --------
    >>> wilcoxon([0.30, 0.28, 0.35, 0.31, 0.29], [0.31, 0.30, 0.38, 0.35, 0.34])
    SignedRank(plus=0.0, minus=15.0, p_value=0.0625, exact=True)
    """
    a, b = scores_of(a, "a", 1), scores_of(b, "b", 1)
    if a.size != b.size or a.size == 0:
        raise ValueError(
            f"a and b must have the same length > 0, got {a.size} and {b.size}"
        )
    pairs = _scaled(np.stack([a, b]))
    difference = pairs[0] - pairs[1]
    tolerance = _ROUNDING * abs(pairs).max()
    difference = difference[abs(difference) > tolerance]
    rank, tied = _midranks(abs(difference), tolerance)
    plus, minus = (float(rank[s * difference > 0].sum()) for s in (1, -1))
    n, least = difference.size, min(plus, minus)
    exact = n <= _MAX_EXACT and bool((tied == 1).all())
    if exact:
        p_value = min(1.0, 2 * _signed_rank_counts(n)[: int(least) + 1].sum() / 2**n)
    else:
        variance = n * (n + 1) * (2 * n + 1) / 24 - (tied**3 - tied).sum() / 48
        z = (n * (n + 1) / 4 - least) / math.sqrt(variance)
        p_value = math.erfc(z / math.sqrt(2))
    return SignedRank(plus, minus, float(p_value), exact)


class RankSum(NamedTuple):
    """Result of `rank_sum`.

    Attributes
    ----------
    a, b : float
        Sums of the ranks of the scores of either method among all scores.
    p_value : float
        Two-sided.
    exact : bool
        Whether `p_value` is exact or a normal approximation.
    """

    a: float
    b: float
    p_value: float
    exact: bool

    def _repr_html_(self) -> str:
        return html_record(self)


@with_suggestions
def rank_sum(a: ArrayLike, b: ArrayLike) -> RankSum:
    """Test scores by Wilcoxon's rank-sum test, that of Mann and Whitney.

    It is for scores that are not paired, such as errors of two papers on random
    partitions of their own; `wilcoxon` uses the pairs where there are any. The p-value
    is exact for at most 50 scores a method without ties; otherwise it is that of the
    normal approximation, with the variance corrected for ties and without continuity
    correction.

    Parameters
    ----------
    a, b : (n,), (m,) array_like of real numbers
        Scores of two methods.

    Returns
    -------
    RankSum

    Raises
    ------
    TypeError
        If scores are not real numbers.
    ValueError
        If scores are not finite, or not two vectors of lengths > 0.

    See Also
    --------
    wilcoxon : Test paired scores by Wilcoxon's signed-rank test.

    Examples
    --------
    >>> rank_sum([0.30, 0.28, 0.35], [0.41, 0.36, 0.38, 0.45])
    RankSum(a=6.0, b=22.0, p_value=0.05714285714285714, exact=True)
    """
    a, b = scores_of(a, "a", 1), scores_of(b, "b", 1)
    n, m = a.size, b.size
    if min(n, m) == 0:
        raise ValueError(f"a and b must have lengths > 0, got {n} and {m}")
    scores = _scaled(np.concatenate([a, b]))
    rank, tied = _midranks(scores, _ROUNDING * abs(scores).max())
    sums = float(rank[:n].sum()), float(rank[n:].sum())
    # How far the ranks of a lie from those of the lowest and of the highest n places
    low = sums[0] - n * (n + 1) / 2
    least = min(low, n * m - low)
    exact = max(n, m) <= _MAX_EXACT and bool((tied == 1).all())
    if exact:
        count = _rank_sum_counts(n, m)
        p_value = min(1.0, 2 * count[: int(least) + 1].sum() / count.sum())
    else:
        N = n + m
        variance = n * m / 12 * (N + 1 - (tied**3 - tied).sum() / (N * (N - 1)))
        z = (n * m / 2 - least) / math.sqrt(variance) if variance > 0 else 0.0
        p_value = math.erfc(z / math.sqrt(2))
    return RankSum(*sums, float(p_value), exact)


class Friedman(NamedTuple):
    """Result of `friedman`.

    Attributes
    ----------
    ranks : (k,) array
        Average rank of every method; 1 is best, and ties get their mean rank.
    chi2, chi2_p : float
        Friedman's statistic, corrected for ties, and its p-value.
    F, F_p : float
        Statistic of Iman and Davenport, which is less conservative, and its p-value.
    critical_difference : float
        Average ranks that differ by more than this differ significantly (Nemenyi).
    alpha : float
        Significance level of `critical_difference`.
    """

    ranks: np.ndarray
    chi2: float
    chi2_p: float
    F: float
    F_p: float
    critical_difference: float
    alpha: float

    def _repr_html_(self) -> str:
        return html_record(self)


@with_suggestions
def friedman(scores: ArrayLike, *, alpha: float = 0.05) -> Friedman:
    """Compare k methods on N data sets by the Friedman test and Nemenyi's post-hoc
    test.

    With the rank R_ij of method j on data set i minus (k + 1) / 2, and S_j = sum_i
    R_ij,

        chi2 = (k - 1) sum_j S_j^2 / sum_ij R_ij^2
        F = (N - 1) sum_j S_j^2 / (N sum_ij R_ij^2 - sum_j S_j^2)
        critical difference = q sqrt(k (k + 1) / (12 N))

    with k - 1 and (k - 1, (k - 1)(N - 1)) degrees of freedom; q is the quantile of the
    range of k standard normal variables at 1 - alpha.

    Parameters
    ----------
    scores : (N, k) array_like of real numbers
        One row per data set, one column per method; N, k >= 2.
    alpha : float in (0, 1), default 0.05

    Returns
    -------
    Friedman
        If all methods tie on all data sets, chi2 and F are 0 and their p-values 1.

    Raises
    ------
    TypeError
        If scores are not real numbers.
    ValueError
        If scores are not finite, if there are fewer than two rows or columns, or if
        `alpha` is invalid.

    See Also
    --------
    wilcoxon : Test paired scores by Wilcoxon's signed-rank test.
    win_draw_loss : Count the data sets on which a method significantly beats another.
    ordinal.plot.critical_difference : Plot a critical difference diagram: methods by
        their average rank.

    References
    ----------
    M. Friedman, Journal of the American Statistical Association 32:675-701, 1937;
    R. L. Iman, J. M. Davenport, Communications in Statistics 9(6):571-595, 1980;
    P. B. Nemenyi, "Distribution-free multiple comparisons", thesis, Princeton, 1963.

    Examples
    --------
    >>> result = friedman([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5], [0.1, 0.4, 0.4]])
    >>> result.ranks
    array([1.        , 2.16666667, 2.83333333])
    >>> round(result.F_p, 4), round(result.critical_difference, 4)
    (0.0037, 1.9136)
    """
    scores = scores_of(scores, "scores", 2)
    N, k = scores.shape
    if min(N, k) < 2:
        raise ValueError(
            "scores must have 2 rows (data sets) and 2 columns (methods) or more, got "
            f"shape {scores.shape}"
        )
    alpha = check_share("alpha", alpha)
    scores = _scaled(scores)
    rank = np.array([_midranks(row, _ROUNDING * abs(row).max())[0] for row in scores])
    R = rank - (k + 1) / 2
    S2, R2 = (R.sum(axis=0) ** 2).sum(), (R**2).sum()  # exact: sums of quarters
    chi2 = F = 0.0
    if S2 > 0:
        chi2 = float((k - 1) * S2 / R2)
        rest = N * R2 - S2  # 0 if all sets rank the methods alike
        F = float((N - 1) * S2 / rest) if rest else math.inf
    q = range_quantile(1 - alpha, k)
    return Friedman(
        ranks=read_only(rank.mean(axis=0)),
        chi2=chi2,
        chi2_p=chi2_tail(chi2, k - 1),
        F=F,
        F_p=f_tail(F, k - 1, (k - 1) * (N - 1)),
        critical_difference=q * math.sqrt(k * (k + 1) / (12 * N)),
        alpha=float(alpha),
    )


class WinDrawLoss(NamedTuple):
    """Result of `win_draw_loss`.

    Attributes
    ----------
    pairs : (k, k) array
        Number of data sets on which the method of the row is significantly better than
        that of the column.
    win, draw, loss : (k,) array
        Numbers of wins, draws and losses over all data sets and other methods.
    """

    pairs: np.ndarray
    win: np.ndarray
    draw: np.ndarray
    loss: np.ndarray

    def _repr_html_(self) -> str:
        return html_record(self)


@with_suggestions
def win_draw_loss(scores: Iterable[ArrayLike], *, alpha: float = 0.05) -> WinDrawLoss:
    """Count the data sets on which a method significantly beats another.

    Parameters
    ----------
    scores : iterable of N (n_folds, k) array_like
        One table per data set, each with its own number of folds; one column per
        method.
    alpha : float in (0, 1), default 0.05
        Level of the Wilcoxon test of a pair of methods on the folds of a data set.

    Returns
    -------
    WinDrawLoss

    Raises
    ------
    TypeError, ValueError
        As for `wilcoxon`; also if there are fewer than 2 methods, or not the same
        number for all data sets.

    See Also
    --------
    wilcoxon : Test paired scores by Wilcoxon's signed-rank test.
    friedman : Compare k methods on N data sets by the Friedman test and Nemenyi's post-
        hoc test.

    Examples
    --------
    >>> folds = [[0.30 + i, 0.31 + i + i / 100] for i in range(6)]
    >>> win_draw_loss([folds, folds[:5]])  # 5 folds can never tell
    WinDrawLoss(pairs=array([[0, 1],
           [0, 0]]), win=array([1, 0]), draw=array([1, 1]), loss=array([0, 1]))
    """
    alpha = check_share("alpha", alpha)
    tables = score_tables(scores)
    k = tables[0].shape[1]
    pairs = np.zeros((k, k), dtype=np.int64)
    for table in tables:
        for i, j in zip(*np.triu_indices(k, 1), strict=True):
            test = wilcoxon(table[:, i], table[:, j])
            if test.p_value <= alpha:
                better = (i, j) if test.plus < test.minus else (j, i)
                pairs[better] += 1
    win, loss = pairs.sum(axis=1), pairs.sum(axis=0)
    draw = len(tables) * (k - 1) - win - loss
    return WinDrawLoss(*map(read_only, (pairs, win, draw, loss)))


def _scaled(scores: np.ndarray) -> np.ndarray:
    """Return the scores in a unit, a power of two, in which no difference overflows."""
    return np.asarray(np.ldexp(scores, -np.frexp(abs(scores).max())[1]))


def _midranks(x: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks 1..n, (n,), the mean rank for ties, and how many are in each tie."""
    order = np.argsort(x)
    group = np.cumsum(np.diff(x[order], prepend=x[order[:1]]) > tolerance)
    tied = np.bincount(group)
    rank = np.empty(x.size)
    rank[order] = (np.cumsum(tied) - (tied - 1) / 2)[group]
    return rank, tied


def _signed_rank_counts(n: int) -> np.ndarray:
    """Count the sign patterns, of 2^n, that give each rank sum 0..n(n+1)/2."""
    count = np.zeros(n * (n + 1) // 2 + 1)
    count[0] = 1
    for rank in range(1, n + 1):
        count[rank:] += count[:-rank]  # of the counts before: numpy sees the overlap
    return count


def _rank_sum_counts(n: int, m: int) -> np.ndarray:
    """Count the orders of n and m scores in which 0..nm pairs are the other way."""
    count = np.zeros((n + 1, n * m + 1))  # of so many of the n placed so far
    count[0, 0] = 1
    for rank in range(n + m):
        for k in range(min(rank + 1, n), 0, -1):
            # The k-th of them at this rank lies above rank + 1 - k of the m.
            above = rank + 1 - k
            if above <= m:
                count[k, above:] += count[k - 1, : n * m + 1 - above]
    return np.asarray(count[n])
