"""An array instead of named columns: every method that takes rows warns, once."""

import inspect
import sys
import warnings
from unittest.mock import patch

import pandas as pd
import pytest
from registry import METHODS
from scipy.sparse import csr_array
from strategies import sample

import ordinal
from ordinal.preprocessing import Standardizer, TablePreprocessor

X, Y = sample(60, 3)
TABLE = pd.DataFrame(X, columns=["c0", "c1", "c2"])
FITS = {method.fit.__name__: method for method in METHODS if not method.variant}
# Methods of models that compare rows with another model, or that need a matrix.
EXEMPT = {"link_input", "fit"}


def rows_taking(model):
    found = {}
    for name in sorted({*dir(type(model))} - EXEMPT):
        method = getattr(model, name, None) if name[0] != "_" else None
        if inspect.ismethod(method) and "X" in inspect.signature(method).parameters:
            found[name] = method
    return found


def call(method, rows, path):
    known, given = inspect.signature(method).parameters, {"X": rows}
    if method.__name__ == "simultaneous_band":  # takes a second for many rows
        given["X"] = rows[:3]
    if "y" in known:
        given["y"] = Y
    if "path" in known:
        given["path"] = path
    return method(**given)


def check(model, path, figures=False):
    """Figures of reports, which take half a second, are those of one model."""
    with patch.dict(sys.modules, {} if figures else {"matplotlib": None}):
        return asked_of(model, path)


def asked_of(model, path):
    asked = []
    for name, method in rows_taking(model).items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ordinal.exceptions.UnnamedColumnsWarning)
                call(method, TABLE, path)
        except (ValueError, TypeError):
            continue  # a statistic that the model does not have
        with warnings.catch_warnings(record=True, action="always") as caught:
            call(method, X[:, ::-1], path)
        of = [
            w for w in caught if w.category is ordinal.exceptions.UnnamedColumnsWarning
        ]
        assert [w.filename for w in of] == [__file__], name
        assert "are taken as 'c0', 'c1', 'c2'" in str(of[0].message)
        asked.append(name)
    assert {"predict", "explain", "report"} <= {*asked}
    return asked


@pytest.mark.parametrize("name", FITS)
def test_every_method_that_takes_rows_warns_once(name, tmp_path):
    model = FITS[name].cut_short(TABLE, Y)
    check(model, tmp_path / "page.html", figures=name == "fit_pom")


@pytest.mark.parametrize("how", [Standardizer, TablePreprocessor()], ids=["s", "t"])
@pytest.mark.parametrize("name", ["fit_svorim", "fit_pom", "fit_lat", "fit_gpor"])
def test_so_do_models_behind_a_preprocessor(name, how, tmp_path):
    model = FITS[name].cut_short(TABLE, Y, preprocess=how)
    asked = check(model, tmp_path / "page.html")
    assert "decision_function" in asked or name == "fit_gpor"


def test_so_do_searches_and_prediction_sets(tmp_path):
    found = ordinal.select("pom", TABLE, Y, cv=2)
    assert "decision_function" in check(found, tmp_path / "page.html")
    asked = check(ordinal.conformal(found.model, TABLE, Y), tmp_path / "page.html")
    assert {"predict_set", "predict_interval", "p_values", "evaluate"} <= {*asked}


def test_figures_warn_too():
    plot, model = ordinal.plot, ordinal.fit_pom(TABLE, Y)
    with pytest.warns(ordinal.exceptions.UnnamedColumnsWarning) as caught:
        plot.partial_dependence(model, X, 0, at=3)
    assert [w.filename for w in caught] == [__file__]


@pytest.mark.parametrize("name", ["fit_svorim", "fit_npsvor", "fit_pom", "fit_xofm"])
def test_functions_that_predict_for_themselves_do_not_warn(name):
    """Folds, searches and comparisons pass the names of the columns on."""
    fit = FITS[name].fit
    with warnings.catch_warnings(action="ignore"):
        warnings.simplefilter("error", ordinal.exceptions.UnnamedColumnsWarning)
        if "probability" in inspect.signature(fit).parameters:
            fit(TABLE, Y, probability=True)
        if "basis" in inspect.signature(fit).parameters:
            fit(TABLE, Y, basis="auto")
        ordinal.select(name.removeprefix("fit_"), TABLE, Y, cv=2)
        ordinal.compare(TABLE, Y, methods=[name.removeprefix("fit_")], cv=2)
        ordinal.cross_conformal(fit, TABLE, Y)
        fit(TABLE, Y, preprocess=TablePreprocessor()).predict(TABLE[:0])


@pytest.mark.parametrize("rows", [X, X.tolist(), csr_array(X)])
def test_files_and_streams_of_predictions_warn_once(rows):
    model = ordinal.fit_pom(TABLE, Y)
    with pytest.warns(ordinal.exceptions.UnnamedColumnsWarning) as caught:
        list(ordinal.data.predictions(model, rows))
    assert len(caught) == 1
