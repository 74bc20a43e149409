"""Runs the tasks of searches on an executor, and keeps what they return in a folder.

A job yields lists of tasks from its `steps`, hears of each outcome through `note`, is
asked for more when it has heard of all, and returns its result. Several jobs run side
by side. What comes back depends neither on where tasks ran nor on the order in which
they ended.

A store is a folder with a file for every finished task. Its name is a digest of all
that the result depends on: data, rows, points, function, options, scoring and version
of the package. So a search finds what an earlier one has done, and nothing else. Which
of several metrics decided then does not matter: scores are kept by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from .._input.sparse import CSR
from .._solvers import _build_info
from . import work as _tasks
from .progress import Progress
from .work import Outcome, Task, Work

R = TypeVar("R", covariant=True)


class Job(Protocol[R]):
    def steps(self) -> Generator[list[Task], object, R]: ...
    def note(self, place: int, outcomes: list[Outcome]) -> None: ...


_OURS = (str, bytes, int, float, bool, type(None))


class Store:
    """A folder of finished tasks. Files appear whole or not at all."""

    def __init__(self, folder: Any, work: Work):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        work_fields = (f.name for f in fields(work) if f.name not in ("stop", "_rows"))
        digest = hashlib.blake2b(_build_info.VERSION.encode(), digest_size=16)
        for name in work_fields:
            value = getattr(work, name)
            if name == "scorers":
                value = sorted(value, key=lambda scorer: scorer.name)
            _feed(digest, value, name)
        self._work = digest
        self._scores = [scorer.name for scorer in work.scorers]

    def get(self, task: Task) -> list[Outcome] | None:
        """What the task returned, if it has been done."""
        path = self._path(task)
        try:
            stored = json.loads(path.read_text(encoding="ascii"))
            return [
                Outcome(**o | {"scores": tuple(o["scores"][m] for m in self._scores)})
                for o in stored["outcomes"]
            ]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} is not what a search stores ({error}); delete it to have its "
                "task done again"
            ) from error

    def put(self, task: Task, outcomes: list[Outcome]) -> None:
        """Keep what the task returned."""
        path = self._path(task)
        points = [{k: _shown(v) for k, v in p.items()} for p in task.points]
        content = {
            "points": points,
            "outcomes": [
                asdict(o) | {"scores": dict(zip(self._scores, o.scores, strict=True))}
                for o in outcomes
            ],
        }
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        try:
            temporary.write_text(json.dumps(content, indent=1), encoding="ascii")
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _path(self, task: Task) -> Path:
        digest = self._work.copy()
        for f in fields(task):
            _feed(digest, getattr(task, f.name), f.name)
        return self._folder / f"{digest.hexdigest()}.json"


def _shown(value: Any) -> Any:
    return value if isinstance(value, _OURS) else repr(value)


def _feed(digest: Any, value: Any, where: str) -> None:
    """Add a value to a digest, by what it holds and not by what it is called here."""
    if isinstance(value, np.generic):
        value = value.item()
    digest.update(f"\n{type(value).__name__} ".encode())
    if isinstance(value, _OURS):
        digest.update(repr(value).encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, CSR) or (
        is_dataclass(value) and not isinstance(value, type)
    ):
        for f in fields(value):
            _feed(digest, getattr(value, f.name), f"{where}.{f.name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _feed(digest, key, where)
            _feed(digest, item, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple | range):
        for i, item in enumerate(value):
            _feed(digest, item, f"{where}[{i}]")
    elif isinstance(value, partial):
        for item in (value.func, value.args, value.keywords):
            _feed(digest, item, where)
    elif "<" not in getattr(value, "__qualname__", "<"):  # no lambda, nothing local
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    else:
        raise TypeError(
            f"{where} is {value!r}, which a store= cannot know again; take a function "
            "of a module, a number, a string or an array"
        )


# Executors


class _Here:
    """Runs a task when it is submitted."""

    def submit(self, call: Callable, *arguments: Any) -> Future:
        future: Future = Future()
        future.set_result(call(*arguments))
        return future


@dataclass(slots=True)
class Placement:
    """Where tasks run, and on how many threads each.

    `executor` is the caller's; without one, tasks run side by side on `n_threads`
    threads of this process if `parallel`, else in turn with that many each.
    """

    executor: Any
    n_threads: int | None
    parallel: bool


def run(
    jobs: Sequence[Job[R]],
    work: Work,
    placement: Placement,
    store: Store | None,
    progress: Progress,
) -> list[R]:
    """The results of the jobs. Ctrl-C ends what runs here and cancels the rest."""
    key = os.urandom(16).hex()
    folder = None
    executor, own = placement.executor, None
    n_threads = placement.n_threads
    if executor is not None:
        folder = tempfile.mkdtemp(prefix="ordinal-")
        n_threads = 1 if n_threads is None else n_threads
    elif placement.parallel and n_threads != 1:
        executor = own = ThreadPoolExecutor(n_threads)
        n_threads = 1
    else:
        executor = _Here()
    work.stop = threading.Event()
    _tasks.publish(key, work)
    board = _Board(jobs, store, progress)
    try:
        path, brought = "", b""
        if folder:
            path, brought = str(Path(folder, "work")), work.published()
            Path(path).write_bytes(brought)

        def submit(task: Task, bring: bool) -> Future:
            more = (brought,) if bring else ()
            call = _tasks.run_task
            return executor.submit(call, key, path, task, n_threads, *more)

        with warnings.catch_warnings():
            _tasks.quiet()
            board.run(submit)
    except BaseException:
        work.stop.set()
        for future in board.waiting:
            future.cancel()
        raise
    finally:
        if own is not None:
            own.shutdown(wait=False, cancel_futures=True)
        _tasks.withdraw(key)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        progress.close()
    return board.results


class _Board:
    """Which tasks of which jobs are to do and under way."""

    def __init__(self, jobs: Sequence[Job], store: Store | None, progress: Progress):
        self._jobs, self._store, self._progress = jobs, store, progress
        self._steps = [job.steps() for job in jobs]
        self.results: list[Any] = [None] * len(jobs)
        self.waiting: dict[Future, tuple[int, int, Task]] = {}
        self._todo: deque[tuple[int, int, Task]] = deque()  # job, place in it, task
        self._missing = [0] * len(jobs)  # outcomes, before a job can go on

    def run(self, submit: Callable[[Task, bool], Future]) -> None:
        for number in reversed(range(len(self._jobs))):
            self._advance(number)
        while self._todo or self.waiting:
            while self._todo:
                entry = self._todo.popleft()
                future = submit(entry[2], False)
                self.waiting[future] = entry
                if future.done():  # it ran in this thread: see to it first
                    break
            done, _ = wait(self.waiting, return_when=FIRST_COMPLETED)
            for future in done:
                number, place, task = self.waiting.pop(future)
                outcomes = future.result()
                if _tasks.lacking(outcomes):
                    self.waiting[submit(task, True)] = number, place, task
                    continue
                if self._store is not None:
                    self._store.put(task, outcomes)
                self._note(number, place, outcomes, stored=False)
                self._missing[number] -= 1
                if not self._missing[number]:
                    self._advance(number)

    def _note(self, number: int, place: int, outcomes: list, stored: bool) -> None:
        self._jobs[number].note(place, outcomes)
        self._progress.add(len(outcomes), stored)

    def _advance(self, number: int) -> None:
        """Let a job go on; what it asks for comes before what others wait for."""
        while True:
            try:
                tasks = next(self._steps[number])
            except StopIteration as end:
                self.results[number] = end.value
                return
            todo = []
            for place, task in enumerate(tasks):
                stored = None if self._store is None else self._store.get(task)
                if stored is None:
                    todo.append((number, place, task))
                else:
                    self._note(number, place, stored, stored=True)
            self._missing[number] = len(todo)
            if todo:
                self._todo.extendleft(reversed(todo))
                return
