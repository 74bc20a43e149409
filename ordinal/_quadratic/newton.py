"""Newton steps on the free variables of a quadratic program with few equalities.

    min_d  1/2 d'Md + slope'd   s.t.  E'd = 0,  left <= at + d <= right

for variables at the point `at`, which meets both. One factorisation of M serves all
rounds of clamping: a variable that would leave its box is clamped to the box's end and
the bordered system solved again, until none leaves. An exact line search along d ends
the step, so the objective never rises.
"""

from collections.abc import Callable

import numpy as np

from .._numerics.cholesky import Cholesky
from .._numerics.rows import inner
from .._watch.cancellation import ended_by, never
from .program import Points

_RIDGE = 1e-10  # of the mean diagonal, because duplicate rows make M singular
_CLAMP_ROUNDS = 12
_CHEAP = 512  # number of variables up to which a step is always worth its cost


def newton_step(points: Points, k: int, n_threads: int = 1) -> bool:
    """Move problem k to the minimiser over the variables that are free or want to be.

    Each such variable may move within one linear piece of its phi. Tied groups move
    together, and the others separately: while mu stays positive, the step stays within
    a face of (Q). The function updates the point and its f, and returns whether they
    moved.
    """
    gram, program = points.gram, points.program
    g, z, (T, n) = points.g[k], points.z[k], points.g[k].shape
    J, I, slope, left, right = _pieces(points, k)
    m = I.size
    # More variables than rows make M singular, and rows that do not fit into the cache
    # would be computed again at each use.
    if not 2 <= m <= max(n, _CHEAP) or np.unique(I).size > gram.capacity:
        return False
    at, group, M = g[J, I], J, gram.block(I, n_threads)
    if program.price is not None:  # every z is free
        M, of_z = _bordered(M, program.curvature), np.full(T, np.inf)
        slope = np.concatenate([slope, z * program.curvature])
        at, group = np.concatenate([at, z]), np.concatenate([J, np.arange(T)])
        left, right = np.concatenate([left, -of_z]), np.concatenate([right, of_z])
    if program.coupled:
        # Tied thresholds move as one: only the sum over all their groups is kept.
        group = points.tied(k)[0][J]
    # The columns of E keep the sum of each group as it is.
    E = (group[:, None] == np.unique(group)) * 1.0

    mu = points.mu[k, 1:-1]

    def fall(d: np.ndarray) -> np.ndarray:
        """Return the decrease of each mu along d."""
        return np.cumsum(np.bincount(J, d[:m], minlength=T))[:-1]

    def room(d: np.ndarray) -> float:
        """Return the step length at which the first mu is 0."""
        falls = (fall(d) > 0) & (mu > 0)
        return float((mu[falls] / fall(d)[falls]).min(initial=np.inf))

    new = clamped_step(
        M, slope, at, left, right, E, room if program.coupled else None, n_threads
    )
    if new is None:
        return False
    g[J, I] = new[:m]
    if program.price is not None:
        z[:] = new[m:]
    if program.coupled:
        mu[:] = np.where(mu > 0, np.maximum(mu - fall(new - at), 0), 0)
    change = np.zeros(n)
    # A row may have variables in several groups: `change[I] += ...` would take one.
    np.add.at(change, I, (new - at)[:m])
    with ended_by(never):  # f must be updated whenever g is
        gram.add_rows(np.arange(n), change, points.f[k])
    return True


def _pieces(points: Points, k: int) -> tuple[np.ndarray, ...]:
    """Return the variables of a step, their derivatives, and the ends of their pieces.

    The variables are those that are free or want to be, given by group and row. The
    linear piece of phi on which each of them moves has two ends.
    """
    program, g, f = points.program, points.g[k], points.f[k]
    lo, hi, pn, pp = program.lo[k], program.hi[k], program.pn[k], program.pp[k]
    R, L = points.one_sided(k)
    points.set_extremes(k, R, L)
    with np.errstate(invalid="ignore"):  # a group may have nothing to move
        mid = 0.5 * (points.low[k] + points.up[k])[:, None]
    # A variable at 0 of a phi without a kink is inside its piece like any other.
    kinked = pn != pp
    inside = (g > lo) & (g < hi) & ((g != 0) | ~kinked)
    # Variables at an end of their piece that would gain by leaving it at the present b.
    grows, shrinks = ~inside & (mid > R), ~inside & (mid < L)
    J, I = np.nonzero(inside | grows | shrinks)
    at, lo, hi, pn, pp, kinked, inside, grows, shrinks = (
        a[J, I] for a in (g, lo, hi, pn, pp, kinked, inside, grows, shrinks)
    )
    up = ((inside | grows) & (at >= 0)) | (shrinks & (at > 0))
    left = np.where(grows, at, np.where(kinked & up, np.maximum(lo, 0), lo))
    right = np.where(shrinks, at, np.where(kinked & ~up, np.minimum(hi, 0), hi))
    return J, I, f[I] + np.where(up, pp, pn), left, right


