"""Measure how often fits whose loss is not convex miss the lowest known minimum.

    python tools/measure_minima.py

prints it for `ordinal._cumulative.fitting.minimize` and for one descent: from the fit
without scale effects, or from no effects with the link cauchit. The lowest minimum that
is known is that of both and of descents from ten random points.
"""

import numpy as np

from ordinal._cumulative.design import Design
from ordinal._cumulative.fitting import likelihood_of, minimize
from ordinal._cumulative.newton import minimize as newton
from ordinal._input.problem import Problem
from ordinal._watch.convergence import Status
from ordinal._watch.monitor import Monitor

STEPS, LOWER = 100, 1e-3  # of a descent; of log likelihoods


def scale_rows(seed):
    """30, 60 or 200 rows, with logistic noise of three sizes."""
    rng = np.random.default_rng(seed)
    n, r = ((30, 3), (60, 4), (200, 5))[seed % 3]
    X = rng.normal(size=(n, 3))
    score = X @ rng.uniform(-1, 1, 3) + (0.5, 1.5)[seed % 2] * rng.logistic(size=n)
    return X, np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)


def heavy_rows(seed):
    """15, 30 or 60 rows, a few of them far out, a tenth at random ranks."""
    rng = np.random.default_rng(seed)
    n, d, r = (15, 30, 60)[seed % 3], (1, 2, 4)[seed // 3 % 3], (2, 3, 5)[seed // 9 % 3]
    X = rng.standard_t(1.5, size=(n, d))
    score = X @ rng.normal(size=d) * rng.choice([0, 1, 3]) + rng.standard_cauchy(size=n)
    y = np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)
    stray = rng.random(n) < 0.1
    y[stray] = rng.integers(0, r, stray.sum())
    return X, y


def loss_of(X, y, link, scale):
    problem, none = Problem.from_arrays(X, y), np.zeros(0, dtype=np.int64)
    every = np.arange(X.shape[1])
    design = Design.from_problem(
        problem, every, none, np.array(scale, int), None, "flexible"
    )
    return likelihood_of(design, link, 0.0, n_threads=1)


def random_start(loss, rng):
    """Effects drawn at random, and thresholds at quantiles of what they give."""
    D = loss.design
    beta = rng.normal(size=D.location.size) * rng.choice([0.3, 1, 3])
    zeta = rng.normal(size=D.scale.size)
    score = ((D.X - D.centre) / D.spread)[:, D.location] @ beta
    score += np.exp(D.X[:, D.scale] / D.spread[D.scale] @ zeta) * rng.logistic(
        size=D.n_samples
    )
    return np.concatenate([np.quantile(score, D.shares()), beta, zeta])


def misses(losses):
    """Fits that converged, and how many of one descent and of `minimize` missed."""
    fits = one = several = 0
    for seed, loss in enumerate(losses):
        monitor = Monitor("measure", 1e-6)
        rng = np.random.default_rng(seed)
        found = minimize(loss, STEPS, monitor)
        k = loss.design.scale.size
        start = loss.start()
        if k:
            plain = loss_of(loss.design.X, loss.design.rank, loss.link, ())
            start[:-k] = newton(plain, plain.start(), STEPS, monitor).point.x
        alone = newton(loss, start, STEPS, monitor).point.value
        if found.status is not Status.CONVERGED:  # there may be no minimum
            continue
        starts = [random_start(loss, rng) for _ in range(10)]
        others = [newton(loss, x, STEPS, monitor).point.value for x in starts]
        lowest = min([found.point.value, alone, *others]) + LOWER / loss.design.total
        fits += 1
        one += alone > lowest
        several += found.point.value > lowest
    return fits, one, several


def main():
    print("fits that converge, missed from one start, missed by minimize")
    for link, scale in (
        ("logit", (0, 1)), ("cloglog", (0, 1)), ("logit", (0, 1, 2)), ("probit", (1,)),
        ("cauchit", (1,)),
    ):  # fmt: skip
        losses = (loss_of(*scale_rows(seed), link, scale) for seed in range(150))
        print(f"{link}, {len(scale)} scale effects:", *misses(losses))
    losses = (loss_of(*heavy_rows(seed), "cauchit", ()) for seed in range(300))
    print("cauchit:", *misses(losses))


if __name__ == "__main__":
    main()
