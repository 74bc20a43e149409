"""Columns of rows wherever these are: products, blocks, sums, centres and spreads.

Each function takes rows in memory, rows that are read again at every pass, or rows at
workers, so that its caller need not ask where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from .._input.problem import Problem
from .._input.sparse import CSR
from .._input.types import Matrix
from .._numerics.rows import matvec, strips, take
from .._watch.monitor import check_cancelled
from .chunks import (
    InProcess,
    chunked_matvec,
    chunked_moments,
    chunks,
    column_units,
    is_sparse,
    sparse_moments,
    summed,
)
from .first_pass import ChunkedProblem
from .remote import RemoteRows
from .rows import LocalRows, Rows
from .sums import Parts

AnyRows: TypeAlias = InProcess | RemoteRows

_ENTRIES = 2**17  # of arrays made a few rows at a time, which stay in the cache
_ROUNDING = 1e-12  # of a mean, relative to it, with room for many rows
_LEAST = 1e-300  # of a spread: coefficients are divided by it


def is_in_memory(X: Any) -> bool:
    """Return whether all rows are in memory at once."""
    return not isinstance(X, Rows)


def has_near_rows(X: Any) -> bool:
    """Return whether a single row takes no message to a worker."""
    return not isinstance(X, RemoteRows)


def check_here(X: Any, name: str) -> None:
    """Raise ValueError for a vector beside rows at workers, who do not have it."""
    if isinstance(X, RemoteRows):
        raise ValueError(f"{name} must be None where X is a collection of dask")


def ranked_among_present(problem: Problem) -> Any:
    """Return the rows, whose ranks are numbered among those that are present."""
    X: Any = problem.X
    # Workers read labels as ranks of all classes.
    return X.with_codes(problem.among_present) if isinstance(X, RemoteRows) else X


def every_row(X: AnyRows, step: int) -> Matrix:
    """Return every `step`-th row."""
    if isinstance(X, Rows):
        return X.take(np.arange(0, len(X), step))
    return take(X, slice(None, None, step))


def range_of(X: AnyRows, rows: slice) -> Matrix:
    """Return the rows of a slice, as copies where these are at workers."""
    if isinstance(X, RemoteRows):  # few of them
        return X.take(np.arange(rows.start, rows.stop))
    return X[rows] if isinstance(X, LocalRows) else take(X, rows)


def rows_of(X: AnyRows, numbers: np.ndarray) -> Matrix:
    """Return copies of rows by number."""
    return X.take(numbers) if isinstance(X, Rows) else take(X, numbers)


def row_strips(X: AnyRows, width: int) -> Iterator[slice]:
    """Yield slices that cover all rows, of so many or, where these are read in chunks,
    no more than are held.
    """
    if not isinstance(X, Rows):
        yield from strips(X.shape[0], width)
        return
    for rows in strips(len(X), min(width, X.size)):
        check_cancelled()
        yield rows


def sum_of_chunks(
    X: AnyRows,
    call: Callable[..., Parts],
    beside: Sequence[np.ndarray],
    n_threads: int = 1,
) -> Parts:
    """Return the sum over all chunks of call(X, *beside).

    `beside` holds the ranks, the weights, and other vectors of the rows; workers use
    the ranks and weights that they have.
    """
    if isinstance(X, RemoteRows):
        return X.sum(call)
    return summed(X, lambda chunk: call(chunk[1], *_of(beside, chunk[0])), n_threads)


def stack_of_chunks(
    X: AnyRows, call: Callable[..., np.ndarray], beside: Sequence[np.ndarray]
) -> np.ndarray:
    """Return call(X, *beside) of all chunks, one below the other."""
    if isinstance(X, RemoteRows):
        return X.stack(call)
    # Closed even if `call` raises, because a source may hold an open file.
    with closing(chunks(X)) as given:
        return np.stack([call(part, *_of(beside, rows)) for rows, part in given])


def _of(beside: Sequence[np.ndarray], rows: slice) -> list[np.ndarray]:
    return [vector[rows] for vector in beside]


def product(X: AnyRows, v: np.ndarray) -> np.ndarray:
    """Return the product X v, (n,)."""
    if isinstance(X, RemoteRows):
        return X.matvec(v)
    return chunked_matvec(X, v) if isinstance(X, LocalRows) else matvec(X, v)


def rmatvec(X: InProcess, v: np.ndarray) -> np.ndarray:
    """Return the product X'v, (D,)."""
    if isinstance(X, LocalRows):
        return summed(X, lambda chunk: (rmatvec(chunk[1], v[chunk[0]]),))[0]
    if not isinstance(X, CSR):
        return np.asarray(v @ X)
    row = np.repeat(np.arange(len(X)), np.diff(X.indptr))
    # bincount adds in the order of the entries: the sum does not depend on threads.
    sums = np.bincount(X.indices, X.data * v[row], minlength=X.shape[1])
    return sums.astype(np.float64)  # without entries numpy counts in integers


