"""Page about a model on rows with known labels: `report` of every model."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from html import escape
from typing import Any, NamedTuple

import numpy as np

import ordinal

from .. import metrics
from .._files.writing import writing
from .._input.checks import as_array, as_path, enumerated, shown
from .._input.columns import as_table, index_of
from .._input.features import read_rows_of
from .._input.frame import Frame, date_of, days_of, times_of
from .._input.intervals import known_labels, labels_of_formula
from .._input.labels import lacks_label, ranks_of, read_labels
from .._model.column_names import innermost, with_names
from .._model.explanation import Explanation
from .._model.labelled import kept_rows
from .._model.model import names_read
from .._model.printing import Page, Table, html_notes, html_table, rows_left_out
from .._model.training_rows import share_of_training_rows
from .._numerics.rows import take
from ..plot.style import MOST_RANKS
from ..prediction_sets import conformal
from .figures import EXTRA, Figures

_EXPLAINED = 500  # rows: more would make permutations and effects slow
_SUMMED = 20_000  # rows of models whose score is a sum of terms
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
figure { margin: .5rem 0; background: #fff; border-radius: 6px; padding: .5rem; }
figure { width: fit-content; max-width: 100%; box-sizing: border-box; }
figure svg { display: block; max-width: 100%; height: auto; color: #000; }
dl { font-size: 90%; margin: .7rem 0; } dt { font-weight: 600; }
dd { margin: 0 0 .3rem 1rem; } .byline { opacity: .75; margin-top: -.5rem; }
.warning { border-left: 4px solid #d55e00; padding: .3rem .8rem; }
@media (max-width: 40rem) { table { font-size: 85%; } dd { margin-left: 0; }
 td, th { padding: 2px 5px !important; } }
@media print { body { max-width: none; font-size: 10pt; padding: 0; }
 figure, tr, dl div { break-inside: avoid; } h2 { break-after: avoid; }
 section { overflow: visible; margin-top: 1rem; } }
"""
_TERMS = {
    "baseline": "the best value that one prediction for all rows could have on these "
    "rows: their median label, their most frequent label, or the shares of the labels.",
    "mean absolute error (ranks)": "the mean number of ranks between the predicted and "
    "the true label; smaller is better.",
    "accuracy": "the share of rows whose predicted label is the true one.",
    "within one rank": "the share of rows whose predicted label is the true one or a "
    "neighbour of it.",
    "ranked probability score": "the squared error of the probabilities that the label "
    "is at most each rank, summed over ranks; smaller is better.",
    "95 % interval": "the range within which the value lies in 95 of 100 samples of "
    "rows, for a normal distribution of its error.",
    "confusion matrix": "the number of rows of each true label that got each predicted "
    "label; correct predictions are on the diagonal.",
    "calibration": "the agreement of predicted probabilities with observed "
    "frequencies: the predicted and the observed values of a line should be equal.",
    "prediction set": "neighbouring labels that contain the true one with a stated "
    "probability, the coverage, whatever the distribution of the rows.",
    "contributions": "the importance of a feature is the standard deviation of its "
    "term of the score over these rows.",
    "permutation": "the importance of a feature is the mean change of the predictions "
    "when its values are shuffled among the rows.",
    "effect": "the mean prediction over rows in which one feature is set to a value "
    "and the others are as they are.",
    "coefficient": "the change of the score per unit of a column, while the others are "
    "held; a positive one raises the predicted rank.",
    "convergence": "how the fit ended, and an upper bound on the distance from the "
    "optimum against the tolerance that was asked for.",
}


class Content(NamedTuple):
    """Content of a page: a model, and rows with their ranks and predictions.

    `left_out` says which rows of the caller are not among them.
    """

    model: Any
    rows: Any
    labels: np.ndarray
    rank: np.ndarray
    predicted: np.ndarray
    P: np.ndarray | None
    classes: np.ndarray
    left_out: str


