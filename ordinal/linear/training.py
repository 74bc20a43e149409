"""Training rows from a table or a formula, with or without missing values.

Columns of categories become contrasts (see `contrasts`), and rows that lack a value are
refused or left out, of everything that has rows alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from .._input.checks import as_array, as_real_array, check_choice, shown
from .._input.columns import (
    as_objects,
    feature_names,
    frame_columns,
    is_frame,
    read_frame,
)
from .._input.features import read_dense, read_features
from .._input.frame import Frame, default_names
from .._input.labels import declared_categories, is_missing
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._rows.chunks import is_chunked
from .._rows.source import has_blocks
from .contrasts import Coding
from .formula import Parsed, parse_formula

Missing = Literal["error", "drop"]
_NAMED = 10  # columns with gaps that a message names


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Rows of a fit, none of which lacks a value that the fit reads.

    Attributes
    ----------
    rows : Problem, or rows in chunks as the caller gave them
        Where there is a coding, of the columns that it makes.
    y : (n,) labels as the caller gave them, or as the table of a formula has them
    offset, cluster : (n,) arrays or None
    coding : Coding or None
        How a table became X; None where X is as it was given.
    n_missing : int
        Rows that were left out as they lacked a value.
    frame : Frame or None
        The table that the coding made X of.
    beside : tuple of str
        Terms that nominal or scale effects name and the formula does not.
    """

    rows: Any
    y: Any
    offset: Any
    cluster: Any
    coding: Coding | None
    n_missing: int
    frame: Frame | None
    beside: tuple[str, ...] = ()


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
) -> Training:
    """Read what a fit is given.

    Parameters
    ----------
    X : table, matrix, source of blocks, or formula
        If `chunks`, rows that are not in memory are left as they are.
    y : labels, or the data frame that a formula is about
    beside : sequence of str
        Columns with nominal or scale effects, which a formula need not name.
    by_row : mapping
        Of "sample_weight", "offset" and "cluster" to (n,) array-like, the name of a
        column of the table of a formula, or None.

    Raises
    ------
    ValueError, TypeError
        If a formula, a reference or a column is unusable; if rows lack values and
        `missing` is "error". All that needs no table is left to those who use it.
    ImportError
        For a formula without formulaic.
    """
    check_choice("missing", missing, get_args(Missing))
    if chunks and is_chunked(X):
        _check_chunked(missing, reference, by_row)
        offset, cluster = by_row["offset"], by_row["cluster"]
        return Training(X, y, offset, cluster, coding=None, n_missing=0, frame=None)
    parsed: Parsed | None = None
    given = dict(by_row)
    if isinstance(X, str) and has_blocks(y):
        raise TypeError(
            "X must not be a formula where rows are read in chunks: make its columns "
            "in the blocks, and pass the source as X and None as y"
        )
    if isinstance(X, str):
        parsed, X, y, given = _of_formula(X, y, given, beside)
    table = _read_table(X, parsed, reference)
    if classes is None:
        classes = declared_categories(y)
    vectors = {"y": y, **{k: v for k, v in given.items() if v is not None}}
    argument = "X" if parsed is None else "y"
    keep, n_missing = _complete(argument, table, vectors, missing)
    coded = isinstance(table, Frame) and not (parsed is None and table.is_of_numbers)
    if reference is not None and not coded:
        raise ValueError("reference is for columns of categories, and X has none")
    if coded:
        keep = _without_weight_0(keep, given["sample_weight"])
    if not keep.all():
        table = table.rows(keep) if isinstance(table, Frame) else table[keep]
        y = _rows_of(y, keep)
        given = {k: v if v is None else _rows_of(v, keep) for k, v in given.items()}
    coding, frame = None, table if coded else None
    if coded:
        coding = _coding(parsed, table, reference)
        given["offset"] = coding.offset(table, given["offset"])
        table = Frame.of_numbers(coding.transform(table), coding.column_names)
    if (coded and table.shape[1]) or is_sparse(table):  # log(x) may be infinite
        values: Any = read_features(table)
    else:  # finite, as `read_dense`, `read_frame` and `_complete` have found
        values = np.require(getattr(table, "values", table), np.float64, ["C", "A"])
    weights = given.pop("sample_weight"), class_weight
    problem = Problem.from_features(values, feature_names(table), y, classes, *weights)
    return Training(
        *(problem, y),
        coding=coding,
        n_missing=n_missing,
        frame=frame,
        beside=() if parsed is None else parsed.beside,
        **given,
    )


