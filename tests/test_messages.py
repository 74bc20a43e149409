"""Tests of the form of a caller's values in messages."""

import datetime
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from strategies import raises

import ordinal
import ordinal.sklearn
from ordinal import kernels
from ordinal._input import checks
from ordinal._input.checks import check_positive, listed, shown
from ordinal.comparison import wilcoxon, win_draw_loss
from ordinal.model_selection import (
    CoarseToFine,
    Grid,
    UniformDesign,
    centred_discrepancy,
    gamma_range,
    select,
    stratified_holdout,
    stratified_kfold,
)
from ordinal.preprocessing import Binning, Standardizer

X, y = ordinal.datasets.make_gaussians(10, rng=0)
LARGE = 10**400  # an integer that no double holds
LONG, DIGITS = "x" * 5000, 10**5000
TWO = np.array([1, 2])


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(("value", "text"), [
    (1.5, "1.5"),
    ("a'b", '"a\'b"'),
    ("x" * 78, f"'{'x' * 78}'"),
    ("x" * 79, f"'{'x' * 76}..."),
    (10**400, f"1{'0' * 76}..."),
    (10**5000, "<int>"),  # Python does not print that many digits
    (np.eye(2), "array([[1., 0.], [0., 1.]])"),
    (Unprintable(), "<Unprintable>"),
    (ordinal.fit_pom(X, y, l2=1.0), "PomModel"),  # without its fields
], ids=[
    "float", "quotes", "80", "81", "int", "huge int", "lines", "error", "model",
])  # fmt: skip
def test_a_value_is_shown_on_one_line_of_80_characters(value, text):
    assert len(text) <= 80
    with pytest.raises(ValueError, match=r"^max_iter must be") as caught:
        fit(max_iter=value)
    assert str(caught.value) == f"max_iter must be a positive integer, got {text}"


