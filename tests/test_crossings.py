"""Relations that hold whatever the method, the feature and the door.

Most faults stand where two features meet: effects behind a preprocessor, scores of a
fold that lacks a rank, files that pandas wrote. A test of one feature cannot see them.
Each relation is about a table and what is computed from it; hypothesis draws the method
from the registry, the door by which the table reaches it, and the change.

    another unit of a column      same predictions; linear estimates in that unit
    effects                       differences of the model's own probabilities
    names and levels              nothing changes but the names
    types of columns              same predictions, or a warning that names the column
    types of labels               same predictions
    ranks that a fold lacks       no winner by an undefined score
    doors                         same predictions
    fits that ended early         no standard error or test without a warning

Rows in another order are the subject of test_row_order.py, and arrays instead of named
columns that of test_unnamed_columns.py: both go through the registry, too.
"""

import inspect
import io
import warnings
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import methods
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score
from strategies import case

import ordinal
import ordinal.sklearn
from ordinal.__main__ import main
from ordinal.preprocessing import Standardizer, TablePreprocessor

pytestmark = pytest.mark.filterwarnings(
    "ignore::ordinal.exceptions.ConvergenceWarning",
    "ignore::ordinal.exceptions.CollinearColumnsWarning",
    "ignore::ordinal.exceptions.DisorderedThresholdsWarning",
)
N = 60
# Fits that are quick; how well they converge does not matter here.
QUICK = {
    "gpor": {"optimize": False},
    "cnnor": {"n_filters": 2, "n_hidden": 3, "n_triplets": 200, "max_iter": 20},
    "nnor": {"max_iter": 20},
    "nnpom": {"max_iter": 20},
    "boosting": {"n_rounds": 10},
    "xofm": {"max_iter": 50},
}
NAMES = ["None", "NA", "null", "?", "a b", "a,b", "$x$", "1", "x:y", "a=b", "é"]
WHOLE = {"preprocess": TablePreprocessor()}

every_method = st.sampled_from(methods())
seeds = st.integers(0, 10**6)


