"""Searches over tables with words, categories and gaps."""

import inspect
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from files import copies
from numpy.testing import assert_allclose, assert_array_equal
from registry import FITS, registered
from scipy.sparse import csr_array
from sources import Cut, mapped
from strategies import raises, sample, slow
from test_table_preprocessor import wines

import ordinal
from ordinal import fit_pom, fit_xofm, kernels, metrics
from ordinal.model_selection import Grid, nested, select
from ordinal.preprocessing import (
    PreprocessedModel,
    Standardizer,
    TableCoding,
    TablePreprocessor,
)

FRAME, Y = wines(80)
TAU = Grid(tau=[0.5, 1.0])
RISING = {"alcohol": 1}
XOFM = {"search": TAU, "cv": 3, "rule": "own", "monotone": RISING, "max_iter": 30}


# fits that end after a few steps say so, and do here
pytestmark = pytest.mark.filterwarnings("ignore::ordinal.exceptions.ConvergenceWarning")


def by_hand(fit_rows, scoring, splits):
    scores = []
    for train, test in splits:
        model = fit_rows(FRAME.iloc[train], Y[train])
        scores.append(scoring(Y[test], model.predict(FRAME.iloc[test])))
    return scores


@pytest.fixture(scope="module")
def found():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ordinal.exceptions.ConvergenceWarning)
        return select(fit_xofm, FRAME, Y, **XOFM)


def test_fits_see_the_table_as_it_is(found):
    """Names, categories and gaps: the scores are those of fits to pandas' own rows."""
    for point, scores in zip(found.points, found.scores, strict=True):

        def fit(X, y, point=point):
            return fit_xofm(X, y, monotone=RISING, max_iter=30, **point)

        assert_array_equal(by_hand(fit, metrics.mae, found.splits), scores)
    alone = fit_xofm(FRAME, Y, monotone=RISING, max_iter=30, **found.params)
    assert isinstance(found.model, ordinal.models.XofmModel)  # in its own units
    assert found.model.feature_names == tuple(FRAME.columns)
    assert found.model.monotone.tolist() == [1, 0, 0, 0, 0]
    assert_array_equal(found.model.categories[2], ["red", "rose", "white"])
    assert_array_equal(found.model.categories[4], ["S", "M", "L"])
    assert found.model.u.tobytes() == alone.u.tobytes()
    assert 9 < found.model.breakpoints[0].mean() < 11


def test_columns_travel_to_workers_and_are_known_to_a_store(found, tmp_path):
    with ProcessPoolExecutor(1) as pool:
        there = select(fit_xofm, FRAME, Y, executor=pool, **XOFM)
    assert_array_equal(there.scores, found.scores)

    kept = {**XOFM, "store": tmp_path, "refit": False}
    select(fit_xofm, FRAME, Y, **kept)
    files = set(tmp_path.iterdir())
    columns = FRAME.astype(object).where(FRAME.notna(), None).to_dict("list")
    sizes = {"size": pl.Enum(FRAME["size"].cat.categories.tolist())}
    table = pl.DataFrame(columns, schema_overrides=sizes)
    assert_array_equal(select(fit_xofm, table, Y, **kept).scores, found.scores)
    assert set(tmp_path.iterdir()) == files
    other = FRAME.assign(colour=FRAME["colour"].replace("red", "blue"))
    select(fit_xofm, other, Y, **kept)
    assert len(set(tmp_path.iterdir())) == 2 * len(files)


