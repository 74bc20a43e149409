"""Proximal steps of quadratic programs of many groups, with optimal thresholds.

For groups j and rows i, the proximal step from g is

    t_ij = clip(g_ij + sigma (b_j - f_i - p_ij), lo_ij, hi_ij),                      (1)

with the threshold b_j at which sum_i t_ij + price_j b_j, a nondecreasing function of
b_j, is zero. If it is zero on an interval that contains b_j, then b_j is kept.

The search for b_j takes some five steps of O(n). Groups are processed in chunks of a
fixed size, so sums by row do not depend on the number of threads.
"""
from libc.math cimport INFINITY, fabs, isinf
from libc.stdint cimport uint8_t

from ._parts cimport parts_of, run_parts, stop_of
from ._simd cimport simd, simd_loops

cdef enum:
    CHUNK = 32             # groups
    NEWTON = 20            # steps of a search before bisection
    SEARCH = 100           # largest number of steps of a search

cdef double ZERO = 1e-14   # a sum that counts as 0, relative to absolute values
cdef double BEYOND = 1e-9  # relative step past a knot, where the slope is not 0


cdef struct Program:
    const double* f
    const double* g
    const double* lo
    const double* hi
    const double* p
    const double* price
    double sigma
    Py_ssize_t n, T


cdef struct Steps:
    Program q
    double* b
    double* lack
    double* t
    uint8_t* inside
    double* totals
    Py_ssize_t stride, chunk   # entries of t and inside between groups, between chunks
    const simd_loops* ops


cdef double next_knot(const Program* q, Py_ssize_t j, double b, bint up) noexcept nogil:
    """Return the nearest threshold above b (if `up`) or below it at which a variable of
    group j leaves the end of its box."""
    cdef double best = INFINITY if up else -INFINITY, at
    cdef Py_ssize_t i, e
    for i in range(q.n):
        e = j * q.n + i
        if not q.lo[e] < q.hi[e]:
            continue
        at = q.f[i] + q.p[e] + ((q.lo[e] if up else q.hi[e]) - q.g[e]) / q.sigma
        if up and b <= at < best or not up and best < at <= b:
            best = at
    return best


cdef double threshold(
    const simd_loops* ops, const Program* q, Py_ssize_t j, double b, double* lack,
) noexcept nogil:
    """Return the optimal threshold of group j; set `lack` to minus the residual sum.

    Newton's method from b on a piecewise linear function, safeguarded by a bracket of
    its zero.
    """
    cdef double left = -INFINITY, right = INFINITY, count, size, h, curve, to
    cdef Py_ssize_t k, o = j * q.n
    for k in range(SEARCH):
        h = q.price[j] * b + ops.box_sums(
            q.f, q.g + o, q.lo + o, q.hi + o, q.p + o, b, q.sigma, q.n, &count, &size)
        lack[0] = -h
        if fabs(h) <= ZERO * (size + fabs(q.price[j] * b)):
            break
        if h < 0:
            left = b
        else:
            right = b
        curve = q.sigma * count + q.price[j]
        if curve > 0:
            to = b - h / curve
        else:
            to = next_knot(q, j, b, h < 0)
            if isinf(to):
                break  # no variable will ever leave the end of its box
            to += (BEYOND if h < 0 else -BEYOND) * (1 + fabs(to))
        if (k >= NEWTON or not left < to < right) and not (isinf(left) or isinf(right)):
            to = 0.5 * (left + right)
        if not left < to < right:
            break  # no number lies between the ends of the bracket
        b = to
    return b


cdef void chunk_steps(
    const simd_loops* ops, const Program* q, Py_ssize_t first, Py_ssize_t last,
    Py_ssize_t stride, double* b, double* lack, double* t, uint8_t* inside,
    double* total,
) noexcept nogil:
    """Compute thresholds and steps of the groups from `first` to `last`."""
    cdef Py_ssize_t i, j, o
    for i in range(q.n):
        total[i] = 0
    for j in range(first, last):
        o = j * q.n
        b[j] = threshold(ops, q, j, b[j], &lack[j])
        ops.box_steps(
            q.f, q.g + o, q.lo + o, q.hi + o, q.p + o, b[j], q.sigma, q.n,
            t + (j - first) * stride, inside + (j - first) * stride, total)


cdef void chunk_of_steps(void* given, Py_ssize_t c, int worker) noexcept nogil:
    cdef Steps* s = <Steps*>given
    chunk_steps(
        s.ops, &s.q, c * CHUNK, stop_of(s.q.T, CHUNK, c), s.stride, s.b, s.lack,
        s.t + c * s.chunk, s.inside + c * s.chunk, s.totals + c * s.q.n)


def n_chunks(Py_ssize_t T) -> int:
    """Return the number of chunks of T groups."""
    return parts_of(T, CHUNK)


def steps(
    const double[::1] f not None,        # (n,)
    const double[:, ::1] g not None,     # (T, n)
    const double[:, ::1] lo not None,    # (T, n)
    const double[:, ::1] hi not None,    # (T, n)
    const double[:, ::1] p not None,     # (T, n)
    const double[::1] price not None,    # (T,)
    double sigma,
    double[::1] b not None,              # IN-OUT (T,) first guesses; the optimum
    double[:, ::1] t not None,           # OUT (T, n), or scratch (n_chunks, n)
    uint8_t[:, ::1] inside not None,     # OUT (T, n), or scratch; 1 inside the box
    double[:, ::1] totals not None,      # OUT (n_chunks, n) sums of t over a chunk
    double[::1] lack not None,           # OUT (T,) minus the residual sums of groups
    int n_threads,
):
    """Compute the proximal steps (1) of all rows and groups."""
    cdef Py_ssize_t T = g.shape[0], n = g.shape[1], count = n_chunks(T)
    cdef bint kept = t.shape[0] == T and inside.shape[0] == T
    cdef Steps s
    if not (T > 0 and n > 0 and f.shape[0] == n
            and lo.shape[0] == hi.shape[0] == p.shape[0] == T
            and lo.shape[1] == hi.shape[1] == p.shape[1] == n
            and price.shape[0] == b.shape[0] == lack.shape[0] == T
            and t.shape[1] == inside.shape[1] == totals.shape[1] == n
            and (kept or t.shape[0] == inside.shape[0] == count)
            and totals.shape[0] == count and sigma > 0):
        raise ValueError("steps: inconsistent array shapes")
    s.q = Program(&f[0], &g[0, 0], &lo[0, 0], &hi[0, 0], &p[0, 0], &price[0], sigma, n,
                  T)
    s.b, s.lack, s.t, s.inside = &b[0], &lack[0], &t[0, 0], &inside[0, 0]
    s.totals, s.ops = &totals[0, 0], simd()
    s.stride, s.chunk = n if kept else 0, n * (CHUNK if kept else 1)
    run_parts(chunk_of_steps, &s, count, n_threads)
