"""Cancellation of the computations of a thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_thread = threading.local()


class OutOfTime(Exception):
    """Raised when time is up in a part of a fit that is useless unless finished."""


class Stopped(BaseException):
    """Raised in the fits of a task when nobody waits for it any more."""


def never() -> bool:
    """Return False: there is no time limit."""
    return False


def nothing() -> None:
    """Do nothing: no fit reports its progress."""


@contextmanager
def ended_by(over: Callable[[], bool]) -> Iterator[None]:
    """Cancel the computations of this thread once over() is true.

    `check_cancelled` then raises OutOfTime.
    """
    before = getattr(_thread, "over", never)
    _thread.over = over
    try:
        yield
    finally:
        _thread.over = before


@contextmanager
def reported_by(report: Callable[[], None]) -> Iterator[None]:
    """Let `check_cancelled` call report(), instead of that of an enclosing fit."""
    before = getattr(_thread, "report", nothing)
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
    before = getattr(_thread, "stop", never)
    _thread.stop = stop if before is never else lambda: before() or stop()
    try:
        yield
    finally:
        _thread.stop = before


def current() -> Callable[[], bool]:
    """Return the tests of `check_cancelled` in this thread, to pass them to others."""
    over, stop = getattr(_thread, "over", never), getattr(_thread, "stop", never)
    return over if stop is never else lambda: over() or stop()


def check_stopped() -> None:
    """Raise Stopped if nobody waits for the task of this thread any more."""
    if getattr(_thread, "stop", never)():
        raise Stopped


def check_cancelled() -> None:
    """Raise an exception if the fit was stopped or is out of time.

    Computations that may take seconds call it between their blocks.
    """
    getattr(_thread, "report", nothing)()
    check_stopped()
    if getattr(_thread, "over", never)():
        raise OutOfTime
