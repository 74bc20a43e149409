"""Rows of dask: read at its workers as they are read here."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from internals import CHUNK, CSR, ChunkedProblem, Problem
from numpy.testing import assert_allclose, assert_array_equal
from sources import Cut, assert_same_problem
from strategies import raises, slow

import ordinal
from ordinal._dask.reading import read_problem
from ordinal._numerics.rows import dense
from ordinal.model_selection import Grid, select
from ordinal.svm.family import cheapest_thresholds

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N = 3 * CHUNK + 500


@pytest.fixture(scope="module", autouse=True)
def client():
    """Workers are threads here: what dask does between processes is not ours."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        yield client


def table(n=N, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, rng.integers(0, 4, n) * 10, rng.integers(1, 4, n) / 2


def lazy(X, y, rows, labels, columns=2):
    """Return dask arrays, in blocks of so many rows and columns, and labels."""
    return da.from_array(X, chunks=(rows, columns)), da.from_array(y, chunks=labels)


@pytest.mark.parametrize("size", [*slow(1000, N), CHUNK, 10_001])
def test_problem_is_that_of_arrays(size):
    X, y, w = table()
    options = {"class_weight": "balanced"}
    here = ChunkedProblem.from_source(Cut([], X, y, w), **options)
    there = read_problem(*lazy(X, y, size, size), sample_weight=w, **options)
    assert_same_problem(there, here)
    ours, theirs = (problem.moments.mean_and_scale() for problem in (here, there))
    assert_allclose(theirs, ours, rtol=1e-13, atol=1e-15)
    assert there.X.sizes.tolist() == [len(b) for b in np.split(y, range(size, N, size))]
    numbers = np.array([N - 1, 5, 9000, 5, 0])
    assert_array_equal(there.X[numbers], X[numbers])
    assert_array_equal(there.rank[there.X.examples], range(4))
    assert_array_equal(there.X.factor[there.rank] * w, there.weight)


def test_data_frames_have_names_and_ordered_categories():
    pandas = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, _ = table()
    words = np.array(["low", "mid", "high", "top"])
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    frame["y"] = pandas.Categorical(words[y // 10], words, ordered=True)
    here = Problem.from_arrays(frame[["a", "b", "c"]], frame["y"])
    parts = dd.from_pandas(frame, npartitions=5)
    assert_same_problem(read_problem(parts[["a", "b", "c"]], parts["y"]), here)
    mixed = parts.assign(day=pandas.Timestamp("2024-01-31"), word="x")
    with pytest.raises(TypeError, match="'y', 'day', 'word' hold strings, cat"):
        read_problem(mixed, parts["y"])


def test_sparse_blocks():
    X, y, _ = table()
    X[X < 1] = 0
    blocks = da.from_array(X, chunks=(CHUNK, 3)).map_blocks(scipy.sparse.csr_matrix)
    problem = read_problem(blocks, y)
    assert problem.moments is None
    rows = problem.X[np.array([7, 9000])]
    assert isinstance(rows, CSR)
    assert_array_equal(dense(rows), X[[7, 9000]])


def nan(X, y):
    X[CHUNK + 3, 1] = X[2 * CHUNK + 1, 0] = np.nan


def odd(X, y):
    y[CHUNK + 3] = 0.3


@pytest.mark.parametrize(("change", "options", "words"), [
    (nan, {}, ("block 1", f"row {CHUNK} of all", "X must be finite", "row is 3")),
    (odd, {}, ("block 1", "0.3", "row 3", "not a multiple of one half")),
    (odd, {"classes": [0, 10, 20, 30]}, ("block 1", "0.3", "among classes")),
    (lambda X, y: (X, y[1:]), {}, ("y has shape", f"({N},)")),
    (lambda X, y: (X, None), {}, ("y must hold the labels",)),
    (lambda X, y: (X[:, 0], y), {}, ("X must be 2-dimensional",)),
])  # fmt: skip
def test_what_is_wrong_names_the_first_block(change, options, words):
    X, y, _ = table()
    y = y.astype(float)
    X, y = change(X, y) or (X, y)
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        read_problem(da.from_array(X, chunks=CHUNK), y, **options)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(("fit", "kernel"), [
    (ordinal.fit_svorim, "rbf"),
    *slow((ordinal.fit_svorex, "rbf"), (ordinal.companions.fit_opbe, "linear")),
])  # fmt: skip
def test_fits_are_those_of_arrays(fit, kernel):
    """The same basis, so the same problem: the values of two fits to it differ by no
    more than their gaps."""
    X, _, w = table(4000)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [-0.5, 0.5, 1.5])
    options = {
        "basis": 50, "kernel": kernel, "class_weight": {0: 2.0}, "n_threads": 1,
        "tol": 1e-4,
    }  # fmt: skip
    here = fit(X, y, sample_weight=w, **options)
    there = fit(*lazy(X, y, 900, 700, 3), sample_weight=w, **options)
    for one, other in ((here, there), (there, here)):
        for part in one.convergence.parts or [one.convergence]:
            assert part.rel_gap <= 1e-4
        assert one.convergence.dual <= other.convergence.primal
    assert_allclose(there.support, here.support, rtol=1e-12)
    assert (there.predict(X) == here.predict(X)).mean() > 0.99


def test_fitted_thresholds_err_least_in_rows_at_workers():
    X, _, w = table(3000)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [-0.5, 0.5, 1.5])
    model = ordinal.companions.fit_svr(
        da.from_array(X, chunks=(900, 3)), y, sample_weight=w, thresholds="fitted",
        basis=20, tol=1e-2,
    )  # fmt: skip
    cost = np.abs(np.arange(4)[:, None] - np.arange(4))
    best = cheapest_thresholds(model.decision_function(X), y, w, cost)
    assert_allclose(model.thresholds, best, rtol=1e-9)


@pytest.mark.slow("calibrates at workers twice")
def test_sets_are_calibrated_at_the_workers():
    pandas = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, _, w = table(3000)
    y = np.digitize(X[:, 0] + 0.1 * X[:, 1] ** 2, [-0.5, 0.5])
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = ordinal.companions.fit_lit(frame[:1000], y[:1000])
    here = ordinal.conformal(model, X, y, sample_weight=w)
    parts = dd.from_pandas(frame[["c", "a", "b"]].assign(w=w), npartitions=4)
    for rows, weight in ((da.from_array(X, chunks=(900, 2)), w), (parts, parts["w"])):
        there = ordinal.conformal(model, rows, y, sample_weight=weight)
        assert_allclose(there.scores, here.scores, rtol=1e-10, atol=1e-12)
        assert_array_equal(there.weights, here.weights)
    with pytest.raises(ValueError, match="X has no column 'b', which the model was"):
        ordinal.conformal(model, parts[["a", "c"]], y)
    X[1000, 1] = np.nan
    with pytest.raises(ValueError, match="block 1, whose row 0 is row 900 of all: X"):
        ordinal.conformal(model, da.from_array(X, chunks=(900, 3)), y)


def test_some_rows_stay_where_they_are():
    X, y, w = table(3000)
    chunks = da.from_array(X, chunks=(900, 3)), da.from_array(y, chunks=900)
    options = {"sample_weight": w, "class_weight": {0: 2.0}}
    whole = read_problem(*chunks, **options)
    numbers = np.flatnonzero((np.arange(3000) % 3 > 0) & (np.arange(3000) // 900 != 1))
    share = np.where(numbers % 5, 1.0, 0.25)
    part = whole.subset(numbers, share)
    here = Problem.from_arrays(X, y, **options)
    assert_array_equal(part.weight, here.weight[numbers] * share)
    assert part.X.sizes.tolist() == [600, 600, 200]
    assert_array_equal(part.X[np.array([5, 900, 0])], X[numbers[[5, 900, 0]]])
    held = [block.result() for block in part.X.blocks]
    assert_array_equal(np.concatenate([b.y for b in held]), y[numbers])
    weight = np.concatenate([b.weight for b in held])
    assert_array_equal(weight, part.sample_weight)
    assert_array_equal(part.X.factor[part.rank] * weight, part.weight)
    assert part.subset(np.arange(700)).X.sizes.tolist() == [600, 100]


def labelled(n=N):
    X, _, w = table(n)
    return X, np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.5, 0.5, 1.5]), w


def same_bytes(one, other, names):
    for name in names:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    a, b = one.convergence, other.convergence
    assert (a.n_iter, a.primal, a.violation) == (b.n_iter, b.primal, b.violation)


@pytest.mark.slow("three fits of 25 000 rows")
@pytest.mark.parametrize("options", [
    {"basis": 20, "gamma": 0.4, "u": 1.5, "cache_mb": 1.5},
    {"basis": ("kmeans++", 9), "gamma": 0.4, "probability": True, "u": np.inf},
    {"kernel": "linear", "u": 1.5},
])  # fmt: skip
def test_tlssvor_has_the_bytes_of_one_process(options):
    """Blocks of whole chunks are summed as the chunks of one process are; workers hold
    rows in single precision if they are given so."""
    X, y, w = labelled()
    X = X.astype(np.float32)
    options = {"C": 0.1, "tol": 1e-3, "class_weight": {0: 2.0}, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ordinal.exceptions.DisorderedThresholdsWarning)
        here = ordinal.fit_tlssvor(Cut([], X, y, w), None, n_threads=2, **options)
        options["sample_weight"] = w
        there = ordinal.fit_tlssvor(*lazy(X, y, CHUNK, 5000), **options)
        other = ordinal.fit_tlssvor(da.from_array(X, chunks=(1000, 3)), y, **options)
    if "basis" not in options or options["basis"] == 20:  # the same basis
        same_bytes(here, there, ("coef", "thresholds", "support"))
    assert_allclose(other.convergence.primal, there.convergence.primal, rtol=0.01)
    if there.link is not None:
        P = here.predict_proba(X[:500])
        assert np.abs(there.predict_proba(X[:500]) - P).max() < 0.05


@pytest.mark.parametrize("options", [
    {},
    *slow(
        {"robust": True, "class_weight": {0: 2.0}},
        {"nominal": [1], "scale": [2]},
        {"l2": 0.1, "link": "probit", "threshold": "equidistant"},
    ),
])  # fmt: skip
def test_pom_has_the_bytes_of_one_process(options):
    X, _, w = table()
    noise = np.random.default_rng(1).logistic(size=N)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] + noise, [-1, 0.5, 2])
    here = ordinal.fit_pom(Cut([], X, y, w), None, **options)
    there = ordinal.fit_pom(*lazy(X, y, CHUNK, 5000), sample_weight=w, **options)
    estimates = ["coef", "alpha", "nominal_coef", "scale_coef"]
    same_bytes(here, there, estimates + ["covariance"] * ("l2" not in options))
    assert here.loglik == there.loglik
    assert here.statistics.null_loglik == there.statistics.null_loglik
    assert here.statistics.crossings.tolist() == there.statistics.crossings.tolist()
    rows = da.from_array(X, chunks=(1000, 3))
    other = ordinal.fit_pom(rows, y, sample_weight=w, **options)
    assert_allclose(other.coef, here.coef, rtol=1e-7, atol=1e-10)


