"""Fits of linear cumulative models: Newton's method, starting values, constraints.

For all links but cauchit log P is concave in the predictors, so that the loss is convex
unless there are scale effects. Where it is not convex, Newton's method adds a multiple
of the Hessian's diagonal until the step descends, and leaves saddle points along the
direction of the most negative curvature. The loss is infinite where a row has
probability 0, so that the line search keeps the thresholds about a row in order.

Newton's method needs the Hessian, of (p, p) entries, and its factor. With more than
`HESSIAN_COLUMNS` columns L-BFGS takes its place, which needs gradients only.

A fit with scale effects begins at the one without, so that they never lower the
likelihood. With few rows there may be several minima; the lowest one reached from a few
starting points is taken. Of 750 fits with one to three scale effects to 30 to 200 rows,
14 missed the lowest known minimum from the fit without these effects, and 4 from the
starting points below. Of 300 fits with cauchit to 15 to 60 rows of heavy tails it was
13 from a start without effects, and 8 from those below.

`OrderedThresholds` keeps thresholds with nominal effects in order at given rows.
Thresholds with slopes may cross at a row, where a rank then has a negative probability.
They do not cross at rows n_i if

    (J_(j+1) - J_j)(alpha - nu n_i) >= 0   for all i and j                           (1)

which is linear in the parameters. The loss (2) of `likelihood` is minimised under (1)
by Newton's method: every step solves

    min  g's + 1/2 s'H s   s.t.  (1) at x + s                                        (2)

with the gradient g and the Hessian H = L L' at x. In the variables d = L'(x + s) this
is the projection of L'x - L^-1 g onto a cone: problem (1) of `separation`, which
`project` solves. The cone is convex, so that a step may be shortened.

A step is shortened if it would nearly close the interval of thresholds in which a
training row lies. The loss is infinite where the interval is closed. Where it has the
width of a rounding error, the loss is finite, but its Hessian is so large that no later
step would leave that point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Protocol, TypeAlias

import numpy as np

from .._numerics import lbfgs
from .._numerics.descent import FALL, HALVINGS, armijo, bounded_step, shifted
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .design import Design
from .likelihood import NONE, Factor, Likelihood, Link, Point
from .rowwise import ChunkedLikelihood, RowwiseLikelihood, factor
from .separation import Row, project

_MOST = 1e12  # most rows in whose standard errors steps are measured
_FLAT = 1e-8  # rounding error of eigenvalues, relative to the diagonal
_MAX_SHIFT = 1e12
_FEW = 1000  # weight of all rows up to which several starting points are tried
_FAR = 2.0  # starting values of zeta, by scaled columns
_LARGE = 1e30  # most factor, or one over it, by which starting values are enlarged
_COARSE = 30  # steps to a starting point, which need not be a minimum of its own loss
_STEP = 16  # a starting point is fitted to every 16th row
_HELD = 2**23  # most entries of these rows, if they are read in chunks
_LEAST_ROWS, _ROWS_EACH = 4096, 50  # least number of these rows, and per parameter
_NEAR = 0.1  # tolerance of a starting point, in standard errors of these rows
_STEEPER = 3.0  # slopes of cauchit may be far above those of light tails


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """End of a descent.

    `step` is the next Newton step, or without a Hessian the sum of all steps.
    `violation` is its length in standard errors, or the largest slope.
    """

    point: Point
    step: np.ndarray
    violation: float
    status: Status
    n_iter: int


# Function that returns a step, and the constraint force at its end: the sum of normals
# of constraints times their multipliers. With it the gradient of the Lagrangian is
# gradient - force. force'step is 0 if the active constraints stay the same, and
# negative otherwise.
StepOf: TypeAlias = Callable[[Point], tuple[np.ndarray, np.ndarray]]


class Loss(Protocol):
    """Function to be minimised: a likelihood, or one with a fixed parameter."""

    @property
    def design(self) -> Design: ...
    @property
    def is_convex(self) -> bool: ...
    def at(self, x: np.ndarray) -> Point: ...


def newton(
    loss: Loss,
    x: np.ndarray,
    max_iter: int,
    monitor: Monitor,
    done: int = 0,
    step_of: StepOf | None = None,
) -> Minimum:
    """Descend from x until a Newton step is shorter than `monitor.tol`.

    Parameters
    ----------
    loss : Loss
    x : (p,) array
    max_iter : int
    monitor : Monitor
        The length of a step is measured in standard errors (`length_in_errors`).
    done : int
        Number of earlier steps; `n_iter` of the result includes them.
    step_of : callable, optional
        Steps under constraints, of a convex loss.
    """
    step_of = step_of or _newton_step
    here, n_iter = loss.at(x), done
    # Weights or an offset beyond the range of double: no step can be judged.
    if not math.isfinite(here.value):
        return Minimum(here, np.zeros_like(x), math.inf, Status.STALLED, n_iter)
    while True:
        step, force = step_of(here)
        slope = float((here.gradient - force) @ step)
        violation = length_in_errors(slope, loss.design.total)
        stop = monitor.stop(n_iter, violation)
        if violation <= monitor.tol:
            # A loss that is not convex may have a saddle point here.
            there = None if loss.is_convex or stop else _below_saddle(loss, here)
            if there is None:
                return Minimum(here, step, violation, Status.CONVERGED, n_iter)
            here, n_iter = there, n_iter + 1
            continue
        if stop is None and n_iter - done >= max_iter:
            stop = Status.MAX_ITER
        end = None
        if stop is None:
            short = bounded_step(step)
            along = partial(_along, loss, here, short, force)
            begin = _Tilted(here, here.value, here.gradient - force)
            end = armijo(along, begin, float(begin.gradient @ short))
        if end is None:
            return Minimum(here, step, violation, stop or Status.STALLED, n_iter)
        here, n_iter = end.point, n_iter + 1


@dataclass(frozen=True, slots=True, eq=False)
class _Tilted:
    """A point with value and gradient of the Lagrangian: the loss less force'x."""

    point: Point
    value: float
    gradient: np.ndarray


