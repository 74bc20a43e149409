"""Metrics as searches use them: those of `ordinal.metrics`, or a caller's functions.

Models have their labels and the columns of their probabilities in rank order.
Estimators of scikit-learn sort both by label. Those of `ordinal.sklearn` have the rank
order in `ranks_`; of other estimators only the order of numbers is known.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from .. import metrics
from .._input.checks import check_choice, check_flag, enumerated, listed, shown
from .._input.columns import only_column
from .._input.intervals import RankIntervals
from .._input.labels import categories_of, declared_categories, ranks_of, read_labels
from .._input.predictions import OF_SETS
from .._model.registry import method_of, unwrapped
from .._model.threshold_model import ON_PROBABILITIES, labels_of_values
from .._rows.rows import map_rows
from ..exceptions import NoProbabilitiesError

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
_OF_PAIRS = ("somers_d", "c_index", "gamma")  # functions of labels or scores
_AS_FUNCTION = (
    "pass another metric as a function, such as sklearn.metrics.balanced_accuracy_score"
)
_NOTHING: Mapping[str, Any] = {}
# Metrics of hits alone: the mode has the best expectation. By all others an error of
# one rank is less than one of two, for which the median is made.
_OF_HITS = ("mze", "accuracy", "gm", "ms", "gmsec")
_OWN = "own"
_MEDIAN = "median"  # which has the least expected absolute error
Rule = Literal["own", "mode", "median", "cost"]
# Ends of the names of functions of sklearn.metrics, by which its scorers are signed too
_DIRECTIONS = {"_score": True, "_loss": False, "_error": False}


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
    fixed : tuple of str
        Arguments of a metric of `ordinal.metrics` that the caller has fixed.
    stated : bool
        Whether the caller has stated the direction, which nothing else tells.
    rule : str or None
        Rule of the predictions that are scored; None for the model's own, and for a
        metric of probabilities.
    """

    name: str
    call: Callable[..., Any]
    greater_is_better: bool
    needs_proba: bool
    weighs: bool
    fixed: tuple[str, ...] = ()
    stated: bool = False
    rule: str | None = None

    @classmethod
    def from_argument(cls, scoring: Any, greater_is_better: bool | None) -> Scorer:
        """Make a scorer from one entry of `scoring`.

        `greater_is_better` is the direction of a function that has none of its own.
        """
        if isinstance(getattr(scoring, "metric", None), cls):  # of `ordinal.sklearn`
            return scoring.metric  # type: ignore[no-any-return]
        if isinstance(scoring, str):
            check_choice("scoring", scoring, (*_LOSSES, *_GAINS), _AS_FUNCTION)
            return cls._of_package(scoring, getattr(metrics, scoring))
        if not callable(scoring):
            raise TypeError(
                f"scoring must be a name or a callable, got {shown(scoring)}"
            )
        _check_arguments(scoring)
        inner, fixed = unwrapped(scoring)
        name = getattr(inner, "__name__", type(inner).__name__)
        ours = name in (*_LOSSES, *_GAINS, *_OF_PAIRS)
        if ours and getattr(metrics, name, None) is inner:
            return cls._of_package(name, scoring, fixed)
        greater = _direction(inner, name)
        stated = greater is None
        if greater is None:
            greater = greater_is_better
        if greater is None:
            raise ValueError(
                f"greater_is_better must be given for scoring={shown(scoring)}: True "
                "if larger values are better, False for a loss"
            )
        needs_proba = bool(getattr(scoring, "needs_proba", False))
        name = _with_options(name, fixed)
        return cls(name, scoring, greater, needs_proba, False, stated=stated)

    @classmethod
    def _of_package(
        cls, name: str, call: Callable[..., Any], fixed: Mapping[str, Any] = _NOTHING
    ) -> Scorer:
        """Return the scorer of a metric of `ordinal.metrics`."""
        greater, needs_proba = name not in _LOSSES, name in _OF_PROBABILITIES
        rule = "mode" if name in _OF_HITS else _MEDIAN
        return cls(
            _with_options(name, fixed), call, greater, needs_proba, True, tuple(fixed),
            rule=None if needs_proba else rule,
        )  # fmt: skip

    def check_labels(self, y: Any) -> None:
        """Raise TypeError for intervals of ranks, unless the metric scores them."""
        name = self.name.partition("(")[0]
        if isinstance(y, RankIntervals) and self.weighs and name not in OF_SETS:
            raise TypeError(
                f"scoring={shown(self.name)} needs the rank of each row, and y holds "
                f"RankIntervals: take one of {listed(OF_SETS)}"
            )

    def __call__(
        self,
        model: Any,
        X: Any,
        values: np.ndarray | None,
        y: np.ndarray | RankIntervals,
        classes: np.ndarray,
        weight: np.ndarray | None,
    ) -> float:
        """Return the score of a model on rows X.

        `values` are those of its decision function at X, or None if they are not known.
        """
        predicted = self.predicted(model, X, values, classes)
        known = {"labels": classes, "sample_weight": weight} if self.weighs else {}
        known = {k: v for k, v in known.items() if k not in self.fixed}
        score = self.call(y, predicted, **known)
        try:
            return float(score)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"scoring must return a number, got {shown(score)} of {self.name}"
            ) from None

    def predicted(
        self, model: Any, X: Any, values: np.ndarray | None, classes: np.ndarray
    ) -> np.ndarray:
        """Return what is scored: probabilities of rows, or their labels by the rule."""
        if self.needs_proba:
            if values is not None:
                P = model._proba(values)
            else:
                _check_probabilities(model, self.name)
                P = map_rows(model.predict_proba, X)
            return in_rank_order(np.asarray(P), model, classes)
        if values is not None:
            return labels_of_values(model, values, self.rule)
        given = {} if self.rule is None else {"rule": self.rule}
        return map_rows(partial(model.predict, **given), X)


