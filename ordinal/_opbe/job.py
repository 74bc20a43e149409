"""Fits of OPBE on the whole kernel matrix, one or a path of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._dual.driver import Solution, least_rows
from .._dual.gram import gram_in_time
from .._dual.path import along, records, values
from .._dual.program import Program
from .._input.problem import Problem
from .._input.types import Kernel
from .._kernel_matrix.tiles import Products
from .._model.monitor import Monitor
from .._model.support import support_rows
from .model import OpbeModel, model_of
from .threes import Three, threes

MAX_ITER = 10_000_000


@dataclass(frozen=True, slots=True)
class Job:
    """Checked options of a fit."""

    kernel: Kernel
    n_threads: int
    cache_mb: float
    max_iter: int
    monitor: Monitor

    def fit(
        self, problem: Problem, costs: Sequence[float], products: Products | None = None
    ) -> tuple[list[OpbeModel], list[np.ndarray]]:
        """A model a C, and the numbers of its support rows."""
        watch = self.monitor
        gram = gram_in_time(
            watch, self.kernel, problem.X, self.cache_mb, self.n_threads, least_rows(2),
            products,
        )  # fmt: skip
        some = threes(int(problem.present.sum()))
        paths: list[list[tuple[Program, Solution]]] = []
        for three in some:
            unit = three.program(problem.rank_among_present, problem.weight)
            programs = [replace(unit, lo=C * unit.lo, hi=C * unit.hi) for C in costs]
            found = along(
                gram, programs, tol=watch.tol, max_iter=self.max_iter,
                n_threads=self.n_threads, monitor=watch,
            )  # fmt: skip
            paths.append(list(zip(programs, found, strict=True)))
            watch = watch.after(sum(int(s.n_iter.sum()) for _, s in paths[-1]))
        models, used = [], []
        for C, *at in zip(costs, *paths, strict=True):
            model, rows = self._model(problem, C, some, at)
            models.append(model)
            used.append(rows)
        return models, used

    def _model(
        self,
        problem: Problem,
        C: float,
        some: list[Three],
        found: list[tuple[Program, Solution]],
    ) -> tuple[OpbeModel, np.ndarray]:
        q = int(problem.present.sum())
        beta, thresholds = np.zeros((q, problem.n_samples)), np.zeros((q, 2))
        parts: list[Any] = [None] * q
        for three, (program, s) in zip(some, found, strict=True):
            beta[three.ranks] = s.g.sum(axis=1)
            thresholds[three.ranks] = three.both(s.b, q)
            primal, dual = values(program, s.g, s.f, s.b)
            made = records(
                self.monitor, s.status, s.reached, s.n_iter, s.violation, primal, dual
            )
            for k, part in zip(three.ranks, made, strict=True):
                parts[k] = part
        rows = np.flatnonzero(beta.any(axis=0))
        support = support_rows(self.kernel, problem.X, rows)
        coef = beta[:, rows].T
        model = model_of(problem, self.kernel, support, C, coef, thresholds, parts)
        return model, rows
