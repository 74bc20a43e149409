"""Stacking: weights, out-of-fold probabilities, symmetries, files, doors."""

import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import check_estimator
from strategies import raises

import ordinal
from ordinal import fit_pom, fit_stacking, metrics
from ordinal.__main__ import main
from ordinal._watch.progress import Progress
from ordinal.data import blocks
from ordinal.exceptions import ConvergenceWarning
from ordinal.model_selection import Grid, stratified_kfold
from ordinal.model_selection.scheduler import run
from ordinal.model_selection.scoring import scorers_of
from ordinal.model_selection.search import Search
from ordinal.model_selection.work import Work
from ordinal.model_selection.workers import Workers
from ordinal.models import Status
from ordinal.preprocessing import Standardizer
from ordinal.sklearn import Stacking
from ordinal.stacking import members
from ordinal.stacking.members import MemberWork
from ordinal.stacking.weights import pool_by_log_loss, pool_by_rps

POOLS = {"rps": pool_by_rps, "log_loss": pool_by_log_loss}
LINEAR = {"pom": fit_pom, "probit": ordinal.fit_ratio}


def sample(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * rng.normal(size=n)
    return X, np.digitize(score, [-0.8, 0.8])


@st.composite
def pools(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p, n, r = draw(st.tuples(*(st.integers(*of) for of in [(1, 6), (4, 60), (2, 5)])))
    P = rng.dirichlet(np.full(r, draw(st.sampled_from([0.3, 1.0, 8.0]))), (p, n))
    rank = rng.integers(0, r, n)
    if draw(st.booleans()):  # good members
        P[:, np.arange(n), rank] += draw(st.sampled_from([0.2, 5.0]))
        P /= P.sum(axis=2, keepdims=True)
    if draw(st.booleans()):
        P[-1] = P[0]
    return P, rank, rng.choice([0.5, 1.0, 3.0], n)


@given(pools(), st.sampled_from(list(POOLS)))
def test_weights_are_the_best_on_the_simplex(case, scoring):
    P, rank, weight = case
    labels = np.arange(P.shape[2])

    def score(w):
        mixed = np.tensordot(np.abs(w), P, 1)
        mixed /= mixed.sum(axis=1, keepdims=True)
        of = getattr(metrics, scoring)
        return of(rank, mixed, labels=labels, sample_weight=weight)

    pool = POOLS[scoring](P, rank, weight)
    w, p = pool.weights, len(P)
    assert w.min() >= 0
    assert_allclose(w.sum(), 1, rtol=1e-12)
    assert_allclose(pool.score, score(w), atol=1e-9)
    # the certificate, by differences along every direction to a corner
    assert 0 <= pool.gap <= 1e-8 * (1 + pool.score)
    for corner in np.eye(p):
        assert score(w + 1e-3 * (corner - w)) >= score(w) - 1e-9
    slow = minimize(
        score, np.full(p, 1 / p), method="SLSQP", bounds=[(0, 1)] * p,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    )  # fmt: skip
    assert pool.score <= slow.fun + 1e-8
    # row twice is weight 2, and members may come in any order
    twice = POOLS[scoring](P.repeat(2, axis=1), rank.repeat(2), weight.repeat(2) / 2)
    assert_allclose(twice.weights, w, atol=1e-4)
    assert_allclose(POOLS[scoring](P[::-1], rank, weight).weights[::-1], w, atol=1e-4)
    if p > 1 and np.array_equal(P[0], P[-1]):  # the least sum of squares
        assert_allclose(w[0], w[-1], atol=1e-4)


def test_scores_are_those_of_fits_without_the_rows():
    X, y = sample()
    splits = stratified_kfold(y, 3, rng=0)
    model = fit_stacking(X, y, LINEAR, cv=splits, tune=False)
    P = []
    for fit in LINEAR.values():
        own = np.full((len(y), 3), np.nan)
        for k, (train, test) in enumerate(splits):
            own[test] = fit(X[train], y[train]).predict_proba(X[test])
            m = len(P)
            score = metrics.rps(y[test], own[test], labels=[0, 1, 2])
            assert_allclose(model.scores[m, k], score, rtol=1e-6)
        P.append(own)
    pool = pool_by_rps(np.stack(P), y, np.ones(len(y)))
    assert_allclose(model.weights, pool.weights, atol=1e-4)
    assert_allclose(model.pool_score, pool.score, rtol=1e-9)
    whole = [fit(X, y).predict_proba(X) for fit in LINEAR.values()]
    mixed = np.tensordot(model.weights, whole, 1)
    assert_allclose(model.predict_proba(X), mixed, atol=1e-8)


def test_calibration_takes_no_further_fits(monkeypatch):
    X, y = sample()
    fits = []
    plain = ordinal.fit_svorim

    def counted(X, y, *, C=1.0, probability=False, classes=None):
        fits.append(probability)
        return plain(X, y, C=C, probability=probability, classes=classes)

    model = fit_stacking(X, y, {"counted": counted}, cv=4)
    assert fits == [False] * 5  # four folds, and all rows
    assert model.models[0].model.link is not None
    P = model.predict_proba(X)
    assert metrics.rps(y, P) < 0.8 * metrics.rps(y, np.full_like(P, 1 / 3))
    # the calibration is that of the scores of the folds, as of probability=True
    known = ordinal.fit_svorim(X, y, preprocess=Standardizer,
                               probability=True)  # fmt: skip
    assert abs(known.predict_proba(X) - P).max() < 0.1


def test_the_calibration_of_a_fold_is_learnt_from_the_others():
    X, y = sample()
    splits = stratified_kfold(y, 3, rng=0)
    model = fit_stacking(X, y, ["npsvor"], cv=splits, tune=False)
    fits = [
        ordinal.fit_npsvor(X[train], y[train], preprocess=Standardizer)
        for train, _ in splits
    ]
    values = [
        fit.model.link_input(fit.preprocessor.transform(X[test]), fit.model)
        for fit, (_, test) in zip(fits, splits, strict=True)
    ]
    for k, (_, test) in enumerate(splits):
        others = [j for j in range(3) if j != k]
        known = np.concatenate([values[j] for j in others])
        labels = y[np.concatenate([splits[j][1] for j in others])]
        link = fits[k].model.link_type.fit(known, labels, np.ones(60), 3)
        score = metrics.rps(y[test], link(values[k]), labels=[0, 1, 2])
        assert_allclose(model.scores[0, k], score, rtol=1e-3)


def test_test_sets_that_overlap_calibrate_no_other_fold():
    """The links of other folds would be learnt from the very rows that are judged."""
    X, y = sample()
    for cv in (
        ordinal.model_selection.stratified_holdout(y, 2, test_size=0.6, rng=0),
        stratified_kfold(y, 3, rng=0)[:1],
    ):
        model = fit_stacking(X, y, ["npsvor"], cv=cv, tune=False)
        for (train, test), score in zip(cv, model.scores[0], strict=True):
            alone = ordinal.fit_npsvor(
                X[train], y[train], probability=True, preprocess=Standardizer
            )
            P = alone.predict_proba(X[test])
            assert_allclose(score, metrics.rps(y[test], P, labels=[0, 1, 2]), rtol=1e-4)


def test_members_without_weight_are_dropped():
    X, y = sample()
    model = fit_stacking(X, y, ["constant-median", "pom", "svorim"], tune=False)
    assert model.weights[0] == 0
    assert len(model.models) == np.count_nonzero(model.weights) < 3
    assert model.members["status"][0] == "-"
    assert model.members["rps"].argmax() == 0


# Symmetries and crossings


def test_models_of_folds_hold_no_training_rows(monkeypatch):
    held, made = [], members.Fitted
    monkeypatch.setattr(members, "Fitted", lambda *a: held.append(a[4]) or made(*a))
    model = fit_stacking(*ordinal.datasets.make_gaussians(rng=0), ["pom"], cv=2)
    assert held
    assert all(getattr(fold, "_remembered", None) is None for fold in held)
    assert model.models[0].residuals().size == 300


def test_groups_stay_together():
    X, y = sample(60)
    X[:, 0] = np.arange(60) // 4
    counts = []

    def counting(X, y, *, classes=None):
        counts.extend(np.unique(X[:, 0], return_counts=True)[1])
        return fit_pom(X, y, classes=classes, l2=0.01)

    options = {"cv": 3, "tune": False}
    fit_stacking(X, y, {"m": counting}, groups=np.arange(60) // 4, **options)
    assert set(counts) == {4}
    counts.clear()
    fit_stacking(X, y, {"m": counting}, **options)
    assert set(counts) != {4}


def test_a_fold_may_lack_a_rank():
    X, y = sample(60)
    first = np.flatnonzero(y == 0)
    rest = np.setdiff1d(np.arange(60), first)
    splits = [(rest, first), (np.arange(0, 60, 2), np.arange(1, 60, 2))]
    model = fit_stacking(X, y, ["pom", "svorim"], cv=splits, tune=False)
    assert np.isfinite(model.pool_score)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_points_compete_on_samples_and_in_two_folds_before_the_others(monkeypatch):
    tasks, run = [], MemberWork.run
    monkeypatch.setattr(MemberWork, "run", lambda *a: tasks.append(a[1]) or run(*a))
    model = fit_stacking(*sample(1900), ["pom"], n_threads=1)
    sizes = [(len(task.train), len(task.points)) for task in tasks]
    assert sizes == [(507, 4)] * 2 + [(1520, 2)] * 2 + [(1520, 1)] * 3
    assert all(task.points == model.params for task in tasks[4:])


def test_points_of_a_search_that_fail_in_later_folds_leave_it_to_the_others():
    X, y = sample(300)
    splits = stratified_kfold(y, 5, rng=0)
    last = X[splits[4][0]]

    def fit(X, y, *, classes=None, sample_weight=None, l2=1.0):
        if l2 < 1 and np.array_equal(X, last):
            raise ValueError("too little")
        return fit_pom(X, y, classes=classes, l2=l2)

    rows = dict.fromkeys(["classes", "sample_weight", "groups", "preprocess"])
    scorers = scorers_of("rps", None)
    work = Work.from_arguments(fit, X, y, scorers, {}, standardize=False, **rows)
    line, space = Progress.from_argument(False, ""), Grid(l2=[0.1, 0.2, 1e3, 1e4])
    job = Search(work, space, np.arange(300), splits, line, 0, first_folds=2)
    (trials,), _ = run([job], Workers(work, space, None, 1), None, line)
    assert trials.points[trials.best()]["l2"] == 1e3


@pytest.mark.parametrize("name", ["npsvor", "svmop", "svc", "svorim", "xofm"])
def test_a_rank_of_one_row_spoils_no_calibration(name):
    X, y = sample(90)
    rare = np.where(np.arange(90) == 3, 9, y)
    model = fit_stacking(X, rare, [name], tune=False)
    P = model.predict_proba(X)
    assert P[3, 3] > 0
    constant = np.bincount(np.searchsorted(model.classes, rare)) / 90
    assert metrics.rps(rare, P) < 0.7 * metrics.rps(rare, np.tile(constant, (90, 1)))
    assert model.pool_score < 0.9 * metrics.rps(rare, np.tile(constant, (90, 1)))


def test_sparse_and_mapped_rows(tmp_path):
    X, y = sample(60)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    on_basis = {"basis": partial(ordinal.fit_svorim, basis=20), "pom": "pom"}
    a = fit_stacking(X, y, on_basis, tune=False)
    b = fit_stacking(mapped, y, on_basis, tune=False)
    assert_allclose(a.scores, b.scores, rtol=1e-4)
    c = fit_stacking(csr_array(X), y, LINEAR, tune=False)
    dense = fit_stacking(X, y, LINEAR, tune=False)
    assert_allclose(c.predict_proba(csr_array(X)), dense.predict_proba(X), atol=1e-5)
    np.savetxt(tmp_path / "t.csv", np.c_[X, y], header="a,b,c,y", delimiter=",")
    with pytest.raises(TypeError, match="rows in memory only"):
        fit_stacking(blocks(tmp_path / "t.csv", target="y"), y, LINEAR)


def test_class_weights_count_in_calibration_and_score():
    X, y = sample()
    heavy = {0: 5.0}
    with pytest.raises(TypeError, match="class_weight is no argument of gpor-ep"):
        fit_stacking(X, y, ["svorim", "gpor-ep"], class_weight="balanced")
    model = fit_stacking(X, y, ["svorim"], tune=False, class_weight=heavy)
    how = {"preprocess": Standardizer, "probability": True}
    known = ordinal.fit_svorim(X, y, class_weight=heavy, **how)
    assert abs(known.predict_proba(X) - model.predict_proba(X)).max() < 0.1
    # repeated rows of a rank are its weight
    rows = np.repeat(np.arange(90), np.where(y == 0, 5, 1))
    folds = np.arange(90) % 3
    one = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    two = [tuple(np.flatnonzero(np.isin(rows, side)) for side in s) for s in one]
    a = fit_stacking(X, y, LINEAR, cv=one, class_weight=heavy, tune=False)
    b = fit_stacking(X[rows], y[rows], LINEAR, cv=two, tune=False)
    assert_allclose(a.scores, b.scores, rtol=1e-4)
    assert_allclose(a.weights, b.weights, atol=1e-3)


@pytest.mark.parametrize("fit", [ordinal.companions.fit_elmor, ordinal.fit_svorim])
def test_probability_of_a_member_makes_no_difference(fit):
    X, y = sample(60)
    a = fit_stacking(X, y, {"m": fit}, tune=False)
    b = fit_stacking(X, y, {"m": partial(fit, probability=True)}, tune=False)
    assert_array_equal(a.scores, b.scores)
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_members_that_are_not_ready_are_named_and_the_first_is_fitted(monkeypatch):
    X, y = sample()
    now, seconds = [100.0], [9.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def late(X, y, *, l2=0.0, classes=None):
        now[0] += seconds[0]
        return fit_pom(X, y, classes=classes)

    with pytest.warns(ConvergenceWarning, match="too short: late was left out; raise"):
        model = fit_stacking(X, y, {"pom": "pom", "late": late}, max_time=10.0)
    assert model.methods == ("pom",)
    assert list(model.left_out) == ["late"]
    assert "late" in repr(model)
    assert model.convergence.status is Status.MAX_TIME
    with pytest.warns(ConvergenceWarning, match="late was not tuned; pom was left out"):
        model = fit_stacking(X, y, {"late": late, "pom": "pom"}, max_time=10.0)
    assert (model.methods, list(model.left_out)) == (("late",), ["pom"])
    assert model.convergence.status is Status.MAX_TIME
    seconds[0] = 3.0  # the fourth fit, of the second point in the second fold, is late
    monkeypatch.setattr("ordinal.stacking.fit.open_grid", lambda *of: {"l2": [0.5, 1]})
    with pytest.warns(ConvergenceWarning, match="the search of late was cut; raise"):
        model = fit_stacking(X, y, {"late": late}, cv=2, max_time=12.5)
    assert model.params == ({"l2": 0.5},)
    assert model.convergence.status is Status.MAX_TIME

    def patient(X, y, *, l2=0.0, max_time=None, classes=None):
        now[0] += max_time
        return fit_pom(X, y, classes=classes)

    start = now[0]
    with pytest.warns(ConvergenceWarning, match="patient was not tuned"):
        fit_stacking(X, y, {"patient": patient}, max_time=10.0)
    assert now[0] - start <= 10.1
    with pytest.warns(ConvergenceWarning, match="max_time"):
        found = ordinal.select("pom", X, y, search={"l2": [1]}, cv=2, max_time=1e-9)
    assert "0 failed fits, 2 cut short by max_time" in repr(found)


def test_a_member_that_fails_is_left_out_and_named():
    X, y = sample()

    def fails(X, y):
        raise ValueError("no luck")

    with pytest.warns(ConvergenceWarning, match="left out fails: .*no luck"):
        model = fit_stacking(X, np.where(np.arange(len(y)) == 3, np.nan, y),
                             {"fails": fails, "pom": "pom"}, tune=False,
                             missing_labels="drop")  # fmt: skip
    assert model.methods == ("pom",)
    shown = repr(model)
    assert "not in pool  fails" in shown
    assert "left out     1 row without a label" in shown
    raises(ValueError, "no luck", fit_stacking, X, y, {"fails": fails}, tune=False)


@pytest.mark.parametrize(("P", "why"), [
    (lambda n: np.full((n, 3), np.nan), "finite|nan"),
    (lambda n: np.full((n, 3), 0.2), "must sum to 1"),
    (lambda n: np.full((n, 2), 0.5), "expected .*, 3"),
    (lambda n: [0.5] / n, "unsupported operand"),
])  # fmt: skip
def test_what_are_no_probabilities_leaves_its_member_out(P, why):
    X, y = sample(60)

    class Odd:
        def predict(self, X):
            return np.zeros(len(X), int)

        def predict_proba(self, X):
            return P(len(X))

    def fails(X, y, *, probability=False):
        return Odd()

    with pytest.warns(ConvergenceWarning, match=f"left out fails: .*({why})"):
        model = fit_stacking(X, y, {"fails": fails, "pom": "pom"}, tune=False)
    assert model.methods == ("pom",)


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"scoring": "mae"}, ValueError, "scoring must be one of 'rps', 'log_loss'"),
    ({"tune": 2}, ValueError, "tune"),
    ({"methods": []}, ValueError, "methods must be one or more"),
    ({"methods": ["svorin"]}, ValueError, "did you mean 'svorim'"),
    ({"cv": 1}, ValueError, "cv must"),
    ({"method": ["pom"]}, TypeError, "method"),
])  # fmt: skip
def test_bad_arguments(options, error, message):
    X, y = sample(30)
    raises(error, message, fit_stacking, X, y, **{"methods": ["pom"], **options})


