"""The rules that turn scores and probabilities into predictions."""

from typing import Any

import numpy as np

from .._input.checks import check_choice, shown
from .._input.costs import absolute_cost, check_cost


def decide(P: np.ndarray, rule: str, cost: np.ndarray | None = None) -> np.ndarray:
    """Ranks, (n,), by the mode or median of P (n, r), or of least expected cost.

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
    """Return the cost matrix that a rule among `rules` uses, None if it uses none: the
    caller's, else the model's own, else |j - k|.

    Raises ValueError for an unknown rule, or a cost that nothing asks for, or that is
    not one of r ranks.
    """
    check_choice("rule", rule, rules)
    if rule != "cost":
        if cost is not None:
            raise ValueError(f"cost: for rule='cost' only, got rule={shown(rule)}")
        return None
    if cost is not None:
        return check_cost(cost, r)
    return absolute_cost(r) if own is None else own


def by_probabilities(
    model: Any, X: Any, rule: str, rules: tuple[str, ...], cost: Any, **options: Any
) -> np.ndarray:
    """Labels by one of the `rules`, all of them on the model's probabilities, for which
    `predict_proba` takes the options.

    Raises ValueError as `cost_of_rule`.
    """
    table = cost_of_rule(rule, rules, cost, None, model.classes.size)
    P = model.predict_proba(X, **options)
    return np.asarray(model.classes[decide(P, rule, table)])


def predicted(model: Any, X: Any, rule: str, plain: str, cost: Any) -> np.ndarray:
    """Labels by the model's `plain` rule on its decision function, or by one on its
    probabilities.

    Raises ValueError as `cost_of_rule`, or for probabilities that the model lacks.
    """
    rules = plain, "mode", "median", "cost"
    own = getattr(model, "cost", None)
    table = cost_of_rule(rule, rules, cost, own, model.classes.size)
    if rule == plain:
        return np.asarray(model._labels(model.decision_function(X)))
    return np.asarray(model.classes[decide(model.predict_proba(X), rule, table)])
