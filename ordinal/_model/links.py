"""Probabilities of ranks from scores, and the rules that turn them into predictions.

A margin says on which side of a threshold a row lies, not how surely. `CumulativeLink`
and `SoftmaxLink` learn that from scores which their model was not fitted to: every
fifth of the rows is scored by a fit on the other four (`out_of_fold`), and the link
is fitted to these scores by maximum likelihood, with the targets of Platt, who moves
certainty a little from 0 and 1 so that separable scores have a finite slope.

J. Platt, "Probabilistic outputs for support vector machines", in Advances in Large
Margin Classifiers, MIT Press, 2000; H.-T. Lin, C.-J. Lin, R. C. Weng, Machine Learning
68:267-276, 2007.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import kernels
from .._input.checks import check_choice
from .._input.costs import check_cost
from .._input.problem import Problem, around_ranks
from .._input.sparse import frozen
from .._numerics.rows import take

N_FOLDS = 5
_MAX_STEPS = 100  # of Newton; a dozen is usual


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeLink:
    """P(y <= j | score) = 1 / (1 + exp(slope score - offsets[j])), j = 0..r-2.

    One slope >= 0 and increasing offsets: the curves of the r - 1 events do not
    cross, so that the probabilities of the ranks are >= 0.

    Attributes
    ----------
    slope : float
    offsets : (r - 1,) array
        -inf below and +inf above the ranks that have training rows, and equal on both
        sides of a rank between them that has none: its probability is 0.
    """

    slope: float
    offsets: np.ndarray

    def __call__(self, score: np.ndarray) -> np.ndarray:
        """Probabilities of the r ranks for (n,) scores; rows sum to 1."""
        # P(y > j) beside P(y <= j): a difference of two numbers near 1 has no digits
        z = self.offsets - self.slope * score[:, None]
        below, above = _sigmoid(z), _sigmoid(-z)
        edge = np.ones((len(score), 1))
        below = np.concatenate([0 * edge, below, edge], axis=1)
        above = np.concatenate([edge, above, 0 * edge], axis=1)
        lower = below[:, 1:] - below[:, :-1]
        upper = above[:, :-1] - above[:, 1:]
        P = np.where(below[:, 1:] < 0.5, lower, upper)
        return P / P.sum(axis=1, keepdims=True)

    @classmethod
    def fit(cls, score, rank, weight, r: int) -> CumulativeLink:
        """Platt scaling of the r - 1 events y <= j with one slope for all.

        The sum of the r - 1 log losses is convex; at its minimum the mean probability
        of each event is its (smoothed) share of the rows, which orders the offsets.
        """
        present = np.flatnonzero(np.bincount(rank, weight, minlength=r) > 0)
        event = rank[:, None] <= present[:-1]
        n_in = weight @ event
        n_out = weight.sum() - n_in
        target = np.where(event, (n_in + 1) / (n_in + 2), 1 / (n_out + 2))
        centre, scale = _spread(score, weight)
        x = (score - centre) / scale
        W = weight[:, None]

        def loss(p):
            z = p[1:] - p[0] * x[:, None]
            return (W * (np.logaddexp(0, z) - target * z)).sum()

        def derivatives(p):
            mean = _sigmoid(p[1:] - p[0] * x[:, None])
            g, h = W * (mean - target), W * mean * (1 - mean)
            gradient = np.concatenate([[-(x @ g).sum()], g.sum(axis=0)])
            H = np.diag(np.concatenate([[(x**2 @ h).sum()], h.sum(axis=0)]))
            H[0, 1:] = H[1:, 0] = -(x @ h)
            return gradient, H

        level = np.log(n_in + 1) - np.log(n_out + 1)
        p = _newton(loss, derivatives, np.concatenate([[0.0], level]))
        if p[0] <= 0:  # the scores tell nothing: the shares of the ranks
            p = np.concatenate([[0.0], level])
        slope = p[0] / scale
        offsets = around_ranks(p[1:] + slope * centre, present, r)
        return cls(float(slope), frozen(offsets))


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxLink:
    """P(y = k | distances) proportional to exp(offsets[k] - slope distance_k).

    Attributes
    ----------
    slope : float >= 0
    offsets : (r,) array
        -inf for a rank without training rows, whose probability is 0.
    """

    slope: float
    offsets: np.ndarray

    def __call__(self, distance: np.ndarray) -> np.ndarray:
        """Probabilities of the r ranks for (n, r) distances; rows sum to 1."""
        has = np.isfinite(self.offsets)
        P = np.zeros(distance.shape)
        P[:, has] = _softmax(self.offsets[has] - self.slope * distance[:, has])
        return P

    @classmethod
    def fit(cls, distance, rank, weight, r: int) -> SoftmaxLink:
        """Multinomial logistic regression on the distances, one slope for all."""
        count = np.bincount(rank, weight, minlength=r)
        present = np.flatnonzero(count > 0)
        N = count[present]
        own = rank[:, None] == present
        target = np.where(own, (N + 1) / (N + 2), 0.0)
        # what Platt's target leaves goes to the other ranks alike
        rest = 1 - target.sum(axis=1, keepdims=True)
        target += np.where(own, 0.0, rest / max(1, present.size - 1))
        x = distance[:, present]
        centre, scale = _spread(x.ravel(), np.repeat(weight, present.size))
        x = (x - centre) / scale
        W = weight[:, None]

        def loss(p):
            z = p[1:] - p[0] * x
            top = z.max(axis=1, keepdims=True)
            log_sum = top + np.log(np.exp(z - top).sum(axis=1, keepdims=True))
            return (W * target * (log_sum - z)).sum()

        def derivatives(p):
            mean = _softmax(p[1:] - p[0] * x)
            g = W * (mean - target)
            gradient = np.concatenate([[-(x * g).sum()], g.sum(axis=0)])
            centred = x - (mean * x).sum(axis=1, keepdims=True)
            h = W * mean
            H = np.empty((present.size + 1,) * 2)
            H[1:, 1:] = np.diag(h.sum(axis=0)) - h.T @ mean
            H[0, 0] = (h * centred**2).sum()
            H[0, 1:] = H[1:, 0] = -(h * centred).sum(axis=0)
            # a shift of all offsets changes nothing; this keeps their mean at 0
            H[1:, 1:] += weight.sum() / present.size
            return gradient, H

        level = np.log(N + 1) - np.log(N + 1).mean()
        p = _newton(loss, derivatives, np.concatenate([[0.0], level]))
        if p[0] <= 0:
            p = np.concatenate([[0.0], level])
        offsets = np.full(r, -np.inf)
        offsets[present] = p[1:]
        return cls(float(p[0] / scale), frozen(offsets))


def decide(P: np.ndarray, rule: str, cost: np.ndarray | None = None) -> np.ndarray:
    """Ranks, (n,), by the mode or median of P (n, r), or of least expected cost.

    Ties go to the lower rank; the median is the first rank that half of the
    probability does not exceed.
    """
    if rule == "mode":
        return P.argmax(axis=1)
    if rule == "median":
        return (np.cumsum(P, axis=1)[:, :-1] < 0.5).sum(axis=1)
    assert cost is not None
    return (P @ cost).argmin(axis=1)


def cost_of_rule(
    rule: str, rules: tuple[str, ...], cost: Any, default: Any, r: int
) -> np.ndarray | None:
    """The cost matrix that a rule among `rules` uses, None if it uses none.

    Raises ValueError for an unknown rule, or a cost that is missing, that nothing asks
    for, or that is not one of r ranks.
    """
    check_choice("rule", rule, rules)
    if rule != "cost":
        if cost is not None:
            raise ValueError(f"cost: for rule='cost' only, got rule={rule!r}")
        return None
    if cost is None and default is None:
        raise ValueError("rule='cost' needs a cost")
    return default if cost is None else check_cost(cost, r)


def predicted(model: Any, X: Any, rule: str, plain: str, cost: Any) -> np.ndarray:
    """Labels by the model's `plain` rule on its decision function, or by one on its
    probabilities.

    Raises ValueError as `cost_of_rule`, or for probabilities that the model lacks.
    """
    rules = plain, "mode", "median", "cost"
    table = cost_of_rule(rule, rules, cost, model.cost, model.classes.size)
    if rule == plain:
        return model._labels(model.decision_function(X))
    return model.classes[decide(model.predict_proba(X), rule, table)]


def require_link(link: Any) -> Any:
    """The link of a model, or ValueError if it was fitted without."""
    if link is None:
        raise ValueError("the model has no probabilities: fit it with probability=True")
    return link


# Out-of-fold scores


def fold_numbers(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """The fold that scores each row, (n,), or -1 for rows that are only trained on.

    Folds hold every rank in its share. The only row of a rank is never left out, lest
    the rank have none: the model of all rows must score it. Rows without weight have
    nothing to tell.
    """
    fold = np.full(problem.n_samples, -1)
    dealt = 0
    for k in np.flatnonzero(problem.present):
        rows = np.flatnonzero((problem.rank == k) & (problem.weight > 0))
        if rows.size < 2:
            continue
        fold[rng.permutation(rows)] = (dealt + np.arange(rows.size)) % N_FOLDS
        dealt += rows.size
    if (fold < 0).all():
        raise ValueError("probability=True needs a class with 2 rows or more")
    return fold


def out_of_fold(
    problem: Problem, kernel: Callable, fold: np.ndarray
) -> Iterator[tuple[Problem, np.ndarray, np.ndarray, Any]]:
    """(problem of the other folds, its rows, rows of this one, their features) for
    every fold."""
    for k in range(N_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if test.size == 0:
            continue
        X, X_test = (take(problem.X, rows) for rows in (train, test))
        if isinstance(kernel, kernels.Precomputed):
            X, X_test = np.ascontiguousarray(X[:, train]), X_test[:, train]
        part = replace(
            problem,
            X=X,
            rank=problem.rank[train],
            weight=problem.weight[train],
            sample_weight=problem.sample_weight[train],
        )
        yield part, train, test, X_test


# Fitting


def _newton(loss, derivatives, p: np.ndarray) -> np.ndarray:
    """Minimise a smooth convex function by Newton's method, steps halved as needed."""
    value = loss(p)
    for _ in range(_MAX_STEPS):
        gradient, H = derivatives(p)
        H[np.diag_indices_from(H)] += 1e-12 * H.diagonal().max() + 1e-300
        d = -np.linalg.solve(H, gradient)
        slope, size = gradient @ d, 1.0
        if not slope < -1e-12 * (1 + abs(value)):
            break
        while not (new := loss(p + size * d)) <= value + 1e-4 * size * slope:
            size /= 2
            if size < 1e-10:
                return p
        p, value = p + size * d, new
    return p


def _sigmoid(z: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1 + small)


def _softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _spread(x: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Weighted mean and deviation of x; inf if there is none, which makes x 0."""
    mean = float(np.average(x, weights=weight))
    sd = float(np.sqrt(np.average((x - mean) ** 2, weights=weight)))
    return mean, sd if sd > 1e-12 * (1 + abs(mean)) else np.inf
