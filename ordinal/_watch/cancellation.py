"""Cancellation of the computations of a thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Thread(threading.local):
    """Functions that the computations of a thread call; None before the first fit."""

    over: Callable[[], bool] | None = None
    stop: Callable[[], bool] | None = None
    report: Callable[[], None] | None = None


_thread = _Thread()


class OutOfTime(Exception):
    """Raised when time is up in a part of a fit that is useless unless finished."""


class Stopped(BaseException):
    """Raised in the fits of a task when nobody waits for it any more."""


def never() -> bool:
    """Return False: there is no time limit."""
    return False


@contextmanager
def ended_by(over: Callable[[], bool]) -> Iterator[None]:
    """Cancel the computations of this thread once over() is true.

    `check_cancelled` then raises OutOfTime.
    """
    before = _thread.over
    _thread.over = over
    try:
        yield
    finally:
        _thread.over = before


@contextmanager
def reported_by(report: Callable[[], None] | None) -> Iterator[None]:
    """Let `check_cancelled` call report(), if any, and not that of an enclosing fit."""
    before = _thread.report
    _thread.report = report
    try:
        yield
    finally:
        _thread.report = before


@contextmanager
def stopped_by(stop: Callable[[], bool]) -> Iterator[None]:
    """End all fits of this thread once stop() is true, whatever limits they have.

    `check_cancelled` and the monitors of fits then raise Stopped.
    """
    before = _thread.stop
    _thread.stop = stop if before is None else lambda: before() or stop()
    try:
        yield
    finally:
        _thread.stop = before


def current() -> Callable[[], bool]:
    """Return the tests of `check_cancelled` in this thread, to pass them to others."""
    over, stop = _thread.over or never, _thread.stop
    return over if stop is None else lambda: over() or stop()


def check_stopped() -> None:
    """Raise Stopped if nobody waits for the task of this thread any more."""
    if _thread.stop is not None and _thread.stop():
        raise Stopped


def check_cancelled() -> None:
    """Raise an exception if the fit was stopped or is out of time.

    Computations that may take seconds call it between their blocks.
    """
    if _thread.report is not None:
        _thread.report()
    check_stopped()
    if _thread.over is not None and _thread.over():
        raise OutOfTime
