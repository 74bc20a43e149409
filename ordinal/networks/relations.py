"""Model that `fit_cnnor` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._cumulative.likelihood import for_all_ranks
from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    NONNEGATIVE,
    POSITIVE,
    Array,
    Length,
    Size,
)
from .._input.problem import Problem
from .._input.sparse import read_only
from .._input.types import MatrixLike
from .._model.model import read_for
from .._model.support import finite_scores
from .._watch.convergence import Convergence
from .convolution import Related, Tower, standardized, votes
from .layers import LayerRows
from .models import OrderedOutputs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CnnorModel(OrderedOutputs):
    """Convolutional network, and embeddings of training rows for comparison.

    Attributes
    ----------
    mean, scale : (n_features,) arrays
        Means and standard deviations of the training rows.
    width : int
        Number w of features per filter.
    filters : (w, F) array
        Filters on w neighbouring features.
    filter_bias : (F,) array
    hidden_weights : (n_features F, h) array
        Weights of the outputs of the filters; the outputs at one feature are
        consecutive.
    hidden_bias : (h,) array
    output_weights : (h, q) array
        Weights of the embedding e(x).
    low, high : (m, s, q) arrays
        Embeddings of pairs of training rows of the ranks below and above each
        threshold.
    slopes, offsets : (m,) arrays
        Logistic functions of the votes: the log odds of y > k are slopes[k] z_k -
        offsets[k], where z_k are those of the mean vote.
    observed : (r,) bool array
        Which ranks have training rows of positive weight; m is one less.
    l2 : float
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit. Its `primal` is (P) of `fit_cnnor`. There is no dual.
    """

    mean: Annotated[np.ndarray, Array("f8", "d"), FINITE]
    scale: Annotated[np.ndarray, Array("f8", "d"), FINITE, POSITIVE]
    width: Annotated[int, Size("w")]
    filters: Annotated[np.ndarray, Array("f8", "w f"), FINITE]
    filter_bias: Annotated[np.ndarray, Array("f8", "f"), FINITE]
    hidden_weights: Annotated[np.ndarray, Array("f8", "c h"), FINITE]
    hidden_bias: Annotated[np.ndarray, Array("f8", "h"), FINITE]
    output_weights: Annotated[np.ndarray, Array("f8", "h q"), FINITE]
    low: Annotated[np.ndarray, Array("f8", "m s q"), FINITE]
    high: Annotated[np.ndarray, Array("f8", "m s q"), FINITE]
    slopes: Annotated[np.ndarray, Array("f8", "m"), FINITE, NONNEGATIVE]
    offsets: Annotated[np.ndarray, Array("f8", "m"), FINITE]
    observed: Annotated[np.ndarray, Array("b1", "r")]
    l2: Annotated[float, FINITE, NONNEGATIVE]
    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    convergence: Convergence

    def _check(self) -> None:
        m = len(self.low)
        if m < 1 or np.count_nonzero(self.observed) != m + 1:
            raise ValueError("observed must name one rank more than there are pairs")
        if len(self.hidden_weights) != self.n_features * self.filter_bias.size:
            raise ValueError("hidden_weights must have one row per feature and filter")
        if not (self.low.size and len(self.filters)):
            raise ValueError("low and filters must not be empty")

    def places(self, X: MatrixLike) -> np.ndarray:
        """Return the embeddings e(x), (n, q); rows of similar ranks are near one
        another.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns, or if the values
            of a row are so large that its embedding overflows.
        """
        rows = LayerRows(read_for(self, X), self.mean, self.scale)
        tower = Tower(
            np.vstack([self.filters, self.filter_bias]),
            np.vstack([self.hidden_weights, self.hidden_bias]),
            self.output_weights,
        )
        out = np.empty((rows.X.shape[0], self.output_weights.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            for part in rows.chunks():
                out[part] = tower.places(standardized(rows, part))
        return finite_scores(out)

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the log odds of y > k, (n, r - 1), by the votes at each threshold.

        A vote is the mean of the probabilities (T) that the row is nearer to the higher
        row of a pair than to the lower one, corrected by a logistic function per
        threshold. The log odds are not constrained to decrease with k. They are inf or
        -inf where no training rows lie beyond the threshold, and equal on both sides of
        an inner rank without training rows.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame

        Raises
        ------
        ValueError, TypeError
            As in `places`.
        """
        E = self.places(X)
        with np.errstate(over="ignore", invalid="ignore"):  # seen by the check
            z = self.slopes * votes(E, self.low, self.high) - self.offsets
        return for_all_ranks(self.observed, finite_scores(z), np.inf, -np.inf)


def cnnor_model(problem: Problem, found: Related, l2: float) -> CnnorModel:
    """Return the model that `fit_cnnor` returns."""
    tower = found.tower
    return CnnorModel(
        mean=read_only(found.rows.mean),
        scale=read_only(found.rows.scale),
        width=len(tower.K) - 1,
        filters=read_only(tower.K[:-1].copy()),
        filter_bias=read_only(tower.K[-1].copy()),
        hidden_weights=read_only(tower.U[:-1].copy()),
        hidden_bias=read_only(tower.U[-1].copy()),
        output_weights=read_only(tower.V.copy()),
        low=read_only(found.low),
        high=read_only(found.high),
        slopes=read_only(found.slopes),
        offsets=read_only(found.offsets),
        observed=read_only(problem.present),
        l2=l2,
        classes=problem.classes,
        n_features=problem.n_features,
        feature_names=problem.feature_names,
        convergence=found.convergence,
    )
