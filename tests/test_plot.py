import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import raises

from ordinal import fit_xofm, plot
from ordinal.comparison import friedman
from ordinal.plot import comparison

NAMES = [f"method {letter}" for letter in "ABCDEFGHIJKL"]


def errors(n_sets=23, k=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_sets, k)) + np.linspace(0, 2, k)[::-1]


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'ordinal-regression\[plot\]'"):
        plot.critical_difference(friedman(errors(k=3)), NAMES[:3])


def test_errors_by_method_are_dots_with_their_mean_the_best_on_top():
    scores = {"a": errors(9, 3), "b": errors(5, 3, seed=1)}
    axes = plot.errors_by_method(scores, NAMES[:3], xlabel="MZE")
    assert [ax.get_title() for ax in axes] == ["a", "b"]
    for ax, table in zip(axes, scores.values(), strict=True):
        order = np.argsort(table.mean(axis=0))
        assert [t.get_text() for t in ax.get_yticklabels()] == [NAMES[j] for j in order]
        *dots, bars = ax.lines
        for place, (line, j) in enumerate(zip(dots, order, strict=True)):
            assert_allclose(line.get_xdata(), table[:, j])
            assert (abs(np.asarray(line.get_ydata()) - place) <= 0.125).all()
        assert_allclose(bars.get_xdata(), table.mean(axis=0)[order])
        texts = [text.get_text() for text in ax.texts]
        assert texts == [f"{mean:.3f}" for mean in table.mean(axis=0)[order]]
        assert ax.yaxis_inverted()
        assert ax.get_xlabel().startswith("MZE")
    _, axes = plt.subplots(1, 2)
    scores = {"a": errors(9, 3), "b": errors(1, 3)}
    assert plot.errors_by_method(scores, NAMES[:3], list(axes)) == list(axes)
    for values, message in (
        ([scores, NAMES[:3], [axes[0]]], "one for each of 2 data sets, got 1"),
        ([[errors(9, 3)], NAMES[:3]], "must be a mapping of tables"),
        ([scores, NAMES[:2]], "a name for each of 3 methods"),
    ):
        raises((ValueError, TypeError), message, plot.errors_by_method, *values)


def lines(ax, length):
    """(x, y) of the lines of so many points."""
    return [line.get_data() for line in ax.lines if len(line.get_xdata()) == length]


def boxes(ax):
    """Return the boxes of the texts and tick labels, in pixels."""
    ax.figure.canvas.draw()
    texts = [t for t in ax.texts if t.get_text()]
    texts += [t for t in ax.get_xticklabels() if t.get_text()] + [ax.xaxis.label]
    return [text.get_window_extent() for text in texts]


@pytest.mark.parametrize("k", [2, 3, 12, 30])
def test_every_method_is_labelled_at_its_rank(k):
    result = friedman(errors(k=k))
    names = [f"name {j}" for j in range(k)]
    ax = plot.critical_difference(result, names)
    assert ax.get_xlabel() == "average rank"
    assert ax.get_xlim()[0] == k  # the best on the right
    elbows = {(x[2], y[2]): x[0] for x, y in lines(ax, 3)}
    labels = {text.get_text(): text.xy for text in ax.texts[:-1]}
    assert len(elbows) == len(labels) == k
    for j, name in enumerate(names):
        (text,) = (t for t in labels if name in t.split("  "))
        assert elbows[labels[text]] == result.ranks[j]
        assert f"{result.ranks[j]:.2f}" in text
    # leaders cross neither each other nor bars
    elbows = [(x[0], x[2], y[2]) for x, y in lines(ax, 3)]
    assert max(y for _, _, y in elbows) < min(y[0] for _, y in lines(ax, 2))
    for side in (1, -1):  # left, right; those further out are higher up
        of_side = sorted((side * x, y) for x, end, y in elbows if side * (end - x) > 0)
        assert all(a[1] < b[1] for a, b in pairwise(of_side))


