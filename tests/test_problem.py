"""Training data: accepted forms, their meaning, and every refusal."""

import copy
import pickle
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import CSR, Frame, read_features
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import ordinal
from ordinal._input.checks import as_real_array, can_be_listed, resolve_rng
from ordinal._input.immutable import read_only


def fit(y, **options):
    """A fit to rows that any ranks are learned of: each has a feature of its own."""
    X = options.pop("X", np.eye(len(y)))
    return ordinal.fit_svorim(X, y, kernel="linear", C=1e3, **options)


def ranks(y, **options):
    """Return the classes, and the rank that the score of each row has."""
    model = fit(y, **options)
    reached = model.decision_function(np.eye(len(y)))[:, None] >= model.thresholds
    assert not model.classes.flags.writeable
    return model.classes, reached.sum(axis=1)


def refused(error, message):
    return pytest.raises(error, match=f"^{message}")


SIZES = ["small", "medium", "large"]
ORDERED = pd.Categorical(["large", "small"], categories=SIZES, ordered=True)


@pytest.mark.parametrize(("y", "given", "classes", "rank"), [
    ([7, -2, 7, 4], None, [-2, 4, 7], [2, 0, 2, 1]),
    ([True, False], None, [False, True], [1, 0]),
    ([2.0, 1.0, 2.0], None, [1.0, 2.0], [1, 0, 1]),
    (np.array([3, 1], ">i2"), None, [1, 3], [1, 0]),
    (pd.Series([5, 3], index=[8, 9]), None, [3, 5], [1, 0]),
    (pl.Series([5, 3]), None, [3, 5], [1, 0]),
    (np.array([5, 3], dtype=object), None, [3, 5], [1, 0]),
    (ORDERED, None, SIZES, [2, 0]),
    (pd.Series(ORDERED), None, SIZES, [2, 0]),
    (pd.Series(ORDERED), SIZES[::-1], SIZES[::-1], [0, 2]),
    (pl.Series(["large", "small"], dtype=pl.Enum(SIZES)), None, SIZES, [2, 0]),
    *[
        (kind(["large", "small"]), SIZES, SIZES, [2, 0])
        for kind in (
            list, np.array, partial(np.array, dtype=object), pd.Series,
            pd.Categorical, pl.Series, partial(pl.Series, dtype=pl.Categorical),
        )
    ],
])  # fmt: skip
def test_labels_are_ranked_by_value_or_type_or_classes(y, given, classes, rank):
    found, of_rows = ranks(y, classes=given)
    assert_array_equal(found, classes)
    assert_array_equal(of_rows, rank)
    numbers = not isinstance(classes[0], str)
    held = np.asarray(y).dtype
    assert held in (found.dtype, object) if numbers else found.dtype.kind == "U"


def test_categoricals_of_numbers_and_classes_rank_them():
    y = pd.Categorical([1, 2, 3], categories=[3, 1, 2], ordered=True)
    classes, rank = ranks(y)
    assert_array_equal(rank, [1, 2, 0])
    assert classes.dtype.kind == "i"
    assert_array_equal(ranks([1, 3], classes=[3, 2, 1])[1], [2, 0])
    assert_array_equal(ranks([0.5, 1.0], classes=[0.5, 1, 1.5])[1], [0, 1])
    y = np.array([2**53, 2**53 + 1, 2**63 + 5], dtype=np.uint64)
    assert_array_equal(ranks(y, classes=y[[1, 2, 0]])[1], [2, 0, 1])
    with refused(ValueError, f"y holds {2**53 + 1} in row 1, which is not among"):
        fit(y, classes=np.array([2.0**53, 2.0**63]))
    with refused(
        TypeError, r"y .*classes= .*\['a', .*'i', 'j', \.\.\.\] in rank order"
    ):
        fit([*"abcdefghijklm"])
    with refused(ValueError, "the sum of sample_weight must be between 1e-50 and"):
        fit([0, 1], sample_weight=[1e308, 1e308], class_weight="balanced")


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="numpy 1")
def test_strings_of_variable_width_are_strings():
    y = np.array(["b", "a"], dtype=np.dtypes.StringDType())
    assert_array_equal(ranks(y, classes=["b", "a"])[1], [0, 1])
    with refused(TypeError, "y holds strings"):
        fit(y)


