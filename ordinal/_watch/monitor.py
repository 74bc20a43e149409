"""Monitor of a fit: clock, callback, time limit, and the line of `verbose`."""

import copy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from .._input.checks import check_positive, shown
from .._input.immutable import Immutable
from .._input.warning import warn
from .blas import OneThread
from .convergence import Convergence, ConvergenceWarning, Status
from .progress import Line


@dataclass(frozen=True, slots=True)
class State(Immutable):
    """Progress of a fit, given to `callback`; a true return value stops the fit."""

    method: str
    n_iter: int
    violation: float
    tol: float
    seconds: float


class OutOfTime(Exception):
    """Raised when time is up in a part of a fit that is useless unless finished."""


def never() -> bool:
    """Return False: there is no time limit."""
    return False


def _nothing() -> None:
    """Do nothing: a silent fit has no progress line."""


_watch = threading.local()


@contextmanager
def ended_by(over: Callable[[], bool]) -> Iterator[None]:
    """Cancel the computations of this thread once over() is true.

    `check_cancelled` then raises OutOfTime.
    """
    before = current()
    _watch.over = over
    try:
        yield
    finally:
        _watch.over = before


def current() -> Callable[[], bool]:
    """Return the test of `check_cancelled` in this thread, to pass it to others."""
    over: Callable[[], bool] = getattr(_watch, "over", never)
    return over


def check_cancelled() -> None:
    """Raise an exception if the fit was interrupted or is out of time.

    Computations that may take seconds call it between their blocks.
    """
    getattr(_watch, "report", _nothing)()
    if current()():
        raise OutOfTime


