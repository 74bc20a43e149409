"""The elastic net of a linear cumulative model: coordinate descent, certified.

With L the loss, u = (alpha, nu) and d_j > 0 the spreads of columns in units of which
beta is,

    min_{u, beta}  L(u, beta) + sum_j (l1 |beta_j| / d_j + l2 beta_j^2 / (2 d_j^2))  (4)

Newton's method on L, of which each quadratic is minimised together with the penalties
by coordinate descent; only columns that the sequential strong rule lets through, or
that were found to be missed, take part.

The certificate. Where u is optimal for beta, L lies above its tangent there for any
(u, beta): with G = dL/dbeta and P(b) the penalty, of conjugate P*, and L >= 0,

    c (L - G'beta) - P*(-c G) <= min (4)      for every c in [0, 1],                 (5)

since c times the tangent lies below L as well. With l2 = 0 P* is finite only where
c |G_j| <= l1 / d_j. The largest of these bounds is the dual value; at the optimum c = 1
gives that of (4).

R. Tibshirani et al., "Strong rules for discarding predictors in lasso-type problems",
JRSS B 74:245-266, 2012. M. J. Wurm, P. J. Rathouz, B. M. Hanlon, "Regularized ordinal
regression and the ordinalNet R package", J. Stat. Software 99(6), 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._model.convergence import Status
from .._model.monitor import Monitor, turn
from .._solvers import _coordinate_descent
from .matrices import SparseColumns
from .rowwise import Rows, RowwiseLikelihood

_FALL = 1e-4  # of Armijo's rule
_ROUNDING = 1e-14  # of the loss, relative to it
_HALVINGS = 40
_POLISH = 30  # Newton steps for u alone
_LOOSE = 0.1  # of the tolerance, to which a quadratic is solved, and its successors
_SWEEP_SECONDS = 2e-9  # of an entry
_SWEEPS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Certified:
    """A point of a path.

    Attributes
    ----------
    u : (U,) array
        Optimal for beta.
    beta : (d,) array
    value : float
        L.
    slope : (d,) array
        G.
    primal, dual : float
        Of (4).
    status : Status
    n_iter : int
        Quadratics that were solved.
    """

    u: np.ndarray
    beta: np.ndarray
    value: float
    slope: np.ndarray
    primal: float
    dual: float
    status: Status
    n_iter: int


@dataclass(frozen=True, slots=True, eq=False)
class Penalty:
    """Prices of (4), (d,) each."""

    l1: np.ndarray
    l2: np.ndarray

    def __call__(self, beta: np.ndarray) -> float:
        return float(self.l1 @ np.abs(beta) + 0.5 * self.l2 @ beta**2)

    def of(self, which: np.ndarray) -> Penalty:
        return Penalty(self.l1[which], self.l2[which])

    def bound(self, value: float, slope: np.ndarray, beta: np.ndarray) -> float:
        """The largest of (5) for c = 1 and the largest c without excess."""
        tangent, size = value - float(slope @ beta), np.abs(slope)
        over = size > self.l1
        least = float((self.l1[over] / size[over]).min(initial=1.0))
        bounds = [least * tangent]
        if (self.l2[over] > 0).all():
            excess = (size - self.l1)[over]
            bounds.append(tangent - 0.5 * float((excess**2 / self.l2[over]).sum()))
        return max(bounds)


class PathSolver:
    """Solutions of (4) for one penalty after another, each begun at the last one.

    Parameters
    ----------
    loss : RowwiseLikelihood
        Without penalty and effects on the scale.
    tol : float
        Duality gap at which a point has converged, by the loss without features.
    max_iter : int
        Quadratics a point.
    monitor : Monitor

    Attributes
    ----------
    null : Certified
        The optimum without features.
    largest : float
        The least l1 for which no feature takes part.
    """

    def __init__(self, loss: RowwiseLikelihood, max_iter: int, monitor: Monitor):
        self.loss, self.max_iter, self.monitor = loss, max_iter, monitor
        self._U = sum(loss.design.sizes[:2])
        self._spread = loss.design.spread[loss.design.location]
        d = self._spread.size
        nothing = Penalty(np.full(d, np.inf), np.zeros(d))
        self.sweeps = 0
        self._n_iter, self._status = 0, Status.CONVERGED
        start = loss.start()
        self.null = self._certified(start[: self._U], np.zeros(d), nothing)
        self.largest = float((np.abs(self.null.slope) * self._spread).max(initial=0.0))
        self._last, self._last_l1 = self.null, self.largest

    def solve(self, l1: float, l2: float) -> Certified:
        """The minimum of (4), from the last point."""
        penalty = Penalty(l1 / self._spread, l2 / self._spread**2)
        here, limit = self._last, self.monitor.tol * self.null.value
        strong = (2 * l1 - self._last_l1) / self._spread
        working = (here.beta != 0) | (np.abs(here.slope) >= np.maximum(strong, 0))
        self._n_iter, self._status = 0, Status.CONVERGED
        tol = _LOOSE * limit
        while True:
            here = self._descended(here, np.flatnonzero(working), penalty, tol)
            if here.primal - here.dual <= limit or self._status is not Status.CONVERGED:
                break
            missed = ~working & (np.abs(here.slope) > penalty.l1)
            if missed.any():
                working |= missed
            elif tol < _ROUNDING * self.null.value:
                self._status = Status.STALLED
            else:
                tol *= _LOOSE
        self._last, self._last_l1 = here, l1
        return here

    def _descended(
        self, here: Certified, working: np.ndarray, penalty: Penalty, tol: float
    ) -> Certified:
        """The minimum over the columns that take part, to where a step promises no more
        than tol."""
        beta = np.zeros_like(here.beta)
        u = here.u
        if working.size:
            part, loss = penalty.of(working), self.loss.of_columns(working)
            u, beta[working] = self._minimized(loss, u, here.beta[working], part, tol)
        return self._certified(u, beta, penalty)

    def _minimized(
        self,
        loss: RowwiseLikelihood,
        u: np.ndarray,
        beta: np.ndarray,
        penalty: Penalty,
        tol: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method for L, with the penalties as they are."""
        U = self._U
        x = np.concatenate([u, beta])
        rows = loss.rows_at(x)
        value, exact = rows.value + penalty(beta), tol * 0.001
        while True:
            gradient = loss.gradient_of(rows)
            to = self._quadratic(loss, rows, gradient, x, penalty, exact)
            step = to - x
            promised = float(gradient @ step) + penalty(to[U:]) - penalty(x[U:])
            stop = self.monitor.stop(self._n_iter, -promised / self.null.value)
            if stop is None and self._n_iter >= self.max_iter:
                stop = Status.MAX_ITER
            if stop is not None:
                self._status = stop
                break
            self._n_iter += 1
            for halving in range(_HALVINGS):
                size = 0.5**halving
                there = x + size * step if halving else to
                moved = loss.rows_at(there)
                reached = moved.value + penalty(there[U:])
                if reached - value <= _FALL * size * promised + _ROUNDING * abs(value):
                    x, rows, value = there, moved, reached
                    break
            else:
                break
            if -promised <= tol:
                break
            exact = min(exact, 0.001 * -promised)
        return x[:U], x[U:]

    def _quadratic(
        self,
        loss: RowwiseLikelihood,
        rows: Rows,
        gradient: np.ndarray,
        x: np.ndarray,
        penalty: Penalty,
        tol: float,
    ) -> np.ndarray:
        """Where the quadratic at x and the penalties are least, by coordinate descent
        until no step of a sweep lowers them by tol.

        u, which has no penalty, is eliminated: with H_uu = L L' and k = L^-1 H_ub the
        Hessian by beta is H_bb - k'k.
        """
        U, columns = self._U, loss.columns
        L = np.linalg.cholesky(loss.free_hessian(rows))
        k = np.linalg.solve(L, np.column_stack([loss.border(rows), gradient[:U]]))
        border, free = np.ascontiguousarray(k[:, :-1].T), -k[:, -1]
        b = x[U:].copy()
        scratch, active = np.empty(b.size), np.empty(b.size, np.int32)
        if isinstance(columns, SparseColumns) and b.size**2 > columns.entries:
            A = columns.columns
            cost = A.data.size + border.size
            slope = rows.slope.copy()

            def descend(most: int) -> tuple[int, float]:
                return _coordinate_descent.descend_columns(
                    A.indptr, A.indices, A.data, rows.curvature, border, penalty.l1,
                    penalty.l2, tol, most, slope, free, b, scratch, active,
                )  # fmt: skip
        else:
            H = columns.gram(rows.curvature) - border @ border.T
            cost = H.size
            slope = gradient[U:] + border @ free

            def descend(most: int) -> tuple[int, float]:
                return _coordinate_descent.descend_gram(
                    H, penalty.l1, penalty.l2, tol, most, slope, b, scratch, active
                )

        at_once = max(1, int(self.monitor.SLICE / (_SWEEP_SECONDS * cost)))
        done = 0
        while done < _SWEEPS and not self.monitor.late():
            sweeps, largest = descend(at_once)
            done += sweeps
            turn()
            if largest <= tol:
                break
        self.sweeps += done
        # H_uu u* = -(g_u + H_ub step)
        if slope.size == b.size:
            free = free - border.T @ (b - x[U:])
        return np.concatenate([x[:U] + np.linalg.solve(L.T, free), b])

    def _certified(
        self, u: np.ndarray, beta: np.ndarray, penalty: Penalty
    ) -> Certified:
        """u polished, and (5)."""
        loss, q = self.loss, self.loss.design.J.shape[1]
        held = np.flatnonzero(beta)
        f = loss.columns.times(beta)
        none = np.zeros(0)

        def rows_at(u: np.ndarray) -> Rows:
            free = np.column_stack([u[:q], u[q:].reshape(q, -1)])
            return loss.rows_of(free, none, f)

        rows = rows_at(u)
        for _ in range(_POLISH):
            g = loss.free_gradient(rows)
            step = -np.linalg.solve(loss.free_hessian(rows), g)
            promised = float(g @ step)
            size = 1.0
            there = rows_at(u + step)
            while (
                not there.value <= rows.value + _FALL * size * promised and size > 1e-10
            ):
                size *= 0.5
                there = rows_at(u + size * step)
            if not there.value < rows.value:
                break
            u, rows = u + size * step, there
        slope = loss.columns.across(rows.slope)
        primal = rows.value + penalty(beta) if held.size else rows.value
        dual = penalty.bound(rows.value, slope, beta)
        return Certified(
            u, beta, rows.value, slope, primal, dual, self._status, self._n_iter
        )
