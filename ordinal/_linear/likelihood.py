"""The mean loss of a linear cumulative model, with its gradient and Hessian.

With a and b the predictors eta_ij of (1) in `design` on the two sides of rank y_i,

    loss = -(1/W) sum_i w_i log(F(a_i) - F(b_i)) + l2/2 |beta|^2                     (2)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._numerics.tails import normal_cdf
from .._solvers import _cumulative
from .design import Design

Link = Literal["logit", "probit", "cloglog", "loglog", "cauchit"]
LINKS = "logit", "probit", "cloglog", "loglog", "cauchit"
_MANY = 4096  # rows, below which starting threads costs more than the work
_MIRROR = {"cloglog": "loglog", "loglog": "cloglog"}  # the others are symmetric


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """log P of every row and its derivatives by a and b, (n,) each.

    g = d/da + d/db and g1 = d/da; c1 = d2/da2 + d2/dadb, c2 = d2/db2 + d2/dadb and
    h12 = d2/dadb: sums that would cancel where a and b are close.
    """

    a: np.ndarray
    b: np.ndarray
    log_p: np.ndarray
    g: np.ndarray
    g1: np.ndarray
    c1: np.ndarray
    c2: np.ndarray
    h12: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Where the loss was evaluated. The value is infinite, and the derivatives are
    nothing, where a row has no probability."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: np.ndarray


class Likelihood:
    """(2) of one training set, over the parameters of the centred and scaled columns.

    Parameters
    ----------
    design : Design
    link : Link
    l2 : float
        Of beta in the units of the features.
    n_threads : int
    """

    def __init__(self, design: Design, link: Link, l2: float, n_threads: int):
        self.design, self.link, self.l2 = design, link, l2
        self.n_threads = n_threads if design.n_samples >= _MANY else 1
        self.price = np.zeros(design.n_parameters)
        q, qm, d, _ = design.sizes
        self.price[q + qm : q + qm + d] = l2 / design.spread[design.location] ** 2

    @property
    def is_convex(self) -> bool:
        """Whether every local minimum is the minimum."""
        return self.link != "cauchit" and not self.design.scale.size

    def start(self) -> np.ndarray:
        """The parameters of no effects."""
        return self.design.start(quantile(self.link, self.design.shares()))

    def terms(self, x: np.ndarray) -> Terms:
        """Of every row."""
        D = self.design
        alpha, nu, beta, zeta = D.split(x)
        X = (np.asarray(D.X) - D.centre) / D.spread
        cuts = (D.J @ alpha)[None, :] - X[:, D.nominal] @ (D.J @ nu).T
        ends = np.column_stack([
            np.full(D.n_samples, -np.inf), cuts, np.full(D.n_samples, np.inf)
        ])  # fmt: skip
        f = X[:, D.location] @ beta + (0 if D.offset is None else D.offset)
        s = np.exp(np.asarray(D.X)[:, D.scale] / D.spread[D.scale] @ zeta)
        rows = np.arange(D.n_samples)
        a = (ends[rows, D.rank + 1] - f) / s
        b = (ends[rows, D.rank] - f) / s
        width = (ends[rows, D.rank + 1] - ends[rows, D.rank]) / s
        out = np.empty((6, D.n_samples))
        number = _cumulative.LINKS.index(self.link)
        _cumulative.row_terms(number, a, b, width, out, self.n_threads)
        return Terms(a, b, *out)

    def at(self, x: np.ndarray) -> Point:
        """Value, gradient and Hessian. O(n p^2)."""
        with np.errstate(all="ignore"):  # what is no number counts as out of reach
            point = self._at(x)
        if np.isfinite(point.gradient).all() and np.isfinite(point.hessian).all():
            return point
        return Point(x, np.inf, point.gradient, point.hessian)

    def _at(self, x: np.ndarray) -> Point:
        D, p = self.design, self.design.n_parameters
        t = self.terms(x)
        w = D.weight / D.total
        used = w > 0
        value = -float(w[used] @ t.log_p[used]) + 0.5 * float(self.price @ x**2)
        if not math.isfinite(value):
            return Point(x, np.inf, np.full(p, np.nan), np.full((p, p), np.nan))
        U, V, Z = self._slopes(x, t)
        h11, h22 = t.c1 - t.h12, t.c2 - t.h12
        g2 = t.g - t.g1
        gradient = -((w * t.g1) @ U + (w * g2) @ V) + self.price * x
        H = (w * h11)[:, None] * U + (w * t.h12)[:, None] * V
        hessian = U.T @ H + V.T @ ((w * t.h12)[:, None] * U + (w * h22)[:, None] * V)
        # a and b themselves curve: both fall with sigma as they are, da/dx by -1
        by_scale = (w * t.g1)[:, None] * U + (w * g2)[:, None] * V
        k = Z.shape[1]
        if k:
            block = by_scale.T @ Z
            curve = np.zeros_like(hessian)
            curve[:, p - k :] -= block
            curve[p - k :, :] -= block.T
            curve[p - k :, p - k :] += block[p - k :]
            hessian += curve
        return Point(x, value, gradient, np.diag(self.price) - hessian)

    def _slopes(
        self, x: np.ndarray, t: Terms
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """da/dx and db/dx of every row, (n, p), and the columns of the scale."""
        D = self.design
        X = (np.asarray(D.X) - D.centre) / D.spread
        Z = np.asarray(D.X)[:, D.scale] / D.spread[D.scale]
        s = np.exp(Z @ D.split(x)[3])[:, None]
        N = -X[:, D.nominal]
        ends = np.vstack([np.zeros_like(D.J[0]), D.J, np.zeros_like(D.J[0])])

        def side(cut: np.ndarray, eta: np.ndarray, inner: np.ndarray) -> np.ndarray:
            J = ends[cut]
            nominal = (J[:, :, None] * N[:, None, :]).reshape(len(J), -1)
            whole = np.hstack([J / s, nominal / s, -X[:, D.location] / s,
                               -np.where(inner, eta, 0.0)[:, None] * Z])  # fmt: skip
            return np.where(inner[:, None], whole, 0.0)

        return (
            side(D.rank + 1, t.a, D.rank < D.T),
            side(D.rank, t.b, D.rank > 0),
            Z,
        )


def cumulative(link: str, t: np.ndarray) -> np.ndarray:
    """F."""
    with np.errstate(over="ignore"):
        if link == "logit":
            near = np.exp(-np.abs(t))
            return np.asarray(np.where(t > 0, 1, near) / (1 + near))
        if link == "probit":
            return normal_cdf(t)
        if link == "cloglog":
            return np.asarray(-np.expm1(-np.exp(t)))
        if link == "loglog":
            return np.asarray(np.exp(-np.exp(-t)))
    return np.asarray(np.arctan2(1, -t) / math.pi)


def exceeding(link: str, t: np.ndarray) -> np.ndarray:
    """1 - F, with all digits where F is near 1: F(-t) of the mirrored link."""
    return cumulative(_MIRROR.get(link, link), -t)


def density(link: str, t: np.ndarray) -> np.ndarray:
    """F'."""
    if link == "logit":
        return np.asarray(cumulative(link, t) * cumulative(link, -t))
    if link == "probit":
        return np.asarray(np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi))
    if link == "cauchit":
        return np.asarray(1 / (math.pi * (1 + t * t)))
    t = -t if link == "loglog" else t
    return np.asarray(np.where(np.isinf(t), 0.0, np.exp(t - np.exp(t))))


