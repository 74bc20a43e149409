"""Thresholds that cut scores at the least cost in the training rows."""

from __future__ import annotations

import numpy as np


def best_thresholds(
    f: np.ndarray, rank: np.ndarray, weight: np.ndarray, cost: np.ndarray
) -> np.ndarray:
    """Return thresholds (q - 1,), in order, at which the cost of the rows is least.

    With the rows by their scores, rank k is predicted from one place to the next. Of
    the first p scores, and ranks up to k, the least cost is

        least_k(p) = min { least_{k-1}(s) + cost of predicting k from s to p : s <= p }

    which takes O(n q) after the rows are sorted. Of several optima it is that whose
    higher thresholds are lowest. A threshold between two scores is in their middle, one
    beyond all of them half a unit away.

    Parameters
    ----------
    f : (n,) scores
    rank : (n,) values 0..q-1
    weight : (n,) weights of the rows
    cost : (q, q) array
        Cost of predicting column k for a row of rank j.
    """
    some = weight > 0
    values, place = np.unique(f[some], return_inverse=True)
    q = len(cost)
    held = np.bincount(place * q + rank[some], weight[some], values.size * q)
    # [p, k] the cost of predicting k for the first p scores
    prefix = np.zeros((values.size + 1, q))
    np.cumsum(held.reshape(-1, q) @ cost, axis=0, out=prefix[1:])
    least, began = prefix[:, 0], []
    for k in range(1, q):
        before = least - prefix[:, k]
        lowest = np.minimum.accumulate(before)
        new = np.append(True, before[1:] < lowest[:-1])
        began.append(np.maximum.accumulate(np.where(new, np.arange(before.size), 0)))
        least = lowest + prefix[:, k]
    cut, cuts = values.size, []
    for start in reversed(began):
        cut = int(start[cut])
        cuts.append(cut)
    ends = np.concatenate([[values[0] - 1], values, [values[-1] + 1]])
    at = np.array(cuts[::-1], dtype=int)
    below, above = ends[at], ends[at + 1]
    middle = below + 0.5 * (above - below)
    # neighbouring floats have none
    return np.asarray(np.where(middle > below, middle, above))
