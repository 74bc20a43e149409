"""Independent calls on several threads, which Ctrl-C may leave at any point.

`concurrent.futures` and `threading` are written in Python, and the interpreter raises
KeyboardInterrupt between any two instructions of the main thread:

    where a weak reference calls a function, as the end of a `Thread` or an executor
    does, the interpreter reports the interrupt and forgets it: the fit would go on;
    behind a lock that was taken and before the `try` that gives it back, as in a
    `Future`, an `Event` or `Thread.start`, whoever waits for the lock waits for ever.

A pass over rows may have its own pool, and a fit thousands of passes, so both happen.
What a pool shares with its threads is therefore a `SimpleQueue` or a list, whose
methods are single instructions; threads have no objects; and a thread whose pool has
been forgotten, rather than left, ends by itself.
"""

import atexit
import os
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import ref

from .._watch.cancellation import check_cancelled, current, ended_by

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_LOOK = 0.04  # seconds after which a waiting thread checks its condition again
_IDLE = 0.2  # seconds after which a thread without work checks that its pool exists

at_work = set[object]()  # one object per thread of a pool that has not ended


def _wait_for_threads() -> None:
    """Wait until no thread of a pool is in a call, before the interpreter ends."""
    while at_work:
        time.sleep(_LOOK / 10)


atexit.register(_wait_for_threads)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=at_work.clear)


@dataclass(slots=True, eq=False)
class _Shared:
    """State that a pool and its threads share."""

    calls: SimpleQueue[Callable[[], None] | None] = field(default_factory=SimpleQueue)
    bell: SimpleQueue[None] = field(default_factory=SimpleQueue)  # per end of a call
    left: list[None] = field(default_factory=list)  # empty until the pool is left
    ended: list[None] = field(default_factory=list)  # one entry per ended thread

    def until(self, over: Callable[[], bool]) -> None:
        """Block until over() is true, which is checked whenever the bell rings."""
        while not over():
            self.listen(_LOOK)

    def listen(self, seconds: float) -> None:
        """Wait for the bell for at most this many seconds."""
        with suppress(Empty):
            self.bell.get(timeout=seconds)


class Begun(Generic[Result]):
    """Call that was submitted to a pool.

    A thread of the pool makes it, or the thread that waits for its result.
    """

    def __init__(
        self,
        shared: _Shared,
        over: Callable[[], bool],
        call: Callable[[Argument], Result],
        argument: Argument,
    ):
        self._shared, self._over = shared, over
        # `pop` of a list is atomic: the thread that gets the call makes it.
        self._made: list[Callable[[], Result]] = [partial(call, argument)]
        self._found: list[Result] = []
        self._raised: list[BaseException] = []

    def make(self) -> None:
        """Make the call in a thread of the pool, cancelled once over() is true."""
        with ended_by(self._over):
            self._make()

    def _make(self) -> bool:
        """Make the call unless another thread has begun it; return whether it did."""
        bell = self._shared.bell
        try:
            call = self._made.pop()
        except IndexError:
            return False
        try:
            self._found.append(call())
        # Also Ctrl-C and OutOfTime, which are raised in the waiting thread.
        except BaseException as error:
            self._raised.append(error)
            del self  # the traceback of the error holds this frame
        bell.put(None)
        return True

    def done(self) -> bool:
        """Return whether the call has returned or raised."""
        return bool(self._found or self._raised)

    def wait(self) -> None:
        """Block until the call has ended."""
        self._shared.until(self.done)

    def help(self) -> None:
        """Make the call in this thread, unless another one has begun it.

        Ctrl-C is raised at once, an error by `result`.
        """
        if self._make() and not all(isinstance(e, Exception) for e in self._raised):
            self.result()

    def result(self) -> Result:
        """Wait for the call, and return its result or raise its error."""
        self.wait()
        if self._raised:
            try:
                raise self._raised[0]
            finally:
                del self
        return self._found[0]


