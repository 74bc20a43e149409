"""What a search has workers do: fit some points to some rows, score them on others.

A `Task` carries row numbers and points. The `Work` that they refer to, with X, is
published once, under a key: workers in this process look it up, those in others read it
from a file and keep it; where they cannot see the file, they say so, and their next
task brings it along. What a task returns depends on it and the work alone.

Points that differ in C only (NPSVOR: in C1, C2 and epsilon) are one task: a path, which
shares the kernel matrix and goes from the least C up, each fit started from the last.
The inner products of the rows are kept for the tasks of other gammas on the same rows.
"""

from __future__ import annotations  # numpy.random is slow to import

import inspect
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import metrics
from .._input.checks import check_choice
from .._input.sparse import CSR
from .._kernel_matrix.tiles import Products
from .._model.convergence import ConvergenceWarning, DisorderedThresholdsWarning
from .._model.registry import path_of, unwrapped
from .._numerics.rows import take
from ..preprocessing import StandardizedModel, Standardizer
from .spaces import Point

# What is recorded of every fit, and so not warned of
REPORTED = (ConvergenceWarning, DisorderedThresholdsWarning)

_KEPT_MB = 100  # inner products of one training set: to 5000 rows
_LOSSES = ("mze", "mae", "amae", "mmae", "oci", "rps", "log_loss")
_GAINS = ("accuracy_off", "gmsec", "cem", "kappa", "kendall", "spearman")
_OF_PROBABILITIES = ("rps", "log_loss")

# Scoring


@dataclass(frozen=True, slots=True)
class Scorer:
    """A name of `ordinal.metrics`, or a function of (true labels, predicted ones)."""

    name: str
    call: Callable
    greater_is_better: bool

    @classmethod
    def of(cls, scoring: Any, greater_is_better: bool | None) -> Scorer:
        """From the argument of a search."""
        if isinstance(scoring, str):
            check_choice("scoring", scoring, (*_LOSSES, *_GAINS))
            greater = scoring in _GAINS
            if greater_is_better not in (None, greater):
                raise ValueError(
                    f"greater_is_better={greater_is_better} contradicts {scoring!r}"
                )
            return cls(scoring, getattr(metrics, scoring), greater)
        if not callable(scoring):
            raise TypeError(f"scoring must be a name or a callable, got {scoring!r}")
        name = getattr(scoring, "__name__", type(scoring).__name__)
        return cls(name, scoring, bool(greater_is_better))

    def __call__(self, model: Any, X: Any, f: Any, y, classes, weight) -> float:
        """Of a model on rows X, whose decision function is f if that is not None."""
        given = {"labels": classes, "sample_weight": weight}
        if getattr(metrics, self.name, None) is not self.call:
            return float(self.call(y, _predicted(model, X, f)))
        if self.name in _OF_PROBABILITIES:
            P = model.predict_proba(X) if f is None else model._proba(f)
            return self.call(y, P, **given)
        return self.call(y, _predicted(model, X, f), **given)


def _predicted(model: Any, X: Any, f: Any) -> np.ndarray:
    return model.predict(X) if f is None else model._labels(f)


# Work and tasks