def _along(
    loss: Loss, here: Point, step: np.ndarray, force: np.ndarray, size: float
) -> _Tilted:
    """Evaluate the Lagrangian at here.x + size step, up to a constant."""
    there = loss.at(here.x + size * step)
    work = size * float(force @ step)
    return _Tilted(there, there.value - work, there.gradient - force)


def length_in_errors(slope: float, total: float) -> float:
    """Return the length of a Newton step in standard errors.

    Parameters
    ----------
    slope : float
        Derivative of the mean loss along the step.
    total : float
        Sum of the weights.
    """
    # The number of rows is bounded. Weights in small units would make standard errors
    # so large that any step passes, and those in large units so small that rounding
    # lets none pass.
    return math.sqrt(min(max(total, 1.0), _MOST) * max(-slope, 0.0))


def _newton_step(here: Point) -> tuple[np.ndarray, np.ndarray]:
    """Return -(H + shift diag(H))^-1 gradient, (p,), and no force of constraints.

    `shift` is 0, or as large as makes the matrix positive definite.
    """
    # Scaled to a diagonal of 1, because thresholds with no row nearby have curvatures
    # like 1e-70 beside others of 1.
    H, unit = here.hessian.normed()
    gradient = here.gradient * unit
    each = np.ones(unit.size)

    def shifted_factor(shift: float) -> Factor:
        made = Factor(H.plus(shift * each) if shift else H)
        # More of it, or the least eigenvalue may be a rounding error.
        return Factor(H.plus(1.1 * shift * each)) if shift else made

    # A shift far larger than needed would make short gradient steps.
    found = shifted(shifted_factor, least=1e-10, growth=3, most=_MAX_SHIFT)
    towards = gradient if found is None else found[0].solve(gradient)
    return np.asarray(-towards * unit), np.zeros(unit.size)


def _below_saddle(loss: Loss, here: Point) -> Point | None:
    """Return a lower point near one whose gradient is 0; None if it is a minimum.

    The direction is that of the most negative curvature. O(p^3).
    """
    H, unit = here.hessian.normed()
    try:
        Factor(H.plus(np.full(unit.size, _FLAT)))
    except np.linalg.LinAlgError:
        curvature, along = np.linalg.eigh(H.dense())
    else:
        return None
    if curvature[0] > -_FLAT:
        return None
    for halving in range(HALVINGS):
        size = 0.5**halving
        # To third order, only one of the two senses may descend.
        for step in (size * unit * along[:, 0], -size * unit * along[:, 0]):
            there = loss.at(here.x + step)
            if there.value - here.value <= FALL * size**2 * curvature[0]:
                return there
    return None


def likelihood_of(design: Design, link: Link, l2: float, n_threads: int) -> Likelihood:
    """Make the loss of a design."""
    if design.is_chunked:
        return ChunkedLikelihood(design, link, l2, n_threads)
    form = RowwiseLikelihood if design.is_rowwise else Likelihood
    return form(design, link, l2, n_threads)


