"""Passes over the chunks of rows in this process: sums, products and moments.

Rows in memory are processed in the same chunks as rows that are read again at every
pass. Sums over chunks are added in the tree of `sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from .._input.checks import shown
from .._input.columns import Categories, column_categories
from .._input.problem import Problem
from .._input.sparse import CSR
from .._input.sparse import is_sparse as is_sparse_matrix
from .._input.types import Matrix
from .._numerics.memory import check_memory
from .._numerics.pool import in_order
from .._numerics.rows import matvec, strips, take
from .first_pass import ChunkedProblem
from .remote import RemoteRows, StateFactory, is_remote, remote_problem
from .rows import LocalRows
from .source import CHUNK, has_blocks
from .sums import Moments, Parts, pairwise

InProcess: TypeAlias = Matrix | LocalRows  # rows in memory, or read at every pass
Chunk: TypeAlias = tuple[slice, Matrix]


def is_sparse(X: InProcess) -> bool:
    """Return whether the rows are sparse."""
    return X.reader.is_sparse if isinstance(X, LocalRows) else isinstance(X, CSR)


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
    if isinstance(X, LocalRows) and not (start and X.reader.is_seekable):
        first = 0
        with closing(X.chunks()) as read:
            for part in read:
                rows = slice(first, first + part.shape[0])
                if rows.start >= start:
                    yield rows, part
                first = rows.stop
    else:
        for rows in strips(X.shape[0], CHUNK, start):
            yield rows, X[rows] if isinstance(X, LocalRows) else take(X, rows)


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


def chunked_matvec(X: LocalRows, v: np.ndarray) -> np.ndarray:
    """Return the product X v, (n,)."""
    out = np.empty(len(X))

    def of_chunk(chunk: Chunk) -> None:
        out[chunk[0]] = matvec(chunk[1], v)

    each(X, of_chunk)
    return out


def chunked_moments(problem: ChunkedProblem) -> Moments:
    """Return the moments of dense columns, by the weights of the rows."""
    if problem.moments is not None and problem.weight is problem.sample_weight:
        return problem.moments
    X = problem.X
    remote = isinstance(X, RemoteRows)
    found = X.moments_by_weight() if remote else X.moments(problem.weight)
    if found is None:
        raise TypeError(
            "X must be dense where it is a dask collection, unless a model on "
            "a basis is fitted: pass basis=, or dense chunks"
        )
    moments: Moments = found
    return moments


def sparse_moments(
    X: LocalRows, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and variances of sparse columns in units, and the units.

    The unit of a column is a power of two, as `unit_of` chooses it.
    """
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
    """Return a power of two per column, from its largest absolute value.

    Divided by it, entries have squares that neither overflow nor underflow.
    """
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


class RowState(Protocol):
    """State beside the rows, whose methods are called by name and return sums."""

    def sum(self, name: str, *arguments: Any) -> Parts:
        """Return the sum over all chunks of the results that a method yields."""
        ...

    def map(self, name: str, *arguments: Any) -> list[Parts]:
        """Return the results of a method for disjoint parts of the rows."""
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
        Number of rows whose features one process may cache.
    """
    room = int(min(room, len(X)))
    if isinstance(X, RemoteRows):
        return X.with_state(make, room)
    return LocalState(make(X, rank, weight, room, n_threads))


_LARGE = 1 << 26  # bytes of an array in single precision that is read in place


def is_chunked(X: Any) -> bool:
    """Return whether fits that can do so read X in chunks, whatever its size."""
    return has_blocks(X) or isinstance(X, np.memmap) or is_remote(X)


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings by which a fit reads its rows.

    Attributes
    ----------
    chunks : bool or None
        Whether the fit reads rows in chunks. None is for a method that never does, and
        False for a method that does so only if it fits a model on a basis.
    remote : bool
        Whether the fit accepts dask collections if it reads rows in chunks.
    whole : bool
        Whether a mapped file is read into memory, because the fit needs all of its
        rows at once; a source is read in chunks nevertheless.
    in_place : bool
        Whether a fit that reads rows in chunks also does so with a large array in
        single precision, of which a copy in double would take twice the memory.
    missing, categories
        As for `read_features`.
    """

    chunks: bool | None = None
    remote: bool = True
    in_place: bool = False
    missing: bool = False
    whole: bool = False
    categories: Categories | None = None


