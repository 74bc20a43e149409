"""Fits of NPSVOR on the kernel matrix or a factor of it, one or a path of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._dual.admm import solve_admm
from .._dual.driver import least_rows
from .._dual.factors import Factor, LowRankFactor, NoFactor, exact_factor
from .._dual.feasible import project
from .._dual.gram import gram_in_time
from .._dual.path import along, records, values
from .._dual.program import Program
from .._input.problem import Problem
from .._input.types import Kernel
from .._kernel_matrix.tiles import Products
from .._model.convergence import Status
from .._model.monitor import Monitor, OutOfTime
from .._model.support import support_rows
from .losses import Point, program_of
from .model import NpsvorModel, of_present

MAX_ITER = {"smo": 10_000_000, "admm": 1000}


@dataclass(frozen=True, slots=True)
class Job:
    """Checked options: the same for every point of a path, and for the folds."""

    kernel: Kernel
    points: list[Point]
    cost: np.ndarray | None
    normalize: bool
    solver: str
    admm: dict[str, Any]
    max_iter: int
    tol: float
    n_threads: int
    cache_mb: float
    monitor: Monitor

    def among(self, problem: Problem, rows: np.ndarray) -> Job:
        """The same for a problem of these rows, with the basis rows that are among
        them."""
        basis = self.admm.get("basis")
        if not isinstance(basis, np.ndarray):
            return self
        here = np.flatnonzero(np.isin(rows, basis))
        return replace(self, admm={**self.admm, "basis": here})

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[NpsvorModel], list[np.ndarray]]:
        """A model a point, and the numbers of its support rows."""
        cost = 1 - np.eye(problem.n_classes) if self.cost is None else self.cost
        present = np.flatnonzero(problem.present)
        programs = [
            program_of(point, cost, problem.rank, problem.weight, present)
            for point in self.points
        ]
        if self.solver == "smo":
            return self._smo(problem, programs, self.max_iter, None, products)
        return self._admm(problem, programs, products, **self.admm)

    def _smo(
        self,
        problem: Problem,
        programs: list[Program],
        max_iter: int,
        starts: list[np.ndarray] | None,
        products: Products | None,
    ) -> tuple[list[NpsvorModel], list[np.ndarray]]:
        threads, least = self.n_threads, least_rows(1)
        gram = gram_in_time(
            self.monitor, self.kernel, problem.X, self.cache_mb, threads, least,
            products,
        )  # fmt: skip
        found = along(
            gram, programs, tol=self.tol, max_iter=max_iter, n_threads=threads,
            monitor=self.monitor, starts=starts,
        )  # fmt: skip
        models: list[NpsvorModel] = []
        used: list[np.ndarray] = []
        for program, s in zip(programs, found, strict=True):
            rows = np.flatnonzero(s.g.any(axis=(0, 1)))
            used.append(rows)
            models.append(
                self._model(
                    problem, program, s.g, s.f, -s.b[:, 0], rows, s.g[:, 0, rows].T,
                    status=s.status, n_iter=s.n_iter, violation=s.violation,
                    reached=s.reached,
                )
            )  # fmt: skip
        return models, used

    def _admm(
        self, problem: Problem, programs: list[Program], products: Products | None,
        rho: float, e_abs: float, e_rel: float, polish: bool, basis: Any,
    ) -> tuple[list[NpsvorModel], list[np.ndarray]]:  # fmt: skip
        X, n_ranks = problem.X, len(programs[0].lo)
        factor: Factor | NoFactor
        # far from what the residuals can see
        allowed = 1e-4 * rho * min(filter(None, (e_abs, e_rel)), default=0.0)
        threads = self.n_threads
        try:
            with self.monitor.stage("factor of K"), self.monitor.limited():
                if basis is None:
                    factor = exact_factor(
                        self.kernel, X, rho, allowed, threads, products
                    )
                else:
                    factor = LowRankFactor(self.kernel, X, rho, basis, threads)
        except OutOfTime:
            factor = NoFactor()
        out = solve_admm(
            factor, programs, rho=rho, e_abs=e_abs, e_rel=e_rel,
            max_iter=self.max_iter, n_threads=self.n_threads, monitor=self.monitor,
        )  # fmt: skip
        points = [slice(i, i + n_ranks) for i in range(0, len(out.g), n_ranks)]
        # the model is ADMM's g, whose sum is 0; the certificate's lower end is at the
        # nearest point that also keeps to the box
        inside = [
            project(out.g[point, None], program.lo, program.hi)
            for program, point in zip(programs, points, strict=True)
        ]
        if polish and not self.monitor.late():
            if self.monitor.max_time is None:  # it will not be asked again
                factor = NoFactor()  # its memory is as large as that of the rows of K
            job = replace(self, monitor=self.monitor.to_tol(self.tol))
            try:
                with job.monitor.stage("polish"):
                    return job._smo(
                        problem, programs, MAX_ITER["smo"], inside, products
                    )
            except OutOfTime:  # before SMO could begin
                pass
        G = factor.product(out.g)
        G_inside = factor.product(np.concatenate(inside)[:, 0])
        rows, coef = factor.support, factor.coefficients(out.g)
        models = []
        for program, point, nearest in zip(programs, points, inside, strict=True):
            ratio, b = out.ratio[point], out.b[point]
            status = Status.CONVERGED if not (ratio > 1).any() else out.status
            models.append(
                self._model(
                    problem, program, out.g[point, None], G[point], b,
                    rows, coef[:, point], status=status, n_iter=out.n_iter[point],
                    violation=ratio, reached=ratio <= 1,
                    dual=values(program, nearest, G_inside[point], -b[:, None])[1],
                )
            )  # fmt: skip
        return models, [rows] * len(models)

    def _model(
        self, problem: Problem, program: Program, g: np.ndarray, f: np.ndarray,
        b: np.ndarray, rows: np.ndarray, coef: np.ndarray, *, status: Status,
        n_iter: np.ndarray, violation: np.ndarray, reached: np.ndarray,
        dual: np.ndarray | None = None,
    ) -> NpsvorModel:  # fmt: skip
        """A model of the given support rows; `dual` where g is not feasible."""
        primal, at_g = values(program, g, f, -b[:, None])
        parts = records(
            self.monitor, status, reached, n_iter, violation, primal,
            at_g if dual is None else dual,
        )  # fmt: skip
        return of_present(
            problem, self.kernel, support_rows(self.kernel, problem.X, rows), coef, b,
            np.einsum("pn,pn->p", g[:, 0], f), parts, normalize=self.normalize,
            cost=self.cost,
        )  # fmt: skip
