"""Training rows from a table or a formula, with or without missing values.

Categorical columns become contrasts (see `_formula.coding`). Rows with missing values
are an error, or are left out of the features, labels, weights and offsets alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from .._formula.coding import Coding
from .._formula.formulas import ParsedFormula, parse_formula
from .._input.checks import as_array, as_real_array, check_choice, shown
from .._input.columns import (
    as_objects,
    feature_names,
    frame_columns,
    is_frame,
    read_frame,
)
from .._input.features import read_dense, read_features, read_frame_of
from .._input.frame import Frame, default_names
from .._input.labels import declared_categories, is_missing
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._rows.reading import comes_in_blocks, read_in_chunks
from .._rows.source import has_blocks
from ..preprocessing import TablePreprocessor
from ..preprocessing.base import Preprocess
from ..preprocessing.tables import check_at_once, coding_behind

Missing = Literal["error", "drop"]
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
    n_missing : int
        Number of rows that were left out because of missing values.
    frame : Frame or None
        The table from which the coding made X.
    beside : tuple of str
        Terms with nominal or scale effects that the formula does not name.
    named : mapping of str to str
        Names of terms that the caller wrote otherwise.
    unit : array or None
        Units in which a penalty sees the columns of a Problem, if not in their own.
    """

    rows: Any
    y: Any
    offset: Any
    cluster: Any
    coding: Coding | None
    n_missing: int
    frame: Frame | None
    beside: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)
    unit: np.ndarray | None = None


def read_training(
    X: Any,
    y: Any,
    *,
    classes: Any = None,
    missing: Missing = "error",
    reference: Mapping[str, Any] | None = None,
    by_row: Mapping[str, Any],
    class_weight: Any = None,
    chunks: bool = False,
    beside: Sequence[str] = (),
    preprocess: Preprocess | None = None,
) -> TrainingTable:
    """Read the rows of a fit from its arguments.

    Parameters
    ----------
    X : table, matrix, source of chunks, or formula
        If `chunks`, rows that are not in memory are left as they are.
    y : labels, or the data frame of a formula
    beside : sequence of str
        Terms with nominal or scale effects, which a formula need not name.
    by_row : mapping
        Maps "sample_weight", "offset" and "cluster" to an (n,) array-like, the name of
        a column of the table of a formula, or None.
    preprocess : TablePreprocessor, the class Standardizer, or None

    Raises
    ------
    ValueError, TypeError
        If a formula, a reference or a column is invalid, or if rows have missing values
        and `missing` is "error". Arguments that are independent of the table are
        checked by the functions that use them.
    ImportError
        If X is a formula and formulaic is not installed.
    """
    check_choice("missing", missing, get_args(Missing))
    _check_reference(reference)
    offset, cluster = by_row["offset"], by_row["cluster"]
    rules = {
        "missing must be 'error'": (missing, missing == "drop"),
        "reference must be None": (reference, reference is not None),
        "cluster must be None": (cluster, cluster is not None),
    }
    if chunks and _stays_in_chunks(X, rules, preprocess):
        return TrainingTable(
            X, y, offset, cluster, coding=None, n_missing=0, frame=None
        )
    parsed: ParsedFormula | None = None
    given = dict(by_row)
    if isinstance(X, str) and has_blocks(y):
        raise TypeError(
            "X must not be a formula where rows are read in chunks: make its columns "
            "in the blocks, and pass the source as X and None as y"
        )
    if isinstance(X, str):
        parsed, X, y, given = _read_formula(X, y, given, beside)
    table = _read_table(X, parsed, reference, preprocess)
    if classes is None:
        classes = declared_categories(y)
    fills = isinstance(preprocess, TablePreprocessor)
    keep, n_missing = _complete(table, parsed, y, given, missing, fills)
    coded = isinstance(table, Frame) and (
        fills or parsed is not None or not table.is_of_numbers
    )
    if reference is not None and not coded:
        raise ValueError(
            "reference is for categorical columns, and X has none: leave it out"
        )
    # Codings know levels, which rows of weight 0 must not add.
    if coded:
        keep = _without_weight_0(keep, given["sample_weight"])
    if not keep.all():
        table = table.rows(keep) if isinstance(table, Frame) else table[keep]
        y = _rows_of(y, keep)
        given = {k: v if v is None else _rows_of(v, keep) for k, v in given.items()}
    frame, unit = table if coded else None, None
    coding = _coding_of(table, parsed, reference) if coded and not preprocess else None
    if preprocess is not None:
        weight = given["sample_weight"]
        coding, unit = coding_behind(preprocess, table, weight, reference)
    if coding is not None:
        given["offset"] = coding.offset(table, given["offset"])
        table = Frame.of_numbers(coding.transform(table), coding.column_names)
    values = _finite_features(table, coded)
    weights = given.pop("sample_weight"), class_weight
    problem = Problem.from_features(values, feature_names(table), y, classes, *weights)
    return TrainingTable(
        *(problem, y),
        coding=coding,
        n_missing=n_missing,
        frame=frame,
        beside=() if parsed is None else parsed.beside,
        named={} if parsed is None else parsed.named,
        unit=unit,
        **given,
    )


