"""The mathematics of `fit_cnnor`: its slopes, its triplets, its votes."""

import numpy as np
import pytest
from internals import Problem
from numpy.testing import assert_allclose, assert_array_equal
from oracles import slopes
from strategies import sample

import ordinal
from ordinal.networks.convolution import Relations, Tower, Triplets
from ordinal.networks.training import Training

SMALL = {"n_filters": 2, "n_hidden": 4, "n_triplets": 500, "n_compared": 10}


def problem(n=30, r=4, d=5, seed=0, weight=None):
    X, y = sample(n, r, d, seed)
    return Training.from_problem(Problem.from_arrays(X, y, sample_weight=weight))


def objective(training, width, n_threads=1, n=300):
    rng = np.random.default_rng(0)
    tower = Tower.drawn(training.rows.X.shape[1], width, 3, 4, 2, rng)
    triplets = Triplets.drawn(training.rank, training.share, n, rng)
    return tower, triplets, Relations(training.rows, triplets, tower, 0.1, n_threads)


def places(X, tower, width):
    """e of standardised rows by loops."""
    out = []
    for x in X:
        padded = np.concatenate([np.zeros((width - 1) // 2), x, np.zeros(width)])
        c = [np.tanh(padded[j : j + width] @ tower.K[:-1] + tower.K[-1])
             for j in range(x.size)]  # fmt: skip
        out.append(np.tanh(np.concatenate(c) @ tower.U[:-1] + tower.U[-1]) @ tower.V)
    return np.array(out)


def tower_of(model):
    K = np.vstack([model.filters, model.filter_bias])
    U = np.vstack([model.hidden_weights, model.hidden_bias])
    return Tower(K, U, model.output_weights)


@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_the_objective_and_its_slopes(width):
    training = problem(weight=1.0 + np.arange(30) % 3)
    tower, T, fun = objective(training, width)
    x = tower.packed()
    value, gradient = fun(x)
    E = places(training.rows[slice(0, 30)][:, :-1], tower, width)
    loss = 0.0
    for i in range(T.low.size):
        low, asked, high = E[T.low[i]], E[T.asked[i]], E[T.high[i]]
        u = ((asked - low) ** 2).sum() - ((asked - high) ** 2).sum()
        loss += T.weight[i] * np.log1p(np.exp(-u if T.above[i] else u))
    squares = (tower.K[:-1] ** 2).sum() + (tower.U[:-1] ** 2).sum()
    assert_allclose(value, loss + 0.05 * (squares + (tower.V**2).sum()), rtol=1e-12)
    assert_allclose(gradient, slopes(lambda x: fun(x)[0], x, 1e-4), atol=1e-8)


def test_triplets_are_of_the_ranks_that_they_should_be():
    training = problem(100, 5, weight=1.0 + np.arange(100) % 4)
    rank, share = training.rank, training.share
    T = Triplets.drawn(rank, share, 100_000, np.random.default_rng(0))
    assert_array_equal(rank[T.high], rank[T.low] + 1)
    assert_array_equal(T.above, rank[T.asked] > rank[T.low])
    assert not (T.asked == T.low).any()
    assert not (T.asked == T.high).any()
    assert T.low.size == 10 * 100 * 4  # ten for each row and threshold
    # each row weighs its share at every threshold, and sides are drawn by weight
    for k in range(4):
        at = rank[T.low] == k
        of_row = np.bincount(T.asked[at], T.weight[at], 100)
        assert_allclose(of_row, share / 4, rtol=1e-12)
    rows = np.flatnonzero(rank == 2)
    drawn = np.bincount(T.low, minlength=100)[rows] / (rank[T.low] == 2).sum()
    assert np.abs(drawn - share[rows] / share[rows].sum()).max() < 0.03


def test_few_triplets_ask_every_rank_of_every_threshold():
    training = problem(200, 5)
    T = Triplets.drawn(training.rank, training.share, 1, np.random.default_rng(0))
    pairs = np.column_stack([training.rank[T.asked], training.rank[T.low]])
    assert_array_equal(np.unique(pairs, axis=0), np.argwhere(np.ones((5, 4))))
    assert_allclose(T.weight.sum(), 1.0, rtol=1e-12)
    least = Triplets.drawn(np.arange(3), np.ones(3) / 3, 9, np.random.default_rng(0))
    assert set(least.low) == {0, 1}  # the only row of a rank is its own side


def test_votes_are_the_mean_of_the_relations_to_pairs():
    X, y = sample(60, 3)
    model = ordinal.companions.fit_cnnor(X, y, **SMALL)
    E = model.places(X)
    assert model.low.shape == model.high.shape == (2, 10, 4)
    tower = tower_of(model)
    assert_allclose(E, places((X - model.mean) / model.scale, tower, 3), atol=1e-12)
    for k in range(2):
        u = np.array([
            ((E - low) ** 2).sum(axis=1) - ((E - high) ** 2).sum(axis=1)
            for low, high in zip(model.low[k], model.high[k], strict=True)
        ])  # fmt: skip
        votes = [(1 / (1 + np.exp(-sign * u))).mean(axis=0) for sign in (1, -1)]
        odds = model.decision_function(X)[:, k]
        expected = model.slopes[k] * np.log(votes[0] / votes[1]) - model.offsets[k]
        assert_allclose(odds, expected, rtol=1e-8, atol=1e-8)
        # the function is calibrated: its mean is the share of rows above, but for
        # what Platt moves targets by
        assert abs((1 / (1 + np.exp(-odds))).mean() - (y > k).mean()) < 0.02
        # who votes are training rows
        of_rank = [E[y == k], E[y == k + 1]]
        for side, places_of in zip((model.low[k], model.high[k]), of_rank, strict=True):
            apart = np.abs(side[:, None] - places_of).max(axis=2)
            assert (apart.min(axis=1) < 1e-12).all()


def test_a_converged_fit_has_no_slope():
    X, y = sample(60, 3)
    model = ordinal.companions.fit_cnnor(X, y, l2=1e-3, tol=1e-4, **SMALL)
    rng = np.random.default_rng(0)
    training = Training.from_problem(Problem.from_arrays(X, y))
    start = Tower.drawn(3, 3, 2, 4, 4, rng)
    triplets = Triplets.drawn(training.rank, training.share, 500, rng)
    fun = Relations(training.rows, triplets, start, 1e-3, 1)
    value, slopes = fun(tower_of(model).packed())
    assert model.convergence.converged
    assert_allclose(np.abs(slopes).max(), model.convergence.violation, rtol=1e-6)
    assert_allclose(value, model.convergence.primal, rtol=1e-9)
    assert value < fun(start.packed())[0]
