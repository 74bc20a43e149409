"""Arguments that every `fit_*` takes from its callers, and refuses, over
registry.py."""

import importlib.resources
import inspect
import pickle
import pkgutil
import re
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from internals import ChunkedProblem, Problem, method_of
from numpy.testing import assert_allclose, assert_array_equal
from registry import FITS, METHODS, all_methods, every_method, marks_of, which
from scipy import sparse
from sources import Cut
from strategies import case, raises, sample

import ordinal
import ordinal.sklearn
from ordinal import inference, kernels
from ordinal._input import checks
from ordinal._input.checks import keyword_defaults
from ordinal._model.model import _ATTRIBUTES, _IN_WORDS
from ordinal._model.preparation import dense_moments, warn_of_scales
from ordinal.exceptions import UnscaledFeaturesWarning
from ordinal.preprocessing import Binning, Standardizer

PRECOMPUTED = {"kernel": "precomputed"}
X40, Y40 = sample(40, 3)
UNIT = np.linspace(-1.5, 1.5, 40)


MEANT = {
    "weights": "sample_weight", "n_jobs": "n_threads", "max_tim": "max_time",
    "verbos": "verbose",
}  # fmt: skip


def functions_with_keywords():
    """The public functions that take rows and options, or draw."""
    for module in (ordinal, ordinal.datasets, ordinal.model_selection):
        for name in dir(module):
            function = getattr(module, name)
            named = name.startswith(("fit_", "make_", "stratified_"))
            if inspect.isfunction(function) and (named or name == "conformal"):
                yield function


def test_an_unknown_keyword_argument_is_answered_by_the_one_meant():
    meant = {**MEANT, "random_state": "rng", "seed": "rng"}
    executor = r"argument 'executor': pass n_threads= .* dask .* take executor=$"
    fits = {method.fit for method in METHODS}
    for function in functions_with_keywords():
        known = inspect.signature(function).parameters
        called = rf"^{function.__name__}\(\) got an unexpected keyword argument "
        answers = {"surprise": r"lists those it has$"}
        if function in fits:
            answers["executor"] = executor
        for name, ours in meant.items():
            help = rf"did you mean {ours}=\?" if ours in known else r"help\(.*\) lists"
            answers[name] = rf"{called}'{name}'; {help}"
        for name, answer in answers.items():
            with case(function.__name__), pytest.raises(TypeError, match=answer):
                function(X40, Y40, **{name: 1})


@pytest.mark.parametrize(("method", "name", "answer"), [
    ("predict", "type", "call predict_proba, and for 'class' pass rule='mode'$"),
    ("predict", "newdata", r"did you mean X=\?$"),
    ("predict_proba", "type", "predict, predict_proba or decision_function$"),
    ("explain", "random_state", r"did you mean rng=\?$"),
    ("score", "weights", r"did you mean sample_weight=\?$"),
    ("confint", "alpha", "is 1 - level: pass level=$"),
    ("confint", "type", "is method=$"),
    ("confint", "parm", "a row per parameter, for all parameters$"),
    ("residuals", "type", "is kind=$"),
    ("predictions", "type", "is kind=$"),
    ("marginal_effects", "weights", "did you mean sample_weight=|lists those"),
])  # fmt: skip
@pytest.mark.parametrize("preprocess", [None, Standardizer], ids=["plain", "scaled"])
def test_models_answer_arguments_of_other_packages(method, name, answer, preprocess):
    model = ordinal.fit_pom(X40, Y40, preprocess=preprocess)
    said = rf"{method}\(\) got an unexpected keyword argument '{name}'.*{answer}"
    raises(TypeError, said, getattr(model, method), **{name: 1})
    if method in inference.__all__:
        raises(TypeError, said, getattr(inference, method), model, **{name: 1})


