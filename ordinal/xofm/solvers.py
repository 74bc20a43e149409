"""The two solvers of (P): quasi-Newton steps on the gradient of all pairs, and
Algorithm 1 of the paper on mini-batches of pairs; early stopping by held-out rows.

The learning rate of the latter falls to 0 in the course of a run: with a fixed one, as
the paper has it, the iterates stay at a distance from any minimum.
"""

from __future__ import annotations  # numpy.random is slow to import

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import (
    check_choice,
    check_count,
    check_factor,
    check_positive,
    check_real,
    shown,
)
from .._model.folds import held_out_size, hold_out
from .._numerics.lbfgs import Curvature, Minimum, minimize
from .._solvers import _factorization
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .layout import Layout
from .objective import LocatedRows, Objective, PairLoss, Ranked

_PATIENCE = 10  # evaluations on the held-out rows without a better one


class HeldOutMonitor(Monitor):
    """A monitor that also ends a fit when held-out rows are no longer predicted better.

    A solver leaves the pieces to judge in `latest` before it asks to go on.

    Attributes
    ----------
    latest : (P, m) array or None
    best : (P, m) array or None
        The pieces with the least loss on the held-out rows so far.
    """

    _held: PairLoss | None = None
    latest: np.ndarray | None = None
    best: np.ndarray | None = None

    def watch(self, layout: Layout, held: PairLoss) -> None:
        """Evaluate on these rows from now on."""
        self._layout, self._held = layout, held
        self._least, self._since = np.inf, 0

    def judge(self) -> bool:
        """Evaluate the latest pieces on the held-out rows; whether to stop."""
        # The monitor asks more often than a solver has new pieces.
        if self._held is None or self.latest is None:
            return False
        value = self._held.value(self._layout.table(self.latest))
        self._since += 1
        if value < self._least:
            # A copy: stochastic descent goes on in the same array.
            self._least, self._since, self.best = value, 0, self.latest.copy()
        self.latest = None
        return self._since >= _PATIENCE

    def stop(self, n_iter: int, violation: float) -> Status | None:
        # of this part alone: the fits of folds have held-out rows of their own
        return super().stop(n_iter, violation) or (
            Status.HELD_OUT if self.judge() else None
        )


def hold_out_rows(
    rows: LocatedRows, early_stopping: float, rng: np.random.Generator
) -> tuple[LocatedRows, LocatedRows]:
    """Return rows to train on, and a share of each rank that is held out."""
    rule = "a share between 0 and 1, or None"
    share = check_real("early_stopping", early_stopping, lambda v: 0 < v < 1, rule)
    # Ranks without rows would count among those that must keep one.
    rank = np.unique(rows.rank, return_inverse=True)[1]
    held = hold_out(rank, held_out_size(share, rank.size, rank.max() + 1), rng)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    if np.unique(rows.rank[test]).size < 2:
        raise ValueError(
            f"early_stopping={share} must hold out rows of two classes or more, "
            f"got {test.size} rows of one class: raise the share"
        )
    return rows.take(train), rows.take(test)


_EVALUATIONS = 50  # of the whole objective in a stochastic run
_MOST_PAIRS = 2.0**62  # that a run can count, in centuries
_DEFAULT_PAIRS = 2_000_000  # seen by default, or at least one pass over all

_DEFAULTS: dict[str, dict[str, Any]] = {
    "lbfgs": {"tol": 1e-3, "max_iter": 1000},
    "sgd": {"tol": 1e-2, "learning_rate": None, "n_epochs": None, "batch_size": 64},
}
_CHECKS: dict[str, Callable[[str, Any], float]] = {
    "tol": check_positive,
    "max_iter": check_count,
    "learning_rate": check_factor,
    "n_epochs": check_positive,
    "batch_size": check_count,
}


# Tolerance of a sample, relative to that of all rows. A million rows took 4 or 9
# evaluations from samples solved to a third of it, and 7 or 15 without.
_CLOSER = 0.3


class XofmSolution(NamedTuple):
    """The pieces a solver ends with; value and violation are those of (P) there."""

    W: np.ndarray
    value: float
    violation: float
    n_iter: int
    status: Status


