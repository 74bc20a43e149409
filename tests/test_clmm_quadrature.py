"""Integrals of mixed models: the number of nodes, groups of one rank, and limits."""

import itertools
import math
import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracles import slope
from scipy.special import logsumexp
from strategies import raises, slow

import ordinal
from ordinal._cumulative.design import Design, structure_of
from ordinal._solvers import _cumulative
from ordinal.exceptions import ApproximationWarning, ConvergenceWarning
from ordinal.inference.fitted import remember
from ordinal.mixed.elimination import RandomTerm
from ordinal.mixed.likelihood import MixedLikelihood
from ordinal.mixed.rows import RatioRows
from ordinal.models import Status

pd = pytest.importorskip("pandas")

FAMILIES = "cumulative", "stopping", "backward", "adjacent"


def pairs(n_groups=300, sd=3.0, rows=2, seed=0, link="logit"):
    """Groups of few rows: many of them have one rank only."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), rows)
    x = rng.normal(size=(group.size, 1))
    noise = rng.logistic(size=group.size)
    score = x[:, 0] + sd * rng.normal(size=n_groups)[group] + noise
    return x, np.digitize(score, [-2.0, 0.0, 2.0]), group


def likelihood(rank, weight, link="logit", family="cumulative", single=False, **rule):
    """Likelihood of rows without features, in one group or in a group each."""
    n = len(rank)
    none = np.zeros(0, dtype=np.int64)
    design = Design(
        np.zeros((n, 0)), none, none, none, np.zeros(n), np.array(rank, np.int32),
        np.array(weight), float(np.sum(weight)), structure_of("flexible", 2),
        np.zeros(0), np.ones(0),
    )  # fmt: skip
    group = np.arange(n) if single else np.zeros(n, dtype=np.int64)
    term = RandomTerm(group, n if single else 1, np.ones((n, 1)), np.ones((1, 1), bool))
    rows = {} if family == "cumulative" else {"rows_of": partial(RatioRows, family)}
    return MixedLikelihood(design, link, [term], **rule, **rows)


@cache
def log_probabilities(rank, link, family, x, n):
    """log P of one row of a rank at n effects between -9 and 9."""
    loss = likelihood([rank] * n, np.ones(n), link, family, single=True)
    u = np.linspace(-9.0, 9.0, n)
    with np.errstate(all="ignore"):
        value = loss.sums(loss.rows.ends(np.array(x)), x[-1] * u).value
    return u, np.where(np.isfinite(value), value, -np.inf)


def log_integral(rank, total, link, family, x, n=120_001):
    """The log of the integral over the effect of rows of one rank, by a fine grid."""
    u, value = log_probabilities(rank, link, family, tuple(x), n)
    h = total * value - u * u / 2
    inner = np.exp(h - h.max()).sum() * (u[1] - u[0])
    return h.max() + math.log(inner) - 0.5 * math.log(2 * math.pi)


@settings(deadline=None, max_examples=4)
@given(
    link=st.sampled_from(_cumulative.LINKS), rank=st.integers(0, 2),
    sd=st.sampled_from([0.3, 2.0, 30.0, 200.0, 1000.0]), n=st.integers(1, 12),
    family=st.sampled_from(FAMILIES), cut=st.floats(-2, 2),
)  # fmt: skip
@example(link="cloglog", rank=1, sd=1000.0, n=2, family="cumulative", cut=0.0)
@example(link="cauchit", rank=2, sd=1000.0, n=4, family="cumulative", cut=1.0)
def test_groups_of_one_rank_are_their_integrals(link, rank, sd, n, family, cut):
    weight = np.linspace(0.5, 1.5, n)
    loss = likelihood([rank] * n, weight, link, family, by_panels=True)
    x = np.array([cut, cut + 1.5, sd])
    found = -loss.value_and_gradient(x)[0]
    tol = 1e-3 if link == "cauchit" else 1e-6
    exact = log_integral(rank, weight.sum(), link, family, x)
    assert_allclose(found, exact, atol=tol, rtol=0)
    # no more than the marginal probability of one of its rows
    both = likelihood([rank] * (n + 1), np.ones(n + 1), link, family, by_panels=True)
    bound = log_integral(rank, 1.0, link, family, x)
    assert -both.value_and_gradient(x)[0] <= bound + tol


@pytest.mark.parametrize("sd", [21.735, 1000.0])
def test_edges_in_the_tail_of_the_effects_are_found(sd):
    """From one side of such an edge, Newton's step to a place leads to the other."""
    for z in np.linspace(-4, 4, 21):
        x = np.array([z * sd, z * sd + 1.5, sd])
        found = -likelihood([0], np.ones(1), by_panels=True).value_and_gradient(x)[0]
        exact = log_integral(0, 1.0, "logit", "cumulative", x)
        assert_allclose(found, exact, atol=5e-4, rtol=0)


