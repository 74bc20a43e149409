"""NPSVOR: certificates, identities, symmetries, oracles, exact cases, reporting."""

import dataclasses
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from files import solution
from hypothesis import given
from hypothesis import strategies as st
from internals import CSR, Gram, Monitor, pivoted_cholesky
from numpy.testing import assert_allclose, assert_array_equal
from oracles import (
    kernel_matrix,
    nearest_feasible,
    npsvor_admm,
    npsvor_boxes,
    npsvor_dual,
    npsvor_primal,
    qp_gap,
    qp_rounding,
    qp_slopes,
)
from scipy import sparse
from strategies import cases, moderate, raises, sample

import ordinal
from ordinal import fit_npsvor, fit_npsvor_path, kernels
from ordinal.exceptions import ConvergenceWarning
from ordinal.kernels.tiles import diagonal_of, on_itself
from ordinal.models import Status
from ordinal.npsvor.admm import DenseFactor, ThinFactor, exact_factor

PRECOMPUTED = {"kernel": "precomputed"}


def resolution(case):
    """A tolerance that steps on float32 rows of K can always reach."""
    largest = diagonal_of(case.kernel, case.X).max()
    C = max(case.C, case.C2 * case.terms[-1].max()) * case.weight.max()
    return float(np.clip(1e-7 * C * largest, 1e-6, 1e-3))


def fit(case, X=None, tol=None, **options):
    X = case.X if X is None else X
    tol = resolution(case) if tol is None else tol
    return fit_npsvor(X, case.y, tol=tol, n_threads=1, **{**case.options, **options})


def fitted(case, **options):
    """(model, g): a fit to a precomputed kernel, and its dual point: the coefficients,
    put back at the rows that the support names."""
    K = kernel_matrix(case.kernel, case.X, case.X)
    model = fit(case, K, **PRECOMPUTED, **options)
    g = np.zeros((case.r, len(case.X)))
    g[:, model.support] = model.coef.T
    return model, g


def held(case):
    """Ranks with a row of positive weight: the others have no hyperplane."""
    return np.unique(case.y[case.weight > 0])


def by_rank(model):
    """The convergence of a model with an array, one entry a rank, for every number."""
    c = model.convergence
    numbers = ("n_iter", "violation", "primal", "dual", "gap")
    own = {n: np.array([getattr(part, n) for part in c.parts]) for n in numbers}
    return SimpleNamespace(status=c.status, converged=c.converged, tol=c.tol, **own)


def assert_certified(case, model, g, converged=True):
    """The convergence record and (KKT), (GAP), feasibility, all from the raw data."""
    c, y = by_rank(model), case.y
    K = kernel_matrix(case.kernel, case.X, case.X)
    for k in held(case):
        lo, hi, pn, pp = npsvor_boxes(y, k, *case.terms)
        b = model.intercept[k]
        rounding = qp_rounding(K, g[k], hi - lo)
        f_rounding = 1e-13 * (1 + (np.abs(K) @ np.abs(g[k])).max())
        assert np.all((lo <= g[k]) & (g[k] <= hi))
        assert abs(g[k].sum()) <= 1e-15 * (99 * y.size + c.n_iter[k]) * (1 + hi.max())

        R_min, L_max = qp_slopes(K, g[k], lo, hi, pn, pp)
        primal = npsvor_primal(K @ g[k] + b, g[k] @ K @ g[k], y, k, *case.terms)
        dual = npsvor_dual(K, g[k], y, k, case.epsilon)
        # one term a row, as (GAP) says
        assert_allclose(
            qp_gap(K, g[k], b, lo, hi, pn, pp), primal - dual, atol=rounding
        )
        assert_allclose(c.primal[k], primal, atol=rounding)
        assert_allclose(c.dual[k], dual, atol=rounding)
        assert_allclose(c.gap[k], primal - dual, atol=rounding)
        assert c.gap[k] >= -rounding
        if g[k] @ K @ g[k] > 100 * rounding:
            assert_allclose(model.norms[k] ** 2, g[k] @ K @ g[k], rtol=0.02)
        assert_allclose(c.violation[k], L_max - R_min, atol=f_rounding)
        assert_allclose(b, -0.5 * (R_min + L_max), atol=f_rounding)
        assert c.gap[k] <= max(c.violation[k], 0) / 2 * (hi - lo).sum() + rounding
        if converged:
            assert L_max - R_min <= c.tol + f_rounding
            assert c.gap[k] <= c.tol / 2 * (hi - lo).sum() + rounding


