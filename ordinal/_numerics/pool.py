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
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import ref

from .._watch.monitor import check_cancelled, current, ended_by

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_LOOK = 0.04  # seconds between looks for what a queue should have told
_IDLE = 0.2  # seconds after which a thread without work looks for its pool

at_work = set[object]()  # one for each thread of a pool that has not ended


def _wait_for_threads() -> None:
    """Let no thread be in the middle of a call when the interpreter ends."""
    while at_work:
        time.sleep(_LOOK / 10)


atexit.register(_wait_for_threads)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=at_work.clear)


class _Shared:
    """State that a pool and its threads share."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.bell: SimpleQueue[None] = SimpleQueue()  # rung when a call or thread ends
        self.left: list[None] = []  # empty until the pool is left
        self.ended: list[None] = []  # one for each thread that has

    def until(self, over: Callable[[], bool]) -> None:
        """Wait until over(), which the bell tells when to ask."""
        while not over():
            self.listen(_LOOK)

    def listen(self, seconds: float) -> None:
        """Wait for the bell, at most so long."""
        with suppress(Empty):
            self.bell.get(timeout=seconds)


class Begun(Generic[Result]):
    """A call that was handed to a pool: a thread of it, or the one that waits for the
    result, makes it.
    """

    def __init__(
        self,
        shared: _Shared,
        over: Callable[[], bool],
        call: Callable[[Argument], Result],
        argument: Argument,
    ):
        self._shared, self._over = shared, over
        # A list whose `pop` is atomic: whoever gets the call makes it, without a lock.
        self._made: list[Callable[[], Result]] = [partial(call, argument)]
        self._found: list[Result] = []
        self._raised: list[BaseException] = []

    def make(self) -> None:
        """Make the call in a thread of the pool, cancelled once over() is true."""
        with ended_by(self._over):
            self._make()

    def _make(self) -> bool:
        """Make the call, unless another thread has begun it."""
        bell = self._shared.bell
        try:
            call = self._made.pop()
        except IndexError:
            return False
        try:
            self._found.append(call())
        # Also Ctrl-C and OutOfTime, which the thread that waits must see.
        except BaseException as error:
            self._raised.append(error)
            del self  # whose error holds this frame
        bell.put(None)
        return True

    def done(self) -> bool:
        """Return whether the call has returned or raised."""
        return bool(self._found or self._raised)

    def wait(self) -> None:
        """Block until the call has ended."""
        self._shared.until(self.done)

    def help(self) -> None:
        """Make the call here if no thread has begun it; Ctrl-C is raised at once, and
        an error when the result is asked for.
        """
        if self._make() and not all(isinstance(e, Exception) for e in self._raised):
            self.result()

    def result(self) -> Result:
        """Return what the call returned, or raise what it raised; wait for that."""
        self.wait()
        if self._raised:
            try:
                raise self._raised[0]
            finally:
                del self
        return self._found[0]


class Pool:
    """Independent calls on n_threads threads; in this one where that is 1.

    The calls should spend their time in numpy or a kernel, without the interpreter's
    lock. After Ctrl-C no further call begins. The pool then leaves at once or, if
    `brief`, when the running calls are over, which are short or call
    `check_cancelled`. That function raises in the calls what it would raise in the
    thread that runs the pool, also once that thread has left.

    The thread that waits for calls of `run` makes those that nobody has begun, so that
    short ones do not wait for a thread to start or to get a processor.
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
        """Begin call(argument) beside what goes on here; None if it is done already.

        Where the system starts no more threads, those that it has started make the
        calls, and without any this one does.
        """
        if self._n_threads == 1:
            call(argument)
            return None
        # Threads are started one by one, as calls come: short fits need few of them.
        begun = self._put(call, argument, self._n_threads)
        if not self._begun:
            begun.help()
            begun.result()
        return begun

    def begin(self, call: Callable[[Argument], Result], argument: Argument) -> bool:
        """Begin call(argument) on a thread; False if the system starts none."""
        self._put(call, argument, self._n_threads)
        return self._begun > 0

    def share(
        self, call: Callable[[Argument], Result], argument: Argument
    ) -> Begun[Result]:
        """Offer call(argument) to n_threads - 1 threads.

        The thread that calls this, and does nothing but wait for results, is the last
        one.
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
            with suppress(RuntimeError):  # for want of memory, or of a higher limit
                start_new_thread(_work, (ref(self), self._shared))
                self._begun += 1
        return begun

    def listen(self, seconds: float) -> None:
        """Wait until one more call has ended, at most so long."""
        self._shared.listen(seconds)

    def run(
        self, call: Callable[[Argument], Any], arguments: Iterable[Argument]
    ) -> None:
        """call(argument) for each; returns when all have."""
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
    """Return whether nobody waits for a call, or time is up."""
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
            # A weak reference, so that a pool that nobody holds does not keep its
            # threads.
            if pool() is None:
                return
            continue
        if call is None:
            shared.calls.put(None)  # for the other threads
            return
        if not shared.left:
            call()
        del call  # lest its argument lives as long as this waits for the next


def in_order(
    call: Callable[[Argument], Result], arguments: Iterable[Argument], n_threads: int
) -> Generator[Result, None, None]:
    """call(argument) of each in order, some of them ahead on n_threads threads."""
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
            # As far ahead as keeps threads busy beside one slow call, and no memory
            # beyond it.
            if len(waiting) > 2 * n_threads:
                yield _first_of(waiting)
        while waiting:
            yield _first_of(waiting)


def _first_of(waiting: deque[Begun[Result]]) -> Result:
    """Return the result of the first call, which leaves the queue.

    Where another thread has begun that, this one makes calls behind it meanwhile.
    """
    first = waiting.popleft()
    first.help()
    for later in waiting:
        if first.done():
            break
        later.help()
    return first.result()
