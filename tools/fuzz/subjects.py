"""Names in the source text of calls: plain data, fitted models, and odd objects.

Everything here is made again the same in every process. Sources take all the names of
this module, those of the imports as well.
"""

# ruff: noqa: F401
import datetime
import decimal
import fractions
import functools
import itertools
import pathlib
import tempfile
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import ordinal
from ordinal import (
    companions,
    comparison,
    data,
    datasets,
    exceptions,
    inference,
    kernels,
    metrics,
    model_selection,
    models,
    plot,
    prediction_sets,
    preprocessing,
)


class Foreign(Exception):
    """Raised by the objects that are passed: it may come back as it is."""


class BrokenPromise(Exception):
    """Raised where the package does not keep what it promises beyond `judge`."""


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
    """Draw (n, d) plain features."""
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


def function_of(name: str) -> Any:
    """`ordinal.fit_<name>`, or that of `ordinal.companions`."""
    found = getattr(ordinal, f"fit_{name}", None)
    return found or getattr(ordinal.companions, f"fit_{name}")


@functools.cache
def fit(name: str, **options: Any) -> Any:
    """The model of `ordinal.fit_<name>` for the plain rows."""
    with warnings.catch_warnings(action="ignore"):
        return function_of(name)(rows(), ranks(), **options)


@functools.cache
def likely(d: int = 3, **options: Any) -> Any:
    """A cumulative link model of d of three features that tell ranks apart with errors,
    as inference needs them."""
    score = rows(60).sum(axis=1) + 2.5 * rows(60, 1, seed=5)[:, 0]
    y = np.argsort(np.argsort(score)) * 3 // 60 + 1
    return ordinal.fit_pom(rows(60)[:, :d], y, **options)


@functools.cache
def grouped(kind: str = "intercept") -> Any:
    """A cumulative link mixed model of ranks that no feature separates."""
    y = np.argsort(np.argsort(rows(60).sum(axis=1) + rows(60, 1, seed=5)[:, 0] * 2.5))
    group = np.arange(60) % 6
    options: dict[str, dict[str, Any]] = {
        "intercept": {},
        "slope": {"slopes": {"group": [0]}, "link": "probit"},
        "nodes": {"n_quadrature": 3, "nominal": [0], "cluster": group % 3},
    }
    with warnings.catch_warnings(action="ignore"):
        return ordinal.fit_clmm(
            rows(60), y * 3 // 60 + 1, groups={"group": group}, **options[kind]
        )


def standardized() -> Any:
    scaling = preprocessing.Standardizer.fit(rows())
    return preprocessing.PreprocessedModel(scaling, fit("svorex", probability=True))


def table() -> np.ndarray:
    """(24, 3) objects: numbers with gaps, words with gaps, and words."""
    cells = rows().astype(object)
    cells[::5, 0] = None
    cells[:, 1] = np.where(rows()[:, 1] > 0, "red", "blue")
    cells[::7, 1] = None
    cells[:, 2] = np.array(["low", "mid", "high"])[ranks() - 1]
    return cells


def preprocessed() -> Any:
    with warnings.catch_warnings(action="ignore"):
        return preprocessing.PreprocessedModel.fit(
            ordinal.fit_xofm, table(), ranks(), probability=True
        )


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
def learning() -> Any:
    search = model_selection.Grid(C=[1.0])
    cv = model_selection.learning_splits(ranks(), [9, 18], n_splits=2)
    return model_selection.select(
        ordinal.fit_svorim, rows(), ranks(), search=search, cv=cv
    )


@functools.cache
def conformal_sets() -> Any:
    return ordinal.conformal(fit("svorim", probability=True), rows(), ranks(), 0.8)


@functools.cache
def cross_conformal_sets() -> Any:
    return ordinal.cross_conformal(
        ordinal.fit_svorex, rows(), ranks(), 0.8, cv=2, probability=True
    )


@functools.cache
def stored() -> str:
    """The path of a file of a model."""
    folder = tempfile.mkdtemp(prefix="stored-", dir=".")
    path = pathlib.Path(folder).absolute() / "model.npz"
    fit("svorim").save(path)
    return str(path)


