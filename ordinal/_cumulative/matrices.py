"""Columns of features, sparse or dense, and the sums over rows that derivatives need.

Both kinds are in units of their spreads, and dense ones are centred, as `design` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from .._input.sparse import CSR
from .._input.types import Matrix
from .._numerics.rows import matvec, strips
from .._rows.chunks import Chunk, each, summed
from .._rows.rows import LocalRows
from .._rows.sums import Parts
from .._solvers import _sparse_products
from .._watch.monitor import check_cancelled

_FAR = 100.0  # spreads: products with a column whose centre is there lose two digits
_BLOCK, _LEAST = 65_536, 256  # entries at a time, in so many rows or more


class Columns(Protocol):
    """Columns Z, (n, d), of the location."""

    @property
    def size(self) -> int:
        """Return the number of columns, d."""

    @property
    def entries(self) -> int:
        """Return the number of entries, including zeros of dense columns."""

    def matvec(self, beta: np.ndarray) -> np.ndarray:
        """Return the product Z beta, (n,)."""

    def rmatvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Z'v, (d,)."""

    def gram(self, v: np.ndarray) -> np.ndarray:
        """Return the product Z' diag(v) Z, (d, d)."""

    def by_rank(
        self, rank: np.ndarray, v: np.ndarray, w: np.ndarray, T: int
    ) -> np.ndarray:
        """Return sums of v z over the rows of rank t and of w z over those of rank t +
        1, for each column and threshold t, (d, T).
        """

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield some rows at a time, with Z there as an array."""

    def chosen(self, which: np.ndarray) -> Self:
        """Return some of the columns."""


def columns_of(
    X: np.ndarray | CSR, centre: np.ndarray, spread: np.ndarray, n_threads: int
) -> SparseColumns | DenseColumns:
    """Return all columns of a matrix, as a centred copy where digits would be lost."""
    if isinstance(X, CSR):
        every = transposed(X)
        unit = np.repeat(1 / spread, np.diff(every.indptr))
        return SparseColumns.from_matrix(
            replace(every, data=every.data * unit), n_threads
        )
    columns = DenseColumns(X, centre, spread)
    # z'v = (x'v - centre sum v) / spread cancels where the centre is far.
    if (np.abs(centre) / _FAR > spread).any():
        return columns.chosen(np.arange(columns.size))
    return columns


def _blocks(n: int, d: int) -> Iterator[slice]:
    for rows in strips(n, max(_LEAST, _BLOCK // max(1, d))):
        check_cancelled()
        yield rows


def transposed(A: CSR) -> CSR:
    """Return the columns of a matrix as rows."""
    n, d = A.shape
    start = np.empty(d + 1, np.int64)
    row, value = np.empty(A.data.size, np.int32), np.empty(A.data.size)
    _sparse_products.transpose(A.indptr, A.indices, A.data, start, row, value)
    return CSR(value, row, start, (d, n))


@dataclass(frozen=True, slots=True, eq=False)
class SparseColumns:
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

    @classmethod
    def from_matrix(cls, columns: CSR, n_threads: int) -> SparseColumns:
        """Make sparse columns of a matrix."""
        return cls(transposed(columns), columns, n_threads)

    @property
    def size(self) -> int:
        return len(self.columns)

    @property
    def entries(self) -> int:
        return self.columns.data.size

    def matvec(self, beta: np.ndarray) -> np.ndarray:
        return matvec(self.rows, beta, self.n_threads)

    def rmatvec(self, v: np.ndarray) -> np.ndarray:
        return matvec(self.columns, v, self.n_threads)

    def gram(self, v: np.ndarray) -> np.ndarray:
        d = len(self.columns)
        out = np.zeros((d, d))
        A, B = self.columns, self.rows
        _sparse_products.weighted_gram(
            A.indptr,
            A.indices,
            A.data,
            B.indptr,
            B.indices,
            B.data,
            v,
            out,
            self.n_threads,
        )
        return out + np.tril(out, -1).T

    def by_rank(
        self, rank: np.ndarray, v: np.ndarray, w: np.ndarray, T: int
    ) -> np.ndarray:
        A = self.columns
        out = np.zeros((len(A), T))
        for group, of in ((np.where(rank < T, rank, -1), v), (rank - 1, w)):
            _sparse_products.sum_by_group(
                A.indptr,
                A.indices,
                A.data,
                group.astype(np.int32),
                of,
                out,
                self.n_threads,
            )
        return out

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in _blocks(*self.rows.shape):
            yield rows, self.rows.dense(rows.start, rows.stop)

    def chosen(self, which: np.ndarray) -> SparseColumns:
        return SparseColumns.from_matrix(self.columns.rows(which), self.n_threads)

    def dense(self) -> np.ndarray:
        """Return Z as a dense array."""
        return np.ascontiguousarray(self.columns.dense().T)


@dataclass(frozen=True, slots=True, eq=False)
class DenseColumns:
    """A dense matrix, less its centre and by its spread; None where it is so already.

    Attributes
    ----------
    X : (n, d) array
    centre, spread : (d,) arrays
    """

    X: np.ndarray
    centre: np.ndarray | None = None
    spread: np.ndarray | None = None

    @property
    def size(self) -> int:
        return int(self.X.shape[1])

    @property
    def entries(self) -> int:
        return int(self.X.size)

    def matvec(self, beta: np.ndarray) -> np.ndarray:
        if self.centre is None or self.spread is None:
            return np.asarray(self.X @ beta)
        slopes = beta / self.spread
        return np.asarray(self.X @ slopes - self.centre @ slopes)

    def rmatvec(self, v: np.ndarray) -> np.ndarray:
        if self.centre is None or self.spread is None:
            return np.asarray(v @ self.X)
        return np.asarray((v @ self.X - v.sum() * self.centre) / self.spread)

    def gram(self, v: np.ndarray) -> np.ndarray:
        out = np.zeros((self.size, self.size))
        for rows, Z in self.blocks():
            out += (Z * v[rows, None]).T @ Z
        return out

    def by_rank(
        self, rank: np.ndarray, v: np.ndarray, w: np.ndarray, T: int
    ) -> np.ndarray:
        out = np.zeros((self.size, T + 2))
        for rows, Z in self.blocks():
            # a row of rank t is in the sums of thresholds t and t - 1; those that are
            # none have places at the ends
            at, part = np.arange(len(Z)), rank[rows]
            factors = np.zeros((at.size, T + 2))
            factors[at, part + 1], factors[at, part] = v[rows], w[rows]
            out += Z.T @ factors
        return out[:, 1:-1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in _blocks(*self.X.shape):
            yield rows, self._rows(rows)

    def chosen(self, which: np.ndarray) -> DenseColumns:
        if self.centre is None or self.spread is None:
            return DenseColumns(self._taken(which))
        X = self._taken(which)
        # In place, because the copy is the only one that may be as large as X.
        X -= self.centre[which]
        X /= self.spread[which]
        return DenseColumns(X)

    def _taken(self, which: np.ndarray) -> np.ndarray:
        """Return a copy of some columns in C order, which X[:, which] is not."""
        if self.X.flags.c_contiguous:
            return self.X.take(which, axis=1)
        return np.ascontiguousarray(self.X[:, which])

    def dense(self) -> np.ndarray:
        """Return Z as a dense array."""
        return self._rows(slice(0, len(self.X)))

    def _rows(self, rows: slice) -> np.ndarray:
        if self.centre is None or self.spread is None:
            return np.asarray(self.X[rows])
        return np.asarray((self.X[rows] - self.centre) / self.spread)


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedColumns:
    """Columns of rows that are read in chunks, made of every chunk by itself.

    Attributes
    ----------
    X : LocalRows
    centre, spread : (d,) arrays
    n_threads : int
    """

    X: LocalRows
    centre: np.ndarray
    spread: np.ndarray
    n_threads: int

    def matvec(self, beta: np.ndarray) -> np.ndarray:
        """Return the product Z beta, (n,)."""
        out = np.empty(len(self.X))

        def of_chunk(chunk: Chunk) -> None:
            out[chunk[0]] = self.columns_of(chunk[1]).matvec(beta)

        each(self.X, of_chunk, self.n_threads)
        return out

    def rmatvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Z'v, (d,)."""
        return self.summed(lambda rows, columns: (columns.rmatvec(v[rows]),))[0]

    def summed(
        self, call: Callable[[slice, SparseColumns | DenseColumns], Parts]
    ) -> Parts:
        """Return the sum over all chunks of what is made of one: which rows it has, and
        their columns.
        """
        return summed(
            self.X, lambda c: call(c[0], self.columns_of(c[1])), self.n_threads
        )

    def columns_of(self, chunk: Matrix) -> SparseColumns | DenseColumns:
        """Return the columns of a chunk."""
        return columns_of(chunk, self.centre, self.spread, 1)
