"""Operations on rows in memory, rows in chunks and rows at workers alike.

They are products, blocks of columns, sums over chunks, and state beside the rows.
Callers do not distinguish where the rows are, except by `is_in_memory` and
`has_near_rows` where costs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._input.types import Matrix
from .._numerics.rows import matvec, strips, take
from .._watch.cancellation import check_cancelled
from .chunks import InProcess, beside_chunks, chunks, summed
from .rows import Rows
from .state import LocalState, RowState, StateFactory
from .sums import Parts

AnyRows: TypeAlias = Matrix | Rows


def is_in_memory(X: Any) -> bool:
    """Return whether all rows are in memory at once."""
    return not isinstance(X, Rows)


def has_sparse_rows(X: Any) -> bool:
    """Return whether rows are sparse."""
    return X.is_sparse if isinstance(X, Rows) else is_sparse(X)


def has_near_rows(X: Any) -> bool:
    """Return whether single rows can be read without a message to a worker."""
    return X.is_near if isinstance(X, Rows) else True


def check_beside(X: Any, name: str) -> None:
    """Raise ValueError if the rows take no vector of this name beside them."""
    if isinstance(X, Rows):
        X.check_beside(name)


def ranked_among_present(problem: Problem) -> Any:
    """Return the rows of a problem, which hold ranks among the present ones, if any.

    Rows in this process are returned as they are: their ranks are beside them.
    """
    X: Any = problem.X
    return X.with_codes(problem.among_present) if isinstance(X, Rows) else X


def every_row(X: AnyRows, step: int) -> Matrix:
    """Return every `step`-th row."""
    if isinstance(X, Rows):
        return X.take(np.arange(0, len(X), step))
    return take(X, slice(None, None, step))


def range_of(X: AnyRows, rows: slice) -> Matrix:
    """Return the rows of a slice; workers send copies of theirs."""
    return X[rows] if isinstance(X, Rows) else take(X, rows)


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
    if isinstance(X, Rows):
        return X.sum(call, beside, n_threads)
    return summed(X, beside_chunks(call, beside), n_threads)


def stack_of_chunks(
    X: AnyRows, call: Callable[..., np.ndarray], beside: Sequence[np.ndarray]
) -> np.ndarray:
    """Return call(X, *beside) of all chunks, stacked along a new first axis."""
    if isinstance(X, Rows):
        return X.stack(call, beside)
    return np.stack(list(map(beside_chunks(call, beside), chunks(X))))


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
    if isinstance(X, Rows):
        return X.with_state(make, rank, weight, n_threads, room)
    return LocalState(make(X, rank, weight, room, n_threads))


def product(X: AnyRows, v: np.ndarray) -> np.ndarray:
    """Return the product X v, (n,)."""
    return X.matvec(v) if isinstance(X, Rows) else matvec(X, v)


def rmatvec(X: InProcess, v: np.ndarray) -> np.ndarray:
    """Return the product X'v, (D,)."""
    if not isinstance(X, Matrix):
        return summed(X, lambda chunk: (rmatvec(chunk[1], v[chunk[0]]),))[0]
    return X.rmatvec(v) if isinstance(X, CSR) else np.asarray(v @ X)


def block(X: AnyRows, rows: slice, columns: np.ndarray) -> np.ndarray:
    """Return some columns of some rows, as a dense array."""
    if isinstance(X, Rows):
        return block(range_of(X, rows), slice(None), columns)
    return X.block(rows, columns) if isinstance(X, CSR) else X[rows, columns]
