"""Training data: accepted forms, their meaning, and every refusal."""

import copy
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import (
    CSR,
    Frame,
    Problem,
    check_cost,
    classes_in_rank_order,
    read_features,
    read_labels,
    score_tables,
    values_of,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from ordinal._input.checks import (
    as_real_array,
    can_be_listed,
    check_choice,
    check_count,
    check_flag,
    check_nonnegative,
    check_positive,
    resolve_rng,
)
from ordinal._input.labels import is_missing, ranks_of
from ordinal._input.problem import around_ranks
from ordinal._input.sparse import read_only
from ordinal._input.weights import absolute_cost


def problem(y, **options):
    return Problem.from_arrays(np.ones((len(y), 1)), y, **options)


def refused(error, message):
    return pytest.raises(error, match=f"^{message}")


# Labels


@pytest.mark.parametrize(
    ("y", "classes", "rank"),
    [
        ([7, -2, 7, 4], [-2, 4, 7], [2, 0, 2, 1]),
        ([True, False], [False, True], [1, 0]),
        ([2.0, 1.0, 2.0], [1.0, 2.0], [1, 0, 1]),
        (np.array([3, 200], np.uint8), [3, 200], [0, 1]),
        (np.array([3, 1], ">i2"), [1, 3], [1, 0]),
        (pd.Series([5, 3], index=[8, 9]), [3, 5], [1, 0]),
        (pd.Series([5, 3], dtype="Int64"), [3, 5], [1, 0]),
        (pl.Series([5, 3]), [3, 5], [1, 0]),
    ],
)
def test_numbers_are_ranked_by_value(y, classes, rank):
    p = problem(y)
    assert_array_equal(p.classes, classes)
    assert_array_equal(p.rank, rank)
    assert p.rank.dtype == np.int32
    assert p.classes.dtype == np.asarray(y).dtype
    assert (p.n_samples, p.n_features, p.n_classes) == (len(y), 1, len(classes))


SIZES = ["small", "medium", "large"]


@pytest.mark.parametrize(
    "y",
    [
        pd.Categorical(["large", "small"], categories=SIZES, ordered=True),
        pd.Series(pd.Categorical(["large", "small"], categories=SIZES, ordered=True)),
        pl.Series(["large", "small"], dtype=pl.Enum(SIZES)),
    ],
    ids=["Categorical", "Series", "Enum"],
)
def test_ordered_categoricals_bring_their_order(y):
    p = problem(y)
    assert_array_equal(p.classes, SIZES)
    assert p.classes.dtype.kind == "U"
    assert_array_equal(p.rank, [2, 0])
    assert_array_equal(p.present, [True, False, True])
    assert_array_equal(problem(y, classes=SIZES[::-1]).rank, [0, 2])


def test_a_categorical_of_integers_keeps_its_own_order():
    y = pd.Categorical([1, 2, 3], categories=[3, 1, 2], ordered=True)
    assert_array_equal(problem(y).rank, [1, 2, 0])
    assert problem(y).classes.dtype.kind == "i"


@pytest.mark.parametrize(
    "kind",
    [
        list,
        np.array,
        lambda y: np.array(y, dtype=object),
        pd.Series,
        pd.Categorical,
        pl.Series,
        lambda y: pl.Series(y, dtype=pl.Categorical),
    ],
)
def test_strings_are_ranked_by_classes(kind):
    p = problem(kind(["large", "small"]), classes=SIZES)
    assert_array_equal(p.rank, [2, 0])
    assert_array_equal(p.classes, SIZES)
    assert p.classes.dtype.kind == "U"


def test_classes_may_rank_numbers_too_and_name_more_than_there_are():
    p = problem([1, 3], classes=[3, 2, 1])
    assert_array_equal(p.rank, [2, 0])
    assert_array_equal(p.present, [True, False, True])
    assert_array_equal(problem([0.5, 1.0], classes=[0.5, 1, 1.5]).rank, [0, 1])


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="numpy 1")
def test_strings_of_variable_width_are_strings():
    p = problem(np.array(["b", "a"], dtype=np.dtypes.StringDType()), classes=["b", "a"])
    assert_array_equal(p.rank, [0, 1])
    with refused(TypeError, "y holds strings"):
        problem(np.array(["b", "a"], dtype=np.dtypes.StringDType()))


