"""TLS-SVOR: the loss, its derivatives, optimality, symmetries, the basis, reports."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from files import solution
from hypothesis import example, given
from hypothesis import strategies as st
from internals import Problem, kernel_fit
from numpy.testing import assert_allclose, assert_array_equal
from oracles import kernel_matrix, svor_terms, tlssvor_psi
from strategies import TlsCase, sample, tlssvor_cases

from ordinal import fit_tlssvor, kernels, load
from ordinal._input.labels import absolute_cost
from ordinal._rows.rows import LocalState
from ordinal._solvers import _truncated_loss
from ordinal.exceptions import ConvergenceWarning, DisorderedThresholdsWarning
from ordinal.models import Status
from ordinal.tlssvor.newton import Descent
from ordinal.tlssvor.objective import (
    CachedColumns,
    LossSums,
    SharedTerms,
    TruncatedObjective,
    kernel_values,
)

PRECOMPUTED = {"kernel": "precomputed"}
RBF = kernels.RBF(0.3)


def fit(case, X=None, **options):
    X = case.X if X is None else X
    options = {"n_threads": 1, **case.options, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisorderedThresholdsWarning)
        return fit_tlssvor(X, case.y, **options)


def oracle(case, model, u=None):
    """psi as a function of x = (b, w), and the x of the model."""
    rows = np.flatnonzero(case.weight > 0)
    K = kernel_matrix(case.kernel, case.X, case.X[rows])
    s, width = svor_terms(case.y, 1.0, case.weight, absolute_cost(case.r))
    price = np.concatenate([np.diff(case.held), 1 / case.weight[rows]])
    terms = s, width, price, case.C, case.u if u is None else u, case.eta
    T = case.held.size - 1
    x = np.concatenate([model.thresholds[case.held[:-1]], model.coef])
    return lambda x: tlssvor_psi(K, x[:T], x[T:], *terms), x


def truncated(problem, columns, C, eta, price, n_threads=1):
    terms = SharedTerms.from_problem(problem, eta)
    rows = LossSums(columns, problem.rank, problem.weight, terms, n_threads)
    return TruncatedObjective(LocalState(rows), terms, problem.weight.sum(), C, price)


def objective(case):
    """The package's own psi, over the same x, with every row in the basis."""
    problem = Problem.from_arrays(
        case.X, case.y, classes=range(case.r), sample_weight=case.weight
    )
    rows = np.flatnonzero(case.weight > 0)
    fill = kernel_values(case.kernel, case.X[rows])
    K = CachedColumns(case.X, rows.size, fill, np.inf, 1)
    psi = truncated(problem, K, case.C, case.eta, 1 / case.weight[rows])
    return psi, K.block(slice(0, len(case.X)))


etas = st.floats(0.01, 0.99)
widths = st.floats(2.001, 40.0)  # u / eta


def loss(s, u, eta):
    s = np.array(s, dtype=float)
    out = np.empty((s.size, 3))
    _truncated_loss.loss(s, u, eta, out)
    return out


@given(etas, widths | st.just(np.inf), st.floats(-2, 45))
def test_the_derivatives_of_p_are_those_of_p(eta, width, at):
    u, s, h = width * eta, at * eta, 1e-4 * eta
    points = loss([s - h, s, s + h], u, eta)
    for k in (0, 1):
        slope = (points[2, k] - points[0, k]) / (2 * h)
        # the third derivative jumps by 3 / (2 eta^2): first order there, not second
        assert_allclose(points[1, k + 1], slope, atol=2e-4 / eta**k + 1e-9)


@given(tlssvor_cases(), st.integers(0, 2**32 - 1))
def test_the_gradient_and_the_hessian_are_those_of_psi(case, seed):
    psi, K = objective(case)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=psi.penalties.size) / np.sqrt(1 + np.abs(K).max())
    here = psi.at(x, case.u)
    coef = np.zeros(psi.penalties.size - psi.T)
    slow, _ = oracle(case, SimpleNamespace(thresholds=np.zeros(case.r - 1), coef=coef))
    scale = here.value + np.abs(K).max() ** 2 * case.weight.sum()
    assert_allclose(here.value, slow(x), rtol=1e-12)
    H, size = psi.hessian(here), 1e-5
    H = np.tril(H) + np.tril(H, -1).T
    for i in range(x.size):
        h = size / (1 + np.abs(K[:, i - psi.T]).max() if i >= psi.T else 1)
        step = h * np.eye(x.size)[i]
        up, down = psi.at(x + step, case.u), psi.at(x - step, case.u)
        slope = (slow(x + step) - slow(x - step)) / (2 * h)
        assert_allclose(here.gradient[i], slope, atol=1e-5 * (1 + scale))
        # D is continuous, with slopes of up to 3 u / eta^2
        change = (up.gradient - down.gradient) / (2 * h)
        bend = 6 * (1 + min(case.u, 5)) / case.eta**2 * size
        assert_allclose(H[i], change, atol=bend * (1 + scale))


