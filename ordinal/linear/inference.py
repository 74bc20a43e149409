"""Likelihood inference for the estimates of a cumulative model.

In large samples, estimates are normally distributed about the true values with the
covariance of the model. With a penalty or separated ranks they are not, so methods that
rely on this raise an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from .._cumulative.design import Design, read_offset
from .._cumulative.likelihood import for_all_ranks, rank_probabilities
from .._input.checks import (
    check_choice,
    check_flag,
    check_share,
    enumerated,
    listed,
    shown,
)
from .._input.immutable import read_only
from .._input.sparse import CSR
from .._input.types import ArrayLike, MatrixLike
from .._model.model import read_for
from .._model.printing import LEGEND, Table, Text, aligned, coefficient_lines
from .._model.threshold_model import by_probabilities, names_between
from .._numerics.tails import chi2_tail, normal_margin, normal_two_sided
from .estimates import (
    Estimates,
    bias_of,
    check_likelihood,
    covariance_for,
    estimates_of,
    predictors,
    remembered,
    score,
)
from .limits import LimitMeans
from .margins import (
    Errors,
    MarginRows,
    Means,
    averages_table,
    effects_table,
    errors_of,
    rows_to_average,
)
from .refits import brant_test, limit_interval, profile_interval, ratio_tests


class Wald(Estimates):
    """Standard errors, intervals and tables from the covariance of the estimates."""

    __slots__ = ()

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
        V = covariance_for(self, "standard_errors", limit=True)
        errors = np.sqrt(np.maximum(np.diagonal(V), 0.0))
        return read_only(np.where(np.isfinite(estimates_of(self)), errors, np.nan))

    @property
    def z(self) -> np.ndarray:
        """Wald statistics, (p,): estimates divided by their standard errors."""
        with np.errstate(invalid="ignore"):
            return read_only(estimates_of(self) / self.standard_errors)

    @property
    def p_values(self) -> np.ndarray:
        """Two-sided p-values of `z` under the normal distribution, (p,)."""
        return read_only(normal_two_sided(self.z))

    @property
    def has_errors(self) -> bool:
        """Return whether there are standard errors, and intervals and tests by them.

        A penalised fit has none, nor has one with separated ranks or with more features
        than `covariance` is computed for.
        """
        none = self.covariance is None or self.separated.size
        return not none and not bias_of(self)

    # The fit as a whole

    @property
    def deviance(self) -> float:
        """Return the deviance, -2 loglik."""
        return -2 * self.loglik

    @property
    def aic(self) -> float:
        """AIC, 2 dof - 2 loglik; raises ValueError for a penalised fit."""
        return 2 * self.dof + self.deviance

    @property
    def bic(self) -> float:
        """BIC, log(n_obs) dof - 2 loglik; raises ValueError for a penalised fit."""
        return float(np.log(self.n_obs)) * self.dof + self.deviance

    @property
    def mcfadden_r2(self) -> float:
        """McFadden's R2, 1 - loglik / null_loglik, which is 0 without features."""
        # Rounding may leave a model without effects below the null model.
        return max(0.0, 1 - self.loglik / self.null_loglik)

    # Tables

    def table(self) -> Table:
        """Return the estimates with errors and tests, as arrays by name.

        Returns
        -------
        Table
            A dict of (p,) arrays: "name"; "kind" ("threshold", "nominal", "location" or
            "scale"); "estimate"; "standard_error"; "z"; "p_value". It prints as a
            table, and `pandas.DataFrame` takes it.

        Raises
        ------
        ValueError
            As for `standard_errors`.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> model.table()
        name kind      estimate standard_error       z  p_value
        1|2  threshold  6.22797        4.20292 1.48182 0.138388
        2|3  threshold  9.70213        6.09846 1.59091 0.111629
        x1   location   2.55694        2.14936 1.18963 0.234192
        x2   location   1.43238       0.920156 1.55667 0.119548
        """
        kinds = "threshold", "nominal", "location", "scale"
        parts = self.alpha, self.nominal_coef, self.coef, self.scale_coef
        return Table(
            {
                "name": np.array(self.parameter_names, dtype=str),
                "kind": np.repeat(kinds, [part.size for part in parts]),
                "estimate": estimates_of(self),
                "standard_error": self.standard_errors,
                "z": self.z,
                "p_value": self.p_values,
            }
        )

    def summary(self) -> Text:
        """Return the tables of the fit in the form in which R's `clm` prints them.

        Returns
        -------
        Text
            A string that displays itself in a shell; `print` it elsewhere.

        Raises
        ------
        ValueError
            As for `standard_errors`.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> for line in model.summary().splitlines()[3:7]:
        ...     print(line)
        Coefficients:
           Estimate Std. Error z value Pr(>|z|)
        x1   2.5569     2.1494   1.190    0.234
        x2   1.4324     0.9202   1.557     0.12
        """
        covariance_for(self, "summary", limit=True)
        return Text("\n".join(_summary_lines(self)))

    def confint(
        self, level: float = 0.95, *, method: Literal["wald", "profile"] = "wald"
    ) -> Table:
        """Return confidence intervals of the parameters.

        Parameters
        ----------
        level : float in (0, 1), default 0.95
        method : {"wald", "profile"}, default "wald"
            Wald intervals are the estimate plus and minus a multiple of its standard
            error. Profile likelihood intervals contain the values that a likelihood
            ratio test does not reject. They are better in small samples and far from 0,
            do not depend on the parametrisation, and are the default of R's `confint`.
            They cost about ten fits per parameter and are computed for `coef` and
            `scale_coef`, as in `clm`.

        Returns
        -------
        Table
            A dict of arrays: "name", "estimate", "lower", "upper". An end of a profile
            likelihood interval is infinite if no value on its side is rejected.

        Raises
        ------
        ValueError
            If an argument is invalid; as for `standard_errors`. With method="profile"
            also if the covariance is robust, for which there are only Wald intervals,
            or if the model no longer has its training rows because it comes from a
            file, a pickle or a copy.

        Warns
        -----
        ConvergenceWarning
            If a fit of a profile stopped before it reached its optimum, or if it found
            a better optimum than that of the model.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> model.confint(method="profile")
        name estimate    lower   upper
        x1    2.55694 -1.21761 8.56449
        x2    1.43238 0.240105 4.82105
        """
        z = normal_margin(check_share("level", level))
        check_choice("method", method, ("wald", "profile"))
        estimates = estimates_of(self)
        if method == "wald":
            which = np.arange(estimates.size)
            with np.errstate(invalid="ignore"):
                lower = estimates - z * self.standard_errors
                upper = estimates + z * self.standard_errors
        else:
            # coef and scale_coef are the last parameters.
            which = np.arange(self._first_coef(), estimates.size)
            lower, upper = self._profile_ends(which, z).T
        names = self.parameter_names
        return Table(
            {
                "name": np.array([names[j] for j in which], dtype=str),
                "estimate": estimates[which],
                "lower": lower,
                "upper": upper,
            }
        )

    def _profile_ends(self, which: np.ndarray, z: float) -> np.ndarray:
        """Return the ends of the profile intervals of (coef, scale_coef), (m, 2).

        They are the parameters of the numbers `which`.
        """
        asked = 'confint(method="profile")'
        if self.covariance_type != "observed":
            raise ValueError(
                f"{asked} needs the likelihood, which the covariance of this model "
                f'({self.covariance_type}) does not rely on: pass method="wald"'
            )
        check_likelihood(self, asked)
        if self.limits is None:
            V = covariance_for(self, asked)
        fit = remembered(self, asked)
        unit = self._spread_of_coef(fit.loss.design)
        if fit.limit is not None:
            ends = [limit_interval(fit, int(j), z) for j in which]
        else:
            error = np.sqrt(np.diagonal(V))[which]
            ends = [
                profile_interval(fit, int(j), float(e * u), z)
                for j, e, u in zip(which, error, unit, strict=True)
            ]
        return np.asarray(np.array(ends).reshape(-1, 2) / unit[:, None])

    def _spread_of_coef(self, design: Design) -> np.ndarray:
        """Return the divisors of the columns of coef and scale_coef in the loss."""
        columns = np.concatenate([self.location, self.scale])
        return np.asarray(design.spread[columns])

    def odds_ratios(
        self, level: float = 0.95, *, method: Literal["wald", "profile"] = "wald"
    ) -> Table:
        """Return odds ratios exp(coef) with confidence intervals.

        An odds ratio is the factor by which one unit more of a feature multiplies the
        odds of a rank above any threshold.

        Parameters
        ----------
        level, method
            As for `confint`; the ends of its intervals are transformed.

        Returns
        -------
        Table
            A dict of arrays: "name", "odds_ratio", "lower", "upper".

        Raises
        ------
        ValueError
            As for `confint`; also for a link other than "logit" or a model with scale
            effects, in which odds do not change by one factor.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> model.odds_ratios(0.9)
        name odds_ratio    lower   upper
        x1      12.8963 0.375896 442.448
        x2      4.18866 0.922064 19.0278
        """
        if self.link != "logit" or self.scale.size:
            what = (
                f"link={shown(self.link)}" if self.link != "logit" else "scale effects"
            )
            raise ValueError(
                "odds_ratios are defined for the logit link without scale "
                f"effects, and this model has {what}: its odds do not change by "
                "one factor"
            )
        ends = self.confint(level, method=method)
        first = self._first_coef() if method == "wald" else 0
        own = slice(first, first + self.coef.size)
        columns = {"odds_ratio": "estimate", "lower": "lower", "upper": "upper"}
        with np.errstate(over="ignore"):  # infinite then, which is right
            ratios = {name: np.exp(ends[of][own]) for name, of in columns.items()}
        return Table({"name": ends["name"][own], **ratios})

    def _first_coef(self) -> int:
        """Return the number of the first of `coef` among the parameters."""
        return self.alpha.size + self.nominal_coef.size

    def _read(
        self, X: MatrixLike, offset: ArrayLike | None
    ) -> tuple[np.ndarray | CSR, np.ndarray | None]:
        """Return the design columns of rows, (n, D), and their offset or None."""
        if self.coding is None:
            Z = read_for(self, X)
            return Z, None if offset is None else read_offset(offset, len(Z))
        frame = self.coding.read(X)
        return self.coding.transform(frame), self.coding.offset(frame, offset)

    def monotone_effects(self) -> Table:
        """Return the increments of the monotone effects `mo(x)` of a formula per level.

        Returns
        -------
        Table
            `name` and `level`; `increment`, the change of the score from the previous
            level; `mean`, the mean increment of the effect (`b` in brms); and `share`,
            the shares of the increments, which sum to 1 (the simplex of brms).

        Raises
        ------
        ValueError
            If the model has no monotone effect.

        Examples
        --------
        >>> import ordinal, pandas as pd
        >>> data = pd.DataFrame({"y": [0, 1, 0, 1, 2, 1, 0, 2, 2], "k": [0, 1, 2] * 3})
        >>> ordinal.fit_pom("y ~ mo(k)", data).monotone_effects()
        name  level increment    mean share
        mo(k) 1       2.62541 1.31271     1
        mo(k) 2             0 1.31271     0
        """
        found = {} if self.coding is None else self.coding.monotone
        if not found:
            raise ValueError("the model has no monotone effect: write mo(x) for x")
        slopes = np.zeros(len(self.column_names))
        slopes[self.location] = self.coef
        rows: list[tuple[str, str, float, float, float]] = []
        for name, (variable, columns) in found.items():
            d = slopes[list(columns)]
            # Without an effect, all shares are 0.
            mean, total = d.mean(), d.sum() or 1.0
            assert variable.labels is not None
            for label, step in zip(variable.labels[1:].tolist(), d, strict=True):
                rows.append((name, str(label), step, mean, step / total))
        return Table.from_rows(("name", "level", "increment", "mean", "share"), rows)


