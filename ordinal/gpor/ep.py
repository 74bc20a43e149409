"""The posterior of latent values by expectation propagation, and its evidence.

Sites t_i(f_i) = s_i exp(-p_i (f_i - m_i)^2 / 2) stand for P(y_i | f_i), Appendix B.
Given the others (the cavity, of mean h and variance lambda) each is chosen so that
cavity times site has the mean and the variance of cavity times P; all at once, so that
a sweep costs one factorisation. Sweeps converge linearly, and extrapolating the last
three (Anderson's method) saves a third of them. One that brings the posterior no nearer
to its fixed point forgets the earlier ones; a second in a row halves the step, which
grows again as sweeps get nearer. Near the fixed point, Newton steps take the place of
most sweeps where Sigma is dense: to first order, sites that change by dW and d eta move
the posterior by

    dh = A (d eta - dW h),    dA_ii = -sum_j A_ij^2 dW_j

so that the sweeps of this linear model cost n^2, and one factorisation serves dozens.
A row of weight w stands for w rows of one latent value, and so for w equal sites, one
of which its cavity lacks: w >= 1.

    log Z = sum_i w_i (log Z_i - log int N(h, lambda) t_i / s_i) + log int N(0, Sigma)
            prod_i (t_i / s_i)^w_i,    the last = -1/2 ln |B| + 1/2 eta'A eta

with eta = w p m, which is the product at the end of Appendix B without divisions by p.
At the fixed point it has no slope by any site, so that its gradient is that with the
sites held still. The bound (27) has no such property, and (28)-(30), which hold Q
still, are not its gradient.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .._numerics.rows import strips
from .._solvers import _ordinal_probit
from .._watch.monitor import OutOfTime, never
from .covariance import Covariance, Dense
from .likelihood import ROWS, Likelihood, Posterior

TOL = 1e-8  # of mean and variance of each row, in units of its posterior
LOOSE = 1e-5  # the same, far from the optimum of the hyperparameters
_USABLE = 1e-4  # the same: with more left, there is no fixed point to speak of
_MAX_SWEEPS = 300
_NEAR = 1.0  # violation below which a Newton step is tried
_GAIN = 0.5  # what a Newton step must leave of the violation at the most
_FAR = 10.0  # growth of the violation at which the linear sweeps of one diverge
_INNER, _MAX_INNER = 0.01, 60  # what linear sweeps leave of it, and their number
_LEAST_STEP = 0.05
_MEMORY = 3  # sweeps to extrapolate from
_NODES = 40  # of the Gauss-Hermite sums in (27), (29), (30)


def expectation_propagation(
    cov: Covariance,
    like: Likelihood,
    state: np.ndarray | None,
    *,
    bound: bool = False,
    tol: float = TOL,
    late: Callable[[], bool] = never,
) -> Posterior:
    """EP's posterior and the derivatives of its evidence, or of the bound (27).

    Parameters
    ----------
    cov : Dense or LowRank
    like : Likelihood
    state : (2, n) array, optional
        Sites, p and p m, from which to start.
    bound : bool
        Whether the objective is (27) and its slopes (28)-(30).
    tol : float
        Change of a mean or a variance, in units of the posterior's, at which sweeps
        end. The evidence is wrong by its square, the gradient by its first power.
    late : callable
        Ends the sweeps when it returns True, after the first at the earliest.

    Raises OutOfTime, as `check_cancelled` does, in the first sweep only.
    """
    n = like.weight.size
    site = np.zeros((2, n)) if state is None else state
    last, n_iter = _fixed_point(cov, like, site, tol, late)
    if bound:
        objective, by_row = _bound(cov, like, last)
    else:
        objective, by_row = _log_evidence(cov, like, last)
    return Posterior(
        objective=objective,
        a=last.a,
        u=np.zeros(n),
        by_row=by_row,
        state=last.site,
        violation=last.violation,
        tol=_USABLE,
        n_iter=n_iter,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Sweep:
    """One parallel update of all sites.

    Attributes
    ----------
    site : (2, n) array
        Before it.
    change : (2, n) array
    a : (n,) array
        Sigma^-1 h.
    h, A : (n,) arrays
        Posterior mean and variance before it.
    q : (n,) array
        1 - W_i A_ii.
    violation : float
        The largest change of a mean or a variance, in units of the posterior's.
    """

    site: np.ndarray
    change: np.ndarray
    a: np.ndarray
    h: np.ndarray
    A: np.ndarray
    q: np.ndarray
    violation: float


def _fixed_point(
    cov: Covariance,
    like: Likelihood,
    site: np.ndarray,
    tol: float,
    late: Callable[[], bool],
) -> tuple[_Sweep, int]:
    """Return the last sweep and the number of sweeps.

    A sweep that time cuts short leaves the one before, whose distance from the fixed
    point is unknown.
    """
    step, last, near = 1.0, np.inf, _NEAR
    history: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=_MEMORY)
    n_iter, sweep = 0, None
    while True:
        try:
            sweep = _sweep(cov, like, site, step)
        except OutOfTime:
            if sweep is None:
                raise
            # Not converged, whatever the sweep before had left: its end is unknown.
            return replace(sweep, violation=np.inf), n_iter
        n_iter += 1
        left = sweep.violation
        # NaN never comes back: sites that are not finite stay so.
        ended = left <= tol or not np.isfinite(left) or n_iter >= _MAX_SWEEPS
        if ended or late():
            return sweep, n_iter
        if not history and left > _GAIN * last:
            near = last / 4  # the Newton step gained no more than a sweep: too early
        # A sweep that gets worse is first tried without extrapolation, then by half a
        # step.
        if left <= last:
            step = min(1.0, 2 * step)
        elif len(history) < 2:
            step = max(step / 2, _LEAST_STEP)
        else:
            history.clear()
        last = left
        if isinstance(cov, Dense) and left < near and sweep.site[0].any():
            try:
                site = _newton(cov, like, sweep, tol)
            except OutOfTime:
                return replace(sweep, violation=np.inf), n_iter
            history.clear()
            continue
        history.append((sweep.site, sweep.change))
        site = extrapolated(history, np.array([sweep.A, np.sqrt(sweep.A)]))


def _newton(cov: Dense, like: Likelihood, sweep: _Sweep, tol: float) -> np.ndarray:
    """Return the fixed point of sweeps whose posterior is linear in the sites.

    It is that of a Newton step: a sweep of these costs O(n^2), and the exact one at
    their end is off by the square of how far the sites have moved.
    """
    response = cov.response()
    site, change, left = sweep.site, sweep.change, sweep.violation
    end = max(0.1 * tol, _INNER * left)
    history: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=_MEMORY)
    moved, w = sweep, like.weight
    for _ in range(_MAX_INNER):
        history.append((site, change))
        site = extrapolated(history, np.array([moved.A, np.sqrt(moved.A)]))
        W, eta = w * site[0], w * site[1]
        dW = W - w * sweep.site[0]
        t = eta - w * sweep.site[1] - dW * sweep.h
        dh, falls = response(t, dW)
        h, A = sweep.h + dh, sweep.A / np.maximum(1 + falls, 0.1)
        moved = _Sweep(site, np.empty_like(site), eta - W * h, h, A, 1 - W * A, 0.0)
        change, left = _changes(like, moved, 1.0)
        if not left < _FAR * sweep.violation:  # nor NaN
            return np.asarray(sweep.site + sweep.change)
        if left <= end:
            break
    return np.asarray(site + change)


def _sweep(cov: Covariance, like: Likelihood, site: np.ndarray, step: float) -> _Sweep:
    """Move every site by this part of the way to what its cavity asks for."""
    # A row of weight w has w sites at one place: their products are powers of one.
    posterior = cov.posterior(like.weight * site[1], like.weight * site[0])
    sweep = _Sweep(site, site, *posterior, violation=0.0)
    change, violation = _changes(like, sweep, step)
    return replace(sweep, change=change, violation=violation)


def _changes(like: Likelihood, sweep: _Sweep, step: float) -> tuple[np.ndarray, float]:
    """Return the changes of all sites, and the violation."""
    change, violation = np.empty_like(sweep.site), np.float64(0)
    for rows, part in like.parts():
        after, out = _moved(part, sweep, rows, step)
        change[:, rows] = after - sweep.site[:, rows]
        violation = np.maximum(violation, out[4].max())  # which NaN does not pass
    return change, float(violation)


def _moved(
    like: Likelihood, sweep: _Sweep, rows: slice, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sites of some rows after a step of the sweep, and what
    `_ordinal_probit.sites` tells of them.
    """
    w, q = like.weight, sweep.q[rows]
    after, out = sweep.site[:, rows].copy(), np.empty((5, w.size))
    _ordinal_probit.sites(
        sweep.h[rows], sweep.A[rows],
        1 - (1 - q) / w,  # 1 - A p of one of w sites
        sweep.a[rows] / w, like.v, like.rank, like.b, like.width, after, out, step,
        like.n_threads,
    )  # fmt: skip
    return after, out


