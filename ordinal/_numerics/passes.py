"""Passes over rows that are read in chunks: sums, products and moments of columns.

Each chunk is worked on by itself, and what chunks give is added in a tree that depends
on their number alone (`tree.py`). Rows in memory are taken in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from .._input.at_workers import RowsAtWorkers
from .._input.blocks import CHUNK, Rows
from .._input.moments import Moments
from .._input.sparse import CSR
from .._input.survey import BlockProblem
from .._input.types import Matrix
from .pool import in_order
from .rows import matvec, strips, take
from .tree import Parts, pairwise

Read: TypeAlias = Matrix | Rows  # in memory, or read again at every pass
Chunk: TypeAlias = tuple[slice, Matrix]


def is_sparse(X: Read) -> bool:
    """Whether the rows are sparse, wherever they are."""
    return X.reader.is_sparse if isinstance(X, Rows) else isinstance(X, CSR)


def in_room(n: int, room: float) -> int:
    """For how many of n rows, the first of them, something is kept where there is room
    for so many: all, or whole chunks."""
    return n if room >= n else int(room) // CHUNK * CHUNK


def chunks(X: Read, start: int = 0) -> Generator[Chunk, None, None]:
    """The rows in their order, some at a time, and which they are: from `start` on,
    which begins a chunk or is their number."""
    if start == X.shape[0]:
        return
    if isinstance(X, Rows) and not (start and X.reader.at_hand):
        first = 0
        with closing(X.chunks()) as read:
            for part in read:
                rows = slice(first, first + part.shape[0])
                if rows.start >= start:
                    yield rows, part
                first = rows.stop
    else:
        for rows in strips(X.shape[0], CHUNK, start):
            yield rows, X[rows] if isinstance(X, Rows) else take(X, rows)


def by_chunk(
    X: Read, call: Callable[[Chunk], Parts], n_threads: int = 1, start: int = 0
) -> Generator[Parts, None, None]:
    """call((rows, chunk)) of every chunk in order, some ahead on so many threads; from
    row `start` on, as in `chunks`."""
    with closing(chunks(X, start)) as given:
        yield from in_order(call, given, n_threads)


def summed(X: Read, call: Callable[[Chunk], Parts], n_threads: int = 1) -> Parts:
    """The sum of call((rows, chunk)) of every chunk."""
    with closing(by_chunk(X, call, n_threads)) as parts:
        return pairwise(parts)


def each(
    X: Read, call: Callable[[Chunk], None], n_threads: int = 1, start: int = 0
) -> None:
    """The same calls, for what they do."""

    def nothing_of(chunk: Chunk) -> Parts:
        call(chunk)
        return ()

    with closing(by_chunk(X, nothing_of, n_threads, start)) as done:
        for _ in done:
            pass


def times(X: Rows, v: np.ndarray) -> np.ndarray:
    """X v, (n,)."""
    out = np.empty(len(X))

    def of_chunk(chunk: Chunk) -> None:
        out[chunk[0]] = matvec(chunk[1], v)

    each(X, of_chunk)
    return out


def moments_by_chunk(problem: BlockProblem) -> Moments:
    """Of dense columns, by the weights of the rows."""
    if problem.moments is not None and problem.weight is problem.sample_weight:
        return problem.moments
    found: Moments | None = None
    if isinstance(problem.X, RowsAtWorkers):
        found = problem.X.moments_by_all_weights()
        if found is None:
            raise TypeError(
                "X must be dense where it is a collection of dask, unless the model is "
                "one on a basis"
            )
        return found
    with closing(chunks(problem.X)) as given:
        for rows, part in given:
            assert isinstance(part, np.ndarray)
            more = Moments.of(part, problem.weight[rows])
            found = found.joined(more) if found is not None else more
    assert found is not None  # there are rows of positive weight
    return found


def sparse_moments(
    X: Rows, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of sparse columns by the weights of the rows, in a unit and in
    its square, and the unit of each column."""
    largest = np.zeros(X.shape[1])
    with closing(chunks(X)) as given:
        for _, part in given:
            assert isinstance(part, CSR)
            np.maximum.at(largest, part.indices, np.abs(part.data))
    unit = unit_of(largest)
    total, mean, variance = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    with closing(chunks(X)) as given:
        for rows, part in given:
            assert isinstance(part, CSR)
            more = float(weight[rows].sum())
            if more == 0:
                continue
            scaled = replace(part, data=part.data / unit[part.indices])
            own = scaled.mean_and_var(weight[rows])
            total += more
            share, apart = more / total, own[0] - mean
            mean = mean + share * apart
            variance = (1 - share) * (variance + share * apart**2) + share * own[1]
    return mean, variance, unit


def unit_of(largest: np.ndarray) -> np.ndarray:
    """Return a power of two for each column, from its largest absolute value, such that
    squares of quotients by it neither overflow nor vanish."""
    moderate = (largest == 0) | ((largest > 1e-100) & (largest < 1e100))
    near = np.ldexp(1.0, np.frexp(largest)[1] - 1)
    return np.where(moderate, 1.0, near)


def column_units(X: Matrix) -> np.ndarray:
    """Return `unit_of` the columns of X."""
    if not isinstance(X, CSR):
        return unit_of(np.maximum(X.max(axis=0), -X.min(axis=0)))
    largest = np.zeros(X.shape[1])
    np.maximum.at(largest, X.indices, np.abs(X.data))
    return unit_of(largest)
