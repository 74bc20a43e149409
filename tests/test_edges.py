"""Numbers at the edge of what a double can hold, wherever a caller may put them."""

import inspect
import re
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from registry import every_method, stepwise, which
from scipy.sparse import csr_array
from strategies import raises

import ordinal
from ordinal import kernels
from ordinal.model_selection import UniformDesign
from ordinal.preprocessing import Binning, Standardizer, TablePreprocessor

pytestmark = pytest.mark.usefixtures("counted_clock")
BEYOND = 10**400  # an integer that no double holds
X, Y = ordinal.datasets.make_gaussians(6, rng=0)
ROWS = (X - X.mean(axis=0)) / X.std(axis=0)
RANKS = np.array(Y)
RANKS[[0, 7, 13]] = [2, 3, 1]  # classes overlap
HUGE = np.sign(ROWS) * 1.7e308


@pytest.mark.parametrize(("call", "message"), [
    (lambda: ordinal.fit_tlssvor(X, Y, u=BEYOND), "u must be a number above 2 eta"),
    (lambda: kernels.ARD([BEYOND]), "gamma must be positive and finite"),
    (lambda: kernels.LinearARD([1, -BEYOND]), "gamma must be positive and finite"),
    (lambda: Binning([BEYOND]), "edges must be a finite, non-empty vector"),
    (lambda: ordinal.fit_svorim([[0], [BEYOND]], [0, 1]), "X must be finite; "),
    (lambda: ordinal.fit_gpor(X, Y, start={"gamma": BEYOND}), "start.'gamma'. mus"),
    (lambda: ordinal.fit_gpor(X, Y, start={"thresholds": [0, BEYOND]}),
     "start.'thresholds'. must increase"),
    (lambda: ordinal.fit_gpor(X, Y, basis=Fraction(BEYOND)), "basis as a share mu"),
    (lambda: ordinal.fit_svorim(X, Y, sample_weight=[BEYOND] * len(Y)),
     "sample_weight must be finite and >= 0"),
    (lambda: UniformDesign(C=(1, BEYOND)), r"C\[1\] must be a positive finite"),
    *((lambda value=value: UniformDesign(C=value),
       r"C must be two numbers, \(low, high\), got")
      for value in ([], {}, 5, None, "a", (1,), (1, 2, 3), {1, 2})),
    *((lambda ends=ends: UniformDesign(gamma=ends),
       r"gamma must be \(low, high\) with low <") for ends in ((2, 1), (1, 1))),
    (lambda: UniformDesign(n_points=13), "n_points must be two numbers, got 13"),
    (lambda: UniformDesign(others=[(0, 1)]), "others must be a mapping, got "),
    (lambda: ordinal.fit_pom_path(HUGE, RANKS), "column 'x1' of X spans more"),
    (lambda: ordinal.fit_gpor(
        ROWS, RANKS, kernel=kernels.Polynomial(degree=1, gamma=1e30),
        sample_weight=[1e48] * len(RANKS)), "the evidence .* X .* sample_weight"),
    (lambda: ordinal.companions.fit_lit(csr_array(HUGE), RANKS),
     "column 'x1' of X spans more"),
    (lambda: ordinal.fit_tlssvor(
        1e120 * kernels.RBF(0.5)(ROWS, ROWS), Y, kernel="precomputed"),
     r"X must be at most 1e\+100 with kernel='pr"),
])  # fmt: skip
def test_numbers_beyond_what_is_held_are_refused(call, message):
    raises(ValueError, f"^{message}", call)
    assert_array_equal(Binning([2**70, 2.0**71]).edges, [2.0**70, 2.0**71])
    assert kernels.ARD([2**70]).gamma[0] == 2.0**70


def tidy(method, X, y, **options):
    """A fit, perhaps cut short, all of whose numbers are finite."""
    if "probability" in method.takes:
        options = {"probability": True, **options}
    try:
        # on a basis objectives are not known before all rows have been seen
        limit = 30_000.0 if method.single else 8000.0
        model = method.cut_short(X, y, max_time=limit, **options)
    except ValueError as error:
        if not (method.single and "on a basis, got" in str(error)):
            raise
        return None
    c = model.convergence
    assert np.isfinite([c.violation, c.primal, 0.0 if c.dual is None else c.dual]).all()
    assert np.isfinite(method.numbers(model, X)).all()
    assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-9)
    return model


