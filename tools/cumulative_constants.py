"""Write tests/data/cumulative.csv: the terms of a row by every link to 17 digits.

Needs mpmath. The derivatives of log P are those of F(a) - F(b) as the calculus has
them, in 1200 digits, which leaves the cancellations in them harmless:

    python tools/cumulative_constants.py > tests/data/cumulative.csv
"""

from mpmath import atan, erfc, exp, inf, log, mp, mpf, pi, sqrt

mp.dps = 1200
COLUMNS = "link", "lower", "width", "log_p", "g", "upper", "c1", "c2", "h12"


def logistic(x):
    """F - 1 and F, of which one has its digits everywhere; the density, its slope."""
    below, above = 1 / (1 + exp(-x)), 1 / (1 + exp(x))
    return -above, below, below * above, below * above * (above - below)


def normal(x):
    tail = erfc(abs(x) / sqrt(mpf(2))) / 2
    above, below = (tail, 1 - tail) if x > 0 else (1 - tail, tail)
    f = exp(-x * x / 2) / sqrt(2 * pi)
    return -above, below, f, -x * f


def gompertz(x):
    tail = exp(-exp(x))
    f = exp(x) * tail
    return -tail, 1 - tail, f, f * (1 - exp(x))


def gumbel(x):
    minus_tail, below, f, slope = gompertz(-x)
    return -below, -minus_tail, f, -slope


def cauchy(x):
    f, angle = 1 / (pi * (1 + x * x)), atan(x) / pi
    return angle - mpf(1) / 2, angle + mpf(1) / 2, f, -2 * x / (1 + x * x) * f


LINKS = {
    "logit": logistic,
    "probit": normal,
    "cloglog": gompertz,
    "loglog": gumbel,
    "cauchit": cauchy,
}
ENDS = {-inf: (mpf(-1), mpf(0), mpf(0), mpf(0)), inf: (mpf(0), mpf(1), mpf(0), mpf(0))}


def row(F, b, a):
    at_b, at_a = (ENDS[x] if abs(x) == inf else F(x) for x in (b, a))
    p = max(at_a[0] - at_b[0], at_a[1] - at_b[1])  # the other one may have lost all
    upper, lower = at_a[2] / p, at_b[2] / p
    h12 = upper * lower
    c1 = at_a[3] / p - upper * upper + h12
    c2 = h12 - at_b[3] / p - lower * lower
    return log(p), upper - lower, upper, c1, c2, h12


def digits(x):
    return mp.nstr(x, 17) if abs(x) > 1e-300 else "0"


def main():
    print(",".join(COLUMNS))
    ends = [mpf(x) for x in (-700, -40, -9, -2.5, -0.5)]
    ends += [mpf(0)] + [-end for end in reversed(ends)]
    widths = [mpf(2) ** k for k in (-33, -10, -2, 0, 3, 10)] + [inf]
    for link, F in LINKS.items():
        cases = [(b, width) for b in ends for width in widths]
        cases += [(-inf, a) for a in ends]  # without a lower end, the width is a
        for b, width in cases:
            values = row(F, b, b + width if b > -inf else width)
            print(",".join([link, *map(digits, (b, width, *values))]))


if __name__ == "__main__":
    main()
