"""The mean loss of a linear cumulative model, with its gradient and Hessian.

With a and b the predictors eta_ij of (1) in `design` on the two sides of rank y_i,

    loss = -(1/W) sum_i w_i log(F(a_i) - F(b_i)) + l2/2 |beta|^2                     (2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from .._numerics.tails import normal_cdf, normal_quantile
from .._solvers import _cumulative
from .bordered import Bordered, tridiagonal
from .design import Design, prices

Link = Literal["logit", "probit", "cloglog", "loglog", "cauchit"]
_BLOCK = 1 << 17  # entries of the scores held at a time, which stay in the cache
_CHAIN = 100  # thresholds, from which on their Hessian is made and solved by blocks
# Rows with which a fit takes longer than a thread may wait for its processor on a busy
# machine (tools/bench/busy.py)
_MANY = 16_384
_MIRROR = {"cloglog": "loglog", "loglog": "cloglog"}  # the others are symmetric


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """log P of rows and its derivatives by a and b, (n,) each.

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
    """Value and derivatives of the loss at a point.

    The value is infinite where a row has probability 0; derivatives are then undefined.
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: Bordered  # NONE where there are too many parameters for one


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
        self.link_number = _cumulative.LINKS.index(link)
        self.n_threads = n_threads if design.n_samples >= _MANY else 1
        self.price = np.zeros(design.n_parameters)
        q, qm, d, _ = design.sizes
        ridge = prices(l2, design.spread[design.location])
        self.price[q + qm : q + qm + d] = ridge
        columns = design.location, design.nominal, design.scale
        every = np.concatenate(columns)
        centre = design.centre[every]
        centre[every.size - design.scale.size :] = 0.0
        self._columns = columns, centre, 1 / design.spread[every]
        known = design.offset
        self._offset = np.zeros(design.n_samples) if known is None else known

    @property
    def is_convex(self) -> bool:
        """Return whether every local minimum is the global one."""
        return self.link != "cauchit" and not self.design.scale.size

    def start(self) -> np.ndarray:
        """Return the parameters of no effects."""
        return self.design.start(quantile(self.link, self.design.shares()))

    def terms(self, x: np.ndarray, rows: slice) -> Terms:
        """Return the terms of some rows."""
        D = self.design
        alpha, nu, beta, zeta = D.split(x)
        rank, s = D.rank[rows], np.exp(D.scale_columns(rows) @ zeta)
        cuts = D.J @ alpha - D.columns(rows, D.nominal) @ (D.J @ nu).T
        end = np.full((len(cuts), 1), np.inf)
        ends = np.hstack([-end, cuts, end])
        f, at = D.score(beta, rows), np.arange(len(cuts))
        above, below = D.offset_ends(rows)
        upper, lower = ends[at, rank + 1], ends[at, rank]
        a, b = (upper - (f + above)) / s, (lower - (f + below)) / s
        width = (upper - lower - (above - below)) / s
        out = np.empty((6, len(cuts)))
        _cumulative.row_terms(self.link_number, a, b, width, out, self.n_threads)
        return Terms(a, b, *out)

    def scores(self, x: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield gradients of log P of rows by x, some rows at a time: which, and (rows,
        p).

        A row of weight 0 has none, whatever its probability is.
        """
        D, zeta = self.design, self.design.split(x)[3]
        for rows in D.strips(max(1, _BLOCK // (x.size + D.T))):
            with np.errstate(all="ignore"):  # of rows without weight
                terms = self.terms(x, rows)
            N, X = D.columns(rows, D.nominal), D.columns(rows, D.location)
            Z = D.scale_columns(rows)
            s = np.exp(Z @ zeta)
            used = D.weight[rows] > 0
            rank = D.rank[rows]
            upper, lower = used & (rank < D.T), used & (rank > 0)
            by_a = np.where(upper, terms.g1, 0.0)
            by_b = np.where(lower, terms.g - terms.g1, 0.0)
            by_theta = np.zeros((len(X), D.T))
            by_theta[upper, rank[upper]] += by_a[upper] / s[upper]
            by_theta[lower, rank[lower] - 1] += by_b[lower] / s[lower]
            by_alpha = by_theta @ D.J
            by_nu = -by_alpha[:, :, None] * N[:, None, :]
            a = np.where(upper, terms.a, 0.0)
            b = np.where(lower, terms.b, 0.0)
            yield (
                rows,
                np.hstack(
                    [
                        by_alpha,
                        by_nu.reshape(len(X), by_alpha.shape[1] * N.shape[1]),
                        -((by_a + by_b) / s)[:, None] * X,
                        -(by_a * a + by_b * b)[:, None] * Z,
                    ]
                ),
            )

    @property
    def of_design(self) -> Callable[[Design], Likelihood]:
        """Return a function that makes the loss of other rows, without penalty."""
        return partial(Likelihood, link=self.link, l2=0.0, n_threads=1)

    def at(self, x: np.ndarray) -> Point:
        """Return value, gradient and Hessian, in one pass over the rows. O(n p^2)."""
        with np.errstate(all="ignore"):  # what is no number counts as out of reach
            sums = self._sums(x)
            value = -float(sums.value.sum()) / self.design.total
            value += 0.5 * float(self.price @ x**2)
            gradient = self._gradient(sums) + self.price * x
            hessian = self._hessian(sums)
            finite = np.isfinite(gradient).all() and hessian.is_finite()
        if not (finite and math.isfinite(value)):
            value = np.inf
        return Point(x, value, gradient, hessian)

    def _sums(self, x: np.ndarray) -> _Sums:
        D, (columns, centre, factor) = self.design, self._columns
        alpha, nu, beta, zeta = D.split(x)
        theta, slopes = D.J @ alpha, np.ascontiguousarray(D.J @ nu)
        gap = np.concatenate([[np.inf], np.diff(theta), [np.inf]])
        ends = np.zeros(_cumulative.padded(beta.size + zeta.size))
        ends[: beta.size] = beta
        rows, sums = _Sums.from_design(D)
        scratch = _cumulative.scratch_of_share(ends.size, D.nominal.size)
        _cumulative.sums(
            self.link_number, np.asarray(D.X), *columns, centre, factor,
            self._offset, D.rank, D.weight, theta, gap, slopes, ends, zeta, rows,
            np.empty((sums.value.size, scratch)), sums.value, sums.by_slot,
            sums.by_core, sums.diag, sums.off, sums.border, sums.core, self.n_threads,
        )  # fmt: skip
        return sums

    def _gradient(self, sums: _Sums) -> np.ndarray:
        by_slot = self.design.of_slots(sums.by_slot.sum(axis=0).reshape(-1, 1))
        by_core = sums.by_core.sum(axis=0)
        return np.concatenate([by_slot[:, 0], by_core]) / -self.design.total

    def _hessian(self, sums: _Sums) -> Bordered:
        parts = sums.diag, sums.off[:, :-1], sums.border, sums.core
        diag, off, border, core = (p.sum(axis=0) / -self.design.total for p in parts)
        return self.assembled(diag, off, border, np.tril(core) + np.tril(core, -1).T)

    def assembled(
        self, diag: np.ndarray, off: np.ndarray, border: np.ndarray, core: np.ndarray
    ) -> Bordered:
        """Return the Hessian, with the price, from that by the thresholds and their
        slopes.

        Parameters
        ----------
        diag, off : (T, M, M), (T - 1, M, M) arrays
            By a threshold, and by it and the next one.
        border : (T, M, D) array
            By a threshold and (beta, zeta).
        core : (D, D) array
            By (beta, zeta).
        """
        D, (T, M, C) = self.design, border.shape
        if D.is_flexible and T > _CHAIN:
            made = Bordered(diag, off, border, core, D.slots())
            return made.plus(self.price)
        U = D.n_parameters - C
        H = np.zeros((D.n_parameters, D.n_parameters))
        H[U:, U:] = core
        H[U:, :U] = D.of_slots(border.reshape(T * M, C)).T
        H[:U, :U] = D.of_slots(D.of_slots(tridiagonal(diag, off)).T)
        H = np.tril(H) + np.tril(H, -1).T
        return Bordered.all_core(H).plus(self.price)


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Results of `_cumulative.sums`: sums over shares of the rows, from zeros."""

    value: np.ndarray
    by_slot: np.ndarray
    by_core: np.ndarray
    diag: np.ndarray
    off: np.ndarray
    border: np.ndarray
    core: np.ndarray

    @classmethod
    def from_design(cls, D: Design) -> tuple[int, _Sums]:
        """Return the rows of a share, and zeros of the shapes of a design."""
        T, M, C = D.T, 1 + D.nominal.size, D.location.size + D.scale.size
        shapes = (), (T, M), (C,), (T, M, M), (T, M, M), (T, M, C), (C, C)
        held = sum(math.prod(shape) for shape in shapes)
        rows = _cumulative.share_of_rows(D.n_samples, held)
        shares = -(-D.n_samples // rows)
        return rows, cls(*(np.zeros((shares, *shape)) for shape in shapes))


def terms_of(link: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Log p and its derivatives, (6, n), as `_cumulative.row_terms` has them."""
    out = np.empty((6, a.size))
    with np.errstate(all="ignore"):
        width = np.where(np.isinf(a) | np.isinf(b), np.inf, a - b)
    a, b, width = (np.ascontiguousarray(v) for v in (a, b, width))
    _cumulative.row_terms(_cumulative.LINKS.index(link), a, b, width, out, 1)
    return out


def cumulative(link: str, t: np.ndarray) -> np.ndarray:
    """Return the distribution function F."""
    with np.errstate(over="ignore", under="ignore"):  # it tends to 0 or 1
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
    """Return 1 - F, with all digits where F is near 1: F(-t) of the mirrored link."""
    return cumulative(_MIRROR.get(link, link), -t)


def density(link: str, t: np.ndarray) -> np.ndarray:
    """Return the density F' of the distribution of a link."""
    if link == "logit":
        return np.asarray(cumulative(link, t) * cumulative(link, -t))
    if link == "probit":
        return np.asarray(np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi))
    if link == "cauchit":
        return np.asarray(1 / (math.pi * (1 + t * t)))
    t = -t if link == "loglog" else t
    return np.asarray(np.where(np.isinf(t), 0.0, np.exp(t - np.exp(t))))


def slope(link: str, t: np.ndarray) -> np.ndarray:
    """Return the slope of the density, F''."""
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
    """Return the quantile function F^-1."""
    if link == "cloglog":
        return np.asarray(np.log(-np.log1p(-p)))
    if link == "loglog":
        return np.asarray(-np.log(-np.log(p)))
    if link == "cauchit":
        return np.asarray(np.tan(math.pi * (p - 0.5)))
    if link == "probit":
        return normal_quantile(p)
    return np.asarray(np.log(p / (1 - p)))


def for_all_ranks(
    observed: np.ndarray, A: np.ndarray, first: float, last: float
) -> np.ndarray:
    """Expand values at the T thresholds between observed ranks to all r - 1.

    The last dimension is expanded: `first` and `last` apply beyond the observed ranks,
    and a rank without rows in between has the same value on both sides.
    """
    ends = [np.full((*A.shape[:-1], 1), end) for end in (first, last)]
    every = np.concatenate([ends[0], A, ends[1]], axis=-1)
    return np.asarray(every[..., np.cumsum(observed)[:-1]])


def rank_probabilities(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Return P(y = j), (..., r), from P(y <= j) and P(y > j), (..., r - 1)."""
    zero = np.zeros((*below.shape[:-1], 1))
    below = np.concatenate([zero, below, zero + 1], axis=-1)
    above = np.concatenate([zero + 1, above, zero], axis=-1)
    lower, upper = np.diff(below, axis=-1), -np.diff(above, axis=-1)
    # a difference of two numbers near 1 has no digits
    return np.asarray(np.where(below[..., 1:] < 0.5, lower, upper))
