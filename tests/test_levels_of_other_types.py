"""Categories that come as another type at prediction than at training."""

import warnings
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import ordinal
from ordinal._input.labels import level_places
from ordinal.preprocessing import TablePreprocessor

RNG = np.random.default_rng(0)
G, X = RNG.integers(1, 4, 120), RNG.normal(size=120)
Y = np.digitize(X + G + RNG.normal(size=120), [1.5, 3.0])
WORDS = np.array(["", "a", "b", "c"])[G]
FITS = {
    "xofm": partial(ordinal.fit_xofm, categorical=["g"], n_factors=0),
    "boosting": partial(ordinal.fit_boosting, categorical=["g"], n_rounds=5),
    "svorim": partial(
        ordinal.fit_svorim, preprocess=TablePreprocessor(categorical=["g"])
    ),
    "pom": partial(ordinal.fit_pom, preprocess=TablePreprocessor(categorical=["g"])),
    "plain": lambda table, y: ordinal.fit_pom(table.astype({"g": "category"}), y),
}


def table(g):
    return pd.DataFrame({"x": X, "g": g})


@pytest.mark.parametrize("trained", [str, bool])
def test_booleans_are_their_words(trained):
    ill = G > 1
    how = TablePreprocessor(categorical=["g"])
    model = ordinal.fit_svorim(table(ill.astype(trained)), Y, preprocess=how)
    expected = model.predict(table(ill.astype(trained)))
    objects = ill.astype(object)
    for form in (ill, ill.astype(str), objects, pd.array(ill, dtype="boolean")):
        assert_array_equal(model.predict(table(form)), expected)
    objects[3] = None  # leaves the others what they are
    assert_array_equal(model.predict(table(objects))[4:], expected[4:])


@pytest.mark.parametrize("name", ["xofm", "boosting", "svorim"])
def test_a_column_without_a_known_category_is_named(name):
    model = FITS[name](table(WORDS), Y)
    with pytest.warns(
        ordinal.exceptions.UnknownLevelsWarning, match="'A', 'B', 'C', which no train"
    ) as w:
        model.predict(table(np.char.upper(WORDS)))
    assert len(w) == 1
    with warnings.catch_warnings(action="error"):
        model.predict(table(np.full(G.size, None)))  # missing, as the caller says
    some = table(np.where(G == 1, "new", WORDS))
    with pytest.warns(ordinal.exceptions.UnknownLevelsWarning, match="'new', which no"):
        model.predict(some)
    with pytest.warns(ordinal.exceptions.UnknownLevelsWarning, match="column 'g'"):
        list(ordinal.data.predictions(model, table(np.char.upper(WORDS))))


NUMBERS = st.integers(-99, 99)


@given(st.lists(NUMBERS, min_size=1, unique=True), NUMBERS)
def test_places_do_not_depend_on_the_type(levels, value):
    place = levels.index(value) if value in levels else None
    for of_levels in (int, float, str, Decimal):
        known = [of_levels(v) for v in levels]
        for of_value in (int, float, str, Decimal):
            found = level_places([of_value(value)], known)
            assert list(found.values()) == ([] if place is None else [place])


def test_levels_that_are_equal_as_text_stay_two():
    assert level_places(["2", 2, 2.0, "x"], ["2", 2]) == {"2": 0.0, 2: 1.0}
    found = level_places(["02", None, float("nan"), Decimal("2.50")], [2, 2.5])
    assert found == {Decimal("2.5"): 1.0}


def test_a_pool_warns_of_a_column_once_per_call():
    pool = ordinal.fit_stacking(table(WORDS), Y, methods=["pom", "npsvor"])
    assert len(pool.members) > 1
    for call in (pool.predict, pool.explain):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ordinal.exceptions.UnknownLevelsWarning)
            call(table(np.char.upper(WORDS)))
        assert [str(c.message)[:16] for c in caught] == ["column 'g' of X "]
        assert caught[0].filename == __file__
