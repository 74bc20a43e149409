"""The log-gamma link with an estimated shape, against R, scipy and other links.

Figures of R are what tools/reference/log_gamma.R prints.
"""

import io

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pom_data import SETS
from scipy import special

import ordinal
from ordinal._cumulative.design import Design
from ordinal._cumulative.likelihood import cumulative
from ordinal._cumulative.likelihood import density as density_of
from ordinal._input.problem import Problem
from ordinal.linear import fit_flexible
from ordinal.linear.flexible import EstimatedShape, FixedShape, density, slope, tails

WINE, HOUSING = SETS["wine"], SETS["housing"]
T = np.linspace(-7, 7, 57)
shapes = pytest.mark.parametrize("shape", [-4.0, -1.0, -0.3, 0.05, 0.25, 1.0, 2.5])


def fit(data, **options):
    return fit_flexible(data.X, data.y, sample_weight=data.weight, **options)


@shapes
def test_tails_are_those_of_the_gamma_distribution(shape):
    q = shape**-2
    x = q * np.exp(shape * T)
    expected = special.gammainc(q, x), special.gammaincc(q, x)
    if shape < 0:
        expected = expected[::-1]
    for found, tail in zip(tails(shape, T), expected, strict=True):
        # digits of scipy's argument are lost where q is large
        assert_allclose(found[tail > 1e-250], tail[tail > 1e-250], rtol=2e-11)


@pytest.mark.parametrize(
    ("shape", "link"), [(0.0, "probit"), (1.0, "cloglog"), (-1.0, "loglog")]
)
def test_three_links_are_cases(shape, link):
    t = np.append(T, [-np.inf, np.inf])
    f = density(shape, t)
    assert not f[-2:].any()
    assert_allclose(f[:-2], density_of(link, T), rtol=1e-12, atol=1e-300)
    F, above = tails(shape, t)
    assert_allclose(F, cumulative(link, t), rtol=1e-12, atol=1e-300)
    assert_allclose(F + above, 1, rtol=1e-14)


@shapes
def test_densities_are_derivatives(shape):
    t, near = np.linspace(-2, 1.5, 15), {"rtol": 1e-5, "atol": 1e-7}
    by_t = oracles.slope(lambda t: tails(shape, t)[0], 1e-5, t)
    assert_allclose(by_t, density(shape, t), **near)
    by_t = oracles.slope(lambda t: density(shape, t), 1e-5, t)
    assert_allclose(by_t, slope(shape, t), **near)