def test_lists_are_cut_short():
    assert listed([]) == "[]"
    assert listed(range(11)) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]"
    assert listed(["a" * 99, "b"]) == f"['{'a' * 76}..., 'b']"
    assert listed(["x" * 78] * 4) == f"[{', '.join(3 * [repr('x' * 78)])}, ...]"
    assert listed([1, 2, 3], 2) == "[1, 2, ...]"
    assert checks.enumerated(range(11)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..."
    assert checks.shortened(" a\n  b \n") == "a b"
    assert len(listed([str(k) * 99 for k in range(9)])) <= 260


def search(**options):
    options = {"cv": 2, **options}
    return select(ordinal.fit_svorim, X, y, search=Grid(C=[1.0]), **options)


def splits(*given):
    return select(ordinal.fit_svorim, X, y, search=Grid(C=[1.0]), cv=given)


def fit(**options):
    return ordinal.fit_svorim(X, y, **options)


def elmor_values(outputs):
    return ordinal.companions.fit_elmor(X, y, n_hidden=2).rank_values(outputs)


def to_rank(values):
    return Binning([1.0, 2.0]).transform(values)


path, gpor = (partial(fit, X, y) for fit in (ordinal.fit_npsvor_path, ordinal.fit_gpor))
xofm, tls = (partial(fit, X, y) for fit in (ordinal.fit_xofm, ordinal.fit_tlssvor))
FAILED = "no point could be fitted: TypeError: scoring must return a number, got "


@pytest.mark.parametrize(("call", "arguments", "error", "message"), [
    (CoarseToFine, {"fine": "no"}, ValueError, "fine must be True or False"),
    (Grid, {"C": np.array(5)}, ValueError, "C must be a sequence of values"),
    (Grid, {LONG: 5}, ValueError, "xxx"),
    (UniformDesign, {"others": {"C": (0, 1)}}, ValueError, "others must name"),
    (UniformDesign, {"others": {LONG: 5}}, ValueError, "xxx"),
    (centred_discrepancy, {"points": [["a"]]}, TypeError, "points must hold real"),
    (centred_discrepancy, {"points": [[2.0]]}, ValueError, "points must be in "),
    (gamma_range, {"X": X, "quantile": "a"}, ValueError, "quantile must be a num"),
    (stratified_kfold, {"y": [1, "a", 2, "b", 1]}, TypeError, "y must hold labels"),
    (stratified_kfold, {"y": [1, pd.NA]}, ValueError, "y has no label in row 1$"),
    (stratified_kfold, {"y": [[1], [2, 3]]}, ValueError, "y is not an array: "),
    (stratified_kfold, {"y": y, "n_splits": DIGITS}, ValueError, "n_splits must"),
    (search, {"cv": True}, ValueError, "cv must be a positive integer, got True"),
    (search, {"cv": 31}, ValueError,
     "rows, 30, got 31: pass fewer folds, or more rows$"),
    (stratified_holdout, {"y": y, "n_splits": 10**18}, ValueError, "must be at most"),
    (stratified_holdout, {"y": y, "test_size": DIGITS}, ValueError, "test_size=<i"),
    (splits, {"": ([[1], [2, 3]], [1])}, ValueError, r"cv\[0\] is not an array: "),
    (search, {"scoring": lambda a, b: TWO, "greater_is_better": True}, ValueError,
     FAILED + "array"),
    (search, {"scoring": lambda a, b: DIGITS, "greater_is_better": True},
     ValueError, FAILED + "<int> of <la"),
    (search, {"greater_is_better": TWO}, ValueError, "greater_is_better must be T"),
    (search, {"refit": TWO}, ValueError, "refit must be True, False or 'one_se'"),
    (search, {LONG: 1}, TypeError, "unexpected keyword argument 'xxx"),
    (fit, {"callback": lambda _: pd.DataFrame({"a": [1]})}, TypeError,
     "callback must return True, False or None, got +a 0"),
    (fit, {"class_weight": {LONG: 1}}, ValueError, "class_weight names 'xxx"),
    (fit, {"classes": [LONG, LONG]}, ValueError, "classes must be distinct, got "),
    (path, {"points": 1.0}, TypeError, "points must be a sequence of mappings"),
    (gpor, {"n_restarts": TWO}, ValueError, r"must be an integer >= 0, got array"),
    (gpor, {"prior": TWO}, ValueError, "prior must be 'weak', a mapping or None"),
    (xofm, {"monotone": {"x1": TWO}}, ValueError, "of 'x1' must be -1, 0 or 1"),
    (tls, {"basis": [[1], [2, 3]]}, ValueError, "basis is not an array: "),
    (ordinal.load, {"path": [LONG]}, TypeError, r"path must be a path, got \['xxx"),
    (search, {"store": 5}, TypeError, "store must be a path, got 5"),
    (win_draw_loss, {"scores": np.array(5)}, TypeError, "scores must be a sequenc"),
    (Binning.equal_frequency, {"values": [1, 2, 2], "n_bins": 2**60}, ValueError,
     "ties leave only 2 distinct bins"),
    (lambda rows: ordinal.kernels.ARD([1.0, 2.0])(rows, rows),
     {"rows": scipy.sparse.csr_matrix(X)}, TypeError,
     "the ARD kernels need dense rows, got"),
    (to_rank, {"values": [1j]}, TypeError, "values must hold real numbers, got 1j"),
    (to_rank, {"values": ["1.5"]}, TypeError, "values must hold real numbers"),
    (to_rank, {"values": [10**400]}, ValueError, "finite, got inf in row 0"),
])  # fmt: skip
def test_a_bad_argument_is_named(call, arguments, error, message):
    given = arguments.pop("", None)
    with pytest.raises(error, match=message) as caught:
        call(*([] if given is None else [given]), **arguments)
    assert len(str(caught.value)) <= 300
    assert not re.search("x{80}", str(caught.value))


@pytest.mark.parametrize(
    "C",
    [5, (1, 2, 3), "ab", (0.5, 1), (0, np.inf), (0, LARGE), range(10**12), np.array(5)],
)
def test_powers_of_ten_are_two_whole_exponents(C):
    raises(ValueError, r"^C must be two whole powers of ten, ", CoarseToFine, C=C)


def test_exponents_and_labels_may_be_of_any_type():
    space = CoarseToFine(C=np.array([0.0, 1.0]), kappa=(2, 2))
    assert space == CoarseToFine(C=(0, 1), kappa=(2, 2))
    assert space.size == 82
    assert len(next(space.stages(None))) == 2
    days = pd.to_datetime(["2020-01-01", "2020-01-02"] * 4).to_numpy()
    texts = np.array(["a", "b"] * 4, dtype=object)
    for labels in (days, texts, texts.tolist(), pd.Series(texts), [True, False] * 4):
        test = stratified_kfold(labels, 2)[0][1]
        assert test.tolist() == stratified_kfold([0, 1] * 4, 2)[0][1].tolist()


@pytest.mark.usefixtures("counted_clock")
def test_restarts_are_not_drawn_before_their_time():
    # the first search needs some hundred looks at the clock
    model = ordinal.fit_gpor(X, y, n_restarts=10**15, max_time=1000.0)
    assert model.convergence.converged  # the first one


NOT_NUMBERS = ["x", "1", None, True, np.True_, 1j, np.ones(1), np.array(1.0), [1]]
NOT_FINITE = [np.nan, np.inf, -np.inf, np.float32("inf"), LARGE]


@pytest.mark.parametrize(("check", "rule", "good", "bad"), [
    (check_positive, "a positive finite number",
     [1, 0.5, np.float32(2), np.int64(3), 1e-300],
     [0, -1, -0.0, *NOT_NUMBERS, *NOT_FINITE]),
    (checks.check_nonnegative, "a finite number >= 0", [0, 1, np.float32(2)],
     [-1, -1e-300, *NOT_NUMBERS, *NOT_FINITE]),
    (checks.check_finite, "a finite number", [-1, 0], [np.inf]),
    (checks.check_factor, "between 1e-50 and 1e+50", [1e-50, 1, 1e50], [1e51]),
    (checks.check_factor, "a positive finite number", [], [0]),
    (checks.check_factor_or_zero, "between 1e-50 and 1e+50", [0, 1e-50, 1, 1e50],
     [9e-51]),
    (checks.check_factor_or_zero, "a finite number >= 0", [], [-1]),
    (checks.check_share, "a number between 0 and 1", [0.5], [1]),
    (checks.check_count, "a positive integer", [1, np.int32(3), 2**63 - 1],
     [0, -1, 2.5, 2.0, 2**63, *NOT_NUMBERS, *NOT_FINITE]),
    (partial(checks.check_count, least=2), "an integer >= 2", [2], [1]),
    (checks.check_flag, "True or False", [True, np.False_], [0, 1, "True", None]),
    (partial(checks.check_choice, allowed=("a", None)), "one of 'a', None", ["a", None],
     ["b", "", 1, ["a"], np.array(["a", "b"])]),
    (checks.as_path, "a path", [], [5]),
])  # fmt: skip
def test_checks_return_plain_values_or_say_the_whole_rule(check, rule, good, bad):
    for value in good:
        checked = check("C", value)
        assert checked is None or checked == value
        assert type(checked) in (type(None), int, float, bool)
    for value in bad:
        with pytest.raises((ValueError, TypeError)) as caught:
            check("C", value)
        assert str(caught.value) == f"C must be {rule}, got {shown(value)}"


DROP = ": drop the rows without a label, or pass missing_labels='drop'"
STEPS = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
ROW = "every row of cost must"


def costs(row, column, value):
    cost = np.array(STEPS, float)
    cost[row, column] = value
    return {"y": [0, 1, 2], "X": np.eye(3), "cost": cost}


@pytest.mark.parametrize(("given", "message"), [
    ({"y": ["a", None]}, f"y has no label in row 1{DROP}"),
    ({"y": [7, None]}, f"y has no label in row 1{DROP}"),
    ({"y": ["a", 1]}, "y must hold integers or strings, got int 1 in row 1: "
     "pass their text, as astype(str) makes it, and classes= in rank order"),
    ({"y": [0, np.nan]}, f"y holds nan in row 1{DROP}"),
    ({"y": [0, np.inf]}, "y holds inf in row 1"),
    ({"y": "rating"},
     "y must be a sequence of labels, got the string 'rating': pass the column "
     "of the table, such as table['rating']"),
    ({"classes": "value"},
     "classes must be labels in rank order, or 'values' for a rank per distinct "
     "number, got 'value'"),
    ({"classes": [1, 1, 0, 2]}, "classes must be distinct, got [1] more than once"),
    ({"y": ["b", "a"]},
     "y holds strings, whose order is not known: pass classes= with the labels "
     "['a', 'b'] in rank order, the lowest first"),
    ({"y": pd.Series(["10", "9"], dtype="category")},
     "y is an unordered categorical: make it ordered (pandas) or an Enum "
     "(polars), or pass classes= with the labels ['9', '10'] in rank order, the "
     "lowest first"),
    ({"y": [1, 0.3]},
     "y holds 0.3 in row 1, which is not a multiple of one half: bin it with "
     "ordinal.preprocessing.Binning, or pass classes= in rank order, or "
     "classes='values' for a rank per distinct value"),
    ({"y": pd.Categorical(["b", "b"])},
     "y is an unordered categorical: make it ordered (pandas) or an Enum "
     "(polars), or pass classes= with the labels ['b'] in rank order, the "
     "lowest first"),
    ({"y": [0, 3], "classes": [0, 1]},
     "y holds 3 in row 1, which is not among classes=[0, 1]"),
    ({"y": ["low", "Hgh "], "classes": ["low", "high"]},
     "y holds 'Hgh ' in row 1, which is not among classes=['low', 'high']: if it "
     "means 'high', write both alike"),
    ({"y": ["0", "1"], "classes": [0, 1]},
     "y holds '0' in row 0, which is not among classes=[0, 1]: if it means 0, "
     "write both alike"),
    ({"cost": [[0]]}, "cost has shape (1, 1), expected (2, 2)"),
    ({"cost": [["a"]]}, "cost must hold real numbers, got dtype <U1"),
    (costs(1, 0, np.nan), f"{ROW} be finite; row 1 breaks this"),
    (costs(2, 2, 1), f"{ROW} be zero on the diagonal; row 2 breaks this"),
    (costs(0, 1, 0), f"{ROW} be positive off the diagonal; row 0 breaks this"),
    (costs(0, 2, 1e16),
     "cost must not differ by more than a factor of 1e+15, got 1 and 1e+16"),
    (costs(2, 0, 0.5),
     f"{ROW} not fall with the distance from the diagonal; row 2 breaks this"),
    ({"X": [[0, 1], [np.inf, np.nan]]},
     "X must be finite; first bad row is 1, with inf in column 0"),
    ({"X": [[0, -np.inf], [0, 1]], "kernel": kernels.Pearson()},
     "X must be finite or NaN; first bad row is 0, with -inf in column 1"),
    ({"X": pd.DataFrame({"a": [1, 2], "b": [np.nan, 1]})},
     "X must be finite; first bad row is 0, with nan in column 'b'; "
     "ordinal.preprocessing.TablePreprocessor imputes missing values "
     "(preprocess= of a fit)"),
])  # fmt: skip
def test_input_is_refused_by_a_whole_sentence(given, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        ordinal.fit_svorim(**{"X": [[0.0], [1.0]], "y": [0, 1], **given})
    assert str(caught.value) == message


WORDS = np.array([["u", 1.0], ["v", 2.0]], dtype=object)
FOLDS = "must have a row or more and a column for each of 2 methods, got shape"


@pytest.mark.parametrize(("call", "given", "message"), [
    (win_draw_loss, 5, "scores must be a sequence of tables, got 5"),
    (win_draw_loss, [], "scores must not be empty"),
    (win_draw_loss, [[1, 2]], "scores[0] must be 2-dimensional, got shape (2,)"),
    (win_draw_loss, [[[1, np.nan]]],
     "scores[0] must be finite, got nan in row 0, column 1"),
    (win_draw_loss, [np.eye(2), np.eye(3)], f"scores[1] {FOLDS} (3, 3)"),
    (win_draw_loss, [[[1]]], f"scores[0] {FOLDS} (1, 1)"),
    (win_draw_loss, [np.eye(2), np.ones((0, 2))], f"scores[1] {FOLDS} (0, 2)"),
    (lambda a: wilcoxon(a, a), ["a"], "a must hold real numbers, got dtype <U1"),
    (elmor_values, [["a"]], "outputs must hold real numbers, got dtype <U1"),
    (elmor_values, [1], "outputs has shape (1,), expected (n, 2)"),
    (elmor_values, [[1]], "outputs has shape (1, 1), expected (n, 2)"),
    (Standardizer.fit, scipy.sparse.csr_matrix(X),
     "X is sparse, and the result would not be: make it dense"),
    (lambda rows: ordinal.fit_xofm(WORDS, [0, 1]).predict(rows),
     scipy.sparse.csr_matrix(np.eye(2)),
     "X is sparse, and zeros are values: pass X.toarray()"),
])  # fmt: skip
def test_other_arguments_are_refused_by_a_whole_sentence(call, given, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call(given)
    assert str(caught.value) == message


DATES = (
    r"ordinal\.preprocessing\.TablePreprocessor\(dates=\['a'\]\) makes numbers of "
    r"dates \(preprocess= of a fit\)"
)
TABLE = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]})


