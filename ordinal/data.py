"""Data beyond memory: rows of files in chunks, and their predictions.

A source of chunks is any object whose method `blocks()` returns an iterator over
chunks of rows: (X, y) or (X, y, weight), or X alone for predictions. X is an array, a
data frame or a sparse matrix, with the same columns in each chunk. Every call must
return the same rows in the same order; a fit raises ValueError if a later pass does
not. The function `blocks` makes a source from a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._files.chunks import TableBlocks
from ._files.table import check_rereadable, layout_of
from ._input.checks import as_path, check_flag, shown, with_suggestions
from ._model.predicted import predicted, write_predicted

__all__ = ["blocks", "predictions", "write_predictions"]


def __dir__() -> list[str]:
    return __all__


@with_suggestions
def blocks(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
) -> TableBlocks:
    """Return a source that reads a file in chunks of a few megabytes.

    Parameters
    ----------
    path : path of a file of CSV, plain or gzipped, or of Parquet
        Parquet files need pyarrow, which also reads large CSV files faster.
    target : str, optional
        Column of the labels. Without it, chunks hold only features, for predictions.
    weight : str, optional
        Column of the weights of the rows.
    features : sequence of str, optional
        Columns of the features, which must be numeric. Default: all other columns
        except `drop`.
    drop : sequence of str, optional
        Columns to leave out.
    separator : str, optional
        Character that separates the cells of a CSV file. Default: a tab for files named
        .tsv, otherwise a comma, or a semicolon if the decimal mark is a comma; where
        the first line lacks it, the comma, semicolon, tab or bar that it has.
    decimal : {".", ","}, default "."
    encoding : str, default "utf-8"
        Encoding of text, such as "cp1252".

    Returns
    -------
    object with `blocks()`
        Each call of `blocks()` opens the file again; nothing is read before. If labels
        are strings in the first chunk, they are strings in all chunks.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid. Errors in the file are raised when it is read:
        ValueError with the line and column, or OSError if it cannot be opened.

    See Also
    --------
    predictions : Predict the rows of a source chunk by chunk.
    write_predictions : Write the predictions of the rows of a source to a file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "ratings.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("size,age,stars\\n1.5,3,1\\n2.5,4,2\\n")
    ...     source = blocks(path, target="stars")
    ...     for X, y in source.blocks():
    ...         print(X.shape, y.tolist())
    (2, 2) [1, 2]
    """
    if isinstance(path, list | tuple):
        raise TypeError(
            f"path must be one file, got {shown(path)}: join the files, or pass an "
            "object whose blocks() yields those of each file"
        )
    path = as_path("path", path)
    check_rereadable("path must be", path)
    layout_of(path, separator, decimal, None, encoding)  # for its errors
    _check_names("features", () if features is None else features)
    _check_names("drop", drop)
    for name, column in {"target": target, "weight": weight}.items():
        if not (column is None or isinstance(column, str)):
            raise ValueError(f"{name} must be a column, got {shown(column)}")
    chosen = None if features is None else tuple(features)
    return TableBlocks(
        path,
        target,
        weight,
        chosen,
        tuple(drop),
        separator,
        decimal,
        encoding=encoding,
    )


@with_suggestions
def predictions(model: Any, X: Any, *, proba: bool = False) -> Iterator[np.ndarray]:
    """Predict the rows of a source chunk by chunk.

    Parameters
    ----------
    model : a model, also behind a preprocessor
    X : source of blocks, array such as a numpy.memmap, data frame, or path of a file
        Labels and weights of a source are ignored. The columns of a file are found by
        the names of those that the model was fitted on.
    proba : bool, default False
        Whether to predict probabilities instead of labels.

    Yields
    ------
    (k,) labels, or (k, r) probabilities with `proba`
        Predictions of the next k rows. When the iterator is closed or deleted, it
        closes the file or source that it reads.

    Raises
    ------
    ValueError, TypeError
        As in `model.predict`; the message names the chunk, and the line and column of
        an error in a file.

    See Also
    --------
    write_predictions : Write the predictions of the rows of a source to a file.
    blocks : Return a source that reads a file in chunks of a few megabytes.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians()
    >>> model = ordinal.fit_svorim(X, y)
    >>> bool((np.concatenate(list(predictions(model, X))) == model.predict(X)).all())
    True
    """
    proba = check_flag("proba", proba)
    _check_model(model)
    rows = predicted(model, X, proba)
    return (made.labels if made.proba is None else made.proba for made in rows)


@with_suggestions
def write_predictions(
    path: str | os.PathLike[str],
    model: Any,
    X: Any,
    *,
    proba: bool = False,
    keep: Sequence[str] = (),
) -> None:
    """Write the predictions of the rows of a source to a file.

    Parameters
    ----------
    path : path
        Path of the file, which is written atomically: as Parquet by pyarrow if the path
        ends in .parquet, otherwise as CSV.
    model, X
        As for `predictions`.
    proba : bool, default False
        Whether to write the probability of each rank in further columns after
        "prediction".
    keep : sequence of str, default none
        Columns of a file or data frame, such as an id, that are written before
        "prediction".

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError, TypeError
        As for `predictions`; also if pyarrow is needed and not installed.

    See Also
    --------
    predictions : Predict the rows of a source chunk by chunk.
    blocks : Return a source that reads a file in chunks of a few megabytes.
    ordinal.load : Load a model from a file written by its method `save`.

    Examples
    --------
    >>> import ordinal
    >>> from tempfile import TemporaryDirectory
    >>> X, y = ordinal.datasets.make_gaussians()
    >>> model = ordinal.fit_svorim(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "predicted.csv")
    ...     write_predictions(path, model, X[:2])
    ...     with open(path) as file:
    ...         print(file.read().split())
    ['prediction', '1', '1']
    """
    _check_model(model)
    _check_names("keep", keep)
    columns, rows = tuple(dict.fromkeys(keep)), X
    if columns and isinstance(X, str | os.PathLike):
        rows = blocks(X, drop=columns)  # which are no features
    write_predicted(path, model, rows, check_flag("proba", proba), columns)


def _check_names(argument: str, value: Any) -> None:
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not (listed and all(isinstance(column, str) for column in value)):
        raise ValueError(f"{argument} must be columns by name, got {shown(value)}")


def _check_model(model: Any) -> None:
    if not hasattr(model, "predict"):
        raise TypeError(f"model must have a method predict, got {shown(model)}")
