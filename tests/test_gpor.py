"""GPOR: gradients, oracles, symmetries, predictions, reports."""

import dataclasses
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import (
    fitc,
    kernel_matrix,
    laplace_posterior,
    predicted_variance,
    rank_probabilities,
    sequential_ep,
    slopes,
)
from scipy import sparse, stats
from strategies import GPOR_KERNELS, gpor_cases, raises, sample, slow

import ordinal
from ordinal import fit_gpor, kernels
from ordinal._input.problem import Problem
from ordinal._numerics import memory
from ordinal._watch.monitor import Monitor
from ordinal.exceptions import ConvergenceWarning
from ordinal.gpor import ep, evidence, laplace
from ordinal.gpor.evidence import Evidence, Settings
from ordinal.kernels.tiles import diagonal_of
from ordinal.models import Status

INFERENCES = ["ep", "laplace"]
few = settings(max_examples=settings.default.max_examples // 4)
every_inference = pytest.mark.parametrize("inference", INFERENCES)
PRECOMPUTED = {"kernel": "precomputed"}


def search_of(case, inference, objective="evidence", basis=None):
    """Evaluate the objective of a search in `fit_gpor`."""
    problem = Problem.from_arrays(case.X, case.y, sample_weight=case.weight)
    how = Settings(case.kernel, inference, objective, None, case.start)
    return Evidence(problem, basis, how)


def infer(case, inference, X=None, **options):
    """The model at the hyperparameters of the case."""
    options = {**case.options, "optimize": False, **options}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        X = case.X if X is None else X
        return fit_gpor(X, case.y, inference=inference, **options)


def positive(case):
    """The linear kernels need a row that is not 0."""
    return case.X.any()


def central_differences(value, theta, steps, rounding=1e-12):
    """Return differences of fourth order, and the bound of their rounding and
    truncation."""
    slopes, errors = [], []
    for i, step in enumerate(steps):

        def at(k, i=i, step=step):
            moved = theta.copy()
            moved[i] += k * step
            return value(moved)

        v = [at(k) for k in (-3, -2, -1, 1, 2, 3)]
        near, far, farther = (v[3] - v[2]) / 2, (v[4] - v[1]) / 4, (v[5] - v[0]) / 6
        fourth = (4 * near - far) / 3 / step
        sixth = (15 * near - 6 * far + farther) / 10 / step
        slopes.append(sixth)
        errors.append(abs(sixth - fourth) + rounding * np.abs(v).max() / step)
    return np.array(slopes), np.array(errors)


def steps_of(search, theta):
    """Steps that move the thresholds by a small part of the noise."""
    noise, _, *gaps = theta[search.hyper.n_gammas :]
    part = 2e-3 * min(1.0, np.exp(noise))
    by_gap = [2e-3 * min(1.0, np.exp(noise - gap)) for gap in gaps]
    return np.array([2e-3] * (search.hyper.n_gammas + 1) + [part, *by_gap])


def assert_gradient(search, theta):
    def value(theta):
        return search.infer(theta)[0].objective

    posterior, got = search.evaluate(theta)
    assume(posterior.violation <= 1e-8)
    search.state = posterior.state
    # I + W K, whose determinant is in the objective, has a condition of up to
    # max W max k(x, x), with W of up to noise^-2
    prior = max(1.0, diagonal_of(search.infer(theta).kernel, search.X).max())
    rounding = max(1e-12, 1e-16 * (prior * np.exp(-2 * theta[search.hyper.n_gammas])))
    steps = steps_of(search, theta)
    expected, error = central_differences(value, theta, steps, rounding)
    # EP's last change is this; where it converges slowly, more was to come
    left = posterior.violation * posterior.n_iter
    # two orders of differences estimate the error of the better one and do not bound
    # it: where slopes of 9e5 cancel, 2.0 times the estimate was seen
    allowed = (1e-6 + left) * np.abs(expected).max() + 4 * error
    assert np.all(np.abs(got - expected) <= allowed)
    # otherwise the comparison would say nothing
    assume(error.max() <= 1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("decades", [1.0, 3.0])
@every_inference
@few
@given(data=st.data())
def test_the_gradient_agrees_with_central_differences(inference, decades, data):
    """Draw problems of every kernel, over sizes, ranks, weights and hyperparameters."""
    case = data.draw(gpor_cases(decades=decades))
    assume(positive(case))
    search = search_of(case, inference)
    assert_gradient(search, search.hyper.begin)


@every_inference
@given(case=gpor_cases(distinct=True), basis=st.integers(1, 6))
def test_the_gradient_with_inducing_rows_agrees(inference, case, basis):
    search = search_of(case, inference, basis=basis)
    if search.basis is not None and case.kernel in ("linear", "ard_linear"):
        assume(len(search.basis) <= case.X.shape[1])
        K = kernel_matrix(case.made, *2 * [case.X[search.rows[search.basis]]])
        assume(np.linalg.cond(K) < 1e6)
    assert_gradient(search, search.hyper.begin)


@every_inference
def test_the_objective_that_is_minimised_has_the_prior(inference):
    """minus the evidence, and 1/2 ((theta - centre) / spread)^2."""
    X, y = sample(25, 4)
    problem = Problem.from_arrays(X, y)
    prior = {"gamma": (0.5, 0.7), "noise": (2.0, 0.1), "gap": (0.3, 1.5)}
    search = Evidence(problem, None, Settings("rbf", inference, prior=prior))
    theta = np.array([-0.3, 0.2, -0.9, -0.5, 0.1])
    value, gradient = search.minus(theta)
    middle = np.log([0.5, 2.0, 1.0, 0.3, 0.3])
    spread = np.array([0.7, 0.1, np.inf, 1.5, 1.5])
    posterior, slope = search.evaluate(theta)
    offset = (theta - middle) / spread
    assert_allclose(value, 0.5 * offset @ offset - posterior.objective, rtol=1e-12)
    assert_allclose(gradient, offset / spread - slope, rtol=1e-6, atol=1e-9)


@few
@given(case=gpor_cases(kernel=["rbf", "ard"], decades=0.5))
def test_the_bound_is_searched_with_its_published_gradient(case):
    """(28)-(30): the slope of the bound as the posterior's own part is left out."""
    search = search_of(case, "ep", "bound")
    posterior, cov, *_ = search.infer(search.hyper.begin)
    assert posterior.converged
    h, A = cov.matvec(posterior.a), cov.marginals()[0]
    got = search.evaluate(search.hyper.begin)[1]

    def expected(theta):
        return ep.expectations(search.likelihood(theta, cov.extra_variance), h, A)[0]

    theta, p = search.hyper.begin, search.hyper.n_gammas
    slopes, error = central_differences(expected, theta, steps_of(search, theta))
    allowed = 1e-6 * np.abs(slopes[p:]).max() + error[p:]
    assert np.all(np.abs(got[p:] - slopes[p:]) <= allowed)


@pytest.mark.parametrize(("inference", "options"), [
    *slow(("ep", {}), ("laplace", {"kernel": "ard"})),
    ("laplace", {"basis": ("random", 15), "tol": 1e-13}),  # nats to gain
    ("laplace", {"kernel": "precomputed"}),
])  # fmt: skip
def test_searches_on_samples_find_the_optimum_of_all(monkeypatch, inference, options):
    X, y = sample(320, 3)
    if options.get("kernel") == "precomputed":
        X = kernels.RBF(0.2)(X, X)
    weight = np.r_[np.zeros(5), np.full(5, 2.0), np.ones(len(y) - 10)]
    options = {"sample_weight": weight, "tol": 1e-5, "inference": inference, **options}
    plain = fit_gpor(X, y, **{**options, "tol": 1e-5})
    monkeypatch.setattr(evidence, "_LEAST", 60)
    sizes = []
    sample_of = Evidence.sample
    monkeypatch.setattr(
        Evidence, "sample", lambda self, n: sizes.append(n) or sample_of(self, n)
    )
    model = fit_gpor(X, y, **options)
    assert sizes == ([78] if "basis" in options else [157, 78])
    assert model.convergence.status is Status.CONVERGED
    assert_allclose(model.log_evidence, plain.log_evidence, rtol=1e-8)
    assert_allclose(model.thresholds, plain.thresholds, rtol=1e-4, atol=1e-4)
    assert model.convergence.n_iter < plain.convergence.n_iter


@every_inference
@pytest.mark.parametrize("kernel", GPOR_KERNELS)
def test_predictions_are_those_of_the_formulas(inference, kernel):
    """(16), (17), (18) with explicit inverses, at the hyperparameters of a start."""
    X, y = sample(20, 4, 3)
    T = np.random.default_rng(1).normal(size=(20, 3))
    b, noise = np.array([-0.8, 0.0, 1.1]), 0.6
    start = {"noise": noise, "thresholds": b}
    gamma = np.array([0.2, 0.5, 0.9])
    if kernel != "linear":
        start["gamma"] = gamma if "ard" in kernel else gamma[0]
    given = {"kernel": kernel, "inference": inference, "optimize": False}
    model = fit_gpor(X, y, start=start, **given)
    assert_allclose(model.noise, noise, rtol=1e-15)
    assert_allclose(model.thresholds, b, rtol=1e-14, atol=1e-15)
    if kernel != "linear":
        assert_allclose(model.kernel.gamma, start["gamma"], rtol=1e-15)
    c = model.convergence
    assert c.converged
    assert c.n_iter == 1
    assert c.violation <= c.tol
    k = kernel_matrix(model.kernel, T, X)
    kappa = np.array([kernel_matrix(model.kernel, [t], [t])[0, 0] for t in T])
    K = kernel_matrix(model.kernel, X, X)
    if inference == "laplace":
        f, W, log_evidence = laplace_posterior(K, y, b, noise**2, np.ones(20))
        mean = k @ np.linalg.pinv(K, rcond=1e-12, hermitian=True) @ f
    else:
        W, m, *_, log_evidence = sequential_ep(K, y, b, noise**2, tol=1e-10)
        mean = k @ np.linalg.inv(K + np.diag(1 / W)) @ m
    assert_allclose(model.log_evidence, log_evidence, rtol=1e-7)
    var = predicted_variance(K, k, kappa, W)
    got_mean, got_var = model.predict_latent(T)
    assert_allclose(got_mean, mean, atol=1e-5)
    assert_allclose(got_var, var, rtol=1e-5, atol=1e-7)
    P = rank_probabilities(mean, var, b, noise)
    got = model.predict_proba(T)
    assert_allclose(got, P, atol=1e-6)
    assert_allclose(got.sum(axis=1), 1, rtol=0, atol=1e-12)
    labels = np.arange(20) % 4
    scores = model.score_samples(T, labels)
    assert_allclose(scores, np.log(P[np.arange(20), labels]), atol=1e-4)


def test_scores_of_samples():
    X, y = sample(60, 4)
    labels = np.array(["a", "b", "c", "d"])
    known = labels[y]
    model = fit_gpor(X, known, classes=labels)
    for rows, true, message in [
        (X, known[1:], r"^y has shape \(59,\), expected \(60,\) as"),
        (X[:, :2], known, "^X has 2 features, the model was fitted"),
        (X, np.where(y == y[0], "e", known), "y holds 'e' in row 0"),
    ]:
        raises(ValueError, message, model.score_samples, rows, true)
    # logarithms of what no double holds
    zero = {"root": 0 * model.root, "coef": 0 * model.coef}
    far = dataclasses.replace(model, noise=1e-3, **zero)
    far = dataclasses.replace(far, thresholds=np.array([-90.0, 80.0, 99.0]))
    tail = far.score_samples(X[:2], ["a", "d"])
    z = np.array([90.0, 99.0]) / np.sqrt(1 + 1e-6)
    assert_allclose(tail, stats.norm.logsf(z), rtol=1e-10)


def fit(X, y, **options):
    return fit_gpor(X, y, **{"n_threads": 1, "tol": 1e-4, **options})


@pytest.mark.parametrize(("inference", "basis"), [("ep", None), ("laplace", 12)])
def test_the_scale_of_the_kernel_does_not_matter(inference, basis):
    """K and 4 K: everything in the unit of f doubles."""
    X, y = sample(30, 4)
    K = kernels.RBF(0.3)(X, X)
    options = {"inference": inference, "basis": basis, **PRECOMPUTED}
    a, b = fit(K, y, **options), fit(4 * K, y, **options)
    assert_allclose(b.noise, 2 * a.noise, rtol=1e-6)
    assert_allclose(b.thresholds, 2 * a.thresholds, rtol=1e-6)
    assert_allclose(b.log_evidence, a.log_evidence, rtol=1e-9)
    one = np.ones(30)
    P, Q = a.predict_proba(K, diagonal=one), b.predict_proba(4 * K, diagonal=4 * one)
    assert_allclose(P, Q, atol=1e-8)
    ca, cb = a.convergence, b.convergence
    assert_allclose(ca.primal, cb.primal, rtol=1e-9)
    f, g = a.predict_latent(K, diagonal=one), b.predict_latent(4 * K, diagonal=4 * one)
    assert_allclose(g[0], 2 * f[0], atol=1e-6)
    assert_allclose(g[1], 4 * f[1], rtol=1e-6)


def test_the_diagonal_of_a_precomputed_kernel_is_checked():
    X, y = sample(20, 2)
    K = kernels.RBF(0.2)(X, X)
    model = fit(K, y, **PRECOMPUTED)
    rule = r"^diagonal (must be finite and >= 0, got .* in row 0|has shape .*20,\))"
    for call in (model.predict, model.predict_proba, model.predict_latent):
        raises(ValueError, r"^diagonal must hold k.x, x. of the row", call, K)
        for bad in (np.ones(19), np.full(20, np.nan), -np.ones(20), np.ones((20, 1))):
            raises(ValueError, rule, call, K, diagonal=bad)
        call(K, diagonal=[1] * 20)
    with pytest.raises(ValueError, match=r"^diagonal is for a precomputed kernel only"):
        fit(X, y).predict(X, diagonal=np.ones(20))


@every_inference
def test_inducing_rows_are_the_fitc_approximation(inference):
    """Sigma = Q and a noise of its own for every row, by the oracles."""
    X, y = sample(40, 3, 2)
    start = {"gamma": 0.3, "noise": 0.4, "thresholds": [-0.5, 0.6]}
    model = fit_gpor(X, y, inference=inference, basis=9, optimize=False, start=start)
    assert len(model.support) == 9
    columns = [int(np.flatnonzero((X == row).all(axis=1))[0]) for row in model.support]
    K, b = kernels.RBF(0.3)(X, X), np.array([-0.5, 0.6])
    Q, rest = fitc(K, columns)
    v = 0.16 + rest
    T = np.random.default_rng(0).normal(size=(15, 2))
    k = kernels.RBF(0.3)(T, X[columns])
    k = k @ np.linalg.inv(K[np.ix_(columns, columns)]) @ K[columns]  # of the process
    if inference == "laplace":
        f, W, log_evidence = laplace_posterior(Q, y, b, v, np.ones(40))
        inverse = np.linalg.inv(Q + np.diag(1 / W))
        mean = k @ inverse @ (f + np.linalg.solve(np.diag(W), _slope(Q, W, f)))
    else:
        W, m, *_, log_evidence = sequential_ep(Q, y, b, v)
        inverse = np.linalg.inv(Q + np.diag(1 / W))
        mean = k @ inverse @ m
    var = 1 - np.einsum("ij,jk,ik->i", k, inverse, k)
    assert_allclose(model.log_evidence, log_evidence, rtol=1e-6)
    got_mean, got_var = model.predict_latent(T)
    assert_allclose(got_mean, mean, atol=1e-5)
    assert_allclose(got_var, var, rtol=1e-4)


def _slope(Q, W, f):
    """d log P / df at the mode, which is Sigma^-1 f."""
    return np.linalg.pinv(Q, rcond=1e-11, hermitian=True) @ f


@pytest.mark.slow("three searches")
@pytest.mark.parametrize("kernel", ["rbf", "ard", "ard_linear"])
@every_inference
def test_rows_of_ones_own_are_a_basis(inference, kernel, tmp_path):
    X, y = sample(60, 3)
    own = np.random.default_rng(0).normal(size=(3, 3))
    search = Evidence(Problem.from_arrays(X, y), own, Settings(kernel, inference))
    theta = search.hyper.begin + 0.1
    _, gradient = search.minus(theta)
    change = slopes(lambda theta: search.minus(theta)[0], theta, 1e-4)
    assert_allclose(gradient, change, atol=1e-4)
    options = {"inference": inference, "kernel": kernel}
    model = fit_gpor(X, y, basis=own, **options)
    assert_array_equal(model.support, own)
    K = model.kernel(X, own)
    mean, var = model.predict_latent(X)
    assert_allclose(mean, K @ model.coef)
    known = ((K @ model.root.T) ** 2).sum(axis=1)
    assert_allclose(var, np.diagonal(model.kernel(X, X)) - known, rtol=1e-9)
    model.save(tmp_path / "model")
    again = ordinal.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    of_rows = fit_gpor(X, y, basis=X[:3], **options)
    assert_array_equal(of_rows.coef, fit_gpor(X, y, basis=[0, 1, 2], **options).coef)


def test_the_start_of_the_paper():
    """sigma = c, b_1 = -c, Delta = 2 c / r, gamma 1 / (2 d variance) or by feature."""
    X, y = sample(40, 4)
    X = X * [1.0, 2.0, 5.0] + [0.0, 3.0, 0.0]
    rbf = fit_gpor(X, y, optimize=False)
    assert_allclose(rbf.kernel.gamma, 1 / (2 * 3 * X.var()))
    assert_allclose(rbf.thresholds, [-1, -0.5, 0])
    assert_allclose(rbf.noise, 1)
    ard = fit_gpor(X, y, optimize=False, kernel="ard")
    assert_allclose(ard.kernel.gamma, 1 / (2 * 3 * X.var(axis=0)))
    linear = fit_gpor(X, y, optimize=False, kernel="ard_linear")
    assert_allclose(linear.kernel.gamma, 1 / (3 * (X**2).mean(axis=0)))
    plain = fit_gpor(X, y, optimize=False, kernel="linear")
    c = np.sqrt((X**2).sum(axis=1).mean())
    assert_allclose(plain.noise, c)
    assert_allclose(plain.thresholds, c * np.array([-1, -0.5, 0]), atol=1e-12)
    # with weights, as if rows were repeated
    weight = np.arange(40) % 3 + 1
    weighted = fit_gpor(X, y, optimize=False, kernel="ard", sample_weight=weight)
    repeated = np.repeat(X, weight, axis=0)
    assert_allclose(weighted.kernel.gamma, 1 / (2 * 3 * repeated.var(axis=0)))
    # a start may name some of them only
    a = fit_gpor(X, y, optimize=False, start={"noise": 0.1})
    assert_allclose(a.noise, 0.1)
    assert_allclose(a.thresholds, rbf.thresholds)
    assert a.kernel.gamma == rbf.kernel.gamma
    b = fit_gpor(X, y, optimize=False, start={"gamma": 3, "thresholds": [0, 1, 3]})
    assert_allclose(b.thresholds, [0, 1, 3], atol=1e-15)
    assert_allclose(b.kernel.gamma, 3)
    ard = fit_gpor(X, y, kernel="ard", optimize=False, start={"gamma": 0.5})
    assert_allclose(ard.kernel.gamma, 0.5)


@every_inference
def test_the_end_of_a_search_is_a_stationary_point(inference):
    X, y = sample(40, 4)
    model = fit_gpor(X, y, kernel="ard", inference=inference, tol=1e-5)
    c = model.convergence
    assert c.status is Status.CONVERGED
    assert c.violation <= c.tol == 1e-5
    assert c.dual is None
    problem = Problem.from_arrays(X, y)
    search = Evidence(problem, None, Settings("ard", inference, prior="weak"))
    begin, gaps = model.thresholds[0], np.diff(model.thresholds)
    theta = [*np.log(model.relevance()), np.log(model.noise), begin, *np.log(gaps)]
    theta = np.array(theta)
    value, gradient = search.minus(theta)
    assert_allclose(c.primal, value, rtol=1e-8)
    assert np.abs(gradient).max() <= 1.1e-5
    # and no worse than any point nearby
    rng = np.random.default_rng(0)
    for _ in range(10):
        there, _ = search.minus(theta + 0.05 * rng.normal(size=theta.size))
        assert there > value


def test_the_weak_prior_holds_hyperparameters_near_the_start():
    X, y = sample(24, 3, noise=0.05)
    free = fit_gpor(X, y, prior=None)
    weak = fit_gpor(X, y)
    assert free.log_evidence > weak.log_evidence
    assert abs(np.log(free.noise)) > abs(np.log(weak.noise))
    named = {"gamma": (weak.kernel.gamma, 1.0)}
    base = fit_gpor(X, y, optimize=False).kernel.gamma
    prior = {"gamma": (base, 2.0), "noise": (1.0, 0.5), "gap": (2 / 3, 2.0)}
    same = fit_gpor(X, y, prior=prior)
    assert_allclose(same.thresholds, weak.thresholds, rtol=1e-8)
    assert same.log_evidence == weak.log_evidence
    tight = fit_gpor(X, y, prior={"noise": (0.25, 1e-4), **named})
    assert_allclose(tight.noise, 0.25, rtol=1e-3)
    # in the unit of f, whatever the scale of the kernel
    tight = fit_gpor(X, y, kernel="linear", prior={"noise": (3.0, 1e-4)})
    assert_allclose(tight.noise, 3.0, rtol=1e-3)
    tight = fit_gpor(X, y, kernel="linear", prior={"gap": (7.0, 1e-4)})
    assert_allclose(np.diff(tight.thresholds), 7.0, rtol=1e-3)


def test_restarts_are_reproducible_and_keep_the_best():
    X, y = sample(24, 3, 2, noise=0.8)
    options = {"prior": None, "kernel": "ard", "inference": "laplace"}
    alone = fit_gpor(X, y, **options)
    a = fit_gpor(X, y, n_restarts=3, rng=5, **options)
    b = fit_gpor(X, y, n_restarts=3, rng=np.random.default_rng(5), **options)
    assert_array_equal(a.coef, b.coef)
    assert a.convergence.n_iter == b.convergence.n_iter > alone.convergence.n_iter
    # The same optimum may differ in its last bit: products depend on where arrays lie.
    assert a.convergence.primal <= alone.convergence.primal * (1 + 1e-14)
    other = fit_gpor(X, y, n_restarts=3, rng=6, **options)
    assert other.convergence.n_iter != a.convergence.n_iter  # of other starts


@every_inference
@pytest.mark.parametrize("optimize", [True, False])
def test_a_kernel_that_is_not_positive_semi_definite(inference, optimize):
    _, y = sample(30, 3)
    F = np.random.default_rng(0).normal(size=(30, 30))
    K = 10 * (F + F.T)
    np.fill_diagonal(K, 5)
    with pytest.raises(ValueError, match=r"^the evidence needs a positive semi-d"):
        fit_gpor(K, y, inference=inference, optimize=optimize, kernel="precomputed")


def test_twelve_thousand_features_on_fifty_rows():
    """The gene experiment of the paper: memory grows as n d."""
    rng = np.random.default_rng(0)
    n, d = 52, 12_600
    X = rng.normal(size=(n, d))
    y = np.digitize(X[:, :3].sum(axis=1), [-1, 1])
    tracemalloc.start()
    with pytest.warns(ConvergenceWarning):
        model = fit_gpor(X, y, kernel="ard_linear", max_iter=3, tol=1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * n * d
    assert model.relevance().shape == (d,)
    assert np.isfinite(model.log_evidence)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-12)


def test_rows_beyond_the_memory_are_refused_before_any_work(monkeypatch):
    """The message says what is needed, and that a basis needs less."""
    X, y = sample(300, 3)

    def never(A, B):
        raise AssertionError("asked for kernel values")

    monkeypatch.setattr(memory, "physical_memory", lambda: 2**21)
    text = r"needs 0.00215 GiB of memory for 300 rows, and this machine has 0.00195 GiB"
    raises(MemoryError, rf"{text}: pass basis=m", fit_gpor, X, y, kernel=never)
    monkeypatch.setattr(memory, "physical_memory", lambda: 2**18)
    fit_gpor(X, y, basis=20, optimize=False)
    with pytest.raises(MemoryError, match=r"for 300 rows on a basis of 120, and this"):
        fit_gpor(X, y, basis=120)
    fit_gpor(X, y, basis=120, cache_mb=0.1, optimize=False)  # less is kept
    monkeypatch.setattr(memory, "physical_memory", lambda: 2**21)
    fit_gpor(X, y, sample_weight=(np.arange(300) < 200).astype(float), optimize=False)
    monkeypatch.setattr(memory, "physical_memory", lambda: None)
    fit_gpor(X, y, optimize=False)


@pytest.mark.slow("traces the memory of 20 000 rows")
@pytest.mark.parametrize(("n", "inference", "options", "said"), [
    (500, "laplace", {}, 8 * 3.2 * 500),
    (20_000, "ep", {"basis": ("random", 50), "cache_mb": 1}, 300),
], ids=str)  # fmt: skip
def test_the_memory_that_is_asked_for_is_what_a_fit_takes(n, inference, options, said):
    """Beside a constant that of few rows would be most of it."""
    X, y = sample(n, 3)
    tracemalloc.start()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        fit_gpor(X, y, inference=inference, max_iter=1, n_threads=1, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.8 < peak / (n * said) < 1.5


@every_inference
def test_an_inference_that_falls_short_is_reported(inference, monkeypatch):
    X, y = sample(30, 3)
    tol = {"ep": 1e-4, "laplace": 1e-6}[inference]
    c = fit_gpor(X, y, inference=inference, optimize=False).convergence
    assert c.violation <= c.tol == tol
    monkeypatch.setattr(ep, "_MAX_SWEEPS", 2)
    monkeypatch.setattr(laplace, "_MAX_ITER", 1)
    start = {"noise": 1e-2}
    with pytest.warns(ConvergenceWarning, match="fit_gpor: stalled after"):
        model = fit_gpor(X, y, inference=inference, optimize=False, start=start)
    c = model.convergence
    assert c.status is Status.STALLED
    assert c.violation > c.tol == tol
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(("options", "message"), [
    ({"inference": "laplace", "objective": "bound"},
     "objective='bound' is for inference='ep' only, got"),
    ({"basis": [[0.0] * 9]}, r"basis must have .* 9, and X has"),
    ({"basis": [4, 3], "sample_weight": np.arange(20) != 3},
     "basis must name .* row 3, whose weigh"),
    ({"basis": range(19), "sample_weight": np.arange(20) != 3},
     "basis must name .* row 3, whose weigh"),  # as many as have weight
    ({"sample_weight": np.append(np.ones(19), 0.25)},  # there is no cavity of half
     "sample_weight must be 0, or 1 or more, with inference='ep', got 0.25"),
    ({"kernel": "polynomial"}, "kernel must be one of 'rbf'.*'polynomial'"),
    ({"prior": {"b": (1, 1)}}, "prior names 'b', which the model does not learn"),
    ({"prior": {"gamma": (1, 1)}, "kernel": "linear"}, "prior names 'gamma', whi"),
    ({"prior": {"noise": 1.0}}, r"prior\['noise'\] must be a pair .*, got 1.0"),
    ({"prior": {"noise": (0, 1)}},
     r"prior\['noise'\] median must be a positive finite number, got 0"),
    ({"prior": {"gap": (1, -1)}},
     r"prior\['gap'\] deviation must be a positive finite number, got -1"),
    ({"prior": {"gamma": ([1, 2], 1)}, "kernel": "ard"},
     r"prior\['gamma'\] has shape \(2,\), expected \(3,\)"),
    ({"prior": {"gamma": (-1.0, 1)}},
     r"prior\['gamma'\] must be positive and finite, got -1.0"),
    ({"start": {"b": 1}}, "start names 'b', which the model does not learn"),
    ({"start": [1.0]}, "start must be a mapping, got list"),
    ({"start": {"gamma": [1.0, 1.0]}},
     r"start\['gamma'\] has shape \(2,\), expected \(1,\)"),
    ({"start": {"gamma": np.nan}},
     r"start\['gamma'\] must be positive and finite, got nan"),
    ({"start": {"thresholds": [1.0]}},
     r"start\['thresholds'\] has shape \(1,\), expected \(2,\)"),
    ({"start": {"thresholds": [1.0, 1.0]}},
     r"start\['thresholds'\] must increase, got \[1.0, 1.0\]"),
    ({"start": {"thresholds": [0.0, 0.5, 1.0]}, "classes": [0, 1, 9, 2]},
     r"start\['thresholds'\] must be equal on both sides of a rank without "
     r"rows, got \[0.0, 0.5, 1.0\]"),
    ({"kernel": lambda A, B: -np.ones((len(A), len(B)))},
     r"k\(x, x\) must be positive on average, got -1"),
    ({"kernel": "ard", "X": sparse.eye_array(20, 3).tocsr()},
     "X must be dense with kernel='ard'"),
    ({"kernel": "ard", "start": {"gamma": 1e300}},
     "rows of X must have squares of at most"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value")
def test_unusable_arguments_are_refused(options, message):
    X, y = sample(20, 3)
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        fit_gpor(**{"X": X, "y": y, **options})


def cut_short(X, y, **options):
    with pytest.warns(ConvergenceWarning, match="^fit_gpor: max_time after"):
        return fit_gpor(X, y, n_threads=1, **options)


@pytest.mark.parametrize(
    ("inference", "optimize"), [("ep", False), ("laplace", False), ("laplace", True)]
)
def test_an_inference_out_of_time_leaves_its_mean(inference, optimize, up_after):
    """Its ranks are those of the mean, with the variance of the prior around it."""
    X, y = sample(60, 4)
    whole = fit_gpor(X, y, inference=inference, optimize=False)
    best = np.inf
    for times in range(5, 60, 3):
        up_after(times)
        options = {"inference": inference, "optimize": optimize, "max_time": 60.0}
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model = fit_gpor(X, y, n_threads=1, **options)
        if not model.root.any() and model.coef.any():
            best = min(best, np.abs(model.coef - whole.coef).max())
            assert_array_equal(model.predict_latent(X)[1], np.ones(60))
    assert best < 0.1 * np.abs(whole.coef).max()


@every_inference
def test_a_search_out_of_time_ends_at_its_best_point(inference, up_after, monkeypatch):
    up_after(200)
    X, y = sample(60, 4)
    model = cut_short(X, y, inference=inference, tol=1e-12, max_time=60.0)
    assert model.convergence.n_iter > 2
    monkeypatch.undo()
    start = {"noise": model.noise, "thresholds": model.thresholds}
    start["gamma"] = model.kernel.gamma
    there = fit_gpor(X, y, inference=inference, start=start, optimize=False)
    assert there.convergence.converged
    # time may end the last sweep of EP where its sites are good to 1e-4
    assert_allclose(model.coef, there.coef, atol=1e-4)
    assert_allclose(model.log_evidence, there.log_evidence, rtol=1e-7)


@pytest.mark.parametrize(("last", "support"), [
    (4, 0), (400, 276),
    pytest.param(2000, 550, marks=pytest.mark.slow("searches on all rows")),
])  # fmt: skip
@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_a_callback_ends_evaluations_from_within(inference, last, support, monkeypatch):
    monkeypatch.setattr(Monitor, "ASKS", 0.0)
    monkeypatch.setattr(Monitor, "GRACE", 0.0)
    X, y = sample(550, 3)  # the search begins on half of the rows
    asked, late = [], []

    def kernel(A, B):
        late.extend(asked[last - 1 :])
        return kernels.RBF(0.3)(A, B)

    with pytest.warns(ConvergenceWarning, match="; the callback returned"):
        model = fit_gpor(
            X, y, inference=inference, kernel=kernel,
            callback=lambda state: asked.append(state) or len(asked) == last,
        )  # fmt: skip
    assert len(asked) == last
    assert not late
    assert model.convergence.status is Status.STOPPED
    assert len(model.support) == support
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
