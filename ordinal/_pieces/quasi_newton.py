"""The deterministic solver of (P): quasi-Newton steps on the gradient of all pairs."""

import numpy as np

from .._numerics.lbfgs import minimize
from .held_out import HeldOutMonitor, Solution, solution
from .objective import Objective


def quasi_newton(
    objective: Objective, W: np.ndarray, monitor: HeldOutMonitor, *, max_iter: int
) -> Solution:
    """Minimise (P) from the pieces W, in the roots of the bounded ones.

    Ends where the largest slope is at most `monitor.tol`.
    """
    mask, shape = objective.bounds.mask(W), W.shape

    def pieces(x: np.ndarray) -> np.ndarray:
        x = x.reshape(shape)
        return np.where(mask, x * x, x)

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        monitor.latest = pieces(x)
        value, dW = objective.at(monitor.latest)
        return value, np.where(mask, 2 * x.reshape(shape) * dW, dW).ravel()

    found = minimize(
        fun, np.where(mask, np.sqrt(np.abs(W)), W).ravel(), tol=monitor.tol,
        max_iter=max_iter, monitor=monitor,
    )  # fmt: skip
    return solution(objective, pieces(found.x), monitor, found.n_iter, found.status)
