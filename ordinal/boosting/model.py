"""Model that `fit_boosting` returns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np

from .._cumulative.likelihood import (
    Link,
    cumulative,
    exceeding,
    for_all_ranks,
    rank_probabilities,
)
from .._input.columns import Categories
from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    RISING,
    Array,
    Length,
    Rule,
)
from .._input.frame import default_names
from .._input.immutable import read_only
from .._input.sparse import is_sparse
from .._input.types import ArrayLike, Matrix, MatrixLike, RowsLike
from .._model.explanation import Named
from .._model.links import falling
from .._model.model import read_for
from .._model.support import finite_scores
from .._model.threshold_model import Thresholds, predicted
from .._numerics.threads import resolve_n_threads
from .._watch.convergence import Convergence, Status
from .forest import Trees
from .growing import Structure

_Categories = Annotated[np.ndarray, Array(LABELS, "_"), FINITE, DISTINCT]
_SIGNS = Rule("be -1, 0 or 1", lambda a: np.abs(a) <= 1)
_SIZE = Rule("lie between -1e300 and 1e300", lambda a: np.abs(a) <= 1e300)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoostingModel(Thresholds):
    """P(y <= k | x) = F(b_k - f(x)), where f is a sum of trees less its mean.

    Attributes
    ----------
    trees : Trees
        Trees of all scores, as arrays.
    start : (s + 1,) array
        Position of the first tree of each score. There is one score, or one per
        threshold between ranks that have training rows.
    centre : (s,) array
        Weighted mean of each sum of trees over the training rows, which is subtracted
        from it.
    thresholds : (r - 1,) array
        Thresholds b. They are -inf or +inf where no training rows lie beyond them, and
        equal on both sides of an inner rank without training rows. With one score they
        are in order.
    structure : {"score", "scores"}
    link : str
    frequencies : (r,) array
        Share of each rank in the weight of the training rows.
    n_rows : int
        Number of training rows of positive weight.
    n_rounds : int
        Number of rounds of the model.
    learning_rate : float
    n_leaves : int
    held_out : (m,) array
        Mean hold-out loss after each round that was tried; empty if `n_rounds` was
        given.
    categories : tuple of (d,) arrays or None
    fill : (d,) array
        Medians of the training rows, which replace missing values where `filled`.
    filled : (d,) bool array
        Whether each column is numeric and had no missing value in the training rows.
    monotone : (d,) array of -1, 0, 1
    feature_names : tuple of (d,) str, or None
    classes : (r,) array
        Labels in rank order.
    convergence : Convergence
        Record of the fit. `primal` is the mean loss of the training rows, `n_iter` the
        number of rounds that were tried, and `violation` the quantity that `tol` of
        `fit_boosting` limits. It says nothing about a distance to an optimum, which
        boosting does not have.
    """

    trees: Trees
    start: Annotated[np.ndarray, Array("i8", "s+1"), RISING]
    centre: Annotated[np.ndarray, Array("f8", "s"), FINITE, _SIZE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1")]
    structure: Structure
    link: Link
    frequencies: Annotated[np.ndarray, Array("f8", "r"), FINITE, NONNEGATIVE]
    n_rows: Annotated[int, POSITIVE]
    n_rounds: Annotated[int, NONNEGATIVE]
    learning_rate: Annotated[float, FINITE, POSITIVE]
    n_leaves: Annotated[int, POSITIVE]
    held_out: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    categories: Annotated[tuple[_Categories | None, ...], Length("d")]
    fill: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    filled: Annotated[np.ndarray, Array("b", "d")]
    monotone: Annotated[np.ndarray, Array("i1", "d"), _SIGNS]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    convergence: Convergence

    @property
    def n_features(self) -> int:
        """Number of columns of the training rows."""
        return len(self.categories)

    @property
    def observed(self) -> np.ndarray:
        """Mask of the ranks with training rows of positive weight, (r,)."""
        return np.asarray(self.frequencies > 0)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.feature_names or default_names(self.n_features)

    def _rows(self, X: RowsLike) -> Matrix:
        """Return rows as numbers, (n, d), with NaN for missing values."""
        # Without categories, an array is read whole instead of column by column.
        coded = any(labels is not None for labels in self.categories)
        known: Categories | None = self.categories if coded else None
        Z = read_for(self, X, missing=True, categories=known)
        return filled_in(Z, self.fill, self.filled)

    def _sums(self, Z: Matrix) -> np.ndarray:
        """Return the sums of the trees of each score less their means, (s, n)."""
        n_threads = resolve_n_threads(None)
        out = np.empty((self.centre.size, len(Z)))
        for k, (begin, end) in enumerate(self._ranges()):
            out[k] = self.trees.scores(Z, begin, end, n_threads) - self.centre[k]
        return out

    def _ranges(self) -> list[tuple[int, int]]:
        return list(pairwise(self.start.tolist()))

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the score, which increases with the rank.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Rows to predict. Entries that a sparse matrix does not store are 0. NaN,
            and None in a data frame, marks a missing value: trees
            send it to the side that is better for the training rows; in a column that
            had no missing value there, it is replaced by the median. A category that
            does not occur in the training rows counts as missing. Columns of a data
            frame are found by their names.

        Returns
        -------
        (n,) array
            Scores f, whose mean over the training rows is 0. For structure="scores",
            the array has shape (n, r - 1) and holds f_k minus its threshold, which
            increases with the probability of a rank above k. It is infinite if there
            are no training rows on one side of the threshold.

        Raises
        ------
        ValueError, TypeError
            If X lacks columns, or holds anything but finite numbers, NaN and, in
            columns of categories, labels.
        """
        f = finite_scores(self._sums(self._rows(X)))
        if self.structure == "score":
            return np.asarray(f[0])
        eta = for_all_ranks(self.observed, self._predictors(f), -np.inf, np.inf)
        return np.asarray(-eta)

    def _predictors(self, f: np.ndarray) -> np.ndarray:
        """Return b_k - f_k between the ranks that are observed, (n, q - 1)."""
        return np.asarray(self._inner - f.T)

    @property
    def _inner(self) -> np.ndarray:
        """Return the thresholds between the ranks that are observed, (q - 1,)."""
        below = np.cumsum(self.observed)[:-1]
        first = (np.diff(below, prepend=0) > 0) & (below < self.observed.sum())
        return np.asarray(self.thresholds[first])

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r).

        With structure="scores", the values of P(y > k) may increase with k at a row.
        They are then replaced by the nearest values, by least squares, that do not.
        These are often equal for neighbouring k, which gives the rank between them a
        probability of 0. Because n rows are no evidence of that, one more row is spread
        over the ranks by their frequencies h in the training rows: P becomes
        (n P + h) / (n + 1), so that the log loss is finite. Features without effect
        leave P = h.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, which says what is raised.
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array
            Rows sum to 1.
        """
        eta = self._predictors(finite_scores(self._sums(self._rows(X))))
        below, above = cumulative(self.link, eta), exceeding(self.link, eta)
        if self.structure == "scores":
            above, below = falling(above), -falling(-below)  # 1 - above loses digits
        below = for_all_ranks(self.observed, below, 0.0, 1.0)
        above = for_all_ranks(self.observed, above, 1.0, 0.0)
        P = np.maximum(rank_probabilities(below, above), 0.0)
        P /= P.sum(axis=1, keepdims=True)
        if self.structure == "scores":
            n = self.n_rows
            P = (n * P + self.frequencies) / (n + 1)
        return np.asarray(P)

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["median", "mode", "cost"] | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`.
        rule : {"median", "mode", "cost"}, optional
            Default: the `rule` of the model or, without one, "median". The median has
            the least expected absolute error; the mode is the most probable rank;
            "cost" the rank of least expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`; also if the rule is unknown, or if `cost` is
            passed with another rule or does not have shape (r, r).
        """
        return predicted(self, X, rule, cost)

    def importance(self) -> Named:
        """Return the share of each feature in the gain of all splits.

        The gain of a split is the decrease of the training loss, approximated to second
        order. It favours features with many distinct values; `explain` measures the
        effect of features on predictions instead.

        Returns
        -------
        Named
            `names` of the features and `values`, (d,), which sum to 1 if there is any
            split.
        """
        gain = self.trees.gain_by_feature(self.n_features)
        total = gain.sum()
        return Named(self._names, read_only(gain / total if total > 0 else gain))

    def contributions(self, X: RowsLike) -> Named:
        """Return the contributions of the features to the score of each row.

        They are Shapley values: the change of the mean score when the value of a
        feature becomes known, averaged over all orders of the features. At a split on a
        feature that is not yet known, both branches are averaged with the shares of the
        training rows (path-dependent TreeSHAP; S. M. Lundberg et al., "From local
        explanations to global understanding with explainable AI for trees", Nature
        Machine Intelligence 2:56-67, 2020). This takes O(leaves depth^2) operations per
        row and tree.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, which says what is raised.

        Returns
        -------
        Named
            `values` (n, 1 + d), whose rows sum to the score (for structure="scores", to
            the mean of the f_k); `names` are "base" and those of the features.
        """
        Z, n_threads = self._rows(X), resolve_n_threads(None)
        values = np.zeros((len(Z), 1 + self.n_features))
        for k, (begin, end) in enumerate(self._ranges()):
            base, parts = self.trees.contributions(Z, begin, end, n_threads)
            values[:, 0] += base - self.centre[k]
            values[:, 1:] += parts
        return Named(("base", *self._names), read_only(values / self.centre.size))

    def _score_terms(self, X: MatrixLike) -> Named:
        names, values = self.contributions(X)
        return Named(names[1:], values[:, 1:])  # without the base

    def _remedy(self) -> str:
        # "auto" scores every round, and begins with a violation of 1. A given number of
        # rounds has neither, and ends by itself, whatever the tolerance.
        given = self.held_out.size == 0 and self.convergence.violation < 1
        if given and self.convergence.status is Status.MAX_TIME:
            return "raise max_time or lower n_rounds"
        return self.convergence.remedy

    def _summary(self) -> dict[str, str]:
        lines = {
            "scores": f"{self.centre.size}, link {self.link}",
            "trees": f"{len(self.trees)} of {self.n_rounds} rounds, at most "
            f"{self.n_leaves} leaves, rate {self.learning_rate:g}",
        }
        return lines | super(BoostingModel, self)._summary()

    def _check(self) -> None:
        q = int(self.observed.sum())
        n_scores = 1 if self.structure == "score" else q - 1
        if q < 2 or self.centre.size != n_scores:
            raise ValueError(
                "frequencies must be positive for the ranks of the scores, at least two"
            )
        if not abs(self.frequencies.sum() - 1) < 1e-9:
            raise ValueError("frequencies must add up to 1")
        if self.start[0] != 0 or self.start[-1] != len(self.trees):
            raise ValueError("start must divide the trees among the scores")
        if (self.trees.feature >= self.n_features).any():
            raise ValueError("trees must split by the columns of categories")
        inner = self._inner
        if not (np.abs(inner) <= 1e300).all():
            raise ValueError("thresholds must be finite between the ranks observed")
        every = for_all_ranks(self.observed, inner, -np.inf, np.inf)
        if not np.array_equal(every, self.thresholds):
            raise ValueError("thresholds must be equal on both sides of an absent rank")
        if self.structure == "score" and not (np.diff(inner) > 0).all():
            raise ValueError("thresholds of one score must increase")


def filled_in(Z: Any, fill: np.ndarray, filled: np.ndarray) -> Matrix:
    """Return rows whose missing values in the columns `filled` are the medians."""
    rows: Matrix = Z
    if not is_sparse(Z):  # sparse rows have no missing values
        gaps = np.isnan(Z) & filled
        rows = np.where(gaps, fill, Z) if gaps.any() else Z
    return rows