@pytest.mark.parametrize(("family", "link"), [
    ("cumulative", "cloglog"),
    ("stopping", "logit"),
    *slow(("backward", "cloglog"), ("adjacent", "cloglog")),
    *slow(("cumulative", "probit")),
])  # fmt: skip
def test_gradients_with_panels_are_differences(family, link):
    """The nodes move with the parameters, and the integral does not."""
    rng = np.random.default_rng(0)
    n, groups = 60, 20
    X, group = rng.normal(size=(n, 3)), rng.integers(0, groups, n)
    score = X[:, 0] + 4 * rng.normal(size=groups)[group] + rng.logistic(size=n)
    weight = rng.uniform(0.5, 2, n)
    scale = [2] if family == "cumulative" else []
    columns = (np.array(c, dtype=np.int64) for c in ([0], [1], scale))
    design = Design(
        X, *columns, rng.normal(size=n), np.digitize(score, [-1, 1]).astype(np.int32),
        weight, weight.sum(), structure_of("flexible", 2), X.mean(axis=0),
        X.std(axis=0),
    )  # fmt: skip
    rows = {} if family == "cumulative" else {"rows_of": partial(RatioRows, family)}
    term = RandomTerm(group, groups, np.ones((n, 1)), np.ones((1, 1), bool))
    loss = MixedLikelihood(
        design, link, [term], 9, 1, np.linspace(0.5, 2, groups), by_panels=True, **rows
    )
    assert loss.panels.levels.size > 3
    for sd in (0.5, 5.0):
        fixed = [-1.0, 1.0, 0.1, -0.1, 0.5] + [0.2] * len(scale)
        x = np.array([*fixed, sd])
        _, gradient = loss.value_and_gradient(x)
        for way in np.eye(x.size):
            found = slope(
                lambda t, x=x, d=way: loss.value_and_gradient(x + t * d)[0], 1e-3
            )
            assert abs(found - gradient @ way) < 1e-8 * np.abs(gradient).sum()
    scores = loss.scores(x, group, groups)
    assert_allclose(-scores.sum(axis=0), gradient, rtol=1e-9, atol=1e-9)


def test_few_rows_per_group_need_more_than_laplace():
    x, y, group = pairs()
    fit = partial(ordinal.fit_clmm, x, y, groups={"g": group})
    fits = {k: fit(n_quadrature=k) for k in (1, 25, "auto")}
    sd = {k: float(fit.deviations["sd"][0]) for k, fit in fits.items()}
    assert fits["auto"].n_quadrature in (5, 9, 15, 25)
    assert fits["auto"].by_panels
    assert not fits[25].by_panels
    assert_allclose(sd["auto"], sd[25], rtol=1e-3)
    assert_allclose(fits["auto"].loglik, fits[25].loglik, atol=0.01)
    assert sd["auto"] - sd[1] > 0.2
    assert "groups of one rank by panels" in fits["auto"].summary()


