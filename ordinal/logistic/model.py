"""Model that `fit_lit` and `fit_lat` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

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
from .._input.types import MatrixLike
from .._model.explanation import Named, linear_terms
from .._model.links import CumulativeLink
from .._model.model import read_for
from .._model.support import finite_scores
from .._model.threshold_model import Scored
from .._numerics.rows import matvec
from .._watch.convergence import Convergence


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearThresholdModel(Scored):
    """A score f(x) = x'coef and the thresholds that cut it.

    Attributes
    ----------
    method : str
        "lit" or "lat".
    coef : (n_features,) array
        beta of (P2): a larger feature with a positive coefficient makes ranks higher.
    thresholds : (r - 1,) array
        theta, in order. -inf and +inf where no training rows lie beyond, and equal on
        both sides of a rank that is never predicted: one without rows or, with LIT, one
        whose thresholds would otherwise be out of order.
    l2 : float
    separated : int array
        Numbers of the features that separate the ranks, which only l2 = 0 allows: their
        coefficients have no finite best values, and are where the fit has ended. Empty
        for all other fits.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
        Its `primal` is (P2); there is no dual.
    """

    method: Literal["lit", "lat"]
    coef: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS, RISING]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    separated: Annotated[np.ndarray, Array("i8", "_"), NONNEGATIVE, INCREASING]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    link: Annotated[CumulativeLink, SHARED] | None
    convergence: Convergence

    def _check(self) -> None:
        if (self.separated >= self.n_features).any():
            raise ValueError(f"separated must number the {self.n_features} features")

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score f(x) = x'coef, which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Returns
        -------
        (n,) array
            In the unit of the logistic losses: they are log 2 on a threshold, 0.31 one
            unit beyond it on the right side, and 1.31 on the wrong one.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns.
        """
        rows = read_for(self, X)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            scores = matvec(rows, self.coef)
        return finite_scores(scores)

    def _score_terms(self, X: MatrixLike) -> Named | None:
        names = self.feature_names or default_names(self.n_features)
        return linear_terms(read_for(self, X), self.coef, names)