def scorers_of(scoring: Any, greater_is_better: bool | None) -> tuple[Scorer, ...]:
    """Make the scorers from `scoring`, which names one metric or several.

    `greater_is_better` is the direction of all functions among them that have none of
    their own. Raises ValueError if there is no such function and it contradicts one of
    the others.
    """
    one = isinstance(scoring, str) or not isinstance(scoring, Sequence)
    several: Sequence[Any] = [scoring] if one else scoring
    if greater_is_better is not None:
        check_flag("greater_is_better", greater_is_better)
    scorers = tuple(Scorer.from_argument(s, greater_is_better) for s in several)
    names = [scorer.name for scorer in scorers]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"scoring must name different metrics, got {listed(names)}")
    if greater_is_better is None or any(scorer.stated for scorer in scorers):
        return scorers
    for scorer in scorers:
        if scorer.greater_is_better != greater_is_better:
            raise ValueError(
                f"greater_is_better={shown(greater_is_better)} contradicts "
                f"{shown(scorer.name)}, whose direction is known: leave it out"
            )
    return scorers


def ruled(
    scorers: tuple[Scorer, ...],
    fit: Callable[..., Any],
    given: Mapping[str, Any],
    rule: Rule | None,
) -> tuple[Scorer, ...]:
    """Return the scorers with the rules by which the models of a method predict.

    `given` are the options of the fits, those of a partial included, and `rule` is the
    caller's, or None for the one that belongs to the metric. A function of the caller
    predicts by its own rule unless another one is asked for. A fit that is not
    registered may declare its rules itself, as `Method` does.

    Raises ValueError for a rule on probabilities which `given` leaves out.
    """
    if rule is not None:
        check_choice("rule", rule, get_args(Rule))
    function = unwrapped(fit)[0]
    method = method_of(function)
    calibrated = method is None or method.probabilities
    has = calibrated or given.get("probability", True) is not False
    rules: Any = function if hasattr(function, "keeps_rule") else method
    if rule in ON_PROBABILITIES and not has:
        raise ValueError(
            f"rule={shown(rule)} needs probabilities: leave out probability=False, or "
            "the rule"
        )

    def of(scorer: Scorer) -> str | None:
        if rules is None:
            return None if scorer.needs_proba or rule == _OWN else rule
        own: str = rules.own_rule
        if rule is not None:
            return own if rule == _OWN else rule
        # A score of probabilities has no rule, but the model that it chooses has one.
        fitting = _MEDIAN if scorer.needs_proba else scorer.rule
        keeps = not has or fitting in rules.keeps_rule
        return own if keeps else fitting or own

    return tuple(replace(scorer, rule=of(scorer)) for scorer in scorers)


def calibrates(scorers: Iterable[Scorer], parameters: Collection[str]) -> bool:
    """Return whether a fit with these parameters must calibrate probabilities."""
    needed = any(s.needs_proba or s.rule in ON_PROBABILITIES for s in scorers)
    return needed and "probability" in parameters


def rules_of(scorers: Iterable[Scorer]) -> dict[str, str]:
    """Return the rules by which labels are predicted, by the names of the metrics."""
    return {s.name: s.rule or _OWN for s in scorers if not s.needs_proba}


