"""XOFM of rows that are read in chunks has the bytes of that of rows in memory."""

import numpy as np
import pytest
import scipy.sparse
from files import solution
from internals import CHUNK
from numpy.testing import assert_allclose
from sources import Cut

import ordinal
from ordinal.xofm import fit as xofm_fit

N = CHUNK + 777
FEW = {"max_iter": 12, "n_factors": 2, "tol": 1e-12}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3)) * [1, 2, 5]
    score = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
    return X, np.searchsorted(np.quantile(score, [0.3, 0.6]), score) + 1


def fitted(*args, **options):
    """A model after some steps: far from the optimum, the same to rounding."""
    with pytest.warns(
        ordinal.exceptions.ConvergenceWarning, match="max_iter after 12 steps"
    ):
        return ordinal.fit_xofm(*args, **FEW | options)


def test_samples_begin_a_fit_of_many_rows(rows, monkeypatch):
    X, y = rows
    y = np.where(np.arange(N) == 1, 9, y)  # a rank that no sample has
    few = y != 9
    plain_source, source = (Cut([99], X[few], y[few]) for _ in range(2))
    plain = ordinal.fit_xofm(plain_source, None, cache_mb=1e-3)
    rare = ordinal.fit_xofm(X, y)
    monkeypatch.setattr(xofm_fit, "_LEAST", 200)  # samples of every 16th row
    seen = []
    model = ordinal.fit_xofm(X[few], y[few], callback=lambda s: seen.append(s.n_iter))
    assert seen == sorted(seen)
    assert model.convergence.converged
    assert model.convergence.n_iter >= seen[-1]
    # the same minimum, as far as the tolerance determines it, by fewer passes
    assert_allclose(model.convergence.primal, plain.convergence.primal, rtol=1e-3)
    again = ordinal.fit_xofm(source, None, n_threads=2, cache_mb=1e-3)
    assert solution(again) == solution(model)
    assert source.passes < 0.5 * plain_source.passes
    assert solution(ordinal.fit_xofm(X, y)) == solution(rare)


def test_weights_and_gaps(rows):
    X, y = rows[0].copy(), rows[1].copy()
    w = 1.0 + np.arange(N) % 3
    X[::7, 1] = np.nan
    w[:40], w[CHUNK - 3 : CHUNK + 3] = 0, 0
    X[w == 0], y[w == 0] = 1e3, 9
    options = {"classes": [1, 2, 3, 9], "breakpoints": "quantile"}
    whole = fitted(X, y, sample_weight=w, **options)
    without = fitted(X[w > 0], y[w > 0], sample_weight=w[w > 0], **options)
    assert solution(without) == solution(whole)
    for cache_mb in (1000.0, 0.58, 1e-3):
        cut = {"cache_mb": cache_mb} | options
        assert solution(fitted(Cut([50, 60], X, y, w), None, **cut)) == solution(whole)
        assert solution(fitted(X, y, sample_weight=w, **cut)) == solution(whole)


def test_sparse_rows_are_dense_rows(rows):
    X, y = np.where(np.abs(rows[0]) > 0.7, rows[0], 0.0), rows[1]
    X[:, 0] = np.abs(X[:, 0])  # with no value below those that are not stored
    whole = ordinal.fit_xofm(X, y, tol=0.1)
    model = ordinal.fit_xofm(Cut([99], scipy.sparse.csr_array(X), y), None, tol=0.1)
    assert solution(model) == solution(whole)
