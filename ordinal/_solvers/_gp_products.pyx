"""The matrix B of ordinal/_gp/covariance.py, and the diagonal of its inverse."""
from cython.parallel cimport prange


def scaled(
    const double[:, ::1] Sigma not None,
    const double[::1] root not None,     # of W
    Py_ssize_t start,
    Py_ssize_t stop,
    double[:, ::1] B not None,           # OUT rows from start to stop
    int n_threads,
):
    """B = I + root Sigma root, its lower triangle, and zeros above; some rows of it."""
    cdef Py_ssize_t i, j, n = root.shape[0]
    cdef double r
    if not (Sigma.shape[0] == Sigma.shape[1] == B.shape[0] == B.shape[1] == n
            and 0 <= start <= stop <= n):
        raise ValueError("scaled: inconsistent array shapes")
    for i in prange(start, stop, nogil=True, schedule="static",
                    num_threads=n_threads, use_threads_if=n_threads > 1):
        r = root[i]
        for j in range(i + 1):
            B[i, j] = r * Sigma[i, j] * root[j]
        B[i, i] = B[i, i] + 1
        for j in range(i + 1, n):
            B[i, j] = 0


def column_norms(
    const double[:, ::1] L not None,     # lower triangular
    double[::1] out not None,            # OUT
):
    """Squared norms of the columns: the diagonal of L'L."""
    cdef Py_ssize_t i, j, n = L.shape[0]
    if not (L.shape[1] == out.shape[0] == n):
        raise ValueError("column_norms: inconsistent array shapes")
    with nogil:
        for j in range(n):
            out[j] = 0
        for i in range(n):
            for j in range(i + 1):
                out[j] += L[i, j] * L[i, j]
