"""Early stopping by held-out rows."""

import numpy as np

from .._model.convergence import Status
from .._model.monitor import Monitor
from .layout import Layout
from .objective import PairLoss

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
