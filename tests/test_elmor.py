"""The mathematics of `fit_elmor`: its equations, rows that are left out, its codes."""

import numpy as np
import pytest
from files import solution
from numpy.testing import assert_allclose, assert_array_equal
from strategies import raises, sample

import ordinal

X60, Y60 = sample(60, 4)
WEIGHT = np.random.default_rng(1).integers(1, 4, 60)


def codes(y):
    return np.where(y[:, None] > np.arange(y.max()), 1.0, -1.0)


def solved(H, C, weight, ridge):
    """(V, a) of the normal equations with a column of ones, which has no penalty."""
    A = np.column_stack([H, np.ones(len(H))])
    D = np.diag(np.append(np.full(H.shape[1], ridge), 0.0))
    v = weight / weight.sum()
    found = np.linalg.solve(A.T @ (v[:, None] * A) + D, A.T @ (v[:, None] * C))
    return found[:-1], found[-1]


def left_out_error(H, y, weight, ridge):
    """|c - o|^2 of the mean row by as many fits as there are rows, each without an
    observation of one, and with the same penalty beside the others."""
    C, total = codes(y), 0.0
    for i in range(len(y)):
        less = weight.astype(float)
        less[i] -= 1
        V, a = solved(H, C, less, ridge * weight.sum() / less.sum())
        total += weight[i] * ((C[i] - H[i] @ V - a) ** 2).sum()
    return total / weight.sum()


@pytest.mark.parametrize("ridge", [1e-6, 0.01, 3.0])
def test_the_outputs_are_those_of_the_normal_equations(ridge):
    given = {"n_hidden": 20, "sample_weight": WEIGHT}
    model = ordinal.companions.fit_elmor(X60, Y60, ridge=ridge, **given)
    H = model.hidden(X60)
    V, a = solved(H, codes(Y60), WEIGHT, ridge)
    assert_allclose(model.output_weights.T, V, rtol=1e-6, atol=1e-8)
    assert_allclose(model.intercept, a, rtol=1e-6, atol=1e-8)
    assert_allclose(model.decision_function(X60), H @ V + a, rtol=1e-7, atol=1e-9)
    error = ((codes(Y60) - H @ V - a) ** 2).sum(axis=1)
    objective = np.average(error, weights=WEIGHT) + ridge * (V**2).sum()
    assert_allclose(model.convergence.primal, objective, rtol=1e-9)
    assert model.convergence.violation < 1e-10
    assert model.loo_error is None


def test_the_ridge_has_the_least_error_of_a_grid():
    given = {"n_hidden": 20, "sample_weight": WEIGHT}
    model = ordinal.companions.fit_elmor(X60, Y60, tol=1e-3, **given)
    H = model.hidden(X60)
    near = [left_out_error(H, Y60, WEIGHT, model.ridge * f) for f in (0.9, 1.0, 1.1)]
    assert_allclose(model.loo_error, near[1], rtol=1e-8)
    assert near[1] < min(near[0], near[2])
    unit = model.ridge * 10.0 ** np.arange(-4, 5)
    least = min(left_out_error(H, Y60, WEIGHT, u) for u in unit)
    assert model.loo_error <= least * (1 + 1e-12)  # one of them is the ridge itself
    rough = ordinal.companions.fit_elmor(X60, Y60, tol=0.5, **given)
    assert abs(np.log(rough.ridge / model.ridge)) < 0.5
    assert rough.convergence.violation <= 0.5


def test_a_ridge_at_the_end_of_the_range_is_taken():
    """With ranks that are independent of the features, every row has them all."""
    X, y = np.repeat(X60[:20], 3, axis=0), np.tile([0, 1, 2], 20)
    model = ordinal.companions.fit_elmor(X, y, n_hidden=5)
    assert model.convergence.converged
    assert_allclose(model.ridge / (np.cov(model.hidden(X).T, ddof=0).trace() / 5), 1e3)


def test_ranks_are_those_of_the_nearest_code():
    model = ordinal.companions.fit_elmor(X60, Y60, n_hidden=20)
    o = model.decision_function(X60)
    square = ((o[:, None] - codes(np.arange(4))) ** 2).sum(axis=2)
    assert_array_equal(model.predict(X60), square.argmin(axis=1))
    expected = (square - square.min(axis=1, keepdims=True)) / 4
    assert_allclose(-model.rank_values(o), expected, atol=1e-12)
    # of outputs in order it is the number of those above 0
    falling = -np.sort(-o, axis=1)
    nearest = model.rank_values(falling).argmax(axis=1)
    assert_array_equal(nearest, (falling > 0).sum(axis=1))
    message = r"^outputs must not be NaN, got nan in row 0, column 1$"
    raises(ValueError, message, model.rank_values, [[0.0, np.nan, 1.0]])


def test_the_link_is_fitted_to_what_is_left_out():
    """Ranks at random: outputs of training rows would tell them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    given = {"ridge": 1e-5, "n_hidden": 60, "probability": True}
    model = ordinal.companions.fit_elmor(X, y, **given)
    assert (model.predict(X) == y).mean() > 0.75
    assert np.abs(model.predict_proba(X) - np.bincount(y) / 80).mean() < 0.15
    # a row that is all of its rank is judged by all
    y = np.where(np.arange(60) == 7, 9, Y60)
    model = ordinal.companions.fit_elmor(X60, y, probability=True)
    assert np.isfinite(model.link.offsets).all()
    assert_allclose(model.predict_proba(X60).sum(axis=1), 1, rtol=1e-12)


def test_what_is_kept_of_the_rows_changes_no_bit(monkeypatch):
    X, y = sample(300, 4)
    models = []
    for kept in (0, 10**9):
        monkeypatch.setattr("ordinal.networks.extreme._KEPT", kept)
        models.append(ordinal.companions.fit_elmor(X, y))
    assert solution(models[0]) == solution(models[1])
