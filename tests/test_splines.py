"""Smooth, fused and monotone terms of formulas, and formulas without terms.

`REFERENCE` holds what tests/reference/splines.R prints: columns at the values `AT`.
"""

import io
import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from strategies import raises

import ordinal
from ordinal import inference
from ordinal._formula.coding import Coding
from ordinal._formula.formulas import parse_formula
from ordinal._input.columns import read_frame

REFERENCE = json.loads(
    (Path(__file__).parent / "data" / "spline_reference.json").read_text()
)
X = (37 * np.arange(1, 121) % 121 / 12) ** 1.5 - 3
AT = np.array([-6, X.min(), -2.5, 4.25, 20, X.max(), 40])


def coding_of(term, values, name="x"):
    frame = pd.DataFrame({"y": np.arange(len(values)) % 2, name: values})
    parsed = parse_formula(f"y ~ {term}", list(frame))
    return Coding.of_terms(parsed.text, read_frame(frame, parsed.columns), parsed.terms)


@pytest.mark.filterwarnings("ignore:.*beyond its boundary knots")
@pytest.mark.parametrize("term", REFERENCE)
def test_columns_are_those_of_R_also_beyond_the_training_rows(term):
    name = term[term.index("(") + 1 :].split(",")[0].rstrip(")")
    values = {"x": X, "small": X[:60], "tied": np.maximum(X, 1)}[name]
    made = coding_of(term, values, name).transform(pd.DataFrame({name: AT}))
    expected = np.array(REFERENCE[term])
    assert made.shape == expected.shape
    assert_allclose(made, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore:.*beyond its boundary knots")
def test_knots_are_those_of_the_training_rows():
    """Columns of a row do not depend on the rows predicted with it, nor on a file."""
    for term in REFERENCE:
        if term.split("(")[1][0] != "x":
            continue
        coding = coding_of(term, X)
        every = coding.transform(pd.DataFrame({"x": AT}))
        single = [coding.transform(pd.DataFrame({"x": [v]}))[0] for v in AT]
        assert_allclose(every, single, rtol=1e-12, atol=1e-13)
        file = io.BytesIO()
        coding.save(file)
        file.seek(0)
        assert_array_equal(ordinal.load(file).transform(pd.DataFrame({"x": AT})), every)


@pytest.mark.parametrize(
    "term", ["ns(x, 4)", "bs(x, 5)", "cr(x, 4)", "rcs(x, 4)", "rcs(x, 6)", "poly(x, 3)"]
)
def test_columns_count_a_row_of_weight_two_twice(term):
    """Whatever the weights; weights of one size, however small, change no column."""
    new = pd.DataFrame({"x": np.linspace(1, 3, 9)})
    data, times = sloped(60).round(1), np.random.default_rng(0).integers(0, 4, 60)

    def columns(rows, weight=None):
        model = ordinal.fit_pom(f"y ~ {term}", rows, sample_weight=weight)
        return model.predictor.coding.transform(new)

    plain, weighted = columns(data), columns(data, times)
    assert_allclose(weighted, columns(data.loc[data.index.repeat(times)]), rtol=1e-9)
    assert np.abs(weighted - plain).max() > 1e-3
    distinct = data.assign(x=np.linspace(0.3, 1.9, 60) ** 2)
    alike = columns(distinct, np.full(60, 1 / 60))
    assert_allclose(alike, columns(distinct), rtol=1e-9, atol=1e-12)


def sloped(n=200):
    """Rows whose ranks rise along a curve of x."""
    rng = np.random.default_rng(3)
    x, z = rng.uniform(0, 4, n), rng.normal(size=n)
    score = np.sin(1.5 * x) * 2 + 0.5 * z + rng.logistic(size=n)
    return pd.DataFrame({"y": np.digitize(score, [-1, 0, 1]), "x": x, "z": z})


@pytest.mark.parametrize(("term", "message"), [
    ("bs(x, df=2)", "df of bs"),
    ("ns(x, knots=[50])", "needs knots that rise"),
    ("ns(x, df=3, knots=[1])", "df or knots, not both"),
    ("ns(x, knots=3)", "must be a list"),
    ("poly(x, 200)", "at most 20"),
    ("rcs(x, 2)", "needs 3 knots or more"),
    ("bs(3)", "must be applied to a column"),
    ("bs(x, [1], [2], 3, 4, 5, 6)", "the options"),
    ("mo(np.log(x))", "must be applied to one column,"),
    ("mo(x):z", "no interactions"),
    ("rcs(nowhere)", "which is not among"),
    ("rcs(x, 3.5)", "needs 3 knots or more, .* got 3.5"),
    ("ns(x, df={[1]: 2})", "df of .* must be a number"),
    ("ns(x, knots=c(0, at=1))", "a number or a list of numbers"),
])  # fmt: skip
def test_options_that_no_term_takes_are_refused(term, message):
    raises(ValueError, message, ordinal.fit_pom, f"y ~ {term}", sloped())


def test_bases_that_are_none_are_refused():
    basis = coding_of("poly(x, 2)", X).variables[0].basis
    for change in (
        {"degree": 3},
        {"kind": "cr"},
        {"numbers": -basis.numbers},
        {"degree": 0},
    ):
        raises(ValueError, r"must|needs", replace(basis, **change)._check)
    x = np.append(np.arange(20.0), 1e200)
    for degree in (2, 5):
        with pytest.raises(ValueError, match=r"poly\(x, .\) needs .* degree 1 or less"):
            coding_of(f"poly(x, {degree})", x)
    assert len(coding_of("poly(x, 1)", x).column_names) == 1


def levels(n=300, effects=(0, 0.5, 0.5, 0.3, 1.5, 1.4), sign=-1.0):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"z": rng.normal(size=n), "k": rng.integers(0, 6, n)})
    score = sign * np.array(effects)[data["k"]] + 0.5 * data["z"]
    return data.assign(y=np.digitize(score + rng.logistic(size=n), [-1, 0, 1]))


