"""Ranks made of a numeric target."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._input.checks import (
    as_array,
    as_real_array,
    check_count,
    check_entries,
    shown,
)
from .._input.columns import numbers_of
from .._input.fields import FINITE, INCREASING, Array
from .._input.sparse import read_only
from .._input.types import ArrayLike
from .._model.storage import Storable

_MOST_BINS = 10**6  # edges that fit in memory; no method fits as many ranks


@dataclass(frozen=True, slots=True, eq=False)
class Binning(Storable):
    """Division of a numeric target into ranks 1..n_bins by bins closed on the right.

    Rank k holds edges[k-2] < value <= edges[k-1]. The outer bins have no outer edge, so
    that new values beyond the training range get the first or the last rank.

    Attributes
    ----------
    edges : (n_bins - 1,) array_like, finite and strictly increasing

    Raises
    ------
    ValueError
        If `edges` are not finite and strictly increasing.

    Examples
    --------
    >>> Binning([1.0, 2.0]).transform([0.5, 1.0, 1.5, 9.0])
    array([1, 1, 2, 3])
    """

    edges: Annotated[np.ndarray, Array("f8", "_"), FINITE, INCREASING]

    def __post_init__(self) -> None:
        edges = as_real_array(self.edges, "edges")
        if edges.ndim != 1 or edges.size == 0 or not np.isfinite(edges).all():
            raise ValueError(
                f"edges must be a finite, non-empty vector, got {shown(edges)}"
            )
        if not np.all(edges[:-1] < edges[1:]):
            raise ValueError(f"edges must be strictly increasing, got {shown(edges)}")
        object.__setattr__(self, "edges", read_only(edges))

    @classmethod
    def equal_frequency(cls, values: ArrayLike, n_bins: int) -> "Binning":
        """Return bins with numbers of `values` that are as equal as possible.

        Edge k is the smallest value that at least k/n_bins of all values do not exceed,
        so that ties always have the same rank.

        Parameters
        ----------
        values : (n,) array_like, finite
        n_bins : int, at least 2

        Raises
        ------
        ValueError
            If ties leave a bin empty (the message says how many bins remain), or if an
            argument is invalid.

        Examples
        --------
        >>> Binning.equal_frequency([5, 1, 2, 3, 8, 4], 3).edges
        array([2., 4.])
        """
        values = np.sort(_values(values, n_bins))
        # ceil(k n / n_bins) - 1 in integers, where rounding cannot move an edge; n bins
        # or more have all values for edges
        n = values.size
        k = np.arange(1, min(n_bins, n))
        edges = values[-(-k * n // min(n_bins, n)) - 1]
        distinct = np.unique(edges[edges < values[-1]])
        if distinct.size < n_bins - 1:
            raise ValueError(
                f"ties leave only {distinct.size + 1} distinct bins of the "
                f"n_bins={n_bins} asked for; take fewer bins or equal lengths"
            )
        return cls(edges)

    @classmethod
    def equal_length(cls, values: ArrayLike, n_bins: int) -> "Binning":
        """Return bins of equal length between the smallest and the largest value.

        Inner bins may be empty; their ranks then do not occur.

        Parameters
        ----------
        values : (n,) array_like, finite
        n_bins : int, at least 2

        Raises
        ------
        ValueError
            If the values are too close together for edges between them, if there are
            more than a million bins, or if an argument is invalid.

        Examples
        --------
        >>> Binning.equal_length([0.0, 1.0, 9.0], 3).edges
        array([3., 6.])
        """
        values = _values(values, n_bins)
        if n_bins > _MOST_BINS:
            raise ValueError(
                f"n_bins must be at most {_MOST_BINS} for bins of equal length, got "
                f"{n_bins}"
            )
        low, high = values.min(), values.max()
        share = np.arange(1, n_bins) / n_bins
        edges = low * (1 - share) + high * share  # high - low could overflow
        if not np.all(np.diff(edges, prepend=low, append=high) > 0):
            raise ValueError(
                f"{n_bins} bins of equal length do not fit between {low} and {high}"
            )
        return cls(edges)

    def transform(self, values: ArrayLike) -> np.ndarray:
        """Return ranks 1..n_bins, (n,) int64.

        Raises ValueError, which names the row of an invalid value.
        """
        return 1 + np.searchsorted(self.edges, _values(values), side="left")


def _values(values: ArrayLike, n_bins: int | None = None) -> np.ndarray:
    if n_bins is not None:
        check_count("n_bins", n_bins, 2)
    values = as_array(values, "values")
    if values.ndim != 1 or values.size == 0:
        raise ValueError(
            f"values must be 1-dimensional and non-empty, got shape {values.shape}"
        )
    values = numbers_of(values, "values")
    check_entries("values", values, np.isfinite(values), "be finite")
    return values
