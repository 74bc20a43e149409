"""Newton's method for psi, which need not be convex, and descent from u = inf.

Where the Hessian is indefinite a multiple of the penalty's is added until it is not, as
if C were smaller: steps then are descent directions, but short, and are lengthened
while that helps. J. Nocedal, S. J. Wright, Numerical Optimization, Springer, 2006,
Algorithms 3.2 and 3.3.
"""

from __future__ import annotations

import math

import numpy as np

from .._numerics.cholesky import Cholesky
from .._numerics.rows import strips
from .._watch.convergence import Status
from .._watch.monitor import Monitor, OutOfTime
from .objective import TlsPoint, TruncatedObjective

_FALL = 1e-4  # of Armijo's rule
_ROUNDING = 1e-14  # of psi, relative to it
_HALVINGS = 40
_MAX_SHIFT = 1e200
_POWERS = 30
_LIMITS = (Status.MAX_ITER, Status.MAX_TIME, Status.STOPPED)


class Descent:
    """Newton steps along which psi never rises by more than its rounding.

    Attributes
    ----------
    point : TlsPoint
        Where the last descent ended.
    status : Status
        Why it went no further; once a limit is met, descents stay where they begin.
    n_iter : int
        Steps of all descents.
    """

    point: TlsPoint

    def __init__(self, psi: TruncatedObjective, max_iter: int, monitor: Monitor):
        self.psi, self.max_iter, self.monitor = psi, max_iter, monitor
        self.n_iter, self.status = 0, Status.CONVERGED
        self._shift = 0.0

    def run(self, point: TlsPoint, tol: float) -> None:
        """Go from the point downhill until its violation is at most tol."""
        self.point = point
        while True:
            stop = self.monitor.stop(self.n_iter, self.point.violation)
            if self.point.violation <= tol:
                # where every slack is cut off the slope is 0: no end of descents that
                # a limit has cut short
                if self.status not in _LIMITS:
                    self.status = Status.CONVERGED
                return
            if self.n_iter >= self.max_iter:
                stop = Status.MAX_ITER
            try:
                with self.monitor.limited():
                    there = self._step() if stop is None else None
            except OutOfTime:
                continue  # the monitor says why
            if there is None:
                self.status = Status.STALLED if stop is None else stop
                return
            self.point = there
            self.n_iter += 1

    def below_saddle(self) -> TlsPoint | None:
        """Return a point below a saddle, where a descent may end by symmetry.

        None below a minimum, whose Hessian is positive definite.
        """
        self._shift = 0.0
        try:
            with self.monitor.limited():
                factor = self._factor()
        except OutOfTime:
            self.status = Status.MAX_TIME
            return None
        if factor is None or self._shift == 0:
            return None
        here, T = self.point, self.psi.T
        # A fixed seed: the fit must not depend on anything but its arguments.
        d = np.random.default_rng(0).standard_normal((here.x.size, 1))
        for _ in range(_POWERS):  # towards the direction that curves down most
            if not (size := np.linalg.norm(d)) > 0:
                return None  # H is so large that its inverse is all rounding
            d = factor.solve(d / size)
        d = d[:, 0] / max(np.abs(d[:T]).max(), self.psi.largest_score(d[T:, 0]))
        for halving in range(_HALVINGS):
            # At a saddle psi falls on both sides, or by higher orders on one.
            for step in (0.5**halving, -(0.5**halving)):
                there = self.psi.at(here.x + step * d, here.u)
                if there.value < (1 - _ROUNDING) * here.value:
                    self.n_iter += 1
                    return there
        return None

    def _factor(self) -> Cholesky | None:
        """Factorise H + shift price, with a shift that makes it positive definite.

        The shift acts like a smaller C, because price / C is in H. None where H
        overflows.
        """
        H = self.psi.hessian(self.point)
        least = 1e-3 * float(np.abs(np.diagonal(H) / self.psi.price).mean())
        # The last shift is a good guess; it fades so that Newton's full speed returns.
        self._shift = self._shift / 4 if self._shift > least else 0.0
        while self._shift < _MAX_SHIFT:
            shifted = np.empty_like(H)
            for rows in strips(len(H)):  # new memory costs more than the copy
                shifted[rows] = H[rows]
            np.fill_diagonal(shifted, np.diagonal(H) + self._shift * self.psi.price)
            try:
                return Cholesky(shifted, self.psi.n_threads)
            except np.linalg.LinAlgError:
                self._shift = max(least, 4 * self._shift)
        return None

    def _step(self) -> TlsPoint | None:
        """Armijo's rule along Newton's direction from a step of 1; None where no step
        is left that improves.
        """
        here, factor = self.point, self._factor()
        if factor is None:
            return None
        d = factor.solve(-here.gradient[:, None])[:, 0]
        slope = float(here.gradient @ d)
        for halving in range(_HALVINGS):
            size = 0.5**halving
            there = self.psi.at(here.x + size * d, here.u)
            rise = there.value - here.value
            # near the minimum values differ by their rounding only
            if rise <= _FALL * size * slope or (
                rise <= _ROUNDING * here.value
                and there.violation <= 0.5 * here.violation
            ):
                # A shifted Hessian makes steps too short; a true one makes them right.
                return self._lengthened(there, d, size) if self._shift > 0 else there
        return None

    def _lengthened(self, there: TlsPoint, d: np.ndarray, size: float) -> TlsPoint:
        """Return the step of this size doubled while psi falls."""
        here = self.point
        while True:
            size *= 2
            farther = self.psi.at(here.x + size * d, here.u)
            if not farther.value < there.value:
                return there
            there = farther


_LOWERED = 0.7  # u from one step to the next
_LOOSE = 1e-2  # tolerance of the steps before the last


def minimize(
    psi: TruncatedObjective,
    begin: TlsPoint,
    u: float,
    max_iter: int,
    monitor: Monitor,
) -> tuple[TlsPoint, Status, int]:
    """Return (best point, why it is the last, Newton steps).

    First np-SVOR, u = inf, from `begin`; its minimum is unique. Then u falls in steps
    from where it first cuts a slack, each begun at the last solution. The final descent
    begins at the lower of the two that np-SVOR and these steps give at u, and goes on
    below any saddle, so that psi never ends above that of np-SVOR's solution.
    """
    descent, tol = Descent(psi, max_iter, monitor), monitor.tol
    with monitor.stage("u = inf"):
        descent.run(begin, tol)
    if math.isfinite(u):
        start = descent.point
        for higher in _path(u, psi.largest_slack(start) + psi.eta):
            if monitor.late():
                break
            with monitor.stage(f"u = {higher:.3g}"):
                descent.run(psi.at(descent.point.x, higher), max(tol, _LOOSE))
        # The path may end in a worse local minimum than the direct way from u = inf.
        ends = psi.at(start.x, u), psi.at(descent.point.x, u)
        below: TlsPoint | None = min(ends, key=lambda point: point.value)
        while below is not None:
            descent.run(below, tol)
            converged = descent.status is Status.CONVERGED
            below = descent.below_saddle() if converged else None
    return descent.point, descent.status, descent.n_iter


def _path(u: float, largest: float) -> list[float]:
    """Return values between the largest slack and u, falling."""
    values: list[float] = []
    # Above the largest slack no term is truncated: psi is that of u = inf.
    while (higher := u / _LOWERED ** (1 + len(values))) < largest:
        values.append(higher)
    return values[::-1]
