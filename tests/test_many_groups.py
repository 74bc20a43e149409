"""Proximal points of problems with many groups: their steps, their gap, their end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import svor_dual, svor_interval, svor_primal, svor_terms

import ordinal
from ordinal import Status, kernels
from ordinal._dual import many_groups
from ordinal._dual.gram import Gram
from ordinal._dual.program import Points, Program
from ordinal._model.monitor import Monitor

RBF = kernels.RBF(0.3)
both = pytest.mark.parametrize("method", ["svorim", "redsvm"])


def rows_of(n, r, rng=0):
    """Standardised rows, and ranks of about n / r of them by a curved score."""
    X = np.random.default_rng(rng).standard_normal((n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, score.argsort().argsort() * r // n


def points_of(method, n=120, r=80, C=1.0):
    X, y = rows_of(n, r)
    s, width = svor_terms(y, C, np.ones(n), abs(np.arange(r)[:, None] - np.arange(r)))
    lo, hi, slope = (
        np.minimum(s * width, 0)[None],
        np.maximum(s * width, 0)[None],
        -s[None],
    )
    price = np.ones(r - 1) if method == "redsvm" else None
    gram = Gram(RBF, X, 100.0, 1, n)
    program = Program(lo, hi, slope, slope, price=price)
    return Points(gram, program, np.zeros_like(lo))


@both
def test_a_step_is_newtons(method):
    """(2) solves what its two lines say, written out for all rows and groups."""
    points = points_of(method)
    fit = many_groups._Approach(points)
    fit.minimise(3)
    a, K, T = fit.here.inside.astype(float), fit.K, len(fit.b)
    assert 0 < a.sum() < a.size
    dbeta, df, db = fit.direction()
    assert_allclose(df, K @ dbeta, rtol=1e-12)
    moved = fit.sigma * a * (db[:, None] - df)
    assert_allclose(dbeta, fit.here.r + moved.sum(axis=0), atol=1e-8)
    some = a.any(axis=1)
    lack = moved.sum(axis=1) + fit.price * db
    assert some.sum() > T / 2
    assert_allclose(lack[some], fit.here.q[some], atol=1e-8)


@both
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_gap_is_closed_from_raw_data(method, C):
    points = points_of(method, C=C)
    program, K = points.program, RBF(points.gram.X, points.gram.X)
    assert many_groups.pays(points)
    steps = many_groups.approach(points, 1000, Monitor("approach", 1e-3))
    assert 0 < steps <= 60

    g, lo, hi = points.g[0], program.lo[0], program.hi[0]
    assert np.all((lo <= g) & (g <= hi))
    f = K @ g.sum(axis=0)
    assert_allclose(points.f[0], f, atol=1e-10 * np.abs(g).sum())
    if method == "svorim":
        assert_allclose(g.sum(axis=1), 0, atol=1e-12 * np.abs(g).sum())
        b = np.array([best(f, lo[j], hi[j], program.pp[0, j]) for j in range(len(g))])
        price = 0.0
    else:
        b, price = -g.sum(axis=1), 1.0
    # at a feasible point, with thresholds of its own scores
    loss = program.loss(f[None], b[None])[0]
    half = 0.5 * g.sum(axis=0) @ f
    primal = half + loss + 0.5 * price * b @ b
    dual = -half - np.vdot(g, program.pp[0]) - 0.5 * price * b @ b
    assert -1e-9 * primal <= primal - dual <= 0.05 * primal


def best(f, lo, hi, slope):
    """The threshold of least loss, among those where some loss has its kink."""
    kinks = f + slope
    d = f - kinks[:, None]
    losses = np.maximum(np.maximum(-hi * (d + slope), -lo * (d + slope)), 0).sum(axis=1)
    return kinks[losses.argmin()]


@both
def test_a_fit_of_many_ranks_is_optimal(method):
    X, y = rows_of(160, 80)
    fit = ordinal.fit_svorim if method == "svorim" else ordinal.fit_redsvm
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
    fit = ordinal.fit_svorim if method == "svorim" else ordinal.fit_redsvm
    with pytest.warns(ordinal.ConvergenceWarning):
        model = fit(X, y, gamma=0.3, callback=lambda state: state.n_iter > 0)
    c = model.convergence
    assert c.status is Status.STOPPED
    assert c.n_iter > 0
    assert c.gap >= 0
    assert not method == "svorim" or abs(model.dual.sum(axis=0)).max() < 1e-9
