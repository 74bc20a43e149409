"""The arguments of `select` and `nested`, checked, as searches need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._input.problem import Problem
from .._input.types import ArrayLike, Labels, MatrixLike
from .._kernel_matrix.choice import NAMED
from .._model.registry import unwrapped
from .._numerics.rows import take
from .._numerics.threads import resolve_n_threads
from .scoring import Scoring, scorers_of
from .spaces import Space
from .splits import Splits, SplitsLike, own_splits, stratified_kfold
from .work import Work, check_arguments, is_ours
from .workers import Executor, Placement


def work_of(
    fit: Callable[..., Any],
    X: MatrixLike,
    y: Labels,
    *,
    classes: Sequence[Any] | None,
    sample_weight: ArrayLike | None,
    scoring: Scoring | Sequence[Scoring],
    greater_is_better: bool | None,
    standardize: bool,
    options: dict[str, Any],
) -> Work:
    """What the tasks of the searches share. Raises ValueError or TypeError for data or
    an argument that is unusable."""
    if not callable(fit):
        raise TypeError(f"fit must be a function of (X, y), got {fit!r}")
    weighted = [] if sample_weight is None else ["sample_weight"]
    check_arguments(fit, [*options, *weighted])
    given = {**unwrapped(fit)[1], **options}
    if isinstance(given.get("rng"), np.random.Generator):
        raise TypeError("rng of the fits must be a seed: they share no generator")
    if given.get("kernel") == "precomputed":
        raise ValueError("kernel='precomputed' has no features to split and to scale")
    problem = Problem.from_arrays(X, y, classes=classes, sample_weight=sample_weight)
    if standardize and not isinstance(problem.X, np.ndarray):
        raise TypeError(
            "X is sparse, and standardising would fill it: standardize=False"
        )
    return Work(
        fit=fit,
        options=options,
        X=problem.X,
        y=problem.classes[problem.rank],
        classes=problem.classes,
        weight=None if sample_weight is None else problem.sample_weight,
        standardize=standardize,
        scorers=scorers_of(scoring, greater_is_better),
        feature_names=problem.feature_names,
    )


def folds_of(
    cv: SplitsLike, rows: np.ndarray, work: Work, rng: np.random.Generator
) -> Splits:
    """The folds of some rows, as row numbers of the whole table."""
    y = work.y[rows]
    if isinstance(cv, int | np.integer):
        splits = stratified_kfold(y, int(cv), rng=rng)
    else:
        splits = own_splits(cv, "cv", features_of(work, rows), y)
    return [(rows[train], rows[test]) for train, test in splits]


def features_of(work: Work, rows: np.ndarray) -> np.ndarray:
    """The rows as a caller's splitter sees them: their features or, of a sparse table,
    their numbers."""
    X = take(work.X, rows)
    return X if isinstance(X, np.ndarray) else rows[:, None]


def placement_of(
    work: Work, space: Space, executor: Executor | None, n_threads: int | None
) -> Placement:
    """Where the fits run: side by side in this process only where they call nothing but
    this package, as two threads may not be fit to call a function of the caller's."""
    if executor is not None:
        if not hasattr(executor, "submit"):
            raise TypeError(f"executor must have a submit method, got {executor!r}")
        return Placement(executor, n_threads or 1, False)
    given = {"kernel": "rbf", **unwrapped(work.fit)[1], **work.options}
    kernels = [given["kernel"], *getattr(space, "values", {}).get("kernel", [])]
    ours = is_ours(work.fit) and all(
        isinstance(kernel, (str, *NAMED.values())) for kernel in kernels
    )
    if ours:
        n_threads = resolve_n_threads(n_threads)
    return Placement(None, n_threads, ours)
