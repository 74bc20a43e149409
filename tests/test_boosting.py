"""Boosting: its derivatives, trees against LightGBM, and what a file may hold."""

import dataclasses
import textwrap
from itertools import pairwise
from types import SimpleNamespace

import lightgbm
import numpy as np
import pandas as pd
import pytest
from files import load_edited, solution
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from processes import printed
from scipy.sparse import coo_array, csc_array, csr_array
from strategies import at_most, raises, sample

import ordinal
from ordinal._cumulative.likelihood import cumulative, exceeding, rank_probabilities
from ordinal._input.sparse import CSR
from ordinal._model.registry import path_of
from ordinal._solvers import _cumulative
from ordinal.boosting import Trees, forest
from ordinal.boosting.forest import DEEPEST
from ordinal.boosting.growing import ColumnOrder
from ordinal.preprocessing import PreprocessedModel, Standardizer

LINKS = _cumulative.LINKS
PLAIN = {"row_share": 1.0, "feature_share": 1.0}


def evaluated(link, f, rank, weight, theta, n_threads=1, value=True):
    """Value, slopes and curvatures of the loss by the kernel."""
    n = f.size
    slope, bend = np.empty((2, n), np.float32)
    value = np.empty(_cumulative.blocks_of(n) if value else 0)
    _cumulative.score_slopes(
        LINKS.index(link), f, rank.astype(np.int32), weight,
        np.concatenate([[-np.inf], theta, [np.inf]]), slope, bend, value, n_threads,
    )  # fmt: skip
    return value.sum(), slope, bend


def probabilities(link, f, theta):
    eta = theta - f[:, None]
    return rank_probabilities(cumulative(link, eta), exceeding(link, eta))


@pytest.mark.parametrize("link", LINKS)
def test_derivatives_are_those_of_the_loss(link):
    rng = np.random.default_rng(0)
    n, theta = 400, np.array([-1.0, 0.2, 1.5])
    f, rank = rng.normal(size=n), rng.integers(0, 4, n)
    weight = np.where(np.arange(n) % 7 == 0, 0.0, np.exp(3 * rng.normal(size=n)))
    value, slope, bend = evaluated(link, f, rank, weight, theta)
    P = probabilities(link, f, theta)
    without_value = evaluated(link, f, rank, weight, theta, value=False)
    assert_array_equal(without_value[1:], (slope, bend))
    every = np.arange(n)
    assert_allclose(value, -weight @ np.log(P[every, rank]), rtol=1e-12)

    def loss(f):
        return -weight * np.log(probabilities(link, f, theta)[every, rank])

    h = 1e-4
    assert_allclose(slope, (loss(f + h) - loss(f - h)) / (2 * h), rtol=1e-4, atol=1e-6)
    if link != "cauchit":
        second = (loss(f + h) - 2 * loss(f) + loss(f - h)) / h**2
        assert_allclose(bend, second, rtol=1e-3, atol=1e-4)
        return
    by_rank = (np.log(probabilities(link, f + h, theta))
               - np.log(probabilities(link, f - h, theta))) / (2 * h)  # fmt: skip
    assert_allclose(bend, weight * (P * by_rank**2).sum(axis=1), rtol=1e-4)
    assert (bend >= 0).all()


def test_a_stump_for_two_ranks_is_the_closed_form():
    """Weights 3 and 1 of the ranks on one side, 1 and 3 on the other."""
    X = np.repeat([[0.0], [1.0]], 2, axis=0)
    y, weight = np.array([0, 1, 0, 1]), np.array([3.0, 1.0, 1.0, 3.0])
    model = ordinal.fit_boosting(
        X, y, sample_weight=weight, n_rounds=1, learning_rate=0.5, min_rows=1, **PLAIN
    )
    w = weight / weight.mean()
    # at f = b = 0 the slope is w (1/2 - y), the curvature w / 4
    G, H = (w * (0.5 - y)).reshape(2, 2).sum(axis=1), (w / 4).reshape(2, 2).sum(axis=1)
    expected = -0.5 * G / (H + 1)
    assert_allclose(model.decision_function([[0.0], [1.0]]), expected, rtol=1e-6)
    assert_allclose(model.thresholds, 0.0, atol=1e-6)


