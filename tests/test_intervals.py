"""Ranks known as intervals: against slow likelihoods, and the fits of known ranks."""

import itertools
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from oracles import cumulative_edges, cumulative_terms, slopes
from scipy import optimize, special, stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from strategies import raises

import ordinal
import ordinal.sklearn
from ordinal import RankIntervals, metrics
from ordinal.__main__ import main
from ordinal.exceptions import CollinearColumnsWarning, ConvergenceWarning
from ordinal.gpor.laplace import Likelihood as GporLikelihood

# Slopes per threshold of few rows make thresholds cross at some of them.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ordinal.exceptions.DisorderedThresholdsWarning"
)


def coarse(n=80, r=6, seed=0, share=0.5):
    """Rows of a proportional odds model, some with an interval; its ends are ranks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    latent = X @ [1.0, -0.5] + rng.logistic(size=n)
    y = np.searchsorted(np.linspace(-1.8, 1.8, r - 1), latent)
    known = rng.random(n) >= share
    lower = np.where(known, y, np.maximum(y - rng.integers(0, 3, n), 0))
    return X, lower, np.where(known, y, np.minimum(y + rng.integers(0, 3, n), r - 1))


def loglik(p, X, lower, upper, link="logit", nominal=(), scale=(), offset=0.0, w=1.0):
    """Log-likelihood of all parameters, in the order of `parameters`."""
    location = np.setdiff1d(range(X.shape[1]), nominal)
    columns = (X[:, list(of)] for of in (location, nominal, scale))
    eta = cumulative_edges(
        np.asarray(p), int(upper.max()), "flexible", *columns, offset
    )
    i = np.arange(len(X))
    return float((w * cumulative_terms(link, eta[i, upper + 1], eta[i, lower])).sum())


def same_model(a, b):
    assert np.array_equal(a.parameters, b.parameters)
    assert np.array_equal(a.classes, b.classes)
    assert a.loglik == b.loglik
    assert a.statistics.null_loglik == b.statistics.null_loglik
    assert (a.covariance is None) == (b.covariance is None)
    assert a.covariance is None or np.array_equal(a.covariance, b.covariance)


@pytest.mark.parametrize(
    ("link", "given"),
    [("logit", {}), ("probit", {"nominal": [1]}), ("cloglog", {"scale": [0]}),
     ("loglog", {"nominal": [1], "scale": [0]}), ("cauchit", {})],
)  # fmt: skip
def test_the_fit_is_the_maximum_of_a_slow_likelihood(link, given):
    X, lower, upper = coarse()
    rng = np.random.default_rng(1)
    w, offset = rng.integers(1, 4, len(X)) * 1.0, 0.3 * rng.normal(size=len(X))
    y = RankIntervals(lower, upper)
    fixed = {"link": link, "sample_weight": w, "offset": offset, "tol": 1e-9, **given}
    model = ordinal.fit_pom(X, y, **fixed)

    def f(p, rows=slice(None), weight=None):
        weight = w if weight is None else weight
        ends = X[rows], lower[rows], upper[rows]
        return loglik(p, *ends, link, offset=offset[rows], w=weight[rows], **given)

    x = model.parameters
    g = slopes(f, x, 2e-4)
    H = slopes(lambda at: slopes(f, at, 2e-4), x, 2e-4)
    assert model.loglik == pytest.approx(f(x), rel=1e-12)
    assert np.abs(g).max() < 1e-4 * np.abs(np.diagonal(H)).max()
    assert_allclose(model.covariance, np.linalg.inv(-H), rtol=2e-3, atol=1e-5)
    # The sandwich of clusters, from gradients of the rows by differences.
    cluster = np.arange(len(X)) % 11
    robust = ordinal.fit_pom(X, y, cluster=cluster, **fixed)
    scores = np.zeros((11, x.size))
    for c in range(11):
        only = np.where(cluster == c, w, 0.0)
        for j, e in enumerate(1e-5 * np.eye(x.size)):
            scores[c, j] = (f(x + e, weight=only) - f(x - e, weight=only)) / 2e-5
    meat = scores.T @ scores * 11 / 10
    bread = np.linalg.inv(-H)
    assert_allclose(robust.covariance, bread @ meat @ bread, rtol=5e-3, atol=2e-5)


def turnbull(lower, upper, r, steps=4000):
    """Turnbull's estimate by the EM algorithm."""
    held = (lower[:, None] <= np.arange(r)) & (np.arange(r) <= upper[:, None])
    p = np.full(r, 1 / r)
    for _ in range(steps):
        p = (held * p / (held @ p)[:, None]).mean(axis=0)
    return p, float(np.log(held @ p).sum())


