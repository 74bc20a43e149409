"""The logistic losses of LIT and LAT, ordinal.logistic, and their derivatives.

    L(f, b) = sum_i v_i sum_(j in T_i) c_j log(1 + exp(-m_ij)),  m_ij = s_ij (f_i - b_j)

with s_ij = +1 if rank_i > j and -1 otherwise, for rows i and thresholds j. T_i is the
set of all thresholds (LAT), or of the one or two adjacent to the rank of the row (LIT).
"""
from libc.math cimport exp, fabs, fmax, log1p
from libc.stdint cimport int32_t

from ._parts cimport parts_of, run_parts, stop_of
from ._threshold_rows cimport CHUNK, Rows, rows_of, side


cdef struct Term:            # term of a row and a threshold
    double loss              # log(1 + exp(-m))
    double slope             # dloss / df = -dloss / db
    double curvature         # d2loss / df^2


cdef inline Py_ssize_t first(
    const Rows* q, Py_ssize_t i, bint beside,
) noexcept nogil:
    """Return the first threshold of T_i."""
    return max(q.rank[i] - 1, 0) if beside else 0


cdef inline Py_ssize_t behind(
    const Rows* q, Py_ssize_t i, bint beside,
) noexcept nogil:
    """Return the end of T_i, one past its last threshold."""
    return min(q.rank[i] + 1, q.T) if beside else q.T


cdef inline Term term(const Rows* q, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Return the term of row i and threshold j.

    The only exponential is that of a negative number, which cannot overflow.
    """
    cdef Term out
    cdef double sign = side(q, i, j)
    cdef double m = sign * (q.f[i] - q.b[j])
    cdef double e = exp(-fabs(m)), share = 1 / (1 + e)
    out.loss = fmax(-m, 0) + log1p(e)
    out.slope = -sign * (e * share if m > 0 else share)
    out.curvature = e * share * share
    return out


cdef struct Sums:
    Rows q
    bint beside
    double* slope
    double* curvature
    double* by_chunk


cdef void by_row_of(void* given, Py_ssize_t chunk, int worker) noexcept nogil:
    """Compute L of a chunk, and its derivatives by the scores."""
    cdef Sums* to = <Sums*>given
    cdef const Rows* q = &to.q
    cdef bint beside = to.beside
    cdef double* slope = to.slope
    cdef double* curvature = to.curvature
    cdef Py_ssize_t i, j
    cdef double value = 0, weight
    cdef Term t
    for i in range(chunk * CHUNK, stop_of(q.n, CHUNK, chunk)):
        slope[i] = 0
        curvature[i] = 0
        for j in range(first(q, i, beside), behind(q, i, beside)):
            t = term(q, i, j)
            weight = q.v[i] * q.c[j]
            value += weight * t.loss
            slope[i] += weight * t.slope
            curvature[i] += weight * t.curvature
    to.by_chunk[chunk] = value


cdef void by_threshold_of(void* given, Py_ssize_t chunk, int worker) noexcept nogil:
    """Compute the two derivatives of L of a chunk by each threshold."""
    cdef Sums* to = <Sums*>given
    cdef const Rows* q = &to.q
    cdef bint beside = to.beside
    cdef double* sums = to.by_chunk + chunk * 2 * q.T
    cdef Py_ssize_t i, j
    cdef double weight
    cdef Term t
    for j in range(2 * q.T):
        sums[j] = 0
    for i in range(chunk * CHUNK, stop_of(q.n, CHUNK, chunk)):
        for j in range(first(q, i, beside), behind(q, i, beside)):
            t = term(q, i, j)
            weight = q.v[i] * q.c[j]
            sums[2 * j] -= weight * t.slope
            sums[2 * j + 1] += weight * t.curvature


def n_chunks(Py_ssize_t n) -> int:
    """Return the number of chunks of n rows, the length of the arrays `by_chunk`."""
    return parts_of(n, CHUNK)


def by_row(
    const double[::1] f not None,        # (n,)
    const double[::1] b not None,        # (T,)
    const int32_t[::1] rank not None,    # (n,)
    const double[::1] v not None,        # (n,) weights of rows
    const double[::1] c not None,        # (T,) weights of thresholds
    bint beside,
    double[::1] slope not None,          # OUT (n,) dL/df
    double[::1] curvature not None,      # OUT (n,) d2L/df^2
    double[::1] by_chunk not None,       # OUT (n_chunks,) parts of L
    int n_threads,
):
    """Compute L and its derivatives by the scores. O(terms)."""
    cdef Rows q = rows_of(f, b, rank, v, c)
    cdef Py_ssize_t count = by_chunk.shape[0]
    cdef Sums to
    if not (slope.shape[0] == curvature.shape[0] == q.n
            and count == parts_of(q.n, CHUNK)):
        raise ValueError("by_row: inconsistent array shapes")
    to = Sums(q, beside, &slope[0], &curvature[0], &by_chunk[0])
    run_parts(by_row_of, &to, count, n_threads)


def by_threshold(
    const double[::1] f not None,
    const double[::1] b not None,
    const int32_t[::1] rank not None,
    const double[::1] v not None,
    const double[::1] c not None,
    bint beside,
    double[:, :, ::1] by_chunk not None,  # OUT (n_chunks, T, 2) parts of dL/db, d2L/db2
    int n_threads,
):
    """Compute the derivatives of L by the thresholds. O(terms)."""
    cdef Rows q = rows_of(f, b, rank, v, c)
    cdef Py_ssize_t count = by_chunk.shape[0]
    cdef Sums to
    if not (count == parts_of(q.n, CHUNK) and by_chunk.shape[1] == q.T
            and by_chunk.shape[2] == 2):
        raise ValueError("by_threshold: inconsistent array shapes")
    to = Sums(q, beside, NULL, NULL, &by_chunk[0, 0, 0])
    run_parts(by_threshold_of, &to, count, n_threads)


def across(
    const double[::1] f not None,        # (m,) scores of some rows
    const double[::1] b not None,
    const int32_t[::1] rank not None,
    const double[::1] v not None,
    const double[::1] c not None,
    bint beside,
    const double[:, ::1] X not None,     # (m, d) their features
    double[:, ::1] out not None,         # IN-OUT (T, d)
):
    """Add sum_i x_i d2L/df_i^2, over the terms of threshold j, to out_j. O(d terms)."""
    cdef Rows q = rows_of(f, b, rank, v, c)
    cdef Py_ssize_t i, j, k, d = X.shape[1]
    cdef double weight
    if not (X.shape[0] == q.n and out.shape[0] == q.T and out.shape[1] == d):
        raise ValueError("across: inconsistent array shapes")
    with nogil:
        for i in range(q.n):
            for j in range(first(&q, i, beside), behind(&q, i, beside)):
                weight = q.v[i] * q.c[j] * term(&q, i, j).curvature
                for k in range(d):
                    out[j, k] += weight * X[i, k]
