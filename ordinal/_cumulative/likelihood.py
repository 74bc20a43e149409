"""The mean loss of a linear cumulative model, with its gradient and Hessian.

Let a_i and b_i be the predictors eta_ij of (1) in `design` at the thresholds above and
below rank y_i: a_i = inf at the highest rank, b_i = -inf at the lowest. Then

    loss = -(1/W) sum_i w_i log(F(a_i) - F(b_i)) + l2/2 |beta|^2                     (2)

With many thresholds its Hessian is block tridiagonal but for a border:

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

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from .._numerics.tails import normal_cdf, normal_quantile
from .._rows.columns import moments, row_strips
from .._solvers import _cumulative, _third_derivatives
from .design import Design, l2_penalties, mean_offset

Link = Literal["logit", "probit", "cloglog", "loglog", "cauchit"]
_BLOCK = 1 << 17  # entries of the scores of some rows, which stay in the cache
CHAIN = 100  # most thresholds whose Hessian is computed and solved as a dense matrix
# Rows from which on a fit takes longer than a thread may wait for its processor on a
# busy machine (tools/bench/busy.py)
_MANY = 16_384
_MIRROR = {"cloglog": "loglog", "loglog": "cloglog"}  # the others are symmetric
_FAR = 700.0  # exp is finite here, and a cloglog density beyond is 0


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """log P of rows and its derivatives by a and b, (n,) each.

    g = d/da + d/db and g1 = d/da; c1 = d2/da2 + d2/dadb, c2 = d2/db2 + d2/dadb and
    h12 = d2/dadb. The sums are computed as such, because they would cancel where a and
    b are close.
    """

    a: np.ndarray
    b: np.ndarray
    log_p: np.ndarray
    g: np.ndarray
    g1: np.ndarray
    c1: np.ndarray
    c2: np.ndarray
    h12: np.ndarray


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

    def normed(self) -> tuple[Bordered, np.ndarray]:
        """Return diag(unit) H diag(unit) and unit = 1 / sqrt(diag(H)), (p,)."""
        diagonal = np.empty(self.first.size + self.rest.size)
        diagonal[self.first] = np.diagonal(self.diag, axis1=1, axis2=2).ravel()
        diagonal[self.rest] = np.diagonal(self.core)
        diagonal = np.abs(diagonal)
        # The bound keeps products of steps finite.
        least = max(1e-100 * diagonal.max(), 1e-200)
        unit = 1 / np.sqrt(np.maximum(diagonal, least))
        u, r = unit[self.first].reshape(self.diag.shape[:2]), unit[self.rest]
        normed = replace(
            self,
            diag=self.diag * u[:, :, None] * u[:, None, :],
            off=self.off * u[:-1, :, None] * u[1:, None, :],
            border=self.border * u[:, :, None] * r,
            core=self.core * r * r[:, None],
        )
        return normed, unit

    def plus(self, v: np.ndarray) -> Bordered:
        """Return H + diag(v) for v of shape (p,)."""
        first = v[self.first].reshape(self.diag.shape[:2])
        diag = self.diag + first[:, :, None] * np.eye(self.diag.shape[1])
        return replace(self, diag=diag, core=self.core + np.diag(v[self.rest]))

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product H v, (p,)."""
        u, w, out = v[self.first].reshape(*self.diag.shape[:2], 1), v[self.rest], v * 0
        first = self.diag @ u + (self.border @ w)[..., None]
        first[:-1] += self.off @ u[1:]
        first[1:] += self.off.transpose(0, 2, 1) @ u[:-1]
        out[self.first] = first.ravel()
        out[self.rest] = np.tensordot(u[..., 0], self.border, 2) + self.core @ w
        return np.asarray(out)

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
            self._A, self._rest = BlockTridiagonal(H.diag, H.off), H.rest
            shape = H.first.size, len(H.core)
            self._border = H.border.reshape(shape)
            # Thresholds are eliminated first, in O(T); a dense H would cost O(T^3).
            self.slopes = self._A.solve(H.border)  # A^-1 B
            self._AB = self.slopes.reshape(shape)
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

    def inverse_core(self) -> np.ndarray:
        """Return the block of H^-1 of C's variables, (D, D)."""
        return np.linalg.inv(self._schur)

    def root(self) -> np.ndarray:
        """Return a matrix C with C C' = H^-1, (p, p), for H with a tridiagonal part."""
        H, size = self.H, self.H.first.size
        out = np.zeros((size + self._rest.size,) * 2)
        unit = np.eye(size).reshape(*H.diag.shape[:2], size)
        of_core = np.linalg.inv(self._L).T
        out[np.ix_(H.first, H.first)] = self._A.unwhitened(unit).reshape(size, size)
        out[np.ix_(H.first, self._rest)] = -self._AB @ of_core
        out[np.ix_(self._rest, self._rest)] = of_core
        return out

    def inverse(self) -> np.ndarray:
        """Return the dense inverse of H, (p, p)."""
        H, first = self.H, self.H.first
        core = self.inverse_core()
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


