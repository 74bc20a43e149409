"""The two solvers of (P), and early stopping by held-out rows.

`quasi_newton` takes L-BFGS steps on the gradient of all pairs. `stochastic_descent` is
Algorithm 1 of the paper on mini-batches of pairs. Its learning rate decreases to 0:
with the fixed rate of the paper, which `constant` keeps, the iterates do not converge
to a minimum.
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

_PATIENCE = 10  # evaluations on the held-out rows without an improvement


class HeldOutMonitor(Monitor):
    """A monitor that ends a fit when its loss on held-out rows no longer improves.

    Attributes
    ----------
    latest : (P, m) array or None
        The pieces to evaluate next, which a solver sets before it calls `stop`.
    best : (P, m) array or None
        The pieces with the least loss on the held-out rows so far.
    """

    _held: PairLoss | None = None
    latest: np.ndarray | None = None
    best: np.ndarray | None = None

    def watch(self, layout: Layout, held: PairLoss) -> None:
        """Evaluate the loss of these held-out rows from now on."""
        self._layout, self._held = layout, held
        self._least, self._since = np.inf, 0

    def judge(self) -> bool:
        """Evaluate the latest pieces on the held-out rows; return whether to stop."""
        # The monitor asks more often than a solver has new pieces.
        if self._held is None or self.latest is None:
            return False
        value = self._held.value(self._layout.table(self.latest))
        self._since += 1
        if value < self._least:
            # A copy, because stochastic descent goes on in the same array.
            self._least, self._since, self.best = value, 0, self.latest.copy()
        self.latest = None
        return self._since >= _PATIENCE

    def stop(self, n_iter: int, violation: float) -> Status | None:
        status = super().stop(n_iter, violation)
        if status is None and self.judge():
            status = Status.HELD_OUT  # of this fit only, not of those of folds
        return status


def hold_out_rows(
    rows: LocatedRows, early_stopping: float, rng: np.random.Generator
) -> tuple[LocatedRows, LocatedRows]:
    """Return the training rows, and the held-out ones: a share of each rank."""
    rule = "a share between 0 and 1, or None"
    share = check_real("early_stopping", early_stopping, lambda v: 0 < v < 1, rule)
    # `hold_out` leaves a training row of each rank, so that ranks must have rows.
    rank = np.unique(rows.rank, return_inverse=True)[1]
    held = hold_out(rank, held_out_size(share, rank.size, rank.max() + 1), rng)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    if np.unique(rows.rank[test]).size < 2:
        raise ValueError(
            f"early_stopping={share} must hold out rows of two classes or more, "
            f"got {test.size} rows of one class: raise the share"
        )
    return rows.take(train), rows.take(test)


_EVALUATIONS = 50  # evaluations of the whole objective in a stochastic run
_MOST_PAIRS = 2.0**62  # most pairs that a run can count
_DEFAULT_PAIRS = 2_000_000  # least number of pairs that a run sees by default

_DEFAULTS: dict[str, dict[str, Any]] = {
    "lbfgs": {"tol": 1e-3, "max_iter": 1000},
    "sgd": {"tol": 1e-2, "learning_rate": None, "n_epochs": None, "batch_size": 64},
    "algorithm1": {"tol": 1e-2, "learning_rate": 1e-3, "n_epochs": 1.0},
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
    """End of a solver: the pieces, and value and violation of (P) there."""

    W: np.ndarray
    value: float
    violation: float
    n_iter: int
    status: Status


def solver_options(solver: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401  (checked here)
    """Return the checked options of a solver, with its defaults.

    Raises
    ------
    ValueError, TypeError
        An option is invalid, or belongs to the other solver.
    """
    check_choice("solver", solver, _DEFAULTS)
    options = dict(_DEFAULTS[solver])
    for name, value in given.items():
        if value is None:
            continue
        if name not in options:
            others = [other for other, has in _DEFAULTS.items() if name in has]
            raise ValueError(
                f"{name} is for solver={' or '.join(map(shown, others))} only, "
                f"got {shown(value)}"
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
    """Minimise (P) from the pieces W by L-BFGS, over the roots of the bounded ones.

    The search ends where the largest slope is at most `monitor.tol`. It begins on the
    samples, one after the other, each warm started with the minimum and the curvature
    of the one before. The minimum for every 16th row is so near to that for all rows
    that a few steps on all rows suffice.
    """
    mask, shape = objective.bounds.mask(W), W.shape
    bounded = bool(mask.any())

    def pieces(x: np.ndarray) -> np.ndarray:
        x = x.reshape(shape)
        # With squares the same L-BFGS serves with and without bounds.
        return np.where(mask, x * x, x) if bounded else x

    def search(objective: Objective, x: np.ndarray, tol: float, done: int) -> Minimum:
        def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
            monitor.latest = pieces(x)
            value, dW = objective.at(monitor.latest)
            if bounded:
                dW = np.where(mask, 2 * x.reshape(shape) * dW, dW)
            return value, dW.ravel()

        # A copy by `after` would not see `monitor.latest`. It is made after samples
        # only, which a fit with held-out rows does not have.
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
    constant: bool = False,
) -> XofmSolution:
    """Minimise (P) from the pieces W, which are overwritten, on batches of pairs.

    A run ends after `n_epochs` passes over the pairs, and has converged if the largest
    slope is then at most `monitor.tol`. `fit_xofm` describes the defaults of None. With
    a `constant` rate, the number of passes is what was asked for.
    """
    loss = objective.loss
    if n_epochs is None:
        n_epochs = max(1.0, _DEFAULT_PAIRS / loss.n_pairs)
    if learning_rate is None:
        learning_rate = _default_rate(objective, batch_size)
    # Algorithm 1 squares the loss without the half of (P).
    rate = 2 * learning_rate if constant else learning_rate
    last = max(1, round(min(n_epochs * loss.n_pairs, _MOST_PAIRS)))
    # No run is so long that its share of the most pairs changes a constant rate.
    end = int(_MOST_PAIRS) if constant else last
    # The kernel draws each pair from the key and the number of the pair, so that pairs
    # depend neither on interruptions nor on the number of threads.
    key = int(rng.integers(2**63))
    done, violation, status = 0, np.inf, None
    for part in range(1, _EVALUATIONS + 1):
        # The objective costs as much as many batches, so that it is evaluated rarely.
        stop = last * part // _EVALUATIONS
        while done < stop and status is None:
            done = _slice(objective, W, rate, batch_size, key, done, stop, end)
            status = monitor.stop(done, violation)
        if status is not None:
            break
        value, dW = objective.at(W)
        # A diverging run never recovers, and its pieces predict nothing.
        if not np.isfinite(value):
            raise ValueError(
                f"learning_rate={learning_rate:g} is too large, or a penalty or "
                "init_scale: the scores overflow"
            )
        violation = objective.violation(W, dW)
        monitor.latest = W
        status = monitor.stop(done, violation)
    if status is None:
        ended = Status.N_STEPS if constant else Status.N_EPOCHS
        status = Status.CONVERGED if violation <= monitor.tol else ended
    return _solution(objective, W, monitor, done, status)


def _default_rate(objective: Objective, batch_size: int) -> float:
    """Return the default learning rate."""
    # Slopes by u grow with the number of pieces, those by roots and factors also with
    # tau. Batches of less than 16 pairs have noisier gradients.
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
    """Take steps from pair `done` on, to pair `stop` or until it is time to report.

    W is updated in place; the result is the number of pairs done. The learning rate
    reaches 0 at pair `last`.
    """
    layout, loss, bounds = objective.layout, objective.loss, objective.bounds
    floor = np.full(W.shape[1], 0.0 if bounds.factors else -np.inf)
    floor[0] = -np.inf  # bounded entries of u are squares
    # Pairs are drawn at random from all rows, which must be in memory.
    assert isinstance(loss.rows, LocatedRows)
    rows = loss.rows
    done = _factorization.sgd(
        rows.node,
        rows.share,
        rows.weight,
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
    """Return the solution W, or the pieces that are best for the held-out rows."""
    monitor.latest = W
    monitor.judge()
    if monitor.best is not None:
        W = monitor.best
        ended = Status.N_EPOCHS, Status.N_STEPS
        if status in (Status.CONVERGED, Status.STALLED, *ended):
            status = Status.HELD_OUT
    value, dW = objective.at(W)
    return XofmSolution(W, value, objective.violation(W, dW), n_iter, status)
