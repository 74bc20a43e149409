"""Model that `fit_clmm` returns."""

from __future__ import annotations

# Annotations are no strings here, for the reason in `linear.estimates`.
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, get_args

import numpy as np

from .._cumulative.likelihood import cumulative, rank_probabilities
from .._input.checks import check_choice, check_share, shown
from .._input.fields import FINITE, POSITIVE, Array
from .._input.labels import label_text
from .._input.sparse import CSR
from .._input.types import ArrayLike, RowsLike
from .._model.printing import Table, aligned
from .._model.support import finite_scores
from .._numerics.rows import strips, take
from .._numerics.tails import normal_margin
from ..inference.diagnostics import (
    RankedRows,
    ranks_among,
    ranks_of_design,
)
from ..inference.fitted import (
    check_likelihood,
    covariance_for,
    read_design,
    scaled_scores,
    thresholds_at,
    warn_of_early_end,
)
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
from ..inference.tables import spread_of_coef
from ..linear.estimates import LinearModel
from ..linear.ratio_loss import Family, RatioMeans, residuals_at, sides_of
from .margins import GroupRows, GroupTerm, spread
from .random_terms import (
    GroupLabels,
    RandomEffects,
    effect_columns,
    incomplete,
    level_name,
    read_groups,
    read_slopes,
)
from .refits import MixedTermFits, RememberedMixed

