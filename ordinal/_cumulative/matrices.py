"""Sparse or dense columns of features, and the sums over rows that derivatives need.

Columns are divided by their spreads, and dense ones are centred (see `design`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from .._input.sparse import CSR
from .._input.types import Matrix
from .._numerics.rows import csr_arrays, matvec, strips
from .._rows.rows import Chunk, LocalRows, each, summed
from .._rows.sums import Parts
from .._solvers import _sparse_products
from .._watch.cancellation import check_cancelled

_FAR = 100.0  # centre, in spreads, from which on products lose two digits
_MANY = 100  # thresholds above which sums by rank are made by counting
_BLOCK, _LEAST = 65_536, 256  # entries, and fewest rows, of a block


@dataclass(frozen=True, slots=True, eq=False)
class SparseColumns:
    """Sparse matrix Z that is held twice, by rows and by columns.

    Attributes
    ----------
    rows : (n, d) CSR
        Z.
    columns : (d, n) CSR
        Z'.
    n_threads : int
    """

    rows: CSR
    columns: CSR
    n_threads: int

    @classmethod
    def from_columns(cls, columns: CSR, n_threads: int) -> SparseColumns:
        """Make Z of its columns, a CSR of Z'."""
        return cls(transposed(columns), columns, n_threads)

    @property
    def size(self) -> int:
        """The number of columns, d."""
        return len(self.columns)

    @property
    def entries(self) -> int:
        """The number of entries, including zeros of dense columns."""
        return self.columns.data.size

    def matvec(self, beta: np.ndarray) -> np.ndarray:
        """Return the product Z beta, (n,)."""
        return matvec(self.rows, beta, self.n_threads)

    def rmatvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product Z'v, (d,)."""
        return matvec(self.columns, v, self.n_threads)

    def gram(self, v: np.ndarray) -> np.ndarray:
        """Return the product Z' diag(v) Z, (d, d)."""
        out = np.zeros((self.size, self.size))
        _sparse_products.weighted_gram(
            *csr_arrays(self.columns), *csr_arrays(self.rows), v, out, self.n_threads
        )
        return out + np.tril(out, -1).T

    def by_rank(
        self,
        rank: np.ndarray,
        v: np.ndarray,
        w: np.ndarray,
        T: int,
        lower: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return sums of the rows about each threshold, (d, T).

        Entry (j, t) is the sum of v_i z_ij over the rows of rank t, and of w_i z_ij
        over the rows of rank t + 1, or for intervals over those of lower end t + 1.
        """
        lower = rank if lower is None else lower
        out, columns = np.zeros((self.size, T)), csr_arrays(self.columns)
        # Group -1 is in no sum.
        for group, factor in ((np.where(rank < T, rank, -1), v), (lower - 1, w)):
            _sparse_products.sum_by_group(
                *columns, group.astype(np.int32), factor, out, self.n_threads
            )
        return out

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield some rows at a time, and Z of these rows as a dense array."""
        for rows in _blocks(*self.rows.shape):
            yield rows, self.rows.dense(rows.start, rows.stop)

    def chosen(self, which: np.ndarray) -> SparseColumns:
        """Return a copy of some of the columns."""
        return SparseColumns.from_columns(self.columns.rows(which), self.n_threads)

    def dense(self) -> np.ndarray:
        """Return Z as a dense array."""
        return np.ascontiguousarray(self.columns.dense().T)


@dataclass(frozen=True, slots=True, eq=False)
class DenseColumns:
    """Dense matrix Z = (X - centre) / spread, with the methods of `SparseColumns`.

    Attributes
    ----------
    X : (n, d) array
    centre, spread : (d,) arrays, or None
        None if X is centred and scaled already.
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
        self,
        rank: np.ndarray,
        v: np.ndarray,
        w: np.ndarray,
        T: int,
        lower: np.ndarray | None = None,
    ) -> np.ndarray:
        lower = rank if lower is None else lower
        out = np.zeros((self.size, T + 2))
        if T > _MANY:  # one threshold at a time has few rows
            for j in range(self.size):
                z = self.chosen(np.array([j])).dense()[:, 0]
                out[j] = np.bincount(rank + 1, v * z, T + 2)
                out[j] += np.bincount(lower, w * z, T + 2)
            return out[:, 1:-1]
        for rows, Z in self.blocks():
            # A row of rank t is in the sums of thresholds t and t - 1. Columns 0 and
            # T + 1 stand for the thresholds that extreme ranks do not have.
            i, factors = np.arange(len(Z)), np.zeros((len(Z), T + 2))
            factors[i, rank[rows] + 1], factors[i, lower[rows]] = v[rows], w[rows]
            out += Z.T @ factors
        return out[:, 1:-1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in _blocks(*self.X.shape):
            yield rows, self._rows(rows)

    def chosen(self, which: np.ndarray) -> DenseColumns:
        # C order, in which X[:, which] is not.
        if self.X.flags.c_contiguous:
            X = self.X.take(which, axis=1)
        else:
            X = np.ascontiguousarray(self.X[:, which])
        if self.centre is not None and self.spread is not None:
            # In place, because the copy is the only one that may be as large as X.
            X -= self.centre[which]
            X /= self.spread[which]
        return DenseColumns(X)

    def dense(self) -> np.ndarray:
        """Return Z as a dense array."""
        return self._rows(slice(0, len(self.X)))

    def _rows(self, rows: slice) -> np.ndarray:
        if self.centre is None or self.spread is None:
            return np.asarray(self.X[rows])
        return np.asarray((self.X[rows] - self.centre) / self.spread)


Columns: TypeAlias = SparseColumns | DenseColumns


def columns_of(
    X: np.ndarray | CSR, centre: np.ndarray, spread: np.ndarray, n_threads: int
) -> Columns:
    """Return the scaled columns of a matrix.

    Dense ones are views of X, or a centred copy if products would lose digits.
    """
    if isinstance(X, CSR):
        every = transposed(X)
        unit = np.repeat(1 / spread, np.diff(every.indptr))
        every = replace(every, data=every.data * unit)
        return SparseColumns.from_columns(every, n_threads)
    columns = DenseColumns(X, centre, spread)
    # z'v = (x'v - centre sum v) / spread cancels where the centre is far.
    if (np.abs(centre) / _FAR > spread).any():
        return columns.chosen(np.arange(columns.size))
    return columns


def transposed(A: CSR) -> CSR:
    """Return the transposed matrix, A', as a CSR."""
    n, d = A.shape
    start = np.empty(d + 1, np.int64)
    row, value = np.empty(A.data.size, np.int32), np.empty(A.data.size)
    _sparse_products.transpose(*csr_arrays(A), start, row, value)
    return CSR(value, row, start, (d, n))


def _blocks(n: int, d: int) -> Iterator[slice]:
    """Yield slices of n rows that have about `_BLOCK` entries in d columns."""
    for rows in strips(n, max(_LEAST, _BLOCK // max(1, d))):
        check_cancelled()
        yield rows


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedColumns:
    """Columns of rows that are read in chunks; every pass makes those of each chunk.

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

    def summed(self, call: Callable[[slice, Columns], Parts]) -> Parts:
        """Return the sum of call(rows of a chunk, columns of the chunk)."""
        return summed(
            self.X, lambda c: call(c[0], self.columns_of(c[1])), self.n_threads
        )

    def columns_of(self, chunk: Matrix) -> Columns:
        """Return the columns of a chunk."""
        return columns_of(chunk, self.centre, self.spread, 1)
