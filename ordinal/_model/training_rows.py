"""Digests of some training rows, by which a model recognises them.

A model keeps digests of 64 of its training rows, evenly spaced among them. A pass over
all rows would take more than a hundredth of the time of a fast fit; these take some
tenths of a millisecond. A digest is that of the values and of the label of a row,
whatever holds them: 1, 1.0, True and the category "1" are the same, and so are rows of
a data frame, an array, a sparse matrix and a file.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import as_array
from .._input.features import read_features, read_rows_of
from .._input.frame import Frame
from .._input.immutable import read_only
from .._input.intervals import RankIntervals
from .._input.labels import label_text, lacks_label, read_labels
from .._input.sparse import CSR, is_sparse
from .._input.types import Matrix
from .._numerics.rows import content_hash, take

_KEPT = 64  # rows


class RowsUsed(NamedTuple):
    """Positions of the rows of the caller that a fit has used.

    Attributes
    ----------
    n : int
        Number of rows of the caller.
    positions : (k,) array of int, or None
        None for all rows.
    index : pandas.Index or None
        Index of these rows, if the caller's are in a data frame of pandas.
    """

    n: int
    positions: np.ndarray | None = None
    index: Any = None

    def taken(self, places: np.ndarray) -> RowsUsed:
        """Return some of these rows, by their places among them."""
        at, index = self.positions, self.index
        return RowsUsed(
            self.n,
            read_only(places if at is None else at[places]),
            None if index is None else index[places],
        )


def digests_of_some(
    X: Any,
    y: Any,
    names: tuple[str, ...] | None,
    response: Callable[[Any], Any] | None = None,
) -> tuple[np.ndarray | None, Any]:
    """Return sorted digests of some training rows, (k,), k <= 64, and their labels.

    `names` are the columns of the model. With a `response`, which returns the labels of
    rows of X, those picked are all that it reads, and y is not used. None stands for
    rows that cannot be picked by number, such as those of a source of chunks.
    """
    n = length_of(y if response is None else X)
    if not n:
        return None, None
    labels = None
    numbers = np.unique(np.linspace(0, n - 1, min(n, _KEPT)).astype(np.int64))
    try:
        rows = picked(X, numbers)
        if rows is None:
            return None, None
        labels = picked(y, numbers) if response is None else response(rows)
        if labels is None or length_of(labels) != len(numbers):
            return None, labels
        absent = lacks_label(as_array(labels, "y"))
        if absent.any():  # rows that the fit left out
            held = np.flatnonzero(~absent)
            rows, labels = picked(rows, held), picked(labels, held)
        plain = isinstance(rows, np.ndarray) and rows.dtype.kind in "biuf"
        read = read_features(rows, missing=True) if plain else read_rows_of(rows, names)
        found = digests(read, read_labels(labels, "y"))
    except (TypeError, ValueError, IndexError):  # a form that a fit alone can read
        return None, labels
    return read_only(np.sort(found)), labels


def share_of_training_rows(
    model: Any, rows: Frame | CSR, labels: np.ndarray
) -> float | None:
    """Return the share of the remembered training rows that are among these rows.

    None stands for a model that remembers none.
    """
    origin = getattr(model, "origin", None)
    if origin is None or origin.training_rows is None:
        return None
    names = model.feature_names
    if isinstance(rows, Frame) and names is not None and len(names) < rows.shape[1]:
        rows = rows.columns_of(names)
    return float(np.isin(origin.training_rows, digests(rows, labels)).mean())


def digests(rows: Frame | Matrix, labels: np.ndarray) -> np.ndarray:
    """Return the digest of each row with its label, (n,) uint64."""
    if labels.dtype.kind in "biuf":
        own = labels.astype(np.float64)
    else:
        known, place = np.unique(labels, return_inverse=True)
        own = _numbers_of(known)[place]
    if isinstance(rows, Frame):
        values = rows.values.copy()
        for j, levels in enumerate(rows.labels):
            if levels is not None:
                code = np.where(np.isnan(values[:, j]), levels.size, values[:, j])
                values[:, j] = _numbers_of(levels)[code.astype(np.intp)]
        rows = values
    return np.asarray(content_hash(rows) ^ content_hash(own[:, None], seed=1))


def _numbers_of(levels: np.ndarray) -> np.ndarray:
    """Return the numbers that stand for levels, and NaN for a missing value."""
    return np.array([*map(_number_of, map(label_text, levels.tolist())), np.nan])


def _number_of(text: str) -> float:
    """Return the number that a text shows, or one made of a digest of another text."""
    try:
        return float({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        bits = blake2b(text.encode(), digest_size=8).digest()
        return float(np.frombuffer(bits)[0])


def length_of(values: Any) -> int:
    """Return the number of rows or labels, or 0 where it is not known."""
    shape = getattr(values, "shape", None)
    if shape is not None:
        return shape[0] if shape and isinstance(shape[0], int) else 0
    return len(values) if hasattr(values, "__len__") else 0


def picked(values: Any, numbers: np.ndarray) -> Any:
    """Return rows by number in the type of the caller; None for a type without them.

    It is the one place that knows how each type of table or vector is indexed by row.
    """
    if isinstance(values, list | tuple):
        return [values[i] for i in numbers.tolist()]
    if isinstance(values, Frame):
        return values.rows(numbers)
    if hasattr(values, "iloc"):  # pandas
        return values.iloc[numbers]
    if is_sparse(values):
        made = values.tocsr() if hasattr(values, "tocsr") else CSR.from_any(values)
        return take(made, numbers)
    module = type(values).__module__.partition(".")[0]
    if module == "pyarrow":
        return values.take(numbers)
    if module == "polars" or isinstance(values, np.ndarray | RankIntervals):
        return values[numbers]
    return None
