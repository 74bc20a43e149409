"""select and nested: what they compute, where it runs, and how it is shown and kept."""

import hashlib
import io
import json
import math
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from functools import partial
from multiprocessing import get_context
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Line
from numpy.testing import assert_allclose, assert_array_equal
from processes import Terminal
from scipy.sparse import csr_matrix
from strategies import at_most, raises, sample, slow

import ordinal
from ordinal import fit_svorim, metrics
from ordinal._model import registry
from ordinal.kernels import RBF
from ordinal.model_selection import (
    CoarseToFine,
    Grid,
    UniformDesign,
    gamma_range,
    nested,
    select,
    stratified_holdout,
    stratified_kfold,
)
from ordinal.model_selection.workers import Ended
from ordinal.preprocessing import PreprocessedModel, Standardizer

X, y = sample(90, r=4, seed=3)
X = X * [1.0, 20.0, 0.1] + 5.0
GRID = Grid(C=[0.1, 1.0, 30.0], gamma=[0.05, 0.5])
OTHERS = ordinal.companions.fit_shashua_levin, ordinal.companions.fit_redsvm
ADMM = partial(ordinal.fit_npsvor, solver="admm")


class Constant:
    def __init__(self, label):
        self.label = label

    def predict(self, X, rule=None):
        return np.full(len(X), self.label)


def fit_constant(X, y, *, label=0, shape="round"):
    """A fit without C, gamma, classes or convergence; some labels it refuses."""
    if label == 2:
        raise RuntimeError("two is not to be")
    return Constant(label)


CALLS = []


def doubtful(y_true, y_pred):
    """MZE; no number where the first row is predicted to be of rank 1."""
    return math.nan if y_pred[0] == 1 else metrics.mze(y_true, y_pred)


def plain(fit, points, splits, metric, **options):
    scores = np.empty((len(points), len(splits)))
    for i, point in enumerate(points):
        for k, (train, test) in enumerate(splits):
            s = Standardizer.fit(X[train])
            with warnings.catch_warnings(action="ignore"):
                model = fit(
                    s.transform(X[train]), y[train], n_threads=1, **point, **options
                )
            scores[i, k] = metric(y[test], model.predict(s.transform(X[test])))
    return scores


def same(a, b):
    """Two selections, but for their times."""
    assert a.points == b.points
    assert a.scores.tobytes() == b.scores.tobytes()
    assert a.status.tolist() == b.status.tolist()
    assert a.failures == b.failures
    assert (a.best, a.one_se) == (b.best, b.one_se)


@pytest.mark.parametrize("fit", [
    fit_svorim, ordinal.fit_npsvor, ADMM, *slow(ordinal.fit_svorex, *OTHERS),
])  # fmt: skip
def test_scores_are_those_of_separate_fits(fit):
    found = select(fit, X, y, search=GRID, tol=1e-5, rng=7)
    splits = stratified_kfold(y, rng=7)
    assert found.points[1] == {"C": 0.1, "gamma": 0.5}
    expected = plain(fit, found.points, splits, metrics.mae, tol=1e-5)
    # a warm start may move a score within tol, and a row of 18 over a threshold
    assert np.sum(np.abs(found.scores - expected) > 1e-12) <= 1
    assert_allclose(found.mean, expected.mean(axis=1), atol=1 / 90 + 1e-12)
    least = expected.mean(axis=1).min()
    assert found.best_score == pytest.approx(least, abs=1 / 90 + 1e-12)
    assert found.params == found.points[found.scores.sum(axis=1).argmin()]


def test_arguments_with_an_entry_a_row_are_not_split():
    for name in ("offset", "cluster"):
        with pytest.raises(TypeError, match=f"^{name} has one entry per row"):
            select(ordinal.fit_pom, X, y, search=Grid(l2=[0.1]), **{name: X[:, 0]})


def test_refit_is_the_fit_of_all_rows_on_raw_features():
    found = select(fit_svorim, X, y, search=GRID)
    s = Standardizer.fit(X)
    alone = fit_svorim(s.transform(X), y, **found.params)
    assert isinstance(found.model, PreprocessedModel)
    assert found.preprocessor.mean.tobytes() == s.mean.tobytes()
    assert found.model.model.coef.tobytes() == alone.coef.tobytes()
    assert np.array_equal(found.predict(X), alone.predict(s.transform(X)))
    assert np.array_equal(found.decision_function(X), found.model.decision_function(X))
    assert found.classes.tolist() == [0, 1, 2, 3]

    simple = select(fit_svorim, X, y, search=GRID, refit="one_se")
    assert simple.model.model.C == simple.points[simple.one_se]["C"]
    none = select(fit_svorim, X, y, search=GRID, refit=False)
    raises(ValueError, "refit=False", none.predict, X)


def test_labels_weights_and_probabilities():
    words = np.array(["a", "low", "mid", "high"])[y]
    classes = ["a", "low", "mid", "high"]
    weight = np.where(np.arange(90) < 45, 1.0, 0.0)  # half the rows do not count
    options = {"search": Grid(C=[0.3, 3.0]), "rng": 1}
    a = select(
        fit_svorim, X, words, classes=classes, sample_weight=weight, **options,
        scoring=("rps", "mae"), probability=True,
    )  # fmt: skip
    assert a.scoring == "rps"
    assert set(a.others) == {"mae"}
    assert set(a.predict(X)) <= set(classes)
    assert a.predict_proba(X).shape == (90, 4)
    train, test = a.splits[2]
    s = Standardizer.fit(X[train], weight[train])
    model = fit_svorim(
        s.transform(X[train]), y[train], sample_weight=weight[train], C=0.3
    )
    predicted = model.predict(s.transform(X[test]))
    expected = metrics.mae(y[test], predicted, sample_weight=weight[test])
    assert_allclose(a.others["mae"][0, 2], expected)


