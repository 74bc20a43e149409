"""Fits of the cumulative link model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any, get_args

import numpy as np

from .._cumulative.bordered import NONE
from .._cumulative.design import (
    HESSIAN_COLUMNS,
    Design,
    Threshold,
)
from .._cumulative.elastic_net import PathSolver, Solution
from .._cumulative.fitting import likelihood_of, minimize
from .._cumulative.likelihood import Likelihood, Link, Point
from .._cumulative.newton import Minimum
from .._cumulative.rowwise import has_many
from .._cumulative.separation import judged
from .._input.checks import (
    check_choice,
    check_count,
    check_factor_or_zero,
    check_flag,
    check_real,
    check_share,
    shown,
    with_suggestions,
)
from .._input.sparse import read_only
from .._input.types import ArrayLike, Blocks, ClassWeight, Labels, MatrixLike
from .._model.model import with_labels_like
from .._model.preparation import Callback
from .._model.registry import PENALTIES, Method, register
from .._rows.chunks import is_chunked
from .._watch.convergence import (
    Convergence,
    Status,
    warn_of_disorder,
    warn_of_separation,
)
from ..preprocessing.joined import Preprocess, preprocessed
from .estimates import Remembered, null_loglik, remember
from .model import ConcaveLink, PomModel, PomPath, geometric, read_lambdas
from .monotone import constrained
from .prepared import PreparedPom, check_concave, prepare_pom
from .sandwich import Middle, covariance_of
from .training import Missing

_EASIER = "raise the penalties"  # what helps a fit that met a limit
_PENALISE = "l2 > 0 gives finite ones"


@preprocessed
def fit_pom(
    X: MatrixLike | Blocks | str,
    y: Labels | None,
    *,
    link: Link = "logit",
    threshold: Threshold = "flexible",
    nominal: Sequence[str | int] = (),
    scale: Sequence[str | int] = (),
    l1: float = 0.0,
    l2: float = 0.0,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    robust: bool = False,
    cluster: ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
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
    """Fit a cumulative link model by maximum likelihood, such as the proportional odds
    model.

    P(y <= j) = F(theta_j - x'beta), with thresholds theta that rise: a positive
    coefficient makes higher ranks more probable. The module's docstring states the
    whole problem, (1) with nominal and scale effects and (P) with penalties.

    Newton's method takes 3 to 8 steps of O(n d^2), and more from several starts where
    there may be several minima. Ranks may be as many as rows. Sparse features stay
    sparse, in `predict` as well. Beyond 2000 features L-BFGS takes over, whose steps
    cost O(n d), or the entries of a sparse X, and more of them are needed; the model
    then has no `covariance`.

    Parameters
    ----------
    X : (n, d) array-like, data frame or formula
        Rows of features. `predict` finds the columns of a data frame by their names.
        Words and categories, ordered or not, get treatment contrasts: a column of 0 and
        1 for every level but the first, named "Infl[High]". A formula such as
        "Sat ~ Infl + Type * Cont" is about the columns of the data frame `y`
        (docs/input.md says what it may hold), and needs the package formulaic. Or a
        source of blocks (`ordinal.data`), a numpy.memmap, or a dask array or data
        frame, whose rows are read at every pass and need not fit in memory; l1,
        `cluster`, `reference` and missing="drop" do without.
    y : (n,) array-like, or the data frame of a formula, or None for a source of blocks
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
    l1, l2 : float >= 0, default 0
        Of (P), in the units of the features. 0 is maximum likelihood. With l1 > 0 some
        coefficients are 0, and the model has no `covariance`; see `fit_pom_path` for
        many penalties at once. The loss must be convex for it: all links but cauchit,
        without scale effects.
    offset : (n,) array-like, default 0
        o of (1): what is known to be added to x'beta, beside `offset(...)` of a
        formula. With a formula this, `sample_weight` and `cluster` may be names of
        columns of its data. Between -10000 and 10000 where the weight is positive.
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
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing that is fitted to X first, as in `select`. The fit then returns a
        `PreprocessedModel`, which applies it to new rows, too.
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
        column. With l1 > 0 the duality gap of (P), as in `fit_pom_path`.
    max_iter : int, default 1000
        Newton steps, or those of L-BFGS.
    max_time : float > 0, optional
        Seconds, looked at before every step, which of rows in chunks is a pass or more.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, in a notebook a progress bar (of tqdm, if installed), elsewhere one line
        every ten seconds.

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
        columns separate the ranks, so that no finite coefficients are the best:
        they are named, and the status is `Status.SEPARATED`.
    CollinearColumnsWarning
        Without a penalty: columns that are constant, or combinations of those before
        them, have no coefficient in the model.
    DisorderedThresholdsWarning
        Nominal effects make thresholds cross at training rows: `disorder` of the model
        lists them.

    See Also
    --------
    fit_pom_path : Fit cumulative link models for a path of penalties: the lasso and
        elastic net.
    fit_clmm : Fit a cumulative link mixed model, with random effects of groups.
    ordinal.linear.fit_ratio : Fit a stopping ratio or an adjacent categories model by
        maximum likelihood.
    ordinal.linear.fit_flexible : Fit a cumulative model whose link has an estimated
        shape (log-gamma).
    anova : Compare nested models of the same rows by likelihood ratio tests.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_pom(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.coef.round(2), model.standard_errors[-2:].round(2)
    (array([ 1.07, -0.01]), array([0.1 , 0.05]))
    >>> model.odds_ratios()
    name odds_ratio    lower   upper
    x1      2.90819   2.3781 3.55645
    x2     0.993955 0.898988 1.09895
    """
    return _fit(
        X,
        y,
        [(l1, l2)],
        link=link,
        threshold=threshold,
        nominal=nominal,
        scale=scale,
        offset=offset,
        sample_weight=sample_weight,
        class_weight=class_weight,
        robust=robust,
        cluster=cluster,
        classes=classes,
        reference=reference,
        missing=missing,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        n_threads=n_threads,
        callback=callback,
        verbose=verbose,
    )[0]  # fmt: skip


@with_suggestions
def fit_pom_path(
    X: MatrixLike | str,
    y: Labels,
    *,
    ratio: float = 1.0,
    lambdas: ArrayLike | None = None,
    n_lambdas: int = 100,
    smallest: float | None = None,
    link: ConcaveLink = "logit",
    threshold: Threshold = "flexible",
    nominal: Sequence[str | int] = (),
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
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

    For every lambda of the path (P) with l1 = ratio lambda, l2 = (1 - ratio) lambda, as
    glmnet has it: the loss is a mean over the weight of the rows, and the penalty is
    one of coefficients in the units of the features. Standardise these first where they
    should be penalised alike. Features may be many more than rows, and stay sparse.

    Thresholds and nominal effects have no penalty; the other parameters are those of
    `fit_pom`.

    Parameters
    ----------
    X : (n, d) array-like, data frame or formula
        Rows of features. `predict` finds the columns of a data frame by their names.
        Words and categories, ordered or not, get treatment contrasts: a column of 0 and
        1 for every level but the first, named "Infl[High]". A formula such as
        "Sat ~ Infl + Type * Cont" is about the columns of the data frame `y`
        (docs/input.md says what it may hold), and needs the package formulaic. Or a
        source of blocks (`ordinal.data`), a numpy.memmap, or a dask array or data
        frame, whose rows are read at every pass and need not fit in memory; l1,
        `cluster`, `reference` and missing="drop" do without.
    y : (n,) array-like, or the data frame of a formula, or None for a source of blocks
        Ranks: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`.
    ratio : float in [0, 1], default 1
        1 is the lasso. 0 is a ridge, and needs `lambdas`.
    lambdas : sequence of floats > 0, optional
        Penalties, fitted from the largest on.
    n_lambdas : int, default 100
        How many there are otherwise, at equal ratios, from the largest one that has an
        effect.
    smallest : float between 0 and 1, optional
        The last of these by the first; by default 1e-4 for more rows than columns, else
        1e-2, as in glmnet.
    link : {"logit", "probit", "cloglog", "loglog"}, default "logit"
        Those of which the loss is convex.
    threshold : {"flexible", "symmetric", "equidistant"}, default "flexible"
        Thresholds that are free, symmetric about a centre, or equally far apart.
    nominal : names or numbers of columns, default none
        Features with a slope at each threshold. Of a table with categories, or of a
        formula: names of terms, such as "Infl" with all its levels, or of columns that
        they became, such as "Infl[High]".
    offset : (n,) array-like, default 0
        o of (1): what is known to be added to x'beta, beside `offset(...)` of a
        formula. With a formula this, `sample_weight` and `cluster` may be names of
        columns of its data. Between -10000 and 10000 where the weight is positive.
    sample_weight : (n,) array-like >= 0, optional
        Frequencies: weight 2 is the row written twice, for standard errors as well. The
        sum must lie between 1e-50 and 1e50, and positive weights differ by a factor of
        at most 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors of the weights of the rows, whose products are limited alike. Standard
        errors are right for them with `robust` only: they are no frequencies.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    reference : mapping of columns to levels, optional
        Levels that others are compared with, instead of the first ones: of words by the
        alphabet, of a categorical type in its order.
    missing : {"error", "drop"}, default "error"
        What becomes of rows that lack a value, of X, y, weights or offsets. The error
        counts them by columns; "drop" leaves them out, and `n_missing` of the model
        says how many.
    tol : float > 0, default 1e-5
        Duality gap of (P), by the loss without features, at which a point has
        converged: its objective is so near to the minimum, or nearer.
    max_iter : int, default 1000
        Newton steps a penalty, each solved by coordinate descent.
    max_time : float > 0, optional
        Seconds. The path ends early then, or where the callback ends it, with the last
        penalty that was begun.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    callback : callable, optional
        Called with an `ordinal.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, in a notebook a progress bar (of tqdm, if installed), elsewhere one line
        every ten seconds.

    Returns
    -------
    PomPath

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        A point ended short of the tolerance; the message says why and what helps.
    DisorderedThresholdsWarning
        As `fit_pom`.

    See Also
    --------
    fit_pom : Fit a cumulative link model by maximum likelihood, such as the
        proportional odds model.
    fit_ofmhs : Fit OFMHS: sparse main effects and interactions with strong hierarchy.
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
    check_choice("link", link, get_args(ConcaveLink))
    rule = "a number between 0 and 1"
    ratio = check_real("ratio", ratio, lambda v: 0 <= v <= 1, rule)
    given = read_lambdas(lambdas, ratio)
    n_lambdas = check_count("n_lambdas", n_lambdas)
    smallest = None if smallest is None else check_share("smallest", smallest)
    max_iter = check_count("max_iter", max_iter)
    prepared = prepare_pom(
        *("fit_pom_path", X, y, True),
        link=link,
        threshold=threshold,
        nominal=nominal,
        scale=(),
        offset=offset,
        sample_weight=sample_weight,
        class_weight=class_weight,
        classes=classes,
        reference=reference,
        missing=missing,
        tol=tol,
        n_threads=n_threads,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )  # fmt: skip
    with prepared.monitor as monitor:
        solver = PathSolver(prepared.rowwise, max_iter, monitor)
        if given is None:
            problem = prepared.problem
            least = 1e-4 if problem.n_samples > problem.n_features else 1e-2
            largest = (solver.largest or 1.0) / ratio
            given = geometric(largest, smallest or least, n_lambdas)
        path = _path(prepared, solver, given, ratio)
        monitor.conclude(path.convergence)
    _warn_of_path(path)
    return path


def _warn_of_path(path: PomPath) -> None:
    path.convergence.warn_unless_converged("fit_pom_path", _EASIER)
    lines = dict.fromkeys(line for model in path.models for line in model.disorder)
    warn_of_disorder(tuple(lines), "fit_pom_path")


def _fit(
    X: MatrixLike | Blocks | str,
    y: Labels | None,
    penalties: Sequence[tuple[float, float]],
    *,
    link: Link,
    scale: Sequence[str | int],
    robust: bool,
    max_iter: int,
    **given: Any,
) -> list[PomModel]:
    """Return one model per (l1, l2); all penalties are 0, or none is.

    Those with l1 > 0 are begun at one another.

    Other arguments are those of `fit_pom`.
    """
    penalties = [
        (check_factor_or_zero("l1", l1), check_factor_or_zero("l2", l2))
        for l1, l2 in penalties
    ]
    robust = check_flag("robust", robust)
    max_iter = check_count("max_iter", max_iter)
    largest = max(penalties)
    if largest[0] > 0:
        check_concave("l1", link, scale)
    if largest[0] > 0 and is_chunked(X):
        raise ValueError(
            f"l1 must be 0 where X is read in chunks, got {shown(largest[0])}"
        )
    prepared = prepare_pom(
        *("fit_pom", X, y, any(largest)),
        link=link,
        scale=scale,
        chunks=True,
        monotone=largest[0] == 0 and len(penalties) == 1,
        **given,
    )
    prepared = constrained(
        prepared,
        "fit_pom",
        lambda D: likelihood_of(D, link, largest[1], prepared.n_threads),
    )
    middle = _middle(robust, prepared.training.cluster, prepared.design, largest[0])
    models: dict[tuple[float, float], PomModel] = {}
    with prepared.monitor as monitor, closing(prepared.problem):
        net = (
            PathSolver(prepared.rowwise, max_iter, monitor) if largest[0] > 0 else None
        )
        for l1, l2 in sorted(penalties, reverse=True):
            if net is not None and l1 > 0:
                model = _model_of_net(prepared, net, net.reach(l1, l2), l1, l2)
            else:
                loss = likelihood_of(prepared.design, link, l2, prepared.n_threads)
                model = _model(
                    prepared, loss, minimize(loss, max_iter, monitor), l2, middle
                )
            models[l1, l2] = model
        monitor.conclude(model.convergence)
    for model in models.values():
        _warn_of(model)
    labels = prepared.training.y  # those of a formula are in the table
    return [with_labels_like(models[pair], labels) for pair in penalties]


def _warn_of(model: PomModel) -> None:
    """Warn of separation and disorder."""
    if model.separated.size:
        names = [model.column_names[j] for j in model.separated]
        # which no penalty reaches
        by_nominal = np.isin(model.separated, model.nominal).all()
        remedy = "leave them out of nominal=" if by_nominal else _PENALISE
        warn_of_separation(names, "fit_pom", remedy)
    else:
        model.convergence.warn_unless_converged("fit_pom", _EASIER)
    warn_of_disorder(model.disorder, "fit_pom")


def _fit_path(
    X: MatrixLike,
    y: Labels,
    points: Sequence[Mapping[str, float]],
    products: object,
    X_test: object,
    **options: Any,
) -> tuple[list[PomModel], list[None]]:
    """Return one model per point (l1, l2), in the form that `register` takes."""
    penalties = [(point["l1"], point["l2"]) for point in points]
    models: list[PomModel] = []
    for _, group in groupby(penalties, any):  # without any penalty columns may go
        models += _fit(X, y, list(group), **options)
    return models, [None] * len(models)


def _path(
    prepared: PreparedPom, solver: PathSolver, lambdas: np.ndarray, ratio: float
) -> PomPath:
    """Return the models of the penalties, as far as time allows."""
    models: list[PomModel] = []
    null = null_loglik(solver.loss)
    for i, penalty in enumerate(lambdas.tolist()):
        l1, l2 = ratio * penalty, (1 - ratio) * penalty
        with prepared.monitor.numbered("penalty", i, lambdas.size):
            found = solver.solve(l1, l2)
        models.append(_model_of_net(prepared, solver, found, l1, l2, null))
        if found.status in (Status.MAX_TIME, Status.STOPPED):
            break
    return PomPath(
        lambdas=read_only(lambdas[: len(models)]),
        ratio=ratio,
        models=tuple(models),
        convergence=Convergence.of_parts([model.convergence for model in models]),
    )


def _middle(robust: bool, cluster: Any, design: Design, l1: float) -> Middle:
    middle = Middle.from_arguments(robust, cluster, design.n_samples)
    if middle.kind != "observed" and (l1 > 0 or has_many(design)):
        fits = "with l1 > 0" if l1 > 0 else f"of more than {HESSIAN_COLUMNS} features"
        raise ValueError(
            f"robust and cluster are of the covariance, which fits {fits} do without"
        )
    return middle


def _model_of_net(
    prepared: PreparedPom,
    solver: PathSolver,
    found: Solution,
    l1: float,
    l2: float,
    null: float | None = None,
) -> PomModel:
    """Return the model of a point of a path.

    `null` is the log-likelihood without features, if it is known.
    """
    x = np.concatenate([found.u, found.beta])
    nothing = np.zeros(0)
    point = Point(x, found.value, nothing, NONE)
    gap = (found.primal - found.dual) / solver.null.value
    end = Minimum(point, nothing, gap, found.status, found.n_iter)
    middle = Middle.from_arguments(False, None, prepared.problem.n_samples)
    objectives = found.primal, found.dual
    return _model(prepared, solver.loss, end, l2, middle, l1, objectives, null)


def _model(
    prepared: PreparedPom,
    loss: Likelihood,
    found: Minimum,
    l2: float,
    middle: Middle,
    l1: float = 0.0,
    objectives: tuple[float, float] | None = None,
    null: float | None = None,
) -> PomModel:
    """Return the model of a minimum, in the units of the features.

    `objectives` are primal and dual, where there is a dual.
    """
    design, point = loss.design, found.point
    primal, dual = objectives or (point.value, None)
    status, separated = found.status, np.zeros(0, dtype=np.int64)
    if l1 == 0:
        status, separated = judged(
            design, loss.link, point.x, found.step, status, l2 > 0, prepared.monitor
        )
    penalty = 0.5 * float(loss.price @ point.x**2)
    model = PomModel(
        **prepared.fields(design, point.x),
        covariance=covariance_of(loss, point, middle),
        covariance_type=middle.kind,
        l1=l1,
        l2=l2,
        loglik=-design.total * (point.value - penalty),
        null_loglik=null_loglik(loss) if null is None else null,
        separated=read_only(separated),
        convergence=prepared.monitor.record(
            status, found.n_iter, found.violation, primal, dual
        ),
    )
    if not design.is_chunked:
        remember(model, Remembered(loss, point.x, prepared.training.frame))
    return model


register(
    Method(
        fit_pom,
        name="pom",
        estimator="POM",
        accepts={"categories", "sparse"},
        full_rank=True,
        probabilities=True,
        grid={"l2": PENALTIES},
        varying=("l1", "l2"),
        fit_path=_fit_path,
        reads_chunks=True,
        by_row={"offset", "cluster"},
    )
)
