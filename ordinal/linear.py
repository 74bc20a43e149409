"""Linear models of ordered ranks: the cumulative link model (proportional odds).

With ranks y_i in 0..r-1, weights w_i of sum W, and a distribution function F,

    P(y_i <= j) = F(eta_ij),   eta_ij = (theta_j - n_i'nu_j - x_i'beta - o_i) / s_i  (1)
    s_i = exp(z_i'zeta),       theta_0 < theta_1 < ... < theta_(r-2)

    min  -(1/W) sum_i w_i log(F(eta_i,y_i) - F(eta_i,y_i - 1)) + l2/2 |beta|^2       (P)

With F the logistic function this is the proportional odds model, POM: odds of y <= j
change by the factor exp(-beta) with a unit of x, for all j alike. The columns n have a
slope at each threshold ("nominal" effects: partial proportional odds), those of z
change the spread of the latent variable ("scale" effects). For logit, probit, cloglog
and loglog log(F(a) - F(b)) is concave in (a, b), so that (P) is convex where there are
no scale effects, and its minimum the only one; for cauchit, and with scale effects, it
may be a local one.

P. McCullagh, "Regression models for ordinal data", JRSS B 42:109-142, 1980, (2.1) to
(6.1). B. Peterson, F. E. Harrell, "Partial proportional odds models for ordinal
response variables", Applied Statistics 39:205-217, 1990. J. W. Pratt, "Concavity of the
log likelihood", JASA 76:103-106, 1981. R. H. B. Christensen, "ordinal", R package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._input.checks import (
    check_choice,
    check_count,
    check_factor_or_zero,
    check_flag,
    listed,
    shown,
)
from ._input.columns import column_number
from ._input.problem import Problem, around_ranks
from ._input.sparse import frozen
from ._input.types import ArrayLike, ClassWeight, Labels, MatrixLike
from ._linear.collinear import identified
from ._linear.contrasts import Coding
from ._linear.design import Design, read_offset
from ._linear.fitting import has_many, likelihood_of, minimize
from ._linear.inference import LikelihoodRatio, lr_test
from ._linear.likelihood import LINKS, Likelihood, Link
from ._linear.model import PomModel, Threshold
from ._linear.newton import Minimum
from ._linear.remembered import Remembered, null_loglik, remember
from ._linear.sandwich import Middle, covariance_of
from ._linear.separation import separated_columns
from ._linear.training import Missing, Training, read_training
from ._model.convergence import ConvergenceWarning, Status, warn, warn_of_disorder
from ._model.entry import Callback, enter
from ._model.monitor import Monitor

__all__ = ["LikelihoodRatio", "PomModel", "fit_pom", "lr_test"]


def __dir__() -> list[str]:
    return __all__


def fit_pom(
    X: MatrixLike | str,
    y: Labels,
    *,
    link: Link = "logit",
    threshold: Threshold = "flexible",
    nominal: Sequence[str | int] = (),
    scale: Sequence[str | int] = (),
    l2: float = 0.0,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    robust: bool = False,
    cluster: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    reference: Mapping[str, Any] | None = None,
    missing: Missing = "error",
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_time: float | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> PomModel:
    """Fit a cumulative link model by maximum likelihood, such as the proportional odds
    model.

    The module's docstring states (P). Newton's method takes 4 to 8 steps of O(n d^2).
    Sparse features stay sparse, in `predict` as well. Beyond 2000 features L-BFGS takes
    over, whose steps cost O(n d), or the entries of a sparse X, and more of them are
    needed; the model then has no `covariance`.

    Parameters
    ----------
    X : (n, d) array-like, data frame or formula
        Rows of features. `predict` finds the columns of a data frame by their names.
        Words and categories, ordered or not, get treatment contrasts: a column of 0 and
        1 for every level but the first, named "Infl[High]". A formula such as
        "Sat ~ Infl + Type * Cont" is about the columns of the data frame `y`
        (docs/input.md says what it may hold), and needs the package formulaic.
    y : (n,) array-like, or the data frame of a formula
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default "logit"
        F of (1): logistic, normal, 1 - exp(-exp t), exp(-exp(-t)) or Cauchy.
    threshold : {"flexible", "symmetric", "equidistant"}, default "flexible"
        Thresholds that are free, symmetric about a centre, or equally far apart.
    nominal : names or numbers of columns, default none
        Features with a slope at each threshold. Of a table with categories, or of a
        formula: names of terms, such as "Infl" with all its levels, or of columns that
        they became, such as "Infl[High]".
    scale : names or numbers of columns, default none
        Features that change the spread of the latent variable as well, named alike.
    l2 : float >= 0, default 0
        Of (P), in the units of the features. 0 is maximum likelihood.
    offset : (n,) array-like, default 0
        o of (1): what is known to be added to x'beta, beside `offset(...)` of a
        formula. As `sample_weight`, it may be the name of a column of a formula's data.
    sample_weight : (n,) array-like >= 0, optional
        Frequencies: weight 2 is the row written twice, for standard errors as well. The
        sum must lie between 1e-50 and 1e50, and positive weights differ by a factor of
        at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows, whose products are limited alike. Standard
        errors are right for them with `robust` only: they are no frequencies.
    robust : bool, default False
        Take the sandwich for the covariance, which holds where rows are independent and
        the model may be wrong (White's HC0).
    cluster : (n,) array-like of numbers or strings, optional
        Groups of rows that belong together, such as those of a person: the covariance
        is the sandwich of groups, with the factor G / (G - 1) for G of them. It needs
        many groups, some 30 or more.
    classes : sequence of labels in rank order, optional
        Needed for strings. May name ranks that y lacks, which are never predicted.
    reference : mapping of columns to levels, optional
        Levels that others are compared with, instead of the first ones: of words by the
        alphabet, of a categorical type in its order.
    missing : {"error", "drop"}, default "error"
        What becomes of rows that lack a value, of X, y, weights or offsets. The error
        counts them by columns; "drop" leaves them out, and `n_missing` of the model
        says how many.
    tol : float > 0, default 1e-6
        Length of the next Newton step, in standard errors, at which the fit has
        converged. Steps converge quadratically: the last one ends far below it. For
        L-BFGS the largest slope of (P) by a parameter, in units of the spread of its
        column.
    max_iter : int, default 1000
        Newton steps, or those of L-BFGS.
    max_time : float > 0, optional
        Seconds, looked at before every step.
    n_threads : int, optional
        Default: the processors this process may use, or ORDINAL_NUM_THREADS. No bit of
        the result depends on it.
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.
    verbose : bool, default False
        Tell stderr how far the fit is: one line rewritten in place on a terminal, a bar
        in a notebook (of tqdm, if it is there), elsewhere a line every ten seconds.

    Returns
    -------
    PomModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        The fit ended short of the tolerance; the message says why and what helps. Or
        columns separate the ranks, so that no finite coefficients are the most likely:
        they are named, and the status is `Status.SEPARATED`.
    CollinearColumnsWarning
        Without a penalty: columns that are constant, or combinations of those before
        them, have no coefficient in the model.
    DisorderedThresholdsWarning
        Nominal effects make thresholds cross at training rows: `disorder` of the model
        lists them.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_pom(X, y, l2=1e-3)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    """
    check_choice("link", link, LINKS)
    check_choice("threshold", threshold, ("flexible", "symmetric", "equidistant"))
    l2 = check_factor_or_zero("l2", l2)
    robust = check_flag("robust", robust)
    max_iter = check_count("max_iter", max_iter)
    training = read_training(
        X, y, classes=classes, missing=missing, reference=reference,
        sample_weight=sample_weight, offset=offset, cluster=cluster,
    )  # fmt: skip
    entry = enter(
        "fit_pom", training.X, training.y, tol=tol, classes=training.classes,
        sample_weight=training.sample_weight, class_weight=class_weight,
        n_threads=n_threads, max_time=max_time, callback=callback, verbose=verbose,
    )  # fmt: skip
    problem = entry.problem
    design = _design(training, problem, nominal, scale, threshold)
    design = identified(design, problem.shown_names, l2 > 0)
    middle = _middle(robust, training.cluster, design)
    loss = likelihood_of(design, link, l2, entry.n_threads)
    with entry.monitor as monitor:
        found = minimize(loss, max_iter, monitor)
        model = _model(training, problem, loss, found, threshold, l2, middle, monitor)
        monitor.conclude(model.convergence)
    if model.separated.size:
        _warn_of_separation("fit_pom", model)
    else:
        model.convergence.warn_unless_converged("fit_pom")
    warn_of_disorder(model.disorder, "fit_pom")
    return model


def _design(
    training: Training, problem: Problem, nominal: Any, scale: Any, threshold: Threshold
) -> Design:
    """The columns and thresholds that the arguments ask for."""
    nominal = _chosen("nominal", nominal, problem, training.coding)
    scale = _chosen("scale", scale, problem, training.coding)
    location = np.setdiff1d(np.arange(problem.n_features), nominal)
    known = training.offset
    known = None if known is None else read_offset(known, problem.n_samples)
    return Design.of(problem, location, nominal, scale, known, threshold)


def _middle(robust: bool, cluster: Any, design: Design) -> Middle:
    middle = Middle.of(robust, cluster, design.n_samples)
    if middle.kind != "observed" and has_many(design):
        raise ValueError(
            "robust and cluster are of the covariance, which fits of more than 2000 "
            "features do without"
        )
    return middle


def _chosen(
    argument: str, columns: Any, problem: Problem, coding: Coding | None
) -> np.ndarray:
    """Numbers of columns that an argument names, in the order of the columns."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise ValueError(
            f"{argument} must be a sequence of columns by name or number, got "
            f"{shown(columns)}"
        )
    terms = {} if coding is None else coding.columns_of_terms
    numbers: list[int] = []
    for name in columns:
        if isinstance(name, str) and name in terms:
            numbers += terms[name]
        else:
            numbers.append(column_number(name, problem.shown_names, argument))
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{argument} must name a column once, got {listed(columns)}")
    return np.array(sorted(numbers), dtype=np.int64)


