"""Early stopping by held-out rows, and what both solvers return."""

from typing import NamedTuple

import numpy as np

from .._model.convergence import Status
from .._model.monitor import Monitor
from .layout import Layout
from .objective import Objective, PairLoss

_PATIENCE = 10  # evaluations on the held-out rows without a better one


class HeldOutMonitor(Monitor):
    """A monitor that also ends a fit when held-out rows are no longer predicted better.

    A solver leaves the pieces to judge in `latest` before it asks to go on.

    Attributes
    ----------
    latest : (P, m) array or None
    best : (P, m) array or None
        The pieces with the least loss on the held-out rows so far.
    """

    _held: PairLoss | None = None
    latest: np.ndarray | None = None
    best: np.ndarray | None = None

    def watch(self, layout: Layout, held: PairLoss) -> None:
        """Evaluate on these rows from now on."""
        self._layout, self._held = layout, held
        self._least, self._since = np.inf, 0

    def judge(self) -> bool:
        """Evaluate the latest pieces on the held-out rows; whether to stop."""
        if self._held is None or self.latest is None:
            return False
        value = self._held.value(self._layout.table(self.latest))
        self._since += 1
        if value < self._least:
            self._least, self._since, self.best = value, 0, self.latest.copy()
        self.latest = None
        return self._since >= _PATIENCE

    def _ask(self, n_iter: int, violation: float) -> Status | None:
        return super()._ask(n_iter, violation) or (
            Status.HELD_OUT if self.judge() else None
        )


class Solution(NamedTuple):
    """The pieces a solver ends with; value and violation are those of (P) there."""

    W: np.ndarray
    value: float
    violation: float
    n_iter: int
    status: Status


def solution(
    objective: Objective,
    W: np.ndarray,
    monitor: HeldOutMonitor,
    n_iter: int,
    status: Status,
) -> Solution:
    """W, or the best for the held-out rows, with a record of its own."""
    monitor.latest = W
    monitor.judge()
    if monitor.best is not None:
        W = monitor.best
        if status in (Status.CONVERGED, Status.STALLED, Status.N_EPOCHS):
            status = Status.HELD_OUT
    value, dW = objective.at(W)
    return Solution(W, value, objective.violation(W, dW), n_iter, status)
