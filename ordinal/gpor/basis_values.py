"""Kernel values with basis rows, and their slopes, of some rows at a time: of rows in
memory, or of those that are read in chunks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._input.types import Kernel, Matrix
from .._numerics.rows import strips, take
from .._rows.chunks import Chunk, InProcess, chunks
from ..kernels import Precomputed
from ..kernels.slopes import diagonal_slopes, gamma_slopes
from ..kernels.tiles import Evaluator, diagonal_of

ROWS = 1024  # of a tile: what is made of them stays in the cache


class ReadAgainError(Exception):
    """Holds an error of a source that is read again: one that says nothing about the
    hyperparameters that were tried.
    """

    def __init__(self, error: ValueError):
        super().__init__(str(error))
        self.error = error


class Tile(NamedTuple):
    """k(X, B) of some rows.

    Attributes
    ----------
    rows : slice
        Which they are.
    X : matrix
        They themselves.
    K : (rows, m) array
        The memory of the tiles of a chunk is the same.
    """

    rows: slice
    X: Any
    K: np.ndarray


class BasisValues:
    """k(X, B) and k(x, x) of n rows X and m basis rows B.

    Parameters
    ----------
    kernel : callable
    X : (n, d) matrix, or rows that are read again at every pass
    B : (m, d) matrix; for a Precomputed kernel the numbers of the basis rows

    Attributes
    ----------
    shape : (n, m)
    K_mm : (m, m) array
        k(B, B).
    concurrent : bool
        Whether several threads may ask at once.
    """

    def __init__(self, kernel: Kernel, X: InProcess, B: Matrix):
        self._kernel, self._X, self._B = kernel, X, B
        self.shape = len(X), len(B)
        itself: Any = take(X, B) if isinstance(kernel, Precomputed) else B  # type: ignore[arg-type]
        values = Evaluator(kernel, itself, B)
        self.concurrent = values.concurrent
        self.K_mm = np.empty((len(B), len(B)))
        values.fill(self.K_mm)

    def chunks(self, start: int = 0) -> Generator[Chunk, None, None]:
        """Return the rows from `start` on, which begins a chunk."""
        try:
            yield from chunks(self._X, start)
        except ValueError as error:
            raise ReadAgainError(error) from None

    def tiles(self, chunk: Chunk) -> Iterator[Tile]:
        """Yield the tiles of a chunk, which do not depend on how its rows were read."""
        first, part = chunk[0].start, chunk[1]
        values = Evaluator(self._kernel, part, self._B)
        n, m = values.shape
        room = np.empty((min(n, ROWS), m))
        for rows in strips(n, ROWS):
            K = room[: rows.stop - rows.start]
            values.tile(rows, slice(0, m), K, K.reshape(-1))
            among = slice(first + rows.start, first + rows.stop)
            yield Tile(among, take(part, rows), K)

    def diagonal(self, tile: Tile) -> np.ndarray:
        """Return k(x, x) of the rows of a tile."""
        if isinstance(self._kernel, Precomputed):
            return np.diagonal(tile.X[:, tile.rows])
        return diagonal_of(self._kernel, tile.X)

    def slopes(self, tile: Tile, G: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the derivative of <G, k(X, B)> + sum_i c_i k(x_i, x_i) by ln gamma."""
        of_values = gamma_slopes(self._kernel, tile.X, self._B, tile.K, G)
        return np.asarray(of_values + diagonal_slopes(self._kernel, tile.X, c))

    def slopes_of_basis(self, G: np.ndarray) -> np.ndarray:
        """Return the derivative of <G, k(B, B)> by ln gamma."""
        return gamma_slopes(self._kernel, self._B, self._B, self.K_mm, G)
