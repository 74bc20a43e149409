"""Names of the columns of rows that are passed to models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._input.columns import is_frame, read_once
from .._input.features import read_rows_of
from .._input.frame import Frame
from .._input.sparse import CSR, NamedCSR, is_sparse
from .._watch.convergence import warn_of_unnamed


def with_names(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return rows that have the names of the columns of a model, if it has any.

    Functions that pass the rows of a caller on to several methods of a model call this
    first, so that an array instead of named columns is warned of once.
    """
    if names is None or is_frame(X):
        return X
    warn_of_unnamed(X, names)
    return named(CSR.from_any(X) if is_sparse(X) else read_once(X), names)


def named(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return rows of this package with the names of the columns of a model.

    Rows of another width are an error of the model.
    """
    if names is None or not isinstance(X, np.ndarray | list | tuple | CSR):
        return X
    if 0 in np.shape(X):
        return X  # no rows at all
    rows = read_rows_of(X, names)
    if rows.shape[1] != len(names):
        return X
    if isinstance(rows, Frame):
        return replace(rows, names=names)
    return NamedCSR(rows.data, rows.indices, rows.indptr, rows.shape)
