"""Support vector machines for ranks: certificates, oracles, LIBSVM, votes, partitions,
weights by distance, cuts, links, paths and bases."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import CumulativeLink, falling
from numpy.testing import assert_allclose, assert_array_equal
from oracles import kernel_matrix, qp_gap, qp_rounding, qp_slopes, qp_value
from sklearn.isotonic import isotonic_regression
from sklearn.svm import SVC
from strategies import cases, cost_matrices, raises, sample, slow

from ordinal._model.links import PartitionLink
from ordinal.companions import fit_cssvc, fit_svc, fit_svmop, fit_svr
from ordinal.kernels.tiles import diagonal_of
from ordinal.svm.family import cheapest_thresholds

PAIRS, ALL = "one_vs_one", "one_vs_all"
KINDS = {
    "pairs": (fit_svc, {"decomposition": PAIRS}),
    "all": (fit_svc, {"decomposition": ALL}),
    "cssvc": (fit_cssvc, {}),
    "svmop": (fit_svmop, {}),
    "svr": (fit_svr, {"epsilon": 0.1}),
    "wide svr": (fit_svr, {"epsilon": 0.7, "thresholds": "fitted"}),
}
some_kinds = pytest.mark.parametrize("kind", ["pairs", *slow("svmop", "wide svr")])


def problems_of(kind, ranks):
    """(side of every rank, nearest rank of the other side of every rank, whether that
    side is weighed by a distance) of each problem, by the definitions."""
    if kind == "pairs":
        for a, b in itertools.combinations(ranks, 2):
            yield {a: -1, b: 1}, {}
    elif kind in ("all", "cssvc"):
        for k in ranks:
            side = {j: 1 if j == k else -1 for j in ranks}
            yield side, {j: k for j in ranks if j != k} if kind == "cssvc" else {}
    else:
        for k, following in itertools.pairwise(ranks):
            side = {j: 1 if j > k else -1 for j in ranks}
            yield side, {j: k if j > k else following for j in ranks}


def boxes(kind, case, epsilon=0.1):
    """(lo, hi, pn, pp) of the rows in each problem, row by row."""
    y, v, C = case.y, case.weight, case.C
    ranks = sorted({j for j, w in zip(y, v, strict=True) if w > 0})
    if "svr" in kind:
        yield -C * v, C * v, -y - epsilon, epsilon - y
        return
    for side, other in problems_of(kind, ranks):
        s = np.array([side.get(k, 0) for k in y], float)
        c = np.ones(y.size)
        cost = distances(case.r) if case.cost is None else case.cost
        for one in (-1, 1):
            rows = [i for i in range(y.size) if s[i] == one and y[i] in other]
            far = {
                i: (cost[y[i], other[y[i]]] + cost[other[y[i]], y[i]]) / 2 for i in rows
            }
            total = sum(v[i] * far[i] for i in rows)
            for i in rows:
                c[i] = far[i] * sum(v[rows]) / total
        kept = (v * c)[s != 0].sum()
        for i in np.flatnonzero(s):
            place = ranks.index(y[i])
            beside = ranks[max(place - 1, 0) : place] + ranks[place + 1 : place + 2]
            to = [other[y[i]]] if y[i] in other else beside
            if other:
                pairs = [(cost[y[i], k], cost[k, y[i]]) for k in to]
                c[i] *= np.mean([2 * there / (there + back) for there, back in pairs])
        c *= kept / (v * c)[s != 0].sum()
        ends = C * v * c * s
        yield np.minimum(ends, 0), np.maximum(ends, 0), -s, -s


def fitted(kind, case, **options):
    """A fit whose dual point can be read from the model: (model, K, g)."""
    fit, own = KINDS[kind]
    K = kernel_matrix(case.kernel, case.X, case.X)
    largest = diagonal_of(case.kernel, case.X).max()
    width = max((hi - lo).max() for lo, hi, *_ in boxes(kind, case))
    takes_none = fit is fit_svc or kind == "svr"  # rounded thresholds
    model = fit(
        K, case.y, kernel="precomputed", C=case.C, classes=range(case.r),
        sample_weight=case.weight, n_threads=1,
        tol=float(np.clip(1e-7 * width * largest, 1e-6, 1e-3)),
        **{**own, **({} if takes_none else {"cost": case.cost}), **options},
    )  # fmt: skip
    g = np.zeros((np.size(model.intercept), case.y.size))
    g[:, model.support] = model.coef.T
    return model, K, g


@given(kind=st.sampled_from(list(KINDS)), case=cases())
def test_every_problem_has_its_certificate(kind, case):
    model, K, g = fitted(kind, case)
    c = model.convergence
    assert c.converged
    epsilon = KINDS[kind][1].get("epsilon", 0.1)
    b = np.atleast_1d(model.intercept)
    parts = c.parts or (c,)
    every = list(boxes(kind, case, epsilon))
    for p, (lo, hi, pn, pp) in enumerate(every):
        rounding = qp_rounding(K, g[p], hi - lo)
        f_rounding = 1e-13 * (1 + (np.abs(K) @ np.abs(g[p])).max())
        slack = 1e-12 * (hi - lo).max()  # of weights that are scaled
        assert np.all((lo - slack <= g[p]) & (g[p] <= hi + slack))
        assert abs(g[p].sum()) <= 1e-13 * g[p].size * (1 + hi.max())
        g[p] = np.clip(g[p], lo, hi)
        at = [np.isclose(g[p], end, rtol=1e-12, atol=0) for end in (lo, hi)]
        snapped = np.where(at[0], lo, np.where(at[1], hi, g[p]))
        R_min, L_max = qp_slopes(K, snapped, lo, hi, pn, pp)
        assert L_max - R_min <= c.tol + f_rounding
        # rounding of scaled weights may leave a row inside its box, which narrows this
        between = min(R_min, L_max) - c.tol, max(R_min, L_max) + c.tol
        assert between[0] - f_rounding <= -b[p] <= between[1] + f_rounding
        gap = qp_gap(K, g[p], b[p], lo, hi, pn, pp)
        assert_allclose(parts[p].gap, gap, atol=rounding)
        assert gap <= max(parts[p].violation, 0) / 2 * (hi - lo).sum() + rounding
        assert_allclose(parts[p].dual, -qp_value(K, g[p], pn, pp), atol=rounding)
    assert len(every) == len(parts)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.5, 30.0])
def test_pairs_are_those_of_libsvm(C, weighted):
    X, y = sample(120, 4, seed=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 120) if weighted else None
    model = fit_svc(X, y, C=C, gamma=0.5, tol=1e-6, sample_weight=weight)
    theirs = SVC(C=C, gamma=0.5, tol=1e-6, decision_function_shape="ovo")
    f = model.decision_function(X)
    assert_allclose(
        f, -theirs.fit(X, y, sample_weight=weight).decision_function(X), atol=1e-4
    )
    votes = np.floor(model.rank_values(f) + 0.5)  # the sum adds a third at most
    clear = np.sort(votes, axis=1)[:, -2] < votes.max(axis=1)
    assert clear.mean() > 0.9
    assert_array_equal(model.predict(X)[clear], theirs.predict(X)[clear])


def distances(q):
    return np.abs(np.subtract.outer(np.arange(q), np.arange(q, dtype=float)))


tied = st.sampled_from([-100.0, -1.0, -0.5, 0.0, 0.5, 1.0, 100.0])


@st.composite
def values_of(draw, count):
    """Values of the hyperplanes of 3 or 4 ranks, `count` of q; small and often tied."""
    q = draw(st.integers(2, 4))
    n = draw(st.integers(1, 6))
    return q, draw(hnp.arrays(np.float64, (n, count(q)), elements=tied))


def model_of(q, f, **options):
    """A model of q ranks among 2 q, whose values do not matter."""
    X, y = sample(30, q)
    return fit_svc(X, 2 * y + 1, classes=range(2 * q), **options)


@given(values_of(lambda q: q * (q - 1) // 2))
def test_votes_are_tied_by_the_sum_and_then_the_lower_rank(drawn):
    q, f = drawn
    model = model_of(q, f)
    for row, rank in zip(f, model.rank_values(f).argmax(axis=1), strict=True):
        votes, total = [0] * q, [0.0] * q
        for value, (a, b) in zip(row, itertools.combinations(range(q), 2), strict=True):
            votes[b] += value > 0
            votes[a] += value < 0
            total[b] += value
            total[a] -= value
        assert rank == 2 * max(range(q), key=lambda k: (votes[k], total[k], -k)) + 1


@pytest.mark.parametrize(("f", "message"), [
    (np.zeros(3), r"^f has shape \(3,\), expected \(n, 3\)"),
    (np.zeros((2, 2)), r"^f has shape \(2, 2\), expected \(n, 3\)"),
    ([[0, np.nan, 0]], "^f must be finite"),
    ([["a", "b", "c"]], "^f must hold real numbers"),
])  # fmt: skip
def test_values_that_are_no_values_are_refused(f, message):
    raises((TypeError, ValueError), message, model_of(3, None).rank_values, f)


@given(values_of(lambda q: q))
def test_one_against_the_others_takes_the_largest_and_the_lower(drawn):
    q, f = drawn
    model = model_of(q, f, decomposition=ALL)
    assert_array_equal(model.rank_values(f).argmax(axis=1), 2 * f.argmax(axis=1) + 1)


@given(values_of(lambda q: q - 1))
def test_partitions_count_the_positive_values_of_the_isotonic_regression(drawn):
    q, f = drawn
    X, y = sample(30, q)
    model = fit_svmop(X, 2 * y + 1, classes=range(2 * q))
    pooled = np.array([isotonic_regression(row, increasing=False) for row in f])
    beyond = (pooled > 1e-12).sum(axis=1)
    assert_array_equal(model.rank_values(f).argmax(axis=1), 2 * beyond + 1)


def test_a_link_of_partitions_is_one_of_each_and_falls():
    rng = np.random.default_rng(0)
    rank = rng.integers(0, 4, 300)
    f = rank[:, None] - np.arange(3) - 0.5 + rng.normal(size=(300, 3))
    weight = rng.uniform(0.5, 2, 300)
    link = PartitionLink.fit(f, 2 * rank + 1, weight, 9)  # of ranks 1, 3, 5 and 7
    P = link(f)
    assert P.shape == (300, 4)
    assert P.min() >= 0
    assert_allclose(P.sum(axis=1), 1, rtol=1e-13)
    above = 1 - np.cumsum(P, axis=1)[:, :-1]
    alone = np.stack(
        [CumulativeLink.fit(f[:, k], (rank > k).astype(int), weight, 2)(f[:, k])[:, 1]
         for k in range(3)], axis=1,
    )  # fmt: skip
    falls = (np.diff(alone, axis=1) <= 0).all(axis=1)
    assert 0.5 < falls.mean() < 1
    assert_allclose(above[falls], alone[falls], atol=1e-12)
    assert_allclose(above, falling(alone), atol=1e-12)


@st.composite
def scored(draw):
    n, q = draw(st.integers(2, 7)), draw(st.integers(2, 4))
    f = draw(hnp.arrays(np.float64, n, elements=st.floats(-3, 3, width=16)))
    rank = np.array(draw(st.lists(st.integers(0, q - 1), min_size=n, max_size=n)))
    weight = draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0, 1, 0.3, 2])))
    weight[0] = 1.0
    cost = draw(st.none() | cost_matrices(q))
    cost = distances(q) if cost is None else cost
    return f, rank, weight, cost


def cost_at(cuts, f, rank, weight, cost):
    predicted = np.array([sum(value >= cut for cut in cuts) for value in f])
    return (weight * cost[rank, predicted]).sum()


@given(scored())
def test_no_other_cuts_cost_less(drawn):
    f, rank, weight, cost = drawn
    cuts = cheapest_thresholds(f, rank, weight, cost)
    assert cuts.shape == (len(cost) - 1,)
    assert np.isfinite(cuts).all()
    assert (np.diff(cuts) >= 0).all()
    places = [*np.unique(f), np.inf]
    least = min(
        cost_at(some, f, rank, weight, cost)
        for some in itertools.combinations_with_replacement(places, len(cost) - 1)
    )
    assert_allclose(cost_at(cuts, f, rank, weight, cost), least, atol=1e-12)


def test_cuts_lie_in_the_middle_and_half_a_unit_beyond():
    cost = distances(4)
    f, ones = np.array([0.0, 1.0, 3.0, 7.0]), np.ones(4)
    cuts = cheapest_thresholds(f, np.array([0, 0, 1, 2]), ones, cost)
    assert_array_equal(cuts, [2.0, 5.0, 7.5])
    assert_array_equal(cheapest_thresholds(f, np.full(4, 3), ones, cost), [-0.5] * 3)
    # two rows in the wrong order: one of them is wrong beyond all scores on either side
    assert_array_equal(
        cheapest_thresholds(f[:2], np.array([1, 0]), ones[:2], cost[:2, :2]), -0.5
    )
    near = np.array([1.0, np.nextafter(1.0, 2)])
    found = cheapest_thresholds(near, np.array([0, 1]), np.ones(2), cost[:2, :2])
    assert_array_equal(found, near[1:])


@pytest.mark.parametrize("options", [{}, {"basis": 20}])
def test_fitted_thresholds_err_least_in_the_training_rows(options):
    X, y = sample(150, 5, noise=1.5)
    weight = 1.0 + np.arange(150) % 3
    given = {"C": 0.5, "sample_weight": weight, **options}
    rounded = fit_svr(X, y, **given)
    model = fit_svr(X, y, thresholds="fitted", **given)
    assert (model.fitted, rounded.fitted) == (True, False)
    f = model.decision_function(X)
    assert_array_equal(f, rounded.decision_function(X))
    errors = [np.abs(m.predict(X) - y) @ weight for m in (model, rounded)]
    assert errors[0] < errors[1]
    distance = distances(5)
    cuts = cheapest_thresholds(f, y, weight, distance)
    assert_allclose(model.thresholds, cuts, atol=1e-9)
    dear = 9 * np.triu(distance) + np.tril(distance)
    model = fit_svr(X, y, thresholds="fitted", cost=dear, **given)
    assert model.predict(X).mean() < rounded.predict(X).mean()


@some_kinds
def test_a_linear_kernel_of_many_rows_is_solved_by_columns(kind):
    X, y = sample(2000, 3)
    fit, options = KINDS[kind]
    model = fit(X, y, kernel="linear", tol=1e-5, C=0.01, **options)
    assert_array_equal(model.support, np.eye(3))
    whole = fit(X @ X.T, y, kernel="precomputed", tol=1e-4, C=0.01, **options)
    w = X[whole.support].T @ whole.coef
    a, b = model.convergence, whole.convergence
    parts = zip(a.parts or (a,), b.parts or (b,), strict=True)
    for k, (a, b) in enumerate(parts):
        # (P) is strongly convex in w, and both are within their gap of its optimum
        away = model.coef.reshape(3, -1)[:, k] - w.reshape(3, -1)[:, k]
        assert 0.5 * away @ away <= (np.sqrt(a.gap) + np.sqrt(b.gap)) ** 2
        assert -b.gap <= a.primal - b.primal <= a.gap


def test_a_link_that_is_not_of_the_model_is_refused(tmp_path):
    X, y = sample(60, 3)
    votes, parts = (f(X, y, probability=True) for f in (fit_svc, fit_svmop))
    for model, link in ((votes, parts.link), (parts, votes.link)):
        with pytest.raises(ValueError, match="the link must be one of"):
            replace(model, link=link).save(tmp_path / "m")
    with pytest.raises(ValueError, match="hyperplanes of 3 ranks"):
        replace(votes, decomposition="ordered", link=None).save(tmp_path / "m")
