"""Training data of dask collections, which workers validate and hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .._input.checks import as_array, enumerated, shown
from .._input.columns import feature_names as names_of
from .._input.columns import frame_columns
from .._input.features import read_features
from .._input.immutable import read_only
from .._input.labels import (
    class_weights,
    classes_in_rank_order,
    declared_categories,
    is_by_value,
    ranks_of,
    read_labels,
    row_weights,
    sample_weights,
    total_weights,
)
from .._rows.first_pass import ChunkedProblem
from .._rows.source import Block, in_block, is_remote
from .._rows.sums import Moments, joined
from .rows import DaskRows, moments_of_chunks


def read_problem(
    X: Any,
    y: Any,
    *,
    classes: Any = None,
    sample_weight: Any = None,
    class_weight: Any = None,
) -> ChunkedProblem:
    """Read training data of dask: workers keep the features of the rows.

    This process holds ranks, weights and the moments of the columns.

    Parameters
    ----------
    X : (n, d) dask array or data frame
    y, sample_weight : (n,) dask array or series, or whatever fits make arrays of
    classes, class_weight
        As for `Problem.from_arrays`.

    Raises
    ------
    ValueError, TypeError
        As `Problem.from_arrays`; errors in rows name the block. ValueError if there is
        no client.
    """
    if y is None:
        raise ValueError("y must hold the labels of X, got None")
    _check_types(X)
    client = _client()
    if classes is None:
        classes = declared_categories(getattr(y, "_meta", y))
    by_value = classes if is_by_value(classes) else None
    classes = (
        None if classes is by_value else classes_in_rank_order(np.empty(0), classes)
    )
    # `_meta` is an empty frame: names and categories are known without computing.
    names = None if not hasattr(X, "columns") else names_of(X._meta)
    blocks, sizes = _blocks(client, X, y, sample_weight)
    starts = np.cumsum(sizes) - sizes
    map_all = partial(_map_blocks, client, blocks, starts)
    summaries = map_all(_summary, ranked=classes is None, by_value=by_value)
    first = summaries[0]
    # The other blocks are compared with block 0, so that a message can name a block.
    for k, summary in enumerate(summaries):
        with in_block(k, starts[k]):
            summary.check_like(first)
    if classes is None:
        seen = np.concatenate([summary.labels for summary in summaries])
        classes = classes_in_rank_order(seen, by_value)
    # Ranks are sent in the smallest type that holds them (see `_ranks`).
    rank = read_only(np.concatenate(map_all(_ranks, classes=classes)).astype(np.int32))
    if sample_weight is None:
        # A view of one number takes no memory per row.
        sample = np.broadcast_to(1.0, rank.shape)
    else:
        sample = sample_weights(np.concatenate(map_all(_weights)), rank.size)
    weight, factor = sample, None
    if class_weight is not None:
        weight = total_weights(sample, class_weight, classes, rank)
        factor = class_weights(class_weight, classes, rank, sample)
    moments = joined([part for summary in summaries for part in summary.moments or ()])
    rows = DaskRows(client, blocks, sizes, first.width, classes, factor, rank)
    fields = rows, rank, classes, weight, sample, names
    problem = ChunkedProblem(*fields, moments=moments)
    problem.check_classes()
    return problem


def _check_types(X: Any) -> None:
    """Raise TypeError if columns of a data frame have types that are no numbers."""
    types = X._meta.dtypes if hasattr(X, "columns") else {}
    wrong = [
        name
        for name, kind in dict(types).items()
        if hasattr(kind, "categories")
        or "str" in str(kind)
        or getattr(kind, "kind", "") in "mMU"
    ]
    if wrong:
        raise TypeError(
            f"X in dask must hold numbers, and {enumerated(wrong)} hold strings, "
            "categories or dates: encode them, as dask.dataframe.get_dummies does, or "
            "leave them out"
        )


def map_blocks(
    X: Any,
    y: Any,
    sample_weight: Any,
    call: Callable[[Block], Any],
    feature_names: Sequence[str] | None = None,
) -> list[Any]:
    """Return the results of a function of every block (X, y, weight) at its worker.

    The other arguments are those of `read_problem`; errors name the block.
    `feature_names` are the columns to select of a data frame.
    """
    if y is None:
        raise ValueError("y must hold the labels of X, got None")
    # Blocks lose the names of a frame, so that the order of columns must be right.
    if feature_names is not None and hasattr(X, "columns"):
        frame_columns(X._meta, feature_names)
        X = X[list(feature_names)]
    client = _client()
    blocks, sizes = _blocks(client, X, y, sample_weight)
    return _map_blocks(client, blocks, np.cumsum(sizes) - sizes, _called, call=call)


def _map_blocks(
    client: Any, blocks: Sequence[Any], starts: np.ndarray, answer: Any, **options: Any
) -> list[Any]:
    """Return the results of all blocks, or raise the error of the first that failed."""
    answers = client.gather(client.map(answer, blocks, pure=False, **options))
    for k, answer in enumerate(answers):
        if isinstance(answer, Exception):
            with in_block(k, starts[k]):
                raise answer
    return list(answers)


def _client() -> Any:
    """Return the present client of dask; ValueError without one."""
    try:
        return import_module("distributed").get_client()
    except ValueError:
        raise ValueError(
            "X is a dask collection, which needs a client: make one by "
            "distributed.Client(), or pass X.compute()"
        ) from None


def _blocks(client: Any, X: Any, y: Any, weight: Any) -> tuple[list[Any], np.ndarray]:
    """Return futures of blocks (X, y, weight), and the number of rows of each."""
    dask: Any = import_module("dask")
    da: Any = import_module("dask.array")
    X = _array(X)
    if X.ndim != 2:
        raise ValueError(f"X must be 2-dimensional, got shape {X.shape}")
    # All columns of a row must be at one worker.
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    parts = [X]
    for name, column in (("y", y), ("sample_weight", weight)):
        if column is None:
            continue
        if is_remote(column):
            column = _array(column)
        else:
            column = da.from_array(as_array(column, name))
        if column.shape != X.shape[:1]:
            raise ValueError(
                f"{name} has shape {column.shape}, expected ({X.shape[0]},) as X"
            )
        # Labels and weights are stored with their rows, so no worker asks another one.
        parts.append(column.rechunk(X.chunks[:1]))
    columns = [part.to_delayed().ravel().tolist() for part in parts]
    held = [dask.delayed(Block)(*block) for block in zip(*columns, strict=True)]
    return list(client.compute(held)), np.array(X.chunks[0])


def _array(X: Any) -> Any:
    """Return a dask array of known shape."""
    # A pandas Categorical is no numpy array, which a block must be.
    if hasattr(getattr(X, "dtype", None), "categories"):
        X = X.astype(object)
    if hasattr(X, "to_dask_array"):
        return X.to_dask_array(lengths=True)
    if not hasattr(X, "chunks"):
        raise TypeError(f"X must be a dask array or data frame, got {shown(X)}")
    return X if not np.isnan(X.shape).any() else X.compute_chunk_sizes()


class _Summary(NamedTuple):
    """Columns, labels, and moments of the chunks of a dense block."""

    width: int
    labels: np.ndarray
    moments: list[Moments | None] | None

    def check_like(self, first: _Summary) -> None:
        """Raise TypeError or ValueError unless the columns match those of block 0."""
        if self.width != first.width:
            raise ValueError(
                "all blocks of X must have the same number of features, got "
                f"{self.width} in one and {first.width} in block 0"
            )
        if (self.moments is None) != (first.moments is None):
            raise TypeError("X must be sparse in all blocks, or in none")


# Functions that workers call. They return errors instead of raising them, so that the
# client finds the first block that failed.


def _summary(block: Block, ranked: bool, by_value: Any) -> _Summary | Exception:
    """Validate a block; if `ranked`, its labels must have an order by themselves.

    `by_value` is None, or classes="values".
    """
    try:
        X, labels = read_features(block.X), read_labels(block.y, "y")
        n = X.shape[0]
        if ranked:
            labels = classes_in_rank_order(labels, by_value)
        weight = np.ones(n) if block.weight is None else row_weights(block.weight, n)
    except (ValueError, TypeError) as error:
        return error
    moments = moments_of_chunks(X, weight)
    return _Summary(X.shape[1], np.unique(labels), moments)


def _called(block: Block, call: Callable[[Block], Any]) -> Any:
    """Return the result of a function of a block, or its error."""
    try:
        return call(block)
    except (ValueError, TypeError) as error:
        return error


def _ranks(block: Block, classes: np.ndarray) -> np.ndarray | Exception:
    """Return the ranks of the labels of a block."""
    try:
        rank = ranks_of(read_labels(block.y, "y"), classes)
    except (ValueError, TypeError) as error:
        return error
    # A byte per row instead of four is sent to the client.
    return rank.astype(np.min_scalar_type(classes.size))


def _weights(block: Block) -> np.ndarray:
    """Return the weights of the rows of a block."""
    return row_weights(block.weight, block.X.shape[0])
