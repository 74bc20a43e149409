"""Products of compressed sparse rows with vectors and with each other.

The arrays of a column-compressed matrix are those of the rows of its transpose. Sums
are in the order of the entries, so results do not depend on the number of threads.
"""
from libc.stdint cimport int32_t, int64_t

from ._parts cimport parts_of, run_parts, stop_of

cdef enum:
    ROWS = 256               # rows of a product that a thread computes at once
    COLUMNS = 8              # columns whose sums a thread computes at once


cdef struct Sparse:          # compressed rows, or columns
    const int64_t* start
    const int32_t* index
    const double* value


cdef struct Product:
    Sparse A
    const double* x
    double* out
    Py_ssize_t n


cdef struct Pairs:
    Sparse A
    Sparse across
    const double* weight
    double* out
    Py_ssize_t d


cdef struct Groups:
    Sparse A
    const int32_t* group
    const double* weight
    double* out
    Py_ssize_t d, width


cdef void times_rows(void* given, Py_ssize_t part, int worker) noexcept nogil:
    cdef Product* q = <Product*>given
    cdef Py_ssize_t i
    cdef int64_t e
    cdef double s
    for i in range(part * ROWS, stop_of(q.n, ROWS, part)):
        s = 0
        for e in range(q.A.start[i], q.A.start[i + 1]):
            s += q.A.value[e] * q.x[q.A.index[e]]
        q.out[i] = s


def times(
    const int64_t[::1] start not None,       # (n + 1,)
    const int32_t[::1] index not None,
    const double[::1] value not None,
    const double[::1] x not None,            # (d,)
    double[::1] out not None,                # OUT (n,)
    int n_threads,
):
    """Compute A x for sparse rows. O(entries)."""
    cdef Py_ssize_t n = out.shape[0]
    cdef Product q
    if not (start.shape[0] == n + 1 and index.shape[0] == value.shape[0] == start[n]):
        raise ValueError("times: inconsistent array shapes")
    if index.shape[0] == 0 or x.shape[0] == 0:
        out[:] = 0
        return
    q.A = Sparse(&start[0], &index[0], &value[0])
    q.x, q.out, q.n = &x[0], &out[0], n
    run_parts(times_rows, &q, parts_of(n, ROWS), n_threads)


cdef void pairs_of(void* given, Py_ssize_t j, int worker) noexcept nogil:
    """Compute row j of the lower triangle, from the entries up to column j of every row
    with an entry in column j."""
    cdef Pairs* q = <Pairs*>given
    cdef double* out = q.out + j * q.d
    cdef int64_t e, f
    cdef int32_t i
    cdef double t
    for e in range(q.A.start[j], q.A.start[j + 1]):
        i = q.A.index[e]
        t = q.weight[i] * q.A.value[e]
        for f in range(q.across.start[i], q.across.start[i + 1]):
            if q.across.index[f] > j:
                break
            out[q.across.index[f]] += t * q.across.value[f]


def weighted_gram(
    const int64_t[::1] start not None,       # (d + 1,) columns of A
    const int32_t[::1] index not None,
    const double[::1] value not None,
    const int64_t[::1] across not None,      # (n + 1,) rows of A, each by column
    const int32_t[::1] column not None,
    const double[::1] held not None,
    const double[::1] weight not None,       # (n,)
    double[:, ::1] out not None,             # IN-OUT (d, d), its lower triangle
    int n_threads,
):
    """Add A' diag(weight) A to out. O(sum of squared numbers of entries of rows)."""
    cdef Py_ssize_t d = out.shape[0], n = weight.shape[0]
    cdef Pairs q
    if not (d == out.shape[1] == start.shape[0] - 1 and across.shape[0] == n + 1
            and index.shape[0] == value.shape[0] == column.shape[0] == held.shape[0]
            == start[d] == across[n]):
        raise ValueError("weighted_gram: inconsistent array shapes")
    if index.shape[0] == 0:
        return
    q.A = Sparse(&start[0], &index[0], &value[0])
    q.across = Sparse(&across[0], &column[0], &held[0])
    q.weight, q.out, q.d = &weight[0], &out[0, 0], d
    run_parts(pairs_of, &q, d, n_threads)


cdef void sums_of(void* given, Py_ssize_t part, int worker) noexcept nogil:
    """Compute the sums by group of COLUMNS columns."""
    cdef Groups* q = <Groups*>given
    cdef Py_ssize_t j
    cdef int64_t e
    cdef int32_t g
    for j in range(part * COLUMNS, stop_of(q.d, COLUMNS, part)):
        for e in range(q.A.start[j], q.A.start[j + 1]):
            g = q.group[q.A.index[e]]
            if g >= 0:
                q.out[j * q.width + g] += q.weight[q.A.index[e]] * q.A.value[e]


def sum_by_group(
    const int64_t[::1] start not None,       # (d + 1,) columns of A
    const int32_t[::1] index not None,
    const double[::1] value not None,
    const int32_t[::1] group not None,       # (n,) group of each row; < 0 for none
    const double[::1] weight not None,       # (n,)
    double[:, ::1] out not None,             # IN-OUT (m, number of groups)
    int n_threads,
):
    """Add weight_i A_ij to out[j, group_i] for all rows i. O(entries)."""
    cdef Py_ssize_t d = out.shape[0]
    cdef Groups q
    if not (start.shape[0] == d + 1 and group.shape[0] == weight.shape[0]
            and index.shape[0] == value.shape[0] == start[d]):
        raise ValueError("sum_by_group: inconsistent array shapes")
    if index.shape[0] == 0:
        return
    q.A = Sparse(&start[0], &index[0], &value[0])
    q.group, q.weight, q.out = &group[0], &weight[0], &out[0, 0]
    q.d, q.width = d, out.shape[1]
    run_parts(sums_of, &q, parts_of(d, COLUMNS), n_threads)


def transpose(
    const int64_t[::1] start not None,       # (n + 1,) rows of A
    const int32_t[::1] index not None,
    const double[::1] value not None,
    int64_t[::1] start_out not None,         # OUT (d + 1,) rows of A'
    int32_t[::1] index_out not None,         # OUT
    double[::1] value_out not None,          # OUT
):
    """Compute the sparse rows of A', sorted by column. O(entries + d)."""
    cdef Py_ssize_t i, j, n = start.shape[0] - 1, d = start_out.shape[0] - 1
    cdef int64_t e, p
    if not (index.shape[0] == value.shape[0] == index_out.shape[0]
            == value_out.shape[0] == start[n]):
        raise ValueError("transpose: inconsistent array shapes")
    with nogil:
        for j in range(d + 1):
            start_out[j] = 0
        for e in range(start[n]):
            start_out[index[e] + 1] += 1
        for j in range(d):
            start_out[j + 1] += start_out[j]
        for i in range(n):
            for e in range(start[i], start[i + 1]):
                p = start_out[index[e]]  # place of the next entry of this row of A'
                index_out[p], value_out[p] = <int32_t>i, value[e]
                start_out[index[e]] += 1
        for j in range(d, 0, -1):        # each is now the end of its row
            start_out[j] = start_out[j - 1]
        start_out[0] = 0
