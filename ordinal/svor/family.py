"""Programs and thresholds of the four methods of the SVOR family, and their model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np

from .._input.fields import FINITE, POSITIVE, Array
from .._input.immutable import read_only
from .._input.labels import absolute_cost, optional_cost
from .._input.problem import Problem, around_ranks
from .._input.types import AnyBasis
from .._model.column_names import named
from .._model.kernel_fit import KernelOptions
from .._model.threshold_model import ScoreModel
from .._quadratic.driver import Solution
from .._quadratic.family import (
    QuadraticFamily,
    Solved,
    WholeSolution,
    check_start_model,
    matched_rows,
)
from .._quadratic.losses import Losses, losses_by_rank
from .._quadratic.program import Program, nearest_feasible
from .._quadratic.proximal import Start, cold
from .._watch.convergence import Convergence
from ..kernels.features import Features
from ..kernels.functions import KernelFunction

SvorMethod: TypeAlias = Literal["svorim", "svorex", "shashua_levin", "redsvm"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SvorModel(ScoreModel):
    """Score f(x) = sum_i coef[i] k(support_i, x), and thresholds on it.

    Attributes
    ----------
    method : str
        "svorim", "svorex", "shashua_levin" or "redsvm".
    support : (m, n_features) array or CSR
        Training rows whose dual variables are not 0, or the basis rows of a fit with
        `basis`. For a precomputed kernel, the (m,) numbers of those rows.
    coef : (m,) array
    dual : (m, r - 1) array, or None
        Dual variables s_ij a_ij of (D), whose sum over the thresholds is `coef`.
        Thresholds with no training rows between them share their variables, which are
        in the first of their columns. None for a fit with `basis`, where all training
        rows have such variables.
    thresholds : (r - 1,) array
        Thresholds in units of the margin. They are -inf or +inf where no training rows
        lie beyond them, and equal on both sides of an inner rank without training rows,
        which is then never predicted.
    C : float
    cost : (r, r) array, or None
        Cost matrix, if one was passed to the fit; it gives the weights of (P).
    margins : (r - 1,) array, or None
        With `margin="sum"` the width of the margin at each threshold, which is in its
        middle; 0 at thresholds with no training rows beyond them. Otherwise None.
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Link from scores to probabilities; None unless fitted with `probability=True`.
    convergence : Convergence
    """

    method: SvorMethod
    dual: Annotated[np.ndarray, Array("f8", "m r-1"), FINITE] | None
    C: Annotated[float, FINITE, POSITIVE]
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None
    margins: Annotated[np.ndarray, Array("f8", "r-1"), FINITE] | None

    def _check_values(self) -> None:
        optional_cost(self.cost, self.classes.size)


@dataclass(frozen=True, slots=True)
class Svor(QuadraticFamily[float, SvorModel]):
    """A method of the family with the caller's cost; a point is its C."""

    method: SvorMethod
    cost: Any = None
    folds_start = keeps_duals = True

    @property
    def name(self) -> str:
        """Name of the `fit_*` function."""
        return f"fit_{self.method}"

    def prepared(self, problem: Problem, basis: AnyBasis | None) -> Self:
        """Return the method with its cost checked; raise if it is unusable."""
        return replace(self, cost=optional_cost(self.cost, problem.n_classes))

    def check_start(
        self, start: Any, problem: Problem, kernel: KernelFunction, on_basis: bool
    ) -> None:
        """Raise TypeError or ValueError unless a fit can begin at this model."""
        check_start_model(start, SvorModel, problem, kernel)
        if not on_basis and start.dual is None:
            raise ValueError(
                "start must be a model of the whole kernel, whose dual variables are "
                "known, got a model on a basis"
            )

    def programs(self, point: float, problem: Problem) -> list[Program]:
        """Return (D) with a group for each threshold between ranks that have rows."""
        unit = self._unit(problem, *_ends(problem))
        return [weighted(unit, point * problem.weight)]

    def rank(self, problem: Problem) -> np.ndarray:
        """Return the number of the loss of each row: its rank, or its interval."""
        if problem.lower is None:
            return problem.rank_among_present
        return _intervals(problem)[2]

    def losses(self, point: float, problem: Problem) -> list[Losses]:
        """Return the loss of a row of every rank, or of every interval."""
        every_rank = np.arange(np.count_nonzero(problem.present))
        ends = every_rank, every_rank
        if problem.lower is not None:
            ends = _intervals(problem)[:2]
        q = weighted(self._unit(problem, *ends), point)
        return losses_by_rank(q)

    def begin(
        self, start: SvorModel, program: Program, point: float, problem: Problem
    ) -> np.ndarray:
        """Return feasible multipliers near those of a model, (1, T, n).

        The model has rows in common with X, and may have another C.
        """
        present = np.flatnonzero(problem.present)
        assert start.dual is not None
        # Boxes are in proportion to C: scaled duals stay inside, or at their bounds.
        old = np.add.reduceat(start.dual, present[:-1], axis=1) * (point / start.C)
        g = matched_rows(start.support, old, problem.X, program.lo[0], program.hi[0])
        return nearest_feasible(g[None], program)

    def begin_on_basis(
        self,
        start: SvorModel | None,
        losses: list[Losses],
        problem: Problem,
        features: Features,
    ) -> list[Start]:
        """Return a start with the scores and thresholds of a model.

        Without a model, the scores are 0 and the thresholds follow from the sizes of
        the ranks.
        """
        share = np.bincount(problem.rank_among_present, problem.weight)
        above = np.cumsum(share[::-1])[-2::-1]
        # Thresholds at the log odds of the ranks: the score 0 is then right on average.
        begin = cold(features.m, losses[0], np.log(share.sum() / above - 1))
        if start is None:
            return [begin]
        b = start.thresholds[np.flatnonzero(problem.present)[:-1]]
        # A rank that the old data lacked has an infinite threshold.
        b = np.where(np.isfinite(b), b, begin.b)
        if start.kernel.by_number:  # its rows may have other numbers
            return [replace(begin, b=b)]
        scores = start.decision_function(named(features.support, start.feature_names))
        return [replace(begin, w=features.interpolating(scores), b=b)]

    def model(self, point: float, problem: Problem, solved: Solved) -> SvorModel:
        """Return the model of one C."""
        present, r = np.flatnonzero(problem.present), problem.n_classes
        b, dual = solved.b[0], None
        if isinstance(solved, WholeSolution):
            unit = self._unit(problem, *_ends(problem))
            (s,), unit = solved.solutions, weighted(unit, problem.weight)
            b = exact_thresholds(unit, point, s)
            convergence = _record(unit, point, s, b, solved.options)
            # In column order, in which numpy sums column by column: the columns of
            # absent ranks, which are 0, then do not change the rounding of `coef`.
            dual = np.zeros((solved.rows.size, r - 1), order="F")
            dual[:, present[:-1]] = s.g[0][:, solved.rows].T
            coef = dual.sum(axis=1)
        else:
            (convergence,), coef = solved.records(), solved.coef[:, 0]
        return SvorModel(
            method=self.method,
            support=solved.support,
            coef=read_only(coef),
            dual=None if dual is None else read_only(dual),
            thresholds=read_only(around_ranks(b, present, r)),
            C=point,
            cost=self.cost,
            margins=None,
            kernel=solved.options.kernel,
            **problem.model_fields(),
            link=None,
            convergence=convergence,
        )

    def _unit(self, problem: Problem, lower: np.ndarray, upper: np.ndarray) -> Program:
        """Return (D) for C = 1 and rows of weight 1.

        There is one group per threshold between ranks with training rows; `lower` and
        `upper` are the first and last ranks of the rows, numbered among these. Margins
        at the thresholds between them drop out.
        """
        present, cost = np.flatnonzero(problem.present), self.cost
        if cost is None:
            cost = absolute_cost(problem.n_classes)
            if self.method not in ("svorim", "redsvm"):
                cost = np.minimum(cost, 1)
        # The weight of a threshold is the growth of the cost from one rank to the next.
        step = np.abs(np.diff(cost[np.ix_(present, present)], axis=1))
        threshold = np.arange(present.size - 1)[:, None]
        above, below = lower > threshold, upper <= threshold
        slope = np.where(above, -1.0, 1.0)[None]
        priced = self.method == "redsvm"
        return Program(
            lo=np.where(below, -step[upper].T, 0.0)[None],
            hi=np.where(above, step[lower].T, 0.0)[None],
            pn=slope,
            pp=slope,
            coupled=self.method == "svorex",
            price=np.diff(present).astype(float) if priced else None,
        )


