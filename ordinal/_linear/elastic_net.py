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

from dataclasses import dataclass, replace

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
_INNER = 0.1  # of a tolerance, that of the columns which take part
_TIGHTER = 0.01  # this one from one attempt at a point to the next
_LEAST = 1e-26  # where slopes are rounding, by the loss: they count squared
_EXACT = 0.01  # of that, the worth of the last steps of coordinate descent
_ABOVE = 1e-12  # lest rounding lets a feature take part at the largest penalty
_SWEEPS = 100_000  # of one quadratic
_SECONDS = 2e-9  # of an entry in a sweep
_FAR = 2.0  # between the penalties of a path to one of them


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
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
    """Prices of |beta_j| and of beta_j^2 / 2, (d,) each."""

    l1: np.ndarray
    l2: np.ndarray

    def __call__(self, beta: np.ndarray) -> float:
        return float(self.l1 @ np.abs(beta) + 0.5 * self.l2 @ beta**2)

    def of(self, which: np.ndarray) -> Penalty:
        """Of some of the columns."""
        return Penalty(self.l1[which], self.l2[which])

    def bound(self, value: float, slope: np.ndarray, beta: np.ndarray) -> float:
        """(5) for c = 1, or the largest c for which P* is 0: the larger one."""
        tangent, size = value - float(slope @ beta), np.abs(slope)
        over = size > self.l1
        bounds = [float((self.l1[over] / size[over]).min(initial=1.0)) * tangent]
        if (self.l2[over] > 0).all():
            excess = (size - self.l1)[over]
            bounds.append(tangent - 0.5 * float((excess**2 / self.l2[over]).sum()))
        return max(bounds)