def rounding(model, X):
    """Bound the rounding of the objectives: sums of coef_i k_ij coef_j."""
    size = np.abs(model.coef).sum(axis=0)
    largest = diagonal_of(model.kernel, np.asarray(X)).max()
    return 1e-13 * (1 + size**2 * largest + np.abs(by_rank(model).primal))


@given(cases())
def test_the_model_is_optimal(case):
    model, g = fitted(case, tol=1e-3)
    assert model.convergence.converged
    assert_certified(case, model, g)


def test_predict_takes_the_nearest_hyperplane_and_the_lowest_of_equals():
    model = fit_npsvor([[-1.0], [1.0]], [0, 1], kernel="linear")
    model = dataclasses.replace(
        model, support=np.array([[1.0]]), coef=np.array([[1.0, 1.0, 4.0]]),
        intercept=np.array([0.0, -1.0, -8.0]), norms=np.array([1.0, 1.0, 4.0]),
        classes=np.array([10, 20, 30]),
    )  # fmt: skip
    X = [[-9.0], [0.5], [0.6], [1.5], [2.0]]
    assert_allclose(model.decision_function([[2.0]]), [[2.0, 1.0, 0.0]])
    assert_array_equal(model.predict(X), [10, 10, 20, 20, 30])
    normal = dataclasses.replace(model, normalize=True)
    assert_allclose(normal.decision_function([[1.5]]), [[1.5, 0.5, -0.5]])
    assert_array_equal(normal.predict(X), [10, 10, 20, 20, 30])
    assert_array_equal(normal.predict([[1.6]]), [30])
    assert_array_equal(model.predict([[1.6]]), [20])


def test_rows_are_computed_together_with_the_same_others_every_time(monkeypatch):
    """A product of rows rounds otherwise in another shape."""
    X, y = sample(1000, 5, noise=2.0)
    asked = []
    ensure = Gram.ensure
    monkeypatch.setattr(
        Gram, "ensure", lambda gram, rows: (asked.append(rows), ensure(gram, rows))
    )
    fits = []
    for n_threads, seconds in [(1, 10.0), (1, 1e-9), (2, 1e-9), (3, 0.01)]:
        monkeypatch.setattr(Monitor, "SLICE", seconds)
        asked.clear()
        model = fit_npsvor(X, y, C=30.0, cache_mb=1.5, n_threads=n_threads)
        fits.append(hash((solution(model), *(rows.tobytes() for rows in asked))))
    assert len(asked) > 20
    assert len(set(fits)) == 1


def test_a_tiny_cache_reaches_the_same_optimum():
    X, y = sample(2000, 4)  # more rows than any cache holds at the least
    small, full = (fit_npsvor(X, y, C=10.0, cache_mb=mb) for mb in (0.01, 100.0))
    assert small.convergence.converged
    gap = small.convergence.gap + full.convergence.gap
    assert abs(small.convergence.dual - full.convergence.dual) <= gap
    assert_allclose(small.decision_function(X), full.decision_function(X), atol=5e-3)


ADMM_TIGHT = {"n_threads": 1, "solver": "admm", "max_iter": 50_000}
ADMM_TIGHT |= {"e_abs": 1e-6, "e_rel": 1e-6}


@given(
    cases(C=st.sampled_from([0.03, 0.7, 1.7])),
    st.sampled_from([0.3, 1.0]),
    st.sampled_from([None, 1.0, -0.25]),
    st.sampled_from([None, 1, 7]),
)
def test_admm_is_the_papers_algorithm(case, rho, start, n_steps):
    options = {"solver": "admm", "rho": rho, "e_abs": 1e-3, "e_rel": 1e-3}
    options |= {"start": start, "n_steps": n_steps, "max_iter": 5000}
    model, g = fitted(case, **options)
    average, _ = fitted(case, intercept="average", **options)
    c = by_rank(model)
    assert c.tol == 1.0
    assert c.converged or (c.status is Status.N_STEPS and c.n_iter.max() == n_steps)
    K = kernel_matrix(case.kernel, case.X, case.X)
    for k in held(case):
        lo, hi, pn, pp = npsvor_boxes(case.y, k, *case.terms)
        point, z, b, n_iter, ratio = npsvor_admm(
            K, lo, hi, pn, pp, rho, 1e-3, 1e-3, n_steps or 5000, start or 0.0
        )
        assert c.n_iter[k] == n_iter
        assert_allclose(c.violation[k], ratio, rtol=1e-5, atol=1e-9)
        assert_allclose(model.intercept[k], b, rtol=1e-7, atol=1e-9)
        assert_allclose(g[k], point, rtol=1e-6, atol=1e-9)
        # (9): rows strictly within their bounds, where phi has a slope
        free = (lo < z) & (z < hi) & ((z != 0) | (pn == pp))
        slopes = np.where(z > 0, pp, pn)
        b_free = np.mean((-K @ point - slopes)[free]) if free.any() else b
        assert_allclose(average.intercept[k], b_free, rtol=1e-5, atol=1e-6)
        # the certificate: (P) at the model, (D) at the nearest feasible point
        assert abs(g[k].sum()) <= 1e-12 * (1 + hi.sum())
        squared = g[k] @ K @ g[k]
        primal = npsvor_primal(K @ g[k] + b, squared, case.y, k, *case.terms)
        dual = npsvor_dual(K, nearest_feasible(g[k], lo, hi), case.y, k, case.epsilon)
        atol = 1e-7 * (1 + abs(primal))
        assert_allclose(c.primal[k], primal, atol=atol)
        assert_allclose(c.dual[k], dual, atol=atol)
        assert c.gap[k] >= -1e-12 * (1 + abs(primal))
        if squared > 1e-9:
            assert_allclose(model.norms[k] ** 2, squared, rtol=1e-5)


