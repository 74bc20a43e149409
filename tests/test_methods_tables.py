"""One table through every door of every method, as its columns come in the real world.

A door is a way from a table to labels: a model, an estimator, a Selection, a file. Rows
are asked for with their columns in another order, one missing, one too many, of other
types, and with categories that training rows did not have: the labels are the same, or
an error names the column.
"""

import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from internals import method_of
from numpy.testing import assert_array_equal
from registry import every_method
from strategies import raises, sample, slow

import ordinal
import ordinal.sklearn
from ordinal import kernels
from ordinal.model_selection import Grid, select
from ordinal.preprocessing import PreprocessedModel, TablePreprocessor

pytestmark = pytest.mark.filterwarnings(
    "ignore::ordinal.exceptions.ConvergenceWarning",
    "ignore::ordinal.exceptions.CollinearColumnsWarning",
    "ignore::ordinal.exceptions.DisorderedThresholdsWarning",
)
N = 48


def table():
    """Numbers, whole numbers, booleans, words and a category, with gaps, and ranks that
    go with all of them."""
    rng = np.random.default_rng(0)
    size, count = np.round(rng.normal(size=N), 3), rng.integers(0, 9, N)
    ripe, colour = rng.random(N) < 0.4, rng.choice(["blue", "green", "red"], N)
    origin = rng.choice(["far", "near"], N)
    score = size + 0.3 * count + 2 * ripe + (colour == "red") - (origin == "far")
    size = np.where(np.arange(N) % 9 == 4, np.nan, size)
    colour = np.where(np.arange(N) % 11 == 3, None, colour)
    frame = pd.DataFrame({"size": size, "count": count, "ripe": ripe, "colour": colour})
    frame["origin"] = pd.Categorical(origin)
    return frame, np.argsort(np.argsort(score)) * 3 // N


FRAME, Y = table()
WHOLE = FRAME.fillna({"size": 0.25, "colour": "green"})
NUMBERS = FRAME[["size", "count", "ripe"]].fillna(0.25)
WORDS = ("colour", "origin")


def quick(method):
    """Options of fits for which it does not matter how well they converge."""
    options = {"n_threads": 1, **method.variant}
    if "gpor" in method.name:
        return {**options, "optimize": False}
    return {**options, "n_epochs": 1.0} if "n_epochs" in options else options


def model_of_numbers(method, folder):
    return method(NUMBERS, Y, **quick(method)), NUMBERS


def preprocessed(method, folder):
    how = TablePreprocessor()
    fit = functools.partial(method.fit, **quick(method))
    return PreprocessedModel.fit(fit, FRAME, Y, preprocess=how), FRAME


def selection(method, folder):
    values = {"rng": [0, 1]} if method.composed else {"tol": [1e-2, 1e-3]}
    found = select(
        method.fit, FRAME, Y, search=Grid(**values), cv=2,
        preprocess=TablePreprocessor(), **quick(method),
    )  # fmt: skip
    return found, FRAME


def selection_of_a_file(method, folder):
    selection(method, folder)[0].save(folder / "found.npz")
    return ordinal.load(folder / "found.npz"), FRAME


def estimator(method, folder):
    name = method_of(method.fit).estimator
    options = {k: v for k, v in quick(method).items() if k != "n_threads"}
    return getattr(ordinal.sklearn, name)(**options).fit(NUMBERS, Y), NUMBERS


