"""Mean probabilities, and average marginal effects on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from .._input.checks import check_flag, check_share
from .._input.types import ArrayLike, MatrixLike
from .._model.printing import Table
from .._numerics.tails import normal_margin
from .fitted import about_groups, covariance_for, fitted_rows, remembered
from .limits import LimitMeans
from .margins import (
    Errors,
    MarginRows,
    Means,
    averages_table,
    effects_table,
    errors_of,
    rows_to_average,
)


def marginal_effects(
    model: Any,
    X: MatrixLike | None = None,
    *,
    level: float = 0.95,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    effects: str | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
) -> Table:
    """Return average marginal effects of the features on the rank probabilities.

    The effect of a numeric feature is the derivative of the mean probability of a
    rank over the rows. That of a column with values 0 and 1 is the difference
    between the mean probabilities with 1 and with 0 in all rows, and that of a
    level of a category, such as "Infl[High]", the difference from the reference
    level. In a formula, all terms with the feature contribute. The effects of a
    feature sum to 0 over the ranks.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (n, n_features) array or data frame, optional
        Rows to average over. Default: the training rows with their weights and
        offsets.
    level : float in (0, 1), default 0.95
        Confidence level of the intervals.
    offset : (n,) array-like, default 0
    sample_weight : (n,) array-like >= 0, optional
        Offsets and weights of the rows of `X`.
    effects, groups : optional
        As for `ClmmModel.predict_proba`, of a model with random effects, which needs
        `X`.

    Returns
    -------
    Table
        A dict of arrays, with an entry for each feature and rank that has training
        rows: "name", "rank", "effect", "standard_error" (delta method), "z",
        "p_value", "lower", "upper".

    Raises
    ------
    ValueError, TypeError
        As for `decision_function` and `standard_errors`; also if offsets or weights
        are passed without `X`, if `X` is missing and the model no longer has its
        training rows, or if a formula has a comparison, which has no derivative.

    See Also
    --------
    average_proba : Return the mean of `predict_proba` over rows, with standard errors
        and intervals.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> effects = ordinal.inference.marginal_effects(model)
    >>> effects["name"][:3], effects["rank"][:3]
    (array(['x1', 'x1', 'x1'], dtype='<U2'), array([1, 2, 3]))
    >>> effects["effect"][:3].round(4)
    array([-0.2192,  0.0022,  0.217 ])
    """
    model, X = fitted_rows(model, X, "marginal_effects")
    z = normal_margin(check_share("level", level))
    random = about_groups("marginal_effects", model, effects=effects, groups=groups)
    means, rows, errors = model._averages(
        "marginal_effects", X, offset, sample_weight, **random
    )
    return effects_table(means, rows, errors, z)


def average_proba(
    model: Any,
    X: MatrixLike | None = None,
    *,
    cumulative: bool = False,
    level: float = 0.95,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    effects: str | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
) -> Table:
    """Return the mean of `predict_proba` over rows, with standard errors and
    intervals.

    Pass one row for the probabilities of that row. The standard errors are those
    due to the estimates (delta method); the rows are treated as fixed.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X : (n, n_features) array or data frame, optional
        Rows to average over. Default: the training rows with their weights and
        offsets.
    cumulative : bool, default False
        Whether to return the mean of P(y <= j) at every threshold instead of
        P(y = j).
    level : float in (0, 1), default 0.95
        Confidence level of the intervals. They are symmetric on the scale of log
        p / (1 - p), as in R's `predict.clm`, and therefore lie between 0 and 1.
    offset : (n,) array-like, default 0
    sample_weight : (n,) array-like >= 0, optional
        Offsets and weights of the rows of `X`.
    effects, groups : optional
        As for `ClmmModel.predict_proba`, of a model with random effects, which needs
        `X`.

    Returns
    -------
    Table
        A dict of arrays, with an entry for each of the r ranks or r - 1 thresholds:
        "rank" or "threshold", "probability", "standard_error", "lower", "upper".

    Raises
    ------
    ValueError, TypeError
        As for `decision_function` and `standard_errors`; also if offsets or weights
        are passed without `X`, or if `X` is missing and the model no longer has its
        training rows.

    See Also
    --------
    marginal_effects : Return average marginal effects of the features on the rank
        probabilities.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.average_proba(model, cumulative=True)
    threshold probability standard_error    lower    upper
    1|2          0.373492      0.0928077 0.215071 0.564661
    2|3          0.630519        0.10474 0.414172 0.804653
    """
    model, X = fitted_rows(model, X, "average_proba")
    z = normal_margin(check_share("level", level))
    check_flag("cumulative", cumulative)
    random = about_groups("average_proba", model, effects=effects, groups=groups)
    means, rows, errors = model._averages(
        "average_proba", X, offset, sample_weight, **random
    )
    return averages_table(means, rows, errors, z, cumulative)


def averages(
    model: Any, asked: str, X: Any, offset: Any, sample_weight: Any
) -> tuple[Means, MarginRows, Errors]:
    """Return the sums over rows for the method `asked`, the rows, and the function
    that computes standard errors from gradients of the sums.
    """
    errors = partial(errors_of, covariance_for(model, asked, limit=True))
    rows = rows_to_average(model, asked, X, offset, sample_weight)
    if not model.statistics.separated.size:
        return model._means(), rows, errors
    fit = remembered(model, asked)
    assert fit.limit is not None
    return LimitMeans(model, fit.limit, fit.loss.design), rows, errors
