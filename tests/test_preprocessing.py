import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from strategies import raises

import ordinal
from ordinal.preprocessing import (
    Binning,
    PreprocessedModel,
    Standardizer,
    impute_low_rank,
)
from ordinal.preprocessing.scaling import low_rank

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


@given(tables)
@example(np.array([[HUGE], [-HUGE]] * 10))  # rounding takes the scaled deviation to 1
@example(np.array([[1e-300], [-1e-300]]))
@example(np.array([[1e16], [1e16 + 64]]))
def test_columns_get_mean_0_and_deviation_1(X):
    s = Standardizer.fit(X)
    Z = s.transform(X)
    assert Z.flags.c_contiguous
    constant = np.isinf(s.scale)
    # A deviation of a few ulp of the mean has lost digits before it got here.
    tol = 1e-12 + 4 * EPS * np.abs(s.mean / s.scale)
    assert np.all(np.abs(Z.mean(axis=0)) <= tol)
    assert np.all((np.abs(Z.std(axis=0) - 1) <= tol) | constant)


@pytest.mark.parametrize("column", [
    [0.0] * 7,
    [0.1] * 7,
    [HUGE] * 7,
    [0.3, 0.1 + 0.2, 0.3, 0.3],  # one ulp apart
    [1e-310, 0.0, 3e-310],
], ids=["zero", "tenth", "huge", "ulp", "subnormal"])  # fmt: skip
def test_constant_columns_become_zero_and_stay(column):
    X = np.column_stack([column, np.arange(len(column))])
    s = Standardizer.fit(X)
    for rows in (X, X + np.array([1e9, 0.0]), -X):
        Z = s.transform(rows)
        assert Z.shape == X.shape
        assert not Z[:, 0].any()
        assert not np.signbit(Z[:, 0]).any()


def test_standardizer_refuses_bad_input():
    s = Standardizer.fit([[1.0, 2.0], [3.0, 5.0]])
    raises(ValueError, "has 3 features", s.transform, [[1, 2, 3]])
    raises(ValueError, "first bad row is 1", Standardizer.fit, [[1.0], [np.nan]])
    raises(ValueError, r"-1.0 in row 1", Standardizer.fit, [[1.0], [2.0]], [1, -1])
    raises(TypeError, "sparse", Standardizer.fit, scipy.sparse.csr_array(np.eye(3)))
    tiny = Standardizer.fit([[0.0], [1e-200]])
    with pytest.raises(ValueError, match=r"X\[9000, 0\] = 1e\+200 overflows"):
        tiny.transform([*np.zeros((9000, 1)), [1e200]])


@pytest.mark.parametrize(("mean", "scale"), [
    ([0.0], [0.0]), ([0.0], [5e-324]), ([0.0], [np.nan]), ([np.inf], [1.0]),
    ([0.0, 0.0], [1.0]), ([], []),
])  # fmt: skip
def test_a_file_cannot_hold_a_broken_standardizer(tmp_path, mean, scale):
    with pytest.raises(ValueError, match=r"Standardizer.* must|makes d|not be empty"):
        Standardizer(np.array(mean), np.array(scale)).save(tmp_path / "s.npz")


def test_a_file_cannot_hold_a_contradictory_model(tmp_path):
    s = Standardizer.fit([[1.0, 2.0], [3.0, 5.0]])
    with pytest.raises(ValueError, match="a method predict, got a Standardizer"):
        PreprocessedModel(s, s).save(tmp_path / "m")
    with pytest.raises(ValueError, match="feature_names"):
        replace(s, feature_names=("one",)).save(tmp_path / "m")


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


