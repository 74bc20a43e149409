"""The objective (P) of `ordinal.xofm`: rows, bounds, the pairwise loss, penalties.

The parameters of the pieces are one table W of shape (P, m): the main effects u in
column 0, the factors V in the next ones, and zeros up to a multiple of `LANES`, the
width of the vector loops. `Layout.table` computes the values at the nodes from it.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from .._numerics.rows import strips
from .._rows.source import CHUNK
from .._rows.sums import Parts, pairwise
from .._solvers import _factorization
from .layout import Layout

_STRIP = 1 << 21  # entries of X in one call of a kernel: some hundredths of a second
_LEAST = 1024  # least rows whose slopes are added in one table
# Least entries of X per node of a table: with fewer its zeros take longer than the rows
_SHARE = 16


@dataclass(frozen=True, slots=True, eq=False)
class LocatedRows:
    """Rows of positive weight in the order of their ranks.

    Attributes
    ----------
    node, share : (n, d) arrays
        Positions of the values, as `Layout.locate` returns them.
    rank : (n,) array, increasing
    weight : (n,) array
    """

    node: np.ndarray
    share: np.ndarray
    rank: np.ndarray
    weight: np.ndarray

    def take(self, which: np.ndarray) -> Self:
        return type(self)(
            self.node[which], self.share[which], self.rank[which], self.weight[which]
        )

    @property
    def n_kept(self) -> int:
        return self.rank.size

    def scores(
        self, table: np.ndarray, n_threads: int, S: np.ndarray | None = None
    ) -> np.ndarray:
        """Return U of (F), (n,), and write S, (n, m), into `S` if given."""
        return scores(self.node, self.share, table, n_threads, S)

    def scattered(
        self, table: np.ndarray, S: np.ndarray, slope: np.ndarray, n_threads: int
    ) -> Generator[Parts, None, None]:
        """Yield the contribution of each chunk to the gradient by the nodes."""
        return scattered(self.node, self.share, table, S, slope, n_threads)

    def mass(self, layout: Layout) -> np.ndarray:
        """Return the weight of the rows at each node, (N + 1,).

        The weight of a row between two nodes is divided between them.
        """
        return self._divided(layout, self.weight)

    def mass_of_ranks(self, layout: Layout) -> np.ndarray:
        """Return the sum of weight times rank over the rows at each node, (N + 1,)."""
        return self._divided(layout, self.weight * self.rank)

    def _divided(self, layout: Layout, weight: np.ndarray) -> np.ndarray:
        mass = np.zeros(int(layout.node[-1]) + 1)
        # Feature by feature, without another array of all rows and features.
        for j in range(self.node.shape[1]):
            far = weight * self.share[:, j]
            mass += np.bincount(self.node[:, j], weight - far, mass.size)
            mass += np.bincount(self.node[:, j] + 1, far, mass.size)
        return mass

    def between(self, layout: Layout) -> np.ndarray:
        """Return the sum of weight s (1 - s) over the rows after each node, (N + 1,).

        A row after a node lies a share s of the way to the next node.
        """
        spread = self.weight[:, None] * self.share * (1 - self.share)
        size = int(layout.node[-1]) + 1
        return np.bincount(self.node.ravel(), spread.ravel(), size)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Coefficients that must not be negative; each is the square of a free number.

    Attributes
    ----------
    squared : (P,) uint8
        1 for main effects of monotone features.
    factors : bool
        Whether all factors are bounded, which any monotone feature requires.
    """

    squared: np.ndarray
    factors: bool

    @classmethod
    def from_signs(cls, layout: Layout, sign: np.ndarray) -> Self:
        """Make the bounds from the direction -1, 0 or 1 of each feature, (d,)."""
        squared = np.repeat(sign != 0, np.diff(layout.first))
        squared[layout.first[1:] - 1] = False  # missing values are in no order
        return cls(squared.astype(np.uint8), bool((sign != 0).any()))

    def mask(self, W: np.ndarray) -> np.ndarray:
        """Return the mask of the bounded entries of W, (P, m)."""
        mask = np.full(W.shape, self.factors)
        mask[:, 0] = self.squared
        return mask


