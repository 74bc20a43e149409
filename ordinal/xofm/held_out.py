"""Early stopping by held-out rows."""

from __future__ import annotations  # numpy.random is slow to import

from typing import Any

import numpy as np

from .._input.checks import check_real
from .._model.folds import held_out_size, hold_out
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .layout import Layout
from .objective import LocatedRows, PairLoss

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

    def stop(self, n_iter: int, violation: float) -> Status | None:
        # of this part alone: the fits of folds have held-out rows of their own
        return super().stop(n_iter, violation) or (
            Status.HELD_OUT if self.judge() else None
        )


def hold_out_rows(
    rows: LocatedRows, early_stopping: Any, rng: np.random.Generator
) -> tuple[LocatedRows, LocatedRows]:
    """Rows to train on, and a share of each rank that is held out."""
    rule = "a share between 0 and 1, or None"
    share = check_real("early_stopping", early_stopping, lambda v: 0 < v < 1, rule)
    rank = np.unique(rows.rank, return_inverse=True)[1]
    held = hold_out(rank, held_out_size(share, rank.size, rank.max() + 1), rng)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    if np.unique(rows.rank[test]).size < 2:
        raise ValueError(
            f"early_stopping={share} holds out {test.size} rows of one class: no pairs"
        )
    return rows.take(train), rows.take(test)
