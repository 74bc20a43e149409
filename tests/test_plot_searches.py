"""Figures of searches: every point where it was tried, in the colour of its score."""

import numpy as np
from numpy.testing import assert_allclose
from strategies import raises

import ordinal
from ordinal import fit_svorim, plot
from ordinal.model_selection import (
    Grid,
    UniformDesign,
    learning_splits,
    nested,
    select,
    stratified_holdout,
)

X, Y = ordinal.datasets.make_gaussians(rng=0)
X, Y = X[::3], Y[::3]
C, GAMMA = [0.01, 1.0, 100.0], [0.01, 0.1]


def searched(space, fit=fit_svorim, **options):
    return select(fit, X, Y, search=space, cv=3, refit=False, **options)


def marks(ax):
    """Return the places of the ring and the diamond, by their names."""
    return {
        line.get_label(): np.ravel(line.get_data())
        for line in ax.lines
        if line.get_label() in ("best", "simplest within one standard error")
    }


def test_cells_of_a_grid_have_the_mean_scores_of_their_points():
    found = searched(Grid(C=C, gamma=GAMMA))
    ax = plot.search(found)
    (mesh,) = ax.collections
    expected = found.mean.reshape(3, 2).T  # C goes slowest
    assert_allclose(mesh.get_array().reshape(2, 3), expected)
    edges = mesh.get_coordinates()
    inside = np.log10(edges[0, :, 0]), np.log10(edges[:, 0, 1])
    assert_allclose(inside[0], [-3, -1, 1, 3])
    assert_allclose(inside[1], [-2.5, -1.5, -0.5])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "gamma")
    assert ax.get_title(loc="left").startswith(f"mae {found.best_score:.3g} ± ")
    best = found.params
    assert_allclose(marks(ax)["best"], [best["C"], best["gamma"]])
    found = searched(Grid(C=C, gamma=GAMMA, kernel=["rbf", "polynomial"]))
    ax = found.plot(x="gamma", y="C")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gamma", "C")
    table = found.mean.reshape(3, 2, 2).min(axis=2)
    assert_allclose(ax.collections[0].get_array().reshape(3, 2), table)
    for scoring, greater in (("mae", False), ("kappa", True)):
        found = searched(Grid(C=C, gamma=GAMMA), scoring=scoring)
        (mesh,) = plot.search(found).collections
        shades = mesh.to_rgba(found.mean)[:, :3].sum(axis=1)
        order = np.argsort(-found.mean if greater else found.mean)
        assert np.all(np.diff(shades[order]) >= 0)


def test_points_of_a_design_are_dots_on_a_map_between_them():
    found = searched(UniformDesign(n_points=(7, 3)))
    ax = plot.search(found)
    dots = next(line for line in ax.lines if line.get_marker() == ".")
    tried = {(p["C"], p["gamma"]) for p in found.points}
    assert set(zip(*map(np.ndarray.tolist, dots.get_data()), strict=True)) == tried
    cells = ax.collections[0].get_array()
    known = cells[np.isfinite(cells)]
    assert known.size > 0.3 * cells.size
    assert found.mean.min() - 1e-12 <= known.min()
    assert known.max() <= found.mean.max() + 1e-12


def test_points_of_one_number_are_lines():
    found = searched(Grid(C=C, kernel=["rbf", "linear"]))
    ax = plot.search(found)
    names = [t.get_text() for t in ax.texts if t.get_text() != "\N{BLACK SQUARE}"]
    assert sorted(names) == ["linear", "rbf"]
    rbf, linear = (container.lines[0] for container in ax.containers)
    assert_allclose(rbf.get_data(), [C, found.mean[::2]])
    assert_allclose(linear.get_data(), [C, found.mean[1::2]])
    (bars,) = ax.containers[0].lines[2]
    ends = np.array([path[:, 1] for path in bars.get_segments()])
    assert_allclose(np.ptp(ends, axis=1), 2 * found.standard_error[::2])
    assert ax.get_ylabel() == "mae"
    found = searched(Grid(C=C))
    ax = plot.search(found)
    assert_allclose(ax.containers[0].lines[0].get_data(), [C, found.mean])
    assert not ax.texts
    found = searched(Grid(kernel=["rbf", "linear"]))
    ax = plot.search(found)
    order = np.argsort(found.mean, kind="stable")
    assert_allclose(ax.containers[0].lines[0].get_xdata(), found.mean[order])
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == [f"kernel='{['rbf', 'linear'][i]}'" for i in order]


def noisy(X, y, C=1.0, gamma=1.0):
    """A model that cannot be fitted at C = 1."""
    if C == 1.0:
        raise ValueError("not today")
    return fit_svorim(X, y, C=C, gamma=gamma)


