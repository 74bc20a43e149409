"""Rows of mixed models: their likelihood at given random effects, and sums by level.

A random effect moves all predictors of a row by the same z'b. So the likelihood of the
random effects needs of each row log P and its derivatives by that one number, and the
derivatives of these by the row's thresholds. `MixedLikelihood` calls `terms`, `bends`
and `moves`, whose arguments are those of `LevelRows`, and `by_parameters`.

In stopping ratio and adjacent categories models, random effects subtract z'b from all
predictors eta_j of a row. With S the sum of all d/deta_j, the derivatives of
l = log P(y) by z'b are -S l, S S l and -S S S l, and each is the sum over j of

    d_j = dl/deta_j,   S d_j = d(S l)/deta_j,   S S d_j = d(S S l)/deta_j

which are also the derivatives that the gradient of the Laplace approximation takes
(`likelihood`). For stopping ratios l is a sum over the thresholds, of which each term
depends on one eta_j. For adjacent categories, with log odds g_j of eta_j,
g' = dg/deta, G_k = sum_(j >= k) g_j and means over the ranks k,

    d_j = g'_j (1(j >= y) - P(k <= j)),   S P(k <= j) = Cov(1(k <= j), S G_k)

and S of a covariance is the sum of those with one of both moved and of the third
central moment with S G_k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import Link, thirds_of
from .._numerics.rows import strips
from .._solvers import _cumulative, _level_sums
from ..linear.ratio_loss import (
    BLOCK,
    Family,
    likelihoods_of_odds,
    log_odds,
    row_terms,
    stage_ends,
    tail_sums,
)

_PART = 1024  # rows that one thread takes at once, in whole levels


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Random effects of the rows, sorted by the G levels of the first factor.

    Attributes
    ----------
    order : (n,) int64
        Place of each row in the design.
    group : (n,) int64
        Level of the first factor.
    levels : (G + 1,) int64
        First row of each level.
    Z : (n, q + R) array
        Columns of the first factor, then of the others.
    at, cell : (n, R) int64
        Number of the effect, of the m others, of each column of the others, and of its
        cell (`elimination`).
    m, width : int
        Number of the other effects, and of those per block of their covariance.
    """

    order: np.ndarray
    group: np.ndarray
    levels: np.ndarray
    Z: np.ndarray
    at: np.ndarray
    cell: np.ndarray
    m: int
    width: int


RowsOf: TypeAlias = Callable[[Design, Link, Layout, int], "IntervalRows | RatioRows"]


class IntervalRows:
    """Rows of cumulative models, whose rank is an interval of the latent variable.

    `terms` computes l and its derivatives, `bends` H and the third derivatives, and
    `moves` then the derivatives through k and H; their arguments are those of
    `LevelRows`.

    Attributes
    ----------
    n_direct : int
        Number of rows of `direct`: derivatives of each row of data that are summed up.

    Parameters
    ----------
    design : Design
    link : Link
    layout : Layout
    n_threads : int
    """

    n_direct = 4  # by eta, both thresholds and log s

    def __init__(self, design: Design, link: Link, layout: Layout, n_threads: int):
        self.design, every, order = design, slice(None), layout.order
        self.X, self.N = (
            design.columns(every, columns)[order]
            for columns in (design.location, design.nominal)
        )
        self.T = design.scale_columns(every)[order]
        self.offset = 0.0 if design.offset is None else design.offset[order]
        self.rank, self.first = (
            end[order].astype(np.int64) for end in (design.rank, design.first)
        )
        weight = design.weight[order]
        self.is_counted = weight > 0
        # Threads take whole levels, of about `_PART` rows.
        bounds = np.searchsorted(layout.levels, np.arange(0, len(order), _PART))
        bounds = np.unique(np.concatenate([bounds, [layout.levels.size - 1]]))
        bounds[0] = 0
        kernel = _level_sums.LevelRows(
            _cumulative.LINKS.index(link), weight, layout.Z, layout.at, layout.cell,
            layout.levels, bounds, layout.m, layout.width, np.zeros((9, len(order))),
            n_threads,
        )  # fmt: skip
        self.terms, self.bends, self.moves = kernel.terms, kernel.bends, kernel.moves

    def ends(self, x: np.ndarray) -> np.ndarray | None:
        """Return the ends of the rows without random effects, (4, n).

        These are the upper and the lower end, their distance, and 1 / s. The predictors
        of a row are (end - z'b) / s. Return None if thresholds cross.
        """
        D, rank, first, n = self.design, self.rank, self.first, self.rank.size
        alpha, nu, beta, zeta = D.split(x[: D.n_parameters])
        theta, f = D.J @ alpha, self.X @ beta + self.offset
        inner = np.minimum(rank, D.T - 1), np.maximum(first - 1, 0)
        up, low = (theta[k] for k in inner)
        if D.nominal.size:
            slopes = D.J @ nu
            up, low = (
                end - np.einsum("ij,ij->i", self.N, slopes[k])
                for end, k in zip((up, low), inner, strict=True)
            )
        has_up, has_low = rank < D.T, first > 0
        has_up, has_low = self.is_counted & has_up, self.is_counted & has_low
        ends = np.empty((4, n))
        ends[0] = np.where(has_up, up - f, np.inf)
        ends[1] = np.where(has_low, low - f, -np.inf)
        ends[2] = np.where(has_up & has_low, up - low, np.inf)
        ends[3] = np.exp(-(self.T @ zeta)) if D.scale.size else 1.0
        return ends if (ends[2] > 0).all() else None

    def by_parameters(
        self, direct: np.ndarray, cluster: np.ndarray | None = None, n_clusters: int = 1
    ) -> np.ndarray:
        """Return the gradients by alpha, nu*, beta and zeta, (p, n_clusters).

        `direct` are D_q of the rows, (4, n), and `cluster` is that of each sorted row;
        without it all rows are one.
        """
        D, C, (eta, up, low, spread) = self.design, n_clusters, direct
        M = 1 + D.nominal.size
        slots = np.zeros((D.T, M, C))
        cells = [
            rank if cluster is None else rank * C + cluster
            for rank in (self.rank, self.first)
        ]
        for j in range(M):
            sign = 1.0 if j == 0 else -self.N[:, j - 1]
            ends = (up, slice(None, -1)), (low, slice(1, None))
            for cell, (end, inner) in zip(cells, ends, strict=True):
                found = np.bincount(cell, sign * end, (D.T + 1) * C)
                slots[:, j] += found.reshape(D.T + 1, C)[inner]
        of_columns = (
            by_cluster(own, A, cluster, C)
            for own, A in ((eta, self.X), (spread, self.T))
        )
        return np.vstack([D.of_slots(slots.reshape(-1, C)), *of_columns])