class BlockTridiagonal:
    """Block tridiagonal matrix A, factored by cyclic reduction.

    The even blocks are eliminated, and the odd blocks form a matrix of the same kind.
    """

    def __init__(self, diag: np.ndarray, off: np.ndarray):
        self.size, self.inverse = len(diag), diag
        if not self.size:
            return
        # Cyclic reduction eliminates all even blocks at once by stacked routines of
        # numpy. It has log T levels; block elimination would take T steps in Python.
        self._root = _inverse_roots(diag[0::2])
        self.inverse = _products(_transposed(self._root), self._root)  # of even blocks
        # couplings of an odd block with the even blocks before and after it
        before, after = off[0::2], off[1::2]
        odd, self.n_after = diag[1::2].copy(), len(after)
        self.left = _products(_transposed(before), self.inverse[: len(odd)])
        self.right = _products(after, self.inverse[1 : 1 + self.n_after])
        odd -= _products(self.left, before)
        odd[: self.n_after] -= _products(self.right, _transposed(after))
        # Eliminating the even block between two odd ones couples these.
        between = _products(-self.right[: max(len(odd) - 1, 0)], before[1:])
        self.rest = BlockTridiagonal(odd, between)

    def _reduced(self, b: np.ndarray) -> np.ndarray:
        """Return the odd blocks of b after the even ones have been eliminated."""
        even, odd, m = b[0::2], b[1::2].copy(), self.n_after
        odd -= _products(self.left, even[: len(odd)])
        odd[:m] -= _products(self.right, even[1 : 1 + m])
        return odd

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^-1 b, (T, M, k), for b of (T, M, k)."""
        if not self.size:
            return b
        even, odd = b[0::2], self._reduced(b)
        x = np.empty(b.shape)
        x[1::2] = odd = self.rest.solve(odd)
        m, even = self.n_after, _products(self.inverse, even)
        even[: len(odd)] -= _products(_transposed(self.left), odd)
        even[1 : 1 + m] -= _products(_transposed(self.right), odd[:m])
        x[0::2] = even
        return x

    def whitened(self, b: np.ndarray) -> np.ndarray:
        """Return C^-1 b for a factor C C' = A, (T, M, k)."""
        if not self.size:
            return b
        even, odd = b[0::2], self._reduced(b)
        x = np.empty(b.shape)
        x[0::2], x[1::2] = _products(self._root, even), self.rest.whitened(odd)
        return x

    def unwhitened(self, b: np.ndarray) -> np.ndarray:
        """Return C^-T b for the same factor, (T, M, k)."""
        if not self.size:
            return b
        x, m = np.empty(b.shape), self.n_after
        x[1::2] = odd = self.rest.unwhitened(b[1::2])
        even = _products(_transposed(self._root), b[0::2])
        even[: len(odd)] -= _products(_transposed(self.left), odd)
        even[1 : 1 + m] -= _products(_transposed(self.right), odd[:m])
        x[0::2] = even
        return x

    def inverse_blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the blocks of A^-1 where A has its own: on the diagonal, (T, M, M),
        and to the right of them, (T - 1, M, M).
        """
        if not self.size:
            return self.inverse, self.inverse
        inner, beside = self.rest.inverse_blocks()  # of the odd blocks
        n, m = len(inner), self.n_after
        diag = np.empty((self.size, *self.inverse.shape[1:]), self.inverse.dtype)
        off = np.empty((self.size - 1, *self.inverse.shape[1:]), diag.dtype)
        # An even block depends on the odd blocks after and before it by these.
        after, before = -_transposed(self.left), -_transposed(self.right)
        to_after, to_before = _products(after, inner), _products(before, inner[:m])
        # Odd blocks on either side of an even one: n - 1 of these.
        to_after[1:] += _products(before[: n - 1], beside)
        to_before[: n - 1] += _products(after[1:], _transposed(beside))
        even = self.inverse.copy()
        even[:n] += _products(to_after, -self.left)
        even[1 : 1 + m] += _products(to_before, -self.right)
        diag[0::2], diag[1::2] = even, inner
        off[0::2], off[1::2] = to_after, _transposed(to_before)
        return diag, off


def _transposed(blocks: np.ndarray) -> np.ndarray:
    """Return the transposed blocks of an array, (T, M, M)."""
    return blocks.transpose(0, 2, 1)


def _products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the products of blocks, (T, M, k)."""
    # One call of a matrix product per block is slow for blocks of one entry, which
    # thresholds without nominal effects have.
    return np.asarray(A * B if A.shape[1] == 1 else A @ B)


