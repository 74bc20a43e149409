"""Tables of every kind, and how models find their columns again."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from files import loaded
from internals import read_features, read_frame, read_labels
from numpy.testing import assert_array_equal
from registry import every_method
from scipy import sparse
from strategies import raises, sample

import ordinal
from ordinal import fit_pom, fit_svorim
from ordinal._model import labelled
from ordinal.preprocessing import Standardizer, TablePreprocessor

nan = np.nan


@pytest.mark.parametrize(
    "dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]", "bool[pyarrow]", object]
)
def test_what_is_missing_is_nan_or_an_error_that_names_the_column(dtype):
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow")
    values = pd.Series([1, None, 0], dtype=dtype)
    frame = pd.DataFrame({"a": values, "b": [True, False, True]})
    assert_array_equal(read_features(frame, missing=True), [[1, 1], [nan, 0], [0, 1]])
    message = "^X must be finite; first bad row is 1, with nan in column 'a'; .*Table"
    raises(ValueError, message, read_features, frame)


def test_categories_of_polars_are_in_no_order():
    """They are what the process has met, in that order, which no model may tell."""
    met = pl.Series(["c", "b"], dtype=pl.Categorical)
    column = pl.Series(["b", "a", "b", "c", "a", "c"], dtype=pl.Categorical)
    frame = pl.DataFrame({"kind": column})
    (known,) = ordinal.fit_pom(frame, [0, 1, 2, 1, 0, 2]).predictor.coding.categories
    assert known.tolist() == ["a", "b", "c"]
    with pytest.raises(TypeError, match=r"unordered .* labels \['b', 'c'\] in rank"):
        ordinal.fit_pom([[1.0], [2.0]], met)


def test_gaps_of_a_pyarrow_dictionary_are_gaps():
    pa = pytest.importorskip("pyarrow")
    words = pa.array(["x", "y", None, "x"]).dictionary_encode()
    frame = read_frame(pa.table({"word": words, "number": [1.0, 2.0, 3.0, 4.0]}))
    assert_array_equal(frame.values[:, 0], [0, 1, nan, 0])
    assert frame.labels[0].tolist() == ["x", "y"]
    raises(ValueError, "y has no label in row 2", read_labels, words, "y")


@pytest.mark.parametrize("form", ["csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_of_every_format(form, make):
    X = np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    assert_array_equal(read_features(make(X).asformat(form)).dense(), X)


def test_a_start_has_the_same_columns_and_a_preprocessor_its_options():
    X, y = sample(40, 3)
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    start = fit_svorim(frame, y)
    assert fit_svorim(X, y, start=start).convergence.converged
    with pytest.raises(ValueError, match=r"^start and X must have the same columns"):
        fit_svorim(frame[names[::-1]], y, start=start)
    message = r"got the class TablePreprocessor: pass TablePreprocessor\(\)$"
    raises(TypeError, message, fit_svorim, frame, y, preprocess=TablePreprocessor)


@every_method
def test_labels_come_back_in_the_type_of_the_caller(method):
    X, y = sample(40, 3)
    table = pd.DataFrame(X, columns=list("abc"), index=range(100, 140))
    words = np.array(["low", "mid", "top"])
    labels = pd.Categorical(words[y], words, ordered=True)
    told = method(table, labels).predict(table)
    plain = method(table, words[y], classes=words).predict(table)
    assert told.index.equals(table.index)
    assert told.dtype == labels.dtype
    assert isinstance(plain, np.ndarray)
    assert_array_equal(told.to_numpy(dtype=str), plain)
    for values in (np.array([3, 4, 250], np.uint8), 2**60 + np.arange(3)):
        found = method(X, values[y]).predict(X)
        assert found.dtype == values.dtype
        assert_array_equal(words[np.searchsorted(values, found)], plain)


def test_an_ordered_categorical_comes_back_from_whatever_predicts():
    X, y = sample(60, 3)
    table = pd.DataFrame(X, columns=list("abc"), index=range(100, 160))
    labels = pd.Series(pd.Categorical(y, [2, 1, 0], ordered=True), table.index)
    found = ordinal.select("pom", table, labels, cv=2)
    compared = ordinal.compare(table, labels, methods=["pom", "svorim"], cv=2)
    models = [
        fit_pom(table, labels, preprocess=Standardizer), found, found.model,
        ordinal.conformal(found, table, labels), compared.best,
        compared.refit("svorim"),
    ]  # fmt: skip
    for model in models:
        told = model.predict(table)
        assert told.dtype == labels.dtype
        assert told.index.equals(table.index)
        assert ordinal.metrics.mae(labels, told) < 0.5
    for copy in (loaded(models[0]), pickle.loads(pickle.dumps(models[0]))):
        assert copy.predict(table).equals(models[0].predict(table))
    for fit in (fit_pom, ordinal.fit_ratio):
        by_formula = fit("y ~ a + b + c", table.assign(y=labels))
        assert by_formula.predict(table).dtype == labels.dtype
        assert by_formula.origin.call == f"{fit.__name__}('y ~ a + b + c', table)"
    told = fit_pom(table, pd.Categorical(y), classes=[0, 1, 2]).predict(table)
    assert isinstance(told, np.ndarray)
    # the likelihood that profiles need is not lost on the way
    assert fit_pom(table, labels).confint(method="profile")["name"].size


def test_without_pandas_a_model_from_a_file_gives_arrays(monkeypatch):
    X, y = sample(40, 3)
    model = fit_pom(X, pd.Categorical(y, ordered=True))
    monkeypatch.setattr(labelled, "find_spec", lambda name: None)
    assert isinstance(model.predict(X), np.ndarray)


NUMBERS_AS_TEXT = {
    "decimal comma": lambda v: f"{v:.2f}".replace(".", ","),
    "percent": lambda v: f"{v:.1f}%",
    "dollars": lambda v: f"${1000 * abs(v):,.2f}", "euros": lambda v: f"{v:.2f} €",
    "thousands": lambda v: f"{int(1e6 + 1e5 * v):,}",
    "blanks": lambda v: f"{int(1e6 + 1e5 * v):,}".replace(",", " "),
}  # fmt: skip
DATES_AS_TEXT = {
    "iso": "%Y-%m-%d", "german": "%d.%m.%Y", "american": "%m/%d/%y",
    "time": "%Y-%m-%d %H:%M", "slashes": "%Y/%m/%d",
}  # fmt: skip


@pytest.mark.parametrize("form", [*NUMBERS_AS_TEXT, *DATES_AS_TEXT])
def test_numbers_and_dates_as_text_are_no_categories(form):
    """Refused wherever a table is read for a fit, with the column and a remedy."""
    rng = np.random.default_rng(0)
    if form in NUMBERS_AS_TEXT:
        pool, kind = list(map(NUMBERS_AS_TEXT[form], rng.normal(size=12))), "numbers"
    else:
        every = pd.to_timedelta(np.arange(12) * 37, "D")
        days = pd.Timestamp("2024-01-31 10:30") + every
        pool, kind = list(days.strftime(DATES_AS_TEXT[form])), "dates"
    X = pd.DataFrame({"a": rng.normal(size=60), "paid": rng.choice(pool, 60)})
    y = rng.integers(0, 3, 60)
    message = rf"column 'paid' of X holds {kind} as text, such as '"
    for call in (
        lambda: ordinal.fit_pom(X, y),
        lambda: ordinal.fit_svorim(X, y, preprocess=TablePreprocessor()),
        lambda: ordinal.fit_xofm(X, y),
        lambda: ordinal.compare(X, y, methods=["pom"]),
        lambda: ordinal.select("pom", X, y),
    ):
        raises(ValueError, message, call)
    declared = X.assign(paid=X["paid"].astype("category"))
    assert ordinal.fit_pom(declared, y).feature_names == ("a", "paid")


@pytest.mark.parametrize("words", [
    ["1,5", "2,5", "3,5"],  # few may be codes
    ["36/38", "40/42", "44/46", "48/50", "52/54", "56/58"],
    ["01067", "10115", "20095", "50667", "60311", "80331"],
    ["A-1", "A-2", "B-1", "B-2", "C-1", "C-2"],
    ["1-2", "3-4", "5-6", "7-8", "9-10", "11+"],
    ["2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4", "2025-Q1", "2025-Q2"],
    ["10%", "20%", "30%", "40%", "50%", "other"],
], ids=lambda words: words[0])  # fmt: skip
def test_other_words_with_digits_stay_categories(words):
    X = pd.DataFrame({"g": np.repeat(words, 4)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ordinal.exceptions.ConvergenceWarning)
        model = ordinal.fit_pom(X, np.arange(len(X)) % 3)
    assert len(model.coef_names) == len(words) - 1
