"""Metrics that decide: their directions, scores that are not finite, and ranks that a
fold lacks, in searches, comparisons and estimators."""

from functools import partial
from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import metrics as other
from sklearn.model_selection import cross_val_score
from strategies import raises, sample

import ordinal
from ordinal import compare, metrics
from ordinal.__main__ import main
from ordinal.model_selection import Grid, nested
from ordinal.model_selection.scoring import Gain, Loss
from ordinal.prediction_sets import cross_conformal
from ordinal.sklearn import LAT, POM, SVORIM, scorer

X, Y = sample(90, 3, noise=0.5)
GRID = Grid(l2=[1e-3, 1e3])  # the second one shrinks every prediction to one rank
SEARCH = partial(ordinal.select, "pom", X, Y, search=GRID, cv=3, refit=False)
RARE = np.array([0, 1, 2] * 20 + [3, 3])
OF_RARE = np.random.default_rng(0).normal(size=(62, 2)) + RARE[:, None]


def folds_without_a_rank():
    """Three folds, of which the second alone has rank 3 among its test rows only."""
    rows = np.arange(62)
    tests = [rows[:20], np.append(rows[20:40], [60, 61]), rows[40:60]]
    return [(np.setdiff1d(rows, test), test) for test in tests]


@pytest.mark.parametrize("scoring", [
    other.cohen_kappa_score,
    partial(partial(other.f1_score, average="macro"), zero_division=0.0),
    metrics.kappa,
    metrics.c_index,
    scorer("kappa"),
    "kappa",
])  # fmt: skip
def test_a_gain_by_any_name_chooses_the_better_penalty(scoring):
    found = SEARCH(scoring=scoring)
    assert found.greater_is_better
    assert found.params["l2"] == 1e-3
    of = compare(X, Y, methods=["constant-mode", "pom"], scoring=scoring, cv=3)
    assert of.greater_is_better
    assert of.methods == ("pom", "constant-mode")
    assert "pom is best" in of.verdict


@pytest.mark.parametrize(
    "scoring", [other.hamming_loss, metrics.amae, partial(other.mean_squared_error)]
)
def test_a_loss_by_any_name_chooses_the_better_penalty(scoring):
    found = SEARCH(scoring=scoring)
    assert not found.greater_is_better
    assert found.params["l2"] == 1e-3


def hits(true, predicted):
    return float(np.mean(true == predicted))


def one_more(true, predicted, third):
    return 0.0


def test_a_function_of_the_caller_needs_a_direction():
    calls = (
        SEARCH,
        partial(nested, "pom", X, Y, search=GRID, outer=2, cv=2),
        partial(compare, X, Y, methods=["constant-mode", "pom"], cv=2),
        lambda scoring, **given: scorer(scoring, **given),
    )
    for call in calls:
        for unknown in (hits, other.matthews_corrcoef):
            raises(ValueError, "greater_is_better must be given", call, scoring=unknown)
        call(scoring=hits, greater_is_better=True)
        with pytest.raises(ValueError, match="contradicts 'mae'"):
            call(scoring="mae", greater_is_better=True)
        for odd in (other.make_scorer(other.cohen_kappa_score), one_more):
            with pytest.raises(TypeError, match=r"function of \(true labels, predict"):
                call(scoring=odd, greater_is_better=True)
    assert calls[2](scoring=hits, greater_is_better=True).methods[0] == "pom"
    assert SEARCH(scoring=hits, greater_is_better=True).params["l2"] == 1e-3
    assert SEARCH(scoring=hits, greater_is_better=False).params["l2"] == 1e3
    # The direction is that of the functions that have none of their own.
    both = SEARCH(scoring=("mae", hits), greater_is_better=True)
    assert both.params["l2"] == 1e-3
    assert not both.greater_is_better


def test_a_partial_of_a_metric_is_weighted_and_named_by_its_options():
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(Y))
    linear = partial(metrics.kappa, weights="linear")
    found = SEARCH(scoring=("kappa", linear), sample_weight=weight)
    (name,) = found.others
    assert name == "kappa(weights='linear')"
    train, test = found.splits[0]
    model = ordinal.fit_pom(
        X[train], Y[train], l2=1e-3, sample_weight=weight[train],
        preprocess=ordinal.preprocessing.Standardizer,
    )  # fmt: skip
    labels = model.predict(X[test])
    value = linear(Y[test], labels, labels=model.classes, sample_weight=weight[test])
    assert found.others[name][0, 0] == pytest.approx(value, abs=1e-12)
    raises(ValueError, "different metrics", SEARCH, scoring=("kappa", "kappa"))
    raises(ValueError, "got 'qwk'; did you mean 'kappa'", SEARCH, scoring="qwk")


