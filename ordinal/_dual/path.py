"""Programs along a path: each is solved from the solution of the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor
from .driver import Pivoting, Solution, solve
from .gram import Gram
from .program import Program, ahead, near


def along(
    gram: Gram,
    programs: Sequence[Program],
    *,
    tol: float,
    max_iter: int,
    n_threads: int,
    monitor: Monitor,
    begin: np.ndarray | None = None,
    starts: Sequence[np.ndarray] | None = None,
) -> Iterator[Solution]:
    """Return the solution of every program, as `solve` finds it, begun ahead of that of
    the one before, and the first at `begin`; or each of them at `starts`.
    """
    g, s = np.zeros_like(programs[0].lo) if begin is None else begin, None
    pivoting = [Pivoting(gram, programs[0].curvature, share=len(g)) for _ in g]
    for i, program in enumerate(programs):
        if starts is not None:
            g = starts[i]
        elif s is not None:
            g = near(ahead(s.g, s.f, programs[i - 1], program), program)
        with monitor.numbered("point", i, len(programs)):
            s = solve(
                gram,
                program,
                g,
                tol=tol,
                max_iter=max_iter,
                n_threads=n_threads,
                monitor=monitor,
                pivoting=pivoting,
                from_start=starts is not None,
            )
        monitor = monitor.after(int(s.n_iter.sum()))
        yield s


def values(
    program: Program, g: np.ndarray, f: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(P) and (D) of every problem, without prices, at g, feasible, its f = K beta,
    (P, n), and b, (P, T).
    """
    squared = np.einsum("pn,pn->p", g.sum(axis=1), f)
    primal = 0.5 * squared + program.loss(f, b)
    return primal, np.asarray(-0.5 * squared - program.phi(g))


def records(
    monitor: Monitor,
    status: Status,
    reached: np.ndarray,
    n_iter: np.ndarray,
    violation: np.ndarray,
    primal: np.ndarray,
    dual: np.ndarray,
) -> list[Convergence]:
    """Record the end of each problem.

    `status` applies to those that did not reach `tol`.
    """
    parts = []
    for p in range(reached.size):
        done = reached[p] and status is not Status.INDEFINITE
        own = Status.CONVERGED if done else status
        parts.append(monitor.record(own, n_iter[p], violation[p], primal[p], dual[p]))
    return parts
