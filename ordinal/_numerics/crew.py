"""Questions to rows that lie elsewhere: at the workers of a cluster.

A worker holds a part of the rows, some blocks of them. All parts are asked one question
at a time: the name of a method of what they hold of a block, and its arguments. The
sums of blocks are added in the tree of `tree`, so that what is asked for has the same
bytes whoever holds which blocks.

Rows may remember something, which follows from moves that were made. A question comes
with those that were made since the last one. A part that was lost begins anew, with
blocks that are read again: it answers how many moves it knows, and is sent what it
lacks. Rows that remember nothing make no moves.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .._model.monitor import turn
from .tree import Node, Parts, merged, pairwise, whole

_PATIENCE = 0.5  # seconds between two looks at whether time is up


class Move(NamedTuple):
    """What changes what rows remember."""

    name: str
    arguments: tuple[Any, ...] = ()


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
        Of the method that answers.
    added : bool
        Whether it gives the sums of chunks, which are to be added; else arrays that are
        wanted of each block.
    """

    known: int
    moves: tuple[Move, ...]
    made: int
    name: str
    arguments: tuple[Any, ...]
    added: bool = True


class Behind(NamedTuple):
    """The answer of a part that knows other moves than it must."""

    made: int


class Held(Protocol):
    """What a part holds of a block."""

    @property
    def n(self) -> int:
        """Its rows."""

    @property
    def size(self) -> int:
        """Bytes."""


Reader: TypeAlias = Callable[[Any, int, int], Held]
"""Of a block as its source has it, rows of which features may be kept, threads."""


class Part:
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
        self._made = 0
        self._lock = threading.Lock()  # a worker may run several tasks at a time
        self._given = numbers, of, n_threads, room, read, *blocks
        self._numbers, self._of, self._n_threads = numbers, of, n_threads
        self._held: list[Any] = []
        for block in blocks:
            self._held.append(read(block, room, n_threads))
            room = max(0, room - self._held[-1].n)
        self._rows: list[Any] = list(self._held)

    def answer(self, question: Question) -> list[Node] | Behind:
        """Make the moves of a question, and return sums of rows, as far as known."""
        with self._lock:
            if self._made not in (question.known, question.made):
                return Behind(self._made)
            if self._made < question.made:
                for move in question.moves:
                    self._make(move)
                self._made = question.made
            nodes = self._nodes(question)
            if question.name != "curvature":
                return nodes
            return [Node(k, level, (packed(H),)) for k, level, (H,) in nodes]

    def _make(self, move: Move) -> None:
        """Change what the rows remember."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given

    def __sizeof__(self) -> int:
        """What it would cost to move the part; schedulers ask."""
        return sum(held.size for held in self._held)

    def _nodes(self, question: Question) -> list[Node]:
        """Return the sums of all blocks, or what each of them answers."""
        found = (
            getattr(rows, question.name)(*question.arguments) for rows in self._rows
        )
        pairs = zip(self._numbers, found, strict=True)
        if not question.added:
            return [Node(number, 0, parts) for number, parts in pairs]
        sums = (Node(number, 0, self._sum(sums)) for number, sums in pairs)
        return merged(sums, self._of)

    def _sum(self, answer: Any) -> Parts:
        """Of all chunks of a block, from what it answers of each."""
        return pairwise(answer)


class Crew(Protocol):
    """Holder of the parts."""

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


def _all(moves: Sequence[Move]) -> tuple[Move, ...]:
    return tuple(moves)


class Asking:
    """Questions to all the rows that a crew holds.

    Parameters
    ----------
    crew : Crew
    lacking : callable, optional
        Some of the moves after which rows remember the same as after all of them.
    """

    def __init__(
        self,
        crew: Crew,
        lacking: Callable[[Sequence[Move]], tuple[Move, ...]] = _all,
    ):
        self._crew, self._lacking = crew, lacking
        self._moves: list[Move] = []
        self._told = 0  # all parts have heard of so many moves

    def move(self, name: str, *arguments: Any) -> None:
        """Parts hear of it with the next question."""
        self._moves.append(Move(name, arguments))

    def ask(self, name: str, *arguments: Any) -> Parts:
        """The sum over all chunks of what a method answers."""
        total = whole(merged(self._answers(name, arguments, True)))
        return (unpacked(*total),) if name == "curvature" else total

    def each(self, name: str, *arguments: Any) -> list[Parts]:
        """What a method answers of each block, in the order of these."""
        return [node.parts for node in self._answers(name, arguments, False)]

    def _answers(
        self, name: str, arguments: tuple[Any, ...], added: bool
    ) -> list[Node]:
        made = len(self._moves)

        def since(known: int) -> Question:
            lacking = self._lacking(self._moves[known:])
            return Question(known, lacking, made, name, arguments, added)

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
        return sorted(nodes, key=lambda node: node.first)


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
    kind : type of Part
    """

    def __init__(
        self,
        client: Any,
        blocks: Sequence[Any],
        room: int,
        read: Reader,
        kind: type[Part] = Part,
    ):
        self._client, self._blocks, self._room = client, blocks, room
        self._read, self._kind = client.submit(_itself, read, pure=False), kind
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
            self._kind, numbers, len(self._blocks), self._threads.get(worker, 1),
            self._room, self._read, *(self._blocks[k] for k in numbers), actor=True,
            workers=None if worker is None else [worker],
            allow_other_workers=worker is not None, pure=False,
        )  # fmt: skip

    def _asked(self, k: int, question: Question) -> Any:
        """A future, or None if the part is lost."""
        try:
            if k not in self._parts:
                _await([self._begun[k]])
                self._parts[k] = self._begun[k].result()
        except (OSError, RuntimeError):
            return None
        try:
            return self._parts[k].answer(question)
        except (OSError, RuntimeError, ValueError):  # the last one by older dask
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
