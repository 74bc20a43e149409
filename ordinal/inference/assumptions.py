"""Tests of the assumptions of proportional odds and of one scale.

Proportional odds are equal slopes at all thresholds. For Brant's test, the logistic
regression of y > j gives slopes b_j at every threshold j.
Under proportional odds they estimate the same slopes, with covariances

    cov(b_j, b_l) = I_j^-1 (sum_i w_i (P_l - P_j P_l) x_i x_i') I_l^-1,   j <= l     (1)
    I_j = sum_i w_i P_j (1 - P_j) x_i x_i',   P_j = P(y_i > j)

and the Wald statistic of b_0 = b_1 = ... is chi-square. The likelihood ratio tests
refit the model with the features as nominal effects, starting at the fitted point.

R. Brant, "Assessing proportionality in the proportional odds model for ordinal logistic
regression", Biometrics 46:1171-1178, 1990. B. Peterson, F. E. Harrell, Applied
Statistics 39:205-217, 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from .._cumulative.design import Design, Structure
from .._cumulative.fitting import likelihood_of
from .._cumulative.likelihood import cumulative
from .._cumulative.separation import separated_columns
from .._input.checks import check_choice, listed
from .._input.types import ArrayLike, RowsLike
from .._input.warning import warn
from .._model.printing import Table
from .._model.threshold_model import names_between
from .._numerics.memory import check_memory
from .._numerics.rows import strips, take
from .calls import on_one_thread
from .diagnostics import (
    WITHOUT_RANDOM,
    check_known_ranks,
    check_size,
    feature_values,
    probabilities_of,
    read_rows,
)
from .fitted import (
    FitMemory,
    check_likelihood,
    covariance_for,
    fitted_model,
    fitted_rows,
    refit,
    remembered,
    warn_unless_optimal,
)
from .margins import TableRows, rows_to_average
from .tables import tests_table

_REMEDY = "fit again with the column in {}= and compare both by lr_test"
_MOST = 1000  # ranks of the test of proportional odds
_BLOCK = 1 << 20  # entries of rows with each rank in memory at a time
# Rows per rank and root of the degrees of freedom. With fewer, tests at the level of
# 5 % reject true models in more than 10 % of samples: 56 % of those of 400 rows, 50
# ranks and one feature.
_ROWS_PER_RANK = 4
_NOMINAL = {"mixed": _REMEDY.format("nominal")}
_BINARY = {"ratio": 'take method="lr"'}
_SCALE = {
    "ratio": "fit_ratio has no scale effects",
    "mixed": _REMEDY.format("scale"),
}


@on_one_thread
def proportional_odds_test(
    model: Any, method: Literal["brant", "lr", "score", "expected"] = "brant"
) -> Table:
    """Test the proportional odds assumption, for all features and for each.

    A small p-value says that the coefficients of a feature differ between
    thresholds, which `nominal=` of `fit_pom` allows.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    method : {"brant", "lr", "score", "expected"}, default "brant"
        Brant's test compares the coefficients of binary logistic regressions at all
        thresholds (a Wald test). "lr" is the likelihood ratio test against the
        model in which the features are nominal effects. It is available for every
        link, takes one more fit per feature, and does not need binary fits, which
        may not exist. "score" is the score test against that model, with the
        observed information, which SAS prints. It needs no other fit than the model
        itself, so that it exists where a level of a feature has no rows of a rank.
        "expected" is this test with the expected information, which keeps its level
        with few rows per rank, too; all others reject true models then.

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
    UserWarning
        If the rows per rank are too few for the method.

    See Also
    --------
    scale_test : Test whether each term changes the spread of the latent variable.
    lr_test : Compare two nested models of the same rows by a likelihood ratio test.

    References
    ----------
    R. Brant, "Assessing proportionality in the proportional odds model for ordinal
    logistic regression", Biometrics 46:1171-1178, 1990.
    B. Peterson, F. E. Harrell, "Partial proportional odds models for ordinal response
    variables", Applied Statistics 39:205-217, 1990, for the score test.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0, 1], [0, 2], [1, 3], [0, 4], [1, 5], [1, 6], [0, 7], [1, 8]]
    >>> model = ordinal.fit_pom(X, [1, 1, 2, 1, 3, 2, 3, 3])
    >>> ordinal.inference.proportional_odds_test(model, method="expected")
    name     chi2 dof  p_value
    all   2.36215   2 0.306949
    x1    2.16873   1 0.140843
    x2   0.103909   1 0.747188
    """
    model = fitted_model(model, "proportional_odds_test", _NOMINAL)
    check_choice("method", method, ("brant", "lr", "score", "expected"))
    check_likelihood(model, "proportional_odds_test")
    if (r := int(model.predictor.observed.sum())) > _MOST:
        raise ValueError(
            f"proportional_odds_test fits slopes at each threshold, which {r} ranks "
            f"have too few rows for: it takes {_MOST} ranks at most; fit ranks that "
            "are groups of these (ordinal.preprocessing.Binning)"
        )
    if model.predictor.observed.sum() < 3:
        raise ValueError(
            "proportional_odds_test needs 3 ranks or more, got 2: there is one "
            "threshold, and nothing to compare"
        )
    if not model.coef.size:
        raise ValueError(
            "proportional_odds_test needs features with one slope for all "
            "thresholds, and this model has none"
        )
    fit = remembered(model, "proportional_odds_test")
    features = model.predictor.features
    groups = [model.predictor.location, *features.values()]
    if method == "brant":
        fitted_model(model, "Brant's test", _BINARY)
        if model.link != "logit" or model.predictor.scale.size:
            raise ValueError(
                "Brant's test is defined for the logit link without scale "
                'effects: pass method="lr"'
            )
        between = names_between(model.classes[model.predictor.observed])
        chi2, dof = brant_test(fit, groups, between)
    elif method == "lr":
        chi2, dof = ratio_tests(fit, groups)
    else:
        P = _probabilities(model, fit) if method == "expected" else None
        chi2, dof = score_tests(fit, groups, P)
    if method != "expected":
        _warn_of_few_rows(fit.loss.design, dof[0])
    return tests_table(["all", *features], chi2, dof)


@on_one_thread
def scale_test(model: Any) -> Table:
    """Test whether each term changes the spread of the latent variable.

    These are likelihood ratio tests against the models in which the term also has
    scale effects. `proportional_odds_test(method="lr")` is the corresponding test
    of nominal effects.

    Parameters
    ----------
    model : PomModel, RatioModel or ClmmModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.

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

    See Also
    --------
    proportional_odds_test : Test the proportional odds assumption, for all features and
        for each.
    lr_test : Compare two nested models of the same rows by a likelihood ratio test.

    Examples
    --------
    >>> import ordinal
    >>> X, y = ordinal.datasets.make_gaussians(rng=0)
    >>> ordinal.inference.scale_test(ordinal.fit_pom(X, y))["dof"]
    array([1, 1])
    """
    model = fitted_model(model, "scale_test", _SCALE)
    covariance_for(model, "scale_test")
    fit = remembered(model, "scale_test")
    D, least = fit.loss.design, fit.loss.at(fit.x).value
    *others, own = D.split(fit.x)
    names, chi2, dof = [], [], []
    for name, columns in model.predictor.features.items():
        scale = np.union1d(D.scale, columns)
        if scale.size == D.scale.size:
            continue
        zeta = np.zeros(scale.size)
        zeta[np.isin(scale, D.scale)] = own
        x = np.concatenate([*(part.ravel() for part in others), zeta])
        end = refit(fit.loss_of(replace(D, scale=scale)), x, "scale_test")
        warn_unless_optimal(end, "scale_test", f"the fit with scale={listed([name])}")
        names.append(name)
        chi2.append(max(0.0, 2 * D.total * (least - end.point.value)))
        dof.append(scale.size - D.scale.size)
    return tests_table(names, chi2, dof)


_ASKED = "proportional_odds_test"
_FLAT = 1e-10  # eigenvalue of a matrix of unit diagonal that counts as 0


def brant_test(
    fit: FitMemory, groups: list[np.ndarray], threshold_names: tuple[str, ...]
) -> tuple[list[float], list[int]]:
    """Return the statistics of Brant's test and their degrees of freedom.

    There is one test for each group of columns of the location. O(n T^2 d^2).
    """
    D = fit.loss.design
    why = "because it fits a binary outcome per threshold"
    check_known_ranks((D.first, D.rank), "Brant's test", why, 'pass method="lr"')
    columns = np.union1d(D.location, D.nominal)
    X = np.column_stack([np.ones(D.n_samples), D.columns(slice(None), columns)])
    b, above = _binary_fits(D, columns, X, threshold_names, fit.loss.n_threads)
    T, p = b.shape
    bread = [
        np.linalg.inv(_product(X, D.weight * above[j] * (1 - above[j])))
        for j in range(T)
    ]
    # (1) for all pairs of thresholds
    V = np.empty((T, p, T, p))
    for j in range(T):
        for m in range(j, T):
            meat = _product(X, D.weight * (above[m] - above[j] * above[m]))
            V[j, :, m] = bread[j] @ meat @ bread[m]
            V[m, :, j] = V[j, :, m].T
    tested = [1 + np.searchsorted(columns, group) for group in groups]  # after 1
    return (
        [_wald(b[:, k], V[:, k][:, :, :, k]) for k in tested],
        [(T - 1) * k.size for k in tested],
    )


def _binary_fits(
    D: Design,
    columns: np.ndarray,
    X: np.ndarray,
    threshold_names: tuple[str, ...],
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit the logistic regressions of y > j on X for all thresholds j.

    Returns their coefficients, (T, p), and the probabilities P(y > j), (T, n).
    """
    none = np.zeros(0, np.int64)
    b, above = np.empty((D.T, X.shape[1])), np.empty((D.T, D.n_samples))
    for j in range(D.T):
        known = D.offset[:, j] if D.is_shifted and D.offset is not None else D.offset
        binary = replace(
            D,
            offset=known,
            location=columns,
            nominal=none,
            scale=none,
            J=Structure(1, 1),
            rank=(D.rank > j).astype(np.int32),
        )
        loss = likelihood_of(binary, "logit", 0.0, n_threads)
        found = refit(loss, loss.start(), _ASKED)
        x = found.point.x
        if separated_columns(binary, "logit", x, found.step, False).size:
            raise ValueError(
                "Brant's test needs a finite fit at each threshold, but features "
                f'separate the ranks at {threshold_names[j]}; pass method="lr"'
            )
        warn_unless_optimal(found, _ASKED, f"the fit at threshold {threshold_names[j]}")
        # P(y > j) = F(x'beta - theta_j): the intercept is minus the threshold.
        b[j] = np.concatenate([-x[:1], x[1:]])
        above[j] = cumulative("logit", X @ b[j] + (0 if known is None else known))
    return b, above


