"""Calls that a family draws, their results, and how both are written down."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

# A figure each, and nothing to mend: what the package may answer to a caller's slip.
ALLOWED = (ValueError, TypeError, MemoryError, OSError)


@dataclass(frozen=True)
class Call:
    """A call as source text: `function(name=source, ...)` after `prelude`.

    Arguments are in the order of the call; those whose name is a number are positional.
    `kept` names those without which the call would be another one, so that no search
    for a shorter call drops them.
    """

    function: str
    arguments: Mapping[str, str]
    prelude: str = "from subjects import *"
    kept: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        shown = (v if k.isdigit() else f"{k}={v}" for k, v in self.arguments.items())
        return f"{self.function}({', '.join(shown)})"

    @property
    def script(self) -> str:
        """A program that makes the call, to be run from the root of the project."""
        return (
            f'import sys; sys.path.insert(0, "tools/fuzz")\n{self.prelude}\n'
            f"print({self.source})"
        )

    def shorter(self) -> Iterator["Call"]:
        """The same without one of its arguments, the last one first."""
        for name in reversed(self.arguments):
            if name not in self.kept:
                rest = {k: v for k, v in self.arguments.items() if k != name}
                yield replace(self, arguments=rest)


@dataclass(frozen=True)
class Outcome:
    """Result of a call.

    `kind` is "ok", or the name of an exception that is allowed, or that of a failure:
    "crash", "slow", "nan", "warning", "long message" and the like. `place` is the
    innermost line of the package that had to do with it.
    """

    kind: str
    failed: bool = False
    detail: str = ""
    place: str = ""
    incidental: bool = False  # the message comes from elsewhere than a `raise` of ours
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """Failures with the same key are taken for the same one."""
        return self.kind, self.place


class Family(Protocol):
    """A kind of calls.

    A new family is a module of `families/` with a class like this, and its name in
    `families/__init__.py`. Names that its sources need come from a module of their own,
    which begins with `from subjects import *` and which `Call.prelude` imports from.
    Such a function may look at what the package promises beyond `judge`, and raise
    `BrokenPromise` where that is broken: what is not in ALLOWED is a failure.
    """

    name: str

    def draw(self, rng: random.Random) -> Call:
        """A call that depends on `rng` alone, so that a seed and a number say which."""
        ...


def drawn(family: Family, seed: int, number: int) -> Call:
    """Return the call of a number."""
    return family.draw(random.Random(f"{seed}/{family.name}/{number}"))
