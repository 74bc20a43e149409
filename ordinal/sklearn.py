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
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.utils import _safe_indexing as rows_of
    from sklearn.utils import get_tags
    from sklearn.utils.metadata_routing import MetadataRequest
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.parallel import Parallel, delayed
    from sklearn.utils.validation import (
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        has_fit_parameter,
        validate_data,
    )
except ImportError as error:
    raise ImportError(
        "ordinal.sklearn needs scikit-learn 1.6 or newer: "
        "pip install 'ordinal-regression[sklearn]'"
    ) from error

from ._input.checks import as_array, check_keywords, listed
from ._input.columns import (
    check_categorical,
    column_categories,
    feature_names,
    is_frame,
    only_column,
    read_frame,
    warn_of_other_order,
)
from ._input.features import read_features
from ._input.frame import Frame
from ._input.labels import (
    DROP_ARGUMENT,
    categories_of,
    check_not_numbered,
    classes_in_rank_order,
    declared_categories,
    in_halves,
    ranks_of,
    read_labels,
    sample_weights,
    weights_among,
)
from ._input.sparse import CSR, is_sparse
from ._input.types import Labels
from ._model.column_names import named
from ._model.grouping import group_numbers
from ._model.labelled import Labelled, MissingLabels, counted
from ._model.links import falling
from ._model.preparation import Callback
from ._model.registry import Content, Method, methods, parameters
from ._model.threshold_model import cost_of_rule, decide, rank_decisions, summed_steps
from ._numerics.rows import merged_rows
from ._watch.convergence import in_order
from .kernels.functions import kernel_class
from .model_selection.scoring import Metric, Scorer, scorers_of, scoring_classes
from .preprocessing.transformer import TableTransformer

__all__ = ["OrdinalDecomposition", "TableTransformer", "scorer"]
__all__ += [method.estimator for method in methods(every=True)]


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:  # the classes that are made below
    from ._estimators import *  # noqa: F403


def scorer(
    metric: str | Metric | _Scorer = "mae", *, greater_is_better: bool | None = None
) -> _Scorer:
    """Return a scorer for `scoring=` of scikit-learn that uses a metric.

    Parameters
    ----------
    metric : str or callable, default "mae"
        Name of a metric in `ordinal.metrics`: "mze", "mae", "amae", "mmae", "oci",
        "rps", "log_loss", "accuracy", "accuracy_off", "gm", "ms", "gmsec", "cem",
        "kappa" (also "qwk"), "kendall" or "spearman". "rps" and "log_loss" use
        `predict_proba` of the estimator. Or a function as for `select`, or a result
        of `scorer`.
    greater_is_better : bool, optional
        As for `select`.

    Returns
    -------
    callable (estimator, X, y, sample_weight=None) -> float
        Scorer whose larger values are better: losses are negated. The rank order is
        that of `ranks_` of the estimator, also inside pipelines and searches; otherwise
        that of `y` if it is an ordered categorical, or that of numbers. For strings
        without any of these it raises TypeError.

    Raises
    ------
    ValueError, TypeError
        If `metric` is unknown.

    See Also
    --------
    ordinal.select : Tune the hyperparameters of a method by cross-validation, and refit
        it.
    ordinal.metrics.mae : Compute the mean absolute error of the predicted labels.
    ordinal.metrics.rps : Compute the ranked probability score: squared error of
        cumulative probabilities.

    Examples
    --------
    >>> import ordinal.sklearn
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> judge = ordinal.sklearn.scorer("mae")
    >>> scores = cross_val_score(ordinal.sklearn.SVORIM(), X, y, scoring=judge)
    >>> float(scores.mean().round(2))
    -0.1
    """
    (made,) = scorers_of([metric], greater_is_better)
    return _Scorer(made)


