"""Tables, categories, gaps and formulas of linear cumulative models."""

import contextlib
import pickle
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pom_data import housing

import ordinal
from ordinal._input.columns import read_frame
from ordinal._linear.contrasts import Coding
from ordinal._linear.expressions import columns_of, evaluate

LEVELS = {
    "Infl": ["Low", "Medium", "High"],
    "Type": ["Tower", "Apartment", "Atrium", "Terrace"],
    "Cont": ["Low", "High"],
}


def houses():
    """MASS::housing as its users have it: categories in their order, and words."""
    row, freq = np.arange(72), housing().weight
    place = {"Infl": row // 3 % 3, "Type": row // 9 % 4, "Cont": row // 36}
    frame = {
        name: pd.Categorical(np.array(levels)[place[name]], levels)
        for name, levels in LEVELS.items()
    }
    sat = np.array(["Low", "Medium", "High"])
    frame["Sat"] = pd.Categorical(sat[row % 3], sat, ordered=True)
    return pd.DataFrame(frame | {"Freq": freq, "t": place["Type"] + 1.0})


def named(model):
    return dict(zip(model.coef_names, model.coef, strict=True))


# Categories


def frames():
    """The same table of every kind that has categories or words."""
    frame = houses()[["Infl", "Type", "Cont"]]
    words = frame.astype(str)
    return {
        "categorical": frame,
        "ordered": frame.apply(lambda c: c.cat.as_ordered()),
        "words": words,
        "polars words": pl.DataFrame(words.to_dict("list")),
        "polars enum": pl.DataFrame(
            {c: pl.Series(words[c], dtype=pl.Enum(LEVELS[c])) for c in words}
        ),
        "pyarrow": pa.table(words.to_dict("list")),
        "pyarrow dictionary": pa.table(
            {c: pa.array(words[c].tolist()).dictionary_encode() for c in words}
        ),
    }


@pytest.mark.parametrize("kind", frames())
def test_categories_get_the_contrasts_of_polr(kind):
    """Estimates of MASS::polr on housing, whose factors have these levels first."""
    table, data = frames()[kind], houses()
    first = {name: levels[0] for name, levels in LEVELS.items()}
    model = ordinal.fit_pom(
        table, data["Sat"], sample_weight=data["Freq"], reference=first
    )
    expected = {
        "Infl[Medium]": 0.5663937, "Infl[High]": 1.2888191,
        "Type[Apartment]": -0.5723501, "Type[Atrium]": -0.3661866,
        "Type[Terrace]": -1.0910149, "Cont[High]": 0.3602841,
    }  # fmt: skip
    assert named(model) == pytest.approx(expected, abs=1e-6)
    assert model.feature_names == ("Infl", "Type", "Cont")
    assert model.n_features == 3
    # columns are found by name, by whatever the rows come in
    P = model.predict_proba(table)
    turned = houses()[["t", "Cont", "Type", "Infl"]]
    assert_array_equal(model.predict_proba(turned), P)


def test_the_first_level_is_the_reference():
    """Of words by the alphabet, of a categorical type in its order."""
    data = houses()
    X, y, w = data[["Infl", "t"]], data["Sat"], data["Freq"]
    declared = ordinal.fit_pom(X, y, sample_weight=w)
    assert declared.coef_names == ("Infl[Medium]", "Infl[High]", "t")
    words = ordinal.fit_pom(X.astype({"Infl": str}), y, sample_weight=w)
    assert words.coef_names == ("Infl[Low]", "Infl[Medium]", "t")
    assert words.loglik == pytest.approx(declared.loglik, rel=1e-12)
    high = words.coef[0] - 0.0
    assert declared.coef[1] == pytest.approx(-high, rel=1e-6)


def test_levels_without_rows_are_not_known():
    """Unused levels of a categorical, and those of rows of weight 0."""
    data = houses()
    data["Infl"] = data["Infl"].cat.add_categories(["None"])
    w = np.where(data["Type"] == "Atrium", 0.0, data["Freq"])
    model = ordinal.fit_pom(data[["Infl", "Type"]], data["Sat"], sample_weight=w)
    assert model.coef_names == (
        "Infl[Medium]", "Infl[High]", "Type[Apartment]", "Type[Terrace]",
    )  # fmt: skip
    kept = data[w > 0]
    without = ordinal.fit_pom(
        kept[["Infl", "Type"]], kept["Sat"], sample_weight=kept["Freq"]
    )
    assert_allclose(model.coef, without.coef, rtol=1e-9)
    with pytest.raises(ValueError, match="column 'Type' of X holds 'Atrium' in row 6"):
        model.predict(data[["Infl", "Type"]].iloc[12:])


def test_columns_by_position_have_categories_as_well():
    table = [[1.0, "b"], [2.0, "a"], [3.0, "b"], [4.0, "a"], [2.5, "b"]]
    model = ordinal.fit_pom(table, [0, 0, 1, 1, 0], l2=0.1, reference={1: "b"})
    assert model.coef_names == ("x1", "x2[a]")
    assert model.predict(np.array(table, dtype=object)).shape == (5,)


def test_codings_of_terms_span_what_their_products_do():
    """R's rule: columns of `a*b`, of `a + a:x` and of `a:b` span the cells' means."""
    rng = np.random.default_rng(0)
    frame = read_frame(
        pd.DataFrame(
            {"a": ["p", "q", "r"] * 4, "b": list("uuuvvv") * 2, "x": rng.random(12)}
        )
    )
    a, b, x = (frame.column(j).values for j in range(3))
    cells = (a + 3 * b)[:, None] == np.arange(6)
    slopes = np.where(a[:, None] == np.arange(3), x[:, None], 0.0)
    for terms, span, rank in [
        (["a", "b", "a:b"], cells, 6),
        (["a:b"], cells, 6),
        (["a", "a:b"], cells, 6),
        (["a", "a:x"], np.hstack([a[:, None] == np.arange(3), slopes]), 6),
        (["a", "x", "a:x"], np.hstack([a[:, None] == np.arange(3), slopes]), 6),
    ]:
        Z = of_terms(frame, terms).transform(frame)
        whole = np.hstack([np.ones((12, 1)), Z])
        assert np.linalg.matrix_rank(whole) == rank, terms
        assert np.linalg.matrix_rank(np.hstack([whole, span])) == rank, terms
    assert of_terms(frame, ["a", "b", "a:b"]).column_names == (
        "a[q]", "a[r]", "b[v]", "a[q]:b[v]", "a[r]:b[v]",
    )  # fmt: skip


def of_terms(frame, terms):
    from ordinal._linear.contrasts import Factor

    made = [tuple(Factor(n, None, (n,)) for n in t.split(":")) for t in terms]
    return Coding.of_terms(None, frame, made)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"Infl": "Huge"}, r"reference\['Infl'\] is 'Huge', .* \['Low', 'Medium'"),
        ({"t": 1.0}, "reference names 't', which is no column of categories"),
        ({"price": 1.0}, "reference names 'price', which is not among"),
        ("Low", "reference must be a mapping"),
    ],
)
def test_references_that_are_none(reference, message):
    data = houses()
    with pytest.raises(ValueError, match=message):
        ordinal.fit_pom(data[["Infl", "t"]], data["Sat"], reference=reference)


