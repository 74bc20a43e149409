"""Fits on a basis, one or a path of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._basis.fitting import BasisOptions, record
from .._basis.proximal import Solution
from .._input.basis import BasisChoice
from .._input.blocks import in_chunks
from .._input.problem import Problem
from .._kernel_matrix.tiles import Evaluator, Products
from .._model.support import kept
from .job import Model, model_of
from .programs import Formulation, Point


def job_on(choice: BasisChoice, problem: Problem, **options: Any) -> BasisJob:
    """A job on the basis that a choice means for a problem; its size, if that is to be
    found, by models of the last point."""
    options["cost"] = options["formulation"].cost
    return BasisJob.on(choice, problem, _last, **options)


def _last(job: BasisJob, problem: Problem) -> Model:
    return replace(job, points=job.points[-1:]).fit(problem)[0][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BasisJob(BasisOptions):
    """Options with those of the method."""

    formulation: Formulation
    points: list[Point]

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[Model], None]:
        """A model a point; they have their support rows in common."""
        losses = [self.formulation.losses(point, problem) for point in self.points]
        found = self.path(problem, problem.rank_among_present, losses)
        return [
            self._model(problem, point, of)
            for point, of in zip(self.points, found, strict=True)
        ], None

    def _model(
        self, problem: Problem, point: Point, found: Sequence[Solution]
    ) -> Model:
        support = kept(self.features.support)
        coef = self.features.coefficients(np.stack([s.w for s in found], axis=1))
        intercept = np.array([-s.b[0] for s in found])
        f = None
        if self.formulation.thresholds == "fitted":

            def scores(rows: Any) -> np.ndarray:
                values = Evaluator(self.kernel, rows, support, self.n_threads)
                return np.asarray(values.product(coef)[:, 0] + intercept[0])

            f = in_chunks(scores, problem.X)
        parts = [record(self.monitor, s) for s in found]
        return model_of(
            self.formulation, point, problem, self.kernel, support, coef, intercept,
            parts, f,
        )  # fmt: skip
