"""Fits of very many rows within a time: to the whole kernel matrix, or on a basis.

A solver of the quadratic program that is stopped early may be far from the optimum, and
further than the optimum on a basis is. Both are points of the same (P), so that its
value tells which of them is nearer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from .._input.basis import BasisChoice
from .._input.problem import Problem
from .._input.types import Kernel
from .._model.convergence import Convergence, Status
from .._model.monitor import Monitor
from ..kernels import Precomputed

_MANY = 20_000  # rows, from which on a basis may be of use

_SHARE = 0.5  # of the time, for the whole kernel matrix
# Seconds of a fit of one problem to n rows on m basis rows are below n m^2 times this.
# Half of the time that is left is not planned for, lest others use the processor
_COST = 5e-10
_LEAST, _MOST = 50, 2000  # basis rows
_GAP = 1e-3  # relative, on the basis, whose distance from the whole kernel is larger
_EACH = 0.3  # of the work of one problem more on the same features


def takes_basis_in_time(problem: Problem, kernel: Kernel, monitor: Monitor) -> bool:
    """Whether a fit to the whole kernel matrix may end as one on a basis."""
    many = problem.n_samples >= _MANY and not isinstance(kernel, Precomputed)
    return many and monitor.max_time is not None


class Fitted(Protocol):
    """A model that says how its fit ended."""

    @property
    def convergence(self) -> Convergence: ...


M = TypeVar("M", bound=Fitted)


def nearer_in_time(
    whole: Callable[[Monitor], tuple[M, Any]],
    on_basis: Callable[[BasisChoice, Monitor], M],
    n: int,
    monitor: Monitor,
    problems: int = 1,
) -> tuple[M, Any, Convergence]:
    """A model of n rows within the time of a monitor.

    Parameters
    ----------
    whole : callable
        A model of the whole kernel matrix, and what else is known of it, by a monitor.
    on_basis : callable
        A model on the basis that a choice means, by a monitor.
    problems : int
        How many are to be solved.

    Returns
    -------
    model, known : as of `whole`, or None for a model on a basis
    record : Convergence
        Of the whole kernel matrix: an upper end that is the value of the model.
    """
    model, known = whole(monitor.within(_SHARE))
    a = model.convergence
    if a.status is not Status.MAX_TIME:
        return model, known, a
    other = on_basis(_choice(n, monitor, problems), rough(monitor))
    if not other.convergence.primal < a.primal:
        return model, known, _later(a, monitor.seconds)
    return other, None, _replaced(a, other.convergence, monitor.seconds)


def rough(monitor: Monitor) -> Monitor:
    """The same watch for a fit on a basis."""
    return monitor.to_tol(max(_GAP, monitor.tol))


def _choice(n: int, monitor: Monitor, problems: int) -> BasisChoice:
    """As many rows as there is time for."""
    assert monitor.max_time is not None
    left = max(monitor.max_time - monitor.seconds, 0.0)
    work = n * (1 + _EACH * (problems - 1))
    m = math.isqrt(int(0.5 * left / (_COST * work)))
    return BasisChoice("random", min(max(m, _LEAST), _MOST))


def _later(a: Convergence, seconds: float) -> Convergence:
    if a.parts:
        return Convergence.of_parts([_later(part, seconds) for part in a.parts])
    return replace(a, seconds=seconds)


def _replaced(a: Convergence, b: Convergence, seconds: float) -> Convergence:
    """The record of a whose model gave way to that of b."""
    if a.parts:
        pairs = zip(a.parts, b.parts, strict=True)
        return Convergence.of_parts([_replaced(p, q, seconds) for p, q in pairs])
    if b.primal == a.primal == 0:  # a problem without rows
        return replace(a, seconds=seconds)
    return replace(
        a, status=Status.MAX_TIME, n_iter=a.n_iter + b.n_iter, primal=b.primal,
        seconds=seconds,
    )  # fmt: skip
