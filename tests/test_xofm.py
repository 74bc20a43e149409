"""XOFM: the score and its gradient, optimality, predictions, explanations, reports."""

import dataclasses
import itertools
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from files import load_edited
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from oracles import xofm_encoding, xofm_interval, xofm_kappa, xofm_pairs, xofm_score
from scipy import optimize
from strategies import raises, sample, xofm_cases

from ordinal import fit_xofm
from ordinal.exceptions import ConvergenceWarning
from ordinal.models import Status
from ordinal.xofm.layout import Layout, quantile_knots
from ordinal.xofm.model import TrainingScores
from ordinal.xofm.objective import Bounds, LocatedRows, Objective, PairLoss, packed

SOLVERS = ["lbfgs", "sgd"]
every_solver = pytest.mark.parametrize("solver", SOLVERS)


def fit(case, **options):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return fit_xofm(case.X, case.y, **{**case.options, **options})


def encode(model, X):
    """Phi of every row of numbers (categories by their position), and the features."""
    sizes = [None if c is None else len(c) for c in model.categories]
    codes = np.array(X, dtype=float)
    for j, labels in enumerate(model.categories):
        if labels is not None:
            for i, value in enumerate(X[:, j]):
                found = np.flatnonzero(labels == value)
                codes[i, j] = found[0] if found.size else np.nan
    phi = [xofm_encoding(x, model.breakpoints, sizes, model.monotone) for x in codes]
    return np.array(phi), np.repeat(np.arange(X.shape[1]), np.diff(model.first))


def trained(case):
    return case.X[case.weight > 0], case.y[case.weight > 0]


def solution(model):
    return b"".join(part.tobytes() for part in (model.u, model.V, model.scores))


@given(xofm_cases(), st.integers(0, 99))
def test_the_gradient_is_that_of_differences(case, seed):
    model = fit(case, max_iter=1)
    rows, y = trained(case)
    layout = Layout.from_knots(model.breakpoints, model.categories, model.monotone < 0)
    phi, feature = encode(model, rows)
    codes = np.array(rows, dtype=float)
    for j, labels in enumerate(model.categories):
        if labels is not None:
            codes[:, j] = np.where(
                np.isnan(rows[:, j]), np.nan, np.searchsorted(labels, rows[:, j])
            )
    weight = case.weight[case.weight > 0]
    order = np.argsort(y, kind="stable")
    part = LocatedRows(*layout.locate(codes[order]), y[order], weight[order])
    rng = np.random.default_rng(seed)
    W = packed(rng.normal(size=model.u.size), rng.normal(size=model.V.shape))
    k = case.n_factors
    penalty = np.append(0.07, np.full(W.shape[1] - 1, 0.03))
    bounds = Bounds.from_signs(layout, np.zeros(rows.shape[1]))
    objective = Objective(layout, PairLoss(part, case.tau, 1), bounds, penalty)

    def value(W):
        U = [xofm_score(row, feature, W[:, 0], W[:, 1 : 1 + k]) for row in phi]
        loss, _, M = xofm_pairs(U, y, weight, case.tau)
        return loss / M + (penalty * W**2).sum()

    at, gradient = objective.at(W)
    assert_allclose(at, value(W), rtol=1e-11)
    assert not gradient[:, 1 + k :].any()
    direction = np.where(np.arange(W.shape[1]) <= k, rng.normal(size=W.shape), 0)
    shares = np.array([1, -8, 8, -1]) / 12
    for h in (1e-4, 1e-6):  # the first passes more margins, the second rounds more
        slope = shares @ [value(W + t * h * direction) for t in (-2, -1, 1, 2)] / h
        if np.isclose((gradient * direction).sum(), slope, rtol=1e-6, atol=1e-7):
            break
    else:
        raise AssertionError((gradient * direction).sum(), slope)


