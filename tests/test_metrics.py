import math
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from strategies import case, raises

from ordinal.metrics import (
    accuracy,
    accuracy_off,
    amae,
    cem,
    confusion_matrix,
    gm,
    gmsec,
    kappa,
    kendall,
    log_loss,
    mae,
    mmae,
    ms,
    mze,
    oci,
    rps,
    spearman,
)

METRICS = {f.__name__: f for f in (mze, mae, amae, mmae, accuracy, accuracy_off, gm)}
METRICS |= {f.__name__: f for f in (ms, gmsec, cem, kappa, kendall, spearman, oci)}
METRICS["linear kappa"] = partial(kappa, weights="linear")
PROBABILITY_METRICS = {"rps": rps, "log_loss": log_loss}
EVERY = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


@st.composite
def predictions(draw):
    """(labels, true ranks, predicted ranks, weights); labels in no natural order."""
    kind = draw(st.sampled_from([st.integers(-99, 99), st.text("abc", max_size=3)]))
    labels = draw(st.lists(kind, min_size=1, max_size=6, unique=True))
    n = draw(st.integers(1, 20))
    rank = st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n)
    weight = st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any)
    return np.array(labels), draw(rank), draw(rank), draw(weight)


@st.composite
def forecasts(draw):
    """(labels, true ranks, probabilities > 0, weights)."""
    labels, a, _, w = draw(predictions())
    n, r = len(a), len(labels)
    odds = draw(st.lists(st.integers(1, 9), min_size=n * r, max_size=n * r))
    odds = np.array(odds, dtype=float).reshape(n, r)
    return labels, a, odds / odds.sum(axis=1, keepdims=True), w


def same(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)


@given(predictions())
def test_definitions(case):
    labels, a, p, w = case
    rows = list(zip(a, p, w, strict=True))
    args = dict(labels=labels, sample_weight=w)

    def share(holds):
        return sum(wi for ai, pi, wi in rows if holds(ai, pi)) / sum(w)

    assert mze(labels[a], labels[p], **args) == same(share(lambda a, p: a != p))
    assert accuracy(labels[a], labels[p], **args) == same(share(lambda a, p: a == p))
    for k in range(4):
        within = share(lambda a, p, k=k: abs(a - p) <= k)
        assert accuracy_off(labels[a], labels[p], k, **args) == same(within)
    distance = sum(wi * abs(ai - pi) for ai, pi, wi in rows)
    assert mae(labels[a], labels[p], **args) == same(distance / sum(w))

    of_class, right = [], []
    for j in range(len(labels)):
        total = sum(wi for ai, _, wi in rows if ai == j)
        if total:
            off = sum(wi * abs(j - pi) for ai, pi, wi in rows if ai == j)
            of_class.append(off / total)
            right.append(sum(wi for ai, pi, wi in rows if ai == pi == j) / total)
    assert amae(labels[a], labels[p], **args) == same(np.mean(of_class))
    assert mmae(labels[a], labels[p], **args) == same(max(of_class))
    mean = math.prod(right) ** (1 / len(right))
    assert gm(labels[a], labels[p], **args) == same(mean)
    assert ms(labels[a], labels[p], **args) == same(min(right))
    assert gmsec(labels[a], labels[p], **args) == same(math.sqrt(right[0] * right[-1]))


@given(predictions())
def test_cem_is_the_information_in_closeness(case):
    labels, a, p, w = case
    N = [sum(wi for ai, wi in zip(a, w, strict=True) if ai == j) for j in range(6)]

    def closeness(p, a):
        between = N[p + 1 : a + 1] if p < a else N[a:p]
        return -math.log2(Fraction(N[p], 2 * sum(w)) + Fraction(sum(between), sum(w)))

    rows = [row for row in zip(a, p, w, strict=True) if row[2]]
    got = sum(wi * closeness(pi, ai) for ai, pi, wi in rows)
    best = sum(wi * closeness(ai, ai) for ai, _, wi in rows)
    args = dict(labels=labels, sample_weight=w)
    assert cem(labels[a], labels[p], **args) == same(got / best)


