"""LIT and LAT, `ordinal.logistic`: (P2), its kernel, the search of thresholds."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pom_data import SETS
from scipy import sparse
from scipy.optimize import linprog
from strategies import datasets, sample

import ordinal
from ordinal._solvers import _threshold_losses
from ordinal.logistic import objective as thresholded
from ordinal.models import Status

FITS = {"lit": ordinal.companions.fit_lit, "lat": ordinal.companions.fit_lat}
every_loss = pytest.mark.parametrize("name", FITS)
penalties = st.sampled_from([1e-4, 3e-2, 1.0])


def terms(name, rank, T):
    """Return the thresholds at which a row has a loss, (n, T), and its sides there."""
    j = np.arange(T)
    beside = (j == rank[:, None]) | (j == rank[:, None] - 1)
    return (beside if name == "lit" else np.ones_like(beside)), np.where(
        rank[:, None] > j, 1, -1
    )


def slopes(name, model, X, rank, weight):
    """(P2), and its slopes by the coefficients and the thresholds."""
    used, s = terms(name, rank, model.thresholds.size)
    z = (X @ model.coef)[:, None] - model.thresholds
    value = (weight / weight.sum()) @ (used * np.logaddexp(0, -s * z)).sum(axis=1)
    value += model.l2 / 2 * (model.coef @ model.coef)
    by_score = -(weight / weight.sum())[:, None] * used * s / (1 + np.exp(s * z))
    by_coef = by_score.sum(axis=1) @ X + model.l2 * model.coef
    return value, by_coef, -by_score.sum(axis=0)


@every_loss
# a feature of little spread has a price that is 1e12 times the curvature of the losses
@example(case=(np.eye(11, 1) * [1.0, 2.0**-23], np.arange(11), 11), l2=1e-4, weights=1)
@given(case=datasets(), l2=penalties, weights=st.sampled_from([1, 3]))
def test_the_returned_point_satisfies_kkt(name, case, l2, weights):
    """The conditions of the optimum of (P2), which is convex."""
    X, y, r = case
    weight = 1.0 + np.arange(y.size) % weights
    model = FITS[name](X, y, l2=l2, sample_weight=weight, tol=1e-9)
    value, by_coef, by_threshold = slopes(name, model, X, y, weight)
    assert_allclose(model.convergence.primal, value, rtol=1e-12)
    assert_allclose(by_coef, 0, atol=1e-9 * (1 + np.abs(X).max()))
    b = model.thresholds
    assert (np.diff(b) >= 0).all()
    # equal thresholds are held by forces that push them together and add up to nothing
    pools = np.split(by_threshold, 1 + np.flatnonzero(np.diff(b) > 0))
    for pool in pools:
        force = np.cumsum(pool)
        assert abs(force[-1]) <= 1e-12
        assert force.max() <= 1e-12
    if name == "lat":
        assert len(pools) == r - 1


# Fits of mord 0.7, by tests/reference/logistic_thresholds.py.
MORD = json.loads((Path(__file__).parent / "data" / "mord_reference.json").read_text())


@pytest.mark.parametrize("fact", MORD, ids=lambda f: f"{f['set']}-{f['method']}")
def test_mord_fits_the_same(fact):
    X, y, _, weight, _ = SETS[fact["set"]]
    model = FITS[fact["method"]](X, y, l2=fact["l2"], sample_weight=weight)
    found = np.concatenate([model.coef, model.thresholds])
    assert_allclose(found, fact["found"], atol=1e-5)


@every_loss
def test_features_far_from_zero_lose_no_digits(name):
    X, y = sample(80, 3)
    near = FITS[name](X, y, l2=0.0)
    scale = np.array([1e-3, 1.0, 50.0])[: X.shape[1]]
    far = FITS[name](1e6 * scale + X * scale, y, l2=0.0)
    # what is left of X beside 1e6 has 10 digits
    assert_allclose(far.coef * scale, near.coef, rtol=1e-8)
    found = far.thresholds - far.coef @ (1e6 * scale)
    assert_allclose(found, near.thresholds, atol=1e-6)


@every_loss
def test_sparse_rows_and_lbfgs_find_the_same(name, monkeypatch):
    X, y = sample(90, 4)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = FITS[name](X, y)
    held = FITS[name](sparse.csr_array(X), y)
    monkeypatch.setattr(thresholded, "HESSIAN_COLUMNS", 0)
    for rows in (X, sparse.csr_array(X)):
        other = FITS[name](rows, y, tol=1e-9)
        assert other.convergence.n_iter > dense.convergence.n_iter
        for model in (held, other):
            assert_allclose(model.coef, dense.coef, atol=1e-6)
            assert_allclose(model.thresholds, dense.thresholds, atol=1e-6)


def is_separated(name, X, rank, T):
    """Decide by linear programming whether there is a direction along which no loss of
    (P2) grows, and one falls."""
    used, s = terms(name, rank, T)
    row, j = np.nonzero(used)
    margins = s[row, j, None] * np.column_stack([X[row], -np.eye(T)[j]])
    order = np.diff(np.eye(T), axis=0)  # which the losses of LIT do not imply
    order = np.column_stack([np.zeros((T - 1, X.shape[1])), order])
    rows = np.vstack([margins, order])
    zero = np.zeros(len(rows))
    return -linprog(-margins.sum(0), A_ub=-rows, b_ub=zero, bounds=(-1, 1)).fun > 1e-7


def fitted(name, X, y, **options):
    """A model without penalty, and what was warned of."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model = FITS[name](X, y, l2=0.0, **options)
    for array in (model.coef, model.thresholds):
        assert np.isfinite(array).all()
    return model, [str(w.message) for w in caught]


