"""Names for relations between features of the package, which tests/ has for both."""

# ruff: noqa: F403, F405
import sys
from pathlib import Path

from subjects import *

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from test_crossings import RELATIONS


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
