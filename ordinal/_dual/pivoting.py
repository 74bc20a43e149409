"""When the pivots of an active set end a fit: the Python side of the active set."""

import numpy as np

from .._solvers._active_set import ActiveSet
from .._solvers._pair_smo import Smo
from .gram import Gram
from .program import Points

INNER_TOL = 0.9  # of tol, on float32 rows: rounding must not lift the end above tol
_PIVOTS = 500  # of an active set before the monitor is asked again
_ROOM = 512  # free variables for which pivots are cheaper than what else there is
NS_DOUBLE = 8.0  # an entry of K in double; tools/measure_costs.py measures it


class Pivoting:
    """The active set of a problem, and of those after it on a path.

    It is made, with K in double, when pivots are first due.

    Attributes
    ----------
    room : int
        Free variables that it can hold; 0 where K cannot be held in double.
    """

    def __init__(self, gram: Gram, curvature: np.ndarray, share: int = 1):
        """`curvature` (T,) is that of the z of the T groups, 0 where they have none;
        `share` problems are solved over the same K.
        """
        self.gram, self.curvature = gram, curvature
        n, T = len(gram.diagonal), curvature.size
        self.room = min(_ROOM, T * n) + T if gram.doubles else 0
        self._setup = NS_DOUBLE * n**2 / share
        self._active: ActiveSet | None = None

    def announce(self, task: Smo) -> None:
        """Tell a task when pivots pay."""
        held = 0 if self._active is None else self._active.size
        has_double = self._active is not None or self.gram.exact is not None
        task.allow_pivots(self.room, held, 0.0 if has_double else self._setup)

    def minimise(
        self, task: Smo, points: Points, k: int, tol: float, max_iter: int
    ) -> int:
        """Pivots that problem k may take; how many."""
        if self._active is None:
            K = self.gram.in_double()
            self._active = ActiveSet(K, self.curvature, self.room)
        lo, hi, pn, pp = points.terms
        most = min(_PIVOTS, max_iter - task.steps)
        pivots = self._active.minimise(
            points.entries[k],
            points.f[k],
            lo[k],
            hi[k],
            pn[k],
            pp[k],
            INNER_TOL * tol,
            most,
        )
        self.announce(task)
        return pivots