def _inverse_roots(blocks: np.ndarray) -> np.ndarray:
    """Return L^-1 of blocks L L', which are positive definite but for an imaginary part
    within their rounding error.
    """
    if blocks.shape[1] == 1:
        if not (blocks.real > 0).all():
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return np.asarray(1 / np.sqrt(blocks))
    if not np.iscomplexobj(blocks):
        return np.asarray(np.linalg.inv(np.linalg.cholesky(blocks)))
    L = np.linalg.cholesky(blocks.real)
    inverse = np.linalg.inv(L)
    # The derivative of a Cholesky factor is L times the lower half of this.
    moved = np.tril(inverse @ blocks.imag @ _transposed(inverse))
    moved[:, *np.diag_indices(L.shape[1])] /= 2
    return np.asarray(inverse - 1j * moved @ inverse)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Value and derivatives of the loss at a point.

    The value is infinite where a row has probability 0; derivatives are then undefined.
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: Bordered  # NONE where there are too many parameters for one


class RowDerivatives(NamedTuple):
    """Derivatives of the log-probabilities of n rows by their k predictors.

    g and H are 0 for rows of weight 0 and for infinite predictors.

    Attributes
    ----------
    J : (n, k, p) array
        Derivatives of the predictors by the parameters.
    g, H : (n, k), (n, k, k) arrays
        First and second derivatives of log P by the predictors.
    """

    J: np.ndarray
    g: np.ndarray
    H: np.ndarray


