"""The limited-memory quasi-Newton method by itself."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from ordinal import Status
from ordinal._model.monitor import Monitor, OutOfTime
from ordinal._numerics.lbfgs import minimize


def run(fun, x, tol=1e-8, max_iter=10_000, callback=None, **options):
    monitor = Monitor("test", tol, callback)
    x = np.asarray(x, dtype=float)
    return minimize(fun, x, tol=tol, max_iter=max_iter, monitor=monitor, **options)


def rosenbrock(x):
    return optimize.rosen(x), optimize.rosen_der(x)


@given(st.integers(1, 12), st.floats(0, 4), st.integers(0, 2**32 - 1))
def test_the_minimum_of_a_quadratic_is_found(p, decades, seed):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    A = Q @ np.diag(np.logspace(0, decades, p)) @ Q.T
    b = rng.normal(size=p)
    found = run(lambda x: (0.5 * x @ A @ x - b @ x, A @ x - b), rng.normal(size=p))
    assert found.status is Status.CONVERGED
    assert np.abs(A @ found.x - b).max() <= 1e-8
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), atol=1e-7)


@pytest.mark.parametrize("p", [2, 10, 60])
def test_rosenbrock_takes_about_the_evaluations_of_scipy(p):
    start = np.full(p, -1.2)
    found = run(rosenbrock, start)
    peer = optimize.minimize(
        rosenbrock, start, jac=True, method="L-BFGS-B",
        options={"gtol": 1e-8, "ftol": 0, "maxfun": 10**5},
    )  # fmt: skip
    assert found.status is Status.CONVERGED
    assert found.value <= 1e-12
    assert found.n_eval <= 1.3 * peer.nfev + 10


def test_what_is_returned_is_one_evaluated_point():
    found = run(rosenbrock, [-1.2, 1.0], max_iter=7)
    value, gradient = rosenbrock(found.x)
    assert (found.value, found.n_iter, found.status) == (value, 7, Status.MAX_ITER)
    np.testing.assert_array_equal(found.gradient, gradient)
    assert found.violation == np.abs(gradient).max()


@given(st.floats(1e-3, 1e3), st.floats(0.1, 1e3))
def test_a_step_out_of_the_domain_is_shortened(start, scale):
    """The first step has the length 1, which is `scale` in units of the optimum."""

    def barrier(x):
        z = x * scale
        if z[0] <= 0:
            return np.nan, np.array([np.nan])
        return z[0] - np.log(z[0]), (1 - 1 / z) * scale

    found = run(barrier, [start / scale], tol=1e-8 * scale)
    assert found.status is Status.CONVERGED
    assert found.x[0] * scale == pytest.approx(1.0, abs=1e-7)


@given(st.integers(0, 2**32 - 1))
def test_no_step_is_uphill_nor_longer_than_asked(seed):
    seen = []
    rng = np.random.default_rng(seed)

    def fun(x):
        value, gradient = rosenbrock(x)
        seen.append((x, value))
        return value, gradient

    ends = []
    minimum = run(
        fun, rng.normal(size=4), max_step=0.3, max_iter=50,
        callback=lambda state: ends.append(len(seen)),
    )  # fmt: skip
    accepted = [seen[end - 1] for end in ends]
    values = [value for _, value in accepted]
    # the last trial of a line is the point taken
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(values))
    for (a, _), (b, _) in pairwise(accepted):
        assert np.linalg.norm(b - a) <= 0.3 * (1 + 1e-9)
    assert minimum.n_eval == len(seen)


def test_without_a_lower_point_it_stalls():
    found = run(lambda x: (abs(x[0]), np.sign(x) + (x == 0)), [0.0])
    assert found.status is Status.STALLED
    assert found.x[0] == 0


def test_rounding_of_the_value_does_not_hide_the_minimum():
    """Near it a value of 1e6 changes by less than its last digit; slopes still tell."""
    found = run(lambda x: (1e6 + ((x - 1) ** 2).sum(), 2 * (x - 1)), [3.0, -2.0])
    assert found.status is Status.CONVERGED


def test_the_unit_of_the_function_changes_no_bit():
    """A power of two, with which squares of slopes along the first line overflow; its
    step of length 1 is too long."""

    def in_unit(unit):
        def fun(x):
            return unit * float((x**4 + x**2).sum()), unit * (4 * x**3 + 2 * x)

        return run(fun, [0.3, -0.2], tol=1e-9 * unit)

    one, other = in_unit(1.0), in_unit(2.0**400)
    assert one.status is other.status is Status.CONVERGED
    assert one.n_eval == other.n_eval
    assert (one.x == other.x).all()


def test_at_the_minimum_nothing_is_done():
    found = run(lambda x: (float(x @ x), 2 * x), [0.0, 0.0])
    assert (found.n_iter, found.n_eval, found.status) == (0, 1, Status.CONVERGED)


def test_a_start_beyond_the_domain_is_an_error():
    with pytest.raises(ValueError, match="not finite at the given point"):
        run(lambda x: (np.inf, x), [1.0])


def test_time_that_is_up_ends_a_line_search():
    """A line may take 40 evaluations, of which each may take long."""
    evaluated, asked = [], []
    monitor = Monitor("test", 1e-8)
    monitor.late = lambda: len(asked) >= 3 or bool(asked.append(None))

    def narrow(x):  # finite in a tiny neighbourhood of 0 only
        evaluated.append(x)
        return (float(x[0]) if abs(x[0]) < 1e-30 else np.inf), np.ones(1)

    found = minimize(narrow, np.zeros(1), tol=1e-8, max_iter=9, monitor=monitor)
    assert (found.status, found.n_iter) == (Status.MAX_TIME, 0)
    assert found.n_eval == len(evaluated) <= 4
    assert found.x == [0]
    assert found.value == 0


def test_a_start_that_takes_too_long_is_returned_as_it_is():
    def fun(x):
        raise OutOfTime

    found = run(fun, [1.0, 2.0])
    assert (found.status, found.n_iter, found.n_eval) == (Status.MAX_TIME, 0, 1)
    np.testing.assert_array_equal(found.x, [1, 2])
    assert found.violation == np.inf


def test_a_callback_stops_it():
    found = run(rosenbrock, [-1.2, 1.0], callback=lambda state: state.n_iter >= 3)
    assert (found.status, found.n_iter) == (Status.STOPPED, 3)
