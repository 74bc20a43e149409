"""The mathematics of `fit_nnor` and `fit_nnpom`: slopes, optimality, symmetries."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import TAILS, slopes
from scipy import sparse
from strategies import raises, sample

from ordinal import companions
from ordinal.exceptions import ConvergenceWarning
from ordinal.models import Status
from ordinal.networks import layers
from ordinal.networks.layers import Cumulative, OrderedCodes, log_odds

LINKS = ("logit", "probit", "cloglog", "loglog", "cauchit")
F = {link: below for link, (below, _) in TAILS.items()}
FITS = {
    "nnor": (companions.fit_nnor, {}),
    "nnor-squared": (companions.fit_nnor, {"loss": "squared"}),
    **{f"nnpom-{link}": (companions.fit_nnpom, {"link": link}) for link in LINKS},
}
every_fit = pytest.mark.parametrize("name", FITS)


def rings(n=300, seed=0):
    """Ranks by the distance from the middle, which no line tells apart."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, np.digitize(np.hypot(*X.T), [0.45, 0.75])


def weighted(n, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 3.0, n)


def of_outputs(loss, S, t):
    """(loss, slopes by S, slopes by t) of all rows."""
    by_S = S.copy()
    value, by_t = loss.terms(by_S, t, slice(0, S.shape[1]))
    return value, by_S, by_t


def raw_loss(name, Z, rank, share, U, V, b, l2):
    """(P) anew: standardised rows Z with a last column of ones, and offsets or b."""
    score = np.tanh(Z @ U) @ V.T
    m = b.size
    if name.startswith("nnpom"):
        ends = np.concatenate([[-np.inf], b, [np.inf]])
        link = F[name.removeprefix("nnpom-")]
        with np.errstate(over="ignore"):
            P = link(ends[rank + 1] - score[:, 0]) - link(ends[rank] - score[:, 0])
        losses = -np.log(P)
    else:
        o, code = F["logit"](score - b), np.arange(m) < rank[:, None]
        if name == "nnor-squared":
            losses = 0.5 * ((o - code) ** 2).sum(axis=1)
        else:
            losses = -np.log(np.where(code, o, 1 - o)).sum(axis=1)
    return share @ losses + 0.5 * l2 * ((U[:-1] ** 2).sum() + (V**2).sum())


def raw_parts(model, X, weight):
    share = weight / weight.sum()
    mean = share @ X
    deviation = np.sqrt(share @ (X - mean) ** 2)
    assert_allclose(model.mean, mean)
    assert_allclose(model.scale, deviation)
    Z = np.column_stack([(X - mean) / deviation, np.ones(len(X))])
    U = np.vstack([model.hidden_weights, model.hidden_bias])
    b = getattr(model, "offsets", getattr(model, "thresholds", None))
    return Z, share, U, np.atleast_2d(model.output_weights), b


@every_fit
def test_a_converged_fit_is_a_stationary_point_of_the_loss_of_raw_data(name):
    fit, options = FITS[name]
    X, y = sample(80, 4, noise=1.0)
    weight = weighted(80)
    model = fit(X, y, sample_weight=weight, n_hidden=3, l2=0.01, tol=1e-6, **options)
    Z, share, U, V, b = raw_parts(model, X, weight)
    assert np.abs(V).max() > 0.1  # not the model that says nothing
    c = model.convergence

    def at(x):
        u, v = U.size, U.size + V.size
        args = x[:u].reshape(U.shape), x[u:v].reshape(V.shape), x[v:]
        return raw_loss(name, Z, y, share, *args, model.l2)

    x = np.concatenate([U.ravel(), V.ravel(), b])
    assert c.primal == pytest.approx(at(x), rel=1e-10)
    assert c.converged
    assert c.violation <= 1e-6
    # slopes by thresholds are sums of those by their mean and by what a gap adds
    narrowest = np.diff(b).min() if name.startswith("nnpom") else 1.0
    assert np.abs(slopes(at, x, 1e-3)).max() < 4e-6 / min(1.0, narrowest)