@pytest.mark.parametrize("seed", range(2))
def test_without_features_the_fit_is_turnbulls_estimate(seed):
    """Ranks without weight are among them, where thresholds would cross."""
    _, lower, upper = coarse(n=30, r=7, seed=seed, share=0.9)
    y = RankIntervals(lower, upper)
    with pytest.warns(CollinearColumnsWarning):
        model = ordinal.fit_pom(np.ones((30, 1)), y, classes=range(7))
    p, value = turnbull(lower, upper, 7)
    assert model.loglik == pytest.approx(value, abs=1e-6)
    assert model.statistics.null_loglik == pytest.approx(value, abs=1e-6)
    # Within a set of Turnbull only the sum is known.
    P = model.predict_proba([[1.0]])[0]
    held = (lower[:, None] <= np.arange(7)) & (np.arange(7) <= upper[:, None])
    assert_allclose(held @ P, held @ p, atol=1e-4)


def best_in_order(X, lower, upper, l2=0.0):
    """Maximum over thresholds in order, by a general solver from several starts."""
    T, found = int(upper.max()), []

    def params(u):
        return np.concatenate([np.cumsum(np.append(u[0], u[1:T] ** 2)), u[T:]])

    def f(u):
        with np.errstate(all="ignore"):
            value = -loglik(params(u), X, lower, upper)
        value += len(X) * l2 * float(u[T:] @ u[T:]) / 2
        return value if np.isfinite(value) else 1e10

    for start in (0.4, 1.0):
        u = np.concatenate([[-1.0], np.full(T - 1, start), np.zeros(X.shape[1])])
        end = optimize.minimize(f, u, method="BFGS", options={"gtol": 1e-9})
        found.append(float(end.fun))
    return -min(found)


@pytest.mark.parametrize(
    ("n", "r", "seed", "l2"),
    # In the last one, thresholds that cross at first are apart at the maximum.
    [(40, 6, 10, 0.0), (40, 6, 12, 0.05), (25, 9, 50, 0.0)],
)
def test_ranks_without_weight_leave_the_maximum_over_ordered_thresholds(n, r, seed, l2):
    X, lower, upper = coarse(n, r, seed, share=0.95 if n == 40 else 0.98)
    ends = np.unique(np.append(lower, upper))
    lower, upper = np.searchsorted(ends, lower), np.searchsorted(ends, upper)
    model = ordinal.fit_pom(X, RankIntervals(lower, upper), l2=l2)
    loss = model.loglik - len(X) * l2 * float(model.coef @ model.coef) / 2
    assert loss == pytest.approx(best_in_order(X, lower, upper, l2), abs=2e-5)


def test_a_path_ends_at_the_fit_without_penalty():
    X, lower, upper = coarse(n=40, r=6, seed=11, share=0.95)
    y = RankIntervals(lower, upper)
    path = ordinal.fit_pom_path(X, y, n_lambdas=20, smallest=1e-5)
    assert (path.gaps < 1e-4).all()
    assert (np.diff(path.loglik) > -1e-9).all()
    assert path.n_nonzero[0] == 0
    assert path.loglik[0] == pytest.approx(path.null_loglik, abs=1e-6)
    assert_allclose(path.model(-1).coef, ordinal.fit_pom(X, y).coef, atol=2e-3)
    one = ordinal.fit_pom(X, y, l1=float(path.lambdas[8]), tol=1e-9)
    assert_allclose(path.model(8).coef, one.coef, atol=1e-3)


