"""Stopping ratio and adjacent categories models, against VGAM and definitions.

`REFERENCE` holds what tests/reference/ratio.R prints.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import ratio_probabilities, slope, slopes
from pom_data import SETS
from scipy import optimize
from scipy.sparse import csr_array
from strategies import raises
from test_pom_diagnostics import assert_newton_steps

import ordinal
from ordinal import fit_pom_path, inference
from ordinal.linear import fit_ratio, stages
from ordinal.linear.ratio_loss import RatioLikelihood

REFERENCE = json.loads(
    (Path(__file__).parent / "data" / "ratio_reference.json").read_text()
)
MADE, HOUSING = SETS["made"], SETS["housing"]
FAMILIES = "stopping", "backward", "adjacent"
CASES = [
    (family, link)
    for family in FAMILIES
    for link in ("logit", "probit", "cloglog", "loglog", "cauchit")
]
cases = pytest.mark.parametrize(("family", "link"), CASES)
# every family and every link; what links compute is tested with all cases
some_cases = pytest.mark.parametrize(
    ("family", "link"),
    [
        ("stopping", "logit"), ("backward", "logit"), ("adjacent", "logit"),
        ("stopping", "cauchit"), ("backward", "cloglog"), ("adjacent", "probit"),
        ("stopping", "loglog"),
    ],
)  # fmt: skip
families = pytest.mark.parametrize("family", FAMILIES)
LINK = {"probit": "probit", "cloglog": "cloglog"}


def lehmer_table(k):
    """Rows (X, y, weight) of a small table, as ratio.R makes them."""
    state, rows = 1009 * k, []

    def draw():
        nonlocal state
        state = 16807 * state % 2147483647
        return state / 2147483647

    for _ in range(90):
        x1, x2 = np.floor(5 * draw()) - 2, np.floor(2 * draw())
        w, u = 1 + np.floor(2 * draw()), draw()
        s = 0.5 * x1 - 0.7 * x2 + np.log(u / (1 - u))
        y = sum(map(int, (s > -1, s > 0.1, s > 1.2 and k % 2 == 0)))
        rows.append([x1, x2, w, y])
    rows = np.array(rows)
    return rows[:, :2], rows[:, 3].astype(int), rows[:, 2]


def test_estimates_agree_with_vglm():
    assert len(REFERENCE) > 120
    for entry in REFERENCE:
        name, family = entry["set"], entry["family"]
        made = lehmer_table(int(name[5:])) if name not in SETS else SETS[name]
        X, y, weight = made if name not in SETS else (made.X, made.y, made.weight)
        d, T = X.shape[1], int(y.max())
        own = family if family in FAMILIES else "stopping"
        how = {"family": own, "link": LINK.get(family, "logit"), "tol": 1e-9}
        nominal = [] if entry["parallel"] else range(d)
        model = fit_ratio(X, y, sample_weight=weight, nominal=nominal, **how)
        slopes = model.coef if entry["parallel"] else model.nominal_coef.T.ravel()
        sign = -1 if family in ("adjacent", "continuation") else 1
        ours = sign * np.concatenate([model.thresholds, -slopes])
        assert_allclose(ours, entry["coef"], atol=1e-6, err_msg=str(entry))
        assert model.loglik == pytest.approx(entry["loglik"], abs=1e-6)
        if family == "adjacent":  # vglm takes the expected information for the others
            errors = model.standard_errors
            if not entry["parallel"]:
                of_nu = errors[T:].reshape(T, d).T.ravel()
                errors = np.concatenate([errors[:T], of_nu])
            assert_allclose(errors, entry["error"], rtol=1e-5)


def whole(family, link, **options):
    return fit_ratio(
        MADE.X, MADE.y, sample_weight=MADE.weight, offset=MADE.offset, tol=1e-9,
        family=family, link=link, **options,
    )  # fmt: skip


def moved(model, x):
    T, m = model.thresholds.size, model.predictor.nominal.size
    theta, nu, beta = np.split(x, [T, T * (1 + m)])
    return replace(model, thresholds=theta, nominal_coef=nu.reshape(T, m), coef=beta)


@cases
def test_probabilities_are_products_of_conditional_ones(family, link):
    model = whole(family, link, nominal=[1])
    P = model.predict_proba(MADE.X, offset=MADE.offset)
    score = MADE.X[:, model.predictor.location] @ model.coef + MADE.offset
    eta = model.thresholds - MADE.X[:, 1:2] * model.nominal_coef[:, 0] - score[:, None]
    assert_allclose(P, ratio_probabilities(family, link, eta), rtol=1e-10)
    loglik = MADE.weight @ np.log(P[np.arange(120), MADE.y])
    assert model.loglik == pytest.approx(loglik)
    labels = model.predict(MADE.X, rule="mode", offset=MADE.offset)
    assert (labels == P.argmax(axis=1)).all()


@cases
def test_derivatives_are_those_of_the_loss(family, link):
    weight = np.where(np.arange(120) < 5, 0.0, MADE.weight)
    options = {"sample_weight": weight, "offset": MADE.offset, "nominal": [1]}
    model = fit_ratio(MADE.X, MADE.y, family=family, link=link, **options)
    design = ordinal.fit_pom(MADE.X, MADE.y, **options)._remembered.loss.design
    loss = RatioLikelihood(design, family, link)
    x = np.random.default_rng(0).normal(scale=0.4, size=design.n_parameters)

    def value_and_gradient(x):
        there = loss.at(x)
        return np.append(there.value, there.gradient)

    gradient, *curvature = slopes(value_and_gradient, x, 1e-4)
    at = loss.at(x)
    assert_allclose(at.gradient, gradient, atol=1e-8)
    assert_allclose(at.hessian.dense(), curvature, atol=1e-8)
    assert -loss.at(loss.start()).value * design.total < model.loglik


@pytest.mark.parametrize("backward", [False, True])
def test_stages_are_the_outcomes_of_binary_regressions(backward):
    y = MADE.y
    row, stage, beyond = stages(y, backward=backward)
    outcomes = [
        (i, j, y[i] > j)
        for i in range(y.size)
        for j in (range(max(y[i] - 1, 0), 3) if backward else range(min(y[i] + 1, 3)))
    ]
    assert_array_equal(np.column_stack([row, stage, beyond]), outcomes)


def moves_of(family, link, X, y):
    """Rows of A: what may not fall where no probability may."""
    T, rows = int(y.max()), []
    for x, own in zip(X, y, strict=True):
        S = np.hstack([np.eye(T), np.tile(-x, (T, 1))])
        if family == "stopping":
            rows += [-S[j] for j in range(own)] + ([S[own]] if own < T else [])
        elif family == "backward":
            rows += [S[j] for j in range(own, T)]
            rows += [-S[own - 1]] if own > 0 else []
        elif link == "logit":  # log P(own) - log P(k)
            rows += [S[own:k].sum(axis=0) for k in range(own + 1, T + 1)]
            rows += [-S[k:own].sum(axis=0) for k in range(own)]
        else:
            rows += [S[j] if j >= own else -S[j] for j in range(T)]
    return np.array(rows)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
@families
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")
def test_separation_is_what_a_linear_program_finds(family, link):
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (9, 2)).astype(float)
        X[:2] = [[1.0, 0.0], [0.0, 1.0]]
        y = np.append(rng.permutation(3), rng.integers(0, 3, 6))
        y = np.where(rng.random(9) < 0.6, np.digitize(X[:, 0], [-0.5, 0.5]), y)
        if np.unique(y).size < 3 or np.linalg.matrix_rank(X - X.mean(0)) < 2:
            continue
        A = moves_of(family, link, X, y)
        best = optimize.linprog(
            -A.sum(axis=0), A_ub=-A, b_ub=np.zeros(len(A)), bounds=[(-1, 1)] * 4
        )
        model = fit_ratio(X, y, family=family, link=link)
        separated = model.convergence.status is ordinal.models.Status.SEPARATED
        if family != "adjacent" or link == "logit":
            assert separated == (-best.fun > 1e-9)
        elif separated:
            assert -best.fun > 1e-9
        assert model.statistics.separated.size > 0 or not separated
        found.append(separated)
    assert len(set(found)) == 2


def test_what_is_refused():
    raises(ValueError, "family must be", fit_ratio, MADE.X, MADE.y, family="cumulative")
    model = fit_ratio(MADE.X, MADE.y, robust=True)
    raises(ValueError, 'pass method="wald"', model.confint, method="profile")
    raises(ValueError, "cluster has shape", fit_ratio, MADE.X, MADE.y, cluster=[1, 2])
    pom, freer = ordinal.fit_pom(MADE.X, MADE.y), fit_ratio(MADE.X, MADE.y, nominal=[0])
    raises(ValueError, "must have the same family", inference.lr_test, pom, freer)
    X, y, _ = noisy_rows()
    for fit, options, message in (
        (fit_ratio, {"family": "adjacent", "link": "probit", "l1": 0.1}, "not convex"),
        (fit_ratio, {"link": "cauchit", "l1": 0.1}, "loss is not convex"),
        (fit_ratio, {"l1": 0.1, "robust": True}, "fits with a penalty do not compute"),
        (fit_pom_path, {"family": "adjacent", "link": "probit"}, "link must be"),
        (fit_pom_path, {"family": "stopping", "threshold": "symmetric"},
         "threshold must be 'flexible' with family="),
        (fit_pom_path, {"family": "acat"}, "family must be one of 'cumulative'"),
    ):  # fmt: skip
        raises(ValueError, message, fit, X, y, **options)
    raises(ValueError, r"l1=0\.1", fit_ratio(X, y, l1=0.1).summary)


def averages(model, X, changed=None):
    """Mean probabilities of training rows, with other parameters if any are given."""
    model = model if changed is None else moved(model, changed)
    return MADE.weight @ model.predict_proba(X, offset=MADE.offset) / MADE.weight.sum()


def delta_errors(model, value):
    G = slopes(value, model.parameters, 1e-5)
    return np.sqrt(np.einsum("ij,jk,ik->i", G, model.covariance, G))


@some_cases
def test_effects_and_averages_are_differences_of_predictions(family, link):
    model = whole(family, link, nominal=[1])
    found = model.predictions()
    assert_allclose(found["estimate"], averages(model, MADE.X), rtol=1e-10)
    errors = delta_errors(model, lambda x: averages(model, MADE.X, x))
    assert_allclose(found["standard_error"], errors, rtol=1e-5)
    table, r = model.marginal_effects(), model.classes.size
    for j in range(MADE.X.shape[1]):
        is_binary = np.isin(MADE.X[:, j], (0, 1)).all()
        up, down, h = MADE.X.copy(), MADE.X.copy(), 1e-4
        if is_binary:
            up[:, j], down[:, j], h = 1, 0, 0.5
        else:
            up[:, j] += h
            down[:, j] -= h

        def effect(x, up=up, down=down, h=h):
            return (averages(model, up, x) - averages(model, down, x)) / 2 / h

        own = slice(j * r, (j + 1) * r)
        assert_allclose(table["effect"][own], effect(None), atol=1e-7)
        errors = delta_errors(model, effect)
        assert_allclose(table["standard_error"][own], errors, rtol=1e-4, atol=1e-7)


@cases
def test_residuals_are_those_of_the_probabilities(family, link):
    model = whole(family, link, nominal=[1])
    P = model.predict_proba(MADE.X, offset=MADE.offset)
    j = np.arange(P.shape[1])
    expected = [p[j < y].sum() - p[j > y].sum() for p, y in zip(P, MADE.y, strict=True)]
    assert_allclose(model.residuals(), expected, atol=1e-12)
    given = model.residuals(MADE.X, MADE.y, offset=MADE.offset)
    assert_array_equal(given, model.residuals())
    assert inference.hosmer_lemeshow(model, groups=6).dof == 4 * 3 + 2
    deviance = model.residuals(kind="deviance")
    assert MADE.weight @ deviance**2 == pytest.approx(-2 * model.loglik)
    assert_array_equal(np.sign(deviance), np.sign(expected))
    score = MADE.weight * model.residuals(kind="score")
    assert_allclose(score @ MADE.X[:, model.predictor.location], 0, atol=1e-5)
    # the slope of log P(y) by x'beta, which an offset adds to
    by_offset = slope(
        lambda t: np.log(model.predict_proba(MADE.X, offset=MADE.offset + t)), 1e-4
    )
    own = by_offset[np.arange(MADE.y.size), MADE.y]
    assert_allclose(model.residuals(kind="score"), own, atol=1e-7)
    with pytest.raises(TypeError, match="is not defined for a RatioModel: its family"):
        model.residuals(kind="surrogate")


@some_cases
def test_offsets_by_threshold_are_nominal_effects_that_are_known(family, link):
    free = whole(family, link, nominal=[1])
    known = MADE.offset[:, None] + MADE.X[:, 1:2] * free.nominal_coef.T
    model = fit_ratio(
        np.delete(MADE.X, 1, axis=1), MADE.y, sample_weight=MADE.weight, offset=known,
        family=family, link=link, tol=1e-9,
    )  # fmt: skip
    assert_allclose(model.parameters, free.parameters[[0, 1, 2, 6, 7]], atol=1e-7)
    assert model.loglik == pytest.approx(free.loglik, rel=1e-12)
    P = model.predict_proba(np.delete(MADE.X, 1, axis=1), offset=known)
    assert_allclose(P, free.predict_proba(MADE.X, offset=MADE.offset), atol=1e-8)
    assert_allclose(model.residuals(), free.residuals(), atol=1e-7)
    effects, others = model.marginal_effects(), free.marginal_effects()
    own = np.isin(others["name"], ["x1", "x3"])
    assert_allclose(effects["effect"], others["effect"][own], atol=1e-7)
    with pytest.raises(ValueError, match="a column for each of the 3 thresholds"):
        fit_ratio(MADE.X, MADE.y, offset=known[:, :2], family=family)


@some_cases
def test_ridge_balances_the_scores(family, link):
    """Slopes of the likelihood by beta are those of the penalty, and the others 0."""
    model = whole(family, link, nominal=[1], l2=0.05)
    s, W = scores_of(model), MADE.weight.sum()
    rest = model.parameters.size - model.coef.size
    assert_allclose(MADE.weight @ s[:, rest:], W * 0.05 * model.coef, rtol=1e-5)
    assert_allclose(MADE.weight @ s[:, :rest], 0, atol=1e-4)
    P = model.predict_proba(MADE.X, offset=MADE.offset)
    loglik = MADE.weight @ np.log(P[np.arange(120), MADE.y])
    assert model.loglik == pytest.approx(loglik)
    raises(ValueError, r"l2=0\.05", model.summary)


@families
def test_ridge_makes_coefficients_of_separated_ranks_finite(family):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    y = np.array([0, 0, 1, 1, 2, 2])
    assert fit_ratio(X, y, family=family, l2=0.1).convergence.converged
    for rows in (X, np.column_stack([X, [0, 1, 1, 0, 1, 0]])):
        with pytest.warns(
            ordinal.exceptions.ConvergenceWarning, match="'x1'.* leave them out"
        ):
            fit_ratio(rows, y, family=family, l2=0.1, nominal=[0])
    two = fit_ratio(X, y > 0, family=family, l2=0.1, tol=1e-9)
    pom = ordinal.fit_pom(X, y > 0, l2=0.1, tol=1e-9)
    assert_allclose(two.parameters, pom.parameters, rtol=1e-8)
    # a unit of the feature is one of the penalty, too
    scaled = fit_ratio(1000 * X, y, family=family, l2=1e5, tol=1e-9)
    same = fit_ratio(X, y, family=family, l2=0.1, tol=1e-9)
    assert_allclose(1000 * scaled.coef, same.coef, rtol=1e-6)


NET_CASES = [
    *((family, link) for family in FAMILIES[:2] for link in ("logit", "cloglog")),
    ("adjacent", "logit"),
]
net_cases = pytest.mark.parametrize(("family", "link"), NET_CASES)


def noisy_rows(n=150, d=6, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * [1, 2, 0.5, 1, 3, 1]
    s = X[:, 0] - 0.4 * X[:, 1] + rng.logistic(size=n)
    return X, np.digitize(s, [-1.0, 0.3, 1.2]), rng.integers(1, 3, n)


def mean_loss(family, link, X, y, weight, theta, beta):
    """The mean loss by the probabilities, and its slopes by theta and by beta."""

    def loss(v):
        eta = v[: theta.size] - (X @ v[theta.size :])[:, None]
        P = ratio_probabilities(family, link, eta)
        return -weight @ np.log(P[np.arange(y.size), y]) / weight.sum()

    x = np.concatenate([theta, beta])
    return loss(x), *np.split(slopes(loss, x, 1e-4), [theta.size])


def test_lasso_of_sparse_rows_and_of_offsets_by_threshold():
    X, y, _ = noisy_rows()
    options = {"l1": 0.03, "nominal": [2], "tol": 1e-11}
    sparse = fit_ratio(csr_array(X), y, family="adjacent", **options)
    dense = fit_ratio(X, y, family="adjacent", **options)
    assert_allclose(sparse.coef, dense.coef, atol=1e-6)
    offset = np.linspace(-1, 1, y.size)
    same = np.repeat(offset[:, None], y.max(), axis=1)
    once, each = (fit_ratio(X, y, offset=o, **options) for o in (offset, same))
    assert_allclose(once.parameters, each.parameters, atol=1e-6)


@net_cases
@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_points_of_a_path_are_single_fits_with_subgradients(family, link, ratio):
    X, y, weight = noisy_rows()
    options = {"family": family, "link": link, "sample_weight": weight, "tol": 1e-11}
    path = fit_pom_path(X, y, ratio=ratio, n_lambdas=5, smallest=0.02, **options)
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[-1] == X.shape[1]
    null = -path.null_loglik / weight.sum()
    assert (path.gaps <= 1e-11 * null).all()
    enough = np.sqrt(1e-11 * null * 8 * (X**2).max())  # slope of a loss by its gap
    for penalty, model in zip(path.lambdas, path.models, strict=True):
        l1, l2, beta = ratio * penalty, (1 - ratio) * penalty, model.coef
        own = model.statistics
        assert (model.family, own.l1, own.l2) == (family, l1, l2)
        value, by_theta, slope = mean_loss(
            family, link, X, y, weight, model.thresholds, beta
        )
        primal = value + l1 * np.abs(beta).sum() + l2 / 2 * beta @ beta
        assert model.convergence.primal == pytest.approx(primal, rel=1e-10)
        by_beta = slope + l2 * beta
        active = beta != 0
        assert_allclose(by_beta[active], -l1 * np.sign(beta[active]), atol=enough)
        assert (np.abs(by_beta[~active]) <= l1 + enough).all()
        assert_allclose(by_theta, 0, atol=1e-6)
        single = fit_ratio(X, y, l1=l1, l2=l2, **options)
        assert_allclose(single.parameters, model.parameters, atol=1e-5)
        assert single.convergence.dual <= primal * (1 + 1e-12)
        assert model.statistics.null_loglik == pytest.approx(
            single.statistics.null_loglik, rel=1e-12
        )
    none = path.thresholds[0], np.zeros(X.shape[1])
    largest = np.abs(mean_loss(family, link, X, y, weight, *none)[2]).max()
    assert path.lambdas[0] * ratio == pytest.approx(largest, rel=1e-9)


def scores_of(model):
    """Slopes of log P(y) of the rows by the parameters, from predictions."""

    def log_p(x):
        P = moved(model, x).predict_proba(MADE.X, offset=MADE.offset)
        return np.log(P[np.arange(120), MADE.y])

    return slopes(log_p, model.parameters, 1e-4)


@some_cases
def test_robust_errors_are_the_sandwich_of_the_scores_of_rows(family, link):
    plain = whole(family, link, nominal=[1])
    s, V, group = scores_of(plain), plain.covariance, np.arange(120) // 4
    robust = whole(family, link, nominal=[1], robust=True)
    middle = (MADE.weight[:, None] * s).T @ s
    assert_allclose(robust.covariance, V @ middle @ V, rtol=1e-5, atol=1e-7)
    sums = np.array([(MADE.weight * s.T)[:, group == g].sum(axis=1) for g in range(30)])
    clustered = whole(family, link, nominal=[1], cluster=group)
    expected = V @ (sums.T @ sums) @ V * 30 / 29
    assert_allclose(clustered.covariance, expected, rtol=1e-5, atol=1e-7)
    assert clustered.statistics.covariance_type == "cluster"
    assert_array_equal(clustered.parameters, plain.parameters)


@pytest.mark.parametrize(("family", "link"), [
    ("adjacent", "logit"), ("adjacent", "cloglog"), ("stopping", "probit"),
    ("backward", "logit"),
])  # fmt: skip
def test_ends_of_profiles_are_what_likelihood_ratio_tests_just_reject(family, link):
    model = whole(family, link)
    ends = model.confint(0.9, method="profile")
    assert_array_equal(ends["name"], model.coef_names)
    for name in ("lower", "upper"):
        value = ends[name][1]
        without = fit_ratio(
            np.delete(MADE.X, 1, axis=1), MADE.y, family=family, link=link,
            sample_weight=MADE.weight, offset=MADE.offset + value * MADE.X[:, 1],
            tol=1e-9,
        )  # fmt: skip
        rise = 2 * (model.loglik - without.loglik)
        assert rise == pytest.approx(1.6448536269514722**2, rel=1e-5)


@some_cases
def test_influence_is_a_newton_step_without_the_row(family, link):
    model = whole(family, link, nominal=[1])
    assert_newton_steps(model, lambda design: RatioLikelihood(design, family, link))


@pytest.mark.parametrize(("family", "loglik", "coef"), [
    ("cumulative", -293.035841318, [
        -1.79064977011, 0.517125807749, 2.10658197918,
        -0.571083741031, 0.408677074182, -0.852557615993]),
    ("stopping", -287.15177928, [
        -1.62457589194, 0.188047336731, 1.05927083063,
        -0.491293718061, 0.32821712469, -0.768399961988]),
    ("backward", -290.021611158, [
        -1.15131626241, 0.856221733309, 1.82893227701,
        -0.474617126385, 0.371994467787, -0.554294895702]),
    ("adjacent", -286.245172413, [
        -0.999114408931, 0.524525965797, 0.817395248225,
        -0.353629090507, 0.263561451897, -0.479979438283]),
])  # fmt: skip
def test_offsets_by_threshold_agree_with_vglm(family, loglik, coef):
    """The figures are those that tests/reference/offsets.R prints."""
    options = {"offset": np.outer(MADE.offset, [1, -0.5, 0.25]), "tol": 1e-9}
    fit, how = (fit_ratio, {"family": family})
    if family == "cumulative":
        fit, how = ordinal.fit_pom, {}
    model = fit(MADE.X, MADE.y, sample_weight=MADE.weight, **options, **how)
    assert model.loglik == pytest.approx(loglik, rel=1e-11)
    assert_allclose(np.append(model.thresholds, -model.coef), coef, rtol=1e-9)


def naive_loss(family, link, theta, f, y, weight):
    """Mean loss from the conditional probabilities, and its slopes by eta, (n, T)."""
    eta = theta - f[:, None]
    if link == "logit":
        F = 1 / (1 + np.exp(-eta))
        beyond = np.log1p(-F)
        falling, rising = F, 1 - F  # density / (1 - F) and density / F
    else:
        falling = np.exp(eta)
        F, beyond = -np.expm1(-falling), -falling
        rising = np.exp(eta + beyond) / F
    n, T = eta.shape
    j, at = np.arange(T), y[:, None]
    if family == "adjacent":
        mass = np.ones((n, T + 1))
        for k in range(T):  # P(k + 1) / P(k) = (1 - F_k) / F_k
            mass[:, k + 1] = mass[:, k] * (1 - F[:, k]) / F[:, k]
        P = mass / mass.sum(axis=1, keepdims=True)
        by_eta = (j >= at) - np.cumsum(P, axis=1)[:, :-1]
        log_p = np.log(P[np.arange(n), y])
    else:
        below, above = (
            (j == at, j < at) if family == "stopping" else (j >= at, j == at - 1)
        )
        log_p = np.where(below, np.log(F), np.where(above, beyond, 0)).sum(axis=1)
        by_eta = np.where(below, rising, 0) - np.where(above, falling, 0)
    w = weight / weight.sum()
    return -w @ log_p, -w[:, None] * by_eta


@net_cases
@pytest.mark.parametrize(("l1", "l2"), [(0.05, 0.0), (0.05, 0.03)])
def test_elastic_nets_satisfy_the_optimality_conditions(family, link, l1, l2):
    """Subgradients of (P), which is convex, from the raw data."""
    X, y, weight = noisy_rows()
    options = {"family": family, "link": link, "l1": l1, "l2": l2, "tol": 1e-11}
    model = fit_ratio(X, y, sample_weight=weight, **options)
    assert model.convergence.converged
    beta = model.coef
    assert 0 < np.count_nonzero(beta) < beta.size
    value, g = naive_loss(family, link, model.thresholds, X @ beta, y, weight)
    assert model.loglik == pytest.approx(-value * weight.sum(), rel=1e-10)
    assert_allclose(g.sum(axis=0), 0, atol=1e-6)
    by_beta = -g.sum(axis=1) @ X + l2 * beta
    active = beta != 0
    assert_allclose(by_beta[active], -l1 * np.sign(beta[active]), atol=1e-5)
    assert (np.abs(by_beta[~active]) < l1).all()
    primal = value + l1 * np.abs(beta).sum() + l2 / 2 * beta @ beta
    assert model.convergence.primal == pytest.approx(primal, rel=1e-10)
    assert primal * (1 - 1e-9) <= model.convergence.dual <= primal * (1 + 1e-12)
    # weight 2 is the row twice
    twice = np.repeat(np.arange(y.size), weight)
    repeated = fit_ratio(X[twice], y[twice], **options)
    assert_allclose(repeated.parameters, model.parameters, atol=1e-6)


@families
def test_goodness_of_fit_compares_groups_of_mean_ranks(family):
    model = fit_ratio(MADE.X, MADE.y, family=family, tol=1e-9)
    found = inference.hosmer_lemeshow(model, groups=6)
    P = model.predict_proba(MADE.X)
    score = P @ np.arange(1, 5)
    group = np.searchsorted(np.quantile(score, np.arange(1, 6) / 6), score, side="left")
    observed = np.array(
        [np.bincount(MADE.y[group == g], minlength=4) for g in range(6)]
    )
    expected = np.array([P[group == g].sum(axis=0) for g in range(6)])
    assert_array_equal(found.observed, observed)
    assert_allclose(found.expected, expected, rtol=1e-10)
    assert found.chi2 == pytest.approx(((observed - expected) ** 2 / expected).sum())
    assert found.dof == 4 * 3 + 2