@given(
    hnp.arrays(np.float64, st.integers(1, 20), elements=st.integers(-4, 4)),
    st.integers(1, 6),
    st.data(),
)
def test_quantile_knots_are_those_of_rows_written_out(x, pieces, data):
    weight = data.draw(hnp.arrays(np.int64, x.size, elements=st.integers(1, 3)))
    knots = quantile_knots(x, weight.astype(float), pieces)
    written = np.repeat(x, weight)
    assert_array_equal(knots, quantile_knots(written, np.ones(written.size), pieces))
    assert knots[0] == x.min()
    assert knots[-1] == x.max()
    assert np.all(np.diff(knots) > 0)
    for k in range(1, pieces):  # and those of numpy
        quantile = np.quantile(written, k / pieces, method="inverted_cdf")
        if not np.isclose(written.size * k / pieces % 1, [0, 1], atol=1e-9).any():
            assert quantile in knots


def objective_of(model, case):
    """(P) by the oracles, without the pieces that stand for the mean row."""
    rows, y = trained(case)
    phi, feature = encode(model, rows)
    U = [xofm_score(row, feature, model.u, model.V) for row in phi]
    loss, _, M = xofm_pairs(U, y, case.weight[case.weight > 0], case.tau)
    seen = phi.any(axis=0)
    of_numbers = np.ones(phi.shape[1], dtype=bool)
    of_numbers[model.first[1:] - 1] = False  # a knot may be all that rows are at
    for j in np.flatnonzero(case.is_category):
        of_numbers[model.first[j] : model.first[j + 1]] = False
    kept = seen | of_numbers
    penalty = case.l2_main * (model.u[kept] ** 2).sum()
    return loss / M + penalty + case.l2_pair * (model.V[kept] ** 2).sum()


@every_solver
@given(case=xofm_cases())
def test_the_record_is_that_of_the_model(solver, case):
    model = fit(case, solver=solver, **({"n_epochs": 3} if solver == "sgd" else {}))
    c = model.convergence
    assert_allclose(c.primal, objective_of(model, case), rtol=1e-10, atol=1e-12)
    assert c.dual is None
    assert c.converged == (c.violation <= c.tol)
    if solver == "lbfgs":
        assert c.converged
    bounded = np.repeat(case.sign != 0, np.diff(model.first))
    bounded[model.first[1:] - 1] = False
    assert np.all(model.u[bounded] >= 0)
    if case.sign.any():
        assert np.all(model.V >= 0)


@given(xofm_cases(monotone=False, factors=[0]))
def test_main_effects_alone_reach_the_optimum_of_a_general_purpose_solver(case):
    model = fit(case, tol=1e-9)
    rows, y = trained(case)
    phi, _ = encode(model, rows)
    weight = case.weight[case.weight > 0]
    M = xofm_pairs(np.zeros(len(y)), y, weight, case.tau)[2]

    def value(u):
        loss, slope, _ = xofm_pairs(phi @ u, y, weight, case.tau)
        return loss / M + case.l2_main * u @ u, phi.T @ slope / M + 2 * case.l2_main * u

    best = optimize.minimize(
        value, np.zeros(phi.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}
    )
    assert_allclose(model.convergence.primal, best.fun, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("monotone", [[0, 0, 0], [1, 0, -1]])
def test_one_batch_of_all_pairs_is_a_step_along_the_exact_gradient(monotone):
    """So every pair is in a pass once: the random order is one."""
    X, y = sample(70, 5)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 70)
    pairs = int(xofm_pairs(np.zeros(70), y, np.ones(70), 1.0)[2])
    options = {"sample_weight": weight, "rng": 3, "init_scale": 0.5}
    options.update(monotone=monotone, l2_main=1e-3, l2_pair=1e-3)
    rate = 1e-3
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # the looks at the objective cut a run in 50: 50 passes of a batch each
        moved = fit_xofm(
            X, y, solver="sgd", batch_size=pairs, n_epochs=50, learning_rate=rate,
            **options,
        )  # fmt: skip
        start = fit_xofm(X, y, max_time=1e-12, **options)
    layout = Layout.from_knots(start.breakpoints, start.categories, start.monotone < 0)
    order = np.argsort(y, kind="stable")
    rows = LocatedRows(*layout.locate(X[order]), y[order], weight[order])
    W = packed(start.u, start.V)
    W[layout.first[1:] - 1] = 0  # nothing is missing
    bounds = Bounds.from_signs(layout, np.zeros(3))
    objective = Objective(layout, PairLoss(rows, 1.0, 1), bounds, np.full(8, 1e-3))
    bounded = Bounds.from_signs(layout, start.monotone)
    squared = bounded.squared.astype(bool)
    for step in range(50):
        move = rate * (1 - step / 50) * objective.at(W)[1]
        roots = np.sqrt(W[squared, 0])
        W -= move
        W[squared, 0] = (roots - 2 * roots * move[squared, 0]) ** 2
        if bounded.factors:
            W[:, 1:] = np.maximum(W[:, 1:], 0)
    has_rows = np.ones(len(W), dtype=bool)
    has_rows[layout.first[1:] - 1] = False
    assert_allclose(moved.u[has_rows], W[has_rows, 0], atol=1e-12)
    assert_allclose(moved.V[has_rows], W[has_rows, 1:5], atol=1e-12)


