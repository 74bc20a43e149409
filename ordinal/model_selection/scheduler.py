"""Schedule of the tasks of searches: which are to do, running and done.

A job yields lists of tasks from its `steps`, receives each outcome through `note`, is
asked for more after the last outcome of a list, and returns its result. Several jobs
run side by side. The results depend neither on where tasks ran nor on the order in
which they ended.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from .._input.types import Executor
from .._watch.convergence import filter_held
from .._watch.progress import Progress
from .spaces import Space
from .store import Store
from .work import Outcome, Task, Work
from .workers import Workers

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class TaskSource(Protocol[R_co]):
    """Job of the schedule: it yields tasks and makes a result of their outcomes."""

    def steps(self) -> Generator[list[Task], object, R_co]: ...
    def note(self, place: int, outcomes: list[Outcome]) -> None: ...


def run(
    jobs: Sequence[TaskSource[R]],
    work: Work,
    space: Space,
    executor: Executor | None,
    n_threads: int | None,
    store: str | os.PathLike[str] | None,
    progress: Progress,
) -> tuple[list[R], int]:
    """Run jobs; return their results and the number of damaged files of the store.

    Ctrl-C stops the tasks that run and cancels the others.
    """
    workers = Workers(work, space, executor, n_threads)
    kept = None if store is None else Store(store, work)
    schedule = Schedule(jobs, kept, progress)
    with workers, warnings.catch_warnings():
        filter_held("ignore")  # because every outcome records them
        try:
            results = schedule.run(workers.submit)
        finally:
            schedule.cancel()  # after an error, tasks may be left
            progress.close()
    return results, 0 if kept is None else kept.damaged


@dataclass(frozen=True, slots=True)
class Queued:
    """Task with the number of its job and its position in the list of the job."""

    job: int
    place: int
    task: Task


class Schedule(Generic[R]):
    """Schedule of the tasks of all jobs."""

    def __init__(
        self, jobs: Sequence[TaskSource[R]], store: Store | None, progress: Progress
    ):
        self._jobs, self._store, self._progress = jobs, store, progress
        self._steps = [job.steps() for job in jobs]
        self._results: dict[int, R] = {}
        self._under_way: dict[Future[Any], Queued] = {}
        self._to_do: deque[Queued] = deque()
        self._awaited = [0] * len(jobs)  # number of outcomes until a job can go on

    def run(self, submit: Callable[..., Future[Any]]) -> list[R]:
        """Submit tasks and report their outcomes until no job has more tasks.

        Returns the results of the jobs, in their order.
        """
        # In reverse, because every job puts its tasks before those of the others.
        for number in reversed(range(len(self._jobs))):
            self._advance(number)
        while self._to_do or self._under_way:
            self._submit(submit)
            done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
            for future in done:
                entry = self._under_way.pop(future)
                outcomes = future.result()
                # The worker does not have the work (see `run_task`).
                if outcomes is None:
                    self._under_way[submit(entry.task, with_work=True)] = entry
                else:
                    self._finish(entry, outcomes)
        return [self._results[number] for number in range(len(self._jobs))]

    def cancel(self) -> None:
        """Cancel the tasks that have not begun."""
        for future in self._under_way:
            future.cancel()

    def _submit(self, submit: Callable[..., Future[Any]]) -> None:
        """Submit waiting tasks in their order.

        The outcomes of a task that has run in this thread are stored before the next
        one, so that Ctrl-C loses at most one task.
        """
        while self._to_do:
            entry = self._to_do.popleft()
            future = submit(entry.task)
            self._under_way[future] = entry
            if future.done():
                return

    def _finish(self, entry: Queued, outcomes: list[Outcome]) -> None:
        """Store and report the outcomes of a task; let its job go on after the last."""
        if self._store is not None:
            self._store.put(entry.task, outcomes)
        self._note(entry, outcomes, stored=False)
        self._awaited[entry.job] -= 1
        if not self._awaited[entry.job]:
            self._advance(entry.job)

    def _note(self, entry: Queued, outcomes: list[Outcome], stored: bool) -> None:
        self._jobs[entry.job].note(entry.place, outcomes)
        self._progress.add(len(outcomes), stored)

    def _advance(self, number: int) -> None:
        """Let a job go on; its new tasks come before those of other jobs."""
        while True:
            try:
                tasks = next(self._steps[number])
            except StopIteration as end:
                self._results[number] = end.value
                return
            to_do = []
            for place, task in enumerate(tasks):
                entry = Queued(number, place, task)
                stored = None if self._store is None else self._store.get(task)
                if stored is None:
                    to_do.append(entry)
                else:
                    self._note(entry, stored, stored=True)
            self._awaited[number] = len(to_do)
            if to_do:
                # Jobs that have begun are finished first: their results are complete
                # soonest.
                self._to_do.extendleft(reversed(to_do))
                return