def minimize(loss: Likelihood, max_iter: int, monitor: Monitor) -> Minimum:
    """Return the minimum, or the lowest point found.

    At most `max_iter` steps are made from each starting point; `n_iter` of the result
    counts the steps from all of them.
    """
    starts, done = _starts(loss, max_iter, monitor)
    found = []
    for start in starts:
        found.append(_descent(loss, start, max_iter, monitor, done))
        done = found[-1].n_iter
    lowest = min(found, key=attrgetter("point.value"))
    if not math.isfinite(lowest.point.value):  # a row has probability 0 at the start
        return _descent(loss, loss.start(), max_iter, monitor, done)
    return replace(lowest, n_iter=done)


def _starts(
    loss: Likelihood, max_iter: int, monitor: Monitor
) -> tuple[list[np.ndarray], int]:
    """Return starting points, and the number of steps that it took to find them."""
    design = loss.design
    several = design.total <= _FEW
    if k := design.scale.size:
        plain = minimize(_variant(loss, loss.link, scale=False), max_iter, monitor)
        far = _FAR * np.vstack([np.eye(k), -np.eye(k)]) if several else np.empty((0, k))
        # All parameters grow with the spread exp(z'zeta) at the mean of z, so that the
        # predictors of a mean row stay the same.
        spread = np.exp(far @ (design.centre / design.spread)[design.scale])
        starts = [
            np.append(design.enlarged(plain.point.x, factor), zeta)
            for factor, zeta in zip(spread, far, strict=True)
            if 1 / _LARGE < factor < _LARGE
        ]
        return [np.append(plain.point.x, np.zeros(k)), *starts], plain.n_iter
    if loss.link == "cauchit" and several:
        light = _descent(_variant(loss, "logit"), loss.start(), _COARSE, monitor, 0)
        steep = design.enlarged(light.point.x, _STEEPER)
        return [loss.start(), light.point.x, steep], light.n_iter
    if design.is_sparse or design.has_many:
        return [loss.start()], 0
    return [_start_from_some_rows(loss)], 0


