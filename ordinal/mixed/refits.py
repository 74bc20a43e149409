"""Refits of a mixed model to its training rows: profiles, other nodes, fewer terms.

As in `inference.profiles`, each end of an interval is a root of sqrt(D(c)) = z, where D
is twice the decrease of the log-likelihood if the parameter is fixed at c. If an effect
comes first in its factor, its standard deviation is the first diagonal entry of Lambda,
so deviations are fixed like any other parameter. The likelihood is finite at a
deviation of 0, which is the lower end if D does not reach z^2 there. Other deviations
whose estimate is 0 stay there as long as the likelihood decreases with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import CHAIN
from .._input.frame import Frame
from .._input.immutable import read_only
from .._input.warning import warn
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..exceptions import ConvergenceWarning
from ..inference.fitted import TOL, check_unchanged
from ..inference.profiles import profile_end
from ..inference.sandwich import is_held
from ..inference.steps import TermFit, TermFits
from .elimination import RandomTerm
from .likelihood import MixedLikelihood, Mode
from .optimum import NOISE, Optimum, optimum_of, start_of
from .random_terms import CodedEffects, RandomEffects
from .search import NEAR_0, VarianceSearch, with_effect_first

_CLOSE = 1e-6  # relative tolerance of sqrt(D) = z
_MAX_ITER = 500  # steps of one fit
_TINY = 1e-300  # keeps the division by sqrt(D) finite
_RELEASED = 0.1  # deviation, relative to the noise, from which one leaves 0


class GroupFactor(NamedTuple):
    """Grouping factor of a fit.

    The effects of `term` are those of columns in the units `unit`, (q,), which have
    mean square 1.
    """

    spec: CodedEffects
    term: RandomTerm
    unit: np.ndarray
    levels: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class RememberedMixed:
    """Loss of a mixed model, with the training rows, and its minimum.

    Attributes
    ----------
    loss : MixedLikelihood
    x : (p,) array
        The minimum, in the units of the loss.
    factors : tuple of GroupFactor
    covariance : (p, p) array
        Covariance of x, which is 0 for variances at the boundary.
    raw : (t, p) array
        Derivatives by x of the parameters in the units of the features, and of the
        lower triangles of Lambda.
    """

    loss: MixedLikelihood
    x: np.ndarray
    factors: tuple[GroupFactor, ...]
    covariance: np.ndarray
    raw: np.ndarray

    @property
    def units(self) -> tuple[np.ndarray, ...]:
        """Return the units of the columns that the effects of each term multiply."""
        return tuple(factor.unit for factor in self.factors)

    def check_unchanged(self, model: Any, asked: str) -> None:
        """Raise ValueError if the arrays of the training rows have been changed."""
        # `loss` has read its rows before; their design refers to them.
        value = self.loss.replaced().value_and_gradient(self.x)[0]
        check_unchanged(value, model.convergence.primal, asked)

    def refit(self, design: Design, family: str, asked: str) -> Optimum:
        """Fit other columns of the same rows, with the same effects and nodes."""
        loss = self.loss.replaced(design=design)
        start = start_of(loss, family, _MAX_ITER)
        names = [factor.spec.name for factor in self.factors]
        monitor = Monitor(asked, TOL)
        return optimum_of(loss, start, _MAX_ITER, monitor, names, same_nodes=True)

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


def fitted_effects(
    factors: Sequence[GroupFactor],
    loss: MixedLikelihood,
    x: np.ndarray,
    covariance: np.ndarray | None,
) -> tuple[dict[str, Any], RememberedMixed | None]:
    """Return the fields of a model that the optimum x determines, in the units of the
    features, and its training rows if there is a covariance of x.
    """
    p = loss.design.n_parameters
    raw, joint = _by_loss_parameters(factors, loss, x), None
    if covariance is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # seen by is_held
            joint = read_only(_converted_covariance(loss.design, raw, covariance))
        joint = joint if is_held(joint[:p, :p], covariance[:p, :p]) else None
    fields = {
        "uncertainty": None if joint is None else read_only(joint[:p, :p].copy()),
        "random": _estimated_effects(factors, loss, x),
        "joint_covariance": joint,
        "n_variances": x.size - p,
        "n_quadrature": loss.n_quadrature,
        "by_panels": loss.by_panels,
    }
    if covariance is None:
        return fields, None
    return fields, RememberedMixed(loss, x, tuple(factors), covariance, raw)


def _by_loss_parameters(
    factors: Sequence[GroupFactor], loss: MixedLikelihood, x: np.ndarray
) -> np.ndarray:
    """Return the derivatives of the model's parameters by those of the loss, (t, p).

    The former are in the units of the features; the lower triangles of Lambda follow
    the parameters of the design.
    """
    p = loss.design.n_parameters
    blocks = [np.zeros((p, x.size))]
    blocks[0][:, :p] = loss.design.raw(np.eye(p))
    lambdas = zip(factors, loss.lambdas(x), loss.places, strict=True)
    for (_, term, unit, _), L, places in lambdas:
        lower = np.tri(term.q, dtype=bool)
        slopes = _signs(L) / unit[:, None]
        block = np.zeros((int(lower.sum()), x.size))
        block[term.free[lower], places[term.free]] = slopes[term.free]
        blocks.append(block)
    return np.vstack(blocks)


def _converted_covariance(design: Design, raw: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return raw V raw', for V of the parameters of the loss."""
    p = design.n_parameters
    if design.T <= CHAIN:
        return np.asarray(raw @ V @ raw.T)
    for _ in range(2):  # with as many thresholds as rows, each product takes a second
        V = np.concatenate([design.raw(V[:p]), raw[p:] @ V]).T
    return V


