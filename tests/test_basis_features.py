"""Features on a basis: (Z) and (C) of ordinal/kernels/features.py."""

import numpy as np
import pytest
from blas import rows_keep_their_bytes
from internals import CSR, ColumnFeatures, RowFeatures
from numpy.testing import assert_allclose, assert_array_equal
from strategies import raises

from ordinal.kernels import ARD, RBF, Linear, LinearARD, Matern, Pearson, Polynomial
from ordinal.kernels.functions import Custom

GAMMA = np.array([0.3, 0.05, 1.0, 0.2])
KERNELS = [
    RBF(0.2), ARD(GAMMA), Linear(), LinearARD(GAMMA), Pearson(), Polynomial(3, 0.2),
    Custom(lambda A, B: 1 / (1 + ((A[:, None] - B) ** 2).sum(axis=2))),
    Matern(1.5, 0.2),
]  # fmt: skip
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)


def rows(n, seed=0):
    return np.random.default_rng(seed).normal([3, 0, 0, -1], size=(n, 4))


def csr(X):
    held = X != 0
    ends = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64)
    return CSR(X[held], np.nonzero(held)[1].astype(np.int32), ends, X.shape)


def single(features, X):
    return features.single(X, np.empty((len(X), features.m), np.float32))


@each_kernel
def test_inner_products_are_those_of_the_basis(kernel):
    X, B = rows(50), rows(12, seed=1)
    features = RowFeatures(kernel, B)
    Z = features.double(X)
    least, *_ = np.linalg.lstsq(kernel(B, B), kernel(B, X), rcond=1e-9)
    scale = np.diagonal(kernel(X, X)).max()
    # what the basis leaves of itself is 1e-7 of a trace of 12 such numbers
    assert_allclose(Z @ Z.T, kernel(X, B) @ least, atol=2e-6 * scale)
    assert_allclose(features.double(B) @ Z.T, kernel(B, X), atol=1e-3 * scale)
    at = features.support
    assert_allclose(features.double(at) @ Z.T, kernel(at, X), atol=1e-9 * scale)
    assert_array_equal(at, B[features.kept])


@each_kernel
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1300, 130)])
def test_single_precision_rounds_the_double(kernel, n, m):
    X, B = rows(n), rows(m, seed=1)
    features = RowFeatures(kernel, B)
    K, R = np.abs(kernel(X, features.support)), np.abs(features.inverse)
    # a value, a factor and m sums of products, each rounded once
    bound = (features.m + 3) * np.finfo(np.float32).eps * (K @ R.T)
    assert (np.abs(single(features, X) - features.double(X)) <= bound).all()


@pytest.mark.parametrize("kernel", [RBF(0.2), Linear(), Polynomial(2)])
@pytest.mark.parametrize("sparse_basis", [False, True])
def test_sparse_rows_have_the_features_of_dense_ones(kernel, sparse_basis):
    X, B = rows(50), rows(12, seed=1)
    X[X < 0] = B[B < 0] = 0
    one = RowFeatures(kernel, B)
    two = RowFeatures(kernel, csr(B) if sparse_basis else B)
    assert_array_equal(one.kept, two.kept)
    assert_allclose(one.double(X), two.double(csr(X)), atol=1e-9 * np.abs(X).max())
    close = 1e-4 * np.abs(one.double(X)).max()
    assert_allclose(single(one, X), single(two, csr(X)), atol=close)


def test_missing_entries_count_as_the_mean_of_their_row():
    X, B = rows(50), rows(3, seed=1)
    X[::2, 1] = np.nan
    features = RowFeatures(Pearson(), B)
    w = np.arange(1.0, features.m + 1)
    scores = Pearson()(X, features.support) @ features.coefficients(w)
    assert_allclose(features.double(X) @ w, scores, atol=1e-12)


def test_rows_that_add_nothing_are_left_out():
    B = rows(8, seed=1)
    features = RowFeatures(RBF(0.2), np.concatenate([B, B + 1e-9, B[:2]]))
    assert features.m == 8
    assert_array_equal(np.sort(features.kept % 8), np.arange(8))
    assert RowFeatures(Linear(), rows(40)).m == 4  # columns
    assert np.abs(features.inverse).max() < 1e4
    # the second row leaves 1 - exp(-apart^2) of a trace of 2: 0.8e-7 and 1.25e-7
    for apart, m in ((4e-4, 1), (5e-4, 2)):
        assert RowFeatures(RBF(0.5), np.array([[0.0], [apart]])).m == m


@pytest.mark.parametrize("kernel", [RBF(10.0), ARD(10 * GAMMA)], ids=["rbf", "ard"])
def test_no_feature_in_single_precision_is_tiny(kernel):
    X, B = rows(3000), rows(40, seed=1)
    features = RowFeatures(kernel, B)
    assert (kernel(X, B) < 1e-20).mean() > 0.01
    Z, exact = single(features, X), features.double(X)
    assert np.abs(Z[Z != 0]).min() > 1e-30
    assert_allclose(Z, exact, rtol=0, atol=2e-7)
    assert (Z[exact > 1e-3] > 0).all()


@rows_keep_their_bytes
def test_blocks_have_the_bytes_of_the_whole():
    X, features = rows(5000), RowFeatures(RBF(0.2), rows(200, seed=1))
    whole = single(features, X)
    for begin, end in ((0, 1024), (1024, 4096), (4096, 5000), (7, 8), (900, 2000)):
        assert_array_equal(single(features, X[begin:end]), whole[begin:end])
    assert_array_equal(single(features, X.astype(np.float32).astype(float)),
                       single(features, X.astype(np.float32)))  # fmt: skip


@pytest.mark.parametrize("kernel", [Linear(), LinearARD(GAMMA)])
def test_unit_vectors_are_a_basis_of_linear_kernels(kernel):
    X = rows(50)
    features, general = ColumnFeatures(kernel, 4), RowFeatures(kernel, np.eye(4))
    Z = features.double(X)
    assert_allclose(Z @ Z.T, kernel(X, X))
    assert_allclose(Z[:, general.kept], general.double(X))
    assert_array_equal(single(features, X), Z.astype(np.float32))
    w = np.random.default_rng(2).normal(size=(4, 2))
    assert_allclose(Z @ w, kernel(X, features.support) @ features.coefficients(w))
    assert_allclose(Z @ w[:, 0], kernel(X, np.eye(4)) @ features.coefficients(w[:, 0]))
    assert kernel.is_linear
    assert not RBF(1.0).is_linear


@pytest.mark.parametrize("scale", [1e16, 1e60])
@pytest.mark.parametrize("make", [ColumnFeatures, RowFeatures])
def test_features_that_sums_cannot_hold_are_refused(make, scale):
    features = make(Linear(), 4 if make is ColumnFeatures else rows(12))
    raises(ValueError, "scale the features of X", single, features, scale * rows(50))
    with pytest.raises(ValueError, match="kernel must not be zero on every row"):
        RowFeatures(Linear(), np.zeros((5, 2)))
