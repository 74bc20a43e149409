"""Arguments with one entry per row, `missing_labels=`, and labels like the caller's.

Arguments with one entry per row pass `Labelled.from_arguments`, which warns if they are
not in the order of X. Rows without a label are left out there if asked.
They are left out before anything else reads the rows, together with the entries of the
other arguments that have one per row. A model, search or comparison counts them in
`n_missing_labels`. A model also notes the type of its training labels, so that
predicted labels have the same type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from importlib.util import find_spec
from inspect import signature
from typing import Any, Literal, TypeVar, cast

import numpy as np

from .._input.checks import as_array, check_choice, listed, shown
from .._input.columns import (
    feature_names,
    index_of,
    is_frame,
    warn_of_other_order,
)
from .._input.frame import Frame
from .._input.immutable import read_only
from .._input.intervals import RankIntervals, labels_of_formula
from .._input.labels import is_ordered, lacks_label, ranks_of, read_labels
from .._input.sparse import is_sparse
from .._input.warning import warn
from .._rows.source import Block, has_blocks, is_remote, raw_blocks
from ..kernels.functions import kernel_class
from .model import Model, Origin
from .training_rows import RowsUsed, digests_of_some, length_of, picked

MissingLabels = Literal["error", "drop"]
BY_ROW = ("sample_weight", "groups", "offset", "cluster", "group_weight")

_INTERVAL = re.compile(r"([(\[])(.*), (.*)([)\]])")
_ROW = re.compile(r"(\brow (?:is )?)(\d+)")
_OTHER_ROWS = re.compile("basis|every row of cost")
_CLOSED = {"(]": "right", "[)": "left", "[]": "both", "()": "neither"}
_Fit = TypeVar("_Fit", bound=Callable[..., Any])
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Rows that have a label.

    Attributes
    ----------
    X, y : as the caller passed them, without the other rows
    by_row : dict
        Arguments with one entry per row.
    keep : (n,) array of bool, or None
        Whether each row of the caller has a label; None if nothing was left out.
    """

    X: Any
    y: Any
    by_row: dict[str, Any]
    keep: np.ndarray | None = None

    @property
    def n_missing(self) -> int:
        """Return the number of rows that were left out."""
        if isinstance(self.X, LabelledBlocks):
            return self.X.n_missing
        return 0 if self.keep is None else int(np.count_nonzero(~self.keep))

    def renumbered(self, splits: Any) -> Any:
        """Return splits with the numbers of the rows that are left.

        Numbers of other rows are dropped, and anything but pairs of row numbers is left
        as it is, such as a number of folds or a splitter, which sees the rows left.
        """
        if self.keep is None or hasattr(splits, "split") or not np.iterable(splits):
            return splits
        number, splits = np.cumsum(self.keep) - 1, list(splits)
        try:
            pairs = [[np.asarray(side) for side in split] for split in splits]
            if any((side < 0).any() for pair in pairs for side in pair):
                return splits
            kept = [[side[self.keep[side]] for side in pair] for pair in pairs]
            return [tuple(number[side] for side in pair) for pair in kept]
        except (IndexError, TypeError, ValueError):
            return splits  # whose error is that of the function that reads them

    @classmethod
    def from_arguments(
        cls,
        missing_labels: Any,
        X: Any,
        y: Any,
        options: Mapping[str, Any],
        **by_row: Any,
    ) -> Labelled:
        """Leave out rows without a label if `missing_labels` is "drop".

        Warn of each argument that has the index of X in another order, and of a column
        of X that has the name of y.

        The other `options` of a fit must not number rows.

        Raises
        ------
        ValueError, TypeError
            For another choice, for rows that stay where they are, or if no row is left.
        """
        check_choice("missing_labels", missing_labels, ("error", "drop"))
        warn_of_other_order(X, y=y, **by_row)
        if hasattr(y, "name") and not isinstance(X, Frame):  # of an outer fit
            warn_of_labels(X, y)
        if missing_labels == "error":
            return cls(X, y, by_row)
        table, labels = (X, y)
        if isinstance(X, str):
            table, labels = y, labels_of_formula(X, y)
        is_absent = labels is None and not has_blocks(X)
        if is_absent or isinstance(labels, RankIntervals):
            return cls(X, y, by_row)
        _check_numbers(options)
        if has_blocks(X):
            return cls(LabelledBlocks(X), y, by_row)
        if isinstance(X, np.memmap) or is_remote(X) or is_remote(y):
            raise TypeError(
                "missing_labels must be 'error' where X is a numpy.memmap or a "
                f"collection of dask, got {shown(X)}: drop the rows without a label "
                "first, or pass a source of chunks"
            )
        keep = ~lacks_label(as_array(labels, "y"))
        if keep.all():
            return cls(X, y, by_row)
        if not keep.any():
            raise ValueError(f"y has no label in any of its {keep.size} rows")
        by_row = {name: kept_rows(values, keep) for name, values in by_row.items()}
        table = kept_rows(table, keep)
        if isinstance(X, str):
            return cls(X, table, by_row, keep)
        return cls(table, kept_rows(y, keep), by_row, keep)


