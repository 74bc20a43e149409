"""The scores of the training rows, which those of other rows are held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class TrainingScores:
    """Scores by rank, and the definitions of the paper that predictions rest on.

    Attributes
    ----------
    scores : (m,) array
        By rank, increasing within each.
    mass : (m,) array
        Weights of the rows, summed up within each rank.
    start : (r + 1,) array
        The first of `scores` of each rank.
    """

    scores: np.ndarray
    mass: np.ndarray
    start: np.ndarray

    def interval(self, U: np.ndarray) -> np.ndarray:
        """Ranks of the ends of the interval of each score, (n, 2), by Definition 4.

        They change places where L > R.
        """
        held = np.flatnonzero(np.diff(self.start))
        least = self.scores[self.start[held]]
        most = self.scores[self.start[held + 1] - 1]
        L = np.where(U[:, None] >= least, held, held[0]).max(axis=1)
        R = np.where(U[:, None] <= most, held, held[-1]).min(axis=1)
        return np.column_stack([np.minimum(L, R), np.maximum(L, R)])

    def kappa(self, U: np.ndarray, tau: float) -> np.ndarray:
        """Return kappa of all ranks, (n, r), by Definition 5."""
        n, r = U.size, self.start.size - 1
        below, above, total = np.zeros((n, r)), np.zeros((n, r)), np.zeros(r)
        for h, (a, b) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            mass = np.append(0.0, self.mass[a:b])
            total[h] = mass[-1]
            with np.errstate(over="ignore"):  # infinity has its place among scores
                low, high = U - tau, U + tau
            below[:, h] = mass[np.searchsorted(self.scores[a:b], low)]
            far = np.searchsorted(self.scores[a:b], high, side="right")
            above[:, h] = total[h] - mass[far]
        lower = np.cumsum(below, axis=1) - below
        higher = np.cumsum(above[:, ::-1], axis=1)[:, ::-1] - above
        # as sums of what is meant: where one rank outweighs the others, a difference
        # of sums that hold its weight could be 0
        sums = np.cumsum(total), np.cumsum(total[::-1])
        others = np.append(0.0, sums[0][:-1]) + np.append(0.0, sums[1][:-1])[::-1]
        return np.asarray((lower + higher) / others)

    def shares(self, U: np.ndarray, tau: float) -> np.ndarray:
        """Return kappa over the interval of each score, normalised, (n, r): with tau
        = 0 where all are 0, and of alike ranks where they still are.
        """
        ends, rank = self.interval(U), np.arange(self.start.size - 1)
        inside = (
            (ends[:, :1] <= rank) & (rank <= ends[:, 1:]) & (np.diff(self.start) > 0)
        )
        P = np.where(inside, self.kappa(U, tau), 0.0)
        for far_enough in (lambda U: self.kappa(U, 0.0), lambda U: 1.0):
            none = ~P.any(axis=1)
            P[none] = np.where(inside[none], far_enough(U[none]), 0.0)
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def in_unit_of(self, like: TrainingScores, U: np.ndarray) -> np.ndarray:
        """Scores U of this model in the origin and unit of another one, by the line
        through the ranks' mean scores in both that is best in the weighted mean square;
        in this unit if the line would not rise.
        """
        own, _ = self.means()
        its, mass = like.means()
        both = np.isfinite(own) & np.isfinite(its)
        weight = mass[both] / mass[both].sum()
        origin, to = weight @ own[both], weight @ its[both]
        own, its = own[both] - origin, its[both] - to
        spread = weight @ own**2
        slope = weight @ (own * its) / spread if spread > 0 else 1.0
        return np.asarray(to + (slope if slope > 0 else 1.0) * (U - origin))

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean score of the training rows of each rank, NaN without rows,
        and their weight, (r,) each.
        """
        mean = np.full(self.start.size - 1, np.nan)
        total = np.zeros(self.start.size - 1)
        for k, (a, b) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            if a < b:
                weight = np.diff(self.mass[a:b], prepend=0.0)
                mean[k] = np.average(self.scores[a:b], weights=weight)
                total[k] = self.mass[b - 1]
        return mean, total