@pytest.mark.parametrize("fit", [
    partial(ordinal.fit_pom, l2=1.0),
    partial(ordinal.fit_pom, preprocess=ordinal.preprocessing.TablePreprocessor()),
    partial(ordinal.fit_svorim, preprocess=Standardizer),
    partial(ordinal.fit_boosting, n_rounds=3),
    partial(ordinal.fit_stacking, methods=["pom", "lit"]),
    partial(ordinal.select, "pom", search={"l2": [1.0, 2.0]}, cv=2),
    partial(ordinal.compare, methods=["pom"], cv=2),
    partial(ordinal.model_selection.nested, "pom", search={"l2": [1]}, outer=2, cv=2),
    ordinal.sklearn.POM().fit,
], ids="pom table kernel trees pool search all nested sklearn".split())  # fmt: skip
def test_columns_that_number_the_rows_or_hold_the_labels_are_warned_of(fit):
    table = pd.DataFrame({"ID": np.random.default_rng(0).permutation(40), "a": UNIT})
    with warnings.catch_warnings(record=True, action="default") as caught:
        fit(table, pd.Series(Y40, name="a"))
    for column, message in {"ID": "seems to identify", "a": "the name of y"}.items():
        message = rf"column '{column}'.* {message}.* as X.drop\(columns=\['{column}'\]"
        assert len([c for c in caught if re.search(message, str(c.message))]) == 1
    assert all(c.filename == __file__ for c in caught)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="column")
        fit(table.assign(ID=table["ID"] // 2), Y40)
        fit(table.rename(columns={"ID": "paid"}), Y40)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("coef_", "coef"), ("effects", "marginal_effects"), ("bse", "standard_errors"),
     ("params", "coef"), ("classes_", "classes"), ("resid", "residuals")],
)  # fmt: skip
def test_attributes_of_other_packages_are_answered_by_ours(name, meant):
    model = ordinal.fit_pom(X40, Y40)
    raises(AttributeError, rf"'{name}'; did you mean {meant}\?$", getattr, model, name)
    with pytest.raises(AttributeError, match=r"'pvalues'; model.table\(\) has them$"):
        getattr(model, "pvalues")  # noqa: B009
    found = ordinal.select("pom", X40, Y40, search={"l2": [1.0]})
    said = r"did you mean scoring=\?$"
    raises(TypeError, said, ordinal.select, "pom", X40, Y40, metric="mae")
    raises(AttributeError, r"; did you mean model.coef\?$", getattr, found, "coef_")
    raises(AttributeError, r"no attribute 'surprise'$", getattr, model, "surprise")
    penalised = ordinal.fit_pom(X40, Y40, l1=0.1)
    with pytest.raises(ordinal.exceptions.NoEstimatesError, match="l1"):
        getattr(penalised, "standard_errors")  # noqa: B009
    assert not hasattr(penalised, "standard_errors")


OF_OTHERS = {
    **dict.fromkeys(["alpha", "penalty", "lambda_"], r"l1|l2|l2_main|l2_pair|ridge|C"),
    "n_estimators": "n_rounds", "max_depth": "n_leaves", "subsample": "row_share",
}  # fmt: skip


@pytest.mark.parametrize("name", OF_OTHERS)
def test_names_of_other_packages_are_answered_by_arguments_that_the_fit_has(name):
    for method in METHODS:
        known, meant = inspect.signature(method.fit).parameters, OF_OTHERS[name]
        own = [argument for argument in known if re.fullmatch(meant, argument)]
        with case(method.name), pytest.raises(TypeError) as caught:
            method.fit(X40, Y40, **{name: 1})
        named = re.findall(r"(\w+)=", str(caught.value))
        if not own and name in ("n_estimators", "max_depth", "subsample"):
            assert str(caught.value).endswith(f"fit_boosting has it, as {meant}=")
        else:
            assert set(named) <= set(own)
            assert bool(named) == bool(own)


def test_a_level_of_verbosity_is_a_flag(capsys):
    for verbose in (0, 1, np.int64(2)):
        ordinal.fit_pom(X40, Y40, verbose=verbose)
        assert capsys.readouterr().err.startswith("fit_pom, ") == bool(verbose)
    ordinal.compare(X40, Y40, methods=["pom"], progress=0)
    for wrong in (-1, 0.5, "yes"):
        with pytest.raises(ValueError, match=r"^verbose must be True or False, "):
            ordinal.fit_pom(X40, Y40, verbose=wrong)


@pytest.mark.parametrize(("fit", "symbol", "answer"), [
    (ordinal.fit_npsvor, "C1", r"; did you mean C=\?"),
    (ordinal.fit_npsvor, "eps_rel", r"; did you mean e_rel=\?"),
    (ordinal.fit_svorim, "kappa", r": .* is 2 gamma: pass gamma=kappa / 2"),
    (ordinal.fit_gpor, "Delta", r": .* fitted, and the model has `thresholds`"),
    (ordinal.fit_gpor, "sigma", r": .* fitted, and the model has `noise`"),
    (ordinal.fit_tlssvor, "Ratio", r": .* is basis=h, the number of rows"),
    (ordinal.fit_xofm, "gamma", r": .* is n_intervals="),
    (ordinal.fit_xofm, "eta", r": .* is learning_rate= with solver='algorithm1'"),
    (ordinal.fit_xofm, "iter", r": .* is n_epochs="),
    (ordinal.fit_xofm, "Delta", r": .* is monotone=, per feature"),
    (ordinal.fit_boosting, "eta", r": it is learning_rate="),
    (ordinal.fit_svorim, "iter", r": it is max_iter="),
    (ordinal.fit_svorim, "lambda1", r"; help\(fit_svorim\) lists those it has"),
    (ordinal.metrics.mae, "classes", ": it is labels="),
    (ordinal.fit_pom, "method", ": .*is link=.*"),
    (ordinal.fit_pom, "formula", ": .* the first argument, before its data frame"),
    (ordinal.fit_pom, "subset", r": .*table\[rows\]"),
    (ordinal.fit_pom_path, "alpha", ": .*is ratio=, the share of l1"),
    (ordinal.fit_pom_path, "lambda", ": .*strength of the penalty is lambdas="),
])  # fmt: skip
def test_symbols_of_papers_and_names_of_packages_are_answered(fit, symbol, answer):
    said = rf"got an unexpected keyword argument '{symbol}'{answer}$"
    raises(TypeError, said, fit, X40, Y40, **{symbol: 1})
    glossary = Path(__file__).parents[1] / "docs/glossary.md"
    others = ordinal.fit_pom, ordinal.fit_pom_path, ordinal.metrics.mae
    if fit not in others:  # symbols of papers
        assert symbol in glossary.read_text().split("## Symbols of the papers")[1]


