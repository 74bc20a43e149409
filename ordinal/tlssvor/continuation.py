"""The minimum of psi for a finite u, from that of u = inf."""

from __future__ import annotations

import math

from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .newton import Descent
from .objective import TlsPoint, TruncatedObjective

_LOWERED = 0.7  # u from one step to the next
_LOOSE = 1e-2  # tolerance of the steps before the last


def minimize(
    psi: TruncatedObjective,
    begin: TlsPoint,
    u: float,
    max_iter: int,
    monitor: Monitor,
) -> tuple[TlsPoint, Status, int]:
    """(best point, why it is the last, Newton steps).

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
        ends = psi.at(start.x, u), psi.at(descent.point.x, u)
        below: TlsPoint | None = min(ends, key=lambda point: point.value)
        while below is not None:
            descent.run(below, tol)
            converged = descent.status is Status.CONVERGED
            below = descent.below_saddle() if converged else None
    return descent.point, descent.status, descent.n_iter


def _path(u: float, largest: float) -> list[float]:
    """Values between the largest slack and u, falling."""
    values: list[float] = []
    while (higher := u / _LOWERED ** (1 + len(values))) < largest:
        values.append(higher)
    return values[::-1]