def test_numbers_that_label_ranks_are_not_distances():
    options = {"search": Grid(C=[0.1, 1.0]), "cv": 3}
    names = ["mae", "amae", "mmae"]
    other = np.array([0, 1, 3, 10, 100])[y]
    a, b = (
        select(fit_svorim, X, of, scoring=names, refit=False, **options)
        for of in (y, other)
    )
    assert_array_equal(a.scores, b.scores)
    for name in names[1:]:
        assert_array_equal(a.others[name], b.others[name])
    a, b = (nested(fit_svorim, X, of, outer=3, **options) for of in (y, other))
    assert a.scores.keys() == b.scores.keys() == {"mae", "mze"}
    assert_array_equal(a.scores["mae"], b.scores["mae"])


def test_a_method_joins_by_registering_its_path(monkeypatch):
    calls = []

    def fit(X, y, *, C, other):
        raise AssertionError("all points are fitted as paths")

    def fit_path(X, y, points, products, X_test, **options):
        calls.append((points, options))
        return [Constant(point["C"]) for point in points], [None] * len(points)

    monkeypatch.setattr(registry, "_METHODS", {})
    registry.register(registry.Method(fit, "f", "F", varying=("C",), fit_path=fit_path))
    found = select(
        partial(fit, other=7), X, y, search=Grid(C=[2, 1]), cv=2, refit=False
    )
    assert calls == [([{"C": 1}, {"C": 2}], {"other": 7})] * 2
    assert found.points == ({"C": 2}, {"C": 1})
    calls.clear()
    select(fit, X, y, search=Grid(C=[2, 1], other=[5, 6]), cv=2, refit=False)
    assert calls == [([{"C": 1}, {"C": 2}], {"other": other}) for other in (5, 6)] * 2


@pytest.mark.parametrize("wrap", [False, True], ids=["option", "partial"])
def test_links_are_calibrated_for_the_refit_and_for_scores_that_need_them(wrap):
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return RBF(0.5)(A, B)

    def counted(probability, **options):
        calls.clear()
        fit = partial(fit_svorim, kernel=kernel)
        if wrap:
            fit = partial(fit, probability=probability)
        else:
            options["probability"] = probability
        found = select(fit, X, y, **{"search": Grid(C=[0.5, 5.0]), "cv": 2} | options)
        return len(calls), found

    overlapping = stratified_holdout(y, 2, test_size=0.6, rng=0)
    plain, _ = counted(False, refit=False)
    left_out, _ = counted(True, refit=False)
    assert left_out == plain
    # Disjoint folds calibrate one another; others take fits in folds of their own.
    together, _ = counted(True, refit=False, scoring="rps")
    alone, _ = counted(True, refit=False, scoring="rps", cv=overlapping)
    assert plain == together < alone / 2  # the values of the path serve the links
    _, found = counted(True)
    assert found.predict_proba(X).shape == (90, 4)
    _, without = counted(False)
    raises(ValueError, "probability=True", without.predict_proba, X)


def test_a_function_that_asks_for_probabilities():
    def own_rps(y_true, P):
        assert P.shape == (len(y_true), 4)
        return metrics.rps(y_true, P, labels=[0, 1, 2, 3])

    own_rps.needs_proba = True
    found = select(
        fit_svorim, X, y, search=Grid(C=[0.5, 5.0]), cv=3, probability=True,
        scoring=(own_rps, "rps"), greater_is_better=False, refit=False,
    )  # fmt: skip
    assert found.scoring == "own_rps"
    assert_allclose(found.scores, found.others["rps"])


def test_a_selection_is_saved_with_all_that_it_holds(tmp_path):
    grid = Grid(C=[0.1, -1.0, 10.0], kernel=["linear", RBF(0.5)])
    found = select(fit_svorim, X, y, search=grid, scoring=("mae", "mze"), cv=3)
    found.save(tmp_path / "found.npz")
    loaded = ordinal.load(tmp_path / "found.npz")
    again = pickle.loads(pickle.dumps(found))
    assert len(found.failures) == 6
    for other in (loaded, again):
        assert type(other) is type(found)
        same(found, other)
        assert list(other.others) == ["mze"]
        assert_array_equal(other.others["mze"], found.others["mze"])
        assert_array_equal(other.table()["seconds"], found.table()["seconds"])
        assert_array_equal(other.predict(X), found.predict(X))
        assert repr(other) == repr(found)
        for split, own in zip(other.splits, found.splits, strict=True):
            for rows, expected in zip(split, own, strict=True):
                assert_array_equal(rows, expected)
    for one in (found, loaded, again):
        arrays = [one.scores, one.stage, one.seconds, one.others["mze"], one.reasons]
        assert not any(a.flags.writeable for a in (*arrays, *one.splits[1]))