@given(st.floats(-HUGE, HUGE), st.floats(-HUGE, HUGE), st.integers(2, 9))
@example(-HUGE, HUGE, 3)
def test_equal_length_edges_are_equidistant(a, b, n_bins):
    if abs(a / 2 - b / 2) < 1e-6 * max(abs(a), abs(b), 1e-300):
        return
    low, high = min(a, b), max(a, b)
    edges = Binning.equal_length([a, b], n_bins).edges
    width = high / n_bins - low / n_bins
    assert_allclose(np.diff(edges / 2) * 2, width, rtol=1e-6)
    assert_allclose(edges[0] / 2 - low / 2, width / 2, rtol=1e-6)
    assert edges[-1] < high


def test_bins_of_equal_length_may_be_empty_and_are_counted_first():
    binning = Binning.equal_length([0, 1, 9, 10], 5)
    assert_array_equal(binning.edges, [2, 4, 6, 8])
    assert_array_equal(binning.transform([0, 2, 9, 11, -1]), [1, 1, 5, 5, 1])
    with pytest.raises(ValueError, match=r"at most 1000000 .* 2147483647$"):
        Binning.equal_length([0.0, 1.0], 2**31 - 1)
    binning = Binning([1.0, 2.0])
    assert not binning.edges.flags.writeable
    assert not pickle.loads(pickle.dumps(binning)).edges.flags.writeable


@pytest.mark.parametrize("make", [Binning.equal_frequency, Binning.equal_length])
def test_binning_refuses_bad_input(make):
    raises(ValueError, "inf in row 1", make, [1.0, np.inf], 2)
    raises(ValueError, "non-empty", make, [], 2)
    raises(ValueError, "1-dimensional", make, [[1.0, 2.0]], 2)
    for n_bins in (1, 2.0):
        raises(ValueError, "n_bins must be an integer >= 2", make, [1.0, 2.0], n_bins)
    raises(ValueError, "bins", make, [1.0, 1.0], 2)
    raises(ValueError, "nan in row 0", make([1.0, 2.0], 2).transform, [np.nan])


@pytest.mark.parametrize("edges", [[], [[1.0]], [1.0, 1.0], [2.0, 1.0], [np.nan]])
def test_edges_must_increase(edges):
    raises(ValueError, "edges", Binning, edges)


# impute_low_rank


@st.composite
def gappy(draw):
    """(X, W, rank): no row or column without weight; X is 0 where W is."""
    n, d = draw(st.integers(2, 9)), draw(st.integers(2, 9))
    numbers = st.integers(-3, 3).map(float) | st.floats(-5, 5, width=16)
    X = draw(arrays(np.float64, (n, d), elements=numbers))
    weights = st.sampled_from([0.0, 1.0]) | st.sampled_from([0.0, 0.1, 0.7, 1.0])
    W = draw(arrays(np.float64, (n, d), elements=weights))
    k = np.arange(max(n, d))
    W[k % n, k % d] = 1
    return np.where(W > 0, X, 0), W, draw(st.integers(1, min(n, d) - 1))


def random_table(n, d, rank, level=0.0, seed=0):
    """A random table of that rank, and about 7 in 10 of its entries, else NaN."""
    rng = np.random.default_rng(seed)
    X = level + rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    return X, np.where(rng.random((2 * n, d))[n:] < 0.7, X, np.nan)


@given(gappy())
def test_no_step_of_em_raises_the_error(case):
    X, W, rank = case
    A, errors, fall = low_rank(X, W, rank, 1e-4, 100)
    assert_allclose(errors[-1], (W * (X - A) ** 2).sum(), rtol=1e-9, atol=1e-25)
    assert np.linalg.matrix_rank(A, tol=1e-9 * (1 + np.abs(A).max())) <= rank
    total = (W * X**2).sum()
    assert np.all(np.diff(errors) <= 1e-14 * total)
    # the last step, and no other, was short
    falls = 1 - np.array(errors[1:]) / errors[:-1]
    if errors[-1] > 1e-28 * total and len(errors) > 1:
        assert falls[-1] == fall
        assert len(errors) == 100 or fall <= 1e-4
    assert np.all(falls[:-1] > 1e-4)


