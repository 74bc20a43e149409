"""Models of preprocessed features: the argument `preprocess=` of all fits.

A fit with a preprocessor returns a `PreprocessedModel`, or, if it is linear and every
feature is made of one column, its own model stated in the columns of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np

from .._input.checks import shown, with_suggestions
from .._input.columns import read_once
from .._input.frame import Frame
from .._input.intervals import RankIntervals
from .._input.types import ArrayLike, Blocks, Labels, MatrixLike, RowsLike
from .._model.column_names import named, with_names
from .._model.explanation import Named, in_columns, of_pair
from .._model.labelled import (
    call_of,
    labels_like_those_given,
    with_missing_labels,
)
from .._model.model import Model, Origin
from .._model.registry import check_intervals, method_of, unwrapped
from .._rows.reading import comes_in_blocks, read_chunks
from .._rows.source import has_blocks
from .._watch.convergence import Convergence
from ..exceptions import NoProbabilitiesError
from ..kernels.functions import kernel_class, on_basis
from .base import (
    ColumnPreprocessor,
    Preprocess,
    Preprocessor,
    PreprocessorOptions,
    fit_to_chunks,
)
from .tables import TablePreprocessor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PreprocessedModel(Model):
    """Model together with its preprocessing, for raw tables.

    Predictions, explanations and reports take rows of the raw table. Everything else is
    that of the attribute `model`, whose features are the columns `feature_names_out` of
    the preprocessor: `model.model.importance()`, or
    `model.model.predict_latent(model.preprocessor.transform(X))`.

    Attributes
    ----------
    preprocessor : Standardizer or TableCoding
    model : NpsvorModel or any other model
        Fitted on `preprocessor.transform(X)`.

    Examples
    --------
    >>> import ordinal
    >>> table = [[1.0, "a"], [2.0, "b"], [None, "b"], [4.0, "a"], [6.0, "b"]]
    >>> y = [1, 1, 2, 2, 3]
    >>> model = PreprocessedModel.fit(ordinal.fit_svorim, table, y, C=100.0)
    >>> model.predict([[7.0, None], [0.0, "a"]])
    array([3, 1])
    """

    preprocessor: Preprocessor
    model: Any

    def __post_init__(self) -> None:
        if not isinstance(self.preprocessor, Preprocessor):
            raise TypeError(
                "preprocessor must be a Standardizer or a TableCoding, got "
                f"{shown(self.preprocessor)}"
            )
        if not hasattr(self.model, "predict"):
            raise ValueError(
                f"model must have a method predict, got a {type(self.model).__name__}"
            )
        if not isinstance(self.origin, Origin | None):
            raise TypeError(f"origin must be an Origin, got {shown(self.origin)}")
        names = self.preprocessor.feature_names_out
        d = self.preprocessor.n_features if names is None else len(names)
        if isinstance(self.model, Model) and self.model.n_features != d:
            raise ValueError(
                "preprocessor and model differ in their number of features"
            )

    @classmethod
    def fit(
        cls,
        fit: Callable[..., Any],
        X: MatrixLike | Blocks,
        y: Labels | None,
        *,
        preprocess: Preprocess | None = None,
        sample_weight: ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        """Fit a preprocessor to a table, and a model to the transformed table.

        Linear fits such as `fit_pom` return their own model, stated in the columns of
        the table, unless the preprocessor mixes columns.

        Parameters
        ----------
        fit : callable
            Any `fit_*` function.
        X : (n, d) data frame or array-like
            Raw features. For a fit that reads rows in chunks also a source of chunks or
            a numpy.memmap, whose statistics are computed in the first pass of the fit.
        y : (n,) array-like, or None if X is a source of chunks
        preprocess : TablePreprocessor or Standardizer, default TablePreprocessor()
            Rows that are read in chunks need Standardizer.
        sample_weight : (n,) array-like >= 0, optional
            Weights of the rows in both.
        **options
            Other arguments of `fit`.

        Raises
        ------
        ValueError, TypeError
            As in the method `fit` of the preprocessor, and as in `fit`.
        """
        if preprocess is None:
            preprocess = TablePreprocessor()
        how = preprocess_for(fit, preprocess)
        if states_columns(fit, how):
            if sample_weight is not None:
                options["sample_weight"] = sample_weight
            return fit(X, y, preprocess=how, **options)
        # Rows without a label count in nothing.
        whole = with_missing_labels(partial(cls._fit, fit, how))
        made = whole(X, y, sample_weight=sample_weight, **options)
        function, fixed = unwrapped(fit)
        call = call_of(function, X, {**fixed, **options, "preprocess": how})
        origin = replace(cast(Origin, made.origin), call=call)
        object.__setattr__(made, "origin", origin)  # in place, as `with_origin`
        return made

    @classmethod
    def _fit(
        cls,
        fit: Callable[..., Any],
        how: Preprocess,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        **options: Any,
    ) -> PreprocessedModel:
        """Fit to rows that `with_missing_labels` has seen."""
        _check_features(X, options)
        # Without a basis, only a Standardizer reads a memmap in chunks; other
        # preprocessors read it into memory.
        needs_class = isinstance(X, np.memmap) and options.get("basis") is None
        if reads_chunks(X, fit, options) and (isinstance(how, type) or not needs_class):
            if isinstance(how, PreprocessorOptions):
                raise ValueError(
                    "preprocess must be Standardizer, or None, where X is read in "
                    "chunks: other preprocessors need all rows at once"
                )
            own = {
                k: options.pop(k) for k in ("classes", "class_weight") if k in options
            }
            rows = read_chunks(X, y, sample_weight=sample_weight, **own)
            if rows.moments is None:
                raise TypeError(
                    "X is sparse, and the result would not be: make it dense"
                )
            fitted, made = fit_to_chunks(how, rows)
            with closing(made):
                return cls(fitted, fit(made, None, **options))
        table = cast(MatrixLike, X)
        preprocessor = how.fit(table, sample_weight)
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        Z = as_named(fit, preprocessor.transform(table), preprocessor.feature_names_out)
        return cls(preprocessor, fit(Z, y, **options))

    @property
    def _wrapped(self) -> Any:
        return self.model

    def _features(self, X: RowsLike) -> Any:
        """Return raw rows as the features of the model, with their names."""
        raw = with_names(X, self.feature_names)
        names = getattr(self.model, "feature_names", None)
        return named(self.preprocessor.transform(raw), names)

    def _score_terms(self, X: MatrixLike) -> Named | None:
        if not isinstance(self.model, Model):
            return None
        terms = self.model._score_terms(self._features(X))
        made = self.preprocessor.feature_names_out
        columns = self.preprocessor.raw_names_out
        if terms is None or made is None or columns is None or made == columns:
            return terms
        raw = dict(zip(made, columns, strict=True))
        names = []
        for name in terms.names:
            pair = [raw[part] for part in of_pair(name, raw) or (name,)]
            names.append(":".join(dict.fromkeys(pair)))
        return in_columns(terms, names)

    def _summary(self) -> dict[str, str]:
        lines = {"model": type(self.model).__name__}
        if isinstance(self.model, Model):
            # With slots, dataclass makes a second class, which super() does not know.
            own = super(PreprocessedModel, self)._summary()
            lines |= self.model._summary() | own
            if hasattr(self.model, "predictor"):  # a linear model of mixed columns
                lines["model"] += " of the transformed columns"
        return lines

    @property
    def classes(self) -> np.ndarray:
        """Labels in rank order, (r,)."""
        return np.asarray(self.model.classes)

    @property
    def convergence(self) -> Convergence:
        """Return the record of the fit."""
        convergence: Convergence = self.model.convergence
        return convergence

    @property
    def n_features(self) -> int:
        """Return the number of columns of raw features."""
        return self.preprocessor.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw features, if the model was fitted on a data frame."""
        return self.preprocessor.feature_names

    def predict(self, X: RowsLike, **rule: Any) -> np.ndarray:
        """Predict labels, (n,), for rows of raw features by a `rule` of
        `model.predict`.

        Errors are those of the preprocessor and of the model.
        """
        labels = self.model.predict(self._features(X), **rule)
        return labels_like_those_given(self, labels, X)

    def predict_proba(self, X: RowsLike, **how: Any) -> np.ndarray:
        """Return `model.predict_proba` for the rows of raw `X`."""
        return np.asarray(self._method("predict_proba")(self._features(X), **how))

    def decision_function(self, X: RowsLike, **how: Any) -> np.ndarray:
        """Return `model.decision_function` for the rows of raw `X`."""
        return np.asarray(self._method("decision_function")(self._features(X), **how))

    def _method(self, name: str) -> Callable[..., Any]:
        """Return a method of the model, or raise an error if it has none of this name.

        NoProbabilitiesError for `predict_proba`, and TypeError for other methods.
        """
        found: Callable[..., Any] | None = getattr(self.model, name, None)
        if found is None:
            kind = NoProbabilitiesError if name == "predict_proba" else TypeError
            raise kind(f"a {type(self.model).__name__} has no {name}")
        return found