def test_nested_is_saved_with_its_searches(tmp_path):
    def fit(X, y, *, C):
        if len(X) == 67:
            raise RuntimeError("67 rows")
        return Constant(1)

    outer = [*stratified_holdout(y, 1, test_size=23), *stratified_holdout(y, 1)]
    outer[1] = (outer[1][0][:-1], outer[1][1])
    result = nested(fit, X, y, search=Grid(C=[1.0, 2.0]), outer=outer, cv=3)
    result.save(tmp_path / "result.npz")
    loaded = ordinal.load(tmp_path / "result.npz")
    equal(loaded, result)
    assert loaded.failures == result.failures == {0: "RuntimeError: 67 rows"}
    assert repr(loaded) == repr(result)
    assert not loaded.scores["mae"].flags.writeable


def test_fits_of_any_arguments_and_failures():
    grid = Grid(shape=["round", "square"], label=[1, 2, 7, 0])
    found = select(fit_constant, X, y, search=grid, scoring="mze", refit=False)
    assert len(found.points) == 8
    assert len(found.failures) == 2 * 5 * 2  # 2 raises, 7 is no label: both recorded
    reasons = {f.params["label"]: f.reason for f in found.failures}
    assert reasons[2] == "RuntimeError: two is not to be"
    assert reasons[7].startswith("ValueError: y_pred holds 7")
    assert np.isnan(found.scores[[1, 2, 5, 6]]).all()
    assert not np.isnan(found.scores[[0, 3, 4, 7]]).any()
    assert (found.status[1] == "failed").all()
    assert (found.status[0] == "fitted").all()
    assert found.points[found.best]["label"] in (0, 1)
    assert found.points[found.best]["shape"] == "round"  # the first of equals
    table = found.table()
    assert {column.shape for column in table.values()} == {(8,)}
    assert table["point"][0] == found.best
    assert (np.diff(table["mean"][:4]) >= 0).all()
    assert table["failed"][np.argsort(table["point"])].tolist() == [0, 5, 5, 0] * 2
    assert table["failed"].tolist() == [0] * 4 + [5] * 4
    assert "20 failed" in repr(found)


@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from([0.1, 0.2])),
        min_size=1,
        unique=True,
    ),
    st.integers(0, 99),
)
@at_most(25)
def test_ties_go_to_the_least_C_then_the_least_gamma(points, seed):
    scores = np.random.default_rng(seed).integers(0, 2, len(points)) / 2

    def fit(X, y, *, gamma, C):
        return Constant(scores[points.index((C, gamma))])

    class Listed:
        def stages(self, X):
            yield [{"gamma": gamma, "C": C} for C, gamma in points]

    found = select(
        fit, X, y, search=Listed(), scoring=lambda _, p: p.mean(), refit=False, cv=2,
        greater_is_better=False,
    )  # fmt: skip
    least = [p for p, s in zip(points, scores, strict=True) if s == scores.min()]
    assert points[found.best] == min(least)
    assert points[found.one_se] == min(least)  # no deviation between folds


def test_one_standard_error_is_the_simplest_point_within_it():
    found = select(fit_svorim, X, y, search=Grid(C=10.0 ** np.arange(-2, 4)))
    within = found.mean <= found.best_score + found.standard_error[found.best]
    assert found.one_se == np.flatnonzero(within)[0]  # C increases
    assert_allclose(
        found.standard_error, found.scores.std(axis=1, ddof=1) / math.sqrt(5)
    )


def test_coarse_to_fine_is_the_papers_protocol():
    found = select(fit_svorim, X, y, search=CoarseToFine(), cv=2, refit=False)
    assert len(found.points) == 129
    assert np.bincount(found.stage).tolist() == [49, 80]
    log = np.log10([[p["C"], 2 * p["gamma"]] for p in found.points])
    assert_allclose(np.unique(np.round(log[:49], 9)), np.arange(-3, 4))
    steps = (log[49:] - log[np.argmin(found.mean[:49])]) / 0.2
    assert_allclose(steps, np.round(steps), atol=1e-9)
    assert np.abs(steps).max() == pytest.approx(4)
    assert len(np.unique(np.round(steps), axis=0)) == 80


def test_gamma_range_spans_the_kernel_of_near_rows():
    Z = np.random.default_rng(0).normal(size=(300, 4))
    low, high = gamma_range(np.vstack([Z, Z[:50]]))  # repeated rows do not count
    square = ((Z[:, None] - Z) ** 2).sum(axis=2)[np.triu_indices(300, 1)]
    q = np.quantile(square, 0.05)
    assert_allclose(np.exp(-low * q), 0.999, atol=2e-4)
    assert_allclose(np.exp(-high * q), 0.15, atol=0.02)
    raises(ValueError, "two different rows", gamma_range, [[1.0, 2.0]] * 3)


@pytest.mark.slow("starts workers of every kind")
def test_the_result_is_the_same_wherever_it_is_computed():
    options = {"search": CoarseToFine(fine=False), "cv": 3, "refit": False}
    serial = select(ordinal.fit_svorex, X, y, n_threads=1, **options)
    same(serial, select(ordinal.fit_svorex, X, y, n_threads=3, **options))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        same(serial, select(ordinal.fit_svorex, X, y, executor=pool, **options))


def test_threads_do_not_call_a_function_of_ones_own():
    callers = set()

    def kernel(A, B):
        callers.add(threading.get_ident())
        return np.asarray(A) @ np.asarray(B).T

    select(
        fit_svorim, X[:40], y[:40], search=Grid(C=[1.0], kernel=[kernel]),
        n_threads=4, cv=2,
    )  # fmt: skip
    assert callers == {threading.get_ident()}


