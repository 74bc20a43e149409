"""Tests of terms, choices of terms and contrasts of cumulative models.

Figures of R are those that tests/reference/steps.R prints.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from internals import normal_margin
from numpy.testing import assert_allclose, assert_array_equal
from pom_data import SETS, housing_table
from strategies import raises

import ordinal
from ordinal import fit_pom, inference
from ordinal._numerics.tails import largest_quantile

HOUSING, MADE = SETS["housing"], SETS["made"]
TABLE = housing_table().assign(Sat=HOUSING.y, Freq=HOUSING.weight)


def housing(right, **options):
    return fit_pom(f"Sat ~ {right}", TABLE, sample_weight="Freq", tol=1e-9, **options)


@pytest.fixture(scope="module")
def model():
    return housing("Infl + Type + Cont")


@pytest.fixture(scope="module")
def big():
    return housing("(Infl + Type + Cont) ** 3")


def noise(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.digitize(X[:, 1] - 0.6 * X[:, 4] + rng.logistic(size=n), [-1, 0.5])


def test_terms_dropped_or_added_agree_with_r(model, big):
    table = inference.drop1(model)
    assert table["name"].tolist() == ["none", "Infl", "Type", "Cont"]
    aic = [3495.14929906, 3599.38850383, 3545.05937614, 3507.45550512]
    assert_allclose(table["aic"], aic, atol=1e-7)
    assert_allclose(table["chi2"][1:], [108.2392047678, 55.9100770769, 14.306206065])
    p = [3.13440651871e-24, 4.39071694218e-12, 1.55351861292e-04]
    assert_allclose(table["p_value"][1:], p, rtol=1e-7)
    table = inference.drop1(big, criterion="bic")  # terms within others stay
    assert table["name"].tolist() == ["none", "Infl:Type:Cont"]
    assert (table["dof"][1], big.dof) == (6, 25)
    assert_allclose(table["chi2"][1], 2.12497754582, atol=1e-7)
    assert_allclose(table["bic"][0], big.bic)
    table = inference.add1(model, ["Infl"])
    assert table["name"].tolist() == ["none", "Type", "Cont"]
    aic = [3551.41551209, 3507.45550512, 3545.05937614]
    assert_allclose(table["aic"], aic, atol=1e-7)
    assert_allclose(table["chi2"][1:], [49.96000696409, 8.35613595218])
    assert_allclose(table["p_value"][1:], [8.14740590628e-11, 3.84387090033e-03])


def test_terms_are_added_with_their_nominal_and_scale_effects():
    X, y = noise()
    model = fit_pom(X, y, nominal=[0], link="probit", scale=[1], tol=1e-9)
    table = inference.add1(model, ["x3"])
    assert table["name"].tolist() == ["none", "x1", "x2", "x4", "x5", "x6"]
    assert table["dof"].tolist() == [0, model.classes.size - 1, 2, 1, 1, 1]
    for kept, loglik in zip(
        ([2], [0, 2], [1, 2], [2, 3]), table["loglik"], strict=False
    ):
        nominal, scale = ([kept.index(j)] if j in kept else [] for j in (0, 1))
        alone = fit_pom(X[:, kept], y, link="probit", nominal=nominal, scale=scale)
        assert loglik == pytest.approx(alone.loglik, abs=1e-7)


def test_step_agrees_with_r(big):
    found = inference.step(big)
    assert repr(found) == f"{found.table}\n{found.model}"
    assert found.model.predictor.coding.formula == (
        "Sat ~ Infl + Type + Cont + Infl:Type + Type:Cont"
    )
    assert_allclose(found.table["aic"][-1], 3482.69492312, atol=1e-7)
    by_bic = inference.step(big, criterion="bic").model
    assert by_bic.predictor.coding.formula == "Sat ~ Infl + Type + Cont"


def test_the_model_of_a_step_is_that_of_its_terms(big):
    model = inference.step(big).model
    direct = housing("Infl + Type + Cont + Infl:Type + Type:Cont")
    assert model.parameter_names == direct.parameter_names
    assert_allclose(model.parameters, direct.parameters, atol=1e-8)
    assert_allclose(model.standard_errors, direct.standard_errors, rtol=1e-6)
    assert_allclose(model.predict_proba(TABLE), direct.predict_proba(TABLE), atol=1e-9)
    assert (model.loglik, model.dof) == (pytest.approx(direct.loglik), direct.dof)
    assert not model.predictor.dropped
    # it has its training rows, and all columns
    assert model.origin.training_rows.tolist() == big.origin.training_rows.tolist()
    ours, theirs = (inference.drop1(m)["chi2"][1:] for m in (model, direct))
    assert_allclose(ours, theirs, atol=1e-6)
    ours, theirs = (m.marginal_effects()["effect"] for m in (model, direct))
    assert_allclose(ours, theirs, atol=1e-8)
    ours, theirs = (m.confint(method="profile")["upper"] for m in (model, direct))
    assert_allclose(ours, theirs, atol=1e-5)


def test_steps_keep_and_start_where_they_are_told():
    X, y = noise()
    model = fit_pom(X, y)
    assert "x3" in inference.step(model, keep=["x3"]).model.coef_names
    one = inference.step(model, start=["x2"], direction="backward")
    assert one.model.coef_names == ("x2",)
    assert one.table["step"].tolist() == ["start"]
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = inference.step(ordinal.fit_pom(frame, y), start=["b"], keep=["b"]).model
    alone = ordinal.fit_pom(frame[list(named.feature_names)], y)
    assert set(alone.feature_names) < set(frame)  # columns of no term are not needed
    assert_array_equal(named.origin.training_rows, alone.origin.training_rows)
    for rows in ((), (frame[list(named.feature_names)],)):  # and those of the fit
        ours, theirs = (m.predictions(*rows)["estimate"] for m in (named, alone))
        assert_allclose(ours, theirs, atol=1e-8)
    assert inference.step(model, keep=[f"x{j}" for j in range(1, 7)]).model is model


def test_steps_and_contrasts_refuse(model, big):
    X, y = noise()
    model = fit_pom(X, y)
    message = "start names 'x9'.*: fit a model with all"
    raises(ValueError, message, inference.step, model, start=["x9"])
    message = r"got 'x1'; for this term pass \['x1'\]"
    raises(ValueError, message, inference.add1, model, "x1")
    raises(ValueError, "criterion must be", inference.drop1, model, criterion="cp")
    robust = fit_pom(X, y, robust=True)
    raises(ValueError, "step compares likelihoods", inference.step, robust)
    penalised = fit_pom(X, y, l2=1.0)
    raises(ValueError, "needs estimates of maximum", inference.drop1, penalised)
    for of, variable, options, message in (
        (model, "Freq", {}, "needs a categorical variable, got 'Freq'"),
        (big, "Type", {}, r"depend on \['Infl', 'Cont'\], with which"),
        (big, "Type", {"within": "Infl"}, r"depend on \['Cont'\], with which"),
        (model, "Type", {"within": "Type"}, "variable and another one, got"),
        (model, "Type", {"within": "Freq"}, "variable and another one, got"),
        (housing("Infl + Type", nominal=["Type"]), "Type", {}, "nominal effects"),
        (model, "Type", {"adjust": "scheffe"}, "adjust must be"),
        (model, "Type", {"at": "Low"}, "^at is for probabilities"),
    ):
        raises(ValueError, message, inference.contrasts, of, variable, **options)


def test_anova_agrees_with_r_in_any_order(model, big):
    base = housing("Infl")
    for order in ((big, base, model), (model, big, base)):
        table = ordinal.inference.anova(*order)
        assert [order[k - 1] for k in table["model"]] == [base, model, big]
        assert table["parameters"].tolist() == [4, 8, 25]
        assert_allclose(table["chi2"][1:], [64.2662130291, 32.6909592808], rtol=1e-8)
        p = [3.67308781098e-13, 1.23319501496e-02]
        assert_allclose(table["p_value"][1:], p, rtol=1e-7)
    raises(ValueError, "two models or more, got 1", ordinal.inference.anova, model)
    raises(ValueError, "more parameters", ordinal.inference.anova, model, model)
    with pytest.raises(TypeError, match="anova needs a model of fit_pom"):
        ordinal.inference.anova(model, "Infl")
    scaled = fit_pom(*noise(), preprocess=ordinal.preprocessing.Standardizer)
    with pytest.raises(ValueError, match="fitted to the same rows, got 1681 and 200"):
        ordinal.inference.anova(model, scaled)


def test_scale_test_agrees_with_r(model):
    table = inference.scale_test(model)
    assert table["name"].tolist() == ["Infl", "Type", "Cont"]
    assert table["dof"].tolist() == [2, 3, 1]
    chi2 = [2.39335387964, 2.38734139000, 5.65588241939]
    assert_allclose(table["chi2"], chi2, atol=1e-6)
    nominal = inference.proportional_odds_test(model, method="lr")
    chi2 = [1.10645301177, 5.73373705286, 2.44455265935]
    assert_allclose(nominal["chi2"][1:], chi2, atol=1e-6)
    freer = housing("Infl + Type + Cont", scale=["Cont"])
    assert inference.scale_test(freer)["name"].tolist() == ["Infl", "Type"]


@pytest.mark.parametrize(("test", "given", "fits"), [
    (inference.scale_test, (), "scale_test: the fit with scale="),
    (inference.drop1, (), r"drop1: the fit of \["),
    (inference.proportional_odds_test, ("lr",), "more nominal effects"),
])  # fmt: skip
def test_fits_that_end_early_are_said(model, test, given, fits, monkeypatch):
    monkeypatch.setattr("ordinal.inference.fitted._MAX_ITER", 0)
    message = f"{fits}.* status max_iter"
    with pytest.warns(ordinal.exceptions.ConvergenceWarning, match=message):
        test(model, *given)


def test_wald_tests_are_quadratic_forms(model):
    table = inference.wald_test(model)
    b, V = model.coef, model.covariance[2:, 2:]
    own = [slice(0, 2), slice(2, 5), slice(5, 6)]
    chi2 = [b[k] @ np.linalg.inv(V[k, k]) @ b[k] for k in own]
    assert_allclose(table["chi2"], chi2)
    assert_allclose(table["p_value"], scipy.stats.chi2.sf(chi2, [2, 3, 1]))
    assert_allclose(table["chi2"][2], model.table()["z"][-1] ** 2)
    test = inference.equality_test(model, ["Type[Apartment]", "Type[Terrace]"])
    contrast = inference.contrasts(model, "Type", adjust="none")
    z = contrast["z"][contrast["name"].tolist().index("Terrace - Apartment")]
    assert_allclose(test["chi2"], z**2)
    three = inference.equality_test(model, model.coef_names[2:5])
    swapped = inference.equality_test(model, model.coef_names[4:1:-1])
    assert three["dof"] == 2
    assert_allclose(three["chi2"], swapped["chi2"])
    for names, message in ((["Cont[High]"], "names must"), (["x", "y"], "got 'x'")):
        raises(ValueError, message, inference.equality_test, model, names)


ESTIMATE = [
    -0.572350002042, -0.366186370689, -1.091014658970, 0.206163631353,
    -0.518664656928, -0.724828288281,
]  # fmt: skip
BY_R = {  # p-values, and the first interval
    "tukey": (
        [9.43957409150e-06, 8.49781152779e-02, 3.58635343645e-12, 4.41365634002e-01,
         5.86843433438e-04, 7.14360511892e-05],
        [-0.878676235203, -0.2660237688810],
    ),
    "bonferroni": (
        [9.51692409204e-06, 1.09692843372e-01, 3.55801241873e-12, 8.11765996979e-01,
         6.08305460112e-04, 7.26440361412e-05],
        [-0.886930545497, -0.2577694585871],
    ),
    "holm": (
        [7.93077007670e-06, 3.65642811241e-02, 3.55801241873e-12, 1.35294332830e-01,
         3.04152730056e-04, 4.84293574275e-05],
        [-0.886930545497, -0.2577694585871],
    ),
    "none": (
        [1.58615401534e-06, 1.82821405620e-02, 5.93002069789e-13, 1.35294332830e-01,
         1.01384243352e-04, 1.21073393569e-05],
        [-0.8060522044796, -0.338647799604],
    ),
}  # fmt: skip


@pytest.mark.parametrize("adjust", BY_R)
def test_contrasts_agree_with_emmeans(model, adjust):
    table = inference.contrasts(model, "Type", adjust=adjust)
    assert table["name"].tolist() == [
        "Apartment - Tower", "Atrium - Tower", "Terrace - Tower",
        "Atrium - Apartment", "Terrace - Apartment", "Terrace - Atrium",
    ]  # fmt: skip
    p, ends = BY_R[adjust]
    assert_allclose(table["estimate"], ESTIMATE, atol=1e-9)
    # ptukey of R has 14 decimals, and 1e-13 is the least of its digits that is right
    rtol, atol = (1e-6, 1e-13) if adjust == "tukey" else (1e-8, 0)
    assert_allclose(table["p_value"], p, rtol=rtol, atol=atol)
    assert_allclose([table["lower"][0], table["upper"][0]], ends, atol=1e-7)


def test_contrasts_are_differences_of_scores_also_within_another_factor(model, big):
    """Beside covariates, and with no interaction, where all levels agree."""
    plain = inference.contrasts(model, "Type")
    within = inference.contrasts(model, "Type", within="Cont")
    for column in ("estimate", "standard_error", "p_value", "lower"):
        assert_allclose(within[column], np.tile(plain[column], 2), atol=1e-12)
    pair = housing("Infl + Type * Cont")
    rows = housing_table().drop_duplicates(["Type", "Cont"]).assign(Infl="Low")
    score = dict(zip(zip(rows["Cont"], rows["Type"]), pair.decision_function(rows)))  # noqa: B905
    table = inference.contrasts(pair, "Type", within="Cont")
    for level, name, found in zip(
        table["within"], table["name"], table["estimate"], strict=True
    ):
        one, other = name.split(" - ")
        assert_allclose(found, score[level, one] - score[level, other], atol=1e-9)


def test_simultaneous_intervals_agree_with_multcomp(model):
    table = inference.simultaneous_intervals(model)
    half = (table["upper"] - table["lower"]) / 2
    # glht integrates at random, with an error of 1e-3
    assert_allclose(half / model.standard_errors[2:], 2.61303, atol=2e-3)
    assert_allclose(table["upper"] - half, model.coef)
    with pytest.raises(ValueError, match="and this model has none"):
        inference.simultaneous_intervals(housing("Cont", nominal=["Cont"]))


def test_a_band_along_a_spline_agrees_with_r():
    # clm(y ~ ns(x, df = 3)); the quantile is of mvtnorm::qmvnorm for cov2cor of the
    # contrasts of predict(ns(x, df = 3), seq(0.3, 10, length.out = 12)) with the first
    x = [0.3, 1.1, 1.9, 2.2, 3, 3.7, 4.1, 4.8, 5.5, 6.3, 7, 7.4, 8.2, 8.8, 9.1, 10]
    y = "1121232332312112121233323322112121132333232212111122323332212111"
    data = pd.DataFrame({"x": x * 4, "y": [int(rank) for rank in y]})
    model = fit_pom("y ~ ns(x, df=3)", data, tol=1e-10)
    assert model.loglik == pytest.approx(-46.3246258, abs=1e-7)
    grid = pd.DataFrame({"x": np.linspace(0.3, 10, 12)})
    band = inference.simultaneous_band(model, grid)
    found = [band[name][[1, 5, 11]] for name in ("estimate", "standard_error")]
    assert_allclose(found[0], [2.35243001, 7.03708074, 0.82854192], rtol=1e-6)
    assert_allclose(found[1], [0.59613149, 1.67111052, 1.69463092], rtol=1e-6)
    half = (band["upper"] - band["lower"])[1:] / 2
    # the correlations have rank 3: two digits
    assert_allclose(half / band["standard_error"][1:], 2.3230, rtol=1e-2)
    assert band["lower"][0] == band["upper"][0] == 0
    line = fit_pom("y ~ x", data)  # of rank 1: the interval of the slope
    straight = inference.simultaneous_band(line, grid)
    low = inference.simultaneous_intervals(line)["lower"]
    assert_allclose(straight["lower"], low[0] * (grid["x"] - 0.3), atol=1e-6)
    raises(ValueError, "got 1 and 1", inference.simultaneous_band, line, grid.head(1))


def test_quantiles_of_the_largest_z():
    for p in (1, 3, 12):  # independent: a product
        expected = normal_margin(0.9 ** (1 / p))
        found = largest_quantile(0.9, np.diag(np.arange(1.0, p + 1)), np.eye(p))
        assert found == pytest.approx(expected, rel=5e-4)
    # of rank 2: the radius, which has a closed form, integrated over the angle
    angle = np.linspace(0, np.pi, 20_001)[1:]
    A = np.stack([np.cos(angle[::500]), np.sin(angle[::500])], axis=1)[:9]
    c = largest_quantile(0.95, A, np.eye(2))
    most = np.abs(A @ np.stack([np.cos(angle), np.sin(angle)])).max(axis=0)
    assert np.exp(-((c / most) ** 2) / 2).mean() == pytest.approx(0.05, abs=5e-5)
