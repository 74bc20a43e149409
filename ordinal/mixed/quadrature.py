"""Number of quadrature nodes of a mixed model, and checks of its integrals.

With n_quadrature="auto", a factor with one effect is fitted with 1, 5, 9, 15 and 25
nodes, each from the last optimum, until more nodes move no estimate by more than
`_MOVE` of its standard error, and the log-likelihood by less than `_GAIN`. Groups whose
rows all have one rank, and with cauchit all groups, are integrated by panels
(`panels`). Other effects have the Laplace approximation, which one evaluation with
`_CHECK` nodes per dimension checks where quadrature is possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Literal, TypeAlias

import numpy as np

from .._input.checks import check_count, shown
from .._input.warning import warn
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from ..exceptions import ApproximationWarning
from .elimination import RandomTerm, is_nested
from .likelihood import MixedLikelihood
from .search import VarianceSearch, with_effect_first

Nodes: TypeAlias = int | Literal["auto"]

MOST_NODES = 100
_MOST_EFFECTS = 3  # of one factor, for quadrature
_COUNTS = 1, 5, 9, 15, 25
_CHECK = 9
_MOVE, _GAIN = 0.01, 0.05
_FEW_ROWS = 5  # rows per group below which Laplace's error matters
LARGE = 4.0  # deviation, relative to the noise, from which divergence is looked for
_VAGUE = 0.5  # relative standard error of a deviation from which it is looked for
_STEPS = 60  # of a fit with a fixed deviation
_SAME = 1e-4  # decrease of a log-likelihood that may be an error of its optimum


def read_nodes(value: Any) -> Nodes:
    """Return a checked `n_quadrature`."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(
                f"n_quadrature must be 'auto' or a number of nodes, got {shown(value)}"
            )
        return "auto"
    count = check_count("n_quadrature", value)
    if count > MOST_NODES:
        raise ValueError(f"n_quadrature must be at most {MOST_NODES}, got {count}")
    return count


def has_quadrature(terms: Sequence[RandomTerm]) -> bool:
    """Return whether the integrals over these effects may have more than one node."""
    few = sum(term.q for term in terms) <= _MOST_EFFECTS
    return few and (len(terms) == 1 or is_nested(terms))


def is_panelled(nodes: Nodes, terms: Sequence[RandomTerm]) -> bool:
    """Return whether the fit finds the number of nodes, and groups have panels."""
    return nodes == "auto" and len(terms) == 1 and terms[0].q == 1


def with_enough_nodes(search: VarianceSearch, x: np.ndarray) -> np.ndarray:
    """Raise the number of nodes of a search until its optimum stays where it is.

    Returns the optimum. Warns if it still moves at the largest number.
    """
    search.refine(x)
    free = search.free
    errors = np.sqrt((search.units[np.ix_(free, free)] ** 2).sum(axis=1))
    value, moved, gain = search.value, 0.0, 0.0
    for count in _COUNTS[1:]:
        if search.ended:
            return x
        search.loss = search.loss.replaced(n_quadrature=count)
        there = search.minimum(x)
        moved = float((np.abs(there - x)[free] / errors).max(initial=0.0))
        gain = abs(search.value - value)
        x, value = there, search.value
        if moved <= _MOVE and gain < _GAIN:
            return x
    if not search.ended:
        warn(
            f"fit_clmm: with {_COUNTS[-1]} instead of {_COUNTS[-2]} quadrature nodes "
            f"an estimate moves by {moved:.2g} standard errors and the log likelihood "
            f"by {gain:.2g}: pass a larger n_quadrature, up to {MOST_NODES}",
            ApproximationWarning,
        )
    return x


