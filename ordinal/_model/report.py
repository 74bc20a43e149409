"""Page about a model on rows with known labels: `Model.report`."""

from __future__ import annotations

import os
from html import escape
from typing import Any

import numpy as np

from .. import metrics
from .._files.writing import writing
from .._input.checks import as_path
from .._input.labels import ranks_of, read_labels
from .._input.sparse import is_sparse
from .._public import find_public
from .explanation import Explanation
from .printing import html_bar, html_notes, html_table

_EXPLAINED = 500  # rows: more would make importances slow
_COVERAGE = 0.9
_BINS = 10  # of equally many rows, of the calibration
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; }
body { padding: 1rem; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid #8884; }
section { overflow-x: auto; } h1, h2 { line-height: 1.2; } td { min-width: 2rem; }
"""


def write_report(
    model: Any, path: str | os.PathLike[str], X: Any, y: Any, title: str
) -> None:
    """Write the page; `Model.report` documents it."""
    path = as_path("path", path)
    classes = np.asarray(model.classes)
    labels = read_labels(y, "y")
    rank = ranks_of(labels, classes, "y", "classes of the model")
    told = np.asarray(model.predict(X))
    try:
        P = np.asarray(model.predict_proba(X))
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        P = None  # a model without probabilities; those of bad rows failed above
    if told.shape != rank.shape:
        raise ValueError(
            f"y must have one label per row of X, {told.size}, got {rank.size}"
        )
    known = {"labels": classes}
    title = title or type(model).__name__
    parts = [
        ("Errors", _errors(rank, ranks_of(told, classes), P)),
        ("Confusion matrix", _confusion(labels, told, classes, known)),
    ]
    if P is not None:
        parts.append(("Calibration", _calibration(rank, P)))
        parts.append(("Prediction sets", _sets(model, X, labels)))
    if not is_sparse(X):  # which explain refuses
        found = model.explain(X[:_EXPLAINED])
        parts.append(("Importance of the features", _importance(found)))
    parts.append(("Model", model._repr_html_()))
    body = "".join(f"<section><h2>{name}</h2>{html}</section>" for name, html in parts)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta '
        'name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>{rank.size} rows, {model.n_features} features, "
        f"{classes.size} ranks.</p>{body}</body></html>"
    )
    with writing(path) as file:
        file.write(page.encode("utf-8"))


def _errors(rank: np.ndarray, told: np.ndarray, P: np.ndarray | None) -> str:
    distance = abs(told - rank).astype(float)
    of_rows = {
        "mean absolute error (ranks)": distance,
        "accuracy": (distance == 0).astype(float),
        "within one rank": (distance <= 1).astype(float),
    }
    if P is not None:
        steps = rank[:, None] <= np.arange(P.shape[1] - 1)
        of_rows["ranked probability score"] = (
            (P.cumsum(axis=1)[:, :-1] - steps) ** 2
        ).sum(axis=1)
    rows = []
    for name, values in of_rows.items():
        mean, half = values.mean(), 1.96 * values.std() / np.sqrt(max(values.size, 1))
        rows.append((name, f"{mean:.4f}", f"{mean - half:.4f} to {mean + half:.4f}"))
    return html_table(("metric", "value", "95 % interval"), rows)


def _confusion(
    y: np.ndarray, told: np.ndarray, classes: np.ndarray, known: dict[str, Any]
) -> str:
    counts = metrics.confusion_matrix(y, told, **known)
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


def _sets(model: Any, X: Any, y: np.ndarray) -> str:
    """Return coverage and size of sets: one half of the rows calibrates the other."""
    half = len(y) // 2
    if half < 20:
        return html_notes(["There are too few rows to calibrate prediction sets."])
    sets = find_public("conformal")(model, X[:half], y[:half], coverage=_COVERAGE)
    held = sets.predict_set(X[half:])
    rank = ranks_of(y[half:], np.asarray(model.classes))
    covered = held[np.arange(rank.size), rank]
    text = (
        f"Calibrated on {half} of the rows to hold the true label with probability "
        f"{_COVERAGE}: sets of {held.sum(axis=1).mean():.2f} ranks on average hold it "
        f"in {covered.mean():.3f} of the other {rank.size} rows."
    )
    return html_notes([text])


def _importance(found: Explanation) -> str:
    """Return a table with a bar for each feature."""
    most = max(float(found.importance.max(initial=0.0)), 1e-300)
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{value:.4g} ± {error:.2g}</td>"
        f'<td style="width:40%">{html_bar(value / most)}</td></tr>'
        for name, value, error in zip(
            found.names, found.importance, found.standard_error, strict=True
        )
    )
    how = f"By {found.method}; {found.unit}."
    return f'<table style="width:100%">{rows}</table>' + html_notes([how])
