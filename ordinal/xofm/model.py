"""Model that `fit_xofm` returns, and the scores that predictions rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from .._input.checks import check_choice, check_count, shown
from .._input.columns import column_number
from .._input.features import read_features
from .._input.fields import (
    DISTINCT,
    FINITE,
    INCREASING,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    RISING,
    SHARED,
    Array,
    Length,
    Rule,
)
from .._input.frame import Frame, default_names
from .._input.types import ArrayLike, Matrix, MatrixLike, RowsLike
from .._model.explanation import Named
from .._model.links import CumulativeLink, require_link
from .._model.model import Model, read_for
from .._model.support import finite_scores
from .._model.threshold_model import ON_PROBABILITIES, predicted
from .._numerics.rows import dense, dense_strips
from .._numerics.threads import resolve_n_threads
from .._watch.convergence import Convergence
from .explanations import Explained, Interaction, Marginals, ScoreFunction
from .layout import Layout
from .objective import packed, scores

_Knots: TypeAlias = Annotated[np.ndarray, Array("f8", "_"), FINITE, INCREASING]
_Categories: TypeAlias = Annotated[np.ndarray, Array(LABELS, "_"), FINITE, DISTINCT]
_Shares: TypeAlias = Annotated[np.ndarray, Array("f8", "_"), FINITE, NONNEGATIVE]
_SIGNS = Rule("be -1, 0 or 1", lambda a: np.abs(a) <= 1)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingScores:
    """Scores of the training rows, and predictions by the definitions of the paper.

    Attributes
    ----------
    scores : (m,) array
        Sorted by rank, and increasing within each.
    mass : (m,) array
        Cumulative weights of the rows within each rank.
    start : (r + 1,) array
        Position in `scores` of the first row of each rank.
    """

    scores: np.ndarray
    mass: np.ndarray
    start: np.ndarray

    def interval(self, U: np.ndarray) -> np.ndarray:
        """Return the interval of ranks of each score, (n, 2), by Definition 4.

        Its ends L and R are exchanged where L > R.
        """
        present = np.flatnonzero(np.diff(self.start))  # ranks with rows
        least = self.scores[self.start[present]]
        most = self.scores[self.start[present + 1] - 1]
        L = np.where(U[:, None] >= least, present, present[0]).max(axis=1)
        R = np.where(U[:, None] <= most, present, present[-1]).min(axis=1)
        return np.column_stack([np.minimum(L, R), np.maximum(L, R)])

    def kappa(self, U: np.ndarray, tau: float) -> np.ndarray:
        """Return kappa of all ranks, (n, r), by Definition 5."""
        n, r = U.size, self.start.size - 1
        below, above, total = np.zeros((n, r)), np.zeros((n, r)), np.zeros(r)
        for h, (a, b) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            mass = np.append(0.0, self.mass[a:b])
            total[h] = mass[-1]
            with np.errstate(over="ignore"):  # infinity has a position among scores
                low, high = U - tau, U + tau
            below[:, h] = mass[np.searchsorted(self.scores[a:b], low)]
            far = np.searchsorted(self.scores[a:b], high, side="right")
            above[:, h] = total[h] - mass[far]
        lower = np.cumsum(below, axis=1) - below
        higher = np.cumsum(above[:, ::-1], axis=1)[:, ::-1] - above
        # Summed without the rank itself: if it outweighs the others, a difference of
        # sums that contain its weight could be 0.
        sums = np.cumsum(total), np.cumsum(total[::-1])
        others = np.append(0.0, sums[0][:-1]) + np.append(0.0, sums[1][:-1])[::-1]
        return np.asarray((lower + higher) / others)

    def shares(self, U: np.ndarray, tau: float) -> np.ndarray:
        """Return kappa over the interval of each score, normalised, (n, r).

        If all are 0 for a row, tau = 0 is used; if they still are, the ranks of the
        interval have equal shares.
        """
        ends, rank = self.interval(U), np.arange(self.start.size - 1)
        inside = (
            (ends[:, :1] <= rank) & (rank <= ends[:, 1:]) & (np.diff(self.start) > 0)
        )
        P = np.where(inside, self.kappa(U, tau), 0.0)
        for instead in (lambda U: self.kappa(U, 0.0), lambda U: 1.0):
            none = ~P.any(axis=1)
            P[none] = np.where(inside[none], instead(U[none]), 0.0)
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def in_unit_of(self, like: TrainingScores, U: np.ndarray) -> np.ndarray:
        """Convert scores U of this model to the origin and the unit of another one.

        The map is the weighted least squares line through the ranks' mean scores in
        both models. If it would not increase, only the origin changes.
        """
        own, _ = self.means()
        others, mass = like.means()
        both = np.isfinite(own) & np.isfinite(others)
        weight = mass[both] / mass[both].sum()
        origin, target = weight @ own[both], weight @ others[both]
        own, others = own[both] - origin, others[both] - target
        spread = weight @ own**2
        slope = weight @ (own * others) / spread if spread > 0 else 1.0
        return np.asarray(target + (slope if slope > 0 else 1.0) * (U - origin))

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean score of the rows of each rank, and their weight, (r,) each.

        The mean is NaN for a rank without rows.
        """
        mean = np.full(self.start.size - 1, np.nan)
        total = np.zeros(self.start.size - 1)
        for k, (a, b) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            if a < b:
                weight = np.diff(self.mass[a:b], prepend=0.0)
                mean[k] = np.average(self.scores[a:b], weights=weight)
                total[k] = self.mass[b - 1]
        return mean, total


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class XofmModel(Model):
    """Score U(x), and the scores of the training rows with which it is compared.

    Attributes
    ----------
    u : (P,) array
        Main effects of the intervals, feature after feature. The last entry of a
        feature is that of missing values.
    V : (P, n_factors) array
        Factors of the intervals.
    first : (d + 1,) array
        Position of the first interval of each feature in `u` and `V`.
    breakpoints : tuple of (d,) arrays
        Ends of the intervals in the units of the feature; empty for a feature of
        categories.
    categories : tuple of (d,) arrays or None
    feature_names : tuple of (d,) str, or None
        Columns of the training data frame. Without it, explanations call the features
        x1..xd.
    monotone : (d,) array of -1, 0, 1
    tau : float
        Margin, in units of U.
    scores : (m,) array
        Scores U of the training rows of positive weight, sorted by rank and then by
        score.
    mass : (m,) array
        Cumulative weights of these rows within each rank.
    start : (r + 1,) array
        Position in `scores` of the first row of each rank.
    node_mass, node_between : (N,) arrays
        Distribution of the training rows along the features. The nodes of a feature are
        its breakpoints or categories, and one for missing values. `node_mass` is the
        share of the weight at each node, where a row between two nodes is divided
        between them. `node_between` is the mean of s (1 - s) over the rows at a
        fraction s of the way from the node to the next.
    histogram : tuple of (d,) arrays
        Shares of the rows in bins of equal width over the range of each numeric
        feature; empty for a feature of categories.
    classes : (r,) array
        Labels in rank order.
    link : CumulativeLink or None
        Link from scores to probabilities; None unless fitted with `probability=True`.
    convergence : Convergence
        Record of the fit. `primal` is the value of (P), `violation` its largest partial
        derivative (see `tol`).
    """

    u: Annotated[np.ndarray, Array("f8", "P"), FINITE]
    V: Annotated[np.ndarray, Array("f8", "P k"), FINITE]
    first: Annotated[np.ndarray, Array("i4", "d+1")]
    breakpoints: Annotated[tuple[_Knots, ...], Length("d")]
    categories: Annotated[tuple[_Categories | None, ...], Length("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    monotone: Annotated[np.ndarray, Array("i1", "d"), _SIGNS]
    tau: Annotated[float, FINITE, POSITIVE]
    scores: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    mass: Annotated[np.ndarray, Array("f8", "m"), FINITE, POSITIVE]
    start: Annotated[np.ndarray, Array("i8", "r+1"), RISING]
    node_mass: Annotated[np.ndarray, Array("f8", "N"), FINITE, NONNEGATIVE]
    node_between: Annotated[np.ndarray, Array("f8", "N"), FINITE, NONNEGATIVE]
    histogram: Annotated[tuple[_Shares, ...], Length("d")]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    link: Annotated[CumulativeLink, SHARED] | None
    convergence: Convergence
    link_type = CumulativeLink
    _rules = "share", *ON_PROBABILITIES

    @property
    def n_features(self) -> int:
        """Number of columns of the training rows."""
        return len(self.categories)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.feature_names or default_names(self.n_features)

    @property
    def _layout(self) -> Layout:
        return Layout.from_knots(self.breakpoints, self.categories, self.monotone < 0)

    @property
    def _marginals(self) -> Marginals:
        return Marginals(self.node_mass, self.node_between, self.histogram)

    @property
    def _training_scores(self) -> TrainingScores:
        return TrainingScores(self.scores, self.mass, self.start)

    @property
    def _explained(self) -> Explained:
        at = [
            points if labels is None else labels
            for points, labels in zip(self.breakpoints, self.categories, strict=True)
        ]
        W, k = packed(self.u, self.V), self.V.shape[1]
        return Explained(self._layout, self._names, tuple(at), W, k, self._marginals)

    def _rows(self, X: RowsLike) -> Matrix:
        """Return rows as numbers, (n, d), with NaN for missing values."""
        return read_for(self, X, missing=True, categories=self.categories)

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the score U(x), which increases with the rank.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            Rows to predict. Entries that a sparse matrix does not store are 0. A number
            outside the range of the training rows is replaced
            by the nearest end of the range, an unknown category by a missing value.
            Columns of a data frame are found by their names.

        Returns
        -------
        (n,) array

        Raises
        ------
        ValueError, TypeError
            If X lacks columns, or holds values other than finite numbers, NaN and, in
            columns of categories, labels.
        """
        return self._scores(self._rows(X))

    def _scores(self, Z: Matrix) -> np.ndarray:
        """Return U of rows of numbers."""
        layout, n_threads = self._layout, resolve_n_threads(None)
        table = layout.table(packed(self.u, self.V))
        parts = [
            scores(*layout.locate(rows), table, n_threads)
            for _, rows in dense_strips(Z)
        ]
        return finite_scores(np.concatenate([np.empty(0), *parts]))

    def link_input(self, X: np.ndarray, like: XofmModel) -> np.ndarray:
        """Return the scores of rows for the link of another model.

        Categories of a `Problem` are given by their numbers. The loss does not depend
        on the origin of U, and a fit that stops early has smaller scores. They are
        therefore moved and scaled, so that the ranks' mean scores of the training rows
        are nearest to those of the other model.
        """
        if isinstance(X, Frame) and any(of is not None for of in X.labels):
            Z = self._rows(X)
        else:
            Z = np.array(dense(read_features(X, self.n_features, missing=True)))
            for j, labels in enumerate(self.categories):
                if labels is not None:  # another number would be read out of bounds
                    Z[~np.isin(Z[:, j], np.arange(labels.size)), j] = np.nan
        return self._link_input(self._scores(Z), like)

    def _link_input(self, U: np.ndarray, like: XofmModel) -> np.ndarray:
        """Return `link_input` of rows with the scores U."""
        if not isinstance(like, XofmModel) or like.classes.size != self.classes.size:
            raise TypeError(
                "like must be an XofmModel with the same number of ranks, "
                f"{self.classes.size}, got {shown(like)}"
            )
        return self._training_scores.in_unit_of(like._training_scores, U)

    def predict_interval(self, X: RowsLike) -> np.ndarray:
        """Return the interval [L, R] of labels of each row, by Definition 4.

        L is the highest rank with a training row whose score is not larger, R the
        lowest rank with one whose score is not smaller; without such a row, it is the
        lowest or the highest rank. If the scores of the training rows are not in the
        order of their ranks, L > R is possible. The row then lies among rows of the
        ranks R to L, and the two ends are exchanged.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, with the same errors.

        Returns
        -------
        (n, 2) array of labels, of the type of `classes`
        """
        U = self.decision_function(X)
        return np.asarray(self.classes[self._training_scores.interval(U)])

    def predict_proba(
        self,
        X: RowsLike,
        *,
        proba: Literal["link", "share"] = "link",
        as_frame: bool = False,
    ) -> np.ndarray:
        """Return the probabilities of the ranks, or the shares of the paper.

        proba="link" uses a logistic regression on the scores of hold-out rows: P(y <=
        j) decreases with the score and is 1/2 at the score offsets[j] / slope of the
        `link`.

        proba="share" uses Definition 5 of the paper. kappa_h is the share of the
        training rows of other ranks that agree with rank h: rows of lower ranks whose
        score is lower by more than tau, and rows of higher ranks whose score is higher
        by more than tau. The shares are normalised to sum to 1 over the interval of
        `predict_interval`. If all are 0 because no training row is that far away, tau =
        0 is used; if they still are, the ranks of the interval have equal shares. Ranks
        outside the interval and ranks without training rows have share 0. The true rank
        may be among them, so that a log loss of shares can be infinite.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, with the same errors.
        proba : {"link", "share"}, default "link"
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        NoProbabilitiesError
            If proba="link" and the model was fitted without `probability=True`.
        """
        check_choice("proba", proba, ("link", "share"))
        U = self.decision_function(X)
        if proba == "link":
            return self._proba(U)
        return self._training_scores.shares(U, self.tau)

    def _proba(self, U: np.ndarray) -> np.ndarray:
        """Return probabilities of rows with the scores U, by the link."""
        return np.asarray(require_link(self.link)(U))

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["share", "mode", "median", "cost"] | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a decision rule.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`.
        rule : {"share", "mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "share", the rank with the
            largest share by Definition 5, the lower one of a tie. The others use the
            calibrated probabilities: the most probable rank, the median, or the rank of
            least expected cost. Median and mode never decrease as the score increases.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default
            |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`; also if the rule or the cost is not as described
            above, or if the rule needs probabilities and the model was fitted without
            `probability=True`.
        """
        return predicted(self, X, rule, cost)

    def _labels(self, U: np.ndarray) -> np.ndarray:
        """Return labels of rows with the scores U, by the rule of the paper."""
        shares = self._training_scores.shares(U, self.tau)
        return np.asarray(self.classes[shares.argmax(axis=1)])

    # Explanations

    def score_functions(self) -> tuple[ScoreFunction, ...]:
        """Return the main effect of every feature, in the order of the columns.

        It contains everything in U that depends on this feature alone, including the
        part of its interactions that does: g of (E) in `ordinal.xofm.explanations`. Its
        mean over the training rows is 0.

        Returns
        -------
        tuple of (d,) ScoreFunction
        """
        return self._explained.score_functions()

    def importance(self) -> Named:
        """Return the standard deviation of every main effect and interaction.

        It is that over the weighted training rows; for a pair, over the product of the
        marginal distributions of its two features. If the features were independent,
        the squares would sum to the variance of U.

        Returns
        -------
        Named
            `values` (d + d (d - 1) / 2,) in units of U; `names` are those of the
            features, followed by "a:b" for each pair, in the order of `contributions`.
        """
        return self._explained.importance()

    def interaction(self, a: str | int, b: str | int) -> Interaction:
        """Return the interaction of two features.

        It is their joint effect without the two score functions, given at all pairs of
        breakpoints (it is bilinear between them), categories and missing values. Its
        mean over the training distribution of either feature is 0 at every value of the
        other.

        Parameters
        ----------
        a, b : names or numbers of two columns

        Returns
        -------
        Interaction

        Raises
        ------
        ValueError
            If there is no such column, or if a and b are the same.
        """
        i, j = (column_number(c, self._names, n) for c, n in ((a, "a"), (b, "b")))
        if i == j:
            raise ValueError(
                f"a and b must be two features, got {shown(self._names[i])} twice"
            )
        return self._explained.interaction(i, j)

    def interactions(self, top: int | None = None) -> tuple[Interaction, ...]:
        """Return the interactions of all pairs of features, or the `top` strongest.

        Parameters
        ----------
        top : int, optional

        Returns
        -------
        tuple of Interaction, the strongest first

        Raises
        ------
        ValueError
            If `top` is not a positive integer.
        """
        if top is not None:
            top = check_count("top", top)
        return self._explained.interactions(top)

    def contributions(self, X: RowsLike) -> Named:
        """Return the contributions to the score of each row.

        Parameters
        ----------
        X : (n, d) array-like or data frame
            As for `decision_function`, with the same errors.

        Returns
        -------
        Named
            `values` (n, 1 + d + d (d - 1) / 2), whose rows sum to U: a base that is the
            same for all rows (the mean of U if the features were independent), the
            score functions, and the interactions. `names` are "base", those of the
            features, and "a:b" for a pair.
        """
        Z = dense(self._rows(X))
        return self._explained.contributions(*self._layout.locate(Z))

    def _score_terms(self, X: MatrixLike) -> Named:
        names, values = self.contributions(X)
        return Named(names[1:], values[:, 1:])  # but for the base

    def _check(self) -> None:
        for at, labels in zip(self.breakpoints, self.categories, strict=True):
            if (at.size > 0) is not (labels is None):
                raise ValueError("breakpoints are for the features of numbers")
            if at.size and at[-1] / 2 - at[0] / 2 > np.finfo(np.float64).max / 2:
                raise ValueError("breakpoints must not span more than double can hold")
        layout = self._layout
        if (
            not np.array_equal(layout.first, self.first)
            or layout.n_pieces != self.u.size
        ):
            raise ValueError("first must count the pieces")
        start, m = self.start, self.scores.size
        if start[0] != 0 or start[-1] != m or np.count_nonzero(np.diff(start)) < 2:
            raise ValueError("start must divide the scores among two ranks or more")
        next_rank = np.isin(np.arange(1, m), start)
        for name in ("scores", "mass"):
            if not (next_rank | (np.diff(getattr(self, name)) >= 0)).all():
                raise ValueError(f"{name} must not fall within a rank")
        most = np.maximum.reduceat(
            np.abs(layout.table(packed(self.u, self.V))[:-1]), layout.node[:-1]
        ).sum(axis=0)
        with np.errstate(over="ignore"):  # seen by the check
            largest = most[0] + np.square(most[1:]).sum()
            if not np.isfinite(16 * largest):  # above all parts that a score can have
                raise ValueError("u and V make scores beyond double")
        self._marginals.check(layout)
        # A row weighs at most 1, which keeps all sums finite.
        if (self.mass > 1 + np.arange(m) - np.repeat(start[:-1], np.diff(start))).any():
            raise ValueError("mass must be at most the number of rows")