def read_problem(name: str, X: Any, y: Any, reading: Reading, **labels: Any) -> Problem:
    """Read and validate training data.

    Parameters
    ----------
    name : str
        Name of the `fit_*` function, for messages.
    reading : Reading
    X, y, labels
        As for `Problem.from_arrays` or `ChunkedProblem.from_source`. A ChunkedProblem
        is returned as it is, with class weights; any other Problem has them already.

    Raises
    ------
    TypeError
        If X is a source or a dask collection, and the fit accepts none.
    ValueError, TypeError
        As `Problem.from_arrays`.
    """
    chunks, missing = reading.chunks, reading.missing
    if chunks and isinstance(X, ChunkedProblem):
        return X.with_class_weights(labels.get("class_weight"))
    if type(X) is Problem:  # by a fit that reads more of its table than the features
        return X
    if chunks is None:
        check_in_memory(name, X)
    if is_remote(X):
        _check_remote(name, bool(chunks), reading.remote)
        return remote_problem(X, y, **labels)
    stays = reading.in_place and is_single(X) and X.nbytes >= _LARGE
    if chunks and (has_blocks(X) or (is_chunked(X) and not reading.whole) or stays):
        return ChunkedProblem.from_source(X, y, missing=missing, **labels)
    if has_blocks(X):
        raise TypeError(
            "X comes in chunks, from which only a model on a basis can be fitted: "
            "pass the number of its rows, such as basis=300"
        )
    return Problem.from_arrays(
        X, y, missing=missing, categories=reading.categories, **labels
    )


def _check_remote(name: str, chunks: bool, remote: bool) -> None:
    """Raise TypeError for a dask collection if the fit accepts none."""
    if not chunks:
        raise TypeError(
            "X is a dask collection, from which only a model on a basis can be "
            "fitted: pass the number of its rows, such as basis=300"
        )
    if not remote:
        raise TypeError(
            f"X is a dask collection, which {name} does not accept: pass an array, "
            "a numpy.memmap, or an object with blocks()"
        )


def check_in_memory(name: str, X: Any) -> None:
    """Raise TypeError if X is a source or a dask collection."""
    if has_blocks(X) or is_remote(X):
        raise TypeError(
            f"X comes in chunks, and {name} accepts rows in memory only: pass an array"
        )


def read_in_chunks(X: Any, given: Mapping[str, tuple[Any, bool]]) -> bool:
    """Return whether X is read in chunks.

    Parameters
    ----------
    X : training data
    given : mapping
        Of rules, such as "solver must be 'lbfgs'", to the option and whether it breaks
        the rule.

    Raises
    ------
    ValueError
        If X is read in chunks and an option needs all rows at once.
    """
    chunked = is_chunked(X)
    for rule, (value, is_broken) in given.items():
        if chunked and is_broken:
            raise ValueError(f"{rule} where X is read in chunks, got {shown(value)}")
    return chunked


def categories_of(X: Any, categorical: Sequence[str | int]) -> Categories:
    """Return the categories of each column as `column_categories`.

    For rows in chunks, which contain numbers only, the result is empty.
    """
    return () if is_chunked(X) else column_categories(X, categorical)


def check_width(name: str, X: Any) -> None:
    """Raise MemoryError for sparse rows that are too wide to be made dense in chunks.

    For a method with tables per column, of about a kilobyte each.
    """
    if is_sparse_matrix(X):
        n, d = X.shape
        needed = float(d) * (1024 + 20 * min(n, CHUNK))
        check_memory(name, needed, f"{d} columns of sparse rows, a chunk at a time")


def is_single(X: Any) -> bool:
    """Return whether X is a matrix in single precision."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float32
