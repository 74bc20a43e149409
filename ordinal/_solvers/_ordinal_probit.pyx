"""Ordinal probit likelihood, its derivatives, and the sites of expectation propagation.

A row of rank k with latent value h and noise of variance v has, with s = sqrt(v),

    P = Phi(z1) - Phi(z2),   z1 = (b_k - h) / s,   z2 = (b_{k-1} - h) / s            (5)

the mass of a standard normal variable t on [z2, z1]. All derivatives of log P are
functions of the moments of t truncated to that interval, and of N(z1) / P and
N(z2) / P, with N the density. With the mean m, variance V and third central moment K,

    d log P / dh = m / s    -d2 log P / dh2 = (1 - V) / v    d3 log P / dh3 = K / s^3

which are (6), (7) and the third derivative of Appendix A. 1 - V is a sum of positive
terms, N(z1)/P (z1 - m) + N(z2)/P (m - z2). The moments are Gauss-Legendre sums over the
part of [z2, z1] with non-negligible mass, relative to the density at its end nearest 0.
Thus no two nearly equal numbers are subtracted and nothing overflows, however far from
0 or however narrow the interval is.

The width of an interval is passed beside its ends, because the difference of the ends
of a narrow interval is mostly rounding error.
"""
from libc.math cimport (
    INFINITY, M_PI, cos, erfc, exp, fabs, fmax, fmin, log, log1p, sqrt,
)
from libc.stdint cimport int32_t

from ._parts cimport parts_of, run_parts, stop_of

cdef enum:
    ROWS = 128                           # rows that a thread computes at once
    NODES = 48                           # exact for polynomials of degree 95

cdef double SITE = 1e-6                  # seconds per row of `sites`

cdef double node[NODES]                  # Gauss-Legendre nodes and weights on [0, 1]
cdef double share[NODES]


cdef void find_nodes() noexcept nogil:
    """Compute the zeros of the Legendre polynomial by Newton's method, and weights."""
    cdef int i, j, _step
    cdef double x, p, q, r, slope = 0
    for i in range(NODES):
        x = cos(M_PI * (i + 0.75) / (NODES + 0.5))
        for _step in range(20):
            p, q = 1, 0
            for j in range(NODES):
                r = q
                q = p
                p = ((2 * j + 1) * x * q - j * r) / (j + 1)
            slope = NODES * (x * p - q) / (x * x - 1)
            x -= p / slope
        node[i] = 0.5 * (1 - x)
        share[i] = 1 / ((1 - x * x) * slope * slope)


find_nodes()

cdef double REACH2 = 80                  # exp(-REACH2 / 2) of the mass is omitted
cdef double HALF_LOG_2PI = 0.91893853320467274178


cdef inline double product(double weight, double length) noexcept nogil:
    """Return weight * length, or 0 for weight 0 and an infinite length."""
    return weight * length if weight > 0 else 0.0


