"""Fits on the whole kernel matrix, one or a path of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._dual.driver import least_rows
from .._dual.gram import gram_in_time
from .._dual.path import along, records, values
from .._input.costs import absolute_cost
from .._input.problem import Problem, around_ranks
from .._input.sparse import frozen
from .._input.types import Kernel, Matrix
from .._kernel_matrix.tiles import Products
from .._model.convergence import Convergence
from .._model.folds import parted
from .._model.monitor import Monitor
from .._model.support import support_rows
from .cuts import best_cuts
from .model import SvmModel, SvrModel
from .programs import Formulation, Point

Model: TypeAlias = SvmModel | SvrModel
MAX_ITER = 10_000_000


@dataclass(frozen=True, slots=True)
class Job:
    """Checked options: the same for every point of a path, and for the folds."""

    formulation: Formulation
    points: list[Point]
    kernel: Kernel
    max_iter: int
    n_threads: int
    cache_mb: float
    monitor: Monitor

    def among(self, problem: Problem, rows: np.ndarray) -> Job:
        """The same for a problem of these rows."""
        return self

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[Model], list[np.ndarray]]:
        """A model a point, and the numbers of its support rows."""
        whole, order = problem, np.arange(problem.n_samples)
        if self.formulation.decomposition == "one_vs_one":
            # the rows of each pair lie together
            order = np.argsort(problem.rank, kind="stable")
            problem, _ = parted(problem, self.kernel, order, order[:0])
            products = None if products is None else products.in_order(order)
        programs = [self.formulation.program(point, problem) for point in self.points]
        threads, watch = self.n_threads, self.monitor
        gram = gram_in_time(
            watch, self.kernel, problem.X, self.cache_mb, threads, least_rows(1),
            products,
        )  # fmt: skip
        found = along(
            gram, programs, tol=watch.tol, max_iter=self.max_iter, n_threads=threads,
            monitor=watch,
        )  # fmt: skip
        models: list[Model] = []
        used: list[np.ndarray] = []
        for point, program, s in zip(self.points, programs, found, strict=True):
            b, some = s.b[:, 0], s.g.any(axis=(0, 1))
            rows, coef = order[some], s.g[:, 0, some].T
            primal, dual = values(program, s.g, s.f, s.b)
            parts = records(
                watch, s.status, s.reached, s.n_iter, s.violation, primal, dual
            )
            used.append(rows)
            models.append(
                model_of(
                    self.formulation, point, whole, self.kernel,
                    support_rows(self.kernel, whole.X, rows), coef, -b, parts,
                    s.f[0] - b[0],
                )
            )  # fmt: skip
        return models, used


def model_of(
    formulation: Formulation,
    point: Point,
    problem: Problem,
    kernel: Kernel,
    support: Matrix,
    coef: np.ndarray,
    intercept: np.ndarray,
    parts: Sequence[Convergence],
    f: np.ndarray | None,
) -> Model:
    """A model of hyperplanes, (m, P) and (P,). Thresholds that are to be fitted take
    the score f of the training rows."""
    C, epsilon = point
    common: dict[str, Any] = {
        "support": support, "kernel": kernel, "classes": frozen(problem.classes),
        "n_features": problem.n_features, "feature_names": problem.feature_names,
        "C": C, "cost": formulation.cost, "link": None,
    }  # fmt: skip
    if formulation.decomposition is not None:
        return SvmModel(
            decomposition=formulation.decomposition,
            coef=frozen(coef),
            intercept=frozen(intercept),
            present=frozen(problem.present),
            convergence=Convergence.of_parts(parts),
            **common | {"method": formulation.method},
        )
    fitted = formulation.thresholds == "fitted"
    return SvrModel(
        coef=frozen(coef[:, 0]),
        intercept=float(intercept[0]),
        thresholds=frozen(_thresholds(formulation, problem, f if fitted else None)),
        fitted=fitted,
        epsilon=epsilon,
        convergence=parts[0],
        **common,
    )


def _thresholds(
    formulation: Formulation, problem: Problem, f: np.ndarray | None
) -> np.ndarray:
    """Those of least cost for scores; without them, in the middle between ranks."""
    present, r = np.flatnonzero(problem.present), problem.n_classes
    if f is None:
        return around_ranks(0.5 * (present[1:] + present[:-1]), present, r)
    cost = absolute_cost(r) if formulation.cost is None else formulation.cost
    among = cost[np.ix_(present, present)]
    cuts = best_cuts(f, problem.rank_among_present, problem.weight, among)
    return around_ranks(cuts, present, r)