def test_a_reference_needs_categories():
    with pytest.raises(ValueError, match="columns of categories, and X has none"):
        ordinal.fit_pom(np.eye(3), [0, 1, 2], reference={0: 1})


def test_columns_of_one_name_are_refused():
    frame = pd.DataFrame({"a": ["x", "y"] * 2, "a[y]": [1.0, 2, 3, 4]})
    with pytest.raises(ValueError, match=r"two columns would be called 'a\[y\]'"):
        ordinal.fit_pom(frame, [0, 0, 1, 1], l2=1.0)


def test_nominal_and_scale_effects_name_terms_or_their_columns():
    data = houses()
    X, y, w = data[["Infl", "Cont"]], data["Sat"], data["Freq"]
    whole = ordinal.fit_pom(X, y, sample_weight=w, nominal=["Infl"], scale=["Cont"])
    one = ordinal.fit_pom(
        X, y, sample_weight=w, nominal=["Infl[Medium]", "Infl[High]"], scale=[2]
    )
    assert_array_equal(whole.nominal, [0, 1])
    assert_array_equal(whole.scale, [2])
    assert whole.loglik == one.loglik
    assert ordinal.fit_pom(X, y, sample_weight=w, nominal=["Infl[High]"]).nominal == [1]
    with pytest.raises(ValueError, match="nominal must name a column once"):
        ordinal.fit_pom(X, y, nominal=["Infl", "Infl[High]"])


# Missing values


