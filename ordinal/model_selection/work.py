"""Work of a search: points that are fitted to some rows and scored on others.

A `Task` carries row numbers and points; the `Work` that it refers to, with X, is the
same for all tasks of a search. What a task returns depends on the two alone.

Points that differ only in arguments that may vary along a path (C; for NPSVOR C, C2
and epsilon) are one task: the method fits them together, over one kernel matrix. The
inner products of the rows are kept for the tasks of other gammas on the same rows.

Tables of a search, kept as a matrix where there are only numbers, or as a
record of columns where there are words.
"""

from __future__ import annotations

import inspect
import pickle
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Protocol

import numpy as np

from .._input.checks import check_flag, check_keywords, enumerated, shortened, shown
from .._input.features import read_features, read_frame_of
from .._input.frame import Frame
from .._input.labels import ranks_of
from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._input.types import ArrayLike, Blocks, Labels, MatrixLike
from .._model.grouping import group_numbers
from .._model.model import Model
from .._model.preprocessed import (
    Preprocess,
    Preprocessor,
    as_named,
    fit_to_chunks,
    preprocess_for,
)
from .._model.registry import Content, Method, method_of, path_of, unwrapped
from .._numerics.rows import take
from .._rows.first_pass import ChunkedProblem
from .._rows.remote import RemoteRows, is_remote, remote_problem
from .._rows.rows import Rows
from .._rows.source import has_blocks
from .._watch.convergence import Convergence
from ..kernels.functions import on_basis
from ..kernels.tiles import Products
from ..preprocessing import (
    PreprocessedModel,
    Standardizer,
    TablePreprocessor,
)
from .scoring import Scorer
from .spaces import Point

_FILLED = "X is sparse, and standardising would fill it: standardize=False"
_ANYTHING: Set[Content] = frozenset({"missing", "categories", "sparse"})


def chosen_preprocess(
    fit: Callable[..., Any], standardize: bool | None, preprocess: Any
) -> Preprocess | None:
    """Return the preprocessor of a search, fitted to the training rows of each fold.

    The default is a Standardizer, unless the method does not depend on scale.
    """
    if standardize is not None:
        standardize = check_flag("standardize", standardize)
    if preprocess is not None:
        how = preprocess_for(fit, preprocess)
        if standardize is not None:
            raise ValueError(
                "standardize must be left out where preprocess is a "
                "TablePreprocessor, which has a standardize of its own"
            )
        return how
    method = method_of(unwrapped(fit)[0])
    if standardize is None:
        standardize = method is None or not method.scale_free
    return Standardizer if standardize else None


def read_table(
    X: Any,
    fit: Callable[..., Any],
    given: Mapping[str, Any],
    preprocess: Preprocess | None,
    by_default: bool,
) -> tuple[np.ndarray | CSR | Frame, tuple[str, ...] | None, Preprocess | None]:
    """Return the table of a search, its names, and the preprocessor.

    Missing values are NaN. If `preprocess` is a default that does not accept what the
    table holds, a TablePreprocessor takes its place, as in `compare`.

    Raises
    ------
    ValueError, TypeError
        If the table cannot be read, or holds what the fit, or a preprocessor that was
        asked for, does not accept; the message names the columns.
    """
    if is_sparse(X):
        if preprocess is not None:
            raise TypeError(_FILLED)
        return read_features(X), None, None
    columns = given.get("categorical", ())
    if isinstance(preprocess, TablePreprocessor):
        columns = (*preprocess.categorical, *preprocess.order)
    table = read_frame_of(X, columns)
    method = method_of(unwrapped(fit)[0])
    accepts, taker = _ANYTHING, ""
    if preprocess is Standardizer:
        accepts, taker = frozenset(), "standardising"
    elif preprocess is None and method is not None:
        accepts, taker = method.accepts_with(given), f"fit_{method.name}"
    refused = _refused_content(table, accepts)
    if refused and by_default:
        preprocess, accepts = preprocess_for(fit, TablePreprocessor()), _ANYTHING
    elif refused:
        raise ValueError(
            f"X holds {refused}, and {taker} takes finite numbers alone: "
            "pass preprocess=ordinal.preprocessing.TablePreprocessor()"
        )
    # a function of the caller's is given a plain array wherever that will do
    has_use = "categories" in accepts and (preprocess is not None or method is not None)
    values = table if has_use or not table.is_of_numbers else table.values
    return values, table.names, preprocess


