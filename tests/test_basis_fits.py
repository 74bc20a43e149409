"""Fits on a basis: `basis=` of the SVOR family and of NPSVOR."""

import numpy as np
import pytest
from internals import RowFeatures, RowsOnBasis
from numpy.testing import assert_allclose, assert_array_equal
from oracles import npsvor_primal, svor_primal, svor_terms
from strategies import sample, slow

import ordinal
from ordinal._quadratic.sums import CHUNK
from ordinal.exceptions import ConvergenceWarning
from ordinal.kernels import RBF, Polynomial

SVOR = [
    ordinal.fit_svorim, ordinal.companions.fit_redsvm,
    *slow(ordinal.fit_svorex, ordinal.companions.fit_shashua_levin),
]  # fmt: skip
each_svor = pytest.mark.parametrize("fit", SVOR)
each_fit = pytest.mark.parametrize("fit", [*SVOR, ordinal.fit_npsvor])


def norms_squared(model):
    """|w|^2 of a score, or of every hyperplane."""
    K = model.kernel(model.support, model.support)
    return np.einsum("i...,ij,j...->...", model.coef, K, model.coef)


@pytest.mark.parametrize("n", [400, *slow(40_000)])
@each_fit
def test_the_value_of_a_model_is_that_of_its_scores(fit, n):
    """Fits of many rows begin with samples of them; sorted rows are as good."""
    X, y = sample(n, 3, noise=1.0)
    model = fit(X, y, C=10.0, gamma=0.3, basis=np.arange(0, 200, 10))
    c, f, w = model.convergence, model.decision_function(X), norms_squared(model)
    assert c.converged
    if fit is ordinal.fit_npsvor:
        terms = 10.0, 10.0, 0.2, np.ones(n), np.ones((3, 3))
        values = [npsvor_primal(f[:, k], w[k], y, k, *terms) for k in range(3)]
        assert_allclose([part.primal for part in c.parts], values, rtol=1e-8)
        assert_allclose(model.norms**2, norms_squared(model), rtol=1e-8)
        assert_allclose(c.primal, sum(values), rtol=1e-8)
    else:
        cost = np.abs(np.arange(3)[:, None] - np.arange(3))
        cost = cost if model.method in ("svorim", "redsvm") else np.minimum(cost, 1)
        terms = *svor_terms(y, 10.0, np.ones(n), cost), [model.method == "redsvm"] * 2
        value = svor_primal(f, w, model.thresholds, *terms)
        assert_allclose(c.primal, value, rtol=1e-8)
        assert_allclose(c.violation, c.gap / abs(c.primal))
        assert 0 <= c.violation <= c.tol == 1e-3
    by_label = np.argsort(y, kind="stable")
    numbers = np.argsort(by_label)[np.arange(0, 200, 10)]
    other = fit(X[by_label], y[by_label], C=10.0, gamma=0.3, basis=numbers).convergence
    assert abs(c.primal - other.primal) <= c.gap + other.gap


@each_fit
def test_a_row_of_weight_two_is_the_row_written_twice(fit):
    X, y = sample(200, 3, noise=1.0)
    twice = np.r_[np.arange(200), np.arange(0, 200, 3)]
    weight = np.where(np.arange(200) % 3 == 0, 2.0, 1.0)
    numbers = np.arange(1, 200, 9)
    a = fit(X, y, gamma=0.3, basis=numbers, sample_weight=weight)
    b = fit(X[twice], y[twice], gamma=0.3, basis=numbers)
    gaps = a.convergence.gap + b.convergence.gap
    assert abs(a.convergence.primal - b.convergence.primal) <= gaps


@each_svor
def test_a_fit_begins_at_a_model(fit):
    X, y = sample(500, 3, noise=1.0)
    options = {"gamma": 0.3, "basis": np.arange(0, 500, 20)}
    cold = fit(X, y, C=10.0, **options)
    for start in (cold, fit(X, y, C=10.0, gamma=0.3)):  # on the basis, and exact
        warm = fit(X, y, C=10.0, **options, start=start)
        assert warm.convergence.converged
        gaps = warm.convergence.gap + cold.convergence.gap
        assert abs(warm.convergence.primal - cold.convergence.primal) <= gaps
    with pytest.raises(ValueError, match=r"^start must be a model of the whole kernel"):
        fit(X, y, start=cold)


