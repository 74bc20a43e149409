"""Fits of NPSVOR to very many rows within a time (`_basis.in_time`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._basis.in_time import nearer_in_time
from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._kernel_matrix.tiles import Products
from .._model.monitor import Monitor
from .job import Job
from .model import NpsvorModel
from .on_basis import job_on


@dataclass(frozen=True, slots=True)
class JobInTime:
    """A `Job` of one point with a limit of time; `seed` draws the basis, of which at
    most `steps` Newton steps are taken."""

    job: Job
    seed: int
    steps: int

    def among(self, problem: Problem, rows: np.ndarray) -> JobInTime:
        """The same for a problem of these rows."""
        return self

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[NpsvorModel], list[np.ndarray] | None]:
        """A model of the only point."""
        job, ranks = self.job, np.count_nonzero(problem.present)

        def whole(watch: Monitor) -> tuple[NpsvorModel, list[np.ndarray]]:
            (model,), used = replace(job, monitor=watch).fit(problem, products)
            return model, used

        def on_basis(choice: BasisChoice, watch: Monitor) -> NpsvorModel:
            made = job_on(
                choice, problem, kernel=job.kernel, points=job.points, cost=job.cost,
                normalize=job.normalize, max_iter=self.steps, n_threads=job.n_threads,
                cache_mb=job.cache_mb, seed=self.seed, monitor=watch,
            )  # fmt: skip
            return made.fit(problem)[0][0]

        model, used, record = nearer_in_time(
            whole, on_basis, problem.n_samples, job.monitor, int(ranks)
        )
        return [replace(model, convergence=record)], used
