"""Tables, categories, gaps and formulas of linear cumulative models."""

import contextlib
import re
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from internals import Design, Problem, structure_of
from numpy.testing import assert_allclose, assert_array_equal
from pom_data import housing, housing_table, two_rows_per_rank
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_array
from strategies import raises, slow

import ordinal
from ordinal import fit_pom
from ordinal._cumulative import separation
from ordinal._cumulative.collinear import dependencies
from ordinal._cumulative.separation import certificate, moves
from ordinal._formula.expressions import columns_of, evaluate
from ordinal._formula.formulas import parse_formula
from ordinal.exceptions import CollinearColumnsWarning, ConvergenceWarning
from ordinal.models import Status
from ordinal.preprocessing import Standardizer, TablePreprocessor


def houses():
    """MASS::housing as its users have it: categories in their order, and words."""
    frame, words = housing_table(), ["Low", "Medium", "High"]
    satisfaction = pd.Categorical.from_codes(housing().y, words, ordered=True)
    kind = frame["Type"].cat.codes + 1.0
    return frame.assign(Sat=satisfaction, Freq=housing().weight, t=kind)


def named(model):
    return dict(zip(model.coef_names, model.coef, strict=True))


def test_categories_get_the_contrasts_of_polr():
    """Estimates of MASS::polr on housing, whose factors have these levels first."""
    data, expected = houses(), {
        "Infl[Medium]": 0.5663937, "Infl[High]": 1.2888191,
        "Type[Apartment]": -0.5723501, "Type[Atrium]": -0.3661866,
        "Type[Terrace]": -1.0910149, "Cont[High]": 0.3602841,
    }  # fmt: skip
    first = {name: data[name].cat.categories[0] for name in housing_table()}
    frame = data[["Infl", "Type", "Cont"]]
    words = frame.astype(str).to_dict("list")
    ordered = frame.apply(lambda c: c.cat.as_ordered())
    for table in (frame, ordered, pl.from_pandas(frame), pa.table(words)):
        model = fit_pom(table, data["Sat"], sample_weight=data["Freq"], reference=first)
        assert named(model) == pytest.approx(expected, abs=1e-6)
        assert model.feature_names == ("Infl", "Type", "Cont")
        assert model.n_features == 3


def test_levels_without_rows_are_not_known():
    """Unused levels of a categorical, and those of rows of weight 0."""
    data = houses()
    data["Infl"] = data["Infl"].cat.add_categories(["None"])
    w = np.where(data["Type"] == "Atrium", 0.0, data["Freq"])
    model = fit_pom(data[["Infl", "Type"]], data["Sat"], sample_weight=w)
    assert model.coef_names == (
        "Infl[Medium]", "Infl[High]", "Type[Apartment]", "Type[Terrace]",
    )  # fmt: skip
    kept = data[w > 0]
    without = fit_pom(kept[["Infl", "Type"]], kept["Sat"], sample_weight=kept["Freq"])
    assert_allclose(model.coef, without.coef, rtol=1e-9)
    with pytest.raises(ValueError, match="column 'Type' of X holds 'Atrium' in row 6"):
        model.predict(data[["Infl", "Type"]].iloc[12:])


@pytest.mark.parametrize(("reference", "message"), [
    ({"Infl": "Huge"}, r"reference\['Infl'\] is 'Huge', .* \['Low', 'Medium'"),
    ({"t": 1.0}, "reference names 't', which is not a categorical"),
    ({"price": 1.0}, "reference names 'price', which is not among"),
    ("Low", "reference must be a mapping"),
    (-1, "reference must be a mapping from columns to levels, got -1"),
    ({"Infl": "Low", 0: "High"}, "reference names column 'Infl' twice, by its"),
])  # fmt: skip
def test_references_that_are_none(reference, message):
    data = houses()
    with pytest.raises(ValueError, match=message):
        fit_pom(data[["Infl", "t"]], data["Sat"], reference=reference)


CROSSED = pd.DataFrame({"a": ["x", "y"] * 2, "a[y]": [1.0, 2, 3, 4]})


@pytest.mark.parametrize(("X", "options", "message"), [
    (np.eye(3), {"reference": {0: 1}}, "categorical columns, and X has none"),
    (np.eye(3), {"missing": "ignore"}, "missing must be one of"),
    (np.full((3, 1), np.nan), {"missing": "drop"},
     r"3 of 3 rows lack values .*no row is left"),
    (CROSSED[:3], {"l2": 1.0}, r"two columns would be called 'a\[y\]'"),
])  # fmt: skip
def test_tables_that_cannot_be_fitted(X, options, message):
    raises(ValueError, message, fit_pom, X, [0, 1, 2], **options)


