"""Checked arguments of a fit of a linear model: its training rows and its design.

A table is read once, and coded once (`_formula.coding`). Rows with missing values are
an error, or are left out of the features, labels, weights and offsets alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Required, Unpack, cast, get_args

import numpy as np

from .._cumulative.collinear import identified
from .._cumulative.design import (
    HESSIAN_COLUMNS,
    Design,
    Threshold,
    check_columns,
    check_offset_columns,
    read_offset,
)
from .._cumulative.fitting import OrderedThresholds, likelihood_of
from .._cumulative.likelihood import Link
from .._cumulative.pooling import pooled, ranks_left
from .._formula.coding import Coding, Variable
from .._formula.formulas import ParsedFormula, read_formula
from .._input.checks import (
    as_array,
    as_real_array,
    check_choice,
    check_entries,
    listed,
    shown,
)
from .._input.columns import (
    as_objects,
    column_number,
    feature_names,
    is_frame,
    read_frame,
)
from .._input.features import read_features, read_frame_of
from .._input.frame import Frame, default_names
from .._input.immutable import read_only
from .._input.intervals import RankIntervals
from .._input.labels import declared_categories, lacks_label, sample_weights
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._input.types import ArrayLike, Blocks, Labels, Matrix, MatrixLike
from .._model.labelled import kept_rows, number_as_caller, numbered_as_caller
from .._model.preparation import Common, prepare
from .._rows.columns import binary_columns, block, moments
from .._rows.first_pass import ChunkedProblem
from .._rows.reading import (
    Reading,
    check_in_memory,
    comes_in_blocks,
    is_chunked,
    read_in_chunks,
)
from .._rows.rows import Rows
from .._watch.blas import OneThread
from .._watch.monitor import Monitor
from ..inference.fitted import fields_of_design
from ..preprocessing import TablePreprocessor
from ..preprocessing.base import Preprocess
from ..preprocessing.tables import check_at_once, coding_behind, unit_of_chunks

Missing = Literal["error", "drop"]
Rules = Mapping[str, tuple[Any, bool]]  # as for `read_in_chunks`
# Offsets in standard deviations of the noise: fits converge to 1000, but not to 1e6.
_OFFSET = 1e4
_HOPELESS = 1e100  # mean loss above which curvatures overflow
_NAMED = 10  # columns with missing values that a message names


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTable:
    """Rows of a fit, without missing values in anything that the fit reads.

    Attributes
    ----------
    rows : Problem, or rows in chunks as the caller passed them
        The columns of a Problem are those of the coding, if there is one.
    y : (n,) labels
        The labels as the caller passed them, or as the table of a formula holds them.
    offset, cluster : (n,) arrays or None
    coding : Coding or None
        Conversion of a table to X; None if X is used as it is.
    used : (n,) bool array or None
        Whether the fit uses each row of the caller; None for rows in chunks.
    n_missing : int
        Number of rows that were left out because of missing values.
    frame : Frame or None
        The table from which the coding made X.
    beside : tuple of str
        Terms with nominal or scale effects that the formula does not name.
    monotone : mapping of str to (Variable, range)
        Variables and columns of the monotone terms, by name.
    named : mapping of str to str
        Names of terms that the caller wrote otherwise.
    unit : array or None
        Units in which a penalty sees the columns of a Problem, if not in their own.
    """

    rows: Any
    y: Any
    offset: Any
    cluster: Any
    coding: Coding | None = None
    used: Any = None
    n_missing: int = 0
    frame: Frame | None = None
    beside: tuple[str, ...] = ()
    monotone: Mapping[str, tuple[Variable, range]] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    unit: np.ndarray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPom:
    """Checked arguments and design of a fit."""

    training: TrainingTable
    problem: Problem
    design: Design
    link: Link
    threshold: Threshold
    n_threads: int
    monitor: Monitor
    binary: np.ndarray
    spread: np.ndarray

    def in_groups(self, group: np.ndarray) -> PreparedPom:
        """Return the arguments without ranks of no weight, as `RankOrder` has it."""
        design = pooled(self.design, group)
        assert design.lower is not None
        kept = np.flatnonzero(self.problem.present)[ranks_left(group)].astype(np.int32)
        ends = {"rank": kept[design.rank], "lower": kept[design.lower]}
        return replace(self, design=design, problem=replace(self.problem, **ends))

    def fields(
        self, design: Design, x: np.ndarray, *, in_order: bool = True
    ) -> dict[str, Any]:
        """Return the fields of a model that the data and the design determine."""
        problem, coding = self.problem, self.training.coding
        table = problem if coding is None else coding
        return {
            "classes": read_only(problem.classes),
            "n_features": table.n_features,
            "feature_names": table.feature_names,
            "coding": coding,
            "column_names": problem.shown_names,
            "link": self.link,
            "threshold": self.threshold,
            "observed": read_only(problem.present),
            "binary": read_only(self.binary),
            "spread": read_only(self.spread),
            "n_obs": design.total,
            "n_missing": self.training.n_missing,
            "family": "cumulative",
            "is_mixed": False,
            "limits": None,
            "touching": read_only(np.zeros(problem.present.size - 1, np.int64)),
            **fields_of_design(design, problem.present, x, in_order=in_order),
        }


class PomArguments(Common, total=False):
    """Arguments of `Common`, and of fits of linear models."""

    link: Required[Link]
    threshold: Required[Threshold]
    nominal: Required[Sequence[str | int]]
    scale: Required[Sequence[str | int]]
    offset: ArrayLike | None
    reference: Mapping[str, Any] | None
    missing: Missing
    cluster: ArrayLike | None
    preprocess: Preprocess | None


_BY_ROW = "sample_weight", "offset", "cluster"


def prepare_pom(
    name: str,
    X: MatrixLike | Blocks | str,
    y: Labels | None,
    is_penalised: bool,
    *,
    chunks: Rules | None = None,
    complete: np.ndarray | None = None,
    monotone: bool = False,
    shifted: bool = False,
    **given: Unpack[PomArguments],
) -> PreparedPom:
    """Check and read the arguments that the fits share.

    Parameters
    ----------
    name : str
        Name of the fit, for messages.
    is_penalised : bool
        Whether a penalty makes the coefficients of collinear columns unique.
    chunks : Rules or None
        Rules of the fit for rows in chunks; None if it needs all rows in memory.
    complete : (n,) bool array, optional
        Whether each row has all values that only this fit reads.
    monotone, shifted : bool
        Whether the fit accepts terms mo(x), and offsets by threshold.
    """
    link, threshold = given["link"], given["threshold"]
    check_choice("link", link, get_args(Link))
    check_choice("threshold", threshold, get_args(Threshold))
    if chunks is None:
        check_in_memory(name, X)
    training = _read_training(X, y, chunks, complete, given)
    if training.monotone and not monotone:
        raise ValueError(
            f"{name} does not fit monotone effects: use fused(x) instead of mo(x), "
            "which has no constraint, or fit_pom without l1"
        )
    offset: Any = given.get("offset")
    if isinstance(training.y, RankIntervals) and np.ndim(offset) == 2:
        raise ValueError(
            "offset must have one entry per row where y holds RankIntervals, because "
            "ranks at which no interval ends have no threshold"
        )
    # If rows are in memory, y, `classes` and the weights are in the Problem.
    common = {k: v for k, v in given.items() if k in Common.__annotations__}
    reading = Reading(chunks is not None)
    prepared = prepare(name, training.rows, y, reading, **cast(Common, common))
    problem = prepared.problem
    if problem.n_features > HESSIAN_COLUMNS:
        check_columns(name, problem.n_features)
    if isinstance(problem, ChunkedProblem) and given.get("preprocess") is not None:
        training = replace(training, unit=unit_of_chunks(problem))
    try:
        design = _design(training, problem, given["nominal"], given["scale"], threshold)
    except ValueError as error:
        number_as_caller(error, training.used)
        raise
    with OneThread():  # threads of BLAS spin on a busy machine
        design = identified(design, problem.shown_names, is_penalised)
    if design.is_shifted and not shifted:
        raise ValueError(
            f"offset must have shape ({design.n_samples},) here: offsets by "
            "threshold are for fit_ratio, and fit_pom without l1 and in_order"
        )
    if design.offset is not None:
        _check_start(design, link, prepared.n_threads)
    spread, table = design.spread, problem.X
    if training.frame is not None:
        # A missing value is neither a third value nor a unit.
        table = np.nan_to_num(training.frame.values)
        spread = moments(table, problem.weight / design.total)[1]
    binary = binary_columns(table, (problem.rank, problem.weight))
    return PreparedPom(
        training, problem, design, link, threshold, prepared.n_threads,
        prepared.monitor, binary=binary, spread=spread,
    )  # fmt: skip


def _read_training(
    X: Any,
    y: Any,
    chunks: Rules | None,
    complete: np.ndarray | None,
    given: PomArguments,
) -> TrainingTable:
    """Read the rows of a fit; those in chunks are left as they are.

    Raises
    ------
    ValueError, TypeError
        If a formula, a reference or a column is invalid, or if rows have missing values
        and `missing` is "error". Arguments that are independent of the table are
        checked by the functions that use them.
    ImportError
        If X is a formula and formulaic is not installed.
    """
    missing, reference = given.get("missing", "error"), given.get("reference")
    check_choice("missing", missing, get_args(Missing))
    by_row: dict[str, Any] = {argument: given.get(argument) for argument in _BY_ROW}
    if chunks is not None and is_chunked(X) and _stays_in_chunks(X, chunks, given):
        return TrainingTable(X, y, by_row["offset"], by_row["cluster"])
    formula, preprocess = None, given.get("preprocess")
    if isinstance(X, str):
        beside = [*_strings(given["nominal"]), *_strings(given["scale"])]
        formula, labels, by_row = read_formula(X, y, by_row, beside)
        X, y = y, labels
    table = _read_table(X, formula, reference, preprocess)
    fills = isinstance(preprocess, TablePreprocessor)
    known = {} if complete is None else {"groups": complete}
    complete = _complete_rows(table, formula, y, by_row, known, missing, fills)
    is_coded = isinstance(table, Frame) and (
        fills or formula is not None or not table.is_of_numbers
    )
    if reference is not None and not is_coded:
        raise ValueError(
            "reference is for categorical columns, and X has none: leave it out"
        )
    # Codings know levels, which rows of weight 0 must not add.
    used = _with_weight(complete, by_row["sample_weight"]) if is_coded else complete
    classes: Any = given.get("classes")
    if not used.all():
        if isinstance(y, RankIntervals):
            classes = y.classes(classes)
        elif classes is None:
            classes = declared_categories(y)  # which the rows left do not show
        table = table.rows(used) if isinstance(table, Frame) else table[used]
        y, *rest = (kept_rows(v, used) for v in (y, *by_row.values()))
        by_row = dict(zip(by_row, rest, strict=True))
    frame, coding, unit = table if is_coded else None, None, None
    weight = by_row.pop("sample_weight")
    # the context of no row left out would take a call for nothing
    with nullcontext() if used.all() else numbered_as_caller(used):
        if preprocess is not None:
            coding, unit = coding_behind(preprocess, table, weight, reference)
        elif is_coded:
            coding = _coding_of(table, formula, reference, weight)
        if coding is not None:
            by_row["offset"] = coding.offset(table, by_row["offset"])
            table = Frame.of_numbers(coding.transform(table), coding.column_names)
        names, by_class = feature_names(table), given.get("class_weight")
        # An array has been checked as it was read.
        values = (
            table if isinstance(table, np.ndarray) else _features_of(table, is_coded)
        )
        problem = Problem.from_features(values, names, y, classes, weight, by_class)
    return TrainingTable(
        problem,
        y,
        **by_row,
        coding=coding,
        used=used,
        n_missing=int(np.count_nonzero(~complete)),
        frame=frame,
        beside=() if formula is None else formula.beside,
        monotone={} if coding is None else coding.monotone,
        named={} if formula is None else formula.named,
        unit=unit,
    )


def _features_of(table: Any, is_coded: bool) -> Matrix:
    """Return the features of a frame or a sparse matrix, checked unless they are."""
    # Arithmetic of a coding may be infinite, and sparse entries are not checked yet.
    if not isinstance(table, Frame) or (is_coded and table.shape[1]):
        return read_features(table)
    return np.require(table.values, np.float64, ["C", "A"])


def _stays_in_chunks(X: Any, rules: Rules, given: PomArguments) -> bool:
    """Return whether rows in chunks stay there, which not all arguments allow."""
    if isinstance(given.get("preprocess"), TablePreprocessor):
        check_at_once(comes_in_blocks(X))
        return False  # a memmap is read into memory
    reference, cluster = given.get("reference"), given.get("cluster")
    missing = given.get("missing", "error")
    more = {
        "missing must be 'error'": (missing, missing == "drop"),
        "reference must be None": (reference, reference is not None),
        "cluster must be None": (cluster, cluster is not None),
    }
    return read_in_chunks(X, {**rules, **more})


def _read_table(
    X: Any,
    formula: ParsedFormula | None,
    reference: Mapping[str, Any] | None,
    preprocess: Preprocess | None,
) -> Any:
    """Return X as a Frame or a matrix with missing values, or a sparse X as it is."""
    if not (reference is None or isinstance(reference, Mapping)):
        raise ValueError(
            "reference must be a mapping from columns to levels, got "
            f"{shown(reference)}"
        )
    if isinstance(preprocess, TablePreprocessor):
        return read_frame_of(X, preprocess.declared_in(X))
    if is_sparse(X):
        return X
    # Long lists are converted to look at their types, but arrays are not.
    a = X if isinstance(X, np.ndarray) or is_frame(X) else as_objects(X)
    if not isinstance(a, np.ndarray) or a.dtype.kind == "O":
        columns = None if formula is None else formula.columns
        return read_frame(X, columns, kept=tuple(reference or ()))
    return read_features(X, missing=True)


def _coding_of(
    table: Frame,
    formula: ParsedFormula | None,
    reference: Mapping[str, Any] | None,
    weight: Any,
) -> Coding:
    """Return the coding of a table of categories, or of the terms of a formula."""
    if formula is None:
        return Coding.of_columns(table, reference)
    terms, offsets = formula.terms, formula.offsets
    counted = None if weight is None else sample_weights(weight, len(table))
    return Coding.of_terms(formula.text, table, terms, offsets, reference, counted)


def _complete_rows(
    table: Any,
    formula: ParsedFormula | None,
    y: Any,
    by_row: Mapping[str, Any],
    known: Mapping[str, np.ndarray],
    missing: Missing,
    is_filled: bool,
) -> np.ndarray:
    """Return whether each row has all values, (n,).

    Labels and the arguments `by_row` count, and features unless missing ones are filled
    in; `known` tells for other arguments whether they are complete. Raises ValueError
    if incomplete rows are an error, or if all rows are.
    """
    n = table.shape[0]
    # The argument that holds the table, and the name of the labels in it.
    of_table, label = "X", "y"
    if formula is not None:
        of_table, label = "y, the table of the formula", " and ".join(formula.response)
    # Names, arguments that hold them, and whether each row lacks a value; a column may
    # have the name of an argument.
    found: list[tuple[str, str, np.ndarray]] = []
    if isinstance(table, Frame | np.ndarray) and not is_filled:
        values = np.asarray(table.values if isinstance(table, Frame) else table)
        if values.size and np.isnan(values.min()):  # the minimum takes no memory
            names = getattr(table, "names", None) or default_names(values.shape[1])
            columns = zip(names, np.isnan(values).T, strict=True)
            found = [(name, of_table, where) for name, where in columns if where.any()]
    n_columns = len(found)
    vectors = [(label, "y" if formula is None else of_table, y)]
    vectors += [(k, k, v) for k, v in by_row.items() if v is not None]
    for name, argument, vector in vectors:
        if isinstance(vector, RankIntervals):  # none of which is missing
            continue
        a = as_array(vector, argument)
        by_threshold = a.dtype.kind == "f" and a.ndim == 2
        where = np.isnan(a).any(axis=1) if by_threshold else lacks_label(a)
        if where.size == n and where.any():  # other lengths are an error later
            found.append((name, argument, where))
    found += [(k, k, ~where) for k, where in known.items() if not where.all()]
    incomplete = np.zeros(n, dtype=bool)
    for *_, where in found:
        incomplete |= where
    if incomplete.any() and (missing == "error" or incomplete.all()):
        raise _no_values(found, n_columns, incomplete)
    return ~incomplete


def _no_values(
    found: Sequence[tuple[str, str, np.ndarray]], n_columns: int, incomplete: np.ndarray
) -> ValueError:
    """Return the error for incomplete rows; the first names are those of columns."""
    n, n_missing = incomplete.size, int(np.count_nonzero(incomplete))
    counts = [f"{shown(name)} {np.count_nonzero(where)}" for name, _, where in found]
    more = ", ..." if len(counts) > _NAMED else ""
    remedy = "pass missing='drop' to leave these rows out"
    if n_columns:  # labels, weights and the like cannot be imputed
        these = "them" if n_columns == len(found) else "those of features"
        remedy = (
            f"fill {these} in, as ordinal.preprocessing.TablePreprocessor does, or "
            f"{remedy}"
        )
    if n_missing == n:
        remedy = "no row is left"
    arguments = ", ".join(dict.fromkeys(argument for _, argument, _ in found))
    return ValueError(
        f"{arguments}: {n_missing} of {n} rows lack values "
        f"({', '.join(counts[:_NAMED])}{more}), the first in row "
        f"{incomplete.argmax()}: {remedy}"
    )


def _with_weight(complete: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Return whether each row is complete and has weight.

    Weight 0 must have the same effect as leaving the row out, so the model must not
    know its levels.
    """
    if sample_weight is None:
        return complete
    shape = (complete.size,)
    weight = as_real_array(sample_weight, "sample_weight", shape, " as X")
    used = complete & (weight != 0)
    return used if used.any() else complete  # no weight at all is an error later


