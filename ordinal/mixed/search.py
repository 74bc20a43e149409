"""Search for the optimum of a cumulative link mixed model, its certificate, and profile
likelihood intervals.

As in `inference.profiles`, each end of an interval is a root of sqrt(D(c)) = z, where D
is twice the decrease of the log-likelihood if the parameter is fixed at c. If an effect
comes first in its factor, its standard deviation is the first diagonal entry of Lambda,
so deviations are fixed like any other parameter. The likelihood is finite at a
deviation of 0, which is the lower end if D does not reach z^2 there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._input.warning import warn
from .._numerics import lbfgs
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..exceptions import ConvergenceWarning
from ..inference.profiles import profile_end
from .likelihood import MixedLikelihood

_COARSE = 1e-4  # slope in standard errors at which Newton's method replaces L-BFGS
_STEP = 1e-5  # of differences of the gradient, in standard errors: cbrt of rounding
_PAUSE = 30  # steps between two looks at the deviations
_POLISH = 20  # most Newton steps
_SMALL = 0.1  # deviation, relative to the noise, below which 0 is tried
_NEAR_0 = 1e-3  # deviation at which the sign of the slope is read
_PIVOT = 1e-10  # relative size of a pivot that counts as 0


class VarianceSearch:
    """Search for the optimum of a mixed likelihood over its free parameters.

    Parameters
    ----------
    loss : MixedLikelihood
    units : (p, p) array
        Lower triangular; about the factor of the covariance of the parameters.
    max_iter : int
    monitor : Monitor

    Attributes
    ----------
    free : (p,) bool array
        Whether a parameter is searched for. Entries of Lambda at the boundary are not:
        they stay 0.
    value : float
        Value of `loss` at the last optimum; infinite before the first evaluation.
    inverse : (f, f) array or None
        Inverse Hessian of the free parameters by `refine`.
    far : float
        Deviation at which `minimum` pauses, because the variance may diverge.
    """

    def __init__(
        self, loss: MixedLikelihood, units: np.ndarray, max_iter: int, monitor: Monitor
    ):
        self.loss, self.units, self.monitor = loss, units, monitor
        self.max_iter, self.n_iter = max_iter, 0
        self.status = Status.CONVERGED
        self.free = np.ones(len(units), dtype=bool)
        self.value = math.inf
        self.inverse: np.ndarray | None = None
        self.far = math.inf

    def minimum(self, x: np.ndarray) -> np.ndarray:
        """Return the optimum over the free parameters to a coarse tolerance, from x."""
        C = self.units[np.ix_(self.free, self.free)]

        def function(v: np.ndarray) -> tuple[float, np.ndarray]:
            there = x.copy()
            there[self.free] += C @ v
            value, gradient = self.loss.value_and_gradient(there)
            return value, C.T @ gradient[self.free]

        v, pairs = np.zeros(int(self.free.sum())), lbfgs.Curvature(int(self.free.sum()))
        out = x.copy()
        while True:
            left = max(self.max_iter - self.n_iter, 0)
            with self.monitor.limited():
                found = lbfgs.minimize(
                    function,
                    v,
                    tol=_COARSE,
                    max_iter=min(left, _PAUSE),
                    monitor=self.monitor.to_tol(_COARSE).after(self.n_iter),
                    max_step=20.0,
                    curvature=pairs,
                )
            v = found.x
            self.n_iter += found.n_iter
            self.status, self.value = found.status, found.value
            out[self.free] = x[self.free] + C @ v
            if found.status is not Status.MAX_ITER or left <= _PAUSE:
                return out
            if self.is_far(out):
                self.status = Status.STALLED
                return out

    def is_far(self, x: np.ndarray) -> bool:
        """Return whether a deviation at x is `far`."""
        sizes = [np.abs(np.diagonal(L)).max() for L in self.loss.lambdas(x)]
        return bool(max(sizes) > self.far)

    def refine(self, x: np.ndarray) -> None:
        """Set the units of the free parameters by the Hessian at x."""
        scale = np.sqrt((self.units**2).sum(axis=1))
        try:
            with self.monitor.limited():
                V = None if self.ended else self.covariance(x, scale)
        except OutOfTime:
            self.status, V = Status.MAX_TIME, None
        if V is not None:
            self.units[np.ix_(self.free, self.free)] = np.linalg.cholesky(V)
            self.inverse = V

    @property
    def ended(self) -> bool:
        """Return whether a limit or the callback has ended the search."""
        return self.status in (Status.MAX_ITER, Status.MAX_TIME, Status.STOPPED)

    def without_zeros(self, x: np.ndarray, noise: float) -> tuple[np.ndarray, bool]:
        """Set small deviations to 0 if the likelihood decreases with the variance.

        Returns the new optimum, and whether a deviation is 0.
        """
        p, at, is_singular = self.loss.design.n_parameters, 0, False
        for t in self.loss.terms:
            places = np.full((t.q, t.q), -1)
            places[t.free] = p + at + np.arange(int(t.free.sum()))
            at += int(t.free.sum())
            for j in range(t.q):
                if self.ended or abs(x[places[j, j]]) > _SMALL * noise:
                    continue
                # Lambda of this term if the deviation of effect j is 0.
                own = np.zeros((t.q, t.q))
                own[t.free] = x[places[t.free]]
                own[j, j] = 0.0
                own = semidefinite_factor(own @ own.T)
                there = x.copy()
                there[places[t.free]] = own[t.free]
                free = self.free.copy()
                column = places[:, j]
                self.free[column[column >= 0]] = False
                there = self.minimum(there)
                # The likelihood is even in a deviation, so its slope at 0 says
                # nothing. Just above 0, it has the sign of that in the variance.
                near = there.copy()
                near[places[j, j]] = _NEAR_0 * noise
                slope = self.loss.value_and_gradient(near)[1][places[j, j]]
                value = self.loss.value_and_gradient(there)[0]
                # The search is coarse: 1e-4 of the log-likelihood is within its error.
                if slope >= 0 and value <= self.loss.value_and_gradient(x)[0] + 1e-4:
                    x, is_singular = there, True
                else:
                    self.free = free
        return x, is_singular

    def certified(
        self, x: np.ndarray
    ) -> tuple[np.ndarray, Status, float, np.ndarray | None]:
        """Make Newton steps until one is shorter than the tolerance.

        Returns the last point, the status, the length of the next step in standard
        errors, and the covariance of the free parameters.
        """
        if self.ended:
            return x, self.status, math.inf, None
        try:
            with self.monitor.limited():
                return self._polished(x)
        except OutOfTime:
            return x, Status.MAX_TIME, math.inf, None

    def _polished(
        self, x: np.ndarray
    ) -> tuple[np.ndarray, Status, float, np.ndarray | None]:
        """Return the result of `certified`, unless time runs out."""
        value, gradient = self.loss.value_and_gradient(x)
        V, violation, is_here = self.inverse, math.inf, False
        scale = np.sqrt((self.units**2).sum(axis=1))
        for k in range(_POLISH):
            # A Hessian takes two gradients per parameter: it serves four steps, and
            # that of a rule with fewer nodes the first ones.
            if k % 4 == 0 and (k or V is None or len(V) < self.free.sum()):
                V, is_here = self.covariance(x, scale), True
                if V is None:
                    break
                scale[self.free] = np.sqrt(np.diagonal(V))
            assert V is not None
            step = -V @ gradient[self.free]
            violation = math.sqrt(max(-float(step @ gradient[self.free]), 0.0))
            if violation <= self.monitor.tol:
                V = V if is_here else self.covariance(x, scale)
                status = Status.STALLED if V is None else Status.CONVERGED
                return x, status, violation, V
            there = x.copy()
            there[self.free] += step
            new, slope = self.loss.value_and_gradient(there)
            # An increase beyond rounding: the Hessian is not that of a minimum.
            if not new <= value + 1e-9 * (1 + abs(value)):
                break
            x, value, gradient, is_here = there, new, slope, False
            self.n_iter += 1
        return x, Status.STALLED, violation, V

    def covariance(self, x: np.ndarray, scale: np.ndarray) -> np.ndarray | None:
        """Return the inverse Hessian of the free parameters, or None if it is not
        positive definite. `scale`, (p,), is about their standard errors.
        """
        which = np.flatnonzero(self.free)
        H = np.empty((which.size, which.size))
        for i, j in enumerate(which):
            h = _STEP * scale[j]
            ends = []
            for sign in (1, -1):
                there = x.copy()
                there[j] += sign * h
                ends.append(self.loss.value_and_gradient(there)[1][which])
            H[i] = (ends[0] - ends[1]) / (2 * h)
        H = (H + H.T) / 2
        try:
            np.linalg.cholesky(H)
        except np.linalg.LinAlgError:
            return None
        return np.linalg.inv(H)


def semidefinite_factor(S: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of a covariance that may be singular.

    Its columns are 0 where pivots are.
    """
    S, L = S.copy(), np.zeros_like(S)
    least = _PIVOT * max(float(np.diagonal(S).max(initial=0.0)), 1e-300)
    for j in range(len(S)):
        if S[j, j] > least:
            L[j:, j] = S[j:, j] / math.sqrt(S[j, j])
            S -= np.outer(L[:, j], L[:, j])
    return L


