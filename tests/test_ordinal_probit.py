"""The ordinal probit likelihood: its digits, its derivatives, the sites made from it.

The constants are those of tools/likelihood_constants.py.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal_log_mass

from ordinal._solvers import _ordinal_probit

TABLE = np.genfromtxt(
    Path(__file__).parent / "data" / "ordinal_probit.csv", delimiter=",", names=True
)


def call(kernel, rows, h, v, rank, b, gap, n_threads=1):
    h, v = np.atleast_1d(h).astype(float), np.atleast_1d(v).astype(float)
    rank = np.broadcast_to(rank, h.shape).astype(np.int32)
    out = np.full((rows, h.size), np.nan)
    kernel(h, np.broadcast_to(v, h.shape).copy(), rank, b, gap, out, n_threads)
    return out


def loss(*args, **kwargs):
    return call(_ordinal_probit.loss, 3, *args, **kwargs)


def derivatives(*args, **kwargs):
    return call(_ordinal_probit.derivatives, 7, *args, **kwargs)


def gaps(b):
    return np.concatenate([[np.inf], np.diff(b), [np.inf]])


def interval(lower, width):
    """(rank, b, gap) with [lower, lower + width] of one rank; `width` is known better
    than the difference of the ends. A rank without lower end has `width` for upper."""
    if lower == -np.inf:
        return 0, np.array([width]), np.full(2, np.inf)
    if width == np.inf:
        return 1, np.array([lower]), np.full(2, np.inf)
    return 1, np.array([lower, lower + width]), np.array([np.inf, width, np.inf])


def table(s):
    """Return what the kernels give for the rows of the table, at noise s; and the
    table."""
    got, expected = [], []
    for row in TABLE:
        lower, width = float(row["lower"]), float(row["width"])
        rank, b, gap = interval(lower * s, width * s)
        args = 0.0, s * s, rank, b, gap
        got.append(np.concatenate([loss(*args), derivatives(*args)])[:, 0])
        expected.append([row[name] for name in TABLE.dtype.names[2:]])
    return np.array(got).T, np.array(expected).T


@pytest.mark.parametrize("s", [1.0, 0.25, 1024.0])
def test_values_are_right_to_the_last_digits(s):
    """|z| up to 1000 and widths down to 2^-33 = 1.2e-10, in units of s, both sides."""
    got, exact = table(s)
    assert np.isfinite(got).all()
    log_p, g, w, log_p_u, log_p_v, g_u, g_v, w_h, w_u, w_v = exact
    # homogeneous in h, b and s, of these degrees
    degree = np.array([0, 1, 2, 1, 2, 2, 3, 3, 3, 4])
    got *= s ** degree[:, None]
    for i, expected in enumerate((log_p, g, w, log_p_u)):
        assert_allclose(got[i], expected, rtol=1e-13, atol=1e-15)
    # differences of terms of this size
    of_log_p_v = g**2 + w
    variance = TABLE["width"] ** 2 / 12  # of t: no more than that
    variance = np.minimum(np.where(TABLE["lower"] == -np.inf, np.inf, variance), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_w_u = np.where(log_p_u > 0, g_u**2 / log_p_u, 0) + log_p_u * variance
    for i, expected, size in [
        (4, log_p_v, of_log_p_v),
        (5, g_u, 0),
        (6, g_v, np.abs(g) + w),
        (7, w_h, variance**1.5),
        (8, w_u, of_w_u),
        (9, w_v, w),
    ]:
        error = np.abs(got[i] - expected)
        allowed = 1e-13 * (np.abs(expected) + size) + 1e-300
        assert np.all(error <= allowed), (i, TABLE[error > allowed])


@st.composite
def rows(draw, z=1e3):
    """(h, v, rank, b, gap): |z| <= z, gaps of 1e-10 and more, in units of the noise."""
    s = 10 ** draw(st.floats(-3, 3))
    widths = st.floats(-10, 2).map(lambda e: 10**e)
    gap = np.array(draw(st.lists(widths, max_size=3))) * s
    b = draw(st.floats(-z, z)) * s + np.append(0, np.cumsum(gap))
    rank = draw(st.integers(0, b.size))
    h = draw(st.floats(-z, z)) * s if draw(st.booleans()) else 0.0
    return h, s * s, rank, b, np.concatenate([[np.inf], gap, [np.inf]])


@given(rows())
def test_everything_is_finite_and_within_its_bounds(row):
    log_P, g, w = loss(*row)[:, 0]
    d = derivatives(*row)[:, 0]
    v = row[1]
    assert np.isfinite([log_P, g, w, *d]).all()
    assert log_P <= 0
    assert 0 <= w <= (1 + 1e-12) / v  # (7) lies between 0 and 1 / sigma^2
    assert d[0] >= 0  # more room is more probable
    assert d[2] >= 0
    if row[2] == row[3].size:
        assert_array_equal(d[[0, 2, 5]], 0)  # the last rank has no upper threshold


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8),
    st.lists(st.floats(-10, 3).map(lambda e: 10**e), max_size=6),
    st.floats(-3, 3),
)
def test_probabilities_of_a_row_sum_to_one(means, widths, log_v):
    b = -1.0 + np.append(0, np.cumsum(widths))
    gap = np.concatenate([[np.inf], widths, [np.inf]])
    mean, v = np.array(means), np.full(len(means), 10**log_v)
    out = np.full((mean.size, b.size + 1), np.nan)
    _ordinal_probit.log_probability(mean, v, b, gap, out, 1)
    assert np.all(out <= 0)
    assert_allclose(np.exp(out).sum(axis=1), 1, rtol=0, atol=1e-12)
    z = (np.concatenate([[-np.inf], b, [np.inf]]) - mean[:, None]) / np.sqrt(v)[0]
    expected = normal_log_mass(z[:, :-1], z[:, 1:])
    wide = np.broadcast_to(gap > 1e-2 * np.sqrt(v[0]), out.shape)
    near = wide & (np.abs(expected) < 50)
    assert_allclose(out[near], expected[near], rtol=1e-9, atol=1e-12)


def sweep(h, A, p, e, v, rank, b, gap, step=1.0, weight=1.0):
    """A sweep of one row with posterior N(h, A) and site (p, e = p m)."""
    site = np.array([[p], [e]], dtype=float)
    out = np.full((5, 1), np.nan)
    one = np.array([1 - A * p])
    args = np.array([h]), np.array([A]), one, np.array([e - p * h]), np.array([v])
    rank = np.array([rank], np.int32)
    _ordinal_probit.sites(*args, rank, b, gap, site, out, step, 1)
    return site[:, 0], out[:, 0]


cavities = st.tuples(
    st.floats(-8, 8),  # mean
    st.floats(-3, 1.5).map(lambda x: 10**x),  # variance
    st.floats(-3, 1).map(lambda x: 10**x),  # p times that
    st.floats(-5, 5),  # m
)


def posterior(cavity, var, p, m):
    A = var / (1 + var * p)
    return A * (cavity / var + p * m), A


@given(cavities, rows(z=8))
def test_a_site_matches_the_moments_of_the_tilted_distribution(point, row):
    """Cavity times P, by quadrature: its mass, mean and variance are those of the
    cavity times the new site."""
    cavity, var, share, m = point
    _, v, rank, b, gap = row
    p = share / var
    h, A = posterior(cavity, var, p, m)
    (new, e), out = sweep(h, A, p, p * m, v, rank, b, gap)
    t = np.linspace(-14, 14, 3_001)
    f = cavity + np.sqrt(var) * t
    with np.errstate(divide="ignore", invalid="ignore"):
        log_P = loss(f, v, rank, b, gap)[0]
    log_density = -0.5 * t**2 + log_P
    top = log_density.max()
    density = np.exp(log_density - top)
    mass, mean = density.sum(), density @ f / density.sum()
    spread = density @ (f - mean) ** 2 / mass
    narrow = min(v, spread) < 1e-3 * var
    if narrow or density[[0, -1]].max() > 1e-12:
        return  # the grid does not see it
    log_Z = top + np.log(mass * (t[1] - t[0]) / np.sqrt(2 * np.pi))
    got_A = var / (1 + var * new)
    assert_allclose(got_A, spread, rtol=1e-6)
    got_h = got_A * (cavity / var + e)
    assert_allclose(got_h, mean, rtol=1e-6, atol=1e-6 * np.sqrt(spread))
    # of N(f; cavity, var) exp(p m f - p f^2 / 2)
    log_site = 0.5 * (h**2 / A - cavity**2 / var - np.log1p(var * p))
    size = 1 + abs(log_Z) + p * m * m + cavity**2 / var
    assert_allclose(out[0], log_Z - log_site, atol=1e-8 * size)
    # the distance of the old posterior, in its own units
    off = max(abs(mean - h) / np.sqrt(A), abs(spread / A - 1))
    assert_allclose(out[4], off, rtol=1e-5, atol=1e-6)


@given(cavities, rows(z=30))
def test_a_site_depends_on_the_cavity_alone(point, row):
    """Whatever the old site was; and its derivatives are those of log Z."""
    cavity, var, share, m = point
    _, v, rank, b, gap = row
    fresh, out = sweep(cavity, var, 0.0, 0.0, v, rank, b, gap)
    log_Z, g, _ = loss(cavity, v + var, rank, b, gap)[:, 0]
    d = derivatives(cavity, v + var, rank, b, gap)[:, 0]
    assert_allclose(out[:4], [log_Z, g, d[0], d[1]], rtol=1e-12)
    assert 0 <= fresh[0] <= (1 + 1e-9) / v  # log-concave: a site is never negative
    p = share / var
    h, A = posterior(cavity, var, p, m)
    again, other = sweep(h, A, p, p * m, v, rank, b, gap)
    size = 1 + abs(m) / np.sqrt(var) + abs(cavity) / np.sqrt(var)
    assert_allclose(again[0], fresh[0], rtol=1e-8 * size, atol=1e-9 * size / v)
    assert_allclose(other[1:4], out[1:4], rtol=1e-7 * size, atol=1e-7 * size / v)


@given(cavities, rows(z=30), st.floats(0.05, 1))
def test_a_damped_step_goes_part_of_the_way(point, row, step):
    cavity, var, share, m = point
    p = share / var
    h, A = posterior(cavity, var, p, m)
    before = np.array([p, p * m])
    whole, out = sweep(h, A, *before, *row[1:])
    part, other = sweep(h, A, *before, *row[1:], step=step)
    expected = before + step * (whole - before)
    assert_allclose(part, expected, atol=1e-14 * np.abs([before, whole]).max())
    assert_array_equal(other, out)


def test_a_latent_value_that_is_known_has_no_distance():
    """A row of zeros under a linear kernel: f is 0, whatever its rank."""
    b = np.array([0.5, 1.0])
    site, out = sweep(0.0, 0.0, 0.0, 0.0, 1.0, 1, b, gaps(b))
    assert out[4] == 0
    log_P, g, w = loss(0.0, 1.0, 1, b, gaps(b))[:, 0]
    assert_allclose(out[:2], [log_P, g], rtol=1e-14)
    assert_allclose(site, [w, g], rtol=1e-12)
