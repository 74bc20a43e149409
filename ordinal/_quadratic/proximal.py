"""Proximal points on the multipliers of (D) in `losses`, by semismooth Newton steps.

Given multipliers g and sigma, the next ones are the slopes t of the Moreau envelopes

    M_ij(v) = max { t v - phi_ij(t) - (t - g_ij)^2 / (2 sigma) : lo <= t <= hi }

at the minimum (w, b) of

    1/2 |w|^2 + sum_ij M_ij(b_j - f_i) + 1/2 sum_j price_j b_j^2
    [+ 1/(2 s) sum_j max(0, nu_j + s (b_j - b_(j+1)))^2]                             (S)

(S) is smooth and its Hessian piecewise constant: the unit matrix of w, the prices, and
sigma times the sum of (z_i, -e_j) (z_i, -e_j)' over the multipliers inside their
pieces. The outer loop is the proximal point method of Rockafellar (SIAM J. Control
14:877-898, 1976). (D) is piecewise quadratic, so that the distance of g from its
solutions is at most a constant a times the size of its least slope; an exact minimum of
(S) then brings g nearer by a factor of at most a / root(a^2 + sigma^2) (Luque, SIAM J.
Control 22:277-293, 1984), which vanishes as sigma grows. The inner loop is semismooth
Newton, which ends in finitely many steps near a minimum (Niu, Wang, Tang, Wang, Song,
arXiv 1910.01312, for support vector machines).

As the Hessian is at least the unit matrix, the decrement of a Newton step says too
little about what the dual loses by an inexact minimum of (S), which is
1/2 |w - Z'beta|^2 and the sums that are not zero. The inner loop ends when these are
small beside the gap.

At the end, what was found in single precision is certified for the features in double
that predictions use, and refined where the gap asks for it. These features need not be
made: with values V = k(X, B) and a small matrix M,

    z = V M,    f = V (M w),    Z't = M' (V't),    Z'DZ = M' (V'DV) M,

so that a pass costs kernel values and a product with a vector, n m (d + 1), rather than
n m^2 for the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from .._input.types import Matrix
from .._numerics.cholesky import Cholesky
from .._numerics.rows import strips, take
from .._numerics.threads import Pool
from .._rows.sums import Parts
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..kernels.features import Features
from .losses import Losses, best_thresholds
from .sums import BasisPoint, LocalSums, Sums

_INNER = 15  # most Newton steps for one g
_ACCURACY = 0.3  # accuracy of an inner minimum, relative to the target gap
_SHRINK = 0.3  # target gap, relative to the last gap, unless it is `tol`
_NEAR = 4  # multiple of `tol` below which the dual value of a minimum is computed
_FULL = 0.1  # share of the initial slope that a full step may leave
_LINE = 0.02  # share of the initial slope that a line search may leave
_DOUBLINGS = 6  # most doublings of a step that is too short
_SEARCHES = 10
_QUARTERS = np.array([0.25, 0.5, 0.75])
_PATIENCE = 20  # Newton steps within which a gap below _SMALL must halve
_SMALL, _LARGE_PATIENCE = 0.1, 60  # a larger gap has more steps, as it falls late
_ENOUGH = 300  # moving multipliers for each unknown of a Hessian ...
_EARLY = 3  # ... in the first steps of each minimum; later steps use all of them
_FLOOR = 1e-3  # curvature by a threshold on which no multiplier depends, in sigmas

_ROUNDING = 1e-5  # relative error of a sum of products in single precision


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Start of a fit: the end of an earlier fit, or `cold`.

    `nu` and `s` of (S) continue a fit whose multipliers are known, too.
    """

    w: np.ndarray
    b: np.ndarray
    sigma: float
    nu: np.ndarray | None = None
    s: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ProximalSolution:
    """ProximalSolution of a problem, with its objectives.

    Attributes
    ----------
    w, b : arrays
        The best point of (P) that was evaluated, with the best thresholds for w.
    primal, dual : float
        The objectives of (P) there and of (D) at its best feasible point.
    status : Status
    n_iter : int
        Newton steps.
    end : Start
        Start of another fit, such as a fit of more rows.
    here : Start
        Start that continues with the multipliers that the sums hold.
    """

    w: np.ndarray
    b: np.ndarray
    primal: float
    dual: float
    status: Status
    n_iter: int
    end: Start
    here: Start

    @property
    def rel_gap(self) -> float:
        return _relative(self.primal, self.dual)


