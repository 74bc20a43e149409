"""Tests that textbooks and SAS print, and terms dropped from all parts of a model.

Figures of R are those that tests/reference/outcomes.R prints.
"""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from oracles import slopes
from strategies import raises
from test_pom_averages import moved

import ordinal
from ordinal.inference import (
    drop1,
    equality_test,
    goodness_of_fit,
    lr_test,
    proportional_odds_test,
    wald_test,
)

# Four cheeses by nine ratings: P. McCullagh, J. A. Nelder, "Generalized linear models",
# 1989, 5.3.1, and the documentation of SAS's LOGISTIC procedure.
CHEESE = np.array([
    [0, 0, 1, 7, 8, 8, 19, 8, 1], [6, 9, 12, 11, 7, 6, 1, 0, 0],
    [1, 1, 6, 8, 23, 7, 5, 1, 0], [0, 0, 0, 1, 3, 7, 14, 16, 11],
])  # fmt: skip
KIND, RATING = np.repeat(np.eye(4)[:, :3], 9, axis=0), np.tile(np.arange(1, 10), 4)


@pytest.fixture(scope="module")
def cheese():
    return ordinal.fit_pom(KIND, RATING, sample_weight=CHEESE.ravel(), tol=1e-10)


def test_the_cheese_data_have_the_deviance_and_the_score_test_of_textbooks(cheese):
    """Brant's test does not exist: some cheeses lack ratings."""
    table = goodness_of_fit(cheese)
    assert_allclose(table["chi2"][0], 20.31, atol=0.005)
    assert_array_equal(table["dof"], [21, 21])
    expected = CHEESE.sum(axis=1)[:, None] * cheese.predict_proba(KIND[::9])
    assert_allclose(table["chi2"][1], ((CHEESE - expected) ** 2 / expected).sum())
    raises(ValueError, "separate the ranks at 1", proportional_odds_test, cheese)
    score = proportional_odds_test(cheese, method="score")
    assert_allclose(score["chi2"][0], 17.2866, atol=5e-4)
    assert_allclose(score["p_value"][0], 0.6936, atol=5e-5)
    # with a parameter for every cell, the likelihood ratio is the deviance
    ratio = proportional_odds_test(cheese, method="lr")
    assert_allclose(ratio["chi2"][0], table["chi2"][0], rtol=1e-6)


def test_groups_are_rows_of_equal_features():
    rng = np.random.default_rng(0)
    x, z = rng.integers(0, 3, 600) * 1.0, rng.integers(0, 2, 600) * 1.0
    y = np.digitize(x + rng.logistic(size=600), [0, 2])
    X, offset = np.column_stack([x, z]), 0.5 * z
    model = ordinal.fit_pom(X[:, :1], y, offset=offset)
    found = goodness_of_fit(model)
    cell = (2 * x + z).astype(int)
    observed = np.array([np.bincount(y[cell == k], minlength=3) for k in range(6)])
    P = np.array([
        model.predict_proba([[k // 2]], offset=[0.5 * (k % 2)])[0] for k in range(6)
    ])  # fmt: skip
    expected = observed.sum(axis=1)[:, None] * P
    deviance = 2 * (observed * np.log(observed / expected)).sum()
    assert_allclose(found["chi2"][0], deviance)
    assert_array_equal(found["dof"], 6 * 2 - 3)
    assert_allclose(found["p_value"], scipy.stats.chi2.sf(found["chi2"], 9))
    order = rng.permutation(600)
    again = goodness_of_fit(model, X[order, :1], y[order], offset=offset[order])
    assert_allclose(again["chi2"], found["chi2"])
    by = goodness_of_fit(model, by=["x1"])  # three groups, each of two offsets
    sums = observed.reshape(3, 2, 3).sum(axis=1)
    means = expected.reshape(3, 2, 3).sum(axis=1)
    assert_allclose(by["chi2"][1], ((sums - means) ** 2 / means).sum())
    assert_array_equal(by["dof"], 3)
    raises(ValueError, "leave -1 degrees of freedom", goodness_of_fit, model, by=[])
    with pytest.raises(ValueError, match="needs estimates of maximum likelihood"):
        goodness_of_fit(ordinal.fit_pom(X, y, l2=0.1))


@pytest.mark.parametrize("family", ["cumulative", "stopping"])
def test_score_statistics_are_those_of_differences(family):
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(50, 2)), rng.integers(1, 4, 50)
    y = np.digitize(X[:, 0] + rng.logistic(size=50), [-1, 1])
    fit = ordinal.fit_pom if family == "cumulative" else ordinal.fit_ratio
    model = fit(X, y, sample_weight=weight, tol=1e-10)
    for nominal, own in (([0, 1], 0), ([1], 2)):
        larger = fit(X, y, sample_weight=weight, nominal=nominal)
        beta = np.tile(model.coef[nominal], 2)
        x = np.concatenate([model.thresholds, beta, np.delete(model.coef, nominal)])

        def loglik(v, larger=larger):
            P = moved(larger, v).predict_proba(X)[np.arange(50), y]
            return np.array([weight @ np.log(P)])

        U = slopes(loglik, x, 1e-4)[0]
        H = -slopes(lambda v: slopes(loglik, v, 1e-3)[0], x, 1e-3)

        def logs(v, larger=larger):
            return np.log(moved(larger, v).predict_proba(X)).ravel()

        S, P = slopes(logs, x, 1e-4), model.predict_proba(X)
        expected = S.T @ ((weight[:, None] * P).reshape(-1, 1) * S)
        for method, information in (("score", H), ("expected", expected)):
            found = proportional_odds_test(model, method=method)
            chi2 = U @ np.linalg.solve(information, U)
            assert_allclose(found["chi2"][own], chi2, rtol=1e-4)
            assert found["dof"][own] == len(nominal)


def test_few_rows_per_rank_are_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 1))
    y = np.argsort(np.argsort(X[:, 0] + rng.logistic(size=240))) // 8
    with pytest.warns(UserWarning, match='needs 21.2 rows per rank: .*"expected"'):
        proportional_odds_test(ordinal.fit_pom(X, y), method="score")


