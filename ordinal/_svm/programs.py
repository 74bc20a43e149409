"""The programs of support vector machines for ranks: what a row of each rank weighs in
each problem, and on which side of the hyperplane it belongs.

All arrays are of the q ranks that have training rows. A problem has the side -1, 0 or
+1 of each rank, 0 for those that it leaves out, and the width of the box of a row of
weight 1 for C = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .._basis.fitting import by_problem
from .._basis.losses import Losses
from .._dual.program import Program
from .._input.costs import absolute_cost
from .._input.problem import Problem

Method: TypeAlias = Literal["svc", "svr", "cssvc", "svmop"]
Decomposition: TypeAlias = Literal["one_vs_one", "one_vs_all", "ordered"]
Thresholds: TypeAlias = Literal["rounded", "fitted"]
Point: TypeAlias = tuple[float, float]  # C, epsilon
_Terms: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Formulation:
    """A method with its options; `decomposition` is None of a regression."""

    method: Method
    decomposition: Decomposition | None
    cost: np.ndarray | None
    thresholds: Thresholds = "rounded"

    def program(self, point: Point, problem: Problem) -> Program:
        """(D) of every hyperplane, a problem each."""
        rank = problem.rank_among_present
        lo, hi, pn, pp = (of[:, None, rank] for of in self._terms(point, problem))
        weight = problem.weight
        return Program(
            lo=lo * weight, hi=hi * weight, pn=pn, pp=pn if self.decomposition else pp
        )

    def losses(self, point: Point, problem: Problem) -> list[Losses]:
        """The same by rank, for a fit on a basis."""
        lo, hi, pn, pp = (of[:, None] for of in self._terms(point, problem))
        return by_problem(lo, hi, pn, pp)

    def _terms(self, point: Point, problem: Problem) -> _Terms:
        """Boxes and slopes of a row of weight 1 and each rank, (P, q)."""
        C, epsilon = point
        present = np.flatnonzero(problem.present)
        if self.decomposition is None:
            t = present[None].astype(float)
            box = np.full(t.shape, C)
            return -box, box, -t - epsilon, epsilon - t
        side = sides(self.decomposition, present.size)
        width = C * np.abs(side)
        if self.method != "svc":
            width = width * self._factors(problem, present, side)
        low, up = np.where(side < 0, -width, 0.0), np.where(side > 0, width, 0.0)
        return low, up, -side, -side

    def _factors(
        self, problem: Problem, present: np.ndarray, side: np.ndarray
    ) -> np.ndarray:
        """Of the width by the distance from the other side, (P, q). What is weighed by
        a distance has, in sum over the rows, the weight that it has without."""
        cost = self.cost
        if cost is None:
            cost = absolute_cost(problem.n_classes)
        cost = cost[np.ix_(present, present)]
        total = np.bincount(problem.rank, problem.weight, problem.n_classes)[present]
        if self.method == "cssvc":
            own = np.eye(present.size)
            return np.asarray(_keeping_sums(cost.T, side < 0, total) + own)
        nearest = np.arange(present.size - 1)[:, None] + (side < 0)
        distance = cost[np.arange(present.size), nearest]
        below = _keeping_sums(distance, side < 0, total)
        return np.asarray(below + _keeping_sums(distance, side > 0, total))


def sides(decomposition: Decomposition, q: int) -> np.ndarray:
    """(P, q) the side of each of q ranks in every problem: of all pairs, of each rank
    against the others, or of the ranks above each but the last against those below."""
    if decomposition == "one_vs_one":
        low, high = np.triu_indices(q, 1)
        side = np.zeros((low.size, q))
        every = np.arange(low.size)
        side[every, low], side[every, high] = -1.0, 1.0
        return side
    if decomposition == "one_vs_all":
        return 2 * np.eye(q) - 1
    return np.where(np.arange(q) > np.arange(q - 1)[:, None], 1.0, -1.0)


def _keeping_sums(
    distance: np.ndarray, some: np.ndarray, total: np.ndarray
) -> np.ndarray:
    """Distances, (P, q), of `some` ranks and 0 of the others, scaled so that they leave
    the sum of the weights `total` of those ranks as it is."""
    inside = np.where(some, distance, 0.0)
    return np.asarray(inside * ((some @ total) / (inside @ total))[:, None])
