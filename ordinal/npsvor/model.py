"""Model that the fits of NPSVOR return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from .._input.fields import FINITE, POSITIVE, SHARED, Array, finite_or
from .._input.immutable import read_only
from .._input.labels import optional_cost
from .._input.problem import Problem
from .._input.types import ArrayLike, Matrix, RowsLike
from .._model.links import SoftmaxLink
from .._model.support import Hyperplanes, decision, finite_scores
from .._model.threshold_model import ON_PROBABILITIES, predicted
from .._watch.convergence import Convergence, of_ranks
from ..kernels.functions import KernelFunction

Rule: TypeAlias = Literal["nearest", "mode", "median", "cost"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NpsvorModel(Hyperplanes):
    """Hyperplanes f_k(x) = sum_i coef[i, k] k(support_i, x) + intercept[k] of the
    ranks.

    Attributes
    ----------
    support : (m, n_features) array or CSR
        Training rows that have a coefficient other than 0, or the basis rows of a fit
        with `basis`. For a precomputed kernel, the (m,) numbers of those rows.
    coef : (m, r) array
    intercept : (r,) array
        +inf for a rank of `classes` without training rows, which is never predicted.
    norms : (r,) array
        Norms |w_k|; with `normalize` the values of the hyperplanes are divided by them.
    normalize : bool
    classes : (r,) array
        Labels in rank order.
    kernel : callable
    n_features : int
    feature_names : tuple of str, or None
    cost : (r, r) array, or None
        Cost matrix, if one was passed to the fit.
    link : SoftmaxLink or None
        Link to probabilities, calibrated on hold-out rows, from the loss by all
        hyperplanes if a row had rank k: |f_k(x)| and the violations of margins. Of two
        ranks with equal `offsets`, the one of less loss is more probable. None unless
        fitted with `probability=True`.
    convergence : Convergence
        Record of the fit; `parts` has one entry per rank of `classes`.
    """

    coef: Annotated[np.ndarray, Array("f8", "m r"), FINITE]
    intercept: Annotated[np.ndarray, Array("f8", "r"), finite_or(np.inf)]
    norms: Annotated[np.ndarray, Array("f8", "r"), FINITE, POSITIVE]
    normalize: bool
    cost: Annotated[np.ndarray, Array("f8", "r r")] | None
    link: Annotated[SoftmaxLink, SHARED] | None
    link_type = SoftmaxLink
    _rules = "nearest", *ON_PROBABILITIES

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Return signed distances f_k(x) to the r hyperplanes.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to predict; for a precomputed kernel, the values k(rows, training
            rows).

        Returns
        -------
        (n, r) array
            In units of the margin: up to slack, rows of rank k lie within epsilon of 0,
            rows of lower ranks below -1 and rows of higher ranks above 1. If the model
            has `normalize`, the values are divided by |w_k|, so that they are distances
            in feature space.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns. The Pearson kernel
            accepts NaN.
        """
        return decision(self, X)

    def _columns(self) -> np.ndarray:
        """Return the coefficients of the ranks that had training rows.

        A matrix product may round otherwise if it has more columns, and absent ranks
        are to change no bit.
        """
        return np.ascontiguousarray(self.coef[:, np.isfinite(self.intercept)])

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """Return the distances from sums over the support rows, one column per present
        rank.
        """
        f = np.full((len(sums), self.intercept.size), np.inf)
        present = np.isfinite(self.intercept)
        with np.errstate(over="ignore"):  # seen by the check
            known = sums + self.intercept[present]
            if self.normalize:
                known /= self.norms[present]
        f[:, present] = finite_scores(known)
        return f

    def _linked(self, f: np.ndarray) -> np.ndarray:
        """Return the loss by all hyperplanes if a row had each rank, (n, r).

        For rank k they are |f_k| and the violations of the margins: 1 - f_j for j < k
        and 1 + f_j for j > k, where positive. The distance |f_k| alone does not rise
        beyond the margin, so that it is about the same for all ranks far away: with
        many ranks these together had most of the probability.
        """
        present = np.isfinite(self.intercept)
        with np.errstate(over="ignore"):  # the limit replaces infinite values
            g = f[:, present] * (self.norms[present] if self.normalize else 1.0)
            own, lower, higher = np.abs(g), np.maximum(1 - g, 0), np.maximum(1 + g, 0)
            own[:, 1:] += np.cumsum(lower[:, :-1], axis=1)
            own[:, :-1] += np.cumsum(higher[:, :0:-1], axis=1)[:, ::-1]
        losses = np.full(f.shape, np.inf)
        losses[:, present] = np.minimum(own, np.finfo(float).max)
        return losses

    def predict(
        self, X: RowsLike, *, rule: Rule | None = None, cost: ArrayLike | None = None
    ) -> np.ndarray:
        """Predict labels by a decision rule.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"nearest", "mode", "median", "cost"}, optional
            Default: the `rule` of the model or, without one, "nearest", the rank of the
            nearest hyperplane, the lower one of a tie. The others use `predict_proba`:
            the most probable rank, the median, or the rank of least expected cost.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default:
            the `cost` of the model or, without one, |j - k|.

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError
            If the rule needs probabilities and the model has none, or if `cost` is not
            a finite (r, r) matrix.
        """
        return predicted(self, X, rule, cost)

    def _labels(self, f: np.ndarray) -> np.ndarray:
        """Return the labels of rows at the distances f, by the nearest hyperplane."""
        return np.asarray(self.classes[np.abs(f).argmin(axis=1)])

    def _check_values(self) -> None:
        optional_cost(self.cost, self.classes.size)
        present = np.isfinite(self.intercept)
        if self.link and not np.array_equal(np.isfinite(self.link.offsets), present):
            raise ValueError("the link must know the ranks that have hyperplanes")


def model_of(
    problem: Problem,
    kernel: KernelFunction,
    support: Matrix,
    coef: np.ndarray,
    intercept: np.ndarray,
    squared: np.ndarray,
    parts: Sequence[Convergence],
    *,
    normalize: bool,
    cost: np.ndarray | None,
) -> NpsvorModel:
    """Return a model from the hyperplanes of the p ranks with training rows.

    `coef` is (m, p); `intercept` and `squared`, the squares of |w_k|, are (p,).
    """
    present = problem.present

    def by_class(values: np.ndarray, absent: float) -> np.ndarray:
        """Return one value per class, with `absent` for classes without rows."""
        out = np.full((*values.shape[:-1], problem.n_classes), absent)
        out[..., present] = values
        return read_only(out)

    norms = np.sqrt(np.maximum(squared, 0))
    return NpsvorModel(
        support=support,
        coef=by_class(coef, 0.0),
        intercept=by_class(intercept, np.inf),
        norms=by_class(np.where(norms > 0, norms, 1.0), 1.0),
        normalize=normalize,
        kernel=kernel,
        **problem.model_fields(),
        cost=cost,
        link=None,
        convergence=of_ranks(parts, present),
    )