def test_sums_over_many_chunks_of_rows_lose_none():
    X, y = sample(2 * 8192 + 500, 4)
    columns = CachedColumns(X, 6, kernel_values(RBF, X[:6]), 0, 2)
    psi = truncated(Problem.from_arrays(X, y), columns, 0.7, 0.1, np.ones(6), 2)
    x, K = np.random.default_rng(0).normal(size=9) / 50, RBF(X, X[:6])
    here = psi.at(x, 1.5)
    sign = np.where(y[:, None] > np.arange(3), 1.0, -1.0)
    slack = 1 - sign * ((K @ x[3:])[:, None] - x[:3])
    p, d1, d2 = np.moveaxis(
        loss(slack.ravel(), 1.5, 0.1).reshape(*slack.shape, 3), 2, 0
    )
    slope = 2 * sign * p * d1
    ridge = psi.penalties * x / 0.7
    assert_allclose(here.value, (p**2).sum() + 0.5 * ridge @ x, rtol=1e-12)
    expected = np.append(slope.sum(axis=0), -slope.sum(axis=1) @ K) + ridge
    assert_allclose(here.gradient, expected, atol=1e-9 * np.abs(expected).max())
    D = 2 * (d1**2 + p * d2)
    H = psi.hessian(here)
    columns = D.sum(axis=0) + psi.penalties[:3] / 0.7
    assert_allclose(H[range(3), range(3)], columns, rtol=1e-12)
    assert_allclose(H[3:, :3], -K.T @ D, atol=1e-8)
    block = K.T @ (D.sum(axis=1)[:, None] * K) + np.diag(psi.penalties[3:]) / 0.7
    assert_allclose(np.tril(H[3:, 3:]), np.tril(block), atol=1e-9 * np.abs(block).max())


@given(tlssvor_cases())
# a saddle, where two equal rows of different ranks both have the score of the threshold
@example(
    TlsCase(np.ones((2, 1)), np.array([0, 1]), 2, kernels.Linear(), 1.0, 1.0, 0.1,
            np.ones(2))
)  # fmt: skip
# curved down across the way to the minimum, where single steps are short
@example(
    TlsCase(np.full((4, 1), -2.0), np.arange(4), 4, kernels.RBF(1.0), 100.0, 1.0, 0.1,
            np.ones(4))
)  # fmt: skip
def test_the_model_is_a_local_minimum(case):
    model = fit(case)
    c = model.convergence
    assert c.converged
    assert c.violation <= c.tol == 1e-6
    assert c.dual is None
    psi, x = oracle(case, model)
    assert_allclose(c.primal, psi(x), rtol=1e-11)
    inner, K = objective(case)
    total = case.weight.sum()
    columns = case.weight @ np.abs(K)
    columns[columns == 0] = 1.0
    T = inner.T
    scale = np.concatenate([total * np.diff(case.held), np.ptp(case.held) * columns])
    here = inner.at(x, case.u)
    assert_allclose(inner.scale, scale, rtol=1e-12)
    assert_allclose(c.violation, np.abs(here.gradient / scale).max(), rtol=1e-9)
    assert here.gradient.size == T + model.coef.size
    H = inner.hessian(here)
    least = np.linalg.eigvalsh(H)[0]  # of the lower triangle
    assert least >= -1e-9 * np.abs(H).max()


@given(tlssvor_cases())
def test_psi_never_rises(case):
    values = []
    step = Descent._step

    def watched(self):
        there = step(self)
        if there is not None:
            values.append((self.point.value, there.value, self.point.u, there.u))
        return there

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Descent, "_step", watched)
        model = fit(case)
    for before, after, u, u_after in values:
        assert after <= before * (1 + 1e-13)
        assert u == u_after >= case.u
    assert sorted((u for *_, u in values), reverse=True) == [u for *_, u in values]
    assert model.convergence.n_iter >= len(values)


