"""Any classifier made ordinal, by one clone per threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._input.checks import listed, shown, suggest_in_methods
from .._input.intervals import RankIntervals, among_told_apart
from .._input.labels import sample_weights
from .._input.types import Labels
from .._model.labelled import Labelled, MissingLabels
from .._model.links import falling
from .._model.threshold_model import ON_PROBABILITIES, cost_of_rule, decide
from ..comparison.estimators import weight_argument
from ..model_selection.scoring import Metric
from .estimators import ends_of_labels, ranked
from .scorers import scorer


@suggest_in_methods
class OrdinalDecomposition(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Make any classifier ordinal by one clone per threshold.

    Clone k learns whether the rank is above k. At each row, isotonic regression makes
    the probabilities of these events decrease with k, with the weight of the rarer side
    of each threshold. (E. Frank, M. Hall, "A simple approach to ordinal
    classification", ECML 2001, use differences that may be negative.)

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        Classifier of scikit-learn, of this module, or with the same interface, such as
        that of XGBoost.
    rule : {"mode", "median", "cost"}, default "mode"
        Rule of `predict`: the most probable rank, which scikit-learn expects; the
        median, which has the smallest expected absolute error; or the rank of least
        expected cost.
    cost : (r, r) array-like, optional, for rule="cost" only
        cost[j, k] is the cost of predicting rank k for a row of rank j. Default
        |j - k|.
    classes : sequence of labels in rank order, optional
        Required for strings, which are otherwise ranked in alphabetical order, with a
        warning.
    missing_labels : {"error", "drop"}, default "error"
        Whether rows without a label are an error or are left out.
    n_jobs : int, optional
        Number of clones that are fitted in parallel, as for joblib. Default: one.
    scoring : str or callable, default "mae"
        Metric of `score`, as for `ordinal.sklearn.scorer`, or a result of that.

    Attributes
    ----------
    estimators_ : list of fitted clones
        One per threshold between ranks that have training rows.
    classes_ : (r,) array
        Labels, sorted as by `np.unique`.
    ranks_ : (r,) array
        Labels in rank order.

    Examples
    --------
    >>> import ordinal
    >>> from ordinal.sklearn import OrdinalDecomposition
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> forest = RandomForestClassifier(random_state=0)
    >>> model = OrdinalDecomposition(forest, rule="median").fit(X, y)
    >>> model.predict([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
    array([1, 2, 3])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        rule: str = "mode",
        cost: Any = None,
        classes: Any = None,
        missing_labels: MissingLabels = "error",
        n_jobs: int | None = None,
        scoring: str | Metric = "mae",
    ) -> None:
        self.estimator, self.rule, self.cost = estimator, rule, cost
        self.classes, self.n_jobs, self.scoring = classes, n_jobs, scoring
        self.missing_labels = missing_labels

    def fit(self, X: Any, y: Labels, sample_weight: Any = None) -> OrdinalDecomposition:
        """Fit one clone per threshold.

        Parameters
        ----------
        X : as the classifier takes it
        y : (n,) array-like
            Ranks: numbers, an ordered categorical, or strings with `classes`. Each
            row of `RankIntervals` counts at the thresholds whose side is known.
        sample_weight : (n,) array-like >= 0, optional
            Weights that are passed to the classifier; raises ValueError if it does not
            accept any.

        Returns
        -------
        the estimator
        """
        left = Labelled.from_arguments(
            self.missing_labels, X, y, {}, sample_weight=sample_weight
        )
        X, y, sample_weight = left.X, left.y, left.by_row["sample_weight"]
        scorer(self.scoring).metric.check_labels(y)
        labels, classes = ranked(y, self.classes, type(self).__name__)
        self._cost_of_rule(classes.size)  # for its errors, too
        check_consistent_length(X, labels)
        weight = sample_weights(sample_weight, len(labels))
        ends = ends_of_labels(labels, classes)
        if isinstance(labels, RankIntervals):
            ends = among_told_apart(*ends, weight, classes.size)
        first, rank = ends
        weighting = weight_argument(self.estimator) or ""
        if sample_weight is not None and not weighting:
            raise ValueError(
                "sample_weight must be None, because "
                f"{type(self.estimator).__name__} accepts no weights"
            )
        self._observed = np.bincount(rank, weight, minlength=classes.size) > 0
        if self._observed.sum() < 2:
            raise ValueError(
                "y needs at least 2 classes with positive weight, got "
                f"{listed(classes[self._observed])}: only one class"
            )
        parts, shares = [], []
        for k in np.flatnonzero(self._observed)[:-1]:
            # An interval on both sides of a threshold tells its clone nothing.
            rows = np.flatnonzero((first > k) | (rank <= k))
            part = X if rows.size == rank.size else rows_of(X, rows)
            event, own = (rank[rows] > k).astype(int), weight[rows]
            given = {} if sample_weight is None else {weighting: own}
            parts.append((part, event, given))
            shares.append(np.average(event, weights=own))
        self._rarer = np.minimum(shares, 1 - np.array(shares))
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(clone(self.estimator).fit)(part, event, **given)
            for part, event, given in parts
        )
        # Some classifiers, such as StackingClassifier, have it only when fitted.
        if not hasattr(self.estimators_[0], "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba, got {shown(self.estimator)}: pass "
                "a classifier with probabilities, such as LogisticRegression()"
            )
        self.ranks_, self.classes_ = classes, np.unique(classes)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r), in the order of `classes_`.

        Parameters
        ----------
        X : as for `fit`
        """
        return np.take(self._proba(X), np.argsort(self.ranks_), axis=1)

    def _proba(self, X: Any) -> np.ndarray:
        """Return the probabilities in rank order."""
        check_is_fitted(self)
        events = [np.asarray(e.predict_proba(X))[:, 1] for e in self.estimators_]
        above = falling(np.column_stack(events).astype(float), self._rarer)
        edge = np.ones((len(above), 1))
        P = np.zeros((len(above), self.ranks_.size))
        P[:, self._observed] = -np.diff(np.hstack([edge, above, 0 * edge]), axis=1)
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """Return labels by the `rule`, (n,), of the type of `classes_`.

        Parameters
        ----------
        X : as for `fit`
        """
        check_is_fitted(self)
        table = self._cost_of_rule(self.ranks_.size)
        return np.asarray(self.ranks_[decide(self._proba(X), self.rule, table)])

    def _cost_of_rule(self, r: int) -> np.ndarray | None:
        return cost_of_rule(self.rule, ON_PROBABILITIES, self.cost, None, r)

    def score(self, X: Any, y: Labels, sample_weight: Any = None) -> float:
        """Return the metric `scoring`; losses are negated."""
        return scorer(self.scoring)(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags = own.input_tags
        tags.classifier_tags.poor_score = own.classifier_tags.poor_score
        return tags
