"""Sums over rows of piecewise linear losses, their Moreau envelopes and slopes.

With v_ij = b_j - f_i for rows i and groups j, and losses that are conjugates of
phi_ij(t) = pn t for t < 0 and pp t for t > 0 on the box [lo, hi],

    phi*(v) = max(hi (v - pp), lo (v - pn), 0),                                      (1)

the proximal step of the multipliers from g is

    t_ij = argmin { phi(t) - t v + (t - g)^2 / (2 sigma) : lo <= t <= hi },          (2)

which is g + sigma v after soft thresholding and clipping. lo, hi, pn and pp depend on
the rank of the row and on the group; the boxes are multiplied by the weight of the row.
t_ij is "inside" where it moves with v: at neither end of its box, and not at the kink.

Every function processes the rows from `start` to `stop`, or as many as its output has.
Arrays by row and group have the shape (T, n). The loops are in simd_piecewise.h.
"""
from cython cimport floating
from libc.stdint cimport int32_t

from ._simd cimport simd, simd_loops


cdef check(
    const floating[::1] f, const int32_t[::1] rank, const float[::1] weight,
    const floating[:, :, ::1] table, Py_ssize_t T, Py_ssize_t start, Py_ssize_t stop,
):
    cdef Py_ssize_t n = f.shape[0]
    if not (rank.shape[0] == weight.shape[0] == n and 0 <= start < stop <= n
            and table.shape[0] == T > 0 and table.shape[1] == 4):
        raise ValueError("piecewise linear: inconsistent array shapes")


def point(
    const floating[::1] f not None,       # (n,) scores
    const int32_t[::1] rank not None,     # (n,)
    const float[::1] weight not None,     # (n,)
    const floating[:, :, ::1] table not None,  # (T, 4, r) lo, hi, pn, pp
    const double[::1] b not None,         # (T,)
    const floating[:, ::1] g not None,    # (T, n)
    double sigma,
    Py_ssize_t start,
    floating[:, ::1] t not None,          # OUT (T, rows)
    floating[:, ::1] inside not None,     # OUT (T, rows) 1 where t is inside, else 0
    double[:, ::1] sums not None,         # OUT (T, 7)
):
    """Compute (2) and, in the columns of `sums` for each group, the sums of positive t,
    of negative t, of pp t and of pn t over these, the number of t inside, the sum of
    the envelopes t v - phi(t) - (t - g)^2 / (2 sigma), and the sum of (1)."""
    cdef Py_ssize_t T = b.shape[0], rows = t.shape[1], j
    cdef const simd_loops* ops = simd()
    check(f, rank, weight, table, T, start, start + rows)
    if not (g.shape[0] == t.shape[0] == inside.shape[0] == sums.shape[0] == T
            and g.shape[1] == f.shape[0] and inside.shape[1] == rows
            and sums.shape[1] == 7):
        raise ValueError("point: inconsistent array shapes")
    with nogil:
        sums[:] = 0
        for j in range(T):
            if floating is float:
                ops.piecewise_point_f32(
                    &f[start], &rank[start], &weight[start], &g[j, start],
                    &table[j, 0, 0], table.shape[2], b[j], sigma, rows, &t[j, 0],
                    &inside[j, 0], &sums[j, 0])
            else:
                ops.piecewise_point_f64(
                    &f[start], &rank[start], &weight[start], &g[j, start],
                    &table[j, 0, 0], table.shape[2], b[j], sigma, rows, &t[j, 0],
                    &inside[j, 0], &sums[j, 0])


def slopes(
    const floating[::1] f not None,
    const floating[::1] end not None,     # (n,) scores at length 1, f at 0
    const int32_t[::1] rank not None,
    const float[::1] weight not None,
    const floating[:, :, ::1] table not None,
    const double[::1] b not None,
    const double[::1] b_end not None,
    const double[::1] lengths not None,   # (K,)
    const floating[:, ::1] g not None,
    double sigma,
    Py_ssize_t start,
    Py_ssize_t stop,
    double[::1] out not None,             # OUT (K,)
):
    """Compute the derivatives of the sum of envelopes along the line from (b, f) to
    (b_end, end), at `lengths` of it."""
    cdef Py_ssize_t T = b.shape[0], r = table.shape[2], rows = stop - start, j, k
    cdef const simd_loops* ops = simd()
    check(f, rank, weight, table, T, start, stop)
    if not (g.shape[0] == b_end.shape[0] == T and g.shape[1] == f.shape[0]
            and end.shape[0] == f.shape[0] and out.shape[0] == lengths.shape[0]):
        raise ValueError("slopes: inconsistent array shapes")
    with nogil:
        for k in range(lengths.shape[0]):
            out[k] = 0
            for j in range(T):
                if floating is float:
                    out[k] += ops.piecewise_slope_f32(
                        &f[start], &end[start], &rank[start], &weight[start],
                        &g[j, start], &table[j, 0, 0], r, b[j], b_end[j] - b[j],
                        lengths[k], sigma, rows)
                else:
                    out[k] += ops.piecewise_slope_f64(
                        &f[start], &end[start], &rank[start], &weight[start],
                        &g[j, start], &table[j, 0, 0], r, b[j], b_end[j] - b[j],
                        lengths[k], sigma, rows)


def jumps(
    const floating[::1] f not None,
    const int32_t[::1] rank not None,
    const float[::1] weight not None,
    const floating[:, :, ::1] table not None,
    const double[:, ::1] grid not None,   # (T, K) thresholds, increasing
    Py_ssize_t start,
    Py_ssize_t stop,
    double[:, ::1] out not None,          # OUT (T, K + 1)
):
    """Tabulate the derivative of the sum of (1) by the threshold of each group.

    Column 0 is its value at grid[:, 0], column k its increase from grid[:, k - 1] to
    grid[:, k], and the last column its increase beyond the grid. The derivative at the
    kink of a loss is the one from the right.
    """
    cdef Py_ssize_t T = grid.shape[0], K = grid.shape[1], r = table.shape[2], j
    cdef Py_ssize_t rows = stop - start
    cdef const simd_loops* ops = simd()
    check(f, rank, weight, table, T, start, stop)
    if not (out.shape[0] == T and out.shape[1] == K + 1 and K > 0):
        raise ValueError("jumps: inconsistent array shapes")
    with nogil:
        for j in range(T):
            if floating is float:
                ops.piecewise_jumps_f32(
                    &f[start], &rank[start], &weight[start], &table[j, 0, 0], r,
                    &grid[j, 0], K, rows, &out[j, 0])
            else:
                ops.piecewise_jumps_f64(
                    &f[start], &rank[start], &weight[start], &table[j, 0, 0], r,
                    &grid[j, 0], K, rows, &out[j, 0])