def paths(r):
    """All ways from (0, 0) to (r-1, r-1) by steps of one in either or both."""
    unfinished = [[(0, 0)]]
    while unfinished:
        path = unfinished.pop()
        j, k = path[-1]
        if (j, k) == (r - 1, r - 1):
            yield path
        for step in ((j + 1, k), (j, k + 1), (j + 1, k + 1)):
            if max(step) < r:
                unfinished.append([*path, step])


@given(predictions().filter(lambda case: 2 <= len(case[0]) <= 4))
def test_oci_is_the_best_path(case):
    labels, a, p, w = case
    r, args = len(labels), dict(labels=labels, sample_weight=w)
    C = confusion_matrix(labels[a], labels[p], **args)
    T = sum(C[j, k] * abs(j - k) for j in range(r) for k in range(r))
    W = C.sum()
    values = [
        1
        - sum(C[cell] for cell in path) / (W + T)
        + 0.75 / (W * (r - 1)) * sum(C[j, k] * abs(j - k) for j, k in path)
        for path in paths(r)
    ]
    assert oci(labels[a], labels[p], **args) == same(min(values))


@given(forecasts())
def test_rps_is_the_integral_of_the_squared_difference_of_distributions(case):
    labels, a, P, w = case
    score = [
        sum((P[i, : j + 1].sum() - (ai <= j)) ** 2 for j in range(len(labels) - 1))
        for i, ai in enumerate(a)
    ]
    expected = np.average(score, weights=w)
    assert rps(labels[a], P, labels=labels, sample_weight=w) == same(expected)


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(predictions(), st.booleans())
def test_confusion_matrix_agrees_with_scikit_learn(case, weighted):
    labels, a, p, w = case
    w = w if weighted else None
    C = confusion_matrix(labels[a], labels[p], labels=labels, sample_weight=w)
    ranks = range(len(labels))
    theirs = sklearn.metrics.confusion_matrix(a, p, labels=ranks, sample_weight=w)
    assert np.array_equal(C, theirs)
    assert C.dtype == (np.float64 if weighted else np.int64)


@given(predictions(), st.sampled_from(["linear", "quadratic"]))
def test_kappa_agrees_with_scikit_learn(case, weights):
    labels, a, p, w = case
    held = {label for label, wi in zip(a + p, w + w, strict=True) if wi}
    ours = kappa(labels[a], labels[p], weights=weights, labels=labels, sample_weight=w)
    if len(held) == 1:
        assert math.isnan(ours)
        return
    theirs = sklearn.metrics.cohen_kappa_score(
        a, p, labels=range(len(labels)), weights=weights, sample_weight=w
    )
    assert ours == same(theirs)


@given(predictions())
def test_rank_correlations_agree_with_scipy(case):
    labels, a, p, w = case
    args = dict(labels=labels, sample_weight=w)
    tau, rho = (f(labels[a], labels[p], **args) for f in (kendall, spearman))
    a, p = np.repeat(a, w), np.repeat(p, w)
    if len({*a}) == 1 or len({*p}) == 1:
        assert math.isnan(tau)
        assert math.isnan(rho)
        return
    assert tau == same(scipy.stats.kendalltau(a, p).statistic)
    assert rho == same(scipy.stats.spearmanr(a, p).statistic)


@given(forecasts().filter(lambda case: len(case[0]) > 1))
def test_log_loss_agrees_with_scikit_learn(case):
    labels, a, P, w = case
    theirs = sklearn.metrics.log_loss(a, P, labels=range(len(labels)), sample_weight=w)
    assert log_loss(labels[a], P, labels=labels, sample_weight=w) == same(theirs)


def test_log_loss_is_not_clipped_and_probabilities_may_be_rounded():
    P = [[1.0, 0.0], [0.0, 1.0]]
    assert log_loss([1, 1], P, labels=[1, 2]) == math.inf
    assert log_loss([1, 1], P, labels=[1, 2], sample_weight=[1, 0]) == 0
    P = np.array([[0.333, 0.333, 0.333]], dtype=np.float16)
    assert rps([2], P, labels=[1, 2, 3]) == pytest.approx(2 / 9, rel=2e-3)


