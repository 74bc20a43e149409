"""Fits of KDLOR, one or a path of them, on all rows or on a basis.

The dual (D) has as many unknowns as pairs of neighbouring ranks; the thresholds cut the
score of its solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._input.basis import BasisChoice
from .._input.problem import Problem, around_ranks
from .._input.sparse import read_only
from .._input.types import Kernel, Matrix
from .._model.basis import chosen, enough_rows
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor, OutOfTime
from ..kernels.features import Features
from ..kernels.tiles import Products
from .model import KdlorModel
from .scatter import OfRows, OnBasis, Scatter, Shares, support_of

_SETTLED = 1e-13  # slopes by entries that rounding may leave of 0


def nearest(
    Q: np.ndarray, C: float, least: float, max_iter: int, monitor: Monitor
) -> tuple[np.ndarray, int, Status]:
    """Return a that minimises a'Q a among a >= 0 with sum C, the number of steps, and
    the status.

    It is in proportion to the x >= 0 that minimises x'Q x + (1 - sum_k x_k)^2, up to a
    factor of Q: a least squares problem, which the active set of Lawson and Hanson
    ("Solving least squares problems", 1974, chapter 23) solves. A step brings one more
    entry in, and every entry that would fall below 0 on the way out.
    """
    largest = float(np.diagonal(Q).max())
    H = Q / (largest if largest > 0 else 1.0) + 1.0
    H[np.diag_indices_from(H)] += 0.1 * _SETTLED  # pairs may be alike
    x, free = np.zeros(len(Q)), np.zeros(len(Q), bool)
    # The best single pair is where the active set begins.
    entering, value, n_iter = int(np.diagonal(Q).argmin()), 0.0, 0
    while True:
        new, inside = _with_entry(H, x, free, entering)
        n_iter += 1
        new_value = 0.5 * float(new @ H @ new) - float(new.sum())
        if not new_value < value:  # rounding is all that is left
            return C * x / x.sum(), n_iter, Status.CONVERGED
        x, free, value = new, inside, new_value
        a = C * x / x.sum()
        slope = np.where(free, 0.0, 1 - H @ x)
        entering = int(slope.argmax())
        if not slope[entering] > _SETTLED:
            return a, n_iter, Status.CONVERGED
        if n_iter == max_iter:
            return a, n_iter, Status.MAX_ITER
        Qa = Q @ a
        norm = 0.25 * float(a @ Qa)
        gap = relative_gap(norm - 0.5 * C * float(Qa.min()), -norm, least)
        # The gap of (D) itself, not of the least squares problem that stands for it.
        if (stopped := monitor.stop(n_iter, gap)) is not None:
            return a, n_iter, stopped


def _with_entry(
    H: np.ndarray, x: np.ndarray, free: np.ndarray, entering: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum of x'H x / 2 - sum_k x_k over the free entries and the
    entering one, without those that fall below 0 on the way there, and which are free
    then.
    """
    x, free = x.copy(), free.copy()
    free[entering] = True
    while True:
        inside = np.flatnonzero(free)
        end = np.linalg.solve(H[np.ix_(inside, inside)], np.ones(inside.size))
        now = x[inside]
        falls = end <= 0
        if not falls.any():
            x[inside] = end
            return x, free
        part = np.full(inside.size, np.inf)
        part[falls] = now[falls] / (now[falls] - end[falls])
        x[inside] = now + part.min() * (end - now)
        out = inside[part == part.min()]
        x[out], free[out] = 0.0, False


def relative_gap(primal: float, dual: float, least: float) -> float:
    return (primal - dual) / max(abs(primal), abs(dual), least)


def thresholds(means: np.ndarray, variance: float, share: np.ndarray) -> np.ndarray:
    """Return where the most likely rank changes, (q - 1,), if the scores of rank k are
    normal and share[k] of all rows are of rank k. Thresholds rise, and are equal where
    a rank is never the most likely one.
    """
    means = np.maximum.accumulate(means)  # unless it ended early, they rise
    apart = means - means[:, None]
    odds = np.subtract.outer(np.log(share), np.log(share))  # of row over column
    shift = variance * odds / np.where(apart > 0, apart, np.inf)
    even = 0.5 * (means + means[:, None]) + shift  # row k and column l are as likely
    return np.array(
        [even[: j + 1, j + 1 :].min(axis=1).max() for j in range(means.size - 1)]
    )


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
        # All rows are one point: any direction is as good, and 0 is the one without
        # scores.
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
        # The raw data judge: an active set that ended well may still have a poor
        # factor.
        if status is Status.CONVERGED and not violation <= self.monitor.tol:
            status = Status.STALLED
        made = self.monitor.record(status, n_iter, violation, primal, dual)
        between = thresholds(found.means, found.norm, scatter.shares.of_rank)
        return self._model(
            problem, scatter.support, u, found.coef, between, a, rho, made
        )

    def _nothing(
        self, problem: Problem, support: Matrix, u: float, status: Status
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
        support: Matrix,
        u: float,
        coef: np.ndarray,
        between: np.ndarray,
        a: np.ndarray,
        rho: float,
        made: Convergence,
    ) -> KdlorModel:
        present, r = np.flatnonzero(problem.present), problem.n_classes
        dual = np.zeros(r - 1)
        # Pairs of present ranks, at the place of their lower rank.
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
