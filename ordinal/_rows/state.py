"""State beside the rows: what a fit keeps with them, in this process or at workers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Protocol, TypeAlias

import numpy as np

from .sums import Parts, pairwise


class HeldState(Protocol):
    """State of some rows, of which further methods are called by name."""

    @property
    def n(self) -> int:
        """Return the number of rows."""

    @property
    def size(self) -> int:
        """Bytes in addition to the rows themselves."""


StateFactory: TypeAlias = Callable[[Any, np.ndarray, np.ndarray, int, int], HeldState]
"""Make the state of some rows: (X, ranks, weights, rows to cache, threads)."""


class RowState(Protocol):
    """State beside the rows, whose methods are called by name and return sums."""

    def sum(self, name: str, *arguments: Any, symmetric: bool = False) -> Parts:
        """Return the sum over all chunks of the results that a method yields.

        `symmetric` says that each result is one symmetric matrix; only the lower
        triangle of the sum is then set.
        """
        ...

    def map(self, name: str, *arguments: Any) -> list[Parts]:
        """Return the results of a method for disjoint parts of the rows."""
        ...


class LocalState:
    """State of the rows of this process."""

    def __init__(self, state: Any):
        self._state = state

    def sum(self, name: str, *arguments: Any, symmetric: bool = False) -> Parts:
        answers = getattr(self._state, name)(*arguments)
        if not hasattr(answers, "close"):
            return pairwise(answers)
        with closing(answers):
            return pairwise(answers)

    def map(self, name: str, *arguments: Any) -> list[Parts]:
        return [getattr(self._state, name)(*arguments)]
