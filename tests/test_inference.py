"""Functions of `ordinal.inference` for all linear models, and behind every wrapper.

What a function computes for models of `fit_pom` is the subject of test_pom_*.py; here
are the families and doors: stopping ratios and adjacent categories, random effects,
preprocessing, searches, estimators of scikit-learn.
"""

import inspect
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import norm
from strategies import raises, slow

import ordinal
import ordinal.sklearn
from ordinal import inference
from ordinal.linear import fit_ratio
from ordinal.mixed import ClmmModel
from ordinal.model_selection import Grid
from ordinal.models import PomModel

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 3))
SCORE = X @ [1.0, -0.5, 0.0] + RNG.logistic(size=120)
Y = np.digitize(SCORE, [-0.7, 0.8])
JUDGE = np.arange(120) % 12
FAMILIES = "stopping", "backward", "adjacent"


def mixed(family="cumulative", **options):
    """Fit a random intercept, and a slope if the options say so."""
    moved = 2 * np.random.default_rng(1).normal(size=12)[JUDGE]
    y = np.digitize(SCORE + moved, [-0.7, 0.8])
    groups = {"judge": JUDGE}
    return ordinal.fit_clmm(X, y, groups=groups, family=family, **options), y, groups


@pytest.mark.parametrize("family", FAMILIES)
def test_terms_of_ratio_models_are_tested_by_fits_without_them(family):
    model = fit_ratio(X, Y, family=family, tol=1e-9)
    smaller = [fit_ratio(np.delete(X, j, 1), Y, family=family) for j in range(3)]
    table = inference.drop1(model)
    assert_allclose(table["loglik"][1:], [m.loglik for m in smaller], rtol=1e-10)
    expected = [inference.lr_test(m, model).chi2 for m in smaller]
    assert_allclose(table["chi2"][1:], expected, atol=1e-7)
    one = inference.add1(model, ["x1", "x3"])
    assert_allclose(one["loglik"], [smaller[1].loglik, model.loglik], rtol=1e-10)
    found = inference.step(model)
    assert found.model.coef_names == ("x1", "x2")
    assert type(found.model) is type(model)
    assert found.model.family == family
    assert_allclose(found.model.coef, smaller[2].coef, atol=1e-5)
    assert_allclose(found.model.thresholds, smaller[2].thresholds, atol=1e-5)
    assert_allclose(found.model.covariance, smaller[2].covariance, rtol=1e-4)
    again = inference.drop1(found.model)  # the smaller model has training rows too
    assert_allclose(again["loglik"][1:], fits_without(family), rtol=1e-10)


def fits_without(family):
    return [fit_ratio(X[:, [j]], Y, family=family).loglik for j in (1, 0)]


def test_thresholds_of_smaller_ratio_models_need_not_increase():
    y = np.where(np.arange(120) % 20 == 0, 1, np.where(SCORE > 0, 2, 0))
    model = fit_ratio(X, y, family="adjacent")
    found = inference.step(model, keep=["x1"], direction="backward").model
    assert found.coef.size < 3
    assert found.thresholds[0] > found.thresholds[1]
    own = [int(name[1]) - 1 for name in found.coef_names]
    expected = fit_ratio(X[:, own], y, family="adjacent")
    assert_allclose(found.thresholds, expected.thresholds, atol=1e-5)
    P, other = found.predict_proba(X), expected.predict_proba(X[:, own])
    assert_allclose(P, other, atol=1e-5)
    # the thresholds of a file are those of the fit, in any order
    assert_array_equal(found.statistics.crossings, [0, 0])


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_slopes_of_ratio_models_are_tested_by_nominal_effects(family):
    model = fit_ratio(X, Y, family=family)
    table = inference.proportional_odds_test(model, method="lr")
    for j in range(3):
        larger = fit_ratio(X, Y, family=family, nominal=[j])
        assert_allclose(table["chi2"][1 + j], 2 * (larger.loglik - model.loglik))
    assert table["dof"].tolist() == [3, 1, 1, 1]
    with pytest.raises(TypeError, match="Brant's test is not defined for a RatioModel"):
        inference.proportional_odds_test(model)


