"""Coding of tables as numeric columns, in a fit and again at prediction.

Variables are columns of the table, or arithmetic of them. A term is a product of
variables, and its columns are all the products

    prod_k z_k,    z_k the numbers of variable k, or one of its indicators.

A categorical variable has an indicator for every level but the reference (treatment
contrasts) if the model also contains the term without this variable, and otherwise for
every level. The thresholds are the intercepts, so the model always contains the empty
term. This is R's rule and gives R's columns: `a * b` has contrasts only, `a + a:x` a
slope of x for every level of `a`. Levels of the first variable vary fastest. Ordered
categories get treatment contrasts as well, where R uses polynomials of their ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from .._cumulative.design import by_threshold, read_offset
from .._input.checks import listed, shown
from .._input.columns import by_column, check_distinct, coded_column, read_table
from .._input.fields import DISTINCT, FINITE, LABELS, Array, Rule
from .._input.frame import Frame, default_names
from .._input.types import ArrayLike, RowsLike
from .._input.warning import warn
from .._model.storage import Storable
from .._watch.convergence import (
    warn_of_far_dates,
    warn_of_unknown_levels,
    warn_of_unnamed,
)
from .dates import Part, part_of_dates
from .expressions import columns_of, evaluate
from .splines import Basis, Kind

Contrasts = Literal["treatment", "fused", "monotone", "scores"]
_NOT_INFINITE = Rule("not be infinite", lambda a: ~np.isinf(a))
_Labels = Annotated[np.ndarray, Array(LABELS, "_"), FINITE, DISTINCT]


class FormulaFactor(NamedTuple):
    """Variable of a formula, before the levels and knots are read from a table.

    Attributes
    ----------
    name : str
        Name in those of coefficients.
    source : str or None
        Arithmetic of columns; None for a column itself.
    columns : tuple of str
        The columns that are read.
    is_category : bool
        Whether a numeric column is treated as categorical, too.
    reference : object
        Reference level of `C(x, Treatment(level))`; None for the default.
    contrasts : {"treatment", "fused", "monotone"}
    smooth : (kind, options) or None
        Spline or polynomial; the options are the text of a dict, as factors are hashed.
    """

    name: str
    source: str | None
    columns: tuple[str, ...]
    is_category: bool = False
    reference: Any = None
    contrasts: Contrasts = "treatment"
    smooth: tuple[Kind, str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Storable):
    """Variable of the terms of a model.

    Attributes
    ----------
    name : str
        Name in those of coefficients.
    source : int or str
        Number of a column of the table, or arithmetic of columns.
    labels : array or None
        Levels of a categorical variable in their order; None for a numeric one.
    reference : int
        Number of the reference level, which has no indicator; 0 for numbers.
    contrasts : {"treatment", "fused", "monotone", "scores"}
        Comparison of each level with the reference ("treatment") or with the previous
        level. "monotone" constrains the coefficients to one sign. "scores" numbers the
        levels from 0.
    basis : Basis or None
        Spline or polynomial that expands the numbers to columns.
    fill : float or None
        Value that replaces missing ones: a number, or the number of a level. NaN for a
        column without values in the training rows, which is 0 in all rows. None if
        missing values are an error.
    marks_missing : bool
        Whether the last column marks missing values by 1.
    unseen : {"error", "missing"}
        Treatment of levels that no training row has.
    full : bool
        Whether every level has an indicator, also where treatment contrasts would do.
    part : {"year", "month", "weekday", "days"} or None
        Number that is made of a column of dates.
    span : tuple of two floats, or None
        First and last of these numbers in the training rows, where they grow with time.
    """

    name: str
    source: int | str
    labels: _Labels | None
    reference: int
    contrasts: Contrasts = "treatment"
    basis: Basis | None = None
    fill: Annotated[float, _NOT_INFINITE] | None = None
    marks_missing: bool = False
    unseen: Literal["error", "missing"] = "error"
    full: bool = False
    part: Part | None = None
    span: tuple[float, float] | None = field(default=None, kw_only=True)

    def _check(self) -> None:
        if self.part is not None and (
            self.labels is not None or isinstance(self.source, str)
        ):
            raise ValueError("part is for columns of dates")
        if self.marks_missing and (self.fill is None or np.isnan(self.fill)):
            raise ValueError(
                "marks_missing is for columns with a value that replaces missing ones"
            )
        if self.fill is not None and isinstance(self.source, str):
            raise ValueError("fill is for columns, not for expressions")
        if (
            self.labels is not None
            and self.contrasts != "scores"
            and self.fill not in (None, *range(self.labels.size))
        ):
            raise ValueError("fill must number a level of a categorical variable")
        size = 1 if self.labels is None else self.labels.size
        if not 0 <= self.reference < size:
            raise ValueError("reference must number a level")
        if self.labels is not None and isinstance(self.source, str):
            raise ValueError(
                "the source of a categorical variable must be a column, not an "
                "expression"
            )
        if self.labels is None and self.contrasts != "treatment":
            raise ValueError(
                "contrasts other than 'treatment' must be of a categorical variable"
            )
        if self.contrasts != "treatment" and self.reference:
            raise ValueError("increments begin at the lowest level")
        if self.labels is not None and self.basis is not None:
            raise ValueError("basis must be None for a categorical variable")

    def shown_columns(self, full: bool) -> list[str]:
        """Return the names of the columns, such as "size" or "Infl[High]"."""
        mark = [f"{self.name} is missing"] * self.marks_missing
        if self.basis is not None:
            return [f"{self.name}[{k}]" for k in range(1, self.basis.size + 1)]
        if self.labels is None or self.contrasts == "scores":
            return [self.name, *mark]
        return [*(f"{self.name}[{self.labels[k]}]" for k in self.levels(full)), *mark]

    def levels(self, full: bool) -> list[int]:
        """Return the levels that have an indicator: all, or all but the reference."""
        size = 0 if self.labels is None else self.labels.size
        full = full or self.full
        return [k for k in range(size) if full or k != self.reference]

    def has_indicators(self, full: bool) -> list[bool]:
        """Return whether each of the columns holds only 0 and 1 by its definition."""
        hot = self.labels is not None and self.contrasts != "scores"
        of = [hot] * (len(self.shown_columns(full)) - self.marks_missing)
        return of + [True] * self.marks_missing

    def columns(self, values: np.ndarray, full: bool) -> list[np.ndarray]:
        """Expand values, (n,), to the columns of the variable.

        `full` asks for an indicator per level, the reference included. Raises
        ValueError if a spline is infinite at a value.
        """
        if self.fill is None:
            return self._expanded(values, full)
        missing = np.isnan(values)
        known = np.where(missing, np.nan_to_num(self.fill), values)
        return self._expanded(known, full) + [missing] * self.marks_missing

    def _expanded(self, values: np.ndarray, full: bool) -> list[np.ndarray]:
        """Return `columns` without the mark, for values none of which is missing."""
        if self.basis is not None:
            far = self.basis.first_beyond(values)
            if far is not None:
                warn(
                    f"{self.name} is extrapolated as a polynomial beyond its "
                    f"boundary knots, as at {values[far]:g} in row {far}, where it "
                    "may be steep: fit with lower_bound= and upper_bound= that "
                    "cover all rows, or use ns",
                    UserWarning,
                )
            with np.errstate(all="ignore"):  # reported below
                made = self.basis.transform(values)
            if not (finite := np.isfinite(made).all(axis=1)).all():
                row = int(finite.argmin())
                raise ValueError(
                    f"{shown(self.name)} is infinite at {values[row]:g} in row {row}"
                )
            return list(made.T)
        if self.labels is None or self.contrasts == "scores":
            return [values]
        if self.contrasts == "treatment":
            return [values == level for level in self.levels(full)]
        return [values >= level for level in self.levels(full)]


@dataclass(frozen=True, slots=True, eq=False)
class Coding(Storable):
    """Coding of the columns of a table as the columns of a design.

    Attributes
    ----------
    formula : str or None
        Formula of the caller; None if every column of the table is a term.
    feature_names : tuple of (d,) str, or None
        Names by which columns are found; None if they are found by position.
    n_features : int
        Number of columns of the table, d.
    variables : tuple of Variable
    terms : tuple of tuples of int
        Numbers of the variables of each term.
    offsets : tuple of int
        Numbers of the numeric variables whose sum is the offset.

    Examples
    --------
    >>> from ordinal._input.columns import read_frame
    >>> coding = Coding.of_columns(read_frame([[1.0, "low"], [2.0, "high"]]))
    >>> coding.column_names
    ('x1', 'x2[low]')
    >>> coding.transform([[3.0, "low"], [4.0, "high"]])
    array([[3., 1.],
           [4., 0.]])
    """

    formula: str | None
    feature_names: tuple[str, ...] | None
    n_features: int
    variables: tuple[Variable, ...]
    terms: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...] = ()

    @classmethod
    def of_columns(
        cls, frame: Frame, reference: Mapping[str, Any] | None = None
    ) -> Coding:
        """Make a term of every column of the training rows; errors as `of_terms`."""
        terms = [(FormulaFactor(name, None, (name,)),) for name in frame.shown_names]
        return cls.of_terms(None, frame, terms, (), reference)

    @classmethod
    def of_terms(
        cls,
        formula: str | None,
        frame: Frame,
        terms: Sequence[tuple[FormulaFactor, ...]],
        offsets: Sequence[FormulaFactor] = (),
        reference: Mapping[str, Any] | None = None,
        weight: np.ndarray | None = None,
    ) -> Coding:
        """Make the terms of a formula, with the levels and knots of training rows.

        `weight` holds their weights, which are positive; default 1.

        Raises
        ------
        ValueError, TypeError
            If `reference` is no mapping from categorical columns to their levels, if
            arithmetic uses a categorical column, or if two columns of the design would
            have one name.
        """
        chosen = _check_reference(reference, frame.shown_names)
        factors = tuple(dict.fromkeys(chain(*terms, offsets)))
        variables = tuple(
            _variable(factor, frame, chosen, weight) for factor in factors
        )
        coded = {
            factor.columns[0]
            for factor, variable in zip(factors, variables, strict=True)
            if variable.labels is not None
        }
        for name in chosen:
            if name not in coded:
                raise _no_reference(name)
        # Terms share variables, which are stored once.
        number = {factor: k for k, factor in enumerate(factors)}
        coding = cls(
            formula=formula,
            feature_names=frame.names,
            n_features=frame.shape[1],
            variables=variables,
            terms=tuple(tuple(number[f] for f in term) for term in terms),
            offsets=tuple(number[f] for f in offsets),
        )
        coding._check()
        return coding

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of the design, (D,), such as "Infl[High]:size"."""
        return tuple(chain(*(names for _, names in self._named_terms())))

    @property
    def columns_of_terms(self) -> dict[str, range]:
        """Columns of the design by the name of their term, such as "Infl:size"."""
        found: dict[str, range] = {}
        end = 0
        for term, names in self._named_terms():
            found[term] = range(end, end := end + len(names))
        return found

    @property
    def raw_names(self) -> tuple[str, ...]:
        """Column of the table that each column of the design is made of, (D,).

        The terms must be single columns, not those of a formula.
        """
        table = self.feature_names or default_names(self.n_features)
        source = [table[int(self.variables[k].source)] for (k,) in self.terms]
        columns = self.columns_of_terms.values()
        return tuple(of for of, own in zip(source, columns, strict=True) for _ in own)

    @property
    def indicators(self) -> np.ndarray:
        """Mask of the columns that hold only 0 and 1, (D,), for single variables."""
        made = [
            self.variables[k].has_indicators(full)
            for term in self.terms
            for k, full in zip(term, self._full(term), strict=True)
        ]
        return np.array([*chain(*made)], dtype=np.bool_)

    @property
    def categories(self) -> tuple[np.ndarray | None, ...]:
        """Levels of each column of the table, (d,); None for a numeric one."""
        labels: list[np.ndarray | None] = [None] * self.n_features
        for variable in self.variables:
            if isinstance(variable.source, int) and variable.labels is not None:
                labels[variable.source] = variable.labels
        return tuple(labels)

    @property
    def dates(self) -> set[int]:
        """Numbers of the columns of the table that hold dates."""
        parts = (v.source for v in self.variables if v.part is not None)
        return {source for source in parts if isinstance(source, int)}

    @property
    def monotone(self) -> dict[str, tuple[Variable, range]]:
        """Variables and columns of the monotone terms, by name."""
        terms = zip(self.columns_of_terms.items(), self.terms, strict=True)
        every = {name: (self.variables[of[0]], at) for (name, at), of in terms}
        return {k: v for k, v in every.items() if v[0].contrasts == "monotone"}

    @property
    def columns_read(self) -> list[int]:
        """Numbers of the columns of the table that terms and offsets read."""
        every = {*chain(*self.terms, self.offsets)}
        return sorted({j for k in every for j in self._columns_of(k)})

    def _columns_of(self, k: int) -> list[int]:
        """Return the numbers of the columns of the table that a variable reads."""
        source = self.variables[k].source
        if isinstance(source, int):
            return [source]
        names = self.feature_names or default_names(self.n_features)
        return [names.index(name) for name in columns_of(source)]

    def of_columns_read(self) -> Coding:
        """Return the coding without the columns that no term or offset reads."""
        used = sorted({*chain(*self.terms, self.offsets)})
        number = {k: new for new, k in enumerate(used)}
        place = {j: new for new, j in enumerate(self.columns_read)}
        names = self.feature_names
        variables = [self.variables[k] for k in used]
        return Coding(
            formula=self.formula,
            feature_names=None if names is None else tuple(names[j] for j in place),
            n_features=len(place),
            variables=tuple(
                replace(v, source=place[v.source]) if isinstance(v.source, int) else v
                for v in variables
            ),
            terms=tuple(tuple(number[k] for k in term) for term in self.terms),
            offsets=tuple(number[k] for k in self.offsets),
        )

    def with_reference(self, reference: Mapping[str, Any] | None) -> Coding:
        """Return the coding with other reference levels of some columns.

        Errors are those of `of_terms`.
        """
        names = self.feature_names or default_names(self.n_features)
        chosen = _check_reference(reference, names)
        made = []
        for variable in self.variables:
            name = names[int(variable.source)]
            if name in chosen:
                if variable.labels is None or variable.contrasts != "treatment":
                    raise _no_reference(name)
                argument = f"reference[{shown(name)}]"
                place = _place(chosen[name], variable.labels, argument)
                variable = replace(variable, reference=place)
            made.append(variable)
        return replace(self, variables=tuple(made))

    def reference_of(self, column: int) -> int:
        """Return the number of the reference level of a categorical column."""
        return next(
            v.reference
            for v in self.variables
            if v.source == column and v.labels is not None
        )

    def read(self, X: RowsLike) -> Frame:
        """Return the columns of a table that the coding reads.

        Raises
        ------
        ValueError, TypeError
            If X is sparse, lacks a column, has another number of columns or has missing
            values.
        """
        frame = read_table(X, self.feature_names, self.n_features)
        warn_of_unnamed(X, self.feature_names)
        lacking = np.isnan(frame.values)
        lacking[:, [v.source for v in self.variables if v.fill is not None]] = False
        if lacking.any():
            row, j = (int(k) for k in np.argwhere(lacking)[0])
            raise ValueError(
                f"X lacks values in {np.count_nonzero(lacking.any(axis=1))} of "
                f"{len(frame)} rows; the first is row {row}, in column "
                f"{shown(frame.shown_names[j])}: fill them in or leave these rows out"
            )
        return frame

    def transform(self, X: RowsLike) -> np.ndarray:
        """Return the design of the rows of a table, (n, D) float64, C-contiguous.

        Raises
        ------
        ValueError, TypeError
            As `read`; also if X holds a level that no training row has, strings in a
            numeric column, or numbers for which arithmetic is infinite. The message
            names the column.
        """
        frame = self.read(X)
        values = {k: _numbers(self.variables[k], frame) for k in {*chain(*self.terms)}}
        made = np.empty((len(frame), len(self.column_names)))
        columns = chain.from_iterable(self._of(term, values) for term in self.terms)
        for j, column in enumerate(columns):
            made[:, j] = column
        return made

    def recoded(self, made: np.ndarray, frame: Frame, j: int) -> np.ndarray:
        """Return the design `made` of rows of which only column j is now that of
        `frame`.
        """
        out, x = made.copy(), frame.values[:, j]
        is_constant = bool((x == x[:1]).all())
        for term, at in zip(self.terms, self.columns_of_terms.values(), strict=True):
            read = {column for k in term for column in self._columns_of(k)}
            if j in read:
                # One row stands for all where a term reads nothing that varies.
                alike = is_constant and read == {j}
                rows = frame.rows(slice(0, 1)) if alike else frame
                values = {k: _numbers(self.variables[k], rows) for k in term}
                out[:, at] = np.column_stack(list(self._of(term, values)))
        return out

    def offset(self, X: RowsLike, more: ArrayLike | None = None) -> np.ndarray | None:
        """Return the sum of the formula's offsets and of `more`, or None without any.

        Its shape is (n,), or (n, T) if `more` differs by threshold. Errors are those of
        `transform` and `read_offset`.
        """
        frame = self.read(X)
        known = [_numbers(self.variables[k], frame) for k in self.offsets]
        if more is not None:
            known.append(read_offset(more, len(frame)))
            if known[-1].ndim == 2:
                known = [by_threshold(o) for o in known]
        return sum(known[1:], start=known[0]) if known else None

    def columns_with(self, k: int, values: dict[int, np.ndarray]) -> np.ndarray:
        """Return the columns of the terms that contain a variable, (n, D), 0 elsewhere.

        `values` holds those of all variables in these terms, by number.
        """
        out = np.zeros((values[k].size, len(self.column_names)))
        for term, at in zip(self.terms, self.columns_of_terms.values(), strict=True):
            if k in term:
                out[:, at] = np.column_stack(list(self._of(term, values)))
        return out

    def _of(
        self, term: tuple[int, ...], values: dict[int, np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Yield the columns of a term, given the values of its variables."""
        parts = [
            self.variables[k].columns(values[k], full)
            for k, full in zip(term, self._full(term), strict=True)
        ]
        # The first variable varies fastest, but in `product` the last one does.
        for factors in product(*reversed(parts)):
            yield _multiplied(factors[::-1])

    def _full(self, term: tuple[int, ...]) -> list[bool]:
        """Return for each variable of a term whether every level has an indicator."""
        if len(term) == 1:
            return [False]
        # The empty term, of the thresholds, is always in the model.
        known = {frozenset[int](), *map(frozenset, self.terms)}
        return [frozenset(term) - {k} not in known for k in term]

    def _named_terms(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name of each term, and the names of its columns."""
        for term in self.terms:
            parts = [
                self.variables[k].shown_columns(full)
                for k, full in zip(term, self._full(term), strict=True)
            ]
            names = [":".join(reversed(of)) for of in product(*reversed(parts))]
            yield ":".join(self.variables[k].name for k in term), names

    def _is_default_name(self, name: str) -> bool:
        """Return whether a name is one of x1..xd.

        They are not made, because d may be any number in a forged model file.
        """
        number = name[1:]
        return (
            number.isdecimal()
            and name == f"x{int(number)}"
            and 1 <= int(number) <= self.n_features
        )

    def _check(self) -> None:
        names = None if self.feature_names is None else {*self.feature_names}
        if names is not None and len(names) != self.n_features:
            raise ValueError("feature_names must name the columns that are read")
        is_name = self._is_default_name if names is None else names.__contains__
        for variable in self.variables:
            if isinstance(variable.source, str):
                read = columns_of(variable.source)
                known = bool(read) and all(map(is_name, read))
            else:
                known = variable.source in range(self.n_features)
            if not known:
                raise ValueError(f"source of {shown(variable.name)} must be a column")
        numbers = range(len(self.variables))
        if any(k not in numbers for k in chain(*self.terms, self.offsets)):
            raise ValueError("terms must number variables")
        if not all(self.terms) or any(len({*t}) < len(t) for t in self.terms):
            raise ValueError(
                "terms must consist of one or more distinct variables each"
            )
        if any(self.variables[k].labels is not None for k in self.offsets):
            raise ValueError("offsets must be numeric variables")
        for term in self.terms:
            kinds = {self.variables[k].contrasts for k in term}
            if len(term) > 1 and "monotone" in kinds:
                raise ValueError("a monotone effect has no interactions: use fused()")
        check_distinct(self.column_names)


def _check_reference(
    reference: Mapping[str, Any] | None, names: tuple[str, ...]
) -> Mapping[str, Any]:
    """Return the reference levels that the caller chose, by the name of the column."""
    if reference is None:
        return {}
    chosen = by_column(reference, names, "reference")
    return {names[j]: level for j, level in chosen.items()}


def _no_reference(name: str) -> ValueError:
    """Return the error for a reference level of a column that has none."""
    return ValueError(
        f"reference names {shown(name)}, which is not a categorical column"
    )


def _variable(
    factor: FormulaFactor,
    frame: Frame,
    chosen: Mapping[str, Any],
    weight: np.ndarray | None,
) -> Variable:
    """Return the variable of a formula, with levels or knots from the training rows.

    `chosen` holds the caller's reference levels by column.
    """
    names, name = frame.shown_names, factor.columns[0]
    if factor.source is not None or factor.smooth is not None:
        for name in factor.columns:
            if frame.column(names.index(name)).labels is not None:
                raise TypeError(
                    f"{shown(factor.name)} needs numbers, and column {shown(name)} "
                    "holds categories"
                )
        source = names.index(name) if factor.source is None else factor.source
        made = Variable(factor.name, source, None, 0)
        if factor.smooth is None:
            return made
        kind, options = factor.smooth
        x, options = _numbers(made, frame), ast.literal_eval(options)
        basis = Basis.fitted(factor.name, kind, options, x, weight)
        return replace(made, basis=basis)
    column = frame.column(names.index(name))
    if column.labels is None and not factor.is_category:
        return Variable(factor.name, names.index(name), None, 0)
    if factor.contrasts != "treatment" and column.kind == "category":
        raise TypeError(
            f"{shown(factor.name)} needs levels that have an order: make column "
            f"{shown(name)} an ordered categorical, or whole numbers"
        )
    labels = column.labels_present()
    level = chosen.get(name) if factor.reference is None else factor.reference
    place = 0 if level is None else _place(level, labels, f"reference[{shown(name)}]")
    return Variable(factor.name, names.index(name), labels, place, factor.contrasts)


def _place(level: Any, labels: np.ndarray, argument: str) -> int:
    """Return the number of a reference level, which an argument names."""
    known: list[Any] = labels.tolist()
    if level not in known:
        raise ValueError(
            f"{argument} is {shown(level)}, which is not among the levels "
            f"{listed(labels)}"
        )
    return known.index(level)


def _multiplied(factors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the product of columns; what overflows is refused with the features."""
    column = factors[0].astype(np.float64)
    with np.errstate(over="ignore"):
        for factor in factors[1:]:
            column *= factor
    return column


def _numbers(variable: Variable, frame: Frame) -> np.ndarray:
    """Return the values of a variable, (n,): numbers, or places among its labels."""
    if isinstance(variable.source, int):
        j, known = variable.source, variable.labels
        if variable.fill is not None and np.isnan(variable.fill):
            return np.zeros(len(frame))
        if variable.part is not None:
            values = part_of_dates(frame, j, variable.part)
            if variable.span is not None:
                days = part_of_dates(frame, j, "days")
                warn_of_far_dates(frame.shown_names[j], days, values, variable.span)
            return values
        if variable.unseen == "error" or known is None:
            return coded_column(frame, j, known)
        places = coded_column(frame, j, known, unseen_is_missing=True)
        name = frame.shown_names[j]
        warn_of_unknown_levels(name, frame.column(j), known, places)
        return places
    names = frame.shown_names
    columns = {
        name: coded_column(frame, names.index(name), None)
        for name in columns_of(variable.source)
    }
    return evaluate(variable.source, columns)