@dataclass(frozen=True, slots=True)
class Task:
    """Points to fit to the rows `train`, least C first, and to score on `test`."""

    train: np.ndarray
    test: np.ndarray
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one point: a score a scorer, how its fit ended, and seconds.

    The seconds of a path are shared out evenly. `failure` is the reason why there are
    no scores, else empty; `status` is that of the convergence.
    """

    scores: tuple[float, ...]
    status: str
    failure: str
    seconds: float

    def judged(self) -> Outcome:
        """A failure as well if the score that decides is no number."""
        if self.failure or np.isfinite(self.scores[0]):
            return self
        return replace(self, failure=f"scored {self.scores[0]}")


@dataclass(slots=True, eq=False)
class Work:
    """What all tasks of a search share.

    Attributes
    ----------
    fit : callable
    options : dict
        The arguments of every fit beside the points.
    X : (n, d) array or CSR
    y : (n,) array of labels
    classes : (r,) array
    weight : (n,) array or None
    standardize : bool
    scorers : tuple of Scorer
    stop : threading.Event or None
        Set when the fits in this process are to end.
    """

    fit: Callable
    options: dict[str, Any]
    X: np.ndarray | CSR
    y: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    standardize: bool
    scorers: tuple[Scorer, ...]
    stop: threading.Event | None = None
    _rows: dict[bytes, _Rows] = field(default_factory=dict)

    def published(self) -> bytes:
        """As bytes for another process."""
        return pickle.dumps(replace(self, stop=None, _rows={}))

    def run(self, task: Task, n_threads: int | None) -> list[Outcome]:
        """Fit and score; what a fit raises becomes its outcome."""
        start = time.perf_counter()
        try:
            rows = self._of(task.train)
            X_test = rows.transformed(take(self.X, task.test))
        except Exception as error:
            return [self._failed(error, start)] * len(task.points)
        found = self.fitted(rows, X_test, task.points, n_threads)
        weight = None if self.weight is None else self.weight[task.test]
        outcomes, y = [], self.y[task.test]
        for model, f in found:
            try:
                if isinstance(model, Exception):
                    raise model
                scores = [
                    s(model, X_test, f, y, self.classes, weight) for s in self.scorers
                ]
            except Exception as error:
                outcomes.append(self._failed(error, start))
                continue
            record = getattr(model, "convergence", None)
            status = "fitted" if record is None else record.status.value
            outcomes.append(Outcome(tuple(scores), status, "", 0.0))
        seconds = (time.perf_counter() - start) / len(task.points)
        return [replace(outcome, seconds=seconds) for outcome in outcomes]

    def fitted(
        self, rows: _Rows, X_test: Any, points: Sequence[Point], n_threads: int | None
    ) -> list[tuple[Any, Any]]:
        """The model, or what was raised, for every point, and the decision function of
        the test rows where it came with the model."""
        options = self._options(rows, n_threads)
        path = _path(self.fit, self.options)
        if path is not None:
            try:
                return path(rows, X_test, points, options)
            except Exception:  # of which point will be seen
                if len(points) > 1:
                    return [
                        self.fitted(rows, X_test, [p], n_threads)[0] for p in points
                    ]
        models: list[Any] = []
        for point in points:
            try:
                models.append(self.fit(rows.X, rows.y, **options, **point))
            except Exception as error:
                models.append(error)
        return [(model, None) for model in models]

    def refitted(self, point: Point, n_threads: int | None) -> Any:
        """The model of all rows, behind its standardizer."""
        rows = self._of(np.arange(len(self.y)))
        options = self._options(rows, n_threads) | point
        model = self.fit(rows.X, rows.y, **options)
        if rows.standardizer is None:
            return model
        return StandardizedModel(rows.standardizer, model)

    def _options(self, rows: _Rows, n_threads: int | None) -> dict[str, Any]:
        """What a fit to these rows is told, as far as it can be told."""
        known = parameters(self.fit)
        options = dict(self.options)
        if "classes" in known:
            options["classes"] = self.classes
        if rows.weight is not None:
            options["sample_weight"] = rows.weight
        if "n_threads" in known and n_threads is not None:
            options["n_threads"] = n_threads
        if "callback" in known and self.stop is not None:
            options.setdefault("callback", lambda _: self.stop.is_set())
        return options

    def _of(self, train: np.ndarray) -> _Rows:
        """The training rows, standardised; the last two sets are kept."""
        key = train.tobytes()
        rows = self._rows.get(key)
        if rows is None:
            rows = _Rows.of(self, train)
            for old in list(self._rows)[:-1]:
                self._rows.pop(old, None)
            self._rows[key] = rows
        return rows

    def _failed(self, error: Exception, start: float) -> Outcome:
        nan = (float("nan"),) * len(self.scorers)
        reason = f"{type(error).__name__}: {error}"
        return Outcome(nan, "failed", reason, time.perf_counter() - start)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Training rows as the fits take them."""

    X: np.ndarray | CSR
    y: np.ndarray
    weight: np.ndarray | None
    standardizer: Standardizer | None
    products: Products | None

    @classmethod
    def of(cls, work: Work, train: np.ndarray) -> _Rows:
        X = take(work.X, train)
        weight = None if work.weight is None else work.weight[train]
        standardizer = Standardizer.fit(X, weight) if work.standardize else None
        if standardizer is not None:
            X = standardizer.transform(X)
        keep = 4e-6 * train.size**2 <= _KEPT_MB
        products = Products(X) if keep else None
        return cls(X, work.y[train], weight, standardizer, products)

    def transformed(self, X: Any) -> Any:
        return X if self.standardizer is None else self.standardizer.transform(X)


