"""Quadratic programs of parallel hyperplanes: one direction, several thresholds.

    min_g  1/2 beta'K beta + sum_ij slope_ij g_ij [+ 1/2 sum_j z_j^2 / price_j]      (Q)
    s.t.   lo_ij <= g_ij <= hi_ij,  and for each threshold j

      sum_i g_ij = 0                            separate thresholds
      sum_i g_ij = mu_j - mu_{j+1},  mu >= 0    coupled thresholds: b_1 <= ... <= b_T
      sum_i g_ij = -z_j                         priced: price_j b_j^2 / 2 in the primal

with mu_1 = mu_{T+1} = 0, beta_i = sum_j g_ij and f = K beta. The derivative by g_ij is
d_ij = f_i + slope_ij, so every threshold is a C-SVC that shares f with the others:

    up_j  = min d_ij over the g_ij that can grow, and z_j / price_j
    low_j = max d_ij over the g_ij that can shrink, and z_j / price_j

Coupled, what shrinks may also be of a lower threshold, which raises mu between the two,
or of a higher one as long as the mu between them are positive: low_j is then the
maximum over all thresholds up to the last that positive mu tie to j, and up_j the
minimum from the first one on, as in (17) and (18) of Chu and Keerthi. A feasible g is
optimal iff violation = max_j (low_j - up_j) <= 0, and b_j lies in [low_j, up_j]. (KKT)

`solve` works by SMO in blocks (`_solvers/_thresholds.pyx`), Newton steps on all free
variables or pivots of an active set (`_solvers/_active_set.pyx`) where SMO turns slow,
and judges f afresh from the kernel in double.
"""

from dataclasses import dataclass

import numpy as np

from .._model.convergence import Status
from .._model.monitor import Monitor
from .._solvers._thresholds import Task
from .driver import (
    AIM,
    LEAST_ROWS,
    PATIENCE,
    Face,
    block_size,
    curves_down,
    run,
    verdict,
)
from .gram import Gram
from .newton import step_on_face

_DUST = 1e-15  # of the sum of all |g|: a mu that is 0 but for rounding
_MODEST = 512  # variables of a Newton step that may be more than there are rows


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What defines (Q) beside K. Arrays are (T, n)."""

    lo: np.ndarray
    hi: np.ndarray
    slope: np.ndarray
    coupled: bool = False
    price: np.ndarray | None = None  # (T,)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What `solve` reached."""

    g: np.ndarray  # (T, n)
    z: np.ndarray  # (T,), zeros unless priced
    mu: np.ndarray  # (T + 1,), zeros unless coupled
    f: np.ndarray  # (n,) from the kernel in double
    low: np.ndarray  # (T,)
    up: np.ndarray  # (T,)
    violation: float
    n_iter: int  # pair steps, Newton steps and pivots
    status: Status


