"""Cluster-robust standard errors of mixed models."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import slope
from strategies import raises

import ordinal
from ordinal._cumulative.design import Design, structure_of
from ordinal.mixed.elimination import RandomTerm
from ordinal.mixed.likelihood import MixedLikelihood
from ordinal.mixed.rows import RatioRows

N, CLUSTERS = 240, 6
TRIANGLE = np.tril(np.ones((2, 2), dtype=bool))
ONE = np.ones((1, 1), dtype=bool)


def structures():
    """Terms whose levels lie in single ones of six clusters, nodes, group weights."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, CLUSTERS, N)
    group = cluster * 4 + rng.integers(0, 4, N)
    nested = group * 3 + rng.integers(0, 3, N)
    crossed = cluster * 5 + rng.integers(0, 5, N)
    Z = np.column_stack([np.ones(N), rng.normal(size=N)])
    by_group = RandomTerm(group, 24, Z, TRIANGLE)
    single = RandomTerm(group, 24, Z[:, :1], ONE)
    return cluster, {
        "slope": ([by_group], 1, None),
        "weights": ([by_group], 1, np.linspace(0.5, 2, 24)),
        "5 nodes": ([single], 5, np.linspace(0.5, 2, 24)),
        "3 x 3 nodes": ([by_group], 3, None),
        "nested": ([RandomTerm(nested, 72, Z[:, :1], ONE), by_group], 1, None),
        "crossed": ([RandomTerm(crossed, 30, Z, TRIANGLE), single], 1, None),
    }


def design_of(threshold="flexible", scale=(2,)):
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(N, 4)), rng.uniform(0.2, 2, N)
    columns = (np.array(c, dtype=np.int64) for c in ([0, 1], [3], scale))
    return Design(
        X, *columns, rng.normal(size=N), rng.integers(0, 4, N).astype(np.int32), w,
        w.sum(), structure_of(threshold, 3), X.mean(axis=0), X.std(axis=0),
    )  # fmt: skip


@pytest.mark.slow("differences of six likelihoods")
@pytest.mark.parametrize(("name", "threshold", "family"), [
    *((name, "flexible", "cumulative") for name in structures()[1]),
    ("slope", "equidistant", "cumulative"),
    ("slope", "flexible", "stopping"),
    ("slope", "flexible", "adjacent"),
])  # fmt: skip
def test_scores_are_differences_of_the_likelihoods_of_clusters(name, threshold, family):
    cluster, kinds = structures()
    terms, nodes, weight = kinds[name]
    scale = [2] if family == "cumulative" else []
    rows_of = {} if scale else {"rows_of": partial(RatioRows, family)}
    design = design_of(threshold, scale)
    loss = MixedLikelihood(design, "logit", terms, nodes, 1, weight, **rows_of)
    theta = np.random.default_rng(2).uniform(0.3, 0.8, sum(t.free.sum() for t in terms))
    alpha = [-1, 0.2, 1.1] if threshold == "flexible" else [-1, 1.1]
    beta = [0.3, -0.2, *(0.1 for _ in scale)]
    x = np.concatenate([alpha, [0.05] * len(alpha), beta, theta])
    scores = loss.scores(x, cluster, CLUSTERS)
    assert_allclose(-scores.sum(axis=0), loss.value_and_gradient(x)[1], rtol=1e-9)
    for c in range(CLUSTERS):
        rows = np.flatnonzero(cluster == c)
        own = replace(
            design, X=design.X[rows], rank=design.rank[rows],
            weight=design.weight[rows], offset=design.offset[rows],
        )  # fmt: skip
        few = [replace(t, group=t.group[rows], Z=t.Z[rows]) for t in terms]
        part = MixedLikelihood(own, "logit", few, nodes, 1, weight, **rows_of)
        for way in np.random.default_rng(c).choice([-1.0, 1.0], (2, x.size)):
            found = -slope(
                lambda t, f=part, d=way: f.value_and_gradient(x + t * d)[0], 1e-3
            )
            assert abs(found - scores[c] @ way) < 1e-8 * np.abs(scores).max()


def grouped(seed=0, sd=1.0, n=600, groups=60):
    rng = np.random.default_rng(seed)
    group, X = np.arange(n) % groups, rng.normal(size=(n, 2))
    X[:, 1] = rng.normal(size=groups)[group]
    score = X @ [1.0, 0.5] + sd * rng.normal(size=groups)[group]
    return X, np.digitize(score + rng.logistic(size=n), [-1, 1]), group


def test_the_covariance_is_the_sandwich_of_the_clusters():
    X, y, group = grouped()
    school = group % 30
    plain = ordinal.fit_clmm(X, y, groups={"g": group})
    robust = ordinal.fit_clmm(X, y, groups={"g": group}, cluster=school)
    assert robust.statistics.covariance_type == "cluster"
    assert "cluster (sandwich)" in robust.summary()
    assert np.array_equal(plain.parameters, robust.parameters)
    fit = plain._remembered
    s = fit.loss.scores(fit.x, school, 30) @ fit.covariance
    V = fit.raw @ (s.T @ s) @ fit.raw.T * 30 / 29
    assert_allclose(robust.joint_covariance, V, rtol=1e-9)
    assert_allclose(robust.covariance, V[:4, :4], rtol=1e-9)
    # errors of averages and deviations follow
    tables = [m.predictions(X[:3])["standard_error"] for m in (plain, robust)]
    assert not np.allclose(*tables, rtol=1e-3)
    raises(ValueError, "without cluster", robust.confint_deviations)
    raises(ValueError, "without cluster", robust.confint, method="profile")


def test_clusters_contain_whole_groups():
    X, y, group = grouped()
    one, two = {"g": group}, {"g": group, "h": np.arange(600) // 100}
    for groups, cluster, message in (
        (two, group, "the rows of h '0' lie in several clusters"),
        (one, np.arange(600), "the rows of g '0' lie in several"),
        (one, group[1:], "cluster has shape"),
        (one, np.zeros(600), "cluster must hold 2 groups"),
        (one, np.full(600, 1j), "cluster must hold numbers or strings"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ordinal.fit_clmm(X, y, groups=groups, cluster=cluster)
