"""Every public callable, found by looking, so that a new one is fuzzed unnamed."""

import inspect
import random
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import plain
from call import Call

import ordinal
from ordinal.kernels.functions import KernelFunction

# What callers are given and do not make: their methods are called, on instances.
_GIVEN = (ordinal.Model, Exception, tuple)
_GIVEN_NAMES = {
    "Comparison", "Convergence", "Explanation", "Failure", "Fit", "Nested", "PomPath",
    "Selection", "State", "Status", "TableCoding",
}  # fmt: skip


@dataclass(frozen=True)
class Callable:
    """A function, class or method: its source text and its parameters."""

    source: str
    parameters: tuple[inspect.Parameter, ...]

    @property
    def names(self) -> list[str]:
        """Return the names of arguments as `Call` has them."""
        return [
            str(i) if p.kind is p.POSITIONAL_ONLY else p.name
            for i, p in enumerate(self.parameters)
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]

    def call(self, rng: random.Random, share: float) -> Call:
        """A call that should go, with about this share of the optional arguments."""
        given: dict[str, str] = {}
        for i, p in enumerate(self.parameters):
            name = str(i) if p.kind is p.POSITIONAL_ONLY else p.name
            source: str | None = None
            if p.name in plain.ALWAYS:
                source = plain.ALWAYS[p.name]
            elif p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
                # Options of a method are those of a function of `inference`.
                is_method = "(" in self.source
                given |= {} if is_method else plain.ANY_NAME.get(p.name, {})
            elif p.default is p.empty:
                source = plain.needed(self.source, p.name)
            elif rng.random() < share:
                source = plain.allowed(rng, self.source, p.name)
            if source is not None:
                given[name] = source
        return Call(self.source, given, kept=tuple(plain.KEPT))


def public_callables() -> Iterator[Callable]:
    modules = {"ordinal": ordinal}
    for name in dir(ordinal):
        if isinstance(getattr(ordinal, name), types.ModuleType):
            modules[name] = getattr(ordinal, name)
    for where, module in modules.items():
        for name in dir(module):
            value = getattr(module, name)
            if inspect.isclass(value):
                yield from _of_class(f"{where}.{name}", value)
            elif callable(value):
                yield _described(f"{where}.{name}", value)


def _of_class(source: str, owner: type) -> Iterator[Callable]:
    made = not issubclass(owner, _GIVEN) and owner.__name__ not in _GIVEN_NAMES
    if made or owner.__name__ == "PreprocessedModel":
        yield _described(source, owner)
    for name, member in inspect.getmembers(owner, inspect.isroutine):
        if (name.startswith("_") and name != "__call__") or not _is_ours(member):
            continue
        # The other methods of kernels are for solvers, and trust their arguments.
        if issubclass(owner, KernelFunction) and name not in ("__call__", "diagonal"):
            continue
        if inspect.ismethod(member):  # a classmethod
            yield _described(f"{source}.{name}", member)
        else:
            for instance in plain.INSTANCES.get(owner.__name__, ()):
                called = instance if name == "__call__" else f"{instance}.{name}"
                yield _described(called, member, drop_self=True)


def _is_ours(member: Any) -> bool:
    return (getattr(member, "__module__", None) or "").startswith("ordinal")


def _described(source: str, function: Any, drop_self: bool = False) -> Callable:
    parameters = tuple(inspect.signature(function).parameters.values())
    return Callable(source, parameters[drop_self:])
