"""Requests to rows that the workers of a cluster hold.

A worker holds some blocks of the rows and, per block, a state: an object that a fit
makes from the block, such as the features of its rows. All workers receive the same
request: the name of a method of the state, and its arguments. The sums of blocks are
added in the tree of `sums`, so that the bytes of a sum do not depend on which worker
holds which blocks.

A state changes by events, and a request carries the events since the previous one. If a
worker is lost, its part is recreated from blocks that dask computes again. The new part
replies how many events it has applied, and receives those that it lacks.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._rows.rows import HeldState
from .._rows.sums import Node, Parts, merged, pairwise, whole
from .._watch.cancellation import check_cancelled

_PATIENCE = 0.5  # seconds between two checks for cancellation


class Event(NamedTuple):
    """Change of the state of all rows: a method of the state, and its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()


class Request(NamedTuple):
    """Request to one part.

    Attributes
    ----------
    known : int
        Number of events that the part must have applied, unless it has applied all.
    events : tuple of Event
        Events to apply before the answer, unless the part has applied them.
    applied : int
        Number of events that the part has applied afterwards.
    name, arguments
        Method of the state to call, and its arguments.
    summed : bool
        Whether the method returns sums of chunks, which are added. Otherwise it returns
        arrays, which are collected from each block.
    symmetric : bool
        Whether each sum is one symmetric matrix: its lower triangle alone is sent.
    """

    known: int
    events: tuple[Event, ...]
    applied: int
    name: str
    arguments: tuple[Any, ...]
    summed: bool = True
    symmetric: bool = False


class NeedsReplay(NamedTuple):
    """Reply of a part that has not applied the events that the request assumes."""

    applied: int


StateReader: TypeAlias = Callable[[Any, int, int], HeldState]
"""Make the state of a block: (block, rows whose features may be kept, threads)."""


class WorkerPart:
    """Blocks of one worker, and their states, which are not pickled.

    Parameters
    ----------
    numbers : sequence of int
        Numbers of the blocks among all, increasing.
    n_blocks : int
        Number of all blocks.
    n_threads : int
    room : int
        Number of rows whose features may be cached.
    read : StateReader
    blocks : objects
        The arguments of `read`.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        n_blocks: int,
        n_threads: int,
        room: int,
        read: StateReader,
        *blocks: Any,
    ):
        self._applied = 0
        self._lock = threading.Lock()  # a worker may run several tasks at a time
        self._arguments = numbers, n_blocks, n_threads, room, read, *blocks
        self._numbers, self._n_blocks, self._n_threads = numbers, n_blocks, n_threads
        self._states: list[Any] = []
        for block in blocks:
            self._states.append(read(block, room, n_threads))
            # The first blocks of a worker use the room for cached features, and leave
            # the rest to the next ones.
            room = max(0, room - self._states[-1].n)
        self._rows: list[Any] = list(self._states)

    def answer(self, request: Request) -> list[Node] | NeedsReplay:
        """Apply the events of a request, and return its result for these rows."""
        with self._lock:
            # The part was recreated, or missed a request whose answer was lost.
            if self._applied not in (request.known, request.applied):
                return NeedsReplay(self._applied)
            # If the answer to a request was lost, the same request comes again: its
            # events are not applied twice.
            if self._applied < request.applied:
                for event in request.events:
                    self._apply(event)
                self._applied = request.applied
            nodes = self._nodes(request)
            if not request.symmetric:
                return nodes
            # Matrices are packed for sending only; within the worker they are whole.
            return [Node(k, level, (packed(H),)) for k, level, (H,) in nodes]

    def _apply(self, event: Event) -> None:
        """Change the states by an event."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def __sizeof__(self) -> int:
        """Return the cost of moving the part, which dask's scheduler asks for."""
        return sum(state.size for state in self._states)

    def _nodes(self, request: Request) -> list[Node]:
        """Return the sums of all blocks, or the answer of each."""
        answers = (
            getattr(rows, request.name)(*request.arguments) for rows in self._rows
        )
        pairs = zip(self._numbers, answers, strict=True)
        if not request.summed:
            return [Node(number, 0, parts) for number, parts in pairs]
        sums = (Node(number, 0, self._sum(answer)) for number, answer in pairs)
        return merged(sums, self._n_blocks)

    def _sum(self, answer: Any) -> Parts:
        """Sum the chunks of one block."""
        return pairwise(answer)


def packed(H: np.ndarray) -> np.ndarray:
    """Return the lower triangle of a matrix, row by row."""
    return np.concatenate([row[: i + 1] for i, row in enumerate(H)])


def unpacked(triangle: np.ndarray) -> np.ndarray:
    """Return the matrix of a packed triangle, zero above the diagonal."""
    n = math.isqrt(2 * triangle.size)
    H, start = np.zeros((n, n)), 0
    for i, row in enumerate(H):
        row[: i + 1] = triangle[start : start + i + 1]
        start += i + 1
    return H


