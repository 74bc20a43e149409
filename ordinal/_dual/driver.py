"""The loop around solvers that work block by block: `_smo.py`, `_thresholds.py`.

A kernel advances tasks by blocks, with the interpreter's lock released, and returns
several times a second. Between its turns missing rows of K are computed, Newton steps
or pivots of an active set taken where SMO turns slow, and the monitor is asked. What
counts in the end is judged afresh, from the kernel in double: float32 rows leave errors
that add up.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait

import numpy as np

from .._model.convergence import Status
from .._model.monitor import Monitor
from .._numerics.threads import Pool
from .._solvers._active_set import ActiveSet
from .._solvers._blocks import BlockTask, Phase
from .gram import Gram

AIM = 0.9  # of tol, on float32 rows: rounding must not lift the end above tol
# A Newton step is due when few variables wait at their bounds to join the free ones,
# for then it nearly ends the fit, and SMO has spent this many times its cost
PATIENCE = 0.5
LEAST_ROWS = 64  # of K that must be held, for blocks worth the name
_PIVOTS = 500  # of an active set before the monitor is asked again
_FACE_ROOM = 512  # free variables for which pivots are cheaper than what else there is
_NS_OF_ENTRY = 8.0  # of K in double, in the unit of a task's costs
_IN_VAIN = 6  # times that all is recomputed without a fifth less violation to show


def block_size(n: int, capacity: int) -> int:
    """Variables in an SMO block: a larger one reads K less often, but each of its steps
    costs in proportion. Measured best on 1000 to 8000 rows; no more than the rows of K
    that are held."""
    return min(1536, max(64, n // 4 // 64 * 64), max(16, capacity // 16 * 16))


class Face:
    """The active set of a problem, and of those after it on a path: made, with K in
    double, when pivots are first due.

    Attributes
    ----------
    room : int
        Free variables that it can hold; 0 where K cannot be held in double.
    """

    def __init__(self, gram: Gram, curvature: np.ndarray, share: int = 1):
        """`curvature` (T,) is that of the z of the T equalities, 0 where they have
        none; `share` problems are solved over the same K."""
        self.gram, self.curvature = gram, curvature
        n, T = len(gram.diagonal), curvature.size
        self.room = min(_FACE_ROOM, T * n) + T if gram.doubles else 0
        self._setup = _NS_OF_ENTRY * n**2 / share
        self._active: ActiveSet | None = None

    def equip(self, task: BlockTask) -> None:
        """Tell a task when pivots pay."""
        size = 0 if self._active is None else self._active.size
        setup = self._setup if self.gram.exact is None else 0.0
        task.equip(self.room, size, setup)

    def minimise(self, task: BlockTask, *problem: np.ndarray, tol, max_iter) -> int:
        """Pivots of `ActiveSet.minimise` that the task may take; how many."""
        if self._active is None:
            K = self.gram.in_double()
            self._active = ActiveSet(K, self.curvature, self.room)
        most = min(_PIVOTS, max_iter - task.steps)
        pivots = self._active.minimise(*problem, AIM * tol, most)
        self.equip(task)
        return pivots


def run(
    tasks: list,
    points: np.ndarray,
    advance: Callable[[float, int], None],
    leap: Callable[[int], int],
    judge: Callable[[], np.ndarray],
    *,
    gram: Gram,
    tol: float,
    n_threads: int,
    monitor: Monitor,
) -> tuple[np.ndarray, Status | None]:
    """Improve every task until its violation is at most tol, or nothing helps.

    Parameters
    ----------
    tasks : list of r kernel tasks
    points : (r, ...) array
        Their dual points, which the tasks change in place.
    advance : callable(seconds, n_threads)
        Blocks of SMO on whatever task is in phase RUN or READY.
    leap : callable(k)
        A Newton step of task k, or pivots of its active set; how many, 0 if it did not
        move.
    judge : callable()
        All that follows from `points` afresh, in double; returns the violations, (r,).

    Returns
    -------
    violation : (r,) array
    stopped : Status or None
        Why the monitor ended it.
    """
    everyone = range(len(tasks))
    judged = np.full(len(tasks), np.inf)  # least violation
    vain = np.zeros(len(tasks), int)  # times judged since
    best = points[:0]  # where it was
    n_workers = n_threads if gram.concurrent else 1
    under_way: dict[int, Future] = {}  # leaps on threads of the pool

    def step(k: int) -> bool:
        steps = leap(k)
        # where it did not move, it is not worth trying again soon
        patience = PATIENCE if steps else 2 * tasks[k].patience
        tasks[k].leapt(patience, steps)
        return steps > 0

    with Pool(n_workers) as pool:
        while True:
            going = any(t.phase <= Phase.READY for t in tasks)
            if going:
                seconds = Monitor.SLICE / (4 if under_way else 1)
                advance(seconds, max(1, n_threads - len(under_way)))
            elif under_way:
                wait(under_way.values(), Monitor.SLICE, FIRST_COMPLETED)
            for k in [k for k, future in under_way.items() if future.done()]:
                under_way.pop(k).result()
            if not gram.full:
                _fetch(gram, tasks)
            going = any(t.phase < Phase.NEWTON for t in tasks)
            for k in everyone:  # one thread stays with SMO while there is SMO to do
                due = tasks[k].phase == Phase.NEWTON and k not in under_way
                if due and len(under_way) < max(1, n_workers - going):
                    future = pool.submit(step, k)
                    if future is not None:
                        under_way[k] = future
            stopped = monitor.stop(
                sum(t.steps for t in tasks), max(t.violation for t in tasks)
            )
            if stopped is not None:
                wait(under_way.values())
                return judge(), stopped
            if under_way or any(t.phase < Phase.DONE for t in tasks):
                continue
            violation = judge()
            if (violation <= tol).all():
                return violation, None
            if best.size == 0:
                best = points.copy()
            vain = np.where(violation < 0.8 * judged, 0, vain + 1)
            better = violation < judged
            best[better], judged[better] = points[better], violation[better]
            again = (violation > tol) & (vain < _IN_VAIN)
            again &= [t.phase != Phase.LIMIT for t in tasks]
            if not again.any():
                if (violation > judged).any():  # the last steps did harm
                    points[:] = best
                    violation = judge()
                return violation, None
            for k in map(int, np.flatnonzero(again)):
                # what K in float made of a direction without curvature SMO would only
                # do again; a step on K itself goes along it to the next bound
                moved = vain[k] > 0 and step(k)
                tasks[k].phase = Phase.DONE if moved else Phase.RUN


def verdict(
    tasks: list, curved_down: bool, short_of_tol: bool, stopped: Status | None
) -> Status:
    """Why the fit ended: what K is counts first, then what was reached."""
    if curved_down or any(t.indefinite for t in tasks):
        return Status.INDEFINITE
    if not short_of_tol:
        return Status.CONVERGED
    if stopped is not None:
        return stopped
    limit = any(t.phase == Phase.LIMIT for t in tasks)
    return Status.MAX_ITER if limit else Status.STALLED


def curves_down(gram: Gram, g: np.ndarray, G: np.ndarray) -> bool:
    """Whether some g'Kg, of (r, n) g and G = gK, is below what rounding makes of 0."""
    floor = -1e-8 * gram.diagonal.max() * np.abs(g).sum(axis=1) ** 2
    return bool((np.einsum("ij,ij->i", g, G) < floor).any())


