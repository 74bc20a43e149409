"""Conformal prediction sets: what is guaranteed, proved where rows can be counted."""

import numpy as np
import pandas as pd
import pytest
from files import copies
from hypothesis import given
from hypothesis import strategies as st
from internals import method_of
from numpy.testing import assert_allclose, assert_array_equal
from registry import every_method, which
from sklearn.linear_model import LogisticRegression
from sources import Cut
from strategies import raises, sample

import ordinal
import ordinal.sklearn
from ordinal import conformal
from ordinal.model_selection import Grid, select


class Changing:
    """An object that makes another array each time it is asked for one."""

    def __init__(self, *arrays):
        self.arrays = iter(arrays)

    def __array__(self, dtype=None, copy=None):
        return next(self.arrays)


class Oracle:
    def __init__(self, r):
        self.classes = np.arange(r)

    def predict(self, X):
        return np.asarray(X).argmax(axis=1)

    def predict_proba(self, X):
        return np.asarray(X)


@st.composite
def judged_rows(draw, most=14, distinct=False):
    """Rows of probabilities with labels; many are equal unless they are distinct."""
    r, n = draw(st.integers(2, 5)), draw(st.integers(3, most))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    P = rng.random((n, r)) if distinct else rng.integers(0, 3, (n, r)) + 0.1
    return P / P.sum(axis=1, keepdims=True), rng.integers(0, r, n)


def of_true(p, y):
    return p[np.arange(len(y)), y]


def left_out(P, y, coverage, **options):
    n, p = len(y), np.empty(len(y))
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        sets = conformal(Oracle(P.shape[1]), P[rest], y[rest], coverage, **options)
        p[i] = of_true(sets.p_values(P[[i]]), y[[i]])[0]
    return p


@given(judged_rows(distinct=True))
def test_p_values_of_rows_left_out_are_all_ranks(case):
    """Of m + 1 exchangeable rows each has one of 1/(m + 1) to 1."""
    P, y = case
    n = len(y)
    assert_allclose(np.sort(left_out(P, y, 0.3)), np.arange(1, n + 1) / n, rtol=1e-12)


@given(judged_rows(), st.sampled_from([0.3, 0.5, 0.6]))
def test_no_more_rows_left_out_than_allowed_are_missed(case, coverage):
    """The left side of (G), where many nonconformities are equal."""
    P, y = case
    missed = left_out(P, y, coverage) <= 1 - coverage
    assert missed.sum() <= (1 - coverage) * len(y) + 1e-9


@given(judged_rows(distinct=True))
def test_by_class_the_same_holds_within_each_class(case):
    P, y = case
    p = left_out(P, y, 0.3, by_class=True)
    for k in np.unique(y):
        n = np.sum(y == k)
        assert_allclose(np.sort(p[y == k]), np.arange(1, n + 1) / n, rtol=1e-12)


@given(judged_rows(most=20), st.integers(3, 6), st.sampled_from([0.3, 0.5, 0.6]))
def test_of_groups_left_out_no_more_is_missed_than_allowed(case, n_groups, coverage):
    """A mean over groups of the share of their rows, as of a row of a new group."""
    P, y = case
    P, y = np.tile(P, (n_groups, 1)), np.tile(y, n_groups)
    group = np.random.default_rng(len(y)).integers(0, n_groups, len(y))
    missed = []
    for g in np.unique(group):
        rest, own = group != g, group == g
        if np.unique(group[rest]).size < max(2, coverage / (1 - coverage)):
            return
        sets = conformal(
            Oracle(P.shape[1]), P[rest], y[rest], coverage, groups=group[rest]
        )
        missed.append(np.mean(of_true(sets.p_values(P[own]), y[own]) <= 1 - coverage))
    assert np.mean(missed) <= 1 - coverage + 1e-9


@given(judged_rows(), st.booleans())
def test_a_weight_is_a_row_written_that_often(case, by_class):
    P, y = case
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weight[0] = 2
    oracle = Oracle(P.shape[1])
    a = conformal(oracle, P, y, 0.3, sample_weight=weight, by_class=by_class)
    rows = np.repeat(np.arange(len(y)), weight)
    b = conformal(oracle, P[rows], y[rows], 0.3, by_class=by_class)
    assert_allclose(a.p_values(P), b.p_values(P), rtol=1e-13)
    assert a.weights.sum() == rows.size


