"""Sources whose later passes differ from the first one are found out by every fit."""

import numpy as np
import pytest
import scipy.sparse
from internals import ChunkedProblem, source
from sources import Cut, Differing, mapped
from strategies import raises

import ordinal
from ordinal._rows.source import SPAN, Checksums


def table(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.5, 0.5])


def test_a_map_that_is_written_to_between_passes(tmp_path):
    X, y = table(2 * SPAN)
    stored = mapped(X, tmp_path)
    problem = ChunkedProblem.from_source(stored, y)
    stored[SPAN:] += 1.0
    rows = problem.X
    np.testing.assert_array_equal(rows[:SPAN], X[:SPAN])
    for read in (lambda: rows[SPAN:], lambda: list(rows.chunks())):
        raises(ValueError, "X yielded other features in rows 8192", read)


def test_a_value_that_is_missing_in_a_later_pass():
    def a_gap(X, rows):
        X[100, 1] = np.nan  # in no sample
        return X, rows

    X, y = table()
    message = r"block 2, .* Differing\(\) yielded a missing value in column 1, which"
    with pytest.raises(ValueError, match=message):
        ordinal.fit_xofm(Differing(a_gap, X, y), None, solver="lbfgs", n_threads=1)
    X[5, 1] = np.nan  # where others may be missing
    source = Differing(lambda X, rows: (X, rows), X, y)
    assert ordinal.fit_xofm(source, None, solver="lbfgs", n_threads=1).n_features == 3
    assert source.passes > 1


@pytest.mark.parametrize("made", [np.asarray, scipy.sparse.csr_array])
def test_checksums_do_not_depend_on_blocks(made):
    n = 2 * SPAN + 300
    X = made(np.random.default_rng(1).normal(size=(n, 2)) * (np.arange(n)[:, None] % 3))
    y = np.arange(n) % 2
    found = []
    for ends in ([], range(1, 400), range(50, n, 777), [SPAN, 2 * SPAN]):
        reader = ChunkedProblem.from_source(Cut(ends, X, y)).X.reader
        found.append(reader.first_pass.sums)
    assert found == [found[0]] * 4
    assert len(set(found[0])) == 3


@pytest.mark.parametrize("start", [0, 63, 64, 65, 4000, SPAN - 127, SPAN - 64])
def test_a_change_of_127_rows_is_noticed(start):
    X = np.zeros((SPAN + 10, 2))
    first = Checksums()
    first.add(X)
    first.end_span()
    X[start : start + 127] = 1.0
    later = Checksums(first)
    for begin in range(0, len(X), 1000):
        later.add(X[begin : begin + 1000])
    later.end_span()
    assert later.unlike is not None
    assert source.SPAN % source.CHUNK == 0


def test_many_columns_in_chunks_need_a_basis():
    X = scipy.sparse.random(2100, 1500, 1e-3, "csr", rng=np.random.default_rng(0))
    source = Cut([700], X, np.arange(2100) % 3)
    with pytest.raises(ValueError, match=r"2100 rows of 1500 columns .* basis=300"):
        ordinal.fit_svorim(source, None, kernel="linear")
