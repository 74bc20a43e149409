"""Model that `fit_lit` and `fit_lat` return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from .._formula.coding import Coding
from .._input.fields import (
    DISTINCT,
    FINITE,
    INCREASING,
    LABELS,
    NONNEGATIVE,
    RISING,
    SHARED,
    THRESHOLDS,
    Array,
    Length,
    Size,
)
from .._input.frame import default_names
from .._input.sparse import CSR
from .._input.types import MatrixLike
from .._model.explanation import Named, in_columns, linear_terms
from .._model.links import CumulativeLink
from .._model.model import read_for
from .._model.support import finite_scores
from .._model.threshold_model import Scored
from .._numerics.rows import matvec
from .._watch.convergence import Convergence


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearThresholdModel(Scored):
    """Score f(x) = x'coef, and thresholds on it.

    Attributes
    ----------
    method : str
        "lit" or "lat".
    coef : (c,) array, of the columns `column_names`
        Coefficients beta of (P2). Ranks increase with features whose coefficients are
        positive.
    thresholds : (r - 1,) array
        Thresholds theta, in order. They are -inf or +inf where no training rows lie
        beyond them, and equal on both sides of a rank that is never predicted: a rank
        without training rows or, in LIT, one whose thresholds would otherwise be out of
        order.
    l2 : float
    separated : int array
        Positions of the features that separate the ranks, which is possible only with
        l2 = 0. Their coefficients have no finite optimum; those of the model are where
        the fit ended. Empty otherwise.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Link from scores to probabilities; None unless fitted with `probability=True`.
    convergence : Convergence
        Record of the fit. Its `primal` is (P2). There is no dual.
    coding : Coding or None
        Conversion of the columns of a table to those of `coef`, by a preprocessor; None
        if they are the features themselves.
    """

    method: Literal["lit", "lat"]
    coef: Annotated[np.ndarray, Array("f8", "c"), FINITE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    separated: Annotated[np.ndarray, Array("i8", "_"), NONNEGATIVE, INCREASING]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    link: Annotated[CumulativeLink, SHARED] | None
    convergence: Convergence
    coding: Coding | None = field(default=None, kw_only=True)

    def _check(self) -> None:
        coding, c = self.coding, self.coef.size
        made = self.n_features if coding is None else len(coding.column_names)
        if made != c or (coding is not None and coding.n_features != self.n_features):
            raise ValueError(f"coef must have a coefficient for each of {made} columns")
        if (self.separated >= c).any():
            raise ValueError(f"separated must number the {c} columns of coef")

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of `coef`."""
        if self.coding is not None:
            return self.coding.column_names
        return self.feature_names or default_names(self.n_features)

    @property
    def categories(self) -> tuple[np.ndarray | None, ...] | None:
        """Levels of each categorical column, and None for each numeric one.

        None if all columns are numeric.
        """
        return None if self.coding is None else self.coding.categories

    def _columns(self, X: MatrixLike) -> np.ndarray | CSR:
        """Return the columns of `coef` for rows."""
        return read_for(self, X) if self.coding is None else self.coding.transform(X)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score f(x) = x'coef, which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Returns
        -------
        (n,) array
            Scores in units of the logistic losses, which are log 2 = 0.69 on a
            threshold, 0.31 one unit away from it on the correct side, and 1.31 on the
            wrong side.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        rows = self._columns(X)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            scores = matvec(rows, self.coef)
        return finite_scores(scores)

    def _score_terms(self, X: MatrixLike) -> Named | None:
        columns, coding = self._columns(X), self.coding
        found = linear_terms(columns, self.coef, self.column_names)
        return found if coding is None else in_columns(found, coding.raw_names)
