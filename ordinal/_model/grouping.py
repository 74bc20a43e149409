"""Folds and hold-out sets of whole groups of rows, such as the visits of one patient.

With n_gk rows of rank k in group g and n_k in all, fold f is to have its share s_f of
every rank:

    min  sum_fk (sum_{g in f} n_gk - s_f n_k)^2 / n_k,      every g in one f.        (B)

With two folds and one rank this is the partition problem, which is NP-hard: the
heuristic finds good folds, not always the best ones. For folds, groups are assigned in
random order, each to the fold where it adds least to (B), and then exchanged, two of
different folds or one for none, until no exchange lowers (B). Hold-out sets, which are
repeated, are optimised less, so that they differ and hold out every group at times.
"""

from __future__ import annotations  # numpy.random is slow to import

from itertools import combinations
from typing import Any

import numpy as np

from .._input.checks import check_entries, listed, shown
from .._input.columns import as_objects
from .._input.labels import is_missing, no_labels

_DRAWS = 3
_TRIED = 1000  # most groups of a fold that are tried for exchanges
_ROUNDING = 1e-12  # least decrease of (B), whose terms are shares of rows


def distinct(values: Any, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sorted distinct labels, the number of each row's label, and their counts.

    Labels are of any kind that sorts.
    """
    if isinstance(values, str):
        raise no_labels(name, values)
    a = as_objects(values, name)
    if a.ndim != 1 or a.size == 0:
        raise ValueError(
            f"{name} must be 1-dimensional and non-empty, got shape {a.shape}"
        )
    if a.dtype.kind == "f":
        check_entries(name, a, np.isfinite(a), "be finite")
    if a.dtype.kind == "O":
        missing = [row for row, label in enumerate(a) if is_missing(label)]
        if missing:
            remedy = ": drop such rows, or give them a group of their own"
            remedy *= name == "groups"
            raise ValueError(f"{name} has no label in row {missing[0]}{remedy}")
    try:
        return np.unique(a, return_inverse=True, return_counts=True)
    except TypeError:  # labels that cannot be compared
        raise TypeError(f"{name} must hold labels that sort, got {listed(a)}") from None


def group_numbers(groups: Any, n: int, least: int = 2) -> np.ndarray | None:
    """Return the number of every row's group, (n,), if there are groups.

    Raises ValueError for fewer than `least` groups.
    """
    if groups is None:
        return None
    labels, group, _ = distinct(groups, "groups")
    if group.size != n:
        raise ValueError(f"groups has shape ({group.size},), expected ({n},) as y")
    if labels.size < least:
        raise ValueError(
            f"groups must name 2 groups or more, got only {shown(labels.tolist()[0])}"
        )
    return group


def group_folds(
    rank: np.ndarray, group: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the fold of every row, (n,), at most one per group and none empty."""
    counts = _counts(rank, group)
    fold = _dealt(counts, n_folds, rng)
    _exchange(_scaled(counts), fold, n_folds)
    return np.asarray(fold[group])


def hold_out_groups(
    rank: np.ndarray, group: np.ndarray, n_test: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw hold-out groups, (n,) bool: about `n_test` rows, at least one group.

    No rank loses its last group; ValueError if that is impossible.
    """
    counts = _counts(rank, group)
    # the only group of a rank is trained on
    sole = (counts[:, (counts > 0).sum(axis=0) == 1] > 0).any(axis=1)
    free = np.flatnonzero(~sole)
    if not free.size:
        raise ValueError(
            "groups must contain one that can be held out, but each of them holds "
            "all rows of some label: merge groups or labels"
        )
    held = np.zeros(len(counts), dtype=bool)
    held[free] = _drawn(_scaled(counts), n_test / rank.size, free, rng)[free]
    for k in range(counts.shape[1]):
        has = counts[:, k] > 0
        if held[has].all():  # of two groups or more, so that one stays held out
            held[rng.choice(np.flatnonzero(has))] = False
    return np.asarray(held[group])


def _counts(rank: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Count the rows of each group and rank, (groups, ranks)."""
    G, r = int(group.max()) + 1, int(rank.max()) + 1
    return np.bincount(group * r + rank, minlength=G * r).reshape(G, r)


def _scaled(counts: np.ndarray) -> np.ndarray:
    """Return the counts in units in which (B) is a sum of squares."""
    return np.asarray(counts / np.sqrt(counts.sum(axis=0)))


def _dealt(counts: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """Return the fold of every group, for equal shares.

    Among the folds that are best by (B), a group is assigned to the one with the fewest
    rows, which is an empty one while there is any. Groups with the same most frequent
    rank are assigned one after the other, so that folds of single rows differ by at
    most one row.
    """
    a, size = _scaled(counts), counts.sum(axis=1)
    held = np.zeros((n_folds, a.shape[1]))  # scaled counts of each fold
    rows = np.zeros(n_folds)
    fold = np.empty(len(a), dtype=np.int64)
    order = rng.permutation(len(a))
    for g in order[np.argsort(counts[order].argmax(axis=1), kind="stable")]:
        added = held @ a[g]
        as_good = added <= added.min() + _ROUNDING
        f = fold[g] = np.argmin(np.where(as_good, rows, np.inf))
        held[f] += a[g]
        rows[f] += size[g]
    return fold


def _drawn(
    a: np.ndarray, share: float, free: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw hold-out groups at random that bring the ranks near to their share.

    The best of a few draws is returned; more draws would favour few groups.
    """
    square = np.einsum("gk,gk->g", a, a)
    least, best = np.inf, np.zeros(len(a), dtype=bool)
    for _ in range(_DRAWS):
        held = np.zeros(len(a), dtype=bool)
        excess = -share * a.sum(axis=0)
        order = rng.permutation(free)
        for g in order:
            # The change of the squared excess by this group.
            if 2 * a[g] @ excess + square[g] < 0:
                excess += a[g]
                held[g] = True
        if not held.any():  # every group is large for the share
            g = order[np.argmin(square[order] + 2 * a[order] @ excess)]
            excess += a[g]
            held[g] = True
        if excess @ excess < least:
            least, best = excess @ excess, held
    return best


def _exchange(a: np.ndarray, fold: np.ndarray, n_folds: int) -> None:
    """Exchange groups of different folds while (B) decreases, and update `fold`.

    Exchanging g of fold f for q of fold h adds 2 d (held_h - held_f) + 2 d d to (B),
    where d = a_g - a_q, and held are the sums of a over the folds. The last row of `a`
    stands for no group, which every fold contains.
    """
    held = np.stack([a[fold == f].sum(axis=0) for f in range(n_folds)])
    a = np.vstack([a, np.zeros(a.shape[1])])
    square = np.einsum("gk,gk->g", a, a)
    improved = True
    while improved:
        improved = False
        for f, h in combinations(range(n_folds), 2):
            g, q = (np.append(np.flatnonzero(fold == k)[:_TRIED], -1) for k in (f, h))
            along = a @ (held[h] - held[f])
            added = (square[g] + along[g])[:, None] + square[q] - along[q]
            added -= 2 * a[g] @ a[q].T
            # The best exchange of two folds, not the first good one, saves rounds.
            i, j = np.unravel_index(added.argmin(), added.shape)
            if added[i, j] >= -_ROUNDING:
                continue
            improved = True
            d = a[g[i]] - a[q[j]]
            held[f] -= d
            held[h] += d
            for moved, to in ((g[i], h), (q[j], f)):
                if moved >= 0:
                    fold[moved] = to
