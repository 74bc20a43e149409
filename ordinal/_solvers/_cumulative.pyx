"""The likelihood of cumulative link models, ordinal.linear, and its derivatives.

A row whose rank lies between the points b < a of the link's scale has

    P = F(a) - F(b),   a = inf for the highest rank, b = -inf for the lowest

and delta = a - b. The caller passes delta as well as the ends, because the difference
of the ends of a narrow rank is mostly rounding error. Let `upper` = d log P / da > 0,
`lower` = -d log P / db > 0, and h11, h12, h22 the second derivatives of log P. Then

    g = upper - lower    c1 = h11 + h12    c2 = h12 + h22    h12 > 0

are the derivative of log P when both ends move together, the derivatives of `upper` and
of -`lower` by such a move, and the mixed second derivative. Each has a formula of its
own in which no two nearly equal numbers are subtracted, so neither a rank far out in a
tail nor a narrow one loses digits: `upper` and `lower` have the magnitude 1 / delta and
h12 has 1 / delta^2, but g, c1 and c2 do not grow as delta decreases.
"""
from libc.math cimport (
    INFINITY, M_PI, atan2, exp, expm1, fmax, fmin, isinf, log, log1p, sqrt,
)

from libc.stdint cimport int32_t, int64_t

from ._ordinal_probit cimport Interval, interval
from ._parts cimport parts_of, run_parts, stop_of
from ._simd cimport GRAM_LANES, simd, simd_loops

cdef enum Link:
    LOGIT, PROBIT, CLOGLOG, LOGLOG, CAUCHIT

cdef Py_ssize_t ROWS = 128               # rows of a block: its features stay in cache
cdef double ROW = 5e-8                   # seconds per row of `row_terms`
cdef Py_ssize_t GUARD = 2 * GRAM_LANES   # doubles that vectors read beyond an end
cdef double LARGE = 1e30                 # largest slope that is stored as a float
cdef Py_ssize_t SHARES = 64              # largest number of shares of the rows
cdef Py_ssize_t MEMORY = 2 ** 21         # doubles of the sums of all shares

LINKS = ("logit", "probit", "cloglog", "loglog", "cauchit")  # in the order of `Link`


cdef struct Terms:           # of one row
    double log_p
    double g, upper, lower
    double c1, c2, h12


cdef inline double log_of(double p, double rest) noexcept nogil:
    """Return log p, given p and `rest` = 1 - p, both to full precision."""
    # log(p) of a p near 1 would lose the digits of `rest`
    return log(p) if p < 0.5 else log1p(-rest)


cdef inline Terms probit(double a, double b, double delta) noexcept nogil:
    """Return the terms for F = Phi from the moments of a truncated normal variable."""
    cdef Terms t
    cdef Interval z = interval(b, a, delta)
    t.log_p = z.log_mass
    t.g = -z.mean
    t.upper, t.lower = z.upper, z.lower
    # at an infinite end the density is 0 and the distance infinite: their product is 0
    t.c1 = -z.upper * z.above if z.upper > 0 else 0
    t.c2 = -z.lower * z.below if z.lower > 0 else 0
    t.h12 = z.upper * z.lower
    return t


cdef inline double bernoulli(double x) noexcept nogil:
    """Return x / (1 - exp(-x)) - 1 - x / 2 for 0 <= x <= 1/2, by the series of
    B_2k x^2k / (2k)! over k >= 1; the first dropped term is below 2^-51 of the sum."""
    cdef double y = x * x
    return y / 12 * (1 - y / 60 * (1 - y / 42 * (1 - y / 40 * (
        1 - y * (10 / 396.) * (1 - y * (691 / 27300.) * (1 - y * (210 / 8292.)))))))