def negative_loglik(parameters, data, Z):
    """-log L of y by thresholds theta_0, their gaps, and coefficients of Z."""
    ends = np.concatenate([[-np.inf], np.cumsum(parameters[:3]), [np.inf]])
    score = Z @ parameters[3:]
    y = data["y"].to_numpy()
    return -np.log(expit(ends[y + 1] - score) - expit(ends[y] - score)).sum()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_monotone_effects_are_the_best_of_one_sign(sign):
    """Against bounds of scipy's L-BFGS-B, for both signs."""
    data = levels(sign=sign)
    model = ordinal.fit_pom("y ~ z + mo(k)", data)
    steps = [data["k"].to_numpy() >= k for k in range(1, 6)]
    Z = np.column_stack([data["z"], *steps]).astype(float)
    least = np.inf
    for bound in ((0, None), (None, 0)):
        bounds = [(None, None), (1e-9, None), (1e-9, None), (None, None), *[bound] * 5]
        start = np.array([-1.0, 1, 1, 0, *[0.0] * 5])
        found = minimize(
            negative_loglik, start, (data, Z), bounds=bounds, options={"maxfun": 10**5}
        )
        least = min(least, found.fun)
    assert_allclose(-model.loglik, least, rtol=1e-8)
    effects = inference.monotone_effects(model)
    d = effects["increment"]
    assert (d * sign >= 0).all()
    assert (d == 0).any()
    assert_allclose(effects["share"].sum(), 1)
    assert_allclose(effects["mean"] * 5 * effects["share"], d)
    assert len(model.predictor.at_bound) == np.count_nonzero(d == 0)


def test_increments_return_to_their_bound_where_correlated_effects_join():
    """Effects that enter first, as stand-ins of others, leave again."""
    rng = np.random.default_rng(6)
    b, c = rng.integers(0, 3, (2, 300))
    a = np.clip(b + c - (rng.random(300) < 0.1), 0, 4)
    y = np.digitize(b + c - 0.2 * a + rng.logistic(size=300), [0, 1, 2])
    data = pd.DataFrame({"a": a, "b": b, "c": c, "y": y})
    model = ordinal.fit_pom("y ~ mo(a) + mo(b) + mo(c)", data)
    steps = [v >= k for v in (a, b, c) for k in range(1, int(v.max()) + 1)]
    Z = np.column_stack(steps).astype(float)
    least = np.inf
    for signs in product(((0, None), (None, 0)), repeat=3):
        bounds = [s for s, m in zip(signs, (4, 2, 2), strict=True) for _ in range(m)]
        start = np.array([-1.0, 1, 1, *[0.0] * 8])
        bounds = [(None, None), (1e-9, None), (1e-9, None), *bounds]
        found = minimize(
            negative_loglik, start, (data, Z), bounds=bounds, options={"maxfun": 10**5}
        )
        least = min(least, found.fun)
    assert_allclose(-model.loglik, least, rtol=1e-8)


