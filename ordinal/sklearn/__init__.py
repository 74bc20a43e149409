"""Estimators of scikit-learn, one for every method: `SVORIM`, `NPSVOR`, `XOFM`, ...,
and `TableTransformer`, which makes numbers of tables.

They are generated from the registry of methods. The parameters of an estimator are the
arguments of the `fit_*` function, and its `model_` is the model that this function
returned, with all its methods and attributes.

An estimator adds the conventions of scikit-learn:

* `classes_` holds the labels sorted, as `np.unique` does, and the columns of
  `predict_proba` and `decision_function` follow it. `ranks_` holds the same labels in
  rank order.
* `predict` follows a `rule` of the model, and `decision_function` gives a number per
  rank, (n, r), the largest of which is that of the predicted rank; with two ranks their
  difference, (n,). By the rule they are, of scores f and thresholds b, distances f_k to
  the hyperplanes of NPSVOR, numbers of other hyperplanes, shares of XOFM, outputs of
  NNOR, or probabilities P,

      threshold   d_k = sum_{j < k} (f - b_j)                                      (D)
      nearest     d_k = -|f_k|, or `rank_values` of ELMOR
      largest     d_k, from `rank_values` of the model
      share       d_k, the share of rank k by XOFM's Definition 5
      scan        d_k = sum_{j < k} (min_{i <= j} o_i - 1/2), outputs o_i = P(y > i)
      median      d_k = sum_{j < k} (1/2 - P(y <= j))
      mode        d_k = P(y = k)
      cost        d_k = -sum_j P(y = j) cost[j, k]

  A row whose score is equal to a threshold, so that (D) has a tie, gets the higher
  rank. If thresholds are out of order, the prediction is the largest of (D) instead of
  the number of thresholds that f reaches; this is as if neighbours that are out of
  order were replaced by their mean.
* The default rule is that of the model, except for methods that always have
  probabilities. There it is `mode`, the most probable rank, as scikit-learn expects;
  `median` has the least expected absolute error.
* Equal rows are merged, their weights are added, and rows are sorted by their content.
  A row of weight k therefore has the same effect as k equal rows, and the result does
  not depend on the order of the rows, to the last bit. This does not hold if a
  parameter refers to rows by their numbers (`basis`), or with kernel="precomputed",
  whose columns are rows.
* Strings without `classes` are ranked in alphabetical order, as in scikit-learn, with a
  warning, because this is rarely the order of the ranks.
* `score` is a metric of `ordinal.metrics`, with the sign that makes larger values
  better: by default minus the mean absolute error of the ranks.

The modules of this package:

    estimators     the base of all estimators
    scorers        scorers, which know the order of the ranks
    decomposition  any classifier, one clone per threshold
    encoder        labels as integers in rank order
"""

from __future__ import annotations

import inspect
from collections.abc import Set
from typing import TYPE_CHECKING, Any

try:
    from sklearn.utils.validation import validate_data  # noqa: F401, new in 1.6
except ImportError as error:
    raise ImportError(
        "ordinal.sklearn needs scikit-learn 1.6 or newer: "
        "pip install 'ordinal-regression[sklearn]'"
    ) from error

from .._input.checks import check_keywords
from .._model.registry import Method, methods, parameters
from ..preprocessing.transformer import TableTransformer
from .decomposition import OrdinalDecomposition
from .encoder import RankEncoder
from .estimators import (
    Estimator,
    FoldedEstimator,
    GroupedEstimator,
    added,
    default_rule,
)
from .scorers import scorer

__all__ = ["OrdinalDecomposition", "RankEncoder", "TableTransformer", "scorer"]
__all__ += [method.estimator for method in methods(every=True)]


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:  # the classes that are made below
    from .._estimators import *  # noqa: F403

# Docstrings and signatures


def _described(method: Method) -> str:
    """Return the docstring of an estimator, from that of the fit."""
    text = inspect.getdoc(method.fit) or ""
    head = text.partition("Parameters\n")[0].strip().removeprefix("Fit ")
    own = parameters(text).items()
    described = [entry for name, entry in own if name not in _rowwise(method)]
    name, rule = method.estimator, default_rule(method)
    groups = "" if method.needs is None else ", groups=[k % 9 for k in range(100)]"
    default = "the model's own" if rule is None else repr(rule)
    scoring = _SCORING if "scoring" in added(method) else ""
    return f"""{head[0].upper()}{head[1:]}

Parameters
----------
{chr(10).join(described)}
rule : str, default {default}
    Rule of `predict`, as the model's `predict` takes it.
    {_ADVICE[rule is None]}{scoring}

Attributes
----------
model_ : the model of `ordinal.{method.fit.__name__}`
classes_ : (r,) array
    Labels, sorted as by `np.unique`.
ranks_ : (r,) array
    Labels in rank order.
n_features_in_ : int
feature_names_in_ : (n_features_in_,) array of str
    Of a data frame only.
n_iter_ : int
    Steps of the solver.

Examples
--------
>>> import ordinal
>>> from ordinal.sklearn import {name}
>>> X, y = ordinal.datasets.make_gaussians(rng=0)
>>> estimator = {name}().fit(X[::3], y[::3]{groups})
>>> estimator.predict([[10.0, 10.0], [20.0, 10.0]])
array([1, 3])
"""


_SCORING = """
scoring : str or callable, default "mae"
    Metric of `score`, as for `ordinal.sklearn.scorer`, or a result of that."""
# Of the docstring, on the choice of a rule by whether it is the model's own
_ADVICE = {
    True: 'With `probability=True` also "mode", "median" or "cost".',
    False: """\
"mode" is what scikit-learn expects; "median" has the smallest expected absolute
    error, "cost" the smallest expected cost.""",
}


def _rowwise(method: Method) -> Set[str]:
    """Return the arguments of the fit that are no parameters of the estimator."""
    # In place of `preprocess`, scikit-learn has pipelines.
    return {"X", "y", "sample_weight", "preprocess"} | method.by_row


def _signature(method: Method) -> inspect.Signature:
    """Return the signature of `__init__`: the fit's, `rule` and `scoring`."""
    own = inspect.signature(method.fit).parameters.values()
    given = [p for p in own if p.name not in _rowwise(method)]
    for name, (kind, default) in added(method).items():
        by_name = inspect.Parameter.KEYWORD_ONLY
        given.append(inspect.Parameter(name, by_name, default=default, annotation=kind))
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([self, *given])


def _estimator(method: Method) -> type[Estimator]:
    """Return the class of a method's estimators."""
    signature = _signature(method)
    known = [name for name in signature.parameters if name != "self"]

    def __init__(self: Estimator, **parameters: Any) -> None:
        check_keywords(method.estimator, parameters, known)
        bound = signature.bind(self, **parameters)
        bound.apply_defaults()
        for name in known:
            setattr(self, name, bound.arguments[name])

    __init__.__qualname__ = f"{method.estimator}.__init__"  # errors show it
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    body = {
        "__init__": __init__,
        "__doc__": _described(method),
        "__module__": __name__,
        "_method": method,
    }
    base = FoldedEstimator if method.grouped_folds else Estimator
    if method.needs is not None:
        base = GroupedEstimator
    return type(method.estimator, (base,), body)


globals().update({m.estimator: _estimator(m) for m in methods(every=True)})