def test_groups_of_several_ranks_are_integrated_with_cauchit():
    """Their integrands have several modes, which nodes about one of them miss."""
    rng = np.random.default_rng(1)
    group, x = np.arange(120) % 20, rng.normal(size=120)
    score = x + 1.5 * rng.normal(size=20)[group] + rng.logistic(size=120)
    y = np.digitize(score, [-1.5, 0.0, 1.5])
    model = ordinal.fit_clmm(x[:, None], y, groups={"g": group}, link="cauchit")
    assert model.convergence.converged
    assert "all groups by panels" in model.summary()
    u = np.linspace(-12, 12, 24001)
    ends = np.concatenate([[-np.inf], model.thresholds, [np.inf]])
    at = (x * model.coef[0])[:, None] + model.deviations["sd"][0] * u
    P = np.diff(np.arctan(ends[[y, y + 1]][:, :, None] - at), axis=0) / np.pi
    h = -0.5 * u**2 - 0.5 * np.log(2 * np.pi) + np.zeros((20, 1))
    np.add.at(h, group, np.log(P[0]))
    exact = np.log(np.exp(h).sum(axis=1) * (u[1] - u[0])).sum()
    assert_allclose(model.loglik, exact, atol=1e-3)
    # The value of Laplace is infinite where the curvature of a group is 0.
    X, y, fit = clustered(link="cauchit")
    with pytest.warns(ConvergenceWarning, match="n_quadrature='auto' or an"):
        model = ordinal.fit_clmm(X, y, n_quadrature=1, **fit)
    assert not model.convergence.converged


