"""Limits of linear fits whose ranks are separated, and averages over rows in them.

`_cumulative.recession` has the mathematics. An end of a row that drops out is one at an
infinite threshold, which an offset by threshold states.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from .._cumulative.design import Design, by_threshold
from .._cumulative.fitting import Minimum, likelihood_of
from .._cumulative.likelihood import Likelihood
from .._cumulative.recession import Limit, limit_of, recession_of
from .._cumulative.separation import check_separation, has_diverging_scales
from .._input.immutable import read_only
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .margins import Derivative, DesignRows, Means, Summand
from .sandwich import CovarianceChoice, Scored, in_units, sandwich

# Distance of predictors from the thresholds at which F has reached its limit, to all
# digits but for cauchit.
_FAR = {"cauchit": 1e6}
_FAR_OF_LIGHT_TAILS = 40.0
_FARTHEST = 1e8  # where distances of 1e-8 between predictors are still resolved
_ROUNDING = 1e-8  # of the change of a predictor, relative to its terms
_MOST = 2**24  # most entries of offsets by threshold


class LimitFit(NamedTuple):
    """Limit of a separated fit, and a point near it.

    Attributes
    ----------
    limit : Limit
    x : (p,) array
        A point along the direction of divergence, at which the likelihood is at its
        supremum to rounding.
    """

    limit: Limit
    x: np.ndarray


def find_limit(
    loss: Likelihood, x: np.ndarray, step: np.ndarray, monitor: Monitor
) -> LimitFit | None:
    """Return the limit of a fit that ended at x with a Newton step; None without one.

    Rows in chunks, fits of very many columns or thresholds, and scale effects that
    diverge have none.
    """
    D = loss.design
    if D.is_chunked or D.has_many or D.n_samples * max(D.T, D.n_parameters) > _MOST:
        return None
    plain = replace(D, scale=D.scale[:0])
    p = plain.n_parameters
    rank, first, used = D.rank, D.first, D.weight > 0
    upper, lower = (
        np.flatnonzero(used & (rank < D.T)),
        np.flatnonzero(used & (first > 0)),
    )
    # The derivatives by the parameters are the same everywhere.
    J = Likelihood(plain, loss.link, 0.0, 1).row_derivatives(np.zeros(p), slice(None)).J
    A = np.concatenate([J[upper, 0], -J[lower, 1]])
    recession = recession_of(A, step[:p])
    if recession is None:
        return None
    up, low = np.split(recession.moved, [upper.size])
    known = np.zeros((D.n_samples, 1)) if D.offset is None else by_threshold(D.offset)
    offset = np.broadcast_to(known, (D.n_samples, D.T)).copy()
    offset[upper[up], rank[upper[up]]] = -np.inf
    offset[lower[low], first[lower[low]] - 1] = np.inf
    rest = likelihood_of(replace(D, offset=offset), loss.link, 0.0, loss.n_threads)
    limit = limit_of(rest, D.scale.size, recession, x, monitor)
    if limit is None or has_diverging_scales(D, limit.x):
        return None
    above, below = (np.broadcast_to(o, D.n_samples) for o in D.offset_ends())
    ends = np.concatenate([-above[upper], below[lower]]) + A @ limit.x[:p]
    spread = np.exp(D.scale_columns(slice(None)) @ D.split(limit.x)[3])
    spread = np.concatenate([spread[upper], spread[lower]])
    far = _FAR.get(loss.link, _FAR_OF_LIGHT_TAILS) * spread
    speed, out = A @ recession.interior, recession.moved
    time = max(0.0, float(((far - ends)[out] / speed[out]).max()))
    time = min(time, _FARTHEST / float(speed.max()))
    along = np.append(recession.interior, np.zeros(D.scale.size))
    return LimitFit(limit, limit.x + time * along)


def end_of(
    loss: Likelihood, found: Minimum, monitor: Monitor
) -> tuple[Status, np.ndarray, LimitFit | None]:
    """Return the status of a fit, the columns that separate ranks, and the limit."""
    x, step = found.point.x, found.step
    status, separated = check_separation(
        loss.design, loss.link, x, step, found.status, False, monitor
    )
    limit = find_limit(loss, x, step, monitor) if separated.size else None
    return status, separated, limit


def limits_of(design: Design, limit: Limit) -> np.ndarray:
    """Return the parameters in the limit, in the units of the columns, (p,).

    They are infinite or nan where they have no estimate.
    """
    out = design.raw(limit.x)
    rises, falls = signs_of(design, limit)
    out[rises], out[falls] = np.inf, -np.inf
    out[rises & falls] = np.nan
    if limit.recession.is_complete:
        out[out.size - design.scale.size :] = np.nan
    return out


def signs_of(design: Design, limit: Limit) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each parameter, in the units of the columns, can rise, and fall,
    for ever while no probability falls, (p,) each.
    """
    p = limit.recession.interior.size
    by_parameter = design.raw(np.eye(design.n_parameters))
    rises, falls = np.zeros((2, design.n_parameters), dtype=bool)
    rises[:p], falls[:p] = limit.recession.signs(by_parameter[:p, :p])
    return rises, falls


