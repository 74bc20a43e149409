"""Where the rows of psi are: in this process, or at workers of dask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._input.at_workers import LabelReader, RowsAtWorkers
from .._input.blocks import Block
from .._input.problem import Problem
from .._input.types import Matrix
from .._numerics.crew import Asking, DaskCrew
from .._numerics.tree import Parts, pairwise
from .columns import Columns, Fill, root_of, squares
from .objective import Asked, LocalRows, Rows, Terms

Features = Callable[[Matrix], np.ndarray]


def rows_of(
    problem: Problem, m: int, fill: Fill, terms: Terms, cache_mb: float, n_threads: int
) -> Asked:
    """The rows of a problem with m columns that are made so, which are kept for as many
    rows as there is room for: 10^6 bytes each, of this process or of a worker."""
    X, room = problem.X, cache_mb * 1e6 / (8 * max(1, m))
    if isinstance(X, RowsAtWorkers):
        read = ColumnsReader(X.labels, m, fill, terms)
        return Asking(DaskCrew(X.client, X.blocks, int(min(room, len(X))), read))
    columns = Columns(X, m, fill, room, n_threads)
    return LocalRows(Rows(columns, problem.rank, problem.weight, terms, n_threads))


def root_of_all_rows(
    features: Features, problem: Problem, n_threads: int
) -> np.ndarray:
    """R of `columns`, for a basis of all rows that have weight."""
    X = problem.X
    if isinstance(X, RowsAtWorkers):
        read = SquaresReader(X.labels, features)
        (S,) = Asking(DaskCrew(X.client, X.blocks, 0, read)).ask("squares")
    else:
        (S,) = pairwise(squares(features, X, problem.weight, n_threads))
    return root_of(S)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsReader:
    """Makes `Rows` of a block at a worker."""

    labels: LabelReader
    m: int
    fill: Fill
    terms: Terms

    def __call__(self, block: Block, room: int, n_threads: int) -> Rows:
        X, rank, weight, _ = self.labels(block)
        columns = Columns(X, self.m, self.fill, room, n_threads)
        return Rows(columns, rank, weight, self.terms, n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class SquaresReader:
    """Makes `Squares` of a block at a worker."""

    labels: LabelReader
    features: Features

    def __call__(self, block: Block, room: int, n_threads: int) -> Squares:
        X, _, weight, _ = self.labels(block)
        return Squares(self.features, X, weight, n_threads)


class Squares:
    """Rows whose `squares` are asked for."""

    size = 0

    def __init__(
        self, features: Features, X: Matrix, weight: np.ndarray, n_threads: int
    ):
        self.n, self._of = len(X), (features, X, weight, n_threads)

    def squares(self) -> Iterator[Parts]:
        return squares(*self._of)
