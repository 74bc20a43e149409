"""The end of a fit in double: what was found in single precision is certified for the
features that predictions use, and refined where the gap asks for it.

Features in double need not be made: with values V = k(X, B) and a small matrix M,

    z = V M,    f = V (M w),    Z't = M' (V't),    Z'DZ = M' (V'DV) M,

so that a pass costs kernel values and a product with a vector, n m (d + 1), rather than
n m^2 for the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._input.types import Matrix
from .._numerics.rows import take
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..kernels.features import Features
from .losses import Losses
from .proximal import Solution, solve
from .sums import BasisPoint, LocalSums, Sums


class Values:
    """`sums.Features` of rows whose V are made whenever they are asked for."""

    def __init__(self, features: Features, X: Matrix):
        self._features, self._X = features, X
        self.n, self.m, self.costly = len(X), features.m, True

    def block(self, rows: slice) -> np.ndarray:
        return self._features.values(take(self._X, rows))

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        return self._features.values(take(self._X, rows.start + places), out)


class Mixed:
    """`Sums` for z = V M from those for V."""

    def __init__(self, sums: Sums, M: np.ndarray):
        self._sums, self._M = sums, M
        self.n, self.m = sums.n, M.shape[1]

    @property
    def losses(self) -> Losses:
        return self._sums.losses

    def at(self, w: np.ndarray, b: np.ndarray, sigma: float) -> BasisPoint:
        point = self._sums.at(self._M @ w, b, sigma)
        return replace(point, back=self._M.T @ point.back)

    def slopes(self, lengths: np.ndarray) -> np.ndarray:
        return self._sums.slopes(lengths)

    def scaled_back(self, keep: np.ndarray) -> np.ndarray:
        return np.asarray(self._M.T @ self._sums.scaled_back(keep))

    def curvature(self, share: float) -> np.ndarray:
        A, M, m = self._sums.curvature(share), self._M, self.m
        # Only the lower triangle is meant (see `Sums.curvature`); the product needs
        # both.
        lower = np.tril(A[:m, :m])
        A[:m, :m] = M.T @ (lower + np.tril(lower, -1).T) @ M
        A[m:, :m] = A[m:, :m] @ M
        return A

    def take(self) -> None:
        self._sums.take()

    def loss(self, b: np.ndarray) -> float:
        return self._sums.loss(b)

    def loss_slopes(self, grid: np.ndarray) -> np.ndarray:
        return self._sums.loss_slopes(grid)


def is_to_finish(found: Solution) -> bool:
    """Return whether single precision has reached its limit."""
    return found.status in (Status.CONVERGED, Status.STALLED)


def look_ahead(
    found: Sequence[Solution], double: Sequence[Any], features: Features
) -> None:
    """Take the first step of `finished` for several problems of the same rows in one
    pass over these.
    """
    starts, M = [of.here for of in found], features.mixing
    LocalSums.look_ahead(double, [(M @ s.w, s.b, s.sigma) for s in starts])


def finished(
    found: Solution,
    double: Callable[[], Sums],
    features: Features,
    tol: float,
    monitor: Monitor,
    max_iter: int,
) -> Solution:
    """Certify a solution of single precision, and refine it in double precision.

    Parameters
    ----------
    found : Solution
        As `solve` returned it.
    double : callable
        Makes the sums for `Values` of the same rows, which remember the same g.
    tol, monitor, max_iter : as those of `solve`
        max_iter counts the steps before this one, too.
    """
    if not is_to_finish(found):
        return found
    precise = Mixed(double(), features.mixing)
    later, left = monitor.after(found.n_iter), max_iter - found.n_iter
    # The best point may be one before the last minimum.
    known = None if found.w is found.here.w else (found.w, found.b)
    new = solve(precise, found.here, tol, later, left, known=known)
    return replace(new, n_iter=found.n_iter + new.n_iter)
