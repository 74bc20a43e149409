"""Linear cumulative models of sparse and of many features."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from internals import CSR, Design, Likelihood, Problem, RowwiseLikelihood
from numpy.testing import assert_allclose, assert_array_equal
from strategies import raises

import ordinal

LINKS = "logit", "probit", "cloglog", "loglog", "cauchit"


def rows(n, d, seed=0, share=0.4, ranks=4):
    """Sparse features, and labels that they bear upon."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < share)
    f = X @ rng.standard_normal(d) / np.sqrt(max(d * share, 1)) + rng.logistic(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, ranks) / ranks))


def dense_loss(design, link):
    return Likelihood(design, link, 0.1, 1)


@pytest.mark.parametrize(("threshold", "nominal", "scale"), [
    ("flexible", [4, 1], [2, 1]), ("symmetric", [1], []), ("equidistant", [], [2]),
])  # fmt: skip
@pytest.mark.parametrize("link", LINKS)
def test_derivatives_are_those_of_dense_features(link, threshold, scale, nominal):
    rng = np.random.default_rng(1)
    X, y = rows(120, 6)
    weight = rng.integers(0, 3, y.size).astype(float)
    location = np.setdiff1d(np.arange(6), nominal)
    parts = (location, np.array(nominal, int), np.array(scale, int))
    offset = rng.standard_normal(y.size)
    problem = Problem.from_arrays(X + 2, y, sample_weight=weight)
    design = Design.from_problem(problem, *parts, offset, threshold)
    sparse = replace(design, X=CSR.from_any(sp.csr_matrix(X)), centre=np.zeros(6))
    for dense, other in ((design, design), (replace(sparse, X=X), sparse)):
        x = dense_loss(dense, link).start()
        x = x + 0.02 * rng.standard_normal(design.n_parameters)
        expected = dense_loss(dense, link).at(x)
        assert np.isfinite(expected.value)
        loss = RowwiseLikelihood(other, link, 0.1, 1)
        found = loss.at(x)
        size = np.abs(expected.hessian.dense()).max()
        assert_allclose(found.value, expected.value, rtol=1e-12)
        assert_allclose(found.gradient, expected.gradient, atol=1e-12 * size)
        assert_allclose(
            found.hessian.dense(), expected.hessian.dense(), atol=1e-12 * size
        )
        value, gradient = loss.value_and_gradient(x)
        assert value == found.value
        assert_array_equal(gradient, found.gradient)


def test_thresholds_that_cross_at_a_row_have_no_value():
    X, y = rows(50, 3)
    problem = Problem.from_arrays(sp.csr_matrix(X), y)
    none = np.zeros(0, int)
    design = Design.from_problem(problem, np.arange(3), none, none, None, "flexible")
    loss = RowwiseLikelihood(design, "logit", 0.0, 1)
    x = loss.start()
    x[:2] = x[1::-1]
    assert loss.at(x).value == np.inf
    assert loss.value_and_gradient(x)[0] == np.inf


@pytest.mark.parametrize("options", [
    {}, {"nominal": [2], "link": "probit"}, {"l2": 0.1},
    {"scale": [0], "link": "loglog"},  # steps to where slopes overflow
], ids=str)  # fmt: skip
def test_a_sparse_fit_is_the_dense_one(options):
    X, y = rows(400, 5)
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    offset = np.random.default_rng(1).standard_normal(y.size)
    given = {"sample_weight": weight, "offset": offset, "tol": 1e-9, **options}
    dense = ordinal.fit_pom(X, y, **given)
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.coo_array):
        sparse = ordinal.fit_pom(kind(X), y, **given)
        names = ["alpha", "nominal_coef", "coef", "scale_coef"]
        for name in names + ["covariance"] * ("l2" not in options):
            assert_allclose(
                getattr(sparse, name), getattr(dense, name), rtol=1e-8, atol=1e-9
            )
        assert_allclose(sparse.loglik, dense.loglik, rtol=1e-12)
        assert_allclose(
            sparse.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-8
        )
        assert_array_equal(sparse.predict(kind(X)), sparse.predict(X))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_many_features_are_fitted_without_a_hessian(kind, monkeypatch):
    X, y = rows(300, 40)
    few = ordinal.fit_pom(kind(X), y, l2=0.1, tol=1e-9)
    monkeypatch.setattr("ordinal._cumulative.design.HESSIAN_COLUMNS", 39)
    many = ordinal.fit_pom(kind(X), y, l2=0.1, tol=1e-9)
    assert many.convergence.converged
    assert many.convergence.violation <= 1e-9
    assert_allclose(many.coef, few.coef, atol=1e-7)  # slopes of 1e-9 by curvatures
    assert_allclose(many.alpha, few.alpha, atol=1e-7)
    assert_allclose(many.loglik, few.loglik, rtol=1e-9)  # with the penalty stationary


def test_sparse_fits_of_rare_entries_have_their_limits():
    X, y = rows(200, 3)
    X[:, 1] = 0
    full = ordinal.fit_pom(np.delete(X, 1, axis=1), y, l2=0.1)
    with warnings.catch_warnings():  # of the column, which is constant
        warnings.simplefilter("ignore")
        model = ordinal.fit_pom(sp.csr_matrix(X), y, l2=0.1)
    assert model.coef[1] == 0
    assert_allclose(model.coef[[0, 2]], full.coef, rtol=1e-6)
    X, y = rows(60, 3)
    large = ordinal.fit_pom(sp.csr_array(X * 1e168), y)
    assert_allclose(large.coef * 1e168, ordinal.fit_pom(X, y).coef, rtol=1e-6)


@pytest.mark.parametrize("fit", [
    ordinal.fit_pom,
    ordinal.fit_pom_path,
    ordinal.companions.fit_lit,
    ordinal.companions.fit_lat,
])  # fmt: skip
def test_columns_beyond_the_memory_are_refused(fit):
    X = sp.csr_array(([1.0], ([0], [0])), shape=(6, 2**31 - 1))
    message = rf"{fit.__name__} needs 700 GiB .* 2147483647"
    raises(MemoryError, message, fit, X, [1, 2, 3, 1, 2, 3])
