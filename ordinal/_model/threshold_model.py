"""Base classes of models with one score and thresholds, and rules of prediction."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np

from .._input.checks import check_choice, shown
from .._input.fields import FINITE, SHARED, THRESHOLDS, Array
from .._input.labels import absolute_cost, cost_of_decision, rounded_labels
from .._input.types import ArrayLike, MatrixLike, RowsLike
from .labelled import labels_like_those_given
from .links import CumulativeLink, require_link
from .model import Model
from .support import KernelModel, decision, finite_scores

ON_PROBABILITIES = "mode", "median", "cost"


def decide(P: np.ndarray, rule: str, cost: np.ndarray | None = None) -> np.ndarray:
    """Return ranks, (n,), by the mode or median of P (n, r), or of least expected cost.

    Ties go to the lower rank; the median is the first rank that half of the
    probability does not exceed.
    """
    if rule == "mode":
        return np.asarray(P.argmax(axis=1))
    if rule == "median":
        return np.asarray((np.cumsum(P, axis=1)[:, :-1] < 0.5).sum(axis=1))
    assert cost is not None
    return np.asarray((P @ cost).argmin(axis=1))


def cost_of_rule(
    rule: str, rules: tuple[str, ...], cost: Any, own: np.ndarray | None, r: int
) -> np.ndarray | None:
    """Return the cost matrix of a rule, (r, r), or None for a rule without costs.

    It is the caller's `cost`, otherwise the model's `own`, otherwise |j - k|.

    Raises ValueError if the rule is none of `rules`, or for a cost that the rule does
    not use or that is not a finite (r, r) matrix.
    """
    check_choice("rule", rule, rules)
    if rule != "cost":
        if cost is not None:
            raise ValueError(
                f"cost is for rule='cost' only, got rule={shown(rule)}: pass "
                "rule='cost', or leave cost out"
            )
        return None
    if cost is not None:
        return cost_of_decision(cost, r)
    return absolute_cost(r) if own is None else own


def predicted(
    model: Any, X: RowsLike, rule: str | None, cost: Any, **options: Any
) -> np.ndarray:
    """Return labels by a rule on the decision function or on the probabilities.

    None is the `rule` of the model or, if it has none, its own rule. The options are
    those of `predict_proba`. Raises ValueError as `cost_of_rule`, and for a rule on
    probabilities if the model has none.
    """
    rule = rule_of(model, rule)
    own = getattr(model, "cost", None)
    table = cost_of_rule(rule, model._rules, cost, own, model.classes.size)
    if rule in ON_PROBABILITIES:
        P = model.predict_proba(X, **options)
        labels = model.classes[decide(P, rule, table)]
    else:
        labels = model._labels(model.decision_function(X))
    return labels_like_those_given(model, labels, X)


def rule_of(model: Any, rule: str | None) -> str:
    """Return the caller's rule, otherwise that of the model, otherwise its first."""
    return str(model.rule or model._rules[0]) if rule is None else rule


def labels_of_values(model: Any, values: np.ndarray, rule: str | None) -> np.ndarray:
    """Return labels by a rule, (n,), from values of the model's decision function.

    None is the model's own rule.
    """
    if rule not in ON_PROBABILITIES:
        return np.asarray(model._labels(values))
    own, r = getattr(model, "cost", None), model.classes.size
    table = cost_of_rule(rule, ON_PROBABILITIES, None, own, r)
    return np.asarray(model.classes[decide(model._proba(values), rule, table)])


ThresholdRule: TypeAlias = Literal["threshold", "mode", "median", "cost"]


