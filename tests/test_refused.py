"""Messages for arguments that nobody expects, which must name them.

Calls that the fuzzer found (tools/fuzz), one of each kind.
"""

import contextlib
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from strategies import raises, sample

import ordinal
from ordinal import comparison, kernels, metrics, plot, preprocessing
from ordinal.__main__ import main
from ordinal.model_selection import Grid, centred_discrepancy, gamma_range, select

X, Y = sample(30, r=3)
GRID = Grid(C=[1.0])
ABC = ["a", "b", "c"]
svorim = functools.cache(lambda: ordinal.fit_svorim(X, Y))
xofm = functools.cache(lambda: ordinal.fit_xofm(X, Y))
found = functools.cache(lambda: comparison.friedman([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5]]))
NO_XOFM = "model must be an XofmModel, got SvorModel"
FAR = np.where(np.arange(30)[:, None] == 3, 5e307, X)
HOLLOW = SimpleNamespace(predict=len, classes=[1, 2], n_features=X.shape[1])


class NoBlocks:
    def blocks(self):
        return iter(())


class Refusing:
    def __array__(self, dtype=None, copy=None):
        raise KeyError("no")


def scaling():
    return preprocessing.Standardizer.fit(X)


def searched(stages):
    return select(ordinal.fit_svorim, X, Y, search=SimpleNamespace(stages=stages))


def behind(*args, **options):
    return preprocessing.PreprocessedModel(*args, **options)


