"""Profile likelihood intervals: the values of one parameter that a likelihood ratio
test does not reject.

With D(c) = 2 (max loglik - max loglik where the parameter is c), the interval at a
level is {c: D(c) <= z^2}, where z is the normal quantile of the level. Each end is a
root of sqrt(D(c)) = z, which is nearly linear in c. Newton's method finds it: the
derivative of D by c is that of the loss by the fixed parameter. Every value c takes a
refit of the other parameters, which starts at the previous one.

D. J. Venzon, S. H. Moolgavkar, "A method for computing profile-likelihood-based
confidence intervals", Applied Statistics 37:87-94, 1988.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import Likelihood, Point
from .._watch.convergence import ConvergenceWarning, warn
from .estimates import FitMemory, refit, warn_unless_optimal

_CLOSE = 1e-7  # relative tolerance of sqrt(D) = z
_MAX_FITS = 60  # fits for one end
_FAR, _FARTHEST = 8.0, 1e3  # distances in half widths of the Wald interval
_TINY = 1e-300  # keeps the division by sqrt(D) finite


class FixedParameter:
    """Loss with one parameter fixed, as a function of the others."""

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
    """Return both ends of the interval of a parameter, in the units of the loss.

    An end is infinite if D stays below z^2 on its side.

    Parameters
    ----------
    fit : FitMemory
    index : int
        Number of the parameter among those of the loss.
    error : float
        Its standard error, in the units of the loss.
    z : float > 0
        Normal quantile of the level.
    """
    return _end(fit, index, -error * z, z), _end(fit, index, error * z, z)


def _end(fit: FitMemory, index: int, step: float, z: float) -> float:
    """Return one end of the interval; the Wald interval ends at the estimate + `step`.

    The root is bracketed by `inner`, where sqrt(D) < z, and `outer`, where it is > z,
    in multiples of `step`.
    """
    loss, best, least = fit.loss, fit.x[index], fit.loss.at(fit.x).value
    x = np.delete(fit.x, index)
    rises = []  # D of the fits
    inner, outer = 0.0, math.inf
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
        # Newton's method for sqrt(D) = z in `at`, with the derivative
        # d sqrt(D) / d at
        slope = loss.design.total * step * held.slope(x) / max(root, _TINY)
        new = at + (z - root) / slope if slope > 0 else math.inf
        if inner >= _FAR and new > _FARTHEST:  # D has an asymptote below z^2
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
    if (rise := min(rises, default=0.0)) < -_CLOSE:
        warn(
            "confint: a fit with one parameter fixed has a log likelihood "
            f"{-rise / 2:.3g} above that of the model, which is therefore at a "
            "local maximum: fit again from another start",
            ConvergenceWarning,
        )
    if found is not None:
        warn_unless_optimal(found, "confint", "a fit with one parameter fixed")
    return float(best + at * step)