@pytest.mark.parametrize("structure", ["score", "scores"])
@pytest.mark.parametrize("link", LINKS)
def test_thresholds_are_at_their_optimum_and_the_score_has_mean_0(link, structure):
    X, y = sample(200, 4, noise=1.0)
    weight = 1.0 + np.arange(200) % 3
    model = ordinal.fit_boosting(
        X, y, sample_weight=weight, n_rounds=15, link=link, structure=structure
    )
    for k, f in enumerate(model._sums(model._rows(X))):
        assert_allclose(weight @ f, 0, atol=1e-8)
        one = structure == "score"
        theta = model.thresholds if one else model.thresholds[[k]]
        rank = y if one else (y > k).astype(int)

        def loss(b, f=f, rank=rank):
            P = probabilities(link, f, b)
            return -weight @ np.log(P[np.arange(200), rank]) / weight.sum()

        for j in range(theta.size):
            step = np.zeros(theta.size)
            step[j] = 1e-5
            assert abs(loss(theta + step) - loss(theta - step)) / 2e-5 < 1e-6


def test_bins_of_some_of_many_rows_part_all_of_them():
    X, y = sample(50_001, 3, noise=1.0)
    model = ordinal.fit_boosting(X, y, n_rounds=2)
    P = model.predict_proba(X)[np.arange(len(y)), y]
    assert_allclose(model.convergence.primal, -np.log(P).mean(), rtol=1e-10)


@pytest.mark.parametrize("structure", ["score", "scores"])
def test_monotone_features_act_in_one_direction(structure):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    f = X[:, 0] + np.sin(6 * X[:, 0]) - X[:, 1] + X[:, 1] * X[:, 2]
    y = np.digitize(f + 0.3 * rng.logistic(size=400), [-1, 0, 1])
    grid, free = np.linspace(-1.2, 1.2, 60), []
    for monotone in ({"x1": 1, "x2": -1}, None):
        model = ordinal.fit_boosting(
            pd.DataFrame(X, columns=["x1", "x2", "x3"]), y, n_rounds=60,
            monotone=monotone, structure=structure,
        )  # fmt: skip
        worst = 0.0
        for row in X[:20]:
            for j, sign in ((0, 1), (1, -1)):
                rows = np.tile(row, (60, 1))
                rows[:, j] = grid
                values = model.decision_function(rows).reshape(60, -1)
                worst = min(worst, (sign * np.diff(values, axis=0)).min())
        free.append(worst)
    assert free[0] == 0.0
    assert free[1] < 0  # and without the constraint it does not


def paths(trees):
    """Sets of the features on the ways from the roots to the leaves."""

    def below(first, node, seen):
        if node < 0:
            yield seen
            return
        seen = seen | {int(trees.feature[first + node])}
        for child in (trees.left[first + node], trees.right[first + node]):
            yield from below(first, int(child), seen)

    for first, after in pairwise(trees.first.tolist()):
        if after > first:
            yield from below(first, 0, frozenset())


@pytest.mark.parametrize("structure", ["score", "scores"])
def test_no_path_has_features_of_two_groups(structure):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 5))
    f = 4 * X[:, 0] * X[:, 1] + 4 * X[:, 2] * X[:, 3] + 4 * X[:, 1] * X[:, 4]
    y = np.digitize(f + 0.3 * rng.logistic(size=400), [-1, 1])
    frame = pd.DataFrame(X, columns=list("abcde"))
    options = {"n_rounds": 40, "structure": structure}
    free = ordinal.fit_boosting(frame, y, **options)
    held = ordinal.fit_boosting(frame, y, interactions=[["a", "b"], ["c"]], **options)
    numbered = ordinal.fit_boosting(X, y, interactions=[[0, 1], [2], [3, 4]], **options)
    groups = {0, 1}, {2}, {3, 4}  # d and e are in none, which makes one more
    inside = [any(path <= group for group in groups) for path in paths(held.trees)]
    assert len(inside) == held.trees.value.size
    assert all(inside)
    assert {frozenset({0, 1}), frozenset({3, 4})} <= set(paths(held.trees))
    assert not all(any(p <= group for group in groups) for p in paths(free.trees))
    assert_array_equal(held.predict_proba(frame), numbered.predict_proba(X))


