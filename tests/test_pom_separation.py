"""Inference in the limit of fits whose ranks are separated."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import TAILS
from scipy.optimize import linprog, minimize
from strategies import raises, slow

import ordinal
from ordinal import inference
from ordinal.inference.fitted import has_errors

LINKS = ["logit", *slow("probit", "cloglog", "loglog", "cauchit")]


def fitted(X, y, **options):
    with warnings.catch_warnings(action="ignore"):
        return ordinal.fit_pom(X, y, **options)


def with_a_rare_level(n=60, seed=0):
    """Two features and a level whose rows all have the highest rank; the level."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + rng.logistic(size=n), [-1, 1])
    rare = np.arange(n) < 4
    y[rare] = 2
    return np.column_stack([X, rare]), y, rare


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("robust", [False, True], ids=["observed", "robust"])
def test_the_limit_is_the_fit_to_the_other_rows(link, robust):
    Z, y, rare = with_a_rare_level()
    model = fitted(Z, y, link=link, robust=robust)
    rest = ordinal.fit_pom(Z[~rare, :2], y[~rare], link=link, robust=robust)
    assert model.convergence.status is ordinal.models.Status.SEPARATED
    assert_allclose(model.loglik, rest.loglik, rtol=1e-12)
    table, other = model.table(), rest.table()
    for name in ("estimate", "standard_error", "z", "p_value"):
        assert_allclose(table[name][:4], other[name], rtol=1e-5)
    assert table["estimate"][4] == np.inf
    for name in ("standard_error", "z", "p_value"):
        assert np.isnan(table[name][4])
    assert "inf" in model.summary()
    if robust:
        return
    mine, its = (m.confint(method="profile") for m in (model, rest))
    for name in ("estimate", "lower", "upper"):
        assert_allclose(mine[name][:2], its[name], rtol=1e-5)
    assert mine["upper"][2] == np.inf


def test_averages_and_effects_are_those_of_the_limit():
    Z, y, rare = with_a_rare_level()
    model, rest = fitted(Z, y), ordinal.fit_pom(Z[~rare, :2], y[~rare])
    share = np.mean(~rare)
    found, others = model.predictions(), rest.predictions()
    sure = np.array([0, 0, 1 - share])
    assert_allclose(found["estimate"], share * others["estimate"] + sure)
    assert_allclose(found["standard_error"], share * others["standard_error"])
    found, others = model.marginal_effects(), rest.marginal_effects()
    assert_allclose(found["effect"][:6], share * others["effect"], rtol=1e-5)
    error = found["standard_error"]
    assert_allclose(error[:6], share * others["standard_error"], rtol=1e-5)
    P = rest.predict_proba(Z[:, :2]).mean(axis=0)
    assert_allclose(found["effect"][6:], np.array([0, 0, 1]) - P, rtol=1e-6)
    assert_allclose(error[6:], rest.predictions(Z[:, :2])["standard_error"], rtol=1e-5)
    Z, y, _ = with_a_rare_level()
    found = inference.step(fitted(Z, y)).model
    assert found.convergence.status is ordinal.models.Status.SEPARATED
    direct = fitted(Z[:, [0, 2]], y)
    for name in ("estimate", "standard_error", "p_value"):
        assert_allclose(found.table()[name], direct.table()[name], rtol=1e-5)
    with pytest.raises(ValueError, match=r"influence needs estimates, and .* 'x3'"):
        inference.influence(fitted(Z, y))
    assert ".leverage" not in inference.augment(fitted(Z, y))


def test_the_slope_of_a_diverging_column_has_no_effect():
    """Rows below 0 have no estimate of the slope, which those above do not give."""
    rng = np.random.default_rng(0)
    x, z = np.where(np.arange(50) < 5, rng.uniform(1, 2, 50), 0.0), rng.normal(size=50)
    y = np.digitize(z + rng.logistic(size=50), [-1, 1])
    y[:5] = 2
    effects = fitted(np.column_stack([x, z]), y).marginal_effects()
    assert np.isnan(effects["effect"][:3]).all()
    assert np.isnan(effects["p_value"][:3]).all()
    assert np.isfinite(effects["p_value"][3:]).all()


@pytest.mark.parametrize("link", LINKS)
def test_the_finite_end_of_a_profile_is_where_the_likelihood_falls_to_its_level(link):
    Z, y, _ = with_a_rare_level()
    model = fitted(Z, y, link=link)
    end = model.confint(0.9, method="profile")["lower"][2]
    rest = ordinal.fit_pom(Z[:, :2], y, offset=end * Z[:, 2], link=link)
    assert_allclose(2 * (model.loglik - rest.loglik), 2.7055434540954, rtol=1e-5)
    mirrored = fitted(Z * [1, 1, -1], y, link=link).confint(0.9, method="profile")
    assert mirrored["lower"][2] == -np.inf
    assert_allclose(mirrored["upper"][2], -end, rtol=1e-5)


