"""Decompositions of ranks into two-class problems."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

Decomposition: TypeAlias = Literal["one_vs_one", "one_vs_all", "ordered"]


def sides(decomposition: Decomposition, q: int) -> np.ndarray:
    """Return the side of each of q ranks in every problem, (P, q).

    The problems are all pairs, each rank against the others, or the ranks above each
    rank but the last against those below.
    """
    if decomposition == "one_vs_one":
        low, high = np.triu_indices(q, 1)
        side = np.zeros((low.size, q))
        every = np.arange(low.size)
        side[every, low], side[every, high] = -1.0, 1.0
        return side
    if decomposition == "one_vs_all":
        return 2 * np.eye(q) - 1
    return np.where(np.arange(q) > np.arange(q - 1)[:, None], 1.0, -1.0)
