"""Base class of the fitted linear models: their estimates, predictions and tables.

It has what the models of `fit_pom`, `fit_ratio` and `fit_clmm` share. The functions of
`ordinal.inference` work on it; those that users call most are methods as well.
"""

from __future__ import annotations

# Annotations are no strings here: their names would be looked up in the modules of the
# subclasses.
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat
from typing import Annotated, Any, Literal

import numpy as np

from .. import inference
from .._cumulative.design import structure_of, threshold_parameter_names
from .._cumulative.fitting import Minimum
from .._cumulative.likelihood import (
    Link,
    cumulative,
    exceeding,
    for_all_ranks,
    quantile,
    rank_probabilities,
)
from .._input.fields import (
    DISTINCT,
    FINITE,
    LABELS,
    SHARED,
    THRESHOLDS,
    Array,
    Length,
    Size,
)
from .._input.immutable import read_only
from .._input.problem import around_ranks
from .._input.sparse import CSR
from .._input.types import ArrayLike, MatrixLike, RowsLike
from .._model.explanation import Named, in_columns, linear_terms
from .._model.labelled import labels_like_those_given
from .._model.model import Model
from .._model.threshold_model import cost_of_rule, decide, names_between, rule_of
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor
from ..inference.covariance import StructuredCovariance
from ..inference.diagnostics import (
    RankedRows,
    cumulative_residuals,
    read_rows,
)
from ..inference.fitted import (
    FitStatistics,
    LinearPredictor,
    check_likelihood,
    covariance_for,
    penalties_of,
    predictors,
    predictors_in_strips,
    read_design,
    remembered,
    scaled_scores,
    score,
    standard_errors,
)
from ..inference.limits import LimitFit, LimitMeans, end_of
from ..inference.margins import (
    DesignRows,
    Errors,
    MarginRows,
    MatrixRows,
    Means,
    TableRows,
    errors_of,
    rows_to_average,
)
from ..inference.steps import TermFits
from ..inference.tables import profile_ends