def product(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    score = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.05 * rng.normal(size=n)
    return X, np.argsort(np.argsort(score)) * 4 // n


@given(xofm_cases(), st.floats(-1, 1))
def test_intervals_and_shares_are_those_of_the_definitions(case, shift):
    model = fit(case, max_iter=5)
    rows, y = trained(case)
    weight = case.weight[case.weight > 0]
    X = np.where(case.is_category, case.X, case.X + shift)
    scores, U = model.decision_function(rows), model.decision_function(X)
    interval = model.predict_interval(X)
    P = model.predict_proba(X, proba="share")
    assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    labels = model.predict(X)
    for i, value in enumerate(U):
        L, R = sorted(xofm_interval(value, scores, y, weight))
        assert_array_equal(interval[i], [L, R])
        held = [h for h in range(L, R + 1) if h in y]
        for tau in (case.tau, 0.0):
            kappa = [xofm_kappa(value, h, scores, y, weight, tau) for h in held]
            if any(kappa):
                break
        else:
            kappa = np.ones(len(held))
        expected = np.zeros(case.r)
        expected[held] = np.array(kappa) / sum(kappa)
        assert_allclose(P[i], expected, atol=1e-12)
        assert labels[i] == P[i].argmax()


def test_labels_are_of_the_largest_share_and_probabilities_of_the_link():
    X, y = sample(150, 5, noise=2.0)
    model = fit_xofm(X, y, probability=True)
    P, shares = model.predict_proba(X), model.predict_proba(X, proba="share")
    assert_array_equal(P, model.predict_proba(X, proba="link"))
    assert_array_equal(P, model.link(model.decision_function(X)))
    assert P.min() > 0
    assert (shares == 0).any()
    assert_array_equal(model.predict(X), shares.argmax(axis=1))
    raises(ValueError, "proba must be one of", model.predict_proba, X, proba="mode")


def test_scores_of_two_models_are_put_in_one_unit():
    """A shift of the training scores is a shift of what they mean."""
    X, y = sample(80, 4)
    model = fit_xofm(X, y)
    U = model.decision_function(X)
    assert_allclose(model.link_input(X, model), U)
    moved = dataclasses.replace(model, scores=3 * model.scores + 2.5)
    assert_allclose(model.link_input(X, moved), 3 * U + 2.5)
    heavier = dataclasses.replace(model, mass=0.25 * model.mass)
    assert_allclose(model.link_input(X, heavier), U, atol=1e-12)
    fewer = fit_xofm(X, np.minimum(y, 2), classes=range(4))  # a rank without rows
    assert np.isfinite(model.link_input(X, fewer)).all()
    with pytest.raises(TypeError, match=r"like must be an? "):
        model.link_input(X, fit_xofm(X, np.minimum(y, 2)))


def test_scores_that_order_no_ranks_keep_their_unit():
    start = np.array([0, 2, 4])
    rising = TrainingScores(np.array([0.0, 1, 4, 5]), np.array([1.0, 2, 1, 2]), start)
    flat = TrainingScores(np.array([1.0, 3, 0, 4]), rising.mass, start)
    falling = TrainingScores(np.array([6.0, 8, 0, 2]), rising.mass, start)
    U = np.array([0.0, 1.0, 7.0])
    assert_allclose(rising.in_unit_of(flat, U), U - 2.5 + 2)
    assert_allclose(flat.in_unit_of(rising, U), U - 2 + 2.5)
    assert_allclose(falling.in_unit_of(rising, U), U - 4 + 2.5)


def frame_columns():
    rng = np.random.default_rng(4)
    n = 120
    age = np.where(rng.random(n) < 0.2, np.nan, rng.uniform(20, 60, n))
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.integers(1, 4, n)
    score = np.nan_to_num(age, nan=70) / 20 + (colour == "red") + size
    return age, colour, size, np.searchsorted(np.quantile(score, [0.3, 0.7]), score)


def test_missing_values_and_categories_are_pieces_of_their_own():
    age, colour, size, y = frame_columns()
    frame = pd.DataFrame({"age": age, "colour": pd.Categorical(colour), "size": size})
    model = fit_xofm(frame, y, monotone={"size": 1})
    assert model.feature_names == ("age", "colour", "size")
    by_age, by_colour, by_size = model.score_functions()
    assert_array_equal(by_colour.at, ["blue", "green", "red"])
    assert by_colour.score.argmax() == 2
    assert by_age.missing > by_age.score.max()
    assert by_size.name == "size"
    assert by_size.at[0] == 1
    assert by_size.at[-1] == 3
    assert (model.predict(frame) == y).mean() > 0.9

    # the same by another way
    U = model.decision_function(frame)
    reordered = frame[["size", "colour", "age"]].assign(more=1)
    assert_array_equal(model.decision_function(reordered), U)
    rows = [list(row) for row in zip(age.tolist(), colour, size, strict=True)]
    assert_array_equal(model.decision_function(rows), U)
    listed = fit_xofm(rows, y, monotone=[0, 0, 1], categorical=[1])
    assert_array_equal(listed.decision_function(rows), U)
    assert listed.feature_names is None
    assert listed.importance().names[:4] == ("x1", "x2", "x3", "x1:x2")
    enum = pl.DataFrame({"age": age, "colour": colour, "size": size}).with_columns(
        pl.col("colour").cast(pl.Enum(["red", "green", "blue"]))
    )
    ordered = fit_xofm(enum, y, monotone={"size": 1})
    assert_array_equal(ordered.categories[1], ["red", "green", "blue"])
    # words are categories without a word
    assert_array_equal(fit_xofm(rows, y).categories[1], ["blue", "green", "red"])


@given(xofm_cases())
def test_contributions_add_up_to_the_score(case):
    model = fit(case, max_iter=20)
    U = model.decision_function(case.X)
    names, values = model.contributions(case.X)
    d = case.X.shape[1]
    assert values.shape == (len(U), 1 + d + d * (d - 1) // 2)
    assert len(names) == values.shape[1]
    assert names[0] == "base"
    assert names[1 : 1 + d] == tuple(f"x{j + 1}" for j in range(model.n_features))
    E = curves_of(model, case.X)
    size = np.abs(E[:, :, 0]).sum(axis=1) + np.square(np.abs(E).sum(axis=(1, 2)))
    assert np.all(np.abs(values.sum(axis=1) - U) <= 1e-13 * (1 + size))
    main, pairs, base = purified(model, case, case.X)
    scale = 1e-12 * (1 + size.max())
    assert_allclose(values[:, 0], base, rtol=0, atol=scale)
    assert_allclose(values[:, 1 : 1 + d], main, rtol=0, atol=scale)
    for j, curve in enumerate(model.score_functions()):
        if not case.is_category[j]:
            there = ~np.isnan(case.X[:, j])
            on_curve = np.interp(case.X[there, j], curve.at, curve.score)
            assert_allclose(values[there, 1 + j], on_curve, atol=scale)
            assert_allclose(values[~there, 1 + j], curve.missing, atol=scale)
    for column, (a, b) in enumerate(combinations(range(d), 2), 1 + d):
        assert names[column] == f"x{a + 1}:x{b + 1}"
        assert_allclose(values[:, column], np.diagonal(pairs[a, b]), rtol=0, atol=scale)
    rows, weight = trained(case)[0], case.weight[case.weight > 0]
    (main, pairs, _), weight = purified(model, case, rows), weight / weight.sum()
    expected = [np.sqrt(weight @ effect**2) for effect in main.T]
    expected += [np.sqrt(weight @ grid**2 @ weight) for grid in pairs.values()]
    found = model.importance()
    assert found.names == names[1:]
    # the squares are differences of sums of the largest of them
    scale = 1e-12 * (1 + np.square(np.abs(curves_of(model, rows)).sum()))
    assert_allclose(found.values, expected, rtol=1e-6, atol=np.sqrt(scale) * 1e-1)


def curves_of(model, X):
    """Return what each feature of each row has of u and V, by the encoding."""
    phi, feature = encode(model, X)
    pieces = np.column_stack([model.u, model.V])
    d = X.shape[1]
    return np.stack(
        [phi[:, feature == j] @ pieces[feature == j] for j in range(d)], axis=1
    )


def purified(model, case, X):
    """Main effects (n, d), pair effects of every two values (n, n) by pair, and the
    base, by sums over the training rows: of a product of factors the mean over each of
    its features is taken away, and given to the other's main effect."""
    rows, weight = trained(case)[0], case.weight[case.weight > 0]
    weight = weight / weight.sum()
    E, T = curves_of(model, X), curves_of(model, rows)
    d = X.shape[1]
    means = weight @ T[:, :, 0]
    main, base, pairs = E[:, :, 0] - means, means.sum(), {}
    for a, b in combinations(range(d), 2):
        at, over_a = E[:, a, 1:] @ E[:, b, 1:].T, T[:, a, 1:] @ E[:, b, 1:].T
        over_b, over_both = E[:, a, 1:] @ T[:, b, 1:].T, T[:, a, 1:] @ T[:, b, 1:].T
        of_b, of_a, mean = weight @ over_a, over_b @ weight, weight @ over_both @ weight
        pairs[a, b] = at - of_a[:, None] - of_b + mean
        main[:, a] += of_a - mean
        main[:, b] += of_b - mean
        base += mean
    return main, pairs, base


@given(xofm_cases())
def test_shares_of_rows_are_those_counted(case):
    model = fit(case, max_iter=1)
    rows, weight = trained(case)[0], case.weight[case.weight > 0]
    for j, curve in enumerate(model.score_functions()):
        x, missing = rows[:, j], np.isnan(rows[:, j])
        if case.is_category[j]:
            counted = [weight[x == label].sum() for label in curve.at]
        elif curve.at.size == 1:
            counted = [weight[~missing].sum()]
        else:
            ends = curve.at[0], curve.at[-1]
            counted, edges = np.histogram(
                x[~missing], curve.share.size, ends, weights=weight[~missing]
            )
            place = (x[~missing, None] - edges) / np.ptp(ends)
            assume((np.abs(place[(x[~missing] != ends[1])][:, 1:-1]) > 1e-9).all())
        assert_allclose(curve.share, np.array(counted) / weight.sum(), atol=1e-12)
        absent = weight[missing].sum() / weight.sum()
        assert_allclose(1 - curve.share.sum(), absent, atol=1e-12)


def test_an_interaction_is_the_effect_at_every_two_values():
    age, colour, size, y = frame_columns()
    frame = pd.DataFrame({"age": age, "colour": colour, "size": size})
    model = fit_xofm(frame, y, categorical=["colour"], n_intervals=4)
    found = model.interaction("age", "colour")
    assert found.names == ("age", "colour")
    assert_array_equal(found.at[0], model.breakpoints[0])
    assert_array_equal(found.at[1], ["blue", "green", "red"])
    assert found.values.shape == (5, 3)
    ages, colours = [*found.at[0], np.nan], [*found.at[1], None]
    rows = pd.DataFrame(
        list(itertools.product(ages, colours)), columns=["age", "colour"]
    )
    parts = model.contributions(rows.assign(size=2))
    grid = parts.values[:, parts.names.index("age:colour")].reshape(6, 4)
    assert_allclose(found.values, grid[:-1, :-1], atol=1e-13)
    assert_allclose(found.missing[0], grid[-1, :-1], atol=1e-13)
    assert_allclose(found.missing[1], grid[:-1, -1], atol=1e-13)
    assert_allclose(found.both_missing, grid[-1, -1], atol=1e-13)
    assert np.abs(found.missing[0]).max() > 1e-3
    assert_allclose(grid[:, -1], 0, atol=1e-13)  # no row lacks its colour


def test_interactions_by_name_by_number_and_by_strength():
    X, y = product()
    model = fit_xofm(X, y, n_intervals=[2, 3, 4])
    pair = model.interaction("x3", 1)
    assert pair.names == ("x3", "x2")
    assert [len(at) for at in pair.at] == [5, 4]
    other = model.interaction(1, 2)
    assert_allclose(other.values, pair.values.T)
    assert other.strength == pair.strength
    strengths = [found.strength for found in model.interactions()]
    assert strengths == sorted(strengths, reverse=True)
    assert len(strengths) == 3
    assert [found.strength for found in model.interactions(top=2)] == strengths[:2]
    names, values = model.importance()
    assert names == ("x1", "x2", "x3", "x1:x2", "x1:x3", "x2:x3")
    assert_array_equal(np.sort(values[3:])[::-1], strengths)
    for bad in ((0, 0), ("x1", "x1"), ("x9", 0), (0, 3), (True, 0)):
        with pytest.raises(ValueError, match=r"^(a and b must|[ab] (names|must))"):
            model.interaction(*bad)
    raises(ValueError, "top must be a positive integer", model.interactions, top=0)


def test_early_stopping_returns_the_best_for_the_rows_held_out():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 8))
    y = (X[:, 0] + 2 * rng.normal(size=200) > 0).astype(int)
    options = {"l2_main": 0.0, "l2_pair": 0.0, "max_iter": 300}
    options["n_intervals"] = 4
    stopped = fit_xofm(X, y, early_stopping=0.25, **options)
    c = stopped.convergence
    assert c.status is Status.HELD_OUT
    assert not c.converged
    assert c.n_iter < 100
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        whole = fit_xofm(X, y, **options)
    assert whole.convergence.primal < c.primal
    # ten steps past the best one, which is what comes back
    options["max_iter"] = c.n_iter - 10
    with pytest.warns(ConvergenceWarning):
        best = fit_xofm(X, y, early_stopping=0.25, **options)
    assert solution(best) == solution(stopped)
    new = rng.normal(size=(2000, 8))
    truth = new[:, 0] > 0
    agree = [(m.predict(new) == truth).mean() for m in (stopped, whole)]
    assert agree[0] > agree[1]
    assert stopped.scores.size == 200  # those held out are training rows all the same
    assert_allclose(
        np.sort(stopped.scores), np.sort(stopped.decision_function(X)), rtol=0
    )
    sgd = fit_xofm(X, y, early_stopping=0.25, l2_main=0.0, solver="sgd", n_epochs=20.0)
    assert sgd.convergence.status is Status.HELD_OUT