def number_as_caller(error: Exception, keep: np.ndarray | None) -> None:
    """Replace numbers among the rows to keep, in the message of an error, by those of
    the caller; messages about rows of a basis or of a cost matrix stay.
    """
    text = error.args[0] if len(error.args) == 1 else None
    if keep is None or not isinstance(text, str) or _OTHER_ROWS.match(text):
        return
    numbers = np.flatnonzero(keep).tolist()

    def replaced(found: re.Match[str]) -> str:
        row = int(found[2])
        return f"{found[1]}{numbers[row] if row < len(numbers) else row}"

    error.args = (_ROW.sub(replaced, text),)


@contextmanager
def numbered_as_caller(keep: np.ndarray | None) -> Iterator[None]:
    """Let errors of this context number rows as `number_as_caller` does."""
    try:
        yield
    except (TypeError, ValueError) as error:
        number_as_caller(error, keep)
        raise


class LabelledBlocks:
    """Source of the rows of another source that have a label.

    Attributes
    ----------
    n_missing : int
        Number of rows without a label in the last complete pass.
    """

    def __init__(self, source: Any):
        self._source, self.n_missing = source, 0

    def __repr__(self) -> str:
        return repr(self._source)

    def blocks(self) -> Iterator[Block]:
        """Yield blocks, without those that have no label at all."""
        n_missing = 0
        for block in raw_blocks(self._source):
            if block.y is None:
                yield block
                continue
            keep = ~lacks_label(as_array(block.y, "y"))
            n_missing += int(np.count_nonzero(~keep))
            if keep.all():
                yield block
            elif keep.any():
                yield Block(*(kept_rows(values, keep) for values in block))
        self.n_missing = n_missing


def warn_of_labels(X: Any, y: Any) -> None:
    """Warn of a column of a data frame X that has the name of the labels y."""
    label = getattr(y, "name", None)
    if isinstance(label, str) and is_frame(X) and label in (feature_names(X) or ()):
        warn(
            f"X has a column {shown(label)}, which is the name of y: if it holds the "
            "labels, models read them from it, and scores mean nothing; leave it out, "
            f"as X.drop(columns={listed([label])}) does, or rename y to keep it",
            UserWarning,
        )


def with_missing_labels(fit: _Fit) -> _Fit:
    """Add the parameter `missing_labels` to a function of (X, y, **options).

    An option `cv` may hold splits, which are renumbered.
    """
    parameters = signature(fit).parameters.values()
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]

    @wraps(fit)
    def labelled(*args: Any, missing_labels: Any = "error", **options: Any) -> Any:
        every = dict(zip(names, args, strict=False)) | options
        if len(args) > len(names) or not {"X", "y"} <= set(every):
            return fit(*args, **options)  # raises TypeError
        X, y = every.pop("X"), every.pop("y")
        by_row = {name: every.pop(name) for name in BY_ROW if name in every}
        rows = Labelled.from_arguments(missing_labels, X, y, every, **by_row)
        inner = every | {k: rows.renumbered(v) for k, v in every.items() if k == "cv"}
        try:
            made = fit(rows.X, rows.y, **rows.by_row, **inner)
        except (TypeError, ValueError) as error:
            number_as_caller(error, rows.keep)
            raise
        given = by_row | every
        if missing_labels != "error":
            given["missing_labels"] = missing_labels
            made = counted(made, rows)
        else:
            made = with_rows_used(made, rows)
        return with_origin(made, rows.X, rows.y, call_of(fit, X, given))

    return labelled  # type: ignore[return-value]


