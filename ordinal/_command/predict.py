"""`ordinal predict`: labels, and probabilities, of the rows of a table by a model."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

import ordinal

from .._files.chunks import TableBlocks
from .._files.table import Table, layout_of, read_table
from .._files.writing import check_target
from .._input.checks import listed, shown
from .._input.frame import Frame
from .._model.predicted import columns_of_effects, levels_of, write_csv, write_predicted
from .._model.predicted import predicted as predicted_rows


def layout_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options on the format of a text table."""
    return {
        "separator": args.separator,
        "decimal": args.decimal,
        "missing": None if args.missing is None else tuple(args.missing),
        "encoding": args.encoding,
    }


def predict(args: argparse.Namespace) -> None:
    """Write one line of predictions per row of a table, chunk by chunk."""
    if args.out:
        check_target(args.out)  # better now than after the predictions
    model = loaded(args.model)
    options = _effects(model, args)
    layout = layout_options(args)
    layout_of(args.data, **layout)
    table = read_table(args.data, **layout) if args.score else None
    if table is not None:
        _score(model, table, args, options)
    elif args.target is not None:
        raise ValueError(
            "--target names the labels for --score: add --score, or leave --target out"
        )
    keep = tuple(dict.fromkeys(args.keep))
    rows = TableBlocks(args.data, drop=keep, held=table, **layout)
    if args.out:
        write_predicted(args.out, model, rows, args.proba, keep, **options)
        return
    with closing(predicted_rows(model, rows, args.proba, keep, **options)) as blocks:
        write_csv(sys.stdout, model, blocks, keep)


def loaded(path: str) -> Any:
    """Return the model in a file; ValueError for anything else in it."""
    try:
        model = ordinal.load(path)
    except ValueError as error:
        raise ValueError(
            f"{error}; pass the model that `ordinal fit` has saved, and then the table"
        ) from None
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds a {type(model).__name__}, not a model")
    return model


def _effects(model: Any, args: argparse.Namespace) -> dict[str, str]:
    """Return the argument `effects` of the prediction, if it is given."""
    if args.effects is None:
        return {}
    if not isinstance(model, ordinal.models.ClmmModel):
        raise ValueError(
            f"--effects: {args.model} holds a {type(model).__name__}, which has no "
            "random effects: leave the option out"
        )
    if model.feature_names is None and args.effects.startswith("known"):
        raise ValueError(
            f"--effects {args.effects} finds groups by the names of columns, and "
            f"the model in {args.model} was fitted to columns without names: pass "
            "--effects new or --effects average"
        )
    return {"effects": args.effects}


def rows_with_labels(
    model: Any, table: Table, args: argparse.Namespace, **options: str
) -> tuple[Frame, np.ndarray, int]:
    """Return the rows of a table for a model, their labels, and the number left out."""
    target = table.names[-1] if args.target is None else args.target
    known = [str(label) for label in model.classes.tolist()]
    table = replace(table, levels=levels_of(model) | {target: known})
    n_rows = len(table)
    if args.missing_labels == "drop":
        table = table.labelled(target)
    y = table.labels(target)
    features = [name for name in table.names if name != target]
    if model.feature_names is not None:
        if target in model.feature_names:
            raise ValueError(
                f"labels are needed, and {shown(target)} is a feature of the model: "
                "name their column by --target"
            )
        features = [name for name in features if name in model.feature_names]
        features += columns_of_effects(model, **options)
    unknown = np.flatnonzero(~np.isin(y, model.classes))
    if unknown.size:
        problem = (
            f"is not a rank of the model, {listed(model.classes)}; pass the labels of "
            "the fit, and with --bins those were the ranks 1 to K"
        )
        raise table.error(int(unknown[0]), target, problem)
    return frame_of(table, features), y, n_rows - y.size


def frame_of(table: Table, features: Sequence[str]) -> Frame:
    """Return columns of a table, with strings and known levels as categories."""
    categorical = {name for name in features if table.is_categorical(name)}
    categorical |= {name for name in features if name in table.levels}
    return table.frame(tuple(features), categorical)


def _score(
    model: Any, table: Table, args: argparse.Namespace, options: dict[str, str]
) -> None:
    """Print the errors of the predictions of a table with labels."""
    from .. import metrics  # which predictions alone do not need

    rows, y, left_out = rows_with_labels(model, table, args, **options)
    predicted = model.predict(rows, **options)
    classes = model.classes
    values = {
        "MAE": metrics.mae(y, predicted, labels=classes),
        "accuracy": metrics.accuracy(y, predicted, labels=classes),
    }
    scores = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
    out = f", without {left_out} unlabelled row{'s' * (left_out > 1)}" * (left_out > 0)
    print(f"{y.size} rows{out}: {scores}", file=sys.stderr)
