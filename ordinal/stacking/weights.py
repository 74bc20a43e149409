"""Weights of a linear pool on the simplex, of least score on given probabilities.

The ranked probability score is a quadratic program,

    min_w  1/2 w'Gw - c'w    s.t.  w >= 0,  sum w = 1,

with the mean products G of the members' cumulative probabilities and c of theirs with
the events; an active set solves it exactly. The log loss, -mean log sum_m w_m p_m, is
convex; Newton's steps are programs of the same form. Members that agree leave w open:
a ridge takes the w of least squares.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import numpy as np

_RIDGE = 1e-10  # relative to the score, which rises by less than this
_LEAST = 1e-6  # smaller weights are those of the ridge, or of rounding
_TOL = 1e-9  # on the duality gap of the log loss
_MOST = 200  # Newton's steps, some ten of which suffice


class Pool(NamedTuple):
    """Weights, (p,), the score of the pool, and a bound on its distance to the least.

    `n_iter` counts changes of the active set or Newton's steps.
    """

    weights: np.ndarray
    score: float
    gap: float
    n_iter: int


def pool_by_rps(P: np.ndarray, rank: np.ndarray, weight: np.ndarray) -> Pool:
    """Return the weights of least mean RPS.

    Parameters
    ----------
    P : (p, n, r) array
        Probabilities of the ranks by p members.
    rank, weight : (n,) arrays
    """
    share = weight / weight.sum()
    event = (rank[:, None] <= np.arange(P.shape[2] - 1)).astype(float)
    # Differences from the first member's keep digits where all members are good.
    base = P[0, :, :-1].cumsum(axis=1) - event
    A = P[:, :, :-1].cumsum(axis=2) - P[0, :, :-1].cumsum(axis=1)
    G = np.einsum("mnk,n,lnk->ml", A, share, A)
    c = -np.einsum("mnk,n,nk->m", A, share, base)
    constant = float(np.einsum("n,nk->", share, base**2))
    # Members that agree up to the tolerance of their fits count as equal.
    w, n_iter = least_on_simplex(G, c, constant)
    w = _without_least(w)
    slope = G @ w - c
    # Twice the gap of the program, because the score is constant + w'Gw - 2 c'w.
    gap = 2 * float(slope @ w - slope.min())
    return Pool(w, constant + float(w @ G @ w - 2 * c @ w), max(gap, 0.0), n_iter)


def pool_by_log_loss(P: np.ndarray, rank: np.ndarray, weight: np.ndarray) -> Pool:
    """Return the weights of least mean log loss; the arguments are as above.

    Rows to whose rank no member gives any probability have an infinite loss whatever
    the weights, and do not count.
    """
    L = P[:, np.arange(rank.size), rank]
    possible = (L.max(axis=0) > 0) & (weight > 0)
    L, share = L[:, possible], weight[possible] / weight.sum()
    w = np.full(len(L), 1 / len(L))
    for n_iter in count(1):
        ratio = L / (w @ L)
        gradient = -ratio @ share
        gap = float(gradient @ w - gradient.min())
        if gap <= _TOL or n_iter == _MOST:
            break
        H = (ratio * share) @ ratio.T
        step = least_on_simplex(H, H @ w - gradient)[0] - w
        t, slope = 1.0, float(gradient @ step)
        now = _loss(w, L, share)
        while t > 1e-12 and _loss(w + t * step, L, share) > now + 1e-4 * t * slope:
            t /= 2
        w = np.maximum(w + t * step, 0.0)
        w /= w.sum()
    w = _without_least(w)
    found = np.inf if not possible[weight > 0].all() else _loss(w, L, share)
    return Pool(w, float(found), gap, n_iter)


def _without_least(w: np.ndarray) -> np.ndarray:
    w = np.where(w < _LEAST, 0.0, w)
    return np.asarray(w / w.sum())


def _loss(w: np.ndarray, L: np.ndarray, share: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(-np.log(np.maximum(w @ L, 0.0)) @ share)


def least_on_simplex(
    G: np.ndarray, c: np.ndarray, level: float = 0.0
) -> tuple[np.ndarray, int]:
    """Return the minimiser of w'Gw / 2 - c'w on the simplex, and steps of the set.

    G is positive semi-definite; of several minimisers that of least squares is taken.
    Differences of `_RIDGE` times `level`, or the mean of G's diagonal, do not count.
    """
    p = len(c)
    G = G + _RIDGE * (max(np.trace(G) / p, level) or 1.0) * np.eye(p)
    first = int(np.argmin(0.5 * G.diagonal() - c))
    w, free = np.zeros(p), np.zeros(p, dtype=bool)
    w[first], free[first] = 1.0, True
    for n_iter in count(1):
        goal = _on_face(G, c, free)
        if (goal[free] <= 0).any():
            # To the first weight that reaches zero on the way, which leaves the set.
            falling = free & (goal <= 0)
            ratio = np.full(p, np.inf)
            ratio[falling] = w[falling] / (w[falling] - goal[falling])
            leaves = int(ratio.argmin())
            w = np.maximum(w + ratio[leaves] * (goal - w), 0.0)
            w[leaves], free[leaves] = 0.0, False
            continue
        w = goal
        slope = G @ w - c
        enters = int(np.where(free, np.inf, slope).argmin())
        rounding = 1e-14 * (np.abs(G @ w).max() + np.abs(c).max())
        best = free.all() or slope[enters] >= slope[free].min() - rounding
        if best or n_iter > 50 * (p + 1):
            break
        free[enters] = True
    return w / w.sum(), n_iter


def _on_face(G: np.ndarray, c: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the minimiser among the w of sum 1 that are 0 but for the free entries."""
    K = G[np.ix_(free, free)]
    alone, along = np.linalg.solve(K, np.stack([c[free], np.ones(len(K))], axis=1)).T
    goal = np.zeros(len(c))
    goal[free] = alone + along * (1 - alone.sum()) / along.sum()
    return goal
