"""Work of a search: points that are fitted to some rows and scored on others.

A `Task` carries row numbers and points; the `Work` that it refers to, with the data, is
the same for all tasks of a search. What a task returns depends on the two alone.

Points that differ only in arguments that may vary along a path (C; for NPSVOR C, C2
and epsilon) are one task: the method fits them together, over one kernel matrix. The
inner products of the rows are cached for the tasks of other gammas on the same rows.
"""

from __future__ import annotations

import inspect
import pickle
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeAlias, Unpack

import numpy as np

from .._input.checks import check_keywords, shortened, shown
from .._model.model import Model, with_rule
from .._model.registry import Method, method_of, path_of, unwrapped
from .._rows.rows import map_rows
from .._watch.convergence import Convergence
from ..kernels.functions import KernelFunction
from ..preprocessing import PreprocessedModel, Standardizer
from ..preprocessing.model import states_columns
from .data import RowArguments, SearchData, TrainingRows
from .scoring import Rule, Scorer, calibrates, ruled
from .spaces import Point, Space

SCORED = "scored "  # beginning of the reason why a score does not count
_REASON = 400  # characters of the reason why a fit failed that are recorded
# Options that mean something else for a path of fits than for a single one
_OF_ONE_FIT = ("start", "max_time", "callback")


# Model of a fold or an exception, its decision function of the test rows or None, and
# the numbers of these rows
FoldValues: TypeAlias = tuple[Any, np.ndarray | None, np.ndarray]


