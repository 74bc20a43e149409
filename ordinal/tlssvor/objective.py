"""psi of (P) in `ordinal.tlssvor`, its gradient and its Hessian.

Kernels walk over the entries (row, threshold). What is summed over rows comes in chunks
of a fixed size, which are added in pairs, pairs of pairs and so on, so that no byte
depends on the number of threads, nor on whether columns are kept or made anew, nor on
who holds which rows.

Columns that the coefficients of a score multiply, made row by row.

For a basis of rows they are the kernel's values with these. For a linear kernel of d
features a basis of all n rows is one of d columns: with features z, Z'w =: u takes the
place of w, and the least sum_h w_h^2 / v_h of all w with Z'w = u is

    u'(sum_h v_h z_h z_h')^+ u = |q|^2     where u = R q,   R R' = sum_h v_h z_h z_h'

so that the columns Z R, whose coefficients q cost |q|^2, state the same problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._input.problem import Problem
from .._input.sparse import CSR
from .._input.types import Kernel, Matrix
from .._numerics.pool import Pool, in_order
from .._numerics.rows import strips, take
from .._rows.chunks import RowState, in_room
from .._rows.source import CHUNK
from .._rows.sums import Parts
from .._solvers import _truncated_loss
from .._watch.monitor import check_cancelled
from ..kernels.functions import check_values
from ..kernels.tiles import Evaluator

Fill = Callable[[Any, np.ndarray, int], None]
"""Of some rows, room for their columns, threads."""


class CachedColumns:
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
        """Return a chunk, (rows, m), as read-only; it is safe in several threads."""
        if rows.stop <= len(self._kept):
            return self._kept[rows]
        out = np.empty((rows.stop - rows.start, self.m))
        if self.m:
            self._fill(take(self._X, rows), out, 1)
        return out


def kernel_values(kernel: Kernel, basis: Matrix) -> Fill:
    """Return columns that are values with basis rows, or with those of these numbers
    for a precomputed kernel.
    """
    return partial(_values, kernel, basis)


def _values(
    kernel: Kernel, basis: Matrix, X: Matrix, out: np.ndarray, n_threads: int
) -> None:
    Evaluator(kernel, _double(X), basis, n_threads).fill(out)


def mixed(features: Callable[[Matrix], np.ndarray], R: np.ndarray) -> Fill:
    """Return what fills an array with Z R, the features of rows times R."""
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
    """Return rows that workers may hold in single precision."""
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
    """Return R of this module, (d, k) for a sum of rank k."""
    size = np.sqrt(np.diagonal(S))
    size = np.where(size > 0, size, 1.0)  # so that no unit of a feature is too small
    values, vectors = np.linalg.eigh(S / size[:, None] / size)
    # Directions that only rounding has would get columns of noise.
    counts = values > len(S) * np.finfo(float).eps * max(values[-1], 0.0)
    return np.asarray(size[:, None] * vectors[:, counts] * np.sqrt(values[counts]))


_COLUMNS = 1024  # of the Hessian in one product
_AT_ONCE = 1 << 28  # bytes of the Hessians of chunks that are made side by side

# scores, thresholds, ranks, weights of rows and of thresholds, u, eta: for the kernels
_Loss = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class TlsPoint:
    """x = (b, w), and psi for a value of u.

    Attributes
    ----------
    violation : float
        The largest slope, relative to the weights of its terms (`tol` of
        `fit_tlssvor`).
    """

    x: np.ndarray
    u: float
    value: float
    gradient: np.ndarray
    violation: float


@dataclass(frozen=True, slots=True, eq=False)
class SharedTerms:
    """Terms of psi that all rows share.

    Attributes
    ----------
    times : (T,) array
        How many terms each threshold stands for: two on either side of a rank without
        rows are one.
    among : (r,) array of int32
        The place of each rank among those that have rows.
    eta : float
    """

    times: np.ndarray
    among: np.ndarray
    eta: float

    @classmethod
    def from_problem(cls, problem: Problem, eta: float) -> SharedTerms:
        # Thresholds around a rank without rows have the same terms, and one solution.
        times = np.diff(np.flatnonzero(problem.present)).astype(float)
        return cls(times, problem.among_present, eta)


class LossSums:
    """Sums of the loss over some rows, by chunks in order or as arrays of all rows.

    Parameters
    ----------
    columns : Columns
        (n, m), with an entry of w each.
    rank : (n,) array
        Among all classes.
    weight : (n,) array
    terms : Terms
    n_threads : int
    """

    def __init__(
        self,
        columns: CachedColumns,
        rank: np.ndarray,
        weight: np.ndarray,
        terms: SharedTerms,
        n_threads: int,
    ):
        self._columns, self.n, self.n_threads = columns, columns.n, n_threads
        self._rank, self._weight = terms.among[rank], weight
        self._times, self._eta = terms.times, terms.eta
        self._T = terms.times.size

    @property
    def size(self) -> int:
        return 8 * self.n * self._columns.m

    def column_weights(self) -> Iterator[Parts]:
        """Return the weights of the terms of each entry of w, for one threshold."""

        def of_chunk(rows: slice) -> Parts:
            K, weight = self._columns.block(rows), self._weights(rows)
            column = np.zeros(K.shape[1])
            for part in strips(len(K)):
                column += weight[part] @ np.abs(K[part])
            return (column,)

        return self._by_chunk(of_chunk, self.n_threads)

    def slopes(self, x: np.ndarray, u: float) -> Iterator[Parts]:
        """Return psi without penalty and its slopes by b, and its slopes by w.

        O(n (m + T)), in one pass over the columns.
        """

        def of_chunk(rows: slice) -> Parts:
            K = self._columns.block(rows)
            by_row = np.empty(len(K))
            by_part = np.empty((_truncated_loss.n_chunks(len(K)), 1 + self._T))
            _truncated_loss.slopes(
                *self._loss(rows, K, x, u), by_row, by_part, self._within
            )
            return by_part.sum(axis=0), by_row @ K

        return self._by_chunk(of_chunk, self.n_threads)

    def curvature(self, x: np.ndarray, u: float) -> Iterator[Parts]:
        """Return the Hessian without penalty, its lower triangle.

        What is above blocks on the diagonal is not set.

        O(n m^2), with n the rows that are not far from every bend and margin.
        """
        size = 8 * x.size**2
        # `in_order` holds up to 3 answers per thread, each as large as the Hessian.
        side_by_side = int(min(self.n_threads, max(1, _AT_ONCE // (3 * size))))
        return self._by_chunk(lambda rows: self._curvature(rows, x, u), side_by_side)

    def largest_score(self, w: np.ndarray) -> Parts:
        """Return the largest absolute value."""
        found = (
            np.abs(self._scores(self._columns.block(rows), w)).max()
            for rows in self._chunks()
        )
        return (np.array(max(found)),)

    def largest_slack(self, x: np.ndarray) -> Parts:
        """Return the largest slack of the rows that have weight."""
        return (np.array(max(self._slack(rows, x) for rows in self._chunks())),)

    def _by_chunk(
        self, of_chunk: Callable[[slice], Parts], n_threads: int
    ) -> Iterator[Parts]:
        """Yield the answers of all chunks, at most 3 n_threads held at once."""
        if n_threads == 1:  # one at a time, for Hessians as large as the memory
            return map(of_chunk, self._chunks())
        return in_order(of_chunk, strips(self.n, CHUNK), n_threads)

    def _chunks(self) -> Iterator[slice]:
        for rows in strips(self.n, CHUNK):
            check_cancelled()
            yield rows

    @property
    def _within(self) -> int:
        """Threads within a chunk: all where there is but one."""
        return self.n_threads if self.n <= CHUNK else 1

    def _curvature(self, chunk: slice, x: np.ndarray, u: float) -> Parts:
        """Return the contribution of the rows of a chunk to the Hessian."""
        T, K = self._T, self._columns.block(chunk)
        m, n = K.shape[1], len(K)
        D, by_row = np.empty((n, T)), np.empty(n)
        by_part = np.empty((_truncated_loss.n_chunks(n), T))
        _truncated_loss.curvatures(
            *self._loss(chunk, K, x, u), D, by_row, by_part, self._within
        )
        H = np.empty((T + m, T + m))
        for part in strips(len(H)):  # new memory costs time, of which Ctrl-C has turns
            H[part] = 0.0
        H[np.arange(T), np.arange(T)] = by_part.sum(axis=0)
        # Truncated rows curve downwards: their products are subtracted.
        root = np.sqrt(np.abs(by_row))
        with Pool(self._within if m > _COLUMNS else 1) as pool:
            # K'K of one matrix is half the work of a product of two
            for sign in (1, -1):
                rows = np.flatnonzero(sign * by_row > 0)
                for part in strips(rows.size):
                    scaled = root[rows[part], None] * K[rows[part]]
                    add = partial(_add_products, H[T:, T:], sign, scaled)
                    pool.run(add, strips(m, _COLUMNS))  # each leaves Ctrl-C its turn
        # Rows far from every margin and bend have no curvature.
        rows = np.flatnonzero(D.any(axis=1))
        for part in strips(rows.size):
            H[T:, :T] -= K[rows[part]].T @ D[rows[part]]
        return (H,)

    def _slack(self, rows: slice, x: np.ndarray) -> float:
        above = self._rank[rows, None] > np.arange(self._T)
        f = self._scores(self._columns.block(rows), x[self._T :])
        distance = f[:, None] - x[: self._T]
        slack = 1 - np.where(above, distance, -distance)
        return float(slack[self._weight[rows] > 0].max(initial=-np.inf))

    def _loss(self, rows: slice, K: np.ndarray, x: np.ndarray, u: float) -> _Loss:
        f, b = self._scores(K, x[self._T :]), x[: self._T].copy()
        weight = self._weights(rows)
        return f, b, self._rank[rows], weight, self._times, u, self._eta

    @staticmethod
    def _scores(K: np.ndarray, w: np.ndarray) -> np.ndarray:
        f = np.empty(len(K))
        return np.matmul(K, w, out=f)

    def _weights(self, rows: slice) -> np.ndarray:
        """Return contiguous weights, because views of one number are not."""
        return np.ascontiguousarray(self._weight[rows])


def _add_products(H: np.ndarray, sign: int, scaled: np.ndarray, columns: slice) -> None:
    """Add these columns of sign * scaled' scaled to the lower triangle of H."""
    below = scaled[:, columns.start :].T @ scaled[:, columns]
    H[columns.start :, columns] += sign * below


