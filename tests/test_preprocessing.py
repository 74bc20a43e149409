import doctest
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

import ordinal
from ordinal import datasets, preprocessing
from ordinal.preprocessing import Binning, StandardizedModel, Standardizer

EPS = np.finfo(float).eps
HUGE = np.finfo(float).max

values = st.one_of(
    st.floats(-1e3, 1e3),
    st.floats(-HUGE, HUGE),
    st.integers(-3, 3).map(float),
    st.integers(0, 9).map(lambda k: 1.0 + k * EPS),
)
tables = st.tuples(st.integers(1, 12), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=values)
)


# Standardizer


@given(tables)
@example(np.array([[HUGE], [-HUGE]] * 10))  # rounding takes the scaled deviation to 1
@example(np.array([[1e-300], [-1e-300]]))
@example(np.array([[1e16], [1e16 + 64]]))
def test_columns_get_mean_0_and_deviation_1(X):
    s = Standardizer.fit(X)
    Z = s.transform(X)
    assert Z.flags.c_contiguous
    constant = s.scale == 1
    # A deviation of a few ulp of the mean has lost digits before it got here.
    tol = 1e-12 + 4 * EPS * np.abs(s.mean / s.scale)
    assert np.all(np.abs(Z.mean(axis=0)) <= tol)
    assert np.all((np.abs(Z.std(axis=0) - 1) <= tol) | constant)


def test_scale_is_the_population_deviation():
    X = np.random.default_rng(0).normal(3, 2, (50, 4))
    s = Standardizer.fit(X)
    assert_allclose(s.mean, X.mean(axis=0), rtol=1e-13)
    assert_allclose(s.scale, X.std(axis=0, ddof=0), rtol=1e-13)
    assert not s.mean.flags.writeable
    assert not s.scale.flags.writeable


@given(
    arrays(np.float64, (6, 2), elements=st.floats(-100, 100)),
    st.lists(st.integers(0, 3), min_size=6, max_size=6).filter(any),
)
def test_weight_is_a_repeat_count(X, w):
    # Keep clear of the rule for constants, which rounding of a mean might tip.
    X = np.round(X, 3)
    a, b = Standardizer.fit(X, w), Standardizer.fit(np.repeat(X, w, axis=0))
    assert_allclose(a.mean, b.mean, rtol=1e-12, atol=1e-12)
    assert_allclose(a.scale, b.scale, rtol=1e-9)


def test_huge_weights_do_not_overflow():
    s = Standardizer.fit([[1.0], [3.0]], [1.5e308, 1.5e308])
    assert (s.mean[0], s.scale[0]) == (2, 1)


@pytest.mark.parametrize(
    "column",
    [
        [0.0] * 7,
        [0.1] * 7,
        [HUGE] * 7,
        [0.3, 0.1 + 0.2, 0.3, 0.3],  # one ulp apart
        [1e-310, 0.0, 3e-310],
    ],
    ids=["zero", "tenth", "huge", "ulp", "subnormal"],
)
def test_constant_columns_become_zero_and_stay(column):
    X = np.column_stack([column, np.arange(len(column))])
    s = Standardizer.fit(X)
    assert s.scale[0] == 1
    Z = s.transform(X)
    assert Z.shape == X.shape
    exact = len(set(column)) == 1
    assert_allclose(Z[:, 0], 0, atol=0 if exact else 1e-16)


def test_small_deviations_beyond_rounding_count():
    s = Standardizer.fit([[1.0], [1.0 + 64 * EPS]])
    assert_allclose(s.transform([[1.0], [1.0 + 64 * EPS]]), [[-1], [1]])


def test_a_small_deviation_of_many_rows_keeps_its_digits():
    ulps = np.arange(100_001) * 7919 % 64
    s = Standardizer.fit(1e9 * (1 + EPS * ulps[:, None]))
    # rounding of the table itself to doubles moves each value by half an ulp
    assert_allclose(s.scale[0], 1e9 * EPS * ulps.std(), rtol=0.01)
    assert_allclose(s.mean[0], 1e9 * (1 + EPS * ulps.mean()), rtol=EPS)