def test_features_are_kept_or_made_again():
    """Cache all features in 32 bits, all or one chunk of them in 16 bits, or none."""
    X, y = sample(3 * CHUNK + 100, 3, noise=1.0)
    options = {"gamma": 0.3, "basis": np.arange(0, 200, 10)}
    whole = ordinal.fit_svorim(X, y, **options)
    for cache_mb in (1000.0, 1.0, 0.7, 1e-3):
        model = ordinal.fit_svorim(X, y, **options, cache_mb=cache_mb)
        assert model.convergence.converged
        gaps = whole.convergence.gap + model.convergence.gap
        assert abs(model.convergence.primal - whole.convergence.primal) <= gaps
        threads = ordinal.fit_svorim(X, y, **options, cache_mb=cache_mb, n_threads=2)
        assert np.array_equal(threads.coef, model.coef), cache_mb


@pytest.mark.parametrize("gamma", [0.3, 100.0])
def test_features_in_16_bits_are_near_those_in_32(gamma):
    """At the larger gamma, most values are zeros."""
    X, _ = sample(CHUNK + 100, 3, noise=1.0)
    features = RowFeatures(RBF(gamma), X[:20])
    keep = np.array([True, False])
    exact = RowsOnBasis(features, X, keep, 1)
    packed = RowsOnBasis(features, X, keep, 1, packed=True)
    for rows in (slice(0, 700), slice(CHUNK, CHUNK + 100)):
        rooms = (np.empty((700, exact.m)) for _ in range(3))
        Z, near = exact.block(rows, next(rooms)), packed.block(rows, next(rooms))
        if (M := exact.mixing(rows)) is not None:
            assert rows.start == CHUNK  # which is not cached
            Z, near = Z @ M, near @ M
        largest = np.abs(exact.block(slice(0, CHUNK), next(rooms))).max(axis=0)
        assert np.all(np.abs(near - Z) <= 1.6e-5 * largest)
        places = np.array([3, 50, 99])
        picked = packed.picked(rows, places, np.empty((3, Z.shape[1]), np.float32))
        assert_allclose(picked, near[places], atol=0 if rows.start == 0 else 1e-4)


@pytest.mark.slow("an exact fit of 2000 rows beside each")
@pytest.mark.parametrize("sparse", [False, True])
@each_fit
def test_a_linear_fit_of_many_rows_is_one_on_the_unit_vectors(fit, sparse):
    """The exact solver, by a kernel not known to be linear, is on both sides."""
    scipy_sparse = pytest.importorskip("scipy.sparse")
    X, y = sample(2000, 3, noise=1.0)
    A = scipy_sparse.csr_array(X) if sparse else X
    inner = Polynomial(degree=1, gamma=1.0, coef0=0.0)
    model = fit(A, y, kernel="linear")
    assert_array_equal(model.support, np.eye(3))
    found, exact = model.convergence, fit(X, y, kernel=inner).convergence
    assert found.dual <= exact.primal
    assert exact.dual <= found.primal
    assert_allclose(model.decision_function(A), model.decision_function(X))
    by_columns = X @ model.coef + getattr(model, "intercept", 0.0)
    assert_allclose(model.decision_function(X), by_columns)
    assert len(fit(X[:1999], y[:1999], kernel="linear").support) > 3  # rows with duals
    if fit is not ordinal.fit_npsvor:
        # at duals a fit begins as the fit to the kernel matrix
        start = fit(X[:500], y[:500], kernel="linear")
        assert fit(X, y, kernel="linear", start=start).dual is not None
        assert fit(X, y, kernel="linear", start=model).dual is None


def test_a_callback_that_stops_a_fit_ends_all_its_problems():
    """Problems that were not begun are stopped as well, and not out of time."""
    X, y = sample(600, r=4)
    given = {"basis": 20, "rng": 0, "callback": lambda state: True}
    with pytest.warns(ConvergenceWarning, match="the callback returned a true value"):
        model = ordinal.companions.fit_opbe(X, y, **given)
    record = model.convergence
    assert [part.status for part in record.parts] == [record.status] * 4
