"""Cumulative models with nominal effects whose thresholds stay in order at given rows.

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

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._watch.monitor import Monitor
from .design import Design
from .likelihood import Likelihood, Point
from .newton import Minimum, minimize
from .rowwise import factor
from .separation import Row, project

_ROUNDING = 1e-14  # of predictors, relative to their terms, with room for sums
_MEETS = 1e-9  # largest distance of thresholds that meet, relative to the same
_LEFT = 0.1  # least share of the interval about a row's rank that a step leaves


class Order:
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
        self._between = np.diff(design.J, axis=0)
        inner = (design.weight > 0) & (design.rank > 0) & (design.rank < design.T)
        every = slice(0, design.n_samples)
        self._own = design.columns(every, design.nominal)[inner]
        self._below = design.rank[inner] - 1

    def minimize(self, loss: Likelihood, max_iter: int, monitor: Monitor) -> Minimum:
        """Minimise a convex loss under the constraints."""
        found = minimize(loss, loss.start(), max_iter, monitor, step_of=self._step)
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
        apart, slopes = self._between @ alpha, (self._between @ nu)[self._below]
        return np.asarray(apart[self._below] - np.einsum("nm,nm->n", self._own, slopes))

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

    def __init__(self, order: Order, here: Point, H: np.ndarray):
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
