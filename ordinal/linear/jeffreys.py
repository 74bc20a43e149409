"""Finite estimates by the penalty of Jeffreys.

With the expected information I(theta) of the parameters, the estimates maximise

    l(theta) + 1/2 log |I(theta)|                                                    (1)

For two ranks and the logit link this is the logistic regression of Firth, whose
estimates are always finite. The information is a sum over rows of Z_i'M_i Z_i, where
Z_i, (T, p), are the derivatives of the predictors eta_ij, and M_i is tridiagonal with
f_j = F'(eta_ij) and the probabilities P_0..P_T:

    M_jj = f_j^2 (1/P_j + 1/P_(j+1)),   M_(j,j+1) = -f_j f_(j+1) / P_(j+1)

Fisher scoring maximises (1): a step is I^-1 times its gradient, halved until (1) rises.

D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika 80:27-38, 1993.
G. Heinze, M. Schemper, Statistics in Medicine 21:2409-2419, 2002, for the intervals.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._cumulative.design import Design, by_threshold
from .._cumulative.likelihood import (
    Likelihood,
    cumulative,
    density,
    exceeding,
    rank_probabilities,
    slope,
)
from .._input.warning import warn
from .._watch.cancellation import check_cancelled
from .._watch.convergence import ConvergenceWarning
from .refits import profile_end

_TOL = 1e-8  # length of the last step, in standard errors
_MAX_ITER = 500
_HALVINGS = 40
_ROUNDING = 1e-9  # of (1), relative, below which no step needs to rise
_RISES = 1e-4  # least rise of (1), as a share of what the gradient promises


class _Point(NamedTuple):
    """Value of (1) at x, its gradient, and the information."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    information: np.ndarray


class JeffreysLikelihood:
    """The penalised likelihood (1) of a loss with location effects only."""

    def __init__(self, loss: Likelihood):
        self.loss, D = loss, loss.design
        every = slice(0, D.n_samples)
        X = D.columns(every, D.location)
        n, (T, q) = D.n_samples, D.J.shape
        parts = [
            np.broadcast_to(D.J, (n, T, q)),
            np.broadcast_to(-X[:, None], (n, T, X.shape[1])),
        ]
        used = D.weight > 0
        self.Z, self.weight = np.concatenate(parts, axis=2)[used], D.weight[used]
        known = np.zeros((n, 1)) if D.offset is None else by_threshold(D.offset)
        self.offset = np.broadcast_to(known, (n, T))[used]

    def at(self, x: np.ndarray) -> _Point | None:
        """Return the point at x, or None where a rank has no probability."""
        check_cancelled()
        plain, link = self.loss.at(x), self.loss.link
        eta = self.Z @ x - self.offset
        P = rank_probabilities(cumulative(link, eta), exceeding(link, eta))
        if not (math.isfinite(plain.value) and (P > 0).all()):
            return None
        f, w = density(link, eta), self.weight[:, None]
        own, between = f**2 * (1 / P[:, :-1] + 1 / P[:, 1:]), f[:, :-1] * f[:, 1:]
        between = -between / P[:, 1:-1]
        MZ = own[:, :, None] * self.Z
        MZ[:, :-1] += between[:, :, None] * self.Z[:, 1:]
        MZ[:, 1:] += between[:, :, None] * self.Z[:, :-1]
        information = np.tensordot(MZ * w[:, :, None], self.Z, ((0, 1), (0, 1)))
        sign, log_det = np.linalg.slogdet(information)
        if not (sign > 0 and math.isfinite(log_det)):
            return None
        by_eta = w * self._by_predictors(f, slope(link, eta), P, information)
        total = self.loss.design.total
        gradient = np.tensordot(by_eta, self.Z, 2) - total * plain.gradient
        value = 0.5 * float(log_det) - total * plain.value
        return _Point(x, value, gradient, information)

    def _by_predictors(
        self, f: np.ndarray, bend: np.ndarray, P: np.ndarray, information: np.ndarray
    ) -> np.ndarray:
        """Return the derivatives of 1/2 log |I| by the predictors, (n, T), per weight.

        They are those of 1/2 tr(V_i M_i), with V_i = Z_i I^-1 Z_i'.
        """
        W = self.Z @ np.linalg.inv(information)
        a = np.einsum("ntp,ntp->nt", W, self.Z)
        b = np.einsum("ntp,ntp->nt", W[:, :-1], self.Z[:, 1:])
        by_f = a * f * (1 / P[:, :-1] + 1 / P[:, 1:])
        by_f[:, :-1] -= b * f[:, 1:] / P[:, 1:-1]
        by_f[:, 1:] -= b * f[:, :-1] / P[:, 1:-1]
        by_p = np.zeros_like(P)
        by_p[:, :-1] += a * f**2
        by_p[:, 1:] += a * f**2
        by_p[:, 1:-1] -= 2 * b * f[:, :-1] * f[:, 1:]
        by_p = -0.5 * by_p / P**2
        return np.asarray(bend * by_f + f * (by_p[:, :-1] - by_p[:, 1:]))

    def maximum(self, x: np.ndarray, fixed: int | None = None) -> _Point | None:
        """Maximise (1) from x, where a parameter may be fixed.

        Return None if (1) is not defined at x, and warn if its maximum is not reached.
        """
        here = self.at(x)
        free = np.ones(x.size, dtype=bool)
        if fixed is not None:
            free[fixed] = False
        for _ in range(_MAX_ITER):
            if here is None or not free.any():
                return here
            gradient = here.gradient[free]
            step = np.zeros(x.size)
            step[free] = np.linalg.solve(here.information[free][:, free], gradient)
            promised = float(gradient @ step[free])
            if promised <= _TOL**2:
                return here
            there = None
            for halving in range(_HALVINGS):
                size = 0.5**halving
                there = self.at(here.x + size * step)
                if there and there.value - here.value >= _RISES * size * promised:
                    break
                there = None
            if there is None:
                if promised <= _ROUNDING * max(1.0, abs(here.value)):
                    return here
                break
            here = there
        warn(
            "jeffreys: the penalised likelihood did not reach its maximum, so the "
            "estimates are inexact: leave columns out",
            ConvergenceWarning,
        )
        return here