WINE, RATED = ordinal.datasets.load_wine()
WINE = WINE[:, :2]


def test_linear_combinations_are_those_of_r():
    model = ordinal.fit_pom(WINE, RATED, tol=1e-10)
    given = {"temp - 2 contact": {"x1": 1, "x2": -2}, "range": {"1|2": 1, "4|5": -1}}
    found = wald_test(model, given)
    assert_array_equal(found["name"], [*given, "all"])
    assert_allclose(found["estimate"][:2], [-0.5524933083, -6.3507876155], rtol=1e-5)
    assert_allclose(
        found["standard_error"][:2], [0.9978170673, 0.7585009343], rtol=1e-5
    )
    assert_allclose(found["chi2"][2], 70.1148069408, rtol=1e-5)
    assert_array_equal(found["dof"], [1, 1, 2])
    # one that follows from the others adds nothing, and equal means no difference
    more = wald_test(model, {**given, "again": {"x1": -2, "x2": 4}})
    assert_allclose(more["chi2"][3], found["chi2"][2])
    assert more["dof"][3] == 2
    equal = wald_test(model, {"x1 = x2": {"x1": 1, "x2": -1}})
    assert_allclose(equal["chi2"], equality_test(model, ["x1", "x2"])["chi2"])
    for wrong, message in (
        ({"a": {"x3": 1}}, "combinations must name parameters"),
        ({"a": {"x1": 0}}, "one other than 0"),
        ({}, "one or more"),
    ):
        raises(ValueError, message, wald_test, model, wrong)
    for wrong in (["x1"], {"x1": 1.0}):
        raises(TypeError, "must map names to factors", wald_test, model, wrong)


@pytest.mark.parametrize("kind", ["formula", "ratio", "mixed"])
def test_dropped_terms_are_fits_without_them(kind):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    table = pd.DataFrame({
        "a": np.array(["l", "m", "h"])[rng.integers(0, 3, 240)],
        "x": rng.normal(size=240), "z": rng.normal(size=240), "g": np.arange(240) // 12,
    })  # fmt: skip
    noise = rng.logistic(size=240) + rng.normal(size=20)[table["g"]]
    table["y"] = np.digitize(table["x"] + noise, [-1, 1])
    if kind == "mixed":
        options = {"n_quadrature": 1}
        model = ordinal.fit_clmm("y ~ x + z + (1 | g)", table, scale=["x"], **options)
        rest = {"x": ordinal.fit_clmm("y ~ z + (1 | g)", table, **options)}
        rest["z"] = ordinal.fit_clmm("y ~ x + (1 | g)", table, scale=["x"], **options)
    elif kind == "ratio":
        model = ordinal.fit_ratio("y ~ a + x", table, nominal=["a"])
        rest = {
            "a": ordinal.fit_ratio("y ~ x", table),
            "x": ordinal.fit_ratio("y ~ a", table, nominal=["a"]),
        }
    else:  # x is part of an interaction, and stays
        model = ordinal.fit_pom("y ~ a * x + z", table, scale=["a"], nominal=["z"])
        rest = {
            "z": ordinal.fit_pom("y ~ a * x", table, scale=["a"]),
            "a:x": ordinal.fit_pom("y ~ a + x + z", table, scale=["a"], nominal=["z"]),
        }
    found = drop1(model)
    assert {*found["name"]} == {"none", *rest}
    for name, smaller in rest.items():
        own = found["name"] == name
        test = lr_test(smaller, model)
        assert_allclose(found["chi2"][own], test.chi2, atol=1e-5)
        assert found["dof"][own] == test.dof


def test_the_expected_information_keeps_the_level_with_few_rows_per_rank():
    """Mean and p-values of the statistics of 30 samples of a true model."""
    rng, shares, p = np.random.default_rng(0), {"score": [], "expected": []}, []
    for _ in range(30):
        X = rng.normal(size=(240, 1))
        y = np.argsort(np.argsort(X[:, 0] + rng.logistic(size=240))) // 8
        model = ordinal.fit_pom(X, y)
        with pytest.warns(UserWarning, match='needs 21.2 rows per rank: .*"expected"'):
            found = proportional_odds_test(model, method="score")
        shares["score"].append(found["chi2"][0] / 28)
        found = proportional_odds_test(model, method="expected")
        shares["expected"].append(found["chi2"][0] / 28)
        p.append(found["p_value"][0])
    # The mean of 30 shares has the standard deviation sqrt(2 / 28 / 30) = 0.05.
    assert np.mean(shares["score"]) > 1.2
    assert_allclose(np.mean(shares["expected"]), 1, atol=0.15)
    assert np.mean(np.array(p) < 0.05) < 0.2