def test_the_callers_classes_stay_his_own():
    classes = np.array([0, 1])
    p = problem([0, 1], classes=classes)
    classes[0] = 7
    assert_array_equal(p.classes, [0, 1])


def test_what_is_made_of_labels_is_read_only_and_plain():
    y, given = np.array([2, 0, 2]), np.array([0, 2])
    for classes in (classes_in_rank_order(y, None), classes_in_rank_order(y, given)):
        rank = ranks_of(y, classes)
        assert rank.tolist() == [1, 0, 1]
        assert rank.dtype == np.int32
        assert not rank.flags.writeable
        assert not classes.flags.writeable
    assert given.flags.writeable


def test_no_labels_of_text_are_still_text():
    assert read_labels(np.array([], dtype=object), "y").dtype.kind == "U"


def test_missing_labels_have_no_truth_value():
    assert all(is_missing(label) for label in (None, np.nan, np.float64("nan"), pd.NA))
    assert not any(is_missing(label) for label in (0, 0.5, "", "nan", np.inf))


def test_large_integers_are_not_confused_by_rounding():
    y = np.array([2**53, 2**53 + 1, 2**63 + 5], dtype=np.uint64)
    assert_array_equal(problem(y, classes=y[[1, 2, 0]]).rank, [2, 0, 1])
    with refused(ValueError, f"y holds {2**53 + 1} in row 1, which is not among"):
        problem(y, classes=np.array([2.0**53, 2.0**63]))


