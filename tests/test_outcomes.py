"""Means, quantiles and probabilities of the outcome: by rows, averages, cells."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import structure_of
from numpy.testing import assert_allclose, assert_array_equal
from oracles import slopes
from pom_data import housing as cells
from pom_data import housing_table
from strategies import raises
from test_pom_averages import errors, moved

import ordinal
from ordinal import fit_pom
from ordinal.inference import contrasts, marginal_effects, predictions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.digitize(X[:, 0] + RNG.logistic(size=150), [-1, 0, 1])
# labels of unequal distances, and ranks without rows on both sides and between
LABELS = np.array([1.0, 2.0, 4.0, 10.0])
CLASSES = [0.5, 1.0, 2.0, 3.0, 4.0, 10.0, 11.0]
Q = 0.2, 0.5, 0.9
FITS = {
    "scale": lambda: fit_pom(
        X, LABELS[Y], classes=CLASSES, scale=[0, 2], nominal=[1], link="cloglog"
    ),
    "symmetric": lambda: fit_pom(X, LABELS[Y], threshold="symmetric"),
    "in order": lambda: fit_pom(X, LABELS[Y], nominal=[1], in_order=True),
    "stopping": lambda: ordinal.fit_ratio(X, LABELS[Y], nominal=[1], classes=CLASSES),
    "adjacent": lambda: ordinal.fit_ratio(X, LABELS[Y], family="adjacent"),
}


def housing():
    table = housing_table()
    levels = np.array(["Low", "Medium", "High"])
    made = cells()
    sat = type(table["Infl"])(levels[made.y], dtype="category").cat.set_categories(
        levels, ordered=True
    )
    return table.assign(Sat=sat, Freq=made.weight)


def labels_of(model):
    return np.array(model.classes, float)[model.predictor.observed]


def quantile(model, P, q):
    """Quantiles of one row or many, by `np.interp` of the distribution function."""
    F = np.cumsum(P[..., model.predictor.observed], axis=-1)
    every = np.broadcast_to(q, (len(np.atleast_2d(F)), len(Q)))
    rows = zip(every, np.atleast_2d(F), strict=True)
    return np.array([np.interp(p, row, labels_of(model)) for p, row in rows])


def errors_of_quantiles(model, P_of):
    """Errors of the quantiles of rows, (n, 3), by those of F at them."""
    P = np.atleast_2d(P_of(model))
    at = quantile(model, P, Q)

    def below(v):
        there = moved(model, v)
        F = np.cumsum(np.atleast_2d(P_of(there))[:, model.predictor.observed], axis=1)
        return np.array(
            [np.interp(a, labels_of(model), row) for a, row in zip(at, F, strict=True)]
        ).ravel()

    error = errors(model, slopes(below, model.parameters, 1e-5)).reshape(at.shape)
    q = np.array(Q)
    logit, far = np.log(q / (1 - q)), error / (q * (1 - q))
    ends = [quantile(model, P, 1 / (1 + np.exp(-(logit + s * far)))) for s in (-1, 1)]
    return ((ends[1] - ends[0]) / 2).ravel()


def slowly(model, kind, rows):
    """The values of rows, (n, k), by the public predictions."""
    P = model.predict_proba(rows)
    if kind == "mean":
        return P @ np.array(model.classes, float)[:, None]
    if kind == "quantile":
        return quantile(model, P, Q)
    if kind == "latent":
        J = structure_of(model.predictor.threshold, len(model.thresholds))
        f = model.decision_function(rows) - (J @ model.alpha).mean()
        nominal = rows[:, model.predictor.nominal] @ model.nominal_coef.T
        return (f + nominal.mean(axis=1))[:, None]
    below = np.cumsum(P, axis=1)[:, :-1]
    return {"probability": P, "cumulative": below, "exceedance": 1 - below}[kind]


@pytest.mark.parametrize(
    "kind", ["probability", "cumulative", "exceedance", "mean", "quantile", "latent"]
)
@pytest.mark.parametrize("name", FITS)
def test_rows_and_averages_have_errors_by_differences(name, kind):
    model = FITS[name]()
    rows = X[:6]
    if name == "scale":  # where thresholds cross in three rows
        rows = np.concatenate([rows[:3], 10 * X[[13, 19, 20]]])
    at = {"at": Q} if kind == "quantile" else {}
    found = model.predictions(rows, kind=kind, each=True, **at)
    own = slowly(model, kind, rows)
    assert_allclose(found["estimate"], own.ravel(), rtol=1e-9, atol=1e-12)
    assert_array_equal(found["row"], np.repeat(np.arange(6), own.shape[1]))
    x, weight = model.parameters, np.arange(6.0)
    G = slopes(lambda v: slowly(moved(model, v), kind, rows).ravel(), x, 1e-5)
    expected = errors(model, G)
    if kind == "quantile":
        expected = errors_of_quantiles(model, lambda m: m.predict_proba(rows))
    assert_allclose(found["standard_error"], expected, rtol=1e-5, atol=1e-9)
    assert (found["lower"] <= found["estimate"]).all()
    assert (found["estimate"] <= found["upper"]).all()

    def mean(model):
        P = weight @ model.predict_proba(rows) / weight.sum()
        if kind == "quantile":
            return quantile(model, P, Q).ravel()
        return weight @ slowly(model, kind, rows) / weight.sum()

    found = model.predictions(rows, kind=kind, sample_weight=weight, **at)
    assert_allclose(found["estimate"], mean(model), rtol=1e-9, atol=1e-12)
    expected = errors(model, slopes(lambda v: mean(moved(model, v)), x, 1e-5))
    if kind == "quantile":
        share = weight / weight.sum()
        expected = errors_of_quantiles(model, lambda m: share @ m.predict_proba(rows))
    assert_allclose(found["standard_error"], expected, rtol=1e-5, atol=1e-9)


GROUP = np.arange(150) % 15


@cache
def mixed(family):
    noise = np.random.default_rng(1).logistic(size=165)
    y = np.digitize(X[:, 0] + noise[:150] + noise[150:][GROUP], [-1, 0, 1])
    terms = {"groups": {"g": GROUP}, "slopes": {"g": [0]}}
    return ordinal.fit_clmm(X[:, :2], y, **terms, family=family, n_quadrature=1)


@pytest.mark.parametrize("family", ["cumulative", "stopping"])
@pytest.mark.parametrize("effects", ["new", "average", "known", "known_or_new"])
def test_each_row_of_a_mixed_model_is_the_average_of_this_row(family, effects):
    model = mixed(family)
    asked = {"g": GROUP[:4] + 14 * (effects == "known_or_new")}
    for kind in ("probability", "mean", "quantile", "latent"):
        given = [
            {"groups": {"g": asked["g"][i]}}
            for i in (slice(0, 4), *([k] for k in range(4)))
        ]
        if not effects.startswith("known"):
            given = [{}] * 5
        how = {"kind": kind, "effects": effects}
        all_rows = model.predictions(X[:4, :2], each=True, **how, **given[0])
        one = [
            model.predictions(X[k : k + 1, :2], **how, **given[k + 1]) for k in range(4)
        ]
        for column in ("estimate", "standard_error", "lower", "upper"):
            expected = np.concatenate([table[column] for table in one])
            assert_allclose(all_rows[column], expected, rtol=1e-8, atol=1e-12)


def test_means_of_a_rank_per_row_have_errors_without_a_matrix():
    """Products with the covariance serve, of which the test takes the matrix."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(2500, 2))
    model = fit_pom(Z, Z[:, 0] + rng.logistic(size=2500), classes="values")
    V, c = model.covariance, np.asarray(model.classes, float)
    rows = Z[:3]
    F = np.cumsum(model.predict_proba(rows), axis=1)[:, :-1]
    by_theta = -F * (1 - F) * np.diff(c)
    G = np.hstack([by_theta, -by_theta.sum(axis=1)[:, None] * rows])
    found = model.predictions(rows, kind="mean", each=True)
    assert_allclose(found["estimate"], c[-1] - F @ np.diff(c), rtol=1e-9)
    assert_allclose(
        found["standard_error"], np.sqrt(np.einsum("ij,jk,ik->i", G, V, G)), rtol=1e-6
    )
    mean = model.predictions(rows, kind="mean")
    assert_allclose(
        mean["standard_error"], np.sqrt(G.mean(axis=0) @ V @ G.mean(axis=0)), rtol=1e-6
    )


