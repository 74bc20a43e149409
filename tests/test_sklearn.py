"""The estimators of scikit-learn: its checks, what they add to a fit, and its tools."""

import inspect
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from internals import methods
from numpy.testing import assert_allclose, assert_array_equal
from registry import registered
from scipy import sparse
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version
from strategies import raises, sample, slow

import ordinal
import ordinal.sklearn as estimators
from ordinal import exceptions, metrics
from ordinal.sklearn import (
    GPOR,
    NPSVOR,
    POM,
    SVORIM,
    XOFM,
    OrdinalDecomposition,
    ShashuaLevin,
    scorer,
)

METHODS = methods()
NAMES = [method.estimator for method in METHODS]
WORDS = ["low", "mid", "high"]
every_method = pytest.mark.parametrize("method", METHODS, ids=NAMES)


QUICK = {
    "gpor": {"max_iter": 20},
    "cnnor": {"n_triplets": 500, "n_compared": 50},
    "boosting": {"n_rounds": 10},
}
# methods whose links are of different kinds, or made in different ways
LINKS = {"elmor", "lit", "npsvor", "svmop", "svorim", "xofm"}


def made(method, **options):
    quick = QUICK.get(method.name, {})
    return getattr(estimators, method.estimator)(n_threads=1, **{**quick, **options})


def rows(n=60, r=3):
    return sample(n, r, noise=0.5)