@pytest.mark.parametrize("method", ["svorim", "tlssvor", *slow("npsvor", "gpor")])
def test_any_method_is_searched_behind_a_preprocessor(method):
    fit = FITS[f"fit_{method}"]
    grid = Grid(max_iter=[5]) if method == "gpor" else Grid(C=[1.0, 10.0])
    preprocess = TablePreprocessor(impute="mean")
    found = select(fit, FRAME, Y, search=grid, cv=3, preprocess=preprocess, rng=1)

    def at(point):
        return lambda X, y: PreprocessedModel.fit(
            fit, X, y, preprocess=preprocess, classes=[1, 2, 3], **point
        )

    for point, scores in zip(found.points, found.scores, strict=True):
        here = by_hand(at(point), metrics.mae, found.splits)
        # fits along a path agree to their tolerance
        assert np.abs(scores - here).max() <= 1 / 26
    assert isinstance(found.preprocessor, TableCoding)
    assert_array_equal(found.predict(FRAME), at(found.params)(FRAME, Y).predict(FRAME))


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.DisorderedThresholdsWarning")
@pytest.mark.parametrize("method", registered())
@pytest.mark.parametrize("preprocess", [*slow(Standardizer), TablePreprocessor()])
def test_a_fit_with_preprocess_is_the_model_of_the_search(method, preprocess, tmp_path):
    """To the last bit, and of the same type: raw features come in."""
    X, how = FRAME[["alcohol", "colour", "size"]], {"preprocess": preprocess}
    if preprocess is Standardizer:
        X, how = FRAME[["acid", "sweet"]] * 1000.0, {"standardize": True}
    options = {"n_threads": 1, "class_weight": "balanced", "max_iter": 5}
    takes = inspect.signature(method.fit).parameters
    options = {k: v for k, v in options.items() if k in takes}
    tried = {name: values[-2:] for name, values in list(method.grid.items())[:1]}
    space = Grid(**(tried or {"optimize": [False]}))
    found = select(method.fit, X, Y, search=space, cv=2, rule="own", **how, **options)
    model = method.fit(X, Y, preprocess=preprocess, **found.params, **options)
    assert type(model) is type(found.model)
    assert hasattr(model, "coef") or type(model) is PreprocessedModel
    assert model.feature_names == found.feature_names == tuple(X.columns)
    assert model.n_features == X.shape[1]
    numbers = "predict_proba" if method.probabilities else "decision_function"
    for copy in copies(model, tmp_path):
        assert copy.predict(X).tobytes() == found.predict(X).tobytes()
        ours, theirs = (getattr(m, numbers)(X) for m in (copy, found.model))
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.parametrize("run", [select, nested, ordinal.cross_conformal])
def test_features_are_not_preprocessed_twice(run):
    fixed = partial(ordinal.fit_svorim, preprocess=Standardizer)
    options = {} if run is ordinal.cross_conformal else {"search": Grid(C=[1.0])}
    with pytest.raises(TypeError, match=r"^preprocess is an argument of the se"):
        run(fixed, FRAME[["acid"]], Y, **options)
    run(partial(ordinal.fit_svorim, preprocess=None), FRAME[["acid"]], Y, **options)


def test_a_preprocessor_is_no_point_of_a_search():
    space = Grid(preprocess=[Standardizer, TablePreprocessor()])
    with pytest.raises(TypeError, match=r"^preprocess is an argument of the se"):
        select(ordinal.fit_svorim, FRAME[["acid"]], Y, search=space)


def test_blocks_and_maps_are_standardised_as_in_a_search(tmp_path):
    X, y = sample(120, 3, d=2)
    X *= 1000.0, 1.0
    stored = mapped(X, tmp_path)
    on_basis = partial(ordinal.fit_svorim, basis=8, n_threads=1)
    for fit, given in (
        (on_basis, (stored, y)), (on_basis, (Cut([70], X, y), None)),
        (ordinal.companions.fit_lat, (stored, y)),
    ):  # fmt: skip
        found = select(fit, *given, search=Grid(tol=[1e-2]), cv=2)
        model = fit(*given, preprocess=Standardizer, **found.params)
        f, g = (m.decision_function(X) for m in (model, found.model))
        assert f.tobytes() == g.tobytes()


@pytest.mark.parametrize(("X", "options", "error", "message"), [
    (FRAME, {"preprocess": True}, TypeError, "preprocess must be a TablePreproc"),
    (FRAME[["acid"]], {"kernel": "precomputed"}, ValueError,
     "kernel must not be 'precomputed' where preprocess is given"),
    ("y ~ acid", {}, TypeError, "X must not be a formula where preprocess is"),
    (csr_array(np.eye(80)), {}, TypeError, "X is sparse, and the result would not"),
])  # fmt: skip
def test_what_cannot_be_preprocessed_is_refused(X, options, error, message):
    with pytest.raises(error, match=f"^{message}"):
        ordinal.fit_svorim(X, Y, **{"preprocess": Standardizer, **options})


def columns_of(model):
    if isinstance(model, PreprocessedModel):
        return model.preprocessor.feature_names_out
    return getattr(model, "predictor", model).column_names


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_proportional_odds_leave_out_a_level_and_others_do_not(levels):
    """The thresholds are the intercepts, so that all levels together are collinear."""
    X = FRAME[["acid", "sweet"]].assign(plot=[f"p{k % levels}" for k in range(80)])
    all_of_them = tuple(f"plot[p{k}]" for k in range(levels))
    own = fit_pom(X, Y) if levels > 1 else None
    for how in (TablePreprocessor(standardize=False), TablePreprocessor()):
        with warnings.catch_warnings():
            # a column of one level is constant, which is for the caller to know
            action = "ignore" if levels == 1 else "error"
            warnings.simplefilter(action, ordinal.exceptions.CollinearColumnsWarning)
            model = fit_pom(X, Y, preprocess=how)
            found = select(fit_pom, X, Y, search=Grid(l2=[0.0]), preprocess=how, cv=2)
        for fitted in (model, found):
            names = columns_of(getattr(fitted, "model", fitted))
            assert names == ("acid", "sweet", *all_of_them[levels > 1 :])
        if own is not None:  # fit_pom's own treatment contrasts
            assert_allclose(model.predict_proba(X), own.predict_proba(X), atol=1e-9)
    for fit in (ordinal.fit_svorim, partial(ordinal.companions.fit_lat, n_threads=1)):
        model = PreprocessedModel.fit(fit, X, Y, preprocess=how)
        assert columns_of(model)[2:] == all_of_them
    assert how.fit(X).feature_names_out[2:] == all_of_them


