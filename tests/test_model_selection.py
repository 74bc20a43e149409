import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import raises

from ordinal.model_selection import (
    learning_splits,
    stratified_holdout,
    stratified_kfold,
)


@st.composite
def labels_and_size(draw):
    """Labels with rare ranks, in random order, and a feasible number of test rows."""
    counts = draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    room = sum(counts) - len(counts)
    if room == 0:
        counts[0], room = counts[0] + 1, 1
    y = draw(st.permutations(np.repeat(np.arange(len(counts)), counts).tolist()))
    return np.array(y), draw(st.integers(1, room))


@given(labels_and_size(), st.integers(0, 99))
def test_splits_are_stratified_disjoint_and_complete(case, seed):
    y, n_test = case
    count = np.bincount(y)
    for train_idx, test_idx in stratified_holdout(y, 3, test_size=n_test, rng=seed):
        assert len(test_idx) == n_test
        assert np.all(np.diff(train_idx) > 0)
        assert np.all(np.diff(test_idx) > 0)
        rows = np.concatenate([train_idx, test_idx])
        assert sorted(rows.tolist()) == list(range(y.size))

        assert set(y[train_idx]) == set(y)
        tested = np.bincount(y[test_idx], minlength=count.size)
        quota = n_test * count / y.size
        # Never below the whole part of the share; above it by a row at most, unless
        # rows that rare ranks could not give were taken elsewhere.
        assert np.all(tested >= np.floor(quota))
        if np.all(np.ceil(quota) < count):
            assert np.all(tested <= np.ceil(quota))


def test_hold_outs_are_drawn_evenly():
    # A fraction is rounded up, as in the published partitions.
    for n, share, n_test in (57, 0.25, 15), (151, 0.25, 38), (100, 0.07, 7), (30, 4, 4):
        ((_, test_idx),) = stratified_holdout(np.arange(n) % 3, 1, test_size=share)
        assert len(test_idx) == n_test
    y = np.repeat([0, 1, 2], [50, 30, 20])
    ((_, test_idx),) = stratified_holdout(y, 1, test_size=7)  # shares 3.5, 2.1, 1.4
    assert np.bincount(y[test_idx]).tolist() == [4, 2, 1]
    y = np.repeat(np.arange(8), 2)  # every share is a half
    splits = stratified_holdout(y, 400, test_size=4)
    tested = Counter(rank for _, test_idx in splits for rank in y[test_idx].tolist())
    # 1600 draws over 8 ranks: binomial (400, 1/2), deviation 10
    assert all(abs(tested[rank] - 200) < 50 for rank in range(8))
    splits = stratified_holdout(np.repeat([1, 2], 20), 1000, test_size=10)
    tested = np.bincount(np.concatenate([test_idx for _, test_idx in splits]))
    assert np.all(np.abs(tested - 250) < 70)  # binomial (1000, 1/4), deviation 14
    y = np.arange(40) % 3
    a = stratified_holdout(y, 2)
    b = stratified_holdout(np.array(["a", "b", "c"])[y], 2)
    assert all(np.array_equal(s[1], t[1]) for s, t in zip(a, b, strict=True))


HOLDOUT, FOLDS = stratified_holdout, stratified_kfold


@pytest.mark.parametrize(("split", "y", "options", "message"), [
    (HOLDOUT, [], {}, "non-empty"),
    (HOLDOUT, [[1, 2]], {}, "1-dimensional"),
    (HOLDOUT, [1.0, math.nan], {}, "nan in row 1"),
    (HOLDOUT, [1, 1, 2], {"n_splits": 0}, "n_splits"),
    (HOLDOUT, [1, 1, 2], {"test_size": 0}, "can be 1 to 1"),
    (HOLDOUT, [1, 1, 2], {"test_size": 2}, "can be 1 to 1"),
    (HOLDOUT, [1, 1, 2], {"test_size": 1.0}, "fraction"),
    (HOLDOUT, [1, 1, 2], {"test_size": math.nan}, "fraction"),
    (HOLDOUT, [1, 1, 2], {"test_size": True}, "fraction"),
    (HOLDOUT, [1, 2, 3], {}, "can be 1 to 0"),
    (FOLDS, [1, 2, 3], {"n_splits": 1}, "2 to the number of rows, 3, got 1"),
    (FOLDS, [1, 2, 3], {"n_splits": 4}, "got 4"),
    (FOLDS, [1, 2, 3], {"n_splits": 0}, "n_splits"),
    (FOLDS, [], {"n_splits": 2}, "non-empty"),
])  # fmt: skip
def test_bad_input(split, y, options, message):
    raises(ValueError, message, split, y, **options)


