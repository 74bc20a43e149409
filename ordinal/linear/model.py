"""Model that `fit_pom` returns, and paths of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from .._input.checks import as_real_array, check_entries, shown
from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, Array, Length
from .._model.printing import Table, html_notes
from .._model.storage import Storable
from .._watch.convergence import Convergence
from .estimates import LinearModel
from .ratio import RatioModel


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PomModel(LinearModel):
    """P(y <= j | x) = F((theta_j - n'nu_j - x'beta) / exp(z'zeta)).

    Attributes
    ----------
    coef : (d,) array
        Coefficients beta. A feature with a positive coefficient makes higher ranks more
        probable.
    thresholds : (r - 1,) array
        Thresholds theta where the columns `nominal` are 0. They are -inf or +inf where
        no training rows lie beyond them, and equal on both sides of an inner rank
        without training rows.
    nominal_coef : (q, m) array
        Coefficients of the columns `nominal`, one per threshold if thresholds are
        flexible, otherwise one per entry of `alpha`.
    scale_coef : (k,) array
        Coefficients zeta of the columns `scale`.
    alpha : (q,) array
        Free parameters of the thresholds.
    link : str
    predictor : LinearPredictor
        How rows become linear predictors. Among its attributes are `coding`, the
        conversion of the columns of a table or of the terms of a formula to numeric
        columns; `column_names` of these; `location`, `nominal` and `scale`, the
        positions of the columns that have `coef`, `nominal_coef` and `scale_coef`;
        `observed`, whether each rank has training rows; `dropped`, the names of columns
        that others determine.
    loglik : float
        sum_i w_i log P(y_i), without penalties.
    statistics : FitStatistics
        Further results of the fit: `null_loglik`, the log-likelihood without features;
        `n_obs`, the sum of the weights; `n_missing`, the number of rows that were left
        out; `uncertainty`, from which `covariance` makes a matrix, and
        `covariance_type`; the penalties `l1` and `l2`; `separated`, the positions
        of columns that separate the ranks, and `limits` of their parameters;
        `crossings`, the number of training rows at which each threshold lies above the
        next one; `touching`, the number at which `in_order` holds both together.
    classes : (r,) array
        Labels in rank order.
    n_features : int
    feature_names : tuple of str, or None
    convergence : Convergence
        Record of the fit. Its `primal` is the mean loss with penalties.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> model
    PomModel
      link         logit
      coef         x1 2.557, x2 1.432
      thresholds   1|2 6.228, 2|3 9.702
      classes      3: 1, 2, 3
      features     2
      convergence  converged after ...
    >>> model.predict_proba([[0, 4], [1, 4]]).round(3)
    array([[0.622, 0.359, 0.018],
           [0.113, 0.691, 0.195]])
    >>> model.predict([[0, 4], [1, 4]])
    array([1, 2])
    """


ConcaveLink = Literal["logit", "probit", "cloglog", "loglog"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PomPath(Storable):
    """Cumulative link models along a path of penalties, from the largest one.

    Attributes
    ----------
    lambdas : (K,) array
        Penalties, in decreasing order.
    ratio : float
        Share of the l1 penalty.
    models : tuple of (K,) PomModel, or RatioModel
    convergence : Convergence
        Record of the fit; `parts` has one entry per penalty with `primal`, `dual` and
        `gap`.
    """

    lambdas: Annotated[np.ndarray, Array("f8", "K"), FINITE, POSITIVE]
    ratio: Annotated[float, FINITE, NONNEGATIVE]
    models: Annotated[tuple[PomModel | RatioModel, ...], Length("K")]
    convergence: Convergence

    def __len__(self) -> int:
        return len(self.models)

    def model(self, k: int) -> PomModel | RatioModel:
        """Return the model of `lambdas[k]`.

        Raises
        ------
        ValueError
            If k does not lie in -K..K-1. Negative numbers count from the smallest
            penalty.
        """
        n = len(self.models)
        if isinstance(k, bool) or not (isinstance(k, int | np.integer) and -n <= k < n):
            raise ValueError(
                f"k must be the number of a penalty, {-n}..{n - 1}, got {shown(k)}"
            )
        return self.models[k]

    @property
    def coefs(self) -> np.ndarray:
        """`coef` of every model, (K, d)."""
        return np.stack([model.coef for model in self.models])

    @property
    def coef_names(self) -> tuple[str, ...]:
        """Return the names of the columns of `coefs`."""
        return self.models[0].coef_names

    @property
    def thresholds(self) -> np.ndarray:
        """`thresholds` of every model, (K, r - 1)."""
        return np.stack([model.thresholds for model in self.models])

    @property
    def n_nonzero(self) -> np.ndarray:
        """Return the numbers of nonzero coefficients, (K,)."""
        return np.array([np.count_nonzero(model.coef) for model in self.models])

    @property
    def loglik(self) -> np.ndarray:
        """Log-likelihoods without penalties, (K,)."""
        return np.array([model.loglik for model in self.models])

    @property
    def null_loglik(self) -> float:
        """Log-likelihood of the model without features."""
        return self.models[0].statistics.null_loglik

    @property
    def dev_ratio(self) -> np.ndarray:
        """Shares of the deviance without features that the models explain, (K,)."""
        return np.asarray(1 - self.loglik / self.null_loglik)

    @property
    def gaps(self) -> np.ndarray:
        """Return the duality gaps of the models, (K,).

        They are upper bounds on the distances of the objectives, mean losses with
        penalties, to their minima.
        """
        return np.array([model.convergence.gap for model in self.models])

    def __repr__(self) -> str:
        names = ("lambdas", self.lambdas, ".3g"), ("nonzero", self.n_nonzero, "d")
        lines = [f"PomPath of {len(self)} penalties, ratio {self.ratio:g}"]
        for name, values, spec in (*names, ("dev_ratio", self.dev_ratio, ".3f")):
            lines.append(f"  {name:<13}{values[0]:{spec}} to {values[-1]:{spec}}")
        return "\n".join([*lines, f"  {'convergence':<13}{self.convergence}"])

    def table(self) -> Table:
        """Return a table with one row per penalty.

        Its columns are the penalty, the number of nonzero coefficients, the
        log-likelihood and the share of the deviance that is explained.
        """
        return Table(
            {
                "lambda": self.lambdas,
                "nonzero": self.n_nonzero,
                "loglik": self.loglik,
                "dev_ratio": self.dev_ratio,
            }
        )

    def _repr_html_(self) -> str:
        notes = [f"PomPath, ratio {self.ratio:g}; {self.convergence}"]
        return html_notes(notes) + self.table()._repr_html_()

    def _check(self) -> None:
        if not self.models:
            raise ValueError("a path needs a model")
        if (np.diff(self.lambdas) > 0).any():
            raise ValueError("lambdas must not rise")
        if len({(m.coef.size, m.thresholds.size) for m in self.models}) > 1:
            raise ValueError("the models of a path must have the same columns")


def read_lambdas(lambdas: Any, ratio: float) -> np.ndarray | None:
    """Return the penalties that the caller passed, largest first, or None.

    Raises ValueError or TypeError unless they are positive. They must be given for the
    ridge penalty, `ratio` 0: no finite one makes all coefficients 0.
    """
    if lambdas is None:
        if ratio == 0:
            raise ValueError(
                "lambdas must be given for ratio=0: no penalty is the largest"
            )
        return None
    a = as_real_array(lambdas, "lambdas")
    if a.ndim != 1 or not a.size:
        raise ValueError(f"lambdas must be a sequence of numbers, got shape {a.shape}")
    check_entries("lambdas", a, np.isfinite(a) & (a > 0), "be positive and finite")
    return np.sort(a)[::-1].copy()


def geometric(largest: float, smallest: float, n: int) -> np.ndarray:
    """Return n penalties with constant ratio, from `largest` to smallest * largest."""
    return largest * smallest ** (np.arange(n) / max(1, n - 1))
