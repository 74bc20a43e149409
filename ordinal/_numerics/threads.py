"""Threads of this process: calls on a pool, helpers of kernels, their number.

A pool makes independent calls, and Ctrl-C may leave it at any point.
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

Without OpenMP, threads of a pool help with the parallel regions of kernels, which
`_solvers/_parts.pyx` describes. It starts more helpers when a region needs them. A
helper without work ends after a second, and all end with the interpreter.
"""

import atexit
import math
import os
import sys
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePosixPath
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import ref

from .._input.checks import check_count, shown
from .._solvers import _build_info, _parts
from .._watch.cancellation import check_cancelled, current, ended_by, never

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_LOOK = 0.04  # seconds after which a waiting thread checks its condition again
_IDLE = 0.2  # seconds after which a thread without work checks that its pool exists

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")

THREADS = sys.platform not in ("emscripten", "wasi")

at_work = set[object]()  # one object per thread of a pool that has not ended
_forked = False


def _wait_for_threads() -> None:
    """Wait until no thread of a pool is in a call, before the interpreter ends."""
    while at_work:
        time.sleep(_LOOK / 10)


atexit.register(_wait_for_threads)


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
        """Return whether all threads of the pool have ended."""
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
        shared, over = self._shared, current()
        begun = Begun[Result](
            shared, lambda: bool(shared.left) or over(), call, argument
        )
        shared.calls.put(begun.make)
        if self._begun < n_threads:
            with suppress(RuntimeError):  # no memory for a thread, or at a limit
                start_new_thread(_work, (ref(self), shared))
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


def _work(pool: "ref[Pool]", shared: _Shared) -> None:
    """Make calls until the pool is left, or forgotten."""
    me = object()
    at_work.add(me)
    try:
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
    finally:
        shared.ended.append(None)
        shared.bell.put(None)
        at_work.discard(me)


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


def _start(n: int) -> None:
    """Start n helper threads, or as many as the system allows."""
    for _ in range(n):
        pool = Pool(2)
        with ended_by(never):  # a helper outlives the fit that starts it
            if not pool.begin(_help, pool):
                return


def _help(pool: Pool) -> None:
    """Run parts of regions in a helper thread until it leaves the pool."""
    with pool:
        _parts.help()


def way() -> str:
    """Return what runs the parts of parallel regions: "openmp" or "pool"."""
    return "openmp" if _parts.by_openmp() else "pool"


_parts.started_by(_start)
atexit.register(_parts.dismiss)  # called before `_wait_for_threads`


def _after_fork() -> None:
    """Forget the threads of the parent, which a forked child lacks."""
    global _forked
    _forked = True
    at_work.clear()
    _parts.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_forked() -> bool:
    """Return whether this process was forked, so that OpenMP's threads are missing."""
    return _forked


def resolve_n_threads(n_threads: int | None) -> int:
    """Return the number of threads to use.

    It is the argument, else ORDINAL_NUM_THREADS, else the first number of
    OMP_NUM_THREADS, else the number of CPUs that this process may use (`cpus_allowed`).
    A forked child uses one thread unless it is asked for more, because there are often
    as many children as CPUs. The number is 1 if the system has no threads.
    """
    if n_threads is None:
        n_threads = _threads_of_environment() or (1 if _forked else cpus_allowed())
    else:
        n_threads = check_count("n_threads", n_threads)
    return min(n_threads, 256) if THREADS else 1


def _threads_of_environment() -> int | None:
    """Return the number of threads that the environment states, or None."""
    if text := os.environ.get("ORDINAL_NUM_THREADS", ""):
        if not (text.strip().isdecimal() and int(text)):
            raise ValueError(
                f"ORDINAL_NUM_THREADS must be a positive integer, got {shown(text)}"
            )
        return int(text)
    # A list has one number per level of nested parallelism. The variable is not ours,
    # so anything malformed is ignored.
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(text) or None if text.isdecimal() else None


def cpus_allowed() -> int:
    """Return the number of CPUs in the affinity mask of this process.

    It is no more than the quota of the control groups, rounded up.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, math.ceil(min(count, _quota())))


@cache
def _quota() -> float:
    """Return the CPU quota of this process by the control groups of Linux, in CPUs."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return math.inf
    quotas = [math.inf]
    for line in lines:  # "number:controllers:path"; version 2 has no controllers
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # The quota of a parent bounds its children. A container may see its own group
        # as the root.
        group = PurePosixPath(path.strip("/"))
        for folder in (group, *group.parents):
            quotas.append(_quota_of(_GROUPS / ("cpu" if controllers else "") / folder))
    return min(quotas)


def _quota_of(group: Path) -> float:
    """Return the CPU quota of one group; inf if it has none or cannot be read."""
    try:
        if (group / "cpu.max").exists():  # version 2: "quota period" or "max period"
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()  # -1 is no bound
            period = (group / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def show_config() -> dict[str, object]:
    """Return the build options, and the choices made on this machine.

    Returns
    -------
    dict
        `version`; `compiler`, with its version; `openmp`, whether this build has it;
        `threads`, what runs the kernels' parts on several threads here: "openmp", or
        "pool" where it is not built in and in a forked child, or "none" where the
        system has no threads; `n_threads`, the default; `simd`, the vector code in use,
        and `simd_levels`, all that this build holds and this processor can run, best
        first; `index_checks`, True in a debug build.

    See Also
    --------
    load : Load a model from a file written by its method `save`.

    Notes
    -----
    The environment variable ORDINAL_SIMD chooses a level by name when ordinal is
    imported. The default number of threads is that of ORDINAL_NUM_THREADS, else the
    first of OMP_NUM_THREADS, else the number of CPUs that this process may use: those
    of its affinity mask, but no more than the CPU quota of its control group (as
    containers set it), rounded up.

    Examples
    --------
    >>> import ordinal
    >>> ordinal.show_config()["simd_levels"][-1]
    'baseline'
    """
    return {
        "version": _build_info.VERSION,
        "compiler": _build_info.COMPILER,
        "openmp": _parts.OPENMP,
        "threads": way() if THREADS else "none",
        "n_threads": resolve_n_threads(None),
        "simd": _build_info.simd_name(),
        "simd_levels": _build_info.simd_levels(),
        "index_checks": _build_info.INDEX_CHECKS,
    }