# Paths


@lru_cache(maxsize=64)
def parameters(fit: Callable) -> Mapping[str, inspect.Parameter]:
    """The arguments of a fit_* function or of a partial of one."""
    return inspect.signature(fit).parameters


def path_arguments(fit: Callable, options: Mapping[str, Any]) -> tuple[str, ...]:
    """In what the points of one task may differ; nothing where there are no paths."""
    function, fixed = unwrapped(fit)
    path = path_of(function)
    # of one fit, and not to be shared by a path
    if path is None or {"start", "max_time", "callback"} & {*fixed, *options}:
        return ()
    return path.varying


def _path(fit: Callable, options: Mapping[str, Any]) -> Callable | None:
    """A function of (rows, test rows, points, options) that fits a path, if `fit` has
    paths."""
    names = path_arguments(fit, options)
    function, fixed = unwrapped(fit)
    path = path_of(function)
    if path is None or not names:
        return None

    def call(rows: _Rows, X_test: Any, points: Sequence[Point], options: dict) -> list:
        shared = {k: v for k, v in points[0].items() if k not in names}
        every = {**fixed, **options, **shared}
        varied = {k: every.pop(k) for k in names if k in every}
        own = [varied | {k: p[k] for k in names if k in p} for p in points]
        found = path.fit(rows.X, rows.y, own, rows.products, X_test, **every)
        return list(zip(*found, strict=True))

    return call


def is_ours(fit: Callable) -> bool:
    """Whether this is a function of this package, so that threads can call it."""
    function, _ = unwrapped(fit)
    return getattr(function, "__module__", "").partition(".")[0] == __package__


# Workers

_published: dict[str, Work] = {}
_LACKING = "the work is not known here"  # what a worker answers that cannot see it


def publish(key: str, work: Work) -> None:
    """Let tasks in this process find the work; `withdraw` lets go of it."""
    _published[key] = work


def withdraw(key: str) -> None:
    _published.pop(key, None)


def run_task(
    key: str, path: str, task: Task, n_threads: int | None, brought: bytes | None = None
) -> list[Outcome] | str:
    """What is submitted to an executor; `_LACKING` asks for the work to be brought."""
    work = _published.get(key)
    if work is None:
        if brought is None:
            try:
                brought = Path(path).read_bytes()
            except OSError:
                return _LACKING
        work = pickle.loads(brought)
        for old in list(_published)[:-1]:  # a worker serves one search after the other
            _published.pop(old, None)
        _published[key] = work
    if work.stop is None and threading.current_thread() is threading.main_thread():
        # of a process pool; filters are not for other threads to touch
        with warnings.catch_warnings():
            quiet()
            return work.run(task, n_threads)
    return work.run(task, n_threads)


def lacking(answer: Any) -> bool:
    return isinstance(answer, str)


def quiet() -> None:
    """Ignore what every outcome records, until the filters are restored."""
    for category in REPORTED:
        warnings.simplefilter("ignore", category)
