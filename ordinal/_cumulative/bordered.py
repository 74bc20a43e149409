"""Symmetric matrices of a block tridiagonal part and a border.

These are the Hessians of models with many thresholds:

    H = [ A  B ]
        [ B' C ]

A flexible threshold shares rows with its two neighbours only. A therefore has T
diagonal blocks of (M, M) and T - 1 off-diagonal ones, where M - 1 is the number of
nominal effects. Blocks with even indices are not coupled to each other, so that they
are eliminated all at once. What remains is block tridiagonal again, with half as many
blocks. This is Cholesky factorisation in another order, and as stable. It takes
O(T M (M + D)^2 + D^3) operations in log T stages for a core C of (D, D).

D. Heller, "Some aspects of the cyclic reduction algorithm for block tridiagonal linear
systems", SIAM J. Numer. Anal. 13:484-496, 1976.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


def tridiagonal(diag: np.ndarray, off: np.ndarray) -> np.ndarray:
    """Return A as a dense array, (T M, T M).

    Parameters
    ----------
    diag, off : (T, M, M), (T - 1, M, M) arrays
        Diagonal blocks, and the blocks to the right of them.
    """
    T, M = diag.shape[:2]
    A, t = np.zeros((T, M, T, M)), np.arange(T)
    A[t, :, t] = diag
    A[t[:-1], :, t[1:]] = off
    A[t[1:], :, t[:-1]] = off.transpose(0, 2, 1)
    return A.reshape(T * M, T * M)


@dataclass(frozen=True, slots=True, eq=False)
class Bordered:
    """Matrix H with a block tridiagonal part A, a border B and a core C.

    A matrix without structure consists of C alone.

    Attributes
    ----------
    diag : (T, M, M) array
    off : (T - 1, M, M) array
        Off-diagonal blocks of A, between t and t + 1.
    border : (T, M, D) array
        B.
    core : (D, D) array
        C.
    first, rest : (T M,), (D,) int arrays
        Indices of A's and C's variables among all; those of C increase.
    """

    diag: np.ndarray
    off: np.ndarray
    border: np.ndarray
    core: np.ndarray
    first: np.ndarray
    rest: np.ndarray

    @classmethod
    def from_dense(cls, H: np.ndarray) -> Bordered:
        """Wrap a matrix without structure."""
        none, border = np.zeros((0, 1, 1)), np.zeros((0, 1, len(H)))
        first, rest = np.zeros(0, dtype=np.int64), np.arange(len(H))
        return cls(none, none, border, H, first, rest)

    def units(self) -> np.ndarray:
        """Return the scale of each variable, 1 / sqrt(diag(H)), (p,)."""
        diagonal = np.empty(self.first.size + self.rest.size)
        diagonal[self.first] = np.diagonal(self.diag, axis1=1, axis2=2).ravel()
        diagonal[self.rest] = np.diagonal(self.core)
        diagonal = np.abs(diagonal)
        # The bound keeps products of steps finite.
        least = max(1e-100 * diagonal.max(), 1e-200)
        return np.asarray(1 / np.sqrt(np.maximum(diagonal, least)))

    def plus(self, v: np.ndarray) -> Bordered:
        """Return H + diag(v) for v of shape (p,)."""
        first = v[self.first].reshape(self.diag.shape[:2])
        diag = self.diag + first[:, :, None] * np.eye(self.diag.shape[1])
        return replace(self, diag=diag, core=self.core + np.diag(v[self.rest]))

    def scaled(self, unit: np.ndarray) -> Bordered:
        """Return diag(unit) H diag(unit)."""
        u, r = unit[self.first].reshape(self.diag.shape[:2]), unit[self.rest]
        return replace(
            self,
            diag=self.diag * u[:, :, None] * u[:, None, :],
            off=self.off * u[:-1, :, None] * u[1:, None, :],
            border=self.border * u[:, :, None] * r,
            core=self.core * r * r[:, None],
        )

    def without(self, index: int) -> Bordered:
        """Return H without the row and the column of one of C's variables."""
        j = int(np.searchsorted(self.rest, index))
        return replace(
            self,
            border=np.delete(self.border, j, 2),
            core=np.delete(np.delete(self.core, j, 0), j, 1),
            first=self.first - (self.first > index),
            rest=np.delete(self.rest - (self.rest > index), j),
        )

    def dense(self) -> np.ndarray:
        """Return H as a dense array."""
        first, rest = self.first, self.rest
        p = first.size + rest.size
        H = np.empty((p, p))
        border = self.border.reshape(first.size, rest.size)
        H[np.ix_(first, first)] = tridiagonal(self.diag, self.off)
        H[np.ix_(first, rest)] = border
        H[np.ix_(rest, first)] = border.T
        H[np.ix_(rest, rest)] = self.core
        return H


