"""Probabilities of ranks from scores.

Scores of a margin method are not probabilities. `CumulativeLink`, `SoftmaxLink` and
`PartitionLink` map scores to probabilities, and are fitted to out-of-fold scores by
maximum likelihood: each fifth of the rows is scored by a fit to the other four (see
`folds`). The targets are those of Platt, slightly different from 0 and 1, so that
separable scores have a finite slope.

J. Platt, "Probabilistic outputs for support vector machines", in Advances in Large
Margin Classifiers, MIT Press, 2000; H.-T. Lin, C.-J. Lin, R. C. Weng, Machine Learning
68:267-276, 2007.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from .._input.fields import FINITE, NONNEGATIVE, RISING, THRESHOLDS, Array, finite_or
from .._input.immutable import Immutable, read_only
from .._input.problem import around_ranks
from ..exceptions import NoProbabilitiesError

_MAX_STEPS = 100  # most Newton steps; a dozen is usual
_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeLink(Immutable):
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

    slope: Annotated[float, FINITE, NONNEGATIVE]
    offsets: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]

    def __call__(self, score: np.ndarray) -> np.ndarray:
        """Return probabilities of the r ranks for scores, (n,); rows sum to 1."""
        # P(y > j) is computed beside P(y <= j), because differences near 1 lose digits.
        with np.errstate(over="ignore"):  # the limit replaces infinite values
            steep = np.clip(self.slope * score[:, None], -_LARGEST, _LARGEST)
            z = self.offsets - steep
        below, above = _sigmoid(z), _sigmoid(-z)
        edge = np.ones((len(score), 1))
        below = np.concatenate([0 * edge, below, edge], axis=1)
        above = np.concatenate([edge, above, 0 * edge], axis=1)
        lower = below[:, 1:] - below[:, :-1]
        upper = above[:, :-1] - above[:, 1:]
        P: np.ndarray = np.where(below[:, 1:] < 0.5, lower, upper)
        P /= P.sum(axis=1, keepdims=True)
        return P

    @classmethod
    def fit(
        cls, score: np.ndarray, rank: np.ndarray, weight: np.ndarray, r: int
    ) -> CumulativeLink:
        """Fit by Platt scaling of the r - 1 events y <= j, with one slope for all.

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

        def loss(p: np.ndarray) -> float:
            z = p[1:] - p[0] * x[:, None]
            return float((W * (np.logaddexp(0, z) - target * z)).sum())

        def derivatives(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean = _sigmoid(p[1:] - p[0] * x[:, None])
            g, h = W * (mean - target), W * mean * (1 - mean)
            gradient = np.concatenate([[-(x @ g).sum()], g.sum(axis=0)])
            H = np.diag(np.concatenate([[(x**2 @ h).sum()], h.sum(axis=0)]))
            H[0, 1:] = H[1:, 0] = -(x @ h)
            return gradient, H

        level = np.log(n_in + 1) - np.log(n_out + 1)
        p = _newton(loss, derivatives, level)
        slope = p[0] / scale
        offsets = around_ranks(p[1:] + slope * centre, present, r)
        return cls(float(slope), read_only(offsets))


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxLink(Immutable):
    """P(y = k | distances) proportional to exp(offsets[k] - slope distance_k).

    Attributes
    ----------
    slope : float >= 0
    offsets : (r,) array
        -inf for a rank without training rows, whose probability is 0.
    """

    slope: Annotated[float, FINITE, NONNEGATIVE]
    offsets: Annotated[np.ndarray, Array("f8", "r"), finite_or(-np.inf)]

    def __call__(self, distance: np.ndarray) -> np.ndarray:
        """Return probabilities of the r ranks for distances, (n, r); rows sum to 1."""
        has = np.isfinite(self.offsets)
        P = np.zeros(distance.shape)
        with np.errstate(over="ignore"):  # the limits replace infinite values
            steep = np.minimum(self.slope * distance[:, has], _LARGEST)
            z = np.clip(self.offsets[has] - steep, -_LARGEST, _LARGEST)
            P[:, has] = _softmax(z)
        return P

    @classmethod
    def fit(
        cls, distance: np.ndarray, rank: np.ndarray, weight: np.ndarray, r: int
    ) -> SoftmaxLink:
        """Fit multinomial logistic regression on the distances, with one slope."""
        count = np.bincount(rank, weight, minlength=r)
        present = np.flatnonzero(count > 0)
        N = count[present]
        own = rank[:, None] == present
        target = np.where(own, (N + 1) / (N + 2), 0.0)
        # The remainder of Platt's target belongs to the ranks next to the row's own.
        # Divided among all, a seventh of each row of 200 ranks with 5 rows each was far
        # away, and flattened the distribution: NPSVOR had 4 times the RPS.
        rest, near = 1 - target.sum(axis=1, keepdims=True), np.zeros(own.shape)
        near[:, 1:] += own[:, :-1]
        near[:, :-1] += own[:, 1:]
        target += rest * near / np.maximum(near.sum(axis=1, keepdims=True), 1)
        x = distance[:, present]
        centre, scale = _spread(x.ravel(), np.repeat(weight, present.size))
        x = (x - centre) / scale
        W = weight[:, None]

        def loss(p: np.ndarray) -> float:
            z = p[1:] - p[0] * x
            top = z.max(axis=1, keepdims=True)
            log_sum = top + np.log(np.exp(z - top).sum(axis=1, keepdims=True))
            return float((W * target * (log_sum - z)).sum())

        def derivatives(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean = _softmax(p[1:] - p[0] * x)
            g = W * (mean - target)
            gradient = np.concatenate([[-(x * g).sum()], g.sum(axis=0)])
            centred = x - (mean * x).sum(axis=1, keepdims=True)
            h = W * mean
            H = np.empty((present.size + 1,) * 2)
            H[1:, 1:] = np.diag(h.sum(axis=0)) - h.T @ mean
            H[0, 0] = (h * centred**2).sum()
            H[0, 1:] = H[1:, 0] = -(h * centred).sum(axis=0)
            # A common shift of the offsets has no effect. This term keeps their mean
            # at 0, and H positive definite.
            H[1:, 1:] += weight.sum() / present.size
            return gradient, H

        level = np.log(N + 1) - np.log(N + 1).mean()
        p = _newton(loss, derivatives, level)
        offsets = np.full(r, -np.inf)
        offsets[present] = p[1:]
        return cls(float(p[0] / scale), read_only(offsets))


@dataclass(frozen=True, slots=True, eq=False)
class PartitionLink(Immutable):
    """P(y > j | values) = 1 / (1 + exp(offsets[j] - slopes[j] value_j)) for each of the
    q ranks that have training rows but the last, made to fall with j.

    Where these probabilities rise with j, isotonic regression replaces them by the
    nearest sequence that does not, in the sense of least squares.

    Attributes
    ----------
    slopes : (q - 1,) array, >= 0
    offsets : (q - 1,) array
    """

    slopes: Annotated[np.ndarray, Array("f8", "q-1"), FINITE, NONNEGATIVE]
    offsets: Annotated[np.ndarray, Array("f8", "q-1"), FINITE]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return probabilities of the q ranks for values, (n, q - 1); rows sum to 1."""
        with np.errstate(over="ignore"):  # the limit replaces infinite values
            steep = np.clip(self.slopes * values, -_LARGEST, _LARGEST)
            above = falling(_sigmoid(steep - self.offsets))
        edge = np.ones((len(values), 1))
        P: np.ndarray = -np.diff(np.concatenate([edge, above, 0 * edge], axis=1))
        P /= P.sum(axis=1, keepdims=True)
        return P

    @classmethod
    def fit(
        cls, values: np.ndarray, rank: np.ndarray, weight: np.ndarray, r: int
    ) -> PartitionLink:
        """Fit by Platt scaling of each event y > j separately."""
        present = np.flatnonzero(np.bincount(rank, weight, minlength=r) > 0)
        each = [
            CumulativeLink.fit(value, (rank > k).astype(int), weight, 2)
            for value, k in zip(values.T, present[:-1], strict=True)
        ]
        slopes = np.array([link.slope for link in each])
        offsets = np.concatenate([link.offsets for link in each])
        return cls(read_only(slopes), read_only(offsets))


def falling(values: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the least-squares fit of a non-increasing sequence to each row, (n, T).

    Columns have weights if they are given.
    """
    rises = (values[:, 1:] > values[:, :-1]).any(axis=1)
    if not rises.any():
        return values
    some = values[rises]
    n, T = some.shape
    # Pool-adjacent-violators for all rows at once: `mean`, `size` and `mass` of pools
    # of adjacent columns; `last` is the number of the last pool of each row.
    mean, size = np.zeros((n, T)), np.zeros((n, T), int)
    weight = np.ones(T) if weight is None else weight
    mass = np.zeros((n, T))
    last = np.full(n, -1)
    for j in range(T):
        last += 1
        every = np.arange(n)
        mean[every, last], size[every, last] = some[:, j], 1
        mass[every, last] = weight[j]
        while every.size:
            top = last[every]
            rising = (top > 0) & (mean[every, top - 1] < mean[every, top])
            every, top = every[rising], top[rising]
            a, b = mass[every, top - 1], mass[every, top]
            pooled = a * mean[every, top - 1] + b * mean[every, top]
            mean[every, top - 1] = pooled / (a + b)
            mass[every, top - 1] = a + b
            size[every, top - 1] += size[every, top]
            size[every, top] = 0
            last[every] -= 1
    out = values.copy()
    out[rises] = np.repeat(mean.ravel(), size.ravel()).reshape(n, T)
    return out


def require_link(link: Any) -> Any:
    """Return the link of a model, or raise NoProbabilitiesError if it has none."""
    if link is None:
        raise NoProbabilitiesError(
            "the model has no probabilities: fit it with probability=True"
        )
    return link


def _newton(
    loss: Callable[[np.ndarray], float],
    derivatives: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    level: np.ndarray,
) -> np.ndarray:
    """Return the slope and the offsets that minimise a smooth convex function.

    Newton's method, with steps halved as needed, begins at the slope 0 and the offsets
    `level` of the shares of the ranks. It returns this start if the scores are not
    informative.
    """
    p = start = np.append(0.0, level)
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
                return start if p[0] <= 0 else p
        p, value = p + size * d, new
    return start if p[0] <= 0 else p


def _sigmoid(z: np.ndarray) -> np.ndarray:
    with np.errstate(under="ignore"):  # the limit of exp is 0
        small = np.exp(-np.abs(z))
        return np.asarray(np.where(z >= 0, 1.0, small) / (1 + small))


def _softmax(z: np.ndarray) -> np.ndarray:
    with np.errstate(under="ignore"):
        e: np.ndarray = np.exp(z - z.max(axis=1, keepdims=True))
        e /= e.sum(axis=1, keepdims=True)
    return e


def _spread(x: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return weighted mean and deviation of x; the deviation inf makes constants 0."""
    mean = float(np.average(x, weights=weight))
    sd = float(np.sqrt(np.average((x - mean) ** 2, weights=weight)))
    return mean, sd if sd > 1e-12 * (1 + abs(mean)) else np.inf
