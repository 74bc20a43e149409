"""Tables of the estimates, their intervals and tests, and of a fit as a whole.

In large samples, estimates are normally distributed about the true values with the
covariance of the model. With a penalty or separated ranks they are not, so functions
that rely on this raise an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from .._cumulative.design import Design, structure_of
from .._input.checks import (
    check_choice,
    check_flag,
    check_share,
    enumerated,
    listed,
    shown,
)
from .._model.printing import (
    LEGEND,
    Table,
    Text,
    aligned,
    coefficient_lines,
    rows_left_out,
)
from .._numerics.tails import chi2_tail, normal_margin, normal_two_sided
from .calls import on_one_thread
from .fitted import (
    Fitted,
    check_likelihood,
    covariance_for,
    estimates_of,
    fitted_model,
    remembered,
    standard_errors,
)
from .profiles import limit_interval, profile_interval


@on_one_thread
def table(model: Any) -> Table:
    """Return the estimates with errors and tests, as arrays by name.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.

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

    See Also
    --------
    tidy : Return one entry per parameter: estimate, error, test and interval.
    summary : Return the tables of the fit in the form in which R's `clm` prints them.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.table(model)
    name kind      estimate standard_error       z  p_value
    1|2  threshold  6.22797        4.20292 1.48182 0.138388
    2|3  threshold  9.70213        6.09846 1.59091 0.111629
    x1   location   2.55694        2.14936 1.18963 0.234192
    x2   location   1.43238       0.920156 1.55667 0.119548
    """
    model = fitted_model(model, "table")
    estimates, errors = estimates_of(model), standard_errors(model)
    with np.errstate(invalid="ignore"):
        z = estimates / errors
    kinds = "threshold", "nominal", "location", "scale"
    parts = model.alpha, model.nominal_coef, model.coef, model.scale_coef
    return Table(
        {
            "name": np.array(model.parameter_names, dtype=str),
            "kind": np.repeat(kinds, [part.size for part in parts]),
            "estimate": estimates,
            "standard_error": errors,
            "z": z,
            "p_value": normal_two_sided(z),
        }
    )


@on_one_thread
def summary(model: Any) -> Text:
    """Return the tables of the fit in the form in which R's `clm` prints them.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.

    Returns
    -------
    Text
        A string that displays itself in a shell; `print` it elsewhere.

    Raises
    ------
    ValueError
        As for `standard_errors`.

    See Also
    --------
    tidy : Return one entry per parameter: estimate, error, test and interval.
    glance : Return statistics of the whole fit.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> for line in ordinal.inference.summary(model).splitlines()[3:7]:
    ...     print(line)
    Coefficients:
       Estimate Std. Error z value Pr(>|z|)
    x1   2.5569     2.1494   1.190    0.234
    x2   1.4324     0.9202   1.557     0.12
    """
    model = fitted_model(model, "summary")
    covariance_for(model, "summary", limit=True)
    lines = _summary_lines(model)
    at = lines.index("")
    return Text("\n".join([*lines[:at], *model._random_lines(), *lines[at:]]))


@on_one_thread
def confint(
    model: Any, level: float = 0.95, *, method: Literal["wald", "profile"] = "wald"
) -> Table:
    """Return confidence intervals of the parameters.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
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

    See Also
    --------
    tidy : Return one entry per parameter: estimate, error, test and interval.
    simultaneous_intervals : Return simultaneous confidence intervals of all of `coef`.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.confint(model, method="profile")
    name estimate    lower   upper
    x1    2.55694 -1.21761 8.56449
    x2    1.43238 0.240105 4.82105
    """
    model = fitted_model(model, "confint")
    z = normal_margin(check_share("level", level))
    check_choice("method", method, ("wald", "profile"))
    estimates = estimates_of(model)
    if method == "wald":
        which = np.arange(estimates.size)
        with np.errstate(invalid="ignore"):
            errors = standard_errors(model)
            lower = estimates - z * errors
            upper = estimates + z * errors
    else:
        # coef and scale_coef are the last parameters.
        which = np.arange(first_coef(model), estimates.size)
        lower, upper = model._profile_ends(which, z).T
    names = model.parameter_names
    return Table(
        {
            "name": np.array([names[j] for j in which], dtype=str),
            "estimate": estimates[which],
            "lower": lower,
            "upper": upper,
        }
    )


def profile_ends(model: Any, which: np.ndarray, z: float) -> np.ndarray:
    """Return the ends of the profile intervals of (coef, scale_coef), (m, 2).

    They are the parameters of the numbers `which`.
    """
    asked = 'confint(method="profile")'
    if model.statistics.covariance_type != "observed":
        raise ValueError(
            f"{asked} needs the likelihood, which the covariance of this model "
            f'({model.statistics.covariance_type}) does not rely on: pass method="wald"'
        )
    check_likelihood(model, asked)
    if model.statistics.limits is None:
        V = covariance_for(model, asked)
    fit = remembered(model, asked)
    unit = spread_of_coef(model, fit.loss.design)
    if fit.limit is not None:
        ends = [limit_interval(fit, int(j), z) for j in which]
    else:
        error = np.sqrt(V.diagonal())[which]
        ends = [
            profile_interval(fit, int(j), float(e * u), z)
            for j, e, u in zip(which, error, unit, strict=True)
        ]
    return np.asarray(np.array(ends).reshape(-1, 2) / unit[:, None])


def first_coef(model: Fitted) -> int:
    """Return the number of the first of `coef` among the parameters."""
    return int(model.alpha.size + model.nominal_coef.size)


def spread_of_coef(model: Any, design: Design) -> np.ndarray:
    """Return the divisors of the columns of coef and scale_coef in the loss."""
    columns = np.concatenate([model.predictor.location, model.predictor.scale])
    return np.asarray(design.spread[columns])


@on_one_thread
def odds_ratios(
    model: Any, level: float = 0.95, *, method: Literal["wald", "profile"] = "wald"
) -> Table:
    """Return odds ratios of the features with confidence intervals.

    An odds ratio is the factor by which one unit more of a feature multiplies the
    odds of a rank above any threshold. A feature with nominal effects has one for
    each threshold, such as "1|2.x".

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    level, method
        As for `tidy`, whose estimates and intervals are transformed by exp.

    Returns
    -------
    Table
        A dict of arrays: "name", "odds_ratio", "lower", "upper".

    Raises
    ------
    ValueError
        As for `confint`; also for a link other than "logit", a model with scale
        effects, or nominal effects of thresholds that are symmetric or equidistant.

    See Also
    --------
    confint : Return confidence intervals of the parameters.
    marginal_effects : Return average marginal effects of the features on the outcome.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.odds_ratios(model, 0.9)
    name odds_ratio    lower   upper
    x1      12.8963 0.375896 442.448
    x2      4.18866 0.922064 19.0278
    """
    model = fitted_model(model, "odds_ratios")
    if model.link != "logit" or model.predictor.scale.size:
        what = f"link={shown(model.link)}" if model.link != "logit" else "scale effects"
        raise ValueError(
            "odds_ratios are defined for the logit link without scale "
            f"effects, and this model has {what}: its odds do not change by "
            "one factor"
        )
    T = int(model.predictor.observed.sum()) - 1
    is_flexible = structure_of(model.predictor.threshold, T).matrix is None
    if model.nominal_coef.size and not is_flexible:
        raise ValueError(
            "odds_ratios need the nominal effects of each threshold, and those of "
            f"threshold={shown(model.predictor.threshold)} are of its parameters: fit "
            'with threshold="flexible"'
        )
    found = tidy(model, level, method=method, exponentiate=True)
    own = slice(model.alpha.size, first_coef(model) + model.coef.size)
    columns = {"name": "name", "odds_ratio": "estimate"}
    columns |= {"lower": "lower", "upper": "upper"}
    return Table({name: found[of][own] for name, of in columns.items()})


@on_one_thread
def monotone_effects(model: Any) -> Table:
    """Return the increments of the monotone effects `mo(x)` of a formula per level.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.

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

    See Also
    --------
    tidy : Return one entry per parameter: estimate, error, test and interval.

    Examples
    --------
    >>> import ordinal, pandas as pd
    >>> data = pd.DataFrame({"y": [0, 1, 0, 1, 2, 1, 0, 2, 2], "k": [0, 1, 2] * 3})
    >>> ordinal.inference.monotone_effects(ordinal.fit_pom("y ~ mo(k)", data))
    name  level increment    mean share
    mo(k) 1       2.62541 1.31271     1
    mo(k) 2             0 1.31271     0
    """
    model = fitted_model(model, "monotone_effects")
    found = {} if model.predictor.coding is None else model.predictor.coding.monotone
    if not found:
        raise ValueError("the model has no monotone effect: write mo(x) for x")
    slopes = model.predictor.by_column(model.coef)
    rows: list[tuple[str, str, float, float, float]] = []
    for name, (variable, columns) in found.items():
        d = slopes[list(columns)]
        # Without an effect, all shares are 0.
        mean, total = d.mean(), d.sum() or 1.0
        assert variable.labels is not None
        for label, step in zip(variable.labels[1:].tolist(), d, strict=True):
            rows.append((name, str(label), step, mean, step / total))
    return Table.from_rows(("name", "level", "increment", "mean", "share"), rows)


@on_one_thread
def tidy(
    model: Any,
    level: float = 0.95,
    *,
    method: Literal["wald", "profile"] = "wald",
    exponentiate: bool = False,
) -> Table:
    """Return one entry per parameter: estimate, error, test and interval.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    level, method
        As for `confint`. With method="profile", the intervals of thresholds and
        nominal effects are nan, because they are not computed.
    exponentiate : bool, default False
        Whether to transform estimates and intervals by exp, for example to odds
        ratios. Standard errors and tests remain those of the estimates.

    Returns
    -------
    Table
        The columns of `table`, with "lower" and "upper".

    Raises
    ------
    ValueError
        As for `confint`.

    See Also
    --------
    glance : Return statistics of the whole fit.
    augment : Return one entry per row: features, rank, predictions and residuals.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> list(ordinal.inference.tidy(ordinal.fit_pom(X, y)))[-4:]
    ['z', 'p_value', 'lower', 'upper']
    """
    model = fitted_model(model, "tidy")
    known, ends = table(model), confint(model, level, method=method)
    lower, upper = np.full((2, known["name"].size), np.nan)
    # Profiles are those of the last parameters, `coef` and `scale_coef`.
    own = slice(known["name"].size - ends["name"].size, None)
    lower[own], upper[own] = ends["lower"], ends["upper"]
    columns = {**known, "lower": lower, "upper": upper}
    if check_flag("exponentiate", exponentiate):
        with np.errstate(over="ignore"):  # infinite then, which is right
            for name in ("estimate", "lower", "upper"):
                columns[name] = np.exp(columns[name])
    return Table(columns)


@on_one_thread
def glance(model: Any) -> Table:
    """Return statistics of the whole fit.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.

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

    See Also
    --------
    tidy : Return one entry per parameter: estimate, error, test and interval.
    augment : Return one entry per row: features, rank, predictions and residuals.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> glance = ordinal.inference.glance(ordinal.fit_pom(X, y))
    >>> glance["parameters"], glance["n_obs"]
    (array([4]), array([300.]))
    """
    model = fitted_model(model, "glance")
    figures = {
        "link": model.link,
        "threshold": model.predictor.threshold,
        "n_obs": model.statistics.n_obs,
        "n_missing": model.statistics.n_missing,
        "parameters": model.dof,
        "loglik": model.loglik,
        "null_loglik": model.statistics.null_loglik,
        "deviance": -2 * model.loglik,
        "aic": model.aic,
        "bic": model.bic,
        "mcfadden_r2": mcfadden_r2(model),
        "converged": model.convergence.converged,
    }
    return Table({name: np.array([value]) for name, value in figures.items()})


def mcfadden_r2(model: Fitted) -> float:
    """Return 1 - loglik / null_loglik, which is 0 without features."""
    # Rounding may leave a model without effects below the null model.
    return max(0.0, 1 - model.loglik / model.statistics.null_loglik)


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


def _summary_lines(model: Any) -> list[str]:
    """Return the lines of `summary`."""
    family = model.predictor.family
    heads = {
        **({"family": family} if family != "cumulative" else {}),
        "link": model.link,
        "threshold": model.predictor.threshold,
        "nobs": f"{model.statistics.n_obs:.10g}",
        "logLik": f"{model.loglik:.2f}",
        "AIC": f"{model.aic:.2f}",
        "BIC": f"{model.bic:.2f}",
        "McFadden R2": f"{mcfadden_r2(model):.4f}",
        "steps": str(model.convergence.n_iter),
        "violation": f"{model.convergence.violation:.1e}",
    }
    columns = [aligned(head, [cell], left=True) for head, cell in heads.items()]
    lines = [" ".join(line).rstrip() for line in zip(*columns, strict=True)]
    if not model.convergence.converged:
        lines.append(f"Not converged: {model.convergence}")
    if model.statistics.covariance_type != "observed":
        lines.append(f"Standard errors: {model.statistics.covariance_type} (sandwich)")
    if rows := rows_left_out(model.n_missing_labels, model.statistics.n_missing):
        lines.append(f"Left out: {rows}")
    if model.predictor.dropped:
        others = enumerated(model.predictor.dropped)
        lines.append(f"Left out, as other columns determine them: {others}")
    if not model.predictor.observed.all():
        unseen = listed(model.classes[~model.predictor.observed])
        lines.append(f"Without training rows, and never predicted: ranks {unseen}")
    lines += [f"Thresholds cross: {line}" for line in model.disorder]
    found = table(model)
    parts = {
        "location": "Coefficients",
        "nominal": "Nominal coefficients (a slope for each threshold)",
        "scale": "Log-scale coefficients",
        "threshold": "Threshold coefficients",
    }
    for kind, title in parts.items():
        own = found["kind"] == kind
        if not own.any():
            continue
        p = None if kind == "threshold" else found["p_value"][own]
        names = tuple(
            n.removeprefix("scale.") if kind == "scale" else n
            for n in found["name"][own].tolist()
        )
        lines += ["", f"{title}:"]
        lines += coefficient_lines(
            names, found["estimate"][own], found["standard_error"][own], p
        )
        if p is not None and (p <= 0.1).any():
            lines += ["---", LEGEND]
    return lines
