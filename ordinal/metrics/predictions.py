"""Metrics of predicted labels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._input.checks import check_choice, check_nonnegative, with_suggestions
from .._input.intervals import RankIntervals
from .._input.predictions import class_means, read_distances, read_ranks


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted mean; values in rows without weight may be infinite."""
    rows = weight > 0
    return float(values[rows] @ weight[rows] / weight.sum())


def rank_table(*arguments: Any) -> np.ndarray:  # noqa: ANN401  (those of `read_ranks`)
    """Return C of the module's docstring in a unit that does not overflow."""
    a, p, weight, labels = read_ranks(*arguments)
    return weighted_confusion(a, p, weight, labels.size)


def weighted_confusion(
    a: np.ndarray, p: np.ndarray, weight: ArrayLike | None, r: int
) -> np.ndarray:
    return np.bincount(a * r + p, weight, minlength=r * r).reshape(r, r)


def below_less_above(x: np.ndarray) -> np.ndarray:
    """Return sum_l sgn(j - l) x_l for every j, along the first axis."""
    return np.asarray(2 * np.cumsum(x, axis=0) - x - x.sum(axis=0))


def distances_of_ranks(r: int) -> np.ndarray:
    """Return the absolute costs |j - k|, (r, r)."""
    return np.abs(np.subtract.outer(np.arange(r), np.arange(r)))


def ratio(a: float, b: float) -> float:
    return float(a / b) if b > 0 else float("nan")


