"""compare: scores, order, verdict, failures, raw tables, the best model."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import raises, sample
from test_table_preprocessor import wines

import ordinal
from ordinal import metrics
from ordinal.comparison import compare
from ordinal.comparison.learner import GPOR, GPOR_ROWS, METHODS, TREES, chosen_fits
from ordinal.model_selection import select, stratified_kfold
from ordinal.preprocessing import PreprocessedModel, TablePreprocessor

X, y = sample(90, r=4, seed=3)


CLASSES = ["low", "mid", "high"]


def test_scores_are_those_of_separate_fits_in_the_same_folds():
    table, ranks = wines(120)
    labels = np.array(CLASSES)[ranks - 1]
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(labels))
    result = compare(
        table, labels, classes=CLASSES, sample_weight=weight,
        methods=["svorim", "xofm"], rng=4,
    )  # fmt: skip
    folds = stratified_kfold([CLASSES.index(v) for v in labels], rng=4)
    for k, (train, test) in enumerate(folds):
        assert_array_equal(result.splits[k][1], test)
        options = {"classes": CLASSES, "sample_weight": weight[train]}
        models = {
            "svorim": PreprocessedModel.fit(
                ordinal.fit_svorim, table.iloc[train], labels[train],
                preprocess=TablePreprocessor(), probability=True, **options,
            ),
            "xofm": ordinal.fit_xofm(
                table.iloc[train], labels[train], probability=True, **options
            ),
        }  # fmt: skip
        for name, model in models.items():
            of = {"labels": CLASSES, "sample_weight": weight[test]}
            P = model.predict_proba(table.iloc[test])
            i = result.methods.index(name)
            told = {
                metric: model.predict(table.iloc[test], rule=rules[i])
                for metric, rules in result.rules.items()
            }
            want = {
                "mae": metrics.mae(labels[test], told["mae"], **of),
                "accuracy": metrics.accuracy(labels[test], told["accuracy"], **of),
                "rps": metrics.rps(labels[test], P, **of),
            }
            for metric, value in want.items():
                assert_allclose(result.scores[metric][i, k], value, rtol=1e-12)


def test_the_best_comes_first_and_the_constants_are_the_shares():
    classes, ranks = np.unique(y, return_inverse=True)
    result = compare(X, y, cv=2, progress=False)
    assert set(result.methods) == {*METHODS, TREES, GPOR}
    assert (np.diff(result.mean()) >= 0).all()
    for k, (train, test) in enumerate(result.splits):
        share = np.bincount(ranks[train]) / train.size
        median = classes[np.argmax(share.cumsum() >= 0.5)]
        i, j = map(result.methods.index, ("constant-median", "constant-mode"))
        assert_allclose(result.scores["mae"][i, k], np.abs(y[test] - median).mean())
        hits = y[test] == classes[share.argmax()]
        assert_allclose(result.scores["accuracy"][j, k], hits.mean())
        rps = metrics.rps(y[test], np.tile(share, (test.size, 1)), labels=classes)
        assert_allclose(result.scores["rps"][i, k], rps)
    gain = compare(X, y, methods=["pom", "constant-mode"], scoring="accuracy")
    assert gain.mean()[0] >= gain.mean()[1]
    assert gain.methods[0] == "pom"
    assert GPOR not in chosen_fits(None, GPOR_ROWS + 1)
    assert len(chosen_fits("all", 10**6)) > 26


@pytest.mark.parametrize(
    "grouped", [False, pytest.param(True, marks=pytest.mark.slow("tunes six times"))]
)
def test_tuned_methods_are_those_of_select_in_each_fold(grouped):
    """Groups, here of two equal rows, stay together in the searches too."""
    rows, labels, groups, method = X, y, None, "pom"
    if grouped:
        rows, labels = (np.repeat(a[:30], 2, axis=0) for a in (X, y))
        groups, method = np.arange(60) // 2, "svorim"
    of = {"cv": 3, "tune": True, "scoring": "mae", "groups": groups}
    result = compare(rows, labels, methods=[method], **of)
    rng = np.random.default_rng(0)
    stratified_kfold(labels, 3, groups=groups, rng=rng)  # draws the folds
    seed = int(rng.integers(2**32))
    for k, (train, test) in enumerate(result.splits):
        found = select(
            method, rows[train], labels[train], preprocess=TablePreprocessor(),
            rng=np.random.default_rng([seed, k]),
            groups=groups if groups is None else groups[train],
        )  # fmt: skip
        assert found.params == result.params[0][k]
        error = np.abs(found.predict(rows[test]) - labels[test]).mean()
        assert_allclose(result.scores["mae"][0, k], error)


def test_best_is_the_fit_to_all_rows():
    result = compare(X, y, methods={"linear": "pom", "kernel": ordinal.fit_svorim})
    assert set(result.methods) == {"linear", "kernel"}
    model = result.refit("linear")
    want = PreprocessedModel.fit(ordinal.fit_pom, X, y, preprocess=TablePreprocessor())
    assert_array_equal(model.predict(X), want.predict(X))
    assert result.best is result.best
    first = result.refit(result.methods[0])
    assert_array_equal(result.best.predict(X), first.predict(X))
    raises(ValueError, "method must be one of", result.refit, "svm")
    fits = [partial(ordinal.fit_pom, l2=penalty) for penalty in (0.1, 1.0)]
    assert {*compare(X, y, methods=fits).methods} == {"pom(l2=0.1)", "pom(l2=1.0)"}
    for mean in (result.mean, result.standard_error):
        raises(ValueError, "metric must be one of 'mae'", mean, "rmse")


def test_methods_run_in_turn_and_a_failure_ends_only_its_own():
    """After a failure the other folds of a method would fail for the same reason."""
    called = []

    def fit(name, most, X, y):
        called.append(name)
        if called.count(name) > most:
            raise RuntimeError("no <b>luck</b>")
        return ordinal.fit_pom(X, y)

    limits = {"never": 0, "once": 1, "ever": 3}
    methods = {name: partial(fit, name, most) for name, most in limits.items()}
    result = compare(X, y, methods=methods, cv=3, scoring="mae")
    assert called == ["never", "once", "once", "ever", "ever", "ever"]
    assert result.methods == ("ever", "never", "once")
    nan = [np.isnan(scores).tolist() for scores in result.scores["mae"]]
    assert nan == [[False] * 3, [True] * 3, [False, True, True]]
    assert result.reasons["once"] == "RuntimeError: no <b>luck</b>"
    assert "never failed: RuntimeError" in repr(result)
    raises(RuntimeError, "luck", compare, X, y, methods={"never": methods["never"]})


def test_a_splitter_sees_the_features_as_in_select():
    seen = []

    class Halves:
        def split(self, X, y):
            seen.append((X, y))
            rows = np.arange(len(y))
            yield rows[::2], rows[1::2]

    result = compare(X, y, methods=["pom"], cv=Halves(), scoring="mae")
    found = select("pom", X, y, search={"l2": [1e-6]}, cv=Halves())
    assert_array_equal(seen[0][0], X)
    assert_array_equal(seen[0][1], y)
    for one, other in zip(result.splits[0], found.splits[0], strict=True):
        assert_array_equal(one, other)


def test_a_function_that_needs_the_table_is_told_why_it_failed():
    wine, rating = ordinal.datasets.load_wine(as_frame=True)
    mixed = partial(ordinal.fit_clmm, random="(1 | judge)")
    methods = {"lambda": lambda X, y: mixed(X, y), "partial": mixed}
    result = compare(wine, rating, methods=methods, groups=wine["judge"], cv=3)
    assert result.methods == ("partial", "lambda")
    assert "receives the features as an array of numbers: pass a fit_*" in repr(result)
    assert list(result.reasons) == ["lambda"]


def test_a_function_without_probabilities_is_scored_as_far_as_it_can_be():
    def fit_ours(X, y):
        return ordinal.fit_svorim(X, y)

    def fit_first(X, y):
        return SimpleNamespace(predict=lambda X: np.full(len(X), y[0]))

    linked = partial(ordinal.fit_npsvor, probability=False)
    methods = {"first": fit_first, "ours": fit_ours, "off": linked, "pom": "pom"}
    result = compare(X, y, methods=methods)
    lacking = [name != "pom" for name in result.methods]
    assert_array_equal(np.isnan(result.mean("rps")), lacking)
    assert np.isfinite([result.mean("mae"), result.mean("accuracy")]).all()
    assert not result.reasons
    assert len(result.notes()) == 1
    with pytest.raises(ordinal.exceptions.NoProbabilitiesError):
        compare(X, y, methods=[fit_ours], rule="mode", scoring="mae")


def test_the_verdict_follows_from_the_table():
    noise = np.random.default_rng(0).normal(size=X.shape)
    hopeless = compare(noise, y, methods=["constant-median", "pom", "svorim"])
    assert "no method is clearly better than a constant" in hopeless.verdict
    alone = compare(X, y, methods="pom")
    mean, error = alone.mean()[0], alone.standard_error()[0]
    assert alone.verdict == f"pom has MAE {mean:.4f} ± {error:.4f}."
    result = compare(X, y, methods=["svorim", "npsvor", "pom"])
    limit = result.mean()[0] + result.standard_error()[0]
    others = zip(result.methods[1:], result.mean()[1:], strict=True)
    near = {method for method, mean in others if mean <= limit}
    assert set(result.close) == near
    assert all(name in result.verdict for name in near)
    many = compare(X, y, methods={f"lit{k}": "lit" for k in range(8)}, cv=2)
    assert "7 others are within one standard error" in many.verdict


def test_tables_and_pictures():
    pytest.importorskip("matplotlib").use("agg")
    result = compare(X, y, methods=["pom", "svorim"], cv=3)
    frame = result.to_pandas()
    assert tuple(frame.index) == result.methods
    assert_allclose(frame["mae"], result.mean())
    assert_allclose(frame["rps_se"], result.standard_error("rps"))
    assert len(repr(result).splitlines()) == 4
    (ax,) = result.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == [*result.methods]
    (ax,) = compare(X, y, methods=["pom"], cv=3).plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["pom"]


def test_sparse_rows_are_taken_and_rows_out_of_memory_refused():
    with pytest.raises(TypeError, match="rows in memory only"):
        compare(ordinal.data.blocks("rows.csv", target="y"), None)
    sparse = pytest.importorskip("scipy.sparse").csr_array(X)
    dense = compare(X, y, methods=["constant-mode"])
    same = compare(sparse, y, methods=["constant-mode", "svorim"])
    own = same.methods.index("constant-mode")
    assert_array_equal(same.scores["mae"][own], dense.scores["mae"][0])
    assert not same.reasons


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"methods": ["svorin"]}, ValueError, "did you mean 'svorim'"),
    ({"methods": []}, ValueError, "methods must be one or more methods"),
    ({"methods": ["pom", "pom"]}, ValueError, "methods must be one or more"),
    ({"methods": 3}, TypeError, "names, functions or classifiers"),
    ({"methods": [3]}, TypeError, "name of a method"),
    ({"scoring": "magic"}, ValueError, "scoring must be one of"),
    ({"tune": 1}, ValueError, "tune must be"),
    ({"cv": 1}, ValueError, "cv must be 2 to"),
    ({"preprocess": 3}, TypeError, "TablePreprocessor"),
    ({"progress": -1}, ValueError, "progress must be"),
    ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
    ({"tun": True}, TypeError, "did you mean tune"),
    ({"methods": "constant-median", "n_threads": 0}, ValueError, "n_threads must be"),
])  # fmt: skip
def test_bad_arguments(options, error, message):
    raises(error, message, compare, X, y, **options)


def test_no_spelling_of_the_labels_changes_the_folds():
    X, y = sample(90, 3, noise=1.0)
    words = np.array(["low", "mid", "high"])  # not in the order of the alphabet
    options = {"cv": 3, "rng": 0, "methods": ["pom", "lit"]}
    plain = ordinal.compare(X, y, **options)
    spelled = ordinal.compare(X, words[y], classes=words, **options)
    for a, b in zip(plain.splits, spelled.splits, strict=True):
        assert_array_equal(a[1], b[1])
    assert_array_equal(plain.scores["mae"], spelled.scores["mae"])
    search = {"C": [0.1, 1.0, 10.0]}
    for halving in (False, True):
        options = {"search": search, "cv": 3, "rng": 0, "halving": halving}
        found = ordinal.select("svorim", X, y, **options)
        again = ordinal.select("svorim", X, words[y], classes=words, **options)
        assert_array_equal(found.scores, again.scores)
