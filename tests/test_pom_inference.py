"""Errors, intervals, tests and effects of cumulative models.

Figures of R are those that tests/reference/pom_inference.R prints.
"""

import copy
import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from oracles import cumulative_edges, cumulative_loglik, cumulative_terms, slope, slopes
from pom_data import SETS, housing_table, spread_without_bounds
from scipy.sparse import csr_array
from strategies import raises, slow

import ordinal
from ordinal import fit_pom, inference
from ordinal._numerics.tails import normal_cdf, normal_quantile, normal_two_sided
from ordinal.exceptions import ConvergenceWarning
from ordinal.inference import lr_test

WINE, HOUSING, MADE = SETS["wine"], SETS["housing"], SETS["made"]
LINKS = "logit", "probit", "cloglog", "loglog", "cauchit"


def fitted(rows, columns=None, **options):
    X = rows.X if columns is None else rows.X[:, columns]
    given = {"sample_weight": rows.weight, "offset": rows.offset} | options
    return fit_pom(X, rows.y, tol=1e-8, **given)


def same(**changes):
    """A fit of the housing data in which something changes."""
    return fitted(HOUSING, **changes)


@pytest.mark.parametrize("z", [0.0, 1e-9, 0.5, 1.96, 5.0, 12.0, 37.0])
def test_two_sided_tails(z):
    expected = 2 * scipy.stats.norm.sf(z)
    # the rounding of z moves the logarithm by z^2 of it
    rtol = 4 * np.finfo(float).eps * (1 + z**2)
    assert_allclose(normal_two_sided(np.array([z, -z])), expected, rtol=rtol)


def test_quantiles_of_the_normal_distribution_are_where_it_has_the_probability():
    p = np.array([[1e-300, 1e-20, 0.1], [0.5, 0.9, np.nextafter(1, 0)]])
    assert_allclose(normal_cdf(normal_quantile(p)), p, rtol=1e-12)


def numerical_scores(model, rows):
    """Gradients of every row's log likelihood by differences, (n, p)."""
    by = model.predictor
    structure = [rows.X[:, of] for of in (by.location, by.nominal, by.scale)]

    def logliks(x):
        return np.array([
            cumulative_loglik(
                x, rows.y[[i]], np.ones(1), model.link, rows.y.max(), by.threshold,
                *(part[[i]] for part in structure), rows.offset[[i]],
            )
            for i in range(len(rows.y))
        ])  # fmt: skip

    return slopes(logliks, model.parameters, 1e-4)


@pytest.mark.parametrize("options", [
    {"link": "probit", "scale": [1]},
    *slow({}, {"link": "cloglog", "nominal": [0]},
          {"threshold": "symmetric", "nominal": [2], "scale": [0, 1]}),
])  # fmt: skip
def test_the_sandwich_is_its_formula(options):
    plain = fitted(MADE, **options)
    V, S, w = plain.covariance, numerical_scores(plain, MADE), MADE.weight
    robust = fitted(MADE, robust=True, **options)
    assert_allclose(robust.covariance, V @ (w * S.T) @ S @ V, rtol=1e-6, atol=1e-9)

    group = np.arange(120) % 17
    U = np.array([(w[:, None] * S)[group == g].sum(axis=0) for g in range(17)])
    clustered = fitted(MADE, cluster=group, **options)
    assert_allclose(
        clustered.covariance, V @ U.T @ U @ V * 17 / 16, rtol=1e-6, atol=1e-9
    )
    assert [m.statistics.covariance_type for m in (plain, robust, clustered)] == [
        "observed", "robust", "cluster",
    ]  # fmt: skip
    assert_array_equal(robust.parameters, plain.parameters)


