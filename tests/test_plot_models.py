"""Figures of models and of their predictions: what is drawn is what the model says."""

import re
from dataclasses import replace
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.cbook import is_math_text
from matplotlib.text import Text
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.stats import norm
from strategies import raises

import ordinal
from ordinal import datasets, fit_xofm, metrics, plot
from ordinal.inference.fitted import has_errors
from ordinal.model_selection import Grid, learning_splits, select
from ordinal.plot import predictions, style
from ordinal.preprocessing import PreprocessedModel, Standardizer

X, Y = datasets.make_gaussians(rng=0)
WORDS = np.array(["low", "mid", "high"])


@pytest.fixture(scope="module")
def svorim():
    return ordinal.fit_svorim(X[::3], Y[::3], probability=True)


@pytest.fixture(scope="module")
def gpor():
    return ordinal.fit_gpor(X[::6], Y[::6], tol=0.5)


def overlapping(texts):
    """Pairs of texts that lie on one another, as drawn."""
    texts[0].figure.canvas.draw()
    extent = Text.get_window_extent  # without the line that leads to it
    extents = [(t.get_text(), extent(t)) for t in texts if t.get_text()]
    pairs = combinations(extents, 2)
    return [(a, b) for (a, at), (b, other) in pairs if at.overlaps(other)]


def heights(ax, r):
    """(2, r, bins) of the bars: right and wrong, in each rank."""
    drawn = np.array([bar.get_height() for bar in ax.patches])
    return drawn.reshape(r, 2, -1).swapaxes(0, 1)


def test_scores_are_counted_right_and_wrong_in_every_rank(svorim):
    ax = plot.scores(svorim, X, Y)
    score, predicted = svorim.decision_function(X), svorim.predict(X)
    bars = ax.patches
    left = np.unique([bar.get_x() for bar in bars])
    edges = np.append(left, bars[-1].get_x() + bars[-1].get_width())
    assert edges[0] == pytest.approx(score.min())
    assert edges[-1] == pytest.approx(score.max())
    drawn = heights(ax, 3)
    for k, label in enumerate(svorim.classes):
        of = label == Y
        parts = of & (predicted == Y), of & (predicted != Y)
        counts = [np.histogram(score[rows], edges)[0] for rows in parts]
        unit = 0.85 / sum(counts).max()
        assert_allclose(drawn[:, k], np.array(counts) * unit, atol=1e-12)
    shares = [text.get_text() for text in ax.texts[:3]]
    for share, label in zip(shares, svorim.classes, strict=True):
        of = label == Y
        assert share == f"{np.mean(predicted[of] == label):.0%} of {of.sum()} right"


def test_thresholds_stand_where_they_are(svorim, gpor):
    for model in (svorim, gpor):
        ax = plot.scores(model, X, Y)
        ends = [line.get_xdata() for line in ax.lines]
        upright = [left for left, right, *_ in ends if left == right]
        assert_allclose(upright, model.thresholds)
        named = {text.get_text(): text.xy[0] for text in ax.texts[3:]}
        assert named == dict(zip(("1|2", "2|3"), model.thresholds, strict=True))
        assert ax.get_xlim()[0] <= min(named.values())
        assert ax.get_xlim()[1] >= max(named.values())
    ax = plot.scores(gpor, X, Y)
    mean, _ = gpor.predict_latent(X)
    assert min(bar.get_x() for bar in ax.patches) == pytest.approx(mean.min())
    model = ordinal.fit_svorim(X[Y < 3], Y[Y < 3], classes=[1, 2, 3])
    ax = plot.scores(model, X[Y < 3], Y[Y < 3])
    assert [text.get_text() for text in ax.texts[2:]] == ["no rows", "1|2"]
    assert not heights(ax, 3)[:, 2].any()


