"""Fits of the SVOR family to very many rows within a time (`_basis.in_time`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._basis.in_time import nearer_in_time, rough
from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._kernel_matrix.tiles import Products
from .._model.monitor import Monitor
from .job import Job
from .model import SvorModel
from .on_basis import BasisJob, job_on


@dataclass(frozen=True, slots=True)
class JobInTime:
    """A `Job` with a limit of time; `seed` draws the basis, of which at most `steps`
    Newton steps are taken."""

    job: Job
    seed: int
    steps: int

    def among(self, problem: Problem, rows: np.ndarray) -> JobInTime:
        """The same for a problem of these rows."""
        return self

    def fit(
        self,
        problem: Problem,
        costs: list[float],
        start: SvorModel | None,
        products: Products | None = None,
    ) -> tuple[list[SvorModel], list[np.ndarray] | None]:
        """A model of the only C."""
        n, monitor = problem.n_samples, self.job.monitor

        def whole(watch: Monitor) -> tuple[SvorModel, list[np.ndarray]]:
            job = replace(self.job, monitor=watch)
            (model,), used = job.fit(problem, costs, start, products)
            return model, used

        def on_basis(choice: BasisChoice, watch: Monitor) -> SvorModel:
            return self._on(choice, problem, watch, costs[0]).fit(problem, costs, near)[
                0
            ][0]

        near = None
        if start is not None and start.dual is None:  # a fold, as the whole was fitted
            near, choice = start, BasisChoice("random", start.coef.size)
            return [on_basis(choice, rough(monitor))], None
        model, used, record = nearer_in_time(whole, on_basis, n, monitor)
        return [replace(model, convergence=record)], used

    def _on(
        self, choice: BasisChoice, problem: Problem, monitor: Monitor, C: float
    ) -> BasisJob:
        job = self.job
        return job_on(
            choice, problem, C, method=job.method, kernel=job.kernel, cost=job.cost,
            n_threads=job.n_threads, cache_mb=job.cache_mb, max_iter=self.steps,
            seed=self.seed, monitor=monitor,
        )  # fmt: skip
