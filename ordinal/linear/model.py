"""Model that `fit_pom` returns, and its tables as broom has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from .._cumulative.likelihood import (
    cumulative,
    exceeding,
    for_all_ranks,
    rank_probabilities,
)
from .._input.checks import as_real_array, check_entries, check_flag, shown
from .._input.fields import FINITE, NONNEGATIVE, POSITIVE, Array, Length
from .._input.types import ArrayLike, MatrixLike
from .._model.explanation import Named, linear_terms
from .._model.printing import Table, html_notes
from .._model.storage import Storable
from .._model.threshold_model import by_probabilities, decide
from .._watch.convergence import Convergence
from .comparisons import Comparisons
from .estimates import predictors, remembered, score
from .margins import TableRows
from .residuals import probabilities_of, read_rows, residuals_of


class Reports(Comparisons):
    """Tables of the estimates, of the fit as a whole, and of the rows."""

    __slots__ = ()

    def tidy(
        self,
        level: float = 0.95,
        *,
        method: Literal["wald", "profile"] = "wald",
        exponentiate: bool = False,
    ) -> Table:
        """Return one entry per parameter: estimate, error, test and interval.

        Parameters
        ----------
        level, method
            As for `confint`. Profile intervals of thresholds and nominal effects, which
            there are not, are nan.
        exponentiate : bool, default False
            Transform estimates and intervals by exp, such as to odds ratios; standard
            errors and tests stay those of the estimates.

        Returns
        -------
        Table
            The columns of `table`, with "lower" and "upper".

        Raises
        ------
        ValueError
            As for `confint`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> list(ordinal.fit_pom(X, y).tidy())[-4:]
        ['z', 'p_value', 'lower', 'upper']
        """
        table, ends = self.table(), self.confint(level, method=method)
        lower, upper = np.full((2, table["name"].size), np.nan)
        # profiles are of the last ones, `coef` and `scale_coef`
        own = slice(table["name"].size - ends["name"].size, None)
        lower[own], upper[own] = ends["lower"], ends["upper"]
        columns = {**table, "lower": lower, "upper": upper}
        if check_flag("exponentiate", exponentiate):
            with np.errstate(over="ignore"):  # infinite then, which is right
                for name in ("estimate", "lower", "upper"):
                    columns[name] = np.exp(columns[name])
        return Table(columns)

    def glance(self) -> Table:
        """Return the figures of the fit as a whole, in one entry.

        Returns
        -------
        Table
            A dict of arrays of one entry: "link", "threshold", "n_obs", "n_missing",
            "parameters", "loglik", "null_loglik", "deviance", "aic", "bic",
            "mcfadden_r2", "converged".

        Raises
        ------
        ValueError
            As for `dof`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> glance = ordinal.fit_pom(X, y).glance()
        >>> glance["parameters"], glance["n_obs"]
        (array([4]), array([300.]))
        """
        figures = {
            "link": self.link,
            "threshold": self.threshold,
            "n_obs": self.n_obs,
            "n_missing": self.n_missing,
            "parameters": self.dof,
            "loglik": self.loglik,
            "null_loglik": self.null_loglik,
            "deviance": self.deviance,
            "aic": self.aic,
            "bic": self.bic,
            "mcfadden_r2": self.mcfadden_r2,
            "converged": self.convergence.converged,
        }
        return Table({name: np.array([value]) for name, value in figures.items()})

    def augment(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Table:
        """Return one entry per row: features, rank, predictions and residuals.

        Parameters
        ----------
        X, y, offset : optional
            As for `residuals`. Default: the training rows, but for those that the fit
            left out.

        Returns
        -------
        Table
            A dict of (n,) arrays: the features by name; ".rank" and ".weight";
            ".score", x'beta with the offset; ".fitted", the predicted label by the
            median; ".p[label]" for each rank with training rows; ".residual", the
            probability-scale one; and for training rows of a model with
            standard errors ".leverage" and ".cooks_distance".

        Raises
        ------
        ValueError, TypeError
            As for `residuals`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> list(ordinal.fit_pom(X, y).augment())[:6]
        ['x1', 'x2', '.rank', '.weight', '.score', '.fitted']
        """
        rows = read_rows(self, "augment", X, y, offset)
        source, every = rows.source, slice(0, rows.rank.size)
        Z, known = source.at(every)
        columns: dict[str, np.ndarray] = {}
        if isinstance(source, TableRows):
            for name, column in zip(
                source.frame.shown_names, source.frame, strict=True
            ):
                labels = column.labels
                columns[name] = (
                    np.asarray(column)
                    if labels is None
                    else labels[column.values.astype(np.int64)]
                )
        else:
            columns = dict(zip(source.names, Z.T, strict=True))
        known_ranks = self.classes[self.observed]
        P = probabilities_of(self, rows)
        columns |= {
            ".rank": known_ranks[rows.rank],
            ".weight": rows.weight,
            ".score": Z[:, self.location] @ self.coef + known,
            ".fitted": known_ranks[decide(P, "median")],
        }
        columns |= {
            f".p[{label}]": p
            for label, p in zip(known_ranks.tolist(), P.T, strict=True)
        }
        columns[".residual"] = residuals_of(self, rows, "probability", None)
        if X is None and self.has_errors:
            found = self.influence()
            columns[".leverage"] = found.leverage
            columns[".cooks_distance"] = found.cooks_distance
        return Table(columns)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PomModel(Reports):
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

    def decision_function(
        self, X: MatrixLike, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Return x'beta plus the offset, (n,), which is larger for higher ranks.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        offset : (n,) array-like, default 0

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns, or an offset not
            between -1e100 and 1e100.
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

    def negative_rows(
        self, X: MatrixLike | None = None, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the rows at which nominal effects make thresholds cross.

        Formula (1) gives negative probabilities there, which `predict_proba` puts in
        order. `fit_ratio` fits models whose nominal effects cannot do so.

        Parameters
        ----------
        X : (n, n_features) array or data frame, optional
            By default the training rows that the fit used, in their order, in the
            process that fitted the model.
        offset : (n,) array-like, default 0
            With X only.

        Returns
        -------
        (k,) int array, numbers of rows

        Raises
        ------
        ValueError, TypeError
            As `decision_function`; without X as `influence`, and for an offset.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> model = ordinal.fit_pom(X, y, nominal=[0])
        >>> model.negative_rows([[-50.0, 10.0], [15.0, 15.0]])
        array([0])
        """
        if X is not None:
            eta, _ = predictors(self, *self._read(X, offset))
            return np.flatnonzero((np.diff(eta, axis=1) < 0).any(axis=1))
        if offset is not None:
            raise ValueError("offset must be None without X: training rows have theirs")
        design, x = (fit := remembered(self, "negative_rows")).loss.design, fit.x
        alpha, nu, _, _ = design.split(x)
        slopes = np.diff(design.J @ nu, axis=0)
        gaps = (
            np.diff(design.J @ alpha)
            - design.columns(slice(0, design.n_samples), design.nominal) @ slopes.T
        )
        return np.flatnonzero((gaps < 0).any(axis=1))

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
        return by_probabilities(self, X, rule, rules, cost, offset=offset)

    def _score_terms(self, X: MatrixLike) -> Named | None:
        if self.nominal.size or self.scale.size:  # effects that the score knows not
            return None
        Z, _ = self._read(X, None)
        Z = Z[:, self.location] if isinstance(Z, np.ndarray) else Z
        return linear_terms(Z, self.coef, self.coef_names)

    def _predictors(self, X: MatrixLike, offset: ArrayLike | None) -> np.ndarray:
        """eta, (n, r - 1), in order at every row."""
        eta, _ = predictors(self, *self._read(X, offset))
        if self.nominal.size:
            eta.sort(axis=1)
        return for_all_ranks(self.observed, eta, -np.inf, np.inf)


