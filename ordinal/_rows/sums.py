"""Sums over chunks of rows, added in a tree that depends on the number of chunks alone.

The bytes of a sum do not depend on who computes which chunk, or when. `Moments` are
mean, variance and range of columns, combined from those of subsets of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Parts = tuple[np.ndarray, ...]


class Node(NamedTuple):
    """Sum of 2^level chunks, the first of which is a multiple of 2^level."""

    first: int
    level: int
    parts: Parts


def merged(nodes: Iterable[Node], n: int | None = None) -> list[Node]:
    """Add neighbouring nodes as far as the tree allows.

    At most log2 of the number of adjacent nodes are held at a time. The arrays of the
    nodes may be overwritten.

    Parameters
    ----------
    nodes : iterable of Node
        In the order of their chunks.
    n : int, optional
        Number of chunks, if known. A node that ends with the last chunk is then raised
        to the level that it would have with the missing chunks, which add nothing, so
        that few nodes remain of the last chunks.
    """
    held: list[Node] = []
    for node in nodes:
        held.append(node)
        while True:
            second, other, more = held[-1]
            size = 1 << other
            is_last = n is not None and second > 0 and second + size >= n
            if is_last and second % (2 * size) == 0:
                held[-1] = Node(second, other + 1, more)
                continue
            if len(held) == 1:
                break
            first, level, total = held[-2]
            if level != other or first + size != second or first % (2 * size):
                break
            held[-2:] = [Node(first, level + 1, _added(total, more))]
    return held


def whole(nodes: list[Node]) -> Parts:
    """Return the sum of all chunks from the nodes that `merged` returns."""
    total = nodes.pop().parts
    while nodes:
        total = _added(nodes.pop().parts, total)
    return total


def pairwise(parts: Iterable[Parts]) -> Parts:
    """Sum tuples of arrays in pairs, pairs of pairs, and so on."""
    return whole(merged(Node(i, 0, part) for i, part in enumerate(parts)))


def _added(total: Parts, more: Parts) -> Parts:
    for a, b in zip(total, more, strict=True):
        a += b
    return total


def standardize(
    X: np.ndarray, mean: np.ndarray, scale: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """Return (X - mean) / scale, (n, d), with 0 in columns of infinite scale."""
    with np.errstate(over="ignore", under="ignore"):
        # Halves, because the difference of two huge numbers may overflow.
        Z: np.ndarray = np.multiply(X, 0.5, out=out)
        Z -= mean * 0.5
        Z[:, np.isinf(scale)] = 0.0  # not -0.0
        Z /= scale * 0.5
    return Z


_EPS = np.finfo(np.float64).eps
_TINY = np.finfo(np.float64).tiny
_LEAST = -1100  # exponent below that of every double, for columns of zeros


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weighted mean and variance of d columns.

    Both are in units of a power of two above the largest absolute value of the column,
    in which no square or sum of a finite column overflows or underflows.

    Attributes
    ----------
    weight : float, > 0
        Sum of the weights of all rows.
    exponent : (d,) int
        Exponents of the units.
    mean : (d,) float64
        Means in units.
    variance : (d,) float64
        Variances in squares of units; rounding may leave them just below 0.
    low, high : (d,) float64
        Ranges.
    """

    weight: float
    exponent: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def from_rows(cls, X: np.ndarray, weight: np.ndarray) -> Moments | None:
        """Compute the moments of (n, d) finite rows; None if all weights are 0."""
        if not weight.all():
            X, weight = X[weight > 0], weight[weight > 0]
        if not weight.size:
            return None
        w = weight / weight.max()  # a sum of huge weights could overflow
        w /= w.sum()
        low, high = X.min(axis=0), X.max(axis=0)
        largest = np.maximum(-low, high)
        exponent = np.where(largest > 0, np.frexp(largest)[1], _LEAST)
        # small values may underflow beside the largest one, where they do not count
        with np.errstate(under="ignore"):
            Z = np.ldexp(X, -exponent)
            mean = w @ Z
            D = Z - mean
            shift = w @ D  # the rounding error of the mean and of the sum of weights
            variance = w @ (D * D) - shift * shift
        with np.errstate(over="ignore"):
            total = float(weight.sum())
        return cls(total, exponent, mean + shift, variance, low, high)

    @classmethod
    def of_parts(cls, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> Moments | None:
        """Compute the moments of rows that come in chunks (X, weight)."""
        return joined(cls.from_rows(X, weight) for X, weight in parts)

    def joined(self, other: Moments | None) -> Moments:
        """Combine the moments of two sets of rows.

        Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing
        sample variances", COMPSTAT 1982.
        """
        if other is None:
            return self
        weight = self.weight + other.weight
        share = other.weight / weight
        exponent = np.maximum(self.exponent, other.exponent)
        up, to = self.exponent - exponent, other.exponent - exponent
        with np.errstate(under="ignore"):
            mean = np.ldexp(self.mean, up)
            apart = np.ldexp(other.mean, to) - mean
            variance = (
                (1 - share) * np.ldexp(self.variance, 2 * up)
                + share * np.ldexp(other.variance, 2 * to)
                + share * (1 - share) * apart * apart
            )
        low = np.minimum(self.low, other.low)
        high = np.maximum(self.high, other.high)
        mean = mean + share * apart
        return Moments(weight, exponent, mean, variance, low, high)

    def standardized(self, mean: np.ndarray, scale: np.ndarray) -> Moments:
        """Return the moments of (X - mean) / scale."""
        low, high = ((a - mean) / scale for a in (self.low, self.high))
        centre, variance = self.mean_and_variance()
        unit = np.frexp(np.maximum(-low, high))[1]
        centre = np.ldexp((centre - mean) / scale, -unit)
        variance = np.ldexp(variance / scale**2, -2 * unit)
        return Moments(self.weight, unit, centre, variance, low, high)

    def mean_and_variance(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances, infinite beyond the largest double."""
        with np.errstate(over="ignore"):
            variance = np.ldexp(np.maximum(self.variance, 0.0), 2 * self.exponent)
        return np.ldexp(self.mean, self.exponent), variance

    def mean_and_scale(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means and population standard deviations.

        The mean of a constant column is its value. Its deviation counts as infinite, so
        that any other value of it in new rows has no effect, either.
        """
        mean, scale, constant = self._deviations()
        return mean, np.where(constant, np.inf, scale)

    def spread(self) -> np.ndarray:
        """Return the standard deviation of every column, 0 if it is constant.

        A column of two values counts with half their distance, whatever their shares,
        because an indicator of a rare category is not in smaller units than others.
        """
        _, scale, constant = self._deviations()
        low, high = (np.ldexp(a, -self.exponent) for a in (self.low, self.high))
        # the variance of numbers between low and high, which two values alone attain
        most = (high - self.mean) * (self.mean - low)
        two_values = self.variance >= (1 - 1e-9) * most
        half = np.ldexp((high - low) / 2, self.exponent)
        return np.where(constant, 0.0, np.where(two_values, half, scale))

    def _deviations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return means, population deviations, and which columns are constant."""
        scale = np.sqrt(np.maximum(self.variance, 0.0))
        largest = np.ldexp(np.maximum(-self.low, self.high), -self.exponent)
        # A deviation is at most the largest value; beyond it, rounding could overflow.
        scale = np.ldexp(np.minimum(scale, largest), self.exponent)
        # Rounding could give many equal values a deviation of some ulp.
        equal = self.low == self.high
        mean = np.where(equal, self.low, np.ldexp(self.mean, self.exponent))
        constant = equal | (scale <= np.maximum(4 * _EPS * np.abs(mean), 4 * _TINY))
        return mean, scale, constant


def joined(parts: Iterable[Moments | None]) -> Moments | None:
    """Combine several moments in their order."""
    moments: Moments | None = None
    for part in parts:
        moments = moments.joined(part) if moments else part
    return moments
