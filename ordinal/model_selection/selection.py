"""Choosing arguments of a fit by cross-validation, and testing the choice.

`select` searches; `nested` holds rows out around whole searches, which is the protocol
of the papers. A score is the mean over folds of a metric of the fold's test rows. Among
points whose means are equal the least C wins, then the least gamma, then the least of
the other arguments in the order in which they were given; values that are no numbers
count in that order as well.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from numbers import Real
from typing import Any

import numpy as np

from .._input.checks import check_choice, check_count, check_flag, resolve_rng
from .._input.problem import Problem
from .._kernel_matrix.choice import NAMED
from .._numerics.rows import take
from .._numerics.threads import resolve_n_threads
from ..preprocessing import Standardizer
from . import work as _tasks
from .progress import Progress
from .scheduler import Placement, Store, run
from .spaces import Point
from .splits import Splits, check_splits, stratified_holdout, stratified_kfold
from .work import Outcome, Scorer, Task, Work, parameters

_EQUAL = 1e-12  # means that differ by less are equal: the sum over folds is rounded


@dataclass(frozen=True, slots=True)
class Failure:
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


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What a search found. Points are in the order in which they were tried.

    Attributes
    ----------
    points : tuple of dict
        The p points, as arguments of the `fit_*` function.
    stage : (p,) int array
        In which stage of the search each was tried, from 0.
    scores : (p, k) array
        Of each point in each of the k folds; nan where a fit failed.
    others : dict of str to (p, k) array
        Scores of the other metrics, if `scoring` named several.
    status : (p, k) array of str
        How each fit ended: a value of `ordinal.Status`, "failed", or "fitted" for a
        model without a `convergence`.
    seconds : (p, k) array
        Of fit and scoring; of a path, which fits several points, the mean.
    failures : tuple of Failure
        Every fit without a score. A point with one is never chosen.
    best, one_se : int
        The point with the best mean, and the one that comes first in the order of
        ties (least C, least gamma) of those whose mean is within one standard error of
        that: the simplest that is not clearly worse.
    scoring : str
    greater_is_better : bool
    splits : list of (train_idx, test_idx)
    model : StandardizedModel, or what `fit` returned, or None
        Fitted to all rows at the best point, or at that of `one_se`, as `refit` asked.
    """

    points: tuple[Point, ...]
    stage: np.ndarray
    scores: np.ndarray
    others: dict[str, np.ndarray]
    status: np.ndarray
    seconds: np.ndarray
    failures: tuple[Failure, ...]
    best: int
    one_se: int
    scoring: str
    greater_is_better: bool
    splits: Splits = field(repr=False)
    model: Any = None

    @property
    def mean(self) -> np.ndarray:
        """(p,) mean score of each point over the folds; nan if a fit failed."""
        return self.scores.mean(axis=1)

    @property
    def standard_error(self) -> np.ndarray:
        """(p,) of each mean: the folds' deviation over the root of their number."""
        return _standard_error(self.scores)

    @property
    def params(self) -> Point:
        """The best point."""
        return dict(self.points[self.best])

    @property
    def score(self) -> float:
        """Its mean score."""
        return float(self.mean[self.best])

    @property
    def standardizer(self) -> Any:
        """That of the refitted model; None if there is none."""
        return getattr(self.model, "standardizer", None)

    @property
    def classes(self) -> np.ndarray:
        """(r,) labels of the refitted model in rank order."""
        return self._fitted().classes

    def predict(self, X: Any, **rule: Any) -> np.ndarray:
        """(n,) labels for the rows of raw `X` by the refitted model; ValueError if
        there is none."""
        return self._fitted().predict(X, **rule)

    def predict_proba(self, X: Any) -> np.ndarray:
        """What the refitted model's `predict_proba` gives for the rows of raw `X`."""
        return self._fitted().predict_proba(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """What the refitted model's `decision_function` gives for raw `X`."""
        return self._fitted().decision_function(X)

    def table(self) -> dict[str, np.ndarray]:
        """Columns of p entries: stage, every argument, mean, standard error, the score
        in every fold, failed fits and seconds; fit for a data frame."""
        names = dict.fromkeys(name for point in self.points for name in point)
        columns = {"stage": self.stage}
        for name in names:
            columns[name] = _column([point.get(name) for point in self.points])
        columns["mean"], columns["standard_error"] = self.mean, self.standard_error
        for k, scores in enumerate(self.scores.T):
            columns[f"fold_{k}"] = scores
        columns["failed"] = np.isnan(self.scores).sum(axis=1)
        columns["seconds"] = self.seconds.sum(axis=1)
        return columns

    def __repr__(self) -> str:
        error = self.standard_error[self.best]
        return (
            f"Selection({_listed(self.params)}: {self.scoring} {self.score:.4g} "
            f"± {error:.2g}; {len(self.points)} points, {self.scores.shape[1]} folds, "
            f"{len(self.failures)} failed fits)"
        )

    def _fitted(self) -> Any:
        if self.model is None:
            raise ValueError("there is no model: the search was run with refit=False")
        return self.model


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """What the searches of repeated hold-outs chose, and how it did on the test rows.

    Attributes
    ----------
    scores : dict of str to (s,) array
        Test score in each of the s hold-outs by each metric; nan where the fit failed.
    params : tuple of dict
        The point chosen in each.
    selections : tuple of Selection
        The searches, without a model; their splits number rows of the whole table.
    status : (s,) array of str
        How the fit of each hold-out's training rows ended.
    failures : dict of int to str
        Why a hold-out has no score.
    splits : list of (train_idx, test_idx)
    """

    scores: dict[str, np.ndarray]
    params: tuple[Point, ...]
    selections: tuple[Selection, ...]
    status: np.ndarray
    failures: dict[int, str]
    splits: Splits = field(repr=False)

    def table(self) -> dict[str, np.ndarray]:
        """Columns of s entries: every argument, the score of the search, the test
        scores; fit for a data frame."""
        columns = {
            name: _column([point.get(name) for point in self.params])
            for name in dict.fromkeys(name for point in self.params for name in point)
        }
        columns["search"] = np.array([found.score for found in self.selections])
        return columns | self.scores

    def __repr__(self) -> str:
        means = ", ".join(
            f"{name} {np.mean(values):.4g} ± {np.std(values):.2g}"
            for name, values in self.scores.items()
        )
        return f"Nested({means}; {len(self.splits)} hold-outs)"


def select(
    fit: Callable,
    X: Any,
    y: Any,
    *,
    search: Any,
    cv: int | Sequence = 5,
    scoring: str | Callable | Sequence = "mae",
    greater_is_better: bool | None = None,
    standardize: bool = True,
    executor: Any = None,
    n_threads: int | None = None,
    progress: bool = False,
    refit: bool | str = True,
    store: Any = None,
    rng: int | np.random.Generator = 0,
    **options: Any,
) -> Selection:
    """Choose arguments of a fit by cross-validation, and refit to all rows.

    Features are standardised by the training rows of each fold. A fit that fails is
    recorded with its reason, and its point is not chosen. The result is the same for
    any executor, any number of threads and any order in which tasks end.

    Parameters
    ----------
    fit : callable
        Any `fit_*` function, a `functools.partial` of one, or a function of (X, y,
        **point) that returns something with `predict`.
    X : (n, d) array-like, or CSR with standardize=False
        Raw features.
    y : (n,) array-like
        Labels as for the `fit_*` functions; strings need `classes` among the options.
    search : Grid, CoarseToFine, UniformDesign, or an object with their `stages`
        What to try. An argument "C" is `C1` where the function has that instead.
    cv : int or sequence of (train_idx, test_idx), default 5
        A number of folds for `stratified_kfold`, 5 as in the papers, or splits, such as
        those of `stratified_holdout`.
    scoring : str, callable or sequence of them, default "mae"
        A metric of `ordinal.metrics` by name, or a function of (true labels, predicted
        labels). Of several the first decides and the others are recorded. "rps" and
        "log_loss" need models with probabilities.
    greater_is_better : bool, optional
        For a callable: default False, a loss. Names know it themselves.
    standardize : bool, default True
        False leaves the features as they are.
    executor : concurrent.futures.Executor or the like, optional
        Anything with `submit` that returns futures of `concurrent.futures`: a thread or
        process pool, `client.get_executor()` of dask.distributed, mpi4py.futures. Tasks
        carry row numbers; X goes to the workers once, through a file in the folder for
        temporary files or, where they cannot see it, with one task each. Functions must
        then be importable by the workers. A worker lost is the executor's to replace.
    n_threads : int, optional
        Without an executor, tasks run side by side on so many threads (default as for
        the fits), each fit on one; in turn, with so many threads a fit, where `fit` or
        `kernel` is a function of one's own, which two threads may not be fit to call.
        With an executor, the threads of each fit (default 1).
    progress : bool, default False
        Show one line on stderr, if that is a terminal: fits done and in all, the best
        so far, the time left.
    refit : bool or "one_se", default True
        Fit all rows at the best point, or at `one_se`; False fits none.
    store : path of a folder, optional
        Finished tasks are kept there, and found by a later search for the same, or one
        in which another of the same metrics decides.
    rng : int or numpy.random.Generator, default 0
        Draws the folds.
    **options
        Other arguments of every fit, such as `kernel` or `solver`. `sample_weight` also
        weighs standardisation and scores (unless `scoring` is a callable).

    Returns
    -------
    Selection

    Raises
    ------
    ValueError, TypeError
        If data, search or an argument is unusable; no fit has begun then. ValueError
        with the first reason if not one point could be fitted in all folds.

    Examples
    --------
    >>> import ordinal
    >>> from ordinal.model_selection import Grid, select
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> grid = Grid(C=[0.1, 1.0, 10.0], gamma=[0.05, 0.5])
    >>> found = select(ordinal.fit_svorim, X, y, search=grid)
    >>> found.scores.shape, len(found.failures)
    ((6, 5), 0)
    >>> found.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    """
    _check_refit(refit)
    check_flag(standardize=standardize, progress=progress)
    work = _work(fit, X, y, scoring, greater_is_better, standardize, options)
    splits = _folds(cv, np.arange(len(work.y)), work, resolve_rng(rng))
    line = Progress(progress)
    job = _Search(work, search, np.arange(len(work.y)), splits, line)
    placement = _placement(work, search, executor, n_threads)
    (found,) = run([job], work, placement, _store(store, work), line)
    if not refit:
        return found
    at = found.one_se if refit == "one_se" else found.best
    threads = n_threads if executor is None else None
    return replace(found, model=work.refitted(found.points[at], threads))


def nested(
    fit: Callable,
    X: Any,
    y: Any,
    *,
    search: Any,
    outer: int | Sequence = 20,
    test_size: float | int = 0.25,
    cv: int = 5,
    scoring: str | Callable | Sequence = ("mae", "mze"),
    greater_is_better: bool | None = None,
    choose: str = "best",
    standardize: bool = True,
    executor: Any = None,
    n_threads: int | None = None,
    progress: bool = False,
    store: Any = None,
    rng: int | np.random.Generator = 0,
    **options: Any,
) -> Nested:
    """The protocol of the papers: repeated hold-outs, with a search in each.

    Every hold-out's training rows are searched as by `select`; the point chosen is
    fitted to all of them and scored on the test rows, which the search has not seen.
    With `store`, a run that was killed continues where it was: the same call finds
    every task that was finished and does the others.

    Parameters
    ----------
    fit, X, y, search, standardize, executor, n_threads, progress, **options
        As for `select`.
    outer : int or sequence of (train_idx, test_idx), default 20
        A number of stratified hold-outs, as in the SVOR paper, or splits.
    test_size : float or int, default 0.25
        As for `stratified_holdout`.
    cv : int, default 5
        Folds of each search, drawn anew for each hold-out.
    scoring : str, callable or sequence of them, default ("mae", "mze")
        The first decides the search; all are taken on the test rows.
    choose : {"best", "one_se"}, default "best"
        The point of each search that is tested.
    store : path of a folder, optional
        Where finished tasks are kept, a small file each, written whole or not at all.
        Several runs may share it.
    rng : int or numpy.random.Generator, default 0
        Draws hold-outs and folds; to continue a run, give it the same.

    Returns
    -------
    Nested

    Raises
    ------
    ValueError, TypeError
        As `select`.

    Examples
    --------
    >>> import ordinal
    >>> from ordinal.model_selection import Grid, nested
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> grid = Grid(C=[0.1, 10.0], gamma=[0.5])
    >>> result = nested(ordinal.fit_svorim, X, y, search=grid, outer=2, cv=3)
    >>> sorted(result.scores), len(result.params)
    (['mae', 'mze'], 2)
    """
    check_choice("choose", choose, ("best", "one_se"))
    check_flag(standardize=standardize, progress=progress)
    check_count(cv=cv)
    work = _work(fit, X, y, scoring, greater_is_better, standardize, options)
    rng = resolve_rng(rng)
    if isinstance(outer, int | np.integer):
        holdouts = stratified_holdout(work.y, outer, test_size=test_size, rng=rng)
    else:
        holdouts = check_splits(outer, len(work.y), "outer")
    line = Progress(progress)
    jobs = []
    for train, test in holdouts:
        folds = _folds(cv, train, work, rng)
        one = _Search(work, search, train, folds, line)
        jobs.append(_Holdout(one, test, choose, line))
    placement = _placement(work, search, executor, n_threads)
    found = run(jobs, work, placement, _store(store, work), line)
    outcomes = [outcome for _, outcome in found]
    selections = tuple(selection for selection, _ in found)
    return Nested(
        scores={
            scorer.name: np.array([outcome.scores[m] for outcome in outcomes])
            for m, scorer in enumerate(work.scorers)
        },
        params=tuple(dict(one.points[getattr(one, choose)]) for one in selections),
        selections=selections,
        status=np.array([outcome.status for outcome in outcomes]),
        failures={i: o.failure for i, o in enumerate(outcomes) if o.failure},
        splits=holdouts,
    )


# Jobs


class _Search:
    """One search: which tasks it asks for, and what it makes of their outcomes."""

    def __init__(
        self, work: Work, search: Any, rows: np.ndarray, splits: Splits, line: Progress
    ):
        self.work, self.search, self.rows, self.splits = work, search, rows, splits
        self._line = line
        line.total += getattr(search, "size", 0) * len(splits)
        self._known = parameters(work.fit)
        self._path = _tasks.path_arguments(work.fit, work.options)
        self._named: list[Point] = []  # as the search calls the arguments
        self.points: list[Point] = []  # as the function does
        self._number: dict[tuple, int] = {}  # of a point, by its values
        self._stage: list[int] = []
        self._outcomes: list[list[Outcome | None]] = []  # of point, fold
        self._asked: list[tuple[int, list[int]]] = []  # fold and points of a task

    def steps(self) -> Generator[list[Task], object, Selection]:
        """Lists of tasks; `note` is told of their outcomes before the next one."""
        stages = self.search.stages(self._features())
        points = next(stages)
        for stage in count():
            yield self._tasks(self._add(points, stage))
            best = self.best()
            if best is None:
                raise ValueError(
                    f"no point could be fitted: {self.failures()[0].reason}"
                )
            try:
                points = stages.send(dict(self._named[best]))
            except StopIteration:
                break
        return self._selection()

    def note(self, place: int, outcomes: list[Outcome]) -> None:
        """The outcomes of one of the tasks asked for last."""
        fold, numbers = self._asked[place]
        for number, outcome in zip(numbers, outcomes, strict=True):
            self._outcomes[number][fold] = outcome.judged()
        best = self.best() if self._line.shown else None
        if best is not None:
            score = np.mean([o.scores[0] for o in self._outcomes[best] if o])
            name = self.work.scorers[0].name
            self._line.best = f"best {name} {score:.4g} at {_listed(self.points[best])}"

    def best(self) -> int | None:
        """The point of the best mean among those that every fold has a score of."""
        losses = self._losses()
        if np.isnan(losses).all():
            return None
        least = np.nanmin(losses)
        return self._first(losses <= least + _EQUAL * max(1.0, abs(least)))

    def failures(self) -> list[Failure]:
        return [
            Failure(number, fold, dict(self.points[number]), outcome.failure)
            for number, of_point in enumerate(self._outcomes)
            for fold, outcome in enumerate(of_point)
            if outcome is not None and outcome.failure
        ]

    def _features(self) -> Any:
        X = take(self.work.X, self.rows)
        if not self.work.standardize:
            return X
        weight = self.work.weight
        weight = None if weight is None else weight[self.rows]
        return Standardizer.fit(X, weight).transform(X)

    def _add(self, points: list[Point], stage: int) -> list[int]:
        """Take in the points that are new; their numbers."""
        new = []
        for named in points:
            renamed = (
                {} if "C" in self._known or "C1" not in self._known else {"C": "C1"}
            )
            point = {renamed.get(name, name): value for name, value in named.items()}
            _check_arguments(self.work.fit, point)
            twice = [name for name in point if name in self.work.options]
            if twice:
                raise ValueError(f"{twice[0]} is searched, and given for every fit")
            key = tuple(sorted((name, _hashed(v)) for name, v in point.items()))
            if key in self._number:
                continue
            new.append(len(self.points))
            self._number[key] = len(self.points)
            self._named.append(dict(named))
            self.points.append(point)
            self._stage.append(stage)
            self._outcomes.append([None] * len(self.splits))
        return new

    def _tasks(self, numbers: list[int]) -> list[Task]:
        """A task for each fold and path."""
        paths: dict[Any, list[int]] = {}
        for number in self._ordered(numbers):
            fixed = tuple(
                sorted(
                    (name, _hashed(value))
                    for name, value in self.points[number].items()
                    if name not in self._path
                )
            )
            paths.setdefault(fixed if self._path else number, []).append(number)
        self._asked = [
            (k, path) for k in range(len(self.splits)) for path in paths.values()
        ]
        return [
            Task(*self.splits[k], tuple(self.points[number] for number in path))
            for k, path in self._asked
        ]

    def _ordered(self, numbers: Sequence[int]) -> list[int]:
        """Points in the order of ties."""
        names = list(dict.fromkeys(name for point in self.points for name in point))
        first = [name for name in ("C", "C1", "C2", "gamma") if name in names]
        names = [*first, *(name for name in names if name not in first)]
        seen: dict[Any, int] = {}

        def place(number: int) -> list[tuple]:
            values = (self.points[number].get(name) for name in names)
            return [
                (0, value)
                if isinstance(value, Real) and not isinstance(value, bool)
                else (1, seen.setdefault(_hashed(value), len(seen)))
                for value in values
            ]

        places = [place(number) for number in range(len(self.points))]
        return sorted(numbers, key=lambda number: places[number])

    def _first(self, chosen: np.ndarray) -> int:
        return self._ordered(np.flatnonzero(chosen).tolist())[0]

    def _losses(self) -> np.ndarray:
        """Mean of every point, greater meaning worse; nan where one is missing."""
        means = self._scores(0).mean(axis=1)
        return -means if self.work.scorers[0].greater_is_better else means

    def _scores(self, metric: int) -> np.ndarray:
        return np.array(
            [
                [
                    np.nan if o is None or o.failure else o.scores[metric]
                    for o in of_point
                ]
                for of_point in self._outcomes
            ]
        ).reshape(len(self.points), len(self.splits))

    def _selection(self) -> Selection:
        scores, losses = self._scores(0), self._losses()
        best = self.best()
        assert best is not None
        enough = losses[best] + _standard_error(scores)[best] + _EQUAL
        scorers, done = self.work.scorers, self._outcomes
        return Selection(
            points=tuple(self.points),
            stage=np.array(self._stage),
            scores=scores,
            others={s.name: self._scores(m) for m, s in enumerate(scorers) if m},
            status=np.array([[o.status for o in of_point if o] for of_point in done]),
            seconds=np.array([[o.seconds for o in of_point if o] for of_point in done]),
            failures=tuple(self.failures()),
            best=best,
            one_se=self._first(losses <= enough),
            scoring=scorers[0].name,
            greater_is_better=scorers[0].greater_is_better,
            splits=self.splits,
        )


class _Holdout:
    """A search on training rows, and the test of what it chose."""

    def __init__(self, search: _Search, test: np.ndarray, choose: str, line: Progress):
        self._search, self._test, self._choose = search, test, choose
        self._found: Selection | None = None
        self._outcome: Outcome | None = None
        line.total += 1

    def steps(self) -> Generator[list[Task], object, tuple[Selection, Outcome]]:
        self._found = yield from self._search.steps()
        chosen = self._found.points[getattr(self._found, self._choose)]
        yield [Task(self._search.rows, self._test, (chosen,))]
        assert self._outcome is not None
        return self._found, self._outcome

    def note(self, place: int, outcomes: list[Outcome]) -> None:
        if self._found is None:
            self._search.note(place, outcomes)
        else:
            self._outcome = outcomes[0].judged()


# Arguments


def _work(
    fit, X, y, scoring, greater_is_better, standardize: bool, options: dict
) -> Work:
    """The arguments of a search, checked, as its tasks need them."""
    if not callable(fit):
        raise TypeError(f"fit must be a function of (X, y), got {fit!r}")
    options = dict(options)
    classes, weight = options.pop("classes", None), options.get("sample_weight")
    _check_arguments(fit, options)
    options.pop("sample_weight", None)
    if isinstance(options.get("rng"), np.random.Generator):
        raise TypeError("rng of the fits must be a seed: they share no generator")
    if options.get("kernel") == "precomputed":
        raise ValueError("kernel='precomputed' has no features to split and to scale")
    problem = Problem.from_arrays(X, y, classes=classes, sample_weight=weight)
    if standardize and not isinstance(problem.X, np.ndarray):
        raise TypeError(
            "X is sparse, and standardising would fill it: standardize=False"
        )
    one = isinstance(scoring, str) or not isinstance(scoring, Sequence)
    scorers = [Scorer.of(s, greater_is_better) for s in ([scoring] if one else scoring)]
    names = [scorer.name for scorer in scorers]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"scoring must name different metrics, got {names}")
    return Work(
        fit=fit,
        options=options,
        X=problem.X,
        y=problem.classes[problem.rank],
        classes=problem.classes,
        weight=None if weight is None else problem.sample_weight,
        standardize=standardize,
        scorers=tuple(scorers),
    )


