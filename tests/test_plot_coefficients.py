"""The forest plot: what is drawn is what the model's intervals say."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose
from pom_data import SETS, spread_without_bounds
from strategies import raises

import ordinal
from ordinal import fit_pom, plot
from ordinal.plot.style import PALETTE

HOUSING = SETS["housing"]


@pytest.fixture(scope="module")
def model():
    return fit_pom(HOUSING.X, HOUSING.y, sample_weight=HOUSING.weight)


def drawn(ax):
    """Places of dots and bars by line, and the colours of the dots."""
    dots, bars, colours = {}, {}, {}
    for line in ax.lines:
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        if line.get_marker() == "o":
            dots[int(y[0])], colours[int(y[0])] = x[0], to_hex(line.get_color())
        elif line.get_linestyle() == "-" and x.size == 2:
            bars[int(y[0])] = x
    order = sorted(dots)
    return [np.array([of[k] for k in order]) for of in (dots, bars, colours)]


@pytest.mark.parametrize("method", ["wald", "profile"])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_dots_and_bars_are_the_estimates_and_their_intervals(model, level, method):
    ax = plot.coefficients(model, level=level, method=method)
    dots, bars, colours = drawn(ax)
    ends = model.confint(level, method=method)
    # those that hold no effect are grey, which some do at a level near 1
    grey = (ends["lower"][-6:] <= 0) & (ends["upper"][-6:] >= 0)
    assert grey.any() == (level > 0.95)
    assert not grey.all()
    expected = [to_hex(PALETTE[7] if held else PALETTE[0]) for held in grey]
    assert colours.tolist() == expected
    assert_allclose(dots, model.coef)
    assert_allclose(bars[:, 0], ends["lower"][-6:])
    assert_allclose(bars[:, 1], ends["upper"][-6:])
    assert [t.get_text() for t in ax.get_yticklabels()] == list(model.coef_names)
    assert ax.get_xlabel() == f"coefficient, with {100 * level:g}% intervals"
    left, right = ax.texts
    assert (left.get_text().strip(), left.get_ha()) == ("← lower ranks", "right")
    assert (right.get_text().strip(), right.get_ha()) == ("higher ranks →", "left")
    assert left.xy == right.xy == (0, 1)
    top, bottom = ax.get_ylim()
    assert top > bottom  # the first coefficient is at the top


def test_odds_ratios_are_on_a_logarithmic_axis(model):
    ax = plot.coefficients(model, odds_ratios=True)
    dots, bars, _ = drawn(ax)
    table = ordinal.inference.odds_ratios(model)
    assert ax.get_xscale() == "log"
    assert_allclose(dots, table["odds_ratio"])
    assert_allclose(bars, np.column_stack([table["lower"], table["upper"]]))
    low, high = ax.get_xlim()
    assert low < bars.min()
    assert high > bars.max()
    ax.figure.canvas.draw()
    assert {"0.5", "1", "2"} <= {t.get_text() for t in ax.get_xticklabels()}
    x = np.linspace(-1, 1, 40)
    y = np.digitize(x + 0.7 * np.sin(99 * x), [0])
    model = fit_pom(np.column_stack([x, 100 * np.cos(7 * x)]), y)
    ax = plot.coefficients(model, odds_ratios=True)
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert high > 100 * low
    shown = [float(t.get_text()) for t in ax.get_xticklabels()]
    assert_allclose(np.log10(shown) % 1, 0)


def test_bars_without_end_have_arrows():
    X, y, weight = spread_without_bounds()
    model = fit_pom(X, y, sample_weight=weight, scale=[1])
    ax = plot.coefficients(model, method="profile")
    arrows = {
        line.get_marker(): line for line in ax.lines if line.get_marker() in ("<", ">")
    }
    for marker, edge in zip("<>", ax.get_xlim(), strict=True):
        assert arrows[marker].get_ydata()[0] == 1
        assert arrows[marker].get_xdata()[0] == edge
    assert sum(line.get_marker() in ("<", ">") for line in ax.lines) == 2


def test_models_within_others_are_drawn(model):
    """Estimators, selections and preprocessed models, as all figures accept."""
    pytest.importorskip("sklearn")
    from ordinal.sklearn import CLMM, POM, XOFM

    X, y = ordinal.datasets.load_wine()
    X, judges = X[:, :2], X[:, 3]
    estimator = POM().fit(X, y)
    scaled = fit_pom(X, y, preprocess=ordinal.preprocessing.Standardizer)
    found = ordinal.select("pom", X, y, search={"l2": [0.0]}, cv=2)
    for one in (estimator, scaled, found):
        assert len(plot.coefficients(one).get_yticks()) == 2
    assert plot.residuals(estimator, "x1").get_xlabel() == "x1"
    assert plot.residuals(scaled, "x1").get_xlabel() == "x1"
    assert len(plot.random_effects(CLMM().fit(X, y, groups=judges)).get_yticks()) == 9
    curves = XOFM().fit(X, y)
    assert plot.contributions(curves, X[0]).get_xlabel() == "contribution to the score"
    assert len(plot.score_functions(curves)) == 2
    plt.close("all")
    X, y = ordinal.datasets.load_wine(as_frame=True)
    model = ordinal.fit_ratio(X[["temp", "contact"]], y)
    marks, _, _ = drawn(plot.coefficients(model))
    assert_allclose(marks, model.coef)
    plt.close("all")
    ax = plt.figure().subplots()
    assert plot.coefficients(model, ax) is ax


def test_what_has_no_forest(model):
    message = "model must be a PomModel or RatioModel, got 3"
    raises(TypeError, message, plot.coefficients, 3)
    with pytest.raises(ValueError, match="odds_ratios must be True or False"):
        plot.coefficients(model, odds_ratios="yes")
    every = fit_pom(
        HOUSING.X[:, :1], HOUSING.y, sample_weight=HOUSING.weight, nominal=[0]
    )
    with pytest.raises(ValueError, match="model must have coefficients that all"):
        plot.coefficients(every)
    penalised = fit_pom(HOUSING.X, HOUSING.y, sample_weight=HOUSING.weight, l2=0.1)
    raises(ValueError, r"fitted with l2=0\.1", plot.coefficients, penalised)


def test_random_effects_are_sorted_with_their_intervals():
    X, y = ordinal.datasets.load_wine()
    options = {"groups": {"judge": np.arange(72) // 8}, "slopes": {"judge": [1]}}
    mixed = ordinal.fit_clmm(X[:, :2], y, **options)
    found = mixed.ranef()
    for effect, name in ((None, "(Intercept)"), ("x2", "x2")):
        own = found["effect"] == name
        mode, error = found["mode"][own], found["standard_error"][own]
        order = np.argsort(mode)
        ax = plot.random_effects(mixed, effect=effect, level=0.9)
        bars = np.concatenate(
            [b.get_segments() for c in ax.containers for b in c.lines[2]]
        )
        bars = bars[np.argsort(bars[:, 0, 1])]
        half = 1.6448536 * error[order]
        assert_allclose(bars[:, 0, 0], mode[order] - half, atol=1e-7)
        assert_allclose(bars[:, 1, 0], mode[order] + half, atol=1e-7)
        labels = [t.get_text() for t in ax.get_yticklabels()]
        assert labels == [str(k) for k in found["level"][own][order]]
        apart = len(ax.containers[0].lines[0].get_xdata())
        assert apart == (np.abs(mode[order]) > half).sum()
        assert ax.get_xlabel() == f"{name}, with 90% intervals"
    raises(ValueError, "effect must be", plot.random_effects, mixed, effect="temp")
    raises(TypeError, "model must be a ClmmModel, got 3", plot.random_effects, 3)


def test_simulated_residuals_lie_on_their_band_or_quartiles():
    X, y = ordinal.datasets.load_wine()
    mixed = ordinal.fit_clmm(X[:, :2], y, groups={"judge": np.arange(72) // 8})
    found = ordinal.inference.simulated_residuals(mixed, rng=0)
    ax = plot.simulated_residuals(mixed)
    assert_allclose(ax.lines[-1].get_xydata()[:, 1], np.sort(found.values))
    assert ax.get_xlabel() == f"uniform quantile (p = {found.p_value:.3f})"
    along = plot.simulated_residuals(mixed, "fitted value")
    assert len(along.lines) == 7  # three levels, the points, three moving quartiles
    with pytest.raises(ValueError, match="by must be None along 'x1'"):
        plot.simulated_residuals(mixed, "x1", by=[0] * 72)
