"""Validated training data: features, ranks, classes and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .checks import check_spans, listed, shown
from .columns import Categories, feature_names
from .features import read_features
from .frame import default_names
from .immutable import read_only
from .intervals import RankIntervals, among_told_apart
from .labels import (
    DROP_ARGUMENT,
    check_spread,
    classes_in_rank_order,
    declared_categories,
    ranks_of,
    read_labels,
    sample_weights,
    total_weights,
)
from .sparse import CSR, column_range, is_sparse

_HALF = np.finfo(np.float64).max / 2


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Validated training data, which solvers need not check again.

    Attributes
    ----------
    X : (n, d) float64 array, C-contiguous and finite, or CSR
        May share memory with the caller's data; never written to. Holds NaN only
        where missing entries were allowed.
    rank : (n,) int32
        Values 0..r-1; `classes[rank]` are the caller's labels.
    lower : (n,) int32, or None
        First possible rank of each row, where `rank` is the last one; None if all ranks
        are known.
    classes : (r,) array of integers, floats, booleans or strings, never objects
        Labels in rank order. Some may have no row, or none of positive weight.
    weight : (n,) float64, >= 0
        Sample weight times class weight.
    sample_weight : (n,) float64, >= 0
        Ones unless given.
    feature_names : tuple of (d,) str, or None
        Columns of the data frame that X was, if it was one.
    """

    X: np.ndarray | CSR
    rank: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray
    feature_names: tuple[str, ...] | None = None
    lower: np.ndarray | None = None

    def model_fields(self) -> dict[str, Any]:
        """Return the fields of a model that describe what a caller may pass to it."""
        return {
            "classes": read_only(self.classes),
            "n_features": self.n_features,
            "feature_names": self.feature_names,
        }

    def subset(self, numbers: np.ndarray, share: np.ndarray | None = None) -> Self:
        """Return the problem of rows by number; `share` multiplies their weights."""
        X: Any = self.X
        left = 1.0 if share is None else share
        return replace(
            self,
            X=X.rows(numbers) if is_sparse(X) else X[numbers],
            rank=self.rank[numbers],
            lower=None if self.lower is None else self.lower[numbers],
            weight=self.weight[numbers] * left,
            sample_weight=self.sample_weight[numbers] * left,
        )

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        missing: bool = False,
        categories: Categories | None = None,
    ) -> Problem:
        """Validate the training data of a fit.

        Parameters
        ----------
        X : (n, d) array of real numbers, sparse matrix or data frame
        y : (n,) labels
            Integers, booleans or multiples of 0.5, ranked by value; an ordered pandas
            Categorical or a polars Enum, ranked by its categories; with `classes`,
            anything of numbers or strings.
        classes : sequence of labels in rank order, optional
            Takes precedence over the order that `y` implies, and may name labels
            that no row holds.
        sample_weight : (n,) weights >= 0, optional
            Weight 2 means the same as the row written twice, 0 as the row left out.
        class_weight : None, "balanced" or mapping from label to weight, optional
            Multiplies the weights of a class; labels that are not named keep theirs.
            "balanced" gives every class that is present the same total weight.
        missing, categories
            As for `read_features`.

        Raises
        ------
        TypeError
            Data of a kind that has no order or is not numeric.
        ValueError
            Everything else; the message names the argument, the rule and the row.
        """
        names = feature_names(X)
        X = read_features(X, missing=missing, categories=categories)
        return cls.from_features(X, names, y, classes, sample_weight, class_weight)

    @classmethod
    def from_features(
        cls,
        X: np.ndarray | CSR,
        names: tuple[str, ...] | None,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
    ) -> Problem:
        """Validate labels and weights of rows whose features have been read.

        `names` are those of the features; other arguments are as in `from_arrays`.
        """
        n = X.shape[0]
        if isinstance(y, RankIntervals):
            if not y.is_known.all() or not len(y):
                given = classes, sample_weight, class_weight
                return cls._from_intervals(X, names, y, *given)
            classes, y = y.classes(classes), y.known
        elif classes is None:
            classes = declared_categories(y)
        y = read_labels(y, "y", DROP_ARGUMENT)
        if y.size != n:
            raise ValueError(f"y has shape {y.shape}, expected ({n},) as X")
        classes = classes_in_rank_order(y, classes)
        rank = ranks_of(y, classes)

        sample_weight = sample_weights(sample_weight, n)
        weight = total_weights(sample_weight, class_weight, classes, rank)
        problem = cls(X, rank, classes, weight, sample_weight, names)
        problem.check_classes()
        return problem

    @classmethod
    def _from_intervals(
        cls,
        X: np.ndarray | CSR,
        names: tuple[str, ...] | None,
        y: RankIntervals,
        classes: Any,
        sample_weight: Any,
        class_weight: Any,
    ) -> Problem:
        """Validate intervals of ranks and weights, as `from_features` does labels."""
        n = X.shape[0]
        if len(y) != n:
            raise ValueError(f"y has {len(y)} intervals of ranks, and X {n} rows")
        if class_weight is not None:
            raise ValueError(
                "class_weight must be None where y holds RankIntervals, of which a row "
                f"may be of several classes, got {shown(class_weight)}: pass "
                "sample_weight"
            )
        classes = y.classes(classes)
        lower, rank = y.ranks(classes)
        weight = sample_weights(sample_weight, n)
        check_spread("sample_weight", weight)
        lower, rank = among_told_apart(lower, rank, weight, classes.size)
        is_plain = np.array_equal(lower, rank)
        problem = cls(
            X, rank, classes, weight, weight, names, None if is_plain else lower
        )
        if problem.present.sum() < 2:
            raise ValueError(
                "the intervals of y must tell two ranks apart: some upper end must be "
                "below the lower end of another row of positive weight"
            )
        return problem

    def check_classes(self) -> None:
        """Raise ValueError unless there are two classes to tell apart."""
        if self.present.sum() < 2:
            raise ValueError(
                "y needs at least 2 classes with positive weight, got "
                f"{listed(self.classes[self.present])}"
            )

    def check_spans(self) -> None:
        """Raise ValueError for a column whose range exceeds the largest double."""
        X: Any = self.X
        values = X.data if is_sparse(X) else X
        if values.min(initial=0.0) > -_HALF and values.max(initial=0.0) < _HALF:
            return  # NaN is reported elsewhere
        check_spans(*column_range(X), self.shown_names)

    def close(self) -> None:
        """End the present pass, if rows are read again at every pass."""

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        return self.classes.size

    @property
    def shown_names(self) -> tuple[str, ...]:
        """Names of the features, x1..xd if they have none."""
        return self.feature_names or default_names(self.n_features)

    @property
    def present(self) -> np.ndarray:
        """Return which classes have a row of positive weight, (r,) bool."""
        return np.bincount(self.rank, self.weight, minlength=self.classes.size) > 0

    @property
    def rank_among_present(self) -> np.ndarray:
        """Ranks counted among the classes that are present, (n,) int32.

        Rows of absent classes have weight 0, and get some rank that is present.
        """
        return np.asarray(self.among_present[self.rank])

    @property
    def among_present(self) -> np.ndarray:
        """Return the position of every class among those that are present, (r,)."""
        present = self.present
        below = np.cumsum(present) - present
        last = np.count_nonzero(present) - 1
        return np.asarray(np.minimum(below, last), np.int32)


def around_ranks(inner: np.ndarray, present: np.ndarray, r: int) -> np.ndarray:
    """Return the r - 1 thresholds of all ranks from those between present ranks.

    Thresholds beyond all present ranks are -inf or +inf, and those on the two sides of
    an absent rank are equal.
    """
    out = np.full(r - 1, np.inf)
    out[: present[0]] = -np.inf
    out[present[0] : present[-1]] = np.repeat(inner, np.diff(present))
    return out
