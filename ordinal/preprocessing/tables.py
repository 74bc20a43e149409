"""Coding of tables with categories and missing values as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from .._formula.coding import Coding, Variable
from .._formula.dates import Part, check_dates, part_of_dates
from .._input.checks import check_choice, check_flag, enumerated, shown
from .._input.columns import (
    by_column,
    check_categorical,
    coded_column,
    column_number,
    feature_names,
    read_frame,
    read_once,
)
from .._input.features import read_frame_of
from .._input.frame import Frame
from .._input.immutable import read_only
from .._input.labels import read_labels, sample_weights
from .._input.types import ArrayLike, MatrixLike
from .._input.warning import warn
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import comes_in_blocks
from ..exceptions import EmptyColumnsWarning
from .base import Preprocess, Preprocessor, PreprocessorOptions
from .scaling import Standardizer, units

Impute = Literal["median", "mean", "most_frequent"]
Unseen = Literal["missing", "error"]
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
    * Columns of dates that `dates` lists become numbers: year, month, weekday and days
      since 1970-01-01. Other dates are an error.
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
    dates : names or numbers of columns, or a mapping of them to parts, optional
        Columns of dates, or of strings such as "2024-01-31". The parts "year", "month"
        (1 to 12), "weekday" (0, Monday, to 6) and "days" (since 1970-01-01, with the
        time of day as a fraction) become columns of numbers, such as "visit[year]". By
        default all four are made; `{"visit": ["month", "days"]}` chooses some, as the
        year is nearly a multiple of the days.
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
    ('x1', 'x1 is missing', 'x2[blue]', 'x2[red]', 'x2 is missing')
    >>> coding.transform([[None, "blue"], [5.0, None]])
    array([[2., 1., 1., 0., 0.],
           [5., 0., 0., 1., 1.]])
    """

    by_column: ClassVar[bool] = True
    impute: Impute = "median"
    indicator: bool = True
    order: Mapping[str | int, Sequence[Any]] = field(default_factory=dict)
    categorical: Sequence[str | int] = ()
    dates: Sequence[str | int] | Mapping[str | int, Sequence[Part]] = ()
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
        object.__setattr__(self, "dates", check_dates(self.dates))
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
            names an unknown column, or `dates` one that is not of dates, or if a weight
            is invalid.

        Warns
        -----
        EmptyColumnsWarning
            If no row of positive weight has a value in a column, which is then 0 in all
            rows.
        """
        frame = read_frame(X, kept=self.declared_in(X))
        w = sample_weights(sample_weight, len(frame))
        frame, w = frame.rows(w > 0), w[w > 0] / w.max()
        variables = self._variables(frame, w)
        coding = Coding(
            formula=None,
            feature_names=frame.names,
            n_features=frame.shape[1],
            variables=variables,
            terms=tuple((k,) for k in range(len(variables))),
        )
        coding._check()
        empty = [v.name for v in variables if v.fill is not None and np.isnan(v.fill)]
        if empty:
            warn(
                f"no training row has a value in {enumerated(empty)}, and such columns "
                "are 0 in all rows: leave them out",
                EmptyColumnsWarning,
            )
        if not self.standardize:
            return TableCoding(coding)
        measured = Standardizer.fit(coding.transform(frame), w)
        scale = np.where(coding.indicators, 1.0, measured.scale)
        return TableCoding(coding, Standardizer(measured.mean, scale))

    def declared_in(self, X: Any) -> tuple[str | int, ...]:
        """Return the columns that an argument names, whose strings may all differ.

        Raises ValueError for one that the data frame X does not have.
        """
        names = feature_names(X)
        declared: list[str | int] = []
        for argument in ("categorical", "order", "dates"):
            for column in getattr(self, argument):
                if names is not None:
                    column_number(column, names, argument)
                declared.append(column)
        return tuple(declared)

    def _variables(self, frame: Frame, weight: np.ndarray) -> tuple[Variable, ...]:
        """Return a variable per column, with the statistics of rows with weight."""
        names = frame.shown_names
        orders = by_column(self.order, names, "order")
        order = {j: np.asarray(labels) for j, labels in orders.items()}
        chosen = {column_number(c, names, "categorical") for c in self.categorical}
        dates = by_column(check_dates(self.dates), names, "dates")
        made: list[Variable] = []
        for j, name in enumerate(names):
            if j in dates:
                made += self._of_dates(frame, weight, j, dates[j])
                continue
            if frame.kinds[j] == "date":
                coded_column(frame, j, None)  # raises TypeError
            known, hot = _known(frame, j, order.get(j), j in chosen)
            values = coded_column(frame, j, known)
            missing = np.isnan(values)
            if missing.all():
                made.append(Variable(name, j, None, 0, fill=np.nan))
                continue
            how: Impute = "most_frequent" if hot else self.impute
            made.append(
                Variable(
                    name,
                    j,
                    known,
                    reference=0,
                    contrasts="treatment" if hot or known is None else "scores",
                    fill=_fill(values[~missing], weight[~missing], how),
                    marks_missing=self.indicator and bool(missing.any()),
                    unseen=self.unseen,
                    # A lone category keeps its column.
                    full=known is not None and (not self.drop_first or known.size == 1),
                )
            )
        return tuple(made)

    def _of_dates(
        self, frame: Frame, weight: np.ndarray, j: int, parts: Sequence[Part]
    ) -> list[Variable]:
        """Return the variables of a column of dates; the last marks missing ones."""
        made = []
        for part in parts:
            values = part_of_dates(frame, j, part)
            known = ~np.isnan(values)
            lacks = not known.any()
            fill = _fill(values[known], weight[known], self.impute) if not lacks else 0
            made.append(
                Variable(
                    f"{frame.shown_names[j]}[{part}]",
                    j,
                    None,
                    0,
                    fill=np.nan if lacks else fill,
                    marks_missing=(
                        self.indicator
                        and part == parts[-1]
                        and not lacks
                        and not known.all()
                    ),
                    part=part,
                    span=_span(values[known]) if part in ("days", "year") else None,
                )
            )
        return made

    def _for_method(self, full_rank: bool) -> TablePreprocessor:
        """Return the options with `drop_first` as a method needs it, unless given."""
        if self.drop_first is not None:
            return self
        return replace(self, drop_first=full_rank)


def _span(values: np.ndarray) -> tuple[float, float] | None:
    """Return the least and the largest value, or None for those without effect."""
    ends = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return ends if ends[0] < ends[1] else None


@dataclass(frozen=True, slots=True, eq=False)
class TableCoding(Preprocessor):
    """Fitted coding of the columns of a table as numbers.

    `TablePreprocessor.fit` returns it.

    Attributes
    ----------
    coding : Coding
        Columns of numbers made of those of the table; linear models have one, too. Its
        `variables` hold the categories of each column, the value that replaces missing
        ones (`fill`) and whether an indicator marks these (`marks_missing`).
    standardizer : Standardizer or None
        Standardisation of the resulting columns.

    Examples
    --------
    >>> coding = TablePreprocessor().fit([["low", 1], ["high", 3]])
    >>> coding.transform([["high", 2]])
    array([[ 0.5, -0.5,  0. ]])
    """

    coding: Coding
    standardizer: Standardizer | None = None

    @property
    def n_features(self) -> int:
        """Return the number of columns of the table, d."""
        return self.coding.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of the table, by which they are found."""
        return self.coding.feature_names

    @property
    def categories(self) -> tuple[np.ndarray | None, ...]:
        """Categories of each column, (d,); None for a numeric one."""
        return self.coding.categories

    @property
    def feature_names_out(self) -> tuple[str, ...]:
        """Names of the resulting columns.

        They are "size" for a number and "colour[red]" for a category, followed by "size
        is missing" for an indicator of missing values.
        """
        return self.coding.column_names

    @property
    def raw_names_out(self) -> tuple[str, ...]:
        """Columns of the table from which `feature_names_out` are computed."""
        return self.coding.raw_names

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
        Z = self.coding.transform(X)
        # In place, because a second copy of many rows takes the memory of the first.
        return Z if self.standardizer is None else self.standardizer._standardized(Z, Z)

    def _check(self) -> None:
        if not self.n_features:
            raise ValueError("a table has columns")
        if any(len(term) != 1 for term in self.coding.terms):
            raise ValueError("the terms of a table must be its columns")
        size = len(self.feature_names_out)
        if self.standardizer and self.standardizer.n_features != size:
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