def gappy():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame({"x": rng.normal(size=n), "word": rng.choice(["a", "b"], n)})
    y = pd.Series(rng.integers(0, 3, n).astype(float))
    w, offset = rng.integers(1, 4, n).astype(float), rng.normal(size=n)
    frame.loc[[3, 7], "x"] = np.nan
    frame.loc[[7, 8, 9], "word"] = None
    y[20], w[21], offset[22] = np.nan, np.nan, np.nan
    complete = np.setdiff1d(np.arange(n), [3, 7, 8, 9, 20, 21, 22])
    return frame, y, w, offset, complete


def test_rows_that_lack_values_are_counted_by_column():
    frame, y, w, offset, _ = gappy()
    message = (
        "7 of 60 rows lack values ('x' 2, 'word' 3, 'y' 1, 'sample_weight' 1, "
        "'offset' 1): fill them in, as ordinal.preprocessing.TablePreprocessor does, "
        "or pass missing='drop' to leave these rows out"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ordinal.fit_pom(frame, y, sample_weight=w, offset=offset)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_dropped_rows_are_rows_left_out(kind):
    frame, y, w, offset, complete = gappy()
    model = ordinal.fit_pom(
        kind(frame), y, sample_weight=w, offset=offset, missing="drop"
    )
    assert model.n_missing == 7
    kept = ordinal.fit_pom(
        frame.iloc[complete], y.iloc[complete].astype(int), sample_weight=w[complete],
        offset=offset[complete],
    )  # fmt: skip
    assert kept.n_missing == 0
    assert_array_equal(model.coef, kept.coef)
    assert_array_equal(model.covariance, kept.covariance)
    assert model.n_obs == w[complete].sum()


def test_rows_of_matrices_are_dropped_alike():
    frame, y, *_ = gappy()
    X = np.column_stack([frame["x"], np.arange(60.0)])
    words = np.array(["low", "mid", "high"], dtype=object)
    labels = [None if np.isnan(v) else words[int(v)] for v in y]
    keep = np.setdiff1d(np.arange(60), [3, 7, 20])
    model = ordinal.fit_pom(X, labels, classes=words, missing="drop")
    kept = ordinal.fit_pom(X[keep], words[y.iloc[keep].astype(int)], classes=words)
    assert model.n_missing == 3
    assert_array_equal(model.coef, kept.coef)
    with pytest.raises(ValueError, match=r"2 of 60 rows lack values \('x1' 2\)"):
        ordinal.fit_pom(X, np.arange(60) % 3)


def test_gaps_that_leave_no_row():
    with pytest.raises(ValueError, match=r"3 of 3 rows lack values .*no row is left"):
        ordinal.fit_pom(np.full((3, 1), np.nan), [0, 1, 2], missing="drop")
    with pytest.raises(ValueError, match="missing must be one of"):
        ordinal.fit_pom(np.eye(3), [0, 1, 2], missing="ignore")


def test_a_gap_at_prediction_names_its_column():
    data = houses()
    model = ordinal.fit_pom(data[["Infl", "t"]], data["Sat"])
    data.loc[4, "t"] = np.nan
    with pytest.raises(ValueError, match=r"in 1 of 72 rows; .* row 4, in column 't'"):
        model.predict(data)


# Arithmetic of columns


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("np.log(x)", np.log),
        ("log(x)", np.log),
        ("I(x ** 2 - 3 * x / 2)", lambda x: x**2 - 1.5 * x),
        ("-x + +2", lambda x: 2 - x),
        ("I(x > 2)", lambda x: x > 2),
        ("sqrt(exp(x)) * (x == 1)", lambda x: np.exp(x / 2) * (x == 1)),
        ("`x`", lambda x: x),
    ],
)
def test_arithmetic_is_that_of_numpy(text, value):
    x = np.array([1.0, 2.0, 3.5])
    assert columns_of(text) == ("x",)
    assert_allclose(evaluate(text, {"x": x}), value(x), rtol=1e-15)


def test_arithmetic_of_what_is_missing_is_missing():
    x = np.array([1.0, np.nan])
    assert_array_equal(evaluate("I(x > 0)", {"x": x}), [1.0, np.nan])
    with pytest.raises(ValueError, match=r"'log\(x\)' is -inf in row 1 of X"):
        evaluate("log(x)", {"x": np.array([1.0, 0.0])})


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "x.__class__", "x[0]", "[x]", "lambda: x", "open(x)",
        "np.linalg.norm(x)", "log(x, 2)", "log(*x)", "log(x=1)", "x if x else 1",
        "x and 1", "1 < x < 2", "x ^ 2", "'a'", "True", "os.log(x)", "x := 1", "x;x",
        "", "(" * 300, "-" * 499 + "x" * 9, "x\0",
    ],
)  # fmt: skip
def test_nothing_else_is_arithmetic(text):
    with pytest.raises(ValueError, match=r"cannot keep|no expression|longer than"):
        columns_of(text)