@given(hnp.arrays(np.int64, st.integers(2, 20), elements=st.integers(-5, 5)))
def test_classes_of_ranks_are_the_labels(y):
    if np.unique(y).size < 2:
        with refused(ValueError, "y needs at least 2 classes"):
            problem(y)
        return
    p = problem(y)
    assert_array_equal(p.classes[p.rank], y)
    assert (np.diff(p.classes) > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        p.classes[0] = 9


class Unequal:
    """A label that is neither a number nor a string."""

    def __repr__(self):
        return "Unequal()"


@pytest.mark.parametrize(
    ("y", "classes", "error", "message"),
    [
        (["low", "high"], None, TypeError, r"y holds .*classes=\['high', 'low'\] in"),
        (
            [1, "a"],
            None,
            TypeError,
            "y must hold integers or strings, got int 1 in row",
        ),
        ([0.0, 1.5], None, ValueError, "y holds 1.5 in row 1, .*ordinal.preprocessing"),
        ([0.0, np.nan], None, ValueError, "y holds nan in row 1"),
        ([0.0, np.inf], None, ValueError, "y holds inf in row 1"),
        ([1j, 2j], None, TypeError, "y must hold .*complex128"),
        ([b"a", b"b"], ["a", "b"], TypeError, "y must hold .*S1"),
        (np.array([0, 1], "M8[s]"), None, TypeError, "y must hold .*datetime64"),
        ([Unequal(), 1], None, TypeError, r"y must .* Unequal Unequal\(\) in row 0"),
        (["a", None], ["a", "b"], ValueError, "y has no label in row 1"),
        (pd.Series(["a", None]), ["a", "b"], ValueError, "y has no label in row 1"),
        ([pd.NA, "a"], ["a", "b"], ValueError, "y has no label in row 0"),
        (pd.Series([1, None], dtype="Int64"), None, ValueError, "y holds nan in row 1"),
        (np.ma.array([0, 1], mask=[0, 1]), None, TypeError, "y is a masked array"),
        ([[0], [1]], None, ValueError, r"y must be 1-dimensional, got shape \(2, 1\)"),
        ([[0], [1, 2]], None, ValueError, "y is not an array"),
        ([0, 1, 2], None, ValueError, r"y has shape \(3,\), expected \(2,\) as X"),
        ([4, 4], None, ValueError, r"y needs at least 2 classes .* got \[4\]"),
        ([4, 4], [4, 5], ValueError, r"y needs at least 2 classes .* got \[4\]"),
        ([0, 3], [0, 1], ValueError, r"y holds 3 in row 1, .*classes=\[0, 1\]"),
        ([0, 1], ["0", "1"], ValueError, "y holds 0 in row 0, which is not among"),
        (["1", "0"], [0, 1], ValueError, "y holds '1' in row 0, which is not among"),
        ([0, 1], [0, 1, 0], ValueError, r"classes must be distinct, got \[0\]"),
        ([0, 1], [0, "a"], TypeError, "classes must hold integers or strings"),
        ([0, 1], {0, 1}, ValueError, r"classes must be 1-dimensional, got shape \(\)"),
        ([0, 1], ["0", None], ValueError, "classes has no label in row 1"),
        (
            pd.Categorical(["b", "a"]),
            None,
            TypeError,
            r"y is an unordered categorical.*classes=\['a', 'b'\] in rank order",
        ),
        (
            pl.Series(["b", "a"], dtype=pl.Categorical),
            None,
            TypeError,
            "y is an unordered categorical",
        ),
        (
            pd.Categorical(["a", None], categories=["a", "b"], ordered=True),
            None,
            ValueError,
            "y has no label in row 1",
        ),
        (
            pl.Series(["a", None], dtype=pl.Enum(["a", "b"])),
            None,
            ValueError,
            "y has no label in row 1",
        ),
        (
            pd.Categorical([1, None], categories=[1, 2], ordered=True),
            None,
            ValueError,
            "y holds nan in row 1",
        ),
        (
            pd.cut([1.0, 2.0], 2),
            None,
            TypeError,
            "the categories of y must hold integers or strings, got Interval",
        ),
    ],
)
def test_labels_without_a_clear_rank_are_refused(y, classes, error, message):
    with refused(error, message):
        Problem.from_arrays(np.ones((2, 1)), y, classes=classes)


def test_the_list_of_labels_is_cut_short():
    with refused(TypeError, r"y .*classes=\['a', .*'i', 'j', \.\.\.\] in rank order"):
        problem([*"abcdefghijklm"])


# Weights


def test_weights_default_to_one():
    p = problem([0, 1])
    assert_array_equal(p.weight, [1, 1])
    assert_array_equal(p.sample_weight, [1, 1])
    assert p.weight.dtype == p.sample_weight.dtype == np.float64


def test_class_weights_multiply_sample_weights():
    p = problem([0, 1, 1], sample_weight=[1, 2, 3], class_weight={1: 10})
    assert_array_equal(p.weight, [1, 20, 30])
    assert_array_equal(p.sample_weight, [1, 2, 3])
    p = problem(["b", "a"], classes=["b", "a"], class_weight={"b": 0.5})
    assert_array_equal(p.weight, [0.5, 1])


def test_the_callers_weights_stay_his_own():
    w = np.array([1.0, 2.0])
    p = problem([0, 1], sample_weight=w)
    w[0] = 7
    assert_array_equal(p.sample_weight, [1, 2])


def test_a_class_of_no_weight_is_not_present():
    p = problem([0, 1, 2], sample_weight=[1, 0, 2])
    assert_array_equal(p.present, [True, False, True])
    p = problem([0, 1, 2], class_weight={0: 0})
    assert_array_equal(p.present, [False, True, True])


def test_ranks_are_counted_among_the_classes_that_are_present():
    p = problem([0, 2, 4, 1, 5, 4], classes=range(6), sample_weight=[1, 2, 1, 0, 0, 3])
    assert_array_equal(p.rank_among_present[p.weight > 0], [0, 1, 2, 2])
    assert p.rank_among_present.dtype == np.int32
    assert set(p.rank_among_present) == {0, 1, 2}  # those of the others are some rank


def test_thresholds_of_absent_ranks_are_those_beside_them():
    got = around_ranks(np.array([1.0, 2.0]), np.array([1, 3, 4]), 7)
    assert got.tolist() == [-np.inf, 1, 1, 2, np.inf, np.inf]
    assert around_ranks(np.array([5.0]), np.array([0, 1]), 2).tolist() == [5]


labels_and_weights = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12
).filter(lambda rows: len({y for y, w in rows if w}) >= 2)


