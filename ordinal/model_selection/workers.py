"""Workers of a search: how its tasks reach threads of this process and other processes.

The work is published under a key. Workers in this process look it up; those in other
processes read it from a file once and cache it. A worker that cannot see the file
answers None, and is sent the task again together with the work.

When a search ends, also by an error or by Ctrl-C, the tasks that still run are stopped:
fits of this package check a flag between their steps and blocks, and a function of the
caller ends when it returns. Other processes notice because the file is removed.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .._input.checks import shown
from .._input.types import Executor
from .._numerics.threads import resolve_n_threads
from .._watch.cancellation import Stopped, stopped_by
from .._watch.convergence import held_back
from .spaces import Space
from .work import Outcome, Runnable, Task

# The works of searches by their keys, with flags that the searches have ended. A worker
# that was sent the work has no flag, because it does not see the file.
_published: dict[str, tuple[Runnable, Ended | None]] = {}


class InTurn:
    """An executor that runs a task when it is submitted."""

    def submit(self, call: Any, /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call(*arguments))
        return future


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

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        now = time.monotonic()
        # A check costs microseconds, too much for every step of a fit.
        if not self._set and not self.is_here and now >= self._next_look:
            self._next_look = now + self.EVERY
            self._set = not os.path.exists(self._path)
        return self._set

    @property
    def is_here(self) -> bool:
        """Return whether this is the process of the search."""
        return os.getpid() == self._process


class Workers:
    """Workers of one search, as a context.

    On entry the work is published for them; on exit it is withdrawn, and after an error
    the fits that run are stopped. Tasks go to the caller's `executor`. Without one they
    run in this process, on `n_threads` threads if the work may run `side_by_side`, else
    one after the other.
    """

    def __init__(
        self,
        work: Runnable,
        space: Space | None = None,
        executor: Executor | None = None,
        n_threads: int | None = None,
    ):
        self._work = work
        # No two searches share a key, whatever processes their workers are in.
        self._key = os.urandom(16).hex()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._path = ""
        self._ended = Ended("")
        self._pickled = b""
        self._n_threads = n_threads
        known = resolve_n_threads(n_threads)  # raises before any work
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
        elif work.side_by_side(space):
            if known > 1:
                self._executor = self._pool = ThreadPoolExecutor(known)
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
        self._ended = Ended(self._path, os.getpid())
        _published[self._key] = self._work, self._ended
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


def run_task(
    key: str, path: str, task: Task, n_threads: int | None, pickled: bytes | None = None
) -> list[Outcome] | None:
    """Run a task in a worker; None is a request for the work itself."""
    found = _published.get(key)
    # A worker on another machine does not see the file.
    if found is None or pickled is not None:
        found = _received(path, pickled)
        if found is None:
            return None
        for old in list(_published)[:-1]:  # a worker serves one search after the other
            _published.pop(old, None)
        _published[key] = found
    work, ended = found
    if ended is None:
        return _outcomes(work, task, n_threads)
    try:
        # No exception from another thread: it would also end a function of the caller,
        # but between any two instructions, where no lock or file of theirs is safe.
        with stopped_by(ended.is_set):
            outcomes = _outcomes(work, task, n_threads, ended.is_here)
    except Stopped:
        return None
    # A function of the caller may have ended only now. If the search goes on because
    # somebody else has removed the file, it sends the task again with the work.
    return None if ended.is_set() else outcomes


def _received(path: str, pickled: bytes | None) -> tuple[Runnable, Ended | None] | None:
    """Return the work that was sent, or that of the file; None if there is no file."""
    if pickled is not None:
        return pickle.loads(pickled), None
    try:
        return pickle.loads(Path(path).read_bytes()), Ended(path)
    except OSError:
        return None


def _outcomes(
    work: Runnable, task: Task, n_threads: int | None, here: bool = False
) -> list[Outcome]:
    """Run a task; warnings that its outcomes record are not shown.

    `here` is whether this is the process of the search, which has set the filters.
    """
    if here or threading.current_thread() is not threading.main_thread():
        return work.run(task, n_threads)
    with held_back():
        return work.run(task, n_threads)
