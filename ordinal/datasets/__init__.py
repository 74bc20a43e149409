"""Data sets: three real ones of the package, and the papers' artificial ones.

The modules of this package:

    sets    all of them
"""

from .sets import (
    load_election,
    load_houses,
    load_wine,
    make_gaussians,
    make_tlssvor,
)

__all__ = [
    "load_election",
    "load_houses",
    "load_wine",
    "make_gaussians",
    "make_tlssvor",
]


def __dir__() -> list[str]:
    return __all__
