"""`solve`: SMO by blocks, Newton steps and pivots in turn, judged by the kernel itself.

A task of the pair SMO kernel is in one of these phases:

    RUN, READY         SMO works at it, with the interpreter's lock released
    WAIT               rows of K are missing, and are computed when no task can go on
                       without
    NEWTON             a Newton step or pivots of an active set are due, or under way
                       on a thread of the pool
    DONE, LIMIT, STUCK it rests: within tol by its own f, out of steps, or without
                       progress

When all tasks rest, f is computed afresh from the kernel in double, and violations are
judged by it: float32 rows of K leave errors that add up. Problems above tol run again.

Why it ends. SMO leaves RUN and READY after finitely many blocks (see the kernel). Every
Newton step lowers the objective or doubles the work that SMO does before the next one,
and pivots are counted with the pair steps, which `max_iter` limits. Between judgements
SMO thus takes at most `max_iter` steps; and a problem runs again only if its violation
has fallen by a fifth within the last _ROUNDS judgements, which it can do only so often
before it is below tol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._numerics.threads import Begun, Pool
from .._solvers._active_set import ActiveSet
from .._solvers._pair_smo import Phase, Smo, Workspace, advance, groups_of_block
from .._watch.cancellation import OutOfTime, ended_by
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor
from . import many_groups
from .newton import newton_step
from .program import Gram, Points, Program

INNER_TOL = 0.9  # of tol, on float32 rows: rounding must not lift the end above tol
_PIVOTS = 500  # pivots of an active set between two calls of the monitor
_ROOM = 512  # free variables up to which pivots cost less than SMO or Newton steps
NS_DOUBLE = 8.0  # ns to compute an entry of K in double (tools/measure_costs.py)


class Pivoting:
    """Active set of a problem, and of its successors on a path.

    The set, with K in double, is created when pivots are first due.

    Attributes
    ----------
    room : int
        Capacity in free variables; 0 where K cannot be held in double.
    """

    def __init__(self, gram: Gram, curvature: np.ndarray, share: int = 1):
        """Prepare an active set, which is created when it is first needed.

        `curvature` (T,) is that of the variables z of the T groups, or 0 for groups
        without z; `share` problems are solved over the same K.
        """
        self.gram, self.curvature = gram, curvature
        n, T = len(gram.diagonal), curvature.size
        self.room = min(_ROOM, T * n) + T if gram.doubles else 0
        self._setup = NS_DOUBLE * n**2 / share
        self._active: ActiveSet | None = None

    def announce(self, task: Smo) -> None:
        """Pass a task the costs by which it decides when pivots pay."""
        held = 0 if self._active is None else self._active.size
        has_double = self._active is not None or self.gram.exact is not None
        task.allow_pivots(self.room, held, 0.0 if has_double else self._setup)

    def minimise(
        self, task: Smo, points: Points, k: int, tol: float, max_iter: int
    ) -> int:
        """Take the pivots that problem k may take, and return their number."""
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


# Number of rows from which threads share the work from the beginning. At C = 1 smaller
# problems take some 10 ms, which is as long as a thread may wait for its processor on a
# busy machine (tools/bench/busy.py). Their work is therefore shared only if it is not
# done within a first slice of `Monitor.SLICE`.
_SHARED_AT_ONCE = 2000
# A Newton step is due when two conditions hold: SMO has spent this many times the cost
# of the step, and few variables at their bounds want to become free, because the step
# then nearly ends the fit (tools/measure_costs.py compares other values).
_PATIENCE = 0.5
# Least number of pair steps per row of a fit, within a factor of two. Measured at C = 1
# and 4000 rows: 0.25 (one-vs-one), 1 (NPSVOR, OPBE), 2 (SVORIM); it grows with C.
_STEPS_PER_ROW = 0.5
_DENSE = 0.5  # share of boxes with an interior from which steps of all groups pay
_LEAST_ROWS = 64  # rows of K that must be held, so that blocks are not too small
_ROUNDS = 6  # judgements within which the violation must fall by a fifth
# Largest number of entries of a block, for one group and for several, as measured by
# tools/measure_costs.py.
_LARGEST_BLOCK, _LARGEST_OF_GROUPS = 1536, 2560
_BLOCK_OF_GROUPS = 768  # least size for several groups, if n allows
_BLOCK_OF_FEW = 512  # least size for one group, up to half the rows


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Result of `solve`, in the symbols of `program`."""

    g: np.ndarray  # (P, T, n)
    z: np.ndarray  # (P, T) zeros unless priced
    mu: np.ndarray  # (P, T + 1) zeros unless coupled
    f: np.ndarray  # (P, n) from the kernel in double, unless time was up
    low: np.ndarray  # (P, T)
    up: np.ndarray  # (P, T)
    violation: np.ndarray  # (P,)
    n_iter: np.ndarray  # (P,) pair steps, Newton steps and pivots
    status: Status
    reached: np.ndarray  # (P,) whether within tol by f from the kernel

    @property
    def b(self) -> np.ndarray:
        """Thresholds (P, T), the middle of what is optimal within violation."""
        return np.asarray(0.5 * (self.low + self.up))