def within(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model behind a preprocessor, and raw rows as its features.

    Any other model is returned with the rows as they are.
    """
    while isinstance(model, PreprocessedModel):
        model, X = model.model, model._features(X)
    return model, X


def preprocess_for(fit: Callable[..., Any], preprocess: Any) -> Preprocess:
    """Return a caller's `preprocess` as the fit needs it, or raise TypeError."""
    if isinstance(preprocess, type) and issubclass(preprocess, ColumnPreprocessor):
        return preprocess
    if not isinstance(preprocess, PreprocessorOptions):
        if isinstance(preprocess, type):
            got = f"the class {preprocess.__name__}: pass {preprocess.__name__}()"
        else:
            got = shown(preprocess)
        raise TypeError(
            "preprocess must be a TablePreprocessor or the class Standardizer, got "
            f"{got}"
        )
    function = unwrapped(fit)[0]
    method = method_of(function)
    # Ratio models are not in the registry.
    full_rank = function in _IN_COLUMNS if method is None else method.full_rank
    return preprocess._for_method(full_rank)


def states_columns(fit: Callable[..., Any], how: Preprocess | None) -> bool:
    """Return whether a fit with a preprocessor makes a model of the columns of tables.

    Such fits take the argument `preprocess` themselves.
    """
    by_column = how is not None and how.by_column
    return by_column and unwrapped(fit)[0] in _IN_COLUMNS


_IN_COLUMNS: set[Callable[..., Any]] = set()  # fits by `preprocessed_in_columns`


def _check_features(X: Any, options: dict[str, Any]) -> None:
    """Raise TypeError or ValueError unless X holds features."""
    if isinstance(X, str):
        raise TypeError(
            "X must not be a formula where preprocess is given, because a formula "
            f"states its own preprocessing: leave out preprocess, got {shown(X)}"
        )
    if options.get("random") is not None:
        raise ValueError(
            "random must be None where preprocess is given, which replaces the "
            "columns that random names: pass the labels as groups={name: labels}"
        )
    if kernel_class(options.get("kernel")).by_number:
        raise ValueError(
            "kernel must not be 'precomputed' where preprocess is given, because "
            "X then holds no features"
        )


def reads_chunks(X: Any, fit: Callable[..., Any], options: Mapping[str, Any]) -> bool:
    """Return whether a fit with these options reads X in chunks."""
    if comes_in_blocks(X):
        return True
    method = method_of(unwrapped(fit)[0])
    without_basis = method is not None and method.reads_chunks
    by_basis = on_basis(options.get("basis"), options.get("kernel", "rbf"))
    return isinstance(X, np.memmap) and (without_basis or by_basis)


P = ParamSpec("P")
M = TypeVar("M", covariant=True)


class FitFunction(Protocol[P, M]):
    """Type of a `fit_*` function: with `preprocess`, it returns a PreprocessedModel."""

    @overload
    def __call__(
        self,
        X: MatrixLike | Blocks,
        y: Labels | None,
        *,
        preprocess: Preprocess,
        **options: Any,
    ) -> PreprocessedModel: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> M: ...


_MISSING = object()


def _without_labels(fit: str, X: Any) -> TypeError:
    """Return the error for a fit without the argument y."""
    if has_blocks(X):
        where = (
            "pass y=None for a source of chunks, whose chunks are (X, y) or (X, y, "
            "weight); ordinal.data.blocks(path, target=...) reads them from a file"
        )
    elif isinstance(X, str):
        where = "with a formula, pass its data frame as y"
    else:
        read_once(X)  # for the error of an iterator over chunks
        where = "pass the labels of X, one per row"
    return TypeError(f"{fit}() lacks the argument y: {where}")


def preprocessed(fit: Callable[P, M]) -> FitFunction[P, M]:
    """Add the parameter `preprocess` to a `fit_*` function.

    The error for an unknown keyword argument suggests a similar one, and the error for
    missing labels says where labels belong.
    """
    plain: Callable[..., M] = fit

    @with_suggestions
    @with_missing_labels
    @wraps(fit)
    def fit_preprocessed(X: Any, y: Any = _MISSING, **options: Any) -> Any:
        if y is _MISSING:
            raise _without_labels(fit.__name__, X)
        if isinstance(y, RankIntervals) or isinstance(X, str):
            formula = X if isinstance(X, str) else ""
            check_intervals(fit_preprocessed, y, formula=formula)
        how = options.pop("preprocess", None)
        if how is None:
            return plain(X, y, **options)
        how = preprocess_for(fit_preprocessed, how)
        if states_columns(fit_preprocessed, how):
            _check_features(X, {})
            return plain(X, y, preprocess=how, **options)
        return PreprocessedModel._fit(fit_preprocessed, how, X, y, **options)

    return cast(FitFunction[P, M], fit_preprocessed)


def preprocessed_in_columns(fit: Callable[P, M]) -> Callable[P, M]:
    """Add to a linear fit what `preprocessed` adds, for models of raw columns.

    The fit takes a preprocessor that is `by_column` itself, and states its model in the
    columns of the table.
    """
    made = preprocessed(fit)
    _IN_COLUMNS.add(made)
    return cast(Callable[P, M], made)


def as_named(
    fit: Callable[..., Any], X: np.ndarray, names: tuple[str, ...] | None
) -> Any:
    """Return features in the form in which they are passed to a fit.

    Fits of this package receive columns with names, and functions of the caller a plain
    array.
    """
    if names is None or method_of(unwrapped(fit)[0]) is None:
        return X
    return Frame.of_numbers(X, names)
