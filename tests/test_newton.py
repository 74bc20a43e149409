"""`clamped_step`: feasible and no worse always.

The Newton steps of test_pair_smo.py show that it is the minimiser where no bound is
met, and that it keeps to its room.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ordinal._quadratic.newton import clamped_step


def step(M, slope, at, left, right, E):
    return clamped_step(M.copy(), slope, at, left, right, E)


def columns(of):
    """E whose row i has its 1 in column of[i]."""
    return (np.asarray(of)[:, None] == np.unique(of)) * 1.0


def well_posed(m, p, seed=0):
    """M with eigenvalues of 1 and more, slopes and E, of which p columns share rows."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(m, m)) / np.sqrt(m)
    return B @ B.T + np.eye(m), rng.normal(size=m), columns(np.arange(m) % p)


@st.composite
def faces(draw):
    """M of any rank with repeated rows, a point in a box, some of it without width."""
    m = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    B = rng.normal(size=(m, draw(st.integers(1, m))))[rng.integers(m, size=m)]
    M = B @ B.T + draw(st.sampled_from([0.0, 1e-6, 1.0])) * np.eye(m)
    slope = rng.normal(size=m) * draw(st.sampled_from([1e-3, 1.0, 100.0]))
    at = rng.normal(size=m)
    room = rng.exponential(draw(st.sampled_from([0.1, 3.0, 1e3])), size=(2, m))
    room *= rng.random(size=(2, m)) < draw(st.sampled_from([0.3, 0.9, 1.0]))
    E = columns(rng.integers(draw(st.integers(1, 3)), size=m))
    return M, slope, at, at - room[0], at + room[1], E


@given(faces())
def test_a_step_is_feasible_and_lowers_the_objective(face):
    M, slope, at, left, right, E = face
    new = step(*face)
    if new is None:
        return
    assert np.all((left <= new) & (new <= right))
    d = new - at
    size = 1 + np.abs(at).max() + np.abs(d).max()
    # all m of them may round, at their size
    assert_allclose(d @ E, 0, atol=4e-16 * at.size * size)
    change = 0.5 * d @ M @ d + slope @ d
    terms = 0.5 * np.abs(d) @ np.abs(M) @ np.abs(d) + np.abs(slope) @ np.abs(d)
    assert change <= 1e-13 * terms


def test_there_is_no_step_where_none_is_worth_it():
    M, slope, E = well_posed(20, 1)
    box = np.full(20, 9.0)
    M[4, 4] = -0.1
    assert step(M, slope, np.zeros(20), -box, box, E) is None
    M, slope, E = well_posed(20, 2)
    zero, box = np.zeros(20), np.full(20, 9.0)
    assert step(M, zero, zero, -box, box, E) is None
    assert step(M, slope, zero, zero, zero, E) is None
    # of 513 variables half want to be 9 higher and half 9 lower
    for m, moves in [(512, True), (513, False)]:
        slope = np.where(np.arange(m) % 2, 9.0, -9.0)
        box = np.full(m, 0.5)
        new = step(np.eye(m), slope, np.zeros(m), -box, box, np.ones((m, 1)))
        assert (new is not None) == moves