def least_rows(T: int) -> int:
    """Return the least number of rows of K to hold for problems of T groups.

    A block needs room for two entries on each side of every group, so that it always
    contains the pair that violates optimality most.
    """
    return max(_LEAST_ROWS, 4 * groups_of_block(T))


def solve(
    gram: Gram,
    program: Program,
    g: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    n_threads: int,
    monitor: Monitor,
    pivoting: Sequence[Pivoting] | None = None,
    from_start: bool = False,
) -> Solution:
    """Solve all problems of a program from the feasible point g, (P, T, n).

    The solver stops when every violation is <= tol, or after max_iter steps of one
    problem. The result does not depend on n_threads. `pivoting` holds the active sets
    of the last fit of a path, one per problem. If time is up before f = K beta is known
    at g, the solver begins at 0 instead, if that is feasible, or raises OutOfTime if
    `from_start`.
    """
    try:
        with monitor.limited(Monitor.GRACE):
            points = Points(gram, program, g)
    except OutOfTime:
        if from_start:
            raise
        # 0 is not feasible for sums with constants, so that g is then waited for.
        begin = np.zeros_like(g) if program.total is None else g
        points = Points(gram, program, begin)
    if pivoting is None:
        pivoting = [Pivoting(gram, program.curvature, len(g)) for _ in g]
    return _Fit(points, pivoting, tol, max_iter, n_threads, monitor).run()


