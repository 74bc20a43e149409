"""Labels in words whose alphabetical order is not the rank order: the estimators and
the tools of scikit-learn give what they give for ranks as integers."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from registry import registered
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strategies import raises, sample, slow
from test_sklearn import QUICK

import ordinal
import ordinal.sklearn as estimators
from ordinal import metrics
from ordinal.sklearn import POM, SVORIM, RankEncoder, scorer

WORDS = np.array(["low", "mid", "high"])  # whose alphabetical order is that of PLACES
SORTED, CODES = np.sort(WORDS), [1, 2, 0]
PLACES = np.argsort(WORDS)  # of SORTED among WORDS
X, Y = sample(60, 3, noise=0.7)
X_NEW = 1.5 * sample(40, 3, noise=0.7)[0]


def svorim(classes=None, **options):
    options = {"probability": True, "kernel": "linear"} | options
    return SVORIM(classes=classes, n_threads=1, **options)


def pom(classes=None):
    return POM(classes=classes, n_threads=1, l2=0.1)


both = pytest.mark.parametrize("make", [svorim, pom])


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("r", [*slow(2), 3])
@pytest.mark.parametrize("method", registered())
def test_columns_follow_the_sorted_classes_and_ranks_keep_their_order(method, r):
    words = WORDS[[0, 2]] if r == 2 else WORDS
    places, y = np.argsort(words), np.minimum(Y, r - 1)
    options = {"n_threads": 1, **QUICK.get(method.name, {})}
    if not method.probabilities:
        options["probability"] = True
    make = getattr(estimators, method.estimator)
    ranks = make(**options).fit(X, y)
    named = make(classes=words, **options).fit(X, words[y])
    assert_array_equal(named.classes_, np.unique(words))
    assert_array_equal(named.ranks_, words)
    assert_array_equal(ranks.ranks_, ranks.classes_)
    P, D = named.predict_proba(X_NEW), named.decision_function(X_NEW)
    assert_array_equal(P, ranks.predict_proba(X_NEW)[:, places])
    expected = ranks.decision_function(X_NEW)
    labels = named.predict(X_NEW)
    assert_array_equal(labels, words[ranks.predict(X_NEW)])
    if r == 2:
        assert_array_equal(D, -expected)  # "low" is the second of the classes
        assert_array_equal(labels[D != 0], named.classes_[(D[D != 0] > 0).astype(int)])
    else:
        assert_array_equal(D, expected[:, places])
        assert_array_equal(labels, named.classes_[D.argmax(axis=1)])
    for name in ("mae", "kappa", "rps", "accuracy"):
        score = scorer(name)(ranks, X_NEW, y[:40])
        assert scorer(name)(named, X_NEW, words[y[:40]]) == score
        named.set_params(scoring=name), ranks.set_params(scoring=name)
        assert named.score(X, words[y]) == ranks.score(X, y)


def test_numbers_in_another_order_than_their_own_are_ranks():
    swapped = np.array([5, 1, 3])
    estimator, ranks = svorim(swapped).fit(X, swapped[Y]), svorim().fit(X, Y)
    assert_array_equal(estimator.classes_, [1, 3, 5])
    assert_array_equal(estimator.ranks_, swapped)
    P = ranks.predict_proba(X_NEW)
    assert_array_equal(estimator.predict_proba(X_NEW), P[:, [1, 2, 0]])
    y = swapped[Y[:40]]
    assert scorer("rps")(estimator, X_NEW, y) == scorer("rps")(ranks, X_NEW, Y[:40])


@pytest.mark.parametrize("scoring", ["neg_log_loss", scorer("mae"), scorer("rps")])
def test_a_search_has_the_scores_of_integers(scoring):
    def searched(classes, y):
        pipe = make_pipeline(StandardScaler(), pom(classes))
        grid = {"pom__l2": [0.01, 1.0]}
        return GridSearchCV(pipe, grid, scoring=scoring, cv=3).fit(X, y)

    named, ranks = searched(WORDS, WORDS[Y]), searched(None, Y)
    assert named.best_params_ == ranks.best_params_
    scores = [found.cv_results_["mean_test_score"] for found in (named, ranks)]
    assert_allclose(*scores, rtol=1e-9)
    assert_array_equal(named.classes_, SORTED)
    sets = [
        ordinal.conformal(found, X_NEW, y)  # the search, not its estimator
        for found, y in ((named, WORDS[Y[:40]]), (ranks, Y[:40]))
    ]
    assert_array_equal(sets[0].classes, WORDS)
    assert_allclose(sets[0].p_values(X), sets[1].p_values(X), rtol=1e-9)
    P = [found.predict_proba(X) for found in sets]
    assert_allclose(P[0], P[1], rtol=1e-9)


TAKE = {
    "calibrated": lambda e: CalibratedClassifierCV(e, cv=3),
    "boosted": lambda e: AdaBoostClassifier(e, n_estimators=3, random_state=0),
}


@pytest.mark.parametrize("tool", TAKE)
@both
def test_meta_estimators_that_take_words_are_those_of_integers(tool, make):
    named = TAKE[tool](make(WORDS)).fit(X, WORDS[Y])
    ranks = TAKE[tool](make()).fit(X, Y)
    assert_array_equal(named.classes_, SORTED)
    P, expected = (e.predict_proba(X_NEW) for e in (named, ranks))
    assert_allclose(P, expected[:, PLACES], rtol=1e-7)
    assert_array_equal(named.predict(X_NEW), WORDS[ranks.predict(X_NEW)])


NUMBER = {
    "bagging": lambda e: BaggingClassifier(e, n_estimators=3, random_state=0),
    "voting": lambda e: VotingClassifier(
        [("a", e), ("b", pom(e.classes))], voting="soft"
    ),
    "stacking": lambda e: StackingClassifier([("a", e)], LogisticRegression(), cv=3),
    "stacked": lambda e: StackingClassifier([("a", e)], pom(e.classes), cv=3),
}  # fmt: skip


@pytest.mark.parametrize("tool", NUMBER)
def test_meta_estimators_that_number_labels_are_told_the_order(tool):
    named = NUMBER[tool](svorim(CODES)).fit(X, WORDS[Y])
    ranks = NUMBER[tool](svorim()).fit(X, Y)
    assert_array_equal(named.classes_, SORTED)
    P, expected = (e.predict_proba(X_NEW) for e in (named, ranks))
    assert_allclose(P, expected[:, PLACES], rtol=1e-3, atol=1e-5)
    assert_array_equal(named.predict(X_NEW), WORDS[ranks.predict(X_NEW)])
    grades = pd.Series(pd.Categorical(WORDS[Y], WORDS, ordered=True))
    assert scorer("mae")(named, X, grades) == scorer("mae")(ranks, X, Y)
    assert scorer("rps")(named, X, grades) == pytest.approx(scorer("rps")(ranks, X, Y))
    with pytest.raises(TypeError, match=r"label the rows by integers in rank order"):
        scorer("mae")(named, X, WORDS[Y])


@pytest.mark.parametrize("tool", NUMBER)
def test_a_rank_encoder_keeps_the_order_in_every_tool(tool):
    """The tools lose that of an ordered categorical, which is passed to the encoder."""
    grades = pd.Series(pd.Categorical(WORDS[Y], WORDS, ordered=True))
    ranks = NUMBER[tool](svorim()).fit(X, Y)
    for y, encoder in ((grades, RankEncoder()), (WORDS[Y], RankEncoder(WORDS))):
        made = NUMBER[tool](svorim()).fit(X, encoder.fit_transform(y))
        assert_array_equal(encoder.transform(y), Y)
        assert_array_equal(made.predict_proba(X_NEW), ranks.predict_proba(X_NEW))
        labels = encoder.inverse_transform(made.predict(X_NEW))
        assert_array_equal(labels, WORDS[ranks.predict(X_NEW)])


def test_a_rank_encoder_needs_the_order():
    with pytest.raises(TypeError, match="whose order is not known: pass classes="):
        RankEncoder().fit(WORDS[Y])
    with pytest.raises(ValueError, match=r"holds 'mid' in row .* not among classes="):
        RankEncoder(["low", "high"]).fit(WORDS[Y])
    encoder = RankEncoder().fit([2, 10, 7])
    assert_array_equal(encoder.transform([10, 7]), [2, 1])
    with pytest.raises(ValueError, match=r"y holds 3 in row 0, .* classes_=\[2, 7, 10"):
        encoder.transform([3])
    raises(ValueError, "ranks holds 3 in row 1", encoder.inverse_transform, [0, 3])
    assert sklearn.base.clone(RankEncoder(WORDS)).classes is not None


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_cross_validated_columns_are_told_the_order(method):
    named = cross_val_predict(svorim(CODES), X, WORDS[Y], cv=3, method=method)
    ranks = cross_val_predict(svorim(), X, Y, cv=3, method=method)
    assert_array_equal(named, ranks[:, PLACES])
    labels = cross_val_predict(svorim(WORDS), X, WORDS[Y], cv=3)
    assert_array_equal(labels, WORDS[cross_val_predict(svorim(), X, Y, cv=3)])


LOSE = {
    **NUMBER,
    "calibrated": lambda e: CalibratedClassifierCV(e, cv=3, ensemble=False),
}


@pytest.mark.parametrize("tool", LOSE)
def test_a_lost_order_is_an_error_that_says_what_to_pass(tool):
    message = r"by the alphabet loses their order: .*pass classes=\[1, 2, 0\]"
    raises(ValueError, message, LOSE[tool](svorim(WORDS)).fit, X, WORDS[Y])
    with pytest.raises(ValueError, match=message):
        cross_val_predict(svorim(WORDS), X, WORDS[Y], cv=3, method="predict_proba")


def test_scores_of_other_estimators_take_the_order_of_a_categorical():
    grades = pd.Series(pd.Categorical(WORDS[Y], WORDS, ordered=True))
    named, ranks = (LogisticRegression().fit(X, y) for y in (grades, Y))
    for name in ("mae", "rps", "kappa"):
        score = scorer(name)(ranks, X, Y)
        assert scorer(name)(named, X, grades) == pytest.approx(score, rel=1e-3)
    with pytest.raises(TypeError, match=r"^classes_ of the model must be numbers"):
        scorer("mae")(named, X, WORDS[Y])
    some = LogisticRegression().fit(X[Y < 2], grades[Y < 2])  # which knows no "high"
    P = np.column_stack([some.predict_proba(X)[:, [0, 1]], np.zeros(60)])
    assert scorer("rps")(some, X, grades) == -metrics.rps(WORDS[Y], P, labels=WORDS)
