"""The base of the estimators: conventions of scikit-learn around a fitted model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from .._input.checks import (
    as_array,
    check_choice,
    listed,
    shown,
    suggest_in_methods,
    with_remedies_of_pipelines,
    with_suggestions,
)
from .._input.columns import (
    check_categorical,
    column_categories,
    feature_names,
    is_frame,
    only_column,
    read_frame,
)
from .._input.features import read_features, read_rows_of
from .._input.frame import Frame
from .._input.intervals import RankIntervals
from .._input.labels import (
    DROP_ARGUMENT,
    by_number,
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
from .._input.sparse import CSR, is_sparse
from .._input.types import Labels
from .._input.warning import warn
from .._model.column_names import named
from .._model.grouping import group_numbers
from .._model.kernel_fit import thresholds_in_order
from .._model.labelled import Labelled, counted, kept_rows, numbered_as_caller
from .._model.model import names_read, no_attribute
from .._model.preparation import Callback
from .._model.registry import Content, Method, check_intervals
from .._model.threshold_model import (
    ON_PROBABILITIES,
    rank_decisions,
    summed_steps,
)
from .._numerics.rows import merged_rows
from ..exceptions import NoProbabilitiesError
from ..kernels.functions import kernel_class
from .scorers import scorer


def _has_probabilities(estimator: Estimator) -> bool:
    """Return whether `predict_proba` exists, for `hasattr`."""
    if estimator._method.probabilities or estimator.probability:
        return True
    raise NoProbabilitiesError("set probability=True, which calibrates scores in folds")


@suggest_in_methods
class Estimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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

    if not TYPE_CHECKING:  # it would make every attribute known

        def __getattr__(self, name):
            """Raise AttributeError, with the attribute of `model_` that is meant."""
            if hasattr(type(self), name):  # which has an error of its own
                return object.__getattribute__(self, name)
            raise no_attribute(self, name, self.__dict__.get("model_"), "model_.")

    def fit(self, X: Any, y: Labels, sample_weight: Any = None) -> Estimator:
        """Fit the model to training data.

        Parameters
        ----------
        X : (n, d) array-like, data frame or sparse matrix
        y : (n,) array-like
            Ranks, whose order is the rank order; an ordered categorical; or strings
            together with `classes`. Without it, strings are ranked by the alphabet,
            with a warning. `RankIntervals` where the fit takes them.
        sample_weight : (n,) array-like >= 0, optional
            Weight 2 is the row written twice.

        Returns
        -------
        the estimator
        """
        return self._fitted(X, y, sample_weight)

    @with_remedies_of_pipelines
    def _fitted(
        self,
        X: Any,
        y: Labels,
        sample_weight: Any,
        fold_groups: Any = None,
        **by_row: Any,
    ) -> Estimator:
        """Fit the model to merged rows: equal ones of one of the `fold_groups`."""
        self._check_predictions(y)
        parameters = self.get_params(deep=False)
        for name in added(self._method):
            del parameters[name]
        choice = parameters.pop("missing_labels")
        given = {"sample_weight": sample_weight, **(by_row or {"groups": fold_groups})}
        check_intervals(self._method.fit, y, type(self).__name__)
        left = Labelled.from_arguments(choice, X, y, parameters, **given)
        X, y, given = left.X, left.y, left.by_row
        sample_weight = given.pop("sample_weight")
        fold_groups, by_row = (None, given) if by_row else (given["groups"], {})
        with numbered_as_caller(left.keep):
            X = self._training_rows(X)
            labels, classes = ranked(y, parameters.pop("classes"), type(self).__name__)
            check_consistent_length(X, labels)
            weight = sample_weights(sample_weight, len(labels))
            group = group_numbers(fold_groups, len(labels), least=1)
        derived = self.classes is None and _declared(y) is None
        if derived and "class_weight" in parameters:  # a fold may lack a label
            given = parameters["class_weight"]
            parameters["class_weight"] = weights_among(classes, given)
        if "categories" in self._accepts() and (is_frame(X) or X.dtype.kind == "O"):
            # Strings are categories, however few rows are left after merging.
            X = read_frame(X, kept=check_categorical(getattr(self, "categorical", ())))
        rows = None
        if self._by_content():
            held = self._content(X)
            first, last = ends_of_labels(labels, classes)
            kind = first * np.int64(classes.size) + last
            rows, weight = merged_rows(held, kind, weight, group)
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
        self.model_ = counted(model, left, rows)
        self.ranks_ = self.model_.classes
        self.classes_ = np.unique(self.ranks_)
        self.n_iter_ = self.model_.convergence.n_iter
        return self

    def _check_predictions(self, y: Any) -> None:
        """Raise an error for a `rule` or `scoring` that the fit will not allow."""
        uses = {}
        if "scoring" in added(self._method):
            metric = scorer(self.scoring).metric
            metric.check_labels(y)
            uses["scoring"] = metric.needs_proba
        if self.rule is not None:
            rules = dict.fromkeys((self._method.own_rule, *ON_PROBABILITIES))
            check_choice("rule", self.rule, (*rules, None))
            uses["rule"] = self.rule in ON_PROBABILITIES
        if self._method.probabilities or self.probability:
            return
        for name in (name for name, used in uses.items() if used):
            raise ValueError(
                f"{name}={shown(getattr(self, name))} needs probabilities: pass "
                f"probability=True to {type(self).__name__}, or another {name}"
            )

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels, (n,), of the type of `classes_`, by the `rule`.

        Parameters
        ----------
        X : (n, d) array-like, data frame or sparse matrix
            Columns of a data frame are found by the names of the training one.
        """
        return self._labels(self._rows(X))

    @with_remedies_of_pipelines
    def _labels(self, X: Any) -> np.ndarray:
        rule = {} if self.rule is None else {"rule": self.rule}
        if thresholds_in_order(self.model_) or rule not in ({}, {"rule": "threshold"}):
            return np.asarray(self.model_.predict(X, **rule))
        D = summed_steps(self.model_.decision_function(X), self.model_.thresholds)
        return np.asarray(self.ranks_[D.argmax(axis=1)])

    @with_remedies_of_pipelines
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
    @with_suggestions
    @with_remedies_of_pipelines
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r), in the order of `classes_`.

        Parameters
        ----------
        X : as for `predict`
        """
        X = self._rows(X)
        return self._sorted(np.asarray(self.model_.predict_proba(X)))

    @property
    def coef_(self) -> np.ndarray:
        """Return the coefficients of the columns of X, (d,) or (k, d) for k scores.

        A column that the fit drops as collinear has 0. AttributeError if the model is
        not linear in the columns of X, as with categories, nominal effects and
        nonlinear kernels.
        """
        check_is_fitted(self)
        return _coefficients(self.model_, self.n_features_in_, type(self).__name__)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Return the importances of the columns of X, (d,), which only trees have."""
        check_is_fitted(self)
        found = self.model_.importance() if hasattr(self.model_, "importance") else None
        if found is None or found.values.size != self.n_features_in_:
            raise AttributeError(
                f"{type(self).__name__} has no importance per column: use "
                "sklearn.inspection.permutation_importance, or explain of model_"
            )
        return np.asarray(found.values)

    def _sorted(self, columns: np.ndarray) -> np.ndarray:
        """Put columns that are in rank order into that of `classes_`."""
        return np.take(columns, np.argsort(self.ranks_), axis=1)

    def score(self, X: Any, y: Labels, sample_weight: Any = None) -> float:
        """Return the metric `scoring`, with the sign that makes larger values better.

        Parameters
        ----------
        X : as for `predict`
            With missing="drop", rows with a missing value are left out, as by `fit`.
        y : (n,) labels among `classes_`, or RankIntervals
        sample_weight : (n,) array-like >= 0, optional
        """
        return scorer(self.scoring)(self, X, y, sample_weight)

    def _scored(self, *given: Any) -> tuple[Any, ...]:
        """Return X and arguments with one entry per row, without the rows that
        `missing` leaves out.
        """
        check_is_fitted(self)
        rows = self._drops() and read_rows_of(given[0], names_read(self.model_))
        if not isinstance(rows, Frame):  # a sparse matrix has no missing values
            return given
        keep = ~np.isnan(rows.values).any(axis=1)
        if not keep.any():
            raise ValueError(
                f"missing='drop' leaves out all {keep.size} rows of X, which lack "
                "values: impute them by ordinal.sklearn.TableTransformer before "
                f"{type(self).__name__} in a pipeline"
            )
        return tuple(kept_rows(values, keep) for values in given)

    def _drops(self) -> bool:
        return getattr(self, "missing", None) == "drop"

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
        return accepts | {"missing"} if self._drops() else accepts

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


