"""Tables of a cumulative model: tidy, glance and augment, and the summary."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pom_data import SETS
from strategies import raises

import ordinal
from ordinal import inference

WINE, MADE = SETS["wine"], SETS["made"]
TABLE = pd.DataFrame({
    "temp": np.where(WINE.X[:, 0] > 0, "warm", "cold"),
    "contact": np.where(WINE.X[:, 1] > 0, "yes", "no"),
    "size": np.arange(72) % 7,
})  # fmt: skip
RATING = pd.Categorical.from_codes(WINE.y, list("abcde"), ordered=True)


@pytest.fixture(scope="module")
def model():
    return ordinal.fit_pom(TABLE, RATING)


@pytest.mark.parametrize("method", ["wald", "profile"])
def test_tidy_is_the_table_with_its_intervals(model, method):
    tidy = inference.tidy(model, 0.9, method=method).to_pandas()
    table = model.table().to_pandas()
    assert tidy[list(table)].equals(table)
    ends = model.confint(0.9, method=method).to_pandas().set_index("name")
    for side in ("lower", "upper"):
        assert_allclose(tidy[side], ends[side].reindex(tidy["name"]).to_numpy())
    assert tidy["lower"].notna().sum() == len(ends)
    with pytest.raises(AttributeError, match=r"to_latex'; to_pandas\(\) has"):
        model.table().to_latex()


def test_exponentiated_estimates_are_odds_ratios(model):
    tidy = inference.tidy(model, exponentiate=True).to_pandas().set_index("name")
    odds = inference.odds_ratios(model).to_pandas().set_index("name")
    own = tidy.loc[odds.index]
    assert_allclose(own["estimate"], odds["odds_ratio"])
    assert_allclose(own[["lower", "upper"]], odds[["lower", "upper"]])
    assert_allclose(tidy["standard_error"], model.standard_errors)


def test_glance_has_the_figures_of_clm():
    # tests/reference/pom_inference.R
    model = ordinal.fit_pom(WINE.X, WINE.y)
    glance = inference.glance(model).to_pandas()
    assert len(glance) == 1
    assert glance["aic"][0] == pytest.approx(2 * 6 + 2 * 86.49192, abs=1e-4)
    for name in ("loglik", "aic", "bic"):
        assert glance[name][0] == getattr(model, name)
    assert glance["null_loglik"][0] == model.statistics.null_loglik
    assert glance["deviance"][0] == -2 * model.loglik
    assert (glance["parameters"][0], glance["n_obs"][0]) == (6, 72)
    with pytest.raises(ValueError, match="dof needs estimates"):
        inference.glance(ordinal.fit_pom(WINE.X, WINE.y, l2=1.0))


def test_augment_has_the_rows_with_what_the_model_says_of_them(model, monkeypatch):
    rows = inference.augment(model).to_pandas()
    assert rows[["temp", "contact", "size"]].astype(str).equals(TABLE.astype(str))
    assert_array_equal(rows[".rank"], np.asarray(RATING))
    assert_array_equal(rows[".fitted"], np.asarray(model.predict(TABLE)))
    assert_allclose(rows[".score"], model.decision_function(TABLE))
    P = rows[[f".p[{label}]" for label in "abcde"]]
    assert_allclose(P, model.predict_proba(TABLE), atol=1e-14)
    assert_allclose(rows[".residual"], model.residuals())
    assert_allclose(rows[".leverage"].sum(), model.dof)
    other = inference.augment(model, TABLE[:5], RATING[:5]).to_pandas()
    assert other.equals(rows[list(other)][:5])
    assert ".leverage" not in other
    X = MADE.X.copy()
    X[3, 0] = np.nan
    model = ordinal.fit_pom(
        X, MADE.y, missing="drop", sample_weight=MADE.weight, offset=MADE.offset
    )
    rows = inference.augment(model).to_pandas()
    keep = np.arange(120) != 3
    assert len(rows) == 119
    assert_allclose(rows[["x1", "x2", "x3"]], MADE.X[keep])
    assert_allclose(rows[".weight"], MADE.weight[keep])
    assert_allclose(rows[".score"], MADE.X[keep] @ model.coef + MADE.offset[keep])
    assert ".leverage" not in inference.augment(ordinal.fit_pom(MADE.X, MADE.y, l2=0.1))
    # More changes of estimates than are computed do not keep it from leverages.
    monkeypatch.setattr("ordinal.inference.diagnostics._MOST", 119 * 4)
    assert_array_equal(inference.augment(model)[".leverage"], rows[".leverage"])
    raises(ValueError, "from augment", inference.influence, model)


def test_the_summary_says_what_was_left_out_and_why():
    X = np.column_stack([MADE.X, MADE.X[:, 0] + MADE.X[:, 1], np.ones(120)])
    X[3, 0] = np.nan
    y, drop = np.where(np.arange(120) == 9, np.nan, MADE.y), {"missing_labels": "drop"}
    with pytest.warns(ordinal.exceptions.CollinearColumnsWarning):
        model = ordinal.fit_pom(X, y, missing="drop", classes=[0, 1, 2, 3, 9], **drop)
    lines, left = model.summary().splitlines(), "1 row without a label and 1 row with"
    assert f"Left out: {left} missing values" in lines
    assert f"{left} missing values" in repr(model)
    assert "Left out, as other columns determine them: 'x4', 'x5'" in lines
    assert "Without training rows, and never predicted: ranks [9]" in lines
