"""Sum-of-margins policy of Shashua and Levin: a margin of its own for each threshold.

With scores f_i = <w, phi(x_i)>, |w| <= 1, and a weight C v_i for a row of weight v_i,

    min_{w,a,b}  sum_j (a_j - b_j) + sum_{y_i = j} C v_i max(0, f_i - a_j)
                                   + sum_{y_i = j+1} C v_i max(0, b_j - f_i)         (S)
    s.t.         a_1 <= b_1 <= a_2 <= ... <= b_{r-1},   |w| <= 1

where b_j - a_j >= 0 is the margin between the ranks j and j + 1, and j = 1 ... r - 1.
The multipliers l_ij of the rows of rank j at a_j, and d_ij of those of rank j + 1 at
b_j, lie between 0 and C v_i. With beta_i = d_ij - l_ij summed over j, the dual is

    max -|sum_i beta_i phi_i|   s.t.   sum_i l_ij = 1 + u_j - t_{j-1},
                                       sum_i d_ij = 1 + u_j - t_j,   u, t >= 0       (T)

with t_0 = t_{r-1} = 0, and w = sum_i beta_i phi_i / norm. u_j > 0 only where the margin
is 0, and t_j > 0 only where b_j = a_{j+1}. Without them (T) is the distance of reduced
convex hulls, as in nu-SVC. Up to the root, (T) is the program (Q) of
`_quadratic/program.py` with 2 (r - 1) coupled groups, of which group a_j has the
constant -1 and group b_j the constant 1 in its sum. Its multipliers are a_j and b_j.

(S) scales with w: its value is either 0, with w = 0 and no margin, or negative with
|w| = 1. It has a finite minimum if C times the weight of the lowest and of the highest
rank is at least 1. If no multiplier is at its bound C v_i, a larger C has no effect.

A. Shashua, A. Levin, "Ranking with large margin principle: two approaches", NIPS 15,
2003, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .._input.basis import BasisChoice
from .._input.checks import check_choice, shown
from .._input.immutable import read_only
from .._input.problem import Problem, around_ranks
from .._input.types import AnyBasis, ArrayLike
from .._model.kernel_fit import Family, KernelOptions, Solver, support_rows
from .._quadratic.driver import Solution, solve
from .._quadratic.family import MAX_ITER, gram_of
from .._quadratic.program import Gram, Program
from .._watch.convergence import Status
from ..kernels.functions import KernelFunction
from ..kernels.tiles import Products
from .family import Svor, SvorModel

_FEASIBLE = 1e-12  # rounding of the sum of the weights of a rank
# Share of the largest k(x, x) below which the square of the norm of (T) is a rounding
# error of single precision.
_NO_MARGIN = 1e-10

Margin: TypeAlias = Literal["fixed", "sum"]


def shashua_levin(
    cost: ArrayLike | None = None, margin: Margin = "fixed"
) -> Family[float, SvorModel]:
    """Return the family of a policy; raise ValueError if it has no such options."""
    check_choice("margin", margin, ("fixed", "sum"))
    if margin == "fixed":
        return Svor("shashua_levin", cost)
    if cost is not None:
        raise ValueError(_only_fixed("cost"))
    return SumOfMargins()


@dataclass(frozen=True, slots=True)
class SumOfMargins(Family[float, SvorModel]):
    """The sum-of-margins policy; a point is its C."""

    name = "fit_shashua_levin"

    def basis(
        self,
        basis: AnyBasis | None,
        kernel: KernelFunction,
        problem: Problem,
        start: object,
    ) -> BasisChoice | None:
        """Return None: linear kernels, too, have the whole matrix."""
        if basis is not None:
            raise ValueError(_only_fixed("basis"))
        return None

    def check_start(
        self, start: object, problem: Problem, kernel: KernelFunction, on_basis: bool
    ) -> None:
        """Raise ValueError: no start is of use here."""
        raise ValueError(_only_fixed("start"))

    def solver(
        self,
        options: KernelOptions,
        choice: BasisChoice | None,
        problem: Problem,
        point: float,
        start: object,
        products: Products | None,
    ) -> MarginSolver:
        """Return the solver with the whole kernel matrix."""
        return MarginSolver(options, problem, products)


def _only_fixed(argument: str) -> str:
    return f'{argument} is for margin="fixed" only: leave it out'


class MarginSolver(Solver[float, SvorModel]):
    """Solver of (T) with the kernel matrix, which is computed once for all fits.

    `more` is the factor by which weights are multiplied in a problem of fewer rows.
    """

    def __init__(
        self,
        options: KernelOptions,
        problem: Problem,
        products: Products | None = None,
        more: float = 1.0,
    ):
        super().__init__(options.monitor)
        self._options, self._problem, self._products = options, problem, products
        self._more = more
        self._gram: Gram | None = None

    def restricted_to(
        self, problem: Problem, rows: np.ndarray, start: SvorModel | None = None
    ) -> MarginSolver:
        """Return the solver of a problem of these training rows.

        The sums of (T) stay the same with fewer rows, so that their bounds grow.
        """
        more = self._problem.weight.sum() / problem.weight.sum()
        return MarginSolver(self._options, problem, more=self._more * float(more))

    def fit(self, point: float) -> tuple[SvorModel, np.ndarray]:
        """Return the model of one C, and the numbers of its support rows."""
        options, problem = self._options, self._problem
        least = least_cost(problem)
        C = point if self._more == 1 else max(self._more * point, least)
        if least * (1 - _FEASIBLE) > C:
            raise ValueError(
                f'C must be at least {least:.6g} with margin="sum", got '
                f"{shown(point)}: C times the weight of the lowest and of the highest "
                "rank must be at least 1, because no optimum is finite otherwise"
            )
        program, g = margin_program(problem, C)
        if self._gram is None:
            groups = program.lo.shape[1]
            self._gram = gram_of(options, problem.X, groups, self._products)
        size = float(self._gram.diagonal.max())
        tol, squared, n_iter = self._monitor.tol, size, 0
        most = options.max_iter or MAX_ITER
        while True:
            # The norm, in whose unit violations count, is known after a fit only.
            s = solve(
                self._gram,
                program,
                g,
                tol=tol * squared,
                max_iter=most - n_iter,
                n_threads=options.n_threads,
                monitor=self._monitor,
            )
            n_iter += int(s.n_iter[0])
            self._monitor = self._monitor.after(int(s.n_iter[0]))
            squared = float(max(s.g[0].sum(axis=0) @ s.f[0], 0.0))
            # An early end is no proof that no direction has a margin.
            ended = s.status in (Status.CONVERGED, Status.STALLED)
            if squared <= _NO_MARGIN * size and ended:
                raise ValueError(self._no_margin(point, least))
            reached = s.violation[0] <= tol * squared and bool(s.reached[0])
            if reached or s.status is not Status.CONVERGED or n_iter >= most:
                break
            g, squared = s.g, 0.5 * squared
        model, rows = self._model(point, program, s, n_iter, reached)
        if model.convergence.primal >= 0 and s.status is Status.STALLED:
            raise ValueError(self._no_margin(point, least))
        return model, rows

    @staticmethod
    def _no_margin(C: float, least: float) -> str:
        return (
            f'no direction has a margin for C={shown(C)} with margin="sum": lower C '
            f"(to {least:.6g} at least), so that more rows may lie within the margins, "
            "or take another kernel or gamma"
        )

    def _model(
        self,
        C: float,
        program: Program,
        s: Solution,
        n_iter: int,
        reached: bool,
    ) -> tuple[SvorModel, np.ndarray]:
        """Return the model with |w| = 1, and its record from the scores."""
        options, problem = self._options, self._problem
        norm = max(float(s.g[0].sum(axis=0) @ s.f[0]), 1e-300) ** 0.5
        g, f = s.g[0] / norm, s.f[0] / norm
        low, up = s.low[0] / norm, s.up[0] / norm
        # A group whose variables are all at one end has a bound on one side only.
        ends = np.where(np.isfinite(low), low, up), np.where(np.isfinite(up), up, low)
        both = 0.5 * (ends[0] + ends[1])
        a, b = both[::2], both[1::2]
        slack_a = np.maximum(f - a[:, None], 0)
        slack_b = np.maximum(b[:, None] - f, 0)
        primal = (a - b).sum() + np.einsum("tn,tn->", slack_a, -program.lo[0][::2])
        primal += np.einsum("tn,tn->", slack_b, program.hi[0][1::2])
        status = Status.CONVERGED if reached else s.status
        if status is Status.CONVERGED and not reached:
            status = Status.MAX_ITER
        violation = float(s.violation[0]) / norm**2
        record = options.monitor.record(status, n_iter, violation, primal, -norm)
        present, r = np.flatnonzero(problem.present), problem.n_classes
        rows = np.flatnonzero(g.any(axis=0))
        dual = np.zeros((rows.size, r - 1), order="F")
        dual[:, present[:-1]] = (g[::2] + g[1::2])[:, rows].T
        thresholds = around_ranks(0.5 * (a + b), present, r)
        margins = around_ranks(b - a, present, r)
        model = SvorModel(
            method="shashua_levin",
            support=support_rows(options.kernel, problem.X, rows),
            coef=read_only(dual.sum(axis=1)),
            dual=read_only(dual),
            thresholds=read_only(thresholds),
            margins=read_only(np.where(np.isfinite(thresholds), margins, 0.0)),
            C=C,
            cost=None,
            kernel=options.kernel,
            **problem.model_fields(),
            link=None,
            convergence=record,
        )
        return model, rows

    def close(self) -> None:
        """Release the kernel matrix."""
        self._gram = None


def least_cost(problem: Problem) -> float:
    """Return the least C for which (S) has a finite minimum."""
    sizes = np.bincount(problem.rank_among_present, problem.weight)
    return float(1 / min(sizes[0], sizes[-1]))


def margin_program(problem: Problem, C: float) -> tuple[Program, np.ndarray]:
    """Return (T) with 2 (q - 1) groups for q ranks with rows, and a feasible point.

    Rows of a rank share what the sums require in proportion to their weights.
    """
    rank, weight = problem.rank_among_present, problem.weight
    sizes = np.bincount(rank, weight)
    T, n = 2 * (sizes.size - 1), rank.size
    lo, hi = np.zeros((1, T, n)), np.zeros((1, T, n))
    g = np.zeros((1, T, n))
    # An inner rank of little weight cannot reach the sum 1, which t makes up for.
    part = weight * np.minimum(C, 1 / sizes)[rank]
    for t in range(T):
        rows = rank == (t + 1) // 2
        (hi if t % 2 else lo)[0, t, rows] = C * weight[rows] * (1 if t % 2 else -1)
        g[0, t, rows] = part[rows] * (1 if t % 2 else -1)
    slope = np.zeros((1, T, n))
    total = np.where(np.arange(T) % 2, 1.0, -1.0)
    return Program(lo, hi, slope, slope, coupled=True, total=total), np.clip(g, lo, hi)
