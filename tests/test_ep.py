"""Expectation propagation by itself: the fixed point, its evidence, the bound."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import (
    divergence,
    kernel_matrix,
    sequential_ep,
    slope,
    symmetric,
    variational_bound,
)
from strategies import gpor_cases, likelihood

from ordinal import kernels
from ordinal.gpor import ep
from ordinal.gpor.covariance import Dense
from ordinal.gpor.ep import expectation_propagation

few = settings(max_examples=settings.default.max_examples // 4)


def gram(case):
    return kernel_matrix(case.made, case.X, case.X)


def infer(K, like, state=None, **options):
    """(Posterior, mean, variance)"""
    cov = Dense(K)
    got = expectation_propagation(cov, like, state, **options)
    return got, K @ got.a, cov.marginals()[0]


@few
@given(gpor_cases(weighted=False, kernel=["rbf", "ard"]))
def test_the_fixed_point_is_that_of_the_sequential_schedule(case):
    """Appendix B with its rank-one updates; and the evidence that it gives."""
    K = gram(case)
    p, m, h, A, log_Z = sequential_ep(K, *case.model)
    got, mean, var = infer(K, case.likelihood)
    assert got.converged
    assert got.violation <= 1e-8
    assert_allclose(got.objective, log_Z, rtol=1e-8, atol=1e-8)
    assert_allclose(mean, h, atol=1e-6 * np.sqrt(np.diagonal(A)).max())
    assert_allclose(var, np.diagonal(A), rtol=1e-6)
    assert_allclose(got.state[0], p, rtol=1e-5, atol=1e-6 / case.noise**2)
    assert_allclose(got.state[1], p * m, rtol=1e-5, atol=1e-5 * (1 + p.max()))


@given(gpor_cases(), st.integers(0, 2**32 - 1))
def test_a_fixed_point_is_found_from_other_sites_too(case, seed):
    K, like = gram(case), case.likelihood
    got, mean, var = infer(K, like)
    rng = np.random.default_rng(seed)
    p = got.state[0] * rng.uniform(0.2, 1, len(K))
    start = np.array([p, p * rng.normal(size=len(K))])
    kept = start.copy()
    other, mean_2, var_2 = infer(K, like, start)
    assert_array_equal(start, kept)
    assert other.converged
    assert_allclose(other.objective, got.objective, rtol=1e-7, atol=1e-7)
    assert_allclose(mean_2, mean, atol=1e-5 * np.sqrt(var.max()))
    assert_allclose(var_2, var, rtol=1e-5)
    again, _, _ = infer(K, like, got.state)
    assert again.n_iter == 1


@given(gpor_cases(weighted=False, kernel=["rbf"], distinct=True, decades=0.7))
def test_the_bound_is_what_it_says(case):
    K = gram(case)
    if np.linalg.cond(K) > 1e8:
        return
    got, _, _ = infer(K, case.likelihood, bound=True)
    p, e = got.state
    A = np.linalg.inv(np.linalg.inv(K) + np.diag(p))
    expected = variational_bound(K, A @ e, A, *case.model)
    assert_allclose(got.objective, expected, rtol=1e-4, atol=1e-4)
    free, _, _ = infer(K, case.likelihood)
    assert_array_equal(got.a, free.a)


@few
@given(gpor_cases(weighted=False, kernel=["rbf"], distinct=True, decades=0.5))
def test_the_slopes_of_the_bound_hold_the_posterior_still(case):
    """(28) of any direction of K; (29) and (30) are checked in test_gpor.py."""
    K = gram(case)
    n = len(K)
    if np.linalg.cond(K) > 1e6:
        return
    cov = Dense(K)
    got = expectation_propagation(cov, case.likelihood, None, bound=True)
    h, A = K @ got.a, np.linalg.inv(np.linalg.inv(K) + np.diag(got.state[0]))

    step = np.random.default_rng(n).normal(size=(n, n))
    step = step @ step.T
    small = 1e-3 * np.linalg.eigvalsh(K)[0] / np.linalg.norm(step, 2)
    by_K = slope(lambda t: -divergence(K + t * step, h, A), small)
    M = symmetric(cov.sensitivity(got.a, got.u), n)
    allowed = 1e-6 * abs(by_K) + 1e-11 * divergence(K, h, A) / small
    assert abs(np.vdot(M, step) - by_K) <= allowed + 1e-9


def needs_damping():
    """A separable set, and a threshold at the edge of it."""
    X = np.random.default_rng(24).normal(size=(20, 2))
    y = np.argsort(np.argsort(X[:, 0])) * 2 // 20
    return 1000 * kernels.RBF(0.01)(X, X), likelihood(y, [1.3], 0.01)


def test_sweeps_that_come_no_nearer_are_damped(monkeypatch):
    """Extrapolation makes further sweeps needless here."""
    K, like = needs_damping()
    fast, _, _ = infer(K, like)
    monkeypatch.setattr(ep, "_MEMORY", 1)
    damped, _, _ = infer(K, like)
    for got in (fast, damped):
        assert got.converged
        assert got.violation <= 1e-8
    assert fast.n_iter < damped.n_iter
    assert_allclose(fast.objective, damped.objective, rtol=1e-7)
    monkeypatch.setattr(ep, "_LEAST_STEP", 1.0)
    undamped, _, _ = infer(K, like)
    assert undamped.n_iter == ep._MAX_SWEEPS
    assert not undamped.converged