def test_nominal_and_scale_effects_name_terms_or_their_columns():
    data = houses()

    def fit(columns="Infl Cont", **options):
        of = {"sample_weight": data["Freq"], **options}
        return fit_pom(data[columns.split()], data["Sat"], **of)

    whole = fit(nominal=["Infl"], scale=["Cont"])
    one = fit(nominal=["Infl[Medium]", "Infl[High]"], scale=[2])
    assert_array_equal(whole.predictor.nominal, [0, 1])
    assert_array_equal(whole.predictor.scale, [2])
    assert whole.loglik == one.loglik
    assert fit(nominal=["Infl[High]"]).predictor.nominal == [1]
    with pytest.raises(ValueError, match="nominal must name a column once"):
        fit(nominal=["Infl", "Infl[High]"])
    message = r"got '~ Infl \+ t'; for these columns pass {}=\['Infl', 't'\]$"
    for argument in ("nominal", "scale"):
        with pytest.raises(ValueError, match=message.format(argument)):
            fit("Infl t", **{argument: "~ Infl + t"})


def gappy():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame({"x": rng.normal(size=n), "word": rng.choice(["a", "b"], n)})
    y = pd.Series(rng.integers(0, 3, n).astype(float))
    w, offset = rng.integers(1, 4, n).astype(float), rng.normal(size=n)
    frame.loc[[3, 7], "x"] = np.nan
    frame.loc[[7, 8, 9], "word"] = None
    y[20], w[21], offset[22] = np.nan, np.nan, np.nan
    return frame, y, w, offset, np.setdiff1d(np.arange(n), [3, 7, 8, 9, 20, 21, 22])