def _finite_features(table: Any, coded: bool) -> Any:
    """Return the features of a table, `coded` or as they were read."""
    # Arithmetic of a coding may be infinite, and sparse entries are not checked yet.
    if (coded and table.shape[1]) or is_sparse(table):
        return read_features(table)
    # `read_dense`, `read_frame` and `_complete` have checked all values
    return np.require(getattr(table, "values", table), np.float64, ["C", "A"])


def _stays_in_chunks(
    X: Any, rules: Mapping[str, tuple[Any, bool]], preprocess: Preprocess | None
) -> bool:
    """Return whether rows are read in chunks, which not all arguments allow."""
    if not isinstance(preprocess, TablePreprocessor):
        return read_in_chunks(X, rules)
    check_at_once(comes_in_blocks(X))
    return False  # a memmap is read into memory


def _coding_of(
    table: Frame, parsed: ParsedFormula | None, reference: Mapping[str, Any] | None
) -> Coding:
    """Return the coding of a table of categories, or of the terms of a formula."""
    if parsed is None:
        return Coding.of_columns(table, reference)
    terms, offsets = parsed.terms, parsed.offsets
    return Coding.of_terms(parsed.text, table, terms, offsets, reference)


def _check_reference(reference: object) -> None:
    if not (reference is None or isinstance(reference, Mapping)):
        raise ValueError(
            "reference must be a mapping from columns to levels, got "
            f"{shown(reference)}"
        )


def _read_table(
    X: Any,
    parsed: ParsedFormula | None,
    reference: Mapping[str, Any] | None,
    preprocess: Preprocess | None,
) -> Any:
    """Return X as a Frame or a matrix with missing values, or a sparse X as it is."""
    if isinstance(preprocess, TablePreprocessor):
        return read_frame_of(X, preprocess.declared)
    if is_sparse(X):
        return X
    if _is_dense(X):
        return read_dense(X, missing=True)
    columns = None if parsed is None else parsed.columns
    return read_frame(X, columns, kept=tuple(reference or ()))


def _is_dense(X: Any) -> bool:
    """Return whether X is a matrix, whose columns have one type."""
    if is_frame(X):
        return False
    # Long lists are converted to look at their types, but arrays are not.
    a = X if isinstance(X, np.ndarray) else as_objects(X)
    return a.dtype.kind != "O"


def _read_formula(
    text: str, data: Any, given: dict[str, Any], beside: Sequence[str]
) -> tuple[ParsedFormula, Any, Any, dict[str, Any]]:
    """Parse a formula for its data frame.

    Returns the formula, the data frame, the labels, and the arguments `given` with
    columns of the data frame instead of their names.
    """
    if data is None or isinstance(data, str) or not is_frame(data):
        raise TypeError(
            "a formula needs its data frame: fit_pom('y ~ x1 + x2', data), got "
            f"{shown(data)}"
        )
    names = feature_names(data)
    if names is None:
        raise TypeError("a formula needs a data frame whose columns have names")
    parsed = parse_formula(text, names, beside)
    found = {}
    for argument, value in given.items():
        if argument == "offset" and (chosen := _strings_of(value)):
            columns = [named_column(argument, name, data) for name in chosen]
            value = np.column_stack([as_real_array(c, argument) for c in columns])
        found[argument] = named_column(argument, value, data)
    return parsed, data, frame_columns(data, [parsed.response])[0], found


def named_column(argument: str, given: Any, table: Any) -> Any:
    """Return the column of a table that an argument names, or any other argument."""
    if not isinstance(given, str):
        return given
    if given not in (feature_names(table) or ()):
        raise ValueError(
            f"{argument} names {shown(given)}, which is not a column of the table"
        )
    return frame_columns(table, [given])[0]