def test_numbers_are_taken_as_they_are_unless_labels_rank_them():
    assert mae([1, 1], [3, 3]) == 2  # though no 2 occurs
    assert mae([1, 1], [3, 3], labels=[1, 2, 3]) == 2
    assert mae([1, 1], [3, 3], labels=[3, 1, 2]) == 1
    assert mae([1, 2], [1.0, 3.0]) == 0.5  # whole floats are the same labels
    assert mae([0.5, 1.5], [1.0, 1.5]) == 0.25
    assert mae([True, False], [False, False]) == 0.5
    assert (amae([1, 1, 9], [1, 3, 1]), mmae([1, 1, 9], [1, 3, 1])) == (4.5, 8)
    assert accuracy_off([1, 1, 9], [2, 3, 9]) == pytest.approx(2 / 3)
    assert accuracy_off([1, 1, 9], [2, 3, 9], labels=[1, 2, 3, 9], k=2) == 1
    far = [2**63 - 1, -(2**63)]
    assert mae(far, far[::-1]) == 2.0**64
    assert mae([2**62 + 1], [2**62]) == 1  # where doubles are 1024 apart
    assert mae(np.array([60_000, -60_000], np.float16), [-60_000, 60_000]) == 120_000
    assert mae([9e307], [0.0]) == 9e307
    for metric in (mae, amae, mmae, accuracy_off):
        with pytest.raises(ValueError, match=r"-1e\+308 and 1e\+308, whose dist"):
            metric([1e308], [-1e308])
    assert mae([1e308], [-1e308], labels=[-1e308, 1e308]) == 1
    true, pred = [1, 2, 2], [1, 1, 2]
    for name, metric in METRICS.items():
        huge = metric(true, pred, sample_weight=[1.5e308] * 3)
        assert huge == same(metric(true, pred)), name


@pytest.mark.parametrize("y", [
    pd.Series(pd.Categorical(["low", "high"], ["low", "mid", "high"], True)),
    pl.Series(["low", "high"], dtype=pl.Enum(["low", "mid", "high"])),
], ids=["pandas", "polars"])  # fmt: skip
def test_an_ordered_categorical_brings_its_labels(y):
    assert amae(y, ["low", "low"]) == 1
    assert mmae(y, ["low", "low"]) == 2
    assert mae(y, np.array(["low", "low"])) == 1
    assert mae(["low", "mid"], y) == mae(y, ["low", "mid"]) == 0.5
    assert rps(y, [[1, 0, 0], [1, 0, 0]]) == 1
    assert confusion_matrix(y, y).shape == (3, 3)


def test_ordered_categories_that_are_numbers_are_ranks():
    y = pd.Series(pd.Categorical([1, 10], [1, 3, 10], ordered=True))
    assert mae(y, [10, 10]) == 1
    assert accuracy_off(y, [3, 3]) == 1
    loose = pd.Series(pd.Categorical([1, 10]))
    raises(TypeError, r"pass labels= with the labels \[1, 10\]", mae, loose, [10, 10])


@EVERY
def test_tiny_weights_count_as_none(metric):
    # cem: between 2 and 3 there is next to nothing, where logarithms are large
    true, pred, labels = [1, 1, 2, 4], [1, 4, 3, 4], [1, 2, 3, 4]
    weights = [1, 1, 1e-20, 1], [1, 1, 0, 1]
    tiny, none = (metric(true, pred, labels=labels, sample_weight=w) for w in weights)
    # in the others a class counts, however little it weighs
    assert metric in (amae, mmae, gm, ms) or tiny == same(none)


