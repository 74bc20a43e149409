"""Sums over rows that lie at workers: in other processes, or at other machines.

A worker holds a `Part`: some blocks of rows, their features, and what rows remember.
`RemoteRows` asks all parts one question at a time. The sums of blocks are added in the
tree of `sums`, so that a fit has the same bytes whoever holds which blocks.

What rows remember follows from the moves that were made: to begin a problem, to go to
a point, to take the multipliers there. A question comes with those that were made since
the last one. A part that was lost begins anew, with blocks that are read again: it
answers how many moves it knows, and is sent what it lacks. Of all moves since a problem
began only the points where multipliers were taken matter, and the last two.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .._model.monitor import turn
from .._numerics.tree import Node, Parts, merged, pairwise, whole
from .levels import stratified
from .losses import Losses
from .sums import Asked, Features, Rows

_PATIENCE = 0.5  # seconds between two looks at whether time is up


class Move(NamedTuple):
    """What changes what rows remember: "begin" (losses, share of the rows, seed), "go"
    (w, b, sigma), "take", "double", which is to go on in double precision."""

    name: str
    arguments: tuple[Any, ...] = ()


def lacking(moves: Sequence[Move]) -> tuple[Move, ...]:
    """Those after which rows remember the same as after all of them."""
    begun = [k for k, move in enumerate(moves) if move.name == "begin"]
    moves = moves[begun[-1] :] if begun else moves
    gone = [k for k, move in enumerate(moves) if move.name == "go"]
    taken = {k - 1 for k, move in enumerate(moves) if move.name == "take"}
    idle = set(gone[:-2]) - taken
    return tuple(move for k, move in enumerate(moves) if k not in idle)


class Question(NamedTuple):
    """What is asked of a part.

    Attributes
    ----------
    known : int
        How many moves the part must know, unless it knows all of them.
    moves : tuple of Move
        What it makes before it answers, unless it has.
    made : int
        How many moves it knows then.
    name, arguments
        Of the method of `Rows` that answers.
    """

    known: int
    moves: tuple[Move, ...]
    made: int
    name: str
    arguments: tuple[Any, ...]


class Behind(NamedTuple):
    """The answer of a part that knows other moves than it must."""

    made: int


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


Reader: TypeAlias = Callable[[Any, int, int], Labelled]
"""Of a block as its source has it, rows of which features may be kept, threads."""


class Answering:
    """Rows that make the moves which come with a question, and answer it."""

    def __init__(self) -> None:
        self._rows: list[Rows] = []
        self._made = 0
        self._lock = threading.Lock()  # a worker may run several tasks at a time

    def answer(self, question: Question) -> list[Node] | Behind:
        """Sums of rows, added as far as they can be."""
        with self._lock:
            if self._made not in (question.known, question.made):
                return Behind(self._made)
            if self._made < question.made:
                for move in question.moves:
                    self._make(move)
                self._made = question.made
            nodes = self._nodes(question.name, question.arguments)
            if question.name != "curvature":
                return nodes
            return [Node(k, level, (packed(H),)) for k, level, (H,) in nodes]

    def _make(self, move: Move) -> None:
        if move.name == "begin":
            self._rows.clear()  # before there are those of another problem
            self._rows = list(self._begun(*move.arguments))
        elif move.name == "double":
            self._rows = list(self._doubled())
        else:
            for rows in self._rows:
                getattr(rows, move.name)(*move.arguments)

    def _begun(self, *problem: Any) -> Iterator[Rows]:
        """The rows of a problem."""
        raise NotImplementedError

    def _doubled(self) -> Iterator[Rows]:
        """The present ones in double precision."""
        raise NotImplementedError

    def _nodes(self, name: str, arguments: tuple[Any, ...]) -> list[Node]:
        """What a method of `Rows` answers."""
        raise NotImplementedError


class Part(Answering):
    """Blocks of rows at a worker. Pickled it is the blocks alone.

    Parameters
    ----------
    numbers : sequence of int
        Of the blocks among all, increasing.
    of : int
        How many all blocks are.
    n_threads : int
    room : int
        For how many rows features may be kept.
    read : Reader
    blocks : objects
        What `read` takes.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        of: int,
        n_threads: int,
        room: int,
        read: Reader,
        *blocks: Any,
    ):
        super().__init__()
        self._given = numbers, of, n_threads, room, read, *blocks
        self._numbers, self._of, self._n_threads = numbers, of, n_threads
        self._labelled: list[Labelled] = []
        for block in blocks:
            self._labelled.append(read(block, room, n_threads))
            room = max(0, room - self._labelled[-1].Z.n)

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, self._given

    def __sizeof__(self) -> int:
        """What it would cost to move the part; schedulers ask."""
        return sum(4 * part.Z.n * part.Z.m for part in self._labelled)

    def _nodes(self, name: str, arguments: tuple[Any, ...]) -> list[Node]:
        """The sums of all blocks."""
        pairs = zip(self._numbers, self._rows, strict=True)
        return merged(
            (
                Node(number, 0, pairwise(getattr(rows, name)(*arguments)))
                for number, rows in pairs
            ),
            self._of,
        )

    def _doubled(self) -> Iterator[Rows]:
        for rows, block in zip(self._rows, self._labelled, strict=True):
            yield rows.in_double(block.double)

    def _begun(self, losses: Losses, share: float = 1, seed: int = 0) -> Iterator[Rows]:
        for number, every in zip(self._numbers, self._labelled, strict=True):
            if share == 1:
                yield Rows(every.Z, every.rank, every.weight, losses, self._n_threads)
                continue
            size, rng = round(share * every.Z.n), np.random.default_rng([seed, number])
            rows = stratified(every.rank, size, rng)
            Z, rank, weight = every.Z.among(rows), every.rank[rows], every.weight[rows]
            yield Rows(Z, rank, weight, losses, self._n_threads)


