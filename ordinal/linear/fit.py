"""Fits of the cumulative link model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from .._cumulative.design import HESSIAN_COLUMNS, Threshold
from .._cumulative.elastic_net import NetSolution, PathSolver
from .._cumulative.fitting import Minimum, OrderedThresholds, likelihood_of, minimize
from .._cumulative.likelihood import Likelihood, Link
from .._cumulative.pooling import RankOrder
from .._cumulative.rowwise import ChunkedLikelihood, RowwiseLikelihood
from .._cumulative.separation import check_separation
from .._input.checks import (
    check_choice,
    check_count,
    check_factor_or_zero,
    check_flag,
    check_real,
    check_share,
    shown,
)
from .._input.immutable import read_only
from .._input.types import ArrayLike, Blocks, ClassWeight, Labels, MatrixLike
from .._model.labelled import MissingLabels
from .._model.preparation import Callback, shared_arguments
from .._model.registry import PENALTIES, Method, register
from .._watch.convergence import Convergence, Status, warn_of_disorder
from ..inference.fitted import (
    FitMemory,
    null_loglik,
    remember,
    warn_of_shortfalls,
    with_records,
)
from ..inference.limits import find_limit, limit_fields
from ..inference.sandwich import CovarianceChoice, covariance_of
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed_in_columns
from .model import ConcaveLink, PomModel, PomPath, geometric, read_lambdas
from .monotone import constrained
from .prepared import (
    Missing,
    PomArguments,
    PreparedPom,
    check_concave,
    check_family,
    order_constraint,
    prepare_pom,
)
from .ratio import RatioModel, ratio_model
from .ratio_loss import Family, RatioLikelihood

_ENDED = (Status.MAX_TIME, Status.STOPPED)  # by the caller
_EASIER = "raise the penalties"  # remedy for a fit that met a limit
_PENALISE = "l2 > 0 gives finite ones"  # remedy for separated ranks


@preprocessed_in_columns
def fit_pom(
    X: MatrixLike | Blocks | str,
    y: Labels | None,
    *,
    link: Link = "logit",
    threshold: Threshold = "flexible",
    nominal: Sequence[str | int] = (),
    scale: Sequence[str | int] = (),
    in_order: bool | MatrixLike = False,
    l1: float = 0.0,
    l2: float = 0.0,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    robust: bool = False,
    cluster: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    reference: Mapping[str, Any] | None = None,
    missing: Missing = "error",
    tol: float = 1e-6,
    max_iter: int = 1000,
    max_time: float | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> PomModel:
    """Fit a cumulative link model by maximum likelihood, such as proportional odds.

    P(y <= j) = F(theta_j - x'beta) with increasing thresholds theta, so that a positive
    coefficient makes higher ranks more probable. The docstring of `ordinal.linear`
    states the whole problem, (1) with nominal and scale effects and (P) with penalties.

    Newton's method takes 3 to 8 steps of O(n d^2) operations, and more from several
    starting points where there may be several minima. There may be as many ranks as
    rows. Sparse features are not converted to dense ones, neither here nor in
    `predict`. With more than 2000 features, L-BFGS is used instead: it needs more
    steps, but each takes O(n d) operations, or a number proportional to the entries of
    a sparse X. The model then has no `covariance`.

    Parameters
    ----------
    X : (n, d) array-like, data frame or formula
        Features, one row per observation. `predict` finds the columns of a data frame
        by their names. Columns of strings or of a categorical type, ordered or not, get
        treatment contrasts: an indicator column such as "Infl[High]" for every level
        but the first. A formula such as "Sat ~ Infl + Type * Cont" refers to the
        columns of the data frame `y`; it needs the package formulaic, and docs/input.md
        describes its syntax. X may also be a source of chunks (`ordinal.data`), a
        numpy.memmap, or a dask array or data frame, whose rows are read in every pass
        and need not fit in memory; l1, `cluster`, `reference` and missing="drop" are
        then not available.
    y : (n,) array-like, or the data frame of a formula, or None for a source of chunks
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    link : {"logit", "probit", "cloglog", "loglog", "cauchit"}, default "logit"
        Distribution function F of (1): logistic, normal, 1 - exp(-exp t), exp(-exp(-t))
        or Cauchy.
    threshold : {"flexible", "symmetric", "equidistant"}, default "flexible"
        Whether the thresholds are free, symmetric about a centre, or equidistant.
    nominal : names or numbers of columns, default none
        Features with one coefficient per threshold. For a table with categories or a
        formula these are names of terms, such as "Infl" for all its levels, or of
        indicator columns, such as "Infl[High]".
    scale : names or numbers of columns, default none
        Features on which the spread of the latent variable depends, in the same form as
        `nominal`.
    in_order : bool or (k, d) rows as X, default False
        Whether to keep thresholds with nominal effects in order at the training rows,
        or at the given rows, so that no probability is negative there. Where thresholds
        then meet at a row, the attribute `touching` of the model counts it, and there
        are no standard errors; otherwise the fit is the one without the constraint. It
        needs rows in memory, a convex loss as l1, and at most 2000 features.
    l1, l2 : float >= 0, default 0
        Penalties of (P), which depend on the units of the features. With 0, the
        default, the fit is by maximum likelihood. With l1 > 0 some coefficients are 0,
        and the model has no `covariance`; l1 needs a convex loss, which means any link
        but cauchit and no scale effects. `fit_pom_path` fits many penalties at once.
    offset : (n,) or (n, r - 1) array-like, default 0
        Known terms o of (1) that are added to x'beta, in addition to those of
        `offset(...)` in a formula; with shape (n, r - 1), they differ between
        thresholds. With a formula, `offset`, `sample_weight` and `cluster` may be names
        of columns of its data, and `offset` a list of them. Offsets of rows of positive
        weight must lie between -10000 and 10000.
    sample_weight : (n,) array-like >= 0, optional
        Frequencies of the rows: weight 2 has the same effect as writing the row twice,
        on standard errors as well. Their sum must lie between 1e-50 and 1e50, and the
        ratio of two positive weights must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; the limits
        of `sample_weight` hold for the products. Because the products are not
        frequencies, standard errors are correct only with robust=True.
    robust : bool, default False
        Whether to estimate the covariance by the sandwich formula (White's HC0), which
        is valid for independent rows even if the model is misspecified.
    cluster : (n,) array-like of numbers or strings, optional
        Group of each row, such as a person, for cluster-robust standard errors: the
        covariance is the sandwich formula over the G groups, with the factor
        G / (G - 1). It needs about 30 groups or more.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Coding of the table that is fitted to X first, as in `select`. The model states
        its coefficients in the columns of X; behind a preprocessor that scales, only
        penalties see scaled columns.
    reference : mapping of columns to levels, optional
        Reference levels of categorical columns. Default: the first level, which is the
        first in alphabetical order for strings, and in the order of the type for a
        categorical one.
    missing : {"error", "drop"}, default "error"
        Treatment of rows with a missing value in X, y, weights or offsets. "error"
        raises an error that counts them by column. "drop" leaves them out; the
        attribute `n_missing` of the model is their number.
    tol : float > 0, default 1e-6
        Tolerance on the length of the next Newton step in standard errors. Because
        steps converge quadratically, the result is usually far more accurate. For
        L-BFGS, tolerance on the partial derivatives of (P) by the parameters, for
        columns scaled to unit standard deviation. With l1 > 0, tolerance on the duality
        gap of (P), as in `fit_pom_path`.
    max_iter : int, default 1000
        Limit on the number of steps of Newton's method or of L-BFGS.
    max_time : float > 0, optional
        Time budget in seconds, checked before every step. If rows are read in chunks, a
        step is one pass over them or more. When the budget is exhausted, the fit
        returns its best point so far, with a warning.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    callback : callable, optional
        Called with an `ordinal.models.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    PomModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.

    Warns
    -----
    ConvergenceWarning
        If the fit stopped before it reached the tolerance; the message names the reason
        and the remedy. Also if there is no finite optimum, because columns separate the
        ranks or scale effects diverge: the message names them, and the status is
        `Status.SEPARATED`.
    CollinearColumnsWarning
        If a fit without penalty drops columns because they are constant or linear
        combinations of columns before them.
    DisorderedThresholdsWarning
        If nominal effects make thresholds cross at training rows; the attribute
        `disorder` of the model lists them, and `in_order=True` prevents it.

    See Also
    --------
    fit_pom_path : Fit cumulative link models for a path of penalties: the lasso and
        elastic net.
    fit_clmm : Fit a cumulative link mixed model, with random effects of groups.
    fit_ratio : Fit a stopping ratio or an adjacent categories model by maximum
        likelihood.
    ordinal.inference.anova : Compare nested models of the same rows by likelihood ratio
        tests.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_pom(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.coef.round(2), model.standard_errors[-2:].round(2)
    (array([ 1.07, -0.01]), array([0.1 , 0.05]))
    >>> ordinal.inference.odds_ratios(model)
    name odds_ratio    lower   upper
    x1      2.90819   2.3781 3.55645
    x2     0.993955 0.898988 1.09895
    """
    l1, l2 = check_factor_or_zero("l1", l1), check_factor_or_zero("l2", l2)
    given = shared_arguments(PomArguments, locals())
    own = {"robust": robust, "in_order": in_order, "max_iter": max_iter}
    (model,) = _fits(X, y, [(l1, l2)], **own, **given)
    return model


@preprocessed_in_columns
def fit_pom_path(
    X: MatrixLike | str,
    y: Labels,
    *,
    ratio: float = 1.0,
    lambdas: ArrayLike | None = None,
    n_lambdas: int = 100,
    smallest: float | None = None,
    family: Literal["cumulative"] | Family = "cumulative",
    link: ConcaveLink = "logit",
    threshold: Threshold = "flexible",
    nominal: Sequence[str | int] = (),
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    reference: Mapping[str, Any] | None = None,
    missing: Missing = "error",
    tol: float = 1e-5,
    max_iter: int = 1000,
    max_time: float | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> PomPath:
    """Fit cumulative link models for a path of penalties: the lasso and elastic net.

    For every lambda of the path, the problem (P) is solved with l1 = ratio lambda and
    l2 = (1 - ratio) lambda, as in glmnet: the loss is a weighted mean over rows, and
    the penalty depends on the units of the features. Pass `preprocess=Standardizer` if
    they should be penalised equally. There may be many more features than rows; sparse
    features are not converted to dense ones. With `family`, the path is one of stopping
    ratio or adjacent categories models.

    Thresholds and nominal effects are not penalised. Parameters not described here are
    those of `fit_pom`.

    Parameters
    ----------
    X : (n, d) array-like, data frame or formula
        Features, one row per observation. `predict` finds the columns of a data frame
        by their names. Columns of strings or of a categorical type, ordered or not, get
        treatment contrasts: an indicator column such as "Infl[High]" for every level
        but the first. A formula such as "Sat ~ Infl + Type * Cont" refers to the
        columns of the data frame `y`; it needs the package formulaic, and docs/input.md
        describes its syntax. All rows must be in memory.
    y : (n,) array-like, or the data frame of a formula
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    ratio : float in [0, 1], default 1
        Share of the l1 penalty: 1 is the lasso, 0 the ridge penalty, which needs
        `lambdas`.
    lambdas : sequence of floats > 0, optional
        Penalties, which are fitted in decreasing order.
    n_lambdas : int, default 100
        Number of penalties if `lambdas` is not given. They decrease geometrically,
        beginning at the smallest one for which all coefficients are 0.
    smallest : float between 0 and 1, optional
        Ratio of the last to the first of these penalties. Default: as in glmnet, 1e-4
        if there are more rows than columns, otherwise 1e-2.
    family : {"cumulative", "stopping", "backward", "adjacent"}, default "cumulative"
        "cumulative" fits the models of `fit_pom`, the others those of
        `ordinal.fit_ratio`: stopping ratios, from the lowest or from the highest
        rank, or adjacent categories.
    link : {"logit", "probit", "cloglog", "loglog"}, default "logit"
        Link function, one of those with a convex loss, which for family="adjacent" is
        "logit" alone.
    threshold : {"flexible", "symmetric", "equidistant"}, default "flexible"
        Whether the thresholds are free, symmetric about a centre, or equidistant. The
        last two are for family="cumulative" only.
    nominal : names or numbers of columns, default none
        Features with one coefficient per threshold. For a table with categories or a
        formula these are names of terms, such as "Infl" for all its levels, or of
        indicator columns, such as "Infl[High]".
    offset : (n,) array-like, or (n, r - 1) with another family, default 0
        Known terms o of (1) that are added to x'beta, in addition to those of
        `offset(...)` in a formula. With a formula, `offset`, `sample_weight` and
        `cluster` may be names of columns of its data. Offsets of rows of positive
        weight must lie between -10000 and 10000.
    sample_weight : (n,) array-like >= 0, optional
        Frequencies of the rows: weight 2 has the same effect as writing the row twice,
        on standard errors as well. Their sum must lie between 1e-50 and 1e50, and the
        ratio of two positive weights must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; the limits
        of `sample_weight` hold for the products. Because the products are not
        frequencies, standard errors are correct only with robust=True.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Coding of the table that is fitted to X first, as in `select`. The model states
        its coefficients in the columns of X; behind a preprocessor that scales, only
        penalties see scaled columns.
    reference : mapping of columns to levels, optional
        Reference levels of categorical columns. Default: the first level, which is the
        first in alphabetical order for strings, and in the order of the type for a
        categorical one.
    missing : {"error", "drop"}, default "error"
        Treatment of rows with a missing value in X, y, weights or offsets. "error"
        raises an error that counts them by column. "drop" leaves them out; the
        attribute `n_missing` of the model is their number.
    tol : float > 0, default 1e-5
        Tolerance on the duality gap of (P) relative to the loss without features. The
        gap is an upper bound on the distance of the objective to its minimum.
    max_iter : int, default 1000
        Limit on the number of Newton steps per penalty, each of which is solved by
        coordinate descent.
    max_time : float > 0, optional
        Time budget in seconds. When it is exhausted, or when the callback stops the
        fit, the path ends with the penalty that was being fitted.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    callback : callable, optional
        Called with an `ordinal.models.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    PomPath

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. This is checked before anything is
        computed.

    Warns
    -----
    ConvergenceWarning
        If the fit of a penalty stopped before it reached the tolerance. The message
        names the reason and the remedy.
    DisorderedThresholdsWarning
        As in `fit_pom`.

    See Also
    --------
    fit_pom : Fit a cumulative link model by maximum likelihood, such as proportional
        odds.
    fit_ratio : Fit a stopping ratio or an adjacent categories model by maximum
        likelihood.
    ordinal.companions.fit_ofmhs : Fit OFMHS: sparse main effects and interactions with
        strong hierarchy.
    select : Tune the hyperparameters of a method by cross-validation, and refit it.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> path = ordinal.fit_pom_path(X, y, n_lambdas=5, smallest=1e-2)
    >>> path.n_nonzero
    array([0, 1, 1, 1, 1])
    >>> path.model(-1).predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    """
    check_choice("family", family, ("cumulative", *get_args(Family)))
    check_choice("link", link, get_args(ConcaveLink))
    check_family(family, link, threshold)
    rule = "a number between 0 and 1"
    ratio = check_real("ratio", ratio, lambda v: 0 <= v <= 1, rule)
    given = read_lambdas(lambdas, ratio)
    n_lambdas = check_count("n_lambdas", n_lambdas)
    smallest = None if smallest is None else check_share("smallest", smallest)
    max_iter = check_count("max_iter", max_iter)
    prepared = prepare_pom(
        "fit_pom_path",
        X,
        y,
        is_penalised=True,
        shifted=family != "cumulative",
        **shared_arguments(PomArguments, locals(), scale=()),
    )
    with prepared.monitor as monitor:
        make: Callable[..., Any] = _model
        nets = _Nets(prepared, max_iter)
        if family != "cumulative":
            make = ratio_model
            nets = _Nets(
                prepared, max_iter, lambda p: RatioLikelihood(p.design, family, link)
            )
        if given is None:
            problem = prepared.problem
            least = 1e-4 if problem.n_samples > problem.n_features else 1e-2
            largest = nets.largest() / ratio
            given = geometric(largest, smallest or least, n_lambdas)
        path = _path(make, nets, given, ratio)
        monitor.conclude(path, warn=_warn_of_path)
    return path


def _warn_of_path(path: PomPath) -> None:
    """Warn of problems of the fits of a path."""
    path.convergence.warn_unless_converged("fit_pom_path", _EASIER)
    lines = dict.fromkeys(line for model in path.models for line in model.disorder)
    warn_of_disorder(tuple(lines), "fit_pom_path")


class _Task(NamedTuple):
    """Checked arguments of fits that differ only in their penalties."""

    prepared: PreparedPom
    max_iter: int
    choice: CovarianceChoice
    order: OrderedThresholds | None


def _fits(
    X: Any, y: Any, penalties: Sequence[tuple[float, float]], **options: Any
) -> list[PomModel]:
    """Fit one model per pair of penalties (l1, l2)."""
    models: list[PomModel] = []
    # Fits without a penalty drop collinear columns, so they have another design.
    for _, group in groupby(penalties, any):
        asked = list(group)
        found: dict[tuple[float, float], PomModel] = {}
        task = _prepared(X, y, *max(asked), alone=len(asked) == 1, **options)
        nets: _Nets | None = None
        with task.prepared.monitor as monitor:
            # From the largest penalties on: fits with l1 start at the previous one.
            for l1, l2 in sorted(asked, reverse=True):
                if l1 > 0:
                    nets = nets or _Nets(task.prepared, task.max_iter)
                    end = nets.solve(l1, l2, reach=True)
                    pair = nets.prepared, nets.solver
                    model = _model_of_net(_model, *pair, end, (l1, l2))
                else:
                    model = _model_of_task(task, l2)
                found[l1, l2] = model
            monitor.conclude(*found.values(), warn=_warn)
        models += [found[pair] for pair in asked]
    return models


def _model_of_task(task: _Task, l2: float) -> PomModel:
    """Fit the model of a ridge penalty, or of none."""
    prepared, order = task.prepared, task.order
    loss = likelihood_of(prepared.design, prepared.link, l2, prepared.n_threads)
    minimum = minimize if order is None else order.minimize
    least = minimum(loss, task.max_iter, prepared.monitor)
    if prepared.design.lower is not None and order is None:
        ranks = RankOrder(cast(RowwiseLikelihood, loss))
        while least.status not in _ENDED and ranks.revise(least.point.x):
            prepared, done = task.prepared.in_groups(ranks.group), least.n_iter
            loss = likelihood_of(prepared.design, prepared.link, l2, prepared.n_threads)
            least = minimum(loss, task.max_iter, prepared.monitor)
            least = replace(least, n_iter=least.n_iter + done)
    return _model(prepared, loss, least, (0.0, l2), task.choice, order=order)


def _rowwise(prepared: PreparedPom) -> RowwiseLikelihood:
    """Return the loss without penalty that needs memory for vectors only."""
    return RowwiseLikelihood(prepared.design, prepared.link, 0.0, prepared.n_threads)


class _Nets:
    """Elastic nets of a path, whose ranks of no weight may differ.

    Attributes
    ----------
    prepared : PreparedPom
        That of the last solution.
    """

    def __init__(
        self,
        prepared: PreparedPom,
        max_iter: int,
        loss_of: Callable[[PreparedPom], Any] = _rowwise,
    ):
        self._complete, self._max_iter, self._loss_of = prepared, max_iter, loss_of
        self._ranks: RankOrder | None = None
        self._solver: PathSolver[Any] | None = None
        self.prepared = prepared

    @property
    def solver(self) -> PathSolver[Any]:
        """The solver of the problem without ranks of no weight."""
        if self._solver is None:
            loss = self._loss_of(self.prepared)
            if self._ranks is None and self.prepared.design.lower is not None:
                self._ranks = RankOrder(loss)
            self._solver = PathSolver(loss, self._max_iter, self.prepared.monitor)
        return self._solver

    def largest(self) -> float:
        """Return the least l1 for which all coefficients are 0, or 1 if it is 0."""
        solver = None
        while solver is not self.solver:
            solver = self.solver
            if self._ranks is not None:  # pools thresholds that cross without effects
                self.solve(solver.largest or 1.0, 0.0)
        return self.solver.largest or 1.0

    def solve(self, l1: float, l2: float, reach: bool = False) -> NetSolution:
        """Return the solution for a pair of penalties; `reach` as for `PathSolver`."""
        found = self.solver.reach(l1, l2) if reach else self.solver.solve(l1, l2)
        while (
            self._ranks is not None
            and found.status not in _ENDED
            and self._ranks.revise(self.solver.minimum(found).point.x)
        ):
            self.prepared = self._complete.in_groups(self._ranks.group)
            self._solver = None
            found = self.solver.reach(l1, l2)
        return found


def _warn(model: PomModel) -> None:
    """Warn of problems of a fit."""
    # Nominal effects are not penalised.
    are_nominal = np.isin(model.statistics.separated, model.predictor.nominal).all()
    remedy = "leave them out of nominal=" if are_nominal else _PENALISE
    if not (model.predictor.nominal.size or model.predictor.scale.size):
        remedy += ", and so does ordinal.inference.jeffreys(model)"
    warn_of_shortfalls(model, "fit_pom", remedy, _EASIER)


def _prepared(
    X: MatrixLike | Blocks | str,
    y: Labels | None,
    l1: float,
    l2: float,
    *,
    link: Link,
    scale: Sequence[str | int],
    robust: bool,
    max_iter: int,
    in_order: bool | MatrixLike = False,
    alone: bool = True,
    **given: Any,
) -> _Task:
    """Check and read the arguments of `fit_pom`, for penalties up to l1 and l2.

    `alone` says that there is a single fit. Several fits share the columns of a design,
    which effects of mo(x) at their bound do not allow.
    """
    robust = check_flag("robust", robust)
    max_iter = check_count("max_iter", max_iter)
    if l1 > 0:
        check_concave("l1", link, scale)
    if in_order is not False:
        check_concave("in_order", link, scale)
        if l1 > 0:
            raise ValueError(f"in_order must be False with l1={shown(l1)}")
    prepared = prepare_pom(
        "fit_pom",
        X,
        y,
        is_penalised=l1 > 0 or l2 > 0,
        link=link,
        scale=scale,
        chunks={
            "l1 must be 0": (l1, l1 > 0),
            "in_order must be False": (in_order, in_order is not False),
        },
        monotone=l1 == 0 and alone,
        shifted=l1 == 0 and in_order is False,
        **given,
    )
    if prepared.training.monotone:
        n_threads = prepared.n_threads
        prepared = constrained(
            prepared, "fit_pom", lambda D: likelihood_of(D, link, l2, n_threads)
        )
    order = None if in_order is False else order_constraint(prepared, in_order)
    choice, cluster = CovarianceChoice(), prepared.training.cluster
    if robust or cluster is not None:
        design, without = prepared.design, "with a penalty" if l1 or l2 else ""
        if design.has_many:
            without = without or f"of more than {HESSIAN_COLUMNS} features"
        n = design.n_samples
        choice = CovarianceChoice.from_arguments(robust, cluster, n, without)
    return _Task(prepared, max_iter, choice, order)


def _fit_path(
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, float]],
    products: object,
    X_test: object,
    **options: Any,
) -> tuple[list[PomModel], list[None]]:
    """Fit one model per point (l1, l2); see `fit_path` of `registry.Method`."""
    penalties = [
        (check_factor_or_zero("l1", p["l1"]), check_factor_or_zero("l2", p["l2"]))
        for p in points
    ]
    models = _fits(X, y, penalties, **options)
    return models, [None] * len(models)


def _path(
    make: Callable[..., Any],
    nets: _Nets,
    lambdas: np.ndarray,
    ratio: float,
) -> PomPath:
    """Fit the models of a path, until the time budget or the callback ends it.

    `make` returns the model of a minimum: `_model` or `ratio_model`.
    """
    models: list[PomModel | RatioModel] = []
    null = None
    for i, penalty in enumerate(lambdas.tolist()):
        penalties = ratio * penalty, (1 - ratio) * penalty
        with nets.prepared.monitor.numbered("penalty", i, lambdas.size):
            found = nets.solve(*penalties)
        pair = nets.prepared, nets.solver
        models.append(_model_of_net(make, *pair, found, penalties, null))
        null = models[0].statistics.null_loglik
        if found.status in _ENDED:
            break
    return PomPath(
        lambdas=read_only(lambdas[: len(models)]),
        ratio=ratio,
        models=tuple(models),
        convergence=Convergence.of_parts([model.convergence for model in models]),
    )


def _model_of_net(
    make: Callable[..., Any],
    prepared: PreparedPom,
    solver: PathSolver[Any],
    found: NetSolution,
    penalties: tuple[float, float],
    null: float | None = None,
) -> Any:
    """Return the model of a fit with l1 > 0, or of a path; `make` as for `_path`.

    `null` is the log-likelihood without features, if it is known.
    """
    end, objectives = solver.minimum(found), (found.primal, found.dual)
    return make(
        prepared, solver.loss, end, penalties, CovarianceChoice(), objectives, null
    )


def _model(
    prepared: PreparedPom,
    loss: Likelihood,
    found: Minimum,
    penalties: tuple[float, float],
    choice: CovarianceChoice,
    objectives: tuple[float, float] | None = None,
    null: float | None = None,
    order: OrderedThresholds | None = None,
) -> PomModel:
    """Return the model of a minimum, in the units of the features.

    `objectives` are those of the primal and the dual problem, if there is a dual.
    """
    design, point, (l1, l2) = loss.design, found.point, penalties
    primal, dual = objectives or (point.value, None)
    status, separated = found.status, np.zeros(0, dtype=np.int64)
    if l1 == 0:
        status, separated = check_separation(
            design, loss.link, point.x, found.step, status, l2 > 0, prepared.monitor
        )
    limit = None
    if separated.size and order is None and not l2:
        limit = find_limit(loss, point.x, found.step, prepared.monitor)
    if limit is not None:
        point = loss.at(limit.x)
        primal = point.value
    fields = prepared.fields(design, point.x)
    if order is not None:
        # Two thresholds that meet enclose an inner rank.
        inner = np.flatnonzero(prepared.problem.present)[1:-1]
        touching = np.zeros(fields["touching"].size, dtype=np.int64)
        touching[inner - 1] = order.meetings(point.x)
        fields["touching"] = read_only(touching)
    if null is None:
        form = ChunkedLikelihood if design.is_chunked else likelihood_of
        plain = partial(form, link=loss.link, l2=0.0, n_threads=loss.n_threads)
        null = null_loglik(design, plain)
    penalty = 0.5 * float(loss.penalties @ point.x**2)
    fields |= {
        "uncertainty": None if l1 or l2 else covariance_of(loss, point, choice),
        "covariance_type": choice.kind,
        "l1": l1,
        "l2": l2,
        "loglik": -design.total * (point.value - penalty),
        "null_loglik": null,
        "separated": read_only(separated),
        "convergence": prepared.monitor.record(
            status, found.n_iter, found.violation, primal, dual
        ),
    }
    if limit is not None:
        fields |= limit_fields(design, limit.limit, choice)
    model = PomModel(**with_records(fields))
    if not design.is_chunked:
        frame, of_limit = prepared.training.frame, limit and limit.limit
        memory = FitMemory(loss, point.x, frame, of_limit)
        remember(model, memory, prepared.training.used)
    return model


register(
    Method(
        fit_pom,
        name="pom",
        estimator="POM",
        accepts={"categories", "sparse", "intervals"},
        full_rank=True,
        probabilities=True,
        grid={"l2": PENALTIES},
        varying=("l1", "l2"),
        fit_path=_fit_path,
        paths=(fit_pom_path,),
        reads_chunks=True,
        by_row={"offset", "cluster"},
    )
)
