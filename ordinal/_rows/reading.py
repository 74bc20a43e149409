"""Reading of training rows, whole or in chunks: from memory, sources or workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from .._input.checks import shown
from .._input.columns import Categories
from .._input.problem import Problem
from .._input.sparse import is_sparse
from .._numerics.memory import check_memory
from .first_pass import ChunkedProblem, source_of
from .source import CHUNK, Block, has_blocks, in_block, is_remote, raw_blocks

_LARGE = 1 << 26  # bytes of an array in single precision that is read in place


def comes_in_blocks(X: Any) -> bool:
    """Return whether X is a source or a dask collection."""
    return type(X) is not np.ndarray and (has_blocks(X) or is_remote(X))


def is_chunked(X: Any) -> bool:
    """Return whether fits that can do so read X in chunks, whatever its size."""
    # Most rows are plain arrays, about which nothing else needs to be asked.
    return type(X) is not np.ndarray and (
        isinstance(X, np.memmap) or comes_in_blocks(X)
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings by which a fit reads its rows.

    Attributes
    ----------
    chunks : bool or None
        Whether the fit reads rows in chunks. None is for a method that never does, and
        False for a method that does so only if it fits a model on a basis.
    remote : bool
        Whether the fit accepts dask collections if it reads rows in chunks.
    whole : bool
        Whether a mapped file is read into memory, because the fit needs all of its
        rows at once; a source is read in chunks nevertheless.
    in_place : bool
        Whether a fit that reads rows in chunks also does so with a large array in
        single precision, of which a copy in double would take twice the memory.
    missing, categories
        As for `read_features`.
    """

    chunks: bool | None = None
    remote: bool = True
    in_place: bool = False
    missing: bool = False
    whole: bool = False
    categories: Categories | None = None


def read_problem(name: str, X: Any, y: Any, reading: Reading, **labels: Any) -> Problem:
    """Read and validate training data.

    Parameters
    ----------
    name : str
        Name of the `fit_*` function, for messages.
    reading : Reading
    X, y, labels
        As for `Problem.from_arrays` or `ChunkedProblem.from_source`. A ChunkedProblem
        is returned as it is, with class weights.

    Raises
    ------
    TypeError
        If X is a source or a dask collection, and the fit accepts none.
    ValueError, TypeError
        As `Problem.from_arrays`.
    """
    chunks, missing = reading.chunks, reading.missing
    if chunks and isinstance(X, ChunkedProblem):
        return X.with_class_weights(labels.get("class_weight"))
    if chunks is None:
        check_in_memory(name, X)
    in_blocks = comes_in_blocks(X)
    if in_blocks and is_remote(X):
        _check_remote(name, bool(chunks), reading.remote)
        return read_chunks(X, y, **labels)
    stays = reading.in_place and is_single(X) and X.nbytes >= _LARGE
    if chunks and (in_blocks or (is_chunked(X) and not reading.whole) or stays):
        return read_chunks(X, y, missing=missing, **labels)
    if in_blocks:
        raise TypeError(
            "X comes in chunks, from which only a model on a basis can be fitted: "
            "pass the number of its rows, such as basis=300"
        )
    return Problem.from_arrays(
        X, y, missing=missing, categories=reading.categories, **labels
    )


def _back_end() -> ModuleType:
    """Import the package that reads dask collections, which nothing else imports."""
    from .._dask import reading

    return reading


def read_chunks(X: Any, y: Any, **labels: Any) -> ChunkedProblem:
    """Read and validate training data that stay in chunks, wherever these are.

    The options are those of `ChunkedProblem.from_source`, without `missing` where X is
    a dask collection.
    """
    if is_remote(X):
        problem: ChunkedProblem = _back_end().read_problem(X, y, **labels)
        return problem
    return ChunkedProblem.from_source(X, y, **labels)


def map_blocks(
    X: Any,
    y: Any,
    sample_weight: Any,
    call: Callable[[Block], Any],
    classes: Any,
    feature_names: Sequence[str] | None,
) -> list[Any]:
    """Return the results of a function of all blocks (X, y, weight), at their workers.

    Parameters
    ----------
    X, y, sample_weight
        As for `read_chunks`.
    call : callable
        Function of a Block; its errors name the block.
    classes
        Declared classes, or None.
    feature_names : sequence of str, or None
        Columns that the function needs, in this order. Blocks of dask data frames are
        arrays of these; blocks of sources are as they come.
    """
    if is_remote(X):
        found: list[Any] = _back_end().map_blocks(
            X, y, sample_weight, call, feature_names
        )
        return found
    source, _ = source_of(X, y, classes, sample_weight)
    results, start = [], 0
    with closing(raw_blocks(source)) as blocks:
        for number, block in enumerate(blocks):
            with in_block(number, start):
                results.append(call(block))
            start += np.shape(block.y)[0]
    return results


def _check_remote(name: str, chunks: bool, remote: bool) -> None:
    """Raise TypeError for a dask collection if the fit accepts none."""
    if not chunks:
        raise TypeError(
            "X is a dask collection, from which only a model on a basis can be "
            "fitted: pass the number of its rows, such as basis=300"
        )
    if not remote:
        raise TypeError(
            f"X is a dask collection, which {name} does not accept: pass an array, "
            "a numpy.memmap, or an object with blocks()"
        )


def check_in_memory(name: str, X: Any) -> None:
    """Raise TypeError if X is a source or a dask collection."""
    if comes_in_blocks(X):
        raise TypeError(
            f"X comes in chunks, and {name} accepts rows in memory only: pass an "
            "array, or fit a method that reads chunks, such as fit_pom, or fit_svorim "
            "on a basis"
        )


def read_in_chunks(X: Any, given: Mapping[str, tuple[Any, bool]]) -> bool:
    """Return whether X is read in chunks.

    Parameters
    ----------
    X : training data
    given : mapping
        Of rules, such as "solver must be 'lbfgs'", to the option and whether it breaks
        the rule.

    Raises
    ------
    ValueError
        If X is read in chunks and an option needs all rows at once.
    """
    chunked = is_chunked(X)
    for rule, (value, is_broken) in given.items():
        if chunked and is_broken:
            raise ValueError(f"{rule} where X is read in chunks, got {shown(value)}")
    return chunked


def check_width(name: str, X: Any) -> None:
    """Raise MemoryError for sparse rows that are too wide to be made dense in chunks.

    For a method with tables per column, of about a kilobyte each.
    """
    if is_sparse(X):
        n, d = X.shape
        needed = float(d) * (1024 + 20 * min(n, CHUNK))
        check_memory(name, needed, f"{d} columns of sparse rows, a chunk at a time")


def is_single(X: Any) -> bool:
    """Return whether X is a matrix in single precision."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float32
