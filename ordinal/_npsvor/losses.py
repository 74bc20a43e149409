"""The programs of NPSVOR: one a rank, over the same rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .._basis.fitting import by_problem
from .._basis.losses import Losses
from .._dual.program import Program

Point: TypeAlias = tuple[float, float, float]  # C1, C2, epsilon


def program_of(
    point: Point,
    cost: np.ndarray,
    rank: np.ndarray,
    weight: np.ndarray,
    present: np.ndarray,
) -> Program:
    """(D) of every rank of `present`, which have training rows, a problem each."""
    C1, C2, epsilon = point
    ranks = present[:, None, None]
    own, above = rank == ranks, rank > ranks
    other = C2 * weight * cost[rank, ranks]
    C = np.where(own, C1 * weight, other)
    outer = np.where(above, -1.0, 1.0)  # slope of phi where y_i != k
    return Program(
        lo=np.where(above, 0.0, -C),
        hi=np.where(own | above, C, 0.0),
        pn=np.where(own, -epsilon, outer),
        pp=np.where(own, epsilon, outer),
    )


def losses_of(point: Point, cost: np.ndarray, present: np.ndarray) -> list[Losses]:
    """The same by rank, for a fit on a basis."""
    rank = np.arange(len(cost))
    q = program_of(point, cost, rank, np.ones(rank.size), present)
    return by_problem(q.lo, q.hi, q.pn, q.pp)
