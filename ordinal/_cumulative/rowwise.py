"""The mean loss of `likelihood` for sparse or many features, and for rows in chunks.

The derivatives are sums of terms of single rows, and the Hessian of (p, p) is computed
only on request. With E_i = (1, -n_i) / s_i, and u_t = (theta_t, nu_t) the threshold t
with its slopes, the differentials of the predictors of row i are

    da = E_i'du_(y_i) - x_i'dbeta / s_i - a_i z_i'dzeta                              (3)
    db = E_i'du_(y_i - 1) - x_i'dbeta / s_i - b_i z_i'dzeta

Derivatives by u are therefore sums over the rows of each rank, and second derivatives
by two thresholds are 0 unless these are neighbours.

Rows that are read in chunks have one loss per chunk, divided by the weight of all rows,
so that value, gradient and Hessian are sums over the chunks. An evaluation is one pass
over the rows. Only ranks, weights and offsets of all rows are in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from .._numerics.descent import bounded_step, halved, shifted
from .._rows.sums import Parts
from .._solvers import _cumulative
from .design import Design
from .likelihood import (
    CHAIN,
    NONE,
    BlockTridiagonal,
    Bordered,
    Likelihood,
    Link,
    Point,
    Terms,
    tridiagonal,
)
from .matrices import Columns, DenseColumns, columns_of

LEAST = 1e-26  # squared rounding error of slopes, relative to the loss
_POLISH = 30  # most Newton steps for alpha and nu* alone
_ROUNDING = 1e-14  # relative rounding error of the loss
Root = TypeVar("Root")
_FLAT = 1e-200  # the least curvature whose inverse is finite with room


@dataclass(frozen=True, slots=True, eq=False)
class RowTerms:
    """Terms of the derivatives of the loss, without penalty, at a point.

    Attributes
    ----------
    value : float
        The loss. Infinite if a row has probability 0; the other fields are undefined
        then.
    E : (n, 1 + m) array
        Of (3).
    scale : (n,) array
        1 / s_i.
    a, b : (n,) arrays
        The ends, 0 where they are infinite.
    by_a, by_b : (n,) arrays
        Slopes by the ends.
    bend_a, bend_b : (n,) arrays
        Curvatures by one end and a shift of both.
    cross : (n,) array
        Minus the curvature by the two ends.
    """

    value: float
    E: np.ndarray
    scale: np.ndarray
    a: np.ndarray
    b: np.ndarray
    by_a: np.ndarray
    by_b: np.ndarray
    bend_a: np.ndarray
    bend_b: np.ndarray
    cross: np.ndarray

    @property
    def slope(self) -> np.ndarray:
        """Return the derivative by x'beta, (n,)."""
        return np.asarray(-(self.by_a + self.by_b) * self.scale)

    @property
    def curvature(self) -> np.ndarray:
        """Return the second derivative by x'beta, (n,)."""
        return np.asarray((self.bend_a + self.bend_b) * self.scale**2)


