"""Proximal points for a problem of very many groups, which bring SMO near its end.

SMO moves two of T n variables at a time. Here all of them move at once: given g and
sigma > 0, with p_ij the slope of phi_ij, the next ones are

    t_ij = clip(g_ij + sigma (b_j - f_i - p_ij), lo_ij, hi_ij),  f = K beta          (1)

at the beta and b where this smooth function is least:

    1/2 beta'K beta + sum_ij M_ij(b_j - f_i) [+ 1/2 sum_j price_j b_j^2]             (S)

M_ij is the Moreau envelope of the loss of row i and group j around g_ij, and t_ij its
slope, so that there beta_i = sum_j t_ij and sum_i t_ij = 0 [= -price_j b_j]. Steps from
g to t are the proximal point method on (Q) (Rockafellar, SIAM J. Control 14:877-898,
1976), and (S) is minimised by Newton's method, as in `_basis/proximal.py`, but in beta
and b. Its second derivative is constant between the ends of boxes: with a_ij = 1 where
t_ij is inside its box and 0 elsewhere, d_i = sum_j a_ij, r_i = sum_j t_ij - beta_i, and
q_j what the sum of group j lacks, a step is

    dbeta_i = r_i + sigma sum_j a_ij (db_j - df_i),  df = K dbeta
    sigma sum_i a_ij (db_j - df_i) + price_j db_j = q_j

Rows with d_i = 0 move by r_i. For the others, with G_ij = a_ij / d_i, L L' = K + D, D
the diagonal of 1 / (sigma d_i), V = L^-1 G, and h what the first line has beside db,

    L L' dbeta = h + G db
    (diag(sigma sum_i a_ij + price_j) - sigma a'G + V'V) db = q + G'r - V'L^-1 h     (2)

which is O(n^3 / 3 + n^2 T) however many variables are free. For phi without kinks and
groups that are not coupled.
"""

from dataclasses import dataclass

import numpy as np

from .._model.monitor import Monitor, turn
from .._numerics.cholesky import Cholesky
from .._numerics.line_search import rising_zero
from .._numerics.rows import inner
from .._solvers._pair_smo import groups_of_block
from .feasible import restore_sums
from .program import Points

_GAP = 1e-3  # of the primal value, at which SMO and its pivots take less time
_STEPS, _INNER = 60, 6  # Newton steps in all, and for one sigma
_FIRST = 10.0  # T sigma at the start, in widths of the widest box
_RESIDUAL = 0.1  # what may be left of (S), in parts of what the step gains
_EMPTY = 1e-3  # entries inside that a group without any is taken to have
_DENSE = 0.5  # share of boxes that are no points, for which all groups are worth a step


def pays(points: Points) -> bool:
    """Whether a problem is of the kind that SMO alone takes long for."""
    program, (P, T, _) = points.program, points.g.shape
    return bool(
        P == 1
        and groups_of_block(T) < T
        and not program.coupled
        and program.pn is program.pp
        and points.gram.room_for_double
        and (program.lo < program.hi).mean() > _DENSE
    )


def approach(points: Points, most: int, monitor: Monitor) -> int:
    """Move the one problem of `points` to where the gap is small, in at most so many
    Newton steps; how many were taken. The point is feasible whenever `turn` ends it."""
    fit = _Approach(points)
    steps, gap, most = 0, np.inf, min(most, _STEPS)
    while gap > _GAP and steps < most:
        try:
            taken = fit.minimise(min(_INNER, most - steps))
        except np.linalg.LinAlgError:  # sigma d is beyond what double resolves
            break
        steps += taken
        gap = fit.keep_better()
        violation = float(points.violations().max())
        fit.next_sigma(taken)
        if monitor.stop(steps, violation) is not None:
            break
    return steps


@dataclass(slots=True, eq=False)
class _Place:
    """(1) at some beta and b."""

    t: np.ndarray  # (T, n)
    inside: np.ndarray  # (T, n)
    r: np.ndarray  # (n,)
    q: np.ndarray  # (T,)


