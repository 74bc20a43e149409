"""The elastic net of a linear cumulative model: coordinate descent, certified.

With L the loss, u = (alpha, nu) and d_j > 0 the spreads of columns in units of which
beta is,

    min_{u, beta}  L(u, beta) + sum_j (l1 |beta_j| / d_j + l2 beta_j^2 / (2 d_j^2))  (4)

Newton's method on L, of which each quadratic is minimised together with the penalties
by coordinate descent; only columns that the sequential strong rule lets through, or
that were found to be missed, take part. Each penalty begins where the one before it has
ended, with the derivatives that were taken there.

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

import math
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from .._solvers import _coordinate_descent
from .._watch.convergence import Status
from .._watch.monitor import Monitor, OutOfTime, check_cancelled
from .bordered import NONE
from .design import Design, lasso_prices, prices
from .likelihood import Point
from .matrices import SparseColumns
from .newton import Loss, Minimum
from .rowwise import LEAST, RowTerms, RowwiseLikelihood, factor

_FALL = 1e-4  # constant of Armijo's rule
_ROUNDING = 1e-14  # relative rounding error of the loss
_HALVINGS = 40
_INNER = 0.8  # gap of a part of the problem, relative to the target gap
_TIGHTER = 0.01  # factor of the gap of the active columns, if all columns need less
_QUADRATIC = 0.01  # accuracy of a quadratic, relative to the gap at its point
_FINER = 0.2  # factor of the least step of coordinate descent, until its gap suffices
_ABOVE = 1e-12  # margin, so that no feature is active at the largest penalty
_SWEEPS = 100_000  # most sweeps for one quadratic
_SECONDS = 2e-9  # seconds per entry in a sweep
_FAR = 2.0  # ratio of adjacent penalties on the path to a single one


@dataclass(frozen=True, slots=True, eq=False)
class NetSolution:
    """Point of a path.

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
        Values of (4).
    status : Status
    n_iter : int
        Number of quadratics that were solved.
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
    """Penalties of |beta_j| and of beta_j^2 / 2, (d,) each."""

    l1: np.ndarray
    l2: np.ndarray

    def __call__(self, beta: np.ndarray) -> float:
        return float(self.l1 @ np.abs(beta) + 0.5 * self.l2 @ beta**2)

    def restricted_to(self, which: np.ndarray) -> Penalty:
        """Return the penalty of some of the columns."""
        return Penalty(self.l1[which], self.l2[which])

    def bound(self, value: float, slope: np.ndarray, beta: np.ndarray) -> float:
        """Return (5) for c = 1, or the largest c for which P* is 0: the larger one."""
        tangent, size = value - float(slope @ beta), np.abs(slope)
        # c G must satisfy |c G_j| <= l1_j where l2 is 0: the least ratio is the largest
        # c.
        over = size > self.l1
        bounds = [float((self.l1[over] / size[over]).min(initial=1.0)) * tangent]
        # Where l2 > 0 the conjugate is finite everywhere, so that c = 1 is allowed.
        if (self.l2[over] > 0).all():
            excess = (size - self.l1)[over]
            bounds.append(tangent - 0.5 * float((excess**2 / self.l2[over]).sum()))
        return max(bounds)


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """Expansion of L about a point (u, beta), undefined where the value is infinite.

    Attributes
    ----------
    value : float
    gradient : (U + d,) array
    free, border : (U, U), (U, d) arrays
        H_uu and H_ub of the Hessian.
    hessian : (d, d) array, or None
        H_bb.
    rows : Rows or None
        Rows for products with H_bb where it is None.
    """

    value: float
    gradient: np.ndarray
    free: np.ndarray
    border: np.ndarray
    hessian: np.ndarray | None
    rows: RowTerms | None