class JeffreysFit(NamedTuple):
    """Estimates in the units of the columns, their covariance, and intervals.

    The intervals, (m, 2), are those of the last parameters: those of the location.
    """

    estimate: np.ndarray
    covariance: np.ndarray
    ends: np.ndarray


def jeffreys_fit(loss: Any, z: float) -> JeffreysFit:
    """Fit by (1), with intervals of the penalised profile at the normal quantile z."""
    D: Design = loss.design
    penalised = JeffreysLikelihood(loss)
    best = penalised.maximum(loss.start())
    if best is None:
        raise ValueError(
            "jeffreys needs a positive probability of every rank at every row, and "
            "the offsets leave none: subtract their mean, or divide them by their scale"
        )
    inner = np.linalg.inv(best.information)
    ends = []
    for j in range(D.n_parameters - D.location.size, D.n_parameters):
        error = math.sqrt(inner[j, j])
        ends.append([_end(penalised, best, j, side * error, z) for side in (-1, 1)])
    bounds = np.reshape(ends, (-1, 2)) / D.spread[D.location][:, None]
    return JeffreysFit(D.raw(best.x), D.raw_covariance(inner), bounds)


def _end(
    penalised: JeffreysLikelihood, best: _Point, j: int, step: float, z: float
) -> float:
    """Return the end of the interval of parameter j on the side of `step`."""
    x = best.x

    def fit_at(distance: float) -> tuple[float, float] | None:
        nonlocal x
        start = x.copy()
        start[j] = best.x[j] + distance * step
        found = penalised.maximum(start, j)
        if found is None:
            return None
        x = found.x
        root = math.sqrt(max(2 * (best.value - found.value), 0.0))
        return root, -step * float(found.gradient[j]) / max(root, 1e-300)

    return float(best.x[j] + step * profile_end(fit_at, z))
