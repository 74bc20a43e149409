"""Rows of mixed models: their likelihood at given random effects, and sums by level.

A random effect moves all predictors of a row by the same z'b. So the likelihood of the
random effects needs of each row log P and its derivatives by that one number, and the
derivatives of these by the row's thresholds. `MixedLikelihood` calls `terms`, `bends`
and `moves`, whose arguments are those of `LevelRows`, and `by_parameters`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import Link
from .._solvers import _cumulative, _level_sums

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
    at : (n, R) int64
        Number of the effect, of the m others, of each column of the others.
    m : int
    """

    order: np.ndarray
    group: np.ndarray
    levels: np.ndarray
    Z: np.ndarray
    at: np.ndarray
    m: int


class EffectRows(Protocol):
    """Rows of one family of models. The arguments are those of `LevelRows`.

    Attributes
    ----------
    n_direct : int
        Number of rows of `direct`: derivatives of each row of data that are summed up.
    """

    n_direct: int

    def ends(self, x: np.ndarray) -> np.ndarray | None:
        """Return what the rows have without random effects, or None if it is invalid.

        `x` are the parameters; only those of the design count.
        """

    def terms(
        self, ends: np.ndarray, b: np.ndarray, least: float, share: np.ndarray,
        direct: np.ndarray, value: np.ndarray, first: np.ndarray, second: np.ndarray,
        by_row: np.ndarray,
    ) -> None:  # fmt: skip
        """Compute l and its derivatives, and keep them for `moves`."""

    def bends(
        self, ends: np.ndarray, b: np.ndarray, V: np.ndarray, beside: np.ndarray,
        rest: np.ndarray, first: np.ndarray, by_row: np.ndarray,
    ) -> None:  # fmt: skip
        """Compute H and the third derivatives, and keep them for `moves`."""

    def moves(
        self, ends: np.ndarray, b: np.ndarray, k: np.ndarray, direct: np.ndarray,
        first: np.ndarray, second: np.ndarray, by_row: np.ndarray,
    ) -> None:  # fmt: skip
        """Compute the derivatives through k and H, after `terms` and `bends`."""

    def by_parameters(
        self, direct: np.ndarray, cluster: np.ndarray | None = None, n_clusters: int = 1
    ) -> np.ndarray:
        """Return the gradients by the parameters of the design, (p, n_clusters).

        `cluster` is that of each sorted row; without it all rows are one.
        """


RowsOf: TypeAlias = Callable[[Design, Link, Layout, int], EffectRows]


class IntervalRows:
    """Rows of cumulative models, whose rank is an interval of the latent variable.

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
        self.rank, weight = design.rank[order].astype(np.int64), design.weight[order]
        self.is_counted = weight > 0
        # Threads take whole levels, of about `_PART` rows.
        bounds = np.searchsorted(layout.levels, np.arange(0, len(order), _PART))
        bounds = np.unique(np.concatenate([bounds, [layout.levels.size - 1]]))
        bounds[0] = 0
        kernel = _level_sums.LevelRows(
            _cumulative.LINKS.index(link), weight, layout.Z, layout.at, layout.levels,
            bounds, layout.m, np.zeros((9, len(order))), n_threads,
        )  # fmt: skip
        self.terms, self.bends, self.moves = kernel.terms, kernel.bends, kernel.moves

    def ends(self, x: np.ndarray) -> np.ndarray | None:
        """Return the ends of the rows without random effects, (4, n).

        These are the upper and the lower end, their distance, and 1 / s. The predictors
        of a row are (end - z'b) / s. Return None if thresholds cross.
        """
        D, rank, n = self.design, self.rank, self.rank.size
        alpha, nu, beta, zeta = D.split(x[: D.n_parameters])
        theta, f = D.J @ alpha, self.X @ beta + self.offset
        inner = np.minimum(rank, D.T - 1), np.maximum(rank - 1, 0)
        up, low = (theta[k] for k in inner)
        if D.nominal.size:
            slopes = D.J @ nu
            up, low = (
                end - np.einsum("ij,ij->i", self.N, slopes[k])
                for end, k in zip((up, low), inner, strict=True)
            )
        has_up, has_low = self.is_counted & (rank < D.T), self.is_counted & (rank > 0)
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

        `direct` are D_q of the rows, (4, n).
        """
        D, C, (eta, up, low, spread) = self.design, n_clusters, direct
        M = 1 + D.nominal.size
        slots = np.zeros((D.T, M, C))
        cell = self.rank if cluster is None else self.rank * C + cluster
        for j in range(M):
            sign = 1.0 if j == 0 else -self.N[:, j - 1]
            for end, inner in ((up, slice(None, -1)), (low, slice(1, None))):
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
