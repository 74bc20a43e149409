"""Relations that hold whatever the method, the feature and the door.

Most faults stand where two features meet: effects behind a preprocessor, scores of a
fold that lacks a rank, files that pandas wrote. A test of one feature cannot see them.
Each relation is about a table and what is computed from it; hypothesis draws the method
from the registry, the door by which the table reaches it, and the change.

Rows in another order are the subject of test_row_order.py, arrays instead of named
columns that of test_unnamed_columns.py, and ranks that a fold lacks that of
test_scoring.py. The fuzzer draws the relations of `RELATIONS` without an end
(tools/fuzz/families/crossings.py).
"""

import csv
import html
import io
import re
import sys
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from inspect import isfunction, signature
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from files import loaded
from hypothesis import example, given, settings
from hypothesis import strategies as st
from internals import methods
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from sources import Cut
from strategies import case, raises

import ordinal
import ordinal.sklearn
from ordinal import inference, model_selection
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

METHODS = {known.name: known for known in methods()}
RELATIONS = {}  # by name: a test, and the values of each of its arguments but the seed


def relation(eighths, **choices):
    """Draw the arguments of a test, each from a list of its values, and a seed.

    The test has so many eighths of the examples of the profile.
    """
    drawn = {name: st.sampled_from([*values]) for name, values in choices.items()}
    size = max(1, settings.default.max_examples * eighths // 8)

    def registered(test):
        RELATIONS[test.__name__.removeprefix("test_")] = test, choices
        return settings(max_examples=size)(
            given(**drawn, seed=st.integers(0, 10**6))(test)
        )

    return registered


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


def fit(method, frame, y, **options):
    """Fit a method to a table, by default behind a standardising preprocessor."""
    given = {"n_threads": 1, **WHOLE, **QUICK.get(method, {}), **options}
    return METHODS[method].fit(frame, y, **given)


def predicted(model, frame):
    """Return the labels that a model predicts, of any type, as an array."""
    return np.asarray(model.predict(frame))


FORMS = {
    "array": lambda X: X.drop(columns="g").to_numpy(float),
    "list": lambda X: X.drop(columns="g").to_numpy(float).tolist(),
    "sparse": lambda X: scipy.sparse.csr_matrix(X.drop(columns="g").to_numpy(float)),
    "pandas": lambda X: X,
    "other columns": lambda X: X[X.columns[::-1]],
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("form", FORMS)
def test_training_rows_are_recognised_in_every_form(form):
    """By the share of the remembered rows that is among those of a report."""
    frame, y = table(0)
    words, X = np.array(["a", "b", "c"])[y], FORMS[form](frame)
    plain = form in ("array", "list", "sparse")
    fits = {
        "fit": ordinal.fit_pom(X, y),
        "words": ordinal.fit_pom(X, words, classes=["a", "b", "c"]),
    }
    if not plain:
        fits["formula"] = ordinal.fit_pom("y ~ age + size + ill + g", frame.assign(y=y))
        some = np.where(np.arange(N) % 7, y, np.nan)
        fits["missing"] = ordinal.fit_pom(X, some, missing="drop")
        fits["preprocess"] = ordinal.fit_svorim(X, y, **WHOLE)
        fits["search"] = ordinal.select("svorim", X, y, search={"C": [1.0]}, cv=2).model
        both = {"methods": ["pom", "svorim"], "tune": False, "cv": 2}
        fits["stacking"] = ordinal.fit_stacking(X, y, **both)
        fits["compare"] = ordinal.compare(X, y, methods=["svorim"], cv=2).best
    for name, model in fits.items():
        labels = words if name == "words" else y
        for other, make in FORMS.items():
            alike = plain == (other in ("array", "list", "sparse"))
            if alike and (name == "fit" or other == form):
                assert remembered(model, make(frame), labels) == 1.0
        half = FORMS["array" if plain else "pandas"](frame[::2])
        assert 0.4 < remembered(loaded(model), half, labels[::2]) < 0.6
        new, own = table(1)
        assert remembered(model, FORMS["array" if plain else "pandas"](new),
                          labels[own.argsort()]) == 0  # fmt: skip


def remembered(model, X, y):
    """Return the share of training rows in a report, or None where it is not known."""
    with (
        patch.dict(sys.modules, {"matplotlib": None}),
        warnings.catch_warnings(action="ignore"),
    ):
        page = model.report(X, y)
    if "It is not known whether" in page:
        return None
    n, hits = re.search(r"digests of (\d+) .*?: (none|all|\d+) of these", page).groups()
    hits = int({"none": 0, "all": n}.get(hits, hits))
    assert ("Warning." in page) == (hits > 0)
    return hits / int(n)


SMALL_DOORS = {
    **{
        name: partial(fit, name) for name in METHODS if name not in ("stacking", "clmm")
    },
    "clmm": lambda X, y: ordinal.fit_clmm(X, y, groups={"who": np.arange(N) % 10}),
    "stacking": lambda X, y: ordinal.fit_stacking(
        X, y, ["pom", "svorim"], tune=False, cv=2
    ),
    "formula": lambda X, y: ordinal.fit_pom("y ~ age + ill + g", X.assign(y=y)),
    "Selection": lambda X, y: ordinal.select("pom", X, y, search={"l2": [1.0]}, cv=2),
    "Comparison": lambda X, y: ordinal.compare(X, y, methods=["svorim"], cv=2).best,
    "conformal": lambda X, y: ordinal.prediction_sets.conformal(
        ordinal.fit_pom(X, y), X, y
    ),
    "file": lambda X, y: loaded(ordinal.fit_pom(X, y)),
}


@relation(2, door=SMALL_DOORS)
def test_records_frames_and_scores_at_every_door(door, seed):
    """A record is a row, and the score that of the metric of the predictions."""
    frame, y = table(seed)
    frame.index = [f"row {k}" for k in range(N)]
    model = SMALL_DOORS[door](frame, y)
    records = frame.to_dict("records")
    expected = predicted(model, frame)
    assert_array_equal(predicted(model, records), expected)
    assert_array_equal(predicted(model, records[3]), expected[3:4])
    known = {"labels": model.classes}
    mae = ordinal.metrics.mae(y, expected, **known)
    assert model.score(frame, y) == model.score(records, y) == mae
    hits = model.score(frame, y, scoring="accuracy", sample_weight=frame["age"])
    assert_allclose(hits, np.average(expected == y, weights=frame["age"]))
    with pytest.raises(ValueError, match="X has no column 'age'"):
        model.predict({"size": 1.0, "ill": True, "g": "low"})
    try:
        P = model.predict_proba(frame)
    except (ValueError, TypeError):
        with pytest.raises((ValueError, TypeError)):
            model.predict_proba(frame, as_frame=True)
        return
    named = model.predict_proba(frame, as_frame=True)
    assert_array_equal(named, P)
    assert (list(named.columns), list(named.index)) == ([0, 1, 2], list(frame.index))
    assert_allclose(model.predict_proba(records[0], as_frame=True), P[:1], atol=1e-12)
    assert_allclose(model.score(frame, y, scoring="rps"),
                    ordinal.metrics.rps(y, P, **known))  # fmt: skip


FORMULAS = {
    "pom": "y ~ poly(age, 2) + size * ill + g",
    "stopping": "y ~ g * size + I(age - 40) + ill",
    "adjacent": "y ~ g + I(size - 1) + C(ill)",
    "clmm": "y ~ age + g + I(size - 1) + ill + (1 | who)",
    "columns": None,
}


@relation(2, name=FORMULAS, from_file=[False, True])
def test_inference_depends_on_nothing_that_the_model_does_not_read(
    name, from_file, seed
):
    """Neither on other columns, nor on their order, nor through one row on another."""
    frame, y = table(seed)
    frame, rng = frame.assign(y=y, who=np.arange(N) % 6), np.random.default_rng(seed)
    other = frame.assign(flag=1.0, z=np.where(y, 0.5, np.nan), word="none")
    other = other[rng.permutation(other.columns)]
    options, make = {}, ordinal.fit_pom if name == "pom" else ordinal.fit_ratio
    if name == "clmm":
        options, make = {"effects": "average"}, ordinal.fit_clmm
    more = {"family": name} if name in ("stopping", "adjacent") else {}
    if FORMULAS[name] is None:
        model = made = make(frame[["g", "size", "ill"]], y)
    else:
        model, made = (make(FORMULAS[name], data, **more) for data in (frame, other))
    assert_array_equal(model.parameters, made.parameters)
    if name == "pom":
        assert_array_equal(*(inference.influence(m).change for m in (model, made)))
    model = loaded(model) if from_file else model
    mean = {"kind": "mean", "values": [0, 1, 4], **options}

    def effects(rows):
        return inference.marginal_effects(model, rows, **mean)

    calls = [
        effects,
        lambda rows: model.predictions(rows, **mean),
        lambda rows: model.predictions(rows, by="ill", grid=True, **mean),
        lambda rows: inference.contrasts(model, "g", X=rows, **mean),
    ]
    few = rng.choice(N, 3, replace=False)
    values = {"size": [0.0, 1.0, 2.5], "ill": True}
    rows, others = frame.iloc[few].assign(**values), other.iloc[few].assign(**values)
    for call in calls:
        found = call(rows)
        assert_equal(call(others), found)
        again = call(pd.concat([rows] * 2))
        for key in ("estimate", "effect", "standard_error"):
            if key in found:
                assert_allclose(again[key], found[key], rtol=1e-6, atol=1e-9)
    single = [effects(rows.iloc[[i]])["effect"] for i in range(3)]
    assert_allclose(np.mean(single, axis=0), effects(rows)["effect"], atol=1e-9)


OF_INTERVALS = {name for name in METHODS if "intervals" in METHODS[name].accepts}
OF_INTERVALS |= {"clmm", "Selection", "Comparison", "file", "score", "rps", "explain"}
OF_INTERVALS |= {"residuals", "simulated", "nested", "path"}
VIEWS = {  # of a model of the plain labels
    "score": lambda m, X, y: m.score(X, y),
    "rps": lambda m, X, y: m.score(X, y, scoring="rps"),
    "explain": lambda m, X, y: m.explain(X, y, rng=0).importance,
    "residuals": lambda m, X, y: m.residuals(X, y, kind="quantile", rng=0),
    "simulated": lambda m, X, y: inference.simulated_residuals(m, X, y, rng=0).values,
    "nested": lambda m, X, y: model_selection.nested(
        "svorim", X, y, cv=2, search={"C": [1.0]}
    ).scores["mae"],
    "path": lambda m, X, y: ordinal.fit_pom_path(X, y, n_lambdas=2).models[1].coef,
    "class_weight": lambda m, X, y: ordinal.fit_pom(X, y, class_weight="balanced").coef,
    "hosmer_lemeshow": lambda m, X, y: inference.hosmer_lemeshow(m, X, y).chi2,
    "kappa": lambda m, X, y: m.score(X, y, scoring="kappa"),
    "report": lambda m, X, y: cells_of_report(m, X, y) and None,
    "figure": lambda m, X, y: len(ordinal.plot.scores(m, X, y).patches),
    "cross_conformal": lambda m, X, y: ordinal.cross_conformal(
        "pom", X, y, cv=2
    ).predict(X[:5]),
    "chunks": lambda m, X, y: ordinal.fit_svorim(
        Cut([30], X[["age", "size"]].to_numpy(float), y), None, basis=9
    ),
}


@relation(2, door=[*SMALL_DOORS, *VIEWS])
def test_every_door_takes_intervals_or_names_them(door, seed):
    """Intervals of one rank are labels to the last bit wherever intervals are taken."""
    frame, y = table(seed)
    lower = np.maximum(y - (np.random.default_rng(seed).random(N) < 0.3), 0)
    lower[:3], y[:3] = [0, 0, 1], [1, 0, 1]
    call, takes = SMALL_DOORS.get(door), door in OF_INTERVALS
    if door in VIEWS:
        call = partial(VIEWS[door], ordinal.fit_pom(frame, y, l2=0.1))

    def found(labels):
        with suppress(TypeError, ValueError):
            made = call(frame, labels)
            return predicted(made, frame) if hasattr(made, "predict") else made
        raises((TypeError, ValueError), "RankIntervals", call, frame, labels)
        return None

    assert (found(ordinal.RankIntervals(lower, y)) is not None) == takes
    exact = found(ordinal.RankIntervals(y, y))
    assert exact is not None or not takes
    if exact is not None:
        assert_array_equal(exact, found(y))


def test_every_method_that_predicts_takes_records():
    frame, y = table(0)
    records = frame.to_dict("records")
    pom = ordinal.fit_pom(frame, y)
    for model, names in (
        (ordinal.conformal(pom, frame, y),
         ["p_values", "predict_interval", "predict_set"]),
        (pom, ["predictions", "marginal_effects"]),
        (ordinal.fit_boosting(frame, y, n_rounds=3), ["contributions"]),
        (ordinal.fit_xofm(frame, y), ["contributions", "predict_interval"]),
        (ordinal.fit_gpor(frame[["age", "size"]], y), ["predict_latent"]),
        (ordinal.companions.fit_elmor(frame[["age", "size"]], y), ["hidden"]),
    ):  # fmt: skip
        for name in names:
            assert_equal(getattr(model, name)(records), getattr(model, name)(frame))
    sets = ordinal.conformal(pom, frame, y)
    assert_equal({**sets.evaluate(records, y)}, {**sets.evaluate(frame, y)})


def test_records_that_differ_in_names_are_refused():
    frame, y = table(0)
    model = ordinal.fit_boosting(frame, y, n_rounds=3)
    records = [record | {"note": 1} for record in frame[:3].to_dict("records")]
    del records[1]["age"], records[2]["note"]
    with pytest.raises(ValueError, match=r"no value of 'age' in record 1, .* None"):
        model.predict(records)
    records[1]["age"] = None
    at_once = model.predict_proba(records)
    expected = np.concatenate([model.predict_proba(record) for record in records])
    assert_array_equal(at_once, expected)


def test_records_need_names_and_single_values():
    frame, y = table(0)
    known = ordinal.RankIntervals(y, np.minimum(y + (np.arange(N) % 2), 2))
    wide = ordinal.fit_pom(frame, known)
    mae = ordinal.metrics.mae(known, wide.predict(frame))
    assert wide.score(frame, known) == mae < wide.score(frame, y)
    numbers = frame[["age", "size"]]
    model = ordinal.fit_pom(numbers.to_numpy(float), y)
    with pytest.raises(ValueError, match=r"a record of named values, .* \[\[1\.0, 2"):
        model.predict({"age": 30, "size": 1.0})
    with pytest.raises(
        ValueError, match=r"one value per column, .* \[1, 2\] for 'age'"
    ):
        ordinal.fit_pom(numbers, y).predict({"age": [1, 2], "size": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"list of records: pass pandas\.DataFrame"):
        ordinal.fit_pom(numbers.to_dict("records"), y)
    with pytest.raises(ValueError, match="as_frame must be True or False, got 1"):
        model.predict_proba(numbers, as_frame=1)


@relation(4, method=METHODS, column=["age", "size"])
def test_predictions_do_not_depend_on_units(method, column, seed):
    """Networks round otherwise in each step, so that a row between ranks may change."""
    frame, y = table(seed)
    other = frame.assign(**{column: 1000 * frame[column] + 5})
    folded = "probability" in signature(METHODS[method].fit).parameters
    options = {"probability": True} if folded else {}
    tables = [frame, other]
    if folded and method != "elmor":  # whose units are drawn by column
        tables.append(frame[frame.columns[::-1]])
    models = [(fit(method, X, y, **options), X) for X in tables]
    one, *others = (predicted(*known) for known in models)
    assert all(np.mean(one == two) >= 0.95 for two in others)
    if folded:
        one, *others = (model.predict_proba(X) for model, X in models)
        for two in others:
            assert_allclose(one, two, atol=1e-3)


PENALTIES = {"none": {}, "l2": {"l2": 2.0}, "l1": {"l1": 0.01}}
LINEAR = {
    "pom": ordinal.fit_pom, "ratio": ordinal.fit_ratio, "clmm": ordinal.fit_clmm,
}  # fmt: skip
BEHIND = {"nothing": {}, "Standardizer": {"preprocess": Standardizer}, "Table": WHOLE}


@relation(4, name=LINEAR, behind=BEHIND, penalty=PENALTIES)
def test_linear_estimates_are_in_the_units_of_the_table(name, behind, penalty, seed):
    """Of penalised models behind a scaling preprocessor, which their penalty sees."""
    frame, y = table(seed)
    frame = frame[["age", "size"]] if behind == "Standardizer" else frame
    given = {**BEHIND[behind]}
    if name == "clmm":
        given["groups"] = {"who": np.arange(N) % 10}
    elif behind != "nothing":
        given |= PENALTIES[penalty if name == "pom" else penalty.replace("l1", "l2")]
    other = frame.assign(age=1000 * frame["age"] + 5)
    one, two = (LINEAR[name](X, y, **given) for X in (frame, other))
    assert one.coef_names == two.coef_names
    unit = np.where(np.array(one.coef_names) == "age", 1000.0, 1.0)
    assert_allclose(two.coef * unit, one.coef, rtol=1e-4, atol=1e-5)
    assert_allclose(two.loglik, one.loglik, rtol=1e-6)
    if {"l1", "l2"} & {*given}:  # no inference
        return
    first, second = one.marginal_effects(frame), two.marginal_effects(other)
    unit = np.where(first["name"] == "age", 1000.0, 1.0)
    assert_allclose(second["effect"] * unit, first["effect"], atol=1e-5)
    if name == "pom":
        first, second = (inference.odds_ratios(m) for m in (one, two))
        unit = np.where(first["name"] == "age", 1000.0, 1.0)
        assert_allclose(second["odds_ratio"] ** unit, first["odds_ratio"], rtol=1e-4)


DOORS = {
    "fit": lambda X, y: ordinal.fit_pom(X, y),
    "formula": lambda X, y: ordinal.fit_pom("y ~ age + size + ill + g", X.assign(y=y)),
    "ratio": lambda X, y: ordinal.fit_ratio(X, y),
    "preprocess": lambda X, y: ordinal.fit_pom(X, y, **WHOLE),
    "ratio behind": lambda X, y: ordinal.fit_ratio(X, y, **WHOLE),
    "Selection": lambda X, y: ordinal.select("pom", X, y, search={"l2": [0.0]}, cv=2),
    "Comparison": lambda X, y: ordinal.compare(X, y, methods=["pom"], cv=2).best,
    "file": lambda X, y: loaded(ordinal.fit_pom(X, y, **WHOLE)),
    "estimator": lambda X, y: ordinal.sklearn.POM().fit(X, y).model_,
}


@relation(4, door=DOORS)
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
    means = model.predictions(frame)["estimate"]
    assert_allclose(means, model.predict_proba(frame).mean(axis=0), atol=1e-9)
    if "ratio" not in door:
        cumulative = (
            np.cumsum(model.predict_proba(X), axis=1)[:, :2]
            for X in (frame, frame.assign(age=age + 1))
        )
        logit, later = (np.log(P / (1 - P)) for P in cumulative)
        slope = model.coef[list(model.coef_names).index("age")]
        assert_allclose(logit - later, slope, rtol=1e-6)
        odds = inference.odds_ratios(model)
        ratio = odds["odds_ratio"][odds["name"] == "age"]
        assert_allclose(np.abs(np.log(ratio)), abs(slope), rtol=1e-6)


def renamed(frame, seed):
    """Return the table with other names, in their order, of columns and of levels;
    names of three labels and a target; and a function that changes the names in texts.
    """
    chosen = np.random.default_rng(seed).permutation(NAMES).tolist()
    names = dict(zip(["low", "mid", "top"], sorted(chosen[:3]), strict=True))
    other = frame.assign(g=frame["g"].map(names))
    names |= dict(zip(frame.columns, chosen[3:7], strict=True))
    words = re.compile(rf"\b({'|'.join(names)})\b")
    return (
        other.rename(columns=names),
        np.array(chosen[7:10]),
        chosen[10],
        lambda text: words.sub(lambda found: names[found[1]], text),
    )


@relation(4, method=METHODS)
def test_predictions_change_by_the_names_of_labels_alone(method, seed):
    """Columns, levels and labels have other names; so they have in a file."""
    frame, y = table(seed)
    other, labels, *_ = renamed(frame, seed)
    one = fit(method, frame, y)
    two = fit(method, other, labels[y], classes=labels.tolist())
    assert two.feature_names == tuple(other.columns)
    for model in (two, loaded(two)):
        assert_array_equal(labels[predicted(one, frame)], predicted(model, other))


@relation(2, behind=["nothing", "Table"])
def test_linear_tables_change_by_names_alone(behind, seed):
    """Every number of the tables of tests and estimates stays."""
    frame, y = table(seed)
    other, _, _, named = renamed(frame, seed)
    one, two = (ordinal.fit_pom(X, y, **BEHIND[behind]) for X in (frame, other))
    assert two.coef_names == tuple(named(name) for name in one.coef_names)
    for name in ("table", "confint", "odds_ratios", "drop1", "marginal_effects"):
        first, second = (getattr(inference, name)(m) for m in (one, two))
        for column in first:
            values = np.asarray(first[column])
            if values.dtype.kind == "f":
                with case(f"{column} of {name}"):
                    assert_allclose(second[column], values, rtol=1e-6, atol=1e-9)
    first, second = (
        inference.contrasts(one, "g"),
        inference.contrasts(two, other.columns[3]),
    )
    assert_allclose(second["z"], first["z"], rtol=1e-6)


@example(method="xofm", way="terms or shuffles", seed=0)
@relation(4, method=METHODS, way=["terms or shuffles", "errors"])
def test_explanations_name_columns_of_the_table(method, way, seed):
    """By terms of the score or by permutation; pairs are "a:b"."""
    frame, y = table(seed)
    other, _, _, named = renamed(frame, seed)
    labels = {"y": y} if way == "errors" else {}
    one, two = (
        fit(method, X, y).explain(X, n_repeats=1, **labels) for X in (frame, other)
    )
    assert {part for name in one.names for part in name.split(":")} <= {*frame.columns}
    assert len({*one.names}) == len(one.names)
    assert two.names == tuple(named(name) for name in one.names)
    assert_allclose(two.importance, one.importance, rtol=1e-6, atol=1e-9)
    assert_allclose(two.standard_error, one.standard_error, rtol=1e-6, atol=1e-9)


def cells_of_report(model, frame, y):
    """Return the cells of the parts of a report that show features."""
    with patch.dict(sys.modules, {"matplotlib": None}):  # figures are slow
        page = model.report(frame, y)
    found = re.findall(r"<section><h2>(.*?)</h2>(.*?)</section>", page, re.S)
    return {
        name: [
            html.unescape(re.sub(r"<.*?>", "", cell))
            for cell in re.findall(r"<t[dh].*?>(.*?)</t[dh]>", part, re.S)
        ]
        for name, part in found
        if name != "Model"
    }


@relation(2, method=METHODS)
def test_reports_name_columns_of_the_table(method, seed):
    """Another unit changes the summary of a column; names change names alone."""
    frame, y = table(seed)
    other, _, _, named = renamed(frame, seed)
    other[other.columns[0]] *= 1024
    one, two = (cells_of_report(fit(method, X, y), X, y) for X in (frame, other))
    for name, part in one.items():
        expected = [named(cell) for cell in part]
        if name == "Data":
            at = part.index("age")
            low, middle, high = frame["age"].quantile([0.0, 0.5, 1.0])
            assert part[at + 2 : at + 5] == [f"{v:.4g}" for v in (low, middle, high)]
            expected[at + 2 : at + 5] = [f"{1024 * v:.4g}" for v in (low, middle, high)]
        if name == "Coefficients":
            expected, two[name] = expected[:1], two[name][:1]
        with case(name):
            assert two[name] == expected
    features = {cell.partition(":")[0] for cell in one["Importance of the features"]}
    assert {*frame.columns} & features


FIGURES = {
    "coefficients": "pom", "contributions": "xofm", "interaction": "xofm",
    "relevance": "gpor", "residuals": "pom", "score_functions": "xofm",
}  # fmt: skip


def figure(name, model, X):
    """Return the axes of a figure about columns; None if it has no such model."""
    age, size = X.columns[:2]
    given = {"X": X, "feature": age, "along": age, "a": age, "b": size, "x": X[:1]}
    draw = getattr(ordinal.plot, name)
    asked = signature(draw).parameters
    try:
        drawn = draw(model, **{k: v for k, v in given.items() if k in asked})
    except TypeError:  # neither probabilities nor a score
        return None
    finally:
        plt.close("all")
    return [*np.ravel(drawn)]


def texts_and_limits(ax):
    """Return the texts of axes, without numbers, and their limits."""
    ticks = [t.get_text() for t in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    names = [text for text in ticks if not re.fullmatch(r"[\d.+\-\u2212]*", text)]
    texts = [ax.get_xlabel(), ax.get_ylabel(), ax.get_title("left"), *names]
    return texts, [*ax.get_xlim(), *ax.get_ylim()]


@example(name="contributions", method="xofm", seed=552678)  # a column "x:y"
@relation(2, name=["partial_dependence", *FIGURES], method=METHODS)
def test_figures_show_names_and_values_of_the_table(name, method, seed):
    """Texts change by names alone, and limits by the unit of the column."""
    frame, y = table(seed)
    other, _, _, named = renamed(frame, seed)
    other[other.columns[0]] *= 1024
    method = FIGURES.get(name, method)
    given = {"kernel": "ard"} if name == "relevance" else {}
    one, two = (figure(name, fit(method, X, y, **given), X) for X in (frame, other))
    assert (one is None) is (two is None)
    for first, second in zip(one or (), two or (), strict=True):
        texts, limits = texts_and_limits(first)
        unit = [1024.0 if text == "age" else 1.0 for text in texts[:2]]
        found, moved = texts_and_limits(second)
        expected = [named(text).replace("$", r"\$") for text in texts]
        # a name that is a number is left out among the ticks
        for shown in (expected, found):
            shown[3:] = [text for text in shown[3:] if text != "1"]
        assert found == expected
        assert_allclose(moved, np.repeat(unit, 2) * limits, rtol=1e-6, atol=1e-9)


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


@relation(4, method=METHODS, kind=KINDS, at_prediction=[False, True])
def test_types_of_columns_do_not_matter(method, kind, at_prediction, seed):
    """In training and prediction, or in prediction alone; nothing warns of them."""
    frame, y = table(seed)
    other = KINDS[kind](frame)
    expected = predicted(fit(method, frame, y), frame)
    model = fit(method, frame if at_prediction else other, y)
    with warnings.catch_warnings(action="error"):
        assert_array_equal(predicted(model, other), expected)


@relation(2, method=METHODS)
def test_levels_that_are_numbers_match_their_text(method, seed):
    """2, 2.0 and "2" are one level; "02" is another one, which is named."""
    frame, y = table(seed)
    numbers = frame["g"].map({"low": 1, "mid": 2, "top": 3})
    frame = frame.assign(g=pd.Categorical(numbers))
    model = fit(method, frame, y)
    expected = predicted(model, frame)
    for alike in (pd.Categorical(numbers.astype(float)), numbers.astype(str)):
        assert_array_equal(predicted(model, frame.assign(g=alike)), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ordinal.exceptions.UnknownLevelsWarning)
        with pytest.raises(
            (ordinal.exceptions.UnknownLevelsWarning, ValueError), match="'g'"
        ):
            model.predict(frame.assign(g="0" + numbers.astype(str)))


@relation(2, method=METHODS)
def test_types_of_labels_do_not_matter(method, seed):
    """Words, half-star ratings, floats, intervals and one column of a frame."""
    frame, y = table(seed)
    ranks = predicted(fit(method, frame, y), frame)
    words, halves = np.array(["bad", "fair", "good"]), np.array([0.5, 1.0, 1.5])
    cut = pd.cut(y, [-1, 0, 1, 2])
    for labels, expected, options in (
        (words[y], words[ranks], {"classes": words.tolist()}),
        (pd.Categorical.from_codes(y, words, ordered=True), words[ranks], {}),
        (halves[y], halves[ranks], {}),
        (y.astype(float), ranks, {}),
        (cut, np.array([str(v) for v in cut.categories])[ranks], {}),
    ):
        found = predicted(fit(method, frame, labels, **options), frame)
        if expected.dtype.kind == "U":
            found = [str(label) for label in found]
        assert_array_equal(found, expected)


LACKING = {  # a numeric column and the categorical one of training rows
    "no training rows": lambda column, rows: column,
    "some training rows": lambda column, rows: column.where(rows),
}


@pytest.mark.filterwarnings("ignore:column 'g' of X holds 'neither'")
@relation(8, method=METHODS, column=["age", "size", "ill", "g"], lacking=LACKING)
def test_missing_values_count_as_what_replaces_them(method, column, lacking, seed):
    """The median or the most frequent level; unknown categories count as missing."""
    frame, y = table(seed)
    frame = frame.astype({"ill": float, "g": object})
    here = np.random.default_rng(seed).random(N) < 0.7
    training = frame.assign(**{column: LACKING[lacking](frame[column], here)})
    model = fit(method, training, y, preprocess=TablePreprocessor(indicator=False))
    own = training[column]
    value = own.mode().min() if column == "g" else own.median()
    expected = predicted(
        model, frame.assign(**{column: frame[column].where(here, value)})
    )
    gaps = [None, "neither"] if column == "g" else [np.nan]
    for gap in gaps:
        found = frame.assign(**{column: frame[column].where(here, gap)})
        assert_array_equal(predicted(model, found), expected)


@relation(4, method=METHODS, behind=["Standardizer", "Table"])
def test_constant_training_columns_have_no_effect(method, behind, seed):
    """Whatever their values in new rows, also after saving."""
    frame, y = table(seed)
    seen = np.arange(N) % 3 > 0
    same = {"same": 0.1, "flag": False}
    other = {"same": -500.0, "flag": True}
    how = Standardizer
    if behind == "Standardizer":
        frame = frame[["age", "size"]]
    else:
        same |= {"visit": "2024-01-31", "part": np.where(seen, 5.0, np.nan)}
        other |= {"visit": "1999-07-04", "part": np.where(seen, 7e9, np.nan)}
        how = TablePreprocessor(dates=["visit"])
    model = fit(method, frame.assign(**same), y, preprocess=how)
    expected = predicted(model, frame.assign(**same))
    for made in (model, loaded(model)):
        assert_array_equal(predicted(made, frame.assign(**other)), expected)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("method", ["nnor", "nnpom", "elmor", "cnnor"])
def test_networks_ignore_constant_training_columns(method, form):
    """Networks standardise themselves; differences of huge values overflow."""
    frame, y = table(0)
    X = np.column_stack([frame["age"], frame["size"], np.full(N, -1e308)])
    other = X * [1, 1, -1.5]
    model = fit(method, form(X), y, preprocess=None)
    with np.errstate(over="ignore"):
        for made in (model, loaded(model)):
            assert_array_equal(made.predict(form(other)), model.predict(form(X)))


def test_constant_columns_leave_penalties_and_figures_as_they_are():
    frame, y = table(0)
    X = frame[["age", "size"]].to_numpy(float)
    more = np.insert(X, 1, 5.0, axis=1)
    for how in (Standardizer, TablePreprocessor()):
        rows = [(X, y), (more, y)]
        rows += [(Cut([25], *part), None) for part in rows if how is Standardizer]
        one, *others = (ordinal.fit_pom(*of, preprocess=how, l2=0.5) for of in rows)
        for other in others:
            coef = other.coef if other.coef.size == 2 else np.delete(other.coef, 1)
            assert_allclose(coef, one.coef, rtol=1e-6)
            assert other.coef.size == 2 or other.coef[1] == 0
    ordinal.plot.score_functions(fit("xofm", more, y, preprocess=Standardizer))
    for ax in plt.gcf().axes:
        assert all(np.isfinite(line.get_xdata()).all() for line in ax.lines)
    plt.close("all")


def linked_models(fit, frame, y, splits, given):
    """Models of the folds, calibrated by what those of the others say of their rows."""
    classes = {"classes": [0, 1, 2]}
    alone = [fit(frame.iloc[a], y[a], **classes, **given) for a, _ in splits]
    if "probability" not in given:
        return alone
    without = given | {"probability": False}
    plain = [fit(frame.iloc[a], y[a], **classes, **without) for a, _ in splits]
    inner = [getattr(model, "model", model) for model in plain]
    if not hasattr(inner[0], "link_input"):
        return alone
    linked = []
    for k, model in enumerate(inner):
        rest = [j for j in range(len(splits)) if j != k]
        values = [
            inner[j].link_input(
                plain[j].preprocessor.transform(frame.iloc[splits[j][1]])
                if plain[j] is not inner[j] else frame.iloc[splits[j][1]],
                like=model,
            )
            for j in rest
        ]  # fmt: skip
        rank = y[np.concatenate([splits[j][1] for j in rest])]
        link = model.link_type.fit(np.concatenate(values), rank, np.ones(rank.size), 3)
        of = replace(model, link=link)
        linked.append(of if plain[k] is model else replace(plain[k], model=of))
    return linked


@relation(
    2, method=METHODS, metric=["mae", "accuracy", "kappa"],
    rule=[None, "own", "mode", "median", "cost"], door=["compare", "select", "nested"],
)  # fmt: skip
def test_scores_judge_what_the_rule_predicts(method, metric, rule, door, seed):
    """Recomputed from the labels that models of the folds predict by this rule."""
    frame, y = table(seed)
    fit = partial(METHODS[method].fit, **{"n_threads": 1, **QUICK.get(method, {})})
    scored = {"scoring": metric, "rule": rule}
    if door == "compare":
        found = ordinal.compare(frame, y, methods={"it": fit}, cv=2, **scored)
        ((scores,),), ((used,),) = found.scores.values(), found.rules.values()
        model = found.best
    else:
        scored |= {"search": {"verbose": [False]}, **WHOLE}
        if door == "nested":
            found = model_selection.nested(fit, frame, y, outer=2, cv=2, **scored)
            scores = found.scores[metric]
        else:
            found = ordinal.select(fit, frame, y, cv=2, **scored)
            (scores,) = found.scores
        used, model = found.rules[metric], found
    own = METHODS[method].own_rule
    expected = {None: "mode" if metric == "accuracy" else "median", "own": own}
    assert used == expected.get(rule, rule) or (rule is None and used == own)
    given = {"probability": True} if "probability" in signature(fit).parameters else {}
    if door != "compare" or not METHODS[method].accepts >= {"missing", "categories"}:
        given |= WHOLE
    if door == "select" and used != own:
        models = linked_models(fit, frame, y, found.splits, given)
    else:
        models = [
            fit(frame.iloc[train], y[train], classes=[0, 1, 2], **given)
            for train, _ in found.splits
        ]
    for score, of_fold, (_, test) in zip(scores, models, found.splits, strict=True):
        labels = of_fold.predict(frame.iloc[test], rule=used)
        judge = getattr(ordinal.metrics, metric)
        assert_allclose(score, judge(y[test], labels, labels=[0, 1, 2]))
    if door != "nested":
        by_rule = np.asarray(model.predict(frame, rule=used))
        assert_array_equal(predicted(model, frame), by_rule)


def by_command(method, form, whole, target, options=()):
    """Return what the command predicts for a file, as text, and its model."""
    with tempfile.TemporaryDirectory() as folder:
        data, model, out = (
            str(Path(folder) / name) for name in (f"table.{form}", "m.npz", "out.csv")
        )
        getattr(whole, f"to_{form}")(data)
        asked = ["fit", data, "--out", model, "--target", target, *options]
        asked += ["--method", next(iter(METHODS[method].variants)), "--folds", "0"]
        if given := QUICK.get(method):
            asked += ["--set", *(f"{k}={v}" for k, v in given.items())]
        assert main(asked) == 0
        assert main(["predict", model, data, "--out", out]) == 0
        found = pd.read_csv(out, dtype=str, keep_default_na=False).iloc[:, 0]
        return found.to_numpy(str), ordinal.load(model)


@relation(4, method=METHODS, form=["csv", "parquet"], index=["", "row"])
def test_the_command_predicts_what_the_function_does(method, form, index, seed):
    """From a file of a filtered frame; Parquet tells the name of its index."""
    frame, y = table(seed)
    whole = frame.assign(rank=y)[np.arange(N) % 3 > 0]
    if form == "parquet":
        whole = whole.rename_axis(index or None)
    found, model = by_command(method, form, whole, "rank")
    features = whole.drop(columns="rank")
    assert_array_equal(found, predicted(model, features).astype(str))
    known = METHODS[method]
    how = {} if "categories" in known.accepts else WHOLE
    given = {**next(iter(known.variants.values())), **QUICK.get(method, {}), **how}
    function = known.fit(features, whole["rank"], **given)
    assert_array_equal(found, predicted(function, features).astype(str))


def line(words):
    """Return words as a line of CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(words)
    return file.getvalue()


@example(method="lat", form="csv", seed=965733)  # labels 1, NA and null
@example(method="lat", form="csv", seed=235576)  # a column "a=b"
@relation(4, method=METHODS, form=["csv", "parquet", "parquet without --order"])
def test_the_command_takes_any_names(method, form, seed):
    """In Parquet, levels need not be named for "None" to be one."""
    frame, y = table(seed)
    other, labels, target, _ = renamed(frame, seed)
    form, ordered = form.partition(" ")[0], " " not in form
    order = ["--order", "g=low,mid,top"] * ordered
    one, _ = by_command(method, form, frame.assign(rank=y), "rank", order)
    if form == "csv":  # a number in the first line may be data
        other = other.rename(columns={"1": "one"})
        target = target.replace("1", "one")
    levels = line(sorted({*other.iloc[:, 3]}))
    order = ["--order", f'"{other.columns[3]}"={levels}'] * ordered
    asked = [*order, "--classes", line(labels)]
    whole = other.assign(**{target: labels[y]})
    two, model = by_command(method, form, whole, target, asked)
    assert model.feature_names == tuple(other.columns)
    assert_array_equal(two, labels[one.astype(int)])


OWN_FIT = {"jeffreys"}  # estimates of a search of its own
UNCERTAIN = {"standard_error", "z", "chi2", "p_value", "lower", "upper"}


def statistics():
    """Return the functions of inference that need a model alone, by name."""
    for name in inference.__all__:
        function = getattr(inference, name)
        if name in OWN_FIT or not isfunction(function):
            continue
        first, *others = signature(function).parameters.values()
        if first.name == "model" and all(p.default is not p.empty for p in others):
            yield name, function


@relation(2, name=LINEAR, behind=["nothing", "Table"])
def test_no_inference_of_a_fit_that_ended_early_without_a_warning(name, behind, seed):
    """Each call that returns finite errors, tests or limits warns, or raises."""
    frame, y = table(seed)
    groups = {"who": np.arange(N) % 10}
    groups = {"groups": groups, "n_quadrature": 1} if name == "clmm" else {}
    model = LINEAR[name](frame, y, max_iter=2, **groups, **BEHIND[behind])
    assert model.convergence.status.value == "max_iter"
    asked = []
    for method, function in statistics():
        with warnings.catch_warnings(record=True, action="always") as caught:
            try:
                found = function(model)
            except (TypeError, ValueError):
                continue
        tested = {*found} & UNCERTAIN if isinstance(found, Mapping) else {}
        if any(np.isfinite(found[column]).any() for column in tested):
            with case(method):
                assert any(
                    w.category is ordinal.exceptions.ConvergenceWarning for w in caught
                )
            asked.append(method)
    assert "table" in asked or name == "clmm"