@pytest.mark.parametrize("draw", ["scores", "confusion_matrix"])
def test_texts_do_not_lie_on_one_another(draw):
    words = np.array(["not at all", "hardly", "somewhat", "very much indeed"])
    Z = np.random.default_rng(1).normal(size=(200, 1))
    y = words[np.searchsorted([-0.05, 0, 0.05], Z[:, 0])]
    ax = getattr(plot, draw)(ordinal.fit_svorim(Z, y, classes=list(words)), Z, y)
    slanted = [text for text in ax.texts if text.get_rotation()]
    texts = [*ax.texts, *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
    texts += ax.get_legend().get_texts() if ax.get_legend() else []
    assert not overlapping([text for text in texts if text not in slanted])
    if draw == "scores":  # names of the three thresholds, which are close
        starts = np.sort([text.get_position()[0] for text in slanted])
        at = np.sort([text.xy[0] for text in slanted])
        scale = ax.get_window_extent().width / np.diff(ax.get_xlim())
        points = 72 / ax.figure.dpi
        assert len(slanted) == 3
        assert np.all(np.diff(at * scale * points + starts) > 10)


def test_the_confusion_matrix_is_that_of_the_metrics(svorim):
    ax = plot.confusion_matrix(svorim, X, Y)
    counts = metrics.confusion_matrix(Y, svorim.predict(X))
    (mesh,) = ax.collections
    assert_allclose(mesh.get_array(), counts / counts.sum(axis=1, keepdims=True))
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written == {(k, j): str(counts[j, k]) for j, k in np.argwhere(counts)}
    mae = metrics.mae(Y, svorim.predict(X))
    right = metrics.accuracy(Y, svorim.predict(X))
    assert ax.get_title(loc="left") == f"MAE {mae:.2f}, {right:.0%} right"
    model = ordinal.fit_svorim(X, WORDS[Y - 1], classes=list(WORDS))
    ax = plot.confusion_matrix(model, X, WORDS[Y - 1])
    assert [t.get_text() for t in ax.get_xticklabels()] == list(WORDS)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(WORDS)
    assert ax.get_ylim()[0] < ax.get_ylim()[1]  # the lowest label below


def test_every_panel_is_of_the_event_above_its_threshold(svorim):
    axes = plot.reliability(svorim, X, Y, n_bins=5)
    P = svorim.predict_proba(X)
    for j, ax in enumerate(axes):
        p, above = P[:, j + 1 :].sum(axis=1), Y > j + 1
        curve = ax.lines[1]
        groups = np.array_split(np.argsort(p), 5)  # no ties here, and 300 rows
        assert_allclose(curve.get_xdata(), [p[g].mean() for g in groups], atol=1e-12)
        assert_allclose(curve.get_ydata(), [above[g].mean() for g in groups])


def test_intervals_are_wilsons():
    p, happened = np.full(40, 0.25), np.arange(40) < 13
    found = predictions.reliability_of(p, happened, np.ones(40), 10)
    assert found.predicted == [0.25]
    assert found.observed == [13 / 40]
    for end in (found.low[0], found.high[0]):  # where the score test is at its limit
        z = (13 / 40 - end) / np.sqrt(end * (1 - end) / 40)
        assert abs(z) == pytest.approx(1.959964, abs=1e-6)


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_bins_hold_all_rows_and_keep_equal_ones_together(p, n_bins):
    p = np.array(p)
    happened = np.arange(p.size) % 3 == 0
    weight = np.ones(p.size)
    found = predictions.reliability_of(p, happened, weight, n_bins)
    assert found.predicted.size <= n_bins
    assert np.all(np.diff(found.predicted) > 0)
    assert np.all((found.low <= found.observed) & (found.observed <= found.high))
    order = np.random.default_rng(0).permutation(p.size)
    again = predictions.reliability_of(p[order], happened[order], weight, n_bins)
    assert_allclose(again, found, atol=1e-12)
    for factor in (2.0, 1e300):
        scaled = predictions.reliability_of(p, happened, factor * weight, n_bins)
        assert_allclose(scaled, found, atol=1e-12)


DRAWN = [plot.scores, plot.confusion_matrix, plot.reliability]


@pytest.mark.parametrize("draw", DRAWN, ids=lambda draw: draw.__name__)
def test_what_is_no_model_or_no_label_is_refused(draw, svorim):
    no_model = r"^model must be a fitted model or a Sele"
    raises(TypeError, no_model, draw, ordinal.fit_svorim, X, Y)
    for y, weight, message in [
        ([1, 2], None, r"^y has 2 labels, and X 300 rows"),
        (np.full(300, 4), None, r"^y holds 4 in row 0, which is not among"),
        (Y, [1, 2], r"^sample_weight has shape \(2,\)"),
        (Y, np.full(300, 1e307), r"^the sum of sample_weight must be between"),
    ]:
        raises(ValueError, message, draw, svorim, X, y, sample_weight=weight)


def test_what_cannot_be_drawn_is_refused(svorim, gpor):
    npsvor = ordinal.fit_npsvor(X[::3], Y[::3])
    outputs = ordinal.companions.fit_nnor(X[::3], Y[::3])  # one a threshold
    empty = pd.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]})
    xofm = fit_xofm(empty.fillna(0), [1, 2])
    K = X[::30] @ X[::30].T
    known = ordinal.fit_svorim(K, Y[::30], kernel="precomputed")
    dependence = plot.partial_dependence
    for draw, values, options, message in [
        (plot.scores, (npsvor, X, Y), {},
         r"^model must have one score per row; NpsvorModel has 3$"),
        (plot.scores, (outputs, X, Y), {}, "one score per row; NnorModel has 2$"),
        (plot.reliability, (npsvor, X, Y), {}, "probability"),
        (plot.reliability, (svorim, X, Y), {"n_bins": 0},
         "^n_bins must be a positive integer, got 0"),
        (plot.relevance, [svorim], {}, "^model must be a GporModel, got a SvorModel"),
        (plot.relevance, [gpor], {}, "kernel has no relevance per feature"),
        (dependence, (svorim, X, "x9"), {}, "^feature names 'x9', which is not among"),
        (dependence, (svorim, csr_array(X), 0), {}, "^X is sparse"),
        (dependence, (svorim, X, 0), {"of": "rank"},
         "^of must be one of None, 'probability', 's"),
        (dependence, (svorim, X, 0), {"at": 1}, "^at must be an integer >= 2, got 1"),
        (dependence, (svorim, X, 0), {"at": [1.0, np.inf]},
         "^at must be finite, got inf in row 1"),
        (dependence, (svorim, X, 0), {"at": []},
         r"^at must be a number or values, got \[\]"),
        (dependence, (xofm, empty, "a"), {}, "^column 'a' of X has no values"),
        (dependence, (known, K, 0), {}, "^model must be fitted to features"),
    ]:  # fmt: skip
        raises((TypeError, ValueError), message, draw, *values, **options)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=10), st.floats(0.01, 2))
