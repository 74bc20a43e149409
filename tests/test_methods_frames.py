"""Data frames, and columns by their names, in every `fit_*` of registry.py."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from files import copies
from numpy.testing import assert_array_equal
from registry import every_method, which
from strategies import sample

from ordinal import kernels

X40, Y40 = sample(40, 3)
COLUMNS = ("age", "size", "a b")
FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=list(names)),
    "polars": lambda X, names: pl.DataFrame(X, schema=list(names)),
}
every_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)


@every_frame
@every_method
def test_columns_are_found_by_name(method, make):
    frame = make(X40, COLUMNS)
    model = method(frame, Y40)
    assert model.feature_names == COLUMNS
    expected = method(X40, Y40)
    assert expected.feature_names is None
    f = method.numbers(expected, X40)
    labels = expected.predict(X40)
    shuffled = make(X40[:, [2, 0, 1]], ("a b", "age", "size"))
    wider = make(np.hstack([X40[:, ::-1], X40]), ("a b", "size", "age", "x", "y", "z"))
    for rows in (frame, shuffled, wider, X40):
        assert_array_equal(method.numbers(model, rows), f)
        assert_array_equal(model.predict(rows), labels)
    for name in COLUMNS:
        kept = [other for other in COLUMNS if other != name]
        with pytest.raises(ValueError, match=f"^X has no column '{name}'"):
            model.predict(frame[kept])
    # one that was fitted without names has but the order to go by
    assert_array_equal(method.numbers(expected, frame), f)
    with pytest.raises(ValueError, match="2 features, the model was fitted on 3"):
        expected.predict(frame[["age", "size"]])


@every_method
def test_frames_of_either_kind_are_one(method):
    model = method(FRAMES["pandas"](X40, COLUMNS), Y40)
    rows = FRAMES["polars"](X40[:, ::-1], COLUMNS[::-1])
    assert_array_equal(method.numbers(model, rows), method.numbers(model, X40))


@every_method
def test_names_survive_files_and_pickles(method, tmp_path):
    model = method(FRAMES["pandas"](X40, COLUMNS), Y40)
    rows = FRAMES["pandas"](X40[:, ::-1], COLUMNS[::-1]).assign(more="no number")
    for same in copies(model, tmp_path):
        assert same.feature_names == COLUMNS
        assert_array_equal(method.numbers(same, rows), method.numbers(model, X40))


WHOLE, TRUE = np.rint(3 * X40[:, 1]).astype(np.int8), X40[:, 2] > 0
MIXED = np.column_stack([X40[:, 0], WHOLE, TRUE])


def mixture(*columns):
    return dict(zip(COLUMNS, columns, strict=True))


MIXTURES = {  # what holds the numbers of MIXED
    "of their own": lambda: pd.DataFrame(mixture(X40[:, 0], WHOLE, TRUE)),
    "nullable": lambda: pd.DataFrame(
        mixture(
            pd.array(X40[:, 0], dtype="Float64"),
            pd.array(WHOLE, dtype="Int8"),
            pd.array(TRUE, dtype="boolean"),
        )
    ),
    "objects": lambda: pd.DataFrame(MIXED, columns=COLUMNS).astype(object),
    "get_dummies": lambda: pd.get_dummies(
        pd.DataFrame(mixture(X40[:, 0], WHOLE, np.where(TRUE, "yes", "no")))
    )[["age", "size", "a b_yes"]],
    "polars": lambda: pl.DataFrame(mixture(X40[:, 0], WHOLE, TRUE)),
}


@pytest.mark.parametrize("make", MIXTURES.values(), ids=MIXTURES)
@every_method
def test_columns_of_several_types_are_numbers(method, make):
    frame = make()
    expected = method(MIXED, Y40)
    model = method(frame, Y40)
    assert_array_equal(method.numbers(model, frame), method.numbers(expected, MIXED))


def gaps():
    """Rows with an entry that is not known, in every way of saying so."""
    X = X40.copy()
    X[3, 1] = np.nan
    nullable = pd.DataFrame(X40, columns=COLUMNS).astype("Float64")
    nullable.loc[3, "size"] = pd.NA
    objects = pd.DataFrame(X40, columns=COLUMNS).astype(object)
    objects.loc[3, "size"] = None
    return [
        pd.DataFrame(X, columns=COLUMNS),
        nullable,
        objects,
        pl.DataFrame(X, schema=list(COLUMNS)).fill_nan(None),
    ]


@which(missing="pearson")
def test_gaps_are_refused_with_their_row(method):
    for frame in gaps():
        with pytest.raises(ValueError, match=r"^X must be finite; first bad row is 3"):
            method(frame, Y40)


@which(missing="pearson", takes="kernel")
def test_gaps_go_with_the_kernel_that_takes_them(method):
    first, *others = gaps()
    expected = method(first, Y40, kernel=kernels.Pearson())
    for frame in others:
        model = method(frame, Y40, kernel=kernels.Pearson())
        assert_array_equal(
            method.numbers(model, frame), method.numbers(expected, first)
        )


@which(missing="always")
def test_gaps_are_missing_values(method):
    first, *others = gaps()
    expected = method(first, Y40)
    for frame in others:
        model = method(frame, Y40)
        assert_array_equal(
            method.numbers(model, frame), method.numbers(expected, first)
        )


@every_method
def test_an_error_names_the_column(method):
    frame = pd.DataFrame(X40, columns=COLUMNS).astype({"size": object})
    frame.loc[3, "size"] = "tall"
    with pytest.raises(TypeError, match=r"^column 'size' of X .*'tall' in row 3"):
        method(frame, Y40)
    model = method(pd.DataFrame(X40, columns=COLUMNS), Y40)
    with pytest.raises(TypeError, match=r"^column 'size' of X .*'tall' in row 3"):
        model.predict(frame)
    twice = pd.DataFrame(X40, columns=["a", "a", "b"])
    with pytest.raises(ValueError, match=r"^X has two columns 'a'"):
        method(twice, Y40)


@every_method
def test_the_rows_of_a_frame_go_by_their_order(method):
    """Columns are found by name and not by their index."""
    index = np.random.default_rng(0).permutation(40)
    frame = pd.DataFrame(X40, columns=COLUMNS, index=index)
    weight = pd.Series(np.r_[np.zeros(1), np.ones(39)], index=np.arange(40)[::-1])
    a = method(frame, pd.Series(Y40), sample_weight=weight)
    b = method(X40, Y40, sample_weight=weight.to_numpy())
    assert_array_equal(method.numbers(a, frame), method.numbers(b, X40))
