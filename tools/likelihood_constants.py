"""Write the log likelihood of a row and its derivatives to 17 digits, for two tests.

Needs mpmath, which differentiates the likelihood as it is defined, in so many digits
that no cancellation matters:

    python tools/likelihood_constants.py cumulative > tests/data/cumulative.csv
    python tools/likelihood_constants.py ordinal_probit > tests/data/ordinal_probit.csv
"""

import sys
from functools import partial
from itertools import product

from mpmath import inf, mp, mpf

LINKS = {  # the distribution and its complement, each with all digits in its tail
    "logit": (lambda x: 1 / (1 + mp.exp(-x)), lambda x: 1 / (1 + mp.exp(x))),
    "probit": (mp.ncdf, lambda x: mp.ncdf(-x)),
    "cloglog": (lambda x: -mp.expm1(-mp.exp(x)), lambda x: mp.exp(-mp.exp(x))),
    "loglog": (lambda x: mp.exp(-mp.exp(-x)), lambda x: -mp.expm1(-mp.exp(-x))),
    "cauchit": (lambda x: 0.5 + mp.atan(x) / mp.pi, lambda x: 0.5 - mp.atan(x) / mp.pi),
}


def log_probability(link, lower, upper):
    """Return the log of the probability of an interval, whose ends may be infinite."""
    below, above = LINKS[link]
    inside = below(upper) - below(lower)
    if lower + upper > 0:
        inside = above(lower) - above(upper)
    return mp.log(inside) if inside < 0.5 else mp.log1p(-below(lower) - above(upper))


def cumulative():
    """Yield the rows of the test of cumulative links: derivatives by both ends."""
    mp.dps = 350  # terms of 1e19 cancel to 1e-304
    yield "link", "lower", "width", "log_p", "g", "upper", "c1", "c2", "h12"
    ends = [mpf(x) for x in (-700, -40, -9, -2.5, -0.5)]
    ends += [mpf(0)] + [-end for end in reversed(ends)]
    widths = [mpf(2) ** k for k in (-33, -10, -2, 0, 3, 10)] + [inf]
    cases = [*product(ends, widths), *((-inf, end) for end in ends)]
    for link, (b, width) in product(LINKS, cases):
        a = b + width if b > -inf else width

        def log_p(at_b, at_a, link=link, b=b, a=a):
            return log_probability(link, b + at_b, a + at_a)

        by = partial(mp.diff, log_p, (0, 0))
        h12 = by((1, 1))
        found = by((1, 0)) + by((0, 1)), by((0, 1)), by((0, 2)) + h12, by((2, 0)) + h12
        yield link, b, width, log_p(0, 0), *found, h12


def ordinal_probit():
    """Yield the rows of the test of Gaussian processes: derivatives by the mean h, the
    upper threshold u and the variance v. The last three are of w = -log_p_hh."""
    mp.dps = 350  # terms of 1 cancel to 1e-264
    yield "lower", "width", "log_p", "g", "w", "log_p_u", "log_p_v", "g_u", "g_v", \
        "w_h", "w_u", "w_v"  # fmt: skip
    ends = [mpf(x) for x in (-1000, -200, -37.5, -9, -8.5, -3, -1.25, -1, -0.5, 0)]
    ends += [-end for end in reversed(ends[:-1])]
    widths = [mpf(2) ** k for k in (-33, -20, -10, -5, -2, 0, 1, 3, 5, 10)] + [inf]
    for b, width in [*product(ends, widths), *((-inf, end) for end in ends)]:
        a = b + width if b > -inf else width

        def log_p(h, u, v, b=b, a=a):
            spread = mp.sqrt(v)
            return log_probability("probit", (b - h) / spread, (a + u - h) / spread)

        by = partial(mp.diff, log_p, (0, 0, 1))
        first = by((1, 0, 0)), -by((2, 0, 0)), by((0, 1, 0)), by((0, 0, 1))
        mixed = by((1, 1, 0)), by((1, 0, 1))
        of_w = -by((3, 0, 0)), -by((2, 1, 0)), -by((2, 0, 1))
        yield b, width, log_p(0, 0, mpf(1)), *first, *mixed, *of_w


def shown(x):
    return x if isinstance(x, str) else mp.nstr(x, 17) if abs(x) > 1e-308 else "0"


if __name__ == "__main__":
    for row in {f.__name__: f for f in (cumulative, ordinal_probit)}[sys.argv[1]]():
        print(*map(shown, row), sep=",", flush=True)