def with_effect_first(
    loss: MixedLikelihood, x: np.ndarray, t: int, j: int
) -> tuple[MixedLikelihood, np.ndarray, int]:
    """Return a loss in which effect j of term t is the first of its term, the point x
    in it, and the number of the parameter that is the deviation of this effect.
    """
    terms, lambdas = list(loss.terms), loss.lambdas(x)
    term, p = terms[t], loss.design.n_parameters
    # Lambda is lower triangular, so the deviation of the first effect is an entry.
    order = [j, *(i for i in range(term.q) if i != j)]
    if j:
        terms[t] = replace(term, Z=np.ascontiguousarray(term.Z[:, order]))
        S = (lambdas[t] @ lambdas[t].T)[np.ix_(order, order)]
        lambdas[t] = semidefinite_factor(S)
        loss = loss.replaced(terms=terms)
    theta = [L[own.free] for L, own in zip(lambdas, terms, strict=True)]
    index = p + sum(own.size for own in theta[:t])
    return loss, np.concatenate([x[:p], *theta]), index


_CLOSE = 1e-6  # relative tolerance of sqrt(D) = z
_MAX_ITER = 500  # steps of one fit
_TINY = 1e-300  # keeps the division by sqrt(D) finite


@dataclass(frozen=True, slots=True, eq=False)
class RememberedMixed:
    """Loss of a mixed model, with the training rows, and its minimum.

    Attributes
    ----------
    loss : MixedLikelihood
    x : (p,) array
        The minimum, in the units of the loss.
    units : tuple of (q,) arrays
        Units of the columns that the effects of each term multiply.
    covariance : (p, p) array
        Covariance of x, which is 0 for variances at the boundary.
    raw : (t, p) array
        Derivatives by x of the parameters in the units of the features, and of the
        lower triangles of Lambda.
    """

    loss: MixedLikelihood
    x: np.ndarray
    units: tuple[np.ndarray, ...]
    covariance: np.ndarray
    raw: np.ndarray

    def errors_with_modes(
        self, known: Sequence[int], gradient: np.ndarray
    ) -> np.ndarray:
        """Return the square root of (1) in `margins` for each row of a gradient.

        Its first t columns are derivatives by `raw`, the others by the effects of the
        terms, of which `known` counts the known ones.
        """
        t = len(self.raw)
        sums = [self._by_term(known, by_effects) for by_effects in gradient[:, t:]]
        variance, by_modes = self.loss.of_modes(self.x, sums)
        G = by_modes + gradient[:, :t] @ self.raw
        variance += ((G @ self.covariance) * G).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def _by_term(
        self, known: Sequence[int], by_effects: np.ndarray
    ) -> list[np.ndarray]:
        """Split derivatives by known effects by term, (G, q) each, in the units of the
        loss. They are 0 for terms without known effects.
        """
        out = []
        parts = np.split(by_effects, np.cumsum(known)[:-1])
        for term, unit, part in zip(self.loss.terms, self.units, parts, strict=True):
            shape = term.n_levels, term.q
            out.append((part.reshape(shape) if part.size else np.zeros(shape)) / unit)
        return out

    def loglik_by(self, n_quadrature: int) -> float:
        """Return the maximal log-likelihood with another number of nodes.

        The search begins at x. Likelihoods of fits with n_quadrature="auto" are
        compared at a common number of nodes.
        """
        free = np.diagonal(self.covariance) > 0
        units, which = np.zeros_like(self.covariance), np.ix_(free, free)
        units[which] = np.linalg.cholesky(self.covariance[which])
        loss = self.loss.replaced(n_quadrature=n_quadrature)
        search = VarianceSearch(loss, units, _MAX_ITER, Monitor("loglik_by", 1e-6))
        search.free = free
        search.minimum(self.x)
        return -search.value

    @property
    def _errors(self) -> np.ndarray:
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    def coefficient_ends(self, index: int, z: float) -> tuple[float, float]:
        """Return both ends of the interval of a parameter of the design."""
        profile = _Profile(self.loss, self.x, index, self._errors)
        return profile.end(-1, z, -math.inf), profile.end(1, z, math.inf)

    def deviation_ends(self, t: int, j: int, z: float) -> tuple[float, float]:
        """Return both ends of the interval of the standard deviation of effect j of
        term t, in a loss in which this effect is the first of its term.
        """
        loss, x, index = with_effect_first(self.loss, self.x, t, j)
        profile = _Profile(loss, x, index, self._errors)
        unit = float(self.units[t][j])
        lower, upper = profile.end(-1, z, 0.0), profile.end(1, z, math.inf)
        return lower / unit, upper / unit


