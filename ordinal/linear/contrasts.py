"""Tables become columns of numbers, and do so again at prediction.

A table's columns, or arithmetic of them, are the variables; a term is a product of
variables, and gives the columns

    prod_k z_k,    z_k the numbers of variable k, or one of its indicators.

A category has one indicator per level but for its reference (treatment contrasts), if
the model has the term without it as well; otherwise one per level. The thresholds are
the intercepts, so that the empty term always is in the model. This is R's rule, and it
gives R's columns: `a * b` contrasts alone, `a + a:x` a slope of x for every level of
`a`. Levels of the first variable vary fastest. An ordered category gets treatment
contrasts as well, where R takes polynomials of its places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from .._cumulative.design import by_threshold, read_offset
from .._input.checks import listed, shown
from .._input.columns import check_distinct, coded_column, column_number, read_table
from .._input.fields import DISTINCT, FINITE, LABELS, Array
from .._input.frame import Frame, default_names
from .._input.types import ArrayLike, MatrixLike
from .._model.storage import Storable
from .._watch.convergence import warn, warn_of_unnamed
from .expressions import columns_of, evaluate
from .splines import Basis, Kind

Contrasts = Literal["treatment", "fused", "monotone"]
_Labels = Annotated[np.ndarray, Array(LABELS, "_"), FINITE, DISTINCT]


class FormulaFactor(NamedTuple):
    """A variable as a formula names it, before the table is known."""

    name: str
    source: str | None  # arithmetic of columns; None for the column itself
    columns: tuple[str, ...]  # that it reads
    is_category: bool = False  # whatever the column holds
    reference: Any = None  # level; None for the one that the caller or the order names
    contrasts: Contrasts = "treatment"
    smooth: tuple[Kind, str] | None = None  # kind, and its options as text


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Storable):
    """One factor of the terms of a model.

    Attributes
    ----------
    name : str
        As the names of coefficients have it.
    source : int or str
        The column of the table, by number, or arithmetic of columns.
    labels : array or None
        Levels of a category in their order; None for numbers.
    reference : int
        The level, by number, of which contrasts have no indicator; 0 for numbers.
    contrasts : {"treatment", "fused", "monotone"}
        Of a category: levels against the reference, or each against the one before, in
        which case "monotone" demands coefficients of one sign.
    basis : Basis or None
        Columns that are made of the numbers.
    """

    name: str
    source: int | str
    labels: _Labels | None
    reference: int
    contrasts: Contrasts = "treatment"
    basis: Basis | None = None

    def _check(self) -> None:
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
        if self.basis is not None:
            return [f"{self.name}[{k}]" for k in range(1, self.basis.size + 1)]
        if self.labels is None:
            return [self.name]
        return [f"{self.name}[{self.labels[k]}]" for k in self.levels(full)]

    def levels(self, full: bool) -> list[int]:
        """Return the levels that have an indicator: all, or all but the reference."""
        size = 0 if self.labels is None else self.labels.size
        return [k for k in range(size) if full or k != self.reference]

    def columns(self, values: np.ndarray, full: bool) -> list[np.ndarray]:
        """Return the columns of numbers, or of the levels of categories.

        ValueError if a basis is infinite at a number.
        """
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
            if not np.isfinite(made).all():
                row = int(np.argmin(np.isfinite(made).all(axis=1)))
                raise ValueError(
                    f"{shown(self.name)} is infinite at {values[row]:g} in row {row}"
                )
            return list(made.T)
        if self.labels is None:
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
        As the caller wrote it; None where every column of the table is a term.
    feature_names : tuple of (d,) str, or None
        Columns that are read, and found by name; None for columns that go by position.
    n_features : int
        How many columns are read, d.
    variables : tuple of Variable
    terms : tuple of tuples of int
        Numbers of the variables of each term.
    offsets : tuple of int
        Variables, of numbers, whose sum is a known part of the score.

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
        """Return a term for every column of training rows; errors as `of_terms`."""
        names = frame.shown_names
        terms = [(FormulaFactor(name, None, (name,)),) for name in names]
        return cls.of_terms(None, frame, terms, (), reference)

    @classmethod
    def of_terms(
        cls,
        formula: str | None,
        frame: Frame,
        terms: Sequence[tuple[FormulaFactor, ...]],
        offsets: Sequence[FormulaFactor] = (),
        reference: Mapping[str, Any] | None = None,
    ) -> Coding:
        """Return the terms of a formula, with the levels that these training rows have.

        Raises
        ------
        ValueError, TypeError
            If `reference` is no mapping from columns of categories to levels that rows
            have; if a category is asked for arithmetic; if two columns would have one
            name.
        """
        chosen = _check_reference(reference, frame.shown_names)
        factors = tuple(dict.fromkeys(chain(*terms, offsets)))
        made = [_variable(factor, frame, chosen) for factor in factors]
        coded = {
            factor.columns[0]
            for factor, variable in zip(factors, made, strict=True)
            if variable.labels is not None
        }
        for name in chosen:
            if name not in coded:
                raise ValueError(
                    f"reference names {shown(name)}, which is not a categorical column"
                )
        number = {factor: k for k, factor in enumerate(factors)}
        coding = cls(
            formula=formula,
            feature_names=frame.names,
            n_features=frame.shape[1],
            variables=tuple(made),
            terms=tuple(tuple(number[f] for f in term) for term in terms),
            offsets=tuple(number[f] for f in offsets),
        )
        coding._check()
        return coding

    @property
    def column_names(self) -> tuple[str, ...]:
        """(D,) names of the columns of the design, such as "Infl[High]:size"."""
        return tuple(chain(*(names for _, names in self._named_terms())))

    @property
    def columns_of_terms(self) -> dict[str, range]:
        """The columns of each term, by the name of the term, such as "Infl:size"."""
        found: dict[str, range] = {}
        end = 0
        for term, names in self._named_terms():
            found[term] = range(end, end := end + len(names))
        return found

    @property
    def categories(self) -> tuple[np.ndarray | None, ...]:
        """(d,) levels of the columns of categories of the table, None for numbers."""
        labels: list[np.ndarray | None] = [None] * self.n_features
        for variable in self.variables:
            if isinstance(variable.source, int) and variable.labels is not None:
                labels[variable.source] = variable.labels
        return tuple(labels)

    @property
    def monotone(self) -> dict[str, tuple[Variable, range]]:
        """The monotone terms, their variables and their columns."""
        terms = zip(self.columns_of_terms.items(), self.terms, strict=True)
        every = {name: (self.variables[of[0]], at) for (name, at), of in terms}
        return {k: found for k, found in every.items() if found[0].contrasts[0] == "m"}

    @property
    def columns_read(self) -> list[int]:
        """Columns of the table that terms or offsets are made of, by number."""
        names = self.feature_names or default_names(self.n_features)
        read: set[int] = set()
        for k in {*chain(*self.terms, self.offsets)}:
            source = self.variables[k].source
            if isinstance(source, int):
                read.add(source)
            else:
                read |= {names.index(name) for name in columns_of(source)}
        return sorted(read)

    def reference_of(self, column: int) -> int:
        """Return the level, by number, that others of a column of categories are held
        against.
        """
        return next(
            v.reference
            for v in self.variables
            if v.source == column and v.labels is not None
        )

    def read(self, X: MatrixLike) -> Frame:
        """Return the columns of a table that this reads.

        Raises
        ------
        ValueError, TypeError
            If X lacks a column, has another width or lacks values, or is sparse.
        """
        warn_of_unnamed(X, self.feature_names)
        frame = read_table(X, self.feature_names, self.n_features)
        lacking = np.isnan(frame.values)
        if lacking.any():
            row, j = (int(k) for k in np.argwhere(lacking)[0])
            raise ValueError(
                f"X lacks values in {np.count_nonzero(lacking.any(axis=1))} of "
                f"{len(frame)} rows; the first is row {row}, in column "
                f"{shown(frame.shown_names[j])}"
            )
        return frame

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Return (n, D) float64, C-contiguous: the design of the rows of a table.

        Raises
        ------
        ValueError, TypeError
            As `read`; and if X holds a level that no training row has, anything but
            numbers in a column of these, or what makes arithmetic infinite. The message
            names the column.
        """
        frame = self.read(X)
        values = {k: _numbers(self.variables[k], frame) for k in {*chain(*self.terms)}}
        made = np.empty((len(frame), len(self.column_names)))
        columns = chain.from_iterable(self._of(term, values) for term in self.terms)
        for j, column in enumerate(columns):
            made[:, j] = column
        return made

    def offset(self, X: MatrixLike, more: ArrayLike | None = None) -> np.ndarray | None:
        """Sum of the offsets of the formula and of others, (n,), or (n, T) where these
        differ by threshold, None where there are none; errors as `transform` and
        `read_offset`.
        """
        frame = self.read(X)
        known = [_numbers(self.variables[k], frame) for k in self.offsets]
        if more is not None:
            known.append(read_offset(more, len(frame)))
            if known[-1].ndim == 2:
                known = [by_threshold(o) for o in known]
        return sum(known[1:], start=known[0]) if known else None

    def _of(
        self, term: tuple[int, ...], values: dict[int, np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Return the columns of a term."""
        parts: list[list[np.ndarray]] = []
        for k, full in zip(term, self._full(term), strict=True):
            parts.append(self.variables[k].columns(values[k], full))
        # the last of itertools' product varies fastest, and here the first variable
        for factors in product(*reversed(parts)):
            column = factors[-1].astype(np.float64)
            for factor in factors[-2::-1]:
                column *= factor
            yield column

    def _full(self, term: tuple[int, ...]) -> list[bool]:
        """Return which variables of a term have an indicator for every level."""
        known = {frozenset[int](), *map(frozenset, self.terms)}
        return [frozenset(term) - {k} not in known for k in term]

    def _named_terms(self) -> Iterator[tuple[str, list[str]]]:
        for term in self.terms:
            parts = [
                self.variables[k].shown_columns(full)
                for k, full in zip(term, self._full(term), strict=True)
            ]
            names = [":".join(reversed(of)) for of in product(*reversed(parts))]
            yield ":".join(self.variables[k].name for k in term), names

    def _is_default_name(self, name: str) -> bool:
        """Return whether default names have this one, without making them: a forged
        number of features would fill the memory.
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
            alone = len(term) == 1
            if not alone and any(self.variables[k].contrasts[0] == "m" for k in term):
                raise ValueError("a monotone effect has no interactions: use fused()")
        check_distinct(self.column_names)


def _check_reference(
    reference: Mapping[str, Any] | None, names: tuple[str, ...]
) -> Mapping[str, Any]:
    """Return the caller's reference levels by the name of the column."""
    if reference is None:
        return {}
    if not isinstance(reference, Mapping):
        raise ValueError(
            "reference must be a mapping from columns to levels, got "
            f"{shown(reference)}"
        )
    return {
        names[column_number(column, names, "reference")]: level
        for column, level in reference.items()
    }


def _variable(
    factor: FormulaFactor, frame: Frame, chosen: Mapping[str, Any]
) -> Variable:
    """Return a factor of a formula, with the levels that the rows of a table have."""
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
        x = _numbers(made, frame)
        basis = Basis.fitted(factor.name, kind, ast.literal_eval(options), x)
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
    known: list[Any] = labels.tolist()
    if level not in known:
        raise ValueError(
            f"{argument} is {shown(level)}, which is not among the levels "
            f"{listed(labels)}"
        )
    return known.index(level)


def _numbers(variable: Variable, frame: Frame) -> np.ndarray:
    if isinstance(variable.source, int):
        return coded_column(frame, variable.source, variable.labels)
    names = frame.shown_names
    columns = {
        name: coded_column(frame, names.index(name), None)
        for name in columns_of(variable.source)
    }
    return evaluate(variable.source, columns)
