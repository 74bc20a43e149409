"""Columns that the coefficients of a score multiply, made row by row.

For a basis of rows they are the kernel's values with these. For a linear kernel of d
features a basis of all n rows is one of d columns: with features z, Z'w =: u takes the
place of w, and the least sum_h w_h^2 / v_h of all w with Z'w = u is

    u'(sum_h v_h z_h z_h')^+ u = |q|^2     where u = R q,   R R' = sum_h v_h z_h z_h'

so that the columns Z R, whose coefficients q cost |q|^2, state the same problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._input.sparse import CSR
from .._input.types import Kernel, Matrix
from .._numerics.pool import in_order
from .._numerics.rows import strips, take
from .._rows.chunks import in_room
from .._rows.source import CHUNK
from .._rows.sums import Parts
from .._watch.monitor import check_cancelled
from ..kernels.functions import check_values
from ..kernels.tiles import Evaluator

Fill = Callable[[Any, np.ndarray, int], None]
"""Of some rows, room for their columns, threads."""


class Columns:
    """Columns of n rows, in double: kept for as many of the first chunks of rows as
    there is room for, and made for the others whenever they are asked for.

    Parameters
    ----------
    X : (n, d) matrix, or rows that are read in chunks
    m : int
    fill : callable
        Makes the columns of some rows.
    room : float
        For how many rows they may be kept.
    n_threads : int
    """

    def __init__(self, X: Any, m: int, fill: Fill, room: float, n_threads: int):  # noqa: ANN401  (in memory or in chunks)
        self._X, self._fill = X, fill
        self.n, self.m = len(X), m
        self._kept = np.empty((in_room(self.n, room), m))
        if m:
            for rows in strips(len(self._kept), CHUNK):
                check_cancelled()
                # Chunk by chunk, on all threads each: between two of them Ctrl-C has
                # its turn.
                fill(take(X, rows), self._kept[rows], n_threads)

    def block(self, rows: slice) -> np.ndarray:
        """(rows, m) of one chunk, not to be written to; several threads may ask."""
        if rows.stop <= len(self._kept):
            return self._kept[rows]
        out = np.empty((rows.stop - rows.start, self.m))
        if self.m:
            self._fill(take(self._X, rows), out, 1)
        return out


def kernel_values(kernel: Kernel, basis: Matrix) -> Fill:
    """Columns that are values with basis rows, or with those of these numbers for a
    precomputed kernel.
    """
    return partial(_values, kernel, basis)


def _values(
    kernel: Kernel, basis: Matrix, X: Matrix, out: np.ndarray, n_threads: int
) -> None:
    Evaluator(kernel, _double(X), basis, n_threads).fill(out)


def mixed(features: Callable[[Matrix], np.ndarray], R: np.ndarray) -> Fill:
    """Make the columns Z R."""
    return partial(_mixed, features, R)


def _mixed(
    features: Callable[[Matrix], np.ndarray],
    R: np.ndarray,
    X: Matrix,
    out: np.ndarray,
    n_threads: int,
) -> None:
    np.matmul(features(_double(X)), R, out=out)


def _double(X: Matrix) -> Matrix:
    """Rows that workers may hold in single precision."""
    return X if isinstance(X, CSR) else np.asarray(X, np.float64)


class Squares:
    """State of some rows that sums the squares of their features."""

    size = 0  # bytes beside the rows

    def __init__(
        self,
        features: Callable[[Matrix], np.ndarray],
        X: Any,  # noqa: ANN401  (in memory or in chunks)
        rank: np.ndarray,
        weight: np.ndarray,
        room: int,
        n_threads: int,
    ):
        self.n, self._n_threads = len(X), n_threads
        self._features, self._X, self._weight = features, X, weight

    def squares(self) -> Iterator[Parts]:
        """Yield sum_h v_h z_h z_h' of each chunk."""

        def of_chunk(rows: slice) -> Parts:
            Z = self._features(_double(take(self._X, rows)))
            check_values(np.einsum("ij,ij->i", Z, Z))
            Z = np.sqrt(self._weight[rows])[:, None] * Z
            return (Z.T @ Z,)

        return in_order(of_chunk, strips(self.n, CHUNK), self._n_threads)


def root_of(S: np.ndarray) -> np.ndarray:
    """R of this module, (d, k) for a sum of rank k."""
    size = np.sqrt(np.diagonal(S))
    size = np.where(size > 0, size, 1.0)  # so that no unit of a feature is too small
    values, vectors = np.linalg.eigh(S / size[:, None] / size)
    # Directions that only rounding has would get columns of noise.
    counts = values > len(S) * np.finfo(float).eps * max(values[-1], 0.0)
    return np.asarray(size[:, None] * vectors[:, counts] * np.sqrt(values[counts]))