def test_no_rank_is_impossible_where_scores_are_put_in_order():
    X, y = sample(60, 4, seed=3)
    model = ordinal.fit_boosting(X, y, structure="scores", n_rounds=300)
    P, above = model.predict_proba(X), 1 / (1 + np.exp(-model.decision_function(X)))
    assert (np.diff(above, axis=1) > 0).any()  # out of order, and equal afterwards
    h = np.bincount(y) / 60
    assert_allclose(P[P < h / 60].min(), h.min() / 61, rtol=1e-6)
    assert_allclose(P.sum(axis=1), 1)
    ordered = (np.diff(above, axis=1) <= 0).all(axis=1)
    plain = -np.diff(np.c_[np.ones(60), above, np.zeros(60)], axis=1)
    assert_allclose(P[ordered], ((60 * plain + h) / 61)[ordered], rtol=1e-9)


@pytest.mark.parametrize("structure", ["score", "scores"])
def test_constant_features_leave_the_frequencies(structure):
    rng = np.random.default_rng(0)
    y, weight = rng.permutation(np.repeat([0, 1, 3], [25, 10, 5])), rng.random(40)
    model = ordinal.fit_boosting(
        np.ones((40, 2)), y, structure=structure, sample_weight=weight,
        classes=[0, 1, 2, 3],
    )  # fmt: skip
    expected = np.bincount(y, weight, 4) / weight.sum()
    assert_allclose(model.predict_proba([[1.0, 1.0]])[0], expected, rtol=1e-6)


def same_but_for_the_record(a, b):
    bare = {"held_out": np.zeros(0), "convergence": None}
    first, second = (solution(dataclasses.replace(m, **bare)) for m in (a, b))
    return first == second


@pytest.mark.parametrize("structure", ["score", "scores"])
def test_auto_takes_the_best_number_of_rounds_and_fits_all_rows(structure, monkeypatch):
    X, y = sample(200, 3, noise=1.5)
    monkeypatch.setattr(Trees, "scores", None)  # seconds of many rows after `max_time`
    auto = ordinal.fit_boosting(X, y, structure=structure, learning_rate=0.1)
    assert auto.n_rounds == auto.held_out.argmin() + 1
    assert auto.convergence.n_iter == auto.held_out.size > auto.n_rounds
    assert auto.convergence.converged
    given = {"structure": structure, "learning_rate": 0.1}
    alone = ordinal.fit_boosting(X, y, n_rounds=auto.n_rounds, **given)
    assert same_but_for_the_record(auto, alone)
    assert ordinal.fit_boosting(X[:60], y[:60], max_iter=2000).n_rounds < 500


@pytest.mark.parametrize("structure", ["score", "scores"])
def test_units_and_increasing_maps_of_columns_change_nothing(structure):
    """LightGBM alone would merge values within 1e-35 of 0 and treat 0 apart; folds
    depend on the contents of rows.
    """
    rng = np.random.default_rng(0)
    rows = np.column_stack([
        rng.normal(size=600), rng.poisson(0.4, 600), rng.integers(-2, 3, 600),
        np.where(rng.random(600) < 0.3, np.nan, rng.normal(size=600)),
    ])  # fmt: skip
    (X, new), y = np.split(rows, 2), np.digitize(rows[:300, 0] * rows[:300, 2], [-1, 1])

    def fitted(X):
        return ordinal.fit_boosting(X, y, structure=structure, learning_rate=1, tol=1)

    model = fitted(X)
    assert model.n_rounds > 1
    for power in (-120.0, [0, 900, -900, 7]):
        scale = np.exp2(power)
        other = fitted(X * scale)
        assert_array_equal(other.predict_proba(new * scale), model.predict_proba(new))
    for change in (np.exp, lambda x: 1.8 * x + 32):
        other = fitted(change(X))
        assert_array_equal(other.held_out, model.held_out)
        assert_array_equal(other.predict_proba(change(X)), model.predict_proba(X))
    X = X[:, :3]
    dense, *sparse = map(fitted, (X, csr_array(X), csr_array(X * 9)))
    assert solution(dense) == solution(sparse[0])
    assert_array_equal(sparse[1].held_out, dense.held_out)


