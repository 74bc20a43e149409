"""Third derivatives of the likelihood of cumulative link models.

With l = log(F(a) - F(b)) and S = d/da + d/db, the derivative along a joint move of both
ends, the third derivatives are

    t1 = d(S S l)/da = S S (dl/da),    t2 = d(S S l)/db = S S (dl/db).

The gradient of the Laplace approximation needs them besides the terms of `_cumulative`,
because its curvature S S l depends on the ends of a row. At an infinite end they are 0.
"""
from libc.math cimport atan2, exp, expm1, fmin, isinf, sqrt

from ._ordinal_probit cimport Interval, interval

cdef enum Link:              # the order of LINKS in `_cumulative`
    LOGIT, PROBIT, CLOGLOG, LOGLOG, CAUCHIT


cdef struct Thirds:
    double t1, t2


cdef inline double slope_of_logistic(double x) noexcept nogil:
    """Return the derivative of the logistic density."""
    cdef double e = exp(x if x < 0 else -x)      # which does not overflow
    cdef double tail = e / (1 + e)
    cdef double slope = tail * (1 - tail) * (1 - 2 * tail)
    return slope if x < 0 else -slope


cdef inline Thirds logit(double a, double b) noexcept nogil:
    """Return t1 and t2 from S S l = -f(a) - f(b), with f the density."""
    cdef Thirds t
    t.t1 = 0 if isinf(a) else -slope_of_logistic(a)
    t.t2 = 0 if isinf(b) else -slope_of_logistic(b)
    return t


cdef inline Thirds probit(double a, double b, double delta) noexcept nogil:
    """Return t1 and t2 from S (dl/da) = -above dl/da and S above = variance; the lower
    end is the mirror image."""
    cdef Thirds t
    cdef Interval z = interval(b, a, delta)
    t.t1 = z.upper * (z.above * z.above - z.variance) if z.upper > 0 else 0
    t.t2 = -z.lower * (z.below * z.below - z.variance) if z.lower > 0 else 0
    return t


cdef inline Thirds cloglog(double a, double b, double delta) noexcept nogil:
    """Return t1 and t2 from S l = r(D) - v, where u = e^a, v = e^b, D = u - v and
    r(D) = D / (e^D - 1)."""
    cdef Thirds t
    cdef double LAST = 709
    cdef double u = exp(fmin(a, LAST)), v = exp(fmin(b, LAST))
    cdef double D = u * -expm1(-delta), y = D * D
    cdef double e, inner, first, second          # derivatives of r
    if D < 0.5:              # series of B_2k D^2k / (2k)!, below 1e-13 beyond k = 7
        first = -0.5 + D * (1 / 6. - y * (1 / 180. - y * (1 / 5040. - y * (
            1 / 151200. - y * (1 / 4790016. - y * (
                691 * 12 / 1307674368000. - y * 14 / 74724249600.))))))
        second = 1 / 6. - y * (1 / 60. - y * (1 / 1008. - y * (
            7 / 151200. - y * (9 / 4790016. - y * (
                691 * 132 / 1307674368000. - y * 182 / 74724249600.)))))
    else:
        e = expm1(D)
        inner = 1 / D - 1 - 1 / e
        first = D / e * inner
        second = first * inner + D / e * ((1 + 1 / e) / e - 1 / y)
    t.t1 = u * (first + D * second) if first != 0 else 0
    t.t2 = -v * (1 + first + (D * second if first != 0 else 0))
    return t


cdef inline Thirds cauchit(double a, double b, double delta) noexcept nogil:
    """Return t1 and t2 from S s = 1 + cos s cos t and S t = -sin s sin t, where s is
    the sum of the angles atan a and atan b, and t their difference; m1 and m2 are
    S log(dl/da) and S log(-dl/db)."""
    cdef Thirds out
    cdef double cos_a = 0 if isinf(a) else 1 / sqrt(1 + a * a)
    cdef double cos_b = 0 if isinf(b) else 1 / sqrt(1 + b * b)
    cdef double sin_a = 1 if isinf(a) else a * cos_a
    cdef double sin_b = -1 if isinf(b) else b * cos_b
    cdef double sine = delta * (cos_a * cos_b)
    if isinf(delta):
        sine = sin_a * cos_b - cos_a * sin_b
    cdef double cosine = cos_a * cos_b + sin_a * sin_b
    cdef double t = atan2(sine, cosine)
    cdef double sine_s = sin_a * cos_b + cos_a * sin_b
    cdef double cosine_s = cos_a * cos_b - sin_a * sin_b
    cdef double k, m1, m2, move, bend, moved, y = t * t
    if t < 0.5:              # series of sin(t) / t - cos(t)
        k = y / 3 * (1 - y / 10 * (1 - y / 28 * (1 - y / 54 * (1 - y / 88 * (
            1 - y / 130)))))
    else:
        k = sine / t - cosine
    move = 1 + cosine_s * cosine
    bend = sine_s * k
    m1, m2 = bend - cosine_s * sine, bend + cosine_s * sine
    moved = cosine_s * move * k - sine_s * sine_s * sine * (sine - k / t)
    bend = -sine_s * sine * (1 + 2 * cosine_s * cosine)
    out.t1 = cos_a * cos_a / t * (m1 * m1 + moved - bend)
    out.t2 = -cos_b * cos_b / t * (m2 * m2 + moved + bend)
    return out


cdef inline Thirds thirds(int link, double a, double b, double delta) noexcept nogil:
    cdef Thirds t, m
    if link == LOGIT:
        return logit(a, b)
    if link == PROBIT:
        return probit(a, b, delta)
    if link == CLOGLOG:
        return cloglog(a, b, delta)
    if link == LOGLOG:       # the mirror image of cloglog
        m = cloglog(-b, -a, delta)
        t.t1, t.t2 = -m.t2, -m.t1
        return t
    return cauchit(a, b, delta)


cdef void thirds_of(
    int link, const double* a, const double* b, const double* delta, Py_ssize_t n,
    double* out, Py_ssize_t stride,
) noexcept nogil:
    """Compute t1 and t2 of n rows into two rows of `out`, `stride` doubles apart."""
    cdef Py_ssize_t i
    cdef Thirds t
    for i in range(n):
        t = thirds(link, a[i], b[i], delta[i])
        out[i] = t.t1
        out[stride + i] = t.t2


def row_thirds(
    int link,                            # its number in LINKS of `_cumulative`
    const double[::1] a not None,        # (n,) upper ends, inf for the highest rank
    const double[::1] b not None,        # (n,) lower ends, -inf for the lowest
    const double[::1] delta not None,    # (n,) a - b > 0
    double[:, ::1] out not None,         # OUT (2, n)
):
    """Compute t1 and t2 of every row: the rows of `out`."""
    cdef Py_ssize_t n = a.shape[0]
    if not (b.shape[0] == delta.shape[0] == out.shape[1] == n and out.shape[0] == 2):
        raise ValueError("row_thirds: inconsistent array shapes")
    if not 0 <= link <= CAUCHIT:
        raise ValueError("row_thirds: no such link")
    if n:
        thirds_of(link, &a[0], &b[0], &delta[0], n, &out[0, 0], n)