def test_rows_that_lack_values_are_counted_by_column():
    frame, y, w, offset, _ = gappy()
    message = (
        "X, y, sample_weight, offset: 7 of 60 rows lack values ('x' 2, 'word' 3, "
        "'y' 1, 'sample_weight' 1, 'offset' 1), the first in row 3: fill those of "
        "features in, as ordinal.preprocessing.TablePreprocessor does, or pass "
        "missing='drop' to leave these rows out"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        fit_pom(frame, y, sample_weight=w, offset=offset)
    with pytest.raises(ValueError, match=r"row 3: fill them in, as .* or pass missing"):
        fit_pom(frame, np.nan_to_num(y, nan=1.0))
    whole = frame.fillna({"x": 0.0, "word": "a"})  # labels are not filled in
    raises(ValueError, r"\('y' 1\), .* row 20: pass missing='drop'", fit_pom, whole, y)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_dropped_rows_are_rows_left_out(kind):
    frame, y, w, offset, complete = gappy()
    options = {"sample_weight": w, "offset": offset, "missing": "drop"}
    model = fit_pom(kind(frame), y, **options)
    assert model.statistics.n_missing == 7
    options |= {"sample_weight": w[complete], "offset": offset[complete]}
    kept = fit_pom(frame.iloc[complete], y.iloc[complete], **options)
    assert kept.statistics.n_missing == 0
    assert_array_equal(model.coef, kept.coef)
    assert_array_equal(model.covariance, kept.covariance)
    assert model.statistics.n_obs == w[complete].sum()


def test_rows_of_matrices_are_dropped_alike():
    frame, y, *_ = gappy()
    X = np.column_stack([frame["x"], np.arange(60.0)])
    words = np.array(["low", "mid", "high"], dtype=object)
    labels = [None if np.isnan(v) else words[int(v)] for v in y]
    keep = np.setdiff1d(np.arange(60), [3, 7, 20])
    model = fit_pom(X, labels, classes=words, missing="drop")
    kept = fit_pom(X[keep], words[y.iloc[keep].astype(int)], classes=words)
    assert model.statistics.n_missing == 3
    assert_array_equal(model.coef, kept.coef)
    with pytest.raises(ValueError, match=r"2 of 60 rows lack values \('x1' 2\)"):
        fit_pom(X, np.arange(60) % 3)


@pytest.mark.parametrize(("text", "value"), [
    ("np.log(x)", np.log),
    ("I(x ** 2 - 3 * x / 2)", lambda x: x**2 - 1.5 * x),
    ("-x + +2", lambda x: 2 - x),
    ("sqrt(exp(x)) * (x == 1)", lambda x: np.exp(x / 2) * (x == 1)),
    ("`x`", lambda x: x),
])  # fmt: skip
def test_arithmetic_is_that_of_numpy(text, value):
    x = np.array([1.0, 2.0, 3.5])
    assert columns_of(text) == ("x",)
    assert_allclose(evaluate(text, {"x": x}), value(x), rtol=1e-15)


def test_arithmetic_has_its_limits():
    x = np.array([1.0, np.nan])
    assert_array_equal(evaluate("I(x > 0)", {"x": x}), [1.0, np.nan])
    with pytest.raises(ValueError, match=r"'log\(x\)' is -inf in row 1 of X"):
        evaluate("log(x)", {"x": np.array([1.0, 0.0])})
    text = "+".join(["x1"] * 166)
    assert evaluate(text, {"x1": np.ones(2)}).tolist() == [166.0, 166.0]
    with pytest.raises(ValueError, match="is inf in row 0"):
        evaluate("x * 9 ** 9 ** 9 ** 9", {"x": np.ones(1)})


@pytest.mark.parametrize("text", [
    "__import__('os')", "x.__class__", "x[0]", "lambda: x", "np.linalg.norm(x)",
    "log(x, 2)", "log(*x)", "log(x=1)", "1 < x < 2", "x ^ 2", "'a'", "os.log(x)",
    "True", "", "(" * 300, "-" * 499 + "x" * 9, "x\0", "-" * 480 + "x",
])  # fmt: skip
def test_nothing_else_is_arithmetic(text):
    refusals = r"cannot be stored|not an expression|longer than|nested too deeply"
    raises(ValueError, refusals, columns_of, text)


@given(st.text("xy1.+-*/%()[]{}'\" _,:<>=~^&|\\\n\0é", max_size=100))
def test_any_text_is_arithmetic_or_refused(text):
    try:
        columns_of(text)
    except ValueError:
        return
    values = {name: np.ones(2) for name in columns_of(text)} or {"x": np.ones(2)}
    with contextlib.suppress(ValueError):  # of what is infinite
        assert evaluate(text, values).shape == (2,)


def fitted(text, **options):
    table = houses()
    if "my age" in text or "a-b" in text:
        table = table.assign(**{"my age": table["t"], "a-b": table["t"]})
    return fit_pom(text, table, sample_weight="Freq", **options)


# Estimates and log likelihoods of clm by tests/reference/pom_formulas.R
R_FITS = {
    "Sat ~ Infl + Type * Cont": (-1735.24157194, {
        "Infl[Medium]": 0.55510741010, "Infl[High]": 1.28192363703,
        "Type[Apartment]": -0.54585224348, "Type[Atrium]": -0.24245970521,
        "Type[Terrace]": -0.58285336330, "Cont[High]": 0.57041191499,
        "Type[Apartment]:Cont[High]": -0.09665472211,
        "Type[Atrium]:Cont[High]": -0.25631165360,
        "Type[Terrace]:Cont[High]": -0.83738995197,
    }),
    "Sat ~ Infl + Infl:t": (-1752.942517, {
        "Infl[Medium]": 0.1436553536, "Infl[High]": 0.9256696891,
        "Infl[Low]:t": -0.3697326834, "Infl[Medium]:t": -0.1940280630,
        "Infl[High]:t": -0.2377943391,
    }),
    "Sat ~ Infl + offset(t / 2)": (-1892.259839, {
        "Infl[Medium]": 0.6490837215, "Infl[High]": 1.3658642545,
    }),
    "Sat ~ Cont + np.log(t) + I(t ** 2)": (-1800.230111, {
        "Cont[High]": 0.25740056375, "np.log(t)": -0.38619347942,
        "I(t ** 2)": -0.02678093047,
    }),
}  # fmt: skip


@pytest.mark.parametrize("text", R_FITS)
def test_formulas_are_those_of_clm(text):
    model = fitted(text)
    loglik, coefs = R_FITS[text]
    assert list(named(model)) == list(coefs)
    assert named(model) == pytest.approx(coefs, rel=1e-6)
    assert model.loglik == pytest.approx(loglik, rel=1e-9)


def test_offsets_of_formulas_count_at_prediction_and_add_to_others():
    data = houses()
    X, y, of = data[["Infl"]], data["Sat"], {"sample_weight": data["Freq"]}
    model = fitted("Sat ~ Infl + offset(t / 2)")
    by_hand = fit_pom(X, y, offset=data["t"] / 2, **of)
    assert_array_equal(model.coef, by_hand.coef)
    score = by_hand.decision_function(data, offset=data["t"] / 2)
    assert_array_equal(model.decision_function(data), score)
    shifted = model.decision_function(data, offset=np.ones(72))
    assert_allclose(shifted, score + 1, rtol=1e-15)
    both = fitted("Sat ~ Infl + offset(t / 4)", offset="t")
    known = fit_pom(X, y, offset=1.25 * data["t"], **of)
    assert_allclose(both.coef, known.coef, rtol=1e-9)


@pytest.mark.parametrize(("text", "options", "names"), [
    ("Sat ~ . - Type - Freq - when - `my t`", {},
     "Infl[Medium], Infl[High], Cont[High], t"),
    ("Sat ~ Infl:Cont", {},
     "Infl[Low]:Cont[Low], Infl[Medium]:Cont[Low], Infl[High]:Cont[Low], "
     "Infl[Low]:Cont[High], Infl[Medium]:Cont[High], Infl[High]:Cont[High]"),
    ("Sat ~ (Infl + Cont) ** 2 - Infl", {},
     "Cont[High], Infl[Medium]:Cont[Low], Infl[High]:Cont[Low], "
     "Infl[Medium]:Cont[High], Infl[High]:Cont[High]"),
    ("Sat ~ np.log(`my t`) + `my t`", {}, "np.log(my t), my t"),
    ("Sat ~ C(t)", {}, "C(t)[2.0], C(t)[3.0], C(t)[4.0]"),
    ("Sat ~ C(t, Treatment(2))", {}, "C(t)[1.0], C(t)[3.0], C(t)[4.0]"),
    ("Sat ~ C(t, contr.treatment(base=2))", {}, "C(t)[1.0], C(t)[3.0], C(t)[4.0]"),
    ("Sat ~ C(t, Treatment(reference=2))", {}, "C(t)[1.0], C(t)[3.0], C(t)[4.0]"),
    ("Sat ~ factor(t)", {"t": 4}, "C(t)[1.0], C(t)[2.0], C(t)[3.0]"),
])  # fmt: skip
def test_the_ways_to_write_a_formula(text, options, names):
    data = houses().assign(when=pd.Timestamp("2020-01-01"))
    data["my t"] = data["t"]
    model = fit_pom(text, data, l2=1e-3, reference=options)
    assert ", ".join(model.coef_names) == names


@pytest.mark.parametrize(("text", "message"), [
    ("Sat ~ Infl - 1", "leave out '- 1' and '0 \\+'"),
    ("Sat ~ 0 + Infl", "the thresholds are the intercepts"),
    ("Sat ~", "must be of the form|no formula"),
    ("Infl", "must be of the form"),
    ("Sat ~ Infl | Cont", "must be of the form .*fit_clmm fits random effects"),
    ("Sat ~ Infl +", "is not a formula:"),
    ("Sat ~ price", "names 'price', which is not among the columns"),
    ("factor(Sat) ~ Infl", "left side .* got 'factor\\(Sat\\)'"),
    ("as.ordered(Sat) ~ Infl", "as.ordered of R is not .* ordered by classes="),
    ("Sat ~ t + as.factor(Infl)", r"as.factor of R is not available: C\(g\)"),
    ("Sat ~ scaled(t, 2)", "'scaled\\(t, 2\\)' cannot be stored"),
    ("Sat ~ C(t, Sum)", "a categorical term must be C"),
    ("Sat ~ C(t, Treatment(9))", "is 9, which is not among the levels"),
    ("Sat ~ 2:t", "write I\\(2 \\* x\\)"),
    ("Sat ~ log(t - 1)", "'log\\(t - 1\\)' is -inf in row 0"),
    ("Sat ~ I(3) + t", "a term must contain a column, got 'I\\(3\\)'"),
    ("Sat ~ t + offset(Freq, t)", "cannot be stored in a model: a formula"),
    ("Sat ~ I(t +)", "is not a formula: invalid syntax"),
    (f"Sat ~ I({'-' * 480}t)", "nested too deeply"),
    (f"Sat ~ I(t{'**9' * 3000})", "it is nested too deeply"),  # MemoryError
    ("Sat ~ (t + Infl) ** 40", "more than 300000 products .* such as x:z"),
    (f"Sat ~ t ** {'9' * 5000}", "more than 300000 products"),
    ("Sat ~ t + (1|Infl)", "fit_clmm fits random effects .*cluster= of fit_pom"),
    ("Sat ~ t + (t || Infl)", "fit_clmm fits random effects .*cluster= of fit_pom"),
    ("Sat ~ t + my age", "`my` and `age`; backticks enclose .* such as `my age`"),
    ("Sat ~ a-b", "names 'a', .*; backticks enclose .* such as `a-b`"),
    ("my age ~ t", "backticks enclose .* such as `my age`"),
    ("Sat ~ I(t ^ 2)", r"a power is \*\*.* ns, bs, cr, rcs and poly, such as ns"),
    ("Sat ~ Infl + Sat", "'Sat' holds the labels and cannot be a term"),
    ("Sat ~ Infl * C(Sat)", "'Sat' holds the labels and cannot be a term"),
    ("Sat ~ log(Infl)", r"'log\(Infl\)' needs numbers, and column"),
    ("Sat ~ t + offset(Infl)", r"'offset\(Infl\)' needs numbers"),
])  # fmt: skip
def test_formulas_that_are_none(text, message):
    error = TypeError if "needs numbers" in message else ValueError
    raises(error, message, fitted, text)


def test_products_of_terms_are_formed_up_to_a_limit():
    names = ["y", *(f"x{j}" for j in range(60))]
    assert len(parse_formula("y ~ . ** 2", names).terms) == 60 + 60 * 59 // 2
    raises(ValueError, "more than 300000 products", parse_formula, "y ~ . ** 3", names)


def test_what_a_formula_needs(monkeypatch):
    with pytest.raises(TypeError, match="a formula needs its data frame"):
        fit_pom("Sat ~ Infl", [1, 2, 3])
    raises(TypeError, "if X names a file, pass its rows", fit_pom, "X.npy", [1, 2, 3])
    with pytest.raises(ValueError, match="sample_weight names 'weight', which is no"):
        fit_pom("Sat ~ Infl", houses(), sample_weight="weight")

    with pytest.raises(ValueError, match="is not a formula:") as caught:
        fitted("Sat ~ `a|b` +")
    assert "random effects" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"'ordinal-regression\[formula\]'"):
        fit_pom("Sat ~ Infl", houses())