class Killed(BaseException):
    pass


class Leaving:
    """A pool whose search is left by an error once some tasks run."""

    def __init__(self, pool):
        self._pool = pool
        self.futures = []

    def submit(self, call, *arguments):
        if len(self.futures) == 3:
            while not self.futures[0].running():
                time.sleep(0.01)
            time.sleep(0.5)  # for the fit to begin
            raise Killed
        self.futures.append(self._pool.submit(call, *arguments))
        return self.futures[-1]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def pool_of_one(kind):
    """A worker, in a process that lets Ctrl-C pass or in a thread."""
    if kind == "thread":
        return ThreadPoolExecutor(1)
    ignore = (signal.SIGINT, signal.SIG_IGN)
    return ProcessPoolExecutor(1, get_context(kind), signal.signal, ignore)


@pytest.mark.slow("starts and ends workers")
@pytest.mark.parametrize("kind", ["fork", "spawn", "thread"])
def test_workers_end_the_fits_of_a_search_that_was_left(monkeypatch, tmp_path, kind):
    """They are as fit for the next search, and silent."""
    rng = np.random.default_rng(0)
    slow = rng.normal(size=(1500, 5)), rng.integers(0, 6, 1500)
    options = {"search": Grid(tol=[1e-8, 1e-9, 1e-10]), "cv": 2}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pool_of_one(kind) as pool:
        leaving = Leaving(pool)
        with pytest.raises(Killed):
            select(ordinal.fit_gpor, *slow, executor=leaving, **options)
        # a task that was not ended gives its score, hours later
        assert leaving.futures[0].result(timeout=600) is None
        assert list(tmp_path.iterdir()) == []
        options = {"search": GRID, "cv": 2, "refit": False}
        same(
            select(fit_svorim, X, y, executor=pool, **options),
            select(fit_svorim, X, y, **options),
        )


BEGUN, LEFT, FITTED = Event(), Event(), Event()


def fit_that_waits(X, y, *, C):
    BEGUN.set()
    assert LEFT.wait(600.0)
    ordinal.fit_pom(X, y)
    FITTED.set()


class LeavingAtOnce(Leaving):
    def submit(self, call, *arguments):
        self.futures.append(self._pool.submit(call, *arguments))
        assert BEGUN.wait(600.0)
        raise Killed


def test_a_function_of_ones_own_ends_by_itself_after_its_search():
    """Or at a fit of this package, as here; nothing else is raised in it."""
    with ThreadPoolExecutor(1) as pool:
        leaving = LeavingAtOnce(pool)
        with pytest.raises(Killed):
            select(fit_that_waits, X, y, search=Grid(C=[1.0]), cv=2, executor=leaving)
        LEFT.set()
        assert leaving.futures[0].result(timeout=600) is None
    assert not FITTED.is_set()


class Careless:
    """A pool beside someone who tidies the folder for temporary files."""

    def __init__(self, pool, folder):
        self._pool, self._folder = pool, folder
        self.submitted = 0

    def submit(self, call, *arguments):
        future = self._pool.submit(call, *arguments)
        self.submitted += 1
        if self.submitted == 4:
            wait([future])
            shutil.rmtree(next(self._folder.iterdir()))
            time.sleep(2 * Ended.EVERY)  # until a worker looks again
        return future


@pytest.mark.slow("starts and ends workers")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_search_survives_the_loss_of_its_file(monkeypatch, tmp_path, start):
    options = {"search": GRID, "cv": 4, "refit": False}
    here = select(fit_svorim, X, y, **options)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ProcessPoolExecutor(1, mp_context=get_context(start)) as pool:
        careless = Careless(pool, tmp_path)
        same(select(fit_svorim, X, y, executor=careless, **options), here)
    assert careless.submitted > 8


def equal(a, b):
    assert a.params == b.params
    assert {k: v.tobytes() for k, v in a.scores.items()} == {
        k: v.tobytes() for k, v in b.scores.items()
    }
    for one, other in zip(a.selections, b.selections, strict=True):
        same(one, other)


def test_nested_is_a_loop_of_searches():
    result = nested(fit_svorim, X, y, search=GRID, outer=3, cv=3, rng=5)
    assert list(result.scores) == ["mae", "mze"]
    for i, (train, test) in enumerate(result.splits):
        of_split = result.selections[i]
        alone = select(
            fit_svorim, X[train], y[train], search=GRID,
            cv=[tuple(np.searchsorted(train, rows) for rows in s)
                for s in of_split.splits],
        )  # fmt: skip
        same(alone, of_split)
        assert result.params[i] == alone.params
        miss = np.abs(alone.predict(X[test]) - y[test])
        assert result.scores["mae"][i] == miss.mean()
        assert result.scores["mze"][i] == (miss > 0).mean()
    assert {column.shape for column in result.table().values()} == {(3,)}
    assert "3 hold-outs" in repr(result)


class Counting:
    """An executor that runs some tasks at once, and is then killed."""

    def __init__(self, most):
        self._most = most
        self.submitted = 0

    def submit(self, call, *arguments):
        if self.submitted == self._most:
            raise Killed
        self.submitted += 1
        future = Future()
        future.set_result(call(*arguments))
        return future


