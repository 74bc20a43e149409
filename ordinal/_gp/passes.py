"""Kernel values with basis rows, and their slopes, of rows that are read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._input.blocks import CHUNK, RowsInParts
from .._input.types import Kernel, Matrix
from .._kernel_matrix.slopes import diagonal_slopes, gamma_slopes
from .._kernel_matrix.tiles import Evaluator, diagonal_of
from .._model.monitor import turn
from .._numerics.rows import strips, take
from .._numerics.tree import pairwise
from ..kernels import ARD, LinearARD


class ReadAgainError(Exception):
    """Holds an error of a source that is read again: one that says nothing about the
    hyperparameters that were tried."""

    def __init__(self, error: ValueError):
        super().__init__(str(error))
        self.error = error


def values(
    kernel: Kernel, X: RowsInParts, Z: Matrix, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """(k(X, Z), k(x, x) of all rows), by one pass."""
    K, diagonal = np.empty((len(X), len(Z))), np.empty(len(X))
    for rows, part in _chunks(X):
        Evaluator(kernel, part, Z, n_threads).fill(K[rows])
        diagonal[rows] = diagonal_of(kernel, part)
    return K, diagonal


def slopes(
    kernel: Kernel,
    X: RowsInParts,
    Z: Matrix,
    K: np.ndarray,
    G: np.ndarray,
    c: np.ndarray,
) -> np.ndarray:
    """How <G, k(X, Z)> + sum_i c_i k(x_i, x_i) changes with ln gamma, (p,), where K =
    k(X, Z): by one pass, and of an RBF kernel by none."""
    if not isinstance(kernel, ARD | LinearARD):
        return gamma_slopes(kernel, X, Z, K, G)  # of the values K alone
    parts = (
        gamma_slopes(kernel, part, Z, K[rows], G[rows])
        + diagonal_slopes(kernel, part, c[rows])
        for rows, part in _chunks(X)
    )
    return pairwise((part,) for part in parts)[0]


def _chunks(X: RowsInParts) -> Iterator[tuple[slice, Any]]:
    """The rows in chunks that do not depend on the blocks of their source."""
    for rows in strips(len(X), CHUNK):
        turn()
        try:
            part = take(X, rows)  # type: ignore[arg-type]
        except ValueError as error:
            raise ReadAgainError(error) from None
        yield rows, part
