"""Rows without a label: `missing_labels="drop"` leaves them out with all that goes with
them, wherever labels are read, and counts them; by default they are an error."""

import io
import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from internals import BY_ROW, methods
from numpy.testing import assert_array_equal
from registry import which
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from strategies import raises, sample

import ordinal
from ordinal import fit_pom, fit_ratio, fit_svorim, metrics
from ordinal.model_selection import Grid, nested
from ordinal.preprocessing import PreprocessedModel, Standardizer, TablePreprocessor
from ordinal.sklearn import CLMM, POM, SVORIM, Boosting, OrdinalDecomposition

X, RANK = sample(60, 3)
GONE = np.array([0, 7, 8, 31, 59])
KEEP = np.setdiff1d(np.arange(60), GONE)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, 60)
GROUP = np.arange(60) % 7
Y = RANK.astype(float)
Y[GONE] = np.nan
FRAME = pd.DataFrame(X, columns=list("abc"), index=range(100, 160))
FREE = {"l2": [0.0]}
NAMES = np.array(["low", "mid", "top"])


def same(a, b, rows=X):
    assert a.n_missing_labels == GONE.size
    assert_array_equal(a.classes, b.classes)
    assert_array_equal(a.predict(rows), b.predict(rows))


@which(fast={"pom", "svorim-basis"})
def test_every_method_drops_rows_without_a_label(method):
    model = method(X, Y, missing_labels="drop")
    same(model, method(X[KEEP], Y[KEEP]))
    assert "left out     5 rows without a label" in repr(model)
    assert "5 rows without a label" in model._repr_html_()
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    for copy in (ordinal.load(file), pickle.loads(pickle.dumps(model))):
        assert copy.n_missing_labels == GONE.size
    complete = method(X, RANK, missing_labels="drop")
    assert complete.n_missing_labels == 0
    assert "left out" not in repr(complete)
    for y in (Y, pd.Series(np.where(np.isnan(Y), None, NAMES[RANK]))):
        with pytest.raises(ValueError, match=r"row 0.* pass missing(_labels)?='drop'"):
            method(X, y, **({} if y is Y else {"classes": NAMES}))


def test_arguments_with_one_entry_per_row_go_along_and_bases_are_accepted():
    every = {name for method in methods(every=True) for name in method.by_row}
    assert {*every, "sample_weight"} == set(BY_ROW)
    a = fit_svorim(X, Y, basis=X[:10], missing_labels="drop")
    same(a, fit_svorim(X[KEEP], Y[KEEP], basis=X[:10]))


