"""Likelihood ratio tests of nested models of the same rows."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from .._cumulative.design import Design, by_threshold
from .._input.checks import enumerated, listed, shown
from .._input.warning import warn
from .._model.printing import Table, html_record
from .._numerics.rows import dense, take
from .._numerics.tails import chi2_tail
from ..exceptions import ConvergenceWarning
from .calls import on_one_thread
from .fitted import Fitted, check_likelihood, fitted_model

_ROUNDING = 1e-6  # of twice the difference of two log-likelihoods
_ROWS = 100_000  # most rows by which the columns of two models are compared
_OUTSIDE = 1e-6  # distance of a standardised column from a combination of others


class LikelihoodRatio(NamedTuple):
    """Result of `lr_test`.

    Attributes
    ----------
    chi2 : float
        Twice the difference of the log-likelihoods.
    dof : int
        Difference of the numbers of parameters.
    p_value : float
        Probability under the null distribution of a statistic above chi2.
    null : str
        The null distribution. It is "chi2(dof)" unless variances of random effects are
        added, which are 0 under the smaller model, on the boundary. One variance and q
        other parameters give the equal mixture "(chi2(q) + chi2(q + 1)) / 2", where
        chi2(0) is 0 (Stram, Lee 1994). The distribution for several variances depends
        on the data, and "chi2(dof), conservative" is an upper bound of it.
    """

    chi2: float
    dof: int
    p_value: float
    null: str

    def _repr_html_(self) -> str:
        return html_record(self)


@on_one_thread
def lr_test(smaller: Any, larger: Any) -> LikelihoodRatio:
    """Compare two nested models of the same rows by a likelihood ratio test.

    Parameters
    ----------
    smaller, larger : PomModel or ClmmModel
        Models fitted without penalties to the same rows. The larger one has all terms
        of the smaller one and more: features, nominal or scale effects, or less
        restricted thresholds, or random effects. This is checked by the columns of the
        training rows, so that other codings of a factor are nested; by the names of
        terms where a model no longer has these rows, or has them in another order.

    Returns
    -------
    LikelihoodRatio

    Raises
    ------
    TypeError
        If an argument is not a model of `fit_pom` or `fit_clmm`.
    ValueError
        If the models have different ranks, rows, weights, offsets, families, links or
        numbers of quadrature nodes, are penalised, have robust covariances, whose
        likelihood is not that of the data, or are not nested. Rows are compared as long
        as both models refer to them.

    Warns
    -----
    ConvergenceWarning
        If the larger model has the lower likelihood, so that one of the two is not at
        its optimum. The statistic is then 0.

    See Also
    --------
    anova : Compare nested models of the same rows by likelihood ratio tests.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.
    ordinal.fit_clmm : Fit a cumulative link mixed model, with random effects of groups.

    References
    ----------
    D. O. Stram, J. W. Lee, "Variance components testing in the longitudinal mixed
    effects model", Biometrics 50:1171-1177, 1994.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> y = [1, 1, 2, 1, 3, 2, 3, 3]
    >>> larger = ordinal.fit_pom(X, y)
    >>> smaller = ordinal.fit_pom([row[1:] for row in X], y)
    >>> test = ordinal.inference.lr_test(smaller, larger)
    >>> test.dof, round(test.chi2, 4), round(test.p_value, 4)
    (1, 1.7269, 0.1888)
    """
    smaller, larger = (_maximal(model, "lr_test") for model in (smaller, larger))
    _check_nested(smaller, larger)
    dof = larger.dof - smaller.dof
    logliks = _common_logliks(smaller, larger)
    chi2 = 2 * (logliks[1] - logliks[0])
    if chi2 < -_ROUNDING:
        warn(
            f"lr_test: the log likelihood of the larger model is {-chi2 / 2:.3g} "
            "below that of the smaller one: either the models are not nested or a "
            "fit has not converged",
            ConvergenceWarning,
        )
    chi2 = max(chi2, 0.0)
    added = n_deviations(larger) - n_deviations(smaller)
    return LikelihoodRatio(chi2, dof, *_tail(chi2, dof, added))


def _tail(chi2: float, dof: int, added: int) -> tuple[float, str]:
    """Return the p-value and the null distribution if `added` variances are added."""
    p_value = chi2_tail(chi2, dof)
    if added == 1:
        below = chi2_tail(chi2, dof - 1) if dof > 1 else 0.0
        null = f"(chi2({dof - 1}) + chi2({dof})) / 2"
        return (below + p_value) / 2, null
    return p_value, f"chi2({dof}){', conservative' * (added > 1)}"


@on_one_thread
def anova(*models: Any) -> Table:
    """Compare nested models of the same rows by likelihood ratio tests.

    Parameters
    ----------
    *models : PomModel or ClmmModel
        Two or more models, fitted without penalties to the same rows, in any order.
        They are sorted by the number of parameters, and each must be nested in the next
        one, as for `lr_test`.

    Returns
    -------
    Table
        A dict of arrays: "model", the position among the arguments, counted from 1;
        "parameters"; "loglik"; "aic"; and, compared with the previous model, "chi2",
        "dof" and "p_value", which are nan or 0 for the smallest model; with random
        effects also "null", the null distribution of `LikelihoodRatio`.

    Raises
    ------
    TypeError, ValueError
        As for `lr_test`; also if there are fewer than two models.

    Warns
    -----
    ConvergenceWarning
        As for `lr_test`.

    See Also
    --------
    lr_test : Compare two nested models of the same rows by a likelihood ratio test.
    ordinal.fit_pom : Fit a cumulative link model by maximum likelihood, such as
        proportional odds.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> y = [1, 1, 2, 1, 3, 2, 3, 3]
    >>> larger = ordinal.fit_pom(X, y)
    >>> smaller = ordinal.fit_pom([row[1:] for row in X], y)
    >>> ordinal.inference.anova(larger, smaller)
    model parameters   loglik     aic    chi2 dof  p_value
        2          3 -4.83736 15.6747     nan   0      nan
        1          4 -3.97389 15.9478 1.72695   1 0.188801
    """
    if len(models) < 2:
        raise ValueError(
            f"anova needs two models or more, got {len(models)}: drop1 tests the terms "
            "of one model"
        )
    models = tuple(_maximal(model, "anova") for model in models)
    order = sorted(range(len(models)), key=lambda k: models[k].dof)
    known = [models[k] for k in order]
    tests = [lr_test(a, b) for a, b in pairwise(known)]
    nothing = LikelihoodRatio(math.nan, 0, math.nan, "")
    names = "model", "parameters", "loglik", "aic", "chi2", "dof", "p_value", "null"
    shown_names = names if any(map(n_deviations, known)) else names[:-1]
    rows = [
        (k + 1, model.dof, model.loglik, model.aic, *test)[: len(shown_names)]
        for k, model, test in zip(order, known, [nothing, *tests], strict=True)
    ]
    return Table.from_rows(shown_names, rows)


def n_deviations(model: Any) -> int:
    """Return the number of standard deviations of random effects of a model."""
    return sum(len(own.effects) for own in _random_of(model))


def _random_of(model: Any) -> tuple[Any, ...]:
    """Return the grouping factors of a model, with their random effects."""
    return model.random if model.predictor.is_mixed else ()


def _maximal(model: Any, function: str) -> Any:
    """Return a linear model; TypeError or ValueError without a maximal likelihood."""
    model = fitted_model(model, function)
    check_likelihood(model, function)
    if model.statistics.covariance_type != "observed":
        raise ValueError(
            f"{function} needs the likelihood of independent rows, and a model has "
            f"{model.statistics.covariance_type} standard errors, which doubt it: fit "
            "without robust= and cluster=, or use wald_test"
        )
    return model


def _check_nested(smaller: Any, larger: Any) -> None:
    """Raise ValueError if the models show that they are not nested."""
    _check_same_data(smaller, larger)
    families = [m.predictor.family for m in (smaller, larger)]
    links: list[str] = [smaller.link, larger.link]
    for what, pair in (("family", families), ("link", links)):
        if pair[0] != pair[1]:
            raise ValueError(
                f"smaller and larger must have the same {what}, got {shown(pair[0])} "
                f"and {shown(pair[1])}"
            )
    restricted_first = "equidistant", "symmetric", "flexible"
    freedom = [restricted_first.index(m.predictor.threshold) for m in (smaller, larger)]
    if smaller.dof > larger.dof and freedom[0] >= freedom[1]:
        raise ValueError(
            f"smaller has {smaller.dof} parameters and larger {larger.dof}: swap them, "
            "as in lr_test(smaller, larger)"
        )
    if freedom[0] > freedom[1]:
        raise ValueError(
            "smaller must be nested in larger, but it has "
            f"{smaller.predictor.threshold} thresholds and larger "
            f"{larger.predictor.threshold} ones"
        )
    if not smaller.dof < larger.dof:
        raise ValueError(
            f"larger must have more parameters than smaller, got {larger.dof} and "
            f"{smaller.dof}"
        )
    _check_random(smaller, larger)
    _check_columns(smaller, larger)


def _check_same_data(smaller: Any, larger: Any) -> None:
    """Raise ValueError unless the models have the same ranks, rows and offset."""
    ranks = [m.classes[m.predictor.observed] for m in (smaller, larger)]
    if not np.array_equal(*ranks):
        raise ValueError(
            f"smaller and larger must have the same ranks, got {listed(ranks[0])} and "
            f"{listed(ranks[1])}"
        )
    if not math.isclose(
        smaller.statistics.n_obs, larger.statistics.n_obs, rel_tol=1e-9
    ):
        raise ValueError(
            "smaller and larger must be fitted to the same rows, got "
            f"{smaller.statistics.n_obs:.10g} and {larger.statistics.n_obs:.10g} "
            "observations"
        )
    first, second = _design_of(smaller), _design_of(larger)
    if first is None or second is None:
        return
    designs = first, second
    masses = [design.mass() for design in designs]
    # The design of a mixed model does not contain the weights of groups.
    counted = [
        math.isclose(mass.sum(), m.statistics.n_obs, rel_tol=1e-9)
        for mass, m in zip(masses, (smaller, larger), strict=True)
    ]
    if all(counted) and not np.allclose(masses[0], masses[1], rtol=1e-9, atol=0.0):
        raise ValueError(
            "smaller and larger must be fitted to the same rows, but the weights per "
            f"rank sum to {listed(masses[0].round(4))} and "
            f"{listed(masses[1].round(4))}; missing='drop' drops other rows for other "
            "columns: drop them before both fits"
        )
    if all(counted) and not same_rows(*designs):
        _check_shared_columns(smaller, first, larger, second)
    offsets = [design.offset for design in designs]
    if (offsets[0] is None) != (offsets[1] is None):
        which = "smaller" if offsets[0] is None else "larger"
        raise ValueError(
            f"smaller and larger must have the same offset, and {which} has none"
        )
    if offsets[0] is not None and offsets[1] is not None and same_rows(*designs):
        apart = np.abs(by_threshold(offsets[0]) - by_threshold(offsets[1])).max()
        if apart > _ROUNDING:
            raise ValueError(
                "smaller and larger must have the same offset, but they differ by up "
                f"to {apart:.3g}"
            )


def _check_shared_columns(
    smaller: Fitted, first: Design, larger: Fitted, second: Design
) -> None:
    """Raise ValueError unless numeric terms of both models have the same sums per rank.

    These sums do not depend on the order of the rows.
    """
    known = (
        smaller.predictor.coding or smaller.feature_names,
        larger.predictor.coding or larger.feature_names,
    )
    if not all(known) or max(first.n_samples, second.n_samples) > _ROWS:
        return
    for name in sorted(
        {*smaller.predictor.column_names} & {*larger.predictor.column_names}
    ):
        models = (smaller, first), (larger, second)
        at = [list(model.predictor.column_names).index(name) for model, _ in models]
        if not all(
            name in _terms_of(model, np.array([j]))
            for (model, _), j in zip(models, at, strict=True)
        ):
            continue  # columns of a factor depend on its coding
        sums = [
            _sums_by_rank(design, j) for (_, design), j in zip(models, at, strict=True)
        ]
        if np.abs(sums[0] - sums[1]).max() > _ROUNDING:
            raise ValueError(
                "smaller and larger must be fitted to the same rows and weights, but "
                f"have other values of {shown(name)} at the rows of some rank: fit "
                "both to one table"
            )


def _sums_by_rank(design: Design, j: int) -> np.ndarray:
    """Return the shares of the ranks in the weighted sum of a standardised column."""
    x = design.columns(slice(None), np.array([j]))[:, 0]
    w = design.weight / design.weight.sum()
    x = x - w @ x
    spread = float(np.sqrt(w @ x**2)) or 1.0
    return np.bincount(design.rank, weights=w * x / spread, minlength=design.T + 1)


def _design_of(model: Any) -> Design | None:
    """Return the design with the training rows, or None for a model without them."""
    fit = getattr(model, "_remembered", None)
    return None if fit is None else fit.loss.design


def same_rows(first: Design, second: Design) -> bool:
    """Return whether two designs have the same ranks and weights, row by row.

    Estimators of scikit-learn sort rows by content, and mixed models by groups.
    """
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("first", "rank", "weight")
    )


def _rule(model: Any) -> str:
    """Return what a message adds to the number of nodes of a mixed model."""
    return " by n_quadrature='auto'" if model.by_panels else ""


def _common_logliks(smaller: Any, larger: Any) -> list[float]:
    """Return the log-likelihoods, with one number of nodes for fits by "auto"."""
    models = smaller, larger
    most = max(getattr(model, "n_quadrature", 0) for model in models)
    logliks = []
    for model in models:
        if getattr(model, "n_quadrature", most) == most:
            logliks.append(model.loglik)
            continue
        fit = getattr(model, "_remembered", None)
        if fit is None:
            raise ValueError(
                f"a model with {model.n_quadrature} quadrature nodes must be fitted "
                f"again with {most} to be compared, and has no training rows after "
                f"load, pickle or copy: fit both with n_quadrature={most}"
            )
        fit.check_unchanged(model, "lr_test")
        logliks.append(fit.loglik_by(most))
    return logliks


def _check_random(smaller: Any, larger: Any) -> None:
    """Raise ValueError unless random effects are among those of the larger model.

    Both integrals must have one number of nodes; without random effects there is none.
    """
    effects = [_random_of(model) for model in (smaller, larger)]
    mixed = [m for m in (smaller, larger) if m.predictor.is_mixed]
    nodes = [m.n_quadrature for m in mixed]
    rules = {m.by_panels for m in mixed}
    if len(rules) > 1 or (len({*nodes}) > 1 and rules != {True}):
        raise ValueError(
            f"smaller and larger must have the same number of quadrature nodes, got "
            f"{nodes[0]}{_rule(mixed[0])} and {nodes[1]}{_rule(mixed[1])}: fit both "
            f"with n_quadrature={max(nodes)}"
        )
    known = {own.name: own for own in effects[1]}
    for own in effects[0]:
        there = known.get(own.name)
        others = () if there is None else there.effects
        if more := [effect for effect in own.effects if effect not in others]:
            raise ValueError(
                f"smaller must be nested in larger, but has the random effects "
                f"{listed(more)} of {own.name}, which larger lacks"
            )
        if there is None:
            continue
        at = [there.effects.index(effect) for effect in own.effects]
        # An estimated covariance is not exactly 0.
        if ((own.covariance != 0) & (there.covariance[np.ix_(at, at)] == 0)).any():
            raise ValueError(
                "smaller must be nested in larger, but has correlated random effects "
                f"of {own.name}, which are uncorrelated in larger"
            )


def _check_columns(smaller: Any, larger: Any) -> None:
    """Raise ValueError unless effects of columns are among those of the larger model.

    A column with a slope per threshold may be one with a single slope in the smaller
    model.
    """
    every = [*larger.predictor.location, *larger.predictor.nominal]
    parts = {
        "": (smaller.predictor.location, np.array(every, dtype=np.int64)),
        "nominal ": (smaller.predictor.nominal, larger.predictor.nominal),
        "scale ": (smaller.predictor.scale, larger.predictor.scale),
    }
    first, second = _design_of(smaller), _design_of(larger)
    comparable = first is not None and second is not None and same_rows(first, second)
    for kind, (own, others) in parts.items():
        if comparable:
            missing = _outside(cast(Design, first), own, cast(Design, second), others)
        else:
            missing = _unnamed(smaller, own, larger, others)
        if missing:
            names = [smaller.predictor.column_names[j] for j in missing]
            reason = (
                "are no combination of those" if comparable else "are none of those"
            )
            raise ValueError(
                f"smaller must be nested in larger, but its {kind}effects of "
                f"{enumerated(names)} {reason} of larger"
            )


def _outside(
    first: Design, own: np.ndarray, second: Design, others: np.ndarray
) -> list[int]:
    """Return the columns of a design that are no combination of those of another one.

    A constant is among the others, because thresholds and scales absorb it.
    """
    used = np.flatnonzero(first.weight > 0)
    used = used[:: 1 + used.size // _ROWS]
    both = []
    for design, columns in ((second, others), (first, own)):
        Z = dense(take(design.X, used))[:, columns] - design.centre[columns]
        both.append(Z / design.spread[columns])
    Q = np.linalg.qr(np.column_stack([np.ones(used.size), both[0]]))[0]
    left = both[1] - Q @ (Q.T @ both[1])
    size = np.maximum(np.abs(both[1]).max(axis=0), 1.0) if own.size else np.ones(0)
    outside = np.abs(left).max(axis=0, initial=0.0) > _OUTSIDE * size
    return [int(j) for j in own[outside]]


def _unnamed(
    first: Fitted, own: np.ndarray, second: Fitted, others: np.ndarray
) -> list[int]:
    """Return the columns of a model whose names, and those of whose terms, are not
    those of another one; none if the columns have no names.
    """
    if first.predictor.coding is None and first.feature_names is None:
        return []
    known = {second.predictor.column_names[j] for j in others}
    terms = _terms_of(second, others)
    missing = [j for j in own.tolist() if first.predictor.column_names[j] not in known]
    return [j for j in missing if not _terms_of(first, np.array([j])) <= terms]


def _terms_of(model: Fitted, columns: np.ndarray) -> set[str]:
    """Return the terms of columns; the columns themselves have the names of terms."""
    if model.predictor.coding is None:
        return {model.predictor.column_names[j] for j in columns}
    terms = model.predictor.coding.columns_of_terms.items()
    return {name for name, at in terms if np.isin(columns, at).any()}
