"""How a fit is watched: clock, callback, time limit."""

import copy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .._input.checks import check_positive, shown
from .convergence import Convergence, Status


@dataclass(frozen=True, slots=True)
class State:
    """What a `callback` sees: progress so far; a true return value stops the fit."""

    method: str
    n_iter: int
    violation: float
    tol: float
    seconds: float


class OutOfTime(Exception):
    """Raised in a part of a fit that is over, but of no use unfinished."""


def never() -> bool:
    """Whether time is up for what has no limit."""
    return False


_watch = threading.local()


@contextmanager
def ended_by(over: Callable[[], bool]) -> Iterator[None]:
    """Within, `turn` raises OutOfTime in this thread once over() is true."""
    before = getattr(_watch, "over", never)
    _watch.over = over
    try:
        yield
    finally:
        _watch.over = before


def turn() -> None:
    """What computations that may take seconds call between their blocks."""
    if getattr(_watch, "over", never)():
        raise OutOfTime


class Monitor:
    """Clock, callback and time limit of one fit; drivers call `stop` between slices.

    Ctrl-C needs nothing from here: kernels return at least every `SLICE` seconds, and
    the interpreter then raises KeyboardInterrupt.
    """

    SLICE = 0.04  # seconds a kernel may run without returning to the interpreter

    def __init__(
        self,
        method: str,
        tol: float,
        callback: Callable[[State], object] | None = None,
        max_time: float | None = None,
    ):
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable or None, got {shown(callback)}")
        if max_time is not None:
            max_time = check_positive("max_time", max_time)
        self.method, self.tol = method, tol
        self.callback, self.max_time = callback, max_time
        self._start = time.perf_counter()
        self._ended: list[Status] = []  # shared with the parts

    def to_tol(self, tol: float) -> "Monitor":
        """The same watch for a part of the fit that ends at another tolerance."""
        part = copy.copy(self)
        part.tol = tol
        return part

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def record(
        self,
        status: Status,
        n_iter: int,
        violation: float,
        primal: float,
        dual: float | None = None,
    ) -> Convergence:
        """How a fit ended, now, against the tolerance of this watch."""
        dual = None if dual is None else float(dual)
        return Convergence(
            status, int(n_iter), float(violation), self.tol, float(primal), dual,
            self.seconds,
        )  # fmt: skip

    def stop(self, n_iter: int, violation: float) -> Status | None:
        """Report progress; the status to end with, or None to go on.

        Once a fit is to end, so are all its later parts: the other points of a path,
        or the polish after ADMM.
        """
        if not self._ended and (status := self._ask(n_iter, violation)) is not None:
            self._ended.append(status)
        return self._ended[0] if self._ended else None

    def late(self, by: float = 0.0) -> bool:
        """Whether `max_time` is over by so many seconds: for loops within a step."""
        return self.max_time is not None and self.seconds >= self.max_time + by

    def _ask(self, n_iter: int, violation: float) -> Status | None:
        seconds = self.seconds
        if self.callback is not None:
            state = State(self.method, int(n_iter), float(violation), self.tol, seconds)
            if _truth(self.callback(state)):
                return Status.STOPPED
        return Status.MAX_TIME if self.late() else None


def _truth(answer: object) -> bool:
    """Whether a callback asks for the end; an array, for one, is neither true nor
    false."""
    try:
        return bool(answer)
    except (TypeError, ValueError):
        raise TypeError(
            f"callback must return what is true or false, got {shown(answer)}"
        ) from None