RANDOM = {  # of fits by quadrature, by Laplace, and where the fit finds the nodes
    "nodes": dict(n_quadrature=7),
    "scale": dict(n_quadrature=5, scale=[1]),
    "adjacent": dict(n_quadrature=1, family="adjacent"),
    "slopes": dict(n_quadrature=1, slopes={"judge": [0]}),
    "auto": dict(n_quadrature="auto"),
}


@pytest.mark.parametrize(
    "case", ["scale", "auto", *slow("nodes", "adjacent", "slopes")]
)
def test_terms_of_mixed_models_are_tested_by_fits_without_them(case):
    """Each figure is that of an explicit fit with the same random effects and nodes."""
    options = RANDOM[case]
    model, y, groups = mixed(**options)
    table = inference.drop1(model)
    assert table["name"].tolist() == ["none", "x1", "x2", "x3"]
    explicit = options | {"n_quadrature": model.n_quadrature}
    for row, j in enumerate(range(3), start=1):
        smaller = fit_without(j, y, groups, **explicit)
        assert table["loglik"][row] == pytest.approx(smaller.loglik, abs=1e-8)
        assert table["aic"][row] == pytest.approx(smaller.aic, abs=1e-8)
        if case == "auto":  # groups of one rank are integrated by panels
            continue
        test = inference.lr_test(smaller, model)
        assert table["chi2"][row] == pytest.approx(test.chi2, abs=2e-8)
        assert table["p_value"][row] == pytest.approx(test.p_value, abs=1e-8)
        assert table["dof"][row] == test.dof == 1 + (case == "scale" and j == 1)
    assert table["loglik"][0] == model.loglik


def fit_without(j, y, groups, *, scale=(), slopes=None, **options):
    table = pd.DataFrame(X, columns=["x1", "x2", "x3"]).assign(y=y, **groups)
    left = " + ".join(f"x{k + 1}" for k in range(3) if k != j)
    random = "1 + x1" if slopes else "1"
    formula = f"y ~ {left} + ({random} | judge)"
    scale = [f"x{k + 1}" for k in scale if k != j]
    return ordinal.fit_clmm(formula, table, scale=scale, **options)


def test_step_of_a_mixed_model_ends_at_the_fit_of_its_terms():
    model, y, groups = mixed(n_quadrature=7)
    found = inference.step(model)
    assert found.table["step"].tolist() == ["start", "- x3"]
    smaller = ordinal.fit_clmm(X[:, :2], y, groups=groups, n_quadrature=7)
    assert isinstance(found.model, ClmmModel)
    assert found.model.coef_names == ("x1", "x2")
    assert found.model.loglik == pytest.approx(smaller.loglik, abs=1e-8)
    for name in ("coef", "thresholds", "covariance", "joint_covariance"):
        ours, theirs = getattr(found.model, name), getattr(smaller, name)
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert_allclose(found.model.ranef()["mode"], smaller.ranef()["mode"], atol=1e-5)
    known = {"effects": "known", "groups": groups}
    P = found.model.predict_proba(X, **known)
    assert_allclose(P, smaller.predict_proba(X[:, :2], **known), atol=1e-6)
    # It has its training rows, and its own tests.
    assert_allclose(found.model.residuals(), smaller.residuals(), atol=1e-5)
    again, expected = (inference.drop1(m) for m in (found.model, smaller))
    assert_allclose(again["chi2"][1:], expected["chi2"][1:], atol=2e-8)
    forward = inference.step(model, direction="forward")
    assert forward.model.coef_names == ("x1", "x2")
    assert_allclose(forward.model.coef, found.model.coef, atol=1e-5)
    one = inference.add1(model, ["x1"])
    assert one["name"].tolist() == ["none", "x2", "x3"]
    assert one["loglik"][1] == pytest.approx(smaller.loglik, abs=1e-8)


