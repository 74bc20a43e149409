"""What tells the methods of the SVOR family apart: the program of each, and the
thresholds that are best for given scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._basis.fitting import by_problem
from .._basis.losses import Losses
from .._dual.driver import Solution
from .._dual.program import Program
from .._input.costs import absolute_cost
from .model import Method


def program_of(
    method: Method, cost: np.ndarray | None, rank: np.ndarray, present: np.ndarray
) -> Program:
    """(D) with boxes for weight 1, a group for each threshold between the ranks
    `present`, which have rows; `rank` holds places among these."""
    cost = _default_cost(method, present[-1] + 1) if cost is None else cost
    step = np.abs(np.diff(cost[np.ix_(present, present)], axis=1))
    above = rank > np.arange(present.size - 1)[:, None]
    width, slope = step[rank].T, np.where(above, -1.0, 1.0)[None]
    return Program(
        lo=np.where(above, 0.0, -width)[None],
        hi=np.where(above, width, 0.0)[None],
        pn=slope,
        pp=slope,
        coupled=method == "svorex",
        price=np.diff(present).astype(float) if method == "redsvm" else None,
    )


def losses_of(
    method: Method, cost: np.ndarray | None, present: np.ndarray, C: float
) -> Losses:
    """The same by rank, for a fit on a basis."""
    q = weighed(program_of(method, cost, np.arange(present.size), present), C)
    return by_problem(q.lo, q.hi, q.pn, q.pp, q.coupled, q.price)[0]


def _default_cost(method: Method, r: int) -> np.ndarray:
    absolute = method in ("svorim", "redsvm")
    return absolute_cost(r) if absolute else np.minimum(absolute_cost(r), 1)


def weighed(unit: Program, weight: np.ndarray | float) -> Program:
    return replace(unit, lo=weight * unit.lo, hi=weight * unit.hi)


def best_thresholds(
    unit: Program, C: np.ndarray, found: list[Solution], f: np.ndarray
) -> np.ndarray:
    """b that minimises (P) for the scores f (c, n) of each C; the middle, if an
    interval does.

    The slope of (P) by b_j is price_j b_j + C times the widths of all f_i + slope_ij <=
    b_j, less C times the widths of the rows below the threshold.
    """
    if unit.coupled:
        return np.concatenate([s.b for s in found])
    v = f[:, None] + unit.pp
    order = np.argsort(v, axis=2)
    every = np.arange(v.shape[1])[:, None]
    sums = np.cumsum((unit.hi - unit.lo)[0][every, order], axis=2)
    below = -unit.lo[0].sum(axis=1, keepdims=True)
    v = np.take_along_axis(v, order, axis=2)

    def at(a: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.take_along_axis(a, k[:, :, None], axis=2)[:, :, 0]

    if unit.price is None:
        rounding = 1e-12 * sums[:, :, -1:]
        first = (sums < below - rounding).sum(axis=2)
        last = (sums < below + rounding).sum(axis=2)
        return np.asarray(
            0.5 * (at(v, first) + at(v, np.minimum(last, v.shape[2] - 1)))
        )
    C, price = C[:, None, None], unit.price[:, None]
    none, end = np.zeros((*v.shape[:2], 1)), np.full((*v.shape[:2], 1), np.inf)
    v, through = np.concatenate([v, end], axis=2), np.concatenate([sums, end], axis=2)
    # the slope is >= 0 right of v[k], but not right of v[k - 1]
    k = (price * v + C * through >= C * below).argmax(axis=2)
    left_of = at(np.concatenate([none, sums], axis=2), k)[:, :, None]
    return np.asarray(np.minimum((C * (below - left_of) / price)[:, :, 0], at(v, k)))
