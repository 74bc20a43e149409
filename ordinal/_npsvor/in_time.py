"""Fits of NPSVOR to very many rows within a time (`_basis.in_time`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._basis.in_time import Ways, fit_in_time
from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._kernel_matrix.tiles import Products
from .._model.monitor import Monitor
from .job import Job
from .model import NpsvorModel
from .on_basis import job_on


@dataclass(frozen=True, slots=True)
class JobInTime:
    """A `Job` with a limit of time; `seed` draws samples and the basis, on which at
    most `steps` Newton steps are taken. `sampled` says whether models of a sample of
    the rows will do."""

    job: Job
    seed: int
    steps: int
    sampled: bool

    def among(self, problem: Problem, rows: np.ndarray) -> JobInTime:
        """The same for a problem of these rows."""
        return self

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[NpsvorModel], list[np.ndarray] | None]:
        """A model a point."""
        job = self.job

        def exact(
            part: Problem, watch: Monitor
        ) -> tuple[list[NpsvorModel], list[np.ndarray]]:
            given = products if part is problem else None
            return replace(job, monitor=watch).fit(part, given)

        def on_basis(
            choice: BasisChoice, watch: Monitor, points: Sequence[int]
        ) -> list[NpsvorModel]:
            made = job_on(
                choice, problem, kernel=job.kernel, cost=job.cost,
                points=[job.points[i] for i in points], normalize=job.normalize,
                max_iter=self.steps, n_threads=job.n_threads, cache_mb=job.cache_mb,
                seed=self.seed, monitor=watch,
            )  # fmt: skip
            return made.fit(problem)[0]

        ways = Ways(
            exact=exact, on_basis=on_basis, points=len(job.points), begun=False,
            sampled=self.sampled, cache_mb=job.cache_mb, seed=self.seed,
        )  # fmt: skip
        return fit_in_time(ways, problem, job.kernel, job.monitor)
