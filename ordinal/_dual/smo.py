"""Box-constrained quadratic programs with one equality and piecewise-linear terms.

    min_g  1/2 g'Kg + sum_i phi_i(g_i)   s.t.  sum_i g_i = 0,  lo_i <= g_i <= hi_i   (Q)

phi_i(v) = pp_i v for v >= 0 and pn_i v for v < 0, with pn_i <= pp_i. C-SVC, eps-SVR and
every rank of NPSVOR are of this form. With G = Kg and the one-sided slopes

    R_i = G_i + phi_i'(g_i+)  where g_i < hi_i, else +inf
    L_i = G_i + phi_i'(g_i-)  where g_i > lo_i, else -inf

a feasible g is optimal iff violation = max L - min R <= 0                         (KKT)

and any b in [-min R, -max L] is then a multiplier of the equality: the intercept of
the decision function. `solve` works on several problems over one K at once: SMO by
blocks (`_solvers/_smo.pyx`), Newton steps on all free variables or pivots of an active
set (`_solvers/_active_set.pyx`) where SMO turns slow, and at the end G afresh from the
kernel in double, which is what is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._model.convergence import Status
from .._model.monitor import Monitor
from .._solvers import _smo
from .driver import AIM, PATIENCE, Face, block_size, curves_down, run, verdict
from .gram import Gram
from .newton import step_on_face


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What `solve` reached. Arrays have one entry a problem; g and G are (r, n)."""

    g: np.ndarray
    G: np.ndarray  # Kg, from the kernel in double
    b: np.ndarray
    violation: np.ndarray
    n_iter: np.ndarray  # pair steps, Newton steps and pivots
    status: Status


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
    faces: Sequence[Face] | None = None,
) -> Solution:
    """Solve (Q) for every row of g, which is feasible and is overwritten.

    Stops at violation <= tol for each, or after max_iter steps of one problem. The
    result does not depend on n_threads. `faces` are those of the last fit of a path.
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
            blocks[k], AIM * tol, max_iter, PATIENCE,
        )
        for k in range(r)
    ]  # fmt: skip
    space = _smo.Workspace(n, q, n_threads)
    R_min, L_max = np.zeros(r), np.full(r, np.inf)

    def advance(seconds: float, threads: int) -> None:
        _smo.advance_all(tasks, space, seconds, threads)

    if faces is None:
        faces = [Face(gram, np.zeros(1), r) for _ in range(r)]
    for task, face in zip(tasks, faces, strict=True):
        face.equip(task)

    def leap(k: int) -> int:
        if not tasks[k].pivots:
            return int(newton_step(gram, *problem(k)))
        return faces[k].minimise(tasks[k], *problem(k), tol=tol, max_iter=max_iter)

    def judge() -> np.ndarray:
        """Violations, from the kernel itself."""
        G[:] = gram.product(g)
        for k in range(r):
            R, L = slopes(*problem(k))
            R_min[k], L_max[k] = R.min(), L.max()
        return L_max - R_min

    violation, stopped = run(
        tasks, g, advance, leap, judge,
        gram=gram, tol=tol, n_threads=n_threads, monitor=monitor,
    )  # fmt: skip
    short = bool((violation > tol).any())
    return Solution(
        g=g,
        G=G,
        b=-0.5 * (R_min + L_max),
        violation=violation,
        n_iter=np.array([t.steps for t in tasks]),
        status=verdict(tasks, curves_down(gram, g, G), short, stopped),
    )


def slopes(g, G, lo, hi, pn, pp) -> tuple[np.ndarray, np.ndarray]:
    """R and L of the module docstring."""
    R = np.where(g < hi, G + np.where(g < 0, pn, pp), np.inf)
    L = np.where(g > lo, G + np.where(g > 0, pp, pn), -np.inf)
    return R, L


def newton_step(gram: Gram, g, G, lo, hi, pn, pp) -> bool:
    """Move g to the minimiser of (Q) over the variables that are free or want to be.

    Each such variable i may move within one linear piece of phi_i. Updates g and G;
    returns whether they moved.
    """
    R, L = slopes(g, G, lo, hi, pn, pp)
    mid = 0.5 * (R.min() + L.max())
    inside = (g > lo) & (g < hi) & ((g != 0) | (pn == pp))
    grows, shrinks = ~inside & (R < mid), ~inside & (L > mid)
    W = np.flatnonzero(inside | grows | shrinks)
    if not 2 <= W.size <= gram.capacity:
        return False
    at, lo, hi, pn, pp = (a[W] for a in (g, lo, hi, pn, pp))
    up = (inside[W] & (at >= 0)) | (grows[W] & (at >= 0)) | (shrinks[W] & (at > 0))
    kinked = pn != pp
    left = np.where(grows[W], at, np.where(kinked & up, np.maximum(lo, 0), lo))
    right = np.where(shrinks[W], at, np.where(kinked & ~up, np.minimum(hi, 0), hi))
    slope = G[W] + np.where(up, pp, pn)
    new = step_on_face(gram.block(W), slope, at, left, right, np.ones((W.size, 1)))
    if new is None:
        return False
    g[W] = new
    gram.add_rows(W, new - at, G)
    return True
