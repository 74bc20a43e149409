"""Workers of a search: how its tasks reach threads of this process and other processes.

The work is published under a key. Workers in this process look it up; those in other
processes read it from a file once and cache it. A worker that cannot see the file
answers None, and is sent the task again together with the work.

When a search ends, also by an error or by Ctrl-C, the tasks that still run are stopped.
Other processes notice because the file is removed, which they check for.
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
from .._input.types import Executor
from .._numerics.threads import resolve_n_threads
from .._watch.convergence import filter_held
from ..kernels.functions import KernelFunction
from .spaces import Space
from .work import Outcome, Task, Work

_published: dict[str, Work] = {}  # the works of searches by their keys


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

    The process of the search sets it. Other processes see that the file of the work is
    gone, also those that were forked and have a copy of this object.
    """

    EVERY = 0.05  # seconds between two checks for the file

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
                # Fits of a caller's own function check no flag, so that only an
                # exception ends them.
                for thread in self._running:
                    _raise_in(thread, Stopped)

    def is_set(self) -> bool:
        now = time.monotonic()
        # A check costs microseconds, too much for every step of a fit.
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

        It is raised between two instructions of the interpreter, whereas a callback is
        called only between two steps of a fit.
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
                # A pending exception would otherwise be raised after this block.
                if raised:
                    _await_in(me)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Check for the file in a thread, unless this is the process of the search."""
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
    """Raise an exception in a thread; it replaces one that is pending there."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error)
    )


def _await_in(me: int) -> None:
    """Wait until Stopped, which may be pending, has been raised in this thread.

    CPython could also withdraw it, but would then check for it for ever: every call
    becomes slower, and in Python 3.11 a traced one (a debugger, coverage) never ends.
    """
    try:
        _raise_in(me, Stopped)
        while True:
            pass
    except Stopped:
        pass


class Workers:
    """Workers of one search, as a context.

    On entry the work is published for them; on exit it is withdrawn, and after an error
    the fits that run are stopped. Tasks go to the caller's `executor`. Without one they
    run in this process, on `n_threads` threads side by side if they call only this
    package, because a function of the caller may not be thread-safe; else one after the
    other. The same holds for rows that are read in chunks: a source may not allow two
    passes at a time, and every fit needs memory for its chunks.
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
        elif work.data.chunked is None and _calls_only_ours(work, space):
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
        """Submit a task, on request together with the work."""
        beside = (self._pickled,) if with_work else ()
        return self._executor.submit(
            run_task, self._key, self._path, task, self._n_threads, *beside
        )

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            self._ended.set()
        if self._pool is not None:
            # It does not wait, because Ctrl-C should end a search at once.
            self._pool.shutdown(wait=False, cancel_futures=True)
        _published.pop(self._key, None)
        if self._folder is not None:
            self._folder.cleanup()


def _calls_only_ours(work: Work, space: Space) -> bool:
    """Return whether fit and kernels are functions of this package."""
    kernels = [work.given.get("kernel", "rbf")]
    kernels += getattr(space, "values", {}).get("kernel", [])
    return work.ours and all(isinstance(k, str | KernelFunction) for k in kernels)


def run_task(
    key: str, path: str, task: Task, n_threads: int | None, pickled: bytes | None = None
) -> list[Outcome] | None:
    """Run a task in a worker; None is a request for the work itself."""
    work = _published.get(key)
    # A worker on another machine does not see the file.
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
        # Outside of the main thread, a function of the caller may hold a lock, which an
        # exception from another thread would not release.
        with stop.stoppable() if work.ours or _in_main_thread() else nullcontext():
            outcomes = _outcomes(work, task, n_threads)
    except Stopped:
        return None
    # Fits that were stopped have no outcomes. If the search goes on because somebody
    # else has removed the file, it sends the task again with the work.
    return None if stop.is_set() else outcomes


def _received(path: str, pickled: bytes | None) -> Work | None:
    """Return the work that was sent, or that of the file; None if there is no file."""
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
    """Run a task; warnings that its outcomes record are not shown."""
    here = isinstance(work.stop, Ended) and work.stop.is_here
    if here or not _in_main_thread():  # filters are set by the main thread alone
        return work.run(task, n_threads)
    with warnings.catch_warnings():
        filter_held("ignore")
        return work.run(task, n_threads)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
