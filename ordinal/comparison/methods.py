"""`compare`: cross-validated scores of several methods on one data set."""

from __future__ import annotations  # numpy.random is slow to import

import time
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from .._input.checks import (
    check_choice,
    check_flag,
    resolve_rng,
    shown,
    with_suggestions,
)
from .._input.features import read_features, read_frame_of
from .._input.frame import Frame
from .._input.immutable import Immutable, read_only
from .._input.intervals import RankIntervals
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._input.types import ArrayLike, Labels, MatrixLike, Rng
from .._input.warning import each_warning_once
from .._model.column_names import innermost
from .._model.grouping import group_numbers
from .._model.labelled import (
    Labelled,
    MissingLabels,
    counted,
    numbered_as_caller,
    with_origin,
)
from .._model.model import Model, with_rule
from .._model.printing import (
    Table,
    aligned,
    html_notes,
    html_table,
    rows_left_out,
)
from .._model.registry import (
    check_intervals,
    takes_intervals,
)
from .._model.views import views
from .._numerics.threads import resolve_n_threads
from .._rows.reading import check_in_memory
from .._watch.monitor import State
from .._watch.progress import Line, Progress, duration
from ..exceptions import NoProbabilitiesError
from ..model_selection.data import SearchData, labels_of
from ..model_selection.scheduler import run
from ..model_selection.scoring import (
    Rule,
    Scorer,
    Scoring,
    calibrates,
    rules_of,
    scorers_of,
    without_rows,
)
from ..model_selection.search import mean_score, splits_of, standard_error
from ..model_selection.splits import Splits, SplitsLike, drawn_folds
from ..model_selection.work import Outcome, Task, status_of
from ..model_selection.workers import Workers
from ..preprocessing import TablePreprocessor
from .estimators import no_weights
from .learner import CONSTANTS, Learner, chosen_fits

