"""Products of compressed sparse rows with vectors, and sums over their pairs.

A column-compressed matrix is the same arrays read as the rows of its transpose. Every
number is summed in the order of the entries, so that no byte depends on the number of
threads.
"""
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t


cdef inline double row_times(
    const int64_t* start, const int32_t* index, const double* value, Py_ssize_t i,
    const double* x,
) noexcept nogil:
    cdef int64_t e
    cdef double s = 0
    for e in range(start[i], start[i + 1]):
        s += value[e] * x[index[e]]
    return s


def times(
    const int64_t[::1] start not None,       # (n + 1,)
    const int32_t[::1] index not None,
    const double[::1] value not None,
    const double[::1] x not None,            # (d,)
    double[::1] out not None,                # OUT (n,)
    int n_threads,
):
    """A x for sparse rows. O(entries)."""
    cdef Py_ssize_t i, n = out.shape[0]
    if not (start.shape[0] == n + 1 and index.shape[0] == value.shape[0] == start[n]):
        raise ValueError("times: inconsistent array shapes")
    if index.shape[0] == 0 or x.shape[0] == 0:
        out[:] = 0
        return
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        out[i] = row_times(&start[0], &index[0], &value[0], i, &x[0])


cdef void pairs_of(
    const int64_t* start, const int32_t* index, const double* value,
    const int64_t* across, const int32_t* column, const double* held,
    const double* weight, Py_ssize_t j, double* out,
) noexcept nogil:
    """Row j of the lower triangle: for every row that holds column j, what lies up to
    that column there."""
    cdef int64_t e, f
    cdef int32_t i
    cdef double t
    for e in range(start[j], start[j + 1]):
        i = index[e]
        t = weight[i] * value[e]
        for f in range(across[i], across[i + 1]):
            if column[f] > j:
                break
            out[column[f]] += t * held[f]


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
    """out += A' diag(weight) A. O(sum over rows of the square of their entries)."""
    cdef Py_ssize_t j, d = out.shape[0], n = weight.shape[0]
    if not (d == out.shape[1] == start.shape[0] - 1 and across.shape[0] == n + 1
            and index.shape[0] == value.shape[0] == column.shape[0] == held.shape[0]
            == start[d] == across[n]):
        raise ValueError("weighted_gram: inconsistent array shapes")
    if index.shape[0] == 0:
        return
    for j in prange(d, nogil=True, schedule="dynamic", num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        pairs_of(
            &start[0], &index[0], &value[0], &across[0], &column[0], &held[0],
            &weight[0], j, &out[j, 0],
        )


def sum_by_group(
    const int64_t[::1] start not None,       # (d + 1,) columns of A
    const int32_t[::1] index not None,
    const double[::1] value not None,
    const int32_t[::1] group not None,       # (n,) of the rows; < 0 for none
    const double[::1] weight not None,       # (n,)
    double[:, ::1] out not None,             # IN-OUT (m, number of groups)
    int n_threads,
):
    """out[j, group_i] += weight_i A_ij over the rows i. O(entries)."""
    cdef Py_ssize_t j, d = out.shape[0]
    cdef int64_t e
    cdef int32_t g
    if not (start.shape[0] == d + 1 and group.shape[0] == weight.shape[0]
            and index.shape[0] == value.shape[0] == start[d]):
        raise ValueError("sum_by_group: inconsistent array shapes")
    for j in prange(d, nogil=True, schedule="static", num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        for e in range(start[j], start[j + 1]):
            g = group[index[e]]
            if g >= 0:
                out[j, g] = out[j, g] + weight[index[e]] * value[e]


def transpose(
    const int64_t[::1] start not None,       # (n + 1,) rows of A
    const int32_t[::1] index not None,
    const double[::1] value not None,
    int64_t[::1] start_out not None,         # OUT (d + 1,) rows of A'
    int32_t[::1] index_out not None,         # OUT
    double[::1] value_out not None,          # OUT
):
    """A' of A, whose rows are sorted. O(entries + d)."""
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
                p = start_out[index[e]]  # where the next entry of the row goes
                index_out[p], value_out[p] = <int32_t>i, value[e]
                start_out[index[e]] += 1
        for j in range(d, 0, -1):        # each now holds where its row ends
            start_out[j] = start_out[j - 1]
        start_out[0] = 0