@given(hnp.arrays(np.int64, st.integers(2, 20), elements=st.integers(-5, 5)))
def test_classes_of_ranks_are_the_labels(y):
    if np.unique(y).size < 2:
        with refused(ValueError, "y needs at least 2 classes"):
            fit(y)
        return
    classes, rank = ranks(y)
    assert_array_equal(classes[rank], y)
    assert (np.diff(classes) > 0).all()


class Unequal:
    """A label that is neither a number nor a string."""

    def __repr__(self):
        return "Unequal()"


@pytest.mark.parametrize(("y", "classes", "error", "message"), [
    ([b"a", b"b"], ["a", "b"], TypeError, "y must hold .*S1"),
    (np.array([0, 1], "M8[s]"), None, TypeError, "y must hold .*datetime64"),
    ([Unequal(), 1], None, TypeError, r"y must .* Unequal Unequal\(\) in row 0"),
    (["a", None], ["a", "b"], ValueError, "y has no label in row 1"),
    ([[0], [1, 2]], None, ValueError, "y is not an array"),
    ([0, 1], ["0", "1"], ValueError, "y holds 0 in row 0, which is not among"),
    ([0, 1], [0, "a"], TypeError, "classes must hold integers or strings"),
    ([0, 1], {0, 1}, ValueError, r"classes must be 1-dimensional, got shape \(\)"),
    ([0, 1], ["0", None], ValueError, "classes has no label in row 1"),
    (pd.Categorical(["a", None], categories=["a", "b"], ordered=True), None, ValueError,
     "y has no label in row 1"),
    (pl.Series(["a", None], dtype=pl.Enum(["a", "b"])), None, ValueError,
     "y has no label in row 1"),
    (pd.Categorical([1, None], categories=[1, 2], ordered=True), None, ValueError,
     "y holds nan in row 1"),
    (pd.Categorical(pd.to_datetime(["2024-01-01", "2024-01-02"]), ordered=True), None,
     TypeError, r"the categories of y must .* got dty.*: .* rename_categories\(str\)"),
    (pd.to_datetime(["2024-01-01", "2024-01-02"]), None,
     TypeError, r"y must hold integers or strings, .*: pass their text.* and classes="),
])  # fmt: skip
def test_labels_without_a_clear_rank_are_refused(y, classes, error, message):
    with refused(error, message):
        fit(y, X=np.eye(2), classes=classes)


def test_features_are_read_as_the_model_has_them():
    X = np.ones((3, 2))
    assert np.shares_memory(read_features(X), X)
    assert X.flags.writeable
    X, order = pd.DataFrame({"a": ["u", "v"]}), (np.array(["v", "u"]),)
    assert read_features(X, categories=order).tolist() == [[1], [0]]
    assert read_features([["u"], ["v"]], categories=order).tolist() == [[1], [0]]
    X, order = [[1, 3], [3, 1]], np.array([3, 1])
    assert read_features(X, categories=(order, None)).tolist() == [[1, 3], [0, 1]]
    assert read_features(X, categories=(order, order)).tolist() == [[1, 0], [0, 1]]
    record = Frame.of_numbers(np.array([[1.0, 2.0]]), ("a", "b"))
    assert read_features(record, feature_names=("b", "a")).tolist() == [[2, 1]]
    assert read_features(record, feature_names=("a", "b")) is record.values
    with refused((TypeError, ValueError), ".*column 'a'"):  # it holds numbers
        read_features(record, categories=(np.array(["u", "v"]), None))
    X = np.array([[0.0, np.nan], [1.0, 2.0]])
    assert read_features(X, missing=True) is X
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