def _start_from_some_rows(loss: Likelihood) -> np.ndarray:
    """Return the minimum for every 16th row, or for fewer, as a starting point.

    It is a few standard errors from the minimum for all rows, which saves two of six
    passes over them. Return the start without effects if rows are few, or if the
    thresholds for some rows could cross at others.
    """
    D, least = loss.design, max(_LEAST_ROWS, _ROWS_EACH * loss.design.n_parameters)
    step = _STEP
    if D.is_chunked:
        step = max(step, -(-D.n_samples * D.X.shape[1] // _HELD))
    may_cross = D.nominal.size or D.is_shifted or D.lower is not None
    if D.n_samples < step * least or may_cross or not loss.is_convex:
        return loss.start()
    every = D.every(step)
    if (every.mass() == 0).any():
        return loss.start()
    part = likelihood_of(every, loss.link, loss.l2, loss.n_threads)
    found = newton(part, part.start(), _COARSE, Monitor("start", _NEAR))
    return found.point.x if found.status is Status.CONVERGED else loss.start()


def _variant(loss: Likelihood, link: Link, scale: bool = True) -> Likelihood:
    """Return the loss with another link, or without scale effects."""
    design = loss.design if scale else replace(loss.design, scale=loss.design.scale[:0])
    return likelihood_of(design, link, loss.l2, loss.n_threads)


def _descent(
    loss: Likelihood, x: np.ndarray, max_iter: int, monitor: Monitor, done: int
) -> Minimum:
    """Descend from x, after `done` earlier steps.

    With many features the method is L-BFGS, and `violation` is the largest slope.
    """
    rowwise = RowwiseLikelihood | ChunkedLikelihood
    if not (loss.design.has_many and isinstance(loss, rowwise)):
        return newton(loss, x, max_iter, monitor, done)
    found = lbfgs.minimize(
        loss.value_and_gradient, x, tol=monitor.tol, max_iter=max_iter, monitor=monitor
    )
    point = Point(found.x, found.value, found.gradient, NONE)
    return Minimum(point, found.x, found.violation, found.status, done + found.n_iter)


_ROUNDING = 1e-14  # of predictors, relative to their terms, with room for sums
_MEETS = 1e-9  # largest distance of thresholds that meet, relative to the same
_LEFT = 0.1  # least share of the interval about a row's rank that a step leaves


class OrderedThresholds:
    """The constraints (1), one per row and pair of adjacent thresholds.

    Parameters
    ----------
    design : Design
    rows : (k, m) array
        Columns of nominal effects of the rows i, in their units.
    """

    def __init__(self, design: Design, rows: np.ndarray):
        self.design, self._rows = design, rows
        centre, spread = (of[design.nominal] for of in (design.centre, design.spread))
        self._N = (rows - centre) / spread
        self._between = np.diff(design.J.dense(), axis=0)
        inner = (design.weight > 0) & (design.first > 0) & (design.rank < design.T)
        every = slice(0, design.n_samples)
        self._own = design.columns(every, design.nominal)[inner]
        self._ends = design.first[inner] - 1, design.rank[inner]

    def minimize(self, loss: Likelihood, max_iter: int, monitor: Monitor) -> Minimum:
        """Minimise a convex loss under the constraints."""
        found = newton(loss, loss.start(), max_iter, monitor, step_of=self._step)
        return replace(found, point=loss.at(self._inside(found.point.x)))

    def meetings(self, x: np.ndarray) -> np.ndarray:
        """Count the rows i where a threshold meets the next one, (T - 1,)."""
        gaps, size = self._raw_gaps(x)
        return np.asarray(np.count_nonzero(gaps <= _MEETS * size, axis=0))

    def gaps(self, x: np.ndarray) -> np.ndarray:
        """Return the left side of (1), (k, T - 1)."""
        alpha, nu, _, _ = self.design.split(x)
        slopes = self._between @ nu
        return np.asarray(self._between @ alpha - self._N @ slopes.T)

    def normal(self, row: int, j: int) -> np.ndarray:
        """Return the gradient of gap (row, j) by the parameters, (p,)."""
        by_alpha, out = self._between[j], np.zeros(self.design.n_parameters)
        by_nu = -np.outer(by_alpha, self._N[row]).ravel()
        out[: by_alpha.size + by_nu.size] = np.append(by_alpha, by_nu)
        return out

    def _step(self, here: Point) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution of (2), shortened, and the constraint force g + H s."""
        H = here.hessian.dense()
        step = _Projection(self, here, H).solution() - here.x
        force = here.gradient + H @ step
        lost = -self._own_gaps(step) / self._own_gaps(here.x)  # gaps are linear in x
        return step * ((1 - _LEFT) / lost.max(initial=1 - _LEFT)), force

    def _own_gaps(self, x: np.ndarray) -> np.ndarray:
        """Return the distance of the two thresholds about each training row.

        Rows of the first and the last rank, which have only one, are left out.
        """
        alpha, nu, _, _ = self.design.split(x)
        theta, slopes = self.design.J @ alpha, self.design.J @ nu
        low, high = self._ends
        apart = theta[high] - theta[low]
        return np.asarray(
            apart - np.einsum("nm,nm->n", self._own, slopes[high] - slopes[low])
        )

    def _raw_gaps(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the gaps as predictions compute them, and the size of their terms."""
        D = self.design
        alpha, nu, _, _ = D.split(D.raw(x))
        theta, slopes = D.J @ alpha, D.J @ nu
        terms = np.abs(theta) + np.abs(self._rows) @ np.abs(slopes).T
        return np.diff(theta - self._rows @ slopes.T), float(terms.max(initial=0.0))

    def _inside(self, x: np.ndarray) -> np.ndarray:
        """Move the thresholds at x apart by the rounding error of predictions.

        Thresholds that meet at x could cross in predictions.
        """
        gaps, size = self._raw_gaps(x)
        lacking = _ROUNDING * size - float(gaps.min(initial=np.inf))
        if lacking <= 0:
            return x
        T, out = self.design.T, x.copy()
        apart = self.design.alpha_of(np.arange(T) - (T - 1) / 2)
        out[: apart.size] += lacking * apart
        return out


class _Projection:
    """Problem (2) as a projection onto the cone of (1), in the variables d."""

    def __init__(self, order: OrderedThresholds, here: Point, H: np.ndarray):
        self._order = order
        self._unit = 1 / np.sqrt(np.maximum(np.diagonal(H), 1e-200))
        L = factor(H * self._unit * self._unit[:, None])
        self._inverse = np.linalg.inv(L)
        self.c = L.T @ (here.x / self._unit)
        self.c -= self._inverse @ (self._unit * here.gradient)

    def worst(self, d: np.ndarray, excluded: Sequence[Row]) -> tuple[Row, float]:
        gaps = self._order.gaps(self._parameters(d))
        for known in excluded:
            gaps[known] = np.inf
        row, j = divmod(int(gaps.argmin()), gaps.shape[1])
        return (row, j), float(gaps[row, j])

    def normal(self, row: Row) -> np.ndarray:
        return np.asarray(self._inverse @ (self._unit * self._order.normal(*row)))

    def solution(self) -> np.ndarray:
        """Return x + s for the step s that solves (2), (p,)."""
        return self._parameters(float(np.linalg.norm(self.c)) * project(self))

    def _parameters(self, d: np.ndarray) -> np.ndarray:
        return np.asarray(self._unit * (self._inverse.T @ d))