def fitted(method, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        return made(method, **options).fit(X, y)


# scikit-learn's own checks


def checked():
    for method in METHODS:
        estimator = getattr(estimators, method.estimator)
        yield made(method) if method.name == "cnnor" else estimator(n_threads=1)
        if method.name in LINKS:
            yield estimator(n_threads=1, probability=True, rule="mode")


def broken(check, estimator):
    """Return whether numpy refuses what this scikit-learn does itself in a check."""
    return (
        check.func.__name__ == "check_positive_only_tag_during_fit"
        and estimator.__sklearn_tags__().input_tags.categorical
        and parse_version(sklearn.__version__) < parse_version("1.7.1")
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@parametrize_with_checks([SVORIM(n_threads=1)])
def test_a_typical_estimator_passes_every_check(estimator, check):
    """Without an exception for any method."""
    if broken(check, estimator):
        pytest.skip("before 1.7.1 this check subtracts a mean from integers in place")
    check(estimator)


@pytest.mark.slow("all checks by all estimators")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@parametrize_with_checks([e for e in checked() if repr(e) != "SVORIM(n_threads=1)"])
def test_other_estimators_pass_every_check(estimator, check):
    test_a_typical_estimator_passes_every_check(estimator, check)


@every_method
def test_parameters_are_the_arguments_of_the_fit(method):
    estimator = getattr(estimators, method.estimator)
    own = inspect.signature(method.fit).parameters
    given = inspect.signature(estimator).parameters
    by_row = {"X", "y", "sample_weight", "preprocess"} | method.by_row
    assert method.by_row <= set(own)
    assert set(given) == set(own) - by_row | {"rule", "scoring"}
    for name, parameter in given.items():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if name in own:
            assert parameter.default is own[name].default
            assert parameter.annotation == own[name].annotation
    assert estimator().get_params() == {n: p.default for n, p in given.items()}
    raises(TypeError, "unexpected keyword argument 'Cost'", estimator, Cost=1)
    for name in given:  # described, those too that a fit leaves to another's page
        assert any(
            name in line.split(" : ")[0].split(", ")
            for line in estimator.__doc__.splitlines()
            if " : " in line
        ), rf"(^|, ){name}(,.*)? : " if name != "e_rel" else "e_rel : "


@pytest.mark.parametrize("method", registered())
def test_an_estimator_is_thin_over_its_fit(method):
    X, y = rows()
    new = 2 * rows(40)[0]
    options = {} if method.probabilities else {"probability": True}
    estimator = fitted(method, X, y + 5, **options)
    assert (
        type(estimator.model_) is type(method.fit(X, y, n_threads=1, **options))
        or method.name == "gpor"
    )
    model = estimator.model_
    assert_array_equal(estimator.classes_, [5, 6, 7])
    assert estimator.n_features_in_ == 3
    assert not hasattr(estimator, "feature_names_in_")
    assert estimator.n_iter_ == model.convergence.n_iter
    assert_array_equal(estimator.predict_proba(new), model.predict_proba(new))
    rule = {"rule": "mode"} if method.probabilities else {}
    assert_array_equal(estimator.predict(new), model.predict(new, **rule))


@pytest.mark.parametrize("method", registered())
def test_a_fit_refuses_what_predictions_and_scores_could_not_follow(method):
    estimator = getattr(estimators, method.estimator)
    X, y = sample(30, 3)
    given = [{"rule": "medium"}, {"scoring": "precision"}]
    if not method.probabilities:
        given += [{"rule": rule} for rule in ("mode", "median", "cost")]
        given += [{"scoring": "rps"}, {"scoring": scorer("log_loss")}]
    for wrong in given:
        (name,) = wrong
        with pytest.raises(ValueError, match=f"^{name}.*(one of|probability=True)"):
            estimator(**wrong).fit(X, y)


def test_probabilities_are_there_where_they_are_asked_for():
    assert not hasattr(SVORIM(), "predict_proba")
    with pytest.raises(AttributeError) as caught:
        SVORIM().predict_proba  # noqa: B018
    assert "probability=True" in str(caught.value.__cause__)
    assert hasattr(SVORIM(probability=True), "predict_proba")
    assert hasattr(GPOR(), "predict_proba")
    assert not hasattr(XOFM(), "predict_proba")


@pytest.mark.parametrize("r", [2, 3, *slow(5)])
@pytest.mark.parametrize("method", registered())
def test_the_predicted_rank_has_the_largest_decision(method, r):
    X, y = rows(80, r)
    new = 2 * rows(60, r)[0]
    rules = ["mode", "median", "cost"]
    options = {} if method.probabilities else {"probability": True}
    estimator = fitted(method, X, y * 10, **options)
    own = inspect.signature(estimator.model_.predict).parameters["rule"].default
    for rule in dict.fromkeys([None, own, *rules]):
        estimator.set_params(rule=rule)
        labels, D = estimator.predict(new), estimator.decision_function(new)
        assert_array_equal(labels, estimator.model_.predict(new, rule=rule or own))
        assert np.isfinite(D).all()
        if r == 2:
            assert D.shape == (60,)
            assert_array_equal(labels, np.where(D > 0, 10, 0))
        else:
            assert D.shape == (60, r)
            assert_array_equal(labels, 10 * D.argmax(axis=1))


def test_decisions_by_their_formulas():
    X, y = rows(80, 4)
    estimator = SVORIM(probability=True).fit(X, y)
    f, b = estimator.model_.decision_function(X), estimator.model_.thresholds
    D = [[sum(s - b[j] for j in range(k)) for k in range(4)] for s in f]
    assert_allclose(estimator.decision_function(X), D, atol=1e-12)
    P = estimator.predict_proba(X)
    expected = {
        "mode": P,
        "median": [
            [sum(0.5 - p[: j + 1].sum() for j in range(k)) for k in range(4)] for p in P
        ],
        "cost": [
            [-sum(p[j] * abs(j - k) for j in range(4)) for k in range(4)] for p in P
        ],
    }
    for rule, D in expected.items():
        estimator.set_params(rule=rule)
        assert_allclose(estimator.decision_function(X), D, atol=1e-12)
    cost = np.array([[0, 1, 5, 9], [1, 0, 1, 9], [9, 1, 0, 1], [9, 5, 1, 0.0]])
    dear = SVORIM(probability=True, rule="cost", cost=cost).fit(X, y)
    assert_allclose(dear.decision_function(X), -dear.predict_proba(X) @ cost)
    assert_array_equal(dear.predict(X), dear.decision_function(X).argmax(axis=1))
    paper = XOFM().fit(X, y)
    shares = paper.model_.predict_proba(X, proba="share")
    assert_array_equal(paper.decision_function(X), shares)
    nearest = NPSVOR().fit(X, y)
    distances = nearest.model_.decision_function(X)
    assert_array_equal(nearest.decision_function(X), -np.abs(distances))
    with pytest.raises(ValueError, match="rule must be one of 'nearest', 'mode'"):
        nearest.set_params(rule="threshold").predict(X)
    with pytest.raises(ValueError, match="rule must be one of 'nearest', 'mode'"):
        nearest.decision_function(X)


@pytest.mark.parametrize("absent", [[0], [2], [4], [0, 1], [1, 4], [0, 3, 4]])
@pytest.mark.parametrize("name", ["SVORIM", "NPSVOR"])
def test_a_rank_without_rows_is_never_the_largest(name, absent):
    ranks = np.setdiff1d(range(5), absent)
    X, y = rows(80, ranks.size)
    estimator = getattr(estimators, name)(classes=range(5)).fit(X, ranks[y])
    D = estimator.decision_function(X)
    assert D.shape == (80, 5)
    assert_array_equal(estimator.predict(X), D.argmax(axis=1))
    assert not np.isin(D.argmax(axis=1), absent).any()
    assert not np.isnan(D).any()


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.DisorderedThresholdsWarning")
def test_thresholds_out_of_order_are_decided_by_their_middle():
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3
    estimator = ShashuaLevin(class_weight={0: 1000.0, 1: 1e-4, 2: 1e-4}).fit(X, y)
    b = estimator.model_.thresholds
    assert b[1] < b[0]
    f = estimator.model_.decision_function(X)
    assert_array_equal(estimator.predict(X), np.where(f > b.mean(), 2, 0))
    assert_array_equal(
        estimator.predict(X), estimator.decision_function(X).argmax(axis=1)
    )
    assert np.mean(estimator.predict(X) == 0) > 0.9  # as the weights want
    assert np.mean(estimator.model_.predict(X) == 0) < 0.9


@pytest.mark.parametrize(
    "basis", [("random", 5), ("cholesky", 5), np.eye(3), sparse.csr_array(np.eye(3))]
)
def test_a_basis_that_names_no_rows_leaves_them_without_an_order(basis):
    X, y = rows(40)
    estimator = SVORIM(basis=basis)
    order = np.random.default_rng(0).permutation(40)
    D = estimator.fit(X, y).decision_function(X)
    assert_array_equal(estimator.fit(X[order], y[order]).decision_function(X), D)


def test_strings_are_ranked_by_classes_or_by_the_alphabet_with_a_warning():
    X, y = rows()
    words = np.array(WORDS)[y]
    right = SVORIM(classes=WORDS).fit(X, words)
    assert_array_equal(right.ranks_, WORDS)
    assert_array_equal(right.predict(X), np.array(WORDS)[SVORIM().fit(X, y).predict(X)])
    message = r"by the alphabet: \['high', 'low', 'mid'\]; pass classes= in rank order"
    with pytest.warns(UserWarning, match=message):
        alphabet = SVORIM().fit(X, words)
    assert_array_equal(alphabet.ranks_, sorted(WORDS))
    with pytest.warns(UserWarning, match=r"by their numbers: \['2', '9', '10'\]"):
        ranks = POM().fit(X, np.array(["2", "9", "10"])[y]).ranks_
    assert_array_equal(ranks, ["2", "9", "10"])
    categorical = pd.Series(pd.Categorical(words, WORDS, ordered=True))
    assert_array_equal(SVORIM().fit(X, categorical).ranks_, WORDS)
    enum = pl.Series(words, dtype=pl.Enum(WORDS))
    assert_array_equal(SVORIM().fit(X, enum).predict(X), right.predict(X))
    with pytest.raises(TypeError, match="y is an unordered categorical"):
        SVORIM().fit(X, pd.Series(words, dtype="category"))
    with pytest.raises(ValueError, match="which is not among classes="):
        SVORIM(classes=WORDS[:2]).fit(X, words)


def table(kind, n=90):
    rng = np.random.default_rng(0)
    size, kinds = rng.normal(size=n), np.array(["red", "white", "rose"])
    colour = kinds[rng.integers(0, 3, n)]
    y = np.array(WORDS)[np.digitize(size + (colour == "red"), [-0.3, 0.8])]
    size = np.where(np.arange(n) % 11 == 3, np.nan, size)
    if kind == "pandas":
        X = pd.DataFrame({"size": size, "colour": pd.Categorical(colour)})
    else:
        X = pl.DataFrame({"size": size, "colour": colour}).with_columns(
            pl.col("colour").cast(pl.Enum(sorted(kinds)))
        )
    return X, y


def test_pom_leaves_rows_out_that_lack_values_if_asked_to():
    X, y = table("pandas")
    y[::5] = "mid"
    message = "X must be finite; first bad row is 3, with nan"
    raises(ValueError, message, POM(classes=WORDS).fit, X, y)
    known = X["size"].notna().to_numpy()
    own = ordinal.fit_pom(X[known], y[known], classes=WORDS)
    estimator = POM(classes=WORDS, missing="drop").fit(X, y)
    assert_allclose(estimator.model_.coef, own.coef, rtol=1e-6)
    with pytest.raises(ValueError, match=r"X lacks .* row 3, in column 'size': fill"):
        estimator.predict(X)
    rows = X[["size"]].to_numpy()
    raises(ValueError, "Input X contains NaN", POM(classes=WORDS).fit, rows, y)
    numbers = POM(classes=WORDS, missing="drop").fit(rows, y)
    expected = numbers.score(rows[known], y[known])
    assert numbers.score(rows, y) == scorer("mae")(numbers, rows, y) == expected
    raises(ValueError, "all 1 rows of X", numbers.score, rows[~known][:1], y[:1])
    with pytest.raises(ValueError, match="missing='drop' leaves out training rows"):
        ordinal.select("pom", X, y, classes=WORDS, missing="drop")


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "boolean", "bool[pyarrow]", "O"])
def test_estimators_predict_the_labels_that_a_fit_gives(dtype):
    X, y = rows(r=2)
    labels = pd.Series(y).astype(dtype)
    expected = ordinal.fit_pom(X, labels, l2=1.0).classes
    assert POM(l2=1.0).fit(X, labels).predict(X).dtype == expected.dtype