def test_points_that_failed_are_crosses():
    ax = plot.search(searched(Grid(C=C, gamma=GAMMA), fit=noisy))
    crosses = next(line for line in ax.lines if line.get_label() == "not fitted")
    assert_allclose(np.array(crosses.get_data()).T, [[1.0, 0.01], [1.0, 0.1]])
    ax = plot.search(searched(Grid(C=C), fit=noisy))
    assert_allclose(ax.containers[0].lines[0].get_xdata(), [0.01, 100.0])


def test_what_hold_outs_chose_is_counted():
    result = nested(fit_svorim, X, Y, search=Grid(C=C, gamma=GAMMA), outer=5, cv=2)
    ax = plot.search(result)
    counts = {(*text.get_position(),): int(text.get_text()) for text in ax.texts}
    chosen = [(p["C"], p["gamma"]) for p in result.params]
    assert counts == {place: chosen.count(place) for place in chosen}
    (tried,) = ax.lines
    assert len(tried.get_xdata()) == 6
    assert ax.get_title(loc="left") == "chosen in 5 hold-outs"
    result = nested(fit_svorim, X, Y, search=Grid(C=C), outer=3, cv=2)
    ax = plot.search(result)
    counts = {text.get_position(): int(text.get_text()) for text in ax.texts}
    chosen = [p["C"] for p in result.params]
    assert counts == {(c, 0): chosen.count(c) for c in chosen}
    assert not len(ax.get_yticks())
    words = Grid(kernel=["rbf", "linear"])
    result = nested(fit_svorim, X, Y, search=words, outer=3, cv=2)
    raises(ValueError, "found must be a search of one numeric", plot.search, result)


def test_what_is_no_search_or_no_curve_is_refused():
    found = searched(Grid(C=C, kernel=["rbf", "linear"]))
    cv = stratified_holdout(Y, 3)
    alike = select(fit_svorim, X, Y, search=Grid(C=C), cv=cv, refit=False)
    no_search = "^found must be a Selection or a Nested, got"
    for draw, what, axes, message in (
        (plot.search, fit_svorim, {}, no_search),
        (plot.search, found, {"x": "kernel"}, "^x must be one of 'C', got 'kernel'"),
        (
            plot.search,
            found,
            {"x": "C", "y": "C"},
            "^y must be one of 'kernel', got 'C'",
        ),
        (plot.learning_curve, alike, {}, "^found must have training sets of two siz"),
        (plot.learning_curve, [1, 2], {}, no_search),
    ):
        raises((ValueError, TypeError), message, draw, what, **axes)


def test_a_learning_curve_has_the_means_by_size_of_the_training_sets():
    cv = learning_splits(Y, [12, 30, 75], n_splits=4)
    found = select(fit_svorim, X, Y, search=Grid(C=[1.0]), cv=cv, refit=False)
    ax = plot.learning_curve(found, label="SVORIM")
    table = found.scores.reshape(4, 3)  # a hold-out, and its sizes
    (curve,) = ax.containers
    assert_allclose(curve.lines[0].get_data(), [[12, 30, 75], table.mean(axis=0)])
    (bars,) = curve.lines[2]
    ends = np.array([path[:, 1] for path in bars.get_segments()])
    error = table.std(axis=0, ddof=1) / 2
    assert_allclose(np.ptp(ends, axis=1), 2 * error)
    dots = [line for line in ax.lines if line.get_marker() == "."]
    assert_allclose([dot.get_ydata() for dot in dots], table.T)
    assert [t.get_text() for t in ax.texts][1:] == ["SVORIM"]
    other = select(
        ordinal.companions.fit_redsvm, X, Y, search=Grid(C=[1.0]), cv=cv, refit=False
    )
    assert plot.learning_curve(other, ax, label="RED-SVM") is ax
    names = [t.get_text() for t in ax.texts if t.get_text() != "\N{BLACK SQUARE}"]
    assert sorted(names) == ["RED-SVM", "SVORIM"]
    assert len({curve.lines[0].get_color() for curve in ax.containers}) == 2


def test_of_a_nested_search_the_points_chosen_are_drawn():
    outer = learning_splits(Y, [20, 75], n_splits=2)
    result = nested(fit_svorim, X, Y, search=Grid(C=[0.01, 1.0]), outer=outer, cv=2)
    ax = plot.learning_curve(result)
    drawn = ax.containers[0].lines[0].get_ydata()
    assert_allclose(drawn, result.scores["mae"].reshape(2, 2).mean(axis=0))
    assert not ax.texts
