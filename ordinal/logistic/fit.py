"""Fits of LIT and LAT, logistic losses of a linear score, and their model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, Unpack

import numpy as np

from .._cumulative.design import HESSIAN_COLUMNS, Design, check_columns
from .._cumulative.separation import check_separation
from .._formula.coding import Coding
from .._input.checks import check_count, check_factor_or_zero, check_flag
from .._input.fields import (
    DISTINCT,
    FINITE,
    INCREASING,
    LABELS,
    NONNEGATIVE,
    RISING,
    SHARED,
    THRESHOLDS,
    Array,
    Length,
    Size,
)
from .._input.frame import default_names
from .._input.immutable import read_only
from .._input.problem import Problem, around_ranks
from .._input.sparse import CSR
from .._input.types import (
    ArrayLike,
    Blocks,
    ClassWeight,
    Labels,
    MatrixLike,
    Rng,
    RowsLike,
)
from .._model.explanation import Named, in_columns, linear_terms
from .._model.folds import calibrate, draw_few_folds, fold_shares
from .._model.labelled import MissingLabels
from .._model.links import CumulativeLink
from .._model.model import read_for
from .._model.preparation import Callback, Common, prepare, shared_arguments
from .._model.registry import BOTH_RULES, PENALTIES, Method, register
from .._model.support import finite_scores
from .._model.threshold_model import Scored
from .._numerics.rows import matvec
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import Reading
from .._watch.convergence import Convergence, Status, warn_of_separation
from .._watch.monitor import Monitor
from ..preprocessing.base import Preprocess
from ..preprocessing.model import preprocessed_in_columns
from ..preprocessing.tables import rows_behind, unit_of_chunks
from .objective import DescentEnd, ThresholdLoss, minimum


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearThresholdModel(Scored):
    """Score f(x) = x'coef, and thresholds on it.

    Attributes
    ----------
    method : str
        "lit" or "lat".
    coef : (c,) array, of the columns `column_names`
        Coefficients beta of (P2). Ranks increase with features whose coefficients are
        positive.
    thresholds : (r - 1,) array
        Thresholds theta, in order. They are -inf or +inf where no training rows lie
        beyond them, and equal on both sides of a rank that is never predicted: a rank
        without training rows or, in LIT, one whose thresholds would otherwise be out of
        order.
    l2 : float
    separated : int array
        Positions of the features that separate the ranks, which is possible only with
        l2 = 0. Their coefficients have no finite optimum; those of the model are where
        the fit ended. Empty otherwise.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Link from scores to probabilities; None unless fitted with `probability=True`.
    convergence : Convergence
        Record of the fit. Its `primal` is (P2). There is no dual.
    coding : Coding or None
        Conversion of the columns of a table to those of `coef`, by a preprocessor; None
        if they are the features themselves.
    """

    method: Literal["lit", "lat"]
    coef: Annotated[np.ndarray, Array("f8", "c"), FINITE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    separated: Annotated[np.ndarray, Array("i8", "_"), NONNEGATIVE, INCREASING]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    link: Annotated[CumulativeLink, SHARED] | None
    convergence: Convergence
    coding: Coding | None = field(default=None, kw_only=True)

    def _check(self) -> None:
        coding, c = self.coding, self.coef.size
        made = self.n_features if coding is None else len(coding.column_names)
        if made != c or (coding is not None and coding.n_features != self.n_features):
            raise ValueError(f"coef must have a coefficient for each of {made} columns")
        if (self.separated >= c).any():
            raise ValueError(f"separated must number the {c} columns of coef")

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of `coef`."""
        if self.coding is not None:
            return self.coding.column_names
        return self.feature_names or default_names(self.n_features)

    @property
    def categories(self) -> tuple[np.ndarray | None, ...] | None:
        """Levels of each categorical column, and None for each numeric one.

        None if all columns are numeric.
        """
        return None if self.coding is None else self.coding.categories

    def _columns(self, X: RowsLike) -> np.ndarray | CSR:
        """Return the columns of `coef` for rows."""
        return read_for(self, X) if self.coding is None else self.coding.transform(X)

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the score f(x) = x'coef, which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Returns
        -------
        (n,) array
            Scores in units of the logistic losses, which are log 2 = 0.69 on a
            threshold, 0.31 one unit away from it on the correct side, and 1.31 on the
            wrong side.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        rows = self._columns(X)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            scores = matvec(rows, self.coef)
        return finite_scores(scores)

    def _score_terms(self, X: MatrixLike) -> Named | None:
        columns, coding = self._columns(X), self.coding
        found = linear_terms(columns, self.coef, self.column_names)
        return found if coding is None else in_columns(found, coding.raw_names)


