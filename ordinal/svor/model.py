"""Model that the fits of the SVOR family return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from .._input.fields import FINITE, POSITIVE, Array
from .._input.weights import optional_cost
from .._model.threshold_model import ScoreModel

SvorMethod: TypeAlias = Literal["svorim", "svorex", "shashua_levin", "redsvm"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SvorModel(ScoreModel):
    """A score f(x) = sum_i coef[i] k(support_i, x) and the thresholds that cut it.

    Attributes
    ----------
    method : str
        "svorim", "svorex", "shashua_levin" or "redsvm".
    support : (m, n_features) array or CSR
        The training rows with a dual other than 0, or the rows of the basis; for a
        precomputed kernel the (m,) numbers of those rows.
    coef : (m,) array
    dual : (m, r - 1) array, or None
        s_ij a_ij of (D), whose sum over the thresholds is `coef`. The thresholds around
        ranks without training rows are one, whose duals are in the first column. None
        of a fit on a basis, where every training row has some.
    thresholds : (r - 1,) array
        In the unit of the margin. -inf and +inf where no training rows lie beyond, and
        equal on both sides of a rank between that has none: it is never predicted.
    C : float
    cost : (r, r) array, or None
        The caller's, if there was one, from which the weights of (P) then came.
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    link : CumulativeLink or None
        Probabilities from scores; None unless fitted with `probability`.
    convergence : Convergence
    """

    method: SvorMethod
    dual: Annotated[np.ndarray, Array("f8", "m r-1"), FINITE] | None
    C: Annotated[float, FINITE, POSITIVE]
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None

    def _check_values(self) -> None:
        optional_cost(self.cost, self.classes.size)