def test_open_ends_strings_and_categoricals_are_the_same_intervals():
    X, lower, upper = coarse()
    words = np.array(["a", "c", "b", "f", "e", "d"])
    full = ordinal.fit_pom(X, RankIntervals(lower, upper))
    low = [None if v == 0 else v for v in lower.tolist()]
    high = [np.nan if v == 5 else float(v) for v in upper]
    opened = ordinal.fit_pom(X, RankIntervals(low, high))
    assert opened.classes.dtype.kind == "i"
    same_model(opened, full)
    given = ordinal.fit_pom(X, RankIntervals(words[lower], words[upper]), classes=words)
    assert np.array_equal(given.parameters, full.parameters)
    kind = pd.CategoricalDtype(list(words), ordered=True)
    ends = (pd.Series(words[v], dtype=kind) for v in (lower, upper))
    assert np.array_equal(ordinal.fit_pom(X, RankIntervals(*ends)).classes, words)
    # A rank at which no interval ends, and rows without weight.
    more = ordinal.fit_pom(X, RankIntervals(lower, upper), classes=[*range(6), 6.0])
    assert more.predict_proba(X).shape == (80, 7)
    assert not more.predict_proba(X)[:, 6].any()
    X, y, _ = coarse(share=0.0)  # each of one rank
    known = RankIntervals(y, y)
    same_model(ordinal.fit_pom(X, known), ordinal.fit_pom(X, y))
    paths = (ordinal.fit_pom_path(X, of, n_lambdas=4).models for of in (known, y))
    for a, b in zip(*paths, strict=True):
        same_model(a, b)
    X, lower, upper = coarse(90)
    y = RankIntervals(lower, upper)
    for w in (np.r_[np.ones(70), np.zeros(20)], np.arange(90) % 3):
        part = ordinal.fit_pom(X[w > 0], y[w > 0], sample_weight=w[w > 0])
        zero = ordinal.fit_pom(X, y, sample_weight=w)
        assert_allclose(zero.coef, part.coef, rtol=1e-6)


def test_separated_intervals_are_reported_with_their_limit():
    x = np.arange(12.0)[:, None]
    lower = np.where(x[:, 0] < 6, 0, 1)
    upper = np.where(x[:, 0] < 6, 1, 2)
    lower[0], upper[0], lower[-1], upper[-1] = 0, 0, 2, 2
    lower[5], upper[6], upper[5] = 0, 2, 0
    lower[6] = 2
    with pytest.warns(ConvergenceWarning, match="separate"):
        model = ordinal.fit_pom(x, RankIntervals(lower, upper))
    assert model.loglik == pytest.approx(0.0, abs=1e-6)


THREE = np.arange(90) % 3 + 1.0
RESIDUALS = [
    ("fit_pom", {"link": "probit", "nominal": [1], "sample_weight": THREE}),
    ("fit_pom", {"link": "cloglog", "scale": [0], "offset": np.linspace(-1, 1, 90)}),
    ("fit_ratio", {"family": "adjacent", "nominal": [1]}),
    ("fit_ratio", {"link": "probit"}),
]
MIRROR = {"cloglog": "loglog"}


@pytest.mark.parametrize(("fit", "given"), RESIDUALS)
def test_residuals_of_intervals_are_those_of_slow_probabilities(fit, given):
    X, lower, upper = coarse(90)
    y, inference = RankIntervals(lower, upper), ordinal.inference
    model = getattr(ordinal, fit)(X, upper if fit == "fit_ratio" else y, **given)
    offset, row = given.get("offset", np.zeros(90)), np.arange(90)
    new = {"X": X, "y": y, "offset": offset}

    def sides(more=0.0):  # P(rank < lower) and P(rank > upper)
        P = model.predict_proba(X, offset=offset + more)
        P = np.pad(np.cumsum(P, axis=1), ((0, 0), (1, 0)))
        return P[row, lower], 1 - P[row, upper + 1]

    def logs(more):
        return np.log(1 - np.add(*sides(more)))

    low, high = sides()
    expected = {
        "probability": low - high,
        "deviance": np.copysign(np.sqrt(-2 * np.log(1 - low - high)), low - high),
        "score": (logs(1e-5) - logs(-1e-5)) / 2e-5,
    }
    for kind, values in expected.items():
        found = inference.residuals(model, kind=kind, **new)
        assert_allclose(found, values, atol=1e-8, err_msg=kind)
    drawn = special.ndtr(inference.residuals(model, kind="quantile", rng=0, **new))
    assert ((low < drawn) & (drawn < 1 - high)).all()
    exact = {**new, "y": RankIntervals(upper, upper)}
    for kind in [*expected, "quantile"]:
        a, b = (inference.residuals(model, kind=kind, rng=0, **{**new, "y": of})
                for of in (exact["y"], upper))  # fmt: skip
        assert np.array_equal(a, b), kind
    if fit == "fit_ratio":
        return
    found = inference.augment(model, X, y, offset=offset)
    assert np.array_equal([found[".lower"], found[".upper"]], [lower, upper])
    # The training rows are the same rows; reversed ranks have reversed residuals.
    given = {**given, "link": MIRROR.get(given["link"], given["link"])}
    given["offset"] = -offset
    reverse = ordinal.fit_pom(X, RankIntervals(5 - upper, 5 - lower), **given)
    for kind, values in expected.items():
        assert_allclose(inference.residuals(model, kind=kind), values, atol=1e-8)
        turned = inference.residuals(reverse, kind=kind)
        assert_allclose(turned, -values, atol=1e-4, err_msg=kind)


