"""Limit of a fit whose ranks are separated, along its directions of recession.

With A of `separation`, the directions along which no probability falls are the cone

    R = {d: A d >= 0}                                                                (1)

The rows of A that some direction of R moves are those that its interior moves. Along
them the predictors of the likelihood go to infinity. These ends of rows drop out of the
likelihood: a row without any has probability 1, and one of an inner rank may keep the
other end. The supremum of the likelihood is the maximum of the likelihood of the
remaining ends (Albert, Anderson, Biometrika 71:1-10, 1984, for the logistic model). It
is constant along the linear span of R, and an ordinary likelihood orthogonally to it.

A linear function v of the parameters has an estimate if it is orthogonal to the span.
Otherwise it is infinite, and of known sign unless there are directions of R along which
it rises and others along which it falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .fitting import Loss, newton
from .likelihood import Bordered, Factor, Point
from .separation import DenseCone, certificate_of, project

_MOVED = 1e-7  # least move of an end that drops out, relative to the largest one
_IN_SPAN = 1e-8  # largest part of a vector in the span that counts as none, relative
_MOST = 2**24  # most entries of A; the singular values of larger ones take too long
_LARGEST = 50  # most dimensions of R, in which signs are sought by a program each
_TOL = 1e-7  # of the fit in the limit, in standard errors
_MAX_ITER = 200
_FLAT = 1e-10  # least eigenvalue of an information, relative to its diagonal


@dataclass(frozen=True, slots=True, eq=False)
class Recession:
    """The cone (1).

    Attributes
    ----------
    interior : (p,) array
        A direction that moves every row of A that some direction moves.
    span, rest : (p, k), (p, p - k) arrays
        Orthonormal bases of the span of R, and of what is orthogonal to it.
    moved : (m,) bool array
        Whether each row of A is moved.
    cone : (n, k) array
        The moved rows of A by coordinates of the span.
    """

    interior: np.ndarray
    span: np.ndarray
    rest: np.ndarray
    moved: np.ndarray
    cone: np.ndarray

    @property
    def is_complete(self) -> bool:
        """Return whether every end drops out, so that nothing is left to estimate."""
        return bool(self.moved.all())

    def signs(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return whether v'd is positive, and negative, for some d of R, (n,) each.

        `vectors` are the rows v, (n, p). A vector with an estimate has neither.
        """
        inside = vectors @ self.span
        size = np.linalg.norm(vectors, axis=1)
        free = np.linalg.norm(inside, axis=1) > _IN_SPAN * size
        rises, falls = np.zeros((2, len(vectors)), dtype=bool)
        if self.span.shape[1] == 1:
            along = inside[:, 0] * float((self.span.T @ self.interior)[0])
            return free & (along > 0), free & (along < 0)
        for i in np.flatnonzero(free):
            # The projection of v onto R is 0 if and only if no v'd is positive.
            unit = inside[i] / np.linalg.norm(inside[i])
            for out, c in ((rises, unit), (falls, -unit)):
                cone = DenseCone(self.cone)
                cone.c = c
                out[i] = np.linalg.norm(project(cone)) > _MOVED
        return rises, falls


def recession_of(A: np.ndarray, guess: np.ndarray) -> Recession | None:
    """Return the cone of the rows of A, (m, p); None if there are no directions.

    None also if A or R is too large, or if rounding hides which rows are moved. The
    first direction that is tried is `guess`.
    """
    if A.size > _MOST or not len(A):
        return None
    left, interior = np.ones(len(A), dtype=bool), np.zeros(A.shape[1])
    while left.any():
        found = certificate_of(A[left], guess)
        if found is None:
            break
        found = found / np.abs(found).max()
        moved, before = A @ found, A @ interior
        own = left & (moved > _MOVED * np.abs(moved[left]).max())
        if not own.any():
            return None
        # So much of the former direction that no earlier row moves back.
        back = np.max(-moved[~left] / before[~left], initial=0.0)
        interior = found + (1 + 2 * back) * interior
        interior = interior / np.abs(interior).max()
        left &= ~own
        guess = np.zeros_like(guess)
    if left.all():
        return None
    p = A.shape[1]
    span, rest = np.eye(p), np.zeros((p, 0))
    if left.any():
        _, size, V = np.linalg.svd(A[left], full_matrices=True)
        rank = int(np.count_nonzero(size > _IN_SPAN * size[0]))
        span, rest = V[rank:].T, V[:rank].T
    interior = span @ (span.T @ interior)
    if span.shape[1] > _LARGEST:
        return None
    if not (A[~left] @ interior > 0).all():
        return None
    return Recession(interior, span, rest, ~left, A[~left] @ span)