def counted(made: Any, rows: Labelled, merged: np.ndarray | None = None) -> Any:
    """Note in a new model, or in each of several, how many rows were left out, and
    those that were used; `merged` as for `with_rows_used`.
    """
    for one in made if isinstance(made, list | tuple) else [made]:
        # The model is changed in place, because a copy would lose its training rows.
        if rows.n_missing and hasattr(one, "n_missing_labels"):
            object.__setattr__(one, "n_missing_labels", rows.n_missing)
    return with_rows_used(made, rows, merged)


def with_rows_used(made: _T, rows: Labelled, merged: np.ndarray | None = None) -> _T:
    """Note in a new model, or in each of several, the rows of the caller that it used.

    `merged` are the numbers of those labelled rows that the fit has seen; default all.
    """
    table = rows.y if isinstance(rows.X, str) else rows.X
    n, index = length_of(table), index_of(table)
    seen = RowsUsed(n, None, index)
    if rows.keep is not None:
        seen = RowsUsed(rows.keep.size, read_only(np.flatnonzero(rows.keep)), index)
    if merged is not None:
        seen, n = seen.taken(merged), len(merged)
    models: Any = made if isinstance(made, list | tuple) else [made]
    for model in models:
        inner = model
        while isinstance(inner, Model) and isinstance(inner._wrapped, Model):
            inner = inner._wrapped
        if not isinstance(inner, Model):
            continue
        used = seen if n else None
        # A linear model notes itself which rows had missing values.
        own = getattr(inner, "_rows_used", None) if inner._notes_rows else None
        if own is not None and own.n != n:
            used = None
        elif own is not None and own.positions is not None:
            used = seen.taken(own.positions)
        for one in (inner, model):
            object.__setattr__(one, "_rows_used", used)
    return made


# Arguments that do not change a model
_ABOUT_THE_RUN = {"callback", "cache_mb", "n_threads", "progress", "verbose"}


def call_of(fit: Callable[..., Any], X: Any, options: Mapping[str, Any]) -> str | None:
    """Return a call of a fit as text, with what changes its model; None without a name.

    An argument with one entry per row, or another array, is shown by its type.
    """
    name = getattr(fit, "__name__", None)
    if name is None:
        return None
    given = [
        f"{key}={_argument(value)}"
        for key, value in options.items()
        if not (key in _ABOUT_THE_RUN or value is None)
    ]
    rows = [shown(X), "table"] if isinstance(X, str) else ["X", "y"]
    return f"{name}({', '.join(rows + given)})"


def _argument(value: Any) -> str:
    """Return an argument as text, which is the same in every process."""
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    if not isinstance(value, np.ndarray) and " at 0x" not in (text := shown(value)):
        return text if getattr(value, "shape", None) is None else type(value).__name__
    return type(value).__name__


def with_origin(made: _T, X: Any, y: Any, call: str | None = None) -> _T:
    """Note in a model, or in each of many, where it comes from, and return `made`.

    Without a `call`, a model keeps the one that is noted in it.
    """
    models: Any = made if isinstance(made, list | tuple) else [made]
    if not (models and all(isinstance(model, Model) for model in models)):
        return made
    names = models[0].feature_names
    if isinstance(X, str):
        found, labels = digests_of_some(y, None, names, partial(labels_of_formula, X))
    else:
        (found, _), labels = digests_of_some(X, y, names), y
    for model in models:
        by = model.origin.call if call is None and model.origin else call
        kind = None
        if not isinstance(labels, np.ndarray):
            # A function of the caller may return a model without classes.
            kind = _type_of_labels(labels, getattr(model, "classes", None))
        # The model is changed in place, because a copy would lose its training rows.
        object.__setattr__(model, "origin", Origin(by, kind, found))
    return made


