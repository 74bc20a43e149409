"""The protocol of the papers: repeated hold-outs, with a search in each."""

from __future__ import annotations  # numpy.random is slow to import

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from .._input.checks import check_choice, check_count, resolve_rng, shown
from .._input.fields import NONNEGATIVE, Array, Length
from .._input.immutable import read_only
from .._input.types import ArrayLike, Blocks, Executor, Labels, MatrixLike, Rng
from .._input.warning import each_warning_once
from .._model.labelled import Labelled, MissingLabels, numbered_as_caller
from .._model.preparation import shared_arguments
from .._model.printing import Table, html_notes, left_out
from .._model.registry import resolve_fit
from .._model.storage import Storable
from .._model.views import views
from .._watch.progress import Progress
from ..preprocessing.base import Preprocess
from .data import RowArguments
from .scheduler import Store, run
from .scoring import Rule, Scoring, rules_of, scorers_of
from .search import Search, halving_from, splits_of
from .selection import Selection, selection_of
from .spaces import Point, Space, columns_of, resolve_space
from .splits import (
    Splits,
    SplitsLike,
    Splitter,
    drawn_folds,
    drawn_holdouts,
    is_splitter,
)
from .work import Outcome, Task, Work
from .workers import Workers

Choice = Literal["best", "one_se"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Nested(Storable):
    """Result of `nested`: chosen hyperparameters, and scores on the test rows.

    Attributes
    ----------
    scores : dict of str to (s,) array
        Test score in each of the s hold-outs by each metric; nan where the fit failed.
    params : tuple of dict
        Hyperparameters chosen in each hold-out.
    selections : tuple of Selection
        Searches, without a model. Their splits hold row numbers of the whole table.
    status : (s,) array of str
        Status of the final fit of each hold-out.
    reasons : (s,) array of str
        Reason why a hold-out has no score, or an empty string; `failures` lists them.
    splits : list of (train_idx, test_idx)
    damaged : int
        Number of entries of the store that were damaged or held something else, so that
        their tasks were run again.
    n_missing_labels : int
        Number of rows that `missing_labels="drop"` left out; `splits` number the
        others.
    rules : dict of str to str
        Per metric of labels, the rule of the predictions that were scored.
    """

    scores: dict[str, Annotated[np.ndarray, Array("f8", "s")]]
    params: Annotated[tuple[Point, ...], Length("s")]
    selections: Annotated[tuple[Selection, ...], Length("s")]
    status: Annotated[np.ndarray, Array("U", "s")]
    reasons: Annotated[np.ndarray, Array("U", "s")]
    splits: Annotated[Splits, Length("s")]
    damaged: Annotated[int, NONNEGATIVE] = 0
    n_missing_labels: Annotated[int, NONNEGATIVE] = field(default=0, kw_only=True)
    rules: dict[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def failures(self) -> dict[int, str]:
        """Reasons why hold-outs have no score, by their number."""
        return {i: str(reason) for i, reason in enumerate(self.reasons) if reason}

    def table(self) -> Table:
        """Return a table with one row per hold-out.

        Its columns are the hyperparameters, the score of the search and the test
        scores.
        """
        columns = columns_of(self.params)
        columns["search"] = np.array([found.best_score for found in self.selections])
        return Table(columns | self.scores)

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame; raise ImportError without pandas."""
        return self.table().to_pandas()

    def plot(
        self, ax: Any = None, *, x: str | None = None, y: str | None = None
    ) -> Any:
        """Draw the search by `ordinal.plot.search`; ImportError without matplotlib."""
        return views().search(self, ax, x, y)

    def _repr_html_(self) -> str:
        return html_notes([repr(self)]) + self.table()._repr_html_()

    def __repr__(self) -> str:
        with np.errstate(over="ignore", invalid="ignore"):  # a metric of the caller's
            means = ", ".join(
                f"{name} {np.mean(values):.4g}"
                + f" ± {np.std(values):.2g}" * bool(np.isfinite(np.mean(values)))
                for name, values in self.scores.items()
            )
        rows = left_out(self.n_missing_labels)
        return f"Nested({means}; {len(self.splits)} hold-outs{rows})"


@each_warning_once
def nested(
    fit: Callable[..., Any] | str,
    X: MatrixLike | Blocks,
    y: Labels | None,
    *,
    search: Space | Mapping[str, Sequence[Any]] | None = None,
    n_iter: int | None = None,
    outer: SplitsLike = 20,
    test_size: float | int = 0.25,
    cv: int | Splitter = 5,
    scoring: Scoring | Sequence[Scoring] = ("mae", "mze"),
    greater_is_better: bool | None = None,
    rule: Rule | None = None,
    choose: Choice = "best",
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    preprocess: Preprocess | None = None,
    standardize: bool | None = None,
    halving: bool | None = None,
    progress: bool | None = None,
    n_threads: int | None = None,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    rng: Rng = 0,
    **options: Any,
) -> Nested:
    """Estimate the error of tuned models by hold-outs with a search in each.

    In every hold-out, hyperparameters are tuned on the training rows as by `select`;
    the best ones are fitted to all training rows and scored on the test rows, which the
    search has not seen. With `store`, a run that was interrupted can be continued: the
    same call finds the finished tasks and runs the others.

    Parameters
    ----------
    fit, X, y, search : as for `select`
    outer : int, sequence of (train_idx, test_idx), or splitter, default 20
        Number of stratified hold-outs (the SVOR paper uses 20), a list of splits, or an
        object with `split(X, y)`.
    test_size : float or int, default 0.25
        As for `stratified_holdout`.
    cv : int or splitter, default 5
        Number of folds of each search, which are drawn for each hold-out, or an object
        with `split(X, y)`, which receives the training rows of a hold-out.
    scoring : str, callable or sequence of them, default ("mae", "mze")
        Metrics as for `select`. The first one decides the search; all are computed on
        the test rows.
    rule : {"own", "mode", "median", "cost"}, optional
        As for `select`.
    choose : {"best", "one_se"}, default "best"
        Whether to test the point with the best mean score, or the simplest one within
        one standard error of it (`Selection.one_se`).
    groups : (n,) array-like, optional
        As for `select`; no group is on both sides of a hold-out or of a fold.
    store : path of a folder, optional
        Folder for the results of finished tasks, one small file each, written
        atomically. Several runs may share it.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw hold-outs and folds. To continue a run,
        pass the same.
    **options
        All other arguments are those of `select`.

    Returns
    -------
    Nested

    Raises
    ------
    ValueError, TypeError
        As in `select`.

    See Also
    --------
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.
    ordinal.compare : Compare methods by cross-validation.

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
    labelled = Labelled.from_arguments(
        missing_labels, X, y, options, sample_weight=sample_weight, groups=groups
    )
    X, y, outer = labelled.X, labelled.y, labelled.renumbered(outer)
    sample_weight, groups = labelled.by_row["sample_weight"], labelled.by_row["groups"]
    check_choice("choose", choose, ("best", "one_se"))
    line = Progress.from_argument(progress)
    fit, rng = resolve_fit(fit), resolve_rng(rng)
    from_rows = halving_from(halving, search)
    search = resolve_space(search, fit, options, n_iter, rng)
    _check_cv(cv)
    scorers = scorers_of(scoring, greater_is_better)
    given = shared_arguments(RowArguments, locals())
    searched = getattr(search, "values", ())
    with numbered_as_caller(labelled.keep):
        work = Work.from_arguments(fit, X, y, scorers, options, rule, searched, **given)
    work.data.warn_of_identifiers()
    drawn = partial(drawn_holdouts, test_size=test_size, rng=rng)
    rows = np.arange(len(work.data.y))
    holdouts = splits_of(outer, "outer", rows, work.data, drawn)
    folds = partial(drawn_folds, rng=rng)
    jobs = []
    for k, (train, test) in enumerate(holdouts):
        splits = splits_of(cv, f"cv within outer[{k}]", train, work.data, folds)
        job = Search(work, search, train, splits, line, from_rows)
        jobs.append(Holdout(job, test, choose))
        line.total += 1
    workers = Workers(work, search, executor, n_threads)
    found, damaged = run(jobs, workers, Store.from_argument(store, work), line)
    selections, outcomes = zip(*found, strict=True)
    return Nested(
        scores={
            scorer.name: read_only(
                np.array([outcome.scores[m] for outcome in outcomes])
            )
            for m, scorer in enumerate(work.scorers)
        },
        params=tuple(dict(one.points[getattr(one, choose)]) for one in selections),
        selections=selections,
        status=read_only(np.array([outcome.status for outcome in outcomes])),
        reasons=read_only(np.array([outcome.failure for outcome in outcomes])),
        splits=[(read_only(train), read_only(test)) for train, test in holdouts],
        damaged=damaged,
        n_missing_labels=labelled.n_missing,
        rules=rules_of(work.scorers),
    )


class Holdout:
    """A job: a search on the training rows, and the test of the point that it chose."""

    def __init__(self, search: Search, test: np.ndarray, choose: Choice):
        self._search, self._test, self._choose = search, test, choose
        self._outcome: Outcome | None = None
        self._searching = True

    def steps(self) -> Generator[list[Task], object, tuple[Selection, Outcome]]:
        trials = yield from self._search.steps()
        self._searching = False
        found = selection_of(trials, self._search.splits)
        chosen = found.points[getattr(found, self._choose)]
        yield [Task(self._search.rows, self._test, (chosen,))]
        assert self._outcome is not None
        return found, self._outcome

    def note(self, place: int, outcomes: list[Outcome]) -> None:
        if self._searching:
            self._search.note(place, outcomes)
        else:
            self._outcome = outcomes[0].judged()


def _check_cv(cv: Any) -> None:
    if not is_splitter(cv):
        if not isinstance(cv, int | np.integer) or isinstance(cv, bool):
            raise TypeError(
                "cv must be a number of folds or an object with a split method, "
                "because every outer training set needs splits of its own, got "
                f"{shown(cv)}"
            )
        check_count("cv", cv)
