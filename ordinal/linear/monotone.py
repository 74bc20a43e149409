"""Monotone effects: increments between levels that have one sign.

A term mo(x) of the levels 0..K has an increment per level, d_k, of which the effect of
level l is d_1 + ... + d_l. With b the mean increment and s_k >= 0 of sum 1,

    d_k = K b s_k                                                                   (1)

so that the sign of b is that of the effect, and s says where it rises. The loss is
minimised over all d >= 0 and over all d <= 0, and the lower minimum taken. Each is
found by an active set: increments leave their bound 0 while the slope of the loss says
so, and return when a Newton fit of the free ones crosses it (Lawson and Hanson).

P.-C. Bürkner, E. Charpentier, "Modelling monotonic effects of ordinal predictors in
Bayesian regression models", British Journal of Mathematical and Statistical Psychology
73:420-451, 2020. C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", SIAM,
1995, chapter 23.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Protocol

import numpy as np

from .._cumulative.design import Design
from .._cumulative.newton import Loss, length_in_errors
from .estimates import TOL, refit
from .prepared import PreparedPom

_MOST_TERMS = 6  # whose signs are tried, all of them
_SLOPE = 10 * TOL  # in standard errors, above what a refit leaves


class Started(Loss, Protocol):
    """A loss that knows the parameters of no effects."""

    def start(self) -> np.ndarray: ...


def constrained(
    prepared: PreparedPom, asked: str, loss_of: Callable[[Design], Started]
) -> PreparedPom:
    """Return the arguments of a fit with the increments that are not at their bound."""
    coding = prepared.training.coding
    terms = [] if coding is None else list(coding.monotone.values())
    if not terms:
        return prepared
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
    design: Design, sign: np.ndarray, asked: str, loss_of: Callable[[Design], Started]
) -> tuple[np.ndarray, float]:
    """Return the free columns of the location, and the loss, at one set of signs."""
    every = design.location
    full, s = loss_of(design), sign[every]
    q, qm, d, _ = design.sizes
    own = slice(q + qm, q + qm + d)
    free = s == 0
    x = _fit(design, free, np.zeros(design.n_parameters), asked, loss_of)
    while True:
        here = full.at(x)
        slope = here.gradient[own] * s
        unit = np.sqrt(np.maximum(np.diag(here.hessian.dense())[own], 1e-300))
        gain = np.where(free, 0.0, slope / unit)
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
            share = np.where(crossed, old / np.where(crossed, old - new, 1.0), 1.0)
            x = x + share.min() * (there - x)
            stopped = crossed & (share <= share.min())
            free &= ~stopped
            x[own] = np.where(stopped, 0.0, x[own])
        x = there


def _fit(
    design: Design,
    free: np.ndarray,
    x: np.ndarray,
    asked: str,
    loss_of: Callable[[Design], Started],
) -> np.ndarray:
    """Return the parameters with some increments at 0, from those of a fit before."""
    q, qm, _, _ = design.sizes
    used = np.ones(x.size, dtype=bool)
    used[q + qm : q + qm + free.size] = free
    loss = loss_of(replace(design, location=design.location[free]))
    start = x[used] if x.any() else loss.start()
    out = np.zeros_like(x)
    out[used] = refit(loss, start, asked).point.x
    return out
