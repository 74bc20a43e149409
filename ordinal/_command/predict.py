"""`ordinal predict`: labels, and probabilities, of the rows of a table by a model."""

import argparse
import csv
import io
import sys
from typing import Any, TextIO

import ordinal

from .._input.table import read_table
from .._model.writing import check_target, writing


def predict(args: argparse.Namespace) -> None:
    """Write a line of prediction for every row of a table."""
    if args.out:
        check_target(args.out)  # better now than after the predictions
    model = ordinal.load(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(f"{args.model} holds a {type(model).__name__}, not a model")
    table = read_table(args.data, separator=args.separator, decimal=args.decimal)
    features = getattr(model, "feature_names", None)
    # Without a header, a table as wide as the features has nothing else in it. A
    # wider one is taken for another of the training kind, with its target.
    if features is None or (not table.has_header and len(table.names) == len(features)):
        features = table.names
    X = table.numbers(features)
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


def _write(file: TextIO, names: list[str], rows: list[list[Any]]) -> None:
    csv.writer(file, lineterminator="\n").writerows([names, *rows])