class _Point:
    """A dual point in one piece of memory, [g, z, mu], and what follows from it."""

    def __init__(self, gram: Gram, terms: Terms, g: np.ndarray):
        T, n = terms.lo.shape
        self.gram, self.terms = gram, terms
        self.whole = np.zeros(T * n + 2 * T + 1)
        self.entries, self.mu = self.whole[: T * n + T], self.whole[T * n + T :]
        self.g, self.z = self.entries[: T * n].reshape(T, n), self.entries[T * n :]
        self.g[:] = g
        sums = self.g.sum(axis=1)
        self.curvature = np.zeros(T)  # of (Q) by z
        if terms.price is not None:
            self.z[:], self.curvature[:] = -sums, 1 / terms.price
        if terms.coupled:
            mu = -np.cumsum(sums)[:-1]
            dust = _DUST * np.abs(self.g).sum()
            self.mu[1:-1] = np.where(mu > dust, mu, 0)
        self.f = np.zeros(n)
        self.low, self.up = np.zeros(T), np.zeros(T)
        self._score()

    def _score(self) -> None:
        """f from the kernel itself."""
        beta = self.g.sum(axis=0)
        self.f[:] = self.gram.product(beta[None])[0] if beta.any() else 0.0

    def judge(self) -> np.ndarray:
        """f from the kernel itself, low and up from it; the violation, (1,)."""
        self._score()
        self._slopes()
        return np.array([(self.low - self.up).max()])

    def _slopes(self):
        """d, where it counts for growing and for shrinking; sets low and up."""
        d = self.f + self.terms.slope
        R = np.where(self.g < self.terms.hi, d, np.inf)
        L = np.where(self.g > self.terms.lo, d, -np.inf)
        self.low[:], self.up[:] = L.max(axis=1), R.min(axis=1)
        if self.terms.price is not None:
            b = self.z * self.curvature
            self.low[:] = np.maximum(self.low, b)
            self.up[:] = np.minimum(self.up, b)
        if self.terms.coupled:
            first, last = self.groups()
            self.low[:] = np.maximum.accumulate(self.low)[last]
            self.up[:] = np.minimum.accumulate(self.up[::-1])[::-1][first]
        return d, R, L

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last threshold that positive mu tie to each, (T,)."""
        T = self.low.size
        j, tied = np.arange(T), self.mu[1:-1] > 0
        first = np.maximum.accumulate(np.where(np.r_[False, tied], 0, j))
        last = np.minimum.accumulate(np.where(np.r_[tied, False], T - 1, j)[::-1])[::-1]
        return first, last

    def newton_step(self) -> bool:
        """Move to the minimiser of (Q) over the variables that are free or want to be.

        Tied thresholds move as one and the others apart, so that as far as mu stays
        positive the step is one within a face of (Q). Whether anything moved.
        """
        gram, terms, (T, n) = self.gram, self.terms, self.g.shape
        d, R, L = self._slopes()
        with np.errstate(invalid="ignore"):  # a threshold may have nothing to move
            mid = 0.5 * (self.low + self.up)[:, None]
        inside = (self.g > terms.lo) & (self.g < terms.hi)
        grows, shrinks = ~inside & (R < mid), ~inside & (L > mid)
        J, I = np.nonzero(inside | grows | shrinks)
        m, n_priced = I.size, 0 if terms.price is None else T
        curvature = self.curvature[:n_priced]
        if not 2 <= m <= max(n, _MODEST) or np.unique(I).size > gram.capacity:
            return False
        at = self.g[J, I]
        left = np.where(grows[J, I], at, terms.lo[J, I])
        right = np.where(shrinks[J, I], at, terms.hi[J, I])
        M = np.zeros((m + n_priced,) * 2)
        M[:m, :m] = gram.block(I)
        M[np.arange(m, m + n_priced), np.arange(m, m + n_priced)] = curvature

        group = self.groups()[0] if terms.coupled else np.arange(T)
        of = np.concatenate([group[J], np.arange(n_priced)])
        present, column = np.unique(of, return_inverse=True)
        E = np.zeros((m + n_priced, present.size))
        E[np.arange(of.size), column] = 1.0
        infinite = np.full(n_priced, np.inf)
        z = self.z[:n_priced]

        def sums(d):
            return np.bincount(J, d[:m], minlength=T)

        def room(d):
            """How far until a mu is 0."""
            fall, mu = np.cumsum(sums(d))[:-1], self.mu[1:-1]
            falls = (fall > 0) & (mu > 0)
            return float((mu[falls] / fall[falls]).min(initial=np.inf))

        new = step_on_face(
            M,
            np.concatenate([d[J, I], z * curvature]),
            np.concatenate([at, z]),
            np.concatenate([left, -infinite]),
            np.concatenate([right, infinite]),
            E,
            room if terms.coupled else None,
        )
        if new is None:
            return False
        self.g[J, I] = new[:m]
        self.z[:n_priced] = new[m:]
        if terms.coupled:
            fall = np.cumsum(sums(new[:m] - at))[:-1]
            tied = self.mu[1:-1] > 0
            self.mu[1:-1] = np.where(tied, np.maximum(self.mu[1:-1] - fall, 0), 0)
        change = np.zeros(n)
        np.add.at(change, I, new[:m] - at)
        gram.add_rows(np.arange(n), change, self.f)
        return True


def least_rows(T: int) -> int:
    """Rows of K that must be held: two entries a side of every threshold may be in the
    block, lest it miss the worst pair."""
    return max(LEAST_ROWS, 4 * T)


def _block_size(gram: Gram, T: int) -> int:
    n = len(gram.diagonal)
    # where memory is short, the block's own part of K should not be large
    rows = n if gram.full else max(min(LEAST_ROWS, gram.capacity), gram.capacity // 4)
    # a row may be in the block at more than one threshold
    q = max(4 * T, block_size(n, rows), min(n // 2, 768, rows) // 32 * 32)
    if min(q, n) > gram.capacity:
        raise ValueError(f"{gram.capacity} rows of K do not hold a block of {q}")
    return q


def solve(
    gram: Gram,
    terms: Terms,
    g: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    n_threads: int,
    monitor: Monitor,
    face: Face | None = None,
) -> Solution:
    """Solve (Q) from the feasible point g, (T, n).

    Stops at violation <= tol or after max_iter steps. The result does not depend on
    n_threads. `face` is that of the last fit of a path.
    """
    T = len(terms.lo)
    point = _Point(gram, terms, g)

    def by_entry(a: np.ndarray, of_z: float) -> np.ndarray:
        return np.concatenate([a.ravel(), np.full(T, of_z)])

    box = 0.0 if terms.price is None else np.inf
    lo, hi = by_entry(terms.lo, -box), by_entry(terms.hi, box)
    slope = by_entry(terms.slope, 0.0)
    task = Task(
        gram.K, gram.slot, gram.diagonal, point.entries, point.mu, point.f, lo, hi,
        slope, point.curvature, terms.coupled, _block_size(gram, T), AIM * tol,
        max_iter, PATIENCE,
    )  # fmt: skip
    face = Face(gram, point.curvature) if face is None else face
    face.equip(task)

    def leap(_: int) -> int:
        # tied thresholds share a sum, which an active set knows nothing of
        if not task.pivots or point.mu.any():
            return int(point.newton_step())
        problem = point.entries, point.f, lo, hi, slope, slope
        return face.minimise(task, *problem, tol=tol, max_iter=max_iter)

    violation, stopped = run(
        [task], point.whole[None], task.advance, leap, point.judge,
        gram=gram, tol=tol, n_threads=n_threads, monitor=monitor,
    )  # fmt: skip
    beta = point.g.sum(axis=0)[None]
    curved_down = curves_down(gram, beta, point.f[None])
    return Solution(
        g=point.g,
        z=point.z,
        mu=point.mu,
        f=point.f,
        low=point.low,
        up=point.up,
        violation=float(violation[0]),
        n_iter=task.steps,
        status=verdict([task], curved_down, bool(violation[0] > tol), stopped),
    )
