"""Passes over chunks of rows, and rows that are not in memory all at once.

Rows in memory are processed in the same chunks as rows that are read again at every
pass. Sums over chunks are added in the tree of `sums`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from copy import copy
from threading import Lock
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from .._input.types import Matrix
from .._numerics.rows import matvec, strips, take
from .._numerics.threads import in_order
from .source import CHUNK, Reader, SubsetReader, changed_count, stacked
from .sums import Moments, Parts, pairwise

Chunk: TypeAlias = tuple[slice, Matrix]
Result = TypeVar("Result")
InProcess: TypeAlias = "Matrix | LocalRows"  # in memory, or read at every pass


def in_room(n: int, room: float) -> int:
    """Return the number of rows to cache, the first of n: all, or whole chunks.

    `room` is the number of rows for which there is memory.
    """
    return n if room >= n else int(room) // CHUNK * CHUNK


def chunks(X: InProcess, start: int = 0) -> Generator[Chunk, None, None]:
    """Yield slices of row numbers and the rows, chunk by chunk.

    `start` is the first row of a chunk, or the number of all rows.
    """
    if start == X.shape[0]:
        return
    if isinstance(X, Matrix):
        for rows in strips(X.shape[0], CHUNK, start):
            yield rows, take(X, rows)
    else:
        yield from X.numbered_chunks(start)


def by_chunk(
    X: InProcess, call: Callable[[Chunk], Parts], n_threads: int = 1, start: int = 0
) -> Generator[Parts, None, None]:
    """Yield call((rows, chunk)) of every chunk in order, computed ahead on threads."""
    with closing(chunks(X, start)) as given:
        yield from in_order(call, given, n_threads)


def summed(X: InProcess, call: Callable[[Chunk], Parts], n_threads: int = 1) -> Parts:
    """Return the sum of call((rows, chunk)) over all chunks."""
    with closing(by_chunk(X, call, n_threads)) as parts:
        return pairwise(parts)


def each(
    X: InProcess, call: Callable[[Chunk], None], n_threads: int = 1, start: int = 0
) -> None:
    """Call a function of every chunk for its side effect."""
    with (
        closing(chunks(X, start)) as given,
        closing(in_order(call, given, n_threads)) as done,
    ):
        for _ in done:
            pass


def beside_chunks(
    call: Callable[..., Result], beside: Sequence[np.ndarray]
) -> Callable[[Chunk], Result]:
    """Return a function of a chunk from one of its rows and the vectors beside them.

    `beside` have an entry per row of all, and are cut like the rows.
    """
    return lambda chunk: call(chunk[1], *(vector[chunk[0]] for vector in beside))


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


class Rows(ABC):
    """Features of n rows that are never in memory all at once.

    Attributes
    ----------
    shape : (n, d)
    size : int
        Number of rows in a chunk.
    is_sparse : bool
        Whether the chunks that this process reads are sparse.
    is_near : bool
        Whether single rows can be read without a message to a worker.
    """

    shape: tuple[int, int]
    size: int = CHUNK
    is_sparse = False
    is_near = True

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, rows: slice | np.ndarray) -> Matrix:
        """Return a range of rows of step 1, or copies of rows by number."""

    @abstractmethod
    def take(self, numbers: np.ndarray) -> Matrix:
        """Return copies of rows by number, in the order of `numbers`."""

    @abstractmethod
    def subset(self, numbers: np.ndarray, share: np.ndarray | None = None) -> Self:
        """Return the rows of these numbers, increasing, read as all rows are.

        `share` multiplies their weights, if the weights are beside the rows.
        """

    @abstractmethod
    def transformed(self, transform: Callable[[Any], np.ndarray]) -> Self:
        """Return rows whose features are a function of those of the same rows."""

    @abstractmethod
    def moments(self, weight: np.ndarray) -> Moments | None:
        """Return the moments of dense columns, by the sample weights of the rows."""

    def weighted_moments(self, weight: np.ndarray) -> Moments | None:
        """Return the moments by sample weights times class weights."""
        return self.moments(weight)

    @abstractmethod
    def map(self, call: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Apply a function of some rows to all rows, and concatenate the results."""

    @abstractmethod
    def sum(
        self, call: Callable[..., Parts], beside: Sequence[np.ndarray], n_threads: int
    ) -> Parts:
        """Return the sum over all chunks of call(X, *beside).

        `beside` are the ranks, the weights, and other vectors with an entry per row;
        rows that hold their own ranks and weights use these.
        """

    @abstractmethod
    def stack(
        self, call: Callable[..., np.ndarray], beside: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Return call(X, *beside) of all chunks, stacked along a new first axis."""

    @abstractmethod
    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product X v, (n,)."""

    @abstractmethod
    def with_state(
        self,
        make: StateFactory,
        rank: np.ndarray,
        weight: np.ndarray,
        n_threads: int,
        room: int,
    ) -> RowState:
        """Make a state beside the rows, as `columns.with_state`."""

    @abstractmethod
    def check_beside(self, name: str) -> None:
        """Raise ValueError if the rows take no vector of this name beside them."""

    def with_codes(self, codes: np.ndarray) -> Self:
        """Use `codes[rank]` instead of ranks, if the ranks are held with the rows."""
        return self

    def with_class_weights(self, factor: np.ndarray) -> Self:
        """Multiply the weights of each class, if the weights are beside the rows."""
        return self

    @abstractmethod
    def close(self) -> None:
        """End a pass, if one was begun."""


class LocalRows(Rows):
    """Features of n rows, of which few chunks are in memory at a time.

    `rows[slice]` and `rows[numbers]` read the source again. Slices in increasing order
    take one pass over the source. Several threads may ask for rows that are near each
    other at once; one of them reads at a time.

    Attributes
    ----------
    shape : (n, d)
    reader : Reader
        A reader that has completed its first pass.
    size : int
        Number of rows in a chunk.
    held : int
        Number of chunks of the present pass that are held for slower threads.
    """

    def __init__(self, reader: Reader, n: int):
        self.reader, self.shape = reader, (n, reader.n_features)
        self.size, self.held, self.is_sparse = CHUNK, 4, reader.is_sparse
        self._lock = Lock()
        self._pass: Generator[Matrix, None, None] | None = None
        self._next = 0  # next chunk of the pass
        self._chunks: dict[int, Matrix] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalRows, (self.reader, len(self))

    def __getitem__(self, rows: slice | np.ndarray) -> Matrix:
        """Return a read-only range of rows of step 1, or copies of rows by number.

        Rows that are near each other are taken from the present pass.
        """
        if not isinstance(rows, slice):
            if rows.size == 0 or np.ptp(rows) >= self.size:
                return self.take(rows)
            start = int(rows.min())
            found: Matrix = take(self[start : int(rows.max()) + 1], rows - start)
            return found
        start, stop, _ = rows.indices(len(self))
        at_once = self.reader.between(start, stop)
        if at_once is not None:
            return at_once
        parts = []
        for k in range(start // self.size, max(start, stop - 1) // self.size + 1):
            first = k * self.size
            inside = slice(max(start - first, 0), min(stop - first, self.size))
            parts.append(take(self._chunk(k), inside))
        return stacked(parts)

    def _chunk(self, k: int) -> Matrix:
        """Return chunk k of the present pass, or of a new one."""
        with self._lock:
            if k not in self._chunks:
                self._advance(k)
            return self._chunks[k]

    def _advance(self, k: int) -> None:
        """Read until chunk k is held."""
        try:
            if self._pass is None or k < self._next:
                self._end()
                self._pass = self.chunks()
            while self._next <= k:
                self._chunks[self._next] = next(self._pass)
                self._chunks.pop(self._next - self.held, None)
                self._next += 1
            if self._next * self.size >= len(self):
                # Reading on raises if the source has more rows than in the first pass.
                next(self._pass, None)
                self._pass = None
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        """End the present pass, and release its chunks."""
        if self._pass is not None:
            self._pass.close()
        self._pass, self._next = None, 0
        self._chunks.clear()

    def close(self) -> None:
        """End a pass, if one was begun, so that the source closes its files."""
        with self._lock:
            self._end()

    def chunks(self) -> Generator[Matrix, None, None]:
        """Yield all rows, `size` at a time; ValueError if their number changed."""
        n, seen = len(self), 0
        with closing(self.reader.chunks(self.size)) as chunks:
            for X, _, _ in chunks:
                seen += X.shape[0]
                if seen > n:
                    break
                yield X
        if seen != n:
            raise changed_count(self.reader.source, n, seen)

    def check_beside(self, name: str) -> None:
        """Accept any vector: those of other rows are cut as these are."""

    def numbered_chunks(self, start: int = 0) -> Generator[Chunk, None, None]:
        """Yield slices of row numbers and the rows, from a chunk that begins there."""
        if start and self.reader.is_seekable:
            for rows in strips(len(self), CHUNK, start):
                yield rows, self[rows]
            return
        first = 0
        with closing(self.chunks()) as read:
            for part in read:
                rows = slice(first, first + part.shape[0])
                if rows.start >= start:
                    yield rows, part
                first = rows.stop

    def sum(
        self, call: Callable[..., Parts], beside: Sequence[np.ndarray], n_threads: int
    ) -> Parts:
        return summed(self, beside_chunks(call, beside), n_threads)

    def stack(
        self, call: Callable[..., np.ndarray], beside: Sequence[np.ndarray]
    ) -> np.ndarray:
        # Closed even if `call` raises, because a source may hold an open file.
        with closing(self.numbered_chunks()) as given:
            return np.stack(list(map(beside_chunks(call, beside), given)))

    def matvec(self, v: np.ndarray) -> np.ndarray:
        out = np.empty(len(self))

        def of_chunk(chunk: Chunk) -> None:
            out[chunk[0]] = matvec(chunk[1], v)

        each(self, of_chunk)
        return out

    def with_state(
        self,
        make: StateFactory,
        rank: np.ndarray,
        weight: np.ndarray,
        n_threads: int,
        room: int,
    ) -> RowState:
        return LocalState(make(self, rank, weight, room, n_threads))

    def take(self, numbers: np.ndarray) -> Matrix:
        """Return copies of rows by number, in a pass that ends at the last of them."""
        self.close()
        numbers = np.asarray(numbers, np.intp)
        at_once = self.reader.take(numbers)
        if at_once is not None:
            return at_once
        order = np.argsort(numbers, kind="stable")
        wanted = numbers[order]
        parts: list[Matrix] = []
        start = done = 0
        with closing(self.chunks()) as chunks:
            for X in chunks:
                to = int(np.searchsorted(wanted, start + X.shape[0]))
                parts.append(take(X, wanted[done:to] - start))
                start, done = start + X.shape[0], to
                if done == wanted.size:
                    break
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        found: Matrix = take(stacked(parts), place)
        return found

    def moments(self, weight: np.ndarray) -> Moments | None:
        """Return the moments of dense columns, in one pass."""
        if self.is_sparse:
            return None
        with closing(self.chunks()) as chunks:
            starts = range(0, len(self), self.size)
            return Moments.of_parts(
                (X, weight[start : start + self.size])
                for X, start in zip(chunks, starts, strict=False)
                if isinstance(X, np.ndarray)
            )

    def map(self, call: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Apply a function to each chunk in one pass, and concatenate the results."""
        with closing(self.chunks()) as chunks:
            return np.concatenate([call(rows) for rows in chunks])

    def transformed(self, transform: Callable[[Any], np.ndarray]) -> LocalRows:
        """Return rows whose features are a function of those of the same rows."""
        reader = copy(self.reader)
        reader.transform = transform
        return LocalRows(reader, len(self))

    def subset(self, numbers: np.ndarray, share: np.ndarray | None = None) -> LocalRows:
        """Return the rows of these numbers, increasing; weights are held elsewhere."""
        return LocalRows(SubsetReader(self.reader, len(self), numbers), numbers.size)


def map_rows(call: Callable[[Any], np.ndarray], X: Any) -> np.ndarray:
    """Apply a function to the rows of X, chunk by chunk unless X is in memory."""
    return X.map(call) if isinstance(X, Rows) else call(X)
