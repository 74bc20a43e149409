"""Box-constrained quadratic programs with one equality and piecewise-linear terms.

    min_g  1/2 g'Kg + sum_i phi_i(g_i)   s.t.  sum_i g_i = 0,  lo_i <= g_i <= hi_i   (Q)

phi_i(v) = pp_i v for v >= 0 and pn_i v for v < 0, with pn_i <= pp_i. C-SVC, eps-SVR and
every rank of NPSVOR are of this form. With G = Kg and the one-sided slopes

    R_i = G_i + phi_i'(g_i+)  where g_i < hi_i, else +inf
    L_i = G_i + phi_i'(g_i-)  where g_i > lo_i, else -inf

a feasible g is optimal iff violation = max L - min R <= 0                         (KKT)

and any b in [-min R, -max L] is then a multiplier of the equality: the intercept of
the decision function. `solve` works on several problems over one K at once: SMO by
blocks (`_solvers/_smo.pyx`), Newton steps on all free variables where SMO turns slow,
and at the end G afresh from the kernel in double, which is what is judged.
"""

from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

import numpy as np

from ._fit import Monitor, Status
from ._gram import Gram
from ._linalg import Cholesky
from ._solvers import _smo
from ._solvers._smo import Phase
from ._threads import Pool

_AIM = 0.9  # of tol, on float32 rows: rounding must not lift the end above tol
_IN_VAIN = 6  # times that G is recomputed without a fifth less violation to show
# A Newton step is due when few variables wait at their bounds to join the free ones,
# for then it nearly ends the fit, and SMO has spent this many times its cost
_PATIENCE = 0.5
_RIDGE = 1e-10  # of the mean diagonal: duplicate rows make a free block singular
_CLAMP_ROUNDS = 12
_CHEAP = 512  # variables for which any step is worth its factorisation
LEAST_ROWS = 64  # of K that must be held, for blocks worth the name


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What `solve` reached. Arrays have one entry a problem; g and G are (r, n)."""

    g: np.ndarray
    G: np.ndarray  # Kg, from the kernel in double
    b: np.ndarray
    violation: np.ndarray
    n_iter: np.ndarray  # pair steps, plus one for every Newton step
    status: Status


def block_size(n: int, capacity: int) -> int:
    """Variables in an SMO block: a larger one reads K less often, but each of its steps
    costs in proportion. Measured best on 1000 to 8000 rows; no more than the rows of K
    that are held."""
    return min(1536, max(64, n // 4 // 64 * 64), max(16, capacity // 16 * 16))


def solve(
    gram: Gram,
    g: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    pn: np.ndarray,
    pp: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    n_threads: int,
    monitor: Monitor,
) -> Solution:
    """Solve (Q) for every row of g, which is feasible and is overwritten.

    Stops at violation <= tol for each, or after max_iter steps of one problem. The
    result does not depend on n_threads.
    """
    r, n = g.shape
    q = block_size(n, gram.capacity)
    G = gram.product(g) if g.any() else np.zeros_like(g)
    blocks = np.zeros((r, q), np.int32)

    def problem(k: int) -> tuple:
        return tuple(a[k] for a in (g, G, lo, hi, pn, pp))

    tasks = [
        _smo.Task(
            gram.K, gram.slot, gram.diagonal, *problem(k),
            blocks[k], _AIM * tol, max_iter, _PATIENCE,
        )
        for k in range(r)
    ]  # fmt: skip
    space = _smo.Workspace(n, q, n_threads)
    status = None
    R_min, L_max = np.zeros(r), np.full(r, np.inf)
    judged, vain = L_max.copy(), np.zeros(r, int)  # least violation; refreshes since
    best = g.copy()  # where it was

    def step(k: int) -> bool:
        return _newton(gram, tasks[k], problem(k))

    def judge() -> np.ndarray:
        """Violations, from the kernel itself."""
        G[:] = gram.product(g)
        for k in range(r):
            R, L = slopes(*problem(k))
            R_min[k], L_max[k] = R.min(), L.max()
        return L_max - R_min

    n_workers = n_threads if gram.concurrent else 1
    newton: dict[int, Future] = {}  # steps under way on threads of the pool
    with Pool(n_workers) as pool:
        while True:
            going = any(t.phase <= Phase.READY for t in tasks)
            if going:
                seconds = Monitor.SLICE / (4 if newton else 1)
                threads = max(1, n_threads - len(newton))
                _smo.advance_all(tasks, space, seconds, threads)
            elif newton:
                wait(newton.values(), Monitor.SLICE, FIRST_COMPLETED)
            for k in [k for k, future in newton.items() if future.done()]:
                newton.pop(k).result()
            _fetch(gram, tasks)
            going = any(t.phase < Phase.NEWTON for t in tasks)
            for k in range(r):  # one thread stays with SMO while there is SMO to do
                due = tasks[k].phase == Phase.NEWTON and k not in newton
                if due and len(newton) < max(1, n_workers - going):
                    future = pool.submit(step, k)
                    if future is not None:
                        newton[k] = future
            status = monitor.stop(
                sum(t.steps for t in tasks), max(t.violation for t in tasks)
            )
            if status is not None:
                break
            if newton or any(t.phase < Phase.DONE for t in tasks):
                continue
            violation = judge()
            vain = np.where(violation < 0.8 * judged, 0, vain + 1)
            better = violation < judged
            best[better], judged[better] = g[better], violation[better]
            again = (violation > tol) & (vain < _IN_VAIN)
            again &= [t.phase != Phase.LIMIT for t in tasks]
            if not again.any():
                if (violation > judged).any():  # the last steps did harm
                    g[:] = best
                    judge()
                break
            for k in map(int, np.flatnonzero(again)):
                # what K in float made of a direction without curvature SMO would only
                # do again; a step on K itself goes along it to the next bound
                moved = vain[k] > 0 and step(k)
                tasks[k].phase = Phase.DONE if moved else Phase.RUN
        if status is not None:  # stopped between two slices
            wait(newton.values())
            judge()
    violation = L_max - R_min
    # g'Kg below what rounding makes of 0
    floor = -1e-8 * gram.diagonal.max() * np.abs(g).sum(axis=1) ** 2
    curved_down = (np.einsum("ij,ij->i", g, G) < floor).any()
    return Solution(
        g=g,
        G=G,
        b=-0.5 * (R_min + L_max),
        violation=violation,
        n_iter=np.array([t.steps for t in tasks]),
        status=_verdict(tasks, curved_down, (violation > tol).any(), status),
    )


def _verdict(tasks, curved_down, short_of_tol, stopped: Status | None) -> Status:
    """Why the fit ended: what K is counts first, then what was reached."""
    if curved_down or any(t.indefinite for t in tasks):
        return Status.INDEFINITE
    if not short_of_tol:
        return Status.CONVERGED
    if stopped is not None:
        return stopped
    limit = any(t.phase == Phase.LIMIT for t in tasks)
    return Status.MAX_ITER if limit else Status.STALLED


def slopes(g, G, lo, hi, pn, pp) -> tuple[np.ndarray, np.ndarray]:
    """R and L of the module docstring."""
    R = np.where(g < hi, G + np.where(g < 0, pn, pp), np.inf)
    L = np.where(g > lo, G + np.where(g > 0, pp, pn), -np.inf)
    return R, L


def _fetch(gram: Gram, tasks: list) -> None:
    """Compute missing rows of K for as many waiting tasks as there is room."""
    rows = np.empty(0, np.int32)
    for task in tasks:
        if task.phase == Phase.WAIT:
            more = np.union1d(rows, task.needed())
            if more.size > gram.capacity:
                break
            rows = more
            task.phase = Phase.READY
    if rows.size:
        gram.ensure(rows)


def _newton(gram: Gram, task, arrays) -> bool:
    """One Newton step of a task; whether it led anywhere."""
    moved = newton_step(gram, *arrays) is not None
    # where it did not, it is not worth trying again soon
    task.newton_done(_PATIENCE if moved else 2 * task.patience, int(moved))
    return moved


def newton_step(gram: Gram, g, G, lo, hi, pn, pp) -> float | None:
    """Move g to the minimiser of (Q) over the variables that are free or want to be.

    Each such variable i may move within one linear piece [left_i, right_i] of phi_i, of
    slope c_i. With M the block of K over them, d solves

        min 1/2 d'Md + d'(G + c)   s.t.  sum d = 0,  d_i = bound_i - g_i for i clamped

    by one factorisation of M; variables that leave their piece are clamped to its end
    and the bordered system is solved again, until none leaves. An exact line search
    along d ends the step, so (Q) never rises. Updates g and G; returns the length of
    the step, or None if M is not positive definite or d leads nowhere.
    """
    R, L = slopes(g, G, lo, hi, pn, pp)
    mid = 0.5 * (R.min() + L.max())
    inside = (g > lo) & (g < hi) & ((g != 0) | (pn == pp))
    grows, shrinks = ~inside & (R < mid), ~inside & (L > mid)
    W = np.flatnonzero(inside | grows | shrinks)
    if not 2 <= W.size <= gram.capacity:
        return None
    at, lo, hi, pn, pp = (a[W] for a in (g, lo, hi, pn, pp))
    up = (inside[W] & (at >= 0)) | (grows[W] & (at >= 0)) | (shrinks[W] & (at > 0))
    kinked = pn != pp
    left = np.where(grows[W], at, np.where(kinked & up, np.maximum(lo, 0), lo))
    right = np.where(shrinks[W], at, np.where(kinked & ~up, np.minimum(hi, 0), hi))
    slope = G[W] + np.where(up, pp, pn)

    M = gram.block(W)
    M[np.diag_indices(W.size)] += _RIDGE * gram.diagonal[W].mean()
    try:
        d, curvature, clamped = _clamped_minimiser(
            Cholesky(M), slope, left - at, right - at
        )
    except np.linalg.LinAlgError:
        return None

    descent = d @ slope
    if not descent < 0 or not curvature > 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(d > 0, right - at, left - at) / d
    room[(d == 0) | (clamped != 0)] = np.inf
    size = min(1.0, room.min(), -descent / curvature)
    if not size > 0:
        return None
    new = np.clip(at + size * d, left, right)
    if size == 1.0:  # at a bound means equal to the bound
        new = np.where(clamped < 0, left, np.where(clamped > 0, right, new))
    index = W[new != at].astype(np.int32)
    gram.ensure(index)
    _smo.add_rows(gram.K, gram.slot[index], (new - at)[new != at], G)
    g[W] = new
    return float(size)


def _clamped_minimiser(factor: Cholesky, slope, lower, upper):
    """d of `newton_step`, d'Md, and which entries are clamped: -1 below, +1 above.

    With N = [1, unit columns of the clamped], the conditions M d + N mu = -slope and
    N'd = t have the solution d = -M^-1 (slope + N mu); every product with M^-1 goes
    through V = L^-1 [N, slope], to which a round appends its new columns.
    """
    n = slope.size
    most = 0.15 * n
    clamped = np.zeros(n, dtype=np.int8)
    order = np.empty(0, dtype=np.intp)
    V = factor.forward(np.column_stack([slope, np.ones(n)]))
    for _ in range(_CLAMP_ROUNDS):
        target = np.where(clamped[order] < 0, lower[order], upper[order])
        N, s = V[:, 1:], V[:, 0]
        t = np.concatenate([[0.0], target])
        mu = np.linalg.solve(N.T @ N, -(N.T @ s) - t)
        d = -factor.backward((s + N @ mu)[:, None])[:, 0]
        d[order] = target
        free = clamped == 0
        if free.any():  # a singular M loses some of the sum
            d[free] -= d.sum() / free.sum()
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
