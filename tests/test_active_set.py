"""`ActiveSet.minimise`: feasible and no worse always, optimal where K has full rank."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import Gram, path_of
from numpy.testing import assert_allclose, assert_array_equal
from strategies import moderate, sample

from ordinal import kernels, svor
from ordinal._quadratic.driver import Pivoting
from ordinal._quadratic.program import restore_sums
from ordinal._solvers._active_set import ActiveSet
from ordinal.kernels.tiles import Products

ALL = 10_000  # pivots: more than any of these problems takes


class Program(NamedTuple):
    """K, and arrays of (T, n) that define boxes and slopes; (T,) curvatures of z."""

    K: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    pn: np.ndarray
    pp: np.ndarray
    curvature: np.ndarray

    @property
    def priced(self):
        return bool(self.curvature.any())

    def active(self, room=None):
        return ActiveSet(self.K, self.curvature, room or self.lo.size + len(self.lo))


class Point(NamedTuple):
    g: np.ndarray
    z: np.ndarray
    f: np.ndarray
    pivots: int


def pivoted(p, g, active=None, *, tol=1e-6, most=ALL):
    """Solve from the feasible point g, (T, n), and return the end."""
    T, n = g.shape
    active = p.active() if active is None else active
    box = np.full(T, np.inf if p.priced else 0.0)
    z = -g.sum(axis=1) if p.priced else np.zeros(T)
    entries, f = np.concatenate([g.ravel(), z]), p.K @ g.sum(axis=0)
    ends = [np.concatenate([a.ravel(), b]) for a, b in ((p.lo, -box), (p.hi, box))]
    slopes = [np.concatenate([a.ravel(), np.zeros(T)]) for a in (p.pn, p.pp)]
    pivots = active.minimise(entries, f, *ends, *slopes, tol, most)
    return Point(entries[: T * n].reshape(T, n), entries[T * n :], f, pivots)


def value(p, g, z):
    beta = g.sum(axis=0)
    terms = np.maximum(p.pn * g, p.pp * g).sum() + 0.5 * p.curvature @ z**2
    return 0.5 * beta @ p.K @ beta + terms


def violation(p, s):
    """The largest over the groups of max L - min R, from K."""
    f = p.K @ s.g.sum(axis=0)
    R = np.where(s.g < p.hi, f + np.where(s.g < 0, p.pn, p.pp), np.inf).min(axis=1)
    L = np.where(s.g > p.lo, f + np.where(s.g > 0, p.pp, p.pn), -np.inf).max(axis=1)
    if p.priced:
        b = s.z * p.curvature
        R, L = np.minimum(R, b), np.maximum(L, b)
    return (L - R).max()


def rounding(p, s):
    """Bound the rounding of a derivative, and of a sum over a group."""
    size = 1 + np.abs(p.K) @ np.abs(s.g).sum(axis=0) + np.abs([p.pn, p.pp]).max()
    width = 1 + (p.hi - p.lo).sum(axis=1).max()
    return 1e-12 * size.max(), 1e-14 * (99 + s.pivots) * width


def assert_feasible_and_no_worse(p, s, start):
    of_f, of_sum = rounding(p, s)
    assert np.all((p.lo <= s.g) & (s.g <= p.hi))
    assert_allclose(s.g.sum(axis=1), -s.z, atol=of_sum)
    assert_allclose(s.f, p.K @ s.g.sum(axis=0), atol=of_f)
    z = -start.sum(axis=1) if p.priced else np.zeros(len(start))
    assert value(p, s.g, s.z) <= value(p, start, z) + of_f * (1 + (p.hi - p.lo).sum())


@st.composite
def programs(draw, max_n=9, max_T=4, ridge=(0.0, 1e-6, 1.0)):
    """(p, feasible start): rows of K repeat; boxes hold 0 and may be points."""
    n, T = draw(st.integers(2, max_n)), draw(st.integers(1, max_T))
    reals = st.floats(-2, 2, width=16)
    B = draw(hnp.arrays(np.float64, (n, draw(st.integers(1, n + 1))), elements=reals))
    if draw(st.booleans()):
        B = B[draw(hnp.arrays(np.intp, n, elements=st.integers(0, n - 1)))]
    K = B @ B.T + draw(st.sampled_from(ridge)) * np.eye(n)
    ends = draw(hnp.arrays(np.float64, (2, T, n), elements=reals)) * draw(moderate)
    ends *= draw(hnp.arrays(np.float64, (2, T, n), elements=st.sampled_from([0, 1])))
    lo, hi = ends.min(axis=0).clip(max=0), ends.max(axis=0).clip(min=0)
    slopes = draw(hnp.arrays(np.float64, (2, T, n), elements=reals))
    if draw(st.booleans()):
        slopes[1] = slopes[0]  # without kinks
    curvature = np.zeros(T)
    if draw(st.booleans()):
        curve = st.sampled_from([0.2, 1.0, 3.0])
        curvature = draw(hnp.arrays(np.float64, T, elements=curve))
    p = Program(K, lo, hi, slopes.min(axis=0), slopes.max(axis=0), curvature)
    part = draw(hnp.arrays(np.float64, (T, n), elements=st.sampled_from([0, 0.3, 1])))
    start = part * np.where(draw(st.booleans()), lo, hi)
    return p, start if p.priced else restore_sums(start, lo, hi)


@given(programs(ridge=(1.0,)))
def test_it_ends_at_the_optimum(case):
    p, start = case
    s = pivoted(p, start)
    assert_feasible_and_no_worse(p, s, start)
    assert violation(p, s) <= 0.9e-6 + rounding(p, s)[0]


@given(programs(ridge=(1.0,)), st.integers(0, 40))
def test_h_is_the_inverse_of_the_bordered_matrix(case, most):
    """However many entries came and went, and whichever groups have none."""
    p, start = case
    T, n = p.lo.shape
    # every row at one threshold only: where it is free at two, K_FF is singular
    own = np.arange(n) % T == np.arange(T)[:, None]
    p = p._replace(lo=p.lo * own, hi=p.hi * own)
    start = start * own if p.priced else restore_sums(start * own, p.lo, p.hi)
    active = p.active()
    pivoted(p, start, active, most=most)
    F, H = active.free()
    T, n = p.lo.shape
    assert len(F) == len(set(F)) == active.size
    group, row = np.where(F < T * n, F // n, F - T * n), F % n
    E = (group[:, None] == np.arange(T)) * 1.0
    has_row = F < T * n
    K = p.K[np.ix_(row, row)] * (has_row[:, None] & has_row)
    K += np.diag(np.where(has_row, 1e-10 * np.trace(p.K) / n, p.curvature[group]))
    bordered = np.block([[np.zeros((T, T)), E.T], [E, K]])
    held = np.concatenate([E.any(axis=0), np.ones(len(F), bool)])
    assert_allclose(H @ bordered, np.diag(held * 1.0), atol=1e-10)
    assert not H[~held].any()


@pytest.fixture
def spied(monkeypatch):
    """The pivots that active sets made."""
    pivots, minimise = [], Pivoting.minimise

    def spy(*args, **options):
        pivots.append(minimise(*args, **options))
        return pivots[-1]

    monkeypatch.setattr(Pivoting, "minimise", spy)
    return pivots


COSTS = [0.1, 1.0, 3.0, 10.0, 30.0, 1000.0]
POINTS = [{"C": C} for C in COSTS]


@pytest.mark.parametrize("method", ["svorim", "svorex", "shashua_levin", "redsvm"])
def test_paths_of_thresholds_end_by_pivots(method, spied):
    X, y = sample(150)
    fit = getattr(svor, f"fit_{method}")
    found, _ = path_of(fit).fit(X, y, POINTS, Products(X), gamma=0.1, n_threads=1)
    assert sum(spied) > 20
    for C, model in zip(COSTS, found, strict=True):
        alone = fit(X, y, C=C, gamma=0.1, tol=1e-6)
        c = model.convergence
        assert c.converged
        assert c.gap <= 0.5e-3 * C * 4 * len(y)
        rounding = 1e-13 * (1 + abs(c.primal))
        assert c.dual <= alone.convergence.primal + rounding
        assert alone.convergence.dual <= c.primal + rounding
        f, g = (of.decision_function(X) for of in (model, alone))
        assert_allclose(f, g, atol=2e-3 * C**0.5)


def test_what_one_problem_is_computed_from_does_not_depend_on_another():
    """K in double serves Newton steps and products once no thread is at work."""
    X, _ = sample(200)
    g, rows = np.ones((1, 200)), np.arange(0, 200, 3)
    gram = Gram(kernels.RBF(0.3), X, 100.0, 2, 64)
    block, product = gram.block(rows), gram.product(g)
    K = gram.in_double()  # as the pivots of one problem make it, beside other problems
    assert gram.block(rows).tobytes() == block.tobytes()
    assert gram.product(g).tobytes() == product.tobytes()
    gram.share_double()
    assert_array_equal(gram.block(rows), K[np.ix_(rows, rows)])
    assert_array_equal(gram.product(g), g @ K)
    assert_allclose(gram.product(g), product, rtol=1e-12)
