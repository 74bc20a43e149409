"""Fits of very many rows within a time: to all of them, to a sample, or on a basis.

A solver of the quadratic program that is stopped early may be far from the optimum, and
predict worse than the optimum of a sample of the rows, or of all rows on a basis. Small
models of both kinds tell first how long the fit would take. If there is time for it,
it is begun. If not, the kind whose small model predicts rows held out better has the
time. A fit that was begun and is stopped gives way to one on a basis if that is nearer:
both are points of the same (P), so that its value tells.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np

from .._input.basis import BasisChoice
from .._input.labels import ranks_of
from .._input.problem import Problem
from .._input.types import Kernel
from .._kernel_matrix.tiles import Products
from .._model.convergence import Convergence, Status
from .._model.folds import hold_out, parted
from .._model.monitor import Monitor, OutOfTime
from .._model.support import KernelModel
from .._numerics.rows import take
from ..kernels import Precomputed
from .levels import stratified

_MANY = 20_000  # rows, from which on these ways may be of use

_FIRST, _FIRST_BASIS = 1000, 100  # rows of the first sample, and of the first basis
_SMALL = 0.05  # of the time, for the small models of each kind that are compared
_FEW_TIMES = 5  # of that, after which one is given up
_WORTH = 1.5  # times as many rows or basis rows are worth another fit
_HOPE = 1.0  # of the time that is left: a fit to all rows that needs less is begun
_TO_ALL = 0.8  # of the time, for it
_HALF = 0.5  # of the time, for one of which nothing is expected
_PLANNED = 0.7  # of the time that is left, by a forecast that others may upset
# Of n, which the time of a fit grows by: measured with K in memory, and planned with
_POWER, _CAREFUL = 1.8, 2.0
_LINEAR = 1600  # basis rows m for which a step takes as long by m as by m^2
_MOST = 4000  # basis rows
_HELD_OUT = 4000  # rows that judge
_GAP = 1e-3  # relative, on the basis, whose distance from the whole kernel is larger

M = TypeVar("M", bound=KernelModel)


def takes_basis_in_time(problem: Problem, kernel: Kernel, monitor: Monitor) -> bool:
    """Whether a fit to the whole kernel matrix may end as another one."""
    many = problem.n_samples >= _MANY and not isinstance(kernel, Precomputed)
    return many and monitor.max_time is not None


def rough(monitor: Monitor) -> Monitor:
    """The same watch for a fit on a basis."""
    return monitor.to_tol(max(_GAP, monitor.tol))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways(Generic[M]):
    """The fits of one problem, all of them to as many points as there are.

    Attributes
    ----------
    exact : callable
        Models of a problem, by a monitor, and what else is known of them.
    on_basis : callable
        Models of some points on the basis that a choice means, by a monitor.
    points : int
    sampled : bool
        Whether a model of a sample will do.
    begun : bool
        Whether the fit to all rows begins near its end, so that small models do not
        tell how long it takes.
    cache_mb : float
    seed : int
        Draws samples.
    """

    exact: Callable[[Problem, Monitor], tuple[list[M], Any]]
    on_basis: Callable[[BasisChoice, Monitor, Sequence[int]], list[M]]
    points: int
    sampled: bool
    begun: bool
    cache_mb: float
    seed: int


class Kind(enum.Enum):
    """Models in place of one of all rows and the whole kernel matrix."""

    SAMPLE = "of a sample, each row with its own weight"
    WEIGHTED = "of a sample, whose rows weigh as much as all"
    BASIS = "of all rows on a basis"


@dataclass(frozen=True, slots=True)
class Trial(Generic[M]):
    """Models of a sample, or on a basis, of `size` rows, and their mean error."""

    models: list[M]
    kind: Kind
    size: int
    seconds: float
    error: float

    @property
    def ended(self) -> bool:
        return all(m.convergence.converged for m in self.models)


@dataclass(frozen=True, slots=True)
class InTime(Generic[M]):
    """Fits of the points of a job to very many rows within the time of its monitor.

    Attributes
    ----------
    job : object
        Of fits to the whole kernel matrix: `fit(problem, products)` gives models and
        what else is known of them; with its `points`, `kernel`, `cache_mb` and
        `monitor`.
    on_basis : callable
        Models of a problem on the basis that a choice means, by a monitor: of some of
        the points.
    seed : int
        Draws samples.
    sampled : bool
        Whether models of a sample of the rows will do.
    """

    job: Any
    on_basis: Callable[[BasisChoice, Problem, Monitor, list[Any]], list[M]]
    seed: int
    sampled: bool

    def among(self, problem: Problem, rows: np.ndarray) -> Self:
        """The same for a problem of these rows."""
        return self

    def fit(
        self, problem: Problem, products: Products | None = None
    ) -> tuple[list[M], Any]:
        """A model a point."""
        job = self.job

        def exact(part: Problem, watch: Monitor) -> tuple[list[M], Any]:
            given = products if part is problem else None
            found: tuple[list[M], Any] = replace(job, monitor=watch).fit(part, given)
            return found

        def on_basis(
            choice: BasisChoice, watch: Monitor, points: Sequence[int]
        ) -> list[M]:
            some = [job.points[i] for i in points]
            return self.on_basis(choice, problem, watch, some)

        ways = Ways(
            exact=exact, on_basis=on_basis, points=len(job.points), begun=False,
            sampled=self.sampled, cache_mb=job.cache_mb, seed=self.seed,
        )  # fmt: skip
        return fit_in_time(ways, problem, job.kernel, job.monitor)


def fit_in_time(
    ways: Ways[M], problem: Problem, kernel: Kernel, monitor: Monitor
) -> tuple[list[M], Any]:
    """A model a point within the time of a monitor, and what is known of all of them
    if none is another one than was asked for."""
    trials = _Trials(ways, problem, kernel, monitor)
    if ways.begun:
        return trials.fit_all(_HALF)
    small = trials.small(Kind.SAMPLE)
    expected = small.seconds * (problem.n_samples / small.size) ** _POWER
    if monitor.stopped:
        return trials.told(small), None
    if small.ended and expected <= _HOPE * trials.left:
        return trials.fit_all(_TO_ALL)
    others = [trials.small(Kind.BASIS)]
    if ways.sampled:
        others += [small, trials.small(Kind.WEIGHTED)]
    return trials.told(trials.larger(nearest(others))), None


def nearest(trials: Sequence[Trial[M]]) -> Trial[M]:
    """By the rows held out."""
    return min(trials, key=lambda trial: trial.error)


class _Trials(Generic[M]):
    """Models of less than was asked for, and what they tell."""

    def __init__(
        self, ways: Ways[M], problem: Problem, kernel: Kernel, monitor: Monitor
    ):
        assert monitor.max_time is not None
        self._ways, self._problem, self._kernel = ways, problem, kernel
        self._monitor, self._max_time = monitor, monitor.max_time
        self._points = list(range(ways.points))
        self._rng = np.random.default_rng(ways.seed)
        n = problem.n_samples
        held = hold_out(problem.rank, min(n // 5, _HELD_OUT), self._rng)
        self._train = np.flatnonzero(~held & (problem.weight > 0))
        self._test, self._X_test = np.flatnonzero(held), take(problem.X, held)
        # beyond the room for features they are made anew for each pass
        room = int(ways.cache_mb * 1e6 / (4 * n))
        self._most_basis = max(min(room, _MOST), _FIRST_BASIS)

    @property
    def left(self) -> float:
        """Seconds."""
        return max(self._max_time - self._monitor.seconds, 0.0)

    def small(self, kind: Kind) -> Trial[M]:
        """At the least size, or a larger one for which there is a small time."""
        first = _FIRST_BASIS if kind is Kind.BASIS else _FIRST
        until = self._monitor.within(self._share_until(_FEW_TIMES * _SMALL))
        return self._grown(self._tried(first, kind, until), _SMALL * self._max_time)

    def larger(self, small: Trial[M]) -> Trial[M]:
        """Of the time that is left; `small`, if that predicts better."""
        return self._grown(small, _PLANNED * self.left)

    def told(self, trial: Trial[M]) -> list[M]:
        """The models with records that say what they are."""
        seconds = self._monitor.seconds
        status = Status.STOPPED if self._monitor.stopped else Status.MAX_TIME

        def record(of: Convergence) -> Convergence:
            """The multipliers of 0 are the dual point that is known of all rows."""
            if of.parts:
                return Convergence.of_parts([record(part) for part in of.parts])
            of = replace(
                of, status=status, violation=np.inf, tol=self._monitor.tol,
                seconds=seconds,
            )  # fmt: skip
            if trial.kind is not Kind.BASIS:
                return replace(of, primal=np.inf, dual=None, sample=trial.size)
            seen = np.isfinite(of.primal)
            return replace(of, dual=0.0 if seen else None, basis=trial.size)

        return [replace(m, convergence=record(m.convergence)) for m in trial.models]

    def fit_all(self, share: float) -> tuple[list[M], Any]:
        """To all rows in a share of the time; points that are late then, on a basis, if
        they are nearer."""
        models, known = self._ways.exact(self._problem, self._monitor.within(share))
        of = [m.convergence for m in models]
        late = [i for i, c in enumerate(of) if c.status is Status.MAX_TIME]
        if not late:
            return models, known
        self._points = late
        trial = self.larger(self.small(Kind.BASIS))
        others = dict(zip(late, self.told(trial), strict=True))
        seconds = self._monitor.seconds
        for i, other in others.items():
            b = other.convergence
            if b.primal < of[i].primal:
                models[i], known = (
                    replace(other, convergence=_certified(b, of[i])),
                    None,
                )
            else:
                models[i] = replace(models[i], convergence=_later(of[i], seconds))
        return models, known

    def _share_until(self, more: float) -> float:
        return min(self._monitor.seconds / self._max_time + more, 1.0)

    def _grown(self, trial: Trial[M], seconds: float) -> Trial[M]:
        """The better of a trial and a larger one that takes so many seconds."""
        times = seconds / max(trial.seconds, 1e-6)
        if trial.kind is not Kind.BASIS:
            size = min(int(trial.size * times ** (1 / _CAREFUL)), self._train.size)
        else:
            work = times * trial.size * (1 + trial.size / _LINEAR) / _LINEAR
            size = int(_LINEAR * (math.sqrt(1 + 4 * work) - 1) / 2)
            size = min(size, self._most_basis)
        if self._monitor.ended or not trial.ended or size < _WORTH * trial.size:
            return trial
        other = self._tried(size, trial.kind, self._monitor)
        return nearest([trial, other])

    def _tried(self, size: int, kind: Kind, monitor: Monitor) -> Trial[M]:
        began = monitor.seconds
        if kind is not Kind.BASIS:
            some = stratified(self._problem.rank[self._train], size, self._rng)
            rows = self._train[some]
            share = None
            if kind is Kind.WEIGHTED:
                share = np.full(rows.size, self._problem.n_samples / rows.size)
            part, _ = parted(self._problem, self._kernel, rows, rows[:0], share)
            size, models = rows.size, self._ways.exact(part, monitor)[0]
        else:
            choice = BasisChoice("random", size)
            models = self._ways.on_basis(choice, rough(monitor), self._points)
            size = len(models[0].support)
        seconds = monitor.seconds - began
        return Trial(models, kind, size, seconds, self._error(models))

    def _error(self, models: list[M]) -> float:
        """Mean absolute error on the rows held out, of the points, too; infinite where
        there is no time for it."""
        rank, weight = self._problem.rank[self._test], self._problem.weight[self._test]
        try:
            with self._monitor.limited(Monitor.GRACE):
                found = [ranks_of(m.predict(self._X_test), m.classes) for m in models]
        except OutOfTime:
            return math.inf
        off = np.abs(np.array(found) - rank).mean(axis=0)
        return float(off @ weight / max(weight.sum(), 1e-300))


def _later(a: Convergence, seconds: float) -> Convergence:
    if a.parts:
        return Convergence.of_parts([_later(part, seconds) for part in a.parts])
    return replace(a, seconds=seconds)


def _certified(b: Convergence, a: Convergence) -> Convergence:
    """The record b of a model on a basis, with the dual point that a knows of."""
    if b.parts:
        pairs = zip(b.parts, a.parts, strict=True)
        return Convergence.of_parts([_certified(*pair) for pair in pairs])
    return replace(b, n_iter=a.n_iter + b.n_iter, dual=a.dual)
