"""Classifiers of scikit-learn, and of anybody, as methods of `compare` and members."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from strategies import raises

import ordinal
from ordinal import compare, fit_stacking, metrics
from ordinal.models import EstimatorModel
from ordinal.preprocessing import PreprocessedModel

FOREST = RandomForestClassifier(10, random_state=0, min_samples_leaf=5)


class Shares:
    """A minimal classifier: the shares of the classes, whatever the features are."""

    fits = []  # noqa: RUF012

    def fit(self, X, y):
        self.classes_, n = np.unique(y, return_counts=True)
        self.share = n / n.sum()
        self.fits.append((self, type(X), X.shape))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[self.share.argmax()])

    def predict_proba(self, X):
        return np.tile(self.share, (len(X), 1))


def table(n=60, seed=0):
    """A table with categories and missing values, and strings as labels."""
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(size=n), rng.choice(["a", "b"], n)
    X = pd.DataFrame({"x": np.where(rng.random(n) < 0.1, np.nan, x), "kind": kind})
    score = x + (kind == "b") + 0.3 * rng.normal(size=n)
    return X, np.array(["low", "mid", "high"])[np.digitize(score, [-0.5, 1.0])]


RANKS = ["low", "mid", "high"]


def test_scores_are_those_of_the_classifier_on_coded_features():
    X, y = table()
    found = compare(X, y, classes=RANKS, methods=[FOREST, "constant-mode"], cv=3)
    mine = found.methods.index("RandomForestClassifier")
    assert found.status[mine, 0] == "fitted"
    assert [found.rules[m][mine] for m in ("mae", "accuracy")] == ["median", "mode"]
    truth = np.array([RANKS.index(label) for label in y])
    for k, (train, test) in enumerate(found.splits):
        coding = ordinal.preprocessing.TablePreprocessor().fit(X.iloc[train])
        forest = RandomForestClassifier(**FOREST.get_params())
        forest.fit(coding.transform(X.iloc[train]), truth[train])
        P = forest.predict_proba(coding.transform(X.iloc[test]))
        median = (P.cumsum(axis=1) < 0.5 - 1e-12).sum(axis=1)
        for name, value in {
            "mae": metrics.mae(truth[test], median),
            "accuracy": np.mean(P.argmax(axis=1) == truth[test]),
            "rps": metrics.rps(truth[test], P, labels=[0, 1, 2]),
        }.items():
            assert_allclose(found.scores[name][mine, k], value)
    assert not hasattr(FOREST, "classes_")  # it was cloned


def test_the_winner_predicts_by_rules_and_is_pickled_but_not_saved(tmp_path):
    X, y = table()
    best = compare(X, y, classes=RANKS, methods={"forest": FOREST}, cv=3).best
    assert isinstance(best, PreprocessedModel)
    assert isinstance(best.model, EstimatorModel)
    P = best.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)
    assert best.model.rule == "median"  # that of the deciding MAE
    assert_array_equal(best.predict(X), best.predict(X, rule="median"))
    mode = np.array(RANKS)[P.argmax(axis=1)]
    assert_array_equal(best.predict(X, rule="mode"), mode)
    assert_array_equal(best.predict(X, rule="own"), mode)
    assert "RandomForestClassifier" in repr(best)
    assert best.explain(X).names[0] == "x"
    assert best.classes.tolist() == RANKS
    assert_array_equal(pickle.loads(pickle.dumps(best)).predict_proba(X), P)
    with pytest.raises(TypeError, match=r"RandomForestClassifier.*use pickle"):
        best.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    best.report(X, y, tmp_path / "report.html")
    assert ordinal.conformal(best, X, y).predict_proba(X).shape == P.shape


def test_a_minimal_class_is_copied_for_every_fit_and_given_arrays():
    X, y = table()
    Shares.fits.clear()
    given = Shares()
    found = compare(
        X, y, classes=RANKS, methods=[given, "constant-mode"], cv=3,
        scoring=["accuracy", "rps"],
    )  # fmt: skip
    assert_array_equal(found.scores["accuracy"][0], found.scores["accuracy"][1])
    assert_array_equal(found.scores["rps"][0], found.scores["rps"][1])
    assert len({*(id(copy) for copy, _, _ in Shares.fits), id(given)}) == 4
    assert {kind for _, kind, _ in Shares.fits} == {np.ndarray}


def test_an_absent_rank_has_probability_zero():
    X, y = np.arange(40.0)[:, None], np.repeat([10, 20, 30, 40], 10)
    test = np.arange(40) % 4 == 0
    train, test = np.flatnonzero((y != 20) & ~test), np.flatnonzero(test)
    found = compare(X, y, methods=[KNeighborsClassifier(3)], cv=[(train, test)])
    P = np.zeros((test.size, 4))
    neighbors = KNeighborsClassifier(3).fit(X[train], y[train])  # whatever the scale
    P[:, [0, 2, 3]] = neighbors.predict_proba(X[test])
    rps = metrics.rps(y[test], P, labels=[10, 20, 30, 40])
    assert_allclose(found.scores["rps"][0, 0], rps)
    median = 1 + (P.cumsum(axis=1) < 0.5 - 1e-12).sum(axis=1)
    assert_allclose(found.scores["mae"][0, 0], metrics.mae(y[test] // 10, median))


def test_weights_reach_the_fit_or_are_refused_by_name():
    X, y = table()
    X = X[["x"]].fillna(0.0)
    weight = np.random.default_rng(1).choice([0.0, 1.0, 3.0], len(y))
    methods = {
        "plain": LogisticRegression(),
        "pipe": make_pipeline(LogisticRegression()),
        "search": GridSearchCV(make_pipeline(LogisticRegression()), {}, cv=2),
        "pipe of two": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    how = {"classes": RANKS, "cv": 3, "sample_weight": weight, "scoring": "rps"}
    found = compare(X, y, methods=methods, **how)
    bare = compare(X, y, classes=RANKS, methods=methods, cv=3, scoring="rps")
    assert not found.reasons
    by = dict(zip(found.methods, found.scores["rps"], strict=True))
    assert_allclose(by["plain"], by["pipe"])
    assert_allclose(by["plain"], by["search"])
    assert (abs(by["plain"] - bare.scores["rps"][0]) > 1e-4).all()

    def function(X, y):
        return ordinal.fit_pom(X, y)

    for method in (KNeighborsClassifier(), Shares(), make_pipeline(Shares()), function):
        with pytest.raises(TypeError, match=r"fit of only takes no sample_weight: le"):
            compare(X, y, classes=RANKS, methods={"only": method}, sample_weight=weight)
    near = [KNeighborsClassifier()]
    with pytest.raises((TypeError, ValueError), match=r"KNeighborsClassifier"):
        fit_stacking(X, y, near, classes=RANKS, sample_weight=weight)


def test_without_probabilities_the_rps_is_unknown_and_the_own_rule_serves():
    X, y = table()
    found = compare(X, y, classes=RANKS, methods=[LinearSVC(), "pom"], cv=3)
    mine = found.methods.index("LinearSVC")
    assert np.isnan(found.scores["rps"][mine]).all()
    assert np.isfinite(found.scores["mae"][mine]).all()
    assert {str(of[mine]) for of in found.rules.values()} == {"own"}
    assert not found.reasons
    model = found.refit("LinearSVC")
    raises(ValueError, "LinearSVC has no predict_proba", model.predict_proba, X)


def test_a_classifier_is_not_tuned_and_the_notes_say_so():
    X, y = table()
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 9]}, cv=2)
    methods = [search, FOREST, partial(ordinal.fit_pom, l2=1.0), "constant-mode"]
    found = compare(X, y, classes=RANKS, methods=methods, cv=2, tune=True)
    (note,) = [note for note in found.notes() if "Not tuned" in note]
    assert "GridSearchCV" in note
    assert "RandomForestClassifier" in note
    assert "fit_pom" not in note
    assert "constant" not in note
    assert found.refit("GridSearchCV").model.estimator.best_params_["n_neighbors"] > 0
    assert "Not tuned" not in repr(compare(X, y, classes=RANKS, methods=[FOREST], cv=2))


@pytest.mark.parametrize(("methods", "error", "message"), [
    ([RandomForestRegressor()], TypeError, "regressor.*pass a classifier"),
    ([GridSearchCV(RandomForestRegressor(), {})], TypeError, "regressor"),
    ([RandomForestClassifier], TypeError, r"an instance, RandomForestClassifier\(\)"),
    ([FOREST, RandomForestClassifier()], ValueError, "pass a mapping"),
])  # fmt: skip
def test_what_is_no_classifier_is_refused_before_any_fit(methods, error, message):
    X, y = table()
    for call in (compare, fit_stacking):
        raises(error, message, call, X, y, methods=methods, classes=RANKS)


class Wrong(Shares):
    predict = staticmethod(lambda X: np.full(len(X), 0.5))
    predict_proba = staticmethod(lambda X: np.ones((len(X), 3)))


def test_predictions_that_are_no_ranks_or_probabilities_are_refused():
    X, y = table()
    for rule, scoring in [("own", "mae"), (None, "rps"), ("median", "mae")]:
        found = compare(
            X, y, classes=RANKS, methods=[Wrong(), "pom"], scoring=scoring, rule=rule
        )
        assert "Wrong" in found.reasons["Wrong"]


def test_classifiers_are_members_of_a_pool(tmp_path):
    X, y = table()
    model = fit_stacking(X, y, {"forest": FOREST, "pom": "pom"}, classes=RANKS, cv=3)
    assert model.methods == ("forest", "pom")
    members = zip(model.weights[model.weights > 0], model.models, strict=True)
    P = sum(w * m.predict_proba(X) for w, m in members)
    assert_allclose(model.predict_proba(X), P)
    alone = fit_stacking(X, y, [FOREST], classes=RANKS, cv=3)
    found = compare(X, y, classes=RANKS, methods=[FOREST])
    assert_allclose(alone.predict_proba(X), found.best.predict_proba(X))
    with pytest.raises(TypeError, match=r"RandomForestClassifier.*use pickle"):
        alone.save(tmp_path / "model")