# The model


def test_linear_members_are_explained_by_contributions():
    X, y = sample(120)
    found = fit_stacking(X, y, ["pom", "lit"], tune=False).explain(X)
    assert (found.method, found.names[0]) == ("contributions", "x1")


def raw_table(n=60):
    X, y = sample(n)
    table = pd.DataFrame(X[:, :2].round(3), columns=["a", "b"])
    table["size"] = np.where(X[:, 2] > 0, "small", "large")
    return table, np.array(["low", "mid", "top"])[y]


def test_the_command_fits_predicts_and_compares(tmp_path, capsys):
    table, y = raw_table()
    table.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    layout = ["--target", "y", "--classes", "low,mid,top"]
    order = ["--order", "size=small,large"]
    data, out = str(tmp_path / "t.csv"), str(tmp_path / "m.npz")
    members = "methods=['pom','lit']"
    fit = ["fit", data, *layout, *order, "--method", "stacking", "--folds", "2"]
    assert not main([*fit, "--set", members, "--out", out])
    assert "cross-validated in 2 folds" in capsys.readouterr().out  # the honest error
    model = ordinal.load(out)
    assert model.methods == ("pom", "lit")
    assert model.models[0].feature_names == ("a", "b", "size")  # one column: an order
    assert not main(["predict", out, data, "--out", str(tmp_path / "p.csv")])
    found = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert_array_equal(found, model.predict(table))
    compare = ["compare", data, *layout, "--folds", "2", "--methods", "stacking", "pom"]
    assert not main([*compare, "--set", f"stacking.{members}"])
    assert "stacking" in capsys.readouterr().out


