"""Fits of OPBE on a basis, one or a path of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._basis.fitting import BasisOptions, by_problem, record
from .._basis.losses import Losses
from .._basis.proximal import Solution
from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._model.support import kept
from .model import OpbeModel, model_of
from .threes import Three, threes


def job_on(
    choice: BasisChoice, problem: Problem, costs: Sequence[float], **options: Any
) -> BasisJob:
    """A job on the basis that a choice means for a problem; its size, if that is to be
    found, by models of the last C."""

    def trial(job: BasisJob, part: Problem) -> OpbeModel:
        return job.fit(part, costs[-1:])[0][0]

    return BasisJob.on(choice, problem, trial, cost=None, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasisJob(BasisOptions):
    """Checked options of a fit."""

    def fit(
        self, problem: Problem, costs: Sequence[float]
    ) -> tuple[list[OpbeModel], None]:
        """A model a C; they have their support rows in common."""
        q = int(problem.present.sum())
        some = threes(q)
        points = [_losses(some, q, C) for C in costs]
        found = self.path(problem, problem.rank_among_present, points)
        return [
            self._model(problem, C, some, of)
            for C, of in zip(costs, found, strict=True)
        ], None

    def _model(
        self,
        problem: Problem,
        C: float,
        some: list[Three],
        found: Sequence[Solution],
    ) -> OpbeModel:
        order = np.argsort(np.concatenate([three.ranks for three in some]))
        q, rest = order.size, list(found)
        both = []
        for three in some:
            b = np.stack([rest.pop(0).b for _ in three.ranks])
            both.append(three.both(b, q))
        w = np.stack([found[i].w for i in order], axis=1)
        return model_of(
            problem, self.kernel, kept(self.features.support), C,
            self.features.coefficients(w), np.concatenate(both)[order],
            [record(self.monitor, found[i]) for i in order],
        )  # fmt: skip


def _losses(some: list[Three], q: int, C: float) -> list[Losses]:
    """Those of all problems, in the order of `some`."""
    programs = [three.program(np.arange(q), np.full(q, C)) for three in some]
    return [of for p in programs for of in by_problem(p.lo, p.hi, p.pn, p.pp)]
