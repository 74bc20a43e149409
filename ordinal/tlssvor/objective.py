"""psi of (P) in `ordinal.tlssvor`, its gradient and its Hessian.

Sums over rows are computed by chunks of a fixed size, which are added in a fixed tree.
The result therefore depends neither on the number of threads, nor on which columns are
cached, nor on the worker that has a row.

The score is a linear combination of m columns, which are computed row by row. For a
basis of rows they are kernel values with these rows. For a linear kernel of d features
a basis of all n rows is replaced by at most d columns. With features z, let t = Z'w;
the least sum_h w_h^2 / v_h over all w with Z'w = t is

    t'(sum_h v_h z_h z_h')^+ t = |q|^2     where t = R q,   R R' = sum_h v_h z_h z_h'

so that the columns Z R, with coefficients q and penalty |q|^2, state the same problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._input.problem import Problem
from .._input.types import Matrix
from .._numerics.rows import in_double, strips, take
from .._numerics.threads import Pool, in_order
from .._rows.rows import RowState, in_room
from .._rows.source import CHUNK
from .._rows.sums import Parts
from .._solvers import _truncated_loss
from .._watch.cancellation import check_cancelled
from ..kernels.functions import KernelFunction, check_values
from ..kernels.tiles import Evaluator

# Function of (X of k rows, out, n_threads) that writes their columns into out, (k, m)
Fill = Callable[[Any, np.ndarray, int], None]


class CachedColumns:
    """Columns of n rows, (n, m), in double precision.

    Those of as many chunks of rows as there is room for are cached, from the first on.
    The others are computed whenever they are needed.

    Parameters
    ----------
    X : (n, d) matrix, or rows that are read in chunks
    m : int
    fill : callable
        Computes the columns of some rows.
    room : float
        Number of rows whose columns may be cached.
    n_threads : int
    """

    def __init__(self, X: Any, m: int, fill: Fill, room: float, n_threads: int):  # noqa: ANN401  (in memory or in chunks)
        self._X, self._fill = X, fill
        self.n, self.m = len(X), m
        self._kept = np.empty((in_room(self.n, room), m))
        if m:
            # All threads share a chunk, so that Ctrl-C has its turn after each.
            for rows in strips(len(self._kept), CHUNK):
                check_cancelled()
                fill(take(X, rows), self._kept[rows], n_threads)

    def block(self, rows: slice) -> np.ndarray:
        """Return the columns of a chunk, (k, m), which must not be written to.

        Several threads may call this at once.
        """
        if rows.stop <= len(self._kept):
            return self._kept[rows]
        out = np.empty((rows.stop - rows.start, self.m))
        if self.m:
            self._fill(take(self._X, rows), out, 1)
        return out


def kernel_values(kernel: KernelFunction, basis: Matrix) -> Fill:
    """Return a function that computes kernel values with basis rows.

    For a precomputed kernel the basis holds the numbers of the rows.
    """
    return partial(_kernel_values, kernel, basis)


def _kernel_values(
    kernel: KernelFunction, basis: Matrix, X: Matrix, out: np.ndarray, n_threads: int
) -> None:
    Evaluator(kernel, in_double(X), basis, n_threads).fill(out)


def combined(features: Callable[[Matrix], np.ndarray], R: np.ndarray) -> Fill:
    """Return a function that computes Z R, the features of rows times R."""
    return partial(_combined, features, R)


def _combined(
    features: Callable[[Matrix], np.ndarray],
    R: np.ndarray,
    X: Matrix,
    out: np.ndarray,
    n_threads: int,
) -> None:
    np.matmul(features(in_double(X)), R, out=out)


class Squares:
    """State of some rows (`RowState`) that sums products of their features."""

    size = 0  # bytes in addition to the rows

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
        """Yield sum_h v_h z_h z_h' of each chunk, (d, d)."""

        def of_chunk(rows: slice) -> Parts:
            Z = self._features(in_double(take(self._X, rows)))
            check_values(np.einsum("ij,ij->i", Z, Z))
            Z = np.sqrt(self._weight[rows])[:, None] * Z
            return (Z.T @ Z,)

        return in_order(of_chunk, strips(self.n, CHUNK), self._n_threads)


