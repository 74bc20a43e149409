"""Rows dealt out with every rank in its share: folds, and rows to hold out."""

from __future__ import annotations  # numpy.random is slow to import

import math
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real

import numpy as np

from .._input.checks import shown
from .._input.problem import Problem
from .._input.types import Kernel, Matrix
from .._numerics.rows import take
from ..kernels import Precomputed

N_FOLDS = 5


def fold_numbers(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """The fold that scores each row, (n,), or -1 for rows that are only trained on.

    Folds hold every rank in its share. The only row of a rank is never left out, lest
    the rank have none: the model of all rows must score it. Rows without weight have
    nothing to tell.
    """
    fold = np.full(problem.n_samples, -1)
    dealt = 0
    for k in np.flatnonzero(problem.present):
        rows = np.flatnonzero((problem.rank == k) & (problem.weight > 0))
        if rows.size < 2:
            continue
        fold[rng.permutation(rows)] = (dealt + np.arange(rows.size)) % N_FOLDS
        dealt += rows.size
    if (fold < 0).all():
        raise ValueError("probability=True needs a class with 2 rows or more")
    return fold


def out_of_fold(
    problem: Problem, kernel: Kernel, fold: np.ndarray
) -> Iterator[tuple[Problem, np.ndarray, np.ndarray, Matrix]]:
    """(problem of the other folds, its rows, rows of this one, their features) for
    every fold."""
    for k in range(N_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if test.size == 0:
            continue
        X, X_test = (take(problem.X, rows) for rows in (train, test))
        if isinstance(kernel, Precomputed):
            X, X_test = np.ascontiguousarray(X[:, train]), X_test[:, train]
        part = replace(
            problem,
            X=X,
            rank=problem.rank[train],
            weight=problem.weight[train],
            sample_weight=problem.sample_weight[train],
        )
        yield part, train, test, X_test


def by_rank(rank: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows grouped by rank, in random order within: a stable sort of shuffled
    rows."""
    order = rng.permutation(rank.size)
    return order[np.argsort(rank[order], kind="stable")]


def hold_out(rank: np.ndarray, n_test: int, rng: np.random.Generator) -> np.ndarray:
    """Which rows are held out, (n,) bool: `n_test`, apportioned to the ranks by largest
    remainder, whose ties are drawn. No rank that has rows loses its last one."""
    count = np.bincount(rank)
    # of rows grouped by rank: the place of each within its group
    place = np.arange(rank.size) - np.repeat(np.cumsum(count) - count, count)
    take = _apportion(n_test, count, rng)
    held = np.zeros(rank.size, dtype=bool)
    held[by_rank(rank, rng)[place < np.repeat(take, count)]] = True
    return held


def held_out_size(test_size: float | int, n: int, n_ranks: int) -> int:
    """How many of n rows a share or a count asks to hold out; ValueError unless every
    rank can keep one."""
    if isinstance(test_size, Integral) and not isinstance(test_size, bool):
        n_test = int(test_size)
    elif isinstance(test_size, Real) and 0 < test_size < 1:
        # 0.07 * 100 is 7.000000000000001: a product this near an integer is one
        n_test = math.ceil(test_size * n - 1e-9)
    else:
        raise ValueError(
            f"test_size must be a fraction in (0, 1) or a count, got {shown(test_size)}"
        )
    if not 1 <= n_test <= n - n_ranks:
        raise ValueError(
            f"test_size={shown(test_size)} asks for {shown(n_test)} test rows; with "
            f"{n} rows and one training row kept for each of the {n_ranks} ranks there "
            f"can be 1 to {n - n_ranks}"
        )
    return n_test


def _apportion(n_test: int, count: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Test rows of each rank: sum n_test, at most count - 1, by largest remainder."""
    n = int(count.sum())
    take = n_test * count // n  # < count, as n_test < n
    shuffled = rng.permutation(count.size)  # argmax then breaks ties at random
    while take.sum() < n_test:
        owed = np.where(take < count - 1, n_test * count - n * take, -n * n)
        take[shuffled[np.argmax(owed[shuffled])]] += 1
    return take