class Crew(Protocol):
    """Who holds the parts."""

    def __len__(self) -> int: ...

    def ask(self, questions: dict[int, Question]) -> dict[int, list[Node] | Behind]:
        """What some parts answer, by their numbers."""
        ...


def packed(H: np.ndarray) -> np.ndarray:
    """The lower triangle of a matrix, row by row."""
    return np.concatenate([row[: i + 1] for i, row in enumerate(H)])


def unpacked(triangle: np.ndarray) -> np.ndarray:
    """The matrix, zero above the triangle."""
    n = math.isqrt(2 * triangle.size)
    H, start = np.zeros((n, n)), 0
    for i, row in enumerate(H):
        row[: i + 1] = triangle[start : start + i + 1]
        start += i + 1
    return H


class RemoteRows:
    """Rows that a crew holds.

    Attributes
    ----------
    n, m : int
        Rows, and their features.
    """

    def __init__(self, crew: Crew, n: int, m: int):
        self.n, self.m = n, m
        self._crew = crew
        self._moves: list[Move] = []
        self._told = 0  # all parts have heard of so many moves

    def sums(self, losses: Losses, *which: Any) -> RemoteSums:
        """Those of a problem of the rows that parts know by `which`; the problem before
        it is over."""
        self.move("begin", losses, *which)
        return RemoteSums(self, losses)

    def move(self, name: str, *arguments: Any) -> None:
        """Parts hear of it with the next question."""
        self._moves.append(Move(name, arguments))

    def ask(self, name: str, *arguments: Any) -> Parts:
        """The sum over all chunks of what a method of `Rows` answers."""
        made = len(self._moves)

        def since(known: int) -> Question:
            return Question(known, lacking(self._moves[known:]), made, name, arguments)

        nodes: list[Node] = []
        asked = dict.fromkeys(range(len(self._crew)), since(self._told))
        while asked:
            answers, asked = self._crew.ask(asked), {}
            for part, answer in answers.items():
                if isinstance(answer, Behind):
                    asked[part] = since(answer.made)
                else:
                    nodes += answer
        self._told = made
        total = whole(merged(sorted(nodes, key=lambda node: node.first)))
        return (unpacked(*total),) if name == "curvature" else total


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


class DaskCrew:
    """Parts as actors of dask, one at each worker that holds blocks when a fit begins.

    Dask calls actors at their workers and never moves them. If a worker is lost, dask
    makes its part anew at another, from blocks that it computes again if need be.

    Parameters
    ----------
    client : distributed.Client
    blocks : list of futures
    room : int
        For how many rows a worker may keep features.
    read : Reader
    """

    def __init__(self, client: Any, blocks: Sequence[Any], room: int, read: Reader):
        self._client, self._blocks, self._room = client, blocks, room
        self._read = client.submit(_itself, read, pure=False)
        _await(blocks)
        self._threads, holders = client.nthreads(), client.who_has(blocks)
        held: dict[str, list[int]] = {}
        for k, block in enumerate(blocks):
            held.setdefault(min(holders[block.key]), []).append(k)
        self._numbers = list(held.values())
        self._begun = [self._begin(*of) for of in held.items()]
        self._parts: dict[int, Any] = {}  # those that are known to have been made

    def __len__(self) -> int:
        return len(self._begun)

    def ask(self, questions: dict[int, Question]) -> dict[int, list[Node] | Behind]:
        asked = {k: self._asked(k, question) for k, question in questions.items()}
        return {k: self._answer(k, future) for k, future in asked.items()}

    def _begin(self, worker: str | None, numbers: list[int]) -> Any:
        """The future of a part, at a worker if one is named and lives."""
        return self._client.submit(
            Part, numbers, len(self._blocks), self._threads.get(worker, 1), self._room,
            self._read, *(self._blocks[k] for k in numbers), actor=True,
            workers=None if worker is None else [worker],
            allow_other_workers=worker is not None, pure=False,
        )  # fmt: skip

    def _asked(self, k: int, question: Question) -> Any:
        """A future, or None if the part is lost."""
        try:
            if k not in self._parts:
                _await([self._begun[k]])
                self._parts[k] = self._begun[k].result()
            return self._parts[k].answer(question)
        except (OSError, RuntimeError):
            return None

    def _answer(self, k: int, future: Any) -> Any:
        while future is not None:
            try:
                return future.result(timeout=_PATIENCE)
            except TimeoutError:
                turn()
            except OSError:  # from the way to the worker; parts raise none
                break
        self._parts.pop(k, None)
        self._begun[k] = self._begin(None, self._numbers[k])
        return Behind(0)


def _itself(read: Reader) -> Reader:
    return read


def _await(futures: Sequence[Any]) -> None:
    """Until all are done, or time is up."""
    distributed: Any = import_module("distributed")
    while True:
        try:
            distributed.wait(futures, timeout=_PATIENCE)
        except TimeoutError:
            turn()
        else:
            return
