"""Searches over rows that are read in chunks find what those of rows in memory find."""

import pickle
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.sparse
from files import solution
from internals import CHUNK, Arrays
from sources import Cut, wavy
from strategies import raises

import ordinal
from ordinal.model_selection import Grid, nested, select
from ordinal.preprocessing import TablePreprocessor

N = CHUNK + 2000
OPTIONS = {"basis": 12, "gamma": 0.3, "tol": 0.1}
GRID = Grid(C=[0.1, 10.0])


@pytest.fixture(scope="module")
def rows():
    return wavy(N, [1, 2, 5], noise=0.5)


@pytest.fixture
def mapped(rows, tmp_path):
    """The rows in the middle of a file."""
    X = rows[0]
    stored = np.memmap(tmp_path / "X", X.dtype, "w+", 72, shape=(N + 9, 3))
    stored[5:-4] = X
    stored.flush()
    return np.memmap(tmp_path / "X", X.dtype, "r", 72, shape=(N + 9, 3))[5:-4]


def same(found, other):
    assert found.scores.tobytes() == other.scores.tobytes()
    for name in found.others:
        assert found.others[name].tobytes() == other.others[name].tobytes()
    assert found.points == other.points
    assert (found.best, found.one_se) == (other.best, other.one_se)
    assert not found.failures
    if other.model is not None:
        assert solution(found.model) == solution(other.model)


FITS = [ordinal.fit_svorim, ordinal.companions.fit_redsvm, ordinal.fit_npsvor]


@pytest.mark.slow("three searches of 10 000 rows")
@pytest.mark.parametrize(
    ("fit", "standardize"), [*((fit, True) for fit in FITS), (FITS[0], False)]
)
def test_a_search_finds_what_it_finds_in_memory(fit, standardize, rows, mapped):
    X, y = rows
    options = OPTIONS | {"search": GRID, "cv": 3, "standardize": standardize}
    options["scoring"] = ["mae", "kendall"]
    whole = select(fit, X, y, **options)
    source = Cut(range(1000, N, 1777), X, y)
    for args in ((mapped, y), (source, None)):
        same(select(fit, *args, **options), whole)
    assert source.open == 0


@pytest.mark.slow("two searches of 10 000 rows")
@pytest.mark.parametrize("form", ["weights", "classes", "sparse", "probabilities"])
def test_what_comes_with_the_rows(form, rows):
    X, y = rows
    given, options = (X, y), OPTIONS | {"search": GRID, "cv": 2}
    if form == "weights":
        given = X, y, 1.0 + np.arange(N) % 3
        options["search"] = Grid(C=[1.0], class_weight=[None, "balanced"])
    if form == "classes":
        given = X, np.array(["low", "middle", "high"])[y - 1]
        options |= {"classes": ["low", "middle", "high"], "class_weight": {"low": 9}}
    if form == "sparse":
        given = scipy.sparse.csr_array(np.where(X > 1, X, 0)), y
        options["standardize"] = False
    if form == "probabilities":
        options |= {"probability": True, "scoring": ["rps", "mae"]}
        options["search"] = Grid(C=[1.0])
    weight = given[2] if len(given) == 3 else None
    whole = select(ordinal.fit_svorim, *given[:2], sample_weight=weight, **options)
    source = Cut([9, 9999], *given)
    found = select(ordinal.fit_svorim, source, None, **options)
    same(found, whole)
    assert source.open == 0
    if form == "probabilities":
        P, Q = (s.model.predict_proba(X[:9]) for s in (found, whole))
        assert P.tobytes() == Q.tobytes()


def test_nested(rows):
    X, y = rows
    options = OPTIONS | {"search": GRID, "outer": 2, "cv": 2}
    source = Cut([100, 5000], X, y)
    found = nested(ordinal.fit_svorim, source, None, **options)
    whole = nested(ordinal.fit_svorim, X, y, **options)
    for name in whole.scores:
        assert found.scores[name].tobytes() == whole.scores[name].tobytes()
    assert found.params == whole.params
    for one, other in zip(found.selections, whole.selections, strict=True):
        same(one, other)
    assert source.open == 0


