"""What the models with one score and thresholds share."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._input.problem import Problem
from .._input.sparse import CSR
from .._numerics.rows import take
from .convergence import Convergence, DisorderedThresholdsWarning, worse
from .links import CumulativeLink, out_of_fold, predicted, require_link
from .model import ThresholdModel, check_support, decision
from .monitor import Monitor


class ScoreModel(ThresholdModel):
    """A score f(x) = sum_i coef[i] k(support_i, x) and the thresholds that cut it.

    A subclass is a frozen dataclass with at least the fields named here, and says in
    `_shapes` what arrays of float64 it holds.
    """

    __slots__ = ()

    support: np.ndarray | CSR
    coef: np.ndarray
    thresholds: np.ndarray
    kernel: Callable
    n_features: int
    link: CumulativeLink | None
    convergence: Convergence

    @property
    def disorder(self) -> tuple[str, ...]:
        """What thresholds are out of order, a line for each such pair of neighbours.

        By more than `tol`. Empty for an ordered model, which `fit_svorex` always gives,
        the others of its kind where the rows of the cost are convex, and `fit_tlssvor`
        where u is infinite.
        """
        named = zip(self.threshold_names, self.thresholds.tolist(), strict=True)
        return tuple(
            f"{lower} at {a:.4f} is above {higher} at {b:.4f}"
            for (lower, a), (higher, b) in pairwise(named)
            if a - b > self.convergence.tol
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """The latent score f(x), which increases with the rank.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            Rows to judge; for a precomputed kernel k(rows, training rows).

        Returns
        -------
        (n,) array
            In the unit of the margin: up to slack, training rows lie 1 or more from
            the thresholds.

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns; the Pearson
            kernel takes NaN.
        """
        return decision(self, X)

    def _decided(self, sums: np.ndarray) -> np.ndarray:
        """The score from the (n, 1) sums over the support rows."""
        return sums[:, 0]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the ranks, a cumulative logistic link of the score.

        P(y <= j) falls as the score rises and passes 1/2 at the score offsets[j] /
        slope of the `link`: the threshold as the probabilities see it. It is near
        `thresholds[j]`, but calibrated on rows that the score was not fitted to.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`, which says what else is raised.

        Returns
        -------
        (n, r) array
            Rows sum to 1.

        Raises
        ------
        ValueError
            If the model was fitted without `probability`.
        """
        return self._proba(self.decision_function(X))

    def _proba(self, f: np.ndarray) -> np.ndarray:
        """`predict_proba` of rows with the scores f."""
        return require_link(self.link)(f)

    def predict(
        self, X: Any, *, rule: str = "threshold", cost: Any = None
    ) -> np.ndarray:
        """Labels by a rule.

        Parameters
        ----------
        X : (n, n_features) array or CSR
            As for `decision_function`.
        rule : {"threshold", "mode", "median", "cost"}, default "threshold"
            "threshold" counts the `thresholds` that the score reaches; a score on a
            threshold goes up. The others use `predict_proba`: its most probable rank,
            its median (again a threshold rule, at offsets / slope of the `link`), or
            the rank of least expected cost. Threshold, median and mode never fall as
            the score rises.
        cost : (r, r) array-like, optional, for rule="cost" only
            cost[j, k] of predicting k for a row of rank j; default the `cost` of the
            model.

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError
            If a rule on probabilities is asked of a model without them, or `cost` is
            not as in `fit_svorim`.
        """
        return predicted(self, X, rule, "threshold", cost)

    def _labels(self, f: np.ndarray) -> np.ndarray:
        """`predict` of rows with the scores f, by the thresholds."""
        # in disorder, too, a rank between equal thresholds is never predicted
        b = self.thresholds
        last = np.flatnonzero(np.append(b[1:] != b[:-1], True))
        reached = np.searchsorted(np.sort(b[last]), f, side="right")
        return self.classes[np.append(0, last + 1)[reached]]

    def _shapes(self, m: int, r: int) -> dict[str, tuple[int, ...]]:
        raise NotImplementedError

    def _check(self) -> None:
        m, r = len(self.support), self.classes.size
        self._check_arrays(self._shapes(m, r))
        if np.isnan(self.thresholds).any():
            raise ValueError("thresholds must not be NaN")
        check_support(self.support, self.kernel, m, self.n_features)
        if self.link is not None and self.link.offsets.shape != (r - 1,):
            raise ValueError("the link must have an offset a threshold")


def warn_of(model: ScoreModel, name: str, stacklevel: int) -> None:
    """Warn at the caller of the function `name` of what its model falls short of."""
    model.convergence.warn_unless_converged(name, stacklevel=stacklevel + 1)
    if model.disorder:
        warnings.warn(
            f"{name}: thresholds out of order: {'; '.join(model.disorder)}",
            DisorderedThresholdsWarning,
            stacklevel=stacklevel,
        )


def calibrated(
    model: Any,
    problem: Problem,
    fold: np.ndarray,
    fit: Callable[[Problem, np.ndarray], Any],
    monitor: Monitor,
) -> Any:
    """The model with a link fitted to out-of-fold scores.

    `fit` makes the model of a part of the problem that holds the rows it is told. A
    fold's scores are moved by what its thresholds lie lower than the model's: only the
    distance to them means the same in both.
    """
    single = np.flatnonzero((fold < 0) & (problem.weight > 0))
    score = np.zeros(problem.n_samples)
    if single.size:
        score[single] = model.decision_function(take(problem.X, single))
    inner = np.isfinite(model.thresholds)
    convergence = model.convergence
    for part, train, rows, X in out_of_fold(problem, model.kernel, fold):
        of_fold = fit(part, train)
        shift = (model.thresholds[inner] - of_fold.thresholds[inner]).mean()
        score[rows] = of_fold.decision_function(X) + shift
        convergence = worse(convergence, of_fold.convergence)
    link = CumulativeLink.fit(score, problem.rank, problem.weight, problem.n_classes)
    convergence = replace(convergence, seconds=monitor.seconds)
    return replace(model, link=link, convergence=convergence)