class _Profile:
    """Profile likelihood of the parameter `index` of a loss whose minimum is x.

    `errors`, (p,), is about the standard errors of the parameters.
    """

    def __init__(
        self, loss: MixedLikelihood, x: np.ndarray, index: int, errors: np.ndarray
    ):
        self.loss, self.x, self.index = loss, x, index
        monitor = Monitor("confint", 1e-6)
        self.search = VarianceSearch(
            loss, np.zeros((x.size, x.size)), _MAX_ITER, monitor
        )
        V = self.search.covariance(x, errors)
        if V is None:
            raise ValueError(
                "confint: the Hessian of the log likelihood is not positive definite "
                "at the estimates: take method='wald'"
            )
        self.error = math.sqrt(V[index, index])
        # Given this parameter, the others have the mean `regression` times its change,
        # which starts each fit, and the covariance `given`.
        self.regression = V[:, index] / V[index, index]
        others = np.arange(x.size) != index
        given = V - np.outer(self.regression, V[index])
        self.search.units[np.ix_(others, others)] = np.linalg.cholesky(
            given[np.ix_(others, others)]
        )
        self.search.free = others
        self.least = loss.value_and_gradient(x)[0]

    def at(self, c: float, near: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return sqrt(D(c)), its derivative and the minimum, searched from `near`."""
        self.search.n_iter = 0
        x = self.search.minimum(near + (c - near[self.index]) * self.regression)
        if self.search.ended:
            warn(
                "confint: a fit with one parameter fixed ended with status "
                f"{Status.MAX_ITER.value}",
                ConvergenceWarning,
            )
        value, gradient = self.loss.value_and_gradient(x)
        root = math.sqrt(max(2 * (value - self.least), 0.0))
        return root, float(gradient[self.index]) / max(root, _TINY), x

    def end(self, sign: int, z: float, bound: float) -> float:
        """Return the end on the side of `sign`, or `bound` if it lies beyond."""
        start, near = float(self.x[self.index]), self.x
        step = sign * z * self.error
        # A deviation has the bound 0, which is the end if it is not rejected.
        if math.isfinite(bound) and self.at(bound, near)[0] <= z:
            return bound

        def fit_at(distance: float) -> tuple[float, float]:
            nonlocal near
            root, slope, x = self.at(start + distance * step, near)
            if root < z:
                near = x
            return root, slope * step

        end = profile_end(fit_at, z, (bound - start) / step, _CLOSE)
        return start + end * step