@given(st.integers(1, 12))
@at_most(4)
def test_a_killed_run_continues(tmp_path_factory, after):
    store = tmp_path_factory.mktemp("store")
    options = {"search": Grid(C=[1.0], gamma=[0.1, 1.0]), "outer": 2, "cv": 3, "rng": 4}
    whole = nested(fit_svorim, X, y, **options)  # 14 tasks

    killing = Counting(after)
    with pytest.raises(Killed):
        nested(fit_svorim, X, y, store=store, executor=killing, **options)
    assert len(list(store.glob("*.json"))) == after
    counting = Counting(14)
    again = nested(fit_svorim, X, y, store=store, executor=counting, **options)
    assert counting.submitted == 14 - after
    equal(whole, again)
    assert not list(store.glob(".*"))


def test_a_store_knows_what_a_result_depends_on(tmp_path):
    def files(fit=fit_svorim, X=X, search=GRID, **options):
        options = {"search": search, "store": tmp_path, "cv": 2, **options}
        select(fit, X, y, refit=False, **options)
        return len(list(tmp_path.glob("*.json")))

    n = files()
    assert n == 4  # 2 folds of 2 gammas
    assert files() == n
    assert files(n_threads=2) == n
    for change in (
        {"fit": ordinal.fit_svorex},
        {"X": X + 1e-9},
        {"search": Grid(C=[0.1, 1.0, 31.0], gamma=[0.05, 0.5])},
        {"rng": 1},
        {"tol": 1e-2},
        {"scoring": "mze"},
        {"standardize": False},
        {"kernel": RBF(1.0), "search": Grid(C=[0.1])},
    ):
        more = files(**change)
        assert more > n
        n = more
    raises(TypeError, "store", files, scoring=lambda a, b: 0.0, greater_is_better=False)


def test_a_store_serves_whichever_metric_decides(tmp_path):
    grid = Grid(label=[0, 1, 3])
    for scoring in (("mae", doubtful), (doubtful, "mae")):
        call = partial(
            select, fit_constant, X, y, search=grid, scoring=scoring,
            greater_is_better=False,
        )  # fmt: skip
        kept, fresh = call(store=tmp_path), call()
        same(kept, fresh)
        first = "mae" if scoring[0] == "mae" else "doubtful"
        assert kept.scoring == first
        assert np.isnan(kept.mean).tolist() == [False, first != "mae", False]
        for name, values in fresh.others.items():
            assert kept.others[name].tobytes() == values.tobytes()
        assert len(list(tmp_path.glob("*.json"))) == 15

    outer = stratified_holdout(y, 2, test_size=30)
    for scoring in (("mae", "mze"), ("mze", "mae")):
        call = partial(nested, fit_svorim, X, y, search=GRID, outer=outer, cv=2)
        equal(call(scoring=scoring, store=tmp_path), call(scoring=scoring))


def rewritten(path, change):
    """The entry with its content changed, under a checksum that fits."""
    content = json.loads(path.read_text())["content"]
    changed = change(content)
    text = json.dumps(content if changed is None else changed)
    checksum = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    path.write_text(f'{{"checksum": "{checksum}", "content": {text}}}')


def outcome(**fields):
    """Changes fields of the first outcome, or takes them away."""

    def change(content):
        first = content["outcomes"][0]
        first.update(fields)
        for name in [name for name, value in fields.items() if value is None]:
            del first[name]

    return partial(rewritten, change=change)


def stored(store):
    return select(fit_svorim, X, y, store=store, search=GRID, cv=2, refit=False)


def of_bytes(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


DAMAGE = {
    "empty": of_bytes(lambda _: b""),
    "a letter changed": of_bytes(lambda data: data.replace(b"0", b"1", 1)),
    "nested deeply": of_bytes(lambda _: b"[" * 100_000),
    "a long number": of_bytes(lambda _: b"9" * 5000),
    "too large": lambda path: os.truncate(path, 1 << 40),
    "of another task": lambda path: shutil.copy(
        next(p for p in path.parent.glob("*.json") if p != path), path
    ),
    "a score changed": of_bytes(
        lambda data: re.sub(rb'"mae": [0-9.]+', b'"mae": 0.001', data)
    ),
    "no outcomes": partial(rewritten, change=lambda c: c.update(outcomes=[])),
    "no content": partial(rewritten, change=lambda _: []),
    "a score that is true": outcome(scores={"mae": True}),
    "scores of a list": outcome(scores=[0.5]),
    "one more metric": outcome(scores={"mae": 0.5, "mze": 0.5}),
    "status 17": outcome(status=17),
    "an unknown status": outcome(status="perfect"),
    "a failure without a reason": outcome(status="failed"),
    "a reason without a failure": outcome(failure="why"),
    "a failure with a score": outcome(status="failed", failure="why"),
    "negative seconds": outcome(seconds=-1.0),
    "endless seconds": outcome(seconds=math.inf),
    "no seconds": outcome(seconds=None),
    "one more field": outcome(more=1),
}


@pytest.mark.slow("a search for each damage")
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_in_a_store_is_done_again(tmp_path, damage):
    call = partial(stored, tmp_path)
    whole = call()
    path = sorted(tmp_path.glob("*.json"))[1]
    before = json.loads(path.read_text())["content"]
    damage(path)
    again = call()
    same(whole, again)
    assert (whole.damaged, again.damaged, call().damaged) == (0, 1, 0)
    after = json.loads(path.read_text())["content"]
    for content in (before, after):
        for of_point in content["outcomes"]:
            del of_point["seconds"]
    assert before == after
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "link to nothing"])
def test_what_no_search_has_put_into_a_store_stays(tmp_path, kind):
    """A pipe would wait for ever, and a link may lead to what is somebody's own."""
    store, own = tmp_path / "store", tmp_path / "own"
    own.write_text("mine")
    whole = stored(store)
    path = min(store.glob("*.json"))
    path.unlink()
    {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(own),
        "link to nothing": lambda: path.symlink_to(tmp_path / "nothing"),
    }[kind]()
    mode = path.lstat().st_mode
    again = stored(store)
    same(whole, again)
    assert again.damaged == 1
    assert path.lstat().st_mode == mode
    assert own.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["own", "store"]