def _ends(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and last rank of each row among those present, (n,) each."""
    upper = problem.rank_among_present
    known = problem.lower is None
    return (upper if known else problem.among_present[problem.lower]), upper


def _intervals(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct intervals, first and last ranks, and that of each row."""
    (lower, upper), r = _ends(problem), problem.n_classes
    pairs, place = np.unique(lower * np.int64(r) + upper, return_inverse=True)
    return pairs // r, pairs % r, place.astype(np.int32)


def weighted(unit: Program, weight: np.ndarray | float) -> Program:
    """Return a program whose boxes are scaled by the weights of the rows."""
    return replace(unit, lo=weight * unit.lo, hi=weight * unit.hi)


def exact_thresholds(unit: Program, C: float, s: Solution) -> np.ndarray:
    """Return the b, (T,), that minimises (P) for the scores f of a solution.

    Of an interval of minimisers it is the middle. The slope of (P) by b_j is price_j
    b_j + C times the widths of all f_i + slope_ij <= b_j, less C times the widths of
    the rows below the threshold. Rows are sorted, unlike in `losses.best_thresholds`.
    """
    if unit.coupled:
        return np.asarray(s.b[0])
    v = s.f[0] + unit.pp[0]
    order = np.argsort(v, axis=1)
    every = np.arange(len(v))
    sums = np.cumsum((unit.hi - unit.lo)[0][every[:, None], order], axis=1)
    below = -unit.lo[0].sum(axis=1)
    v = v[every[:, None], order]
    if unit.price is None:
        # Where the slope is 0 over an interval, rounding of the sums must not choose an
        # end.
        rounding = 1e-12 * sums[:, -1]
        first = (sums < (below - rounding)[:, None]).sum(axis=1)
        last = (sums < (below + rounding)[:, None]).sum(axis=1)
        last = np.minimum(last, v.shape[1] - 1)
        return np.asarray(0.5 * (v[every, first] + v[every, last]))
    end = np.full((len(v), 1), np.inf)
    v, through = np.hstack([v, end]), np.hstack([sums, end])
    # The slope is >= 0 right of v[k], but not right of v[k - 1].
    k = (unit.price[:, None] * v + C * through >= C * below[:, None]).argmax(axis=1)
    left_of = np.hstack([np.zeros((len(v), 1)), sums])[every, k]
    return np.asarray(np.minimum(C * (below - left_of) / unit.price, v[every, k]))


def _record(
    unit: Program, C: float, s: Solution, b: np.ndarray, options: KernelOptions
) -> Convergence:
    """Return the record of a fit with the objectives at its best thresholds b."""
    g, f = s.g[0], s.f[0]
    half = 0.5 * np.einsum("n,n->", g.sum(axis=0), f)
    slope, width = unit.pp[0], (unit.hi - unit.lo)[0]
    slack = np.maximum(1 + slope * (f - b[:, None]), 0)
    primal = half + C * np.einsum("tn,tn->", slack, width)
    dual = -half - np.einsum("tn,tn->", g, slope)
    if unit.price is not None:
        primal += 0.5 * b**2 @ unit.price
        dual -= 0.5 * (s.z[0] ** 2 / unit.price).sum()
    return options.monitor.record(s.status, s.n_iter[0], s.violation[0], primal, dual)