def test_cross_conformal(rows, mapped):
    X, y = rows
    w = 1.0 + np.arange(N) % 3
    source = Cut([100, 5000], X, y, w)
    given = {"sample_weight": w, "cv": 2, **OPTIONS}
    whole = ordinal.cross_conformal(ordinal.fit_svorim, X, y, **given)
    of_map = partial(ordinal.cross_conformal, ordinal.fit_svorim, mapped, y)
    for found in (
        ordinal.cross_conformal(ordinal.fit_svorim, source, None, cv=2, **OPTIONS),
        of_map(sample_weight=w, cv=2, **OPTIONS),
    ):
        for name in ("scores", "ranks", "folds", "weights"):
            ours, theirs = getattr(found, name), getattr(whole, name)
            assert ours.tobytes() == theirs.tobytes()
        assert solution(found.model) == solution(whole.model)
    assert source.open == 0


def test_a_search_is_continued_from_a_store(rows, tmp_path):
    options = OPTIONS | {"search": GRID, "cv": 2, "store": tmp_path, "refit": False}
    first = select(ordinal.fit_svorim, Cut([100], *rows), None, **options)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 2
    same(select(ordinal.fit_svorim, Cut([7, 9], *rows), None, **options), first)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == files
    select(ordinal.fit_svorim, Cut([100], rows[0] + 1, rows[1]), None, **options)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.slow("starts a process")
def test_workers_in_processes_read_for_themselves(rows, mapped):
    X, y = rows
    options = OPTIONS | {"search": GRID, "cv": 2, "refit": False}
    whole = select(ordinal.fit_svorim, X, y, **options)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        same(select(ordinal.fit_svorim, mapped, y, executor=pool, **options), whole)


def test_maps_are_sent_by_their_paths(mapped):
    sent = pickle.dumps(Arrays(mapped))
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent).X, mapped)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(Arrays(mapped[:, 1:]))).X, mapped[:, 1:]
    )


class Locked(Cut):
    def __init__(self, *args):
        super().__init__(*args)
        self.lock = threading.Lock()


@pytest.mark.parametrize(("change", "kind", "message"), [
    ({"executor": True}, TypeError, "X must be a source that can be pickled"),
    ({"fit": lambda X, y: None}, TypeError, "X comes in chunks, which only the"),
    ({"preprocess": TablePreprocessor()}, ValueError, "preprocess must be None"),
    ({"cv": [([1, 5, 1], [9])]}, ValueError, r"cv\[0\] must name a row once where"),
    ({"basis": None}, ValueError, "no point could be .* such as basis=300"),
    ({"y": [1, 2]}, ValueError, "y must be None: the blocks of X hold it"),
    ({"sparse": True}, TypeError, "X is sparse, .* fill it: pass standardize"),
])  # fmt: skip
def test_what_searches_of_blocks_cannot_do(change, kind, message, rows):
    X, y = rows[0][:900], rows[1][:900]
    options = {"fit": ordinal.fit_svorim, "y": None, **OPTIONS, "search": GRID}
    options |= change
    if options.pop("sparse", False):
        X = scipy.sparse.csr_array(X)
    source = Locked([100], X, y)
    fit, y = options.pop("fit"), options.pop("y")
    with ProcessPoolExecutor(1) as pool:
        if "executor" in change:
            options["executor"] = pool
        raises(kind, message, select, fit, source, y, **options)
    assert source.open == 0


@pytest.mark.parametrize("fail", [1, 2, 3, 4, 6, 9])
def test_a_source_that_fails_later_is_closed(fail, rows):
    source = Cut([5000], *rows, fail=fail)
    with pytest.raises((OSError, ValueError), match="the disk is gone"):
        select("svorim", source, None, search=GRID, cv=2, cache_mb=0.1, **OPTIONS)
    assert source.open == 0
