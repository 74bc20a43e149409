"""Classifiers with the interface of scikit-learn as methods.

scikit-learn is not imported: whoever passes one of its classifiers has imported it.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from .._input.checks import shown
from .._input.fields import DISTINCT, FINITE, LABELS, POSITIVE, Array
from .._input.immutable import read_only
from .._input.labels import ranks_of
from .._input.sparse import is_sparse
from .._input.types import ArrayLike, RowsLike
from .._model.labelled import labels_like_those_given
from .._model.model import Model, read_for
from .._model.threshold_model import predicted
from ..exceptions import NoProbabilitiesError

_ROUNDING = 1e-3  # of sums of probabilities, which some packages return as float32


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EstimatorModel(Model):
    """Classifier with the interface of scikit-learn, fitted to ranks 0 .. r-1.

    Attributes
    ----------
    estimator : object
        The fitted clone of the caller's estimator, for features that are an array.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    """

    estimator: Any
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, POSITIVE]
    feature_names: tuple[str, ...] | None = None
    _rules = ("own", "median", "mode", "cost")

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["own", "median", "mode", "cost"] | None = None,
        cost: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels, (n,), by `predict` of the estimator or by its probabilities.

        Parameters
        ----------
        X : (n, d) array-like or data frame
        rule : {"own", "median", "mode", "cost"}, optional
            "own" is the estimator's `predict`; the others are rules on `predict_proba`.
            Default: the `rule` of the model or, without one, "own".
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, if the estimator has no probabilities where the rule needs
            them, or if it predicts what is no rank.
        """
        if (rule or self.rule or self._rules[0]) != "own" or cost is not None:
            return predicted(self, X, rule, cost)
        found = np.asarray(self.estimator.predict(read_for(self, X))).ravel()
        rank = ranks_of(found, np.arange(self.classes.size), self._called, "the ranks")
        return labels_like_those_given(self, self.classes[rank], X)

    def predict_proba(self, X: RowsLike, *, as_frame: bool = False) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r).

        A rank that no training row had has probability 0. Raises NoProbabilitiesError
        if the estimator has none, and ValueError or TypeError if X or what it returns
        is invalid.
        """
        if not hasattr(self.estimator, "predict_proba"):
            raise NoProbabilitiesError(
                f"{type(self.estimator).__name__} has no predict_proba: choose a "
                "metric of labels and its own rule, or another classifier"
            )
        P = np.asarray(self.estimator.predict_proba(read_for(self, X)), float)
        r = self.classes.size
        known = np.asarray(getattr(self.estimator, "classes_", np.arange(r))).ravel()
        if P.shape[1:] != known.shape or not _are_probabilities(P):
            raise ValueError(
                f"predict_proba of {type(self.estimator).__name__} must return "
                f"probabilities of {known.size} classes, got {shown(P)}"
            )
        all_ranks = np.zeros((len(P), r))
        all_ranks[:, ranks_of(known, np.arange(r), self._called, "the ranks")] = P
        return np.asarray(all_ranks / P.sum(axis=1, keepdims=True))

    @property
    def _called(self) -> str:
        return f"classes of {type(self.estimator).__name__}"

    def _remedy(self) -> str:
        return ""

    def _summary(self) -> dict[str, str]:
        # With slots, dataclass makes a second class, which super() does not know.
        own = super(EstimatorModel, self)._summary()
        return {"estimator": type(self.estimator).__name__} | own


def _are_probabilities(P: np.ndarray) -> bool:
    """Return whether all rows are >= 0 and sum to 1 up to the rounding of float32."""
    return bool((P >= 0).all() and (abs(P.sum(axis=1) - 1) <= _ROUNDING).all())