@given(labels_and_weights)
def test_balanced_weights_count_a_row_of_weight_2_as_two_rows(rows):
    y, w = np.array(rows).T
    p = problem(y, sample_weight=w, class_weight="balanced")
    twice = problem(np.repeat(y, w), class_weight="balanced")
    expected = np.zeros(y.size)
    np.add.at(expected, np.repeat(np.arange(y.size), w), twice.weight)
    assert_allclose(p.weight, expected, rtol=1e-14)
    # every class that is present ends with the same share of the total
    of_class = np.bincount(p.rank, p.weight)[p.present]
    assert_allclose(of_class, w.sum() / p.present.sum(), rtol=1e-14)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([1.0], ValueError, r"sample_weight has shape \(1,\), expected \(2,\) as X"),
        (1.0, ValueError, r"sample_weight has shape \(\), expected \(2,\) as X"),
        ([1, -2], ValueError, "sample_weight must be .* got -2.0 in row 1"),
        ([np.nan, 1], ValueError, "sample_weight must be .* got nan in row 0"),
        ([1, np.inf], ValueError, "sample_weight must be .* got inf in row 1"),
        ([0, 0], ValueError, "sample_weight must not be zero everywhere"),
        ([1, 0], ValueError, r"y needs at least 2 classes .* got \[0\]"),
        ([1e308, 1e308], ValueError, "the sum of sample_weight must be .* got inf"),
        (["a", "b"], TypeError, "sample_weight must hold real numbers, got dtype <U1"),
        ([1, None], TypeError, "sample_weight must hold real numbers, got dtype obj"),
    ],
)
def test_unusable_sample_weights_are_refused(weight, error, message):
    with refused(error, message):
        problem([0, 1], sample_weight=weight)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("even", "class_weight must be None, 'balanced' or a mapping .* got 'even'"),
        ([1, 2], r"class_weight must be None, .* got \[1, 2\]"),
        ({2: 1.0}, r"class_weight names 2, which is not among classes=\[0, 1\]"),
        ({0: -1}, r"class_weight\[0\] must be a finite number >= 0, got -1"),
        ({0: np.nan}, r"class_weight\[0\] must be a finite number >= 0, got nan"),
        ({0: "1"}, r"class_weight\[0\] must be a finite number >= 0, got '1'"),
        ({0: 0}, r"y needs at least 2 classes with positive weight, got \[1\]"),
    ],
)
def test_unusable_class_weights_are_refused(weight, message):
    with refused(ValueError, message):
        problem([0, 1], class_weight=weight)


def test_weights_that_overflow_are_refused():
    with refused(ValueError, "the sum of sample_weight must be between 1e-50 and"):
        problem([0, 1], sample_weight=[1e308, 1e308], class_weight="balanced")


# Features


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2], [3, 4]],
        np.array([[1.0, 2.0], [3.0, 4.0]], order="F"),
        np.array([[1, 0, 2], [3, 0, 4]], dtype=np.float32)[:, ::2],
        np.array([[1, 2], [3, 4]], dtype=">f8"),
        np.frombuffer(b"0" + np.arange(1.0, 5).tobytes(), "f8", offset=1).reshape(2, 2),
        pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}, index=[5, 6]),
        pl.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
    ],
)
def test_features_become_aligned_rows_of_doubles(X):
    a = read_features(X)
    assert_array_equal(a, [[1, 2], [3, 4]])
    assert type(a) is np.ndarray
    assert a.dtype == np.float64
    assert a.dtype.isnative
    assert a.flags.c_contiguous
    assert a.flags.aligned


def test_features_that_are_right_already_are_not_copied():
    X = np.ones((3, 2))
    assert np.shares_memory(read_features(X), X)
    assert X.flags.writeable


def test_booleans_are_numbers():
    assert_array_equal(read_features([[True], [False]]), [[1], [0]])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([0.0, 1.0], ValueError, r"X must be 2-dimensional and non-.* shape \(2,\)"),
        (np.ones((0, 2)), ValueError, r"X must be 2-dimensional and non-.*\(0, 2\)"),
        (np.ones((2, 0)), ValueError, "X must be 2-dimensional and non-empty"),
        (sparse.csr_array((0, 2)), ValueError, "X must be 2-dimensional and non-empty"),
        (
            [[0, 1], [np.nan, 1], [1, np.inf]],
            ValueError,
            "X must be .*; first bad row is 1",
        ),
        ([[1j]], TypeError, "X must hold real numbers, got dtype complex128"),
        (
            [["a", 1]],
            TypeError,
            "column 0 of X must hold real numbers, got 'a' in row 0",
        ),
        ([[None, 1]], ValueError, "X must be finite; .* 0, with nan in column 0"),
        (np.zeros((1, 1), "m8[s]"), TypeError, "X must hold real numbers, got dtype t"),
        ([[1], [1, 2]], ValueError, "X is not an array"),
        (np.ma.ones((2, 2)), TypeError, "X is a masked array"),
        (np.array([["a"]]), TypeError, "X must hold real numbers, got dtype <U1"),
        (np.ones((2, 3)), ValueError, "X has 3 features, the model was fitted on 2"),
        (sparse.csr_array(np.ones((2, 1))), ValueError, "X has 1 features, the model"),
    ],
)
def test_unusable_features_are_refused(X, error, message):
    with refused(error, message):
        read_features(X, n_features=2)