@given(judged_rows())
def test_rps_is_the_ranked_probability_score(case):
    P, _ = case
    r = P.shape[1]
    sets = conformal(Oracle(r), P, np.zeros(len(P), int), 0.3)
    for y in range(r):
        expected = [ordinal.metrics.rps([y], p[None], labels=range(r)) for p in P]
        again = conformal(Oracle(r), P, np.full(len(P), y), 0.3)
        assert_allclose(again.scores, expected, rtol=1e-12, atol=1e-15)
    assert sets.nonconformity == "rps"


@given(judged_rows(), st.floats(0.05, 0.7))
def test_sets_are_what_p_values_say_and_the_prediction(case, coverage):
    """They have no gaps to fill: the p-values rise to one rank and fall from there."""
    P, y = case
    sets = conformal(Oracle(P.shape[1]), P, y, 0.3)
    member = sets.p_values(P) > (1 - coverage) * (1 + 1e-9)
    edges = np.diff(np.pad(member.astype(int), ((0, 0), (1, 1))), axis=1)
    assert ((edges == 1).sum(axis=1) <= 1).all()
    chosen = sets.predict_set(P, coverage=coverage)
    predicted = Oracle(3).predict(P)
    assert chosen[np.arange(len(P)), predicted].all()
    assert (chosen >= member).all()
    # more than that only from the set to the prediction
    low, high = sets.predict_interval(P, coverage=coverage).T
    for i in range(len(P)):
        ranks = {*np.flatnonzero(member[i]), predicted[i]}
        assert (low[i], high[i]) == (min(ranks), max(ranks))
        assert chosen[i].sum() == high[i] - low[i] + 1


def test_distances_to_the_interval_of_a_rank():
    X, y = sample(60, 3, noise=1.0)
    model = ordinal.fit_svorim(X[:40], y[:40])
    sets = conformal(model, X[40:], y[40:], 0.5)
    f, b = model.decision_function(X[40:]), model.thresholds
    edges = np.r_[-np.inf, b, np.inf]
    rank = y[40:]
    expected = [max(edges[k] - v, v - edges[k + 1], 0) for v, k in zip(f, rank)]  # noqa: B905
    assert_allclose(sets.scores, expected, rtol=1e-13)
    assert sets.nonconformity == "distance"
    # a score at a distance d from a rank is as if it had moved by d
    step = float(np.sort(sets.scores)[18])
    low, high = sets.predict_interval(X[40:], coverage=18.5 / 21).T
    assert_array_equal(low, model.classes[np.searchsorted(b, f - step, side="left")])
    assert_array_equal(high, model.classes[np.searchsorted(b, f + step, side="right")])