class EstimatorFit:
    """Fit of a clone of a classifier: a function of (X, y, classes, sample_weight).

    Attributes
    ----------
    probabilities : bool
        Whether the classifier has `predict_proba`.
    own_rule, keeps_rule
        Rules of prediction, as a `Method` declares them.
    """

    own_rule = "own"

    def __init__(self, estimator: Any):
        self._estimator = estimator
        self.probabilities = hasattr(estimator, "predict_proba")
        self.keeps_rule = () if self.probabilities else ("median", "mode")
        self._weight = weight_argument(estimator)
        self.__name__ = type(estimator).__name__
        # Searches take functions of other packages as not safe for threads.
        self.__module__ = type(estimator).__module__
        whole = inspect.signature(type(self).__call__)
        left_out = ["self"] + ["sample_weight"] * (self._weight is None)
        self.__signature__ = whole.replace(
            parameters=[p for k, p in whole.parameters.items() if k not in left_out]
        )

    def __call__(
        self,
        X: Any,
        y: np.ndarray,
        *,
        classes: Sequence[Any] | None = None,
        sample_weight: np.ndarray | None = None,
    ) -> EstimatorModel:
        """Fit a clone to an array of features and the ranks 0 .. r-1 of the labels."""
        if is_sparse(X):
            raise TypeError(
                f"X is sparse, and {self.__name__} is given arrays: pass X.toarray()"
            )
        labels = np.unique(y) if classes is None else np.asarray(classes)
        features = np.array(X, float)  # of its own, because it may write there
        options = {}
        if sample_weight is not None:
            if self._weight is None:
                raise TypeError(no_weights(self.__name__))
            options[self._weight] = sample_weight
        made = _cloned(self._estimator)
        rank = np.array(ranks_of(np.asarray(y), labels), dtype=np.intp)
        made.fit(features, rank, **options)
        return EstimatorModel(made, read_only(labels), features.shape[1])


def no_weights(name: str) -> str:
    """Return the message about a method whose fit takes no weights."""
    return (
        f"the fit of {name} takes no sample_weight: leave out sample_weight, "
        "or this method"
    )


def fit_of_estimator(method: Any) -> Any:
    """Return the fit of a classifier with methods `fit` and `predict`; others as they
    are.

    Raises TypeError for a class, and for an estimator that is no classifier.
    """
    if not (hasattr(method, "fit") and hasattr(method, "predict")):
        return method
    if isinstance(method, type):
        raise TypeError(
            f"methods must hold classifiers, got the class {method.__name__}: pass an "
            f"instance, {method.__name__}()"
        )
    kind = _kind(method)
    if kind not in (None, "classifier"):
        raise TypeError(
            f"methods must hold classifiers, got the {kind} {shown(method)}, whose "
            "predictions are no labels: pass a classifier of the same kind, such as "
            "RandomForestClassifier() for RandomForestRegressor()"
        )
    return EstimatorFit(method)


def _kind(estimator: Any) -> str | None:
    """Return what an estimator says to be, such as "classifier", or None."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    found = getattr(estimator, "_estimator_type", None) if tags is None else None
    return found if tags is None else tags().estimator_type


def _cloned(estimator: Any) -> Any:
    """Return an unfitted copy, by `clone` of scikit-learn where it is imported."""
    base = sys.modules.get("sklearn.base")
    if base is None or not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    return base.clone(estimator)


def weight_argument(estimator: Any) -> str | None:
    """Return the argument of `fit` for weights, or None if it takes none.

    A pipeline passes "step__sample_weight" on to a step, and a search all arguments to
    its estimator.
    """
    known = inspect.signature(estimator.fit).parameters
    if "sample_weight" in known:
        return "sample_weight"
    steps = getattr(estimator, "steps", None)
    if steps:
        name, last = steps[-1]
        inner = weight_argument(last) if hasattr(last, "fit") else None
        return None if inner is None else f"{name}__{inner}"
    held = getattr(estimator, "estimator", None)
    passes_on = any(p.kind is p.VAR_KEYWORD for p in known.values())
    return weight_argument(held) if passes_on and hasattr(held, "fit") else None
