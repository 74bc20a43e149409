"""Covariance of the estimates: the inverse information, or a sandwich formula.

The sandwich is valid if the model is misspecified, or if rows of a cluster are
dependent.

With s_i the gradient of log P(y_i) and H the Hessian of the mean loss over W = sum w,

    V = H^-1 (sum_c u_c u_c') H^-1 / W^2 * G / (G - 1),   u_c = sum_(i in c) w_i s_i (1)

for G clusters c. Without clusters, every row is a cluster of its own and a row of
weight w stands for w rows, so the meat is sum_i w_i s_i s_i'. The factor is then left
out, which gives White's HC0.

P. J. Huber, "The behavior of maximum likelihood estimates under nonstandard
conditions", Fifth Berkeley Symposium 1:221-233, 1967. H. White, "Maximum likelihood
estimation of misspecified models", Econometrica 50:1-25, 1982. A. Zeileis, S. Koell,
N. Graham, Journal of Statistical Software 95(1), 2020, for G / (G - 1).
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, cast

import numpy as np

from .._cumulative.design import HESSIAN_COLUMNS, Design
from .._cumulative.likelihood import NONE, Bordered, Factor, Likelihood, Point
from .._input.checks import as_array, shown
from .._input.immutable import read_only
from .._input.sparse import CSR
from .._rows.columns import row_strips
from .._rows.sums import Parts
from .covariance import Blocks, StructuredCovariance

CovarianceType = Literal["observed", "robust", "cluster"]


@dataclass(frozen=True, slots=True, eq=False)
class CovarianceChoice:
    """Type of the covariance, with the clusters of the rows.

    Attributes
    ----------
    kind : CovarianceType
        "observed" is the inverse information, without a sandwich.
    groups : (n,) int array, or None
        Numbers 0..G-1 of the clusters.
    """

    kind: CovarianceType = "observed"
    groups: np.ndarray | None = None

    @classmethod
    def from_arguments(
        cls, robust: bool, cluster: Any, n: int, without: str = ""
    ) -> CovarianceChoice:
        """Choose the covariance by the arguments of a fit to n rows.

        Raises ValueError for a sandwich if `without` describes fits without covariance.
        """
        if without and (robust or cluster is not None):
            raise ValueError(
                f"robust and cluster need a covariance, which fits {without} do not "
                "compute: leave them out"
            )
        if cluster is not None:
            return cls("cluster", _read_clusters(cluster, n))
        return cls("robust" if robust else "observed", None)


_OBSERVED = CovarianceChoice()
_ENTRIES = 1 << 17  # of the scores of some rows


def _read_clusters(cluster: Any, n: int) -> np.ndarray:
    """Return the numbers 0..G-1 of the clusters of n rows; ValueError for one alone."""
    labels = as_array(cluster, "cluster")
    if labels.shape != (n,):
        raise ValueError(f"cluster has shape {labels.shape}, expected ({n},) as X")
    known: dict[Any, int] = {}
    for i, label in enumerate(labels.tolist()):
        if not isinstance(label, str | numbers.Real):
            raise TypeError(
                f"cluster must hold numbers or strings, got {shown(label)} in row {i}"
            )
        # A dict takes labels of mixed kinds, which do not sort.
        known.setdefault(label, len(known))
    if len(known) < 2:
        raise ValueError("cluster must hold 2 groups or more, got 1")
    return np.array([known[label] for label in labels.tolist()])


class Scored(Protocol):
    """Loss with a gradient per row.

    Attributes
    ----------
    design : Design
    of_design : callable
        Makes the same loss, without penalty, of another design. It may be sent to
        workers.
    """

    @property
    def design(self) -> Design: ...
    @property
    def of_design(self) -> Callable[[Design], Scored]: ...
    @property
    def n_threads(self) -> int: ...
    def scores(self, x: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]: ...


def covariance_of(
    loss: Scored, at: Point, choice: CovarianceChoice = _OBSERVED
) -> np.ndarray | StructuredCovariance | None:
    """Return the covariance of the estimates, (p, p), in units of the columns.

    Returns None without a Hessian, if the covariance leaves the range of double in
    these units, or if very many parameters have a singular Hessian.
    """
    if at.hessian is NONE:
        return None
    if at.hessian.first.size:
        try:
            return _structured(cast(Likelihood, loss), at, choice)
        except np.linalg.LinAlgError:
            if at.x.size > HESSIAN_COLUMNS:
                return None
    inner = inverse(at.hessian) / loss.design.total
    if choice.kind != "observed":
        inner = sandwich(loss, at.x, inner, choice.groups)
    return in_units(loss.design, inner)


def _structured(
    loss: Likelihood, at: Point, choice: CovarianceChoice
) -> StructuredCovariance | None:
    """Return the covariance of the estimates of many thresholds; None if it overflows.

    Raises LinAlgError if the Hessian is not positive definite.
    """
    D, H, W = loss.design, at.hessian, loss.design.total
    factor, M = Factor(H), H.diag.shape[1]
    unit, slopes = np.eye(M), np.concatenate([D.location, D.scale])
    unit[0, 1:] = D.centre[D.nominal] / D.spread[D.nominal]
    unit[1:, 1:] = np.diag(1 / D.spread[D.nominal])
    shift = D.centre[slopes] / D.spread[slopes]
    shift[D.location.size :] = 0.0  # columns of the scale are not centred
    made = StructuredCovariance(
        diag=read_only(W * H.diag),
        off=read_only(W * H.off),
        slopes=read_only(factor.slopes),
        core=read_only(factor.inverse_core() / W),
        unit=read_only(unit),
        shift=read_only(shift),
        scale=read_only(1 / D.spread[slopes]),
    )
    if choice.kind == "robust":
        (*blocks,) = D.summed(partial(_meat, loss.of_design, at.x), loss.n_threads)
        made = replace(made, meat=Blocks(*(read_only(block) for block in blocks)))
    elif choice.groups is not None:
        made = replace(made, scores=_cluster_scores(loss, at.x, choice.groups))
    with np.errstate(over="ignore", invalid="ignore"):
        variances = made.diagonal()
    least = np.finfo(float).tiny if choice.kind == "observed" else 0.0
    return made if (np.isfinite(variances) & (variances >= least)).all() else None


def _meat(of_design: Callable[[Design], Likelihood], x: np.ndarray, D: Design) -> Parts:
    """Return the blocks of sum_i w_i s_i s_i' of a chunk, for flexible thresholds."""
    T, M, size = D.T, 1 + D.nominal.size, D.location.size + D.scale.size
    diag, off = np.zeros((T + 2, M, M)), np.zeros((T + 2, M, M))
    border, core = np.zeros((T + 2, M, size)), np.zeros((size, size))
    loss = of_design(D)
    # Sums by threshold have T entries, so that there should not be more sums than rows.
    for rows in row_strips(D.X, max(T, _ENTRIES // (M + size))):
        by_a, by_b, by_core = loss.end_scores(x, rows)
        rank, w = D.rank[rows].astype(np.int64), D.weight[rows]
        for at, ends in ((rank + 1, by_a), (rank, by_b)):
            for k in range(M):
                own = w * ends[:, k]
                for h in range(M):
                    diag[:, k, h] += np.bincount(at, own * ends[:, h], T + 2)
                for h in range(size):
                    border[:, k, h] += np.bincount(at, own * by_core[:, h], T + 2)
        for k in range(M):
            for h in range(M):
                both = w * by_b[:, k] * by_a[:, h]
                off[:, k, h] += np.bincount(rank, both, T + 2)
        core += (w[:, None] * by_core).T @ by_core
    # Places 0 and T + 1 stand for the thresholds that extreme ranks do not have.
    return diag[1:-1], off[1:-2], border[1:-1], core


def _cluster_scores(loss: Likelihood, x: np.ndarray, cluster: np.ndarray) -> CSR:
    """Return the scores u_c of the clusters with weight, by (theta_t, nu_t), threshold
    by threshold, and by (beta, zeta), (G, p); their factor G / (G - 1) is included.
    """
    D = loss.design
    used = np.flatnonzero(D.weight > 0)
    _, group = np.unique(cluster[used], return_inverse=True)
    G, M, p = int(group.max()) + 1, 1 + D.nominal.size, x.size
    _check_clusters(G)
    by_a, by_b, core = (part[used] for part in loss.end_scores(x, slice(None)))
    rank, slot = D.rank[used].astype(np.int64)[:, None], np.arange(M)
    columns = np.hstack(
        [
            M * rank + slot,
            M * (rank - 1) + slot,
            np.broadcast_to(M * D.T + np.arange(core.shape[1]), core.shape),
        ]
    )
    inner = np.ones(columns.shape, dtype=bool)
    inner[:, :M], inner[:, M : 2 * M] = rank < D.T, rank > 0
    values = np.hstack([by_a, by_b, core]) * D.weight[used][:, None]
    place, entry = np.unique((group[:, None] * p + columns)[inner], return_inverse=True)
    data = np.bincount(entry, values[inner]) * np.sqrt(G / (G - 1))
    start = np.searchsorted(place, p * np.arange(G + 1))
    return CSR(data, (place % p).astype(np.int32), start.astype(np.int64), (G, p))


def in_units(design: Design, inner: np.ndarray) -> np.ndarray | None:
    """Convert a covariance to the units of the columns; None if it overflows there."""
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = design.raw(design.raw(inner).T)
    return read_only(covariance) if is_held(covariance, inner) else None


def is_held(covariance: np.ndarray, inner: np.ndarray) -> bool:
    """Return whether doubles hold a covariance in units of the columns.

    Coefficients of columns of tiny spread have variances beyond the largest double, and
    those of columns around 1e155 and more variances that vanish, unlike their variances
    in units of the spread, on the diagonal of `inner`.
    """
    variances, known = np.diagonal(covariance), np.diagonal(inner) > 0
    vanish = variances[known] < np.finfo(float).tiny
    return bool(np.isfinite(covariance).all() and not vanish.any())


def inverse(H: Bordered) -> np.ndarray:
    """Return H^-1, or the pseudoinverse if H is not numerically positive definite.

    This happens for separated ranks, for example.
    """
    try:
        return Factor(H).inverse()
    except np.linalg.LinAlgError:
        # Directions without information have infinite variance, and are left out.
        return np.linalg.pinv(H.dense())


def sandwich(
    loss: Scored, x: np.ndarray, bread: np.ndarray, cluster: np.ndarray | None
) -> np.ndarray:
    """Return V of (1) in the units of the loss, given bread = H^-1 / W. O(n p^2)."""
    weight = loss.design.weight
    p = x.size
    if cluster is None:
        squares = partial(_squares, loss.of_design, x)
        (meat,) = loss.design.summed(squares, loss.n_threads)
        return np.asarray(bread @ meat @ bread)
    # Clusters whose rows all have weight 0 do not count.
    _, group = np.unique(cluster[weight > 0], return_inverse=True)
    place = np.zeros(cluster.size, np.intp)
    place[weight > 0] = group
    sums = np.zeros((int(group.max()) + 1, p))
    for rows, s in loss.scores(x):
        # Several rows of a chunk are of one cluster.
        np.add.at(sums, place[rows], weight[rows][:, None] * s)
    return sandwich_of_clusters(sums, bread)


def sandwich_of_clusters(sums: np.ndarray, bread: np.ndarray) -> np.ndarray:
    """Return V of (1), (p, p), from the scores u_c of the clusters with weight,
    (G, p).
    """
    G = len(sums)
    _check_clusters(G)
    # The factor is that of Stata and of R's sandwich::vcovCL.
    return np.asarray(bread @ (sums.T @ sums) @ bread) * (G / (G - 1))


def _check_clusters(G: int) -> None:
    """Raise ValueError unless 2 clusters or more have weight."""
    if G < 2:
        raise ValueError("cluster must hold 2 groups of positive weight or more, got 1")


def _squares(of_design: Callable[[Design], Scored], x: np.ndarray, D: Design) -> Parts:
    """Return sum_i w_i s_i s_i' of a chunk."""
    meat = np.zeros((x.size, x.size))
    for rows, s in of_design(D).scores(x):
        meat += (D.weight[rows][:, None] * s).T @ s
    return (meat,)
