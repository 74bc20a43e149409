"""TLS-SVOR of rows that are read in chunks has the bytes of that of rows in memory."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sources import Cut

import ordinal
from ordinal._command.main import main
from ordinal._rows.source import CHUNK
from ordinal.preprocessing import PreprocessedModel, Standardizer

N = 2 * CHUNK + 777


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 4)) * [1, 2, 5, 1] + 1
    score = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=N)
    return X, np.searchsorted(np.quantile(score, [0.3, 0.6]), score) + 1


def bytes_of(model):
    values = [getattr(model, name) for name in ("coef", "thresholds", "support")]
    return [(v.dense() if hasattr(v, "dense") else v).tobytes() for v in values]


TLS = {"C": 0.1, "gamma": 0.3, "tol": 1e-3, "u": 1.5, "rng": 5}
EACH_BASIS = [20, ("kmeans++", 20), ("cholesky", 20), np.arange(0, N, 900), "own", None]


def tlssvor(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ordinal.DisorderedThresholdsWarning)
        return ordinal.fit_tlssvor(*args, **options)


@pytest.mark.slow
@pytest.mark.parametrize("basis", EACH_BASIS, ids=str)
def test_tlssvor_of_blocks_has_the_bytes_of_arrays(basis, rows, tmp_path):
    X, y = rows
    options = TLS | {"basis": X[:9] if isinstance(basis, str) else basis}
    if basis is None:  # every row, as unit vectors
        options |= {"kernel": "linear", "gamma": "scale"}
    whole = tlssvor(X, y, **options)
    stored = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
    stored[:] = X
    source = Cut(range(1000, N, 1777), X, y)
    for cache_mb, n_threads, args in (
        (1000.0, 2, (stored, y)), (0.5, 1, (X, y)), (0.5, 2, (source, None))
    ):  # fmt: skip
        model = tlssvor(*args, cache_mb=cache_mb, n_threads=n_threads, **options)
        assert bytes_of(model) == bytes_of(whole)
        assert model.convergence.n_iter == whole.convergence.n_iter
        assert model.convergence.violation == whole.convergence.violation
        assert model.convergence.primal == whole.convergence.primal
    assert source.open == 0
    assert source.passes > 1


def test_tlssvor_reads_weights_and_sparse_rows_in_chunks(rows):
    X, y = rows
    X = scipy.sparse.csr_array(np.where(X > 1, X, 0))
    w = 1.0 + np.arange(N) % 3
    options = TLS | {"basis": 10, "class_weight": "balanced", "cache_mb": 0.9}
    whole = tlssvor(X, y, sample_weight=w, **options)
    cut = tlssvor(Cut([9, 9999], X, y, w), None, **options)
    assert bytes_of(cut) == bytes_of(whole)


def test_tlssvor_of_blocks_has_probabilities(rows):
    X, y = rows
    options = TLS | {"basis": 15, "probability": True, "u": np.inf}
    whole = tlssvor(X, y, **options)
    source = Cut(range(1000, N, 1777), X, y)
    cut = tlssvor(source, None, **options)
    np.testing.assert_array_equal(cut.predict_proba(X[:9]), whole.predict_proba(X[:9]))
    assert source.open == 0


def test_tlssvor_finds_the_size_of_a_basis_of_blocks(rows):
    noise = np.random.default_rng(0).integers(1, 4, N)
    options = TLS | {"basis": "auto", "u": np.inf}
    model = tlssvor(Cut([9999], rows[0], noise), None, **options)
    assert 100 <= len(model.support) <= 400


@pytest.mark.parametrize("fail", [1, 2, 3])
def test_tlssvor_closes_a_source_that_fails(rows, fail):
    source = Cut(range(500, N, 2000), *rows, fail=fail)
    with pytest.raises(OSError, match="the disk is gone"):
        tlssvor(source, None, n_threads=2, cache_mb=0.9, basis=20, **TLS)
    assert source.open == 0


def test_tlssvor_names_a_bad_block_and_closes_the_source(rows):
    X = rows[0].copy()
    X[9001, 2] = np.nan
    source = Cut(range(1000, N, 1000), X, rows[1])
    with pytest.raises(ValueError, match=r"^block 9, whose row 0 is row 9000 of all: "):
        tlssvor(source, None, basis=20, **TLS)
    assert source.open == 0


def test_tlssvor_of_blocks_ends_in_time(rows):
    source = Cut(range(500, N, 2000), *rows)
    for options in ({"max_time": 1e-9}, {"callback": lambda state: True}):
        with pytest.warns(ordinal.ConvergenceWarning):
            model = tlssvor(source, None, basis=20, **TLS, **options)
        assert source.open == 0
        assert model.predict(rows[0][:5]).shape == (5,)


@pytest.fixture
def table(rows, tmp_path):
    X, y = rows
    path = tmp_path / "t.csv"
    columns = np.column_stack([X[:9000], y[:9000]])
    np.savetxt(path, columns, delimiter=",", header="a,b,c,d,y", comments="")
    return path


def test_the_command_streams_tlssvor(table, tmp_path):
    out, options = tmp_path / "m.npz", {"basis": 20, "gamma": 0.3, "tol": 0.01}
    given = [f"{name}={value}" for name, value in options.items()]
    args = ["--method", "tlssvor", "--stream", "--set", "u=3.0", *given]
    assert main(["fit", str(table), "--out", str(out), *args]) == 0
    same = PreprocessedModel.fit(
        ordinal.fit_tlssvor, ordinal.data.blocks(table, target="y"), None,
        preprocess=Standardizer, u=3.0, **options,
    )  # fmt: skip
    assert bytes_of(ordinal.load(out).model) == bytes_of(same.model)