def test_the_page_on_formulas_is_right(tmp_path, monkeypatch):
    """Its blocks that need formulaic, behind those that all pages' tests run."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parent.parent / "docs" / "input.md").read_text()
    session = {"np": np}
    for block in re.findall(r"^```(?:python|py)\n(.*?)^```", page, re.S | re.M):
        if "people" in block or "import" in block:
            exec(block, session)
    assert session["model"].coef_names == ("smokes[yes]", "np.log(age)")


def test_formulas_read_only_their_columns():
    data = houses()
    data.loc[[1, 2], "t"] = np.nan
    data.loc[[5], "Infl"] = None
    with pytest.raises(ValueError, match=r"1 of 72 rows lack values \('Infl' 1\)"):
        fit_pom("Sat ~ Infl", data)
    assert fit_pom("Sat ~ Infl", data, missing="drop").statistics.n_missing == 1
    assert fit_pom("Sat ~ Cont", data).statistics.n_missing == 0
    data = houses()
    data["Sat"] = data["Sat"].astype(object)
    data.loc[[1, 2, 3], "Infl"] = None
    data.loc[3, "Sat"] = None
    message = (
        "y, the table of the formula: 3 of 72 rows lack values ('Infl' 3, 'Sat' 1), "
        "the first in row 1: fill those of features in"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        fit_pom("Sat ~ Infl", data, classes=["Low", "Medium", "High"])
    frame, y, _, offset, _ = gappy()
    frame = frame.rename(columns={"x": "offset"})
    model = fit_pom(frame, y, offset=offset, missing="drop")
    lacking = frame.isna().any(axis=1) | np.isnan(y) | np.isnan(offset)
    assert model.statistics.n_missing == lacking.sum() == 6


def clean(n=40, d=3, seed=0):
    """Ranks that no columns separate."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.digitize(X[:, 0] + rng.logistic(size=n), [-1, 1])


