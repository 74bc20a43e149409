"""What `fit_pom` returns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np

from .._input.sparse import CSR
from .._input.types import ArrayLike, MatrixLike
from .._model.convergence import Convergence
from .._model.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    THRESHOLDS,
    Array,
    Length,
    Size,
)
from .._model.model import read_for
from .._model.rules import cost_of_rule, decide
from .contrasts import Coding
from .design import read_offset, structure_of
from .inference import Inference
from .likelihood import Link, cumulative, exceeding
from .predictors import for_all_ranks, predictors, rank_probabilities, score
from .sandwich import CovarianceType

Threshold = Literal["flexible", "symmetric", "equidistant"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PomModel(Inference):
    """P(y <= j | x) = F((theta_j - n'nu_j - x'beta) / exp(z'zeta)).

    Attributes
    ----------
    coef : (d,) array
        beta: a larger x with a positive coefficient makes higher ranks more probable.
    thresholds : (r - 1,) array
        theta, at 0 of the columns `nominal`. -inf and +inf where no training rows lie
        beyond, and equal on both sides of a rank between that has none.
    nominal_coef : (q, m) array
        Slopes of the columns `nominal`, one a threshold where these are flexible; else
        one a parameter `alpha`.
    scale_coef : (k,) array
        zeta, of the columns `scale`.
    alpha : (q,) array
        The free parameters of the thresholds.
    link, threshold : str
    coding : Coding or None
        How the columns of a table, or what a formula makes of them, became columns of
        numbers; None for features that are these.
    column_names : tuple of str
        All columns that the features became.
    location, nominal, scale : int arrays
        Which of these have `coef`, `nominal_coef` and `scale_coef`.
    crossings : (r - 1,) int array
        At how many training rows each threshold lies above the next one.
    observed : (r,) bool array
        Which ranks have training rows of positive weight.
    covariance : (p, p) array or None
        Of (alpha, nominal_coef, coef, scale_coef); None of a fit with l1 > 0, or with
        more features than Newton's method takes.
    covariance_type : {"observed", "robust", "cluster"}
        The inverse of the observed information, or a sandwich about it.
    l1, l2 : float
    loglik : float
        sum_i w_i log P(y_i), without penalties.
    null_loglik : float
        That of the model without features.
    n_obs : float
        The sum of the weights.
    n_missing : int
        Rows that were left out as they lacked a value.
    separated : int array
        Columns that separate the ranks: their coefficients have no finite best values,
        and are where the fit has ended. Empty for all other fits.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Its `primal` is the mean loss with its penalties.
    """

    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    coding: Coding | None
    column_names: Annotated[tuple[str, ...], Length("c")]
    link: Link
    threshold: Threshold
    location: Annotated[np.ndarray, Array("i8", "l")]
    nominal: Annotated[np.ndarray, Array("i8", "m")]
    scale: Annotated[np.ndarray, Array("i8", "k")]
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS]
    alpha: Annotated[np.ndarray, Array("f8", "q"), FINITE]
    nominal_coef: Annotated[np.ndarray, Array("f8", "q m"), FINITE]
    coef: Annotated[np.ndarray, Array("f8", "l"), FINITE]
    scale_coef: Annotated[np.ndarray, Array("f8", "k"), FINITE]
    crossings: Annotated[np.ndarray, Array("i8", "r-1"), NONNEGATIVE]
    observed: Annotated[np.ndarray, Array("b1", "r")]
    covariance: Annotated[np.ndarray, Array("f8", "p p"), FINITE] | None
    covariance_type: CovarianceType
    l1: Annotated[float, FINITE, NONNEGATIVE]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    loglik: Annotated[float, FINITE]
    null_loglik: Annotated[float, FINITE]
    n_obs: Annotated[float, FINITE, POSITIVE]
    n_missing: Annotated[int, NONNEGATIVE]
    separated: Annotated[np.ndarray, Array("i8", "_")]
    convergence: Convergence

    def _check(self) -> None:
        made = self.feature_names if self.coding is None else self.coding.column_names
        c = self.n_features if made is None else len(made)
        if len(self.column_names) != c:
            raise ValueError(f"column_names must name the {c} columns of the features")
        for name in ("location", "nominal", "scale", "separated"):
            columns = getattr(self, name)
            if not ((columns >= 0) & (columns < c)).all():
                raise ValueError(f"{name} must number columns, 0 to {c - 1}")
            if np.unique(columns).size < columns.size:
                raise ValueError(f"{name} must number a column once")
        T = int(np.count_nonzero(self.observed)) - 1
        if T < 1 or structure_of(self.threshold, T).shape[1] != self.alpha.size:
            raise ValueError("alpha must have a parameter for each free threshold")
        p = self.alpha.size * (1 + self.nominal.size) + self.coef.size
        p += self.scale_coef.size
        if self.covariance is not None and len(self.covariance) != p:
            raise ValueError(f"covariance must have {p} rows, one a parameter")

    @property
    def disorder(self) -> tuple[str, ...]:
        """Which thresholds cross at training rows, a line for each such pair.

        Only nominal effects can make them cross, and only at rows of other ranks than
        the one between. A model that says so fits these rows badly: its probabilities
        there, which `cumulative_proba` puts in order, do not give its `loglik`.
        """
        return tuple(
            f"{lower} is above {higher} at {count} training row{'s' * (count > 1)}"
            for (lower, higher), count in zip(
                pairwise(self.threshold_names), self.crossings.tolist(), strict=False
            )
            if count
        )

    @property
    def coef_names(self) -> tuple[str, ...]:
        """Columns of `coef`."""
        return tuple(self.column_names[j] for j in self.location)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns without a coefficient, as others determine them."""
        used = {*self.location.tolist(), *self.nominal.tolist()}
        return tuple(c for j, c in enumerate(self.column_names) if j not in used)

    def decision_function(
        self, X: MatrixLike, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """x'beta plus the offset, (n,), which is larger for higher ranks.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        offset : (n,) array-like, default 0

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns, or an offset is
            not finite.
        """
        return score(self, *self._read(X, offset))

    def cumulative_proba(
        self, X: MatrixLike, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """P(y <= j), (n, r - 1), for the ranks but the last.

        Where nominal effects make thresholds cross at a row, its probabilities are put
        in order, which brings them no further from those of any model without
        crossings (V. Chernozhukov, I. Fernandez-Val, A. Galichon, "Quantile and
        probability curves without crossing", Econometrica 78:1093-1125, 2010).

        Parameters and errors are those of `decision_function`.
        """
        return cumulative(self.link, self._predictors(X, offset))

    def predict_proba(
        self, X: MatrixLike, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Probabilities of the ranks, (n, r): differences of `cumulative_proba`.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        offset : (n,) array-like, default 0

        Returns
        -------
        (n, r) array, whose rows sum to 1

        Raises
        ------
        ValueError, TypeError
            As `decision_function`.
        """
        eta = self._predictors(X, offset)
        P = rank_probabilities(cumulative(self.link, eta), exceeding(self.link, eta))
        P /= P.sum(axis=1, keepdims=True)
        return P

    def predict(
        self,
        X: MatrixLike,
        *,
        rule: Literal["median", "mode", "cost"] = "median",
        cost: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        rule : {"median", "mode", "cost"}, default "median"
            The median has the least expected absolute error, and is a rule of
            thresholds on the score; the mode is the most probable rank, as `polr` and
            `clm` predict; "cost" the rank of least expected cost.
        cost : (r, r) array-like, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default |j - k|.
        offset : (n,) array-like, default 0

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError, TypeError
            As `decision_function`, for an unknown rule, or for a cost that is not
            asked for or not one of r ranks.
        """
        rules = "median", "mode", "cost"
        table = cost_of_rule(rule, rules, cost, None, self.classes.size)
        P = self.predict_proba(X, offset=offset)
        return np.asarray(self.classes[decide(P, rule, table)])

    def _read(
        self, X: MatrixLike, offset: ArrayLike | None
    ) -> tuple[np.ndarray | CSR, np.ndarray | None]:
        """The columns that rows become, and what is known to be added to x'beta."""
        if self.coding is None:
            Z = read_for(self, X)
            return Z, None if offset is None else read_offset(offset, len(Z))
        frame = self.coding.read(X)
        return self.coding.transform(frame), self.coding.offset(frame, offset)

    def _predictors(self, X: MatrixLike, offset: ArrayLike | None) -> np.ndarray:
        """eta, (n, r - 1), in order at every row."""
        eta, _ = predictors(self, *self._read(X, offset))
        if self.nominal.size:
            eta.sort(axis=1)
        return for_all_ranks(self.observed, eta, -np.inf, np.inf)
