"""What a network's outputs are worth on the training rows, with the slopes by them.

A loss has the shape of the output layer: `n_outputs` linear outputs s = V h(x), without
bias, and `n_free` free parameters t beside them. `terms` is asked for some rows, and
gives their part of the loss, its slopes by s, and those by t.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._linear.likelihood import Link, quantile
from .._solvers import _cumulative

_LOGIT = _cumulative.LINKS.index("logit")
Terms = tuple[float, np.ndarray, np.ndarray]


class Loss(Protocol):
    """What `training` asks of one."""

    n_outputs: int
    scratch: int

    def start(self) -> np.ndarray:
        """t that is best where all outputs are 0."""
        ...

    def terms(
        self, S: np.ndarray, t: np.ndarray, rows: slice, space: np.ndarray
    ) -> Terms:
        """(loss, slopes by S, slopes by t) of rows of the outputs S (c, n_outputs).
        `space` has `scratch` doubles a row, which may be overwritten."""
        ...


def log_odds(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / (1 + e^-z) and 1 / (1 + e^z), both with all their digits."""
    near = np.exp(-np.abs(z))
    far = near / (1 + near)
    near = 1 / (1 + near)
    return np.where(z > 0, near, far), np.where(z > 0, far, near)


class OrderedCodes:
    """One logistic output for each threshold, z_k = s_k - t_k, against the code of rank
    y, which is 1 for k < y and else 0.

    Parameters
    ----------
    rank : (n,) int array, 0..m
        Every one of these ranks has a row.
    share : (n,) array > 0
        Weights whose sum is 1.
    squared : bool
        Half the squared error of the logistic outputs, in place of the cross entropy.
    """

    def __init__(self, rank: np.ndarray, share: np.ndarray, squared: bool):
        self.rank, self.share, self.squared = rank, share, squared
        self.n_outputs = int(rank.max())
        self.scratch = 10 * self.n_outputs
        ranks = np.arange(self.n_outputs + 1)
        self._signs = np.where(ranks[:, None] > ranks[:-1], 1.0, -1.0)

    def start(self) -> np.ndarray:
        return start_of(self.rank, self.share, "logit")

    def terms(
        self, S: np.ndarray, t: np.ndarray, rows: slice, space: np.ndarray
    ) -> Terms:
        # all in arrays that are there: new ones take longer than what is done in them
        work = space[: 10 * S.size].reshape(10, S.size)
        margin, sign = work[8].reshape(S.shape), work[9].reshape(S.shape)
        np.take(self._signs, self.rank[rows], axis=0, out=sign, mode="clip")
        np.subtract(S, t, out=margin)
        margin *= sign  # > 0 on the right side
        # of a cumulative model whose ranks are this side and the other one
        work[6], work[7] = -np.inf, np.inf
        _cumulative.row_terms(_LOGIT, work[8], work[6], work[7], work[:6], 1)
        log_p, wrong, flat = (work[i].reshape(S.shape) for i in (0, 1, 3))
        share = self.share[rows]
        if self.squared:  # `flat` is -o (1 - o), with all its digits
            value = 0.5 * (share @ np.square(wrong)).sum()
            slope = np.multiply(wrong, flat, out=flat)
        else:
            value = -(share @ log_p).sum()
            slope = np.negative(wrong, out=wrong)
        slope *= sign
        slope *= share[:, None]
        return float(value), slope, -slope.sum(axis=0)


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
    scratch = 6

    def __init__(self, rank: np.ndarray, share: np.ndarray, link: Link):
        self.rank, self.share, self.link = rank, share, link
        self._number = _cumulative.LINKS.index(link)

    def start(self) -> np.ndarray:
        theta = start_of(self.rank, self.share, self.link)
        return np.concatenate([[theta.mean()], np.log(np.diff(theta))])

    @staticmethod
    def thresholds(t: np.ndarray) -> np.ndarray:
        """theta, (m,), increasing but for rounding."""
        steps = np.concatenate([[0.0], np.cumsum(np.exp(t[1:]))])
        return np.asarray(t[0] + (steps - steps.mean()))

    def terms(
        self, S: np.ndarray, t: np.ndarray, rows: slice, space: np.ndarray
    ) -> Terms:
        rank, share, f = self.rank[rows], self.share[rows], S[:, 0]
        ends = np.concatenate([[-np.inf], self.thresholds(t), [np.inf]])
        gaps = np.concatenate([[np.inf], np.exp(t[1:]), [np.inf]])
        made = space[: 6 * f.size].reshape(6, f.size)
        _cumulative.row_terms(
            self._number, ends[rank + 1] - f, ends[rank] - f, gaps[rank], made, 1
        )
        log_p, both, upper = made[:3] * share
        by_upper = np.bincount(rank, upper, t.size + 1)[:-1]
        by_lower = np.bincount(rank, upper - both, t.size + 1)[1:]
        return -float(log_p.sum()), both[:, None], self._slopes(by_lower - by_upper, t)

    @staticmethod
    def _slopes(by_theta: np.ndarray, t: np.ndarray) -> np.ndarray:
        """By t, from those by theta."""
        above = np.cumsum(by_theta[::-1])[::-1]
        m = t.size
        by_gap = above[1:] - above[0] * (np.arange(m - 1, 0, -1) / m)
        return np.concatenate([above[:1], by_gap * np.exp(t[1:])])


def start_of(rank: np.ndarray, share: np.ndarray, link: Link) -> np.ndarray:
    """The thresholds of a model without features: those of the shares of the ranks."""
    of_rank = np.bincount(rank, share)
    # shares can be so small that their sums round to 0, to 1 or to one another
    below = np.cumsum(of_rank)[:-1] / of_rank.sum()
    theta = quantile(link, np.clip(below, 1e-15, 1 - 1e-15))
    return np.asarray(theta + 1e-9 * np.arange(theta.size))
