"""Choice of basis rows (ordinal/kernels/basis_rows.py), and the argument `basis`."""

import numpy as np
import pytest
from internals import drawn
from numpy.testing import assert_allclose, assert_array_equal
from test_basis_features import csr

from ordinal._input.basis import read_choice
from ordinal.kernels import RBF, Polynomial, Precomputed
from ordinal.kernels.basis_rows import choose, sufficient_size

WAYS = [30, ("kmeans++", 30), ("cholesky", 30), 0.05]
each_way = pytest.mark.parametrize("basis", WAYS, ids=str)


def data(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.sort(rng.choice(4, n, p=[0.7, 0.2, 0.05, 0.05]))


def chosen(basis, X, rank=None, *, kernel=None, weight=None, seed=0):
    n = len(X)
    rank = np.zeros(n, np.int32) if rank is None else rank
    weight = np.ones(n) if weight is None else weight
    asked = []

    def rows_of(numbers):
        asked.append(numbers)
        assert (np.diff(numbers) > 0).all()
        return X.rows(numbers) if hasattr(X, "rows") else X[numbers]

    choice = read_choice(basis, n, X.shape[1])
    rng = np.random.default_rng(seed)
    features = choose(choice, kernel or RBF(0.2), rows_of, rank, weight, rng)
    assert len(asked) <= 1
    return features


def numbers_in(X, support):
    """Return the numbers of the support rows; each is a row of X."""
    same = (support[:, None] == X).all(axis=2)
    assert (same.sum(axis=1) == 1).all()
    return same.argmax(axis=1)


def test_every_rank_has_its_share_of_random_rows():
    X, rank = data()
    for m in (1, 4, 37, 399, 400, 1000):
        rows = drawn(np.arange(400), rank, m, np.random.default_rng(m))
        assert rows.size == min(m, 400)
        assert (np.diff(rows) > 0).all()
        share = np.bincount(rank) * rows.size / 400
        assert (np.abs(np.bincount(rank[rows], minlength=4) - share) < 1).all()
    count = np.bincount(rank[numbers_in(X, chosen(37, X, rank).support)], minlength=4)
    assert (np.abs(count - np.bincount(rank) * 37 / 400) < 1).all()


def test_kmeans_does_not_take_a_row_twice():
    points = np.array([[0.0, 0], [1, 0], [0, 2], [3, 1], [9, 9]])
    X = np.repeat(points, [80, 1, 1, 1, 7], axis=0)
    for m, found in ((5, 5), (9, 5), (3, 3)):
        support = chosen(("kmeans++", m), X, kernel=RBF(1.0)).support
        assert len(np.unique(support, axis=0)) == found == len(support)


@pytest.mark.slow("900 draws")
def test_kmeans_draws_by_squared_distances():
    X = np.array([[0.0], [1.0], [3.0]])
    kernel = Polynomial(1, coef0=7.0)  # whose distances are those of the rows
    counts = np.zeros((3, 3))
    for seed in range(900):
        first, *both = (
            numbers_in(X, chosen(("kmeans++", m), X, kernel=kernel, seed=seed).support)
            for m in (1, 2)
        )
        counts[first, np.setdiff1d(both, first)] += 1
    squared = (X - X.T) ** 2
    expected = squared / squared.sum(axis=1, keepdims=True) / 3
    error = np.sqrt(expected * (1 - expected) / 900)
    assert (np.abs(counts / 900 - expected) <= 3.5 * error).all()


def test_as_many_rows_as_leave_a_part_of_the_trace():
    X, rank = data()
    for left in (0.3, 0.05, 0.001):
        features = chosen(left, X, rank)
        assert 1 - (features.double(X) ** 2).sum() / 400 <= left
        numbers = numbers_in(X, features.support)
        one_less = [
            1 - (chosen(np.delete(numbers, k), X).double(X) ** 2).sum() / 400
            for k in range(features.m)
        ]
        assert max(one_less) > left


def test_rows_of_ones_own():
    X, rank = data()
    numbers = np.array([7, 3, 399])
    for basis in (numbers, numbers.tolist(), X[numbers], X[numbers].tolist()):
        support = chosen(basis, X, rank).support
        assert_array_equal(np.sort(numbers_in(X, support)), [3, 7, 399])
    assert chosen(csr(X[numbers]), csr(X), rank).support.shape == (3, 3)
    with pytest.raises(ValueError, match="row numbers with"):
        chosen(np.ones((2, 4)), np.eye(4), kernel=Precomputed())


@each_way
def test_precomputed_matrices_and_sparse_rows_have_the_basis_of_dense_rows(basis):
    X, rank = data()
    K = RBF(0.2)(X, X)
    of_rows = chosen(basis, X, rank)
    features = chosen(basis, K, rank, kernel=Precomputed())
    assert_array_equal(features.support, numbers_in(X, of_rows.support))
    assert_allclose(features.double(K), of_rows.double(X), atol=1e-9)
    X = np.maximum(X, 0)
    X[:, 0] += 1
    dense, sparse = chosen(basis, X, rank), chosen(basis, csr(X), rank)
    assert_array_equal(sparse.support.dense(), dense.support)


def test_doubled_until_the_loss_stops_falling():
    noise = np.random.default_rng(0).normal(size=100)
    asked = []

    def losses_at(m):
        asked.append(m)
        return 100 / min(m, 300) + 0.01 * noise * m / 100 % 0.02

    assert sufficient_size(losses_at, 100, 10_000) == 400
    assert asked == [100, 200, 400, 800]
    assert sufficient_size(losses_at, 100, 399) == 200
    assert sufficient_size(losses_at, 100, 30) == 30
    assert sufficient_size(lambda m: noise / m, 100, 10_000) == 100  # as likely a rise
    assert sufficient_size(lambda m: np.ones(9), 100, 10_000) == 100
    assert sufficient_size(lambda m: np.full(9, np.nan), 100, 10_000) == 100
