"""Promises of every fit that reads rows in chunks: sources, memory maps, the command.

A source has the model of the same rows in memory; that of methods whose sums round in
another way there is the subject of test_chunked_linear.py.
"""

import numpy as np
import pytest
import scipy.sparse
from files import solution
from registry import FITS
from sources import Cut, Differing, mapped, wavy
from strategies import raises

import ordinal
from ordinal import data
from ordinal.__main__ import main
from ordinal.preprocessing import PreprocessedModel, Standardizer

pytestmark = pytest.mark.filterwarnings(
    "ignore::ordinal.exceptions.DisorderedThresholdsWarning"
)

ON_BASIS = {"basis": 20, "gamma": 0.3, "tol": 1e-2}
METHODS = {  # the options of a quick fit
    "svorim": ON_BASIS, "svorex": ON_BASIS, "redsvm": ON_BASIS,
    "shashua_levin": ON_BASIS, "npsvor": ON_BASIS, "opbe": ON_BASIS, "svc": ON_BASIS,
    "svr": ON_BASIS, "cssvc": ON_BASIS, "svmop": ON_BASIS,
    "tlssvor": {"basis": 20, "C": 0.1, "gamma": 0.3, "u": 1.5, "tol": 1e-2},
    "kdlor": {"basis": 20, "gamma": 0.3},
    "gpor": {"basis": 8, "inference": "laplace", "max_iter": 3, "tol": 0.5},
    "pom": {"robust": True}, "lit": {}, "lat": {},
    "xofm": {"n_factors": 0, "solver": "lbfgs", "breakpoints": "quantile"},
}  # fmt: skip
ROUNDED = {"pom", "lit", "lat"}  # by the sums of chunks
TYPICAL = {"svorim", "tlssvor", "pom", "xofm"}  # the others are slow
PROBABLE = set(METHODS) - {"gpor", "opbe", "xofm", *ROUNDED}
UNCACHED = {"kdlor", *ROUNDED}
N = 2 * 8192 + 777  # three chunks
ENDS = range(1000, N, 1777)


def every(names, fast=TYPICAL):
    slow = pytest.mark.slow("more chunks of the same kind")
    cases = [pytest.param(n, marks=() if n in fast else slow) for n in sorted(names)]
    return pytest.mark.parametrize("name", cases)


@pytest.fixture(scope="module")
def rows():
    return wavy(N, [1, 2, 5, 1], noise=0.3)


def fit(name, X, y=None, **options):
    return FITS[f"fit_{name}"](X, y, **METHODS[name] | options)


@every(set(METHODS) - ROUNDED)
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
def test_chunks_have_the_bytes_of_rows_in_memory(name, rows, tmp_path):
    (X, y), w = rows, 1.0 + np.arange(N) % 3
    options = {"probability": True} if name in PROBABLE else {}
    stored = mapped(X, tmp_path)
    if name != "xofm":  # whose rows of other weights are those of test_chunked_xofm.py
        whole = solution(fit(name, X, y, sample_weight=w, **options))
        assert solution(fit(name, Cut([9, 9999], X, y, w), **options)) == whole
        assert solution(fit(name, stored, y, sample_weight=w, **options)) == whole
    cache = [] if name in UNCACHED else [{"cache_mb": 0.5}]
    for change in ({"n_threads": 3}, *cache):
        whole = solution(fit(name, X, y, **change | {"n_threads": 1}))
        source = Cut(ENDS, X, y)
        assert solution(fit(name, source, **change)) == whole
        assert source.open == 0
        assert source.passes > 1


@every(set(METHODS) - ROUNDED - {"gpor", "xofm"})
def test_sparse_chunks_have_the_bytes_of_sparse_rows(name, rows):
    X, y = rows
    X = scipy.sparse.csr_array(np.where(X > 1, X, 0))
    assert solution(fit(name, Cut([9, 9999], X, y))) == solution(fit(name, X, y))


@every(METHODS)
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
def test_a_source_that_fails_in_any_pass_is_closed(name, rows):
    cache = {} if name in UNCACHED else {"cache_mb": 0.5}
    for fail in range(8):
        source = Cut(range(500, N, 2000), *rows, fail=fail)
        try:
            fit(name, source, n_threads=2, **cache)
        except OSError as error:
            assert str(error) == "the disk is gone"  # noqa: PT017
        else:
            assert 1 < source.passes <= fail
            break
        assert source.open == 0
    assert fail > 1


@pytest.mark.parametrize("ended", [{"max_time": 1e-9}, {"callback": lambda s: True}])
@every(METHODS)
def test_a_fit_that_is_ended_closes_its_source_and_predicts(name, ended, rows):
    source = Cut(range(500, N, 2000), *rows)
    with pytest.warns(ordinal.exceptions.ConvergenceWarning):
        model = fit(name, source, **ended)
    assert source.open == 0
    assert model.predict(rows[0][:5]).shape == (5,)


def other_values(X, rows):
    return X + 1e-12, rows


def another_order(X, rows):
    return X, np.concatenate(np.array_split(rows, 3)[::-1])


@pytest.mark.parametrize("later", [other_values, another_order])
@pytest.mark.parametrize("name", METHODS)
def test_every_fit_refuses_passes_that_differ(name, later, rows):
    X, y = (a[:120] for a in rows)
    source = Differing(later, X, y)
    message = r"Differing\(\) yielded other features in rows 0 to 119 than in the"
    raises(ValueError, message, fit, name, source, n_threads=1)
    assert source.passes == 2


@every(METHODS, fast={"svorim", "pom"})
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
def test_the_command_streams_files(name, rows, tmp_path, capsys):
    path, out = tmp_path / "t.csv", tmp_path / "m.npz"
    table = np.column_stack([a[:3000] for a in rows])
    np.savetxt(path, table, delimiter=",", header="a,b,c,d,y", comments="")
    options = {k: v for k, v in METHODS[name].items() if k != "inference"}
    method = "gpor-laplace" if name == "gpor" else name.replace("_", "-")
    args = ["fit", str(path), "--stream", "--method", method, "--out", str(out)]
    given = [f"{name}={value}" for name, value in options.items()]
    assert main(args + (["--set", *given] if given else [])) == 0
    assert "t.csv, read in chunks, with the ranks of " in capsys.readouterr().out
    model, source = ordinal.load(out), data.blocks(path, target="y")
    # Those of "lit" and "lat" are stated in the columns of the table.
    if isinstance(model, PreprocessedModel) or name in ("lit", "lat"):
        fit_it, how = FITS[f"fit_{name}"], {"preprocess": Standardizer}
        same = PreprocessedModel.fit(fit_it, source, None, **how, **METHODS[name])
    else:
        same = fit(name, source)
    assert solution(model) == solution(same)
    assert model.feature_names == ("a", "b", "c", "d")
