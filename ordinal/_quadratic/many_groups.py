"""Proximal points for a problem of very many groups.

SMO moves two of T n variables at a time. Here all of them move at once: given g and
sigma > 0, with p_ij the slope of phi_ij, the next ones are

    t_ij = clip(g_ij + sigma (b_j - f_i - p_ij), lo_ij, hi_ij),  f = K beta          (1)

at the beta and b where this smooth function is least:

    1/2 beta'K beta + sum_ij M_ij(b_j - f_i) [+ 1/2 sum_j price_j b_j^2]             (S)

M_ij is the Moreau envelope of the loss of row i and group j around g_ij, and t_ij its
slope, so that there beta_i = sum_j t_ij and sum_i t_ij = 0 [= -price_j b_j]. Steps from
g to t are the proximal point method on (Q) (Rockafellar, SIAM J. Control 14:877-898,
1976). For each beta the best b_j is found exactly, a zero of an increasing piecewise
linear function of one unknown, which `_solvers/_group_steps.pyx` does for all groups;
(S) at the best b is minimised by Newton's method in beta. With a_ij = 1 where t_ij is
inside its box and 0 elsewhere, d_i = sum_j a_ij and r_i = sum_j t_ij - beta_i, a step
is

    dbeta_i = r_i + sigma sum_j a_ij (db_j - df_i),  df = K dbeta
    sigma sum_i a_ij (db_j - df_i) + price_j db_j = 0

Rows with d_i = 0 move by r_i, and groups without a variable inside are left out. For
the others, with G_ij = a_ij / d_i, L L' = K + D, D the diagonal of 1 / (sigma d_i),
V = L^-1 G, and h the terms of the first line without db,

    L L' dbeta = h + G db
    (diag(sigma sum_i a_ij + price_j) - sigma a'G + V'V) db = G'r - V'L^-1 h         (2)

which is O(n^3 / 3 + n^2 T) however many variables are free, and less where rows have
none. For phi without kinks and groups that are not coupled.

At the exact minimum of (S), b_j - f_i - p_ij violates (KKT) by at most
|t_ij - g_ij| / sigma: sigma need only grow until the violation is below the tolerance.
"""

from dataclasses import dataclass

import numpy as np

from .._numerics.cholesky import Cholesky
from .._numerics.lbfgs import rising_zero
from .._numerics.rows import inner
from .._solvers import _group_steps
from .._watch.cancellation import check_cancelled
from .._watch.monitor import Monitor
from .program import Points, restore_sums

_STEPS, _INNER = 200, 10  # most Newton steps in all, and for one sigma
_FIRST = 0.5  # sigma at the start, in widths of the widest box
_RESIDUAL = 0.1  # error allowed in the minimum of (S), relative to the step's gain
_NEAR = 3.0  # multiple of the tolerance below which the violation is computed
_CERTAIN = 0.3  # error allowed in f at the end, relative to the tolerance
_ROUNDING = 1e-12  # relative rounding error of the sums of groups, and of (Q)


def approach(
    points: Points, tol: float, most: int, monitor: Monitor, n_threads: int = 1
) -> int:
    """Move the one problem of `points` until its violation is at most tol.

    Return the number of Newton steps, at most `most`. The point stays feasible if the
    solver is cancelled or stops for rounding errors.
    """
    fit = _Approach(points, n_threads)
    steps, most = 0, min(most, _STEPS)
    while steps < most:
        try:
            taken = fit.minimise(min(_INNER, most - steps), tol)
        except np.linalg.LinAlgError:  # sigma d is beyond what double resolves
            break
        steps += taken
        # Taken even where the steps ended early: every proximal point lowers (Q).
        violation = fit.take(tol)
        fit.next_sigma(taken)
        if violation <= tol or monitor.stop(steps, violation) is not None:
            break
    return steps


@dataclass(slots=True, eq=False)
class _Iterate:
    """Point (1) for some beta, with the best b for it."""

    t: np.ndarray  # (T, n)
    inside: np.ndarray  # (T, n) of 0 and 1
    r: np.ndarray  # (n,)
    Kr: np.ndarray  # (n,)


