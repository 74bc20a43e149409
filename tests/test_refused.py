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
from strategies import sample

import ordinal
from ordinal import (
    Convergence,
    comparison,
    kernels,
    metrics,
    model_selection,
    plot,
    preprocessing,
)
from ordinal.__main__ import main

X, Y = sample(30, r=3)


class NoBlocks:
    def blocks(self):
        return iter(())


@pytest.fixture(scope="module")
def svorim():
    return ordinal.fit_svorim(X, Y)


@pytest.fixture(scope="module")
def xofm():
    return ordinal.fit_xofm(X, Y)


@pytest.fixture(scope="module")
def found():
    return comparison.friedman([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5]])


@pytest.mark.parametrize(
    "draw",
    [
        lambda model: plot.score_functions(model),
        lambda model: plot.interaction(model, 0, 1),
        lambda model: plot.contributions(model, X[0]),
    ],
)
def test_pictures_of_another_model(draw, svorim):
    with pytest.raises(TypeError, match="model must be an XofmModel, got SvorModel"):
        draw(svorim)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ordinal.fit_pom(X, Y, l1=1.0, robust=True),
            "robust and cluster need a",
        ),
        (lambda: ordinal.fit_pom(X, Y, nominal="x1"), "nominal must be a sequence of"),
        (lambda: ordinal.fit_pom(pd.DataFrame(index=range(30)), Y), "X has no columns"),
        (
            lambda: ordinal.conformal(ordinal.fit_pom(X, Y), NoBlocks(), None),
            "NoBlocks.* yielded no blocks",
        ),
    ],
)
def test_what_a_fit_cannot_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_search_is_of_a_fit():
    grid = model_selection.Grid(C=[1.0])
    with pytest.raises(
        TypeError, match=r"fit must be a function of \(X, y\), .*, got 3"
    ):
        model_selection.select(3, X, Y, search=grid)


def test_pictures_on_no_axes(found, xofm):
    names = ["a", "b", "c"]
    with pytest.raises(TypeError, match="ax must be matplotlib's Axes, got 3"):
        plot.critical_difference(found, names, 3)
    with pytest.raises(TypeError, match="axes must be matplotlib's Axes, got 'a'"):
        plot.score_functions(xofm, axes=names)
    with pytest.raises(TypeError, match="axes must be a sequence"):
        plot.score_functions(xofm, axes=5)


def test_pictures_of_no_result(found):
    with pytest.raises(TypeError, match="result must be of comparison"):
        plot.critical_difference(1, ["a"])
    with pytest.raises(
        ValueError, match="names must hold a name for each of 3 methods"
    ):
        plot.critical_difference(found, 3)
    with pytest.raises(ValueError, match="sizes must hold a size for each of 2 tables"):
        plot.boxplots_by_size([X, X], 10, ["a", "b", "c"])


def test_a_preprocessed_model_of_what_is_none(svorim):
    scaling = preprocessing.Standardizer.fit(X)
    with pytest.raises(TypeError, match=r"^preprocessor must be .*Coding, got 3$"):
        preprocessing.PreprocessedModel(3, svorim)
    with pytest.raises(TypeError, match=r"^preprocess must be a Tab.* got 3$"):
        preprocessing.PreprocessedModel.fit(ordinal.fit_svorim, X, Y, preprocess=3)
    with pytest.raises(ValueError, match="a method predict, got a int"):
        preprocessing.PreprocessedModel(scaling, 3)
    with pytest.raises(ValueError, match="categorical_labels must be True or False"):
        preprocessing.PreprocessedModel(scaling, svorim, categorical_labels="yes")


def test_link_input_for_another_model(svorim):
    for like in (3, ordinal.fit_svorim(X, Y, classes=[0, 1, 2, 3])):
        with pytest.raises(TypeError, match="like must be a model with a score and"):
            svorim.link_input(X, like)


