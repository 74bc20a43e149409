"""Penalties of absolute values: coordinate descent, paths and their certificates."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from internals import Likelihood, path_of
from numpy.testing import assert_allclose, assert_array_equal
from oracles import cumulative_loglik, slopes
from strategies import at_most, raises, sample

import ordinal
from ordinal._cumulative import rowwise
from ordinal._cumulative.elastic_net import Penalty
from ordinal._solvers import _coordinate_descent
from ordinal.exceptions import ConvergenceWarning
from ordinal.models import Status

LINKS = "logit", "probit", "cloglog", "loglog"


def rows(n=60, d=8, seed=0, ranks=4, share=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < share) * np.arange(1, d + 1)
    f = X[:, :3] @ [1.0, -0.5, 0.3] + rng.logistic(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, ranks) / ranks))


def mean_loss(link, X, y, theta, beta, weight=None, offset=0.0):
    """(P) without penalty by the oracle, and its slopes by beta and by theta."""
    none = np.zeros((y.size, 0))
    w = np.ones(y.size) if weight is None else weight

    def loss(v):
        terms = link, theta.size, "flexible", X, none, none, offset
        return -cumulative_loglik(v, y, w, *terms) / w.sum()

    x = np.concatenate([theta, beta])
    by_theta, by_beta = np.split(slopes(loss, x, 1e-4), [theta.size])
    return loss(x), by_beta, by_theta


@pytest.mark.parametrize("most", [2, 10_000])
@pytest.mark.parametrize("form", ["gram", "columns"])
def test_descent_ends_at_the_minimum_however_often_it_is_interrupted(form, most):
    rng = np.random.default_rng(5)
    n, m = 40, 7
    Z = rng.standard_normal((n, m))
    B = np.column_stack([np.ones(n), rng.standard_normal(n)])
    Z[:, 2] = B[:, 1]  # u takes its part: no curvature
    Z[:, 5] += 2 * Z[:, 4]
    v, g = rng.uniform(0.1, 3, n), 3 * rng.standard_normal(n)
    L = np.linalg.cholesky(B.T @ (v[:, None] * B))
    k = np.linalg.solve(L, B.T @ (v[:, None] * Z))
    H = Z.T @ (v[:, None] * Z) - k.T @ k
    k[:, 2] *= 1 - 1e-13  # what rounding may leave of its curvature
    H[2], H[:, 2] = 0.0, 0.0
    free = -np.linalg.solve(L, B.T @ g)
    linear = Z.T @ g + k.T @ free
    prices, ridges = np.linspace(0.0, 30.0, m), np.linspace(0.0, 20.0, m)[::-1].copy()
    b, scratch, active = np.zeros(m), np.empty(m), np.empty(m, np.int32)
    b[[2, 3]] = 0.5, -0.5
    rest = prices, ridges, 1e-24, most
    if form == "gram":
        descend = _coordinate_descent.descend_gram
        args = H, *rest, linear + H @ b, b, scratch, active
    else:
        descend, columns = _coordinate_descent.descend_columns, sp.csr_matrix(Z.T)
        args = (
            columns.indptr.astype(np.int64), columns.indices, columns.data, v,
            np.ascontiguousarray(k.T), *rest, g + v * (Z @ b), free - k @ b, b,
            scratch, active,
        )  # fmt: skip
    worth, calls = np.inf, 0
    while worth > 1e-24 and calls < 200:
        done, worth = descend(*args)
        assert done <= most
        calls += 1
    assert worth <= 1e-24
    assert (calls == 1) == (most == 10_000)
    assert b[2] == 0.5
    slope, on = linear + H @ b + ridges * b, b != 0
    on[2] = False
    assert 2 < on.sum() < 6
    assert_allclose(slope[on], -prices[on] * np.sign(b[on]), atol=1e-9)
    assert (np.abs(slope) <= prices + 1e-9)[np.arange(m) != 2].all()


@at_most(40)
@given(
    seed=st.integers(0, 10**6), n=st.integers(12, 60), d=st.integers(1, 80),
    link=st.sampled_from(LINKS), ratio=st.sampled_from([0.2, 0.7, 1.0]),
    sparse=st.booleans(), weighted=st.booleans(), ranks=st.integers(2, 4),
)  # fmt: skip
def test_points_obey_the_optimality_conditions(
    seed, n, d, link, ratio, sparse, weighted, ranks
):
    rng = np.random.default_rng(seed)
    X, y = rows(n, max(d, 3), seed, ranks)
    X = X[:, :d] + (0 if sparse else 5)
    data = {"offset": rng.standard_normal(n)} if weighted else {}
    weight = rng.integers(1, 4, n).astype(float)
    if weighted:
        data["weight"] = weight
    tol = 1e-8
    path = ordinal.fit_pom_path(
        sp.csc_matrix(X) if sparse else X, y, link=link, ratio=ratio, n_lambdas=4,
        smallest=0.05, tol=tol, sample_weight=weight if weighted else None,
        offset=data.get("offset"),
    )  # fmt: skip
    null = -path.null_loglik / path.models[0].statistics.n_obs
    assert path.n_nonzero[0] == 0
    assert_allclose(path.dev_ratio[0], 0, atol=1e-12)
    # at the largest penalty the first feature is about to enter
    value, by_beta, by_theta = mean_loss(
        link, X, y, path.thresholds[0], path.coefs[0], **data
    )
    assert value == pytest.approx(null, rel=1e-10)
    assert np.abs(by_beta).max() == pytest.approx(
        path.models[0].statistics.l1, rel=1e-6
    )
    for model in path.models:
        c = model.convergence
        assert c.converged
        assert 0 <= c.gap + 1e-14 * null <= tol * null + 2e-14 * null
        assert c.violation == pytest.approx(c.gap / null)
        assert c.violation <= tol
        assert (np.diff(model.thresholds) > 0).all()
        assert model.covariance is None
        value, by_beta, by_theta = mean_loss(
            link, X, y, model.thresholds, model.coef, **data
        )
        assert -model.statistics.n_obs * value == pytest.approx(model.loglik, rel=1e-9)
        beta, l1, l2 = model.coef, model.statistics.l1, model.statistics.l2
        penalty = l1 * np.abs(beta).sum() + 0.5 * l2 * beta @ beta
        assert c.primal == pytest.approx(value + penalty, rel=1e-9)
        assert_allclose(by_theta, 0, atol=1e-7)
        # a step of coordinate j alone gains s^2 / (2 h), and no more than the gap
        slope, on = by_beta + l2 * beta, beta != 0
        excess = np.maximum(np.abs(slope) - l1, 0)
        excess[on] = np.abs(slope + l1 * np.sign(beta))[on]
        room = np.sqrt(4 * np.maximum(c.gap, 1e-14) * ((X**2).max(axis=0) + l2))
        assert (excess <= room + 1e-9).all()


def test_what_a_path_says_of_itself():
    X, y = rows(60, 12)
    path = ordinal.fit_pom_path(X, y, n_lambdas=7)
    assert len(path) == 7
    assert path.lambdas[-1] == pytest.approx(1e-4 * path.lambdas[0])
    assert_allclose(np.diff(np.log(path.lambdas)), np.log(1e-4) / 6)
    wide = ordinal.fit_pom_path(X[:12], y[:12], n_lambdas=3)
    assert wide.lambdas[-1] == pytest.approx(1e-2 * wide.lambdas[0])
    assert path.coefs.shape == (7, 12)
    assert path.coef_names == path.model(0).coef_names
    assert_array_equal(path.n_nonzero, (path.coefs != 0).sum(axis=1))
    assert (np.diff(path.loglik) >= 0).all()
    assert (np.diff(path.dev_ratio) >= 0).all()
    assert 0 <= path.dev_ratio[0] < path.dev_ratio[-1] < 1
    assert path.model(-1) is path.models[6]
    assert_array_equal(path.gaps, [part.gap for part in path.convergence.parts])
    assert "7 penalties" in repr(path)
    assert "nonzero      0 to 1" in repr(path)
    for k in (7, -8, 1.0, True, None):
        raises(ValueError, r"k must be the number of a penalty, -7", path.model, k)


def test_a_path_ends_as_it_says(tmp_path):
    X, y = rows()
    seen = []

    def stop(state):
        seen.append(state)
        return len(seen) > 8

    with pytest.warns(ConvergenceWarning, match="stopped"):
        path = ordinal.fit_pom_path(X, y, n_lambdas=20, callback=stop)
    assert 1 <= len(path) < 20
    assert path.lambdas.size == len(path)
    assert path.models[0].convergence.converged
    assert path.convergence.status is ordinal.models.Status.STOPPED
    assert {state.method for state in seen} == {"fit_pom_path"}
    path = ordinal.fit_pom_path(X, y, n_lambdas=3, nominal=[0], smallest=0.5)
    path.save(tmp_path / "path")
    again = ordinal.load(tmp_path / "path")
    assert isinstance(again, ordinal.linear.PomPath)
    assert_array_equal(again.coefs, path.coefs)
    assert again.convergence == path.convergence
    assert_array_equal(again.model(1).predict_proba(X), path.model(1).predict_proba(X))


def test_too_few_steps_and_a_tolerance_below_rounding_are_told():
    X, y = rows(60, 30)
    with pytest.warns(ConvergenceWarning, match="or raise the penalties"):
        model = ordinal.fit_pom(X, y, l1=1e-3, max_iter=1)
    assert model.convergence.status is ordinal.models.Status.MAX_ITER
    assert model.convergence.gap > 0
    X, y = rows(300, 12)
    with pytest.warns(ConvergenceWarning, match="stalled"):
        path = ordinal.fit_pom_path(X, y, n_lambdas=5, tol=1e-16)
    ends = [model.convergence for model in path.models]
    assert {end.status for end in ends[1:]} == {ordinal.models.Status.STALLED}
    assert max(end.n_iter for end in ends) < 50
    assert max(path.gaps) < 1e-11


@pytest.mark.parametrize(("options", "message"), [
    ({"ratio": 1.5}, "ratio must be a number between 0 and 1, got 1.5"),
    ({"ratio": 0}, "lambdas must be given for ratio=0"),
    ({"lambdas": []}, "lambdas must be a sequence of numbers"),
    ({"lambdas": [1.0, 0.0]}, "lambdas must be positive and finite, got 0.0"),
    ({"smallest": 1.0}, "smallest must be a number between 0 and 1, got 1.0"),
    ({"link": "cauchit"}, "link must be one of 'logit', 'probit', 'cloglog'"),
], ids=str)  # fmt: skip
def test_a_bad_argument_of_a_path_is_named(options, message):
    raises(ValueError, re.escape(message), ordinal.fit_pom_path, *rows(), **options)


def test_a_path_of_a_search_is_a_row_of_fits():
    X, y = rows(d=5)
    Z = np.column_stack([X, X[:, 0]])  # which goes where nothing is penalised
    grid = [(0.0, 0.0), (1e-3, 0.0), (0.0, 0.1), (0.3, 0.1), (0.03, 0.0)]
    points = [{"l1": l1, "l2": l2} for l1, l2 in grid]
    fit_path = path_of(ordinal.fit_pom).fit
    with pytest.warns(ordinal.exceptions.CollinearColumnsWarning):
        models, values = fit_path(Z, y, points, None, Z, tol=1e-9)
    with pytest.warns(ordinal.exceptions.CollinearColumnsWarning):
        alone = [ordinal.fit_pom(Z, y, **point, tol=1e-9) for point in points]
    assert values == [None] * len(grid)
    assert [(model.statistics.l1, model.statistics.l2) for model in models] == grid
    for a, b in zip(models, alone, strict=True):
        assert a.predictor.dropped == b.predictor.dropped
        assert a.convergence.primal == pytest.approx(b.convergence.primal, abs=1e-8)
        assert_allclose(a.predict_proba(Z), b.predict_proba(Z), atol=1e-4)


def test_paths_are_refused_as_single_fits_are():
    X, y = rows()
    fit_path = path_of(ordinal.fit_pom).fit
    for bad, link, message in [
        ({"l1": -1.0}, "logit", "^l1 must be"),
        ({"l2": "much"}, "logit", "^l2 must be"),
        ({"l1": 0.1}, "cauchit", "^l1 is for models with a convex loss"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit_path(X, y, [{"l2": 0.1}, bad], None, None, link=link)
    for options in ({"link": "cauchit"}, {"scale": [0]}):
        with pytest.raises(ValueError, match="l1 is for models with a convex loss"):
            ordinal.fit_pom(*rows(), l1=0.1, **options)


def test_time_is_checked_before_columns_and_hessians_are_made(up_after, monkeypatch):
    """Either may take longer than all that went before."""
    X, y = sample(9000, 12, noise=3.0)  # of two chunks
    asked = up_after(np.inf)
    ordinal.fit_pom(X, y, l1=1e-4, max_time=60.0)
    hessians, at = [], Likelihood.at

    def counted(self, x):
        hessians.append(len(asked))
        return at(self, x)

    monkeypatch.setattr(Likelihood, "at", counted)
    for most in range(3):  # before the copy, in it, and after it
        hessians.clear()
        asked = up_after(most)
        with pytest.warns(ConvergenceWarning, match="max_time after 0 steps"):
            model = ordinal.fit_pom(X, y, l1=1e-4, max_time=60.0)
        assert not hessians
        assert model.convergence.status is Status.MAX_TIME
        assert np.isfinite(model.predict_proba(X[:9])).all()


def test_no_pass_over_the_rows_is_made_once_time_is_up(up_after, monkeypatch):
    """The penalties on the way to the last one change the bound alone."""
    X, y = sample(900, 12, noise=3.0)
    passes, best = [], rowwise.with_best_thresholds

    def counted(*args):
        passes.append(args)
        return best(*args)

    monkeypatch.setattr(rowwise, "with_best_thresholds", counted)
    up_after(0)
    with pytest.warns(ConvergenceWarning, match="max_time after 0 steps"):
        model = ordinal.fit_pom(X, y, l1=1e-4, max_time=60.0)
    assert len(passes) == 1
    assert model.convergence.dual <= model.convergence.primal
    # by the definition of the dual value, for a smaller penalty than the largest one
    assert_allclose(
        model.convergence.primal, -model.statistics.null_loglik / len(y), rtol=1e-12
    )


@given(
    st.integers(1, 6), st.integers(0, 10**6), st.floats(0.01, 2),
    st.just(0.0) | st.floats(1e-12, 2),
)  # fmt: skip
def test_the_bound_lies_below_what_a_quadratic_can_reach(d, seed, l1, l2):
    """(5) for L = |A b - c|^2 / 2, whose minimum descent finds."""
    rng = np.random.default_rng(seed)
    A, c = rng.standard_normal((9, d)), rng.standard_normal(9) * 3
    penalty = Penalty(np.full(d, l1), np.full(d, l2))
    H, slope, b = A.T @ A, -A.T @ c, np.zeros(d)
    _coordinate_descent.descend_gram(
        H, penalty.l1, penalty.l2, 1e-28, 100_000, slope, b, np.empty(d),
        np.empty(d, np.int32),
    )  # fmt: skip

    def bound(at):
        rest = A @ at - c
        return penalty.bound(0.5 * rest @ rest, A.T @ rest, at)

    least = 0.5 * np.sum((A @ b - c) ** 2) + penalty(b)
    for at in (np.zeros(d), b / 2, b + 0.1, 2 * b):
        assert bound(at) <= least + 1e-10 * (1 + least)
    assert bound(b) == pytest.approx(least, abs=1e-6 * (1 + least))