def test_labels_are_spread_by_the_least_that_makes_room(at, gap):
    at = np.sort(at)
    placed = style.spread(at, gap)
    assert np.all(np.diff(placed) >= gap * (1 - 1e-9))
    moved = placed - at
    # optimal: what is pushed together is centred, and what is free has not moved
    runs = np.split(
        np.arange(at.size), 1 + np.flatnonzero(np.diff(placed) > gap * (1 + 1e-9))
    )
    for run in runs:
        assert moved[run].mean() == pytest.approx(0, abs=1e-9)
        # no run would be closer to its places in two parts
        for cut in range(1, run.size):
            assert moved[run[:cut]].mean() <= 1e-9


TABLE = pd.DataFrame({
    "size": X[:, 0],
    "colour": np.array(["red", "blue", "green"])[np.arange(300) % 3],
    "weight": np.where(np.arange(300) % 7, X[:, 1], np.nan),
})  # fmt: skip


@pytest.fixture(scope="module")
def xofm():
    return fit_xofm(TABLE, Y, categorical=["colour"], n_factors=2, probability=True)


def boundaries(ax):
    """(m, r) of the upper ends of the bands on top of each other."""
    return np.column_stack([line.get_ydata() for line in ax.lines])


def test_bands_are_means_of_the_probabilities_of_rows_with_the_value_set(svorim):
    at = [10.0, 12.5, 20.0]
    ax = plot.partial_dependence(svorim, X, 1, at=at)
    for place, value in enumerate(at):
        Z = X.copy()
        Z[:, 1] = value
        P = svorim.predict_proba(Z).mean(axis=0)
        assert_allclose(boundaries(ax)[place], np.cumsum(P), atol=1e-12)
    assert_allclose(ax.lines[0].get_xdata(), at)
    assert ax.get_xlabel() == "x2"
    names = [t.get_text() for t in ax.texts if t.get_text() != "\N{BLACK SQUARE}"]
    assert names == ["1", "2", "3"]


