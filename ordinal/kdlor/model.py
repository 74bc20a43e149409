"""Model that `fit_kdlor` returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, Array
from .._input.types import MatrixLike
from .._model.support import decision
from .._model.threshold_model import Scored, ScoreModel


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KdlorModel(ScoreModel):
    """A score f(x) = sum_i coef[i] k(support_i, x) and the thresholds that cut it.

    Attributes
    ----------
    support : (m, n_features) array or CSR
        The training rows of positive weight, the rows of the basis, or unit vectors;
        for a precomputed kernel the (m,) numbers of rows.
    coef : (m,) array
    dual : (r - 1,) array
        a of (D): how much each pair of neighbouring ranks decides the direction. Of
        ranks without rows between the two of a pair, it is in the first of its places.
    thresholds : (r - 1,) array
        Where the most likely rank changes: between the mean scores of two neighbouring
        ranks, farther from that of the rank with more weight. -inf and +inf where no
        training rows lie beyond, and equal on both sides of a rank that is never
        predicted, such as one without rows.
    rho : float
        How far the mean scores of neighbouring ranks are apart, at least.
    C, ridge : float
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
        Its steps are those of the active set.
    """

    dual: Annotated[np.ndarray, Array("f8", "r-1"), FINITE, NONNEGATIVE]
    rho: Annotated[float, FINITE]
    C: Annotated[float, FINITE, POSITIVE]
    ridge: Annotated[float, FINITE, POSITIVE]

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score f(x), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n,) array
            In proportion to C; mean scores of neighbouring ranks are `rho` apart, or
            more.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    def link_input(self, X: MatrixLike, like: Scored) -> np.ndarray:
        """Scores for the link of another model: in its unit, in which neighbouring
        means are as far apart, and moved by what its thresholds lie higher.
        """
        ratio = 1.0
        if isinstance(like, KdlorModel) and min(self.rho, like.rho) > 0:
            ratio = like.rho / self.rho
        own = replace(
            self, coef=ratio * self.coef, thresholds=ratio * self.thresholds
        )  # in the unit of the other
        return ScoreModel.link_input(own, X, like)
