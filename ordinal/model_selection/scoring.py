"""Metrics as searches use them: those of `ordinal.metrics`, or a caller's functions.

Models have their labels and the columns of their probabilities in rank order.
Estimators of scikit-learn sort both by label. Those of `ordinal.sklearn` have the rank
order in `ranks_`; of other estimators only the order of numbers is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from .. import metrics
from .._input.checks import check_choice, check_flag, listed, shown
from .._input.labels import declared_categories, ranks_of, read_labels
from .._rows.rows import map_rows

Loss = Literal["mze", "mae", "amae", "mmae", "oci", "rps", "log_loss"]
Gain = Literal[
    "accuracy",
    "accuracy_off",
    "gm",
    "ms",
    "gmsec",
    "cem",
    "kappa",
    "kendall",
    "spearman",
]
Metric = Callable[[np.ndarray, np.ndarray], float]
Scoring = Loss | Gain | Metric

_LOSSES, _GAINS = get_args(Loss), get_args(Gain)
_OF_PROBABILITIES = ("rps", "log_loss")


@dataclass(frozen=True, slots=True)
class Scorer:
    """One metric of a search.

    Attributes
    ----------
    name : str
    call : callable
    greater_is_better : bool
    needs_proba : bool
        Whether it is given the probabilities of the ranks in place of labels.
    weighs : bool
        Whether it takes `labels` and `sample_weight`, as those of `ordinal.metrics` do.
    """

    name: str
    call: Callable[..., Any]
    greater_is_better: bool
    needs_proba: bool
    weighs: bool

    @classmethod
    def from_argument(cls, scoring: Any, greater_is_better: bool | None) -> Scorer:
        """Make a scorer from one entry of `scoring`."""
        if greater_is_better is not None:
            check_flag("greater_is_better", greater_is_better)
        name: Any = scoring
        if callable(scoring):
            name = getattr(scoring, "__name__", type(scoring).__name__)
            if name not in (*_LOSSES, *_GAINS) or getattr(metrics, name) != scoring:
                needs_proba = bool(getattr(scoring, "needs_proba", False))
                return cls(name, scoring, bool(greater_is_better), needs_proba, False)
        elif not isinstance(scoring, str):
            raise TypeError(
                f"scoring must be a name or a callable, got {shown(scoring)}"
            )
        check_choice("scoring", name, (*_LOSSES, *_GAINS))
        greater = name in _GAINS
        if greater_is_better not in (None, greater):
            raise ValueError(
                f"greater_is_better={shown(greater_is_better)} contradicts "
                f"{shown(name)}"
            )
        call = getattr(metrics, name)
        return cls(name, call, greater, name in _OF_PROBABILITIES, True)

    def __call__(
        self,
        model: Any,
        X: Any,
        values: np.ndarray | None,
        y: np.ndarray,
        classes: np.ndarray,
        weight: np.ndarray | None,
    ) -> float:
        """Return the score of a model on rows X.

        `values` are those of its decision function at X, or None if they are not known.
        """
        if values is not None:
            predicted = (model._proba if self.needs_proba else model._labels)(values)
        elif self.needs_proba:
            _check_probabilities(model, self.name)
            predicted = map_rows(model.predict_proba, X)
        else:
            predicted = map_rows(model.predict, X)
        if self.needs_proba:
            predicted = in_rank_order(predicted, model, classes)
        known = {"labels": classes, "sample_weight": weight} if self.weighs else {}
        score = self.call(y, predicted, **known)
        try:
            return float(score)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"scoring must return a number, got {shown(score)} of {self.name}"
            ) from None


def scorers_of(
    scoring: Scoring | Sequence[Scoring], greater_is_better: bool | None
) -> tuple[Scorer, ...]:
    """Make the scorers from `scoring`, which names one metric or several."""
    one = isinstance(scoring, str) or not isinstance(scoring, Sequence)
    several: Sequence[Any] = [scoring] if one else scoring  # type: ignore[assignment]
    scorers = tuple(Scorer.from_argument(s, greater_is_better) for s in several)
    names = [scorer.name for scorer in scorers]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"scoring must name different metrics, got {listed(names)}")
    return scorers


def _check_probabilities(model: Any, metric: str) -> None:
    """Raise AttributeError for a model without `predict_proba`."""
    if hasattr(model, "predict_proba"):
        return
    while (held := _held(model)) is not None:
        model = held
    remedy = "choose a metric of labels"
    if hasattr(model, "probability"):  # a parameter of estimators of this package
        remedy = f"pass probability=True to it, or {remedy}"
    raise AttributeError(
        f"{metric} needs predict_proba, which this {type(model).__name__} does not "
        f"have: {remedy}"
    )


def classes_of(model: Any, y: Any = None) -> np.ndarray:
    """Return the labels of a model in rank order.

    Parameters
    ----------
    model : model with `classes`, or estimator with `ranks_` or `classes_`
        A pipeline or search has the `ranks_` of the estimator within.
    y : array-like, optional
        Labels of rows. The categories of an ordered categorical are the order of an
        estimator that knows none.

    Raises
    ------
    TypeError
        If the model has no labels, or strings whose order nothing tells.
    """
    held = model
    while held is not None:
        if hasattr(held, "ranks_"):
            return read_labels(held.ranks_, "ranks_ of the model")
        held = _held(held)
    classes = getattr(model, "classes", None)
    if classes is None:
        classes = declared_categories(y, "classes", "y")
    if classes is None:
        classes = getattr(model, "classes_", None)
        if classes is not None and np.asarray(classes).dtype.kind not in "biuf":
            raise TypeError(
                "classes_ of the model must be numbers, whose order is that of the "
                f"ranks, got {listed(classes)}: label the rows by integers in rank "
                "order"
            )
    if classes is None:
        raise TypeError(
            f"model must be fitted and have `classes` in rank order, got {shown(model)}"
        )
    return read_labels(classes, "classes of the model")


def _held(estimator: Any) -> Any:
    """Return the fitted estimator within a pipeline, search or selector of scikit-learn
    that hands labels on as they are, else None.
    """
    steps = getattr(estimator, "steps", None)
    if steps is not None:
        return steps[-1][1]
    found = getattr(estimator, "best_estimator_", None)
    return getattr(estimator, "estimator_", None) if found is None else found


def in_rank_order(P: np.ndarray, model: Any, classes: np.ndarray) -> np.ndarray:
    """Return probabilities with one column per class in rank order.

    The columns of an estimator of scikit-learn follow its `classes_`, those of a model
    are in order already. A class that the estimator does not know has probability 0;
    ValueError for one that is not among `classes`.
    """
    own = getattr(model, "classes_", None)
    if own is None or np.shape(P)[1:] != np.shape(own):
        return P
    own = read_labels(own, "classes_ of the model")
    ordered = np.zeros((len(P), classes.size))
    ordered[:, ranks_of(own, classes, "classes_ of the model", "the ranks")] = P
    return ordered