def _strings_of(value: Any) -> list[str]:
    """Return the names in a list of names, and none of any other value."""
    is_list = isinstance(value, list | tuple)
    return [*value] if is_list and all(isinstance(v, str) for v in value) else []


def _complete(
    table: Any,
    parsed: ParsedFormula | None,
    y: Any,
    given: Mapping[str, Any],
    missing: Missing,
    filled: bool = False,
) -> tuple[np.ndarray, int]:
    """Return whether each row is complete, (n,), and the number of incomplete rows.

    Labels and the `given` arguments with one entry per row count, and features unless
    their missing values are `filled` in. Raises
    ValueError if incomplete rows are an error, or if all rows are incomplete.
    """
    n = table.shape[0]
    # The argument that holds the table, and the name of the labels in it.
    of_table, label = "X", "y"
    if parsed is not None:
        of_table, label = "y, the table of the formula", parsed.response
    # Whether each row lacks a value, by name; a column may have that of an argument.
    gaps: list[tuple[str, np.ndarray]] = []
    if isinstance(table, Frame | np.ndarray) and not filled:
        values = np.asarray(table.values if isinstance(table, Frame) else table)
        if values.size and np.isnan(values.min()):  # the minimum takes no memory
            names = getattr(table, "names", None) or default_names(values.shape[1])
            columns = zip(names, np.isnan(values).T, strict=True)
            gaps = [(name, lacking) for name, lacking in columns if lacking.any()]
    arguments = [of_table] if gaps else []
    n_columns = len(gaps)
    vectors = [(label, "y" if parsed is None else of_table, y)]
    vectors += [(k, k, v) for k, v in given.items() if v is not None]
    for name, argument, vector in vectors:
        lacking = _missing_entries(as_array(vector, argument))
        if lacking.size == n and lacking.any():  # other lengths are an error later
            gaps.append((name, lacking))
            arguments.append(argument)
    incomplete = np.zeros(n, dtype=bool)
    for _, lacking in gaps:
        incomplete |= lacking
    n_missing = int(np.count_nonzero(incomplete))
    if n_missing and (missing == "error" or n_missing == n):
        counts = [f"{shown(name)} {np.count_nonzero(g)}" for name, g in gaps]
        more = ", ..." if len(counts) > _NAMED else ""
        remedy = "pass missing='drop' to leave these rows out"
        if n_columns:  # labels, weights and the like cannot be imputed
            these = "them" if n_columns == len(gaps) else "those of features"
            remedy = (
                f"fill {these} in, as ordinal.preprocessing.TablePreprocessor does, or "
                f"{remedy}"
            )
        if n_missing == n:
            remedy = "no row is left"
        shown_counts = f"{', '.join(counts[:_NAMED])}{more}"
        raise ValueError(
            f"{', '.join(dict.fromkeys(arguments))}: {n_missing} of {n} rows lack "
            f"values ({shown_counts}), the first in row {incomplete.argmax()}: {remedy}"
        )
    return ~incomplete, n_missing


def _missing_entries(a: np.ndarray) -> np.ndarray:
    """Return whether each entry of a vector, or row of a matrix, is missing, (n,).

    Other arrays have no entry here, and are an error later.
    """
    if a.dtype.kind == "f" and a.ndim in (1, 2):
        missing = np.isnan(a)
        return np.asarray(missing if a.ndim == 1 else missing.any(axis=1))
    if a.dtype.kind in "OT" and a.ndim == 1:
        return np.array([is_missing(value) for value in a.tolist()], dtype=bool)
    return np.zeros(0, dtype=bool)


def _without_weight_0(keep: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Return whether each row is kept and has weight.

    Weight 0 must have the same effect as leaving the row out, so the model must not
    know its levels.
    """
    if sample_weight is None:
        return keep
    weight = as_real_array(sample_weight, "sample_weight", (keep.size,), " as X")
    counted = keep & (weight != 0)
    return counted if counted.any() else keep  # no weight at all is an error later


def _rows_of(vector: Any, keep: np.ndarray) -> Any:
    """Return the rows of an array to keep, or an array of another length as it is."""
    a = as_array(vector, "a column")
    if a.shape[:1] != keep.shape:
        return vector
    kept = a[keep]
    return kept.tolist() if kept.dtype.kind == "O" else kept
