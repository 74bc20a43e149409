"""`solve` on problems of one group: C-SVC, SVR and whatever else is of this form;
certificates, oracles, other packages."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from internals import Gram, Monitor, Program, solve
from numpy.testing import assert_allclose, assert_array_equal
from oracles import qp_gap, qp_rounding, qp_slopes, qp_value
from strategies import quadratic_programs, sample

from ordinal import kernels
from ordinal._solvers._pair_smo import Smo, Workspace, advance
from ordinal.models import Status


def solved(K, lo, hi, pn, pp, g=None, **options):
    """Solve problems that are the rows of lo, ..., or a single one:
    arrays of the only group, and G = K g and b as the machines have them."""
    terms = [np.atleast_2d(a).astype(float)[:, None] for a in (lo, hi, pn, pp)]
    options = {"tol": 1e-6, "max_iter": 1_000_000, "n_threads": 1, **options}
    callback, max_time = options.pop("callback", None), options.pop("max_time", None)
    monitor = Monitor("solve", options["tol"], callback, max_time)
    cache_mb, least = options.pop("cache_mb", 100.0), options.pop("least", len(K))
    gram = Gram(kernels.Precomputed(), K, cache_mb, options["n_threads"], least)
    g = np.zeros(terms[0].shape) if g is None else np.atleast_2d(g)[:, None]
    s = solve(gram, Program(*terms), g, **options, monitor=monitor)
    return SimpleNamespace(
        g=s.g[:, 0], G=s.f, b=-s.b[:, 0], violation=s.violation, n_iter=s.n_iter,
        status=s.status,
    )  # fmt: skip


def feasible(lo, hi):
    """The point that lies at the same part of the way through every box."""
    width = (hi - lo).sum()
    return np.clip(lo - (lo.sum() / width if width else 0) * (hi - lo), lo, hi)


def assert_optimal(K, lo, hi, pn, pp, s, tol, k=0):
    """Problem k of the Solution is feasible and meets (KKT) and (GAP)."""
    g, b = s.g[k], s.b[k]
    rounding = qp_rounding(K, g, hi - lo)
    assert np.all((lo <= g) & (g <= hi))
    assert abs(g.sum()) <= 1e-13 * g.size * (1 + np.abs([lo, hi]).max())
    R_min, L_max = qp_slopes(K, g, lo, hi, pn, pp)
    f_rounding = 1e-13 * (1 + (np.abs(K) @ np.abs(g)).max())
    assert L_max - R_min <= tol + f_rounding
    assert_allclose(s.G[k], K @ g, atol=f_rounding)
    assert_allclose(s.violation[k], L_max - R_min, atol=f_rounding)
    assert_allclose(b, -0.5 * (R_min + L_max), atol=f_rounding)
    gap = qp_gap(K, g, b, lo, hi, pn, pp)
    assert -rounding <= gap
    assert gap <= bound_on_gap(s, lo, hi, k) + rounding


def bound_on_gap(s, lo, hi, k=0):
    return max(s.violation[k], 0) / 2 * (hi - lo).sum()


@given(quadratic_programs())
def test_the_result_is_optimal(qp):
    K, lo, hi, pn, pp = qp
    s = solved(K, lo, hi, pn, pp, feasible(lo, hi))
    assert s.status is Status.CONVERGED
    assert_optimal(K, lo, hi, pn, pp, s, 1e-6)


def test_two_variables_in_closed_form():
    # g = (-t, t), value of (Q) = t^2 / 2 (1 + 4 - 2) - 2 t for t >= 0: t = 2 / 3
    K = np.array([[1.0, 1.0], [1.0, 4.0]])
    slopes = [1.0, -1.0]
    s = solved(K, [-9, -9], [9, 9], slopes, slopes, tol=1e-10)
    assert_allclose(s.g, [[-2 / 3, 2 / 3]], rtol=1e-10)
    assert_allclose(s.b, [-1.0], rtol=1e-9)  # L = R = G + slope = 1 at both
    s = solved(K, [-0.3, -9], [9, 9], slopes, slopes)
    assert_array_equal(s.g, [[-0.3, 0.3]])  # the bound itself


def test_a_kink_holds_variables_at_zero():
    K = np.eye(3)
    s = solved(K, [-1] * 3, [1] * 3, [-0.5] * 3, [0.5] * 3)
    assert_array_equal(s.g, np.zeros((1, 3)))
    assert_allclose(s.violation, -1.0)  # L = -0.5 and R = 0.5 everywhere
    assert_array_equal(s.b, [0.0])


# Problems of some of the rows


def pairs_of_ranks(n=600, r=4, C=30.0, shuffled=False, gamma=0.5):
    """X, and C-SVC of each two of r ranks over its K, whose rows lie together unless
    they are shuffled."""
    X, y = sample(n, r, seed=5)
    if not shuffled:
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    K = kernels.RBF(gamma)(X, X)
    pairs = [(j, k) for j in range(r) for k in range(j + 1, r)]
    sign = np.array([(y == k) * 1.0 - (y == j) for j, k in pairs])
    return K, (np.minimum(C * sign, 0), np.maximum(C * sign, 0), -sign, -sign)


def test_the_rows_that_take_part_lie_in_stretches():
    lo = np.zeros((4, 2, 200))
    lo[0, 0, 3:50] = lo[0, 1, 52:60] = lo[0, 1, 100:103] = -1
    lo[1, :, 199] = -1
    lo[2] = -1
    program = Program(lo, np.zeros_like(lo), lo, lo)
    assert program.row_ranges(0).tolist() == [[3, 60], [100, 103]]
    assert program.row_ranges(1).tolist() == [[199, 200]]
    assert program.row_ranges(2).tolist() == [[0, 200]]
    assert program.row_ranges(3).tolist() == [[0, 1]]  # of no rows at all


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("rows_held", [600, 100])
def test_pairs_of_ranks_are_what_they_are_on_their_rows_alone(shuffled, rows_held):
    K, terms = pairs_of_ranks(shuffled=shuffled)
    cache = {"cache_mb": rows_held * len(K) * 4e-6, "least": 64}
    s = solved(K, *terms, **cache)
    assert s.status is Status.CONVERGED
    for k in range(len(terms[0])):
        of_pair = [a[k] for a in terms]
        assert_optimal(K, *of_pair, s, 1e-6, k)
        rows = np.flatnonzero(of_pair[0] < of_pair[1])
        assert not np.delete(s.g[k], rows).any()
        own = K[np.ix_(rows, rows)]
        lo, hi, pn, pp = (a[rows] for a in of_pair)
        alone = solved(own, lo, hi, pn, pp)
        gaps = bound_on_gap(s, lo, hi, k) + bound_on_gap(alone, lo, hi)
        values = [qp_value(own, g, pn, pp) for g in (s.g[k, rows], alone.g[0])]
        assert_allclose(*values, atol=gaps + qp_rounding(own, s.g[k, rows], hi - lo))
        # (Q) is strongly convex in w
        apart = s.g[k, rows] - alone.g[0]
        assert apart @ own @ apart <= 4 * gaps + 1e-9


@pytest.mark.parametrize("rows_held", [600, 80])
def test_threads_do_not_change_a_byte_of_pairs(rows_held):
    K, terms = pairs_of_ranks()
    cache = {"cache_mb": rows_held * len(K) * 4e-6, "least": 64}
    one = solved(K, *terms, tol=1e-4, **cache)
    for n_threads in (2, 5):
        s = solved(K, *terms, tol=1e-4, n_threads=n_threads, **cache)
        for name in ("g", "G", "b", "violation", "n_iter"):
            assert getattr(s, name).tobytes() == getattr(one, name).tobytes(), name


def smo_on(K, lo, hi, slope, stretches, f, n_threads=1):
    """SMO alone, on a problem of one group; g, f and the steps that it took."""
    n = len(K)
    g, stretches = np.zeros(n), np.array(stretches, np.int32)
    task = Smo(
        K, np.arange(n, dtype=np.int32), np.ones(n), lo, hi, slope, slope, np.zeros(1),
        False, g, np.zeros(2), f, stretches, 256, 1e-3, 10**6, 1e9,
    )  # fmt: skip
    space = Workspace(n, 1, 256, n_threads)
    while task.phase <= 1:  # at work
        advance([task], space, 1.0, n_threads)
    return g, f, task.steps


def test_smo_looks_at_no_row_that_takes_no_part():
    n, stretches = 3600, [[100, 1300], [2000, 2030], [2400, 3500]]
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    K = kernels.RBF(0.5)(X, X).astype(np.float32)
    sign = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    rows = np.concatenate([np.arange(*part) for part in stretches])
    lo, hi, slope = np.zeros((3, n))
    lo[rows], hi[rows] = np.minimum(sign, 0)[rows], np.maximum(sign, 0)[rows]
    slope[rows] = -sign[rows]
    beyond = np.delete(np.arange(n), rows)
    expected = smo_on(K, lo, hi, slope, [[0, n]], np.zeros(n))
    K[beyond], K[:, beyond] = np.nan, np.nan
    f = np.where(np.isin(np.arange(n), rows), 0.0, np.nan)
    found = [smo_on(K, lo, hi, slope, stretches, f.copy(), t) for t in (1, 2, 3)]
    g, f, steps = found[0]
    assert steps > 0
    assert np.isnan(f[beyond]).all()
    assert not g[beyond].any()
    own, slope = K[np.ix_(rows, rows)].astype(float), slope[rows]
    assert_allclose(f[rows], own @ g[rows], atol=1e-4)
    R_min, L_max = qp_slopes(own, g[rows], lo[rows], hi[rows], slope, slope)
    assert L_max - R_min <= 1.2e-3
    own_value = qp_value(own, g[rows], slope, slope)
    of_all = qp_value(own, expected[0][rows], slope, slope)
    assert_allclose(own_value, of_all, atol=2 * 1.2e-3 / 2 * rows.size)
    for other in found[1:]:
        assert all(
            np.array_equal(a, b, True) for a, b in zip(other, found[0], strict=True)
        )