@pytest.mark.parametrize("family", ["cumulative", "stopping"])
def test_penalised_models_have_their_training_rows(family):
    path = ordinal.fit_pom_path(X, Y, n_lambdas=2, family=family)
    fits = [ordinal.fit_pom(X, Y, l1=0.01, l2=0.1), fit_ratio(X, Y, l2=0.1)]
    for model in (*path.models, *fits):
        again = inference.residuals(model, X, Y)
        assert_allclose(inference.residuals(model), again, rtol=1e-9)


def test_terms_of_a_mixed_model_need_its_unchanged_training_rows():
    table, y = X.copy(), mixed()[1]
    model = ordinal.fit_clmm(table, y, groups={"judge": JUDGE}, n_quadrature=1)
    given = {"groups": {"judge": JUDGE}, "n_quadrature": 1}
    clustered = ordinal.fit_clmm(X, y, cluster=JUDGE, **given)
    raises(ValueError, "drop1 compares likelihoods", inference.drop1, clustered)
    with pytest.raises(ValueError, match="drop1 needs the training rows"):
        inference.drop1(pickle.loads(pickle.dumps(model)))
    table[:, 0] *= 2
    for function in (inference.drop1, inference.step, inference.residuals):
        name = function.__name__
        raises(ValueError, f"{name} needs unchanged training rows", function, model)
    raises(ValueError, "needs unchanged training rows", model.confint_deviations)


def test_fits_of_terms_of_a_mixed_model_that_end_early_are_said(monkeypatch):
    model, _, _ = mixed(n_quadrature=1)
    monkeypatch.setattr("ordinal.mixed.refits._MAX_ITER", 1)
    said = r"drop1: the fit of \['x.', 'x.'\] ended with status max_iter"
    with pytest.warns(ordinal.exceptions.ConvergenceWarning, match=said):
        inference.drop1(model)