cdef inline Terms cloglog(double a, double b, double delta) noexcept nogil:
    """Return the terms for F(x) = 1 - exp(-e^x).

    With u = e^a, v = e^b and D = u - v, log P = -v + log(1 - e^-D), whose slopes are
    u / (e^D - 1) and -v / (1 - e^-D). Above LAST, where e^x overflows, P is 0.
    """
    cdef Terms t
    cdef double LAST = 709, TINY = 1e-290
    cdef double u = exp(fmin(a, LAST)), v = exp(fmin(b, LAST))
    # u - v from the width, which is precise even where u and v agree in all digits
    cdef double share = -expm1(-delta)           # D / u
    cdef double D = u * share
    cdef double rising, falling                  # D / (e^D - 1), D / (1 - e^-D)
    cdef double rising_1, falling_1              # the same minus 1
    # both quotients tend to 1 with D; their differences from 1 come from a series there
    if D < 0.5:
        falling_1 = bernoulli(D)
        rising_1 = falling_1 - 0.5 * D
        falling_1 = falling_1 + 0.5 * D
        rising, falling = 1 + rising_1, 1 + falling_1
    else:
        rising = D / expm1(D)
        falling = D / -expm1(-D)
        rising_1, falling_1 = rising - 1, falling - 1
    if D < TINY:                                 # D has underflowed, or nearly so
        t.log_p = a + log(share) - v
    else:
        t.log_p = log_of(-expm1(-D), exp(-D)) - v
    t.g = rising - v
    t.upper = rising / share
    # v / (1 - e^-D) = D / (1 - e^-D) / (e^delta - 1): the first is precise for large D,
    # the second for small D
    t.lower = falling / expm1(delta) if D < 1 else v / -expm1(-D)
    t.c1 = -t.upper * falling_1 if t.upper > 0 else 0
    t.c2 = t.lower * rising_1
    t.h12 = t.upper * t.lower
    return t


cdef inline Terms loglog(double a, double b, double delta) noexcept nogil:
    """Return the terms for F(x) = exp(-e^-x), the mirror image of `cloglog`."""
    cdef Terms m = cloglog(-b, -a, delta), t
    t.log_p = m.log_p
    t.g = -m.g
    t.upper, t.lower = m.lower, m.upper
    t.c1, t.c2 = m.c2, m.c1
    t.h12 = m.h12
    return t


cdef inline double sine_less_cosine(double x) noexcept nogil:
    """Return sin(x) / x - cos(x) for 0 <= x <= 1, by the series of
    -(-x^2)^k 2k / (2k + 1)!; the first dropped term is below 2^-51 of the sum."""
    cdef double y = x * x
    return y / 3 * (1 - y / 10 * (1 - y / 28 * (1 - y / 54 * (1 - y / 88 * (
        1 - y / 130 * (1 - y / 180 * (1 - y / 238)))))))


cdef inline Terms cauchit(double a, double b, double delta) noexcept nogil:
    """Return the terms for F(x) = 1/2 + atan(x) / pi.

    With alpha = atan a and beta = atan b, P is the angle alpha - beta over pi, and all
    slopes are products of sines and cosines of it and of alpha + beta.
    """
    cdef Terms t
    cdef double cos_a = 0 if isinf(a) else 1 / sqrt(1 + a * a)
    cdef double cos_b = 0 if isinf(b) else 1 / sqrt(1 + b * b)
    cdef double sin_a = 1 if isinf(a) else a * cos_a
    cdef double sin_b = -1 if isinf(b) else b * cos_b
    # sin(alpha - beta) without a difference of angles, which would lose a narrow rank
    cdef double sine = delta * (cos_a * cos_b)   # of the angle
    if isinf(delta):
        sine = sin_a * cos_b - cos_a * sin_b     # one of the products is 0
    cdef double cosine = cos_a * cos_b + sin_a * sin_b
    # atan2 is precise everywhere, unlike asin near 1 and acos near 0
    cdef double angle = atan2(sine, cosine)
    cdef double sine_s = sin_a * cos_b + cos_a * sin_b      # of alpha + beta
    cdef double cosine_s = cos_a * cos_b - sin_a * sin_b
    cdef double bend
    # sin x / x - cos x would subtract numbers near 1: a series instead
    if angle < 1:
        bend = sine_s * sine_less_cosine(angle)
    else:
        bend = sine_s * (sine / angle - cosine)
    t.log_p = log_of(angle / M_PI, atan2(sine, -cosine) / M_PI)
    t.g = -sine_s * sine / angle
    t.upper = cos_a * cos_a / angle
    t.lower = cos_b * cos_b / angle
    t.c1 = t.upper * (bend - cosine_s * sine)
    t.c2 = -t.lower * (bend + cosine_s * sine)
    t.h12 = t.upper * t.lower
    return t


cdef inline Terms terms(int link, double a, double b, double delta) noexcept nogil:
    if link == PROBIT:
        return probit(a, b, delta)
    if link == CLOGLOG:
        return cloglog(a, b, delta)
    if link == LOGLOG:
        return loglog(a, b, delta)
    return cauchit(a, b, delta)


