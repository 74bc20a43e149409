"""Page about a model on rows with known labels: `report` of every model."""

from __future__ import annotations

import os
from html import escape
from typing import Any

import numpy as np

from .. import metrics
from .._files.writing import writing
from .._input.checks import as_path, shown
from .._input.features import read_rows_of
from .._input.frame import Frame
from .._input.labels import ranks_of, read_labels
from .._model.explanation import Explanation
from .._model.printing import Table, html_notes, html_table
from .._numerics.rows import take
from ..prediction_sets import conformal

_EXPLAINED = 500  # rows: more would make importances slow
_MOST_IMPORTANT = 25  # features and pairs that are shown
_COVERAGE = 0.9
_BINS = 10  # of equally many rows, of the calibration
_Z = 1.96  # half the width of a 95 % interval, in standard errors
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; }
body { padding: 1rem; overflow-wrap: break-word; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid #8884; }
section { overflow-x: auto; margin-top: 2rem; } h1, h2 { line-height: 1.2; }
h2 { font-size: 1.2rem; margin-bottom: .5rem; } td { min-width: 1rem; }
@media (max-width: 40rem) { table { font-size: 85%; } }
"""


def write_report(
    model: Any, path: str | os.PathLike[str], X: Any, y: Any, title: str
) -> None:
    """Write the page; `Model.report` documents it."""
    path = as_path("path", path)
    if not isinstance(title, str):
        raise TypeError(f"title must be text, got {shown(title)}")
    classes = np.asarray(model.classes)
    labels = read_labels(y, "y")
    rank = ranks_of(labels, classes, "y", "the classes of the model")
    rows = read_rows_of(X, model.feature_names)
    predicted = ranks_of(read_labels(model.predict(rows), "predictions"), classes)
    if predicted.shape != rank.shape:
        raise ValueError(
            f"y must have one label per row of X, which has {predicted.size} rows, "
            f"got {rank.size} labels"
        )
    try:
        P = np.asarray(model.predict_proba(rows))
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        P = None  # a model without probabilities: bad rows have raised above
    title = title or type(model).__name__
    parts = {
        "Data": _data(rows, rank, classes),
        "Errors": _errors(rank, predicted, P),
        "Confusion matrix": _confusion(rank, predicted, classes),
    }
    # Shuffled, because the rows of a table may be in the order of their labels.
    order = np.random.default_rng(0).permutation(rank.size)
    if P is not None:
        parts["Calibration"] = _calibration(rank, P)
        parts["Prediction sets"] = _sets(model, rows, labels, order)
    try:
        found = model.explain(take(rows, np.sort(order[:_EXPLAINED])))
        parts["Importance of the features"] = _importance(found)
    except TypeError as error:  # sparse rows, or a precomputed kernel
        parts["Importance of the features"] = html_notes([str(error)])
    if hasattr(model, "parameter_names"):
        parts["Coefficients"] = _coefficients(model)
    parts["Model"] = model._repr_html_()
    body = "".join(
        f"<section><h2>{name}</h2>{html}</section>" for name, html in parts.items()
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta '
        'name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{body}</body></html>"
    )
    with writing(path) as file:
        file.write(page.encode("utf-8"))


def _data(rows: Any, rank: np.ndarray, classes: np.ndarray) -> str:
    """Return the counts of the labels, and a summary of every column."""
    counts = np.bincount(rank, minlength=classes.size)
    share = [f"{100 * count / max(rank.size, 1):.1f} %" for count in counts]
    labels = list(zip(classes.tolist(), counts.tolist(), share, strict=True))
    n, d = rows.shape
    text = html_notes([f"{n} rows, {d} features, {classes.size} ranks."])
    text += html_table(("label", "rows", "share"), labels)
    if not isinstance(rows, Frame):
        return text
    columns = []
    for name, column in zip(rows.shown_names, rows, strict=True):
        known = column.values[np.isfinite(column.values)]
        missing = column.values.size - known.size
        if column.labels is not None:
            used = np.unique(known).size
            columns.append((name, missing, f"{used} categories", "", ""))
        elif known.size:
            low, middle, high = np.quantile(known, [0.0, 0.5, 1.0])
            columns.append((name, missing, *(f"{v:.4g}" for v in (low, middle, high))))
        else:
            columns.append((name, missing, "", "", ""))
    head = "feature", "missing", "minimum", "median", "maximum"
    return text + "<br>" + html_table(head, columns)


def _errors(rank: np.ndarray, predicted: np.ndarray, P: np.ndarray | None) -> str:
    """Return a table of metrics with their confidence intervals."""
    distance = abs(predicted - rank).astype(float)
    rows = [
        _mean("mean absolute error (ranks)", distance),
        _proportion("accuracy", distance == 0),
        _proportion("within one rank", distance <= 1),
    ]
    if P is not None:
        steps = rank[:, None] <= np.arange(P.shape[1] - 1)
        squares = (P.cumsum(axis=1)[:, :-1] - steps) ** 2
        rows.append(_mean("ranked probability score", squares.sum(axis=1)))
    return html_table(("metric", "value", "95 % interval"), rows)


def _mean(name: str, values: np.ndarray) -> tuple[str, str, str]:
    """Return the mean of nonnegative values and its normal interval."""
    mean, half = values.mean(), _Z * values.std() / np.sqrt(max(values.size, 1))
    return name, f"{mean:.4f}", f"{max(mean - half, 0.0):.4f} to {mean + half:.4f}"


def _proportion(name: str, hits: np.ndarray) -> tuple[str, str, str]:
    """Return a proportion and Wilson's interval, which is not empty at 0 or 1."""
    p, n = hits.mean(), max(hits.size, 1)
    middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    return name, f"{p:.4f}", f"{middle - half:.4f} to {middle + half:.4f}"


def _confusion(rank: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> str:
    """Return the confusion matrix as a table."""
    every = np.arange(classes.size)
    counts = metrics.confusion_matrix(rank, predicted, labels=every)
    head = ["true label", *classes.tolist()]
    rows = [
        [label, *(f"{v:g}" for v in row)]
        for label, row in zip(classes.tolist(), counts, strict=True)
    ]
    return html_table(head, rows) + html_notes(["Columns are the predicted labels."])


def _calibration(rank: np.ndarray, P: np.ndarray) -> str:
    """Return predicted and observed mean ranks of rows with similar predictions."""
    expected = P @ np.arange(1.0, P.shape[1] + 1)
    rows = []
    for part in np.array_split(np.argsort(expected, kind="stable"), _BINS):
        if part.size:
            observed = rank[part] + 1.0
            error = observed.std() / np.sqrt(part.size)
            mean = f"{observed.mean():.2f} ± {error:.2f}"
            rows.append((part.size, f"{expected[part].mean():.2f}", mean))
    head = "rows", "predicted mean rank", "observed mean rank"
    return html_table(head, rows)


def _sets(model: Any, X: Any, y: np.ndarray, order: np.ndarray) -> str:
    """Return coverage and size of sets: one half of the rows calibrates the other."""
    half = len(y) // 2
    if half < 20:
        return html_notes(["There are too few rows to calibrate prediction sets."])
    first, second = np.sort(order[:half]), np.sort(order[half:])
    sets = conformal(model, take(X, first), y[first], coverage=_COVERAGE)
    found = sets.predict_set(take(X, second))
    rank = ranks_of(y[second], np.asarray(model.classes))
    covered = found[np.arange(rank.size), rank]
    text = (
        f"Calibrated on {half} of the rows to contain the true label with probability "
        f"{_COVERAGE}: sets of {found.sum(axis=1).mean():.2f} ranks on average contain "
        f"it in {covered.mean():.3f} of the other {rank.size} rows."
    )
    return html_notes([text])


def _coefficients(model: Any) -> str:
    """Return the table of the estimates, without errors if the model has none."""
    try:
        return str(model.table()._repr_html_())
    except ValueError as error:  # a penalised model, for example
        names = np.array(model.parameter_names, dtype=str)
        table = Table({"name": names, "estimate": model.parameters})
        return table._repr_html_() + html_notes([str(error)])


def _with_error(value: float, error: float) -> str:
    """Return an importance, and its standard error unless it is exact."""
    return f"{value:.4g} ± {error:.2g}" if error > 0 else f"{value:.4g}"


def _importance(found: Explanation) -> str:
    """Return a table with a bar for each feature."""
    most = max(float(found.importance.max(initial=0.0)), 1e-300)
    k, left = _MOST_IMPORTANT, len(found.names) - _MOST_IMPORTANT
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{_with_error(value, error)}</td>"
        f'<td style="width:40%">{_bar(value / most)}</td></tr>'
        for name, value, error in zip(
            found.names[:k],
            found.importance[:k],
            found.standard_error[:k],
            strict=True,
        )
    )
    rest = f" {left} smaller ones are not shown." if left > 0 else ""
    how = f"By {found.method}; {found.unit}.{rest}"
    return f'<table style="width:100%">{rows}</table>' + html_notes([how])


def _bar(share: float) -> str:
    """Return a bar that fills this share of its cell."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        '<div style="background:#4477aa;height:0.8em;min-width:1px;'
        f'width:{width:.1f}%"></div>'
    )
