"""Monitor of a fit: whether it goes on, by its callback and its time limit."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, Self, TypeVar

import numpy as np

from .._input.checks import check_positive, shown
from .._input.immutable import Immutable
from .blas import OneThread
from .cancellation import check_stopped, ended_by, reported_by
from .convergence import Convergence, Status
from .forecast import Forecast
from .progress import FitLine, Line


@dataclass(frozen=True, slots=True)
class State(Immutable):
    """Progress of a fit, given to `callback`; a true return value stops the fit."""

    method: str
    n_iter: int
    violation: float
    tol: float
    seconds: float


class Finished(Protocol):
    """Model, or models of a path, with the record of the fit."""

    @property
    def convergence(self) -> Convergence: ...


M = TypeVar("M", bound=Finished)


@dataclass(slots=True)
class _Fit:
    """State that the monitors of all parts of a fit share."""

    line: FitLine | None
    forecast: Forecast | None = None
    ended: Status | None = None
    ended_at: float = 0.0
    asked_at: float = 0.0
    asked: tuple[int, float] = (0, np.inf)  # steps and violation
    thread: int = field(default_factory=threading.get_ident)
    warnings: list[Callable[[], None]] = field(default_factory=list)


class Monitor:
    """Callback, time limit and progress of one fit, or of a part of it.

    Drivers call `stop` between slices. As a context manager it closes the progress
    line, whatever ends the fit, and lets numbers underflow to 0 even if the caller has
    set `np.seterr` to raise: underflow is not an error in any fit. At the end warnings
    say what the models with which the fit concluded fall short of.

    Ctrl-C needs no support here: kernels return at least every `SLICE` seconds, and the
    interpreter then raises KeyboardInterrupt.
    """

    SLICE = 0.04  # seconds a kernel may run without returning to the interpreter
    GRACE = 0.5  # seconds beyond `max_time` for work that is useless unless finished
    ASKS = 0.1  # seconds from one call of the callback to the next within a step

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
        self.method, self.tol, self.callback = method, tol, callback
        self.max_time = max_time
        self._before = 0  # steps in earlier parts of the fit
        self._start = time.perf_counter()
        self._fit = _Fit(None if line is None else FitLine(method, self._start, line))
        self._contexts = ExitStack()

    def __enter__(self) -> Self:
        line = self._fit.line
        # An enclosing fit, if any, reports again when this one has ended.
        report = None if line is None else line.show
        self._contexts.enter_context(reported_by(report))
        self._contexts.enter_context(np.errstate(under="ignore"))
        self._contexts.enter_context(OneThread())
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            self._contexts.close()
        finally:
            if self._fit.line is not None:
                self._fit.line.close(kind)
        if kind is None:
            for warning in self._fit.warnings:
                warning()

    def at_end(self, call: Callable[[], object]) -> None:
        """Call a function when the context is left, whatever ends the fit."""
        self._contexts.callback(call)

    def to_tol(self, tol: float) -> Monitor:
        """Return the monitor of a part of the fit that ends at another tolerance."""
        part = copy.copy(self)
        part.tol = tol
        return part

    def after(self, n_iter: int) -> Monitor:
        """Return the monitor of a part of the fit that begins `n_iter` steps later."""
        part = copy.copy(self)
        part._before += n_iter
        return part

    @property
    def seconds(self) -> float:
        """Seconds since the clock of the fit started."""
        return time.perf_counter() - self._start

    def late(self, by: float = 0.0) -> bool:
        """Return whether `max_time` is exceeded by `by` seconds, within a step."""
        return self.max_time is not None and self.seconds >= self.max_time + by

    def over(self, by: float = 0.0) -> bool:
        """Return whether the fit ought to have ended `by` seconds ago, within a step.

        In the thread of the fit, it asks the callback again with the last state.
        """
        fit, seconds = self._fit, self.seconds
        here = self.callback is not None and threading.get_ident() == fit.thread
        if here and fit.ended is None and seconds >= fit.asked_at + self.ASKS:
            self._ask(*fit.asked)
        if fit.ended is Status.STOPPED:
            return seconds >= fit.ended_at + by
        return self.late(by)

    def limited(self, by: float = 0.0) -> AbstractContextManager[None]:
        """Cancel computations once `max_time` is exceeded by `by` seconds."""
        return ended_by(partial(self.late, by))

    def stop(self, n_iter: int, violation: float) -> Status | None:
        """Report progress; return the status to end with, or None to continue.

        The callback or the time limit may end the fit. Raises Stopped if nobody waits
        for the task that the fit belongs to.

        Once it has returned a status, it does so in all later parts of the fit, such as
        the other points of a path, or the polish after ADMM.
        """
        check_stopped()
        n_iter += self._before
        line = self._fit.line
        if line is not None:
            known = f", violation {violation:.1e}" if np.isfinite(violation) else ""
            line.show(f"{n_iter} steps{known}, tol {self.tol:g}")
        if self._fit.ended is None and self.callback is not None:
            self._ask(int(n_iter), float(violation))
        if self._fit.ended is None and self.late():
            self._fit.ended = Status.MAX_TIME
        return self._fit.ended

    def _ask(self, n_iter: int, violation: float) -> None:
        """Call the callback, which may end the fit."""
        assert self.callback is not None
        fit, seconds = self._fit, self.seconds
        state = State(self.method, n_iter, violation, self.tol, seconds)
        if _truth(self.callback(state)):
            fit.ended, fit.ended_at = Status.STOPPED, self.seconds
        fit.asked_at, fit.asked = self.seconds, (n_iter, violation)

    @property
    def ended(self) -> Status | None:
        """Return the status with which `stop` ended a part of the fit, or None."""
        return self._fit.ended

    @property
    def cut_short(self) -> Status:
        """Return the status of a fit of which a computation was cancelled: that of
        `ended`, or otherwise that of the time limit.
        """
        return self._fit.ended or Status.MAX_TIME

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

    def conclude(self, *models: M, warn: Callable[[M], None] | None = None) -> None:
        """Note the models of a fit, the last of which ends its progress line.

        `warn` is called with each of them after the fit. By default it warns of models
        that have not converged.
        """
        if self._fit.line is not None:
            self._fit.line.end = str(models[-1].convergence)
        for model in models:
            by_default = partial(model.convergence.warn_unless_converged, self.method)
            self._fit.warnings.append(partial(warn, model) if warn else by_default)

    def forecast(self, steps: int, needed: int, began: float) -> None:
        """Warn once of a fit that is far too long (see `Forecast.update`)."""
        if self._fit.forecast is None:
            if self.max_time is None and self.seconds < Forecast.RATED:
                return
            self._fit.forecast = Forecast(self.method, self.max_time)
        self._fit.forecast.update(self.seconds, steps, needed, began)

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Name a part of the fit on its progress line, also in `check_cancelled`."""
        return nullcontext() if self._fit.line is None else self._fit.line.stage(name)

    def numbered(self, kind: str, i: int, n: int) -> AbstractContextManager[None]:
        """Return a context that names stage i of n, counted from 0, on the line.

        Nothing is named if n is 1.
        """
        return self.stage(f"{kind} {i + 1} of {n}") if n > 1 else nullcontext()


def _truth(answer: object) -> bool:
    """Return whether a callback asks to stop; raise TypeError for an array."""
    try:
        return bool(answer)
    except (TypeError, ValueError):
        raise TypeError(
            f"callback must return True, False or None, got {shown(answer)}"
        ) from None