def test_no_winner_without_a_finite_mean():
    folds = folds_without_a_rank()
    result = compare(
        OF_RARE, RARE, methods=["constant-mode", "lat", "pom"], cv=folds,
        scoring=("log_loss", "mae"),
    )  # fmt: skip
    assert np.isinf(result.mean()).all()
    assert result.close == ()
    text = repr(result)
    assert "inf ±" not in text
    assert [line.split()[1] for line in text.splitlines()[1:4]] == ["inf"] * 3
    assert " is best by" not in text
    assert (
        "log_loss is inf in fold 2 of 3 for constant-mode, lat, pom: only test rows"
        in text
    )
    assert "folds 1" not in text
    assert "only test rows there have the label 3." in text
    with pytest.raises(ValueError, match=r"none is best.* fold 2 of 3 .* the label 3"):
        result.best  # noqa: B018
    raises(ValueError, "none is best", result.plot)
    assert result.refit("pom").classes.tolist() == [0, 1, 2, 3]


def test_searches_say_that_they_scored_infinity_and_why():
    folds = folds_without_a_rank()
    say = r"no point has a finite log_loss .*scored inf in fold 2 of 3: .*the label 3"
    with pytest.raises(ValueError, match=say):
        ordinal.select("pom", OF_RARE, RARE, cv=folds, scoring="log_loss")
    found = nested(
        "pom", OF_RARE, RARE, outer=folds, cv=2, scoring=("log_loss", "mae"),
        search=Grid(l2=[0.1]),
    )  # fmt: skip
    assert found.failures[1] == "scored inf"
    assert "inf ±" not in repr(found)
    with pytest.raises(ValueError, match="no point could be fitted: "):
        ordinal.select("lat", X, Y, search=Grid(l2=[-1.0]))


def test_every_metric_is_finite_where_it_is_defined():
    """Losses of ranks without training rows may be infinite, correlations undefined."""
    folds, names = folds_without_a_rank(), get_args(Loss) + get_args(Gain)
    result = compare(
        OF_RARE, RARE, methods=["constant-mode", "pom"], cv=folds,
        scoring=names,
    )  # fmt: skip
    pom, constant = (result.methods.index(m) for m in ("pom", "constant-mode"))
    for name, scores in result.scores.items():
        assert np.isfinite(scores[pom]).tolist() == [True, name != "log_loss", True]
        if name not in ("log_loss", "kendall", "spearman"):
            assert np.isfinite(scores[constant]).all()


@pytest.mark.parametrize("make", [POM, LAT, SVORIM])
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [1.0, 1.5, 2.5, 10.0]])
def test_estimators_score_numbers_that_a_fold_lacks(make, labels):
    y, folds = np.array(labels)[RARE], folds_without_a_rank()
    scores = cross_val_score(make(), OF_RARE, y, cv=folds)
    assert np.isfinite(scores).all()
    train, test = folds[1]
    model = make().fit(OF_RARE[train], y[train])
    assert 3 not in np.searchsorted(labels, model.classes_)
    expected = metrics.mae(y[test], model.predict(OF_RARE[test]), labels=labels)
    assert scores[1] == -expected
    # A whole number is the place that the missing rank has in the table.
    for name in ("mae", "amae", "kappa", "accuracy"):
        of = make(scoring=name).fit(OF_RARE[train], y[train])
        assert np.isfinite(of.score(OF_RARE[test], y[test]))


def test_weights_of_classes_that_a_fold_lacks():
    weights, folds = {0: 1.0, 1: 2.0, 2: 1.0, 3: 5.0}, folds_without_a_rank()
    scores = cross_val_score(POM(class_weight=weights), OF_RARE, RARE, cv=folds)
    assert np.isfinite(scores).all()
    train, test = folds[1]
    seen = {k: w for k, w in weights.items() if k != 3}
    model = ordinal.fit_pom(OF_RARE[train], RARE[train], class_weight=seen)
    expected = -metrics.mae(
        RARE[test], model.predict(OF_RARE[test], rule="mode"), labels=range(4)
    )
    assert scores[1] == expected
    # A function knows all rows, and an estimator all labels that it was told.
    for call in (
        lambda: ordinal.fit_pom(OF_RARE[train], RARE[train], class_weight=weights),
        lambda: POM(class_weight={"3": 1.0}).fit(OF_RARE, RARE),
        lambda: POM(class_weight={7: 1.0}, classes=[0, 1, 2, 3]).fit(OF_RARE, RARE),
    ):
        raises(ValueError, "class_weight names", call)
    assert_array_equal(
        POM(class_weight=weights, classes=range(4)).fit(X, Y).predict(X),
        POM(class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X, Y).predict(X),
    )