TINY_DIRECTION = np.zeros((9, 6))
TINY_DIRECTION[[1, 6], [1, 0]] = 1, 2.0**-23


# the second direction is below the pivots at which the first directions end
@example((TINY_DIRECTION, None, 2))
# an exact approximation, whose error is rounding and rises or falls by chance
@example((np.outer([0, 1, 1, 0, 0, 0], np.eye(9)[8]) + 2 * np.eye(6, 9, -2), None, 2))
@given(gappy())
def test_without_gaps_the_decomposition_is_truncated(case):
    X, _, rank = case
    s = np.linalg.svd(X, compute_uv=False)
    _, errors, _ = low_rank(X, np.ones(X.shape), rank, 1e-9, 100)
    assert len(errors) <= 2  # the second finds nothing left to gain
    # pivots end where each row has 1e-12 of the largest square left
    unseen = 1e-12 * len(X) * (X**2).sum(axis=1).max()
    assert_allclose(errors[-1], (s[rank:] ** 2).sum(), rtol=1e-9, atol=unseen + 1e-24)
    assert_array_equal(impute_low_rank(X, rank), X)


@pytest.mark.parametrize("shape", [(12, 9), (30, 40)])
@pytest.mark.parametrize("rank", [1, 2])
def test_weights_of_rank_one_have_a_solution_in_closed_form(shape, rank):
    """W_ij = u_i v_j is a change of units of the rows and the columns."""
    rng = np.random.default_rng(0)
    X, u, v = rng.normal(size=shape), rng.random((shape[0], 1)), rng.random(shape[1])
    u, v = 0.1 + 0.9 * u, 0.1 + 0.9 * v
    P, s, Q = np.linalg.svd(np.sqrt(u * v) * X, full_matrices=False)
    best = (P[:, :rank] * s[:rank]) @ Q[:rank] / np.sqrt(u * v)
    A, errors, _ = low_rank(X, u * v, rank, 1e-12, 20_000)
    assert_allclose(errors[-1], (s[rank:] ** 2).sum(), rtol=1e-8)
    assert_allclose(A, best, atol=1e-3)


def test_no_decomposition_is_wider_than_the_rank_asked_for(monkeypatch):
    """Nothing interrupts a call of LAPACK: that of a whole table can take minutes."""
    sizes = []
    for name in ("svd", "qr", "eigh", "inv"):
        call = getattr(np.linalg, name)

        def seen(a, *args, call=call, **options):
            sizes.append(min(a.shape))
            return call(a, *args, **options)

        monkeypatch.setattr(np.linalg, name, seen)
    X = np.random.default_rng(0).standard_normal((300, 200))
    low_rank(X, np.ones(X.shape), 3, 1e-2, 5)
    assert sizes
    assert max(sizes) <= 32  # 3 + 8 directions, and blocks of pivots


@pytest.mark.parametrize(
    ("n", "d", "rank", "level"), [(12, 9, 1, 0), (30, 20, 2, 0), (25, 40, 3, 9)]
)
def test_a_table_of_low_rank_is_recovered(n, d, rank, level):
    X, gaps = random_table(n, d, rank, level)
    assert_allclose(impute_low_rank(gaps, rank + bool(level)), X, atol=1e-9)


def test_a_table_of_zeros_and_the_callers_table_stay():
    _, gaps = random_table(12, 9, 3)
    before = gaps.copy()
    filled = impute_low_rank(gaps, 1)
    assert_array_equal(gaps, before)
    known = ~np.isnan(gaps)
    assert_array_equal(filled[known], gaps[known])
    assert np.isfinite(filled).all()
    assert filled.dtype == np.float64
    assert filled.flags.c_contiguous
    assert not np.shares_memory(impute_low_rank(filled), filled)
    X = np.zeros((5, 4))
    A, *_ = low_rank(X, np.ones(X.shape), 2, 1e-6, 100)
    assert_array_equal(A, X)


