"""Tests and stepwise selection of terms, and contrasts of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from .._formula.coding import Coding
from .._input.checks import check_choice, check_share, listed, shown
from .._input.types import MatrixLike
from .._model.printing import Table
from .._numerics.rows import dense
from .._numerics.tails import (
    largest_quantile,
    normal_margin,
    normal_two_sided,
    range_quantile,
    range_tail,
)
from .estimates import (
    bias_of,
    covariance_for,
    refit_design,
    remembered,
    warn_unless_optimal,
)
from .inference import tests_table
from .jeffreys import jeffreys_fit
from .residuals import Diagnostics
from .steps import Criterion, Direction, TermFits, check_observed, search, single_terms

_MOST = 10_000_000  # most entries of the derivatives that `jeffreys` holds
Adjust = Literal["tukey", "holm", "bonferroni", "none"]


class Steps(NamedTuple):
    """Result of `PomModel.step`.

    Attributes
    ----------
    model : PomModel
        Model with the chosen terms.
    table : Table
        The steps: "step", such as "- x1", "dof", "loglik" and the criterion.
    """

    model: Any
    table: Table

    def __repr__(self) -> str:
        return f"{self.table}\n{self.model}"


class Comparisons(Diagnostics):
    """Tests and stepwise selection of the terms of a cumulative model."""

    __slots__ = ()

    def drop1(self, *, criterion: Criterion = "aic") -> Table:
        """Test every term by a fit without it.

        Terms that another one contains, such as a in a + b + a:b, are kept, as are
        terms with nominal or scale effects.

        Parameters
        ----------
        criterion : {"aic", "bic"}, default "aic"

        Returns
        -------
        Table
            A dict of arrays, with the entry "none" followed by one per term: "name";
            "dof", the number of parameters that are dropped; "loglik" and "aic" (or
            "bic") of the fit without the term; "chi2" and "p_value" of the likelihood
            ratio test, which are nan for "none".

        Raises
        ------
        ValueError
            If the fit is penalised or separated, if the covariance is robust, or if the
            model no longer has its training rows.

        Warns
        -----
        ConvergenceWarning
            If a fit stopped before it reached its optimum.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]).drop1()
        name dof   loglik     aic    chi2   p_value
        none   0 -3.97389 15.9478     nan       nan
        x1     1 -4.83736 15.6747 1.72695  0.188801
        x2     1 -7.13556 20.2711 6.32335 0.0119158
        """
        check_choice("criterion", criterion, get_args(Criterion))
        check_observed(self, "drop1")
        fits = TermFits(self, "drop1")
        start = fits.start()
        others = [fits.without(start, [t]) for t in fits.droppable(start.terms)]
        return single_terms(fits, start, others, criterion)

    def add1(self, base: Sequence[str], *, criterion: Criterion = "aic") -> Table:
        """Test every term of this model by adding it to a smaller one.

        Parameters
        ----------
        base : sequence of str
            Terms of the smaller model, which may be empty. Terms with nominal or scale
            effects are always included.
        criterion : {"aic", "bic"}, default "aic"

        Returns
        -------
        Table
            As for `drop1`, where "dof" is the number of parameters that are added;
            tests are nan for "none".

        Raises
        ------
        ValueError
            As for `drop1`; also if a name is not a term.

        Warns
        -----
        ConvergenceWarning
            If a fit stopped before it reached its optimum.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> table = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]).add1([])
        >>> table["name"], table["chi2"].round(3)
        (array(['none', 'x1', 'x2'], dtype='<U4'), array([  nan, 3.044, 7.64 ]))
        """
        check_choice("criterion", criterion, get_args(Criterion))
        check_observed(self, "add1")
        fits = TermFits(self, "add1")
        start = fits.base(base, "base")
        others = [fits.with_term(start, t) for t in fits.addable(start.terms)]
        return single_terms(fits, start, others, criterion)

    def step(
        self,
        *,
        start: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        direction: Direction = "both",
        criterion: Criterion = "aic",
    ) -> Steps:
        """Choose terms of this model by AIC or BIC, step by step.

        Every step drops or adds the term that lowers the criterion most, until none
        does. Standard errors and tests of the resulting model do not account for the
        selection: they are too optimistic, and intervals are too short.

        Parameters
        ----------
        start : sequence of str, optional
            Terms of the first model. Default: all, or none for direction="forward".
        keep : sequence of str, default none
            Terms that are never dropped.
        direction : {"both", "backward", "forward"}, default "both"
        criterion : {"aic", "bic"}, default "aic"

        Returns
        -------
        Steps
            A named tuple (model, table). The model is the same as one that is fitted to
            its terms alone, and finds its columns by name.

        Raises
        ------
        ValueError
            As for `drop1`; also if a name is not a term.

        Warns
        -----
        ConvergenceWarning
            If a fit stopped before it reached its optimum.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> found = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]).step()
        >>> found.table
        step  dof   loglik     aic
        start   4 -3.97389 15.9478
        - x1    3 -4.83736 15.6747
        >>> found.model.coef_names
        ('x2',)
        """
        check_choice("direction", direction, get_args(Direction))
        check_choice("criterion", criterion, get_args(Criterion))
        check_observed(self, "step")
        fits = TermFits(self, "step")
        smallest = fits.base(keep, "keep")
        if start is not None:
            first = fits.base([*start, *keep], "start")
        else:
            first = smallest if direction == "forward" else fits.start()
        end, table = search(fits, first, {*smallest.terms}, direction, criterion)
        return Steps(fits.model_of(end), table)

    def scale_test(self) -> Table:
        """Test whether each term changes the spread of the latent variable.

        These are likelihood ratio tests against the models in which the term also has
        scale effects. `proportional_odds_test(method="lr")` is the corresponding test
        of nominal effects.

        Returns
        -------
        Table
            A dict of arrays with an entry per term without scale effects: "name",
            "chi2", "dof", "p_value".

        Raises
        ------
        ValueError
            If the fit is penalised or separated, or if the model no longer has its
            training rows.

        Warns
        -----
        ConvergenceWarning
            If a fit stopped before it reached its optimum.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> ordinal.fit_pom(X, y).scale_test()["dof"]
        array([1, 1])
        """
        covariance_for(self, "scale_test")
        fit = remembered(self, "scale_test")
        D, least = fit.loss.design, fit.loss.at(fit.x).value
        *others, own = D.split(fit.x)
        names, chi2, dof = [], [], []
        for name, columns in self._features().items():
            scale = np.union1d(D.scale, columns)
            if scale.size == D.scale.size:
                continue
            zeta = np.zeros(scale.size)
            zeta[np.isin(scale, D.scale)] = own
            x = np.concatenate([*(part.ravel() for part in others), zeta])
            end = refit_design(fit, replace(D, scale=scale), x, "scale_test")
            warn_unless_optimal(
                end, "scale_test", f"the fit with scale={listed([name])}"
            )
            names.append(name)
            chi2.append(max(0.0, 2 * D.total * (least - end.point.value)))
            dof.append(scale.size - D.scale.size)
        return tests_table(names, chi2, dof)

    def jeffreys(self, level: float = 0.95) -> Table:
        """Return finite estimates by the penalty of Jeffreys, with intervals.

        They maximise the likelihood times the root of the determinant of the expected
        information, which reduces the bias of small samples, and gives estimates to
        separated ranks. For two ranks and the logit link this is the logistic
        regression of Firth.

        Parameters
        ----------
        level : float in (0, 1), default 0.95

        Returns
        -------
        Table
            A dict of (p,) arrays: "name"; "estimate"; "standard_error", by the
            expected information; "lower" and "upper", the ends of the profile intervals
            of the penalised likelihood, which are those of Wald for thresholds.

        Raises
        ------
        ValueError
            If the fit has penalties, scale, nominal or monotone effects, offsets by
            threshold or a sandwich covariance, if its table is too large,
            or if the model no longer has its training rows.

        Warns
        -----
        ConvergenceWarning
            If a fit stopped before it reached its optimum.

        References
        ----------
        D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika 80:27-38,
        1993. I. Kosmidis, D. Firth, "Jeffreys-prior penalty, finiteness and shrinkage
        in binomial-response generalized linear models", Biometrika 108:71-82, 2021.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
        >>> model.jeffreys()["estimate"].round(2)
        array([2.94, 4.83, 1.31, 0.69])
        """
        z = normal_margin(check_share("level", level))
        check_observed(self, "jeffreys")
        if bias := bias_of(self):
            raise ValueError(f"jeffreys has a penalty of its own, and {bias}")
        monotone = self.coding is not None and self.coding.monotone
        refused = {
            "scale effects": self.scale.size > 0,
            "monotone effects": bool(monotone),
            # Where thresholds meet at a row, the penalty is infinite.
            "nominal effects": self.nominal.size > 0,
            "offsets by threshold": self.shifted,
        }
        if any(refused.values()):
            what = " and ".join(name for name, has in refused.items() if has)
            raise ValueError(
                f"jeffreys is for models without {what}: fit again without them"
            )
        loss = remembered(self, "jeffreys").loss
        D = loss.design
        if D.n_samples * D.T * D.n_parameters > _MOST:
            raise ValueError(
                f"jeffreys needs a small table, rows x thresholds x parameters up to "
                f"{_MOST:g}, got {D.n_samples} x {D.T} x {D.n_parameters}: its "
                "penalty does not matter for so many rows"
            )
        found = jeffreys_fit(loss, z)
        error = np.sqrt(np.diagonal(found.covariance))
        lower, upper = found.estimate - z * error, found.estimate + z * error
        if own := len(found.ends):  # those of the location come last
            lower[-own:], upper[-own:] = found.ends.T
        return Table(
            {
                "name": np.array(self.parameter_names, dtype=str),
                "estimate": found.estimate,
                "standard_error": error,
                "lower": lower,
                "upper": upper,
            }
        )

    def wald_test(self) -> Table:
        """Test the coefficients of each term jointly, by their covariance.

        Returns
        -------
        Table
            A dict of arrays with an entry per term: "name", "chi2", "dof", "p_value".

        Raises
        ------
        ValueError
            As for `standard_errors`.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]).wald_test()
        name    chi2 dof  p_value
        x1   1.41522   1 0.234192
        x2   2.42323   1 0.119548
        """
        b, V = self._location("wald_test")
        terms = self._features()
        places = [np.isin(self.location, columns) for columns in terms.values()]
        chi2 = [_wald(b[own], V[np.ix_(own, own)]) for own in places]
        return tests_table(terms, chi2, [int(own.sum()) for own in places])

    def equality_test(self, names: Sequence[str]) -> Table:
        """Test whether some coefficients are equal (Wald's test).

        Parameters
        ----------
        names : sequence of str
            Two or more of `coef_names`.

        Returns
        -------
        Table
            A dict of arrays of one entry: "name", "chi2", "dof", "p_value".

        Raises
        ------
        ValueError
            As for `standard_errors`; also if a name is not a coefficient, or if there
            are fewer than two.

        Examples
        --------
        >>> import ordinal
        >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
        >>> ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3]).equality_test(["x1", "x2"])
        name        chi2 dof  p_value
        x1 = x2 0.362907   1 0.546896
        """
        b, V = self._location("equality_test")
        known = list(self.coef_names)
        for name in names:
            if name not in known:
                raise ValueError(
                    f"names must be coefficients, {listed(known)}, got {shown(name)}"
                )
        if isinstance(names, str) or len({*names}) < max(2, len(names)):
            raise ValueError(
                f"names must hold two or more distinct coefficients, got {shown(names)}"
            )
        own = [known.index(name) for name in names]
        C = np.zeros((len(own) - 1, b.size))
        # Each row of C is the first coefficient minus one of the others.
        C[:, own[0]] = 1
        C[np.arange(len(own) - 1), own[1:]] = -1
        chi2 = _wald(C @ b, C @ V @ C.T)
        return tests_table([" = ".join(names)], [chi2], [len(C)])

    def contrasts(
        self,
        feature: str,
        *,
        within: str | None = None,
        adjust: Adjust = "tukey",
        level: float = 0.95,
    ) -> Table:
        """Compare all pairs of levels of a categorical feature.

        A contrast is a difference of the linear predictor, which is a log odds ratio
        for the link "logit". It is positive if the first level of the pair has higher
        ranks.

        Parameters
        ----------
        feature : str
            A categorical variable of the model.
        within : str, optional
            Another one, with which the feature interacts: pairs are compared at each of
            its levels, and adjusted within them.
        adjust : {"tukey", "holm", "bonferroni", "none"}, default "tukey"
            Adjustment of p-values and intervals for multiple comparisons. "tukey" uses
            the distribution of the range of normal variables, which is exact if all
            levels are estimated with equal precision and conservative otherwise. The
            intervals of "holm" are those of "bonferroni". With all but "none", the
            intervals hold simultaneously.
        level : float in (0, 1), default 0.95

        Returns
        -------
        Table
            A dict of arrays: "name", "estimate", "standard_error", "z", "p_value",
            "lower", "upper"; with `within` also "within", its level.

        Raises
        ------
        ValueError
            As for `standard_errors`; also if the feature is not a categorical variable
            of the location, interacts with another one than `within`, or has a level
            without a coefficient.

        Examples
        --------
        >>> import ordinal
        >>> import pandas as pd
        >>> table = pd.DataFrame({"dose": list("aabbccabcabc")})
        >>> model = ordinal.fit_pom(table, [1, 2, 1, 2, 3, 3, 1, 3, 2, 2, 1, 3])
        >>> model.contrasts("dose")["name"]
        array(['b - a', 'c - a', 'c - b'], dtype='<U5')
        """
        check_choice("adjust", adjust, get_args(Adjust))
        level = check_share("level", level)
        b, V = self._location("contrasts")
        labels, rows, others = self._level_rows(feature, within)
        low, high = np.triu_indices(labels.size, 1)
        C = rows[:, high] - rows[:, low]  # by level of `within`, pair and coefficient
        estimate = C @ b
        error = np.sqrt(np.einsum("gij,jk,gik->gi", C, V, C))
        z = estimate / error
        adjusted = [_adjusted(of, labels.size, adjust, level) for of in z]
        margin = adjusted[0][1] * error
        pairs = zip(labels[high], labels[low], strict=True)
        names = [f"{one} - {other}" for one, other in pairs]
        table = {
            "name": np.tile(np.array(names, dtype=str), len(rows)),
            "estimate": estimate.ravel(),
            "standard_error": error.ravel(),
            "z": z.ravel(),
            "p_value": np.concatenate([p_value for p_value, _ in adjusted]),
            "lower": (estimate - margin).ravel(),
            "upper": (estimate + margin).ravel(),
        }
        if others is None:
            return Table(table)
        return Table({"within": np.repeat(others, len(names)), **table})

    def simultaneous_band(self, X: MatrixLike, level: float = 0.95) -> Table:
        """Return a simultaneous confidence band of the score along a sequence of rows.

        The curve is x'beta minus its value at the first row, which is the reference;
        for the logit it is a log odds ratio. If one feature varies from row to row and
        all others are fixed, the curve is the effect of this feature through all of its
        terms.

        Parameters
        ----------
        X : (n, n_features) array or data frame
            At least 2 rows; a few dozen are enough for a smooth curve.
        level : float in (0, 1), default 0.95
            Confidence level: the probability that the curve lies within the band at all
            rows.

        Returns
        -------
        Table
            A dict of (n,) arrays: "row", "estimate", "standard_error", "lower",
            "upper". All are 0 for rows equal to the first one.

        Raises
        ------
        ValueError, TypeError
            If the level is invalid, if there are fewer than 2 rows, or if the model has
            no `coef`; as for `decision_function` and `standard_errors`.

        References
        ----------
        As for `simultaneous_intervals`.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> model = ordinal.fit_pom(X, y)
        >>> model.simultaneous_band([[10.0, 10.0], [15.0, 10.0]])["row"]
        array([0, 1])
        """
        level = check_share("level", level)
        b, V = self._location("simultaneous_band")
        Z, _ = self._read(X, None)
        if not b.size or len(Z) < 2:
            raise ValueError(
                "simultaneous_band needs features with one slope for all thresholds, "
                f"and 2 rows of X or more, got {b.size} and {len(Z)}"
            )
        rows = dense(Z)[:, self.location]
        # The first row is the reference, where the curve and its error are 0.
        moved = rows - rows[0]
        estimate = moved @ b
        error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", moved, V, moved), 0.0))
        c, at = 0.0, error > 0
        if at.any():
            unit = moved[at] / error[at][:, None]
            c = largest_quantile(level, unit @ V @ unit.T)
        return Table(
            {
                "row": np.arange(len(rows)),
                "estimate": estimate,
                "standard_error": error,
                "lower": estimate - c * error,
                "upper": estimate + c * error,
            }
        )

    def simultaneous_intervals(self, level: float = 0.95) -> Table:
        """Return simultaneous confidence intervals of all of `coef`.

        Each is the estimate plus and minus c standard errors, where c is a quantile of
        the maximum of the correlated z values. The intervals are wider than those of
        `confint` and narrower than Bonferroni's.

        Parameters
        ----------
        level : float in (0, 1), default 0.95
            Confidence level: the probability that all intervals contain their
            coefficients.

        Returns
        -------
        Table
            A dict of arrays: "name", "estimate", "lower", "upper".

        Raises
        ------
        ValueError
            If the level is invalid or the model has no `coef`; as for
            `standard_errors`.

        References
        ----------
        T. Hothorn, F. Bretz, P. Westfall, "Simultaneous inference in general parametric
        models", Biometrical Journal 50:346-363, 2008.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.make_gaussians(rng=0)
        >>> ordinal.fit_pom(X, y).simultaneous_intervals()["name"]
        array(['x1', 'x2'], dtype='<U2')
        """
        level = check_share("level", level)
        b, V = self._location("simultaneous_intervals")
        if not b.size:
            raise ValueError(
                "simultaneous_intervals needs features with one slope for all "
                "thresholds, and this model has none"
            )
        error = np.sqrt(np.diagonal(V))
        c = largest_quantile(level, V / np.outer(error, error))
        return Table(
            {
                "name": np.array(self.coef_names, dtype=str),
                "estimate": b,
                "lower": b - c * error,
                "upper": b + c * error,
            }
        )

    def _location(self, asked: str) -> tuple[np.ndarray, np.ndarray]:
        """Return `coef` and its covariance."""
        V = covariance_for(self, asked)
        first = self._first_coef()
        own = slice(first, first + self.coef.size)
        return self.coef, V[own, own]

    def _level_rows(
        self, feature: str, within: str | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the labels of a categorical variable, (k,), the columns of `coef` at
        its levels for each level of another one, (g, k, l), and the labels of that.

        Columns that do not depend on the variable are 0.
        """
        coding = self.coding
        numbers = {} if coding is None else _categorical(coding)
        for name in (feature,) if within is None else (feature, within):
            if coding is None or name not in numbers or within == feature:
                raise ValueError(
                    "contrasts needs a categorical variable"
                    f"{' and another one' * (within is not None)}, got {shown(name)}, "
                    f"and these are {listed(list(numbers))}"
                )
        assert coding is not None
        own, other = numbers[feature], numbers.get(within or "")
        joint = {k for term in coding.terms if own in term for k in term} - {own, other}
        if joint:
            names = [coding.variables[k].name for k in sorted(joint)]
            raise ValueError(
                f"contrasts of {shown(feature)} depend on {listed(names)}, with which "
                "it interacts: pass within= with the only categorical one, or fit "
                "without the interaction"
            )
        labels = coding.variables[own].labels
        others = None if other is None else coding.variables[other].labels
        assert labels is not None
        at: dict[int, np.ndarray] = {own: np.arange(labels.size)}
        rows = []
        for level in range(1 if others is None else others.size):
            if other is not None:
                at[other] = np.full(labels.size, level)
            rows.append(coding.columns_with(own, at))
        every = np.array(rows, dtype=np.float64)
        apart = np.flatnonzero(np.ptp(every, axis=1).any(axis=0))
        if not np.isin(apart, self.location).all():
            raise ValueError(
                f"contrasts needs one coefficient per level of {shown(feature)}, some "
                "of which have nominal effects or were left out as collinear"
            )
        return labels, every[:, :, self.location], others


