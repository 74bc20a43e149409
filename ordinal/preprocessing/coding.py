"""Coding of tables with categories and missing values as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np

from .._input.checks import check_choice, check_flag, enumerated, shown
from .._input.columns import (
    check_categorical,
    check_distinct,
    coded_column,
    column_number,
    read_frame,
    read_table,
)
from .._input.fields import DISTINCT, FINITE, LABELS, Array, Length, Rule
from .._input.frame import Frame, default_names
from .._input.labels import read_labels
from .._input.sparse import read_only
from .._input.types import ArrayLike, MatrixLike
from .._input.weights import sample_weights
from .._model.preprocessed import Preprocessor, PreprocessorOptions
from .._watch.convergence import (
    EmptyColumnsWarning,
    warn,
    warn_of_unknown_levels,
    warn_of_unnamed,
)
from .scaling import Standardizer

Impute = Literal["median", "mean", "most_frequent"]
Unseen = Literal["missing", "error"]
_Labels = Annotated[np.ndarray, Array(LABELS, "_"), FINITE, DISTINCT]
_NOT_INFINITE = Rule("not be infinite", lambda a: ~np.isinf(a))
_HALF = 1e-12  # of the whole weight: what rounding moves its half by


@dataclass(frozen=True, slots=True)
class TablePreprocessor(PreprocessorOptions):
    """Transform a table of numbers, categories and missing values to a numeric one.

    `fit` learns statistics of the training rows and returns a `TableCoding`, which
    transforms tables.

    * Numeric columns stay numeric, and booleans become 0 and 1. Missing values are
      imputed; `indicator` adds a column of 0 and 1 that marks them.
    * Columns of strings or of a categorical type get one column of 0 and 1 per
      category; some methods omit the first category (`drop_first`). A missing value
      counts as the most frequent category.
    * Ordered categories are numbered from 0 and then treated as numbers. The order is
      that of `order`, of an ordered categorical of pandas, or of an Enum of polars.
    * Numeric columns are standardised to mean 0 and standard deviation 1 after
      imputation; columns of 0 and 1 are only centred. Two rows of different categories
      then have a squared distance of 2, which is the average squared distance of two
      rows in a numeric column.

    Parameters
    ----------
    impute : {"median", "mean", "most_frequent"}, default "median"
        Statistic of the training rows that replaces missing numbers. The default is
        the median because a few large values do not distort it.
    indicator : bool, default True
        Whether to add an indicator for each column that has missing values in the
        training rows. The default is True because missingness may be informative.
    order : mapping of columns to sequences of categories, optional
        Categories of a column in increasing order, by its name or number.
    categorical : names or numbers of columns, optional
        Numeric columns whose values are categories, such as postal codes.
    unseen : {"missing", "error"}, default "missing"
        Treatment in `transform` of a category that is not in the training rows:
        as a missing value, as in `fit_xofm`, or as an error that names the category.
    standardize : bool, default True
        Whether to standardise numeric columns and to centre columns of 0 and 1.
    drop_first : bool, optional
        Whether to omit the column of the first category. Without it the columns have
        full rank beside an intercept or thresholds, and coefficients compare with the
        first category. With all columns any two categories are equally far apart,
        which suits kernels and penalties. By default, a fit or search that is given
        the preprocessor chooses what the method needs: True for `fit_pom`, as in its
        own coding of tables, and False for all others. `fit` alone keeps all columns.

    Raises
    ------
    ValueError, TypeError
        If an argument has a value or type that is not listed above.

    Examples
    --------
    >>> table = [[1.0, "red"], [2.0, "blue"], [None, "red"], [6.0, None]]
    >>> coding = TablePreprocessor(standardize=False).fit(table)
    >>> coding.feature_names_out
    ('x1', 'x2=blue', 'x2=red', 'x1 is missing', 'x2 is missing')
    >>> coding.transform([[None, "blue"], [5.0, "green"]])
    array([[2., 1., 0., 1., 0.],
           [5., 0., 1., 0., 1.]])
    """

    impute: Impute = "median"
    indicator: bool = True
    order: Mapping[str | int, Sequence[Any]] = field(default_factory=dict)
    categorical: Sequence[str | int] = ()
    unseen: Unseen = "missing"
    standardize: bool = True
    drop_first: bool | None = None

    def __post_init__(self) -> None:
        check_choice("impute", self.impute, ("median", "mean", "most_frequent"))
        check_choice("unseen", self.unseen, ("missing", "error"))
        flags = ("indicator", "standardize", "drop_first")
        for name in flags if self.drop_first is not None else flags[:2]:
            object.__setattr__(self, name, check_flag(name, getattr(self, name)))
        object.__setattr__(self, "categorical", check_categorical(self.categorical))
        if not isinstance(self.order, Mapping):
            raise ValueError(
                "order must be a mapping from columns to their categories, got "
                f"{shown(self.order)}"
            )
        order = {
            column: _order_labels(f"order[{shown(column)}]", labels)
            for column, labels in self.order.items()
        }
        object.__setattr__(self, "order", order)

    def fit(self, X: MatrixLike, sample_weight: ArrayLike | None = None) -> TableCoding:
        """Learn the statistics of the columns of a table, in O(n d).

        Parameters
        ----------
        X : (n, d) data frame or array-like
            Columns of numbers, booleans, strings or categories, with or without missing
            values.
        sample_weight : (n,) array-like, optional
            Weights >= 0, not all 0, in means, medians and frequencies. Weight 2 has the
            same effect as writing the row twice, and weight 0 as leaving it out:
            categories that occur only there are unknown.

        Returns
        -------
        TableCoding

        Raises
        ------
        ValueError, TypeError
            If X is sparse or empty; if a column, which the message names, holds dates,
            strings among numbers, infinite numbers, or a category that is missing in
            its `order`; if a column looks like an identifier, with more than 20
            different strings in more than half of its rows, and is neither of a
            categorical type nor listed in `categorical`; if `order` or `categorical`
            names an unknown column, or if a weight is invalid.

        Warns
        -----
        EmptyColumnsWarning
            If no row of positive weight has a value in a column, which is then 0 in all
            rows.
        """
        frame = read_frame(X, kept=(*self.categorical, *self.order))
        names = frame.shown_names
        w = sample_weights(sample_weight, len(frame))
        frame, w = frame.rows(w > 0), w[w > 0] / w.max()
        order = {
            column_number(column, names, "order"): np.asarray(labels)
            for column, labels in self.order.items()
        }
        chosen = {column_number(c, names, "categorical") for c in self.categorical}
        labels: list[np.ndarray | None] = []
        one_hot, fill, indicator = [], [], []
        for j in range(len(names)):
            known, hot = _known(frame, j, order.get(j), j in chosen)
            values = coded_column(frame, j, known)
            missing = np.isnan(values)
            some = not missing.all()
            labels.append(known if some else None)
            one_hot.append(hot and some)
            how: Impute = "most_frequent" if hot else self.impute
            fill.append(_fill(values[~missing], w[~missing], how) if some else np.nan)
            indicator.append(self.indicator and some and bool(missing.any()))
        coding = TableCoding(
            feature_names=frame.names,
            categories=tuple(labels),
            one_hot=read_only(np.array(one_hot)),
            fill=read_only(np.array(fill)),
            indicator=read_only(np.array(indicator)),
            unseen=self.unseen,
            drop_first=bool(self.drop_first),
        )
        coding._check()
        empty = [name for name, here in zip(names, fill, strict=True) if np.isnan(here)]
        if empty:
            warn(
                f"no training row has a value in {enumerated(empty)}, and such columns "
                "are 0 in all rows: leave them out",
                EmptyColumnsWarning,
            )
        return coding._standardized(frame, w) if self.standardize else coding

    def _for_method(self, full_rank: bool) -> TablePreprocessor:
        """Return the options with `drop_first` as a method needs it, unless given."""
        if self.drop_first is not None:
            return self
        return replace(self, drop_first=full_rank)


@dataclass(frozen=True, slots=True, eq=False)
class TableCoding(Preprocessor):
    """Fitted coding of the columns of a table as numbers.

    `TablePreprocessor.fit` returns it.

    Attributes
    ----------
    feature_names : tuple of (d,) str, or None
        Names of the columns of the training data frame, by which columns are found.
    categories : tuple of (d,) arrays or None
        Categories of each column; None for a numeric one.
    one_hot : (d,) bool
        Whether each column has one indicator column per category; other categories are
        numbered.
    fill : (d,) float64
        Value that replaces missing ones: a number, or the number of a category. NaN for
        a column without values in the training rows, which is 0 in all rows.
    indicator : (d,) bool
        Whether each column has an indicator column of its missing values.
    unseen : {"missing", "error"}
    standardizer : Standardizer or None
        Standardisation of the resulting columns.
    drop_first : bool
        Whether the first of two or more categories has no indicator column.

    Examples
    --------
    >>> coding = TablePreprocessor().fit([["low", 1], ["high", 3]])
    >>> coding.transform([["high", 2]])
    array([[ 0.5, -0.5,  0. ]])
    """

    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    categories: Annotated[tuple[_Labels | None, ...], Length("d")]
    one_hot: Annotated[np.ndarray, Array("b1", "d")]
    fill: Annotated[np.ndarray, Array("f8", "d"), _NOT_INFINITE]
    indicator: Annotated[np.ndarray, Array("b1", "d")]
    unseen: Unseen
    standardizer: Standardizer | None = None
    drop_first: bool = False

    @property
    def n_features(self) -> int:
        """Return the number of columns of the table, d."""
        return len(self.categories)

    @property
    def feature_names_out(self) -> tuple[str, ...]:
        """Names of the resulting columns.

        They are "size" for a number and "colour=red" for a category, followed by "size
        is missing" for indicators of missing values.
        """
        names = self.feature_names or default_names(self.n_features)
        out: list[str] = []
        for j, (name, labels) in enumerate(zip(names, self.categories, strict=True)):
            if labels is None or not self.one_hot[j]:
                out.append(name)
            else:
                out += [f"{name}={label}" for label in labels[self._shown(j)]]
        return (*out, *(f"{names[j]} is missing" for j in self._marked))

    @property
    def raw_names_out(self) -> tuple[str, ...]:
        """Columns of the table from which `feature_names_out` are computed."""
        names = self.feature_names or default_names(self.n_features)
        counts = [
            self._shown(j).size if labels is not None and self.one_hot[j] else 1
            for j, labels in enumerate(self.categories)
        ]
        out = [name for name, k in zip(names, counts, strict=True) for _ in range(k)]
        return (*out, *(names[j] for j in self._marked))

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return the rows of a table as numbers, (n, m) float64, C-contiguous.

        `feature_names_out` holds the names of the columns.

        Raises
        ------
        ValueError
            If X lacks a column, has another number of columns, or holds a number that
            is infinite or too far from the mean; with unseen="error", if it holds a
            category that does not occur in the training rows. The message names the
            column.
        TypeError
            If a numeric column holds values that are not numbers, or if X is sparse.
        """
        warn_of_unnamed(X, self.feature_names)
        frame = read_table(X, self.feature_names, self.n_features)
        Z = np.column_stack(list(self._coded(frame)))
        return Z if self.standardizer is None else self.standardizer.transform(Z)

    def _standardized(self, frame: Frame, weight: np.ndarray) -> TableCoding:
        """Return the coding with a standardizer that is fitted to these rows."""
        measured = Standardizer.fit(np.column_stack(list(self._coded(frame))), weight)
        scale = np.where(self._is_binary, 1.0, measured.scale)
        return replace(self, standardizer=Standardizer(measured.mean, scale))

    def _coded(self, frame: Frame) -> Iterator[np.ndarray]:
        """Yield columns before standardisation, in the order of `feature_names_out`."""
        gaps = []
        for j, fill in enumerate(self.fill):
            if np.isnan(fill):
                yield np.zeros(len(frame))
                continue
            unseen_is_missing = self.unseen == "missing"
            known = self.categories[j]
            values = coded_column(frame, j, known, unseen_is_missing)
            if known is not None:
                name = frame.shown_names[j]
                warn_of_unknown_levels(name, frame.column(j), known, values)
            missing = np.isnan(values)
            if self.indicator[j]:
                gaps.append(missing.astype(np.float64))
            values = np.where(missing, fill, values)
            if self.one_hot[j]:
                yield (values[:, None] == self._shown(j)).astype(np.float64)
            else:
                yield values
        yield from gaps

    def _shown(self, j: int) -> np.ndarray:
        """Return the numbers of the categories that have an indicator column."""
        labels = self.categories[j]
        assert labels is not None
        first = int(self.drop_first and labels.size > 1)  # a lone one stays
        return np.arange(first, labels.size)

    @property
    def _is_binary(self) -> np.ndarray:
        """Return which output columns hold only 0 and 1, (m,)."""
        widths = [
            self._shown(j).size if hot else 1 for j, hot in enumerate(self.one_hot)
        ]
        return np.append(np.repeat(self.one_hot, widths), self.indicator[self._marked])

    @property
    def _marked(self) -> np.ndarray:
        return np.flatnonzero(self.indicator)

    def _check(self) -> None:
        if not self.n_features:
            raise ValueError("a table has columns")
        for j, (labels, fill) in enumerate(
            zip(self.categories, self.fill, strict=True)
        ):
            if self.one_hot[j] and (labels is None or fill not in range(labels.size)):
                raise ValueError("fill must number a category of a one-hot column")
        if (self.indicator & np.isnan(self.fill)).any():
            raise ValueError("indicator is for columns with values")
        names = self.feature_names_out
        check_distinct(names)
        if self.standardizer and self.standardizer.n_features != len(names):
            raise ValueError("standardizer must be of the columns that come out")


