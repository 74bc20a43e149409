"""Proximal points of problems with many groups: their thresholds, steps and end."""

import numpy as np
import pytest
from internals import Gram, Points, Program
from numpy.testing import assert_allclose, assert_array_equal
from oracles import svor_dual, svor_interval, svor_primal, svor_terms

import ordinal
from ordinal import kernels
from ordinal._quadratic import many_groups
from ordinal._solvers import _group_steps
from ordinal.models import Status

RBF = kernels.RBF(0.3)
both = pytest.mark.parametrize("method", ["svorim", "redsvm"])


def rows_of(n, r, rng=0):
    """Standardised rows, and ranks of about n / r of them by a curved score."""
    X = np.random.default_rng(rng).standard_normal((n, 3))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]).argsort().argsort() * r // n


def points_of(method, n=120, r=80, C=1.0):
    X, y = rows_of(n, r)
    s, width = svor_terms(y, C, np.ones(n), abs(np.arange(r)[:, None] - np.arange(r)))
    ends = (s * width)[None]
    lo, hi, slope = np.minimum(ends, 0), np.maximum(ends, 0), -s[None]
    price = np.ones(r - 1) if method == "redsvm" else None
    gram = Gram(RBF, X, 100.0, 1, n)
    return Points(gram, Program(lo, hi, slope, slope, price=price), np.zeros_like(lo))


def groups(T, n, seed, price=0.0, sigma=0.7):
    """Arguments of the kernel: some boxes are points, some variables at ends."""
    rng = np.random.default_rng(seed)
    lo = -rng.exponential(size=(T, n)) * (rng.random((T, n)) < 0.6)
    hi = rng.exponential(size=(T, n)) * (rng.random((T, n)) < 0.6)
    g = np.clip(rng.normal(size=(T, n)), lo, hi)
    f, p = rng.normal(size=n), rng.choice([-1.0, 1.0], (T, n))
    return [f, g, lo, hi, p, np.full(T, price), sigma, 3 * rng.normal(size=T)]


def stepped(args, n_threads=1, kept=True):
    f, g, *_, b = args
    chunks = _group_steps.n_chunks(len(g))
    shape = g.shape if kept else (chunks, f.size)
    b, t, lack = b.copy(), np.empty(shape), np.empty(len(g))
    inside, totals = np.empty(shape, np.uint8), np.empty((chunks, f.size))
    _group_steps.steps(*args[:-1], b, t, inside, totals, lack, n_threads)
    return b, t, inside, totals, lack


@pytest.mark.parametrize("price", [0.0, 0.5])
@pytest.mark.parametrize("sigma", [1e-3, 0.7, 1e4])
@pytest.mark.parametrize("seed", range(5))
def test_thresholds_are_zeros_of_what_their_groups_lack(price, sigma, seed):
    args = groups(70, 9, seed, price, sigma)
    f, g, lo, hi, p, *_ = args
    b, t, inside, totals, lack = stepped(args)
    t0 = np.clip(g + sigma * (b[:, None] - f - p), lo, hi)
    assert_allclose(t, t0, atol=1e-11 * sigma)
    assert_array_equal(inside.astype(bool), (lo < t) & (t < hi))
    assert_allclose(totals.sum(axis=0), t.sum(axis=0), atol=1e-12)
    assert_allclose(lack, -(t.sum(axis=1) + price * b), atol=1e-11 * sigma + 1e-12)
    # zero, unless a group without a price cannot be
    low, up = lo.sum(axis=1), hi.sum(axis=1)
    can = (low < 0) & (up > 0) | (price > 0)
    assert can.sum() > 60
    assert abs(lack[can]).max() <= 1e-12 * max(1, sigma)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_threshold_at_which_nothing_moves_stays(side):
    """The sum is zero from -1 to 1."""
    f, p = np.zeros(2), side * np.array([[1.0, -1.0]])
    lo, hi = np.array([[0.0, -1.0]]), np.array([[1.0, 0.0]])
    for begin, end in [(0.25, 0.25), (2.0, 1.0), (-2.0, -1.0)]:
        args = [f, np.zeros((1, 2)), lo, hi, p, np.zeros(1), 100.0, np.array([begin])]
        b, _, inside, _, lack = stepped(args)
        assert b[0] == pytest.approx(end, abs=0.011)
        assert abs(lack[0]) < 1e-12
        assert begin != 0.25 or not inside.any()


def test_sums_that_are_off_are_put_right_inside_the_boxes():
    fit = many_groups._Approach(points_of("svorim"), 1)
    fit.minimise(3, 1e-3)
    fit.g = fit.here.t.copy()
    j = int(fit.here.inside.sum(axis=1).argmax())
    i = int(fit.here.inside[j].argmax())
    fit.g[j, i] = fit.lo[j, i]
    fit.lack[:] = -fit.g.sum(axis=1)
    g = fit.feasible()
    assert abs(fit.lack[j]) > 1e-6
    assert_allclose(g.sum(axis=1), 0, atol=1e-11)
    assert np.all((fit.lo <= g) & (g <= fit.hi))
    assert_array_equal(np.delete(g, j, axis=0), np.delete(fit.g, j, axis=0))


@both
def test_a_fit_of_many_ranks_is_optimal(method):
    X, y = rows_of(160, 80)
    fit = ordinal.fit_svorim if method == "svorim" else ordinal.companions.fit_redsvm
    K = RBF(X, X)
    model = fit(K, y, kernel="precomputed", tol=1e-3, n_threads=1)
    c = model.convergence
    assert c.status is Status.CONVERGED
    g = np.zeros((79, 160))
    g[:, model.support] = model.dual.T
    cost = abs(np.arange(80)[:, None] - np.arange(80.0))
    s, width = svor_terms(y, 1.0, np.ones(160), cost)
    price = np.full(79, float(method == "redsvm"))
    low, up = svor_interval(K, g, s, width, price)
    assert (low - up).max() <= 1e-3 + 1e-9
    beta = g.sum(axis=0)
    primal = svor_primal(K @ beta, beta @ K @ beta, model.thresholds, s, width, price)
    assert_allclose(c.primal, primal, rtol=1e-9)
    assert_allclose(c.dual, svor_dual(K, g, s, price), rtol=1e-9)


@both
def test_a_callback_ends_it_at_a_feasible_point(method):
    X, y = rows_of(160, 80)
    fit = ordinal.fit_svorim if method == "svorim" else ordinal.companions.fit_redsvm
    with pytest.warns(ordinal.exceptions.ConvergenceWarning):
        model = fit(X, y, gamma=0.3, callback=lambda state: state.n_iter > 0)
    c = model.convergence
    assert c.status is Status.STOPPED
    assert c.n_iter > 0
    assert c.gap >= 0
    assert not method == "svorim" or abs(model.dual.sum(axis=0)).max() < 1e-9
