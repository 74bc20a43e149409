"""Tests of the form of a caller's values in messages."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from internals import (
    Problem,
    check_cost,
    classes_in_rank_order,
    read_features,
    read_labels,
    score_tables,
    values_of,
)

import ordinal
from ordinal._input import checks
from ordinal._input.checks import check_positive, listed, shown
from ordinal._input.features import read_dense
from ordinal._input.predictions import scores_of
from ordinal.comparison import win_draw_loss
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
from ordinal.preprocessing import Binning

X, y = ordinal.datasets.make_gaussians(10, rng=0)
LONG, DIGITS = "x" * 5000, 10**5000
TWO = np.array([1, 2])


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        ("a'b", '"a\'b"'),
        ("x" * 78, f"'{'x' * 78}'"),
        ("x" * 79, f"'{'x' * 76}..."),
        (10**400, f"1{'0' * 76}..."),
        (10**5000, "<int>"),  # Python does not print that many digits
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
        (Unprintable(), "<Unprintable>"),
    ],
    ids=["float", "quotes", "80", "81", "int", "huge int", "lines", "error"],
)
def test_a_value_is_shown_on_one_line_of_80_characters(value, text):
    assert shown(value) == text
    assert len(text) <= 80
    with pytest.raises(ValueError, match="C must be a positive") as caught:
        check_positive("C", [value])
    rule = "C must be a positive finite number, got "
    assert len(str(caught.value)) <= len(rule) + 80


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


def to_rank(values):
    return Binning([1.0, 2.0]).transform(values)


FAILED = "no point could be fitted: TypeError: scoring must return a number, got "


@pytest.mark.parametrize(
    ("call", "arguments", "error", "message"),
    [
        (CoarseToFine, {"C": 5}, ValueError, "C must be two whole powers of ten, "),
        (CoarseToFine, {"C": (1, 2, 3)}, ValueError, "C must be two whole powers"),
        (CoarseToFine, {"C": "ab"}, ValueError, "C must be two whole powers of ten"),
        (CoarseToFine, {"C": (0.5, 1)}, ValueError, "C must be two whole powers"),
        (CoarseToFine, {"kappa": (2, 1)}, ValueError, "kappa must be two whole powers"),
        (CoarseToFine, {"C": (0, np.inf)}, ValueError, "C must be two whole powers"),
        (CoarseToFine, {"C": (0, 10**400)}, ValueError, "C must be two whole powers"),
        (CoarseToFine, {"fine": "no"}, ValueError, "fine must be True or False"),
        (Grid, {"C": np.array(5)}, ValueError, "C must be a sequence of values"),
        (Grid, {LONG: 5}, ValueError, "xxx"),
        (UniformDesign, {"others": {"C": (0, 1)}}, ValueError, "but C and gamma, got"),
        (UniformDesign, {"others": {5: (0, 1)}}, ValueError, "others must name arg"),
        (UniformDesign, {"others": {LONG: 5}}, ValueError, "xxx"),
        (centred_discrepancy, {"points": [["a"]]}, TypeError, "points must hold real"),
        (centred_discrepancy, {"points": [[2.0]]}, ValueError, "points must be in "),
        (gamma_range, {"X": X, "quantile": "a"}, ValueError, "quantile must be a num"),
        (stratified_kfold, {"y": [1, "a", 2, "b", 1]}, TypeError, "y must hold labels"),
        (
            stratified_kfold,
            {"y": ["a", None]},
            ValueError,
            "y has no label in row 1$",
        ),
        (
            stratified_kfold,
            {"y": [1, pd.NA]},
            ValueError,
            "y has no label in row 1$",
        ),
        (stratified_kfold, {"y": [[1], [2, 3]]}, ValueError, "y is not an array: "),
        (
            stratified_kfold,
            {"y": np.ma.masked_equal([1, 2], 2)},
            TypeError,
            "y is a masked array",
        ),
        (stratified_kfold, {"y": y, "n_splits": DIGITS}, ValueError, "n_splits must"),
        (search, {"cv": True}, ValueError, "cv must be a positive integer, got True"),
        (
            search,
            {"cv": 31},
            ValueError,
            "cv must be 2 to the number of rows, 30, got 31",
        ),
        (
            stratified_holdout,
            {"y": y, "n_splits": 10**18},
            ValueError,
            "must be at most",
        ),
        (stratified_holdout, {"y": y, "test_size": DIGITS}, ValueError, "test_size=<i"),
        (splits, {"": ([[1], [2, 3]], [1])}, ValueError, r"cv\[0\] is not an array: "),
        (search, {"scoring": lambda a, b: TWO}, ValueError, FAILED + "array"),
        (search, {"scoring": lambda a, b: DIGITS}, ValueError, FAILED + "<int> of <la"),
        (search, {"greater_is_better": TWO}, ValueError, "greater_is_better must be T"),
        (search, {"refit": TWO}, ValueError, "refit must be True, False or 'one_se'"),
        (search, {LONG: 1}, TypeError, "unexpected keyword argument 'xxx"),
        (
            select,
            {"fit": ordinal.fit_svorim, "X": X, "y": y, "search": 5},
            TypeError,
            "search must be a dict of lists, .* or None, got 5$",
        ),
        (fit, {"callback": lambda _: TWO}, TypeError, "callback must return what is t"),
        (
            fit,
            {"callback": lambda _: pd.DataFrame({"a": [1]})},
            TypeError,
            "callback must return what is true or false, got +a 0",
        ),
        (fit, {"C": LONG}, ValueError, "C must be a positive finite number, got 'xx"),
        (fit, {"kernel": LONG}, ValueError, "kernel must be one of 'rbf', "),
        (fit, {"class_weight": {LONG: 1}}, ValueError, "class_weight names 'xxx"),
        (fit, {"classes": [LONG, LONG]}, ValueError, "classes must be distinct, got "),
        (
            ordinal.fit_npsvor_path,
            {"X": X, "y": y, "points": 1.0},
            TypeError,
            "points must be a sequence of mappings, got 1.0$",
        ),
        (
            ordinal.fit_gpor,
            {"X": X, "y": y, "n_restarts": TWO},
            ValueError,
            r"n_restarts must be an integer >= 0, got array\(\[1, 2\]\)$",
        ),
        (
            ordinal.fit_gpor,
            {"X": X, "y": y, "prior": TWO},
            ValueError,
            "prior must be 'weak', a mapping or None",
        ),
        (
            ordinal.fit_xofm,
            {"X": X, "y": y, "monotone": {"x1": TWO}},
            ValueError,
            "monotone of 'x1' must be -1, 0 or 1",
        ),
        (
            ordinal.fit_tlssvor,
            {"X": X, "y": y, "basis": [[1], [2, 3]]},
            ValueError,
            "basis is not an array: ",
        ),
        (CoarseToFine, {"C": range(10**12)}, ValueError, "C must be two whole powers"),
        (CoarseToFine, {"C": np.array(5)}, ValueError, "C must be two whole powers"),
        (ordinal.load, {"path": [LONG]}, TypeError, r"path must be a path, got \['xxx"),
        (search, {"store": 5}, TypeError, "store must be a path, got 5"),
        (win_draw_loss, {"scores": np.array(5)}, TypeError, "scores must be a sequenc"),
        (
            Binning.equal_frequency,
            {"values": [1, 2, 2], "n_bins": 2**60},
            ValueError,
            "ties leave only 2 distinct bins",
        ),
        (
            lambda rows: ordinal.kernels.ARD([1.0, 2.0])(rows, rows),
            {"rows": scipy.sparse.csr_matrix(X)},
            TypeError,
            "the ARD kernels take dense rows$",
        ),
        (
            ordinal.Convergence.of_parts,
            {"parts": 5},
            TypeError,
            "parts must be records",
        ),
        (win_draw_loss, {"scores": 5}, TypeError, "scores must be a sequence of tab"),
        (to_rank, {"values": [1j]}, TypeError, "values must hold real numbers, got 1j"),
        (to_rank, {"values": np.array([1 + 0j])}, TypeError, "values must hold real n"),
        (to_rank, {"values": ["1.5"]}, TypeError, "values must hold real numbers"),
        (to_rank, {"values": [1.0, None]}, ValueError, "finite, got nan in row 1"),
        (to_rank, {"values": [10**400]}, ValueError, "finite, got inf in row 0"),
    ],
)
def test_a_bad_argument_is_named(call, arguments, error, message):
    given = arguments.pop("", None)
    with pytest.raises(error, match=message) as caught:
        call(*([] if given is None else [given]), **arguments)
    assert len(str(caught.value)) <= 300
    assert not re.search("x{80}", str(caught.value))


def test_whole_floats_are_exponents_of_a_grid():
    space = CoarseToFine(C=np.array([0.0, 1.0]), kappa=(2, 2))
    assert space == CoarseToFine(C=(0, 1), kappa=(2, 2))
    assert space.size == 82
    assert len(next(space.stages(None))) == 2


@pytest.mark.parametrize("answer", [np.array([1]), np.True_, "yes", 1])
def test_what_is_true_stops_a_fit(answer):
    with pytest.warns(ordinal.ConvergenceWarning, match="stopped"):
        model = ordinal.fit_svorim(X, y, tol=1e-12, callback=lambda _: answer)
    assert model.convergence.status is ordinal.Status.STOPPED


@pytest.mark.usefixtures("counted_clock")
def test_restarts_are_not_drawn_before_their_time():
    # the first search needs some hundred looks at the clock
    model = ordinal.fit_gpor(X, y, n_restarts=10**15, max_time=1000.0)
    assert model.convergence.converged  # the first one


def test_labels_that_sort_are_split_whatever_they_are():
    days = pd.to_datetime(["2020-01-01", "2020-01-02"] * 4).to_numpy()
    texts = np.array(["a", "b"] * 4, dtype=object)
    for labels in (days, texts, texts.tolist(), pd.Series(texts), [True, False] * 4):
        test = stratified_kfold(labels, 2)[0][1]
        assert test.tolist() == stratified_kfold([0, 1] * 4, 2)[0][1].tolist()


ranged = partial(checks.check_range, check=check_positive)
chosen = partial(checks.check_choice, allowed=("a", None))


def entries(name, a):
    checks.check_entries(name, a, np.isfinite(a), "be finite")


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (check_positive, 0, "C must be a positive finite number, got 0"),
        (checks.check_nonnegative, -1, "C must be a finite number >= 0, got -1"),
        (checks.check_finite, np.inf, "C must be a finite number, got inf"),
        (checks.check_factor, 1e51, "C must be between 1e-50 and 1e+50, got 1e+51"),
        (checks.check_factor, 0, "C must be a positive finite number, got 0"),
        (checks.check_factor_or_zero, -1, "C must be a finite number >= 0, got -1"),
        (checks.check_factor_or_zero, 9e-51, "C must be between 1e-50 and 1e+50, "),
        (checks.check_share, 1, "C must be a number between 0 and 1, got 1"),
        (ranged, 5, "C must be two numbers, (low, high), got 5"),
        (ranged, (1, 1), "C must be (low, high) with low < high, got (1, 1)"),
        (ranged, (1, 0), "C[1] must be a positive finite number, got 0"),
        (checks.check_count, 0, "C must be a positive integer, got 0"),
        (partial(checks.check_count, least=2), 1, "C must be an integer >= 2, got 1"),
        (checks.check_flag, 1, "C must be True or False, got 1"),
        (chosen, "b", "C must be one of 'a', None, got 'b'"),
        (checks.as_path, 5, "C must be a path, got 5"),
        (entries, np.array([0, np.nan]), "C must be finite, got nan in row 1"),
        (entries, np.array([[np.inf]]), "C must be finite, got inf in row 0, column 0"),
    ],
)
def test_checks_say_the_whole_rule(check, value, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        check("C", value)
    assert str(caught.value).startswith(message)
    assert message.endswith(", ") or str(caught.value) == message


@pytest.mark.parametrize("number", [checks.LEAST, 1, checks.MOST])
def test_the_ends_of_a_range_belong_to_it(number):
    assert checks.check_factor("C", number) == number
    assert checks.check_factor_or_zero("C", number) == number
    assert checks.check_factor_or_zero("C", 0) == 0
    assert ranged("C", np.array([number, 2 * number])) == (number, 2 * number)
    assert checks.check_count("n", 2**63 - 1) == 2**63 - 1


DROP = ": drop the rows without a label"
STEPS = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def costs(row, column, value):
    cost = np.array(STEPS, float)
    cost[row, column] = value
    return check_cost(cost, 3)


def of_array(values, **options):
    return checks.as_real_array(values, "v", **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: checks.as_array(np.ma.ones(2), "v"),
            "v is a masked array: fill or drop what it masks",
        ),
        (lambda: of_array(["a"]), "v must hold real numbers, got dtype <U1"),
        (
            lambda: of_array([1], shape=(2,), of=" as X"),
            "v has shape (1,), expected (2,) as X",
        ),
        (lambda: of_array([1], shape=(2,)), "v has shape (1,), expected (2,)"),
        (
            lambda: checks.resolve_rng(-1),
            "rng must be None, an integer >= 0 or a numpy Generator, got -1",
        ),
        (lambda: read_labels([[1]], "v"), "v must be 1-dimensional, got shape (1, 1)"),
        (lambda: read_labels(["a", None], "v"), f"v has no label in row 1{DROP}"),
        (lambda: read_labels([7, None], "v"), f"v has no label in row 1{DROP}"),
        (
            lambda: read_labels(["a", 1], "v"),
            "v must hold integers or strings, got int 1 in row 1",
        ),
        (
            lambda: read_labels([1j], "v"),
            "v must hold integers or strings, got dtype complex128",
        ),
        (lambda: read_labels([0, np.nan, np.inf], "v"), f"v holds nan in row 1{DROP}"),
        (lambda: read_labels([0, np.inf, np.nan], "v"), "v holds inf in row 1"),
        (
            lambda: classes_in_rank_order(TWO, [1, 1, 0, 2]),
            "classes must be distinct, got [1] more than once",
        ),
        (
            lambda: classes_in_rank_order(np.array(["b", "a"]), None),
            "y holds strings, whose order is not known: pass classes=['a', 'b'] in "
            "rank order",
        ),
        (
            lambda: classes_in_rank_order(np.array([1, 0.5, 1.5]), None),
            "y holds 0.5 in row 1, not a whole number: bin it with "
            "ordinal.preprocessing, or pass classes= in rank order",
        ),
        (
            lambda: Problem.from_arrays(X, pd.Categorical(["b"])),
            "y is an unordered categorical: make it ordered (pandas) or an Enum "
            "(polars), or pass classes=['b'] in rank order",
        ),
        (
            lambda: Problem.from_arrays([[1], [2]], [0, 3], classes=[0, 1]),
            "y holds 3 in row 1, which is not among classes=[0, 1]",
        ),
        (
            lambda: Problem.from_arrays([[1], [2]], [0]),
            "y has shape (1,), expected (2,) as X",
        ),
        (
            lambda: Problem.from_arrays([[1], [2]], [4, 4]),
            "y needs at least 2 classes with positive weight, got [4]",
        ),
        (
            lambda: score_tables(5),
            "scores must be a sequence of tables, got 5",
        ),
        (lambda: score_tables([]), "scores must not be empty"),
        (
            lambda: score_tables([[1, 2]]),
            "scores[0] must be 2-dimensional, got shape (2,)",
        ),
        (
            lambda: score_tables([[[1, np.nan]]]),
            "scores[0] must be finite, got nan in row 0, column 1",
        ),
        (
            lambda: score_tables([np.eye(2), np.eye(3)]),
            "scores[1] must have a row or more and a column for each of 2 methods, "
            "got shape (3, 3)",
        ),
        (
            lambda: score_tables([[[1]]]),
            "scores[0] must have a row or more and a column for each of 2 methods, "
            "got shape (1, 1)",
        ),
        (
            lambda: score_tables([np.eye(2), np.ones((0, 2))]),
            "scores[1] must have a row or more and a column for each of 2 methods, "
            "got shape (0, 2)",
        ),
        (lambda: scores_of(["a"], "s", 1), "s must hold real numbers, got dtype <U1"),
        (lambda: values_of(["a"], "f", 1), "f must hold real numbers, got dtype <U1"),
        (lambda: values_of([1], "f", 1), "f has shape (1,), expected (n, 1)"),
        (lambda: values_of([[1]], "f", 2), "f has shape (1, 1), expected (n, 2)"),
        (
            lambda: check_cost([[0]], 2),
            "cost has shape (1, 1), expected (2, 2)",
        ),
        (
            lambda: costs(1, 0, np.nan),
            "every row of cost must be finite; row 1 breaks this",
        ),
        (
            lambda: costs(2, 2, 1),
            "every row of cost must be zero on the diagonal; row 2 breaks this",
        ),
        (
            lambda: costs(0, 1, 0),
            "every row of cost must be positive off the diagonal; row 0 breaks this",
        ),
        (
            lambda: costs(0, 2, 1e16),
            "cost must not differ by more than a factor of 1e+15, got 1 and 1e+16",
        ),
        (
            lambda: costs(2, 0, 0.5),
            "every row of cost must not fall with the distance from the diagonal; "
            "row 2 breaks this",
        ),
        (
            lambda: read_features(scipy.sparse.csr_matrix(X), categories=(None, None)),
            "X is sparse, and zeros are values: pass an array",
        ),
        (
            lambda: read_features([[1j]]),
            "X must hold real numbers, got dtype complex128",
        ),
        (
            lambda: read_features([[0, 1], [np.inf, np.nan]]),
            "X must be finite; first bad row is 1, with inf in column 0",
        ),
        (
            lambda: read_features([[0, -np.inf]], missing=True),
            "X must be finite or NaN; first bad row is 0, with -inf in column 1",
        ),
        (
            lambda: read_features(pd.DataFrame({"a": [1], "b": [np.nan]}), name="v"),
            "v must be finite; first bad row is 0, with nan in column 'b'; "
            "ordinal.preprocessing.TablePreprocessor fills in what is missing",
        ),
        (
            lambda: read_dense(scipy.sparse.csr_matrix(X), name="v"),
            "v is sparse, and the result would not be: make it dense",
        ),
    ],
)
def test_input_is_refused_by_a_whole_sentence(call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert str(caught.value) == message