def test_the_error_of_a_comparison_is_nested():
    table, y = raw_table()
    group = np.arange(60) // 3
    pool = partial(fit_stacking, methods=["pom", "lit"], tune=False, cv=2)
    found = ordinal.compare(
        table, y, classes=["low", "mid", "top"], methods={"pool": pool}, cv=2,
        groups=group, scoring="rps",
    )  # fmt: skip
    for k, (train, test) in enumerate(found.splits):
        model = pool(
            table.iloc[train], y[train], classes=["low", "mid", "top"],
            groups=group[train],
        )  # fmt: skip
        P = model.predict_proba(table.iloc[test])
        score = metrics.rps(y[test], P, labels=["low", "mid", "top"])
        assert_allclose(found.scores["rps"][0, k], score, rtol=1e-9)
    assert "compare estimates the error" in repr(found.best)


def test_the_estimator_is_the_fit():
    table, y = raw_table()
    words = pd.Categorical(y, ["low", "mid", "top"], ordered=True)
    made = Stacking(methods=["pom", "lit"], tune=False).fit(table, words)
    model = fit_stacking(table, words, ["pom", "lit"], tune=False)
    assert_allclose(made.predict_proba(table), model.predict_proba(table), atol=1e-6)
    assert made.classes_.tolist() == ["low", "mid", "top"]
    assert set(Stacking().get_params()) >= {"methods", "cv", "tune", "cost", "max_time"}
    assert np.isfinite(cross_val_score(made, table, words, cv=2)).all()
    near = KNeighborsClassifier()  # whose fit takes no weights
    mixed = Stacking(methods={"near": near, "pom": "pom"}, tune=False)
    assert clone(mixed).fit(table, words).model_.methods == ("near", "pom")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.slow("fits of folds in every check")
def test_the_estimator_passes_the_checks_of_scikit_learn():
    check_estimator(Stacking(methods=["lit", "svorim"], tune=False, cv=2))