def left_out(X, y, **options):
    with pytest.warns(CollinearColumnsWarning) as caught:
        model = fit_pom(X, y, **options)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return model, str(caught[0].message)


@pytest.mark.parametrize("units", [1.0, 1e-8, 1e8])
def test_the_later_of_collinear_columns_is_left_out(units):
    X, y = clean()
    Z = np.column_stack([X[:, :2], 3 + X[:, 0] - 2 * X[:, 1], X[:, 2]]) * units
    model, message = left_out(Z, y)
    said = "left out of the model: 'x3' is a combination of 'x1', 'x2'; with l2 > 0"
    assert message == f"{said} all columns stay"
    assert model.coef_names == ("x1", "x2", "x4")
    assert model.predictor.dropped == ("x3",)
    without = fit_pom(np.delete(Z, 2, axis=1), y)
    assert without.predictor.dropped == ()
    assert_allclose(model.coef, without.coef, rtol=1e-9)
    assert_allclose(model.covariance, without.covariance, rtol=1e-6)
    assert_allclose(model.predict_proba(Z[:, [0, 1, 1, 3]]), model.predict_proba(Z))


def test_dependent_columns_are_found():
    X, y = clean()
    X[:20, 1] = 7.0
    model, message = left_out(X, y, sample_weight=np.arange(40) < 20)
    assert "'x2' is constant" in message
    assert np.isfinite(model.covariance).all()
    # whose coefficients of 1e5 products of columns do not give to seven digits
    X, y = clean(200)
    close = X[:, 0] + 1e-5 * X[:, 1]
    Z = np.column_stack([X[:, 0], close, 1e5 * (close - X[:, 0])])
    assert dependencies(design_of(Z, y), [0, 1, 2]) == {2: [0, 1]}
    Z[:, 2] += 1e-5 * X[:, 2]
    assert dependencies(design_of(Z, y), [0, 1, 2]) == {}
    X, y = clean(60)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    Z = np.column_stack([X, X[:, 0] - X[:, 2]])
    assert dependencies(design_of(csr_array(Z), y), [0, 1, 2, 3]) == {3: [0, 2]}
    assert dependencies(design_of(Z, y), [3, 1, 2, 0]) == {0: [3, 2]}


