"""The mean loss of `likelihood` of rows that are read in blocks.

Every chunk of rows has a loss of its own, divided by the weight of all rows, so that
value, gradient and Hessian are sums over the chunks. An evaluation is one pass over the
rows. What is held of a row are its rank, its weight where there are weights, and its
offset where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from .._input.types import Matrix
from .._numerics.passes import Chunk, by_chunk
from .._numerics.tree import Parts, pairwise
from .bordered import NONE, Bordered
from .design import HESSIAN_COLUMNS, Design
from .likelihood import Likelihood, Link, Point
from .rowwise import RowwiseLikelihood


class _OutOfReachError(Exception):
    """A row of a chunk has probability 0."""


class ChunkwiseLikelihood(Likelihood):
    """The loss of rows that are taken chunk by chunk, as many as threads at a time."""

    def __init__(self, design: Design, link: Link, l2: float, n_threads: int):
        super().__init__(design, link, l2, n_threads)
        if design.offset is None:
            self._offset = np.broadcast_to(0.0, design.n_samples)

    def at(self, x: np.ndarray) -> Point:
        """Value, gradient and Hessian, in one pass over the rows. O(n p^2)."""

        def of_part(part: Likelihood) -> Parts:
            there = part.at(x)
            H = there.hessian
            value = np.array(there.value)
            return value, there.gradient, H.diag, H.off, H.border, H.core

        sums = self._summed(of_part)
        if sums is None:
            return Point(x, math.inf, np.full(x.size, np.nan), NONE)
        value, gradient, diag, off, border, core = sums
        first = self.design.slots() if len(diag) else np.zeros(0, np.int64)
        hessian = Bordered(diag, off, border, core, first).plus(self.price)
        ridge = self.price * x
        whole = float(value) + 0.5 * float(ridge @ x)
        return Point(x, whole, gradient + ridge, hessian)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The same without the Hessian."""

        def of_part(part: Likelihood) -> Parts:
            assert isinstance(part, RowwiseLikelihood)
            value, gradient = part.value_and_gradient(x)
            return np.array(value), gradient

        sums = self._summed(of_part)
        if sums is None:
            return math.inf, np.full(x.size, np.nan)
        ridge = self.price * x
        return float(sums[0]) + 0.5 * float(ridge @ x), sums[1] + ridge

    def _summed(self, of_part: Callable[[Likelihood], Parts]) -> Parts | None:
        """The sum over the chunks of what their losses without penalty give, the value
        first; None where one is infinite."""

        def of_chunk(chunk: Chunk) -> Parts:
            return of_part(self._part(*chunk))

        def finite(parts: Iterator[Parts]) -> Iterator[Parts]:
            for part in parts:
                if not math.isfinite(part[0]):
                    raise _OutOfReachError
                yield part

        with closing(by_chunk(self.design.X, of_chunk, self.n_threads)) as parts:
            try:
                return pairwise(finite(parts))
            except _OutOfReachError:
                return None

    def _part(self, rows: slice, X: Matrix) -> Likelihood:
        """The loss of a chunk."""
        D = self.design
        part = replace(
            D, X=X, rank=D.rank[rows], weight=np.ascontiguousarray(D.weight[rows]),
            offset=None if D.offset is None else D.offset[rows],
        )  # fmt: skip
        return likelihood_in_memory(part, self.link, 0.0, 1)


def has_many(design: Design) -> bool:
    """Whether there are too many features for a Hessian."""
    return sum(design.sizes[1:]) > HESSIAN_COLUMNS


def likelihood_in_memory(
    design: Design, link: Link, l2: float, n_threads: int
) -> Likelihood:
    """The loss of rows that are held."""
    if design.is_sparse or has_many(design):
        return RowwiseLikelihood(design, link, l2, n_threads)
    return Likelihood(design, link, l2, n_threads)