def by_cluster(
    v: np.ndarray, A: np.ndarray, cluster: np.ndarray | None, n_clusters: int
) -> np.ndarray:
    """Return the sums of v_i A_i over the rows of each cluster, (k, n_clusters)."""
    if cluster is None:
        return np.asarray((v @ A)[:, None])
    sums = [np.bincount(cluster, v * a, n_clusters) for a in A.T]
    return np.array(sums).reshape(A.shape[1], n_clusters)


class RatioRows:
    """Rows of a ratio model for `MixedLikelihood`, in the place of `IntervalRows`.

    Parameters
    ----------
    family : Family
    design : Design
        With free thresholds and without scale effects.
    link : Link
    layout : Layout
    n_threads : int
        Not used: numpy computes in one thread.
    """

    def __init__(
        self, family: Family, design: Design, link: Link, layout: Layout, n_threads: int
    ):
        self.family, self.design, self.link, self.layout = family, design, link, layout
        every, order = slice(None), layout.order
        self.X = design.columns(every, design.location)[order]
        N = design.columns(every, design.nominal)[order]
        self.slots = np.hstack([np.ones((len(N), 1)), -N])
        self.offset = 0.0 if design.offset is None else design.offset[order]
        self.rank, self.weight = design.rank[order], design.weight[order]
        self.q = layout.Z.shape[1] - layout.at.shape[1]
        self.n_direct = design.T  # by eta of each threshold
        self.log_p, self.H = np.empty((2, len(N)))
        self.by_eta = np.empty((3, len(N), design.T))  # d_j, S d_j and S S d_j

    def ends(self, x: np.ndarray) -> np.ndarray:
        """Return the predictors of the rows without random effects, (n, T)."""
        alpha, nu, beta, _ = self.design.split(x[: self.design.n_parameters])
        eta = self.slots @ np.column_stack([alpha, nu]).T
        return np.asarray(eta - (self.X @ beta + self.offset)[:, None])

    def terms(
        self, ends: np.ndarray, b: np.ndarray, least: float, share: np.ndarray,
        direct: np.ndarray, value: np.ndarray, first: np.ndarray, second: np.ndarray,
        by_row: np.ndarray,
    ) -> None:  # fmt: skip
        """Compute l and its derivatives, as `LevelRows` does."""
        self._compute(ends, b, third=False)
        w, (d, S, _), group = self.weight, self.by_eta, self.layout.group
        if share.size:
            direct += w * share[group] * d.T
        value += np.bincount(group, w * self.log_p, value.size)
        by_row[0] = -w * d.sum(axis=1)
        by_row[1] = w * np.maximum(-S.sum(axis=1), least)
        self._add(first, by_row[0])
        for j in range(self.q):
            self._add(second[:, j], by_row[1] * self.layout.Z[:, j])

    def bends(
        self, ends: np.ndarray, b: np.ndarray, V: np.ndarray, beside: np.ndarray,
        rest: np.ndarray, first: np.ndarray, by_row: np.ndarray,
    ) -> None:  # fmt: skip
        """Compute H and the third derivatives, as `LevelRows` does."""
        self._compute(ends, b, third=True)
        group, at, cell = self.layout.group, self.layout.at, self.layout.cell
        z, others = np.split(self.layout.Z, [self.q], axis=1)
        self.H = np.einsum("ij,ijk,ik->i", z, V[group], z)
        if at.shape[1]:
            self.H += 2 * np.einsum("ir,irj,ij->i", others, beside[cell], z)
            between = rest[at[:, :, None], at[:, None, :] % self.layout.width]
            self.H += np.einsum("ir,irs,is->i", others, between, others)
        by_row[0] = -self.weight * self.H * self.by_eta[2].sum(axis=1)
        self._add(first, by_row[0])

    def moves(
        self, ends: np.ndarray, b: np.ndarray, k: np.ndarray, direct: np.ndarray,
        first: np.ndarray, second: np.ndarray, by_row: np.ndarray,
    ) -> None:  # fmt: skip
        """Compute the derivatives through k and H, as `LevelRows` does."""
        w, (d, S, SS) = self.weight, self.by_eta
        change = w / 2 * (self.H * SS.T - self._product(k) * S.T)
        direct += change
        by_row[0], by_row[1] = -change.sum(axis=0), -w / 2 * d.sum(axis=1)
        self._add(first, by_row[0])
        self._add(second, by_row[1])

    def by_parameters(
        self, direct: np.ndarray, cluster: np.ndarray | None = None, n_clusters: int = 1
    ) -> np.ndarray:
        """Return the gradients by alpha, nu and beta, (p, n_clusters).

        `direct` are the derivatives by the predictors of the rows, (T, n).
        """
        slots = [by_cluster(v, self.slots, cluster, n_clusters) for v in direct]
        location = by_cluster(-direct.sum(axis=0), self.X, cluster, n_clusters)
        return np.vstack([self.design.of_slots(np.vstack(slots)), location])

    def _compute(self, ends: np.ndarray, b: np.ndarray, third: bool) -> None:
        """Compute log P of the rows at effects b, and its derivatives."""
        shift, used = self._product(b), self.weight > 0
        for rows in strips(len(shift), max(1, BLOCK // ends.shape[1])):
            # Rows without weight may be out of reach.
            eta = np.where(used[rows, None], ends[rows] - shift[rows, None], 0.0)
            found = joint_terms(self.family, self.link, eta, self.rank[rows], third)
            self.log_p[rows], self.by_eta[: 2 + third, rows] = found

    def _product(self, b: np.ndarray) -> np.ndarray:
        """Return z_i'b of the rows, (n,)."""
        group, at = self.layout.group[:, None], self.layout.at
        first = (self.layout.levels.size - 1) * self.q
        own = np.hstack([group * self.q + np.arange(self.q), first + at])
        return np.asarray(np.einsum("ij,ij->i", self.layout.Z, b[own]))

    def _add(self, sums: np.ndarray, v: np.ndarray) -> None:
        """Add the sums of v_i z_i by level of the first factor, (G, q)."""
        for j in range(self.q):
            part = v * self.layout.Z[:, j]
            sums[:, j] += np.bincount(self.layout.group, part, len(sums))


def joint_terms(
    family: Family, link: str, eta: np.ndarray, rank: np.ndarray, third: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return log P(y) of rows, (n,), and its derivatives (d, S d) or, with the third
    ones, (d, S d, S S d), each (n, T).
    """
    if family == "adjacent":
        return _of_odds(link, eta, rank, third)
    log_p, *parts = row_terms(family, link, eta, rank)
    if third:
        is_u, is_v, upper, lower = stage_ends(family, eta, rank)
        t1, t2 = thirds_of(link, upper.ravel(), lower.ravel()).reshape(2, *eta.shape)
        parts.append(np.where(is_u, t1, np.where(is_v, t2, 0.0)))
    return log_p, np.stack(parts)


def _of_odds(
    link: str, eta: np.ndarray, rank: np.ndarray, third: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return `joint_terms` of adjacent categories."""
    if link == "logit":
        one = np.ones((1, eta.shape[1]))
        g, g1, g2, g3 = eta, one, 0 * one, 0 * one
    else:
        g, g1, g2 = log_odds(link, eta)
    log_p = likelihoods_of_odds(g)
    P = np.exp(log_p)

    def mean(A: np.ndarray) -> np.ndarray:
        return np.asarray((P * A).sum(axis=1, keepdims=True))

    def below(A: np.ndarray) -> np.ndarray:
        """Return the sums of P A over the ranks up to each threshold, (n, T)."""
        return np.asarray(np.cumsum((P * A)[:, :-1], axis=1))

    G1 = tail_sums(g1)
    G1 = G1 - mean(G1)
    own = (np.arange(eta.shape[1]) >= rank[:, None]) - below(np.ones((1, 1)))
    moved = below(G1)
    parts = [g1 * own, g2 * own - g1 * moved]
    if third:
        if link != "logit":
            end = np.full(eta.size, np.inf)
            of_u = thirds_of(link, eta.ravel(), -end)[0]
            g3 = (of_u - thirds_of(link, end, eta.ravel())[1]).reshape(eta.shape)
        G2 = tail_sums(g2)
        twice = below(G2 - mean(G2)) + below(G1**2 - mean(G1**2))
        parts.append(g3 * own - 2 * g2 * moved - g1 * twice)
    return log_p[np.arange(len(eta)), rank], np.stack(parts)
