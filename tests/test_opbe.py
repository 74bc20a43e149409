"""OPBE against SVORIM of each of its problems, and its fusion against (F)."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import sample

from ordinal import fit_svorim, kernels
from ordinal.companions import fit_opbe

X, Y = sample(80, 4, noise=1.0)
KERNEL = kernels.RBF(0.3)


def three(y, k):
    """Return the targets before, here and after a rank."""
    return np.sign(y - k)


def objective(model, k, C, weight):
    """(P) of a problem from raw data."""
    f = model.decision_function(X)[:, k]
    K = KERNEL(model.support, model.support)
    value = 0.5 * model.coef[:, k] @ K @ model.coef[:, k]
    for b, above in zip(model.cuts[k], (Y >= k, Y > k), strict=True):
        if np.isfinite(b):
            loss = np.maximum(0, 1 - np.where(above, 1, -1) * (f - b))
            value += C * (weight * loss).sum()
    return value


@pytest.mark.parametrize("C", [0.1, 3.0])
def test_every_projection_is_the_svorim_of_its_problem(C):
    weight = 1 + np.arange(80) % 3 / 2
    options = {"C": C, "kernel": KERNEL, "sample_weight": weight, "tol": 1e-8}
    model = fit_opbe(X, Y, **options)
    F = model.decision_function(X)
    for k in range(4):
        alone = fit_svorim(X, three(Y, k), **options)
        part = model.convergence.parts[k]
        assert part.converged
        assert_allclose(F[:, k], alone.decision_function(X), atol=1e-5)
        assert_allclose(part.primal, objective(model, k, C, weight), rtol=1e-9)
        # each of the two values of (P) is above the optimum by no more than its gap
        slack = part.gap + alone.convergence.gap + 1e-9 * abs(part.primal)
        assert abs(part.primal - alone.convergence.primal) <= slack
        groups = np.isfinite(model.cuts[k]).sum()
        assert -1e-9 <= part.gap <= 0.5e-8 * C * groups * weight.sum() + 1e-9
        assert (np.diff(model.cuts[k][np.isfinite(model.cuts[k])]) >= -1e-7).all()
        assert objective(model, k, C, weight) >= alone.convergence.dual - 1e-9


def fused(F, cuts):
    """Compute (F) term by term for a row."""
    n, r = F.shape
    P = np.ones((n, r))
    for k in range(r):
        (b, c), z = cuts[k], F[:, k].copy()
        if np.isfinite(b) and np.isfinite(c) and c - b < 4:
            z, b, c = (v * 4 / (cuts[k, 1] - cuts[k, 0]) for v in (z, b, c))
        before = 1 / (1 + np.exp(z - b)) if k else np.zeros(n)
        after = 1 / (1 + np.exp(c - z)) if k < r - 1 else np.zeros(n)
        for j in range(r):
            if j < k:
                P[:, j] *= before / k
            elif j > k:
                P[:, j] *= after / (r - 1 - k)
            else:
                P[:, j] *= 1 - before - after
    return P / P.sum(axis=1, keepdims=True)


def test_probabilities_are_the_product_of_the_opinions():
    model = fit_opbe(X, Y, C=2.0)
    P = model.predict_proba(X)
    assert_allclose(P, fused(model.decision_function(X), model.cuts), atol=1e-9)
    assert_array_equal(model.predict(X), P.argmax(axis=1))
    widths = model.cuts[1:-1, 1] - model.cuts[1:-1, 0]
    wide = replace(model, cuts=model.cuts * (9 / widths.min()))
    P = fused(wide.decision_function(X), wide.cuts)
    assert_allclose(wide.predict_proba(X), P, atol=1e-9)


def test_thresholds_that_are_one_leave_no_room_for_here():
    model = fit_opbe(X, Y)
    cuts = model.cuts.copy()
    cuts[2] = cuts[2].mean()
    P = replace(model, cuts=cuts).predict_proba(X)
    assert np.isfinite(P).all()
    z = model.decision_function(X)[:, 2]
    assert (P[np.abs(z - cuts[2, 0]) > 1e-4, 2] < 1e-9).all()