@suggest_in_methods
class GroupedEstimator(Estimator):
    """Base of estimators whose `groups` are random effects."""

    def fit(
        self, X: Any, y: Labels, sample_weight: Any = None, groups: Any = None
    ) -> Estimator:
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
        if groups is None and getattr(self, "random", None) is None:
            name = type(self).__name__
            raise ValueError(
                f"{name} needs the groups of its random effects, got groups=None: pass "
                "groups= to fit, or random='(1 | judge)' with a data frame; "
                "cross_val_score and searches pass groups on after "
                "sklearn.set_config(enable_metadata_routing=True) and "
                f"{name}().set_fit_request(groups=True), as params={{'groups': ...}}"
            )
        by_row = {} if groups is None else {"groups": _named_groups(groups)}
        return self._fitted(X, y, sample_weight, **by_row)

    @with_remedies_of_pipelines
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

    @with_remedies_of_pipelines
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


@suggest_in_methods
class FoldedEstimator(Estimator):
    """Base of estimators whose fit deals rows out to folds, by `groups` if given."""

    def fit(
        self, X: Any, y: Labels, sample_weight: Any = None, groups: Any = None
    ) -> Estimator:
        """Fit the model to training data, as other estimators.

        `groups`, (n,) labels, keep rows together in the folds within the fit.
        """
        return self._fitted(X, y, sample_weight, groups)