def _check_start(design: Design, link: Link, n_threads: int) -> None:
    """Raise ValueError if an offset contradicts the ranks by so much that no descent
    can start.
    """
    none = np.zeros(0, np.int64)
    plain = replace(design, location=none, nominal=none, scale=none)
    loss = likelihood_of(plain, link, 0.0, n_threads)
    if not (value := loss.at(loss.start()).value) < _HOPELESS:
        raise ValueError(
            f"offset must not contradict the ranks: with link={shown(link)} and no "
            f"features the mean loss is {value:.3g}; its unit is that of the latent "
            "noise: divide the offset by its scale"
        )


def check_concave(penalty: str, link: Any, scale: Any) -> None:
    """Raise ValueError for a model whose loss is not convex, and name the argument."""
    if link == "cauchit" or (isinstance(scale, Sequence) and len(scale)):
        got = "link='cauchit'" if link == "cauchit" else f"scale={shown(scale)}"
        raise ValueError(
            f"{penalty} is for models with a convex loss, which those with the link "
            f"cauchit or with scale effects have not, got {got}"
        )


def _design(
    training: TrainingTable,
    problem: Problem,
    nominal: Any,
    scale: Any,
    threshold: Threshold,
) -> Design:
    """Return the design that the arguments describe."""
    coding = training.coding
    nominal = _column_numbers("nominal", nominal, problem, training)
    scale = _column_numbers("scale", scale, problem, training)
    terms = {} if coding is None else coding.columns_of_terms
    beside = [j for term in training.beside for j in terms[term]]
    # All other columns have a location effect.
    location = np.setdiff1d(np.arange(problem.n_features), [*nominal, *beside])
    increments = [j for _, columns in training.monotone.values() for j in columns]
    # The sign constraint is one on coefficients of the location.
    if np.isin(increments, np.union1d(nominal, scale)).any():
        raise ValueError(
            "monotone effects must not be in nominal or scale: use fused(x), or the "
            "column itself"
        )
    known = training.offset
    if known is not None:
        known = read_offset(known, problem.n_samples)
        if known.ndim == 2:
            _check_offset_by_threshold(known, problem)
        fits = (np.abs(known).T <= _OFFSET) | (problem.weight == 0)
        check_entries(
            "offset",
            known,
            fits.T,
            f"lie between {-_OFFSET:g} and {_OFFSET:g}, because its unit is that of "
            "the latent noise: subtract its mean, or divide it by its scale",
        )
    return Design.from_problem(
        problem, location, nominal, scale, known, threshold, training.unit
    )