cdef void terms_of(
    int link, const double* a, const double* b, const double* delta, Py_ssize_t n,
    double* out, Py_ssize_t stride,
) noexcept nogil:
    """Compute log P, g, upper, c1, c2 and h12 of n rows into six rows of `out`, which
    are `stride` doubles apart."""
    cdef Py_ssize_t i
    cdef Terms t
    if link == LOGIT:
        simd().logit_terms(a, b, delta, n, out, stride)
        return
    for i in range(n):
        t = terms(link, a[i], b[i], delta[i])
        out[i] = t.log_p
        out[stride + i] = t.g
        out[2 * stride + i] = t.upper
        out[3 * stride + i] = t.c1
        out[4 * stride + i] = t.c2
        out[5 * stride + i] = t.h12


cdef struct Ends:            # ends of the ranks of n rows, and `out` for their terms
    int link
    const double* a
    const double* b
    const double* delta
    double* out
    Py_ssize_t n


cdef void terms_of_block(void* given, Py_ssize_t i, int worker) noexcept nogil:
    cdef Ends* q = <Ends*>given
    cdef Py_ssize_t at = i * ROWS
    terms_of(q.link, q.a + at, q.b + at, q.delta + at, min(ROWS, q.n - at), q.out + at,
             q.n)


def row_terms(
    int link,                            # its number in LINKS
    const double[::1] a not None,        # (n,) upper ends, inf for the highest rank
    const double[::1] b not None,        # (n,) lower ends, -inf for the lowest
    const double[::1] delta not None,    # (n,) a - b > 0
    double[:, ::1] out not None,         # OUT (6, n)
    int n_threads,
):
    """Compute log P, g, upper, c1, c2 and h12 of every row: the rows of `out`."""
    cdef Py_ssize_t n = a.shape[0]
    cdef Ends q
    if not (b.shape[0] == delta.shape[0] == out.shape[1] == n and out.shape[0] == 6):
        raise ValueError("row_terms: inconsistent array shapes")
    if not 0 <= link < len(LINKS):
        raise ValueError("row_terms: no such link")
    if n == 0:
        return
    q = Ends(link, &a[0], &b[0], &delta[0], &out[0, 0], n)
    run_parts(terms_of_block, &q, parts_of(n, ROWS), n_threads, ROW * n)


cdef struct Scores:          # scores of n rows, and derivatives of -log P by them
    int link
    Py_ssize_t n, T
    const double* f
    const int32_t* rank
    const double* weight
    const double* edges      # (T + 2,) thresholds between -inf and inf
    float* slope
    float* curvature
    double* value            # or NULL


cdef double information(const Scores* q, double f) noexcept nogil:
    """Return the expected second derivative of -log P by the score f: the mean square
    of its slope over all ranks, which is positive unlike the curvature of one rank."""
    cdef Py_ssize_t k
    cdef double a, b, total = 0
    cdef Terms t
    for k in range(q.T + 1):
        a, b = q.edges[k + 1] - f, q.edges[k] - f
        t = terms(q.link, a, b, a - b)
        total += exp(t.log_p) * t.g * t.g
    return total


cdef void slopes_of_block(void* given, Py_ssize_t i, int worker) noexcept nogil:
    cdef const Scores* q = <Scores*>given
    cdef Py_ssize_t start = i * ROWS, n = min(ROWS, q.n - start), j
    cdef double[128] a, b, delta
    cdef double[6 * 128] t
    cdef double w, slope, bend, total = 0
    cdef int32_t y
    for j in range(n):
        y = q.rank[start + j]            # no branch: ranks come in random order
        a[j] = q.edges[y + 1] - q.f[start + j]
        b[j] = q.edges[y] - q.f[start + j]
        delta[j] = q.edges[y + 1] - q.edges[y]
    if q.link == LOGIT and q.value == NULL:  # no logarithm, half the time
        simd().logit_slopes(a, b, n, t, t + ROWS)
        for j in range(n):               # at most 1 per unit of weight: no clipping
            w = q.weight[start + j]
            q.slope[start + j] = <float>(w * t[j])
            q.curvature[start + j] = <float>(w * t[ROWS + j])
        return
    terms_of(q.link, a, b, delta, n, t, ROWS)
    for j in range(n):
        w = q.weight[start + j]
        total += w * t[j] if w > 0 else 0
        if q.link == CAUCHIT:
            bend = w * information(q, q.f[start + j])
        else:
            bend = -w * (t[3 * ROWS + j] + t[4 * ROWS + j])
        slope = w * t[ROWS + j]
        q.slope[start + j] = <float>fmin(fmax(slope, -LARGE), LARGE)
        q.curvature[start + j] = <float>fmin(bend, LARGE)
    if q.value != NULL:
        q.value[i] = -total


