"""Cross-conformal sets, by the definition and on made data."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from files import copies
from numpy.testing import assert_allclose, assert_array_equal
from registry import every_method
from strategies import raises, sample

import ordinal
from ordinal import cross_conformal
from ordinal.model_selection import stratified_kfold
from ordinal.preprocessing import TablePreprocessor

X60, Y60 = sample(60, 4, noise=1.0)
NEW, TRUE = sample(50, 4, noise=1.0, seed=1)


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sets_are_those_of_the_definition(by_class, weighted):
    """#{i: s_i < s of the model without i} < coverage (m + 1), rank by rank."""
    weight = np.random.default_rng(0).integers(0, 3, 60) if weighted else None
    sets = cross_conformal(
        ordinal.fit_svorim, X60, Y60, 0.6, C=3.0, cv=3, sample_weight=weight,
        by_class=by_class, standardize=False,
    )  # fmt: skip
    count = np.ones(60) if weight is None else weight
    below, total = np.zeros((50, 4)), np.zeros(4)
    for train, test in stratified_kfold(Y60, 3):
        w = count[train]
        model = ordinal.fit_svorim(X60[train], Y60[train], C=3.0, sample_weight=w)
        edges = np.r_[-np.inf, model.thresholds, np.inf]

        def far(f, k, edges=edges):
            return np.maximum(np.maximum(edges[k] - f, f - edges[k + 1]), 0)

        f_new = model.decision_function(NEW)
        for i, f in zip(test, model.decision_function(X60[test]), strict=True):
            for k in range(4):
                if by_class and Y60[i] != k:
                    continue
                below[:, k] += count[i] * (far(f, Y60[i]) < far(f_new, k))
                total[k] += count[i]
    expected = (1 + total - below) / (1 + total)
    assert_allclose(sets.p_values(NEW), expected, rtol=1e-12)
    whole = ordinal.fit_svorim(X60, Y60, C=3.0, sample_weight=weight)
    assert_array_equal(sets.predict(NEW), whole.predict(NEW))
    # all between the lowest and the highest rank of those, and of the prediction
    member = expected > 0.4 * (1 + 1e-9)
    member[np.arange(50), whole.predict(NEW)] = True
    ends = [(np.flatnonzero(row)[0], np.flatnonzero(row)[-1]) for row in member]
    assert_array_equal(sets.predict_interval(NEW), ends)


@every_method
def test_every_method_has_cross_conformal_sets(method, tmp_path):
    quick = {"optimize": False} if "gpor" in method.name else {}
    quick |= {"n_epochs": 1.0, "tol": 1.0} if method.name == "xofm-sgd" else {}
    fit = partial(method.fit, **method.variant | quick)
    sets = cross_conformal(fit, X60, Y60, cv=2, n_threads=1)
    interval = sets.predict_interval(NEW)
    predicted = sets.predict(NEW)
    assert (interval[:, 0] <= predicted).all()
    assert (predicted <= interval[:, 1]).all()
    for same in copies(sets, tmp_path):
        assert_array_equal(same.predict_interval(NEW), interval)


def test_tables_with_words_and_gaps():
    """A frame is coded within every fold, and found by names at the end."""
    frame = pd.DataFrame(X60.copy(), columns=["a", "b", "c"])
    frame["kind"] = pd.Categorical(np.where(Y60 > 1, "up", "down"))
    frame.loc[::7, "b"] = np.nan
    how = {"cv": 3, "preprocess": TablePreprocessor()}
    sets = cross_conformal(ordinal.fit_svorim, frame, Y60, 0.8, **how)
    turned = frame[frame.columns[::-1]]
    assert_array_equal(sets.predict_interval(turned), sets.predict_interval(frame))
    assert sets.evaluate(frame, Y60)["coverage"][-1] >= 0.8
    by_pieces = cross_conformal(ordinal.fit_xofm, frame, Y60, 0.8, cv=3)
    assert_array_equal(*(by_pieces.predict_interval(of) for of in (turned, frame)))
    assert by_pieces.feature_names == ("a", "b", "c", "kind")


def test_groups_are_in_one_fold_and_count_once():
    group = np.arange(60) // 3
    sets = cross_conformal(ordinal.fit_svorim, X60, Y60, groups=group, cv=4)
    for g in range(20):
        assert np.unique(sets.folds[3 * g : 3 * g + 3]).size == 1
    assert_allclose(sets.weights, 1 / 3)
    with pytest.raises(ValueError, match=r"^coverage=0.96 needs 24 calibr.* got 20: "):
        cross_conformal(ordinal.fit_svorim, X60, Y60, 0.96, groups=group, cv=4)


def test_splits_test_no_row_twice():
    raises(ValueError, "did you mean 'svorim'", cross_conformal, "svorin", X60, Y60)
    twice = [(np.arange(30, 60), np.arange(20)), (np.arange(20, 60), np.arange(19, 20))]
    with pytest.raises(ValueError, match=r"^cv must test no row twice, but row 19 is$"):
        cross_conformal(ordinal.fit_svorim, X60, Y60, cv=twice)
    once = [(np.arange(30, 60), np.arange(20)), (np.arange(20), np.arange(30, 40))]
    assert cross_conformal(ordinal.fit_svorim, X60, Y60, cv=once).scores.size == 30

    class Oracle:
        classes = np.arange(4)

        def predict(self, X):
            return np.zeros(len(X), int)

    with pytest.raises(TypeError, match=r"^model must have probabilities"):
        cross_conformal(lambda X, y, **_: Oracle(), X60, Y60)
