"""Choosing arguments of a fit by cross-validation.

A score is the mean over folds of a metric of the fold's test rows. Among points whose
means are equal the least C wins, then the least gamma, then the least of the other
arguments in the order in which they were given; values that are no numbers count in
that order as well.
"""

from __future__ import annotations  # numpy.random is slow to import

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, cast

import numpy as np

from .._input.checks import resolve_rng, shown
from .._input.fields import NONNEGATIVE, Array, Length
from .._input.sparse import Immutable, read_only
from .._input.types import ArrayLike, Blocks, Labels, MatrixLike, Rng
from .._model.explanation import Explanation
from .._model.grouping import group_numbers
from .._model.model import Model, with_labels_like
from .._model.printing import Table, html_notes
from .._model.registry import resolve_fit
from .._model.storage import Storable
from .._watch.progress import Progress
from ..preprocessing.joined import Preprocess
from .scheduler import Executor, run
from .scoring import Scoring, scorers_of
from .search import (
    Search,
    Trials,
    halving_from,
    mean_score,
    splits_of,
    standard_error,
)
from .spaces import Point, Space, columns_of, described, resolve_space
from .splits import Splits, SplitsLike, drawn_folds
from .work import Work

_BEST_SHOWN = 10  # points in a notebook


@dataclass(frozen=True, slots=True)
class Failure(Immutable):
    """A fit that gave no score.

    Attributes
    ----------
    point, fold : int
        Where in `points` and among the splits.
    params : dict
    reason : str
        Type and message of what was raised, or the score that is no number.
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
        The p points, as arguments of the `fit_*` function.
    stage : (p,) int array
        In which stage of the search each was tried, from 0.
    rows : (p,) int array
        How many training rows of a fold each was last fitted to: fewer than others for
        a point that successive halving has dropped, which is never chosen.
    scores : (p, k) array
        Of each point in each of the k folds; nan where a fit failed.
    others : dict of str to (p, k) array
        Scores of the other metrics, if `scoring` named several.
    status : (p, k) array of str
        How each fit ended: a value of `ordinal.Status`, "failed", or "fitted" for a
        model without a `convergence`.
    seconds : (p, k) array
        Of fit and scoring; of a path, which fits several points, the mean.
    reasons : (p, k) array of str
        Why a fit has no score, empty where it has one; `failures` lists them.
    best, one_se : int
        The point with the best mean, and the one that comes first in the order of
        ties (least C, least gamma) of those whose mean is within one standard error of
        that: the simplest that is not clearly worse.
    scoring : str
    greater_is_better : bool
    splits : list of (train_idx, test_idx)
    model : PreprocessedModel, or what `fit` returned, or None
        Fitted to all rows at the best point, or at that of `one_se`, as `refit` asked.
    damaged : int
        How many entries of the store were damaged or held something else, so that their
        tasks were done again; `nested` counts those of all its searches.

    Notes
    -----
    `save` writes it to a file that `ordinal.load` reads; TypeError if a point, an
    option or the model holds a function, which a file cannot.
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

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Every fit without a score. A point with one is never chosen."""
        return tuple(
            Failure(int(p), int(k), dict(self.points[p]), str(self.reasons[p, k]))
            for p, k in np.argwhere(self.reasons != "")
        )

    @property
    def mean(self) -> np.ndarray:
        """(p,) mean score of each point over the folds; nan if a fit failed."""
        return mean_score(self.scores)

    @property
    def standard_error(self) -> np.ndarray:
        """(p,) of each mean: the folds' deviation over the root of their number."""
        return standard_error(self.scores)

    @property
    def params(self) -> Point:
        """Return the arguments of the best point by their names."""
        return dict(self.points[self.best])

    @property
    def score(self) -> float:
        """Return the mean score of the chosen point."""
        return float(self.mean[self.best])

    @property
    def preprocessor(self) -> Any:
        """Return the preprocessor of the refitted model, or None."""
        return getattr(self.model, "preprocessor", None)

    @property
    def classes(self) -> np.ndarray:
        """(r,) labels of the refitted model in rank order."""
        return np.asarray(self._fitted().classes)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Columns by which the refitted model finds its features in a data frame."""
        names: tuple[str, ...] | None = getattr(self._fitted(), "feature_names", None)
        return names

    def predict(self, X: MatrixLike, **rule: Any) -> np.ndarray:
        """(n,) labels for the rows of raw `X` by the refitted model; ValueError if
        there is none.
        """
        return self._fitted().predict(X, **rule)  # type: ignore[no-any-return]

    def predict_proba(self, X: MatrixLike, **how: Any) -> np.ndarray:
        """Return `predict_proba` of the refitted model for rows of raw `X`."""
        return np.asarray(self._fitted().predict_proba(X, **how))

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the `decision_function` of the refitted model for raw `X`."""
        return np.asarray(self._fitted().decision_function(X))

    def explain(
        self,
        X: MatrixLike,
        y: Labels | None = None,
        *,
        n_repeats: int = 5,
        rng: Rng = 0,
    ) -> Explanation:
        """Return `explain` of the refitted model, by raw features."""
        found = self._fitted().explain(X, y, n_repeats=n_repeats, rng=rng)
        return cast(Explanation, found)

    def report(
        self,
        path: str | os.PathLike[str],
        X: MatrixLike,
        y: Labels,
        *,
        title: str = "",
    ) -> None:
        """Write the page of `Model.report` about the refitted model."""
        self._fitted().report(path, X, y, title=title)

    def table(self) -> Table:
        """Return a row per point, the best first, and last those without a score or
        dropped by halving: its number in `points`, stage, training rows, every
        argument, mean, standard error, the score in every fold, failed fits, seconds.
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
        error = self.standard_error[self.best]
        return (
            f"Selection({described(self.params)}: {self.scoring} {self.score:.4g} "
            f"± {error:.2g}; {len(self.points)} points, {self.scores.shape[1]} folds, "
            f"{len(self.failures)} failed fits)"
        )

    def _repr_html_(self) -> str:
        best = {
            name: values[:_BEST_SHOWN]
            for name, values in self.table().items()
            if not name.startswith("fold_")
        }
        return html_notes([repr(self)]) + Table(best)._repr_html_()

    def _losses(self) -> np.ndarray:
        """(p,) means of the points that were judged on all rows, less being better."""
        losses = -self.mean if self.greater_is_better else self.mean.copy()
        losses[self.rows < self.rows.max()] = np.inf
        return losses

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame; ImportError without pandas."""
        return self.table().to_pandas()

    def _fitted(self) -> Any:
        return model_in(self)

    def _check(self) -> None:
        if not (self.splits and max(self.best, self.one_se) < len(self.points)):
            raise ValueError("best and one_se must be among the points, of some folds")


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
    classes: Sequence[Any] | None = None,
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

    The preprocessing, by default a standardisation, is fitted to the training rows of
    each fold, and saved with the model. A fit that fails is recorded with its reason,
    and its point is not chosen. The result is the same for any executor, any number of
    threads and any order in which tasks end.

    Parameters
    ----------
    fit : callable or str
        Any `fit_*` function, a `functools.partial` of one, or a function of (X, y,
        **point) that returns something with `predict`; or the name of a method as the
        command has it, such as "svorim" or "gpor-ep".
    X : (n, d) array-like or data frame, or sparse matrix with standardize=False
        Raw features. The model finds the columns of a data frame by their names.
        Categories and missing values need a method that takes them, such as `fit_xofm`,
        or `preprocess`; an error names the columns otherwise. With `basis`
        among the options or a linear kernel also a source of blocks (`ordinal.data`) or
        a numpy.memmap, which every fit and score reads anew; or, with neither executor
        nor store, a dask array or data frame, whose rows stay where they are.
    y : (n,) array-like, or None where X is a source of blocks
        Labels as for the `fit_*` functions.
    search : dict, Grid, CoarseToFine, UniformDesign, or an object with their `stages`
        What to try; a dict of lists is a grid. By default the grid that the method
        declares, without the arguments that have a value in `options`; methods that
        find their own, such as `fit_gpor`, have one point.
    n_iter : int, optional
        Draw so many points of a grid at random, each once, and try these alone.
    cv : int, sequence of (train_idx, test_idx), or splitter, default 5
        A number of folds for `stratified_kfold`, 5 as in the papers; splits, such as
        those of `stratified_holdout`; or an object with `split(X, y)`, such as the
        splitters of scikit-learn, which is given the features (for an X that is sparse
        or in chunks the (n, 1) numbers of the rows) and the labels.
    scoring : str, callable or sequence of them, default "mae"
        A metric of `ordinal.metrics` by name, or a function of (true labels, predicted
        labels); in place of these it is given the (n, r) probabilities if it has an
        attribute `needs_proba` that is true. Of several the first decides and the
        others are recorded. "rps" and "log_loss" need models with probabilities.
    greater_is_better : bool, optional
        For a callable: default False, a loss. Names know it themselves.
    classes : sequence of labels in rank order, optional
        As for the `fit_*` functions; needed for labels that are strings.
    sample_weight : (n,) array-like >= 0, optional
        Of the fits, the standardisation and the scores (unless `scoring` is a
        callable).
    groups : (n,) array-like, optional
        Labels of groups, such as patients or raters, whose rows stay together: folds
        are drawn as by `stratified_kfold` with them, a splitter is given them as well,
        and splits that have a group on both sides are an error. The folds within a fit
        with `probability` do not know them.
    preprocess : TablePreprocessor or the class Standardizer, optional
        Makes numbers of words and gaps, and standardises, in place of `standardize`.
        The `fit_*` functions take the same: `fit(X, y, preprocess=..., **params)` is
        the refitted model, with the class Standardizer for `standardize`.
        Arguments of the fit that name columns, such as `monotone`, name those that it
        makes: its `feature_names_out`.
    standardize : bool, optional
        Features of mean 0 and deviation 1. By default True but for methods to which
        scale means nothing, such as `fit_xofm`, which speaks in the units of the table.
    refit : bool or "one_se", default True
        Fit all rows at the best point, or at `one_se`; False fits none.
    halving : bool, optional
        Successive halving: all points are fitted to a sample of the training rows of
        each fold, the better half of them to three times as many (the better third,
        after samples of 4000 rows), and so on until all rows are used. Samples have at
        least 300 rows. Fits to them are scored on the same share of the test rows, or
        on 5000 if that is more, and those of support vector methods leave out a `basis`
        for up to five rows per basis row. By default the grids of methods are halved
        from 1500 training rows on, and a `search` that is given is not.
        On five splits of each of five sets, with 3200 training rows in a fold, it took
        a quarter of the time at an error that was .0002 higher on average and .005 at
        most.
    progress : bool, optional
        Report on stderr how many fits are done and in all, the best so far and the time
        left: one line rewritten in place on a terminal, a bar in a notebook (by tqdm,
        if it can be imported), elsewhere a line every ten seconds. By default on a
        terminal or in a notebook, once 5 s have passed.
    n_threads : int, optional
        Without an executor, tasks run side by side on so many threads (default as for
        the fits), each fit on one; in turn, with so many threads a fit, where `fit` or
        `kernel` is a function of one's own, which two threads may not be fit to call,
        or where X is read in chunks.
        With an executor, the threads of each fit (default 1).
    executor : concurrent.futures.Executor or the like, optional
        Anything with `submit` that returns futures of `concurrent.futures`: a thread or
        process pool, `client.get_executor()` of dask.distributed, mpi4py.futures. Tasks
        carry row numbers; X goes to the workers once, through a file in the folder for
        temporary files or, where they cannot see it, with one task each. Functions must
        then be importable by the workers. A worker lost is the executor's to replace.
    store : path of a folder, optional
        Finished tasks are kept there, and found by a later search for the same, or one
        in which another of the same metrics decides. What is damaged there is computed
        again, and counted in `damaged`.
    rng : int or numpy.random.Generator, default 0
        Draws the folds.
    **options
        Other arguments of every fit, such as `kernel` or `solver`. With `probability`
        the refit has the calibrated link; the fits of the folds have it only if
        `scoring` asks for probabilities.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError, TypeError
        If data, search or an argument is unusable; no fit has begun then. ValueError
        with the first reason if not one point could be fitted in all folds.

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
    by_error = isinstance(refit, str) and refit == "one_se"
    if not (isinstance(refit, bool | np.bool_) or by_error):
        raise ValueError(f"refit must be True, False or 'one_se', got {shown(refit)}")
    line = Progress.from_argument(progress)
    fit, rng = resolve_fit(fit), resolve_rng(rng)
    from_rows = halving_from(halving, search)
    search = resolve_space(search, fit, options, n_iter, rng)
    work = Work.from_arguments(
        fit,
        X,
        y,
        classes=classes,
        sample_weight=sample_weight,
        scorers=scorers_of(scoring, greater_is_better),
        standardize=standardize,
        preprocess=preprocess,
        options=options,
    )
    rows = np.arange(len(work.y))
    folds = partial(drawn_folds, rng=rng)
    splits = splits_of(cv, "cv", rows, work, group_numbers(groups, rows.size), folds)
    job = Search(work, search, rows, splits, line, from_rows)
    (trials,), damaged = run([job], work, search, executor, n_threads, store, line)
    found = replace(selection_of(trials, splits), damaged=damaged)
    if not refit:
        return found
    chosen = found.one_se if by_error else found.best
    threads = n_threads if executor is None else None
    model = work.refitted(found.points[chosen], threads)
    return replace(found, model=with_labels_like(model, y))


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
    )