@every_fit
def test_probabilities_are_those_of_the_loss(name):
    fit, options = FITS[name]
    X, y = sample(60, 4)
    model = fit(X, y, n_hidden=3, l2=0.03, **options)
    score = model.hidden(X) @ np.atleast_2d(model.output_weights).T
    if name.startswith("nnpom"):
        below = F[name.removeprefix("nnpom-")](model.thresholds - score)
        assert_allclose(model.decision_function(X), score[:, 0], atol=1e-12)
    else:
        below = 1 - F["logit"](score - model.offsets)
        assert_allclose(model.decision_function(X), score - model.offsets, atol=1e-12)
    ordered = (np.diff(below, axis=1) >= 0).all(axis=1)
    assert ordered.sum() > 30
    P = np.diff(below, axis=1, prepend=0.0, append=1.0)
    assert_allclose(model.predict_proba(X)[ordered], P[ordered], atol=1e-12)


@pytest.mark.parametrize("far", [0.0, 40.0, 190.0])
def test_probabilities_of_outputs_out_of_order_are_not_negative(far):
    model = companions.fit_nnor([[0.0], [1.0], [2.0], [3.0]], range(4), n_hidden=1)
    z = far + np.array([[1.0, 1.25, 1.5], [1.0, 0.5, 0.75], [1.5, 1.25, 1.0]])
    for outputs in (z, -z):
        P = model._proba(outputs)
        assert (P >= 0).all()
        assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    assert (model._proba(z)[:, 0] > 0).all()


def test_rules_on_outputs_out_of_order():
    X, y = sample(60, 4)
    model = companions.fit_nnor(X, y)
    # units that say nothing: the outputs are 0.4, 0.9 and 0.2 everywhere
    odds = -np.log(np.array([0.4, 0.9, 0.2]) / np.array([0.6, 0.1, 0.8]))
    flat = replace(model, output_weights=0 * model.output_weights, offsets=odds)
    assert set(flat.predict(X)) == {0}  # the scan ends at the first one
    P = flat.predict_proba(X)
    assert_allclose(P, np.tile([0.35, 0.0, 0.45, 0.2], (60, 1)), atol=1e-14)
    assert set(flat.predict(X, rule="median")) == {2}
    assert set(flat.predict(X, rule="mode")) == {2}


def test_an_estimator_decides_by_the_scan_if_asked():
    NNOR = pytest.importorskip("ordinal.sklearn").NNOR
    X, y = sample(200, 5, noise=3.0)
    X, y = X[y != 1], y[y != 1]  # a rank without rows
    found = NNOR(rule="scan", classes=range(5), l2=1e-5, max_iter=40)
    with pytest.warns(ConvergenceWarning):
        found.fit(X, y)
    labels = found.predict(X)
    assert_array_equal(labels, found.model_.predict(X))
    assert_array_equal(found.decision_function(X).argmax(axis=1), labels)
    # some outputs are out of order, so that the rules differ
    assert (labels != found.model_.predict(X, rule="median")).any()


def test_far_tails_keep_their_digits():
    up, down = log_odds(np.array([-800.0, -50.0, 0.0, 50.0, 800.0]))
    assert_allclose(up[:3], [0.0, np.exp(-50), 0.5], rtol=1e-14)
    assert_array_equal(down, up[::-1])
    rank, share = np.arange(3, dtype=np.int32), np.full(3, 1 / 3)
    for squared, far in product([False, True], [-1e4, 1e4]):
        codes = OrderedCodes(rank, share, squared)
        value, by_S, by_t = of_outputs(codes, np.full((2, 3), far), np.zeros(2))
        assert np.isfinite([value, *by_S.ravel(), *by_t]).all()
    loss = Cumulative(rank, share, "logit")
    value, by_S, _ = of_outputs(loss, np.full((1, 3), 1e4), np.zeros(2))
    assert value == pytest.approx(2 / 3 * 1e4, rel=1e-3)
    assert_allclose(by_S[0], np.array([1, 1, 0]) / 3, atol=1e-12)