def test_the_score_goes_along_between_its_thresholds(svorim):
    ax = plot.partial_dependence(svorim, X, "x1", of="score", at=[12.0, 15.0])
    Z = X.copy()
    Z[:, 0] = 15.0
    curve = ax.lines[-1]
    assert curve.get_ydata()[1] == pytest.approx(svorim.decision_function(Z).mean())
    assert_allclose([line.get_ydata()[0] for line in ax.lines[:-1]], svorim.thresholds)
    assert [t.get_text() for t in ax.texts] == ["1|2", "2|3"]
    model = ordinal.fit_svorim(X[::3], Y[::3])
    assert plot.partial_dependence(model, X, 0, at=3).get_ylabel() == "score"


@pytest.mark.parametrize("dtype", ["int64", "int8", "Int64", "bool"])
@pytest.mark.parametrize("kind", ["formula", "preprocessor"])
def test_a_column_of_integers_is_set_to_what_lies_between_them(kind, dtype):
    """A threshold of 0.9 became 0 once."""
    count = (np.arange(300) % 2).astype(dtype.lower())
    table = pd.DataFrame({"count": count, "colour": TABLE["colour"], "y": Y})
    if kind == "formula":
        model = ordinal.fit_pom("y ~ count + colour", table)
    else:
        rows = table[["count", "colour"]]
        model = PreprocessedModel.fit(ordinal.fit_pom, rows, Y, l2=0.1)
    table["count"] = table["count"].astype(dtype)
    at = np.array([0.25, 0.9])
    ax = plot.partial_dependence(model, table, "count", at=at)
    P = [model.predict_proba(table.assign(count=v)).mean(axis=0) for v in at]
    if dtype == "bool":
        heights = np.array([bar.get_height() for bar in ax.patches]).reshape(-1, 2)
        assert_allclose(heights.T, P, atol=1e-12)
    else:
        assert_allclose(boundaries(ax), np.cumsum(P, axis=1), atol=1e-12)


def test_values_are_percentiles_words_or_one(xofm, svorim):
    ax = plot.partial_dependence(xofm, TABLE, "colour")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["blue", "green", "red"]
    ax = plot.partial_dependence(xofm, TABLE, "weight", at=7)
    expected = np.linspace(*TABLE["weight"].dropna().quantile([0.01, 0.99]), 7)
    assert_allclose(ax.lines[0].get_xdata(), expected)
    few = TABLE.assign(size=np.round(TABLE["size"] / 5))
    ax = plot.partial_dependence(xofm, few, "size")
    assert_allclose(ax.lines[0].get_xdata(), np.unique(few["size"]))
    ax = plot.partial_dependence(svorim, X[:1], 0)
    heights = [bar.get_height() for bar in ax.patches]
    assert_allclose(heights, svorim.predict_proba(X[:1])[0], atol=1e-12)
    assert [t.get_text() for t in ax.get_xticklabels()] == [f"{X[0, 0]:.4g}"]
    ax = plot.partial_dependence(svorim, X, 0, at=[12.5, 12.5])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["12.5"]
    weight = np.linspace(1, 2, 300)
    ax = plot.partial_dependence(svorim, X, 0, at=5, sample_weight=weight)
    heights = np.array([bar.get_height() for bar in ax.patches])
    low, high = np.quantile(X[:, 0], [0.01, 0.99])
    counts = np.histogram(X[:, 0], 40, (low, high), weights=weight)[0]
    assert_allclose(heights / heights.max(), counts / counts.max())