def _check_offset_by_threshold(offset: np.ndarray, problem: Problem) -> None:
    """Raise ValueError unless offsets by threshold fit the ranks and the rows."""
    check_offset_columns(offset, problem.present.size - 1)
    if not problem.present.all() or isinstance(problem.X, Rows):
        where = "of all ranks" if not problem.present.all() else "in memory"
        raise ValueError(f"offset by threshold needs rows {where}")


def _strings(names: Any) -> list[str]:
    """Return the strings in `nominal` or `scale`, which are checked later."""
    every = names if isinstance(names, Sequence) and not isinstance(names, str) else ()
    return [name for name in every if isinstance(name, str)]


def _column_numbers(
    argument: str, columns: Any, problem: Problem, training: TrainingTable
) -> np.ndarray:
    """Return the numbers of the columns that an argument names, increasing."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        meant = ""
        if isinstance(columns, str):  # perhaps a formula, as R's clm accepts
            names = [name.strip() for name in columns.lstrip("~ ").split("+")]
            meant = f"; for these columns pass {argument}={listed(names)}"
        raise ValueError(
            f"{argument} must be a sequence of columns by name or number, got "
            f"{shown(columns)}{meant}"
        )
    terms = {} if training.coding is None else training.coding.columns_of_terms
    numbers: list[int] = []
    for name in columns:
        name = training.named.get(name, name) if isinstance(name, str) else name
        if isinstance(name, str) and name in terms:
            numbers += terms[name]
        else:
            numbers.append(column_number(name, problem.shown_names, argument))
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{argument} must name a column once, got {listed(columns)}")
    return np.array(sorted(numbers), dtype=np.int64)


def order_constraint(prepared: PreparedPom, in_order: Any) -> OrderedThresholds | None:
    """Return the constraint of `in_order`, or None if thresholds cannot cross."""
    design, coding = prepared.design, prepared.training.coding
    if prepared.training.monotone:
        raise ValueError(
            "in_order must be False with monotone effects: use fused(x) instead of "
            "mo(x), which has no constraint"
        )
    if design.has_many:
        raise ValueError(
            f"in_order must be False for more than {HESSIAN_COLUMNS} features"
        )
    if isinstance(in_order, bool | np.bool_):
        rows = block(design.X, slice(0, design.n_samples), design.nominal)
        rows = rows[design.weight > 0]
    elif coding is None:
        problem = prepared.problem
        given = read_features(
            in_order,
            problem.n_features,
            "in_order",
            feature_names=problem.feature_names,
        )
        rows = block(given, slice(0, len(given)), design.nominal)
    else:
        rows = coding.transform(coding.read(in_order))[:, design.nominal]
    return OrderedThresholds(design, rows) if rows.size and design.T > 1 else None


def check_family(family: str, link: str, threshold: str) -> None:
    """Raise ValueError for ratio models that have no path."""
    if family == "cumulative":
        return
    if threshold != "flexible":
        raise ValueError(
            f"threshold must be 'flexible' with family={shown(family)}, got "
            f"{shown(threshold)}"
        )
    if family == "adjacent" and link != "logit":
        raise ValueError(
            "link must be 'logit' with family='adjacent', whose loss is not convex "
            f"otherwise, got {shown(link)}"
        )
