"""Training data of a fit, read into memory or in chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._input.columns import Categories
from .._input.problem import Problem
from .first_pass import ChunkedProblem
from .remote import is_remote, remote_problem
from .source import has_blocks

_LARGE = 1 << 26  # bytes from which on a copy in double precision is avoided


def is_chunked(X: Any) -> bool:
    """Return whether fits that can do so read X in chunks, whatever its size."""
    return has_blocks(X) or isinstance(X, np.memmap) or is_remote(X)


def read_problem(
    name: str,
    X: Any,
    y: Any,
    *,
    chunks: bool = False,
    remote: bool = True,
    in_place: bool = False,
    missing: bool = False,
    categories: Categories | None = None,
    **labels: Any,
) -> Problem:
    """Read and validate training data.

    Parameters
    ----------
    name : str
        Name of the `fit_*` function, for messages.
    X, y, labels
        As for `Problem.from_arrays` or `ChunkedProblem.from_source`. A ChunkedProblem
        is returned as it is, with class weights; any other Problem has them already.
    chunks : bool
        Whether the fit reads rows in chunks.
    remote : bool
        Whether the fit takes dask collections if it reads rows in chunks.
    in_place : bool
        Whether a fit that reads rows in chunks also does so with a large array in
        single precision, of which a copy in double would take twice the memory.
    missing, categories
        As for `read_features`.

    Raises
    ------
    TypeError
        If X is a source or a dask collection, and the fit takes none.
    ValueError, TypeError
        As `Problem.from_arrays`.
    """
    if chunks and isinstance(X, ChunkedProblem):
        return X.with_class_weights(labels.get("class_weight"))
    if type(X) is Problem:  # by a fit that reads more of its table than the features
        return X
    if is_remote(X):
        _check_remote(name, chunks, remote)
        return remote_problem(X, y, **labels)
    stays = in_place and is_single(X) and X.nbytes >= _LARGE
    if chunks and (is_chunked(X) or stays):
        return ChunkedProblem.from_source(X, y, missing=missing, **labels)
    if has_blocks(X):
        raise TypeError(
            "X comes in chunks, which a fit reads for a model on a basis alone: pass "
            "how many rows that is to have, such as basis=300"
        )
    return Problem.from_arrays(X, y, missing=missing, categories=categories, **labels)


def _check_remote(name: str, chunks: bool, remote: bool) -> None:
    """Raise TypeError for a dask collection if the fit takes none."""
    if not chunks:
        raise TypeError(
            "X is a collection of dask, which a fit reads for a model on a basis "
            "alone: pass how many rows that is to have, such as basis=300"
        )
    if not remote:
        raise TypeError(
            f"X is a collection of dask, which {name} does not take: pass an array, a "
            "numpy.memmap, or an object with blocks()"
        )


def check_in_memory(name: str, X: Any) -> None:
    """Raise TypeError if X is a source or a dask collection."""
    if has_blocks(X) or is_remote(X):
        raise TypeError(f"X comes in chunks, and {name} takes rows in memory only")


def is_single(X: Any) -> bool:
    """Return whether X is a matrix in single precision."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float32
