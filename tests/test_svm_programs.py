"""`solve` on problems of one group: C-SVC, SVR and whatever else is of this form;
certificates, oracles, other packages."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from internals import Gram, Monitor, Program, solve
from numpy.testing import assert_allclose, assert_array_equal
from oracles import qp_gap, qp_rounding, qp_slopes, qp_value
from strategies import quadratic_programs, sample

from ordinal import kernels
from ordinal.models import Status


def solved(K, lo, hi, pn, pp, g=None, **options):
    """Solve problems that are the rows of lo, ..., or a single one:
    arrays of the only group, and G = K g and b as the machines have them."""
    terms = [np.atleast_2d(a).astype(float)[:, None] for a in (lo, hi, pn, pp)]
    options = {"tol": 1e-6, "max_iter": 1_000_000, "n_threads": 1, **options}
    callback, max_time = options.pop("callback", None), options.pop("max_time", None)
    monitor = Monitor("solve", options["tol"], callback, max_time)
    cache_mb, least = options.pop("cache_mb", 100.0), options.pop("least", len(K))
    gram = Gram(kernels.Precomputed(), K, cache_mb, options["n_threads"], least)
    g = np.zeros(terms[0].shape) if g is None else np.atleast_2d(g)[:, None]
    s = solve(gram, Program(*terms), g, **options, monitor=monitor)
    return SimpleNamespace(
        g=s.g[:, 0], G=s.f, b=-s.b[:, 0], violation=s.violation, n_iter=s.n_iter,
        status=s.status,
    )  # fmt: skip


def feasible(lo, hi):
    """The point that lies at the same part of the way through every box."""
    width = (hi - lo).sum()
    return np.clip(lo - (lo.sum() / width if width else 0) * (hi - lo), lo, hi)


def assert_optimal(K, lo, hi, pn, pp, s, tol, k=0):
    """Problem k of the Solution is feasible and meets (KKT) and (GAP)."""
    g, b = s.g[k], s.b[k]
    rounding = qp_rounding(K, g, hi - lo)
    assert np.all((lo <= g) & (g <= hi))
    assert abs(g.sum()) <= 1e-13 * g.size * (1 + np.abs([lo, hi]).max())
    R_min, L_max = qp_slopes(K, g, lo, hi, pn, pp)
    f_rounding = 1e-13 * (1 + (np.abs(K) @ np.abs(g)).max())
    assert L_max - R_min <= tol + f_rounding
    assert_allclose(s.G[k], K @ g, atol=f_rounding)
    assert_allclose(s.violation[k], L_max - R_min, atol=f_rounding)
    assert_allclose(b, -0.5 * (R_min + L_max), atol=f_rounding)
    gap = qp_gap(K, g, b, lo, hi, pn, pp)
    assert -rounding <= gap
    assert gap <= bound_on_gap(s, lo, hi, k) + rounding


def bound_on_gap(s, lo, hi, k=0):
    return max(s.violation[k], 0) / 2 * (hi - lo).sum()


@given(quadratic_programs())
def test_the_result_is_optimal(qp):
    K, lo, hi, pn, pp = qp
    s = solved(K, lo, hi, pn, pp, feasible(lo, hi))
    assert s.status is Status.CONVERGED
    assert_optimal(K, lo, hi, pn, pp, s, 1e-6)


def test_two_variables_in_closed_form():
    # g = (-t, t), value of (Q) = t^2 / 2 (1 + 4 - 2) - 2 t for t >= 0: t = 2 / 3
    K = np.array([[1.0, 1.0], [1.0, 4.0]])
    slopes = [1.0, -1.0]
    s = solved(K, [-9, -9], [9, 9], slopes, slopes, tol=1e-10)
    assert_allclose(s.g, [[-2 / 3, 2 / 3]], rtol=1e-10)
    assert_allclose(s.b, [-1.0], rtol=1e-9)  # L = R = G + slope = 1 at both
    s = solved(K, [-0.3, -9], [9, 9], slopes, slopes)
    assert_array_equal(s.g, [[-0.3, 0.3]])  # the bound itself


def test_a_kink_holds_variables_at_zero():
    s = solved(np.eye(3), [-1] * 3, [1] * 3, [-0.5] * 3, [0.5] * 3)
    assert_array_equal(s.g, np.zeros((1, 3)))
    assert_allclose(s.violation, -1.0)  # L = -0.5 and R = 0.5 everywhere
    assert_array_equal(s.b, [0.0])


def pairs_of_ranks(n=600, r=4, C=30.0, shuffled=False, gamma=0.5):
    """X, and C-SVC of each two of r ranks over its K, shuffled or not."""
    X, y = sample(n, r, seed=5)
    if not shuffled:
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    K = kernels.RBF(gamma)(X, X)
    pairs = [(j, k) for j in range(r) for k in range(j + 1, r)]
    sign = np.array([(y == k) * 1.0 - (y == j) for j, k in pairs])
    return K, (np.minimum(C * sign, 0), np.maximum(C * sign, 0), -sign, -sign)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("rows_held", [600, 100])
def test_pairs_of_ranks_are_what_they_are_on_their_rows_alone(shuffled, rows_held):
    K, terms = pairs_of_ranks(shuffled=shuffled)
    s = solved(K, *terms, cache_mb=rows_held * len(K) * 4e-6, least=64)
    assert s.status is Status.CONVERGED
    for k in range(len(terms[0])):
        of_pair = [a[k] for a in terms]
        assert_optimal(K, *of_pair, s, 1e-6, k)
        rows = np.flatnonzero(of_pair[0] < of_pair[1])
        assert not np.delete(s.g[k], rows).any()
        own = K[np.ix_(rows, rows)]
        lo, hi, pn, pp = (a[rows] for a in of_pair)
        alone = solved(own, lo, hi, pn, pp)
        gaps = bound_on_gap(s, lo, hi, k) + bound_on_gap(alone, lo, hi)
        values = [qp_value(own, g, pn, pp) for g in (s.g[k, rows], alone.g[0])]
        assert_allclose(*values, atol=gaps + qp_rounding(own, s.g[k, rows], hi - lo))
        # (Q) is strongly convex in w
        apart = s.g[k, rows] - alone.g[0]
        assert apart @ own @ apart <= 4 * gaps + 1e-9
