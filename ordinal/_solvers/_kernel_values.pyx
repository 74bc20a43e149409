"""Kernel values from inner products, and products with CSR rows.

The callers distribute tiles among threads; all loops release the interpreter's lock.
"""
from libc.stdint cimport int16_t, int32_t, int64_t

from ._simd cimport simd, simd_loops

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
    """Compute exp(-gamma max(aa + bb' - 2 P, 0)) for P (n, m), aa (n,), bb (m,)."""
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
    """Set K[c0:c1, r0:r1] = K[r0:r1, c0:c1]' in small squares; the two tiles are
    disjoint or the same."""
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
    """Add A B to out (n, m), for CSR A (n, d) and dense B (d, m)."""
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


def csr_times_csr(
    const int64_t[::1] indptr not None,
    const int32_t[::1] indices not None,
    const double[::1] data not None,
    const int64_t[::1] indptr_b not None,
    const int32_t[::1] indices_b not None,
    const double[::1] data_b not None,
    int64_t[::1] start not None,         # IN-OUT, (d,), zeros before and after
    int64_t[::1] size not None,          # IN-OUT, (d,), zeros before and after
    int32_t[::1] row not None,           # OUT, one per entry of B
    double[::1] value not None,          # OUT, one per entry of B
    double[:, ::1] out not None,         # IN-OUT
):
    """Add A B' to out, for CSR A (n, d) and B (m, d), by the columns of B (Gustavson).

    1. Count the entries of B in each column.
    2. Copy B by columns: `size[c]` entries from `start[c] - 1` on, by increasing row.
       The columns are stored in the order of their first entries in B.
    3. For every row of A, add up the multiples of the columns of B.

    Each value is summed by increasing column, so it does not depend on the other rows.
    The time is O(nnz(A) + nnz(B)) plus one step per pair of entries of A and B in the
    same column. It does not depend on d, because `start` and `size` are accessed only
    where B has entries.
    """
    cdef Py_ssize_t i, j, n = out.shape[0], m = out.shape[1]
    cdef int64_t p, q, used = 0
    cdef int32_t c
    cdef double v
    cdef double* o
    if not (indptr.shape[0] == n + 1 and indptr_b.shape[0] == m + 1
            and start.shape[0] == size.shape[0]
            and row.shape[0] == value.shape[0] == data_b.shape[0]):
        raise ValueError("csr_times_csr: inconsistent array shapes")
    if m == 0:
        return
    with nogil:
        for q in range(indptr_b[m]):
            size[indices_b[q]] += 1
        for j in range(m):
            for q in range(indptr_b[j], indptr_b[j + 1]):
                c = indices_b[q]
                if start[c] == 0:
                    start[c] = used + 1
                    used += size[c]
                    size[c] = 0
                p = start[c] - 1 + size[c]
                row[p], value[p] = <int32_t>j, data_b[q]
                size[c] += 1
        for i in range(n):
            o = &out[i, 0]
            for p in range(indptr[i], indptr[i + 1]):
                c, v = indices[p], data[p]
                for q in range(start[c] - 1, start[c] - 1 + size[c]):
                    o[row[q]] += v * value[q]
        for q in range(indptr_b[m]):
            start[indices_b[q]] = size[indices_b[q]] = 0


def unpack(
    const int16_t[:, ::1] packed not None,   # (n, m)
    const float[::1] scale not None,         # (m,)
    float[:, ::1] out not None,              # OUT (n, m)
):
    """Multiply each column of `packed` by its scale, in single precision."""
    cdef Py_ssize_t n = packed.shape[0], m = packed.shape[1], i, j
    cdef const int16_t* row
    cdef float* to
    cdef const float* by
    if not (out.shape[0] == n and out.shape[1] == scale.shape[0] == m):
        raise ValueError("unpack: inconsistent array shapes")
    if n == 0 or m == 0:
        return
    with nogil:
        by = &scale[0]
        for i in range(n):
            row, to = &packed[i, 0], &out[i, 0]
            for j in range(m):
                to[j] = by[j] * row[j]


def add_rows(
    const float[:, ::1] K not None,
    const int32_t[::1] rows not None,        # indices of rows of K
    const double[::1] change not None,
    double[::1] G not None,                  # IN-OUT
):
    """Add sum_a change[a] K[rows[a]] to G."""
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
