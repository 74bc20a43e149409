"""Profile likelihood intervals: the values of one parameter that a likelihood ratio
test does not reject.

With D(c) = 2 (max loglik - max loglik where the parameter is c), the interval at a
level is {c: D(c) <= z^2}, z the normal margin of the level. Each end is the root of
sqrt(D(c)) = z, which is nearly linear in c, found by Newton's method: the derivative of
D is that of the loss by the parameter that is held. Every c is a fit from the last one.

D. J. Venzon, S. H. Moolgavkar, "A method for computing profile-likelihood-based
confidence intervals", Applied Statistics 37:87-94, 1988.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import Likelihood, Point
from .._cumulative.newton import Minimum
from .._watch.convergence import ConvergenceWarning, Status, warn
from .estimates import FitMemory, refit

_CLOSE = 1e-7  # of sqrt(D) to z, relative to it
_MAX_FITS = 60  # for one end
_FAR, _FARTHEST = 8.0, 1e3  # in lengths of the Wald interval
_TINY = 1e-300


class FixedParameter:
    """A loss with one of its parameters held at a value."""

    def __init__(self, loss: Likelihood, index: int, value: float):
        self.loss, self.index, self.value = loss, index, value
        self.design: Design = loss.design
        self.is_convex = loss.is_convex

    def at(self, x: np.ndarray) -> Point:
        whole = self.whole(x)
        point = self.loss.at(whole)
        gradient = np.delete(point.gradient, self.index)
        if not math.isfinite(point.value):
            return replace(point, x=x, gradient=gradient)
        return Point(x, point.value, gradient, point.hessian.without(self.index))

    def whole(self, x: np.ndarray) -> np.ndarray:
        """Return all parameters of the model."""
        return np.insert(x, self.index, self.value)

    def slope(self, x: np.ndarray) -> float:
        """Return the slope of the loss by the fixed parameter."""
        return float(self.loss.at(self.whole(x)).gradient[self.index])


def profile_interval(
    fit: FitMemory, index: int, error: float, z: float
) -> tuple[float, float]:
    """Return the ends for the parameter of this number, in the parameters of the loss;
    -inf and inf where D stays below z^2 for good.

    Parameters
    ----------
    fit : Remembered
    index : number of the parameter, among those of the location or of the scale
    error : its standard error, in the parameters of the loss
    z : > 0
    """
    lower, upper = (_end(fit, index, sign * error * z, z) for sign in (-1, 1))
    return lower, upper


def _end(fit: FitMemory, index: int, step: float, z: float) -> float:
    """Return the end on the side of `step`, which is the way to that of the Wald
    interval.
    """
    loss, best, least = fit.loss, fit.x[index], fit.loss.at(fit.x).value
    x = np.delete(fit.x, index)
    rises = []  # D of the fits
    inner, outer = 0.0, math.inf  # in steps: sqrt(D) is < z at one, > z at the other
    at, found = 1.0, None
    for _ in range(_MAX_FITS):
        held = FixedParameter(loss, index, best + at * step)
        if not math.isfinite(held.at(x).value):  # too far from the last fit
            at = (inner + at) / 2
            continue
        found = refit(held, x, "confint")
        rises.append(2 * loss.design.total * (found.point.value - least))
        root = math.sqrt(max(rises[-1], 0.0))
        if abs(root - z) <= _CLOSE * z:
            break
        x = found.point.x
        inner, outer = (at, outer) if root < z else (inner, at)
        # d sqrt(D) / d at
        slope = loss.design.total * step * held.slope(x) / max(root, _TINY)
        new = at + (z - root) / slope if slope > 0 else math.inf
        if inner >= _FAR and new > _FARTHEST:  # it has flattened
            at = math.inf
            break
        if not inner < new < min(outer, 2 * at):
            new = (inner + outer) / 2 if math.isfinite(outer) else 2 * at
        at = new
    else:
        warn(
            "confint: the profile likelihood of a parameter does not cross its "
            "level smoothly; the limit returned is the crossing within rounding",
            ConvergenceWarning,
        )
    _note(found, min(rises, default=0.0))
    return float(best + at * step)


def _note(last: Minimum | None, rise: float) -> None:
    """Warn of a search for an end where D went down to `rise` < 0, or whose last fit
    ended short.
    """
    if rise < -_CLOSE:
        warn(
            "confint: a fit with one parameter fixed has a log likelihood "
            f"{-rise / 2:.3g} above that of the model, which is therefore at a "
            "local maximum: fit again from another start",
            ConvergenceWarning,
        )
    if last is not None and last.status is not Status.CONVERGED:
        warn(
            "confint: a fit with one parameter fixed ended with status "
            f"{last.status.value}, {last.violation:.1e} standard errors from its "
            "optimum",
            ConvergenceWarning,
        )