class Ranked(Protocol):
    """Rows with ranks and weights, in memory or in chunks.

    The methods are those of `LocatedRows`.

    Attributes
    ----------
    n_kept : int
        Number of the first rows for which S of (F) is kept from `scores` to
        `scattered`.
    """

    @property
    def rank(self) -> np.ndarray: ...

    @property
    def weight(self) -> np.ndarray: ...

    @property
    def n_kept(self) -> int: ...

    def mass(self, layout: Layout) -> np.ndarray: ...

    def mass_of_ranks(self, layout: Layout) -> np.ndarray: ...

    def scores(
        self, table: np.ndarray, n_threads: int, S: np.ndarray | None = None
    ) -> np.ndarray: ...

    def scattered(
        self, table: np.ndarray, S: np.ndarray, slope: np.ndarray, n_threads: int
    ) -> Generator[Parts, None, None]: ...


class PairLoss:
    """The mean loss over all pairs of rows of different ranks, without penalties.

    An evaluation with gradient takes two passes over the rows: one for the scores,
    which are then sorted to find the slope of each row, and one for the gradient.

    Attributes
    ----------
    weight : float
        Sum M of w_i w_j over the pairs.
    n_pairs : int
    start : (r + 1,) array
        First row of each rank with rows, if rows are sorted by rank.
    """

    def __init__(self, rows: Ranked, tau: float, n_threads: int):
        self.rows, self.tau, self.n_threads = rows, tau, n_threads
        count = np.bincount(rows.rank)
        # The kernel's tree has one leaf per rank, and ranks without rows would only
        # deepen it.
        self._rank = (np.cumsum(count > 0) - 1)[rows.rank].astype(np.int32)
        count = count[count > 0]
        mass = np.bincount(self._rank, rows.weight)
        # Pairs of different ranks, counted by the higher rank: O(r), not O(n^2).
        self.weight = float((mass[1:] * np.cumsum(mass)[:-1]).sum())
        self.n_pairs = int((count[1:] * np.cumsum(count)[:-1]).sum())
        self.start = np.append(0, np.cumsum(count))
        n, self._r = rows.rank.size, count.size
        self._S, self._slope = np.empty((0, 0)), np.empty(n)
        self._sorted, self._tree = np.empty((3, n)), np.empty(2 * self._r + 2)

    def value(self, table: np.ndarray) -> float:
        """Return the loss; infinite if scores overflow. O(n (d m + log n))."""
        # Kept from one evaluation to the next, because allocating it is slow.
        if self._S.shape[1] != table.shape[1]:
            self._S = np.empty((self.rows.n_kept, table.shape[1]))
        U = self.rows.scores(table, self.n_threads, self._S)
        # A line search that went too far halves its step at an infinite value.
        if not np.isfinite(U).all():
            return np.inf
        loss = _factorization.hinge(
            U,
            np.argsort(U),
            self._rank,
            self.rows.weight,
            self._r,
            self.tau,
            self._slope,
            self._sorted,
            self._tree,
        )
        return float(loss / self.weight)

    def gradient(self, table: np.ndarray) -> np.ndarray:
        """Return the gradient by the nodes, (N + 1, m), at the table of `value`."""
        slopes = self.rows.scattered(table, self._S, self._slope, self.n_threads)
        with closing(slopes) as parts:
            return pairwise(parts)[0] / self.weight


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """(P) as a function of the pieces W.

    Attributes
    ----------
    penalty : (m,) array
        Ridge penalty of each column of W.
    """

    layout: Layout
    loss: PairLoss
    bounds: Bounds
    penalty: np.ndarray

    def at(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value, and the gradient by W, which is 0 if the value is inf."""
        table = self.layout.table(W)
        value = self.loss.value(table)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(W)
        dW = self.layout.gather(self.loss.gradient(table)) + 2 * self.penalty * W
        return value + float((self.penalty * W * W).sum()), dW

    def violation(self, W: np.ndarray, dW: np.ndarray) -> float:
        """Return the largest |slope|, by the root of an entry if it is bounded."""
        # By the root the slope at 0 is 0, so that W's own slope counts there, if it
        # descends into the feasible side.
        by_root = np.where(
            W > 0, 2 * np.sqrt(np.abs(W)) * np.abs(dW), np.maximum(-dW, 0)
        )
        return float(np.where(self.bounds.mask(W), by_root, np.abs(dW)).max())


def scores(
    node: np.ndarray,
    share: np.ndarray,
    table: np.ndarray,
    n_threads: int,
    S: np.ndarray | None = None,
) -> np.ndarray:
    """Return U of (F), (n,), and write S, (n, m), into `S` if given."""
    n, d = node.shape
    U, width = np.empty(n), max(1, _STRIP // d)
    scratch = np.empty((min(n, width), table.shape[1])) if S is None else S
    for some in strips(n, width):
        own = scratch[: some.stop - some.start] if S is None else S[some]
        _factorization.scores(node[some], share[some], table, own, U[some], n_threads)
    return U


def scattered(
    node: np.ndarray,
    share: np.ndarray,
    table: np.ndarray,
    S: np.ndarray,
    slope: np.ndarray,
    n_threads: int,
) -> Generator[Parts, None, None]:
    """Yield the gradient of sum_i slope_i U_i by the table for each chunk of rows."""
    n, d = node.shape
    step = _LEAST
    while step < CHUNK and step * d < _SHARE * len(table):
        step *= 2
    for some in strips(n, CHUNK * max(1, _STRIP // (CHUNK * d))):
        G = np.zeros((-(-(some.stop - some.start) // step), *table.shape))
        _factorization.scatter(
            node[some], share[some], table, S[some], slope[some], step, G, n_threads
        )
        for own in strips(len(G), CHUNK // step):
            yield (G[own].sum(axis=0),)


def packed(u: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return the table W, (P, m), of main effects, (P,), and factors, (P, k)."""
    lanes = _factorization.LANES
    W = np.zeros((u.size, -(-(1 + V.shape[1]) // lanes) * lanes))
    W[:, 0] = u
    W[:, 1 : 1 + V.shape[1]] = V
    return W


def initial_pieces(
    objective: Objective, n_factors: int, scale: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the start W: u = 0, and V of independent normal numbers.

    Bounded entries are positive: scale^2 in u, and absolute values in V. The features
    draw their numbers in an order of their own, so that the model does not depend on
    that of the columns.
    """
    layout, bounds = objective.layout, objective.bounds
    V = np.empty((layout.n_pieces, n_factors))
    for j in _drawing_order(layout, objective.loss.rows):
        own = slice(layout.first[j], layout.first[j + 1])
        V[own] = scale * rng.standard_normal((own.stop - own.start, n_factors))
    W = packed(np.zeros(layout.n_pieces), V)
    if bounds.factors:
        W = np.abs(W)
    W[:, 0] = np.where(bounds.squared, scale**2, 0)
    W[layout.unseen(objective.loss.rows.mass(layout))] = 0
    return W


def _drawing_order(layout: Layout, rows: Ranked) -> list[int]:
    """Return the features in an order that depends on their values alone.

    It is that of the weights of the rows at their nodes and of the means of the ranks
    there, in nine digits, below which the order of the rows counts. Neither depends on
    the units of the features.
    """
    mass, ranked = rows.mass(layout)[:-1], rows.mass_of_ranks(layout)[:-1]
    shares = np.round(np.vstack([mass, ranked]) / rows.weight.sum(), 9)
    of_features = np.split(shares, layout.node[1:-1], axis=1)
    keys = [
        (int(kind), *own.ravel().tolist())
        for kind, own in zip(layout.kind, of_features, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


def fill_unseen(layout: Layout, rows: Ranked, W: np.ndarray) -> None:
    """Set the pieces without rows to the mean of their feature, in place."""
    mass = rows.mass(layout)
    feature = np.repeat(np.arange(len(layout.kind)), np.diff(layout.first))
    unseen = layout.unseen(mass)
    W[unseen] = layout.means(layout.table(W), mass)[feature[unseen]]
