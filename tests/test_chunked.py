"""Fits of rows that are read in chunks have the bytes of those of rows in memory."""

import re

import numpy as np
import pandas
import pytest
import scipy.sparse
from files import solution
from internals import CHUNK, Arrays, folds
from registry import FITS
from sources import Cut, mapped, wavy
from strategies import raises

import ordinal
import ordinal._command.data
from ordinal.__main__ import main
from ordinal._rows import reading
from ordinal.preprocessing import PreprocessedModel, Standardizer

N = 2 * CHUNK + 777


@pytest.fixture(scope="module")
def rows():
    return wavy(N, [1, 2, 5, 1], noise=0.1)


OPTIONS = {"basis": 20, "gamma": 0.3, "tol": 1e-2}


def test_large_arrays_in_single_precision_are_not_copied(rows, monkeypatch):
    X, y = rows[0].astype(np.float32), rows[1]
    copied = ordinal.fit_svorim(X, y, **OPTIONS)
    chunks = []
    sliced = Arrays.features

    def seen(source, chunk):
        assert source.X is X
        chunks.append(chunk)
        return sliced(source, chunk)

    monkeypatch.setattr(reading, "_LARGE", X.nbytes)
    monkeypatch.setattr(Arrays, "features", seen)
    assert solution(ordinal.fit_svorim(X, y, **OPTIONS)) == solution(copied)
    assert chunks
    X[N // 2, 1] = np.inf
    with pytest.raises(ValueError, match=f"row is {N // 2 - CHUNK}, with inf"):
        ordinal.fit_svorim(X, y, **OPTIONS)


def test_a_link_of_very_many_rows_looks_at_few(rows, monkeypatch):
    monkeypatch.setattr(folds, "_MOST", 1000)
    scored, X = [], rows[0]
    y = np.where(np.arange(N) % 1000 == 7, 4, rows[1])  # 18 rows of a fourth rank
    parts = folds.out_of_fold

    def seen(*args):
        for part in parts(*args):
            scored.append((part.problem.n_samples, part.test.size, part.weight.sum()))
            yield part

    monkeypatch.setattr(folds, "out_of_fold", seen)
    options = OPTIONS | {"probability": True, "tol": 0.1}
    source = Cut([5000], X, y)
    model = ordinal.fit_svorim(source, None, **options)
    assert source.open == 0
    ((trained, tested, weight),) = scored
    assert trained + tested == N  # all others are trained on
    assert 195 <= tested <= 205
    assert weight == pytest.approx(N / 5, rel=0.02)  # they stand for a fifth of all
    P = model.predict_proba(X)
    np.testing.assert_allclose(
        P.mean(axis=0), np.bincount(y)[1:] / N, atol=3 * np.sqrt(0.25 / 200)
    )
    assert P.tobytes() == ordinal.fit_svorim(X, y, **options).predict_proba(X).tobytes()


NEEDS_BASIS = TypeError, "X comes in chunks, from which only a"
NEEDS_ALL = TypeError, "X comes in chunks, and fit_{} accepts rows in memory only: pass"
PRECOMPUTED = ValueError, "kernel must not be 'precomputed' where X is read"
REFUSED = [
    *((name, {}, *NEEDS_BASIS) for name in ("svorim", "svorex", "tlssvor", "gpor")),
    *((name, {}, *NEEDS_ALL) for name in (
        "boosting", "clmm", "nnor", "nnpom", "elmor", "cnnor", "ofmhs", "pom_path")),
    *((name, {"basis": 20, "kernel": "precomputed"}, *PRECOMPUTED)
      for name in ("svorim", "gpor")),
    ("gpor", {"basis": 3, "sparse": True}, TypeError, "kernel='rbf' where it is read"),
    *(("pom", options, ValueError, message) for options, message in (
        ({"l1": 0.1}, "l1 must be 0 where X is read in chunks"),
        ({"missing": "drop"}, "missing must be 'error' where X is read in chunks"),
        ({"cluster": [1]}, "cluster must be None where X is read in chunks"),
        ({"reference": {}}, "reference must be None where X is read in chunks"),
        ({"sample_weight": [1]}, "sample_weight must be None: the blocks of X hold it"),
        ({"offset": [1.0]}, rf"offset has shape \(1,\), expected \({N},\)"))),
    *(("xofm", options, ValueError, message) for options, message in (
        ({"solver": "sgd"}, "solver must be 'lbfgs' where X is read in chunks"),
        ({"early_stopping": 0.2}, "early_stopping must be None where X is read in ch"),
        ({"categorical": [0]}, "categorical must be empty where X is read in chunks"))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "error", "message"), REFUSED)
def test_what_needs_all_rows(name, options, error, message, rows):
    X, y = rows
    options = {**options}
    X = scipy.sparse.csr_array(X) if options.pop("sparse", False) else X
    source = Cut([99], X, y)
    raises(error, message.format(name), FITS[f"fit_{name}"], source, None, **options)
    assert source.open == 0


def test_rows_are_standardised_in_the_first_pass(rows, tmp_path):
    X, y = rows
    stored = mapped(X, tmp_path)
    s = Standardizer.fit(X)
    options = OPTIONS | {"gamma": "scale", "classes": [3, 2, 1]}
    for args in ((stored, y), (Cut(range(1000, N, 1777), X, y), None)):
        fit = PreprocessedModel.fit
        model = fit(ordinal.fit_svorim, *args, preprocess=Standardizer, **options)
        np.testing.assert_allclose(model.preprocessor.mean, s.mean, rtol=1e-12)
        np.testing.assert_allclose(model.preprocessor.scale, s.scale, rtol=1e-12)
        # what the model was fitted to are the rows that this standardizer makes
        made = model.preprocessor.transform(X)
        assert model.model.kernel.gamma == pytest.approx(1 / (4 * made.var()), rel=1e-9)
        options_of = OPTIONS | {"gamma": model.model.kernel.gamma, "classes": [3, 2, 1]}
        same = ordinal.fit_svorim(made, y, **options_of)
        assert solution(same) == solution(model.model)
    with pytest.raises(ValueError, match="preprocess must be Standardizer, or None"):
        PreprocessedModel.fit(ordinal.fit_svorim, Cut([9], X, y), None, **OPTIONS)
    sparse = Cut([9], scipy.sparse.csr_array(X), y)
    with pytest.raises(TypeError, match="X is sparse"):
        PreprocessedModel.fit(
            ordinal.fit_svorim, sparse, None, preprocess=Standardizer, **OPTIONS
        )


@pytest.mark.parametrize("name", ["svorim", "npsvor", "tlssvor"])
def test_a_linear_kernel_needs_no_basis(name, rows):
    (X, y), fit = (a[:9000] for a in rows), FITS[f"fit_{name}"]
    options = {"kernel": "linear", "tol": 1e-2}
    of_blocks = fit(Cut([100, 5000], X, y), None, **options)
    assert solution(of_blocks) == solution(fit(X, y, **options))
    assert len(of_blocks.support) == 4


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.DisorderedThresholdsWarning")
def test_tlssvor_finds_the_size_of_a_basis_of_blocks(rows):
    noise = np.random.default_rng(0).integers(1, 4, N)
    options = {"C": 0.1, "gamma": 0.3, "tol": 1e-3, "basis": "auto", "u": np.inf}
    model = ordinal.fit_tlssvor(Cut([9999], rows[0], noise), None, **options)
    assert 100 <= len(model.support) <= 400


@pytest.fixture
def table(rows, tmp_path):
    X, y = rows
    path = tmp_path / "t.csv"
    columns = np.column_stack([X[:9000], y[:9000]])
    np.savetxt(path, columns, delimiter=",", header="a,b,c,d,y", comments="")
    return path


def run(*args):
    return main([str(arg) for arg in args])


def test_the_command_streams_large_files(table, tmp_path, monkeypatch, capsys):
    """Without being asked to; what it fits is checked in test_methods_chunks.py."""
    options = ["--method", "svorim", "--set", "basis=20", "gamma=0.3", "tol=0.01"]
    monkeypatch.setattr(ordinal._command.data, "_LARGE", 1000)
    assert run("fit", table, "--out", tmp_path / "m.npz", *options) == 0
    out = capsys.readouterr().out
    assert "t.csv, read in chunks, with the ranks of 'y': converged in" in out
    model, out = ordinal.load(tmp_path / "m.npz"), tmp_path / "p.parquet"
    assert run("predict", tmp_path / "m.npz", table, "--out", out) == 0
    labels = np.concatenate(list(ordinal.data.predictions(model, table)))
    np.testing.assert_array_equal(pandas.read_parquet(out)["prediction"], labels)


@pytest.mark.parametrize(("options", "message"), [
    (["--method", "svorim"], "X comes in chunks, from which only a model on a"),
    (["--method", "svorim", "--tune"],
     "no point .* X comes in chunks, from which only a model on a"),
    (["--method", "svorim", "--bins", 3], "--bins needs the whole table"),
    (["--method", "svorim", "--target", "z"], "has no column 'z'"),
    (["--method", "svorim", "--drop", "z"], "has no column 'z'"),
    (["--method", "svorim", "--set", "basis=9", "--classes", "1,2"],
     "error: y holds 3"),
    (["--method", "svorim", "--classes", "a,b"], "column 'y' holds numbers"),
])  # fmt: skip
def test_what_the_command_cannot_stream(table, options, message, tmp_path, capsys):
    assert run("fit", table, "--out", tmp_path / "m.npz", "--stream", *options) == 2
    assert re.search(message, capsys.readouterr().err)
    assert run("fit", "-", "--out", tmp_path / "m.npz", "--stream", *options[:2]) == 2
    assert "standard input can be read only once" in capsys.readouterr().err
