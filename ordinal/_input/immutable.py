"""Base class of immutable records, and read-only arrays."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from .checks import suggest_in_methods


class _Signature:
    """Signature of a record by the names of its fields, without annotations.

    The rules of the fields (`fields`) would take a screen of `help`.
    """

    def __get__(self, made: Any, cls: type) -> inspect.Signature:
        if callable(made):  # a kernel has the signature of its call
            return inspect.signature(made.__call__)
        _, *own = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature([p.replace(annotation=p.empty) for p in own])


class Immutable:
    """Base class of frozen dataclasses with slots, with errors that say what to do.

    The `__setattr__` that `dataclass` generates refers to the class before it had
    slots, so that setting an unknown attribute would end in a TypeError about `super`.
    """

    __slots__ = ()
    __signature__ = _Signature()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        suggest_in_methods(cls)
        # dataclass(slots=True) creates a second class from the members of the first.
        if "__dataclass_fields__" in vars(cls):
            cls.__setattr__ = _refuse_to_set  # type: ignore[method-assign]
            cls.__delattr__ = _refuse_to_delete  # type: ignore[method-assign]


def _refuse_to_set(self: Any, name: str, value: Any) -> NoReturn:
    _refuse("set", self, name)


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    _refuse("delete", self, name)


def _refuse(verb: str, made: Any, name: str) -> NoReturn:
    """Raise FrozenInstanceError, with the way to make a changed copy."""
    if any(name == field.name for field in dataclasses.fields(made)):
        remedy = f"dataclasses.replace(..., {name}=...) returns a changed copy"
    else:
        remedy = "make a new one, or keep the value in a variable of your own"
    raise dataclasses.FrozenInstanceError(
        f"cannot {verb} '{name}': {type(made).__name__} objects are immutable; {remedy}"
    )


def read_only(values: ArrayLike) -> np.ndarray:
    """Return an array as read-only: itself if it owns its data, otherwise a copy."""
    a: np.ndarray = np.asarray(values)
    if not a.flags.owndata:  # the owner of the data could still write to it
        a = a.copy()
    a.flags.writeable = False
    return a