def test_likelihood_ratio_tests_use_the_supremum():
    Z, y, rare = with_a_rare_level()
    model, smaller = fitted(Z, y), ordinal.fit_pom(Z[:, :2], y)
    supremum = ordinal.fit_pom(Z[~rare, :2], y[~rare]).loglik
    chi2 = 2 * (supremum - smaller.loglik)
    assert_allclose(inference.lr_test(smaller, model).chi2, chi2)
    assert_allclose(inference.anova(smaller, model)["chi2"][1], chi2)
    table = inference.drop1(model)
    assert_allclose(table["chi2"][3], chi2)
    assert_allclose(table["loglik"][2], fitted(Z[:, [0, 2]], y).loglik)
    assert_allclose(table["aic"][0], 2 * 5 - 2 * supremum)
    assert_allclose(inference.add1(model, ["x1", "x2"])["chi2"][1], chi2)


def test_under_complete_separation_nothing_can_be_estimated():
    x, y = np.arange(9.0)[:, None], np.arange(9) // 3
    model = fitted(x, y)
    assert_allclose(model.loglik, 0, atol=1e-12)
    for asked in (model.table, model.confint, model.summary, model.marginal_effects):
        raises(ValueError, "nothing can be estimated: 'x1' separate", asked)
    assert not has_errors(model)
    assert_allclose(
        inference.drop1(model)["chi2"][1], -2 * model.statistics.null_loglik
    )
    ends = model.confint(method="profile")
    assert 0 < ends["lower"][0] < 2
    assert ends["upper"][0] == np.inf


def test_a_saved_model_has_the_estimates_of_the_limit(tmp_path):
    Z, y, _ = with_a_rare_level()
    model = fitted(Z, y)
    model.save(tmp_path / "model.npz")
    loaded = ordinal.load(tmp_path / "model.npz")
    assert str(loaded.table()) == str(model.table())
    raises(ValueError, "needs the training rows", loaded.predictions, Z)


@st.composite
def small_tables(draw):
    """Few rows of tied features, most of which are separated in some manner."""
    n, d, r = draw(st.integers(5, 14)), draw(st.integers(1, 2)), draw(st.integers(2, 4))
    cells = st.integers(0, draw(st.integers(1, 3)))
    X = np.array(draw(st.lists(cells, min_size=n * d, max_size=n * d)), float)
    X = X.reshape(n, d)
    y = np.array(draw(st.lists(st.integers(0, r - 1), min_size=n, max_size=n)))
    order = draw(st.integers(0, d - 1))
    y = np.where(draw(st.booleans()), y, np.minimum(X[:, order].astype(int), r - 1))
    assume(np.unique(y).size >= 2)
    return X, y, draw(st.sampled_from([(), (0,)]))


def moves(y, X, nominal):
    """A, dense, from its definition, by thresholds, nominal slopes and slopes."""
    y = np.unique(y, return_inverse=True)[1]
    T = y.max()
    N = X[:, list(nominal)]
    rest = np.delete(X, list(nominal), axis=1)
    rows = []
    for i, rank in enumerate(y):
        for t, sign in ((rank, 1.0), (rank - 1, -1.0)):
            if 0 <= t < T:
                at = np.arange(T) == t
                rows.append(
                    sign * np.concatenate([at, np.outer(at, -N[i]).ravel(), -rest[i]])
                )
    return np.array(rows)


@given(small_tables())
def test_signs_of_divergence_are_those_of_linear_programming(table):
    X, y, nominal = table
    assume(np.linalg.matrix_rank(X - X.mean(axis=0)) == X.shape[1])
    model = fitted(X, y, nominal=list(nominal))
    assume(model.statistics.separated.size)
    A = moves(y, X, nominal)
    wanted = []
    for unit in np.eye(A.shape[1]):
        rises, falls = (
            linprog(-s * unit, A_ub=-A, b_ub=np.zeros(len(A)), bounds=(-1, 1)).fun
            < -1e-7
            for s in (1, -1)
        )
        sign = np.nan if rises and falls else np.inf if rises else -np.inf
        wanted.append(sign if rises or falls else 0.0)
    found = np.where(np.isfinite(model.statistics.limits), 0.0, model.statistics.limits)
    assert_array_equal(found, wanted)


