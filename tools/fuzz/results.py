"""Check that a result holds no NaN where the package promises numbers."""

import dataclasses
from collections.abc import Generator
from typing import Any

import numpy as np

import ordinal

# Fields in which NaN has a meaning: of searches what could not be fitted, of a coding
# of tables a column without any value.
_MAY_BE_NAN = {"scores", "others", "fill"}
# By which the rows are multiplied that a model is asked to judge.
_MAGNITUDES = (1.0, 1e150, 1e300)


def complaint(given: dict[str, Any], result: Any) -> str:
    """Describe the fault in the result of a call with these arguments, or return ""."""
    if isinstance(result, Generator):
        result = next(result, None)
    if type(result).__module__.startswith("ordinal"):
        repr(result)  # of models with names and labels of any kind
    if isinstance(result, ordinal.Model):
        return (
            _nan_in(result, type(result).__name__)
            or _of_record(getattr(result, "convergence", None))
            or _of_model(result, given)
        )
    if all(map(_is_finite, given.values())):
        return _nan_in(result, type(result).__name__)
    return ""


def _is_finite(value: Any) -> bool:
    """Return whether an argument holds no NaN or infinity, as far as one can see."""
    if hasattr(value, "tocsr") or hasattr(value, "indptr"):
        value = getattr(value, "data", 0.0)
    try:
        return bool(np.isfinite(np.asarray(value)).all())
    except Exception:  # an object of any kind, which may hold others
        return not isinstance(value, dict | list | tuple | set)


def _nan_in(value: Any, name: str) -> str:
    if isinstance(value, (float, np.floating, np.ndarray)):
        a = np.asarray(value)
        return f"{name} holds NaN" if a.dtype.kind == "f" and np.isnan(a).any() else ""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        value = {k: v for k, v in value.items() if k not in _MAY_BE_NAN}
        if isinstance(value.get("kernel"), ordinal.kernels.Pearson):
            value.pop("support", None)  # rows with entries that are not known
    if isinstance(value, dict):
        parts = ((f"{name}[{k!r}]", v) for k, v in value.items())
    elif isinstance(value, (list, tuple)):
        parts = ((f"{name}[{i}]", v) for i, v in enumerate(value))
    else:
        return ""
    return next(filter(None, (_nan_in(v, k) for k, v in parts)), "")


def _of_record(convergence: Any) -> str:
    if convergence is None:  # of a model of the caller's, which was preprocessed for
        return ""
    objectives = [convergence.primal, convergence.dual or 0.0]
    if convergence.converged and not np.isfinite(objectives).all():
        return f"converged with the objectives {objectives}"
    return ""


def _of_model(model: Any, given: dict[str, Any]) -> str:
    """Describe the fault in predictions of rows of any size, or of those that were
    fitted."""
    if model.n_features > 1000:
        return ""
    X = np.random.default_rng(0).normal(size=(5, model.n_features))
    for name in ("predict", "decision_function", "predict_latent", "predict_proba"):
        for rows in (*(X * size for size in _MAGNITUDES), given.get("X")):
            said = _of_prediction(model, name, rows)
            if said:
                return said
    return ""


def _of_prediction(model: Any, name: str, rows: Any) -> str:
    if not hasattr(model, name):
        return ""
    try:
        result = getattr(model, name)(rows)
    except (ValueError, TypeError, MemoryError):
        return ""  # a model of a given kernel, or without a link
    return _nan_in(result, f"{name}()")
