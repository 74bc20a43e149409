"""Schedule of the tasks of searches: which are to do, running and done.

A job yields lists of tasks from its `steps`, receives each outcome through `note`, is
asked for more after the last outcome of a list, and returns its result. Several jobs
run side by side. The results depend neither on where tasks ran nor on the order in
which they ended.

A `Store` is a folder of finished tasks, in which a later search finds them. The name of
a file is a digest of everything that the result of its task depends on: data, rows,
points, function, options, scoring and version of the package. A search therefore finds
exactly what an earlier one has computed. Which of several metrics was the deciding one
makes no difference, because scores are stored by name.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from .._files.writing import writing
from .._input.checks import as_path, shown
from .._rows.rows import LocalRows
from .._solvers import _build_info
from .._watch.convergence import Status, held_back
from .._watch.progress import Progress
from .work import Outcome, Task, Work
from .workers import Workers

_LARGEST = 1 << 24  # bytes; a larger file is damaged
_STATUSES = {"failed", "fitted", *(status.value for status in Status)}
_PLAIN = (str, bytes, int, float, bool, type(None))
# The fields of the data of a work that outcomes depend on
_DECIDING = ("X", "feature_names", "y", "classes", "weight", "preprocess")


class Store:
    """Folder of finished tasks. Files are written atomically.

    A file holds a checksum of its content, which includes the name of the task. A file
    that a search has not stored for the task is ignored, so that the task is run again
    and the file replaced.

    Attributes
    ----------
    damaged : int
        Number of files that were ignored.
    """

    def __init__(self, folder: str | os.PathLike[str], work: Work):
        self._folder = Path(as_path("store", folder))
        self._folder.mkdir(parents=True, exist_ok=True)
        self.damaged = 0
        digest = hashlib.blake2b(_build_info.VERSION.encode(), digest_size=16)
        deciding = {"fit": work.fit, "options": work.options}
        deciding |= {name: getattr(work.data, name) for name in _DECIDING}
        deciding["scorers"] = sorted(work.scorers, key=lambda scorer: scorer.name)
        if work.data.group is not None:
            deciding["group"] = work.data.group
        for name, value in deciding.items():
            _feed(digest, value, name)
        self._work = digest
        self._scores = [scorer.name for scorer in work.scorers]

    @classmethod
    def from_argument(
        cls, store: str | os.PathLike[str] | None, work: Work
    ) -> Store | None:
        """Return the store that the argument of a search asks for."""
        return None if store is None else cls(store, work)

    def get(self, task: Task) -> list[Outcome] | None:
        """Return the outcomes of a task, if it has been done."""
        path = self._path(task)
        if not os.path.lexists(path):
            return None
        try:
            return self._read(path, task.n_outcomes)
        except (ValueError, RecursionError):  # the latter by deeply nested JSON
            self.damaged += 1
            return None

    def put(self, task: Task, outcomes: list[Outcome]) -> None:
        """Store the outcomes of a task."""
        path = self._path(task)
        if os.path.lexists(path) and not _is_regular(path):
            return  # no search has written a pipe, a folder or a link
        content = {
            "task": path.stem,
            "points": [{k: _shown(v) for k, v in p.items()} for p in task.points],
            "outcomes": [
                asdict(o) | {"scores": dict(zip(self._scores, o.scores, strict=True))}
                for o in outcomes
            ],
        }
        entry = {"checksum": _checksum(content), "content": content}
        with writing(path) as file:
            file.write(json.dumps(entry, indent=1).encode("ascii"))

    def _read(self, path: Path, n_outcomes: int) -> list[Outcome]:
        """Return the outcomes in a file; ValueError unless `put` wrote it."""
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise ValueError("not a file of outcomes")
        match json.loads(path.read_text(encoding="ascii")):
            case {
                "checksum": checksum,
                "content": {"task": path.stem, "outcomes": list(outcomes)} as content,
            } if checksum == _checksum(content) and len(outcomes) == n_outcomes:
                return [self._outcome(node) for node in outcomes]
        raise ValueError("it is not a list of outcomes")

    def _outcome(self, node: Any) -> Outcome:
        """Return a stored outcome; ValueError for one that no task returns."""
        match node:
            case {
                "scores": dict(by_name),
                "status": str(status),
                "failure": str(failure),
                "seconds": float(seconds),
            } if len(node) == 4 and by_name.keys() == set(self._scores):
                scores = tuple(by_name[name] for name in self._scores)
                if (
                    all(type(score) is float for score in scores)
                    and status in _STATUSES
                    and (status == "failed") == bool(failure)
                    and (not failure or all(map(math.isnan, scores)))
                    and 0 <= seconds < math.inf
                ):
                    return Outcome(scores, status, failure, seconds)
        raise ValueError("not an outcome")

    def _path(self, task: Task) -> Path:
        digest = self._work.copy()
        for f in fields(task):
            _feed(digest, getattr(task, f.name), f.name)
        return self._folder / f"{digest.hexdigest()}.json"


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _checksum(content: Any) -> str:
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def _shown(value: Any) -> Any:
    """Return a value that JSON can hold, for people who read the file."""
    plain = isinstance(value, _PLAIN) and not isinstance(value, bytes)
    return value if plain else shown(value)


def _feed(digest: Any, value: Any, where: str) -> None:  # noqa: C901, one case per type
    """Add the content of a value to a digest.

    `where` names the value in the message about one that has no lasting identity.
    """
    if isinstance(value, np.generic):
        value = value.item()
    digest.update(f"\n{type(value).__name__} ".encode())
    if isinstance(value, _PLAIN):
        digest.update(repr(value).encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, LocalRows):
        with closing(value.chunks()) as chunks:
            for X in chunks:
                _feed(digest, X, where)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            _feed(digest, getattr(value, f.name), f"{where}.{f.name}")
    elif isinstance(value, Mapping):
        digest.update(str(len(value)).encode())  # the end is known
        for key, item in value.items():
            _feed(digest, key, where)
            _feed(digest, item, f"{where}[{shown(key)}]")
    elif isinstance(value, list | tuple | range):
        digest.update(str(len(value)).encode())
        for i, item in enumerate(value):
            _feed(digest, item, f"{where}[{i}]")
    elif isinstance(value, partial):
        for item in (value.func, value.args, value.keywords):
            _feed(digest, item, where)
    elif "<" not in getattr(value, "__qualname__", "<"):  # no lambda, nothing local
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    else:
        raise TypeError(
            f"{where} is {shown(value)}, which store= cannot identify in a later "
            "run: pass a function of a module, a number, a string or an array"
        )


R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class TaskSource(Protocol[R_co]):
    """Job of the schedule: it yields tasks and makes a result of their outcomes."""

    def steps(self) -> Generator[list[Task], object, R_co]: ...
    def note(self, place: int, outcomes: list[Outcome]) -> None: ...


def run(
    jobs: Sequence[TaskSource[R]],
    workers: Workers,
    store: Store | None,
    progress: Progress,
) -> tuple[list[R], int]:
    """Run jobs; return their results and the number of damaged files of the store.

    Ctrl-C stops the tasks that run and cancels the others.
    """
    schedule = Schedule(jobs, store, progress)
    with workers, held_back():
        try:
            results = schedule.run(workers.submit)
        finally:
            schedule.cancel()  # after an error, tasks may be left
            progress.close()
    return results, 0 if store is None else store.damaged


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
