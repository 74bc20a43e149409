"""Scores of main effects and of products of two features."""

from __future__ import annotations

import numpy as np

from .._numerics.rows import strips
from .._watch.monitor import check_cancelled

_ENTRIES, _LEAST = 65_536, 256  # of an array at a time, in so many rows or more


def scores(Z: np.ndarray, main: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return z'main + 1/2 z' pairs z for every row z of Z, (n,).

    `pairs` is symmetric, and products of features are not stored. O(n d^2), or less
    where few pairs are not 0.
    """
    f = np.asarray(Z @ main)
    held = np.flatnonzero(pairs.any(axis=1))
    if held.size:
        among = pairs[np.ix_(held, held)]
        for rows in strips(len(Z), max(_LEAST, _ENTRIES // held.size)):
            check_cancelled()
            part = Z[rows][:, held]
            f[rows] += 0.5 * np.einsum("ij,ij->i", part @ among, part)
    return f


def both_ways(
    d: int, first: np.ndarray, second: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return the symmetric (d, d) matrix of what the pairs have."""
    out = np.zeros((d, d))
    out[first, second] = out[second, first] = values
    return out
