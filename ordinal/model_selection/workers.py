"""Transport of tasks to workers, in this process and in others.

The work is published under a key. Workers in this process look it up; those in other
processes read it from a file once and keep it. A worker that cannot see the file
answers None, and is sent the task again with the work beside it.

When the search ends, also by an error or by Ctrl-C, the tasks that run are stopped. In
other processes that shows by the file, which goes then, and for which they look.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from .._input.checks import shown
from .._input.types import Executor as Executor
from .._numerics.threads import resolve_n_threads
from .._watch.convergence import filter_held
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
