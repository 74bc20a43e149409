"""The problems of OPBE, "before, here or after" each rank, as programs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._dual.program import Program


class Three(NamedTuple):
    """Problems that have as many thresholds: ranks (places among those present), and
    for each of a program's groups, whether a row of each rank is above it."""

    ranks: np.ndarray  # (P,)
    above: np.ndarray  # (P, T, q)

    def program(self, rank: np.ndarray, width: np.ndarray) -> Program:
        """(D) for rows of these ranks, whose boxes are so wide."""
        above = self.above[:, :, rank]
        slope = np.where(above, -1.0, 1.0)
        return Program(
            lo=np.where(above, 0.0, -width),
            hi=np.where(above, width, 0.0),
            pn=slope,
            pp=slope,
        )

    def both(self, b: np.ndarray, q: int) -> np.ndarray:
        """(P, 2) the thresholds before and after each rank, from (P, T)."""
        first, last = self.ranks == 0, self.ranks == q - 1
        return np.stack(
            [np.where(first, -np.inf, b[:, 0]), np.where(last, np.inf, b[:, -1])],
            axis=1,
        )


def threes(q: int) -> list[Three]:
    """The problems of q ranks: those of the two at the ends, and the others."""
    rank, inner = np.arange(q), np.arange(1, q - 1)
    cut = np.array([0, q - 2])  # the last rank below the threshold
    ends = Three(np.array([0, q - 1]), (rank > cut[:, None])[:, None])
    if not inner.size:
        return [ends]
    cuts = np.stack([inner - 1, inner], axis=1)
    return [ends, Three(inner, rank > cuts[:, :, None])]