THIRD = np.arange(300) % 3


@pytest.mark.parametrize(("at", "options", "rows", "others"), [
    # evenly spaced ones of many, and no row without weight, as all such would be
    ([10.0, 20.0], {"max_rows": 100}, X[::3], {}),
    (5, {"max_rows": 100, "sample_weight": THIRD == 1}, X[1::3], {}),
    ([10.0, 20.0], {"sample_weight": THIRD}, np.repeat(X, THIRD, axis=0), {}),
    (5, {"sample_weight": THIRD}, X, {"sample_weight": THIRD * 5e305}),
])  # fmt: skip
def test_rows_count_by_their_share_of_the_weight(svorim, at, options, rows, others):
    a, b = plt.subplots(1, 2)[1]
    plot.partial_dependence(svorim, X, 0, a, at=at, **options)
    plot.partial_dependence(svorim, rows, 0, b, at=at, **others)
    assert_allclose(boundaries(a), boundaries(b), atol=1e-12)
    assert a.get_xlim() == b.get_xlim()


@pytest.mark.parametrize("basis", [None, 12])
def test_covariances_between_rows_are_a_covariance(basis):
    model = ordinal.fit_gpor(X[::6], Y[::6], basis=basis, tol=0.5)
    cov = model.latent_covariance(X[:40])
    assert_allclose(cov, cov.T, atol=1e-12)
    assert_allclose(cov.diagonal(), model.predict_latent(X[:40])[1], atol=1e-10)
    assert np.linalg.eigvalsh(cov).min() > -1e-10
    same = model.latent_covariance(X[[3, 3]])
    assert_allclose(same, same[0, 0])
    known = ordinal.fit_gpor(np.eye(3), [1, 2, 3], kernel="precomputed", optimize=False)
    with pytest.raises(ValueError, match=r"^a precomputed kernel knows no covariance"):
        known.latent_covariance(np.eye(3))


@pytest.mark.parametrize("of", ["probability", "score"])
def test_bands_of_a_gaussian_process_are_its_posterior_deviations(gpor, of):
    at = [9.0, 16.0]
    weight = np.arange(1.0, 51.0)
    ax = plot.partial_dependence(gpor, X[:50], 0, at=at, of=of, sample_weight=weight)
    band = [c for c in ax.collections if c.get_alpha()]
    Z = np.column_stack([np.full(50, 16.0), X[:50, 1]])
    mean, cov = gpor.predict_latent(Z)[0], gpor.latent_covariance(Z)
    # by draws of f at all the rows together
    f = np.random.default_rng(0).multivariate_normal(mean, cov, 20_000).T
    if of == "score":
        draws = [weight @ f / weight.sum()]
    else:
        below = (norm.cdf((t - f) / gpor.noise) for t in gpor.thresholds)
        draws = [weight @ share / weight.sum() for share in below]
    for drawn, area in zip(draws, band, strict=True):
        ends = area.get_paths()[0].vertices
        low, high = np.sort(ends[ends[:, 0] == 16.0][:, 1])[[0, -1]]
        middle, deviation = drawn.mean(), drawn.std()
        expected = np.array([middle - 1.645 * deviation, middle + 1.645 * deviation])
        expected = expected if of == "score" else np.clip(expected, 0, 1)
        assert_allclose([low, high], expected, atol=0.05 * deviation)


def ends_of_bands(ax):
    """(2, bands, values) of the ends of areas, or of the bars of categories."""
    ends = []
    for band in ax.collections:
        if band.get_alpha():
            parts = [path.vertices for path in band.get_paths()]
            at = np.unique(np.vstack(parts)[:, 0])
            own = [np.vstack(parts)[np.vstack(parts)[:, 0] == x, 1] for x in at]
            ends.append([[y.min() for y in own], [y.max() for y in own]])
    return np.moveaxis(np.array(ends), 1, 0)


