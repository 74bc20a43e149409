"""`ordinal predict`: labels, and probabilities, of the rows of a table by a model."""

import argparse
import csv
import sys
from contextlib import nullcontext

import ordinal

from .._input.table import read_table


def predict(args: argparse.Namespace) -> None:
    """Write a line of prediction for every row of a table."""
    model = ordinal.load(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(f"{args.model} holds a {type(model).__name__}, not a model")
    table = read_table(args.data)
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
    with (
        open(args.out, "w", encoding="utf-8", newline="")
        if args.out
        else nullcontext(sys.stdout)
    ) as file:
        csv.writer(file, lineterminator="\n").writerows([names, *rows])
