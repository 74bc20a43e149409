"""Rows of XOFM that are read in blocks, located anew at every pass.

The sum over pairs needs the scores of all rows, sorted, and nothing else of them. So an
evaluation of (P) is two passes: one for the scores, and when each row has its slope one
that scatters the slopes on the nodes, chunk by chunk. What is held of a row are some
numbers: its rank, weight, score, slope and place in the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np

from .._input.columns import Categories
from .._input.problem import Problem
from .._input.survey import BlockProblem
from .._numerics.passes import Chunk, chunks, each, summed
from .._numerics.tree import Parts
from .._solvers import _factorization
from .explanations import Marginals, sums_of
from .layout import Layout, make_knots
from .objective import PairSums, Rows, scores

_SAMPLE = 100_000  # rows from which quantiles are taken


def check_blocks(solver: str, early_stopping: Any, categorical: Sequence[Any]) -> None:
    """Raise ValueError for what needs all rows at once."""
    rules = {
        "solver": ("'lbfgs'", solver == "lbfgs"),
        "early_stopping": ("None", early_stopping is None),
        "categorical": ("empty", len(categorical) == 0),
    }
    for argument, (value, holds) in rules.items():
        if not holds:
            raise ValueError(f"{argument} must be {value} where X is read in blocks")


def numbers_of(problem: Problem) -> Categories:
    """The categories of columns that are read in blocks, which hold numbers alone;
    TypeError for sparse blocks."""
    if isinstance(problem, BlockProblem) and problem.X.reader.is_sparse:
        raise TypeError("X is sparse, and zeros are values: pass arrays")
    return (None,) * problem.n_features


def knots_of(
    problem: BlockProblem, n_intervals: list[int], breakpoints: str
) -> list[np.ndarray]:
    """Knots from the ranges of the columns and, for quantiles, of some of the rows at
    equal distances."""
    low, high = np.full((2, problem.n_features), np.nan)
    with closing(chunks(problem.X)) as given:
        for rows, X in given:
            X = np.asarray(X)[problem.weight[rows] > 0]
            low = np.fmin(low, np.fmin.reduce(X, axis=0, initial=np.nan))
            high = np.fmax(high, np.fmax.reduce(X, axis=0, initial=np.nan))
    X, weight = np.vstack([low, high]), np.zeros(2)
    if breakpoints == "quantile":
        used = np.flatnonzero(problem.weight > 0)
        some = used[:: -(-used.size // _SAMPLE)]
        X = np.vstack([X, np.asarray(problem.X.take(some))])
        weight = np.append(weight, problem.weight[some] / problem.weight.max())
    is_number = [True] * problem.n_features
    return make_knots(X, weight, is_number, n_intervals, breakpoints)


class ReadRows:
    """Rows of a problem, of which those of positive weight count.

    Attributes
    ----------
    rank, weight : (m,) arrays
        Of the rows that count, in their order.
    marginals : Marginals
    """

    def __init__(self, problem: BlockProblem, layout: Layout, n_threads: int):
        self._X, self._layout, self._n_threads = problem.X, layout, n_threads
        # products of weights then neither overflow nor vanish together
        self._weight = problem.weight / problem.weight.max()
        self._whole = problem.weight.sum()
        counts = problem.weight > 0
        self._used = slice(None) if counts.all() else np.flatnonzero(counts)
        self.rank, self.weight = problem.rank[self._used], self._weight[self._used]
        mass, *others = summed(self._X, partial(self._sums, problem), n_threads)
        self._mass = mass
        total = self.weight.sum()
        self.marginals = Marginals.from_sums((mass, *others), total)

    def mass(self, layout: Layout) -> np.ndarray:
        """As of `Rows`, in the layout of these."""
        return self._mass

    def scores(self, table: np.ndarray, n_threads: int) -> np.ndarray:
        """U, (m,). A pass."""
        U = np.empty(len(self._X))

        def of_chunk(chunk: Chunk) -> None:
            rows, X = chunk
            U[rows], _ = scores(*self._located(X), table, 1)

        each(self._X, of_chunk, n_threads)
        return U[self._used]

    def scattered(self, table: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The sum of the slopes by the values at the nodes. A pass."""
        every = slope
        if not isinstance(self._used, slice):
            every = np.zeros(len(self._X))
            every[self._used] = slope

        def of_chunk(chunk: Chunk) -> Parts:
            rows, X = chunk
            node, share = self._located(X)
            _, S = scores(node, share, table, 1)
            step = _factorization.chunk_rows(len(node))
            G = np.zeros((-(-len(node) // step), *table.shape))
            _factorization.scatter(node, share, table, S, every[rows], step, G, 1)
            return (G.sum(axis=0),)

        return summed(self._X, of_chunk, self._n_threads)[0]

    def _located(self, X: object) -> tuple[np.ndarray, np.ndarray]:
        return self._layout.locate(np.asarray(X))

    def _sums(self, problem: BlockProblem, chunk: Chunk) -> Parts:
        rows, X = chunk[0], np.asarray(chunk[1])
        located = Rows(*self._located(X), problem.rank[rows], self._weight[rows])
        return sums_of(self._layout, located, X, problem.weight[rows] / self._whole)


def laid_out(
    problem: Problem,
    categories: Categories,
    sign: np.ndarray,
    n_intervals: list[int],
    breakpoints: str,
    n_threads: int,
) -> tuple[Layout, Rows | ReadRows, Marginals]:
    """The pieces, the rows of positive weight, by rank where they are held, and how
    they lie along each feature."""
    if isinstance(problem, BlockProblem):
        knots = knots_of(problem, n_intervals, breakpoints)
        layout = Layout.of(knots, categories, sign < 0)
        read = ReadRows(problem, layout, n_threads)
        return layout, read, read.marginals
    order = np.argsort(problem.rank, kind="stable")
    order = order[problem.weight[order] > 0]
    X, weight = np.asarray(problem.X)[order], problem.weight[order]
    # products of weights then neither overflow nor vanish together
    weight = weight / weight.max()
    is_number = [labels is None for labels in categories]
    knots = make_knots(X, weight, is_number, n_intervals, breakpoints)
    layout = Layout.of(knots, categories, sign < 0)
    rows = Rows(*layout.locate(X), problem.rank[order], weight)
    every = np.asarray(problem.X), problem.weight
    return layout, rows, Marginals.of(layout, rows, *every)


class ReadPairLoss(PairSums[ReadRows]):
    """The mean loss over the pairs of rows that are read in blocks."""

    def _scored(self, table: np.ndarray) -> np.ndarray:
        return self.rows.scores(table, self.n_threads)

    def _scattered(self, table: np.ndarray) -> np.ndarray:
        return self.rows.scattered(table, self._slope)
