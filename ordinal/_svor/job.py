"""Fits of the SVOR family on the whole kernel matrix, one or a path of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._dual.driver import Solution, least_rows
from .._dual.gram import gram_in_time
from .._dual.path import along
from .._dual.program import Program
from .._input.problem import Problem, around_ranks
from .._input.sparse import frozen
from .._input.types import Kernel
from .._kernel_matrix.tiles import Products
from .._model.monitor import Monitor
from .._model.support import support_rows
from .losses import best_thresholds, program_of, weighed
from .model import Method, SvorModel
from .start import start_from


@dataclass(frozen=True, slots=True)
class Job:
    """Checked options, the same for the fit of all rows and those of the folds."""

    method: Method
    kernel: Kernel
    cost: np.ndarray | None
    n_threads: int
    cache_mb: float
    max_iter: int
    monitor: Monitor

    def among(self, problem: Problem, rows: np.ndarray) -> Job:
        """The same for a problem of these rows."""
        return self

    def fit(
        self,
        problem: Problem,
        costs: list[float],
        start: SvorModel | None,
        products: Products | None = None,
    ) -> tuple[list[SvorModel], list[np.ndarray]]:
        """A model a C, and the numbers of its support rows."""
        unit = program_of(
            self.method, self.cost, problem.rank_among_present,
            np.flatnonzero(problem.present),
        )  # fmt: skip
        threads, least = self.n_threads, least_rows(unit.lo.shape[1])
        gram = gram_in_time(
            self.monitor, self.kernel, problem.X, self.cache_mb, threads, least,
            products,
        )  # fmt: skip
        programs = [weighed(unit, C * problem.weight) for C in costs]
        begin = None
        if start is not None:
            begin = start_from(start, problem, programs[0], costs[0])
        found = along(
            gram, programs, tol=self.monitor.tol, max_iter=self.max_iter,
            n_threads=threads, monitor=self.monitor, begin=begin,
        )  # fmt: skip
        unit = weighed(unit, problem.weight)
        return self._models(problem, unit, costs, list(found))

    def _models(
        self,
        problem: Problem,
        unit: Program,
        costs: list[float],
        found: list[Solution],
    ) -> tuple[list[SvorModel], list[np.ndarray]]:
        """A model a solution, and its support rows; `unit` is of C = 1."""
        present, r = np.flatnonzero(problem.present), problem.n_classes
        C = np.array(costs)
        g = np.concatenate([s.g for s in found])
        f = np.concatenate([s.f for s in found])
        b = best_thresholds(unit, C, found, f)
        half = 0.5 * np.einsum("cn,cn->c", g.sum(axis=1), f)
        slope, width = unit.pp[0], (unit.hi - unit.lo)[0]
        slack = np.maximum(1 + slope * (f[:, None] - b[:, :, None]), 0)
        primal = half + C * np.einsum("ctn,tn->c", slack, width)
        dual = -half - np.einsum("ctn,tn->c", g, slope)
        if unit.price is not None:
            z = np.concatenate([s.z for s in found])
            primal += 0.5 * b**2 @ unit.price
            dual -= 0.5 * (z**2 / unit.price).sum(axis=1)

        models, used = [], [np.flatnonzero(s.g.any(axis=(0, 1))) for s in found]
        for c, (s, rows) in enumerate(zip(found, used, strict=True)):
            # by columns, which are summed one after the other: those of absent ranks,
            # all 0, then change no bit of `coef`
            alphas = np.zeros((rows.size, r - 1), order="F")
            alphas[:, present[:-1]] = s.g[0][:, rows].T
            model = SvorModel(
                method=self.method,
                support=support_rows(self.kernel, problem.X, rows),
                coef=frozen(alphas.sum(axis=1)),
                dual=frozen(alphas),
                thresholds=frozen(around_ranks(b[c], present, r)),
                C=costs[c],
                cost=self.cost,
                classes=frozen(problem.classes),
                kernel=self.kernel,
                n_features=problem.n_features,
                feature_names=problem.feature_names,
                link=None,
                convergence=self.monitor.record(
                    s.status, s.n_iter[0], s.violation[0], primal[c], dual[c]
                ),
            )
            models.append(model)
        return models, used