def test_clusters_of_no_weight_and_of_no_kind():
    weight = np.where(np.arange(72) // 3 == 5, 0.0, HOUSING.weight)
    kept = weight > 0
    group = np.arange(72) // 3
    there = same(cluster=group, sample_weight=weight)
    gone = fit_pom(
        HOUSING.X[kept], HOUSING.y[kept], sample_weight=weight[kept],
        cluster=group[kept].astype(str), tol=1e-8,
    )  # fmt: skip
    assert_allclose(there.covariance, gone.covariance, rtol=1e-9)
    weight = np.where(np.arange(72) % 2, 1.0, 0.0)
    with pytest.raises(ValueError, match="cluster must hold 2 groups of positive"):
        fitted(WINE, cluster=np.arange(72) % 2, sample_weight=weight)
    labels = np.empty(72, object)
    labels[:] = [(1,)] * 72
    with pytest.raises(TypeError, match=r"numbers or strings, got \(1,\) in row 0"):
        fitted(WINE, cluster=labels)


@pytest.mark.parametrize(("cluster", "message"), [
    (np.zeros(72), r"cluster must hold 2 groups or more, got 1"),
    (np.arange(71), r"cluster has shape \(71,\), expected \(72,\) as X"),
    (np.r_[np.nan, np.arange(71)], "1 of 72 rows lack values"),
    (np.array([*range(71), None], object), "1 of 72 rows lack values"),
])  # fmt: skip
def test_clusters_that_cannot_be_read(cluster, message):
    raises(ValueError, message, fitted, WINE, cluster=cluster)


def test_the_table_holds_what_the_model_says():
    model = fitted(MADE, nominal=[0], scale=[2])
    table = model.table()
    assert table["name"].tolist() == [
        "0|1", "1|2", "2|3", "0|1.x1", "1|2.x1", "2|3.x1", "x2", "x3", "scale.x3",
    ]  # fmt: skip
    assert table["kind"].tolist() == (
        3 * ["threshold"] + 3 * ["nominal"] + 2 * ["location"] + ["scale"]
    )
    assert_array_equal(table["estimate"], model.parameters)
    assert_array_equal(table["standard_error"] ** 2, model.standard_errors**2)
    assert_allclose(model.standard_errors**2, np.diag(model.covariance), rtol=1e-14)
    assert_allclose(table["z"], model.parameters / model.standard_errors, rtol=1e-14)
    tails = 2 * scipy.stats.norm.sf(abs(table["z"]))
    assert_allclose(table["p_value"], tails, rtol=1e-12)
    assert not any(column.flags.writeable for column in table.values())


def test_names_are_of_the_ranks_with_rows():
    model = fit_pom(
        WINE.X, WINE.y, classes=[-1, 0, 1, 2, 2.5, 3, 4, 9], threshold="symmetric"
    )
    assert model.parameter_names[:3] == ("central.1", "central.2", "spacing.1")
    model = fit_pom(WINE.X, WINE.y, classes=[-1, 0, 1, 2, 2.5, 3, 4, 9])
    assert model.parameter_names[:4] == ("0.0|1.0", "1.0|2.0", "2.0|3.0", "3.0|4.0")
    assert len(model.parameter_names) == model.covariance.shape[0]
    assert_array_equal(np.isinf(model.thresholds), [True, *[False] * 5, True])
    assert model.thresholds[3] == model.thresholds[4]
    assert_array_equal(model.predict_proba(WINE.X)[:, [0, 4, 7]], 0)


def test_the_summary_is_the_table_that_clm_prints():
    text = str(fit_pom(WINE.X, WINE.y + 1).summary())
    expected = """
        Coefficients:
           Estimate Std. Error z value Pr(>|z|)
        x1   2.5031     0.5287   4.735 2.19e-06 ***
        x2   1.5278     0.4766   3.205  0.00135 **
        ---
        Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1

        Threshold coefficients:
            Estimate Std. Error z value
        1|2  -1.3444     0.5171  -2.600
        2|3   1.2508     0.4379   2.857
        3|4   3.4669     0.5978   5.800
        4|5   5.0064     0.7309   6.850"""
    lines = [line[8:] for line in expected.strip("\n").splitlines()]
    assert text.splitlines()[3:] == lines
    head, values = text.splitlines()[:2]
    assert head.split()[:6] == ["link", "threshold", "nobs", "logLik", "AIC", "BIC"]
    assert values.split()[:7] == [
        "logit", "flexible", "72", "-86.49", "184.98", "198.64", "0.1661",
    ]  # fmt: skip
    summary = fitted(WINE).summary()
    assert repr(summary) == str(summary)


def test_the_summary_says_what_else_there_is():
    text = fitted(MADE, nominal=[0], scale=[1], robust=True).summary()
    assert "Standard errors: robust (sandwich)" in text
    assert "Nominal coefficients (a slope for each threshold):" in text
    assert text.split("Log-scale coefficients:")[1].split("\n")[2].split()[0] == "x2"
    with pytest.warns(ConvergenceWarning):
        model = fit_pom(WINE.X, WINE.y, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="the fit ended as max_iter"):
        assert "Not converged: max_iter after 2 steps" in model.summary()


def test_whatever_a_fit_that_ended_early_is_asked_for_warns():
    """Functions of a model alone are asked by tests/test_crossings.py."""
    with pytest.warns(ConvergenceWarning, match="max_iter after 1 steps"):
        early = fit_pom(WINE.X, WINE.y, max_iter=1)
    for call in (
        lambda: early.standard_errors,
        lambda: early.aic,
        lambda: inference.equality_test(early, early.coef_names),
        lambda: inference.simultaneous_band(early, WINE.X[:3]),
    ):
        with pytest.warns(ConvergenceWarning, match="fit ended as"):
            call()


@pytest.mark.parametrize(
    ("options", "level"),
    [({}, 0.99), *slow(({"nominal": [1]}, 0.5), ({"threshold": "equidistant"}, 0.9))],
)
@pytest.mark.parametrize("link", ["logit", *slow(*LINKS[1:])])
def test_at_the_ends_of_a_profile_the_ratio_test_is_undecided(link, options, level):
    """Compare with fits that have the feature as an offset."""
    model = fitted(MADE, link=link, **options)
    ends = model.confint(level, method="profile")
    cut = scipy.stats.chi2.ppf(level, 1)
    for k, column in enumerate(model.predictor.location):
        others = np.delete(np.arange(3), column)
        nominal = [int(np.searchsorted(others, j)) for j in model.predictor.nominal]
        for end in (ends["lower"][k], ends["upper"][k]):
            offset = MADE.offset + end * MADE.X[:, column]
            held = fitted(
                MADE, others, link=link, offset=offset, **options | {"nominal": nominal}
            )
            assert 2 * (model.loglik - held.loglik) == pytest.approx(cut, rel=1e-6)


def test_an_end_that_no_value_reaches_is_infinite():
    X, y, weight = spread_without_bounds()
    model = fit_pom(X, y, sample_weight=weight, scale=[1])
    ends = model.confint(method="profile")
    assert ends["lower"].tolist()[1:] == [-math.inf, pytest.approx(0.28595, abs=1e-5)]
    assert ends["upper"].tolist()[1:] == [math.inf, math.inf]
    assert ends["lower"][0] < model.coef[0] < ends["upper"][0] < math.inf


@pytest.mark.parametrize(("last", "level"), [(2.0, 0.99), (3.0, 0.95), (3.0, 0.99)])
def test_profiles_pass_where_the_only_curvature_is_negative(last, level):
    """The Hessian, scaled, is -1 there: a shift of 1 leaves nothing but rounding."""
    # two groups of ten, and a row beyond them that is of the lower rank
    x = np.r_[np.zeros(10), np.ones(10), last][:, None]
    y = np.repeat([0, 1, 0, 1, 0], [7, 3, 3, 7, 1])
    model = fit_pom(x, y, link="cauchit", tol=1e-8)
    ends = model.confint(level, method="profile")
    limit = scipy.stats.chi2.ppf(level, 1)
    for end in (ends["lower"][0], ends["upper"][0]):
        nothing = np.tile([[0.0], [1.0]], (21, 1))  # which has no effect
        held = fit_pom(
            nothing, np.repeat(y, 2), link="cauchit", offset=end * np.repeat(x, 2),
            sample_weight=np.full(42, 0.5), tol=1e-8,
        )  # fmt: skip
        assert 2 * (model.loglik - held.loglik) == pytest.approx(limit, rel=1e-6)


def test_odds_ratios_are_exponentials():
    model = same()
    for method in ("wald", "profile"):
        ends = model.confint(method=method)
        ratios = inference.odds_ratios(model, method=method)
        assert ratios["name"].tolist() == ["x1", "x2", "x3", "x4", "x5", "x6"]
        assert_array_equal(ratios["odds_ratio"], np.exp(model.coef))
        for end in ("lower", "upper"):
            assert_array_equal(ratios[end], np.exp(ends[end][-6:]))
    # the odds of more than each rank, by the probabilities
    partial_odds = fitted(HOUSING, nominal=[0, 3])
    for one in (model, partial_odds):
        names, ratios = (inference.odds_ratios(one)[k] for k in ("name", "odds_ratio"))
        for j, name in enumerate(one.predictor.column_names):
            P = one.predict_proba([np.zeros(6), np.arange(6) == j])
            P = np.cumsum(P, axis=1)[:, :-1]
            odds = (1 - P) / P
            own = ratios[[n in (name, f"0|1.{name}", f"1|2.{name}") for n in names]]
            assert_allclose(odds[1] / odds[0], np.broadcast_to(own, 2), rtol=1e-12)
    profiled = inference.odds_ratios(partial_odds, method="profile")
    assert_array_equal(np.isnan(profiled["lower"]), ["|" in n for n in names])
    for options, message in (
        ({"nominal": [1], "threshold": "equidistant"}, "those of threshold='equid"),
        ({"link": "probit"}, "link='probit'"),
        ({"scale": [0]}, "this model has scale effects"),
    ):
        raises(ValueError, message, inference.odds_ratios, fitted(WINE, **options))


def test_models_that_are_not_nested():
    model = fitted(WINE)
    less = fitted(WINE, [0])
    raises(ValueError, r"6 parameters and larger 5: swap them", lr_test, model, less)
    spaced, probit = fitted(WINE, threshold="equidistant"), fitted(WINE, link="probit")
    free = fitted(WINE, threshold="equidistant", nominal=[0, 1])
    weighted = fitted(WINE, sample_weight=HOUSING.weight)
    for smaller, larger, message in (
        (model, spaced, "6 parameters and larger 4: swap them"),
        (free, less, "got 5 and 6"),  # which could not be swapped, either
        (model, model, "more parameters than smaller, got 6 and 6"),
        (less, probit, "same link, got 'logit' and 'probit'"),
        (less, weighted, "same rows, got 72 and 1681 observations"),
    ):
        raises(ValueError, message, lr_test, smaller, larger)
    raises(ValueError, r"same ranks, got \[0, 1, 2\] and", lr_test, same(), model)
    with pytest.raises(ValueError, match="it has flexible thresholds"):
        lr_test(less, fitted(WINE, threshold="equidistant", nominal=[1]))
    raises(TypeError, r"lr_test needs a model of fit_pom, .* got 3", lr_test, 3, model)
    raises(ValueError, r"fitted with l2=0\.1", lr_test, less, fitted(WINE, l2=0.1))


def test_columns_are_compared_by_their_span():
    """Other codings of a factor are nested, and other columns are not."""
    table = housing_table().assign(
        Sat=HOUSING.y, high=lambda t: (t["Infl"] == "High") * 1.0,
        noise=np.random.default_rng(0).normal(size=72),
    )  # fmt: skip

    def fit(terms, **options):
        return fit_pom(f"Sat ~ {terms}", table, sample_weight=HOUSING.weight,
                               **options)  # fmt: skip

    large = fit("Infl + Cont")
    expected = lr_test(fit("Infl"), large)
    assert lr_test(fit("high"), large).dof == 2
    same = fit("Infl", reference={"Infl": "High"})
    unlike = fit("C(Infl, Treatment('Medium'))")
    for smaller in (same, pickle.loads(pickle.dumps(same)), unlike):
        assert_allclose(lr_test(smaller, large)[:3], expected[:3], rtol=1e-8)
    for smaller, larger, message in (
        (fit("noise"), large, "its effects of 'noise' are no comb"),
        (fit("Infl + Cont", scale=["noise"]), fit("Infl + Cont", nominal=["Infl"]),
         "scale effects of 'noise'"),
        (fit("Cont", nominal=["Cont"]), fit("Infl + Cont + Type"), "its nominal eff"),
        (pickle.loads(pickle.dumps(fit("noise"))), large, "are none of those"),
        (fit("Infl", offset="noise"), large, "same offset, and larger has none"),
        (fit("Infl", offset="noise"), fit("Infl + Cont", offset="high"),
         "same offset, but they differ by up to"),
    ):  # fmt: skip
        raises(ValueError, message, lr_test, smaller, larger)


@pytest.mark.parametrize("options", [{"robust": True}, {"cluster": np.arange(72) // 4}])
def test_robust_covariances_have_no_likelihood_ratio(options):
    robust, larger = fitted(WINE, [0], **options), fitted(WINE)
    for models in ((robust, larger), (fitted(WINE, [0]), fitted(WINE, **options))):
        raises(ValueError, "needs the likelihood of independent", lr_test, *models)
        with pytest.raises(ValueError, match="needs the likelihood of independent"):
            ordinal.inference.anova(*models)


@pytest.mark.parametrize("test", [lr_test, ordinal.inference.anova])
def test_models_of_as_many_but_other_rows(test):
    """Missing values in other columns drop other rows."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    table["y"] = np.digitize(table["a"] + rng.logistic(size=90), [-1, 0, 1])
    complete = table.copy()
    table.loc[table.index[table["y"] == 0][:5], "a"] = None
    table.loc[table.index[table["y"] == 3][:5], "b"] = None
    smaller = fit_pom("y ~ a", table, missing="drop")
    larger = fit_pom("y ~ b + c", table, missing="drop")
    with pytest.raises(ValueError, match=r"same rows, but the weights per rank sum to"):
        test(smaller, larger)
    # Weights of groups are no weights of rows, and the order of rows does not matter.
    complete["g"], complete["w"] = np.arange(90) // 9, np.repeat([1.0, 2.0], 45)
    plain = fit_pom("y ~ a", complete, sample_weight="w")
    test(plain, ordinal.fit_clmm("y ~ a + (1 | g)", complete, group_weight="w"))
    shuffled = complete.sample(frac=1, random_state=0)
    test(fit_pom("y ~ a", complete), fit_pom("y ~ a + b", shuffled))
    other = complete.assign(y=shuffled["y"].to_numpy())
    with pytest.raises(ValueError, match="have other values of 'a' at the rows of som"):
        test(fit_pom("y ~ a", complete), fit_pom("y ~ a + b", other))


def test_a_larger_model_that_is_worse_is_said_to_be():
    y = np.arange(72) % 5  # as many rows, but others
    better = fitted(WINE, [0])
    worse = pickle.loads(pickle.dumps(fit_pom(WINE.X, y)))  # without its rows
    with pytest.warns(ConvergenceWarning, match="below that of the smaller"):
        test = lr_test(better, worse)
    assert (test.chi2, test.p_value) == (0.0, 1.0)


def test_brants_test_by_its_formula():
    """With offsets, weights and three thresholds, from binary fits of the package."""
    model = fitted(MADE)
    w, n = MADE.weight, len(MADE.y)
    X = np.column_stack([np.ones(n), MADE.X])
    b, P, inverse = [], [], []
    for j in range(3):
        binary = fitted(MADE._replace(y=(MADE.y > j).astype(int)))
        b.append(binary.coef)
        P.append(binary.predict_proba(MADE.X, offset=MADE.offset)[:, 1])
        inverse.append(np.linalg.inv(X.T @ (X.T * w * P[j] * (1 - P[j])).T))

    def V(j, m):
        j, m = min(j, m), max(j, m)
        middle = X.T @ (X.T * w * (P[m] - P[j] * P[m])).T
        return (inverse[j] @ middle @ inverse[m])[1:, 1:]

    V = np.block(
        [[V(j, m) if j <= m else V(j, m).T for m in range(3)] for j in range(3)]
    )
    D = np.block([[np.eye(3), -np.eye(3), np.zeros((3, 3))],
                  [np.eye(3), np.zeros((3, 3)), -np.eye(3)]])  # fmt: skip

    def wald(D):
        d = D @ np.concatenate(b)
        return d @ np.linalg.solve(D @ V @ D.T, d)

    expected = [wald(D), *(wald(D[k::3]) for k in range(3))]
    test = inference.proportional_odds_test(model)
    assert_allclose(test["chi2"], expected, rtol=1e-6)
    assert test["dof"].tolist() == [6, 2, 2, 2]
    tails = scipy.stats.chi2.sf(expected, [6, 2, 2, 2])
    assert_allclose(test["p_value"], tails, rtol=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_ratio_tests_of_proportional_odds_are_against_nominal_effects(link):
    model = fitted(MADE, link=link)
    test = inference.proportional_odds_test(model, method="lr")
    expected = [
        lr_test(model, fitted(MADE, link=link, nominal=nominal))
        for nominal in ([0, 1, 2], [0], [1], [2])
    ]
    assert_allclose(test["chi2"], [t.chi2 for t in expected], rtol=1e-6, atol=1e-9)
    assert_array_equal(test["dof"], [t.dof for t in expected])
    assert_allclose(test["p_value"], [t.p_value for t in expected], rtol=1e-6)


def test_what_tests_of_proportional_odds_refuse():
    for model, method, message in (
        (fitted(MADE, link="probit"), "brant", "Brant's test is defined for the logit"),
        (fitted(MADE, scale=[0]), "brant", "Brant's test is defined for the logit"),
        (fitted(MADE._replace(y=MADE.y > 1)), "brant", "3 ranks or more, got 2"),
        (fitted(MADE, nominal=[0, 1, 2]), "lr", "needs features with one slope"),
        (fitted(MADE), "wald", "method must be one of 'brant', 'lr'"),
        # none of the wines that were served warm is in the lowest rank
        (fitted(WINE), "brant", r"but features separate the ranks at 0\|1"),
    ):
        raises(ValueError, message, inference.proportional_odds_test, model, method)
    rng = np.random.default_rng(184)
    X, y = rng.standard_normal((12, 2)), rng.integers(0, 3, 12)
    model = fit_pom(X, y)
    with pytest.raises(ValueError, match=r"positive definite covariance .*: take meth"):
        inference.proportional_odds_test(model)
    with pytest.warns(UserWarning, match="with 4 rows per rank and 2 degrees"):
        found = inference.proportional_odds_test(model, method="lr")
    assert np.isfinite(found["chi2"]).all()


def mean_probabilities(model, x, X, offset, share):
    """Compute the Hessian of the ranks, at any parameters, by the oracle."""
    by = model.predictor
    Z = (X[:, of] for of in (by.location, by.nominal, by.scale))
    eta = cumulative_edges(x, by.observed.sum() - 1, by.threshold, *Z, offset)
    return share @ np.exp(cumulative_terms(model.link, eta[:, 1:], eta[:, :-1]))


def effect_by_differences(model, x, X, offset, share, column):
    if np.isin(X[:, column], (0, 1)).all():
        ends = [np.where(np.arange(X.shape[1]) == column, v, X) for v in (0, 1)]
        low, high = (mean_probabilities(model, x, Z, offset, share) for Z in ends)
        return high - low
    unit = np.eye(X.shape[1])[column]
    return slope(
        lambda t: mean_probabilities(model, x, X + t * unit, offset, share), 1e-4
    )


@pytest.mark.parametrize("options", [
    {"link": "logit"},
    {"link": "probit", "scale": [0]},
    {"link": "cloglog", "nominal": [0, 2]},
    {"link": "loglog", "threshold": "symmetric", "nominal": [2], "scale": [1, 2]},
    {"link": "cauchit", "threshold": "equidistant"},
])  # fmt: skip
def test_marginal_effects_and_their_errors_by_differences(options):
    model = fitted(MADE, **options)
    table = model.marginal_effects()
    share = MADE.weight / MADE.weight.sum()
    x, V = model.parameters, model.covariance

    def effects(x):
        rest = MADE.X, MADE.offset, share
        return np.ravel([effect_by_differences(model, x, *rest, j) for j in range(3)])

    assert_allclose(table["effect"], effects(x), rtol=1e-6, atol=1e-8)
    J = slopes(effects, x, 1e-4)
    errors = np.sqrt(np.diag(J @ V @ J.T))
    assert_allclose(table["standard_error"], errors, rtol=1e-5, atol=1e-8)
    z, margin = effects(x) / errors, scipy.stats.norm.isf(0.025) * errors
    assert_allclose(table["p_value"], 2 * scipy.stats.norm.sf(abs(z)), rtol=1e-3)
    for end, sign in (("lower", -1), ("upper", 1)):
        assert_allclose(table[end], effects(x) + sign * margin, rtol=1e-4, atol=1e-7)
    assert table["name"].tolist() == [
        name for name in ("x1", "x2", "x3") for _ in "0123"
    ]
    assert table["rank"].tolist() == 3 * [0, 1, 2, 3]
    assert_allclose(table["effect"].reshape(3, 4).sum(axis=1), 0, atol=1e-15)


def test_marginal_effects_over_given_rows(tmp_path):
    model = fitted(MADE)
    whole = model.marginal_effects()
    model.save(tmp_path / "model.npz")
    given = ordinal.load(tmp_path / "model.npz").marginal_effects(
        MADE.X, offset=MADE.offset, sample_weight=MADE.weight
    )
    for name in whole:
        assert_array_equal(given[name], whole[name])
    rows = np.repeat(np.arange(120), MADE.weight.astype(int))
    repeated = model.marginal_effects(MADE.X[rows], offset=MADE.offset[rows], level=0.5)
    assert_allclose(repeated["effect"], whole["effect"], rtol=1e-12)
    assert (repeated["upper"] < whole["upper"]).all()
    with pytest.raises(ValueError, match="offset must be None without X"):
        model.marginal_effects(offset=MADE.offset)
    with pytest.raises(ValueError, match="sample_weight must not be zero everywhere"):
        model.marginal_effects(MADE.X, sample_weight=np.zeros(120))


def test_a_model_shows_what_it_has_found():
    model = fitted(MADE, link="probit", l2=0.25)
    text = repr(model)
    assert "  link         probit\n  penalties    l2=0.25\n  coef         x1 " in text
    first = f"x1 {model.coef[0]:.4g}, x2 {model.coef[1]:.4g}, x3 {model.coef[2]:.4g}"
    assert f"{first}\n" in text
    assert f"thresholds   0|1 {model.thresholds[0]:.4g}, 1|2 " in text
    assert "penalties" not in repr(fitted(MADE))
    assert ", ... (9)\n" in repr(fit_pom(np.eye(9), np.arange(9) % 2, l2=0.1))


def test_effects_of_categories_are_between_levels():
    table = housing_table()
    model = fit_pom(table, HOUSING.y, sample_weight=HOUSING.weight, tol=1e-8)
    effects = model.marginal_effects()
    names = [
        f"{name}[{level}]" for name in table for level in table[name].cat.categories
    ]
    first = {"Infl[Low]", "Type[Tower]", "Cont[Low]"}
    kept = [name for name in names if name not in first]
    assert effects["name"].tolist() == [name for name in kept for _ in range(3)]
    high = effects["name"] == "Infl[High]"
    assert_allclose(
        effects["effect"][high], [-0.2600767778989, -0.03548620989255, 0.2955629877914],
        rtol=1e-6,
    )  # fmt: skip
    assert_allclose(
        effects["standard_error"][high],
        [0.0235288383252, 0.00945467555553, 0.0281305396577], rtol=1e-6,
    )  # fmt: skip
    step = fit_pom("y ~ I(x > 0)", pd.DataFrame({"x": MADE.X[:, 0], "y": MADE.y}))
    raises(ValueError, r"I\(x > 0\)' is a step function of 'x'", step.marginal_effects)
    given = model.marginal_effects(table, sample_weight=HOUSING.weight)
    assert_array_equal(given["effect"], effects["effect"])
    one = model.marginal_effects(table.iloc[:1])  # which has one level of each
    assert one["name"].tolist() == effects["name"].tolist()


def test_tests_of_proportional_odds_are_of_whole_categories():
    model = fit_pom(housing_table(), HOUSING.y, sample_weight=HOUSING.weight, tol=1e-8)
    test = inference.proportional_odds_test(model, method="lr")
    assert test["name"].tolist() == ["all", "Infl", "Type", "Cont"]
    assert test["dof"].tolist() == [6, 2, 3, 1]
    brant = inference.proportional_odds_test(model)
    assert brant["dof"].tolist() == [6, 2, 3, 1]
    assert_allclose(
        brant["chi2"][[0, 3]], [8.5344940012691, 1.2859403353521], rtol=1e-6
    )


@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_effects_through_a_formula_by_differences(link):
    data = pd.DataFrame({
        "size": MADE.X[:, 0] + 4, "rate": MADE.X[:, 1], "new": MADE.X[:, 2] > 0,
        "kind": np.where(np.arange(120) % 3 == 0, "a", "b"), "y": MADE.y,
    })  # fmt: skip
    text = "y ~ np.log(size) + size:kind + rate * new + offset(0.1 * size)"
    model = fit_pom(
        text, data, link=link, offset=MADE.offset, sample_weight=MADE.weight
    )
    effects = model.marginal_effects()
    share = MADE.weight / MADE.weight.sum()

    def mean(**changed):
        return share @ model.predict_proba(data.assign(**changed), offset=MADE.offset)

    expected = {
        "size": slope(lambda t: mean(size=data["size"] + t), 1e-5),
        "rate": slope(lambda t: mean(rate=data["rate"] + t), 1e-5),
        "new": mean(new=True) - mean(new=False),
        "kind[b]": mean(kind="b") - mean(kind="a"),
    }
    assert set(effects["name"].tolist()) == set(expected)
    for name, effect in expected.items():
        own = effects["name"] == name
        assert_allclose(effects["effect"][own], effect, rtol=1e-6, atol=1e-9)


def test_sparse_rows_have_the_inference_of_dense_ones():
    sparse = MADE._replace(X=csr_array(MADE.X))
    group = np.arange(120) // 4
    for options in ({"robust": True}, {"cluster": group}, {"nominal": [0]}):
        ours, theirs = fitted(sparse, **options), fitted(MADE, **options)
        assert_allclose(ours.covariance, theirs.covariance, rtol=1e-6, atol=1e-10)
    ours, theirs = fitted(sparse), fitted(MADE)
    for ask in (
        lambda m: m.confint(method="profile"),
        lambda m: inference.proportional_odds_test(m),
        lambda m: inference.proportional_odds_test(m, method="lr"),
        lambda m: m.marginal_effects(),
        lambda m: m.marginal_effects(sparse.X, offset=MADE.offset),
    ):
        for a, b in zip(ask(ours).values(), ask(theirs).values(), strict=True):
            if a.dtype.kind == "f":
                assert_allclose(a, b, rtol=1e-5, atol=1e-9)


CALLS = {
    "standard_errors": lambda m: m.standard_errors,
    "z": lambda m: m.table()["z"],
    "p_values": lambda m: m.table()["p_value"],
    "dof": lambda m: m.dof,
    "aic": lambda m: m.aic,
    "bic": lambda m: m.bic,
    "table": lambda m: m.table(),
    "summary": lambda m: m.summary(),
    "confint": lambda m: m.confint(),
    "profile": lambda m: m.confint(method="profile"),
    "odds_ratios": inference.odds_ratios,
    "brant": lambda m: inference.proportional_odds_test(m),
    "lr": lambda m: inference.proportional_odds_test(m, method="lr"),
    "effects": lambda m: m.marginal_effects(),
}
OF_ROWS = "profile", "brant", "lr", "effects"


def test_penalised_fits_have_no_inference():
    model, plain = fitted(WINE, l2=0.5), fitted(WINE)
    for call in CALLS.values():
        raises(ValueError, r"fitted with l2=0\.5, which biases them", call, model)
    names = "aic", "bic", "dof", "standard_errors"
    assert all(hasattr(plain, name) for name in names)
    assert not any(hasattr(model, name) for name in names)
    assert model.loglik < plain.loglik


def test_a_model_without_its_rows_says_so_where_it_needs_them(tmp_path):
    model = fitted(HOUSING)
    model.save(tmp_path / "model.npz")
    loaded = ordinal.load(tmp_path / "model.npz")
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        for name, call in CALLS.items():
            if name in OF_ROWS:
                raises(ValueError, "fit again", call, other)
            else:
                assert repr(call(other)) == repr(call(model))


def test_rows_that_were_changed_since_are_noticed():
    X = HOUSING.X.copy()
    model = fitted(HOUSING._replace(X=X))
    X[:, 3] += X[:, 0]
    for name in OF_ROWS:
        raises(ValueError, "have been changed since; fit again", CALLS[name], model)


def test_profiles_and_levels_are_refused():
    for options in ({"robust": True}, {"cluster": np.arange(72) % 9}):
        with pytest.raises(ValueError, match='pass method="wald"'):
            fitted(WINE, **options).confint(method="profile")
    model = fitted(WINE)
    for level in (0, 1, 1.5, math.nan, "0.95"):
        for ask in (model.confint, partial(inference.odds_ratios, model)):
            raises(ValueError, "level must be a number between 0 and", ask, level)
    with pytest.raises(ValueError, match="method must be one of 'wald', 'profile'"):
        model.confint(method="score")


def test_the_sandwich_of_housing_is_that_of_R():
    assert_allclose(
        same(robust=True).standard_errors,
        [0.126194822228, 0.12636264757, 0.103596911874, 0.128601882494,
         0.120865489354, 0.152977890261, 0.152058744939, 0.0962561000904],
        rtol=1e-6,
    )  # fmt: skip
    assert_allclose(
        same(cluster=np.arange(72) // 3).standard_errors,
        [0.203554478006, 0.190879531902, 0.144587208517, 0.123798736697,
         0.174837971226, 0.179149779612, 0.224618044761, 0.119991987099],
        rtol=1e-6,
    )  # fmt: skip


# the roots of R's profile log likelihood, by clm with offsets and uniroot
WINE_PROFILE = [[1.50974834109, 3.59518822962], [0.615786795724, 2.492392291387]]


HOUSING_PROFILE = [
    [0.361641271057, 0.7719536094442], [1.040969138057, 1.5395804478930],
    [-0.806958576082, -0.3394037670882], [-0.670586003962, -0.0620450405484],
    [-1.389385525497, -0.7953387204809], [0.173358662469, 0.5479284172664],
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "expected"), [(WINE, WINE_PROFILE), (HOUSING, HOUSING_PROFILE)]
)
def test_profile_intervals_are_those_of_R(rows, expected):
    ends = fitted(rows).confint(method="profile")
    assert_allclose(
        np.column_stack([ends["lower"], ends["upper"]]), expected, rtol=2e-7
    )


def test_marginal_effects_of_housing_are_those_of_R():
    table = same().marginal_effects()
    own = table["name"] == "x6"
    assert_allclose(
        table["effect"][own], [-0.0750399075348, -0.00374330100712, 0.0787832085419],
        rtol=1e-6,
    )  # fmt: skip
    error = np.array([0.0198854391442, 0.00178467244072, 0.0205601829116])
    assert_allclose(table["standard_error"][own], error, rtol=1e-6)
    z = table["effect"][own] / error
    assert_allclose(table["z"][own], z, rtol=1e-5)
    assert_allclose(table["p_value"][own], 2 * scipy.stats.norm.sf(abs(z)), rtol=1e-4)
    margin = scipy.stats.norm.isf(0.025) * error
    for end, sign in (("lower", -1), ("upper", 1)):
        assert_allclose(
            table[end][own], table["effect"][own] + sign * margin, rtol=1e-4
        )