@given(labels_and_size(), st.integers(2, 7), st.integers(0, 99))
def test_folds_are_even_stratified_and_test_every_row_once(case, k, seed):
    y, _ = case
    k = min(k, y.size)
    folds = stratified_kfold(y, k, rng=seed)
    tested = np.concatenate([test_idx for _, test_idx in folds])
    assert sorted(tested.tolist()) == list(range(y.size))
    for train_idx, test_idx in folds:
        both = np.concatenate([train_idx, test_idx])
        assert sorted(both.tolist()) == list(range(y.size))
        assert np.all(np.diff(train_idx) > 0)
        assert np.all(np.diff(test_idx) > 0)
    of_rank = np.array([np.bincount(y[t], minlength=y.max() + 1) for _, t in folds])
    assert np.ptp(of_rank, axis=0).max() <= 1
    assert np.ptp(of_rank.sum(axis=1)) <= 1


@given(labels_and_size(), st.integers(0, 99), st.integers(2, 6))
def test_training_sets_grow_with_every_rank_in_its_share(case, seed, k):
    y, n_test = case
    splits = learning_splits(y, k, n_splits=2, test_size=n_test, rng=seed)
    ranks, n = np.unique(y), y.size - n_test
    sizes = [train.size for train, _ in splits]
    steps = len(sizes) // 2
    assert sizes[:steps] == sizes[steps:] == sorted(set(sizes))
    assert sizes[0] == max(ranks.size, math.ceil(n / 10))
    assert sizes[-1] == n
    for holdout in (splits[:steps], splits[steps:]):
        full, test = holdout[-1]
        assert_array_equal(np.sort(np.concatenate([full, test])), np.arange(y.size))
        total = np.array([np.sum(y[full] == rank) for rank in ranks])
        for (train, its_test), (larger, _) in pairwise([*holdout, holdout[-1]]):
            assert_array_equal(its_test, test)
            assert np.isin(train, larger).all()
            assert np.all(np.diff(train) > 0)
            count = np.array([np.sum(y[train] == rank) for rank in ranks])
            assert count.min() >= 1
            # one share of all ranks, as far as whole rows have it
            least = ((count - 1) / total)[count > 1].max(initial=0)
            assert least <= ((count + 1) / total)[count < total].min(initial=2)


def test_sizes_are_numbers_of_rows_or_shares_of_them():
    y = np.repeat([1, 2], 40)
    for sizes, expected in (
        ([2, 10, 60], [2, 10, 60]),
        ([0.1, 0.5, 1.0], [6, 30, 60]),
        (4, [6, 13, 28, 60]),
        ([30, 10], [10, 30]),
    ):
        splits = learning_splits(y, sizes, n_splits=1)
        assert [train.size for train, _ in splits] == expected
    assert learning_splits(y)[0][0].tolist() == learning_splits(y)[0][0].tolist()
    y, group = np.tile([1, 2, 3], 20), np.repeat(np.arange(20), 3)
    for train, test in learning_splits(y, 3, n_splits=4, groups=group):
        assert not np.isin(group[train], group[test]).any()


@pytest.mark.parametrize(
    "sizes", [[1], [61], [0.0], [1.5], [np.nan], 1, "all", [[1, 2]], []]
)
def test_sizes_that_there_are_not(sizes):
    small = isinstance(sizes, list) and np.shape(sizes) == (1,)
    message = r"^sizes must be 2, the number of ranks, to" if small else "^sizes must "
    with pytest.raises((ValueError, TypeError), match=message):
        learning_splits(np.repeat([1, 2], 40), sizes)