def report(model: Any, X: Any, y: Any, path: Any, title: str) -> Page | None:
    """Return the page, or write it; `Model.report` documents it."""
    X, y = _table_and_labels(X, y)
    if path is not None:
        path = as_path("path", path)
    if not isinstance(title, str):
        raise TypeError(f"title must be text, got {shown(title)}")
    page, today = _read(model, X, y), _today()
    title = title or type(model).__name__
    body = "".join(
        f"<section><h2>{name}</h2>{html}</section>"
        for name, html in _parts(page).items()
    )
    byline = f"{type(model).__name__} of ordinal {ordinal.__version__}, {today}"
    text = Page(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta '
        'name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{escape(title)}</h1><p class="byline">{escape(byline)}</p>'
        f"{_origin(page)}{body}</body></html>"
    )
    if path is None:
        return text
    with writing(path) as file:
        file.write(text.encode("utf-8"))
    return None


def _read(model: Any, table: Any, y: Any) -> Content:
    """Return the rows, their ranks and their predictions, after checks."""
    classes = np.asarray(model.classes)
    y = as_array(known_labels("report", y), "y")
    n, left = len(y), [lacks_label(y)]
    if left[0].all():
        raise ValueError(f"y has no label in any of its {n} rows")
    index = index_of(table)
    if left[0].any():
        table, y = (kept_rows(given, ~left[0]) for given in (table, y))
    labels = read_labels(y, "y")
    rank = ranks_of(labels, classes, "y", "the classes of the model")
    rows = read_rows_of(with_names(table, model.feature_names), names_read(model))
    if len(rank) != rows.shape[0]:
        raise ValueError(
            f"y must have one label per row of X, which has {rows.shape[0]} rows, "
            f"got {rank.size} labels"
        )
    missing = np.isnan(rows.values).any(axis=1) if isinstance(rows, Frame) else None
    try:
        predicted = model.predict(rows)
    except ValueError:
        if missing is None or not missing.any() or missing.all():
            raise
        rows, labels, rank = take(rows, ~missing), labels[~missing], rank[~missing]
        predicted = model.predict(rows)
        left.append(np.zeros(n, bool))
        left[1][~left[0]] = missing
    predicted = ranks_of(read_labels(predicted, "predictions"), classes)
    try:
        P = np.asarray(model.predict_proba(rows))
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        P = None  # a model without probabilities: bad rows have raised above
    gone = np.flatnonzero(np.any(left, axis=0))
    which = enumerated(gone if index is None else index[gone], at_most=6)
    note = f"Left out: {rows_left_out(*(int(a.sum()) for a in left))}: rows {which}."
    return Content(
        model, rows, labels, rank, predicted, P, classes, note * bool(gone.size)
    )


def _table_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the table and the labels of a report, of which a formula names both."""
    if isinstance(X, os.PathLike) or (isinstance(X, str) and "~" not in X):
        raise TypeError(
            f"X must be rows or a formula, got {shown(X)}: the path of the file comes "
            "last, report(X, y, path)"
        )
    if not isinstance(X, str):
        return X, y
    table = as_table(y)
    labels = labels_of_formula(X, table)
    if labels is None:
        raise ValueError(
            f"y must be a data frame with the labels of the formula {shown(X)}, got "
            f"{shown(y)}"
        )
    return table, labels


def _today() -> str:
    """Return the date, or that of SOURCE_DATE_EPOCH, for reproducible files."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return datetime.fromtimestamp(int(given), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            "the environment variable SOURCE_DATE_EPOCH must be a number of seconds "
            f"since 1970, got {shown(given)}"
        ) from None


def _origin(page: Content) -> str:
    """Return whether the model was fitted to these rows."""
    share = share_of_training_rows(page.model, page.rows, page.labels)
    if share is None:
        return html_notes(
            ["It is not known whether the model was fitted to these rows."]
        )
    n = page.model.origin.training_rows.size
    kept = f"The model keeps digests of {n} of its training rows, to recognise them: "
    k = round(share * n)
    count = {0: "none of these is", n: "all of these are"}.get(k, f"{k} of these are")
    found = f"{kept}{count} among the rows here."
    if not share:
        return html_notes([found])
    text = (
        "The model was fitted to these rows"
        if share == 1
        else "The model was fitted to some of these rows, or to rows like them"
    )
    return (
        f'<p class="warning"><b>Warning.</b> {text}. {found} Errors on '
        "new rows are probably larger than those below.</p>"
    )


