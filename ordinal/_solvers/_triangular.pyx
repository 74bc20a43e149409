"""Inverse of a small lower triangular matrix, for ordinal/_numerics/cholesky.py."""


def lower_inverse(
    const double[:, :] L not None,
    double[:, ::1] out not None,         # OUT, zeros above the diagonal
):
    """Compute out = L^-1, each row from the rows above it. n^3 / 3 operations."""
    cdef Py_ssize_t i, j, k, n = L.shape[0]
    cdef double factor, scale
    if not (L.shape[1] == out.shape[0] == out.shape[1] == n):
        raise ValueError("lower_inverse: inconsistent array shapes")
    with nogil:
        for i in range(n):
            scale = 1 / L[i, i]
            for j in range(n):
                out[i, j] = 0
            for k in range(i):
                factor = -scale * L[i, k]
                for j in range(k + 1):
                    out[i, j] += factor * out[k, j]
            out[i, i] = scale