def test_the_rule_belongs_to_the_metric():
    names = ["mae", "mze", "kappa", "gm", "rps", "amae"]
    found = SEARCH(scoring=names)
    median, mode = dict.fromkeys(["mae", "kappa", "amae"], "median"), "mode"
    assert found.rules == {**median, "mze": mode, "gm": mode}
    methods = ["svorim", "xofm", "constant-mode"]
    result = compare(X, Y, methods=methods, cv=2, scoring=names[:2])
    used = {name: (str(a), str(b)) for name, a, b in zip(
        result.methods, result.rules["mae"], result.rules["mze"], strict=True
    )}  # fmt: skip
    assert used == {
        "svorim": ("threshold", "threshold"),  # calibration did not pay
        "xofm": ("median", "mode"),
        "constant-mode": ("own", "own"),
    }
    assert {"mae_rule", "mze_rule"} <= result.table().keys()
    assert "median, mode" in repr(result)


def test_models_keep_the_rule_in_files(tmp_path):
    found = ordinal.select("svorim", X, Y, search=Grid(C=[1.0]), cv=2, rule="mode")
    assert found.model.model.rule == "mode"
    assert "by the rule mode" in repr(found)
    found.save(tmp_path / "found.npz")
    read = ordinal.load(tmp_path / "found.npz", ordinal.model_selection.Selection)
    assert read.rules == {"mae": "mode"}
    by_mode = found.model.predict(X, rule="mode")
    assert_array_equal(read.predict(X), by_mode)
    by_threshold = found.predict(X, rule="threshold")
    assert (by_threshold != by_mode).any()
    plain = ordinal.select("svorim", X, Y, search=Grid(C=[1.0]), cv=2)
    assert plain.model.model.rule is None
    assert plain.model.model.link is None  # which would take five more fits
    assert_array_equal(plain.predict(X), by_threshold)


def test_rules_without_probabilities():
    fit = partial(ordinal.fit_xofm, probability=False)
    search = {"search": Grid(l2_main=[1e-2]), "cv": 2}
    assert ordinal.select(fit, X, Y, **search).rules == {"mae": "share"}
    assert compare(X, Y, methods={"it": fit}, cv=2).rules["mae"] == ["share"]
    with pytest.raises(ValueError, match="rule='mode' needs probabilities: leave out"):
        ordinal.select(fit, X, Y, rule="mode", **search)
    raises(ValueError, "rule must be one of 'own', 'mode'", SEARCH, rule="threshold")


def test_the_command_takes_a_rule(tmp_path, capsys):
    table = np.column_stack([X, Y])
    path, model = str(tmp_path / "t.csv"), str(tmp_path / "m.npz")
    np.savetxt(path, table, delimiter=",", header="a,b,c,y", comments="")
    main(["compare", path, "--methods", "svorim", "--folds", "2", "--rule", "mode"])
    assert "mode" in capsys.readouterr().out
    fit = ["fit", path, "--method", "lat", "--out", model, "--folds", "2"]
    assert main([*fit, "--rule", "mode"]) == 2
    assert "--rule is for --tune only" in capsys.readouterr().err
    assert main([*fit, "--rule", "mode", "--tune"]) == 0
    assert ordinal.load(model).rule == "mode"


DOORS = {
    "select": lambda cv, w: ordinal.select("pom", X, Y, cv=cv, sample_weight=w),
    "nested": lambda cv, w: nested("svorim", X, Y, outer=cv, sample_weight=w),
    "compare": lambda cv, w: compare(X, Y, methods=["pom"], cv=cv, sample_weight=w),
    "fit_stacking": lambda cv, w: ordinal.fit_stacking(
        X, Y, ["pom"], cv=cv, sample_weight=w
    ),
    "cross_conformal": lambda cv, w: cross_conformal(
        "pom", X, Y, cv=cv, sample_weight=w
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("side", ["training", "test"])
def test_a_fold_without_weight_is_named_at_every_door(door, side):
    halves = np.array_split(np.arange(len(Y)), 2)
    cv = [tuple(halves), tuple(halves[::-1])]
    w = np.ones(len(Y))
    w[halves[side == "test"]] = 0
    message = f"sample_weight is 0 for all {side} rows of fold 0 of (cv|outer)"
    raises(ValueError, message, DOORS[door], cv, w)
