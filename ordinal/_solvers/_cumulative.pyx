"""The likelihood of cumulative link models, ordinal/linear.py, and its derivatives.

A row whose rank lies between the points b < a of the link's scale has

    P = F(a) - F(b),   a = inf for the highest rank, b = -inf for the lowest

and delta = a - b, which is given beside the ends: it knows the width of a narrow rank,
where they know it to their own rounding only. With `upper` = d log P / da > 0 and
`lower` = -d log P / db > 0, and of the second derivatives h11, h12, h22 of log P,

    g = upper - lower    c1 = h11 + h12    c2 = h12 + h22    h12 > 0

are the slope as both ends move alike, what such a move does to the slopes by either
end, and what the ends do to each other. Each is a formula of its own in which no two
numbers near each other are subtracted, so that neither a rank far out in a tail nor a
narrow one loses digits: `upper`, `lower` and h12 are of the size 1 / delta, 1 / delta
and 1 / delta^2, but g, c1 and c2 are not.
"""
from cython.parallel cimport prange
from libc.math cimport (
    M_PI, atan2, exp, expm1, fabs, fmax, fmin, isinf, log, log1p, sqrt,
)

from ._ordinal_probit cimport Interval, interval

cdef enum Link:
    LOGIT, PROBIT, CLOGLOG, LOGLOG, CAUCHIT

LINKS = ("logit", "probit", "cloglog", "loglog", "cauchit")  # by their numbers


cdef struct Terms:           # of one row
    double log_p
    double g, upper, lower
    double c1, c2, h12


cdef inline double log_of(double p, double rest) noexcept nogil:
    """log p, where p + rest = 1 and both are known to their last digits."""
    return log(p) if p < 0.5 else log1p(-rest)


cdef inline Terms logit(double a, double b, double delta) noexcept nogil:
    """F(x) = 1 / (1 + exp(-x)).

    log P = -log(1 + e^-a) - log(1 + e^b) + log(1 - e^-delta), where exponentials are
    taken of negative numbers only.
    """
    cdef Terms t
    cdef double A = exp(-fabs(a)), B = exp(-fabs(b)), E = exp(-delta)
    cdef double gap = -expm1(-delta)
    cdef double total = (1 + A) * (1 + B)
    cdef double above = (A if a > 0 else 1) / (1 + A)       # 1 - F(a)
    cdef double below = (1 if b > 0 else B) / (1 + B)       # F(b)
    t.log_p = log_of(gap / total, (A + B + A * B + E) / total)
    t.log_p = fmin(a, 0) - fmax(b, 0) + t.log_p
    t.g = above - below
    t.upper = above + E / gap
    t.lower = below + E / gap
    t.c1 = -A / ((1 + A) * (1 + A))
    t.c2 = -B / ((1 + B) * (1 + B))
    t.h12 = E / (gap * gap)
    return t


cdef inline Terms probit(double a, double b, double delta) noexcept nogil:
    """F = Phi: moments of a normal variable between b and a (`_ordinal_probit`)."""
    cdef Terms t
    cdef Interval z = interval(b, a, delta)
    t.log_p = z.log_mass
    t.g = -z.mean
    t.upper, t.lower = z.upper, z.lower
    t.c1 = -z.upper * z.above if z.upper > 0 else 0
    t.c2 = -z.lower * z.below if z.lower > 0 else 0
    t.h12 = z.upper * z.lower
    return t


cdef inline double bernoulli(double x) noexcept nogil:
    """x / (1 - exp(-x)) - 1 - x / 2 for 0 <= x <= 1/2: the sum of B_2k x^2k / (2k)!
    over k >= 1, whose first dropped term is below 2^-51 of the sum."""
    cdef double y = x * x
    return y / 12 * (1 - y / 60 * (1 - y / 42 * (1 - y / 40 * (
        1 - y * (10 / 396.) * (1 - y * (691 / 27300.) * (1 - y * (210 / 8292.)))))))