def test_every_hint_names_what_exists():
    modules = ordinal, ordinal.companions, inference, ordinal.model_selection
    modules += (ordinal.metrics,)
    functions = [f for m in modules for f in map(partial(getattr, m), dir(m))]
    functions += [*vars(ordinal.models.ClmmModel).values(), ordinal.plot.search]
    known = {
        name for f in functions if inspect.isfunction(f)
        for name in inspect.signature(f).parameters
    }  # fmt: skip
    needed = {name for of in checks._SYMBOLS.values() for name in of}
    assert needed | set(checks._OURS.values()) - {"separator"} <= {"", *known}
    meant = {*_ATTRIBUTES.values(), *(name for name, _ in _IN_WORDS.values())}
    kinds = [getattr(ordinal.models, name) for name in dir(ordinal.models)]
    kinds.append(ordinal.model_selection.Selection)
    assert all(any(hasattr(kind, name) for kind in kinds) for name in meant)
    # Functions are named wherever they are looked for.
    own = ordinal.sklearn.POM().fit(X40, Y40)
    for name in {*inference.__all__} - {*dir(own.model_)}:
        if name.islower() and name != "for_marginaleffects":
            for made in (own, own.model_, ordinal.fit_svorim(X40, Y40)):
                with pytest.raises(AttributeError, match=rf"inference\.{name}\(model"):
                    getattr(made, name)


def test_searches_and_paths_know_what_was_meant():
    spaces, svorim = ordinal.model_selection, ordinal.fit_svorim
    grid, by_grid = {"search": spaces.Grid(C=[1.0])}, r"'C'; .*; it can be searched by "
    by_grid += r"Grid\(l2=\[0.0001, 0.001, 0.01, 0.1"
    given = svorim, X40, Y40
    for call, arguments, options, message in [
        (spaces.select, given, {"random_state": 1, **grid}, r"did you mean rng=\?$"),
        (spaces.nested, given, {"random_state": 1, **grid}, r"did you mean rng=\?$"),
        (ordinal.fit_pom, ["y ~ x"], {"data": None},
         "'data': a data frame is the second argument"),
        (svorim, [], {"data": None}, "'data': features are X .* those of fit_pom"),
        (svorim, ["y ~ x", X40], {}, "'y ~ x': fit_pom, .* read formulas"),
        (ordinal.compare, [X40, Y40], {"tol": 1.0},
         r"pass functools.partial\(fit, tol=...\)"),
        (ordinal.sklearn.SVORIM, [], {"n_jobs": 1}, r"did you mean n_threads=\?$"),
        (ordinal.cross_conformal, given, {"weights": np.ones(40)},
         r"'weights'; did you mean sample_weight=\?$"),
        (ordinal.fit_npsvor_path, [X40, Y40], {"preprocess": Standardizer},
         r"Standardizer .* pass its transform\(X\)$"),
        *[(spaces.select, [ordinal.fit_pom, X40, Y40], {"search": space}, by_grid)
          for space in (spaces.UniformDesign(gamma=(0.1, 1.0)), spaces.CoarseToFine())],
    ]:  # fmt: skip
        raises((TypeError, ValueError), message, call, *arguments, **options)


@every_method
def test_functions_stay_what_type_checkers_and_pickle_see(method):
    fit = method.fit
    assert pickle.loads(pickle.dumps(fit)) is fit
    assert fit.__name__ in fit.__doc__
    assert inspect.signature(fit) == inspect.signature(inspect.unwrap(fit))
    for name in {"max_time", "tol"} & inspect.signature(fit).parameters.keys():
        default = inspect.signature(fit).parameters[name].default
        assert keyword_defaults(fit)[name] == default