@pytest.mark.parametrize(
    "name",
    ["mze", "mae", "amae", "mmae", "oci", "accuracy", "accuracy_off", "gmsec", "kappa"],
)
def test_scorers_are_the_metrics_with_a_sign(name):
    X, y = table("pandas")
    estimator = XOFM(classes=WORDS).fit(X, y)
    weight = np.linspace(0.5, 2, len(y))
    value = getattr(metrics, name)(
        y, estimator.predict(X), labels=WORDS, sample_weight=weight
    )
    sign = 1 if name in ("accuracy", "accuracy_off", "gmsec", "kappa") else -1
    assert scorer(name)(estimator, X, y, sample_weight=weight) == sign * value
    assert estimator.set_params(scoring=name).score(X, y, weight) == sign * value


@pytest.mark.parametrize("wrap", [lambda e: e, make_pipeline], ids=["alone", "last"])
def test_scorers_of_probabilities_say_how_an_estimator_has_them(wrap):
    X, y = sample(30, 3)
    message = r"^rps needs predict_proba, which this SVORIM does not have: pass probab"
    raises(AttributeError, message, scorer("rps"), wrap(SVORIM()).fit(X, y), X, y)
    message = r"^log_loss needs predict_proba, which this LinearSVC does not have: choo"
    with pytest.raises(AttributeError, match=message):
        scorer("log_loss")(wrap(LinearSVC()).fit(X, y), X, y)