@pytest.mark.parametrize("seed", range(4))
def test_the_limit_is_that_of_vanishing_penalties(seed):
    """Some rows of inner ranks lose one of their two ends only."""
    rng = np.random.default_rng(seed)
    z, low = rng.normal(size=60), np.arange(60) < 8
    y = np.digitize(z + rng.logistic(size=60), [-1, 0, 1])
    y[low] = np.arange(8) % 2  # of four ranks only the first two
    X = np.column_stack([z, low, low * (np.arange(60) % 2)])
    model = fitted(X, y)
    near = ordinal.fit_pom(X, y, l2=1e-9)
    known = np.isfinite(model.statistics.limits)
    assert 0 < known.sum() < known.size
    assert_allclose(
        model.statistics.limits[known], near.parameters[known], rtol=2e-3, atol=2e-3
    )
    assert near.loglik < model.loglik
    assert_allclose(near.loglik, model.loglik, atol=1e-4)


def firth(X, y):
    """Logistic regression by the modified scores of Heinze and Schemper, by loops."""
    Z, b = np.column_stack([np.ones(len(X)), X]), np.zeros(X.shape[1] + 1)
    step = np.ones(1)
    while np.abs(step).max() > 1e-12:
        p = 1 / (1 + np.exp(-Z @ b))
        I = sum(q * (1 - q) * np.outer(z, z) for q, z in zip(p, Z, strict=True))
        h = [q * (1 - q) * z @ np.linalg.solve(I, z) for q, z in zip(p, Z, strict=True)]
        step = np.linalg.solve(I, Z.T @ (y - p + np.array(h) * (0.5 - p)))
        b = b + step * min(1.0, 1 / np.abs(step).max())
    return b, np.sqrt(np.diagonal(np.linalg.inv(I)))


@pytest.mark.parametrize("complete", [False, True])
def test_jeffreys_is_firths_logistic_regression_for_two_ranks(complete):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 2))
    y = (X[:, 0] + (0 if complete else 1) * rng.logistic(size=20) > 0).astype(int)
    found = inference.jeffreys(fitted(X, y))
    b, error = firth(X, y)
    assert_allclose(found["estimate"], b * [-1, 1, 1], rtol=1e-5)
    assert_allclose(found["standard_error"], error, rtol=1e-5)
    twice = inference.jeffreys(fitted(X[::2], y[::2], sample_weight=np.full(10, 2.0)))
    rows = np.repeat(np.arange(0, 20, 2), 2)
    assert_allclose(
        twice["upper"], inference.jeffreys(fitted(X[rows], y[rows]))["upper"]
    )


def penalised(v, X, y, link, slopes=None):
    """l + log |I| / 2, with I from numerical derivatives of the probabilities."""

    def P(v):
        eta = v[:2] - (X @ v[2:])[:, None]
        F = np.pad(link(eta), ((0, 0), (1, 1)), constant_values=(0, 1))
        F[:, 0] = 0
        return np.diff(F)

    p, h = P(v), 1e-5
    if not (p > 0).all():
        return -np.inf
    by = [(P(v + h * u) - P(v - h * u)) / (2 * h) for u in np.eye(v.size)]
    root = np.stack(by) / np.sqrt(p)
    I = np.tensordot(root, root, ((1, 2), (1, 2)))
    return np.log(p[np.arange(len(y)), y]).sum() + np.linalg.slogdet(I)[1] / 2


@pytest.mark.parametrize("name", LINKS)
def test_jeffreys_maximises_the_penalised_likelihood(name):
    Z, y, _ = with_a_rare_level(25)
    F, _ = TAILS[name]
    found = inference.jeffreys(fitted(Z, y, link=name), 0.9)
    at = found["estimate"]
    value = penalised(at, Z, y, F)
    for u in np.eye(at.size):
        up, down = (penalised(at + s * 1e-3 * u, Z, y, F) for s in (1, -1))
        assert max(up, down) < value
        assert abs(up - down) / 2e-3 < 1e-4 * found["standard_error"].max()
    # with the last slope at the end of its interval, the profile is at its level
    end = found["upper"][4]
    rest = minimize(
        lambda v: -penalised(np.append(v, end), Z, y, F), at[:4], method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000},
    )  # fmt: skip
    assert_allclose(2 * (value + rest.fun), 2.7055434540954, rtol=1e-4)


def test_jeffreys_refuses_what_it_is_not_for():
    Z, y, _ = with_a_rare_level()
    for options, said in [
        ({"scale": ["x1"]}, "without scale effects"),
        ({"nominal": ["x1"]}, "without nominal effects"),
        ({"l2": 1.0}, "penalty of its own"),
        ({"robust": True}, "fit without robust"),
    ]:
        raises(ValueError, said, inference.jeffreys, fitted(Z, y, **options))