ARRAYS = {  # of the arguments that hold numbers: arrays that a fit may be given
    "basis": [X40[::4], np.arange(0, 40, 4)],
    "categorical": [np.array([], np.int64)],
    "classes": [np.arange(4)],
    "cluster": [np.arange(40) % 8],
    "cost": [np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))],
    "groups": [],  # only where rows are held out
    "in_order": [X40[::4]],
    "interactions": [np.array([[0, 2], [1, 1]])],
    "monotone": [np.array([1, 0, -1])],
    "n_intervals": [np.array([3, 4, 5])],
    "nominal": [],  # a sequence of columns, which an array is not
    "offset": [np.linspace(0.0, 1.0, 40)],
    "sample_weight": [np.ones(40)],
    "scale": [],
    "X": [X40],
    "y": [Y40],
}


def array_arguments():
    """Yield every method with each of its array arguments."""
    for method in METHODS:
        for name, parameter in inspect.signature(method.fit).parameters.items():
            kind = str(parameter.annotation)
            arrays = re.search("ArrayLike|AnyBasis|Sequence|Matrix|ndarray", kind)
            if (not arrays and name not in ARRAYS) or name in method.foreign:
                continue
            for k, array in enumerate(ARRAYS[name]):
                if name != "basis" or k or method.variant.get("solver") != "admm":
                    of_few = "X", "y", "basis", "classes", "cost", "sample_weight"
                    marks = marks_of(method) if name in of_few else ()
                    case = f"{method}-{name}-{k}"
                    yield pytest.param(method, name, array, id=case, marks=marks)


@pytest.mark.parametrize(("method", "name", "array"), list(array_arguments()))
def test_an_array_argument_stays_the_callers(method, name, array):
    given = array.copy()
    view = given[:]  # could still be written to if `given` itself became read-only
    model = method(**{"X": X40, "y": Y40, name: given})
    numbers = method.numbers(model, given if name == "X" else X40)
    labels = model.predict(given if name == "X" else X40)
    assert_array_equal(given, array)
    assert given.flags.writeable
    view[...] = 7
    assert_array_equal(method.numbers(model, X40), numbers)
    assert_array_equal(model.predict(X40), labels)


