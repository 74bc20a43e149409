"""Wald tests of terms, contrasts of levels, and simultaneous intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from .._formula.coding import Coding
from .._input.checks import check_choice, check_share, listed, shown
from .._input.types import ArrayLike, RowsLike
from .._model.printing import Table
from .._numerics.rows import dense
from .._numerics.tails import (
    largest_quantile,
    normal_margin,
    normal_two_sided,
    range_quantile,
    range_tail,
)
from .calls import on_one_thread
from .covariance import block_of
from .fitted import (
    Fitted,
    about_groups,
    covariance_for,
    fitted_model,
    fitted_rows,
    read_design,
)
from .margins import Errors, errors_of
from .outcomes import Outcome, Rows, Smooth, cells_of, outcome_of
from .tables import first_coef, tests_table

_DEPENDENT = 1e-10  # eigenvalue of a correlation matrix that counts as 0
Adjust = Literal["tukey", "holm", "bonferroni", "none"]


@on_one_thread
def wald_test(
    model: Any,
    combinations: Mapping[str, Mapping[str, float]] | None = None,
    *,
    level: float = 0.95,
) -> Table:
    """Test the coefficients of each term jointly, or linear combinations of
    parameters, by their covariance.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    combinations : mapping of names to mappings, optional
        Linear combinations of parameters: for each, its name, and the factors of
        `parameter_names`, such as {"two doses": {"dose": 2.0}}. Default: the terms.
    level : float in (0, 1), default 0.95
        Confidence level of the intervals of combinations.

    Returns
    -------
    Table
        A dict of arrays with an entry per term: "name", "chi2", "dof", "p_value". For
        combinations also "estimate", "standard_error", "lower" and "upper", and if
        there are several, a last entry "all" for their joint test, of which the number
        of independent combinations is "dof".

    Raises
    ------
    ValueError
        As for `standard_errors`; also if a combination names no parameter of the
        model, or has no factor other than 0.
    TypeError
        If combinations are no mapping of names to mappings.

    See Also
    --------
    equality_test : Test whether some coefficients are equal (Wald's test).
    drop1 : Test every term by a fit without it.
    lr_test : Compare two nested models of the same rows by a likelihood ratio test.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.wald_test(model)
    name    chi2 dof  p_value
    x1   1.41522   1 0.234192
    x2   2.42323   1 0.119548
    >>> ordinal.inference.wald_test(model, {"x1 - 2 x2": {"x1": 1, "x2": -2}})
    name       estimate standard_error      chi2 dof  p_value    lower   upper
    x1 - 2 x2 -0.307822        2.01074 0.0234362   1 0.878328 -4.24881 3.63316
    """
    model = fitted_model(model, "wald_test")
    z = normal_margin(check_share("level", level))
    if combinations is not None:
        given: Any = combinations
        each = given.values() if isinstance(given, Mapping) else [None]
        if not all(isinstance(factors, Mapping) for factors in each):
            raise TypeError(
                "combinations must map names to factors of parameters, such as "
                "{'two doses': {'dose': 2.0}}, got " + shown(combinations)
            )
        return _combined(model, combinations, z)
    b, V = location_of(model, "wald_test")
    terms = model.predictor.features
    places = [np.isin(model.predictor.location, columns) for columns in terms.values()]
    chi2 = [_wald(b[own], V[np.ix_(own, own)]) for own in places]
    return tests_table(terms, chi2, [int(own.sum()) for own in places])


def _combined(
    model: Fitted, combinations: Mapping[str, Mapping[str, float]], z: float
) -> Table:
    """Return the table of `wald_test` for linear combinations of parameters."""
    covariance = covariance_for(model, "wald_test")
    if not combinations:
        raise ValueError("combinations must hold one or more, got none: leave it out")
    known = {name: k for k, name in enumerate(model.parameter_names)}
    C = np.zeros((len(combinations), len(known)))
    for own, (title, factors) in zip(C, combinations.items(), strict=True):
        for name, factor in factors.items():
            if name not in known:
                raise ValueError(
                    f"combinations must name parameters, {listed(list(known))}, got "
                    f"{shown(name)}"
                )
            own[known[name]] = factor
        if not (np.isfinite(own).all() and own.any()):
            raise ValueError(
                f"the combination {shown(title)} must have finite factors, and one "
                f"other than 0, got {shown(dict(factors))}"
            )
    estimate, V = C @ model.parameters, (C @ covariance) @ C.T
    error = np.sqrt(np.maximum(np.diagonal(V), 0.0))
    names, dof = list(combinations), [1] * len(C)
    chi2 = ((estimate / error) ** 2).tolist()
    if len(C) > 1:
        # Combinations may depend on one another.
        w, Q = np.linalg.eigh(V / np.outer(error, error))
        kept = w > _DEPENDENT
        chi2.append(float(((Q.T @ (estimate / error))[kept] ** 2 / w[kept]).sum()))
        names, dof = [*names, "all"], [*dof, int(kept.sum())]
        estimate, error = (np.append(part, np.nan) for part in (estimate, error))
    ends = {"lower": estimate - z * error, "upper": estimate + z * error}
    tests = tests_table(names, chi2, dof)
    return Table(
        {"name": tests["name"], "estimate": estimate, "standard_error": error}
        | {k: tests[k] for k in ("chi2", "dof", "p_value")}
        | ends
    )


@on_one_thread
def equality_test(model: Any, names: Sequence[str]) -> Table:
    """Test whether some coefficients are equal (Wald's test).

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
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

    See Also
    --------
    wald_test : Test the coefficients of each term jointly, or linear combinations of
        parameters, by their covariance.
    contrasts : Compare all pairs of levels of a categorical feature.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.equality_test(model, ["x1", "x2"])
    name        chi2 dof  p_value
    x1 = x2 0.362907   1 0.546896
    """
    model = fitted_model(model, "equality_test")
    b, V = location_of(model, "equality_test")
    known = list(model.predictor.coef_names)
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


@on_one_thread
def contrasts(
    model: Any,
    feature: str,
    *,
    within: str | None = None,
    kind: Smooth = "latent",
    at: ArrayLike | None = None,
    values: ArrayLike | None = None,
    X: RowsLike | None = None,
    adjust: Adjust = "tukey",
    level: float = 0.95,
    effects: str | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
) -> Table:
    """Compare all pairs of levels of a categorical feature.

    On the scale "latent", a contrast is a difference of the linear predictor, which is
    a log odds ratio for the link "logit". It is positive if the first level of the
    pair has higher ranks. On the other scales it is a difference of `predictions` with
    ``by=`` the feature and ``grid=True``, as of R's `emmeans`.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    feature : str
        A categorical variable of the model.
    within : str, optional
        Another one, with which the feature interacts: pairs are compared at each of
        its levels, and adjusted within them.
    kind : str, default "latent"
        Scale of the contrasts: "latent", "probability", "cumulative", "exceedance" or
        "mean", as for `predictions`. Pairs are adjusted for each rank by itself.
    at, values : optional
        As for `predictions`.
    X : (n, n_features) array or data frame, optional
        Rows from which the means of the numeric columns are taken. Default: the
        training rows. Without `X`, contrasts on the latent scale do not depend on rows.
    adjust : {"tukey", "holm", "bonferroni", "none"}, default "tukey"
        Adjustment of p-values and intervals for multiple comparisons. "tukey" uses
        the distribution of the range of normal variables, which is exact if all
        levels are estimated with equal precision and conservative otherwise. The
        intervals of "holm" are those of "bonferroni". With all but "none", the
        intervals hold simultaneously.
    level : float in (0, 1), default 0.95
    effects, groups : optional
        As for `predictions`, of a model with random effects.

    Returns
    -------
    Table
        A dict of arrays: "name", "estimate", "standard_error", "z", "p_value",
        "lower", "upper"; with `within` also "within", its level, and for probabilities
        "rank" or "threshold".

    Raises
    ------
    ValueError
        As for `standard_errors` and `predictions`; also if the feature is not a
        categorical variable, or, on the latent scale, if it has nominal effects,
        interacts with another one than `within`, or has a level without a coefficient.

    See Also
    --------
    wald_test : Test the coefficients of each term jointly, or linear combinations of
        parameters, by their covariance.
    equality_test : Test whether some coefficients are equal (Wald's test).
    predictions : Return probabilities, means and quantiles of the outcome, with
        standard errors and intervals.

    Examples
    --------
    >>> import ordinal
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dose": list("aabbccabcabc")})
    >>> model = ordinal.fit_pom(table, [1, 2, 1, 2, 3, 3, 1, 3, 2, 2, 1, 3])
    >>> ordinal.inference.contrasts(model, "dose")["name"]
    array(['b - a', 'c - a', 'c - b'], dtype='<U5')
    >>> found = ordinal.inference.contrasts(model, "dose", kind="mean")
    >>> found["estimate"].round(3)
    array([0.168, 1.18 , 1.012])
    """
    model, X = fitted_rows(model, X, "contrasts")
    check_choice("adjust", adjust, get_args(Adjust))
    check_choice("kind", kind, get_args(Smooth))
    level = check_share("level", level)
    random = about_groups("contrasts", model, effects=effects, groups=groups)
    outcome = outcome_of(model, kind, at, values)
    if kind == "latent" and X is None and not random:
        b, V = location_of(model, "contrasts")
        labels, rows, others = _level_rows(model, feature, within)
        estimate, G = (rows @ b)[:, None], rows[:, None]
        names: dict[str, np.ndarray] = {}
        errors: Errors = partial(errors_of, V)
    else:
        names = outcome.names
        labels, others, estimate, G, errors = _cells(
            model, outcome, Rows(X, None, None, random), feature, within
        )
    low, high = np.triu_indices(labels.size, 1)
    estimate = estimate[..., high] - estimate[..., low]  # (g, k, pairs)
    moved = G[:, :, high] - G[:, :, low]
    error = errors(moved.reshape(-1, moved.shape[3])).reshape(estimate.shape)
    # A rank without training rows has the probability 0 at all levels.
    z = np.divide(estimate, error, out=0 * estimate, where=error != 0)
    families = [
        _adjusted(own, labels.size, adjust, level) for own in z.reshape(-1, low.size)
    ]
    margin = families[0][1] * error
    pairs = zip(labels[high], labels[low], strict=True)
    texts = np.array([f"{one} - {other}" for one, other in pairs], dtype=str)
    g, k = estimate.shape[:2]
    first = {} if others is None else {"within": np.repeat(others, k * low.size)}
    return Table(
        first
        | {name: np.tile(np.repeat(v, low.size), g) for name, v in names.items()}
        | {
            "name": np.tile(texts, g * k),
            "estimate": estimate.ravel(),
            "standard_error": error.ravel(),
            "z": z.ravel(),
            "p_value": np.concatenate([p_value for p_value, _ in families]),
            "lower": (estimate - margin).ravel(),
            "upper": (estimate + margin).ravel(),
        }
    )


@on_one_thread
def simultaneous_band(model: Any, X: RowsLike, level: float = 0.95) -> Table:
    """Return a simultaneous confidence band of the score along a sequence of rows.

    The curve is x'beta minus its value at the first row, which is the reference;
    for the logit it is a log odds ratio. If one feature varies from row to row and
    all others are fixed, the curve is the effect of this feature through all of its
    terms.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
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

    See Also
    --------
    simultaneous_intervals : Return simultaneous confidence intervals of all of `coef`.

    References
    ----------
    As for `simultaneous_intervals`.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> model = ordinal.fit_pom(X, y)
    >>> ordinal.inference.simultaneous_band(model, [[10.0, 10.0], [15.0, 10.0]])["row"]
    array([0, 1])
    """
    model, X = fitted_rows(model, X, "simultaneous_band")
    level = check_share("level", level)
    b, V = location_of(model, "simultaneous_band")
    Z, _ = read_design(model, X, None)
    if not b.size or len(Z) < 2:
        raise ValueError(
            "simultaneous_band needs features with one slope for all thresholds, "
            f"and 2 rows of X or more, got {b.size} and {len(Z)}"
        )
    rows = dense(Z)[:, model.predictor.location]
    # The first row is the reference, where the curve and its error are 0.
    moved = rows - rows[0]
    estimate = moved @ b
    error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", moved, V, moved), 0.0))
    c, at = 0.0, error > 0
    if at.any():
        c = largest_quantile(level, moved[at], V)
    return Table(
        {
            "row": np.arange(len(rows)),
            "estimate": estimate,
            "standard_error": error,
            "lower": estimate - c * error,
            "upper": estimate + c * error,
        }
    )


@on_one_thread
def simultaneous_intervals(model: Any, level: float = 0.95) -> Table:
    """Return simultaneous confidence intervals of all of `coef`.

    Each is the estimate plus and minus c standard errors, where c is a quantile of
    the maximum of the correlated z values. The intervals are wider than those of
    `confint` and narrower than Bonferroni's.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
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

    See Also
    --------
    simultaneous_band : Return a simultaneous confidence band of the score along a
        sequence of rows.
    confint : Return confidence intervals of the parameters.

    References
    ----------
    T. Hothorn, F. Bretz, P. Westfall, "Simultaneous inference in general parametric
    models", Biometrical Journal 50:346-363, 2008.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.inference.simultaneous_intervals(ordinal.fit_pom(X, y))["name"]
    array(['x1', 'x2'], dtype='<U2')
    """
    model = fitted_model(model, "simultaneous_intervals")
    level = check_share("level", level)
    b, V = location_of(model, "simultaneous_intervals")
    if not b.size:
        raise ValueError(
            "simultaneous_intervals needs features with one slope for all "
            "thresholds, and this model has none"
        )
    error = np.sqrt(np.diagonal(V))
    c = largest_quantile(level, np.eye(b.size), V)
    return Table(
        {
            "name": np.array(model.predictor.coef_names, dtype=str),
            "estimate": b,
            "lower": b - c * error,
            "upper": b + c * error,
        }
    )


def location_of(model: Fitted, asked: str) -> tuple[np.ndarray, np.ndarray]:
    """Return `coef` and its covariance."""
    V = covariance_for(model, asked)
    own = first_coef(model) + np.arange(model.coef.size)
    return model.coef, block_of(V, own)


def _level_rows(
    model: Fitted, feature: str, within: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the labels of a categorical variable, (k,), the columns of `coef` at
    its levels for each level of another one, (g, k, l), and the labels of that.

    Columns that do not depend on the variable are 0.
    """
    coding = model.predictor.coding
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
    if not np.isin(apart, model.predictor.location).all():
        raise ValueError(
            f"contrasts needs one coefficient per level of {shown(feature)}, some "
            "of which have nominal effects or were left out as collinear: pass another "
            "kind=, such as 'probability'"
        )
    return labels, every[:, :, model.predictor.location], others


def _cells(
    model: Any, outcome: Outcome, rows: Rows, feature: str, within: str | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray, Errors]:
    """Return the labels of a feature, (l,), and those of another one, the values of k
    functions in the cells of both, (g, k, l), their gradients, and their errors.
    """
    by = [feature] if within is None else [within, feature]
    columns, cells = cells_of(model, "contrasts", rows, by, True)
    found = []
    for cell in cells:
        means, source, errors = cell.of(model, "contrasts")
        found.append(outcome.of_sums(means, source))
    labels, others = (
        list(dict.fromkeys(v.tolist())) for v in (columns[feature], columns[by[0]])
    )
    g = 1 if within is None else len(others)
    value, G = (
        np.array([getattr(own, part) for own in found])
        for part in ("value", "gradient")
    )
    value = value.reshape(g, len(labels), -1)
    G = G.reshape(*value.shape, -1)
    kept = None if within is None else np.array(others)
    return np.array(labels), kept, value.swapaxes(1, 2), G.swapaxes(1, 2), errors


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
