"""The covariance of a Gaussian process and its factors, against explicit inverses.

That on a basis is held by gradients and the FITC approximation in test_gpor.py.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import symmetric

from ordinal.gpor import covariance
from ordinal.gpor.covariance import Dense

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True)
def small_strips():
    """A dozen rows make several strips."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covariance, "_FEW", 3)
        yield


@st.composite
def precisions(draw, n):
    """W >= 0 of any size, 0 in places."""
    scale = st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e3])
    return np.array(draw(st.lists(scale, min_size=n, max_size=n)))


@st.composite
def covariances(draw, max_n=12):
    """Sigma of rows that may repeat, or be 0."""
    n, rank = draw(st.integers(1, max_n)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(seeds))
    F = rng.normal(size=(n, rank + 1))
    F = F[rng.integers(0, n, n)]
    F[rng.random(n) < 0.2] = 0
    return F @ F.T, draw(precisions(n)), rng


def explicit(Sigma, W):
    """A = (Sigma^-1 + W)^-1 and R = (W^-1 + Sigma)^-1, for any Sigma and W >= 0."""
    M = np.linalg.inv(np.eye(len(W)) + Sigma * W)  # (I + Sigma W)^-1
    return M @ Sigma, W[:, None] * M


def assert_is_of(cov, Sigma, W, rng):
    A, R = explicit(Sigma, W)
    size = 1 + np.abs(Sigma).max()
    # I + Sigma W, which nothing else inverts, has up to this condition
    close = {"rtol": 1e-8, "atol": 1e-13 * size**2 * (1 + W.max()) * len(W) ** 2}
    v = rng.normal(size=len(W))
    assert_allclose(cov.matvec(v), Sigma @ v, atol=1e-12 * size * len(W))
    of_W = {"rtol": 1e-8, "atol": close["atol"] * (1 + W.max())}
    x = v - R @ Sigma @ v
    for got, expected in zip(cov.solve(v, W), (x, Sigma @ x), strict=True):
        assert_allclose(got, expected, **of_W)
    log_det = np.linalg.slogdet(np.eye(len(W)) + Sigma * W)[1]
    assert_allclose(cov.log_det, log_det, rtol=1e-10, atol=1e-11)
    *got_x, got_A, q = cov.posterior(v, W)
    for got, expected in zip(got_x, (x, Sigma @ x), strict=True):
        assert_allclose(got, expected, **of_W)
    assert_allclose(got_A, np.diagonal(A), **close)
    assert_allclose(q, 1 - W * np.diagonal(A), rtol=1e-7, atol=of_W["atol"])
    # the dense factor is inverted now
    assert_allclose(cov.solve(v)[0], x, **of_W)
    return A, R, of_W


@given(covariances())
def test_dense(case):
    Sigma, W, rng = case
    cov = Dense(Sigma)
    _, R, close = assert_is_of(cov, Sigma, W, rng)
    assert_array_equal(cov.extra_variance, 0)
    if W.max() == 0:
        assert_array_equal(cov.marginals()[0], np.diagonal(Sigma))
    a, u = rng.normal(size=(2, len(W)))
    cov.factor(W)
    cov.marginals()
    coef, root = cov.predictor(a)
    assert_array_equal(coef, a)
    scale = 1 + W.max()
    assert_allclose(root.T @ root, R, rtol=1e-7, atol=close["atol"] * scale)
    M = symmetric(cov.sensitivity(a, u), len(W))
    expected = 0.5 * (np.outer(a, a) - R + np.outer(u, a) + np.outer(a, u))
    assert_allclose(M, expected, rtol=1e-7, atol=1e-12 + close["atol"] * scale)


def test_rows_without_curvature_are_left_out_of_the_factor():
    rng = np.random.default_rng(0)
    n = 200
    F = rng.normal(size=(n, n))
    Sigma, W = F @ F.T / n, rng.uniform(0.5, 2, n)
    W[rng.permutation(n)[:120]] = rng.choice([0.0, 1e-30, 1e-18], 120)
    cov = Dense(Sigma)
    _, R, close = assert_is_of(cov, Sigma, W, rng)
    a, u, t, dW = rng.normal(size=(4, n))
    _, root = cov.predictor(a)
    assert_allclose(root.T @ root, R, rtol=1e-7, atol=close["atol"])
    expected = 0.5 * (np.outer(a, a) - R + np.outer(u, a) + np.outer(a, u))
    M = symmetric(cov.sensitivity(a, u), len(W))
    assert_allclose(M, expected, rtol=1e-7, atol=close["atol"])
    A, _ = explicit(Sigma, W)
    seen = W > 0.1
    got = cov.variances(W)
    assert_allclose(got[seen], np.diagonal(A)[seen], rtol=1e-8)
    assert_array_equal(got[~seen], np.diagonal(Sigma)[~seen])
    cov.posterior(a, W)
    t, dW = t * seen, dW * seen
    mean, falls = cov.response()(t, dW)
    assert_allclose(mean[seen], (A @ t)[seen], rtol=1e-8, atol=1e-10)
    expected = A**2 @ dW / np.diagonal(A)
    assert_allclose(falls[seen], expected[seen], rtol=1e-8, atol=1e-10)


def test_a_small_precision_keeps_the_digits_of_the_variance():
    """The variance is small where (1 - q) / W has none left."""
    rng = np.random.default_rng(0)
    n = 700  # more than one strip of columns
    F = rng.normal(size=(n, 2))
    Sigma, W = F @ F.T, np.full(n, 1e-13)
    cov = Dense(Sigma)
    cov.factor(W)
    A, _ = cov.marginals()
    # to first order in W
    expected = np.diagonal(Sigma) - np.einsum("ij,j,ij->i", Sigma, W, Sigma)
    assert_allclose(A, expected, rtol=1e-13)
