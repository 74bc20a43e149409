"""Residuals, goodness of fit and influence of cumulative models.

Figures of R are those that tests/reference/diagnostics.R prints.
"""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from internals import Likelihood
from numpy.testing import assert_allclose
from oracles import DISTRIBUTIONS, cumulative_edges, cumulative_terms, slope, slopes
from pom_data import SETS
from strategies import raises
from test_pom import crossing

import ordinal
from ordinal import fit_pom, inference, plot
from ordinal.plot.coefficients import smooth

WINE, HOUSING, MADE = SETS["wine"], SETS["housing"], SETS["made"]
links = pytest.mark.parametrize("link", DISTRIBUTIONS)


def fitted(rows, **options):
    return fit_pom(rows.X, rows.y, tol=1e-10, **options)


def whole(**options):
    """A fit of the rows of MADE with weights, offsets and nominal or scale effects."""
    return fitted(MADE, sample_weight=MADE.weight, offset=MADE.offset, **options)


@links
def test_residuals_are_what_their_definitions_say(link):
    model = whole(link=link, scale=[1])
    P = model.predict_proba(MADE.X, offset=MADE.offset)
    r = np.arange(4)
    below = (P * (r < MADE.y[:, None])).sum(axis=1)
    above = (P * (r > MADE.y[:, None])).sum(axis=1)
    assert_allclose(model.residuals(), below - above, atol=1e-12)
    own = P[np.arange(120), MADE.y]
    deviance = model.residuals(kind="deviance")
    assert_allclose(deviance, np.sign(below - above) * np.sqrt(-2 * np.log(own)))
    assert MADE.weight @ deviance**2 == pytest.approx(-2 * model.loglik)
    by_offset = slope(
        lambda t: np.log(model.predict_proba(MADE.X, offset=MADE.offset + t)), 1e-4
    )
    score = model.residuals(kind="score")
    assert_allclose(score, by_offset[np.arange(120), MADE.y], atol=1e-7)
    assert_allclose((MADE.weight * score) @ MADE.X, 0, atol=1e-6)


def test_residuals_where_thresholds_cross_are_those_of_the_sorted_probabilities():
    X, y = crossing()
    with pytest.warns(ordinal.exceptions.DisorderedThresholdsWarning):
        model = fit_pom(X, y, nominal=[0])
    P = model.predict_proba(X)
    for rank in range(4):
        expected = P[:, :rank].sum(axis=1) - P[:, rank + 1 :].sum(axis=1)
        assert_allclose(model.residuals(X, np.full(150, rank)), expected, atol=1e-12)


@links
def test_surrogate_residuals_have_the_distribution_of_the_link(link):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((3000, 1))
    F = DISTRIBUTIONS[link]
    y = np.digitize(x[:, 0] + F.rvs(size=3000, random_state=rng), [-1, 0, 1.5])
    r = fit_pom(x, y, link=link).residuals(kind="surrogate", rng=1)
    mean = 0.0 if link == "cauchit" else F.mean()
    assert scipy.stats.kstest(r + mean, F.cdf).pvalue > 1e-3
    if link != "cauchit":
        assert abs(np.corrcoef(r, x[:, 0])[0, 1]) < 0.06
    wrong = fit_pom(x**2, y, link=link).residuals(kind="surrogate", rng=1)
    assert scipy.stats.spearmanr(wrong, x[:, 0]).statistic > 0.3  # x is not in it


def test_residuals_of_other_rows_are_those_of_the_training_rows():
    table = pd.DataFrame({"a": MADE.X[:, 0], "b": list("xyz" * 40)})
    y = pd.Categorical.from_codes(MADE.y, ["p", "q", "r", "s"], ordered=True)
    model = fit_pom(table, y)
    for kind in ("probability", "score", "deviance"):
        assert_allclose(
            model.residuals(table, y, kind=kind), model.residuals(kind=kind)
        )
    raises(ValueError, "needs y with X", model.residuals, X=table)
    raises(ValueError, "all other arguments by name", model.residuals, "deviance")
    raises(ValueError, "y holds 't' in row 0", model.residuals, X=table[:1], y=["t"])
    raises(ValueError, "kind must be", model.residuals, kind="pearson")
    loaded = pickle.loads(pickle.dumps(model))
    assert_allclose(loaded.residuals(X=table, y=y), model.residuals())
    raises(ValueError, "needs the training rows", loaded.residuals)


@pytest.mark.parametrize(("groups", "chi2", "dof", "p"), [
    (10, 37.5167434036201968, 26, 0.0671015316565659),
    (5, 17.747463609397446, 11, 0.087628367405066),
])  # fmt: skip
def test_hosmer_lemeshow_agrees_with_r(groups, chi2, dof, p):
    found = inference.hosmer_lemeshow(fitted(MADE), groups=groups)
    assert found.dof == dof
    assert_allclose([found.chi2, found.p_value], [chi2, p], rtol=1e-8)
    assert_allclose(found.observed.sum(axis=1), found.expected.sum(axis=1))


def test_hosmer_lemeshow_counts_weights_as_rows():
    weighted = inference.hosmer_lemeshow(fitted(MADE, sample_weight=MADE.weight))
    rows = np.repeat(np.arange(120), MADE.weight.astype(int))
    repeated = inference.hosmer_lemeshow(fit_pom(MADE.X[rows], MADE.y[rows], tol=1e-10))
    assert_allclose(weighted[:3], repeated[:3], rtol=1e-8)
    assert inference.hosmer_lemeshow(fitted(WINE)).observed.shape == (3, 5)
    constant = fit_pom([[0.0], [1.0]] * 20, [0, 0, 1, 1] * 10)
    raises(ValueError, r"needs 3 groups .* make 1", inference.hosmer_lemeshow, constant)
    found = inference.hosmer_lemeshow(fitted(MADE), groups=8)
    shown = f"chi2={found.chi2:.4g}, dof={found.dof}, p_value={found.p_value:.3g}"
    assert str(found) == repr(found) == f"GoodnessOfFit({shown}; 8 groups)"