CONSTRUCTORS = {  # name: (made of an array, what it computes)
    "ARD": (kernels.ARD, lambda k: k(X40, X40)),
    "LinearARD": (kernels.LinearARD, lambda k: k(X40, X40)),
    "mean": (lambda a: Standardizer(a, np.ones(3)), lambda s: s.transform(X40)),
    "scale": (lambda a: Standardizer(np.ones(3), a), lambda s: s.transform(X40)),
    "edges": (Binning, lambda b: b.transform(X40.ravel())),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_an_array_of_a_constructor_stays_the_callers(name):
    make, values = CONSTRUCTORS[name]
    given = np.array([0.5, 1.0, 2.0])
    view = given[:]
    made = make(given)
    assert given.flags.writeable
    before = values(made)
    view[...] = 7
    assert_array_equal(values(made), before)


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


FORMS = {
    "lists": lambda a: a.tolist(),
    "read-only": read_only,
    "column by column": np.asfortranarray,
    "every other": lambda a: (
        np.repeat(np.repeat(a, 2, 0), 2, -1)[::2, ..., ::2]
        if a.ndim == 2
        else np.repeat(a, 2)[::2]
    ),
    "backwards": lambda a: a[::-1].copy()[::-1],
    "other bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "long": lambda a: a.astype(np.longdouble) if a.dtype.kind == "f" else a,
    "unaligned": lambda a: np.frombuffer(b"0" + a.tobytes(), a.dtype, offset=1).reshape(
        a.shape
    ),
}


@every_method
def test_the_form_and_the_type_of_an_array_do_not_matter(method):
    weight = 1.0 + np.arange(40) % 2
    a = method(X40, Y40, sample_weight=weight)
    for name, form in FORMS.items():
        given = [form(array) for array in (X40, Y40, weight)]
        b = method(given[0], given[1], sample_weight=given[2])
        assert_array_equal(method.numbers(a, X40), method.numbers(b, given[0]), name)
    for dtype in (np.float32, np.int8, np.uint64, bool):
        X = (np.abs(3 * X40) if dtype is not bool else X40 > 0).astype(dtype)
        a, b = method(X, Y40), method(X.astype(float), Y40)
        f = method.numbers(b, X.astype(float))
        assert_array_equal(method.numbers(a, X), f, str(dtype))


@every_method
def test_sparse_rows_are_dense_rows(method):
    if "sparse" not in method_of(method.fit).accepts or method.composed:
        return  # members of the latter have dense features scaled
    X = np.where(np.abs(X40) > 0.7, X40, 0.0)
    kernel = method.can("kernel")
    options = {"kernel": kernels.RBF(0.3)} if kernel else dict(method.precise or {})
    dense = method.cut_short(X, Y40, **options)
    f = method.numbers(dense, X)
    for make in (sparse.csr_array, sparse.csr_matrix):
        model = method.cut_short(make(X), Y40, **options)
        if kernel:
            assert_array_equal(model.support.dense()[:0], dense.support[:0])
        for rows in (make(X), X):
            # the sums over a row are of other terms
            assert_allclose(method.numbers(model, rows), f, rtol=2e-3, atol=2e-3)
        assert_array_equal(model.predict(make(X)), model.predict(X))


X2, Y2 = [[0.0], [1.0]], [0, 1]
COLUMN = np.arange(2.0)[:, None]
WORDS = [["a"], ["b"]]
BAD = [  # (X, y, options, error, message)
    (WORDS, Y2, {}, TypeError, r"^column 0 of X must hold real.*'a' in row 0"),
    (np.empty((0, 2)), [], {}, ValueError, r"^X must be 2-dim.*, got shape \(0, 2\)"),
    (np.empty((2, 0)), Y2, {}, ValueError, r"^X must be 2-dim.*, got shape \(2, 0\)"),
    ([0.0, 1.0], Y2, {}, ValueError, r"^X must be 2-dimensional .*got shape \(2,\)"),
    ([[[0.0]], [[1.0]]], Y2, {}, ValueError, r"^X must be 2-dim.*got shape \(2, 1, 1"),
    ([[0.0], [1.0, 2.0]], Y2, {}, ValueError, "^X is not an array: "),
    ([[0.0], [np.inf]], Y2, {}, ValueError, "^X must be finite.*; first bad row is 1"),
    (COLUMN * 1j, Y2, {}, TypeError, "^X must hold real numbers, got dtype complex128"),
    (np.ma.masked_less(COLUMN, 1), Y2, {}, TypeError, "^X is a masked array: fill or"),
    (X2, [4, 4], {}, ValueError, r"^y needs at least 2 classes .*, got \[4\]$"),
    (X2, [0, 1, 2], {}, ValueError, r"^y has shape \(3,\), expected \(2,\) as X$"),
    (X2, [[0], [1]], {}, ValueError,
     r"^y must be 1-dimensional, got shape \(2, 1\): pass one label each$"),
    (X2, [1j, 0], {}, TypeError, "^y must hold integers or strings, got dtype complex"),
    (X2, np.ma.array(Y2, mask=[0, 1]), {}, TypeError, "^y is a masked array"),
    (X2, pl.Series(["a", "b"], dtype=pl.Categorical), {}, TypeError,
     "^y is an unordered categorical"),
    (X2, Y2, {"classes": 3}, ValueError, r"^classes must be 1-dimensional"),
    (X2, Y2, {"sample_weight": [1, -1]}, ValueError, "^sample_weight .*-1.0 in row 1"),
    (X2, Y2, {"sample_weight": [1, np.nan]}, ValueError, "^sample_weight.* in row 1"),
    (X2, Y2, {"sample_weight": [1]}, ValueError, r"^sample_weight has shape \(1,\)"),
    (X2, Y2, {"sample_weight": ["a", "b"]}, TypeError, "^sample_weight must "),
    (X2, Y2, {"sample_weight": [1, 0]}, ValueError,
     r"^y needs at least 2 classes with"),
    (X2, Y2, {"sample_weight": [0, 0]}, ValueError, "^sample_weight must not be zero"),
    (X2, Y2, {"rng": "x"}, ValueError, "^rng must be None, an integer .*, got 'x'$"),
    (X2, Y2, {"callback": 1}, TypeError, "^callback must be callable or None, got 1$"),
    (X2, Y2, {"class_weight": {2: 1.0}}, ValueError, "^class_weight names 2"),
    (X2, Y2, {"class_weight": {0: -1.0}}, ValueError,
     r"^class_weight\[0\] must be .*, got -1.0$"),
    (X2, Y2, {"class_weight": "even"}, (ValueError, TypeError), "^class_weight"),
    (X2, Y2, {"class_weight": {0: 0.0}}, ValueError,
     r"y needs at least 2 classes with .*, got \[1\]"),
    (X2, Y2, {"probability": True}, ValueError, "a class with 2 rows or more"),
    (X2, Y2, {"cost": np.zeros((3, 3))}, ValueError,
     r"^cost has shape \(3, 3\), expected \(2, 2"),
    (X2, [0, 2], {"classes": range(3), "cost": [[0, 2, 1], [1, 0, 1], [2, 1, 0]]},
     ValueError, "must not fall with the distance .* row 0"),
    (X2, Y2, {"kernel": "rbf", "gamma": 0.0}, ValueError,
     "^gamma must be a positive finite number"),
    (X2, Y2, {"kernel": "rbf", "gamma": "wide"}, ValueError,
     "^gamma must be one of 'scale', 'auto'"),
    (X2, Y2, {"kernel": "linear", "gamma": 1.0}, ValueError, "no effect"),
]  # fmt: skip


def two_rows(method):
    """Return two rows, each often enough for folds of a composed method."""
    times = 10 if method.composed else 1
    return np.repeat(X2, times, axis=0), np.repeat(Y2, times)


@pytest.fixture
def calls():
    """Return the function that was called, if any, by `watched` functions."""
    return []


def watched(method, calls):
    """Options whose functions note that something is computed."""

    def kernel(A, B):
        calls.append("kernel")
        return A @ B.T

    if method.composed:
        return {}
    options = {"callback": lambda state: calls.append("callback")}
    if method.can("kernel"):
        options["kernel"] = kernel
    return options


@every_method
def test_data_that_cannot_be_used_is_refused_with_the_reason(method, calls):
    for X, y, options, error, message in BAD:
        if not options.keys() <= inspect.signature(method.fit).parameters.keys():
            continue  # such as rng of a method that draws nothing
        if X is WORDS and "categories" in method_of(method.fit).accepts:
            continue
        if X is X2 and y is Y2 and "sample_weight" not in options:
            X, y = two_rows(method)
        options = {**method.variant, **watched(method, calls), **options}
        raises(error, message, method.fit, X, y, **options)
        assert calls == [], message


# Numbers that the rule for positive ones refuses, of finite ones and of counts
NOT_POSITIVE = dict.fromkeys(
    ["tol", "max_time", "cache_mb", "C"], ("finite number", [0, np.inf, "1", True])
)
NOT_POSITIVE |= dict.fromkeys(
    ["max_iter", "n_threads"], ("integer", [0, 1.5, "2", True, 2**63])
)


@all_methods
def test_every_argument_refuses_what_is_no_value_of_it_by_its_name(method, calls):
    for name, parameter in inspect.signature(method.fit).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            no_number = [-1] if name != "start" else []  # which ADMM takes
            kind, more = NOT_POSITIVE.get(name, ("", []))
            rule = f" must be a positive {kind}, got " if kind else ""
            rule = " is for " if name in method.foreign else rule
            for value in (*no_number, np.nan, object(), *more):
                options = {**method.variant, **watched(method, calls), name: value}
                with (
                    case(f"{name}={value}"),
                    pytest.raises((TypeError, ValueError), match=f"^{name}{rule}"),
                ):
                    method.fit(*two_rows(method), **options)
            assert calls == [] or name in ("prior", "start")  # which need the rows
            calls.clear()


@which(takes="kernel")
def test_kernels_that_make_no_sense_are_refused(method):
    for kernel, error, message in [
        ("gaussian", ValueError, "^kernel must be one of 'rbf'.*; did you mean 'rbf'"),
        (3, TypeError, "^kernel must be a name or a callable"),
        (kernels.RBF, TypeError, "^kernel must be a name or a callable"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), ValueError, "must be finite"),
        (lambda A, B: np.ones(len(A)), ValueError, "shape"),
        (lambda A, B: 1j * np.ones((len(A), len(B))), TypeError, "real numbers, got d"),
    ]:
        raises(error, message, method, X40, Y40, kernel=kernel)
    with pytest.raises(TypeError, match=r"^CSR rows need a kernel by name that"):
        method(sparse.csr_array(X40), Y40, kernel=lambda A, B: A @ B.T)
    K = kernels.RBF(0.3)(X40, X40)
    uneven = K.copy()
    uneven[0, 1] += 1
    for X, error, message in [
        (K[:, :3], ValueError, "^X must be square with kernel='precomputed'"),
        (uneven, ValueError, "^X must be symmetric with kernel='precomputed'"),
        (sparse.csr_array(K), TypeError, "^X must be a dense matrix with kernel='prec"),
    ]:
        raises(error, message, method, X, Y40, **PRECOMPUTED)
    broken = []
    model = method(X40, Y40, kernel=lambda A, B: A @ B.T * (np.nan if broken else 1))
    model.predict(X40)
    broken.append(True)
    raises(ValueError, "kernel values must be finite", model.predict, X40)
    model = method(kernels.RBF(0.3)(X40, X40), Y40, **PRECOMPUTED)
    diagonal = {"diagonal": np.ones(3)} if method.needs_diagonal else {}
    with pytest.raises(ValueError, match=r"X has 3 features, .* was fitted on 40"):
        model.predict(np.eye(3), **diagonal)