@pytest.mark.slow("figures laid out and measured")
@pytest.mark.parametrize("k", [2, 3, 12, 30])
@pytest.mark.parametrize("n_sets", [2, 23])
def test_no_labels_overlap_or_leave_the_figure(k, n_sets):
    names = [f"a rather long name {j}" for j in range(k)]
    ax = plot.critical_difference(friedman(errors(n_sets, k)), names)
    extents = boxes(ax)
    for i, a in enumerate(extents):
        assert not any(a.overlaps(b) for b in extents[:i])
        assert a.x0 >= 0
        assert a.y0 >= 0
        assert a.x1 <= ax.figure.bbox.width
        assert a.y1 <= ax.figure.bbox.height


def test_the_critical_difference_is_drawn_to_scale():
    for n_sets in (2, 23):  # longer than the axis, and shorter
        result = friedman(errors(n_sets, 2), alpha=0.1)
        ax = plot.critical_difference(result, NAMES[:2])
        x, y = lines(ax, 2)[-1]
        assert abs(x[1] - x[0]) == pytest.approx(result.critical_difference)
        assert y[0] > 0
        assert ax.texts[-1].get_text().endswith("= 0.1")
        assert min(ax.get_xlim()) <= min(x)
    with plt.rc_context({"axes.spines.top": False}):
        ax = plot.critical_difference(friedman(errors(k=3)), NAMES[:3])
    assert ax.spines["top"].get_visible()


@given(st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(0, 12))
def test_cliques_are_the_largest_runs_within_the_difference(ranks, cd):
    rank = np.sort(ranks)
    runs = comparison._cliques(rank, cd)
    pairs = {
        (i, j) for j in range(rank.size) for i in range(j) if rank[j] - rank[i] <= cd
    }
    joined = {(i, j) for a, b in runs for j in range(a, b + 1) for i in range(a, j)}
    assert joined == pairs
    # none within another
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(runs))
    rows = comparison._stacked(runs)
    for row in set(rows):
        of_row = [run for run, r in zip(runs, rows, strict=True) if r == row]
        assert all(b < c for (_, b), (c, _) in pairwise(of_row))
    assert set(rows) == set(range(len(set(rows))))


def test_a_group_a_size_and_a_box_a_method():
    scores = [errors(20), errors(5, seed=1), errors(20, seed=2)]
    ax = plot.boxplots_by_size(scores, [100, 150, "all"], NAMES, ylabel="MZE")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("training rows", "MZE")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["100", "150", "all"]
    assert len(ax.patches) == 3 * 12
    centres = np.array([p.get_path().vertices[:, 0] for p in ax.patches])
    centres = (centres.min(axis=1) + centres.max(axis=1)) / 2
    centres = centres.reshape(12, 3)  # drawn method by method
    assert_allclose(centres.mean(axis=0), ax.get_xticks(), atol=1e-12)
    assert np.all(np.diff(centres.T.ravel()) > 0)  # no two in one place
    medians = [line for line in ax.lines if line.get_linewidth() == 1.5]
    for j in range(12):
        for g in range(3):
            x, y = medians[3 * j + g].get_data()
            assert np.mean(x) == pytest.approx(centres[j, g])
            assert_allclose(y, np.median(scores[g][:, j]))


@pytest.mark.parametrize(("scores", "sizes", "names", "error", "message"), [
    ([np.eye(2)], [100], ["a"], ValueError, r"each of 2 methods, got \['a'\]"),
    ([np.eye(2)], [100], "ab", ValueError, "each of 2 methods, got 'ab'"),
    ([np.eye(2)], [1, 2], ["a", "b"], ValueError, r"1 tables .* got \[1, 2\]"),
    ([np.eye(2), np.eye(3)], [1, 2], ["a", "b"], ValueError, r"scores\[1\]"),
    ([[["1", "2"]]], [1], ["a", "b"], TypeError, "real numbers"),
])  # fmt: skip
def test_bad_input(scores, sizes, names, error, message):
    raises(error, message, plot.boxplots_by_size, scores, sizes, names)


