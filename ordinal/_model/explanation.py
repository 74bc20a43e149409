"""Terms of the scores of models, and importances of features, as records."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._input.immutable import Immutable
from .._input.sparse import CSR
from .printing import Table, html_notes
from .views import views


class Named(NamedTuple):
    """Values with a name per entry of the last axis."""

    names: tuple[str, ...]
    values: np.ndarray

    def table(self) -> Table:
        """Return the columns name and value, the largest first.

        Values of several rows have one column per name.
        """
        if self.values.ndim > 1:
            return Table(dict(zip(self.names, self.values.T, strict=True)))
        order = np.argsort(-np.abs(self.values), kind="stable")
        return Table({"name": np.array(self.names)[order], "value": self.values[order]})

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame; raise ImportError without pandas."""
        return self.table().to_pandas()

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation(Immutable):
    """Importances of the features of a model, the largest first.

    Attributes
    ----------
    method : {"contributions", "permutation"}
        Method by which importances were computed.
    names : tuple of (m,) str
        Features, and "a:b" for an interaction of two features.
    importance, standard_error : (m,) arrays
        For "contributions", the standard deviation of each term of the score over the
        rows. For "permutation", the mean change of the predictions, in ranks, or of the
        error when the feature is shuffled. Standard errors are those of the means over
        the rows.
    unit : str
        Unit of `importance`.
    contributions : (n, m) array or None
        Terms of the score of each row. Their sum is the score up to a constant.
    """

    method: str
    names: tuple[str, ...]
    importance: np.ndarray
    standard_error: np.ndarray
    unit: str
    contributions: np.ndarray | None = None

    def table(self) -> Table:
        """Return the columns name, importance and standard_error."""
        return Table(
            {
                "name": np.array(self.names),
                "importance": self.importance,
                "standard_error": self.standard_error,
            }
        )

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame."""
        return self.table().to_pandas()

    def plot(self, ax: Any = None, *, top: int | None = None) -> Any:
        """Draw the importances by `ordinal.plot.importance`."""
        return views().importance(self, ax, top)

    def __repr__(self) -> str:
        return f"{self.table()!r}\n{self.unit}, by {self.method}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() + html_notes(
            [f"{self.unit}, by {self.method}"]
        )


def linear_terms(
    Z: np.ndarray | CSR, coef: np.ndarray, names: Sequence[str]
) -> Named | None:
    """Return the terms of a linear score, one per column of Z, with mean 0.

    None stands for sparse rows, whose terms would be dense.
    """
    if not isinstance(Z, np.ndarray):
        return None
    # Means of terms, because the sum of a column may leave the range of double.
    terms = Z * coef
    return Named(tuple(names), terms - terms.mean(axis=0))


def of_pair(name: str, known: Container[str]) -> tuple[str, str] | None:
    """Return the two features of an interaction "a:b", or None for another name."""
    if name in known:
        return None
    for place, mark in enumerate(name):
        if mark == ":" and name[:place] in known and name[place + 1 :] in known:
            return name[:place], name[place + 1 :]
    return None


def in_columns(terms: Named | None, columns: Sequence[str]) -> Named | None:
    """Return the sums of terms that belong to the same column of a table.

    `columns` names the column of each term.
    """
    if terms is None:
        return None
    sums: dict[str, np.ndarray] = {}
    for name, values in zip(columns, terms.values.T, strict=True):
        sums[name] = sums.get(name, 0.0) + values
    return Named(tuple(sums), np.column_stack(list(sums.values())))