cdef Interval interval(double z2, double z1, double width) noexcept nogil:
    """Return the moments of t truncated to [z2, z1], where width = z1 - z2."""
    cdef Interval t, r
    cdef double lo, hi, start, length, beyond, x, w, total, mean, second, third, outside
    cdef double weight[NODES]
    cdef int i
    cdef bint flip = z1 < -z2            # mirror intervals whose middle is below 0
    lo = -z1 if flip else z2
    hi = -z2 if flip else z1

    start = fmax(lo, -sqrt(REACH2))
    beyond = width if lo == start else hi - start
    if start > 0:
        length = REACH2 / (start + sqrt(start * start + REACH2))
    else:
        length = sqrt(REACH2) - start
    length = fmin(length, beyond)
    total = mean = 0
    for i in range(NODES):
        x = length * node[i]
        weight[i] = share[i] * exp(-x * (start + 0.5 * x))
        total = total + weight[i]
        mean = mean + weight[i] * x
    mean = mean / total
    second = third = 0
    for i in range(NODES):
        x = length * node[i] - mean
        w = weight[i] * x * x
        second = second + w
        third = third + w * x
    total = total * length               # mass over the density at `start`
    r.variance = second * length / total
    r.lower = exp(0.5 * (start - lo) * (start + lo)) / total
    r.upper = exp(-beyond * (start + 0.5 * beyond)) / total
    r.above = beyond - mean
    outside = 1
    if lo < 0:
        outside = 0.5 * (erfc(hi * sqrt(0.5)) + erfc(-lo * sqrt(0.5)))
    if outside < 0.5:
        r.log_mass = log1p(-outside)
    else:
        r.log_mass = log(total) - 0.5 * start * start - HALF_LOG_2PI
    if lo < -1 and hi > 1:               # most of the mass: formulas of the ends
        r.mean = r.lower - r.upper
        r.below = r.mean - lo
        r.third = (product(r.lower, r.below * r.below - r.variance)
                   - product(r.upper, r.above * r.above - r.variance))
    else:
        r.mean = start + mean
        r.below = mean + (start - lo)
        r.third = third * length / total
    r.shortfall = product(r.upper, r.above) + product(r.lower, r.below)
    r.z2, r.z1 = z2, z1
    if not flip:
        return r
    t = r
    t.mean, t.third = -r.mean, -r.third
    t.upper, t.lower = r.lower, r.upper
    t.above, t.below = r.below, r.above
    return t


cdef inline Interval of_row(
    double h, double s, int32_t k, const double* b, const double* gap, Py_ssize_t r,
) noexcept nogil:
    """Return the moments of rank k for the latent value h and standard deviation s."""
    cdef double z1 = (b[k] - h) / s if k < r - 1 else INFINITY
    cdef double z2 = (b[k - 1] - h) / s if k > 0 else -INFINITY
    return interval(z2, z1, gap[k] / s)


cdef int check(
    const int32_t[::1] rank, const double[::1] b, const double[::1] gap,
    const double[::1] h, const double[::1] v, double[:, ::1] out, Py_ssize_t rows,
) except -1:
    cdef Py_ssize_t i, n = rank.shape[0], r = gap.shape[0]
    if not (h.shape[0] == v.shape[0] == n and b.shape[0] == r - 1
            and out.shape[0] == rows and out.shape[1] == n):
        raise ValueError("ordinal probit: inconsistent array shapes")
    for i in range(n):
        if not 0 <= rank[i] < r:
            raise ValueError("ordinal probit: no such rank")
    return 0


cdef struct Rows:
    Py_ssize_t n, r
    const double* h
    const double* v
    const int32_t* rank
    const double* b
    const double* gap
    double* out                          # rows of n


cdef struct Sweep:                       # a sweep of EP
    Rows rows
    const double* A
    const double* q
    const double* a
    double* p                            # precisions p of the sites, and p m
    double* pm
    double step


cdef void loss_of(void* given, Py_ssize_t part, int worker) noexcept nogil:
    cdef Rows* q = <Rows*>given
    cdef Py_ssize_t i, n = q.n
    cdef double s
    cdef Interval t
    for i in range(part * ROWS, stop_of(n, ROWS, part)):
        s = sqrt(q.v[i])
        t = of_row(q.h[i], s, q.rank[i], q.b, q.gap, q.r)
        q.out[i] = t.log_mass
        q.out[n + i] = t.mean / s
        q.out[2 * n + i] = t.shortfall / q.v[i]