def test_a_decomposition_refuses_a_rule_cost_and_scoring_when_it_is_fitted():
    for wrong in ({"rule": "scan"}, {"cost": np.eye(3)}, {"scoring": "precision"}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}"):
            OrdinalDecomposition(LinearSVC(), **wrong).fit(*sample(30, 3))


def test_scorers_have_a_name_and_the_page_lists_every_estimator():
    assert repr(scorer("rps")) == "scorer('rps')"
    assert repr(pickle.loads(pickle.dumps(scorer("mae")))) == "scorer('mae')"
    raises(ValueError, "scoring must be one of 'mze', 'mae'", scorer, "precision")
    page = (Path(__file__).parent.parent / "docs/sklearn.md").read_text()
    names = [method.estimator for method in methods()]
    (listed,) = re.findall(r"^The estimators are (.*?)\. ", page, re.S | re.M)
    assert not [name for name in names if f"`{name}`" not in listed]


def test_weights_are_routed():
    X, y = rows()
    weight = np.arange(60) % 3.0
    with sklearn.config_context(enable_metadata_routing=True):
        plain, asked = scorer(), scorer().set_score_request(sample_weight=True)
        estimator = SVORIM().set_fit_request(sample_weight=True)
        search = GridSearchCV(estimator, {"C": [0.1, 10.0]}, scoring=asked, cv=3)
        search.fit(X, y, sample_weight=weight)
        best = SVORIM(**search.best_params_).fit(X, y, sample_weight=weight)
        assert_array_equal(search.decision_function(X), best.decision_function(X))
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), estimator
        )
        pipe.fit(X, y, sample_weight=weight)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            GridSearchCV(SVORIM(), {"C": [1.0]}, scoring=plain).fit(
                X, y, sample_weight=weight
            )
        given = {"cv": 3, "params": {"sample_weight": weight}}
        plain, weighted = (
            cross_validate(estimator, X, y, scoring=judge, **given)["test_score"]
            for judge in (plain.set_score_request(sample_weight=False), asked)
        )
        assert not np.array_equal(plain, weighted)