# R's emmeans 1.8.4.1 with ordinal 2022.11.16: tests/reference/outcomes.R
EMMEANS = {
    "exceedance": (
        [0.5425352579, 0.2748128466, 0.6687818414, 0.3935732312, 0.8022618402,
         0.5647788512],
        [0.01961673353, 0.01629309343, 0.01756404450, 0.01816065002, 0.01704717384,
         0.02440169242],
        [0.1262465834, 0.2597265823, 0.1334799988, 0.1187603846, 0.2899660045,
         0.1712056200],
        [0.02438445830, 0.02417586581, 0.02210095668, 0.02234678875, 0.02802816665,
         0.02893048074],
    ),
    "mean": (
        [1.817348105, 2.062355073, 2.367040691],
        [0.03419625114, 0.03389367998, 0.04029465185],
        [0.2450069680, 0.5496925868, 0.3046856188],
        [0.04655221190, 0.05142626613, 0.05070497565],
    ),
    "latent": (
        [-0.4167402289, 0.1400750001, 0.8652359493],
        [0.08021015515, 0.07674749348, 0.10396084770],
        [0.5568152290, 1.2819761782, 0.7251609492],
        [0.1072437283, 0.1281416205, 0.1246181158],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", EMMEANS)
def test_grids_and_contrasts_are_those_of_emmeans(kind):
    table = housing()
    model = fit_pom("Sat ~ Infl * Cont + Type", table, sample_weight="Freq", tol=1e-10)
    values = {"values": [1, 2, 3]} if kind == "mean" else {}
    found = predictions(model, kind=kind, by="Infl", grid=True, **values)
    estimate, error, pairs, errors_of_pairs = EMMEANS[kind]
    assert_allclose(found["estimate"], estimate, rtol=1e-6)
    assert_allclose(found["standard_error"], error, rtol=1e-6)
    between = contrasts(model, "Infl", kind=kind, X=table, **values)
    assert_array_equal(between["name"][:2], ["Medium - Low", "High - Low"])
    assert_allclose(between["estimate"], pairs, rtol=1e-6)
    assert_allclose(between["standard_error"], errors_of_pairs, rtol=1e-6)
    if kind == "exceedance":
        within = contrasts(model, "Infl", kind=kind, within="Cont", at="Low")
        assert_array_equal(within["within"], ["Low"] * 3 + ["High"] * 3)
        p = [5.307747270e-03, 1.301891928e-11, 1.097298541e-04, 2.082929221e-05,
             2.553512957e-14, 1.676473979e-05]  # fmt: skip
        assert_allclose(within["p_value"], p, rtol=1e-4, atol=1e-12)


def test_cells_are_averages_of_rows_with_these_values():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({
        "x": X[:, 0], "kind": np.array(["a", "b", "c"])[np.arange(150) % 3],
        "on": np.arange(150) % 2, "y": Y, "w": RNG.random(150), "known": X[:, 2] / 9,
    })  # fmt: skip
    model = fit_pom("y ~ x * kind + on + offset(known)", table, sample_weight="w")
    found = predictions(model, kind="mean", by={"kind": None, "x": [0, 1.5]})
    assert_array_equal(found["kind"], np.repeat(["a", "b", "c"], 2))
    for k, x, mean, error in zip(
        *(found[c] for c in ("kind", "x", "estimate", "standard_error")), strict=True
    ):
        one = predictions(
            model, table.assign(kind=k, x=x), kind="mean", sample_weight=table["w"]
        )
        assert_allclose([mean, error], [one["estimate"][0], one["standard_error"][0]])
    # an explicit grid, with equal weights
    share = table["w"] / table["w"].sum()
    grid = pd.DataFrame([
        {"kind": k, "on": on, "x": share @ table["x"], "known": share @ table["known"]}
        for on in (0, 1) for k in ("a", "b", "c")
    ])  # fmt: skip
    by = predictions(model, kind="mean", by="on", grid=True)
    for on in (0, 1):
        one = predictions(model, grid[grid["on"] == on], kind="mean")
        assert_allclose(by["estimate"][on], one["estimate"][0])
        assert_allclose(by["standard_error"][on], one["standard_error"][0])


def test_effects_on_other_scales_are_sums_of_those_on_probabilities():
    model = fit_pom(X, LABELS[Y], nominal=[1], scale=[0])
    by_rank = marginal_effects(model)["effect"].reshape(3, 4)
    mean = marginal_effects(model, kind="mean")
    assert_allclose(mean["effect"], by_rank @ LABELS)
    beyond = marginal_effects(model, kind="exceedance", at=2.0)
    assert_allclose(beyond["effect"], by_rank[:, 2:].sum(axis=1))

    def effect(v, step=1e-3):
        def value(t):
            return (moved(model, v).predict_proba(X + t) @ LABELS).mean(keepdims=True)

        return slopes(value, np.zeros(3), step)[0]

    x = model.parameters
    assert_allclose(mean["effect"], effect(x, 1e-5), rtol=1e-6)
    expected = errors(model, slopes(effect, x, 1e-3))
    assert_allclose(mean["standard_error"], expected, rtol=1e-4)


@pytest.mark.parametrize(("given", "message"), [
    ({"kind": "mode"}, "kind must be"),
    ({"kind": "quantile", "at": 50}, "at must hold probabilities between 0 and 1"),
    ({"kind": "mean", "at": 1}, "at is for probabilities and quantiles"),
    ({"kind": "cumulative", "at": 10.0},
     r"at must be among \[1.0, 2.0, 4.0\] or from 1.0 to below \d+.0, got 10.0"),
    ({"at": [], "each": True}, "at must hold a label, got none"),
    ({"values": [1, 2, 3, 4]}, "values is for kind='mean' and 'quantile'"),
    ({"kind": "mean", "values": [1, 3, 2, 4]}, "values must be 4 increasing numbers"),
    ({"grid": True}, "pass by= without each=True"),
    ({"by": "x4"}, r"by must name columns, \['x1', 'x2', 'x3'\], got 'x4'"),
    ({"by": "x1"}, "by names the numeric column 'x1': pass its values"),
])  # fmt: skip
def test_arguments_that_do_not_fit(given, message):
    raises(ValueError, f"(?i){message}", FITS["symmetric"]().predictions, X, **given)


def test_cells_and_means_need_rows_and_numbers():
    with pytest.raises(ValueError, match="predictions of cells needs X with random"):
        mixed("cumulative").predictions(by={"x1": [0]})
    model = fit_pom("Sat ~ Infl", housing(), sample_weight="Freq")
    with pytest.raises(ValueError, match="needs labels that are increasing"):
        model.predictions(kind="mean")


def table_of_kinds():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    table = pd.DataFrame({
        "x": rng.normal(size=200), "on": rng.integers(0, 2, 200),
        "kind": pd.Categorical(np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]),
    })  # fmt: skip
    table["y"] = np.digitize(table["x"] + table["on"] + rng.logistic(size=200), [-1, 1])
    return table


@cache
def fitted_to_kinds(method):
    """A model, and the levels of its columns, of which x is a number."""
    table, levels = table_of_kinds(), {"on": [0, 1], "kind": ["a", "b", "c"]}
    table["g"] = np.arange(200) % 20
    if method == "numbers":
        levels.pop("kind")
        return ordinal.fit_ratio(table[["x", "on"]], table["y"]), levels
    if method == "ratio":
        return ordinal.fit_ratio(table[["kind", "x", "on"]], table["y"]), levels
    if method == "pom":
        return fit_pom("y ~ on + x * kind", table), levels
    return ordinal.fit_clmm("y ~ kind + I(x - 1) + on + (1 | g)", table), levels


@pytest.mark.parametrize("method", ["pom", "ratio", "numbers", "clmm"])
@given(data=st.data())
def test_grids_do_not_depend_on_the_order_of_columns_or_on_further_ones(method, data):
    """The few rows hold only 0 and 1 in x, which is a number in the training rows."""
    model, levels = fitted_to_kinds(method)
    options = {"effects": "average"} if method == "clmm" else {}
    rows = table_of_kinds().head(5).assign(x=[0, 1, 1, 0, 1], on=1)
    more = rows.assign(g=3, flag=[1, 0, 0, 1, 1], text=list("pqrst"), z=7.5)
    columns = data.draw(st.permutations([*more]))
    by = data.draw(st.sampled_from([*levels, {"x": [-1.0, 2.0]}]))
    asked = {"by": by, "grid": True, **options}
    for kind in ("mean", "latent"):
        plain = model.predictions(rows[["x", *levels]], kind=kind, **asked)
        found = model.predictions(more[columns], kind=kind, **asked)
        for name, values in plain.items():
            assert_array_equal(found[name], values)
    every = {"x": [rows["x"].mean()], **levels, **(by if isinstance(by, dict) else {})}
    grid = type(rows)([*product(*every.values())], columns=[*every])
    mean = model.predict_proba(grid, **options) @ np.arange(3)
    (name,) = [by] if isinstance(by, str) else by
    cells = [mean[grid[name] == value].mean() for value in every[name]]
    found = model.predictions(more[columns], kind="mean", **asked)
    assert_allclose(found["estimate"], cells)
    with pytest.raises(ValueError, match="X has no column 'on'"):
        model.predictions(more.drop(columns="on"), **asked)


@pytest.mark.filterwarnings("ignore:.cat.get_categories:DeprecationWarning")
@pytest.mark.parametrize("kind", ["probability", "exceedance", "mean", "latent"])
@pytest.mark.parametrize("fit", [fit_pom, ordinal.fit_ratio])
def test_marginaleffects_finds_the_same(fit, kind):
    """Version 0.6.0 fails with polars 2."""
    other = pytest.importorskip("marginaleffects")
    if int(pytest.importorskip("polars").__version__.split(".")[0]) > 1:
        pytest.skip("marginaleffects needs polars below 2")
    table = table_of_kinds()
    model = fit("y ~ x * kind + on", table, nominal=["on"])
    own = ordinal.inference.for_marginaleffects(model, table, kind=kind)
    theirs = other.predictions(own)
    if "group" in theirs.columns:
        theirs = theirs.sort("rowid", "group")
    found = predictions(model, kind=kind, each=True)
    assert_allclose(theirs["estimate"], found["estimate"], rtol=1e-9)
    assert_allclose(theirs["std_error"], found["standard_error"], rtol=1e-4)
    if kind == "latent":
        return
    theirs = other.avg_slopes(own)
    effects = marginal_effects(model, kind=kind)
    names = {"x": "x", "on": "on", "b - a": "kind[b]", "c - a": "kind[c]"}
    groups = effects.get(
        "rank", effects.get("threshold", np.full(effects["name"].size, ""))
    )
    place = {
        key: k
        for k, key in enumerate(zip(effects["name"], groups.astype(str), strict=True))
    }
    for row in theirs.iter_rows(named=True):
        name = names.get(row["contrast"]) or names[row["term"]]
        k = place[name, row.get("group", "")]
        assert_allclose(row["estimate"], effects["effect"][k], rtol=1e-4, atol=1e-7)
        assert_allclose(row["std_error"], effects["standard_error"][k], rtol=1e-3)


def test_marginaleffects_takes_no_random_effects():
    pytest.importorskip("marginaleffects")
    with pytest.raises(
        TypeError, match="not defined for a ClmmModel: take predictions"
    ):
        ordinal.inference.for_marginaleffects(mixed("cumulative"), None)


@pytest.mark.parametrize("link", ["logit", "probit", "cauchit", "cloglog", "loglog"])
def test_rows_far_away_have_errors_that_are_finite(link):
    model = fit_pom(X, Y, link=link)
    for size in (1e3, 1e150):
        for function in (predictions, marginal_effects):
            assert np.isfinite(function(model, size * X[:20])["standard_error"]).all()
