"""Rows of linear models at workers of dask, which take the sums over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._input.at_workers import LabelReader, RowsAtWorkers
from .._input.blocks import CHUNK, Block
from .._input.types import Matrix
from .._numerics.crew import Asking, DaskCrew
from .._numerics.pool import in_order
from .._numerics.rows import matvec, strips, take
from .._numerics.tree import Parts


class RowsAsked:
    """Rows that workers hold, and answer questions about.

    Parameters
    ----------
    rows : RowsAtWorkers
    among : (r,) array of int32
        The place of each rank among those that are present.

    Attributes
    ----------
    shape : (n, d)
    size : int
        Rows of a chunk.
    """

    def __init__(self, rows: RowsAtWorkers, among: np.ndarray):
        self._rows, self.shape, self.size = rows, rows.shape, CHUNK
        read = HeldReader(rows.labels, among)
        self._asking = Asking(DaskCrew(rows.client, rows.blocks, 0, read))

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, numbers: np.ndarray) -> Matrix:
        """Copies of the rows of these numbers."""
        return self._rows.take(numbers)

    def times(self, v: np.ndarray) -> np.ndarray:
        """X v, (n,)."""
        return np.concatenate([f for (f,) in self._asking.each("times", v)])

    def summed(self, call: Callable[..., Parts], about: Any) -> Parts:
        """The sum over all chunks of what a function gives for one: of `about.part` of
        its rows. Both are sent to the workers."""
        return self._asking.ask("sums", call, about)

    def of_chunks(self, call: Callable[..., np.ndarray], about: Any) -> np.ndarray:
        """What it gives for each chunk, one below the other."""
        return np.concatenate([a for (a,) in self._asking.each("each", call, about)])


@dataclass(frozen=True, slots=True, eq=False)
class HeldReader:
    """Makes `HeldRows` of a block at a worker."""

    labels: LabelReader
    among: np.ndarray

    def __call__(self, block: Block, room: int, n_threads: int) -> HeldRows:
        X, rank, weight, _ = self.labels(block)
        return HeldRows(X, self.among[rank], weight, n_threads)


class HeldRows:
    """A block of rows at a worker."""

    size = 0  # beside the block itself

    def __init__(self, X: Matrix, rank: np.ndarray, weight: np.ndarray, n_threads: int):
        self.n, self._n_threads = len(X), n_threads
        self._rows = X, rank, weight

    def times(self, v: np.ndarray) -> Parts:
        """X v."""
        parts = [matvec(self._chunk(rows), v) for rows in strips(self.n, CHUNK)]
        return (np.concatenate(parts),)

    def sums(self, call: Callable[..., Parts], about: Any) -> Iterator[Parts]:
        """What a function gives for each chunk."""

        def of_chunk(rows: slice) -> Parts:
            return call(self._part(rows, about))

        return in_order(of_chunk, strips(self.n, CHUNK), self._n_threads)

    def each(self, call: Callable[..., np.ndarray], about: Any) -> Parts:
        """The same, below each other."""
        chunks = strips(self.n, CHUNK)
        return (np.stack([call(self._part(rows, about)) for rows in chunks]),)

    def _part(self, rows: slice, about: Any) -> Any:
        _, rank, weight = self._rows
        return about.part(self._chunk(rows), rank[rows], weight[rows])

    def _chunk(self, rows: slice) -> Matrix:
        """Workers may hold it in single precision."""
        return np.ascontiguousarray(take(self._rows[0], rows), np.float64)
