"""Matrices that are block tridiagonal but for a border, and their factors."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Monitor
from numpy.testing import assert_allclose

from ordinal._cumulative.fitting import newton
from ordinal._cumulative.likelihood import Bordered, Factor, Point

seeds = st.integers(0, 2**32 - 1)
sizes = st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(0, 3))


def positive(seed, T, M, D):
    """A positive definite matrix of this form, and as an array."""
    rng = np.random.default_rng(seed)
    U, p = T * M, T * M + D
    L = np.tril(rng.normal(size=(p, p))) + 2 * np.eye(p)
    block = np.arange(U) // M
    L[:U, :U][block[:, None] - block > 1] = 0.0  # L L' is block tridiagonal then
    H = L @ L.T
    at = [slice(t * M, (t + 1) * M) for t in range(T)]
    first = rng.permutation(p)[:U]
    rest = np.setdiff1d(np.arange(p), first)
    made = Bordered(
        np.array([H[t, t] for t in at]).reshape(T, M, M),
        np.array([H[t, u] for t, u in pairwise(at)]).reshape(max(T - 1, 0), M, M),
        H[:U, U:].reshape(T, M, D), H[U:, U:], first, rest,
    )  # fmt: skip
    order = np.argsort(np.concatenate([first, rest]))
    return made, H[np.ix_(order, order)]


@given(seeds, sizes)
def test_it_and_its_factor_are_those_of_its_array(seed, size):
    if size[0] * size[1] + size[2] == 0:
        return
    made, H = positive(seed, *size)
    assert_allclose(made.dense(), H)
    normed, unit = made.normed()
    assert_allclose(unit, 1 / np.sqrt(np.abs(np.diagonal(H))))
    assert_allclose(normed.dense(), H * unit * unit[:, None])
    v = np.random.default_rng(seed).uniform(0.5, 2, len(H))
    assert_allclose(made.plus(v).dense(), H + np.diag(v))
    for index in made.rest:
        less = np.delete(np.delete(H, index, 0), index, 1)
        assert_allclose(made.without(index).dense(), less)
    factor = Factor(made)
    rounding = 1e-13 * np.linalg.cond(H)
    assert_allclose(factor.solve(H @ v), v, rtol=0, atol=10 * rounding)
    assert_allclose(factor.inverse() @ H, np.eye(len(H)), rtol=0, atol=rounding)
    least = np.linalg.eigvalsh(H)[0]
    Factor(made.plus(np.full(len(H), -0.99 * least)))
    with pytest.raises(np.linalg.LinAlgError):
        Factor(made.plus(np.full(len(H), -1.01 * least)))


class Saddle:
    """x'Hx / 2 with eigenvalues of H -least and 2 + least; where it was asked for."""

    design = SimpleNamespace(total=1.0)
    is_convex = False

    def __init__(self, least):
        self.H = np.array([[1.0, 1.0 + least], [1.0 + least, 1.0]])
        self.asked = []

    def at(self, x):
        self.asked.append(x)
        H = Bordered.from_dense(self.H)
        return Point(x, 0.5 * float(x @ self.H @ x), self.H @ x, H)


@pytest.mark.parametrize("spare", [1e-6, 1e-3, 0.5])
def test_no_step_is_made_of_rounding(spare):
    """Among the shifts tried, 3^18 1e-10 is the first above the curvature: a tenth more
    bounds the step by ten times the distance, however little it is above."""
    loss = Saddle(3.0**18 * 1e-10 * (1 - spare))
    start = np.array([1.0, -1.0])
    newton(loss, start, 1, Monitor("descent", 1e-6))
    assert 0.8 < np.abs(loss.asked[1] - start).max() < 10.001
