"""Links from scores that their model was not fitted to, for every method alike."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._input.problem import Problem
from .._numerics.rows import take
from .convergence import worse
from .folds import out_of_fold
from .monitor import Monitor


def calibrate(
    models: Sequence[Any],
    problem: Problem,
    fold: np.ndarray | None,
    fit: Callable[[Problem, np.ndarray], Sequence[Any]],
    monitor: Monitor,
) -> list[Any]:
    """The models with links fitted to out-of-fold scores; as they are without folds.

    Parameters
    ----------
    models : one a point of a path, of one class
        Its `link_input(X, like)` gives, of rows, what its link takes, in the unit of
        the model `like`; `link_type` fits the link.
    problem : that they were fitted to
    fold : (n,) int array, or None
        From `fold_numbers`.
    fit : callable
        Makes the models of a part of the problem that holds the rows it is told.
    monitor : that of the fit
    """
    if fold is None:
        return list(models)
    values: list[Any] = [None] * len(models)

    def put(i: int, rows: np.ndarray, found: np.ndarray) -> None:
        if values[i] is None:
            values[i] = np.zeros((problem.n_samples, *found.shape[1:]))
        values[i][rows] = found

    single = np.flatnonzero((fold < 0) & (problem.weight > 0))
    for i, model in enumerate(models if single.size else ()):
        put(i, single, model.link_input(take(problem.X, single), model))
    convergence = [model.convergence for model in models]
    for part, train, rows, X in out_of_fold(problem, models[0].kernel, fold):
        for i, of_fold in enumerate(fit(part, train)):
            put(i, rows, of_fold.link_input(X, models[i]))
            convergence[i] = worse(convergence[i], of_fold.convergence)
    rank, weight, r = problem.rank, problem.weight, problem.n_classes
    return [
        replace(
            model,
            link=model.link_type.fit(values[i], rank, weight, r),
            convergence=replace(convergence[i], seconds=monitor.seconds),
        )
        for i, model in enumerate(models)
    ]
