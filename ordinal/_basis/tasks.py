"""Parts of the rows of a fit as tasks of an executor: of processes, or of threads.

A task connects to the process of the fit and answers questions about its part until
the connection is closed. As many tasks as there are chunks of rows are submitted at
first; those that connect before long share the rows, and the others stand by: so an
executor need not tell how many workers it has, and none is waited for that is busy.

The bytes of a fit do not depend on how many they are. If a task is lost, another one is
submitted, and its part begins anew there or at a task that is left.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Future, wait
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.connection import wait as wait_for
from typing import Any, NamedTuple

from .._input.checks import shown
from .._input.types import Executor
from .._model.monitor import OutOfTime, ended_by, turn
from .._numerics.crew import Answering, Behind, Question
from .._numerics.tree import Node

_LOOK = 0.1  # seconds between two looks at whether time is up
_LATER = 0.5, 5.0  # seconds in which the next task connects: at least, and at most
_END = 10.0  # seconds for tasks to see that the fit is over
_MOST = 256  # tasks
_BROKEN = (
    "executor has lost a worker, which was killed or had no memory left, and takes no "
    "tasks any more: make a new one and fit again"
)


class Request(NamedTuple):
    """What a task is asked of its part.

    Attributes
    ----------
    part : int
    begin : callable, or None
        Makes the part, if the task does not hold it.
    question : Question
    """

    part: int
    begin: Callable[[], Answering] | None
    question: Question


class _Failed(NamedTuple):
    """An answer: what was raised."""

    error: Exception


def task(
    address: Any, key: bytes, number: int, process: int, thread: int
) -> bool:  # what is submitted
    """Answer what the fit asks, until it is over. False, at once, in the thread of the
    fit itself, which then could ask nothing."""
    if (os.getpid(), threading.get_ident()) == (process, thread):
        return False
    try:
        connection = Client(address, authkey=key)
    except (OSError, EOFError, AuthenticationError):  # the fit is over
        return True
    with connection, suppress(OSError, EOFError, OutOfTime):
        connection.send(number)
        _serve(connection)
    return True


def _serve(connection: Any) -> None:
    """Until the end is told, which `turn` sees between chunks of rows: nothing else
    comes before a request is answered."""
    parts: dict[int, Answering] = {}

    def closed() -> bool:
        try:
            return bool(connection.poll())
        except OSError:
            return True

    while True:
        requests = connection.recv()
        if requests is None:
            return
        try:
            with ended_by(closed):
                answers: Any = [_answer(parts, request) for request in requests]
        except OutOfTime:
            raise
        except Exception as error:  # which the fit raises
            answers = _Failed(error)
        try:
            connection.send(answers)
        except (AttributeError, TypeError, ValueError) as error:  # not to be pickled
            text = f"{shown(answers)} at a worker: {error}"
            connection.send(_Failed(RuntimeError(text)))


def _answer(parts: dict[int, Answering], request: Request) -> list[Node] | Behind:
    if request.begin is not None:
        parts.pop(request.part, None)
        parts[request.part] = request.begin()
    return parts[request.part].answer(request.question)


class Tasks:
    """Tasks of one fit, and their connections.

    Parameters
    ----------
    executor : Executor
    """

    def __init__(self, executor: Executor):
        self._executor, self._key = executor, os.urandom(32)
        self._futures: dict[int, Future[Any]] = {}
        self._numbers: dict[Connection, int] = {}  # of those that have connected
        self._arrived: queue.SimpleQueue[tuple[int, Connection]] = queue.SimpleQueue()
        self._listener = Listener(backlog=_MOST, authkey=self._key)
        self._over = self._broken = False
        self._accepts = threading.Thread(target=self._accept, daemon=True)

    def gather(self, most: int) -> list[Connection]:
        """Those that connect before long, one at least and `most` at most."""
        began = time.monotonic()
        for _ in range(min(most, _MOST)):
            self._submit()
        self._accepts.start()  # not before an executor forks processes
        held = [self._first()]
        last = time.monotonic()
        patience = min(max(_LATER[0], last - began), _LATER[1])
        while len(held) < min(most, _MOST) and time.monotonic() < last + patience:
            if (new := self._next()) is not None:
                held.append(new)
                last = time.monotonic()
        return held

    def another(self, patient: bool) -> Connection | None:
        """One in the place of one that was lost; None if it does not come soon."""
        self._submit()
        if patient:
            return self._first()
        until = time.monotonic() + _LATER[1]
        while time.monotonic() < until:
            if (new := self._next()) is not None:
                return new
        return None

    def close(self) -> None:
        """Nothing is left running."""
        if self._over:
            return
        self._over = True
        if self._accepts.is_alive():
            with suppress(OSError, EOFError, AuthenticationError):
                with Client(self._listener.address, authkey=self._key) as own:
                    own.send(-1)
            self._accepts.join(_END)
        self._listener.close()
        with suppress(queue.Empty):
            while True:
                number, connection = self._arrived.get_nowait()
                self._numbers[connection] = number
        for connection in self._numbers:
            with suppress(OSError):  # a task that is lost has no end that listens
                connection.send(None)
            connection.close()
        # Python 3.11 cannot end a process pool that is broken where one was cancelled
        for future in () if self._broken else self._futures.values():
            future.cancel()
        begun = [self._futures[number] for number in self._numbers.values()]
        wait(begun, timeout=_END)

    def _submit(self) -> None:
        number = len(self._futures)
        try:
            self._futures[number] = self._executor.submit(
                task, self._listener.address, self._key, number, os.getpid(),
                threading.get_ident(),
            )  # fmt: skip
        except BrokenExecutor as error:
            self._broken = True
            raise RuntimeError(_BROKEN) from error

    def _first(self) -> Connection:
        """The next one, however long it takes; RuntimeError if none will come."""
        while True:
            if (new := self._next()) is not None:
                return new
            numbers = set(self._futures) - set(self._numbers.values())
            waiting = [self._futures[number] for number in numbers]
            if all(future.done() for future in waiting):
                if (new := self._next()) is not None:
                    return new
                ended = [future for future in waiting if not future.cancelled()]
                if any(future.result() is False for future in ended):
                    raise RuntimeError(
                        "executor must run tasks beside the thread that submits them, "
                        f"got {shown(self._executor)}"
                    )
                raise RuntimeError(
                    f"no worker of the executor {shown(self._executor)} reaches this "
                    "process: they must run on this machine"
                )

    def _next(self) -> Connection | None:
        """One that has connected, within a moment; raises what tasks have raised."""
        turn()
        try:
            number, connection = self._arrived.get(timeout=_LOOK)
        except queue.Empty:
            self._check()
            return None
        self._numbers[connection] = number
        return connection

    def _check(self) -> None:
        for future in self._futures.values():
            if not future.done() or future.cancelled():
                continue
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                self._broken = True
                raise RuntimeError(_BROKEN) from error
            if error is not None:
                raise error

    def _accept(self) -> None:
        """In a thread of its own, until `close` connects."""
        while True:
            try:
                connection = self._listener.accept()
                number = connection.recv()
            except (OSError, EOFError, AuthenticationError):
                if self._over:
                    return
                time.sleep(_LOOK)  # not to run in circles
                continue
            if number < 0:
                connection.close()
                return
            self._arrived.put((number, connection))


class TaskCrew:
    """Parts that tasks hold.

    Parameters
    ----------
    tasks : Tasks
    held : list of connections
        The task of each part.
    begin : callable
        What makes a part, by its number.
    fitted : callable
        A question as a part is asked it, by the part's number.
    """

    def __init__(
        self,
        tasks: Tasks,
        held: list[Connection],
        begin: Callable[[int], Callable[[], Answering]],
        fitted: Callable[[int, Question], Question],
    ):
        self._tasks, self._begin, self._fitted = tasks, begin, fitted
        self._held = held
        self._begun: set[int] = set()  # parts that their tasks have made
        self._owing: dict[Connection, list[int]] = {}  # of what an answer is to come

    def __len__(self) -> int:
        return len(self._held)

    def ask(self, questions: dict[int, Question]) -> dict[int, list[Node] | Behind]:
        self._settle()  # what was asked before time was up, and is no longer wanted
        by_task: dict[Connection, list[int]] = {}
        for part in questions:
            by_task.setdefault(self._held[part], []).append(part)
        lost = []
        for connection, parts in by_task.items():
            requests = [self._request(part, questions[part]) for part in parts]
            if not self._send(connection, requests):
                lost.append(connection)
                continue
            self._owing[connection] = parts
        answers = self._settle()
        for connection in lost:
            self._replace(connection)
        for part in questions:
            answers.setdefault(part, Behind(0))
        return answers

    def _request(self, part: int, question: Question) -> Request:
        begin = None if part in self._begun else self._begin(part)
        return Request(part, begin, self._fitted(part, question))

    def _send(self, connection: Connection, requests: list[Request]) -> bool:
        """Whether the task was there to take them."""
        try:
            connection.send(requests)
        except OSError:
            return False
        except Exception as error:
            raise TypeError(
                "X and kernel must be such that they can be pickled with executor=: "
                f"{error}"
            ) from error
        return True

    def _settle(self) -> dict[int, list[Node] | Behind]:
        """The answers that are to come. Those of tasks that were lost never do."""
        answers: dict[int, list[Node] | Behind] = {}
        while self._owing:
            turn()
            for connection in _ready(self._owing):
                try:
                    found = connection.recv()
                except (OSError, EOFError):
                    del self._owing[connection]
                    self._replace(connection)
                    continue
                parts = self._owing.pop(connection)
                if isinstance(found, _Failed):
                    raise found.error
                self._begun.update(parts)
                answers.update(zip(parts, found, strict=True))
        return answers

    def _replace(self, lost: Connection) -> None:
        """Give the parts of a task to another one."""
        lost.close()
        left = [connection for connection in self._held if connection is not lost]
        new = self._tasks.another(patient=not left)
        if new is None:
            new = min(left, key=left.count)
        for part, connection in enumerate(self._held):
            if connection is lost:
                self._held[part] = new
                self._begun.discard(part)


def _ready(connections: Iterable[Connection]) -> list[Any]:
    return wait_for(list(connections), timeout=_LOOK)