def loss(
    const double[::1] h not None,        # (n,) latent values
    const double[::1] v not None,        # (n,) noise variances
    const int32_t[::1] rank not None,    # (n,) 0..r-1
    const double[::1] b not None,        # (r-1,) thresholds
    const double[::1] gap not None,      # (r,) widths of the ranks, inf at both ends
    double[:, ::1] out not None,         # OUT (3, n)
    int n_threads,
):
    """Compute log P, d log P / dh and -d2 log P / dh2: the rows of `out`."""
    cdef Py_ssize_t n = h.shape[0]
    cdef Rows q
    check(rank, b, gap, h, v, out, 3)
    q = Rows(n, gap.shape[0], &h[0], &v[0], &rank[0], &b[0], &gap[0], &out[0, 0])
    run_parts(loss_of, &q, parts_of(n, ROWS), n_threads)


cdef void derivatives_of(void* given, Py_ssize_t part, int worker) noexcept nogil:
    cdef Rows* q = <Rows*>given
    cdef Py_ssize_t i, n = q.n
    cdef double* out
    cdef double s, v, upper, lower, by_log_s
    cdef Interval t
    for i in range(part * ROWS, stop_of(n, ROWS, part)):
        v, out = q.v[i], q.out + i
        s = sqrt(v)
        t = of_row(q.h[i], s, q.rank[i], q.b, q.gap, q.r)
        out[0] = t.upper / s
        out[n] = (t.mean * t.mean - t.shortfall) / (2 * v)
        # g and w are homogeneous in (b - h, s), of degrees -1 and -2
        upper = product(t.upper, t.above)
        lower = product(t.lower, t.below)
        out[2 * n] = upper / v
        by_log_s = -(t.mean + product(upper, t.z1) + product(lower, t.z2)) / s
        out[3 * n] = by_log_s / (2 * v)
        upper = -product(t.upper, t.above * t.above - t.variance)
        lower = product(t.lower, t.below * t.below - t.variance)
        out[4 * n] = -t.third / (v * s)
        out[5 * n] = upper / (v * s)
        by_log_s = -2 * t.shortfall / v
        if t.upper > 0:
            by_log_s = by_log_s - upper * t.z1 / v
        if t.lower > 0:
            by_log_s = by_log_s - lower * t.z2 / v
        out[6 * n] = by_log_s / (2 * v)


def derivatives(
    const double[::1] h not None,
    const double[::1] v not None,
    const int32_t[::1] rank not None,
    const double[::1] b not None,
    const double[::1] gap not None,
    double[:, ::1] out not None,         # OUT (7, n)
    int n_threads,
):
    """Compute derivatives of log P, g = d log P / dh and w = -dg / dh: rows of `out`.

    Rows 0 and 1 are those of log P by the upper threshold and by v, rows 2 and 3 those
    of g by the same, rows 4 to 6 those of w by h and by the same. The derivative by the
    lower threshold follows, because a joint shift of h and both thresholds changes
    nothing.
    """
    cdef Py_ssize_t n = h.shape[0]
    cdef Rows q
    check(rank, b, gap, h, v, out, 7)
    q = Rows(n, gap.shape[0], &h[0], &v[0], &rank[0], &b[0], &gap[0], &out[0, 0])
    run_parts(derivatives_of, &q, parts_of(n, ROWS), n_threads)


cdef void sites_of(void* given, Py_ssize_t part, int worker) noexcept nogil:
    cdef Sweep* w = <Sweep*>given
    cdef Rows* q = &w.rows
    cdef Py_ssize_t i, n = q.n
    cdef double* out
    cdef double h, v, A, lam, mean, s2, s, p, e, rest, x
    cdef Interval t
    for i in range(part * ROWS, stop_of(n, ROWS, part)):
        h, v, A, out = q.h[i], q.v[i], w.A[i], q.out + i
        lam = A / w.q[i]
        mean = h - lam * w.a[i]
        s2 = v + lam
        s = sqrt(s2)
        t = of_row(mean, s, q.rank[i], q.b, q.gap, q.r)
        p, e = w.p[i], w.pm[i]
        x = (e * (2 * mean + lam * e) - p * mean * mean) / (1 + lam * p)
        out[0] = t.log_mass + 0.5 * (log1p(lam * p) - x)
        out[n] = t.mean / s
        out[2 * n] = t.upper / s
        out[3 * n] = (t.mean * t.mean - t.shortfall) / (2 * s2)
        # the tilted distribution has mean + lam t.mean / s and variance lam rest / s2
        rest = v + lam * t.variance
        if A == 0:                       # a row of zeros in X: f = 0 for certain
            out[4 * n] = 0
        else:
            out[4 * n] = fmax(fabs(mean + lam * t.mean / s - h) / sqrt(A),
                              fabs(lam * rest / s2 / A - 1))
        x = t.shortfall / rest
        w.p[i] = p + w.step * (x - p)
        w.pm[i] = e + w.step * (x * mean + t.mean * s / rest - e)


