"""Standardised rows, the random hidden layer, and losses of the outputs.

Rows are standardised chunk by chunk. A network has `n_outputs` linear outputs
s = V h(x), without bias. The loss has further free parameters t, such as thresholds.
`Loss.terms` returns the loss of some rows with its slopes by s and by t.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from .._cumulative.likelihood import Link, quantile
from .._input.types import Matrix
from .._numerics.rows import dense, matmul, strips, take
from .._rows.sums import Moments, standardize
from .._solvers import _cumulative, _hidden_layer

ROWS = 1024  # rows of a chunk, which fit in the L2 cache with 50 hidden units
_KEPT = 32_000_000  # most entries of standardised rows that are cached: 256 MB


@dataclass(frozen=True, slots=True, eq=False)
class LayerRows:
    """Standardised rows, (n, d + 1), with a last column of ones for the bias.

    They are cached if there are few; otherwise each chunk is computed when needed. The
    result is the same to the bit.
    """

    X: Matrix
    mean: np.ndarray
    scale: np.ndarray
    kept: np.ndarray | None = None

    @classmethod
    def of_training(cls, X: Matrix, weight: np.ndarray) -> LayerRows:
        """Standardise training rows by their own moments; weights are positive."""
        parts = ((dense(take(X, rows)), weight[rows]) for rows in strips(len(weight)))
        moments = Moments.of_parts(parts)
        assert moments is not None  # there are rows of positive weight
        out = cls(X, *moments.mean_and_scale())
        n, d = X.shape
        if n * (d + 1) > _KEPT:
            return out
        kept = np.empty((n, d + 1))
        for rows in out.chunks():
            kept[rows] = out[rows]
        return replace(out, kept=kept)

    def __getitem__(self, rows: slice) -> np.ndarray:
        if self.kept is not None:
            return self.kept[rows]
        part = dense(take(self.X, rows))
        out = np.ones((part.shape[0], part.shape[1] + 1))
        standardize(part, self.mean, self.scale, out[:, :-1])
        return out

    def chunks(self, size: int = ROWS) -> Iterator[slice]:
        """Return slices of at most `size` rows that cover all rows."""
        return strips(self.X.shape[0], size)


def hidden_units(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return the units of the hidden layer, tanh(Z U), (n, h).

    The weights U are (d + 1, h), the bias last; the last column of Z, (n, d + 1), is 1.
    """
    H = matmul(Z, U)
    return np.asarray(np.tanh(H, out=H))


class Spaces:
    """Pool of work arrays of one size, for several threads.

    Arrays allocated at every evaluation would be new pages of memory, which take longer
    than a product of two matrices.
    """

    def __init__(self, size: int):
        self._size = size
        self._free: list[np.ndarray] = []

    @contextmanager
    def one(self) -> Iterator[np.ndarray]:
        """Lend an array, (size,), for a `with` block."""
        try:
            space = self._free.pop()
        except IndexError:
            space = np.empty(self._size)
        try:
            yield space
        finally:
            self._free.append(space)


def random_layer(d: int, n_hidden: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the weights U of a hidden layer, (d + 1, h).

    The arguments of the units have a mean variance of 1 over standardised rows, without
    the bias, whose variance is 1, too: units are nonlinear within the data.
    """
    U = rng.standard_normal((d + 1, n_hidden))
    U[:-1] /= np.sqrt(max(d, 1))
    return U


Terms = tuple[float, np.ndarray]


class Loss(Protocol):
    """Loss that `training` minimises."""

    n_outputs: int

    def start(self) -> np.ndarray:
        """Return the best t if all outputs are 0."""
        ...

    def terms(self, S: np.ndarray, t: np.ndarray, rows: slice) -> Terms:
        """Return the loss of some rows, and its slopes by t.

        S has their outputs, (n_outputs, c), and is overwritten by the slopes by them.
        """
        ...


def log_odds(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / (1 + e^-z) and 1 / (1 + e^z), both with all their digits."""
    with np.errstate(under="ignore"):  # the limit 0 is right
        near = np.exp(-np.abs(z))
        far = near / (1 + near)
    near = 1 / (1 + near)
    return np.where(z > 0, near, far), np.where(z > 0, far, near)


class OrderedCodes:
    """Loss (1) or (2) of NNOR, with one logistic output per threshold.

    The log odds of output k are s_k - t_k.

    Parameters
    ----------
    rank : (n,) int32 array, 0..m
        Every one of these ranks has a row.
    share : (n,) array > 0
        Weights whose sum is 1.
    squared : bool
        Whether the loss is (2), half the squared error, or (1), the cross entropy.
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
    """Loss (3) of NNPOM, with one output f: P(y <= j) = F(theta_j - f).

    The m thresholds are in order by construction: t has their mean and the logarithms
    of the m - 1 gaps between them. Reversed ranks have the mirrored t.

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
        """Return theta, (m,), which increase up to rounding."""
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
    """Return the thresholds of a model without features, F^-1 of cumulative shares."""
    of_rank = np.bincount(rank, share)
    # Shares can be so small that cumulative ones are 0, 1 or equal by rounding.
    below = np.cumsum(of_rank)[:-1] / of_rank.sum()
    theta = quantile(link, np.clip(below, 1e-15, 1 - 1e-15))
    return np.asarray(theta + 1e-9 * np.arange(theta.size))