@with_suggestions
def mze(
    y_true: ArrayLike | RankIntervals,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean zero-one error: the weighted share of rows with a wrong label.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
        `y_true` may be `RankIntervals`, of which the nearest rank counts.
    labels : (r,) array_like, optional
        All labels in rank order; it may list labels that occur in neither array.
        Default: the categories of `y_true` or, if it has none, of `y_pred`, if that is
        an ordered pandas Categorical or a polars Enum, and otherwise the sorted union
        of both, except for strings: alphabetical order is rarely the rank order.
    sample_weight : (n,) array_like, optional
        Weights >= 0, not all 0. Default: 1 for all rows.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError
        If labels are strings and `labels` is missing, if numbers are compared with
        strings, or if labels are other objects.
    ValueError
        If arrays are empty or differ in length, if a label is not among `labels` or is
        NaN, or if a weight is invalid.

    See Also
    --------
    accuracy : Compute the accuracy: the weighted share of rows with the right label.
    accuracy_off : Compute the share of rows whose error is at most k.
    mae : Compute the mean absolute error of the predicted labels.

    Examples
    --------
    >>> mze([1, 2, 3, 3], [1, 2, 3, 1])
    0.25
    """
    a, p, weight, _ = read_ranks(y_true, y_pred, labels, sample_weight, True)
    return weighted_mean(a != p, weight)


@with_suggestions
def accuracy(
    y_true: ArrayLike | RankIntervals,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the accuracy: the weighted share of rows with the right label.

    It is 1 minus `mze`. Errors of one rank count as much as errors of several ranks;
    `mae` distinguishes them.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
        `y_true` may be `RankIntervals`, of which the nearest rank counts.
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    See Also
    --------
    mze : Compute the mean zero-one error: the weighted share of rows with a wrong
        label.
    accuracy_off : Compute the share of rows whose error is at most k.
    gm : Compute the geometric mean of the sensitivities of the classes.

    Examples
    --------
    >>> accuracy([1, 2, 3, 3], [1, 2, 3, 1])
    0.75
    """
    a, p, weight, _ = read_ranks(y_true, y_pred, labels, sample_weight, True)
    return weighted_mean(a == p, weight)


@with_suggestions
def mae(
    y_true: ArrayLike | RankIntervals,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean absolute error of the predicted labels.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
        `y_true` may be `RankIntervals`, of which the nearest rank counts.
    labels : (r,) array_like, optional
        All labels in rank order; errors are then differences of ranks. If `y_true`
        or, without categories there, `y_pred` is an ordered pandas Categorical or a
        polars Enum, its categories are the default. Otherwise errors are differences of
        the numbers: 1 predicted as 3 is an error of 2, whether 2 occurs or not, and 1
        predicted as 10 one of 9. There is no default for other strings.
    sample_weight : (n,) array_like, optional
        As for `mze`.

    Returns
    -------
    float >= 0
        At most r - 1 if errors are differences of ranks.

    Raises
    ------
    TypeError, ValueError
        As for `mze`; also if numbers are so far apart that the sum of distances
        overflows.

    See Also
    --------
    amae : Compute the macro-averaged absolute error: the mean of the MAEs of the
        classes.
    mmae : Compute the maximum absolute error: the MAE of the worst predicted class.
    mze : Compute the mean zero-one error: the weighted share of rows with a wrong
        label.
    rps : Compute the ranked probability score: squared error of cumulative
        probabilities.
    confidence_interval : Estimate a metric of agreement with its standard error and
        confidence interval.

    Examples
    --------
    >>> mae([1, 1, 10], [1, 3, 10])
    0.6666666666666666
    >>> mae([1, 1, 10], [1, 3, 10], labels=[1, 3, 10])
    0.3333333333333333
    >>> mae(["low", "mid"], ["high", "mid"], labels=["low", "mid", "high"])
    1.0
    """
    distance, _, weight = read_distances(y_true, y_pred, labels, sample_weight, True)
    return weighted_mean(distance, weight)


@with_suggestions
def amae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the macro-averaged absolute error: the mean of the MAEs of the classes.

    Every class of `y_true` has the same weight, however few rows it has. Classes
    without rows of positive weight are left out.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mae`.

    Returns
    -------
    float >= 0
        At most r - 1 if errors are differences of ranks.

    Raises
    ------
    TypeError, ValueError
        As for `mae`.

    See Also
    --------
    mae : Compute the mean absolute error of the predicted labels.
    mmae : Compute the maximum absolute error: the MAE of the worst predicted class.

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
    return float(class_means(distance, a, weight).mean())


@with_suggestions
def mmae(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the maximum absolute error: the MAE of the worst predicted class.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mae`.

    Returns
    -------
    float >= 0
        At most r - 1 if errors are differences of ranks.

    Raises
    ------
    TypeError, ValueError
        As for `mae`.

    See Also
    --------
    mae : Compute the mean absolute error of the predicted labels.
    amae : Compute the macro-averaged absolute error: the mean of the MAEs of the
        classes.
    ms : Compute the minimum sensitivity: the share of right predictions in the worst
        class.

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
    return float(class_means(distance, a, weight).max())


@with_suggestions
def accuracy_off(
    y_true: ArrayLike | RankIntervals,
    y_pred: ArrayLike,
    k: int = 1,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the share of rows whose error is at most k.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
        `y_true` may be `RankIntervals`, of which the nearest rank counts.
    k : int, default 1
        Largest error, in ranks or as a difference of numbers as for `mae`. With 0 the
        result is the `accuracy`.
    labels, sample_weight : optional
        As for `mae`.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    TypeError, ValueError
        As for `mae`; also if `k` is negative.

    See Also
    --------
    accuracy : Compute the accuracy: the weighted share of rows with the right label.
    mae : Compute the mean absolute error of the predicted labels.

    Examples
    --------
    >>> accuracy_off([1, 2, 3, 3], [1, 3, 3, 1])
    0.75
    """
    most = check_nonnegative("k", k)
    distance, _, weight = read_distances(y_true, y_pred, labels, sample_weight, True)
    return weighted_mean(distance <= most, weight)


@with_suggestions
def gmsec(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the geometric mean of the sensitivities of the extreme classes.

    The sensitivity of a class is the share of its rows that are predicted correctly.
    The extreme classes are the lowest and the highest class in `y_true`; if there is
    only one, the result is its sensitivity.

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

    See Also
    --------
    gm : Compute the geometric mean of the sensitivities of the classes.
    ms : Compute the minimum sensitivity: the share of right predictions in the worst
        class.

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
    right = class_means(a == p, a, weight)
    return float(np.sqrt(right[0] * right[-1]))


@with_suggestions
def gm(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the geometric mean of the sensitivities of the classes.

    The sensitivity of a class is the share of its rows that are predicted correctly.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [0, 1]
        0 if a class has no row that is predicted correctly.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    See Also
    --------
    ms : Compute the minimum sensitivity: the share of right predictions in the worst
        class.
    gmsec : Compute the geometric mean of the sensitivities of the extreme classes.
    accuracy : Compute the accuracy: the weighted share of rows with the right label.

    References
    ----------
    M. Kubat, R. C. Holte, S. Matwin, "Machine learning for the detection of oil spills
    in satellite radar images", Machine Learning 30:195-215, 1998.

    Examples
    --------
    >>> gm([1, 1, 1, 1, 2], [1, 2, 2, 2, 2])  # sqrt(1/4 * 1)
    0.5
    """
    a, p, weight, _ = read_ranks(y_true, y_pred, labels, sample_weight)
    right = class_means(a == p, a, weight)
    with np.errstate(divide="ignore"):  # a product of many classes may underflow
        return float(np.exp(np.log(right).mean()))


@with_suggestions
def ms(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the minimum sensitivity: the share of right predictions in the worst
    class.

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

    See Also
    --------
    gm : Compute the geometric mean of the sensitivities of the classes.
    mmae : Compute the maximum absolute error: the MAE of the worst predicted class.

    References
    ----------
    J. C. Fernandez, F. J. Martinez, C. Hervas, P. A. Gutierrez, "Sensitivity versus
    accuracy in multiclass problems using memetic Pareto evolutionary neural networks",
    IEEE Transactions on Neural Networks 21(5):750-770, 2010.

    Examples
    --------
    >>> ms([1, 1, 1, 1, 2], [1, 2, 2, 2, 2])
    0.25
    """
    a, p, weight, _ = read_ranks(y_true, y_pred, labels, sample_weight)
    return float(class_means(a == p, a, weight).min())


@with_suggestions
def cem(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the closeness evaluation measure.

    It is the information of the predictions divided by that of perfect predictions. A
    prediction is closer to the truth if fewer rows have a class between the two, and
    more informative if these classes are rare: see c(p, a) in the docstring of
    `ordinal.metrics`. The measure does not change if labels are renamed in the same
    order or if classes without rows are added.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    float in [0, 1]
        1 if all predictions are correct.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    See Also
    --------
    mae : Compute the mean absolute error of the predicted labels.
    oci : Compute the ordinal classification index of the confusion matrix.

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

    return weighted_mean(closeness(p), weight) / weighted_mean(closeness(a), weight)


@with_suggestions
def kappa(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    weights: Literal["linear", "quadratic"] = "quadratic",
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute weighted kappa: agreement beyond that expected by chance.

        kappa = 1 - W sum_jk D_jk C_jk / sum_jk D_jk N_j M_k

    with D_jk = |j - k| or its square, and M_k the weight of the rows with p_i = k.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    weights : {"quadratic", "linear"}
        Increase of the weight of an error with its number of ranks.
    labels : (r,) array_like, optional
        As for `mze`. Pass it if a label may occur in neither array, because by default
        ranks are positions among the labels that occur.
    sample_weight : (n,) array_like, optional
        As for `mze`.

    Returns
    -------
    float <= 1
        0 for chance, 1 if all predictions are correct; nan if all true and predicted
        labels are equal.

    Raises
    ------
    TypeError, ValueError
        As for `mze`; also if `weights` is neither of the two.

    See Also
    --------
    confidence_interval : Estimate a metric of agreement with its standard error and
        confidence interval.
    kendall : Compute Kendall's tau-b between true and predicted ranks.
    oci : Compute the ordinal classification index of the confusion matrix.

    References
    ----------
    J. Cohen, "Weighted kappa", Psychological Bulletin 70(4):213-220, 1968.

    Examples
    --------
    >>> kappa([1, 2, 3, 3], [1, 2, 3, 2])
    0.8
    """
    check_choice("weights", weights, ("linear", "quadratic"))
    C = rank_table(y_true, y_pred, labels, sample_weight)
    D = distances_of_ranks(len(C)) ** (1 if weights == "linear" else 2)
    chance = C.sum(axis=1) @ D @ C.sum(axis=0)
    return ratio(chance - C.sum() * (D * C).sum(), chance)


@with_suggestions
def kendall(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute Kendall's tau-b between true and predicted ranks.

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
        nan if all true or all predicted labels are equal.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    See Also
    --------
    spearman : Compute Spearman's rank correlation between true and predicted ranks.
    gamma : Goodman and Kruskal's gamma: Somers' D of the pairs without ties.
    somers_d : Compute Somers' D between ordered labels and scores.

    References
    ----------
    M. G. Kendall, "The treatment of ties in ranking problems", Biometrika
    33(3):239-251, 1945.

    Examples
    --------
    >>> kendall([1, 2, 3, 4], [1, 3, 2, 4])  # 5 pairs agree, 1 does not
    0.6666666666666666
    """
    C = rank_table(y_true, y_pred, labels, sample_weight)
    N, M = C.sum(axis=1), C.sum(axis=0)
    agree = below_less_above(below_less_above(C).T).T
    pairs = (N @ (N.sum() - N)) * (M @ (M.sum() - M))
    return ratio((C * agree).sum(), np.sqrt(pairs))


@with_suggestions
def oci(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the ordinal classification index of the confusion matrix.

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
        0 if all predictions are correct. Labels at the ends of the scale that do not
        occur may lower it.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    See Also
    --------
    cem : Compute the closeness evaluation measure.
    kappa : Compute weighted kappa: agreement beyond that expected by chance.

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
    C = rank_table(y_true, y_pred, labels, sample_weight)
    r, W = len(C), C.sum()
    off = C * distances_of_ranks(r)
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


@with_suggestions
def confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Count the rows of each true (row) and predicted (column) label.

    Parameters
    ----------
    y_true, y_pred : (n,) array_like of numbers or strings
    labels, sample_weight : optional
        As for `mze`.

    Returns
    -------
    (r, r) array in the order of the labels
        int64 counts, or float64 sums of weights with `sample_weight`.

    Raises
    ------
    TypeError, ValueError
        As for `mze`.

    See Also
    --------
    ordinal.plot.confusion_matrix : Plot the number of rows of each true label by
        predicted label.
    mze : Compute the mean zero-one error: the weighted share of rows with a wrong
        label.

    Examples
    --------
    >>> confusion_matrix([1, 2, 3, 3], [1, 2, 3, 1])
    array([[1, 0, 0],
           [0, 1, 0],
           [1, 0, 1]])
    """
    a, p, _, labels = read_ranks(y_true, y_pred, labels, sample_weight)
    return weighted_confusion(a, p, sample_weight, labels.size)