def test_a_problem_counts_the_categories_it_is_told():
    X, order = pd.DataFrame({"a": ["u", "v"]}), (np.array(["v", "u"]),)
    assert Problem.from_arrays(X, [0, 1], categories=order).X.tolist() == [[1], [0]]
    assert read_features([["u"], ["v"]], categories=order).tolist() == [[1], [0]]
    X, order = [[1, 3], [3, 1]], np.array([3, 1])
    assert read_features(X, categories=(order, None)).tolist() == [[1, 3], [0, 1]]
    assert read_features(X, categories=(order, order)).tolist() == [[1, 0], [0, 1]]


def test_a_record_is_read_in_the_order_of_the_model():
    record = Frame.of_numbers(np.array([[1.0, 2.0]]), ("a", "b"))
    assert read_features(record, feature_names=("b", "a")).tolist() == [[2, 1]]
    assert read_features(record, feature_names=("a", "b")) is record.values
    with refused((TypeError, ValueError), ".*column 'a'"):  # it holds numbers
        read_features(record, categories=(np.array(["u", "v"]), None))


def test_missing_entries_pass_where_they_are_asked_for():
    X = np.array([[0.0, np.nan], [1.0, 2.0]])
    assert read_features(X, missing=True) is X
    assert Problem.from_arrays(X, [0, 1], missing=True).X is X
    with refused(ValueError, "X must be finite; first bad row is 0"):
        Problem.from_arrays(X, [0, 1])
    X[1, 1] = -np.inf
    with refused(ValueError, "X must be finite or NaN; first bad row is 1"):
        read_features(X, missing=True)
    with refused(ValueError, "X must be finite; first bad row is 0"):
        read_features(sparse.csr_array(X), missing=True)


def test_the_argument_is_called_by_its_name():
    with refused(ValueError, "basis must be 2-dimensional"):
        read_features([1.0], name="basis")
    for empty in (sparse.csr_array((0, 2)), pd.DataFrame({"a": []})):
        with refused(ValueError, "basis must be 2-dimensional"):
            read_features(empty, name="basis")
    with refused(ValueError, "basis has 1 features, the model was fitted on 2"):
        read_features(pd.DataFrame({"a": [1]}), 2, name="basis")
    with refused(ValueError, "basis is not an array"):
        read_features([[1], [1, 2]], name="basis")
    with refused(ValueError, "basis has 1 features, the model was fitted on 2"):
        read_features([["a"]], 2, name="basis")
    with refused(TypeError, "column 'a' of basis must hold real numbers, got 'u'"):
        read_features(pd.DataFrame({"a": ["u"]}), name="basis")
    with refused(ValueError, "basis must be finite"):
        read_features(sparse.csr_array([[np.nan]]), name="basis")
    with refused(TypeError, "column 1 of basis must hold real numbers, got 'a' in row"):
        read_features([[0, "a"]], name="basis")


# Sparse features


@st.composite
def triplets(draw):
    """(dense matrix, CSR with rows unsorted and some columns held twice)."""
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    entries = st.tuples(st.integers(0, d - 1), st.integers(-3, 3))
    rows = [draw(st.lists(entries, max_size=7)) for _ in range(n)]
    dense = np.zeros((n, d))
    for i, row in enumerate(rows):
        for j, value in row:
            dense[i, j] += value
    flat = np.array([e for row in rows for e in row], dtype=np.int64).reshape(-1, 2)
    indptr = np.cumsum([0, *map(len, rows)])
    data = flat[:, 1].astype(float)
    return dense, sparse.csr_matrix((data, flat[:, 0], indptr), shape=(n, d))


