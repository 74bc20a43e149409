"""Steps of the search for the optimum of a mixed likelihood, and its certificate.

`optimum` takes them in turn: L-BFGS, deviations set to 0, and Newton's method.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._cumulative.likelihood import CHAIN
from .._input.checks import shown
from .._numerics import lbfgs
from .._numerics.cholesky import Cholesky
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .likelihood import MixedLikelihood
from .rows import IntervalRows

_COARSE = 1e-4  # slope in standard errors at which Newton's method replaces L-BFGS
_STEP = 1e-5  # of differences of the gradient, in standard errors: cbrt of rounding
_PAUSE = 30  # steps between two looks at the deviations
_POLISH = 20  # most Newton steps
_SMALL = 0.1  # deviation, relative to the noise, below which 0 is tried
NEAR_0 = 1e-3  # deviation at which the sign of the slope is read
_LARGE = 500  # parameters above which a factor is faster than numpy's inverse
_PIVOT = 1e-10  # relative size of a pivot that counts as 0


class FreeHessian:
    """Hessian H of the free parameters of a mixed likelihood.

    Attributes
    ----------
    size : int
    factor : Cholesky or None
        Factor of a large H. The inverse of a small one is computed at once.

    Raises
    ------
    numpy.linalg.LinAlgError
        H is not positive definite.
    """

    def __init__(self, H: np.ndarray, n_threads: int):
        self.size, self.factor = len(H), None
        self._inverse: np.ndarray | None = None
        if self.size > _LARGE:
            self.factor = Cholesky(H, n_threads)
        else:
            np.linalg.cholesky(H)
            self._inverse = np.linalg.inv(H)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """Return H^-1 v for a vector v, (f,), of the free parameters."""
        if self._inverse is None:
            assert self.factor is not None
            return np.asarray(self.factor.solve(v[:, None].copy())[:, 0])
        return np.asarray(self._inverse @ v)

    def inverse(self) -> np.ndarray:
        """Return H^-1, (f, f), which takes the memory of the factor."""
        if self._inverse is None:
            assert self.factor is not None
            self._inverse = self.factor.inverse()
        return self._inverse


class VarianceSearch:
    """Search for the optimum of a mixed likelihood over its free parameters.

    Parameters
    ----------
    loss : MixedLikelihood
    units : (p, p) array
        About a factor C C' of the covariance of the parameters.
    max_iter : int
    monitor : Monitor

    Attributes
    ----------
    free : (p,) bool array
        Whether a parameter is searched for. Entries of Lambda at the boundary are not:
        they stay 0.
    value : float
        Value of `loss` at the last optimum; infinite before the first evaluation.
    refined_hessian : FreeHessian or None
        Hessian of the free parameters by `refine`.
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
        self.refined_hessian: FreeHessian | None = None
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
            try:
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
            except lbfgs.NotFiniteError:
                raise ValueError(
                    f"fit_clmm: the likelihood with link={shown(self.loss.link)} "
                    "overflows at standard deviations of the random effects as large "
                    "as those of this table: pass another link, such as 'probit', or "
                    "leave out effects of groups with rows of one rank"
                ) from None
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
                found = None if self.ended else self.hessian(x, scale)
        except OutOfTime:
            self.status, found = Status.MAX_TIME, None
        if found is not None:
            V = found.inverse()
            self.units[np.ix_(self.free, self.free)] = np.linalg.cholesky(V)
            self.refined_hessian = found

    @property
    def ended(self) -> bool:
        """Return whether a limit or the callback has ended the search."""
        return self.status in (Status.MAX_ITER, Status.MAX_TIME, Status.STOPPED)

    def without_zeros(self, x: np.ndarray, noise: float) -> tuple[np.ndarray, bool]:
        """Set small deviations to 0 if the likelihood decreases with the variance.

        Returns the new optimum, and whether a deviation is 0.
        """
        is_singular = False
        for t, places in zip(self.loss.terms, self.loss.places, strict=True):
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
                near[places[j, j]] = NEAR_0 * noise
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
        H, violation, is_here = self.refined_hessian, math.inf, False
        scale = np.sqrt((self.units**2).sum(axis=1))
        for k in range(_POLISH):
            # A Hessian takes two gradients per parameter: it serves four steps, and
            # that of a rule with fewer nodes the first ones.
            if k % 4 == 0 and (k or H is None or H.size < self.free.sum()):
                H, is_here = self.hessian(x, scale), True
                if H is None:
                    break
                if H.factor is None:
                    scale[self.free] = np.sqrt(np.diagonal(H.inverse()))
            assert H is not None
            step = -H.solve(gradient[self.free])
            violation = math.sqrt(max(-float(step @ gradient[self.free]), 0.0))
            if violation <= self.monitor.tol:
                H = H if is_here else self.hessian(x, scale)
                if H is None:
                    return x, Status.STALLED, violation, None
                return x, Status.CONVERGED, violation, H.inverse()
            there = x.copy()
            there[self.free] += step
            new, slope = self.loss.value_and_gradient(there)
            # An increase beyond rounding: the Hessian is not that of a minimum.
            if not new <= value + 1e-9 * (1 + abs(value)):
                break
            x, value, gradient, is_here = there, new, slope, False
            self.n_iter += 1
        V = None if H is None else H.inverse()
        return x, Status.STALLED, violation, V

    def hessian(self, x: np.ndarray, scale: np.ndarray) -> FreeHessian | None:
        """Return the Hessian of the free parameters, or None if it is not positive
        definite. `scale`, (p,), is about the standard errors of all parameters.
        """
        H, one_by_one = np.empty((x.size, x.size)), self.free.copy()
        if has_many_thresholds(self.loss):
            H[self.loss.design.slots()] = self._rows_of_thresholds(x, _STEP * scale)
            one_by_one[self.loss.design.slots()] = False
        for j in np.flatnonzero(one_by_one):
            h = _STEP * scale[j]
            ends = []
            for sign in (1, -1):
                there = x.copy()
                there[j] += sign * h
                ends.append(self.loss.value_and_gradient(there)[1])
            H[j] = (ends[0] - ends[1]) / (2 * h)
        H = H[np.ix_(self.free, self.free)]
        try:
            return FreeHessian((H + H.T) / 2, self.loss.n_threads)
        except np.linalg.LinAlgError:
            return None

    def _rows_of_thresholds(self, x: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the rows of the Hessian by (theta_t, nu_t), (T M, p).

        The log likelihood is a sum over levels, and a level depends on the thresholds
        about the ranks of its rows only. Thresholds no two of which are of one level
        are therefore moved at once, and each changes the parts of its own levels.
        `h`, (p,), are the steps.
        """
        loss, D = self.loss, self.loss.design
        last, first = D.rank[loss.order], D.first[loss.order]
        slots = D.slots().reshape(D.T, -1)
        own = np.concatenate([loss.group[last < D.T], loss.group[first > 0]])
        ends = np.concatenate([last[last < D.T], first[first > 0] - 1])
        apart = _apart(own, ends.astype(np.int64), D.T)
        H = np.empty((*slots.shape, x.size))
        for thresholds in apart:
            # The threshold that moves, by number in this set, at each level.
            of_end = np.full(D.T, -1)
            of_end[thresholds] = np.arange(thresholds.size)
            of_level = np.full(loss.terms[0].n_levels, -1)
            moved = of_end[ends] >= 0
            of_level[own[moved]] = of_end[ends[moved]]
            for k, moving in enumerate(slots[thresholds].T):
                step = np.zeros_like(x)
                step[moving] = h[moving]
                parts = loss.part_gradients(x, step, of_level, thresholds.size)
                H[thresholds, k] = parts / (2 * h[moving])[:, None]
        return H.reshape(-1, x.size)


def has_many_thresholds(loss: MixedLikelihood) -> bool:
    """Return whether a likelihood is a sum over levels of one factor, each of which
    depends on few of many thresholds.
    """
    D = loss.design
    is_sum = loss.is_single and isinstance(loss.rows, IntervalRows)
    return is_sum and D.is_flexible and D.T > CHAIN


def _apart(level: np.ndarray, end: np.ndarray, T: int) -> list[np.ndarray]:
    """Divide T thresholds into sets no two of which are ends of rows of one level.

    `level` and `end` hold the pairs of a level and an end of one of its rows.
    """
    order = np.argsort(end, kind="stable")
    of_end = np.split(level[order], np.searchsorted(end[order], np.arange(1, T)))
    taken: dict[int, set[int]] = {}
    sets: list[list[int]] = []
    for t, levels in enumerate(of_end):
        known = [taken.setdefault(g, set()) for g in levels.tolist()]
        used, number = set().union(*known), 0
        while number in used:
            number += 1
        for colours in known:
            colours.add(number)
        if number == len(sets):
            sets.append([])
        sets[number].append(t)
    return [np.array(own) for own in sets]


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
    return loss, np.concatenate([x[:p], *theta]), int(loss.places[t][0, 0])
