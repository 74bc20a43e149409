"""Data, signs and chunks of rows, shared by losses over rows and thresholds.

Chunks have a fixed size, and threads process different ones. Sums over rows are sums
over chunks, so they do not depend on the number of threads.
"""
from libc.stdint cimport int32_t

cdef enum:
    CHUNK = 1024             # rows


cdef struct Rows:
    Py_ssize_t n, T
    const double* f          # (n,) scores
    const double* b          # (T,) thresholds
    const int32_t* rank      # (n,)
    const double* v          # (n,) weights of rows
    const double* c          # (T,) weights of thresholds


cdef inline Rows rows_of(
    const double[::1] f,
    const double[::1] b,
    const int32_t[::1] rank,
    const double[::1] v,
    const double[::1] c,
) except *:
    if not (f.shape[0] == rank.shape[0] == v.shape[0] > 0
            and b.shape[0] == c.shape[0] > 0):
        raise ValueError("rows and thresholds: inconsistent array shapes")
    return Rows(f.shape[0], b.shape[0], &f[0], &b[0], &rank[0], &v[0], &c[0])


cdef inline double side(const Rows* q, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Return s_ij: 1 if row i belongs above threshold j, -1 if below."""
    return 1 if q.rank[i] > j else -1
