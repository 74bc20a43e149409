"""Arguments with one entry per row, whose index is the table's in another order."""

import inspect
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from internals import BY_ROW, methods
from sklearn.tree import DecisionTreeClassifier
from strategies import raises

import ordinal
import ordinal.sklearn
from ordinal import metrics
from ordinal.model_selection import nested
from ordinal.preprocessing import PreprocessedModel, TablePreprocessor

RNG = np.random.default_rng(0)
X = pd.DataFrame({"x": RNG.normal(size=40)}, index=RNG.permutation(40))
Y = np.argsort(np.argsort(X["x"].to_numpy() + RNG.normal(size=40))) * 3 // 40
VALUES = {
    "y": Y, "y_pred": Y, "y_score": X["x"].to_numpy(), "proba": np.full((40, 3), 1 / 3),
    "sample_weight": 1.0 + np.arange(40) % 2, "offset": np.linspace(0, 1, 40),
    "groups": np.arange(40) % 8, "cluster": np.arange(40) % 8,
    "group_weight": 1.0 + np.arange(40) % 8 % 2,
}  # fmt: skip
MODEL = ordinal.fit_pom(X, Y, l2=1.0)
ESTIMATOR = ordinal.sklearn.POM(l2=1.0).fit(X, Y)
TREES = ordinal.sklearn.OrdinalDecomposition(DecisionTreeClassifier(max_depth=2))
LAT, GRID = ordinal.companions.fit_lat, {"l2": [0.1]}


def formula(X, y, **by_row):
    return ordinal.fit_pom("y ~ x", X.assign(y=y), l2=1.0, **by_row)


ROWS, GROUPED = ["y", "sample_weight"], ["y", "sample_weight", "groups"]
DOORS = {
    "fit": (partial(ordinal.fit_pom, l2=1.0), [*ROWS, "offset"]),
    "formula": (formula, ["sample_weight", "offset"]),
    "path": (partial(ordinal.fit_pom_path, lambdas=[0.1]), [*ROWS, "offset"]),
    "preprocess": (partial(LAT, preprocess=TablePreprocessor()), ROWS),
    "PreprocessedModel": (partial(PreprocessedModel.fit, LAT), ROWS),
    "compare": (partial(ordinal.compare, methods=["constant-mode"], cv=2), GROUPED),
    "select": (partial(ordinal.select, "lat", search=GRID, cv=2), GROUPED),
    "nested": (partial(nested, "lat", search=GRID, cv=2, outer=2), GROUPED),
    "conformal": (partial(ordinal.conformal, MODEL, coverage=0.5), GROUPED),
    "cross_conformal": (
        partial(ordinal.cross_conformal, "lat", coverage=0.5, cv=2), GROUPED,
    ),
    "estimator": (ESTIMATOR.fit, ROWS),
    "estimator of groups": (
        partial(ordinal.sklearn.CLMM(max_iter=2).fit, groups=VALUES["groups"]), GROUPED,
    ),
    "estimator of folds": (
        ordinal.sklearn.Boosting(n_rounds="auto", max_iter=2).fit, GROUPED,
    ),
    "decomposition": (TREES.fit, ROWS),
    "score": (ESTIMATOR.score, ROWS),
}  # fmt: skip


def called(call, argument, order=None):
    column = pd.Series(VALUES[argument], X.index)
    given = {"y": Y, argument: column if order is None else column.iloc[order]}
    if call is ordinal.fit_clmm:
        given["groups"] = {"who": given.get("groups", VALUES["groups"])}
    return call(X, **given)


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("door", DOORS)
def test_each_argument_of_every_door_warns_once_at_the_caller(door):
    call, arguments = DOORS[door]
    for argument in arguments:
        for order in (None, np.argsort(X.index)):
            with warnings.catch_warnings(record=True, action="always") as caught:
                called(call, argument, order)
            said = [w for w in caught if "in another order" in str(w.message)]
            assert [w.filename for w in said] == [__file__] * (order is not None)
            assert all(str(w.message).startswith(argument) for w in said)


@pytest.mark.parametrize("known", methods(every=True), ids=lambda m: m.name)
def test_each_argument_of_every_method_is_looked_at_before_any_work(known):
    parameters = inspect.signature(known.fit).parameters
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".* in another order")
        for argument in ["y", *(name for name in BY_ROW if name in parameters)]:
            name = f"^{argument}.* has the index of X in another order"
            raises(UserWarning, name, called, known.fit, argument, np.argsort(X.index))


def scores():
    """Return the metrics of rows, each with its arguments that have one per row."""
    found = []
    for name in sorted(metrics.__all__):
        known = inspect.signature(getattr(metrics, name)).parameters
        if {"y_true", "sample_weight"} <= {*known}:
            found.append((name, [argument for argument in VALUES if argument in known]))
    return found


@pytest.mark.parametrize(("name", "arguments"), scores())
def test_each_argument_of_a_metric_is_looked_at(name, arguments):
    truth = pd.Series(Y, X.index)
    for argument in arguments:
        given = {k: VALUES[k] for k in arguments if k in ("y_pred", "y_score", "proba")}
        kind = pd.DataFrame if argument == "proba" else pd.Series
        column = kind(VALUES[argument], X.index)
        if name == "confidence_interval":
            given["metric"] = "kappa"
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".* in another order")
            given[argument] = column.sort_index()
            said = f"^{argument} has the index of y_tru"
            raises(UserWarning, said, getattr(metrics, name), truth, **given)


def test_no_warning_where_an_index_says_nothing():
    with warnings.catch_warnings(action="error"):
        for index in (range(100, 140), X.index):
            ordinal.fit_pom(X, pd.Series(Y, index), l2=1.0)
        ordinal.fit_pom(X, pd.Series(Y, X.index).sort_index().to_numpy(), l2=1.0)
        twice = RNG.permutation(np.repeat(range(20), 2))
        ordinal.fit_pom(X.set_axis(twice), pd.Series(Y, np.sort(twice)), l2=1.0)


def test_rows_are_compared_before_some_are_left_out():
    """Rows without a label are dropped by position, so that what is left differs."""
    y = pd.Series(Y, X.index, dtype=float)
    y.iloc[:3] = np.nan
    with pytest.warns(UserWarning, match="^y has the index of X in another order"):
        ordinal.fit_pom(X, y.sort_index(), l2=1.0, missing_labels="drop")


def test_the_ends_of_intervals_are_looked_at():
    rows, known = np.argsort(X.index), pd.Series(Y, X.index)
    with pytest.warns(UserWarning, match="upper has the index of lower"):
        ordinal.RankIntervals(known, known.iloc[rows])
    y = ordinal.RankIntervals(Y[rows], known.iloc[rows])
    for call in (ordinal.fit_pom, ESTIMATOR.score, ordinal.sklearn.POM(l2=1.0).fit):
        with pytest.warns(UserWarning, match="upper has the index of X in another"):
            call(X, y)
    with warnings.catch_warnings(action="error"):
        ordinal.fit_pom(X.iloc[rows], y)
        ordinal.fit_pom(X, y[:])  # of which nobody knows which rows they are
