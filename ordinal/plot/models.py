"""Properties of models for figures, whatever the models are wrapped in."""

from typing import Any

import numpy as np

from .._input.checks import shown
from .._input.labels import ranks_of, read_labels
from .._input.weights import check_spread, sample_weights
from .._model.model import Model, innermost
from ..linear import PomModel
from ..model_selection import Selection
from ..model_selection.selection import model_in
from ..prediction_sets import ConformalModel


def fitted(model: Any) -> Model:
    """Return the fitted model within a Selection, an estimator of `ordinal.sklearn` or
    a model of prediction sets; a model itself is returned as it is.

    Raises TypeError for other objects.
    """
    if isinstance(model, Selection) and model.model is None:
        raise ValueError("model must be refitted: the search had refit=False")
    found = model_in(model)
    if isinstance(found, ConformalModel):
        found = found.model
    if not isinstance(found, Model):
        raise TypeError(
            f"model must be a fitted model or a Selection, got {shown(model)}"
        )
    return found


def is_process(model: Model) -> bool:
    """Return whether a model is a Gaussian process with a latent function."""
    return hasattr(innermost(model), "predict_latent")


def has_errors(model: Model) -> bool:
    """Return whether a model is a cumulative link model with standard errors."""
    of = innermost(model)
    return isinstance(of, PomModel) and of.has_errors


def score_of(model: Any, X: Any) -> np.ndarray:
    """Return a score that increases with the rank, (n,): the latent score, or the mean
    of the latent function. Raises TypeError for a model that has neither.
    """
    if is_process(model):
        return np.asarray(model.predict_latent(X)[0])
    score = np.asarray(model.decision_function(X))
    if score.ndim != 1:
        raise TypeError(
            f"model must have one score per row; {type(innermost(model)).__name__} has "
            f"{score.shape[1]}"
        )
    return score


def finite_thresholds(model: Model) -> tuple[list[float], list[str]]:
    """Return thresholds on the scale of the score, and the labels on their sides.

    Infinite thresholds, of ranks without rows, are left out; None if the model has no
    thresholds.
    """
    of = innermost(model)
    b = getattr(of, "thresholds", np.empty(0))
    finite = np.flatnonzero(np.isfinite(b))
    return b[finite].tolist(), [of.threshold_names[j] for j in finite]


def true_ranks(
    model: Model, y: Any, n: int, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of n labels, and the weights of the rows, after checks."""
    rank = ranks_of(read_labels(y, "y"), model.classes)
    if rank.size != n:
        raise ValueError(f"y has {rank.size} labels, and X {n} rows")
    weight = sample_weights(sample_weight, n)
    check_spread("sample_weight", weight)  # amounts are shown
    return rank, weight
