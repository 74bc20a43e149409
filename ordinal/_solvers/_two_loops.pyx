"""The direction of limited-memory BFGS, for ordinal/_numerics/lbfgs.py."""
from libc.stdint cimport int32_t

from ._simd cimport simd, simd_loops


def direction(
    const double[:, ::1] steps not None,      # (m, p) s of the last steps, in a ring
    const double[:, ::1] changes not None,    # (m, p) y, the changes of the gradient
    const double[::1] rho not None,           # (m,) 1 / s'y
    Py_ssize_t newest,                        # row of the last step
    Py_ssize_t count,                         # number of stored steps, 1..m
    const double[::1] gradient not None,      # (p,)
    double[::1] weights not None,             # OUT (m,)
    double[::1] out not None,                 # OUT (p,)
):
    """Compute -H gradient, with the inverse Hessian H that the pairs (s, y) imply."""
    cdef Py_ssize_t i, k, m = steps.shape[0], p = steps.shape[1]
    cdef int32_t first = 0
    cdef double c
    cdef const simd_loops* loops = simd()
    if not (changes.shape[0] == rho.shape[0] == weights.shape[0] == m and
            changes.shape[1] == gradient.shape[0] == out.shape[0] == p):
        raise ValueError("direction: inconsistent array shapes")
    if not (0 <= newest < m and 1 <= count <= m and p > 0):
        raise ValueError("direction: no such pairs")
    with nogil:
        for i in range(p):
            out[i] = -gradient[i]
        for i in range(count):                # from the newest step to the oldest
            k = (newest - i + m) % m
            weights[k] = rho[k] * loops.dot(&steps[k, 0], &out[0], p)
            c = -weights[k]
            loops.combine_rows(&out[0], &changes[k, 0], p, &first, &c, 1, p)
        c = 1 / (rho[newest] * loops.dot(&changes[newest, 0], &changes[newest, 0], p))
        for i in range(p):
            out[i] *= c
        for i in range(count):                # from the oldest step to the newest
            k = (newest - count + 1 + i + m) % m
            c = weights[k] - rho[k] * loops.dot(&changes[k, 0], &out[0], p)
            loops.combine_rows(&out[0], &steps[k, 0], p, &first, &c, 1, p)