class Thresholds(Model):
    """Base class of models whose ranks are divided by thresholds on one line."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def thresholds(self) -> np.ndarray: ...

    @property
    def threshold_names(self) -> tuple[str, ...]:
        """Return the labels on the sides of each threshold, such as "low|mid"."""
        return names_between(self.classes)


def names_between(labels: np.ndarray) -> tuple[str, ...]:
    """Return names of pairs of adjacent labels, such as "low|mid"."""
    return tuple(f"{a}|{b}" for a, b in pairwise(rounded_labels(labels).tolist()))


class Scored(Thresholds):
    """Base class of models with one score per row and thresholds.

    It has predictions, and probabilities by a link.
    """

    __slots__ = ()
    _rules = "threshold", *ON_PROBABILITIES
    link_type = CumulativeLink

    if TYPE_CHECKING:

        @property
        def link(self) -> CumulativeLink | None: ...
        def decision_function(self, X: RowsLike) -> np.ndarray: ...

    @property
    def disorder(self) -> tuple[str, ...]:
        """Describe thresholds that are out of order, one line per pair of neighbours.

        Thresholds count as out of order if they are by more than `tol`. The tuple is
        empty if they are in order, which is guaranteed for `fit_svorex`, for the other
        methods of its family if the rows of the cost are convex, and for `fit_tlssvor`
        if u is infinite.
        """
        named = zip(self.threshold_names, self.thresholds.tolist(), strict=True)
        return tuple(
            f"{lower} at {a:.4f} is above {higher} at {b:.4f}"
            for (lower, a), (higher, b) in pairwise(named)
            if a - b > self.convergence.tol
        )

    def link_input(self, X: MatrixLike, like: Scored) -> np.ndarray:
        """Return the scores of rows for the link of the model `like`, (n,).

        They are shifted by the mean difference of the thresholds of the two models,
        because only distances from the thresholds are comparable between them.
        """
        return self._link_input(self.decision_function(X), like)

    def _link_input(self, f: np.ndarray, like: Scored) -> np.ndarray:
        """Return `link_input` of rows with the scores f."""
        if not isinstance(like, Scored) or like.classes.size != self.classes.size:
            raise TypeError(
                "like must be a model with a score and the same number of ranks, "
                f"{self.classes.size}, got {shown(like)}"
            )
        # A fold that lacks the lowest or the highest ranks has no threshold for them.
        inner = np.isfinite(like.thresholds) & np.isfinite(self.thresholds)
        apart = like.thresholds[inner] - self.thresholds[inner]
        shift = apart.mean() if inner.any() else 0.0
        return np.asarray(f + shift)

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks by a cumulative logistic link.

        P(y <= j) decreases with the score and is 1/2 at the score offsets[j] / slope of
        the `link`. This is near `thresholds[j]`, but calibrated on hold-out rows.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, with the same errors.
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        NoProbabilitiesError
            If the model was fitted without `probability=True`.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """Return `predict_proba` of rows with the scores f."""
        return np.asarray(require_link(self.link)(f))

    def predict(
        self,
        X: RowsLike,
        *,
        rule: ThresholdRule | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a decision rule.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"threshold", "mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "threshold", which counts
            the `thresholds` that the score reaches; a score on a threshold gets the
            higher rank. The others use `predict_proba`: the most probable rank, the
            median (which corresponds to the thresholds offsets / slope of the `link`),
            or the rank of least expected cost. Threshold, median and mode never
            decrease as the score increases.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default:
            the `cost` of the model or, without one, |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError
            If the rule needs probabilities and the model has none, or if `cost` is not
            a finite (r, r) matrix.
        """
        return predicted(self, X, rule, cost)

    def _labels(self, f: np.ndarray) -> np.ndarray:
        """Return the labels of rows with the scores f, by the thresholds."""
        # A rank between equal thresholds is never predicted, also if they are not in
        # order: of equal adjacent thresholds only the last one counts.
        b = self.thresholds
        last = np.flatnonzero(np.append(b[1:] != b[:-1], True))
        reached = np.searchsorted(np.sort(b[last]), f, side="right")
        return np.asarray(self.classes[np.append(0, last + 1)[reached]])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThresholdModel(Thresholds, KernelModel):
    """Base class of kernel models with thresholds."""

    coef: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScoreModel(Scored, ThresholdModel):
    """Score f(x) = sum_i coef[i] k(support_i, x), and thresholds on it."""

    link: Annotated[CumulativeLink, SHARED] | None

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return the latent score f(x), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to predict; for a precomputed kernel, the values k(rows, training
            rows).

        Returns
        -------
        (n,) array
            Scores in units of the margin: up to slack, training rows lie at least 1
            away from the thresholds.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns. The Pearson kernel
            accepts NaN.
        """
        return decision(self, X)

    def _columns(self) -> np.ndarray:
        """Return the coefficients as a matrix, which may have no rows."""
        return self.coef[:, None]

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """Return the score from the (n, 1) sums over the support rows."""
        return finite_scores(sums[:, 0])


def rank_decisions(model: Any, X: Any, rule: str | None) -> np.ndarray:
    """Return one number per rank, (n, r), that is largest for the predicted rank.

    `rule` is a rule of `model.predict`, or None for its default.
    """
    rule = (model.rule or model._rules[0]) if rule is None else rule
    check_choice("rule", rule, model._rules)
    if rule == "threshold":
        return summed_steps(model.decision_function(X), model.thresholds)
    if rule in ("nearest", "largest"):
        values = np.asarray(model.decision_function(X))
        of_ranks = getattr(model, "rank_values", None)  # NPSVOR has distances
        return np.asarray(-np.abs(values) if of_ranks is None else of_ranks(values))
    if rule == "share":
        return np.asarray(model.predict_proba(X, proba="share"))
    if rule == "scan":
        least = np.minimum.accumulate(model.decision_function(X), axis=1)
        # tanh(z / 2) / 2 is the probability of log odds z, less 1/2
        return _sums(0.5 * np.tanh(0.5 * least))
    P = np.asarray(model.predict_proba(X))
    if rule == "mode":
        return P
    if rule == "median":
        return _sums(0.5 - np.cumsum(P, axis=1)[:, :-1])
    cost = getattr(model, "cost", None)
    return np.asarray(-P @ (absolute_cost(P.shape[1]) if cost is None else cost))


def summed_steps(f: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return (D) of `ordinal.sklearn` for scores (n,): one number per rank, (n, r).

    Ranks beyond infinite thresholds, which had no training rows, have -inf, so that
    they are never predicted.
    """
    b = thresholds[np.isfinite(thresholds)]
    below = int(np.count_nonzero(thresholds == -np.inf))
    D = np.full((f.size, thresholds.size + 1), -np.inf)
    D[:, below : below + b.size + 1] = _sums(f[:, None] - b)
    return D


def _sums(steps: np.ndarray) -> np.ndarray:
    """Return the sums of the steps below each rank, (n, r), from (n, r - 1) steps."""
    return np.cumsum(np.insert(steps, 0, 0.0, axis=1), axis=1)
