"""Losses of networks with one hidden layer, and backpropagation, for ordinal/networks/.

All arrays have one column per row of the data, and the loops run along the columns. The
loss is NaN if an output is not finite.
"""
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, exp, fabs
from libc.stdint cimport int32_t

from ._cumulative cimport terms_of
from ._parts cimport parts_of
from ._simd cimport simd

cdef enum:
    ROWS = 128               # of a block


cdef bint all_finite(const double* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, beyond = 0
    for i in range(n):
        beyond += not fabs(x[i]) <= DBL_MAX
    return beyond == 0


def ordered_codes(
    double[:, ::1] S not None,                # IN-OUT (m, n) outputs; slopes by them
    const double[::1] t not None,             # (m,) offsets
    const int32_t[::1] rank not None,         # (n,) 0..m
    const double[::1] share not None,         # (n,) weights
    bint squared,
    double[::1] by_t not None,                # OUT (m,)
) -> float:
    """Return the loss of logistic outputs 1 / (1 + exp(t_k - s_k)) as predictions of
    rank > k: the cross entropy, or half the squared error."""
    cdef Py_ssize_t k, m = S.shape[0], n = S.shape[1]
    cdef double value = 0, by_s
    if not (t.shape[0] == by_t.shape[0] == m and rank.shape[0] == share.shape[0] == n):
        raise ValueError("ordered_codes: inconsistent array shapes")
    if n == 0:
        raise ValueError("ordered_codes: no rows")
    with nogil:
        for k in range(m):
            if not all_finite(&S[k, 0], n):
                value = NAN
            value += simd().code_terms(&S[k, 0], t[k], &rank[0], <int32_t>k, &share[0],
                                       squared, n, &by_s)
            by_t[k] = -by_s
    return value


cdef void spread(
    const double* t, Py_ssize_t m, double* theta, double* gap,
) noexcept nogil:
    """Compute m thresholds, nondecreasing in floating point, from their mean and the
    logarithms of the gaps between them; and the m + 1 gaps, infinite at both ends."""
    cdef Py_ssize_t j
    cdef double middle = 0
    gap[0] = gap[m] = INFINITY
    theta[0] = 0
    for j in range(1, m):
        gap[j] = exp(t[j])
        theta[j] = theta[j - 1] + gap[j]
        middle += theta[j]
    middle /= m
    for j in range(m):
        theta[j] = t[0] + (theta[j] - middle)


def thresholds(
    const double[::1] t not None,             # (m,) mean, logarithms of the gaps
    double[:, ::1] out not None,              # OUT (2, m + 1) thresholds, gaps
):
    """Compute the thresholds (row 0, whose last entry is unused) and gaps (row 1)."""
    if not (t.shape[0] > 0 and out.shape[0] == 2 and out.shape[1] == t.shape[0] + 1):
        raise ValueError("thresholds: inconsistent array shapes")
    spread(&t[0], t.shape[0], &out[0, 0], &out[1, 0])


def cumulative(
    int link,                                 # its number in _cumulative.LINKS
    double[::1] f not None,                   # IN-OUT (n,) scores; derivatives by them
    const double[::1] t not None,             # (m,) as in `thresholds`
    const int32_t[::1] rank not None,         # (n,) 0..m
    const double[::1] share not None,         # (n,) weights
    double[:, ::1] work not None,             # OUT (2, m + 1)
    double[::1] by_t not None,                # OUT (m,)
) -> float:
    """Return -sum_i share_i log(F(theta_y - f_i) - F(theta_(y-1) - f_i))."""
    cdef Py_ssize_t i, j, size, begin, m = t.shape[0], n = f.shape[0]
    cdef int32_t y
    cdef double value = 0, above = 0, w, both, upper
    cdef double[ROWS] a, b, delta
    cdef double[6 * ROWS] terms
    cdef double* theta
    cdef double* gap
    if not (work.shape[0] == 2 and work.shape[1] == m + 1 and by_t.shape[0] == m and
            rank.shape[0] == share.shape[0] == n):
        raise ValueError("cumulative: inconsistent array shapes")
    if n == 0 or m == 0:
        raise ValueError("cumulative: an empty array")
    theta, gap = &work[0, 0], &work[1, 0]
    with nogil:
        spread(&t[0], m, theta, gap)
        if not all_finite(&f[0], n):
            value = NAN
        for j in range(m):
            by_t[j] = 0
        for j in range(parts_of(n, ROWS)):
            begin = j * ROWS
            size = min(ROWS, n - begin)
            for i in range(size):
                y = rank[begin + i]
                a[i] = theta[y] - f[begin + i] if y < m else INFINITY
                b[i] = theta[y - 1] - f[begin + i] if y > 0 else -INFINITY
                delta[i] = gap[y]
            terms_of(link, a, b, delta, size, terms, ROWS)
            for i in range(size):
                y, w = rank[begin + i], share[begin + i]
                both, upper = w * terms[ROWS + i], w * terms[2 * ROWS + i]
                value -= w * terms[i]
                f[begin + i] = both
                if y < m:
                    by_t[y] -= upper
                if y > 0:
                    by_t[y - 1] += upper - both
        for j in range(m):                    # a gap moves all thresholds above it up;
            by_t[m - 1 - j] += above
            above = by_t[m - 1 - j]
        for j in range(1, m):                 # all move down, to keep their mean
            by_t[j] = gap[j] * (by_t[j] - above * (m - j) / m)
    return value


def bend(
    double[:, ::1] H not None,                # IN-OUT (h, n) units; derivatives below
    const double[:, ::1] V not None,          # (m, h) weights of the outputs
    const double[:, ::1] G not None,          # (m, n) derivatives by the outputs
):
    """Set H = (1 - H H) V'G: backpropagation through the outputs and the tanh."""
    if not (V.shape[1] == H.shape[0] and V.shape[0] == G.shape[0] and
            G.shape[1] == H.shape[1]):
        raise ValueError("bend: inconsistent array shapes")
    if H.shape[0] == 0 or H.shape[1] == 0 or V.shape[0] == 0:
        raise ValueError("bend: an empty array")
    with nogil:
        simd().bend(&H[0, 0], &V[0, 0], &G[0, 0], H.shape[0], V.shape[0], H.shape[1])
