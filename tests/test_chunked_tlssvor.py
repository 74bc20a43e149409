"""TLS-SVOR of rows that are read in chunks has the bytes of that of rows in memory."""

import warnings

import numpy as np
import pytest
from internals import CHUNK
from sources import Cut

import ordinal

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


def test_tlssvor_finds_the_size_of_a_basis_of_blocks(rows):
    noise = np.random.default_rng(0).integers(1, 4, N)
    options = TLS | {"basis": "auto", "u": np.inf}
    model = tlssvor(Cut([9999], rows[0], noise), None, **options)
    assert 100 <= len(model.support) <= 400