class _Approach:
    """The method at work at the one problem of `points`."""

    def __init__(self, points: Points):
        gram, program, n = points.gram, points.program, points.f.shape[1]
        self.points, self.program = points, program
        self.K = gram.in_double() if gram.doubles else gram.block(np.arange(n))
        self.lo, self.hi, self.slope = program.lo[0], program.hi[0], program.pp[0]
        T = len(self.lo)
        self.price = np.zeros(T) if program.price is None else program.price
        self.g = points.g[0].copy()
        self.beta, self.f = self.g.sum(axis=0), points.f[0].copy()
        points.slopes()
        b = 0.5 * (points.low[0] + points.up[0])
        self.b = np.where(np.isfinite(b), b, 0.0)
        self.sigma = _FIRST / T * float((self.hi - self.lo).max())
        self.value = self.objective(points.g[0], self.f)
        self.here = self.place()

    def moved(self, v: np.ndarray) -> np.ndarray:
        """(1), by v_ij = b_j - f_i."""
        turn()
        t: np.ndarray = v - self.slope
        t *= self.sigma
        t += self.g
        return np.clip(t, self.lo, self.hi, out=t)

    def place(self) -> _Place:
        t = self.moved(self.b[:, None] - self.f)
        inside = (self.lo < t) & (t < self.hi)
        q = -(t.sum(axis=1) + self.price * self.b)
        return _Place(t, inside, t.sum(axis=0) - self.beta, q)

    def minimise(self, most: int) -> int:
        """Newton steps on (S), until it is exact enough; how many."""
        self.here, steps = self.place(), 0
        while steps == 0 or (steps < most and not self.exact()):
            self.step(*self.direction())
            self.here = self.place()
            steps += 1
        return steps

    def exact(self) -> bool:
        """Whether what (S) is off by is small beside what the proximal step gains."""
        here = self.here
        left = 0.5 * here.r @ (self.K @ here.r) + np.abs(here.q).sum()
        gain = ((here.t - self.g) ** 2).sum() / (2 * self.sigma)
        return bool(left <= _RESIDUAL * gain)

    def direction(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """dbeta, df and db of (2)."""
        here, sigma, T = self.here, self.sigma, len(self.b)
        count, active = here.inside.sum(axis=1), here.inside.sum(axis=0)
        rows, rest = np.flatnonzero(active), np.flatnonzero(active == 0)
        d, r = active[rows].astype(float), here.r[rows]
        M = self.K[np.ix_(rows, rows)]
        M[np.diag_indices(rows.size)] += 1 / (sigma * d)
        h = r / (sigma * d) - self.K[np.ix_(rows, rest)] @ here.r[rest]
        E = here.inside[:, rows].T / np.sqrt(d)[:, None]
        factor = Cholesky(M)
        G = E / np.sqrt(d)[:, None]
        right = self.here.q + G.T @ r
        V = factor.forward(np.column_stack([G, h]))
        h, V = V[:, T], V[:, :T]
        H = inner(V, V) - sigma * inner(E, E)
        H[np.diag_indices(T)] += sigma * np.maximum(count, _EMPTY) + self.price
        db = np.linalg.solve(H, right - V.T @ h)
        dbeta = here.r.copy()
        dbeta[rows] = factor.backward((h + V @ db)[:, None])[:, 0]
        return dbeta, self.K @ dbeta, db

    def step(self, dbeta: np.ndarray, df: np.ndarray, db: np.ndarray) -> None:
        """Along a direction to about the minimum of (S)."""
        v, dv = self.b[:, None] - self.f, db[:, None] - df

        def slope(x: float) -> float:
            of_b = (self.price * (self.b + x * db)) @ db
            losses = np.vdot(self.moved(v + x * dv), dv)
            return float((self.beta + x * dbeta) @ df + of_b + losses)

        x = rising_zero(slope)
        self.beta = self.beta + x * dbeta
        self.f = self.f + x * df
        self.b = self.b + x * db

    def objective(self, g: np.ndarray, f: np.ndarray) -> float:
        """(Q) at a feasible point and its f."""
        quadratic = g.sum(axis=0) @ f
        if self.program.price is not None:
            quadratic += (g.sum(axis=1) ** 2 / self.program.price).sum()
        return float(0.5 * quadratic + np.vdot(g, self.slope))

    def keep_better(self) -> float:
        """The proximal step itself: g = t. The point, made feasible, goes to `points`
        where (Q) is less than it was there; its relative gap."""
        self.g = self.here.t
        g, points = self.g, self.points
        if self.program.price is None:
            g = restore_sums(g, self.lo, self.hi)
        f = self.K @ g.sum(axis=0)
        value = self.objective(g, f)
        if value < self.value:
            self.value = value
            points.g[0], points.f[0] = g, f
            if self.program.price is not None:
                points.z[0] = -g.sum(axis=1)
        loss = float(self.program.loss(self.f[None], self.b[None])[0])
        primal = float(0.5 * self.beta @ self.f + 0.5 * self.price @ self.b**2) + loss
        return (primal + self.value) / max(abs(primal), 1e-300)

    def next_sigma(self, taken: int) -> None:
        """More where Newton's method had little to do, less where it did not end."""
        self.sigma *= (
            4 if taken <= 2 else 2 if taken <= 4 else 1 if taken < _INNER else 0.5
        )
