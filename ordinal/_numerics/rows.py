"""Rows of dense and CSR matrices: selection, products, norms, hashes and quantiles."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, overload

import numpy as np

from .._input.frame import Frame
from .._input.sparse import CSR, column_range, is_sparse
from .._input.types import Index, Matrix
from .._solvers import _kernel_values, _sparse_products
from .._watch.blas import OneThread
from .._watch.cancellation import check_cancelled

TILE = 512  # rows and columns of a tile: two of them in double fit in the L2 cache
# Number of multiplications of one matrix product, about a tenth of a second on one
# processor. Cancellation is checked between products.
_AT_A_TIME = 1_000_000_000
_LONGEST = 1e300  # largest squared norm of a row, of which four times as much is finite
_DENSE = 4_000_000  # most entries of a strip that is made dense: 32 MB
_WIDE = 1_000_000  # number of columns from which those without entries are left out
_STEPS = 2**16  # from the least to the largest value of a column, in hashes of places
# Edges of these steps are far from simple fractions of the range, where values often
# are: the golden ratio is far from every fraction.
_EDGE = 0.6180339887498949
_SPARSE = 0.2  # share of stored entries from which dense rows are multiplied faster


@overload
def take(X: np.ndarray, rows: Index) -> np.ndarray: ...
@overload
def take(X: CSR, rows: Index) -> CSR: ...
@overload
def take(X: Matrix, rows: Index) -> Matrix: ...
@overload
def take(X: Frame, rows: Index) -> Frame: ...
@overload
def take(X: Matrix | Frame, rows: Index) -> Matrix | Frame: ...
def take(X: Matrix | Frame, rows: Index) -> Matrix | Frame:
    """Return rows of a dense or CSR matrix, or of a frame, by slice or indices."""
    return X.rows(rows) if isinstance(X, CSR | Frame) else X[rows]


def dense(X: Matrix, rows: slice = slice(None)) -> np.ndarray:
    """Return rows of a matrix, all or those of a slice of step 1, as an array."""
    return X.dense(rows.start, rows.stop) if isinstance(X, CSR) else X[rows]


def in_double(X: Matrix) -> Matrix:
    """Return rows in double precision: dense ones may be held in single precision."""
    return X if isinstance(X, CSR) else np.asarray(X, np.float64)


def dense_strips(X: Matrix) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield rows as arrays: all rows of a dense matrix, some at a time of a CSR."""
    width = max(1, _DENSE // X.shape[1]) if is_sparse(X) else max(1, len(X))
    for rows in strips(len(X), width):
        yield rows, dense(X, rows)


def strips(n: int, width: int = TILE, start: int = 0) -> Iterator[slice]:
    """Return slices that cover range(start, n) in steps of a tile."""
    return (slice(i, min(i + width, n)) for i in range(start, n, width))


def cancellable_slices(n: int, work: int) -> Iterator[slice]:
    """Yield slices that cover range(n), and check for cancellation between them.

    `work` is the cost of each of the n entries, in multiplications.
    """
    for rows in strips(n, max(1, _AT_A_TIME // max(1, work))):
        check_cancelled()
        yield rows


def matmul(A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return A @ B, computed for some rows of A at a time.

    `out`, if given, receives the result; it may be A if B is square. The BLAS has one
    thread, also in predictions: with more, it would round differently.
    """
    with OneThread():
        if len(A) * B.size <= _AT_A_TIME:  # products of tiles should have no overhead
            return np.matmul(A, B, out=out)
        if out is None:
            out = np.empty((len(A), B.shape[1]))
        for rows in cancellable_slices(len(A), B.size):
            np.matmul(A[rows], B, out=out[rows])
        return out


def inner(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A' B, summed over some rows of both at a time."""
    out = np.zeros((A.shape[1], B.shape[1]))
    for rows in cancellable_slices(len(A), out.size):
        out += A[rows].T @ B[rows]
    return out


def inner_products(A: Any, B: Any, out: np.ndarray | None = None) -> np.ndarray:
    """Return <a, b> for all rows of A and B, dense arrays or CSR.

    The result is (len(A), len(B)) float64, C-contiguous; it may use the memory of
    `out`.
    """
    A, B, sparse = in_double(A), in_double(B), is_sparse(B)
    if not is_sparse(A):
        if sparse:
            return np.ascontiguousarray(inner_products(B, A).T)
        return matmul(A, B.T, out)
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"both sets of rows must have the same number of columns, got {A.shape[1]} "
            f"and {B.shape[1]}"
        )
    if sparse and B.shape[1] > max(_WIDE, A.data.size + B.data.size):
        held = np.union1d(A.indices, B.indices)  # to need no vector of all columns
        A, B = A.of_columns(held), B.of_columns(held)
    if out is None:
        out = np.empty((len(A), len(B)))
    out[:] = 0.0
    # Below this density, products of stored entries cost less than dense rows.
    if sparse and B.data.size < _SPARSE * len(B) * B.shape[1]:
        start, size = np.zeros((2, A.shape[1]), np.int64)
        row, value = np.empty(B.data.size, np.int32), np.empty(B.data.size)
        _kernel_values.csr_times_csr(
            *csr_arrays(A), *csr_arrays(B), start, size, row, value, out
        )
        return out
    # Rows of B are made dense in blocks of at most about 32 MB.
    for rows in strips(len(B), max(1, min(256, 4_000_000 // max(1, A.shape[1])))):
        # The kernel adds a contiguous row of B' for every stored entry of A.
        columns = np.ascontiguousarray(dense(B, rows).T)
        part = np.zeros((len(A), columns.shape[1]))
        _kernel_values.csr_times_dense(*csr_arrays(A), columns, part)
        out[:, rows] = part
    return out


def matvec(X: Matrix, v: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Return X v, (n,); n_threads share the product with a sparse X."""
    if not isinstance(X, CSR):
        return matmul(X, v[:, None])[:, 0]
    out = np.empty(len(X))
    _sparse_products.times(*csr_arrays(X), np.ascontiguousarray(v), out, n_threads)
    return out


def csr_arrays(A: CSR) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a CSR matrix in the order in which kernels take them."""
    return A.indptr, A.indices, A.data


def squared_norms(A: Any) -> np.ndarray:
    """Return |a|^2 of every row, (n,).

    Raises ValueError above 1e300, where squared distances could overflow.
    """
    with np.errstate(over="ignore"):  # seen by the check
        if is_sparse(A):
            norms = A.sq_norms()
        else:
            A = np.asarray(A, dtype=np.float64)
            norms = np.einsum("ij,ij->i", A, A)
    # Written so that NaN is bad, too.
    bad = np.flatnonzero(~(norms <= _LONGEST))
    if bad.size:
        raise ValueError(
            f"rows of X must have squares of at most {_LONGEST:g}, got "
            f"{norms[bad[0]]:.3g} in row {bad[0]}: scale the features"
        )
    return np.asarray(norms)


def z_scores(A: Any) -> np.ndarray:
    """Return z / sqrt(d) of every row, whose inner products are those of `Pearson`."""
    if is_sparse(A):
        raise TypeError(
            "the Pearson kernel needs dense rows, got sparse ones: make them dense, "
            "or use another kernel"
        )
    A = np.asarray(A, dtype=np.float64)
    known = ~np.isnan(A)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)

    def mean(D: np.ndarray) -> np.ndarray:
        return np.asarray(D.sum(axis=1, keepdims=True) / count)

    A = np.where(known, A, 0.0)
    # Scaled by powers of two, so that no square overflows or underflows.
    scaled = np.ldexp(A, -np.frexp(np.abs(A).max(axis=1, keepdims=True))[1])
    centre = mean(scaled)
    D = np.where(known, scaled - centre, 0.0)
    sd = np.sqrt(mean(D * D))
    # A constant row, whose deviation is rounding only, correlates with no other row.
    varies = sd > 4 * np.finfo(np.float64).eps * np.abs(centre)
    return D / np.where(varies, sd * np.sqrt(D.shape[1]), np.inf)


def content_hash(
    X: Matrix,
    seed: int = 0,
    seen: Callable[..., np.ndarray] | None = None,
    number: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """Return a hash of the content of each row, (n,) uint64.

    Equal rows have equal hashes, whether dense or CSR; different rows have equal hashes
    with a probability of 2^-64. The hash is a sum modulo 2^64: a number that depends on
    the seed, and one for each entry other than 0, which depends on its value, its
    column and the seed. Sums of integers have no rounding, so the order of the entries
    does not matter. `seen(x, column)`, if given, stands for the values x of dense rows,
    and `number(column)` for the numbers of columns.
    """
    d = X.shape[1]
    start = _mixed(np.array([seed + 1], dtype=np.uint64))
    # A key per column, so that swapping two entries changes the sum; of sparse rows per
    # entry, because they may have so many columns that a vector of them has no room.
    column = X.indices if isinstance(X, CSR) else np.arange(d)
    numbers = column if number is None else number(column)
    key = _mixed(start + numbers.astype(np.uint64))
    out = np.empty(len(X), dtype=np.uint64)
    # Some 10^5 entries at a time, which stay in the cache. A sparse row may have so
    # many columns that a slice would be a single row.
    every = (
        [slice(0, len(X))] if is_sparse(X) else cancellable_slices(len(X), 10**4 * d)
    )
    for rows in every:
        part: Any = take(X, rows)
        x = np.asarray(part.data if is_sparse(part) else part, np.float64)
        x = x if seen is None else seen(x, column)
        bits = np.where(np.isnan(x), np.nan, x).view(np.uint64)  # the same for any NaN
        terms = np.where(x == 0, np.uint64(0), _mixed(bits ^ key))
        if is_sparse(part):
            ends = np.append(np.uint64(0), np.cumsum(terms))
            out[rows] = ends[part.indptr[1:]] - ends[part.indptr[:-1]]
        else:
            out[rows] = terms.sum(axis=1)
    return start + out


def place_hash(
    X: Matrix, rank: np.ndarray, weight: np.ndarray, seed: int = 0
) -> np.ndarray:
    """Return a hash of the places of a row's entries in their columns, (n,) uint64.

    The place is one of 2^16 steps from the least to the largest value of the column in
    rows of positive weight. Multiplying a column by a positive number, or shifting it,
    moves no entry to another step, unless it is within rounding errors of an edge.
    Equal rows have equal hashes, whether dense or CSR; so have some others. The order
    of the columns matters only for those whose places are distributed alike within the
    ranks.
    """
    a: Any = X
    used: Any = X if (weight > 0).all() else take(X, weight > 0)
    held = np.unique(a.indices) if is_sparse(X) else np.arange(a.shape[1])
    low, high = column_range(used.of_columns(held) if is_sparse(X) else used)
    span = np.where(high > low, high / 2 - low / 2, np.inf)  # a constant has one place

    def place(x: np.ndarray, column: np.ndarray) -> np.ndarray:
        at = np.searchsorted(held, column)
        # Rows without weight may lie far beyond the range.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            share = (x / 2 - low[at] / 2) / span[at]
            return np.asarray(np.floor(share * _STEPS + _EDGE))

    of_zeros = place(np.zeros(1), held)
    numbers = _column_numbers(X, rank, weight, held, of_zeros, place)

    def number(column: np.ndarray) -> np.ndarray:
        return np.asarray(numbers[np.searchsorted(held, column)])

    if not is_sparse(X):
        return content_hash(X, seed, place, number)
    # The hash of a row of zeros, changed by the entries that are stored.
    empty = CSR(of_zeros, held, np.array([0, held.size]), (1, a.shape[1]))
    stored, absent = (
        content_hash(replace(a, data=data), seed, number=number)
        for data in (place(a.data, a.indices), place(np.zeros(1), a.indices))
    )
    return np.asarray(content_hash(empty, seed, number=number) + stored - absent)


def _column_numbers(
    X: Matrix,
    rank: np.ndarray,
    weight: np.ndarray,
    held: np.ndarray,
    of_zeros: np.ndarray,
    place: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return a number for each held column that does not depend on its position.

    It is the mean of a random function of the places and ranks, rounded to 2^-24, in
    the high bits. The low bits count columns with an equal mean from left to right.
    """
    a: Any = X
    key = _mixed(rank.astype(np.uint64) + np.uint64(1))
    total = np.zeros(held.size)

    def random(places: np.ndarray, keys: np.ndarray) -> np.ndarray:
        bits = np.where(np.isnan(places), np.nan, places).view(np.uint64)
        return (_mixed(bits ^ keys) >> np.uint64(11)) * 2.0**-53

    if is_sparse(X):
        for k, of_rank in zip(*np.unique(key, return_index=True), strict=True):
            own = weight[rank == rank[of_rank]].sum()
            total += own * random(of_zeros, k)
        row = np.repeat(np.arange(len(a)), np.diff(a.indptr))
        more = random(place(a.data, a.indices), key[row])
        more -= random(place(np.zeros(1), a.indices), key[row])
        at = np.searchsorted(held, a.indices)
        total += np.bincount(at, weight[row] * more, held.size)
    else:
        for rows in cancellable_slices(len(a), 10**4 * held.size):
            total += weight[rows] @ random(place(a[rows], held), key[rows, None])
    mean = np.floor(total / weight.sum() * 2**24 + _EDGE).astype(np.uint64)
    order = np.argsort(mean, kind="stable")
    first = np.searchsorted(mean[order], mean[order])
    count = np.empty(held.size, np.uint64)
    count[order] = np.arange(held.size) - first
    return np.asarray((mean << np.uint64(32)) + count)


def _mixed(z: np.ndarray) -> np.ndarray:
    """Permute 64 bits by the mixing function of SplitMix64.

    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def merged_rows(
    X: Matrix, rank: np.ndarray, weight: np.ndarray, group: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Merge rows with equal features, rank and group.

    Returns the number of one row of each kind, in an order that depends on the content
    of the rows only, and the weights of the kinds. Rows without weight are left out.
    """
    kinds = [content_hash(X), rank] if group is None else [group, content_hash(X), rank]
    order = np.lexsort((weight, *kinds))  # a sum depends on the order of its terms
    order = order[weight[order] > 0]
    weight = weight[order]
    other = np.any([np.diff(kind[order]) != 0 for kind in kinds], axis=0)
    first = np.flatnonzero(np.append(True, other))
    return order[first], np.add.reduceat(weight, first)


def counted(x: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of x, sorted, and how many rows each stands for.

    A row of weight w counts as w rows, unless `_as_rows` multiplies all weights.
    """
    values, place = np.unique(x, return_inverse=True)
    return values, _as_rows(np.bincount(place, weight))


def _as_rows(counts: np.ndarray) -> np.ndarray:
    """Return counts in units of a row, of which every value has one in the mean.

    Otherwise weights of sum 1 would be those of a single row. In larger sums than 2^32
    a row would be lost in rounding errors.
    """
    factor = min(1 / min(1.0, float(counts.mean())), 2.0**32 / float(counts.sum()))
    return np.asarray(counts * factor)


def quantiles(values: np.ndarray, counts: np.ndarray, p: Any) -> np.ndarray:
    """Return the quantiles of rows, of which `counts` have each of the sorted values.

    They are those of `numpy.quantile` and R. With Q(t) the value of the t-th of n rows,
    a step function, they are the integral of Q from (n - 1) p to (n - 1) p + 1, which
    is defined for any counts.
    """
    counts = _as_rows(counts)
    ends, found = np.cumsum(counts), []
    places = np.maximum(ends[-1] - 1.0, 0.0) * np.asarray(p)
    whole = np.rint(places)  # where only rounding makes a quantile none of the values
    rounding = 1e-9 + 1e-14 * ends[-1]
    for start in np.where(np.abs(places - whole) < rounding, whole, places):
        first, last = np.searchsorted(ends, [start, start + 1.0])
        own = slice(first, last + 1)
        starts = np.maximum(ends[own] - counts[own], start)
        width = np.minimum(ends[own], start + 1.0) - starts
        found.append(values[own] @ width / width.sum())
    return np.array(found)
