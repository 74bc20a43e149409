"""psi of (P) in `ordinal/tlssvor.py`, its gradient and its Hessian.

Kernels walk over the entries (row, threshold); what is summed over rows comes in chunks
of a fixed size, so that no byte depends on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._input.problem import Problem
from .._model.monitor import turn
from .._numerics.rows import strips
from .._solvers import _truncated_loss

_COLUMNS = 1024  # of the Hessian in one product

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
    K : (n, m) array
        Kernel values of the rows with the basis rows.
    C, eta : float
    basis_price : (m,) array
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
        K: np.ndarray,
        C: float,
        eta: float,
        basis_price: np.ndarray,
        n_threads: int,
    ):
        self.K, self.C, self.eta, self.n_threads = K, C, eta, n_threads
        present = np.flatnonzero(problem.present)
        self.rank = problem.rank_among_present
        self.weight = problem.weight
        self.times = np.diff(present).astype(float)  # terms that a threshold stands for
        self.T = self.times.size
        self.price = np.concatenate([self.times, basis_price])
        total = self.weight.sum()
        column = np.zeros(K.shape[1])
        for part in strips(len(K)):
            column += self.weight[part] @ np.abs(K[part])
        column[column == 0] = 1.0  # such a w_h is in no term, and stays 0
        self.scale = np.concatenate([total * self.times, self.times.sum() * column])

    def at(self, x: np.ndarray, u: float) -> Point:
        """Value and gradient. O(n (m + T))."""
        f = self.K @ x[self.T :]
        by_row = np.empty(f.size)
        by_chunk = np.empty((_truncated_loss.n_chunks(f.size), 1 + self.T))
        _truncated_loss.slopes(*self._loss(x, f, u), by_row, by_chunk, self.n_threads)
        value, *by_threshold = by_chunk.sum(axis=0)
        gradient = np.concatenate([by_threshold, by_row @ self.K])
        ridge = self.price * x / self.C
        gradient += ridge
        value += 0.5 * float(ridge @ x)
        violation = float(np.abs(gradient / self.scale).max())
        return Point(x, f, u, float(value), gradient, violation)

    def hessian(self, point: Point) -> np.ndarray:
        """Its lower triangle; what is above blocks on the diagonal is not set.

        O(n m^2), with n the rows that are not far from every bend and margin.
        """
        T, n = self.T, point.f.size
        D, by_row = np.empty((n, T)), np.empty(n)
        by_chunk = np.empty((_truncated_loss.n_chunks(n), T))
        _truncated_loss.curvatures(
            *self._loss(point.x, point.f, point.u), D, by_row, by_chunk, self.n_threads
        )
        H = np.empty((point.x.size, point.x.size))
        for part in strips(len(H)):  # new memory costs time, of which Ctrl-C has turns
            H[part] = 0.0
        np.fill_diagonal(H, self.price / self.C)
        H[np.arange(T), np.arange(T)] += by_chunk.sum(axis=0)
        m, root = H.shape[0] - T, np.sqrt(np.abs(by_row))
        for sign in (1, -1):  # K'K of one matrix is half the work of a product of two
            rows = np.flatnonzero(sign * by_row > 0)
            for part in strips(rows.size):
                turn()
                K = root[rows[part], None] * self.K[rows[part]]
                for columns in strips(m, _COLUMNS):  # each leaves Ctrl-C its turn
                    turn()
                    below = K[:, columns.start :].T @ K[:, columns]
                    H[T + columns.start :, T + columns.start : T + columns.stop] += (
                        sign * below
                    )
        rows = np.flatnonzero(D.any(axis=1))
        for part in strips(rows.size):
            H[T:, :T] -= self.K[rows[part]].T @ D[rows[part]]
        return H

    def largest_slack(self, point: Point) -> float:
        above = self.rank[:, None] > np.arange(self.T)
        distance = point.f[:, None] - point.x[: self.T]
        slack = 1 - np.where(above, distance, -distance)
        return float(slack[self.weight > 0].max())

    def _loss(self, x: np.ndarray, f: np.ndarray, u: float) -> _Loss:
        return f, x[: self.T].copy(), self.rank, self.weight, self.times, u, self.eta
