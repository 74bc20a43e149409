"""Comparison with R's clm, polr and vglm, over links, thresholds, nominal and scale
effects.

First the figures themselves: they maximise the likelihood as `oracles` writes it, so
that conventions agree. Then the models of `fit_pom`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import cumulative_loglik
from pom_data import REFERENCE, SETS

import ordinal


def named(record):
    effects = [f"{key}={','.join(record[key])}" for key in ("nominal", "scale")]
    return "-".join([record["set"], record["link"], record["threshold"], *effects])


records = pytest.mark.parametrize(
    "record",
    [
        pytest.param(record, marks=pytest.mark.slow if i % 5 else ())
        for i, record in enumerate(REFERENCE)
    ],
    ids=named,
)


def loglik_of(record):
    """The log likelihood by the oracle, a function of R's parameters."""
    rows = SETS[record["set"]]
    nominal, scale = rows.columns(record["nominal"]), rows.columns(record["scale"])
    location = np.setdiff1d(np.arange(rows.X.shape[1]), nominal)
    structure = (
        rows.y.max(),
        record["threshold"],
        rows.X[:, location],
        rows.X[:, nominal],
        rows.X[:, scale],
        rows.offset,
    )

    def loglik(x):
        return cumulative_loglik(x, rows.y, rows.weight, record["link"], *structure)

    return loglik


def differences(function, x, step):
    """The Hessian by central differences; its error is of the order of step^2."""
    E = np.diag(step)

    def entry(i, j):
        ends = [(s, t) for s in (-1, 1) for t in (-1, 1)]
        total = sum(s * t * function(x + s * E[i] + t * E[j]) for s, t in ends)
        return total / (4 * step[i] * step[j])

    lower = [
        [entry(i, j) if j <= i else 0.0 for j in range(len(x))] for i in range(len(x))
    ]
    return np.tril(lower) + np.tril(lower, -1).T


@pytest.mark.slow
@records
def test_figures_of_R_maximise_the_oracle(record):
    loglik = loglik_of(record)
    x, error = np.array(record["estimate"]), np.array(record["error"])
    assert_allclose(loglik(x), record["loglik"], rtol=1e-11)
    slope = [(loglik(x + e) - loglik(x - e)) / 2e-3 for e in np.diag(1e-3 * error)]
    assert np.abs(slope).max() < 1e-4  # so many errors from the maximum, or fewer
    fine, coarse = (differences(loglik, x, h * error) for h in (0.01, 0.02))
    H = (4 * fine - coarse) / 3
    assert_allclose(np.sqrt(np.diag(np.linalg.inv(-H))), error, rtol=1e-4)


@records
def test_fit_pom_is_what_R_fits(record):
    rows = SETS[record["set"]]
    model = ordinal.fit_pom(
        rows.X,
        rows.y,
        link=record["link"],
        threshold=record["threshold"],
        nominal=rows.columns(record["nominal"]),
        scale=rows.columns(record["scale"]),
        sample_weight=rows.weight,
        offset=rows.offset,
        tol=1e-8,
    )
    assert model.convergence.converged
    assert_allclose(model.loglik, record["loglik"], rtol=1e-11)
    error = np.sqrt(np.diag(model.covariance))
    assert_allclose(error, record["error"], rtol=1e-4)
    slopes = model.nominal_coef.ravel(), model.coef, model.scale_coef
    found = np.concatenate([model.alpha, *slopes])
    assert_allclose(found, record["estimate"], rtol=1e-6, atol=1e-6 * error.min())


def test_the_grid_is_whole():
    grid = {
        (r["set"], r["link"], r["threshold"], bool(r["nominal"]), bool(r["scale"]))
        for r in REFERENCE
    }
    assert len(grid) == len(REFERENCE) == 140
    assert sum("polr" in r["with"] for r in REFERENCE) == 12
    assert sum("vglm" in r["with"] for r in REFERENCE) == 24