Effects = Literal["new", "average", "known", "known_or_new"]
_NODES = 100  # of the quadrature over the effects of new groups
_ROWS, _ENTRIES = 1 << 12, 1 << 20  # most rows and probabilities at a time
_VARIANCE = {  # of the latent noise; cauchit has none
    "logit": math.pi**2 / 3,
    "probit": 1.0,
    "cloglog": math.pi**2 / 6,
    "loglog": math.pi**2 / 6,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClmmModel(LinearModel):
    """P(y <= j | x, b) = F((theta_j - n'nu_j - x'beta - z'b) / exp(t'zeta)), with
    b ~ N(0, Sigma) for the levels of each factor; with another `family`, the model of
    `fit_ratio` with the offset z'b.

    It has the attributes of a `PomModel`, which describe a group whose random effects
    are 0, and those below. `covariance` and standard errors are those of the fixed
    parameters and account for the estimation of the variances.

    Attributes
    ----------
    random : tuple of RandomEffects
        Grouping factors, the one with the most effects first, or of two nested ones the
        inner one. Each has `name`,
        `effects`, `levels`, `covariance`, and the conditional `modes` with their
        `variances`.
    joint_covariance : (t, t) array or None
        Of `parameters`, whose part is `covariance`, and of the lower triangles of
        `factor` of each of `random`, by rows. It is 0 for entries that are not
        estimated, and for those of a variance at 0.
    n_variances : int
        Number of parameters of all covariances.
    n_quadrature : int
        Number of quadrature nodes per dimension; 1 is the Laplace approximation.
    by_panels : bool
        Whether groups whose rows all have one rank, and all groups with
        link="cauchit", are integrated by a rule of their own, as with
        n_quadrature="auto".
    is_singular : bool
        Whether the estimate of a covariance is singular, for example because the
        likelihood decreases with a variance from 0 on, whose estimate is then 0.
    family : {"cumulative", "stopping", "backward", "adjacent"}
        As for `fit_clmm`. The thresholds of families other than "cumulative" need not
        increase.

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
    joint_covariance: Annotated[np.ndarray, Array("f8", "t t"), FINITE] | None
    n_variances: Annotated[int, POSITIVE]
    n_quadrature: Annotated[int, POSITIVE]
    is_singular: bool
    by_panels: bool = field(default=False, kw_only=True)

    @property
    def family(self) -> Literal["cumulative"] | Family:
        """Return the family of the model."""
        return self.predictor.family

    def _check(self) -> None:
        super(ClmmModel, self)._check()
        t = self.parameters.size + sum(_triangle(own).size for own in self.random)
        if self.joint_covariance is not None and len(self.joint_covariance) != t:
            raise ValueError(f"joint_covariance must have {t} rows, one per parameter")

    def _summary(self) -> dict[str, str]:
        found = self.deviations
        rows = zip(found["group"], found["effect"], found["sd"], strict=True)
        deviations = ", ".join(f"{g} {effect} {sd:.4g}" for g, effect, sd in rows)
        # dataclass(slots=True) makes a second class, which super() does not know.
        lines = {"deviations": deviations} | super(ClmmModel, self)._summary()
        return lines if self.family == "cumulative" else {"family": self.family} | lines

    @property
    def dof(self) -> int:
        """Return the number of estimated parameters, those of covariances included."""
        check_likelihood(self, "dof")
        return int(self.parameters.size) + self.n_variances

    @property
    def deviations(self) -> Table:
        """Standard deviations of the random effects, with their correlations.

        A dict of arrays: "group", "effect", "variance", "sd", "standard_error", of the
        deviation, and "correlation" with the first effect of the group. nan stands for
        that of the first effect itself, and for the error of a deviation of 0 or of a
        fit without a covariance. Intervals are those of `confint_deviations`.
        """
        rows, at = [], self.parameters.size
        for own in self.random:
            S, (row, _) = own.covariance, np.tril_indices(len(own.factor))
            sd = np.sqrt(np.diagonal(S))
            part = slice(at, at := at + row.size)
            for j, effect in enumerate(own.effects):
                known = j > 0 and sd[0] * sd[j] > 0
                r = S[0, j] / (sd[0] * sd[j]) if known else math.nan
                error = math.nan
                if self.joint_covariance is not None and sd[j] > 0:
                    by = np.where(row == j, _triangle(own), 0.0)[None] / sd[j]
                    V = self.joint_covariance[part, part]
                    error = float(errors_of(V, by)[0])
                rows.append((own.name, effect, S[j, j], sd[j], error, r))
        names = "group", "effect", "variance", "sd", "standard_error", "correlation"
        return Table.from_rows(names, rows)

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
        warn_of_early_end(self)
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

    def icc(self, group: str | None = None) -> float:
        """Return the intraclass correlation on the latent scale.

        It is the share of the random intercepts in the variance of the latent variable:
        the correlation of two rows that share all groups, or those of one factor.

        Parameters
        ----------
        group : str, optional
            Name of a factor, such as "judge", whose share is returned. Default: the
            share of all factors.

        Raises
        ------
        ValueError
            If the model has random slopes or scale effects, with which the correlation
            depends on the row, the link cauchit, which has no variance, or a family
            other than "cumulative", which has no latent variable; or if there is no
            such factor.
        """
        if (
            self.link not in _VARIANCE
            or self.family != "cumulative"
            or self.predictor.scale.size
            or any(
                len(own.effects) > 1 or own.effects[0] != "(Intercept)"
                for own in self.random
            )
        ):
            raise ValueError(
                "icc is defined for random intercepts without slopes and scale "
                "effects, for family='cumulative', and for links whose noise has a "
                "variance"
            )
        between = {own.name: float(own.covariance[0, 0]) for own in self.random}
        if group is not None:
            check_choice("group", group, tuple(between))
        warn_of_early_end(self)
        shared = sum(between.values()) if group is None else between[group]
        return shared / (sum(between.values()) + _VARIANCE[self.link])

    # Predictions

    def predict_proba(
        self,
        X: RowsLike,
        *,
        effects: Effects = "new",
        groups: Mapping[str, ArrayLike] | None = None,
        offset: ArrayLike | None = None,
        as_frame: bool = False,
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
        as_frame : bool, default False
            Whether to return a pandas DataFrame, with a column per label.

        Returns
        -------
        (n, r) array, whose rows sum to 1

        Raises
        ------
        ValueError, TypeError
            As in `PomModel.decision_function`; also if the model does not know a group
            with effects="known", or if X lacks the columns of random slopes.
        """
        Z, shift, sd = self._placed(X, effects, groups, offset)
        out = np.empty((len(Z), self.classes.size))
        for rows, P in self._probabilities(Z, shift, sd):
            out[rows] = P
        return out

    def predict(
        self,
        X: RowsLike,
        *,
        rule: Literal["median", "mode", "cost"] | None = None,
        cost: ArrayLike | None = None,
        effects: Effects = "new",
        groups: Mapping[str, ArrayLike] | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels by a rule on `predict_proba`.

        Parameters and errors are those of `predict_proba`, rules those of
        `PomModel.predict`.
        """
        placed = self._placed(X, effects, groups, offset)
        return self._predicted(X, *placed, rule, cost)

    def _placed(
        self, X: RowsLike, effects: Effects, groups: object, offset: ArrayLike | None
    ) -> tuple[np.ndarray | CSR, np.ndarray, np.ndarray | None]:
        """Return the design of rows, their offsets with the effects of known groups,
        (n,), and the standard deviations of those of new groups, (n,), if any.
        """
        _check_asked(effects, groups, offset)
        Z, known = read_design(self, X, offset)
        n = len(Z)
        shift = np.zeros(n) if known is None else known
        if effects == "average":
            return Z, shift, None
        terms = self._terms_of(X, effects, groups)
        modes, sd, _ = spread(terms, [term.Z for term in terms], slice(0, n))
        return Z, shift + modes, sd if sd.any() else None

    def _mean_in_strips(
        self, Z: np.ndarray | CSR, shift: np.ndarray, sd: np.ndarray | None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield slices of rows, with `_mean` of these."""
        size = max(1, min(_ROWS, _ENTRIES // self.classes.size))
        for rows in strips(len(Z), size):
            part = None if sd is None else sd[rows]
            yield rows, *self._mean(take(Z, rows), shift[rows], part)

    def _probabilities(
        self, Z: np.ndarray | CSR, offset: np.ndarray | None,
        sd: np.ndarray | None = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:  # fmt: skip
        shift = np.zeros(len(Z)) if offset is None else offset
        for rows, below, above in self._mean_in_strips(Z, shift, sd):
            P = rank_probabilities(below, above)
            yield rows, P / P.sum(axis=1, keepdims=True)

    def _quantiles(
        self, Z: np.ndarray | CSR, offset: np.ndarray | None, p: np.ndarray,
        sd: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        if sd is None:
            return super(ClmmModel, self)._quantiles(Z, offset, p)
        f, unit = (part[:, 0] for part in scaled_scores(self, Z, offset))
        theta, nodes = np.append(self.thresholds, np.inf), _nodes(True)
        # The first rank that reaches p lies between both ends, which are halved.
        low, high = np.zeros((2, f.size), dtype=np.int64)
        high += theta.size - 1
        while (low < high).any():
            middle = (low + high) // 2
            mean, at = np.zeros(f.size), theta[middle] - f
            for node, weight in zip(*nodes, strict=True):
                mean += weight * cumulative(self.link, (at - node * sd) * unit)
            is_reached = mean >= p
            high = np.where(is_reached, middle, high)
            low = np.where(is_reached, low, middle + 1)
        return high

    def _mean(
        self, Z: np.ndarray | CSR, shift: np.ndarray, sd: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of P(y <= j) and P(y > j) over a normal offset.

        `shift`, (n,), is the mean of the offset, and `sd` its standard deviation.
        """
        (f, unit), theta = scaled_scores(self, Z, None), thresholds_at(self, Z)
        low, high = np.zeros(()), np.zeros(())
        for node, weight in zip(*_nodes(sd is not None), strict=True):
            at = shift if sd is None else shift + node * sd
            with np.errstate(over="ignore"):  # infinite predictors: the right limits
                eta = (theta - finite_scores(f + at[:, None])) * unit
            below, above = self._sides(eta)
            low, high = low + weight * below, high + weight * above
        return low, high

    def _sides(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return P(y <= j) and P(y > j), (n, r - 1) each, from predictors, (n, T)."""
        if self.family == "cumulative":
            return super(ClmmModel, self)._sides(eta)
        return sides_of(self, eta)

    def _means(self, n_more: int = 0) -> Means:
        if self.family == "cumulative":
            return Means(self, n_more)
        return RatioMeans(self, self.family, n_more)

    @property
    def _slope_columns(self) -> list[str]:
        """Columns with random slopes."""
        columns = (slope.column for own in self.random for slope in own.slopes)
        return [column for column in columns if column]

    def _terms_of(
        self, X: RowsLike, effects: Effects, groups: object
    ) -> tuple[GroupTerm, ...]:
        """Return the columns of the random effects at rows of X, and their levels."""
        frame = read_slopes(self._slope_columns, X)
        columns = [effect_columns(own.slopes, frame) for own in self.random]
        if not all(np.isfinite(z).all() for z in columns):
            raise ValueError(
                "X must have no missing value in a column with a random slope"
            )
        n = len(columns[0])
        if effects == "new":
            new = np.full(n, -1, dtype=np.int64)
            parts = zip(self.random, columns, strict=True)
            return tuple(GroupTerm(own, z, new) for own, z in parts)
        labels, out = read_groups(self.random, groups, X), []
        if incomplete(labels, [], n).any():
            raise ValueError(
                "groups must have no missing label: pass effects='new' to predict "
                "without groups"
            )
        for own, given, z in zip(self.random, labels, columns, strict=True):
            names = _names_of(given)
            levels = map(label_text, own.levels.tolist())
            place = {level: k for k, level in enumerate(levels)}
            at = np.array([place.get(name, -1) for name in names], dtype=np.int64)
            if effects == "known" and (at < 0).any():
                name = names[int(np.argmax(at < 0))]
                raise ValueError(
                    f"{own.name} {shown(name)} is not a group of the training "
                    "rows: effects='known_or_new' or 'new' predicts for unknown "
                    "groups"
                )
            out.append(GroupTerm(own, z, at))
        return tuple(out)

    # Inference

    def _random_lines(self) -> list[str]:
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
        if self.by_panels:
            which = "all groups" if self.link == "cauchit" else "groups of one rank"
            how += f", {which} by panels"
        block = ["", f"Random effects ({how}):", *table, f"Number of groups: {counts}"]
        if self.is_singular:
            block.append("Singular: a variance is 0, or a correlation 1 or -1")
        return block

    def confint_deviations(self, level: float = 0.95) -> Table:
        """Return profile likelihood intervals of the standard deviations of the
        effects.

        Wald intervals would be poor, because the likelihood of a standard deviation is
        skewed. An interval begins at 0 if a likelihood ratio test does not reject 0, as
        that of a deviation whose estimate is 0 does.

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
            If an argument is invalid, if the model has not converged or was fitted with
            `cluster`, or if it no longer has its training rows because it comes from a
            file, a pickle or a copy.

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
        fit = self._inside("confint_deviations")
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

    def _residuals(
        self, at: DesignRows, ends: tuple[np.ndarray, np.ndarray], kind: Any, rng: Any
    ) -> np.ndarray:
        if self.family == "cumulative":
            return super(ClmmModel, self)._residuals(at, ends, kind, rng)
        return residuals_at(self, at, ends, kind)

    def _mean_sides(
        self, at: DesignRows, sd: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._mean(at.Z, at.offset, sd)

    def _ranked_rows(
        self, asked: str, X: Any, y: Any, offset: Any, new: bool, groups: Any = None
    ) -> RankedRows:
        """Return rows at the conditional modes of their groups, or of `new` groups."""
        if (X is None) != (y is None):
            raise ValueError(f"{asked} needs X and y: pass both or neither")
        if new and groups is not None:
            raise ValueError(
                f"groups must be None with kind='quantile' of {asked}, whose rows "
                "are of new groups: leave groups out"
            )
        if X is None:
            base, terms = self._training(asked, offset, groups)
            ranked = ranks_of_design(self._rows(asked).loss.design)
        else:
            base = rows_to_average(self, asked, X, offset, None)
            terms = self._terms_of(X, "new" if new else "known", groups)
            ranked = ranks_among(self, y, len(base))
        if new:
            terms = tuple(replace(t, level=np.full(len(base), -1)) for t in terms)
        shift, sd, _ = spread(terms, [term.Z for term in terms], slice(0, len(base)))
        source = replace(base, offset=base.offset + shift)
        return RankedRows(source, *ranked, sd if new and sd.any() else None)

    def _training(
        self, asked: str, offset: Any, groups: Any
    ) -> tuple[MatrixRows | TableRows, tuple[GroupTerm, ...]]:
        """Return the training rows, and the columns and levels of their effects."""
        if offset is not None or groups is not None:
            raise ValueError(
                "offset and groups must be None without X, because the training rows "
                "have their own"
            )
        fit = self._rows(asked)
        D = fit.loss.design
        known = np.zeros(D.n_samples) if D.offset is None else D.offset
        share = np.full(D.n_samples, 1 / D.n_samples)
        own = self.predictor
        base = MatrixRows(known, share, D.X, own.column_names, own.location, own.binary)
        parts = zip(self.random, fit.loss.terms, fit.units, strict=True)
        return base, tuple(GroupTerm(e, t.Z * unit, t.group) for e, t, unit in parts)

    def _simulated(
        self, asked: str, X: Any, offset: Any, rng: np.random.Generator, n: int,
        groups: Any = None,
    ) -> Iterator[MatrixRows | TableRows]:  # fmt: skip
        """Yield rows with the effects of new groups as offsets, in n draws.

        Rows of one level share its effects.
        """
        if X is None:
            base, terms = self._training(asked, offset, groups)
        else:
            base = rows_to_average(self, asked, X, offset, None)
            terms = self._terms_of(X, "known_or_new", groups)
            labels = level_names(self.random, groups, X)
            numbers = map(_numbered, self.random, labels)
            terms = tuple(
                replace(term, level=level)
                for term, level in zip(terms, numbers, strict=True)
            )
        for _ in range(n):
            shift = np.zeros(len(base))
            for term in terms:
                size = int(term.level.max(initial=-1)) + 1, term.Z.shape[1]
                b = rng.standard_normal(size) @ term.effects.factor.T
                shift += np.einsum("ij,ij->i", term.Z, b[term.level])
            yield replace(base, offset=base.offset + shift)

    def _term_fits(self, asked: str) -> MixedTermFits:
        return MixedTermFits(self, asked)

    def _profile_ends(self, which: np.ndarray, z: float) -> np.ndarray:
        fit = self._inside('confint(method="profile")')
        unit = spread_of_coef(self, fit.loss.design)
        ends = [fit.coefficient_ends(int(j), z) for j in which]
        return np.asarray(np.array(ends).reshape(-1, 2) / unit[:, None])

    def _inside(self, asked: str) -> RememberedMixed:
        """Return the training rows of a model that has profile likelihoods.

        Sandwich covariances have none.
        """
        check_likelihood(self, asked)
        if self.statistics.covariance_type != "observed":
            raise ValueError(
                f"{asked} needs the likelihood, which the covariance of clusters "
                'does not rely on: pass confint(method="wald"), or fit again '
                "without cluster"
            )
        return self._rows(asked)

    def _rows(self, asked: str) -> RememberedMixed:
        """Return the training rows; ValueError after load, pickle, copy or a change."""
        found: RememberedMixed | None = getattr(self, "_remembered", None)
        if found is None:
            raise ValueError(
                f"{asked} needs the training rows, which a converged model has "
                "only in the process that fitted it, not after load, pickle or "
                "copy: call it before these, or fit again"
            )
        found.check_unchanged(self, asked)
        return found

    def _averages(
        self, asked: str, X: Any, offset: Any, sample_weight: Any,
        effects: Effects = "new", groups: object = None,
    ) -> tuple[Means, MarginRows, Errors]:  # fmt: skip
        """Return the sums with the random effects of the rows' groups.

        The errors account for those of all parameters of `joint_covariance`, and for
        known groups for those of the conditional modes as well (Kristensen et al.,
        "TMB", Journal of Statistical Software 70(5), 2016), as in `ranef`.
        """
        if X is None:
            raise ValueError(
                "X must be given, because a model of fit_clmm has no training "
                "rows to average over"
            )
        _check_asked(effects, groups, offset)
        if effects == "average":
            return super(ClmmModel, self)._averages(asked, X, offset, sample_weight)
        covariance_for(self, asked)
        joint = self.joint_covariance
        assert joint is not None
        base = rows_to_average(self, asked, X, offset, sample_weight)
        terms = self._terms_of(X, effects, groups)
        is_new = any((term.level < 0).any() for term in terms)
        rows = GroupRows(base, terms, *_nodes(is_new))
        known = [term.n_known for term in terms]
        n_more = len(joint) - self.parameters.size + sum(known)
        errors = partial(errors_of, joint)
        if any(known):
            fit = self._rows(f"{asked} of known groups")
            errors = partial(fit.errors_with_modes, known)
        return self._means(n_more), rows, errors


def level_names(
    random: Sequence[RandomEffects], groups: Any, X: Any
) -> list[list[str]]:
    """Return the names of the levels of rows, for each grouping factor."""
    return [_names_of(given) for given in read_groups(random, groups, X)]


def _numbered(own: RandomEffects, names: list[str]) -> np.ndarray:
    """Return the numbers of levels, (n,): the known ones first, then new ones."""
    place = {label_text(level): k for k, level in enumerate(own.levels.tolist())}
    return np.array([place.setdefault(name, len(place)) for name in names])


def _names_of(given: list[GroupLabels]) -> list[str]:
    """Return the names of the levels of rows, given the columns of their factor."""
    return [level_name(texts) for texts in zip(*(a.texts for a in given), strict=True)]


def _triangle(own: RandomEffects) -> np.ndarray:
    """Return the lower triangle of Lambda of a factor, by rows."""
    return np.asarray(own.factor[np.tril_indices(len(own.factor))])


def _check_asked(effects: Effects, groups: object, offset: Any) -> None:
    """Check the arguments of predictions that other models do not have."""
    check_choice("effects", effects, get_args(Effects))
    if groups is not None and not effects.startswith("known"):
        raise ValueError(
            "groups is for effects='known' or 'known_or_new': pass one of these, or "
            "leave groups out"
        )
    if np.ndim(offset) > 1:
        raise ValueError(
            "offset must have one entry per row: models of fit_clmm have no "
            "offsets per threshold"
        )


def _nodes(is_new: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the quadrature over a standard normal variable.

    Without new groups there is one node, at 0.
    """
    if not is_new:
        return np.zeros(1), np.ones(1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum()