def clustered(**options):
    """Weighted rows of 40 groups, and the arguments of their fit."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 40, 240)
    X = rng.normal(size=(240, 3))
    score = X[:, 0] + 1.5 * rng.normal(size=40)[group] + rng.logistic(size=240)
    options |= {"groups": {"g": group}, "offset": 0.3 * X[:, 1]}
    options["sample_weight"] = rng.uniform(0.5, 2, 240)
    return X, np.digitize(score, [-1.5, 0.0, 1.5]), options


@pytest.mark.parametrize(("family", "options"), [
    ("cumulative", {"nominal": [1], "scale": [2]}),
    *slow(("stopping", {"nominal": [1]}), ("backward", {"link": "probit"})),
    *slow(("cumulative", {"link": "cauchit"}), ("cumulative", {"link": "cloglog"})),
    *slow(("adjacent", {})),
])  # fmt: skip
def test_more_nodes_do_not_move_an_automatic_fit(family, options):
    X, y, fit = clustered(family=family, **options)
    model = ordinal.fit_clmm(X, y, **fit)
    exact = ordinal.fit_clmm(X, y, n_quadrature=60, **fit)
    assert model.convergence.converged
    errors = exact.standard_errors
    assert np.abs(model.parameters - exact.parameters).max() < 0.02 * errors.max()
    assert_allclose(model.loglik, exact.loglik, atol=0.05)
    assert_allclose(model.ranef()["mode"], exact.ranef()["mode"], atol=0.02)
    known = {"effects": "known", "groups": fit["groups"]}
    P, Q = (m.predict_proba(X, **known) for m in (model, exact))
    assert_allclose(P, Q, atol=0.01)


@pytest.mark.slow("profiles by 60 nodes")
def test_inference_of_an_automatic_fit_uses_its_integrals():
    x, y, group = pairs(60, seed=2)
    model = ordinal.fit_clmm(x, y, groups={"g": group})
    fine = ordinal.fit_clmm(x, y, groups={"g": group}, n_quadrature=60)
    for name in ("lower", "upper"):
        found = model.confint(method="profile")[name]
        assert_allclose(found, fine.confint(method="profile")[name], atol=0.02)
        found = model.confint_deviations()[name]
        assert_allclose(found, fine.confint_deviations()[name], rtol=0.01)
    own = ordinal.fit_clmm(x, y, groups={"g": group}, cluster=group)
    assert_allclose(own.loglik, model.loglik, rtol=1e-10)
    assert_allclose(model._remembered.loglik_by(25), fine.loglik, atol=0.01)


def test_group_weights_repeat_groups_of_one_rank():
    x, y, group = pairs(40, seed=3)
    weight = 1.0 + group % 2
    twice = np.flatnonzero(weight == 2)
    heavy = ordinal.fit_clmm(x, y, groups={"g": group}, group_weight=weight)
    more = ordinal.fit_clmm(
        np.vstack([x, x[twice]]), np.append(y, y[twice]),
        groups={"g": np.append(group, group[twice] + 100)},
    )  # fmt: skip
    assert_allclose(heavy.loglik, more.loglik, rtol=1e-9)
    assert_allclose(heavy.parameters, more.parameters, atol=1e-5)
    order = np.random.default_rng(0).permutation(y.size)
    groups = {"groups": {"g": group[order]}, "group_weight": weight[order]}
    again = ordinal.fit_clmm(x[order], y[order], **groups)
    assert_allclose(again.parameters, heavy.parameters, atol=1e-6)


def test_tests_of_automatic_fits_have_a_common_number_of_nodes():
    x, y, group = pairs(60)
    X = np.column_stack([x, np.sin(9 * x)])
    larger = ordinal.fit_clmm(X, y, groups={"g": group})
    smaller = ordinal.fit_clmm(x, y, groups={"g": group})
    few = replace(smaller, n_quadrature=1)
    with pytest.raises(ValueError, match="has no training rows after load"):
        ordinal.inference.lr_test(few, larger)
    assert larger.n_quadrature == smaller.n_quadrature
    expected = ordinal.inference.lr_test(smaller, larger).chi2
    assert_allclose(smaller._remembered.loglik_by(smaller.n_quadrature), smaller.loglik)
    assert_allclose(expected, 2 * (larger.loglik - smaller.loglik))
    remember(few, smaller._remembered, np.ones(y.size, bool))
    assert_allclose(ordinal.inference.lr_test(few, larger).chi2, expected, rtol=1e-6)
    laplace = ordinal.fit_clmm(x, y, groups={"g": group}, n_quadrature=1)
    with pytest.raises(ValueError, match=r"nodes, got 1 and .* by n_quadrature='auto'"):
        ordinal.inference.lr_test(laplace, larger)


@pytest.mark.parametrize("nodes", ["auto", 1, 10])
def test_a_diverging_variance_has_a_status_that_names_the_factor(nodes):
    """All groups have one rank, so that their effects grow for ever."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 4)
    y, x = rng.integers(0, 3, 40)[group], rng.normal(size=(160, 1))
    with pytest.warns(ConvergenceWarning, match="unbounded .* deviation of judge, "):
        model = ordinal.fit_clmm(x, y, groups={"judge": group}, n_quadrature=nodes)
    assert model.convergence.status is Status.UNBOUNDED
    assert "leave these effects out" in model.convergence.remedy
    assert model.covariance is None
    if nodes == "auto":  # the supremum is that of the ranks of the groups
        share = np.bincount(y[::4]) / 40
        supremum = 40 * (share * np.log(share)).sum()
        assert model.loglik <= supremum + 1e-3


