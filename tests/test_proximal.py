"""Sums over rows, best thresholds, and the proximal solver beside the exact ones."""

import itertools
from functools import partial

import numpy as np
import pytest
from internals import Monitor, row_features, stratified
from numpy.testing import assert_allclose, assert_array_equal

import ordinal
from ordinal._quadratic.losses import Losses, best_thresholds
from ordinal._quadratic.proximal import (
    KernelValues,
    MixedSums,
    ProximalFit,
    Start,
    cold,
    dual_value,
    finished,
    shares,
)
from ordinal._quadratic.sums import (
    CHUNK,
    CachedFeatures,
    LeadingFeatures,
    LocalSums,
    RowSums,
)
from ordinal._watch.convergence import Status
from ordinal.kernels import RBF
from ordinal.kernels.basis_rows import sample_sizes

SVOR = {
    "svorim": ordinal.fit_svorim,
    "svorex": ordinal.fit_svorex,
    "redsvm": ordinal.companions.fit_redsvm,
}


def of_terms(lo, hi, pn, pp, ordered=False, price=None):
    table = np.stack(np.broadcast_arrays(lo, hi, pn, pp), axis=2).astype(float)
    return Losses(table, ordered, np.zeros(table.shape[1]) if price is None else price)


def svor_losses(method, r, C):
    """Threshold j: a hinge for ranks above it and one for those below."""
    k, j = np.arange(r)[:, None], np.arange(r - 1)
    width = C * ((k == j) | (k == j + 1) if method == "svorex" else np.ones_like(k - j))
    above = k > j
    slope = np.where(above, -1.0, 1.0)
    return of_terms(
        np.where(above, 0, -width), np.where(above, width, 0), slope, slope,
        method == "svorex", np.ones(r - 1) if method == "redsvm" else None,
    )  # fmt: skip


def wild_losses(rng, r=3, T=2, **keywords):
    """No paper's: any boxes and slopes, some with a kink, some without width."""
    ends = rng.choice([0.0, 0.5, 1.0, 3.0], (2, r, T))
    pn = rng.normal(size=(r, T)).round(1)
    return of_terms(
        -ends[0], ends[1], pn, pn + rng.choice([0.0, 0.7], (r, T)), **keywords
    )