@given(triplets(), st.data())
def test_sparse_and_dense_agree(pair, data):
    dense, X = pair
    a = read_features(X)
    n = len(dense)
    assert isinstance(a, CSR)
    assert len(a) == n
    assert (a.data.dtype, a.indices.dtype, a.indptr.dtype) == ("f8", "i4", "i8")
    assert_array_equal(a.dense(), dense)
    assert_array_equal(a.sq_norms(), (dense**2).sum(axis=1))
    for i in range(n):  # canonical: sorted, and no column twice
        assert (np.diff(a.indices[a.indptr[i] : a.indptr[i + 1]]) > 0).all()

    start, stop = data.draw(st.integers(-7, 7)), data.draw(st.integers(-7, 7))
    assert_array_equal(a.dense(start, stop), dense[start:stop])
    assert_array_equal(a.rows(slice(start, stop)).dense(), dense[start:stop])
    index = data.draw(
        hnp.arrays(int, st.integers(0, 8), elements=st.integers(-n, n - 1))
    )
    assert_array_equal(a.rows(index).dense(), dense[index])
    mask = data.draw(hnp.arrays(bool, n))
    assert_array_equal(a.rows(mask).dense(), dense[mask])

    weight = data.draw(hnp.arrays(float, n, elements=st.integers(0, 3)))
    if weight.any():
        mean, var = a.mean_and_var(weight)
        expected = np.average(dense, axis=0, weights=weight)
        assert_allclose(mean, expected, atol=1e-14)
        expected = np.average((dense - expected) ** 2, axis=0, weights=weight)
        assert_allclose(var, expected, atol=1e-13)
        assert (var >= 0).all()


def test_a_canonical_matrix_is_shared_and_not_marked_read_only():
    X = sparse.csr_array(np.eye(3))
    a = read_features(X)
    assert np.shares_memory(a.data, X.data)
    assert X.data.flags.writeable
    for array in (a.data, a.indices, a.indptr):
        assert not array.flags.writeable
    assert not np.shares_memory(a.rows(slice(None)).data, X.data)


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_copies_of_a_sparse_matrix_are_read_only(clone):
    a = clone(read_features(sparse.csr_array(np.eye(3))))
    assert_array_equal(a.dense(), np.eye(3))
    assert not a.data.flags.writeable


@dataclass
class Parts:
    """Any object with these attributes is taken for a CSR."""

    data: object
    indices: object
    indptr: object
    shape: tuple


GOOD = Parts(np.ones(3), np.array([0, 1, 1]), np.array([0, 2, 3]), (2, 2))


def test_entries_behind_the_last_row_are_dropped():
    X = replace(GOOD, data=[1, 2, 3, np.nan], indices=[0, 1, 1, 99])
    assert_array_equal(read_features(X).dense(), [[1, 2], [0, 3]])


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"shape": (2,)}, ValueError, r"X must be 2-dimensional, got shape \(2,\)"),
        ({"shape": (3, 2)}, ValueError, "X.indptr must rise from 0 in 4 entries"),
        ({"shape": (2, 2**31)}, ValueError, r"X must have less than 2\^31 columns"),
        ({"indptr": [1, 2, 3]}, ValueError, "X.indptr must rise from 0 in 3 entries"),
        ({"indptr": [0, 3, 2]}, ValueError, "X.indptr must rise from 0 in 3 entries"),
        ({"indptr": [0, 2, 4]}, ValueError, "X.indptr promises 4 entries, X holds 3"),
        ({"indptr": [0.0, 2.0, 3.0]}, TypeError, "X.indptr must hold integers, got dt"),
        (
            {"indices": [0, 1, 2]},
            ValueError,
            "X has 2 columns, but row 1 holds column 2",
        ),
        ({"indices": [-1, 1, 1]}, ValueError, "X has 2 .* but row 0 holds column -1"),
        ({"indices": [2**40, 1, 1]}, ValueError, "X has 2 columns, but row 0 holds"),
        ({"indices": [[0, 1, 1]]}, ValueError, "X.indices must be 1-dimensional"),
        ({"data": [1j, 1, 1]}, TypeError, "X.data must hold real numbers, got dtype c"),
        ({"data": [1, 1, np.nan]}, ValueError, "X must be finite; first bad row is 1"),
        (
            {"data": [1e308, 1e308, 1], "indices": [1, 1, 1]},
            ValueError,
            "X must be finite; first bad row is 0",
        ),
        (
            {"data": [np.inf, -np.inf, 1], "indices": [1, 1, 1]},
            ValueError,
            "X must be finite; first bad row is 0",
        ),
    ],
)
def test_broken_sparse_matrices_are_refused(parts, error, message):
    with refused(error, message):
        read_features(replace(GOOD, **parts))


