"""Newton's method for the loss of a linear cumulative model.

The first four links have a log P that is concave in the predictors, so that without
columns of the scale the loss is convex. Where it is not, a multiple of the Hessian's
diagonal is added until the step descends, and the descent goes on from saddle points
along the direction that curves down most. Points where a row has no probability have an
infinite value, so that thresholds which close in on a row keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from .._numerics.lbfgs import HALVINGS, armijo, shortened
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .bordered import Bordered, Factor
from .design import Design
from .likelihood import Point

_FALL = 1e-4  # share of what a direction that curves down promises
_MOST = 1e12  # rows in whose standard errors steps are measured
_FLAT = 1e-8  # of eigenvalues, relative to the diagonal: 0 but for rounding
_MAX_SHIFT = 1e12


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """End of the descent.

    `step` is the next step, or all steps together; `violation` is its length in
    standard errors, or the largest slope.
    """

    point: Point
    step: np.ndarray
    violation: float
    status: Status
    n_iter: int


# A step, and the force of the constraints at its end: their normals times multipliers.
# Its work is 0 where the constraints that hold stay the same, and else negative.
StepOf: TypeAlias = Callable[[Point], tuple[np.ndarray, np.ndarray]]


class Loss(Protocol):
    """Function to be minimised: a likelihood, or one with a fixed parameter."""

    @property
    def design(self) -> Design: ...
    @property
    def is_convex(self) -> bool: ...
    def at(self, x: np.ndarray) -> Point: ...


def minimize(
    loss: Loss,
    x: np.ndarray,
    max_iter: int,
    monitor: Monitor,
    done: int = 0,
    step_of: StepOf | None = None,
) -> Minimum:
    """Go downhill from x until a Newton step is shorter than `monitor.tol`; `n_iter`
    counts on from the steps that were `done` before. Steps under a constraint are those
    of `step_of`, and the loss is convex then.
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
            # Scale effects and cauchit make the loss bend both ways: a saddle has slope
            # 0, too.
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
    """A point with the value and gradient of the loss less the work of a force."""

    point: Point
    value: float
    gradient: np.ndarray


def _along(
    loss: Loss, here: Point, step: np.ndarray, force: np.ndarray, size: float
) -> _Tilted:
    there = loss.at(here.x + size * step)
    work = size * float(force @ step)
    return _Tilted(there, there.value - work, there.gradient - force)


def length_in_errors(slope: float, total: float) -> float:
    """Return the length of a Newton step in standard errors, from the slope of the mean
    loss along it: of the weight of all rows, or of 1 or 1e12 rows where that is less or
    more. A unit of weights in which the errors are huge would let any step pass, and
    one in which rounding is as large as they are none.
    """
    return math.sqrt(min(max(total, 1.0), _MOST) * max(-slope, 0.0))


def _newton_step(here: Point) -> tuple[np.ndarray, np.ndarray]:
    """Return a step of descent, and that no constraint has a force."""
    step = _direction(here.hessian, here.gradient)
    return step, np.zeros(step.size)


def _direction(H: Bordered, gradient: np.ndarray) -> np.ndarray:
    """Return -(H + shift diag(H))^-1 gradient, of a matrix that is positive definite.

    It is scaled to a diagonal of 1: thresholds that no row is near have curvatures like
    1e-70 beside others of 1.
    """
    unit = _unit(H)
    H, gradient = H.scaled(unit), gradient * unit
    each, shift = np.ones(unit.size), 0.0
    while True:
        try:
            factor = Factor(H.plus(shift * each) if shift else H)
            if shift:  # and a tenth of it, or the least curvature may be rounding alone
                factor = Factor(H.plus(1.1 * shift * each))
        except np.linalg.LinAlgError:
            # Factors of 3: a shift far larger than needed would make a step of descent
            # only.
            shift = max(1e-10, 3 * shift)
            if shift > _MAX_SHIFT:
                return np.asarray(-gradient * unit)
        else:
            return np.asarray(-factor.solve(gradient) * unit)


def _unit(H: Bordered) -> np.ndarray:
    """Return lengths along the parameters over which the curvature changes the loss by
    1/2.
    """
    diagonal = np.abs(H.diagonal())
    least = max(1e-100 * diagonal.max(), 1e-200)  # products of steps are finite
    return np.asarray(1 / np.sqrt(np.maximum(diagonal, least)))


def _below_saddle(loss: Loss, here: Point) -> Point | None:
    """Return a lower point where the slope is 0.

    None if the Hessian has no direction that curves down. O(p^3).
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
        # Along a direction of slope 0 either sense may lead down first.
        for step in (size * unit * along[:, 0], -size * unit * along[:, 0]):
            there = loss.at(here.x + step)
            if there.value - here.value <= _FALL * size**2 * curvature[0]:
                return there
    return None
