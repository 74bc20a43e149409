"""Agreement and concordance: R's figures (tests/reference/agreement.R), and pairs."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from pom_data import SETS
from strategies import raises

from ordinal.metrics import c_index, confidence_interval, gamma, kappa, somers_d

WINE, HOUSING = SETS["wine"], SETS["housing"]
TEMP, CONTACT = WINE.X.T
MODE = np.array([2, 3, 3, 4])[(2 * TEMP + CONTACT).astype(int)]  # of clm's fit
PAIRS = {"somers_d": somers_d, "gamma": gamma, "c_index": c_index}
within = pytest.approx


@st.composite
def rows(draw):
    """(ranks, scores with ties, weights)."""
    n = draw(st.integers(2, 25))
    ranks = st.lists(st.integers(0, 6), min_size=n, max_size=n)
    w = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    return np.array(draw(ranks)), np.array(draw(ranks)), np.array(w)


@pytest.mark.parametrize(("y", "score", "weight", "metric", "estimate", "error"), [
    (WINE.y + 1, MODE, None, "gamma", 0.759745425616547, 0.0737810600257622),
    (WINE.y, 2 * TEMP + CONTACT, None, "c_index", 0.773778244876511,
     0.0614899483320223 / 2),
    (HOUSING.y, HOUSING.X[:, 0] + 2 * HOUSING.X[:, 1], HOUSING.weight, "somers_d",
     0.219096868861383, 0.0210162006158322),
])  # fmt: skip
def test_association_agrees_with_r(y, score, weight, metric, estimate, error):
    found = confidence_interval(y, score, metric, sample_weight=weight)
    assert found.estimate == within(estimate, abs=1e-12)
    assert found.standard_error == within(error, abs=1e-12)
    assert found.estimate == PAIRS[metric](y, score, sample_weight=weight)
    z = 1.959963984540054
    assert found.lower == within(estimate - z * error)
    assert found.upper == within(estimate + z * error)


@pytest.mark.parametrize(("weights", "estimate", "error"), [
    ("linear", 0.380281690140845, 0.0653056493289221),
    ("quadratic", 0.559322033898305, 0.064709865164931),
])  # fmt: skip
def test_the_error_of_kappa_is_that_of_vcd(weights, estimate, error):
    args = dict(labels=[1, 2, 3, 4, 5], weights=weights)
    found = confidence_interval(WINE.y + 1, MODE, **args)
    assert found.estimate == within(estimate, abs=1e-13)
    assert found.estimate == within(kappa(WINE.y + 1, MODE, **args), abs=1e-14)
    assert found.standard_error == within(error, abs=1e-13)


def by_pairs(a, s, w):
    """Somers' D and gamma by a loop over the pairs of rows."""
    agree = differ = untied = 0
    for i in range(a.size):
        for k in range(a.size):
            sign = np.sign(a[i] - a[k]) * np.sign(s[i] - s[k])
            agree += w[i] * w[k] * (sign > 0)
            differ += w[i] * w[k] * (sign < 0)
            untied += w[i] * w[k] * (a[i] != a[k])
    return (
        (agree - differ) / untied if untied else math.nan,
        (agree - differ) / (agree + differ) if agree + differ else math.nan,
    )


@given(rows())
def test_pairs_are_counted(case):
    a, s, w = case
    d, g = by_pairs(a, s, w)
    assert somers_d(a, s, sample_weight=w) == within(d, abs=1e-12, nan_ok=True)
    assert gamma(a, s / 7, sample_weight=w) == within(g, abs=1e-12, nan_ok=True)
    assert c_index(a, s, sample_weight=w) == within((1 + d) / 2, abs=1e-12, nan_ok=True)


@given(rows(), st.sampled_from(["kappa", *PAIRS]))
def test_weights_are_frequencies_and_scores_are_ranked(case, metric):
    a, s, w = case
    once = confidence_interval(a, s, metric, labels=range(7), sample_weight=w)
    copied = np.repeat(a, w), np.repeat(s, w)
    many = confidence_interval(*copied, metric, labels=range(7))
    assert once == within(many, abs=1e-9, nan_ok=True)
    if metric != "kappa":
        labels = np.array(list("gcfbeda"))
        ends, how = (labels[a], labels[s]), {"labels": labels, "sample_weight": w}
        named = confidence_interval(*ends, metric, **how)
        moved = confidence_interval(a, np.exp(s), metric, sample_weight=w)
        assert once == within(named, abs=1e-9, nan_ok=True)
        assert once == within(moved, abs=1e-9, nan_ok=True)


def test_what_has_no_value_or_no_width():
    for metric in ("kappa", *PAIRS):
        for rows in ([2, 2], [2]):
            assert np.isnan(confidence_interval(rows, rows, metric)).all()
        assert confidence_interval([1, 2, 3], [1, 2, 3], metric) == within((1, 0, 1, 1))
    with pytest.raises(ValueError, match="y_score must hold no nan, got one in row 1"):
        somers_d([1, 2], [0.5, math.nan])
    with pytest.raises(ValueError, match=r"y_score has shape \(1,\), expected \(2,\)"):
        c_index([1, 2], [0.5])
    raises(ValueError, "level", confidence_interval, [1, 2], [1, 2], level=95)
    raises(ValueError, "metric must be", confidence_interval, [1, 2], [1, 2], "tau")
    y = [1, 2, 3, 3, 1], [1, 2, 3, 2, 2]
    assert confidence_interval(*y) == confidence_interval(*y, weights="quadratic")
    with pytest.raises(ValueError, match="for metric='kappa' only, got metric='gamma'"):
        confidence_interval(*y, "gamma", weights="linear")


def test_many_distinct_ranks_and_scores():
    n = 20_000
    assert somers_d(np.arange(n), np.arange(n)[::-1]) == -1
    order = np.random.default_rng(3).permutation(n)
    tau = scipy.stats.kendalltau(np.arange(n), order).statistic
    assert somers_d(np.arange(n), order) == within(tau, abs=1e-12)
