"""Predictions of rows in chunks, and files of predictions."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import IO, Any, NamedTuple, TextIO

import numpy as np

from .._files.chunks import TableBlocks
from .._files.readers import failure_of
from .._files.table import Table
from .._files.writing import replaces, writing
from .._input.checks import as_array, as_path, listed, shown, similar_to
from .._input.columns import check_columns, feature_names, frame_columns
from .._input.frame import Frame
from .._input.labels import is_missing, read_labels
from .._rows.source import Arrays, has_blocks, in_block, raw_blocks
from .column_names import named, with_names

# files that programs would not open as CSV
_FOREIGN = (".gz", ".ods", ".tsv", ".xls", ".xlsx")


class Predicted(NamedTuple):
    """Predictions of a block: labels, (k,), probabilities, (k, r), and kept cells."""

    labels: np.ndarray
    proba: np.ndarray | None
    kept: list[list[Any]]


def predicted(
    model: Any, X: Any, proba: bool = False, keep: Sequence[str] = (), **options: Any
) -> Generator[Predicted, None, None]:
    """Yield predictions block by block, with probabilities if requested.

    `keep` names columns of a file, whose cells are yielded besides as text, or of a
    data frame. The options are those of the predictions of the model.
    """
    start, beside = 0, columns_of_effects(model, **options)
    names = getattr(model, "feature_names", None)
    with closing(_rows(model, X, beside, keep)) as blocks:
        for number, (rows, kept) in enumerate(blocks):
            with in_block(number, start):
                rows = (named if number else with_names)(rows, names)  # warns once
                labels = read_labels(model.predict(rows, **options), "labels")
                chances = None
                if proba:
                    chances = np.asarray(model.predict_proba(rows, **options))
            yield Predicted(labels, chances, kept)
            start += labels.size


def columns_of_effects(model: Any, effects: str = "new") -> tuple[str, ...]:
    """Return the columns of random effects that are not features of a mixed model.

    They are those with a random slope and those that name groups, as far as predictions
    with these `effects` use them.
    """
    random = getattr(model, "random", ())
    features = getattr(model, "feature_names", None) or ()
    names = [s.column for own in random for s in own.slopes if effects != "average"]
    if effects.startswith("known"):
        names += [name for own in random for name in own.columns]
    return tuple(n for n in dict.fromkeys(names) if n and n not in features)


def write_predicted(
    path: Any,
    model: Any,
    X: Any,
    proba: bool = False,
    keep: Sequence[str] = (),
    **options: Any,
) -> None:
    """Write predictions to a CSV or .parquet file, atomically."""
    path = as_path("path", path)
    if path.lower().endswith(_FOREIGN):
        raise ValueError(
            f"predictions are written as CSV or Parquet, got {shown(path)}: pass a "
            "name that ends in .csv or .parquet"
        )
    read = X.path if isinstance(X, TableBlocks) else X
    if isinstance(read, str | os.PathLike) and replaces(path, os.fspath(read)):
        raise ValueError(
            f"{shown(path)} is the file of the rows, which it would replace: pass "
            "another name for the predictions"
        )
    is_parquet = path.endswith(".parquet")
    if is_parquet and (failure := failure_of("pyarrow")):
        raise ValueError(
            f"writing {path} needs pyarrow: pip install pyarrow ({failure})"
        )
    with (
        writing(path) as file,
        closing(predicted(model, X, proba, keep, **options)) as blocks,
    ):
        if is_parquet:
            _write_parquet(file, model, blocks, keep)
            return
        text = io.TextIOWrapper(file, "utf-8", newline="")
        write_csv(text, model, blocks, keep)
        text.detach()  # otherwise its end would close the file


def write_csv(
    file: TextIO, model: Any, blocks: Iterator[Predicted], keep: Sequence[str] = ()
) -> None:
    """Write predictions as CSV: a header, and one line per row."""
    writer = csv.writer(file, lineterminator="\n")
    first = next(blocks)  # errors of the first rows come before any line
    writer.writerow(_names(model, first.proba is not None, keep))
    for labels, proba, kept in chain([first], blocks):
        columns = [*kept, labels.tolist(), *([] if proba is None else proba.T.tolist())]
        writer.writerows(zip(*columns, strict=True))
    file.flush()


def _write_parquet(
    file: IO[bytes], model: Any, blocks: Iterator[Predicted], keep: Sequence[str]
) -> None:
    """Write predictions as Parquet, one row group per block."""
    pa: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    writer = None
    try:
        for labels, proba, kept in blocks:
            columns = [labels, *(() if proba is None else proba.T)]
            table = pa.table(
                [pa.array(cells) for cells in (*kept, *(c.tolist() for c in columns))],
                names=_names(model, proba is not None, keep),
            )
            if writer is None:
                writer = parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _names(model: Any, proba: bool, keep: Sequence[str]) -> list[str]:
    """Return the names of the columns of a file of predictions."""
    of_ranks = [f"P({label})" for label in model.classes.tolist()] if proba else []
    own = ["prediction", *of_ranks]
    if twice := [name for name in keep if name in own]:
        raise ValueError(
            f"the column {shown(twice[0])} cannot be kept, because the predictions "
            "have one of this name: rename it"
        )
    return [*keep, *own]


def _rows(
    model: Any, X: Any, beside: tuple[str, ...], keep: Sequence[str]
) -> Generator[tuple[Any, list[list[Any]]], None, None]:
    """Yield the features of a source, block by block, and the cells of kept columns."""
    if isinstance(X, str | os.PathLike):
        X = TableBlocks(as_path("X", X))
    if isinstance(X, TableBlocks):
        features = getattr(model, "feature_names", None)
        with closing(X.tables(features and (*features, *beside, *keep))) as tables:
            for table in tables:
                kept = [table.texts(name) for name in keep]
                yield _features(model, table, X, beside), kept
        return
    if not (has_blocks(X) or (isinstance(X, np.ndarray) and X.size)):
        yield X, _kept(X, keep)  # in one block: it is in memory or has no rows
        return
    if keep:
        raise ValueError(
            "keep names columns of a file or a data frame: pass one of these, or leave "
            "keep out"
        )
    with closing(raw_blocks(X if has_blocks(X) else Arrays(X))) as blocks:
        for block in blocks:
            yield block.X, []


def _kept(X: Any, keep: Sequence[str]) -> list[list[Any]]:
    """Return columns of a data frame, with None for missing values."""
    names = (feature_names(X) if keep else None) or ()
    for name in keep:
        if name not in names:
            has = f", which has {listed(names)}" if names else ": pass a data frame"
            raise ValueError(
                f"keep must name columns of X{has}, got {shown(name)}"
                f"{similar_to(name, names)}"
            )
    columns = frame_columns(X, keep) if keep else []
    cells = (as_array(column, "a column").tolist() for column in columns)
    return [[None if is_missing(v) else v for v in values] for values in cells]


def _record(model: Any) -> Any:
    """Return the object of a model that has the `categories` of columns, or None."""
    # The members of a pool were fitted to the same table, and one may ignore it.
    for member in getattr(model, "models", ()):
        if (found := _record(member)) is not None:
            return found
    record = getattr(model, "preprocessor", getattr(model, "predictor", model))
    return None if getattr(record, "categories", None) is None else record


def levels_of(model: Any) -> dict[str, list[str]]:
    """Return the levels of the categorical columns of a model, and of its groups.

    They are values in a file, also if they stand for a missing value elsewhere.
    """
    record, names = _record(model), getattr(model, "feature_names", None)
    both = () if record is None or names is None else (names, record.categories)
    labels = {
        name: known.tolist()
        for name, known in zip(*both, strict=True)
        if known is not None and known.dtype.kind == "U"
    }
    for own in getattr(model, "random", ()):
        if len(own.columns) == 1 and own.levels.dtype.kind == "U":
            labels[own.columns[0]] = own.levels.tolist()
    return labels


def _features(
    model: Any, table: Table, source: TableBlocks, beside: tuple[str, ...]
) -> Frame:
    """Return the columns of a table for the model, with strings as categories."""
    features = getattr(model, "feature_names", None)
    wanted = features or source.features_of(table)
    # A table without a header that is as wide as the features holds only these. A wider
    # one is read like the training table, with a target.
    by_place = not table.has_header and len(table.names) == len(wanted)
    names = table.names if by_place else wanted
    check_columns(table.path, (*names, *beside), table.names)
    table = replace(table, levels={**levels_of(model), **table.levels})
    record = _record(model)
    if record is None and not beside:
        return Frame.of_numbers(table.numbers(names), features)
    coding = getattr(record, "coding", None)
    textual = {names[j] for j in (coding.dates if coding is not None else ())}
    textual |= {
        name
        for name, labels in zip(names, getattr(record, "categories", ()), strict=False)
        if labels is not None and labels.dtype.kind == "U"
    }
    textual |= {name for name in beside if table.is_categorical(name)}
    names = (*names, *beside)
    return replace(table.frame(names, textual), names=features and (*features, *beside))
