"""The mean loss of `likelihood` for a sparse matrix of features.

The columns of the location stay sparse, by rows and by columns; those of nominal and
scale effects are few, and dense. With E_i = (1, -n_i) / s_i, the slot (t, k) is entry k
of what threshold t and its slopes are multiplied by in row i, where a_i belongs to
threshold y_i and b_i to y_i - 1:

    da = E_i du_(y_i) - (x_i'dbeta / s_i) - a_i z_i'dzeta, and so for b               (3)

so that derivatives are sums over the rows of each rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._input.sparse import CSR
from .._solvers import _sparse_products
from .design import Design
from .likelihood import Likelihood, Point, Terms, row_terms


def transposed(A: CSR) -> CSR:
    """The columns of a matrix as rows."""
    n, d = A.shape
    start = np.empty(d + 1, np.int64)
    row, value = np.empty(A.data.size, np.int32), np.empty(A.data.size)
    _sparse_products.transpose(A.indptr, A.indices, A.data, start, row, value)
    return CSR(value, row, start, (d, n))


def times(A: CSR, x: np.ndarray, n_threads: int) -> np.ndarray:
    """A x."""
    out = np.empty(len(A))
    _sparse_products.times(
        A.indptr, A.indices, A.data, np.ascontiguousarray(x), out, n_threads
    )
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A sparse matrix by rows and by columns.

    Attributes
    ----------
    rows : CSR of (n, d)
    columns : CSR of (d, n)
    n_threads : int
    """

    rows: CSR
    columns: CSR
    n_threads: int

    def times(self, beta: np.ndarray) -> np.ndarray:
        """X beta, (n,)."""
        return times(self.rows, beta, self.n_threads)

    def across(self, v: np.ndarray) -> np.ndarray:
        """X'v, (d,)."""
        return times(self.columns, v, self.n_threads)

    def gram(self, v: np.ndarray) -> np.ndarray:
        """X' diag(v) X, (d, d)."""
        d = len(self.columns)
        out = np.zeros((d, d))
        A, B = self.columns, self.rows
        _sparse_products.weighted_gram(
            A.indptr, A.indices, A.data, B.indptr, B.indices, B.data, v, out,
            self.n_threads,
        )  # fmt: skip
        return out + np.tril(out, -1).T

    def by_rank(self, rank: np.ndarray, v: np.ndarray, w: np.ndarray, T: int,
                chosen: np.ndarray | None = None) -> np.ndarray:  # fmt: skip
        """Sums of v x over the rows of rank t, and of w x over those of rank t + 1,
        for each threshold t and column, or chosen ones: (m, T)."""
        A = self.columns
        if chosen is None:
            chosen = np.arange(len(A), dtype=np.int32)
        out = np.zeros((chosen.size, T))
        for group, of in ((np.where(rank < T, rank, -1), v), (rank - 1, w)):
            _sparse_products.sum_by_group(
                A.indptr, A.indices, A.data, chosen, group.astype(np.int32), of, out,
                self.n_threads,
            )  # fmt: skip
        return out
