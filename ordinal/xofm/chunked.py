"""Rows of XOFM in chunks, of which some stay located and the others are located anew.

What is held of every row are some numbers: its rank, weight, score, slope and place in
the order. Where its entries lie is held of as many rows as there is room for. Nothing
that is computed depends on which rows these are, or on where the rows come from.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._input.checks import check_spans
from .._input.columns import Categories
from .._input.problem import Problem
from .._numerics.rows import dense, take
from .._rows.chunks import Chunk, by_chunk, chunks, each, in_room, summed
from .._rows.first_pass import ChunkedProblem
from .._rows.sums import Parts
from .explanations import Marginals, sums_of
from .layout import Layout, make_knots
from .objective import LocatedRows, scattered, scores

_SAMPLE = 100_000  # rows from which quantiles are taken
_STEP = 16  # rows from one to the next of a sample that a fit begins with
# Rows of a sample at least: below, the fit of all rows takes a second at the most.
_LEAST = 4096
_ENTRIES = 2**22  # of X, in the largest sample: 80 MB, beside `cache_mb`


def check_blocks(
    solver: str, early_stopping: float | None, categorical: Sequence[Any]
) -> None:
    """Raise ValueError for what needs all rows at once."""
    rules = {
        "solver": ("'lbfgs'", solver == "lbfgs"),
        "early_stopping": ("None", early_stopping is None),
        "categorical": ("empty", len(categorical) == 0),
    }
    for argument, (value, holds) in rules.items():
        if not holds:
            raise ValueError(f"{argument} must be {value} where X is read in chunks")


def numbers_of(problem: Problem) -> Categories:
    """Return the categories of columns that are read in chunks, which hold numbers
    alone;

    TypeError for sparse blocks.
    """
    if isinstance(problem, ChunkedProblem) and problem.X.reader.is_sparse:
        raise TypeError("X is sparse, and zeros are values: pass arrays")
    return (None,) * problem.n_features


def knots_of(
    problem: Problem,
    categories: Categories,
    n_intervals: list[int],
    breakpoints: str,
) -> list[np.ndarray]:
    """Knots from the ranges of the columns and, for quantiles, of some of the rows at
    equal distances. Rows have positive weight.
    """
    low, high = np.full((2, problem.n_features), np.nan)
    with closing(chunks(problem.X)) as given:
        for _, rows in given:
            X = np.asarray(rows)
            # fmin and fmax pass over NaN, which is a missing value here.
            low = np.fmin(low, np.fmin.reduce(X, axis=0, initial=np.nan))
            high = np.fmax(high, np.fmax.reduce(X, axis=0, initial=np.nan))
    check_spans(low, high, problem.shown_names)
    X, weight = np.vstack([low, high]), np.zeros(2)
    if breakpoints == "quantile":
        n = problem.rank.size
        # At equal distances: the same rows however the source cuts its blocks.
        some = np.arange(0, n, -(-n // _SAMPLE))
        # The ends of the range have weight 0: they bound the knots, and move no
        # quantile.
        X = np.vstack([X, dense(take(problem.X, some))])
        weight = np.append(weight, problem.weight[some] / problem.weight.max())
    is_number = [labels is None for labels in categories]
    return make_knots(X, weight, is_number, n_intervals, breakpoints)


class ChunkRows:
    """The rows of a problem, all of positive weight, in their order.

    Parameters
    ----------
    problem : Problem
    layout : Layout
    width : int
        Of the tables of pieces.
    cache_mb : float
        Memory for those that stay located, and for their S of (F), in 10^6 bytes.
    n_threads : int
        Of the pass that finds `marginals`, and locates them.

    Attributes
    ----------
    rank, weight : (n,) arrays
        The largest weight is 1: products then neither overflow nor vanish together.
    kept : Rows
        The first of them, which stay located.
    marginals : Marginals
    """

    def __init__(
        self,
        problem: Problem,
        layout: Layout,
        width: int,
        cache_mb: float,
        n_threads: int,
    ):
        self._X, self._layout = problem.X, layout
        self.rank, self.weight = problem.rank, problem.weight / problem.weight.max()
        n, d = problem.X.shape
        # A place is 4 bytes for the node and 8 for the share; S is 8 per column of W.
        k = in_room(n, cache_mb * 1e6 / (12 * d + 8 * width))
        self.kept = LocatedRows(
            np.empty((k, d), np.int32), np.empty((k, d)), self.rank[:k], self.weight[:k]
        )
        of_chunk = partial(self._sums, problem.weight / problem.weight.sum())
        sums = summed(self._X, of_chunk, n_threads)
        self._mass = sums[0]
        self.marginals = Marginals.from_sums(sums, self.weight.sum())

    @property
    def n_kept(self) -> int:
        return self.kept.n_kept

    def samples(self) -> Iterator[LocatedRows]:
        """Yield samples of the rows to begin a fit with, the smallest first.

        None where the rows are few, or a rank is missing in the smallest sample.
        """
        n, d = self._X.shape
        # At equal distances, as for knots, and the same whatever `cache_mb` is: it
        # changes no bit of the model.
        first = max(_STEP, -(-n * d // _ENTRIES))
        steps = [s for s in (first, first * _STEP, first * _STEP**2) if n >= s * _LEAST]
        if not steps:
            return
        if np.unique(self.rank[:: steps[-1]]).size < np.unique(self.rank).size:
            return
        for step in reversed(steps):
            some = np.arange(0, n, step)
            places = self._layout.locate(np.asarray(take(self._X, some)))
            yield LocatedRows(*places, self.rank[some], self.weight[some])

    def by_rank(self) -> LocatedRows:
        """Return the cached rows, sorted by rank."""
        return self.kept.take(np.argsort(self.kept.rank, kind="stable"))

    def mass(self, layout: Layout) -> np.ndarray:
        """Return the mass of `LocatedRows`, in the layout of these rows."""
        return self._mass

    def scores(
        self, table: np.ndarray, n_threads: int, S: np.ndarray | None = None
    ) -> np.ndarray:
        """U of (F), (n,); and S of those that are kept, if there is room for it."""
        U = np.empty(self.rank.size)
        U[: self.n_kept] = self.kept.scores(table, n_threads, S)

        def of_chunk(chunk: Chunk) -> None:
            U[chunk[0]] = scores(*self._located(chunk), table, 1)

        each(self._X, of_chunk, n_threads, self.n_kept)
        return U

    def scattered(
        self, table: np.ndarray, S: np.ndarray, slope: np.ndarray, n_threads: int
    ) -> Generator[Parts, None, None]:
        """Return the sum of the slopes by the values at the nodes, chunk by chunk."""
        yield from self.kept.scattered(table, S, slope, n_threads)

        def of_chunk(chunk: Chunk) -> Parts:
            node, share = self._located(chunk)
            S = np.empty((len(node), table.shape[1]))
            scores(node, share, table, 1, S)
            (parts,) = scattered(node, share, table, S, slope[chunk[0]], 1)
            return parts

        with closing(by_chunk(self._X, of_chunk, n_threads, self.n_kept)) as parts:
            yield from parts

    def _located(self, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        rows, X = chunk
        if rows.stop <= self.n_kept:
            return self.kept.node[rows], self.kept.share[rows]
        return self._layout.locate(np.asarray(X))

    def _sums(self, share: np.ndarray, chunk: Chunk) -> Parts:
        """Return the marginals of a chunk, and cache its places if there is room."""
        rows, X = chunk[0], np.asarray(chunk[1])
        if rows.stop <= self.n_kept:
            self._layout.locate_into(X, self.kept.node[rows], self.kept.share[rows])
        located = LocatedRows(*self._located(chunk), self.rank[rows], self.weight[rows])
        return sums_of(self._layout, located, X, share[rows])


def counted(problem: Problem) -> Problem:
    """Return the problem of the rows of positive weight."""
    counts = problem.weight > 0
    if counts.all():
        return problem
    numbers = np.flatnonzero(counts)
    if isinstance(problem, ChunkedProblem):
        return problem.subset(numbers)
    rank, weight, sample = (
        a[numbers] for a in (problem.rank, problem.weight, problem.sample_weight)
    )
    X = take(problem.X, numbers)
    return replace(problem, X=X, rank=rank, weight=weight, sample_weight=sample)