def _refused_content(table: Frame, accepts: Set[Content]) -> str:
    """Return the columns with categories or missing values that are not accepted, such
    as "categories in 'a' and missing values in 'b'"; an empty string if there are none.
    """
    names = table.shown_names
    content: dict[Content, list[bool]] = {
        "categories": [labels is not None for labels in table.labels],
        "missing": np.isnan(table.values).any(axis=0).tolist(),
    }
    return " and ".join(
        f"{what.replace('missing', 'missing values')} in {enumerated(where)}"
        for what, held in content.items()
        if (where := list(compress(names, held))) and what not in accepts
    )


def read_rows(
    X: Any,
    y: Any,
    fit: Callable[..., Any],
    given: Mapping[str, Any],
    preprocess: Preprocess | None,
    by_default: bool,
    classes: Any,
    sample_weight: Any,
) -> tuple[
    Problem,
    np.ndarray | CSR | Frame | Rows,
    tuple[str, ...] | None,
    Preprocess | None,
]:
    """Return labels and weights of a search, then what `read_table` returns.

    A source of blocks is read once here, and again by every fit; so is a memmap that
    the fits read so. The rows of dask stay where they are.

    Raises
    ------
    ValueError, TypeError
        As `read_table`. Blocks are for fits of this package, and numbers alone.
    """
    labels: dict[str, Any] = {"classes": classes, "sample_weight": sample_weight}
    kernel = given.get("kernel", "rbf")
    method = method_of(unwrapped(fit)[0])
    without = method is not None and method.reads_chunks
    mapped = isinstance(X, np.memmap) and (
        without or on_basis(given.get("basis"), kernel)
    )
    remote = is_remote(X)
    if not (mapped or remote or has_blocks(X)):
        read = read_table(X, fit, given, preprocess, by_default)
        values = read[0].values if isinstance(read[0], Frame) else read[0]
        return Problem.from_arrays(values, y, missing=True, **labels), *read
    if method is None:
        raise TypeError(
            "X comes in chunks, which only the methods of this package read: pass "
            f"the name of one, or X in memory; got fit={shown(fit)}"
        )
    if preprocess not in (None, Standardizer):
        raise ValueError(
            "preprocess must be None where X is read in chunks: standardize scales "
            "its features"
        )
    read_chunks = remote_problem if remote else ChunkedProblem.from_source
    problem = read_chunks(X, y, **labels)
    if preprocess is Standardizer and problem.moments is None:
        raise TypeError(_FILLED)
    return problem, problem.X, problem.feature_names, preprocess


def has_no_weights(problem: ChunkedProblem) -> bool:
    """Return whether chunked rows came without weights, which are then one number."""
    return problem.sample_weight.strides == (0,)


def chunked_part(
    problem: ChunkedProblem, train: np.ndarray, standardize: bool
) -> tuple[ChunkedProblem, Standardizer | None]:
    """Return some rows as a fit reads them, standardised by their own moments if asked
    for.
    """
    part = problem if train.size == problem.n_samples else problem.subset(train)
    part = part.with_moments()
    if not standardize or part.moments is None:
        return part, None
    standardizer, made = fit_to_chunks(Standardizer, part)
    return made, standardizer


_PRODUCTS_MB = 100  # inner products that are kept of one training set: to 5000 rows
_REASON = 400  # characters that are kept of why a fit failed
_OF_ONE_FIT = ("start", "max_time", "callback")  # not to be shared along a path


