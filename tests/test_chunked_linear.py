"""Linear models of rows that are read in chunks are those of the rows in memory."""

import numpy as np
import pytest
import scipy.sparse
from internals import CHUNK, Arrays, ChunkedProblem, Design, Problem
from numpy.testing import assert_allclose
from registry import FITS
from sources import Cut, mapped
from strategies import raises

import ordinal
from ordinal._cumulative.fitting import likelihood_of
from ordinal._cumulative.rowwise import ChunkedLikelihood
from ordinal.exceptions import CollinearColumnsWarning, ConvergenceWarning

N = 2 * CHUNK + 777
SAME = 1e-10  # relative: sums over other groups of rows round in other ways
ESTIMATES = ("alpha", "nominal_coef", "coef", "scale_coef", "covariance")


def table(n, d=4, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.resize([1, 2, 5, 1], d) + 1
    score = X @ np.resize([1, 0.5, 0.2, -0.3], d) + rng.logistic(size=n)
    return X, np.searchsorted(np.quantile(score, [0.3, 0.6, 0.8]), score) + 1


@pytest.fixture(scope="module")
def rows():
    return table(N)


def cuts(X, *others):
    """The same rows in other blocks."""
    n = X.shape[0]
    return [Cut(ends, X, *others) for ends in (range(1000, n, 1777), [5, n // 2], [])]


def bytes_of(model, names=ESTIMATES):
    return [getattr(model, name).tobytes() for name in names]


def assert_near(model, whole, names=ESTIMATES):
    for name in names:
        ours, theirs = getattr(model, name), getattr(whole, name)
        least = SAME * np.abs(theirs).max(initial=0.0)
        assert_allclose(ours, theirs, rtol=SAME, atol=least)
    assert model.convergence.status == whole.convergence.status
    assert model.convergence.n_iter == whole.convergence.n_iter


@pytest.mark.parametrize(("name", "options"), [
    ("pom", {"nominal": [0], "scale": [2], "link": "cloglog", "robust": True}),
    ("pom", {"threshold": "equidistant", "link": "loglog"}),
    ("pom", {"class_weight": {1: 2.0}, "offset": np.sin(np.arange(N)),
             "threshold": "symmetric"}),
    *(pytest.param(*case, marks=pytest.mark.slow("five fits of 17 000 rows"))
      for case in (
        ("pom", {"link": "probit", "l2": 0.01}),
        ("pom", {"link": "cauchit", "robust": True}),
        ("lit", {}), ("lit", {"l2": 0.0, "class_weight": "balanced"}),
        ("lat", {}), ("lat", {"l2": 0.0, "class_weight": "balanced"}))),
])  # fmt: skip
def test_models_of_blocks_are_those_of_rows_in_memory(name, options, rows, tmp_path):
    (X, y), w, fit = rows, 1.0 + np.arange(N) % 3, FITS[f"fit_{name}"]
    names = ESTIMATES if name == "pom" else ("coef", "thresholds")
    if "l2" in options and name == "pom":  # without errors
        names = ESTIMATES[:-1]
    whole = fit(X, y, sample_weight=w, **options)
    first = fit(mapped(X, tmp_path), y, sample_weight=w, **options)
    assert_near(first, whole, names)
    assert_allclose(first.convergence.primal, whole.convergence.primal, rtol=SAME)
    if name == "pom":
        assert_allclose(first.loglik, whole.loglik, rtol=SAME)
        null = [model.statistics.null_loglik for model in (first, whole)]
        assert_allclose(*null, rtol=SAME)
    for source, n_threads in zip(cuts(X, y, w), (3, 1, 1), strict=True):
        model = fit(source, None, n_threads=n_threads, **options)
        assert bytes_of(model, names) == bytes_of(first, names)
        assert source.open == 0
        assert source.passes > 2


def test_many_rows_begin_at_the_minimum_of_some():
    X, y = table(9 * CHUNK, 2)
    whole, model = ordinal.fit_pom(X, y), ordinal.fit_pom(Cut([99], X, y), None)
    assert_near(model, whole)
    assert model.convergence.n_iter == 3


def test_rows_of_weight_0_are_left_out(rows):
    X, y = rows[0].copy(), rows[1].copy()
    w = np.ones(N)
    w[:CHUNK], w[CHUNK + 5 : CHUNK + 9] = 0, 0
    X[w == 0], y[w == 0] = 1e3, 9
    options = {"classes": [1, 2, 3, 4, 9]}
    whole = ordinal.fit_pom(X[w > 0], y[w > 0], **options)
    model = ordinal.fit_pom(Cut([77], X, y, w), None, **options)
    assert_allclose(model.parameters, whole.parameters, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "columns"), [("pom", 5), ("pom", 2010), ("lit", 5), ("lat", 2010)]
)
def test_sparse_columns(name, columns):
    rng, fit = np.random.default_rng(0), FITS[f"fit_{name}"]
    held = rng.normal(size=((CHUNK if columns < 9 else 0) + 500, columns))
    X = scipy.sparse.csr_array(
        held * (rng.random(held.shape) < (0.6 if columns < 9 else 0.05))
    )
    score = X @ np.resize([1, -1, 0.5], columns) + rng.logistic(size=X.shape[0])
    y = np.digitize(score, [-1, 1])
    options = {"l2": 0.1, "tol": 1e-5} if columns > 2000 else {}
    whole = fit(X, y, **options)
    model, other = (fit(c, None, **options) for c in cuts(X, y)[:2])
    if columns > 2000:  # L-BFGS ends where slopes are below tol, not at rounding
        assert_allclose(model.coef, whole.coef, atol=1e-4)
        assert getattr(model, "covariance", None) is None
        assert model.coef.tobytes() == other.coef.tobytes()
    else:
        names = ESTIMATES if name == "pom" else ("coef", "thresholds")
        assert_near(model, whole, names)
        assert bytes_of(model, names) == bytes_of(other, names)


@pytest.mark.parametrize("ranks", [4, 150])
@pytest.mark.parametrize("nominal", [[], [1]])
def test_evaluations_are_those_of_rows_in_memory(ranks, nominal):
    X, y = table(CHUNK + 900, 3)
    rng = np.random.default_rng(1)
    rank = np.where(rng.random(y.size) < 0.5, y, rng.integers(0, ranks, y.size))
    design = [
        Design.from_problem(
            problem, np.setdiff1d(range(3), nominal), np.array(nominal, np.int64),
            np.zeros(0, np.int64), None, "flexible",
        )
        for problem in (
            Problem.from_arrays(X, rank), ChunkedProblem.from_source(Arrays(X, rank))
        )
    ]  # fmt: skip
    held, cut = (likelihood_of(d, "logit", 0.3, 2) for d in design)
    assert isinstance(cut, ChunkedLikelihood)
    x = held.start()
    x[-2:] = 0.05
    ours, theirs = cut.at(x), held.at(x)
    assert_allclose(ours.value, theirs.value, rtol=1e-13)
    assert_allclose(ours.gradient, theirs.gradient, atol=1e-13)
    assert_allclose(ours.hessian.dense(), theirs.hessian.dense(), atol=1e-13)
    assert_allclose(ours.hessian.first, theirs.hessian.first)
    x[0] = x[1] + 1  # a rank that no width is left for
    assert cut.at(x).value == held.at(x).value == np.inf


def test_columns_that_others_determine_are_left_out(rows):
    X, y = rows
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 1], np.full(N, 3.0)])
    with pytest.warns(CollinearColumnsWarning, match="'x5' is a combination"):
        whole = ordinal.fit_pom(X, y)
    with pytest.warns(CollinearColumnsWarning, match="'x6' is constant"):
        model = ordinal.fit_pom(Cut([99], X, y), None)
    assert model.predictor.dropped == whole.predictor.dropped == ("x5", "x6")
    assert_near(model, whole)
    sparse = scipy.sparse.csr_array(X)
    with pytest.warns(CollinearColumnsWarning):
        model = ordinal.fit_pom(Cut([99], sparse, y), None)
    assert model.predictor.dropped == ("x5", "x6")
    with pytest.raises(ValueError, match="nominal must name columns whose effects"):
        ordinal.fit_pom(Cut([99], X, y), None, nominal=[5])
    with pytest.raises(TypeError, match="X must not be a formula where rows are read"):
        ordinal.fit_pom("y ~ x1", Cut([99], X, y))
    raises(ValueError, "only where X was in memory", model.confint, method="profile")


