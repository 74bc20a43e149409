"""Choosing arguments of a fit by cross-validation.

A score is the mean over folds of a metric of the fold's test rows. Among points whose
means are equal the least C wins, then the least gamma, then the least of the other
arguments in the order in which they were given; values that are no numbers count in
that order as well.
"""

from __future__ import annotations  # numpy.random is slow to import

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np

from .._input.checks import resolve_rng, shown
from .._input.fields import NONNEGATIVE, Array, Length
from .._input.immutable import Immutable, read_only
from .._input.types import (
    ArrayLike,
    Blocks,
    Executor,
    Labels,
    MatrixLike,
    Rng,
    RowsLike,
)
from .._input.warning import each_warning_once
from .._model.explanation import Explanation
from .._model.labelled import (
    Labelled,
    MissingLabels,
    counted,
    numbered_as_caller,
    with_origin,
)
from .._model.model import Model
from .._model.preparation import shared_arguments
from .._model.printing import Page, Table, html_notes, left_out
from .._model.registry import resolve_fit
from .._model.storage import Storable
from .._model.views import views
from .._watch.convergence import Status
from .._watch.progress import Progress
from ..preprocessing.base import Preprocess
from .data import RowArguments
from .scheduler import Store, run
from .scoring import Rule, Scoring, rules_of, scorers_of
from .search import Search, Trials, halving_from, mean_score, splits_of, standard_error
from .spaces import Point, Space, columns_of, described, resolve_space
from .splits import Splits, SplitsLike, drawn_folds
from .work import Work
from .workers import Workers

_BEST_SHOWN = 10  # points in a notebook


