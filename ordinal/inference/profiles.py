"""Profile likelihood intervals.

An interval holds the values of one parameter that a likelihood ratio test does not
reject.

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
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import Likelihood, Point
from .._cumulative.recession import Limit
from .._input.warning import warn
from ..exceptions import ConvergenceWarning
from .fitted import FitMemory, refit, warn_unless_optimal

_CLOSE = 1e-7  # relative tolerance of sqrt(D) = z
_MAX_FITS = 60  # fits for one end
_FAR, _FARTHEST = 8.0, 1e3  # distances in half widths of the Wald interval
_STEP = 0.1  # first step along a divergence, as a share of the distance along it
_TINY = 1e-300  # keeps the division by sqrt(D) finite


class FixedParameter:
    """Loss with one parameter fixed, as a function of the others."""

    def __init__(self, loss: Likelihood, index: int, value: float):
        self.loss, self.index, self.value = loss, index, value
        self.design: Design = loss.design
        self.is_convex = loss.is_convex
        self._last: tuple[np.ndarray, float] | None = None

    def at(self, x: np.ndarray) -> Point:
        whole = self.whole(x)
        point = self.loss.at(whole)
        self._last = x, float(point.gradient[self.index])
        gradient = np.delete(point.gradient, self.index)
        if not math.isfinite(point.value):
            return replace(point, x=x, gradient=gradient)
        return Point(x, point.value, gradient, point.hessian.without(self.index))

    def whole(self, x: np.ndarray) -> np.ndarray:
        """Return all parameters of the model."""
        return np.insert(x, self.index, self.value)

    def slope(self, x: np.ndarray) -> float:
        """Return the slope of the loss by the fixed parameter."""
        # A search mostly ends at the point that it evaluated last.
        if self._last is None or self._last[0] is not x:
            self.at(x)
        assert self._last is not None
        return self._last[1]


def profile_end(
    fit_at: Callable[[float], tuple[float, float] | None],
    z: float,
    bound: float = math.inf,
    tol: float = _CLOSE,
    asked: str = "confint",
) -> float:
    """Return one end of an interval, in half widths of the Wald interval.

    The root of sqrt(D) = z is bracketed by `inner`, where sqrt(D) < z, and `outer`,
    where it is larger.

    Parameters
    ----------
    fit_at : callable
        Returns sqrt(D) and its derivative at a distance from the estimate, or None if
        this is too far from the last fit.
    z : float > 0
        Normal quantile of the level.
    bound : float
        Largest distance, where D is above z^2 if it is finite.
    tol : float
        Relative tolerance of sqrt(D) = z.
    asked : str
        Method whose warning says that an end is inexact.
    """
    inner, outer, c = 0.0, bound, 1.0 if bound > 1 else bound / 2
    for _ in range(_MAX_FITS):
        found = fit_at(c)
        if found is None:
            c = (inner + c) / 2
            continue
        root, slope = found
        if abs(root - z) <= tol * z:
            return c
        inner, outer = (c, outer) if root < z else (inner, c)
        new = c + (z - root) / slope if slope > 0 else math.inf  # Newton's method
        is_open = math.isinf(outer)
        if is_open and inner >= _FAR and new > _FARTHEST:  # D stays below z^2
            return math.inf
        if not inner < new < min(outer, 2 * c):
            new = (inner + outer) / 2 if math.isfinite(outer) else 2 * c
        c = new
    wald = "pass method='wald', or fit again with a smaller tol"
    remedy = wald if asked == "confint" else "use its standard error"
    warn(
        f"{asked}: the profile likelihood of a parameter does not cross its level "
        f"smoothly, so a limit is inexact: {remedy}",
        ConvergenceWarning,
    )
    return c


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


def limit_interval(fit: FitMemory, index: int, z: float) -> tuple[float, float]:
    """Return both ends of the interval of a parameter of a separated fit.

    Parameters without an estimate have an infinite end on every side to which they can
    diverge: D falls to 0 there, while it rises on the other side.
    """
    limit, D = fit.limit, fit.loss.design
    assert limit is not None
    unit = np.eye(fit.x.size)[[index]]
    rises = falls = False
    if index < (p := limit.recession.interior.size):
        rises, falls = (bool(of[0]) for of in limit.recession.signs(unit[:, :p]))
    elif limit.recession.is_complete:
        rises = falls = True
    if not (rises or falls):
        within = limit.loss.through(index)
        start = within.basis.T @ limit.x
        inner = np.linalg.inv(within.at(start).hessian.dense())
        error = math.sqrt(inner[0, 0] / D.total)
        inner_fit = FitMemory(cast(Likelihood, within), start, None)
        return profile_interval(inner_fit, 0, error, z)
    if rises and falls:
        return -math.inf, math.inf
    start = _near(fit, limit, z)
    along = _STEP * (limit.x - start)
    end = _end(replace(fit, x=start), index, float(along[index]), z, along, limit.value)
    return (end, math.inf) if rises else (-math.inf, end)


def _near(fit: FitMemory, limit: Limit, z: float) -> np.ndarray:
    """Return a point along the divergence where D is about z^2 / 4, at most 1/2."""
    loss, total = fit.loss, fit.loss.design.total
    most = limit.value + min(z * z / 4, 0.5) / (2 * total)
    low, high = 0.0, 1.0
    for _ in range(_MAX_FITS):
        middle = (low + high) / 2
        value = loss.at(limit.x + middle * (fit.x - limit.x)).value
        low, high = (low, middle) if value <= most else (middle, high)
        if high - low <= 0.1 * high:
            break
    return np.asarray(limit.x + high * (fit.x - limit.x))


def _end(
    fit: FitMemory,
    index: int,
    step: float,
    z: float,
    along: np.ndarray | None = None,
    least: float | None = None,
) -> float:
    """Return one end of the interval; that of Wald is the estimate + `step`.

    `along` is a direction of all parameters to the first refit, and `least` the infimum
    of the loss, if there is no minimum.
    """
    loss, best = fit.loss, fit.x[index]
    least = loss.at(fit.x).value if least is None else least
    x = np.delete(fit.x, index)
    rises, found = [0.0], None  # D of the fits, and the last one

    def fit_at(distance: float) -> tuple[float, float] | None:
        nonlocal x, found
        fixed = FixedParameter(loss, index, best + distance * step)
        start = x
        if found is None and along is not None:
            start = np.delete(fit.x + distance * along, index)
        if not math.isfinite(fixed.at(start).value):
            return None
        found = refit(fixed, start, "confint")
        x = found.point.x
        rises.append(2 * loss.design.total * (found.point.value - least))
        root = math.sqrt(max(rises[-1], 0.0))
        return root, loss.design.total * step * fixed.slope(x) / max(root, _TINY)

    end = float(best + profile_end(fit_at, z) * step)
    if (rise := min(rises)) < -_CLOSE:
        warn(
            "confint: a fit with one parameter fixed has a log likelihood "
            f"{-rise / 2:.3g} above that of the model, which is therefore at a "
            "local maximum: fit again from another start",
            ConvergenceWarning,
        )
    if found is not None:
        warn_unless_optimal(found, "confint", "a fit with one parameter fixed")
    return end
