"""The truncated smooth loss of ordinal.tlssvor and its derivatives.

    L(f, b) = sum_ij v_i c_j p(1 - s_ij (f_i - b_j))^2,  s_ij = +1 if rank_i > j, or -1

    p(s) = P(s) - P(s - u),   P(t) = 0 up to -eta, t from eta on, and between them
                              P(t) = (t + eta)^3 (3 eta - t) / (16 eta^3)         (4)

for rows i and thresholds j. Where p is constant, below -eta and above u + eta, a term
costs no more than a comparison.
"""
from libc.stdint cimport int32_t

from ._parts cimport parts_of, run_parts, stop_of
from ._threshold_rows cimport CHUNK, Rows, rows_of, side


cdef struct Smooth:
    double p, d1, d2         # p, p', p''


cdef inline Smooth plus(double t, double eta) noexcept nogil:
    """Return P(t) and its first two derivatives."""
    cdef Smooth out
    cdef double x = t / eta
    if x >= 1:
        out.p, out.d1, out.d2 = t, 1, 0
    elif x <= -1:
        out.p, out.d1, out.d2 = 0, 0, 0
    else:
        out.p = eta * (x + 1) * (x + 1) * (x + 1) * (3 - x) / 16
        out.d1 = (x + 1) * (x + 1) * (2 - x) / 4
        out.d2 = 3 * (1 - x) * (1 + x) / (4 * eta)
    return out


cdef inline Smooth cut(double s, double u, double eta) noexcept nogil:
    """Return p(s) and its first two derivatives.

    Above u - eta it is computed as u - P(u - s), which is never rounded above u.
    """
    cdef Smooth out
    if s <= u - eta:         # always if u is infinite
        return plus(s, eta)
    out = plus(u - s, eta)
    out.p = u - out.p
    out.d2 = -out.d2
    return out


cdef struct Sums:
    Rows q
    double u, eta
    double* D
    double* by_row
    double* by_chunk


cdef void slopes_of(void* given, Py_ssize_t chunk, int worker) noexcept nogil:
    """Compute L of a chunk and its derivatives by the thresholds (by_chunk) and scores
    (by_row)."""
    cdef Sums* to = <Sums*>given
    cdef const Rows* q = &to.q
    cdef double u = to.u, eta = to.eta
    cdef double* by_row = to.by_row
    cdef double* sums = to.by_chunk + chunk * (1 + q.T)
    cdef Py_ssize_t i, j
    cdef double s, sign, weight, slope
    cdef Smooth at
    for j in range(q.T + 1):
        sums[j] = 0
    for i in range(chunk * CHUNK, stop_of(q.n, CHUNK, chunk)):
        by_row[i] = 0
        for j in range(q.T):
            sign = side(q, i, j)
            s = 1 - sign * (q.f[i] - q.b[j])
            if s <= -eta:
                continue
            weight = q.v[i] * q.c[j]
            at = cut(s, u, eta)
            sums[0] += weight * at.p * at.p
            slope = 2 * weight * sign * at.p * at.d1
            by_row[i] -= slope
            sums[1 + j] += slope


cdef void curvatures_of(void* given, Py_ssize_t chunk, int worker) noexcept nogil:
    """Compute the curvatures of all terms of a chunk, and their row and column sums."""
    cdef Sums* to = <Sums*>given
    cdef const Rows* q = &to.q
    cdef double u = to.u, eta = to.eta
    cdef double* D = to.D
    cdef double* by_row = to.by_row
    cdef double* sums = to.by_chunk + chunk * q.T
    cdef Py_ssize_t i, j
    cdef double s
    cdef Smooth at
    for j in range(q.T):
        sums[j] = 0
    for i in range(chunk * CHUNK, stop_of(q.n, CHUNK, chunk)):
        by_row[i] = 0
        for j in range(q.T):
            s = 1 - side(q, i, j) * (q.f[i] - q.b[j])
            if s <= -eta or s >= u + eta:
                D[i * q.T + j] = 0
                continue
            at = cut(s, u, eta)
            D[i * q.T + j] = 2 * q.v[i] * q.c[j] * (at.d1 * at.d1 + at.p * at.d2)
            by_row[i] += D[i * q.T + j]
            sums[j] += D[i * q.T + j]


def n_chunks(Py_ssize_t n) -> int:
    """Return the number of chunks of n rows, the length of the arrays `by_chunk`."""
    return parts_of(n, CHUNK)


def slopes(
    const double[::1] f not None,        # (n,)
    const double[::1] b not None,        # (T,)
    const int32_t[::1] rank not None,    # (n,)
    const double[::1] v not None,        # (n,) weights of rows
    const double[::1] c not None,        # (T,) weights of thresholds
    double u,
    double eta,
    double[::1] by_row not None,         # OUT (n,) dL/df
    double[:, ::1] by_chunk not None,    # OUT (n_chunks, 1 + T) parts of L, dL/db
    int n_threads,
):
    """Compute L and its gradient by scores and thresholds. O(n T)."""
    cdef Rows q = rows_of(f, b, rank, v, c)
    cdef Py_ssize_t count = by_chunk.shape[0]
    cdef Sums to
    if not (by_row.shape[0] == q.n and by_chunk.shape[1] == 1 + q.T
            and count == parts_of(q.n, CHUNK)):
        raise ValueError("slopes: inconsistent array shapes")
    to = Sums(q, u, eta, NULL, &by_row[0], &by_chunk[0, 0])
    run_parts(slopes_of, &to, count, n_threads)


def curvatures(
    const double[::1] f not None,
    const double[::1] b not None,
    const int32_t[::1] rank not None,
    const double[::1] v not None,
    const double[::1] c not None,
    double u,
    double eta,
    double[:, ::1] D not None,           # OUT (n, T) 2 v c (p'^2 + p p'')
    double[::1] by_row not None,         # OUT (n,) its row sums
    double[:, ::1] by_chunk not None,    # OUT (n_chunks, T) parts of its column sums
    int n_threads,
):
    """Compute the curvature D_ij of every term, and its sums by row, d2L/df_i^2, and by
    threshold, d2L/db_j^2; d2L/df_i db_j is -D_ij. O(n T)."""
    cdef Rows q = rows_of(f, b, rank, v, c)
    cdef Py_ssize_t count = by_chunk.shape[0]
    cdef Sums to
    if not (D.shape[0] == by_row.shape[0] == q.n and D.shape[1] == q.T
            and by_chunk.shape[1] == q.T and count == parts_of(q.n, CHUNK)):
        raise ValueError("curvatures: inconsistent array shapes")
    to = Sums(q, u, eta, &D[0, 0], &by_row[0], &by_chunk[0, 0])
    run_parts(curvatures_of, &to, count, n_threads)


def loss(
    const double[::1] s not None,
    double u,
    double eta,
    double[:, ::1] out not None,         # OUT (len(s), 3) p, p', p''
):
    """Compute p and its derivatives at slacks s."""
    cdef Py_ssize_t i
    cdef Smooth at
    if not (out.shape[0] == s.shape[0] and out.shape[1] == 3):
        raise ValueError("loss: inconsistent array shapes")
    for i in range(s.shape[0]):
        at = cut(s[i], u, eta)
        out[i, 0], out[i, 1], out[i, 2] = at.p, at.d1, at.d2