def row_calls(method, model):
    """Every function of the model that takes rows."""
    names = ["predict", "predict_proba", method.decision]
    return [getattr(model, name) for name in dict.fromkeys(names)]


@every_method
def test_new_rows_are_checked_by_every_prediction(method):
    probable = {"probability": True} if method.can("probability") else {}
    for call in row_calls(method, method(X40, Y40, **probable)):
        for X, error, message in [
            (X40[:, :2], ValueError, "^X has 2 features, the model was fitted on 3"),
            (X40[0], ValueError, r"^X must be 2-dimensional.*X\.iloc\[\[0\]\]"),
            (X40[:, :0], ValueError, "^X must be 2-dimensional and non-empty"),
            ([[0.0] * 3, [np.inf] * 3], ValueError, "^X must be finite.*bad row is 1"),
            ([["a", "b", "c"]], TypeError, "^column 0 of X must hold real.*, got 'a'"),
            ([[1j] * 3], TypeError, "^X must hold real numbers"),
            ([[np.inf, None, 0.0]], ValueError, "^X must be finite.*bad row is 0"),
            (np.ma.array(X40, mask=X40 > 0), TypeError, "^X is a masked array"),
            ([*np.ma.array(X40, mask=X40 > 0)], TypeError, "^X is a masked array"),
        ]:
            raises(error, message, call, X)


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


