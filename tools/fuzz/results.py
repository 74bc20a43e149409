"""Whether a result holds NaN where the package promises numbers."""

import dataclasses
from collections.abc import Generator
from typing import Any

import numpy as np

import ordinal

# Fields in which NaN has a meaning: what was not computed.
_MAY_BE_NAN = {
    "scores", "others", "tol", "violation", "primal", "dual", "seconds",
}  # fmt: skip


def complaint(result: Any) -> str:
    """What is wrong with a result, or ""."""
    if isinstance(result, Generator):
        result = next(result, None)
    said = _nan_in(result, type(result).__name__)
    if not said and isinstance(result, ordinal.Model):
        said = _of_model(result)
    return said


def _nan_in(value: Any, name: str) -> str:
    if isinstance(value, (float, np.floating, np.ndarray)):
        a = np.asarray(value)
        return f"{name} holds NaN" if a.dtype.kind == "f" and np.isnan(a).any() else ""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        value = {k: v for k, v in value.items() if k not in _MAY_BE_NAN}
    if isinstance(value, dict):
        parts = ((f"{name}[{k!r}]", v) for k, v in value.items())
    elif isinstance(value, (list, tuple)):
        parts = ((f"{name}[{i}]", v) for i, v in enumerate(value))
    else:
        return ""
    return next(filter(None, (_nan_in(v, k) for k, v in parts)), "")


def _of_model(model: Any) -> str:
    """What is wrong with predictions of rows of moderate size."""
    if model.n_features > 1000:
        return ""
    X = np.random.default_rng(0).normal(size=(5, model.n_features))
    for name in ("predict", "decision_function", "predict_latent", "predict_proba"):
        method = getattr(model, name, None)
        if method is None:
            continue
        try:
            result = method(X)
        except (ValueError, TypeError):  # a model of a given kernel, or without a link
            continue
        said = _nan_in(result, f"{name}()")
        if said:
            return said
    return ""
