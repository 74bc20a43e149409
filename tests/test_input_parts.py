"""Tests of the parts of the input layer by themselves: cells, columns, records, bases,
moments."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from internals import CSR, ChunkedProblem, Frame, Layout, Moments, read_frame, readers
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from ordinal._input import basis, columns, weights
from ordinal._input.columns import frame_columns
from ordinal._input.frame import Column, number_kind

NAN = np.nan
WORDS = np.array(["u", "v"])


# Cells


def test_cells_are_parted_as_csv_has_them():
    read = readers.parse('a;"b\r\nc"; d \r\n\r\n"e""f";1;2\r\n', Layout(";"))
    assert read.rows == [["a", "b\r\nc", "d"], ['e"f', "1", "2"]]
    assert read.lines == [2, 4]
    with pytest.raises(readers.csv.Error):
        readers.parse('"a"b,c\n', Layout())


@pytest.mark.parametrize(
    ("text", "decimal", "numbers"),
    [
        ("1 2.5 -3e2", ".", [1, 2.5, -300]),
        ("1,5 2", ",", [1.5, 2]),
        ("1,5 NA 2", ",", [1.5, NAN, 2]),
        ("1.5 2", ",", None),
        ("1.5 N/A ? Null 2", ".", [1.5, NAN, NAN, NAN, 2]),
        ("1_000 2", ".", None),
        ("inf 2", ".", None),
        ("a 2", ".", None),
        ("a NA", ".", None),
        ("NA ?", ".", [NAN, NAN]),
    ],
)
def test_numbers_of_cells(text, decimal, numbers):
    found = readers.as_numbers(text.split(), Layout(decimal=decimal))
    if numbers is None:
        assert found is None
    else:
        assert found.dtype == np.float64
        assert_array_equal(found, numbers)


# Records of tables


@pytest.mark.parametrize(
    ("column", "array"),
    [
        (Column(np.array([1.0, 2.0]), None, "whole"), np.array([1, 2])),
        (Column(np.array([1.0, NAN]), None, "whole"), np.array([1.0, NAN])),
        (Column(np.array([1.0, 2.0**53]), None, "whole"), np.array([1, 2**53])),
        (Column(np.array([1.0, 2.0**54]), None, "whole"), np.array([1.0, 2.0**54])),
        (Column(np.array([1.0, 0.0]), None, "truth"), np.array([True, False])),
        (Column(np.array([1.0, 0.5]), None, "number"), np.array([1.0, 0.5])),
        (
            Column(np.array([1.0, NAN, 0.0]), WORDS, "category"),
            np.array(["v", None, "u"], dtype=object),
        ),
        (
            Column(np.array([1.0, 0.0]), np.array([5, 7]), "ordered"),
            np.array([7, 5], dtype=object),
        ),
    ],
    ids=str,
)
def test_a_column_of_a_record_is_an_array(column, array):
    made = np.asarray(column)
    assert made.dtype == array.dtype
    assert made.tolist() == pytest.approx(array.tolist(), nan_ok=True)
    assert len(column) == len(array)
    if column.labels is None:
        assert np.asarray(column, np.float32).dtype == np.float32


def test_a_record_of_numbers_is_an_array():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    record = Frame.of_numbers(values, ("a", "b"))
    assert np.asarray(record) is values
    assert np.asarray(record, np.float32).dtype == np.float32
    copied = np.array(record, copy=True)
    assert not np.shares_memory(copied, values)
    assert_array_equal(copied, values)
    assert copied.dtype == np.float64
    assert number_kind(np.dtype(np.float32)) == "number"
    words = Frame(
        values - 1, None, (None, np.array(list("uvwx"))), ("number", "category")
    )
    with pytest.raises(TypeError, match=r"^column 1 holds categories, not numbers$"):
        np.asarray(words)


def test_a_record_is_taken_as_it_is_where_it_has_the_columns_asked_for():
    record = Frame.of_numbers(np.eye(2), ("a", "b"))
    assert read_frame(record) is record
    assert read_frame(record, ("a", "b")) is record
    turned = read_frame(record, ("b", "a"))
    assert turned.names == ("b", "a")
    assert_array_equal(turned.values, [[0, 1], [1, 0]])


# Columns


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: columns.is_frame(pl.LazyFrame({"a": [1]})),
            TypeError,
            r"a LazyFrame holds no rows yet: pass X\.collect\(\)",
        ),
        (
            lambda: columns.feature_names(pd.DataFrame([[1, 2, 3]], columns=[*"abb"])),
            ValueError,
            "X has two columns 'b'",
        ),
        (
            lambda: columns.column_number(True, ("a", "b"), "monotone"),
            ValueError,
            "monotone must name columns or number them 0 to 1, got True",
        ),
        (
            lambda: columns.column_number(2, ("a", "b"), "monotone"),
            ValueError,
            "monotone must name columns or number them 0 to 1, got 2",
        ),
        (
            lambda: columns.column_number("c", ("a", "b"), "monotone"),
            ValueError,
            r"monotone names 'c', which is not among \['a', 'b'\]",
        ),
        (
            lambda: columns.numbers_of(np.array(["2020"], "M8[D]"), "column 'a'"),
            TypeError,
            r"column 'a' must hold real numbers, got .*2020.* in row 0; make numbers "
            "of dates, such as the days since one, or the month",
        ),
        (
            lambda: columns.numbers_of([datetime.date(2020, 1, 1)], "column 'a'", True),
            TypeError,
            r"column 'a' must hold real numbers, got .* in row 0; make numbers of "
            "dates, such as the days since one, or the month",
        ),
        (
            lambda: columns.numbers_of(["x", "y"], "column 'a'", True),
            TypeError,
            "column 'a' must hold real numbers, got 'x' in row 0; words need "
            r"ordinal\.preprocessing\.TablePreprocessor",
        ),
        (
            lambda: columns.numbers_of(["x", "y"], "y"),
            TypeError,
            "y must hold real numbers, got 'x' in row 0",
        ),
        (
            lambda: columns.column_categories(pd.DataFrame({"a": [1.5, "x"]}), ["a"]),
            TypeError,
            "column 'a' must hold integers or strings, got float 1.5 in row 0",
        ),
    ],
)
def test_what_columns_may_not_be(call, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        call()


def test_columns_are_chosen_as_categories_by_name_or_number():
    frame = pd.DataFrame({"a": [3, 1], "b": ["x", "w"], "c": [1.0, 2.0]})
    for chosen in (["a"], [0]):
        known = columns.column_categories(frame, chosen)
        assert [None if k is None else k.tolist() for k in known] == [
            [1, 3], ["w", "x"], None,
        ]  # fmt: skip
    declared = pd.Categorical(["x", "w"], ["x", "w", "v"])
    (known,) = columns.column_categories(pd.DataFrame({"b": declared}))
    assert known.tolist() == ["x", "w"]
    with pytest.raises(ValueError, match=r"^categorical names 'd', which is not among"):
        columns.column_categories(frame, ["d"])
    assert frame_columns(Frame.of_numbers(np.eye(2), None))[1].values.tolist() == [0, 1]


def test_matrices_without_names_have_columns_by_number():
    assert read_frame([[1.0, "u"], [2.0, "v"]]).names is None
    with pytest.raises(TypeError, match="column 'x2' of X"):
        read_frame([[1.0, "u"], [2.0, 7]])


@pytest.mark.parametrize("ordered", [False, True])
def test_categories_that_are_no_labels_have_the_name_of_their_column(ordered):
    column = pd.Categorical([1j, 2j], [2j, 1j], ordered=ordered)
    with pytest.raises(TypeError, match=r"^column 'b' must hold .* dtype complex128$"):
        read_frame(pd.DataFrame({"b": column}))


# Bases


@pytest.mark.parametrize(
    ("given", "share_of", "way", "m", "left"),
    [
        ("auto", None, "auto", 0, None),
        (("kmeans++", 7), None, "kmeans++", 7, None),
        (5, None, "random", 5, None),
        (np.int64(5), 40, "random", 5, None),
        (0.25, None, "cholesky", 0, 0.25),
        (0.24, 40, "random", 10, None),
        (0.001, 40, "random", 1, None),
        (1.0, 40, "random", 40, None),
        ([3, 0], None, "numbers", 0, None),
        (np.eye(2), None, "own", 0, None),
        (sparse.csr_array(np.eye(2)), None, "own", 0, None),
    ],
)
def test_a_basis_is_chosen(given, share_of, way, m, left):
    choice = basis.read_choice(given, 9, 2, share_of)
    assert (choice.way, choice.m, choice.left) == (way, m, left)
    if way == "numbers":
        assert_array_equal(choice.rows, [0, 3])
        assert choice.rows.dtype == np.intp
    if way == "own":
        assert len(choice.rows) == 2


COUNT = (
    "basis must be a count, a %s, 'auto', \\(way, count\\), row numbers or rows, got "
)
TRACE, SHARE = COUNT % "part of the trace", COUNT % "share of the rows"
PLAIN = "basis must be a count, a share of the rows or a vector of row numbers, got "


@pytest.mark.parametrize(
    ("given", "share_of", "message"),
    [
        ("best", None, "basis as a word must be one of 'auto', got 'best'"),
        (("best", 3), None, r"basis\[0\] must be .*, got 'best'"),
        (("random", 0), None, r"basis\[1\] must be .*, got 0"),
        (0, None, "basis must be .*, got 0"),
        (1.5, None, "basis as a part of the trace must be .*, got 1.5"),
        (1.5, 40, r"basis as a share must be in \(0, 1\], got 1.5"),
        (0.0, 40, r"basis as a share must be in \(0, 1\], got 0.0"),
        (True, None, f"{TRACE}True"),
        ([], None, rf"{TRACE}\[\]"),
        ([0.5], 40, rf"{SHARE}\[0.5\]"),
        ([9], None, "basis names row 9, X has 9 rows"),
        ([-1], None, "basis names row -1, X has 9 rows"),
        ([4, 2, 4], None, "basis names row 4 more than once"),
        (np.eye(3), None, "basis has 3 columns, X has 2"),
    ],
)
def test_what_no_basis_is(given, share_of, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}$"):
        basis.read_choice(given, 9, 2, share_of)


def test_a_basis_of_a_proximal_fit():
    assert basis.read_basis(3, 9) == 3
    assert basis.read_basis(0.5, 9) == 0.5
    assert basis.read_basis(1.0, 9) == 1.0
    assert_array_equal(basis.read_basis([8, 0], 9), [0, 8])
    assert_array_equal(basis.read_basis([1], 9), [1])
    for given, message in [
        (0, "basis must be .*, got 0"),
        (1.5, r"basis as a share must be in \(0, 1\], got 1\.5"),
        (False, f"{PLAIN}False"),
        (np.eye(2), rf"{PLAIN}array\(.*"),
        (np.zeros((1, 0)), rf"{PLAIN}array\(.*"),
        ([9], "basis names row 9, X has 9 rows"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}$"):
            basis.read_basis(given, 9)


# Moments


def test_moments_of_standardised_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1e-3, 1.0, 1e5] + [1.0, -2.0, 0.0]
    w = rng.uniform(1, 2, 50)
    mean, scale = np.array([1.0, -1.0, 2.0]), np.array([1e-3, 2.0, 7.0])
    made = Moments.from_rows(X, w).standardized(mean, scale)
    direct = Moments.from_rows((X - mean) / scale, w)
    for a, b in zip(made.mean_and_variance(), direct.mean_and_variance(), strict=True):
        assert_allclose(a, b, rtol=1e-9)
    assert_allclose(made.low, direct.low)
    assert_allclose(made.high, direct.high)
    assert_array_equal(made.exponent, direct.exponent)
    assert made.weight == direct.weight


def test_blocks_without_weight_leave_the_moments_as_they_are():
    class Source:
        def blocks(self):
            yield [[1.0], [3.0]], [0, 1], [1.0, 1.0]
            yield [[9.0]], [0], [0.0]

    problem = ChunkedProblem.from_source(Source())
    mean, scale = problem.moments.mean_and_scale()
    assert (mean, scale) == (2.0, 1.0)


# Weights and sparse rows


def test_shares_of_weights():
    assert_allclose(weights.shares(np.array([1e300, 3e300])), [0.25, 0.75])


def test_a_sparse_matrix_says_what_its_rows_are():
    class Other:
        shape, nnz = (2, 2), 0

        def tocsr(self):
            return 7

    with pytest.raises(
        TypeError, match=r"^X\.tocsr\(\) must give a CSR matrix, got 7$"
    ):
        CSR.from_any(Other(), "X")
    empty = CSR.from_any(sparse.csr_array((2, 3)), "X")
    assert empty.sq_norms().dtype == np.float64
    assert_array_equal(empty.sq_norms(), [0, 0])
