"""The posterior of latent values by expectation propagation, and its evidence.

Sites t_i(f_i) = s_i exp(-p_i (f_i - m_i)^2 / 2) approximate P(y_i | f_i), Appendix B.
Given the other sites (the cavity, of mean h and variance lambda), each is chosen such
that cavity times site has the mean and the variance of cavity times P. All sites are
updated at once, so a sweep costs one factorisation. Sweeps converge linearly, and
extrapolation from the last three (Anderson's method) saves a third of them. After a
sweep that brings the posterior no nearer to its fixed point, the earlier ones are
forgotten; a second one in a row halves the step, which grows again with progress.

Near the fixed point of a dense Sigma, Newton steps replace most sweeps. To first order,
changes dW and d eta of the sites move the posterior by

    dh = A (d eta - dW h),    dA_ii = -sum_j A_ij^2 dW_j

so a sweep of this linear model costs n^2, and dozens of them need one factorisation.

A row of weight w stands for w rows of the same latent value, hence for w equal sites.
The cavity leaves out one of them, which requires w >= 1.

    log Z = sum_i w_i (log Z_i - log int N(h, lambda) t_i / s_i) + log int N(0, Sigma)
            prod_i (t_i / s_i)^w_i,    the last = -1/2 ln |B| + 1/2 eta'A eta

with eta = w p m. This is the product at the end of Appendix B without divisions by p.
At the fixed point its derivative by every site is 0, so its gradient is that at fixed
sites. The bound (27) has no such property: (28)-(30), which treat Q as constant, are
not its gradient.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .._numerics.rows import strips
from .._solvers import _ordinal_probit
from .._watch.cancellation import OutOfTime, never
from .covariance import Covariance, Dense
from .laplace import ROWS, Likelihood, Posterior

# changes of a mean or variance in a sweep, in units of the posterior's:
TOL = 1e-8  # tolerance near the optimum of the hyperparameters
LOOSE = 1e-5  # tolerance far from it
_USABLE = 1e-4  # largest change of a posterior that counts as converged
_MAX_SWEEPS = 300
_NEAR = 1.0  # violation below which a Newton step is tried
_GAIN = 0.5  # share of the violation that a successful Newton step may leave
_FAR = 10.0  # growth of the violation at which linear sweeps count as diverging
_INNER, _MAX_INNER = 0.01, 60  # violation at the end of linear sweeps; their number
_LEAST_STEP = 0.05
_MEMORY = 3  # sweeps used by the extrapolation
_NODES = 40  # nodes of the Gauss-Hermite sums in (27), (29), (30)


def expectation_propagation(
    cov: Covariance,
    like: Likelihood,
    state: np.ndarray | None,
    *,
    bound: bool = False,
    tol: float = TOL,
    late: Callable[[], bool] = never,
) -> Posterior:
    """Return EP's posterior and the derivatives of its evidence, or of the bound (27).

    Parameters
    ----------
    cov : Dense or LowRank
    like : Likelihood
    state : (2, n) array, optional
        Sites, p and p m, at which the sweeps start. Default: zeros.
    bound : bool
        Whether the objective is (27) and its slopes (28)-(30).
    tol : float
        Largest change of a mean or a variance, in units of the posterior's, at which
        sweeps end. The error of the evidence is proportional to its square, that of the
        gradient to itself.
    late : callable
        The sweeps end when it returns True, but not before the first.

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
    """Parallel update of all sites.

    Attributes
    ----------
    site : (2, n) array
        Sites before the update.
    change : (2, n) array
        Change of the sites.
    a : (n,) array
        Sigma^-1 h.
    h, A : (n,) arrays
        Posterior mean and variance before the update.
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

    If time runs out within a sweep, the one before it is returned, with a violation of
    inf: where it led was not computed.
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
            return replace(sweep, violation=np.inf), n_iter
        n_iter += 1
        left = sweep.violation
        # Sites that are not finite stay so.
        ended = left <= tol or not np.isfinite(left) or n_iter >= _MAX_SWEEPS
        if ended or late():
            return sweep, n_iter
        if not history and left > _GAIN * last:
            near = last / 4  # the Newton step came too early: it gained too little
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
    """Return the sites after a Newton step.

    They are the fixed point of sweeps with a posterior that is linear in the sites, of
    O(n^2) each. The error of the linear posterior is quadratic in the change.
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
        # Also NaN, and the changes of sites whose cavity is none: take the plain sweep.
        if not left < _FAR * sweep.violation or not np.isfinite(change).all():
            return np.asarray(sweep.site + sweep.change)
        if left <= end:
            break
    return np.asarray(site + change)


