"""Laplace's posterior by itself: the mode, its evidence, and how that changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles import kernel_matrix, laplace_posterior, probit_terms, symmetric
from strategies import gpor_cases, likelihood, sample

from ordinal import kernels
from ordinal.gpor import laplace as module
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
    size = 1 + np.abs(log_evidence)
    assert_allclose(got.objective, log_evidence, atol=1e-8 * size)
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


@pytest.mark.slow("a hundred modes of noises and kernels")
@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-2, 1.0, 1e2])
@pytest.mark.parametrize(
    ("r", "kernel", "start"),
    [
        (2, kernels.RBF(0.3), None), (4, kernels.Linear(), -10.0),
        (4, kernels.RBF(0.3), 1e4), (2, kernels.Linear(), 1e4),
    ],
)  # fmt: skip
def test_a_separable_set_has_a_mode_at_any_noise(noise, r, kernel, start):
    if isinstance(kernel, kernels.Linear):
        # 57 of 60 eigenvalues of B are 1, others 1e2 / noise^2: its digits end there
        noise = max(noise, 1e-4)
    X, y = sample(60, r, noise=0.0)
    K, b = kernel(X, X), np.linspace(-1, 1, r - 1) if r > 2 else np.zeros(1)
    like = likelihood(y, b, noise**2)
    state = None if start is None else np.full(60, start)
    got = laplace(Dense(K), like, state)
    assert got.converged
    assert got.n_iter < module._MAX_ITER
    f = K @ got.a
    g = probit_terms(f, y, b, noise**2)[1]
    # f cannot be told apart from its neighbours in double precision
    rounding = 1e-15 * (np.abs(K) @ np.abs(got.a)).max() / noise**2
    size = max(1.0, np.abs(g).max())
    assert np.abs(g - got.a).max() <= (1e-8 + rounding) * size
    assert got.violation <= 1e-8 + rounding


@given(
    gpor_cases(decades=0.7, kernel=["rbf"], distinct=True), st.integers(0, 2**32 - 1)
)
def test_a_change_of_the_covariance_changes_the_evidence_as_said(case, seed):
    """1/2 a'dK a - 1/2 tr(R dK) + u'dK a, in any direction."""
    K, like = gram(case), case.likelihood
    n = len(K)
    cov = Dense(K)
    got = laplace(cov, like, None)
    M = symmetric(cov.sensitivity(got.a, got.u), n)
    F = np.random.default_rng(seed).normal(size=(n, n))
    step = F @ F.T

    def value(t):
        return laplace(Dense(K + t * step), like, None).objective

    # the objective bends on the scale of K + noise^2 I, whose least eigenvalue K may
    # leave to the noise
    h = 1e-3 * min(1.0, case.noise**2) / (1 + np.abs(step).max())
    # forward: K - h step might be indefinite
    v = [value(i * h) for i in range(5)]
    expected = (-25 * v[0] + 48 * v[1] - 36 * v[2] + 16 * v[3] - 3 * v[4]) / (12 * h)
    size = np.abs(M).sum() * np.abs(step).max()
    assert abs(np.vdot(M, step) - expected) <= 1e-7 * size + 1e-12 * abs(v[0]) / h


def test_a_noise_of_zero_is_not_taken_for_a_mode():
    """A trial point far off may ask for this; the search then shortens its step."""
    X, y = sample(20, 3)
    with np.errstate(all="ignore"), pytest.raises(np.linalg.LinAlgError):
        laplace(Dense(kernels.RBF(0.3)(X, X)), likelihood(y, [-0.5, 0.5], 0.0), None)