def _parts(page: Content) -> dict[str, str]:
    """Return the sections of the page by their titles."""
    model, rows = page.model, page.rows
    # Shuffled, because the rows of a table may be in the order of their labels.
    order = np.random.default_rng(0).permutation(page.rank.size)
    some = take(rows, np.sort(order[:_EXPLAINED]))
    draw = Figures(model, rows, page.labels, some)
    parts = {
        "Data": html_notes([page.left_out] * bool(page.left_out))
        + _data(rows, page.rank, page.classes),
        "Errors": _errors(page),
    }
    is_short = page.classes.size <= MOST_RANKS
    if is_short:
        parts["Confusion matrix"] = draw.confusion() + _confusion(page)
    if page.P is not None:
        by_threshold = draw.reliability() if is_short else ""
        parts["Calibration"] = by_threshold + _calibration(page.rank, page.P)
        parts["Prediction sets"] = _sets(model, rows, page.labels, order)
    try:
        is_sum = model._score_terms(some) is not None
        n = min(order.size, _SUMMED if is_sum else _EXPLAINED)
        found = model.explain(take(rows, np.sort(order[:n])))
        of = f", of {n} of the {order.size} rows" * (n < order.size)
        importance = draw.importance(found) + _importance(found, of)
        parts["Importance of the features"] = importance
        if effects := draw.effects(found):
            parts["Effects of the most important features"] = effects + _terms("effect")
    except (TypeError, ValueError) as error:  # sparse, a precomputed kernel, one row
        parts["Importance of the features"] = html_notes([str(error)])
    if hasattr(innermost(model), "parameter_names"):
        parts["Coefficients"] = _coefficients(model) + _terms("coefficient")
    origins = [getattr(known, "origin", None) for known in (model, innermost(model))]
    calls = [f"Call: {known.call}" for known in origins if known and known.call]
    call = html_notes(calls[:1])
    parts["Model"] = call + model._repr_html_() + _terms("convergence")
    if not draw.available:
        parts["Figures"] = html_notes([f"The figures of this page need {EXTRA}."])
    return parts


def _terms(*names: str) -> str:
    """Return what terms mean, in one sentence each."""
    entries = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(_TERMS[name].capitalize())}</dd></div>"
        for name in names
    )
    return f"<dl>{entries}</dl>"


def _data(rows: Any, rank: np.ndarray, classes: np.ndarray) -> str:
    """Return the counts of the labels, and a summary of every column."""
    counts = np.bincount(rank, minlength=classes.size)
    share = [f"{100 * count / max(rank.size, 1):.1f} %" for count in counts]
    labels = list(zip(classes.tolist(), counts.tolist(), share, strict=True))
    n, d = rows.shape
    text = html_notes([f"{n} rows, {d} features, {classes.size} ranks."])
    if len(labels) <= MOST_RANKS:
        text += html_table(("label", "rows", "share"), labels)
    else:
        left = f"Tables and figures by rank are for at most {MOST_RANKS} ranks."
        text += html_notes([left])
    if not isinstance(rows, Frame):
        return text
    columns = []
    for name, column in zip(rows.shown_names, rows, strict=True):
        known = column.values[np.isfinite(column.values)]
        missing, cells = column.values.size - known.size, ["", "", ""]
        is_date = column.kind == "date"
        if column.labels is not None:
            used, place = np.unique(known.astype(np.intp), return_inverse=True)
            dates = [date_of(str(column.labels[k])) for k in used]
            if is_date := len(dates) > 0 and None not in dates:
                known = days_of(np.array(dates, "datetime64[s]"))[place]
            else:
                cells[0] = f"{used.size} categories"
        if known.size and not cells[0]:
            found = np.quantile(known, [0.0, 0.5, 1.0])
            cells = [f"{v:.4g}" for v in found]
            if is_date:  # other numbers may lie beyond every date
                cells = [*map(str, times_of(found).astype("datetime64[D]"))]
        columns.append((name, missing, *cells))
    head = "feature", "missing", "minimum", "median", "maximum"
    return text + "<br>" + html_table(head, columns)