@dataclass(frozen=True, slots=True)
class Task:
    """Points to fit to the rows `train`, least C first, and to score on `test`."""

    train: np.ndarray
    test: np.ndarray
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one point: one score per scorer, status and seconds.

    The seconds of a path are shared out evenly. `failure` is the reason why there are
    no scores, else empty; `status` is that of the convergence.
    """

    scores: tuple[float, ...]
    status: str
    failure: str
    seconds: float

    def judged(self) -> Outcome:
        """Count the outcome as a failure if the deciding score is no number."""
        if self.failure or np.isfinite(self.scores[0]):
            return self
        return replace(self, failure=f"scored {self.scores[0]}")


class Stop(Protocol):
    """Flag that fits check, such as `threading.Event`."""

    def is_set(self) -> bool: ...


@dataclass(eq=False)
class Work:
    """Data and options that all tasks of a search share.

    Attributes
    ----------
    fit : callable
    options : dict
        The arguments of every fit beside the points.
    X : (n, d) array, CSR, Frame or Rows
        A Frame only if there are columns of categories.
    y : (n,) array of labels
    classes : (r,) array
    weight : (n,) array or None
    group : (n,) int array or None
        Number of each row's group; rows of a group are in the same fold.
    preprocess : TablePreprocessor, the class Standardizer, or None
        What is fitted to the training rows first.
    scorers : tuple of Scorer
    feature_names : tuple of (d,) str, or None
    chunked : ChunkedProblem or None
        What X, y and weight are of, where rows are read in chunks.
    stop : Stop or None
        Set when the fits in this process are to end.

    Properties
    ----------
    method : Method or None
        The declaration of `fit`, or None for a function of the caller.
    parameters : mapping
        The arguments of `fit`, which may be a partial.
    given : dict
        Those that have one value for all fits, a partial's too.
    varying : tuple of str
        In what the points of one task may differ; nothing where there are no paths.
    ours : bool
        Whether `fit` is a function of this package, so that threads can call it.
    """

    fit: Callable[..., Any]
    options: dict[str, Any]
    X: np.ndarray | CSR | Frame | Rows
    y: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    group: np.ndarray | None
    preprocess: Preprocess | None
    scorers: tuple[Scorer, ...]
    feature_names: tuple[str, ...] | None = None
    chunked: ChunkedProblem | None = None
    stop: Stop | None = None
    _kept: dict[bytes, TrainingRows] = field(default_factory=dict)

    @property
    def rank(self) -> np.ndarray:
        """Return the ranks of the rows, which no spelling of the labels changes."""
        return ranks_of(self.y, self.classes)

    @classmethod
    def from_arguments(
        cls,
        fit: Callable[..., Any],
        X: MatrixLike | Blocks,
        y: Labels | None,
        *,
        classes: Sequence[Any] | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        scorers: tuple[Scorer, ...],
        standardize: bool | None,
        preprocess: Preprocess | None,
        options: dict[str, Any],
    ) -> Work:
        """Make the work of `select` or `nested` from their arguments.

        Raises ValueError or TypeError for unusable data or arguments.
        """
        if not callable(fit):
            raise TypeError(f"fit must be a function of (X, y), got {shown(fit)}")
        how = chosen_preprocess(fit, standardize, preprocess)
        given = {**unwrapped(fit)[1], **options}
        # Read once for all folds and points: fits then get parts of checked arrays.
        by_default = standardize is None and preprocess is None
        problem, table, names, how = read_rows(
            X, y, fit, given, how, by_default, classes, sample_weight
        )
        chunked = problem if isinstance(problem, ChunkedProblem) else None
        weighted = sample_weight is not None
        if chunked is not None:
            weighted = not has_no_weights(chunked)
        work = cls(
            fit=fit,
            options=options,
            X=table,
            y=problem.classes[problem.rank],
            classes=problem.classes,
            weight=problem.sample_weight if weighted else None,
            group=group_numbers(groups, len(problem.rank)),
            preprocess=how,
            scorers=scorers,
            feature_names=names,
            chunked=chunked,
        )
        work._check(weighted)
        return work

    def _check(self, weighted: bool) -> None:
        """Raise TypeError or ValueError for arguments that no fit could have."""
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
        return method_of(unwrapped(self.fit)[0])

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.fit).parameters

    @property
    def given(self) -> dict[str, Any]:
        return {**unwrapped(self.fit)[1], **self.options}

    @property
    def varying(self) -> tuple[str, ...]:
        path = path_of(unwrapped(self.fit)[0])
        # A callback or a limit of one fit means something else for a path of them.
        if path is None or not self.given.keys().isdisjoint(_OF_ONE_FIT):
            return ()
        return path.varying

    @property
    def ours(self) -> bool:
        # which is None for a function made by eval
        module: str = getattr(unwrapped(self.fit)[0], "__module__", None) or ""
        return module.partition(".")[0] == __name__.partition(".")[0]

    def sample_options(self, n: int) -> dict[str, Any]:
        """Return the options that fits to a sample of n rows have in place of `given`.

        A sample of few rows needs no basis: the whole kernel matrix then costs less,
        and tells points apart as well.
        """
        method, basis = self.method, self.given.get("basis")
        if method is None or self.chunked is not None:
            return {}
        if not isinstance(basis, int) or n > method.rows_per_basis_row * basis:
            return {}
        return {"basis": None}

    def check_point(self, point: Point) -> None:
        """Raise TypeError for a point with an argument that the function does not have,
        which says what can be searched instead.
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
            check_keywords(called, names, known)

    def pickled(self) -> bytes:
        """Pickle the work for another process; TypeError if that is impossible."""
        # Locks cannot be pickled, and cached rows would double what travels.
        work = replace(self, stop=None, _kept={})
        if self.chunked is not None:
            if isinstance(self.chunked.X, RemoteRows):
                raise TypeError(
                    "executor must be None where X is a collection of dask, whose "
                    "workers hold the rows"
                )
            _pickled(self.chunked.X, "X must be a source that")
        return _pickled(work, "fit, scoring and options must be such as")

    def rows_of(self, numbers: np.ndarray) -> Any:
        """Return features of some rows: a matrix, a Frame, or Rows."""
        if isinstance(self.X, Rows):
            return self.X.subset(numbers)
        return take(self.X, numbers)

    def run(self, task: Task, n_threads: int | None) -> list[Outcome]:
        """Fit and score; what a fit raises becomes its outcome."""
        start = time.perf_counter()
        try:
            rows = self._rows(task.train)
            X_test = rows.transformed(self.rows_of(task.test))
        except Exception as error:
            # A failure of one fold is a score of that fold, and not the end of a
            # search.
            outcomes = [self._failed(error)] * len(task.points)
        else:
            fitted = self._fitted(rows, X_test, task.points, n_threads)
            outcomes = [self._outcome(*of, X_test, task.test) for of in fitted]
        seconds = (time.perf_counter() - start) / len(task.points)
        return [replace(outcome, seconds=seconds) for outcome in outcomes]

    def refitted(
        self, point: Point, n_threads: int | None, train: np.ndarray | None = None
    ) -> Any:
        """Return the model of some rows, by default of all, behind its preprocessor."""
        # The same rows as in the search, behind a preprocessor fitted to all of them.
        rows = self._rows(np.arange(len(self.y)) if train is None else train)
        options = self._options(rows, n_threads, [point]) | point
        model = self.fit(rows.named, rows.y, **options)
        named: dict[str, Any] = {"feature_names": self.feature_names}
        if isinstance(rows.preprocessor, Standardizer):
            return PreprocessedModel(replace(rows.preprocessor, **named), model)
        if rows.preprocessor is not None:
            return PreprocessedModel(rows.preprocessor, model)
        if isinstance(model, Model) and "feature_names" in model.__dataclass_fields__:
            return replace(model, **named)
        return model

    def _fitted(
        self,
        rows: TrainingRows,
        X_test: Any,
        points: Sequence[Point],
        n_threads: int | None,
    ) -> list[tuple[Any, Any]]:
        """Return the model, or what was raised, for every point, and its decision
        function of the test rows where that came with the model.
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
        models: list[Any] = []
        for point in points:
            try:
                models.append(self.fit(rows.named, rows.y, **options | point))
            except Exception as error:
                models.append(error)
        return [(model, None) for model in models]

    def _path(
        self,
        rows: TrainingRows,
        X_test: Any,
        points: Sequence[Point],
        options: Mapping[str, Any],
    ) -> list[tuple[Any, Any]]:
        """Return the outcomes of the points of a path."""
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
        """Return the scores of a model, or of what was raised in its place."""
        weight = None if self.weight is None else self.weight[test]
        try:
            if isinstance(model, Exception):
                raise model
            scores = tuple(
                scorer(model, X_test, values, self.y[test], self.classes, weight)
                for scorer in self.scorers
            )
        except Exception as error:
            return self._failed(error)
        convergence = getattr(model, "convergence", None)
        if not isinstance(convergence, Convergence):
            return Outcome(scores, "fitted", "", 0.0)
        return Outcome(scores, convergence.status.value, "", 0.0)

    def _options(
        self, rows: TrainingRows, n_threads: int | None, points: Sequence[Point]
    ) -> dict[str, Any]:
        """Return the options that fits of these points to these rows have in common."""
        known = self.parameters
        options = dict(self.options)
        if "classes" in known:
            options["classes"] = self.classes
        if rows.weight is not None:
            options["sample_weight"] = rows.weight
        # One path may hold points with folds of their own and points without.
        if rows.group is not None and any(map(self._has_folds, points)):
            options["groups"] = rows.group
        if "n_threads" in known and n_threads is not None:
            options["n_threads"] = n_threads
        stop = self.stop
        if "callback" in known and stop is not None:
            # A search that was cancelled ends the fits that run, without a kill.
            options.setdefault("callback", lambda _: stop.is_set())
        return options

    def _has_folds(self, point: Point) -> bool:
        """Return whether the fit of a point has folds that take groups."""
        method = self.method
        return method is not None and method.groups_folds({**self.given, **point})

    def _without_links(self) -> dict[str, bool]:
        """Return the option that leaves out the calibration of probabilities, five more
        fits a point, where no scorer looks at them; the refit has it.
        """
        asked = self.given.get("probability", False)
        looked_at = any(scorer.needs_proba for scorer in self.scorers)
        leave_out = asked and not looked_at and self.ours
        return {"probability": False} if leave_out else {}

    def _rows(self, train: np.ndarray) -> TrainingRows:
        """Return the training rows, preprocessed; the last two sets are kept."""
        key = train.tobytes()
        rows = self._kept.get(key)
        if rows is None:
            rows = TrainingRows.from_work(self, train)
            # Two sets, because tasks of two folds run side by side when one ends.
            for old in list(self._kept)[:-1]:
                self._kept.pop(old, None)
            self._kept[key] = rows
        return rows

    def _failed(self, error: Exception) -> Outcome:
        nan = (float("nan"),) * len(self.scorers)
        reason = f"{type(error).__name__}: {error}"
        if len(reason) > _REASON:
            reason = reason[: _REASON - 3] + "..."
        return Outcome(nan, "failed", reason, 0.0)


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Training rows, after what came before the fit.

    Attributes
    ----------
    X : (n, m) array, CSR, Frame or Rows
    named : the same as the fit is given it, with names if there are any
    y : (n,) array of labels, or None where `named` has them, and weights, too
    weight, group : (n,) array or None
    preprocessor : Standardizer, TableCoding or None
    products : Products of X, or None
    """

    X: np.ndarray | CSR | Frame | Rows
    named: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    group: np.ndarray | None
    preprocessor: Preprocessor | None
    products: Products | None

    @classmethod
    def from_work(cls, work: Work, train: np.ndarray) -> TrainingRows:
        if work.chunked is not None:
            made, standardizer = chunked_part(
                work.chunked, train, work.preprocess is Standardizer
            )
            return cls(made.X, made, None, None, None, standardizer, None)
        X, names = work.rows_of(train), work.feature_names
        weight = None if work.weight is None else work.weight[train]
        preprocessor = None
        if work.preprocess is not None:
            preprocessor = work.preprocess.fit(X, weight)
            X = preprocessor.transform(X)
            names = preprocessor.feature_names_out or names
        named = as_named(work.fit, X, names) if isinstance(X, np.ndarray) else X
        keep = work.varying and 4e-6 * train.size**2 <= _PRODUCTS_MB
        of_numbers = not (isinstance(X, Frame) or _has_gaps(X))
        products = Products(X) if keep and of_numbers else None
        group = None if work.group is None else work.group[train]
        return cls(X, named, work.y[train], weight, group, preprocessor, products)

    def transformed(self, X: Any) -> Any:
        if self.preprocessor is None:
            return X
        if isinstance(X, Rows):
            return X.transformed(self.preprocessor.transform)
        return self.preprocessor.transform(X)


def _has_gaps(X: Any) -> bool:
    return isinstance(X, np.ndarray) and bool(np.isnan(X).any())


def _pickled(value: Any, must_be: str) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"{must_be} can be pickled, as each worker of an executor reads it: "
            f"{type(error).__name__}: {shortened(error)}"
        ) from error
