"""Sums over rows that lie at the workers of a cluster.

A worker holds a part of the rows (`_numerics.crew`), their features, and what rows
remember: it follows from the moves to begin a problem, to go to a point, to take the
multipliers there. Of all moves since a problem began only the points where multipliers
were taken matter, and the last two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._numerics.crew import Asking, Crew, Move, Part
from .._numerics.tree import Parts, merged, whole
from .levels import stratified
from .losses import Losses
from .sums import Asked, Features, Nodes, Rows


def lacking(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Those after which rows remember the same as after all of them: "begin" (losses,
    share of the rows, seed), "go" (w, b, sigma), "take", and "double", which is to go
    on in double precision."""
    begun = [k for k, move in enumerate(moves) if move.name == "begin"]
    moves = moves[begun[-1] :] if begun else moves
    gone = [k for k, move in enumerate(moves) if move.name == "go"]
    taken = {k - 1 for k, move in enumerate(moves) if move.name == "take"}
    idle = set(gone[:-2]) - taken
    return tuple(move for k, move in enumerate(moves) if k not in idle)


class RowsOf(Features, Protocol):
    """Features of a block."""

    def among(self, numbers: np.ndarray) -> Features:
        """Those of some of its rows."""
        ...


class Labelled(NamedTuple):
    """What `Rows` takes of a block; `double` are the features in double precision, of
    which a fit of all rows may ask."""

    Z: RowsOf
    double: Features
    rank: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        return self.Z.n

    @property
    def size(self) -> int:
        return 4 * self.Z.n * self.Z.m


class LabelledPart(Part):
    """Chunks of rows at a worker, each `Labelled`, with a problem's multipliers."""

    def _make(self, move: Move) -> None:
        if move.name == "begin":
            self._rows.clear()  # before there are those of another problem
            self._rows = list(self._begun(*move.arguments))
        elif move.name == "double":
            self._rows = [
                rows.in_double(block.double)
                for rows, block in zip(self._rows, self._held, strict=True)
            ]
        else:
            for rows in self._rows:
                getattr(rows, move.name)(*move.arguments)

    def _sum(self, answer: Nodes) -> Parts:
        return whole(merged(answer))

    def _begun(self, losses: Losses, share: float = 1, seed: int = 0) -> Iterator[Rows]:
        """Yield the rows of a problem: all, or a share of each chunk's, at random."""
        for number, every in zip(self._numbers, self._held, strict=True):
            if share == 1:
                yield Rows(every.Z, every.rank, every.weight, losses, self._n_threads)
                continue
            size, rng = round(share * every.Z.n), np.random.default_rng([seed, number])
            rows = stratified(every.rank, size, rng)
            Z, rank, weight = every.Z.among(rows), every.rank[rows], every.weight[rows]
            yield Rows(Z, rank, weight, losses, self._n_threads)


class RemoteRows(Asking):
    """Rows that a crew holds.

    Attributes
    ----------
    n, m : int
        Rows, and their features.
    """

    def __init__(self, crew: Crew, n: int, m: int):
        super().__init__(crew, lacking)
        self.n, self.m = n, m

    def sums(self, losses: Losses, *which: Any) -> RemoteSums:
        """Those of a problem of the rows that parts know by `which`; the problem before
        it is over."""
        self.move("begin", losses, *which)
        return RemoteSums(self, losses)


class RemoteSums(Asked):
    """`Sums` of rows that a crew holds."""

    def __init__(self, rows: RemoteRows, losses: Losses):
        self.n, self.m, self.losses = rows.n, rows.m, losses
        self._at = rows

    def take(self) -> None:
        self._at.move("take")

    def in_double(self) -> RemoteSums:
        """The same rows with features in double, and with the same g."""
        self._at.move("double")
        return RemoteSums(self._at, self.losses)

    def _go(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        self._at.move("go", w, b, sigma)

    def _sum(self, question: str, *arguments: Any) -> Parts:
        return self._at.ask(question, *arguments)
