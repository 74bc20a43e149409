"""Features of rows on a basis: vectors z(x) whose inner products are kernel values.

With basis rows B (m, d) and K(B, B) = L L',

    z(x) = L^-1 k(B, x),     z(x)'z(x') = k(x, B) K(B, B)^-1 k(B, x'),               (Z)

which is k(x, x') where x or x' is a row of B, and the Nystroem approximation of it
elsewhere. A score is a sum over the rows of B:

    z(x)'w = sum_h c_h k(B_h, x),     c = L'^-1 w.                                   (C)

C. K. I. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines",
NIPS 13, 2000.

Features of very many rows are computed in single precision: kernel values are rounded
once, and multiplied by L^-1 in single precision. Because entries of L^-1 may be as
large as 3000 (`_LEFT`), the error of a feature is up to 2e-4. In double precision it is
negligible.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .._input.types import Matrix
from .._numerics.cholesky import lower_inverse, pivoted_cholesky, times_upper
from .._numerics.rows import dense, in_double, strips, take
from .functions import KernelFunction
from .tiles import Evaluator, on_itself

_LEFT = 1e-7  # share of the trace of K(B, B) that dependent rows of B may leave
TILE = 1024  # rows per tile: kernel values and their products stay in the cache
_COLUMNS = 128  # columns of L^-1 per product, which leaves out most of its zeros
_TINY = 1e-12  # share of k(x, x) = 1 that single precision cannot resolve
_LARGEST = 1e15  # largest feature in single precision: sums hold fourth powers


class RowFeatures:
    """Features (Z) on basis rows B, which cost O(m (d + m)) per row.

    Parameters
    ----------
    kernel : KernelFunction
    B : (m, d) matrix
        The rows; for a Precomputed kernel the (m, m) matrix of their values.
    numbers : (m,) array, optional
        For a Precomputed kernel: the columns of X that hold the values with B.

    Attributes
    ----------
    m : int
        Number of features. Rows of B are left out once the others explain all but 1e-7
        of the trace of K(B, B).
    kept : (m,) array
        Numbers in B of the rows that are not left out, in the order of the features.
    support : (m, d) matrix, or (m,) numbers for a Precomputed kernel
        These rows.
    inverse : (m, m) array
        L^-1, lower triangular.

    Raises
    ------
    ValueError
        If the kernel is zero on all rows of B, or not finite.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        B: Matrix,
        numbers: np.ndarray | None = None,
        n_threads: int = 1,
    ):
        self.kernel = kernel
        K = np.empty((len(B), len(B)))
        on_itself(kernel, B, n_threads).fill(K)

        def tile(
            rows: slice | np.ndarray, columns: np.ndarray, out: np.ndarray
        ) -> None:
            out[:] = K[rows][:, columns]

        L, self.kept, _ = pivoted_cholesky(
            np.diagonal(K), tile, _LEFT, n_threads=n_threads
        )
        self.m = self.kept.size
        self.support = take(B, self.kept) if numbers is None else numbers[self.kept]
        self.inverse = lower_inverse(np.tril(L[self.kept]), n_threads)
        if not np.abs(self.inverse).max() <= _LARGEST:
            raise ValueError(
                f"k(x, x) must be at least {_LARGEST**-2:g} on a basis: scale the "
                "features of X"
            )
        single = _without_tiny(self.inverse.T) if self._of_one else self.inverse.T
        self._single = np.ascontiguousarray(single, np.float32)

    def single(self, X: Matrix, out: np.ndarray, padded: bool = True) -> np.ndarray:
        """Fill `out`, (len(X), k) float32, with the first k features of the rows of X.

        With `padded`, the bytes of a row do not depend on the other rows, because every
        product has the same number of rows. Without it, few rows take less time.
        """
        # BLAS chooses its algorithm by the shape: equal shapes give equal rounding.
        whole = len(X) // TILE * TILE if padded else len(X)
        if whole:
            self._fill(take(X, slice(0, whole)), out[:whole])
        if whole < len(X):
            # The last rows are repeated to fill a tile, and the surplus is discarded.
            filled = np.empty((TILE, out.shape[1]), np.float32)
            self._fill(take(X, np.resize(np.arange(whole, len(X)), TILE)), filled)
            out[whole:] = filled[: len(X) - whole]
        return out if self._of_one else _checked(out)

    def _fill(self, X: Matrix, out: np.ndarray) -> None:
        """Fill `out` as `single` does, without padding."""
        m = out.shape[1]
        values, every = self._values(X), slice(0, m)
        scratch = np.empty(TILE * m)
        kernel = np.empty((TILE, m), np.float32)
        for rows in strips(len(X), TILE):
            K = values.tile(rows, every, kernel[: rows.stop - rows.start], scratch)
            if self._of_one and K.min() < _TINY:
                K[:] = _without_tiny(K)
            times_upper(K, self._single, out[rows], _COLUMNS)

    @property
    def _of_one(self) -> bool:
        """Return whether k(x, x) is 1 for all rows."""
        return self.kernel.of_one

    def double(self, X: Matrix) -> np.ndarray:
        """Return the features in double precision, (len(X), m)."""
        return self._values(X).product(np.ascontiguousarray(self.mixing))

    def values(self, X: Matrix, out: np.ndarray | None = None) -> np.ndarray:
        """Return kernel values in double precision, (len(X), m).

        The features are their product with `mixing`. A product of the kernel values
        with a vector costs far less than computing features for it.
        """
        values = self._values(X)
        out = np.empty((len(X), self.m)) if out is None else out
        # The inner products of the rows are replaced by the values in place.
        return values.tile(slice(0, len(X)), slice(0, self.m), out, out.reshape(-1))

    @property
    def mixing(self) -> np.ndarray:
        """Return L^-T, the (m, m) upper triangular factor of the features."""
        return self.inverse.T

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Return c of (C), for w (m,) or a matrix of columns."""
        return np.asarray(self.inverse.T @ w)

    def interpolating(self, scores: np.ndarray) -> np.ndarray:
        """Return the w (m,) whose scores on the rows of B are `scores`."""
        return np.asarray(self.inverse @ scores)

    def _values(self, X: Matrix) -> Evaluator:
        """Return the kernel values k(X, B)."""
        return Evaluator(self.kernel, in_double(X), self.support)


class ColumnFeatures:
    """Features (Z) of a linear kernel on the d unit vectors, without approximation.

    z(x) is x with each column multiplied by the root of its gamma.

    Parameters
    ----------
    kernel : KernelFunction
        A linear one.
    d : int

    Attributes
    ----------
    m, support : as those of `RowFeatures`
    """

    def __init__(self, kernel: KernelFunction, d: int):
        self.kernel, self.m, self.support = kernel, d, np.eye(d)
        gamma = kernel.relevance
        self._root = np.ones(d) if gamma is None else np.sqrt(gamma)

    def single(self, X: Matrix, out: np.ndarray, padded: bool = True) -> np.ndarray:
        """Fill `out`, (len(X), k) float32, with the first k features of the rows."""
        first = slice(0, out.shape[1])
        for rows in strips(len(X), TILE):
            with np.errstate(over="ignore"):  # seen by the check
                out[rows] = dense(take(X, rows))[:, first] * self._root[first]
        return _checked(out)

    def double(self, X: Matrix) -> np.ndarray:
        """Return the features in double precision, (len(X), m)."""
        return np.asarray(dense(X) * self._root)

    def values(self, X: Matrix, out: np.ndarray | None = None) -> np.ndarray:
        """Return the columns in double precision, (len(X), m).

        The features are their product with `mixing`.
        """
        values = np.asarray(dense(X), np.float64)
        if out is None:
            return values
        out[:] = values
        return out

    @property
    def mixing(self) -> np.ndarray:
        """Return the (m, m) diagonal matrix of the factors of the columns."""
        return np.diag(self._root)

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Return c of (C), for w (m,) or a matrix of columns."""
        return np.asarray((w.T / self._root).T)

    def interpolating(self, scores: np.ndarray) -> np.ndarray:
        """Return the w (m,) whose scores on the unit vectors are `scores`."""
        return np.asarray((scores.T / self._root).T)


Features: TypeAlias = RowFeatures | ColumnFeatures


def row_features(
    kernel: KernelFunction, X: Matrix, numbers: np.ndarray, n_threads: int = 1
) -> RowFeatures:
    """Return features on the rows `numbers` of X, or of a precomputed matrix X."""
    if kernel.by_number:
        return RowFeatures(
            kernel, dense(take(X, numbers))[:, numbers], numbers, n_threads
        )
    return RowFeatures(kernel, take(X, numbers), None, n_threads)


def _without_tiny(a: np.ndarray) -> np.ndarray:
    """Replace numbers below `_TINY` by 0.

    Their products would be subnormal in single precision, for which processors take a
    hundred times as long.
    """
    return np.where(np.abs(a) < _TINY, a.dtype.type(0), a)


def _checked(Z: np.ndarray) -> np.ndarray:
    """Return Z, or raise ValueError if sums of fourth powers of it could overflow."""
    if not max(float(Z.max(initial=0)), -float(Z.min(initial=0))) <= _LARGEST:
        raise ValueError(
            f"k(x, x) must be at most {_LARGEST**2:g} on a basis: scale the features "
            "of X"
        )
    return Z
