"""Models of `fit_pom` beside those of R's clm, polr and vglm, over links, thresholds,
nominal and scale effects."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pom_data import REFERENCE, SETS

import ordinal


def named(record):
    effects = [f"{key}={','.join(record[key])}" for key in ("nominal", "scale")]
    return "-".join([record["set"], record["link"], record["threshold"], *effects])


SLOW = pytest.mark.slow("eight of nine records")
RECORDS = [
    pytest.param(record, marks=SLOW if i % 9 else (), id=named(record))
    for i, record in enumerate(REFERENCE)
]


@pytest.mark.parametrize("record", RECORDS)
def test_fit_pom_is_what_R_fits(record):
    rows = SETS[record["set"]]
    options = {name: record[name] for name in ("link", "threshold")}
    options |= {name: rows.columns(record[name]) for name in ("nominal", "scale")}
    options |= {"sample_weight": rows.weight, "offset": rows.offset, "tol": 1e-8}
    model = ordinal.fit_pom(rows.X, rows.y, **options)
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
