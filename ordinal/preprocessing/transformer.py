"""`TablePreprocessor` as a transformer of scikit-learn, for `ordinal.sklearn`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from .._formula.dates import Part
from .._input.checks import suggest_in_methods, with_remedies_of_pipelines
from .._input.columns import as_objects, feature_names, is_frame
from .._input.types import ArrayLike
from .tables import Impute, TableCoding, TablePreprocessor, Unseen


@suggest_in_methods
class TableTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transform a table of numbers, categories, dates and missing values to numbers.

    This is `ordinal.preprocessing.TablePreprocessor` for pipelines of scikit-learn,
    with the same parameters.

    Parameters
    ----------
    impute : {"median", "mean", "most_frequent"}, default "median"
        Statistic of the training rows that replaces missing numbers.
    indicator : bool, default True
        Whether to add an indicator for each column that has missing values in the
        training rows.
    order : mapping of columns to sequences of categories, optional
        Categories of a column in increasing order, by its name or number.
    categorical : names or numbers of columns, default none
        Numeric columns whose values are categories.
    dates : names or numbers of columns, or a mapping of them to parts, default none
        Columns of dates, which become year, month, weekday and days.
    unseen : {"missing", "error"}, default "missing"
        Treatment of a category that is not in the training rows.
    standardize : bool, default True
        Whether to standardise numeric columns and to centre columns of 0 and 1.
    drop_first : bool, default False
        Whether to omit the column of the first category, for models without penalties.

    Attributes
    ----------
    coding_ : TableCoding
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str
        Of a data frame only.

    Examples
    --------
    >>> from ordinal.sklearn import POM, TableTransformer
    >>> from sklearn.pipeline import make_pipeline
    >>> table = [["2024-01-31", 1.0], ["2024-02-03", 4.0], ["2024-02-08", 2.0]] * 5
    >>> pipeline = make_pipeline(TableTransformer(dates={0: ["weekday"]}), POM(l2=0.1))
    >>> pipeline.fit(table, [1, 3, 2] * 5).predict(table[:3])
    array([1, 3, 2])
    >>> pipeline[0].get_feature_names_out().tolist()
    ['x1[weekday]', 'x2']
    """

    def __init__(
        self,
        *,
        impute: Impute = "median",
        indicator: bool = True,
        order: Mapping[str | int, Sequence[Any]] | None = None,
        categorical: Sequence[str | int] = (),
        dates: Sequence[str | int] | Mapping[str | int, Sequence[Part]] = (),
        unseen: Unseen = "missing",
        standardize: bool = True,
        drop_first: bool = False,
    ):
        self.impute, self.indicator = impute, indicator
        self.order, self.categorical, self.dates = order, categorical, dates
        self.unseen, self.standardize = unseen, standardize
        self.drop_first = drop_first

    @with_remedies_of_pipelines
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the statistics of the columns of a table; y is ignored.

        Parameters
        ----------
        X : (n, d) data frame or array-like
        y : ignored
        sample_weight : (n,) array-like, optional
            Weights >= 0, not all 0.
        """
        order = {} if self.order is None else self.order
        options = self.get_params() | {"order": order}
        X = self._checked(X, reset=True)
        self.coding_: TableCoding = TablePreprocessor(**options).fit(X, sample_weight)
        return self

    @with_remedies_of_pipelines
    def transform(self, X: Any) -> np.ndarray:
        """Return the rows of a table as numbers, (n, m) float64."""
        check_is_fitted(self)
        return self.coding_.transform(self._checked(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of numbers, (m,)."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array(self.coding_.feature_names_out, dtype=object)

    def _checked(self, X: Any, reset: bool) -> Any:
        """Return a table after scikit-learn's checks of its columns."""
        if is_frame(X):
            feature_names(X)  # for its error about two columns of one name
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        if isinstance(X, list | tuple):  # numpy would make strings of mixed rows
            X = as_objects(X)
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags
