"""Limited-memory BFGS: its directions, its minima, and how a search ends."""

from types import SimpleNamespace

import numpy as np
import pytest
from internals import Monitor
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import rosen, rosen_der
from strategies import raises

from ordinal._numerics import descent
from ordinal._numerics.lbfgs import Curvature, DenseCurvature, NotFiniteError, minimize
from ordinal.models import Status


def search(fun, x, tol=1e-8, max_iter=500, **options):
    options |= {"tol": tol, "max_iter": max_iter, "monitor": Monitor("search", tol)}
    return minimize(fun, np.asarray(x, float), **options)


def inverse_by_updates(pairs, p, scaled_by=-1):
    """H by the BFGS update, written as matrices (Nocedal and Wright, (7.16))."""
    s, y = pairs[scaled_by]
    H = np.eye(p) * (s @ y) / (y @ y)
    for s, y in pairs:
        V = np.eye(p) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    return H


@pytest.mark.parametrize("p", [1, 5, 37, 100])
@pytest.mark.parametrize("n", [1, 3, 10, 14])
def test_directions_are_those_of_the_updated_inverse(n, p):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((p, p))
    A = A @ A.T + np.eye(p)
    pairs = Curvature(p)
    steps = rng.standard_normal((n, p))
    for s in steps:
        pairs.add(s, A @ s)
        pairs.add(s, -A @ s)  # along which the gradient falls, and which is not kept
    g = rng.standard_normal(p)
    H = inverse_by_updates([(s, A @ s) for s in steps[-10:]], p)
    assert_allclose(pairs.direction(g), -H @ g, rtol=1e-9, atol=1e-11)
    pairs.forget()
    assert_array_equal(pairs.direction(g), -g)


@pytest.mark.parametrize("p", [1, 5, 37])
def test_a_matrix_takes_in_all_steps(p):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((p, p))
    A = A @ A.T + np.eye(p)
    dense, g = DenseCurvature(p), rng.standard_normal(p)
    assert_array_equal(dense.direction(g), -g)
    steps = rng.standard_normal((14, p))
    for s in steps:
        dense.add(s, A @ s)
        dense.add(s, -A @ s)
        assert_allclose(dense.inverse @ (A @ s), s, rtol=1e-9, atol=1e-11)
    # (7.16) scales by the last pair, and a matrix by the first
    H = inverse_by_updates([(s, A @ s) for s in steps], p, scaled_by=0)
    assert_allclose(dense.direction(g), -H @ g, rtol=1e-8, atol=1e-10)


def test_a_measured_hessian_is_inverted_whatever_its_signs():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    x, H = rng.standard_normal(4), (axes * np.array([3.0, -2.0, 0.5, 1e-9])) @ axes.T
    dense = DenseCurvature(4)
    dense.measure(lambda x: (0.0, H @ x), x, H @ x)
    size = np.array([3.0, 2.0, 0.5, 3e-4])  # a direction without curvature: no far step
    assert_allclose(dense.inverse, (axes / size) @ axes.T, rtol=1e-6)
    g = rng.standard_normal(4)
    assert_allclose(dense.direction(g), -dense.inverse @ g)
    before = dense.inverse.copy()
    for slopes in (np.full(4, np.nan), np.zeros(4)):
        dense.measure(lambda x, slopes=slopes: (0.0, slopes), x, np.zeros(4))
        assert_array_equal(dense.inverse, before)


@pytest.mark.parametrize("kind", [Curvature, DenseCurvature])
def test_curvature_grows_with_the_rows(kind):
    rng = np.random.default_rng(0)
    A = np.diag([1.0, 2.0, 5.0])
    pairs, larger = kind(3), kind(3)
    for s in rng.standard_normal((4, 3)):
        pairs.add(s, A @ s)
        larger.add(s, 4 * A @ s)
    pairs.scale(1 / 4)
    s, g = rng.standard_normal((2, 3))
    assert_allclose(pairs.direction(g), larger.direction(g))
    pairs.add(s, 4 * A @ s)
    larger.add(s, 4 * A @ s)
    assert_allclose(pairs.direction(g), larger.direction(g))


def test_searches_end_at_minima():
    scale, at = np.geomspace(1, 100, 40), np.linspace(-1, 1, 40)
    found = search(lambda x: (0.5 * scale @ (x - at) ** 2, scale * (x - at)), 0 * at)
    assert found.status is Status.CONVERGED
    assert found.violation == np.abs(found.gradient).max() <= 1e-8
    assert_allclose(found.x, at, atol=1e-8)
    found = search(lambda x: (rosen(x), rosen_der(x)), [-1.2, 1.0])
    assert found.status is Status.CONVERGED
    assert_allclose(found.x, 1.0, atol=1e-7)
    assert found.n_iter <= found.n_eval < 100
    start = np.array([1.0, 2.0])  # the slope says that it falls, and nothing does
    found = search(lambda x: (float(not np.array_equal(x, start)), np.ones(2)), start)
    assert found.status is Status.STALLED
    assert_array_equal(found.x, start)

    def far_from_flat(x):
        return 1e-8 * float(x @ x), 2e-8 * x

    found = search(far_from_flat, [1e3], 1e-4, by_gain=0)
    assert found.n_iter == 0
    assert found.violation == 2e-5

    def fun(x):  # x - log x, of positive numbers
        with np.errstate(invalid="ignore"):
            return float((x - np.log(x)).sum()), 1 - 1 / x

    assert_allclose(search(fun, [30.0, 1e-3]).x, 1.0, atol=1e-7)
    raises(NotFiniteError, "not finite", search, fun, [-1.0, 1.0])


def test_a_search_by_gain_ends_where_the_next_step_is_worth_no_more():
    scale, x = np.array([1.0, 10.0, 100.0]), np.array([1.0, -1.0, 0.5])

    def quadratic(x):
        return 0.5 * scale @ x**2, scale * x

    value, slopes = quadratic(x)
    assert np.abs(slopes).max() > 1.01 * value  # before `by_gain` steps, slopes decide
    for tol, by_gain, steps in (
        (1.01 * value, 0, 0), (0.99 * value, 0, 1), (1.01 * value, 1, 1),
    ):  # fmt: skip
        known = DenseCurvature(3)
        known.measure(quadratic, x, slopes)
        found = search(quadratic, x, tol, curvature=known, by_gain=by_gain)
        assert (found.status, found.n_iter) == (Status.CONVERGED, steps)
        # The minimum is 0, and a step of the exact Hessian goes there.
        assert_allclose(found.violation, found.value, rtol=1e-8, atol=1e-12)


def test_steps_and_their_lengths_are_limited():
    at = []

    def fun(x):
        at.append(x.copy())
        return float(x @ x), 2 * x

    found = search(fun, np.full(3, 50.0), max_step=2.0, max_iter=4)
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 4
    assert np.linalg.norm(np.diff(at, axis=0), axis=1).max() <= 2.0 * (1 + 1e-12)


def test_steps_are_halved_and_matrices_shifted():
    """|x| from -1 along 1.99: the full step almost reaches 1, the half almost 0."""

    def at(size):
        return SimpleNamespace(value=abs(-1 + 1.99 * size))

    there, size = descent.halved(at, 1.0, -1.99)
    assert (size, there.value) == (1.0, pytest.approx(0.99))
    there, size = descent.halved(at, 1.0, -199.0)  # 1 would promise 0.0199
    assert (size, there.value) == (0.5, pytest.approx(0.005))
    assert descent.halved(lambda size: SimpleNamespace(value=2.0), 1.0, -1.0) is None
    taken = descent.halved(at, 0.98, -199.0, settles=lambda there, rise: rise < 0.02)
    assert taken[1] == 1.0
    H = np.diag([1.0, -0.5])

    def factor(shift):
        return np.linalg.cholesky(H + shift * np.eye(2))

    C, shift = descent.shifted(factor, least=1e-3, growth=10, most=10)
    assert shift == pytest.approx(1.0)
    assert C @ C.T == pytest.approx(H + shift * np.eye(2))
    assert descent.shifted(factor, least=1e-3, growth=10, most=0.5) is None
    assert descent.shifted(factor, 0.7, least=1e-3, growth=10, most=1)[1] == 0.7
