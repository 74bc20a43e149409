"""The z and u updates of NPSVOR's ADMM; problem and notation: ordinal.npsvor.

The vectors of the paper are rows here: one contiguous row per point of a path and rank.
"""
from ._parts cimport run_parts
from ._simd cimport simd, simd_loops


cdef struct Rows:
    const double* g
    double* z
    double* u
    const double* shift
    const double* width
    const double* lo
    const double* hi
    double* sums
    Py_ssize_t n
    const simd_loops* ops


cdef void clip_row(void* given, Py_ssize_t k, int worker) noexcept nogil:
    cdef Rows* q = <Rows*>given
    cdef Py_ssize_t at = k * q.n
    q.ops.admm_clip(q.g + at, q.z + at, q.u + at, q.shift + at, q.width + at, q.lo + at,
                    q.hi + at, q.n, q.sums + 5 * k)


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
    """Set z = clip(soft(g + u + shift, width), lo, hi) and add g - z to u; all (p, n).

    The soft threshold is (17) for width 0 and (18) for shift 0. The columns of `sums`
    are |g - z|^2, |z - previous z|^2, |g|^2, |z|^2 and |u|^2 of every row.
    """
    cdef Py_ssize_t p = g.shape[0], n = g.shape[1]
    cdef Rows q
    if not (z.shape[0] == u.shape[0] == sums.shape[0] == p and sums.shape[1] == 5
            and z.shape[1] == u.shape[1] == n):
        raise ValueError("clip: inconsistent array shapes")
    q.g, q.z, q.u, q.shift = &g[0, 0], &z[0, 0], &u[0, 0], &shift[0, 0]
    q.width, q.lo, q.hi, q.sums = &width[0, 0], &lo[0, 0], &hi[0, 0], &sums[0, 0]
    q.n, q.ops = n, simd()
    run_parts(clip_row, &q, p, n_threads)