def _with_options(name: str, options: Mapping[str, Any]) -> str:
    """Return the name of a metric with the arguments that are fixed in a partial."""
    fixed = ", ".join(f"{k}={shown(v)}" for k, v in options.items())
    return f"{name}({fixed})" if fixed else name


def _check_arguments(scoring: Callable[..., Any]) -> None:
    """Raise TypeError for a callable that does not take two vectors, such as the result
    of `make_scorer` of scikit-learn.
    """
    try:
        inspect.signature(scoring).bind(None, None)
    except ValueError:
        return  # a function of a compiled module may have no signature
    except TypeError:
        raise TypeError(
            "scoring must be a function of (true labels, predicted labels), got "
            f"{shown(scoring)}, which takes other arguments: in place of a scorer of "
            "scikit-learn pass its metric, such as "
            "functools.partial(cohen_kappa_score, weights='quadratic')"
        ) from None


def _direction(function: Any, name: str) -> bool | None:
    """Return whether larger values of a function of scikit-learn are better, or None if
    neither its name nor its module tells.
    """
    module: str = getattr(function, "__module__", None) or ""
    if not f"{module}.".startswith("sklearn.metrics."):
        return None
    return next((up for end, up in _DIRECTIONS.items() if name.endswith(end)), None)


def without_rows(
    y: np.ndarray | RankIntervals,
    classes: np.ndarray,
    split: tuple[np.ndarray, np.ndarray],
) -> str:
    """Return which labels a split has on its test side alone, as the end of a sentence
    about a score that is not finite, or an empty string.
    """
    if isinstance(y, RankIntervals):
        return ""
    train, test = split
    lacking = classes[np.isin(classes, y[test]) & ~np.isin(classes, y[train])]
    if not lacking.size:
        return ""
    named = "label" if lacking.size == 1 else "labels"
    return f": only test rows there have the {named} {enumerated(lacking)}"


def _check_probabilities(model: Any, metric: str) -> None:
    """Raise NoProbabilitiesError for a model without `predict_proba`."""
    if hasattr(model, "predict_proba"):
        return
    while (held := _held(model)) is not None:
        model = held
    remedy = "choose a metric of labels"
    if hasattr(model, "probability"):  # a parameter of estimators of this package
        remedy = f"pass probability=True to it, or {remedy}"
    raise NoProbabilitiesError(
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
                "order, or score with y as an ordered categorical"
            )
    if classes is None:
        raise TypeError(
            "model must be a fitted model or classifier, which has `classes` or "
            f"`classes_`, got {shown(model)}: a metric of ranks needs predicted "
            "labels, which a regressor does not have"
        )
    return read_labels(classes, "classes of the model")


def scoring_classes(model: Any, labels: Any) -> np.ndarray:
    """Return the labels of a model and of rows to score in rank order.

    A model that was fitted to some rows may lack numbers that others have. Their place
    among the ranks is known if all ranks are in the order of numbers, unlike that of
    strings, which are not added.
    """
    classes = classes_of(model, labels)
    if isinstance(labels, RankIntervals):
        y, declared = labels.ends, labels.declared
    else:
        y = read_labels(labels, "y")
        is_declared = categories_of(labels) is not None
        declared = declared_categories(labels, "classes", "y") if is_declared else None
    if declared is not None:
        among = declared[np.isin(declared, classes)]
        return declared if np.array_equal(among, classes) else classes
    if y.dtype.kind == "U" or classes.dtype.kind == "U":
        return classes
    rising = np.array_equal(np.unique(classes), classes)
    known = not rising or np.isin(y, classes).all()
    return classes if known else np.union1d(classes, y)


def score_of(metric: Scorer, model: Any, X: Any, y: Any, weight: Any) -> float:
    """Return the score of the labels that `predict` returns, or of probabilities.

    The model may have been fitted to some of the ranks of the labels y.
    """
    y = only_column(y)
    classes = scoring_classes(model, y)
    labels = y if isinstance(y, RankIntervals) else read_labels(y, "y")
    return replace(metric, rule=None)(model, X, None, labels, classes, weight)


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
    its `classes`. A class that the model does not know has probability 0; ValueError
    for one that is not among `classes`.
    """
    name = "classes_" if hasattr(model, "classes_") else "classes"
    own = getattr(model, name, None)
    if own is None or np.shape(P)[1:] != np.shape(own):
        return P
    own, of = read_labels(own, f"{name} of the model"), f"{name} of the model"
    if np.array_equal(own, classes):
        return P
    ordered = np.zeros((len(P), classes.size))
    ordered[:, ranks_of(own, classes, of, "the ranks")] = P
    return ordered
