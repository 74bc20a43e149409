"""Linear models are stated in columns and terms of the table, through whichever door.

Effects are differences of the model's own probabilities for raw rows, and odds ratios
are differences of logits of its cumulative probabilities.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import ordinal
from ordinal import inference, select
from ordinal.preprocessing import PreprocessedModel, Standardizer, TablePreprocessor

N = 240


def rows(seed=0, missing=False):
    """Ages, a boolean, a category and an ordered one; some of them are missing."""
    rng = np.random.default_rng(seed)
    d = pd.DataFrame({
        "age": rng.uniform(20, 70, N),
        "ill": rng.random(N) < 0.4,
        "g": rng.choice(["a", "b", "c"], N),
        "size": pd.Categorical(
            rng.choice(["S", "M", "L"], N), ["S", "M", "L"], True
        ),
    })  # fmt: skip
    eta = 0.05 * d["age"] + 0.9 * d["ill"] + 0.5 * (d["g"] == "b")
    y = np.digitize(eta + rng.logistic(size=N), [2.0, 3.5])
    if missing:
        d.loc[rng.random(N) < 0.2, "age"] = np.nan
        d.loc[rng.random(N) < 0.2, "g"] = None
    return d, y


D, Y = rows()
GAPS = rows(missing=True)[0]
HOW = TablePreprocessor()
FITS = {
    "pom": ordinal.fit_pom, "probit": partial(ordinal.fit_pom, link="probit"),
    "l2": partial(ordinal.fit_pom, l2=0.1), "l1": partial(ordinal.fit_pom, l1=0.01),
    "nominal": partial(ordinal.fit_pom, nominal=["g"]),
    "scale": partial(ordinal.fit_pom, scale=["ill"]), "ratio": ordinal.fit_ratio,
    "ratio l2": partial(ordinal.fit_ratio, l2=0.1), "lat": ordinal.companions.fit_lat,
    "lit": ordinal.companions.fit_lit,
}  # fmt: skip


def test_odds_ratios_and_effects_are_per_unit_of_the_table():
    model, plain = ordinal.fit_pom(D, Y, preprocess=HOW), ordinal.fit_pom(D, Y)
    assert type(model) is type(plain)
    # The plain door has contrasts for ordered categories, not their numbers.
    own = ["age", "ill", "g"]
    model = ordinal.fit_pom(D[own], Y, preprocess=HOW)
    plain = ordinal.fit_pom(D[own], Y)
    for name in ("odds_ratios", "marginal_effects", "tidy", "glance", "drop1",
                 "predictions", "proportional_odds_test", "confint"):  # fmt: skip
        ours, theirs = (getattr(inference, name)(m) for m in (model, plain))
        assert list(ours) == list(theirs)
        for column, values in theirs.items():
            if values.dtype.kind == "f":
                assert_allclose(ours[column], values, rtol=1e-6, atol=1e-9)
            else:
                assert ours[column].tolist() == values.tolist()
    ours, theirs = (inference.contrasts(m, "g")["z"] for m in (model, plain))
    assert_allclose(ours, theirs, rtol=1e-6)
    assert str(model.summary()) == str(plain.summary())


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("d", [D, GAPS], ids=["whole", "gaps"])
def test_predictions_are_those_of_a_fit_to_scaled_columns(name, d):
    fit = partial(FITS[name], tol=1e-9)
    names = [*D.columns]
    model = fit(d, Y, preprocess=HOW)
    assert model.feature_names == tuple(names)
    first = name not in ("lat", "lit")  # which have a column per category
    coding = TablePreprocessor(drop_first=first).fit(d)
    Z = pd.DataFrame(coding.transform(d), columns=coding.feature_names_out)
    assert getattr(model, "predictor", model).column_names == coding.feature_names_out
    g = [c for c in Z.columns if c.startswith("g")]
    scaled = fit(Z, Y, **({"nominal": g} if name == "nominal" else {}))
    if hasattr(model, "predictor"):
        assert_allclose(model.predict_proba(d), scaled.predict_proba(Z), atol=1e-6)
    scale = coding.standardizer.scale[
        model.predictor.location if first else slice(None)
    ]
    if name != "scale":  # centring multiplies the parameters beside those of the scale
        assert_allclose(model.coef * scale, scaled.coef, atol=1e-6)
        f, g = model.decision_function(d), scaled.decision_function(Z)
        assert_allclose(f - f[0], g - g[0], atol=1e-6)


def test_paths_are_those_of_scaled_columns():
    X = D[["age", "ill"]].astype(float)
    path = ordinal.fit_pom_path(X, Y, preprocess=Standardizer, n_lambdas=5)
    s = Standardizer.fit(X)
    scaled = ordinal.fit_pom_path(s.transform(X), Y, n_lambdas=5)
    assert_allclose(path.lambdas, scaled.lambdas, rtol=1e-9)
    for ours, theirs in zip(path.models, scaled.models, strict=True):
        assert_allclose(ours.coef * s.scale, theirs.coef, atol=1e-5)
        a, b = ours.statistics, theirs.statistics
        assert_allclose((a.l1, a.l2), (b.l1, b.l2))
    table = ordinal.fit_pom_path(GAPS, Y, preprocess=HOW, n_lambdas=3)
    assert table.models[0].predictor.column_names[:2] == ("age", "age is missing")


def test_every_door_leads_to_the_same_model(tmp_path):
    how = {"preprocess": HOW}
    first = ordinal.fit_pom(GAPS, Y, **how, l2=0.01)
    first.save(tmp_path / "m.npz")
    methods = {"p": partial(ordinal.fit_pom, l2=0.01)}
    every = {
        "file": ordinal.load(tmp_path / "m.npz"),
        "search": select("pom", GAPS, Y, search={"l2": [0.01]}, cv=2, **how).model,
        "default": select("pom", GAPS, Y, search={"l2": [0.01]}, cv=2).model,
        "class method": PreprocessedModel.fit(ordinal.fit_pom, GAPS, Y, l2=0.01),
        "comparison": ordinal.compare(GAPS, Y, methods=methods, cv=2).best,
    }
    for name, model in every.items():
        assert type(model) is ordinal.models.PomModel, name
        assert model.coef_names == first.coef_names, name
        assert_allclose(model.coef, first.coef, rtol=1e-5, err_msg=name)
        assert model.feature_names == ("age", "ill", "g", "size")
        assert_allclose(model.predict_proba(GAPS), first.predict_proba(GAPS), atol=1e-6)
        assert {*model.explain(GAPS).names} == {"age", "ill", "g", "size"}


def test_references_and_terms_have_the_names_of_the_table():
    model = ordinal.fit_pom(GAPS, Y, preprocess=HOW, reference={"g": "c"})
    assert "g[a]" in model.coef_names
    assert "g[c]" not in model.coef_names
    found = inference.drop1(model)
    assert found["name"].tolist() == ["none", "age", "ill", "g", "size"]
    assert found["dof"].tolist()[1:4] == [2, 1, 3]  # with the marks of gaps
    with pytest.raises(ValueError, match="names 'age', which is not a categorical"):
        ordinal.fit_pom(GAPS, Y, preprocess=HOW, reference={"age": "c"})
    age = inference.augment(model)["age"].astype(float)
    assert len(age) == N
    assert np.isnan(age).sum() == GAPS["age"].isna().sum()
    found = select(
        partial(ordinal.fit_pom, nominal=["g"]), GAPS, Y,
        search={"l2": [0.01, 0.1]}, cv=2,
    )  # fmt: skip
    assert not found.failures
    # two categories and the mark of gaps
    assert found.model.predictor.nominal.size == 3


def test_a_linear_model_of_other_columns_says_so():
    """Nothing beside the model within is about columns that the table does not have."""
    coding = TablePreprocessor(drop_first=True).fit(D)
    Z = pd.DataFrame(coding.transform(D), columns=coding.feature_names_out)
    model = PreprocessedModel(coding, ordinal.fit_pom(Z, Y))
    assert "PomModel of the transformed columns" in repr(model)
    for name in ("coef", "odds_ratios", "marginal_effects", "drop1", "tidy"):
        assert not hasattr(model, name)
    assert_allclose(model.predict_proba(D), model.model.predict_proba(Z))