def few_rows(seed):
    """Few rows, tied or not, of which some are separated in every manner."""
    rng = np.random.default_rng(seed)
    n, d, T = (int(rng.integers(*ends)) for ends in ((4, 20), (1, 4), (1, 4)))
    X = rng.normal(size=(n, d))
    X = np.round(X) if rng.random() < 0.5 else X
    score = X @ rng.normal(size=d) * rng.choice([0.0, 1.0, 3.0])
    y = np.clip(np.round(score + rng.normal(size=n) * rng.choice([0.0, 0.5])), 0, T)
    y[:2] = 0, 1
    return X, np.unique(y, return_inverse=True)[1]


@every_loss
@given(case=st.integers(0, 2**32 - 1).map(few_rows))
def test_a_fit_is_separated_where_linear_programming_finds_a_direction(name, case):
    X, y = case
    model, messages = fitted(name, X, y)
    is_so = is_separated(name, X, y, y.max())
    assert (model.separated.size > 0) == is_so
    assert model.convergence.status is (Status.SEPARATED if is_so else Status.CONVERGED)
    assert len(messages) == is_so


@every_loss
@pytest.mark.parametrize("newton", [0, 2000])
def test_quasi_complete_separation_names_its_features(name, newton, monkeypatch):
    """A level whose rows all have the highest rank."""
    monkeypatch.setattr(thresholded, "HESSIAN_COLUMNS", newton)
    X, y = sample(80, 3, noise=1.5)
    rare = np.zeros(80)
    rare[np.flatnonzero(y == 2)[:4]] = 1.0
    model, messages = fitted(name, np.column_stack([X, rare]), y)
    d = X.shape[1]
    assert_array_equal(model.separated, [d])
    assert model.convergence.status is Status.SEPARATED
    assert messages == [
        f"fit_{name}: separated: 'x{d + 1}' separate ranks without error, "
        "so no finite coefficients are optimal, and those returned only indicate the "
        "direction in which they diverge; l2 > 0 gives finite ones"
    ]
    # the others are those of the fit without the rows that the level predicts
    rest, messages = fitted(name, X[rare == 0], y[rare == 0])
    assert not messages
    assert_allclose(model.coef[:d], rest.coef, rtol=1e-4, atol=1e-4)


@every_loss
def test_the_tolerance_bounds_the_distance_from_the_minimum(name):
    X, y = sample(200, 5, noise=2.0)
    best = FITS[name](X, y, tol=1e-12).convergence.primal
    for tol in (10.0, 1.0, 0.1, 1e-3):
        c = FITS[name](X, y, tol=tol).convergence
        assert 0 <= c.primal - best + 1e-15
        assert c.primal - best <= 1.5 * c.violation**2 / (2 * 200) + 1e-15


@every_loss
def test_scores_far_out_have_finite_losses(name):
    f, rank = np.array([-800.0, -40.0, 0.0, 40.0, 800.0]), np.array([2, 0, 1, 2, 0])
    rank = rank.astype(np.int32)
    slope, curvature, value = np.empty(5), np.empty(5), np.empty(1)
    _threshold_losses.by_row(
        f, np.array([-1.0, 1.0]), rank, np.ones(5), np.ones(2), name == "lit", slope,
        curvature, value, 1,
    )  # fmt: skip
    lost = 2 * 801 + 2 * 799 * (name == "lat")
    assert_allclose(value[0], lost + 2 * np.log1p(np.exp(-1)), rtol=1e-12)
    assert np.isfinite([slope, curvature]).all()
    # a term is e^-m where it is small: beside 1 it would be lost
    assert 0 < -slope[3] < 2 * np.exp(-39) * (1 + 1e-12)