def test_a_sparse_problem_has_the_sizes_of_a_dense_one():
    p = Problem.from_arrays(sparse.csr_array(np.eye(3, 4)), [0, 1, 2])
    assert (p.n_samples, p.n_features, p.n_classes) == (3, 4, 3)


# Costs


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", [1, 0.1, 1 / 3, 1e45])
def test_costs_that_grow_with_the_distance_are_accepted(power, scale):
    rank = np.arange(6)
    cost = scale * np.abs(rank[:, None] - rank) ** power
    got = check_cost(cost, 6, convex=True)
    assert_array_equal(got, cost)
    assert not got.flags.writeable
    assert cost.flags.writeable


def test_the_absolute_error_is_convex_and_the_zero_one_error_is_not():
    zero_one = 1 - np.eye(3)
    assert_array_equal(check_cost(zero_one, 3), zero_one)
    with refused(ValueError, "every row of cost must be convex; row 0 breaks this"):
        check_cost(zero_one, 3, convex=True)
    with refused(ValueError, "every row of cost must be convex; row 0 breaks this"):
        check_cost(1e-20 * zero_one, 3, convex=True)
    steps = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    steps[0, 2] -= 1e-9  # of 2, beside a row whose rounding is larger
    steps[2] *= 1e10
    with refused(ValueError, "every row of cost must be convex; row 0 breaks this"):
        check_cost(steps, 3, convex=True)
    # two classes leave nothing to be convex
    assert_array_equal(check_cost([[0, 1], [5, 0]], 2, convex=True), [[0, 1], [5, 0]])


def test_the_absolute_error_is_the_distance_of_ranks():
    assert absolute_cost(3).tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert check_cost([[0]], 1).tolist() == [[0]]
    with refused(ValueError, "cost must not differ by more than a factor"):
        check_cost([[0, 1], [1e16, 0]], 2)


@pytest.mark.parametrize(
    ("cost", "error", "message"),
    [
        ([[0, 1], [1, 0]], ValueError, r"cost has shape \(2, 2\), expected \(3, 3\)"),
        ([[0, 1, 2], [1, 0, np.nan], [2, 1, 0]], ValueError, ".*finite; row 1"),
        (
            [[0, 1, 2], [1, 0, 1], [2, 1, 1]],
            ValueError,
            ".*zero on the diagonal; row 2",
        ),
        ([[0, 0, 2], [1, 0, 1], [2, 1, 0]], ValueError, ".*positive off the .*; row 0"),
        ([[0, 1, 2], [-1, 0, 1], [2, 1, 0]], ValueError, ".*positive off .*; row 1"),
        ([[0, 2, 1], [1, 0, 1], [2, 1, 0]], ValueError, ".*must not fall .*; row 0"),
        ([[0, 1, 2], [1, 0, 1], [1, 2, 0]], ValueError, ".*must not fall .*; row 2"),
        ([["a"]], TypeError, "cost must hold real numbers, got dtype <U1"),
    ],
)
def test_unusable_costs_are_refused(cost, error, message):
    with refused(error, message):
        check_cost(cost, 3)


# Parameters

NOT_NUMBERS = ["x", "1", None, True, np.True_, 1j, np.ones(1), np.array(1.0), [1]]
NOT_FINITE = [np.nan, np.inf, -np.inf, np.float32("inf"), 10**400]


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), 1e-300])
def test_positive_numbers_pass(value):
    for checked in (check_positive("C", value), check_nonnegative("C", value)):
        assert checked == value
        assert type(checked) is float


@pytest.mark.parametrize("value", [0, -1, -0.0, *NOT_NUMBERS, *NOT_FINITE])
def test_other_values_are_not_positive(value):
    with refused(ValueError, "C must be a positive finite number, got "):
        check_positive("C", value)


