"""Losses of a network's outputs on the training rows, with their slopes.

A loss has the shape of the output layer: `n_outputs` linear outputs s = V h(x), without
bias, and free parameters t beside them. `terms` is asked for some rows, whose outputs
are the columns of an array, and gives their part of the loss, its slopes by s, and
those by t.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._cumulative.likelihood import Link, quantile
from .._solvers import _cumulative, _hidden_layer

Terms = tuple[float, np.ndarray]


class Loss(Protocol):
    """Loss that `training` minimises."""

    n_outputs: int

    def start(self) -> np.ndarray:
        """Return t that is best where all outputs are 0."""
        ...

    def terms(self, S: np.ndarray, t: np.ndarray, rows: slice) -> Terms:
        """(loss, slopes by t) of rows of the outputs S (n_outputs, c), in the place of
        which the slopes by S are put.
        """
        ...


def log_odds(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / (1 + e^-z) and 1 / (1 + e^z), both with all their digits."""
    with np.errstate(under="ignore"):  # 0 is what it tends to
        near = np.exp(-np.abs(z))
        far = near / (1 + near)
    near = 1 / (1 + near)
    return np.where(z > 0, near, far), np.where(z > 0, far, near)


class OrderedCodes:
    """One logistic output for each threshold, z_k = s_k - t_k, against the code of rank
    y, which is 1 for k < y and else 0.

    Parameters
    ----------
    rank : (n,) int32 array, 0..m
        Every one of these ranks has a row.
    share : (n,) array > 0
        Weights whose sum is 1.
    squared : bool
        Half the squared error of the logistic outputs, in place of the cross entropy.
    """

    def __init__(self, rank: np.ndarray, share: np.ndarray, squared: bool):
        self.rank, self.share, self.squared = rank, share, squared
        self.n_outputs = int(rank.max())

    def start(self) -> np.ndarray:
        return start_of(self.rank, self.share, "logit")

    def terms(self, S: np.ndarray, t: np.ndarray, rows: slice) -> Terms:
        by_t = np.empty_like(t)
        value = _hidden_layer.ordered_codes(
            S, t, self.rank[rows], self.share[rows], self.squared, by_t
        )
        return value, by_t


class Cumulative:
    """One output f below a cumulative link, P(y <= j) = F(theta_j - f), and its
    negative log-likelihood.

    The m thresholds are in order by construction: t is their mean and the logarithms of
    the m - 1 gaps between them, which no reversal of the ranks disturbs.

    Parameters
    ----------
    rank, share
        As for `OrderedCodes`.
    link : Link
    """

    n_outputs = 1

    def __init__(self, rank: np.ndarray, share: np.ndarray, link: Link):
        self.rank, self.share, self.link = rank, share, link
        self._number = _cumulative.LINKS.index(link)

    def start(self) -> np.ndarray:
        theta = start_of(self.rank, self.share, self.link)
        return np.concatenate([[theta.mean()], np.log(np.diff(theta))])

    @staticmethod
    def thresholds(t: np.ndarray) -> np.ndarray:
        """theta, (m,), increasing but for rounding."""
        out = np.empty((2, t.size + 1))
        _hidden_layer.thresholds(t, out)
        return out[0, :-1]

    def terms(self, S: np.ndarray, t: np.ndarray, rows: slice) -> Terms:
        by_t, work = np.empty_like(t), np.empty((2, t.size + 1))
        value = _hidden_layer.cumulative(
            self._number, S[0], t, self.rank[rows], self.share[rows], work, by_t
        )
        return value, by_t


def start_of(rank: np.ndarray, share: np.ndarray, link: Link) -> np.ndarray:
    """Return the thresholds of a model without features: those of the shares of the
    ranks.
    """
    of_rank = np.bincount(rank, share)
    # shares can be so small that their sums round to 0, to 1 or to one another
    below = np.cumsum(of_rank)[:-1] / of_rank.sum()
    theta = quantile(link, np.clip(below, 1e-15, 1 - 1e-15))
    return np.asarray(theta + 1e-9 * np.arange(theta.size))
