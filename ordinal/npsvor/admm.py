"""Programs of NPSVOR, one per rank over the same rows, and the solver by ADMM."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._input.basis import BasisChoice, read_basis
from .._input.problem import Problem
from .._input.types import AnyBasis, Kernel
from .._input.weights import optional_cost
from .._model.folds import Shares
from .._model.support import support_rows
from .._programs.admm import Factor, LowRankFactor, NoFactor, exact_factor, solve_admm
from .._programs.driver import records, values
from .._programs.family import Family, Fits, KernelOptions, Solved, Solver
from .._programs.fit import WholeKernel
from .._programs.losses import Losses, losses_by_rank
from .._programs.program import Program, project
from .._watch.convergence import Status
from .._watch.monitor import OutOfTime
from ..kernels.tiles import Products
from .model import NpsvorModel, model_of


class Parameters(NamedTuple):
    """Parameters that may differ between the points of a path."""

    C1: float
    C2: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class Npsvor(Family[Parameters, NpsvorModel]):
    """NPSVOR for the fit named `function`, solved by SMO or on a basis."""

    function: str
    cost: Any
    normalize: bool

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return self.function

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Return the method with its cost checked; raise if it is unusable."""
        return replace(self, cost=optional_cost(self.cost, problem.n_classes))

    def programs(self, point: Parameters, problem: Problem) -> list[Program]:
        """Return (D) of every rank that has training rows."""
        return [self._program(point, problem, problem.rank, problem.weight)]

    def losses(self, point: Parameters, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, in every problem."""
        rank = np.arange(problem.n_classes)
        q = self._program(point, problem, rank, np.ones(rank.size))
        return losses_by_rank(q)

    def rank(self, problem: Problem) -> np.ndarray:
        """Return the ranks, of which every one has an entry in the losses."""
        return problem.rank

    def model(self, point: Parameters, problem: Problem, solved: Solved) -> NpsvorModel:
        """Return the model of one point."""
        return model_of(
            problem,
            solved.options.kernel,
            solved.support,
            solved.coef,
            np.array([-b[0] for b in solved.b]),
            solved.squared_norms(),
            solved.records(),
            normalize=self.normalize,
            cost=self.cost,
        )

    def _program(
        self, point: Parameters, problem: Problem, rank: np.ndarray, weight: np.ndarray
    ) -> Program:
        """Return (D) of every rank k over rows of these ranks and weights."""
        cost = 1 - np.eye(problem.n_classes) if self.cost is None else self.cost
        k = np.flatnonzero(problem.present)[:, None, None]
        own, above = rank == k, rank > k
        C = np.where(own, point.C1 * weight, point.C2 * weight * cost[rank, k])
        outer = np.where(above, -1.0, 1.0)  # slope of phi where y_i != k
        return Program(
            lo=np.where(above, 0.0, -C),
            hi=np.where(own | above, C, 0.0),
            pn=np.where(own, -point.epsilon, outer),
            pp=np.where(own, point.epsilon, outer),
        )


MAX_ITER = 1000


@dataclass(frozen=True, slots=True)
class NpsvorAdmm(Npsvor):
    """NPSVOR by ADMM with its own options, which `fit_npsvor` explains."""

    rho: float = 1.0
    e_abs: float = 1e-2
    e_rel: float = 1e-2
    polish: bool = False
    low_rank: int | float | np.ndarray | None = None  # `basis` of a factor of low rank
    reads_chunks = False

    def basis(
        self,
        basis: AnyBasis | None,
        kernel: Kernel,
        problem: Problem,
        start: Any,  # noqa: ANN401  (no start is taken)
    ) -> BasisChoice | None:
        """Return None: a basis applies to the factor, and the programs use all rows."""
        return None

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Check the cost and the basis; a float is a part of the trace of K."""
        # With slots, dataclass makes a second class, which super() does not know.
        checked = super(NpsvorAdmm, self).prepared(problem, basis)
        if basis is None:
            return checked
        if self.polish:
            raise ValueError(
                "polish=True needs the whole kernel and cannot be combined with "
                "basis=: leave one of them out"
            )
        low_rank = read_basis(basis, problem.n_samples)
        if isinstance(low_rank, float) and low_rank == 1:
            raise ValueError("basis as a part of the trace must be in (0, 1), got 1.0")
        return replace(checked, low_rank=low_rank)

    def check_folds(self, shares: Shares | None) -> None:
        """Raise ValueError if a fold of a link has none of the basis rows."""
        basis = self.low_rank
        if not isinstance(shares, np.ndarray) or not isinstance(basis, np.ndarray):
            return
        if (shares[basis] == 1).all(axis=0).any():
            raise ValueError(
                "basis must have rows in two folds of probability=True, but all "
                "rows of it are left out together: name more rows"
            )

    def own_solver(self, options: KernelOptions) -> Admm:
        """Return the solver by ADMM."""
        return Admm(self, options)


@dataclass(frozen=True, slots=True)
class Admm(Solver[Parameters, NpsvorModel]):
    """Solver of all ranks at once, with one factorisation."""

    family: NpsvorAdmm
    options: KernelOptions

    def restricted_to(self, problem: Problem, rows: np.ndarray) -> Admm:
        """Return the solver for these training rows, with the basis rows among them."""
        basis = self.family.low_rank
        if not isinstance(basis, np.ndarray):
            return self
        here = np.flatnonzero(np.isin(rows, basis))
        return replace(self, family=replace(self.family, low_rank=here))

    def begin(
        self,
        problem: Problem,
        start: Any = None,  # noqa: ANN401  (no start is taken)
        products: Products | None = None,
    ) -> _FitsByAdmm:
        """Return the fits to a problem."""
        return _FitsByAdmm(self.family, self.options, problem, products)


class _FitsByAdmm(Fits[Parameters, NpsvorModel]):
    """Fits by ADMM, which iterates the problems of all points at once."""

    def __init__(
        self,
        family: NpsvorAdmm,
        options: KernelOptions,
        problem: Problem,
        products: Products | None,
    ):
        super().__init__(options.monitor)
        self.family, self.options = family, options
        self._problem, self._products = problem, products

    def close(self) -> None:
        """Do nothing: the factor is that of one call."""

    def fit(self, point: Parameters) -> tuple[NpsvorModel, np.ndarray | None]:
        """Return the model of a point, and the numbers of its support rows."""
        return self.path([point])[0]

    def path(
        self, points: Sequence[Parameters]
    ) -> list[tuple[NpsvorModel, np.ndarray | None]]:
        """Return the results of `fit` for all points, which share every product."""
        problem = self._problem
        family, options = self.family, self.options
        # The violation of ADMM is the ratio of a residual to its allowance.
        monitor = options.monitor.to_tol(1.0)
        programs = [family.programs(point, problem)[0] for point in points]
        factor = self._factor()
        out = solve_admm(
            factor,
            programs,
            rho=family.rho,
            e_abs=family.e_abs,
            e_rel=family.e_rel,
            max_iter=options.max_iter or MAX_ITER,
            n_threads=options.n_threads,
            monitor=monitor,
        )
        n_ranks = len(programs[0].lo)
        own = [slice(i, i + n_ranks) for i in range(0, len(out.g), n_ranks)]
        # The coefficients are ADMM's g, whose sum is 0 but which may leave the box. The
        # dual objective is that of the nearest feasible point.
        inside = [
            project(out.g[point, None], program.lo, program.hi)
            for program, point in zip(programs, own, strict=True)
        ]
        if family.polish and not monitor.late():
            if monitor.max_time is None:
                # Without a time limit the polish succeeds, and the factor is not needed
                # any more. Free its memory, as large as that of the rows of K.
                factor = NoFactor()
            try:
                with monitor.stage("polish"):
                    return self._polished(points, inside)
            except OutOfTime:  # before SMO could begin
                pass
        G = factor.product(out.g)
        G_inside = factor.product(np.concatenate(inside)[:, 0])
        rows, coef = factor.support, factor.coefficients(out.g)
        support = support_rows(options.kernel, problem.X, rows)
        models = []
        for program, point, nearest in zip(programs, own, inside, strict=True):
            g, f, b = out.g[point, None], G[point], out.b[point]
            ratio = out.ratio[point]
            status = Status.CONVERGED if not (ratio > 1).any() else out.status
            primal, _ = values(program, g, f, -b[:, None])
            dual = values(program, nearest, G_inside[point], -b[:, None])[1]
            parts = records(
                monitor, status, ratio <= 1, out.n_iter[point], ratio, primal, dual
            )
            models.append(
                model_of(
                    problem,
                    options.kernel,
                    support,
                    coef[:, point],
                    b,
                    np.einsum("pn,pn->p", g[:, 0], f),
                    parts,
                    normalize=family.normalize,
                    cost=family.cost,
                )
            )
        return [(model, rows) for model in models]

    def _factor(self) -> Factor | NoFactor:
        """Return a factor of K + rho I, or `NoFactor` if time is up."""
        family, options = self.family, self.options
        # Errors of the factor far below the allowances of the residuals.
        tolerances = filter(None, (family.e_abs, family.e_rel))
        allowed = 1e-4 * family.rho * min(tolerances, default=0.0)
        try:
            with options.monitor.stage("factor of K"), options.monitor.limited():
                if family.low_rank is None:
                    return exact_factor(
                        options.kernel,
                        self._problem.X,
                        family.rho,
                        allowed,
                        options.n_threads,
                        self._products,
                    )
                return LowRankFactor(
                    options.kernel,
                    self._problem.X,
                    family.rho,
                    family.low_rank,
                    options.n_threads,
                )
        except OutOfTime:
            return NoFactor()

    def _polished(
        self, points: Sequence[Parameters], inside: list[np.ndarray]
    ) -> list[tuple[NpsvorModel, np.ndarray | None]]:
        """Return the models of SMO begun at the solutions of ADMM."""
        smo = WholeKernel(self.family, replace(self.options, max_iter=None))
        found: list[tuple[NpsvorModel, np.ndarray | None]] = []
        with closing(smo.begin(self._problem, products=self._products)) as fits:
            for i, (point, g) in enumerate(zip(points, inside, strict=True)):
                with self._monitor.numbered("point", i, len(points)):
                    found.append(fits.fit(point, g))
        return found