def test_a_record_of_no_fits():
    for parts in ([], [3], 3, NotImplemented):
        with pytest.raises(TypeError, match="parts must be records of fits"):
            Convergence.of_parts(parts)


def test_a_search_without_stages():
    with pytest.raises(TypeError, match=r"search must be a dict of lists, .*, got 3"):
        model_selection.select(ordinal.fit_svorim, X, Y, search=3)
    for stages in ([], [[]]):
        space = SimpleNamespace(stages=lambda X, given=stages: (p for p in given))
        with pytest.raises(ValueError, match=r"search\.stages must give points"):
            model_selection.select(ordinal.fit_svorim, X, Y, search=space)
    space = SimpleNamespace(stages=lambda X: iter([[{"C": 1.0}]]))
    with pytest.raises(TypeError, match=r"search\.stages must be a generator, got"):
        model_selection.select(ordinal.fit_svorim, X, Y, search=space)


def test_a_search_with_a_function_of_no_module():
    fit = eval("lambda X, y, C: fit(X, y, C=C)", {"fit": ordinal.fit_svorim})
    assert fit.__module__ is None
    grid = model_selection.Grid(C=[1.0])
    assert model_selection.select(fit, X, Y, search=grid, refit=False).best == 0


@pytest.mark.parametrize("empty", [np.zeros(0), np.zeros((0, 3, 2)), np.array(None)])
def test_kernels_of_no_matrix(empty):
    for kernel in (kernels.Linear(), kernels.RBF(1.0), kernels.Pearson()):
        with pytest.raises((TypeError, ValueError), match="X must"):
            kernel(X, empty)


@pytest.mark.parametrize("size", [1e-152, 1e-156, 1e-160])
def test_a_range_of_gamma_for_rows_that_are_all_but_equal(size):
    with pytest.raises(ValueError, match="further apart than 1e-150"):
        model_selection.gamma_range(X * size)
    assert np.isfinite(model_selection.gamma_range(X * 1e-149)).all()


def test_load_closes_no_descriptor():
    read, write = os.pipe()
    with contextlib.closing(os.fdopen(write, "wb")):
        with pytest.raises(TypeError, match="path must be a path, got "):
            ordinal.load(read)
        os.close(read)  # raises OSError if it was closed before


def test_a_lazy_frame(svorim):
    frame = pl.DataFrame(X).lazy()
    with pytest.raises(TypeError, match="X must hold its rows, got a lazy"):
        svorim.predict(frame)


def test_columns_that_become_no_array():
    """polars has an exception of its own for integers of 128 bits."""
    pytest.importorskip("polars", "2.0", reason="older releases panic")
    b = pl.Series([1, 2**100], dtype=pl.Int128)
    frame = pl.DataFrame({"a": [0.5, 1.5], "b": b})
    with pytest.raises(ValueError, match="column 'b' of X is not an array"):
        ordinal.fit_svorim(frame, [1, 2])


def test_an_array_that_its_class_refuses():
    class Refusing:
        def __array__(self, dtype=None, copy=None):
            raise KeyError("no")

    with pytest.raises(ValueError, match="X is not an array: 'no'"):
        ordinal.fit_svorim(Refusing(), Y)


def test_long_names_are_cut():
    for name, value in (("a", "x" * 5000), ("b" * 5000, "y")):
        with pytest.raises(TypeError, match="must hold real numbers") as refused:
            ordinal.fit_svorim(pl.DataFrame({name: [value] * 2}), [1, 2])
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [np.timedelta64(3, "s"), np.timedelta64("NaT", "s")])
def test_a_span_of_time_is_no_number(value):
    with pytest.raises(ValueError, match="C must be a positive finite number"):
        ordinal.fit_svorim(X, Y, C=value)
    with pytest.raises(ValueError, match="rank must be a positive integer"):
        preprocessing.impute_low_rank(X, value)


@pytest.mark.parametrize("value", [1j, [10**400], [[0.5, 1j]]])
def test_points_that_are_not_real(value):
    with pytest.raises((TypeError, ValueError), match="points must"):
        model_selection.centred_discrepancy(value)