@pytest.mark.slow("two fits of 25 000 rows at workers")
def test_pom_at_workers_sees_columns_and_ranks_that_others_tell():
    X, _, _ = table()
    X = np.column_stack([X, 2 * X[:, 0] - X[:, 1]])
    y = np.digitize(X[:, 0] + np.random.default_rng(1).logistic(size=N), [-1, 1])
    rows = da.from_array(X, chunks=(1000, 4))
    with pytest.warns(
        ordinal.exceptions.CollinearColumnsWarning, match="combination of 'x1', 'x2'"
    ):
        model = ordinal.fit_pom(rows, y)
    assert_allclose(model.coef, ordinal.fit_pom(X[:, :3], y).coef, rtol=1e-6, atol=1e-8)
    apart = np.digitize(X[:, 0] - X[:, 1], [-1, 1])
    with pytest.warns(
        ordinal.exceptions.ConvergenceWarning, match="separate ranks without"
    ):
        model = ordinal.fit_pom(rows[:, :3], apart)
    assert model.convergence.status is ordinal.models.Status.SEPARATED


@pytest.mark.parametrize(("options", "kind", "words"), [
    ({"l1": 1.0}, ValueError, "l1 must be 0 where X is read in chunks"),
    ({"cluster": np.arange(100)}, ValueError, "cluster must be None"),
    ({"offset": np.ones(100)}, ValueError, "offset must be None where X is a col"),
])  # fmt: skip
def test_what_pom_at_workers_does_without(options, kind, words):
    X, y, _ = table(100)
    raises(kind, words, ordinal.fit_pom, da.from_array(X), y, **options)
    raises(TypeError, "rows in memory only", ordinal.fit_pom_path, da.from_array(X), y)
    sparse = da.from_array(X).map_blocks(scipy.sparse.csr_matrix)
    raises(TypeError, "X must be dense where it is a dask", ordinal.fit_pom, sparse, y)
    for name in ("svorim", "npsvor", "xofm", "tlssvor"):
        fit = getattr(ordinal, f"fit_{name}")
        raises(TypeError, "X is a dask collection", fit, da.from_array(X), y)


def test_searches_and_sets_with_pom_are_those_of_arrays(tmp_path):
    X, y, w = labelled(3000)
    X, given = X * [1, 5, 2] + 1, {"cv": 2, "sample_weight": w}
    space = Grid(l2=[1e-3, 1.0], class_weight=[None, {0: 2.0}])
    rows = da.from_array(X, chunks=(900, 3))
    here, there = (select("pom", of, y, search=space, **given) for of in (X, rows))
    assert not there.failures
    assert_allclose(there.scores, here.scores, rtol=1e-12)
    assert_allclose(there.model.coef, here.model.coef, rtol=1e-6)
    sets, others = (ordinal.cross_conformal("pom", of, y, **given) for of in (X, rows))
    assert_allclose(others.scores, sets.scores, rtol=1e-6, atol=1e-9)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(TypeError, match="executor must be None where X is a col"):
            select("pom", rows, y, search=space, executor=pool)
    with pytest.raises(TypeError, match=", which store= cannot identify in a"):
        select("pom", rows, y, search=space, store=tmp_path)
