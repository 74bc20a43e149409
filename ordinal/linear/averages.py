"""Tables of mean probabilities and of marginal effects, and the rows they are of."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._cumulative.design import read_offset
from .._cumulative.likelihood import for_all_ranks, rank_probabilities
from .._input.columns import check_shape
from .._input.types import ArrayLike, MatrixLike
from .._input.weights import sample_weights, shares
from .._model.model import read_for
from .._model.printing import Table
from .._numerics.tails import normal_two_sided
from .estimates import Estimates
from .margins import (
    MatrixRows,
    Means,
    TableRows,
    errors_of,
    logit_interval,
    of_ranks,
)
from .remembered import remembered


def rows_to_average(
    model: Estimates,
    asked: str,
    X: MatrixLike | None,
    offset: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> MatrixRows | TableRows:
    """Return the rows to average: those given, or the training rows.

    Errors name the method `asked`.
    """
    coding = model.coding
    held: Any  # a Frame where there is a coding
    if X is None:
        for name, given in (("offset", offset), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(f"{name} goes with X: training rows have theirs")
        fit = remembered(model, f"{asked} without X")
        D = fit.loss.design
        held, known, weight = D.X, D.offset, D.weight
        if coding is not None:
            held = fit.frame
            own = coding.offset(held)
            known = known if own is None or known is None else known - own
    else:
        held = read_for(model, X) if coding is None else coding.read(X)
        check_shape(held.shape)
        known = None if offset is None else read_offset(offset, len(held))
        weight = sample_weights(sample_weight, len(held))
    share = shares(weight)
    beside = np.zeros(share.size) if known is None else known
    if coding is not None:
        return TableRows(held, coding, beside, share)
    used = np.unique(np.concatenate([model.location, model.nominal, model.scale]))
    return MatrixRows(held, beside, share, model.column_names, used)


def averages_table(
    model: Estimates,
    rows: MatrixRows | TableRows,
    covariance: np.ndarray,
    z: float,
    cumulative: bool,
) -> Table:
    """Mean probabilities of the ranks, or at the thresholds, with intervals of z
    errors to either side.
    """
    both, gradient = Means(model).evaluate(rows)
    G = for_all_ranks(model.observed, gradient.T, 0.0, 0.0).T
    below = for_all_ranks(model.observed, both[0], 0.0, 1.0)
    above = for_all_ranks(model.observed, both[1], 1.0, 0.0)
    if cumulative:
        names, p = {"threshold": np.array(model.threshold_names)}, below
    else:
        names, p = {"rank": model.classes}, rank_probabilities(below, above)
        G = of_ranks(G)
    error = errors_of(G, covariance)
    lower, upper = logit_interval(p, error, z)
    return Table(
        {
            **names,
            "probability": p,
            "standard_error": error,
            "lower": lower,
            "upper": upper,
        }
    )


def effects_table(
    model: Estimates, rows: MatrixRows | TableRows, covariance: np.ndarray, z: float
) -> Table:
    """Marginal effects of the features on the probabilities of the ranks."""
    means, features = Means(model), rows.features
    found = [means.effects(rows, feature) for feature in features]
    effect = np.array([of_ranks(value) for value, _ in found]).ravel()
    error = np.array([errors_of(of_ranks(G), covariance) for _, G in found]).ravel()
    ratio = np.divide(effect, error, out=np.zeros_like(effect), where=error > 0)
    ranks = model.classes[model.observed]
    return Table(
        {
            "name": np.repeat(np.array([f.name for f in features], str), ranks.size),
            "rank": np.tile(ranks, len(features)),
            "effect": effect,
            "standard_error": error,
            "z": ratio,
            "p_value": normal_two_sided(ratio),
            "lower": effect - z * error,
            "upper": effect + z * error,
        }
    )