def test_a_rate_that_is_too_large_is_reported():
    X, y = sample(50, 3)
    with pytest.raises(ValueError, match=r"learning_rate=1000 is too large"):
        fit_xofm(X, y, solver="sgd", learning_rate=1000.0, n_epochs=100)


@pytest.mark.parametrize(("options", "message"), [
    ({"tau": 0}, "tau must be a positive finite number"),
    ({"n_intervals": 0}, "n_intervals must be a positive"),
    ({"n_intervals": [0]}, r"n_intervals\[0\] must be"),
    ({"n_intervals": [1, 2]}, "n_intervals has 2 entries"),
    ({"n_epochs": 3}, "n_epochs is for solver='sgd' or 'algorithm1' only"),
    ({"solver": "algorithm1", "batch_size": 1}, "batch_size is for solver='sgd'"),
    ({"solver": "sgd", "max_iter": 3}, "max_iter is for solver='lbfgs' only"),
    ({"early_stopping": 1.0}, "early_stopping must be a share"),
    ({"early_stopping": True}, "early_stopping must be a share"),
    ({"early_stopping": 0.2}, "early_stopping=0.2 must hold out"),
    ({"monotone": [2]}, "monotone of 'x1' must be -1, 0 or 1"),
    ({"monotone": [1, 1]}, "monotone must name features or"),
    ({"monotone": {"age": 1}}, "monotone names 'age'"),
    ({"monotone": [1], "categorical": [0]}, "'x1', whose categories have no order"),
    ({"categorical": "x1"}, "categorical must be a sequence"),
    ({"categorical": [1]}, "categorical must name columns or"),
    ({"categorical": ["b"]}, "categorical names 'b'"),
])  # fmt: skip
def test_a_bad_argument_is_named(options, message):
    raises(ValueError, message, fit_xofm, [[0.0], [1.0], [2.0]], [0, 1, 1], **options)


