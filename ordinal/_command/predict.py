"""`ordinal predict`: labels, and probabilities, of the rows of a table by a model."""

import argparse
import sys
from contextlib import closing

import ordinal

from .._files.chunks import TableBlocks
from .._files.table import layout_of
from .._files.writing import check_target
from .._model.predicted import predicted, write_csv, write_predicted


def predict(args: argparse.Namespace) -> None:
    """Write a line of prediction for every row of a table, some megabytes at a time."""
    if args.out:
        check_target(args.out)  # better now than after the predictions
    model = ordinal.load(args.model)
    if not hasattr(model, "predict"):
        raise ValueError(f"{args.model} holds a {type(model).__name__}, not a model")
    layout_of(args.data, args.separator, args.decimal)
    rows = TableBlocks(args.data, separator=args.separator, decimal=args.decimal)
    if args.out:
        write_predicted(args.out, model, rows, args.proba)
        return
    with closing(predicted(model, rows, args.proba)) as blocks:
        write_csv(sys.stdout, model, blocks)