@dataclass(frozen=True, slots=True)
class Failure(Immutable):
    """Fit without a score.

    Attributes
    ----------
    point, fold : int
        Positions in `points` and among the splits.
    params : dict
    reason : str
        Type and message of the exception, or the score if it is not a finite number.
    """

    point: int
    fold: int
    params: Point
    reason: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Selection(Storable):
    """Result of `select`. Points are in the order in which they were tried.

    Attributes
    ----------
    points : tuple of dict
        The p points: hyperparameters as arguments of the `fit_*` function.
    stage : (p,) int array
        Stage of the search in which each point was tried, counted from 0.
    rows : (p,) int array
        Number of training rows of a fold to which each point was last fitted. It is
        smaller for points that successive halving has dropped, which are never chosen.
    scores : (p, k) array
        Score of each point in each of the k folds; nan where a fit failed.
    others : dict of str to (p, k) array
        Scores of the other metrics, if `scoring` named several.
    status : (p, k) array of str
        Status of each fit: a value of `ordinal.models.Status`, "failed", or "fitted"
        for a model without the attribute `convergence`.
    seconds : (p, k) array
        Time of fitting and scoring; for points that are fitted together, the mean.
    reasons : (p, k) array of str
        Reason why a fit has no score, or an empty string; `failures` lists them.
    best, one_se : int
        Position of the point with the best mean score, and of the simplest point whose
        mean is within one standard error of it: the first in the order that breaks ties
        (smallest C, then smallest gamma).
    scoring : str
    greater_is_better : bool
    splits : list of (train_idx, test_idx)
    model : PreprocessedModel, or what `fit` returned, or None
        Model fitted to all rows with the best point or that of `one_se`, according to
        `refit`.
    damaged : int
        Number of entries of the store that were damaged or held something else, so that
        their tasks were run again. `nested` counts those of all its searches.
    n_missing_labels : int
        Number of rows that `missing_labels="drop"` left out; `splits` number the
        others.
    rules : dict of str to str
        Per metric of labels, the rule of the predictions that were scored. `predict`
        uses that of `scoring`.

    Notes
    -----
    `save` writes it to a file that `ordinal.load` reads. It raises TypeError if a
    point, an option or the model holds a function, which cannot be saved.
    """

    points: Annotated[tuple[Point, ...], Length("p")]
    stage: Annotated[np.ndarray, Array("i8", "p")]
    rows: Annotated[np.ndarray, Array("i8", "p"), NONNEGATIVE]
    scores: Annotated[np.ndarray, Array("f8", "p k")]
    others: dict[str, Annotated[np.ndarray, Array("f8", "p k")]]
    status: Annotated[np.ndarray, Array("U", "p k")]
    seconds: Annotated[np.ndarray, Array("f8", "p k"), NONNEGATIVE]
    reasons: Annotated[np.ndarray, Array("U", "p k")]
    best: Annotated[int, NONNEGATIVE]
    one_se: Annotated[int, NONNEGATIVE]
    scoring: str
    greater_is_better: bool
    splits: Annotated[Splits, Length("k")]
    model: Model | None = None
    damaged: Annotated[int, NONNEGATIVE] = 0
    n_missing_labels: Annotated[int, NONNEGATIVE] = field(default=0, kw_only=True)
    rules: dict[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Fits without a score; their points are never chosen."""
        return tuple(
            Failure(int(p), int(k), dict(self.points[p]), str(self.reasons[p, k]))
            for p, k in np.argwhere(self.reasons != "")
        )

    @property
    def mean(self) -> np.ndarray:
        """Mean score of each point over the folds, (p,); nan if a fit failed."""
        return mean_score(self.scores)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard errors of the means over the folds, (p,)."""
        return standard_error(self.scores)

    @property
    def params(self) -> Point:
        """Return the arguments of the best point by their names."""
        return dict(self.points[self.best])

    @property
    def best_score(self) -> float:
        """Return the mean score of the chosen point."""
        return float(self.mean[self.best])

    @property
    def preprocessor(self) -> Any:
        """Return the preprocessor of the refitted model, or None.

        Linear models have a `coding` of their own instead.
        """
        return getattr(self.model, "preprocessor", None)

    @property
    def classes(self) -> np.ndarray:
        """Labels of the refitted model in rank order, (r,)."""
        return np.asarray(self._fitted().classes)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns that the refitted model looks up in a data frame."""
        names: tuple[str, ...] | None = getattr(self._fitted(), "feature_names", None)
        return names

    def predict(self, X: RowsLike, **rule: Any) -> np.ndarray:
        """Predict labels, (n,), for rows of raw features by the refitted model.

        Without `rule`, they follow the rule by which points were scored.

        Raises ValueError if there is no refitted model.
        """
        return self._fitted().predict(X, **rule)  # type: ignore[no-any-return]

    def predict_proba(self, X: RowsLike, **how: Any) -> np.ndarray:
        """Return `predict_proba` of the refitted model for rows of raw `X`."""
        return self._fitted().predict_proba(X, **how)  # type: ignore[no-any-return]

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the `decision_function` of the refitted model for raw `X`."""
        return np.asarray(self._fitted().decision_function(X))

    def explain(
        self,
        X: RowsLike,
        y: Labels | None = None,
        *,
        n_repeats: int = 5,
        rng: Rng = 0,
    ) -> Explanation:
        """Return `explain` of the refitted model, by raw features."""
        found = self._fitted().explain(X, y, n_repeats=n_repeats, rng=rng)
        return cast(Explanation, found)

    def score(
        self,
        X: RowsLike,
        y: Labels,
        *,
        scoring: Scoring = "mae",
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return `score` of the refitted model for rows of raw `X`."""
        how = {"scoring": scoring, "sample_weight": sample_weight}
        return float(self._fitted().score(X, y, **how))

    def report(
        self,
        X: RowsLike | str,
        y: Labels,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "",
    ) -> Page | None:
        """Return or write the report of the refitted model, as `Model.report`."""
        page: Page | None = self._fitted().report(X, y, path, title=title)
        return page

    def table(self) -> Table:
        """Return a table with one row per point, the best first.

        Points without a score and points dropped by successive halving come last. The
        columns are the position in `points`, the stage, the training rows, the
        hyperparameters, mean and standard error of the score, the score in every fold,
        the number of failed fits, and the seconds.
        """
        order = np.argsort(self._losses(), kind="stable")
        columns = {"point": np.arange(order.size), "stage": self.stage}
        columns |= {"rows": self.rows, **columns_of(self.points)}
        columns["mean"], columns["standard_error"] = self.mean, self.standard_error
        for k, scores in enumerate(self.scores.T):
            columns[f"fold_{k}"] = scores
        columns["failed"] = np.isnan(self.scores).sum(axis=1)
        columns["seconds"] = self.seconds.sum(axis=1)
        return Table({name: values[order] for name, values in columns.items()})

    def __repr__(self) -> str:
        error, rule = self.standard_error[self.best], self.rules.get(self.scoring)
        by_rule = "" if rule is None else f" by the rule {rule}"
        n_cut = np.count_nonzero(self.status == Status.MAX_TIME.value)
        cut = f", {n_cut} cut short by max_time" if n_cut else ""
        return (
            f"Selection({described(self.params)}: {self.scoring} {self.best_score:.4g} "
            f"± {error:.2g}{by_rule}; {len(self.points)} points, "
            f"{self.scores.shape[1]} folds, {len(self.failures)} failed fits{cut}"
            f"{left_out(self.n_missing_labels)})"
        )

    def plot(
        self, ax: Any = None, *, x: str | None = None, y: str | None = None
    ) -> Any:
        """Draw the search by `ordinal.plot.search`; ImportError without matplotlib."""
        return views().search(self, ax, x, y)

    if not TYPE_CHECKING:  # it would make every attribute known
        __getattr__ = Model.__getattr__

    def _repr_html_(self) -> str:
        best = {
            name: values[:_BEST_SHOWN]
            for name, values in self.table().items()
            if not name.startswith("fold_")
        }
        return html_notes([repr(self)]) + Table(best)._repr_html_()

    def _losses(self) -> np.ndarray:
        """Return (p,) means of the points that were judged on all rows, less being
        better.
        """
        losses = -self.mean if self.greater_is_better else self.mean.copy()
        losses[self.rows < self.rows.max()] = np.inf
        return losses

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame; raise ImportError without pandas."""
        return self.table().to_pandas()

    @property
    def _wrapped(self) -> Any:
        return self.model

    def _fitted(self) -> Any:
        return model_in(self)

    def _check(self) -> None:
        if not (self.splits and max(self.best, self.one_se) < len(self.points)):
            raise ValueError(
                "best and one_se must number points, and splits must not be empty"
            )


def model_in(found: Any) -> Any:
    """Return the model that a Selection or an estimator of `ordinal.sklearn` holds, and
    all else as it is.

    ValueError if the search has refitted none.
    """
    if isinstance(found, Selection):
        if found.model is None:
            raise ValueError("there is no model: the search was run with refit=False")
        return found.model
    return getattr(found, "model_", found)


@each_warning_once
def select(
    fit: Callable[..., Any] | str,
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    search: Space | Mapping[str, Sequence[Any]] | None = None,
    n_iter: int | None = None,
    cv: SplitsLike = 5,
    scoring: Scoring | Sequence[Scoring] = "mae",
    greater_is_better: bool | None = None,
    rule: Rule | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    preprocess: Preprocess | None = None,
    standardize: bool | None = None,
    refit: bool | Literal["one_se"] = True,
    halving: bool | None = None,
    progress: bool | None = None,
    n_threads: int | None = None,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    rng: Rng = 0,
    **options: Any,
) -> Selection:
    """Tune the hyperparameters of a method by cross-validation, and refit it.

    The preprocessing, by default standardisation, is fitted to the training rows of
    each fold and becomes part of the refitted model. A fit that fails is recorded with
    its reason, and its point is not chosen. The result does not depend on the executor,
    the number of threads or the order in which tasks end.

    Parameters
    ----------
    fit : callable or str
        A `fit_*` function, a `functools.partial` of one, or a function of (X, y,
        **point) that returns an object with `predict`. Or the name of a method in the
        command, such as "svorim" or "gpor-ep".
    X : (n, d) array-like or data frame, or sparse matrix with standardize=False
        Raw features. The model finds the columns of a data frame by their names.
        Methods such as `fit_xofm` accept categories and missing values; for others, see
        `preprocess`. With the option `basis` or a linear kernel, X may also be a source
        of chunks (`ordinal.data`) or a numpy.memmap, which every fit and every score
        reads again; or, without executor and store, a dask array or data frame, whose
        rows remain at the workers.
    y : (n,) array-like, or None if X is a source of chunks
        Labels as for the `fit_*` functions.
    search : dict, Grid, CoarseToFine, UniformDesign, or an object with their `stages`
        Search space; a dict of lists is a grid. Default: the grid that is registered
        for the method, without the arguments that have a value in `options` and
        without gamma for a kernel that does not take it. Methods that optimise their
        own hyperparameters, such as `fit_gpor`, have a single point.
    n_iter : int, optional
        Number of points to draw at random, without replacement, from a grid. Default:
        all points.
    cv : int, sequence of (train_idx, test_idx), or splitter, default 5
        Number of folds for `stratified_kfold`, 5 as in the papers; a list of splits,
        such as those of `stratified_holdout`; or an object with `split(X, y)`, such as
        the splitters of scikit-learn. Such an object receives the labels and the
        features, or the (n, 1) row numbers instead of features that are sparse or read
        in chunks.
    scoring : str, callable or sequence of them, default "mae"
        Name of a metric of `ordinal.metrics`, or a function of (true labels, predicted
        labels). A function with a true attribute `needs_proba` receives the (n, r)
        probabilities instead of predicted labels. If there are several metrics, the
        first one decides and the others are recorded. "rps" and "log_loss" need models
        with probabilities. "kappa" has quadratic weights.
    greater_is_better : bool, optional
        Whether larger values of a callable `scoring` are better. It is known for the
        metrics of `ordinal.metrics` and for functions of `sklearn.metrics` whose names
        end with "_score", "_loss" or "_error", also within `functools.partial`, and
        required for others.
    rule : {"own", "mode", "median", "cost"}, optional
        Rule of the predictions that are scored, and by which the result predicts: the
        method's own, the most probable rank, the median of the probabilities, or the
        rank of least expected cost. Default: the one that belongs to the metric, which
        is the mode for "mze", "accuracy", "gm", "ms" and "gmsec" and the median for the
        other metrics of `ordinal.metrics`, except where a method's own rule was as
        accurate on the data sets of docs/accuracy.md and probabilities would take five
        more fits; and the own rule for a callable `scoring`.
    classes : sequence of labels in rank order, optional
        As for the `fit_*` functions; required if labels are strings.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. Row numbers in `cv` are those of all rows.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows in fits, standardisation and scores (unless `scoring` is a
        callable).
    groups : (n,) array-like, optional
        Group of each row, such as a patient or rater. Rows of a group are in the same
        fold: folds are drawn by `stratified_kfold` with `groups`, a splitter receives
        the groups, too, and splits with a group on both sides are an error. So are they
        in the folds by which `fit_boosting` chooses its number of rounds. The folds of
        a fit for `probability` do not take groups into account.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Preprocessing instead of `standardize`. A TablePreprocessor encodes categories,
        imputes missing values and standardises. It is the default, as in `compare`, if
        X holds categories or missing values that the method, or standardising, does not
        accept. The `fit_*` functions have the same
        parameter: `fit(X, y, preprocess=..., **params)` is the refitted model, where
        the class Standardizer corresponds to standardize=True. Arguments of the fit
        that name columns, such as `monotone`, refer to its output columns,
        `feature_names_out`; those of linear models may name terms, which are the
        columns of X.
    standardize : bool, optional
        Whether to scale features to mean 0 and standard deviation 1. If it is given,
        categories and missing values that are not accepted are an error. Default: True,
        except for methods that do not depend on the scale of features, such as
        `fit_xofm`, whose explanations are in the units of the table.
    refit : bool or "one_se", default True
        Whether to fit a model to all rows, with the best point or, for "one_se", with
        that of `one_se`.
    halving : bool, optional
        Whether to use successive halving: all points are fitted to a sample of the
        training rows of each fold, the better half of them to three times as many rows
        (the better third after samples of 4000 rows), and so on until all rows are
        used. Samples have at least 300 rows. Their fits are scored on the same share of
        the test rows, or on 5000 if that is more; those of support vector methods
        ignore `basis` if the sample has at most five rows per basis row. Default: True
        for registered grids with 1500 training rows or more, False if `search` is
        given. On five splits of each of five data sets, with 3200 training rows per
        fold, halving took a quarter of the time, and the error was .0002 higher on
        average and .005 at most.
    progress : bool, optional
        Whether to report the number of finished fits, the best score so far and the
        remaining time on stderr: on a terminal one line that is updated in place,
        elsewhere, as in a notebook, one line every ten seconds. Default: after 5 s on a
        terminal or in a notebook.
    n_threads : int, optional
        Number of threads. Without an executor, tasks run in parallel on this many
        threads (default as for the fits), with one thread per fit. If `fit` or `kernel`
        is a function of the caller, which may not be thread-safe, or if X is read in
        chunks, tasks run one after the other with this many threads per fit. With an
        executor, number of threads per fit (default 1).
    executor : concurrent.futures.Executor or the like, optional
        Object with a method `submit` that returns futures of `concurrent.futures`, such
        as a thread or process pool, `client.get_executor()` of dask.distributed, or
        mpi4py.futures. Tasks carry row numbers only; X is sent to each worker once,
        through a file in the folder for temporary files or, if the worker cannot read
        it, with a task. The workers must be able to import the functions. Replacing
        lost workers is left to the executor.
    store : path of a folder, optional
        Folder for the results of finished tasks. A later search with the same
        arguments, or with the same metrics in another order, reads them. Damaged
        results are computed again and counted in `damaged`.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds.
    **options
        Other arguments of every fit, such as `kernel` or `solver`. With
        probability=True, the refitted model has calibrated probabilities. The fits in
        the folds have them only if `scoring` or the rule needs probabilities, and then
        the refitted model has them, too.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError, TypeError
        If the data, the search or an argument is invalid, which is checked before the
        first fit. ValueError is also raised if no point could be fitted, or has a
        finite score, in all folds, with the first reason.

    See Also
    --------
    compare : Compare methods by cross-validation.
    ordinal.model_selection.nested : Estimate the error of tuned models by hold-outs
        with a search in each.
    cross_conformal : Fit a model and calibrate its prediction sets on the same rows.
    ordinal.plot.search : Plot mean scores of a search over two arguments, or the chosen
        points.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> found = ordinal.select("svorim", X, y)
    >>> found.scores.shape, len(found.failures)
    ((25, 5), 0)
    >>> grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
    >>> found = ordinal.select(ordinal.fit_svorim, X, y, search=grid)
    >>> len(found.points)
    6
    >>> found.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    """
    labelled = Labelled.from_arguments(
        missing_labels, X, y, options, sample_weight=sample_weight, groups=groups
    )
    X, y, cv = labelled.X, labelled.y, labelled.renumbered(cv)
    sample_weight, groups = labelled.by_row["sample_weight"], labelled.by_row["groups"]
    by_error = isinstance(refit, str) and refit == "one_se"
    if not (isinstance(refit, bool | np.bool_) or by_error):
        raise ValueError(f"refit must be True, False or 'one_se', got {shown(refit)}")
    line = Progress.from_argument(progress)
    fit, rng = resolve_fit(fit), resolve_rng(rng)
    from_rows = halving_from(halving, search)
    search = resolve_space(search, fit, options, n_iter, rng)
    scorers = scorers_of(scoring, greater_is_better)
    given = shared_arguments(RowArguments, locals())
    searched = getattr(search, "values", ())
    with numbered_as_caller(labelled.keep):
        work = Work.from_arguments(fit, X, y, scorers, options, rule, searched, **given)
    rows = np.arange(len(work.data.y))
    folds = partial(drawn_folds, rng=rng)
    splits = splits_of(cv, "cv", rows, work.data, folds)
    job = Search(work, search, rows, splits, line, from_rows)
    workers = Workers(work, search, executor, n_threads)
    (trials,), damaged = run([job], workers, Store.from_argument(store, work), line)
    found = replace(
        selection_of(trials, splits),
        damaged=damaged,
        n_missing_labels=labelled.n_missing,
    )
    if not refit:
        return found
    chosen = found.one_se if by_error else found.best
    threads = n_threads if executor is None else None
    model = work.refitted(found.points[chosen], threads)
    with_origin(counted(model, labelled), labelled.X, labelled.y)
    return replace(found, model=model)


def selection_of(trials: Trials, splits: Splits) -> Selection:
    """Return the record of a search that has ended, without a model."""
    outcomes, scorers, best = trials.outcomes(), trials.scorers, trials.best()
    assert best is not None

    def table(name: str) -> np.ndarray:
        return read_only(np.array([[getattr(o, name) for o in of] for of in outcomes]))

    return Selection(
        points=tuple(trials.points),
        stage=read_only(np.array(trials.stage)),
        rows=read_only(np.array(trials.rows)),
        scores=read_only(trials.scores()),
        others={
            s.name: read_only(trials.scores(m)) for m, s in enumerate(scorers) if m
        },
        status=table("status"),
        seconds=table("seconds"),
        reasons=table("failure"),
        best=best,
        one_se=trials.one_se(),
        scoring=scorers[0].name,
        greater_is_better=scorers[0].greater_is_better,
        splits=[(read_only(train), read_only(test)) for train, test in splits],
        rules=rules_of(scorers),
    )