def test_residuals_of_a_true_model_have_their_distribution():
    X, lower, upper = coarse(3000, seed=2)
    y = RankIntervals(lower, upper)
    model = ordinal.fit_pom(X, y)
    drawn = {
        "norm": model.residuals(kind="quantile", rng=0),
        "logistic": model.residuals(kind="surrogate", rng=0),
        "uniform": ordinal.inference.simulated_residuals(model, n=99, rng=0).values,
    }
    for name, values in drawn.items():
        assert stats.kstest(values, name).pvalue > 0.01, name
    wrong = ordinal.fit_pom(X[:, 1:], y)  # the smooth of its residuals has a slope
    slope = stats.linregress(X[:, 0], wrong.residuals(kind="quantile", rng=0))
    assert slope.pvalue < 1e-9


def test_influence_of_intervals_is_that_of_leaving_rows_out():
    X, lower, upper = coarse(400, seed=3)
    model = ordinal.fit_pom(X, RankIntervals(lower, upper), tol=1e-10)
    found = ordinal.inference.influence(model)
    assert found.leverage.sum() == pytest.approx(model.parameters.size)
    for i in np.argsort(found.cooks_distance)[[-1, -2, 100]]:
        left = np.arange(400) != i
        rest = RankIntervals(lower[left], upper[left])
        change = ordinal.fit_pom(X[left], rest, tol=1e-10).parameters - model.parameters
        assert_allclose(found.change[i], change, atol=0.03 * np.abs(change).max())


def test_inference_that_needs_ranks_refuses_and_the_rest_works():
    X, lower, upper = coarse(200)
    y = RankIntervals(lower, upper)
    model = ordinal.fit_pom(X, y)
    names = "goodness_of_fit", "hosmer_lemeshow", "proportional_odds_test"
    for asked in (getattr(ordinal.inference, name) for name in names):
        several = rf"needs the rank of each row.* {np.sum(lower < upper)} of 200 rows"
        raises(ValueError, several, asked, model)
    narrow = ordinal.fit_pom(X, np.where(upper == 3, 4, upper), classes=range(6))
    with pytest.raises(ValueError, match="row 1 of y holds no rank with training rows"):
        ordinal.inference.residuals(narrow, X[:2], RankIntervals([1, 3], [2, 3]))
    lr = ordinal.inference.proportional_odds_test(model, "lr")
    freed = ordinal.fit_pom(X, y, nominal=[0, 1])
    assert lr["chi2"][0] == pytest.approx(2 * (freed.loglik - model.loglik), abs=1e-5)
    assert ordinal.inference.lr_test(ordinal.fit_pom(X[:, :1], y), model).chi2 > 0
    low, high = model.confint(method="profile")["lower"], model.coef
    assert (low[-2:] < high).all()


