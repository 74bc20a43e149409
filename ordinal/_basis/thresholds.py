"""The thresholds that are best for given scores: where the slope of (P) by each changes
its sign, pooled where they must be in order.

The slope by b_j is a sum of steps, one at f_i + pn and one at f_i + pp of each row, and
the price times b_j. It is asked for at some dozens of thresholds at a time: a bracket
shrinks by that factor with each pass over the scores, to neighbouring floats. One that
goes far is first cut at distances from its ends that double.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .losses import Losses

Slopes = Callable[[np.ndarray], np.ndarray]

_POINTS = 32  # of a grid, for each end of the minimisers
_STEPS, _FAR = 2.0 ** np.arange(-40, -2), 2.0**40  # of the first grid, on both sides
_HALVES = 2.0 ** -np.arange(1, 48)  # shares of a bracket that goes as far
_RESOLVED = 4 * np.finfo(float).eps
_EQUAL = 1e-12  # of the sum of all steps: a slope that is zero but for rounding


def best(
    slopes: Slopes, losses: Losses, start: np.ndarray, resolved: float = _RESOLVED
) -> np.ndarray:
    """Thresholds (T,) that minimise (P) for given scores; the middle where several do.

    Parameters
    ----------
    slopes : callable
        (T, K) right slopes of the losses at increasing thresholds (T, K), such as
        `Sums.loss_slopes`.
    losses : Losses
    start : (T,) array
        Near them, for speed.
    resolved : float
        Width of a bracket, relative to the threshold or 1, at which search ends.

    Notes
    -----
    Where b must be in order, neighbours that are not are pooled, and pools that are not
    again: as in isotonic regression, whose sums are convex too.
    """
    pool = np.arange(losses.T)
    b = _minimisers(slopes, losses, pool, start, resolved)
    while losses.ordered and (np.diff(b) < 0).any():
        tied = np.concatenate([[True], (np.diff(b) >= 0) & (np.diff(pool) > 0)])
        pool = np.cumsum(tied) - 1
        b = _minimisers(slopes, losses, pool, b, resolved)
    return b


def _minimisers(
    slopes: Slopes, losses: Losses, pool: np.ndarray, start: np.ndarray, resolved: float
) -> np.ndarray:
    """One threshold for the groups of each pool, (T,)."""
    first = np.searchsorted(pool, np.arange(pool[-1] + 1))

    def pooled(each: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(each, first, axis=0))

    price = pooled(losses.price[:, None])

    def at(grid: np.ndarray) -> np.ndarray:
        return pooled(slopes(grid[pool]))

    centre = pooled(start[:, None]) / np.bincount(pool)[:, None]
    far = centre + np.array([-_FAR, _FAR])
    S = at(far)
    level = _EQUAL * (S[:, 1:] - S[:, :1]) * [-1.0, 1.0]
    near = centre + np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
    grid = np.concatenate([far[:, :1], near, far[:, 1:]], axis=1)
    S = np.concatenate([S[:, :1], at(near), S[:, 1:]], axis=1)
    low, high = _brackets(grid, S + price * grid, level)
    evenly = np.linspace(0, 1, _POINTS + 1)[1:-1]
    while True:
        wide = high - low > resolved * np.maximum(1.0, np.abs(high))
        if not wide.any():
            return np.asarray(high.mean(axis=1)[pool])
        by_halves = (high - low).max() > 1
        share = np.concatenate([_HALVES, 1 - _HALVES[1:]]) if by_halves else evenly
        between = low[:, :, None] + (high - low)[:, :, None] * share
        grid = np.sort(
            np.concatenate([low, between.reshape(len(low), -1), high], axis=1)
        )
        low, high = _brackets(grid, at(grid) + price * grid, level)


def _brackets(
    grid: np.ndarray, S: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(pools, 2) neighbours on a grid with S < level at the left one, but not at the
    right one.
    """
    high = (S[:, :, None] < level[:, None, :]).sum(axis=1)
    last = grid.shape[1] - 1
    left = np.take_along_axis(grid, np.clip(high - 1, 0, last), axis=1)
    return left, np.take_along_axis(grid, np.clip(high, 0, last), axis=1)
