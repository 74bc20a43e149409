"""Monotone effects: increments between levels that have one sign.

A term mo(x) of the levels 0..K has an increment per level, d_k, of which the effect of
level l is d_1 + ... + d_l. With b the mean increment and s_k >= 0 of sum 1,

    d_k = K b s_k                                                                   (1)

so that b has the sign of the effect, and s says between which levels it changes. The
loss is minimised over all d >= 0 and over all d <= 0, and the lower minimum is the fit.
Each is found by the active set method of Lawson and Hanson: increments leave their
bound 0 while the slope of the loss asks for it, and return to it when a Newton fit of
the free ones would cross it.

P.-C. Bürkner, E. Charpentier, "Modelling monotonic effects of ordinal predictors in
Bayesian regression models", British Journal of Mathematical and Statistical Psychology
73:420-451, 2020. C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", SIAM,
1995, chapter 23.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np

from .._cumulative.design import Design
from .._cumulative.fitting import length_in_errors
from ..inference.fitted import TOL, StartedLoss, refit
from .prepared import PreparedPom

_MOST_TERMS = 6  # all 2^6 combinations of their signs are fitted
_SLOPE = 10 * TOL  # slope of a bound increment, in standard errors, that is noise


LossOf: TypeAlias = Callable[[Design], StartedLoss]


def constrained(prepared: PreparedPom, asked: str, loss_of: LossOf) -> PreparedPom:
    """Return a prepared fit without the columns of increments at their bound 0.

    `loss_of` makes the loss of a design, and messages name the fit `asked`.
    """
    terms = list(prepared.training.monotone.values())
    if len(terms) > _MOST_TERMS:
        raise ValueError(f"a formula may have {_MOST_TERMS} terms mo(x) at most")
    found = []
    for signs in product((1.0, -1.0), repeat=len(terms)):
        sign = np.zeros(prepared.design.centre.size)
        for (_, columns), s in zip(terms, signs, strict=True):
            sign[list(columns)] = s
        found.append(_minimum(prepared.design, sign, asked, loss_of))
    location, _ = min(found, key=lambda end: end[1])
    return replace(prepared, design=replace(prepared.design, location=location))


def _minimum(
    design: Design, sign: np.ndarray, asked: str, loss_of: LossOf
) -> tuple[np.ndarray, float]:
    """Return the free columns of the location, and the minimum of the loss.

    `sign`, (D,), is the required sign of each column, and 0 for one without constraint.
    """
    every = design.location
    full, s = loss_of(design), sign[every]
    q, qm, d, _ = design.sizes
    own = slice(q + qm, q + qm + d)
    free = s == 0
    x = _fit(design, free, np.zeros(design.n_parameters), asked, loss_of)
    while True:
        here = full.at(x)
        slope = here.gradient[own] * s
        # Slopes are compared in standard errors, whatever the units of the columns.
        unit = np.sqrt(np.maximum(np.diag(here.hessian.dense())[own], 1e-300))
        gain = np.where(free, 0.0, slope / unit)
        # Release the bound increment along which the loss decreases fastest.
        k = int(gain.argmin())
        if length_in_errors(-(min(gain[k], 0.0) ** 2), design.total) <= _SLOPE:
            return every[free], here.value
        free[k] = True
        while True:
            there = _fit(design, free, x, asked, loss_of)
            old, new = x[own] * s, there[own] * s
            crossed = free & (s != 0) & (new <= 0)
            if not crossed.any():
                break
            # Go as far towards the fit as all increments allow, and bind the first.
            share = np.where(crossed, old / np.where(crossed, old - new, 1.0), 1.0)
            x = x + share.min() * (there - x)
            stopped = crossed & (share <= share.min())
            free &= ~stopped
            x[own] = np.where(stopped, 0.0, x[own])
        x = there


def _fit(
    design: Design, free: np.ndarray, x: np.ndarray, asked: str, loss_of: LossOf
) -> np.ndarray:
    """Return the parameters of the fit of the free columns, started at x; others are 0.

    If x is 0, the fit starts without effects.
    """
    # The location follows thresholds and nominal effects in the parameters.
    q, qm, _, _ = design.sizes
    used = np.ones(x.size, dtype=bool)
    used[q + qm : q + qm + free.size] = free
    loss = loss_of(replace(design, location=design.location[free]))
    start = x[used] if x.any() else loss.start()
    out = np.zeros_like(x)
    out[used] = refit(loss, start, asked).point.x
    return out
