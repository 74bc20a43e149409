"""Tests of the proportional odds assumption: equal slopes at all thresholds.

Brant's test: at every threshold j the logistic regression of y > j gives slopes b_j.
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

from dataclasses import replace

import numpy as np

from .._cumulative.design import Design
from .._cumulative.fitting import likelihood_of
from .._cumulative.likelihood import cumulative
from .._cumulative.separation import separated_columns
from .estimates import FitMemory, refit, refit_design, warn_unless_optimal

_ASKED = "proportional_odds_test"


def brant_test(
    fit: FitMemory, groups: list[np.ndarray], threshold_names: tuple[str, ...]
) -> tuple[list[float], list[int]]:
    """Return the statistics of Brant's test and their degrees of freedom.

    There is one test for each group of columns of the location. O(n T^2 d^2).
    """
    D = fit.loss.design
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
            middle = _product(X, D.weight * (above[m] - above[j] * above[m]))
            V[j, :, m] = bread[j] @ middle @ bread[m]
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
            J=np.eye(1),
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
        found = refit_design(fit, larger, start, _ASKED)
        which = f"the fit with {freed.size} more nominal effects"
        warn_unless_optimal(found, _ASKED, which)
        chi2.append(max(0.0, 2 * D.total * (least - found.point.value)))
        dof.append(start.size - fit.x.size)
    return chi2, dof


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