def split_rows(n=120, seed=0):
    X, y = sample(n, 3, noise=0.7, seed=seed)
    return (X[: n // 2], y[: n // 2]), (X[n // 2 :], y[n // 2 :])


def check_sets(model, X, y, tmp_path, **options):
    sets = conformal(model, X, y, 0.8, **options)
    low, high = sets.predict_interval(X).T
    predicted = model.predict(X)
    assert (low <= predicted).all()
    assert (predicted <= high).all()
    assert_array_equal(sets.predict(X), predicted)
    # of the calibration rows themselves no fewer are held
    assert sets.evaluate(X, y)["coverage"][-1] >= 0.8
    # larger coverage, larger sets
    wider = sets.predict_set(X, coverage=0.95)
    assert (wider >= sets.predict_set(X)).all()
    assert wider.sum() > len(X)
    for same in copies(sets, tmp_path):
        assert_array_equal(same.p_values(X), sets.p_values(X))
        assert repr(same) == repr(sets)
    return sets


@every_method
def test_every_model_has_sets(method, tmp_path):
    (X, y), (X_new, y_new) = split_rows()
    sets = check_sets(method.cut_short(X, y), X_new, y_new, tmp_path)
    has_scores = bool({"threshold", "nearest", "largest"} & set(method.rules))
    by_score = has_scores and not method_of(method.fit).probabilities
    assert sets.nonconformity == ("distance" if by_score else "rps")


@which(takes="probability")
def test_those_with_a_link_take_its_probabilities(method, tmp_path):
    (X, y), (X_new, y_new) = split_rows()
    model = method.cut_short(X, y, probability=True)
    by_rps = check_sets(model, X_new, y_new, tmp_path)
    assert by_rps.nonconformity == "rps"
    if method.rules[0] != "share":
        by_score = check_sets(model, X_new, y_new, tmp_path, nonconformity="distance")
        assert by_score.nonconformity == "distance"
    assert_array_equal(by_rps.predict_proba(X_new), model.predict_proba(X_new))


def test_a_frame_with_words_and_a_search():
    (X, y), (X_new, y_new) = split_rows()
    words = np.array(["low", "mid", "high"])
    frame = pd.DataFrame(X, columns=list("abcde"[: X.shape[1]]))
    found = select(
        ordinal.fit_svorim, frame, words[y], classes=words,
        search=Grid(C=[1.0, 10.0], gamma=[0.1]),
    )  # fmt: skip
    new = pd.DataFrame(X_new, columns=frame.columns)
    sets = conformal(found, new[new.columns[::-1]], words[y_new])
    assert sets.feature_names == tuple(frame.columns)
    assert sets.n_features == frame.shape[1]
    assert sets.convergence == found.model.convergence
    assert_array_equal(sets.classes, words)
    low, high = sets.predict_interval(new).T
    expected = conformal(found.model, X_new, words[y_new])
    assert_array_equal(low, expected.predict_interval(X_new)[:, 0])
    assert set(low) | set(high) <= set(words)
    table = sets.evaluate(new, words[y_new])
    assert_array_equal(table["label"], ["low", "mid", "high", "all"])
    assert table["rows"][-1] == len(y_new) == table["rows"][:-1].sum()
    unfitted = select(ordinal.fit_svorim, X, y, search=Grid(C=[1.0]), refit=False)
    with pytest.raises(ValueError, match=r"^there is no model: the search was run"):
        conformal(unfitted, X_new, y_new)


def test_a_rank_without_calibration_rows_is_in_every_set_by_class():
    P = np.random.default_rng(0).dirichlet(np.ones(4), 60)
    y = np.arange(60) % 3
    by_class = conformal(Oracle(4), P, y, 0.8, by_class=True)
    assert (by_class.predict_interval(P)[:, 1] == 3).all()
    assert (by_class.p_values(P)[:, 3] == 1).all()
    table = by_class.evaluate(P, y)
    assert np.isnan(table["coverage"][3])
    assert table["rows"].tolist() == [20, 20, 20, 0, 60]


P30, Y30 = np.full((30, 3), 1 / 3), np.arange(30) % 3


@pytest.mark.parametrize(("model", "options", "error", "message"), [
    (Oracle(3), {"coverage": 1.0}, ValueError, "^coverage must be a number betw"),
    (Oracle(3), {"coverage": 0.99}, ValueError,
     "^coverage=0.99 needs 99 calibration.*, got 30:"),
    (Oracle(3), {"groups": Y30}, ValueError, "needs 9 calibration .* got 3: "),
    (Oracle(3), {"y": Y30[:9]}, ValueError, r"^y has shape \(9,\), expected \(30,"),
    (Oracle(3), {"y": Y30 + 1}, ValueError,
     r"^y holds 3 in row 2, which is not among the classes of the model, \[0, 1"),
    (Oracle(4), {}, ValueError, "^predict_proba of the model must give 4 finite"),
    (Oracle(3), {"by_class": 1}, ValueError, "^by_class must be True or False"),
    (Oracle(3), {"sample_weight": -np.ones(30)}, ValueError, "^sample_weight mus"),
    (Oracle(3), {"nonconformity": "mass"}, ValueError, "^nonconformity must be"),
    (Oracle(3), {"nonconformity": "distance"}, TypeError,
     "^nonconformity='distance' needs a model with thresholds .*, got a Oracle"),
    (object(), {}, TypeError, "^model must have probabilities or thresholds"),
])  # fmt: skip
def test_what_cannot_be_is_refused(model, options, error, message):
    raises(error, message, conformal, model, P30, **{"y": Y30, **options})


def test_probabilities_that_a_model_lacks_are_refused():
    X, y = sample(40, 3)
    model = ordinal.fit_svorim(X, y)
    lacking = ordinal.exceptions.NoProbabilitiesError
    with pytest.raises(lacking, match="fit it with probability=True, or pass 'dist"):
        conformal(model, X, y, nonconformity="rps")
    sets = conformal(model, X, y)
    with pytest.raises(ValueError, match=r"^coverage must be a number between 0"):
        sets.predict_interval(X, coverage=2)


@pytest.mark.parametrize("by_class", [False, True])
def test_a_group_counts_once_whatever_its_rows_weigh(by_class):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 80)
    y = rng.integers(0, 3, 80)
    group = rng.choice(12, 80)
    sets = conformal(
        Oracle(3), P, y, 0.8, by_class=by_class, groups=group,
        sample_weight=rng.uniform(0.5, 3, 80),
    )  # fmt: skip
    counted = group * 3 + y if by_class else group
    assert_allclose(np.bincount(counted, sets.weights)[np.unique(counted)], 1.0)


def test_a_hyperplane_on_the_way_may_be_farther_than_the_one_at_the_end():
    """So that a set that holds the end holds the way, too."""
    X, y = sample(200, 6, noise=2.0)
    model = ordinal.fit_npsvor(X[:60], y[:60], C=30.0)
    D = np.abs(model.decision_function(X[60:]))
    farther = 0
    for k in range(6):
        scores = conformal(model, X[60:], np.full(140, k), 0.5).scores
        nearest = D.argmin(axis=1)
        ways = [d[min(k, j) : max(k, j) + 1] for d, j in zip(D, nearest, strict=True)]
        assert_array_equal(scores, [w.max() for w in ways] - D.min(axis=1))
        farther += np.sum(scores > D[:, k] - D.min(axis=1))
    assert farther > 10


def test_estimators_of_scikit_learn_have_sets():
    (X, y), (X_new, y_new) = split_rows()
    theirs = LogisticRegression().fit(X, y)
    P = theirs.predict_proba(X_new)
    expected = conformal(Oracle(3), P, y_new).p_values(P)
    assert_array_equal(conformal(theirs, X_new, y_new).p_values(X_new), expected)
    words = np.array(["low", "mid", "high"])
    with pytest.raises(TypeError, match=r"^classes_ of the model must be numbers"):
        conformal(LogisticRegression().fit(X, words[y]), X_new, words[y_new])
    ours = ordinal.sklearn.SVORIM(classes=words).fit(X, words[y])
    sets = conformal(ours, X_new, words[y_new])
    assert_array_equal(sets.classes, words)
    assert_array_equal(sets.predict(X_new), ours.predict(X_new))


def test_rows_that_may_change_are_read_once():
    """The sets use all models of the folds, and the rank that is always added."""
    X, y = sample(60, r=3)
    sets = ordinal.cross_conformal(ordinal.fit_svorim, X, y, 0.8, cv=3)
    for ask in (sets.p_values, sets.predict_interval, sets.predict_set):
        assert_array_equal(ask(Changing(X[:9], X, X)), ask(X[:9]))


def sources(X, y, weight, folder):
    """The same rows in chunks, in a file that is mapped, and in one that is read."""
    for name, values in (("X", X), ("y", y), ("w", weight)):
        np.save(folder / name, values)
    mapped = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in "Xyw"]
    path = folder / "rows.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y, w=weight).to_csv(path, index=False)
    return [
        (Cut([7, 300], X, y, weight), None, None),
        tuple(mapped),
        (ordinal.data.blocks(path, target="y", weight="w"), None, None),
    ]