def solver_options(solver: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401  (checked here)
    """Return the options of a solver, checked.

    What only the other one takes is refused.
    """
    check_choice("solver", solver, ("lbfgs", "sgd"))
    options = dict(_DEFAULTS[solver])
    for name, value in given.items():
        if value is None:
            continue
        if name not in options:
            other = "sgd" if solver == "lbfgs" else "lbfgs"
            raise ValueError(
                f"{name} is for solver={shown(other)} only, got {shown(value)}"
            )
        options[name] = _CHECKS[name](name, value)
    return options


def quasi_newton(
    objective: Objective,
    W: np.ndarray,
    monitor: HeldOutMonitor,
    *,
    max_iter: int,
    samples: Iterable[Ranked] = (),
) -> XofmSolution:
    """Minimise (P) from the pieces W, in the roots of the bounded ones.

    Ends where the largest slope is at most `monitor.tol`. Each of the samples is
    searched before all rows, from the minimum of the one before, and with its
    curvature: the optimum of every 16th row is so near to that of all that a few steps
    on all rows are left.
    """
    mask, shape = objective.bounds.mask(W), W.shape

    def pieces(x: np.ndarray) -> np.ndarray:
        x = x.reshape(shape)
        # Squares need no projection, so that plain L-BFGS serves with and without
        # bounds.
        return np.where(mask, x * x, x)

    def search(objective: Objective, x: np.ndarray, tol: float, done: int) -> Minimum:
        def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
            monitor.latest = pieces(x)
            value, dW = objective.at(monitor.latest)
            return value, np.where(mask, 2 * x.reshape(shape) * dW, dW).ravel()

        # Held-out rows are known to this monitor alone; with them there are no samples.
        part = monitor.after(done) if done else monitor
        return minimize(
            fun, x, tol=tol, max_iter=max_iter, monitor=part, curvature=curvature
        )

    x = np.where(mask, np.sqrt(np.abs(W)), W).ravel()
    curvature, done, loss = Curvature(x.size), 0, objective.loss
    for rows in samples:
        sample = PairLoss(rows, loss.tau, loss.n_threads)
        found = search(replace(objective, loss=sample), x, _CLOSER * monitor.tol, done)
        x, done = found.x, done + found.n_iter
    found = search(objective, x, monitor.tol, done)
    done += found.n_iter
    return _solution(objective, pieces(found.x), monitor, done, found.status)


def stochastic_descent(
    objective: Objective,
    W: np.ndarray,
    monitor: HeldOutMonitor,
    *,
    learning_rate: float | None,
    n_epochs: float | None,
    batch_size: int,
    rng: np.random.Generator,
) -> XofmSolution:
    """Minimise (P) from the pieces W, which are overwritten.

    A run ends after `n_epochs` passes over the pairs; it has converged if the largest
    slope is then at most `monitor.tol`. For None see `fit_xofm`.
    """
    loss = objective.loss
    if n_epochs is None:
        n_epochs = max(1.0, _DEFAULT_PAIRS / loss.n_pairs)
    rate = learning_rate
    if rate is None:
        rate = _default_rate(objective, batch_size)
    last = max(1, round(min(n_epochs * loss.n_pairs, _MOST_PAIRS)))
    # Pairs follow from the key and their number: a run can be cut anywhere and goes on
    # with the same pairs, for every number of threads.
    key = int(rng.integers(2**63))
    done, violation, status = 0, np.inf, None
    for part in range(1, _EVALUATIONS + 1):
        # The objective costs a pass over all pairs: it is asked for 50 times, not per
        # batch.
        stop = last * part // _EVALUATIONS
        while done < stop and status is None:
            done = _slice(objective, W, rate, batch_size, key, done, stop, last)
            status = monitor.stop(done, violation)
        if status is not None:
            break
        value, dW = objective.at(W)
        # A diverging run never recovers, and its pieces predict nothing.
        if not np.isfinite(value):
            raise ValueError(
                f"learning_rate={rate:g} is too large, or a penalty or init_scale: the "
                "scores overflow"
            )
        violation = objective.violation(W, dW)
        monitor.latest = W
        status = monitor.stop(done, violation)
    if status is None:
        status = Status.CONVERGED if violation <= monitor.tol else Status.N_EPOCHS
    return _solution(objective, W, monitor, done, status)


def _default_rate(objective: Objective, batch_size: int) -> float:
    """Slopes of u go with the pieces, those of roots and factors with tau as well."""
    steps = max(16, objective.layout.n_pieces) * max(1.0, objective.loss.tau)
    return min(4.0, batch_size / 4) / steps


def _slice(
    objective: Objective,
    W: np.ndarray,
    rate: float,
    batch_size: int,
    key: int,
    done: int,
    stop: int,
    last: int,
) -> int:
    """Batches from pair `done` on, until `stop` or until the clock says to report."""
    layout, loss, bounds = objective.layout, objective.loss, objective.bounds
    floor = np.full(W.shape[1], 0.0 if bounds.factors else -np.inf)
    floor[0] = -np.inf  # u is kept from falling below 0 by being a square
    # Pairs are drawn at random from all rows, which must be in memory.
    assert isinstance(loss.rows, LocatedRows)
    done = _factorization.sgd(
        loss.rows.node,
        loss.rows.share,
        loss.rows.weight,
        loss.start,
        layout.first,
        layout.kind,
        loss.tau,
        loss.n_pairs / loss.weight,
        2 * objective.penalty,
        floor,
        bounds.squared,
        W,
        rate,
        batch_size,
        key,
        done,
        stop,
        last,
        Monitor.SLICE,
        loss.n_threads,
    )
    return int(done)


def _solution(
    objective: Objective,
    W: np.ndarray,
    monitor: HeldOutMonitor,
    n_iter: int,
    status: Status,
) -> XofmSolution:
    """Return W, or the best for the held-out rows, with a record of its own."""
    monitor.latest = W
    monitor.judge()
    # The last pieces need not be the best ones for the held-out rows.
    if monitor.best is not None:
        W = monitor.best
        if status in (Status.CONVERGED, Status.STALLED, Status.N_EPOCHS):
            status = Status.HELD_OUT
    value, dW = objective.at(W)
    return XofmSolution(W, value, objective.violation(W, dW), n_iter, status)
