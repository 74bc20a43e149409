"""Cholesky factor and triangular solves against numpy and scipy."""

import itertools

import numpy as np
import pytest
from internals import OutOfTime, check_cancelled, ended_by, pivoted_cholesky
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg

from ordinal._numerics.cholesky import BLOCK, Cholesky, in_proportion, lower_inverse

SIZES = [1, 2, 31, 33, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 17]


def positive_definite(n, seed=0, condition=1e3):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    A = (Q * np.geomspace(1, condition, n)) @ Q.T
    return (A + A.T) / 2


def assert_factorises(A, rtol):
    n = len(A)
    L = np.linalg.cholesky(A)
    B = np.random.default_rng(n).normal(size=(n, 3))
    factor = Cholesky(A.copy())
    scale = np.abs(np.linalg.inv(L)).sum(axis=1).max() * np.abs(B).max()
    close = {"rtol": rtol, "atol": rtol * scale}
    forward = linalg.solve_triangular(L, B, lower=True)
    assert_allclose(factor.forward(B.copy()), forward, **close)
    backward = linalg.solve_triangular(L.T, B, lower=False)
    assert_allclose(factor.backward(B.copy()), backward, **close)
    residual = A @ factor.solve(B.copy()) - B
    assert np.abs(residual).max() <= rtol * np.linalg.cond(A) * np.abs(B).max()
    for J in factor.blocks:  # the layout that the docstring promises
        assert_allclose(factor.A[J, J], np.linalg.inv(L[J, J]), **close)
        atol = rtol * np.abs(L).max()
        assert_allclose(factor.A[J.stop :, J], L[J.stop :, J], rtol=rtol, atol=atol)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8])
def test_solves_agree_with_scipy(n, condition):
    assert_factorises(positive_definite(n, n, condition), 1e-11 * condition**0.5)


@pytest.mark.parametrize("n", SIZES)
def test_the_inverse_in_two_halves(n):
    A = positive_definite(n, n)
    for unit in (1e-200, 1.0, 1e200):  # the determinant itself is 0 or infinite
        expected = np.linalg.slogdet(A)[1] + n * np.log(unit)
        assert_allclose(Cholesky(unit * A).log_det, expected, rtol=1e-12, atol=1e-10)
    above = np.triu(np.full((n, n), 7.0), 1)
    start = np.tril(A)
    for J in Cholesky(A.copy()).blocks:  # numpy reads and writes no more than these
        start[J.start : J.stop, J.stop :] = above[J.start : J.stop, J.stop :]
    factor = Cholesky(start)
    memory = factor.A
    inverse = factor.invert_factor()
    assert inverse is memory
    L = np.linalg.cholesky(A)
    close = {"rtol": 1e-9, "atol": 1e-11}
    assert_allclose(np.tril(inverse) @ L, np.eye(n), atol=1e-11 * n)
    for J in factor.blocks:  # zeros in the diagonal blocks, and beyond as it was
        assert_array_equal(np.triu(inverse[J, J], 1), 0)
        assert_array_equal(inverse[J, J.stop :], above[J, J.stop :])
    whole = factor.inverse_from_factor()
    assert whole is memory
    assert_array_equal(whole, whole.T)
    assert_allclose(whole, np.linalg.inv(A), **close)
    assert_array_equal(Cholesky(A.copy()).inverse(), whole)


def test_the_lower_triangle_alone_is_read_and_written():
    A = positive_definite(2 * BLOCK + 9)
    B = np.ones((len(A), 1))
    expected = Cholesky(A.copy()).solve(B.copy())
    lower = np.tril(A)
    for start in range(0, len(A), BLOCK):  # numpy reads the lower triangle only too
        stop = min(start + BLOCK, len(A))
        lower[start:stop, stop:] = np.nan
    assert_array_equal(Cholesky(lower).solve(B.copy()), expected)
    A, B = positive_definite(50), np.ones((50, 2))
    factor = Cholesky(A)
    assert factor.A is A
    for solve in (factor.forward, factor.backward, factor.solve):
        assert solve(B) is B
    with pytest.raises(np.linalg.LinAlgError):
        Cholesky(np.ones((BLOCK + 40, BLOCK + 40)))


