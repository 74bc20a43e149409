"""The likelihood of cumulative links: its digits, its derivatives, its symmetries.

The constants are those of tools/likelihood_constants.py.
"""

from pathlib import Path

import numpy as np
import pytest
from internals import LINKS
from numpy.testing import assert_array_equal

from ordinal._solvers import _cumulative

FILE = Path(__file__).parent / "data" / "cumulative.csv"
TABLE = np.genfromtxt(FILE, delimiter=",", names=True, dtype=None, encoding="ascii")
TERMS = "log_p", "g", "upper", "c1", "c2", "h12"
LOG_P, G, UPPER, C1, C2, H12 = range(6)


def row_terms(link, a, b, delta, n_threads=1):
    a, b, delta = (np.array(x, float) for x in np.broadcast_arrays(a, b, delta))
    out = np.full((6, a.size), np.nan)
    arrays = (x.ravel() for x in (a, b, delta))
    _cumulative.row_terms(LINKS.index(link), *arrays, out, n_threads)
    return out


@pytest.mark.parametrize("link", LINKS)
def test_values_are_right_to_the_last_digits(link):
    """Ends at up to +-700 and widths down to 2^-33 = 1.2e-10, where log P is -1e304."""
    rows = TABLE[TABLE["link"] == link]
    b, width = rows["lower"], rows["width"]
    open_below = b == -np.inf
    a = np.where(open_below, width, b + width)
    got = row_terms(link, a, b, np.where(open_below, np.inf, width))
    for name, value in zip(TERMS, got, strict=True):
        exact = rows[name]
        error = np.abs(value - exact)
        # g alone is a difference: of terms no larger than 1 or itself
        allowed = 1e-13 * np.abs(exact) + (1e-15 if name == "g" else 1e-290)
        assert np.all(error <= allowed), (name, rows[error > allowed])


@pytest.mark.parametrize("link", LINKS)
def test_both_sides_of_zero_are_each_others_mirror(link):
    """To the last bit; and the Hessian of log P is negative semidefinite."""
    mirrored = {"cloglog": "loglog", "loglog": "cloglog"}.get(link, link)
    ends = np.append(np.linspace(-40, 40, 401), [-700, 700])
    for width in (1e-12, 1e-9, 0.25, 3.0, 1e4, np.inf):
        b, a, delta = ends, ends + width, width
        here, there = row_terms(link, a, b, delta), row_terms(mirrored, -b, -a, delta)
        assert_array_equal(here[[LOG_P, C1, C2, H12]], there[[LOG_P, C2, C1, H12]])
        assert_array_equal(here[G], -there[G])
        if link != "cauchit":  # whose density is not log-concave
            assert np.isfinite(here).all()
            assert (here[[LOG_P, C1, C2]] <= 0).all()
            assert (here[[UPPER, H12]] >= 0).all()
            assert (here[UPPER] - here[G] >= -1e-15).all()  # by the lower end