SCALES = [1e-320, 1e-100, 1e-50, 1e40, 1e149, 1e155, 8e307]


@every_method
def test_features_of_any_size_give_finite_models_or_are_refused(method):
    for scale in SCALES:
        features = ROWS / np.abs(ROWS).max() * scale
        if scale < 1e150 or "kernel" not in method.takes:
            tidy(method, features, RANKS)
            continue
        refused = "rows of X must have squares of at most 1e"
        raises(ValueError, refused, tidy, method, features, RANKS)


@stepwise
def test_a_column_that_spans_more_than_a_double_holds_is_refused_by_name(method):
    features = ROWS.copy()
    features[:, 1] = np.where(np.arange(len(ROWS)) % 2, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match=r"column 'x2' of X spans .*: divide the colu"):
        method(features, RANKS)


@pytest.mark.parametrize("layout", [np.asarray, csr_array])
@pytest.mark.parametrize(
    "fit", [ordinal.fit_pom, ordinal.companions.fit_lit, ordinal.companions.fit_lat]
)
def test_columns_of_very_different_scales_all_count(fit, layout):
    scales = np.array([1e-160, 1e160])
    plain = fit(layout(ROWS), RANKS, l2=0).coef
    found = fit(layout(ROWS * scales), RANKS, l2=0).coef
    assert_allclose(found * scales, plain, rtol=1e-6)
    if fit is ordinal.fit_pom and layout is np.asarray:
        path = ordinal.fit_pom_path(ROWS * scales, RANKS, n_lambdas=3)
        assert path.convergence.converged
        assert np.isfinite(path.coefs).all()


@pytest.mark.slow("fits of four scales per method")
@which(takes="kernel")
@pytest.mark.parametrize(
    "kernel", ["linear", kernels.Polynomial(), "ard", "ard_linear"]
)
def test_values_of_any_kernel_are_held_or_refused(method, kernel):
    if str(kernel).startswith("ard") and "gpor" not in str(method):
        pytest.skip("for GPOR only")
    for scale in (1e-150, 1e15, 1e60, 1e300):
        features = ROWS / np.abs(ROWS).max() * scale
        try:
            tidy(method, features, RANKS, kernel=kernel)
        except ValueError as error:
            of_kernel = "kernel values|rows of X|k.x, x. must|kernel must be positive"
            assert re.match(of_kernel, str(error)), error  # noqa: PT017 of either outcome


@pytest.mark.parametrize(
    "kernel",
    [kernels.Linear(), kernels.Polynomial(), kernels.RBF(), kernels.ARD([1.0, 1e300]),
     kernels.LinearARD([1.0, 1e300])],
    ids=lambda kernel: type(kernel).__name__,
)  # fmt: skip
def test_a_kernel_of_huge_rows_is_an_error_and_no_warning(kernel):
    with pytest.raises(ValueError, match=r"(kernel values|rows of X) must .*: scale"):
        kernel([[1e200, -1e200]], [[1e200, 1e200]])
    raises(ValueError, "X must be finite", kernel, [[np.nan, 0.0]], [[1.0, 1.0]])
    raises(TypeError, "X must hold real numbers", kernel, [[1j, 0.0]], [[1.0, 1.0]])


def spread(low, high):
    weight = np.full(len(RANKS), float(low))
    weight[::3] = high
    return weight


@every_method
@pytest.mark.parametrize(
    "weight",
    [spread(1, 1e15), spread(1e-15, 1), spread(1e-48, 1e-48), spread(1e48, 1e48)],
    ids=["heavy", "light", "all light", "all heavy"],
)
def test_every_weight_that_is_accepted_gives_a_finite_model(method, weight):
    if method.whole_weights and weight.min() < 1:
        pytest.skip("whole weights only")
    tidy(method, ROWS, RANKS, sample_weight=weight)
    if "class_weight" in method.takes and weight[1] == 1:
        tidy(method, ROWS, RANKS, class_weight={1: weight.max()})


