"""As many ranks as rows: the structured computations are the dense ones, and nothing
grows with the square of the ranks."""

import functools
import io
import pickle
import sys
import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from strategies import at_most, raises

import ordinal
from ordinal import fit_clmm, fit_pom, fit_pom_path, inference
from ordinal._cumulative import likelihood, rowwise
from ordinal._model.threshold_model import decide
from ordinal.mixed import refits, search

KINDS = {
    "plain": {},
    "robust": {"robust": True},
    "cluster": {"cluster": True},
    "nominal": {"nominal": [0]},
    "robust nominal": {"nominal": [0], "robust": True},
    "cluster nominal": {"nominal": [0], "cluster": True},
    "scale": {"scale": [2]},
    "robust scale": {"scale": [2], "robust": True},
    "offset and weights": {"offset": True, "sample_weight": True, "link": "probit"},
}


def rows(n, ranks, seed=7):
    """Rows whose columns are far from 0 and of different units."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    y = Z @ [1.0, -0.5, 0.2] + rng.logistic(size=n)
    return Z * [1, 10, 0.1] + [0, 100, 2], np.argsort(np.argsort(y)) * ranks // n


def dense(monkeypatch):
    """Let fits form the matrices of few thresholds."""
    for module in (likelihood, rowwise, search, refits):
        monkeypatch.setattr(module, "CHAIN", 10**9)


crossing = pytest.mark.filterwarnings(
    "ignore::ordinal.exceptions.DisorderedThresholdsWarning"
)


@crossing
@pytest.mark.parametrize("kind", KINDS)
def test_covariances_are_those_of_the_dense_matrix(kind, monkeypatch):
    n = 1200
    (X, y), rng = rows(n, 105), np.random.default_rng(1)
    given_rows = {"cluster": np.arange(n) % 30, "offset": rng.normal(size=n)}
    given_rows["sample_weight"] = rng.integers(1, 4, n)
    how = {k: given_rows.get(k, v) for k, v in KINDS[kind].items()}
    model = fit_pom(X, y, **how)
    assert not isinstance(model.statistics.uncertainty, np.ndarray)
    dense(monkeypatch)
    whole = fit_pom(X, y, **how)
    V = whole.statistics.uncertainty
    error = np.sqrt(np.diagonal(V))
    assert_allclose(model.coef, whole.coef, rtol=1e-9)
    assert_allclose(model.standard_errors, error, rtol=1e-9)
    within = np.outer(error, error)
    assert_allclose(model.covariance / within, V / within, atol=1e-9)
    A = rng.normal(size=(2, error.size)) / error
    assert_allclose(A @ model.statistics.uncertainty @ A.T, A @ V @ A.T, rtol=1e-8)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    for copy in (ordinal.load(file), pickle.loads(pickle.dumps(model))):
        assert_array_equal(copy.standard_errors, model.standard_errors)


@given(st.integers(0, 10**6), st.sampled_from(["logit", "cloglog", "loglog"]))
@at_most(8)
def test_medians_are_found_among_the_thresholds(seed, link):
    X, y = rows(160, 130, seed)
    X = X - X.mean(axis=0)
    # Ranks without rows, at the ends as well, are never predicted.
    model = fit_pom(X, y, link=link, l2=1e-3, classes=[-1, *range(200)])
    P = model.predict_proba(X)
    assert_array_equal(model.predict(X), model.classes[decide(P, "median")])
    assert_array_equal(model.predict(X, rule="cost"), model.predict(X))
    assert_array_equal(model.predict(X, rule="mode"), model.classes[P.argmax(axis=1)])


def test_a_path_is_that_of_the_dense_matrix(monkeypatch):
    X, y = rows(240, 240)
    X = np.hstack([X / [1, 10, 0.1], np.random.default_rng(0).normal(size=(240, 5))])
    path = fit_pom_path(X, y, n_lambdas=6)
    dense(monkeypatch)
    whole = fit_pom_path(X, y, n_lambdas=6)
    assert_allclose(path.coefs, whole.coefs, atol=1e-9)
    assert_allclose(path.thresholds, whole.thresholds, atol=1e-8)


@crossing
@pytest.mark.parametrize(
    ("nominal", "width"), [((), 0), ([1], 0), ((), 3)], ids=["plain", "nominal", "open"]
)
def test_a_mixed_model_is_that_of_the_dense_matrix(nominal, width, monkeypatch):
    rng = np.random.default_rng(5)
    (n, ranks), judge = (220, 220) if not nominal else (600, 104), None
    judge = rng.integers(0, n // 5, n)
    X = rng.normal(size=(n, 2))
    y = X @ [1.0, -0.5] + rng.normal(size=n // 5)[judge] + rng.logistic(size=n)
    y = np.argsort(np.argsort(y)) * ranks // n
    if width:  # some ranks are known as intervals
        y = y // 2
        first = y - rng.integers(0, width, n) * (rng.random(n) < 0.3)
        y = ordinal.RankIntervals(np.maximum(first, 0), y)
    how = {"groups": {"judge": judge}, "n_quadrature": 1, "nominal": nominal}
    model = fit_clmm(X, y, **how)
    dense(monkeypatch)
    whole = fit_clmm(X, y, **how)
    assert model.convergence.converged
    assert_allclose(model.loglik, whole.loglik, rtol=1e-10)
    assert_allclose(model.parameters, whole.parameters, atol=1e-6)
    error = np.sqrt(np.diagonal(whole.joint_covariance))
    within = np.outer(error, error)
    V, dense_V = model.joint_covariance / within, whole.joint_covariance / within
    assert_allclose(V, dense_V, atol=1e-5)


def test_a_rank_per_row_takes_memory_in_proportion():
    n = 8000
    X, y = rows(n, n)
    fit_pom(X[:50], y[:50] % 3)
    tracemalloc.start()
    model = fit_pom(X, y)
    table, labels = model.table(), model.predict(X)
    model.predict(X, rule="cost")
    inference.residuals(model), inference.drop1(model), inference.simulate(model, rng=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6000 * n  # bytes; n^2 entries are ten times as many
    assert table["standard_error"].size == n - 1 + 3
    assert abs(np.mean(labels <= y) - 0.5) < 0.05
    file = io.BytesIO()
    model.save(file)
    assert len(file.getvalue()) < 100 * n


@functools.cache
def _continuous():
    return fit_pom(*rows(9000, 9000))


@pytest.mark.parametrize("call", [
    inference.augment, inference.influence, inference.goodness_of_fit,
    inference.hosmer_lemeshow, inference.marginal_effects, inference.jeffreys,
    inference.proportional_odds_test,
])  # fmt: skip
def test_tables_of_rows_and_ranks_are_refused_with_the_reason(call):
    raises(ValueError, r"9000|8999", call, _continuous())


@functools.cache
def _mixed(**how):
    """Rows of 60 groups in 110 of 120 ranks, and a mixed model of them."""
    rng = np.random.default_rng(3)
    X, g = rng.normal(size=(220, 2)), rng.integers(0, 60, 220)
    y = X @ [1.0, -0.5] + rng.normal(size=60)[g] + rng.logistic(size=220)
    y = np.argsort(np.argsort(y)) // 2
    # Ranks without rows at both ends and within.
    y, classes = y + (y > 40) * 3, range(-2, 120)
    how = {"n_quadrature": 1, "classes": classes, **how}
    return X, g, y, fit_clmm(X, y, groups={"g": g}, **how)


@crossing
@pytest.mark.parametrize("how", [{}, {"link": "cloglog", "scale": (0,)}])
def test_medians_of_mixed_models_are_found_among_the_thresholds(how):
    X, g, _, model = _mixed(**how)
    offset = np.random.default_rng(0).normal(size=len(X))
    known = {"effects": "known", "groups": {"g": g}}
    some = {"effects": "known_or_new", "groups": {"g": g + 30}}
    for effects in ({}, {"effects": "average"}, known, some):
        P = model.predict_proba(X, offset=offset, **effects)
        assert_allclose(P.sum(axis=1), 1.0)
        median = model.predict(X, offset=offset, **effects)
        assert_array_equal(median, model.classes[decide(P, "median")])
        for rule, named in (
            ("cost", median),
            ("mode", model.classes[P.argmax(axis=1)]),
        ):
            found = model.predict(X, rule=rule, offset=offset, **effects)
            assert_array_equal(found, named)


def test_predictions_of_mixed_models_hold_no_table_of_rows_and_ranks():
    X, g, y, model = _mixed()
    n = 100_000
    X, groups = np.tile(X[:200], (n // 200, 1)), {"g": np.tile(g[:200], n // 200)}
    labels = np.tile(y[:200], n // 200)
    known = {"effects": "known", "groups": groups}
    model.predict(X[:5])
    tracemalloc.start()
    calls = (
        lambda: model.predict(X, **known),
        lambda: inference.predictions(model, X, kind="mean", effects="average"),
        lambda: inference.residuals(model, X, labels, groups=groups),
        lambda: inference.simulate(model, X, groups=groups, rng=0),
    )
    for call in calls:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        # Probabilities of all rows and ranks alone are 98 MB; some blocks
        # are 8 MB, in up to six arrays.
        assert tracemalloc.get_traced_memory()[1] - before < 70e6
    tracemalloc.stop()


def test_figures_and_reports_of_many_ranks_leave_out_parts_by_rank(tmp_path):
    X, y = rows(90, 90)
    model = fit_pom(X, y)
    figures = ordinal.plot.scores, ordinal.plot.confusion_matrix
    for draw in (*figures, ordinal.plot.reliability):
        raises(ValueError, "draws every rank, and there are 90", draw, model, X, y)
    with pytest.raises(ValueError, match="of the probability draws every rank"):
        ordinal.plot.partial_dependence(model, X, "x1", of="probability")
    ax = ordinal.plot.partial_dependence(model, X, "x1", at=5)
    assert (ax.get_ylabel(), len(ax.texts)) == ("score", 0)
    with patch.dict(sys.modules, {"matplotlib": None}):  # figures are slow
        model.report(X, y, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Tables and figures by rank are for at most 50 ranks" in page
    assert "<h2>Confusion matrix" not in page
    assert "<h2>Calibration" in page


@pytest.mark.parametrize("how", [{}, {"robust": True}])
def test_errors_of_many_intervals_do_not_depend_on_the_form_of_columns(how):
    X, y = rows(500, 110)
    rng = np.random.default_rng(2)
    first = np.maximum(y - rng.integers(0, 4, 500) * (rng.random(500) < 0.3), 0)
    ranks = ordinal.RankIntervals(first, y)
    dense_model = fit_pom(X, ranks, **how)
    sparse_model = fit_pom(csr_array(X), ranks, **how)
    assert_allclose(dense_model.coef, sparse_model.coef, rtol=1e-6)
    errors = dense_model.standard_errors, sparse_model.standard_errors
    assert_allclose(*(e[-3:] for e in errors), rtol=1e-6)
