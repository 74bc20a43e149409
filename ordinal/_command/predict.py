"""`ordinal predict`: labels, and probabilities, of the rows of a table by a model."""

import argparse
import sys
from contextlib import closing
from typing import Any

import ordinal

from .._files.chunks import TableBlocks
from .._files.table import layout_of, read_table
from .._files.writing import check_target
from .._input.checks import shown
from .._model.predicted import predicted as predicted_rows
from .._model.predicted import write_csv, write_predicted


def predict(args: argparse.Namespace) -> None:
    """Write a line of prediction for every row of a table, some megabytes at a time."""
    if args.out:
        check_target(args.out)  # better now than after the predictions
    model = ordinal.load(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(f"{args.model} holds a {type(model).__name__}, not a model")
    layout_of(args.data, args.separator, args.decimal)
    if args.score:
        _score(model, args)
    elif args.target is not None:
        raise ValueError("--target names the labels for --score")
    rows = TableBlocks(args.data, separator=args.separator, decimal=args.decimal)
    if args.out:
        write_predicted(args.out, model, rows, args.proba)
        return
    with closing(predicted_rows(model, rows, args.proba)) as blocks:
        write_csv(sys.stdout, model, blocks)


def _score(model: Any, args: argparse.Namespace) -> None:
    """Print the errors of the predictions of a table with labels."""
    from .. import metrics  # which predictions alone do not need

    table = read_table(args.data, separator=args.separator, decimal=args.decimal)
    target = table.names[-1] if args.target is None else args.target
    y = table.labels(target)
    features = [name for name in table.names if name != target]
    if model.feature_names is not None:
        if target in model.feature_names:
            raise ValueError(
                f"--score needs labels, and {shown(target)} is a feature of the model: "
                "name their column by --target"
            )
        features = [name for name in features if name in model.feature_names]
    words = {name for name in features if isinstance(table.column(name), list)}
    predicted = model.predict(table.frame(tuple(features), words))
    classes = model.classes
    values = {
        "MAE": metrics.mae(y, predicted, labels=classes),
        "accuracy": metrics.accuracy(y, predicted, labels=classes),
    }
    scores = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
    print(f"{y.size} rows: {scores}", file=sys.stderr)