NONE = Bordered.from_dense(np.empty((0, 0)))  # matrix of no variables


class Factor:
    """Block Cholesky factorisation of H by its Schur complement C - B' A^-1 B.

    Raises
    ------
    numpy.linalg.LinAlgError
        H is not positive definite.
    """

    def __init__(self, H: Bordered):
        self.H, self._schur = H, H.core
        if H.first.size:
            self._A, self._rest = _BlockTridiagonal(H.diag, H.off), H.rest
            shape = H.first.size, len(H.core)
            self._border = H.border.reshape(shape)
            # Thresholds are eliminated first, in O(T); a dense H would cost O(T^3).
            self._AB = self._A.solve(H.border).reshape(shape)  # A^-1 B
            self._schur = H.core - self._border.T @ self._AB
        self._L = np.linalg.cholesky(self._schur)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the solution x of H x = v, (p,)."""
        H, x = self.H, np.empty(v.size)
        if not H.first.size:
            return np.linalg.solve(self._L.T, np.linalg.solve(self._L, v))
        first = self._A.solve(v[H.first].reshape(*H.diag.shape[:2], 1)).ravel()
        right = v[self._rest] - self._border.T @ first
        rest = np.linalg.solve(self._L.T, np.linalg.solve(self._L, right))
        x[H.first] = first - self._AB @ rest
        x[self._rest] = rest
        return x

    def inverse(self) -> np.ndarray:
        """Return the dense inverse of H, (p, p)."""
        H, first = self.H, self.H.first
        core = np.linalg.inv(self._schur)
        if not first.size:
            return core
        rest = self._rest
        p = first.size + rest.size
        out = np.empty((p, p))
        unit = np.eye(first.size).reshape(*H.diag.shape[:2], first.size)
        A_inverse = self._A.solve(unit).reshape(first.size, first.size)
        border = self._AB @ core
        out[np.ix_(first, first)] = A_inverse + border @ self._AB.T
        out[np.ix_(first, rest)] = -border
        out[np.ix_(rest, first)] = -border.T
        out[np.ix_(rest, rest)] = core
        return out


class _BlockTridiagonal:
    """Block tridiagonal matrix A, factored by cyclic reduction.

    The even blocks are eliminated, and the odd blocks form a matrix of the same kind.
    """

    def __init__(self, diag: np.ndarray, off: np.ndarray):
        self.size = len(diag)
        if not self.size:
            return
        # Cyclic reduction eliminates all even blocks at once by stacked routines of
        # numpy. It has log T levels; block elimination would take T steps in Python.
        L = np.linalg.inv(np.linalg.cholesky(diag[0::2]))
        self.inverse = L.transpose(0, 2, 1) @ L  # of the even blocks
        # couplings of an odd block with the even blocks before and after it
        before, after = off[0::2], off[1::2]
        odd, self.n_after = diag[1::2].copy(), len(after)
        self.left = before.transpose(0, 2, 1) @ self.inverse[: len(odd)]
        self.right = after @ self.inverse[1 : 1 + self.n_after]
        odd -= self.left @ before
        odd[: self.n_after] -= self.right @ after.transpose(0, 2, 1)
        # Eliminating the even block between two odd ones couples these.
        between = -self.right[: max(len(odd) - 1, 0)] @ before[1:]
        self.rest = _BlockTridiagonal(odd, between)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^-1 b, (T, M, k), for b of (T, M, k)."""
        if not self.size:
            return b
        even, odd, m = b[0::2], b[1::2].copy(), self.n_after
        odd -= self.left @ even[: len(odd)]
        odd[:m] -= self.right @ even[1 : 1 + m]
        x = np.empty(b.shape)
        x[1::2] = odd = self.rest.solve(odd)
        even = self.inverse @ even
        even[: len(odd)] -= self.left.transpose(0, 2, 1) @ odd
        even[1 : 1 + m] -= self.right.transpose(0, 2, 1) @ odd[:m]
        x[0::2] = even
        return x
