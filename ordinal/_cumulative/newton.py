"""Newton's method for the loss of a linear cumulative model.

For all links but cauchit log P is concave in the predictors, so that the loss is convex
unless there are scale effects. Where it is not convex, a multiple of the Hessian's
diagonal is added until the step descends, and the descent leaves saddle points along
the direction of the most negative curvature. The loss is infinite where a row has
probability 0, so that the line search keeps the thresholds about a row in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from .._numerics.descent import FALL, HALVINGS, armijo, shifted, shortened
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .bordered import Bordered, Factor
from .design import Design
from .likelihood import Point

_MOST = 1e12  # most rows in whose standard errors steps are measured
_FLAT = 1e-8  # rounding error of eigenvalues, relative to the diagonal
_MAX_SHIFT = 1e12


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """End of a descent.

    `step` is the next Newton step, or without a Hessian the sum of all steps.
    `violation` is its length in standard errors, or the largest slope.
    """

    point: Point
    step: np.ndarray
    violation: float
    status: Status
    n_iter: int


# Function that returns a step, and the constraint force at its end: the sum of normals
# of constraints times their multipliers. With it the gradient of the Lagrangian is
# gradient - force. force'step is 0 if the active constraints stay the same, and
# negative otherwise.
StepOf: TypeAlias = Callable[[Point], tuple[np.ndarray, np.ndarray]]


class Loss(Protocol):
    """Function to be minimised: a likelihood, or one with a fixed parameter."""

    @property
    def design(self) -> Design: ...
    @property
    def is_convex(self) -> bool: ...
    def at(self, x: np.ndarray) -> Point: ...


def newton(
    loss: Loss,
    x: np.ndarray,
    max_iter: int,
    monitor: Monitor,
    done: int = 0,
    step_of: StepOf | None = None,
) -> Minimum:
    """Descend from x until a Newton step is shorter than `monitor.tol`.

    Parameters
    ----------
    loss : Loss
    x : (p,) array
    max_iter : int
    monitor : Monitor
        The length of a step is measured in standard errors (`length_in_errors`).
    done : int
        Number of earlier steps; `n_iter` of the result includes them.
    step_of : callable, optional
        Steps under constraints, of a convex loss.
    """
    step_of = step_of or _newton_step
    here, n_iter = loss.at(x), done
    # Weights or an offset beyond the range of double: no step can be judged.
    if not math.isfinite(here.value):
        return Minimum(here, np.zeros_like(x), math.inf, Status.STALLED, n_iter)
    while True:
        step, force = step_of(here)
        slope = float((here.gradient - force) @ step)
        violation = length_in_errors(slope, loss.design.total)
        stop = monitor.stop(n_iter, violation)
        if violation <= monitor.tol:
            # A loss that is not convex may have a saddle point here.
            there = None if loss.is_convex or stop else _below_saddle(loss, here)
            if there is None:
                return Minimum(here, step, violation, Status.CONVERGED, n_iter)
            here, n_iter = there, n_iter + 1
            continue
        if stop is None and n_iter - done >= max_iter:
            stop = Status.MAX_ITER
        end = None
        if stop is None:
            short = shortened(step)
            along = partial(_along, loss, here, short, force)
            begin = _Tilted(here, here.value, here.gradient - force)
            end = armijo(along, begin, float(begin.gradient @ short))
        if end is None:
            return Minimum(here, step, violation, stop or Status.STALLED, n_iter)
        here, n_iter = end.point, n_iter + 1


@dataclass(frozen=True, slots=True, eq=False)
class _Tilted:
    """A point with value and gradient of the Lagrangian: the loss less force'x."""

    point: Point
    value: float
    gradient: np.ndarray


def _along(
    loss: Loss, here: Point, step: np.ndarray, force: np.ndarray, size: float
) -> _Tilted:
    """Evaluate the Lagrangian at here.x + size step, up to a constant."""
    there = loss.at(here.x + size * step)
    work = size * float(force @ step)
    return _Tilted(there, there.value - work, there.gradient - force)


def length_in_errors(slope: float, total: float) -> float:
    """Return the length of a Newton step in standard errors.

    Parameters
    ----------
    slope : float
        Derivative of the mean loss along the step.
    total : float
        Sum of the weights.
    """
    # The number of rows is bounded. Weights in small units would make standard errors
    # so large that any step passes, and those in large units so small that rounding
    # lets none pass.
    return math.sqrt(min(max(total, 1.0), _MOST) * max(-slope, 0.0))


def _newton_step(here: Point) -> tuple[np.ndarray, np.ndarray]:
    """Return a step of descent without constraints, whose force is 0."""
    step = _direction(here.hessian, here.gradient)
    return step, np.zeros(step.size)


def _direction(H: Bordered, gradient: np.ndarray) -> np.ndarray:
    """Return -(H + shift diag(H))^-1 gradient, (p,).

    `shift` is 0, or as large as makes the matrix positive definite.
    """
    # Scaled to a diagonal of 1, because thresholds with no row nearby have curvatures
    # like 1e-70 beside others of 1.
    unit = _unit(H)
    H, gradient = H.scaled(unit), gradient * unit
    each = np.ones(unit.size)

    def factor(shift: float) -> Factor:
        made = Factor(H.plus(shift * each) if shift else H)
        # More of it, or the least eigenvalue may be a rounding error.
        return Factor(H.plus(1.1 * shift * each)) if shift else made

    # A shift far larger than needed would make short gradient steps.
    found = shifted(factor, least=1e-10, growth=3, most=_MAX_SHIFT)
    if found is None:
        return np.asarray(-gradient * unit)
    return np.asarray(-found[0].solve(gradient) * unit)


def _unit(H: Bordered) -> np.ndarray:
    """Return the scale of each parameter, 1 / sqrt(diag(H)), (p,)."""
    diagonal = np.abs(H.diagonal())
    least = max(1e-100 * diagonal.max(), 1e-200)  # so that products of steps are finite
    return np.asarray(1 / np.sqrt(np.maximum(diagonal, least)))


def _below_saddle(loss: Loss, here: Point) -> Point | None:
    """Return a lower point near one whose gradient is 0; None if it is a minimum.

    The direction is that of the most negative curvature. O(p^3).
    """
    unit = _unit(here.hessian)
    H = here.hessian.scaled(unit)
    try:
        Factor(H.plus(np.full(unit.size, _FLAT)))
    except np.linalg.LinAlgError:
        curvature, along = np.linalg.eigh(H.dense())
    else:
        return None
    if curvature[0] > -_FLAT:
        return None
    for halving in range(HALVINGS):
        size = 0.5**halving
        # To third order, only one of the two senses may descend.
        for step in (size * unit * along[:, 0], -size * unit * along[:, 0]):
            there = loss.at(here.x + step)
            if there.value - here.value <= FALL * size**2 * curvature[0]:
                return there
    return None
