"""psi of (P) in `ordinal/tlssvor.py`, its gradient and its Hessian.

Kernels walk over the entries (row, threshold). What is summed over rows comes in chunks
of a fixed size, which are added in pairs, pairs of pairs and so on, so that no byte
depends on the number of threads, nor on whether columns are kept or made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np

from .._input.blocks import CHUNK
from .._input.problem import Problem
from .._model.monitor import turn
from .._numerics.rows import strips
from .._numerics.threads import in_order
from .._numerics.tree import Parts, pairwise
from .._solvers import _truncated_loss
from .columns import Columns

_COLUMNS = 1024  # of the Hessian in one product
_AT_ONCE = 1 << 28  # bytes of the Hessians of chunks that are made side by side

# scores, thresholds, ranks, weights of rows and of thresholds, u, eta: for the kernels
_Loss = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """x = (b, w), the scores f there, and psi for a value of u.

    Attributes
    ----------
    violation : float
        The largest slope, relative to the weights of its terms (`tol` of
        `fit_tlssvor`).
    """

    x: np.ndarray
    f: np.ndarray
    u: float
    value: float
    gradient: np.ndarray
    violation: float


class TruncatedObjective:
    """psi of one training set, over x = (b, w) and the T thresholds between ranks that
    have rows.

    Parameters
    ----------
    problem : Problem
    columns : Columns
        Of its rows: (n, m), with an entry of w each.
    C, eta : float
    price : (m,) array
        Factors of the penalty of each w_h.
    n_threads : int

    Attributes
    ----------
    price : (T + m,) array
        Factors of the penalty of each entry of x.
    scale : (T + m,) array
        Weights of the terms that each entry of x is in, the unit of its slope.
    """

    def __init__(
        self,
        problem: Problem,
        columns: Columns,
        C: float,
        eta: float,
        price: np.ndarray,
        n_threads: int,
    ):
        self._columns, self.C, self.eta, self.n_threads = columns, C, eta, n_threads
        present = np.flatnonzero(problem.present)
        self.n, self.rank = columns.n, problem.rank_among_present
        self.weight = problem.weight
        self.times = np.diff(present).astype(float)  # terms that a threshold stands for
        self.T = self.times.size
        self.price = np.concatenate([self.times, price])
        total = self.weight.sum()
        (column,) = self._sum(self._column_weights, n_threads)
        column[column == 0] = 1.0  # such a w_h is in no term, and stays 0
        self.scale = np.concatenate([total * self.times, self.times.sum() * column])

    def at(self, x: np.ndarray, u: float) -> Point:
        """Value and gradient. O(n (m + T)), in one pass over the columns."""
        f, b, w = np.empty(self.n), x[: self.T].copy(), x[self.T :]

        def of_chunk(rows: slice) -> Parts:
            K = self._columns.block(rows)
            np.matmul(K, w, out=f[rows])
            by_row = np.empty(len(K))
            by_part = np.empty((_truncated_loss.n_chunks(len(K)), 1 + self.T))
            _truncated_loss.slopes(
                *self._loss(rows, f, b, u), by_row, by_part, self._within
            )
            return by_part.sum(axis=0), by_row @ K

        (value, *by_threshold), by_column = self._sum(of_chunk, self.n_threads)
        gradient = np.concatenate([by_threshold, by_column])
        ridge = self.price * x / self.C
        gradient += ridge
        value += 0.5 * float(ridge @ x)
        violation = float(np.abs(gradient / self.scale).max())
        return Point(x, f, u, float(value), gradient, violation)

    def hessian(self, point: Point) -> np.ndarray:
        """Its lower triangle; what is above blocks on the diagonal is not set.

        O(n m^2), with n the rows that are not far from every bend and margin.
        """
        size = 8 * point.x.size**2
        side_by_side = int(min(self.n_threads, max(1, _AT_ONCE // (3 * size))))
        (H,) = self._sum(lambda rows: self._curvature(point, rows), side_by_side)
        diagonal = np.arange(len(H))
        H[diagonal, diagonal] += self.price / self.C
        return H

    def scores(self, w: np.ndarray) -> np.ndarray:
        """(n, p) of coefficients w (m, p)."""
        f = np.empty((self.n, w.shape[1]))
        for rows in strips(self.n, CHUNK):
            turn()
            np.matmul(self._columns.block(rows), w, out=f[rows])
        return f

    def largest_slack(self, point: Point) -> float:
        return max(map(partial(self._largest_slack, point), strips(self.n, CHUNK)))

    def _sum(self, of_chunk: Callable[[slice], Parts], n_threads: int) -> Parts:
        """Over all chunks, of which 3 n_threads at most are held at once."""
        chunks = strips(self.n, CHUNK)
        if n_threads == 1:  # one at a time, for Hessians as large as the memory

            def one_by_one(rows: slice) -> Parts:
                turn()
                return of_chunk(rows)

            return pairwise(map(one_by_one, chunks))
        with closing(in_order(of_chunk, chunks, n_threads)) as parts:
            return pairwise(parts)

    @property
    def _within(self) -> int:
        """Threads within a chunk: all where there is but one."""
        return self.n_threads if self.n <= CHUNK else 1

    def _column_weights(self, rows: slice) -> Parts:
        K, weight = self._columns.block(rows), self._weights(rows)
        column = np.zeros(K.shape[1])
        for part in strips(len(K)):
            column += weight[part] @ np.abs(K[part])
        return (column,)

    def _curvature(self, point: Point, chunk: slice) -> Parts:
        """What the rows of a chunk add to the Hessian."""
        T, K = self.T, self._columns.block(chunk)
        m, n = K.shape[1], len(K)
        D, by_row = np.empty((n, T)), np.empty(n)
        by_part = np.empty((_truncated_loss.n_chunks(n), T))
        _truncated_loss.curvatures(
            *self._loss(chunk, point.f, point.x[:T].copy(), point.u), D, by_row,
            by_part, self._within,
        )  # fmt: skip
        H = np.empty((T + m, T + m))
        for part in strips(len(H)):  # new memory costs time, of which Ctrl-C has turns
            H[part] = 0.0
        H[np.arange(T), np.arange(T)] = by_part.sum(axis=0)
        root = np.sqrt(np.abs(by_row))
        for sign in (1, -1):  # K'K of one matrix is half the work of a product of two
            rows = np.flatnonzero(sign * by_row > 0)
            for part in strips(rows.size):
                turn()
                scaled = root[rows[part], None] * K[rows[part]]
                for columns in strips(m, _COLUMNS):  # each leaves Ctrl-C its turn
                    turn()
                    below = scaled[:, columns.start :].T @ scaled[:, columns]
                    H[T + columns.start :, T + columns.start : T + columns.stop] += (
                        sign * below
                    )
        rows = np.flatnonzero(D.any(axis=1))
        for part in strips(rows.size):
            H[T:, :T] -= K[rows[part]].T @ D[rows[part]]
        return (H,)

    def _largest_slack(self, point: Point, rows: slice) -> float:
        above = self.rank[rows, None] > np.arange(self.T)
        distance = point.f[rows, None] - point.x[: self.T]
        slack = 1 - np.where(above, distance, -distance)
        return float(slack[self.weight[rows] > 0].max(initial=-np.inf))

    def _loss(self, rows: slice, f: np.ndarray, b: np.ndarray, u: float) -> _Loss:
        weight = self._weights(rows)
        return f[rows], b, self.rank[rows], weight, self.times, u, self.eta

    def _weights(self, rows: slice) -> np.ndarray:
        """Contiguous, as those that take no memory are not."""
        return np.ascontiguousarray(self.weight[rows])