def blocks_of(Py_ssize_t n) -> int:
    """Return the number of blocks of n rows, each with an entry of `value`."""
    return parts_of(n, ROWS)


def score_slopes(
    int link,                            # its number in LINKS
    const double[::1] f not None,        # (n,) scores
    const int32_t[::1] rank not None,    # (n,) 0..T
    const double[::1] weight not None,   # (n,)
    const double[::1] edges not None,    # (T + 2,) -inf, increasing thresholds, inf
    float[::1] slope not None,           # OUT (n,)
    float[::1] curvature not None,       # OUT (n,)
    double[::1] value not None,          # OUT (blocks_of(n),) of the blocks, or (0,)
    int n_threads,
):
    """Compute weighted -log P by block, and its first and second derivatives by the
    scores. For cauchit, whose curvature may be negative, `curvature` is the expected
    one."""
    cdef Py_ssize_t i, n = f.shape[0], T = edges.shape[0] - 2
    cdef Scores q
    if not (rank.shape[0] == weight.shape[0] == slope.shape[0] == n
            and curvature.shape[0] == n and T > 0
            and value.shape[0] in (0, parts_of(n, ROWS))):
        raise ValueError("score_slopes: inconsistent array shapes")
    if not 0 <= link < len(LINKS):
        raise ValueError("score_slopes: no such link")
    for i in range(n):
        if not 0 <= rank[i] <= T:
            raise ValueError("score_slopes: no such rank")
    if n == 0:
        return
    q = Scores(link, n, T, &f[0], &rank[0], &weight[0], &edges[0], &slope[0],
               &curvature[0], NULL)
    if value.shape[0]:
        q.value = &value[0]
    run_parts(slopes_of_block, &q, parts_of(n, ROWS), n_threads, ROW * n)


cdef struct Problem:
    int link
    Py_ssize_t n, T, m, d, k
    Py_ssize_t ldx           # doubles from one row of X to the next
    const double* X
    const int64_t* location  # (d,) columns, as the next two
    const int64_t* nominal   # (m,)
    const int64_t* scale     # (k,)
    const double* centre     # (d + m + k,) of the columns in that order
    const double* factor     # (d + m + k,)
    const double* offset     # (n,)
    const int32_t* rank      # (n,)
    const double* weight     # (n,)
    const double* theta      # (T,)
    const double* gap        # (T + 1,) to the one before, inf at both ends
    const double* nu         # (T, m)
    const double* beta       # (stride,) and zeros
    const double* zeta       # (k,)
    Py_ssize_t stride        # doubles of a row of standardised features


cdef struct Sums:            # sums over rows of log P and its derivatives
    double value
    double* by_slot          # (T, 1 + m)
    double* by_core          # (d + k,)
    double* diag             # (T, 1 + m, 1 + m)
    double* off              # (T - 1, 1 + m, 1 + m) threshold t (rows) with t + 1
    double* border           # (T, 1 + m, d + k)
    double* core             # (d + k, d + k), its lower triangle


cdef struct Scratch:         # scratch of a block of rows
    double* V                # (ROWS, stride) features of the location, then the scale
    double* N                # (ROWS, m) features of nominal effects
    double* f                # (ROWS,) x'beta + o; so are all the following
    double* s                # exp(-z'zeta)
    double* a
    double* b
    double* delta
    double* terms            # (6, ROWS)
    double* by_f             # slopes by f and tau = z'zeta, and curvatures
    double* by_tau
    double* f_f
    double* f_tau
    double* tau_tau
    double* a_f              # by f or tau and by the ends before the scale is applied
    double* b_f
    double* a_tau
    double* b_tau
    double* c
    int32_t* above           # threshold above a row, or -1
    int32_t* below
    int32_t* nowhere         # 0


cdef enum:
    VECTORS = 23             # of ROWS doubles in Scratch; an int32 vector is half a one