def _signs(L: np.ndarray) -> np.ndarray:
    """Return the signs of columns, (q,), that make the diagonal of Lambda positive."""
    return np.where(np.diagonal(L) < 0, -1.0, 1.0)


def _estimated_effects(
    factors: Sequence[GroupFactor], loss: MixedLikelihood, x: np.ndarray
) -> tuple[RandomEffects, ...]:
    """Return modes and covariances of the effects, in the units of their columns."""
    found = loss.mode(x)
    assert found is not None
    mode: Mode = found[1]
    blocks = loss.structure.level_blocks(mode.factor.inverse())
    out = []
    for (own, _, unit, levels), L, u, block in zip(
        factors, loss.lambdas(x), mode.u, blocks, strict=True
    ):
        # Lambda and -Lambda give the same covariance: diagonals are made positive.
        sign = _signs(L)
        L, u = L / unit[:, None] * sign, u * sign
        block = block * np.outer(sign, sign)
        out.append(
            RandomEffects(
                name=own.name,
                columns=own.columns,
                slopes=own.slopes,
                levels=read_only(levels),
                factor=read_only(L),
                modes=read_only(u @ L.T),
                variances=read_only(L @ block @ L.T),
            )
        )
    return tuple(out)


def _columns_of_lambda(loss: MixedLikelihood) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the parameters on the diagonals of Lambda, with those of their columns."""
    for places in loss.places:
        for j, column in enumerate(places.T):
            yield int(column[j]), column[column >= 0]


class _Profile:
    """Profile likelihood of the parameter `index` of a loss whose minimum is x.

    `errors`, (p,), is about the standard errors of the parameters.
    """

    def __init__(
        self, loss: MixedLikelihood, x: np.ndarray, index: int, errors: np.ndarray
    ):
        self.loss, self.x, self.index = loss, x, index
        monitor, self.noise = Monitor("confint", 1e-6), NOISE[loss.link]
        self.search = VarianceSearch(
            loss, np.zeros((x.size, x.size)), _MAX_ITER, monitor
        )
        self.zeros = {k: column for k, column in _columns_of_lambda(loss) if x[k] == 0}
        free = self.search.free
        for column in self.zeros.values():
            free[column] = False
        scale = np.where(errors > 0, errors, errors[errors > 0].max())
        found = self.search.hessian(x, scale)
        if found is None:
            raise ValueError(
                "confint: the Hessian of the log likelihood is not positive definite "
                "at the estimates: take method='wald'"
            )
        V = np.zeros((x.size, x.size))
        V[np.ix_(free, free)] = found.inverse()
        self.least = loss.value_and_gradient(x)[0]
        if index in self.zeros:
            # The likelihood is even in the deviation, so that its optimum moves by the
            # square of it, and decreases by `slope` times it.
            del self.zeros[index]
            slope = self._slope_above_0(x, index) / (2 * NEAR_0 * self.noise)
            self.error = min(1 / math.sqrt(max(2 * slope, _TINY)), self.noise)
            self.regression = np.zeros(x.size)
            self.regression[index] = 1.0
        else:
            self.error = math.sqrt(V[index, index])
            # Given this parameter, the others have the mean `regression` times its
            # change, which starts each fit, and the covariance `given`.
            self.regression = V[:, index] / V[index, index]
            V = V - np.outer(self.regression, V[index])
        free[index] = False
        units = np.diag(np.where(free, 0.0, self.noise * _RELEASED))
        units[np.ix_(free, free)] = np.linalg.cholesky(V[np.ix_(free, free)])
        self.search.units = units

    def _slope_above_0(self, x: np.ndarray, k: int) -> float:
        """Return the derivative by the deviation k just above 0."""
        near = x.copy()
        near[k] = NEAR_0 * self.noise
        return float(self.loss.value_and_gradient(near)[1][k])

    def _released(self, x: np.ndarray) -> np.ndarray:
        """Search for deviations, too, that are 0 at the estimates but not at x."""
        for k, column in self.zeros.items():
            # A free deviation stays at 0, too, where the slope is 0 by symmetry.
            is_at_0 = abs(x[k]) < NEAR_0 * self.noise
            if is_at_0 and self._slope_above_0(x, k) < 0:
                self.search.free[column] = True
                x[k] = _RELEASED * self.noise
                x = self.search.minimum(x)
        return x

    def at(self, c: float, near: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return sqrt(D(c)), its derivative and the minimum, searched from `near`."""
        self.search.n_iter = 0
        x = self.search.minimum(near + (c - near[self.index]) * self.regression)
        x = self._released(x)
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