def test_probabilities_are_finite_where_one_rank_outweighs_the_others():
    """Weights may differ by 1e15, and 67 + 2e-15 is 67."""
    X, y = sample(200, 3)
    weight = np.where(y == y.min(), 1.0, 0.0)
    weight[np.flatnonzero(weight == 0)[:2]] = 1e-15
    model = fit_xofm(X, y, sample_weight=weight, max_iter=3000)
    P = model.predict_proba(np.concatenate([X, 10 * X, -10 * X]), proba="share")
    assert np.isfinite(P).all()
    assert_allclose(P.sum(axis=1), 1)


LARGEST = np.finfo(np.float64).max


@pytest.fixture(scope="module")
def genuine():
    return fit_xofm(*sample(40, 3), max_iter=3000)


@pytest.mark.parametrize(("field", "edit", "message"), [
    ("u", lambda a: np.full_like(a, LARGEST), "make scores beyond double"),
    ("V", lambda a: np.full_like(a, 1e160), "make scores beyond double"),
    ("node_mass", lambda a: 2 * a, "node_mass must sum to 1 for each feature"),
    ("node_mass", lambda a: -a, "XofmModel.node_mass must be >= 0"),
    ("node_between", lambda a: a + 1, "node_between must be at most node_mass"),
    ("node_between", lambda a: a[:-1], "makes N"),
    ("histogram.0", lambda a: a + 1, "histogram must hold shares"),
    ("histogram.0", lambda a: a[:0], "histogram must hold shares"),
    ("scores", lambda a: a[::-1], "scores must not fall within a rank"),
    ("mass", lambda a: 0 * a, "XofmModel.mass must be positive"),
    ("mass", lambda a: a[::-1], "mass must not fall within a rank"),
    ("mass", lambda a: a * 1e300, "mass must be at most the number of rows"),
    ("start", lambda a: a + 1, "start must divide the scores"),
    ("start", lambda a: a[::-1], "XofmModel.start must not fall"),
    ("first", lambda a: a + 1, "first must count the pieces"),
    ("monotone", lambda a: a + 2, "XofmModel.monotone must be -1, 0 or 1"),
    ("breakpoints.0", lambda a: a[::-1], r"breakpoints\[0\] must increase"),
    ("breakpoints.0", lambda a: a[:0], "breakpoints are for the features of num"),
    ("breakpoints.0", lambda a: LARGEST * np.linspace(-1, 1, a.size), "span"),
])  # fmt: skip
def test_a_file_that_makes_no_model_is_refused(field, edit, message, genuine, tmp_path):
    raises(ValueError, message, load_edited, genuine, tmp_path, {field: edit})


