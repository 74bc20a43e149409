"""Classifiers made ordinal by one clone per threshold."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from internals import falling
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from strategies import sample

from ordinal.sklearn import OrdinalDecomposition


@parametrize_with_checks([OrdinalDecomposition(LogisticRegression())])
def test_the_estimator_passes_every_check(estimator, check):
    check(estimator)


def test_pools_of_weighted_columns_are_the_isotonic_regression():
    rng = np.random.default_rng(0)
    A, weight = rng.uniform(size=(100, 6)), rng.uniform(0.1, 5, 6)
    isotonic = IsotonicRegression(increasing=False)
    at = np.arange(6)
    expected = [isotonic.fit(at, row, weight).predict(at) for row in A]
    assert_allclose(falling(A, weight), expected, atol=1e-13)


def test_probabilities_are_differences_of_ordered_events():
    X, y = sample(150, 4, noise=1.0)
    tree = DecisionTreeClassifier(min_samples_leaf=8, random_state=0)
    model = OrdinalDecomposition(tree).fit(X, y)
    events = [
        DecisionTreeClassifier(min_samples_leaf=8, random_state=0)
        .fit(X, y > k)
        .predict_proba(X)[:, 1]
        for k in range(3)
    ]
    assert (np.diff(events, axis=0) > 0).any()  # there is something to put in order
    shares = np.array([(y > k).mean() for k in range(3)])
    above = falling(np.column_stack(events), np.minimum(shares, 1 - shares))
    P = model.predict_proba(X)
    assert_allclose(1 - np.cumsum(P, axis=1)[:, :-1], above, atol=1e-12)
    assert (P >= 0).all()
    assert_array_equal(model.predict(X), P.argmax(axis=1))
    median = model.set_params(rule="median").predict(X)
    assert_array_equal(median, (P.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1))
    cost = np.array([[0, 1, 2, 3], [9, 0, 1, 2], [9, 9, 0, 1], [9, 9, 9, 0]])
    cheap = model.set_params(rule="cost", cost=cost).predict(X)
    assert_array_equal(cheap, (P @ cost).argmin(axis=1))


def test_weights_are_passed_on_or_refused():
    X, y = sample(90, 3)
    times = 1 + np.arange(90) % 2
    rows = np.repeat(np.arange(90), times)
    plain = LogisticRegression(tol=1e-10)
    a = OrdinalDecomposition(plain).fit(X, y, sample_weight=times)
    b = OrdinalDecomposition(plain).fit(X[rows], y[rows])
    assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-5)
    piped = OrdinalDecomposition(make_pipeline(plain)).fit(X, y, sample_weight=times)
    assert_array_equal(piped.predict_proba(X), a.predict_proba(X))
    with sklearn.config_context(enable_metadata_routing=True):  # none are passed on
        OrdinalDecomposition(make_pipeline(plain)).fit(X, y)
    with pytest.raises(ValueError, match="KNeighborsClassifier accepts no weights"):
        OrdinalDecomposition(KNeighborsClassifier()).fit(X, y, sample_weight=times)
    with pytest.raises(TypeError, match=r"predict_proba, got LinearSVC\(\): pass a"):
        OrdinalDecomposition(LinearSVC()).fit(X, y)


def test_labels_keep_their_order_and_ranks_without_rows_have_probability_0():
    X, y = sample(90, 3)
    words = np.array(["low", "mid", "top"])
    classes = ["never", *words]
    model = OrdinalDecomposition(LogisticRegression(), classes=classes, n_jobs=2)
    with parallel_config(backend="threading"):
        model.fit(X, words[y])
    assert model.ranks_.tolist() == ["never", "low", "mid", "top"]
    assert_array_equal(model.predict_proba(X)[:, model.classes_ == "never"], 0)
    expected = OrdinalDecomposition(LogisticRegression()).fit(X, y)
    assert_array_equal(model.predict(X), words[expected.predict(X)])
    ordered = pd.Categorical(words[y], categories=words, ordered=True)
    again = OrdinalDecomposition(LogisticRegression()).fit(X, ordered)
    assert again.ranks_.tolist() == words.tolist()
    assert model.score(X, words[y]) == expected.score(X, y)