class Predictions(Wald):
    """Predictions of a model that computes probabilities from its predictors."""

    __slots__ = ()

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
            If X is not a finite real matrix of `n_features` columns, or if an offset
            does not lie between -1e100 and 1e100.
        """
        return score(self, *self._read(X, offset))

    def predict_proba(
        self, X: MatrixLike, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r).

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
            As in `decision_function`.
        """
        eta, _ = predictors(self, *self._read(X, offset))
        P = self._of_predictors(eta)
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def _of_predictors(self, eta: np.ndarray) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r), from eta, (n, T).

        Their sums differ from 1 by rounding.
        """
        return rank_probabilities(*self._sides(eta))

    def _sides(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return P(y <= j) and P(y > j), (n, r - 1) each, from eta, (n, T)."""
        raise NotImplementedError

    def _at_all_thresholds(self, eta: np.ndarray) -> np.ndarray:
        """Return predictors, (n, T), in order at every row, and for all ranks,
        (n, r - 1).
        """
        if self.may_cross:
            eta.sort(axis=1)
        return for_all_ranks(self.observed, eta, -np.inf, np.inf)

    def predict(
        self,
        X: MatrixLike,
        *,
        rule: Literal["median", "mode", "cost"] = "median",
        cost: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters
        ----------
        X : (n, n_features) array, CSR or data frame
        rule : {"median", "mode", "cost"}, default "median"
            The median has the least expected absolute error. The mode is the most
            probable rank, which `polr` and `clm` of R predict. "cost" is the rank of
            least expected cost.
        cost : (r, r) array-like, for rule="cost" only
            cost[j, k] is the cost of predicting rank k for a row of rank j. Default
            |j - k|.
        offset : (n,) array-like, default 0

        Returns
        -------
        (n,) array of labels, of the type of `classes`

        Raises
        ------
        ValueError, TypeError
            As in `decision_function`; also if the rule is unknown, or if `cost` is
            passed with another rule or does not have shape (r, r).
        """
        rules = "median", "mode", "cost"
        return by_probabilities(self, X, rule, rules, cost, offset=offset)


class Effects(Wald):
    """Mean probabilities, and average marginal effects on them."""

    __slots__ = ()

    def marginal_effects(
        self,
        X: MatrixLike | None = None,
        *,
        level: float = 0.95,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """Return average marginal effects of the features on the rank probabilities.

        The effect of a numeric feature is the derivative of the mean probability of a
        rank over the rows. That of a column with values 0 and 1 is the difference
        between the mean probabilities with 1 and with 0 in all rows, and that of a
        level of a category, such as "Infl[High]", the difference from the reference
        level. In a formula, all terms with the feature contribute. The effects of a
        feature sum to 0 over the ranks.

        Parameters
        ----------
        X : (n, n_features) array or data frame, optional
            Rows to average over. Default: the training rows with their weights and
            offsets.
        level : float in (0, 1), default 0.95
            Confidence level of the intervals.
        offset : (n,) array-like, default 0
        sample_weight : (n,) array-like >= 0, optional
            Offsets and weights of the rows of `X`.

        Returns
        -------
        Table
            A dict of arrays, with an entry for each feature and rank that has training
            rows: "name", "rank", "effect", "standard_error" (delta method), "z",
            "p_value", "lower", "upper".

        Raises
        ------
        ValueError, TypeError
            As for `decision_function` and `standard_errors`; also if offsets or weights
            are passed without `X`, if `X` is missing and the model no longer has its
            training rows, or if a formula has a comparison, which has no derivative.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> effects = model.marginal_effects()
        >>> effects["name"][:3], effects["rank"][:3]
        (array(['x1', 'x1', 'x1'], dtype='<U2'), array([1, 2, 3]))
        >>> effects["effect"][:3].round(4)
        array([-0.2192,  0.0022,  0.217 ])
        """
        z = normal_margin(check_share("level", level))
        averages = self._averages("marginal_effects", X, offset, sample_weight)
        return effects_table(*averages, z)

    def average_proba(
        self,
        X: MatrixLike | None = None,
        *,
        cumulative: bool = False,
        level: float = 0.95,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """Return the mean of `predict_proba` over rows, with standard errors and
        intervals.

        Pass one row for the probabilities of that row. The standard errors are those
        due to the estimates (delta method); the rows are treated as fixed.

        Parameters
        ----------
        X : (n, n_features) array or data frame, optional
            Rows to average over. Default: the training rows with their weights and
            offsets.
        cumulative : bool, default False
            Whether to return the mean of P(y <= j) at every threshold instead of
            P(y = j).
        level : float in (0, 1), default 0.95
            Confidence level of the intervals. They are symmetric on the scale of log
            p / (1 - p), as in R's `predict.clm`, and therefore lie between 0 and 1.
        offset : (n,) array-like, default 0
        sample_weight : (n,) array-like >= 0, optional
            Offsets and weights of the rows of `X`.

        Returns
        -------
        Table
            A dict of arrays, with an entry for each of the r ranks or r - 1 thresholds:
            "rank" or "threshold", "probability", "standard_error", "lower", "upper".

        Raises
        ------
        ValueError, TypeError
            As for `decision_function` and `standard_errors`; also if offsets or weights
            are passed without `X`, or if `X` is missing and the model no longer has its
            training rows.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> model.average_proba(cumulative=True)
        threshold probability standard_error    lower    upper
        1|2          0.373492      0.0928077 0.215071 0.564661
        2|3          0.630519        0.10474 0.414172 0.804653
        """
        z = normal_margin(check_share("level", level))
        check_flag("cumulative", cumulative)
        averages = self._averages("average_proba", X, offset, sample_weight)
        return averages_table(*averages, z, cumulative)

    def _averages(
        self, asked: str, X: Any, offset: Any, sample_weight: Any
    ) -> tuple[Means, MarginRows, Errors]:
        """Return the sums over rows for the method `asked`, the rows, and the function
        that computes standard errors from gradients of the sums.
        """
        errors = partial(errors_of, covariance_for(self, asked, limit=True))
        rows = rows_to_average(self, asked, X, offset, sample_weight)
        if not self.separated.size:
            return self._means(), rows, errors
        fit = remembered(self, asked)
        assert fit.limit is not None
        return LimitMeans(self, fit.limit, fit.loss.design), rows, errors

    def _means(self) -> Means:
        """Return the sums over rows, with gradients, of models of this class."""
        return Means(self)


class Inference(Effects):
    """Tests and effects of a fitted cumulative model."""

    __slots__ = ()

    def proportional_odds_test(self, method: Literal["brant", "lr"] = "brant") -> Table:
        """Test the proportional odds assumption, for all features and for each.

        A small p-value says that the coefficients of a feature differ between
        thresholds, which `nominal=` of `fit_pom` allows.

        Parameters
        ----------
        method : {"brant", "lr"}, default "brant"
            Brant's test compares the coefficients of binary logistic regressions at all
            thresholds (a Wald test). "lr" is the likelihood ratio test against the
            model in which the features are nominal effects. It is available for every
            link, takes one more fit per feature, and does not need binary fits, which
            may not exist.

        Returns
        -------
        Table
            A dict of arrays "name", "chi2", "dof" and "p_value". The first entry
            ("all") is for all features together, followed by one per feature of `coef`;
            with a formula or categories, by one per term with all its levels.

        Raises
        ------
        ValueError
            If the method is unknown, if there are fewer than 3 ranks, or if the model
            no longer has its training rows; as for `standard_errors`. For Brant's test
            also if the link is not "logit", if there are scale effects, or if features
            separate the two sides of a threshold.

        Warns
        -----
        ConvergenceWarning
            If a fit of the test stopped before it reached its optimum.

        References
        ----------
        R. Brant, "Assessing proportionality in the proportional odds model for ordinal
        logistic regression", Biometrics 46:1171-1178, 1990.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> model.proportional_odds_test(method="lr")
        name     chi2 dof   p_value
        all   3.78801   2  0.150468
        x1    3.78801   1 0.0516211
        x2   0.111966   1  0.737917
        """
        check_choice("method", method, ("brant", "lr"))
        check_likelihood(self, "proportional_odds_test")
        if self.observed.sum() < 3:
            raise ValueError(
                "proportional_odds_test needs 3 ranks or more, got 2: there is one "
                "threshold, and nothing to compare"
            )
        if not self.coef.size:
            raise ValueError(
                "proportional_odds_test needs features with one slope for all "
                "thresholds, and this model has none"
            )
        fit = remembered(self, "proportional_odds_test")
        features = self._features()
        groups = [self.location, *features.values()]
        if method == "brant":
            if self.link != "logit" or self.scale.size:
                raise ValueError(
                    "Brant's test is defined for the logit link without scale "
                    'effects: pass method="lr"'
                )
            between = names_between(self.classes[self.observed])
            chi2, dof = brant_test(fit, groups, between)
        else:
            chi2, dof = ratio_tests(fit, groups)
        return tests_table(["all", *features], chi2, dof)

    def _features(self) -> dict[str, np.ndarray]:
        """Return the columns of the location by the name of their term."""
        if self.coding is None:
            return {self.column_names[j]: np.array([j]) for j in self.location.tolist()}
        terms = self.coding.columns_of_terms.items()
        own = {term: np.intersect1d(of, self.location) for term, of in terms}
        return {term: columns for term, columns in own.items() if columns.size}


def tests_table(names: Iterable[str], chi2: list[float], dof: list[int]) -> Table:
    """Return chi-square statistics by name, with their p-values."""
    tails = [chi2_tail(x, k) for x, k in zip(chi2, dof, strict=True)]
    return Table(
        {
            "name": np.array(list(names), dtype=str),
            "chi2": np.array(chi2),
            "dof": np.array(dof, dtype=np.int64),
            "p_value": np.array(tails),
        }
    )


def _summary_lines(model: Wald) -> list[str]:
    """Return the lines of `summary`."""
    family = getattr(model, "family", "cumulative")
    heads = {
        **({"family": family} if family != "cumulative" else {}),
        "link": model.link,
        "threshold": model.threshold,
        "nobs": f"{model.n_obs:.10g}",
        "logLik": f"{model.loglik:.2f}",
        "AIC": f"{model.aic:.2f}",
        "BIC": f"{model.bic:.2f}",
        "McFadden R2": f"{model.mcfadden_r2:.4f}",
        "steps": str(model.convergence.n_iter),
        "violation": f"{model.convergence.violation:.1e}",
    }
    columns = [aligned(head, [cell], left=True) for head, cell in heads.items()]
    lines = [" ".join(line).rstrip() for line in zip(*columns, strict=True)]
    if not model.convergence.converged:
        lines.append(f"Not converged: {model.convergence}")
    if model.covariance_type != "observed":
        lines.append(f"Standard errors: {model.covariance_type} (sandwich)")
    if model.n_missing:
        lines.append(f"Left out: {model.n_missing} rows that lack values")
    if model.dropped:
        others = enumerated(model.dropped)
        lines.append(f"Left out, as other columns determine them: {others}")
    if not model.observed.all():
        unseen = listed(model.classes[~model.observed])
        lines.append(f"Without training rows, and never predicted: ranks {unseen}")
    lines += [f"Thresholds cross: {line}" for line in model.disorder]
    table = model.table()
    parts = {
        "location": "Coefficients",
        "nominal": "Nominal coefficients (a slope for each threshold)",
        "scale": "Log-scale coefficients",
        "threshold": "Threshold coefficients",
    }
    for kind, title in parts.items():
        own = table["kind"] == kind
        if not own.any():
            continue
        p = None if kind == "threshold" else table["p_value"][own]
        names = tuple(
            n.removeprefix("scale.") if kind == "scale" else n
            for n in table["name"][own].tolist()
        )
        lines += ["", f"{title}:"]
        lines += coefficient_lines(
            names, table["estimate"][own], table["standard_error"][own], p
        )
        if p is not None and (p <= 0.1).any():
            lines += ["---", LEGEND]
    return lines