_SHOWN = 5  # coefficients and thresholds in a `repr`
_SEARCHED = 100  # ranks above which medians are found among the thresholds
_EFFECTS = "location", "nominal", "scale"
_ROUNDING = 1e-9  # differences between processors in thresholds computed from alpha


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Model):
    """Base class of fitted linear models; `PomModel` documents the attributes."""

    # The training rows are no field, so that files, pickles and copies lack them.
    __slots__ = (
        "_remembered", "alpha", "classes", "coef", "convergence", "feature_names",
        "link", "loglik", "n_features", "nominal_coef", "predictor", "scale_coef",
        "statistics", "thresholds",
    )  # fmt: skip

    classes: Annotated[np.ndarray, Array(LABELS, "r"), FINITE, DISTINCT]
    n_features: Annotated[int, Size("d")]
    feature_names: Annotated[tuple[str, ...], Length("d")] | None
    predictor: Annotated[LinearPredictor, SHARED]
    link: Link
    thresholds: Annotated[np.ndarray, Array("f8", "r-1"), THRESHOLDS]
    alpha: Annotated[np.ndarray, Array("f8", "q"), FINITE]
    nominal_coef: Annotated[np.ndarray, Array("f8", "q m"), FINITE]
    coef: Annotated[np.ndarray, Array("f8", "l"), FINITE]
    scale_coef: Annotated[np.ndarray, Array("f8", "k"), FINITE]
    loglik: Annotated[float, FINITE]
    statistics: Annotated[FitStatistics, SHARED]
    convergence: Convergence
    _notes_rows = True

    def _check(self) -> None:
        predictor, statistics = self.predictor, self.statistics
        coding, made = predictor.coding, self.feature_names
        if coding is not None:
            made = coding.column_names
            if coding.n_features != self.n_features:
                raise ValueError("coding must read the n_features columns of the model")
        c = self.n_features if made is None else len(made)
        if len(predictor.column_names) != c:
            raise ValueError(f"column_names must name the {c} columns of the features")
        numbers = {name: getattr(predictor, name) for name in _EFFECTS}
        for name, columns in {**numbers, "separated": statistics.separated}.items():
            if not ((columns >= 0) & (columns < c)).all():
                raise ValueError(f"{name} must number columns, 0 to {c - 1}")
            if np.unique(columns).size < columns.size:
                raise ValueError(f"{name} must number a column once")
        T = int(np.count_nonzero(predictor.observed)) - 1
        if T < 1 or structure_of(predictor.threshold, T).q != self.alpha.size:
            raise ValueError("alpha must have a parameter for each free threshold")
        self._check_thresholds(structure_of(predictor.threshold, T) @ self.alpha)
        p = self.parameters.size
        if statistics.uncertainty is not None and len(statistics.uncertainty) != p:
            raise ValueError(f"uncertainty must have {p} rows, one per parameter")
        if statistics.limits is not None and len(statistics.limits) != p:
            raise ValueError(f"limits must have {p} entries, one per parameter")

    def _check_thresholds(self, inner: np.ndarray) -> None:
        """Raise ValueError unless the thresholds are J alpha, `inner`, at all ranks.

        Those of ratio models need not increase.
        """
        if self.predictor.family != "cumulative":
            return
        theta = self.thresholds
        if not self.predictor.may_cross:
            inner = np.maximum.accumulate(inner)
            if (theta[1:] < theta[:-1]).any():
                raise ValueError("thresholds must not fall without nominal effects")
        present = np.flatnonzero(self.predictor.observed)
        made = around_ranks(inner, present, self.classes.size)
        atol = _ROUNDING * np.abs(self.alpha).max()
        if not np.allclose(theta, made, rtol=_ROUNDING, atol=atol):
            raise ValueError("thresholds must be those that alpha and observed make")

    def _summary(self) -> dict[str, str]:
        lines: dict[str, str] = {"link": self.link}
        if self.statistics.l1 or self.statistics.l2:
            lines["penalties"] = penalties_of(self)
        lines["coef"] = _first_values(self.coef_names, self.coef)
        lines["thresholds"] = _first_values(self.threshold_names, self.thresholds)
        return lines | super()._summary()

    @property
    def disorder(self) -> tuple[str, ...]:
        """Describe thresholds that cross at training rows, one line per pair.

        Only nominal effects can make them cross, and only at rows whose rank is not the
        one between them. The model fits these rows badly; because `predict_proba` sorts
        their cumulative probabilities, these do not give `loglik`. `negative_rows`
        returns the numbers of the rows.
        """
        if not self.statistics.crossings.any():
            return ()  # at once, because there may be a threshold per row
        counts = self.statistics.crossings.tolist()
        return tuple(
            f"{lower} is above {higher} at {count} training row{'s' * (count > 1)}"
            for (lower, higher), count in zip(
                pairwise(self.threshold_names), counts, strict=False
            )
            if count
        )

    @property
    def threshold_names(self) -> tuple[str, ...]:
        """Return the labels on the sides of each threshold, such as "low|mid"."""
        return names_between(self.classes)

    @property
    def coef_names(self) -> tuple[str, ...]:
        """Return the names of the columns of `coef`."""
        return self.predictor.coef_names

    @property
    def parameters(self) -> np.ndarray:
        """Return all estimates, (p,), in the order of `covariance`.

        The order is `alpha`, `nominal_coef` by rows, `coef`, `scale_coef`.
        """
        parts = self.alpha, self.nominal_coef.ravel(), self.coef, self.scale_coef
        return read_only(np.concatenate(parts))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the parameters.

        They are "1|2" for a threshold, "1|2.x" for a nominal coefficient of x at it,
        "x" for a coefficient and "scale.x" for a scale coefficient.
        """
        own, columns = self.predictor, self.predictor.column_names
        between = names_between(self.classes[own.observed])
        alpha = threshold_parameter_names(own.threshold, between)
        nominal = [f"{a}.{columns[j]}" for a in alpha for j in own.nominal]
        scale = [f"scale.{columns[j]}" for j in own.scale]
        return (*alpha, *nominal, *own.coef_names, *scale)

    @property
    def covariance(self) -> np.ndarray | None:
        """Return the covariance of the estimates, (p, p), or None if there is none.

        It is that of (alpha, nominal_coef, coef, scale_coef). For more than 100
        flexible thresholds it is computed at every call from
        `statistics.uncertainty`, which all other methods use.

        Raises
        ------
        MemoryError
            If there are so many parameters that it exceeds the memory of this machine.
        """
        V = self.statistics.uncertainty
        return V.dense() if isinstance(V, StructuredCovariance) else V

    @property
    def dof(self) -> int:
        """Return the number of estimated parameters.

        Raises ValueError for a penalised fit, whose parameters are not free.
        """
        check_likelihood(self, "dof")
        return self.parameters.size

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors, (p,): square roots of the diagonal of `covariance`.

        Raises
        ------
        ValueError
            If the fit was penalised, because the covariance is then not that of the
            errors of the estimates, or if ranks are separated so that nothing can be
            estimated. Otherwise only the parameters without estimates have the error
            nan.
        """
        return standard_errors(self)

    @property
    def aic(self) -> float:
        """AIC, 2 dof - 2 loglik; raises ValueError for a penalised fit."""
        return 2 * self.dof - 2 * self.loglik

    @property
    def bic(self) -> float:
        """BIC, log(n_obs) dof - 2 loglik; raises ValueError for a penalised fit."""
        return float(np.log(self.statistics.n_obs)) * self.dof - 2 * self.loglik

    # Predictions

    def decision_function(
        self, X: RowsLike, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Return x'beta plus the offset, (n,), which is larger for higher ranks.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        offset : (n,) array-like, default 0

        Raises
        ------
        ValueError, TypeError
            If X is not a finite real matrix of `n_features` columns, or if an offset
            does not lie between -1e100 and 1e100.
        """
        return score(self, *read_design(self, X, offset))

    def predict_proba(
        self, X: RowsLike, *, offset: ArrayLike | None = None, as_frame: bool = False
    ) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r).

        If nominal effects make thresholds cross at a row, its cumulative probabilities
        are sorted. This does not increase their distance to those of any model without
        crossings (V. Chernozhukov, I. Fernandez-Val, A. Galichon, "Quantile and
        probability curves without crossing", Econometrica 78:1093-1125, 2010).

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        offset : (n,) array-like, default 0
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array, whose rows sum to 1

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`.
        """
        Z, known = read_design(self, X, offset)
        out = np.empty((len(Z), self.classes.size))
        for rows, P in self._probabilities(Z, known):
            out[rows] = P
        return out

    def _probabilities(
        self, Z: np.ndarray | CSR, offset: np.ndarray | None,
        sd: np.ndarray | None = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:  # fmt: skip
        """Yield slices of rows, and the probabilities of their ranks, (rows, r).

        `sd`, (n,), is the standard deviation of the effects of new groups, if any.
        """
        for rows, eta in predictors_in_strips(self, Z, offset):
            P = self._of_predictors(eta)
            yield rows, P / P.sum(axis=1, keepdims=True)

    def _of_predictors(self, eta: np.ndarray) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r), from eta, (n, T).

        Their sums differ from 1 by rounding.
        """
        return rank_probabilities(*self._sides(eta))

    def _sides(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return P(y <= j) and P(y > j), (n, r - 1) each, from eta, (n, T)."""
        if self.predictor.may_cross:
            eta.sort(axis=1)
        eta = for_all_ranks(self.predictor.observed, eta, -np.inf, np.inf)
        return cumulative(self.link, eta), exceeding(self.link, eta)

    def _means(self, n_more: int = 0) -> Means:
        """Return the sums over rows, with gradients, of models of this class."""
        return Means(self, n_more)

    def _averages(
        self, asked: str, X: Any, offset: Any, sample_weight: Any
    ) -> tuple[Means, MarginRows, Errors]:
        """Return the sums over rows, the rows, and the function that computes standard
        errors from gradients of the sums; messages name the function `asked`.
        """
        errors = partial(errors_of, covariance_for(self, asked, limit=True))
        rows = rows_to_average(self, asked, X, offset, sample_weight)
        if not self.statistics.separated.size:
            return self._means(), rows, errors
        fit = remembered(self, asked)
        assert fit.limit is not None
        return LimitMeans(self, fit.limit, fit.loss.design), rows, errors

    def _residuals(
        self, at: DesignRows, ends: tuple[np.ndarray, np.ndarray], kind: Any, rng: Any
    ) -> np.ndarray:
        """Return the residuals of rows of some ranks, (n,)."""
        return cumulative_residuals(self, at, ends, kind, rng)

    def _ranked_rows(
        self, asked: str, X: Any, y: Any, offset: Any, new: bool
    ) -> RankedRows:
        """Return the given or the training rows; `new` is for random effects."""
        return read_rows(self, asked, X, y, offset)

    def _mean_sides(
        self, at: DesignRows, sd: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return P(y <= j) and P(y > j) of rows, (n, r - 1) each."""
        return self._sides(predictors(self, at.Z, at.offset)[0])

    def _simulated(
        self, asked: str, X: Any, offset: Any, rng: np.random.Generator, n: int
    ) -> Iterator[MatrixRows | TableRows]:
        """Yield the rows of n simulations, with their random effects as offsets."""
        yield from repeat(rows_to_average(self, asked, X, offset, None), n)

    def _end(
        self, loss: Any, found: Minimum, monitor: Monitor
    ) -> tuple[Status, np.ndarray, LimitFit | None]:
        """Return how a fit of fewer terms has ended, separating columns, its limit."""
        return end_of(loss, found, monitor)

    def _term_fits(self, asked: str) -> TermFits:
        """Return the fits of some of the terms to the training rows."""
        return TermFits(self, asked)

    def _profile_ends(self, which: np.ndarray, z: float) -> np.ndarray:
        """Return the ends of the profile intervals of parameters, (m, 2)."""
        return profile_ends(self, which, z)

    def _random_lines(self) -> list[str]:
        """Return the lines of `summary` about random effects."""
        return []

    def _score_terms(self, X: MatrixLike) -> Named | None:
        own = self.predictor
        if own.nominal.size or own.scale.size:  # effects that are not in the score
            return None
        Z, _ = read_design(self, X, None)
        Z = Z[:, own.location] if isinstance(Z, np.ndarray) else Z
        terms = linear_terms(Z, self.coef, self.coef_names)
        if own.coding is None:
            return terms
        of = {j: t for t, at in own.coding.columns_of_terms.items() for j in at}
        return in_columns(terms, [of[j] for j in own.location.tolist()])

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["median", "mode", "cost"] | None = None,
        cost: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        rule : {"median", "mode", "cost"}, optional
            Default: the `rule` of the model or, without one, "median". The median has
            the least expected absolute error. The mode is the most probable rank, which
            `polr` and `clm` of R predict. "cost" is the rank of least expected cost.
        cost : (r, r) array-like, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default
            |j - k|.
        offset : (n,) array-like, default 0

        Returns
        -------
        (n,) array of labels, of the type of `classes`, or as `Model.predict`

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`; also if the rule is unknown, or if `cost` is
            passed with another rule or does not have shape (r, r).
        """
        return self._predicted(X, *read_design(self, X, offset), None, rule, cost)

    def _predicted(
        self, X: RowsLike, Z: np.ndarray | CSR, offset: np.ndarray | None,
        sd: np.ndarray | None, rule: str | None, cost: ArrayLike | None,
    ) -> np.ndarray:  # fmt: skip
        """Return the labels of rows X by a rule, given the design and offsets."""
        by, r = rule_of(self, rule), self.classes.size
        if by == "cost" and cost is None and r > _SEARCHED:
            # The rank of least expected |j - k|, whose matrix has r^2 entries.
            by = "median"
        table = cost_of_rule(by, self._rules, cost, None, r)
        if by == "median" and self._is_searched(offset):
            ranks = self._quantiles(Z, offset, np.array(0.5), sd)
        else:
            ranks = np.empty(len(Z), dtype=np.int64)
            for rows, P in self._probabilities(Z, offset, sd):
                ranks[rows] = decide(P, by, table)
        return labels_like_those_given(self, self.classes[ranks], X)

    def _is_searched(self, offset: np.ndarray | None) -> bool:
        """Return whether quantiles of rows are found among many thresholds."""
        own = self.predictor
        is_plain = own.family == "cumulative" and not own.may_cross
        shifted = offset is not None and offset.ndim == 2
        return is_plain and not shifted and self.classes.size > _SEARCHED

    def _quantiles(
        self, Z: np.ndarray | CSR, offset: np.ndarray | None, p: np.ndarray,
        sd: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the ranks of rows whose P(y <= j) reaches p, (n,), first, (n,).

        They are found among the thresholds, in O(log r) per row.
        """
        f, unit = scaled_scores(self, Z, offset)
        at = f[:, 0] + quantile(self.link, p) / unit[:, 0]
        return np.asarray(np.searchsorted(self.thresholds, at))

    # Inference

    summary = inference.summary
    table = inference.table
    confint = inference.confint
    marginal_effects = inference.marginal_effects
    predictions = inference.predictions
    residuals = inference.residuals


def _first_values(names: tuple[str, ...], values: np.ndarray) -> str:
    """Return the first `_SHOWN` values with their names, as text."""
    shown = [f"{name} {v:.4g}" for name, v in zip(names, values.tolist(), strict=True)]
    more = f", ... ({len(shown)})" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more if shown else "none"
