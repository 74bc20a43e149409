"""`solve` on (Q) of `_quadratic/program.py` with groups: certificates, oracles."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import Gram, Monitor, Points, least_rows, solve
from numpy.testing import assert_allclose, assert_array_equal
from strategies import moderate, sample

from ordinal import kernels
from ordinal._quadratic import program as dual
from ordinal._quadratic.newton import clamped_step, newton_step
from ordinal._solvers._pair_smo import groups_of_block
from ordinal.models import Status

KINDS = ("separate", "coupled", "priced")
every_kind = pytest.mark.parametrize("kind", KINDS)


def of_kind(kind, price):
    """The terms that make thresholds what they are."""
    return {"coupled": kind == "coupled", "price": price if kind == "priced" else None}


class Terms(NamedTuple):
    """Boxes and slopes of one problem, arrays of (T, n)."""

    lo: np.ndarray
    hi: np.ndarray
    pn: np.ndarray
    pp: np.ndarray
    coupled: bool = False
    price: np.ndarray | None = None

    @classmethod
    def linear(cls, lo, hi, slope, *others, **named):
        return cls(lo, hi, slope, slope, *others, **named)

    @property
    def program(self):
        return dual.Program(*(a[None] for a in self[:4]), self.coupled, self.price)


class Program(NamedTuple):
    """(Q): K and the terms of one problem."""

    K: np.ndarray
    terms: Terms

    @property
    def price(self):
        return self.terms.price if self.priced else np.ones(len(self.terms.lo))

    @property
    def priced(self):
        return self.terms.price is not None

    @property
    def width(self):
        return self.terms.hi - self.terms.lo

    def changed(self, **terms):
        return self._replace(terms=self.terms._replace(**terms))


@st.composite
def programs(draw, max_n=9, max_T=4, kinds=KINDS):
    """Random (Q): rows of K repeat, ranks are short, boxes hold 0 and may be points,
    and slopes differ at 0 for all, some or none of the variables."""
    n, T = draw(st.integers(2, max_n)), draw(st.integers(1, max_T))
    m = draw(st.integers(1, n + 1))
    reals = st.floats(-2, 2, width=16)
    B = draw(hnp.arrays(np.float64, (n, m), elements=reals))
    if draw(st.booleans()):
        B = B[draw(hnp.arrays(np.intp, n, elements=st.integers(0, n - 1)))]
    ends = draw(hnp.arrays(np.float64, (2, T, n), elements=reals)) * draw(moderate)
    ends *= draw(hnp.arrays(np.float64, (2, T, n), elements=st.sampled_from([0, 1])))
    slope = draw(hnp.arrays(np.float64, (T, n), elements=reals))
    kink = draw(hnp.arrays(np.float64, (T, n), elements=st.sampled_from([0, 0.5, 2])))
    kink *= draw(st.booleans())
    price = draw(hnp.arrays(np.float64, T, elements=st.sampled_from([0.3, 1, 7.0])))
    kind = of_kind(draw(st.sampled_from(kinds)), price)
    lo, hi = ends.min(axis=0).clip(max=0), ends.max(axis=0).clip(min=0)
    return Program(B @ B.T, Terms(lo, hi, slope, slope + kink, **kind))


def gram(K, n_threads=1):
    return Gram(kernels.Precomputed(), K, 100.0, n_threads, len(K))


def solved(p, g=None, *, rows=None, callback=None, max_time=None, **options):
    options = {"tol": 1e-6, "max_iter": 10_000_000, "n_threads": 1, **options}
    monitor = Monitor("solve", options["tol"], callback, max_time)
    rows = gram(p.K, options["n_threads"]) if rows is None else rows
    g = np.zeros(p.terms.lo.shape) if g is None else g
    return first(solve(rows, p.terms.program, g[None], **options, monitor=monitor))


def first(s):
    """The first problem of a solution, or of points."""
    names = ("g", "z", "mu", "f", "low", "up", "violation", "n_iter")
    arrays = {name: getattr(s, name)[0] for name in names if hasattr(s, name)}
    return SimpleNamespace(**arrays, status=getattr(s, "status", None))


def value(p, s):
    beta = s.g.sum(axis=0)
    phi = np.maximum(p.terms.pn * s.g, p.terms.pp * s.g).sum()
    return 0.5 * beta @ p.K @ beta + phi + 0.5 * s.z @ (s.z / p.price)


def may_give(p, s, k, j):
    """Return whether an entry of threshold k may shrink for one of j to grow."""
    return k == j or (p.terms.coupled and (k < j or all(s.mu[j + 1 : k + 1] > 0)))


def low_up_violation(p, s):
    """(KKT) entry by entry and pair by pair."""
    lo, hi, pn, pp = p.terms[:4]
    T, n = lo.shape
    f = p.K @ s.g.sum(axis=0)
    shrinks, grows = [[] for _ in range(T)], [[] for _ in range(T)]
    for j in range(T):
        for i in range(n):
            if s.g[j, i] > lo[j, i]:
                shrinks[j].append(f[i] + (pp if s.g[j, i] > 0 else pn)[j, i])
            if s.g[j, i] < hi[j, i]:
                grows[j].append(f[i] + (pn if s.g[j, i] < 0 else pp)[j, i])
        if p.priced:
            shrinks[j].append(s.z[j] / p.price[j])
            grows[j].append(s.z[j] / p.price[j])
    low, up, violation = np.full(T, -np.inf), np.full(T, np.inf), -math.inf
    for k in range(T):
        for j in range(T):
            if may_give(p, s, k, j):
                gives = max(shrinks[k], default=-np.inf)
                takes = min(grows[j], default=np.inf)
                low[j], up[k] = max(low[j], gives), min(up[k], takes)
                violation = max(violation, gives - takes)
    return low, up, violation


def multipliers(s):
    """The middle of [low, up], of which an end may be infinite."""
    ends = np.concatenate([s.low, s.up])
    B = 1 + np.abs(ends[np.isfinite(ends)]).max(initial=0)
    return 0.5 * (s.low.clip(min=-B) + s.up.clip(max=B))


def gap(p, s):
    """Return a bound of the value above the optimum, from convexity and b."""
    lo, hi, pn, pp = p.terms[:4]
    b = multipliers(s)
    d = s.f - b[:, None]

    def at(g):
        return d * g + np.maximum(pn * g, pp * g)

    falls = (at(s.g) - np.minimum(np.minimum(at(lo), at(hi)), 0)).sum()
    return falls + (0.5 * p.price @ (s.z / p.price - b) ** 2 if p.priced else 0)


def bound_on_gap(p, s):
    v = max(s.violation, 0)
    return v / 2 * p.width.sum() + (p.price.sum() * v**2 / 8 if p.priced else 0)


def rounding(p, s):
    """Bound the rounding of a derivative, of a sum over a threshold after all steps, of
    a value."""
    size = np.abs(s.g).sum(axis=0)
    of_f = 1e-13 * (
        1 + (np.abs(p.K) @ size).max() + np.abs([p.terms.pn, p.terms.pp]).max()
    )
    of_sum = 1e-15 * (99 + s.n_iter) * (1 + p.width.sum(axis=1).max())
    b = np.abs(multipliers(s)).max()
    return of_f, of_sum, (1 + p.width.sum()) * of_f + len(s.z) * (b + 1) * of_sum


def assert_feasible(p, s, of_sum):
    assert np.all((p.terms.lo <= s.g) & (s.g <= p.terms.hi))
    assert np.all(s.mu >= 0)
    assert s.mu[0] == s.mu[-1] == 0
    assert p.terms.coupled or not s.mu.any()
    assert p.priced or not s.z.any()
    assert_allclose(s.g.sum(axis=1), s.mu[:-1] - s.mu[1:] - s.z, atol=of_sum)


def assert_certified(p, s, tol):
    """Feasible; low, up, violation and f are what they are said to be; the gap."""
    of_f, of_sum, of_value = rounding(p, s)
    assert_feasible(p, s, of_sum)
    assert_allclose(s.f, p.K @ s.g.sum(axis=0), atol=of_f)
    low, up, violation = low_up_violation(p, s)
    assert_allclose(s.low, low, atol=of_f)
    assert_allclose(s.up, up, atol=of_f)
    assert_allclose(s.violation, violation, atol=of_f)
    assert s.violation <= tol
    assert np.all(np.diff(multipliers(s)) >= 0) or not p.terms.coupled
    assert -of_value <= gap(p, s) <= bound_on_gap(p, s) + of_value


@given(programs())
def test_the_result_is_optimal(p):
    s = solved(p)
    assert s.status is Status.CONVERGED
    assert_certified(p, s, 1e-6)


@st.composite
def starts(draw, p):
    """A feasible point: mass moves between thresholds, upwards or within one."""
    lo, hi = p.terms.lo, p.terms.hi
    T = len(lo)
    part = draw(hnp.arrays(np.float64, (T, T), elements=st.floats(0, 1)))
    if p.priced:
        return part[0, 0] * lo + part[-1, -1] * hi
    g = np.zeros(lo.shape)
    down, up = -lo.sum(axis=1), hi.sum(axis=1)
    for j in range(T):
        for k in range(j, T if p.terms.coupled else j + 1):
            amount = part[j, k] * min(down[j], up[k]) / T
            if amount > 0:
                g[j] += amount * lo[j] / down[j]
                g[k] += amount * hi[k] / up[k]
    return g.clip(lo, hi)


@given(st.data(), programs())
def test_the_start_does_not_matter(data, p):
    a, b = solved(p), solved(p, data.draw(starts(p)).copy())
    assert b.status is Status.CONVERGED
    assert_certified(p, b, 1e-6)
    slack = bound_on_gap(p, a) + bound_on_gap(p, b)
    atol = slack + rounding(p, a)[2] + rounding(p, b)[2]
    assert_allclose(value(p, a), value(p, b), atol=atol)


@given(st.data(), programs(), st.integers(1, 20))
def test_a_step_limit_is_kept_and_leaves_a_certified_point(data, p, steps):
    s = solved(p, data.draw(starts(p)), max_iter=steps)
    assert s.n_iter <= steps
    assert s.status is (Status.CONVERGED if s.violation <= 1e-6 else Status.MAX_ITER)
    assert_certified(p, s, max(s.violation, 1e-6))


def ranks(kind, n=400, T=4, C=30.0, noise=4.0):
    """SVORIM, SVOREX or REDSVM with weights, on ranks that the noise sets at odds."""
    X, y = sample(n, T + 1, seed=1, noise=noise)
    j = np.arange(T)[:, None]
    width = C * np.random.default_rng(1).uniform(0.2, 1, (T, n))
    if kind == "coupled":
        width *= (y == j) | (y == j + 1)
    lo, hi = np.where(y > j, 0.0, -width), np.where(y > j, width, 0.0)
    price = np.linspace(0.5, 2, T)
    terms = Terms.linear(lo, hi, np.where(y > j, -1.0, 1.0), **of_kind(kind, price))
    return Program(kernels.RBF(0.5)(X, X), terms)


@every_kind
@pytest.mark.parametrize("tol", [1e-1, 1e-4, 1e-8])
def test_every_tolerance_is_reached(kind, tol):
    p = ranks(kind)
    s = solved(p, tol=tol)
    assert s.status is Status.CONVERGED
    assert_certified(p, s, tol)
    assert s.mu.any() == p.terms.coupled  # the order of SVOREX does bind here


@pytest.mark.slow("hundreds of thresholds")
@every_kind
def test_more_thresholds_than_a_block_has_groups(kind):
    """Only the worst of them are in a block, with all that a pair of them needs."""
    T = groups_of_block(1000) + 6
    assert least_rows(T) == least_rows(groups_of_block(T)) < 4 * T
    p = ranks(kind, n=150, T=T)
    for rows in (gram(p.K), Gram(kernels.Precomputed(), p.K, 1e-9, 1, least_rows(T))):
        s = solved(p, rows=rows, tol=1e-3)
        assert s.status is Status.CONVERGED
        assert_certified(p, s, 1e-3)


@given(st.data(), programs())
def test_a_newton_step_from_anywhere_is_feasible_and_no_worse(data, p):
    points = Points(gram(p.K), p.terms.program, data.draw(starts(p))[None])
    point = first(points)
    before, g, mu = value(p, point), point.g.copy(), point.mu.copy()
    of_sum = 1e-13 * (1 + p.width.sum(axis=1).max())
    moved = newton_step(points, 0)
    assert_feasible(p, point, of_sum)
    assert not point.mu[mu == 0].any()
    assert value(p, point) <= before + (1 + p.width.sum()) * np.abs(p.K).max() * 1e-13
    if not moved:
        assert_array_equal(point.g, g)


def newton_case(kind, sums, b, start):
    """(p, points, optimum): nearly orthogonal rows, four at each of three thresholds;
    the optimum is chosen, is inside the boxes, and `start` is at their ends."""
    of, sign = np.arange(12) % 3, np.where(np.arange(12) // 3 % 2, -1.0, 1.0)
    X = 2.0 * np.arange(12)[:, None]
    K = kernels.RBF(0.5)(X, X)
    best = np.where(of == np.arange(3)[:, None], sign, 0.0)
    best[[0, 1, 2], [0, 1, 2]] += sums
    price = np.array([0.5, 1.0, 2.0])
    b = np.array(b) if kind != "priced" else -np.array(sums) / price
    slope = b[:, None] - K @ best.sum(axis=0)
    lo, hi = np.where(best < 0, -1e6, 0.0), np.where(best > 0, 1e6, 0.0)
    p = Program(K, Terms.linear(lo, hi, slope, **of_kind(kind, price)))
    return p, Points(gram(K), p.terms.program, np.array(start)[None]), best


@pytest.mark.parametrize(("kind", "sums", "b", "mass"), [
    ("separate", (0, 0, 0), (0.5, -0.2, 0.1), 0),
    ("priced", (0.5, 0.3, -0.4), None, 0),
    ("coupled", (0, 0, 0), (-0.2, 0.1, 0.5), 0),  # apart, in order
    ("coupled", (-0.5, -0.2, 0.7), (0.1, 0.1, 0.1), 1),  # all tied
])  # fmt: skip
def test_one_newton_step_ends_it_where_no_other_bound_is_met(kind, sums, b, mass):
    start = np.zeros((3, 12))
    start[0, 3], start[2, 2] = -mass, mass  # from the lowest threshold to the highest
    p, points, best = newton_case(kind, sums, b, start)
    assert newton_step(points, 0)
    point = first(points)
    # a ridge of 1e-10, against eigenvalues of 0.7 and more
    assert_allclose(point.g, best, atol=1e-8)
    assert points.violations_afresh() < 1e-8
    assert_feasible(p, point, of_sum=1e-14)
    assert_allclose(point.mu, -np.cumsum([0, *sums]) * p.terms.coupled, atol=1e-8)


def test_there_is_no_newton_step_where_none_is_worth_it():
    rng = np.random.default_rng(0)
    B, slope = rng.normal(size=(20, 20)) / np.sqrt(20), rng.normal(size=20)
    M, E = B @ B.T + np.eye(20), np.tile(np.eye(2), (10, 1))
    indefinite, zero, box = M.copy(), np.zeros(20), np.full(20, 9.0)
    indefinite[4, 4] = -0.1
    for A, by, room in ((indefinite, slope, box), (M, zero, box), (M, slope, zero)):
        assert clamped_step(A.copy(), by, zero, -room, room, E) is None
    # of 513 variables half want to be 9 higher and half 9 lower
    for m, moves in [(512, True), (513, False)]:
        slope = np.where(np.arange(m) % 2, 9.0, -9.0)
        box, ones = np.full(m, 0.5), np.ones((m, 1))
        new = clamped_step(np.eye(m), slope, np.zeros(m), -box, box, ones)
        assert (new is not None) == moves


@pytest.mark.parametrize("seed", [0, 279])
def test_what_rounding_leaves_of_a_tie_is_not_sent_round(seed):
    # mu of 1e-14 once let SMO pass 1e-14 to and fro among three variables for ever
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    rank = np.digitize(X[:, 0] + rng.normal(size=60), [-1, 0, 1])
    j = np.arange(3)[:, None]
    width = ((rank == j) | (rank == j + 1)) * 1.0
    lo, hi = np.where(rank > j, 0, -width), np.where(rank > j, width, 0)
    p = Program(
        kernels.RBF(0.005)(X, X),
        Terms.linear(lo, hi, np.where(rank > j, -1.0, 1.0), True),
    )
    g = np.zeros_like(lo)
    for row, *sides in zip(g, hi > 0, lo < 0, strict=True):
        up, down = map(np.flatnonzero, sides)
        m = min(up.size, down.size)
        row[rng.permutation(up)[:m]] = 1
        row[rng.permutation(down)[:m]] = -1
        for i in np.flatnonzero(row)[[0, -1]]:
            row[i] *= 1 - 1e-14 * rng.random()
    s = solved(p, g, tol=1e-3, max_iter=100_000)
    assert s.status is Status.CONVERGED
    assert s.n_iter < 1000


@every_kind
def test_where_rounding_stops_it_the_best_point_is_kept(kind, monkeypatch):
    judge, seen = Points.violations_afresh, []

    def spy(self):
        seen.append(judge(self)[0])
        return np.array(seen[-1:])

    monkeypatch.setattr(Points, "violations_afresh", spy)
    p = ranks(kind)
    s = solved(p, tol=1e-30)
    assert s.status is Status.STALLED
    assert s.violation == min(seen)
    assert_certified(p, s, s.violation)


@every_kind
@pytest.mark.parametrize("n", [2, 3, 150])
def test_an_indefinite_matrix_ends_with_an_honest_status(kind, n):
    K = np.random.default_rng(n).normal(size=(n, n))
    K += K.T
    p = ranks(kind, n=n, T=min(3, n - 1))._replace(K=K)
    s = solved(p, max_time=600.0)
    assert s.status is not Status.MAX_TIME
    of_f, of_sum, _ = rounding(p, s)
    assert_feasible(p, s, of_sum)
    assert_allclose(s.violation, low_up_violation(p, s)[2], atol=of_f)
    assert s.status is not Status.CONVERGED or s.violation <= 1e-6
    beta = s.g.sum(axis=0)
    if beta @ K @ beta < -1e-6 * np.abs(K).max() * np.abs(beta).sum() ** 2:
        assert s.status is Status.INDEFINITE
