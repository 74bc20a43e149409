"""Runs the tasks of searches: which are to do, which are under way, which are done.

A job yields lists of tasks from its `steps`, hears of each outcome through `note`, is
asked for more when it has heard of all, and returns its result. Several jobs run side
by side. What comes back depends neither on where tasks ran nor on the order in which
they ended.

A store is a folder of finished tasks, in which a later search finds them. The name of
a file is a digest of all that its result depends on: data, rows, points,
function, options, scoring and version of the package. So a search finds what an earlier
one has done, and nothing else. Which of several metrics decided then does not matter:
scores are kept by name.

Transport of tasks to workers, in this process and in others.

The work is published under a key. Workers in this process look it up; those in other
processes read it from a file once and keep it. A worker that cannot see the file
answers None, and is sent the task again with the work beside it.

When the search ends, also by an error or by Ctrl-C, the tasks that run are stopped. In
other processes that shows by the file, which goes then, and for which they look.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import os
import pickle
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from .._files.writing import writing
from .._input.checks import as_path, shown
from .._input.types import Executor as Executor
from .._numerics.threads import resolve_n_threads
from .._rows.rows import LocalRows
from .._solvers import _build_info
from .._watch.convergence import Status, filter_held
from .._watch.progress import Progress
from ..kernels.functions import NAMED
from .spaces import Space
from .work import Outcome, Task, Work

_published: dict[str, Work] = {}  # where tasks in this process find their work


class InTurn:
    """An executor that runs a task when it is submitted."""

    def submit(self, call: Any, /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call(*arguments))
        return future


class Stopped(BaseException):
    """Raised in a thread that runs a task of a search that has ended."""


class Ended:
    """Flag that a search has ended.

    Its own process sets it; in others, the file of its work is then gone.

    A process that was forked from that of the search has the search's own object.
    """

    EVERY = 0.05  # seconds between two looks at the file

    def __init__(self, path: str, process: int | None = None):
        self._path, self._process = path, process
        self._next_look = 0.0
        self._set = False
        self._lock = threading.Lock()
        self._running: set[int] = set()  # threads in `stoppable`

    def set(self) -> None:
        with self._lock:
            if not self._set:
                self._set = True
                # Fits of a caller's own function check no flag: an exception is all
                # that ends them.
                for thread in self._running:
                    _raise_in(thread, Stopped)

    def is_set(self) -> bool:
        now = time.monotonic()
        # A look at a file costs microseconds: not at every step of a fit.
        if not self._set and not self.is_here and now >= self._next_look:
            self._next_look = now + self.EVERY
            if not os.path.exists(self._path):
                self.set()
        return self._set

    @property
    def is_here(self) -> bool:
        """Return whether this is the process of the search."""
        return os.getpid() == self._process

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Raise Stopped in the body when the search ends.

        It comes between two steps of the interpreter, and a callback only between two
        steps of a fit.
        """
        with self._watched():
            me = threading.get_ident()
            with self._lock:
                if self._set:
                    raise Stopped
                self._running.add(me)
            try:
                yield
            finally:
                with self._lock:
                    self._running.discard(me)
                    raised = self._set
                # An exception on its way would otherwise come up in code after this
                # block.
                if raised:
                    _await_in(me)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Watch for the file from another process than that of the search."""
        if self.is_here:
            yield
            return
        done = threading.Event()

        def watch() -> None:
            while not done.wait(self.EVERY) and not self.is_set():
                pass

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            done.set()


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have an exception raised in a thread, in place of one that has not been yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error)
    )


def _await_in(me: int) -> None:
    """Let Stopped arrive here, in this thread, where it may be on its way.

    CPython could also take it back, but would then look for it for ever: every call
    becomes slower, and in Python 3.11 a traced one (a debugger, coverage) never ends.
    """
    try:
        _raise_in(me, Stopped)
        while True:
            pass
    except Stopped:
        pass


class Workers:
    """The workers of one search, as a context: on entry the work is published for them,
    on exit it is withdrawn, and after an error the fits that run are stopped.

    Tasks go to the caller's `executor`. Without one they run in this process: side by
    side on `n_threads` threads where they call nothing but this package, as two threads
    may not be fit to call a function of the caller's, else in turn. So do those whose
    rows are read in chunks: a source may not be fit for two passes at a time, and fits
    side by side would each take the memory of one.
    """

    def __init__(
        self, work: Work, space: Space, executor: Executor | None, n_threads: int | None
    ):
        self._work = work
        # No two searches share a key, whatever processes their workers are in.
        self._key = os.urandom(16).hex()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._path = ""
        self._ended = Ended("")
        self._pickled = b""
        self._n_threads = n_threads
        self._executor: Executor = InTurn()
        self._pool: ThreadPoolExecutor | None = None
        if executor is not None:
            if not hasattr(executor, "submit"):
                raise TypeError(
                    f"executor must have a submit method, got {shown(executor)}"
                )
            # One thread per task, because executors run as many tasks as there are
            # processors.
            self._executor, self._n_threads = executor, n_threads or 1
            self._pickled = work.pickled()
        elif work.chunked is None and _calls_only_ours(work, space):
            if (n_threads := resolve_n_threads(n_threads)) > 1:
                self._executor = self._pool = ThreadPoolExecutor(n_threads)
            self._n_threads = 1

    def __enter__(self) -> Workers:
        if self._pickled:
            self._folder = tempfile.TemporaryDirectory(
                prefix="ordinal-", ignore_cleanup_errors=True
            )
            # A file rather than an argument of each task: the data travels once per
            # worker.
            self._path = str(Path(self._folder.name, "work"))
            Path(self._path).write_bytes(self._pickled)
        self._work.stop = self._ended = Ended(self._path, os.getpid())
        _published[self._key] = self._work
        return self

    def submit(self, task: Task, with_work: bool = False) -> Future[Any]:
        """Hand over a task, if need be with the work beside it."""
        beside = (self._pickled,) if with_work else ()
        return self._executor.submit(
            run_task, self._key, self._path, task, self._n_threads, *beside
        )

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            self._ended.set()
        if self._pool is not None:
            # Not waiting: Ctrl-C should end a search at once.
            self._pool.shutdown(wait=False, cancel_futures=True)
        _published.pop(self._key, None)
        if self._folder is not None:
            self._folder.cleanup()


def _calls_only_ours(work: Work, space: Space) -> bool:
    kernels = [work.given.get("kernel", "rbf")]
    kernels += getattr(space, "values", {}).get("kernel", [])
    return work.ours and all(isinstance(k, (str, *NAMED.values())) for k in kernels)


def run_task(
    key: str, path: str, task: Task, n_threads: int | None, pickled: bytes | None = None
) -> list[Outcome] | None:
    """Run a task in a worker; None asks for the work to be sent as well."""
    work = _published.get(key)
    # A worker on another machine does not see the file, and is sent the work itself.
    if work is None or pickled is not None:
        work = _received(path, pickled)
        if work is None:
            return None
        for old in list(_published)[:-1]:  # a worker serves one search after the other
            _published.pop(old, None)
        _published[key] = work
    stop = work.stop
    if not isinstance(stop, Ended):
        return _outcomes(work, task, n_threads)
    try:
        # A fit of the caller's own, in a thread, may hold what it must let go of.
        with stop.stoppable() if work.ours or _in_main_thread() else nullcontext():
            outcomes = _outcomes(work, task, n_threads)
    except Stopped:
        return None
    # The outcomes of fits that were stopped are none. If the search goes on, and
    # somebody else has removed the file, it sends the task again with the work.
    return None if stop.is_set() else outcomes


def _received(path: str, pickled: bytes | None) -> Work | None:
    """Return the work as it was sent or, else, as its file holds it."""
    work: Work
    if pickled is not None:
        work = pickle.loads(pickled)
        return work
    try:
        work = pickle.loads(Path(path).read_bytes())
    except OSError:
        return None
    work.stop = Ended(path)
    return work


def _outcomes(work: Work, task: Task, n_threads: int | None) -> list[Outcome]:
    """Return the outcomes of a task in a worker process.

    Warnings that outcomes record are not shown.
    """
    here = isinstance(work.stop, Ended) and work.stop.is_here
    if here or not _in_main_thread():  # the filters belong to the main thread
        return work.run(task, n_threads)
    with warnings.catch_warnings():
        filter_held("ignore")
        return work.run(task, n_threads)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


_LARGEST = 1 << 24  # bytes of a file that is read
_STATUSES = {"failed", "fitted", *(status.value for status in Status)}
_PLAIN = (str, bytes, int, float, bool, type(None))
# The fields of a work that outcomes depend on
_DECIDING = (
    "fit",
    "options",
    "X",
    "feature_names",
    "y",
    "classes",
    "weight",
    "group",
    "preprocess",
    "scorers",
)


class Store:
    """A folder of finished tasks. Files appear whole or not at all.

    A file holds a checksum of its content, and the content the name of the task. One
    that is not what a search has stored for the task is passed over, so that the task
    is done again and the file replaced.

    Attributes
    ----------
    damaged : int
        How many files have been passed over.
    """

    def __init__(self, folder: str | os.PathLike[str], work: Work):
        self._folder = Path(as_path("store", folder))
        self._folder.mkdir(parents=True, exist_ok=True)
        self.damaged = 0
        digest = hashlib.blake2b(_build_info.VERSION.encode(), digest_size=16)
        for name in _DECIDING:
            value = getattr(work, name)
            if name == "scorers":
                value = sorted(value, key=lambda scorer: scorer.name)
            _feed(digest, value, name)
        self._work = digest
        self._scores = [scorer.name for scorer in work.scorers]

    def get(self, task: Task) -> list[Outcome] | None:
        """Return the outcomes of a task, if it has been done."""
        path = self._path(task)
        if not os.path.lexists(path):
            return None
        try:
            return self._read(path, len(task.points))
        except (ValueError, RecursionError):  # json's, over a file made to break it
            self.damaged += 1
            return None

    def put(self, task: Task, outcomes: list[Outcome]) -> None:
        """Keep what the task returned."""
        path = self._path(task)
        if os.path.lexists(path) and not _is_regular(path):
            return  # a pipe, a folder, a link: no search has put it there
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

    def _read(self, path: Path, n_points: int) -> list[Outcome]:
        """Return the outcomes in a file.

        Raises ValueError unless it is what `put` wrote.
        """
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise ValueError("not a file of outcomes")
        match json.loads(path.read_text(encoding="ascii")):
            case {
                "checksum": checksum,
                "content": {"task": path.stem, "outcomes": list(outcomes)} as content,
            } if checksum == _checksum(content) and len(outcomes) == n_points:
                return [self._outcome(node) for node in outcomes]
        raise ValueError("it is not a list of outcomes")

    def _outcome(self, node: Any) -> Outcome:
        """Return an outcome as it was put; ValueError for one that no task returns."""
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
    plain = isinstance(value, _PLAIN) and not isinstance(value, bytes)
    return value if plain else shown(value)


def _feed(digest: Any, value: Any, where: str) -> None:  # noqa: C901, one case per type
    """Add a value to a digest, by what it holds and not by what it is called here."""
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
        digest.update(str(len(value)).encode())  # where it ends
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
    """Source of tasks, which makes a result of their outcomes."""

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
    """Return the results of the jobs, and how many files of the store were damaged.

    Ctrl-C ends what runs and cancels the rest.
    """
    workers = Workers(work, space, executor, n_threads)
    kept = None if store is None else Store(store, work)
    schedule = Schedule(jobs, kept, progress)
    with workers, warnings.catch_warnings():
        filter_held("ignore")  # as every outcome records them
        try:
            results = schedule.run(workers.submit)
        finally:
            schedule.cancel()  # what an error has left
            progress.close()
    return results, 0 if kept is None else kept.damaged


@dataclass(frozen=True, slots=True)
class Queued:
    """A task, the number of its job and its place in the list that the job yielded."""

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
        self._awaited = [0] * len(jobs)  # outcomes, before a job can go on

    def run(self, submit: Callable[..., Future[Any]]) -> list[R]:
        """Submit tasks and tell the jobs of their outcomes, until no job has more.

        The results of all jobs, in their order.
        """
        # In reverse, because each puts its tasks before those that are there.
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
        """Cancel what has not begun."""
        for future in self._under_way:
            future.cancel()

    def _submit(self, submit: Callable[..., Future[Any]]) -> None:
        """Submit the tasks that wait, in their order.

        A task that has run in this thread is seen to before the next one, so that
        Ctrl-C loses no more than one.
        """
        while self._to_do:
            entry = self._to_do.popleft()
            future = submit(entry.task)
            self._under_way[future] = entry
            if future.done():
                return

    def _finish(self, entry: Queued, outcomes: list[Outcome]) -> None:
        """Keep and note the outcomes of a task.

        Its job goes on if they were the last that it waited for.
        """
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
        """Let a job go on; what it asks for comes before what others wait for."""
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
