"""Probabilities of all ranks from values at the thresholds between observed ranks."""

from __future__ import annotations

import numpy as np


def for_all_ranks(
    observed: np.ndarray, A: np.ndarray, first: float, last: float
) -> np.ndarray:
    """Expand values at the T thresholds between observed ranks to all r - 1.

    The last dimension is expanded: `first` and `last` apply beyond the observed ranks,
    and a rank without rows in between has the same value on both sides.
    """
    ends = [np.full((*A.shape[:-1], 1), end) for end in (first, last)]
    every = np.concatenate([ends[0], A, ends[1]], axis=-1)
    return np.asarray(every[..., np.cumsum(observed)[:-1]])


def rank_probabilities(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """P(y = j), (..., r), from P(y <= j) and P(y > j), (..., r - 1)."""
    zero = np.zeros((*below.shape[:-1], 1))
    below = np.concatenate([zero, below, zero + 1], axis=-1)
    above = np.concatenate([zero + 1, above, zero], axis=-1)
    lower, upper = np.diff(below, axis=-1), -np.diff(above, axis=-1)
    # a difference of two numbers near 1 has no digits
    return np.asarray(np.where(below[..., 1:] < 0.5, lower, upper))