def fitted(d=18, n=120):
    """A model of many features, one of them categories and one with missing values."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, d))
    y = np.searchsorted([0.8, 1.2], X[:, 0] + X[:, 1])
    X[:, 2] = rng.integers(4, size=n)
    X[::5, 3] = np.nan
    return X, fit_xofm(X, y, categorical=[2], n_factors=2)


@pytest.mark.slow("a fit and figures laid out")
def test_score_functions_are_those_of_the_model_the_most_important_first():
    _, model = fitted()
    axes = plot.score_functions(model)
    assert len(axes) == 18
    importance = dict(zip(*model.importance(), strict=True))
    assert len(importance) == 18 + 18 * 17 // 2
    shown = [ax.get_xlabel() for ax in axes]
    assert shown == sorted(shown, key=lambda name: -importance[name])
    functions = {f.name: f for f in model.score_functions()}
    for ax in axes:
        f = functions[ax.get_xlabel()]
        bars = {bars.get_label(): bars for bars in ax.containers}
        rows = np.array([bar.get_height() for bar in bars["rows"]])
        assert_allclose(rows / rows.max(), f.share / f.share.max())
        if f.name == "x3":
            assert_allclose([bar.get_height() for bar in bars["score"]], f.score)
            continue
        left = [bar.get_x() for bar in bars["rows"]]
        width = (f.at[-1] - f.at[0]) / f.share.size
        assert_allclose(left, f.at[0] + width * np.arange(f.share.size))
        low = ax.transAxes.inverted().transform(
            ax.transData.transform([(0, min(f.score.min(), f.missing))])
        )[0, 1]
        assert low > rows.max()  # no curve runs over the rows
        curve = ax.lines[1]
        assert_allclose(curve.get_xdata(), f.at)
        assert_allclose(curve.get_ydata(), f.score)
        rings = [line for line in ax.lines if line.get_label() == "missing"]
        assert len(rings) == (f.name == "x4")
        for ring in rings:
            assert ring.get_ydata() == f.missing
    assert len({ax.get_ylim() for ax in axes}) == 1


@pytest.mark.parametrize("b", ["x2", "x3"])
def test_interaction_is_a_map_with_white_at_zero(b):
    _, model = fitted(d=5)
    ax = plot.interaction(model, "x1", b)
    (mesh,) = ax.collections
    found = model.interaction("x1", b)
    cells = mesh.get_array()
    if b == "x3":
        names = [text.get_text() for text in ax.get_yticklabels()]
        assert names == ["0", "1", "2", "3"]
        edges = mesh.get_coordinates()[0, :, 0]
        middles = (edges[1:] + edges[:-1]) / 2
        for row, values in zip(cells, found.values.T, strict=True):
            assert_allclose(row, np.interp(middles, found.at[0], values), atol=1e-12)
    low, high = mesh.get_clim()
    assert low == -high
    assert high == np.abs(cells).max()
    assert high <= np.abs(found.values).max()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", b)
    assert not ax.texts


def test_where_a_value_is_missing_the_interaction_has_a_strip():
    _, model = fitted(d=5)
    values = model.interaction("x4", "x3").missing[0]
    for a, b in (("x4", "x3"), ("x3", "x4")):
        ax = plot.interaction(model, a, b)
        (mesh,) = ax.collections
        cells = np.ma.filled(mesh.get_array(), np.nan)
        cells = cells.T if a == "x4" else cells
        assert_allclose(cells[-1], values, atol=1e-12)
        assert np.isnan(cells[-2]).all()
        assert [text.get_text() for text in ax.texts] == ["missing"]
    axes = plt.subplots(1, 2)[1]
    assert list(plot.score_functions(model, top=2, axes=axes)) == list(axes)
    with pytest.raises(ValueError, match=r"one for each of 5 features, got 2"):
        plot.score_functions(model, axes=axes)
    with pytest.raises(ValueError, match=r"^top must be a positive integer, got 0"):
        plot.score_functions(model, top=0)


def test_contributions_add_up_to_the_score():
    X, model = fitted()
    for x in (X[0], X[:1]):
        ax = plot.contributions(model, x, top=6)
        bars = [bar.get_width() for bar in ax.patches]
        assert len(bars) == 8  # the base and the others as well
        score = model.decision_function(X[:1])[0]
        assert_allclose(sum(bars), score)
        assert f"score {score:.2f}" in ax.get_title(loc="left")
    raises(ValueError, r"^x must be one row, got 2", plot.contributions, model, X[:2])