def made(n=300, r=4, m=40, seed=0):
    """Features of rows on a basis of m of them, and ranks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    y = np.searchsorted(np.quantile(score, np.arange(1, r) / r), score).astype(np.int32)
    rbf = RBF(0.5)
    L = np.linalg.cholesky(rbf(X[:m], X[:m]) + 1e-9 * np.eye(m))
    return np.linalg.solve(L, rbf(X[:m], X)).T.copy(), y


def sums_of(Z, y, losses, weight=None, dtype=np.float64, n_threads=1):
    weight = np.ones(len(y)) if weight is None else weight
    Z, weight = CachedFeatures(Z.astype(dtype)), weight.astype(np.float32)
    return LocalSums(RowSums(Z, y, weight, losses, n_threads, dtype))


def fit(sums, tol, start=None, **keywords):
    start = start or cold(sums.m, sums.losses, np.zeros(sums.losses.T))
    return ProximalFit(sums, start, tol, Monitor("test", tol), **keywords).run()


class Dense:
    """The formulas of `losses` and `proximal`, on (n, T) arrays."""

    def __init__(self, Z, y, losses, weight):
        self.Z, self.losses = Z, losses
        self.lo, self.hi, self.pn, self.pp = np.moveaxis(losses.table[y], 2, 0)
        self.lo, self.hi = self.lo * weight[:, None], self.hi * weight[:, None]

    def phi(self, t):
        return np.where(t > 0, self.pp * t, self.pn * t)

    def loss(self, v):
        return np.maximum(
            0, np.maximum(self.hi * (v - self.pp), self.lo * (v - self.pn))
        )

    def moved(self, v, g, sigma):
        """Minimise over candidates: both ends, the kink, and the minima of the two
        parabolas."""
        inner = g + sigma * (v - np.stack([self.pn, self.pp]))
        t = np.stack([self.lo, self.hi, 0 * v, *np.clip(inner, self.lo, self.hi)])
        cost = self.phi(t) - t * v + (t - g) ** 2 / (2 * sigma)
        return np.take_along_axis(t, cost.argmin(axis=0)[None], axis=0)[0]

    def primal(self, w, b):
        v = b - (self.Z @ w)[:, None]
        return 0.5 * w @ w + 0.5 * self.losses.price @ b**2 + self.loss(v).sum()


@pytest.mark.parametrize("seed", range(6))
def test_sums_are_those_of_the_formulas(seed):
    rng = np.random.default_rng(seed)
    n, T, m, sigma = 50, 2, 3, 0.8
    y, weight = rng.integers(0, 3, n).astype(np.int32), rng.integers(1, 4, n) / 2
    Z, losses = rng.normal(size=(n, m)), wild_losses(rng)
    dense, sums = Dense(Z, y, losses, weight), sums_of(Z, y, losses, weight)

    w, b = rng.normal(size=m), rng.normal(size=T)
    v = b - (Z @ w)[:, None]
    t = dense.moved(v, 0, sigma)
    sums.at(w, b, sigma)
    sums.accept()  # g of what follows

    w, b, g = rng.normal(size=m), rng.normal(size=T), t
    before, v = v, b - (Z @ w)[:, None]
    t = dense.moved(v, g, sigma)
    point, sides = sums.at(w, b, sigma), np.stack([np.maximum(t, 0), np.minimum(t, 0)])
    assert_allclose(point.sides, sides.sum(axis=1), atol=1e-12)
    assert_allclose(point.costs, dense.phi(sides).sum(axis=1), atol=1e-12)
    assert_allclose(point.back, Z.T @ t.sum(axis=1), atol=1e-12)
    keep = rng.random((2, T))
    scaled = (keep[:, None] * sides).sum(axis=(0, 2))
    assert_allclose(sums.scaled_back(keep), Z.T @ scaled, atol=1e-12)
    envelope = (t * v - dense.phi(t) - (t - g) ** 2 / (2 * sigma)).sum()
    assert_allclose(point.envelope, envelope, rtol=1e-12)
    assert_allclose(point.loss, dense.loss(v).sum(), rtol=1e-12)

    inside = (dense.moved(v + 1e-7, g, sigma) - t) > 5e-8 * sigma
    assert_array_equal(point.inside, inside.sum(axis=0))
    A = np.concatenate([np.repeat(Z, T, axis=0), -np.tile(np.eye(T), (n, 1))], axis=1)
    curvature = A.T @ (inside.ravel()[:, None] * A)
    assert_allclose(np.tril(sums.curvature(1.0)), np.tril(curvature), atol=1e-12)

    lengths = np.array([0.0, 0.3, 1.0, 2.5])
    along = [
        ((v - before) * dense.moved(before + x * (v - before), g, sigma)).sum()
        for x in lengths
    ]
    assert_allclose(sums.slopes(lengths), along, rtol=1e-10, atol=1e-10)

    grid = np.sort(rng.normal(size=(T, 5)), axis=1)
    grid[:, 2] = (Z @ w)[7] + losses.table[y[7], :, 3]  # a loss turns there
    grid.sort(axis=1)
    f = (Z @ w)[:, None]
    rises = [
        dense.loss(x + 1e-7 - f).sum(axis=0) - dense.loss(x - f).sum(axis=0)
        for x in grid.T
    ]
    assert_allclose(sums.loss_slopes(grid), np.transpose(rises) / 1e-7, atol=1e-5)
    assert_allclose(sums.loss(b + 1), dense.loss(v + 1).sum(), rtol=1e-12)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_thresholds_are_the_best(seed, ordered):
    """A sum of piecewise linear functions is least where one of them turns."""
    rng = np.random.default_rng(seed)
    n = 7
    Z, y = rng.normal(size=(n, 1)), rng.integers(0, 3, n).astype(np.int32)
    losses = wild_losses(rng, ordered=ordered)
    sums, dense = sums_of(Z, y, losses), Dense(Z, y, losses, np.ones(n))
    w = np.ones(1)
    sums.at(w, np.zeros(2), 1.0)
    b = best_thresholds(sums.loss_slopes, losses, np.zeros(2))
    cancellable_slices = np.concatenate([Z + dense.pn, Z + dense.pp])
    pairs = itertools.product(cancellable_slices.ravel(), repeat=2)
    least = min(
        dense.primal(w, np.array(p)) for p in pairs if not ordered or p[0] <= p[1]
    )
    assert dense.primal(w, b) <= least + 1e-9 * max(1, least)
    assert not ordered or (np.diff(b) >= 0).all()


@pytest.mark.parametrize("method", SVOR)
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_exact_solver_agrees(method, C):
    Z, y = made()
    losses = svor_losses(method, 4, C)
    exact = SVOR[method](Z @ Z.T, y, C=C, kernel="precomputed", tol=1e-5).convergence
    for dtype, tol in ((np.float64, 1e-6), (np.float32, 1e-3)):
        found = fit(sums_of(Z, y, losses, dtype=dtype), tol)
        assert found.status is Status.CONVERGED
        assert 0 <= found.rel_gap <= tol
        assert found.n_iter <= 60
        # what float32 is off by is far below its tolerance
        slack = 1e-9 if dtype is np.float64 else 1e-5
        assert found.primal >= exact.dual * (1 - slack)
        assert found.dual <= exact.primal * (1 + slack)
        primal = Dense(Z, y, losses, np.ones(len(y))).primal(found.w, found.b)
        assert_allclose(found.primal, primal, rtol=slack)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["free", "ordered", "priced"])
def test_weak_duality(kind, seed):
    """Whatever the point, once made feasible it is below the optimum."""
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(40, 4)), rng.integers(0, 3, 40).astype(np.int32)
    price = np.array([0.5, 2.0]) if kind == "priced" else None
    losses = wild_losses(rng, ordered=kind == "ordered", price=price)
    primal = fit(sums_of(Z, y, losses), 1e-8).primal
    for scale in (0.01, 0.3, 1.0, 5.0):
        sums = sums_of(Z, y, losses)
        point = sums.at(scale * rng.normal(size=4), scale * rng.normal(size=2), scale)
        nu = rng.exponential(scale, 1) if kind == "ordered" else np.zeros(1)
        keep = shares(losses, point.sides, nu)
        back = sums.scaled_back(keep)
        assert dual_value(losses, point, keep, back) <= primal * (1 + 1e-12)


@pytest.mark.parametrize("method", SVOR)
def test_a_known_point_ends_a_fit_whose_multipliers_are_good(method):
    """No step is taken: with a tiny sigma, multipliers stay what they are."""
    Z, y = made()
    losses = svor_losses(method, 4, 1.0)
    sums = sums_of(Z, y, losses)
    optimum = fit(sums, 1e-6)
    here = optimum.here
    sums.at(here.w, here.b, here.sigma)
    sums.accept()
    away = Start(0 * here.w, here.b, 1e-12 * here.sigma, here.nu, 1e-12)
    found = fit(sums, 1e-5, away, known=(optimum.w, optimum.b))
    assert (found.status, found.n_iter) == (Status.CONVERGED, 0)
    assert found.w is optimum.w
    assert 0 <= found.rel_gap <= 1e-5
    primal = Dense(Z, y, losses, np.ones(len(y))).primal(found.w, found.b)
    assert_allclose(found.primal, primal, rtol=1e-9)
    assert fit(sums, 1e-5, away).n_iter > 0


@pytest.mark.slow("a fit to the last digit")
def test_the_end_is_in_double():
    """Solutions of single precision are certified and refined for predictions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=500), [-0.5, 0.5]).astype(np.int32)
    features = row_features(RBF(1.0), X, np.arange(60))
    Z = np.empty((500, features.m), np.float32)
    features.single(X, Z)
    stalled = []
    for method, C in (("svorim", 100.0), ("svorex", 100.0), ("redsvm", 1e4)):
        losses = svor_losses(method, 3, C)
        sums = sums_of(Z, y, losses, dtype=np.float32)
        monitor = Monitor("test", 1e-7)
        start = cold(sums.m, losses, np.zeros(2))
        single = ProximalFit(sums, start, 1e-7, monitor).run()
        stalled.append(single.status is Status.STALLED)
        double = partial(sums.in_double, KernelValues(features, X))
        found = finished(single, double, features, 1e-7, monitor, 200)
        assert found.status is Status.CONVERGED
        assert 0 <= found.rel_gap <= 1e-7
        assert single.n_iter <= found.n_iter < 150
        scores = RBF(1.0)(X, features.support) @ features.coefficients(found.w)
        dense = Dense(np.eye(500), y, losses, np.ones(500))
        primal = dense.primal(scores, found.b) + 0.5 * (
            found.w @ found.w - scores @ scores
        )
        assert_allclose(found.primal, primal, rtol=1e-11)
        exact = fit(sums_of(features.double(X), y, losses), 1e-7)
        assert found.dual <= exact.primal * (1 + 1e-12)
        assert exact.dual <= found.primal * (1 + 1e-12)
    assert any(stalled)  # by what single precision does not resolve


