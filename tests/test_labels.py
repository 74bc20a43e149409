"""Labels of every type that has an order: halves, categories and intervals give the
same models as integers, up to the names, and come back as they came."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from files import loaded
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sources import Cut
from strategies import raises, sample, slow

import ordinal
from ordinal import fit_pom, metrics
from ordinal.sklearn import LAT, POM, SVORIM, scorer

X, RANK = sample(60, 4)
TABLE = pd.DataFrame(X, columns=list("abc"), index=range(100, 160))
VALUE = RANK + 0.5 * np.random.default_rng(0).uniform(-1, 1, 60)
EDGES = [-1.0, 0.5, 1.5, 2.5, 4.0]
STARS = np.array([0.5, 1.0, 1.5, 4.5])
WORDS = np.array(["low", "mid", "top", "best"])


def test_halves_are_accepted_wherever_labels_are():
    y = STARS[RANK]
    plain = ordinal.select("pom", X, RANK, cv=3)
    assert_array_equal(ordinal.select("pom", X, y, cv=3).scores, plain.scores)
    result = ordinal.compare(X, y, methods=["constant-median", "pom"], cv=3)
    assert result.best.predict(X).dtype == y.dtype
    assert "0.5|1.0" in result.best.threshold_names
    for make in (POM, LAT):
        assert np.isfinite(cross_val_score(make(), X, y, cv=3)).all()
        search = GridSearchCV(make(), {"tol": [1e-3]}, cv=3, scoring=scorer("accuracy"))
        assert search.fit(X, y).predict(X).dtype == y.dtype
    # Numbers count as numbers in metrics, unless the ranks are given.
    assert metrics.mae([0.5, 1.0], [1.5, 1.0]) == 0.5
    assert metrics.mae([0.5, 1.0], [1.5, 1.0], labels=STARS) == 1.0
    assert_array_equal(fit_pom(pl.DataFrame(X), pl.Series(y)).classes, STARS)


@pytest.mark.parametrize("y", [VALUE, np.array([0.25] * 30 + [0.5] * 30)])
@pytest.mark.parametrize(
    "call",
    [fit_pom, ordinal.fit_svorim, lambda X, y: ordinal.select("pom", X, y),
     lambda X, y: ordinal.compare(X, y, methods=["pom"])],
)  # fmt: skip
def test_continuous_targets_are_refused_with_the_remedies(call, y):
    say = r"y holds .* in row 0, which is not a multiple of one half: bin it with "
    raises(ValueError, say + r"ordinal.preprocessing.Binning, or p", call, X, y)


@pytest.mark.parametrize("fit", [
    fit_pom,
    lambda X, y, **how: fit_pom(Cut([20, 30], X, y), None, **how),
    partial(ordinal.fit_pom_path, n_lambdas=2),
    ordinal.fit_ratio,
    partial(ordinal.fit_clmm, groups={"g": np.arange(40) % 8}, n_quadrature=1),
    ordinal.fit_svorim,
])  # fmt: skip
def test_numbers_are_ranked_by_value_if_asked(fit):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    y = np.round(X @ [1.0, -1.0] + rng.logistic(size=40), 1) / 7
    values, rank = np.unique(y, return_inverse=True)
    ours, theirs = fit(X, y, classes="values"), fit(X, rank)
    if hasattr(ours, "models"):  # a path
        ours, theirs = ours.model(-1), theirs.model(-1)
    assert_array_equal(ours.classes, values)
    assert_array_equal(ours.predict(X), values[theirs.predict(X)])
    with pytest.raises(TypeError, match="ranks numbers alone: leave it out"):
        fit(X, rank.astype(str), classes="values")


def test_thresholds_have_short_names_and_are_found_by_any_number():
    y = np.repeat([1, 2, 4], 4) / 3
    model = fit_pom(np.arange(12.0)[:, None] % 5, y, classes="values")
    assert model.threshold_names == ("0.333333|0.666667", "0.666667|1.33333")
    assert "3: 0.333333, 0.666667, 1.33333" in repr(model)
    rows = np.arange(4.0)[:, None] % 2
    close = ordinal.fit_pom(rows, [0, 1e-9, 1, 1], classes="values")
    assert close.threshold_names == ("0.0|1e-09", "1e-09|1.0")
    known = model.predictions(kind="exceedance", at=2 / 3)["estimate"]
    found = model.predictions(kind="exceedance", at=[1, 0.667])["estimate"]
    assert_array_equal(found, np.repeat(known, 2))
    raises(ValueError, "at must be among", model.predictions, kind="probability", at=1)
    whole = fit_pom(rows, [0, 2, 4, 4])  # a label between two, as numpy holds it
    between = whole.predictions(kind="exceedance", at=np.int64(3))["threshold"]
    assert_array_equal(between, ["2|4"])


def cuts():
    """Ordered categoricals of intervals, of every type of ends."""
    day = pd.Timestamp("2024-02-29 12:00")
    yield pd.cut(VALUE, EDGES)
    yield pd.cut(VALUE, [-1, 1, 2, 9])
    yield pd.cut(VALUE, EDGES, right=False)
    yield pd.cut(VALUE, [-np.inf, 0.1 + 0.2, np.inf])
    yield pd.qcut(VALUE * 1e-7, 3)
    yield pd.cut(day + pd.to_timedelta(VALUE, unit="D"), 3)
    yield pd.cut(pd.to_timedelta(VALUE, unit="h"), 3)


@pytest.mark.parametrize("y", [*cuts()], ids=lambda y: str(y.categories.dtype))
def test_intervals_come_back_as_intervals(y):
    model, codes = fit_pom(TABLE, y, l2=0.1), fit_pom(TABLE, y.codes, l2=0.1)
    assert_allclose(model.coef, codes.coef)
    predicted = model.predict(TABLE)
    assert predicted.dtype == y.dtype
    assert predicted.index.equals(TABLE.index)
    assert_array_equal(predicted.cat.codes, codes.predict(TABLE))
    assert_array_equal(model.classes, [str(one) for one in y.categories])
    assert metrics.mae(y, predicted) == metrics.mae(y.codes, codes.predict(TABLE))
    assert metrics.kappa(pd.Series(y), pd.Series(predicted)) == pytest.approx(
        metrics.kappa(y.codes, codes.predict(TABLE))
    )
    for copy in (loaded(model), pickle.loads(pickle.dumps(model))):
        assert copy.predict(TABLE).equals(predicted)


@pytest.mark.parametrize("make", [POM, *slow(partial(SVORIM, probability=True))])
def test_a_level_without_rows_changes_no_score_of_scikit_learn(make):
    used = pd.Series(pd.Categorical(WORDS[RANK], WORDS, ordered=True))
    never = used.cat.add_categories(["never"])
    for scoring in (None, "neg_log_loss", "roc_auc_ovr"):
        score = partial(cross_val_score, make(), X, cv=3, scoring=scoring)
        a, b = score(used), score(never)
        assert np.isfinite(a).all()
        assert_array_equal(a, b)
    search = GridSearchCV(POM(), {"l2": [1e4, 1e-2]}, cv=3, scoring="neg_log_loss")
    assert search.fit(X, never).best_params_ == {"l2": 1e-2}
    assert search.best_estimator_.ranks_.tolist() == WORDS.tolist()
    # The functions keep a column for each level that is declared.
    assert fit_pom(X, never).predict_proba(X).shape == (60, 5)
    assert_array_equal(fit_pom(X, never).predict(X), fit_pom(X, used).predict(X))


def test_levels_that_a_fold_lacks_are_scored_in_their_order():
    y = pd.Series(pd.Categorical(WORDS[RANK], WORDS, ordered=True))
    top = np.flatnonzero(RANK == 3)
    rest = np.setdiff1d(np.arange(60), top)
    model = POM().fit(X[rest], y[rest])
    assert "best" not in model.ranks_
    labels = model.predict(X)
    assert model.score(X, y) == -metrics.mae(y, labels, labels=WORDS)
    assert np.isfinite(cross_val_score(POM(), X, y, cv=[(rest, top)])).all()


def test_a_column_is_not_a_table():
    y = pd.Series(pd.Categorical(WORDS[RANK], WORDS, ordered=True), name="rating")
    for column, remedy in (
        (y.to_frame(), r": pass its column, y\['rating'\]$"),
        (pl.DataFrame({"rating": RANK}), r": pass its column, y\['rating'\]$"),
        (RANK[:, None], r": pass y.ravel\(\)$"),
        (RANK[:, None].tolist(), ": pass one label each$"),
        (np.column_stack([RANK, RANK]), r"\(60, 2\): .* RankIntervals\(a, b\)$"),
    ):
        select = partial(ordinal.select, "pom")
        for call in (fit_pom, ordinal.fit_svorim, select, ordinal.compare):
            raises(ValueError, "y must be 1-dim.*" + remedy, call, X, column)
    raises(ValueError, r"y_true\['rating'\]", metrics.mae, y.to_frame(), y)


@pytest.mark.parametrize("make", [POM, SVORIM])
def test_estimators_take_a_column_with_the_warning_of_scikit_learn(make):
    words = pd.Series(pd.Categorical(WORDS[RANK], WORDS, ordered=True), name="rating")
    for y, column in ((words, words.to_frame()), (RANK, RANK[:, None])):
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            model = make().fit(X, column)
        plain = make().fit(X, y)
        assert_array_equal(model.ranks_, plain.ranks_)
        assert_array_equal(model.predict(X), plain.predict(X))
        assert model.score(X, column) == plain.score(X, y)