@pytest.mark.parametrize(
    ("data", "options", "loglik", "estimates", "errors"),
    [
        (WINE, {}, -85.72141081,
         [-0.8797773547, 0.6678306828, 1.9806826104, 2.8593124996, 1.5071959499,
          0.8614400451, 0.1614740627],
         [0.5002965739, 0.3449548444, 0.3825630310, 0.4655846223, 0.2947388423,
          0.2675207560, 0.5751734343]),
        (HOUSING, {}, -1739.598907,
         [-0.4036527512, 0.3337871298, 0.3501982644, 0.8013487027, -0.3563320540,
          -0.2286352532, -0.6730054637, 0.2167414639, 0.2498790459],
         [0.17146349467, 0.15006147701, 0.06478714541, 0.08481308850, 0.07552075736,
          0.09828847762, 0.09377729125, 0.05904208735, 0.35252209347]),
        (WINE, {"threshold": "equidistant"}, -87.0594373,
         [-0.4770990447, 1.2602796816, 1.4561579449, 0.8664456383, -0.3106336914],
         [0.2880897303, 0.1425449947, 0.2894830760, 0.2670966473, 0.5214643496]),
    ],
)  # fmt: skip
def test_fits_are_those_of_clm(data, options, loglik, estimates, errors):
    model = fit(data, **options)
    assert model.convergence.converged
    assert_allclose(model.loglik, loglik, atol=2e-7)
    assert_allclose(model.parameters, estimates, rtol=2e-4)
    assert_allclose(model.standard_errors, errors, rtol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", ["flexible", "symmetric"])
def test_derivatives_are_those_of_the_loss(threshold):
    data, none = SETS["made"], np.zeros(0, np.int64)
    problem = Problem.from_arrays(data.X, data.y, sample_weight=data.weight)
    columns = np.array([1, 2]), np.array([0]), none
    design = Design.from_problem(problem, *columns, data.offset, threshold)
    loss = EstimatedShape(design)
    x = np.append(FixedShape(design, 0.4).start(), 0.4)
    x += np.random.default_rng(0).normal(scale=0.05, size=x.size)
    here = loss.at(x)
    assert np.isfinite(here.value)

    def value_and_gradient(x):
        there = loss.at(x)
        return np.append(there.value, there.gradient)

    gradient, *curvature = oracles.slopes(value_and_gradient, x, 1e-4)
    assert_allclose(here.gradient, gradient, atol=1e-8)
    assert_allclose(here.hessian.dense(), curvature, atol=1e-7)


def test_scores_of_rows_are_those_of_the_log_gamma_link():
    """They add up to the gradient of the loss."""
    data, none = SETS["made"], np.zeros(0, np.int64)
    problem = Problem.from_arrays(data.X, data.y, sample_weight=data.weight)
    columns = np.array([1, 2]), np.array([0]), none
    design = Design.from_problem(problem, *columns, data.offset, "flexible")
    loss = FixedShape(design, 0.4)
    x = loss.start() + np.random.default_rng(0).normal(
        scale=0.05, size=len(loss.start())
    )
    total = sum(design.weight[rows] @ s for rows, s in loss.scores(x))
    assert_allclose(-total / design.total, loss.at(x).gradient, atol=1e-12)


def test_reversed_ranks_have_the_negative_shape():
    model = fit(WINE)
    other = fit_flexible(-WINE.X, WINE.y.max() - WINE.y, sample_weight=WINE.weight)
    assert_allclose(other.shape, -model.shape, atol=1e-6)
    assert_allclose(other.coef, model.coef, atol=1e-6)
    assert_allclose(other.thresholds, -model.thresholds[::-1], atol=1e-6)


def test_no_link_that_it_contains_is_better_and_weights_are_rows():
    model = fit(HOUSING)
    for link in ("probit", "cloglog", "loglog"):
        plain = ordinal.fit_pom(
            HOUSING.X, HOUSING.y, sample_weight=HOUSING.weight, link=link
        )
        assert plain.loglik < model.loglik
        assert_allclose(plain.null_loglik, model.null_loglik)
        test = ordinal.lr_test(plain, model)
        assert_allclose([test.chi2, test.dof], [2 * (model.loglik - plain.loglik), 1])
    twice = fit_flexible(np.tile(WINE.X, (2, 1)), np.tile(WINE.y, 2))
    weighted = fit_flexible(WINE.X, WINE.y, sample_weight=2 * WINE.weight)
    assert_allclose(weighted.parameters, twice.parameters, atol=1e-6)
    assert_allclose(weighted.standard_errors, twice.standard_errors, rtol=1e-6)
    P = model.predict_proba(HOUSING.X)
    own = P[np.arange(len(P)), HOUSING.y]
    assert_allclose(HOUSING.weight @ np.log(own), model.loglik)


def test_a_large_shape_has_a_log_likelihood_without_features():
    """An offset that has no effect asks for much noise, and so for a large shape."""
    rng = np.random.default_rng(2)
    X, offset = rng.normal(size=(100, 2)), rng.normal(size=100)
    y = np.digitize(X @ [1.0, -0.6] + rng.logistic(size=100), [-1.2, 0.2, 1.4])
    model = fit_flexible(X, y, offset=offset)
    assert abs(model.shape) > 10
    assert -np.inf < model.null_loglik < model.loglik
    model.save(io.BytesIO())


def test_tables_files_and_what_is_refused():
    model = fit(WINE)
    assert "lambda" in model.summary()
    assert model.table()["kind"][-1] == "link"
    assert model.dof == model.parameters.size
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = ordinal.load(file)
    assert_array_equal(loaded.predict_proba(WINE.X), model.predict_proba(WINE.X))
    assert_array_equal(loaded.standard_errors, model.standard_errors)
    with pytest.raises(ValueError, match="for models of fit_pom"):
        model.confint(method="profile")
    X = np.arange(6.0)[:, None]
    with pytest.warns(ordinal.ConvergenceWarning, match="separated"):
        fit_flexible(X, [0, 0, 1, 1, 2, 2])


@pytest.mark.filterwarnings("ignore::ordinal.DisorderedThresholdsWarning")
def test_nominal_effects_contain_the_model_without():
    data = SETS["made"]
    plain, each = fit(data), fit(data, nominal=[0])
    assert each.loglik > plain.loglik
    assert each.predict_proba(data.X).min() >= 0
