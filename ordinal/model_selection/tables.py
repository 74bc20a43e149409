"""Tables of a search, kept as a matrix where there are only numbers, or as a
record of columns where there are words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from itertools import compress
from typing import Any

import numpy as np

from .._input.checks import check_flag, enumerated, shown
from .._input.features import read_features, read_frame_of
from .._input.frame import Frame
from .._input.problem import Problem
from .._input.sparse import CSR, is_sparse
from .._model.registry import Content, method_of, unwrapped
from .._rows.first_pass import ChunkedProblem
from .._rows.remote import is_remote, remote_problem
from .._rows.rows import Rows
from .._rows.source import has_blocks
from ..kernels.functions import on_basis
from ..preprocessing import Standardizer, TablePreprocessor
from ..preprocessing.joined import Preprocess, preprocess_for
from ..preprocessing.scaling import standardizer_of

_FILLED = "X is sparse, and standardising would fill it: standardize=False"
_ANYTHING: Set[Content] = frozenset({"missing", "categories", "sparse"})


def chosen_preprocess(
    fit: Callable[..., Any], standardize: bool | None, preprocess: Any
) -> Preprocess | None:
    """Return the preprocessor of a search, fitted to the training rows of each fold.

    The default is a Standardizer, unless the method does not depend on scale.
    """
    if standardize is not None:
        standardize = check_flag("standardize", standardize)
    if preprocess is not None:
        how = preprocess_for(fit, preprocess)
        if standardize is not None:
            raise ValueError(
                "standardize is an argument of the TablePreprocessor where there is one"
            )
        return how
    method = method_of(unwrapped(fit)[0])
    if standardize is None:
        standardize = method is None or not method.scale_free
    return Standardizer if standardize else None


def read_table(
    X: Any,
    fit: Callable[..., Any],
    given: Mapping[str, Any],
    preprocess: Preprocess | None,
) -> tuple[np.ndarray | CSR | Frame, tuple[str, ...] | None]:
    """Return the table of a search, and its names. NaN is what is missing.

    Raises
    ------
    ValueError, TypeError
        If it cannot be read, or holds what the fit, or what comes before it, does not
        take; the message names the columns.
    """
    if is_sparse(X):
        if preprocess is not None:
            raise TypeError(_FILLED)
        return read_features(X), None
    columns = given.get("categorical", ())
    if isinstance(preprocess, TablePreprocessor):
        columns = (*preprocess.categorical, *preprocess.order)
    table = read_frame_of(X, columns)
    method = method_of(unwrapped(fit)[0])
    accepts, taker = _ANYTHING, ""
    if preprocess is Standardizer:
        accepts, taker = frozenset(), "standardising"
    elif preprocess is None and method is not None:
        accepts, taker = method.accepts_with(given), f"fit_{method.name}"
    _check_content(table, accepts, taker)
    # a function of the caller's is given a plain array wherever that will do
    has_use = "categories" in accepts and (preprocess is not None or method is not None)
    return (table if has_use or not table.is_of_numbers else table.values), table.names


def _check_content(table: Frame, accepts: Set[Content], taker: str) -> None:
    """Raise ValueError that names the columns of words and of gaps, if any are refused,
    and says what helps.
    """
    names = table.shown_names
    content: dict[Content, list[bool]] = {
        "categories": [labels is not None for labels in table.labels],
        "missing": np.isnan(table.values).any(axis=0).tolist(),
    }
    found = [
        f"{what.replace('missing', 'missing values')} in {enumerated(where)}"
        for what, held in content.items()
        if (where := list(compress(names, held))) and what not in accepts
    ]
    if found:
        raise ValueError(
            f"X holds {' and '.join(found)}, and {taker} takes finite numbers alone: "
            "pass preprocess=ordinal.preprocessing.TablePreprocessor()"
        )


def read_rows(
    X: Any,
    y: Any,
    fit: Callable[..., Any],
    given: Mapping[str, Any],
    preprocess: Preprocess | None,
    classes: Any,
    sample_weight: Any,
) -> tuple[Problem, np.ndarray | CSR | Frame | Rows, tuple[str, ...] | None]:
    """Return the rows of a search: their labels and weights, the table, and its names.

    A source of blocks is read once here, and again by every fit; so is a memmap that
    the fits read so. The rows of dask stay where they are.

    Raises
    ------
    ValueError, TypeError
        As `read_table`. Blocks are for fits of this package, and numbers alone.
    """
    labels: dict[str, Any] = {"classes": classes, "sample_weight": sample_weight}
    kernel = given.get("kernel", "rbf")
    method = method_of(unwrapped(fit)[0])
    without = method is not None and method.reads_chunks
    mapped = isinstance(X, np.memmap) and (
        without or on_basis(given.get("basis"), kernel)
    )
    remote = is_remote(X)
    if not (mapped or remote or has_blocks(X)):
        table, names = read_table(X, fit, given, preprocess)
        values = table.values if isinstance(table, Frame) else table
        return Problem.from_arrays(values, y, missing=True, **labels), table, names
    if method is None:
        raise TypeError(
            "X comes in chunks, which fits of this package alone read: fit is "
            f"{shown(fit)}"
        )
    if preprocess not in (None, Standardizer):
        raise ValueError(
            "preprocess must be None where X is read in chunks: standardize scales "
            "its features"
        )
    read = remote_problem if remote else ChunkedProblem.from_source
    problem = read(X, y, **labels)
    if preprocess is Standardizer and problem.moments is None:
        raise TypeError(_FILLED)
    return problem, problem.X, problem.feature_names


def has_no_weights(problem: ChunkedProblem) -> bool:
    """Return whether chunked rows came without weights, which are then one number."""
    return problem.sample_weight.strides == (0,)


def chunked_part(
    problem: ChunkedProblem, train: np.ndarray, standardize: bool
) -> tuple[ChunkedProblem, Standardizer | None]:
    """Return some rows as a fit reads them, standardised by their own moments if asked
    for.
    """
    part = problem if train.size == problem.n_samples else problem.subset(train)
    part = part.with_moments()
    if not standardize or part.moments is None:
        return part, None
    standardizer = standardizer_of(part.moments, part.feature_names)
    moments = part.moments.standardized(standardizer.mean, standardizer.scale)
    return part.transformed(standardizer.transform, moments), standardizer
