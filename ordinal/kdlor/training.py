"""Fits of KDLOR, one or a path of them, on all rows or on a basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._basis.features import Features
from .._basis.fitting import chosen, enough_rows
from .._input.basis import BasisChoice
from .._input.problem import Problem, around_ranks
from .._input.sparse import read_only
from .._input.types import Kernel
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor, OutOfTime
from ..kernels.tiles import Products
from .model import KdlorModel
from .program import nearest, relative_gap, thresholds
from .scatter import OfRows, OnBasis, Scatter, Shares, support_of

# Of C^2 k / (4 u t), k being the mean of k(x, x): objectives below that are what
# rounding makes of 0, where the means of ranks are the same
_NO_ANSWER = 1e-8
_ONE_POINT = 1e-14  # of k: no scatter but what rounding leaves of rows that are alike


@dataclass(frozen=True, slots=True)
class KdlorFit:
    """Checked options, the same for the fit of all rows and those of the folds."""

    kernel: Kernel
    C: float
    max_iter: int
    n_threads: int
    monitor: Monitor

    def features(
        self, choice: BasisChoice, problem: Problem, ridges: Sequence[float], seed: int
    ) -> Features:
        """Return the features of the chosen basis.

        If its size is to be found, models of the last ridge decide.
        """
        if choice.way == "auto":

            def fit(part: Problem, tried: BasisChoice) -> KdlorModel:
                features = self.features(tried, part, ridges, seed)
                return self.fit(part, ridges[-1:], features)[0]

            choice = enough_rows(problem, self.kernel, fit, seed)
        return chosen(choice, self.kernel, problem, seed, self.n_threads)

    def features_in_time(
        self, choice: BasisChoice, problem: Problem, ridges: Sequence[float], seed: int
    ) -> Features:
        """`features`, or those of a single row where time is up before."""
        try:
            with self.monitor.stage("basis"), self.monitor.limited(Monitor.GRACE):
                return self.features(choice, problem, ridges, seed)
        except OutOfTime:
            return self.features(BasisChoice("random", 1), problem, ridges, seed)

    def fit(
        self,
        problem: Problem,
        ridges: Sequence[float],
        features: Features | None,
        products: Products | None = None,
    ) -> list[KdlorModel]:
        """Return one model per ridge, on a basis or on every row."""
        shares, models = Shares.from_problem(problem), list[KdlorModel]()
        scatter: Scatter | None = None
        for i, u in enumerate(ridges):
            with self.monitor.numbered("point", i, len(ridges)):
                try:
                    if scatter is None:
                        scatter = self._scatter(
                            problem, shares, features, products, len(ridges)
                        )
                    last = i + 1 == len(ridges)
                    model = self._solve(problem, scatter, u, last)
                except OutOfTime:
                    support = support_of(self.kernel, problem, features)
                    model = self._nothing(problem, support, u, Status.MAX_TIME)
            models.append(model)
        return models

    def _scatter(
        self,
        problem: Problem,
        shares: Shares,
        features: Features | None,
        products: Products | None,
        n_ridges: int,
    ) -> Scatter:
        with self.monitor.stage("scatter"), self.monitor.limited():
            if features is None:
                return OfRows(
                    self.kernel, problem, shares, self.n_threads, products, n_ridges
                )
            return OnBasis(features, problem, shares, self.n_threads)

    def _solve(
        self, problem: Problem, scatter: Scatter, u: float, last: bool
    ) -> KdlorModel:
        """Return the model of one u; `last` if the scatter is not needed after it."""
        if abs(scatter.t) <= _ONE_POINT * abs(scatter.size):
            return self._nothing(problem, scatter.support, u, Status.CONVERGED)
        if (stopped := self.monitor.stop(0, np.inf)) is not None:
            return self._nothing(problem, scatter.support, u, stopped)
        ridge = u * scatter.t
        try:
            if not scatter.t > 0:
                raise np.linalg.LinAlgError
            with self.monitor.stage("factorisation"), self.monitor.limited():
                solved = scatter.with_ridge(ridge, last)
        except np.linalg.LinAlgError:
            raise ValueError(
                "ridge must be larger, or the kernel is not positive semi-definite: "
                f"the scatter with ridge={u:g} is not"
            ) from None
        least = _NO_ANSWER * self.C**2 * scatter.size / (4 * ridge)
        a, n_iter, status = nearest(
            solved.Q, self.C, least, self.max_iter, self.monitor
        )
        found = solved.direction(a)
        steps = np.diff(found.means)
        rho = float(steps.min())
        primal = found.norm - self.C * rho
        dual = found.norm - float(steps @ a) - found.lost
        violation = relative_gap(primal, dual, least)
        if status is Status.CONVERGED and not violation <= self.monitor.tol:
            status = Status.STALLED
        made = self.monitor.record(status, n_iter, violation, primal, dual)
        between = thresholds(found.means, found.norm, scatter.shares.of_rank)
        return self._model(
            problem, scatter.support, u, found.coef, between, a, rho, made
        )

    def _nothing(
        self, problem: Problem, support: Any, u: float, status: Status
    ) -> KdlorModel:
        """Return a score of 0: of rows that are all one point, or where a fit ended
        early.
        """
        pairs = np.count_nonzero(problem.present) - 1
        if status is Status.CONVERGED:
            made = self.monitor.record(status, 1, 0.0, 0.0, 0.0)
        else:
            made = self.monitor.record(status, 0, np.inf, 0.0)
        none, a = np.zeros(len(support)), np.full(pairs, self.C / pairs)
        return self._model(problem, support, u, none, np.zeros(pairs), a, 0.0, made)

    def _model(
        self,
        problem: Problem,
        support: Any,
        u: float,
        coef: np.ndarray,
        between: np.ndarray,
        a: np.ndarray,
        rho: float,
        made: Convergence,
    ) -> KdlorModel:
        present, r = np.flatnonzero(problem.present), problem.n_classes
        dual = np.zeros(r - 1)
        dual[present[:-1]] = a
        return KdlorModel(
            support=support,
            coef=read_only(coef),
            dual=read_only(dual),
            thresholds=read_only(around_ranks(between, present, r)),
            rho=rho,
            C=self.C,
            ridge=u,
            classes=read_only(problem.classes),
            kernel=self.kernel,
            n_features=problem.n_features,
            feature_names=problem.feature_names,
            link=None,
            convergence=made,
        )