def _known(groups: Any) -> dict[str, Any]:
    return {"effects": "known_or_new", "groups": _named_groups(groups)}


def _named_groups(groups: Any) -> Any:
    return groups if isinstance(groups, Mapping) else {"groups": groups}


def _coefficients(model: Any, n_features: int, name: str) -> np.ndarray:
    """Return the coefficients of a model by the columns of X, (d,) or (k, d)."""
    predictor, reason = getattr(model, "predictor", None), ""
    if predictor is not None:
        coded = predictor.coding is not None
        if coded or len(predictor.column_names) != n_features:
            reason = "the fit codes columns, or they name groups: see coef_names"
        elif predictor.nominal.size:
            reason = "columns with nominal effects have one coefficient per threshold"
        else:
            return np.asarray(predictor.by_column(model.coef))
    elif hasattr(type(model), "coef_by_feature"):
        try:
            return np.asarray(model.coef_by_feature.values)
        except AttributeError as error:
            reason = str(error)
    elif hasattr(model, "coef"):
        return np.asarray(model.coef)
    else:
        reason = "the model is not linear in the columns of X; explain of model_ helps"
    raise AttributeError(f"this {name} has no coef_: {reason}")


def ends_of_labels(
    labels: np.ndarray | RankIntervals, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last rank of each row, (n,) each."""
    if isinstance(labels, RankIntervals):
        return labels.ranks(classes)
    rank = ranks_of(labels, classes)
    return rank, rank


def _declared(y: Any) -> Any:
    """Return the categories that the type of labels declares, or None."""
    if isinstance(y, RankIntervals):
        return y.declared
    column = only_column(y)
    return None if categories_of(column) is None else declared_categories(column)


def ranked(
    y: Any, classes: Any, name: str
) -> tuple[np.ndarray | RankIntervals, np.ndarray]:
    """Return the labels, (n,), or intervals, and the classes in rank order, (r,)."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    declared = _declared(y) if classes is None else None
    intervals = y if isinstance(y, RankIntervals) else None
    # of nullable types of pandas, column_or_1d alone would make floats
    column = as_array(y, "y") if intervals is None else intervals.ends
    labels = read_labels(column_or_1d(column, warn=True), "y", DROP_ARGUMENT)
    known = classes is not None or declared is not None
    if not (known or in_halves(labels)):
        check_classification_targets(labels)
    check_not_numbered(labels, classes)
    if not known and labels.dtype.kind == "U":
        classes = by_number(np.unique(labels))
        numeric = np.any(classes != np.unique(labels))
        warn(
            f"y holds strings, which {name} ranks by "
            f"{'their numbers' if numeric else 'the alphabet'}: {listed(classes)}; "
            "pass classes= in rank order",
            UserWarning,
        )
    if declared is not None:  # as scikit-learn has it, a level without rows is no class
        classes = declared[np.isin(declared, labels)]
    classes = classes_in_rank_order(labels, classes)
    if intervals is None:
        return labels, classes
    return intervals.known if intervals.is_known.all() else intervals, classes


def default_rule(method: Method) -> str | None:
    """Return the default of `rule`; None is the rule of the model."""
    return "mode" if method.probabilities else None


def added(method: Method) -> dict[str, tuple[str, Any]]:
    """Return annotations and defaults of the parameters that the fit does not have.

    `scoring` of a fit that has one is also the metric of `score`.
    """
    made: dict[str, tuple[str, Any]] = {
        "rule": ("str | None", default_rule(method)),
        "scoring": ("str | object", "mae"),
    }
    own = inspect.signature(method.fit).parameters
    return {name: of for name, of in made.items() if name not in own}