def test_weight_0_is_missing_and_weight_1_is_known():
    X, gaps = random_table(12, 9, 3)
    W = (~np.isnan(gaps)).astype(float)
    expected = impute_low_rank(gaps)
    assert_array_equal(impute_low_rank(X, weight=W), expected)
    assert_array_equal(impute_low_rank(np.where(W, X, HUGE), weight=W), expected)
    assert_array_equal(impute_low_rank(gaps, weight=np.ones(X.shape)), expected)
    half = impute_low_rank(gaps, weight=W / 2, tol=1e-10)
    assert_allclose(half, impute_low_rank(gaps, tol=1e-10), atol=1e-3)


@given(st.permutations(range(12)), st.permutations(range(9)), st.integers(-990, 990))
def test_the_order_and_the_unit_of_a_table_do_not_matter(rows, columns, exponent):
    _, gaps = random_table(12, 9, 3)
    filled = impute_low_rank(gaps, tol=1e-4)
    moved = impute_low_rank(gaps[rows][:, columns], tol=1e-4)
    assert_allclose(moved, filled[rows][:, columns], atol=1e-9)
    scaled = impute_low_rank(np.ldexp(gaps, exponent), tol=1e-4)
    assert_array_equal(scaled, np.ldexp(filled, exponent))


def test_what_em_has_not_finished_it_says():
    _, gaps = random_table(12, 9, 3)
    message = (
        r"^impute_low_rank: max_iter after 3 steps, the last of which lowered the "
        r"error by .* of it against tol 1.00e-06; raise max_iter or tol, or lower rank$"
    )
    with pytest.warns(ordinal.exceptions.ConvergenceWarning, match=message) as caught:
        short = impute_low_rank(gaps, max_iter=3)
    assert caught[0].filename == __file__
    assert np.isfinite(short).all()
    with pytest.warns(ordinal.exceptions.ConvergenceWarning, match="after 1 steps"):
        impute_low_rank(gaps, max_iter=1)


FULL = np.ones((3, 4))
HOLES = np.array([[1, np.nan, 2], [3, np.nan, 4], [5, np.nan, 6]])


@pytest.mark.parametrize(("X", "options", "error", "message"), [
    (HOLES, {}, ValueError, "column 1 of X has no observed entry .*: drop it"),
    (HOLES.T, {}, ValueError, "row 1 of X has no observed entry .*: drop it"),
    (FULL, {"weight": [[1] * 4, [0] * 4, [1] * 4]}, ValueError,
     "row 1 of X has no observed entry"),
    ([[1.0, np.inf]] * 3, {}, ValueError, "X must be finite or NaN; first bad row"),
    ([1.0, 2.0], {}, ValueError, "X must be 2-dimensional"),
    ([["a", "b"]] * 2, {}, TypeError, "column 0 of X must hold real numbers"),
    (scipy.sparse.csr_array(np.eye(4)), {}, TypeError, "X is sparse"),
    (FULL, {"rank": 3}, ValueError, "rank must be less than 3, .* got 3"),
    (FULL, {"rank": 1.5}, ValueError, "rank must be a positive integer, got 1.5"),
    (FULL, {"tol": 0}, ValueError, "tol must be a positive finite number"),
    (FULL, {"max_iter": 0}, ValueError, "max_iter must be a positive integer"),
    (FULL, {"weight": np.ones((4, 3))}, ValueError,
     r"weight has shape \(4, 3\), expected \(3, 4\) as X"),
    (FULL, {"weight": [[1, 1, 1, 1], [1, 1, 2, 1], [1, 1, 1, 1]]}, ValueError,
     r"weight must be in \[0, 1\], got 2.0 in row 1, column 2"),
    (FULL, {"weight": FULL * np.nan}, ValueError, "weight must be finite; first"),
])  # fmt: skip
def test_tables_that_cannot_be_filled_are_refused(X, options, error, message):
    raises(error, f"^{message}", impute_low_rank, X, **options)