def test_curvature_of_mixed_features_in_tiles():
    Z, y = made(1500, m=1100)
    Z = np.asarray(Z, np.float64)
    M = np.triu(np.random.default_rng(0).normal(size=(1100, 1100)))
    losses, one = svor_losses("svorim", 4, 1.0), np.ones(len(y), np.float32)
    w, b = np.linspace(-1, 1, 1100) / 300, np.array([-1.0, 0.0, 1.0])
    found = []
    for features, n_threads in ((Z, 1), (Z, 2), (Z @ M, 1)):
        rows = RowSums(CachedFeatures(features), y, one, losses, n_threads, np.float64)
        sums = LocalSums(rows) if found[1:] else MixedSums(LocalSums(rows), M)
        assert sums.at(w, b, 0.5).inside.all()
        found.append(np.tril(sums.curvature(1.0)))
    assert_array_equal(found[0], found[1])
    assert_allclose(found[0], found[2], atol=1e-9 * np.abs(found[2]).max())


def test_leading_features_are_the_first_columns():
    Z, y = made(CHUNK + 100, m=20)
    losses = svor_losses("svorim", 4, 1.0)
    one = np.ones(len(y), np.float32)
    forms = LeadingFeatures(CachedFeatures(Z), 7), CachedFeatures(Z[:, :7].copy())
    few, columns = (
        LocalSums(RowSums(form, y, one, losses, 1, np.float64)) for form in forms
    )
    w, b = np.linspace(-1, 1, 7), np.array([-1.0, 0.0, 1.0])
    points = [sums.at(w, b, 0.5) for sums in (few, columns)]
    assert_allclose(points[0].back, points[1].back, rtol=1e-10)
    H = [np.tril(sums.curvature(1.0)) for sums in (few, columns)]
    assert_allclose(H[0], H[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("asked", [0, 3, 10, 30])
def test_time_is_up_anywhere(up_after, asked):
    """In a sum as between two steps: what is returned is a bound nevertheless."""
    Z, y = made(3 * CHUNK, m=10)
    losses = svor_losses("svorim", 4, 1.0)
    least = fit(sums_of(Z, y, losses), 1e-6)
    up_after(asked)
    found = fit(sums_of(Z, y, losses), 1e-6)
    assert found.status is Status.MAX_TIME
    assert found.dual <= least.primal
    assert found.primal >= least.dual
    if np.isfinite(found.primal):
        primal = Dense(Z, y, losses, np.ones(len(y))).primal(found.w, found.b)
        assert_allclose(found.primal, primal, rtol=1e-9)


def test_samples_hold_every_rank():
    rng = np.random.default_rng(0)
    rank = np.sort(rng.choice(4, 10_000, p=[0.5, 0.3, 0.1999, 0.0001]))
    rank[-1] = 3
    rows = stratified(rank, 1000, rng)
    assert (np.diff(rows) > 0).all()
    assert (np.abs(np.bincount(rank[rows]) - np.bincount(rank) / 10) <= 1).all()
    assert sample_sizes(1000, 100) == [250]
    assert sample_sizes(10_000, 100) == [625, 2500]
