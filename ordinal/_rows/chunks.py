"""Passes over the chunks of rows in this process, and sums over them.

Rows in memory are processed in the same chunks as rows that are read again at every
pass. Sums over chunks are added in the tree of `sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from .._input.types import Matrix
from .._numerics.pool import in_order
from .._numerics.rows import strips, take
from .source import CHUNK
from .sums import Parts, pairwise

Chunk: TypeAlias = tuple[slice, Matrix]
Result = TypeVar("Result")


class InChunks(Protocol):
    """Rows that are read again at every pass, such as `rows.LocalRows`."""

    shape: tuple[int, int]
    is_sparse: bool

    def __len__(self) -> int: ...

    def numbered_chunks(self, start: int = 0) -> Generator[Chunk, None, None]:
        """Yield slices of row numbers and the rows, from a chunk that begins there."""
        ...


InProcess: TypeAlias = Matrix | InChunks  # rows in memory, or read at every pass


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
