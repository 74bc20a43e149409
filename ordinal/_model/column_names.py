"""Names of the columns of rows that are passed to models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import numpy as np

from .._input.checks import check_flag
from .._input.columns import Records, as_table, is_frame, read_once
from .._input.features import read_rows_of
from .._input.frame import Frame
from .._input.sparse import CSR, NamedCSR, is_sparse
from .._input.warning import each_warning_once
from .._watch.convergence import warn_of_unnamed
from .links import require_link
from .storage import Storable

_Method = TypeVar("_Method", bound=Callable[..., Any])
READING = (
    "predict", "predict_proba", "decision_function", "explain",
    "report", "score", "contributions", "hidden", "predict_latent", "score_samples",
    "p_values", "predict_interval", "predict_set", "evaluate", "places",
)  # fmt: skip
_RULES = "mode", "median", "cost"  # of prediction that need probabilities


def reads_records(method: _Method) -> _Method:
    """Let a method of a model take records, and `predict_proba` return data frames.

    `Model` applies it to the methods named in `READING` of each of its classes.
    """
    by_label = method.__name__ == "predict_proba"
    warning_once = each_warning_once(method)

    @wraps(method)
    def call(self: Any, *given: Any, **options: Any) -> Any:
        as_frame = by_label and check_flag("as_frame", options.pop("as_frame", False))
        if as_frame and not find_spec("pandas"):
            raise ImportError("as_frame=True needs pandas: pip install pandas")
        # Before any work, which may take minutes. The `proba` of XOFM may need no link,
        # and a caller's model has its own probabilities.
        own, needed = innermost(self), by_label or str(options.get("rule")) in _RULES
        if needed and "proba" not in options and isinstance(own, Storable):
            require_link(getattr(own, "link", True))
        if given:
            given = (rows_for(self, given[0]), *given[1:])
        elif "X" in options:
            options["X"] = rows_for(self, options["X"])
        made = warning_once(self, *given, **options)
        return _by_label(self, made, given or options.values()) if as_frame else made

    call._reads_records = True  # type: ignore[attr-defined]
    return cast(_Method, call)


def innermost(model: Any) -> Any:
    """Return the model without the preprocessing of its features."""
    while isinstance(model, Storable) and model._wrapped is not None:
        model = model._wrapped
    return model


def rows_for(model: Any, X: Any) -> Any:
    """Return rows for a model, in which records are a data frame; [] has no rows."""
    if isinstance(X, list | tuple) and not X:
        names = model.feature_names
        if names is None:
            return np.empty((0, model.n_features))
        X = Records({name: np.empty(0, dtype=object) for name in names})
    rows = as_table(X, model.feature_names)
    if rows is not X and model.feature_names is None:
        raise ValueError(
            "X is a record of named values, and the model was fitted to columns "
            "without names: pass the values in their order, such as [[1.0, 2.0]]"
        )
    return rows


def _by_label(model: Any, P: np.ndarray, given: Iterable[Any]) -> Any:
    """Return probabilities as a data frame of pandas, with the index of the rows."""
    import pandas

    index = getattr(next(iter(given)), "index", None)
    kept = index if isinstance(index, pandas.Index) else None
    return pandas.DataFrame(P, index=kept, columns=model.classes.tolist())


def with_names(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return rows that have the names of the columns of a model, if it has any.

    Functions that pass the rows of a caller on to several methods of a model call this
    first, so that an array instead of named columns is warned of once.
    """
    X = as_table(X, names)
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
