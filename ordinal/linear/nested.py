"""Likelihood ratio tests of nested models of the same rows."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import listed, shown
from .._model.printing import Table, html_record
from .._numerics.tails import chi2_tail
from .._watch.convergence import ConvergenceWarning, warn
from .estimates import check_likelihood
from .inference import Wald

_ROUNDING = 1e-6  # of twice the difference of two log-likelihoods


class LikelihoodRatio(NamedTuple):
    """Result of `lr_test`.

    Attributes
    ----------
    chi2 : float
        Twice the difference of the log-likelihoods.
    dof : int
        Difference of the numbers of parameters.
    p_value : float
        P(chi-square with `dof` degrees of freedom > chi2). It is halved if the larger
        model differs by one variance of random effects only: under the smaller model
        this variance is 0, on the boundary, so that chi2 is 0 in half of all samples.
    """

    chi2: float
    dof: int
    p_value: float

    def _repr_html_(self) -> str:
        return html_record(self)


def lr_test(smaller: Any, larger: Any) -> LikelihoodRatio:
    """Compare two nested models of the same rows by a likelihood ratio test.

    Parameters
    ----------
    smaller, larger : PomModel or ClmmModel
        Models fitted without penalties to the same rows. The larger one has all terms
        of the smaller one and more: features, nominal or scale effects, or less
        restricted thresholds. This is checked as far as the models allow.

    Returns
    -------
    LikelihoodRatio

    Raises
    ------
    TypeError
        If an argument is not a model of `fit_pom` or `fit_clmm`.
    ValueError
        If the models have different ranks, rows or links, are penalised, or are not
        nested. The total weights per rank are compared as long as both models refer
        to their training rows.

    Warns
    -----
    ConvergenceWarning
        If the larger model has the lower likelihood, so that one of the two is not at
        its optimum. The statistic is then 0.

    See Also
    --------
    anova : Compare nested models of the same rows by likelihood ratio tests.
    fit_pom : Fit a cumulative link model by maximum likelihood, such as proportional
        odds.
    fit_clmm : Fit a cumulative link mixed model, with random effects of groups.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> y = [1, 1, 2, 1, 3, 2, 3, 3]
    >>> larger = ordinal.fit_pom(X, y)
    >>> smaller = ordinal.fit_pom([row[1:] for row in X], y)
    >>> test = ordinal.lr_test(smaller, larger)
    >>> test.dof, round(test.chi2, 4), round(test.p_value, 4)
    (1, 1.7269, 0.1888)
    """
    _check_model(smaller, "smaller must be a model", "lr_test")
    _check_model(larger, "larger must be a model", "lr_test")
    _check_nested(smaller, larger)
    dof = larger.dof - smaller.dof
    chi2 = 2 * (larger.loglik - smaller.loglik)
    if chi2 < -_ROUNDING:
        warn(
            f"lr_test: the log likelihood of the larger model is {-chi2 / 2:.3g} "
            "below that of the smaller one: either the models are not nested or a "
            "fit has not converged",
            ConvergenceWarning,
        )
    chi2 = max(chi2, 0.0)
    p_value = chi2_tail(chi2, dof)
    # Models without random effects have no variances.
    variances = [getattr(model, "n_variances", 0) for model in (smaller, larger)]
    if dof == 1 == variances[1] - variances[0]:
        p_value /= 2  # a variance of 0 is on the boundary
    return LikelihoodRatio(chi2, dof, p_value)


def anova(*models: Any) -> Table:
    """Compare nested models of the same rows by likelihood ratio tests.

    Parameters
    ----------
    *models : PomModel
        Two or more models, fitted without penalties to the same rows, in any order.
        They are sorted by the number of parameters, and each must be nested in the next
        one, as for `lr_test`.

    Returns
    -------
    Table
        A dict of arrays: "model", the position among the arguments, counted from 1;
        "parameters"; "loglik"; "aic"; and, compared with the previous model, "chi2",
        "dof" and "p_value", which are nan or 0 for the smallest model.

    Raises
    ------
    TypeError, ValueError
        As for `lr_test`; also if there are fewer than two models.

    Warns
    -----
    ConvergenceWarning
        As for `lr_test`.

    See Also
    --------
    lr_test : Compare two nested models of the same rows by a likelihood ratio test.
    fit_pom : Fit a cumulative link model by maximum likelihood, such as proportional
        odds.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> y = [1, 1, 2, 1, 3, 2, 3, 3]
    >>> larger = ordinal.fit_pom(X, y)
    >>> smaller = ordinal.fit_pom([row[1:] for row in X], y)
    >>> ordinal.anova(larger, smaller)
    model parameters   loglik     aic    chi2 dof  p_value
        2          3 -4.83736 15.6747     nan   0      nan
        1          4 -3.97389 15.9478 1.72695   1 0.188801
    """
    if len(models) < 2:
        raise ValueError(f"anova needs two models or more, got {len(models)}")
    for k, model in enumerate(models, 1):
        _check_model(model, f"model {k} must be a model", "anova")
    order = sorted(range(len(models)), key=lambda k: models[k].dof)
    known = [models[k] for k in order]
    tests = [lr_test(a, b) for a, b in pairwise(known)]
    nothing = LikelihoodRatio(math.nan, 0, math.nan)
    names = "model", "parameters", "loglik", "aic", "chi2", "dof", "p_value"
    return Table.from_rows(
        names,
        [
            (k + 1, model.dof, model.loglik, model.aic, *test)
            for k, model, test in zip(order, known, [nothing, *tests], strict=True)
        ],
    )


def _check_model(model: Any, rule: str, function: str) -> None:
    """Raise TypeError or ValueError unless a model has a maximal likelihood."""
    if not isinstance(model, Wald):
        inner = "; pass its attribute model" if hasattr(model, "preprocessor") else ""
        raise TypeError(f"{rule} of fit_pom, got {shown(model)}{inner}")
    check_likelihood(model, function)


def _check_same_ranks(smaller: Wald, larger: Wald) -> None:
    """Raise ValueError if the training rows of each rank have other total weights.

    Rows are not compared one by one: estimators of scikit-learn sort them by content.
    Models without their training rows, such as loaded ones, are accepted.
    """
    masses = []
    for model in (smaller, larger):
        fit = getattr(model, "remembered", None)
        mass = None if fit is None else fit.loss.design.mass()
        # The design of a mixed model does not contain the weights of groups.
        if mass is None or not math.isclose(mass.sum(), model.n_obs, rel_tol=1e-9):
            return
        masses.append(mass)
    first, second = masses
    if not np.allclose(first, second, rtol=1e-9, atol=0.0):
        raise ValueError(
            "smaller and larger must be fitted to the same rows, but the weights per "
            f"rank sum to {listed(first.round(4))} and "
            f"{listed(second.round(4))}; missing='drop' drops other rows for other "
            "columns: drop them before both fits"
        )


def _check_nested(smaller: Wald, larger: Wald) -> None:
    """Raise ValueError if fields of the models show that they are not nested."""
    ranks = [m.classes[m.observed] for m in (smaller, larger)]
    if not np.array_equal(*ranks):
        raise ValueError(
            f"smaller and larger must have the same ranks, got {listed(ranks[0])} and "
            f"{listed(ranks[1])}"
        )
    if not math.isclose(smaller.n_obs, larger.n_obs, rel_tol=1e-9):
        raise ValueError(
            "smaller and larger must be fitted to the same rows, got "
            f"{smaller.n_obs:.10g} and {larger.n_obs:.10g} observations"
        )
    _check_same_ranks(smaller, larger)
    families = [getattr(m, "family", "cumulative") for m in (smaller, larger)]
    if families[0] != families[1]:
        raise ValueError(
            f"smaller and larger must have the same family, got {shown(families[0])} "
            f"and {shown(families[1])}"
        )
    if smaller.link != larger.link:
        raise ValueError(
            "smaller and larger must have the same link, got "
            f"{shown(smaller.link)} and {shown(larger.link)}"
        )
    restricted_first = "equidistant", "symmetric", "flexible"
    freedom = [restricted_first.index(m.threshold) for m in (smaller, larger)]
    if smaller.dof > larger.dof and freedom[0] >= freedom[1]:
        raise ValueError(
            f"smaller has {smaller.dof} parameters and larger {larger.dof}: swap them, "
            "as in lr_test(smaller, larger)"
        )
    if freedom[0] > freedom[1]:
        raise ValueError(
            f"smaller must be nested in larger, but it has {smaller.threshold} "
            f"thresholds and larger {larger.threshold} ones"
        )
    if not smaller.dof < larger.dof:
        raise ValueError(
            f"larger must have more parameters than smaller, got {larger.dof} and "
            f"{smaller.dof}"
        )
