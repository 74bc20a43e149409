"""Covariance of the estimates of very many thresholds, without their matrix.

With as many ranks as rows, the covariance of all parameters has more entries than any
memory. The information H in (theta, nu) and (beta, zeta), in columns that are centred
and scaled, is block tridiagonal but for a border (`_cumulative.likelihood`):

    W H = [ A   B ]    H^-1 / W = [ A^-1 + P K P'  -P K ]    P = A^-1 B             (1)
          [ B'  C ]               [ -K P'           K   ]    K = (C - B'P)^-1

so that A, P and K are all that must be held. The parameters in the units of the
columns are linear functions of u_t = (theta_t, nu_t) and b = (beta, zeta): with G, c
and D for the slopes at a threshold, the centres and the spreads, and e the first unit
vector, they are G u_t + e c'b for every t, and D b.

The diagonal needs the diagonal blocks of A^-1 only, which cyclic reduction has in O(T).
A sandwich V = H^-1 M H^-1 / W^2 has the same cost if no two rows belong together: M is
then block tridiagonal, too. The diagonal blocks of A^-1 M A^-1 are the derivative of
those of (A - h M)^-1 by h at 0, which is taken by an imaginary step without rounding
error. Clusters couple all thresholds, M = S'S with a row of S per cluster, and cost
O(T) for each of them.

W. Squire, G. Trapp, "Using complex variables to estimate derivatives of real
functions", SIAM Review 40:110-112, 1998. F. E. Harrell, "rms", R package, whose `orm`
holds the information of as many intercepts in this way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._cumulative.likelihood import BlockTridiagonal
from .._input.fields import FINITE, SHARED, Array
from .._input.immutable import read_only
from .._input.sparse import CSR
from .._model.storage import Storable
from .._numerics.memory import check_memory
from .._numerics.rows import strips

_ENTRIES = 1 << 22  # of products of the matrix with some vectors at a time
_STEP = 1e-100  # imaginary: its square is below the rounding error of everything


@dataclass(frozen=True, slots=True, eq=False)
class Blocks(Storable):
    """Symmetric matrix of the structure of H in (1).

    Attributes
    ----------
    diag, off : (T, M, M), (T - 1, M, M) arrays
        Blocks by u_t twice, and by u_t and u_(t+1).
    border, core : (T, M, D), (D, D) arrays
        Blocks by u_t and b, and by b twice.
    """

    diag: Annotated[np.ndarray, Array("f8", "T M M"), FINITE]
    off: Annotated[np.ndarray, Array("f8", "T-1 M M"), FINITE]
    border: Annotated[np.ndarray, Array("f8", "T M D"), FINITE]
    core: Annotated[np.ndarray, Array("f8", "D D"), FINITE]

    def matmul(self, u: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the product with (u, b), (T, M, k) and (D, k)."""
        by_u = self.diag @ u + self.border @ b
        by_u[:-1] += self.off @ u[1:]
        by_u[1:] += self.off.transpose(0, 2, 1) @ u[:-1]
        return by_u, np.tensordot(self.border, u, ((0, 1), (0, 1))) + self.core @ b


