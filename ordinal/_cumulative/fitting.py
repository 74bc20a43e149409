"""Choice of the form of the loss, of the solver and of starting values for a design.

Newton's method needs the Hessian, of (p, p) entries, and its factor. With more than
`HESSIAN_COLUMNS` columns L-BFGS takes its place, which needs gradients only.

With the link cauchit or with scale effects the loss is not convex. A fit with scale
effects begins at the one without, so that they never lower the likelihood. With few
rows there may be several minima; the lowest one reached from a few starting points is
taken. Of 750 fits with one to three scale effects to 30 to 200 rows, 14 missed the
lowest known minimum from the fit without these effects, and 4 from the starting points
below. Of 300 fits with cauchit to 15 to 60 rows of heavy tails it was 13 from a start
without effects, and 8 from those below (`tools/measure_minima.py`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._numerics import lbfgs
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .bordered import NONE
from .design import Design
from .likelihood import Likelihood, Link, Point
from .newton import Minimum
from .newton import minimize as newton
from .rowwise import (
    ChunkedLikelihood,
    RowwiseLikelihood,
    has_many,
    likelihood_in_memory,
)

_FEW = 1000  # weight of all rows up to which several starting points are tried
_FAR = 2.0  # starting values of zeta, by scaled columns
_LARGE = 1e30  # most factor, or one over it, by which starting values are enlarged
_COARSE = 30  # steps to a starting point, which need not be a minimum of its own loss
_STEP = 16  # a starting point is fitted to every 16th row
_HELD = 2**23  # most entries of these rows, if they are read in chunks
_LEAST_ROWS, _ROWS_EACH = 4096, 50  # least number of these rows, and per parameter
_NEAR = 0.1  # tolerance of a starting point, in standard errors of these rows
_STEEPER = 3.0  # slopes of cauchit may be far above those of light tails


def likelihood_of(design: Design, link: Link, l2: float, n_threads: int) -> Likelihood:
    """Make the loss of a design."""
    if design.is_chunked:
        return ChunkedLikelihood(design, link, l2, n_threads)
    return likelihood_in_memory(design, link, l2, n_threads)


def minimize(loss: Likelihood, max_iter: int, monitor: Monitor) -> Minimum:
    """Return the minimum, or the lowest point found.

    At most `max_iter` steps are made from each starting point; `n_iter` of the result
    counts the steps from all of them.
    """
    starts, done = _starts(loss, max_iter, monitor)
    found = []
    for start in starts:
        found.append(_descent(loss, start, max_iter, monitor, done))
        done = found[-1].n_iter
    lowest = min(found, key=lambda minimum: minimum.point.value)
    if not math.isfinite(lowest.point.value):  # a row has probability 0 at the start
        return _descent(loss, loss.start(), max_iter, monitor, done)
    return replace(lowest, n_iter=done)


def _starts(
    loss: Likelihood, max_iter: int, monitor: Monitor
) -> tuple[list[np.ndarray], int]:
    """Return starting points, and the number of steps that it took to find them."""
    design = loss.design
    several = design.total <= _FEW
    if k := design.scale.size:
        plain = minimize(_variant(loss, loss.link, scale=False), max_iter, monitor)
        far = _FAR * np.vstack([np.eye(k), -np.eye(k)]) if several else np.empty((0, k))
        # All parameters grow with the spread exp(z'zeta) at the mean of z, so that the
        # predictors of a mean row stay the same.
        spread = np.exp(far @ (design.centre / design.spread)[design.scale])
        starts = [
            np.append(design.enlarged(plain.point.x, factor), zeta)
            for factor, zeta in zip(spread, far, strict=True)
            if 1 / _LARGE < factor < _LARGE
        ]
        return [np.append(plain.point.x, np.zeros(k)), *starts], plain.n_iter
    if loss.link == "cauchit" and several:
        light = _descent(_variant(loss, "logit"), loss.start(), _COARSE, monitor, 0)
        steep = design.enlarged(light.point.x, _STEEPER)
        return [loss.start(), light.point.x, steep], light.n_iter
    if design.is_sparse or has_many(design):
        return [loss.start()], 0
    return [_start_from_some_rows(loss)], 0


def _start_from_some_rows(loss: Likelihood) -> np.ndarray:
    """Return the minimum for every 16th row, or for fewer, as a starting point.

    It is a few standard errors from the minimum for all rows, which saves two of six
    passes over them. Return the start without effects if rows are few, or if the
    thresholds for some rows could cross at others.
    """
    D, least = loss.design, max(_LEAST_ROWS, _ROWS_EACH * loss.design.n_parameters)
    step = _STEP
    if D.is_chunked:
        step = max(step, -(-D.n_samples * D.X.shape[1] // _HELD))
    may_cross = D.nominal.size or D.is_shifted
    if D.n_samples < step * least or may_cross or not loss.is_convex:
        return loss.start()
    every = D.every(step)
    if (every.mass() == 0).any():
        return loss.start()
    part = likelihood_of(every, loss.link, loss.l2, loss.n_threads)
    found = newton(part, part.start(), _COARSE, Monitor("start", _NEAR))
    return found.point.x if found.status is Status.CONVERGED else loss.start()


def _variant(loss: Likelihood, link: Link, scale: bool = True) -> Likelihood:
    """Return the loss with another link, or without scale effects."""
    design = loss.design if scale else replace(loss.design, scale=loss.design.scale[:0])
    return likelihood_of(design, link, loss.l2, loss.n_threads)


def _descent(
    loss: Likelihood, x: np.ndarray, max_iter: int, monitor: Monitor, done: int
) -> Minimum:
    """Descend from x, after `done` earlier steps.

    With many features the method is L-BFGS, and `violation` is the largest slope.
    """
    rowwise = RowwiseLikelihood | ChunkedLikelihood
    if not (has_many(loss.design) and isinstance(loss, rowwise)):
        return newton(loss, x, max_iter, monitor, done)
    found = lbfgs.minimize(
        loss.value_and_gradient, x, tol=monitor.tol, max_iter=max_iter, monitor=monitor
    )
    point = Point(found.x, found.value, found.gradient, NONE)
    return Minimum(point, found.x, found.violation, found.status, done + found.n_iter)
