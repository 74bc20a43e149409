"""Importance of the features of a model: `explain` of every model."""

from __future__ import annotations  # numpy.random is slow to import

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._input.checks import check_count, resolve_rng
from .._input.features import read_rows_of
from .._input.frame import Frame, default_names
from .._input.immutable import read_only
from .._input.intervals import RankIntervals
from .._input.labels import ranks_of, read_labels
from .._input.types import Labels, Rng
from .._input.warning import warn
from .._model.column_names import innermost
from .._model.explanation import Explanation
from .._model.model import names_read
from .._model.training_rows import picked
from .._numerics.rows import take
from .._watch.progress import duration
from ..kernels.functions import kernel_class

_MANY = 50_000  # rows of which some are explained first, to forecast the time of all
_SOME = 8192
_LONG = 60.0  # seconds from which a warning says the time


def explain(
    model: Any, X: Any, y: Labels | None, n_repeats: int, rng: Rng
) -> Explanation:
    """Return the explanation of a model on rows; `Model.explain` documents it."""
    n_repeats = check_count("n_repeats", n_repeats)
    rng = resolve_rng(rng)
    (n,) = getattr(X, "shape", np.shape(X))[:1] or (0,)
    if n < 2:  # an importance is a spread over rows
        raise ValueError(
            f"X must have two rows or more to be explained, got {n}: pass the training "
            "or the test set"
        )
    if y is None:
        _forecast(model, X, model._score_terms, n)
    if y is None and (terms := model._score_terms(X)) is not None:
        names, values = terms
        return _sorted(
            "contributions", names, *_spread(values), "unit of the score", values
        )
    frame = _permutable(model, X)
    _forecast(model, frame, model.predict, n, frame.shape[1] * n_repeats)
    changes = _permuted(model, frame, y, n_repeats, rng)
    error = changes.std(axis=1) / np.sqrt(max(len(frame), 1)) / n_repeats
    names = frame.names or model.feature_names or default_names(frame.shape[1])
    what = "change of the prediction" if y is None else "increase of the MAE"
    return _sorted(
        "permutation",
        tuple(names),
        changes.mean(axis=1) / n_repeats,
        error,
        f"{what} in ranks",
    )


def _forecast(
    model: Any, X: Any, call: Callable[[Any], Any], n: int, repeats: int = 1
) -> None:
    """Warn if calls for many rows will take long, by the time of one for some."""
    if n <= _MANY:
        return
    some = picked(X, np.arange(_SOME))
    if some is None:
        some = take(read_rows_of(X, names_read(model)), slice(0, _SOME))
    began = time.perf_counter()
    call(some)
    seconds = (time.perf_counter() - began) * n / len(some) * repeats
    if seconds > _LONG:
        warn(
            f"explain will take about {duration(seconds)} for the {n} rows of X: pass "
            "a sample; a few hundred rows are enough",
            UserWarning,
        )


def _permutable(model: Any, X: Any) -> Frame:
    """Return the rows of X; TypeError unless their columns can be shuffled."""
    rows = read_rows_of(X, names_read(model))
    if not isinstance(rows, Frame):
        raise TypeError(
            "X must be dense for permutation importance: explain some of its rows as "
            "an array, X[:1000].toarray()"
        )
    if kernel_class(getattr(innermost(model), "kernel", None)).by_number:
        raise TypeError(
            "X holds values of a precomputed kernel, and the model has no features "
            "to explain: fit it to features with a kernel of ordinal.kernels"
        )
    return rows


def _sorted(
    method: str,
    names: Sequence[str],
    importance: np.ndarray,
    error: np.ndarray,
    unit: str,
    contributions: np.ndarray | None = None,
) -> Explanation:
    """Return an explanation with its features in the order of their importance."""
    order = np.argsort(-importance, kind="stable")
    return Explanation(
        method,
        tuple(names[j] for j in order),
        read_only(importance[order]),
        read_only(error[order]),
        unit,
        None if contributions is None else read_only(contributions[:, order]),
    )


def _spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standard deviations of columns, and their errors by the delta method."""
    n = max(len(values), 1)
    values = values - values.mean(axis=0)
    unit = np.abs(values).max(axis=0, initial=0.0)  # fourth powers may overflow
    unit[unit == 0] = 1.0
    values /= unit
    second, fourth = (values**2).mean(axis=0), (values**4).mean(axis=0)
    deviation = np.sqrt(second)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(np.maximum(fourth - second**2, 0.0) / n) / (2 * deviation)
    # Two equally frequent values have the error 0, apart from rounding.
    rounded = fourth - second**2 <= 1e-12 * fourth
    return unit * deviation, unit * np.where(rounded, 0.0, error)


def _permuted(
    model: Any, frame: Frame, y: Any, n_repeats: int, rng: np.random.Generator
) -> np.ndarray:
    """Return (d, n) changes of the predictions, summed over shuffles of each column.

    A change is the increase of the distance in ranks from the label, or the nearest one
    of an interval; without labels, the distance from the unshuffled prediction.
    """
    classes = np.asarray(model.classes)

    def predict(rows: Frame) -> np.ndarray:
        labels = read_labels(model.predict(rows), "predictions")
        return ranks_of(labels, classes, "predictions", "the classes of the model")

    before = predict(frame)
    first, last, base = before, before, np.zeros(len(frame))
    if y is not None:
        if isinstance(y, RankIntervals):
            first, last = y.ranks(classes, "y", "the classes of the model")
        else:
            labels = read_labels(y, "y")
            first = last = ranks_of(labels, classes, "y", "the classes of the model")
        if len(last) != len(frame):
            raise ValueError(
                f"y must have one label per row of X, {len(frame)}, got {len(last)}"
            )
        base = abs(before - np.clip(before, first, last))
    changes = np.zeros((frame.shape[1], len(frame)))
    for j in range(frame.shape[1]):
        for _ in range(n_repeats):
            values = frame.values.copy()
            values[:, j] = rng.permutation(values[:, j])
            shuffled = predict(replace(frame, values=values))
            error = abs(shuffled - np.clip(shuffled, first, last))
            changes[j] += error - base  # whole numbers add up exactly
    return changes
