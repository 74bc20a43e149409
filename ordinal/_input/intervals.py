"""Labels that are known only as intervals of ranks, and the ranks that they tell apart.

An interval is a pair (lower, upper) of ranks. Only its ends enter a likelihood, so that
ranks between which no interval of the training rows begins or ends count as one rank.
Ranks outside the sets that begin at some lower end and finish at the next upper end
have no probability at a maximum of the likelihood:

B. W. Turnbull, "The empirical distribution function with arbitrarily grouped, censored
and truncated data", JRSS B 38:290-295, 1976.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .checks import as_array, listed, shown, suggest_in_methods
from .columns import feature_names, frame_columns, is_frame, warn_of_other_order
from .immutable import read_only
from .labels import (
    classes_in_rank_order,
    declared_categories,
    is_missing,
    ranks_of,
    read_labels,
)

_SIDES = ("lower", "upper")
_NAME = r"(`[^`]*`|[^`~(),]*[^`~(),\s])"
# RankIntervals(a, b) ~, or a ~
_RESPONSE = re.compile(
    rf"\s*(?:RankIntervals\(\s*{_NAME}\s*,\s*{_NAME}\s*\)|{_NAME})\s*~"
)
_WHOLE = 2.0**53  # integers up to here are the same in double


class _NoLabelsError(TypeError, ValueError):
    """Error for intervals in place of an array of labels."""


@suggest_in_methods
class RankIntervals:
    """Labels of rows whose ranks are known to lie between two ranks, both included.

    They take the place of y in the methods that docs/guides/intervals.md lists, such as
    `fit_pom`, and of the true labels in `ordinal.metrics`. Other methods refuse them.

    Parameters
    ----------
    lower, upper : (n,) sequences of labels, with None or NaN for an open end
        First and last possible label of each row; they are equal where the rank is
        known. A row without a lower end is censored on the left, one without an upper
        end on the right. Labels are numbers, whose order is the rank order, ordered
        categoricals, or strings together with the argument `classes` of the fit, which
        may also name ranks at which no interval ends.

    Raises
    ------
    ValueError, TypeError
        If the ends differ in number or are no labels, or if a row has neither end.

    See Also
    --------
    fit_pom : Fit a cumulative link model by maximum likelihood, such as proportional
        odds.

    Examples
    --------
    >>> import ordinal
    >>> y = ordinal.RankIntervals([1, 2, None, 3, 1, 2], [1, 3, 2, None, 2, 2])
    >>> y
    RankIntervals of 6 rows, 2 with a known rank
    >>> model = ordinal.fit_pom([[1.0], [3.0], [4.0], [2.0], [2.0], [1.0]], y)
    >>> model.coef.round(2)
    array([0.34])
    """

    __slots__ = ("_ends", "_given", "_is_open", "_is_part")

    def __init__(self, lower: Sequence[Any], upper: Sequence[Any]):
        self._given, self._is_part = (lower, upper), False
        warn_of_other_order(lower, "lower", upper=upper)
        sides = [as_array(s, name) for s, name in zip(self._given, _SIDES, strict=True)]
        if sides[0].ndim != 1 or sides[0].shape != sides[1].shape:
            raise ValueError(
                "lower and upper must be sequences of one label per row, got shapes "
                f"{sides[0].shape} and {sides[1].shape}"
            )
        values = [v for side in sides for v in side.tolist()]
        is_open = np.array([is_missing(v) for v in values], dtype=bool)
        self._is_open = read_only(is_open.reshape(2, -1))
        unknown = np.flatnonzero(self._is_open.all(axis=0))
        if unknown.size:
            raise ValueError(
                f"row {unknown[0]} has neither a lower nor an upper end: leave out "
                "rows about which nothing is known"
            )
        known = [v for v, missing in zip(values, is_open, strict=True) if not missing]
        labels = read_labels(known, "lower or upper")
        if is_open.any() and _are_whole(labels):  # integers beside NaN are floats
            labels = labels.astype(np.int64)
        ends = np.zeros(is_open.size, labels.dtype)
        ends[~is_open] = labels
        self._ends = read_only(ends.reshape(2, -1))

    @property
    def shape(self) -> tuple[int]:
        """Return the number of rows, as of an array."""
        return (len(self),)

    def __len__(self) -> int:
        return int(self._is_open.shape[1])

    def __getitem__(self, rows: Any) -> RankIntervals:
        """Return the intervals of some rows, by their numbers, a mask or a slice."""
        part = RankIntervals.__new__(RankIntervals)
        part._given, part._is_part = self._given, True
        which = (slice(None), *(rows if isinstance(rows, tuple) else (rows,)))
        part._is_open = read_only(self._is_open[which].reshape(2, -1))
        part._ends = read_only(self._ends[which].reshape(2, -1))
        return part

    def __repr__(self) -> str:
        known = np.count_nonzero(self.is_known)
        return f"RankIntervals of {len(self)} rows, {known} with a known rank"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Return the ends as objects, (n, 2), with None for an open one.

        All other types raise an error, as sequences of unequal lengths do in numpy.
        scikit-learn then asks for objects, and divides the rows into folds by number.
        """
        if dtype is not None and np.dtype(dtype) == object:
            ends = self._ends.astype(object)
            ends[self._is_open] = None
            return ends.T
        raise _NoLabelsError(
            "RankIntervals are not an array of labels: they are for rows in memory, "
            "and for the methods and functions that docs/guides/intervals.md lists; "
            "pass the rows with a known rank, y[y.is_known], and their labels y.known"
        )

    @property
    def ends_by_name(self) -> dict[str, Sequence[Any]]:
        """Return lower and upper ends as the caller passed them; none of some rows."""
        return {} if self._is_part else dict(zip(_SIDES, self._given, strict=True))

    @property
    def is_known(self) -> np.ndarray:
        """Return whether the rank of each row is known, (n,) bool."""
        same = self._ends[0] == self._ends[1]
        return np.asarray(same & ~self._is_open.any(axis=0))

    @property
    def known(self) -> np.ndarray:
        """Return the labels of the rows with a known rank."""
        return np.asarray(self._ends[0][self.is_known])

    @property
    def ends(self) -> np.ndarray:
        """Return the labels at all ends that are not open."""
        return np.asarray(self._ends[~self._is_open])

    @property
    def declared(self) -> np.ndarray | None:
        """Return the rank order that the types of the ends declare, or None.

        Raises
        ------
        ValueError, TypeError
            If lower and upper ends are categoricals of other categories, or of no
            order.
        """
        sides = zip(self._given, _SIDES, strict=True)
        declared = [declared_categories(side, name=name) for side, name in sides]
        known = [d for d in declared if d is not None]
        if len(known) == 2 and not np.array_equal(*known):
            raise ValueError(
                "lower and upper must be categoricals of the same categories, got "
                f"{listed(known[0])} and {listed(known[1])}"
            )
        return known[0] if known else None

    def classes(self, given: Any = None) -> np.ndarray:
        """Return all labels in rank order: those given, declared, or at some end.

        Raises
        ------
        ValueError, TypeError
            As `declared`, or if nothing tells the order.
        """
        given = self.declared if given is None else given
        return classes_in_rank_order(self.ends, given)

    def ranks(
        self, classes: ArrayLike, name: str = "y", argument: str = "classes"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the last rank of each row, (n,) int32 each.

        Raises
        ------
        ValueError, TypeError
            If an end is not among the classes, or if a lower end is above the upper.
        """
        classes = read_labels(classes, argument)
        lower = np.zeros(len(self), np.int32)
        upper = np.full(len(self), classes.size - 1, np.int32)
        for side, rank in enumerate((lower, upper)):
            given = ~self._is_open[side]
            if given.any():
                where = f"the {_SIDES[side]} end of {name}"
                rank[given] = ranks_of(
                    self._ends[side][given], classes, where, argument
                )
        bad = np.flatnonzero(lower > upper)
        if bad.size:
            first, last = self._ends[:, bad[0]].tolist()
            raise ValueError(
                f"the intervals of {name} must not end before they begin, but row "
                f"{bad[0]} has lower={shown(first)} and upper={shown(last)}, in the "
                f"rank order {listed(classes)}"
            )
        return read_only(lower), read_only(upper)


def known_labels(asked: str, y: Any) -> Any:
    """Return labels as they are, or those of intervals if these are known ranks.

    Raises
    ------
    TypeError
        If intervals hold several ranks; the message names the function `asked`.
    """
    if not isinstance(y, RankIntervals):
        return y
    if not y.is_known.all():
        raise TypeError(
            f"{asked} needs the rank of each row, and y holds RankIntervals: pass the "
            "rows with a known rank, X[y.is_known] and y.known"
        )
    return y.known


def _are_whole(labels: np.ndarray) -> bool:
    """Return whether labels are floats that integers can replace."""
    if labels.dtype.kind != "f":
        return False
    return bool(((labels == np.floor(labels)) & (np.abs(labels) < _WHOLE)).all())


def among_told_apart(
    lower: np.ndarray, upper: np.ndarray, weight: np.ndarray, r: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals of the ranks that the rows of positive weight tell apart.

    Each set of Turnbull is represented by its middle rank, the lower one of two. The
    ends of every interval become the first and the last representative within it; those
    of a row without weight may be any representatives.
    """
    used = weight > 0
    begins, ends = np.zeros((2, r), dtype=bool)
    begins[lower[used]], ends[upper[used]] = True, True
    every = np.arange(r)
    # The last lower end up to each rank, and the last upper end before it.
    first = np.maximum.accumulate(np.where(begins, every, -1))
    before = np.maximum.accumulate(np.where(ends, every, -1))
    before = np.append(-1, before[:-1])
    last = np.flatnonzero(ends & (first > before))
    first = first[last]
    middle = ((first + last) // 2).astype(np.int32)
    top = last.size - 1
    low = np.minimum(np.searchsorted(first, lower), top)
    high = np.clip(np.searchsorted(last, upper, side="right") - 1, low, top)
    return read_only(middle[low]), read_only(middle[high])


def response_columns(formula: str) -> tuple[str, ...]:
    """Return the columns of the labels that the left side of a formula names.

    It is a name, perhaps in backquotes, or RankIntervals(lower, upper).
    """
    found = _RESPONSE.match(formula)
    if found is None:
        return (formula.partition("~")[0].strip(),)
    return tuple(name.strip("`") for name in found.groups() if name is not None)


def labels_of_formula(formula: str, table: Any) -> Any:
    """Return the labels of a formula in its table, or None if they are not found."""
    columns = response_columns(formula)
    if not is_frame(table) or not {*columns} <= {*(feature_names(table) or ())}:
        return None  # the function that reads the formula raises an error
    found = frame_columns(table, columns)
    return RankIntervals(*found) if len(found) > 1 else found[0]