class Pool:
    """Independent calls on n_threads threads, or in the calling thread if that is 1.

    The calls should spend their time in numpy or a kernel, without the interpreter's
    lock. After Ctrl-C no further call begins. The pool then leaves at once or, if
    `brief`, when the running calls are over, which are short or call
    `check_cancelled`. That function raises in the calls what it would raise in the
    thread that runs the pool, also once that thread has left.

    The thread that waits for the calls of `run` makes those that no thread has begun.
    Short calls then do not wait for a thread to start or to get a processor.
    """

    def __init__(self, n_threads: int, brief: bool = False):
        self._n_threads, self._brief = n_threads, brief
        self._shared, self._begun, self._shares = _Shared(), 0, 0

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: object) -> None:
        self._shared.left.append(None)
        self._shared.calls.put(None)
        if self._brief:
            try:
                self._shared.until(self._over)
            except KeyboardInterrupt:
                self._shared.until(self._over)
                raise

    def _over(self) -> bool:
        return len(self._shared.ended) >= self._begun

    def submit(
        self, call: Callable[[Argument], Result], argument: Argument
    ) -> Begun[Result] | None:
        """Begin call(argument) on another thread; return None if it is done already.

        If the system starts no more threads, the existing ones make the calls; without
        any, the calling thread does.
        """
        if self._n_threads == 1:
            call(argument)
            return None
        # Threads are started one by one with the calls, because short fits need few.
        begun = self._put(call, argument, self._n_threads)
        if not self._begun:
            begun.help()
            begun.result()
        return begun

    def begin(self, call: Callable[[Argument], Result], argument: Argument) -> bool:
        """Begin call(argument) on a thread; return False if the system starts none."""
        self._put(call, argument, self._n_threads)
        return self._begun > 0

    def share(
        self, call: Callable[[Argument], Result], argument: Argument
    ) -> Begun[Result]:
        """Submit call(argument) to n_threads - 1 threads.

        The calling thread counts as the last one: it makes calls while it waits.
        """
        self._shares += 1
        return self._put(call, argument, min(self._n_threads, self._shares) - 1)

    def _put(
        self, call: Callable[[Argument], Result], argument: Argument, n_threads: int
    ) -> Begun[Result]:
        over = partial(_unwanted, self._shared, current())
        begun = Begun[Result](self._shared, over, call, argument)
        self._shared.calls.put(begun.make)
        if self._begun < n_threads:
            with suppress(RuntimeError):  # no memory for a thread, or at a limit
                start_new_thread(_work, (ref(self), self._shared))
                self._begun += 1
        return begun

    def listen(self, seconds: float) -> None:
        """Wait until one more call has ended, for at most this many seconds."""
        self._shared.listen(seconds)

    def run(
        self, call: Callable[[Argument], Any], arguments: Iterable[Argument]
    ) -> None:
        """Make call(argument) for each argument, and return when all have ended."""
        calls = []
        for argument in arguments:
            check_cancelled()
            if self._n_threads == 1:
                call(argument)
            else:
                calls.append(self.share(call, argument))
        for begun in calls:
            begun.help()
            check_cancelled()
        for begun in calls:
            begun.result()


def _unwanted(shared: _Shared, over: Callable[[], bool]) -> bool:
    """Return whether the pool of a call has been left, or its time is up."""
    return bool(shared.left) or over()


def _work(pool: "ref[Pool]", shared: _Shared) -> None:
    """Make calls until the pool is left, or forgotten."""
    me = object()
    at_work.add(me)
    try:
        _make_calls(pool, shared)
    finally:
        shared.ended.append(None)
        shared.bell.put(None)
        at_work.discard(me)


def _make_calls(pool: "ref[Pool]", shared: _Shared) -> None:
    while True:
        try:
            call = shared.calls.get(timeout=_IDLE)
        except Empty:
            # The reference is weak, so that a forgotten pool lets its threads end.
            if pool() is None:
                return
            continue
        if call is None:
            shared.calls.put(None)  # for the other threads
            return
        if not shared.left:
            call()
        del call  # so that its argument is released while this thread waits


def in_order(
    call: Callable[[Argument], Result], arguments: Iterable[Argument], n_threads: int
) -> Generator[Result, None, None]:
    """Yield call(argument) of each argument in order, computed on n_threads threads.

    A few calls are made ahead.
    """
    if n_threads == 1:  # without the queues of a pool
        for argument in arguments:
            check_cancelled()
            yield call(argument)
        return
    waiting: deque[Begun[Result]] = deque()
    with Pool(n_threads, brief=True) as pool:
        for argument in arguments:
            check_cancelled()
            waiting.append(pool.share(call, argument))
            # Enough calls ahead to keep all threads busy during one slow call; more
            # would only hold memory.
            if len(waiting) > 2 * n_threads:
                yield _first_of(waiting)
        while waiting:
            yield _first_of(waiting)


def _first_of(waiting: deque[Begun[Result]]) -> Result:
    """Remove the first call from the queue, and return its result.

    While another thread makes it, the calling thread makes the calls after it.
    """
    first = waiting.popleft()
    first.help()
    for later in waiting:
        if first.done():
            break
        later.help()
    return first.result()
