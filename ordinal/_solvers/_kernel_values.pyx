"""Kernel values from inner products, and products with CSR rows.

Tiles are shared out to threads by the callers; nothing here needs the interpreter.
"""
from libc.stdint cimport int32_t, int64_t

from .simd cimport simd, simd_loops

ctypedef fused real:
    float
    double


def rbf(
    const double[:, ::1] P not None,
    const double[::1] aa not None,
    const double[::1] bb not None,
    double gamma,
    real[:, :] out not None,             # OUT, contiguous rows; may be P itself
):
    """out = exp(-gamma max(aa + bb' - 2 P, 0)) for P (n, m), aa (n,), bb (m,)."""
    cdef Py_ssize_t i, n = P.shape[0], m = P.shape[1]
    cdef const simd_loops* ops = simd()
    if not (aa.shape[0] == out.shape[0] == n and bb.shape[0] == out.shape[1] == m
            and (m == 0 or out.strides[1] == sizeof(real))):
        raise ValueError("rbf: inconsistent array shapes")
    if n == 0 or m == 0:
        return
    with nogil:
        for i in range(n):
            if real is float:
                ops.rbf_row_f32(&P[i, 0], aa[i], &bb[0], gamma, &out[i, 0], m)
            else:
                ops.rbf_row_f64(&P[i, 0], aa[i], &bb[0], gamma, &out[i, 0], m)


def mirror(
    float[:, ::1] K not None,            # IN-OUT, square
    Py_ssize_t r0, Py_ssize_t r1,
    Py_ssize_t c0, Py_ssize_t c1,
):
    """K[c0:c1, r0:r1] = K[r0:r1, c0:c1]' in small squares; disjoint or the same."""
    cdef Py_ssize_t i, j, row, column
    if not (0 <= r0 <= r1 <= K.shape[0] and 0 <= c0 <= c1 <= K.shape[1]
            and K.shape[0] == K.shape[1]):
        raise ValueError("mirror: no such tile")
    with nogil:
        for column in range(c0, c1, 16):
            for row in range(r0, r1, 16):
                for j in range(column, min(column + 16, c1)):
                    for i in range(row, min(row + 16, r1)):
                        K[j, i] = K[i, j]


def csr_times_dense(
    const int64_t[::1] indptr not None,
    const int32_t[::1] indices not None,
    const double[::1] data not None,
    const double[:, ::1] B not None,
    double[:, ::1] out not None,         # IN-OUT
):
    """out += A B for CSR A (n, d), B (d, m), out (n, m)."""
    cdef Py_ssize_t i, p, j, m = B.shape[1]
    cdef double v
    cdef const double* b
    cdef double* o
    if not (indptr.shape[0] == out.shape[0] + 1 and out.shape[1] == m):
        raise ValueError("csr_times_dense: inconsistent array shapes")
    if m == 0:
        return
    with nogil:
        for i in range(out.shape[0]):
            o = &out[i, 0]
            for p in range(indptr[i], indptr[i + 1]):
                v = data[p]
                b = &B[indices[p], 0]
                for j in range(m):
                    o[j] += v * b[j]


def add_rows(
    const float[:, ::1] K not None,
    const int32_t[::1] rows not None,        # numbers of rows of K
    const double[::1] change not None,
    double[::1] G not None,                  # IN-OUT
):
    """G += sum_a change[a] K[rows[a]]."""
    cdef Py_ssize_t a, i, count
    cdef const float* some[64]
    cdef const simd_loops* ops = simd()
    cdef Py_ssize_t n = G.shape[0]
    if not (K.shape[1] == n and rows.shape[0] == change.shape[0]):
        raise ValueError("add_rows: inconsistent array shapes")
    with nogil:
        for a in range(0, rows.shape[0], 64):
            count = min(64, rows.shape[0] - a)
            for i in range(count):
                some[i] = &K[rows[a + i], 0]
            ops.add_rows(&G[0], some, &change[a], count, 0, n)
