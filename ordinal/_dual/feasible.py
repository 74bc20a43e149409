"""Feasible points: rows of variables in their boxes, each row with a given sum."""

import numpy as np

from .program import Program


def snap_to_bounds(g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """G in its box, with what is at an end of it up to rounding at just that end.

    SMO would otherwise have to move each such variable to its bound, one at a time.
    """
    near = 1e-12 * (hi - lo)
    return np.where(g <= lo + near, lo, np.where(g >= hi - near, hi, g))


def restore_sums(
    g: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return a point of each row's box with the given sum, near g: a start for SMO.

    What lies at an end of its box stays there, if the others can make up the sum.
    """
    g = snap_to_bounds(g, lo, hi)
    excess = g.sum(axis=-1) - total
    inside = (lo < g) & (g < hi)
    room = np.where(inside, np.where(excess[..., None] > 0, g - lo, hi - g), 0.0)
    all_room = room.sum(axis=-1)
    enough = all_room > np.abs(excess)
    part = np.where(enough, excess / np.where(enough, all_room, 1), 0)
    restored: np.ndarray = np.clip(g - part[..., None] * room, lo, hi)
    whole = np.broadcast_to(total, excess.shape)
    poor = ~enough & (excess != 0)
    if poor.any():
        restored[poor] = project(g[poor], lo[poor], hi[poor], whole[poor])
    return restored


def project(
    g: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return the point of each row's box with the given sum that is nearest to that row
    of g.

    It is clip(g - t, lo, hi) for some t, found by bisection; what rounding leaves of
    the sum is spread over the room in the box.
    """
    total = np.asarray(total)[..., None]
    low = (g - hi).min(axis=-1, keepdims=True)
    high = (g - lo).max(axis=-1, keepdims=True)
    for _ in range(60):
        t = 0.5 * (low + high)
        above = np.clip(g - t, lo, hi).sum(axis=-1, keepdims=True) > total
        low, high = np.where(above, t, low), np.where(above, high, t)
    g = np.clip(g - t, lo, hi)
    excess = g.sum(axis=-1, keepdims=True) - total
    room = np.where(excess > 0, g - lo, hi - g)
    all_room = room.sum(axis=-1, keepdims=True)
    part = np.where(all_room > 0, excess / np.where(all_room > 0, all_room, 1), 0)
    return np.asarray(np.clip(g - part * room, lo, hi))


def near(g: np.ndarray, program: Program) -> np.ndarray:
    """Return a feasible point of (Q) near g: a start for SMO."""
    lo, hi = program.lo, program.hi
    g = snap_to_bounds(g, lo, hi)
    if program.price is not None:
        return g
    total = np.zeros(g.shape[:2])
    if program.coupled:
        mu = np.maximum(-np.cumsum(g.sum(axis=2), axis=1), 0)
        mu[:, -1] = 0
        wanted = np.diff(-mu, axis=1, prepend=0.0)
        if ((lo.sum(axis=2) < wanted) & (wanted < hi.sum(axis=2))).all():
            total = wanted
    return restore_sums(g, lo, hi, total)


def ahead(g: np.ndarray, f: np.ndarray, old: Program, new: Program) -> np.ndarray:
    """Return a start for the next point of a path from the last solution g, f = K g.

    (Q) along the ray through the solution of a problem is a parabola: to its top, or
    for each variable as far as its box grew.
    """
    curve = np.einsum("pn,pn->p", g.sum(axis=1), f)
    top = -new.phi(g) / np.where(curve > 0, curve, np.inf)
    before, after = old.hi - old.lo, new.hi - new.lo
    growth = np.where(before > 0, after / np.where(before > 0, before, 1), 1.0)
    return np.asarray(g * np.minimum(growth, np.maximum(top, 1.0)[:, None, None]))