@pytest.mark.parametrize(("column", "message"), [
    (np.array(["2020", "2021"], "M8[D]"),
     rf"column 'a' of X must hold real numbers, got .*2020.* in row 0; {DATES}"),
    ([datetime.date(2020, 1, 1)] * 2,
     rf"column 'a' of X must hold real numbers, got .*2020.* in row 0; {DATES}"),
    (["x", "y"], "column 'a' of X must hold real numbers, got 'x' in row 0; "
     r"ordinal\.preprocessing\.TablePreprocessor encodes categories "
     r"\(preprocess= of a fit\)"),
    ([True, "False"],
     r"column 'a' of X must hold real numbers, got 'False' in row 1; column\.astype"
     r"\(str\)\.str\.lower\(\) == 'true' makes booleans of text"),
    ([1.5, "unknown"],
     "column 'a' of X must hold real numbers, got 'unknown' in row 1; pass "
     r"numbers, and NaN for missing values \(pandas\.to_numeric reads numbers "
     r"that are text\)"),
    (["1.5", "2"],
     "column 'a' of X must hold real numbers, got '1.5' in row 0; pass "
     r"numbers, and NaN for missing values \(pandas\.to_numeric reads numbers "
     r"that are text\)"),
])  # fmt: skip
def test_columns_without_numbers_are_refused(column, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        ordinal.fit_svorim(pd.DataFrame({"a": column}), [0, 1])
    in_pipelines = message.replace(r"preprocessing\.TablePre", r"sklearn\.TablePre")
    in_pipelines = in_pipelines.replace("Preprocessor", "Transformer")
    in_pipelines = in_pipelines.replace("preprocess= of a fit", "before .* pipeline")
    with pytest.raises(TypeError, match=f"^{in_pipelines}$"):
        ordinal.sklearn.SVORIM().fit(pd.DataFrame({"a": column}), [0, 1])
    if message.endswith(DATES):
        with pytest.raises(TypeError, match=f"^{in_pipelines}$"):
            ordinal.sklearn.TableTransformer().fit(pd.DataFrame({"a": column}))


@pytest.mark.parametrize(("X", "options", "message"), [
    (TABLE, {"monotone": {True: 1}},
     "monotone must name columns or number them 0 to 1, got True"),
    (TABLE, {"monotone": {2: 1}},
     "monotone must name columns or number them 0 to 1, got 2"),
    (TABLE, {"monotone": {"c": 1}},
     "monotone names 'c', which is not among ['a', 'b']"),
    (TABLE, {"categorical": ["d"]},
     "categorical names 'd', which is not among ['a', 'b']"),
    (pd.DataFrame({"a": [1.5, "x"]}), {"categorical": ["a"]},
     "column 'a' must hold integers or strings, got float 1.5 in row 0: make text of "
     "them, by astype(str)"),
    (pd.DataFrame({"b": pd.Categorical([1j, 2j], [2j, 1j])}), {},
     "the categories of column 'b' must hold integers or strings, got dtype "
     "complex128: make text of them, by rename_categories(str), which keeps their "
     "order"),
    (pd.DataFrame({"b": pd.Categorical([1j, 2j], [2j, 1j], ordered=True)}), {},
     "the categories of column 'b' must hold integers or strings, got dtype "
     "complex128: make text of them, by rename_categories(str), which keeps their "
     "order"),
])  # fmt: skip
def test_columns_are_refused_by_a_whole_sentence(X, options, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        ordinal.fit_xofm(X, [0, 1], **options)
    assert str(caught.value) == message


ADMM = partial(ordinal.fit_npsvor, solver="admm")
ON_BASIS = {"trace": ordinal.fit_svorim, "share": ordinal.fit_tlssvor, "low rank": ADMM}
FORMS = {
    "trace": "a count, a part of the trace, 'auto', (way, count), row numbers or rows",
    "share": "a count, a share of the rows, 'auto', (way, count), row numbers or rows",
    "low rank": "a count, a share of the rows or a vector of row numbers",
}
PART = "a number between 0 and 1"
WAYS = "basis[0] must be one of 'random', 'kmeans++', 'cholesky', got 'best'"


@pytest.mark.parametrize("form", FORMS)
def test_what_no_basis_is(form):
    rows = [
        (0, "basis must be a positive integer, got 0"),
        (1.5, "basis as a share must be in (0, 1], got 1.5"),
        (0.0, "basis as a share must be in (0, 1], got 0.0"),
        (np.nan, "basis as a share must be in (0, 1], got nan"),
        (True, f"basis must be {FORMS[form]}, got True"),
        ([], f"basis must be {FORMS[form]}, got []"),
        ([0.5], f"basis must be {FORMS[form]}, got [0.5]"),
        ([4], "basis must name rows of X, 0 to 3, got 4"),
        ([-1], "basis must name rows of X, 0 to 3, got -1"),
        ([1, 2, 1], "basis must name each row at most once, got row 1 more than once"),
    ]
    if form == "low rank":
        rows += [(np.zeros((1, 0)), f"basis must be {FORMS[form]}, got array([], ")]
    else:
        rows += [
            ("best", "basis as a word must be one of 'auto', got 'best'"),
            (("best", 3), WAYS),
            (("random", 0), "basis[1] must be a positive integer, got 0"),
            (np.eye(3), "basis must have the columns of X: it has 3, and X has 4"),
            ([[1.0], [2.0, 3.0]], "basis is not an array"),
            ([[1.0, 2.0, 3.0, np.inf]], "basis must be finite"),
        ]
    of_trace = {"as a share": "as a part of the trace", "in (0, 1]": PART}
    for basis, message in rows:
        for share, trace in of_trace.items() if form == "trace" else ():
            message = message.replace(share, trace)
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            ON_BASIS[form](np.eye(4), [0, 1, 0, 1], basis=basis)


NUMBERS_AS_TEXT = pd.DataFrame({"a": [f"{k}.5" for k in range(40)]})
NAMED = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
POM, SVORIM = ordinal.fit_pom(X, y, l2=1.0), partial(ordinal.fit_svorim, y=y)
# The doors that take the name of a score
JUDGES = [
    lambda name: select("pom", X, y, scoring=name),
    lambda name: ordinal.compare(X, y, methods=["pom"], scoring=name),
    lambda name: ordinal.fit_pom(X, y, l2=1.0).score(X, y, scoring=name),
    lambda name: ordinal.sklearn.scorer(name),
    lambda name: ordinal.sklearn.POM(scoring=name).fit(X, y),
]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: select("pom", NUMBERS_AS_TEXT, [0, 1] * 20),
     "column 'a' of X holds numbers as text, such as '0.5': pass numbers, as "
     "pandas.to_numeric reads them; "),
    (lambda: ordinal.fit_pom(NAMED, [0, 1], l2=1.0).predict({"A": 3.0, "c": 1}),
     "X has no columns 'a', 'b', which the model was fitted on: add them; X has "
     "'A', 'c'"),
    (lambda: ordinal.fit_boosting(X, y).predict([["0.5", "1"]]),
     "column 0 of X must hold real numbers, got '0.5' in row 0; pass numbers"),
    (lambda: ordinal.fit_pom(X, y, link="porbit"), "did you mean 'probit'?"),
    (lambda: ordinal.fit_pom(X, y, link="logistic"), "did you mean 'logit'?"),
    *[(partial(judge, "neg_mean_absolute_error"), "did you mean 'mae'?")
      for judge in JUDGES],
    (lambda: ordinal.load(b"PK\x03\x04" + b"\0" * 9), "pass io.BytesIO(content)"),
    (lambda: ordinal.plot.importance(None, X, y),
     "takes explanation, ax by position, and got 3 values: pass"),
    (lambda: ordinal.compare(X, y, methods=["wrong"]), "'npsvor',"),
    *[(partial(call, X=rows), f"X must be an array or a data frame, got {shown(rows)}")
      for rows in (None, 5, len) for call in (POM.predict, SVORIM)],
    (lambda: SVORIM(X="abc"), "X must be an array or a data frame, got 'abc'"),
    (lambda: POM.predict({"a": [1]}), "got a mapping with [1] for 'a': pass a d"),
    (lambda: POM.predict(ordinal.data.blocks("rows.csv")),
     "write_predictions of ordinal.data read in"),
    (lambda: ordinal.sklearn.POM("logit"), "POM.__init__() takes 1 positional"),
])  # fmt: skip
def test_mistakes_of_first_users_get_a_remedy(call, message):
    raises((ValueError, TypeError), re.escape(message), call)


@pytest.mark.parametrize("read", [
    lambda: ordinal.fit_pom(NAMED, [0, 1], l2=1.0).predict,
    lambda: ordinal.fit_pom("y ~ C(a)", NAMED.assign(y=[0, 1]), l2=1.0).predict,
    lambda: Standardizer.fit(NAMED).transform,
], ids=["numbers", "formula", "transform"])  # fmt: skip
def test_refused_rows_are_not_warned_of(read):
    with warnings.catch_warnings(action="error"):
        raises(ValueError, "must be 2-dimensional", read(), [0.0, 1.0])