cdef Scratch in_parts(double* memory, Py_ssize_t stride, Py_ssize_t m) noexcept nogil:
    """Divide `memory` among the arrays of a scratch."""
    cdef Scratch q
    cdef double* at = memory + ROWS * stride + GUARD
    q.V = memory
    q.N = at
    at = at + ROWS * m
    q.f, q.s, q.a, q.b = at, at + ROWS, at + 2 * ROWS, at + 3 * ROWS
    q.delta, q.terms = at + 4 * ROWS, at + 5 * ROWS
    at = at + 11 * ROWS
    q.by_f, q.by_tau, q.f_f, q.f_tau = at, at + ROWS, at + 2 * ROWS, at + 3 * ROWS
    q.tau_tau, q.a_f, q.b_f, q.a_tau = (
        at + 4 * ROWS, at + 5 * ROWS, at + 6 * ROWS, at + 7 * ROWS)
    q.b_tau, q.c = at + 8 * ROWS, at + 9 * ROWS
    at = at + 10 * ROWS
    q.above = <int32_t*>at
    q.below = q.above + ROWS
    q.nowhere = q.below + ROWS
    return q


cdef void read_rows(
    const Problem* p, Py_ssize_t start, Py_ssize_t n, Scratch* q,
) noexcept nogil:
    """Compute standardised features, ends of the ranks and scales of a block."""
    cdef const simd_loops* loops = simd()
    cdef const double* X = p.X + start * p.ldx
    cdef Py_ssize_t i, j, T = p.T
    cdef int32_t y
    cdef double up, low, width, x, tau
    cdef const double* nu
    for i in range(n):
        q.f[i] = p.offset[start + i]
    if p.stride:
        loops.standardise(X, p.ldx, n, p.location, p.d, p.centre, p.factor, q.V,
                          p.stride, p.stride)
        loops.row_products(q.V, p.stride, n, p.beta, q.f)
    if p.m:
        loops.standardise(X, p.ldx, n, p.nominal, p.m, p.centre + p.d, p.factor + p.d,
                          q.N, p.m, p.m)
    if p.k:
        loops.standardise(X, p.ldx, n, p.scale, p.k, p.centre + p.d + p.m,
                          p.factor + p.d + p.m, q.V + p.d, p.stride, p.k)
    for i in range(n):
        y = p.rank[start + i]
        q.s[i] = 1
        q.above[i] = y if y < T else -1
        q.below[i] = y - 1
        # the rank of a row of weight 0 may have no thresholds; P = 1 whatever it is
        if p.weight[start + i] == 0:
            q.a[i], q.b[i], q.delta[i] = INFINITY, -INFINITY, INFINITY
            continue
        up = p.theta[y] - q.f[i] if y < T else INFINITY
        low = p.theta[y - 1] - q.f[i] if y > 0 else -INFINITY
        # not the difference of the ends, whose rounding errors may exceed the width
        width = p.gap[y]
        for j in range(p.m):
            x = q.N[i * p.m + j]
            nu = p.nu + y * p.m + j
            if y < T:
                up = up - x * nu[0]
            if y > 0:
                low = low - x * nu[-p.m]
            if 0 < y < T:
                width = width - x * (nu[0] - nu[-p.m])
        if p.k:
            tau = 0
            for j in range(p.k):
                tau = tau + q.V[i * p.stride + p.d + j] * p.zeta[j]
            q.s[i] = exp(-tau)
        q.a[i], q.b[i], q.delta[i] = up * q.s[i], low * q.s[i], width * q.s[i]