@pytest.mark.parametrize("argv", [["x" * 9000], ["predict", "y" * 9000, "z" * 9000]])
def test_the_command_repeats_no_long_words(argv, capsys):
    assert main(argv) == 2
    assert len(capsys.readouterr().err) < 700


def test_the_dtype_of_many_columns_is_cut():
    records = np.zeros(3, dtype=[(f"column{j}", float) for j in range(100)])
    with pytest.raises(TypeError, match="X must hold real numbers") as refused:
        ordinal.fit_svorim(records, [1, 2, 3])
    assert len(str(refused.value)) < 200


def test_noise_of_any_size():
    y = ordinal.datasets.make_tlssvor(noise=1e308)[1]
    assert set(y.tolist()) == {1, 4}


def test_a_list_of_masked_values_is_as_a_masked_array():
    masked = list(np.ma.array([1.0, 2.0], mask=True))
    with pytest.raises(TypeError, match=r"^y_true is a masked array"):
        metrics.mmae(masked, [1, 2])


def test_a_standardizer_of_what_cannot_scale():
    with pytest.raises(ValueError, match=r"^Standardizer.scale must be"):
        preprocessing.Standardizer(np.zeros(2), [1.0, 0.0])
    with pytest.raises(TypeError, match=r"^scale must hold real numbers"):
        preprocessing.Standardizer(np.zeros(1), ["a"])
    assert preprocessing.Standardizer([1.0], [2.0]).transform([[5.0]]) == 2


def test_no_rows_of_complex_numbers():
    with pytest.raises((TypeError, ValueError)):
        kernels.Pearson()(np.empty((0, 2), complex), np.ones((1, 2)))


def test_a_memoryview_is_no_list():
    """Python cannot iterate one of two dimensions, nor one of long doubles."""
    grid = model_selection.Grid(C=[1.0])
    for view in (memoryview(np.eye(2)), memoryview(np.ones(2, np.longdouble))):
        with pytest.raises(ValueError, match=r"^categorical must be .*got <memory"):
            preprocessing.TablePreprocessor(categorical=view)
        with pytest.raises(ValueError, match=r"^C must be .*got <memory"):
            model_selection.Grid(C=view)
        with pytest.raises(TypeError, match=r"^scores must be .*got <memory"):
            comparison.win_draw_loss(view)
        with pytest.raises(TypeError, match=r"^points must be .*got <memory"):
            ordinal.fit_npsvor_path(X, Y, points=view)
        with pytest.raises(TypeError, match=r"^cv must be .*got <memory"):
            model_selection.select(ordinal.fit_svorim, X, Y, search=grid, cv=view)


def test_what_a_worker_cannot_be_sent():
    fit = functools.partial(ordinal.fit_svorim, callback=lambda state: None)
    grid = model_selection.Grid(C=[1.0])
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(TypeError, match=r"^fit, scoring"),
    ):
        model_selection.select(fit, X, Y, search=grid, executor=pool)


def test_probabilities_of_a_preprocessed_model_that_has_none():
    scaling = preprocessing.Standardizer.fit(X)
    model = SimpleNamespace(predict=len, classes=[1, 2], n_features=X.shape[1])
    with pytest.raises(TypeError, match="a SimpleNamespace has no predict_proba"):
        preprocessing.PreprocessedModel(scaling, model).predict_proba(X)


def test_an_axis_has_a_length(xofm):
    far = np.where(np.arange(30)[:, None] == 3, 5e307, X)
    with pytest.raises(ValueError, match=r"^column 'x1' of X must lie within 1e\+300"):
        plot.partial_dependence(xofm, far, 0)
    with pytest.raises(ValueError, match=r"^at must lie within 1e\+300 .* in row 1$"):
        plot.partial_dependence(xofm, X, 0, at=[0.0, -1e301])
    plot.partial_dependence(xofm, np.clip(far, -1e300, 1e300), 0)