@every_method
def test_predictions_of_no_rows_are_empty(method):
    probable = {"probability": True} if method.can("probability") else {}
    frame = pd.DataFrame(X40, columns=["a", "b", "c"])
    model = method.cut_short(frame, Y40, **probable)
    for call in row_calls(method, model):
        some = as_tuple(call(X40[:2]))
        empty = [[], X40[:0], frame[:0]]
        if "sparse" in method_of(method.fit).accepts and not method.composed:
            empty.append(sparse.csr_array(X40[:0]))
        for X in empty:
            for expected, found in zip(some, as_tuple(call(X)), strict=True):
                assert found.dtype == expected.dtype
                assert found.shape == (0, *expected.shape[1:])
    (labels,) = ordinal.data.predictions(model, X40[:0])
    assert labels.dtype == model.classes.dtype
    assert labels.shape == (0,)


def public_callables():
    """Yield the public functions, classes and methods, each under one of its names."""
    named = [module.name for module in pkgutil.iter_modules(ordinal.__path__)]
    modules = [import_module(f"ordinal.{name}") for name in named if name[0] != "_"]
    found = {}
    for module in (ordinal, *modules):
        for name in dir(module):
            thing = getattr(module, name)
            if inspect.isclass(thing):
                found.setdefault(thing, name)
                for method, function in vars(thing).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        found.setdefault(function, f"{name}.{method}")
            elif inspect.isfunction(thing):
                found.setdefault(thing, name)
    return [(name, thing) for thing, name in found.items()]


def test_every_public_function_and_method_answers_unknown_arguments():
    asked = [
        ordinal.preprocessing.TablePreprocessor, ordinal.model_selection.UniformDesign,
        ordinal.sklearn.TableTransformer, ordinal.sklearn.RankEncoder,
        ordinal.sklearn.OrdinalDecomposition, ordinal.sklearn.SVORIM,
    ]  # fmt: skip
    for _, function in public_callables():
        if inspect.isfunction(function):
            known = dict(inspect.signature(function).parameters)
            known.pop("self", None)
            named = all(p.kind is not p.VAR_KEYWORD for p in known.values())
            asked += [function] * bool(known and named)
    for function in asked:
        with (
            case(str(function)),
            pytest.raises(TypeError, match=r"lists those it has$"),
        ):
            function(surprise=1)


def test_the_public_interface_is_annotated_documented_and_short():
    for name, function in public_callables():
        assert inspect.getdoc(function), name
        if inspect.isclass(function):
            continue
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.name != "self":
                assert parameter.annotation is not parameter.empty, (name, parameter)
        assert signature.return_annotation is not signature.empty, name
    # evaluated annotations would show the types behind `ArrayLike`, and rules
    known = public_callables()
    assert len(known) > 300
    for name, thing in known:
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue  # of C
        shown = str(inspect.signature(thing))
        assert len(shown) < 1000, name
        assert "numpy._typing" not in shown, name
        assert "Annotated[" not in shown, name
    assert (importlib.resources.files("ordinal") / "py.typed").is_file()


@all_methods
def test_options_and_models_are_documented(method):
    doc = inspect.getdoc(method.fit)
    for section in ("Parameters", "Returns", "Raises", "Warns", "Examples"):
        assert re.search(rf"^{section}\n-+$", doc, re.M), section
    assert ">>> " in doc
    assert method.model.__name__ in doc
    # SVOREX and its kin send the reader to fit_svorim for what they share
    known = doc
    for name in re.findall(r"`(fit_\w+)`", doc):
        known += inspect.getdoc(FITS[name])
    for name in inspect.signature(method.fit).parameters:
        assert re.search(rf"^(\w+, )*{name}(, \w+)* :", known, re.M), name
    for name in ("predict", "predict_proba", method.decision):
        function = getattr(method.model, name)
        doc = inspect.getdoc(function)
        assert doc
        for parameter in inspect.signature(function).parameters:
            if parameter != "self":
                assert re.search(rf"^(\w+, )*{parameter}(, \w+)* :", doc, re.M), name
    assert "Attributes" in inspect.getdoc(method.model)


