"""The programs of NPSVOR, one per rank over the same rows, and its model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._input.problem import Problem
from .._input.types import AnyBasis
from .._input.weights import optional_cost
from .._programs.family import Family, Solved
from .._programs.losses import Losses
from .._programs.on_basis import by_problem
from .._programs.program import Program
from .model import NpsvorModel, of_present


class Parameters(NamedTuple):
    """Parameters that may differ between the points of a path."""

    C1: float
    C2: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class Npsvor(Family[Parameters, NpsvorModel]):
    """NPSVOR for a `function`; solved by SMO or on a basis."""

    function: str
    cost: Any
    normalize: bool

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return self.function

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Return the method with its cost checked; raise if it is unusable."""
        return replace(self, cost=optional_cost(self.cost, problem.n_classes))

    def programs(self, point: Parameters, problem: Problem) -> list[Program]:
        """Return (D) of every rank that has training rows."""
        return [self._program(point, problem, problem.rank, problem.weight)]

    def losses(self, point: Parameters, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, in every problem."""
        rank = np.arange(problem.n_classes)
        q = self._program(point, problem, rank, np.ones(rank.size))
        return by_problem(q.lo, q.hi, q.pn, q.pp)

    def rank(self, problem: Problem) -> np.ndarray:
        """Return the ranks, of which every one has an entry in the losses."""
        return problem.rank

    def model(self, point: Parameters, problem: Problem, solved: Solved) -> NpsvorModel:
        """Return the model of one point."""
        return of_present(
            problem,
            solved.options.kernel,
            solved.support,
            solved.coef,
            np.array([-b[0] for b in solved.b]),
            solved.squared_norms(),
            solved.records(),
            normalize=self.normalize,
            cost=self.cost,
        )

    def _program(
        self, point: Parameters, problem: Problem, rank: np.ndarray, weight: np.ndarray
    ) -> Program:
        """Return (D) of every rank k over rows of these ranks and weights."""
        cost = 1 - np.eye(problem.n_classes) if self.cost is None else self.cost
        k = np.flatnonzero(problem.present)[:, None, None]
        own, above = rank == k, rank > k
        C = np.where(own, point.C1 * weight, point.C2 * weight * cost[rank, k])
        outer = np.where(above, -1.0, 1.0)  # slope of phi where y_i != k
        return Program(
            lo=np.where(above, 0.0, -C),
            hi=np.where(own | above, C, 0.0),
            pn=np.where(own, -point.epsilon, outer),
            pp=np.where(own, point.epsilon, outer),
        )
