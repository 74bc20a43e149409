"""Fair samples of the rows, to begin with."""

from __future__ import annotations

import numpy as np

PARTS = 16, 4  # which shares of the rows are fitted before all of them


def stratified(rank: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of about `size` rows, increasing: of each rank its share, but one at
    least, at random. Rows that are sorted by rank or otherwise are drawn as fairly.
    """
    count = np.bincount(rank)
    wanted = np.maximum(1, np.rint(count * (size / rank.size))).astype(np.intp)
    drawn = [
        np.flatnonzero(rank == k)[rng.choice(count[k], wanted[k], replace=False)]
        for k in np.flatnonzero(count)
    ]
    return np.sort(np.concatenate(drawn))


def sizes(n: int, least: int) -> list[int]:
    """Return the sizes of samples: n / 16 and n / 4, unless below `least`."""
    return [n // part for part in PARTS if n // part >= least]