@pytest.mark.parametrize("noise", [1e-3, 1e-5])
def test_columns_that_are_nearly_collinear_stay(noise):
    """The residual of the column is well above R's 1e-7 of it. Scores then are sums
    of terms 1 / noise times as large, whose rounding a violation of 1e-6 is near."""
    X, y = clean()
    Z = np.column_stack([X, X @ [1.0, 2.0, 3.0] + noise * np.sin(np.arange(40))])
    assert fit_pom(Z, y, tol=1e-4).coef_names == ("x1", "x2", "x3", "x4")


@pytest.mark.parametrize("mean", [0.0, 1e6])
def test_columns_collinear_to_rounding_are_found_far_from_0(mean):
    X, y = clean(200)
    X = X + mean
    Z = np.column_stack([X, 0.3 * X[:, 0] + 0.1 * X[:, 1]])
    assert left_out(Z, y)[0].predictor.dropped == ("x4",)


@given(st.integers(0, 2**32 - 1))
def test_what_stays_has_full_rank(seed):
    rng = np.random.default_rng(seed)
    n, d = 12, int(rng.integers(1, 8))
    X = rng.integers(-1, 2, (n, d)).astype(float)
    found = dependencies(design_of(X, np.arange(n) % 2), range(d))
    kept = [j for j in range(d) if j not in found]
    ones = np.ones((n, 1))
    rank = np.linalg.matrix_rank(np.hstack([ones, X]))
    assert np.linalg.matrix_rank(np.hstack([ones, X[:, kept]])) == rank == len(kept) + 1
    for j, of in found.items():  # and a column is what is said of it
        before = np.hstack([ones, X[:, of]])
        fit = before @ np.linalg.lstsq(before, X[:, j], rcond=None)[0]
        assert_allclose(fit, X[:, j], atol=1e-10)
        assert all(k < j for k in of)


def test_a_penalty_keeps_all_columns():
    X, y = clean()
    model = fit_pom(np.column_stack([X, X[:, 0], np.ones(40)]), y, l2=1e-3)
    assert model.coef.size == 5
    assert model.coef[0] == pytest.approx(model.coef[3], rel=1e-9)
    assert model.coef[4] == pytest.approx(0, abs=1e-12)
    X, y = clean(10, 2001)
    raises(ValueError, "X has 2001 columns and 10 rows of positive", fit_pom, X, y)
    assert fit_pom(X, y, l2=1.0).convergence.converged


def test_nominal_and_scale_effects_must_be_told_apart():
    X, y = clean()
    Z = np.column_stack([X, X[:, 0], np.ones(40)])
    with pytest.raises(ValueError, match=r"nominal must .* 'x4' is a combination"):
        fit_pom(Z, y, nominal=[0, 3], l2=0.1)
    with pytest.raises(ValueError, match=r"scale must name .*: 'x5' is constant"):
        fit_pom(Z, y, scale=[4], l2=0.1)
    with pytest.warns(CollinearColumnsWarning, match="'x1' is a combination of 'x4'"):
        fit_pom(Z[:, :4], y, nominal=[3])


@pytest.mark.parametrize("copies", [1, 2], ids=["once", "twice"])
def test_of_more_columns_than_rows_the_last_ones_are_left_out(copies):
    X, y = (np.repeat(a, copies, axis=0) for a in clean(10, 12))
    with (
        pytest.warns(CollinearColumnsWarning, match=r"'x10' .* of 'x1', .* 'x9'; 'x11"),
        pytest.warns(ConvergenceWarning, match="separate ranks without error, so no"),
    ):
        model = fit_pom(X, y)
    assert model.predictor.dropped == ("x10", "x11", "x12")
    assert_array_equal(model.predict(X), y)
    assert fit_pom(X, y, l2=1.0).convergence.converged


def design_of(X, y, nominal=(), threshold="flexible", weight=None):
    problem = Problem.from_arrays(X, y, sample_weight=weight)
    nominal = np.array(nominal, dtype=np.int64)
    location = np.setdiff1d(np.arange(problem.n_features), nominal)
    none = np.zeros(0, dtype=np.int64)
    return Design.from_problem(problem, location, nominal, none, None, threshold)


def moved_rows(design):
    """A, dense: how each parameter moves up and low of the rows."""
    columns = [moves(design, unit).ravel() for unit in np.eye(design.n_parameters)]
    A = np.column_stack(columns)
    return A[np.isfinite(A).all(axis=1)]


def is_separated(design):
    """Decide by linear programming whether sum(A d) > 0 for some d with A d >= 0."""
    A = moved_rows(design)
    found = linprog(-A.sum(axis=0), A_ub=-A, b_ub=np.zeros(len(A)), bounds=(-1, 1))
    return -found.fun > 1e-7