few_doors = pytest.mark.parametrize(
    "door",
    [model_of_numbers, selection, estimator, *slow(preprocessed, selection_of_a_file)],
    ids=lambda door: door.__name__,
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Return the result of an entry point for a method, made once."""

    @functools.cache
    def made(door, method):
        with warnings.catch_warnings(action="ignore"):
            return door(method, tmp_path_factory.mktemp("files"))

    return made


def as_polars(frame):
    """Gaps as nulls, words as strings or, where they are categories, as an Enum."""
    columns = frame.astype(object).where(frame.notna(), None).to_dict("list")
    kinds = {"origin": pl.Enum(["far", "near"])} if "origin" in columns else {}
    return pl.DataFrame(columns, schema_overrides=kinds)


OTHER_TYPES = {
    "narrow": {"count": "int8"},
    "floats": {"count": "float64", "ripe": "float64"},
    "nullable": {"size": "Float64", "count": "Int16", "ripe": "boolean"},
    "arrow": {"size": "double[pyarrow]", "count": "int32[pyarrow]"},
    "objects": {"size": object, "count": object, "ripe": object},
    "words": {"colour": "category", "origin": object},
    "strings": {"colour": "string", "origin": "string"},
}


@few_doors
@every_method
def test_columns_are_found_by_name_in_any_order_and_of_any_type(method, door, opened):
    model, frame = opened(door, method)
    labels = model.predict(frame)
    assert np.unique(labels).size > 1
    assert_array_equal(model.predict(frame[frame.columns[::-1]]), labels)
    wider = frame.assign(aside="x", before=0.0)[["before", *frame.columns, "aside"]]
    assert_array_equal(model.predict(wider), labels)
    for kinds in OTHER_TYPES.values():
        kinds = {name: kind for name, kind in kinds.items() if name in frame}
        assert_array_equal(model.predict(frame.astype(kinds)), labels)
    assert_array_equal(model.predict(as_polars(frame)), labels)
    index = np.random.default_rng(0).permutation(N)
    assert_array_equal(model.predict(frame.set_index(index)), labels)


@few_doors
@every_method
def test_a_missing_column_is_named(method, door, opened):
    model, frame = opened(door, method)
    for name in frame.columns:
        with pytest.raises(ValueError, match=f"'{name}'|- {name}"):
            model.predict(frame.drop(columns=name))


@few_doors
@every_method
def test_words_among_numbers_are_named(method, door, opened):
    model, frame = opened(door, method)
    for name in ("size", "count"):
        other = frame.astype({name: object})
        other.loc[5, name] = "many"
        raises((TypeError, ValueError), f"'{name}'.*'many'", model.predict, other)


@pytest.mark.parametrize(
    "door",
    [selection, *slow(preprocessed, selection_of_a_file)],
    ids=lambda door: door.__name__,
)
@every_method
def test_a_category_that_was_not_seen_is_a_gap(method, door, opened):
    model, frame = opened(door, method)
    for name in WORDS:
        unseen, gap = frame.astype({name: object}), frame.astype({name: object})
        unseen.loc[::3, name], gap.loc[::3, name] = "unheard of", None
        with pytest.warns(ordinal.exceptions.UnknownLevelsWarning, match="unheard of"):
            predicted = model.predict(unseen)
        assert_array_equal(predicted, model.predict(gap))


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.UnknownLevelsWarning")
@every_method
def test_words_for_a_method_of_numbers_are_named_and_the_way_out_too(method):
    accepts = method_of(method.fit).accepts
    if "categories" in accepts:
        frame = FRAME if "missing" in accepts else WHOLE
        model = method(frame, Y, **quick(method))
        shuffled = frame[frame.columns[::-1]].astype({"colour": "category"})
        assert_array_equal(model.predict(shuffled), model.predict(frame))
        unseen, gap = (frame.assign(colour=word) for word in ("puce", None))
        if "missing" in accepts:
            assert_array_equal(model.predict(unseen), model.predict(gap))
            return
        for rows in unseen, gap:
            raises(ValueError, "'colour'", model.predict, rows)
        return
    with pytest.raises((TypeError, ValueError), match=r"'(size|colour)'"):
        method(FRAME, Y, **quick(method))


X40, Y40 = sample(40, 3)
COLUMNS = ("age", "size", "a b")


def gaps():
    """Rows with an entry that is not known, in every way of saying so."""
    X = X40.copy()
    X[3, 1] = np.nan
    nullable = pd.DataFrame(X40, columns=COLUMNS).astype("Float64")
    nullable.loc[3, "size"] = pd.NA
    objects = pd.DataFrame(X40, columns=COLUMNS).astype(object)
    objects.loc[3, "size"] = None
    return [
        pd.DataFrame(X, columns=COLUMNS),
        nullable,
        objects,
        pl.DataFrame(X, schema=list(COLUMNS)).fill_nan(None),
    ]


@every_method
def test_gaps_in_every_form_are_missing_values_or_refused_with_their_row(method):
    first, *others = gaps()
    if method.missing == "pearson":
        for frame in (first, *others):
            with pytest.raises(ValueError, match=r"^X must be finite; .* bad row is 3"):
                method(frame, Y40)
    if method.missing == "never":
        return
    options = {"kernel": kernels.Pearson()} if method.missing == "pearson" else {}
    expected = method.numbers(method(first, Y40, **options), first)
    for frame in others:
        found = method.numbers(method(frame, Y40, **options), frame)
        assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:.* has the index of X in another order")
@every_method
def test_rows_go_by_their_order_and_errors_name_columns(method):
    """Columns are found by name and not by their index."""
    index = np.random.default_rng(0).permutation(40)
    frame = pd.DataFrame(X40, columns=COLUMNS, index=index)
    weight = pd.Series(np.r_[np.zeros(1), np.ones(39)], index=np.arange(40)[::-1])
    a = method(frame, pd.Series(Y40), sample_weight=weight)
    b = method(X40, Y40, sample_weight=weight.to_numpy())
    assert_array_equal(method.numbers(a, frame), method.numbers(b, X40))
    frame = pd.DataFrame(X40, columns=COLUMNS).astype({"size": object})
    frame.loc[3, "size"] = "tall"
    raises(TypeError, r"^column 'size' of X .*'tall' in row 3", method, frame, Y40)
    twice = pd.DataFrame(X40, columns=["a", "a", "b"])
    for read in (method, ordinal.sklearn.TableTransformer().fit_transform):
        raises(ValueError, r"^X has two columns 'a' \(columns 1, 2", read, twice, Y40)