@pytest.mark.parametrize("name", ["POM", "SVORIM"])
def test_estimators_and_tools_of_scikit_learn_take_intervals(name):
    X, lower, upper = coarse(120)
    X = X.round()  # so that there are equal rows with other intervals
    y, make = RankIntervals(lower, upper), getattr(ordinal.sklearn, name)
    fit = {"POM": ordinal.fit_pom, "SVORIM": ordinal.fit_svorim}[name]
    found, own = make().fit(X, y), fit(X, y)
    f, g = found.model_.decision_function(X), own.decision_function(X)
    assert_allclose(f, g, atol=1e-3)
    assert found.score(X, y) == -metrics.mae(y, found.predict(X))
    # Rows written twice are rows of weight 2, in whatever order.
    twice, w = np.r_[119:-1:-1, :60], np.arange(120) < 60
    a, b = make().fit(X, y, w + 1.0), make().fit(X[twice], y[twice])
    assert np.array_equal(a.model_.thresholds, b.model_.thresholds)
    words = np.array(list("fedcba"))
    named = RankIntervals(words[lower], words[upper])
    assert make(classes=words).fit(X, named).classes_.tolist() == sorted(words)
    with pytest.warns(UserWarning, match="ranks by the alphabet"):
        make().fit(X, RankIntervals(words[upper], words[lower]))
    # Folds by number, and the scores of folds.
    splits, expected = list(KFold(3).split(X)), []
    for train, test in splits:
        part = make().fit(X[train], y[train])
        expected.append(-metrics.mae(y[test], part.predict(X[test])))
    assert cross_val_score(make(), X, y, cv=3).tolist() == expected
    piped = make_pipeline(StandardScaler(), make())
    key = f"{name.lower()}__{'l2' if name == 'POM' else 'C'}"
    searched = GridSearchCV(piped, {key: [0.01, 1.0]}, cv=splits).fit(X, y)
    assert searched.score(X, y) == -metrics.mae(y, searched.predict(X))
    with pytest.raises(ValueError, match="class_weight must be None"):
        make(class_weight="balanced").fit(X, y)
    raises(TypeError, "scoring='kappa' needs", make(scoring="kappa").fit, X, y)


def test_clones_of_a_decomposition_learn_from_the_intervals_on_one_side():
    X, lower, upper = coarse(150, r=4)
    make, w = ordinal.sklearn.OrdinalDecomposition, np.arange(150) % 3 + 1.0
    found = make(LogisticRegression()).fit(X, RankIntervals(lower, upper), w)
    for k, clone in enumerate(found.estimators_):
        rows = (lower > k) | (upper <= k)
        own = LogisticRegression().fit(X[rows], lower[rows] > k, w[rows])
        assert np.array_equal(clone.coef_, own.coef_)


def test_a_formula_names_the_columns_of_the_ends():
    X, lower, upper = coarse()
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "first": lower})
    table["the last"] = upper
    formula = "RankIntervals(first, `the last`) ~ a + b"
    open_ended = table.assign(**{"the last": table["the last"].where(upper < 5)})
    plain = ordinal.fit_pom(X, RankIntervals(lower, upper))
    for data in (table, open_ended):
        for given in ({}, {"missing_labels": "drop"}, {"missing": "drop"}):
            model = ordinal.fit_pom(formula, data, **given)
            assert np.array_equal(model.parameters, plain.parameters)
    every = ordinal.fit_pom("RankIntervals(first, `the last`) ~ .", table)
    assert np.array_equal(every.parameters, plain.parameters)
    mixed = f"{formula} + (1 | g)", table.assign(g=np.arange(80) % 8)
    one = ordinal.fit_clmm(X, RankIntervals(lower, upper), groups={"g": mixed[1]["g"]})
    assert np.array_equal(ordinal.fit_clmm(*mixed).coef, one.coef)
    for fit, text, message in (
        (ordinal.fit_ratio, formula, "fit_ratio does not take RankIntervals"),
        (ordinal.fit_pom, f"{formula} + first", "'first' holds the labels"),
        (ordinal.fit_pom, "RankIntervals(first, b2) ~ a", "must name a column"),
        (ordinal.fit_pom, "np.log(first) ~ a", "must name a column"),
    ):
        raises((TypeError, ValueError), message, fit, text, table)
    with pytest.raises(ValueError, match="family must be 'cumulative'"):
        ordinal.fit_clmm(*mixed, family="adjacent")