def test_canonical_matrices_are_shared_and_entries_behind_the_last_row_dropped():
    X = sparse.csr_array(np.eye(3))
    a = read_features(X)
    assert np.shares_memory(a.data, X.data)
    assert X.data.flags.writeable
    for same in (a, copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert_array_equal(same.dense(), np.eye(3))
        for array in (same.data, same.indices, same.indptr):
            assert not array.flags.writeable
    assert not np.shares_memory(a.rows(slice(None)).data, X.data)
    X = replace(GOOD, data=[1, 2, 3, np.nan], indices=[0, 1, 1, 99])
    assert_array_equal(read_features(X).dense(), [[1, 2], [0, 3]])


@dataclass
class Parts:
    """Any object with these attributes is taken for a CSR."""

    data: object
    indices: object
    indptr: object
    shape: tuple


GOOD = Parts(np.ones(3), np.array([0, 1, 1]), np.array([0, 2, 3]), (2, 2))


@pytest.mark.parametrize(("parts", "error", "message"), [
    ({"shape": (2,)}, ValueError, r"X must be 2-dimensional, got shape \(2,\)"),
    ({"shape": (3, 2)}, ValueError, "X.indptr must have 4 entries that begin"),
    ({"shape": (2, 2**31)}, ValueError, r"X must have less than 2\^31 columns"),
    ({"indptr": [0, 3, 2]}, ValueError, "X.indptr must have 3 entries that begin"),
    ({"indptr": [0, 2, 4]}, ValueError,
     "X.indptr must agree with the stored entries: it ends at 4, and X has 3"),
    ({"indptr": [0.0, 2.0, 3.0]}, TypeError, "X.indptr must hold integers, got dt"),
    ({"indices": [0, 1, 2]}, ValueError, "X has 2 columns, but row 1 holds column 2"),
    ({"indices": [-1, 1, 1]}, ValueError, "X has 2 .* but row 0 holds column -1"),
    ({"indices": [[0, 1, 1]]}, ValueError, "X.indices must be 1-dimensional"),
    ({"data": [1j, 1, 1]}, TypeError, "X.data must hold real numbers, got dtype c"),
    ({"data": [1, 1, np.nan]}, ValueError, "X must be finite; first bad row is 1"),
    ({"data": [1e308, 1e308, 1], "indices": [1, 1, 1]}, ValueError,
     "X must be finite; first bad row is 0"),
])  # fmt: skip
def test_broken_sparse_matrices_are_refused(parts, error, message):
    with refused(error, message):
        fit([0, 1], X=replace(GOOD, **parts))


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", [1, 0.1, 1 / 3, 1e45])
def test_costs_that_grow_with_the_distance_are_accepted(power, scale):
    rank = np.arange(6)
    cost = scale * np.abs(rank[:, None] - rank) ** power
    got = ordinal.fit_svorim(np.eye(6), rank, C=1 / scale, cost=cost).cost
    assert_array_equal(got, cost)
    assert not got.flags.writeable
    assert cost.flags.writeable


def test_arrays_are_copied_where_they_must_be_and_never_change():
    columns = np.asfortranarray(np.ones((2, 3)))
    rows = as_real_array(columns, "v")
    assert rows.flags.c_contiguous
    assert not np.shares_memory(rows, columns)
    assert as_real_array([True, False], "v").tolist() == [1, 0]
    assert as_real_array(np.array([1, 2], np.uint8), "v").dtype == np.float64
    assert as_real_array([10**400, -(10**400), 1], "v").tolist() == [np.inf, -np.inf, 1]
    assert as_real_array([np.longdouble("1e4000")], "v").tolist() == [np.inf]
    mixed = np.array([[1, np.True_], [0.5, 10**30]], dtype=object)
    assert as_real_array(mixed, "v").tolist() == [[1, 1], [0.5, 1e30]]
    own = np.arange(6.0)
    assert read_only(own) is own
    assert not own.flags.writeable
    base = np.arange(6.0)
    copied = read_only(base[::2])
    base[:] = -1
    assert_array_equal(copied, [0, 2, 4])
    assert not copied.flags.writeable
    assert base.flags.writeable
    assert all(map(can_be_listed, ([], (1,), {}, np.ones(1), range(2), iter([]))))
    single = ("ab", memoryview(b"a"), np.array(1), sparse.csr_array((1, 1)), 5, None)
    assert not any(map(can_be_listed, single))


def test_rng_is_a_seed_or_a_generator():
    expected = np.random.default_rng(3).random(4)
    assert_array_equal(resolve_rng(3).random(4), expected)
    assert_array_equal(resolve_rng(np.uint8(3)).random(4), expected)
    rng = np.random.default_rng(3)
    assert resolve_rng(rng) is rng  # and so it continues
    assert isinstance(resolve_rng(None), np.random.Generator)
    for bad in (-1, True, 1.0, "3", [1], np.random.RandomState(0)):
        with refused(ValueError, "rng must be None, an integer >= 0 or a numpy Gener"):
            resolve_rng(bad)