class NetLoss(Protocol):
    """Convex loss without penalty and without effects on the scale, as `PathSolver`
    takes it.
    """

    @property
    def design(self) -> Design: ...

    def start(self) -> np.ndarray:
        """Return the parameters of no effects."""

    def of_columns(self, which: np.ndarray) -> Loss:
        """Return the loss of some columns of the location."""

    def at_best_free(
        self, u: np.ndarray, beta: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the best u for beta by Newton's method from u, L and G there."""


class RestrictedLoss:
    """Restriction of L to some columns of the location.

    The expansion about the last point is cached, because the next penalty begins there.

    Parameters
    ----------
    which : (d,) int array
    loss : Loss
        Of these columns.
    """

    def __init__(self, which: np.ndarray, loss: Loss):
        self.which, self.loss = which, loss
        self._U = sum(loss.design.sizes[:2])
        self._known: tuple[np.ndarray, Local] | None = None

    @property
    def columns(self) -> SparseColumns | None:
        """Return columns with fewer entries than H_bb, which is then not computed."""
        held = getattr(self.loss, "columns", None)
        # H_bb has d^2 entries: products by the sparse columns are cheaper below that.
        few = isinstance(held, SparseColumns) and held.entries < self.which.size**2
        return held if few else None

    def at(self, x: np.ndarray) -> Local:
        """Expand L about x to second order."""
        # A line search ends at a point where the next quadratic begins, and so does the
        # next penalty.
        if self._known is None or not np.array_equal(x, self._known[0]):
            self._known = x, self._local(x)
        return self._known[1]

    def _local(self, x: np.ndarray) -> Local:
        loss, U = self.loss, self._U
        if isinstance(loss, RowwiseLikelihood) and self.columns is not None:
            rows = loss.rows_at(x)
            # The step was too long; the line search asks for the value alone, and
            # halves it.
            if not math.isfinite(rows.value):
                none = np.empty((0, 0))
                return Local(rows.value, none, none, none, None, None)
            gradient, border = loss.gradient_of(rows), loss.border(rows)
            free = loss.free_hessian(rows)
            return Local(rows.value, gradient, free, border, None, rows)
        at = loss.at(x)
        H = at.hessian.dense()
        return Local(at.value, at.gradient, H[:U, :U], H[:U, U:], H[U:, U:], None)


_NetLossT = TypeVar("_NetLossT", bound=NetLoss)


class PathSolver(Generic[_NetLossT]):
    """Minima of (4) for one penalty after another, each begun at the last one.

    Parameters
    ----------
    loss : NetLoss
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

    def __init__(self, loss: _NetLossT, max_iter: int, monitor: Monitor):
        self.loss, self.max_iter, self.monitor = loss, max_iter, monitor
        self._U = sum(loss.design.sizes[:2])
        self._spread = loss.design.spread[loss.design.location]
        self._n_iter, self._status = 0, Status.CONVERGED
        d = self._spread.size
        # An infinite penalty holds all slopes at 0, as the optimum without features has
        # them.
        free = Penalty(np.full(d, np.inf), np.zeros(d))
        self.null = self._solution(loss.start()[: self._U], np.zeros(d), free)
        largest = (np.abs(self.null.slope) * self._spread).max(initial=0.0)
        self.largest = float(largest) * (1 + _ABOVE)
        self._last, self._last_l1 = self.null, self.largest
        self._part: RestrictedLoss | None = None

    def solve(self, l1: float, l2: float) -> NetSolution:
        """Return the minimum for these penalties of features in their units."""
        penalty = Penalty(lasso_prices(l1, self._spread), prices(l2, self._spread))
        here, limit = self._last, self.monitor.tol * self.null.value
        # The sequential strong rule (Tibshirani et al., 2012): a slope changes by no
        # more than the penalty, mostly. Columns that it wrongly leaves out are found
        # below.
        strong = lasso_prices(max(2 * l1 - self._last_l1, 0.0), self._spread)
        part = (here.beta != 0) | (np.abs(here.slope) >= strong)
        self._n_iter, self._status = 0, Status.CONVERGED
        inner = _INNER * limit
        while True:
            here = self._over(np.flatnonzero(part), here, penalty, inner)
            if here.primal - here.dual <= limit or self._status is not Status.CONVERGED:
                break
            # Violations of the optimality conditions among the columns that were left
            # out.
            missed = ~part & (np.abs(here.slope) > penalty.l1)
            if missed.any():
                part |= missed
            # No column was missed, so that the gap is among those that take part: solve
            # it better.
            elif inner > LEAST * self.null.value:
                inner *= _TIGHTER
            else:
                self._status = Status.STALLED
        self._last, self._last_l1 = here, l1
        return here

    def reach(self, l1: float, l2: float) -> NetSolution:
        """Solve for a penalty far from the last one, on a path of penalties in between.

        `n_iter` counts the steps of all of them.
        """
        n_iter = 0
        # Beyond a factor of 2 the strong rule would let every column take part.
        while self._last_l1 > _FAR * l1 and self._status is Status.CONVERGED:
            n_iter += self.solve(self._last_l1 / _FAR, l2).n_iter
        here = self.solve(l1, l2)
        return replace(here, n_iter=n_iter + here.n_iter)

    def minimum(self, found: NetSolution) -> Minimum:
        """Return a solution as models are made of it, without a Hessian."""
        x, none = np.concatenate([found.u, found.beta]), np.zeros(0)
        gap = (found.primal - found.dual) / self.null.value
        point = Point(x, found.value, none, NONE)
        return Minimum(point, none, gap, found.status, found.n_iter)

    def _over(
        self, which: np.ndarray, here: NetSolution, penalty: Penalty, limit: float
    ) -> NetSolution:
        """Return the minimum over some columns, to a duality gap among them."""
        u, beta = here.u, np.zeros_like(here.beta)
        beta[which] = here.beta[which]
        part = self._part_in_time(which, here) if which.size else None
        if which.size and part is None and np.array_equal(beta, here.beta):
            return self._again(here, penalty)  # a pass over the rows takes time
        if part is not None:
            x = np.concatenate([u, beta[which]])
            x = self._minimized(part, x, penalty.restricted_to(which), limit)
            u, beta[which] = x[: self._U], x[self._U :]
        return self._solution(u, beta, penalty)

    def _again(self, here: NetSolution, penalty: Penalty) -> NetSolution:
        """Return the same point for another penalty."""
        return replace(
            here,
            primal=here.value + penalty(here.beta),
            dual=penalty.bound(here.value, here.slope, here.beta),
            status=self._status,
            n_iter=self._n_iter,
        )

    def _part_in_time(
        self, which: np.ndarray, here: NetSolution
    ) -> RestrictedLoss | None:
        """Return L over some columns, or None, with the status noted, where the fit is
        to end: copies of columns and the first Hessian may take seconds.
        """
        try:
            with self.monitor.limited():
                if self._part is None or not np.array_equal(which, self._part.which):
                    self._part = RestrictedLoss(which, self.loss.of_columns(which))
                check_cancelled()
            if not self.monitor.ended:
                return self._part
        except OutOfTime:
            pass
        gap = (here.primal - here.dual) / self.null.value
        self._status = self.monitor.stop(self._n_iter, gap) or self._status
        return None

    def _minimized(
        self, part: RestrictedLoss, x: np.ndarray, penalty: Penalty, limit: float
    ) -> np.ndarray:
        """Newton's method for L, with the penalties as they are, to a gap, or to where
        rounding keeps it from falling.
        """
        U, last, at_rounding = self._U, math.inf, False
        while True:
            here = part.at(x)
            C = factor(here.free)
            by_u = np.column_stack([here.gradient[:U], here.border])
            k = np.linalg.solve(C, by_u)
            value, slope = here.value + penalty(x[U:]), here.gradient[U:]
            gap = value - penalty.bound(here.value, slope, x[U:])
            # The bound is for the best u; the present u is off by half the squared
            # Newton decrement, and the factor 2 covers higher orders.
            gap += float(k[:, 0] @ k[:, 0])  # twice what the best u is worth
            stop = self.monitor.stop(self._n_iter, gap / self.null.value)
            # At rounding, steps go on while they at least halve the gap.
            if gap <= limit or (at_rounding and gap > 0.5 * last):
                return x
            if stop is None and self._n_iter >= self.max_iter:
                stop = Status.MAX_ITER
            if stop is not None:
                self._status = stop
                return x
            self._n_iter += 1
            to = self._of_quadratic(
                part, here, C, k, x, penalty, max(_INNER * limit, _QUADRATIC * gap)
            )
            moved = float(here.gradient @ (to - x))
            promised = moved + penalty(to[U:]) - penalty(x[U:])
            for halving in range(_HALVINGS):
                # The first trial belongs to the step; further ones are left out when
                # time is up.
                if halving and self.monitor.late():
                    return x
                size = 0.5**halving
                # Not x + 1 (to - x): slopes that coordinate descent set to 0 stay 0 to
                # the bit.
                there = x + size * (to - x) if halving else to
                reached = part.at(there).value + penalty(there[U:])
                if reached - value <= _FALL * size * promised + _ROUNDING * value:
                    break
            else:
                return x
            # The decrease that the model promises is below what the loss resolves.
            x, last, at_rounding = there, gap, -promised <= _ROUNDING * value

    def _of_quadratic(
        self,
        part: RestrictedLoss,
        here: Local,
        C: np.ndarray,
        k: np.ndarray,
        x: np.ndarray,
        penalty: Penalty,
        limit: float,
    ) -> np.ndarray:
        """Minimise the quadratic of L at x and the penalties, by coordinate descent.

        It ends at a gap, (5) for the quadratic.

        u is eliminated: with H_uu = C C' and k = C^-1 (g_u, H_ub) =: (k_u, k_b), the
        Hessian by beta is H_bb - k_b'k_b, and u moves by -C^-T (k_u + k_b (step of
        beta)).
        """
        U = self._U
        free, border = -k[:, 0], np.ascontiguousarray(k[:, 1:].T)
        b = x[U:].copy()
        scratch, active = np.empty(b.size), np.empty(b.size, np.int32)
        factors = penalty.l1, penalty.l2
        if here.hessian is None:
            assert part.columns is not None
            assert here.rows is not None
            Z, slope, moved = part.columns, here.rows.slope, free.copy()
            A, curvature = Z.columns, here.rows.curvature
            cost = Z.entries + border.size

            def descend(tol: float, sweeps: int) -> tuple[int, float]:
                return _coordinate_descent.descend_columns(
                    A.indptr, A.indices, A.data, curvature, border, *factors, tol,
                    sweeps, slope, moved, b, scratch, active,
                )  # fmt: skip

            def gradient() -> np.ndarray:
                return np.asarray(Z.rmatvec(slope) + border @ moved)
        else:
            H, cost = here.hessian - border @ border.T, b.size**2
            slope = np.asarray(here.gradient[U:] + border @ free)

            def descend(tol: float, sweeps: int) -> tuple[int, float]:
                return _coordinate_descent.descend_gram(
                    H, *factors, tol, sweeps, slope, b, scratch, active
                )

            def gradient() -> np.ndarray:
                return slope

        # So many sweeps that a call returns for Ctrl-C in time.
        at_once = max(1, int(self.monitor.SLICE / (_SECONDS * cost)))
        tol, sweeps = limit, 0
        while sweeps < _SWEEPS and not self.monitor.late():
            check_cancelled()
            done, worth = descend(tol, at_once)
            sweeps += done
            # The gap costs a product with all columns; it is computed once steps are
            # small.
            if worth <= tol:
                value = here.value + penalty(b)
                gap = value - penalty.bound(here.value, gradient(), b)
                if gap <= limit or tol <= LEAST * self.null.value:
                    break
                tol *= _FINER
        # u follows beta: its optimum in the quadratic is linear in the step of beta.
        free -= border.T @ (b - x[U:])
        return np.concatenate([x[:U] + np.linalg.solve(C.T, free), b])

    def _solution(
        self, u: np.ndarray, beta: np.ndarray, penalty: Penalty
    ) -> NetSolution:
        """Return the point with the best u, and (5)."""
        u, value, slope = self.loss.at_best_free(u, beta)
        primal = value + (penalty(beta) if beta.any() else 0.0)
        return NetSolution(
            u,
            beta,
            value,
            slope,
            primal,
            penalty.bound(value, slope, beta),
            self._status,
            self._n_iter,
        )