class MixedTermFits(TermFits):
    """Fits of the fixed terms of a `ClmmModel`, whose random effects and number of
    quadrature nodes stay.
    """

    def _training(self) -> RememberedMixed:
        found: RememberedMixed = self.model._rows(self.asked)
        return found

    def start(self) -> TermFit:
        return TermFit(tuple(self.columns), None, self.model.loglik, self.model.dof)

    def without(self, larger: TermFit, terms: Sequence[str]) -> TermFit:
        left = tuple(t for t in larger.terms if t not in terms)
        return self._fit(left) if terms else larger

    def with_term(self, smaller: TermFit, term: str) -> TermFit:
        return self._fit(tuple(t for t in self.columns if t in (*smaller.terms, term)))

    def _fit(
        self, terms: tuple[str, ...], starts: tuple[np.ndarray, ...] = ()
    ) -> TermFit:
        if terms == tuple(self.columns):
            return self.start()
        found = self.fit.refit(self._design(terms), self.model.family, self.asked)
        self._warn_unless_optimal(found, terms)
        return TermFit(terms, found, -found.value, found.x.size)

    def refitted(
        self, fitted: TermFit, design: Design, frame: Frame | None
    ) -> tuple[np.ndarray, dict[str, Any], RememberedMixed | None]:
        found: Optimum = fitted.found
        loss, x = found.loss.replaced(design=design), found.x
        fields, memory = fitted_effects(self.fit.factors, loss, x, found.covariance)
        fields["is_singular"] = found.is_singular
        fields["convergence"] = Monitor(self.asked, TOL).record(
            found.status, found.n_iter, found.violation, found.value
        )
        return x[: design.n_parameters], fields, memory
