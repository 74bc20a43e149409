"""The objective (P) of `ordinal.xofm`: rows, bounds, the pairwise loss, penalties.

Pieces are held as one table W of shape (P, m): the main effects u in column 0, the
factors V in the next ones, and zeros up to a multiple of `LANES`, the width of the
vector loops. `Layout.table` makes of it the values at the nodes.
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
_LEAST = 1024  # rows of which slopes are added in one table
# entries of X for each node of a table, lest its zeros take longer than the rows
_SHARE = 16


@dataclass(frozen=True, slots=True, eq=False)
class LocatedRows:
    """Rows of positive weight in the order of their ranks.

    Attributes
    ----------
    node, share : (n, d) arrays
        Where each value lies, as `Layout.locate` says.
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
        """Return U of (F), (n,); and its S, (n, m), if there is room given for it."""
        return scores(self.node, self.share, table, n_threads, S)

    def scattered(
        self, table: np.ndarray, S: np.ndarray, slope: np.ndarray, n_threads: int
    ) -> Generator[Parts, None, None]:
        """Return the sum of the slopes by the values at the nodes, chunk by chunk."""
        return scattered(self.node, self.share, table, S, slope, n_threads)

    def mass(self, layout: Layout) -> np.ndarray:
        """Weight of the rows at each node; one between two is shared by them."""
        mass = np.zeros(int(layout.node[-1]) + 1)
        for j in range(self.node.shape[1]):
            # Feature by feature: no array of all rows and features beside those that
            # there are.
            far = self.weight * self.share[:, j]
            mass += np.bincount(self.node[:, j], self.weight - far, mass.size)
            mass += np.bincount(self.node[:, j] + 1, far, mass.size)
        return mass

    def between(self, layout: Layout) -> np.ndarray:
        """Sum of weight s (1 - s) over rows a share s of the way from each node."""
        spread = self.weight[:, None] * self.share * (1 - self.share)
        size = int(layout.node[-1]) + 1
        return np.bincount(self.node.ravel(), spread.ravel(), size)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Bounds of coefficients that may not be negative: each is the square of its root.

    Attributes
    ----------
    squared : (P,) uint8
        The main effects of monotone features.
    factors : bool
        Whether all factors are bounded, as they are with any monotone feature.
    """

    squared: np.ndarray
    factors: bool

    @classmethod
    def from_signs(cls, layout: Layout, sign: np.ndarray) -> Self:
        """Make the bounds from the sign -1, 0 or 1 of every feature, (d,)."""
        squared = np.repeat(sign != 0, np.diff(layout.first))
        squared[layout.first[1:] - 1] = False  # missing values are in no order
        return cls(squared.astype(np.uint8), bool((sign != 0).any()))

    def mask(self, W: np.ndarray) -> np.ndarray:
        """Return the bounded entries of W."""
        mask = np.full(W.shape, self.factors)
        mask[:, 0] = self.squared
        return mask


class Ranked(Protocol):
    """Rows by their ranks and weights, wherever they are.

    Attributes
    ----------
    n_kept : int
        The first rows, for which S of (F) is kept from `scores` to `scattered`.
    """

    @property
    def rank(self) -> np.ndarray: ...

    @property
    def weight(self) -> np.ndarray: ...

    @property
    def n_kept(self) -> int: ...

    def mass(self, layout: Layout) -> np.ndarray:
        """Weight of the rows at each node; one between two is shared by them."""
        ...

    def scores(
        self, table: np.ndarray, n_threads: int, S: np.ndarray | None = None
    ) -> np.ndarray:
        """Return U of (F), (n,); and S of the rows that are kept, if there is room for
        it.
        """
        ...

    def scattered(
        self, table: np.ndarray, S: np.ndarray, slope: np.ndarray, n_threads: int
    ) -> Generator[Parts, None, None]:
        """Return the sum of the slopes by the values at the nodes, chunk by chunk."""
        ...


class PairLoss:
    """The mean loss over the pairs of some rows, without penalties.

    All pairs need the scores of all rows, sorted, and nothing else of them. So a point
    is two passes over the rows: for the scores, and when each row has its slope.
    """

    def __init__(self, rows: Ranked, tau: float, n_threads: int):
        self.rows, self.tau, self.n_threads = rows, tau, n_threads
        count = np.bincount(rows.rank)
        among = np.cumsum(count > 0) - 1  # those that are present
        # The kernel's tree has one leaf per rank: ranks without rows would only deepen
        # it.
        self._rank = np.asarray(
            rows.rank if (count > 0).all() else among[rows.rank], np.int32
        )
        held = np.bincount(self._rank, rows.weight)
        # Pairs of different ranks, counted by the lower rank: O(r) rather than O(n^2).
        self.weight = float((held[1:] * np.cumsum(held)[:-1]).sum())
        count = count[count > 0]
        self.n_pairs = int((count[1:] * np.cumsum(count)[:-1]).sum())
        self.start = np.append(0, np.cumsum(count))  # where rows are by rank
        n, self._r = rows.rank.size, count.size
        self._S, self._slope = np.empty((0, 0)), np.empty(n)
        self._sorted, self._tree = np.empty((3, n)), np.empty(2 * self._r + 2)

    def value(self, table: np.ndarray) -> float:
        """Return the loss; infinite where scores overflow. O(n (d m + log n))."""
        # Kept from one evaluation to the next: memory of this size is slow to ask for.
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
        """Return the gradient by node values, with the table of the last `value`."""
        slopes = self.rows.scattered(table, self._S, self._slope, self.n_threads)
        with closing(slopes) as parts:
            return pairwise(parts)[0] / self.weight


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """(P) as a function of the pieces W.

    Attributes
    ----------
    penalty : (m,) array
        lambda of each column of W.
    """

    layout: Layout
    loss: PairLoss
    bounds: Bounds
    penalty: np.ndarray

    def at(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and gradient by W, which must be finite."""
        table = self.layout.table(W)
        value = self.loss.value(table)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(W)
        dW = self.layout.gather(self.loss.gradient(table)) + 2 * self.penalty * W
        return value + float((self.penalty * W * W).sum()), dW

    def violation(self, W: np.ndarray, dW: np.ndarray) -> float:
        """Return the largest slope.

        Of a bounded entry by its root, or at 0 the descent.
        """
        # At 0 the root has no slope: only descent into the allowed side counts there.
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
    """Return U (n,) of (F); and its S, (n, m), if there is room given for it."""
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
    """Return the gradient of sum_i slope_i U_i by the table, of each chunk of rows."""
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
    """Return the table W of main effects and factors."""
    lanes = _factorization.LANES
    W = np.zeros((u.size, -(-(1 + V.shape[1]) // lanes) * lanes))
    W[:, 0] = u
    W[:, 1 : 1 + V.shape[1]] = V
    return W


def initial_pieces(
    objective: Objective, n_factors: int, scale: float, rng: np.random.Generator
) -> np.ndarray:
    """Return u = 0 and V normal; of bounded pieces scale^2 and the absolute value."""
    layout, bounds = objective.layout, objective.bounds
    V = scale * rng.standard_normal((layout.n_pieces, n_factors))
    W = packed(np.zeros(layout.n_pieces), V)
    if bounds.factors:
        W = np.abs(W)
    W[:, 0] = np.where(bounds.squared, scale**2, 0)
    W[layout.unseen(objective.loss.rows.mass(layout))] = 0
    return W


def fill_unseen(layout: Layout, rows: Ranked, W: np.ndarray) -> None:
    """Give the pieces that no row has the values of the mean row, in place."""
    mass = rows.mass(layout)
    feature = np.repeat(np.arange(len(layout.kind)), np.diff(layout.first))
    unseen = layout.unseen(mass)
    W[unseen] = layout.means(layout.table(W), mass)[feature[unseen]]
