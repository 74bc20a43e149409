"""Cancellation of the computations of a thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_thread = threading.local()


class OutOfTime(Exception):
    """Raised when time is up in a part of a fit that is useless unless finished."""


def never() -> bool:
    """Return False: there is no time limit."""
    return False


def _nothing() -> None:
    """Do nothing: no fit reports its progress."""


@contextmanager
def ended_by(over: Callable[[], bool]) -> Iterator[None]:
    """Cancel the computations of this thread once over() is true.

    `check_cancelled` then raises OutOfTime.
    """
    before = current()
    _thread.over = over
    try:
        yield
    finally:
        _thread.over = before


@contextmanager
def reported_by(report: Callable[[], None]) -> Iterator[None]:
    """Let `check_cancelled` call report(), instead of that of an enclosing fit."""
    before = getattr(_thread, "report", _nothing)
    _thread.report = report
    try:
        yield
    finally:
        _thread.report = before


def current() -> Callable[[], bool]:
    """Return the test of `check_cancelled` in this thread, to pass it to others."""
    over: Callable[[], bool] = getattr(_thread, "over", never)
    return over


def check_cancelled() -> None:
    """Raise an exception if the fit was interrupted or is out of time.

    Computations that may take seconds call it between their blocks.
    """
    getattr(_thread, "report", _nothing)()
    if current()():
        raise OutOfTime