def _errors(page: Content) -> str:
    """Return a table of metrics, their confidence intervals and baselines."""
    rank, r = page.rank, page.classes.size
    distance = abs(page.predicted - rank).astype(float)
    away = abs(np.arange(r)[:, None] - rank)  # of each constant prediction
    rows = [
        (*_mean("mean absolute error (ranks)", distance), away.mean(axis=1).min()),
        (*_proportion("accuracy", distance == 0), (away == 0).mean(axis=1).max()),
        (
            *_proportion("within one rank", distance <= 1),
            (away <= 1).mean(axis=1).max(),
        ),
    ]
    if page.P is not None:
        steps = rank[:, None] <= np.arange(r - 1)
        name = "ranked probability score"
        squares, own = (
            ((below - steps) ** 2).sum(axis=1)
            for below in (page.P.cumsum(axis=1)[:, :-1], steps.mean(axis=0))
        )
        rows.append((*_mean(name, squares), own.mean()))
    lines = [(*row[:3], f"{row[3]:.4f}") for row in rows]
    table = html_table(("metric", "value", "95 % interval", "baseline"), lines)
    return table + _terms(*(row[0] for row in rows), "95 % interval", "baseline")


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


def _confusion(page: Content) -> str:
    """Return the confusion matrix as a table."""
    known = page.classes.tolist()
    every = np.arange(len(known))
    counts = metrics.confusion_matrix(page.rank, page.predicted, labels=every)
    rows = [
        [label, *(f"{v:g}" for v in row)]
        for label, row in zip(known, counts, strict=True)
    ]
    table = html_table(["true label", *known], rows)
    notes = html_notes(["Columns are the predicted labels."])
    return table + notes + _terms("confusion matrix")


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
    return html_table(head, rows) + _terms("calibration")


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
    return html_notes([text]) + _terms("prediction set")


def coefficient_table(model: Any) -> tuple[Table, str]:
    """Return the estimates of a linear model, and why they lack errors, if they do.

    Raises ValueError for a model without coefficients.
    """
    model = innermost(model)
    if not hasattr(model, "parameter_names"):
        raise ValueError(
            f"a {type(model).__name__} has no coefficients: pass a linear one, such as "
            "of fit_pom; `explain` shows the importances of the features of any model"
        )
    try:
        return model.table(), ""
    except ValueError as error:  # a penalised model, for example
        names = np.array(model.parameter_names, dtype=str)
        return Table({"name": names, "estimate": model.parameters}), str(error)


def _coefficients(model: Any) -> str:
    """Return the table of the estimates, without errors if the model has none."""
    table, note = coefficient_table(model)
    return table._repr_html_() + html_notes([note] * bool(note))


def _with_error(value: float, error: float) -> str:
    """Return an importance, and its standard error unless it is exact."""
    return f"{value:.4g} ± {error:.2g}" if error > 0 else f"{value:.4g}"


def _importance(found: Explanation, of_rows: str) -> str:
    """Return a table with a bar for each feature; `of_rows` says of which part."""
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
    how = f"By {found.method}{of_rows}; {found.unit}.{rest}"
    table = f'<table style="width:100%">{rows}</table>'
    return table + html_notes([how]) + _terms(found.method)


def _bar(share: float) -> str:
    """Return a bar that fills this share of its cell."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        '<div style="background:#4477aa;height:0.8em;min-width:1px;'
        f'width:{width:.1f}%"></div>'
    )
