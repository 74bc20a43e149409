"""OFMHS: its problem, certificate and hierarchy."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import sample

import ordinal
from ordinal.companions import fit_ofmhs
from ordinal.ofmhs.hierarchy import both_ways, scores

seeds = st.integers(0, 2**32 - 1)


def crossed(n=120, d=4, seed=0, levels=(-1.5, 0.0, 1.5)):
    """Rows whose rank depends on two features and two products."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X[:, 0] - X[:, 1] + X[:, 0] * X[:, 1] + 0.8 * X[:, 0] * X[:, 2]
    return X, np.digitize(f + 0.5 * rng.logistic(size=n), levels)


def probabilities(f, thresholds, y):
    """Return the loss of the ranks y, written as (P) has it."""
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])

    def below(t):
        return 1 / (1 + np.exp(f - t))

    return below(edges[y + 1]) - below(edges[y])


def standardised(X, weight):
    share = weight / weight.sum()
    centre = share @ X
    return (X - centre) / np.sqrt(share @ (X - centre) ** 2)


def primal_and_dual(model, X, y, weight):
    """(P), its bound, slopes and the loss without effects, from rows and fields."""
    Z, share = standardised(X, weight), weight / weight.sum()
    d = Z.shape[1]
    f = Z @ model.main
    for j, k in combinations(range(d), 2):
        f = f + model.pairs[j, k] * Z[:, j] * Z[:, k]
    value = -share @ np.log(probabilities(f, model.thresholds, y))
    l_pair = model.l1 * math.sqrt(2 + model.pair_ratio**2)
    penalty = model.l1 * np.abs(model.main - model.brought.sum(axis=1)).sum()
    # d log(F(b) - F(a)) / df of logistic F is F(b) + F(a) - 1
    edges = np.concatenate([[-np.inf], model.thresholds, [np.inf]])
    slope = share * (
        1 - 1 / (1 + np.exp(f - edges[y + 1])) - 1 / (1 + np.exp(f - edges[y]))
    )
    g, G = Z.T @ slope, Z.T @ (slope[:, None] * Z)
    c = min(1.0, (model.l1 / np.abs(g)).min())
    tangent = value - g @ model.main
    for j, k in combinations(range(d), 2):
        parts = model.brought[j, k], model.brought[k, j], model.pairs[j, k]
        penalty += l_pair * math.hypot(*parts)
        c = min(c, l_pair / math.hypot(g[j], g[k], G[j, k]))
        tangent -= G[j, k] * model.pairs[j, k]
    mass = np.bincount(y, share)
    return value + penalty, c * tangent, (g, G), -(mass * np.log(mass)).sum()


