"""Splits that keep the rows of a group together, alone and through searches."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from strategies import raises, sample

import ordinal
import ordinal.sklearn
from ordinal.boosting import fit as boosting
from ordinal.model_selection import (
    Grid,
    nested,
    select,
    stratified_holdout,
    stratified_kfold,
)


@st.composite
def grouped_labels(draw):
    """Labels and groups of which each has one row or more, in random order."""
    n_ranks = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=12))
    group = np.repeat(np.arange(len(sizes)), sizes)
    rank = draw(st.lists(st.integers(0, n_ranks - 1), min_size=len(group),
                         max_size=len(group)))  # fmt: skip
    order = draw(st.permutations(range(len(group))))
    return np.array(rank)[order], group[order]


def imbalance(y, group, fold):
    """(B) of splits.py, from the rows themselves."""
    labels, folds = np.unique(y), np.unique(fold)
    return sum(
        (np.sum((y == k) & (fold == f)) - np.mean(y == k) * y.size / folds.size) ** 2
        / np.sum(y == k)
        for k, f in itertools.product(labels, folds)
    )


def fold_of_rows(splits, n):
    fold = np.full(n, -1)
    for k, (train_idx, test_idx) in enumerate(splits):
        assert_array_equal(np.sort(np.concatenate([train_idx, test_idx])), np.arange(n))
        assert (fold[test_idx] == -1).all()
        fold[test_idx] = k
    assert (fold >= 0).all()
    return fold


@given(grouped_labels(), st.integers(2, 4), st.integers(0, 9))
def test_folds_keep_groups_whole_and_no_exchange_evens_them_out(case, k, seed):
    y, group = case
    k = min(k, np.unique(group).size)
    fold = fold_of_rows(stratified_kfold(y, k, groups=group, rng=seed), y.size)
    assert np.unique(fold).size == k
    of = {g: set(fold[group == g]) for g in np.unique(group)}
    assert all(len(folds) == 1 for folds in of.values())

    value = imbalance(y, group, fold)
    for g in of:
        for f in range(k):  # one group to another fold
            moved = np.where(group == g, f, fold)
            if np.unique(moved).size == k:
                assert imbalance(y, group, moved) >= value - 1e-9
    for g, q in itertools.combinations(of, 2):
        swapped = fold.copy()
        swapped[group == g], swapped[group == q] = min(of[q]), min(of[g])
        assert imbalance(y, group, swapped) >= value - 1e-9


# every group is large for the share
@example((np.tile([0, 1], 45), np.repeat([0, 1, 2], 30)), 0.05, 0)
@given(grouped_labels(), st.floats(0.05, 0.9), st.integers(0, 9))
def test_holdouts_keep_groups_whole_and_every_rank_in_training(case, share, seed):
    y, group = case
    n_test = min(max(1, round(share * y.size)), y.size - np.unique(y).size)
    of_rank = {k: set(group[y == k]) for k in np.unique(y)}
    sole = set().union(*(g for g in of_rank.values() if len(g) == 1))
    if n_test < 1:
        return
    options = {"test_size": n_test, "groups": group, "rng": seed}
    if sole == set(group):
        with pytest.raises(ValueError, match=r"^groups must contain one that can be"):
            stratified_holdout(y, 2, **options)
        return
    for train_idx, test_idx in stratified_holdout(y, 2, **options):
        assert test_idx.size
        every = np.sort(np.concatenate([train_idx, test_idx]))
        assert_array_equal(every, np.arange(y.size))
        assert not set(group[train_idx]) & set(group[test_idx])
        assert set(y[train_idx]) == set(y)


def test_a_seed_fixes_the_splits_and_only_the_partition_matters():
    _, y, patient = patients()
    patient = np.array([f"p{k}" for k in patient])
    number = np.unique(patient, return_inverse=True)[1]
    for make in (stratified_kfold, stratified_holdout):
        a, b, c = (
            np.concatenate([test for _, test in make(y, 5, groups=g, rng=seed)])
            for g, seed in ((patient, 3), (pd.Series(number), 3), (patient, 4))
        )
        assert_array_equal(a, b)
        assert a.size != c.size or (a != c).any()


@pytest.mark.parametrize(("groups", "options", "message"), [
    ([1, 1, 2], {}, r"^groups has shape \(3,\), expected \(6,\) as y"),
    ([[1], [2]], {}, "^groups must be 1-dimensional"),
    ([1, 2, None, 2, 1, 1], {}, "^groups has no label in row 2: drop such"),
    ([1, 2, np.nan, 2, 1, 1], {}, "^groups must be finite, got nan in row 2"),
    ("region", {}, r"got the string 'region': pass .* such as table\['region'\]$"),
    (["a"] * 6, {}, "^groups must name 2 groups or more, got only 'a'"),
    ([1, 1, 1, 1, 2, 2], {}, "^n_splits must be 2 to the number of groups, 2, got"),
])  # fmt: skip
def test_bad_groups(groups, options, message):
    y = [1, 2, 3, 1, 2, 3]
    raises(ValueError, message, stratified_kfold, y, 3, groups=groups, **options)


GRID = Grid(C=[0.1, 10.0], gamma=[0.3])


def test_searches_keep_groups_together():
    X, y = sample(48, 3)
    group = np.arange(48) // 4
    found = select(ordinal.fit_svorim, X, y, search=GRID, groups=group, cv=3)
    expected = stratified_kfold(y, 3, groups=group)
    for (_, test_idx), (_, of_search) in zip(expected, found.splits, strict=True):
        assert_array_equal(test_idx, of_search)
    tested = nested(ordinal.fit_svorim, X, y, search=GRID, groups=group, outer=2, cv=2)
    for (train, test), inner in zip(tested.splits, tested.selections, strict=True):
        assert not set(group[train]) & set(group[test])
        for train_idx, test_idx in inner.splits:
            assert not set(group[train_idx]) & set(group[test_idx])
            assert set(train_idx) | set(test_idx) == set(train)
    group, how = np.array(list("abcdefgh")).repeat(6), {"search": GRID, "refit": False}
    found = select(ordinal.fit_svorim, X, y, groups=group, cv=GroupKFold(4), **how)
    expected = GroupKFold(4).split(X, y, group)
    for (_, test_idx), (_, of_search) in zip(expected, found.splits, strict=True):
        assert_array_equal(test_idx, of_search)


def test_splits_with_a_group_on_both_sides_are_refused():
    X, y = sample(12, 3)
    group = np.arange(12) % 3
    options = {"search": GRID, "groups": group}
    message = r"^cv\[0\] has a group on both sides: it trains on row 6 and tests on row"
    with pytest.raises(ValueError, match=message):
        select(ordinal.fit_svorim, X, y, cv=list(KFold(3).split(X)), **options)
    outer = [(np.flatnonzero(group != 0), [0, 3]), ([0, 1, 2, 4], [8, 3])]
    with pytest.raises(ValueError, match=r"^outer\[1\] has a group on both sides"):
        nested(ordinal.fit_svorim, X, y, outer=outer, cv=2, **options)


def patients():
    """120 rows of 24 patients: each has one rank, and a feature that identifies him."""
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(24), 5))
    X = np.column_stack([rng.normal(size=24)[patient], rng.normal(size=120)])
    return X, rng.integers(0, 3, 24)[patient], patient


QUICK = {"learning_rate": 0.3, "tol": 0.1, "min_rows": 3}


@pytest.fixture
def inner_folds(monkeypatch):
    """Sizes of the fits that deal out folds by groups; a fit without them fails."""
    found, deal = [], boosting.group_folds

    def recorded(rank, group, n_folds, rng):
        fold = deal(rank, group, n_folds, rng)
        for g in np.unique(group):  # which rows of other patients would not be
            assert np.unique(rank[group == g]).size == 1
            assert np.unique(fold[group == g]).size == 1
        found.append(group.size)
        return fold

    def ungrouped(problem, rng):
        raise AssertionError("the folds of the fit do not know the groups")

    monkeypatch.setattr(boosting, "group_folds", recorded)
    monkeypatch.setattr(boosting, "dealt_shares", ungrouped)
    return found


def test_select_passes_groups_on_to_the_folds_of_a_fit(inner_folds):
    X, y, patient = patients()
    grid = Grid(n_rounds=["auto", 5], n_leaves=[2, 4])
    found = select("boosting", X, y, search=grid, groups=patient, cv=3, **QUICK)
    assert not found.failures
    trained = [train.size for train, _ in found.splits]
    refitted = [120] * (found.params["n_rounds"] == "auto")
    assert sorted(inner_folds) == sorted(2 * trained + refitted)


def test_nested_and_cross_conformal_pass_groups_on_to_the_folds_of_a_fit(inner_folds):
    X, y, patient = patients()
    grid = {"n_leaves": [2, 4]}
    options = {"groups": patient, "cv": 2, **QUICK}
    tested = nested("boosting", X, y, search=grid, outer=2, **options)
    sizes = [train.size for train, _ in tested.splits]
    sizes += [t.size for one in tested.selections for t, _ in one.splits] * 2
    assert sorted(inner_folds) == sorted(sizes)
    inner_folds.clear()
    sets = ordinal.cross_conformal(ordinal.fit_boosting, X, y, **options)
    assert len(inner_folds) == 1 + len(sets.fold_models) == 3


@pytest.mark.parametrize("tune", [False, True])
def test_compare_passes_groups_on_to_the_folds_of_a_fit(inner_folds, tune):
    X, y, patient = patients()
    given = {"n_leaves": 4, "structure": "score", **QUICK}
    few = functools.partial(ordinal.fit_boosting, **given)
    if tune:
        few = functools.partial(few, n_rounds="auto")
    how = {"methods": {"trees": few, "pom": "pom"}, "groups": patient}
    result = ordinal.compare(X, y, cv=3, tune=tune, **how)
    assert not result.reasons
    assert inner_folds == [train.size for train, _ in result.splits]


def test_training_rows_of_one_group_hold_none_out_and_a_partial_holds_no_groups():
    X, y, patient = patients()
    result = ordinal.compare(X, y, methods="boosting", groups=patient < 12, cv=2)
    assert not result.reasons
    model = ordinal.fit_boosting(X, y, groups=np.zeros(len(y)))
    assert (model.n_rounds, model.held_out.size) == (100, 0)
    fit = functools.partial(ordinal.fit_boosting, groups=patient)
    with pytest.raises(TypeError, match=r"^groups has one .*: pass groups to the "):
        select(fit, X, y, search={"n_leaves": [2]})


def test_the_estimator_keeps_groups_together_and_is_routed_to(inner_folds):
    X, y, patient = patients()
    X[:, 1] = 0.0  # rows of a patient are equal, and merged
    X[patient == 1], y[patient == 1] = X[patient == 0][0], y[patient == 0][0]
    fitted = ordinal.sklearn.Boosting(**QUICK).fit(X, y, groups=patient)
    assert inner_folds == [24]  # but not those of two patients
    direct = ordinal.fit_boosting(X, y, groups=patient, **QUICK)
    assert fitted.model_.n_rounds == direct.n_rounds
    with config_context(enable_metadata_routing=True):
        inner_folds.clear()
        routed = ordinal.sklearn.Boosting(**QUICK).set_fit_request(groups=True)
        grid = GridSearchCV(routed, {"n_leaves": [2, 4]}, cv=GroupKFold(3))
        grid.fit(X, y, groups=patient)
    assert sorted(inner_folds) == [16] * 6 + [24]
