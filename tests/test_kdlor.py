"""KDLOR against its own problem in explicit features, and what follows from it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import path_of
from numpy.testing import assert_allclose, assert_array_equal
from strategies import raises, sample

from ordinal import kernels
from ordinal._numerics import memory
from ordinal.companions import fit_kdlor
from ordinal.exceptions import ConvergenceWarning
from ordinal.kdlor import scatter as scatter_module
from ordinal.models import Status

X, Y = sample(60, 4, noise=1.0)
KERNEL = kernels.RBF(0.3)


def explicit(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def scatter(Z, y, weight, u):
    """S and the means of (P), from their definitions."""
    p = weight / weight.sum()
    ranks = [y == k for k in np.unique(y)]
    means = np.array([np.average(Z[k], axis=0, weights=p[k]) for k in ranks])
    within = Z - means[np.searchsorted(np.unique(y), y)]
    t = (p[:, None] * (Z - p @ Z) ** 2).sum()
    return within.T @ (p[:, None] * within) + u * t * np.eye(Z.shape[1]), means


def best_of_all_faces(Q, C):
    """min a'Q a over a >= 0 of sum C, by every set of entries that may be positive."""
    best, found = np.inf, None
    for size in range(1, len(Q) + 1):
        for some in map(list, itertools.combinations(range(len(Q)), size)):
            a = np.zeros(len(Q))
            x = np.linalg.solve(Q[np.ix_(some, some)], np.ones(size))
            a[some] = C * x / x.sum()
            if (a >= 0).all() and a @ Q @ a < best:
                best, found = a @ Q @ a, a
    return found


def solved(Z, y, weight, u, C):
    """w, a, rho and the value of (P), in the space of Z."""
    S, means = scatter(Z, y, weight, u)
    D = np.diff(means, axis=0).T
    a = best_of_all_faces(D.T @ np.linalg.solve(S, D), C)
    w = 0.5 * np.linalg.solve(S, D @ a)
    rho = np.diff(means @ w).min()
    return w, a, rho, w @ S @ w - C * rho, means @ w


def assert_cuts_where_densities_meet(model, f, y, weight):
    """The rank of every score is the likeliest one, by normal densities around the mean
    scores of the ranks, times the shares of the ranks in the weights."""
    share = np.bincount(y, weight)
    mu = np.bincount(y, weight * f) / share
    variance = 0.5 * model.C * model.rho  # w'S w, at the optimum
    at = np.linspace(mu[0] - 9 * np.ptp(mu), mu[-1] + 9 * np.ptp(mu), 997)
    likely = np.log(share) - (at[:, None] - mu) ** 2 / (2 * variance)
    best = likely.argmax(axis=1)
    clear = np.partition(likely, -2, axis=1)
    clear = clear[:, -1] - clear[:, -2] > 1e-6 * (1 + np.abs(clear[:, -1]))
    rank = (at[:, None] >= model.thresholds).sum(axis=1)
    assert_array_equal(rank[clear], best[clear])
    assert (np.diff(model.thresholds) >= 0).all()