@pytest.mark.parametrize("ratio", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("l1", [0.1, 0.01, 1e-3])
def test_the_certificate_is_that_of_the_rows(l1, ratio):
    X, y = crossed()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    model = fit_ofmhs(X, y, l1=l1, pair_ratio=ratio, sample_weight=weight, tol=1e-9)
    primal, dual, _, null = primal_and_dual(model, X, y, weight)
    c = model.convergence
    assert_allclose([c.primal, c.dual], [primal, dual], rtol=1e-11)
    assert c.converged
    assert c.violation == pytest.approx(c.gap / null, abs=1e-14)
    assert -1e-14 <= primal - dual <= 1e-9 * null
    assert model.n_pairs > 0 or l1 == 0.1
    # subgradients of (P), which is convex
    model = fit_ofmhs(X, y, l1=l1, pair_ratio=ratio, sample_weight=weight, tol=1e-13)
    (g, G) = primal_and_dual(model, X, y, weight)[2]
    own, l_pair = model.main - model.brought.sum(axis=1), l1 * math.sqrt(2 + ratio**2)
    held = np.abs(own) > 1e-9
    assert_allclose(g[held], -l1 * np.sign(own[held]), atol=1e-6)
    assert (np.abs(g) <= l1 + 1e-6).all()
    for j, k in combinations(range(4), 2):
        slope = np.array([g[j], g[k], G[j, k]])
        parts = model.brought[j, k], model.brought[k, j], model.pairs[j, k]
        size = math.hypot(*parts)
        assert np.linalg.norm(slope) <= l_pair + 1e-6
        if size > 1e-9:
            assert_allclose(slope, -l_pair * np.array(parts) / size, atol=1e-6)


@pytest.mark.parametrize("ratio", [0.0, 1.0, 5.0, np.inf])
def test_the_largest_penalty_is_where_effects_begin(ratio):
    X, y = crossed()
    none = fit_ofmhs(X, y, l1=10.0, pair_ratio=ratio)
    assert none.convergence.n_iter == 0
    _, _, (g, G), _ = primal_and_dual(fit_ofmhs(X, y, l1=10.0), X, y, np.ones(len(y)))
    sizes = [math.hypot(g[j], g[k], G[j, k]) for j, k in combinations(range(4), 2)]
    closed = max(np.abs(g).max(), max(sizes) / math.sqrt(2 + ratio**2))
    assert none.largest == pytest.approx(closed, rel=1e-10)
    at = fit_ofmhs(X, y, l1=none.largest, pair_ratio=ratio)
    assert not at.main.any()
    assert not at.pairs.any()
    assert fit_ofmhs(X, y, l1=0.99 * none.largest, pair_ratio=ratio).main.any()
    assert_allclose(at.predict_proba(X[:1])[0], np.bincount(y) / len(y), atol=1e-12)


def test_without_pairs_it_is_the_lasso_of_pom():
    X, y = crossed()
    Z = standardised(X, np.ones(len(y)))
    for l1 in (0.05, 0.005):
        model = fit_ofmhs(X, y, l1=l1, pair_ratio=np.inf, tol=1e-12)
        lasso = ordinal.fit_pom(Z, y, l1=l1, tol=1e-12)
        assert not model.pairs.any()
        assert_allclose(model.main, lasso.coef, atol=1e-6)
        assert_allclose(model.thresholds, lasso.thresholds, atol=1e-6)
        assert model.convergence.primal == pytest.approx(
            lasso.convergence.primal, rel=1e-11
        )
    # and a ratio that no pair reaches is as good as infinite
    assert_array_equal(fit_ofmhs(X, y, l1=0.05, pair_ratio=1e6, tol=1e-12).pairs, 0)


def test_features_that_say_nothing_have_no_effects():
    X, y = crossed()
    wide = np.column_stack([X, np.full(len(y), 3.7), X[:, 0]])
    model = fit_ofmhs(wide, y)
    assert not model.main[4]
    assert not model.pairs[4].any()
    assert np.isfinite(model.decision_function(wide)).all()
    single = fit_ofmhs(X[:, :1], y)
    assert single.pairs.shape == (1, 1)
    assert single.n_main == 1
    X, y = sample(40, 15, noise=0.5)
    model = fit_ofmhs(X, y, l1=1e-3)
    assert model.convergence.converged
    assert model.n_pairs > 0


def test_probabilities_and_labels_are_those_of_the_formula():
    X, y = crossed()
    # ranks 0 and 6 beyond all rows, 3 between them
    model = fit_ofmhs(X, np.array([1, 2, 4, 5])[y], classes=range(7))
    P = model.predict_proba(X)
    f, inner = model.decision_function(X), model.thresholds[[1, 2, 4]]
    for k in range(4):
        own = probabilities(f, inner, np.full(len(f), k))
        assert_allclose(P[:, [1, 2, 4, 5][k]], own, atol=1e-12)
    assert_array_equal(P[:, [0, 3, 6]], 0)
    assert_array_equal(model.predict(X), model.predict(X, rule="median"))
    assert set(model.predict(X)) <= {1, 2, 4, 5}


@given(seeds, st.integers(1, 300), st.integers(1, 6))
def test_scores_are_sums_over_features_and_pairs(seed, n, d):
    rng = np.random.default_rng(seed)
    Z, main = rng.standard_normal((n, d)), rng.standard_normal(d)
    first, second = np.triu_indices(d, 1)
    theta = rng.standard_normal(first.size) * (rng.random(first.size) < 0.5)
    pairs = both_ways(d, first, second, theta)
    expected = Z @ main + (Z[:, first] * Z[:, second]) @ theta
    assert_allclose(scores(Z, main, pairs), expected, atol=1e-12)


def test_effects_are_named_and_the_largest_first():
    X, y = crossed()
    model = fit_ofmhs(X, y, l1=0.03)
    table = model.effects()
    assert len(table["name"]) == model.n_main + model.n_pairs
    assert (np.diff(np.abs(table["effect"])) <= 0).all()
    named = dict(zip(table["name"].tolist(), table["effect"].tolist(), strict=True))
    assert named["x1:x2"] == model.pairs[0, 1] != 0
    assert named["x2"] == model.main[1] < 0
    assert f"pairs        {model.n_pairs} of 6" in repr(model)
    none = fit_ofmhs(X, y, l1=10.0).effects()
    assert none["name"].size == none["effect"].size == 0