def test_bounds_have_no_standard_errors_and_free_increments_have_those_of_fused():
    with pytest.raises(ValueError, match="at their bound 0"):
        ordinal.fit_pom("y ~ z + mo(k)", levels()).summary()
    data = levels(effects=(0, 0.8, 1.6, 2.4, 3.2, 4.0))
    monotone = ordinal.fit_pom("y ~ z + mo(k)", data)
    free = ordinal.fit_pom("y ~ z + fused(k)", data)
    assert not monotone.predictor.at_bound
    assert_allclose(monotone.coef, free.coef, atol=1e-7)
    assert_allclose(monotone.standard_errors, free.standard_errors, rtol=1e-5)
    plain = ordinal.fit_pom("y ~ z + C(k)", data)
    assert_allclose(np.cumsum(free.coef[1:]), plain.coef[1:], atol=1e-7)
    raises(ValueError, "without constraints", inference.drop1, monotone)


def test_monotone_effects_serve_ratio_models_and_ordered_categories_only():
    data = levels()
    data["k"] = pd.Categorical.from_codes(data["k"], list("fedcba"), ordered=True)
    model = ordinal.linear.fit_ratio("y ~ z + mo(k)", data, family="adjacent")
    free = ordinal.linear.fit_ratio("y ~ z + fused(k)", data, family="adjacent")
    assert (inference.monotone_effects(model)["increment"] <= 0).all()
    assert model.loglik <= free.loglik
    raises(ValueError, r"use fused\(x\)", ordinal.fit_pom_path, "y ~ mo(k)", data)
    data["k"] = data["k"].astype(str)
    raises(TypeError, "levels that have an order", ordinal.fit_pom, "y ~ mo(k)", data)


def test_a_formula_without_terms_gives_the_shares_of_the_ranks():
    data = levels()
    model = ordinal.fit_pom("y ~ 1", data)
    share = np.bincount(data["y"]) / len(data)
    assert_allclose(model.predict_proba(data[["z"]].head(3)), [share] * 3, rtol=1e-9)
    assert_allclose(model.loglik, model.statistics.null_loglik)
    assert "-0.0000" not in str(model.summary())
    assert model.predict(data.head(0)).size == 0
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    assert_array_equal(ordinal.load(file).thresholds, model.thresholds)
    larger = ordinal.fit_pom("y ~ z", data)
    test = ordinal.inference.lr_test(model, larger)
    assert_allclose(test.chi2, 2 * (larger.loglik - model.loglik))
    stages = ordinal.linear.fit_ratio("y ~ 1", data)
    assert_allclose(stages.predict_proba(data.head(1)), [share], rtol=1e-6)


def test_scale_and_nominal_effects_may_be_of_columns_that_the_formula_does_not_name():
    data = levels(n=100)
    model = ordinal.fit_pom("y ~ z", data, scale=["k"])
    assert model.coef_names == ("z",)
    assert model.parameter_names[-1] == "scale.k"
    assert model.predictor.dropped == ()
    z, k, y = (data[c].to_numpy(float) for c in ("z", "k", "y"))

    def loss(v):
        theta = np.concatenate([[-np.inf], np.cumsum(v[:3]), [np.inf]])
        s, rank = np.exp(v[4] * k), y.astype(int)
        upper, lower = theta[rank + 1] - v[3] * z, theta[rank] - v[3] * z
        return -np.log(expit(upper / s) - expit(lower / s)).sum()

    bounds = [(None, None), (1e-9, None), (1e-9, None), (None, None), (None, None)]
    found = minimize(loss, [-1, 1, 1, 0, 0], bounds=bounds)
    assert_allclose(-model.loglik, found.fun, rtol=1e-8)
    beside = ordinal.fit_pom("y ~ 1", data, nominal=["z"])
    named = ordinal.fit_pom("y ~ z", data, nominal=["z"])
    assert_allclose(beside.parameters, named.parameters, atol=1e-8)
    with pytest.raises(ValueError, match="which is in an interaction"):
        ordinal.fit_pom("y ~ z:k", data, scale=["k"])


