"""(D) of KDLOR, a program of as many unknowns as pairs of neighbouring ranks, and the
thresholds that cut the score of its solution.
"""

from __future__ import annotations

import numpy as np

from .._watch.convergence import Status
from .._watch.monitor import Monitor

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
