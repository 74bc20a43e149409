"""Models over support rows: what they keep of the training rows, and how they score."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._input.sparse import CSR, frozen
from .._kernel_matrix.choice import takes_missing
from .._kernel_matrix.tiles import Evaluator
from .._numerics.rows import take
from .._numerics.threads import resolve_n_threads
from ..kernels import Precomputed
from .model import read_for


def support_rows(kernel: Any, X: np.ndarray | CSR, rows: np.ndarray) -> Any:
    """What a kernel model keeps of its training rows: for a precomputed kernel their
    numbers, else the rows."""
    if isinstance(kernel, Precomputed):
        return frozen(rows.astype(np.int64))
    support = take(X, rows)
    return support if isinstance(support, CSR) else frozen(support)


def decision(model: Any, X: Any) -> np.ndarray:
    """The `decision_function` of a kernel model, from k(X, support) @ coef.

    Raises ValueError or TypeError as `read_features`.
    """
    X = read_for(model, X, missing=takes_missing(model.kernel))
    n_threads = resolve_n_threads(None)
    values = Evaluator(model.kernel, X, model.support, n_threads)
    return np.asarray(model._decided(values.product(model._columns())))


def decisions(
    models: Sequence[Any], used: Sequence[np.ndarray], X: np.ndarray | CSR, X_test: Any
) -> Sequence[np.ndarray | None]:
    """What each model's `decision_function` gives for `X_test`, or None without it.

    The models are of one kernel, and their support rows the rows `used` of X, so that
    k(X_test, X) serves them all.
    """
    if X_test is None or isinstance(models[0].kernel, Precomputed):
        return [None] * len(models)
    columns = [model._columns() for model in models]
    ends = np.cumsum([c.shape[1] for c in columns])
    coef = np.zeros((len(X), ends[-1]))
    for rows, c, end in zip(used, columns, ends, strict=True):
        coef[rows, end - c.shape[1] : end] = c
    some = np.flatnonzero(coef.any(axis=1))
    values = Evaluator(models[0].kernel, X_test, take(X, some))
    sums = np.split(values.product(coef[some]), ends[:-1], axis=1)
    return [model._decided(part) for model, part in zip(models, sums, strict=True)]


def check_support(support: Any, kernel: Any, m: int, n_features: int) -> None:
    """Raise ValueError unless these are m support rows as `support_rows` makes them."""
    if isinstance(kernel, Precomputed):
        if (
            isinstance(support, CSR)
            or support.shape != (m,)
            or support.dtype.kind != "i"
            or not ((support >= 0) & (support < n_features)).all()
        ):
            raise ValueError("support must number training rows")
    elif support.shape != (m, n_features) or (
        not isinstance(support, CSR) and support.dtype != np.float64
    ):
        raise ValueError("support must be float64 rows of n_features")
