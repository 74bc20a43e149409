"""Newton's method for psi, which need not be convex, and descent from u = inf.

If the Hessian is indefinite, a multiple of the penalty's Hessian is added until it is
positive definite, as if C were smaller. The step then descends, but is short; it is
doubled while psi falls. J. Nocedal, S. J. Wright, Numerical Optimization, Springer,
2006, Algorithms 3.2 and 3.3.
"""

from __future__ import annotations

import math

import numpy as np

from .._numerics.cholesky import Cholesky
from .._numerics.descent import HALVINGS, halved, shifted
from .._numerics.rows import strips
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .objective import TlsPoint, TruncatedObjective

_ROUNDING = 1e-14  # relative rounding error of psi
_MAX_SHIFT = 1e200
_POWERS = 30  # steps of inverse iteration
_LIMITS = (Status.MAX_ITER, Status.MAX_TIME, Status.STOPPED)


class Descent:
    """Descents by Newton steps, none of which raises psi by more than its rounding.

    Attributes
    ----------
    point : TlsPoint
        End of the last descent.
    status : Status
        Reason for this end; after a limit is met, later descents make no step.
    n_iter : int
        Number of steps of all descents.
    """

    point: TlsPoint

    def __init__(self, psi: TruncatedObjective, max_iter: int, monitor: Monitor):
        self.psi, self.max_iter, self.monitor = psi, max_iter, monitor
        self.n_iter, self.status = 0, Status.CONVERGED
        self._shift = 0.0

    def run(self, point: TlsPoint, tol: float) -> None:
        """Descend from a point until the violation is at most `tol`."""
        self.point = point
        while True:
            stop = self.monitor.stop(self.n_iter, self.point.violation)
            if self.point.violation <= tol:
                # A limit that ended an earlier descent remains the status: the slope is
                # 0 also where every slack is truncated.
                if self.status not in _LIMITS:
                    self.status = Status.CONVERGED
                return
            if self.n_iter >= self.max_iter:
                stop = Status.MAX_ITER
            try:
                with self.monitor.limited():
                    there = self._step() if stop is None else None
            except OutOfTime:
                continue  # `monitor.stop` then returns the reason
            if there is None:
                self.status = Status.STALLED if stop is None else stop
                return
            self.point = there
            self.n_iter += 1

    def below_saddle(self) -> TlsPoint | None:
        """Return a point with a lower psi if the descent has ended at a saddle point.

        Return None at a minimum, whose Hessian is positive definite.
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
        # A fixed seed, because the fit must depend on its arguments only.
        d = np.random.default_rng(0).standard_normal((here.x.size, 1))
        # Inverse iteration leads to the direction of the most negative curvature.
        for _ in range(_POWERS):
            if not (size := np.linalg.norm(d)) > 0:
                return None  # H is so large that its inverse is rounding alone
            d = factor.solve(d / size)
        d = d[:, 0] / max(np.abs(d[:T]).max(), self.psi.largest_score(d[T:, 0]))
        for halving in range(HALVINGS):
            # psi falls on both sides, or by its third derivative on one.
            for step in (0.5**halving, -(0.5**halving)):
                there = self.psi.at(here.x + step * d, here.u)
                if there.value < (1 - _ROUNDING) * here.value:
                    self.n_iter += 1
                    return there
        return None

    def _factor(self) -> Cholesky | None:
        """Factorise H + shift diag(penalties), positive definite by a shift >= 0.

        The shift acts like a smaller C, because H contains diag(penalties) / C. Return
        None if H overflows.
        """
        H, penalties = self.psi.hessian(self.point), self.psi.penalties
        least = 1e-3 * float(np.abs(np.diagonal(H) / penalties).mean())
        # The last shift is a good guess. It decreases, so that Newton's method becomes
        # quadratically convergent again.
        self._shift = self._shift / 4 if self._shift > least else 0.0

        def factor(shift: float) -> Cholesky:
            A = np.empty_like(H)
            for rows in strips(len(H)):  # in strips, so that Ctrl-C has its turn
                A[rows] = H[rows]
            np.fill_diagonal(A, np.diagonal(H) + shift * penalties)
            return Cholesky(A, self.psi.n_threads)

        found = shifted(factor, self._shift, least=least, growth=4, most=_MAX_SHIFT)
        if found is None:
            return None
        made, self._shift = found
        return made

    def _step(self) -> TlsPoint | None:
        """Return the point after a Newton step, shortened by Armijo's rule.

        Return None if no step improves.
        """
        here, factor = self.point, self._factor()
        if factor is None:
            return None
        d = factor.solve(-here.gradient[:, None])[:, 0]
        slope = float(here.gradient @ d)

        def along(size: float) -> TlsPoint:
            return self.psi.at(here.x + size * d, here.u)

        def settles(there: TlsPoint, rise: float) -> bool:
            return bool(
                rise <= _ROUNDING * here.value
                and there.violation <= 0.5 * here.violation
            )

        found = halved(along, here.value, slope, settles=settles)
        # Only steps of a shifted Hessian are too short.
        if found is None or not self._shift > 0:
            return None if found is None else found[0]
        return self._lengthened(found[0], d, found[1])

    def _lengthened(self, there: TlsPoint, d: np.ndarray, size: float) -> TlsPoint:
        """Return the end of a step along d, which is doubled while psi falls.

        `there` is the end of the step of the given size.
        """
        here = self.point
        while True:
            size *= 2
            farther = self.psi.at(here.x + size * d, here.u)
            if not farther.value < there.value:
                return there
            there = farther


_LOWERED = 0.7  # ratio of adjacent values of u
_LOOSE = 1e-2  # tolerance for values of u above the final one


def minimize(
    psi: TruncatedObjective, begin: TlsPoint, u: float, max_iter: int, monitor: Monitor
) -> tuple[TlsPoint, Status, int]:
    """Minimise psi; return the best point, the status, and the number of Newton steps.

    The first descent, from `begin`, is np-SVOR with u = inf, whose minimum is unique.
    Then u decreases from the largest slack to its final value, and each descent is warm
    started at the last solution. The final descent begins at the better one of two
    points, the solutions of np-SVOR and of the last u, and leaves saddle points. psi is
    therefore never above that of the solution of np-SVOR.
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
    """Return decreasing values between the largest slack and u."""
    values: list[float] = []
    # Above the largest slack no term is truncated, so that psi is that of u = inf.
    while (higher := u / _LOWERED ** (1 + len(values))) < largest:
        values.append(higher)
    return values[::-1]