@pytest.mark.parametrize("u", [np.inf, 1.5])
@pytest.mark.parametrize("basis", ["row numbers", "rows"])
def test_a_basis_states_the_problem_of_fewer_columns(u, basis, tmp_path):
    X, y = sample(80, 3)
    own = np.random.default_rng(0).normal(size=(7, X.shape[1]))
    given, own = {"row numbers": ([70, 3, 12], X[[3, 12, 70]]), "rows": (own, own)}[
        basis
    ]
    model = fit_tlssvor(X, y, gamma=0.3, basis=given, u=u, probability=True)
    assert_array_equal(model.support, own)
    K = RBF(X, own)
    s, width = svor_terms(y, 1.0, np.ones(80), absolute_cost(3))
    value = tlssvor_psi(
        K, model.thresholds, model.coef, s, width, np.ones(2 + len(own)), 1.0, u, 0.1
    )
    assert_allclose(model.convergence.primal, value, rtol=1e-12)
    assert_allclose(model.decision_function(X), K @ model.coef, rtol=1e-9)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.LinearARD([1, 0.3, 2])])
@pytest.mark.parametrize("u", [np.inf, 1.5])
def test_unit_vectors_state_the_problem_of_all_rows(kernel, u, monkeypatch):
    X, y = sample(150, 3, d=3, noise=1.0)
    X = X * [1, 1e-4, 30]
    X[:, 2] = 2 * X[:, 0]  # one dimension less than features
    w = np.arange(150) % 3.0
    options = {"kernel": kernel, "u": u, "C": 0.7, "sample_weight": w, "tol": 1e-10}
    exact = fit_tlssvor(X, y, **options)
    monkeypatch.setattr(kernel_fit, "_MANY", 100)
    found = fit_tlssvor(X, y, **options)
    assert_array_equal(found.support, np.eye(3))
    a, b = exact.convergence, found.convergence
    assert_allclose(b.primal, a.primal, rtol=1e-9)
    assert_allclose(found.thresholds, exact.thresholds, rtol=1e-5)
    f = exact.decision_function(X)
    assert_allclose(found.decision_function(X), f, atol=1e-5 * np.abs(f).max())


@pytest.mark.parametrize("cache_mb", [1e-300, 0.5, 1e300])
def test_what_is_kept_changes_no_byte(cache_mb):
    X, y = sample(9000, 3)
    options = {"basis": 5, "gamma": 0.3, "u": np.inf, "tol": 1e-2}
    a = fit_tlssvor(X, y, **options)
    b = fit_tlssvor(X, y, cache_mb=cache_mb, n_threads=3, **options)
    assert solution(a) == solution(b)


@pytest.mark.parametrize("u", [np.inf, 1.5])
def test_an_unreachable_tolerance_stalls(u):
    X, y = sample(100, 3)
    with pytest.warns(ConvergenceWarning, match="stalled after .*scale the data"):
        c = fit_tlssvor(X, y, u=u, tol=1e-300).convergence
    assert c.status is Status.STALLED
    assert c.violation < 1e-9


def test_values_that_would_overflow_are_refused():
    with pytest.raises(ValueError, match=r"X must be at most 1e\+100 with kernel='pre"):
        fit_tlssvor(np.diag([1e200, 1e200]), [0, 1], **PRECOMPUTED)
    model = fit_tlssvor(np.diag([1e99, 1e99]), [0, 1], **PRECOMPUTED)
    assert np.isfinite(model.coef).all()
    X, y = sample(40, 3)
    model = fit_tlssvor(X, y, basis=[5], probability=True)
    assert np.isfinite(model.predict_proba(X)).all()


X2 = [[0.0], [1.0]]


@pytest.mark.parametrize(("options", "message"), [
    ({"eta": 0.0}, "eta must be a number between 0 and 1, got 0.0"),
    ({"u": 0.2}, "u must be a number above 2 eta = 0.2, got 0.2"),
    ({"u": None, "eta": 0.5}, "u must be a number above 2 eta = 1, got None"),
    ({"basis": 3}, "basis must be at most 2, the rows of positive weight, got 3"),
], ids=str)  # fmt: skip
def test_refusals_name_the_argument_before_any_work(options, message):
    calls = []

    def kernel(A, B):
        calls.append(A)
        return A @ B.T

    with pytest.raises(ValueError, match=message):
        fit_tlssvor(X2, [0, 1], **{"kernel": kernel, **options})
    assert calls == []