cdef void chain(
    const Problem* p, Py_ssize_t start, Py_ssize_t n, Scratch* q, Sums* out,
) noexcept nogil:
    """Apply the chain rule to the terms of a block.

    Add the value and the derivatives by thresholds to `out`; store in `q` the factors
    by which features enter all other sums. The scale exp(-tau) multiplies both ends, so
    da / dtau = -a, db / dtau = -b, and the derivatives by the unscaled ends and by f
    shrink in the same proportion.
    """
    cdef Py_ssize_t i, M = 1 + p.m
    cdef double w, s, g, upper, lower, c1, c2, h12, a, b, to_a, to_b
    cdef const double* t = q.terms
    for i in range(n):
        w, s = p.weight[start + i], q.s[i]
        out.value += w * t[i] if w > 0 else 0
        g, upper = w * t[ROWS + i], w * t[2 * ROWS + i]
        c1, c2, h12 = w * t[3 * ROWS + i], w * t[4 * ROWS + i], w * t[5 * ROWS + i]
        lower = g - upper                # d log P / db < 0
        q.by_f[i] = -g * s
        q.f_f[i] = (c1 + c2) * s * s
        q.a_f[i], q.b_f[i] = -c1 * s * s, -c2 * s * s
        if p.k:
            # an infinite end does not move; 0 times infinity would be NaN
            a = 0 if isinf(q.a[i]) else q.a[i]
            b = 0 if isinf(q.b[i]) else q.b[i]
            to_a = upper + a * (c1 - h12) + b * h12
            to_b = lower + a * h12 + b * (c2 - h12)
            q.by_tau[i] = -(a * upper + b * lower)
            q.a_tau[i], q.b_tau[i] = -to_a * s, -to_b * s
            q.f_tau[i] = (to_a + to_b) * s
            q.tau_tau[i] = a * to_a + b * to_b
        if q.above[i] >= 0:
            add_slot(out.by_slot + q.above[i] * M, out.diag + q.above[i] * M * M,
                     q.N + i * p.m, p.m, upper * s, (c1 - h12) * s * s)
        if q.below[i] >= 0:
            add_slot(out.by_slot + q.below[i] * M, out.diag + q.below[i] * M * M,
                     q.N + i * p.m, p.m, lower * s, (c2 - h12) * s * s)
            if q.above[i] >= 0:
                add_products(out.off + q.below[i] * M * M, q.N + i * p.m, p.m,
                             h12 * s * s)


cdef inline void add_slot(
    double* by, double* diag, const double* x, Py_ssize_t m, double slope, double bend,
) noexcept nogil:
    """Add slope u to `by` and bend u u' to `diag`, where u = (1, -x)."""
    cdef Py_ssize_t j
    by[0] += slope
    for j in range(m):
        by[1 + j] -= slope * x[j]
    add_products(diag, x, m, bend)


cdef inline void add_products(
    double* out, const double* x, Py_ssize_t m, double bend,
) noexcept nogil:
    """Add bend u u' to `out`, where u = (1, -x)."""
    cdef Py_ssize_t i, j
    out[0] += bend
    for i in range(m):
        out[1 + i] -= bend * x[i]
        out[(1 + i) * (1 + m)] -= bend * x[i]
        for j in range(m):
            out[(1 + i) * (1 + m) + 1 + j] += bend * x[i] * x[j]


cdef void add_features(
    const Problem* p, Py_ssize_t n, Scratch* q, Sums* out,
) noexcept nogil:
    """Add the sums of a block that involve features."""
    cdef const simd_loops* loops = simd()
    cdef Py_ssize_t i, u, D = p.d + p.k, M = 1 + p.m, step = p.stride
    cdef double* Z = q.V + p.d
    # the loops below must not be called without features: their pointers are NULL
    if D == 0:
        return
    loops.scatter_rows(q.V, step, n, p.d, q.nowhere, q.by_f, out.by_core, 0)
    loops.weighted_gram(q.V, step, p.d, q.V, step, n, p.d, q.f_f, 1, out.core, D)
    if p.k:
        loops.scatter_rows(Z, step, n, p.k, q.nowhere, q.by_tau, out.by_core + p.d, 0)
        loops.weighted_gram(Z, step, p.k, q.V, step, n, p.d, q.f_tau, 0,
                            out.core + p.d * D, D)
        loops.weighted_gram(Z, step, p.k, Z, step, n, p.k, q.tau_tau, 1,
                            out.core + p.d * D + p.d, D)
    for u in range(M):
        if u > 0:
            for i in range(n):           # element u of (1, -x)
                q.c[i] = -q.N[i * p.m + u - 1]
        else:
            for i in range(n):
                q.c[i] = 1
        for i in range(n):
            q.by_f[i] = q.a_f[i] * q.c[i]
            q.f_f[i] = q.b_f[i] * q.c[i]
        loops.scatter_rows(q.V, step, n, p.d, q.above, q.by_f,
                           out.border + u * D, M * D)
        loops.scatter_rows(q.V, step, n, p.d, q.below, q.f_f,
                           out.border + u * D, M * D)
        if p.k:
            for i in range(n):
                q.by_f[i] = q.a_tau[i] * q.c[i]
                q.f_f[i] = q.b_tau[i] * q.c[i]
            loops.scatter_rows(Z, step, n, p.k, q.above, q.by_f,
                               out.border + u * D + p.d, M * D)
            loops.scatter_rows(Z, step, n, p.k, q.below, q.f_f,
                               out.border + u * D + p.d, M * D)


