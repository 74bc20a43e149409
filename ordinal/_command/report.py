"""`ordinal report`, `ordinal explain` and the coefficients of `ordinal show`."""

import argparse
import csv
import sys
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import ordinal

from .._files.table import STDIN, Table, read_table
from .._files.writing import check_target, writing
from .._model.predicted import columns_of_effects, levels_of
from .._views.page import coefficient_table
from .columns import columns_of
from .data import first_layout_option
from .predict import frame_of, layout_options, loaded, rows_with_labels


def report(args: argparse.Namespace) -> None:
    """Write the page about a model on the rows of a table."""
    check_target(args.out)
    model = loaded(args.model)
    table = read_table(args.data, **layout_options(args))
    rows, y, _ = rows_with_labels(model, table, args)
    model.report(rows, y, args.out, title=args.title)


def explain(args: argparse.Namespace) -> None:
    """Print the importances of the features, or write them as CSV."""
    if args.out:
        check_target(args.out)
    model = loaded(args.model)
    table = read_table(args.data, **layout_options(args))
    if args.target is not None:
        rows, y, _ = rows_with_labels(model, table, args)
        found = model.explain(rows, y)
    else:
        found = model.explain(_rows(model, table))
    _put(_as_csv(found.table()) if args.out else f"{found}\n", args.out)


def show(args: argparse.Namespace) -> None:
    """Print a model, the coefficients of a linear one, or the columns of a table."""
    if args.out:
        check_target(args.out)
    if not args.coefficients and not _is_model(args.model):
        if args.missing_labels != "error":
            raise ValueError("--missing-labels has no effect on columns: leave it out")
        columns, notes = columns_of(read_table(args.model, **layout_options(args)))
        _put(_as_csv(columns) if args.out else f"{columns.to_text()}\n", args.out)
        for note in notes:
            print(f"ordinal: note: {note}", file=sys.stderr)
        return
    if (option := first_layout_option(args)) is not None:
        raise ValueError(f"--{option} is for tables, not for models: leave it out")
    if not args.coefficients:
        _put(f"{ordinal.load(args.model)}\n", args.out)
        return
    table, note = coefficient_table(loaded(args.model))
    _put(_as_csv(table) if args.out else f"{table.to_text()}\n", args.out)
    if note:
        print(f"ordinal: note: {note}", file=sys.stderr)


def _is_model(path: str) -> bool:
    """Return whether a file is an archive of arrays, as models are."""
    if path == STDIN or not (Path(path).is_file() and is_zipfile(path)):
        return False
    try:
        with ZipFile(path) as archive:
            return all(name.endswith(".npy") for name in archive.namelist())
    except BadZipFile:  # about which the reader of models says more
        return True


def _put(text: str, path: str | None) -> None:
    """Write text to a file, or print it if there is none."""
    if path is None:
        print(text, end="")
        return
    with writing(path) as file:
        file.write(text.encode("utf-8"))


def _rows(model: Any, table: Table) -> Any:
    """Return the rows of a table, which need no labels."""
    table = replace(table, levels=levels_of(model))
    features = model.feature_names or table.names[: model.n_features]
    return frame_of(table, [*features, *columns_of_effects(model)])


def _as_csv(columns: Mapping[str, Any]) -> str:
    """Return a table of columns as the text of a CSV file."""
    content = StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))
    return content.getvalue()