@given(cases(C=moderate))
def test_polished_admm_is_smo(case):
    polished, g = fitted(case, solver="admm", polish=True, max_iter=20)
    assert polished.convergence.tol == resolution(case)
    assert polished.convergence.converged
    assert_certified(case, polished, g)
    smo, _ = fitted(case)
    a, b = by_rank(smo), by_rank(polished)
    K = kernel_matrix(case.kernel, case.X, case.X)
    slack = qp_rounding(K, np.abs(g).max(axis=0), np.ones(1))
    assert np.all(np.abs(a.dual - b.dual) <= a.gap.clip(0) + b.gap.clip(0) + slack)


def test_the_polish_starts_from_admm_and_admm_from_the_papers_defaults():
    X, y = sample(80, 3)
    cold, warm = fit_npsvor(X, y), fit_npsvor(X, y, polish=True, **ADMM_TIGHT)
    assert by_rank(warm).n_iter.sum() < 0.7 * by_rank(cold).n_iter.sum()
    rough = fit_npsvor(X, y, **ADMM_TIGHT)
    assert_allclose(warm.decision_function(X), rough.decision_function(X), atol=2e-3)
    a = fit_npsvor(X, y, solver="admm")
    b = fit_npsvor(X, y, solver="admm", rho=1.0, e_abs=1e-2, e_rel=1e-2)
    assert solution(a) == solution(b)
    assert by_rank(a).violation.max() <= a.convergence.tol == 1.0
    assert by_rank(a).gap.max() > 0


@pytest.mark.parametrize("form", ["dense", "csr", "precomputed"])
def test_a_fit_begins_at_another_model(form):
    X, y = sample(80, 3)
    X = {"csr": sparse.csr_array, "precomputed": kernels.RBF(0.5)}.get(form, np.array)(
        *[X] * (1 + (form == "precomputed"))
    )
    options = {"C": 5.0, "kernel": "precomputed" if form == "precomputed" else "rbf"}
    cold = fit_npsvor(X, y, **options)
    again = fit_npsvor(X, y, start=cold, **options)
    assert by_rank(again).n_iter.sum() < 0.2 * by_rank(cold).n_iter.sum()
    assert_allclose(again.decision_function(X), cold.decision_function(X), atol=3e-3)
    near = fit_npsvor(X, y, start=cold, **(options | {"C": 4.0}))
    there = fit_npsvor(X, y, **(options | {"C": 4.0}))
    assert_allclose(near.decision_function(X), there.decision_function(X), atol=5e-3)
    admm = ADMM_TIGHT | options
    slow, fast = fit_npsvor(X, y, **admm), fit_npsvor(X, y, start=cold, **admm)
    assert_allclose(fast.decision_function(X), slow.decision_function(X), atol=1e-3)
    if form == "dense":
        rough = fit_npsvor(X, y, basis=40, **options)
        warm = fit_npsvor(X, y, basis=40, start=rough, **options)
        assert by_rank(warm).n_iter.sum() <= by_rank(rough).n_iter.sum()
        assert warm.convergence.converged


