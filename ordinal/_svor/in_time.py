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
from .on_basis import job_on


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
            return self._on_basis(choice, problem, watch, costs, None)

        if start is not None and start.dual is None:  # a fold, as the whole was fitted
            choice = BasisChoice("random", start.coef.size)
            fold = self._on_basis(choice, problem, rough(monitor), costs, start)
            return [fold], None
        model, used, record = nearer_in_time(whole, on_basis, n, monitor)
        return [replace(model, convergence=record)], used

    def _on_basis(
        self,
        choice: BasisChoice,
        problem: Problem,
        monitor: Monitor,
        costs: list[float],
        start: SvorModel | None,
    ) -> SvorModel:
        job = self.job
        made = job_on(
            choice, problem, costs[0], method=job.method, kernel=job.kernel,
            cost=job.cost, n_threads=job.n_threads, cache_mb=job.cache_mb,
            max_iter=self.steps, seed=self.seed, monitor=monitor,
        )  # fmt: skip
        return made.fit(problem, costs, start)[0][0]