@preprocessed_in_columns
def fit_lit(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    l2: float = 1e-3,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> LinearThresholdModel:
    """Fit LIT: a linear model with a logistic loss at the two nearest thresholds.

    The docstring of `ordinal.logistic` states the problem (P2). Newton's method takes 3
    to 8 steps of O(n d^2) operations. With more than 2000 features, L-BFGS takes about
    100 steps of O(n d) operations, or proportional to the number of entries of a sparse
    X.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; standardise them first, because the penalty
        depends on their units. `predict` finds the columns of a data frame by their
        names. X may also be a source of chunks (`ordinal.data`) or a numpy.memmap,
        whose rows are read in every pass and need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    l2 : float >= 0, default 1e-3
        Penalty of (P2). The loss is a mean over rows, so that a good value does not
        depend on their number. With l2 = 0 there is no finite optimum if some linear
        combination of the features separates the ranks, which is likely with many
        features; the small default prevents this.
    tol : float > 0, default 1e-6
        Tolerance on the length of the next Newton step in the norm of the Hessian of
        the sum of losses; (P2) is then within tol^2 / (2 W) of its minimum. For L-BFGS,
        tolerance on the partial derivatives of (P2) by the coefficients of features
        scaled to unit standard deviation.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Coding of the table that is fitted to X first, as in `select`. The model states
        its coefficients in the columns of X; behind a preprocessor that scales, only
        the penalty sees scaled columns.
    probability : bool, default False
        Whether to calibrate the probabilities of `predict_proba`. This takes five more
        fits, each of which leaves out a fifth of the rows, whose scores are then used.
        If rows are read in chunks, a fit leaves out a fifth, at most 10 000 rows, and
        there are as many fits as are needed to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds of `probability`. Unused
        without it.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Limit on the number of steps of Newton's method or of L-BFGS.
    max_time : float > 0, optional
        Time budget in seconds, checked before and during every step. When it is
        exhausted, the fit returns its best point so far, with a warning.
    callback : callable, optional
        Called with an `ordinal.models.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    LinearThresholdModel

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is unusable; nothing has been computed then.

    Warns
    -----
    ConvergenceWarning
        If the fit, or one of the fits for `probability`, stopped before it reached the
        tolerance; the message names the reason and the remedy. Also if l2 = 0 and
        features separate the ranks, so that there is no finite optimum: the message
        names them, and the status is `Status.SEPARATED`.

    See Also
    --------
    fit_lat : Fit LAT: a linear model with a logistic loss at every threshold.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.
    ordinal.fit_svorex : Fit SVOREX: margins at the two nearest thresholds, which are
        kept in order.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_lit(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.coef.shape, model.thresholds.shape
    ((2,), (2,))
    """
    return _fit_thresholded(
        "fit_lit",
        X,
        y,
        l2,
        probability,
        max_iter,
        preprocess,
        **shared_arguments(Common, locals()),
    )


@preprocessed_in_columns
def fit_lat(
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    l2: float = 1e-3,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    preprocess: Preprocess | None = None,
    probability: bool = False,
    rng: Rng = 0,
    n_threads: int | None = None,
    max_iter: int = 1000,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> LinearThresholdModel:
    """Fit LAT: a linear model with a logistic loss at every threshold.

    The docstring of `ordinal.logistic` states the problem (P2). Rennie and Srebro found
    this loss to be the best of theirs: an error of k ranks costs k terms, so that the
    loss is an upper bound of the absolute error, while that of LIT is one of the number
    of errors. It is the logistic regression of y > j on x for all j at once with common
    coefficients. A step takes O(n (d^2 + r)) operations.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Features, one row per observation; standardise them first, because the penalty
        depends on their units. `predict` finds the columns of a data frame by their
        names. X may also be a source of chunks (`ordinal.data`) or a numpy.memmap,
        whose rows are read in every pass and need not fit in memory.
    y : (n,) array-like, or None if X is a source of chunks
        Labels: numbers, whose order is the rank order, an ordered categorical, or
        strings together with `classes`. `RankIntervals` are ranks that are known as
        intervals only.
    l2 : float >= 0, default 1e-3
        Penalty of (P2). The loss is a mean over rows, so that a good value does not
        depend on their number. With l2 = 0 there is no finite optimum if some linear
        combination of the features separates the ranks, which is likely with many
        features; the small default prevents this.
    tol : float > 0, default 1e-6
        Tolerance on the length of the next Newton step in the norm of the Hessian of
        the sum of losses; (P2) is then within tol^2 / (2 W) of its minimum. For L-BFGS,
        tolerance on the partial derivatives of (P2) by the coefficients of features
        scaled to unit standard deviation.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows; weight 2 has the same effect as writing the row twice.
        Their sum must lie between 1e-50 and 1e50, and the ratio of two positive weights
        must not exceed 1e15.
    class_weight : mapping of labels to weights, or "balanced", optional
        Factors by which the weights of the rows are multiplied, per label; "balanced"
        gives all ranks the same total weight. The limits of `sample_weight` hold for
        the products.
    classes : sequence of labels in rank order, optional
        Required if y holds strings. It may list ranks that do not occur in y; these are
        never predicted.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. The attribute `n_missing_labels` counts them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Coding of the table that is fitted to X first, as in `select`. The model states
        its coefficients in the columns of X; behind a preprocessor that scales, only
        the penalty sees scaled columns.
    probability : bool, default False
        Whether to calibrate the probabilities of `predict_proba`. This takes five more
        fits, each of which leaves out a fifth of the rows, whose scores are then used.
        If rows are read in chunks, a fit leaves out a fifth, at most 10 000 rows, and
        there are as many fits as are needed to leave out rows of every rank.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds of `probability`. Unused
        without it.
    n_threads : int, optional
        Number of threads. Default: the environment variable ORDINAL_NUM_THREADS or,
        without it, the number of processors that this process may use. The result does
        not depend on it, to the last bit (docs/guides/threads.md).
    max_iter : int, default 1000
        Limit on the number of steps of Newton's method or of L-BFGS.
    max_time : float > 0, optional
        Time budget in seconds, checked before and during every step. When it is
        exhausted, the fit returns its best point so far, with a warning.
    callback : callable, optional
        Called with an `ordinal.models.State` after every step; a true value stops.
    verbose : bool, default False
        Whether to report progress on stderr: on a terminal one line that is updated in
        place, elsewhere, as in a notebook, one line every ten seconds.

    Returns
    -------
    LinearThresholdModel

    Raises
    ------
    ValueError, TypeError
        As in `fit_lit`.

    Warns
    -----
    ConvergenceWarning
        As in `fit_lit`.

    See Also
    --------
    fit_lit : Fit LIT: a linear model with a logistic loss at the two nearest
        thresholds.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.
    ordinal.fit_svorim : Fit SVORIM: every row has a margin at every threshold.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.companions.fit_lat(X, y, probability=True)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    >>> model.predict_proba([[15.0, 15.0]]).argmax(axis=1)
    array([1])
    """
    return _fit_thresholded(
        "fit_lat",
        X,
        y,
        l2,
        probability,
        max_iter,
        preprocess,
        **shared_arguments(Common, locals()),
    )


def _fit_thresholded(
    name: str,
    X: MatrixLike | Blocks,
    y: Labels | None,
    l2: float,
    probability: bool,
    max_iter: int,
    preprocess: Preprocess | None,
    **common: Unpack[Common],
) -> LinearThresholdModel:
    """Fit the model of `fit_lit` or `fit_lat`, by name."""
    l2 = check_factor_or_zero("l2", l2)
    probability = check_flag("probability", probability)
    max_iter = check_count("max_iter", max_iter)
    weight = common.get("sample_weight")
    X, coding, unit = rows_behind(preprocess, X, weight)
    prepared = prepare(name, X, y, Reading(True, remote=False), **common)
    problem = prepared.problem
    if preprocess is not None and isinstance(problem, ChunkedProblem):
        unit = unit_of_chunks(problem)
    if problem.n_features > HESSIAN_COLUMNS:
        check_columns(name, problem.n_features)
    deal = draw_few_folds if isinstance(problem, ChunkedProblem) else fold_shares
    share = deal(problem, prepared.rng) if probability else None
    with prepared.monitor:

        def fit(
            part: Problem, train: np.ndarray | None = None
        ) -> list[LinearThresholdModel]:
            loss = ThresholdLoss(part, name == "fit_lit", l2, prepared.n_threads, unit)
            found = minimum(loss, max_iter, prepared.monitor)
            return [_model(part, loss, found, l2, prepared.monitor)]

        model: LinearThresholdModel
        (model,) = calibrate(fit(problem), problem, share, fit, prepared.monitor)
        prepared.monitor.conclude(model, warn=partial(_warn, name, problem))
    if coding is None:
        return model
    d, known = coding.n_features, coding.feature_names
    return replace(model, coding=coding, n_features=d, feature_names=known)


def _model(
    problem: Problem,
    loss: ThresholdLoss,
    found: DescentEnd,
    l2: float,
    monitor: Monitor,
) -> LinearThresholdModel:
    """Return the model of a minimum."""
    coef = found.point.x / loss.spread
    b = found.point.b + loss.centre @ coef
    status, separated = found.status, np.zeros(0, dtype=np.int64)
    # Only without a penalty can V fall for ever along a direction.
    if l2 == 0:
        status, separated = _check_separation(problem, found, monitor)
    present = np.flatnonzero(problem.present)
    return LinearThresholdModel(
        method="lit" if loss.beside else "lat",
        coef=read_only(coef),
        thresholds=read_only(around_ranks(b, present, problem.n_classes)),
        l2=l2,
        separated=read_only(separated),
        **problem.model_fields(),
        link=None,
        convergence=monitor.record(
            status, found.n_iter, found.violation, found.point.value
        ),
    )


def _check_separation(
    problem: Problem, found: DescentEnd, monitor: Monitor
) -> tuple[Status, np.ndarray]:
    """Return the status of the fit, and the features that separate the ranks."""
    every, none = np.arange(problem.n_features), np.zeros(0, dtype=np.int64)
    design = Design.from_problem(problem, every, none, none, None, "flexible")
    x = np.concatenate([found.point.b, found.point.x])
    return check_separation(
        design, "logit", x, found.step, found.status, False, monitor
    )


def _warn(name: str, problem: Problem, model: LinearThresholdModel) -> None:
    """Warn of separated ranks, or unless the model has converged."""
    if model.separated.size:
        names = [problem.shown_names[j] for j in model.separated]
        warn_of_separation(names, name, "l2 > 0 gives finite ones")
    else:
        model.convergence.warn_unless_converged(name)


register(
    Method(
        fit_lit,
        name="lit",
        estimator="LIT",
        own_rule="threshold",
        keeps_rule=BOTH_RULES,
        accepts={"sparse"},
        grid={"l2": PENALTIES},
        reads_chunks=True,
    )
)
register(
    Method(
        fit_lat,
        name="lat",
        estimator="LAT",
        own_rule="threshold",
        keeps_rule=BOTH_RULES,
        accepts={"sparse"},
        grid={"l2": PENALTIES},
        reads_chunks=True,
    )
)