def slope(link: str, t: np.ndarray) -> np.ndarray:
    """F''."""
    f = density(link, t)
    finite = np.where(np.isinf(t), 0.0, t)
    if link == "logit":
        return np.asarray(-f * np.tanh(finite / 2))
    if link == "probit":
        return np.asarray(-finite * f)
    if link == "cauchit":
        return np.asarray(-2 * math.pi * finite * f**2)
    if link == "loglog":
        return np.asarray(-f * (1 - np.exp(-finite)))
    return np.asarray(f * (1 - np.exp(finite)))


def quantile(link: str, p: np.ndarray) -> np.ndarray:
    """F^-1."""
    if link == "cloglog":
        return np.asarray(np.log(-np.log1p(-p)))
    if link == "loglog":
        return np.asarray(-np.log(-np.log(p)))
    if link == "cauchit":
        return np.asarray(np.tan(math.pi * (p - 0.5)))
    logit = np.log(p / (1 - p))
    if link == "logit":
        return np.asarray(logit)
    lo, hi = np.full_like(p, -40.0), np.full_like(p, 40.0)
    for _ in range(80):
        mid = (lo + hi) / 2
        below = normal_cdf(mid) < p
        lo, hi = np.where(below, mid, lo), np.where(below, hi, mid)
    return np.asarray(lo)
