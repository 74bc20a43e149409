"""Operations on rows in memory, rows in chunks and rows at workers alike.

They are products, blocks of columns, sums over chunks, state beside the rows, and
centres, spreads and units of columns.
Callers do not distinguish where the rows are, except by their type `Rows` and by
`has_near_rows` where costs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeAlias

import numpy as np

from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._input.types import Matrix
from .._numerics.rows import matvec, strips, take
from .._watch.cancellation import check_cancelled
from .first_pass import ChunkedProblem
from .rows import (
    InProcess,
    LocalRows,
    LocalState,
    Rows,
    RowState,
    StateFactory,
    beside_chunks,
    chunks,
    summed,
)
from .sums import Moments, Parts

AnyRows: TypeAlias = Matrix | Rows


def has_near_rows(X: Any) -> bool:
    """Return whether single rows can be read without a message to a worker."""
    return X.is_near if isinstance(X, Rows) else True


def check_beside(X: Any, name: str) -> None:
    """Raise ValueError if the rows take no vector of this name beside them."""
    if isinstance(X, Rows):
        X.check_beside(name)


def every_row(X: AnyRows, step: int) -> Matrix:
    """Return every `step`-th row."""
    if isinstance(X, Rows):
        return X.take(np.arange(0, len(X), step))
    return take(X, slice(None, None, step))


def rows_of(X: AnyRows, rows: slice | np.ndarray) -> Matrix:
    """Return the rows of a slice, or copies of rows by number; workers send copies."""
    if not isinstance(X, Rows):
        return take(X, rows)
    return X[rows] if isinstance(rows, slice) else X.take(rows)


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


def binary_columns(X: AnyRows, beside: Sequence[np.ndarray]) -> np.ndarray:
    """Return whether each column holds only 0 and 1 in rows of positive weight, (d,).

    `beside` are the ranks and the weights.
    """
    n, d = X.shape
    if isinstance(X, Rows):
        return np.asarray(X.sum(_entries_beyond, beside, 1)[0] == 0)
    found = np.ones(d, np.bool_)
    for rows in strips(n, n if is_sparse(X) else max(1, _ENTRIES // max(1, d))):
        own = _entries_beyond(take(X, rows), *(vector[rows] for vector in beside))
        found &= own[0] == 0
        if not found.any():
            break
    return found


def _entries_beyond(X: Matrix, rank: np.ndarray, weight: np.ndarray) -> Parts:
    """Return the number of entries of each column that are neither 0 nor 1, (d,)."""
    if not weight.all():
        X = take(X, weight > 0)
    a: Any = X
    if not is_sparse(a):
        return (np.count_nonzero((a != 0) & (a != 1), axis=0),)
    beyond = a.indices[(a.data != 0) & (a.data != 1)]
    return (np.bincount(beyond, minlength=a.shape[1]),)


def block(X: AnyRows, rows: slice, columns: np.ndarray) -> np.ndarray:
    """Return some columns of some rows, as a dense array."""
    if isinstance(X, Rows):
        return block(rows_of(X, rows), slice(None), columns)
    return X.block(rows, columns) if isinstance(X, CSR) else X[rows, columns]


_SIDE = 512  # entries of narrow rows that are compared at once
_ENTRIES = 2**17  # entries of a temporary array, so that it stays in the cache
_ROUNDING = 1e-12  # relative rounding error of a mean, also of very many rows
_LEAST = 1e-300  # least spread of a column, by which coefficients are divided


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
        square = X.divided(unit).squares(share)
    else:
        mean, square = share @ X, np.zeros(X.shape[1])
        # The row of the largest weight: a row of weight 0 may differ from the others.
        value = X[np.argmax(share)]
        scaled = (unit != 1).any()
        for few in strips(len(X), max(1, _ENTRIES // max(1, X.shape[1]))):
            # A second pass over the centred entries: E x^2 - (E x)^2 would lose all
            # digits of a column far from 0.
            Z = X[few] - mean
            if scaled:
                Z /= unit
            square += share[few] @ (Z * Z)
    return _varying(mean, np.sqrt(square) * unit, value)


def moments_of(problem: Problem, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and spreads of the columns of a problem, in memory or in chunks.

    `total` is the sum of the weights.
    """
    if not isinstance(problem, ChunkedProblem):
        return moments(problem.X, problem.weight / total)
    if problem.X.is_sparse:
        mean, variance, unit = chunked_sparse_moments(problem.X, problem.weight)
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


def sparse_moments(
    X: Any, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means and variances of sparse columns in units, and the units.

    The unit of a column is a power of two, as `unit_of` chooses it.
    """
    if isinstance(X, LocalRows):
        return chunked_sparse_moments(X, weight)
    unit = column_units(X)
    return *X.divided(unit).mean_and_var(weight), unit


def chunked_moments(problem: ChunkedProblem) -> Moments:
    """Return the moments of dense columns, by the weights of the rows."""
    if problem.moments is not None and problem.weight is problem.sample_weight:
        return problem.moments
    moments: Moments = problem.X.weighted_moments(problem.weight)
    return moments


def chunked_sparse_moments(
    X: Any, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Do as `sparse_moments` by two passes over the chunks of sparse rows."""
    part: Any
    largest = np.zeros(X.shape[1])
    with closing(chunks(X)) as given:
        for _, part in given:
            low, high = part.column_range()
            largest = np.maximum(largest, np.maximum(high, -low))
    unit = unit_of(largest)
    total, mean, variance = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    with closing(chunks(X)) as given:
        for rows, part in given:
            more = float(weight[rows].sum())
            if more == 0:
                continue
            own = part.divided(unit).mean_and_var(weight[rows])
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
    a: Any = X
    if is_sparse(a):
        low, high = a.column_range()
        return unit_of(np.maximum(high, -low))
    n, d = a.shape
    side = min(n, _SIDE // d) if d and a.flags.c_contiguous else 1
    if side > 1:
        # Rows side by side: numpy takes six times as long for narrow ones.
        whole = n - n % side
        rows = a[:whole].reshape(-1, side * d)
        ends = rows.min(axis=0), rows.max(axis=0)
        a = np.concatenate([*(end.reshape(side, d) for end in ends), a[whole:]])
    return unit_of(np.maximum(a.max(axis=0), -a.min(axis=0)))