@dataclass(frozen=True, slots=True, eq=False)
class StructuredCovariance(Storable):
    """Covariance of (alpha, nu, beta, zeta) for T flexible thresholds, (p, p).

    Products with vectors, blocks of a few parameters and the diagonal take O(T). The
    symbols are those of the module.

    Attributes
    ----------
    diag, off : (T, M, M), (T - 1, M, M) arrays
        Blocks of A.
    slopes : (T, M, D) array
        P.
    core : (D, D) array
        K.
    unit, shift, scale : (M, M), (D,), (D,) arrays
        G, c and the diagonal of D.
    meat : Blocks or None
        M of a sandwich of independent rows.
    scores : (G, T M + D) CSR, or None
        S of a sandwich of clusters.
    """

    diag: Annotated[np.ndarray, Array("f8", "T M M"), FINITE]
    off: Annotated[np.ndarray, Array("f8", "T-1 M M"), FINITE]
    slopes: Annotated[np.ndarray, Array("f8", "T M D"), FINITE]
    core: Annotated[np.ndarray, Array("f8", "D D"), FINITE]
    unit: Annotated[np.ndarray, Array("f8", "M M"), FINITE]
    shift: Annotated[np.ndarray, Array("f8", "D"), FINITE]
    scale: Annotated[np.ndarray, Array("f8", "D"), FINITE]
    meat: Annotated[Blocks, SHARED] | None = None
    scores: CSR | None = None

    # Products `array @ covariance` are those of this class, not of numpy.
    __array_ufunc__ = None

    def _check(self) -> None:
        size = self.slopes.shape[0] * self.slopes.shape[1] + len(self.core)
        if self.scores is not None and self.scores.shape[1] != size:
            raise ValueError(f"scores must have {size} columns, one per parameter")
        self._inverse()

    def __len__(self) -> int:
        T, M, D = self.slopes.shape
        return int(T * M + D)

    def __matmul__(self, X: np.ndarray) -> np.ndarray:
        """Return the product with X, (p, k). O(T k)."""
        u, b = self._from_raw(X)
        u, b = self._solved(u, b)
        if self.meat is not None:
            u, b = self._solved(*self.meat.matmul(u, b))
        elif self.scores is not None:
            made = np.zeros_like(u), np.zeros_like(b)
            for by_u, by_b in self._clusters():
                size = by_u.reshape(len(by_u), -1) @ u.reshape(-1, u.shape[2])
                size += by_b @ b
                made[0][:] += np.tensordot(by_u, size, (0, 0))
                made[1][:] += by_b.T @ size
            u, b = self._solved(*made)
        return self._to_raw(u, b)

    def __rmatmul__(self, X: np.ndarray) -> np.ndarray:
        """Return the product of X, (k, p), with this matrix, which is symmetric."""
        return np.asarray((self @ X.T).T)

    def diagonal(self) -> np.ndarray:
        """Return the variances of all parameters, (p,)."""
        A, P = self._inverse(), self._slopes_of_raw()
        K = self.core
        if self.scores is not None:
            return self._diagonal_of_clusters(A, P)
        if self.meat is None:
            inner = A.inverse_blocks()[0]
            mixed = None
        else:
            M, h = self.meat, _STEP * np.abs(self.diag).max()
            h /= max(float(np.abs(self.meat.diag).max()), 1e-300)
            moved = BlockTridiagonal(
                self.diag - 1j * h * M.diag, self.off - 1j * h * M.off
            )
            inner = moved.inverse_blocks()[0].imag / h
            # M applied to the columns (P, -I) of the core
            minus = -np.eye(len(K))
            by_u, by_b = M.matmul(self.slopes, minus)
            mixed = A.solve(by_u)
            K = K @ (np.tensordot(self.slopes, by_u, ((0, 1), (0, 1))) - by_b) @ K
        G = self.unit
        own = np.einsum("ij,tjk,ik->ti", G, inner, G)
        own += np.einsum("tid,de,tie->ti", P, K, P, optimize=True)
        if mixed is not None:
            cross = np.einsum("ij,tjd->tid", G, mixed)
            own += 2 * np.einsum("tid,de,tie->ti", cross, self.core, P, optimize=True)
        return self._placed(own, np.diagonal(K) * self.scale**2)

    def block(self, which: np.ndarray) -> np.ndarray:
        """Return the covariance of some of the parameters, by number, (k, k)."""
        out = np.empty((which.size, which.size))
        for part in strips(which.size, max(1, _ENTRIES // len(self))):
            unit = np.zeros((len(self), part.stop - part.start))
            unit[which[part], np.arange(unit.shape[1])] = 1.0
            out[:, part] = (self @ unit)[which]
        return out

    def dense(self) -> np.ndarray:
        """Return the matrix, (p, p).

        Raises
        ------
        MemoryError
            This machine has less memory than it needs.
        """
        p = len(self)
        advice = (
            ": standard_errors, confint, and tests and contrasts of "
            "ordinal.inference do without it"
        )
        check_memory("covariance", 16.0 * p * p, f"{p} x {p} entries", advice)
        return read_only(self.block(np.arange(p)))

    def _inverse(self) -> BlockTridiagonal:
        """Return the factors of A, the block tridiagonal part."""
        return BlockTridiagonal(self.diag, self.off)

    def _solved(self, u: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the product of (1) with (u, b), (T, M, k) and (D, k)."""
        P = self.slopes.reshape(-1, len(self.core))
        b = self.core @ (b - P.T @ u.reshape(len(P), -1))
        return self._inverse().solve(u) - np.asarray(P @ b).reshape(u.shape), b

    def _from_raw(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives by (u, b) of linear functions of the parameters."""
        T, M, _ = self.slopes.shape
        alpha, nu, rest = np.split(X, [T, T * M])
        u = np.concatenate([alpha[:, None], nu.reshape(T, M - 1, X.shape[1])], axis=1)
        b = self.scale[:, None] * rest + np.outer(self.shift, alpha.sum(axis=0))
        return (u if M == 1 else self.unit.T @ u), b

    def _to_raw(self, u: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the parameters in the units of the columns, (p, k)."""
        u = u.copy() if len(self.unit) == 1 else self.unit @ u
        u[:, 0] += self.shift @ b
        nu = u[:, 1:].reshape(-1, u.shape[2])
        return np.concatenate([u[:, 0], nu, self.scale[:, None] * b])

    def _placed(self, by_slot: np.ndarray, by_core: np.ndarray) -> np.ndarray:
        """Return values per (theta_t, nu_t), (T, M), and per core in their order."""
        return np.concatenate([by_slot[:, 0], by_slot[:, 1:].ravel(), by_core])

    def _slopes_of_raw(self) -> np.ndarray:
        """Return P for the thresholds in the units of the columns, (T, M, D)."""
        P = self.slopes.copy() if len(self.unit) == 1 else self.unit @ self.slopes
        P[:, 0] -= self.shift
        return P

    def _diagonal_of_clusters(self, A: BlockTridiagonal, P: np.ndarray) -> np.ndarray:
        """Return the variances as sums of squares over clusters."""
        T, M, D = self.slopes.shape
        flat = self.slopes.reshape(T * M, D)
        own, core = np.zeros((T, M)), np.zeros(D)
        for by_u, by_b in self._clusters():
            k = len(by_u)
            b = self.core @ (by_b - by_u.reshape(k, -1) @ flat).T
            u = self.unit @ A.solve(by_u.transpose(1, 2, 0)) - P @ b
            own += (u * u).sum(axis=2)
            core += (b * b).sum(axis=1)
        return self._placed(own, core * self.scale**2)

    def _clusters(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows of S as dense arrays, (k, T, M) and (k, D)."""
        assert self.scores is not None
        T, M, _ = self.slopes.shape
        for rows in strips(len(self.scores), max(1, _ENTRIES // len(self))):
            dense = self.scores.dense(rows.start, rows.stop)
            yield dense[:, : T * M].reshape(-1, T, M), dense[:, T * M :]


def block_of(V: np.ndarray | StructuredCovariance, which: np.ndarray) -> np.ndarray:
    """Return the covariance of some of the parameters, by number, (k, k)."""
    if isinstance(V, StructuredCovariance):
        return V.block(which)
    return np.asarray(V[np.ix_(which, which)])