def test_a_path_starts_from_the_last_point_and_warns_of_those_that_fall_short():
    X, y = sample(200, 4)
    twice = fit_npsvor_path(X, y, [{"C": 5.0}] * 2)
    assert by_rank(twice[1]).n_iter.sum() < by_rank(twice[0]).n_iter.sum() / 3
    X, y = sample(60, 3)
    points = [{"C": 1e-3}, {"C": 1e3}]
    with pytest.warns(ConvergenceWarning, match="^fit_npsvor_path: max_iter") as caught:
        models = fit_npsvor_path(X, y, points, max_iter=150)
    assert [m.convergence.converged for m in models] == [True, False]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_basis_leaves_out_rows_that_the_others_span():
    X, y = sample(60, 3)  # of two features, which as many rows span
    options = {"solver": "admm", "kernel": "linear", "probability": True}
    model = fit_npsvor(X, y, basis=np.arange(20), **options)
    assert len(model.support) == X.shape[1]
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    X, y = sample(30, 3)
    model = fit_npsvor(np.tile(X, (3, 1)), np.tile(y, 3), solver="admm", basis=80)
    assert len(model.support) == 30


@pytest.mark.parametrize(
    ("rank", "form"),
    [(5, "dense"), (17, "csr"), (90, "precomputed"), (0.3, "csr"), (1e-4, "dense")],
)
def test_a_low_rank_model_is_what_its_factor_says(rank, form):
    X, y = sample(90, 3)
    kernel = kernels.RBF(0.5)
    K = kernel(X, X)
    X, kernel = {
        "dense": (X, kernel),
        "csr": (sparse.csr_array(X), kernel),
        "precomputed": (K, kernels.Precomputed()),
    }[form]
    model = fit_npsvor(X, y, solver="admm", basis=rank, kernel=kernel)
    P = model.support if form == "precomputed" else None
    rows = X if form != "csr" else CSR.from_any(X)
    tile = on_itself(kernel, rows, 1).tile
    L, pivots, residual = pivoted_cholesky(diagonal_of(kernel, rows), tile, rank)
    if P is not None:
        assert_array_equal(P, pivots)
    if isinstance(rank, int):
        assert len(pivots) == rank == model.coef.shape[0]
    else:
        assert np.trace(K - L @ L.T) <= rank * len(K)
    assert_allclose(np.trace(K - L @ L.T) / len(K), residual, atol=1e-9)
    assert_allclose((L @ L.T)[pivots], K[pivots], atol=1e-9)  # those rows are exact
    squared = np.einsum(
        "ik,ij,jk->k", model.coef, K[np.ix_(pivots, pivots)], model.coef
    )
    assert_allclose(model.norms, np.sqrt(squared), rtol=1e-6)
    ones = np.ones((3, 3))
    for k in range(3):
        f_k = model.decision_function(X)[:, k]
        primal = npsvor_primal(f_k, squared[k], y, k, 1.0, 1.0, 0.2, np.ones(90), ones)
        assert_allclose(by_rank(model).primal[k], primal, rtol=1e-8)


@pytest.mark.parametrize("kernel", [kernels.RBF(1e-3), kernels.Linear()], ids=repr)
def test_a_smooth_kernel_goes_through_thin_products(kernel):
    X, _ = sample(300, 4)
    Q = np.random.default_rng(2).normal(size=(4, 300))
    thin, dense = exact_factor(kernel, X, 0.7, 1e-6, 1), DenseFactor(kernel, X, 0.7, 1)
    assert type(thin) is ThinFactor
    off = np.linalg.norm(thin.apply(Q) - dense.apply(Q), axis=1)
    assert np.all(off <= 1e-6 / 0.7 * np.linalg.norm(Q, axis=1))
    assert_allclose(thin.product(Q), dense.product(Q), rtol=1e-12)
    assert_array_equal(thin.coefficients(Q), Q.T)
    assert_array_equal(thin.support, dense.support)


DEPENDENT_ROWS = np.full((14, 3), -1.1416015625)
DEPENDENT_ROWS[[0, 1, 3, 6], [0, 0, 1, 1]] = -2.0, 0.16809082, 1.0, 0.0