def test_groups_of_single_rows_are_refused_or_warned_of():
    x, y, _ = pairs(100, rows=1)
    alone = {"g": np.arange(100)}
    with pytest.raises(ValueError, match=r"g has a single row in each .* two ranks"):
        ordinal.fit_clmm(x, y > 1, groups=alone)
    with pytest.raises(ValueError, match="single row in each group, and with link="):
        ordinal.fit_clmm(x, y, groups=alone, link="probit")
    counted = {"groups": {"g": np.arange(100) % 50}}
    counted["sample_weight"] = np.where(np.arange(100) < 50, 0.0, 1.0)
    raises(ValueError, "two ranks", ordinal.fit_clmm, x, y > 1, **counted)
    with warnings.catch_warnings(record=True, action="always") as caught:
        ordinal.fit_clmm(x, y, groups=alone)
    first = caught[0]
    assert first.category is ApproximationWarning
    assert "only the form of the link" in str(first.message)
    # A weight of 5 is five rows of one group, so that nothing is said of single rows.
    five = np.full(100, 5.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        ordinal.fit_clmm(x, y, groups=alone, sample_weight=five, max_iter=1)


def test_two_effects_have_laplace_with_a_check():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 4)
    x = rng.normal(size=(240, 1))
    b = rng.normal(size=(60, 2)) * [2.0, 1.5]
    score = x[:, 0] + b[group, 0] + b[group, 1] * x[:, 0] + rng.logistic(size=240)
    y = np.digitize(score, [-1.0, 1.0])
    fit = {"groups": {"g": group}, "slopes": {"g": [0]}}
    with pytest.warns(ApproximationWarning, match="moves by [+-]") as caught:
        model = ordinal.fit_clmm(x, y, **fit)
    assert model.n_quadrature == 1
    assert not model.by_panels
    silent = ordinal.fit_clmm(x, y, **fit, n_quadrature=1)
    assert_allclose(silent.loglik, model.loglik, rtol=1e-12)
    said = float(str(caught[0].message).split("moves by ")[1].split()[0])
    exact = model._remembered.loss.replaced(n_quadrature=9)
    found = -exact.value_and_gradient(model._remembered.x)[0] - model.loglik
    assert_allclose(said, found, rtol=0.05)