def test_bs_warns_beyond_its_boundary_knots_as_in_r():
    data = levels()
    model = ordinal.fit_pom("y ~ bs(z, df=4)", data)
    model.predict_proba(data[["z"]].head(3))
    far = pd.DataFrame({"z": [data["z"].mean(), 2 * data["z"].max() + 1]})
    with pytest.warns(UserWarning, match=r"beyond its boundary knots.* in row 1"):
        model.predict_proba(far)
    ordinal.fit_pom("y ~ ns(z, df=3)", data).predict_proba(far)  # a straight line there
    model.marginal_effects()  # whose differences step over the ends


SAME = [
    ("ns(z,3)", "ns(z, df=3)"), ("ns( `z` , 3 )", "ns(z, 3)"), ("log(w)", "np.log(w)"),
    ("I(w**2)", "I(w ** 2)"), ("k:z", "z:k"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "written"), SAME, ids=str)
@pytest.mark.parametrize("argument", ["nominal", "scale"])
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.DisorderedThresholdsWarning")
def test_terms_are_matched_as_expressions(given, written, argument):
    """By what they compute, whatever the text, also if the formula lacks the term."""
    data = levels(120).assign(w=lambda t: np.exp(t["z"]))
    formula = f"y ~ z + k + {written}" if ":" in written else f"y ~ {written}"
    options = {"max_iter": 300}
    one, other = (
        ordinal.fit_pom(formula, data, **{argument: [text]}, **options)
        for text in (given, written)
    )
    assert_array_equal(one.parameters, other.parameters)
    if ":" in written:
        return
    beside, within = (
        ordinal.fit_pom(f"y ~ k{term}", data, **{argument: [given]}, **options)
        for term in ("", f" + {written}")
    )
    if argument == "nominal":  # which has no location effect in both
        assert_allclose(beside.loglik, within.loglik, rtol=1e-9)
    else:
        assert beside.dof == within.dof - one.predictor.scale.size


@pytest.mark.parametrize("text", ["", "z|k", "z + k", "((", "1", "k ~ z", "lambda: z"])
def test_what_is_no_term_is_no_column_either(text):
    with pytest.raises(ValueError, match=r"nominal names .*, which is not among"):
        ordinal.fit_pom("y ~ z", levels(50), nominal=[text])


SMOOTH = ["poly(x, 3)", "ns(x, df=4)", "bs(x, df=5)", "cr(x, df=4)", "rcs(x, 4)"]


@pytest.mark.filterwarnings("ignore:.*beyond its boundary knots")
@pytest.mark.parametrize("unit", [2.0**-1000, 1e-200, 1e-100, 1e200, 8e306])
@pytest.mark.parametrize("term", SMOOTH)
def test_the_unit_of_a_column_changes_no_smooth_term(term, unit):
    x = np.tanh(np.random.default_rng(0).normal(size=60))
    expected = coding_of(term, x)
    made = coding_of(term, x * unit)
    at = np.linspace(-1.5, 1.5, 31)  # also beyond the training rows
    columns = [
        coding.transform(pd.DataFrame({"x": values, "y": 0}))
        for coding, values in ((expected, at), (made, at * unit))
    ]
    columns[1] /= unit if term.startswith("rcs") else 1.0
    assert_allclose(columns[1], columns[0], rtol=1e-8, atol=1e-10)
    if np.log2(unit).is_integer() and not term.startswith("rcs"):
        assert_array_equal(*columns)


def test_the_lasso_of_increments_fuses_neighbours():
    """(P) by scipy over the increments: a fused lasso of the levels."""
    data = levels()
    model = ordinal.fit_pom("y ~ z + fused(k)", data, l1=0.02, tol=1e-9)
    steps = [data["k"].to_numpy() >= k for k in range(1, 6)]
    Z = np.column_stack([data["z"], *steps]).astype(float)
    Z = np.column_stack([Z, -Z])  # positive and negative parts

    def objective(v):
        return negative_loglik(v, data, Z) / len(data) + 0.02 * v[3:].sum()

    bounds = [(None, None), (1e-9, None), (1e-9, None), *[(0, None)] * 12]
    start = np.array([-1.0, 1, 1, *[0.0] * 12])
    found = minimize(objective, start, bounds=bounds, options={"maxfun": 10**5})
    assert_allclose(model.convergence.primal, found.fun, rtol=1e-6)
    assert 1 <= np.count_nonzero(model.coef[1:] == 0) < 5