LABELS = {
    "numbers": Y,
    "list": [None if k in GONE else int(k2) for k, k2 in enumerate(RANK)],
    "objects": np.array([None if k in GONE else int(k2) for k, k2 in enumerate(RANK)]),
    "nullable": pd.Series(RANK, dtype="Int64").mask(np.isnan(Y)),
    "strings": pd.Series(NAMES[RANK], dtype=object).mask(np.isnan(Y)),
    "categorical": pd.Series(pd.Categorical(NAMES[RANK], NAMES, ordered=True)).mask(
        np.isnan(Y)
    ),
    "intervals": pd.cut(np.where(np.isnan(Y), 99, RANK), [-1, 0, 1, 2]),
    "polars": pl.Series(RANK).set(pl.Series(np.isnan(Y)), None),
    "enum": pl.Series(NAMES[RANK], dtype=pl.Enum(NAMES)).set(
        pl.Series(np.isnan(Y)), None
    ),
    "arrow": pa.array(RANK, mask=np.isnan(Y)),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_type(kind):
    y = LABELS[kind]
    words = {"classes": NAMES} if kind == "strings" else {}
    model = fit_pom(X, y, missing_labels="drop", l2=0.1, **words)
    plain = fit_pom(X[KEEP], RANK[KEEP], l2=0.1)
    assert model.n_missing_labels == GONE.size
    assert_array_equal(model.coef, plain.coef)
    by_kernel = fit_svorim(X, y, missing_labels="drop", **words)
    assert_array_equal(by_kernel.thresholds, fit_svorim(X[KEEP], RANK[KEEP]).thresholds)
    if kind in ("categorical", "intervals"):
        assert model.predict(X).dtype == y.dtype
    raises((ValueError, TypeError), "missing", fit_pom, X, y, l2=0.1, **words)


@pytest.mark.parametrize(
    "table",
    [X.tolist(), FRAME, pl.DataFrame(FRAME), pa.Table.from_pandas(FRAME),
     sparse.csr_matrix(X), sparse.coo_matrix(X)],
    ids=lambda table: type(table).__name__,
)  # fmt: skip
def test_features_of_every_type(table):
    model = fit_svorim(table, Y, missing_labels="drop", sample_weight=WEIGHT)
    plain = fit_svorim(X[KEEP], Y[KEEP], sample_weight=WEIGHT[KEEP])
    assert model.n_missing_labels == GONE.size
    np.testing.assert_allclose(model.thresholds, plain.thresholds, atol=1e-9)


def test_all_that_has_rows_goes_along():
    offset, cluster = 0.1 * WEIGHT, pd.Series(GROUP)
    given = {"sample_weight": WEIGHT, "offset": offset, "cluster": cluster}
    kept = {name: np.asarray(values)[KEEP] for name, values in given.items()}
    a = fit_pom(X, Y, missing_labels="drop", **given)
    b = fit_pom(X[KEEP], Y[KEEP], **kept)
    same(a, b)
    assert_array_equal(a.confint()["lower"], b.confint()["lower"])
    a = ordinal.fit_clmm(X, Y, groups={"g": GROUP}, missing_labels="drop")
    b = ordinal.fit_clmm(X[KEEP], Y[KEEP], groups={"g": GROUP[KEEP]})
    assert_array_equal(a.coef, b.coef)
    assert a.n_missing_labels == GONE.size
    a = fit_pom("y ~ a + b", FRAME.assign(y=Y, w=WEIGHT), sample_weight="w",
                missing_labels="drop")  # fmt: skip
    b = fit_pom("y ~ a + b", FRAME.assign(y=Y, w=WEIGHT).iloc[KEEP], sample_weight="w")
    assert_array_equal(a.coef, b.coef)
    assert a.n_missing_labels == GONE.size
    path = ordinal.fit_pom_path(X, Y, missing_labels="drop", n_lambdas=3)
    plain = ordinal.fit_pom_path(X[KEEP], Y[KEEP], n_lambdas=3)
    assert_array_equal(path.lambdas, plain.lambdas)


def test_rows_without_a_label_do_not_count_in_a_preprocessor():
    far = X.copy()
    far[GONE] = 1e6
    a = fit_svorim(far, Y, missing_labels="drop", preprocess=Standardizer)
    same(a, fit_svorim(X[KEEP], Y[KEEP], preprocess=Standardizer))
    how = TablePreprocessor()
    a = PreprocessedModel.fit(fit_svorim, far, Y, preprocess=how, missing_labels="drop")
    how = TablePreprocessor()
    same(a, PreprocessedModel.fit(fit_svorim, X[KEEP], Y[KEEP], preprocess=how))


def test_sources_of_chunks():
    class Source:
        def __init__(self, y):
            self.y = y

        def blocks(self):
            for start in (0, 20, 40):
                rows = slice(start, start + 20)
                yield X[rows], self.y[rows], WEIGHT[rows]

    given = {"basis": X[:10], "C": 1.0}
    only = Y.copy()
    only[:20] = np.nan  # the first block has no label at all
    a = fit_svorim(Source(only), None, missing_labels="drop", **given)
    has = ~np.isnan(only)
    b = fit_svorim(X[has], only[has], sample_weight=WEIGHT[has], **given)
    assert a.n_missing_labels == np.isnan(only).sum()
    np.testing.assert_allclose(a.thresholds, b.thresholds, atol=1e-2)
    raises(ValueError, "missing_labels='drop'", fit_svorim, Source(Y), None, **given)


def test_searches_drop_rows_and_renumber_splits():
    folds = [(np.setdiff1d(np.arange(60), t), t) for t in np.split(np.arange(60), 3)]
    place = np.full(60, -1)
    place[KEEP] = np.arange(KEEP.size)
    kept = [tuple(place[side][place[side] >= 0] for side in fold) for fold in folds]
    given = {"search": Grid(C=[0.1, 10.0]), "sample_weight": WEIGHT}
    forms = folds, iter(folds), np.array(folds, dtype=object)
    for cv, own in (*((form, kept) for form in forms), (3, 3)):
        a = ordinal.select("svorim", X, Y, cv=cv, missing_labels="drop", **given)
        b = ordinal.select(
            "svorim", X[KEEP], Y[KEEP], cv=own, search=given["search"],
            sample_weight=WEIGHT[KEEP],
        )  # fmt: skip
        assert_array_equal(a.scores, b.scores)
        assert_array_equal(a.predict(X), b.predict(X))
        assert a.n_missing_labels == a.model.n_missing_labels == GONE.size
        assert "; 5 rows without a label left out)" in repr(a)
    negative = [(train, test - 60) for train, test in folds]
    with pytest.raises(ValueError, match="row"):
        ordinal.select("svorim", X, Y, cv=negative, missing_labels="drop", **given)
    file = io.BytesIO()
    a.save(file)
    file.seek(0)
    assert ordinal.load(file).n_missing_labels == GONE.size
    drop = {"missing_labels": "drop", **given}
    by_group = ordinal.select("svorim", X, Y, cv=3, groups=GROUP, **drop)
    for train, test in by_group.splits:
        assert not set(GROUP[KEEP][train]) & set(GROUP[KEEP][test])
    a = nested("pom", X, Y, outer=folds, cv=2, missing_labels="drop")
    b = nested("pom", X[KEEP], Y[KEEP], outer=kept, cv=2)
    assert_array_equal(a.scores["mae"], b.scores["mae"])
    assert "; 5 rows without a label left out)" in repr(a)


def test_comparisons_and_prediction_sets():
    a = ordinal.compare(X, Y, methods=["pom"], cv=3, missing_labels="drop")
    b = ordinal.compare(X[KEEP], Y[KEEP], methods=["pom"], cv=3)
    assert_array_equal(a.scores["mae"], b.scores["mae"])
    assert a.notes()[-1] == "Left out: 5 rows without a label."
    assert "Left out" not in repr(b)
    assert a.best.n_missing_labels == GONE.size
    drop = {"groups": GROUP, "missing_labels": "drop"}
    sets = ordinal.cross_conformal("pom", X, Y, 0.8, **drop)
    own = ordinal.cross_conformal("pom", X[KEEP], Y[KEEP], 0.8, groups=GROUP[KEEP])
    assert_array_equal(sets.scores, own.scores)
    assert sets.model.n_missing_labels == GONE.size
    for call in (ordinal.compare, lambda X, y: ordinal.select("pom", X, y)):
        raises(ValueError, r"row 0.*missing_labels='drop'", call, X, Y)


@pytest.mark.parametrize("fit", [
    partial(fit_pom, missing="drop"),
    lambda X, y, **o: fit_ratio("y ~ a + b", X.assign(y=y), missing="drop", **o),
    lambda X, y, **o: ordinal.select("pom", X[["a"]], y, search=FREE, **o),
    lambda X, y, **o: ordinal.compare(X[["a"]], y, methods=["pom"], **o).best,
    lambda X, y, **o: POM(missing="drop", **o).fit(X, y),
])  # fmt: skip
def test_results_per_row_say_which_rows_they_are_of(fit):
    table = FRAME.assign(b=np.where(np.arange(60) == 3, np.nan, FRAME["b"]))
    made = fit(table, Y, missing_labels="drop")
    inference = ordinal.inference
    mean = inference.predictions(made, kind="mean", each=True)
    for found in (inference.augment(made), mean):
        row = found[".row" if ".row" in found else "row"]
        assert not np.isin(GONE, row).any()
        assert_array_equal(found.to_pandas().index, table.index[row])
        if "a" in found:
            assert_array_equal(found["a"], table["a"].iloc[row])


def test_estimators():
    for make in (POM, SVORIM):
        a = make(missing_labels="drop").fit(X, Y, sample_weight=WEIGHT)
        b = make().fit(X[KEEP], Y[KEEP], sample_weight=WEIGHT[KEEP])
        assert_array_equal(a.predict(X), b.predict(X))
        assert a.model_.n_missing_labels == GONE.size
        raises(ValueError, r"row 0.*missing_labels='drop'", make().fit, X, Y)
    a = CLMM(missing_labels="drop").fit(X, Y, groups=GROUP)
    b = CLMM().fit(X[KEEP], Y[KEEP], groups=GROUP[KEEP])
    assert_array_equal(a.predict(X), b.predict(X))
    a = OrdinalDecomposition(LogisticRegression(), missing_labels="drop")
    a.fit(X, Y, sample_weight=WEIGHT)
    b = OrdinalDecomposition(LogisticRegression())
    b.fit(X[KEEP], Y[KEEP], sample_weight=WEIGHT[KEEP])
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    options = {"n_rounds": "auto", "learning_rate": 0.5}
    a = Boosting(missing_labels="drop", **options).fit(X, Y, groups=GROUP)
    b = Boosting(**options).fit(X[KEEP], Y[KEEP], groups=GROUP[KEEP])
    assert_array_equal(a.predict(X), b.predict(X))


def test_what_numbers_rows_or_stays_elsewhere_is_refused(tmp_path):
    K = X @ X.T
    mapped = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    for call, message in (
        (lambda: fit_svorim(X, Y, missing_labels="no"), "must be one of 'error', 'dr"),
        (lambda: fit_svorim(K, Y, kernel="precomputed", missing_labels="drop"),
         "rows and columns without a label"),
        (lambda: fit_svorim(X, Y, basis=[1, 2, 3], missing_labels="drop"),
         "basis holds row numbers: pass the rows themselves"),
        (lambda: fit_svorim(mapped, Y, missing_labels="drop"), "numpy.memmap"),
        (lambda: fit_svorim(X, np.full(60, np.nan), missing_labels="drop"),
         "y has no label in any of its 60 rows"),
        (lambda: fit_svorim(X[:9], Y, missing_labels="drop"), r"expected \(9,\) as X"),
    ):  # fmt: skip
        raises((ValueError, TypeError), message, call)
    # Metrics have no such argument: the remedy is to drop the rows.
    for true in (Y, np.where(np.isnan(Y), None, NAMES[RANK])):
        with pytest.raises(
            ValueError, match=r"y_true .*row 0: drop the rows without a label$"
        ):
            metrics.mae(true, true, **({} if true is Y else {"labels": NAMES}))


def test_messages_number_the_rows_of_the_caller():
    """Whatever rows were left out before."""
    bad, weight, lacking = X.copy(), WEIGHT.copy(), X.copy()
    bad[40, 1], weight[40], lacking[GONE, 0] = np.inf, -1.0, np.nan
    drop, beside = {"missing_labels": "drop"}, {"sample_weight": weight}
    for call in (
        fit_svorim,
        fit_pom,
        partial(ordinal.select, "svorim"),
        partial(ordinal.compare, methods=["pom"]),
        partial(ordinal.cross_conformal, "pom"),
    ):
        raises(ValueError, "row is 40", call, bad, Y, **drop)
    raises(ValueError, "row 40", SVORIM(**drop).fit, X, Y, **beside)
    for given in (beside, {"offset": np.where(np.arange(60) == 40, np.inf, 0.0)}):
        raises(ValueError, "row 40", fit_pom, lacking, RANK, missing="drop", **given)
    few = {"search": {"C": [1.0]}, "outer": 1, "test_size": 56, "cv": 5}
    message = r"cv within outer\[0\] .* rows, 4,"
    raises(ValueError, message, nested, "svorim", X, RANK, **few)
