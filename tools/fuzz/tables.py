"""Names for sources with data frames: those of subjects.py, pandas, polars, pyarrow."""

# ruff: noqa: F403, F405
import pandas as pd
import polars as pl
import pyarrow as pa
from subjects import *


def frame(kind: str = "pandas", a: np.ndarray | None = None) -> Any:
    """The plain rows with the names a, b, ... of their columns."""
    a = rows() if a is None else a
    columns = {chr(97 + j): a[:, j] for j in range(a.shape[1])}
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    return make[kind](columns)


def column(kind: str, values: np.ndarray) -> Any:
    make = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.chunked_array}
    return make[kind]([values] if kind == "pyarrow" else values)


def mixed(kind: str = "pandas") -> Any:
    """The same with a third column of words."""
    words = np.array(["low", "mid", "high"])[ranks() - 1]
    columns = {"a": rows()[:, 0], "b": rows()[:, 1], "c": words}
    if kind == "pandas":
        return pd.DataFrame(columns).astype({"c": "category"})
    return pl.DataFrame(columns) if kind == "polars" else pa.table(columns)


@functools.cache
def framed(name: str, **options: Any) -> Any:
    """The model of `ordinal.fit_<name>` for the plain rows in a data frame."""
    with warnings.catch_warnings(action="ignore"):
        X = mixed() if "categorical" in options else frame()
        return function_of(name)(X, ranks(), **options)


def grades(kind: str = "pandas", ordered: bool = True) -> Any:
    """The plain labels as words, in a column that knows their order."""
    words, names = np.array(["low", "mid", "high"])[ranks() - 1], ["low", "mid", "high"]
    if kind == "pandas":
        return pd.Series(pd.Categorical(words, names, ordered=ordered))
    if kind == "polars":
        return pl.Series(words, dtype=pl.Enum(names) if ordered else pl.Categorical)
    return pa.chunked_array([pa.array(words).dictionary_encode()])