def _log_evidence(
    cov: Covariance, like: Likelihood, last: _Sweep
) -> tuple[float, np.ndarray]:
    """Return log Z and how it changes by row."""
    w, h, by_row = like.weight, last.h, np.empty((3, last.h.size))
    # A step of length 0 leaves the sites, and tells the moments of the tilted rows.
    log_z = np.empty_like(h)
    for rows, part in like.parts():
        out = _moved(part, last, rows, 0.0)[1]
        log_z[rows] = out[0]
        by_row[:, rows] = part.weight * np.array([-out[1], out[2], out[3]])
    P, eta = w * last.site[0], w * last.site[1]
    # 1/2 eta'A eta, as the maximum it is: the rounding of h then counts squared only
    quadratic = float(eta @ h) - 0.5 * float(last.a @ h + P @ h**2)
    objective = float(w @ log_z) - 0.5 * cov.log_det + quadratic
    return objective, by_row


def _bound(cov: Covariance, like: Likelihood, last: _Sweep) -> tuple[float, np.ndarray]:
    """Return (27) and (28)-(30) by row."""
    expected, by_row = expectations(like, last.h, last.A)
    divergence = cov.log_det + last.q.sum() + float(last.a @ last.h) - last.h.size
    return expected - 0.5 * float(divergence), by_row


