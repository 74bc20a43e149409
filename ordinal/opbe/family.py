"""The programs of OPBE, "before, here or after" each rank, and its model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._input.problem import Problem
from .._programs.family import Family, Solved
from .._programs.losses import Losses
from .._programs.on_basis import by_problem
from .._programs.program import Program
from .model import OpbeModel, model_of


class RankProblems(NamedTuple):
    """Problems with equally many thresholds.

    Attributes
    ----------
    ranks : (P,) array
        The rank of each problem, numbered among those with training rows.
    above : (P, T, q) array of bool
        Whether a row of each rank is above each threshold.
    """

    ranks: np.ndarray
    above: np.ndarray

    def program(self, rank: np.ndarray, width: np.ndarray) -> Program:
        """Return (D) for rows of these ranks and widths of their boxes."""
        above = self.above[:, :, rank]
        slope = np.where(above, -1.0, 1.0)
        return Program(
            lo=np.where(above, 0.0, -width),
            hi=np.where(above, width, 0.0),
            pn=slope,
            pp=slope,
        )

    def before_and_after(self, b: np.ndarray, q: int) -> np.ndarray:
        """Return the thresholds before and after each rank, (P, 2), from (P, T)."""
        first, last = self.ranks == 0, self.ranks == q - 1
        return np.stack(
            [np.where(first, -np.inf, b[:, 0]), np.where(last, np.inf, b[:, -1])],
            axis=1,
        )


def problems_of(q: int) -> list[RankProblems]:
    """Return the problems of the two ranks at the ends, and of the q - 2 others."""
    rank, inner = np.arange(q), np.arange(1, q - 1)
    cut = np.array([0, q - 2])  # the last rank below the threshold
    ends = RankProblems(np.array([0, q - 1]), (rank > cut[:, None])[:, None])
    if not inner.size:
        return [ends]
    cuts = np.stack([inner - 1, inner], axis=1)
    return [ends, RankProblems(inner, rank > cuts[:, :, None])]


@dataclass(frozen=True, slots=True)
class Opbe(Family[float, OpbeModel]):
    """OPBE; a point is its C."""

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return "fit_opbe"

    def programs(self, point: float, problem: Problem) -> list[Program]:
        """Return (D) of the ranks at the ends, and of the others."""
        rank, weight = problem.rank_among_present, problem.weight
        units = [of.program(rank, weight) for of in _problems(problem)]
        return [replace(q, lo=point * q.lo, hi=point * q.hi) for q in units]

    def losses(self, point: float, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, in every problem."""
        groups = _problems(problem)
        q = sum(of.ranks.size for of in groups)
        programs = [of.program(np.arange(q), np.full(q, point)) for of in groups]
        return [of for p in programs for of in by_problem(p.lo, p.hi, p.pn, p.pp)]

    def model(self, point: float, problem: Problem, solved: Solved) -> OpbeModel:
        """Return the model of one C, with its problems in the order of the ranks."""
        groups = _problems(problem)
        order = np.argsort(np.concatenate([of.ranks for of in groups]))
        b, both = iter(solved.b), []
        for of in groups:
            own = np.stack([next(b) for _ in of.ranks])
            both.append(of.before_and_after(own, order.size))
        records = solved.records()
        return model_of(
            problem,
            solved.options.kernel,
            solved.support,
            point,
            solved.coef[:, order],
            np.concatenate(both)[order],
            [records[i] for i in order],
        )


def _problems(problem: Problem) -> list[RankProblems]:
    return problems_of(int(problem.present.sum()))
