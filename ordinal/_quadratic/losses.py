"""Sums of piecewise linear losses over rows and groups, and their duals.

With z_i the features of row i on a basis, f = Z w, and groups j = 1..T,

    min  1/2 |w|^2 + sum_ij phi*_ij(b_j - f_i) [+ 1/2 sum_j price_j b_j^2]           (P)
    [s.t. b_1 <= ... <= b_T]

where phi*_ij is the conjugate of a function of two slopes on a box,

    phi_ij(t) = pn t for t < 0 and pp t for t > 0,  lo <= t <= hi,  lo <= 0 <= hi,
    phi*_ij(v) = max(hi (v - pp), lo (v - pn), 0),

whose slopes depend on the rank of the row, and whose box does but for the weight of the
row. The dual of (P), with beta_i = sum_j t_ij, is the quadratic program (Q) of
`_quadratic/program.py` with Z Z' for the kernel matrix:

    max  -1/2 |Z'beta|^2 - sum_ij phi_ij(t_ij) [- 1/2 sum_j z_j^2 / price_j]         (D)
    s.t. sum_i t_ij = 0  [ordered: nu_(j-1) - nu_j, nu >= 0 | priced: -z_j]

with nu_0 = nu_T = 0. A feasible t and (w, b) are optimal iff, with v_ij = b_j - f_i,

    w = Z'beta,   t_ij = hi where v > pp, 0 where pn < v < pp, lo where v < pn     (KKT)

(anything between at v = pp or pn) [nu_j (b_(j+1) - b_j) = 0 | z_j = price_j b_j]. The
duality gap of any (w, b) and any feasible t is an upper bound on the distance of the
primal objective from the optimum, and (P) is strongly convex in w:

    1/2 |w - w*|^2 <= P(w, b) - P* <= P(w, b) - D(t),                            (bound)

so that no score f(x) is off by more than |z(x)| times the root of twice the gap.

In this folder:

    n, m, T, r  rows, features, groups, ranks
    w, b        coefficients of the features, thresholds
    t, g        multipliers, and those of the last proximal step; (T, n)
    f           scores Z w
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .program import Program


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Losses that define (P), one row of a table per rank.

    Attributes
    ----------
    table : (r, T, 4) array
        lo, hi, pn and pp of each rank and group, for a row of weight 1.
    ordered : bool
        Whether b must be in order.
    price : (T,) array
        Weight of b_j^2 / 2 in (P); zeros if b is free.
    """

    table: np.ndarray
    ordered: bool
    price: np.ndarray

    @property
    def T(self) -> int:
        return int(self.table.shape[1])

    @property
    def by_group(self) -> np.ndarray:
        """Table in the order in which kernels read it, (T, 4, r)."""
        return np.ascontiguousarray(self.table.transpose(1, 2, 0), np.float64)

    @property
    def largest(self) -> float:
        """Largest absolute bound of a box, for a row of weight 1."""
        return float(np.abs(self.table[..., :2]).max())


def losses_by_rank(program: Program) -> list[Losses]:
    """Return the losses of each problem of a program over one row of each rank.

    These rows have weight 1, and their boxes and slopes apply to all rows of the rank.
    """
    terms = program.lo, program.hi, program.pn, program.pp
    table = np.stack(np.broadcast_arrays(*terms), axis=-1).swapaxes(1, 2)
    price = np.zeros(table.shape[2]) if program.price is None else program.price
    return [Losses(of_problem, program.coupled, price) for of_problem in table]


Slopes = Callable[[np.ndarray], np.ndarray]

_POINTS = 32  # points of a grid, for each end of the interval of minimisers
_STEPS, _FAR = 2.0 ** np.arange(-40, -2), 2.0**40  # distances in the first grid
_HALVES = 2.0 ** -np.arange(1, 48)  # grid of a bracket wider than 1, in its widths
_RESOLVED = 4 * np.finfo(float).eps  # width of a bracket, relative to its end or 1
_EQUAL = 1e-12  # slopes below this share of the sum of all jumps count as 0


def best_thresholds(slopes: Slopes, losses: Losses, start: np.ndarray) -> np.ndarray:
    """Return thresholds (T,) that minimise (P) for given scores.

    Where minimisers form an interval, its middle is returned.

    Parameters
    ----------
    slopes : callable
        (T, K) right slopes of the losses at increasing thresholds (T, K), such as
        `Sums.loss_slopes`.
    losses : Losses
    start : (T,) array
        Approximate thresholds, near which the search begins.

    Notes
    -----
    Where b must be in order, adjacent thresholds out of order are pooled, and so are
    pools, until all are in order. This is the algorithm of isotonic regression, which
    holds for sums of convex functions.
    """
    pool = np.arange(losses.T)
    b = _minimisers(slopes, losses, pool, start)
    while losses.ordered and (np.diff(b) < 0).any():
        tied = np.concatenate([[True], (np.diff(b) >= 0) & (np.diff(pool) > 0)])
        pool = np.cumsum(tied) - 1
        b = _minimisers(slopes, losses, pool, b)
    return b


def _minimisers(
    slopes: Slopes, losses: Losses, pool: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return thresholds (T,) that are equal for the groups of each pool."""
    first = np.searchsorted(pool, np.arange(pool[-1] + 1))

    def pooled(each: np.ndarray) -> np.ndarray:
        """Return the sums over the groups of each pool."""
        return np.asarray(np.add.reduceat(each, first, axis=0))

    price = pooled(losses.price[:, None])

    def at(grid: np.ndarray) -> np.ndarray:
        """Return the slopes of the losses by the threshold of each pool."""
        return pooled(slopes(grid[pool]))

    centre = pooled(start[:, None]) / np.bincount(pool)[:, None]
    far = centre + np.array([-_FAR, _FAR])
    S = at(far)
    # An interval of minimisers has the slope 0; rounding must not choose one of its
    # ends. The two levels bracket 0, and the middle of their places is returned.
    level = _EQUAL * (S[:, 1:] - S[:, :1]) * [-1.0, 1.0]
    near = centre + np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
    grid = np.concatenate([far[:, :1], near, far[:, 1:]], axis=1)
    S = np.concatenate([S[:, :1], at(near), S[:, 1:]], axis=1)
    low, high = _brackets(grid, S + price * grid, level)
    evenly = np.linspace(0, 1, _POINTS + 1)[1:-1]
    while True:
        wide = high - low > _RESOLVED * np.maximum(1.0, np.abs(high))
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
    """Return neighbours on a grid, (pools, 2), between which S reaches the level.

    S < level holds at the left one, and not at the right one.
    """
    high = (S[:, :, None] < level[:, None, :]).sum(axis=1)
    last = grid.shape[1] - 1
    left = np.take_along_axis(grid, np.clip(high - 1, 0, last), axis=1)
    return left, np.take_along_axis(grid, np.clip(high, 0, last), axis=1)