@pytest.mark.parametrize("basis", [None, np.arange(60)])
@given(
    seed=st.integers(0, 10**6),
    r=st.integers(2, 6),
    u=st.sampled_from([1e-4, 1e-2, 1.0]),
    C=st.sampled_from([0.3, 1.0, 50.0]),
)
def test_a_fit_solves_the_problem_in_explicit_features(basis, seed, r, u, C):
    rng = np.random.default_rng(seed)
    rows, y = rng.standard_normal((60, 3)), rng.integers(0, r, 60)
    y[:r] = range(r)
    weight = rng.integers(1, 4, 60) / 2
    Z = explicit(KERNEL(rows, rows))
    w, _, rho, value, _ = solved(Z, y, weight, u, C)
    given = {"ridge": u, "C": C, "kernel": KERNEL, "basis": basis}
    model = fit_kdlor(rows, y, sample_weight=weight, **given)
    f = model.decision_function(rows)
    scale = np.abs(Z @ w).max()
    # a basis leaves out rows that add less than 1e-7 of the trace of K
    near = 1e-6 if basis is None else 1e-5 + 1e-6 / u
    assert_allclose(f, Z @ w, atol=near * scale)
    assert_cuts_where_densities_meet(model, f, y, weight)
    c = model.convergence
    assert c.converged
    assert_allclose([model.rho, c.primal], [rho, value], rtol=near)
    assert_allclose(model.dual.sum(), C, rtol=1e-12)
    assert model.dual.min() >= 0
    # complementary: pairs that decide are rho apart, the others more
    apart = np.diff([np.average(f[y == k], weights=weight[y == k]) for k in range(r)])
    assert_allclose(apart[model.dual > 0], model.rho, rtol=1e-6)
    assert apart.min() >= model.rho - 1e-6 * scale
    # the certificate bounds the optimum from both sides
    slack = (1e-9 if basis is None else near) * abs(value)
    assert c.dual - slack <= value <= c.primal + slack
    assert c.gap <= 1e-6 * abs(value)


def test_many_ranks_are_solved_exactly():
    rows, y = sample(400, 80, noise=1.0)
    model = fit_kdlor(rows, y)
    f = model.decision_function(rows)
    apart = np.diff([f[y == k].mean() for k in range(80)])
    active = model.dual > 0
    assert 1 < active.sum() < 79
    assert_allclose(apart[active], model.rho, rtol=1e-6)
    assert apart.min() >= model.rho * (1 - 1e-6)
    assert np.abs(model.convergence.rel_gap) < 1e-9
    assert model.convergence.n_iter < 200


def test_rows_far_from_the_origin_have_a_certificate():
    near, far = (fit_kdlor(X + c, Y, kernel="linear", ridge=1e-4) for c in (0, 1e3))
    assert_allclose(far.rho, near.rho, rtol=1e-5)
    assert far.convergence.converged


def test_the_exact_basis_of_a_linear_kernel_changes_nothing():
    rows, y = sample(2100, 4, noise=1.0)
    on_columns = fit_kdlor(rows, y, kernel="linear")
    assert on_columns.support.shape == (3, 3)
    whole = fit_kdlor(rows @ rows.T, y, kernel="precomputed")
    f = whole.decision_function(rows @ rows.T)
    assert_allclose(on_columns.decision_function(rows), f, atol=1e-8 * np.abs(f).max())
    assert_allclose(on_columns.rho, whole.rho, rtol=1e-8)


def test_a_long_path_is_that_of_one_set_of_eigenvectors(monkeypatch):
    ridges = np.geomspace(1e-5, 1.0, 8).tolist()
    weight = np.arange(60) % 3 + 0.5 * (np.arange(60) % 2)  # of some rows 0
    alone = [fit_kdlor(X, Y, ridge=u, gamma=0.3, sample_weight=weight) for u in ridges]
    monkeypatch.delattr(scatter_module, "Cholesky")
    points = [{"ridge": u} for u in ridges]
    models, _ = path_of(fit_kdlor).fit(X, Y, points, gamma=0.3, sample_weight=weight)
    for one, model in zip(alone, models, strict=True):
        assert_array_equal(model.support, one.support)
        scale = np.abs(one.decision_function(X)).max()
        f, g = model.decision_function(X), one.decision_function(X)
        assert_allclose(f, g, atol=1e-13 / one.ridge * scale)
        assert_allclose(model.dual, one.dual, atol=1e-13 / one.ridge)
        assert model.convergence.rel_gap <= 1e-13 / one.ridge
    with pytest.raises(ValueError, match=r"^ridge must be larger, or the kernel is"):
        path_of(fit_kdlor).fit(
            kernels.Linear()(X, X) - 9 * np.eye(60), Y,
            [{"ridge": u} for u in ridges], kernel="precomputed",
        )  # fmt: skip