def large_column(factor=1000.0):
    X = pd.DataFrame(X40, columns=["age", "rooms", "income"])
    return X.assign(income=factor * X["income"])


@every_method
def test_kernels_warn_of_features_in_much_larger_units(method):
    """Kernels add features up; networks standardise them, and ARD learns weights."""
    kernel = method.variant.get("kernel", "rbf" if method.can("kernel") else None)
    X = large_column()
    with warnings.catch_warnings(record=True, action="ignore") as caught:
        warnings.simplefilter("always", ordinal.exceptions.UnscaledFeaturesWarning)
        method(X, Y40, **method.brief)
    assert len(caught) == (kernel in ("rbf", "linear", "polynomial"))
    for warning in caught:
        text = str(warning.message)
        assert text.startswith(f"{method.fit.__name__}: X has features in much larger")
        assert "'income' (standard deviation up to 830, " in text
        assert "'age'" not in text
        assert "preprocess=ordinal.preprocessing.Standardizer" in text
        assert warning.filename == __file__.replace("test_methods_input", "registry")


ORDINARY = {
    "30 times": np.column_stack([UNIT, UNIT, 29.9 * UNIT]),
    "rare indicators": np.column_stack([UNIT, np.eye(40)[:, :5], -np.eye(40)[:, 5:9]]),
    "rare, centred": np.column_stack([UNIT, np.eye(40)[:, :5] - 1 / 40]),
    "constant": np.column_stack([UNIT, np.full((40, 3), 0.1), 20 * UNIT]),
    "one": 1e9 * UNIT[:, None],
    "one value": np.ones((40, 3)),
    "largest doubles": np.column_stack([1e300 * UNIT, 2e300 * UNIT]),
    "sparse": sparse.csr_array(np.column_stack([UNIT, 1000 * UNIT])),
}


@pytest.mark.parametrize("X", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_features_are_not_warned_of(X):
    problem = Problem.from_arrays(X, np.arange(40) % 2)
    if (moments := dense_moments(problem)) is not None:
        warn_of_scales("fit_svorim", problem, moments)  # warnings are errors here


@pytest.mark.parametrize(("X", "named"), [
    (np.column_stack([UNIT, UNIT, 30.1 * UNIT]), "'x3'"),
    (np.column_stack([1e-3 * UNIT, UNIT]), "'x2'"),
    (np.column_stack([np.eye(40)[:, :3], 20 * UNIT, 30 * UNIT]), "'x4', 'x5'"),
    (np.column_stack([1e-300 * UNIT, 1e300 * UNIT]), "'x2'"),
])  # fmt: skip
def test_features_beyond_30_medians_are_warned_of(X, named):
    y = np.arange(40) % 2
    said = []
    for problem in (
        Problem.from_arrays(X, y), ChunkedProblem.from_source(Cut([7, 20], X, y))
    ):  # fmt: skip
        with pytest.warns(UnscaledFeaturesWarning) as caught:
            warn_of_scales("fit_svorim", problem, dense_moments(problem))
        said.append(str(caught[0].message))
    assert re.search(rf"others.*: {named} \(", said[0])
    assert said[1] == said[0]


def test_the_warning_is_of_rows_with_weight_and_its_remedy_helps():
    X, weight = X40.copy(), np.ones(40)
    X[3], weight[3] = (1e6, 0.0, 0.0), 0.0
    ordinal.fit_svorim(X, Y40, sample_weight=weight)
    with pytest.warns(UnscaledFeaturesWarning, match="'x1'"):
        ordinal.fit_svorim(X, Y40)
    model = ordinal.fit_svorim(large_column(), Y40, preprocess=Standardizer)
    scaled = Standardizer.fit(X40).transform(X40)
    expected = ordinal.fit_svorim(scaled, Y40).predict(scaled)
    assert_array_equal(model.predict(large_column()), expected)


@pytest.mark.parametrize(
    "kernel",
    [kernels.ARD([1.0, 1.0, 1e-6]), kernels.LinearARD([1.0, 1.0, 1e-6]), "precomputed"],
)
def test_kernels_with_scales_of_their_own_are_not_warned_of(kernel):
    X = large_column().to_numpy()
    if kernel == "precomputed":
        X = X @ np.diag([1.0, 1.0, 1e-6]) @ X.T
    ordinal.fit_svorim(X, Y40, kernel=kernel)