def root_of(S: np.ndarray) -> np.ndarray:
    """Return R with R R' = S, (d, k), for S of rank k up to rounding."""
    # Scaled to a diagonal of 1, so that the rank does not depend on units of features.
    size = np.sqrt(np.diagonal(S))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(S / size[:, None] / size)
    # Directions with eigenvalues of rounding would give columns of noise.
    counts = values > len(S) * np.finfo(float).eps * max(values[-1], 0.0)
    return np.asarray(size[:, None] * vectors[:, counts] * np.sqrt(values[counts]))


_COLUMNS = 1024  # columns of the Hessian in one product
_AT_ONCE = 1 << 28  # bytes of the Hessians of chunks that are computed side by side

# Arguments of kernels: scores, thresholds, ranks, weights of rows and of thresholds, u
# and eta
_Loss = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class TlsPoint:
    """Parameters x = (b, w), with psi and its gradient for a value of u.

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
    """Constants of psi that are the same for all rows.

    Attributes
    ----------
    times : (T,) array
        Number of thresholds that each variable b_t stands for. Thresholds about a rank
        without rows are one variable.
    among : (r,) array of int32
        Position of each rank among those that have rows.
    eta : float
    """

    times: np.ndarray
    among: np.ndarray
    eta: float

    @classmethod
    def from_problem(cls, problem: Problem, eta: float) -> SharedTerms:
        # Thresholds about a rank without rows have the same terms.
        times = np.diff(np.flatnonzero(problem.present)).astype(float)
        return cls(times, problem.among_present, eta)


class LossSums:
    """Sums of the loss over some rows, chunk by chunk in their order.

    Parameters
    ----------
    columns : CachedColumns
        (n, m), where w has the m coefficients.
    rank : (n,) array
        Ranks among all classes.
    weight : (n,) array
    terms : SharedTerms
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
        """Yield sum_i v_i |K_ih| of each chunk, (m,)."""

        def of_chunk(rows: slice) -> Parts:
            K, weight = self._columns.block(rows), self._weights(rows)
            column = np.zeros(K.shape[1])
            for part in strips(len(K)):
                column += weight[part] @ np.abs(K[part])
            return (column,)

        return self._by_chunk(of_chunk, self.n_threads)

    def slopes(self, x: np.ndarray, u: float) -> Iterator[Parts]:
        """Yield the loss and its slopes by b, (1 + T,), and its slopes by w, (m,).

        The penalty is left out. O(n (m + T)), in one pass over the columns.
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
        """Yield the Hessian of the loss of each chunk, (T + m, T + m).

        Only the lower triangle is defined. O(n m^2), where n counts the rows with a
        slack at which the loss is curved.
        """
        size = 8 * x.size**2
        # `in_order` holds up to 3 answers per thread, each as large as the Hessian.
        side_by_side = int(min(self.n_threads, max(1, _AT_ONCE // (3 * size))))
        return self._by_chunk(lambda rows: self._curvature(rows, x, u), side_by_side)

    def largest_score(self, w: np.ndarray) -> Parts:
        """Return the largest absolute score of the rows."""
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
        """Yield the results of all chunks, of which at most 3 n_threads are held."""
        if n_threads == 1:  # one is held, because Hessians may be large
            return map(of_chunk, self._chunks())
        return in_order(of_chunk, strips(self.n, CHUNK), n_threads)

    def _chunks(self) -> Iterator[slice]:
        """Yield the slices of all chunks; check for cancellation between them."""
        for rows in strips(self.n, CHUNK):
            check_cancelled()
            yield rows

    @property
    def _within(self) -> int:
        """Number of threads within a chunk: all of them if it is the only chunk."""
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
        for part in strips(len(H)):  # in strips, so that Ctrl-C has its turn
            H[part] = 0.0
        H[np.arange(T), np.arange(T)] = by_part.sum(axis=0)
        # Truncated rows have a negative curvature, so that their products are
        # subtracted. K'K of one matrix is half of the work of a product of two.
        root = np.sqrt(np.abs(by_row))
        with Pool(self._within if m > _COLUMNS else 1) as pool:
            for sign in (1, -1):
                rows = np.flatnonzero(sign * by_row > 0)
                for part in strips(rows.size):
                    scaled = root[rows[part], None] * K[rows[part]]
                    add = partial(_add_products, H[T:, T:], sign, scaled)
                    pool.run(add, strips(m, _COLUMNS))  # Ctrl-C has its turn after each
        # The loss has no curvature where p is constant: below 0 and above u.
        rows = np.flatnonzero(D.any(axis=1))
        for part in strips(rows.size):
            H[T:, :T] -= K[rows[part]].T @ D[rows[part]]
        return (H,)

    def _slack(self, rows: slice, x: np.ndarray) -> float:
        """Return the largest slack of the rows of a chunk that have weight."""
        above = self._rank[rows, None] > np.arange(self._T)
        f = self._scores(self._columns.block(rows), x[self._T :])
        distance = f[:, None] - x[: self._T]
        slack = 1 - np.where(above, distance, -distance)
        return float(slack[self._weight[rows] > 0].max(initial=-np.inf))

    def _loss(self, rows: slice, K: np.ndarray, x: np.ndarray, u: float) -> _Loss:
        """Return the arguments of a kernel for the rows of a chunk."""
        f, b = self._scores(K, x[self._T :]), x[: self._T].copy()
        weight = self._weights(rows)
        return f, b, self._rank[rows], weight, self._times, u, self._eta

    @staticmethod
    def _scores(K: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.asarray(K @ w)

    def _weights(self, rows: slice) -> np.ndarray:
        """Return contiguous weights; a broadcast number has no contiguous view."""
        return np.ascontiguousarray(self._weight[rows])


def _add_products(H: np.ndarray, sign: int, scaled: np.ndarray, columns: slice) -> None:
    """Add these columns of sign * scaled' scaled to the lower triangle of H."""
    below = scaled[:, columns.start :].T @ scaled[:, columns]
    H[columns.start :, columns] += sign * below