def _sweep(cov: Covariance, like: Likelihood, site: np.ndarray, step: float) -> _Sweep:
    """Return a sweep that moves every site by a share `step` of its full change."""
    # The product of the w equal sites of a row has w times their p and p m.
    posterior = cov.posterior(like.weight * site[1], like.weight * site[0])
    sweep = _Sweep(site, site, *posterior, violation=0.0)
    change, violation = _changes(like, sweep, step)
    return replace(sweep, change=change, violation=violation)


def _changes(like: Likelihood, sweep: _Sweep, step: float) -> tuple[np.ndarray, float]:
    """Return the changes of all sites, (2, n), and the violation."""
    change, violation = np.empty_like(sweep.site), np.float64(0)
    for rows, part in like.parts():
        after, out = _moved(part, sweep, rows, step)
        change[:, rows] = after - sweep.site[:, rows]
        violation = np.maximum(violation, out[4].max())  # which propagates NaN
    return change, float(violation)


def _moved(
    like: Likelihood, sweep: _Sweep, rows: slice, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sites of some rows after a sweep, and the other results of
    `_ordinal_probit.sites`, (5, rows).
    """
    w, q = like.weight, sweep.q[rows]
    after, out = sweep.site[:, rows].copy(), np.empty((5, w.size))
    _ordinal_probit.sites(
        sweep.h[rows], sweep.A[rows],
        1 - (1 - q) / w,  # 1 - A p of one of the w sites
        sweep.a[rows] / w, like.v, *like.places, after, out, step, like.n_threads,
    )  # fmt: skip
    return after, out


def _log_evidence(
    cov: Covariance, like: Likelihood, last: _Sweep
) -> tuple[float, np.ndarray]:
    """Return log Z and its derivatives by row (`Likelihood.slopes`)."""
    w, h, by_row = like.weight, last.h, np.empty((3, last.h.size))
    # A step of length 0 computes the moments of the tilted distributions only.
    log_z = np.empty_like(h)
    for rows, part in like.parts():
        out = _moved(part, last, rows, 0.0)[1]
        log_z[rows] = out[0]
        by_row[:, rows] = part.weight * np.array([-out[1], out[2], out[3]])
    P, eta = w * last.site[0], w * last.site[1]
    # 1/2 eta'A eta as the value of a maximum, where rounding errors of h enter squared
    quadratic = float(eta @ h) - 0.5 * float(last.a @ h + P @ h**2)
    objective = float(w @ log_z) - 0.5 * cov.log_det + quadratic
    return objective, by_row


def _bound(cov: Covariance, like: Likelihood, last: _Sweep) -> tuple[float, np.ndarray]:
    """Return the bound (27) and (28)-(30) by row."""
    expected, by_row = expectations(like, last.h, last.A)
    divergence = cov.log_det + last.q.sum() + float(last.a @ last.h) - last.h.size
    return expected - 0.5 * float(divergence), by_row


def extrapolated(
    history: Sequence[tuple[np.ndarray, np.ndarray]], unit: np.ndarray
) -> np.ndarray:
    """Return sites extrapolated from (site, change) of the last sweeps, oldest first.

    The change of a sweep is modelled as linear in the sites, and is least at the result
    in least squares with weights `unit` (2, n). No precision falls below a tenth of
    its value after the last sweep.
    """
    before, change = history[-1]
    site: np.ndarray = before + change
    if len(history) < 2:
        return site
    # The least-squares problem of all rows is that of the stacked triangular factors of
    # their parts, which takes less memory.
    parts = list(strips(site.shape[1], ROWS))
    R = np.concatenate([_triangular(history, unit, rows) for rows in parts])
    # rcond, because sweeps near the fixed point change sites along one direction.
    share = np.linalg.lstsq(R[:, :-1], R[:, -1], rcond=1e-8)[0]
    for rows in parts:
        after = site[:, rows].copy()
        for t, (a, b) in zip(share, pairwise(history), strict=True):
            step = sum(y[:, rows] - x[:, rows] for x, y in zip(a, b, strict=True))
            site[:, rows] -= t * step
        # An extrapolated precision may be negative, or NaN.
        falls = ~(site[0, rows] > 0.1 * after[0])
        site[:, rows][:, falls] = after[:, falls]
    return site


def _triangular(
    history: Sequence[tuple[np.ndarray, np.ndarray]], unit: np.ndarray, rows: slice
) -> np.ndarray:
    """Return R of the QR factorisation of some rows of the least-squares problem.

    Its columns are the differences of successive changes, and the last change.
    """
    changes = [(unit[:, rows] * change[:, rows]).ravel() for _, change in history]
    columns = [*(d - c for c, d in pairwise(changes)), changes[-1]]
    return np.asarray(np.linalg.qr(np.column_stack(columns), mode="r"))


def expectations(
    like: Likelihood, h: np.ndarray, A: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return sum_i w_i int N(f; h_i, A_i) log P df and its derivatives by row.

    The integrals are Gauss-Hermite sums.
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