def test_two_columns_of_ranks_are_answered_by_name(tmp_path, capsys):
    X, lower, upper = coarse()
    with pytest.raises(ValueError, match=r"first and last ranks are RankIntervals"):
        ordinal.fit_pom(X, np.column_stack([lower, upper]))
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": X[:, 0], "low": lower, "top": upper}).to_csv(path, index=False)
    words = "--method", "pom", "--out", str(tmp_path / "m.npz")
    with suppress(SystemExit):
        main(["fit", str(path), "--target", "RankIntervals(low, top)", *words])
    assert "formula 'RankIntervals(low, top) ~ ...'" in capsys.readouterr().err


@pytest.mark.parametrize(("ends", "given", "message"), [
    (([1, 2], [1]), {}, "one label per row"),
    (([1, None], [2, None]), {}, "row 1 has neither"),
    (([2, 1], [1, 2]), {}, "row 0 has lower=2 and upper=1"),
    (([1, 1], [2, 2]), {}, "tell two ranks apart"),
    (([1, 2], [1, 3]), {"classes": [1, 2]}, "upper end of y holds 3"),
    (([1, 2], [1, 3]), {"class_weight": "balanced"}, "class_weight"),
    (([1, 2], [1, 3]), {"offset": np.zeros((2, 2))}, "offset"),
    (([1, 2, 3], [1, 3, 3]), {}, "3 intervals"),
])  # fmt: skip
def test_unusable_intervals_are_refused(ends, given, message):
    with pytest.raises(ValueError, match=message):
        ordinal.fit_pom([[0.0], [1.0]], RankIntervals(*ends), **given)
    with pytest.raises(TypeError, match="order is not known"):
        ordinal.fit_pom([[0.0], [1.0]], RankIntervals(["a", "b"], ["b", "b"]))


def test_metrics_score_by_the_nearest_rank_of_the_interval():
    rng = np.random.default_rng(0)
    _, lower, upper = coarse()
    y, p = RankIntervals(lower, upper), rng.integers(0, 6, 80)
    w, P = rng.random(80), rng.dirichlet(np.ones(6), 80)
    every = {"labels": range(6), "sample_weight": w}
    distance = np.maximum(0, np.maximum(lower - p, p - upper))
    assert metrics.mae(y, p, **every) == pytest.approx(np.average(distance, weights=w))
    assert metrics.mae(y, p) == pytest.approx(distance.mean())
    hit = np.average(distance == 0, weights=w)
    assert metrics.accuracy(y, p, **every) == pytest.approx(hit)
    assert metrics.mze(y, p, **every) == pytest.approx(1 - hit)
    near = np.average(distance <= 1, weights=w)
    assert metrics.accuracy_off(y, p, **every) == pytest.approx(near)
    held = (lower[:, None] <= np.arange(6)) & (np.arange(6) <= upper[:, None])
    logs = -np.log((P * held).sum(axis=1))
    assert metrics.log_loss(y, P, **every) == pytest.approx(np.average(logs, weights=w))
    terms = np.zeros(80)
    for i, j in itertools.product(range(80), range(5)):
        if not lower[i] <= j < upper[i]:
            terms[i] += (P[i, : j + 1].sum() - (upper[i] <= j)) ** 2
    assert metrics.rps(y, P, **every) == pytest.approx(np.average(terms, weights=w))


def test_searches_and_comparisons_score_by_the_sets():
    X, lower, upper = coarse(120)
    y, grid = RankIntervals(lower, upper), {"l2": [0.01, 1.0]}
    found = ordinal.select("pom", X, y, search=grid, scoring=["log_loss", "mae"], cv=3)
    splits = [(np.array(a), np.array(b)) for a, b in found.splits]
    for k, (train, test) in enumerate(splits):
        Z, spread = X[train].mean(axis=0), X[train].std(axis=0)
        rows = (X[train] - Z) / spread
        model = ordinal.fit_pom(rows, y[train], classes=range(6), l2=0.01)
        P = model.predict_proba((X[test] - Z) / spread)
        expected = metrics.log_loss(y[test], P, labels=range(6))
        assert found.table()[f"fold_{k}"][0] == pytest.approx(expected)
    assert found.model.classes.tolist() == list(range(6))
    compared = ordinal.compare(X, y)
    assert "pom" in compared.methods
    own = compared.methods.index("pom"), compared.methods.index("svorim")
    assert np.isfinite(compared.scores["rps"][own[0]]).all()
    assert np.isfinite(compared.scores["mae"]).all()
    assert np.isnan(compared.scores["rps"][own[1]]).all()


