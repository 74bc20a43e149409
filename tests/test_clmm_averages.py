"""Average probabilities and marginal effects of mixed models, with their errors."""

from functools import cache

import numpy as np
import pytest
from files import loaded
from numpy.testing import assert_allclose
from oracles import ratio_probabilities, slope, slopes
from strategies import raises

import ordinal
from ordinal._cumulative.likelihood import cumulative

N, LEVELS = 400, 20
THRESHOLDS = np.array([-1.0, 1.0])
KINDS = "new", "average", "known", "known_or_new"


def grouped(seed=2, slope=1.0, crossed=0.0):
    """Rows of 20 groups with a random intercept and a slope, and of five others."""
    rng = np.random.default_rng(seed)
    group, x = np.arange(N) % LEVELS, rng.normal(size=N)
    other = np.arange(N) // 80
    b = rng.normal(size=(LEVELS, 2)) @ [[1.0, 0.6], [0.0, 1.0]] * [1.0, slope]
    score = x + b[group, 0] + b[group, 1] * x + rng.logistic(size=N)
    score += crossed * rng.normal(size=5)[other]
    return x[:, None], np.digitize(score, THRESHOLDS), {"g": group, "h": other}


@cache
def fitted(kind):
    """The model, its rows and their groups."""
    if kind == "scale":
        X, y = ordinal.datasets.load_wine()
        X, groups = X[:, :2], {"judge": np.arange(72) // 8}
        model = ordinal.fit_clmm(X, y, groups=groups, scale=[0], n_quadrature=5)
        return model, X, groups
    X, y, groups = grouped(crossed=1.0 if kind == "crossed" else 0.0)
    if kind != "crossed":
        del groups["h"]
    model = ordinal.fit_clmm(
        X, y, groups=groups, slopes={"g": [0]}, n_quadrature=1,
        family=kind if kind in ("stopping", "adjacent") else "cumulative",
    )  # fmt: skip
    assert not model.is_singular
    return model, X, groups


def triangles(model, psi):
    """Lambda of each factor, from parameters and lower triangles."""
    at, out = model.parameters.size, []
    for own in model.random:
        q = len(own.effects)
        row, column = np.tril_indices(q)
        L = np.zeros((q, q))
        L[row, column], at = psi[at : at + row.size], at + row.size
        out.append(L)
    return out


def below(model, psi, X, shift):
    """P(y <= j) of rows whose offset is moved by `shift`, (n,) or (G, n): its shape
    with (r - 1,) behind."""
    p, t = model.coef.size, model.alpha.size
    scale = model.predictor.scale
    s = np.exp(X[:, scale] @ psi[t + p : t + p + scale.size])
    eta = psi[:t] - (X @ psi[t : t + p] + shift)[..., None]
    if model.family == "cumulative":
        return cumulative(model.link, eta / s[:, None])
    P = ratio_probabilities(model.family, model.link, eta.reshape(-1, t))
    return P.cumsum(axis=1)[:, :-1].reshape(eta.shape)


def mean_of_new(model, psi, X):
    """Mean of P(y <= j) over rows of new groups, by a grid in the effects."""
    grid = np.linspace(-8, 8, 49)
    total, weight = np.ones(1), np.zeros((len(X), 1))
    for L, own in zip(triangles(model, psi), model.random, strict=True):
        q = len(L)
        u = np.stack(np.meshgrid(*[grid] * q), axis=-1).reshape(-1, q)
        Z = np.column_stack([np.ones(len(X)), X])[:, :q]
        assert own.effects[0] == "(Intercept)"
        share = np.exp(-0.5 * (u * u).sum(axis=1))
        total = (total[:, None] * share / share.sum()).ravel()
        weight = (weight[:, :, None] + (Z @ L @ u.T)[:, None, :]).reshape(len(X), -1)
    return total @ below(model, psi, X, weight.T).mean(axis=1)


def estimates(model):
    parts = [own.factor[np.tril_indices(len(own.effects))] for own in model.random]
    return np.concatenate([model.parameters, *parts])


@pytest.mark.parametrize("kind", ["slope", "scale", "stopping", "adjacent"])
def test_averages_of_new_groups_are_integrals_with_errors_of_all_parameters(kind):
    model, X, _ = fitted(kind)
    rows, psi = X[:4], estimates(model)
    found = model.predictions(rows, kind="cumulative")
    assert_allclose(found["estimate"], mean_of_new(model, psi, rows), atol=1e-9)
    G = slopes(lambda v: mean_of_new(model, v, rows), psi, 1e-4)
    errors = np.sqrt(np.einsum("ij,jk,ik->i", G, model.joint_covariance, G))
    assert_allclose(found["standard_error"], errors, rtol=1e-6)
    G, V = G[:, :-1], model.joint_covariance[:-1, :-1]
    without = np.sqrt(np.einsum("ij,jk,ik->i", G, V, G))
    assert not np.allclose(errors, without, rtol=1e-3)  # Lambda counts


@pytest.mark.parametrize("kind", ["slope", "stopping", "adjacent"])
def test_effects_in_new_groups_are_slopes_with_errors_of_all_parameters(kind):
    model, X, _ = fitted(kind)
    rows, psi, h = X[:3], estimates(model), 1e-3

    def effect(v):
        return slope(lambda t: mean_of_new(model, v, rows + t), h)

    found = model.marginal_effects(rows)
    steps = np.diff(np.concatenate([[0], effect(psi), [0]]))
    assert_allclose(found["effect"], steps, atol=1e-9)
    G = slopes(effect, psi, 1e-3)
    G = np.diff(np.pad(G, ((1, 1), (0, 0))), axis=0)
    errors = np.sqrt(np.einsum("ij,jk,ik->i", G, model.joint_covariance, G))
    assert_allclose(found["standard_error"], errors, rtol=1e-5)


def modes_at(fit, x):
    """b^ of all factors in the units of the features, in one vector."""
    _, mode = fit.loss.mode(x)
    parts = zip(fit.loss.lambdas(x), mode.u, fit.units, strict=True)
    return np.concatenate([(u @ L.T / unit).ravel() for L, u, unit in parts])


def covariance_of_modes(fit, x):
    """Lambda A^-1 Lambda' of all effects, by differences of the gradient of h."""
    ends, mode = fit.loss.mode(x)
    L, shapes = fit.loss.lambdas(x), [u.shape for u in mode.u]
    cuts = np.cumsum([u.size for u in mode.u])[:-1]
    parts = zip(L, mode.u, fit.units, strict=True)
    blocks = [np.kron(np.eye(len(u)), own / unit[:, None]) for own, u, unit in parts]
    size = sum(len(b) for b in blocks)
    whole, at = np.zeros((size, size)), 0
    for block in blocks:
        whole[at : at + len(block), at : at + len(block)] = block
        at += len(block)

    def gradient(v):
        u = [p.reshape(s) for p, s in zip(np.split(v, cuts), shapes, strict=True)]
        sums = fit.loss.sums(ends, fit.loss.effects(L, u))
        first = np.concatenate([sums.first.ravel(), sums.rest])
        scale = np.concatenate([np.tile(unit, s[0]) for unit, s in zip(
            fit.units, shapes, strict=True)])  # fmt: skip
        return whole.T @ (first * scale) - v

    A = -slopes(gradient, np.concatenate([u.ravel() for u in mode.u]), 1e-4)
    return whole @ np.linalg.inv(A) @ whole.T


@pytest.mark.parametrize("kind", ["slope", "crossed", "scale", "stopping", "adjacent"])
def test_errors_of_known_groups_have_those_of_the_modes(kind):
    model, X, groups = fitted(kind)
    fit, p = model._remembered, model.parameters.size
    rows = slice(0, 5)
    Z = np.column_stack([np.ones(len(X)), X])[rows]
    at = [np.searchsorted(own.levels.astype(int), groups[own.name][rows])
          if kind == "scale" else
          np.array([own.levels.tolist().index(k) for k in groups[own.name][rows]])
          for own in model.random]  # fmt: skip

    def mean(psi, b):
        shift, start = np.zeros(5), 0
        for own, level in zip(model.random, at, strict=True):
            size, q = own.modes.size, len(own.effects)
            effects = b[start : start + size].reshape(-1, q)[level]
            shift, start = shift + (Z[:, :q] * effects).sum(axis=1), start + size
        return below(model, psi, X[rows], shift).mean(axis=0)

    b = np.concatenate([own.modes.ravel() for own in model.random])
    assert_allclose(modes_at(fit, fit.x), b, atol=1e-9)
    q = fit.loss.design.n_parameters
    psi_of = lambda x: fit.loss.design.raw(x[:q])  # noqa: E731
    by_x = slopes(lambda x: mean(psi_of(x), modes_at(fit, x)), fit.x, 1e-4)
    by_b = slopes(lambda v: mean(model.parameters, v), b, 1e-4)
    C = covariance_of_modes(fit, fit.x)
    variance = np.einsum("ij,jk,ik->i", by_x, fit.covariance, by_x)
    beside = np.einsum("ij,jk,ik->i", by_b, C, by_b)
    found = model.predictions(
        X[rows], kind="cumulative", effects="known",
        groups={k: v[rows] for k, v in groups.items()},
    )  # fmt: skip
    assert_allclose(found["estimate"], mean(psi_of(fit.x), b), atol=1e-9)
    assert_allclose(found["standard_error"], np.sqrt(variance + beside), rtol=1e-5)
    assert beside.min() > 0.05 * variance.min()
    assert p == q


@pytest.mark.parametrize("kind", ["slope", "crossed", "scale", "stopping", "adjacent"])
@pytest.mark.parametrize("effects", KINDS)
def test_averages_are_means_of_predictions(kind, effects):
    model, X, groups = fitted(kind)
    weight = np.linspace(0, 2, len(X))
    known = {"groups": groups} if effects.startswith("known") else {}
    if effects == "known_or_new":
        known["groups"] = {k: v + (np.arange(len(X)) % 2) for k, v in groups.items()}
    offset = np.linspace(-0.2, 0.3, len(X))
    P = model.predict_proba(X, effects=effects, offset=offset, **known)
    given = {"effects": effects, "offset": offset, "sample_weight": weight}
    found = model.predictions(X, **given, **known)
    assert_allclose(found["estimate"], weight @ P / weight.sum(), atol=1e-12)
    slope = model.marginal_effects(X[:7], effects=effects, **{
        k: {n: v[:7] for n, v in g.items()} for k, g in known.items()
    })  # fmt: skip
    total = slope["effect"].reshape(-1, model.classes.size).sum(axis=1)
    assert_allclose(total, 0, atol=1e-12)
    assert (slope["standard_error"] > 0).all()


def test_a_singular_model_and_one_of_a_file_have_errors():
    X, y = ordinal.datasets.load_wine()
    groups = {"judge": np.arange(72) // 8, "bottle": np.arange(72) % 8}
    model = ordinal.fit_clmm(X[:, :2], y, groups=groups)
    assert model.is_singular
    simple, rows, own = fitted("scale")
    for effects in ("new", "average", "known"):
        known = {"groups": groups} if effects == "known" else {}
        table = model.predictions(X[:, :2], effects=effects, **known)
        assert (table["standard_error"] > 0).all()
    assert np.isnan(model.deviations["standard_error"][1])
    again = loaded(simple)
    for effects in ("new", "average"):
        tables = [m.predictions(rows, effects=effects) for m in (simple, again)]
        assert np.array_equal(*[t["standard_error"] for t in tables])
    assert np.array_equal(again.joint_covariance, simple.joint_covariance)
    with pytest.raises(ValueError, match="known groups needs the training rows"):
        again.predictions(rows, effects="known", groups=own)
    with pytest.raises(ValueError, match="groups is for effects='known' or"):
        simple.marginal_effects(rows, groups=own)
    raises(ValueError, "effects must be", simple.predictions, rows, effects="each")
    with pytest.raises(ValueError, match="offset must have one entry per row"):
        simple.predictions(rows, offset=np.zeros((len(rows), 4)))
    raises(ValueError, "X must be given", simple.predictions)