def test_what_means_nothing_to_a_method_is_left_out():
    numbers = FRAME[["acid", "sweet"]]
    raw = select(fit_xofm, numbers, Y, search=TAU, cv=2, max_iter=5)
    assert raw.preprocessor is None
    assert 2 < raw.model.breakpoints[0].mean() < 4
    asked = select(fit_xofm, numbers, Y, search=TAU, cv=2, max_iter=5, standardize=True)
    assert isinstance(asked.preprocessor, Standardizer)
    assert abs(asked.model.model.breakpoints[0].mean()) < 1
    assert asked.model.model.feature_names == ("acid", "sweet")
    svorim = select(ordinal.fit_svorim, numbers, Y, search=Grid(C=[1.0]))
    assert isinstance(svorim.preprocessor, Standardizer)
    plain = select(ordinal.fit_svorim, numbers.to_numpy(float), Y, search=Grid(C=[1.0]))
    assert svorim.scores.tobytes() == plain.scores.tobytes()


def test_gaps_reach_the_kernel_that_takes_them():
    X = np.random.default_rng(0).normal(size=(80, 6))
    X[::9, 2] = np.nan
    options = {"search": Grid(C=[1.0, 10.0]), "standardize": False, "cv": 3}
    found = select(ordinal.fit_svorim, X, Y, kernel=kernels.Pearson(), **options)
    assert not found.failures
    with pytest.raises(ValueError, match="missing values in 'x3', and fit_svorim"):
        select(ordinal.fit_svorim, X, Y, **options)


def words_or_numbers(X, y, tau):
    assert isinstance(X, np.ndarray) != hasattr(X, "columns")
    return fit_xofm(X, y, tau=tau, max_iter=5)


def test_a_function_of_the_callers_is_given_columns_where_there_are_words():
    options = {"search": TAU, "cv": 2, "standardize": False}
    found = select(words_or_numbers, FRAME, Y, **options)
    assert found.model.feature_names == tuple(FRAME.columns)
    found = select(words_or_numbers, FRAME[["acid", "alcohol"]], Y, **options)
    assert found.model.feature_names == ("acid", "alcohol")


@pytest.mark.parametrize(("fit", "options", "error", "message"), [
    (
        ordinal.fit_svorim, {"standardize": True}, ValueError,
        "X holds categories in 'colour', 'size' and missing values in 'alcohol', "
        "'colour', and standardising takes only finite numbers: pass preprocess=",
    ),
    (ordinal.fit_gpor, {"standardize": False}, ValueError,
     "X holds categories in .*, and fit_gpor takes only finite numbers"),
    (fit_xofm, {"standardize": True}, ValueError,
     "X holds .*, and standardising takes"),
    (fit_xofm, {"standardize": 1}, ValueError, "standardize must be True"),
    (ordinal.fit_svorim, {"preprocess": True}, TypeError, "preprocess must be a T"),
    (ordinal.fit_svorim, {"preprocess": TablePreprocessor(), "standardize": True},
     ValueError, "standardize must be left out where preprocess is a"),
])  # fmt: skip
def test_an_error_says_which_column_needs_what(fit, options, error, message):
    raises(error, f"^{message}", select, fit, FRAME, Y, search=TAU, **options)


@pytest.mark.parametrize("fit", ["svorim", fit_pom, words_or_numbers])
def test_a_raw_table_is_preprocessed_by_default(fit):
    """As `compare` does, and with the same model as if it had been asked for."""
    space = TAU if fit is words_or_numbers else {"tol": [1e-2]}
    options = {"search": space, "cv": 2}
    found = select(fit, FRAME, Y, **options)
    asked = select(fit, FRAME, Y, preprocess=TablePreprocessor(), **options)
    assert_array_equal(found.scores, asked.scores)
    assert columns_of(found.model) == columns_of(asked.model)
    assert_array_equal(found.predict(FRAME), asked.predict(FRAME))
    assert found.feature_names == tuple(FRAME.columns)


def test_columns_that_nothing_takes_are_named():
    dated = FRAME.assign(day=pd.Timestamp(2020, 1, 1))
    for options in ({}, {"preprocess": TablePreprocessor()}):
        with pytest.raises(TypeError, match=r"^column 'day' of X must .*numbers of d"):
            select(fit_xofm, dated, Y, search=TAU, **options)