def check_laplace(
    loss: MixedLikelihood, x: np.ndarray, names: Sequence[str], monitor: Monitor
) -> None:
    """Warn if the Laplace approximation of an automatic fit may be poor at x.

    `names` are those of the factors.
    """
    if not has_quadrature(loss.terms):
        used = loss.design.weight > 0
        for name, term in zip(names, loss.terms, strict=True):
            rows = np.bincount(term.group[used], minlength=term.n_levels)
            mean = float(rows[rows > 0].mean())
            if mean < _FEW_ROWS:
                warn(
                    f"fit_clmm: {name} has {mean:.2g} rows per group, for which the "
                    "Laplace approximation may underestimate standard deviations, by "
                    "10 % and more; quadrature is possible for one factor or two "
                    f"nested ones with at most {_MOST_EFFECTS} effects: "
                    "n_quadrature=1 accepts this",
                    ApproximationWarning,
                )
                return
        return
    try:
        with monitor.limited(Monitor.GRACE):
            value = loss.value(x)
            exact = loss.replaced(n_quadrature=_CHECK).value(x)
    except OutOfTime:
        return
    if not abs(exact - value) < _GAIN:
        warn(
            f"fit_clmm: the log likelihood of the Laplace approximation moves by "
            f"{value - exact:+.2g} with {_CHECK} quadrature nodes per dimension: pass "
            f"n_quadrature={_CHECK} for estimates by these; n_quadrature=1 accepts "
            "Laplace's",
            ApproximationWarning,
        )


def diverging(
    search: VarianceSearch, x: np.ndarray, V: np.ndarray | None, noise: float
) -> tuple[int, float] | None:
    """Return the number of a factor whose variance diverges, and a deviation, or None.

    It diverges if the log-likelihood is not lower at twice the deviation, with all
    other parameters at their optimum. One effect is integrated by the largest number of
    nodes and by panels, because Laplace's log-likelihood can exceed its supremum.
    Deviations that are neither large nor vague are not looked at. If the time is up,
    the status of the search says so.
    """
    loss = search.loss
    if len(loss.terms) == 1 and loss.terms[0].q == 1:
        loss = loss.replaced(n_quadrature=_COUNTS[-1], by_panels=True)
    lambdas, p = loss.lambdas(x), loss.design.n_parameters
    place = np.cumsum(search.free) - 1
    for t, (L, term) in enumerate(zip(lambdas, loss.terms, strict=True)):
        for j in range(term.q):
            sd = float(np.sqrt((L[j] ** 2).sum()))
            own, there, index = with_effect_first(loss, x, t, j)
            is_vague = V is None
            if V is not None and term.q == 1 and search.free[index]:
                error = math.sqrt(V[place[index], place[index]])
                is_vague = error > _VAGUE * sd
            if sd == 0 or not (sd > LARGE * noise or is_vague):
                continue
            others = VarianceSearch(
                own, search.units * max(1.0, sd / noise), _STEPS, search.monitor
            )
            others.free = search.free.copy()
            others.free[index] = False
            if not _is_finite(own, there):
                continue  # the optimum of an approximation that has no accurate value
            there = others.minimum(there)
            value, twice = others.value, there.copy()
            if others.status in (Status.MAX_TIME, Status.STOPPED):
                search.status = others.status
                return None
            # Far out, thresholds and coefficients grow with the deviation.
            twice[: p - loss.design.scale.size] *= 2.0
            twice[index] *= 2.0
            others.n_iter = 0
            if not _is_finite(own, twice):
                continue
            others.minimum(twice)
            # Twice the deviation may be short of its optimum, which is higher still.
            if others.value <= value + _SAME:
                return t, sd
            if others.status in (Status.MAX_TIME, Status.STOPPED):
                search.status = others.status
                return None
    return None


def _is_finite(loss: MixedLikelihood, x: np.ndarray) -> bool:
    """Return whether a search may begin at x: cloglog and loglog overflow far out."""
    value, gradient = loss.value_and_gradient(x)
    return math.isfinite(value) and bool(np.isfinite(gradient).all())


def final_value(
    loss: MixedLikelihood, x: np.ndarray, monitor: Monitor
) -> tuple[MixedLikelihood, float]:
    """Return the value at x, or that of the Laplace approximation if the time is over
    before; also return the loss that it belongs to.
    """
    try:
        with monitor.limited(Monitor.GRACE) if loss.n_quadrature > 1 else nullcontext():
            return loss, loss.value_and_gradient(x)[0]
    except OutOfTime:
        loss = loss.replaced(n_quadrature=1, by_panels=False)
        return loss, loss.value_and_gradient(x)[0]
