"""Starts of the points of a path: feasible, and no worse than the last ended."""

import numpy as np
import pytest
from internals import Gram, Monitor, Points, Problem, least_rows, path_of, solve
from numpy.testing import assert_allclose, assert_array_equal
from strategies import sample

import ordinal
from ordinal import kernels
from ordinal._quadratic.program import extrapolated, nearest_feasible
from ordinal.svor.family import Svor

METHODS = "svorim", "svorex", "shashua_levin", "redsvm"


def value(program, g, K):
    """(Q) of each problem, a term for each of its three sums."""
    beta = g.sum(axis=1)
    out = 0.5 * np.einsum("pi,ij,pj->p", beta, K, beta)
    out += np.where(g > 0, program.pp * g, program.pn * g).sum(axis=(1, 2))
    if program.price is not None:
        out += 0.5 * (g.sum(axis=2) ** 2 / program.price).sum(axis=1)
    return out


def solved(method, C):
    X, y = sample(90, 4, noise=1.0)
    y = np.where((y == 2) & (np.arange(90) % 4 > 0), 3, y)  # few: thresholds meet
    weight = 1 + np.arange(90) % 3 / 2
    problem = Problem.from_arrays(X, y, sample_weight=weight)
    programs = [Svor(method).programs(c, problem)[0] for c in C]
    gram = Gram(kernels.RBF(0.3), X, 1.0, 1, least_rows(3))
    s = solve(
        gram, programs[0], np.zeros_like(programs[0].lo), tol=1e-6, max_iter=10**6,
        n_threads=1, monitor=Monitor("test", 1e-6),
    )  # fmt: skip
    return programs, gram, s, kernels.RBF(0.3)(X, X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [(0.1, 0.3), (1.0, 30.0), (3.0, 0.2)])
def test_starts_are_feasible_and_lie_below(method, C):
    (old, new), gram, s, K = solved(method, C)
    start = nearest_feasible(extrapolated(s.g, s.f, old, new), new)
    assert ((new.lo <= start) & (start <= new.hi)).all()
    points = Points(gram, new, start)
    assert_allclose(points.g.sum(axis=2) + points.z, np.diff(-points.mu), atol=1e-9)
    # as far along the ray as each box allows, or to the top, whichever is nearer
    ratio = C[1] / C[0]
    kept = nearest_feasible(min(ratio, 1.0) * s.g, new)
    assert value(new, start, K) <= value(new, kept, K) + 1e-9
    if ratio > 1:
        steps = np.linspace(1, ratio, 50)
        along = [value(new, t * s.g, K)[0] for t in steps]
        if new.price is None:  # whose square the parabola leaves out
            assert value(new, start, K)[0] <= min(along) + 1e-9 * abs(min(along))


@pytest.mark.parametrize("method", METHODS)
def test_any_point_has_a_feasible_one_near_it(method):
    (program, _), gram, s, _ = solved(method, (1.0, 3.0))
    moved = s.g + np.random.default_rng(0).normal(size=s.g.shape, scale=0.01)
    start = nearest_feasible(moved, program)
    assert ((program.lo <= start) & (start <= program.hi)).all()
    assert np.abs(start - s.g).max() < 0.2
    points = Points(gram, program, start)
    assert_allclose(points.g.sum(axis=2) + points.z, np.diff(-points.mu), atol=1e-9)
    (program, _), _, s, _ = solved(method, (1.0, 3.0))
    assert s.mu.any() == (method == "svorex")
    assert_allclose(nearest_feasible(s.g, program), s.g, atol=1e-12)
    assert_array_equal(nearest_feasible(s.g, program) == program.hi, s.g == program.hi)


@pytest.mark.parametrize(
    ("fit", "name", "values", "other"),
    [
        (ordinal.companions.fit_svr, "epsilon", (0.1, 0.4), {"C": 3.0}),
        (ordinal.companions.fit_kdlor, "ridge", (1e-3, 1e-1), {"C": 3.0}),
        (ordinal.companions.fit_ofmhs, "pair_ratio", (1.0, 2.0), {"l1": 0.05}),
        (ordinal.fit_pom, "l2", (0.1, 0.3), {"l1": 0.05}),
        (ordinal.fit_boosting, "n_rounds", (5, 9), {"n_leaves": 4}),
    ],
)
def test_a_point_has_the_argument_of_the_fit_where_it_names_none(
    fit, name, values, other
):
    X, y = sample(60, 3, noise=1.0)
    own, given = values
    points = [{}, {name: given}]
    models, _ = path_of(fit).fit(X, y, points, None, None, **{name: own}, **other)
    full = [{name: own}, {name: given}]
    for model, point in zip(models, full, strict=True):
        alone = fit(X, y, **point, **other)
        kept, of_alone = (getattr(m, "statistics", m) for m in (model, alone))
        assert getattr(kept, name) == getattr(of_alone, name) == point[name]
        if (C := other.get("C")) is not None:
            assert model.C == C
        assert_allclose(
            model.convergence.primal, alone.convergence.primal, rtol=1e-3, atol=1e-6
        )