REFUSED = [  # (call, error, message)
    (lambda: plot.score_functions(svorim()), TypeError, NO_XOFM),
    (lambda: plot.interaction(svorim(), 0, 1), TypeError, NO_XOFM),
    (lambda: plot.contributions(svorim(), X[0]), TypeError, NO_XOFM),
    (lambda: ordinal.fit_pom(X, Y, l1=1.0, robust=True), ValueError,
     "robust and cluster need a"),
    (lambda: ordinal.fit_ratio(X, Y, l2=1.0, cluster=Y), ValueError,
     "which fits with a penalty do not compute"),
    (lambda: ordinal.fit_pom(X, Y, nominal="x1"), ValueError,
     "nominal must be a sequence of"),
    (lambda: ordinal.fit_pom(pd.DataFrame(index=range(30)), Y), ValueError,
     "X has no columns"),
    (lambda: ordinal.conformal(ordinal.fit_pom(X, Y), NoBlocks(), None), ValueError,
     "NoBlocks.* yielded no blocks"),
    (lambda: select(3, X, Y, search=GRID), TypeError,
     r"fit must be a function of \(X, y\), .*, got 3"),
    (lambda: plot.critical_difference(found(), ABC, 3), TypeError,
     "ax must be matplotlib's Axes, got 3"),
    (lambda: plot.score_functions(xofm(), axes=ABC), TypeError,
     "axes must be matplotlib's Axes, got 'a'"),
    (lambda: plot.score_functions(xofm(), axes=5), TypeError,
     "axes must be a sequence"),
    (lambda: plot.critical_difference(1, ["a"]), TypeError,
     "result must be of comparison"),
    (lambda: plot.critical_difference(found(), 3), ValueError,
     "names must hold a name for each of 3 methods"),
    (lambda: plot.boxplots_by_size([X, X], 10, ABC), ValueError,
     "sizes must hold a size for each of 2 tables"),
    (lambda: plot.partial_dependence(xofm(), FAR, 0), ValueError,
     r"^column 'x1' of X must lie within 1e\+300"),
    (lambda: plot.partial_dependence(xofm(), X, 0, at=[0.0, -1e301]), ValueError,
     r"^at must lie within 1e\+300 .* in row 1$"),
    (lambda: behind(3, svorim()), TypeError, r"^preprocessor must be .*Coding, got 3$"),
    (lambda: behind(scaling(), 3), ValueError, "a method predict, got a int"),
    (lambda: behind(scaling(), HOLLOW).predict_proba(X), ValueError,
     "a SimpleNamespace has no predict_proba"),
    (lambda: preprocessing.PreprocessedModel.fit(
        ordinal.fit_svorim, X, Y, preprocess=3), TypeError,
     r"^preprocess must be a Tab.* got 3$"),
    (lambda: svorim().link_input(X, 3), TypeError,
     "like must be a model with a score and"),
    (lambda: svorim().link_input(X, ordinal.fit_svorim(X, Y, classes=range(4))),
     TypeError, "like must be a model with a score and"),
    (lambda: select(ordinal.fit_svorim, X, Y, search=3), TypeError,
     r"search must be a dict of lists, .*, got 3"),
    (lambda: searched(lambda X: (p for p in [])), ValueError,
     r"search\.stages must give points"),
    (lambda: searched(lambda X: (p for p in [[]])), ValueError,
     r"search\.stages must give points"),
    (lambda: searched(lambda X: iter([[{"C": 1.0}]])), TypeError,
     r"search\.stages must be a generator, got"),
    (lambda: svorim().predict(pl.DataFrame(X).lazy()), TypeError,
     "X must hold its rows, got a lazy"),
    (lambda: ordinal.fit_svorim(Refusing(), Y), ValueError,
     "X is not an array: 'no'"),
    (lambda: metrics.mmae(list(np.ma.array([1.0, 2.0], mask=True)), [1, 2]),
     TypeError, r"^y_true is a masked array"),
    (lambda: preprocessing.Standardizer(np.zeros(2), [1.0, 0.0]), ValueError,
     r"^Standardizer.scale must be"),
    (lambda: preprocessing.Standardizer(np.zeros(1), ["a"]), TypeError,
     r"^scale must hold real numbers"),
    (lambda: kernels.Pearson()(np.empty((0, 2), complex), np.ones((1, 2))),
     (TypeError, ValueError), None),
    *((lambda parts=parts: ordinal.models.Convergence.of_parts(parts), TypeError,
       "parts must be records of fits") for parts in ([], [3], 3, NotImplemented)),
    *((lambda value=value: centred_discrepancy(value), (TypeError, ValueError),
       "points must") for value in (1j, [10**400], [[0.5, 1j]])),
    *((lambda size=size: gamma_range(X * size), ValueError,
       "further apart than 1e-150") for size in (1e-152, 1e-156, 1e-160)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_calls_that_the_fuzzer_found(call, error, message):
    raises(error, message, call)


def test_what_is_near_is_taken():
    assert preprocessing.Standardizer([1.0], [2.0]).transform([[5.0]]) == 2
    assert np.isfinite(gamma_range(X * 1e-149)).all()
    plot.partial_dependence(xofm(), np.clip(FAR, -1e300, 1e300), 0)
    assert set(ordinal.datasets.make_tlssvor(noise=1e308)[1].tolist()) == {1, 4}
    fit = eval("lambda X, y, C: fit(X, y, C=C)", {"fit": ordinal.fit_svorim})
    assert fit.__module__ is None
    assert select(fit, X, Y, search=GRID, refit=False).best == 0


@pytest.mark.parametrize("empty", [np.zeros(0), np.zeros((0, 3, 2)), np.array(None)])
def test_kernels_of_no_matrix(empty):
    for kernel in (kernels.Linear(), kernels.RBF(1.0), kernels.Pearson()):
        raises((TypeError, ValueError), "X must", kernel, X, empty)


def test_load_closes_no_descriptor():
    read, write = os.pipe()
    with contextlib.closing(os.fdopen(write, "wb")):
        raises(TypeError, "path must be a path, got ", ordinal.load, read)
        os.close(read)  # raises OSError if it was closed before


def test_columns_that_become_no_array():
    """polars has an exception of its own for integers of 128 bits."""
    pytest.importorskip("polars", "2.0", reason="older releases panic")
    b = pl.Series([1, 2**100], dtype=pl.Int128)
    frame = pl.DataFrame({"a": [0.5, 1.5], "b": b})
    with pytest.raises(ValueError, match="column 'b' of X is not an array"):
        ordinal.fit_svorim(frame, [1, 2])


def test_long_names_are_cut():
    records = np.zeros(2, dtype=[(f"column{j}", float) for j in range(100)])
    for table in (
        pl.DataFrame({"a": ["x" * 5000] * 2}),
        pl.DataFrame({"b" * 5000: ["y"] * 2}),
        records,
    ):
        with pytest.raises(TypeError, match="must hold real numbers") as refused:
            ordinal.fit_svorim(table, [1, 2])
        assert len(str(refused.value)) < (200 if table is records else 300)


@pytest.mark.parametrize("value", [np.timedelta64(3, "s"), np.timedelta64("NaT", "s")])
def test_a_span_of_time_is_no_number(value):
    with pytest.raises(ValueError, match="C must be a positive finite number"):
        ordinal.fit_svorim(X, Y, C=value)
    with pytest.raises(ValueError, match="rank must be a positive integer"):
        preprocessing.impute_low_rank(X, value)


@pytest.mark.parametrize("argv", [["x" * 9000], ["predict", "y" * 9000, "z" * 9000]])
def test_the_command_repeats_no_long_words(argv, capsys):
    assert main(argv) == 2
    assert len(capsys.readouterr().err) < 700


def test_a_memoryview_is_no_list():
    """Python cannot iterate one of two dimensions, nor one of long doubles."""
    for view in (memoryview(np.eye(2)), memoryview(np.ones(2, np.longdouble))):
        with pytest.raises(ValueError, match=r"^categorical must be .*got <memory"):
            preprocessing.TablePreprocessor(categorical=view)
        raises(ValueError, r"^C must be .*got <memory", Grid, C=view)
        with pytest.raises(TypeError, match=r"^scores must be .*got <memory"):
            comparison.win_draw_loss(view)
        with pytest.raises(TypeError, match=r"^points must be .*got <memory"):
            ordinal.fit_npsvor_path(X, Y, points=view)
        with pytest.raises(TypeError, match=r"^cv must be .*got <memory"):
            select(ordinal.fit_svorim, X, Y, search=GRID, cv=view)


def test_what_a_worker_cannot_be_sent():
    fit = functools.partial(ordinal.fit_svorim, callback=lambda state: None)
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(TypeError, match=r"^fit, scoring"),
    ):
        select(fit, X, Y, search=GRID, executor=pool)
