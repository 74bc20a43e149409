"""Fits of the SVOR family on a basis, one or a path of them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._basis.fitting import BasisOptions, record
from .._basis.losses import Losses
from .._basis.proximal import Solution, Start, cold
from .._input.basis import BasisChoice
from .._input.problem import Problem, around_ranks
from .._input.sparse import frozen
from .._kernel_matrix.tiles import Products
from .._model.support import kept
from ..kernels import Precomputed
from .losses import losses_of
from .model import Method, SvorModel


def job_on(choice: BasisChoice, problem: Problem, C: float, **options: Any) -> BasisJob:
    """A job on the basis that a choice means for a problem; its size, if that is to be
    found, by models of this C."""

    def trial(job: BasisJob, part: Problem) -> SvorModel:
        return job.fit(part, [C], None)[0][0]

    return BasisJob.on(choice, problem, trial, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class BasisJob(BasisOptions):
    """Options with those of the method."""

    method: Method

    def fit(
        self,
        problem: Problem,
        costs: list[float],
        start: SvorModel | None,
        products: Products | None = None,
    ) -> tuple[list[SvorModel], None]:
        """A model a C; they have their support rows in common."""
        present, rank = np.flatnonzero(problem.present), problem.rank_among_present
        fits = self.fits(problem, rank)
        losses = [losses_of(self.method, self.cost, present, C) for C in costs]
        warm = start is not None and not isinstance(self.kernel, Precomputed)
        begin = self._start(start, problem, losses[0], present)
        with closing(fits):
            found = fits.path(
                [[of] for of in losses], [begin], warm=warm, tol=self.monitor.tol,
                max_iter=self.max_iter,
            )  # fmt: skip
        return [
            self._model(problem, C, of[0], present)
            for C, of in zip(costs, found, strict=True)
        ], None

    def _start(
        self,
        start: SvorModel | None,
        problem: Problem,
        losses: Losses,
        present: np.ndarray,
    ) -> Start:
        """At a model, or else at a score of 0 and thresholds that the shares of the
        ranks suggest."""
        share = np.bincount(problem.rank_among_present, problem.weight)
        above = np.cumsum(share[::-1])[-2::-1]
        begin = cold(self.features.m, losses, np.log(share.sum() / above - 1))
        if start is None:
            return begin
        b = start.thresholds[present[:-1]]
        b = np.where(np.isfinite(b), b, begin.b)
        if isinstance(self.kernel, Precomputed):  # whose rows may have other numbers
            return replace(begin, b=b)
        scores = start.decision_function(self.features.support)
        return replace(begin, w=self.features.interpolating(scores), b=b)

    def _model(
        self, problem: Problem, C: float, found: Solution, present: np.ndarray
    ) -> SvorModel:
        r = problem.n_classes
        return SvorModel(
            method=self.method,
            support=kept(self.features.support),
            coef=frozen(self.features.coefficients(found.w)),
            dual=None,
            thresholds=frozen(around_ranks(found.b, present, r)),
            C=C,
            cost=self.cost,
            classes=frozen(problem.classes),
            kernel=self.kernel,
            n_features=problem.n_features,
            feature_names=problem.feature_names,
            link=None,
            convergence=record(self.monitor, found),
        )