def sites(
    const double[::1] h not None,        # (n,) posterior means
    const double[::1] A not None,        # (n,) posterior variances
    const double[::1] q not None,        # (n,) 1 - A p, computed without cancellation
    const double[::1] a not None,        # (n,) p (m - h), likewise
    const double[::1] v not None,        # (n,) noise variances
    const int32_t[::1] rank not None,
    const double[::1] b not None,
    const double[::1] gap not None,
    double[:, ::1] site not None,        # IN-OUT (2, n): p and p m
    double[:, ::1] out not None,         # OUT (5, n)
    double step,                         # 1: take the new sites; less: damp
    int n_threads,
):
    """Run a parallel sweep of EP: compute a new site for every row (Appendix B).

    The rows of `out` belong to the cavity and the old site. Row 0 is log Z_i minus the
    logarithm of the integral of the site without its amplitude. Rows 1 to 3 are the
    derivatives of log Z_i by h, by the upper threshold and by v. Row 4 is the distance
    between the posterior and the tilted distribution: the larger one of the differences
    of their means, in posterior standard deviations, and of their variances, relative.
    """
    cdef Py_ssize_t n = h.shape[0]
    cdef Sweep w
    check(rank, b, gap, h, v, out, 5)
    if not (A.shape[0] == q.shape[0] == a.shape[0] == site.shape[1] == n
            and site.shape[0] == 2):
        raise ValueError("sites: inconsistent array shapes")
    w.rows = Rows(n, gap.shape[0], &h[0], &v[0], &rank[0], &b[0], &gap[0], &out[0, 0])
    w.A, w.q, w.a, w.step = &A[0], &q[0], &a[0], step
    w.p, w.pm = &site[0, 0], &site[1, 0]
    run_parts(sites_of, &w, parts_of(n, ROWS), n_threads, SITE * n)


cdef void log_probability_of(void* given, Py_ssize_t part, int worker) noexcept nogil:
    cdef Rows* q = <Rows*>given
    cdef Py_ssize_t i
    cdef int32_t k
    cdef double s
    for i in range(part * ROWS, stop_of(q.n, ROWS, part)):
        s = sqrt(q.v[i])
        for k in range(<int32_t>q.r):
            q.out[i * q.r + k] = of_row(q.h[i], s, k, q.b, q.gap, q.r).log_mass


def log_probability(
    const double[::1] mean not None,     # (n,)
    const double[::1] v not None,        # (n,) noise and latent variance
    const double[::1] b not None,
    const double[::1] gap not None,
    double[:, ::1] out not None,         # OUT (n, r)
    int n_threads,
):
    """Compute the logarithms of (18): out[i, k] = log P of rank k at (mean_i, v_i)."""
    cdef Py_ssize_t n = mean.shape[0], r = gap.shape[0]
    cdef Rows q
    if not (v.shape[0] == out.shape[0] == n and out.shape[1] == r == b.shape[0] + 1):
        raise ValueError("log_probability: inconsistent array shapes")
    if n == 0:
        return
    q = Rows(n, r, &mean[0], &v[0], NULL, &b[0], &gap[0], &out[0, 0])
    run_parts(log_probability_of, &q, parts_of(n, ROWS), n_threads)
