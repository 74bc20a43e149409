"""The matrix B of ordinal/gpor/covariance.py, and the diagonal of its inverse."""
from ._parts cimport parts_of, run_parts

cdef enum:
    ROWS = 16                # rows that a thread computes at once


cdef struct Scaled:
    const double* Sigma
    const double* root
    double* B
    Py_ssize_t n, start, stop


cdef void scaled_rows(void* given, Py_ssize_t part, int worker) noexcept nogil:
    cdef Scaled* q = <Scaled*>given
    cdef Py_ssize_t i, j, first = q.start + part * ROWS
    cdef const double* row
    cdef double* out
    cdef double r
    for i in range(first, min(first + ROWS, q.stop)):
        row, out, r = q.Sigma + i * q.n, q.B + i * q.n, q.root[i]
        for j in range(i + 1):
            out[j] = r * row[j] * q.root[j]
        out[i] = out[i] + 1
        for j in range(i + 1, q.n):
            out[j] = 0


def scaled(
    const double[:, ::1] Sigma not None,
    const double[::1] root not None,     # square roots of W
    Py_ssize_t start,
    Py_ssize_t stop,
    double[:, ::1] B not None,           # OUT rows from start to stop
    int n_threads,
):
    """Compute rows of B = I + root Sigma root: the lower triangle, and zeros above."""
    cdef Py_ssize_t n = root.shape[0]
    cdef Scaled q
    if not (Sigma.shape[0] == Sigma.shape[1] == B.shape[0] == B.shape[1] == n
            and 0 <= start <= stop <= n):
        raise ValueError("scaled: inconsistent array shapes")
    if start == stop:
        return
    q.Sigma, q.root, q.B = &Sigma[0, 0], &root[0], &B[0, 0]
    q.n, q.start, q.stop = n, start, stop
    run_parts(scaled_rows, &q, parts_of(stop - start, ROWS), n_threads)


def column_norms(
    const double[:, ::1] L not None,     # lower triangular
    double[::1] out not None,            # OUT
):
    """Compute the squared norms of the columns, which are the diagonal of L'L."""
    cdef Py_ssize_t i, j, n = L.shape[0]
    if not (L.shape[1] == out.shape[0] == n):
        raise ValueError("column_norms: inconsistent array shapes")
    with nogil:
        for j in range(n):
            out[j] = 0
        for i in range(n):
            for j in range(i + 1):
                out[j] += L[i, j] * L[i, j]
