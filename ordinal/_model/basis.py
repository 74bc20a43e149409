"""The basis of a fit: its rows, and the features on it.

A fit finds the number of basis rows if it is not given (`enough_rows`), and computes
features on them (`chosen`), which the folds of a link share (`features_among`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._input.basis import BasisChoice
from .._input.labels import ranks_of
from .._input.problem import Problem
from .._input.types import Matrix
from .._numerics.rows import dense, take
from .._rows.first_pass import ChunkedProblem
from ..kernels.basis_rows import choose, stratified, sufficient_size
from ..kernels.features import ColumnFeatures, Features, row_features
from ..kernels.functions import KernelFunction
from .column_names import named
from .folds import hold_out, sample_problem, split_problem

# Bounds of the size of a basis for "auto", and the number of rows that are required for
# each basis row above _FEW.
_LEAST_BASIS, _MOST_BASIS, _FOR_EACH, _FEW = 100, 4000, 16, 1000
TRIAL_GAP = 1e-2  # relative gap of trial models, which determine the size of a basis
_HELD_OUT = 20_000  # hold-out rows that judge trial models
_MOST_ROWS = 200_000  # most rows of the sample on which the size is determined


def enough_rows(
    problem: Problem,
    kernel: KernelFunction | None,
    fit: Callable[[Problem, BasisChoice], Any],
    seed: int,
) -> BasisChoice:
    """Find how many random basis rows are enough, judged by hold-out errors.

    `fit` fits a model to a part of the problem on a basis. For very many rows and for
    rows in chunks, a sample in memory determines the number.
    """
    n = problem.n_samples
    if isinstance(problem, ChunkedProblem) or n > _MOST_ROWS:
        rng = np.random.default_rng(seed)
        rows = stratified(problem.rank, min(n, _MOST_ROWS), rng)
        problem = sample_problem(problem, kernel, rows)
    n, ranks = problem.n_samples, np.count_nonzero(problem.present)
    if n < 2 * (_LEAST_BASIS + ranks):
        return BasisChoice("random", n)
    rng = np.random.default_rng(seed)
    held = hold_out(problem.rank, min(n // 5, _HELD_OUT), rng)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    part, X = split_problem(problem, kernel, train, test)

    def losses_at(m: int) -> np.ndarray:
        """Return the weighted error in ranks of each hold-out row for m basis rows."""
        model = fit(part, BasisChoice("random", m))
        rank = ranks_of(model.predict(named(X, model.feature_names)), problem.classes)
        upper = problem.rank[test]
        lower = upper if problem.lower is None else problem.lower[test]
        off = np.abs(rank - np.clip(rank, lower, upper))
        return np.asarray(off * problem.weight[test])

    # A fit costs n m^2, and the kernel matrix n^2 values: the bound keeps the former
    # below the latter, apart from constant factors.
    most = min(train.size, _MOST_BASIS, max(n // _FOR_EACH, _FEW))
    return BasisChoice("random", sufficient_size(losses_at, _LEAST_BASIS, most))


def chosen(
    choice: BasisChoice,
    kernel: KernelFunction,
    problem: Problem,
    n_threads: int,
    trial: Callable[[Problem, Features], Any],
) -> Features:
    """Return the features of the rows of a problem on the chosen basis.

    If the number of basis rows is not given, models that `trial` fits to parts of the
    problem determine it.
    """
    seed = choice.seed

    def drawn(part: Problem, tried: BasisChoice) -> Features:
        return choose(
            tried,
            kernel,
            partial(take, part.X),
            part.rank,
            part.weight,
            np.random.default_rng(seed),
            n_threads,
        )

    if choice.way == "columns":
        return ColumnFeatures(kernel, problem.n_features)
    if choice.way == "auto":
        choice = enough_rows(
            problem, kernel, lambda part, tried: trial(part, drawn(part, tried)), seed
        )
    return drawn(problem, choice)


def features_among(
    features: Features,
    kernel: KernelFunction,
    X: Matrix,
    rows: np.ndarray,
    n_threads: int,
) -> Features:
    """Return the features for a problem of some of the rows, X, such as a fold.

    `rows` are their numbers in the whole problem. A precomputed kernel identifies rows
    by number: the basis of the part are those basis rows that it contains.
    """
    if not kernel.by_number:
        return features
    numbers = np.flatnonzero(np.isin(rows, dense(features.support)))
    if numbers.size == 0:
        raise ValueError(
            "basis must have rows in two folds of probability=True, but all of "
            "its rows are left out together: pass more rows"
        )
    return row_features(kernel, X, numbers, n_threads)
