"""Mean probabilities of cumulative models: values, and errors by the delta method."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pom_data
import pytest
from internals import structure_of
from numpy.testing import assert_allclose, assert_array_equal
from oracles import slope
from scipy.sparse import csr_array
from strategies import raises

import ordinal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
# ranks between those that are present, and beyond them, are absent
Y = np.digitize(X[:, 0] + RNG.logistic(size=200), [-1, 0, 1]) * 2
LINKS = "logit", "probit", "cloglog", "loglog", "cauchit"


def moved(model, x):
    """The model with other parameters, in the order of its covariance."""
    q, m, d = model.alpha.size, model.predictor.nominal.size, model.coef.size
    alpha, nu, beta, zeta = np.split(x, np.cumsum([q, q * m, d]))
    present = np.flatnonzero(model.predictor.observed)
    inner = structure_of(model.predictor.threshold, present.size - 1) @ alpha
    thresholds = model.thresholds.copy()
    for t, theta in enumerate(inner):
        thresholds[present[t] : present[t + 1]] = theta
    rest = {"nominal_coef": nu.reshape(q, m), "coef": beta, "scale_coef": zeta}
    return replace(model, thresholds=thresholds, alpha=alpha, **rest)


def errors(model, G):
    return np.sqrt(np.diagonal(G @ model.covariance @ G.T))


COUNT = np.random.default_rng(2).integers(0, 5, 200)
DTYPES = {
    "int64": lambda x: x,
    "int8": lambda x: x.astype(np.int8),
    "uint8": lambda x: x.astype(np.uint8),
    "float32": lambda x: x.astype(np.float32),
    "Decimal": lambda x: [Decimal(int(v)) for v in x],
    "Int64": lambda x: x,  # of pandas
    "polars": lambda x: x,
    "polars Decimal": lambda x: [Decimal(int(v)) for v in x],
}


def table_of(values, dtype):
    """A table with a column of this dtype, a categorical one and the ranks."""
    other = {"kind": np.array(["red", "blue"])[np.arange(200) % 2], "y": Y}
    if dtype.startswith("polars"):
        return pytest.importorskip("polars").DataFrame({"x": values, **other})
    made = pytest.importorskip("pandas").DataFrame({"x": values, **other})
    return made.astype({"x": dtype}) if dtype in ("Int64", "boolean") else made


@pytest.mark.parametrize(
    ("formula", "dtype"), [*((True, d) for d in DTYPES), (False, "int8")]
)
def test_marginal_effects_are_the_same_whatever_dtype_a_number_has(dtype, formula):
    """Integers once had their moved values truncated, and effects of -6588."""

    def fit(table):
        if formula:
            return ordinal.fit_pom("y ~ x * kind", table)
        return ordinal.fit_pom(table[["x", "kind"]], Y)

    plain = table_of(COUNT.astype(float), "float64")
    model = fit(plain)
    by_row = slope(lambda t: model.predict_proba(plain.assign(x=plain["x"] + t)), 1e-5)
    table = table_of(DTYPES[dtype](COUNT), dtype)
    other = fit(table)
    for found in (other.marginal_effects(), other.marginal_effects(table)):
        effect = found["effect"][found["name"] == "x"]
        assert_allclose(effect, by_row.mean(axis=0), rtol=1e-6)
        assert (np.abs(effect) <= np.abs(by_row).max(axis=0)).all()


def test_without_rows_the_training_rows_are_averaged():
    weight, offset = np.linspace(1, 3, 200), np.sin(np.arange(200.0))
    model = ordinal.fit_pom(X, Y, sample_weight=weight, offset=offset)
    own = model.predictions()
    given = model.predictions(X, sample_weight=weight, offset=offset)
    assert_array_equal(own["standard_error"], given["standard_error"])
    # a flexible model with the logit link has the mean of each threshold's events
    share = [weight[y == Y].sum() for y in model.classes]
    assert_allclose(own["estimate"], np.array(share) / weight.sum(), atol=0.02)
    with pytest.raises(ValueError, match=r"^sample_weight must be None without X"):
        model.predictions(sample_weight=weight)
    model = ordinal.fit_pom(X, Y, nominal=[1], scale=[2])
    dense, sparse = (model.predictions(rows) for rows in (4 * X, csr_array(4 * X)))
    for name, column in dense.items():
        assert_allclose(sparse[name], column, rtol=1e-12)
    model, weight = ordinal.fit_pom(X, Y), np.arange(1, 201.0)
    found = model.predictions(X, sample_weight=weight)
    for factor in (1e-306, 1e305):  # the sum is beyond the largest double
        there = model.predictions(X, sample_weight=weight * factor)
        for name in ("estimate", "standard_error", "lower"):
            assert_allclose(there[name], found[name], rtol=1e-12)


def test_means_that_estimates_say_nothing_of_are_refused():
    with pytest.raises(ValueError, match=r"^predictions needs .* with l2=0\.1"):
        ordinal.fit_pom(X, Y, l2=0.1).predictions(X)
    with pytest.warns(ordinal.exceptions.ConvergenceWarning):
        separated = ordinal.fit_pom(np.arange(9.0)[:, None], np.arange(9) // 3)
    message = r"^predictions needs .* nothing can be estimated: 'x1' sep"
    raises(ValueError, message, separated.predictions, [[1.0]])
    model = ordinal.fit_pom(X, Y)
    with pytest.raises(ValueError, match=r"^each must be True or False, got 1"):
        model.predictions(X, each=1)
    with pytest.raises(ValueError, match=r"^level must be a number between 0 and 1"):
        model.predictions(X, level=1.0)


# predict(clm(...), se.fit = TRUE, interval = TRUE) of R's ordinal 2022.11-16
CLM = (
    [0.206790132354, 0.57064970430, 0.1922909373, 0.02361881639, 0.006650409],
    [0.084819200595, 0.08683884132, 0.06388671636, 0.01380264291, 0.004828500],
    [0.086441084004, 0.39887109337, 0.09609419207, 0.007429028921, 0.00159552],
    [0.41802602811, 0.7269446750, 0.3477399241, 0.07251283525, 0.02728234436],
)


def test_one_row_has_the_intervals_of_clm():
    wine = pom_data.wine()
    found = ordinal.fit_pom(wine.X, wine.y, tol=1e-10).predictions([(0, 0)])
    for name, expected, rtol in zip(
        ("estimate", "standard_error", "lower", "upper"), CLM,
        (1e-6, 1e-4, 1e-3, 1e-3), strict=True,
    ):  # fmt: skip
        assert_allclose(found[name], expected, rtol=rtol)