@functools.cache
def written() -> str:
    """The path of a table of numbers."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="written-", dir=".")) / "table.csv"
    table = np.column_stack([rows(), ranks()])
    np.savetxt(path, table, delimiter=",", header="a,b,c,y", comments="")
    return str(path.absolute())


def gram() -> np.ndarray:
    """(24, 24) the kernel matrix of the plain rows."""
    return kernels.RBF(0.3)(rows(), rows())


def either(way: Callable[[], Any], instead: Any) -> Any:
    """Return what `way` makes; where numpy or scipy refuse to make it, the plain
    array."""
    try:
        return way()
    except Exception:
        return instead


def put(a: np.ndarray, value: Any) -> np.ndarray:
    """A copy with this value in the middle."""
    a = np.array(a)
    a.flat[a.size // 2] = value
    return a


def unwritable(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a: np.ndarray) -> np.ndarray:
    """A copy that begins one byte past where its numbers should."""
    buffer = np.zeros(a.nbytes + 1, dtype=np.uint8)
    buffer[1:] = np.frombuffer(a.tobytes(), dtype=np.uint8)
    return buffer[1:].view(a.dtype).reshape(a.shape)


def all_the_same(a: np.ndarray) -> np.ndarray:
    """An array of this shape that is one number in memory."""
    return np.lib.stride_tricks.as_strided(a, strides=(0,) * a.ndim)


def as_records(a: np.ndarray) -> np.ndarray:
    """(n,) structured, a field a column."""
    return np.rec.fromarrays(np.atleast_2d(a.T))


class Subclass(np.ndarray):
    """An array whose comparisons and sums are its own affair."""

    def __array_finalize__(self, obj: Any) -> None:
        self.note = getattr(obj, "note", None)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return np.nan

    def __len__(self) -> int:
        return 7


class Changing:
    """Another array each time it is asked for: one more row, or NaN, or text."""

    def __init__(self, a: np.ndarray) -> None:
        self._turns = itertools.cycle(
            [a, a[:-1], a * np.nan, a.astype(str), np.concatenate([a, a])]
        )
        self.shape, self.dtype, self.ndim = a.shape, a.dtype, a.ndim

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(next(self._turns), dtype)


class Interfaced:
    """An array that is shown by its memory alone."""

    def __init__(self, a: np.ndarray) -> None:
        self._a = np.ascontiguousarray(a)
        self.__array_interface__ = self._a.__array_interface__


def csr(a: np.ndarray, **given: Any) -> Any:
    """A CSR matrix with mistakes that scipy did not look for, in an object that has no
    more than the attributes of one: another number of `rows` or `columns`, another
    `first` index, `last` or middle `pointer`, first `value`, `index_type` or
    `data_type`; `unsorted` indices, all of them `twice`, or one too few (`short`)."""
    a = np.atleast_2d(a)
    matrix = sparse.csr_array(a)
    indices, indptr = matrix.indices.astype("i8"), matrix.indptr.astype("i8")
    entries = matrix.data.copy()
    indices[:1] = given.get("first", indices[:1])
    indptr[-1] = given.get("last", indptr[-1])
    indptr[len(indptr) // 2] = given.get("pointer", indptr[len(indptr) // 2])
    entries[:1] = given.get("value", entries[:1])
    if "unsorted" in given:
        indices, entries = indices[::-1], entries[::-1]
    if "twice" in given:
        indices[:] = 0
    if "short" in given:
        indices = indices[:-1]
    shape = given.get("rows", a.shape[0]), given.get("columns", a.shape[1])
    index_type, data_type = given.get("index_type", "i4"), given.get("data_type", "f8")
    return types.SimpleNamespace(
        format="csr", shape=shape, ndim=2, nnz=len(entries), dtype=np.dtype(data_type),
        data=entries.astype(data_type), indices=indices.astype(index_type),
        indptr=indptr.astype(index_type),
    )  # fmt: skip