def random_design(seed):
    """Few rows, tied or not, of which some are separated in every manner."""
    rng = np.random.default_rng(seed)
    n, d, T = (int(rng.integers(*ends)) for ends in ((3, 25), (1, 5), (2, 5)))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.5:
        X = np.round(X)
    score = X @ rng.normal(size=d) * rng.choice([0.0, 1.0, 3.0])
    score = score + rng.normal(size=n) * rng.choice([0.0, 0.3, 1.0])
    y = np.clip(np.round(score), 0, T).astype(int)
    y[:2] = 0, 1
    nominal = [0] if d > 1 and rng.random() < 0.5 else []
    threshold = rng.choice(["flexible", "symmetric", "equidistant"])
    return design_of(X, y, nominal, threshold)


designs = st.integers(0, 2**32 - 1).map(random_design)


@example(random_design(739), False, 0)
# a multiplier that only rounding lets fall
@example(random_design(9193), False, 0)
# without the second projection of a row
@example(random_design(1119), False, 0)
@given(designs, st.booleans(), st.integers(0, 2**32 - 1))
def test_there_is_a_certificate_where_linear_programming_finds_one(
    design, weighted, seed
):
    if weighted:  # rows of weight 0 prevent none
        weight = np.random.default_rng(seed).integers(0, 3, design.n_samples)
        weight[np.unique(design.rank, return_index=True)[1]] = 1  # of each rank
        design = replace(design, weight=weight.astype(float), total=float(weight.sum()))
    found = certificate(design, np.zeros(design.n_parameters))
    assert (found is not None) == is_separated(design)
    if found is not None:
        moved = moved_rows(design) @ found
        assert moved.max() > 0
        assert moved.min() >= -1e-9 * moved.max()
        if weighted:
            return
        # and the direction is that of (1): c + A'u of least length, u >= 0
        A, c = moved_rows(design), moved_rows(design).sum(axis=0)
        if design.is_flexible and not design.nominal.size:
            A, c = ways_between_neighbours(design)
        nearest = c + A.T @ nnls(A.T, -c)[0]
        found = found[found.size - c.size :]
        assert_allclose(
            found / np.linalg.norm(found), nearest / np.linalg.norm(nearest), atol=1e-6
        )


def ways_between_neighbours(design):
    """Directions go from every row of a rank to every one of the next; from the mean of
    the lowest rank to that of the highest."""
    Z = (design.X / design.spread)[:, design.location]
    groups = [Z[design.rank == j] for j in range(design.T + 1)]
    ways = [(b[:, None] - a).reshape(-1, Z.shape[1]) for a, b in pairwise(groups)]
    return np.vstack(ways), groups[-1].mean(axis=0) - groups[0].mean(axis=0)


@pytest.mark.parametrize("ranks", [200, *slow(1000)])  # 0.3 s and 8 s
def test_many_ranks_are_told_apart_or_not(ranks):
    """One row of the highest rank alone separates, by one column."""
    X, y = two_rows_per_rank(ranks)
    T = ranks - 1
    assert certificate(design_of(X, y), np.zeros(T + 5)) is None
    X = np.column_stack([X, np.zeros(2 * ranks)])
    X[np.flatnonzero(y == T)[0], 5] = 1.0
    found = certificate(design_of(X, y), np.zeros(T + 6))
    assert found is not None
    assert_array_equal(np.abs(found[T:]) > 1e-9 * found[-1], np.arange(6) == 5)
    model, _ = separated(X, y)
    assert_array_equal(model.statistics.separated, [5])


@given(designs)
def test_thresholds_whose_slopes_tell_their_ranks_apart_are_found(design):
    """The solver is the one for too many parameters to solve for all of them."""
    design = replace(design, J=structure_of("flexible", design.T))
    assume(design.nominal.size)
    pairs = []
    for j in range(design.T):
        rows = np.isin(design.rank, [j, j + 1])
        pairs.append(design_of(design.X[rows, :1], design.rank[rows] - j))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(separation, "_LARGEST", 1)  # one nominal effect
        found = certificate(design, np.zeros(design.n_parameters))
    assert (found is not None) == any(is_separated(pair) for pair in pairs)
    if found is not None:
        moved = moved_rows(design) @ found
        assert moved.max() > 0
        assert moved.min() >= -1e-9 * moved.max()


def separated(X, y, **options):
    with pytest.warns(ConvergenceWarning, match="separated: .*, so no fin") as caught:
        model = fit_pom(X, y, **options)
    assert len(caught) == 1
    assert model.convergence.status is Status.SEPARATED
    for name in ("coef", "thresholds", "covariance"):
        values = getattr(model, name)
        if values is None:  # there is no covariance with a penalty
            assert options["l2"] > 0
        else:
            assert np.isfinite(values).all(), name
    return model, str(caught[0].message)


def with_a_rare_level(seed=0):
    """A level whose rows all have the highest rank, as one in clm's tables of -Inf."""
    X, y = clean(60, seed=seed)
    rare = np.zeros(60)
    rare[np.flatnonzero(y == 2)[:4]] = 1.0
    return X, y, rare, np.column_stack([X, rare])