def test_feature_selectors_find_the_coefficients_of_the_columns():
    X, y = ordinal.datasets.make_gaussians(rng=0)
    noise = np.random.default_rng(0).normal(size=len(y))
    Z = np.column_stack([X[:, 0], 2.0 * X[:, 0], noise, X[:, 1]])
    with pytest.warns(exceptions.CollinearColumnsWarning):
        pom = POM().fit(Z, y)
    assert pom.coef_[1] == 0.0
    assert_array_equal(pom.coef_[[0, 2, 3]], pom.model_.coef)
    with pytest.warns(exceptions.CollinearColumnsWarning):
        chosen = RFE(POM(), n_features_to_select=3).fit(Z, y)
    with pytest.warns(exceptions.CollinearColumnsWarning):
        some = SelectFromModel(POM(), threshold=1e-300).fit(Z, y)
    assert_array_equal(chosen.support_, [True, False, True, True])
    assert_array_equal(some.get_support(), [True, False, True, True])
    assert estimators.Boosting(n_rounds=5).fit(Z, y).feature_importances_.shape == (4,)


@every_method
def test_coefficients_make_the_score(method):
    estimator = made(method)
    if "kernel" in estimator.get_params():
        estimator.set_params(kernel="linear")
    X, y = ordinal.datasets.make_gaussians(rng=0)
    by_row = {} if method.needs is None else {"groups": np.arange(len(y)) % 9}
    assert not hasattr(estimator, "coef_")
    estimator.fit(X[::3], y[::3], **{name: of[::3] for name, of in by_row.items()})
    if not hasattr(estimator, "coef_"):
        with pytest.raises(AttributeError, match="has no coef_: "):
            _ = estimator.coef_
        return
    assert estimator.coef_.shape[-1] == estimator.n_features_in_
    if estimator.coef_.ndim == 1 and hasattr(estimator.model_, "decision_function"):
        scores = estimator.model_.decision_function(X)
        change = (X - X[0]) @ estimator.coef_
        assert_allclose(scores - scores[0], change, rtol=1e-6, atol=1e-8)


def test_coefficients_are_absent_where_columns_are_coded():
    X, y = ordinal.datasets.make_gaussians(rng=0)
    assert not hasattr(POM(nominal=[1], in_order=True).fit(X, y), "coef_")
    assert not hasattr(SVORIM().fit(X, y), "coef_")
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 10, "u", "v")})
    assert not hasattr(POM().fit(table, y), "coef_")


def test_messages_name_what_the_caller_of_an_estimator_can_do():
    X, y = ordinal.datasets.make_gaussians(rng=0)
    with pytest.raises(ValueError, match=r"CLMM\(\)\.set_fit_request\(groups=True\)"):
        estimators.CLMM().fit(X, y)
    with pytest.raises(TypeError, match=r"parameter of the estimator, POM\(rule="):
        POM().fit(X, y).predict(X, rule="median")
    raises(TypeError, "regressor", scorer("mae"), LinearRegression().fit(X, y), X, y)
