"""GPOR of rows that are read in chunks is that of rows in memory, to the byte."""

import numpy as np
import pytest
import scipy.sparse
from files import solution
from internals import ChunkedProblem, source
from sources import Cut, wavy
from strategies import slow

import ordinal
from ordinal._model import preparation
from ordinal._rows import rows as chunked_rows
from ordinal.gpor import covariance

N = 8192 + 1777  # more than a chunk of the first pass
FEW = {"inference": "laplace", "max_iter": 3, "tol": 0.5, "rng": 5}


@pytest.fixture(autouse=True)
def many_chunks(monkeypatch):
    """More than are held, so that rows are read again."""
    for module in (source, chunked_rows, covariance):
        monkeypatch.setattr(module, "CHUNK", 1000)


@pytest.fixture(scope="module")
def rows():
    return wavy(N, [1, 2, 5], noise=0.3)


def fit(*args, **options):
    return ordinal.fit_gpor(*args, **FEW | options)


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", ["rbf", *slow("ard", "linear", "ard_linear")])
@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_gpor_of_blocks_takes_every_kernel_and_weights_of_none(kernel, inference, rows):
    X, y = rows[0][-2500:], rows[1][-2500:]
    w = np.arange(2500) % 3.0
    basis = {"rbf": {"ep": ("kmeans++", 7), "laplace": X[:7]}[inference], "ard": 7}
    options = {
        "basis": basis.get(kernel, 3), "kernel": kernel, "inference": inference,
        "max_iter": 2,
    }  # fmt: skip
    whole = solution(fit(X, y, sample_weight=w, **options))
    source = Cut([1, 900, 901], X, y, w)
    assert solution(fit(source, None, cache_mb=0.1, **options)) == whole
    assert source.open == 0


def test_a_number_of_rows_is_chosen_among_some_of_many(rows, monkeypatch):
    options = {"basis": 9, "optimize": False, "inference": "laplace"}
    support = fit(*rows, **options).support
    monkeypatch.setattr(ordinal.gpor.fit, "_SAMPLE", 100)
    whole = fit(*rows, **options)
    assert len(whole.support) == 9
    assert not np.array_equal(whole.support, support)
    for cut in ([5], [7, 8000]):
        assert solution(fit(Cut(cut, *rows), None, **options)) == solution(whole)


def test_gpor_finds_the_size_of_a_basis_of_blocks(rows):
    source = Cut([500], rows[0][:1200], rows[1][:1200])
    assert 100 <= len(fit(source, None, basis="auto", optimize=False).support) <= 400
    assert source.open == 0


def test_some_rows_of_a_source_are_taken_as_all_of_them_are(rows, monkeypatch):
    monkeypatch.setattr(preparation, "CHUNK", 1000)
    X, y = rows
    part = ChunkedProblem.from_source(Cut([700], X, y)).subset(np.arange(0, N, 2))
    for kernel in ("rbf", "ard"):
        options = {"basis": ("random", 6), "kernel": kernel, "optimize": False}
        whole = fit(X[::2], y[::2], **options)
        assert solution(fit(part, None, **options)) == solution(whole)


def test_all_rows_of_a_source_are_a_basis(rows):
    X, y = rows[0][:80], rows[1][:80]
    whole = fit(X, y, optimize=False)
    for basis in (80, 1.0, 500):
        cut = fit(Cut([33], X, y), None, basis=basis, optimize=False)
        assert solution(cut) == solution(whole)


def test_sparse_rows_in_chunks_go_with_kernels_that_are_given(rows):
    X, y = rows[0][:900], rows[1][:900]
    X = scipy.sparse.csr_array(np.where(X > 1, X, 0))
    for kernel in ("linear", ordinal.kernels.RBF(0.2)):
        options = {"basis": ("random", 3), "kernel": kernel, "optimize": False}
        whole = fit(X, y, **options)
        assert solution(fit(Cut([100], X, y), None, **options)) == solution(whole)


class Fewer(Cut):
    """Lacks its last rows after so many passes."""

    whole = 0

    def blocks(self):
        if self.passes == self.whole:
            self.arrays = [a[:-5] for a in self.arrays]
        return super().blocks()


@pytest.mark.parametrize("whole", [1, 2, 5])
def test_rows_that_change_between_passes_are_an_error_and_no_bad_trial(whole, rows):
    source = Fewer([1000], *rows)
    source.whole = whole
    with pytest.raises(ValueError, match="gave 9969 rows in the first pass and 9964"):
        fit(source, None, basis=("random", 8))
    assert source.open == 0