@pytest.mark.parametrize(
    ("seed", "link"), [*enumerate(["logit", "probit", "cloglog", "loglog", "cauchit"])]
)
def test_quasi_complete_separation_names_its_columns(seed, link):
    X, y, rare, Z = with_a_rare_level(seed)
    model, message = separated(Z, y, link=link)
    assert_array_equal(model.statistics.separated, [3])
    said = "fit_pom: separated: 'x4' separate ranks without error, so no finite"
    assert message.startswith(said)
    remedy = "l2 > 0 gives finite ones, and so does ordinal.inference.jeffreys(model)"
    assert message.endswith(remedy)
    # the others are those of the fit without the rows that the level predicts
    rest = fit_pom(X[rare == 0], y[rare == 0], link=link)
    tol = {"cauchit": 1e-3}.get(link, 1e-4)
    assert_allclose(model.coef[:3], rest.coef, rtol=tol, atol=tol)


def test_separation_with_scale_effects_and_offsets_is_found():
    """Also where offsets leave nothing to gain."""
    _, y, rare, Z = with_a_rare_level()
    assert 3 in separated(Z, y, scale=[0])[0].statistics.separated
    assert_array_equal(separated(Z, y, offset=60.0 * rare)[0].statistics.separated, [3])


@pytest.mark.parametrize(
    "link", ["logit", *slow("probit", "cloglog", "loglog", "cauchit")]
)
@pytest.mark.parametrize("ranks", [[1], [0, 2]], ids=["inner", "ends"])
def test_scale_effects_that_diverge_are_named(link, ranks):
    """Rows of an inner rank have no spread, those of both ends any, however large."""
    X, _ = clean(120)
    group = np.arange(120) % 4 == 0
    y = np.digitize(X[:, 0] + np.random.default_rng(1).logistic(size=120), [-1, 1])
    y[group] = np.resize(ranks, 30)
    Z = np.column_stack([X[:, 0], X[:, 1], group])
    model, message = separated(Z, y, scale=[1, 2], link=link, max_iter=2000)
    assert_array_equal(model.statistics.separated, [2])
    said = "the likelihood grows for ever with effects of 'x3', so no"
    assert message.startswith(f"fit_pom: separated: {said}")
    assert "leave them out of scale=, and" in message
    raises(ValueError, "grows for ever with effects of 'x3': leave", model.confint)
    assert fit_pom(Z, y, scale=[1], link=link).convergence.converged


def test_scale_and_nominal_effects_that_separate_have_a_remedy():
    """Its last step may be long without any divergence."""
    X, y = clean(40)
    for tol in (0.1, 0.01):
        model = fit_pom(X, y, scale=[1], tol=tol)
        assert model.convergence.converged
        assert not model.statistics.separated.size
    model, message = separated(np.arange(12.0)[:, None], np.arange(12) // 4, scale=[0])
    assert_array_equal(model.statistics.separated, [0])
    assert message.endswith("of the model if they separate ranks without error")
    X, _ = clean(60)
    model, message = separated(X, np.digitize(X[:, 0], [-1, 1]), nominal=[0], l2=0.1)
    assert_array_equal(model.statistics.separated, [0])
    assert message.endswith("leave them out of nominal=")


class CountedTable:
    """Data frame that counts how often each column is read."""

    def __init__(self, data):
        self._data, self.reads = data, Counter()
        self.columns, self.shape = list(data), (len(data["a"]), len(data))

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, name):
        self.reads[name] += 1
        return self._data[name]


@pytest.mark.parametrize(("fit", "formula", "options", "columns"), [
    (fit_pom, None, {}, "a w"),
    (fit_pom, None, {"preprocess": Standardizer}, "a w"),
    (fit_pom, None, {}, "a c"),
    (fit_pom, None, {"preprocess": TablePreprocessor()}, "a c"),
    (fit_pom, "y ~ a*c + offset(w)", {"cluster": "g", "nominal": ["a"]},
     "a c g w y"),
    (ordinal.fit_ratio, "y ~ a", {"sample_weight": "w"}, "a w y"),
    (ordinal.fit_clmm, None, {"random": "(1 | g)"}, "a c g"),
    (ordinal.fit_clmm, "y ~ a + (1 | g)", {"cluster": "g"}, "a y"),
])  # fmt: skip
def test_a_fit_reads_each_column_of_its_table_once(fit, formula, options, columns):
    rng = np.random.default_rng(5)
    a, w = rng.normal(size=120), rng.uniform(1, 2, 120)
    y = np.digitize(a + rng.normal(size=120), [-0.5, 0.5])
    c = rng.choice(["u", "v"], 120).astype(object)
    data = {"a": a, "c": c, "g": np.arange(120) // 6, "w": w, "y": y}
    read = columns.split()
    table = CountedTable({name: data[name] for name in (data if formula else read)})
    fit(*((formula, table) if formula else (table, y)), **options)
    assert {name: table.reads[name] for name in read} == dict.fromkeys(read, 1)
