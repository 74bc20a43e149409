"""Relations between features of the package, which tests/ has for both."""

# ruff: noqa: F403, F405
import random
import sys
from pathlib import Path

from call import Call
from subjects import *

sys.path.append(str(Path(__file__).resolve().parents[3] / "tests"))

from test_crossings import RELATIONS


class Crossings:
    """A relation of the tests, with a method, a table and other arguments."""

    name = "crossings"

    def draw(self, rng: random.Random) -> Call:
        relation = rng.choice(list(RELATIONS))
        arguments = {"relation": repr(relation)}
        for name, values in RELATIONS[relation][1].items():
            arguments[name] = repr(rng.choice(list(values)))
        arguments["seed"] = str(rng.randrange(10**6))
        prelude = "from families.crossings import *"
        return Call("crossed", arguments, prelude, kept=("relation",))


def crossed(relation: str, **given: Any) -> None:
    """Check a relation; an argument that is not given has its first value, and the seed
    is 0."""
    test, choices = RELATIONS[relation]
    simplest = {name: next(iter(values)) for name, values in choices.items()}
    try:
        test(**{**simplest, "seed": 0, **given})
    except Exception as error:
        # Failures of one kind are taken for the same one.
        raise type(relation, (BrokenPromise,), {})(given) from error