class RemoteState:
    """States of all rows, reached through a transport.

    Parameters
    ----------
    transport : DaskTransport
    needed : callable, optional
        Drops the events that later events overwrite; by default none.
    """

    def __init__(
        self,
        transport: DaskTransport,
        needed: Callable[[Sequence[Event]], tuple[Event, ...]] = tuple,
    ):
        self._transport, self._needed = transport, needed
        self._events: list[Event] = []
        self._reported = 0  # events that all parts have received

    def record(self, name: str, *arguments: Any) -> None:
        """Record an event, which parts apply before they answer the next request."""
        self._events.append(Event(name, arguments))

    def sum(self, name: str, *arguments: Any, symmetric: bool = False) -> Parts:
        """Return the sum over all chunks of the answers of a method of the states."""
        answers = self._answers(name, arguments, True, symmetric)
        # The tree is that of one process, so no byte depends on who holds a block.
        total = whole(merged(answers))
        return (unpacked(*total),) if symmetric else total

    def map(self, name: str, *arguments: Any) -> list[Parts]:
        """Return the answer of each block, in the order of the blocks."""
        return [node.parts for node in self._answers(name, arguments, False)]

    def _answers(
        self,
        name: str,
        arguments: tuple[Any, ...],
        summed: bool,
        symmetric: bool = False,
    ) -> list[Node]:
        applied = len(self._events)

        def since(known: int) -> Request:
            events = self._needed(self._events[known:])
            return Request(known, events, applied, name, arguments, summed, symmetric)

        nodes: list[Node] = []
        # All parts mostly know the same events, so that one request serves all.
        asked = dict.fromkeys(range(len(self._transport)), since(self._reported))
        while asked:
            answers, asked = self._transport.ask(asked), {}
            for part, answer in answers.items():
                if isinstance(answer, NeedsReplay):
                    # The request is repeated with the events that the part lacks.
                    asked[part] = since(answer.applied)
                else:
                    nodes += answer
        self._reported = applied
        return sorted(nodes, key=lambda node: node.first)


class DaskTransport:
    """Parts as dask actors, one per worker that holds blocks at the start.

    Dask runs the methods of an actor at its worker and never moves it. If a worker is
    lost, its part is recreated at another one from blocks that dask computes again.

    Parameters
    ----------
    client : distributed.Client
    blocks : list of futures
    room : int
        Number of rows whose features one worker may keep.
    read : StateReader
    kind : type of Part
    """

    def __init__(
        self,
        client: Any,
        blocks: Sequence[Any],
        room: int,
        read: StateReader,
        kind: type[WorkerPart] = WorkerPart,
    ):
        self._client, self._blocks, self._room = client, blocks, room
        self._read, self._kind = client.submit(_identity, read, pure=False), kind
        _await(blocks)
        self._threads, holders = client.nthreads(), client.who_has(blocks)
        held: dict[str, list[int]] = {}
        for k, block in enumerate(blocks):
            # The least address of several holders: the division does not depend on a
            # dict.
            held.setdefault(min(holders[block.key]), []).append(k)
        self._numbers = list(held.values())
        self._actors = [self._begin(worker, own) for worker, own in held.items()]
        self._parts: dict[int, Any] = {}  # parts that exist, by number

    def __len__(self) -> int:
        return len(self._actors)

    def ask(self, requests: dict[int, Request]) -> dict[int, list[Node] | NeedsReplay]:
        """Send requests to parts given by number, and return their answers."""
        # All are asked before the first answer is awaited: workers run in parallel.
        asked = {k: self._asked(k, request) for k, request in requests.items()}
        return {k: self._answer(k, future) for k, future in asked.items()}

    def _begin(self, worker: str | None, numbers: list[int]) -> Any:
        """Return the future of a part, at a worker if one is named and alive."""
        blocks = [self._blocks[k] for k in numbers]
        n_threads = self._threads.get(worker, 1)
        return self._client.submit(
            *(self._kind, numbers, len(self._blocks), n_threads, self._room),
            *(self._read, *blocks),
            actor=True,
            workers=None if worker is None else [worker],
            # The fit must not hang if a worker leaves before its part begins.
            allow_other_workers=worker is not None,
            pure=False,
        )

    def _asked(self, k: int, request: Request) -> Any:
        """Return the future of an answer, or None if the part is lost."""
        try:
            if k not in self._parts:
                _await([self._actors[k]])
                self._parts[k] = self._actors[k].result()
        except (OSError, RuntimeError):
            return None
        try:
            return self._parts[k].answer(request)
        except (OSError, RuntimeError, ValueError):  # older dask raises ValueError
            return None

    def _answer(self, k: int, future: Any) -> Any:
        """Wait for an answer; if its part is lost, begin a new part in its place."""
        while future is not None:
            try:
                # With a timeout, because a wait in dask does not see Ctrl-C or a time
                # limit.
                return future.result(timeout=_PATIENCE)
            except TimeoutError:
                check_cancelled()
            except OSError:  # the connection failed, because parts raise no OSError
                break
        self._parts.pop(k, None)
        self._actors[k] = self._begin(None, self._numbers[k])
        return NeedsReplay(0)


def _identity(read: StateReader) -> StateReader:
    """Return the argument: by this call, workers share one copy of it."""
    return read


def _await(futures: Sequence[Any]) -> None:
    """Block until all futures are done; raise OutOfTime as `check_cancelled` does."""
    distributed: Any = import_module("distributed")
    while True:
        try:
            distributed.wait(futures, timeout=_PATIENCE)
        except TimeoutError:
            check_cancelled()
        else:
            return
