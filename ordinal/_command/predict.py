"""`ordinal predict`: labels, and probabilities, of the rows of a table by a model."""

import argparse
import csv
import io
import sys
from dataclasses import replace
from typing import Any, TextIO

import ordinal

from .._input.frame import Frame
from .._input.table import Table, read_table
from .._model.writing import check_target, writing


def predict(args: argparse.Namespace) -> None:
    """Write a line of prediction for every row of a table."""
    if args.out:
        check_target(args.out)  # better now than after the predictions
    model = ordinal.load(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(f"{args.model} holds a {type(model).__name__}, not a model")
    table = read_table(args.data, separator=args.separator, decimal=args.decimal)
    X = _features(model, table)
    names, rows = ["prediction"], [[label] for label in model.predict(X).tolist()]
    if args.proba:
        names += [f"P({label})" for label in model.classes.tolist()]
        columns = model.predict_proba(X).tolist()
        rows = [a + b for a, b in zip(rows, columns, strict=True)]
    if not args.out:
        _write(sys.stdout, names, rows)
        return
    content = io.StringIO()
    _write(content, names, rows)
    with writing(args.out) as file:
        file.write(content.getvalue().encode("utf-8"))


def _features(model: Any, table: Table) -> Frame:
    """The columns that the model asks for, those of words as categories."""
    features = getattr(model, "feature_names", None)
    wanted = features or table.names
    # Without a header, a table as wide as the features has nothing else in it. A
    # wider one is taken for another of the training kind, with its target.
    by_place = not table.has_header and len(table.names) == len(wanted)
    names = table.names if by_place else wanted
    learned = getattr(model, "preprocessor", model)
    categories = getattr(learned, "categories", None)
    if categories is None:
        return Frame.of_numbers(table.numbers(names), features)
    words = {
        name
        for name, labels in zip(names, categories, strict=True)
        if labels is not None and labels.dtype.kind == "U"
    }
    return replace(table.frame(names, words), names=features)


def _write(file: TextIO, names: list[str], rows: list[list[Any]]) -> None:
    csv.writer(file, lineterminator="\n").writerows([names, *rows])