def test_the_message_shows_the_value():
    with refused(ValueError, "C must be a positive finite number, got 'x'$"):
        check_positive("C", "x")


@pytest.mark.parametrize("value", [-1, -1e-300, *NOT_NUMBERS, *NOT_FINITE])
def test_other_values_are_not_nonnegative(value):
    assert check_nonnegative("gamma", 0) == 0
    with refused(ValueError, "gamma must be a finite number >= 0, got "):
        check_nonnegative("gamma", value)


@pytest.mark.parametrize("value", [0, -1, 2.5, 2.0, 2**63, *NOT_NUMBERS, *NOT_FINITE])
def test_other_values_are_not_counts(value):
    assert type(check_count("n_splits", np.int32(3))) is int
    with refused(ValueError, "max_iter must be a positive integer, got "):
        check_count("max_iter", value)


def test_arrays_are_copied_to_rows_of_doubles():
    columns = np.asfortranarray(np.ones((2, 3)))
    rows = as_real_array(columns, "v")
    assert rows.flags.c_contiguous
    assert not np.shares_memory(rows, columns)
    assert as_real_array([True, False], "v").tolist() == [1, 0]
    assert as_real_array(np.array([1, 2], np.uint8), "v").dtype == np.float64
    beyond = as_real_array([10**400, -(10**400), 1], "v")
    assert beyond.tolist() == [np.inf, -np.inf, 1]
    assert as_real_array([np.longdouble("1e4000")], "v").tolist() == [np.inf]
    mixed = np.array([[1, np.True_], [0.5, 10**30]], dtype=object)
    assert as_real_array(mixed, "v").tolist() == [[1, 1], [0.5, 1e30]]


def test_what_has_entries_can_be_listed():
    assert all(map(can_be_listed, ([], (1,), {}, np.ones(1), range(2), iter([]))))
    single = ("ab", memoryview(b"a"), np.array(1), sparse.csr_array((1, 1)), 5, None)
    assert not any(map(can_be_listed, single))


def test_tables_of_scores_are_matrices_of_doubles():
    first, second = score_tables([[[1, 2]], np.ones((3, 2), int)])
    assert first.tolist() == [[1, 2]]
    assert second.shape == (3, 2)
    assert second.dtype == np.float64
    assert values_of([[1, np.nan]], "f", 2).shape == (1, 2)


@pytest.mark.parametrize("value", ["B", "", 1, ["a"], np.array(["a", "b"])])
def test_other_values_are_not_choices(value):
    check_choice("solver", "b", ["a", "b"])
    check_choice("solver", None, ["a", None])
    with refused(ValueError, "solver must be one of 'a', 'b', got "):
        check_choice("solver", value, ("a", "b"))
    with refused(ValueError, "solver must be one of 'a', got None"):
        check_choice("solver", None, ["a"])


@pytest.mark.parametrize("value", [0, 1, "True", None])
def test_other_values_are_not_flags(value):
    assert check_flag("shuffle", np.False_) is False
    with refused(ValueError, "shuffle must be True or False, got "):
        check_flag("shuffle", value)


def test_rng_is_a_seed_or_a_generator():
    expected = np.random.default_rng(3).random(4)
    assert_array_equal(resolve_rng(3).random(4), expected)
    assert_array_equal(resolve_rng(np.uint8(3)).random(4), expected)
    rng = np.random.default_rng(3)
    assert resolve_rng(rng) is rng  # and so it continues
    assert isinstance(resolve_rng(None), np.random.Generator)


@pytest.mark.parametrize(
    "rng",
    [-1, True, 1.0, "3", [1], np.random.RandomState(0)],
    ids=["negative", "bool", "float", "str", "list", "RandomState"],
)
def test_other_values_are_not_rngs(rng):
    with refused(ValueError, "rng must be None, an integer >= 0 or a numpy Generator"):
        resolve_rng(rng)


def test_frozen_arrays_cannot_change():
    own = np.arange(6.0)
    assert read_only(own) is own
    assert not own.flags.writeable
    base = np.arange(6.0)
    copied = read_only(base[::2])
    base[:] = -1
    assert_array_equal(copied, [0, 2, 4])
    assert not copied.flags.writeable
    assert base.flags.writeable
