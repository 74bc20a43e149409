"""Write tests/data/ordinal_probit.csv: the likelihood and its derivatives to 17 digits.

Needs mpmath. The formulas are those of Chu and Ghahramani's Appendix A as printed, in
400 digits, which leaves the cancellations in them harmless:

    python tools/ordinal_probit_constants.py > tests/data/ordinal_probit.csv
"""

from mpmath import erfc, exp, inf, log, mp, mpf, pi, sqrt

mp.dps = 400
COLUMNS = (
    "lower", "width", "log_p", "g", "w", "log_p_u", "log_p_v", "g_u", "g_v",
    "w_h", "w_u", "w_v",
)  # fmt: skip


def mass(z2, z1):
    """Phi(z1) - Phi(z2), from the tail in which both are small."""
    if z1 + z2 < 0:
        z1, z2 = -z2, -z1
    upper = 0 if z1 == inf else erfc(z1 / sqrt(mpf(2)))
    return (erfc(z2 / sqrt(mpf(2))) - upper) / 2


def density_times(z, power):
    return mpf(0) if abs(z) == inf else z**power * exp(-z * z / 2) / sqrt(2 * pi)


def row(z2, width):
    """Evaluate at h = 0 and variance 1, where z1 and z2 are the thresholds."""
    z1 = z2 + width if z2 > -inf else width  # a rank without lower end: width is z1
    p = mass(z2, z1)
    s = [density_times(z1, k) / p for k in range(4)]
    v = [s[k] - density_times(z2, k) / p for k in range(4)]
    w = v[0] ** 2 + v[1]
    # by sigma, at sigma = 1; by the variance it is half of that
    w_sigma = -2 * w + 2 * v[0] * v[2] + 2 * v[0] ** 2 * v[1] - v[1] + v[1] ** 2 + v[3]
    return (
        log(p),
        -v[0],
        w,
        s[0],
        -v[1] / 2,
        v[0] * s[0] + s[1],
        (v[0] - v[0] * v[1] - v[2]) / 2,
        2 * v[0] ** 3 + 3 * v[0] * v[1] + v[2] - v[0],
        s[0] - 2 * v[0] * s[1] - 2 * v[0] ** 2 * s[0] - s[2] - v[1] * s[0],
        w_sigma / 2,
    )


def main():
    print(",".join(COLUMNS))
    ends = [mpf(x) for x in (-1000, -200, -37.5, -9, -8.5, -3, -1.25, -1, -0.5, 0)]
    ends += [-end for end in reversed(ends[:-1])]
    widths = [mpf(2) ** k for k in (-33, -20, -10, -5, -2, 0, 1, 3, 5, 10)] + [inf]
    cases = [(z2, width) for z2 in ends for width in widths]
    cases += [(-inf, z1) for z1 in ends]
    for z2, width in cases:
        print(",".join(mp.nstr(x, 17) for x in (z2, width, *row(z2, width))))


if __name__ == "__main__":
    main()
