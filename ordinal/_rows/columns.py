"""Operations on rows in memory, rows in chunks and rows at workers alike.

They are products, blocks of columns, sums over chunks, and centres and spreads of
columns. Callers do not distinguish where the rows are, except by `is_in_memory` and
`has_near_rows` where costs differ.
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
from .._watch.cancellation import check_cancelled
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

_ENTRIES = 2**17  # entries of a temporary array, so that it stays in the cache
_ROUNDING = 1e-12  # relative rounding error of a mean, also of very many rows
_LEAST = 1e-300  # least spread of a column, by which coefficients are divided


def is_in_memory(X: Any) -> bool:
    """Return whether all rows are in memory at once."""
    return not isinstance(X, Rows)


def has_near_rows(X: Any) -> bool:
    """Return whether single rows can be read without a message to a worker."""
    return not isinstance(X, RemoteRows)


def check_here(X: Any, name: str) -> None:
    """Raise ValueError if a vector of this name is given beside rows at workers.

    Workers hold the features, labels and weights of their rows only.
    """
    if isinstance(X, RemoteRows):
        raise ValueError(
            f"{name} must be None where X is a collection of dask, whose workers hold "
            f"no such vector: leave {name} out, or pass X.compute()"
        )


def ranked_among_present(problem: Problem) -> Any:
    """Return the rows of a problem, where workers number the ranks among present ones.

    Rows in this process are returned as they are: their ranks are beside them.
    """
    X: Any = problem.X
    # Without these codes, workers would use ranks among all classes.
    return X.with_codes(problem.among_present) if isinstance(X, RemoteRows) else X


def every_row(X: AnyRows, step: int) -> Matrix:
    """Return every `step`-th row."""
    if isinstance(X, Rows):
        return X.take(np.arange(0, len(X), step))
    return take(X, slice(None, None, step))


def range_of(X: AnyRows, rows: slice) -> Matrix:
    """Return the rows of a slice; workers send copies of theirs."""
    if isinstance(X, RemoteRows):  # by number, because callers ask for few rows
        return X.take(np.arange(rows.start, rows.stop))
    return X[rows] if isinstance(X, LocalRows) else take(X, rows)


def rows_of(X: AnyRows, numbers: np.ndarray) -> Matrix:
    """Return copies of rows by number."""
    return X.take(numbers) if isinstance(X, Rows) else take(X, numbers)


def row_strips(X: AnyRows, width: int) -> Iterator[slice]:
    """Yield slices of at most `width` rows that cover all rows.

    Slices of rows in chunks are no longer than a chunk.
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

    `beside` are the ranks, the weights, and other vectors with an entry per row, which
    are cut like the rows. Workers use their own ranks and weights instead.
    """
    if isinstance(X, RemoteRows):
        return X.sum(call)
    return summed(X, lambda chunk: call(chunk[1], *_at(beside, chunk[0])), n_threads)


def stack_of_chunks(
    X: AnyRows, call: Callable[..., np.ndarray], beside: Sequence[np.ndarray]
) -> np.ndarray:
    """Return call(X, *beside) of all chunks, stacked along a new first axis."""
    if isinstance(X, RemoteRows):
        return X.stack(call)
    # Closed even if `call` raises, because a source may hold an open file.
    with closing(chunks(X)) as given:
        return np.stack([call(part, *_at(beside, rows)) for rows, part in given])


def _at(beside: Sequence[np.ndarray], rows: slice) -> list[np.ndarray]:
    """Return the entries of vectors at some rows."""
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
    # A table of places finds the column of each entry in O(1), without sorting.
    places = np.full(X.shape[1], -1)
    places[columns] = np.arange(columns.size)
    place = places[part.indices]
    wanted = place >= 0
    made[row[wanted], place[wanted]] = part.data[wanted]
    return made


def moments(X: Matrix, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres and spreads of columns, (d,) each: means and deviations.

    `share` are the weights of the rows divided by their sum. The centres of a sparse X
    are 0, because its zeros must stay zeros. If a column is constant up to rounding,
    its centre is the value in a row, so that centred entries are exactly 0, and its
    spread is 1, or the rounding error of its mean if that is larger.
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
        # The row of the largest weight: a row of weight 0 may differ from the others.
        value = X[np.argmax(share)]
        for few in strips(len(X), max(1, _ENTRIES // max(1, X.shape[1]))):
            # A second pass over the centred entries: E x^2 - (E x)^2 would lose all
            # digits of a column far from 0.
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
    """Return centres and spreads as `moments` does, from means and deviations.

    `value` are the centres of constant columns.
    """
    size = np.abs(mean)
    varies = spread > np.maximum(_ROUNDING * size, _LEAST)
    spread = np.where(varies, spread, np.maximum(1.0, _ROUNDING * size))
    return np.where(varies, mean, value), spread


def sparse_means(
    X: InProcess, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and variances of sparse columns in units, and the units.

    The unit of a column is that of `column_units`.
    """
    if isinstance(X, LocalRows):
        return sparse_moments(X, weight)
    assert isinstance(X, CSR)
    unit = column_units(X)
    return *replace(X, data=X.data / unit[X.indices]).mean_and_var(weight), unit
