"""Data beyond memory: rows of files in chunks, and their predictions.

A *source of blocks* is any object whose method `blocks()` begins anew at each call and
gives some rows at a time: (X, y) or (X, y, weight), or X alone for predictions. X is
what a fit takes, an array, a data frame or a sparse matrix, of the same columns each
time. Every call must give the same rows in the same order; a fit raises ValueError if
a later pass does not. `blocks` makes one of a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._files.chunks import TableBlocks
from ._files.table import STDIN, layout_of
from ._input.checks import as_path, check_flag, shown
from ._model.predicted import predicted, write_predicted

__all__ = ["blocks", "predictions", "write_predictions"]


def __dir__() -> list[str]:
    return __all__


def blocks(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    separator: str | None = None,
    decimal: str = ".",
) -> TableBlocks:
    """Return a source that reads a file in blocks of some megabytes.

    Parameters
    ----------
    path : path of a file of CSV, plain or gzipped, or of Parquet
        Parquet is read in parts where pyarrow is installed, and else as a whole.
    target : str, optional
        Column of the labels. Without it blocks are features alone, for predictions.
    weight : str, optional
        Column of the weights of rows.
    features : sequence of str, optional
        Columns of the features, which must be numbers. By default all others but
        `drop`.
    drop : sequence of str, optional
        Columns to leave out.
    separator : str, optional
        One character between the cells of text; by default a tab in files called .tsv,
        else a comma or, where that is the decimal mark, a semicolon.
    decimal : {".", ","}, default "."

    Returns
    -------
    object with `blocks()`
        Which opens the file anew at each call; nothing is read before. Words that are
        labels are words in every block if they are in the first one.

    Raises
    ------
    ValueError, TypeError
        If an argument is none of these. What is wrong with the file is a ValueError
        with the line and column, when these are read; a file that cannot be opened is
        an OSError then.

    See Also
    --------
    predictions : Predict the rows of a source block by block.
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
    path = as_path("path", path)
    if path == STDIN:
        raise ValueError("path must be a file: standard input can be read but once")
    layout_of(path, separator, decimal)  # for its errors
    for name, value in {"features": features, "drop": drop}.items():
        listed = isinstance(value, Sequence) and not isinstance(value, str)
        known = listed and all(isinstance(column, str) for column in value or ())
        if not (known or (value is None and name == "features")):
            raise ValueError(f"{name} must be columns by name, got {shown(value)}")
    for name, column in {"target": target, "weight": weight}.items():
        if not (column is None or isinstance(column, str)):
            raise ValueError(f"{name} must be a column, got {shown(column)}")
    chosen = None if features is None else tuple(features)
    return TableBlocks(path, target, weight, chosen, tuple(drop), separator, decimal)


def predictions(model: Any, X: Any, *, proba: bool = False) -> Iterator[np.ndarray]:
    """Predict the rows of a source block by block.

    Parameters
    ----------
    model : a model, also behind a preprocessor
    X : source of blocks, array such as a numpy.memmap, data frame, or path of a file
        The labels and weights of a source are not looked at. Of a file the columns are
        taken that the model was fitted on, by name.
    proba : bool, default False

    Yields
    ------
    (k,) labels, or (k, r) probabilities with `proba`
        Of the next k rows. When the iterator is closed or deleted, what it reads is
        closed.

    Raises
    ------
    ValueError, TypeError
        As `model.predict`; the message names the block. What is wrong with a file has
        its line and column.

    See Also
    --------
    write_predictions : Write the predictions of the rows of a source to a file.
    blocks : Return a source that reads a file in blocks of some megabytes.

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
    return (labels if chances is None else chances for labels, chances in rows)


def write_predictions(
    path: str | os.PathLike[str], model: Any, X: Any, *, proba: bool = False
) -> None:
    """Write the predictions of the rows of a source to a file.

    Parameters
    ----------
    path : path
        Of Parquet if it ends in .parquet, which pyarrow writes; else of CSV. The file
        is there whole or not at all.
    model, X
        As for `predictions`.
    proba : bool, default False
        Whether a column with the probability of each rank stands beside "prediction".

    Raises
    ------
    OSError
        The file cannot be written to.
    ValueError, TypeError
        As for `predictions`, or if pyarrow is needed and not installed.

    See Also
    --------
    predictions : Predict the rows of a source block by block.
    blocks : Return a source that reads a file in blocks of some megabytes.
    ordinal.load : Load a model from a file that its `save` method has written.

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
    write_predicted(path, model, X, check_flag("proba", proba))


def _check_model(model: Any) -> None:
    if not hasattr(model, "predict"):
        raise TypeError(f"model must have a method predict, got {shown(model)}")
