"""Features as matrices that a solver can trust."""

from typing import Any

import numpy as np

from .checks import as_array
from .sparse import CSR


def check_features(
    X: Any, n_features: int | None = None, name: str = "X", missing: bool = False
) -> np.ndarray | CSR:
    """Return X as a finite C-contiguous (n, d) float64 array or a CSR, or raise.

    Parameters
    ----------
    X : 2-dimensional array-like of real numbers, or sparse in CSR format
    n_features : int, optional
        The number of columns that a fitted model expects.
    name : str
        What the messages call X.
    missing : bool
        Whether a dense X may hold NaN, for entries that are not known.
    """
    a: np.ndarray | CSR
    if hasattr(X, "tocsr") or all(
        hasattr(X, part) for part in ("indptr", "indices", "data", "shape")
    ):
        a = CSR.from_any(X, name)
    else:
        a = as_array(X, name)
        if a.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold real numbers, got dtype {a.dtype}")
    if len(a.shape) != 2 or 0 in a.shape:
        raise ValueError(
            f"{name} must be 2-dimensional and non-empty, got shape {a.shape}"
        )
    if n_features is not None and a.shape[1] != n_features:
        raise ValueError(
            f"{name} has {a.shape[1]} features, the model was fitted on {n_features}"
        )
    if isinstance(a, CSR):
        return a
    with np.errstate(over="ignore"):  # a long double too large becomes an infinity
        a = np.require(a, np.float64, ["C", "A"])
    bad = np.isinf(a) if missing else ~np.isfinite(a)
    if bad.any():
        row = np.flatnonzero(bad.any(axis=1))[0]
        rule = "finite or NaN" if missing else "finite"
        raise ValueError(f"{name} must be {rule}; first bad row is {row}")
    return a