def test_rows_of_weight_zero_do_not_count():
    s = Standardizer.fit([[1.0], [1.0], [9.0]], [1, 1, 0])
    assert (s.mean[0], s.scale[0]) == (1, 1)
    s = Standardizer.fit([[1e-200], [3e-200], [HUGE]], [1, 1, 0])
    assert_allclose([s.mean[0], s.scale[0]], [2e-200, 1e-200])


def test_standardizer_refuses_bad_input():
    s = Standardizer.fit([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises(ValueError, match="has 3 features"):
        s.transform([[1, 2, 3]])
    with pytest.raises(ValueError, match="first bad row is 1"):
        Standardizer.fit([[1.0], [np.nan]])
    with pytest.raises(ValueError, match=r"-1.0 in row 1"):
        Standardizer.fit([[1.0], [2.0]], [1, -1])
    with pytest.raises(TypeError, match="sparse"):
        Standardizer.fit(scipy.sparse.csr_array(np.eye(3)))
    tiny = Standardizer.fit([[0.0], [1e-200]])
    with pytest.raises(ValueError, match=r"X\[1, 0\] = 1e\+200 overflows"):
        tiny.transform([[0.0], [1e200]])


def test_standardizer_survives_file_and_pickle(tmp_path):
    s = Standardizer.fit([[1.0, 2.0], [3.0, 5.0]])
    s.save(tmp_path / "s.npz")
    for copy in (ordinal.load(tmp_path / "s.npz"), pickle.loads(pickle.dumps(s))):
        assert_array_equal(copy.mean, s.mean)
        assert_array_equal(copy.scale, s.scale)
        assert not copy.scale.flags.writeable


@pytest.mark.parametrize(
    ("mean", "scale"),
    [
        ([0.0], [0.0]),
        ([0.0], [np.nan]),
        ([np.inf], [1.0]),
        ([0.0, 0.0], [1.0]),
        ([0], [1]),
        ([], []),
    ],
)
def test_a_file_cannot_hold_a_broken_standardizer(tmp_path, mean, scale):
    with pytest.raises(ValueError, match="mean and scale"):
        Standardizer(np.array(mean), np.array(scale)).save(tmp_path / "s.npz")


# StandardizedModel


@pytest.fixture(scope="module")
def gaussians():
    X, y = datasets.make_gaussians(20)
    X = X * [1e3, 1e-3]  # scales at which the raw features would be useless
    s = Standardizer.fit(X)
    model = ordinal.fit_npsvor(s.transform(X), y)
    return X, y, StandardizedModel(s, model, ("east", "north"))


def test_standardized_model_takes_raw_features(gaussians, tmp_path):
    X, y, both = gaussians
    Z = both.standardizer.transform(X)
    assert np.mean(both.predict(X) == y) > 0.8
    assert_array_equal(both.predict(X), both.model.predict(Z))
    assert_array_equal(both.decision_function(X), both.model.decision_function(Z))
    assert_array_equal(both.classes, [1, 2, 3])
    assert both.convergence is both.model.convergence

    both.save(tmp_path / "m.npz")
    for copy in (ordinal.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(both))):
        assert copy.feature_names == ("east", "north")
        assert_array_equal(copy.predict(X), both.predict(X))


def test_a_file_cannot_hold_a_contradictory_model(gaussians, tmp_path):
    _, _, both = gaussians
    with pytest.raises(ValueError, match="Standardizer does not predict"):
        StandardizedModel(both.standardizer, both.standardizer).save(tmp_path / "m")
    with pytest.raises(ValueError, match="feature_names"):
        StandardizedModel(both.standardizer, both.model, ("one",)).save(tmp_path / "m")


# Binning

vectors = arrays(np.float64, st.integers(1, 40), elements=values)
edges = st.lists(st.floats(-9, 9), min_size=1, max_size=6, unique=True).map(sorted)


@given(edges, arrays(np.float64, st.integers(1, 20), elements=st.floats(-10, 10)))
def test_bins_are_closed_on_the_right(edges, v):
    v = np.concatenate([v, edges])
    outer = [-np.inf, *edges, np.inf]
    ranks = Binning(edges).transform(v)
    assert ranks.dtype == np.int64
    for value, rank in zip(v, ranks, strict=True):
        assert outer[rank - 1] < value <= outer[rank]


@given(
    st.lists(st.floats(-HUGE, HUGE), min_size=2, max_size=40, unique=True), st.data()
)
def test_distinct_values_fill_equal_frequency_bins_equally(v, data):
    n_bins = data.draw(st.integers(2, len(v)))
    ranks = Binning.equal_frequency(v, n_bins).transform(v)
    count = np.bincount(ranks, minlength=n_bins + 1)[1:]
    assert count.size == n_bins
    assert count.max() - count.min() <= 1


@given(vectors, st.integers(2, 8))
def test_equal_frequency_bins_are_all_used_or_refused(v, n_bins):
    try:
        binning = Binning.equal_frequency(v, n_bins)
    except ValueError as error:
        k = int(str(error).split("only ")[1].split()[0])
        assert 1 <= k < n_bins
        assert k <= np.unique(v).size
    else:
        assert set(binning.transform(v)) == set(range(1, n_bins + 1))
        # the definition: k / n_bins of the values do not exceed edge k, but would
        # the next lower one
        for k, edge in enumerate(binning.edges, start=1):
            assert np.sum(v <= edge) * n_bins >= k * v.size
            assert np.sum(v < edge) * n_bins < k * v.size


def test_ties_that_empty_a_bin_are_named():
    with pytest.raises(ValueError, match=r"only 3 distinct bins of the n_bins=4"):
        Binning.equal_frequency([1, 1, 1, 1, 1, 2, 3, 3], 4)


@given(st.floats(-HUGE, HUGE), st.floats(-HUGE, HUGE), st.integers(2, 9))
@example(-HUGE, HUGE, 3)
def test_equal_length_edges_are_equidistant(a, b, n_bins):
    if abs(a / 2 - b / 2) < 1e-6 * max(abs(a), abs(b), 1e-300):
        return
    low, high = min(a, b), max(a, b)
    edges = Binning.equal_length([a, b], n_bins).edges
    width = high / n_bins - low / n_bins
    inner = np.diff(edges / 2) * 2
    assert_allclose(inner, width, rtol=1e-6)
    assert_allclose(edges[0] / 2 - low / 2, width / 2, rtol=1e-6)
    assert edges[-1] < high


def test_equal_length_may_leave_a_rank_empty():
    binning = Binning.equal_length([0, 1, 9, 10], 5)
    assert_array_equal(binning.edges, [2, 4, 6, 8])
    assert_array_equal(binning.transform([0, 2, 9, 11, -1]), [1, 1, 5, 5, 1])


@pytest.mark.parametrize("make", [Binning.equal_frequency, Binning.equal_length])
def test_binning_refuses_bad_input(make):
    with pytest.raises(ValueError, match="inf in row 1"):
        make([1.0, np.inf], 2)
    with pytest.raises(ValueError, match="non-empty"):
        make([], 2)
    with pytest.raises(ValueError, match="1-dimensional"):
        make([[1.0, 2.0]], 2)
    with pytest.raises(ValueError, match="at least 2"):
        make([1.0, 2.0], 1)
    with pytest.raises(ValueError, match="n_bins must be a positive integer"):
        make([1.0, 2.0], 2.0)
    with pytest.raises(ValueError, match="bins"):
        make([1.0, 1.0], 2)
    with pytest.raises(ValueError, match="nan in row 0"):
        make([1.0, 2.0], 2).transform([np.nan])


@pytest.mark.parametrize("edges", [[], [[1.0]], [1.0, 1.0], [2.0, 1.0], [np.nan]])
def test_edges_must_increase(edges):
    with pytest.raises(ValueError, match="edges"):
        Binning(edges)


def test_edges_are_a_read_only_copy():
    mine = np.array([1.0, 2.0])
    binning = Binning(mine)
    mine[0] = 5
    assert_array_equal(binning.edges, [1, 2])
    assert not binning.edges.flags.writeable
    assert not pickle.loads(pickle.dumps(binning)).edges.flags.writeable


def test_docstring_examples():
    assert doctest.testmod(preprocessing).failed == 0
