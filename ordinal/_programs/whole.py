"""Solve the programs of a family with the whole kernel matrix, by SMO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from .._dual.driver import Solution, least_rows
from .._dual.gram import gram_in_time
from .._dual.path import along, records, values
from .._dual.program import Program
from .._input.problem import Problem
from .._model.folds import parted
from .._model.support import support_rows
from .._watch.convergence import Convergence
from ..kernels.tiles import Products
from .family import Family, KernelOptions, M, P, Solved

MAX_ITER = 10_000_000  # pair steps: some 100 per row at 100 000 rows


class WholeSolution(Solved):
    """Solutions with the whole kernel matrix.

    Attributes
    ----------
    programs, solutions : sequences of Program and Solution
        One per number of thresholds.
    rows : (m,) array
        The support rows among the training rows.
    """

    def __init__(
        self,
        options: KernelOptions,
        problem: Problem,
        programs: Sequence[Program],
        solutions: Sequence[Solution],
        keeps_duals: bool,
        order: np.ndarray | None,
    ):
        self.options, self.programs, self.solutions = options, programs, solutions
        self._beta = [s.g.sum(axis=1) for s in solutions]
        used = (
            [s.g.any(axis=(0, 1)) for s in solutions]
            if keeps_duals
            else [beta.any(axis=0) for beta in self._beta]
        )
        rows = np.flatnonzero(np.any(used, axis=0))
        self.coef = np.concatenate([beta[:, rows] for beta in self._beta]).T
        self.rows = rows if order is None else order[rows]
        self.support = support_rows(options.kernel, problem.X, self.rows)
        self.b = [b for s in solutions for b in s.b]

    def squared_norms(self) -> np.ndarray:
        """Return |w|^2 of every problem, (P,)."""
        pairs = zip(self._beta, self.solutions, strict=True)
        return np.concatenate([np.einsum("pn,pn->p", beta, s.f) for beta, s in pairs])

    def records(self) -> list[Convergence]:
        """Return the record of every problem."""
        found: list[Convergence] = []
        for program, s in zip(self.programs, self.solutions, strict=True):
            found += records(
                self.options.monitor,
                s.status,
                s.reached,
                s.n_iter,
                s.violation,
                *values(program, s.g, s.f, s.b),
            )
        return found

    def scores(self, problem: Problem) -> np.ndarray:
        """Return the scores of the only problem at the training rows, (n,)."""
        (s,) = self.solutions
        return np.asarray(s.f[0] - s.b[0, 0])


@dataclass(frozen=True, slots=True)
class WholeKernel(Generic[P, M]):
    """Solver of a family with the whole kernel matrix."""

    family: Family[P, M]
    options: KernelOptions

    def restricted_to(self, problem: Problem, rows: np.ndarray) -> WholeKernel[P, M]:
        """Return this solver, which depends on no row."""
        return self

    def fit(
        self,
        points: Sequence[P],
        problem: Problem,
        start: Any = None,
        products: Products | None = None,
        begins: Sequence[np.ndarray] | None = None,
    ) -> tuple[list[M], list[np.ndarray]]:
        """Return one model per point, and the numbers of their support rows.

        With `begins` each point begins at its own multipliers, not at the last point.
        """
        family, options, inner = self.family, self.options, problem
        order = family.order(problem)
        if order is not None:
            inner, _ = parted(problem, options.kernel, order, order[:0])
            products = None if products is None else products.in_order(order)
        programs = [family.programs(point, inner) for point in points]
        begin = None
        if start is not None:
            begin = family.begin(start, programs[0][0], points[0], inner)
        solutions = self._solved(programs, inner, begin, begins, products)
        models: list[M] = []
        used: list[np.ndarray] = []
        for point, own, found in zip(points, programs, solutions, strict=True):
            solved = WholeSolution(
                options, problem, own, found, family.keeps_duals, order
            )
            models.append(family.model(point, problem, solved))
            used.append(solved.rows)
        return models, used

    def _solved(
        self,
        programs: list[list[Program]],
        problem: Problem,
        begin: np.ndarray | None,
        begins: Sequence[np.ndarray] | None,
        products: Products | None,
    ) -> list[tuple[Solution, ...]]:
        """Return the solutions of every point; each begins at those of the last."""
        options, monitor = self.options, self.options.monitor
        least = least_rows(max(program.lo.shape[1] for program in programs[0]))
        gram = gram_in_time(
            monitor,
            options.kernel,
            problem.X,
            options.cache_mb,
            options.n_threads,
            least,
            products,
        )
        paths = []
        for path in zip(*programs, strict=True):
            found = along(
                gram,
                path,
                tol=monitor.tol,
                max_iter=options.max_iter or MAX_ITER,
                n_threads=options.n_threads,
                monitor=monitor,
                begin=begin,
                starts=begins,
            )
            paths.append(list(found))
            monitor = monitor.after(sum(int(s.n_iter.sum()) for s in paths[-1]))
        return list(zip(*paths, strict=True))
