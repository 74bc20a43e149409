"""Box-constrained quadratic programs with one equality and piecewise-linear terms.

    min_g  1/2 g'Kg + sum_i phi_i(g_i)   s.t.  sum_i g_i = 0,  lo_i <= g_i <= hi_i   (Q)

phi_i(v) = pp_i v for v >= 0 and pn_i v for v < 0, with pn_i <= pp_i. C-SVC, eps-SVR and
every rank of NPSVOR are of this form. With G = Kg and the one-sided slopes

    R_i = G_i + phi_i'(g_i+)  where g_i < hi_i,    L_i = G_i + phi_i'(g_i-)  where g_i > lo_i

a feasible g is optimal iff violation = max L - min R <= 0                         (KKT)

and any b in [-min R, -max L] is then a multiplier of the equality: the intercept of
the decision function. `solve` works on several problems over one K at once: SMO by
blocks (`_solvers/_smo.pyx`), Newton steps on all free variables where SMO turns slow,
and at the end G afresh from the kernel in double, which is what is judged.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ._fit import Monitor, Status
from ._gram import Gram
from ._linalg import Cholesky
from ._solvers import _smo
from ._solvers._smo import Phase

_AIM = 0.9  # of tol, on float32 rows: rounding must not lift the end above tol
_MAX_REFRESH = 30  # times that G may be recomputed without an end
_RIDGE = 1e-8  # of the mean diagonal: duplicate rows make a free block singular
_CLAMP_ROUNDS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What `solve` reached. Arrays have one entry a problem; g and G are (r, n)."""

    g: np.ndarray
    G: np.ndarray  # Kg, from the kernel in double
    b: np.ndarray
    violation: np.ndarray
    n_iter: np.ndarray  # pair steps, plus one for every Newton step
    status: Status