def _wald(b: np.ndarray, V: np.ndarray) -> float:
    """Return the Wald statistic of b_0 = b_1 = ..., given b, (T, k), and its covariance
    V, (T, k, T, k).
    """
    contrast = (b[0] - b[1:]).ravel()
    over_first = V[:1] - V[1:]  # cov(b_0 - b_j, b_m)
    covariance = over_first[:, :, :1] - over_first[:, :, 1:]
    covariance = covariance.reshape(contrast.size, contrast.size)
    try:
        L = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise ValueError(
            "Brant's test needs a positive definite covariance of the differences "
            "between the slopes, and with so few rows its estimate is not: take "
            'method="lr"'
        ) from None
    z = np.linalg.solve(L, contrast)
    return float(z @ z)


def _product(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return X' diag(weight) X."""
    return np.asarray((weight[:, None] * X).T @ X)


def ratio_tests(
    fit: FitMemory, groups: list[np.ndarray]
) -> tuple[list[float], list[int]]:
    """Return the likelihood ratio statistics and their degrees of freedom.

    Each compares the fit with one in which a group of columns of the location has
    nominal effects instead.
    """
    D, least = fit.loss.design, fit.loss.at(fit.x).value
    chi2, dof = [], []
    for freed in groups:
        larger, start = _freed(D, fit.x, freed)
        found = refit(fit.loss_of(larger), start, _ASKED)
        which = f"the fit with {freed.size} more nominal effects"
        warn_unless_optimal(found, _ASKED, which)
        chi2.append(max(0.0, 2 * D.total * (least - found.point.value)))
        dof.append(start.size - fit.x.size)
    return chi2, dof


def score_tests(
    fit: FitMemory, groups: list[np.ndarray], P: np.ndarray | None = None
) -> tuple[list[float], list[int]]:
    """Return the score statistics and their degrees of freedom.

    They are U'H^-1 U with U the gradient and -H the Hessian of the log-likelihood of
    the larger model at the fit, or its expectation by the probabilities P, (n, T + 1).
    A threshold that no row of a level touches has zeros in the gradient and the
    Hessian, so that a generalised inverse serves.
    """
    D = fit.loss.design
    chi2, dof = [], []
    for freed in groups:
        larger, x = _freed(D, fit.x, freed)
        check_memory(_ASKED, 24 * x.size**2, f"{D.T} thresholds")
        point = fit.loss_of(larger).at(x)
        U = D.total * point.gradient
        if P is None:
            H = D.total * point.hessian.dense()
        else:
            H = _expected_information(fit, larger, x, P)
        unit = np.sqrt(np.abs(np.diagonal(H)))
        unit[unit == 0] = 1.0
        w, V = np.linalg.eigh(H / np.outer(unit, unit))
        if w[0] < -_FLAT:
            raise ValueError(
                "the score test needs a concave log-likelihood, and that with more "
                'nominal effects is not concave here: take method="expected"'
            )
        z = V.T @ (U / unit)
        chi2.append(float((z[w > _FLAT] ** 2 / w[w > _FLAT]).sum()))
        dof.append(x.size - fit.x.size)
    return chi2, dof


def _probabilities(model: Any, fit: FitMemory) -> np.ndarray:
    """Return the probabilities of the ranks of the training rows, (n, T + 1)."""
    D = fit.loss.design
    why = "because it averages over the ranks that a row may have"
    check_known_ranks((D.first, D.rank), 'method="expected"', why, 'pass method="lr"')
    return probabilities_of(model, rows_to_average(model, _ASKED, None, None, None))


def _expected_information(
    fit: FitMemory, design: Design, x: np.ndarray, P: np.ndarray
) -> np.ndarray:
    """Return the expectation of minus the Hessian of the log-likelihood, (p, p).

    That is the Hessian of rows that have every rank, weighted by its probability.
    """
    H, r = np.zeros((x.size, x.size)), P.shape[1]
    rank, offset = np.arange(r, dtype=np.int32), design.offset
    for rows in strips(len(P), max(1, _BLOCK // (r * (r + design.centre.size)))):
        weight = (design.weight[rows, None] * P[rows]).ravel()
        each = np.repeat(np.arange(rows.start, rows.stop), r)
        made = replace(
            design,
            X=take(design.X, each),
            offset=None if offset is None else offset[each],
            rank=np.tile(rank, rows.stop - rows.start),
            lower=None,
            weight=weight,
            total=float(weight.sum()),
        )
        if made.total > 0:
            H += made.total * fit.loss_of(made).at(x).hessian.dense()
    return H


def _warn_of_few_rows(D: Design, dof: int) -> None:
    """Warn if the distribution of a statistic is far from chi-square."""
    rows, least = D.total / (D.T + 1), _ROWS_PER_RANK * np.sqrt(dof)
    if rows < least:
        warn(
            f"{_ASKED} with {rows:.3g} rows per rank and {dof} degrees of freedom "
            f"has p-values that are too small; it needs {least:.3g} rows per rank: "
            'take method="expected", or fit ranks that are groups of these',
            UserWarning,
            _ASKED,
        )


@on_one_thread
def goodness_of_fit(
    model: Any,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    *,
    by: Sequence[str] | None = None,
    offset: ArrayLike | None = None,
) -> Table:
    """Test the goodness of fit of grouped data by the deviance and Pearson's statistic.

    Rows with equal features form a group, in which the model is compared with the
    observed shares of the ranks (the saturated model), as the option AGGREGATE of SAS
    does. The chi-square approximation needs several rows per group: with numeric
    features, take `hosmer_lemeshow`.

    Parameters
    ----------
    model : PomModel or RatioModel
        Fitted model, or a model of preprocessed columns, an estimator or the result of
        a search that holds one.
    X, y : optional
        As for `residuals`. Default: the training rows, with their weights as
        frequencies.
    by : sequence of str, optional
        Features that define the groups. Default: all, and the offset.
    offset : (n,) array-like, default 0
        Offset of the rows of `X`.

    Returns
    -------
    Table
        A dict of arrays with the entries "deviance" and "pearson": "name", "chi2",
        "dof", which is G (r - 1) less the number of parameters for G groups and r
        ranks, and "p_value".

    Raises
    ------
    ValueError, TypeError
        As for `residuals`; also if the fit is penalised, if a name in `by` is no
        feature, or if there are no more groups than parameters.

    See Also
    --------
    hosmer_lemeshow : Test the goodness of fit by the method of Fagerland and Hosmer.
    proportional_odds_test : Test the proportional odds assumption, for all features and
        for each.

    References
    ----------
    P. McCullagh, J. A. Nelder, "Generalized linear models", Chapman and Hall, 1989.

    Examples
    --------
    >>> import ordinal
    >>> X = [[0], [0], [0], [1], [1], [1], [2], [2], [2]]
    >>> weight = [8, 6, 1, 5, 5, 5, 1, 6, 8]
    >>> model = ordinal.fit_pom(X, [1, 2, 3] * 3, sample_weight=weight)
    >>> ordinal.inference.goodness_of_fit(model)
    name        chi2 dof  p_value
    deviance 1.60327   3 0.658649
    pearson   1.5367   3 0.673827
    """
    model, X = fitted_rows(model, X, "goodness_of_fit", WITHOUT_RANDOM)
    check_likelihood(model, "goodness_of_fit")
    rows = read_rows(model, "goodness_of_fit", X, y, offset)
    check_known_ranks((rows.first, rows.rank), "goodness_of_fit")
    n, r = rows.rank.size, int(model.predictor.observed.sum())
    check_size("goodness_of_fit", n * r, f"counts of {r} ranks, of {n} rows in all")
    P, source = probabilities_of(model, rows.source), rows.source
    if isinstance(source, TableRows):
        read = [source.frame.shown_names[j] for j in source.coding.columns_read]
    else:
        read = [source.names[j] for j in source.used.tolist()]
    columns = [feature_values(rows, name)[0] for name in (read if by is None else by)]
    if by is None:
        columns += list(np.atleast_2d(source.offset.T))
    # NaN, a missing value, is unequal to itself.
    key = np.nan_to_num(np.column_stack([np.zeros(len(P)), *columns]), nan=np.inf)
    group = np.unique(key, axis=0, return_inverse=True)[1].ravel()
    G = int(group.max()) + 1
    dof = G * (r - 1) - model.parameters.size
    if dof < 1:
        raise ValueError(
            f"goodness_of_fit needs more groups of rows: {G} groups with {r} ranks and "
            f"{model.parameters.size} parameters leave {dof} degrees of freedom"
        )
    cells = np.bincount(group * r + rows.rank, rows.weight, minlength=G * r)
    observed = cells.reshape(G, r)
    total = observed.sum(axis=1, keepdims=True)
    mass = [np.bincount(group, rows.weight * p, minlength=G) for p in P.T]
    # Rounding must not make expected counts differ in sum from the observed ones.
    expected = np.column_stack(mass)
    expected *= total / expected.sum(axis=1, keepdims=True)
    seen = observed > 0
    ratio = observed[seen] / expected[seen]
    deviance = 2 * float((observed[seen] * np.log(ratio)).sum())
    pearson = float(
        ((observed - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()
    )
    return tests_table(["deviance", "pearson"], [deviance, pearson], [dof, dof])


def _freed(D: Design, x: np.ndarray, freed: np.ndarray) -> tuple[Design, np.ndarray]:
    """Move columns of a design from the location to the nominal effects.

    Returns the new design, and the parameters for which it has the predictors of x.
    """
    alpha, nu, beta, zeta = D.split(x)
    nominal = np.union1d(D.nominal, freed)
    kept = ~np.isin(D.location, freed)
    slopes = np.zeros((alpha.size, nominal.size))
    slopes[:, np.searchsorted(nominal, D.nominal)] = nu
    # The same slope at all thresholds gives the same predictors.
    slopes[:, np.searchsorted(nominal, freed)] = np.outer(D.unit_shift(), beta[~kept])
    larger = replace(D, location=D.location[kept], nominal=nominal)
    return larger, np.concatenate([alpha, slopes.ravel(), beta[kept], zeta])