@pytest.mark.parametrize("n", SIZES)
def test_a_matrix_that_is_not_positive_definite_is_refused(n):
    for where, value in itertools.product({0, n // 2, n - 1}, (-1.0, np.nan)):
        A = positive_definite(n)
        A[where, where] = value
        with pytest.raises(np.linalg.LinAlgError):
            Cholesky(A)
    with pytest.raises(np.linalg.LinAlgError):
        Cholesky(np.zeros((n, n)))


@pytest.mark.slow("factors of 1300 rows")
def test_threads_change_no_byte_of_a_basis():
    """The matrix is large enough for several tiles and for threads to be used."""
    A = positive_definite(1300)

    def tile(rows, columns, out):
        out[:] = A[rows][:, columns]

    diagonal = np.diagonal(A)
    factors = [pivoted_cholesky(diagonal, tile, 1300, n_threads=k) for k in (1, 3)]
    (L, order, _), (again, _, _) = factors
    assert_array_equal(L, again)
    assert_allclose(L @ L.T, A, atol=1e-9 * A.max())
    L = np.tril(L[order])
    inverse = lower_inverse(L, 1)
    assert_array_equal(inverse, lower_inverse(L, 3))
    assert_array_equal(inverse, np.tril(inverse))
    assert_allclose(inverse @ L, np.eye(1300), atol=1e-9)


def test_a_factorisation_that_is_of_no_more_use_ends():
    """Every operation on it checks for cancellation between its blocks."""
    factor = Cholesky(np.eye(300))
    for call in (
        lambda: Cholesky(np.eye(300)),
        lambda: factor.solve(np.ones((300, 1))),
        factor.invert_factor,
        factor.inverse_from_factor,
        lambda: pivoted_cholesky(np.ones(300), lambda rows, columns, out: None, 9),
    ):
        with ended_by(lambda: True), pytest.raises(OutOfTime):
            call()
    with ended_by(lambda: True):
        with ended_by(lambda: False):
            factor.solve(np.ones((300, 1)))
        with pytest.raises(OutOfTime):
            check_cancelled()
    check_cancelled()  # outside nothing ends


@pytest.mark.slow("a thousand draws")
def test_pivots_are_drawn_by_what_the_others_leave():
    K = np.array([[4.0, 1.9, 0.3], [1.9, 1.0, 0.1], [0.3, 0.1, 2.0]])

    def tile(rows, columns, out):
        out[:] = K[rows][:, columns]

    counts, n = np.zeros((3, 3)), 1000
    for seed in range(n):
        rng = np.random.default_rng(seed)
        L, pivots, _ = pivoted_cholesky(np.diagonal(K), tile, 2, rng=rng)
        assert_allclose((L @ L.T)[pivots], K[pivots], atol=1e-14)
        counts[tuple(pivots)] += 1
    left = np.diagonal(K) - K**2 / np.diagonal(K)[:, None]  # by the first pivot
    np.fill_diagonal(left, 0)
    first = np.diagonal(K)[:, None] / np.trace(K)
    expected = first * left / left.sum(axis=1, keepdims=True)
    error = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs(counts / n - expected) <= 3.5 * error).all()


def test_weights_are_drawn_in_proportion():
    weights = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    rng = np.random.default_rng(0)
    counts = np.bincount(in_proportion(weights, 10_000, rng), minlength=5)
    assert (counts[[0, 2, 4]] == 0).all()
    assert abs(counts[3] - 7500) <= 3.5 * np.sqrt(10_000 * 3 / 16)

    class Highest:
        def random(self, size):
            return np.full(size, 1 - 2.0**-53)

    assert in_proportion(0.1 * weights, 1, Highest()) == [3]
