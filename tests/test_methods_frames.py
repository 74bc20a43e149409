"""Data frames, and columns by their names, in every `fit_*` of registry.py."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from registry import every_method
from strategies import raises, sample

from ordinal import kernels
from ordinal.sklearn import TableTransformer

X40, Y40 = sample(40, 3)
COLUMNS = ("age", "size", "a b")


def pandas(X, names):
    return pd.DataFrame(X, columns=list(names))


def polars(X, names):
    return pl.DataFrame(X, schema=list(names))


@every_method
def test_columns_are_found_by_name(method):
    """A frame of either kind can be predicted by a model of the other one."""
    plain = method(X40, Y40)
    assert plain.feature_names is None
    f, labels = method.numbers(plain, X40), plain.predict(X40)
    both = np.hstack([X40[:, ::-1], X40])
    for make, other in ((pandas, polars), (polars, pandas)):
        frame = make(X40, COLUMNS)
        model = method(frame, Y40)
        assert model.feature_names == COLUMNS
        shuffled = make(X40[:, [2, 0, 1]], ("a b", "age", "size"))
        wider = other(both, (*COLUMNS[::-1], "x", "y", "z"))
        for rows in (frame, shuffled, wider, X40):
            assert_array_equal(method.numbers(model, rows), f)
            assert_array_equal(model.predict(rows), labels)
        for name in COLUMNS:
            kept = [other for other in COLUMNS if other != name]
            raises(ValueError, f"^X has no column '{name}'", model.predict, frame[kept])
        # one that was fitted without names has but the order to go by
        assert_array_equal(method.numbers(plain, frame), f)
        with pytest.raises(ValueError, match="2 features, the model was fitted on 3"):
            plain.predict(frame[["age", "size"]])


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


@every_method
def test_columns_of_several_types_are_numbers(method):
    expected = method.numbers(method(MIXED, Y40), MIXED)
    for kind, make in MIXTURES.items():
        frame = make()
        found = method.numbers(method(frame, Y40), frame)
        assert_array_equal(found, expected, kind)


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


@every_method
def test_gaps_in_every_form_are_missing_values_or_refused_with_their_row(method):
    first, *others = gaps()
    if method.missing == "pearson":
        for frame in (first, *others):
            with pytest.raises(ValueError, match=r"^X must be finite; .* bad row is 3"):
                method(frame, Y40)
    if method.missing == "never":
        return
    options = {"kernel": kernels.Pearson()} if method.missing == "pearson" else {}
    expected = method.numbers(method(first, Y40, **options), first)
    for frame in others:
        found = method.numbers(method(frame, Y40, **options), frame)
        assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:.* has the index of X in another order")
@every_method
def test_rows_go_by_their_order_and_errors_name_columns(method):
    """Columns are found by name and not by their index."""
    index = np.random.default_rng(0).permutation(40)
    frame = pd.DataFrame(X40, columns=COLUMNS, index=index)
    weight = pd.Series(np.r_[np.zeros(1), np.ones(39)], index=np.arange(40)[::-1])
    a = method(frame, pd.Series(Y40), sample_weight=weight)
    b = method(X40, Y40, sample_weight=weight.to_numpy())
    assert_array_equal(method.numbers(a, frame), method.numbers(b, X40))
    frame = pd.DataFrame(X40, columns=COLUMNS).astype({"size": object})
    frame.loc[3, "size"] = "tall"
    raises(TypeError, r"^column 'size' of X .*'tall' in row 3", method, frame, Y40)
    twice = pd.DataFrame(X40, columns=["a", "a", "b"])
    for read in (method, TableTransformer().fit_transform):
        raises(ValueError, r"^X has two columns 'a' \(columns 1, 2", read, twice, Y40)