cdef inline Terms cloglog(double a, double b, double delta) noexcept nogil:
    """F(x) = 1 - exp(-e^x).

    With u = e^a, v = e^b and D = u - v, log P = -v + log(1 - e^-D), whose slopes are
    u / (e^D - 1) and -v / (1 - e^-D). Above LAST, where e^x overflows, P is 0.
    """
    cdef Terms t
    cdef double LAST = 709, TINY = 1e-290
    cdef double u = exp(fmin(a, LAST)), v = exp(fmin(b, LAST))
    cdef double share = -expm1(-delta)           # D / u
    cdef double D = u * share
    cdef double rising, falling                  # D / (e^D - 1), D / (1 - e^-D)
    cdef double rising_1, falling_1              # the same less 1
    if D < 0.5:
        falling_1 = bernoulli(D)
        rising_1 = falling_1 - 0.5 * D
        falling_1 = falling_1 + 0.5 * D
        rising, falling = 1 + rising_1, 1 + falling_1
    else:
        rising = D / expm1(D)
        falling = D / -expm1(-D)
        rising_1, falling_1 = rising - 1, falling - 1
    if D < TINY:                                 # has lost digits, or all of them
        t.log_p = a + log(share) - v
    else:
        t.log_p = log_of(-expm1(-D), exp(-D)) - v
    t.g = rising - v
    t.upper = rising / share
    t.lower = falling / expm1(delta) if D < 1 else v / -expm1(-D)
    t.c1 = -t.upper * falling_1 if t.upper > 0 else 0
    t.c2 = t.lower * rising_1
    t.h12 = t.upper * t.lower
    return t


cdef inline Terms loglog(double a, double b, double delta) noexcept nogil:
    """F(x) = exp(-e^-x), the mirror of the complementary log-log."""
    cdef Terms m = cloglog(-b, -a, delta), t
    t.log_p = m.log_p
    t.g = -m.g
    t.upper, t.lower = m.lower, m.upper
    t.c1, t.c2 = m.c2, m.c1
    t.h12 = m.h12
    return t


cdef inline double sine_less_cosine(double x) noexcept nogil:
    """sin(x) / x - cos(x) for 0 <= x <= 1: the sum of -(-x^2)^k 2k / (2k + 1)! over
    k >= 1, whose first dropped term is below 2^-51 of the sum."""
    cdef double y = x * x
    return y / 3 * (1 - y / 10 * (1 - y / 28 * (1 - y / 54 * (1 - y / 88 * (
        1 - y / 130 * (1 - y / 180 * (1 - y / 238)))))))


cdef inline Terms cauchit(double a, double b, double delta) noexcept nogil:
    """F(x) = 1/2 + atan(x) / pi.

    With alpha = atan a and beta = atan b, P is the angle alpha - beta over pi, and all
    slopes are products of sines and cosines of it and of alpha + beta.
    """
    cdef Terms t
    cdef double cos_a = 0 if isinf(a) else 1 / sqrt(1 + a * a)
    cdef double cos_b = 0 if isinf(b) else 1 / sqrt(1 + b * b)
    cdef double sin_a = 1 if isinf(a) else a * cos_a
    cdef double sin_b = -1 if isinf(b) else b * cos_b
    cdef double sine = delta * (cos_a * cos_b)   # of the angle
    if isinf(delta):
        sine = sin_a * cos_b - cos_a * sin_b     # of which one is 0
    cdef double cosine = cos_a * cos_b + sin_a * sin_b
    cdef double angle = atan2(sine, cosine)
    cdef double sine_s = sin_a * cos_b + cos_a * sin_b      # of alpha + beta
    cdef double cosine_s = cos_a * cos_b - sin_a * sin_b
    cdef double bend
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
    if link == LOGIT:
        return logit(a, b, delta)
    if link == PROBIT:
        return probit(a, b, delta)
    if link == CLOGLOG:
        return cloglog(a, b, delta)
    if link == LOGLOG:
        return loglog(a, b, delta)
    return cauchit(a, b, delta)


def row_terms(
    int link,                            # its number in LINKS
    const double[::1] a not None,        # (n,) upper ends, inf for the highest rank
    const double[::1] b not None,        # (n,) lower ends, -inf for the lowest
    const double[::1] delta not None,    # (n,) a - b > 0
    double[:, ::1] out not None,         # OUT (6, n)
    int n_threads,
):
    """Rows: log P, g, upper, c1, c2, h12."""
    cdef Py_ssize_t i, n = a.shape[0]
    cdef Terms t
    if not (b.shape[0] == delta.shape[0] == out.shape[1] == n and out.shape[0] == 6):
        raise ValueError("row_terms: inconsistent array shapes")
    if not 0 <= link < len(LINKS):
        raise ValueError("row_terms: no such link")
    for i in prange(n, nogil=True, schedule="static", num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        t = terms(link, a[i], b[i], delta[i])
        out[0, i] = t.log_p
        out[1, i] = t.g
        out[2, i] = t.upper
        out[3, i] = t.c1
        out[4, i] = t.c2
        out[5, i] = t.h12
