"""XOFM of rows that are read in blocks is that of the rows in memory."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sources import Cut

import ordinal
from ordinal._command.main import main
from ordinal._input.blocks import CHUNK

N = CHUNK + 777
SAME = 1e-9  # relative: rounding grows in the steps of L-BFGS
FEW = {"max_iter": 12, "n_factors": 2, "tol": 1e-12}
FIELDS = ("u", "V", "scores", "mass", "start", "node_mass", "node_between")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3)) * [1, 2, 5]
    score = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
    return X, np.searchsorted(np.quantile(score, [0.3, 0.6]), score) + 1


def fitted(*args, **options):
    """A model after some steps: far from the optimum, the same to rounding."""
    with pytest.warns(ordinal.ConvergenceWarning, match="max_iter after 12 steps"):
        return ordinal.fit_xofm(*args, **FEW | options)


def bytes_of(model):
    arrays = [getattr(model, name) for name in FIELDS]
    return [a.tobytes() for a in (*arrays, *model.breakpoints, *model.histogram)]


def assert_near(model, whole):
    for name in FIELDS:
        ours, theirs = getattr(model, name), getattr(whole, name)
        assert_allclose(
            ours, theirs, rtol=SAME, atol=SAME * np.abs(theirs).max(initial=0.0)
        )
    for name in ("breakpoints", "histogram"):
        for ours, theirs in zip(
            getattr(model, name), getattr(whole, name), strict=True
        ):
            assert_allclose(ours, theirs, rtol=SAME, atol=1e-15)


@pytest.mark.parametrize(
    "options",
    [{}, {"breakpoints": "quantile", "monotone": [0, 1, 0]}, {"n_factors": 0}],
)
def test_blocks_give_the_model_of_rows_in_memory(options, rows, tmp_path):
    X, y = rows
    stored = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
    stored[:] = X
    first = fitted(stored, y, **options)
    assert_near(first, fitted(X, y, **options))
    for ends, n_threads in ((range(1000, N, 1777), 3), ([], 1)):
        source = Cut(ends, X, y)
        model = fitted(source, None, n_threads=n_threads, **options)
        assert bytes_of(model) == bytes_of(first)
        assert source.open == 0


def test_the_optimum_is_the_same(rows):
    options = {"n_factors": 0, "tol": 1e-7}
    whole = ordinal.fit_xofm(*rows, **options)
    model = ordinal.fit_xofm(Cut([99], *rows), None, **options)
    assert_allclose(model.u, whole.u, atol=1e-4)
    assert_allclose(model.convergence.primal, whole.convergence.primal, rtol=1e-9)


def test_weights_and_gaps(rows):
    X, y = rows[0].copy(), rows[1].copy()
    w = 1.0 + np.arange(N) % 3
    X[::7, 1] = np.nan
    w[:40], w[CHUNK - 3 : CHUNK + 3] = 0, 0
    X[w == 0], y[w == 0] = 1e3, 9
    options = {"classes": [1, 2, 3, 9], "breakpoints": "quantile"}
    whole = fitted(X, y, sample_weight=w, **options)
    model = fitted(Cut([50, 60], X, y, w), None, **options)
    assert_near(model, whole)
    np.testing.assert_array_equal(model.predict(X[40:90]), whole.predict(X[40:90]))


def test_probabilities(rows):
    options = {"probability": True, "n_factors": 0}
    whole = ordinal.fit_xofm(*rows, **options)
    first, other = (
        ordinal.fit_xofm(Cut(ends, *rows), None, **options) for ends in ([], [77])
    )
    X = rows[0][:50]
    assert first.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()
    assert_allclose(first.predict_proba(X), whole.predict_proba(X), atol=0.05)


@pytest.mark.parametrize("fail", range(8))
def test_a_source_that_fails_is_closed(rows, fail):
    source = Cut(range(500, N, 2000), *rows, fail=fail)
    with pytest.raises(OSError, match="the disk is gone"):
        ordinal.fit_xofm(source, None, n_threads=2, breakpoints="quantile")
    assert source.open == 0


def test_a_fit_that_is_stopped_closes_its_source(rows):
    for options in ({"callback": lambda state: True}, {"max_time": 1e-9}):
        source = Cut(range(500, N, 2000), *rows)
        with pytest.warns(ordinal.ConvergenceWarning):
            ordinal.fit_xofm(source, None, **options)
        assert source.open == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "sgd"}, "solver must be 'lbfgs' where X is read in blocks"),
        ({"early_stopping": 0.2}, "early_stopping must be None where X is read in bl"),
        ({"categorical": [0]}, "categorical must be empty where X is read in blocks"),
    ],
)
def test_what_needs_all_rows(options, message, rows):
    source = Cut([99], *rows)
    with pytest.raises(ValueError, match=message):
        ordinal.fit_xofm(source, None, **options)
    assert source.passes == 0


def test_what_is_wrong_with_a_block_names_it(rows):
    X, y = rows[0].copy(), rows[1]
    X[5005, 2] = np.inf
    source = Cut(range(1000, N, 1000), X, y)
    where = "block 5, whose row 0 is row 5000 of all: X must be finite or NaN.* is 5"
    with pytest.raises(ValueError, match=where):
        ordinal.fit_xofm(source, None)
    assert source.open == 0
    with pytest.raises(TypeError, match="X is sparse, and zeros are values"):
        ordinal.fit_xofm(Cut([9], scipy.sparse.csr_array(rows[0]), y), None)


def test_the_command_streams_files(rows, tmp_path, capsys):
    X, y = (a[:2000] for a in rows)
    path, out = tmp_path / "t.csv", tmp_path / "m.npz"
    np.savetxt(
        path, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments=""
    )
    args = ["fit", path, "--stream", "--method", "xofm", "--out", out]
    args += ["--set", "n_factors=0"]
    assert main([str(arg) for arg in args]) == 0
    assert "t.csv, read in blocks: converged in" in capsys.readouterr().out
    source = ordinal.data.blocks(path, target="y")
    same = ordinal.fit_xofm(source, None, n_factors=0)
    assert bytes_of(ordinal.load(out)) == bytes_of(same)
    assert same.feature_names == ("a", "b", "c")