class _Approach:
    """State of the method for the only problem of `points`."""

    def __init__(self, points: Points, n_threads: int):
        gram, program, (_, T, n) = points.gram, points.program, points.g.shape
        self.points, self.program, self.n_threads = points, program, n_threads
        # The steps are in double, because sigma times d spans many orders of magnitude.
        self.K = gram.in_double() if gram.doubles else gram.block(np.arange(n))
        self.lo, self.hi, self.slope = program.lo[0], program.hi[0], program.pp[0]
        self.price = np.zeros(T) if program.price is None else program.price
        self.g: np.ndarray = points.g[0].copy()
        self.beta, self.f = self.g.sum(axis=0), points.f[0].copy()
        # The first b is the middle of the interval that (KKT) leaves at the start.
        points.update_extremes()
        b = 0.5 * (points.low[0] + points.up[0])
        self.b = np.where(np.isfinite(b), b, 0.0)
        self.sigma = _FIRST * float((self.hi - self.lo).max())
        # `take` compares with it, so that the result is never worse than the start.
        self.value = self.objective(points.g[0], self.f)
        shape = _group_steps.n_chunks(T), n
        self.scratch = np.empty(shape), np.empty(shape, np.uint8)
        self.totals, self.lack = np.empty(shape), np.empty(T)

    def moved(self, f: np.ndarray, t: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return (1) with the best b for scores f, and sums of t by row, (n,)."""
        check_cancelled()
        _group_steps.steps(
            f, self.g, self.lo, self.hi, self.slope, self.price, self.sigma, self.b, t,
            inside, self.totals, self.lack, self.n_threads,
        )  # fmt: skip
        return np.asarray(self.totals.sum(axis=0))

    def evaluated(self) -> _Iterate:
        """Return (1) at the present beta."""
        t, inside = np.empty(self.g.shape), np.empty(self.g.shape, np.uint8)
        r = self.moved(self.f, t, inside) - self.beta
        return _Iterate(t, inside, r, self.K @ r)

    def minimise(self, most: int, tol: float) -> int:
        """Take Newton steps on (S) until it is exact enough; return their number."""
        self.here, steps = self.evaluated(), 0
        while steps == 0 or (steps < most and not self.exact(tol)):
            self.step(*self.direction())
            self.here = self.evaluated()
            steps += 1
        return steps

    def exact(self, tol: float) -> bool:
        """Return whether the error of (S) is small beside the proximal step's gain.

        If that step may be the last one, the error must be small beside the tolerance,
        too.
        """
        here = self.here
        away = here.t - self.g
        gain = np.vdot(away, away) / (2 * self.sigma)
        if not 0.5 * here.r @ here.Kr <= _RESIDUAL * gain:
            return False
        last = 2 * np.abs(away, out=away).max() <= tol * self.sigma
        # An error K r of the scores adds its full size to the violation.
        return bool(not last or np.abs(here.Kr).max() <= _CERTAIN * tol)

    def direction(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the steps dbeta and df of (2)."""
        here, sigma = self.here, self.sigma
        count, active = here.inside.sum(axis=1), here.inside.sum(axis=0)
        groups, rows = np.flatnonzero(count), np.flatnonzero(active)
        # For rows without a variable inside, the step of beta is their residual. Only
        # the other rows are unknowns.
        rest = np.flatnonzero(active == 0)
        d, r = active[rows].astype(float), here.r[rows]
        M = self.K[np.ix_(rows, rows)]
        # Divided by sigma d, so that M is K and a diagonal, and symmetric.
        M[np.diag_indices(rows.size)] += 1 / (sigma * d)
        h = r / (sigma * d) - self.K[np.ix_(rows, rest)] @ here.r[rest]
        G = here.inside[np.ix_(groups, rows)].T / d[:, None]
        right = G.T @ r
        several = d > 1  # rows of one variable inside are on the diagonal of a'G
        E = G[several] * np.sqrt(d[several])[:, None]
        alone = here.inside[np.ix_(groups, rows[~several])].sum(axis=1)
        factor = Cholesky(M, self.n_threads)
        V = factor.forward(np.column_stack([G, h]))
        h, V = V[:, -1], V[:, :-1]
        H = inner(V, V) - sigma * inner(E, E)
        H[np.diag_indices(groups.size)] += (
            sigma * (count[groups] - alone.astype(float)) + self.price[groups]
        )
        # b is eliminated last, so that H has one row per moving group.
        db = np.linalg.solve(H, right - V.T @ h)
        dbeta = here.r.copy()
        dbeta[rows] = factor.backward((h + V @ db)[:, None])[:, 0]
        return dbeta, self.K @ dbeta

    def step(self, dbeta: np.ndarray, df: np.ndarray) -> None:
        """Move along a direction to an approximate minimum of (S)."""
        # The slope of (S) along the direction is known: r is its gradient in the metric
        # of K.
        begin = -float(self.here.r @ df)
        if not begin < 0:  # no descent within rounding
            return

        def slope(x: float) -> float:
            t = self.moved(self.f + x * df, *self.scratch)
            return float((self.beta + x * dbeta - t) @ df)

        x = rising_zero(slope, begin)
        self.beta = self.beta + x * dbeta
        self.f = self.f + x * df

    def objective(self, g: np.ndarray, f: np.ndarray) -> float:
        """Return the value of (Q) at a feasible point with scores f."""
        quadratic = g.sum(axis=0) @ f
        if self.program.price is not None:
            quadratic += (g.sum(axis=1) ** 2 / self.program.price).sum()
        return float(0.5 * quadratic + np.vdot(g, self.slope))

    def take(self, tol: float) -> float:
        """Take the proximal step g = t.

        The point is made feasible and stored in `points`, unless (Q) is less there.
        Return its violation, or an upper bound if that is far above tol.
        """
        last, self.g, points = self.g, self.here.t, self.points
        away = float(np.abs(self.g - last).max()) / self.sigma
        g = self.feasible()
        f = self.K @ g.sum(axis=0)
        value = self.objective(g, f)
        # Making it feasible may make the point worse than the last one, which is then
        # kept.
        if value <= self.value + _ROUNDING * abs(self.value):
            self.value = min(value, self.value)
            points.g[0], points.f[0] = g, f
            if self.program.price is not None:
                points.z[0] = -g.sum(axis=1)
        # The exact violation costs a pass over all variables, which is saved while the
        # bound is far above tol.
        bound = 2 * (away + float(np.abs(self.here.Kr).max()))
        return bound if bound > _NEAR * tol else float(points.violations().max())

    def feasible(self) -> np.ndarray:
        """Return g with the sums of its groups restored to 0, unless they have a price.

        Sums that are 0 within rounding stay as they are.
        """
        size = np.abs(self.g).sum(axis=1)
        off = np.flatnonzero(np.abs(self.lack) > _ROUNDING * size)
        if self.program.price is not None or off.size == 0:
            return self.g
        g = self.g.copy()
        g[off] = restore_sums(g[off], self.lo[off], self.hi[off])
        return g

    def next_sigma(self, taken: int) -> None:
        """Raise sigma after few Newton steps, and lower it after many."""
        self.sigma *= (
            4 if taken <= 2 else 2 if taken <= 4 else 1 if taken < _INNER else 0.5
        )