def test_nested_counts_what_was_damaged(tmp_path):
    call = partial(nested, fit_svorim, X, y, search=GRID, outer=2, cv=2, store=tmp_path)
    whole = call()
    for path in sorted(tmp_path.glob("*.json"))[::3]:
        path.write_text("{")
    again = call()
    equal(whole, again)
    assert (whole.damaged, again.damaged, call().damaged) == (0, 4, 0)
    again.save(tmp_path / "result")
    assert ordinal.load(tmp_path / "result").damaged == 4


def test_values_that_hold_the_same_in_another_order_are_not_mistaken(tmp_path):
    """Once [[1], 2] had the name of [[1, 2]]."""
    shapes = [[[1], 2], [[1, 2]], [[1, [2]]]]
    shapes += [{"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}]
    for n, shape in enumerate(shapes, 1):
        grid = Grid(label=[0])
        select(fit_constant, X, y, search=grid, cv=2, store=tmp_path, shape=shape)
        assert len(list(tmp_path.iterdir())) == 2 * n


def test_reasons_are_kept_as_far_as_they_can_be_read(tmp_path):
    def fit(X, y, *, C):
        raise RuntimeError("x" * 10_000)

    with pytest.raises(
        ValueError, match=r"no point could be fitted: .*x\.\.\.$"
    ) as got:
        select(fit, X, y, search=Grid(C=[1.0]), cv=2)
    assert len(str(got.value)) < 500


def test_a_name_and_its_grid_are_the_default_search():
    grid = registry.method_of(fit_svorim).grid
    want = select(fit_svorim, X, y, search=Grid(**grid), cv=2)
    same(select("svorim", X, y, cv=2), want)
    listed = {k: list(v) for k, v in grid.items()}
    same(ordinal.select("svorim", X, y, search=listed, cv=2), want)
    left_open = select(partial(fit_svorim, gamma=0.5), X, y, cv=2, refit=False)
    assert [list(p) for p in left_open.points] == [["C"]] * len(grid["C"])
    fixed = select("svorim", X, y, C=1.0, cv=2, refit=False)
    assert {tuple(p) for p in fixed.points} == {("gamma",)}


@pytest.mark.parametrize(
    "kernel", ["linear", RBF(0.5), lambda A, B: A @ B.T], ids=["name", "ours", "own"]
)
def test_gamma_is_not_searched_for_a_kernel_that_does_not_take_it(kernel):
    with_gamma = [m for m in registry.methods() if "gamma" in m.grid]
    assert len(with_gamma) > 8
    for method in with_gamma:
        fit = partial(method.fit, kernel=kernel)
        found = select(fit, X[:30], y[:30], cv=2, n_iter=1, refit=False)
        assert np.isfinite(found.best_score), method.name
        assert found.params.keys() == method.grid.keys() - {"gamma"}


def test_a_method_without_a_grid_has_one_point():
    found = select("gpor-laplace", X[:40], y[:40], cv=2)
    assert found.points == ({},)
    assert found.model is not None


def test_points_are_drawn_from_a_grid():
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
    every = list(next(Grid(**grid).stages(None)))
    draws = [
        select("svorim", X, y, search=grid, n_iter=4, rng=k, cv=2, refit=False).points
        for k in range(3)
    ]
    for points in draws:
        places = [every.index(point) for point in points]
        assert places == sorted(set(places))
        assert len(places) == 4
    assert len(set(map(str, draws))) > 1
    all_six = select("svorim", X, y, search=grid, n_iter=9, cv=2, refit=False)
    assert list(all_six.points) == every


def fit_and_tell(X, y, *, label=0):
    CALLS.append((label, X[:, 0].astype(int).tolist()))
    return Constant(label)


def test_halving_drops_points_on_samples_and_judges_the_rest_on_all_rows():
    numbers = np.arange(4200, dtype=float)[:, None]
    labels = np.repeat([0, 1, 2], [14, 2800, 1386])
    CALLS.clear()
    options = {"halving": True, "standardize": False, "cv": 3, "refit": False}
    options |= {"X": numbers, "y": labels, "n_threads": 1}
    found = select(fit_and_tell, search={"label": list(range(9))}, **options)
    assert found.params == {"label": 1}
    assert found.rows.tolist() == [934, 2800, 2800] + [312] * 6
    # by the labels' counts the errors are .99, .33 and .67: the order of the points
    assert_allclose(found.mean[[0, 1, 2]], [1.3267, 0.3333, 0.6733], atol=1e-3)
    for train, _ in found.splits:
        at = [
            set(rows) for label, rows in CALLS if label == 1 and set(rows) <= set(train)
        ]
        small, middle, whole = sorted(at, key=len)
        assert small < middle < whole == set(train.tolist())
        share = [np.bincount(labels[sorted(s)], minlength=3) / len(s) for s in at]
        assert_allclose(share[0], share[-1], atol=0.01)
        assert all((s > 0).all() for s in share)
    found = select(fit_and_tell, search=TwoStages(), **options)
    assert found.params == {"label": 1}
    rows = dict(zip([p["label"] for p in found.points], found.rows, strict=True))
    assert [rows[k] for k in (0, 1, 5, 6, 7, 8)] == [934, 2800, 312, 312, 312, 312]


class TwoStages:
    size = 9

    def stages(self, X):
        yield [{"label": label} for label in (2, 3, 4)]
        yield [{"label": label} for label in (0, 1, 5, 6, 7, 8)]


class Counted:
    def __init__(self, label, n_train):
        self.label, self.n_train = label, n_train

    def predict(self, X):
        CALLS.append((self.n_train, len(X)))
        return np.full(len(X), self.label)


def fit_and_count(X, y, *, label=0):
    return Counted(label, len(y))


def test_samples_are_scored_on_their_share_and_the_larger_keep_a_third():
    n = 40_000
    X = np.arange(n, dtype=float)[:, None]
    CALLS.clear()
    found = select(
        fit_and_count, X, np.arange(n) % 9, search={"label": list(range(9))},
        halving=True, standardize=False, cv=2, refit=False, n_threads=1,
    )  # fmt: skip
    rows, counts = np.unique(found.rows, return_counts=True)
    assert rows.tolist() == [2223, 6667, 20_000]
    assert counts.tolist() == [4, 3, 2]  # of 9 points 5 go on, and 2 of these
    assert set(CALLS) == {(2223, 5000), (6667, 6667), (20_000, 20_000)}


def test_points_without_a_finite_score_on_a_sample():
    X, y = np.zeros((4200, 1)), np.repeat([0, 1, 2], 1400)
    found = select(
        fit_and_tell, X, y, search={"label": list(range(9))}, halving=True, cv=3,
        scoring=lambda true, given: 1.0 if given[0] == 1 else np.inf,
        greater_is_better=False, standardize=False, refit=False, n_threads=1,
    )  # fmt: skip
    assert found.params == {"label": 1}
    assert (found.rows > found.rows.min()).tolist() == [n == 1 for n in range(9)]

    # a fit may need more rows than a sample has
    def fit(X, y, *, label=0):
        if len(y) < 500:
            raise ValueError("too few rows")
        return Constant(label)

    X, y = sample(900, r=3, seed=1)
    found = select(fit, X, y, search={"label": [0, 1]}, halving=True, cv=3)
    assert found.rows.tolist() == [600, 600]


def told(stream, monkeypatch, patience=0.0, **options):
    """Return what a search writes to stderr, if that is this stream."""
    monkeypatch.setattr(Line, "EVERY", 0.0)
    monkeypatch.setattr(Line, "PATIENCE", patience)
    monkeypatch.setattr(sys, "stderr", stream)
    select(fit_svorim, X, y, search=GRID, n_threads=1, **options)
    return stream.getvalue()


def test_a_search_tells_a_terminal_how_far_it_is_and_a_file_of_its_end(monkeypatch):
    text = told(Terminal(), monkeypatch, progress=True)
    lines = text.split("\r")
    assert lines[0] == ""
    assert lines[1].startswith("3/30 fits")
    assert "left" in lines[2]
    assert "best mae" in lines[-1]
    assert lines[-1].startswith("30/30 fits")
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert max(map(len, lines)) <= 80
    (line,) = told(io.StringIO(), monkeypatch, progress=True).splitlines()
    assert re.match(r"30/30 fits  best mae .* \d+ s in all$", line)
    # by itself on a terminal only, and after some time
    assert "30/30 fits" in told(Terminal(), monkeypatch)
    assert told(Terminal(), monkeypatch, math.inf) == ""
    assert told(io.StringIO(), monkeypatch) == ""


class Halves:
    """Splits as scikit-learn does: the even rows, then the odd ones, are tested."""

    def split(self, X, y):
        assert len(X) == len(y)
        rows = np.arange(len(y))
        for parity in (0, 1):
            yield rows[rows % 2 != parity], rows[rows % 2 == parity]


def test_splitters_stand_for_their_splits():
    rows = np.arange(90)
    halves = [(rows[1::2], rows[::2]), (rows[::2], rows[1::2])]
    options = {"search": GRID, "refit": False}
    found = select(fit_svorim, X, y, cv=Halves(), **options)
    same(found, select(fit_svorim, X, y, cv=halves, **options))
    result = nested(fit_svorim, X, y, search=GRID, outer=Halves(), cv=Halves())
    for (train, _), (expected, _), one in zip(
        result.splits, halves, result.selections, strict=True
    ):
        assert_array_equal(train, expected)
        assert_array_equal(one.splits[0][1], train[::2])
    outer = stratified_holdout(y, 2, test_size=30, rng=9)
    result = nested(fit_svorim, X, y, search=GRID, outer=outer, cv=3, choose="one_se")
    for one, params in zip(result.selections, result.params, strict=True):
        assert params == one.points[one.one_se]


def test_a_splitter_is_given_the_numbers_of_sparse_rows():
    seen = []

    class Recording(Halves):
        def split(self, X, y):
            seen.append(X)
            return super().split(X, y)

    select(
        fit_svorim, csr_matrix(np.abs(X)), y, search=Grid(C=[1.0]),
        cv=Recording(), standardize=False, refit=False,
    )  # fmt: skip
    assert_array_equal(seen[0], np.arange(90)[:, None])


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"outer": 0}, ValueError, "outer must be a positive integer"),
    ({"outer": "many"}, TypeError, "outer must be a number, splits"),
    ({"outer": [([0, 1], [1])]}, ValueError, r"outer\[0\] trains on row 1"),
    ({"cv": [([0, 1], [2])]}, TypeError, "cv must be a number of folds or an obj"),
    ({"choose": "worst"}, ValueError, "choose must be one of"),
], ids=str)  # fmt: skip
def test_bad_arguments_of_nested(options, error, message):
    raises(error, message, nested, fit_svorim, X, y, **{"search": GRID, **options})


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"search": Grid(shape=[1])}, TypeError, "unexpected keyword argument 'shape'"),
    ({"tolerance": 1}, TypeError, "argument 'tolerance'; did you mean tol="),
    ({"C": 1.0}, ValueError, "C must not be both tuned"),
    ({"scoring": "balanced_accuracy"}, ValueError, "as a function, .*accuracy_sco"),
    ({"scoring": 3}, TypeError, "name or a callable"),
    ({"scoring": ("mae", "mae")}, ValueError, "different metrics"),
    ({"scoring": "mae", "greater_is_better": True}, ValueError, "contradicts"),
    ({"X": csr_matrix(np.abs(X))}, TypeError, "standardize=False"),
    ({"cv": 1}, ValueError, "cv must be 2 to the number of rows"),
    ({"cv": []}, ValueError, "cv must hold at least one split"),
    ({"cv": 2.5}, TypeError, "cv must be a number, splits .* got 2.5"),
    ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
    ({"cv": [([0, 1], [1, 2])]}, ValueError, "trains on row 1"),
    ({"cv": [([0, 1], [90])]}, ValueError, "outside 0 to 89"),
    ({"cv": [([0.5], [1])]}, ValueError, "vectors of row numbers"),
    ({"cv": [([0], [1], [2])]}, ValueError, "train_idx, test_idx"),
    ({"refit": "all"}, ValueError, "refit must be"),
    ({"progress": -1}, ValueError, "progress must be"),
    ({"halving": 1}, ValueError, "halving must be"),
    ({"n_iter": 0}, ValueError, "n_iter must be"),
    ({"n_iter": 2, "search": CoarseToFine()}, ValueError, "n_iter draws points"),
    ({"search": [1]}, TypeError, "search must be a dict"),
    ({"search": {1: [2]}}, TypeError, "names of parameters"),
    ({"executor": 3}, TypeError, "submit"),
    ({"kernel": "precomputed"}, ValueError, "precomputed"),
    ({"n_threads": 0}, ValueError, "n_threads"),
    ({"rng": -1}, ValueError, "rng"),
    ({"fit": "svorin", "search": None}, ValueError, "did you mean 'svorim'"),
    ({"fit": 3, "search": None}, TypeError, "name of a method"),
    ({"fit": fit_constant, "search": None}, TypeError, "search must be given"),
])  # fmt: skip
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        select(**{"fit": fit_svorim, "X": X, "y": y, "search": GRID, **options})