@pytest.mark.parametrize("fit", [ordinal.fit_svorim, ordinal.companions.fit_redsvm])
def test_support_vector_methods_have_no_margin_within_an_interval(fit):
    """Against a general solver of the quadratic program of scores and slacks."""
    X, lower, upper = coarse(n=40, r=4)
    y = RankIntervals(lower, upper)
    priced = float(fit is not ordinal.fit_svorim)
    ends = [(i, j, 1.0) for i in range(40) for j in range(3) if lower[i] > j]
    ends += [(i, j, -1.0) for i in range(40) for j in range(3) if upper[i] <= j]
    A = np.array([np.r_[s * X[i], -s * np.eye(3)[j]] for i, j, s in ends])
    A, start = np.hstack([A, np.eye(len(A))]), np.r_[np.zeros(5), np.ones(len(A))]
    unit = np.r_[1.0, 1.0, priced, priced, priced]

    def value(u):
        return 0.5 * unit @ u[:5] ** 2 + u[5:].sum()

    best = optimize.minimize(
        value, start, jac=lambda u: np.r_[unit * u[:5], np.ones(len(A))],
        bounds=[(None, None)] * 5 + [(0, None)] * len(A), method="SLSQP",
        constraints={"type": "ineq", "fun": lambda u: A @ u - 1, "jac": lambda u: A},
        options={"maxiter": 500, "ftol": 1e-11},
    )  # fmt: skip
    for basis in (None, np.arange(40)):
        model = fit(X, y, C=1.0, kernel="linear", tol=1e-5, basis=basis)
        assert model.convergence.primal == pytest.approx(best.fun, rel=1e-4)
    raises(ValueError, "probability must be False", fit, X, y, probability=True)
    found = ordinal.select(fit, X, y, search={"C": [0.1, 1.0]}, cv=3)
    assert np.isfinite(found.best_score)


@pytest.mark.parametrize("share", [0.5, 0.97])
def test_boosting_ends_at_the_best_thresholds_of_the_slow_likelihood(share):
    pytest.importorskip("lightgbm")
    X, lower, upper = coarse(n=200, share=share, seed=3)
    y = RankIntervals(lower, upper)
    losses = []
    for n_rounds in (1, 20):
        model = ordinal.fit_boosting(X, y, n_rounds=n_rounds)
        losses.append(metrics.log_loss(y, model.predict_proba(X), labels=range(6)))
        assert losses[-1] == pytest.approx(model.convergence.primal, rel=1e-9)
        # A cumulative model of the score, with its slope fixed at 1 by the offset.
        f = model.decision_function(X)
        with pytest.warns(CollinearColumnsWarning):
            best = ordinal.fit_pom(np.ones((200, 1)), y, offset=f)
        assert best.loglik / -200 == pytest.approx(losses[-1], rel=1e-6)
    assert losses[1] < losses[0] - 0.05
    assert ordinal.fit_boosting(X, y, tol=0.1).n_rounds > 0  # by folds
    for refused in ({"structure": "scores"}, {"link": "cauchit"}):
        raises(ValueError, "must not be", ordinal.fit_boosting, X, y, **refused)


