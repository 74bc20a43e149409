"""The basis of a fit, from its argument and its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._input.basis import BasisChoice, read_choice
from .._input.labels import ranks_of
from .._input.problem import Problem
from .._input.types import Kernel, Matrix
from .._numerics.rows import dense, take
from .._rows.first_pass import ChunkedProblem
from ..kernels import Linear, LinearARD, Precomputed
from ..kernels.basis_rows import choose, stratified, sufficient_size
from ..kernels.features import ColumnFeatures, Features, row_features
from ..kernels.functions import is_linear
from .folds import hold_out, split_problem
from .preparation import PreparedWithKernel

_LEAST_PER_FEATURE = 4
_MANY, _WIDEST = 2000, 1000  # rows and columns of a linear kernel: tools/bench/scale.py
# Bounds of the size of a basis that is to be found, and the number of rows that are
# required for each basis row above _FEW.
_LEAST_BASIS, _MOST_BASIS, _FOR_EACH, _FEW = 100, 4000, 16, 1000
TRIAL_GAP = 1e-2  # relative gap of trial models, which determine the size of a basis
_HELD_OUT = 20_000  # hold-out rows that judge trial models
_MOST_ROWS = 200_000  # most rows of the sample on which the size is determined


def read(
    basis: Any, kernel: Kernel, problem: Problem, by_duals: bool = False
) -> BasisChoice | None:
    """Return how a fit chooses its basis, or None for the whole kernel matrix.

    With a linear kernel and few columns the unit vectors are a basis that leaves
    nothing out. Fits of many rows take it, unless they begin at duals.
    """
    n, d = problem.n_samples, problem.n_features
    if basis is not None:
        return read_choice(basis, n, d)
    # With fewer rows, the kernel matrix is small, and dual variables are available.
    few = n >= _MANY and d <= min(n // _LEAST_PER_FEATURE, _WIDEST)
    return (
        BasisChoice("columns") if few and is_linear(kernel) and not by_duals else None
    )


def held_for(
    choice: BasisChoice | None, prepared: PreparedWithKernel
) -> PreparedWithKernel:
    """Return a prepared fit with its rows in memory if it needs the kernel matrix.

    Raises ValueError for many rows that are read in chunks.
    """
    problem = prepared.problem
    if choice is not None or not isinstance(problem, ChunkedProblem):
        return prepared
    n, d = problem.n_samples, problem.n_features
    if n >= _MANY:
        raise ValueError(
            f"X comes in chunks, {n} rows of {d} columns in all, and this fit would "
            "hold all of them in memory: pass the number of rows of a basis, such as "
            "basis=300"
        )
    return replace(prepared, problem=problem.part(np.arange(n)))


def chosen(
    choice: BasisChoice, kernel: Kernel, problem: Problem, seed: int, n_threads: int
) -> Features:
    """Return the features of the rows of a problem on the chosen basis."""
    if choice.way == "columns":
        assert isinstance(kernel, Linear | LinearARD)
        return ColumnFeatures(kernel, problem.n_features)
    return choose(
        choice,
        kernel,
        partial(take, problem.X),
        problem.rank,
        problem.weight,
        np.random.default_rng(seed),
        n_threads,
    )


def enough_rows(
    problem: Problem,
    kernel: Kernel,
    fit: Callable[[Problem, BasisChoice], Any],
    seed: int,
) -> BasisChoice:
    """Find how many random basis rows are enough, judged by hold-out errors.

    `fit` makes the model of a part of the problem. Because a fit costs the square of
    the number of basis rows, that number is bounded so that a fit costs no more than
    one to the whole kernel matrix.
    """
    n = problem.n_samples
    if isinstance(problem, ChunkedProblem) or n > _MOST_ROWS:
        rng = np.random.default_rng(seed)
        rows = stratified(problem.rank, min(n, _MOST_ROWS), rng)
        if isinstance(problem, ChunkedProblem):
            problem = problem.part(rows)
        else:
            problem = split_problem(problem, kernel, rows, rows[:0])[0]
    n, ranks = problem.n_samples, np.count_nonzero(problem.present)
    if n < 2 * (_LEAST_BASIS + ranks):
        return BasisChoice("random", n)
    rng = np.random.default_rng(seed)
    held = hold_out(problem.rank, min(n // 5, _HELD_OUT), rng)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    part, X = split_problem(problem, kernel, train, test)

    def losses_at(m: int) -> np.ndarray:
        model = fit(part, BasisChoice("random", m))
        rank = ranks_of(model.predict(X), problem.classes)
        off = np.abs(rank - problem.rank[test])
        return np.asarray(off * problem.weight[test])

    # A fit costs n m^2: this bound keeps it below the n^2 of the kernel matrix,
    # roughly.
    most = min(train.size, _MOST_BASIS, max(n // _FOR_EACH, _FEW))
    return BasisChoice("random", sufficient_size(losses_at, _LEAST_BASIS, most))


def features_among(
    features: Features,
    kernel: Kernel,
    X: Matrix,
    rows: np.ndarray,
    n_threads: int,
) -> Features:
    """Return the features for a problem of these rows.

    A precomputed kernel identifies rows by number, so only the basis rows among these
    rows form the basis.
    """
    if not isinstance(kernel, Precomputed):
        return features
    numbers = np.flatnonzero(np.isin(rows, dense(features.support)))
    if numbers.size == 0:
        raise ValueError(
            "basis must have rows in two folds of probability=True, but all of "
            "its rows are left out together: pass more rows"
        )
    return row_features(kernel, X, numbers, n_threads)