@pytest.mark.parametrize("column", ["size", "colour"])
def test_bands_of_a_cumulative_link_model_are_the_intervals_of_its_averages(column):
    table, weight = TABLE.drop(columns="weight"), np.linspace(1, 2, 300)
    model = ordinal.fit_pom(table, Y, sample_weight=weight, link="probit")
    at = ["blue", "red"] if column == "colour" else [11.0, 12.0, 17.0]
    ax = plot.partial_dependence(model, table, column, at=at, sample_weight=weight)
    low, high = ends_of_bands(ax)
    for k, value in enumerate(at):
        Z = table.assign(**{column: value})
        found = model.predictions(Z, kind="cumulative", level=0.9, sample_weight=weight)
        assert_allclose(low[:, k], found["lower"])
        assert_allclose(high[:, k], found["upper"])
        if column == "size":
            assert_allclose(boundaries(ax)[k, :-1], found["estimate"])
    assert ax.get_ylabel() == "probability, with 90% intervals"


def test_bars_of_categories_have_errors_where_a_model_has_them():
    few = pd.DataFrame({"size": X[:, 0], "colour": ["red", "blue", "red"] * 100})[::5]
    model = PreprocessedModel.fit(ordinal.fit_gpor, few, Y[::5], tol=1.0)
    ax = plot.partial_dependence(model, few, "colour", of="score")
    bars = [path.vertices for path in ax.collections[-1].get_paths()]
    (points,) = (line for line in ax.lines if line.get_marker() == "o")
    assert len(bars) == len(points.get_ydata()) == 2
    for bar, y in zip(bars, points.get_ydata(), strict=True):
        assert bar[0, 1] < y < bar[1, 1]
    table = TABLE.assign(kind=np.arange(300) % 3 + 1, y=Y)
    model = ordinal.fit_pom("y ~ size + C(kind)", table)
    ax = plot.partial_dependence(model, table, "kind")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "2", "3"]
    bars = np.array([bar.get_height() for bar in ax.patches]).reshape(3, 3)
    assert_allclose(bars[:, 1], model.predict_proba(table.assign(kind=2)).mean(axis=0))
    penalised = ordinal.fit_pom(X, Y, l2=0.1)
    assert not has_errors(penalised)
    ax = plot.partial_dependence(penalised, X, 0, at=3)
    assert len(ax.collections) == 3
    assert ax.get_ylabel() == "probability"
    model = ordinal.fit_pom(X, Y)
    assert has_errors(model)
    ax = plot.partial_dependence(model, X, 0, at=3, of="score")
    assert not ax.collections
    assert ax.get_ylabel() == "score"


def test_relevance_is_that_of_the_kernel_the_largest_first():
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(90, 4)), columns=[*"abcd"]
    )
    y = np.searchsorted([-0.5, 0.5], frame["c"] + 0.4 * frame["a"])
    model = ordinal.fit_gpor(frame, y, kernel="ard", inference="laplace")
    ax = plot.relevance(model)
    dots = ax.lines[0]
    gamma = dict(zip("abcd", model.relevance(), strict=True))
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names[:2] == ["c", "a"]
    assert_allclose(dots.get_xdata(), [gamma[name] for name in names])
    assert np.all(np.diff(dots.get_xdata()) <= 0)
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first is at the top
    assert len(plot.relevance(model, top=2).get_yticks()) == 2
    behind = PreprocessedModel(
        Standardizer.fit(frame), replace(model, feature_names=None)
    )
    assert [t.get_text() for t in plot.relevance(behind).get_yticklabels()] == names
    found = select(
        ordinal.fit_gpor, frame, y, search=Grid(kernel=["ard"]), cv=2,
        inference="laplace",
    )  # fmt: skip
    ax = plot.relevance(found)
    assert sorted(t.get_text() for t in ax.get_yticklabels()) == [*"abcd"]
    ax = plot.partial_dependence(found, frame, "c", at=[0.5, 0.7], of="score")
    Z = found.model.preprocessor.transform(frame.assign(c=0.7))
    mean, _ = found.model.model.predict_latent(Z)
    assert ax.lines[-1].get_ydata()[1] == pytest.approx(mean.mean())


DOLLARS = ["$1$", "$2$", "$3$"]


