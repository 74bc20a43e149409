"""Tail probabilities and quantiles for tests and intervals, without SciPy.

Degrees of freedom are integers. The normal tail is math.erfc.
"""

import math

import numpy as np

from .rows import strips

_LATTICE = 131_071  # points of a lattice rule, whose error is then below 5e-4
_ENTRIES = 2**20  # entries of an array of some points
_SINGULAR = 1e-5  # singular value that counts as 0, relative to the largest


def chi2_tail(x: float, df: int) -> float:
    """Return P(chi-square with df degrees of freedom > x), x >= 0."""
    return float(chi2_tails(np.array([x]), df)[0])


def chi2_tails(x: np.ndarray, df: int) -> np.ndarray:
    """Return P(chi-square with df degrees of freedom > x) = Q(df / 2, x / 2) of every
    entry, x >= 0.

    By Q(a + 1, t) = Q(a, t) + t^a exp(-t) / Gamma(a + 1), a sum of positive terms,
    from Q(1/2, t) = erfc(sqrt t) or Q(1, t) = exp(-t) (DLMF 8.8.6).
    """
    t = x / 2
    a, tail = (0.5, normal_two_sided(np.sqrt(x))) if df % 2 else (1.0, np.exp(-t))
    with np.errstate(divide="ignore"):
        log = np.log(t)
    while a < df / 2:
        tail = tail + np.exp(a * log - t - math.lgamma(a + 1))
        a += 1
    return np.asarray(np.minimum(tail, 1.0))


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


def largest_quantile(level: float, rows: np.ndarray, V: np.ndarray) -> float:
    """Return c with P(max |z_i| < c) = level for the z values of rows'x, x ~ N(0, V).

    With the correlations A A' of these p values, of rank q, z is r A v for a direction
    v, uniform on the sphere, and an independent r, whose square is chi-square with q
    degrees of freedom. So P is the mean over v of P(r < c / max |A v|). A lattice rule
    computes it, and the secant method finds c, which has about three correct digits.

    Parameters
    ----------
    level : float
    rows : (p, d) array
        None of them has variance 0.
    V : (d, d) array
    """
    error = np.sqrt(np.diagonal(V))
    unit = np.where(error > 0, error, 1.0)
    size, axes = np.linalg.eigh(V / np.outer(unit, unit))
    A = (rows * unit) @ (axes * np.sqrt(np.maximum(size, 0.0)))
    A /= np.sqrt((A * A).sum(axis=1, keepdims=True))
    left, size, _ = np.linalg.svd(A, full_matrices=False)
    held = size > _SINGULAR * size[0]
    A = left[:, held] * size[held]
    p, q = A.shape
    # c lies between its values for one variable and for p independent ones (Sidak).
    a, b = normal_margin(level), normal_margin(level ** (1 / p))
    if q == 1:
        return a
    steps = np.sqrt(_primes(q + q % 2))
    largest = np.empty(_LATTICE)
    for some in strips(_LATTICE, max(1, _ENTRIES // p)):
        place = np.arange(some.start + 1, some.stop + 1)[:, None] * steps % 1
        first, second = np.split(place, 2, axis=1)
        # Two normal variables of two uniform ones (Box, Muller 1958), of which the
        # first is folded, so that the integrand is periodic.
        radius = np.sqrt(-2 * np.log(np.maximum(np.abs(2 * first - 1), 1e-300)))
        angle = 2 * math.pi * second
        v = np.hstack([radius * np.cos(angle), radius * np.sin(angle)])[:, :q]
        length = np.sqrt((v * v).sum(axis=1))
        z = v @ A.T
        largest[some] = np.maximum(z.max(axis=1), -z.min(axis=1)) / length

    def inside(c: float) -> float:
        return 1 - float(chi2_tails((c / largest) ** 2, q).mean())

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