def test_a_fit_ends_soon_where_rows_depend():
    """Five free rows in four dimensions: K in float gives the fifth a curvature."""
    x = [1.5, -1, -1, 2.53125, 2.125, -1.5, 0, 2.125, 2.125]
    y = [0, 0, 0, 0, 2, 0, 1, 0, 0]
    kernel = ordinal.kernels.Polynomial(3, 0.42544111612638497)
    options = {"kernel": kernel, "epsilon": 0.1, "class_weight": "balanced"}
    c = by_rank(fit_npsvor(np.array(x)[:, None], y, C=1e4, **options))
    assert c.converged
    assert c.n_iter.max() < 100_000
    y = [0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    options = {"C": 0.03, "C2": 30.1, "epsilon": 0.0, "kernel": "linear"}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        c = by_rank(fit_npsvor(DEPENDENT_ROWS, y, tol=1e-6, **options))
    assert c.status in (Status.CONVERGED, Status.STALLED)
    assert c.n_iter.max() < 1_000_000
    a = 0.03125
    X = [[a, -3.0], [a, 0], [a, a], [0, -1.0], [0, a], [a, -1.0], *[[a, a]] * 5]
    y = np.array([0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0])
    K = np.array(X) @ np.transpose(X)
    options = {"C": 0.03, "epsilon": 0.0, "tol": 1e-8, **PRECOMPUTED}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = fit_npsvor(K, y, **options)
    assert_allclose(model.coef.sum(axis=0), 0, atol=1e-15)


def test_admm_refuses_an_indefinite_kernel():
    X, y = sample(60, 3)
    message = r"^kernel must be positive semi-definite, but K \+ 0.5 I is"
    with pytest.raises(ValueError, match=message):
        fit_npsvor(-(X @ X.T), y, solver="admm", rho=0.5, **PRECOMPUTED)
    with pytest.raises(ValueError, match=message):
        fit_npsvor(X, y, solver="admm", rho=0.5, kernel=lambda A, B: -(A @ B.T))
    with pytest.raises(ValueError, match="kernel must be positive semi-definite"):
        fit_npsvor(-(X @ X.T), y, solver="admm", basis=5, **PRECOMPUTED)


X2 = [[0.0], [1.0]]


@pytest.mark.parametrize("fit_it", [fit_npsvor, ordinal.fit_svorim])
def test_kernels_that_are_no_kernels_are_refused(fit_it):
    X, y = sample(100, 3)
    for cache_mb in (1000.0, 1e-4):  # all rows of K, or a few
        large = {"kernel": "polynomial", "gamma": 1e15, "cache_mb": cache_mb}
        said = r"at most 3.4e\+38, got .*: scale the feat"
        raises(ValueError, said, fit_it, X, y, **large)
    with pytest.raises(ValueError, match="kernel must be symmetric"):
        fit_it(X2, [0, 1], kernel=lambda A, B: 1 + A + 0 * B.T)
    with pytest.raises(ValueError, match="rows of X must have squares of at most"):
        fit_it([[1e200], [2e200]], [0, 1], kernel="linear")
    message = r"X must be symmetric .*row and column 0 diff"
    raises(ValueError, message, fit_it, [[1.0, 2.0], [2.1, 1.0]], [0, 1], **PRECOMPUTED)


ADMM = {"solver": "admm"}


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"solver": "smoo"}, ValueError, "solver must be one of 'smo', "),
    ({"rho": 1.0}, ValueError, "rho must be left out"),
    ({"polish": True, "rho": 1.0}, ValueError, "rho, polish must be left out"),
    ({**ADMM, "basis": 1, "polish": True}, ValueError,
     "polish=True needs the whole kernel"),
    ({**ADMM, "start": np.inf}, ValueError, "start must be a finite"),
    ({**ADMM, "start": "cold"}, TypeError, "start must be an Npsvor"),
    ({"n_steps": 5}, ValueError, "n_steps must be left out with solver='smo'"),
    ({**ADMM, "n_steps": 5, "polish": True}, ValueError, "n_steps must be left out"),
    ({**ADMM, "intercept": "x"}, ValueError, "intercept must be one of"),
], ids=str)  # fmt: skip
def test_unusable_options_are_refused_before_any_work(options, error, message):
    calls = []

    def kernel(A, B):
        calls.append(A)
        return A @ B.T

    raises(error, message, fit_npsvor, X2, [0, 1], kernel=kernel, **options)
    assert calls == []


@pytest.mark.parametrize(("points", "options", "error", "message"), [
    ([], {}, ValueError, "at least one mapping"),
    ([1.0], {}, TypeError, "points must hold mappings, got 1.0"),
    ([{"C1": 1.0}], {}, ValueError, "points may set C, C2 and epsilon only, got"),
    ([{"C": 1.0}, {"C": -1.0}], {}, ValueError, "C must be a positive"),
    ([{"epsilon": -0.1}], {}, ValueError, "epsilon must be"),
    ([{}], {"C": 1.0, "epsilon": 0.1}, TypeError, "argument 'C'"),
    ([{}], {"C3": 1.0}, TypeError, "C3"),
])  # fmt: skip
def test_unusable_points_of_a_path_are_refused(points, options, error, message):
    raises(error, message, fit_npsvor_path, X2, [0, 1], points, **options)