def block(X: AnyRows, rows: slice, columns: np.ndarray) -> np.ndarray:
    """Return some columns of some rows, as a dense array."""
    if isinstance(X, Rows):
        return block(range_of(X, rows), slice(None), columns)
    if not isinstance(X, CSR):
        return X[rows, columns]
    part = X.rows(rows)
    made = np.zeros((len(part), columns.size))
    row = np.repeat(np.arange(len(part)), np.diff(part.indptr))
    # A table of places finds each entry's column in O(1), without sorting.
    places = np.full(X.shape[1], -1)
    places[columns] = np.arange(columns.size)
    place = places[part.indices]
    made[row[place >= 0], place[place >= 0]] = part.data[place >= 0]
    return made


def moments(X: Matrix, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres and spreads of the columns.

    Of a sparse X, whose zeros must stay, the centres are 0. A column that is constant
    to rounding has the value of a row for its centre, so that nothing is left of it,
    and the spread 1, or what counts as rounding if that is more.
    """
    unit = column_units(X)
    if isinstance(X, CSR):
        mean = value = np.zeros(X.shape[1])
        # In units of each column, so that squares of large entries do not overflow.
        Z = X.data / unit[X.indices]
        rows = np.repeat(np.arange(len(X)), np.diff(X.indptr))
        part = share[rows] * Z**2
        square: np.ndarray = np.bincount(X.indices, part, minlength=X.shape[1])
    else:
        mean, square = share @ X, np.zeros(X.shape[1])
        # A row of the largest weight, as one of weight 0 may differ from the others.
        value = X[np.argmax(share)]
        for few in strips(len(X), max(1, _ENTRIES // max(1, X.shape[1]))):
            # Two passes: the difference of E x^2 and (E x)^2 loses all digits of far
            # columns.
            Z = (X[few] - mean) / unit
            square += share[few] @ (Z * Z)
    return _varying(mean, np.sqrt(square) * unit, value)


def moments_of(problem: Problem, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and spreads of the columns of a problem, in memory or in chunks.

    `total` is the sum of the weights.
    """
    if not isinstance(problem, ChunkedProblem):
        return moments(problem.X, problem.weight / total)
    if is_sparse(problem.X):
        mean, variance, unit = sparse_moments(problem.X, problem.weight)
        none = np.zeros(mean.size)
        return _varying(none, np.hypot(mean, np.sqrt(variance)) * unit, none)
    found = chunked_moments(problem)
    mean, _ = found.mean_and_variance()
    spread = np.ldexp(np.sqrt(np.maximum(found.variance, 0.0)), found.exponent)
    return _varying(mean, spread, found.low)


def _varying(
    mean: np.ndarray, spread: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Centres and spreads, of what is constant those that `moments` says."""
    size = np.abs(mean)
    varies = spread > np.maximum(_ROUNDING * size, _LEAST)
    spread = np.where(varies, spread, np.maximum(1.0, _ROUNDING * size))
    return np.where(varies, mean, value), spread


def sparse_means(
    X: InProcess, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and variances of sparse columns in units, and the units."""
    if isinstance(X, LocalRows):
        return sparse_moments(X, weight)
    assert isinstance(X, CSR)
    unit = column_units(X)
    return *replace(X, data=X.data / unit[X.indices]).mean_and_var(weight), unit