def _bordered(M: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return M bordered by variables that have only a curvature of their own."""
    m, T = len(M), diagonal.size
    out = np.zeros((m + T, m + T))
    out[:m, :m] = M
    out[np.arange(m, m + T), np.arange(m, m + T)] = diagonal
    return out


def clamped_step(
    M: np.ndarray,
    slope: np.ndarray,
    at: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    E: np.ndarray,
    room: Callable[[np.ndarray], float] | None = None,
    n_threads: int = 1,
) -> np.ndarray | None:
    """Return the new point, or None if M is singular or the step does not descend.

    Parameters
    ----------
    M : (m, m) array, overwritten
    slope, at, left, right : (m,) arrays
    E : (m, p) array
        Columns of 0 and 1 that share no row; none of them is 0.
    room : callable, optional
        Largest step length along d that the constraints of the caller allow.
    """
    M[np.diag_indices(at.size)] += _RIDGE * M.diagonal().mean()
    try:
        d, curvature, clamped = _clamped_minimiser(
            Cholesky(M, n_threads), slope, left - at, right - at, E
        )
    except np.linalg.LinAlgError:
        return None

    # Clamping and rounding may have turned the direction; an ascent is rejected.
    descent = d @ slope
    if not descent < 0 or not curvature > 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        in_box = np.where(d > 0, right - at, left - at) / d
    # Clamped variables reach their bound at length 1 exactly.
    in_box[(d == 0) | (clamped != 0)] = np.inf
    size = min(1.0, in_box.min(), -descent / curvature)
    if room is not None:
        size = min(size, room(d))
    if not size > 0:
        return None
    # Rounding may pass a bound by a unit in the last place.
    new: np.ndarray = np.clip(at + size * d, left, right)
    if size == 1.0:  # at a bound means equal to the bound
        new = np.where(clamped < 0, left, np.where(clamped > 0, right, new))
    return new


def _clamped_minimiser(
    factor: Cholesky,
    slope: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    E: np.ndarray,
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return d, d'Md, and the clamped entries: -1 at the lower end, +1 at the upper.

    With N = [E, unit columns of the clamped], the conditions M d + N mu = -slope and
    N'd = t have the solution d = -M^-1 (slope + N mu); every product with M^-1 goes
    through V = L^-1 [N, slope], to which a round appends its new columns.
    """
    n = slope.size
    # Every clamped variable costs a solution with the factor: beyond this share SMO
    # finds the active set faster.
    most = 0.15 * n
    clamped = np.zeros(n, dtype=np.int8)
    order = np.empty(0, dtype=np.intp)
    V = factor.forward(np.column_stack([slope, E]))
    for _ in range(_CLAMP_ROUNDS):
        target = np.where(clamped[order] < 0, lower[order], upper[order])
        N, s = V[:, 1:], V[:, 0]
        t = np.concatenate([np.zeros(E.shape[1]), target])
        mu = np.linalg.solve(inner(N, N), -(N.T @ s) - t)
        d = -factor.backward((s + N @ mu)[:, None])[:, 0]
        d[order] = target
        free = clamped == 0
        # Rounding with a nearly singular M changes the sums: they are restored.
        E_free = E[free]
        count = np.maximum(E_free.sum(axis=0), 1)
        d[free] -= E_free @ (d @ E / count)
        # N'N is singular where clamped columns of a group span its sum.
        if not np.isfinite(d).all():
            raise np.linalg.LinAlgError("singular system")
        below, above = (d < lower) & free, (d > upper) & free
        new = np.flatnonzero(below | above)
        if new.size == 0:
            break
        if order.size + new.size > most:  # far from the active set
            if n > _CHEAP:
                raise np.linalg.LinAlgError("most variables leave their piece")
            # Clamp only variables that cannot move at all, and end the step where the
            # first of the others meets its bound, as active-set methods do.
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