class RowLoss:
    """Base of losses that know the derivatives of their rows.

    Attributes
    ----------
    design : Design
    n_predictors : int
        Number k of predictors of a row.
    """

    design: Design
    n_predictors: int

    def row_derivatives(self, x: np.ndarray, rows: slice) -> RowDerivatives:
        """Return the derivatives of some rows at parameters x."""
        raise NotImplementedError

    def derivatives(self, x: np.ndarray) -> Iterator[tuple[slice, RowDerivatives]]:
        """Yield slices of rows, few at a time, and their derivatives."""
        k = self.n_predictors
        for rows in row_strips(self.design.X, max(1, _BLOCK // (k * (x.size + k)))):
            yield rows, self.row_derivatives(x, rows)

    def scores(self, x: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of rows, and the gradients of their log P by x, (rows, p)."""
        for rows, (J, g, _) in self.derivatives(x):
            yield rows, np.einsum("nk,nkp->np", g, J)


class Likelihood(RowLoss):
    """Loss (2) of a training set, by the parameters of centred and scaled columns.

    Parameters
    ----------
    design : Design
    link : Link
    l2 : float
        Penalty of beta in the units of the features.
    n_threads : int

    Attributes
    ----------
    penalties : (p,) array
        Ridge penalties of all parameters: 0 but for beta.
    """

    n_predictors = 2  # a and b

    def __init__(self, design: Design, link: Link, l2: float, n_threads: int):
        self.design, self.link, self.l2 = design, link, l2
        self.link_number = _cumulative.LINKS.index(link)
        self.n_threads = n_threads if design.n_samples >= _MANY else 1
        self.penalties = np.zeros(design.n_parameters)
        if l2:
            q, qm, d, _ = design.sizes
            ridge = l2_penalties(l2, design.penalised_spread)
            self.penalties[q + qm : q + qm + d] = ridge
        columns = design.location, design.nominal, design.scale
        every = np.concatenate(columns)
        centre = design.centre[every]
        centre[every.size - design.scale.size :] = 0.0
        self._columns = columns, centre, 1 / design.spread[every]
        known = design.offset
        self._offset = np.zeros(design.n_samples) if known is None else known

    @property
    def is_convex(self) -> bool:
        """Return whether every local minimum is the global one."""
        return self.link != "cauchit" and not self.design.scale.size

    def start(self) -> np.ndarray:
        """Return starting values: no effects, and the thresholds of the ranks' shares.

        With an offset the thresholds are moved by its mean, and enlarged by its
        deviation.
        """
        D, x = self.design, np.zeros(self.design.n_parameters)
        below, q = np.cumsum(D.mass())[:-1] / D.total, D.J.q
        # The weight of a rank may be less than the rounding error of the sum.
        below = np.minimum(below, np.nextafter(1.0, 0.0))
        x[:q] = D.alpha_of(quantile(self.link, below))
        if (np.diff(D.J @ x[:q]) <= 0).any():  # possible for some structures
            x[:q] = D.alpha_of(np.linspace(-1, 1, D.T))
        if D.offset is not None:
            known = mean_offset(D.offset)[:, None]
            _, (deviation,) = moments(known, D.weight / D.total)
            # The latent variable has the variance of the noise plus that of the offset.
            x = D.enlarged(x + D.level(x.size), math.hypot(1, deviation))
            x[:q] = D.uncrossed(x[:q])
        return x

    def terms(self, x: np.ndarray, rows: slice) -> Terms:
        """Return the terms of some rows at parameters x."""
        D = self.design
        alpha, nu, beta, zeta = D.split(x)
        rank, s = D.rank[rows], np.exp(D.scale_columns(rows) @ zeta)
        ends = np.concatenate([[-np.inf], D.J @ alpha, [np.inf]])
        first, f = D.first[rows], D.score(beta, rows)
        upper, lower = ends[rank + 1], ends[first]
        if D.nominal.size:
            # Of the thresholds on both sides only: there may be one per row.
            N, slopes = D.columns(rows, D.nominal), np.pad(D.J @ nu, ((1, 1), (0, 0)))
            upper = upper - np.einsum("nm,nm->n", N, slopes[rank + 1])
            lower = lower - np.einsum("nm,nm->n", N, slopes[first])
        above, below = D.offset_ends(rows)
        a, b = (upper - (f + above)) / s, (lower - (f + below)) / s
        width = (upper - lower - (above - below)) / s
        out = np.empty((6, f.size))
        _cumulative.row_terms(self.link_number, a, b, width, out, self.n_threads)
        return Terms(a, b, *out)

    def row_derivatives(self, x: np.ndarray, rows: slice) -> RowDerivatives:
        """Return the derivatives of rows, whose predictors are a and b."""
        D, zeta = self.design, self.design.split(x)[3]
        with np.errstate(all="ignore"):  # rows without weight may have P = 0
            t = self.terms(x, rows)
        rank, first, used = D.rank[rows], D.first[rows], D.weight[rows] > 0
        upper, lower = used & (rank < D.T), used & (first > 0)  # a and b are finite
        N, X = D.columns(rows, D.nominal), D.columns(rows, D.location)
        Z = D.scale_columns(rows)
        unit, ends = np.exp(-(Z @ zeta)), (t.a, t.b)
        J = np.empty((rank.size, 2, x.size))
        by_alpha, by_nu, by_beta, by_zeta = np.split(J, np.cumsum(D.sizes)[:3], axis=2)
        for side, inner in enumerate((upper, lower)):
            finite = np.where(inner, unit, 0.0)[:, None]  # 1 / s
            end = first - 1 if side else rank
            thresholds = np.clip(end, 0, D.T - 1)
            np.multiply(D.J.rows(thresholds), finite, out=by_alpha[:, side])
            slopes = by_alpha[:, side, :, None] * -N[:, None, :]
            by_nu[:, side] = slopes.reshape(rank.size, D.sizes[1])
            np.multiply(X, -finite, out=by_beta[:, side])
            # da/dzeta = -a z, because a is divided by s = exp(z'zeta)
            own = inner & np.isfinite(ends[side])  # not so of ends that drop out
            by_zeta[:, side] = -np.where(own, ends[side], 0.0)[:, None] * Z
        g, H = np.empty((rank.size, 2)), np.empty((rank.size, 2, 2))
        g[:, 0], g[:, 1] = np.where(upper, t.g1, 0.0), np.where(lower, t.g - t.g1, 0.0)
        H[:, 0, 0] = np.where(upper, t.c1 - t.h12, 0.0)
        H[:, 1, 1] = np.where(lower, t.c2 - t.h12, 0.0)
        H[:, 0, 1] = H[:, 1, 0] = np.where(upper & lower, t.h12, 0.0)
        return RowDerivatives(J, g, H)

    def end_scores(
        self, x: np.ndarray, rows: slice
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the gradients of the log P of rows by the parameters of their ends.

        These are by (theta, nu) at the thresholds above and below a rank, (n, M) each,
        where a rank without one has 0, and by (beta, zeta), (n, D).
        """
        D, zeta = self.design, self.design.split(x)[3]
        with np.errstate(all="ignore"):  # rows without weight may have P = 0
            t = self.terms(x, rows)
        rank, used, Z = D.rank[rows], D.weight[rows] > 0, D.scale_columns(rows)
        by_a = np.where(used & (rank < D.T), t.g1, 0.0)
        by_b = np.where(used & (rank > 0), t.g - t.g1, 0.0)
        s = np.exp(-(Z @ zeta))[:, None]
        E = np.hstack([np.ones((rank.size, 1)), -D.columns(rows, D.nominal)]) * s
        a, b = (np.where(np.isfinite(end), end, 0.0) for end in (t.a, t.b))
        by_zeta = -(a * by_a + b * by_b)
        core = (by_a + by_b)[:, None] * -s * D.columns(rows, D.location)
        core = np.hstack([core, by_zeta[:, None] * Z])
        return by_a[:, None] * E, by_b[:, None] * E, core

    @property
    def of_design(self) -> Callable[[Design], Likelihood]:
        """A function from the design of other rows to their loss, without penalty."""
        return partial(Likelihood, link=self.link, l2=0.0, n_threads=1)

    def at(self, x: np.ndarray) -> Point:
        """Return value, gradient and Hessian, in one pass over the rows. O(n p^2)."""
        with np.errstate(all="ignore"):  # anything but a number makes the value inf
            total, (value, by_slot, by_core, *blocks) = self.design.total, self._sums(x)
            value = -float(value) / total + 0.5 * float(self.penalties @ x**2)
            by_slot = self.design.of_slots(by_slot.reshape(-1, 1))[:, 0]
            gradient = np.concatenate([by_slot, by_core]) / -total + self.penalties * x
            diag, off, border, core = (block / -total for block in blocks)
            core = np.tril(core) + np.tril(core, -1).T
            hessian = self.assembled(diag, off, border, core)
        derivatives = gradient, diag, off, border, core
        if not all(np.isfinite(part).all() for part in (value, *derivatives)):
            value = np.inf
        return Point(x, value, gradient, hessian)

    def _sums(self, x: np.ndarray) -> list[Any]:
        """Return the sums of the terms of all rows, by the kernel.

        They are log P, its gradient by (theta_t, nu_t), (T, M), and by (beta, zeta),
        (C,), and the blocks of its Hessian that `assembled` takes.
        """
        D, (columns, centre, factor) = self.design, self._columns
        alpha, nu, beta, zeta = D.split(x)
        theta, slopes = D.J @ alpha, np.ascontiguousarray(D.J @ nu)
        gap = np.concatenate([[np.inf], np.diff(theta), [np.inf]])
        ends = np.zeros(_cumulative.padded(beta.size + zeta.size))
        ends[: beta.size] = beta
        T, M, C = D.T, 1 + D.nominal.size, beta.size + zeta.size
        shapes = (), (T, M), (C,), (T, M, M), (T, M, M), (T, M, C), (C, C)
        entries = sum(math.prod(shape) for shape in shapes)
        rows = _cumulative.share_of_rows(D.n_samples, entries)
        shares = -(-D.n_samples // rows)
        # Every thread has shares of its own.
        value, by_slot, by_core, diag, off, border, core = sums = [
            np.zeros((shares, *shape)) for shape in shapes
        ]
        scratch = _cumulative.scratch_of_share(ends.size, D.nominal.size)
        _cumulative.sums(
            self.link_number, np.asarray(D.X), *columns, centre, factor,
            self._offset, D.rank, D.weight, theta, gap, slopes, ends, zeta, rows,
            np.empty((shares, scratch)), value, by_slot, by_core, diag, off, border,
            core, self.n_threads,
        )  # fmt: skip
        sums[4] = off[:, :-1]  # the last threshold has no next one
        return [part.sum(axis=0) for part in sums]

    def assembled(
        self,
        diag: np.ndarray,
        off: np.ndarray,
        border: np.ndarray,
        core: np.ndarray,
        far: np.ndarray | None = None,
    ) -> Bordered:
        """Assemble the Hessian, with the penalty, from blocks by u_t = (theta_t, nu_t).

        Parameters
        ----------
        diag, off : (T, M, M), (T - 1, M, M) arrays
            Blocks by u_t twice, and by u_t and u_(t+1).
        border : (T, M, D) array
            Blocks by u_t and (beta, zeta).
        core : (D, D) array
            Block by (beta, zeta).
        far : (T M, T M) array, or None
            Couplings of thresholds that are no neighbours, which intervals of ranks
            have; the Hessian is then dense.
        """
        D, (T, M, C) = self.design, border.shape
        U = D.n_parameters - C
        if D.is_flexible and T > CHAIN and far is None:
            rest = np.arange(U, D.n_parameters)
            made = Bordered(diag, off, border, core, D.slots(), rest)
            return made.plus(self.penalties)
        H = np.zeros((D.n_parameters, D.n_parameters))
        H[U:, U:] = core
        H[U:, :U] = D.of_slots(border.reshape(T * M, C)).T
        by_slot = tridiagonal(diag, off)
        by_slot = by_slot if far is None else by_slot + far
        H[:U, :U] = D.of_slots(D.of_slots(by_slot).T)
        H = np.tril(H) + np.tril(H, -1).T
        return Bordered.from_dense(H + np.diag(self.penalties))


def terms_of(link: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the fields of `Terms` from log_p on, (6, n), for ends a and b, (n,)."""
    out = np.empty((6, a.size))
    _cumulative.row_terms(*_link_and_ends(link, a, b), out, 1)
    return out


def thirds_of(link: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the derivatives of c1 + c2 of `Terms` by the ends a and b, (2, n)."""
    out = np.empty((2, a.size))
    _third_derivatives.row_thirds(*_link_and_ends(link, a, b), out)
    return out


def _link_and_ends(
    link: str, a: np.ndarray, b: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of a link, and ends with their distance, for the kernels."""
    with np.errstate(all="ignore"):
        width = np.where(np.isinf(a) | np.isinf(b), np.inf, a - b)
    a, b, width = (np.ascontiguousarray(v) for v in (a, b, width))
    return _cumulative.LINKS.index(link), a, b, width


def cumulative(link: str, t: np.ndarray) -> np.ndarray:
    """Return the distribution function F."""
    with np.errstate(over="ignore", under="ignore"):  # the limits 0 and 1 are right
        if link == "logit":
            near = np.exp(-np.abs(t))
            return np.asarray(np.where(t > 0, 1, near) / (1 + near))
        if link == "probit":
            return normal_cdf(t)
        if link == "cloglog":
            return np.asarray(-np.expm1(-np.exp(t)))
        if link == "loglog":
            return np.asarray(np.exp(-np.exp(-t)))
    return np.asarray(np.arctan2(1, -t) / math.pi)


def exceeding(link: str, t: np.ndarray) -> np.ndarray:
    """Return 1 - F, with all digits where F is near 1."""
    # 1 - F(t) is F(-t) of the mirrored link.
    return cumulative(_MIRROR.get(link, link), -t)


@np.errstate(over="ignore")  # to the limit, which is 0
def density(link: str, t: np.ndarray) -> np.ndarray:
    """Return the density F' of a link at t."""
    if link == "logit":
        return np.asarray(cumulative(link, t) * cumulative(link, -t))
    if link == "probit":
        return np.asarray(np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi))
    if link == "cauchit":
        return np.asarray(1 / (math.pi * (1 + t * t)))
    t = np.minimum(-t if link == "loglog" else t, _FAR)
    return np.asarray(np.exp(t - np.exp(t)))


def slope(link: str, t: np.ndarray) -> np.ndarray:
    """Return the derivative F'' of the density at t."""
    f = density(link, t)
    finite = np.where(np.isinf(t), 0.0, t)
    if link == "logit":
        return np.asarray(-f * np.tanh(finite / 2))
    if link == "probit":
        return np.asarray(-finite * f)
    if link == "cauchit":
        return np.asarray(-2 * math.pi * finite * f**2)
    if link == "loglog":
        return np.asarray(-f * (1 - np.exp(np.minimum(-finite, _FAR))))
    return np.asarray(f * (1 - np.exp(np.minimum(finite, _FAR))))


def quantile(link: str, p: np.ndarray) -> np.ndarray:
    """Return the quantile function F^-1."""
    if link == "cloglog":
        return np.asarray(np.log(-np.log1p(-p)))
    if link == "loglog":
        return np.asarray(-np.log(-np.log(p)))
    if link == "cauchit":
        return np.asarray(np.tan(math.pi * (p - 0.5)))
    if link == "probit":
        return normal_quantile(p)
    return np.asarray(np.log(p / (1 - p)))


def for_all_ranks(
    observed: np.ndarray, A: np.ndarray, first: float, last: float
) -> np.ndarray:
    """Expand values at the T thresholds between observed ranks to all r - 1.

    Parameters
    ----------
    observed : (r,) bool array
        The ranks with training rows.
    A : (..., T) array
    first, last : float
        Values below and above all observed ranks.

    Returns
    -------
    (..., r - 1) array
        A rank without rows has the same value on both sides.
    """
    width = [(0, 0)] * (A.ndim - 1) + [(1, 1)]
    every = np.pad(A, width, constant_values=(first, last))
    return np.asarray(every[..., np.cumsum(observed)[:-1]])


def rank_probabilities(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Return P(y = j), (..., r), from P(y <= j) and P(y > j), (..., r - 1)."""
    zero = np.zeros((*below.shape[:-1], 1))
    below = np.concatenate([zero, below, zero + 1], axis=-1)
    above = np.concatenate([zero + 1, above, zero], axis=-1)
    lower, upper = np.diff(below, axis=-1), above[..., :-1] - above[..., 1:]
    # A difference of two numbers near 1 loses digits.
    return np.asarray(np.where(below[..., 1:] < 0.5, lower, upper))