def _type_of_labels(
    y: Any, classes: np.ndarray | None
) -> Literal["categorical", "interval"] | None:
    """Return whether labels are an ordered Categorical of pandas, also of intervals."""
    dtype: Any = getattr(y, "dtype", None)
    if type(dtype).__name__ != "CategoricalDtype" or not is_ordered(dtype):
        return None
    if type(dtype.categories).__name__ == "IntervalIndex":
        found = None if classes is None else _intervals(classes)
        if found is not None and dtype.categories.equals(found):
            return "interval"
    return "categorical"


def labels_like_those_given(model: Any, labels: Any, X: Any) -> np.ndarray:
    """Return labels of the rows of X in the form of the training labels.

    It is an array or an ordered Categorical; for a data frame, a Series with its index.

    A model from a file gives arrays where pandas is not installed.
    """
    origin = getattr(model, "origin", None)
    kind = origin and origin.label_type
    if kind is None or not find_spec("pandas"):
        return np.asarray(labels)
    import pandas

    classes = model.classes
    dtype = _category_type(kind, classes.dtype, tuple(classes.tolist()))
    if getattr(labels, "dtype", None) is dtype:  # of the model behind a preprocessor
        made = pandas.Categorical(labels, dtype=dtype)
    else:
        rank = ranks_of(read_labels(labels, "labels"), classes)
        made = pandas.Categorical.from_codes(rank, dtype=dtype)
    framed = isinstance(X, pandas.DataFrame)
    return cast(np.ndarray, pandas.Series(made, X.index) if framed else made)


# Making a type takes 0.2 ms, as long as the predictions of a row.
@lru_cache(maxsize=32)
def _category_type(kind: str, dtype: np.dtype, classes: tuple[Any, ...]) -> Any:
    """Return the type of an ordered Categorical of pandas with these categories."""
    import pandas

    texts = np.array(classes, dtype)
    known = _intervals(texts) if kind == "interval" else None
    return pandas.CategoricalDtype(texts if known is None else known, ordered=True)


def _intervals(texts: np.ndarray) -> Any:
    """Return the intervals of pandas that texts such as "(0, 10]" show, or None.

    Their ends are integers, floats or times.
    """
    import pandas

    parsed = [_INTERVAL.fullmatch(str(text)) for text in texts]
    found = [one for one in parsed if one is not None]
    sides = {(one[1], one[4]) for one in found}
    if len(found) < len(texts) or len(sides) != 1:
        return None
    closed = _CLOSED["".join(sides.pop())]
    ends = [one[k] for k in (2, 3) for one in found]
    kinds = (int, float, "datetime64[ns]")
    reads = [partial(np.array, dtype=kind) for kind in kinds]
    for read in (*reads, pandas.to_timedelta):
        try:
            values = read(ends)
        except (ValueError, OverflowError):
            continue
        half = len(values) // 2
        return pandas.IntervalIndex.from_arrays(
            values[:half], values[half:], closed=closed
        )
    return None


def kept_rows(values: Any, keep: np.ndarray) -> Any:
    """Return the rows to keep of an argument in the type of the caller.

    What does not have one row per entry of `keep` is left as it is.
    """
    if isinstance(values, Mapping):
        return {name: kept_rows(column, keep) for name, column in values.items()}
    if isinstance(values, str) or length_of(values) != keep.size:
        return values
    made = picked(values, np.flatnonzero(keep))
    return values[keep] if made is None else made


def _check_numbers(options: Mapping[str, Any]) -> None:
    """Raise ValueError for arguments that number the rows of the caller."""
    if kernel_class(options.get("kernel")).by_number:
        raise ValueError(
            "missing_labels must be 'error' where kernel is 'precomputed': drop the "
            "rows and columns without a label"
        )
    basis = options.get("basis")
    if basis is None or isinstance(basis, str | int | float | tuple):
        return
    if not is_sparse(basis) and np.ndim(basis) == 1:
        raise ValueError(
            "missing_labels must be 'error' where basis holds row numbers: pass the "
            f"rows themselves, or drop the rows without a label; got {shown(basis)}"
        )
