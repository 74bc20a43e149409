from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose
from strategies import raises

from ordinal.model_selection import centred_discrepancy, uniform_design


def at_middles(levels):
    return (2 * levels - 1) / (2 * len(levels))


@given(hnp.arrays(np.float64, (4, 2), elements=st.floats(0, 1, width=16)))
def test_discrepancy_is_its_definition(points):
    """The L2 norm, over the cube and its two sides through the centre, of by how much
    the share of points in the box between x and its nearest corner misses its volume;
    by the midpoint rule."""
    m = 400
    grid = (np.arange(m) + 0.5) / m
    total = 0.0
    for sides in ((0,), (1,), (0, 1)):
        inside, volume = np.ones((1, len(points))), np.ones(1)
        for k in sides:
            below = grid[:, None] <= 0.5
            x, p = grid[:, None], points[None, :, k]
            part = np.where(below, p < x, p >= x).astype(float)
            inside = (inside[:, None] * part[None]).reshape(-1, len(points))
            length = np.where(grid <= 0.5, grid, 1 - grid)
            volume = np.multiply.outer(volume, length).ravel()
        total += ((inside.mean(axis=1) - volume) ** 2).mean()
    assert_allclose(centred_discrepancy(points), np.sqrt(total), atol=0.01)


@given(st.integers(5, 13) | st.integers(22, 40), st.integers(1, 3))
def test_every_level_once_and_the_centre(n, d):
    levels = uniform_design(n, d)
    for column in levels.T:
        assert sorted(column.tolist()) == list(range(1, n + 1))
    if n % 2:
        assert (levels == (n + 1) // 2).all(axis=1).any()
    expected = levels.copy()
    levels += 1  # what is handed out is the caller's
    assert np.array_equal(uniform_design(n, d), expected)


# centred L2 discrepancies of the tables for two factors that Huang et al. used
@pytest.mark.parametrize(("n", "table"), [(5, 0.10512), (9, 0.05986), (13, 0.04180)])
def test_as_even_as_the_published_tables(n, table):
    assert centred_discrepancy(at_middles(uniform_design(n, 2))) < table + 1e-5


@pytest.mark.parametrize(("n", "d"), [(8, 2), (9, 3), (12, 4)])
def test_no_exchange_of_two_levels_makes_a_design_more_even(n, d):
    levels = uniform_design(n, d)
    least = centred_discrepancy(at_middles(levels))
    rows = np.flatnonzero((2 * levels != n + 1).any(axis=1))
    for k in range(1, d):
        for p, q in combinations(rows, 2):
            other = levels.copy()
            other[[p, q], k] = levels[[q, p], k]
            assert centred_discrepancy(at_middles(other)) >= least - 1e-12


def test_impossible_designs_and_points_outside_the_cube():
    for n, d in ((2, 3), (0, 2), (5, 0), (5, 2.0), (5, 10**12)):
        raises(ValueError, r"n=|n must|d must", uniform_design, n, d)
    with pytest.raises(ValueError, match=r"n=1000000 is too large in d=2 .* 15811$"):
        uniform_design(10**6, 2)
    for points in ([], [0.5], [[0.5, 1.1]], [[np.nan]]):
        raises(ValueError, r"in \[0, 1\]", centred_discrepancy, points)