def snap(g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """g in its box, with what is at an end of it up to rounding at just that end.

    A variable that is hair's breadth inside would have to be moved back by SMO, one at
    a time.
    """
    near = 1e-12 * (hi - lo)
    return np.where(g <= lo + near, lo, np.where(g >= hi - near, hi, g))


def mend(
    g: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: np.ndarray | float = 0.0
) -> np.ndarray:
    """A point of each row's box with the given sum, near g: a start for SMO.

    What lies at an end of its box stays there, if the others can make up the sum.
    """
    g = snap(g, lo, hi)
    excess = g.sum(axis=1) - total
    inside = (lo < g) & (g < hi)
    room = np.where(inside, np.where(excess[:, None] > 0, g - lo, hi - g), 0.0)
    all_room = room.sum(axis=1)
    enough = all_room > np.abs(excess)
    part = np.where(enough, excess / np.where(enough, all_room, 1), 0)
    mended = np.clip(g - part[:, None] * room, lo, hi)
    whole = np.broadcast_to(total, excess.shape)
    poor = ~enough & (excess != 0)
    if poor.any():
        mended[poor] = feasible(g[poor], lo[poor], hi[poor], whole[poor])
    return mended


def feasible(
    g: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: np.ndarray | float = 0.0
) -> np.ndarray:
    """The point of each row's box with the given sum that is nearest to that row of g.

    It is clip(g - t, lo, hi) for some t, found by bisection; what rounding leaves of
    the sum is spread over the room in the box.
    """
    total = np.reshape(total, (-1, 1))
    low = (g - hi).min(axis=1, keepdims=True)
    high = (g - lo).max(axis=1, keepdims=True)
    for _ in range(60):
        t = 0.5 * (low + high)
        above = np.clip(g - t, lo, hi).sum(axis=1, keepdims=True) > total
        low, high = np.where(above, t, low), np.where(above, high, t)
    g = np.clip(g - t, lo, hi)
    excess = g.sum(axis=1, keepdims=True) - total
    room = np.where(excess > 0, g - lo, hi - g)
    all_room = room.sum(axis=1, keepdims=True)
    part = np.where(all_room > 0, excess / np.where(all_room > 0, all_room, 1), 0)
    return np.clip(g - part * room, lo, hi)


def _fetch(gram: Gram, tasks: list) -> None:
    """Compute missing rows of K for as many waiting tasks as there is room."""
    rows = np.empty(0, np.int32)
    for task in tasks:
        if task.phase == Phase.WAIT:
            more = np.union1d(rows, task.needed())
            if more.size > gram.capacity:
                break
            rows = more
            task.phase = Phase.READY
    if rows.size:
        gram.ensure(rows)