def _warn_of_separation(solver: str, model: PomModel) -> None:
    names = listed([model.column_names[j] for j in model.separated])[1:-1]
    remedy = "leave them out of nominal=" if model.l2 else "l2 > 0 gives finite ones"
    warn(
        f"{solver}: {model.convergence.status.value}: ranks are told apart without "
        f"error by {names}, so that no finite coefficients are the most likely, and "
        f"those returned only say where they go; {remedy}",
        ConvergenceWarning,
    )


def _model(
    training: Training,
    problem: Problem,
    loss: Likelihood,
    found: Minimum,
    threshold: Threshold,
    l2: float,
    middle: Middle,
    monitor: Monitor,
) -> PomModel:
    """The model of a minimum, in the units of the features."""
    design, point = loss.design, found.point
    separated = np.zeros(0, dtype=np.int64)
    if found.status in (Status.CONVERGED, Status.MAX_ITER, Status.STALLED):
        separated = separated_columns(design, loss.link, point.x, found.step, l2 > 0)
    alpha, nu, beta, zeta = design.split(design.raw(point.x))
    present = np.flatnonzero(problem.present)
    inner = design.J @ alpha
    if not design.nominal.size:  # with nominal effects, order is that at the rows
        inner = np.maximum.accumulate(inner)
    crossings = np.zeros(problem.n_classes - 1, dtype=np.int64)
    crossings[present[1:-1] - 1] = design.crossings(alpha, nu)
    penalty = 0.5 * float(loss.price @ point.x**2)
    coding = training.coding
    table = problem if coding is None else coding
    model = PomModel(
        classes=frozen(problem.classes),
        n_features=table.n_features,
        feature_names=table.feature_names,
        coding=coding,
        column_names=problem.shown_names,
        link=loss.link,
        threshold=threshold,
        location=frozen(design.location),
        nominal=frozen(design.nominal),
        scale=frozen(design.scale),
        crossings=frozen(crossings),
        thresholds=frozen(around_ranks(inner, present, problem.n_classes)),
        alpha=frozen(alpha),
        nominal_coef=frozen(nu),
        coef=frozen(beta),
        scale_coef=frozen(zeta),
        observed=frozen(problem.present),
        covariance=covariance_of(loss, point, middle),
        covariance_type=middle.kind,
        l1=0.0,
        l2=l2,
        loglik=-design.total * (point.value - penalty),
        null_loglik=null_loglik(loss),
        n_obs=design.total,
        n_missing=training.n_missing,
        separated=frozen(separated),
        convergence=monitor.record(
            Status.SEPARATED if separated.size else found.status,
            found.n_iter,
            found.violation,
            point.value,
        ),
    )
    remember(model, Remembered(loss, point.x, training.frame))
    return model