def cold(m: int, losses: Losses, b: np.ndarray) -> Start:
    """Return the start at w = 0, with sigma as large as the largest box."""
    return Start(np.zeros(m), b, losses.largest)


def _relative(primal: float, dual: float) -> float:
    """Return the duality gap relative to the primal objective."""
    return (primal - dual) / max(abs(primal), np.finfo(float).tiny)


@dataclass(slots=True, eq=False)
class _Iterate:
    """A point of (S), with its gradient."""

    w: np.ndarray
    b: np.ndarray
    nu: np.ndarray
    s: float
    point: BasisPoint
    by_w: np.ndarray
    by_b: np.ndarray
    value: float  # of (S)

    @property
    def residual(self) -> float:
        """Return what the dual objective loses because (S) is not at its minimum."""
        return float(0.5 * self.by_w @ self.by_w + np.abs(self.by_b).sum())

    def slope(self, dw: np.ndarray, db: np.ndarray) -> float:
        """Return the derivative of (S) along a direction."""
        return float(self.by_w @ dw + self.by_b @ db)


class ProximalFit:
    """Minimisation of (P) to a relative duality gap, which `run` does.

    Its state is the point, the best values so far, and the gap.

    Parameters
    ----------
    sums : Sums
    start : Start
    tol : float
    monitor : Monitor
        Receives steps and gaps.
    max_iter : int
        Largest number of Newton steps.
    exact : bool
        Whether to compute the best thresholds for w and a dual value at the end. It is
        not needed where only `end` is used.
    known : (w, b), optional
        A point at which (P) may be less than at the start, evaluated before the first
        step. The best point is sometimes one before the last minimum of (S).
    """

    def __init__(
        self,
        sums: Sums,
        start: Start,
        tol: float,
        monitor: Monitor,
        max_iter: int = 200,
        exact: bool = True,
        known: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        self.sums, self.losses, self.exact = sums, sums.losses, exact
        self.known = known
        self.tol, self.monitor, self.max_iter = tol, monitor, max_iter
        self.w, self.b, self.sigma, self.s = start.w, start.b, start.sigma, start.s
        self.nu = np.zeros(self.losses.T - 1) if start.nu is None else start.nu
        self.best = start.w, start.b
        self.at: np.ndarray | None = None  # w of the last point of the sums
        # The best values so far, not those of the present point: the objective of (P)
        # need not fall from one minimum of (S) to the next.
        self.primal, self.dual = np.inf, 0.0  # t = 0 is always feasible
        self.dual_estimate = (
            0.0  # estimate of the dual value, whose sums may be infeasible
        )
        self.steps, self.gap = 0, 1.0
        self.halved = 0, 1.0  # step at which the gap was last halved, and its value

    def run(self) -> ProximalSolution:
        """Take proximal steps until one of them ends the fit."""
        status = None
        try:
            with self.monitor.limited():
                while status is None:
                    status = self.proximal_step()
        except OutOfTime:
            status = Status.MAX_TIME
        # The limit is extended a little, because the result cannot be certified without
        # a dual value.
        if self.exact or status not in (Status.CONVERGED, Status.STALLED):
            with suppress(OutOfTime), self.monitor.limited(Monitor.GRACE):
                self.finish()
        here = Start(self.w, self.b, self.sigma, self.nu, self.s)
        end = Start(self.w, self.b, self.sigma)
        objectives = self.primal, self.dual
        return ProximalSolution(*self.best, *objectives, status, self.steps, end, here)

    def proximal_step(self) -> Status | None:
        """Minimise (S) to the accuracy that the gap requires.

        Unless the fit is over, g is set to the multipliers at the minimum.
        """
        before = self.steps
        here = self.evaluate(self.w, self.b)
        if not here.point.inside.all():  # (S) has no curvature in some threshold
            here = self.evaluate(
                here.w, best_thresholds(self.sums.loss_slopes, self.losses, here.b)
            )
        status = self.judge()
        # The known point bounds (P) first, so that a converged fit takes no step.
        if status is None and self.known is not None:
            self.certify(here)
            self.evaluate(*self.known)
            self.known, status = None, self.judge()
            if status is None:
                here = self.evaluate(here.w, here.b)
        # An inexact minimum of (S) suffices: its error must shrink with the gap, no
        # faster.
        while status is None and self.steps < before + _INNER:
            here = self.newton(here, self.steps - before < _EARLY)
            self.steps += 1
            status = self.judge()
            goal = _ACCURACY * max(self.tol, _SHRINK * min(self.gap, 1.0))
            if here.residual <= goal * abs(here.value):
                break
        self.w, self.b = here.w, here.b
        if status is None:
            if self.stalled():
                return Status.STALLED
            if self.gap <= _NEAR * self.tol:  # a better w may then suffice to converge
                self.certify(here)
            self.sums.accept()
            # The next proximal step scales the ties by the curvature that it finds.
            self.nu, self.s = here.nu, None
            self.sigma *= _growth(self.steps - before)
        return status

    def stalled(self) -> bool:
        """Return whether the gap has not halved for a long time."""
        # The gap falls in jumps, so single steps without progress are normal.
        since, last = self.halved
        if self.gap <= 0.5 * last:
            self.halved = self.steps, self.gap
            return False
        patience = _PATIENCE if self.gap < _SMALL else _LARGE_PATIENCE
        return self.steps > since + patience

    def judge(self) -> Status | None:
        """Return the status with which the fit ends here, or None."""
        if self.gap <= self.tol:
            return Status.CONVERGED
        if self.steps >= self.max_iter:
            return Status.MAX_ITER
        return self.monitor.stop(self.steps, self.gap)

    def evaluate(self, w: np.ndarray, b: np.ndarray) -> _Iterate:
        """Evaluate (S) at (w, b), and update the best objectives."""
        self.at = None  # in case the sums are interrupted
        q, point = self.losses, self.sums.at(w, b, self.sigma)
        self.at = w
        if self.s is None:
            # Ties as stiff as the thresholds themselves, whose curvature is sigma times
            # the number of free multipliers: neither then dominates the Hessian.
            self.s = self.sigma * max(1.0, float(point.inside.mean()))
        nu = self.ties(b, self.s)
        by_b = point.sides.sum(axis=0) + q.price * b + np.diff(nu, prepend=0, append=0)
        value = 0.5 * w @ w + 0.5 * q.price @ b**2 + point.envelope
        # The augmented Lagrangian of b_j <= b_(j+1), as that of the boxes.
        value += 0.5 * nu @ nu / self.s if q.ordered else 0.0
        place = _Iterate(w, b, nu, self.s, point, w - point.back, by_b, float(value))
        self.observe(place)
        return place

    def ties(self, b: np.ndarray, s: float) -> np.ndarray:
        """Return the multipliers nu of b_j <= b_(j+1) after a step to b, (T - 1,)."""
        if not self.losses.ordered:
            return self.nu
        return np.asarray(np.maximum(0.0, self.nu + s * (b[:-1] - b[1:])))

    def newton(self, here: _Iterate, early: bool) -> _Iterate:
        """Take a Newton step on (S), with a line search where the full step fails."""
        m = self.sums.m
        step = self.direction(here, early)
        dw, db = step[:m], step[m:]
        slope = here.slope(dw, db)
        there = self.evaluate(here.w + dw, here.b + db)
        after = there.slope(dw, db)
        lower = there.value <= here.value + _ROUNDING * abs(here.value)
        # Most full steps pass: a line search costs a pass over the multipliers.
        if self.gap <= self.tol or (lower and abs(after) <= _FULL * abs(slope)):
            return there
        x = self.search(here, dw, db, slope, after)
        return self.evaluate(here.w + x * dw, here.b + x * db)

    def direction(self, here: _Iterate, early: bool) -> np.ndarray:
        """Return the Newton step, (m + T,)."""
        m, T, q = self.sums.m, self.losses.T, self.losses
        # A sample of the rows that move suffices for a direction far from the minimum,
        # as long as it has several rows per variable.
        share = _ENOUGH * (m + T) / max(float(here.point.inside.sum()), 1.0)
        H = self.sums.curvature(share if early and share < 0.5 else 1.0)
        H *= self.sigma
        diagonal = np.einsum("ii->i", H)
        # The unit matrix of 1/2 |w|^2 keeps H positive definite in w.
        diagonal[:m] += 1
        # A threshold next to which no row moves has no curvature of its own.
        diagonal[m:] = np.maximum(diagonal[m:], _FLOOR * self.sigma) + q.price
        # Only active ties have a curvature; max(0, .) is flat at the others.
        for j in m + np.flatnonzero(here.nu > 0):
            H[j : j + 2, j : j + 2] += here.s * np.array([[1.0, -1.0], [-1.0, 1.0]])
        gradient = np.concatenate([here.by_w, here.by_b])
        try:
            # A copy, because the factor is made in place and H is needed if that fails.
            factor = Cholesky(H.copy(), self.sums.n_threads)
        except np.linalg.LinAlgError:  # rounding outweighs the unit matrix
            diagonal += _ROUNDING * diagonal.max()
            factor = Cholesky(H, self.sums.n_threads)
        return np.asarray(-factor.solve(gradient.reshape(m + T, 1))[:, 0])

    def search(
        self, here: _Iterate, dw: np.ndarray, db: np.ndarray, slope: float, after: float
    ) -> float:
        """Return approximately the length at which the slope of (S) is zero.

        The last two points of the sums are its start and its full step.
        """
        price = self.losses.price

        def slopes(x: np.ndarray) -> np.ndarray:
            out = self.sums.slopes(x)
            for k, length in enumerate(x):
                b = here.b + length * db
                out[k] += (here.w + length * dw) @ dw + (price * b) @ db
                out[k] += np.diff(self.ties(b, here.s), prepend=0, append=0) @ db
            return out

        return _root(slopes, slope, after)

    def observe(self, place: _Iterate) -> None:
        """Update the best objectives and their gap.

        Multipliers are made feasible, at the cost of a pass, only where the gap would
        then end the fit.
        """
        q, point, b, loss = self.losses, place.point, place.b, place.point.loss
        if q.ordered and (np.diff(b) < 0).any():
            # (P) is infinite at thresholds out of order: the value is that of ordered
            # ones nearby.
            b = _in_order(b)
            loss = self.sums.loss(b)
        primal = self.primal_at(place.w, b, loss)
        if primal < self.primal:
            self.primal, self.best = primal, (place.w, b)
        keep = shares(q, point.sides, place.nu)
        # `point.back` is that of multipliers before scaling: an estimate without a
        # pass.
        estimate = dual_value(q, point, keep, point.back)
        self.dual_estimate = max(self.dual_estimate, estimate)
        self.gap = _relative(self.primal, self.dual_estimate)
        if self.gap <= self.tol:
            self.certify(place)
            self.gap = _relative(self.primal, self.dual)

    def certify(self, place: _Iterate) -> None:
        """Update the dual value by feasible multipliers, which costs a pass."""
        q, point = self.losses, place.point
        keep = shares(q, point.sides, place.nu)
        back = self.sums.scaled_back(keep)
        self.dual = max(self.dual, dual_value(q, point, keep, back))

    def primal_at(self, w: np.ndarray, b: np.ndarray, loss: float) -> float:
        """Return the value of (P), from the sum of its losses."""
        return float(0.5 * w @ w + 0.5 * self.losses.price @ b**2 + loss)

    def finish(self) -> None:
        """Compute the best thresholds for the best w, and a dual value."""
        w, b = self.best
        # Thresholds need the scores of the best w, which the sums may have left.
        if self.gap > self.tol or w is not self.at:
            self.certify(self.evaluate(w, b))
        b = best_thresholds(self.sums.loss_slopes, self.losses, b)
        primal = self.primal_at(w, b, self.sums.loss(b))
        if primal < self.primal:
            self.primal, self.best = primal, (w, b)


def _in_order(b: np.ndarray) -> np.ndarray:
    """Return increasing thresholds near b.

    Each is the mean of the largest one up to it and the least one from it on.
    """
    rising, falling = np.maximum.accumulate(b), np.minimum.accumulate(b[::-1])[::-1]
    return np.asarray(0.5 * (rising + falling))


def _growth(inner: int) -> float:
    """Return the factor of sigma, by the number of steps of the last minimum."""
    if inner <= 4:
        return 4.0 if inner <= 2 else 2.0
    return 0.5 if inner >= 8 else 1.0


def _root(
    slopes: Callable[[np.ndarray], np.ndarray], slope: float, after: float
) -> float:
    """Return approximately the zero of an increasing piecewise linear function.

    `slope` < 0 and `after` are its values at 0 and 1. Several lengths are evaluated at
    a time, because each call of `slopes` is a pass over the rows, perhaps at workers.
    """
    ends, values = np.array([0.0, 1.0]), np.array([slope, after])
    if after < 0:
        # Newton's step was too short: all doublings of it are evaluated in one pass.
        longer = 2.0 ** np.arange(1, _DOUBLINGS + 1)
        ends, values = np.append(1.0, longer), np.append(after, slopes(longer))
        if values[-1] < 0:
            return float(ends[-1])
    for _ in range(_SEARCHES):
        right = int(np.argmax(values >= 0))
        (a, c), (low, high) = ends[right - 1 : right + 1], values[right - 1 : right + 1]
        # The slope is piecewise linear: without a kink in between, the secant is exact.
        secant = a + (c - a) * low / (low - high)
        inner = np.sort(np.append(a + (c - a) * _QUARTERS, secant))
        found = slopes(inner)
        ends = np.concatenate([[a], inner, [c]])
        values = np.concatenate([[low], found, [high]])
        nearest = 1 + int(np.abs(found).argmin())
        x, before, here = ends[nearest], ends[nearest - 1], values[nearest]
        # Beyond the zero the integral may have risen, even if the function is flat.
        lower = here * (x - before) <= -values[nearest - 1] * before
        if lower and abs(here) <= _LINE * abs(slope):
            return float(x)
    return float(ends[max(int(np.argmax(values >= 0)) - 1, 1)])


def shares(losses: Losses, sides: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Return factors (2, T) for the sides of each group that make its sum feasible.

    The heavier side shrinks until the group has the sum that nu requires, or the sum 0
    if that is out of reach.
    """
    keep = np.ones_like(sides)
    # Sums are free where thresholds have a price, because z absorbs them.
    if losses.price.any():
        return keep
    up, down = sides[0], -sides[1]
    wanted = -np.diff(nu, prepend=0, append=0)
    # Shrinking reaches sums between the two sides only; the sum 0 is always feasible.
    if (wanted > up).any() or (wanted < -down).any():
        wanted = np.zeros_like(wanted)
    excess = up - down - wanted
    np.divide(up - excess, up, out=keep[0], where=excess > 0)
    np.divide(down + excess, down, out=keep[1], where=excess < 0)
    return keep


def dual_value(
    losses: Losses, point: BasisPoint, keep: np.ndarray, back: np.ndarray
) -> float:
    """Return the objective of (D) at scaled multipliers of a point.

    The sides of groups are multiplied by `keep`, so that the sum of all z t is `back`,
    and then all multipliers by their best common factor.
    """
    price = losses.price
    z = (keep * point.sides).sum(axis=0)
    quadratic = back @ back + float((z[price > 0] ** 2 / price[price > 0]).sum())
    linear = -float((keep * point.costs).sum())
    # At most 1, or multipliers would leave their boxes.
    theta = min(max(linear / quadratic, 0.0), 1.0) if quadratic > 0 else 1.0
    return float(theta * linear - 0.5 * theta**2 * quadratic)


class KernelValues:
    """`sums.Features` of rows whose kernel values V are computed on request."""

    def __init__(self, features: Features, X: Matrix):
        self._features, self._X = features, X
        self.n, self.m, self.costly = len(X), features.m, True

    def mixing(self, chunk: slice) -> None:
        """Return None: `MixedSums` applies M to the sums over all rows."""
        return

    def block(self, rows: slice, room: np.ndarray) -> np.ndarray:
        """Return the kernel values of some rows, in `room`."""
        some = take(self._X, rows)
        return self._features.values(some, room[: len(some)])

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the kernel values of some rows of a chunk to `out`."""
        return self._features.values(take(self._X, rows.start + places), out)


class MixedSums(Sums):
    """`Sums` for features z = V M, from the sums for the kernel values V.

    Those that do not depend on the features are passed on as they are.
    """

    def __init__(self, sums: Sums, M: np.ndarray):
        self._sums, self._M = sums, M
        self.n, self.m, self.n_threads = sums.n, M.shape[1], sums.n_threads
        self.losses = sums.losses

    def _move_to(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        self._sums._move_to(self._M @ w, b, sigma)

    def _sum(self, request: str, *arguments: Any) -> Parts:
        return self._sums._sum(request, *arguments)

    def accept(self) -> None:
        self._sums.accept()

    def at(self, w: np.ndarray, b: np.ndarray, sigma: float) -> BasisPoint:
        point = self._sums.at(self._M @ w, b, sigma)
        return replace(point, back=self._M.T @ point.back)

    def scaled_back(self, keep: np.ndarray) -> np.ndarray:
        return np.asarray(self._M.T @ self._sums.scaled_back(keep))

    def curvature(self, share: float) -> np.ndarray:
        A, M, m = self._sums.curvature(share), self._M, self.m
        right = np.empty((m, m))

        # Only the lower triangle is set (see `Sums.curvature`); the product needs both.
        def mirror(tile: tuple[slice, slice]) -> None:
            I, J = tile
            if I == J:
                A[I, I] = np.tril(A[I, I]) + np.tril(A[I, I], -1).T
            else:
                A[J, I] = A[I, J].T

        # M is upper triangular: the products leave out its zeros.
        def multiply_right(tile: tuple[slice, slice]) -> None:
            I, J = tile
            right[I, J] = A[I, : J.stop] @ M[: J.stop, J]

        def multiply_left(tile: tuple[slice, slice]) -> None:
            I, J = tile
            A[I, J] = M[: I.stop, I].T @ right[: I.stop, J]

        tiles = list(product(strips(m), strips(m)))
        triangle = [(I, J) for I, J in tiles if I.start >= J.start]
        with Pool(self.n_threads, brief=True) as pool:
            pool.run(mirror, triangle)
            pool.run(multiply_right, tiles)
            pool.run(multiply_left, triangle)
        A[m:, :m] = A[m:, :m] @ M
        return A


def is_to_finish(found: ProximalSolution) -> bool:
    """Return whether a solution in single precision goes on in double precision."""
    return found.status in (Status.CONVERGED, Status.STALLED)


def look_ahead(
    found: Sequence[ProximalSolution], double: Sequence[Any], features: Features
) -> None:
    """Take the first step of `finished` for several problems in one pass."""
    starts, M = [solution.here for solution in found], features.mixing
    LocalSums.look_ahead(double, [(M @ s.w, s.b, s.sigma) for s in starts])


def finished(
    found: ProximalSolution,
    double: Callable[[], Sums],
    features: Features,
    tol: float,
    monitor: Monitor,
    max_iter: int,
) -> ProximalSolution:
    """Certify a solution found in single precision, and refine it in double precision.

    Parameters
    ----------
    found : ProximalSolution
        As `ProximalFit.run` returned it.
    double : callable
        Makes the sums for `KernelValues` of the same rows, with the same g.
    tol, monitor, max_iter : as those of `ProximalFit`
        max_iter counts the steps before this one, too.
    """
    if not is_to_finish(found):
        return found
    precise = MixedSums(double(), features.mixing)
    later, left = monitor.after(found.n_iter), max_iter - found.n_iter
    # The best point may have been found before the last minimum.
    known = None if found.w is found.here.w else (found.w, found.b)
    new = ProximalFit(precise, found.here, tol, later, left, known=known).run()
    return replace(new, n_iter=found.n_iter + new.n_iter)
