"""The elastic net of a linear cumulative model: coordinate descent, certified.

Let L be the loss, u = (alpha, nu), and d_j > 0 the spread of column j; beta belongs to
columns in units of their spreads. Then

    min_{u, beta}  L(u, beta) + sum_j (l1 |beta_j| / d_j + l2 beta_j^2 / (2 d_j^2))  (4)

is solved by proximal Newton steps: coordinate descent minimises the sum of the penalty
and a quadratic model of L. Only columns that pass the sequential strong rule, or that
violate optimality without them, take part. On a path of penalties each one is warm
started at the solution for the one before.

The certificate is a duality gap. Where u is optimal for beta, the convex L lies above
its tangent there. With G = dL/dbeta, the penalty P and its conjugate P*, and L >= 0,

    c (L - G'beta) - P*(-c G) <= min (4)      for every c in [0, 1],                 (5)

because c times the tangent lies below L as well. With l2 = 0 the conjugate P* is finite
only where c |G_j| <= l1 / d_j. The larger of the bounds for the largest such c and for
c = 1 is the dual value; at the optimum c = 1 gives the value of (4).

R. Tibshirani et al., "Strong rules for discarding predictors in lasso-type problems",
JRSS B 74:245-266, 2012. M. J. Wurm, P. J. Rathouz, B. M. Hanlon, "Regularized ordinal
regression and the ordinalNet R package", J. Stat. Software 99(6), 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from .._numerics.descent import halved
from .._numerics.rows import csr_arrays
from .._solvers import _coordinate_descent
from .._watch.cancellation import OutOfTime, check_cancelled
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .design import Design, l1_penalties, l2_penalties
from .fitting import Loss, Minimum
from .likelihood import NONE, Point
from .matrices import SparseColumns
from .rowwise import (
    LEAST,
    Chain,
    ChainRoot,
    DenseRoot,
    RowTerms,
    RowwiseLikelihood,
    root_of,
)

_ROUNDING = 1e-14  # relative rounding error of the loss
_INNER = 0.8  # gap of a restricted problem, relative to the target gap
_TIGHTER = 0.01  # factor of the gap of the active columns, if all columns need less
_QUADRATIC = 0.01  # accuracy of a quadratic, relative to the gap at its point
_FINER = 0.2  # factor of the tolerance of coordinate descent, until its gap suffices
_MARGIN = 1e-12  # so that no feature is active at the largest penalty
_SWEEPS = 100_000  # most sweeps for one quadratic
_SECONDS = 2e-9  # seconds per entry in a sweep
_FAR = 2.0  # ratio of adjacent penalties on the path to a single one


class _Trial(NamedTuple):
    """Point of a line search, and the penalised loss there."""

    x: np.ndarray
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class NetSolution:
    """Solution for one pair of penalties, with its certificate.

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
        Value of (4), and its bound (5).
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
        """Return the larger bound (5): for c = 1, or the largest c for which P* is 0.

        Parameters
        ----------
        value : float
            L, at a point whose u is optimal.
        slope, beta : (d,) arrays
            G, and the point.
        """
        tangent, size = value - float(slope @ beta), np.abs(slope)
        # P*(-c G) is 0 where c |G_j| <= l1_j for all j: c is at most the least ratio.
        over = size > self.l1
        bounds = [float((self.l1[over] / size[over]).min(initial=1.0)) * tangent]
        # Where l2 > 0 the conjugate is finite everywhere, so that c = 1 is allowed.
        if (self.l2[over] > 0).all():
            excess = (size - self.l1)[over]
            bounds.append(tangent - 0.5 * float((excess**2 / self.l2[over]).sum()))
        return max(bounds)


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticModel:
    """Quadratic model of L about a point (u, beta); undefined if the value is infinite.

    Attributes
    ----------
    value : float
    gradient : (U + d,) array
    free, border : (U, U) array or Chain, (U, d) array
        Blocks H_uu and H_ub of the Hessian.
    hessian : (d, d) array, or None
        Block H_bb.
    rows : RowTerms or None
        Terms of the rows, for products with H_bb if this is None.
    """

    value: float
    gradient: np.ndarray
    free: np.ndarray | Chain
    border: np.ndarray
    hessian: np.ndarray | None
    rows: RowTerms | None


