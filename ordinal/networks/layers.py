"""Rows on their way into the hidden layer, and losses of the outputs.

Rows are standardised, some at a time. A loss has the shape of the output layer:
`n_outputs` linear outputs s = V h(x), without bias, and free parameters t beside them.
`terms` is asked for some rows, whose outputs are the columns of an array, and gives
their part of the loss, its slopes by s, and those by t.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._cumulative.likelihood import Link, quantile
from .._input.types import Matrix
from .._numerics.rows import dense, strips, take
from .._rows.moments import Moments
from .._solvers import _cumulative, _hidden_layer

ROWS = 1024  # of a chunk: with 50 hidden units they fit in the L2 cache
_KEPT = 32_000_000  # entries of the standardised rows that are kept, 256 MB


@dataclass(frozen=True, slots=True, eq=False)
class LayerRows:
    """Rows of which every column has the mean 0 and the deviation 1, and a last column
    of ones for the bias.

    They are made from X a chunk at a time, whenever they are asked for; not too many
    are kept. Neither changes a bit.
    """

    X: Matrix
    mean: np.ndarray
    scale: np.ndarray
    kept: np.ndarray | None = None

    @classmethod
    def of_training(cls, X: Matrix, weight: np.ndarray) -> LayerRows:
        """Standardised by the moments of rows of these weights, all positive."""
        parts = ((dense(take(X, rows)), weight[rows]) for rows in strips(len(weight)))
        moments = Moments.of_parts(parts)
        assert moments is not None  # there are rows of positive weight
        made = cls(X, *moments.mean_and_scale())
        n, d = X.shape
        if n * (d + 1) > _KEPT:
            return made
        kept = np.empty((n, d + 1))
        for rows in made.chunks():
            kept[rows] = made[rows]
        return cls(X, made.mean, made.scale, kept)

    def __getitem__(self, rows: slice) -> np.ndarray:
        if self.kept is not None:
            return self.kept[rows]
        part = dense(take(self.X, rows))
        out = np.ones((part.shape[0], part.shape[1] + 1))
        np.subtract(part, self.mean, out=out[:, :-1])
        out[:, :-1] /= self.scale
        return out

    def chunks(self, size: int = ROWS) -> Iterator[slice]:
        """Yield slices of rows of one batch."""
        return strips(self.X.shape[0], size)


def hidden_units(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    """tanh(Z U), (n, h): what the hidden layer with the weights U (d + 1, h), the bias
    last, makes of the rows Z (n, d + 1), whose last column is 1.
    """
    H = Z @ U
    return np.asarray(np.tanh(H, out=H))


class Spaces:
    """Arrays of one size that several threads work in, each in one at a time.

    New ones would be new pages at every evaluation: that takes longer than a product
    of two matrices.
    """

    def __init__(self, size: int):
        self._size = size
        self._free: list[np.ndarray] = []

    @contextmanager
    def one(self) -> Iterator[np.ndarray]:
        """Allocate an array of so many doubles."""
        try:
            space = self._free.pop()
        except IndexError:
            space = np.empty(self._size)
        try:
            yield space
        finally:
            self._free.append(space)


def random_layer(d: int, n_hidden: int, rng: np.random.Generator) -> np.ndarray:
    """Return weights U (d + 1, h) whose units bend within the cloud of standardised
    rows: their arguments have the mean variance 1, and so has their bias.
    """
    U = rng.standard_normal((d + 1, n_hidden))
    U[:-1] /= np.sqrt(max(d, 1))
    return U


Terms = tuple[float, np.ndarray]


class Loss(Protocol):
    """Loss that `training` minimises."""

    n_outputs: int

    def start(self) -> np.ndarray:
        """Return t that is best where all outputs are 0."""
        ...

    def terms(self, S: np.ndarray, t: np.ndarray, rows: slice) -> Terms:
        """Return (loss, slopes by t) of rows of the outputs S (n_outputs, c), in the
        place of which the slopes by S are put.
        """
        ...


def log_odds(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / (1 + e^-z) and 1 / (1 + e^z), both with all their digits."""
    with np.errstate(under="ignore"):  # 0 is what it tends to
        near = np.exp(-np.abs(z))
        far = near / (1 + near)
    near = 1 / (1 + near)
    return np.where(z > 0, near, far), np.where(z > 0, far, near)


class OrderedCodes:
    """One logistic output for each threshold, z_k = s_k - t_k, against the code of rank
    y, which is 1 for k < y and else 0.

    Parameters
    ----------
    rank : (n,) int32 array, 0..m
        Every one of these ranks has a row.
    share : (n,) array > 0
        Weights whose sum is 1.
    squared : bool
        Half the squared error of the logistic outputs, in place of the cross entropy.
    """

    def __init__(self, rank: np.ndarray, share: np.ndarray, squared: bool):
        self.rank, self.share, self.squared = rank, share, squared
        self.n_outputs = int(rank.max())

    def start(self) -> np.ndarray:
        return start_of(self.rank, self.share, "logit")

    def terms(self, S: np.ndarray, t: np.ndarray, rows: slice) -> Terms:
        by_t = np.empty_like(t)
        value = _hidden_layer.ordered_codes(
            S, t, self.rank[rows], self.share[rows], self.squared, by_t
        )
        return value, by_t


class Cumulative:
    """One output f below a cumulative link, P(y <= j) = F(theta_j - f), and its
    negative log-likelihood.

    The m thresholds are in order by construction: t is their mean and the logarithms of
    the m - 1 gaps between them, which no reversal of the ranks disturbs.

    Parameters
    ----------
    rank, share
        As for `OrderedCodes`.
    link : Link
    """

    n_outputs = 1

    def __init__(self, rank: np.ndarray, share: np.ndarray, link: Link):
        self.rank, self.share, self.link = rank, share, link
        self._number = _cumulative.LINKS.index(link)

    def start(self) -> np.ndarray:
        theta = start_of(self.rank, self.share, self.link)
        return np.concatenate([[theta.mean()], np.log(np.diff(theta))])

    @staticmethod
    def thresholds(t: np.ndarray) -> np.ndarray:
        """Return theta, (m,), increasing but for rounding."""
        out = np.empty((2, t.size + 1))
        _hidden_layer.thresholds(t, out)
        return out[0, :-1]

    def terms(self, S: np.ndarray, t: np.ndarray, rows: slice) -> Terms:
        by_t, work = np.empty_like(t), np.empty((2, t.size + 1))
        value = _hidden_layer.cumulative(
            self._number, S[0], t, self.rank[rows], self.share[rows], work, by_t
        )
        return value, by_t


def start_of(rank: np.ndarray, share: np.ndarray, link: Link) -> np.ndarray:
    """Return the thresholds of a model without features: those of the shares of the
    ranks.
    """
    of_rank = np.bincount(rank, share)
    # shares can be so small that their sums round to 0, to 1 or to one another
    below = np.cumsum(of_rank)[:-1] / of_rank.sum()
    theta = quantile(link, np.clip(below, 1e-15, 1 - 1e-15))
    return np.asarray(theta + 1e-9 * np.arange(theta.size))
