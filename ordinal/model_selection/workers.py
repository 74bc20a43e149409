"""How tasks reach the work that they refer to, in this process and in others.

The work is published under a key. Workers in this process look it up; those in other
processes read it from a file once and keep it. A worker that cannot see the file
answers None, and is sent the task again with the work beside it.

The file goes when the search ends, also by an error or by Ctrl-C. Workers that have
read it look for it while they run a task, and end the task when it has gone.
"""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from .._input.checks import shown
from .._kernel_matrix.choice import NAMED
from .._model.convergence import filter_held
from .._numerics.threads import resolve_n_threads
from .spaces import Space
from .work import Outcome, Stop, Task, Work

_published: dict[str, Work] = {}  # where tasks in this process find their work


class Executor(Protocol):
    """What tasks can be handed to: `concurrent.futures.Executor` and its like."""

    def submit(self, call: Any, /, *arguments: Any) -> Future[Any]: ...


class InTurn:
    """An executor that runs a task when it is submitted."""

    def submit(self, call: Any, /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call(*arguments))
        return future


class Ended:
    """Whether a search has ended: in its own process that is told by `set`, in others
    it shows by the file of its work, which has gone then.

    A process that was forked from that of the search has the search's own object.
    """

    EVERY = 0.05  # seconds between two looks at the file

    def __init__(self, path: str, process: int | None = None):
        self._path, self._process = path, process
        self._next_look = 0.0
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        now = time.monotonic()
        if not self._set and not self.is_here and now >= self._next_look:
            self._next_look = now + self.EVERY
            self._set = not os.path.exists(self._path)
        return self._set

    @property
    def is_here(self) -> bool:
        """Whether this is the process of the search."""
        return os.getpid() == self._process


class Workers:
    """The workers of one search, as a context: on entry the work is published for them,
    on exit it is withdrawn, and after an error the fits that run are stopped.

    Tasks go to the caller's `executor`. Without one they run in this process: side by
    side on `n_threads` threads where they call nothing but this package, as two threads
    may not be fit to call a function of the caller's, else in turn.
    """

    def __init__(
        self, work: Work, space: Space, executor: Executor | None, n_threads: int | None
    ):
        self._work = work
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
            self._executor, self._n_threads = executor, n_threads or 1
            self._pickled = work.pickled()
        elif _calls_only_ours(work, space):
            if (n_threads := resolve_n_threads(n_threads)) > 1:
                self._executor = self._pool = ThreadPoolExecutor(n_threads)
            self._n_threads = 1

    def __enter__(self) -> Workers:
        if self._pickled:
            self._folder = tempfile.TemporaryDirectory(
                prefix="ordinal-", ignore_cleanup_errors=True
            )
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
    """What is submitted to an executor; None asks for the work to be sent as well."""
    work = _published.get(key)
    if work is None or pickled is not None:
        work = _received(path, pickled)
        if work is None:
            return None
        for old in list(_published)[:-1]:  # a worker serves one search after the other
            _published.pop(old, None)
        _published[key] = work
    stop = work.stop
    if not isinstance(stop, Ended) or stop.is_here:
        return _outcomes(work, task, n_threads)
    if stop.is_set():
        return None
    try:
        outcomes = _outcomes(work, task, n_threads)
    except KeyboardInterrupt:
        if stop.is_set():
            return None
        raise
    # The outcomes of fits that were stopped are none. If the search goes on, and
    # somebody else has removed the file, it sends the task again with the work.
    return None if stop.is_set() else outcomes


def _received(path: str, pickled: bytes | None) -> Work | None:
    """The work as it was sent or, else, as it is in the file, if there is one."""
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
    """What the work makes of the task, in a worker process without the warnings that
    outcomes record."""
    stop = work.stop
    of_search = isinstance(stop, Ended) and stop.is_here
    if of_search or threading.current_thread() is not threading.main_thread():
        return work.run(task, n_threads)
    with warnings.catch_warnings(), _interrupted_by(stop):
        filter_held("ignore")
        return work.run(task, n_threads)


@contextmanager
def _interrupted_by(stop: Stop | None) -> Iterator[None]:
    """Raise KeyboardInterrupt in the body, in the main thread, once `stop` is set:
    callbacks see that between the steps of a fit, and this within them. A worker that
    has a use of its own for SIGINT is left to the callbacks."""
    if stop is None or signal.getsignal(signal.SIGINT) != signal.default_int_handler:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(Ended.EVERY):
            if stop.is_set():
                _thread.interrupt_main()
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()  # what it has raised arrives here at the latest
