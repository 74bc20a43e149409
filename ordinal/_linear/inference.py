"""What the likelihood says of the estimates of a cumulative model.

Estimates are normal about the truth with the covariance of the model, in large samples.
With a penalty, or where ranks are separated, they are not, and what would need it is
an error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .._input.checks import check_choice, check_flag, check_share, listed, shown
from .._input.sparse import CSR, frozen
from .._input.types import ArrayLike, MatrixLike
from .._model.convergence import ConvergenceWarning, warn
from .._model.threshold_model import Thresholds, names_between
from .._numerics.tails import chi2_tail, normal_margin, normal_two_sided
from .averages import averages_table, effects_table, rows_to_average
from .contrasts import Coding
from .design import threshold_parameter_names
from .odds import brant_test, ratio_tests
from .profile import profile_interval
from .remembered import Trained, remembered
from .tables import LEGEND, Table, Text, aligned, coefficient_lines

_LEAST_FALL = -1e-6  # of twice the log likelihood: rounding of two fits


class Inference(Thresholds, Trained):
    """Errors, tests, intervals and tables of a fitted cumulative model."""

    __slots__ = ()

    if TYPE_CHECKING:  # fields of the model

        @property
        def coding(self) -> Coding | None: ...
        @property
        def column_names(self) -> tuple[str, ...]: ...
        @property
        def link(self) -> str: ...
        @property
        def threshold(self) -> str: ...
        @property
        def location(self) -> np.ndarray: ...
        @property
        def nominal(self) -> np.ndarray: ...
        @property
        def scale(self) -> np.ndarray: ...
        @property
        def alpha(self) -> np.ndarray: ...
        @property
        def nominal_coef(self) -> np.ndarray: ...
        @property
        def coef(self) -> np.ndarray: ...
        @property
        def scale_coef(self) -> np.ndarray: ...
        @property
        def observed(self) -> np.ndarray: ...
        @property
        def covariance(self) -> np.ndarray | None: ...
        @property
        def covariance_type(self) -> str: ...
        @property
        def separated(self) -> np.ndarray: ...
        @property
        def n_missing(self) -> int: ...
        @property
        def dropped(self) -> tuple[str, ...]: ...
        @property
        def l1(self) -> float: ...
        @property
        def l2(self) -> float: ...
        @property
        def loglik(self) -> float: ...
        @property
        def null_loglik(self) -> float: ...
        @property
        def n_obs(self) -> float: ...

        def _read(
            self, X: MatrixLike, offset: ArrayLike | None
        ) -> tuple[np.ndarray | CSR, np.ndarray | None]: ...

    # Estimates, all in one vector

    @property
    def parameters(self) -> np.ndarray:
        """All estimates, (p,), in the order of `covariance`: `alpha`, `nominal_coef` by
        rows, `coef`, `scale_coef`."""
        parts = self.alpha, self.nominal_coef.ravel(), self.coef, self.scale_coef
        return frozen(np.concatenate(parts))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Their names: "1|2" for a threshold, "1|2.x" for the slope of x at it, "x" for
        a coefficient and "scale.x" for that of the scale."""
        columns = self.column_names
        between = names_between(self.classes[self.observed])
        alpha = threshold_parameter_names(self.threshold, between)
        nominal = [f"{a}.{columns[j]}" for a in alpha for j in self.nominal]
        location = [columns[j] for j in self.location]
        scale = [f"scale.{columns[j]}" for j in self.scale]
        return (*alpha, *nominal, *location, *scale)

    @property
    def dof(self) -> int:
        """How many parameters were estimated.

        Raises ValueError of a penalised fit, whose parameters are not free.
        """
        self._need_likelihood("dof")
        return self.parameters.size

    @property
    def standard_errors(self) -> np.ndarray:
        """Square roots of the diagonal of `covariance`, (p,).

        Raises
        ------
        ValueError
            The fit was penalised, or ranks are separated: the covariance then says
            nothing of how far the estimates may be from the truth.
        """
        return frozen(np.sqrt(np.diagonal(self._known_covariance("standard_errors"))))

    @property
    def z(self) -> np.ndarray:
        """Estimates in standard errors, (p,): Wald's statistics."""
        return frozen(self.parameters / self.standard_errors)

    @property
    def p_values(self) -> np.ndarray:
        """Two-sided, of the normal distribution at `z`, (p,)."""
        return frozen(normal_two_sided(self.z))

    @property
    def has_errors(self) -> bool:
        """Whether there are `standard_errors`, and intervals and tests by them: not
        of a penalised fit, of separated ranks, or of more features than `covariance` is
        computed for."""
        return self.covariance is not None and not self._bias()

    # The fit as a whole

    @property
    def deviance(self) -> float:
        """-2 loglik."""
        return -2 * self.loglik

    @property
    def aic(self) -> float:
        """2 dof - 2 loglik; ValueError of a penalised fit."""
        return 2 * self.dof + self.deviance

    @property
    def bic(self) -> float:
        """log(n_obs) dof - 2 loglik; ValueError of a penalised fit."""
        return float(np.log(self.n_obs)) * self.dof + self.deviance

    @property
    def mcfadden_r2(self) -> float:
        """1 - loglik / null_loglik, McFadden's R2: 0 of a model without features."""
        return 1 - self.loglik / self.null_loglik

    # Tables

    def table(self) -> Table:
        """The estimates with errors and tests, as arrays by name.

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
        return Table({
            "name": np.array(self.parameter_names, dtype=str),
            "kind": np.repeat(kinds, [part.size for part in parts]),
            "estimate": self.parameters,
            "standard_error": self.standard_errors,
            "z": self.z,
            "p_value": self.p_values,
        })  # fmt: skip

    def summary(self) -> Text:
        """The table as R's `clm` prints it, with what else there is to say of the fit.

        Returns
        -------
        Text
            A string that shows itself in a shell; `print` it elsewhere.

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
        return Text("\n".join(_summary_lines(self)))

    def confint(
        self, level: float = 0.95, *, method: Literal["wald", "profile"] = "wald"
    ) -> Table:
        """Confidence intervals of the parameters.

        Parameters
        ----------
        level : float in (0, 1), default 0.95
        method : {"wald", "profile"}, default "wald"
            Wald's are the estimate and so many standard errors around it. Those of the
            profile likelihood hold the values that a likelihood ratio test does not
            reject: better in small samples and far from 0, the same for every
            parametrisation, and the default of R's `confint`. They cost some ten fits
            a parameter, and are given for `coef` and `scale_coef`, as `clm` does.

        Returns
        -------
        Table
            A dict of arrays: "name", "estimate", "lower", "upper". An end of a profile
            is infinite where no value on that side is rejected.

        Raises
        ------
        ValueError
            A bad argument; as for `standard_errors`; for profiles also a model with a
            robust covariance, which goes with Wald intervals, and one that has not the
            training rows: from a file, a pickle or a copy.

        Warns
        -----
        ConvergenceWarning
            A fit of a profile ended short of its optimum, or found that of the model to
            be a local one.

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
        error = self.standard_errors
        if method == "wald":
            which = np.arange(error.size)
            lower = self.parameters - z * error
            upper = self.parameters + z * error
        else:
            which = self._first_coef() + np.arange(
                self.coef.size + self.scale_coef.size
            )
            ends = self._profile_ends(which, z)
            lower, upper = ends[:, 0], ends[:, 1]
        names = self.parameter_names
        return Table({
            "name": np.array([names[j] for j in which], dtype=str),
            "estimate": self.parameters[which],
            "lower": lower,
            "upper": upper,
        })  # fmt: skip

    def _profile_ends(self, which: np.ndarray, z: float) -> np.ndarray:
        """Ends of the profile intervals of some of (coef, scale_coef), (m, 2)."""
        asked = 'confint(method="profile")'
        if self.covariance_type != "observed":
            raise ValueError(
                f"{asked} is of the likelihood, and this model has a covariance that "
                f'does without ({self.covariance_type}): take method="wald"'
            )
        fit = remembered(self, asked)
        spread = fit.loss.design.spread[np.concatenate([self.location, self.scale])]
        unit = spread[which - self._first_coef()]
        error = self.standard_errors[which]
        ends = [
            profile_interval(fit, int(j), float(e * u), z)
            for j, e, u in zip(which, error, unit, strict=True)
        ]
        return np.asarray(np.array(ends).reshape(-1, 2) / unit[:, None])

    def odds_ratios(
        self, level: float = 0.95, *, method: Literal["wald", "profile"] = "wald"
    ) -> Table:
        """exp(coef): the factor by which a unit more of a feature multiplies the odds
        of a rank above any threshold.

        Parameters
        ----------
        level, method
            As for `confint`, whose ends are transformed.

        Returns
        -------
        Table
            A dict of arrays: "name", "odds_ratio", "lower", "upper".

        Raises
        ------
        ValueError
            As for `confint`; and for another link than "logit" or columns of the scale:
            odds do not change by one factor then.

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
                f"odds_ratios are of the logit link without scale effects, and this "
                f"model has {what}: its odds do not change by one factor"
            )
        ends = self.confint(level, method=method)
        first = self._first_coef() if method == "wald" else 0
        own = slice(first, first + self.coef.size)
        columns = {"odds_ratio": "estimate", "lower": "lower", "upper": "upper"}
        with np.errstate(over="ignore"):  # infinite then, which is right
            ratios = {name: np.exp(ends[of][own]) for name, of in columns.items()}
        return Table({"name": ends["name"][own], **ratios})

    # What else is asked of a model

    def proportional_odds_test(self, method: Literal["brant", "lr"] = "brant") -> Table:
        """Test whether one slope serves all thresholds, for all features and each.

        A small p-value says that the slopes of a feature differ from threshold to
        threshold: `nominal=` of `fit_pom` lets them.

        Parameters
        ----------
        method : {"brant", "lr"}, default "brant"
            Brant's test compares the slopes of a binary logistic regression at every
            threshold (Wald's test). "lr" is the likelihood ratio test against the model
            in which the features are nominal effects, for every link; it takes one more
            fit a feature, and needs no binary fit to exist.

        Returns
        -------
        Table
            A dict of arrays, the first entry for all features ("all"), then one a
            feature of `coef`, which is a term where there is a formula and has all
            levels of a category: "name", "chi2", "dof", "p_value".

        Raises
        ------
        ValueError
            A bad method; fewer than 3 ranks, of which nothing can be told; as for
            `standard_errors`; a model without its training rows. For Brant's test also
            another link than "logit", scale effects, or a threshold whose two sides
            features separate.

        Warns
        -----
        ConvergenceWarning
            A fit of the test ended short of its optimum.

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
        self._known_covariance("proportional_odds_test")
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
                    "Brant's test is of the logit link without scale effects: take "
                    'method="lr"'
                )
            chi2, dof = brant_test(fit, groups)
        else:
            chi2, dof = ratio_tests(fit, groups)
        tails = [chi2_tail(x, k) for x, k in zip(chi2, dof, strict=True)]
        return Table({
            "name": np.array(["all", *features]),
            "chi2": np.array(chi2),
            "dof": np.array(dof),
            "p_value": np.array(tails),
        })  # fmt: skip

    def marginal_effects(
        self,
        X: MatrixLike | None = None,
        *,
        level: float = 0.95,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """Average marginal effects of the features on the probabilities of the ranks.

        Of a number: how fast the mean probability of a rank over the rows rises with
        the feature. Of a column that is 0 or 1 in all rows: how much higher it is with
        1 in all rows than with 0. Of a level of a category, "Infl[High]": than with the
        reference level. A feature has its effect through all terms of a formula that it
        is in. The effects of a feature sum to 0 over the ranks.

        Parameters
        ----------
        X : (n, n_features) array or data frame, optional
            Rows to average over. Default: the training rows, with their weights and
            offsets.
        level : float in (0, 1), default 0.95
            Of the intervals.
        offset : (n,) array-like, default 0
        sample_weight : (n,) array-like >= 0, optional
            Both go with `X`.

        Returns
        -------
        Table
            A dict of arrays, with an entry for each feature and rank that has training
            rows: "name", "rank", "effect", "standard_error" (delta method), "z",
            "p_value", "lower", "upper".

        Raises
        ------
        ValueError, TypeError
            As for `decision_function` and `standard_errors`; offsets or weights without
            `X`, or no `X` and a model without its training rows; a formula with a
            comparison, which has no slope.

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
        covariance = self._known_covariance("marginal_effects")
        rows = rows_to_average(self, "marginal_effects", X, offset, sample_weight)
        return effects_table(self, rows, covariance, z)

    def average_proba(
        self,
        X: MatrixLike | None = None,
        *,
        cumulative: bool = False,
        level: float = 0.95,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """The mean of `predict_proba` over rows, with standard errors and intervals.

        One row gives its probabilities. The errors are those of the estimates (delta
        method); the rows are taken as they are.

        Parameters
        ----------
        X : (n, n_features) array or data frame, optional
            Rows to average over. Default: the training rows, with their weights and
            offsets.
        cumulative : bool, default False
            Give the mean of P(y <= j), at every threshold, in place of P(y = j).
        level : float in (0, 1), default 0.95
            Of the intervals, which are symmetric on the scale of log p / (1 - p), as
            those of R's `predict.clm`, and so lie within 0 and 1.
        offset : (n,) array-like, default 0
        sample_weight : (n,) array-like >= 0, optional
            Both go with `X`.

        Returns
        -------
        Table
            A dict of arrays, with an entry for each of the r ranks or r - 1 thresholds:
            "rank" or "threshold", "probability", "standard_error", "lower", "upper".

        Raises
        ------
        ValueError, TypeError
            As for `decision_function` and `standard_errors`; offsets or weights without
            `X`, or no `X` and a model without its training rows.

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
        covariance = self._known_covariance("average_proba")
        rows = rows_to_average(self, "average_proba", X, offset, sample_weight)
        return averages_table(self, rows, covariance, z, cumulative)

    def _features(self) -> dict[str, np.ndarray]:
        """Columns that have a coefficient by the term they are of."""
        if self.coding is None:
            return {self.column_names[j]: np.array([j]) for j in self.location.tolist()}
        terms = self.coding.columns_of_terms.items()
        own = {term: np.intersect1d(of, self.location) for term, of in terms}
        return {term: columns for term, columns in own.items() if columns.size}

    def _first_coef(self) -> int:
        """The place of `coef` among the parameters."""
        return self.alpha.size + self.nominal_coef.size

    def _need_likelihood(self, asked: str) -> None:
        """Raise ValueError unless the estimates are those of maximum likelihood."""
        bias = self._bias()
        if bias:
            raise ValueError(
                f"{asked} needs estimates of maximum likelihood, and {bias}"
            )

    def _bias(self) -> str:
        """Why the estimates are not those of maximum likelihood; "" if they are."""
        if self.l1 or self.l2:
            said = ", ".join(
                f"{k}={v:g}" for k, v in (("l1", self.l1), ("l2", self.l2)) if v
            )
            return (
                f"this model was fitted with {said}, which biases them; fit without "
                "penalties"
            )
        if self.separated.size:
            names = listed([self.column_names[j] for j in self.separated])[1:-1]
            return (
                f"there are none: ranks are told apart without error by {names}; leave "
                "these out"
            )
        return ""

    def _known_covariance(self, asked: str) -> np.ndarray:
        self._need_likelihood(asked)
        if self.covariance is None:
            raise ValueError(
                f"{asked} needs the covariance, and this model has more features than "
                "one is computed for"
            )
        return self.covariance


def _summary_lines(model: Inference) -> list[str]:
    heads = {
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
        others = listed(model.dropped)[1:-1]
        lines.append(f"Left out, as other columns determine them: {others}")
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
        names = tuple(n.removeprefix("scale.") if kind == "scale" else n
                      for n in table["name"][own].tolist())  # fmt: skip
        lines += ["", f"{title}:"]
        lines += coefficient_lines(
            names, table["estimate"][own], table["standard_error"][own], p
        )
        if p is not None and (p <= 0.1).any():
            lines += ["---", LEGEND]
    return lines


class LikelihoodRatio(NamedTuple):
    """What `lr_test` returns.

    Attributes
    ----------
    chi2 : float
        Twice the difference of the log likelihoods.
    dof : int
        That of the numbers of parameters.
    p_value : float
        P(chi-square with `dof` degrees of freedom > chi2).
    """

    chi2: float
    dof: int
    p_value: float


def lr_test(smaller: Any, larger: Any) -> LikelihoodRatio:
    """Likelihood ratio test of a model within a larger one, both of the same rows.

    Parameters
    ----------
    smaller, larger : PomModel
        Fitted without penalties to the same rows; the larger has all that the smaller
        has, and more: features, nominal or scale effects, freer thresholds. What can be
        seen of this in the models is checked.

    Returns
    -------
    LikelihoodRatio

    Raises
    ------
    TypeError
        Something else than models of `fit_pom`.
    ValueError
        Models of other ranks, rows or links, of penalised fits, or not nested.

    Warns
    -----
    ConvergenceWarning
        The larger model has the lower likelihood: one of the two is not at its optimum.
        The statistic is 0 then.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> y = [1, 1, 2, 1, 3, 2, 3, 3]
    >>> larger = ordinal.fit_pom(X, y)
    >>> smaller = ordinal.fit_pom([row[1:] for row in X], y)
    >>> test = ordinal.lr_test(smaller, larger)
    >>> test.dof, round(test.chi2, 4), round(test.p_value, 4)
    (1, 1.7269, 0.1888)
    """
    for name, model in (("smaller", smaller), ("larger", larger)):
        if not isinstance(model, Inference):
            raise TypeError(f"{name} must be a model of fit_pom, got {shown(model)}")
        model._need_likelihood("lr_test")
    _check_nested(smaller, larger)
    dof = larger.dof - smaller.dof
    chi2 = 2 * (larger.loglik - smaller.loglik)
    if chi2 < _LEAST_FALL:
        warn(
            f"lr_test: the larger model has a log likelihood {-chi2 / 2:.3g} below "
            "that of the smaller one, which is not within it, or a fit ended short",
            ConvergenceWarning,
        )
    chi2 = max(chi2, 0.0)
    return LikelihoodRatio(chi2, dof, chi2_tail(chi2, dof))


def _check_nested(smaller: Inference, larger: Inference) -> None:
    """Raise ValueError where the fields of the models show that the smaller one is no
    case of the larger."""
    ranks = [m.classes[m.observed] for m in (smaller, larger)]
    if not np.array_equal(*ranks):
        raise ValueError(
            f"smaller and larger must have the same ranks, got {listed(ranks[0])} and "
            f"{listed(ranks[1])}"
        )
    if not math.isclose(smaller.n_obs, larger.n_obs, rel_tol=1e-9):
        raise ValueError(
            "smaller and larger must be fitted to the same rows, got "
            f"{smaller.n_obs:.10g} and {larger.n_obs:.10g} observations"
        )
    if smaller.link != larger.link:
        raise ValueError(
            "smaller and larger must have the same link, got "
            f"{shown(smaller.link)} and {shown(larger.link)}"
        )
    freedom = "equidistant", "symmetric", "flexible"
    if freedom.index(smaller.threshold) > freedom.index(larger.threshold):
        raise ValueError(
            f"smaller has {smaller.threshold} thresholds and larger {larger.threshold} "
            "ones: it is not within the larger model"
        )
    if not smaller.dof < larger.dof:
        raise ValueError(
            f"larger must have more parameters than smaller, got {larger.dof} and "
            f"{smaller.dof}"
        )