@pytest.mark.parametrize(("call", "message"), [
    (lambda: Grid(), "at least one argument"),
    (lambda: Grid(C=[]), "at least one value"),
    (lambda: Grid(kernel="rbf"), "sequence"),
    (lambda: UniformDesign(C=(0.0, 1.0)), "positive"),
    (lambda: UniformDesign(others={"u": (2.0, 1.0)}), "u must be"),
    (lambda: UniformDesign(n_points=(13, 8)), "odd"),
    (lambda: gamma_range([[1.0], [2.0]], quantile=1.0), "quantile"),
])  # fmt: skip
def test_bad_searches(call, message):
    raises(ValueError, message, call)


class SplitterClass:
    def split(self, X, y):
        raise NotImplementedError


@pytest.mark.parametrize("cv", [b"x", bytearray(b"xy"), "loo", SplitterClass])
def test_what_has_a_split_and_is_no_splitter_is_refused(cv):
    X, y = sample(30, 3)
    grid = Grid(l2=[0.1, 1.0])
    for call in (
        lambda: select(ordinal.fit_pom, X, y, search=grid, cv=cv),
        lambda: nested(ordinal.fit_pom, X, y, search=grid, cv=cv),
        lambda: ordinal.compare(X, y, methods=["pom"], cv=cv),
    ):
        raises(TypeError, r"^\w+ must be a number.* split method", call)


def test_a_file_cannot_hold_a_function(tmp_path):
    def kernel(A, B):
        return A @ B.T

    found = select(fit_svorim, X, y, search=Grid(C=[1.0], kernel=[kernel]), cv=2)
    with pytest.raises(TypeError, match=r"kernel.* a model file holds data only"):
        found.save(tmp_path / "found.npz")
    assert list(tmp_path.iterdir()) == []
