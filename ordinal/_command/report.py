"""`ordinal report`, `ordinal explain` and the coefficients of `ordinal show`."""

import argparse
import csv
import sys
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from typing import Any

from .._files.table import read_table
from .._files.writing import check_target, writing
from .._model.predicted import columns_of_effects, levels_of
from .._views.page import coefficient_table
from .predict import frame_of, layout_options, loaded, rows_with_labels


def report(args: argparse.Namespace) -> None:
    """Write the page about a model on the rows of a table."""
    check_target(args.out)
    model = loaded(args.model)
    rows, y, _ = rows_with_labels(model, args)
    model.report(args.out, rows, y, title=args.title)


def explain(args: argparse.Namespace) -> None:
    """Print the importances of the features, or write them as CSV."""
    if args.out:
        check_target(args.out)
    model = loaded(args.model)
    if args.target is not None:
        rows, y, _ = rows_with_labels(model, args)
        found = model.explain(rows, y)
    else:
        found = model.explain(_rows(model, args))
    if not args.out:
        print(found)
        return
    with writing(args.out) as file:
        file.write(_as_csv(found.table()).encode("utf-8"))


def print_coefficients(path: str) -> None:
    """Print the coefficients of the model in a file."""
    table, note = coefficient_table(loaded(path))
    print(table.to_text())
    if note:
        print(f"ordinal: note: {note}", file=sys.stderr)


def _rows(model: Any, args: argparse.Namespace) -> Any:
    """Return the rows of a table, which need no labels."""
    table = read_table(args.data, **layout_options(args))
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