def _read_table(
    X: Any, parsed: Parsed | None, reference: Mapping[str, Any] | None
) -> Any:
    """Return X with its missing values: a Frame, a matrix, or a sparse X as it is."""
    if is_sparse(X):
        return X
    if _is_dense(X):
        return read_dense(X, missing=True)
    columns = None if parsed is None else parsed.columns
    return read_frame(X, columns, kept=tuple(reference or ()))


def _check_chunked(missing: Missing, reference: Any, given: Mapping[str, Any]) -> None:
    """Raise ValueError for what needs all rows at once."""
    rules = {
        "missing": ("'error'", missing == "drop"),
        "reference": ("None", reference is not None),
        "cluster": ("None", given["cluster"] is not None),
    }
    for argument, (value, is_broken) in rules.items():
        if is_broken:
            raise ValueError(f"{argument} must be {value} where X is read in chunks")


def _is_dense(X: Any) -> bool:
    """Return whether X has one kind of columns."""
    if is_frame(X):
        return False
    return (isinstance(X, np.ndarray) and X.dtype.kind != "O") or (
        as_objects(X).dtype.kind != "O"
    )


def _coding(
    parsed: Parsed | None, table: Frame, reference: Mapping[str, Any] | None
) -> Coding:
    if parsed is None:
        return Coding.of_columns(table, reference)
    text, terms, offsets = parsed.text, parsed.terms, parsed.offsets
    return Coding.of_terms(text, table, terms, offsets, reference)


def _of_formula(
    text: str, data: Any, given: dict[str, Any], beside: Sequence[str]
) -> tuple[Parsed, Any, Any, dict[str, Any]]:
    """Return a formula, its table, the labels, and other columns of the table."""
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
        if isinstance(value, str):
            if value not in names:
                raise ValueError(
                    f"{argument} names {shown(value)}, which is no column of the table"
                )
            value = frame_columns(data, [value])[0]
        found[argument] = value
    return parsed, data, frame_columns(data, [parsed.response])[0], found


def _complete(
    table_argument: str, table: Any, vectors: Mapping[str, Any], missing: Missing
) -> tuple[np.ndarray, int]:
    """Return the complete rows, and the number of incomplete ones.

    ValueError if incomplete rows are an error, or all rows are incomplete.
    """
    n = table.shape[0]
    gaps: dict[str, np.ndarray] = {}
    if isinstance(table, Frame | np.ndarray):
        values = np.asarray(table.values if isinstance(table, Frame) else table)
        if values.size and np.isnan(values.min()):  # which takes no memory
            names = getattr(table, "names", None) or default_names(values.shape[1])
            gaps = {name: np.isnan(values[:, j]) for j, name in enumerate(names)}
    gaps = {name: lacking for name, lacking in gaps.items() if lacking.any()}
    arguments = [table_argument] if gaps else []
    n_columns = len(gaps)
    for argument, vector in vectors.items():
        lacking = _lacking(as_array(vector, argument))
        if lacking.size == n and lacking.any():  # another length is refused later
            gaps[argument] = lacking
            arguments.append(argument)
    any_gap = np.zeros(n, dtype=bool)
    for lacking in gaps.values():
        any_gap |= lacking
    n_missing = int(np.count_nonzero(any_gap))
    if n_missing and (missing == "error" or n_missing == n):
        counts = [f"{shown(name)} {np.count_nonzero(g)}" for name, g in gaps.items()]
        more = ", ..." if len(counts) > _NAMED else ""
        remedy = "pass missing='drop' to leave these rows out"
        if n_columns:  # nothing can be filled in for labels, weights and the like
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
            f"values ({shown_counts}), the first in row {any_gap.argmax()}: {remedy}"
        )
    return ~any_gap, n_missing


def _lacking(a: np.ndarray) -> np.ndarray:
    """Return the missing entries of a vector; none for an array of another shape."""
    if a.ndim != 1:
        return np.zeros(0, dtype=bool)
    if a.dtype.kind == "f":
        return np.asarray(np.isnan(a))
    if a.dtype.kind in "OT":
        return np.array([is_missing(value) for value in a.tolist()], dtype=bool)
    return np.zeros(a.size, dtype=bool)


def _without_weight_0(keep: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Return the rows to keep but for those of weight 0, whose levels the model must
    not know: weight 0 is the row left out.
    """
    if sample_weight is None:
        return keep
    weight = as_real_array(sample_weight, "sample_weight", (keep.size,), " as X")
    counted = keep & (weight != 0)
    return counted if counted.any() else keep  # without any, it is refused later


def _rows_of(vector: Any, keep: np.ndarray) -> Any:
    """Return some entries of a vector; one of another length is returned as it is."""
    a = as_array(vector, "a column")
    if a.shape != keep.shape:
        return vector
    kept = a[keep]
    return kept.tolist() if kept.dtype.kind == "O" else kept