class RowwiseLikelihood(Likelihood):
    """The loss of sparse or of many features.

    Attributes
    ----------
    columns : SparseColumns or DenseColumns
        Columns of the location.
    N, Z : (n, m), (n, k) arrays
        Columns of nominal effects and of the scale.
    """

    def __init__(
        self,
        design: Design,
        link: Link,
        l2: float,
        n_threads: int,
        parts: tuple[Columns, np.ndarray, np.ndarray] | None = None,
    ):
        super().__init__(design, link, l2, n_threads)
        if parts is None:
            every = columns_of(design.X, design.centre, design.spread, n_threads)
            columns: Columns = every
            if design.location.size < design.X.shape[1]:
                columns = every.chosen(design.location)
            N, Z = (every.chosen(of).dense() for of in (design.nominal, design.scale))
            # `every` is centred, which columns of the scale must not be.
            Z += (design.centre / design.spread)[design.scale]
            parts = columns, N, Z
        self.columns, self.N, self.Z = parts

    def of_columns(self, which: np.ndarray) -> Likelihood:
        """Return the loss without penalty of some columns of the location."""
        # Dense columns are copied: the kernel sums the Hessian of a copy in one pass.
        is_plain = isinstance(self.columns, DenseColumns) and self.design.lower is None
        if is_plain:
            design = self.design.of_columns(which)
            return Likelihood(design, self.link, 0.0, self.n_threads)
        design = replace(self.design, location=self.design.location[which])
        parts = self.columns.chosen(which), self.N, self.Z
        return RowwiseLikelihood(design, self.link, 0.0, self.n_threads, parts)

    def at_best_thresholds(
        self, u: np.ndarray, beta: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Minimise over alpha and nu* for fixed beta, beginning at u.

        Return the best (alpha, nu*), (U,), the loss there, and its gradient by beta,
        (d,).
        """
        u, rows = with_best_thresholds(self, u, self.columns.matvec(beta))
        return u, rows.value, self.columns.rmatvec(rows.slope)

    def rows_at(self, x: np.ndarray) -> RowTerms:
        """Return the terms of all rows at x, (p,). O(entries + n m)."""
        alpha, nu, beta, zeta = self.design.split(x)
        free = np.column_stack([alpha, nu])
        return self.rows_of(free, zeta, self.columns.matvec(beta))

    def rows_of(self, free: np.ndarray, zeta: np.ndarray, f: np.ndarray) -> RowTerms:
        """Return the terms of all rows for given scores.

        Parameters
        ----------
        free : (q, 1 + m) array
            alpha and nu*.
        zeta : (k,) array
        f : (n,) array
            x'beta.
        """
        E, s, t = self._terms(free, zeta, f)
        w = self.design.weight / self.design.total
        with np.errstate(over="ignore"):  # which is no finite value
            value = -float(w @ t.log_p)
        return RowTerms(
            value if math.isfinite(value) else math.inf,
            E,
            s,
            np.where(np.isinf(t.a), 0, t.a),
            np.where(np.isinf(t.b), 0, t.b),
            -w * t.g1,
            w * (t.g1 - t.g),
            bend_a=-w * t.c1,
            bend_b=-w * t.c2,
            cross=w * t.h12,
        )

    def _terms(
        self, free: np.ndarray, zeta: np.ndarray, f: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Terms]:
        """Return E of (3), 1 / s, and the terms of the rows.

        Rows without weight have probability 1. All terms are NaN if thresholds cross at
        a row.
        """
        D = self.design
        with np.errstate(over="ignore", invalid="ignore"):  # seen in delta or the value
            s = np.exp(-(self.Z @ zeta))
            E = np.hstack([np.ones((D.n_samples, 1)), -self.N]) * s[:, None]
            # Thresholds with their slopes, and a placeholder at either end, so that
            # rows of all ranks take their ends by one index, without a branch.
            u = np.zeros((D.T + 2, E.shape[1]))
            u[1:-1] = D.J @ free
            above, below = D.offset_ends()
            at_above = (f + above) * s
            at_below = at_above if below is above else (f + below) * s
            a = np.einsum("ik,ik->i", E, u[D.rank + 1]) - at_above
            b = np.einsum("ik,ik->i", E, u[D.first]) - at_below
            if D.lower is None:
                gap = np.diff(u, axis=0)[D.rank]
            else:
                gap = u[D.rank + 1] - u[D.lower]
            delta = np.einsum("ik,ik->i", E, gap)
            if D.is_shifted:
                delta -= (above - below) * s
        unused = D.weight == 0
        last, first = (D.rank == D.T) | unused, (D.first == 0) | unused
        a[last], b[first], delta[last | first] = np.inf, -np.inf, np.inf
        out = np.full((6, D.n_samples), np.nan)
        # Thresholds that cross give no probability: the value becomes NaN, then inf.
        if (delta > 0).all():  # not so of NaN
            _cumulative.row_terms(self.link_number, a, b, delta, out, self.n_threads)
        return E, s, Terms(a, b, *out)

    def gradient_of(self, r: RowTerms) -> np.ndarray:
        """Return the gradient of the loss without penalty."""
        by_scale = -(r.by_a * r.a + r.by_b * r.b)
        return np.concatenate(
            [self.free_gradient(r), self.columns.rmatvec(r.slope), by_scale @ self.Z]
        )

    def free_gradient(self, r: RowTerms) -> np.ndarray:
        """Return the gradient by alpha and nu*, (U,)."""
        by_slot = [self._by_rank(r.by_a * e, r.by_b * e) for e in r.E.T]
        by_u = self.design.J.adjoint(np.stack(by_slot, axis=1))
        return np.concatenate([by_u[:, 0], by_u[:, 1:].ravel()])

    def free_hessian(self, r: RowTerms) -> np.ndarray | Chain:
        """Return the Hessian by alpha and nu*, (U, U)."""
        far = self._far(r)
        if self.design.is_flexible and self.design.T > CHAIN and far is None:
            return Chain(*self._by_slots(r), self.design.slots())
        by_slot = tridiagonal(*self._by_slots(r))
        by_slot = by_slot if far is None else by_slot + far
        return self.design.of_slots(self.design.of_slots(by_slot).T)

    def _by_slots(self, r: RowTerms) -> tuple[np.ndarray, np.ndarray]:
        """Return the blocks of the Hessian by (theta_t, nu_t).

        These are the diagonal ones, (T, M, M), and the off-diagonal ones of neighbours,
        (T - 1, M, M), with M = 1 + m.
        """
        T, M, D = self.design.T, r.E.shape[1], self.design
        diag, off = np.empty((T, M, M)), np.empty((T - 1, M, M))
        near = r.cross if D.lower is None else np.where(D.lower == D.rank, r.cross, 0.0)
        for k in range(M):
            for h in range(M):
                # Per pair of slopes: an array (n, M, M) of all pairs would not fit the
                # cache.
                e = r.E[:, k] * r.E[:, h]
                own = (r.bend_a + r.cross) * e, (r.bend_b + r.cross) * e
                diag[:, k, h] = self._by_rank(*own)
                # Only rows between two thresholds have a mixed derivative.
                off[:, k, h] = -self._by_rank(np.zeros_like(e), near * e)[:-1]
        return diag, off

    def _far(self, r: RowTerms) -> np.ndarray | None:
        """Return the couplings by intervals of several ranks, (T M, T M), or None.

        The derivative by the two ends of a row couples thresholds that are apart.
        """
        D, (T, M) = self.design, (self.design.T, r.E.shape[1])
        if D.lower is None:
            return None
        rows = np.flatnonzero((D.lower > 0) & (D.lower < D.rank) & (D.rank < T))
        pair = (D.lower[rows] - 1) * np.int64(T) + D.rank[rows]
        far = np.empty((T, M, T, M))
        for k in range(M):
            for h in range(M):
                e = r.E[rows, k] * r.E[rows, h]
                sums = np.bincount(pair, -r.cross[rows] * e, T * T).reshape(T, T)
                far[:, k, :, h] = sums
        square = far.reshape(T * M, T * M)
        return np.asarray(square + square.T)

    def border(self, r: RowTerms) -> np.ndarray:
        """Return the Hessian by alpha and nu* and by beta, (U, d)."""
        by_slot = self._border_by_slot(r)
        return self.design.of_slots(by_slot.reshape(-1, by_slot.shape[2]))

    def _border_by_slot(self, r: RowTerms) -> np.ndarray:
        """Return the Hessian by (theta_t, nu_t) and by beta, (T, M, d)."""
        D, of_a, of_b = self.design, -r.bend_a * r.scale, -r.bend_b * r.scale
        by_slot = [
            self.columns.by_rank(D.rank, of_a * e, of_b * e, D.T, D.lower)
            for e in r.E.T
        ]
        return np.stack(by_slot, axis=2).transpose(1, 2, 0)

    def at(self, x: np.ndarray) -> Point:
        """Return value, gradient and Hessian.

        The cost is O(sum over rows of the squared numbers of entries).
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self._at(x)

    def _at(self, x: np.ndarray) -> Point:
        r = self.rows_at(x)
        gradient = self.gradient_of(r) + self.penalties * x
        # Slopes by the scale overflow where the value is still finite.
        if not (math.isfinite(r.value) and np.isfinite(gradient).all()):
            return Point(x, np.inf, np.full(x.size, np.nan), NONE)
        border, core = self._border_by_slot(r), self.columns.gram(r.curvature)
        if self.Z.shape[1]:
            by_slot, by_beta, by_zeta = self._by_zeta(r)
            border = np.concatenate([border, by_slot], axis=2)
            core = np.block([[core, by_beta], [by_beta.T, by_zeta]])
        hessian = self.assembled(*self._by_slots(r), border, core, self._far(r))
        return Point(x, r.value + 0.5 * float(self.penalties @ x**2), gradient, hessian)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient, without the Hessian. O(entries)."""
        r = self.rows_at(x)
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = self.gradient_of(r) + self.penalties * x
        return r.value + 0.5 * float(self.penalties @ x**2), gradient

    def _by_zeta(self, r: RowTerms) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the Hessian by zeta and (theta_t, nu_t), by zeta and beta, by zeta.

        Their shapes are (T, M, k), (d, k) and (k, k).
        """
        # By (3) da = -a z'dzeta, and the derivatives of a by other parameters shrink
        # likewise; to_a and to_b are the negative derivatives of by_a and by_b.
        h11, h22 = r.bend_a + r.cross, r.bend_b + r.cross
        to_a = h11 * r.a - r.cross * r.b + r.by_a
        to_b = h22 * r.b - r.cross * r.a + r.by_b
        own = to_a * r.a + to_b * r.b
        by_slot = np.stack(
            [
                np.stack([-self._by_rank(to_a * z * e, to_b * z * e) for e in r.E.T], 1)
                for z in self.Z.T
            ],
            axis=2,
        )
        by_beta = [self.columns.rmatvec((to_a + to_b) * z * r.scale) for z in self.Z.T]
        return by_slot, np.stack(by_beta, axis=1), (own[:, None] * self.Z).T @ self.Z

    def _by_rank(self, of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
        """Return the sums of `of_a` and `of_b`, (n,) each, by threshold, (T,).

        Threshold t is the end a of rows of rank t, and the end b of those of t + 1.
        """
        D, T = self.design, self.design.T
        above = np.bincount(D.rank, of_a, T + 1)
        below = np.bincount(D.first, of_b, T + 1)
        return np.asarray(above[:T] + below[1:])


def with_best_thresholds(
    loss: RowwiseLikelihood, u: np.ndarray, f: np.ndarray
) -> tuple[np.ndarray, RowTerms]:
    """Minimise over (alpha, nu*) for fixed scores f = x'beta, (n,), without scale.

    Return the minimum, (U,), of Newton's method from u, and the terms of the rows.
    """
    q, none = loss.design.J.q, np.zeros(0)

    def rows_at(u: np.ndarray) -> RowTerms:
        free = np.column_stack([u[:q], u[q:].reshape(q, -1)])
        return loss.rows_of(free, none, f)

    def along(u: np.ndarray, step: np.ndarray, size: float) -> RowTerms:
        return rows_at(u + size * step)

    rows = rows_at(u)
    # Thresholds alone: a few parameters, so that a step costs a pass over vectors.
    for _ in range(_POLISH):
        C, g = root_of(loss.free_hessian(rows)), loss.free_gradient(rows)
        step = bounded_step(C.unwhitened(C.whitened(-g)))
        promised = float(g @ step)
        if -promised <= LEAST * rows.value:
            break
        rounding = _ROUNDING * rows.value
        found = halved(partial(along, u, step), rows.value, promised, rounding)
        if found is None:
            break
        rows, size = found
        u = u + size * step
        if -promised <= _ROUNDING * rows.value:  # steps converge quadratically
            break
    return u, rows


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Block tridiagonal Hessian by alpha and nu* of many flexible thresholds.

    Attributes
    ----------
    diag, off : (T, M, M), (T - 1, M, M) arrays
        Blocks by (theta_t, nu_t) twice, and by these of t and t + 1.
    slots : (T M,) int array
        Indices of (theta_t, nu_t) among (alpha, nu*).
    """

    diag: np.ndarray
    off: np.ndarray
    slots: np.ndarray


class DenseRoot:
    """Factor C C' = H of a dense matrix."""

    def __init__(self, C: np.ndarray):
        self._C = C

    def whitened(self, B: np.ndarray) -> np.ndarray:
        """Return C^-1 B for B of (U,) or (U, k)."""
        return np.asarray(np.linalg.solve(self._C, B))

    def unwhitened(self, B: np.ndarray) -> np.ndarray:
        """Return C^-T B for B of (U,) or (U, k)."""
        return np.asarray(np.linalg.solve(self._C.T, B))


class ChainRoot:
    """Factor C C' = H of a block tridiagonal matrix, in O(U)."""

    def __init__(self, H: Chain, diag: np.ndarray):
        self._A, self._slots = BlockTridiagonal(diag, H.off), H.slots
        self._shape = diag.shape[:2]

    def whitened(self, B: np.ndarray) -> np.ndarray:
        made = self._A.whitened(B[self._slots].reshape(*self._shape, -1))
        return np.asarray(made.reshape(B.shape))

    def unwhitened(self, B: np.ndarray) -> np.ndarray:
        out = np.empty(B.shape)
        made = self._A.unwhitened(B.reshape(*self._shape, -1))
        out[self._slots] = made.reshape(B.shape)
        return out


def root_of(H: np.ndarray | Chain) -> DenseRoot | ChainRoot:
    """Return a factor of a Hessian, shifted as by `factor`."""
    if isinstance(H, np.ndarray):
        return DenseRoot(factor(H))
    at = np.arange(H.diag.shape[1])
    diagonal = np.maximum(H.diag[:, at, at], _FLAT)

    def root(shift: float) -> ChainRoot:
        diag = H.diag.copy()
        diag[:, at, at] += shift * diagonal
        return ChainRoot(H, diag)

    return _shifted_root(root)


def factor(H: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor C of C C' = H, (U, U).

    If H is singular to rounding, a multiple of its diagonal is added.
    """
    # A share of the diagonal, so that variables of any unit are shifted alike.
    diagonal = np.maximum(np.diagonal(H), _FLAT)

    def root(shift: float) -> np.ndarray:
        return np.asarray(np.linalg.cholesky(H + np.diag(shift * diagonal)))

    return _shifted_root(root)


def _shifted_root(root: Callable[[float], Root]) -> Root:
    """Return the factor for the least shift that has one."""
    found = shifted(root, least=1e-12, growth=10, most=9.9)
    if found is None:
        raise np.linalg.LinAlgError("the Hessian is far from positive definite")
    return found[0]


class ChunkedLikelihood(Likelihood):
    """The loss of rows in chunks, which threads or workers evaluate side by side."""

    def __init__(self, design: Design, link: Link, l2: float, n_threads: int):
        super().__init__(design, link, l2, n_threads)
        if design.offset is None:
            self._offset = np.broadcast_to(0.0, design.n_samples)

    def at(self, x: np.ndarray) -> Point:
        """Return value, gradient and Hessian, in one pass over the rows. O(n p^2)."""
        value, gradient, *parts = self.design.summed(
            partial(_at, self.link, x), self.n_threads
        )
        if not math.isfinite(value):
            return Point(x, math.inf, np.full(x.size, np.nan), NONE)
        diag, off, border, core = parts
        first = self.design.slots() if len(diag) else np.zeros(0, np.int64)
        rest = np.arange(first.size, x.size)
        hessian = Bordered(diag, off, border, core, first, rest).plus(self.penalties)
        return Point(x, *self._penalised(x, value, gradient), hessian)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient, without the Hessian."""
        value, gradient = self.design.summed(
            partial(_value_and_gradient, self.link, x), self.n_threads
        )
        if not math.isfinite(value):
            return math.inf, np.full(x.size, np.nan)
        return self._penalised(x, value, gradient)

    def _penalised(
        self, x: np.ndarray, value: np.ndarray, gradient: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Add the penalty at x to the value and the gradient of the loss."""
        ridge = self.penalties * x
        return float(value) + 0.5 * float(ridge @ x), gradient + ridge


def _at(link: Link, x: np.ndarray, part: Design) -> Parts:
    """Return the value of a chunk, its gradient and the blocks of its Hessian."""
    form = RowwiseLikelihood if part.is_rowwise else Likelihood
    loss = form(part, link, 0.0, 1)
    there = loss.at(x)
    H = there.hessian
    if not math.isfinite(there.value):
        # The sum over all chunks is infinite, but its parts must have their shapes.
        T, M, C = part.T, 1 + part.nominal.size, part.location.size + part.scale.size
        shapes = (T, M, M), (T - 1, M, M), (T, M, C), (C, C)
        H = loss.assembled(*(np.zeros(shape) for shape in shapes))
        none = np.zeros(x.size)
        return np.array(math.inf), none, H.diag, H.off, H.border, H.core
    value = np.array(there.value)
    return value, there.gradient, H.diag, H.off, H.border, H.core


def _value_and_gradient(link: Link, x: np.ndarray, part: Design) -> Parts:
    """Return the value and the gradient of a chunk."""
    value, gradient = RowwiseLikelihood(part, link, 0.0, 1).value_and_gradient(x)
    if not math.isfinite(value):
        gradient = np.zeros(x.size)
    return np.array(value), gradient