def block_size(n: int) -> int:
    """Variables in an SMO block: larger blocks read K less often, but each step of a
    block costs in proportion. Measured best on 1000 to 8000 rows."""
    return int(min(1024, max(64, n // 4 // 64 * 64)))


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
    q = block_size(n)
    G = gram.product(g) if g.any() else np.zeros_like(g)
    state = _State(g, G, lo, hi, pn, pp, q)
    sizes = _smo.work_sizes(n, q)
    work = (
        np.empty((n_threads, sizes[0]), np.float32),
        np.empty((n_threads, sizes[1])),
        np.zeros((n_threads, sizes[2]), np.int32),
        np.zeros(r, np.int32),
    )
    status, refreshed, judged = None, 0, np.full(r, np.inf)
    with _Pool(n_threads if gram.full else 1) as pool:  # a cache has one user
        while True:
            _smo.advance_all(
                gram.K, gram.slot, gram.diagonal, *state.arrays(), *work,
                _AIM * tol, max_iter, Monitor.SLICE, n_threads,
            )  # fmt: skip
            phase = state.phase
            running = (phase == Phase.RUN) | (phase == Phase.READY)
            _fetch(gram, state)
            newton = np.flatnonzero(phase == Phase.NEWTON)
            if newton.size >= n_threads or not running.any():
                pool.run(lambda k: _newton(gram, state, k), newton)
            status = monitor.stop(state.steps.sum(), state.violation.max())
            if status is not None:
                break
            if (phase < Phase.DONE).any():
                continue
            state.refresh(gram)
            refreshed += 1
            open_ = (state.violation > tol) & (phase != Phase.LIMIT)
            # a refresh that leaves a violation where it was, will do so again
            hopeless = open_ & (state.violation > 0.5 * judged) & (refreshed > 3)
            judged = np.where(open_, np.minimum(judged, state.violation), judged)
            if not (open_ & ~hopeless).any() or refreshed == _MAX_REFRESH:
                break
            phase[open_ & ~hopeless] = Phase.RUN
    if status is not None:  # stopped between two slices
        state.refresh(gram)
    return Solution(
        g=g,
        G=G,
        b=-0.5 * (state.R_min + state.L_max),
        violation=state.violation,
        n_iter=state.steps,
        status=_judge(state, tol, status),
    )


def _judge(state: "_State", tol: float, stopped: Status | None) -> Status:
    curved_down = np.einsum("ij,ij->i", state.g, state.G) < 0
    if (state.indefinite | curved_down).any():
        return Status.INDEFINITE
    if not (state.violation > tol).any():
        return Status.CONVERGED
    if stopped is not None:
        return stopped
    if (state.phase == Phase.LIMIT).any():
        return Status.MAX_ITER
    return Status.STALLED


class _State:
    """The arrays of `_smo.advance_all`, one row a problem."""

    def __init__(self, g, G, lo, hi, pn, pp, q: int):
        r = g.shape[0]
        self.g, self.G, self.lo, self.hi, self.pn, self.pp = g, G, lo, hi, pn, pp
        self.block = np.zeros((r, q), np.int32)
        self.size = np.zeros(r, np.int32)
        self.R_min, self.L_max = np.zeros(r), np.full(r, np.inf)
        self.steps = np.zeros(r, np.int64)
        self.phase = np.full(r, Phase.RUN, np.int32)
        self.indefinite = np.zeros(r, np.int32)
        self.work = np.zeros(r)  # since the last Newton step
        self.patience = np.ones(r)  # how much work to do before the next, in its cost

    def arrays(self) -> tuple:
        return (
            self.g, self.G, self.lo, self.hi, self.pn, self.pp, self.block, self.size,
            self.R_min, self.L_max, self.steps, self.phase, self.indefinite,
            self.work, self.patience,
        )  # fmt: skip

    @property
    def violation(self) -> np.ndarray:
        return self.L_max - self.R_min

    def slopes(self, k) -> tuple[np.ndarray, np.ndarray]:
        """R and L of the module docstring for problem k (or all, for a slice)."""
        g, G = self.g[k], self.G[k]
        R = G + np.where(g < 0, self.pn[k], self.pp[k])
        L = G + np.where(g > 0, self.pp[k], self.pn[k])
        R = np.where(g < self.hi[k], R, np.inf)
        return R, np.where(g > self.lo[k], L, -np.inf)

    def refresh(self, gram: Gram) -> None:
        """G and the violations from the kernel itself."""
        self.G[:] = gram.product(self.g)
        R, L = self.slopes(slice(None))
        self.R_min[:], self.L_max[:] = R.min(axis=1), L.max(axis=1)


class _Pool:
    """Independent calls on threads; in this one where there is only one to use."""

    def __init__(self, n_threads: int):
        self.executor = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *error) -> None:
        if self.executor is not None:  # Ctrl-C must not wait for a factorisation
            self.executor.shutdown(wait=False, cancel_futures=True)

    def run(self, call, arguments) -> None:
        if self.executor is None or len(arguments) == 1:
            for argument in arguments:
                call(argument)
        else:
            futures: list[Future] = [self.executor.submit(call, a) for a in arguments]
            for future in futures:
                future.result()


def _fetch(gram: Gram, state: _State) -> None:
    """Compute missing rows of K for as many waiting problems as there is room."""
    rows = np.empty(0, np.int32)
    for k in np.flatnonzero(state.phase == Phase.WAIT):
        more = np.union1d(rows, state.block[k, : state.size[k]])
        if more.size > gram.capacity:
            break
        rows = more
        state.phase[k] = Phase.READY
    if rows.size:
        gram.ensure(rows)


def _newton(gram: Gram, state: _State, k: int) -> None:
    """One Newton step of problem k, within the linear pieces that hold it."""
    state.phase[k], state.work[k] = Phase.RUN, 0.0
    step = newton_step(gram, state, k)
    if step is None:  # not worth trying again soon
        state.patience[k] *= 8
        return
    index, change, size = step
    state.g[k, index] = change
    state.steps[k] += 1
    state.patience[k] = 1.0 if size > 0.3 else min(64.0, 2 * state.patience[k])


def newton_step(gram: Gram, state: _State, k: int):
    """The minimiser of (Q) over the variables that are free or want to be.

    Each such variable i may move within one linear piece [left_i, right_i] of phi_i, of
    slope c_i. With M the block of K over them, d solves

        min 1/2 d'Md + d'(G + c)   s.t.  sum d = 0,  d_i = bound_i - g_i for i clamped

    by one factorisation of M; variables that leave their piece are clamped to its end
    and the bordered system is solved again, until none leaves. An exact line search
    along d ends the step, so (Q) never rises. Updates G and returns (index, new g, step
    length), or None if M is not positive definite or d does not descend.
    """
    g, lo, hi, pn, pp = (
        a[k] for a in (state.g, state.lo, state.hi, state.pn, state.pp)
    )
    R, L = state.slopes(k)
    mid = 0.5 * (R.min() + L.max())
    inside = (g > lo) & (g < hi) & ((g != 0) | (pn == pp))
    grows, shrinks = ~inside & (R < mid), ~inside & (L > mid)
    W = np.flatnonzero(inside | grows | shrinks)
    if W.size < 2 or W.size > gram.capacity:
        return None
    g, lo, hi, pn, pp = (a[W] for a in (g, lo, hi, pn, pp))
    up = np.where(inside[W], g >= 0, grows[W] & (g >= 0))  # on the piece above the kink
    up |= shrinks[W] & (g > 0)
    kinked = pn != pp
    left = np.where(grows[W], g, np.where(kinked & up, np.maximum(lo, 0), lo))
    right = np.where(shrinks[W], g, np.where(kinked & ~up, np.minimum(hi, 0), hi))
    slope = state.G[k, W] + np.where(up, pp, pn)

    gram.ensure(W)
    M = gram.block(W)
    M[np.diag_indices(W.size)] += _RIDGE * gram.diagonal[W].mean()
    try:
        d, clamped = _clamped_minimiser(Cholesky(M), slope, left - g, right - g)
    except np.linalg.LinAlgError:
        return None

    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(d > 0, right - g, left - g) / d
    room[(d == 0) | (clamped != 0)] = np.inf
    longest = min(1.0, room.min())
    dG = np.zeros(state.G.shape[1])
    moved = d != 0
    _smo.add_rows(gram.K, gram.slot, W[moved].astype(np.int32), d[moved], dG)
    descent, curvature = d @ slope, d @ dG[W]
    if not descent < 0 or not curvature > 0:
        return None
    size = min(longest, -descent / curvature)
    new = np.clip(g + size * d, left, right)
    if size == 1.0:  # at a bound means equal to the bound
        new = np.where(clamped < 0, left, np.where(clamped > 0, right, new))
    state.G[k] += size * dG
    return W, new, size


def _clamped_minimiser(factor: Cholesky, slope, lower, upper):
    """d of `newton_step`, and which entries are clamped: -1 below, +1 above.

    With N = [1, unit columns of the clamped], the conditions M d + N mu = -slope and
    N'd = t have the solution d = -M^-1 (slope + N mu); every product with M^-1 goes
    through V = L^-1 [N, slope], to which a round appends its new columns.
    """
    n = slope.size
    clamped = np.zeros(n, dtype=np.int8)
    order = np.empty(0, dtype=np.intp)
    V = factor.forward(np.column_stack([slope, np.ones(n)]))
    for _ in range(_CLAMP_ROUNDS):
        target = np.where(clamped[order] < 0, lower[order], upper[order])
        N, s = V[:, 1:], V[:, 0]
        rhs = -(N.T @ s) - np.concatenate([[0.0], target])
        mu = np.linalg.solve(N.T @ N, rhs)
        d = -factor.backward((s + N @ mu)[:, None])[:, 0]
        d[order] = target
        if not np.isfinite(d).all():
            raise np.linalg.LinAlgError("singular system")
        below, above = (d < lower) & (clamped == 0), (d > upper) & (clamped == 0)
        new = np.flatnonzero(below | above)
        if new.size == 0:
            break
        if order.size + new.size > n // 2:  # far from the active set: SMO is better
            raise np.linalg.LinAlgError("most variables leave their piece")
        clamped[below], clamped[above] = -1, 1
        order = np.concatenate([order, new])
        units = np.zeros((n, new.size))
        units[new, np.arange(new.size)] = 1.0
        V = np.concatenate([V, factor.forward(units)], axis=1)
    else:
        clamped[new] = 0
    return d, clamped