@pytest.mark.slow("certificates of 8000 rows")
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.DisorderedThresholdsWarning")
@pytest.mark.parametrize(("complete", "nominal"), [(True, []), (False, [3])])
def test_separated_ranks_are_certified(complete, nominal, rows):
    X, y = rows[0][: CHUNK + 100].copy(), rows[1][: CHUNK + 100]
    X[:, 3] = y + 0.1 * np.tanh(X[:, 3]) if complete else (y == 4) * (X[:, 3] > 1)
    with pytest.warns(ConvergenceWarning, match="separate ranks without"):
        whole = ordinal.fit_pom(X, y, nominal=nominal)
    source = Cut(range(900, len(y), 900), X, y)
    with pytest.warns(ConvergenceWarning, match="separate ranks without"):
        model = ordinal.fit_pom(source, None, nominal=nominal)
    assert model.convergence.status is ordinal.models.Status.SEPARATED
    separated = model.statistics.separated.tolist()
    assert separated == whole.statistics.separated.tolist()
    assert 3 in separated
    assert source.open == 0


THRESHOLDED = {"lat": ordinal.companions.fit_lat, "lit": ordinal.companions.fit_lit}


@pytest.mark.parametrize("name", THRESHOLDED)
def test_ranks_that_pool_and_columns_far_from_0(name, rows):
    """Columns whose centre is far off are centred in every chunk; a rank between two
    others is not predicted, so that LIT makes its thresholds equal."""
    X, fit = rows[0] + [0, 1e4, 0, 0], THRESHOLDED[name]
    score = X @ [1.0, 0.5, 0.2, -0.3]
    y = np.digitize(score, np.quantile(score, [0.4, 0.6])) * 2
    y[::50] = 1
    whole, model = fit(X, y), fit(Cut([99], X, y), None)
    assert_near(model, whole, ("coef", "thresholds"))


@pytest.mark.parametrize("name", THRESHOLDED)
def test_separated_ranks_are_seen_by_lit_and_lat(name, rows):
    X, y = rows[0].copy(), rows[1]
    X[:, 2] = y
    with pytest.warns(ConvergenceWarning, match="separate ranks without"):
        model = THRESHOLDED[name](Cut([99], X, y), None, l2=0.0)
    assert 2 in model.separated