class NetLoss(Protocol):
    """Convex loss without penalty and scale effects, as `PathSolver` needs it."""

    @property
    def design(self) -> Design: ...

    def start(self) -> np.ndarray:
        """Return the parameters of no effects."""

    def of_columns(self, which: np.ndarray) -> Loss:
        """Return the loss of some columns of the location."""

    def at_best_thresholds(
        self, u: np.ndarray, beta: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the best u for beta, by Newton's method from u, and L and G there."""


class RestrictedLoss:
    """L as a function of some columns of the location.

    The quadratic model about the last point is cached. A line search ends at the point
    where the next model is needed, and the next penalty begins there, too.

    Parameters
    ----------
    which : (d,) int array
        Indices of the columns among those of the location.
    loss : Loss
        L with these columns only.
    """

    def __init__(self, which: np.ndarray, loss: Loss):
        self.which, self.loss = which, loss
        self._U = sum(loss.design.sizes[:2])
        self._known: tuple[np.ndarray, QuadraticModel] | None = None

    @property
    def columns(self) -> SparseColumns | None:
        """The sparse columns, if they have fewer entries than H_bb; else None.

        Coordinate descent then needs no H_bb, but products with the columns.
        """
        columns = getattr(self.loss, "columns", None)
        if isinstance(columns, SparseColumns) and columns.entries < self.which.size**2:
            return columns
        return None

    def at(self, x: np.ndarray) -> QuadraticModel:
        """Return the quadratic model about x, (U + d,)."""
        if self._known is None or not np.array_equal(x, self._known[0]):
            self._known = x, self._model(x)
        return self._known[1]

    def _model(self, x: np.ndarray) -> QuadraticModel:
        """Compute the quadratic model about x."""
        loss, U = self.loss, self._U
        if isinstance(loss, RowwiseLikelihood) and self.columns is not None:
            rows = loss.rows_at(x)
            # The step was too long. The line search needs the value only, and halves
            # the step.
            if not math.isfinite(rows.value):
                none = np.empty((0, 0))
                return QuadraticModel(rows.value, none, none, none, None, None)
            gradient, border = loss.gradient_of(rows), loss.border(rows)
            free = loss.free_hessian(rows)
            return QuadraticModel(rows.value, gradient, free, border, None, rows)
        point = loss.at(x)
        H, value, gradient = point.hessian, point.value, point.gradient
        if H.first.size:
            border = np.empty((U, len(H.core)))
            border[H.first] = H.border.reshape(border.shape)
            chain = Chain(H.diag, H.off, H.first)
            return QuadraticModel(value, gradient, chain, border, H.core, None)
        A = H.dense()
        return QuadraticModel(value, gradient, A[:U, :U], A[:U, U:], A[U:, U:], None)


_NetLossT = TypeVar("_NetLossT", bound=NetLoss)


class PathSolver(Generic[_NetLossT]):
    """Solver of (4) for one penalty after another, each warm started at the last one.

    Parameters
    ----------
    loss : NetLoss
    max_iter : int
        Most quadratic models per penalty.
    monitor : Monitor
        A solution has converged if its duality gap is at most `tol` times the loss
        without features.

    Attributes
    ----------
    null : NetSolution
        The optimum without features.
    largest : float
        The least l1 for which no feature is active.
    """

    def __init__(self, loss: _NetLossT, max_iter: int, monitor: Monitor):
        self.loss, self.max_iter, self.monitor = loss, max_iter, monitor
        self._U = sum(loss.design.sizes[:2])
        self._spread = loss.design.penalised_spread
        self._n_iter, self._status = 0, Status.CONVERGED
        d = self._spread.size
        # Beyond an infinite penalty beta = 0 is optimal.
        infinite = Penalty(np.full(d, np.inf), np.zeros(d))
        self.null = self._solution(loss.start()[: self._U], np.zeros(d), infinite)
        largest = (np.abs(self.null.slope) * self._spread).max(initial=0.0)
        self.largest = float(largest) * (1 + _MARGIN)
        self._last, self._last_l1 = self.null, self.largest
        self._part: RestrictedLoss | None = None

    def solve(self, l1: float, l2: float) -> NetSolution:
        """Return the minimum for the penalties l1 and l2 of columns in their units."""
        penalty = Penalty(
            l1_penalties(l1, self._spread), l2_penalties(l2, self._spread)
        )
        here, limit = self._last, self.monitor.tol * self.null.value
        # The sequential strong rule (Tibshirani et al., 2012) assumes that a slope
        # changes by at most as much as the penalty. It may leave out active columns.
        strong = l1_penalties(max(2 * l1 - self._last_l1, 0.0), self._spread)
        part = (here.beta != 0) | (np.abs(here.slope) >= strong)
        self._n_iter, self._status = 0, Status.CONVERGED
        inner = _INNER * limit
        while True:
            here = self._over(np.flatnonzero(part), here, penalty, inner)
            if here.primal - here.dual <= limit or self._status is not Status.CONVERGED:
                break
            missed = ~part & (np.abs(here.slope) > penalty.l1)
            if missed.any():
                part |= missed
            # No other column violates optimality, so that the gap comes from those that
            # take part: solve for them more accurately.
            elif inner > LEAST * self.null.value:
                inner *= _TIGHTER
            else:
                self._status = Status.STALLED
        self._last, self._last_l1 = here, l1
        return here

    def reach(self, l1: float, l2: float) -> NetSolution:
        """Solve for a penalty far from the last one, by a path of penalties in between.

        `n_iter` of the result counts the steps of all of them.
        """
        n_iter = 0
        # Beyond a factor of 2 the strong rule would let every column take part.
        while self._last_l1 > _FAR * l1 and self._status is Status.CONVERGED:
            n_iter += self.solve(self._last_l1 / _FAR, l2).n_iter
        here = self.solve(l1, l2)
        return replace(here, n_iter=n_iter + here.n_iter)

    def minimum(self, found: NetSolution) -> Minimum:
        """Return a solution as the `Minimum` of other solvers, without a Hessian."""
        x, none = np.concatenate([found.u, found.beta]), np.zeros(0)
        gap = (found.primal - found.dual) / self.null.value
        point = Point(x, found.value, none, NONE)
        return Minimum(point, none, gap, found.status, found.n_iter)

    def _over(
        self, which: np.ndarray, here: NetSolution, penalty: Penalty, limit: float
    ) -> NetSolution:
        """Minimise over some columns, to a duality gap of `limit` among them."""
        u, beta = here.u, np.zeros_like(here.beta)
        beta[which] = here.beta[which]
        part = self._restricted(which, here) if which.size else None
        if which.size and part is None and np.array_equal(beta, here.beta):
            # The fit ends here: the same point needs no other pass over the rows.
            return self._certified(u, here.value, here.slope, beta, penalty)
        if part is not None:
            x = np.concatenate([u, beta[which]])
            x = self._minimized(part, x, penalty.restricted_to(which), limit)
            u, beta[which] = x[: self._U], x[self._U :]
        return self._solution(u, beta, penalty)

    def _restricted(
        self, which: np.ndarray, here: NetSolution
    ) -> RestrictedLoss | None:
        """Return L over some columns; None, with a new status, if the fit is to end.

        Copies of columns and the first Hessian may take seconds.
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
        """Minimise by proximal Newton steps from x, (U + d,).

        They end at a gap of `limit`, or where rounding keeps the gap from falling.
        """
        U, last, at_rounding = self._U, math.inf, False
        while True:
            here = part.at(x)
            C = root_of(here.free)
            k = C.whitened(np.column_stack([here.gradient[:U], here.border]))
            value, slope = here.value + penalty(x[U:]), here.gradient[U:]
            gap = value - penalty.bound(here.value, slope, x[U:])
            # The bound holds at the best u. There L is lower by half the squared Newton
            # decrement |k_u|^2; the factor 2 covers higher orders.
            gap += float(k[:, 0] @ k[:, 0])
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
            end = self._quadratic_minimum(
                part, here, C, k, x, penalty, max(_INNER * limit, _QUADRATIC * gap)
            )
            moved = float(here.gradient @ (end - x))
            promised = moved + penalty(end[U:]) - penalty(x[U:])
            along = partial(self._along, part, x, end, penalty)
            found = halved(along, value, promised, _ROUNDING * value)
            if found is None or found[0].x is x:
                return x
            # The decrease that the model promises is below what the loss resolves.
            x, last, at_rounding = found[0].x, gap, -promised <= _ROUNDING * value

    def _along(
        self,
        part: RestrictedLoss,
        x: np.ndarray,
        end: np.ndarray,
        penalty: Penalty,
        size: float,
    ) -> _Trial:
        """Return a trial on the way from x to end, or x itself when time is up."""
        # The first trial belongs to the step; no other is made when time is up.
        if size < 1 and self.monitor.late():
            return _Trial(x, -math.inf)
        # x + 1 (end - x) would not be 0 to the bit where end is 0.
        there = x + size * (end - x) if size < 1 else end
        return _Trial(there, part.at(there).value + penalty(there[self._U :]))

    def _quadratic_minimum(
        self,
        part: RestrictedLoss,
        here: QuadraticModel,
        C: DenseRoot | ChainRoot,
        k: np.ndarray,
        x: np.ndarray,
        penalty: Penalty,
        limit: float,
    ) -> np.ndarray:
        """Minimise a quadratic model and the penalty by coordinate descent.

        The descent ends at a gap of `limit`, by (5) for the quadratic; the result is
        (u, beta). The model `here` is that at x.

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
            curvature, cost = here.rows.curvature, Z.entries + border.size

            def descend(tol: float, sweeps: int) -> tuple[int, float]:
                return _coordinate_descent.descend_columns(
                    *csr_arrays(Z.columns), curvature, border, *factors, tol,
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

        # A call makes so few sweeps that it returns in time for Ctrl-C.
        at_once = max(1, int(self.monitor.SLICE / (_SECONDS * cost)))
        tol, sweeps = limit, 0
        while sweeps < _SWEEPS and not self.monitor.late():
            check_cancelled()
            done, decrease = descend(tol, at_once)
            sweeps += done
            # The gap costs a product with all columns, so that it is computed only once
            # steps are small.
            if decrease <= tol:
                value = here.value + penalty(b)
                gap = value - penalty.bound(here.value, gradient(), b)
                if gap <= limit or tol <= LEAST * self.null.value:
                    break
                tol *= _FINER
        # u follows beta: its optimum in the quadratic is linear in the step of beta.
        free -= border.T @ (b - x[U:])
        return np.concatenate([x[:U] + C.unwhitened(free), b])

    def _solution(
        self, u: np.ndarray, beta: np.ndarray, penalty: Penalty
    ) -> NetSolution:
        """Return the best u for beta, from u, with the certificate of this point."""
        return self._certified(*self.loss.at_best_thresholds(u, beta), beta, penalty)

    def _certified(
        self,
        u: np.ndarray,
        value: float,
        slope: np.ndarray,
        beta: np.ndarray,
        penalty: Penalty,
    ) -> NetSolution:
        """Return a point, where L and G are known, with its bound (5)."""
        # With beta = 0 the penalty may be infinite, and its product with 0 NaN.
        primal = value + (penalty(beta) if beta.any() else 0.0)
        dual, end = penalty.bound(value, slope, beta), (self._status, self._n_iter)
        return NetSolution(u, beta, value, slope, primal, dual, *end)