class PathSolver:
    """Minima of (4) for one penalty after another, each begun at the last one.

    Parameters
    ----------
    loss : RowwiseLikelihood
        Without penalty and without effects on the scale.
    max_iter : int
        Quadratics a point.
    monitor : Monitor
        A point has converged where its duality gap is at most `tol` times the loss
        without features.

    Attributes
    ----------
    null : Solution
        The optimum without features.
    largest : float
        The least l1 for which no feature takes part.
    """

    def __init__(self, loss: RowwiseLikelihood, max_iter: int, monitor: Monitor):
        self.loss, self.max_iter, self.monitor = loss, max_iter, monitor
        self._U = sum(loss.design.sizes[:2])
        self._spread = loss.design.spread[loss.design.location]
        self._n_iter, self._status = 0, Status.CONVERGED
        d = self._spread.size
        free = Penalty(np.full(d, np.inf), np.zeros(d))
        self.null = self._solution(loss.start()[: self._U], np.zeros(d), free)
        largest = (np.abs(self.null.slope) * self._spread).max(initial=0.0)
        self.largest = float(largest) * (1 + _ABOVE)
        self._last, self._last_l1 = self.null, self.largest
        self._part = np.zeros(0, np.int64), loss  # columns that took part, their loss

    def solve(self, l1: float, l2: float) -> Solution:
        """The minimum for these penalties of features in their units."""
        penalty = Penalty(l1 / self._spread, l2 / self._spread / self._spread)
        here, limit = self._last, self.monitor.tol * self.null.value
        strong = np.maximum(2 * l1 - self._last_l1, 0) / self._spread
        part = (here.beta != 0) | (np.abs(here.slope) >= strong)
        self._n_iter, self._status = 0, Status.CONVERGED
        tol = _INNER * limit
        while True:
            here = self._over(np.flatnonzero(part), here, penalty, tol)
            if here.primal - here.dual <= limit or self._status is not Status.CONVERGED:
                break
            missed = ~part & (np.abs(here.slope) > penalty.l1)
            if missed.any():
                part |= missed
            elif tol > _LEAST * self.null.value:
                tol *= _TIGHTER
            else:
                self._status = Status.STALLED
        self._last, self._last_l1 = here, l1
        return here

    def reach(self, l1: float, l2: float) -> Solution:
        """The same for a penalty that may be far from the last one, by way of others;
        `n_iter` counts those of all."""
        n_iter = 0
        while self._last_l1 > _FAR * l1 and self._status is Status.CONVERGED:
            n_iter += self.solve(self._last_l1 / _FAR, l2).n_iter
        here = self.solve(l1, l2)
        return replace(here, n_iter=n_iter + here.n_iter)

    def _over(
        self, part: np.ndarray, here: Solution, penalty: Penalty, tol: float
    ) -> Solution:
        """The minimum over some columns, to where Newton's method promises to lower it
        by no more than tol."""
        u, beta = here.u, np.zeros_like(here.beta)
        if part.size:
            if not np.array_equal(part, self._part[0]):
                self._part = part, self.loss.of_columns(part)
            loss = self._part[1]
            x = np.concatenate([u, here.beta[part]])
            x = self._minimized(loss, x, penalty.of(part), tol)
            u, beta[part] = x[: self._U], x[self._U :]
        return self._solution(u, beta, penalty)

    def _minimized(
        self, loss: RowwiseLikelihood, x: np.ndarray, penalty: Penalty, tol: float
    ) -> np.ndarray:
        """Newton's method for L, with the penalties as they are."""
        U = self._U
        rows = loss.rows_at(x)
        value = rows.value + penalty(x[U:])
        while True:
            gradient = loss.gradient_of(rows)
            to = self._of_quadratic(loss, rows, gradient, x, penalty, _EXACT * tol)
            promised = float(gradient @ (to - x)) + penalty(to[U:]) - penalty(x[U:])
            stop = self.monitor.stop(self._n_iter, -promised / self.null.value)
            if stop is None and self._n_iter >= self.max_iter:
                stop = Status.MAX_ITER
            if stop is not None:
                self._status = stop
                return x
            self._n_iter += 1
            for halving in range(_HALVINGS):
                size = 0.5**halving
                there = x + size * (to - x) if halving else to
                rows_there = loss.rows_at(there)
                reached = rows_there.value + penalty(there[U:])
                if reached - value <= _FALL * size * promised + _ROUNDING * value:
                    break
            else:
                return x
            x, rows, value = there, rows_there, reached
            if -promised <= max(tol, _ROUNDING * value):
                return x

    def _of_quadratic(
        self,
        loss: RowwiseLikelihood,
        rows: Rows,
        gradient: np.ndarray,
        x: np.ndarray,
        penalty: Penalty,
        tol: float,
    ) -> np.ndarray:
        """Where the quadratic of L at x and the penalties are least, by coordinate
        descent until no step of a sweep lowers them by tol.

        u is eliminated: with H_uu = C C' and k = C^-1 H_ub the Hessian by beta is
        H_bb - k'k, and u moves by -C^-T (C^-1 g_u + k (step of beta)).
        """
        U, columns = self._U, loss.columns
        C = _factor(loss.free_hessian(rows))
        k = np.linalg.solve(C, np.column_stack([gradient[:U], loss.border(rows)]))
        free, border = -k[:, 0], np.ascontiguousarray(k[:, 1:].T)
        b = x[U:].copy()
        scratch, active = np.empty(b.size), np.empty(b.size, np.int32)
        rest = penalty.l1, penalty.l2, tol
        if isinstance(columns, SparseColumns) and b.size**2 > columns.entries:
            A, slope, moved = columns.columns, rows.slope.copy(), free.copy()
            cost = A.data.size + border.size

            def descend(sweeps: int) -> tuple[int, float]:
                return _coordinate_descent.descend_columns(
                    A.indptr, A.indices, A.data, rows.curvature, border, *rest, sweeps,
                    slope, moved, b, scratch, active,
                )  # fmt: skip
        else:
            H = columns.gram(rows.curvature) - border @ border.T
            slope, cost = gradient[U:] + border @ free, H.size

            def descend(sweeps: int) -> tuple[int, float]:
                return _coordinate_descent.descend_gram(
                    H, *rest, sweeps, slope, b, scratch, active
                )

        at_once = max(1, int(self.monitor.SLICE / (_SECONDS * cost)))
        for _ in range(0, _SWEEPS, at_once):
            turn()
            if descend(at_once)[1] <= tol or self.monitor.late():
                break
        free -= border.T @ (b - x[U:])
        return np.concatenate([x[:U] + np.linalg.solve(C.T, free), b])

    def _solution(self, u: np.ndarray, beta: np.ndarray, penalty: Penalty) -> Solution:
        """The point with the best u, by Newton's method, and (5)."""
        loss, q = self.loss, self.loss.design.J.shape[1]
        f, none = loss.columns.times(beta), np.zeros(0)

        def rows_at(u: np.ndarray) -> Rows:
            free = np.column_stack([u[:q], u[q:].reshape(q, -1)])
            return loss.rows_of(free, none, f)

        rows = rows_at(u)
        for _ in range(_POLISH):
            C, g = _factor(loss.free_hessian(rows)), loss.free_gradient(rows)
            step = np.linalg.solve(C.T, np.linalg.solve(C, -g))
            promised = float(g @ step)
            for halving in range(_HALVINGS):
                size = 0.5**halving
                moved = rows_at(u + size * step)
                rise = moved.value - rows.value
                if rise <= _FALL * size * promised + _ROUNDING * rows.value:
                    break
            else:
                break
            u, rows = u + size * step, moved
            if -promised <= _ROUNDING * rows.value:  # steps converge quadratically
                break
        slope = loss.columns.across(rows.slope)
        primal = rows.value + (penalty(beta) if beta.any() else 0.0)
        return Solution(
            u, beta, rows.value, slope, primal, penalty.bound(rows.value, slope, beta),
            self._status, self._n_iter,
        )  # fmt: skip


def _factor(H: np.ndarray) -> np.ndarray:
    """C of C C' = H; of H with a larger diagonal where H is singular to rounding."""
    diagonal = np.diagonal(H)
    shift = 0.0
    while True:
        try:
            return np.asarray(np.linalg.cholesky(H + np.diag(shift * diagonal)))
        except np.linalg.LinAlgError:
            if not shift < 1:
                raise
            shift = max(1e-12, 10 * shift)