def test_groups_are_held_out_together():
    """A feature that identifies the group does not help to predict other groups."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 5)
    y = rng.integers(0, 3, 40)[group]
    X = np.column_stack([rng.normal(size=40)[group], rng.normal(size=200)])
    quick = {"learning_rate": 0.3, "tol": 1e-2}
    apart = ordinal.fit_boosting(X, y, groups=group, **quick)
    mixed = ordinal.fit_boosting(X, y, **quick)
    assert apart.held_out.min() > 1.5 * mixed.held_out.min()
    assert apart.n_rounds < mixed.n_rounds
    with pytest.raises(ValueError, match=r"^groups is for n_rounds='auto' only"):
        ordinal.fit_boosting(X, y, groups=group, n_rounds=5)
    for structure in ("score", "scores"):  # groups that hold whole ranks
        few = {"groups": np.minimum(y, 1), "max_iter": 5, "tol": 1.0}
        model = ordinal.fit_boosting(X, y, structure=structure, **few)
        assert np.isfinite(model.held_out).all()


@pytest.mark.parametrize("structure", ["score", "scores"])
def test_a_path_reads_the_trees_once(structure, monkeypatch):
    X, _ = sample(300, 3, noise=1.0)
    kind = np.random.default_rng(0).permutation(np.arange(300) % 6)
    y = kind % 3  # so that sets of levels are what trees split by
    X = pd.DataFrame(X).assign(kind=pd.Categorical.from_codes(kind, list("abcdef")))
    calls = []
    read = Trees.from_texts
    monkeypatch.setattr(Trees, "from_texts", lambda t: calls.append(t) or read(t))
    points = [{"n_rounds": n} for n in (40, 3, 17)]
    path = path_of(ordinal.fit_boosting)
    models, _ = path.fit(X, y, points, None, None, min_rows=3, structure=structure)
    assert len(calls) == 1
    for model, point in zip(models, points, strict=True):
        alone = ordinal.fit_boosting(X, y, min_rows=3, structure=structure, **point)
        assert same_but_for_the_record(model, alone)
    assert models[0].trees.words.size > 0


def wild(rng, n, missing=True):
    """Rows of numbers, of few numbers, of categories and of numbers without gaps."""
    X = rng.normal(size=(n, 5))
    X[:, 1:4] = rng.integers([-2, 0, 0], [3, 40, 3], (n, 3))
    if missing:
        for j in (0, 2, 3):
            X[rng.random(n) < 0.15, j] = np.nan
    return X


def grown(seed=0, n=800, rounds=20, **options):
    """A booster of LightGBM with nodes of every kind, and its training rows."""
    rng = np.random.default_rng(seed)
    X = wild(rng, n)
    codes = np.nan_to_num(X[:, 2], nan=7.0).astype(int)
    y = np.nan_to_num(X[:, 0]) * X[:, 4] + np.sin(codes) + X[:, 1] + rng.normal(size=n)
    parameters = {
        "objective": "regression", "verbosity": -1, "num_threads": 1, "num_leaves": 12,
        "boost_from_average": False, "min_data_per_group": 5, "cat_smooth": 1.0,
        "cat_l2": 1.0, "max_depth": DEEPEST, **options,
    }  # fmt: skip
    data = lightgbm.Dataset(X, y, categorical_feature=[2, 3], params=parameters)
    return lightgbm.train(parameters, data, rounds), X


def beyond(rng, n):
    """Rows with all that training rows need not have."""
    X = wild(rng, n)
    X[rng.random(n) < 0.1, 1] = np.nan  # where training rows had none
    X[rng.random(n) < 0.1, 4] = np.nan
    X[rng.random(n) < 0.1, 2] = rng.choice([40.0, 99.0, -1.0, 1e9, 2.5, -0.5, 1e300])
    for j in (0, 1, 4):
        X[rng.random(n) < 0.1, j] = rng.choice([0.0, -0.0, np.inf, -np.inf, 1e-36])
    X[rng.random(n) < 0.05, 2] = rng.choice([np.inf, -np.inf])
    return X


@at_most(30)
@given(st.integers(0, 2**32 - 1))
def test_predictions_are_those_of_lightgbm_to_the_last_bit(seed):
    booster, X = grown(seed % 1000, rounds=8)
    trees = Trees.from_texts([booster.model_to_string()])
    trees._check()
    assert (trees.category_set >= 0).any()
    rng = np.random.default_rng(seed)
    for n in (1, 7, 8, 129, 400):
        rows = beyond(rng, n)
        expected = booster.predict(rows, raw_score=True)
        for n_threads in (1, 3):
            assert_array_equal(trees.scores(rows, 0, len(trees), n_threads), expected)
    assert trees.scores(X[:0], 0, len(trees), 1).shape == (0,)


def test_contributions_are_those_of_lightgbm():
    booster, X = grown(5)
    trees = Trees.from_texts([booster.model_to_string()])
    rows = np.vstack([X[:100], beyond(np.random.default_rng(0), 100)])
    expected = booster.predict(rows, pred_contrib=True)
    for n_threads in (1, 2):
        base, values = trees.contributions(rows, 0, len(trees), n_threads)
        assert_allclose(values, expected[:, :-1], rtol=1e-9, atol=1e-9)
        assert_allclose(base, expected[0, -1], rtol=1e-9)
    total = base + values.sum(axis=1)
    assert_allclose(total, trees.scores(rows, 0, len(trees), 1), rtol=1e-9, atol=1e-9)


def test_a_model_explains_itself_by_its_contributions():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(list("uvw"), 200),
                          "c": rng.normal(size=200)})  # fmt: skip
    f = 2 * frame["a"] + (frame["b"] == "v")
    y = np.digitize(f + 0.3 * rng.logistic(size=200), [-1, 0, 1])
    for structure in ("score", "scores"):
        model = ordinal.fit_boosting(frame, y, n_rounds=30, structure=structure)
        parts = model.contributions(frame)
        assert parts.names == ("base", "a", "b", "c")
        if structure == "score":
            score = model.decision_function(frame)
        else:
            score = model._sums(model._rows(frame)).mean(axis=0)
        assert_allclose(parts.values.sum(axis=1), score, rtol=1e-9, atol=1e-9)
        told = model.explain(frame)
        assert told.method == "contributions"
        assert told.names[:2] == ("a", "b")
        assert model.importance().names == ("a", "b", "c")
        assert_allclose(model.importance().values.sum(), 1)
        assert model.importance().values.argmax() == 0
        assert model.explain(frame, y).method == "permutation"


def test_a_missing_value_where_there_was_none_is_the_median():
    X, y = sample(101, 3)
    weight = np.ones(101)
    model = ordinal.fit_boosting(X, y, n_rounds=20)
    rows, filled = X.copy(), X.copy()
    rows[:, 1], filled[:, 1] = np.nan, np.median(X[:, 1])
    assert_array_equal(model.decision_function(rows), model.decision_function(filled))
    weight[X[:, 1] > np.quantile(X[:, 1], 0.4)] = 1e-3  # by weight, the lower of two
    other = ordinal.fit_boosting(X, y, sample_weight=weight, n_rounds=20)
    assert other.fill[1] < model.fill[1]
    X[::4, 1] = np.nan
    learnt = ordinal.fit_boosting(X, y, n_rounds=20)
    assert_array_equal(learnt.filled, [True, False, True])


@pytest.mark.parametrize(("options", "message"), [
    ({"n_rounds": "many"}, "n_rounds must be a positive integer or 'auto', got 'm"),
    ({"learning_rate": 1.5}, "learning_rate must be a number above 0, and at most"),
    ({"n_leaves": 5000}, "n_leaves must be at most 1024"),
    ({"row_share": 0.02}, "row_share=0.02 of 40 rows .* row per tree: pass at l"),
    ({"feature_share": 2.0}, "feature_share must be a number above 0"),
    ({"monotone": [2, 0, 0]}, "monotone of 'x1' must be -1, 0 or 1"),
    ({"interactions": "x1"}, "interactions must be a sequence of sequences"),
    ({"interactions": ["x1"]}, "interactions must .*, got 'x1' as a group"),
    ({"interactions": [[]]}, "interactions must .* an empty group: leave it out"),
    ({"interactions": [["x9"]]}, "interactions names 'x9', which is not among"),
    ({"groups": [1, 2]}, r"groups has shape \(2,\), expected \(40,\)"),
])  # fmt: skip
def test_unusable_options_are_refused(options, message):
    X, y = sample(40, 3)
    raises(ValueError, f"^{message}", ordinal.fit_boosting, X, y, **options)


def test_a_weight_is_a_count_where_nothing_else_counts_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, size=(120, 3)).astype(float)
    y = np.digitize(X @ [0.5, -0.3, 0.1] + rng.logistic(size=120), [-1, 0.5, 2])
    w = rng.integers(1, 3, 120)
    how = {"n_rounds": 20, "min_rows": 1, "l2": 0.0, **PLAIN}
    weighted = ordinal.fit_boosting(X, y, sample_weight=w, **how).predict_proba(X)
    rows = np.repeat(np.arange(120), w)
    written = ordinal.fit_boosting(X[rows], y[rows], **how).predict_proba(X)
    assert_allclose(weighted, written, atol=1e-6)


@pytest.mark.parametrize("options", [{"row_share": 1 / 40}, {"min_rows": 10**12}])
@pytest.mark.parametrize("n_rounds", ["auto", 3])
def test_lightgbm_is_given_nothing_that_it_refuses(options, n_rounds, capfd):
    X, y = sample(40, 3, noise=1.0)  # folds train on 32 rows
    model = ordinal.fit_boosting(X, y, n_rounds=n_rounds, **options)
    assert set(model.predict(X)) <= {0, 1, 2}
    assert capfd.readouterr() == ("", "")


def test_kernels_of_trees_return_often_and_change_no_bit(monkeypatch):
    """Ctrl-C is seen between two calls, so none of them may do all of the work."""
    X, y = sample(300, 3, noise=1.0)
    model = ordinal.fit_boosting(X, y, n_rounds=20, n_leaves=16)
    whole = [model.decision_function(X), model.contributions(X).values]
    calls, kernels = [], forest._trees

    def counted(kernel):
        def call(rows, begin, end, *arguments):
            calls.append((len(rows), end - begin))
            getattr(kernels, kernel)(rows, begin, end, *arguments)

        return call

    names = "scores", "contributions"
    counting = SimpleNamespace(**{name: counted(name) for name in names})
    monkeypatch.setattr(forest, "_trees", counting)
    monkeypatch.setenv("ORDINAL_NUM_THREADS", "1")
    # A call takes all trees of some rows, or some trees of few rows, or one tree.
    for name, scale, expected in zip(names, (1, 60), whole, strict=True):
        for seconds, rows, trees in ((1e-5, 20, 20), (1e-6, 9, 19), (1e-8, 1, 1)):
            monkeypatch.setattr(forest, "_CALL", seconds * scale)
            calls.clear()
            if name == "scores":
                assert_array_equal(model.decision_function(X), expected)
            else:
                assert_array_equal(model.contributions(X).values, expected)
            assert sum(n * size for n, size in calls) == 300 * 20
            assert max(n for n, _ in calls) <= rows
            assert max(size for _, size in calls) <= trees


@pytest.mark.parametrize("structure", ["score", "scores"])
@pytest.mark.parametrize("make", [csr_array, csc_array, coo_array])
def test_sparse_rows_are_dense_rows_to_the_last_bit(make, structure):
    rng = np.random.default_rng(1)
    X, y = sample(150, 3, d=12, noise=1.0)
    X = np.where(rng.random(X.shape) < [[0.1, 0.5, 0.8] * 4], X, 0.0).round(1)
    weight = rng.integers(0, 3, 150) * rng.random(150)  # some rows are left out
    options = {"structure": structure, "n_rounds": 9, "sample_weight": weight}
    dense = ordinal.fit_boosting(X, y, **options)
    model = ordinal.fit_boosting(make(X), y, **options)
    assert solution(model) == solution(dense)
    rows = CSR.from_any(make(X))
    numbered = ColumnOrder.of_rows(rows, np.ones(150), ()).transform(rows)
    assert numbered.data.size < 1.5 * rows.data.size  # not filled by negative values
    for call in ("predict_proba", "decision_function", "contributions"):
        ends = [getattr(model, call)(rows) for rows in (make(X), X)]
        assert_array_equal(*(getattr(end, "values", end) for end in ends))
    assert_array_equal(model.explain(make(X)).importance, dense.explain(X).importance)


@pytest.mark.parametrize("fit", [ordinal.fit_boosting, ordinal.fit_xofm])
def test_sparse_rows_have_no_categories_and_no_endless_width(fit):
    X, y = sample(40, 3)
    with pytest.raises(TypeError, match=r"X is sparse, .* pass X\.toarray"):
        fit(csr_array(X), y, categorical=[0])
    wide = csr_array((np.ones(40), np.arange(40), np.arange(41)), (40, 2**31 - 1))
    raises(MemoryError, "2147483647 columns of sparse rows", fit, wide, y)
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    with pytest.raises(TypeError, match=r"X is sparse, .* pass X\.toarray"):
        fit(table, y).predict(csr_array(X[:, :2]))


def test_without_lightgbm_a_fit_names_the_extra_and_models_work(tmp_path):
    X, y = sample(60, 3)
    ordinal.fit_boosting(X, y, n_rounds=10).save(tmp_path / "model.npz")
    program = f"""
        import sys
        sys.modules["lightgbm"] = None
        import numpy as np, ordinal
        model = ordinal.load({str(tmp_path / "model.npz")!r})
        X = np.random.default_rng(0).normal(size=(60, 3))
        model.predict(X, rule="mode")
        assert model.explain(X).method == "contributions"
        try:
            ordinal.fit_boosting(X, [1, 2, 3] * 20)
        except ImportError as error:
            assert "ordinal-regression[trees]" in str(error)
        else:
            raise AssertionError
    """
    printed(textwrap.dedent(program))


def put(at, value):
    def changed(a):
        a = a.copy()
        a.ravel()[at] = value
        return a

    return changed


def chain(n):
    """Arrays of a tree of n levels, each node with a leaf on its left."""
    nodes = np.arange(n)
    return {
        "trees.first": lambda a: np.array([0, n]),
        "trees.feature": lambda a: np.zeros(n, np.int32),
        "trees.threshold": lambda a: np.zeros(n),
        "trees.missing_left": lambda a: np.zeros(n, bool),
        "trees.category_set": lambda a: np.full(n, -1, np.int32),
        "trees.left": lambda a: ~nodes.astype(np.int32),
        "trees.right": lambda a: np.append(nodes[1:], ~n).astype(np.int32),
        "trees.gain": lambda a: np.zeros(n),
        "trees.node_rows": lambda a: np.ones(n, np.int64),
        "trees.value": lambda a: np.zeros(n + 1),
        "trees.leaf_rows": lambda a: np.ones(n + 1, np.int64),
        "start": lambda a: np.array([0, 1]),
    }


FORGED = {
    "a cycle": ({"trees.right": put(1, 0)}, "later nodes of the same tree"),
    "a node of another tree": ({"trees.left": put(0, 50)}, "later nodes of the same"),
    "a leaf of another tree": ({"trees.right": put(-1, ~99)}, "leaves of the same"),
    "a leaf that is none": ({"trees.right": put(-1, -(2**31))}, "leaves of the same"),
    "two parents": ({"trees.left": put(0, 2), "trees.right": put(0, 2)}, "one node"),
    "must be a column": ({"trees.feature": put(0, 3)}, "the columns of categories"),
    "a column below 0": ({"trees.feature": put(0, -1)}, "must be >= 0"),
    "nan": ({"trees.threshold": put(0, np.nan)}, "must be finite"),
    "an infinite leaf": ({"trees.value": put(0, np.inf)}, "must be finite"),
    "huge leaves": ({"trees.value": lambda a: 1e300 * np.ones_like(a)}, "at most 1e"),
    "no rows": ({"trees.node_rows": put(0, 0)}, "must be positive"),
    "a set that is none": ({"trees.category_set": put(0, 0)}, "number the sets"),
    "words of no set": ({"trees.words": lambda a: np.ones(2, np.uint32)}, "the words"),
    "trees that fall": ({"trees.first": put(1, 99)}, "must not fall|count the nodes"),
    "trees of no score": ({"start": put(-1, 3)}, "among the scores"),
    "a bomb": (chain(100_000), "at most 64 levels"),
    "one level too many": (chain(DEEPEST + 1), "at most 64 levels"),
    "thresholds in disorder": ({"thresholds": lambda a: a[::-1]}, "must increase"),
    "a rank less": ({"frequencies": put(1, 0.0)}, "equal on both sides|fin|add up"),
    "frequencies": ({"frequencies": put(1, 0.9)}, "frequencies must add up to 1"),
    "no training rows": (
        {"header": lambda text: text.replace('"n_rows": 60', '"n_rows": 0')},
        "n_rows must be positive",
    ),
    "a signless column": ({"monotone": put(0, 5)}, "be -1, 0 or 1"),
}


@pytest.fixture(scope="module")
def genuine():
    return ordinal.fit_boosting(*sample(60, 3), n_rounds=5)


@pytest.mark.parametrize("name", FORGED)
def test_forged_models_are_refused(name, genuine, tmp_path):
    edits, message = FORGED[name]
    raises(ValueError, message, load_edited, genuine, tmp_path, edits)


def test_the_deepest_tree_there_may_be_is_walked(genuine, tmp_path):
    X, deep = sample(60, 3)[0], load_edited(genuine, tmp_path, chain(DEEPEST))
    assert_array_equal(deep.decision_function(X), -deep.centre[0])
    assert_allclose(deep.contributions(X).values[:, 1:], 0)


@pytest.mark.parametrize(
    ("n_rounds", "advice"),
    [(500, "raise max_time or lower n_rounds"), ("auto", "raise max_time or tol")],
)
def test_rounds_cut_short_say_what_helps(counted_clock, n_rounds, advice):
    X, y = ordinal.datasets.make_gaussians(rng=0)
    with pytest.warns(ordinal.exceptions.ConvergenceWarning, match=f"{advice}$"):
        model = ordinal.fit_boosting(X, y, n_rounds=n_rounds, max_time=0.01)
    assert model.convergence.status is ordinal.models.Status.MAX_TIME
    assert f"Remedy: {advice}." in model._repr_html_()
    wrapped = PreprocessedModel(Standardizer.fit(X), model)
    assert f"Remedy: {advice}." in wrapped._repr_html_()


def test_the_import_of_lightgbm_leaves_the_filters_of_warnings():
    code = (
        "import warnings, numpy, ordinal; before = list(warnings.filters);"
        "ordinal.fit_boosting([[0.0], [1], [2], [3]], [0, 1, 0, 1], n_rounds=1);"
        "assert warnings.filters == before"
    )
    printed(code, warnings="ignore")