def _check_arguments(fit: Callable, given: Any) -> None:
    known = parameters(fit)
    if any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return
    for name in given:
        if name not in known:
            called = getattr(fit, "__name__", repr(fit))
            raise TypeError(f"{called}() has no argument {name!r}")


def _check_refit(refit: Any) -> None:
    if not (isinstance(refit, bool | np.bool_) or refit == "one_se"):
        raise ValueError(f"refit must be True, False or 'one_se', got {refit!r}")


def _folds(cv: Any, rows: np.ndarray, work: Work, rng: np.random.Generator) -> Splits:
    """The splits of some rows, as row numbers of the whole table."""
    if isinstance(cv, int | np.integer):
        splits = stratified_kfold(work.y[rows], int(cv), rng=rng)
        return [(rows[train], rows[test]) for train, test in splits]
    return check_splits(cv, len(work.y), "cv")


def _placement(work: Work, search: Any, executor: Any, n_threads: Any) -> Placement:
    if executor is not None:
        if not hasattr(executor, "submit"):
            raise TypeError(f"executor must have a submit method, got {executor!r}")
        return Placement(executor, n_threads or 1, False)
    kernel = getattr(search, "values", {}).get("kernel", [])
    kernel = [*kernel, work.options.get("kernel", "rbf")]
    ours = _tasks.is_ours(work.fit) and all(
        isinstance(k, (str, *NAMED.values())) for k in kernel
    )
    if ours:
        n_threads = resolve_n_threads(n_threads)
    return Placement(None, n_threads, ours)


def _store(folder: Any, work: Work) -> Store | None:
    return None if folder is None else Store(folder, work)


def _standard_error(scores: np.ndarray) -> np.ndarray:
    k = scores.shape[1]
    return scores.std(axis=1, ddof=1) / np.sqrt(k) if k > 1 else 0.0 * scores[:, 0]


def _hashed(value: Any) -> Any:
    """A value to compare by: 1, 1.0 and True differ; a list or array is only itself."""
    try:
        hash(value)
    except TypeError:
        return type(value).__name__, id(value)
    return type(value).__name__, value


def _column(values: list) -> np.ndarray:
    """Numbers or strings as such, anything else as objects."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds == {str}:
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _listed(point: Point) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value!r}"
        for name, value in point.items()
    )
