"""Laplace's posterior by itself: the mode, its evidence, and how that changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles import kernel_matrix, laplace_posterior, probit_terms
from strategies import gpor_cases, likelihood, sample

from ordinal import kernels
from ordinal.gpor.covariance import Dense
from ordinal.gpor.laplace import laplace

few = settings(max_examples=settings.default.max_examples // 4)


def gram(case):
    return kernel_matrix(case.made, case.X, case.X)


def residual(K, case, a):
    """a - w d log P / df at f = K a, in units of its largest term or 1."""
    g = case.weight * probit_terms(K @ a, *case.model)[1]
    return np.abs(g - a).max() / max(1.0, np.abs(g).max())


def assert_is_mode(K, case, got, tol=1e-8):
    """The latent values are rounded at their own size, and g changes by 1 / v of it."""
    f = K @ got.a
    rounding = 1e-15 * len(f) * (1 + (np.abs(K) @ np.abs(got.a)).max())
    slope = case.weight.max() / case.noise**2
    size = max(1.0, np.abs(got.a).max())
    assert residual(K, case, got.a) <= tol + slope * rounding / size
    assert got.converged
    assert got.violation <= tol + slope * rounding / size


@few
@given(gpor_cases(decades=2))
def test_the_mode_and_its_evidence_are_those_of_a_general_purpose_solver(case):
    K = gram(case)
    got = laplace(Dense(K), case.likelihood, None)
    assert_is_mode(K, case, got)
    f, _, log_evidence = laplace_posterior(K, *case.model, case.weight)
    assert_allclose(got.objective, log_evidence, atol=1e-8 * (1 + np.abs(log_evidence)))
    assert_allclose(K @ got.a, f, atol=1e-6 * (1 + np.abs(f).max()))


@given(
    gpor_cases(decades=2),
    st.sampled_from([1e-2, 1.0, 1e2, 1e5]),
    st.integers(0, 2**32 - 1),
)
def test_the_mode_is_reached_from_any_start(case, scale, seed):
    K, like = gram(case), case.likelihood
    got = laplace(Dense(K), like, None)
    start = scale * np.random.default_rng(seed).normal(size=len(K))
    other = laplace(Dense(K), like, start)
    assert_is_mode(K, case, other)
    size = 1 + abs(got.objective)
    assert_allclose(other.objective, got.objective, atol=1e-8 * size)
    again = laplace(Dense(K), like, got.state)
    assert again.n_iter <= 3  # but for rounding, 0
    assert_allclose(again.objective, got.objective, rtol=1e-10, atol=1e-10)


def test_a_noise_of_zero_is_not_taken_for_a_mode():
    """A trial point far off may ask for this; the search then shortens its step."""
    X, y = sample(20, 3)
    with np.errstate(all="ignore"), pytest.raises(np.linalg.LinAlgError):
        laplace(Dense(kernels.RBF(0.3)(X, X)), likelihood(y, [-0.5, 0.5], 0.0), None)
