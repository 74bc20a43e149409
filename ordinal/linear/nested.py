"""The likelihood ratio test of one cumulative model within another."""

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

_LEAST_FALL = -1e-6  # of twice the log likelihood: rounding of two fits


class LikelihoodRatio(NamedTuple):
    """Result of `lr_test`.

    Attributes
    ----------
    chi2 : float
        Twice the difference of the log likelihoods.
    dof : int
        That of the numbers of parameters.
    p_value : float
        P(chi-square with `dof` degrees of freedom > chi2). Half of it where the larger
        model has one variance of random effects more and nothing else: under the
        smaller one it is 0, on the boundary, and chi2 is 0 in half of all samples.
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
        Fitted without penalties to the same rows; the larger has all that the smaller
        has, and more: features, nominal or scale effects, freer thresholds. What can be
        seen of this in the models is checked.

    Returns
    -------
    LikelihoodRatio

    Raises
    ------
    TypeError
        Something else than models of `fit_pom`.
    ValueError
        Models of other ranks, rows or links, of penalised fits, or not nested.

    Warns
    -----
    ConvergenceWarning
        The larger model has the lower likelihood: one of the two is not at its optimum.
        The statistic is 0 then.

    See Also
    --------
    anova : Compare nested models of the same rows by likelihood ratio tests.
    fit_pom : Fit a cumulative link model by maximum likelihood, such as the
        proportional odds model.
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
    for name, model in (("smaller", smaller), ("larger", larger)):
        if not isinstance(model, Wald):
            raise TypeError(f"{name} must be a model of fit_pom, got {shown(model)}")
        check_likelihood(model, "lr_test")
    _check_nested(smaller, larger)
    dof = larger.dof - smaller.dof
    chi2 = 2 * (larger.loglik - smaller.loglik)
    if chi2 < _LEAST_FALL:
        warn(
            f"lr_test: the larger model has a log likelihood {-chi2 / 2:.3g} below "
            "that of the smaller one, which is not within it, or a fit ended short",
            ConvergenceWarning,
        )
    chi2 = max(chi2, 0.0)
    p_value = chi2_tail(chi2, dof)
    variances = [getattr(model, "n_variances", 0) for model in (smaller, larger)]
    if dof == 1 == variances[1] - variances[0]:
        p_value /= 2  # a variance of 0 is on the boundary
    return LikelihoodRatio(chi2, dof, p_value)


def anova(*models: Any) -> Table:
    """Compare nested models of the same rows by likelihood ratio tests.

    Parameters
    ----------
    *models : PomModel
        Two or more, in any order, of the same rows, fitted without penalties. They are
        sorted by the number of parameters, and each must lie within the next one, as
        for `lr_test`.

    Returns
    -------
    Table
        A dict of arrays: "model", its place among the arguments from 1 on;
        "parameters"; "loglik"; "aic"; and, against the model before it, "chi2", "dof"
        and "p_value", which are nan or 0 for the smallest model.

    Raises
    ------
    TypeError, ValueError
        As `lr_test`; fewer than two models.

    Warns
    -----
    ConvergenceWarning
        As `lr_test`.

    See Also
    --------
    lr_test : Compare two nested models of the same rows by a likelihood ratio test.
    fit_pom : Fit a cumulative link model by maximum likelihood, such as the
        proportional odds model.

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
        if not isinstance(model, Wald):
            raise TypeError(f"model {k} must be of fit_pom, got {shown(model)}")
        check_likelihood(model, "anova")
    order = sorted(range(len(models)), key=lambda k: models[k].dof)
    known = [models[k] for k in order]
    tests = [lr_test(a, b) for a, b in pairwise(known)]
    nothing = LikelihoodRatio(math.nan, 0, math.nan)
    chi2, dof, p_value = zip(nothing, *tests, strict=True)
    return Table(
        {
            "model": np.array(order) + 1,
            "parameters": np.array([m.dof for m in known]),
            "loglik": np.array([m.loglik for m in known]),
            "aic": np.array([m.aic for m in known]),
            "chi2": np.array(chi2),
            "dof": np.array(dof),
            "p_value": np.array(p_value),
        }
    )


def _check_nested(smaller: Wald, larger: Wald) -> None:
    """Raise ValueError where the fields of the models show that the smaller one is no
    case of the larger.
    """
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
    families = [getattr(m, "family", "cumulative") for m in (smaller, larger)]
    if families[0] != families[1]:
        raise ValueError(
            f"smaller and larger must have the same family, got {shown(families[0])} "
            f"and {shown(families[1])}"
        )
    contained = "probit", "cloglog", "loglog"  # by the log-gamma link
    flexible = larger.link == "log-gamma" and smaller.link in contained
    if smaller.link != larger.link and not flexible:
        raise ValueError(
            "smaller and larger must have the same link, got "
            f"{shown(smaller.link)} and {shown(larger.link)}"
        )
    freedom = "equidistant", "symmetric", "flexible"
    if smaller.dof > larger.dof and freedom.index(larger.threshold) <= freedom.index(
        smaller.threshold
    ):
        raise ValueError(
            f"smaller has {smaller.dof} parameters and larger {larger.dof}: swap them, "
            "as in lr_test(smaller, larger)"
        )
    if freedom.index(smaller.threshold) > freedom.index(larger.threshold):
        raise ValueError(
            f"smaller has {smaller.threshold} thresholds and larger {larger.threshold} "
            "ones: it is not within the larger model"
        )
    if not smaller.dof < larger.dof:
        raise ValueError(
            f"larger must have more parameters than smaller, got {larger.dof} and "
            f"{smaller.dof}"
        )