def test_step_of_a_ratio_model_says_that_ranks_are_separated():
    x = np.arange(20.0)
    with pytest.warns(ordinal.exceptions.ConvergenceWarning):
        model = fit_ratio(np.column_stack([x, x % 3]), x // 7)
    found = inference.step(model).model
    assert found.coef_names == ("x1",)
    assert found.statistics.separated.tolist() == [0]
    assert found.convergence.status is ordinal.models.Status.SEPARATED


def test_contrasts_and_tests_of_ratio_models_are_functions_of_the_covariance():
    levels = np.array(["a", "b", "c"])[np.arange(120) % 3]
    model = fit_ratio(pd.DataFrame({"dose": levels, "x": X[:, 0]}), Y)
    found = inference.contrasts(model, "dose", adjust="none")
    own = [model.parameter_names.index(f"dose[{c}]") for c in "bc"]
    b, V = model.parameters[own], model.covariance[np.ix_(own, own)]
    assert_allclose(found["estimate"], [b[0], b[1], b[1] - b[0]])
    variance = [V[0, 0], V[1, 1], V[0, 0] + V[1, 1] - 2 * V[0, 1]]
    assert_allclose(found["standard_error"], np.sqrt(variance))
    assert_allclose(inference.wald_test(model)["chi2"][0], b @ np.linalg.solve(V, b))
    assert inference.glance(model)["parameters"] == model.dof
    assert inference.tidy(model)["estimate"].size == model.dof
    assert {".leverage", ".residual"} < {*inference.augment(model)}


NOT_DEFINED = {
    "fit_ratio": {"scale_test", "jeffreys"},
    "fit_clmm": {
        "proportional_odds_test", "scale_test", "jeffreys", "influence",
        "hosmer_lemeshow", "augment", "negative_rows", "goodness_of_fit",
    },
}  # fmt: skip
ARGUMENTS = {
    "add1": ([],), "contrasts": ("g",), "equality_test": (["x1", "x2"],),
    "simultaneous_band": (X[:3],), "predictions": (X,), "marginal_effects": (X,),
    "for_marginaleffects": (X,),
}  # fmt: skip


def functions():
    """Return the functions of one model, by name."""
    for name in inference.__all__:
        function = getattr(inference, name)
        if inspect.isfunction(function):
            if "model" in inspect.signature(function).parameters:
                yield name, function


@pytest.mark.parametrize("fit", ["fit_ratio", "fit_clmm"])
def test_what_a_family_lacks_is_refused_in_one_wording(fit):
    model = fit_ratio(X, Y) if fit == "fit_ratio" else mixed()[0]
    kind, refused = type(model).__name__, set()
    for name, function in functions():
        if name in ("contrasts", "monotone_effects", "for_marginaleffects"):
            continue  # no categories, and a package that need not be installed
        if name == "proportional_odds_test":
            arguments = ("lr",)
        else:
            arguments = ARGUMENTS.get(name, ())
        if name in NOT_DEFINED[fit]:
            with pytest.raises(TypeError, match=f"{name} is not defined for a {kind}:"):
                function(model, *arguments)
            refused.add(name)
        else:
            function(model, *arguments)
    assert refused == NOT_DEFINED[fit]


def test_a_model_that_is_not_linear_is_refused_in_one_wording():
    other = ordinal.fit_svorim(X, Y)
    for name, function in functions():
        with pytest.raises(TypeError, match=f"{name} needs a model of fit_"):
            function(other, *ARGUMENTS.get(name, ()))
    path = ordinal.fit_pom_path(X, Y, n_lambdas=2)
    raises(TypeError, "needs a model of fit_pom", inference.tidy, path)


def test_functions_take_searches_estimators_and_preprocessed_models():
    search = {"search": Grid(l2=[0.0]), "cv": 2, "preprocess": None}
    found = ordinal.select("pom", X, Y, **search)
    estimator = ordinal.sklearn.POM().fit(X, Y)
    plain = ordinal.fit_pom(X, Y)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    by_name = ordinal.select("pom", frame, Y, **search)
    assert by_name.model.feature_names == ("a", "b", "c")
    scaled = ordinal.select("pom", X, Y, search=Grid(l2=[0.0]), cv=2)
    best = ordinal.compare(X, Y, methods=["pom"], cv=2).best
    for door in (found, estimator, by_name, scaled, best):
        if door is not estimator:  # which sorts rows by their content
            assert_allclose(inference.residuals(door), plain.residuals(), atol=1e-5)
        for name in ("tidy", "wald_test", "glance", "drop1"):
            ours, theirs = (getattr(inference, name)(m) for m in (door, plain))
            for column, values in theirs.items():
                if values.dtype.kind == "f":
                    assert_allclose(ours[column], values, rtol=1e-5, atol=1e-8)


def test_rows_reach_a_preprocessed_model_through_its_preprocessor():
    """A linear model may stand behind a preprocessor, although fits undo it."""
    how = ordinal.preprocessing.Standardizer.fit(X)
    inner = ordinal.fit_pom(how.transform(X), Y)
    model = ordinal.preprocessing.PreprocessedModel(how, inner)
    for name in ("residuals", "hosmer_lemeshow", "predictions", "augment"):
        function = getattr(inference, name)
        given = (Y,) if name not in ("predictions",) else ()
        ours = function(model, X, *given)
        theirs = function(inner, how.transform(X), *given)
        for a, b in zip(values_of(ours), values_of(theirs), strict=True):
            assert_array_equal(a, b)


def values_of(found):
    if isinstance(found, dict):
        return found.values()
    return found if isinstance(found, tuple) else [found]


def test_methods_that_delegate_have_the_parameters_of_their_function():
    """Help and editors show them, and not **options."""
    model = ordinal.fit_pom(X, Y)
    delegating = [name for name in inference.__all__ if hasattr(PomModel, name)]
    assert delegating == [
        "confint", "marginal_effects", "predictions", "residuals",
        "summary", "table",
    ]  # fmt: skip
    for name in delegating:
        method, function = getattr(model, name), getattr(inference, name)
        (_, *expected) = inspect.signature(function).parameters.values()
        assert [*inspect.signature(method).parameters.values()] == expected
        assert inspect.getdoc(method) == inspect.getdoc(function)
    for cls in (PomModel, ClmmModel, type(fit_ratio(X, Y))):
        assert all(getattr(cls, n) is getattr(inference, n) for n in delegating)


@pytest.mark.parametrize("family", ["cumulative", "adjacent", "backward"])
def test_residuals_of_mixed_models_are_at_the_modes(family):
    model, y, groups = mixed(family)
    P = model.predict_proba(X, effects="known", groups=groups)
    below = np.hstack([np.zeros((120, 1)), np.cumsum(P, axis=1)])
    row = np.arange(120)
    expected = below[row, y] - (1 - below[row, y + 1])
    assert_allclose(model.residuals(), expected, atol=1e-12)
    assert_allclose(model.residuals(X, y, groups=groups), expected, atol=1e-12)
    deviance = model.residuals(kind="deviance")
    assert_allclose(np.abs(deviance), np.sqrt(-2 * np.log(P[row, y])), rtol=1e-9)
    given = {"effects": "known", "groups": groups}
    offsets = np.full((2, 120), [[-1e-5], [1e-5]])
    moved = [model.predict_proba(X, offset=offset, **given) for offset in offsets]
    slope = np.diff([np.log(p[row, y]) for p in moved], axis=0)[0] / 2e-5
    assert_allclose(model.residuals(kind="score"), slope, atol=1e-8)


@pytest.mark.parametrize("fit", ["fit_pom", "fit_ratio", "fit_clmm"])
def test_quantile_residuals_lie_between_the_probabilities_of_ranks(fit):
    if fit == "fit_clmm":
        model, y, groups = mixed()
        P = model.predict_proba(X)  # of a new judge
    else:
        model, y = {"fit_pom": ordinal.fit_pom, "fit_ratio": fit_ratio}[fit](X, Y), Y
        P, groups = model.predict_proba(X), None
    below = np.hstack([np.zeros((120, 1)), np.cumsum(P, axis=1)])
    row = np.arange(120)
    expected = below[row, y] + np.random.default_rng(3).random(120) * P[row, y]
    found = inference.residuals(model, kind="quantile", rng=3)
    assert_allclose(norm.cdf(found), expected, atol=1e-10)
    given = {} if groups is None else {"groups": groups}
    if fit == "fit_clmm":
        with pytest.raises(ValueError, match="groups must be None with kind="):
            model.residuals(X, y, kind="quantile", rng=3, **given)
        given = {}
    again = inference.residuals(model, X, y, kind="quantile", rng=3, **given)
    assert_allclose(again, found, atol=1e-10)


def test_quantile_residuals_are_exact_far_in_the_tails():
    model = ordinal.fit_pom(X, Y, link="probit")
    far = np.array([[60.0, 0, 0], [-60.0, 0, 0]])
    low, high = inference.residuals(model, far, [0, 2], kind="quantile", rng=0)
    assert low < model.thresholds[0] - 60 * model.coef[0] < -30
    assert high > 30


@pytest.mark.parametrize("family", ["cumulative", "stopping"])
def test_simulated_ranks_have_the_probabilities_of_the_model(family):
    """Of new judges, and ranks of one judge are as dependent as the model says."""
    model, _, groups = mixed(family)
    n = 2000
    drawn = inference.simulate(model, n=n, rng=0)
    again = inference.simulate(model, X, n=3, groups=groups, rng=0)
    assert_array_equal(drawn[:, :3], again)
    P, spread = model.predict_proba(X), []
    for k in range(3):
        assert np.abs((drawn == k).mean(axis=1) - P[:, k]).max() < 5 * np.sqrt(0.25 / n)
        # the sum over the rows, whose ranks are dependent, has another variance
        spread.append((drawn == k).sum(axis=0).var())
    assert spread[0] > 1.5 * (P[:, 0] * (1 - P[:, 0])).sum()
    if family == "cumulative":
        # P(both <= 0) of two rows of one judge, by quadrature over the effect
        t, w = np.polynomial.hermite_e.hermegauss(60)
        sd = model.deviations["sd"][0]
        eta = model.thresholds[0] - (X @ model.coef)[[0, 12], None] - sd * t
        both = float(w / w.sum() @ expit(eta).prod(axis=0))
        assert JUDGE[0] == JUDGE[12]
        found = ((drawn[0] == 0) & (drawn[12] == 0)).mean()
        error = np.sqrt(both * (1 - both) / n)
        assert abs(found - both) < 3 * error
        assert both - P[0, 0] * P[12, 0] > 5 * error  # far from independence
        assert model.deviations["sd"][0] > 1


def test_simulated_labels_are_those_of_the_training_rows():
    words = np.array(["low", "mid", "top"])[Y]
    model = ordinal.fit_pom(X, words, classes=["low", "mid", "top"])
    drawn = inference.simulate(model, X[:5], n=4, rng=0)
    assert drawn.shape == (5, 4)
    assert {*drawn.ravel()} <= {"low", "mid", "top"}
    assert_array_equal(drawn, inference.simulate(model, X[:5], n=4, rng=0))
    with pytest.raises(TypeError, match="simulate takes groups for models with random"):
        inference.simulate(model, groups={"a": Y})
    raises(ValueError, "n must be", inference.simulate, model, n=0)


def wide_groups(n=400, size=20, sd=1.5, seed=0):
    """Rows of groups that differ much: features, ranks and groups."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n, 1)), np.arange(n) // size
    score = X[:, 0] + sd * rng.normal(size=n // size)[group] + rng.logistic(size=n)
    return X, np.digitize(score, [-1, 0, 1]), group


def test_simulated_residuals_are_places_among_simulated_labels():
    X, y, group = wide_groups()
    model = ordinal.fit_clmm(X, y, groups={"g": group}, n_quadrature=5)
    draws = inference.simulate(model, n=199, rng=5)
    found = inference.simulated_residuals(model, n=199, rng=5)
    by = inference.simulated_residuals(model, by=group, n=199, rng=5)
    sums = [np.array([a[group == g].sum(0) for g in range(20)]) for a in (y, draws)]
    for values, own, drawn in ((found.values, y, draws), (by.values, *sums)):
        below = (drawn < own[:, None]).sum(axis=1)
        upto = (drawn <= own[:, None]).sum(axis=1)
        assert np.all(values >= below / 200)
        assert np.all(values <= (upto + 1) / 200)
    # R's DHARMa would find the same limits of each row, from the probabilities.
    far = found.values - norm.cdf(inference.residuals(model, kind="quantile", rng=0))
    P = model.predict_proba(X)[np.arange(len(y)), y]
    assert np.all(np.abs(far) < P + 5 * np.sqrt(0.25 / 199))
    how = {"by": group, "n": 199, "rng": 5, "groups": {"g": group}}
    again = inference.simulated_residuals(model, X, y, **how)
    assert_array_equal(again.values, by.values)
    assert_array_equal(again.band, by.band)
    with pytest.raises(ValueError, match="by must hold a label for each of the 400"):
        inference.simulated_residuals(model, by=group[1:])


def test_simulated_residuals_reject_models_without_the_groups():
    X, y, group = wide_groups(size=10, sd=2.0)
    mixed = ordinal.fit_clmm(X, y, groups={"g": group}, n_quadrature=1)
    plain = ordinal.fit_pom(X, y)
    test = partial(inference.simulated_residuals, by=group)
    p = [test(m, rng=0).p_value for m in (mixed, plain)]
    assert p[0] > 0.2
    assert p[1] <= 1 / 100
    # p-values of data sets that the model draws are uniform
    labels = inference.simulate(mixed, n=60, rng=1).T
    rows = {"X": X, "groups": {"g": group}, "n": 39}
    tests = (test(mixed, y=own, **rows, rng=k) for k, own in enumerate(labels))
    values = [found.p_value for found in tests]
    assert abs(np.mean(values) - 0.51) < 4 * np.sqrt(1 / 12 / 60)
