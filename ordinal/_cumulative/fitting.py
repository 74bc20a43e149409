"""Choice of the form of the loss, and of the solver, for a design.

Newton's method needs the Hessian, of p parameters squared, and its factor. Beyond 2000
parameters L-BFGS takes over, which needs gradients only.

With the link cauchit or with scale effects the loss is not convex. A fit with scale
effects begins at the one without, so that they never make the likelihood less. Where
there are few rows there may be several minima, and the lowest is taken that is reached
from a few points. Of 750 fits with one to three scale effects to 30 to 200 rows 14
missed the lowest minimum that is known from the fit without, and 4 with the starts
below; of 300 fits with cauchit to 15 to 60 rows of heavy tails it was 13 from no
effects, and 8 (`tools/measure_minima.py`).
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

_FEW = 1000  # rows, by weight
_FAR = 2.0  # log spreads, in deviations of their columns
_LARGE = 1e30
_ROUGH = 30  # steps to a start, which need not be the minimum of its own loss
_STEP = 16  # rows from one to the next of those that a start is fitted to
_HELD = 2**23  # entries of these, of rows that are read in chunks
_SHARE, _ROWS_EACH = 4096, 50  # how many these are at least, and a parameter
_NEAR = 0.1  # standard errors of them: a start need not be nearer
_STEEPER = 3.0  # slopes of cauchit may be far above those of light tails


def likelihood_of(design: Design, link: Link, l2: float, n_threads: int) -> Likelihood:
    """Make the loss of a design."""
    if design.is_chunked:
        return ChunkedLikelihood(design, link, l2, n_threads)
    return likelihood_in_memory(design, link, l2, n_threads)


def minimize(loss: Likelihood, max_iter: int, monitor: Monitor) -> Minimum:
    """Return the minimum, or the lowest point that is found.

    `max_iter` steps from every start, `n_iter` from all of them.
    """
    starts, done = _starts(loss, max_iter, monitor)
    found = []
    for start in starts:
        found.append(_descent(loss, start, max_iter, monitor, done))
        done = found[-1].n_iter
    lowest = min(found, key=lambda minimum: minimum.point.value)
    if not math.isfinite(lowest.point.value):  # a row of no probability at the start
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
        # at the mean of z a spread of exp(z'zeta), with all effects enlarged alike
        spread = np.exp(far @ (design.centre / design.spread)[design.scale])
        starts = [
            np.append(design.enlarged(plain.point.x, factor), zeta)
            for factor, zeta in zip(spread, far, strict=True)
            if 1 / _LARGE < factor < _LARGE
        ]
        return [np.append(plain.point.x, np.zeros(k)), *starts], plain.n_iter
    if loss.link == "cauchit" and several:
        light = _descent(_variant(loss, "logit"), loss.start(), _ROUGH, monitor, 0)
        steep = design.enlarged(light.point.x, _STEEPER)
        return [loss.start(), light.point.x, steep], light.n_iter
    if design.is_sparse or has_many(design):
        return [loss.start()], 0
    return [_start_of_many(loss)], 0


def _start_of_many(loss: Likelihood) -> np.ndarray:
    """Return the minimum of every 16th row, or of fewer, which is a few standard errors
    from that of all, so that two of six passes over all rows are saved; no effects
    where rows are few, or thresholds could cross at the others.
    """
    D, least = loss.design, max(_SHARE, _ROWS_EACH * loss.design.n_parameters)
    step = _STEP
    if D.is_chunked:  # of which no more than some megabytes are held
        step = max(step, -(-D.n_samples * D.X.shape[1] // _HELD))
    if (
        D.n_samples < step * least
        or D.nominal.size
        or not loss.is_convex
        or D.is_shifted
    ):
        return loss.start()
    every = D.every(step)
    ranks = np.bincount(every.rank, every.weight, minlength=every.T + 1)
    if (ranks == 0).any():
        return loss.start()
    share = likelihood_of(every, loss.link, loss.l2, loss.n_threads)
    found = newton(share, share.start(), _ROUGH, Monitor("start", _NEAR))
    return found.point.x if found.status is Status.CONVERGED else loss.start()


def _variant(loss: Likelihood, link: Link, scale: bool = True) -> Likelihood:
    """Return the loss with another link, or without scale effects."""
    design = loss.design if scale else replace(loss.design, scale=loss.design.scale[:0])
    return likelihood_of(design, link, loss.l2, loss.n_threads)


def _descent(
    loss: Likelihood, x: np.ndarray, max_iter: int, monitor: Monitor, done: int
) -> Minimum:
    """Return the minimum that a search reaches from x.

    With many features, the search uses no Hessian, and `violation` is the largest
    slope.
    """
    rowwise = RowwiseLikelihood | ChunkedLikelihood
    if not (has_many(loss.design) and isinstance(loss, rowwise)):
        return newton(loss, x, max_iter, monitor, done)
    found = lbfgs.minimize(
        loss.value_and_gradient, x, tol=monitor.tol, max_iter=max_iter, monitor=monitor
    )
    point = Point(found.x, found.value, found.gradient, NONE)
    return Minimum(point, found.x, found.violation, found.status, done + found.n_iter)