@pytest.mark.parametrize("basis", [None, np.arange(0, 60, 2)])
def test_the_certificate_holds_for_a_direction_that_is_not_the_best(monkeypatch, basis):
    """w'S w - w'D a at another w than that of a is above the optimum, which the term of
    the residual in (GAP) sets right."""
    best = fit_kdlor(X, Y, kernel=KERNEL, basis=basis, ridge=0.1).convergence

    class Inexact(scatter_module.Cholesky):
        def backward(self, B):
            out = super().backward(B)
            out += 0.01 * np.abs(out).max() * rng.standard_normal(out.shape)
            return out

    monkeypatch.setattr(scatter_module, "Cholesky", Inexact)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        c = fit_kdlor(X, Y, kernel=KERNEL, basis=basis, ridge=0.1, tol=1e3).convergence
        assert c.dual <= best.primal <= c.primal
        assert c.gap > 1e-6 * abs(best.primal)


def test_ranks_with_equal_means_have_no_direction():
    rows = np.repeat(X[:8], 3, axis=0)
    model = fit_kdlor(rows, np.arange(24) % 3)
    assert model.convergence.converged
    assert_allclose(model.decision_function(rows), 0, atol=1e-6)
    same = fit_kdlor(np.ones((6, 2)), np.arange(6) % 2)
    assert same.convergence.converged
    assert not same.decision_function(rows[:, :2]).any()


def test_rounding_that_a_tiny_ridge_leaves_is_seen():
    rows, y = sample(200, 4, noise=1.0)
    found = []
    for u in (1e-3, 1e-7):
        c = fit_kdlor(rows, y, ridge=u, tol=1e-5).convergence
        assert c.violation <= 1e-11 / u
        found.append(c.violation)
    with pytest.warns(ConvergenceWarning, match="stalled .* raise tol"):
        c = fit_kdlor(rows, y, ridge=1e-7, tol=1e-30).convergence
    assert c.status is Status.STALLED


def test_a_kernel_that_is_not_semi_definite_is_refused():
    def kernel(A, B):
        return -(A @ B.T)

    with pytest.raises(ValueError, match=r"^ridge must be larger, or the kernel is"):
        fit_kdlor(X, Y, kernel=kernel)
    for bad in (0, -1.0, np.nan, np.inf, "x"):
        raises((ValueError, TypeError), r"^ridge must be", fit_kdlor, X, Y, ridge=bad)


def test_folds_are_scored_in_the_unit_of_the_whole():
    """A fold, which has fewer rows, has another rho; the slope of the link is that of
    scores with the rho of the model, whatever C is."""
    models = [fit_kdlor(X, Y, C=C, probability=True) for C in (1.0, 16.0)]
    P, Q = (model.predict_proba(X) for model in models)
    assert_allclose(P, Q, atol=1e-9)
    whole, fold = fit_kdlor(X, Y), fit_kdlor(X[::2], Y[::2])
    assert whole.rho != fold.rho
    f = fold.link_input(X, whole) - whole.thresholds.mean()
    mine = fold.decision_function(X) - fold.thresholds.mean()
    assert_allclose(f, mine * (whole.rho / fold.rho), atol=1e-9)


def test_a_basis_for_which_there_is_no_time_gives_a_score_of_one_row(up_after):
    up_after(0)
    with pytest.warns(ConvergenceWarning, match="max_time after 0 steps"):
        model = fit_kdlor(X, Y, basis=("cholesky", 40), max_time=600.0)
    assert len(model.support) == 1
    assert_array_equal(model.decision_function(X), np.zeros(len(X)))


def test_rows_beyond_the_memory_are_refused_before_any_work(monkeypatch):
    """The message states what the kernel matrix needs, and that a basis needs less."""
    X, y = sample(300, 3)

    def never(A, B):
        raise AssertionError("asked for kernel values")

    monkeypatch.setattr(memory, "physical_memory", lambda: 2**18)
    text = r"needs 0.000671 GiB of memory for the kernel matrix of 300 rows, and this"
    with pytest.raises(MemoryError, match=rf"fit_kdlor {text}.*: pass basis=500"):
        fit_kdlor(X, y, kernel=never)
    fit_kdlor(X, y, basis=20)