@pytest.mark.parametrize("squared", [False, True])
def test_small_losses_keep_their_digits(squared):
    loss = OrderedCodes(np.array([1, 0], dtype=np.int32), np.ones(2), squared)
    for m in (0.0, 1e-9, 0.3, 5.0, 40.0, 600.0):
        value, by_S, _ = of_outputs(loss, np.array([[m, -m]]), np.zeros(1))
        wrong = np.exp(-m) / (1 + np.exp(-m))
        expected = wrong**2 if squared else 2 * np.log1p(np.exp(-m))
        assert value == pytest.approx(expected, rel=1e-14, abs=0)
        slope = wrong**2 / (1 + np.exp(-m)) if squared else wrong
        assert_allclose(by_S, [[-slope, slope]], rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_outputs_that_are_not_finite_have_no_loss(bad):
    rank, share = np.arange(200, dtype=np.int32) % 2, np.full(200, 1 / 200)
    for loss in (OrderedCodes(rank, share, False), Cumulative(rank, share, "logit")):
        S = np.zeros((1, 200))
        assert of_outputs(loss, S, np.zeros(1))[0] == pytest.approx(np.log(2))
        S[0, 150] = bad
        assert np.isnan(of_outputs(loss, S, np.zeros(1))[0])


def test_the_best_of_several_starts_is_kept():
    X, y = sample(90, 4, noise=2.0)
    options = {"n_hidden": 4, "l2": 1e-3}
    rng = np.random.default_rng(5)
    fit = companions.fit_nnpom
    ends = [fit(X, y, rng=rng, **options).convergence for _ in range(4)]
    several = fit(X, y, rng=5, n_starts=4, **options).convergence
    values = [c.primal for c in ends]
    assert max(values) > min(values) + 1e-3  # they do end in several places
    assert several.primal == min(values)
    assert several.violation == ends[int(np.argmin(values))].violation
    assert several.n_iter == sum(c.n_iter for c in ends)


def test_a_fit_that_is_stopped_before_its_last_start_says_so():
    X, y = rings(150)
    steps = []

    def stop(state):
        steps.append(state.n_iter)
        return len(steps) > 2 and steps[-1] == steps[-2]  # where a start begins

    with pytest.warns(ConvergenceWarning, match="fit_nnor: stopped after"):
        model = companions.fit_nnor(X, y, n_starts=3, callback=stop)
    first = companions.fit_nnor(X, y)
    assert model.convergence.status is Status.STOPPED
    assert_array_equal(model.output_weights, first.output_weights)


@every_fit
def test_rows_that_are_not_kept_and_sparse_ones_change_no_bit(name, monkeypatch):
    fit, options = FITS[name]
    X, y = sample(2100, 4, noise=1.0)  # three chunks
    X[np.abs(X) < 0.5] = 0.0
    options = {**options, "max_iter": 5, "tol": 0.5}
    model = fit(X, y, **options)
    monkeypatch.setattr(layers, "_KEPT", 0)
    for same in (fit(X, y, **options), fit(sparse.csr_array(X), y, **options)):
        assert_array_equal(same.output_weights, model.output_weights)
        assert_array_equal(same.hidden_weights, model.hidden_weights)
        assert_array_equal(
            same.decision_function(sparse.csr_array(X)), model.decision_function(X)
        )


def test_what_is_no_network_is_refused(tmp_path):
    X, y = sample(20, 3)
    with pytest.raises(ValueError, match=r"^loss must be one of 'cross_entropy', 'squ"):
        companions.fit_nnor(X, y, loss="hinge")
    with pytest.raises(ValueError, match=r"^link must be one of 'logit', 'probit', "):
        companions.fit_nnpom(X, y, link="log")
    X, y = sample(60, 4)
    model = companions.fit_nnor(X, y)
    bad = replace(model, observed=np.array([True, True, False, True]))
    raises(ValueError, "observed must name one rank more", bad.save, tmp_path / "bad")
    X, y = sample(60, 3)
    model = companions.fit_nnor(X, y, n_hidden=7)
    assert model.n_hidden == 7
    H = model.hidden(X)
    assert H.shape == (60, 7)
    assert np.abs(H).max() <= 1
    with pytest.raises(ValueError, match=r"^scores of the rows of X must be finite"):
        replace(model, scale=np.full(3, 1e-300)).decision_function(X * 1e300)