class _Scorer:
    """Scorer that `scorer` returns."""

    def __init__(self, metric: Scorer) -> None:
        self.metric = metric
        self._requests: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"scorer({self.metric.name!r})"

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None
    ) -> float:
        warn_of_other_order(X, y=y, sample_weight=sample_weight)
        y = only_column(y)
        classes = scoring_classes(estimator, y)
        y = read_labels(y, "y")
        by_estimator = replace(self.metric, rule=None)  # which has a rule of its own
        score = by_estimator(estimator, X, None, y, classes, sample_weight)
        return score if self.metric.greater_is_better else -score

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> _Scorer:
        """Request weights where metadata are routed; returns itself."""
        self._requests["sample_weight"] = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """Return the requests, as scikit-learn reads them."""
        request = MetadataRequest(owner=self)
        request.score.add_request(
            param="sample_weight", alias=self._requests.get("sample_weight")
        )
        return request


def _has_probabilities(estimator: _Estimator) -> bool:
    """Return whether `predict_proba` exists, for `hasattr`."""
    if estimator._method.probabilities or estimator.probability:
        return True
    raise AttributeError("set probability=True, which calibrates scores in folds")


class _Estimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators."""

    _method: ClassVar[Method]
    rule: str | None
    scoring: Any
    classes: Any
    probability: Any
    n_threads: int | None
    max_time: float | None
    callback: Callback | None
    verbose: bool

    def __init__(self, **parameters: Any) -> None: ...

    def fit(self, X: Any, y: Labels, sample_weight: Any = None) -> _Estimator:
        """Fit the model to training data.

        Parameters
        ----------
        X : (n, d) array-like, data frame or sparse matrix
        y : (n,) array-like
            Ranks, whose order is the rank order; an ordered categorical; or strings
            together with `classes`. Without it, strings are ranked by the alphabet,
            with a warning.
        sample_weight : (n,) array-like >= 0, optional
            Weight 2 is the row written twice.

        Returns
        -------
        the estimator
        """
        return self._fitted(X, y, sample_weight)

    def _fitted(
        self,
        X: Any,
        y: Labels,
        sample_weight: Any,
        fold_groups: Any = None,
        **by_row: Any,
    ) -> _Estimator:
        """Fit the model to merged rows: equal ones of one of the `fold_groups`."""
        parameters = self.get_params(deep=False)
        for name in _added(self._method):
            del parameters[name]
        choice = parameters.pop("missing_labels")
        given = {"sample_weight": sample_weight, **(by_row or {"groups": fold_groups})}
        left = Labelled.from_arguments(choice, X, y, parameters, **given)
        X, y, given = left.X, left.y, left.by_row
        sample_weight = given.pop("sample_weight")
        fold_groups, by_row = (None, given) if by_row else (given["groups"], {})
        X = self._training_rows(X)
        labels, classes = _ranked(y, parameters.pop("classes"), type(self).__name__)
        derived = self.classes is None and categories_of(only_column(y)) is None
        if derived and "class_weight" in parameters:  # a fold may lack a label
            given = parameters["class_weight"]
            parameters["class_weight"] = weights_among(classes, given)
        check_consistent_length(X, labels)
        weight = sample_weights(sample_weight, labels.size)
        group = group_numbers(fold_groups, labels.size, least=1)
        if "categories" in self._accepts() and (is_frame(X) or X.dtype.kind == "O"):
            # Strings are categories, however few rows are left after merging.
            X = read_frame(X, kept=check_categorical(getattr(self, "categorical", ())))
        if self._by_content():
            held = self._content(X)
            rows, weight = merged_rows(held, ranks_of(labels, classes), weight, group)
            labels = labels[rows]
            group = None if group is None else group[rows]
            X = X.rows(rows) if isinstance(X, Frame) else rows_of(X, rows)
        if group is not None:
            by_row["groups"] = group
        # A member of a pool may take no weights.
        unweighted = sample_weight is None and self._method.composed
        model = self._method.fit(
            X,
            labels,
            classes=classes,
            sample_weight=None if unweighted else weight,
            **by_row,
            **parameters,
        )
        self.model_ = counted(model, left)
        self.ranks_ = self.model_.classes
        self.classes_ = np.unique(self.ranks_)
        self.n_iter_ = self.model_.convergence.n_iter
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels, (n,), of the type of `classes_`, by the `rule`.

        Parameters
        ----------
        X : (n, d) array-like, data frame or sparse matrix
            Columns of a data frame are found by the names of the training one.
        """
        return self._labels(self._rows(X))

    def _labels(self, X: Any) -> np.ndarray:
        rule = {} if self.rule is None else {"rule": self.rule}
        if in_order(self.model_) or rule not in ({}, {"rule": "threshold"}):
            return np.asarray(self.model_.predict(X, **rule))
        D = summed_steps(self.model_.decision_function(X), self.model_.thresholds)
        return np.asarray(self.ranks_[D.argmax(axis=1)])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return a number per rank, the largest of which is that of the predicted one.

        Parameters
        ----------
        X : as for `predict`

        Returns
        -------
        (n, r) array in the order of `classes_`, or (n,) if there are two ranks
            By the `rule`, as the page on scikit-learn says. -inf for a rank without
            training rows by its thresholds or hyperplane. Of two ranks it is above 0
            where the second of `classes_` is predicted.
        """
        X = self._rows(X)
        D = self._sorted(rank_decisions(self.model_, X, self.rule))
        return D[:, 1] - D[:, 0] if D.shape[1] == 2 else D

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r), in the order of `classes_`.

        Parameters
        ----------
        X : as for `predict`
        """
        X = self._rows(X)
        return self._sorted(np.asarray(self.model_.predict_proba(X)))

    def _sorted(self, columns: np.ndarray) -> np.ndarray:
        """Put columns that are in rank order into that of `classes_`."""
        return np.take(columns, np.argsort(self.ranks_), axis=1)

    def score(self, X: Any, y: Labels, sample_weight: Any = None) -> float:
        """Return the metric `scoring`, with the sign that makes larger values better.

        Parameters
        ----------
        X : as for `predict`
        y : (n,) labels among `classes_`
        sample_weight : (n,) array-like >= 0, optional
        """
        return scorer(self.scoring)(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags, accepts = super().__sklearn_tags__(), self._accepts()
        tags.input_tags.sparse = "sparse" in accepts
        tags.input_tags.allow_nan = "missing" in accepts
        tags.input_tags.categorical = "categories" in accepts
        tags.input_tags.string = self._has_categories()
        tags.input_tags.pairwise = self._is_precomputed()
        # The checks have clusters of ranks in any order, which need a kernel.
        tags.classifier_tags.poor_score = not hasattr(self, "kernel")
        return tags

    def _accepts(self) -> Set[Content]:
        accepts = self._method.accepts_with(self.get_params(deep=False))
        leaves_out = getattr(self, "missing", None) == "drop"
        return accepts | {"missing"} if leaves_out else accepts

    def _has_categories(self) -> bool:
        return len(getattr(self, "categorical", ())) > 0

    def _is_precomputed(self) -> bool:
        return kernel_class(getattr(self, "kernel", None)).by_number

    def _by_content(self) -> bool:
        """Return whether rows may be merged and ordered: none is named by number."""
        # The folds of a pool may name rows.
        if self._is_precomputed() or self._method.composed:
            return False
        basis = getattr(self, "basis", None)
        if is_sparse(basis):
            return True
        numbers = as_array(basis, "basis")
        return numbers.ndim != 1 or numbers.dtype.kind not in "iu"

    def _training_rows(self, X: Any) -> Any:
        """Return validated rows, and note the number and names of the columns."""
        if not is_frame(X):
            return self._array(X, reset=True)
        names = feature_names(X) or ()
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return X

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        if is_frame(X) and self.model_.feature_names is not None:
            return X  # whose columns the model finds
        # scikit-learn has warned about missing names.
        return named(self._array(X, reset=False), self.model_.feature_names)

    def _array(self, X: Any, reset: bool) -> Any:
        accepts = self._accepts()
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if "sparse" in accepts else False,
            dtype=None if self._has_categories() else "numeric",
            ensure_all_finite="allow-nan" if "missing" in accepts else True,
            ensure_min_samples=2 if reset else 1,
        )

    def _content(self, X: Any) -> np.ndarray | CSR:
        """Return the training rows as numbers; categories are numbered."""
        known, accepts = None, self._accepts()
        if "categories" in accepts and not is_sparse(X):
            known = column_categories(X, getattr(self, "categorical", ()))
        return read_features(X, missing="missing" in accepts, categories=known)


