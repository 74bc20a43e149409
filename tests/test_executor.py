"""Fits whose sums are taken by tasks of an executor: the bytes of those in one process,
and nothing is left running."""

import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from blas import rows_keep_their_bytes
from sources import Cut
from test_streamed import FITS, bytes_of

import ordinal
from ordinal._basis import tasks
from ordinal._basis.stretches import bounds
from ordinal._basis.tasks import OutOfTime
from ordinal._input.blocks import CHUNK

N = 4 * CHUNK + 777
OPTIONS = {"basis": 20, "gamma": 0.3, "tol": 1e-2, "rng": 5}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 4)) * [1, 2, 5, 1] + 1
    score = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=N)
    order = np.argsort(score + rng.normal(size=N))  # samples are of uneven stretches
    X, score = X[order], score[order]
    return X, np.searchsorted(np.quantile(score, [0.3, 0.6]), score) + 1


@pytest.fixture(autouse=True)
def left_running(monkeypatch):
    """Nothing is, beside the threads of the executors."""
    monkeypatch.setattr(tasks, "_LATER", (0.2, 2.0))
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if "_accept" in name]


def same(model, other):
    assert bytes_of(model) == bytes_of(other)
    assert model.convergence.n_iter == other.convergence.n_iter


@pytest.mark.slow
@rows_keep_their_bytes
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("cache_mb", [1000.0, 1.5])
def test_processes_have_the_bytes_of_one(workers, cache_mb, rows, tmp_path):
    X, y = rows
    options = OPTIONS | {"cache_mb": cache_mb}
    whole = ordinal.fit_svorim(X, y, **options)
    stored = np.memmap(tmp_path / "X", X.dtype, "w+", shape=(N + 9, 4))
    stored[9:] = X
    source = Cut(range(1000, N, 1777), X, y)
    with ProcessPoolExecutor(workers) as pool:
        for args in ((X, y), (stored[9:], y), (source, None)):
            same(ordinal.fit_svorim(*args, executor=pool, **options), whole)
    assert source.open == 0


@pytest.mark.slow
@rows_keep_their_bytes
@pytest.mark.parametrize("name", FITS)
def test_threads_have_the_bytes_of_one(name, rows):
    X, y = rows
    w = 1.0 + np.arange(N) % 3
    whole = FITS[name](X, y, sample_weight=w, **OPTIONS)
    with ThreadPoolExecutor(2) as pool:
        model = FITS[name](X, y, sample_weight=w, executor=pool, n_threads=2, **OPTIONS)
    same(model, whole)


@pytest.mark.slow
def test_sparse_rows_and_refinement_in_double(rows):
    X, y = rows
    X = scipy.sparse.csr_array(np.where(X > 1, X, 0))
    options = {"tol": 1e-7, "kernel": "linear", "rng": 5}
    whole = ordinal.fit_svorim(X, y, **options)
    with ThreadPoolExecutor(3) as pool:
        same(ordinal.fit_svorim(X, y, executor=pool, **options), whole)


@pytest.mark.slow
@rows_keep_their_bytes
@pytest.mark.parametrize("lost", [1, 4, 9, 20])
def test_a_task_that_is_lost_begins_anew(lost, rows, monkeypatch):
    X, y = rows
    whole = ordinal.fit_svorim(X, y, **OPTIONS)
    real, asked = tasks._answer, []

    def answer(*request):
        asked.append(0)
        if len(asked) == lost:
            raise OutOfTime  # the task ends, and its connection
        return real(*request)

    monkeypatch.setattr(tasks, "_answer", answer)
    with ThreadPoolExecutor(2) as pool:
        same(ordinal.fit_svorim(X, y, executor=pool, **OPTIONS), whole)
    assert len(asked) > 20


def test_a_pool_that_lost_a_process_says_so(rows):
    seen = []

    def kill(state):
        seen.append(state)
        if len(seen) == 3:
            os.kill(next(iter(pool._processes)), signal.SIGKILL)

    with ProcessPoolExecutor(2) as pool:
        with pytest.raises(RuntimeError, match=r"has lost a worker.*make a new one"):
            ordinal.fit_svorim(*rows, executor=pool, callback=kill, **OPTIONS)


class Failing(Cut):
    """Fails where it is read again."""

    def __getstate__(self):
        return self.__dict__ | {"fail": 0}


class InTurn:
    def submit(self, call, *arguments):
        future = Future()
        future.set_result(call(*arguments))
        return future


def test_errors_end_the_fit(rows):
    X, y = rows
    with ThreadPoolExecutor(2) as pool:
        source = Failing(range(500, N, 2000), X, y)
        with pytest.raises(OSError, match="the disk is gone"):
            ordinal.fit_svorim(source, None, executor=pool, **OPTIONS)
        source.lock = threading.Lock()
        with pytest.raises(TypeError, match=r"pickled with executor=.*lock"):
            ordinal.fit_svorim(source, None, executor=pool, **OPTIONS)
        with pytest.raises(KeyboardInterrupt):
            ordinal.fit_svorim(X, y, executor=pool, callback=_interrupt, **OPTIONS)
        with pytest.raises(ValueError, match="executor is for a model on a basis"):
            ordinal.fit_svorim(X[::4000], y[::4000], executor=pool)
        assert pool.submit(int).result(timeout=600) == 0  # no task is left
    with pytest.raises(TypeError, match="executor must have a submit method, got 3"):
        ordinal.fit_svorim(X, y, executor=3, **OPTIONS)
    with pytest.raises(RuntimeError, match="beside the thread that submits them"):
        ordinal.fit_svorim(X, y, executor=InTurn(), **OPTIONS)


def _interrupt(state):
    raise KeyboardInterrupt


def test_max_time_ends_a_fit_that_waits_for_workers(rows):
    go = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(go.wait)
        with pytest.warns(ordinal.ConvergenceWarning, match="max_time"):
            model = ordinal.fit_svorim(*rows, executor=pool, max_time=0.3, **OPTIONS)
        go.set()
    assert model.convergence.status is ordinal.Status.MAX_TIME


@pytest.mark.parametrize("chunks", [1, 5, 16, 123, 1000])
@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_are_about_as_long(chunks, parts):
    if parts <= chunks:
        sizes = np.diff(bounds(chunks, parts))
        assert (sizes > 0).all()
        assert sizes.sum() == chunks
        assert sizes.max() <= 1.1 * chunks / parts + 1
