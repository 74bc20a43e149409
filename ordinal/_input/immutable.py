"""Objects that say that they are immutable, and what to do instead."""

import dataclasses
from typing import Any, NoReturn


class Immutable:
    """Base of the frozen dataclasses with slots that users hold.

    The `__setattr__` that `dataclass` writes calls `super()` with the class that had no
    slots yet, so that setting what is no field ends in a TypeError about `super`.
    """

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # dataclass(slots=True) makes a second class, from the members of the first
        if "__dataclass_fields__" in vars(cls):
            cls.__setattr__ = _refuse_to_set  # type: ignore[method-assign]
            cls.__delattr__ = _refuse_to_delete  # type: ignore[method-assign]


def _refuse_to_set(self: Any, name: str, value: Any) -> NoReturn:
    _refuse("set", self, name)


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    _refuse("delete", self, name)


def _refuse(verb: str, made: Any, name: str) -> NoReturn:
    if any(name == field.name for field in dataclasses.fields(made)):
        remedy = f"dataclasses.replace(..., {name}=...) returns a changed copy"
    else:
        remedy = "make a new one, or keep the value in a variable of your own"
    raise dataclasses.FrozenInstanceError(
        f"cannot {verb} '{name}': {type(made).__name__} objects are immutable; {remedy}"
    )
