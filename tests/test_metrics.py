import doctest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, zero_one_loss

from ordinal import metrics
from ordinal.metrics import mae, mze

BOTH = pytest.mark.parametrize("metric", [mze, mae])


@st.composite
def predictions(draw):
    """(labels, true ranks, predicted ranks, weights); labels in no natural order."""
    kind = draw(
        st.sampled_from([st.integers(-99, 99), st.text("abc", max_size=3)]),
    )
    labels = draw(st.lists(kind, min_size=1, max_size=6, unique=True))
    n = draw(st.integers(1, 20))
    rank = st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n)
    weight = st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any)
    return np.array(labels), draw(rank), draw(rank), draw(weight)


@given(predictions())
def test_definitions(case):
    labels, a, p, w = case
    wrong = sum(wi for ai, pi, wi in zip(a, p, w, strict=True) if ai != pi)
    distance = sum(wi * abs(ai - pi) for ai, pi, wi in zip(a, p, w, strict=True))
    args = dict(labels=labels, sample_weight=w)
    assert mze(labels[a], labels[p], **args) == pytest.approx(wrong / sum(w))
    assert mae(labels[a], labels[p], **args) == pytest.approx(distance / sum(w))


@given(predictions())
def test_agree_with_scikit_learn_on_ranks(case):
    labels, a, p, _ = case
    args = dict(labels=labels)
    assert mze(labels[a], labels[p], **args) == pytest.approx(zero_one_loss(a, p))
    assert mae(labels[a], labels[p], **args) == pytest.approx(mean_absolute_error(a, p))


@BOTH
@given(case=predictions())
def test_weight_is_a_repeat_count(metric, case):
    labels, a, p, w = case
    weighted = metric(labels[a], labels[p], labels=labels, sample_weight=w)
    a, p = np.repeat(a, w), np.repeat(p, w)
    assert weighted == pytest.approx(metric(labels[a], labels[p], labels=labels))


def test_labels_set_the_distance():
    assert mae([1, 1], [3, 3]) == 1  # nothing says that there is a 2
    assert mae([1, 1], [3, 3], labels=[1, 2, 3]) == 2
    assert mae([1, 1], [3, 3], labels=[3, 1, 2]) == 1
    assert mae([1, 2], [1.0, 3.0]) == 0.5  # whole floats are the same labels


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(pd.Categorical(["low", "high"], ["low", "mid", "high"], True)),
        pl.Series(["low", "high"], dtype=pl.Enum(["low", "mid", "high"])),
    ],
    ids=["pandas", "polars"],
)
def test_an_ordered_categorical_brings_its_labels(y):
    assert mae(y, np.array(["low", "low"])) == 1


def test_huge_weights_do_not_overflow():
    assert mze([1, 2], [1, 1], sample_weight=[1.5e308, 1.5e308]) == 0.5


@BOTH
@pytest.mark.parametrize(
    ("true", "pred", "options", "error", "message"),
    [
        ([1, 2], [1], {}, ValueError, "2 rows and y_pred 1"),
        ([], [], {}, ValueError, "not be empty"),
        ([[1]], [[1]], {}, ValueError, "1-dimensional"),
        ([1, np.nan], [1, 1], {}, ValueError, "nan in row 1"),
        (["a"], ["b"], {}, TypeError, r"labels=\['a', 'b'\] in rank order"),
        (["1"], [1], {}, TypeError, "both hold numbers or both strings"),
        ([1], [1], {"labels": ["1"]}, TypeError, "same kind"),
        ([1j], [1j], {}, TypeError, "complex"),
        ([1, 2], [2, 3], {"labels": [1, 2]}, ValueError, "y_pred holds 3 in row 1"),
        ([9, 2], [2, 2], {"labels": [1, 2]}, ValueError, "y_true holds 9 in row 0"),
        ([1], [1], {"labels": [1, 1]}, ValueError, "distinct"),
        ([1], [1], {"labels": []}, ValueError, "not empty"),
        ([1, 1], [1, 1], {"sample_weight": [1]}, ValueError, r"\(2,\)"),
        ([1, 1], [1, 1], {"sample_weight": [1, -2]}, ValueError, "-2.0 in row 1"),
        ([1, 1], [1, 1], {"sample_weight": [np.inf, 1]}, ValueError, "inf in row 0"),
        ([1, 1], [1, 1], {"sample_weight": [0, 0]}, ValueError, "zero"),
    ],
)
def test_bad_input(metric, true, pred, options, error, message):
    with pytest.raises(error, match=message):
        metric(true, pred, **options)


def test_docstring_examples():
    assert doctest.testmod(metrics).failed == 0