ConcaveLink = Literal["logit", "probit", "cloglog", "loglog"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PomPath(Storable):
    """Cumulative link models along a path of penalties, from the largest one.

    Attributes
    ----------
    lambdas : (K,) array
        Penalties, falling.
    ratio : float
        The share of the absolute values in the penalty.
    models : tuple of (K,) PomModel
    convergence : Convergence
        One of its `parts` a penalty, with `primal`, `dual` and `gap`.
    """

    lambdas: Annotated[np.ndarray, Array("f8", "K"), FINITE, POSITIVE]
    ratio: Annotated[float, FINITE, NONNEGATIVE]
    models: Annotated[tuple[PomModel, ...], Length("K")]
    convergence: Convergence

    def __len__(self) -> int:
        return len(self.models)

    def model(self, k: int) -> PomModel:
        """Return the model of `lambdas[k]`.

        Raises
        ------
        ValueError
            If k is no number of a penalty: -K..K-1, of which negative ones count from
            the smallest penalty.
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
        """Log-likelihoods, without penalties, (K,)."""
        return np.array([model.loglik for model in self.models])

    @property
    def null_loglik(self) -> float:
        """The log-likelihood without features."""
        return self.models[0].null_loglik

    @property
    def dev_ratio(self) -> np.ndarray:
        """The share of the deviance without features that is explained, (K,)."""
        return np.asarray(1 - self.loglik / self.null_loglik)

    @property
    def gaps(self) -> np.ndarray:
        """Duality gaps, (K,): how far the objectives, mean losses with their penalties,
        are from their minima at most.
        """
        return np.array([model.convergence.gap for model in self.models])

    def __repr__(self) -> str:
        names = ("lambdas", self.lambdas, ".3g"), ("nonzero", self.n_nonzero, "d")
        lines = [f"PomPath of {len(self)} penalties, ratio {self.ratio:g}"]
        for name, values, spec in (*names, ("dev_ratio", self.dev_ratio, ".3f")):
            lines.append(f"  {name:<13}{values[0]:{spec}} to {values[-1]:{spec}}")
        return "\n".join([*lines, f"  {'convergence':<13}{self.convergence}"])

    def table(self) -> Table:
        """Return a row per penalty: its value, the number of nonzero coefficients, the
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
    """Return the caller's penalties, largest first, or None if there are none.

    Raises ValueError or TypeError unless they are positive, and ValueError if there are
    none and the ridge penalty alone, `ratio` 0, has no largest one.
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
    """Return n penalties at equal ratios, from the largest to `smallest` times that."""
    return largest * smallest ** (np.arange(n) / max(1, n - 1))