def _known(
    frame: Frame, j: int, order: np.ndarray | None, chosen: bool
) -> tuple[np.ndarray | None, bool]:
    """Return the categories of a column, and whether they have no order."""
    column = frame.column(j)
    if order is not None:
        return order, False
    if column.kind == "ordered":
        return column.labels, False
    if chosen or column.labels is not None:
        return column.labels_present(), True
    return None, False


def _fill(values: np.ndarray, weight: np.ndarray, impute: Impute) -> float:
    """Return what replaces a missing value; the least of equally frequent values."""
    if impute == "mean":
        return float(Standardizer.fit(values[:, None], weight).mean[0])
    values, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weight)
    if impute == "most_frequent":
        return float(values[mass.argmax()])
    below = np.cumsum(mass) / mass.sum()
    low = np.flatnonzero(below >= 0.5 - _HALF)[0]
    high = np.flatnonzero(below > 0.5 + _HALF)[0]  # differs where a half lies below
    return float(values[low] / 2 + values[high] / 2)


def _order_labels(name: str, labels: Any) -> np.ndarray:
    if isinstance(labels, str):
        raise ValueError(
            f"{name} must be a sequence of categories, got {shown(labels)}"
        )
    order = read_labels(labels, name)
    if not order.size or np.unique(order).size < order.size:
        raise ValueError(f"{name} must hold distinct categories, got {shown(labels)}")
    return read_only(order.copy())
