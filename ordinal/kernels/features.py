"""Features of rows on a basis: vectors z(x) whose inner products are kernel values.

With basis rows B (m, d) and K(B, B) = L L',

    z(x) = L^-1 k(B, x),     z(x)'z(x') = k(x, B) K(B, B)^-1 k(B, x'),               (Z)

which is k(x, x') where x or x' is a row of B, and the Nystroem approximation of it
elsewhere. A score is a sum over the rows of B:

    z(x)'w = sum_h c_h k(B_h, x),     c = L'^-1 w.                                   (C)

C. K. I. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines",
NIPS 13, 2000.

Features of very many rows are wanted in single precision: there kernel values are
rounded to it once, and multiplied by L^-1 in it. As L^-1 may be some 3000 times as
large as what it is applied to (`_LEFT`), they are off by up to 2e-4; in double by
nothing that matters.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .._input.sparse import CSR
from .._input.types import Kernel, Matrix
from .._numerics.cholesky import lower_inverse, pivoted_cholesky
from .._numerics.rows import dense, strips, take
from . import ARD, RBF, Linear, LinearARD, Precomputed
from .tiles import Evaluator, on_itself

_LEFT = 1e-7  # of the trace of K(B, B): rows of B that add less are left out
TILE = 1024  # of kernel values at a time: they and their products stay in the cache
_COLUMNS = 128  # of L^-1 in one product, which leaves out most of its zeros
_TINY = 1e-12  # of k(x, x) = 1: less counts for nothing in single precision
_LARGEST = 1e15  # feature in single precision: sums over rows take fourth powers


class RowFeatures:
    """(Z) for rows B. O(m (d + m)) a row.

    Parameters
    ----------
    kernel : callable
    B : (m, d) matrix
        The rows; for a Precomputed kernel the (m, m) matrix of their values.
    numbers : (m,) array, optional
        For a Precomputed kernel: the columns of X that hold the values with B.

    Attributes
    ----------
    m : int
        How many features there are: those rows of B on which K depends by less than
        1e-7 of its trace are left out.
    kept : (m,) array
        The numbers of the others in B, in the order of the features.
    support : (m, d) matrix, or (m,) numbers for a Precomputed kernel
        They themselves.
    inverse : (m, m) array
        L^-1, lower triangular.

    Raises
    ------
    ValueError
        The kernel is zero on all rows of B, or not finite.
    """

    def __init__(
        self,
        kernel: Kernel,
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
        """Fill out, (len(X), k) float32, with the first k features of the rows of X.

        With `padded`, the bytes of a row do not depend on others: every product has as
        many rows. Without it, few rows take less time.
        """
        # BLAS chooses its kernel by the shape: the same shape gives the same rounding.
        whole = len(X) // TILE * TILE if padded else len(X)
        if whole:
            self._fill(take(X, slice(0, whole)), out[:whole])
        if whole < len(X):
            # The last rows are repeated up to a whole tile, and the rest is thrown
            # away.
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
            for J in strips(m, _COLUMNS):
                # The factor is triangular: half of the products are with zeros.
                upper = self._single[: J.stop, J]
                np.matmul(K[:, : J.stop], upper, out=out[rows, J])

    @property
    def _of_one(self) -> bool:
        """Return whether k(x, x) is 1 for all rows."""
        return isinstance(self.kernel, RBF | ARD)

    def double(self, X: Matrix) -> np.ndarray:
        """Return the features in double precision, (len(X), m)."""
        return self._values(X).product(np.ascontiguousarray(self.mixing))

    def values(self, X: Matrix, out: np.ndarray | None = None) -> np.ndarray:
        """Return kernel values in double precision, (len(X), m).

        Multiplied by `mixing`, they are the features; a product with them costs far
        less than one with features made for it.
        """
        values = self._values(X)
        out = np.empty((len(X), self.m)) if out is None else out
        # inner products of the rows turn into the values in place
        return values.tile(slice(0, len(X)), slice(0, self.m), out, out.reshape(-1))

    @property
    def mixing(self) -> np.ndarray:
        """Return the (m, m) upper triangular factor."""
        return self.inverse.T

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Return c of (C), for w (m,) or a matrix of columns."""
        return np.asarray(self.inverse.T @ w)

    def interpolating(self, scores: np.ndarray) -> np.ndarray:
        """Return the w with these scores on the rows of B, or unit vectors, (m,)."""
        return np.asarray(self.inverse @ scores)

    def _values(self, X: Matrix) -> Evaluator:
        """Return the kernel values k(X, B)."""
        kernel, B = self.kernel, self.support
        if isinstance(X, CSR):
            return Evaluator(kernel, X, B)
        X = np.asarray(X, np.float64)
        if isinstance(kernel, ARD):  # scaled once, not tile by tile
            # |x - z|^2 with weights is the plain one of scaled columns.
            root = np.sqrt(kernel.gamma)
            return Evaluator(RBF(1.0), X * root, B * root)
        return Evaluator(kernel, X, B)


class ColumnFeatures:
    """(Z) of a linear kernel where the basis is the d unit vectors: z(x) is x itself,
    each column times the root of its gamma, and nothing is approximated.

    Parameters
    ----------
    kernel : Linear or LinearARD
    d : int

    Attributes
    ----------
    m, support : as those of `RowFeatures`
    """

    def __init__(self, kernel: Linear | LinearARD, d: int):
        self.kernel, self.m, self.support = kernel, d, np.eye(d)
        if isinstance(kernel, LinearARD):
            self._root = np.sqrt(kernel.gamma)
        else:
            self._root = np.ones(d)

    def single(self, X: Matrix, out: np.ndarray, padded: bool = True) -> np.ndarray:
        """Fill out, (len(X), k) float32, with the first k features of the rows of X."""
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

        Multiplied by `mixing`, they are the features.
        """
        values = np.asarray(dense(X), np.float64)
        if out is None:
            return values
        out[:] = values
        return out

    @property
    def mixing(self) -> np.ndarray:
        """Return the (m, m) matrix."""
        return np.diag(self._root)

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Return c of (C), for w (m,) or a matrix of columns."""
        return np.asarray((w.T / self._root).T)

    def interpolating(self, scores: np.ndarray) -> np.ndarray:
        """Return the w with these scores on the rows of B, or unit vectors, (m,)."""
        return np.asarray((scores.T / self._root).T)


Features: TypeAlias = RowFeatures | ColumnFeatures


def row_features(
    kernel: Kernel, X: Matrix, numbers: np.ndarray, n_threads: int = 1
) -> RowFeatures:
    """Return features on these rows of X, or of a precomputed matrix X."""
    if isinstance(kernel, Precomputed):
        return RowFeatures(
            kernel, dense(take(X, numbers))[:, numbers], numbers, n_threads
        )
    return RowFeatures(kernel, take(X, numbers), None, n_threads)


def _without_tiny(a: np.ndarray) -> np.ndarray:
    """Replace by 0 the numbers that are so small that single precision does not hold
    their products in full: processors take a hundred times as long for those.
    """
    return np.where(np.abs(a) < _TINY, a.dtype.type(0), a)


def _checked(Z: np.ndarray) -> np.ndarray:
    """Return features that sums in single precision can hold."""
    if not max(float(Z.max(initial=0)), -float(Z.min(initial=0))) <= _LARGEST:
        raise ValueError(
            f"k(x, x) must be at most {_LARGEST**2:g} on a basis: scale the features "
            "of X"
        )
    return Z