class Within:
    """A loss at x = B u, as a function of u.

    Parameters
    ----------
    loss : Loss
    basis : (p, k) array
        Orthonormal columns B.
    """

    def __init__(self, loss: Loss, basis: np.ndarray):
        self.loss, self.basis = loss, basis
        self.design, self.is_convex = loss.design, loss.is_convex

    def at(self, x: np.ndarray) -> Point:
        point, B = self.loss.at(self.basis @ x), self.basis
        if not np.isfinite(point.value):
            return replace(point, x=x, gradient=np.zeros(x.size))
        hessian = Bordered.from_dense(B.T @ point.hessian.dense() @ B)
        return Point(x, point.value, B.T @ point.gradient, hessian)

    def through(self, j: int) -> Within:
        """Return the loss with parameter j as its first one, which has an estimate."""
        unit = np.zeros(len(self.basis))
        unit[j] = 1.0
        others = self.basis - np.outer(unit, self.basis[j])
        # One direction of the basis is that of j, and vanishes.
        U, _, _ = np.linalg.svd(others, full_matrices=False)
        return Within(self.loss, np.column_stack([unit, U[:, :-1]]))


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Limit of a fit in the units of its loss.

    Attributes
    ----------
    recession : Recession
    loss : Within
        Loss of the remaining ends, orthogonally to the span of the recession.
    u : array
        Its minimum.
    value : float
        Infimum of the loss.
    """

    recession: Recession
    loss: Within
    u: np.ndarray
    value: float

    @property
    def x(self) -> np.ndarray:
        """Return the estimates, whose part in the span is 0, (p,)."""
        return np.asarray(self.loss.basis @ self.u)

    def inverse_information(self) -> np.ndarray:
        """Return a generalised inverse of the information, 0 in the span, (p, p)."""
        B = self.loss.basis
        if not self.u.size:
            return np.zeros((len(B), len(B)))
        inner = Factor(self.loss.at(self.u).hessian).inverse()
        return np.asarray(B @ inner @ B.T) / self.loss.design.total


def limit_of(
    loss: Loss, n_more: int, recession: Recession, x: np.ndarray, monitor: Monitor
) -> Limit | None:
    """Return the limit of a fit, or None if it does not converge.

    Parameters
    ----------
    loss : Loss
        Loss of the remaining ends.
    n_more : int
        Number of parameters, after those of the recession, that no direction changes.
    recession : Recession
    x : (p,) array
        End of the fit.
    """
    basis, p = recession.rest, x.size
    more = np.eye(p)[:, p - n_more :] if basis.size else np.zeros((p, 0))
    within = Within(loss, np.hstack([np.pad(basis, ((0, n_more), (0, 0))), more]))
    u = within.basis.T @ x
    if u.size == 0:
        return Limit(recession, within, u, float(loss.at(np.zeros(p)).value))
    try:
        with monitor.limited():
            found = newton(within, u, _MAX_ITER, Monitor("limit", _TOL))
    except OutOfTime:
        return None
    if found.status is not Status.CONVERGED:
        return None
    H = found.point.hessian.dense()
    unit = 1 / np.sqrt(np.maximum(np.diagonal(H), 1e-200))
    if np.linalg.eigvalsh(H * unit * unit[:, None])[0] < _FLAT:
        return None
    return Limit(recession, within, found.point.x, found.point.value)
