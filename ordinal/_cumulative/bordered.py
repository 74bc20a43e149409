"""Symmetric matrices that are block tridiagonal but for a border: Hessians by many
thresholds.

    H = [ A  B ]
        [ B' C ]

Thresholds that are free share rows with their neighbours only, so that A has T blocks
of (M, M) on its diagonal and T - 1 beside it. Blocks of even number do not touch each
other: they are eliminated all at once, which leaves a block tridiagonal matrix of half
as many, and so on. That is Cholesky's elimination in another order, as stable, of
O(T M (M + D)^2 + D^3) operations for a border of D, in log T turns.

D. Heller, "Some aspects of the cyclic reduction algorithm for block tridiagonal linear
systems", SIAM J. Numer. Anal. 13:484-496, 1976.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


def tridiagonal(diag: np.ndarray, off: np.ndarray) -> np.ndarray:
    """Return A as an array, (T M, T M), of (T, M, M) and (T - 1, M, M)."""
    T, M = diag.shape[:2]
    made, at = np.zeros((T, M, T, M)), np.arange(T)
    made[at, :, at] = diag
    made[at[:-1], :, at[1:]] = off
    made[at[1:], :, at[:-1]] = off.transpose(0, 2, 1)
    return made.reshape(T * M, T * M)


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
    first : (T M,) int array
        Numbers of A's variables among all; the others are those of C, in order.
    """

    diag: np.ndarray
    off: np.ndarray
    border: np.ndarray
    core: np.ndarray
    first: np.ndarray

    @classmethod
    def all_core(cls, H: np.ndarray) -> Bordered:
        """Return a matrix without structure."""
        none = np.zeros((0, 1, 1))
        border = np.zeros((0, 1, len(H)))
        return cls(none, none, border, H, np.zeros(0, dtype=np.int64))

    @property
    def size(self) -> int:
        return self.first.size + len(self.core)

    @property
    def rest(self) -> np.ndarray:
        """The numbers of C's variables."""
        others = np.ones(self.size, dtype=bool)
        others[self.first] = False
        return np.flatnonzero(others)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, (p,)."""
        out = np.empty(self.size)
        out[self.first] = np.diagonal(self.diag, axis1=1, axis2=2).ravel()
        out[self.rest] = np.diagonal(self.core)
        return out

    def plus(self, v: np.ndarray) -> Bordered:
        """Return H + diag(v) for v of shape (p,)."""
        of_diag = v[self.first].reshape(self.diag.shape[:2])
        diag = self.diag + of_diag[:, :, None] * np.eye(self.diag.shape[1])
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
        at = int(np.searchsorted(self.rest, index))
        return replace(
            self,
            border=np.delete(self.border, at, 2),
            core=np.delete(np.delete(self.core, at, 0), at, 1),
            first=self.first - (self.first > index),
        )

    def dense(self) -> np.ndarray:
        """Return H as a dense array."""
        H, first, rest = np.empty((self.size, self.size)), self.first, self.rest
        border = self.border.reshape(first.size, rest.size)
        H[np.ix_(first, first)] = tridiagonal(self.diag, self.off)
        H[np.ix_(first, rest)] = border
        H[np.ix_(rest, first)] = border.T
        H[np.ix_(rest, rest)] = self.core
        return H

    def is_finite(self) -> bool:
        """Return whether all entries are finite."""
        parts = self.diag, self.off, self.border, self.core
        return all(bool(np.isfinite(part).all()) for part in parts)


NONE = Bordered.all_core(np.empty((0, 0)))  # matrix of no variables


class Factor:
    """Factorisation of H.

    Raises
    ------
    numpy.linalg.LinAlgError
        H is not positive definite.
    """

    def __init__(self, H: Bordered):
        self.H, self._rest = H, H.rest
        self._chain = _Chain(H.diag, H.off)
        shape = H.first.size, len(H.core)
        self._border = H.border.reshape(shape)
        # Thresholds are eliminated first: O(T) for a chain, where a dense H costs T^3.
        self._across = self._chain.solve(H.border).reshape(shape)  # A^-1 B
        self._core = H.core
        if H.first.size:
            self._core = H.core - self._border.T @ self._across
        self._L = np.linalg.cholesky(self._core)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return the solution x of H x = v, (p,)."""
        H, out = self.H, np.empty(v.size)
        of_first = v[H.first].reshape(*H.diag.shape[:2], 1)
        own = self._chain.solve(of_first).ravel()
        right = v[self._rest] - self._border.T @ own
        last = np.linalg.solve(self._L.T, np.linalg.solve(self._L, right))
        out[H.first] = own - self._across @ last
        out[self._rest] = last
        return out

    def inverse(self) -> np.ndarray:
        """Return the dense inverse of H, (p, p)."""
        H, first, rest = self.H, self.H.first, self._rest
        last = np.linalg.inv(self._core)
        if not first.size:
            return last
        out = np.empty((H.size, H.size))
        unit = np.eye(first.size).reshape(*H.diag.shape[:2], first.size)
        own = self._chain.solve(unit).reshape(first.size, first.size)
        beside = self._across @ last
        out[np.ix_(first, first)] = own + beside @ self._across.T
        out[np.ix_(first, rest)] = -beside
        out[np.ix_(rest, first)] = -beside.T
        out[np.ix_(rest, rest)] = last
        return out


class _Chain:
    """Factored block tridiagonal matrix.

    Its even blocks are eliminated, and its odd blocks form a chain of the same kind.
    """

    def __init__(self, diag: np.ndarray, off: np.ndarray):
        self.size = len(diag)
        if not self.size:
            return
        # Cyclic reduction eliminates all even blocks at once by stacked routines of
        # numpy. It has log T levels; block elimination would take T steps in Python.
        L = np.linalg.inv(np.linalg.cholesky(diag[0::2]))
        self.inverse = L.transpose(0, 2, 1) @ L  # of the even blocks
        # of an odd block with the even ones before and after it
        before, after = off[0::2], off[1::2]
        odd, self.n_after = diag[1::2].copy(), len(after)
        self.left = before.transpose(0, 2, 1) @ self.inverse[: len(odd)]
        self.right = after @ self.inverse[1 : 1 + self.n_after]
        odd -= self.left @ before
        odd[: self.n_after] -= self.right @ after.transpose(0, 2, 1)
        # The remaining odd blocks form a chain again, of half the length.
        between = -self.right[: max(len(odd) - 1, 0)] @ before[1:]
        self.rest = _Chain(odd, between)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^-1 b for b of (T, M, columns)."""
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
