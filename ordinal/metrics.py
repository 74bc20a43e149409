"""Metrics of predicted ranks, and of predicted probabilities of ranks.

With a_i and p_i the ranks of row i's true and predicted label, w_i its weight,
W = sum_i w_i, N_j the weight of the rows with a_i = j, and P (n, r) probabilities:

    mze = 1/W sum_i w_i [a_i != p_i]                 mean zero-one error
    accuracy = 1/W sum_i w_i [a_i = p_i] = 1 - mze
    mae = 1/W sum_i w_i |a_i - p_i|                  mean absolute error
    amae, mmae = mean and maximum over j of the mae of the rows with a_i = j
    accuracy_off = 1/W sum_i w_i [|a_i - p_i| <= k]
    gmsec = sqrt(s_l s_h),   s_j = 1/N_j sum_{a_i = j} w_i [p_i = j]
    cem = sum_i w_i c(p_i, a_i) / sum_i w_i c(a_i, a_i),
        c(p, a) = -log2(1/W (N_p / 2 + sum of N_j from a to p, p left out))
    rps = 1/W sum_i w_i sum_{j < r-1} (sum_{k <= j} P_ik - [a_i <= j])^2
    log_loss = -1/W sum_i w_i log P_{i, a_i}

j in amae, mmae, l and h runs over the classes that are present: those with N_j > 0.
The others come from the confusion matrix C (r, r), C_jk the weight of the rows with
a_i = j and p_i = k, so that ties are sums and not searches: `kappa`, `kendall`,
`spearman` and `oci`.

A rank is a position in `labels`, or in the categories of an ordered categorical; else
it is one among the labels that occur, and |a_i - p_i| in `mae`, `amae`, `mmae`
and `accuracy_off` is the difference of the labels themselves, which are numbers, as is
usual. `kappa` and `oci` always count ranks.

Every metric takes (y_true, y_pred, *, labels, sample_weight), `rps` and `log_loss`
probabilities in the place of `y_pred`.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ._input.checks import check_choice, check_nonnegative
from ._input.predictions import read_distances, read_probabilities, read_ranks

__all__ = [
    "accuracy",
    "accuracy_off",
    "amae",
    "cem",
    "confusion_matrix",
    "gmsec",
    "kappa",
    "kendall",
    "log_loss",
    "mae",
    "mmae",
    "mze",
    "oci",
    "rps",
    "spearman",
]


def __dir__() -> list[str]:
    return __all__


def mze(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean zero-one error: the weighted share of rows with a wrong label.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels : (r,) array_like, optional
        Every label in rank order; may name labels that neither array holds. By
        default the categories of `y_true`, if it is an ordered pandas Categorical or
        a polars Enum, else the sorted union of both arrays. Strings have no default:
        alphabetical order is seldom the one that is meant.
    sample_weight : (n,) array_like, optional
        Weights >= 0, not all 0; by default every row counts once.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError
        Strings without `labels`, numbers compared with strings, or other objects.
    ValueError
        Empty or unequal arrays, a label outside `labels`, a NaN, a bad weight.

    Examples
    --------
    >>> mze([1, 2, 3, 3], [1, 2, 3, 1])
    0.25
    """
    a, p, weight, _ = read_ranks(y_true, y_pred, labels, sample_weight)
    return _mean(a != p, weight)


