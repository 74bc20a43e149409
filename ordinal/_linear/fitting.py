"""Which form of the loss and which solver suit a design.

Newton's method needs the Hessian, of p parameters squared, and its factor. Beyond 2000
parameters L-BFGS takes over, which needs gradients only.
"""

from __future__ import annotations

import numpy as np

from .._input.sparse import CSR
from .._model.monitor import Monitor
from .._numerics import lbfgs
from .design import Design
from .likelihood import Likelihood, Link, Point
from .newton import Minimum
from .newton import minimize as newton
from .rowwise import RowwiseLikelihood

_MANY = 2000  # location, nominal effects and scale


def has_many(design: Design) -> bool:
    """Whether there are too many features for a Hessian."""
    return sum(design.sizes[1:]) > _MANY


def likelihood_of(
    design: Design, link: Link, l2: float, n_threads: int
) -> Likelihood | RowwiseLikelihood:
    """The loss of a design."""
    if isinstance(design.X, CSR) or has_many(design):
        return RowwiseLikelihood(design, link, l2, n_threads)
    return Likelihood(design, link, l2, n_threads)


def minimize(loss: Likelihood, max_iter: int, monitor: Monitor) -> Minimum:
    """The minimum, from no effects; without Hessian where there are many features, and
    `violation` is then the largest slope."""
    if not (has_many(loss.design) and isinstance(loss, RowwiseLikelihood)):
        return newton(loss, loss.start(), max_iter, monitor)
    found = lbfgs.minimize(
        loss.value_and_gradient, loss.start(), tol=monitor.tol, max_iter=max_iter,
        monitor=monitor,
    )  # fmt: skip
    point = Point(found.x, found.value, found.gradient, np.empty((0, 0)))
    return Minimum(point, found.x, found.violation, found.status, found.n_iter)