class _GroupedEstimator(_Estimator):
    """Base of estimators whose `groups` are random effects."""

    def fit(
        self, X: Any, y: Labels, sample_weight: Any = None, groups: Any = None
    ) -> _Estimator:
        """Fit the model to training data.

        Parameters
        ----------
        X : (n, d) array-like or data frame
        y : as for other estimators
        sample_weight : (n,) array-like >= 0, optional
        groups : (n,) array-like of labels, or mapping of names to such, optional
            The levels of a random intercept, named "groups" unless they have a name;
            without `random`.

        Returns
        -------
        the estimator
        """
        by_row = {} if groups is None else {"groups": _named_groups(groups)}
        return self._fitted(X, y, sample_weight, **by_row)

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        """Predict labels, (n,), by the `rule`.

        Parameters
        ----------
        X : (n, d) array-like or data frame
        groups : as for `fit`, optional
            The effects of known groups count. Without it, and in groups that no
            training row has, all effects are integrated out.
        """
        X = self._rows(X)
        if groups is None:
            return self._labels(X)
        return np.asarray(self.model_.predict(X, rule=self.rule, **_known(groups)))

    def predict_proba(self, X: Any, groups: Any = None) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r), in the order of `classes_`.

        Parameters
        ----------
        X, groups : as for `predict`
        """
        X, given = self._rows(X), {} if groups is None else _known(groups)
        return self._sorted(np.asarray(self.model_.predict_proba(X, **given)))

    def _by_content(self) -> bool:
        return False


class _FoldedEstimator(_Estimator):
    """Base of estimators whose fit deals rows out to folds, by `groups` if given."""

    def fit(
        self, X: Any, y: Labels, sample_weight: Any = None, groups: Any = None
    ) -> _Estimator:
        """Fit the model to training data, as other estimators.

        `groups`, (n,) labels, keep rows together in the folds within the fit.
        """
        return self._fitted(X, y, sample_weight, groups)


def _known(groups: Any) -> dict[str, Any]:
    return {"effects": "known_or_new", "groups": _named_groups(groups)}


def _named_groups(groups: Any) -> Any:
    return groups if isinstance(groups, Mapping) else {"groups": groups}


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
            Ranks: numbers, an ordered categorical, or strings with `classes`.
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
        labels, classes = _ranked(y, self.classes, type(self).__name__)
        check_consistent_length(X, labels)
        rank = ranks_of(labels, classes)
        weight = sample_weights(sample_weight, labels.size)
        given = {} if sample_weight is None else {"sample_weight": weight}
        if given and not has_fit_parameter(self.estimator, "sample_weight"):
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
        above = [rank > k for k in np.flatnonzero(self._observed)[:-1]]
        shares = np.array([np.average(event, weights=weight) for event in above])
        self._rarer = np.minimum(shares, 1 - shares)
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(clone(self.estimator).fit)(X, event.astype(int), **given)
            for event in above
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
        rules = "mode", "median", "cost"
        table = cost_of_rule(self.rule, rules, self.cost, None, self.ranks_.size)
        return np.asarray(self.ranks_[decide(self._proba(X), self.rule, table)])

    def score(self, X: Any, y: Labels, sample_weight: Any = None) -> float:
        """Return the metric `scoring`; losses are negated."""
        return scorer(self.scoring)(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.input_tags = own.input_tags
        tags.classifier_tags.poor_score = own.classifier_tags.poor_score
        return tags


def _ranked(y: Any, classes: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels, (n,), and the classes in rank order, (r,)."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=True)
    declared = declared_categories(only_column(y)) if classes is None else None
    known = classes is not None or declared is not None
    if labels.dtype.kind == "f":
        # whose message has the row of NaN and infinity
        read_labels(labels, "y", DROP_ARGUMENT)
    if not (known or in_halves(labels)):
        check_classification_targets(labels)
    labels = read_labels(labels, "y", DROP_ARGUMENT)
    check_not_numbered(labels, classes)
    if not known and labels.dtype.kind == "U":
        classes = np.unique(labels)
        warnings.warn(
            f"y holds strings, which {name} ranks by the alphabet: {listed(classes)}; "
            "pass classes= in rank order",
            UserWarning,
            stacklevel=3,
        )
    if declared is not None:  # as scikit-learn has it, a level without rows is no class
        classes = declared[np.isin(declared, labels)]
    return labels, classes_in_rank_order(labels, classes)


# Docstrings and signatures


def _described(method: Method) -> str:
    """Return the docstring of an estimator, from that of the fit."""
    text = inspect.getdoc(method.fit) or ""
    head = text.partition("Parameters\n")[0].strip().removeprefix("Fit ")
    own = parameters(text).items()
    described = [entry for name, entry in own if name not in _rowwise(method)]
    name, rule = method.estimator, _default_rule(method)
    groups = "" if method.needs is None else ", groups=[k % 9 for k in range(100)]"
    default = "the model's own" if rule is None else repr(rule)
    scoring = _SCORING if "scoring" in _added(method) else ""
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


def _default_rule(method: Method) -> str | None:
    """Return the default of `rule`; None is the rule of the model."""
    return "mode" if method.probabilities else None


def _rowwise(method: Method) -> Set[str]:
    """Return the arguments of the fit that are no parameters of the estimator."""
    # In place of `preprocess`, scikit-learn has pipelines.
    return {"X", "y", "sample_weight", "preprocess"} | method.by_row


def _added(method: Method) -> dict[str, tuple[str, Any]]:
    """Return annotations and defaults of the parameters that the fit does not have.

    `scoring` of a fit that has one is also the metric of `score`.
    """
    added: dict[str, tuple[str, Any]] = {
        "rule": ("str | None", _default_rule(method)),
        "scoring": ("str | object", "mae"),
    }
    own = inspect.signature(method.fit).parameters
    return {name: of for name, of in added.items() if name not in own}


def _signature(method: Method) -> inspect.Signature:
    """Return the signature of `__init__`: the fit's, `rule` and `scoring`."""
    own = inspect.signature(method.fit).parameters.values()
    given = [p for p in own if p.name not in _rowwise(method)]
    for name, (kind, default) in _added(method).items():
        by_name = inspect.Parameter.KEYWORD_ONLY
        given.append(inspect.Parameter(name, by_name, default=default, annotation=kind))
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([self, *given])


def _estimator(method: Method) -> type[_Estimator]:
    """Return the class of a method's estimators."""
    signature = _signature(method)
    known = [name for name in signature.parameters if name != "self"]

    def __init__(self: _Estimator, **parameters: Any) -> None:
        check_keywords(method.estimator, parameters, known)
        bound = signature.bind(self, **parameters)
        bound.apply_defaults()
        for name in known:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    body = {
        "__init__": __init__,
        "__doc__": _described(method),
        "__module__": __name__,
        "_method": method,
    }
    base = _FoldedEstimator if method.grouped_folds else _Estimator
    if method.needs is not None:
        base = _GroupedEstimator
    return type(method.estimator, (base,), body)


globals().update({m.estimator: _estimator(m) for m in methods(every=True)})