def accuracy(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the accuracy: the weighted share of rows with the right label, 1 - `mze`.

    A near miss counts as much as a far one; `mae` tells them apart.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    Examples
    --------
    >>> accuracy([1, 2, 3, 3], [1, 2, 3, 1])
    0.75
    """
    a, p, weight, _ = read_ranks(y_true, y_pred, labels, sample_weight)
    return _mean(a == p, weight)


def mae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean absolute error: by how much predictions miss on average.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels : (r,) array_like, optional
        Every label in rank order: misses are then counted in ranks, as they are by the
        categories of `y_true`, if it is an ordered pandas Categorical or a polars Enum.
        By default numbers are taken as they are: 1 predicted as 3 is a miss by 2,
        whether a 2 occurs or not, and 1 as 10 one by 9. Strings have no default.
    sample_weight : (n,) array_like, optional
        As for `mze`.

    Returns
    -------
    float >= 0
        At most r - 1 in ranks.

    Raises
    ------
    TypeError, ValueError
        As for `mze`, or numbers so far apart that the sum of distances overflows.

    Examples
    --------
    >>> mae([1, 1, 10], [1, 3, 10])
    0.6666666666666666
    >>> mae([1, 1, 10], [1, 3, 10], labels=[1, 3, 10])
    0.3333333333333333
    >>> mae(["low", "mid"], ["high", "mid"], labels=["low", "mid", "high"])
    1.0
    """
    distance, _, weight = read_distances(y_true, y_pred, labels, sample_weight)
    return _mean(distance, weight)


def amae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Macro-averaged absolute error: the mean of the MAEs of the classes.

    Every class of `y_true` counts alike, however few rows it has. A class without
    rows of positive weight is left out.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mae`.

    Returns
    -------
    float >= 0
        At most r - 1 in ranks.

    Raises
    ------
    TypeError, ValueError
        As for `mae`.

    References
    ----------
    S. Baccianella, A. Esuli, F. Sebastiani, "Evaluation measures for ordinal
    regression", ISDA 2009.

    Examples
    --------
    >>> amae([1, 1, 1, 2], [1, 1, 1, 1])  # mae: 0.25
    0.5
    """
    distance, a, weight = read_distances(y_true, y_pred, labels, sample_weight)
    return float(_class_means(distance, a, weight).mean())


def mmae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Maximum absolute error: the MAE of the class that is predicted worst.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mae`.

    Returns
    -------
    float >= 0
        At most r - 1 in ranks.

    Raises
    ------
    TypeError, ValueError
        As for `mae`.

    References
    ----------
    M. Cruz-Ramirez, C. Hervas-Martinez, J. Sanchez-Monedero, P. A. Gutierrez,
    "Metrics to guide a multi-objective evolutionary algorithm for ordinal
    classification", Neurocomputing 135:21-31, 2014.

    Examples
    --------
    >>> mmae([1, 1, 1, 2], [1, 1, 1, 1])
    1.0
    """
    distance, a, weight = read_distances(y_true, y_pred, labels, sample_weight)
    return float(_class_means(distance, a, weight).max())


def accuracy_off(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    k: int = 1,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of rows that are predicted at most k off, in ranks or as numbers.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    k : int, default 1
        0 gives the `accuracy`.
    labels, sample_weight : optional
        As for `mae`.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError, ValueError
        As for `mae`, or `k` is negative.

    Examples
    --------
    >>> accuracy_off([1, 2, 3, 3], [1, 3, 3, 1])
    0.75
    """
    most = check_nonnegative("k", k)
    distance, _, weight = read_distances(y_true, y_pred, labels, sample_weight)
    return _mean(distance <= most, weight)


def gmsec(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Geometric mean of the sensitivities of the extreme classes.

    The sensitivity of a class is the share of its rows that are predicted right. The
    extremes are the lowest and the highest class present in `y_true`; if they are
    one, this is its sensitivity.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    References
    ----------
    V. M. Vargas, P. A. Gutierrez, J. Barbero-Gomez, C. Hervas-Martinez, "Improving
    the classification of extreme classes by means of loss regularisation and
    generalised beta distributions", arXiv:2407.12417, 2024.

    Examples
    --------
    >>> gmsec([1, 1, 1, 1, 2, 3], [1, 2, 2, 2, 1, 3])  # sqrt(1/4 * 1)
    0.5
    """
    a, p, weight, _ = read_ranks(y_true, y_pred, labels, sample_weight)
    right = _class_means(a == p, a, weight)
    return float(np.sqrt(right[0] * right[-1]))


def cem(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the closeness evaluation measure: the share of a perfect prediction's
    information.

    A prediction is the closer to the truth, the fewer rows have a class between the
    two, and the more informative, the rarer these classes are: c(p, a) in the formula
    above. Relabelling that keeps the order and classes without rows change nothing.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [0, 1]
        1 if all is right.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    References
    ----------
    E. Amigo, J. Gonzalo, S. Mizzaro, J. Carrillo-de-Albornoz, "An effectiveness
    metric for ordinal classification", ACL 2020, 3938-3949.

    Examples
    --------
    >>> round(cem([1, 2, 2, 3], [1, 2, 3, 3]), 3)  # 2 as 3: log2(8/5) of 2 bits
    0.868
    """
    a, p, weight, labels = read_ranks(y_true, y_pred, labels, sample_weight)
    share = np.bincount(a, weight, minlength=labels.size) / weight.sum()
    below = np.concatenate([[0.0], np.cumsum(share)])  # (r + 1,)

    def closeness(p: np.ndarray) -> np.ndarray:
        between = np.where(a < p, below[p] - below[a], below[a + 1] - below[p + 1])
        between = np.maximum(between, share[a])  # a is in it, also when rounded
        with np.errstate(divide="ignore"):  # a class whose rows all have weight 0
            return np.asarray(-np.log2(share[p] / 2 + np.where(a == p, 0.0, between)))

    return _mean(closeness(p), weight) / _mean(closeness(a), weight)


def kappa(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    weights: Literal["linear", "quadratic"] = "quadratic",
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Weighted kappa: agreement beyond what the two sets of labels have by chance.

        kappa = 1 - W sum_jk D_jk C_jk / sum_jk D_jk N_j M_k

    with D_jk = |j - k| or its square, and M_k the weight of the rows with p_i = k.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    weights : {"quadratic", "linear"}
        How a miss grows with the number of ranks.
    labels : (r,) array_like, optional
        As for `mze`. Give it wherever a label might occur in neither array: the ranks
        of the default are positions among the labels that occur.
    sample_weight : (n,) array_like, optional
        As for `mze`.

    Returns
    -------
    float <= 1
        0 for chance, 1 if all is right; nan if all labels, true and predicted, are one.

    Raises
    ------
    TypeError, ValueError
        As for `mze`, or `weights` is not one of the two.

    References
    ----------
    J. Cohen, "Weighted kappa", Psychological Bulletin 70(4):213-220, 1968.

    Examples
    --------
    >>> kappa([1, 2, 3, 3], [1, 2, 3, 2])
    0.8
    """
    check_choice("weights", weights, ("linear", "quadratic"))
    C = _table(y_true, y_pred, labels, sample_weight)
    D = _distance(len(C)) ** (1 if weights == "linear" else 2)
    chance = C.sum(axis=1) @ D @ C.sum(axis=0)
    return _ratio(chance - C.sum() * (D * C).sum(), chance)


def kendall(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Kendall's tau-b between true and predicted ranks.

        tau = sum_jklm C_jk C_lm sgn(j - l) sgn(k - m)
            / sqrt(sum_{j != l} N_j N_l  sum_{k != m} M_k M_m)

    with M_k the weight of the rows with p_i = k.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [-1, 1]
        nan if all true or all predicted labels are one.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    References
    ----------
    M. G. Kendall, "The treatment of ties in ranking problems", Biometrika
    33(3):239-251, 1945.

    Examples
    --------
    >>> kendall([1, 2, 3, 4], [1, 3, 2, 4])  # 5 pairs agree, 1 does not
    0.6666666666666666
    """
    C = _table(y_true, y_pred, labels, sample_weight)
    N, M = C.sum(axis=1), C.sum(axis=0)
    agree = _below_less_above(_below_less_above(C).T).T
    pairs = (N @ (N.sum() - N)) * (M @ (M.sum() - M))
    return _ratio((C * agree).sum(), np.sqrt(pairs))


def spearman(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Spearman's rho: the correlation of the places, tied rows at their mean place.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [-1, 1]
        nan if all true or all predicted labels are one.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [1, 3, 2, 4])
    0.8
    """
    C = _table(y_true, y_pred, labels, sample_weight)
    N, M = C.sum(axis=1), C.sum(axis=0)
    u, v = _below_less_above(N), _below_less_above(M)  # twice a mean place, centred
    return _ratio(u @ C @ v, np.sqrt((N @ u**2) * (M @ v**2)))


def oci(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Ordinal classification index: how far C is from a matrix that keeps the order.

        oci = min over paths of
            1 - sum_path C_jk / (W + T) + 0.75 / (W (r - 1)) sum_path C_jk |j - k|

    with T = sum_jk C_jk |j - k|, over all paths from the lowest true and predicted
    class to the highest that at each step go up by one in either or in both.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `kappa`.

    Returns
    -------
    float in [0, 1]
        0 if all is right. Labels beyond the ends that no row has may lower it.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    References
    ----------
    J. S. Cardoso, R. Sousa, "Measuring the performance of ordinal classification",
    International Journal of Pattern Recognition and Artificial Intelligence
    25(8):1173-1195, 2011; gamma = 1 and beta as in the authors' program.

    Examples
    --------
    >>> round(oci([1, 2, 3, 3], [1, 2, 3, 2]), 3)  # by (3, 2): 1 - 4/5 + 0.75 / 8
    0.294
    """
    C = _table(y_true, y_pred, labels, sample_weight)
    r, W = len(C), C.sum()
    off = C * _distance(r)
    gain = C / (W + off.sum()) - 0.75 / (W * max(r - 1, 1)) * off
    # sums of gain along the best path to (j, d - j), by j + 1, for d and the two before
    older, old = np.full((2, r + 1), -np.inf)
    older[0] = 0
    for d in range(2 * r - 1):
        j = np.arange(max(0, d - r + 1), min(d, r - 1) + 1)
        best = np.full(r + 1, -np.inf)
        best[j + 1] = np.maximum.reduce([older[j], old[j], old[j + 1]]) + gain[j, d - j]
        older, old = old, best
    return max(0.0, 1 - float(old[r]))


def confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Rows of each true (row) and predicted (column) label.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    (r, r) array in the order of the labels
        int64 counts, or with `sample_weight` float64 sums.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    Examples
    --------
    >>> confusion_matrix([1, 2, 3, 3], [1, 2, 3, 1])
    array([[1, 0, 0],
           [0, 1, 0],
           [1, 0, 1]])
    """
    a, p, _, labels = read_ranks(y_true, y_pred, labels, sample_weight)
    return _count(a, p, sample_weight, labels.size)


def rps(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Ranked probability score: squared error of the cumulative probabilities.

    The sum over the r - 1 thresholds is not divided by their number, so that sure
    predictions (a 1 in each row) have their `mae` in ranks.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings
    proba : (n, r) array_like
        Probabilities, one column per label; rows sum to 1 within 1e-3 (rounded tables).
    labels : (r,) array_like, optional
        As for `mze`, the default from `y_true` alone.
    sample_weight : (n,) array_like, optional
        As for `mze`.

    Returns
    -------
    float in [0, r - 1]

    Raises
    ------
    TypeError, ValueError
        As for `mze`, or `proba` is not probabilities with a column for each label.

    References
    ----------
    E. S. Epstein, "A scoring system for probability forecasts of ranked categories",
    Journal of Applied Meteorology 8(6):985-987, 1969.

    Examples
    --------
    >>> rps([1, 3], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], labels=[1, 2, 3])
    0.125
    """
    a, P, weight = read_probabilities(y_true, proba, labels, sample_weight)
    event = a[:, None] <= np.arange(P.shape[1] - 1)
    return _mean(((np.cumsum(P[:, :-1], axis=1) - event) ** 2).sum(axis=1), weight)


def log_loss(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean negative logarithm of the probability of the true label.

    Parameters
    ----------
    y_true : (n,) array_like of numbers or strings
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

    Examples
    --------
    >>> round(log_loss([1, 2], [[0.5, 0.5], [0.25, 0.75]]), 4)
    0.4904
    """
    a, P, weight = read_probabilities(y_true, proba, labels, sample_weight)
    with np.errstate(divide="ignore"):
        return _mean(-np.log(P[np.arange(a.size), a]), weight)


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Weighted mean; values in rows without weight may be infinite."""
    rows = weight > 0
    return float(values[rows] @ weight[rows] / weight.sum())


def _class_means(values: np.ndarray, a: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted mean in every class that is present in y_true, in rank order."""
    total = np.bincount(a, weight)
    present = total > 0
    return np.asarray(np.bincount(a, weight * values)[present] / total[present])


def _table(*arguments: Any) -> np.ndarray:
    """C of the module's docstring in a unit that does not overflow."""
    a, p, weight, labels = read_ranks(*arguments)
    return _count(a, p, weight, labels.size)


def _count(
    a: np.ndarray, p: np.ndarray, weight: ArrayLike | None, r: int
) -> np.ndarray:
    return np.bincount(a * r + p, weight, minlength=r * r).reshape(r, r)


def _below_less_above(x: np.ndarray) -> np.ndarray:
    """sum_l sgn(j - l) x_l along the first axis."""
    return np.asarray(2 * np.cumsum(x, axis=0) - x - x.sum(axis=0))


def _distance(r: int) -> np.ndarray:
    """Return the absolute costs |j - k|, (r, r)."""
    return np.abs(np.subtract.outer(np.arange(r), np.arange(r)))


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b > 0 else float("nan")