@every_method
@pytest.mark.parametrize(("weight", "message"), [
    (spread(1e-190, 1e190), r"^the sum of sample_weight must be between 1e-50 and "),
    (spread(1e306, 1e306), r"^the sum of sample_weight must be .*, got 1.8e\+307$"),
    (spread(1e308, 1e308), r"^the sum of sample_weight must be .*, got inf$"),
    (spread(1e-311, 1e-311), r"^the sum of sample_weight must be between 1e-50 and "),
    (spread(1, 1e16), "sample_weight must not differ by more than a factor of 1e.15"),
])  # fmt: skip
def test_weights_beyond_what_sums_of_doubles_hold_are_refused(method, weight, message):
    raises(ValueError, message, method, ROWS, RANKS, sample_weight=weight)
    for factor, rule in ((1e300, "the sum of "), (1e16, "")):
        message = f"^{rule}sample_weight times class_weight must "
        if "class_weight" in method.takes:
            raises(ValueError, message, method, ROWS, RANKS, class_weight={1: factor})


@which(takes="cost")
@pytest.mark.parametrize("factor", [1e-48, 1e48])
def test_costs_that_are_accepted_give_finite_models(method, factor):
    cost = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) * factor
    tidy(method, ROWS, RANKS, cost=cost)
    cost[0] *= 1e-14
    tidy(method, ROWS, RANKS, cost=cost, **method.directed)
    cost[0] *= 1e-14
    with pytest.raises(ValueError, match=r"cost must not differ by|the sum of cost"):
        method(ROWS, RANKS, cost=cost)


FACTORS = ("C", "C2", "epsilon", "rho", "eta", "tau", "l2_main", "l2_pair")


@every_method
def test_factors_of_a_problem_are_within_what_products_hold(method):
    takes = inspect.signature(method.fit).parameters
    for name in FACTORS:
        if name not in takes or (name == "rho" and "admm" not in str(method.variant)):
            continue  # another method's
        for value in (1e-50, 1e50):
            if (name, value) == ("eta", 1e50) or (value > 1 and "sgd" in str(method)):
                continue  # eta is below 1; stochastic steps say that they are too long
            tidy(method, ROWS, RANKS, **{name: value})
        message = f"^{name} must be (between 1e-50|a num)"
        for value in (1e-51, 1e51, 1e200, 1e-320):
            raises(ValueError, message, method, ROWS, RANKS, **{name: value})


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_xofm_refuses_what_its_slopes_cannot_hold(solver):
    fit = partial(ordinal.fit_xofm, ROWS, RANKS, solver=solver, max_time=20.0)
    for value in (1e21, 1e200):
        with pytest.raises(ValueError, match=r"^init_scale must be between 1e-50 and"):
            fit(init_scale=value)
    with pytest.raises(ValueError, match=r"^early_stopping must be a share between 0"):
        fit(early_stopping=BEYOND)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ordinal.exceptions.ConvergenceWarning)
        assert np.isfinite(fit(early_stopping=np.float32(0.25)).convergence.primal)
        if solver == "sgd":
            assert np.isfinite(fit(n_epochs=1e300).convergence.primal)


@which(n_endless=150)
@pytest.mark.parametrize("value", [1e-320, 1e-21, 1e21, 1e200])
def test_starts_and_priors_are_near_the_deviation_of_the_latent_function(method, value):
    far = r"must be within a factor of 1e\+20 of 1, the standard deviation of f, got "
    for options, name in (
        ({"start": {"noise": value}}, "start.'noise'."),
        ({"prior": {"noise": (value, 1.0)}}, "prior.'noise'. median"),
        ({"prior": {"gap": (value, 1.0)}}, "prior.'gap'. median"),
    ):
        raises(ValueError, f"^{name} {far}", method, ROWS, RANKS, **options)
    with pytest.raises(ValueError, match=r"^start.'thresholds'. must be at most 1e"):
        method(ROWS, RANKS, start={"thresholds": [0, value]})


@pytest.mark.slow("four searches per method")
@which(n_endless=150)
@pytest.mark.parametrize("value", [1e-20, 1e20])
def test_starts_and_priors_that_are_accepted_give_finite_models(method, value):
    for options in (
        {"start": {"noise": value}},
        {"start": {"thresholds": [0, value]}},
        {"prior": {"noise": (value, 1.0)}},
        {"prior": {"gap": (value, 1.0)}},
    ):
        tidy(method, ROWS, RANKS, **options)