@pytest.mark.parametrize(
    "options", [{}, {"link": "cloglog", "nominal": [0]}, {"threshold": "equidistant"}]
)
def test_changes_are_newton_steps_without_the_row(options):
    model = whole(**options)
    assert_newton_steps(model, lambda design: Likelihood(design, model.link, 0.0, 1))


def assert_newton_steps(model, likelihood):
    """What rows change is a step of Newton's method for the likelihood without them."""
    fit = model._remembered
    found = inference.influence(model)
    assert found.leverage.sum() == pytest.approx(model.parameters.size)
    for i in (0, 17, 64):
        weight = fit.loss.design.weight.copy()
        weight[i] = 0
        design = replace(fit.loss.design, weight=weight)
        point = likelihood(design).at(fit.x)
        step = -np.linalg.solve(point.hessian.dense(), point.gradient)
        raw = design.raw(fit.x + step) - design.raw(fit.x)
        assert_allclose(found.change[i], raw, rtol=1e-6, atol=1e-8)
        cook = raw @ np.linalg.inv(model.covariance) @ raw / raw.size
        assert found.cooks_distance[i] == pytest.approx(cook, rel=1e-5)


def test_leverages_with_scale_effects_are_those_of_their_formula():
    """tr(M J V J') of rows that have thresholds on both sides, by differences."""
    model, inner = whole(scale=[0, 1]), (MADE.y > 0) & (MADE.y < 3)
    X, offset, rank = MADE.X[inner], MADE.offset[inner], MADE.y[inner]
    sides = np.stack([rank + 1, rank], axis=1)
    columns = X[:, model.predictor.location], X[:, []], X[:, model.predictor.scale]

    def ends(x):
        eta = cumulative_edges(x, 3, "flexible", *columns, offset)
        return np.take_along_axis(eta, sides, axis=1)

    a, b = ends(model.parameters).T

    def log_p(moved):
        return cumulative_terms("logit", a + moved[0], b + moved[1])

    J = slopes(ends, model.parameters, 1e-4)
    curvature = slopes(lambda t: slopes(log_p, t, 1e-3), np.zeros(2), 1e-3)
    K = J @ model.covariance @ J.transpose(0, 2, 1)
    expected = -MADE.weight[inner] * np.einsum("nij,nji->n", curvature, K)
    assert_allclose(inference.influence(model).leverage[inner], expected, rtol=1e-6)


def test_figures_show_the_residuals():
    model = fitted(MADE)
    ax = plot.residuals(model, kind="probability")
    x, y = ax.lines[1].get_data()
    assert_allclose(x, MADE.X @ model.coef)
    assert_allclose(y, model.residuals())
    labels = ax.get_xlabel(), ax.get_ylabel()
    assert labels == ("fitted value", "probability residual")
    ax = plot.residuals(model, "x1", kind="score", partial=True)
    x, y = ax.lines[1].get_data()
    effect = model.coef[0] * (MADE.X[:, 0] - MADE.X[:, 0].mean())
    assert_allclose(y, model.residuals(kind="score") + effect)
    table = pd.DataFrame({"a": MADE.X[:, 0], "b": list("xyz" * 40)})
    ax = plot.residuals(fit_pom(table, MADE.y), "b")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y", "z"]
    with pytest.raises(ValueError, match="along must name a feature, x1, x2, x3"):
        plot.residuals(model, "x9")
    with pytest.raises(ValueError, match="partial must be numeric features with a"):
        plot.residuals(model, partial=True)
    raises(TypeError, "model must be a PomModel", plot.residuals, "x")
    raises(TypeError, "along must be the name of a feature", plot.residuals, model, x)
    assert "e+299" in model.report(1e299 * MADE.X, MADE.y)  # beyond every date
    x = np.random.default_rng(0).uniform(size=50)
    grid, line = smooth(x, 3 * x - 1, np.ones(50))
    assert_allclose(line, 3 * grid - 1)
    assert np.isfinite(smooth(np.repeat(x, 2), np.repeat(x**2, 2), np.ones(100))).all()


def test_influence_of_two_ranks_is_that_of_glm():
    found = inference.influence(fit_pom(MADE.X, (MADE.y > 1).astype(int), tol=1e-10))
    leverage, cook, _ = found
    h = [0.0267712836844258, 0.0361305015843030, 0.0286075024257632]
    assert_allclose(leverage[:3], h, rtol=1e-8)
    figures = (leverage**2).sum(), leverage.max()
    assert_allclose(figures, [0.1424804669764443, 0.0572694855568593], rtol=1e-8)
    expected = [0.00376499688449041, 0.03411381166180798, 0.00263538389857339]
    assert_allclose(cook[:3], expected, rtol=1e-7)


def test_probability_residuals_are_those_of_rms():
    expected = [
        -0.0157700309953982, 0.7471706106192187, 0.3054442072569934, 0.8443249486252660,
        0.6482519607807368, 0.6482519607807368, 0.7262153083566802, 0.7262153083566802,
    ]  # fmt: skip
    assert_allclose(fitted(WINE).residuals()[:8], expected, atol=1e-11)
    made = fitted(MADE).residuals()
    figures = made.mean(), made.var(ddof=1), made.min(), made.max()
    expected = 0, 0.299964939013863, -0.907728661893682, 0.957065070904739
    assert_allclose(figures, expected, atol=1e-9)
