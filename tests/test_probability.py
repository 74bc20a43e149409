"""Probabilities: links against their formulas, rules by brute force, honest folds."""

import functools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import CumulativeLink, Problem, fold_shares
from numpy.testing import assert_allclose, assert_array_equal
from oracles import slopes
from scipy import optimize, sparse
from strategies import cost_matrices, raises, sample, slow

from ordinal import fit_npsvor, fit_svorex, fit_svorim, fit_tlssvor, kernels
from ordinal._model.folds import N_FOLDS, out_of_fold
from ordinal._model.links import SoftmaxLink
from ordinal._model.threshold_model import decide
from ordinal._numerics.rows import content_hash
from ordinal.companions import fit_redsvm, fit_shashua_levin


class Scored(NamedTuple):
    """Rows with a score, or with a distance to every rank."""

    score: np.ndarray
    rank: np.ndarray
    weight: np.ndarray
    r: int

    def fit(self, link):
        return link.fit(*self)

    @property
    def present(self):
        return np.flatnonzero(np.bincount(self.rank, self.weight, self.r) > 0)


@st.composite
def scored(draw, distances=False):
    """Scores that tell much, little or the contrary; ranks and rows may be absent."""
    n, r = draw(st.integers(4, 40)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rank = rng.choice(draw(st.lists(st.integers(0, r - 1), min_size=2, unique=True)), n)
    slope = draw(st.sampled_from([-1.0, 0.0, 0.3, 3.0, 100.0]))
    score = slope * rank + rng.normal(size=n)
    if distances:
        score = np.abs(slope * (rank[:, None] - np.arange(r)) + rng.normal(size=(n, r)))
    if draw(st.booleans()):
        score = score.round()  # ties
    score = score * draw(st.sampled_from([1e-4, 1.0, 1e5]))
    weights = st.sampled_from([0.0, 0.3, 1.0, 2.0])
    weight = rng.choice(draw(st.lists(weights, min_size=1)), n)
    case = Scored(score, rank, weight, r)
    assume(case.present.size >= 2)
    shown = score[weight > 0]
    assume(np.ptp(shown[:, case.present] if distances else shown) > 0)
    return case


@st.composite
def cumulative_links(draw):
    """(link, ranks with probability): offsets that may be near, infinite or equal."""
    steps = draw(st.lists(st.sampled_from([1e-6, 0.1, 1.0, 30.0]), max_size=4))
    inner = draw(st.floats(-9, 9)) + np.cumsum([0.0, *steps])
    below, above = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    twice = draw(st.integers(0, inner.size - 1))  # no rank between these two
    inner = np.insert(inner, twice, inner[twice])
    offsets = np.concatenate([[-np.inf] * below, inner, [np.inf] * above])
    has = np.ones(offsets.size + 1, bool)
    has[:below], has[has.size - above :], has[below + twice + 1] = False, False, False
    return CumulativeLink(draw(st.sampled_from([0.0, 1e-3, 1.0, 7.0])), offsets), has


far = st.floats(-1e6, 1e6)


@given(cumulative_links(), st.lists(far, min_size=1, max_size=9))
def test_cumulative_probabilities_keep_their_digits_in_both_tails(case, scores):
    link, has = case
    scores = np.array(scores)
    P = link(scores)
    assert np.all(P >= 0)
    assert_allclose(P.sum(axis=1), 1, atol=4e-16 * P.shape[1])
    assert_array_equal(P[:, ~has], 0)
    z = np.unique(link.offsets[np.isfinite(link.offsets)])
    z = z - link.slope * scores[:, None]
    low, high = np.full(scores.shape, -np.inf), np.full(scores.shape, np.inf)
    z = np.column_stack([low, z, high])
    a, b = z[:, :-1], z[:, 1:]
    # s(b) - s(a) = s(b) s(-a) (1 - exp(a - b)), of which no factor cancels
    with np.errstate(over="ignore"):
        log_P = -np.logaddexp(0, -b) - np.logaddexp(0, a) + np.log(-np.expm1(a - b))
    # z rounds at its size, and a difference of neighbours at theirs
    ends = np.abs(np.where(np.isfinite(z), z, 0)).max(axis=1, keepdims=True)
    rtol = 1e-15 * (2 + ends) / -np.expm1(a - b)
    P, exact = P[:, has], np.exp(log_P)
    assert np.all(np.abs(P - exact) <= rtol * exact + 1e-300)


@given(
    hnp.arrays(np.float64, (6, 4), elements=st.floats(0, 1e6)),
    st.lists(st.floats(-9, 9) | st.just(-np.inf), min_size=4, max_size=4),
    st.sampled_from([0.0, 1e-3, 2.0]),
)
def test_softmax_probabilities_are_those_of_the_formula(distance, offsets, slope):
    offsets = np.array(offsets)
    has = np.isfinite(offsets)
    assume(has.any())
    distance[:, ~has] = np.inf  # of a rank that has no hyperplane
    P = SoftmaxLink(slope, offsets)(distance)
    assert np.all(P >= 0)
    assert_allclose(P.sum(axis=1), 1, atol=4e-16 * P.shape[1])
    assert_array_equal(P[:, ~has], 0)
    for row, d in zip(P[:, has], distance[:, has], strict=True):
        z = offsets[has] - slope * d
        exact = np.exp(z - np.logaddexp.reduce(z))
        # exp of a sum that rounds at the size of its terms
        rtol = 1e-15 * (9 + np.abs(z).max())
        assert np.all(np.abs(row - exact) <= rtol * exact + 1e-300)


def targets(case):
    """Platt's for the events y <= j of the present ranks but the last: [row][j]."""
    out = []
    for k in case.rank:
        row = []
        for j in case.present[:-1]:
            n_in = sum(w for l, w in zip(case.rank, case.weight, strict=True) if l <= j)
            n_out = sum(w for l, w in zip(case.rank, case.weight, strict=True) if l > j)
            row.append((n_in + 1) / (n_in + 2) if k <= j else 1 / (n_out + 2))
        out.append(row)
    return np.array(out)


def cumulative_loss(case, wanted, slope, offsets):
    """The sum of the log losses of these events; offsets are those between ranks."""
    total = 0.0
    for s, w, row in zip(case.score, case.weight, wanted, strict=True):
        for t, offset in zip(row, offsets, strict=True):
            z = offset - slope * s
            total += w * (t * np.logaddexp(0, -z) + (1 - t) * np.logaddexp(0, z))
    return total


def softmax_targets(case):
    """(N + 1) / (N + 2) for the row's own rank and the rest for its neighbours."""
    out, count = [], np.bincount(case.rank, case.weight, case.r)
    for k in np.searchsorted(case.present, case.rank):
        N, q = count[case.present[k]], case.present.size
        row = np.zeros(q)
        row[k] = (N + 1) / (N + 2)
        beside = [l for l in (k - 1, k + 1) if 0 <= l < q]
        row[beside] = 1 / (N + 2) / len(beside)
        out.append(row)
    return np.array(out)


def softmax_loss(case, wanted, slope, offsets):
    """Cross entropy of the present ranks."""
    total = 0.0
    for d, w, row in zip(case.score[:, case.present], case.weight, wanted, strict=True):
        z = offsets - slope * d
        total += w * (row @ (np.logaddexp.reduce(z) - z))
    return total


class Objective:
    """A link's loss by its parameters in the unit of the scores' deviation."""

    def __init__(self, case, softmax=False):
        self.case = case
        self.loss = softmax_loss if softmax else cumulative_loss
        self.targets = (softmax_targets if softmax else targets)(case)
        shown = case.score[case.weight > 0]
        if softmax:
            shown = shown[:, case.present]
        self.mean, self.sd = shown.mean(), shown.std()
        self.softmax = softmax
        self.n_offsets = case.present.size - (not softmax)
        W = case.weight.sum()
        # second derivatives: a variance of [0, 1] or of the row's scores in units of sd
        self.curvature = np.full(1 + self.n_offsets, W / 4)
        if softmax:
            spread = np.ptp(case.score[:, case.present], axis=1) / self.sd
            self.curvature[0] = case.weight @ spread**2 / 4
            self.curvature[1:] += W / self.n_offsets  # the fit pins the sum of offsets
        else:
            x = (case.score - self.mean) / self.sd
            self.curvature[0] = case.weight @ x**2 / 4 * self.n_offsets

    def parameters(self, link):
        if self.softmax:
            return np.array([link.slope * self.sd, *link.offsets[self.case.present]])
        offsets = link.offsets[self.case.present[:-1]] - link.slope * self.mean
        return np.array([link.slope * self.sd, *offsets])

    def __call__(self, p):
        slope = p[0] / self.sd
        offsets = p[1:] + (0 if self.softmax else slope * self.mean)
        return self.loss(self.case, self.targets, slope, offsets)

    def gradient(self, p):
        return slopes(self, p, 1e-3)

    def slack(self, p):
        """Bound the gradient where Newton's decrement is 1e-12 of the loss, as it
        ends."""
        size = 1 + abs(self(p))
        return np.sqrt(1e-12 * size * self.curvature) + 1e-12 * size + 1e-9


kinds = pytest.mark.parametrize("softmax", [False, True])
LINKS = {False: CumulativeLink, True: SoftmaxLink}


@kinds
@given(data=st.data())
def test_a_link_minimises_its_loss(softmax, data):
    case = data.draw(scored(softmax))
    link = case.fit(LINKS[softmax])
    objective = Objective(case, softmax)
    p = objective.parameters(link)
    assert link.slope >= 0
    N = np.bincount(case.rank, case.weight, case.r)[case.present]
    if link.slope > 0:
        assert np.all(np.abs(objective.gradient(p)) <= objective.slack(p))
    else:  # the shares, and a slope below 0 would have been better
        if softmax:
            P, shares = link(case.score)[:, case.present], (N + 1) / (N + 1).sum()
        else:
            P = np.cumsum(link(case.score), axis=1)[:, case.present[:-1]]
            shares = (np.cumsum(N)[:-1] + 1) / (N.sum() + 2)
        assert_allclose(P, np.broadcast_to(shares, P.shape), rtol=1e-14)

        def profile(offsets):
            return objective(np.array([0.0, *offsets]))

        best = optimize.minimize(profile, p[1:], method="BFGS", options={"gtol": 1e-7})
        p = np.array([0.0, *best.x])
        slope = objective.gradient(p)[0]
        # its offsets are as good as BFGS makes them
        assert slope >= -objective.slack(p)[0] - 1e-5 * (1 + case.weight.sum())


@kinds
@pytest.mark.parametrize("value", [0.0, 0.1, -7.0])
def test_a_constant_score_is_not_used(softmax, value):
    """Nor are scores that it did not meet: nothing is known of them."""
    rank = np.array([0, 0, 1, 2, 2, 2])
    score = np.full((6, 3) if softmax else 6, value)
    link = LINKS[softmax].fit(score, rank, np.ones(6), 3)
    other = np.random.default_rng(0).normal(size=score.shape)
    assert link.slope == 0
    assert_array_equal(link(other), link(score))


@st.composite
def probabilities(draw):
    """(n, r) multiples of 1/64, which add up without rounding and often tie."""
    r = draw(st.integers(2, 5))
    cuts = hnp.arrays(np.int64, (7, r - 1), elements=st.integers(0, 64))
    return np.diff(np.sort(draw(cuts), axis=1), axis=1, prepend=0, append=64) / 64


@given(probabilities(), st.data())
def test_rules_by_brute_force(P, data):
    r = P.shape[1]
    cost = np.round(data.draw(cost_matrices(r)) * 8)
    for row, mode, median, cheapest in zip(
        P, decide(P, "mode"), decide(P, "median"), decide(P, "cost", cost), strict=True
    ):
        assert mode == min(k for k in range(r) if row[k] == max(row))
        assert median == min(k for k in range(r) if sum(row[: k + 1]) >= 0.5)
        expected = [sum(row[j] * cost[j, k] for j in range(r)) for k in range(r)]
        assert cheapest == min(k for k in range(r) if expected[k] == min(expected))


def shares(problem, seed=0, kernel=None):
    return fold_shares(problem, np.random.default_rng(seed), kernel)


def numbers(share):
    """The fold of each row, where none is in two; -1 for rows that none scores."""
    assert set(np.unique(share)) <= {0.0, 1.0}
    return np.where(share.any(axis=1), share.argmax(axis=1), -1)


@st.composite
def heaps(draw):
    """(features, ranks, weights) of rows that are alike by chance."""
    n = draw(st.integers(3, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.integers(-1, 3, (n, 2)) * 0.5
    y = np.append([0, 1, 1], rng.integers(0, 3, n - 3))
    among = st.sampled_from([[1.0], [1.0, 2.0, 3.0], [0.0, 0.3, 1.0, 7.5], [40.0, 90]])
    weight = rng.choice(draw(among), n)
    assume(np.unique(y[weight > 0]).size >= 2)
    return X, y, weight


def heaped(X, y, weight, seed=0):
    """The weight of every (features, rank) that each fold scores; None if none can."""
    problem = Problem.from_arrays(X, y, classes=range(3), sample_weight=weight)
    try:
        share = shares(problem, seed)
    except ValueError:
        return None
    found = {}
    for row, rank, scored in zip(X, y, share * problem.weight[:, None], strict=True):
        key = (*(row + 0.0), rank)
        found[key] = found.get(key, 0) + scored
    return {key: value for key, value in found.items() if value.any()}


def assert_same_heaps(a, b, scale=1.0):
    assert (a is None) is (b is None)
    if a is not None:
        assert a.keys() == b.keys()
        for key in a:
            assert_allclose(scale * a[key], b[key], rtol=1e-9, atol=1e-9)


@given(heaps(), st.integers(0, 9), st.randoms(use_true_random=False))
def test_folds_know_rows_by_what_they_hold(case, seed, random):
    """Their order, form, how a weight is written, units, and rows of weight 0 are
    nothing."""
    X, y, weight = case
    known = heaped(X, y, weight, seed)
    csr = Problem.from_arrays(sparse.csr_matrix(X), y, sample_weight=weight)
    assert_array_equal(content_hash(csr.X), content_hash(X))
    if known is not None:
        dense = Problem.from_arrays(X, y, sample_weight=weight)
        assert_array_equal(shares(csr, seed), shares(dense, seed))
        moved = X * [0.3, 1000.0] + [7.1, -2.0]
        other = Problem.from_arrays(moved, y, sample_weight=weight)
        assert_array_equal(shares(other, seed), shares(dense, seed))
    order = np.array(random.sample(range(len(y)), len(y)))
    assert_same_heaps(known, heaped(X[order], y[order], weight[order], seed))
    parts = np.array([random.choice([1, 2, 3]) for _ in y])
    repeated = [np.repeat(a, parts, axis=0) for a in (X, y, weight / parts)]
    assert_same_heaps(known, heaped(*repeated, seed))
    more = np.append(X, X[:1] - 1e305, axis=0), np.append(y, 2), np.append(weight, 0.0)
    assert_same_heaps(known, heaped(*more, seed))
    assert_same_heaps(known, heaped(np.where(X == 0, -0.0, X), y, weight, seed))


@given(heaps())
def test_every_unit_of_weight_is_scored_once(case):
    X, y, weight = case
    if (found := heaped(*case)) is None:
        return
    rows = {}
    for row, rank, w in zip(X, y, weight, strict=True):
        rows[(*row, rank)] = rows.get((*row, rank), 0) + w
    units = {}
    for k in range(3):
        heaps = {key: w for key, w in rows.items() if key[2] == k and w > 0}
        unit = max(1.0, min([*heaps.values(), sum(heaps.values()) / N_FOLDS]))
        units |= {key: max(1, int(w / unit + 1e-9)) for key, w in heaps.items()}
    of_rank = [sum(m for key, m in units.items() if key[2] == k) for k in range(3)]
    assert found.keys() == {key for key in units if of_rank[key[2]] >= 2}
    total = np.zeros((3, N_FOLDS))
    for key, scored in found.items():
        assert_allclose(scored.sum(), rows[key])
        dealt = scored * units[key] / rows[key]  # whole units of it
        assert_allclose(dealt, np.rint(dealt), atol=1e-9)
        assert np.ptp(np.rint(dealt)) <= 1
        total[key[2]] += dealt
    assert np.all(np.ptp(np.rint(total), axis=1) <= 1)  # a rank in its share
    assert np.ptp(np.rint(total).sum(axis=0)) <= 1


def test_folds_of_rows_that_are_alike():
    X, y = [[0.0], [0.0], [0.0], [1.0], [1.0]], [0, 0, 0, 1, 1]
    weight = [1.0, 1e-13, 3.0, 2.0, 1e-13]
    share = shares(Problem.from_arrays(X, y, sample_weight=weight))
    assert_allclose(share.sum(axis=1), 1)
    alone = Problem.from_arrays(np.eye(2), [0, 1])
    raises(ValueError, "probability=True needs a class with 2", shares, alone)
    X, y = sample(40, 3)
    a, b = (Problem.from_arrays(K, y) for K in (X @ X.T, np.eye(40)))
    kernel = kernels.Precomputed()
    assert_array_equal(shares(a, kernel=kernel), shares(b, kernel=kernel))
    assert not np.array_equal(shares(a), shares(b))
    X, y = sample(20, 2)
    problem = Problem.from_arrays(X, y, sample_weight=np.where(np.arange(20) < 5, 2, 1))
    share = shares(problem)
    scored, trained = np.zeros(20), np.zeros(20)
    for part in out_of_fold(problem, None, share):
        assert np.all(part.weight > 0)
        assert np.all(part.problem.weight > 0)
        scored[part.test] += part.weight
        trained[part.train] += part.problem.weight
    assert_allclose(scored, problem.weight)
    assert_allclose(trained, (N_FOLDS - 1) * problem.weight)
    assert set(np.unique(share[:5])) == {0, 0.5}


def test_what_rows_hold_and_the_seed_make_the_hash():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [np.nan, 1.0], [-np.nan, 1.0]])
    found = content_hash(X)
    assert np.unique(found).size == 4
    assert found[3] == found[4]
    assert_array_equal(content_hash(-X[2:3]), found[2:3])  # zeros have no sign
    assert np.all(content_hash(X, seed=1) != found)
    rows = np.random.default_rng(0).integers(0, 2, (4000, 24)) / 1.0
    distinct = np.unique(rows, axis=0)
    assert np.unique(content_hash(distinct)).size == len(distinct)
    bits = np.unpackbits(content_hash(distinct).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 4 * 0.5 / np.sqrt(bits.size)


SVOR = {
    "svorim": functools.partial(fit_svorim, C=3.0, n_threads=1),
    "svorex": functools.partial(fit_svorex, C=3.0, n_threads=1),
    "shashua_levin": functools.partial(fit_shashua_levin, C=3.0, n_threads=1),
    "redsvm": functools.partial(fit_redsvm, C=3.0, n_threads=1),
}
FITS = {**SVOR, "npsvor": functools.partial(fit_npsvor, C=3.0, n_threads=1)}
FITS["admm"] = functools.partial(FITS["npsvor"], solver="admm")
FITS["low_rank"] = functools.partial(FITS["admm"], basis=30)
# whose folds are no programs of the driver
ALL = FITS | {"tlssvor": functools.partial(fit_tlssvor, C=3.0, n_threads=1)}
# fits that end near the optimum, so that rounding, as from another form of the data,
# does not show; that of low rank may have other pivots then
TIGHT = {
    **{name: {"tol": 1e-9} for name in (*SVOR, "npsvor", "tlssvor")},
    "admm": {"e_abs": 1e-8, "e_rel": 1e-8, "max_iter": 20_000},
}
# a score, distances of hyperplanes, and folds that are no programs of the driver
some_fits = pytest.mark.parametrize("name", ["svorim", "npsvor", "admm"])


@functools.cache
def fitted(name, **options):
    X, y = sample(120, 4, noise=1.0)
    options = {"probability": True, "gamma": 0.3, **options}
    return ALL[name](X, y + 10, **options)


def losses_of_ranks(f):
    """By all hyperplanes, if each row had rank k: |f_k|, and what margins lack."""
    return np.array([
        [
            sum(abs(v) if j == k else max(1 - v if j < k else 1 + v, 0)
                for j, v in enumerate(row))
            for k in range(len(row))
        ]
        for row in f
    ])  # fmt: skip


@pytest.mark.parametrize("name", [
    "svorim", "redsvm", "npsvor", "tlssvor",
    *slow("admm", "low_rank"),
])  # fmt: skip
def test_the_links_scores_are_of_fits_on_the_other_folds(name):
    """The same link from five fits of one's own; nothing of a row is in its score."""
    X, y = sample(120, 4, noise=1.0)
    tight = TIGHT.get(name, {})
    model = fitted(name, rng=3, **tight)
    fold = numbers(shares(Problem.from_arrays(X, y + 10), 3))
    of_ranks = name not in (*SVOR, "tlssvor")
    score = np.zeros((120, 4) if of_ranks else 120)
    for k in range(N_FOLDS):
        train, test = fold != k, fold == k
        part = ALL[name](X[train], y[train], gamma=0.3, **tight)
        score[test] = part.decision_function(X[test])
        if not of_ranks:  # from one zero point to the other
            score[test] += (model.thresholds - part.thresholds).mean()
    if of_ranks:
        score = losses_of_ranks(score)
    link = LINKS[of_ranks].fit(score, y, np.ones(120), 4)
    # tol is of f; where f is this well known, so are slope and offsets
    assert_allclose(model.link.slope, link.slope, rtol=1e-4)
    assert_allclose(model.link.offsets, link.offsets, atol=1e-4 * (1 + link.slope))


@some_fits
def test_a_rank_of_one_row_is_possible(name):
    """It is in every training part and scored by none, but it has a row."""
    X, y = sample(60, 3)
    y = np.where(np.arange(60) == 17, 3, y)
    P = FITS[name](X, y, probability=True).predict_proba(X)
    assert_allclose(P.sum(axis=1), 1, atol=1e-15)
    assert np.all(P[:, :3].max(axis=0) > 0)
    assert P[:, 3].max() > 0