@dataclass(frozen=True, slots=True)
class Task:
    """Points to fit to the rows `train`, least C first, and to score on `test`.

    With `others`, further pairs of (train, test), the folds calibrate one another, and
    their outcomes come after those of the first.
    """

    train: np.ndarray
    test: np.ndarray
    points: tuple[Point, ...]
    others: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    @property
    def n_outcomes(self) -> int:
        return len(self.points) * (1 + len(self.others))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one point: one score per scorer, status and seconds.

    The points of a path have equal shares of its seconds. `failure` is the reason why
    there are no scores, or empty; `status` is that of the convergence.
    """

    scores: tuple[float, ...]
    status: str
    failure: str
    seconds: float

    def judged(self) -> Outcome:
        """Return the outcome, as a failure if the deciding score is not finite."""
        if self.failure or np.isfinite(self.scores[0]):
            return self
        return replace(self, failure=f"{SCORED}{self.scores[0]}")


class Runnable(Protocol):
    """Work of workers: it runs tasks, also in other processes."""

    def run(self, task: Task, n_threads: int | None) -> list[Outcome]: ...
    def side_by_side(self, space: Space | None) -> bool: ...
    def pickled(self) -> bytes: ...


@dataclass(eq=False)
class Work:
    """Data and options that all tasks of a search share.

    Attributes
    ----------
    fit : callable
    options : dict
        Arguments of every fit beside those of the points.
    data : SearchData
    scorers : tuple of Scorer
    """

    fit: Callable[..., Any]
    options: dict[str, Any]
    data: SearchData
    scorers: tuple[Scorer, ...]
    _cached: dict[bytes, TrainingRows] = field(default_factory=dict)

    @classmethod
    def from_arguments(
        cls,
        fit: Callable[..., Any],
        X: Any,
        y: Any,
        scorers: tuple[Scorer, ...],
        options: dict[str, Any],
        rule: Rule | None = "own",
        searched: Collection[str] = (),
        **rows: Unpack[RowArguments],
    ) -> Self:
        """Make the work of `select`, `nested` or `cross_conformal` from its arguments.

        Probabilities are calibrated where scores need them, unless `searched`, the
        arguments of the points, say whether. Raises ValueError or TypeError for
        unusable data or arguments.
        """
        if not callable(fit):
            raise TypeError(f"fit must be a function of (X, y), got {shown(fit)}")
        given = {**unwrapped(fit)[1], **options}
        scorers = ruled(scorers, fit, given, rule)
        known = inspect.signature(fit).parameters.keys() - {*given, *searched}
        if calibrates(scorers, known):
            options = {**options, "probability": True}
        for scorer in scorers:
            scorer.check_labels(y)
        data = SearchData.from_arguments(fit, given, X, y, **rows)
        work = cls(fit, options, data, scorers)
        work._check()
        return work

    def _check(self) -> None:
        """Raise TypeError or ValueError for arguments that no fit could have."""
        weighted = self.data.weight is not None
        self.check_arguments([*self.options, *["sample_weight"] * weighted])
        self._check_by_row()
        # Its state would depend on the order in which tasks run.
        if isinstance(self.given.get("rng"), np.random.Generator):
            raise TypeError(
                "rng of the fits must be a seed, because they cannot share one "
                "generator: pass an integer"
            )
        if self.given.get("kernel") == "precomputed":
            raise ValueError(
                "kernel must not be 'precomputed', because a search divides and "
                "scales features: pass features and the name of a kernel"
            )

    def _check_by_row(self) -> None:
        """Raise TypeError for arguments with one entry per row."""
        if self.method is None:
            return
        for name in sorted(self.method.by_row):
            if self.given.get(name) is not None:
                remedy = f"leave {name} out"
                if name == "groups" and self.method.grouped_folds:
                    remedy = "pass groups to the search instead"
                raise TypeError(
                    f"{name} has one entry per row, which a search does not divide "
                    f"between folds: {remedy}"
                )

    @property
    def method(self) -> Method | None:
        """Declaration of `fit`, or None for a function of the caller."""
        return method_of(unwrapped(self.fit)[0])

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of `fit`, which may be a partial."""
        return inspect.signature(self.fit).parameters

    @property
    def given(self) -> dict[str, Any]:
        """Options that are the same for all fits, also those of a partial."""
        return {**unwrapped(self.fit)[1], **self.options}

    @property
    def varying(self) -> tuple[str, ...]:
        """Arguments in which the points of one task may differ; none without paths."""
        path = path_of(unwrapped(self.fit)[0])
        if path is None or not self.given.keys().isdisjoint(_OF_ONE_FIT):
            return ()
        return path.varying

    @property
    def ours(self) -> bool:
        """Return whether `fit` is of this package, so that threads can call it."""
        # The module of a function that was made by eval is None.
        module: str = getattr(unwrapped(self.fit)[0], "__module__", None) or ""
        return module.partition(".")[0] == __name__.partition(".")[0]

    def side_by_side(self, space: Space | None) -> bool:
        """Return whether threads may run tasks at the same time.

        A function of the caller, `fit` or a kernel, may not be thread-safe. A source
        may not allow two passes at a time, and every fit needs memory for its chunks.
        """
        kernels = [self.given.get("kernel", "rbf")]
        kernels += getattr(space, "values", {}).get("kernel", [])
        known = all(isinstance(k, str | KernelFunction) for k in kernels)
        return known and self.ours and self.data.chunked is None

    def sample_options(self, n: int) -> dict[str, Any]:
        """Return the options that replace those in `given` for a sample of n rows.

        A small sample needs no basis: the whole kernel matrix then costs less, and
        shows as well which point is better.
        """
        method, basis = self.method, self.given.get("basis")
        if method is None or self.data.chunked is not None:
            return {}
        if not isinstance(basis, int) or n > method.rows_per_basis_row * basis:
            return {}
        return {"basis": None}

    def check_point(self, point: Point) -> None:
        """Raise TypeError for a point with an argument that the function does not have;
        the message says what can be searched instead.
        """
        try:
            self.check_arguments(point)
        except TypeError as error:
            method = self.method
            if method is None or not method.grid:
                raise
            grid = ", ".join(f"{k}={[*v]}" for k, v in method.grid.items())
            raise TypeError(f"{error}; it can be searched by Grid({grid})") from None

    def check_arguments(self, names: Iterable[str]) -> None:
        """Raise TypeError for an argument that the function does not have, or that
        belongs to the search.
        """
        names, known = list(names), self.parameters
        fixed = unwrapped(self.fit)[1].get("preprocess") is not None
        if self.ours and (fixed or "preprocess" in names):
            raise TypeError(
                "preprocess is an argument of the search, which fits it to the "
                "training rows of each fold, and not of the fit or its points"
            )
        if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
            called = getattr(self.fit, "__name__", shown(self.fit))
            check_keywords(called, names, known, outer=("cv", "scoring", "search"))

    def pickled(self) -> bytes:
        """Pickle the work for another process; TypeError if that is impossible."""
        # Cached rows would double what travels.
        work, chunked = replace(self, _cached={}), self.data.chunked
        if chunked is not None:
            if not chunked.X.is_near:
                raise TypeError(
                    "executor must be None where X is a collection of dask, whose "
                    "workers hold the rows"
                )
            _pickled(chunked.X, "X must be a source that")
        return _pickled(work, "fit, scoring and options must be such as")

    def run(self, task: Task, n_threads: int | None) -> list[Outcome]:
        """Fit and score; what a fit raises becomes its outcome."""
        start = time.perf_counter()
        fit = self._linked if task.others else self._alone
        outcomes = fit(task, n_threads)
        seconds = (time.perf_counter() - start) / len(outcomes)
        return [replace(outcome, seconds=seconds) for outcome in outcomes]

    def _alone(self, task: Task, n_threads: int | None) -> list[Outcome]:
        fitted, X_test = self._models(task.train, task.test, task.points, n_threads)
        return [self._outcome(*of, X_test, task.test) for of in fitted]

    def _linked(self, task: Task, n_threads: int | None) -> list[Outcome]:
        """Fit points in all folds without links, which come from the other folds.

        The link of a fold is learnt from what the models of the others say of their
        test rows, as that of `probability=True` is, but no fit is made for it.
        """
        plain = replace(self, options={**self.options, "probability": False})
        splits = [(task.train, task.test), *task.others]
        fits = [plain._models(*split, task.points, n_threads) for split in splits]
        # By point, the model of each fold with its values of the test rows.
        folds = [
            [
                with_values(*fitted[i], X_test, test)
                for (fitted, X_test), (_, test) in zip(fits, splits, strict=True)
            ]
            for i in range(len(task.points))
        ]
        outcomes = []
        for k, (train, test) in enumerate(splits):
            for point, of_point in zip(task.points, folds, strict=True):
                model, values, _ = of_point[k]
                if values is not None:
                    try:
                        model = self.linked(of_point, k)
                    except Exception as error:
                        model = error
                elif not isinstance(model, Exception):
                    # It has leave-one-out scores, or another way of its own.
                    outcomes += self._alone(Task(train, test, (point,)), n_threads)
                    continue
                outcomes.append(self._outcome(model, values, fits[k][1], test))
        return outcomes

    def linked(self, folds: Sequence[FoldValues], k: int) -> Any:
        """Return the model of fold k with a link fitted to the other folds."""
        model, others = folds[k][0], [*folds[:k], *folds[k + 1 :]]
        return replace(model, link=self.link(model, others))

    def link(self, model: Any, folds: Sequence[FoldValues]) -> Any:
        """Return a link for a model, fitted to the values of folds that have some."""
        known = [fold for fold in folds if fold[1] is not None]
        if not known:
            raise ValueError("no other fold to calibrate probabilities on")
        inputs = [of._link_input(values, model) for of, values, _ in known]
        test = np.concatenate([rows for _, _, rows in known])
        return model.link_type.fit(
            np.concatenate(inputs), self.data.rank[test], self.weight(test),
            self.data.classes.size,
        )  # fmt: skip

    def weight(self, test: np.ndarray) -> np.ndarray:
        """Return the weights of rows in a link, those of their classes included."""
        return self.data.weights(test, self.given.get("class_weight"))

    def refitted(
        self, point: Point, n_threads: int | None, train: np.ndarray | None = None
    ) -> Any:
        """Return the model of the rows `train`, by default of all, for raw features."""
        rows = self._rows(np.arange(len(self.data.y)) if train is None else train)
        options = self._options(rows, n_threads, [point]) | point
        model = with_rule(self.fit(rows.named, rows.y, **options), self.scorers[0].rule)
        named: dict[str, Any] = {"feature_names": self.data.feature_names}
        if isinstance(rows.preprocessor, Standardizer):
            return PreprocessedModel(replace(rows.preprocessor, **named), model)
        if rows.preprocessor is not None:
            return PreprocessedModel(rows.preprocessor, model)
        known = getattr(model, "feature_names", self.data.feature_names)
        if isinstance(model, Model) and known != self.data.feature_names:
            made = replace(model, **named)
            object.__setattr__(made, "_rows_used", getattr(model, "_rows_used", None))
            return made
        return model  # a copy would lose the training rows

    def _models(
        self,
        train: np.ndarray,
        test: np.ndarray,
        points: Sequence[Point],
        n_threads: int | None,
    ) -> tuple[list[tuple[Any, Any]], Any]:
        """Return what `_fitted` returns, and the features of the test rows."""
        try:
            rows = self._rows(train)
            X_test = rows.transformed(self.data.features(test))
        except Exception as error:
            # The failure of one fold is recorded as its score, and ends no search.
            return [(error, None)] * len(points), None
        return self._fitted(rows, X_test, points, n_threads), X_test

    def _fitted(
        self,
        rows: TrainingRows,
        X_test: Any,
        points: Sequence[Point],
        n_threads: int | None,
    ) -> list[tuple[Any, Any]]:
        """Fit points; return for each the model or the exception, and the decision
        function at the test rows if it came with the model, else None.
        """
        options = self._options(rows, n_threads, points) | self._without_links()
        if self.varying:
            try:
                return self._path(rows, X_test, points, options)
            except Exception:
                # Fits of the single points show which of them is at fault.
                if len(points) > 1:
                    return [
                        self._fitted(rows, X_test, [point], n_threads)[0]
                        for point in points
                    ]
        (point,) = points  # because only those of a path are one task
        try:
            return [(self.fit(rows.named, rows.y, **options | point), None)]
        except Exception as error:
            return [(error, None)]

    def _path(
        self,
        rows: TrainingRows,
        X_test: Any,
        points: Sequence[Point],
        options: Mapping[str, Any],
    ) -> list[tuple[Any, Any]]:
        """Fit the points of a path together, and return what `_fitted` returns."""
        function, fixed = unwrapped(self.fit)
        path = path_of(function)
        assert path is not None
        shared = {**fixed, **options}
        given = {k: shared.pop(k) for k in path.varying if k in shared}
        shared |= {k: v for k, v in points[0].items() if k not in path.varying}
        own = [
            given | {k: v for k, v in p.items() if k in path.varying} for p in points
        ]
        found = path.fit(rows.named, rows.y, own, rows.products, X_test, **shared)
        return list(zip(*found, strict=True))

    def _outcome(
        self, model: Any, values: Any, X_test: Any, test: np.ndarray
    ) -> Outcome:
        """Return the scores of a model on the rows `test`, or the exception as the
        reason of a failure.
        """
        try:
            if isinstance(model, Exception):
                raise model
            scores = tuple(
                self.data.score(scorer, model, X_test, test, values)
                for scorer in self.scorers
            )
        except Exception as error:
            return self._failed(error)
        return Outcome(scores, status_of(model), "", 0.0)

    def _options(
        self, rows: TrainingRows, n_threads: int | None, points: Sequence[Point]
    ) -> dict[str, Any]:
        """Return the options that fits of these points to these rows have in common."""
        known = self.parameters
        options = dict(self.options)
        if self._in_columns:
            options["preprocess"] = self.data.preprocess
        if "classes" in known:
            options["classes"] = self.data.classes
        if rows.weight is not None:
            options["sample_weight"] = rows.weight
        # One path may hold points with folds of their own and points without.
        if rows.group is not None and any(map(self._has_folds, points)):
            options["groups"] = rows.group
        if "n_threads" in known and n_threads is not None:
            options["n_threads"] = n_threads
        return options

    def _has_folds(self, point: Point) -> bool:
        """Return whether the fit of a point has folds that take groups."""
        method = self.method
        return method is not None and method.groups_folds({**self.given, **point})

    def _without_links(self) -> dict[str, bool]:
        """Return the option that leaves out the calibration of probabilities if no
        scorer needs them. It takes five more fits per point; the refit has it.
        """
        asked = self.given.get("probability", False)
        needed = calibrates(self.scorers, self.parameters)
        return {"probability": False} if asked and not needed and self.ours else {}

    @property
    def shares_links(self) -> bool:
        """True if the folds of a search may calibrate one another: its scores need
        probabilities that fits calibrate.
        """
        asked = self.ours and self.given.get("probability") is True
        return asked and calibrates(self.scorers, self.parameters)

    @property
    def _in_columns(self) -> bool:
        """Return whether the fit takes raw rows and the preprocessor."""
        return states_columns(self.fit, self.data.preprocess)

    def training_rows(self, train: np.ndarray, raw: bool = False) -> TrainingRows:
        """Return preprocessed rows, or `raw` ones as some fits take them."""
        data = replace(self.data, preprocess=None) if raw else self.data
        return TrainingRows.from_data(data, train, self.fit, bool(self.varying))

    def _rows(self, train: np.ndarray) -> TrainingRows:
        """Return training rows; the last two sets are cached."""
        key = train.tobytes()
        rows = self._cached.get(key)
        if rows is None:
            rows = self.training_rows(train, raw=self._in_columns)
            # Two sets, because tasks of two folds run side by side when one ends.
            for old in list(self._cached)[:-1]:
                self._cached.pop(old, None)
            self._cached[key] = rows
        return rows

    def _failed(self, error: Exception) -> Outcome:
        nan = (float("nan"),) * len(self.scorers)
        reason = f"{type(error).__name__}: {error}"
        if len(reason) > _REASON:
            reason = reason[: _REASON - 3] + "..."
        return Outcome(nan, "failed", reason, 0.0)


def with_values(model: Any, values: Any, X: Any, test: np.ndarray) -> FoldValues:
    """Return a model, its decision function of test rows, and the rows' numbers.

    `values` are those that came with the model, if it is of a path. A model that does
    not calibrate probabilities by them has None, and so has an exception, also one of
    the decision function, which then takes the place of the model.
    """
    if not hasattr(model, "link_input"):
        return model, None, test
    try:
        if values is None:
            values = map_rows(model.decision_function, X)
    except Exception as error:
        return error, None, test
    return model, values, test


def status_of(model: Any) -> str:
    """Return the status of the fit of a model, or "fitted" if it has no record."""
    known = getattr(model, "convergence", None)
    return known.status.value if isinstance(known, Convergence) else "fitted"


def _pickled(value: Any, must_be: str) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"{must_be} can be pickled, as each worker of an executor reads it: "
            f"{type(error).__name__}: {shortened(error)}"
        ) from error
