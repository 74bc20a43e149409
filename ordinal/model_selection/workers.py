"""How tasks reach the work that they refer to, in this process and in others.

The work is published under a key. Workers in this process look it up; those in other
processes read it from a file once and keep it. A worker that cannot see the file
answers None, and is sent the task again with the work beside it.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from .._input.checks import shown
from .._kernel_matrix.choice import NAMED
from .._model.convergence import filter_held
from .._numerics.threads import resolve_n_threads
from .spaces import Space
from .work import Outcome, Task, Work

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


class Workers:
    """The workers of one search, as a context: on entry the work is published for them,
    on exit it is withdrawn, and after an error the fits in this process are stopped.

    Tasks go to the caller's `executor`. Without one they run in this process: side by
    side on `n_threads` threads where they call nothing but this package, as two threads
    may not be fit to call a function of the caller's, else in turn.
    """

    def __init__(
        self, work: Work, space: Space, executor: Executor | None, n_threads: int | None
    ):
        self._work = work
        self._key = os.urandom(16).hex()
        self._path = ""
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
        self._work.stop = threading.Event()
        _published[self._key] = self._work
        if self._pickled:
            self._path = str(Path(tempfile.mkdtemp(prefix="ordinal-"), "work"))
            Path(self._path).write_bytes(self._pickled)
        return self

    def submit(self, task: Task, with_work: bool = False) -> Future[Any]:
        """Hand over a task, if need be with the work beside it."""
        beside = (self._pickled,) if with_work else ()
        return self._executor.submit(
            run_task, self._key, self._path, task, self._n_threads, *beside
        )

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None and self._work.stop is not None:
            self._work.stop.set()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        _published.pop(self._key, None)
        if self._path:
            shutil.rmtree(Path(self._path).parent, ignore_errors=True)


def _calls_only_ours(work: Work, space: Space) -> bool:
    kernels = [work.given.get("kernel", "rbf")]
    kernels += getattr(space, "values", {}).get("kernel", [])
    return work.ours and all(isinstance(k, (str, *NAMED.values())) for k in kernels)


def run_task(
    key: str, path: str, task: Task, n_threads: int | None, pickled: bytes | None = None
) -> list[Outcome] | None:
    """What is submitted to an executor; None asks for the work to be sent as well."""
    work = _published.get(key)
    if work is None:
        if pickled is None:
            try:
                pickled = Path(path).read_bytes()
            except OSError:
                return None
        loaded: Work = pickle.loads(pickled)
        for old in list(_published)[:-1]:  # a worker serves one search after the other
            _published.pop(old, None)
        _published[key] = work = loaded
    if work.stop is None and threading.current_thread() is threading.main_thread():
        # This is a worker process. Warning filters belong to its main thread.
        with warnings.catch_warnings():
            filter_held("ignore")
            return work.run(task, n_threads)
    return work.run(task, n_threads)