def test_a_mixed_fit_is_the_maximum_of_a_slow_integral():
    rng, G = np.random.default_rng(0), 30
    g, X = np.repeat(np.arange(G), 8), rng.normal(size=(8 * G, 1))
    latent = X[:, 0] + rng.normal(size=G)[g] + rng.logistic(size=8 * G)
    y = np.searchsorted([-1.5, 0.0, 1.5], latent)
    lower = np.where(rng.random(8 * G) < 0.4, np.maximum(y - 1, 0), y)
    upper = np.where(rng.random(8 * G) < 0.4, np.minimum(y + 1, 3), y)
    given = {"groups": {"g": g}, "n_quadrature": 15}
    model = ordinal.fit_clmm(X, RankIntervals(lower, upper), **given)
    z, weight = np.polynomial.hermite_e.hermegauss(41)

    def f(p):
        at = (X[:, 0] * p[3])[:, None] + np.exp(p[4]) * z
        ends = np.r_[-np.inf, p[:3], np.inf][:, None]
        terms = cumulative_terms("logit", ends[upper + 1] - at, ends[lower] - at)
        logs = np.zeros((G, z.size))
        np.add.at(logs, g, terms)
        return float(np.log(np.exp(logs) @ weight / weight.sum()).sum())

    x = np.append(model.parameters, np.log(model.deviations["sd"][0]))
    slope = slopes(f, x, 2e-4)
    H = slopes(lambda at: slopes(f, at, 2e-4), x, 2e-4)
    assert model.loglik == pytest.approx(f(x), abs=1e-6)
    assert np.abs(slope).max() < 1e-3
    errors = np.sqrt(np.diagonal(np.linalg.inv(-H)))[:4]
    assert_allclose(model.standard_errors, errors, rtol=1e-4)
    P = model.predict_proba(X, groups={"g": g}, effects="known")
    ends = zip(P, lower, upper, strict=True)
    balance = [p[:a].sum() - p[b + 1 :].sum() for p, a, b in ends]
    assert_allclose(model.residuals(), balance, atol=1e-8)
    with pytest.raises(ValueError, match="random effects make ranks within intervals"):
        ordinal.inference.simulated_residuals(model)
    with pytest.raises(ValueError, match="family must be 'cumulative'"):
        ordinal.fit_clmm(X, RankIntervals(lower, upper), family="adjacent", **given)
    # A rank that intervals alone hold, and that has no weight.
    few = np.where(y == 1, 3 * (np.arange(8 * G) % 2), y)
    low, high = np.where(few == 2, 1, few), np.where(few == 2, 3, few)
    low[0], high[0], low[1], high[1] = 0, 1, 1, 3
    pooled = ordinal.fit_clmm(X, RankIntervals(low, high), groups={"g": g})
    assert (np.diff(pooled.thresholds) >= 0).all()


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_gaussian_processes_take_the_probability_of_an_interval(inference):
    X, lower, upper = coarse(n=60, r=5)
    lower[0], upper[0] = 0, 4  # a row of which nothing is known
    rng = np.random.default_rng(0)
    f, theta = rng.normal(size=60), np.array([0.1, -1.0, -0.2, 0.1, 0.3])
    ends = lower.astype(np.int32), upper.astype(np.int32)

    def likelihood(x):
        width = np.r_[np.inf, np.exp(x[2:]), np.inf]
        sigma, ones = float(np.exp(x[0])), np.ones(60)
        return GporLikelihood(ends[1], ones, sigma, x[1], width, 0 * ones, 1, ends[0])

    def slow(x, f):
        b = np.r_[-np.inf, x[1] + np.r_[0, np.cumsum(np.exp(x[2:]))], np.inf]
        a, b = (b[upper + 1] - f) / np.exp(x[0]), (b[lower] - f) / np.exp(x[0])
        return np.log(special.ndtr(a) - special.ndtr(b))

    log_p, slope, _ = likelihood(theta).loss(f)
    assert_allclose(log_p, slow(theta, f), rtol=1e-10, atol=1e-12)
    differences = (slow(theta, f + 1e-5) - slow(theta, f - 1e-5)) / 2e-5
    assert_allclose(slope, differences, atol=1e-7)
    by_row = likelihood(theta).derivatives(f)
    found = likelihood(theta).slopes(np.array([-slope, by_row[0], by_row[1]]))
    E = 1e-5 * np.eye(5)
    differences = [(slow(theta + e, f) - slow(theta - e, f)).sum() / 2e-5 for e in E]
    assert_allclose(found, differences, rtol=1e-6)
    # The fit, which uses these, and the one of known ranks.
    y, given = RankIntervals(lower, upper), {"inference": inference}
    model = ordinal.fit_gpor(X, y, **given)
    loss = metrics.log_loss(y, model.predict_proba(X), labels=range(5))
    shares = np.bincount(upper, minlength=5) / 60
    assert loss < metrics.log_loss(y, np.tile(shares, (60, 1)), labels=range(5))
