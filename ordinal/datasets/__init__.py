"""Data sets: two real ones that come with the package, and the papers' artificial ones.

real  load_election and load_wine
made  make_gaussians and make_tlssvor, drawn anew from a seed
"""

from .made import make_gaussians, make_tlssvor
from .real import load_election, load_wine

__all__ = ["load_election", "load_wine", "make_gaussians", "make_tlssvor"]


def __dir__() -> list[str]:
    return __all__