def test_link_input_refuses_what_is_no_table_and_takes_no_place_for_a_category():
    X = np.column_stack([np.arange(30) % 7, np.arange(30) % 3])
    model = fit_xofm(X, np.arange(30) % 3, categorical=[1])
    for bad in (X[:, :1], X[0], np.full(X.shape, np.inf)):
        raises(ValueError, r"^X ", model.link_input, bad, model)
    far, gap = X.astype(float), X.astype(float)
    far[:, 1], gap[:, 1] = 1e9, np.nan
    assert_array_equal(model.link_input(far, model), model.link_input(gap, model))


@given(st.integers(0, 99), st.permutations(range(5)))
def test_the_order_of_the_columns_changes_no_prediction(seed, order):
    """At the default tolerance, which the solver's rounding stays far below."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 5))
    X[:, 4] = X[:, 4].round()
    rank = np.searchsorted([-0.7, 0.7], X[:, 0] + X[:, 1] * X[:, 4])
    y = np.where(rng.random(80) < 0.1, rng.integers(0, 3, 80), rank)
    sign = np.where(np.arange(5) == 0, seed % 2, 0)
    options = {"n_intervals": 4, "n_factors": 2}
    model = fit_xofm(X, y, monotone=sign, **options)
    other = fit_xofm(X[:, order], y, monotone=sign[order], **options)
    f, g = model.decision_function(X), other.decision_function(X[:, order])
    assert_allclose(f, g, rtol=0, atol=1e-3 * f.std())


def literal_algorithm_1(X, pieces, u, V, steps, eta, tau, lambda1, lambda2, within):
    """Lines 3 to 13 for the only pair of the rows X, the higher rank first.

    Phi by Definition 2, with `pieces` of equal length between the two values of a
    feature; pairs of pieces of the same feature are left out unless `within`.
    """
    share = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    Phi = np.clip(share[:, :, None] * pieces - np.arange(pieces), 0, 1)
    Phi = Phi.reshape(2, -1)
    feature = np.repeat(np.arange(X.shape[1]), pieces)
    other = feature[:, None] != feature
    if within:
        other = ~np.eye(feature.size, dtype=bool)
    for _ in range(steps):
        U = Phi @ u + 0.5 * np.einsum("na,nb,ab,af,bf->n", Phi, Phi, other, V, V)
        short = max(0.0, tau - U[0] + U[1])
        of_V = np.einsum("na,nb,ab,bf->naf", Phi, Phi, other, V)
        du = -2 * short * (Phi[0] - Phi[1]) + 2 * lambda1 * u
        dV = -2 * short * (of_V[0] - of_V[1]) + 2 * lambda2 * V
        u, V = u - eta * du, V - eta * dV
    return u, V


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("steps", [1, 7, 40])
def test_algorithm_1_takes_the_steps_of_the_paper(steps, within):
    """With a column per piece also those by pairs of pieces of one feature: (4)."""
    rows = np.array([[0.3, -1.0, 2.0], [1.0, 0.5, -1.0]])
    X, y, pieces, rng = rows, np.array([2, 1]), 3, 5
    if within:
        ends = np.linspace(rows.min(axis=0), rows.max(axis=0), pieces + 1).T
        X = np.clip(rows[:, :, None], ends[:, :-1], ends[:, 1:]).reshape(2, -1)
    own = 1 if within else pieces  # of a column
    options = {
        "solver": "algorithm1", "n_intervals": own, "n_factors": 2, "tau": 0.7,
        "l2_main": 0.03, "l2_pair": 0.2, "init_scale": 0.4, "rng": rng,
    }  # fmt: skip
    start = fit_xofm(X, y, learning_rate=1e-30, **options)
    model = fit_xofm(X, y, learning_rate=0.05, n_epochs=steps, **options)
    # the last piece of each column is for missing values
    own = np.tile([True] * own + [False], X.shape[1])
    assert_allclose(start.u[own], 0, atol=1e-25)
    u, V = literal_algorithm_1(
        rows, pieces, start.u[own], start.V[own], steps, 0.05, 0.7, 0.03, 0.2, within
    )
    assert_allclose(model.u[own], u, rtol=1e-9, atol=1e-12)
    assert_allclose(model.V[own], V, rtol=1e-9, atol=1e-12)
