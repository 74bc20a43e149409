"""The alternating direction method of multipliers for NPSVOR's duals, all at once.

    min_{g,z}  1/2 g'Kg + sum_i phi_i(z_i)   s.t.  g = z,  sum_i g_i = 0,  lo <= z <= hi

for several (lo, hi, phi) over one K. With the scaled dual variable u and penalty rho,

    q = z - u,  a = M q,  g = a - (sum a / sum m) m,  M = rho (K + rho I)^-1,  m = M 1
    z = clip(soft(g + u + shift, width), lo, hi)
    u = u + g - z

phi_i(v) = pp_i v above 0 and pn_i v below it, so that shift = -(pp + pn) / (2 rho) and
width = (pp - pn) / (2 rho). The multiplier of sum g = 0, the intercept b, is
rho sum a / sum m.

Wang et al. (see `npsvor`), Algorithm 2; (12) and (13) there lack their rho / 2. The
penalty method is Boyd et al., Foundations and Trends in ML 3(1):1-122, 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._solvers import _admm_updates
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .factors import Factor, NoFactor
from .program import Program


@dataclass(frozen=True, slots=True, eq=False)
class AdmmResult:
    """Arrays have one entry per problem."""

    g: np.ndarray  # (p, n), its sum 0, not yet in its box
    b: np.ndarray
    ratio: np.ndarray  # the larger residual over its allowance; <= 1 ends a problem
    n_iter: np.ndarray
    status: Status


def solve_admm(
    factor: Factor | NoFactor,
    programs: Sequence[Program],
    *,
    rho: float,
    e_abs: float,
    e_rel: float,
    max_iter: int,
    n_threads: int,
    monitor: Monitor,
) -> AdmmResult:
    """Iterate all problems of the programs, of one group each, until every one meets
    (19) and (20). The results are those of one program after the other; zeros where
    there was no time for a factor.
    """
    lo, hi, pn, pp = (
        np.concatenate([getattr(program, name)[:, 0] for program in programs])
        for name in ("lo", "hi", "pn", "pp")
    )
    p, n = lo.shape
    g_end, b = np.zeros((p, n)), np.zeros(p)
    ratio, n_iter = np.full(p, np.inf), np.zeros(p, np.int64)
    if isinstance(factor, NoFactor):
        return AdmmResult(g_end, b, ratio, n_iter, Status.MAX_TIME)
    m = factor.apply(np.ones((1, n)))[0]

    live = np.arange(p)  # problems that still iterate; the arrays below are theirs
    z, u = np.zeros((p, n)), np.zeros((p, n))
    shift, width = -(pp + pn) / (2 * rho), (pp - pn) / (2 * rho)
    status = Status.MAX_ITER
    for iteration in range(1, max_iter + 1):
        a = factor.apply(z - u)
        multiple = a.sum(axis=1) / m.sum()
        g = a - multiple[:, None] * m
        sums = np.empty((live.size, 5))
        _admm_updates.clip(g, z, u, shift, width, lo, hi, sums, n_threads)
        ratio[live] = _residual_ratio(sums, n, rho, e_abs, e_rel)
        n_iter[live], b[live], g_end[live] = iteration, rho * multiple, g
        stopped = monitor.stop(iteration, ratio[live].max())
        going = ratio[live] > 1
        if stopped is not None or not going.any():
            status = stopped or Status.CONVERGED
            break
        if not going.all():
            live = live[going]
            z, u, shift, width, lo, hi = (
                np.ascontiguousarray(x[going]) for x in (z, u, shift, width, lo, hi)
            )
    return AdmmResult(g=g_end, b=b, ratio=ratio, n_iter=n_iter, status=status)


def _residual_ratio(
    sums: np.ndarray, n: int, rho: float, e_abs: float, e_rel: float
) -> np.ndarray:
    """Return the larger residual of each problem over its allowance, (19) or (20)."""
    primal, dual, g_norm, z_norm, u_norm = np.sqrt(sums).T
    base = np.sqrt(n) * e_abs
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.fmax(
                primal / (base + e_rel * np.maximum(g_norm, z_norm)),
                rho * dual / (base + e_rel * rho * u_norm),
            )
        )
