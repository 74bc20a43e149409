"""A Newton step on one face of a quadratic program with few equalities.

    min_d  1/2 d'Md + slope'd   s.t.  E'd = 0,  left <= at + d <= right

for variables at the point `at`, which meets both. One factorisation of M serves all
rounds of clamping: a variable that would leave its box is clamped to the box's end and
the bordered system solved again, until none leaves. An exact line search along d ends
the step, so the objective never rises.
"""

from collections.abc import Callable

import numpy as np

from .._numerics.cholesky import Cholesky

_RIDGE = 1e-10  # of the mean diagonal: duplicate rows make a free block singular
_CLAMP_ROUNDS = 12
_CHEAP = 512  # variables for which any step is worth its factorisation


def step_on_face(
    M: np.ndarray,
    slope: np.ndarray,
    at: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    E: np.ndarray,
    room: Callable[[np.ndarray], float] | None = None,
) -> np.ndarray | None:
    """The new point, or None if M is not positive definite or the step leads nowhere.

    Parameters
    ----------
    M : (m, m) array, overwritten
    slope, at, left, right : (m,) arrays
    E : (m, p) array
        Columns of 0 and 1 that share no row; none of them is 0.
    room : callable, optional
        How far along d the caller's own constraints allow to go.
    """
    M[np.diag_indices(at.size)] += _RIDGE * M.diagonal().mean()
    try:
        d, curvature, clamped = _clamped_minimiser(
            Cholesky(M), slope, left - at, right - at, E
        )
    except np.linalg.LinAlgError:
        return None

    descent = d @ slope
    if not descent < 0 or not curvature > 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        in_box = np.where(d > 0, right - at, left - at) / d
    in_box[(d == 0) | (clamped != 0)] = np.inf
    size = min(1.0, in_box.min(), -descent / curvature)
    if room is not None:
        size = min(size, room(d))
    if not size > 0:
        return None
    new = np.clip(at + size * d, left, right)
    if size == 1.0:  # at a bound means equal to the bound
        new = np.where(clamped < 0, left, np.where(clamped > 0, right, new))
    return new


def _clamped_minimiser(factor: Cholesky, slope, lower, upper, E):
    """d, d'Md, and which entries are clamped: -1 below, +1 above.

    With N = [E, unit columns of the clamped], the conditions M d + N mu = -slope and
    N'd = t have the solution d = -M^-1 (slope + N mu); every product with M^-1 goes
    through V = L^-1 [N, slope], to which a round appends its new columns.
    """
    n = slope.size
    most = 0.15 * n
    clamped = np.zeros(n, dtype=np.int8)
    order = np.empty(0, dtype=np.intp)
    V = factor.forward(np.column_stack([slope, E]))
    for _ in range(_CLAMP_ROUNDS):
        target = np.where(clamped[order] < 0, lower[order], upper[order])
        N, s = V[:, 1:], V[:, 0]
        t = np.concatenate([np.zeros(E.shape[1]), target])
        mu = np.linalg.solve(N.T @ N, -(N.T @ s) - t)
        d = -factor.backward((s + N @ mu)[:, None])[:, 0]
        d[order] = target
        free = clamped == 0
        E_free = E[free]  # a singular M loses some of the sums
        count = np.maximum(E_free.sum(axis=0), 1)
        d[free] -= E_free @ (d @ E / count)
        if not np.isfinite(d).all():
            raise np.linalg.LinAlgError("singular system")
        below, above = (d < lower) & free, (d > upper) & free
        new = np.flatnonzero(below | above)
        if new.size == 0:
            break
        if order.size + new.size > most:  # far from the active set
            if n > _CHEAP:
                raise np.linalg.LinAlgError("most variables leave their piece")
            # as active-set methods do: without those that cannot move at all, as far
            # as the first of the others goes
            new = new[np.where(below, lower, upper)[new] == 0]
            if new.size == 0:
                break
            below &= lower == 0
            above &= upper == 0
        clamped[below], clamped[above] = -1, 1
        order = np.concatenate([order, new])
        units = np.zeros((n, new.size))
        units[new, np.arange(new.size)] = 1.0
        V = np.concatenate([V, factor.forward(units)], axis=1)
    else:
        clamped[new] = 0
    return d, -(d @ slope) - t @ mu, clamped
