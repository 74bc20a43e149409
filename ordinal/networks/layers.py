"""Rows on their way into the hidden layer: standardised, some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .._input.types import Matrix
from .._numerics.rows import dense, strips, take
from .._rows.moments import Moments

ROWS = 1024  # of a chunk: with 50 hidden units they fit in the L2 cache
_KEPT = 32_000_000  # entries of the standardised rows that are kept, 256 MB


@dataclass(frozen=True, slots=True, eq=False)
class LayerRows:
    """Rows of which every column has the mean 0 and the deviation 1, and a last column
    of ones for the bias.

    They are made from X a chunk at a time, whenever they are asked for; not too many
    are kept. Neither changes a bit.
    """

    X: Matrix
    mean: np.ndarray
    scale: np.ndarray
    kept: np.ndarray | None = None

    @classmethod
    def of_training(cls, X: Matrix, weight: np.ndarray) -> LayerRows:
        """Standardised by the moments of rows of these weights, all positive."""
        parts = ((dense(take(X, rows)), weight[rows]) for rows in strips(len(weight)))
        moments = Moments.of_parts(parts)
        assert moments is not None  # there are rows of positive weight
        made = cls(X, *moments.mean_and_scale())
        n, d = X.shape
        if n * (d + 1) > _KEPT:
            return made
        kept = np.empty((n, d + 1))
        for rows in made.chunks():
            kept[rows] = made[rows]
        return cls(X, made.mean, made.scale, kept)

    def __getitem__(self, rows: slice) -> np.ndarray:
        if self.kept is not None:
            return self.kept[rows]
        part = dense(take(self.X, rows))
        out = np.ones((part.shape[0], part.shape[1] + 1))
        np.subtract(part, self.mean, out=out[:, :-1])
        out[:, :-1] /= self.scale
        return out

    def chunks(self, size: int = ROWS) -> Iterator[slice]:
        """Yield slices of rows of one batch."""
        return strips(self.X.shape[0], size)


def hidden_units(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    """tanh(Z U), (n, h): what the hidden layer with the weights U (d + 1, h), the bias
    last, makes of the rows Z (n, d + 1), whose last column is 1.
    """
    H = Z @ U
    return np.asarray(np.tanh(H, out=H))


class Spaces:
    """Arrays of one size that several threads work in, each in one at a time.

    New ones would be new pages at every evaluation: that takes longer than a product
    of two matrices.
    """

    def __init__(self, size: int):
        self._size = size
        self._free: list[np.ndarray] = []

    @contextmanager
    def one(self) -> Iterator[np.ndarray]:
        """Allocate an array of so many doubles."""
        try:
            space = self._free.pop()
        except IndexError:
            space = np.empty(self._size)
        try:
            yield space
        finally:
            self._free.append(space)


def random_layer(d: int, n_hidden: int, rng: np.random.Generator) -> np.ndarray:
    """Weights U (d + 1, h) whose units bend within the cloud of standardised rows:
    their arguments have the mean variance 1, and so has their bias.
    """
    U = rng.standard_normal((d + 1, n_hidden))
    U[:-1] /= np.sqrt(max(d, 1))
    return U
