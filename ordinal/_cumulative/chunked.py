"""The mean loss of `likelihood` of rows that are read in chunks.

Every chunk of rows has a loss of its own, divided by the weight of all rows, so that
value, gradient and Hessian are sums over the chunks. An evaluation is one pass over the
rows. What is held of a row are its rank, its weight where there are weights, and its
offset where there is one.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .._rows.sums import Parts
from .bordered import NONE, Bordered
from .design import HESSIAN_COLUMNS, Design
from .likelihood import Likelihood, Link, Point
from .rowwise import RowwiseLikelihood


class ChunkedLikelihood(Likelihood):
    """The loss of rows that are taken chunk by chunk, as many as threads at a time, or
    where they are.
    """

    def __init__(self, design: Design, link: Link, l2: float, n_threads: int):
        super().__init__(design, link, l2, n_threads)
        if design.offset is None:
            self._offset = np.broadcast_to(0.0, design.n_samples)

    def at(self, x: np.ndarray) -> Point:
        """Value, gradient and Hessian, in one pass over the rows. O(n p^2)."""
        value, gradient, *parts = self.design.summed(
            partial(_at, self.link, x), self.n_threads
        )
        if not math.isfinite(value):
            return Point(x, math.inf, np.full(x.size, np.nan), NONE)
        diag, off, border, core = parts
        first = self.design.slots() if len(diag) else np.zeros(0, np.int64)
        hessian = Bordered(diag, off, border, core, first).plus(self.price)
        ridge = self.price * x
        whole = float(value) + 0.5 * float(ridge @ x)
        return Point(x, whole, gradient + ridge, hessian)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient, without the Hessian."""
        value, gradient = self.design.summed(
            partial(_value_and_gradient, self.link, x), self.n_threads
        )
        if not math.isfinite(value):
            return math.inf, np.full(x.size, np.nan)
        ridge = self.price * x
        return float(value) + 0.5 * float(ridge @ x), gradient + ridge


def _at(link: Link, x: np.ndarray, part: Design) -> Parts:
    """Return the loss of a chunk, its gradient and what makes its Hessian."""
    loss = likelihood_in_memory(part, link, 0.0, 1)
    there = loss.at(x)
    H = there.hessian
    if not math.isfinite(there.value):
        # a row has probability 0: sums over all chunks are infinite, of any shape
        T, M, C = part.T, 1 + part.nominal.size, part.location.size + part.scale.size
        shapes = (T, M, M), (T - 1, M, M), (T, M, C), (C, C)
        H = loss.assembled(*(np.zeros(shape) for shape in shapes))
        none = np.zeros(x.size)
        return np.array(math.inf), none, H.diag, H.off, H.border, H.core
    value = np.array(there.value)
    return value, there.gradient, H.diag, H.off, H.border, H.core


def _value_and_gradient(link: Link, x: np.ndarray, part: Design) -> Parts:
    loss = likelihood_in_memory(part, link, 0.0, 1)
    assert isinstance(loss, RowwiseLikelihood)
    value, gradient = loss.value_and_gradient(x)
    if not math.isfinite(value):
        gradient = np.zeros(x.size)
    return np.array(value), gradient


def has_many(design: Design) -> bool:
    """Return whether there are too many features for a Hessian."""
    return sum(design.sizes[1:]) > HESSIAN_COLUMNS


def likelihood_in_memory(
    design: Design, link: Link, l2: float, n_threads: int
) -> Likelihood:
    """Return the loss of rows that are held."""
    if design.is_sparse or has_many(design):
        return RowwiseLikelihood(design, link, l2, n_threads)
    return Likelihood(design, link, l2, n_threads)
