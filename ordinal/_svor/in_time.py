"""Fits of very many rows within a time: to the whole kernel matrix, or on a basis.

A solver of the quadratic program that is stopped early may be far from the optimum, and
further than the optimum on a basis is. Both are points of the same (P), so that its
value tells which of them is nearer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._kernel_matrix.tiles import Products
from .._model.convergence import Status
from .job import Job
from .model import SvorModel
from .on_basis import BasisJob, job_on

MANY = 20_000  # rows, from which on a basis may be of use

_SHARE = 0.5  # of the time, for the whole kernel matrix
# Seconds of a fit to n rows on m basis rows are below n m^2 times this. Half of the
# time that is left is not planned for, lest others use the processor
_COST = 5e-10
_LEAST, _MOST = 50, 2000  # basis rows
_GAP = 1e-3  # relative, on the basis, whose distance from the whole kernel is larger


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
        if start is not None and start.dual is None:  # a fold, as the whole was fitted
            return self._on_basis(problem, costs[0]).fit(problem, costs, start)
        part = self.job.monitor.within(_SHARE)
        (whole,), used = replace(self.job, monitor=part).fit(
            problem, costs, start, products
        )
        if whole.convergence.status is not Status.MAX_TIME:
            return [whole], used
        (other,), _ = self._on_basis(problem, costs[0]).fit(problem, costs, None)
        a, b = whole.convergence, other.convergence
        seconds = self.job.monitor.seconds
        if not b.primal < a.primal:
            return [replace(whole, convergence=replace(a, seconds=seconds))], used
        record = replace(
            a, n_iter=a.n_iter + b.n_iter, primal=b.primal, seconds=seconds
        )
        return [replace(other, convergence=record)], None

    def _on_basis(self, problem: Problem, C: float) -> BasisJob:
        """On as many rows as there is time for."""
        job, limit = self.job, self.job.monitor.max_time
        assert limit is not None
        left = max(limit - job.monitor.seconds, 0.0)
        m = math.isqrt(int(0.5 * left / (_COST * problem.n_samples)))
        return job_on(
            BasisChoice("random", min(max(m, _LEAST), _MOST)), problem, C,
            method=job.method, kernel=job.kernel, cost=job.cost,
            n_threads=job.n_threads, cache_mb=job.cache_mb, max_iter=self.steps,
            seed=self.seed, monitor=job.monitor.to_tol(max(_GAP, job.monitor.tol)),
        )  # fmt: skip
