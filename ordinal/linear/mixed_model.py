"""Model that `fit_clmm` returns."""

# Types of fields are no text here, as in `estimates`.
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np

from .._cumulative.likelihood import (
    cumulative,
    exceeding,
    for_all_ranks,
    rank_probabilities,
)
from .._input.checks import check_choice, check_share, shown
from .._input.fields import POSITIVE
from .._input.sparse import CSR
from .._input.types import ArrayLike, MatrixLike
from .._model.printing import Table, Text, aligned
from .._model.support import finite_scores
from .._model.threshold_model import by_probabilities
from .._numerics.rows import strips, take
from .._numerics.tails import normal_margin
from .estimates import check_likelihood, predictors
from .mixed_profile import RememberedMixed
from .model import PomModel
from .random_terms import RandomEffects, as_text, incomplete, read_effects, read_groups

Effects = Literal["new", "average", "known", "known_or_new"]
_NODES, _ROWS = 100, 1 << 12
_VARIANCE = {
    "logit": math.pi**2 / 3,
    "probit": 1.0,
    "cloglog": math.pi**2 / 6,
    "loglog": math.pi**2 / 6,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClmmModel(PomModel):
    """P(y <= j | x, b) = F((theta_j - n'nu_j - x'beta - z'b) / exp(t'zeta)), with
    b ~ N(0, Sigma) for the levels of each factor.

    It has the attributes of a `PomModel`, which describe a group whose random effects
    are 0, and those below. `covariance` and standard errors are those of the fixed
    parameters and account for the estimation of the variances.

    Attributes
    ----------
    random : tuple of RandomEffects
        Grouping factors, the one with the most effects first. Each has `name`,
        `effects`, `levels`, `covariance`, and the conditional `modes` with their
        `variances`.
    n_variances : int
        Number of parameters of all covariances.
    n_quadrature : int
        Number of quadrature nodes per dimension; 1 is the Laplace approximation.
    is_singular : bool
        Whether the estimate of a covariance is singular, for example because the
        likelihood decreases with a variance from 0 on, whose estimate is then 0.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.load_wine()
    >>> judges = [i // 8 for i in range(72)]
    >>> model = ordinal.fit_clmm(X[:, :2], y, groups={"judge": judges})
    >>> model.predict_proba(X[:2, :2], effects="average").round(3)
    array([[0.165, 0.655, 0.166, 0.012, 0.002],
           [0.165, 0.655, 0.166, 0.012, 0.002]])
    """

    random: tuple[RandomEffects, ...]
    n_variances: Annotated[int, POSITIVE]
    n_quadrature: Annotated[int, POSITIVE]
    is_singular: bool

    def _summary(self) -> dict[str, str]:
        found = self.deviations
        rows = zip(found["group"], found["effect"], found["sd"], strict=True)
        deviations = ", ".join(f"{g} {effect} {sd:.4g}" for g, effect, sd in rows)
        # with slots, dataclass makes a second class, which super() does not know
        return {"deviations": deviations} | super(ClmmModel, self)._summary()

    @property
    def dof(self) -> int:
        """Return the number of estimated parameters, those of covariances included."""
        check_likelihood(self, "dof")
        return int(self.parameters.size) + self.n_variances

    @property
    def deviations(self) -> Table:
        """Standard deviations of the random effects, with their correlations.

        A dict of arrays: "group", "effect", "variance", "sd" and "correlation", the
        correlation with the first effect of the group, which is nan for this effect
        itself.
        """
        rows = []
        for own in self.random:
            S = own.covariance
            sd = np.sqrt(np.diagonal(S))
            for j, effect in enumerate(own.effects):
                known = j > 0 and sd[0] * sd[j] > 0
                r = S[0, j] / (sd[0] * sd[j]) if known else math.nan
                rows.append((own.name, effect, S[j, j], sd[j], r))
        names = "group", "effect", "variance", "sd", "correlation"
        return Table(
            {
                n: np.array(c)
                for n, c in zip(names, zip(*rows, strict=True), strict=True)
            }
        )

    def ranef(self, group: str | None = None) -> Table:
        """Return the conditional modes of the random effects of a factor, with errors.

        Parameters
        ----------
        group : str, optional
            Name of the factor; required if there are several.

        Returns
        -------
        Table
            A dict of arrays: "level", "effect", "mode" and "standard_error", which does
            not account for the errors of the estimated parameters.

        Raises
        ------
        ValueError
            If there is no such factor, or if there are several and `group` is missing.
        """
        known = {own.name: own for own in self.random}
        if group is None and len(known) == 1:
            (group,) = known
        check_choice("group", group, tuple(known))
        own = known[str(group)]
        q = len(own.effects)
        variance = np.diagonal(own.variances, axis1=1, axis2=2)
        return Table(
            {
                "level": np.repeat(own.levels, q),
                "effect": np.tile(np.array(own.effects), own.levels.size),
                "mode": own.modes.ravel(),
                "standard_error": np.sqrt(np.maximum(variance, 0.0)).ravel(),
            }
        )

    def icc(self) -> float:
        """Intraclass correlation on the latent scale.

        It is the share of the random intercepts in the variance of the latent variable.

        Raises
        ------
        ValueError
            If the model has random slopes or scale effects, with which the correlation
            depends on the row, or the link cauchit, which has no variance.
        """
        if (
            self.link not in _VARIANCE
            or self.scale.size
            or any(
                len(own.effects) > 1 or own.effects[0] != "(Intercept)"
                for own in self.random
            )
        ):
            raise ValueError(
                "icc is of models with random intercepts only, without scale effects, "
                "and of links with a variance"
            )
        between = sum(float(own.covariance[0, 0]) for own in self.random)
        return between / (between + _VARIANCE[self.link])

    # Predictions

    def cumulative_proba(
        self,
        X: MatrixLike,
        *,
        effects: Effects = "new",
        groups: Mapping[str, ArrayLike] | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return P(y <= j), (n, r - 1), for all ranks but the last.

        Parameters and errors are those of `predict_proba`.
        """
        return self._both(X, effects, groups, offset)[0]

    def predict_proba(
        self,
        X: MatrixLike,
        *,
        effects: Effects = "new",
        groups: Mapping[str, ArrayLike] | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the probabilities of the ranks, (n, r).

        Parameters
        ----------
        X : (n, n_features) array or data frame
        effects : {"new", "average", "known", "known_or_new"}, default "new"
            "new" integrates over the random effects of an unknown group. "average" sets
            the effects to 0. "known" uses the conditional modes of the groups of the
            rows. "known_or_new" uses them for groups of the training rows and
            integrates for all others.
        groups : mapping of names to (n,) labels, for known groups
            Default: the columns of these names in the data frame X.
        offset : (n,) array-like, default 0

        Returns
        -------
        (n, r) array, whose rows sum to 1

        Raises
        ------
        ValueError, TypeError
            As in `PomModel.decision_function`; also if the model does not know a group
            with effects="known", or if X lacks the columns of random slopes.
        """
        P = rank_probabilities(*self._both(X, effects, groups, offset))
        P /= P.sum(axis=1, keepdims=True)
        return P

    def predict(
        self,
        X: MatrixLike,
        *,
        rule: Literal["median", "mode", "cost"] = "median",
        cost: ArrayLike | None = None,
        effects: Effects = "new",
        groups: Mapping[str, ArrayLike] | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters and errors are those of `predict_proba`, rules those of
        `PomModel.predict`.
        """
        rules = "median", "mode", "cost"
        return by_probabilities(
            self, X, rule, rules, cost, effects=effects, groups=groups, offset=offset
        )

    def _both(
        self, X: MatrixLike, effects: Effects, groups: object, offset: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """P(y <= j) and P(y > j), (n, r - 1)."""
        check_choice("effects", effects, get_args(Effects))
        if groups is not None and not effects.startswith("known"):
            raise ValueError("groups goes with effects='known' or 'known_or_new'")
        Z, known = self._read(X, offset)
        n = len(Z)
        shift, sd = np.zeros(n) if known is None else known, None
        if effects != "average":
            columns = read_effects(self.random, X)
            if not all(np.isfinite(z).all() for z in columns):
                raise ValueError("X lacks values in a column with a random slope")
        if effects != "average":
            known, unknown = self._modes_of(X, groups, columns, effects)
            shift = shift + known
            sd = np.sqrt(unknown) if unknown.any() else None
        T = self.classes.size - 1
        below, above = np.empty((n, T)), np.empty((n, T))
        for rows in strips(n, _ROWS):
            spread = None if sd is None else sd[rows]
            below[rows], above[rows] = self._mean(take(Z, rows), shift[rows], spread)
        return below, above

    def _mean(
        self, Z: np.ndarray | CSR, shift: np.ndarray, sd: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean of the probabilities over a normal shift of deviation sd."""
        nodes, weights = np.zeros(1), np.ones(1)
        if sd is not None:
            nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
            weights = weights / weights.sum()
        low, high = np.zeros(()), np.zeros(())
        for node, weight in zip(nodes, weights, strict=True):
            at = shift if sd is None else shift + node * sd
            eta, _ = predictors(self, Z, finite_scores(at))
            if self.nominal.size:
                eta.sort(axis=1)
            eta = for_all_ranks(self.observed, eta, -np.inf, np.inf)
            low = low + weight * cumulative(self.link, eta)
            high = high + weight * exceeding(self.link, eta)
        return low, high

    def _modes_of(
        self, X: MatrixLike, groups: object, columns: list[np.ndarray], effects: Effects
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return z'b of the rows by the conditional modes of their groups, and the
        variance of z'b of the groups that are new.
        """
        n = len(columns[0])
        variances = [
            ((z @ own.factor) ** 2).sum(axis=1)
            for own, z in zip(self.random, columns, strict=True)
        ]
        total, variance = np.zeros(n), np.zeros(n)
        if effects == "new":
            return total, np.asarray(sum(variances))
        labels = read_groups(self.random, groups, X)
        if incomplete(labels, [], n).any():
            raise ValueError("groups lack labels; effects='new' predicts without any")
        for own, given, z, new in zip(
            self.random, labels, columns, variances, strict=True
        ):
            names = [":".join(t) for t in zip(*map(as_text, given), strict=True)]
            place = {level: k for k, level in enumerate(own.levels.tolist())}
            at = np.array([place.get(name, -1) for name in names], dtype=np.int64)
            if effects == "known" and (at < 0).any():
                name = names[int(np.argmax(at < 0))]
                raise ValueError(
                    f"{own.name} {shown(name)} is no group of the training rows: "
                    "effects='known_or_new' or 'new' predicts for groups that are not "
                    "known"
                )
            total += np.where(at >= 0, np.einsum("ij,ij->i", z, own.modes[at]), 0.0)
            variance += np.where(at >= 0, 0.0, new)
        return total, variance

    # Inference

    def summary(self) -> Text:
        """Return the tables that R's `clmm` prints.

        They are those of `PomModel.summary` and the random effects.

        Raises
        ------
        ValueError
            As for `standard_errors`.
        """
        lines = super(ClmmModel, self).summary().splitlines()
        at = lines.index("")
        found = self.deviations
        r = [f"{v:.3f}" if math.isfinite(v) else "" for v in found["correlation"]]
        columns = [
            aligned("Groups", found["group"].tolist(), left=True),
            aligned("Name", found["effect"].tolist(), left=True),
            aligned("Variance", [f"{v:.4g}" for v in found["variance"]]),
            aligned("Std.Dev.", [f"{v:.4g}" for v in found["sd"]]),
            aligned("Corr", r),
        ]
        table = [" ".join(line).rstrip() for line in zip(*columns, strict=True)]
        counts = ", ".join(f"{own.name} {own.levels.size}" for own in self.random)
        how = (
            "Laplace approximation"
            if self.n_quadrature == 1
            else f"adaptive Gauss-Hermite quadrature with {self.n_quadrature} nodes"
        )
        block = ["", f"Random effects ({how}):", *table, f"Number of groups: {counts}"]
        if self.is_singular:
            block.append("Singular: a variance is 0, or a correlation 1 or -1")
        return Text("\n".join([*lines[:at], *block, *lines[at:]]))

    def confint_deviations(self, level: float = 0.95) -> Table:
        """Return profile likelihood intervals of the standard deviations of the
        effects.

        Wald intervals would be poor, because the likelihood of a standard deviation is
        skewed. An interval begins at 0 if a likelihood ratio test does not reject 0.

        Parameters
        ----------
        level : float in (0, 1), default 0.95

        Returns
        -------
        Table
            A dict of arrays: "group", "effect", "estimate", "lower", "upper".

        Raises
        ------
        ValueError
            If an argument is invalid, if the model is singular or has not converged, or
            if it no longer has its training rows because it comes from a file, a pickle
            or a copy.

        Warns
        -----
        ConvergenceWarning
            If a fit with a fixed standard deviation stopped before it reached its
            optimum.

        Examples
        --------
        >>> import ordinal
        >>> X, y = ordinal.datasets.load_wine()
        >>> judges = [i // 8 for i in range(72)]
        >>> model = ordinal.fit_clmm(X[:, :2], y, groups={"judge": judges})
        >>> table = model.confint_deviations()
        >>> [round(float(table[end][0]), 2) for end in ("lower", "upper")]
        [0.5, 2.27]
        """
        z = normal_margin(check_share("level", level))
        fit = self._remembered("confint_deviations")
        found = self.deviations
        ends = [
            fit.deviation_ends(t, j, z)
            for t, own in enumerate(self.random)
            for j in range(len(own.effects))
        ]
        lower, upper = np.array(ends).T
        return Table(
            {
                "group": found["group"],
                "effect": found["effect"],
                "estimate": found["sd"],
                "lower": lower,
                "upper": upper,
            }
        )

    def _profile_ends(self, which: np.ndarray, z: float) -> np.ndarray:
        fit = self._remembered('confint(method="profile")')
        spread = fit.loss.design.spread[np.concatenate([self.location, self.scale])]
        unit = spread[which - self._first_coef()]
        ends = [fit.coefficient_ends(int(j), z) for j in which]
        return np.asarray(np.array(ends).reshape(-1, 2) / unit[:, None])

    def _remembered(self, asked: str) -> RememberedMixed:
        if self.is_singular:
            raise ValueError(
                f"{asked} is not available for a singular model, whose estimates lie "
                "on the boundary: leave out the effect with a variance of 0"
            )
        found: RememberedMixed | None = getattr(self, "remembered", None)
        if found is None:
            raise ValueError(
                f"{asked} needs the training rows, which a model that has converged "
                "has in the process that fitted it only, not after load, pickle or "
                "copy: call it before, or fit again"
            )
        return found

    def proportional_odds_test(self, method: Literal["brant", "lr"] = "brant") -> Table:
        """Raise ValueError; use `lr_test` with a fit with `nominal=` instead."""
        raise ValueError(
            "proportional_odds_test is for models of fit_pom: fit again with the "
            "column in nominal= and compare both by lr_test"
        )

    def average_proba(
        self,
        X: MatrixLike | None = None,
        *,
        cumulative: bool = False,
        level: float = 0.95,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """Return mean probabilities over rows of a group whose effects are 0.

        See `PomModel.average_proba`. `X` is required.

        Raises
        ------
        ValueError, TypeError
            As in `PomModel.average_proba`; also without `X`.
        """
        self._check_rows(X)
        return super(ClmmModel, self).average_proba(
            X, cumulative=cumulative, level=level, offset=offset,
            sample_weight=sample_weight,
        )  # fmt: skip

    def marginal_effects(
        self,
        X: MatrixLike | None = None,
        *,
        level: float = 0.95,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Table:
        """Return marginal effects in a group whose effects are 0.

        See `PomModel.marginal_effects`. `X` is required.

        Raises
        ------
        ValueError, TypeError
            As in `PomModel.marginal_effects`; also without `X`.
        """
        self._check_rows(X)
        return super(ClmmModel, self).marginal_effects(
            X, level=level, offset=offset, sample_weight=sample_weight
        )

    def _check_rows(self, X: object) -> None:
        if X is None:
            raise ValueError(
                "X must be given: a model of fit_clmm has no rows to average by default"
            )