@pytest.mark.parametrize(("true", "pred", "options", "error", "message"), [
    ([1, 2], [1], {}, ValueError, "2 rows and y_pred 1"),
    ([], [], {}, ValueError, "not be empty"),
    ([[1]], [[1]], {}, ValueError, "1-dimensional"),
    ([1, np.nan], [1, 1], {}, ValueError, "nan in row 1"),
    (["a"], ["b"], {}, TypeError, r"labels \['a', 'b'\] in rank order"),
    (["1"], [1], {}, TypeError, "both hold numbers or both strings"),
    ([1], [1], {"labels": ["1"]}, TypeError, "same kind"),
    ([1j], [1], {}, TypeError, "^y_true must hold integers or strings.* complex"),
    (pd.Series(["a", "b"], dtype="category"), ["a", "b"], {}, TypeError,
     "^y_true is an unordered .* or pass labels="),
    ([1, 2], [2, 3], {"labels": [1, 2]}, ValueError, "y_pred holds 3 in row 1"),
    ([9, 2], [2, 2], {"labels": [1, 2]}, ValueError, "y_true holds 9 in row 0"),
    ([1], [1], {"labels": [1, 1]}, ValueError, "distinct"),
    ([1], [1], {"labels": []}, ValueError, "not empty"),
    ([1, 1], [1, 1], {"sample_weight": [1]}, ValueError, r"\(2,\)"),
    ([1, 1], [1, 1], {"sample_weight": [1, -2]}, ValueError, "-2.0 in row 1"),
    ([1, 1], [1, 1], {"sample_weight": [np.inf, 1]}, ValueError, "inf in row 0"),
    ([1, 1], [1, 1], {"sample_weight": [0, 0]}, ValueError, "zero"),
])  # fmt: skip
def test_bad_input(true, pred, options, error, message):
    for name, metric in {**METRICS, "confusion_matrix": confusion_matrix}.items():
        with case(name), pytest.raises(error, match=message):
            metric(true, pred, **options)


@pytest.mark.parametrize(("true", "proba", "options", "error", "message"), [
    ([], [], {}, ValueError, "^y_true must not be empty$"),
    ([3], [[1, 0]], {"labels": [1, 2]}, ValueError, "y_true holds 3 in row 0"),
    ([1], [[1]], {"sample_weight": [-1]}, ValueError, "-1.0 in row 0"),
    ([1, 2], [[1, 0]], {}, ValueError, r"shape \(1, 2\), expected \(2, 2\)"),
    ([1, 2], [1, 0], {}, ValueError, r"shape \(2,\), expected \(2, 2\)"),
    ([1, 2], np.eye(2, 3), {}, ValueError, r"\(2, 2\) .* labels=\[1, 2\]"),
    ([1], [["1"]], {}, TypeError, "real numbers, got dtype <U1"),
    ([1, 2], [[1, 0], [2, -1]], {}, ValueError,
     "^proba must be >= 0, got -1.0 in row 1, column 1$"),
    ([1, 2], [[1, 0], [1, np.nan]], {}, ValueError, "got nan in row 1"),
    ([1, 2], [[np.inf, 0], [1, 0]], {}, ValueError, "got inf in row 0"),
    ([1, 2], [[1, 0], [0.6, 0.5]], {}, ValueError,
     "^rows of proba must sum to 1, got 1.1 in row 1$"),
    ([1], [[1e308, 1e308]], {"labels": [1, 2]}, ValueError, "got inf in row 0"),
    ([1], np.ma.masked_equal([[1]], 1), {}, TypeError, "proba is a masked array"),
])  # fmt: skip
def test_bad_probabilities(true, proba, options, error, message):
    for name, metric in PROBABILITY_METRICS.items():
        with case(name), pytest.raises(error, match=message):
            metric(true, proba, **options)


def test_bad_options():
    far = [0.0, 1.0, 1.7e308]
    raises(ValueError, r"7e.308, whose distances .*: pass labels", mae, far, far)
    with pytest.raises(ValueError, match=r"^weights must be one of 'linear', 'quad"):
        kappa([1, 2], [1, 2], weights=None)
    with pytest.raises(ValueError, match="k must be a finite number >= 0, got -1"):
        accuracy_off([1, 2], [1, 2], -1)
