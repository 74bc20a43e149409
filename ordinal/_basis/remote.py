"""Sums over rows that the workers of a cluster hold.

Each worker holds a part of the rows (`_rows.transport`) with their features and the
state of a problem. The state follows from events: begin a problem, go to a point, take
the multipliers there. Of the events since a problem began only the points where
multipliers were taken matter, and the last two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._rows.sums import Parts, merged, whole
from .._rows.transport import Event, Part, RemoteState
from .losses import Losses
from .sampling import stratified
from .sums import Asked, Features, Nodes, RowSums


def needed(events: Sequence[Event]) -> tuple[Event, ...]:
    """Drop events that later events overwrite.

    The events are "begin" (losses, share of the rows, seed), "go" (w, b, sigma),
    "take", and "double", after which sums are in double precision.
    """
    begun = [k for k, event in enumerate(events) if event.name == "begin"]
    events = events[begun[-1] :] if begun else events
    gone = [k for k, event in enumerate(events) if event.name == "go"]
    taken = {k - 1 for k, event in enumerate(events) if event.name == "take"}
    idle = set(gone[:-2]) - taken
    return tuple(event for k, event in enumerate(events) if k not in idle)


class BlockFeatures(Features, Protocol):
    """Features of the rows of a block."""

    def restricted_to(self, numbers: np.ndarray) -> Features:
        """Return the features of some of the rows."""
        ...


class BlockState(NamedTuple):
    """Arguments of `RowSums` for the rows of a block.

    `double` are the features in double precision, in which a fit of all rows ends.
    """

    Z: BlockFeatures
    double: Features
    rank: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        return self.Z.n

    @property
    def size(self) -> int:
        return 4 * self.Z.n * self.Z.m


class BasisPart(Part):
    """Blocks of a worker, each a `BlockState`, with the sums of a problem."""

    def _apply(self, event: Event) -> None:
        if event.name == "begin":
            self._rows.clear()  # frees memory before the sums of the next problem exist
            self._rows = list(self._begun(*event.arguments))
        elif event.name == "double":
            self._rows = [
                rows.in_double(block.double)
                for rows, block in zip(self._rows, self._states, strict=True)
            ]
        else:
            for rows in self._rows:
                getattr(rows, event.name)(*event.arguments)

    def _sum(self, answer: Nodes) -> Parts:
        return whole(merged(answer))

    def _begun(
        self, losses: Losses, share: float = 1, seed: int = 0
    ) -> Iterator[RowSums]:
        """Yield the sums of a problem over all rows, or a share of each block."""
        for number, block in zip(self._numbers, self._states, strict=True):
            Z, rank, weight = block.Z, block.rank, block.weight
            if share < 1:
                rng = np.random.default_rng([seed, number])
                rows = stratified(rank, round(share * Z.n), rng)
                Z, rank, weight = Z.restricted_to(rows), rank[rows], weight[rows]
            yield RowSums(Z, rank, weight, losses, self._n_threads)


class RemoteSums(Asked):
    """`Sums` over rows at workers.

    Parameters
    ----------
    state : RemoteState
        Of `BasisPart`s, with the problem begun.
    n, m : int
        Numbers of rows and of features.
    losses : Losses
    """

    def __init__(self, state: RemoteState, n: int, m: int, losses: Losses):
        self.n, self.m, self.losses = n, m, losses
        self._state = state

    def take(self) -> None:
        self._state.record("take")

    def in_double(self) -> RemoteSums:
        """Return the sums with features in double precision, and with the same g."""
        self._state.record("double")
        return RemoteSums(self._state, self.n, self.m, self.losses)

    def _go(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        self._state.record("go", w, b, sigma)

    def _sum(self, question: str, *arguments: Any) -> Parts:
        return self._state.sum(question, *arguments)
