"""The z and u updates of NPSVOR's ADMM; problem and notation: ordinal/npsvor.py.

Columns of the paper are rows here: one row a (point of a path, rank), each on its own
memory, side by side.
"""
from cython.parallel cimport prange

from ._simd cimport simd, simd_loops


def clip(
    const double[:, ::1] g not None,
    double[:, ::1] z not None,           # IN-OUT
    double[:, ::1] u not None,           # IN-OUT
    const double[:, ::1] shift not None,
    const double[:, ::1] width not None,
    const double[:, ::1] lo not None,
    const double[:, ::1] hi not None,
    double[:, ::1] sums not None,        # OUT (p, 5)
    int n_threads,
):
    """z = clip(soft(g + u + shift, width), lo, hi), u += g - z; all (p, n).

    soft is (17) at width 0 and (18) at shift 0. sums holds |g - z|^2, |z - z before|^2,
    |g|^2, |z|^2, |u|^2 a row.
    """
    cdef Py_ssize_t k, p = g.shape[0], n = g.shape[1]
    cdef const simd_loops* ops = simd()
    if not (z.shape[0] == u.shape[0] == sums.shape[0] == p and sums.shape[1] == 5
            and z.shape[1] == u.shape[1] == n):
        raise ValueError("clip: inconsistent array shapes")
    for k in prange(p, nogil=True, schedule="static", num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        ops.admm_clip(&g[k, 0], &z[k, 0], &u[k, 0], &shift[k, 0], &width[k, 0],
                      &lo[k, 0], &hi[k, 0], n, &sums[k, 0])
