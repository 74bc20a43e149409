"""Pieces of the features, and the position of a value among them.

A numeric feature has knots b_0 < ... < b_g and g pieces between them. A categorical
feature has a piece per category. Both have a last piece for missing values. A score
that is linear between the knots is given by its values at nodes: the knots, or the
categories, and one for missing values. A node and a share of the way to the next node
replace the vector Phi(x) of `ordinal.xofm`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._input.checks import check_count
from .._input.immutable import read_only
from .._numerics.rows import strips
from .._solvers import _factorization

_ENTRIES = 1 << 23  # entries per call of the kernel, so that Ctrl-C has its turn


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Pieces and nodes of all features, one after the other.

    Attributes
    ----------
    knots : tuple of (d,) arrays
        Empty for a categorical feature.
    first : (d + 1,) int32
        The first piece of each feature; the last of each is for missing values.
    kind : (d,) int8
        1 if the value at a knot is the sum of the pieces below, -1 if it is the sum of
        those above, 0 for categories.
    node : (d + 1,) int64
        The first node of each feature.
    """

    knots: tuple[np.ndarray, ...]
    first: np.ndarray
    kind: np.ndarray
    node: np.ndarray

    @classmethod
    def from_knots(
        cls,
        knots: Sequence[np.ndarray],
        categories: Sequence[np.ndarray | None],
        downward: np.ndarray,
    ) -> Self:
        """Make a layout from knots, categories (None for numbers) and directions."""
        is_number = np.array([labels is None for labels in categories])
        sizes = [
            # One more for missing values, with or without any in the training rows.
            1 + (len(k) - 1 if labels is None else len(labels))
            for k, labels in zip(knots, categories, strict=True)
        ]
        first = np.append(0, np.cumsum(sizes))
        kind = np.where(is_number, np.where(downward, -1, 1), 0)
        node = first + np.append(0, np.cumsum(is_number))
        return cls(tuple(knots), first.astype(np.int32), kind.astype(np.int8), node)

    @property
    def n_pieces(self) -> int:
        return int(self.first[-1])

    def locate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the values of X, (n, d).

        They are the node at or below each value, int32, and the share of the way to the
        next node, float64. A number beyond the knots is moved to the nearest one; NaN
        is missing.
        """
        node, share = np.empty(X.shape, np.int32), np.empty(X.shape)
        self.locate_into(X, node, share)
        return node, share

    def locate_into(self, X: np.ndarray, node: np.ndarray, share: np.ndarray) -> None:
        """Locate the values of rows, and write the positions into existing arrays."""
        X = np.asarray(X, np.float64)
        # One array for the kernel, which walks over features without Python objects.
        knots = np.concatenate(self.knots)
        begin = np.append(0, np.cumsum([k.size for k in self.knots]))
        for rows in strips(len(X), max(1, _ENTRIES // X.shape[1])):
            _factorization.locate(
                X[rows], knots, begin, self.node, node[rows], share[rows]
            )

    def table(self, W: np.ndarray) -> np.ndarray:
        """Return the values at the nodes, and a row of zeros, (N + 1, m).

        W holds the values of the pieces, (P, m).
        """
        table = np.empty((int(self.node[-1]) + 1, W.shape[1]))
        _factorization.spread(W, self.first, self.kind, table)
        return table

    def gather(self, G: np.ndarray) -> np.ndarray:
        """Return the gradient by pieces, (P, m), from that by nodes, (N + 1, m)."""
        dW = np.empty((self.n_pieces, G.shape[1]))
        _factorization.gather(G, self.first, self.kind, dW)
        return dW

    def unseen(self, mass: np.ndarray) -> np.ndarray:
        """Return the pieces with a node of their own at which the mass is 0."""
        pieces = []
        for j, kind in enumerate(self.kind):
            a, b = self.first[j], self.first[j + 1]
            own = np.arange(a if kind == 0 else b - 1, b)
            pieces.append(own[mass[own - b + self.node[j + 1]] == 0])
        return np.concatenate(pieces)

    def means(self, table: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Return the mean of each feature's values, weighted by mass, (d, m)."""
        sums = np.add.reduceat((mass[:, None] * table)[:-1], self.node[:-1])
        weight = np.add.reduceat(mass[:-1], self.node[:-1])
        return np.asarray(sums / weight[:, None])


def pieces_of(n_intervals: Any, d: int) -> list[int]:  # noqa: ANN401  (checked here)
    """Return the number of intervals of each of d features.

    Raises
    ------
    ValueError
        A number is not a positive integer, or there are not d of them.
    """
    several = isinstance(n_intervals, Sequence | np.ndarray)
    values = list(n_intervals) if several else [n_intervals] * d
    if len(values) != d:
        raise ValueError(f"n_intervals has {len(values)} entries, X has {d} features")
    return [
        check_count(f"n_intervals[{j}]" if several else "n_intervals", value)
        for j, value in enumerate(values)
    ]


def equal_knots(x: np.ndarray, weight: np.ndarray, pieces: int) -> np.ndarray:
    """Return knots at equal distances over the range of x; fewer if they coincide."""
    # unique, because a range of a few floats cannot have more pieces than these.
    return np.unique(np.linspace(x.min(), x.max(), pieces + 1))


def quantile_knots(x: np.ndarray, weight: np.ndarray, pieces: int) -> np.ndarray:
    """Return knots at weighted quantiles of x; fewer if they coincide."""
    order = np.argsort(x, kind="stable")
    x, below = x[order], np.cumsum(weight[order])
    shares = np.arange(1, pieces) / pieces * below[-1]
    # The first value up to which there is that weight: a row written twice has the same
    # knots as a row of weight 2.
    inner = x[np.minimum(np.searchsorted(below, shares), x.size - 1)]
    return np.unique(np.concatenate([x[:1], inner, x[-1:]]))


def make_knots(
    X: np.ndarray,
    weight: np.ndarray,
    is_number: Sequence[bool],
    n_intervals: Sequence[int],
    breakpoints: str,
) -> list[np.ndarray]:
    """Return knots per feature from rows of positive weight; none for categories."""
    cut = quantile_knots if breakpoints == "quantile" else equal_knots
    knots = []
    for j, pieces in enumerate(n_intervals):
        known = ~np.isnan(X[:, j])
        if not is_number[j]:
            k = np.empty(0)
        elif not known.any():
            k = np.zeros(1)
        else:
            k = cut(X[known, j], weight[known], pieces)
        knots.append(read_only(k))
    return knots