def nested(slope=False, seed=3):
    """Classes of schools, and the arguments of their fit."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(27), 4)
    school = group // 3
    x = rng.normal(size=(group.size, 1))
    b, v = rng.normal(size=(9, 2)), 1.3 * rng.normal(size=27)
    score = (1.0 + slope * b[school, 1]) * x[:, 0] + b[school, 0] + v[group]
    score += rng.logistic(size=group.size)
    fit = {"groups": {"school": school, "class": group}}
    if slope:
        fit["slopes"] = {"school": [0]}
    return x, np.digitize(score, [-1.0, 1.0]), school, group, fit


def grid_loglik(model, x, y, group, n=41, moved=0.0):
    """log L of nested factors on a grid of their effects, without adaptation."""
    inner, outer = model.random
    assert [own.name for own in model.random] == ["class", "school"]
    t = np.linspace(-6.0, 6.0, n)
    log_density = -0.5 * t * t - 0.5 * math.log(2 * math.pi) + math.log(t[1] - t[0])
    q = len(outer.effects)
    Z = np.column_stack([np.ones(len(x)), x])[:, :q]
    eta = (x @ model.coef)[:, None]
    theta = np.concatenate([[-np.inf], model.thresholds + moved, [np.inf]])
    out = []
    for point in itertools.product(range(n), repeat=q):
        b = Z @ (outer.factor @ t[list(point)])
        at = eta + b[:, None] + inner.factor[0, 0] * t
        h = np.zeros((27, n))
        with np.errstate(over="ignore", divide="ignore"):
            ends = theta[y + 1][:, None], theta[y][:, None]
            upper, lower = (1 / (1 + np.exp(at - end)) for end in ends)
            np.add.at(h, group, np.log(upper - lower))
        of_school = np.bincount(np.arange(27) // 3, logsumexp(h + log_density, axis=1))
        out.append(of_school + log_density[list(point)].sum())
    return float(logsumexp(out, axis=0).sum())


def test_nested_factors_have_quadrature():
    x, y, school, group, fit = nested()
    fitted = partial(ordinal.fit_clmm, x, y, **fit)
    laplace, *more = (fitted(n_quadrature=nodes) for nodes in (1, 7, 13))
    errors = [abs(m.loglik - grid_loglik(m, x, y, group)) for m in (laplace, *more)]
    assert errors[0] > 0.1
    assert errors[1] < 1e-3
    assert errors[2] < 1e-5
    # The maximum of the fit is that of the integral on the grid.
    for moved in (-0.01, 0.01):
        assert grid_loglik(more[1], x, y, group, moved=moved) < more[1].loglik
    formula = pd.DataFrame({"x": x[:, 0], "y": y, "s": school, "c": group % 3})
    same = ordinal.fit_clmm("y ~ x + (1 | s/c)", formula, n_quadrature=7)
    assert_allclose(same.loglik, more[0].loglik, rtol=1e-10)
    assert "7 nodes" in same.summary()


def test_nested_factors_with_a_slope_have_quadrature():
    x, y, _, group, fit = nested(slope=True)
    model = ordinal.fit_clmm(x, y, **fit, n_quadrature=5)
    exact = grid_loglik(model, x, y, group, n=21)
    assert_allclose(model.loglik, exact, atol=0.02)
    more = model._remembered.loss.replaced(n_quadrature=11)
    assert_allclose(-more.value_and_gradient(model._remembered.x)[0], exact, atol=1e-4)
    with pytest.warns(ApproximationWarning, match="with 9 quadrature nodes"):
        ordinal.fit_clmm(x, y, **fit)


def test_crossed_factors_with_few_rows_warn_once():
    rng = np.random.default_rng(0)
    a, b = np.repeat(np.arange(60), 3), rng.integers(0, 70, 180)
    x = rng.normal(size=(180, 1))
    score = x[:, 0] + rng.normal(size=60)[a] + rng.normal(size=70)[b]
    y = np.digitize(score + rng.logistic(size=180), [-1, 1])
    fit = {"groups": {"a": a, "b": b}}
    with pytest.warns(ApproximationWarning, match="rows per group") as caught:
        ordinal.fit_clmm(x, y, **fit)
    assert len(caught) == 1
    ordinal.fit_clmm(x, y, **fit, n_quadrature=1)
    ordinal.fit_clmm(x, y, groups={"a": a % 20, "b": b % 20})


@pytest.mark.parametrize("looks", [3, 200, 900])
def test_a_fit_that_is_late_returns_its_best_point(looks, counted_clock):
    x, y, group = pairs(40)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = ordinal.fit_clmm(
            x, y, groups={"g": group}, n_quadrature=30, max_time=float(looks)
        )
    assert model.convergence.status is Status.MAX_TIME
    assert model.covariance is None
    assert np.isfinite(model.loglik)
    full = ordinal.fit_clmm(x, y, groups={"g": group}, n_quadrature=30)
    assert model.convergence.n_iter <= full.convergence.n_iter


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.ApproximationWarning")
def test_a_fit_whose_divergence_is_not_looked_at_in_time_has_not_converged(up_after):
    """The search for a diverging variance is the last one of a fit by Laplace."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(8), 4)
    X = rng.normal(size=(32, 1))
    score = X[:, 0] + 3 * rng.normal(size=8)[group] + rng.logistic(size=32)
    y = np.digitize(score, [-1.0, 1.0])
    given = {"groups": {"g": group}, "n_quadrature": 1, "max_time": 1e9}
    questions = up_after(10**9)
    assert ordinal.fit_clmm(X, y, **given).convergence.converged
    up_after(len(questions) - 5)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = ordinal.fit_clmm(X, y, **given)
    assert model.convergence.status is Status.MAX_TIME


@pytest.mark.slow("deviations of a hundred take many steps")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_fits_whose_gradients_overflow_end_or_say_so():
    def fit(seed):
        rng, g = np.random.default_rng(seed), np.repeat(np.arange(15), 12)
        u, x = 80 * rng.normal(size=15), rng.normal(size=180)
        y = np.digitize(u[g] + 80 * x + np.log(-np.log(rng.random(180))), [-80, 80])
        return ordinal.fit_clmm(x[:, None], y, groups={"g": g}, link="cloglog")

    assert fit(5).convergence.status is Status.UNBOUNDED
    raises(ValueError, "link='cloglog' overflows .*: pass another link", fit, 1)