class TruncatedObjective:
    """psi of one training set, over x = (b, w) and the T thresholds between ranks that
    have rows.

    Parameters
    ----------
    rows : RowState
        Of `LossSums`.
    terms : Terms
        Which they have.
    total : float
        Their weight.
    C : float
    price : (m,) array
        Factors of the penalty of each w_h.
    n_threads : int
        Threads of the factorisations of its Hessian.

    Attributes
    ----------
    price : (T + m,) array
        Factors of the penalty of each entry of x.
    scale : (T + m,) array
        Weights of the terms that each entry of x is in, the unit of its slope.
    """

    def __init__(
        self,
        rows: RowState,
        terms: SharedTerms,
        total: float,
        C: float,
        price: np.ndarray,
        n_threads: int = 1,
    ):
        self._rows, self.C, self.eta, self.n_threads = rows, C, terms.eta, n_threads
        self.T = terms.times.size
        self.price = np.concatenate([terms.times, price])
        (column,) = rows.sum("column_weights")
        column[column == 0] = 1.0  # such a w_h is in no term, and stays 0
        self.scale = np.concatenate([total * terms.times, terms.times.sum() * column])

    def at(self, x: np.ndarray, u: float) -> TlsPoint:
        """Return value and gradient of psi."""
        (value, *by_threshold), by_column = self._rows.sum("slopes", x, u)
        gradient = np.concatenate([by_threshold, by_column])
        ridge = self.price * x / self.C
        gradient += ridge
        value += 0.5 * float(ridge @ x)
        violation = float(np.abs(gradient / self.scale).max())
        return TlsPoint(x, u, float(value), gradient, violation)

    def hessian(self, point: TlsPoint) -> np.ndarray:
        """Return the lower triangle of the Hessian; above it, entries are undefined."""
        (H,) = self._rows.sum("curvature", point.x, point.u)
        diagonal = np.arange(len(H))
        H[diagonal, diagonal] += self.price / self.C
        return H

    def largest_score(self, w: np.ndarray) -> float:
        """Return the largest absolute score of all rows."""
        return max(float(s) for (s,) in self._rows.map("largest_score", w))

    def largest_slack(self, point: TlsPoint) -> float:
        """Return the largest slack of the rows that have weight."""
        return max(float(s) for (s,) in self._rows.map("largest_slack", point.x))
