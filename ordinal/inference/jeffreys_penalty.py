"""Finite estimates by the penalty of Jeffreys.

With the expected information I(theta) of the parameters, the estimates maximise

    l(theta) + 1/2 log |I(theta)|                                                    (1)

For two ranks and the logit link this is the logistic regression of Firth, whose
estimates are always finite. The information is a sum over rows of Z_i'M_i Z_i, where
Z_i, (T, p), are the derivatives of the predictors eta_ij, and M_i is tridiagonal with
f_j = F'(eta_ij) and the probabilities P_0..P_T:

    M_jj = f_j^2 (1/P_j + 1/P_(j+1)),   M_(j,j+1) = -f_j f_(j+1) / P_(j+1)

BFGS maximises (1), with the information at the start as the first Hessian.

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
from .._input.checks import check_share
from .._input.warning import warn
from .._model.printing import Table
from .._numerics.lbfgs import minimize
from .._numerics.tails import normal_margin
from .._watch.cancellation import check_cancelled
from .._watch.monitor import Monitor
from ..exceptions import ConvergenceWarning
from .calls import on_one_thread
from .fitted import bias_of, fitted_model, remembered
from .profiles import profile_end
from .steps import check_observed

_TOL = 1e-7  # largest derivative of (1) at its maximum, in standard errors
_NEAR = 1e-3  # the same where rounding of (1) ends a search
_MAX_ITER = 100
_LEAST = 1e-150  # least probability of a rank that counts, as its square is not 0
_MOST = 10_000_000  # most entries of the derivatives that `jeffreys` holds

_REMEDIES = {
    "ratio": "fit_ratio with l2 > 0 has finite estimates",
    "mixed": "fit without random effects, by fit_pom",
}


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
        n, T, q = D.n_samples, D.J.T, D.J.q
        parts = [
            np.broadcast_to(D.J.dense(), (n, T, q)),
            np.broadcast_to(-X[:, None], (n, T, X.shape[1])),
        ]
        used = D.weight > 0
        self.Z, self.weight = np.concatenate(parts, axis=2)[used], D.weight[used]
        known = np.zeros((n, 1)) if D.offset is None else by_threshold(D.offset)
        self.offset = np.broadcast_to(known, (n, T))[used]

    def at(self, x: np.ndarray) -> _Point | None:
        """Return the point at x, or None where (1) is not finite."""
        check_cancelled()
        with np.errstate(all="ignore"):
            return self._at(x)

    def _at(self, x: np.ndarray) -> _Point | None:
        plain, link = self.loss.at(x), self.loss.link
        eta = self.Z @ x - self.offset
        P = rank_probabilities(cumulative(link, eta), exceeding(link, eta))
        f, w = density(link, eta), self.weight[:, None]
        # A rank that has no probability has no information: f falls faster than P.
        over = np.divide(1, P, out=np.zeros_like(P), where=P > _LEAST)
        own, between = f**2 * (over[:, :-1] + over[:, 1:]), f[:, :-1] * f[:, 1:]
        between = -between * over[:, 1:-1]
        MZ = own[:, :, None] * self.Z
        MZ[:, :-1] += between[:, :, None] * self.Z[:, 1:]
        MZ[:, 1:] += between[:, :, None] * self.Z[:, :-1]
        information = np.tensordot(MZ * w[:, :, None], self.Z, ((0, 1), (0, 1)))
        sign, log_det = np.linalg.slogdet(information)
        if not (sign > 0 and math.isfinite(log_det) and math.isfinite(plain.value)):
            return None
        by_eta = w * self._by_predictors(f, slope(link, eta), over, information)
        total = self.loss.design.total
        gradient = np.tensordot(by_eta, self.Z, 2) - total * plain.gradient
        value = 0.5 * float(log_det) - total * plain.value
        return _Point(x, value, gradient, information)

    def _by_predictors(
        self, f: np.ndarray, bend: np.ndarray, over: np.ndarray, information: np.ndarray
    ) -> np.ndarray:
        """Return the derivatives of 1/2 log |I| by the predictors, (n, T), per weight.

        They are those of 1/2 tr(V_i M_i), with V_i = Z_i I^-1 Z_i'; `over` is 1 / P.
        """
        W = self.Z @ np.linalg.inv(information)
        a = np.einsum("ntp,ntp->nt", W, self.Z)
        b = np.einsum("ntp,ntp->nt", W[:, :-1], self.Z[:, 1:])
        by_f = a * f * (over[:, :-1] + over[:, 1:])
        by_f[:, :-1] -= b * f[:, 1:] * over[:, 1:-1]
        by_f[:, 1:] -= b * f[:, :-1] * over[:, 1:-1]
        by_p = np.zeros_like(over)
        by_p[:, :-1] += a * f**2
        by_p[:, 1:] += a * f**2
        by_p[:, 1:-1] -= 2 * b * f[:, :-1] * f[:, 1:]
        by_p = -0.5 * by_p * over**2
        return np.asarray(bend * by_f + f * (by_p[:, :-1] - by_p[:, 1:]))

    def maximum(
        self, x: np.ndarray, fixed: int | None = None
    ) -> tuple[_Point, bool] | None:
        """Maximise (1) from x, where a parameter may be fixed.

        Return the last point, and whether it is the maximum; None if (1) is not finite
        at x.
        """
        here = self.at(x)
        if here is None:
            return None
        free = np.flatnonzero(np.arange(x.size) != fixed)
        # In these units the information at x is the unit matrix.
        axes = np.linalg.inv(np.linalg.cholesky(here.information[free][:, free])).T

        def point_at(u: np.ndarray) -> _Point | None:
            moved = x.copy()
            moved[free] += axes @ u
            return self.at(moved)

        def fall(u: np.ndarray) -> tuple[float, np.ndarray]:
            there = point_at(u)
            if there is None:
                return math.inf, u
            return -there.value, -(axes.T @ there.gradient[free])

        monitor = Monitor("jeffreys", _TOL)
        start = np.zeros(free.size)
        found = minimize(fall, start, tol=_TOL, max_iter=_MAX_ITER, monitor=monitor)
        last = point_at(found.x)
        return None if last is None else (last, found.violation <= _NEAR)


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
    found = penalised.maximum(loss.start())
    if found is None:
        raise ValueError(
            "jeffreys needs a positive probability of every rank at every row, and "
            "the offsets leave none: subtract their mean, or divide them by their scale"
        )
    best, at_maximum = found
    if not at_maximum:
        warn(
            "jeffreys: the penalised likelihood did not reach its maximum, so the "
            "estimates are inexact: leave columns out",
            ConvergenceWarning,
        )
    inner = np.linalg.inv(best.information)
    ends = []
    for j in range(D.n_parameters - D.location.size, D.n_parameters):
        error = math.sqrt(inner[j, j])
        ends.append([_end(penalised, best, j, side * error, z) for side in (-1, 1)])
    bounds = np.reshape(ends, (-1, 2)) / D.spread[D.location][:, None]
    return JeffreysFit(D.raw(best.x), D.raw(D.raw(inner).T), bounds)


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
        if found is None or not found[1]:
            return None
        x = found[0].x
        root = math.sqrt(max(2 * (best.value - found[0].value), 0.0))
        return root, -step * float(found[0].gradient[j]) / max(root, 1e-300)

    return float(best.x[j] + step * profile_end(fit_at, z, asked="jeffreys"))


@on_one_thread
def jeffreys(model: Any, level: float = 0.95) -> Table:
    """Return finite estimates by the penalty of Jeffreys, with intervals.

    They maximise the likelihood times the root of the determinant of the expected
    information, which reduces the bias of small samples, and gives estimates to
    separated ranks. For two ranks and the logit link this is the logistic
    regression of Firth.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    level : float in (0, 1), default 0.95

    Returns
    -------
    Table
        A dict of (p,) arrays: "name"; "estimate"; "standard_error", by the
        expected information; "lower" and "upper", the ends of the profile intervals
        of the penalised likelihood, which are those of Wald for thresholds.

    Raises
    ------
    ValueError
        If the fit has penalties, scale, nominal or monotone effects, offsets by
        threshold or a sandwich covariance, if its table is too large,
        or if the model no longer has its training rows.

    Warns
    -----
    ConvergenceWarning
        If a fit stopped before it reached its optimum.

    See Also
    --------
    confint : Return confidence intervals of the parameters.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.

    References
    ----------
    D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika 80:27-38,
    1993. I. Kosmidis, D. Firth, "Jeffreys-prior penalty, finiteness and shrinkage
    in binomial-response generalized linear models", Biometrika 108:71-82, 2021.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.jeffreys(model)["estimate"].round(2)
    array([2.94, 4.83, 1.31, 0.69])
    """
    model = fitted_model(model, "jeffreys", _REMEDIES)
    z = normal_margin(check_share("level", level))
    check_observed(model, "jeffreys")
    if bias := bias_of(model):
        raise ValueError(f"jeffreys has a penalty of its own, and {bias}")
    monotone = model.predictor.coding is not None and model.predictor.coding.monotone
    refused = {
        "scale effects": model.predictor.scale.size > 0,
        "monotone effects": bool(monotone),
        # Where thresholds meet at a row, the penalty is infinite.
        "nominal effects": model.predictor.nominal.size > 0,
        "offsets by threshold": model.predictor.shifted,
    }
    if any(refused.values()):
        what = " and ".join(name for name, has in refused.items() if has)
        raise ValueError(
            f"jeffreys is for models without {what}: fit again without them"
        )
    loss = remembered(model, "jeffreys").loss
    D = loss.design
    if D.n_samples * D.T * D.n_parameters > _MOST:
        raise ValueError(
            f"jeffreys needs a small table, rows x thresholds x parameters up to "
            f"{_MOST:g}, got {D.n_samples} x {D.T} x {D.n_parameters}: its "
            "penalty does not matter for so many rows"
        )
    found = jeffreys_fit(loss, z)
    error = np.sqrt(np.diagonal(found.covariance))
    lower, upper = found.estimate - z * error, found.estimate + z * error
    if own := len(found.ends):  # those of the location come last
        lower[-own:], upper[-own:] = found.ends.T
    return Table(
        {
            "name": np.array(model.parameter_names, dtype=str),
            "estimate": found.estimate,
            "standard_error": error,
            "lower": lower,
            "upper": upper,
        }
    )