def coding_behind(
    how: Preprocess,
    X: Any,
    sample_weight: ArrayLike | None,
    reference: Mapping[str, Any] | None = None,
) -> tuple[Coding | None, np.ndarray | None]:
    """Return the coding of training rows for a linear fit behind a preprocessor.

    It makes columns in the units of the table, and is None if these are the columns of
    the table themselves. Returned with it are the units in which a penalty sees the
    columns, or None for those of the table.
    """
    made = how.fit(X, sample_weight)
    if isinstance(made, Standardizer):
        return None, units(made.scale)
    if not isinstance(made, TableCoding):
        raise TypeError(f"preprocess must work column by column, got {shown(how)}")
    scaled = made.standardizer
    coding = made.coding.with_reference(reference)
    return coding, None if scaled is None else units(scaled.scale)


def rows_behind(
    how: Preprocess | None, X: Any, sample_weight: ArrayLike | None
) -> tuple[Any, Coding | None, np.ndarray | None]:
    """Return training rows as columns for a linear fit, with `coding_behind`.

    Rows in chunks stay as they are; their units are those of `unit_of_chunks`.
    """
    in_chunks = comes_in_blocks(X)
    if isinstance(how, TablePreprocessor):
        check_at_once(in_chunks)
        table = read_frame_of(X, how.declared_in(X))
        coding, unit = coding_behind(how, table, sample_weight)
        assert coding is not None
        columns = Frame.of_numbers(coding.transform(table), coding.column_names)
        return columns, coding, unit
    if how is None or in_chunks or isinstance(X, np.memmap):
        return X, None, None
    X = read_once(X)
    return X, *coding_behind(how, X, sample_weight)


def check_at_once(in_chunks: bool) -> None:
    """Raise ValueError if a preprocessor of tables is given rows in chunks."""
    if in_chunks:
        raise ValueError(
            "preprocess must be Standardizer, or None, where X is read in chunks: "
            "other preprocessors need all rows at once"
        )


def unit_of_chunks(problem: ChunkedProblem) -> np.ndarray:
    """Return the units in which a penalty sees standardised rows in chunks."""
    if problem.moments is None:
        raise TypeError("X is sparse, and the result would not be: make it dense")
    return units(problem.moments.mean_and_scale()[1])