def extrapolated(
    history: Sequence[tuple[np.ndarray, np.ndarray]], unit: np.ndarray
) -> np.ndarray:
    """Return the sites at which the change of a sweep, linear in the sites as the last
    sweeps show it, is least in these units.

    A precision falls to a tenth at most.
    """
    before, change = history[-1]
    site: np.ndarray = before + change
    if len(history) < 2:
        return site
    # least squares over all rows are those of the triangular factors of some at a time
    parts = list(strips(site.shape[1], ROWS))
    R = np.concatenate([_triangular(history, unit, rows) for rows in parts])
    # rcond, because sweeps near the fixed point change sites along one direction.
    share = np.linalg.lstsq(R[:, :-1], R[:, -1], rcond=1e-8)[0]
    for rows in parts:
        after = site[:, rows].copy()
        for t, (a, b) in zip(share, pairwise(history), strict=True):
            step = sum(y[:, rows] - x[:, rows] for x, y in zip(a, b, strict=True))
            site[:, rows] -= t * step
        # An extrapolated precision may be negative; NaN counts as a fall, too.
        falls = ~(site[0, rows] > 0.1 * after[0])
        site[:, rows][:, falls] = after[:, falls]
    return site


def _triangular(
    history: Sequence[tuple[np.ndarray, np.ndarray]], unit: np.ndarray, rows: slice
) -> np.ndarray:
    """Return R of a QR factorisation: how changes differ from sweep to sweep, and the
    last.
    """
    changes = [(unit[:, rows] * change[:, rows]).ravel() for _, change in history]
    columns = [*(d - c for c, d in pairwise(changes)), changes[-1]]
    return np.asarray(np.linalg.qr(np.column_stack(columns), mode="r"))


def expectations(
    like: Likelihood, h: np.ndarray, A: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return sum_i w_i int N(f; h_i, A_i) log P df and how it changes, by
    Gauss-Hermite.
    """
    from numpy.polynomial.hermite import hermgauss  # slow to import, seldom used

    total, by_row = np.zeros(h.size), np.zeros((3, h.size))
    for x, share in zip(*hermgauss(_NODES), strict=True):
        f = h + np.sqrt(2 * A) * x
        log_p, g, _ = like.loss(f)
        upper, noise = like.derivatives(f)[:2]
        total += share * log_p
        by_row += share * np.array([-g, upper, noise])
    by_row *= like.weight / np.sqrt(np.pi)
    return float(like.weight @ total) / np.sqrt(np.pi), by_row
