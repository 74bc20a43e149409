"""Names in the source text of calls: plain data, fitted models, and odd objects.

Everything here is made again the same in every process.
"""

import datetime
import decimal
import fractions
import functools
import pathlib
import tempfile
import warnings
from typing import Any

import numpy as np

import ordinal
from ordinal import (
    comparison,
    datasets,
    kernels,
    metrics,
    model_selection,
    plot,
    preprocessing,
)

__all__ = [
    "Foreign",
    "Odd",
    "comparison",
    "cost",
    "datasets",
    "datetime",
    "decimal",
    "fit",
    "fractions",
    "functools",
    "kernels",
    "metrics",
    "model_selection",
    "nesting",
    "np",
    "ordinal",
    "pathlib",
    "plot",
    "preprocessing",
    "proba",
    "ranks",
    "rows",
    "selection",
    "standardized",
    "stored",
    "weights",
]


class Foreign(Exception):
    """Raised by the objects that are passed: it may come back as it is."""


class Odd:
    """An object with the special methods that are named, each returning its value; an
    exception is raised instead."""

    def __new__(cls, **values: Any) -> Any:
        def method(value: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if isinstance(value, type) and issubclass(value, Exception):
                    raise value("of the caller's own")
                return value

            return call

        members: dict[str, Any] = {}
        for name, value in values.items():
            if name in ("shape", "dtype", "ndim", "size", "columns", "name"):
                members[name] = value
            elif name.startswith("m_"):  # a method with a plain name
                members[name[2:]] = method(value)
            else:
                members[f"__{name}__"] = method(value)
        return type("Odd", (), members)()


def rows(n: int = 24, d: int = 3, seed: int = 0) -> np.ndarray:
    """(n, d) plain features."""
    return np.random.default_rng(seed).normal(size=(n, d))


def ranks(n: int = 24, r: int = 3) -> np.ndarray:
    """(n,) labels 1..r that go with `rows(n)`, each as often."""
    return np.argsort(np.argsort(rows(n).sum(axis=1))) * r // n + 1


def weights(n: int = 24) -> np.ndarray:
    return np.random.default_rng(1).integers(1, 4, n).astype(float)


def proba(n: int = 24, r: int = 3) -> np.ndarray:
    P = np.random.default_rng(2).random((n, r)) + 0.1
    return P / P.sum(axis=1, keepdims=True)


def cost(r: int = 3) -> np.ndarray:
    i = np.arange(r)
    return np.abs(i[:, None] - i).astype(float)


@functools.cache
def fit(name: str, **options: Any) -> Any:
    """The model of `ordinal.fit_<name>` for the plain rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(ordinal, f"fit_{name}")(rows(), ranks(), **options)


def standardized() -> Any:
    scaling = preprocessing.Standardizer.fit(rows())
    return preprocessing.StandardizedModel(scaling, fit("svorex", probability=True))


@functools.cache
def selection() -> Any:
    search = model_selection.Grid(C=[1.0, 2.0])
    return model_selection.select(
        ordinal.fit_svorim, rows(), ranks(), search=search, cv=2, probability=True
    )


@functools.cache
def nesting() -> Any:
    search = model_selection.Grid(C=[1.0, 2.0])
    return model_selection.nested(
        ordinal.fit_svorim, rows(), ranks(), search=search, cv=2, outer=2
    )


@functools.cache
def stored() -> str:
    """The path of a file of a model."""
    folder = tempfile.mkdtemp(prefix="stored-", dir=".")
    path = pathlib.Path(folder).absolute() / "model.npz"
    fit("svorim").save(path)
    return str(path)