_MOST_NAMED = 5  # methods in the sentence of the verdict
_TITLES = {"mae": "MAE", "mze": "MZE", "rps": "RPS", "amae": "AMAE", "mmae": "MMAE"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Immutable):
    """Result of `compare`. Methods are in the order of their mean score, best first.

    Attributes
    ----------
    methods : tuple of (m,) str
    scores : dict of str to (m, k) array
        Per metric, the score of each method on the test rows of each of the k folds;
        nan if a fit failed or the metric needs probabilities that the method does not
        have. The first metric decides the order.
    seconds : (m, k) array
        Time of the fit on the training rows, including a search and, if a metric needs
        probabilities, their calibration.
    status : (m, k) array of str
        Status of each fit: a value of `ordinal.models.Status`, "failed", or "fitted"
        for a model without the attribute `convergence`.
    params : tuple of m tuples of k dicts
        Hyperparameters chosen by the search in each fold; empty without a search.
    disordered : (m,) int array
        Number of fits whose thresholds are out of order.
    reasons : dict of str to str
        Reasons why methods have no score, by their names.
    splits : list of (train_idx, test_idx)
    greater_is_better : bool
        Whether larger values of the first metric are better.
    rules : dict of str to (m,) array of str
        Per metric of labels, the rule of the predictions of each method that were
        scored; "own" for a function of the caller and for a baseline.
    """

    methods: tuple[str, ...]
    scores: dict[str, np.ndarray]
    seconds: np.ndarray
    status: np.ndarray
    params: tuple[tuple[dict[str, Any], ...], ...]
    disordered: np.ndarray
    reasons: dict[str, str]
    splits: Splits
    greater_is_better: bool
    rules: dict[str, np.ndarray]
    _study: Study
    _without_proba: Set[str] = frozenset()
    _best: list[Model] = field(default_factory=list)

    @property
    def scoring(self) -> str:
        """Return the name of the metric that decides."""
        return next(iter(self.scores))

    def mean(self, metric: str | None = None) -> np.ndarray:
        """Return mean scores over the folds, (m,), by default of the first metric."""
        return mean_score(self._scores(metric))

    def standard_error(self, metric: str | None = None) -> np.ndarray:
        """Return standard errors of the means, (m,).

        They are the standard deviations over the folds divided by the root of their
        number. Because folds share training rows, they underestimate the uncertainty
        about new data; they show which differences are noise.
        """
        return standard_error(self._scores(metric))

    def _scores(self, metric: str | None) -> np.ndarray:
        """Return (m, folds) scores by a metric."""
        name = self.scoring if metric is None else metric
        check_choice("metric", name, self.scores)
        return self.scores[name]

    @property
    def best(self) -> Model:
        """Best method, fitted to all rows at the first access.

        Raises ValueError if no method has a finite mean score.
        """
        if not self._has_winner:
            raise ValueError(" ".join([self.verdict, *self._undefined()]))
        if not self._best:
            self._best.append(self.refit(self.methods[0]))
        return self._best[0]

    def refit(self, method: str) -> Model:
        """Return one of the methods fitted to all rows, tuned as in the comparison.

        Raises ValueError if `method` was not compared.
        """
        if method not in self.methods:
            raise ValueError(
                f"method must be one of {', '.join(self.methods)}, got {shown(method)}"
            )
        return self._study.refitted(method)

    @property
    def _has_winner(self) -> bool:
        """Return whether the first method has a finite mean score."""
        return bool(np.isfinite(self.mean()[0]))

    @property
    def close(self) -> tuple[str, ...]:
        """Return the other methods within one standard error of the best."""
        if not self._has_winner:
            return ()
        mean = self.mean() * (-1 if self.greater_is_better else 1)
        near = mean <= mean[0] + self.standard_error()[0]
        return tuple(
            name for name, is_near in zip(self.methods[1:], near[1:], strict=True)
            if is_near
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        """Return the result in a sentence."""
        best, metric = self.methods[0], _TITLES.get(self.scoring, self.scoring)
        if not self._has_winner:
            return f"No method has a finite mean {metric}, so none is best."
        if len(self.methods) == 1:
            error = self.standard_error()[0]
            return f"{best} has {metric} {self.mean()[0]:.4f} ± {error:.4f}."
        close = [name for name in self.close if name not in CONSTANTS]
        if best in CONSTANTS or len(close) < len(self.close):
            return (
                f"{best} is best by {metric}, but no method is clearly better than a "
                "constant: look at the features and the labels."
            )
        if not close:
            return f"{best} is best by {metric}; no other is within one standard error."
        if len(close) > _MOST_NAMED:
            return (
                f"{best} is best by {metric}; {len(close)} others are within one "
                "standard error."
            )
        *most, last = close
        names = f"{', '.join(most)} and {last} are" if most else f"{last} is"
        return f"{best} is best by {metric}; {names} within one standard error."

    def table(self) -> Table:
        """Return a table with one row per method.

        Its columns are mean and standard error of every metric, the rule of the
        predictions that it judges, mean seconds, and the number of fits that converged.
        """
        columns: dict[str, np.ndarray] = {"method": np.array(self.methods)}
        for metric in self.scores:
            columns[metric] = self.mean(metric)
            columns[f"{metric}_se"] = self.standard_error(metric)
            if metric in self.rules:
                columns[f"{metric}_rule"] = self.rules[metric]
        columns["seconds"] = self.seconds.mean(axis=1)
        columns["converged"] = np.isin(self.status, ("converged", "fitted")).sum(axis=1)
        return Table(columns)

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame with the methods as its index."""
        return self.table().to_pandas().set_index("method")

    def plot(self, axes: Any = None) -> Any:
        """Draw the score of every fold by `ordinal.plot.errors_by_method`.

        Methods without a finite score in every fold are left out. Raises ValueError if
        there is no other, and ImportError without matplotlib.
        """
        scores = self.scores[self.scoring]
        finite = np.isfinite(scores).all(axis=1)
        if not finite.any():
            raise ValueError(" ".join([self.verdict, *self._undefined()]))
        scored = [self.methods[i] for i in np.flatnonzero(finite)]
        name = _TITLES.get(self.scoring, self.scoring)
        return views().errors_by_method({"": scores[finite].T}, scored, axes, name)

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the head and the cells of the printed table."""
        titles = [_TITLES.get(name, name) for name in self.scores]
        head = ["method", *titles, *["rules"] * bool(self.rules), "seconds"]
        cells = []
        for i, method in enumerate(self.methods):
            of = [(self.mean(m)[i], self.standard_error(m)[i]) for m in self.scores]
            shown = [_cell(mean, error) for mean, error in of]
            if self.rules:
                used = dict.fromkeys(str(by[i]) for by in self.rules.values())
                shown.append(", ".join(used))
            cells.append([method, *shown, f"{self.seconds[i].mean():.3f}"])
        return head, cells

    def __repr__(self) -> str:
        head, cells = self.rows()
        columns = [
            aligned(name, column, left=name in ("method", "rules"))
            for name, *column in zip(head, *cells, strict=True)
        ]
        lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
        return "\n".join([*lines, *self.notes()])

    def _repr_html_(self) -> str:
        head, cells = self.rows()
        return html_table(head, cells) + html_notes(self.notes())

    def notes(self) -> list[str]:
        """Return the lines below the table: the verdict, and what went wrong."""
        notes = [self.verdict, *self._undefined()]
        ended = [
            (name, sorted(set(of) - {"converged", "fitted", "failed"}))
            for name, of in zip(self.methods, self.status.tolist(), strict=True)
        ]
        short = [f"{name} ({', '.join(of)})" for name, of in ended if of]
        if short:
            notes.append(f"Not converged in every fold: {'; '.join(short)}.")
        k = self.seconds.shape[1]
        wrong = [
            f"{name} ({count}/{k})"
            for name, count in zip(self.methods, self.disordered.tolist(), strict=True)
            if count
        ]
        if wrong:
            notes.append(f"Thresholds out of order: {'; '.join(wrong)}.")
        learners = self._study.learners
        untuned = [m for m in self.methods if learners[m].is_left_untuned]
        if untuned:
            notes.append(
                f"Not tuned, because they have no default grid: {', '.join(untuned)}."
            )
        if self._study.labelled.n_missing:
            rows = rows_left_out(self._study.labelled.n_missing)
            notes.append(f"Left out: {rows}.")
        return notes + [f"{name} failed: {why}" for name, why in self.reasons.items()]

    def _undefined(self) -> list[str]:
        """Return sentences that say where scores are not finite, and why."""
        study = self._study
        where: dict[tuple[str, str, str, str], list[str]] = {}
        for metric, scores in self.scores.items():
            for fold, column in enumerate(scores.T):
                names = [
                    name for i, name in enumerate(self.methods)
                    if not np.isfinite(column[i]) and self.status[i, fold] != "failed"
                    # A method without probabilities has no score of theirs.
                    and not (name in self._without_proba and np.isnan(column[i]))
                ]  # fmt: skip
                rows = [self.methods.index(name) for name in names]
                values = " or ".join(sorted({f"{column[i]:g}" for i in rows}))
                why = without_rows(study.data.y, study.data.classes, self.splits[fold])
                if names:
                    kind = metric, values, ", ".join(names), why
                    where.setdefault(kind, []).append(str(fold + 1))
        return [
            f"{_TITLES.get(metric, metric)} is {values} in "
            f"{'fold' if len(folds) == 1 else 'folds'} {', '.join(folds)} of "
            f"{len(self.splits)} for {names}{why}."
            for (metric, values, names, why), folds in where.items()
        ]


def _cell(mean: float, error: float) -> str:
    """Return a mean with its standard error, if it is finite, as text."""
    if np.isnan(mean):
        return "-"
    return f"{mean:.3f} ± {error:.3f}" if np.isfinite(mean) else f"{mean:g}"


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Rows and methods of a comparison.

    Attributes
    ----------
    data : SearchData
    learners : mapping of str to Learner
    scorers : tuple of Scorer
    rule : str or None
        Rule of all predictions; None for the one that belongs to each metric.
    seed : sequence of int
        Seed of the folds of searches.
    labelled : Labelled
        The caller's rows that have a label. Predictions of a refitted model have the
        type of their labels.
    """

    data: SearchData
    learners: Mapping[str, Learner]
    scorers: tuple[Scorer, ...]
    rule: Rule | None = None
    seed: tuple[int, ...] = (0,)
    labelled: Labelled = Labelled(None, None, {})  # noqa: RUF009  (immutable)

    def learned(
        self,
        learner: Learner,
        scorers: tuple[Scorer, ...],
        rows: np.ndarray | None,
        fold: int,
        **options: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """Fit a method to the rows of these numbers, by default to all.

        Returns the model, with the probabilities that the scorers need, and the
        hyperparameters that a search has chosen.
        """
        data, chosen = self.data, slice(None) if rows is None else rows
        if learner.calibrates and calibrates(scorers, learner.parameters):
            options["probability"] = True
        X = data.X if rows is None else data.features(rows)
        if data.weight is not None:
            options["sample_weight"] = data.weight[chosen]
        # The folds of searches keep groups together, too.
        if data.group is not None and learner.takes_groups:
            options["groups"] = data.group[chosen]
        # Every method is tuned in the same folds.
        rng = np.random.default_rng([*self.seed, fold])
        options |= {"rule": self.rule, "classes": data.classes}
        return learner.learn(X, data.y[chosen], rng, **options)

    def scorers_of(self, method: str) -> tuple[Scorer, ...]:
        """Return the scorers with the rules by which a method predicts."""
        return self.learners[method].scorers(self.scorers, self.rule)

    def refitted(self, method: str) -> Model:
        deciding = self.scorers_of(method)[:1]
        model: Model = self.learned(self.learners[method], deciding, None, 0)[0]
        with_rule(model, deciding[0].rule)
        counted(model, self.labelled)
        return with_origin(model, self.data.X, self.labelled.y)


@dataclass(frozen=True, slots=True)
class FoldOutcome(Outcome):
    """Outcome of a method in a fold.

    Attributes
    ----------
    params : dict
        Hyperparameters that a search has chosen.
    disordered : bool
        Whether thresholds are out of order.
    lacks_proba : bool
        Whether a metric needs probabilities that the model does not have.
    error : Exception or None
    """

    params: dict[str, Any] = field(default_factory=dict)
    disordered: bool = False
    lacks_proba: bool = False
    error: Exception | None = None


class MethodWork:
    """Work of a comparison: the points of its tasks are a method and a fold each."""

    def __init__(self, study: Study, say: Say):
        self._study, self._say = study, say
        self._scorers = {name: study.scorers_of(name) for name in study.learners}

    def side_by_side(self, space: object) -> bool:
        """Return False: the seconds of a fit are those of a fit alone."""
        return False

    def pickled(self) -> bytes:
        raise TypeError("a comparison runs in this process: pass no executor")

    def run(self, task: Task, n_threads: int | None) -> list[Outcome]:
        """Fit and score a method, whose error becomes the outcome."""
        ((name, fold),) = task.points[0].items()
        data, learner = self._study.data, self._study.learners[name]
        scorers = self._scorers[name]
        if learner.package is not None:
            # The import of LightGBM takes as long as ten fits, and is no part of their
            # seconds. If it fails, the fit reports why.
            with suppress(ImportError):
                import_module(learner.package)
        start = time.perf_counter()
        try:
            callback = self._say.fold(name, fold)
            model, params = self._study.learned(
                learner, scorers, task.train, fold, callback=callback
            )
            seconds = time.perf_counter() - start
            X = data.features(task.test)
            scores = tuple(_score(data, by, model, X, task.test) for by in scorers)
        except Exception as error:
            why = f"{type(error).__name__}: {error}{learner.advice(data.X)}"
            nan = (float("nan"),) * len(scorers)
            seconds = time.perf_counter() - start
            return [FoldOutcome(nan, "failed", why, seconds, error=error)]
        disordered = bool(getattr(innermost(model), "disorder", ()))
        known = tuple(np.nan if score is None else score for score in scores)
        own = seconds, params, disordered, None in scores
        return [FoldOutcome(known, status_of(model), "", *own)]


def _score(data: SearchData, scorer: Scorer, *of: Any) -> float | None:
    """Return a score, or None for that of probabilities which the model lacks."""
    try:
        return data.score(scorer, *of)
    except NoProbabilitiesError:
        if not scorer.needs_proba:
            raise
        return None


class MethodJob:
    """Job of the schedule: a method in one fold after the other."""

    def __init__(self, name: str, splits: Splits):
        self._name, self._splits = name, splits
        self._outcomes: list[Any] = []

    def steps(self) -> Generator[list[Task], object, list[FoldOutcome]]:
        for k, (train, test) in enumerate(self._splits):
            yield [Task(train, test, ({self._name: k},))]
            if self._outcomes[-1].failure:
                break  # the other folds would fail for the same reason
        left = len(self._splits) - len(self._outcomes)
        return self._outcomes + self._outcomes[-1:] * left

    def note(self, place: int, outcomes: list[Outcome]) -> None:
        self._outcomes += outcomes


class Say(Progress):
    """Progress of a comparison, which also shows the steps of the fit that runs."""

    def __init__(self, line: Line | None, names: Sequence[str], n_folds: int):
        super().__init__(line)
        self.total = len(names) * n_folds
        self._names, self._n_folds = list(names), n_folds

    def fold(self, name: str, k: int) -> Callable[[State], bool] | None:
        """Show which fold begins; return a callback that shows the steps of its fit."""
        if self._line is None:
            return None
        done = self._names.index(name) * self._n_folds + k
        left = self._line.seconds / max(done, 1) * (self.total - done)
        wait = f", {duration(left)} left" if done else ""
        where = f"{name}: fold {k + 1} of {self._n_folds}{wait}"
        self._line.show(where)
        return partial(self._step, where)

    def _step(self, where: str, state: State) -> bool:
        assert self._line is not None
        self._line.show(f"{where}; {state.n_iter} steps")
        return False

    def add(self, fits: int, stored: bool) -> None:
        """Show nothing: the next fold is shown when it begins."""

    def close(self) -> None:
        """Remove the line from a terminal."""
        if self._line is not None:
            self._line.wipe()
            self._line = None


@with_suggestions
@each_warning_once
def compare(
    X: MatrixLike,
    y: Labels,
    *,
    methods: str | Sequence[Any] | Mapping[str, Any] | None = None,
    tune: bool = False,
    cv: SplitsLike = 5,
    scoring: Scoring | Sequence[Scoring] = ("mae", "accuracy", "rps"),
    greater_is_better: bool | None = None,
    rule: Rule | None = None,
    classes: Sequence[Any] | None = None,
    missing_labels: MissingLabels = "error",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    preprocess: TablePreprocessor | None = None,
    n_threads: int | None = None,
    progress: bool | None = None,
    rng: Rng = 0,
) -> Comparison:
    """Compare methods by cross-validation.

    Every method is fitted to the training rows of the same folds, with its defaults or
    tuned on these rows, and scored on the test rows. X may have categories and missing
    values: for methods that accept only numbers, a `TablePreprocessor` is fitted to the
    training rows of each fold.

    Parameters
    ----------
    X : (n, d) array-like, data frame or sparse matrix
        Raw features: numbers, categories, missing values.
    y : (n,) array-like
        Labels as for the `fit_*` functions.
    methods : sequence of methods, mapping of str to them, or "all", optional
        Names of methods in the command ("svorim", "gpor-ep"), `fit_*` functions,
        partials of them, functions of (X, y, **options), or classifiers of scikit-learn
        and of packages like it, also pipelines and searches. Functions and classifiers
        receive the features as an array of numbers, which is coded, imputed and
        standardised; clones of the classifiers are fitted to the ranks 0 .. r-1. A
        mapping gives methods other names. Default: one method of
        each kind, which are two baselines that ignore X ("constant-median" and
        "constant-mode"), the linear "pom", "svorim" and "npsvor" with a Gaussian
        kernel, "xofm", "boosting" if LightGBM is installed, and "gpor-ep" for up to 500
        training rows, because fits of more rows take several seconds.
    tune : bool, default False
        Whether to tune each method in folds of the training rows, as `select` does.
        Functions and classifiers have no grid here and are not tuned: pass a
        `GridSearchCV` of the classifier.
    cv : int, sequence of (train_idx, test_idx), or splitter, default 5
        As for `select`; 5 stratified folds, as in the papers.
    scoring : str, callable or sequence of them, default ("mae", "accuracy", "rps")
        Metrics as for `select`; the first one decides the order. If a metric needs
        probabilities, such as "rps", support vector methods calibrate theirs, which
        takes five more fits; leave such metrics out for speed. A method without
        probabilities has no such score.
    greater_is_better : bool, optional
        Whether larger values of a callable `scoring` are better, as for `select`.
    rule : {"own", "mode", "median", "cost"}, optional
        Rule of all predictions, as for `select`. Default: the one that belongs to each
        metric; the column "rules" says which. `best` predicts by that of the first.
    classes : sequence of labels in rank order, optional
        As for the `fit_*` functions; needed for labels that are strings.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out, with their entries of
        all other arguments. Row numbers in `cv` are those of all rows.
    sample_weight : (n,) array-like >= 0, optional
        Weights of the rows in fits and scores, which every fit must accept.
    groups : (n,) array-like, optional
        Group of each row, such as a patient or rater. Rows of a group are in the same
        fold, also in the folds of searches and in those by which `fit_boosting` chooses
        its number of rounds, but not in those that calibrate probabilities.
    preprocess : TablePreprocessor, optional
        Preprocessing instead of the default, for example with `order` for ordered
        categories. Methods that take categories and missing values themselves have it
        only if it states `order` or `dates`.
    n_threads : int, optional
        Number of threads of each fit; default as for the fits.
    progress : bool, optional
        Whether to report progress, as for `select`. Default: after 5 s on a terminal or
        in a notebook.
    rng : int or numpy.random.Generator, default 0
        Source of the random numbers that draw the folds, also those of searches.

    Returns
    -------
    Comparison
        Prints as a table with the best method first and a verdict below. Its attribute
        `best` is the best method, refitted to all rows. If no method has a finite mean
        score, none is best, and the notes say in which folds.

    Raises
    ------
    ValueError, TypeError
        If the data or an argument is invalid. If every method failed, apart from the
        constants, their errors are raised; otherwise `reasons` lists failures.

    See Also
    --------
    select : Tune the hyperparameters of a method by cross-validation, and refit it.
    ordinal.comparison.wilcoxon : Test paired scores by Wilcoxon's signed-rank test.
    ordinal.plot.errors_by_method : Plot the errors of methods on the splits of each
        data set.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(40, rng=0)
    >>> result = ordinal.compare(X, y, methods=["constant-median", "pom", "svorim"])
    >>> result.methods
    ('svorim', 'pom', 'constant-median')
    >>> result.verdict
    'svorim is best by MAE; no other is within one standard error.'
    >>> result.best.predict([[10.0, 10.0]])
    array([1])

    Classifiers with the interface of scikit-learn are methods, too:

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> ordinal.compare(X, y, methods=["pom", KNeighborsClassifier()]).methods
    ('KNeighborsClassifier', 'pom')
    """
    labelled = Labelled.from_arguments(
        missing_labels, X, y, {}, sample_weight=sample_weight, groups=groups
    )
    X, y, cv = labelled.X, labelled.y, labelled.renumbered(cv)
    sample_weight, groups = labelled.by_row["sample_weight"], labelled.by_row["groups"]
    tune = check_flag("tune", tune)
    resolve_n_threads(n_threads)  # the baselines would not ask for it
    line = Line.from_argument(progress)
    rng = resolve_rng(rng)
    scorers = scorers_of(scoring, greater_is_better)
    for scorer in scorers:
        scorer.check_labels(y)
    check_in_memory("compare", X)
    with numbered_as_caller(labelled.keep):
        data = _read(X, y, preprocess, classes, sample_weight, groups)
    rows = np.arange(len(data.y))
    splits = splits_of(cv, "cv", rows, data, partial(drawn_folds, rng=rng))
    how = preprocess or TablePreprocessor()
    fits = chosen_fits(methods, min(train.size for train, _ in splits))
    if isinstance(y, RankIntervals) and methods is None:
        fits = {name: fit for name, fit in fits.items() if takes_intervals(fit)}
    for fit in fits.values():
        check_intervals(fit, y)
    learners = {
        name: Learner.from_fit(
            fit, {}, tune=tune, preprocess=how if isinstance(data.X, Frame) else None,
            n_threads=n_threads,
        )
        for name, fit in fits.items()
    }  # fmt: skip
    if isinstance(y, RankIntervals):  # by which no link is calibrated
        learners = {k: known.uncalibrated() for k, known in learners.items()}
    for name, learner in learners.items():
        if data.weight is not None and not learner.takes_weights:
            raise TypeError(no_weights(name))
    seed = (int(rng.integers(2**32)),)
    study = Study(data, learners, scorers, rule, seed, labelled)
    return compared(study, splits, line)


def compared(study: Study, splits: Splits, line: Line | None) -> Comparison:
    """Return the comparison of the methods of a study on these splits.

    Raises an error if every method failed, apart from the constants.
    """
    study.data.warn_of_identifiers()
    say, scorers = Say(line, list(study.learners), len(splits)), study.scorers
    jobs = [MethodJob(name, splits) for name in study.learners]
    found, _ = run(jobs, Workers(MethodWork(study, say)), None, say)
    folds = dict(zip(study.learners, found, strict=True))
    failed = {n: of[-1] for n, of in folds.items() if n not in CONSTANTS}
    if failed and all(fold.error for fold in failed.values()):
        raise _all_failed(failed)
    means = np.array([np.mean([f.scores[0] for f in of]) for of in folds.values()])
    losses = -means if scorers[0].greater_is_better else means
    order = np.argsort(losses, kind="stable")  # nan comes last
    names = [list(folds)[i] for i in order]

    def array(get: Callable[[FoldOutcome], Any]) -> np.ndarray:
        return read_only(np.array([[get(fold) for fold in folds[n]] for n in names]))

    rules = [rules_of(study.scorers_of(name)) for name in names]
    return Comparison(
        methods=tuple(names),
        scores={
            scorer.name: array(lambda fold, m=m: fold.scores[m])  # type: ignore[misc]
            for m, scorer in enumerate(scorers)
        },
        seconds=array(lambda fold: fold.seconds),
        status=array(lambda fold: fold.status),
        params=tuple(tuple(dict(f.params) for f in folds[n]) for n in names),
        disordered=array(lambda fold: fold.disordered).sum(axis=1),
        reasons={n: f.failure for n in names for f in folds[n][-1:] if f.failure},
        splits=[(read_only(train), read_only(test)) for train, test in splits],
        greater_is_better=scorers[0].greater_is_better,
        rules={m: read_only(np.array([by[m] for by in rules])) for m in rules[0]},
        _study=study,
        _without_proba={n for n in names if any(f.lacks_proba for f in folds[n])},
    )


def _all_failed(failed: Mapping[str, FoldOutcome]) -> Exception:
    """Return the error of all methods, or one that names each of several errors."""
    first, *others = failed.values()
    if all(fold.failure == first.failure for fold in others):
        assert first.error is not None
        return first.error
    each = "; ".join(f"{name}: {fold.failure}" for name, fold in failed.items())
    error = ValueError(f"every method failed: {each}")
    error.__cause__ = first.error
    return error


def _read(
    X: Any,
    y: Any,
    preprocess: TablePreprocessor | None,
    classes: Any,
    sample_weight: Any,
    groups: Any,
) -> SearchData:
    """Return the rows that all methods are given."""
    if preprocess is not None and not isinstance(preprocess, TablePreprocessor):
        raise TypeError(
            f"preprocess must be a TablePreprocessor, got {shown(preprocess)}"
        )
    labels = {"classes": classes, "sample_weight": sample_weight}
    if is_sparse(X):
        table: Any = read_features(X)
        problem = Problem.from_arrays(table, y, **labels)
    else:
        declared = () if preprocess is None else preprocess.declared_in(X)
        table = read_frame_of(X, declared)
        problem = Problem.from_arrays(table.values, y, missing=True, **labels)
    return SearchData(
        X=table,
        feature_names=None,  # those of a Frame are in it
        y=labels_of(problem, y),
        classes=problem.classes,
        weight=None if sample_weight is None else problem.sample_weight,
        group=group_numbers(groups, len(problem.rank)),
    )