def limit_fields(
    design: Design, limit: Limit, choice: CovarianceChoice
) -> dict[str, Any]:
    """Return the fields of a separated model that its limit determines.

    The covariance is a generalised inverse of the information: linear functions of the
    parameters with an estimate have the errors that it gives.
    """
    inner = limit.inverse_information()
    if choice.kind != "observed" and not limit.recession.is_complete:
        inner = sandwich(cast(Scored, limit.loss.loss), limit.x, inner, choice.groups)
    return {
        "loglik": -design.total * limit.value,
        "limits": read_only(limits_of(design, limit)),
        "uncertainty": in_units(design, inner),
    }


class LimitMeans(Means):
    """Sums over rows of a separated fit, nan where they have no limit."""

    def __init__(self, model: Any, limit: Limit, design: Design):
        super().__init__(model)
        span = limit.recession.span
        more = np.zeros((design.scale.size, span.shape[1]))
        self._limit = limit
        self._span = design.raw(np.vstack([span, more]))
        self._span[np.isfinite(model.statistics.limits)] = 0.0  # but for rounding

    def sides(self, at: DesignRows) -> tuple[np.ndarray, np.ndarray]:
        below, above = super().sides(at)
        undefined = self._is_undefined(at)
        below[undefined] = above[undefined] = np.nan
        return below, above

    def gradients(self, at: DesignRows, W: np.ndarray) -> np.ndarray:
        found = super().gradients(at, W)
        found[self._is_undefined(at)] = np.nan
        return found

    def scores(self, at: DesignRows) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = super().scores(at)
        moved, size = self._moves(at.Z, 1.0)
        infinite = (np.abs(moved) > _ROUNDING * size).any(axis=(1, 2))
        value[infinite], gradient[infinite] = np.nan, np.nan
        return value, gradient

    def _terms(
        self, part: Summand, v: np.ndarray, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = super()._terms(part, v, W)
        if self._is_undefined(part)[v[:, 0] > 0].any():
            return np.full_like(value, np.nan), np.full_like(gradient, np.nan)
        return value, gradient

    def _is_undefined(self, part: Summand) -> np.ndarray:
        """Return whether rows have predictors, or slopes, without limit, (n,)."""
        if isinstance(part, Derivative):
            # Of an infinite slope the derivative is infinite or 0, by the row.
            moved, size = self._moves(part.by.Z, 0.0)
            infinite = (np.abs(moved) > _ROUNDING * size).any(axis=(1, 2))
            return np.asarray(infinite | self._is_undefined(part.here))
        out = np.zeros(len(part.Z), dtype=bool)
        if self._span.shape[1] == 1:
            return out
        moved, size = self._moves(part.Z, 1.0)
        row, threshold = np.nonzero(
            np.abs(moved).max(axis=2) > _ROUNDING * size[..., 0]
        )
        if not row.size:
            return out
        free = moved[row, threshold]
        free = (free / np.linalg.norm(free, axis=1)[:, None]).round(9)
        free, which = np.unique(free, axis=0, return_inverse=True)
        span = self._limit.recession.span
        rises, falls = self._limit.recession.signs(free @ span.T)
        out[row[(rises & falls)[which.ravel()]]] = True
        return out

    def _moves(self, Z: np.ndarray, theta: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of the predictors of rows by each vector of the span,
        (n, T, k), and their size before terms cancel, (n, 1, 1).

        `theta` is the factor of the thresholds.
        """
        m, k = self.model, self._span.shape[1]
        q, size = m.alpha.size, m.predictor.nominal.size
        alpha = self.J @ self._span[:q]
        nu = self._span[q : q + q * size].reshape(q, size, k)
        beta = self._span[q + q * size : q + q * size + m.coef.size]
        slopes = (self.J @ nu.reshape(q, size * k)).reshape(self.J.T, size, k)
        moved = theta * alpha - (Z[:, m.predictor.location] @ beta)[:, None]
        moved = moved - np.einsum("nm,tmk->ntk", Z[:, m.predictor.nominal], slopes)
        largest = theta * np.abs(alpha).max(initial=0.0)
        largest += np.abs(Z[:, m.predictor.location]) @ np.abs(beta).max(
            axis=1, initial=0.0
        )
        largest += np.abs(Z[:, m.predictor.nominal]) @ np.abs(slopes).max(
            axis=(0, 2), initial=0.0
        )
        return moved, np.asarray(largest)[:, None, None]