@pytest.fixture(scope="module")
def figures():
    """Every figure, by its name: columns, levels, labels, data sets have dollars."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(90, 2)), columns=["$x$", "$y$"])
    table["$g$"] = np.array(["$a$", "$b$", "$c$"])[rng.integers(0, 3, 90)]
    rank = np.searchsorted([-0.5, 0.5], table["$x$"] + rng.normal(size=90))
    y, by = np.array(DOLLARS)[rank], {"classes": DOLLARS}
    numbers = table[["$x$", "$y$"]]
    pom = ordinal.fit_pom(table, y, **by)
    xofm = fit_xofm(table, y, tol=0.1, **by)
    clmm = ordinal.fit_clmm(table, y, random="(1 | `$g$`)", **by)
    ard = ordinal.fit_gpor(numbers[:30], y[:30], kernel="ard", tol=0.9, **by)
    sets = ordinal.conformal(pom, table, y)
    svorim = ordinal.fit_svorim
    grid = {"search": Grid(C=[0.1, 1.0]), **by}
    found = select(svorim, numbers, y, cv=2, **grid)
    splits = learning_splits(rank, [20, 40], n_splits=2)
    curve = select(svorim, numbers, y, cv=splits, **grid)
    scores = [[[0.6, 0.5], [0.7, 0.5]], [[0.5, 0.3], [0.4, 0.4]]]
    ranks, two = ordinal.comparison.friedman(scores[0]), DOLLARS[:2]
    return {
        "boxplots_by_size": lambda: plot.boxplots_by_size(scores, two, two),
        "coefficients": lambda: plot.coefficients(pom),
        "confusion_matrix": lambda: plot.confusion_matrix(pom, table, y),
        "contributions": lambda: plot.contributions(xofm, table[:1]),
        "critical_difference": lambda: plot.critical_difference(ranks, two),
        "errors_by_method": lambda: plot.errors_by_method({"$d$": scores[0]}, two),
        "importance": lambda: plot.importance(pom.explain(table, y)),
        "interaction": lambda: plot.interaction(xofm, "$x$", "$g$"),
        "learning_curve": lambda: plot.learning_curve(curve, label=r"$\alpha$"),
        "partial_dependence": lambda: plot.partial_dependence(pom, table, "$g$"),
        "prediction_sets": lambda: plot.prediction_sets(sets, table, y),
        "random_effects": lambda: plot.random_effects(clmm),
        "relevance": lambda: plot.relevance(ard),
        "reliability": lambda: plot.reliability(pom, table, y),
        "residuals": lambda: plot.residuals(pom, "$g$"),
        "score_functions": lambda: plot.score_functions(xofm),
        "scores": lambda: plot.scores(pom, table, y),
        "search": lambda: plot.search(found),
        "simulated_residuals": lambda: plot.simulated_residuals(pom, "$g$"),
    }


@pytest.mark.parametrize("name", plot.__all__)
def test_dollars_in_names_are_no_mathematics(name, figures):
    ax = np.ravel(figures[name]())[0]
    ax.figure.canvas.draw()
    texts = {text.get_text() for text in ax.figure.findobj(Text)}
    own = {text for text in texts if re.match(r"(CD|\$\\math|\$\\alpha)", text)}
    assert own if name in ("critical_difference", "learning_curve", "search") else True
    assert not any(map(is_math_text, texts - own))
    if name not in ("learning_curve", "search"):  # which name parameters
        assert any(r"\$" in text for text in texts)


def test_sixty_categories_are_all_named_and_do_not_overlap():
    places = [f"district {k:02}" for k in range(60)]
    table = pd.DataFrame({"place": places * 3, "size": np.arange(180.0) % 37})
    ranks = 1 + (np.arange(180) % 60 + table["size"]).to_numpy() // 33
    ax = plot.residuals(ordinal.fit_pom(table, ranks, l2=0.1), "place")
    names = ax.get_xticklabels()
    assert [name.get_text() for name in names] == places
    assert not overlapping(names)
    assert not ax.spines["top"].get_visible()
    assert not ax.spines["right"].get_visible()
