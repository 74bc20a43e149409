"""Tables with words and gaps as numbers, and models behind them."""

import datetime
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from registry import FITS
from scipy.sparse import bsr_array, csr_array
from strategies import raises

import ordinal
import ordinal.sklearn
from ordinal.model_selection import Grid, select
from ordinal.preprocessing import Standardizer, TablePreprocessor

nan = float("nan")
RNG = np.random.default_rng(0)


def wines(n=60, seed=0):
    """A frame of numbers with gaps, words with gaps, booleans and an ordered column."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "alcohol": rng.normal(10, 1, n),
        "acid": rng.normal(3, 0.1, n),
        "colour": rng.choice(["red", "white", "rose"], n),
        "sweet": rng.random(n) < 0.4,
        "size": pd.Categorical(
            rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True
        ),
    })  # fmt: skip
    y = np.digitize(frame["alcohol"] + (frame["colour"] == "red"), [9.5, 10.5]) + 1
    frame.loc[rng.random(n) < 0.1, "alcohol"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, y


def fills(coding):
    return np.array([variable.fill for variable in coding.coding.variables])


def test_every_kind_of_column_becomes_what_is_said():
    frame = pd.DataFrame({
        "x": [1.0, nan, 5.0, 2.0],
        "flag": [True, False, True, True],
        "word": ["b", "a", None, "b"],
        "size": pd.Categorical(
            ["S", "L", "S", None], ["S", "M", "L"], ordered=True
        ),
        "zip": [7, 9, 9, 7],
        "grade": ["low", "high", "mid", "low"],
    })  # fmt: skip
    how = TablePreprocessor(
        order={"grade": ["low", "mid", "high"]}, categorical=["zip"], standardize=False
    )
    coding = how.fit(frame)
    assert coding.feature_names_out == (
        "x", "x is missing", "flag", "word[a]", "word[b]", "word is missing",
        "size", "size is missing", "zip[7]", "zip[9]", "grade",
    )  # fmt: skip
    assert_array_equal(
        coding.transform(frame),
        [
            [1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0],
            [2, 1, 0, 1, 0, 0, 2, 0, 0, 1, 2],
            [5, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1],
            [2, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0],
        ],
    )


def test_numbers_alone_are_standardised_as_by_the_standardizer():
    X = RNG.normal(3, 2, (40, 4))
    w = RNG.integers(0, 3, 40)
    for names in (None, list("abcd")):
        table = X if names is None else pd.DataFrame(X, columns=names)
        coding = TablePreprocessor().fit(table, w)
        s = Standardizer.fit(X, w)
        assert coding.transform(table).tobytes() == s.transform(X).tobytes()
        assert coding.feature_names == (names and tuple(names))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([nan, 0.0, 1.0, 2.0, 5.0, 1e308, -1e308]),
            st.sampled_from([None, "a", "b", "c"]),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=9,
    ).filter(lambda rows: any(w for *_, w in rows)),
    st.sampled_from(["median", "mean", "most_frequent"]),
)
@example([(1e308, "a", 1), (-1e308, None, 1)], "median")
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.EmptyColumnsWarning")
def test_weight_is_a_repeat_count(rows, impute):
    table = np.array([[x, word] for x, word, _ in rows], dtype=object)
    w = [w for *_, w in rows]
    how = TablePreprocessor(impute=impute)
    a, b = how.fit(table, w), how.fit(np.repeat(table, w, axis=0))
    assert a.feature_names_out == b.feature_names_out
    assert_allclose(fills(a), fills(b), rtol=1e-12)
    kept = table[np.array(w) > 0]
    assert_allclose(a.transform(kept), b.transform(kept), rtol=1e-9, atol=1e-9)


def test_columns_without_a_value_are_zero_and_warned_of_once():
    frame = pd.DataFrame(
        {"none": [None] * 3, "nan": [nan] * 3, "one": [7.0] * 3, "word": ["a"] * 3}
    )
    with pytest.warns(ordinal.exceptions.EmptyColumnsWarning) as caught:
        coding = TablePreprocessor().fit(frame)
    assert [str(warning.message) for warning in caught] == [
        "no training row has a value in 'none', 'nan', and such columns are 0 in all "
        "rows: leave them out"
    ]
    assert caught[0].filename == __file__
    assert coding.feature_names_out == ("none", "nan", "one", "word[a]")
    assert_array_equal(coding.transform(frame), np.zeros((3, 4)))
    later = frame.assign(none=["x", "y", None], nan=[1.0, 2.0, 3.0])
    assert_array_equal(coding.transform(later)[:, :2], 0)
    table = [[1.0, nan], [2.0, nan], [3.0, 5.0]]
    with pytest.warns(
        ordinal.exceptions.EmptyColumnsWarning, match="a value in 'x2', and"
    ):
        TablePreprocessor().fit(table, sample_weight=[1, 1, 0])
    X = np.column_stack([RNG.normal(size=20), np.full(20, nan)])
    with pytest.warns(ordinal.exceptions.EmptyColumnsWarning) as caught:
        found = select(
            ordinal.fit_svorim, X, np.arange(20) % 2, search=Grid(C=[1.0]), cv=2,
            preprocess=TablePreprocessor(),
        )  # fmt: skip
    assert len(caught) == 1
    assert np.isnan(fills(found.model.preprocessor)[1])


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.UnknownLevelsWarning")
def test_unseen_categories_are_gaps_or_an_error():
    frame, _ = wines()
    frame["sure"] = np.where(frame["sweet"], "yes", "no")
    new = frame.assign(colour="orange", sure="perhaps")
    gaps = frame.assign(colour=None, sure=None)
    coding = TablePreprocessor().fit(frame)
    assert_array_equal(coding.transform(new), coding.transform(gaps))
    strict = TablePreprocessor(unseen="error").fit(frame)
    assert_array_equal(strict.transform(gaps), coding.transform(gaps))
    message = r"^column 'colour' of X holds 'orange' in row 2, .*\['red', 'rose', 'wh"
    with pytest.raises(ValueError, match=message):
        strict.transform(frame.assign(colour=["red", None, "orange"] * 20))


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"impute": "zero"}, ValueError, "impute must be one of"),
    ({"unseen": None}, ValueError, "unseen must be one of"),
    ({"indicator": 1}, ValueError, "indicator must be True or False"),
    ({"standardize": "no"}, ValueError, "standardize must be True or False"),
    ({"categorical": "zip"}, ValueError, "categorical must be a sequence"),
    ({"categorical": bsr_array([[1]])}, ValueError, "categorical must"),
    ({"order": ["a"]}, ValueError, "order must be a mapping"),
    ({"order": {"a": [1, "b"]}}, TypeError, r"order\['a'\] must hold integers or"),
    ({"order": {"a": ["b", "b"]}}, ValueError, r"order\['a'\] must hold distinct"),
])  # fmt: skip
def test_settings_that_are_none(arguments, error, message):
    raises(error, f"^{message}", TablePreprocessor, **arguments)


@pytest.mark.parametrize(("column", "error", "message"), [
    ([datetime.date(2020, 1, 1)], TypeError, r"got .*dates=\['day'\]. makes"),
    (pd.to_datetime(["2020-01-01"]), TypeError, r"got .*dates=\['day'\]. makes"),
    (pd.to_timedelta([3], "D"), TypeError, "got .*; convert times to num"),
    ([1, "tall"], TypeError, "got 'tall' in row 1; pass numbers, and NaN"),
    ([[1, 2]], TypeError, r"got \[1, 2\] in row 0$"),
    ([1.0, np.inf], ValueError, "be finite or NaN, got inf in row 1"),
], ids=["date", "datetime64", "timedelta64", "mixed", "lists", "infinite"])  # fmt: skip
def test_columns_that_are_neither_numbers_nor_categories(column, error, message):
    frame = pd.DataFrame({"a": 1.0, "day": column})
    with pytest.raises(error, match=f"^column 'day' of X must .*{message}"):
        TablePreprocessor().fit(frame)


def test_a_bad_table_is_named():
    frame, _ = wines()
    refused = [
        ({"order": {"age": ["a"]}}, "order names 'age', which is not among"),
        ({"categorical": [9]}, "categorical must name columns or number them 0 to 4"),
        ({"order": {"colour": ["red"]}}, "column 'colour' of X holds .* in row"),
    ]
    for arguments, message in refused:
        raises(ValueError, message, TablePreprocessor(**arguments).fit, frame)
    dated, dates = frame.assign(day=pd.Timestamp(0)), TablePreprocessor(dates=["year"])
    raises(ValueError, "^dates names 'year', which", dates.fit, dated)
    with pytest.raises(ValueError, match=r"two columns would be called 'a\[b\]'"):
        TablePreprocessor().fit(pd.DataFrame({"a": ["b"], "a[b]": [1.0]}))
    raises(TypeError, "X is sparse", TablePreprocessor().fit, csr_array(np.eye(3)))
    coding = TablePreprocessor().fit(frame)
    with pytest.raises(TypeError, match="column 'acid' of X must hold real numbers"):
        coding.transform(frame.assign(acid="sour"))
    frame, y = wines()
    for name in ("svorim", "npsvor", "gpor", "tlssvor"):
        fit = FITS[f"fit_{name}"]
        with pytest.raises(ValueError, match=r"'alcohol'; .*Preprocessor imputes"):
            fit(frame[["alcohol"]], y)
        with pytest.raises(TypeError, match=r"'colour'.*TablePreprocessor encodes"):
            fit(frame[["acid", "colour"]], y)


def identified(n=42, words=42):
    frame = pd.DataFrame({"age": np.arange(n) % 7.0})
    return frame.assign(id=[f"C{k % words}" for k in range(n)]), np.arange(n) % 3


IDENTIFIERS = {
    "preprocessor": lambda X, y: TablePreprocessor().fit(X),
    "preprocess": lambda X, y: ordinal.fit_svorim(
        X, y, preprocess=TablePreprocessor()
    ),
    "xofm": partial(ordinal.fit_xofm, max_iter=1),
    "pom": partial(ordinal.fit_pom, l2=1.0),
    "formula": lambda X, y: ordinal.fit_pom("y ~ age + id", X.assign(y=y), l2=1.0),
    "search": partial(
        select, ordinal.fit_xofm, search=Grid(tau=[1.0]), cv=2, max_iter=1
    ),
    "search of a table": partial(
        select, ordinal.fit_svorim, search=Grid(C=[1.0]), cv=2,
        preprocess=TablePreprocessor(),
    ),
    "estimator": lambda X, y: ordinal.sklearn.XOFM(max_iter=1).fit(X, y),
    "estimator of pom": lambda X, y: ordinal.sklearn.POM(l2=1.0).fit(X, y),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fit", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_a_column_that_names_the_rows_is_refused(fit):
    """The rule of the command: over 20 words, and over half of the rows."""
    for n, words in ((42, 42), (41, 21)):
        with pytest.raises(ValueError, match=r"^column 'id' of X: ") as caught:
            fit(*identified(n, words))
        said = f"{words} different strings in {n} rows, such as 'C0'; leave it out, or"
        assert said in str(caught.value)
    fit(*identified(42, 21))
    fit(*identified(30, 20))
    X, y = identified()
    fit(X.assign(id=X["id"].astype("category")), y)  # declared by the caller


def test_columns_that_name_the_rows_are_refused_at_once():
    X, y = identified()
    X = X.assign(mail=[f"{k}@x" for k in range(len(X))])
    with pytest.raises(ValueError, match=r"^columns 'id', 'mail' of X: .*'0@x'; leave"):
        ordinal.fit_pom(X, y)


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
def test_a_column_that_names_the_rows_may_be_chosen():
    X, y = identified()
    assert len(TablePreprocessor(categorical=["id"]).fit(X).feature_names_out) == 43
    assert len(TablePreprocessor(categorical=[1]).fit(X).feature_names_out) == 43
    order = {"id": list(dict.fromkeys(X["id"]))}
    assert len(TablePreprocessor(order=order).fit(X).feature_names_out) == 2
    for rows in (X, X.astype(object).to_numpy()):
        ordinal.fit_xofm(rows, y, categorical=[1], max_iter=1)
        ordinal.sklearn.XOFM(categorical=(1,), max_iter=1).fit(rows, y)
        with pytest.raises(ValueError, match=r"^column '(id|x2)' of X: 42 different"):
            ordinal.fit_xofm(rows, y)
    ordinal.fit_pom(X, y, l2=1.0, reference={"id": "C7"})
    space = Grid(tau=[1.0])
    select(ordinal.fit_xofm, X, y, search=space, cv=2, categorical=["id"], max_iter=1)


@pytest.mark.parametrize(("argument", "call"), [
    ("order", lambda X, y, of: TablePreprocessor(order=of).fit(X)),
    ("reference", lambda X, y, of: ordinal.fit_pom(X, y, l2=1.0, reference=of)),
    ("monotone", lambda X, y, of: ordinal.fit_xofm(X, y, monotone=of)),
])  # fmt: skip
def test_a_column_by_name_and_by_number_is_one_too_many(argument, call):
    X = pd.DataFrame({"a": ["x", "y"] * 3})
    with pytest.raises(ValueError, match=f"{argument} names column 'a' twice"):
        call(X, [0, 0, 0, 1, 1, 1], {"a": ["x", "y"], 0: ["x", "y"]})