cdef Sums of_share(const Problem* p, Sums first, Py_ssize_t i) noexcept nogil:
    """Return the addresses of the sums of share i, given those of share 0."""
    cdef Sums out = first
    cdef Py_ssize_t M = 1 + p.m, D = p.d + p.k
    out.by_slot += i * p.T * M
    out.diag += i * p.T * M * M
    out.off += i * p.T * M * M
    if D:
        out.by_core += i * D
        out.border += i * p.T * M * D
        out.core += i * D * D
    return out


cdef double sum_share(
    const Problem* p, Py_ssize_t start, Py_ssize_t stop, double* memory, Sums out,
) noexcept nogil:
    """Add up the rows from start to stop, block by block. Return the sum of log P."""
    cdef Scratch q = in_parts(memory, p.stride, p.m)
    cdef Py_ssize_t i, n
    cdef double total = 0
    for i in range(ROWS):
        q.nowhere[i] = 0
    while start < stop:
        # a block fits the cache, so that its features are read once for all sums
        n = min(ROWS, stop - start)
        read_rows(p, start, n, &q)
        terms_of(p.link, q.a, q.b, q.delta, n, q.terms, ROWS)
        out.value = 0
        chain(p, start, n, &q, &out)
        # sums of blocks, then of shares, have smaller errors than a running sum
        total = total + out.value
        add_features(p, n, &q, &out)
        start = start + n
    return total


cdef struct Shares:
    const Problem* p
    Sums first
    Py_ssize_t rows, room    # rows of a share; doubles of its scratch
    double* scratch
    double* value


cdef void sum_some(void* given, Py_ssize_t i, int worker) noexcept nogil:
    cdef Shares* s = <Shares*>given
    s.value[i] = sum_share(
        s.p, i * s.rows, stop_of(s.p.n, s.rows, i), s.scratch + i * s.room,
        of_share(s.p, s.first, i))


