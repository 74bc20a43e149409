"""Warnings at the caller of the package."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FrameType
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


_given: ContextVar[set[tuple[str, type]] | None] = ContextVar("given", default=None)


def each_warning_once(function: Function) -> Function:
    """Make a function give equal warnings once, such as those of a pool's members."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _given.get() is not None:  # within such a call of the caller
            return function(*args, **kwargs)
        token = _given.set(set())
        try:
            return function(*args, **kwargs)
        finally:
            _given.reset(token)

    return cast(Function, call)


@contextmanager
def given_apart() -> Iterator[None]:
    """Count no warning within as given, because the caller may not see it."""
    token = _given.set(None)
    try:
        yield
    finally:
        _given.reset(token)


def warn(message: str, category: type[Warning], about: str = "") -> None:
    """Warn at the first caller outside this package.

    Within `each_warning_once`, warnings of one category are equal if they are `about`
    the same or, without it, have the same message.
    """
    given = _given.get()
    if given is not None:
        if (about or message, category) in given:
            return
        given.add((about or message, category))
    frame, level = sys._getframe(1), 2
    while (up := frame.f_back) is not None and _is_own(up):
        frame, level = up, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame belongs to this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)
