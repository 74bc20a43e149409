"""Fits of the SVOR family to very many rows within a time (`_basis.in_time`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._basis.in_time import Ways, fit_in_time, rough
from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._kernel_matrix.tiles import Products
from .._model.monitor import Monitor
from .job import Job
from .model import SvorModel
from .on_basis import job_on


@dataclass(frozen=True, slots=True)
class JobInTime:
    """A `Job` of one C with a limit of time; `seed` draws samples and the basis, on
    which at most `steps` Newton steps are taken. `sampled` says whether a model of a
    sample of the rows will do."""

    job: Job
    seed: int
    steps: int
    sampled: bool

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
        job = self.job
        if start is not None and start.dual is None:  # a fold, as the whole was fitted
            choice = BasisChoice("random", start.coef.size)
            watch = rough(job.monitor)
            return [self._on_basis(choice, problem, watch, costs, start)], None

        def exact(
            part: Problem, watch: Monitor
        ) -> tuple[list[SvorModel], list[np.ndarray]]:
            given = (start, products) if part is problem else (None, None)
            return replace(job, monitor=watch).fit(part, costs, *given)

        def on_basis(
            choice: BasisChoice, watch: Monitor, points: Sequence[int]
        ) -> list[SvorModel]:
            return [self._on_basis(choice, problem, watch, costs, None)]

        ways = Ways(
            exact=exact, on_basis=on_basis, points=1, sampled=self.sampled,
            begun=start is not None, cache_mb=job.cache_mb, seed=self.seed,
        )  # fmt: skip
        return fit_in_time(ways, problem, job.kernel, job.monitor)

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