@given(st.text(max_size=600))
def test_any_text_is_arithmetic_or_refused(text):
    try:
        columns_of(text)
    except ValueError:
        return
    values = {name: np.ones(2) for name in columns_of(text)} or {"x": np.ones(2)}
    with contextlib.suppress(ValueError):  # of what is infinite
        assert evaluate(text, values).shape == (2,)


def test_powers_of_numbers_overflow_and_do_not_hang():
    with pytest.raises(ValueError, match="is inf in row 0"):
        evaluate("x * 9 ** 9 ** 9 ** 9", {"x": np.ones(1)})


# Formulas: coefficients of clm by tools/reference/pom_formulas.R


def fitted(text, **options):
    pytest.importorskip("formulaic")
    return ordinal.fit_pom(text, houses(), sample_weight="Freq", **options)


R_FITS = {
    "Sat ~ Infl + Type * Cont": (
        {
            "Infl[Medium]": 0.55510741010, "Infl[High]": 1.28192363703,
            "Type[Apartment]": -0.54585224348, "Type[Atrium]": -0.24245970521,
            "Type[Terrace]": -0.58285336330, "Cont[High]": 0.57041191499,
            "Type[Apartment]:Cont[High]": -0.09665472211,
            "Type[Atrium]:Cont[High]": -0.25631165360,
            "Type[Terrace]:Cont[High]": -0.83738995197,
        },
        -1735.24157194,
    ),
    "Sat ~ Infl + Infl:t": (
        {
            "Infl[Medium]": 0.1436553536, "Infl[High]": 0.9256696891,
            "Infl[Low]:t": -0.3697326834, "Infl[Medium]:t": -0.1940280630,
            "Infl[High]:t": -0.2377943391,
        },
        -1752.942517,
    ),
    "Sat ~ Infl + offset(t / 2)": (
        {"Infl[Medium]": 0.6490837215, "Infl[High]": 1.3658642545}, -1892.259839
    ),
    "Sat ~ Cont + np.log(t) + I(t ** 2)": (
        {
            "Cont[High]": 0.25740056375, "np.log(t)": -0.38619347942,
            "I(t ** 2)": -0.02678093047,
        },
        -1800.230111,
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", R_FITS)
def test_formulas_are_those_of_clm(text):
    model = fitted(text)
    coefs, loglik = R_FITS[text]
    assert list(named(model)) == list(coefs)
    assert named(model) == pytest.approx(coefs, rel=1e-6)
    assert model.loglik == pytest.approx(loglik, rel=1e-9)


@pytest.mark.parametrize("text", [*R_FITS, "Sat ~ C(t, Treatment(2)) + Infl"])
def test_files_and_pickles_keep_formulas(text, tmp_path):
    model, data = fitted(text), houses()
    assert model.coding.formula == text
    model.save(tmp_path / "model.npz")
    for copy in (
        ordinal.load(tmp_path / "model.npz"),
        pickle.loads(pickle.dumps(model)),
    ):
        assert_array_equal(copy.predict_proba(data), model.predict_proba(data))
        assert copy.coding.formula == text
    # a table without the labels will do
    assert_array_equal(model.predict(data.drop(columns="Sat")), model.predict(data))


def test_offsets_of_formulas_count_at_prediction_and_add_to_others():
    data = houses()
    model = fitted("Sat ~ Infl + offset(t / 2)")
    by_hand = ordinal.fit_pom(
        data[["Infl"]], data["Sat"], sample_weight=data["Freq"], offset=data["t"] / 2
    )
    assert_array_equal(model.coef, by_hand.coef)
    score = by_hand.decision_function(data, offset=data["t"] / 2)
    assert_array_equal(model.decision_function(data), score)
    assert_allclose(
        model.decision_function(data, offset=np.ones(72)), score + 1, rtol=1e-15
    )
    both = fitted("Sat ~ Infl + offset(t / 4)", offset="t")
    known = ordinal.fit_pom(
        data[["Infl"]], data["Sat"], sample_weight=data["Freq"], offset=1.25 * data["t"]
    )
    assert_allclose(both.coef, known.coef, rtol=1e-9)


def test_the_ways_to_write_a_formula():
    pytest.importorskip("formulaic")
    data = houses()
    data["my t"] = data["t"]
    data["when"] = pd.Timestamp("2020-01-01")

    def names(text, **options):
        return ordinal.fit_pom(text, data, l2=1e-3, **options).coef_names

    assert names("Sat ~ . - Type - Freq - when - `my t`") == (
        "Infl[Medium]", "Infl[High]", "Cont[High]", "t",
    )  # fmt: skip
    assert names("Sat ~ (Infl + Cont) ** 2 - Infl") == (
        "Cont[High]", "Infl[Medium]:Cont[Low]", "Infl[High]:Cont[Low]",
        "Infl[Medium]:Cont[High]", "Infl[High]:Cont[High]",
    )  # fmt: skip
    assert names("Sat ~ np.log(`my t`) + `my t`") == ("np.log(my t)", "my t")
    assert names("Sat ~ C(t)") == ("C(t)[2.0]", "C(t)[3.0]", "C(t)[4.0]")
    for treatment in (
        "Treatment(2)",
        "contr.treatment(base=2)",
        "Treatment(reference=2)",
    ):
        assert names(f"Sat ~ C(t, {treatment})") == (
            "C(t)[1.0]", "C(t)[3.0]", "C(t)[4.0]",
        )  # fmt: skip
    assert names("Sat ~ factor(t)", reference={"t": 4}) == (
        "C(t)[1.0]", "C(t)[2.0]", "C(t)[3.0]",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Sat ~ Infl - 1", "leave out '- 1' and '0 \\+'"),
        ("Sat ~ 0 + Infl", "the thresholds are the intercepts"),
        ("Sat ~ 1", "has no term"),
        ("Sat ~", "has no term|no formula"),
        ("~ Infl", "must be of the form"),
        ("Infl", "must be of the form"),
        ("Sat ~ Infl | Cont", "must be of the form"),
        ("Sat ~ Infl +", "is no formula: "),
        ("Sat ~ price", "names 'price', which is not among the columns"),
        ("factor(Sat) ~ Infl", "left side .* got 'factor\\(Sat\\)'"),
        ("Sat + Cont ~ Infl", "left side"),
        ("Sat ~ log(price)", "names 'price'"),
        ("Sat ~ poly(t, 2)", "cannot keep 'poly\\(t, 2\\)'"),
        ("Sat ~ C(t, Sum)", "a category is C\\(column\\)"),
        ("Sat ~ C(t + 1)", "a category is C\\(column\\)"),
        ("Sat ~ C(t, Treatment(9))", "is 9, which is not among the levels"),
        ("Sat ~ 2:t", "write I\\(2 \\* x\\)"),
        ("Sat ~ log(t - 1)", "'log\\(t - 1\\)' is -inf in row 0"),
        ("Sat ~ I(3) + t", "a term is of columns, got 'I\\(3\\)'"),
        ("Sat ~ t + offset(Freq, t)", "cannot keep"),
    ],
)
def test_formulas_that_are_none(text, message):
    with pytest.raises(ValueError, match=message):
        fitted(text)


def test_arithmetic_of_categories_is_refused():
    with pytest.raises(TypeError, match=r"'log\(Infl\)' needs numbers, and column"):
        fitted("Sat ~ log(Infl)")
    with pytest.raises(TypeError, match=r"'offset\(Infl\)' needs numbers"):
        fitted("Sat ~ t + offset(Infl)")


def test_a_formula_needs_its_table():
    pytest.importorskip("formulaic")
    with pytest.raises(TypeError, match="a formula needs its data frame"):
        ordinal.fit_pom("Sat ~ Infl", [1, 2, 3])
    with pytest.raises(ValueError, match="sample_weight names 'weight', which is no"):
        ordinal.fit_pom("Sat ~ Infl", houses(), sample_weight="weight")


def test_a_formula_without_formulaic_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"'ordinal-regression\[formula\]'"):
        ordinal.fit_pom("Sat ~ Infl", houses())


def test_formulas_read_only_their_columns():
    pytest.importorskip("formulaic")
    data = houses()
    data.loc[[1, 2], "t"] = np.nan
    data.loc[[5], "Infl"] = None
    with pytest.raises(ValueError, match=r"1 of 72 rows lack values \('Infl' 1\)"):
        ordinal.fit_pom("Sat ~ Infl", data)
    model = ordinal.fit_pom("Sat ~ Infl", data, missing="drop")
    assert model.n_missing == 1
    assert ordinal.fit_pom("Sat ~ Cont", data).n_missing == 0
