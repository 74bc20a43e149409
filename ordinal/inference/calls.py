"""Decorator of the public functions of this package."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from .._input.checks import with_suggestions
from .._watch.blas import OneThread

Function = TypeVar("Function", bound=Callable[..., Any])


def on_one_thread(function: Function) -> Function:
    """Make a function of a fitted model use one thread of the BLAS, as fits do, and
    suggest names of keyword arguments.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with OneThread():
            return function(*args, **kwargs)

    return with_suggestions(cast(Function, call))
