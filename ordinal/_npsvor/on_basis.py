"""Fits of NPSVOR on a basis, one or a path of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._basis.fitting import BasisOptions, record
from .._basis.proximal import Solution
from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._kernel_matrix.tiles import Products
from .._model.support import kept
from .losses import Point, losses_of
from .model import NpsvorModel, of_present


def job_on(choice: BasisChoice, problem: Problem, **options: Any) -> BasisJob:
    """A job on the basis that a choice means for a problem; its size, if that is to be
    found, by models of the last point."""
    return BasisJob.on(choice, problem, _last, **options)


def _last(job: BasisJob, problem: Problem) -> NpsvorModel:
    return replace(job, points=job.points[-1:]).fit(problem)[0][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BasisJob(BasisOptions):
    """Options with those of the method."""

    points: list[Point]
    normalize: bool

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[NpsvorModel], None]:
        """A model a point; they have their support rows in common."""
        present = np.flatnonzero(problem.present)
        cost = 1 - np.eye(problem.n_classes) if self.cost is None else self.cost
        losses = [losses_of(point, cost, present) for point in self.points]
        found = self.path(problem, problem.rank, losses)
        return [self._model(problem, of) for of in found], None

    def _model(self, problem: Problem, found: Sequence[Solution]) -> NpsvorModel:
        w = np.stack([s.w for s in found], axis=1)
        parts = [record(self.monitor, s) for s in found]
        return of_present(
            problem, self.kernel, kept(self.features.support),
            self.features.coefficients(w), np.array([-s.b[0] for s in found]),
            (w * w).sum(axis=0), parts, normalize=self.normalize, cost=self.cost,
        )  # fmt: skip
