"""State that stays beside the rows, wherever these are."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Protocol

import numpy as np

from .remote import RemoteRows, StateFactory
from .sums import Parts, pairwise


class RowState(Protocol):
    """State of all rows that answers requests, the methods of the state, by sums."""

    def sum(self, name: str, *arguments: Any) -> Parts:
        """Return the sum over all chunks of the answers of a method."""
        ...

    def map(self, name: str, *arguments: Any) -> list[Parts]:
        """Return the answers for some rows each, which together are all rows."""
        ...


class LocalState:
    """State of the rows of this process."""

    def __init__(self, state: Any):
        self._state = state

    def sum(self, name: str, *arguments: Any) -> Parts:
        answers = getattr(self._state, name)(*arguments)
        if not hasattr(answers, "close"):
            return pairwise(answers)
        with closing(answers):
            return pairwise(answers)

    def map(self, name: str, *arguments: Any) -> list[Parts]:
        return [getattr(self._state, name)(*arguments)]


def with_state(
    X: Any,
    rank: np.ndarray,
    weight: np.ndarray,
    make: StateFactory,
    n_threads: int,
    room: float = 0,
) -> RowState:
    """Make a state of rows in this process, or one per block at the workers of dask.

    Parameters
    ----------
    X : (n, d) matrix or Rows
    rank, weight : (n,) arrays
    make : StateFactory
        It is sent to the workers.
    n_threads : int
        Threads of this process; workers use their own.
    room : float
        Number of rows whose features one process may keep.
    """
    room = int(min(room, len(X)))
    if isinstance(X, RemoteRows):
        return X.with_state(make, room)
    return LocalState(make(X, rank, weight, room, n_threads))