def share_of_rows(Py_ssize_t n, Py_ssize_t held) -> int:
    """Return the number of rows of a share, a whole number of blocks.

    Threads work on different shares. The number depends on the shape of the problem
    alone, so that sums do not depend on the number of threads. `held` is the number of
    doubles in the sums of a share.
    """
    # large sums: fewer shares, since each has sums of its own that are added up later
    cdef Py_ssize_t most = max(1, min(SHARES, MEMORY // max(1, held)))
    return ROWS * parts_of(parts_of(n, ROWS), most)


def scratch_of_share(Py_ssize_t stride, Py_ssize_t m) -> int:
    """Return the number of doubles of the scratch of a share."""
    return ROWS * (stride + m + VECTORS) + 2 * GUARD


def padded(Py_ssize_t d) -> int:
    """Return the number of doubles of a row of d standardised features, padded."""
    return 2 * GRAM_LANES * parts_of(d, 2 * GRAM_LANES)


cdef int check_columns(const int64_t[::1] columns, Py_ssize_t count) except -1:
    cdef Py_ssize_t i
    for i in range(columns.shape[0]):
        if not 0 <= columns[i] < count:
            raise ValueError("sums: no such column")
    return 0


def sums(
    int link,                            # its number in LINKS
    const double[:, :] X not None,       # (n, C), rows contiguous
    const int64_t[::1] location not None,  # (d,) columns of X, as the next two
    const int64_t[::1] nominal not None,   # (m,)
    const int64_t[::1] scale not None,     # (k,)
    const double[::1] centre not None,   # (d + m + k,) of the columns in that order
    const double[::1] factor not None,   # (d + m + k,)
    const double[::1] offset not None,   # (n,)
    const int32_t[::1] rank not None,    # (n,) 0..T
    const double[::1] weight not None,   # (n,)
    const double[::1] theta not None,    # (T,)
    const double[::1] gap not None,      # (T + 1,) to the one before; inf at both ends
    const double[:, ::1] nu not None,    # (T, m)
    const double[::1] beta not None,     # (padded(d + k),) and zeros
    const double[::1] zeta not None,     # (k,)
    Py_ssize_t rows,                     # of a share
    double[:, ::1] scratch not None,     # (shares, scratch_of_share)
    double[::1] value not None,          # OUT (shares,) as all that follow, of zeros
    double[:, :, ::1] by_slot not None,  # (shares, T, 1 + m)
    double[:, ::1] by_core not None,     # (shares, d + k)
    double[:, :, :, ::1] diag not None,  # (shares, T, 1 + m, 1 + m)
    double[:, :, :, ::1] off not None,   # the same, of which the last is no pair's
    double[:, :, :, ::1] border not None,  # (shares, T, 1 + m, d + k)
    double[:, :, ::1] core not None,     # (shares, d + k, d + k), lower triangles
    int n_threads,
):
    """Sum weighted log P over the rows of each share, with its first and second
    derivatives by the thresholds and nominal slopes ("slots") and by beta and zeta
    ("core"). The coefficients are those of the features (x - centre) factor.

    One pass over X: O(n ((d + k)^2 + (1 + m) (d + k) + (1 + m)^2)).
    """
    cdef Problem p
    cdef Sums out
    cdef Shares shares
    cdef Py_ssize_t i, T = theta.shape[0], m = nominal.shape[0], S = value.shape[0]
    cdef Py_ssize_t n = X.shape[0], d = location.shape[0], k = scale.shape[0]
    cdef Py_ssize_t M = 1 + m, D = d + k, stride = beta.shape[0]
    cdef bint fits = (
        centre.shape[0] == factor.shape[0] == d + m + k
        and offset.shape[0] == rank.shape[0] == weight.shape[0] == n > 0
        and T > 0 and gap.shape[0] == T + 1 and nu.shape[0] == T and nu.shape[1] == m
        and stride == padded(D) and zeta.shape[0] == k
        and rows > 0 and rows % ROWS == 0 and (S - 1) * rows < n <= S * rows
        and scratch.shape[0] == S and scratch.shape[1] == scratch_of_share(stride, m)
        and by_slot.shape[0] == by_core.shape[0] == diag.shape[0] == off.shape[0] == S
        and border.shape[0] == core.shape[0] == S
        and by_slot.shape[1] == diag.shape[1] == off.shape[1] == border.shape[1] == T
        and by_slot.shape[2] == diag.shape[2] == diag.shape[3] == M
        and off.shape[2] == off.shape[3] == border.shape[2] == M
        and by_core.shape[1] == border.shape[3] == D
        and core.shape[1] == core.shape[2] == D
    )
    if not fits or (X.shape[1] > 1 and X.strides[1] != sizeof(double)):
        raise ValueError("sums: inconsistent array shapes")
    if not 0 <= link < len(LINKS):
        raise ValueError("sums: no such link")
    # loops trust their arguments: an index out of range would write anywhere
    check_columns(location, X.shape[1])
    check_columns(nominal, X.shape[1])
    check_columns(scale, X.shape[1])
    for i in range(n):
        if not 0 <= rank[i] <= T:
            raise ValueError("sums: no such rank")
    p.link, p.n, p.T, p.m, p.d, p.k = link, n, T, m, d, k
    p.ldx, p.stride = X.strides[0] // <Py_ssize_t>sizeof(double), stride
    p.X = &X[0, 0] if d + m + k else NULL
    p.offset, p.rank, p.weight = &offset[0], &rank[0], &weight[0]
    p.location = &location[0] if d else NULL
    p.nominal = &nominal[0] if m else NULL
    p.scale = &scale[0] if k else NULL
    p.centre = &centre[0] if d + m + k else NULL
    p.factor = &factor[0] if d + m + k else NULL
    p.theta, p.gap = &theta[0], &gap[0]
    p.nu = &nu[0, 0] if m else NULL
    p.beta = &beta[0] if D else NULL
    p.zeta = &zeta[0] if k else NULL
    out.by_slot, out.diag = &by_slot[0, 0, 0], &diag[0, 0, 0, 0]
    out.off, out.value = &off[0, 0, 0, 0], 0
    out.by_core = &by_core[0, 0] if D else NULL
    out.border = &border[0, 0, 0, 0] if D else NULL
    out.core = &core[0, 0, 0] if D else NULL
    shares = Shares(&p, out, rows, scratch.shape[1], &scratch[0, 0], &value[0])
    run_parts(sum_some, &shares, S, n_threads)