class TruncatedObjective:
    """psi of a training set, by x = (b, w).

    b has the T thresholds between adjacent ranks with rows.

    Parameters
    ----------
    rows : RowState
        States of the type `LossSums`.
    terms : SharedTerms
    total : float
        Sum of the weights.
    C : float
    penalties : (m,) array
        Factors of w_h^2 in the penalty.
    n_threads : int
        Threads of the factorisations of the Hessian.

    Attributes
    ----------
    penalties : (T + m,) array
        Factors of the squared entries of x in the penalty.
    scale : (T + m,) array
        Weights of the terms in which each entry of x occurs; the unit of its slope.
    """

    def __init__(
        self,
        rows: RowState,
        terms: SharedTerms,
        total: float,
        C: float,
        penalties: np.ndarray,
        n_threads: int = 1,
    ):
        self._rows, self.C, self.eta, self.n_threads = rows, C, terms.eta, n_threads
        self.T = terms.times.size
        self.penalties = np.concatenate([terms.times, penalties])
        (column,) = rows.sum("column_weights")
        column[column == 0] = 1.0  # w_h is in no term, and stays 0
        self.scale = np.concatenate([total * terms.times, terms.times.sum() * column])

    def at(self, x: np.ndarray, u: float) -> TlsPoint:
        """Return value and gradient of psi at x for a value of u."""
        (value, *by_threshold), by_column = self._rows.sum("slopes", x, u)
        gradient = np.concatenate([by_threshold, by_column])
        ridge = self.penalties * x / self.C
        gradient += ridge
        value += 0.5 * float(ridge @ x)
        violation = float(np.abs(gradient / self.scale).max())
        return TlsPoint(x, u, float(value), gradient, violation)

    def hessian(self, point: TlsPoint) -> np.ndarray:
        """Return the Hessian, of which only the lower triangle is defined."""
        (H,) = self._rows.sum("curvature", point.x, point.u, symmetric=True)
        diagonal = np.arange(len(H))
        H[diagonal, diagonal] += self.penalties / self.C
        return H

    def largest_score(self, w: np.ndarray) -> float:
        """Return the largest absolute score of all rows."""
        return max(float(s) for (s,) in self._rows.map("largest_score", w))

    def largest_slack(self, point: TlsPoint) -> float:
        """Return the largest slack of the rows that have weight."""
        return max(float(s) for (s,) in self._rows.map("largest_slack", point.x))
