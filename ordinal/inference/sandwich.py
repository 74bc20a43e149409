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
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from .._cumulative.design import Design
from .._cumulative.likelihood import NONE, Bordered, Factor, Point
from .._input.checks import as_array, shown
from .._input.immutable import read_only
from .._rows.sums import Parts

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
) -> np.ndarray | None:
    """Return the covariance of the estimates, (p, p), in units of the columns.

    Returns None without a Hessian, or if the covariance leaves the range of double in
    these units.
    """
    if at.hessian is NONE:
        return None
    inner = inverse(at.hessian) / loss.design.total
    if choice.kind != "observed":
        inner = sandwich(loss, at.x, inner, choice.groups)
    return in_units(loss.design, inner)


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
    if G < 2:
        raise ValueError("cluster must hold 2 groups of positive weight or more, got 1")
    # The factor is that of Stata and of R's sandwich::vcovCL.
    return np.asarray(bread @ (sums.T @ sums) @ bread) * (G / (G - 1))


def _squares(of_design: Callable[[Design], Scored], x: np.ndarray, D: Design) -> Parts:
    """Return sum_i w_i s_i s_i' of a chunk."""
    meat = np.zeros((x.size, x.size))
    for rows, s in of_design(D).scores(x):
        meat += (D.weight[rows][:, None] * s).T @ s
    return (meat,)