class Monitor:
    """Clock, callback, time limit and progress line of one fit.

    Drivers call `stop` between slices. As a context manager it closes the progress
    line, whatever ends the fit, and lets numbers underflow to 0 even if the caller has
    set `np.seterr` to raise: underflow is not an error in any fit.

    Ctrl-C needs no support here: kernels return at least every `SLICE` seconds, and the
    interpreter then raises KeyboardInterrupt.
    """

    SLICE = 0.04  # seconds a kernel may run without returning to the interpreter
    GRACE = 0.5  # seconds beyond `max_time` for work that is useless unless finished
    RATED = 1.0  # seconds after which the rate of a fit predicts its duration
    # The rate at the beginning of a fit may differ by a factor of two from later ones.
    MARGIN = 2.0

    def __init__(
        self,
        method: str,
        tol: float,
        callback: Callable[[State], object] | None = None,
        max_time: float | None = None,
        line: Line | None = None,
    ):
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable or None, got {shown(callback)}")
        if max_time is not None:
            max_time = check_positive("max_time", max_time)
        self.method, self.tol = method, tol
        self.callback, self.max_time = callback, max_time
        self._before = 0  # steps in earlier parts of the fit
        self._start = time.perf_counter()
        # shared with the monitors of the parts
        self._ended: list[Status] = []
        self._line, self._stages = line, list[str]()
        self._end: list[str] = []
        self._forecasts: list[float] = []  # at most one for all parts
        self._stepped: list[bool] = []  # True once a part has taken a step
        self._small = np.errstate(under="ignore")
        self._blas = OneThread()

    def __enter__(self) -> Self:
        # An enclosing fit, if any, reports again when this one has ended.
        self._around = getattr(_watch, "report", _nothing)
        _watch.report = _nothing if self._line is None else self._report
        self._small.__enter__()
        self._blas.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._blas.__exit__(None, None, None)
        self._small.__exit__(None, None, None)
        _watch.report = self._around
        if self._line is not None:
            ended = ", ".join(self._end) if kind is None else kind.__name__
            self._line.close(f"{self._begun()}: {ended}")

    def to_tol(self, tol: float) -> "Monitor":
        """Return the monitor of a part of the fit that ends at another tolerance."""
        part = copy.copy(self)
        part.tol = tol
        return part

    def after(self, n_iter: int) -> "Monitor":
        """Return the monitor of a part of the fit that begins `n_iter` steps later."""
        part = copy.copy(self)
        part._before += n_iter
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
        """Record the end of a fit against the tolerance of this monitor."""
        dual = None if dual is None else float(dual)
        return Convergence(
            status,
            int(n_iter),
            float(violation),
            self.tol,
            float(primal),
            dual,
            self.seconds,
        )

    def stop(self, n_iter: int, violation: float) -> Status | None:
        """Report progress; return the status to end with, or None to continue.

        Once it has returned a status, it does so in all later parts of the fit, such as
        the other points of a path, or the polish after ADMM.
        """
        n_iter += self._before
        if self._line is not None and self._line.due():
            self._report(f"{n_iter} steps, violation {violation:.1e}, tol {self.tol:g}")
        if not self._ended and (status := self._ask(n_iter, violation)) is not None:
            self._ended.append(status)
        return self.ended

    @property
    def ended(self) -> Status | None:
        """Return the status with which `stop` ended a part of the fit, or None."""
        return self._ended[0] if self._ended else None

    def late(self, by: float = 0.0) -> bool:
        """Return whether `max_time` is exceeded by `by` seconds, within a step."""
        return self.max_time is not None and self.seconds >= self.max_time + by

    def forecast(self, steps: int, needed: int, began: float) -> None:
        """Warn once if `max_time` is far too short for a fit that `basis=` would suit.

        Parameters
        ----------
        steps, needed : int
            Steps since `began`, and the least number that any such fit takes.
        began : float
            Seconds of the fit at its first step.
        """
        if self.max_time is None or self._forecasts:
            return
        if steps and not self._stepped:
            self._stepped.append(True)
        seconds = self.seconds - began
        # A fit that is late has no other occasion to advise; less than a second says
        # nothing.
        ends = self.late() and self.seconds >= self.RATED
        if not ends and (not steps or seconds < self.RATED):
            return
        self._forecasts.append(began + needed * seconds / max(steps, 1))
        advice = "raise max_time, or pass basis='auto' for a model on a basis"
        if not self._stepped:
            warn(
                f"{self.method}: max_time={self.max_time:g} s was over before the "
                f"first steps: {advice}",
                ConvergenceWarning,
            )
        elif steps and self._forecasts[0] > self.MARGIN * self.max_time:
            warn(
                f"{self.method}: at the rate of its first second the fit needs at "
                f"least {self._forecasts[0]:.0f} s, so max_time={self.max_time:g} "
                f"s will end it short of the optimum: {advice}",
                ConvergenceWarning,
            )

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name a part of the fit on its progress line, also in `check_cancelled`."""
        self._stages.append(name)
        try:
            yield
        finally:
            self._stages.pop()

    def numbered(self, kind: str, i: int, n: int) -> AbstractContextManager[None]:
        """Return a context that names stage i of n, counted from 0, on the line.

        Nothing is named if n is 1.
        """
        return self.stage(f"{kind} {i + 1} of {n}") if n > 1 else nullcontext()

    def limited(self, by: float = 0.0) -> AbstractContextManager[None]:
        """Cancel computations once `max_time` is exceeded by `by` seconds."""
        return ended_by(partial(self.late, by))

    def conclude(self, convergence: Convergence) -> None:
        """Write the end of the fit to the progress line."""
        self._end[:] = [str(convergence)]

    def _report(self, *progress: str) -> None:
        """Show the present stages on the progress line, if it is due."""
        if self._line is not None and self._line.due():
            parts = self._begun(), ", ".join(self._stages), *progress
            self._line.show(": ".join(part for part in parts if part))

    def _begun(self) -> str:
        """Return the beginning of a line, which a narrow terminal still shows."""
        return f"{self.method}, {self.seconds:.1f} s"

    def _ask(self, n_iter: int, violation: float) -> Status | None:
        """Return the status if the callback or the time limit ends the fit now."""
        seconds = self.seconds
        if self.callback is not None:
            state = State(self.method, int(n_iter), float(violation), self.tol, seconds)
            if _truth(self.callback(state)):
                return Status.STOPPED
        return Status.MAX_TIME if self.late() else None


def _truth(answer: object) -> bool:
    """Return whether a callback asks to stop; raise TypeError for an array."""
    try:
        return bool(answer)
    except (TypeError, ValueError):
        raise TypeError(
            f"callback must return True, False or None, got {shown(answer)}"
        ) from None
