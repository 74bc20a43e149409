"""Profile likelihood intervals of a cumulative link mixed model.

As in `profile`, each end is the root of sqrt(D(c)) = z, where D is twice the fall of
the log likelihood if the parameter is held at c. The standard deviation of an effect is
the first diagonal entry of Lambda once the effect comes first, so every parameter is
held in the same way. At a deviation of 0 the likelihood is finite: the lower end is 0
where D does not reach z^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._cumulative.mixed import MixedLikelihood
from .._watch.convergence import ConvergenceWarning, Status, warn
from .._watch.monitor import Monitor
from .mixed_search import Search, semidefinite_factor

_CLOSE = 1e-6  # of sqrt(D) to z, relative to it
_MAX_FITS = 40  # for one end
_MAX_ITER = 500  # steps of one fit
_FARTHEST = 1e3  # in standard errors
_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class RememberedMixed:
    """The loss of a mixed model and its minimum, not on the boundary.

    Attributes
    ----------
    loss : MixedLikelihood
    x : (p,) array
        The minimum, in the parameters of the loss.
    units : tuple of (q,) arrays
        Divisors of the effects of each term, in the units of their columns.
    errors : (p,) array
        Standard errors of x.
    """

    loss: MixedLikelihood
    x: np.ndarray
    units: tuple[np.ndarray, ...]
    errors: np.ndarray

    def coefficient_ends(self, index: int, z: float) -> tuple[float, float]:
        """Return both ends for a parameter of the design."""
        profile = _Profile(self.loss, self.x, index, self.errors)
        return profile.end(-1, z, -math.inf), profile.end(1, z, math.inf)

    def deviation_ends(self, t: int, j: int, z: float) -> tuple[float, float]:
        """Return both ends for the standard deviation of effect j of term t."""
        terms, lambdas = list(self.loss.terms), self.loss.lambdas(self.x)
        term = terms[t]
        order = [j, *(i for i in range(term.q) if i != j)]
        terms[t] = replace(term, Z=np.ascontiguousarray(term.Z[:, order]))
        S = (lambdas[t] @ lambdas[t].T)[np.ix_(order, order)]
        lambdas[t] = semidefinite_factor(S)
        loss = MixedLikelihood(
            self.loss.design, self.loss.link, terms, self.loss.n_quadrature,
            self.loss.n_threads, self.loss.group_weight,
        )  # fmt: skip
        p = loss.design.n_parameters
        theta = [L[own.free] for L, own in zip(lambdas, terms, strict=True)]
        index = p + sum(own.size for own in theta[:t])
        profile = _Profile(
            loss, np.concatenate([self.x[:p], *theta]), index, self.errors
        )
        unit = float(self.units[t][j])
        lower, upper = profile.end(-1, z, 0.0), profile.end(1, z, math.inf)
        return lower / unit, upper / unit


class _Profile:
    """The profile of the parameter `index` of a loss whose minimum is x."""

    def __init__(
        self, loss: MixedLikelihood, x: np.ndarray, index: int, errors: np.ndarray
    ):
        self.loss, self.x, self.index = loss, x, index
        monitor = Monitor("confint", 1e-6)
        self.search = Search(loss, np.zeros((x.size, x.size)), _MAX_ITER, monitor)
        V = self.search.covariance(x, errors)
        if V is None:
            raise ValueError(
                "confint: the Hessian of the log likelihood is not positive definite "
                "at the estimates: take method='wald'"
            )
        self.error = math.sqrt(V[index, index])
        self.way = V[:, index] / V[index, index]
        others = np.arange(x.size) != index
        given = V - np.outer(self.way, V[index])
        self.search.units[np.ix_(others, others)] = np.linalg.cholesky(
            given[np.ix_(others, others)]
        )
        self.search.free = others
        self.least = loss.value_and_gradient(x)[0]

    def at(self, c: float, near: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return sqrt(D(c)), its derivative and the minimum, searched from `near`."""
        self.search.n_iter = 0
        x = self.search.minimum(near + (c - near[self.index]) * self.way)
        if self.search.ended:
            warn(
                f"confint: a fit with a parameter held ended {Status.MAX_ITER.value}",
                ConvergenceWarning,
            )
        value, gradient = self.loss.value_and_gradient(x)
        root = math.sqrt(max(2 * (value - self.least), 0.0))
        return root, float(gradient[self.index]) / max(root, _TINY), x

    def end(self, sign: int, z: float, bound: float) -> float:
        """Return the end on this side of the estimate, at most at `bound`."""
        start, near = float(self.x[self.index]), self.x
        if math.isfinite(bound) and self.at(bound, near)[0] <= z:
            return bound
        inner, outer = start, bound
        c = start + sign * z * self.error
        for _ in range(_MAX_FITS):
            if math.isfinite(outer) and not min(inner, outer) < c < max(inner, outer):
                c = (inner + outer) / 2
            root, slope, x = self.at(c, near)
            if abs(root - z) <= _CLOSE * z:
                return c
            if root < z:
                inner, near = c, x
            else:
                outer = c
            if not math.isfinite(outer) and abs(c - start) > _FARTHEST * self.error:
                return bound
            new = c + (z - root) / slope if slope * sign > 0 else outer
            if not math.isfinite(outer):  # at most twice as far
                farthest = start + 2 * (c - start)
                new = min(new, farthest) if sign > 0 else max(new, farthest)
            c = new
        warn(
            "confint: the profile of a parameter does not cross its level smoothly",
            ConvergenceWarning,
        )
        return c
