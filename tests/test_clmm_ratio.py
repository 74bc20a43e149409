"""Random effects of stopping ratio and adjacent categories models."""

from functools import cache

import numpy as np
import pytest
from files import loaded
from numpy.testing import assert_allclose, assert_array_equal
from oracles import ratio_probabilities
from strategies import raises
from test_clmm import JUDGE, WINE
from test_ratio import families, some_cases

import ordinal
from ordinal import inference
from ordinal.linear import fit_ratio, stages

X = np.column_stack([WINE["temp"] == "warm", WINE["touch"]]).astype(float)
Y = WINE["rating"].to_numpy()
JUDGES = WINE["judge"].to_numpy()
SLOPE = "rating ~ temp + contact + (1 + touch | judge)"


@cache
def wine(family, link="logit", nodes=1):
    options = {"link": link, "n_quadrature": nodes, "tol": 1e-9}
    return ordinal.fit_clmm(JUDGE, WINE, family=family, **options)


@pytest.mark.parametrize(("link", "nodes"), [("logit", 1), ("probit", 3)])
@pytest.mark.parametrize("family", ["stopping", "backward"])
def test_a_stopping_model_is_a_binary_one_of_stages(family, link, nodes):
    row, stage, beyond = stages(Y, backward=family == "backward")
    Z = np.column_stack([X[row], *(stage == k for k in (1, 2, 3))]).astype(float)
    options = {"link": link, "n_quadrature": nodes, "tol": 1e-9}
    binary = ordinal.fit_clmm(Z, beyond, groups={"judge": JUDGES[row]}, **options)
    model = wine(family, link, nodes)
    assert_allclose(model.loglik, binary.loglik, rtol=1e-11)
    assert_allclose(model.coef, binary.coef[:2], rtol=1e-8)
    assert_allclose(model.deviations["sd"], binary.deviations["sd"], rtol=1e-8)
    assert_allclose(model.standard_errors[-2:], binary.standard_errors[1:3], rtol=1e-6)
    assert_allclose(model.ranef()["mode"], binary.ranef()["mode"], atol=1e-7)
    theta = binary.thresholds[0] - np.append(0.0, binary.coef[2:])
    assert_allclose(model.thresholds, theta, rtol=1e-8)
    if link == "logit":
        ends, others = (m.confint_deviations() for m in (model, binary))
        assert_allclose(ends["upper"], others["upper"], rtol=1e-5)


# Printed by tests/reference/clmm_ratio.R.
GLMER = [
    ("stopping", JUDGE, {"n_quadrature": 10},
     [2.79336376, 1.62388254, 1.02558138, -81.3452221246]),
    ("stopping", JUDGE, {"n_quadrature": 20, "link": "probit"},
     [1.638866409, 0.942131537, 0.59934526, -80.9159362147]),
    ("stopping", SLOPE, {},
     [2.85593062, 1.71332495, 1.350764861, 0.639639896, -80.6480657581]),
    ("backward", JUDGE, {"n_quadrature": 10},
     [2.77676332, 1.64116064, 1.0337039, -81.4244188203]),
    ("backward", SLOPE, {},
     [2.81294723, 1.65875970, 1.245979642, 0.384254608, -81.1431442912]),
]  # fmt: skip


@pytest.mark.parametrize(("family", "formula", "options", "known"), GLMER)
def test_stopping_models_are_those_of_glmer(family, formula, options, known):
    options = {"n_quadrature": 1} | options
    model = ordinal.fit_clmm(formula, WINE, family=family, **options)
    found = [*model.coef, *model.deviations["sd"]]
    # bobyqa stops at differences of 1e-6.
    assert_allclose(found, known[:-1], rtol=2e-6, atol=1e-6)
    assert_allclose(model.loglik, known[-1], rtol=1e-9)


def test_offsets_and_nominal_effects():
    options = {"family": "adjacent", "offset": 0.4 * X[:, 1], "tol": 1e-9}
    options["n_quadrature"] = 1
    model = ordinal.fit_clmm(JUDGE, WINE, **options)
    assert_allclose(model.coef, wine("adjacent").coef - [0, 0.4], rtol=1e-7)
    given = {"nominal": ["contact"], "n_quadrature": 1}
    nominal = ordinal.fit_clmm(JUDGE, WINE, family="stopping", **given)
    test = ordinal.inference.lr_test(wine("stopping"), nominal)
    assert test.dof == 3
    assert test.chi2 > 0


@families
def test_tests_files_and_tables(family):
    model = wine(family)
    plain = fit_ratio("rating ~ temp + contact", WINE, family=family)
    found = ordinal.inference.lr_test(plain, model)
    assert found.chi2 == pytest.approx(2 * (model.loglik - plain.loglik))
    assert found.dof == 1
    assert ordinal.inference.anova(model, plain)["p_value"][1] == found.p_value
    with pytest.raises(ValueError, match="must have the same family"):
        ordinal.inference.lr_test(ordinal.fit_pom("rating ~ temp", WINE), model)
    again = loaded(model)
    assert again.family == family
    assert again.summary() == model.summary()
    assert_array_equal(again.predict_proba(WINE), model.predict_proba(WINE))
    assert model.summary().splitlines()[1].startswith(family)
    assert repr(model).splitlines()[1].split() == ["family", family]
    assert inference.negative_rows(model, WINE).size == 0
    raises(TypeError, "by fit_pom or fit_ratio", inference.influence, model)
    raises(ValueError, "for family='cumulative'", model.icc)
    if family == "adjacent":  # the others have those of the stages
        ends = model.confint_deviations()
        assert 0 < ends["lower"][0] < model.deviations["sd"][0] < ends["upper"][0]
    given = {"cluster": "judge", "n_quadrature": 1, "tol": 1e-9}
    robust = ordinal.fit_clmm(JUDGE, WINE, family=family, **given)
    assert robust.statistics.covariance_type == "cluster"
    assert_allclose(robust.parameters, model.parameters, rtol=1e-9)


def probabilities(model, x, shift):
    T = model.alpha.size
    eta = x[:T] - (X[:6] @ x[T : T + 2])[:, None] - shift
    return ratio_probabilities(model.family, model.link, eta)


@some_cases
def test_predictions_average_effects_and_integrate(family, link):
    model = wine(family, link)
    rows, mode = WINE.iloc[:6], model.ranef()["mode"][0]
    x, sd = model.parameters, model.deviations["sd"][0]
    for effects, shift in (("average", 0.0), ("known", mode)):
        P = model.predict_proba(rows, effects=effects)
        assert_allclose(P, probabilities(model, x, shift), rtol=1e-9)
    grid = np.linspace(-5.5, 5.5, 111)
    share = np.exp(-0.5 * grid**2)
    parts = zip(grid, share, strict=True)
    known = sum(s * probabilities(model, x, sd * u) for u, s in parts)
    assert_allclose(model.predict_proba(rows), known / share.sum(), atol=1e-7)