def share(eighths):
    """Return settings for so many eighths of the examples of the profile."""
    return settings(max_examples=max(1, settings.default.max_examples * eighths // 8))


def table(seed):
    """Return numbers, whole numbers, booleans and words, and ranks that go with all."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, N),
            "size": rng.normal(size=N),
            "ill": rng.random(N) < 0.4,
            "g": rng.choice(["low", "mid", "top"], N),
        }
    )
    # every level beside both values of `ill`, so that no effect is without rows
    frame.loc[:5, "g"] = ["low", "mid", "top"] * 2
    frame.loc[:5, "ill"] = [True, True, True, False, False, False]
    score = 0.05 * frame["age"] + frame["size"] + frame["ill"] + (frame["g"] == "top")
    order = np.argsort(score + rng.logistic(size=N))
    y = np.empty(N, int)
    y[order] = np.arange(N) * 3 // N
    return frame, y


def fit(known, frame, y, **options):
    """Fit a method to a table, behind a standardising preprocessor."""
    return known.fit(
        frame, y, n_threads=1, **WHOLE, **QUICK.get(known.name, {}), **options
    )


def loaded(model):
    """Return a model as another process reads it."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return ordinal.load(file)


def predicted(model, frame):
    """Return the labels that a model predicts, of any type, as an array."""
    return np.asarray(model.predict(frame))


# Units


@given(every_method, st.sampled_from(["age", "size"]), seeds)
@share(4)
def test_predictions_do_not_depend_on_units(known, column, seed):
    """Behind a standardising preprocessor, for every method.

    Networks round otherwise in each step, so that a row between two ranks may change.
    """
    frame, y = table(seed)
    # trees compare numbers, which a power of two leaves in the same order and bins
    scale, shift = (1024, 0) if known.name == "boosting" else (1000, 5)
    other = frame.assign(**{column: scale * frame[column] + shift})
    one, two = (predicted(fit(known, X, y), X) for X in (frame, other))
    assert np.mean(one == two) >= 0.95


LINEAR = {
    "pom": ordinal.fit_pom, "ratio": ordinal.fit_ratio, "clmm": ordinal.fit_clmm,
}  # fmt: skip
BEHIND = {"nothing": {}, "Standardizer": {"preprocess": Standardizer}, "Table": WHOLE}


@given(st.sampled_from([*LINEAR]), st.sampled_from([*BEHIND]), seeds)
@share(2)
def test_linear_estimates_are_in_the_units_of_the_table(name, behind, seed):
    """Coefficients, effects and odds ratios of unpenalised models."""
    frame, y = table(seed)
    groups = {"groups": {"who": np.arange(N) % 10}} if name == "clmm" else {}
    frame = frame[["age", "size"]] if behind == "Standardizer" else frame
    other = frame.assign(age=1000 * frame["age"] + 5)
    one, two = (LINEAR[name](X, y, **groups, **BEHIND[behind]) for X in (frame, other))
    assert one.coef_names == two.coef_names
    unit = np.where(np.array(one.coef_names) == "age", 1000.0, 1.0)
    assert_allclose(two.coef * unit, one.coef, rtol=1e-4, atol=1e-5)
    assert_allclose(two.loglik, one.loglik, rtol=1e-6)
    first, second = one.marginal_effects(frame), two.marginal_effects(other)
    unit = np.where(first["name"] == "age", 1000.0, 1.0)
    assert_allclose(second["effect"] * unit, first["effect"], atol=1e-5)
    if name == "pom":
        first, second = (m.odds_ratios() for m in (one, two))
        unit = np.where(first["name"] == "age", 1000.0, 1.0)
        ratio = second["odds_ratio"] ** unit
        assert_allclose(ratio, first["odds_ratio"], rtol=1e-4)


# Effects

DOORS = {
    "fit": lambda X, y: ordinal.fit_pom(X, y),
    "formula": lambda X, y: ordinal.fit_pom("y ~ age + size + ill + g", X.assign(y=y)),
    "ratio": lambda X, y: ordinal.fit_ratio(X, y),
    "preprocess": lambda X, y: ordinal.fit_pom(X, y, **WHOLE),
    "ratio behind": lambda X, y: ordinal.fit_ratio(X, y, **WHOLE),
    "Selection": lambda X, y: ordinal.select("pom", X, y, search={"l2": [0.0]}, cv=2),
    "Comparison": lambda X, y: ordinal.compare(X, y, methods=["pom"], cv=2).best,
    "file": lambda X, y: loaded(ordinal.fit_pom(X, y, **WHOLE)),
    "estimator": lambda X, y: ordinal.sklearn.POM(**WHOLE).fit(X, y).model_,
}


@given(st.sampled_from([*DOORS]), seeds)
@share(4)
def test_effects_are_differences_of_probabilities_of_raw_rows(door, seed):
    """Effects, average probabilities and log odds ratios, by differences."""
    frame, y = table(seed)
    model = DOORS[door](frame, y)
    model = getattr(model, "model", model) if door == "Selection" else model
    age, size = frame["age"], frame["size"]
    moved = {
        "age": (frame.assign(age=age + 1e-4), frame.assign(age=age - 1e-4), 2e-4),
        "size": (frame.assign(size=size + 1e-5), frame.assign(size=size - 1e-5), 2e-5),
        "ill": (frame.assign(ill=True), frame.assign(ill=False), 1.0),
        "g[mid]": (frame.assign(g="mid"), frame.assign(g="low"), 1.0),
        "g[top]": (frame.assign(g="top"), frame.assign(g="low"), 1.0),
    }
    found = model.marginal_effects(frame)
    assert {*found["name"].tolist()} == {*moved}
    for name, (high, low, step) in moved.items():
        P, Q = (model.predict_proba(X).mean(axis=0) for X in (high, low))
        with case(name):
            own = found["effect"][found["name"] == name]
            assert_allclose(own, (P - Q) / step, atol=1e-6)
    means = model.average_proba(frame)["probability"]
    assert_allclose(means, model.predict_proba(frame).mean(axis=0), atol=1e-9)
    if "ratio" not in door:
        cumulative = (
            model.cumulative_proba(X)[:, :2] for X in (frame, frame.assign(age=age + 1))
        )
        logit, later = (np.log(P / (1 - P)) for P in cumulative)
        slope = model.coef[list(model.coef_names).index("age")]
        assert_allclose(logit - later, slope, rtol=1e-6)
        odds = model.odds_ratios()
        ratio = odds["odds_ratio"][odds["name"] == "age"]
        assert_allclose(np.abs(np.log(ratio)), abs(slope), rtol=1e-6)


# Names


def renamed(frame, chosen):
    """Return the table with other names of columns and of levels, in their order."""
    levels = dict(zip(["low", "mid", "top"], sorted(chosen[:3]), strict=True))
    columns = dict(zip(frame.columns, chosen[3:7], strict=True))
    return frame.assign(g=frame["g"].map(levels)).rename(columns=columns)


@given(every_method, st.permutations(NAMES), seeds)
@share(4)
def test_predictions_change_by_the_names_of_labels_alone(known, chosen, seed):
    """Columns, levels and labels have other names; so they have in a file."""
    frame, y = table(seed)
    other, labels = renamed(frame, chosen), np.array(chosen[7:10])
    one = fit(known, frame, y)
    two = fit(known, other, labels[y], classes=labels.tolist())
    assert two.feature_names == tuple(other.columns)
    for model in (two, loaded(two)):
        assert_array_equal(labels[predicted(one, frame)], predicted(model, other))


@given(st.sampled_from(["nothing", "Table"]), st.permutations(NAMES), seeds)
@share(2)
def test_linear_tables_change_by_names_alone(behind, chosen, seed):
    """Every number of the tables of tests and estimates stays."""
    frame, y = table(seed)
    other = renamed(frame, chosen)
    one, two = (ordinal.fit_pom(X, y, **BEHIND[behind]) for X in (frame, other))
    for name in ("table", "confint", "odds_ratios", "drop1", "marginal_effects"):
        first, second = (getattr(m, name)() for m in (one, two))
        for column in first:
            values = np.asarray(first[column])
            if values.dtype.kind == "f":
                with case(f"{column} of {name}"):
                    assert_allclose(second[column], values, rtol=1e-6, atol=1e-9)
    first, second = one.contrasts("g"), two.contrasts(other.columns[3])
    assert_allclose(second["z"], first["z"], rtol=1e-6)


# Types

KINDS = {
    "float": lambda X: X.assign(age=X["age"].astype(float)),
    "nullable": lambda X: X.astype({"age": "Int64", "ill": "boolean"}),
    "Decimal": lambda X: X.assign(age=[Decimal(int(v)) for v in X["age"]]),
    "categorical": lambda X: X.astype({"g": "category"}),
    "object": lambda X: X.astype({"g": object}),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "whole numbers": lambda X: X.astype({"ill": int}),
}


@given(every_method, st.sampled_from([*KINDS]), seeds, st.booleans())
@share(4)
def test_types_of_columns_do_not_matter(known, kind, seed, at_prediction):
    """In training and prediction, or in prediction alone; nothing warns of them."""
    frame, y = table(seed)
    other = KINDS[kind](frame)
    expected = predicted(fit(known, frame, y), frame)
    model = fit(known, frame if at_prediction else other, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(predicted(model, other), expected)


@given(every_method, seeds)
@share(2)
def test_levels_that_are_numbers_match_their_text(known, seed):
    """2, 2.0 and "2" are one level; "02" is another one, which is named."""
    frame, y = table(seed)
    numbers = frame["g"].map({"low": 1, "mid": 2, "top": 3})
    frame = frame.assign(g=pd.Categorical(numbers))
    model = fit(known, frame, y)
    expected = predicted(model, frame)
    for alike in (pd.Categorical(numbers.astype(float)), numbers.astype(str)):
        assert_array_equal(predicted(model, frame.assign(g=alike)), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ordinal.exceptions.UnknownLevelsWarning)
        with pytest.raises(
            (ordinal.exceptions.UnknownLevelsWarning, ValueError), match="'g'"
        ):
            model.predict(frame.assign(g="0" + numbers.astype(str)))


@given(every_method, seeds)
@share(2)
def test_types_of_labels_do_not_matter(known, seed):
    """Words, half-star ratings, floats, intervals and one column of a frame."""
    frame, y = table(seed)
    ranks = predicted(fit(known, frame, y), frame)
    words, halves = np.array(["bad", "fair", "good"]), np.array([0.5, 1.0, 1.5])
    cut = pd.cut(y, [-1, 0, 1, 2])
    for labels, expected, options in (
        (words[y], words[ranks], {"classes": words.tolist()}),
        (pd.Categorical.from_codes(y, words, ordered=True), words[ranks], {}),
        (halves[y], halves[ranks], {}),
        (y.astype(float), ranks, {}),
        (cut, np.array([str(v) for v in cut.categories])[ranks], {}),
    ):
        found = predicted(fit(known, frame, labels, **options), frame)
        if expected.dtype.kind == "U":
            found = [str(label) for label in found]
        assert_array_equal(found, expected)


# Ranks that a fold lacks


@given(seeds, st.sampled_from(["log_loss", "rps", "mae", "kappa", "accuracy"]))
@share(1)
def test_an_undefined_score_names_no_winner(seed, scoring):
    """Of a rank that one row holds, so that all training folds but some lack it."""
    frame, y = table(seed)
    y[0] = 3
    found = ordinal.compare(frame, y, methods=["pom", "lat"], scoring=scoring, cv=3)
    means = next(iter(found.scores.values())).mean(axis=1)
    if not np.isfinite(means).any():
        assert "is best by" not in found.verdict
    else:
        assert np.isfinite(means[0])
    with warnings.catch_warnings():  # of scikit-learn, about a rank of one row
        warnings.simplefilter("ignore", UserWarning)
        numbers = frame[["age", "size"]]
        assert np.isfinite(
            cross_val_score(ordinal.sklearn.POM(), numbers, y, cv=3)
        ).all()


# Doors


@given(known=every_method, form=st.sampled_from(["csv", "parquet"]), seed=seeds)
@share(2)
def test_the_command_predicts_what_the_function_does(
    known, form, seed, tmp_path_factory
):
    """From a file of a filtered frame."""
    folder = tmp_path_factory.mktemp("crossing")
    frame, y = table(seed)
    whole = frame.assign(rank=y)[np.arange(N) % 3 > 0]
    data, model, out = folder / f"table.{form}", folder / "m.npz", folder / "out.csv"
    getattr(whole, f"to_{form}")(data)
    name, variant = next(iter(known.variants.items()))
    given = QUICK.get(known.name, {})
    asked = ["fit", data, "--out", model, "--target", "rank", "--method", name]
    if given:
        asked += ["--set", *(f"{k}={v}" for k, v in given.items())]
    assert main([str(part) for part in [*asked, "--folds", "0"]]) == 0
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 0
    features = whole.drop(columns="rank")
    found = pd.read_csv(out).iloc[:, 0]
    assert_array_equal(found, predicted(ordinal.load(model), features))
    how = {} if "categories" in known.accepts else WHOLE
    function = known.fit(features, whole["rank"], **variant, **given, **how)
    assert_array_equal(found, predicted(function, features))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_command_leaves_out_the_index_that_pandas_writes(form, tmp_path):
    """The index of a filtered frame is no feature and no target."""
    frame, y = table(0)
    data, model = tmp_path / f"table.{form}", tmp_path / "m.npz"
    whole = frame.assign(rank=y)[np.arange(N) % 3 > 0]
    getattr(whole, f"to_{form}")(data)
    asked = ["fit", str(data), "--out", str(model), "--method", "pom", "--folds", "0"]
    assert main([*asked, "--target", "rank"]) == 0
    assert ordinal.load(model).feature_names == tuple(frame.columns)


# Fits that ended early

OWN_FIT = {"jeffreys"}  # estimates of a search of its own
UNCERTAIN = {"standard_error", "z", "chi2", "p_value", "lower", "upper"}


def statistics(model):
    """Return the public methods of a model that need no argument, by name."""
    found = []
    for name in sorted(dir(type(model))):
        method = getattr(type(model), name)
        if name[0] == "_" or name in OWN_FIT or not inspect.isfunction(method):
            continue
        parameters = [*inspect.signature(method).parameters.values()][1:]
        if all(p.default is not p.empty for p in parameters if p.kind < p.VAR_KEYWORD):
            found.append(name)
    return found


@given(st.sampled_from([*LINEAR]), st.sampled_from(["nothing", "Table"]), seeds)
@share(2)
def test_no_inference_of_a_fit_that_ended_early_without_a_warning(name, behind, seed):
    """Each call that returns finite errors, tests or limits warns, or raises."""
    frame, y = table(seed)
    groups = {"who": np.arange(N) % 10}
    groups = {"groups": groups, "n_quadrature": 1} if name == "clmm" else {}
    model = LINEAR[name](frame, y, max_iter=2, **groups, **BEHIND[behind])
    assert model.convergence.status.value == "max_iter"
    asked = []
    for method in statistics(model):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = getattr(model, method)()
            except ValueError:
                continue
        tested = {*found} & UNCERTAIN if isinstance(found, Mapping) else {}
        if any(np.isfinite(found[column]).any() for column in tested):
            with case(method):
                assert any(
                    w.category is ordinal.exceptions.ConvergenceWarning for w in caught
                )
            asked.append(method)
    assert "table" in asked or name == "clmm"
