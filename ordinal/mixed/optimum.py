"""Optimum of a mixed likelihood: its start, the course of its search, and its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from .._cumulative.design import Design
from .._cumulative.fitting import Minimum, likelihood_of, minimize, newton
from .._cumulative.likelihood import Factor
from .._cumulative.pooling import RankOrder
from .._cumulative.rowwise import RowwiseLikelihood
from .._cumulative.separation import separated_columns
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..inference.fitted import null_loglik
from ..linear import ratio
from ..linear.ratio_loss import Family, RatioLikelihood
from .likelihood import MixedLikelihood
from .quadrature import LARGE, diverging, final_value, is_panelled, with_enough_nodes
from .search import VarianceSearch

# Standard deviations of the latent noise. That of cauchit is infinite.
NOISE = {
    "logit": 1.81,
    "probit": 1.0,
    "cloglog": 1.28,
    "loglog": 1.28,
    "cauchit": 1.81,
}


class Start(NamedTuple):
    """Fit without random effects.

    Attributes
    ----------
    minimum : Minimum
    null_loglik : float
    weighted : Design
        Design whose weights of rows include those of groups.
    find_separated : callable
        Returns the columns that separate the ranks.
    """

    minimum: Minimum
    null_loglik: float
    weighted: Design
    find_separated: Callable[[], np.ndarray]


def start_of(loss: MixedLikelihood, family: str, max_iter: int) -> Start:
    """Fit the model of a mixed likelihood without its random effects."""
    design, link, monitor = loss.design, loss.link, Monitor("start", 1e-6)
    weighted = design
    # A weight of a group multiplies the log of its integral. Here it is one of rows.
    if loss.group_weight is not None:
        weight = design.weight * loss.group_weight[loss.terms[0].group]
        weighted = replace(design, weight=weight, total=float(weight.sum()))
    if family != "cumulative":
        plain = RatioLikelihood(weighted, cast(Family, family), link)
        found = newton(plain, plain.start(), max_iter, monitor)
        find = partial(ratio.separated_columns, plain, found)
        null = null_loglik(weighted, plain.of_design)
        return Start(found, null, weighted, find)
    make = partial(likelihood_of, link=link, l2=0.0, n_threads=loss.n_threads)
    found = minimize(make(weighted), max_iter, monitor)
    x, step = found.point.x, found.step
    find = partial(separated_columns, design, link, x, step, False)
    return Start(found, null_loglik(weighted, make), weighted, find)


def rank_order(start: Start, loss: MixedLikelihood) -> RankOrder:
    """Return the order of the thresholds of intervals, without random effects."""
    plain = likelihood_of(start.weighted, loss.link, 0.0, loss.n_threads)
    return RankOrder(cast(RowwiseLikelihood, plain))


class Optimum(NamedTuple):
    """Result of a search for the optimum of a mixed likelihood."""

    loss: MixedLikelihood
    x: np.ndarray
    covariance: np.ndarray | None
    status: Status
    n_iter: int
    violation: float
    value: float
    is_singular: bool
    remedy: str | None


def optimum_of(
    loss: MixedLikelihood, start: Start, max_iter: int, monitor: Monitor,
    names: Sequence[str], *, same_nodes: bool = False,
) -> Optimum:  # fmt: skip
    """Search for the optimum from the fit without random effects.

    `names` are those of the factors. With `same_nodes` the number of quadrature nodes
    stays that of the loss, so that its value is comparable.
    """
    design, terms = loss.design, loss.terms
    noise = NOISE[loss.link]
    theta = np.concatenate([0.5 * noise * np.eye(t.q)[t.free] for t in terms])
    # about the standard error of the deviation of n_levels effects
    sizes = np.concatenate(
        [np.full(int(t.free.sum()), noise / math.sqrt(t.n_levels)) for t in terms]
    )
    units = np.zeros((design.n_parameters + theta.size,) * 2)
    p = design.n_parameters
    H = start.minimum.point.hessian
    if H.first.size:  # of many thresholds, with another factor in linear time per row
        units[:p, :p] = Factor(H).root() / math.sqrt(start.weighted.total)
    else:
        inverse = np.linalg.inv(start.weighted.total * H.dense())
        units[:p, :p] = np.linalg.cholesky(inverse)
    units[p:, p:] = np.diag(sizes)
    search = VarianceSearch(loss, units, max_iter, monitor)
    search.far = LARGE * noise
    x = search.minimum(np.concatenate([start.minimum.point.x, theta]))
    V, violation, is_singular, grows = None, math.inf, False, None
    if search.is_far(x):
        grows, search.far = diverging(search, x, None, noise), math.inf
        x = x if grows else search.minimum(x)
    status = Status.UNBOUNDED
    if grows is None:
        x, is_singular = search.without_zeros(x, noise)
        if loss.by_panels and not same_nodes:
            x = with_enough_nodes(search, x)
            if not is_singular:
                x, is_singular = search.without_zeros(x, noise)
        x, status, violation, V = search.certified(x)
        if status in (Status.CONVERGED, Status.STALLED):
            grows = diverging(search, x, V, noise)
            if grows is None and search.ended:
                status = search.status  # converged, or on the way to infinity
    loss, remedy = search.loss, None
    if grows is not None:
        status, V = Status.UNBOUNDED, None
        more = "" if loss.by_panels else ", or try n_quadrature='auto'"
        remedy = (
            "the log likelihood, integrated accurately, does not decrease if the "
            f"standard deviation of {names[grows[0]]}, {grows[1]:.3g}, is doubled, "
            "mostly because nearly all of its groups have rows of one rank only: "
            f"leave it out{more}"
        )
    elif status is Status.STALLED and loss.link == "cauchit" and not loss.by_panels:
        # The curvature of a group can be 0, where Laplace's value is infinite.
        more = "n_quadrature='auto' or " if is_panelled("auto", terms) else ""
        remedy = (
            "with cauchit the likelihood by few quadrature nodes can grow without "
            f"bound: pass {more}another link"
        )
    covariance = None
    if V is not None:
        covariance = np.zeros((x.size, x.size))
        covariance[np.ix_(search.free, search.free)] = V
    loss, value = final_value(loss, x, monitor)
    return Optimum(
        loss, x, covariance, status, search.n_iter, violation, value, is_singular,
        remedy=remedy,
    )  # fmt: skip