def _categorical(coding: Coding) -> dict[str, int]:
    """Return the numbers of the categorical variables by name."""
    every = enumerate(coding.variables)
    return {variable.name: k for k, variable in every if variable.labels is not None}


def _wald(b: np.ndarray, V: np.ndarray) -> float:
    """Return the Wald statistic of b = 0, given its covariance V."""
    return float(b @ np.linalg.solve(V, b))


def _adjusted(
    z: np.ndarray, k: int, adjust: Adjust, level: float
) -> tuple[np.ndarray, float]:
    """Adjust the p-values of all pairs of k levels for multiple comparisons.

    Returns them, and the half width of the intervals in standard errors.
    """
    m, p = z.size, normal_two_sided(z)
    if adjust == "none":
        return p, normal_margin(level)
    if adjust == "tukey":
        # The range is of single variables, whose differences have variance 2.
        root = 2**0.5
        tails = [range_tail(root * abs(v), k) for v in z.tolist()]
        return np.array(tails), range_quantile(level, k) / root
    # Bonferroni: each interval has the m-th part of the error probability.
    margin = normal_margin(1 - (1 - level) / m)
    if adjust == "bonferroni":
        return np.minimum(1.0, m * p), margin
    # Holm: the smallest p-value is multiplied by m, the next one by m - 1, and so on.
    order = np.argsort(p)
    stepped = np.maximum.accumulate((m - np.arange(m)) * p[order])
    out = np.empty(m)
    out[order] = np.minimum(1.0, stepped)
    return out, margin