def test_a_sparse_matrix_may_claim_any_width():
    n, d = 30, 2**31 - 1
    rng = np.random.default_rng(0)
    held = np.sort(rng.integers(0, 50, (n, 6)), axis=1)
    data, indptr = rng.standard_normal(6 * n), np.arange(0, 6 * n + 1, 6)
    wide = csr_array((data, (held * 40_000_000 + 7).ravel(), indptr), (n, d))
    narrow = csr_array((data, held.ravel(), indptr), (n, 50))
    y = np.arange(n) % 3
    for kernel in (kernels.RBF(0.1), kernels.Linear(), kernels.Polynomial()):
        model = ordinal.fit_svorim(wide, y, kernel=kernel)
        scores = ordinal.fit_svorim(narrow, y, kernel=kernel).decision_function(narrow)
        assert_array_equal(model.decision_function(wide), scores)
    scaled = ordinal.fit_svorim(narrow, y).kernel.gamma  # 1 / the sum of variances
    assert_allclose(ordinal.fit_svorim(wide, y).kernel.gamma, scaled, rtol=0.1)
    assert ordinal.fit_gpor(wide, y, max_iter=2, tol=1e9).n_features == d


def test_what_only_claims_to_be_a_matrix_is_refused():
    class Claims:
        shape = (10, 2**40)

        def tocsr(self):
            return "no matrix"

    for fit in (ordinal.fit_svorim, ordinal.fit_gpor):
        with pytest.raises(TypeError, match=r"^X.tocsr\(\) must give a CSR matrix"):
            fit(Claims(), np.arange(10) % 2)
    entries = np.zeros((1, 1))
    for dtype in (float, object):  # a view that claims more than there is memory
        view = np.broadcast_to(entries.astype(dtype), (10, 2**40))
        for fit in (ordinal.fit_xofm, ordinal.fit_svorim):
            with pytest.raises(MemoryError):
                fit(view, np.arange(10) % 2)


LARGE = (0.75 + 0.25 * ROWS / np.abs(ROWS).max()) * 8.9e307  # two of them overflow


@pytest.mark.parametrize("preprocess", [Standardizer, TablePreprocessor()])
@every_method
def test_columns_whose_sums_overflow_are_fitted_without_a_warning(method, preprocess):
    if "preprocess" not in inspect.signature(method.fit).parameters:
        return
    options = {"preprocess": preprocess, **method.brief}
    model = method.cut_short(LARGE, RANKS, **options)
    plain = method.cut_short(LARGE / 1e300, RANKS, **options)
    assert set(model.predict(LARGE)) <= set(RANKS)
    if method.precise is not None:
        assert_array_equal(model.predict(LARGE), plain.predict(LARGE / 1e300))
    model.explain(LARGE)


def test_linear_models_of_columns_whose_sums_overflow():
    """Their variances vanish in units of the columns; standard errors were 0."""
    model = ordinal.fit_pom(LARGE, RANKS)
    small = ordinal.fit_pom(LARGE / 1e307, RANKS)
    assert_allclose(model.coef * 1e307, small.coef, rtol=1e-6)
    assert model.covariance is None
    for ask in (model.summary, model.marginal_effects, lambda: model.standard_errors):
        raises(ValueError, "columns in other units", ask)
    found, expected = model.explain(LARGE), small.explain(LARGE / 1e307)
    assert_allclose(found.importance, expected.importance)
    table = pd.DataFrame(LARGE[:, :2], columns=["a", "b"]).assign(y=RANKS)
    with pytest.raises(ValueError, match=r"X must be finite.* in column 'a:b'"):
        ordinal.fit_pom("y ~ a * b", table)
    tables = (table.assign(b=table.b / 1e160), table.assign(b=table.b / 1e307))
    effects = [ordinal.fit_pom("y ~ ns(b, 2)", t, robust=True) for t in tables]
    first, other = (m.marginal_effects()["effect"] for m in effects)
    assert_allclose(first * 1e147, other, rtol=1e-5)


def test_random_slopes_are_of_columns_whose_variances_a_double_holds():
    def fit(unit):
        groups = {"g": np.arange(len(RANKS)) % 4}
        rows = ROWS[:, :2] * unit
        return ordinal.fit_clmm(rows, RANKS, groups=groups, slopes={"g": [0]})

    found = [fit(unit).loglik for unit in (1.0, 1e-140, 1e140)]
    assert_allclose(found, found[0], rtol=1e-6)
    for unit in (1e-160, 1e160, 4e307):
        raises(ValueError, r"root mean squares between .* for 'x1'", fit, unit)
