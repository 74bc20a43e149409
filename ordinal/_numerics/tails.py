"""Tail probabilities and quantiles for tests and intervals, without SciPy.

Degrees of freedom are integers. The normal tail is math.erfc.
"""

import math

import numpy as np

_LATTICE = 4093  # points of a lattice rule, whose error is then below 5e-4
_OWN = 1e-9  # added to the variances, because correlations may be singular


def chi2_tail(x: float, df: int) -> float:
    """Return P(chi-square with df degrees of freedom > x) = Q(df / 2, x / 2), x >= 0.

    By Q(a + 1, t) = Q(a, t) + t^a exp(-t) / Gamma(a + 1), a sum of positive terms,
    from Q(1/2, t) = erfc(sqrt t) or Q(1, t) = exp(-t) (DLMF 8.8.6).
    """
    t = x / 2
    if t == 0:
        return 1.0
    a, tail = (0.5, math.erfc(math.sqrt(t))) if df % 2 else (1.0, math.exp(-t))
    while a < df / 2:
        tail += math.exp(a * math.log(t) - t - math.lgamma(a + 1))
        a += 1
    return min(tail, 1.0)


def f_tail(x: float, df1: int, df2: int) -> float:
    """Return P(F with (df1, df2) degrees of freedom > x) = I_z(df2 / 2, df1 / 2), x >=
    0, where z = df2 / (df2 + df1 x).
    """
    total = df2 + df1 * x
    return _beta(df2 / 2, df1 / 2, df2 / total, df1 * x / total)


def _beta(a: float, b: float, z: float, y: float) -> float:
    """Return the incomplete beta function I_z(a, b), y = 1 - z (DLMF 8.17.22)."""
    if z == 0 or y == 0:
        return float(y == 0)
    if z > (a + 1) / (a + b + 2):  # there the continued fraction converges slowly
        return 1 - _beta(b, a, y, z)
    fraction = 1.0
    # From the innermost fraction outwards. 50 terms suffice for a + b = 50 000.
    for m in range(100, -1, -1):
        # partial numerators d_{2m+2} and d_{2m+1}
        even = (m + 1) * (b - m - 1) * z / ((a + 2 * m + 1) * (a + 2 * m + 2))
        odd = -(a + m) * (a + b + m) * z / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1 + odd / (1 + even / fraction)
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(a * math.log(z) + b * math.log(y) + log_scale) / (a * fraction)


def range_quantile(p: float, k: int) -> float:
    """Return the p-quantile of the range of k standard normal variables, 0 < p < 1.

    The studentized range with infinitely many degrees of freedom, by bisection.
    """
    lo, hi = 0.0, 100.0
    while lo < (q := (lo + hi) / 2) < hi:
        if 1 - range_tail(q, k) < p:
            lo = q
        else:
            hi = q
    return q


def range_tail(q: float, k: int) -> float:
    """Return P(range of k standard normal variables > q), q >= 0.

        k int phi(z) ((1 - Phi(z))^(k-1) - (Phi(z + q) - Phi(z))^(k-1)) dz

    integrated over the least variable z. The trapezoidal rule is exact to rounding,
    because the integrand is analytic and vanishes at both ends.
    """
    z = np.linspace(-9, 9, 400)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    above, far = normal_cdf(-z), normal_cdf(-z - q)
    # The difference of powers, without cancellation where `far` is small.
    share = np.where(above > 0, far / np.where(above > 0, above, 1), 1.0)
    with np.errstate(divide="ignore"):
        lost = -np.expm1((k - 1) * np.log1p(-share))
    return float(k * density @ (above ** (k - 1) * lost))


def largest_quantile(level: float, R: np.ndarray) -> float:
    """Return c with P(max |z_i| < c) = level for normal z with correlations R, (p, p).

    Separation of variables turns the probability into an integral over p - 1 uniform
    variables, which is computed by a lattice rule (A. Genz, "Numerical computation of
    multivariate normal probabilities", Journal of Computational and Graphical
    Statistics 1:141-149, 1992). c is found by the secant method, and has about three
    correct digits, two if R is singular.
    """
    p = len(R)
    # Variables that are determined by others get a standard deviation of 3e-5.
    L = np.linalg.cholesky(R + _OWN * np.eye(p))
    steps = np.sqrt(_primes(max(p - 1, 1)))
    place = np.arange(1, _LATTICE + 1)[:, None] * steps
    u = np.abs(2 * (place % 1) - 1)  # makes the integrand periodic: faster convergence

    def inside(c: float) -> float:
        share, y = np.ones(_LATTICE), np.zeros((_LATTICE, p))
        for i in range(p):
            shift = y[:, :i] @ L[i, :i]
            low, high = (normal_cdf((e - shift) / L[i, i]) for e in (-c, c))
            share *= high - low
            if i < p - 1:
                at = low + u[:, i] * (high - low)
                y[:, i] = normal_quantile(np.clip(at, 1e-300, 1 - 1e-16))
        return float(share.mean())

    # c lies between its values for one variable and for p independent ones (Sidak).
    a, b = normal_margin(level), normal_margin(level ** (1 / p))
    if p == 1:
        return a
    fa, fb = inside(a) - level, inside(b) - level
    for _ in range(20):
        if abs(fb) < 1e-7 or fa == fb:
            break
        a, b, fa = b, b - fb * (b - a) / (fb - fa), fb
        fb = inside(b) - level
    return b


def _primes(k: int) -> np.ndarray:
    """Return the first k prime numbers."""
    found: list[int] = []
    n = 2
    while len(found) < k:
        if all(n % q for q in found):
            found.append(n)
        n += 1
    return np.array(found, dtype=float)


def normal_cdf(x: np.ndarray) -> np.ndarray:
    """Return the normal distribution function Phi of every entry."""
    values = [math.erfc(-t) / 2 for t in (x / math.sqrt(2)).ravel().tolist()]
    return np.array(values).reshape(x.shape)


def normal_quantile(p: np.ndarray) -> np.ndarray:
    """Return the inverse of `normal_cdf` of every entry, 0 < p < 1."""
    from statistics import NormalDist  # slow to import

    values = [NormalDist().inv_cdf(v) for v in p.ravel().tolist()]
    return np.array(values).reshape(p.shape)


def normal_two_sided(z: np.ndarray) -> np.ndarray:
    """Return P(|standard normal| > |z|) of every entry, without cancellation."""
    tails = [math.erfc(abs(t)) for t in (z / math.sqrt(2)).ravel().tolist()]
    return np.array(tails).reshape(z.shape)


def normal_margin(level: float) -> float:
    """Return z with P(|standard normal| < z) = level, 0 < level < 1."""
    from statistics import NormalDist  # slow to import

    return -NormalDist().inv_cdf((1 - level) / 2)