@pytest.mark.parametrize("by_class", [False, True])
def test_calibration_rows_may_come_in_chunks(by_class, tmp_path):
    X, y = sample(400, 4, noise=1.0)
    X, weight = X[:, :2], np.random.default_rng(1).integers(1, 4, 400) / 2
    names = {"a": X[:, 0], "b": X[:, 1]}
    model = ordinal.fit_svorim(pd.DataFrame(names), y, C=3.0, probability=True)
    groups = np.arange(400) // 2
    for kind in ("rps", "distance"):
        options = {"nonconformity": kind, "by_class": by_class, "groups": groups}
        here = conformal(model, X, y, sample_weight=weight, **options)
        for rows, labels, own in sources(X, y, weight, tmp_path):
            there = conformal(model, rows, labels, sample_weight=own, **options)
            assert_allclose(there.scores, here.scores, rtol=1e-10, atol=1e-12)
            assert_array_equal(there.ranks, here.ranks)
            assert_array_equal(there.weights, here.weights)
            assert_array_equal(there.predict_set(X), here.predict_set(X))


@pytest.mark.parametrize(("spoil", "y", "message"), [
    (lambda b: (b[0] * np.nan, *b[1:]), None, "block 1, whose row 0 is row 100 of"),
    (lambda b: (b[0], b[1] + 9), None, "block 1, whose row 0 is row 100 of all"),
    (lambda b: b[:1], None, r"block 1, .*got X alone"),
    (lambda b: b[:2], None, "all blocks must have weights, or none"),
    (lambda b: b, [1, 2], "y must be None: the blocks of X hold it"),
])  # fmt: skip
def test_a_bad_calibration_block_is_named(spoil, y, message):
    X, labels = sample(300, 4, noise=1.0)
    model = ordinal.fit_svorim(X, labels)
    whole = X, labels, np.ones(300)

    class Spoilt(Cut):
        def blocks(self):
            for k, block in enumerate(super().blocks()):
                yield spoil(block) if k == 1 else block

    source = Spoilt([100, 200], *whole)
    raises(ValueError, message, conformal, model, source, y)
    assert source.open == 0