def _block_size(gram: Gram, T: int, n: int) -> int:
    """Return the number of entries of an SMO block of a problem of n rows.

    A larger block reads K less often, but the cost of a step is proportional to its
    size. The block is never larger than the number of rows of K that are held.
    """
    rows = gram.capacity
    if T > 1 and not gram.full:
        # Where memory is short, the block's own part of K should not be large.
        rows = max(min(_LEAST_ROWS, rows), rows // 4)
    largest = _LARGEST_BLOCK if T == 1 else _LARGEST_OF_GROUPS
    few = min(_BLOCK_OF_FEW, n // 2) if T == 1 else 0  # the kernel fills it if it pays
    q = min(largest, max(64, n // 4, few) // 64 * 64, max(16, rows // 16 * 16))
    if T > 1:  # a row may be in the block for more than one group
        q = max(q, min(n // 2, _BLOCK_OF_GROUPS, rows) // 32 * 32)
        q = max(q, 4 * groups_of_block(T))
    # A block needs all of its rows of K at once; with fewer it would never be filled.
    if min(q, n) > gram.capacity:
        raise ValueError(f"{gram.capacity} rows of K do not hold a block of {q}")
    return q


class _Fit:
    """State of one call of `solve`: tasks, steps under way, and the best points."""

    def __init__(
        self,
        points: Points,
        pivoting: Sequence[Pivoting],
        tol: float,
        max_iter: int,
        n_threads: int,
        monitor: Monitor,
    ):
        gram, program, (P, T, n) = points.gram, points.program, points.g.shape
        self.gram, self.points, self.pivoting = gram, points, pivoting
        self.tol, self.max_iter, self.monitor = tol, max_iter, monitor
        self.n_threads = n_threads
        self.brief = n < _SHARED_AT_ONCE  # one thread is expected to suffice
        # A kernel function that the caller wrote may not be thread-safe.
        self.n_workers = n_threads if gram.concurrent else 1
        parts = [program.row_ranges(k) for k in range(P)]
        rows = [int((a[:, 1] - a[:, 0]).sum()) for a in parts]
        self.n_rows = sum(rows)
        sizes = [_block_size(gram, T, n_rows) for n_rows in rows]
        lo, hi, pn, pp = points.terms
        self.tasks = [
            Smo(
                gram.K, gram.slot, gram.diagonal, lo[k], hi[k], pn[k], pp[k],
                program.curvature, program.coupled, points.entries[k], points.mu[k],
                points.f[k], parts[k], sizes[k], INNER_TOL * tol, max_iter, _PATIENCE,
            )
            for k in range(P)
        ]  # fmt: skip
        for task, active in zip(self.tasks, pivoting, strict=True):
            active.announce(task)
        self.space = Workspace(n, T, max(sizes), min(n_threads, P))
        self.under_way: dict[int, Begun[bool]] = {}
        self.left = False  # True once the fit is over, so that steps under way end
        self.certain = True  # False if f could not be recomputed from the kernel
        self.least = np.full(P, np.inf)  # least violation judged
        self.rounds = np.zeros(P, int)  # judgements since `least` fell by a fifth
        self.best: tuple[np.ndarray, np.ndarray] | None = None  # entries, mu at `least`

    def run(self) -> Solution:
        """Take all steps of the fit, and return its result."""
        try:
            with Pool(self.n_workers) as pool:
                return self.solution(*self.until_stopped(pool))
        finally:
            self.left = True  # after an error steps may still be under way

    def until_stopped(self, pool: Pool) -> tuple[np.ndarray, Status | None]:
        """Return the violations at the end, and what stopped the fit before it."""
        least = int(_STEPS_PER_ROW * self.n_rows)
        if self.monitor.late():  # begin no further slice
            self.monitor.forecast(0, least, self.monitor.seconds)
            begin = self.points.violations()
            return begin, self.monitor.stop(0, float(begin.max()))
        # Where it pays, proximal points bring all groups near their optimum at once.
        self.approach()
        began, first = self.monitor.seconds, self.steps()
        while True:
            self.smo(pool)
            if self.monitor.seconds - began > Monitor.SLICE:
                self.brief = False
            self.collect()
            # If rows of K are replaced, all tasks first come to rest. The rows that are
            # computed in one product, whose rounding depends on its shape, and the
            # rows that they replace then depend on neither timing nor threads.
            if self.gram.full or not self.at_work():
                self.start_steps(pool)
                self.fetch_rows()
            # The number of pair steps grows with the rows, so their rate predicts the
            # duration of the fit.
            self.monitor.forecast(self.steps() - first, least, began)
            stopped = self.monitor.stop(
                self.steps(), max(task.violation for task in self.tasks)
            )
            if stopped is not None:
                self.left = True
                # The steps write to the points, which are judged next.
                for step in self.under_way.values():
                    step.wait()
                return self.violations_in_time(), stopped
            if not self.under_way and all(t.phase >= Phase.DONE for t in self.tasks):
                violation = self.end_or_resume()
                if violation is not None:
                    return violation, None if self.certain else Status.MAX_TIME

    @property
    def n_threads_now(self) -> int:
        """Return the number of threads that share the next slice of work."""
        return 1 if self.brief else self.n_threads

    def steps(self) -> int:
        """Return the number of pair steps of all problems."""
        return sum(task.steps for task in self.tasks)

    def approach(self) -> None:
        """Move to a point near the optimum first if SMO alone would take long."""
        program, (P, T, _) = self.points.program, self.points.g.shape
        is_slow = (
            P == 1
            # Blocks leave out groups, of whose rows SMO cannot see violations.
            and groups_of_block(T) < T
            and not program.coupled
            and program.pn is program.pp
            and self.gram.room_for_double
            and (program.lo < program.hi).mean() > _DENSE
        )
        if not is_slow:
            return
        try:
            with self.monitor.limited():
                n = many_groups.approach(
                    self.points,
                    INNER_TOL * self.tol,
                    self.max_iter,
                    self.monitor,
                    self.n_threads,
                )
        except OutOfTime:  # the point is feasible, and the monitor says why
            return
        self.tasks[0].resume(_PATIENCE, n)

    def violations_in_time(self) -> np.ndarray:
        """Return the violations by f from the kernel, if time permits.

        Otherwise f is as the steps left it.
        """
        try:
            with self.monitor.limited(Monitor.GRACE):
                return self.points.violations_afresh()
        except OutOfTime:
            self.certain = False
            return self.points.violations()

    def at_work(self) -> bool:
        """Return True if SMO can continue with at least one task."""
        return any(task.phase <= Phase.READY for task in self.tasks)

    def smo(self, pool: Pool) -> None:
        """Run SMO, or wait for steps under way."""
        if self.at_work():
            # Slices are shorter while Newton steps are under way, because SMO does not
            # notice their end.
            seconds = Monitor.SLICE / (4 if self.under_way else 1)
            n_threads = max(1, self.n_threads_now - len(self.under_way))
            advance(self.tasks, self.space, seconds, n_threads)
        elif self.under_way:
            pool.listen(Monitor.SLICE)

    def collect(self) -> None:
        """Remove the steps that ended, or raise their exception."""
        for k in [k for k, step in self.under_way.items() if step.done()]:
            self.under_way.pop(k).result()

    def fetch_rows(self) -> None:
        """Compute missing rows of K for as many waiting tasks as there is room."""
        if self.gram.full:
            return
        rows, tasks = np.empty(0, np.int32), []
        for task in self.tasks:
            if task.phase == Phase.WAIT:
                more = np.union1d(rows, task.needed())
                # The rest waits for the next round, when rows of these tasks may be
                # replaced.
                if more.size > self.gram.capacity:
                    break
                rows = more
                tasks.append(task)
        if rows.size:
            try:
                with self.monitor.limited():
                    self.gram.ensure(rows)
            except OutOfTime:  # the tasks keep waiting, and the monitor ends the fit
                return
        for task in tasks:
            task.phase = Phase.READY

    def start_steps(self, pool: Pool) -> None:
        """Start due Newton steps and pivots; one thread is left to SMO."""
        going = any(task.phase < Phase.NEWTON for task in self.tasks)
        for k, task in enumerate(self.tasks):
            if task.phase == Phase.NEWTON and k not in self.under_way:
                # One worker at least: with one thread a Newton step takes the place of
                # SMO.
                if len(self.under_way) >= max(1, self.n_workers - going):
                    return
                if self.brief:
                    self.step(k)
                elif (step := pool.submit(self.step, k)) is not None:
                    self.under_way[k] = step

    def step(self, k: int) -> bool:
        """Take a Newton step of problem k, or pivots, and return whether it moved."""
        task, points = self.tasks[k], self.points
        try:
            with ended_by(self.over):
                # Tied groups share a sum, which an active set does not represent.
                if task.pivots and not points.mu[k].any():
                    steps = self.pivoting[k].minimise(
                        task, points, k, self.tol, self.max_iter
                    )
                else:
                    # A single problem has no other work beside its Newton step.
                    n_threads = self.n_threads_now if len(self.tasks) == 1 else 1
                    steps = int(newton_step(points, k, n_threads))
        except OutOfTime:  # nothing has moved
            return False
        # A step that did not move the problem is not worth trying again soon.
        task.resume(_PATIENCE if steps else 2 * task.patience, steps)
        return steps > 0

    def over(self) -> bool:
        """Return True if the fit no longer needs the steps under way."""
        return self.left or self.monitor.late()

    def end_or_resume(self) -> np.ndarray | None:
        """Return the violations if the fit is over, or resume problems above tol."""
        points, tol = self.points, self.tol
        violation: np.ndarray = self.violations_in_time()
        if not self.certain or (violation <= tol).all():
            return violation
        if self.best is None:
            self.best = points.entries.copy(), points.mu.copy()
        self.rounds = np.where(violation < 0.8 * self.least, 0, self.rounds + 1)
        better = violation < self.least
        self.least[better] = violation[better]
        for kept, now in zip(self.best, (points.entries, points.mu), strict=True):
            kept[better] = now[better]
        again = (violation > tol) & (self.rounds < _ROUNDS)
        again &= [task.phase != Phase.LIMIT for task in self.tasks]
        if not again.any():
            if (violation > self.least).any():  # the last steps increased a violation
                points.entries[:], points.mu[:] = self.best
                violation = points.violations_afresh()
            return violation
        for k in map(int, np.flatnonzero(again)):
            # Rounding of K to float32 can give curvature to a direction that has none.
            # SMO would repeat the same steps along it, whereas a step on K itself goes
            # to the next bound.
            moved = self.rounds[k] > 0 and self.step(k)
            self.tasks[k].phase = Phase.DONE if moved else Phase.RUN
        return None

    def solution(self, violation: np.ndarray, stopped: Status | None) -> Solution:
        """Return the result of the fit from its points."""
        points = self.points
        state = (points.g, points.z, points.mu, points.f, points.low, points.up)
        return Solution(
            *state,
            violation=violation,
            n_iter=np.array([task.steps for task in self.tasks]),
            status=self.status(violation, stopped),
            reached=(violation <= self.tol) & self.certain,
        )

    def status(self, violation: np.ndarray, stopped: Status | None) -> Status:
        """Return the reason for the end: an indefinite K first, then the violations."""
        if self.points.has_negative_curvature() or any(
            task.indefinite for task in self.tasks
        ):
            return Status.INDEFINITE
        if (violation <= self.tol).all() and self.certain:
            return Status.CONVERGED
        if stopped is not None:
            return stopped
        limit = any(task.phase == Phase.LIMIT for task in self.tasks)
        return Status.MAX_ITER if limit else Status.STALLED


def objectives(
    program: Program, g: np.ndarray, f: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of (P) and (D) of every problem without prices.

    g is feasible, f = K beta has shape (P, n), and b has shape (P, T).
    """
    squared = np.einsum("pn,pn->p", g.sum(axis=1), f)
    primal = 0.5 * squared + program.loss(f, b)
    return primal, np.asarray(-0.5 * squared - program.phi(g))


def records(
    monitor: Monitor,
    status: Status,
    reached: np.ndarray,
    n_iter: np.ndarray,
    violation: np.ndarray,
    primal: np.ndarray,
    dual: np.ndarray,
) -> list[Convergence]:
    """Record the end of each problem.

    `status` applies to those that did not reach `tol`.
    """
    parts = []
    for p in range(reached.size):
        done = reached[p] and status is not Status.INDEFINITE
        own = Status.CONVERGED if done else status
        parts.append(monitor.record(own, n_iter[p], violation[p], primal[p], dual[p]))
    return parts
