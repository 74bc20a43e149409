"""Kernel values against their formulas, at every level of vector code."""

import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from internals import CSR, Problem
from numpy.testing import assert_allclose, assert_array_equal
from oracles import kernel_matrix, slope
from scipy import sparse
from sklearn.svm import SVC
from strategies import raises, sample

import ordinal
from ordinal import kernels
from ordinal._model.preparation import make_kernel
from ordinal._numerics import rows
from ordinal._numerics.rows import inner_products, squared_norms, take
from ordinal._solvers import _kernel_values
from ordinal.kernels.functions import Custom
from ordinal.kernels.tiles import Evaluator, diagonal_of

KERNELS = [
    kernels.Linear(), kernels.Polynomial(), kernels.Polynomial(2, 0.3, 0.0),
    kernels.RBF(), kernels.RBF(0.1), kernels.Laplacian(0.7), kernels.Matern(1.5, 0.2),
    kernels.Matern(2.5, 0.2),
]  # fmt: skip
any_kernel = st.sampled_from(KERNELS)
numbers = st.floats(-3, 3, width=16)


@st.composite
def pairs(draw):
    """Two matrices of rows, which may share rows."""
    n, m, d = (draw(st.integers(1, 9)) for _ in range(3))
    A = draw(hnp.arrays(np.float64, (n, d), elements=numbers))
    B = draw(hnp.arrays(np.float64, (m, d), elements=numbers))
    return A, np.vstack([B, A[:1]]) if draw(st.booleans()) else B


@st.composite
def evaluations(draw):
    """Two matrices and a kernel with one gamma, or with one per feature."""
    A, B = draw(pairs())
    d = A.shape[1]
    gamma = 10 ** np.array(draw(st.lists(st.floats(-2, 1), min_size=d, max_size=d)))
    made = [kernels.ARD(gamma), kernels.LinearARD(gamma)]
    return A, B, draw(any_kernel | st.sampled_from(made))


@given(evaluations())
def test_values_are_those_of_the_formula(case):
    A, B, kernel = case
    expected = kernel_matrix(kernel, A, B)
    scale = 1e-13 * (1 + np.abs(expected).max()) * (1 + np.abs(A).max() ** 2)
    if isinstance(kernel, kernels.Laplacian):  # a distance near 0 has half the digits
        scale = scale**0.5
    elif isinstance(kernel, kernels.ARD | kernels.LinearARD):
        size = A.shape[1] * (1 + kernel.gamma.max())
        scale = 1e-12 * size * (1 + np.abs(A).max() ** 2)
    K = kernel(A, B)
    assert K.shape == (len(A), len(B))
    assert K.dtype == np.float64
    assert_allclose(K, expected, rtol=1e-12, atol=scale)
    assert_allclose(kernel(A.tolist(), B.tolist()), K, rtol=1e-12, atol=scale)
    assert_allclose(diagonal_of(kernel, A), np.diagonal(kernel(A, A)), atol=scale)
    tile = np.empty(K.shape)
    Evaluator(kernel, A, B).tile(slice(0, len(A)), slice(0, len(B)), tile)
    assert_allclose(tile, K, rtol=1e-12, atol=scale)


@given(pairs(), any_kernel)
def test_csr_rows_are_dense_rows(AB, kernel):
    A, B = AB
    expected = kernel(A, B)
    close = {"rtol": 1e-12, "atol": 1e-12 * (1 + np.abs(expected).max())}
    for a in (A, CSR.from_any(sparse.csr_array(A))):
        for b in (B, CSR.from_any(sparse.csr_array(B))):
            assert_allclose(kernel(a, b), expected, **close)
            tile = np.empty(expected.shape)
            Evaluator(kernel, a, b).tile(slice(0, len(A)), slice(0, len(B)), tile)
            assert_allclose(tile, expected, **close)
        assert_allclose(squared_norms(a), (A**2).sum(axis=1), rtol=1e-12)
        assert_allclose(diagonal_of(kernel, a), diagonal_of(kernel, A), rtol=1e-12)


@st.composite
def sparse_pairs(draw):
    """Two CSR matrices of one width, from rows without entries to full ones."""
    d = draw(st.integers(0, 12))
    pair = []
    for _ in range(2):
        shape, zero = (draw(st.integers(0, 9)), d), st.just(0.0)
        A = draw(hnp.arrays(np.float64, shape, elements=numbers, fill=zero))
        pair.append(CSR.from_any(sparse.csr_array(A)))
    return pair


@given(sparse_pairs())
def test_csr_products_by_columns_are_those_by_dense_rows(AB):
    got = []
    for share in (0.0, 2.0):  # all by dense rows, all by columns
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "_SPARSE", share)
            got.append(inner_products(*AB))
    A, B = AB
    assert got[0].tobytes() == got[1].tobytes()
    assert_allclose(got[1], A.dense() @ B.dense().T, rtol=1e-13, atol=1e-13)
    full = np.full((len(A), len(B)), np.nan)
    assert inner_products(A, B, full) is full
    assert_array_equal(full, inner_products(A, B))
    # a value does not depend on the rows beside it, so neither on tiles nor on threads
    for i in range(len(A)):
        part = inner_products(take(A, slice(i, i + 1)), take(B, slice(i, None)))
        assert part.tobytes() == full[i : i + 1, i:].tobytes()
    assert_array_equal(inner_products(B, A).T, full)


@pytest.mark.parametrize("kernel", [*KERNELS, kernels.Pearson()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_tiles_and_products_across_the_tile_size(kernel, dtype, n_threads):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(600, 4)), rng.normal(size=(523, 4))
    K = kernel(A, B)
    values = Evaluator(kernel, A, B, n_threads)
    coef = rng.normal(size=(523, 3))
    atol = 1e-9 * np.abs(K).max()
    assert_allclose(values.product(coef), K @ coef, rtol=1e-9, atol=atol)
    rows, columns = slice(77, 590), np.array([3, 500, 3, 0])
    tile = np.empty((513, 4), dtype)
    assert values.tile(rows, columns, tile) is tile
    scale = np.abs(K).max() * np.finfo(dtype).eps
    assert_allclose(tile, K[rows][:, columns], rtol=5e-6, atol=4 * scale)


def test_precomputed_values_are_looked_up():
    K = np.arange(12.0).reshape(3, 4)
    columns = np.array([3, 1])
    values = Evaluator(kernels.Precomputed(), K, columns)
    assert_array_equal(values.product(np.eye(2)), K[:, columns])
    raises(TypeError, "pass kernel values", kernels.Precomputed(), K, K)


# Pearson's correlation

PEARSON = kernels.Pearson()
tables = hnp.array_shapes(min_dims=2, max_dims=2, max_side=7).flatmap(
    lambda shape: hnp.arrays(
        np.float64, shape, elements=st.sampled_from([np.nan, 0.1, 1.0, 4.0]) | numbers
    )
)


@given(tables)
def test_correlations_are_those_of_known_entries(X):
    A, B = X[: len(X) // 2], X
    expected = kernel_matrix(PEARSON, X, X)
    K = PEARSON(B, B)
    assert_allclose(K, expected, atol=1e-12)
    assert_allclose(PEARSON(X.tolist(), X.tolist()), K, atol=1e-14)
    assert_allclose(diagonal_of(PEARSON, X), np.diagonal(K), atol=1e-14)
    for a, b in ((A, B), (B, A), (B, B)):
        tile = np.empty((len(a), len(b)))
        Evaluator(PEARSON, a, b).tile(slice(0, len(a)), slice(0, len(b)), tile)
        assert_allclose(tile, PEARSON(a, b), atol=1e-14)
    # positive semi-definite; on the diagonal the share that is known, if it varies
    assert np.linalg.eigvalsh(K).min() >= -1e-12
    varies = [len(set(row[~np.isnan(row)])) > 1 for row in X]
    share = np.where(varies, (~np.isnan(X)).mean(axis=1), 0)
    assert_allclose(np.diagonal(K), share, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-320, 1e300])
def test_correlations_of_full_rows_are_those_of_numpy(scale):
    X = np.random.default_rng(0).normal(size=(6, 9))
    K = PEARSON(scale * X, X)
    assert_allclose(K, np.corrcoef(X), atol=1e-2 if scale < 1e-300 else 1e-14)
    assert_allclose(PEARSON(1e8 + X, X), np.corrcoef(X), atol=1e-7)


@pytest.mark.parametrize(
    "row",
    [[np.nan] * 4, [np.nan, 3.0, np.nan, np.nan], [0.1] * 4, [0.1, np.nan, 0.1, 0.1],
     [0.3, 0.1 + 0.2, 0.3, 0.3],  # one ulp apart
     [0.0] * 4],
)  # fmt: skip
def test_rows_that_tell_nothing_correlate_with_nothing(row):
    K = PEARSON([row, [1.0, 2.0, 4.0, 8.0]], [row, [1.0, 2.0, 4.0, 8.0]])
    assert_array_equal(K[0], 0)
    assert_array_equal(K[:, 0], 0)
    assert_allclose(K[1, 1], 1)


def test_pearson_refuses_what_it_has_no_use_for():
    csr = CSR.from_any(sparse.csr_array(np.eye(2)))
    raises(TypeError, "Pearson kernel needs dense rows", PEARSON, csr, np.eye(2))
    raises(TypeError, "CSR rows need a kernel", Evaluator, PEARSON, np.eye(2), csr)
    with pytest.raises(ValueError, match="X must be finite or NaN; first bad row is 1"):
        PEARSON(np.eye(2), [[np.nan, 0.0], [np.inf, 0.0]])
    with pytest.raises(TypeError, match="CSR rows need a kernel"):
        ordinal.fit_svorim(sparse.csr_array(np.eye(2)), [0, 1], kernel=PEARSON)


def exponential(x, dtype):
    """exp(x) for x <= 0, in the precision of dtype, as the solvers compute it."""
    out = np.empty((1, x.size), dtype)
    zero = np.zeros((1, x.size))
    _kernel_values.rbf(zero, np.zeros(1), -np.asarray(x, np.float64), 1.0, out)
    return out[0]


def ulps(got, exact):
    """Distance in units of the last place of the result's type."""
    spacing = np.spacing(exact.astype(got.dtype))
    return np.abs((got.astype(np.longdouble) - exact) / spacing).astype(float)


@pytest.mark.parametrize(("dtype", "allowed"), [(np.float32, 3.0), (np.float64, 1.5)])
def test_exp_is_right_to_the_last_place(dtype, allowed):
    rng, lowest = np.random.default_rng(0), -87.0
    halves = np.arange(0, 1.5 * lowest, -0.5) * np.log(2)  # where n changes
    drawn, small = rng.uniform(lowest, 0, 100_000), -np.geomspace(1e-300, 1, 5_000)
    x = np.concatenate([drawn, small, halves, np.nextafter(halves, -np.inf)])
    x = x.astype(dtype)
    x = x[x > lowest]
    exact = np.exp(x.astype(np.longdouble))
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        allowed += 1  # the reference rounds as well
    assert ulps(exponential(x, dtype), exact).max() <= allowed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_at_its_ends(dtype):
    lowest = -87.0
    assert_array_equal(exponential(np.array([0.0, -0.0]), dtype), 1)
    beyond = np.array([lowest, lowest - 1e-3, -750.0, -1e4, -1e300, -np.inf])
    assert_array_equal(exponential(beyond, dtype), 0)
    # what is left out is below the smallest normal float, or nearly
    assert np.exp(lowest) < 2 * np.finfo(np.float32).tiny
    assert exponential(np.array([lowest + 1e-3]), dtype) > 0
    assert_array_equal(exponential(np.array([-1e-320, -1e-30]), dtype), 1)
    got = exponential(-np.geomspace(1e-20, 1e4, 50_000), dtype)
    assert (got.min(), got.max()) == (0, 1)


SCRIPT = """
import sys
import numpy as np
import ordinal
from ordinal import kernels
from ordinal._solvers import _kernel_values

assert ordinal.show_config()["simd"] == sys.argv[1], ordinal.show_config()
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3))
y = np.digitize(X.sum(axis=1) + 0.3 * rng.normal(size=150), [-1.5, 0, 1.5])
out = {}
for dtype in ("f4", "f8"):
    x = rng.uniform(0, 90, 1003)
    row = np.empty((1, x.size), dtype)
    _kernel_values.rbf(np.zeros((1, x.size)), np.zeros(1), x, 1.0, row)
    out[f"exp_{dtype}"] = row
out["K"] = kernels.RBF(0.7)(X, X)
for solver in ("smo", "admm"):
    model = ordinal.fit_npsvor(X, y, C=3.0, tol=1e-8, solver=solver)
    out[f"f_{solver}"] = model.decision_function(X)
    out[f"y_{solver}"] = model.predict(X)
    out[f"dual_{solver}"] = model.convergence.dual
np.savez(sys.argv[2], **out)
"""


@pytest.fixture(scope="module")
def numbers_of_levels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    numbers = {}
    for level in ordinal.show_config()["simd_levels"]:
        path = folder / f"{level}.npz"
        command = [sys.executable, "-c", SCRIPT, level, path]
        env = {**os.environ, "ORDINAL_SIMD": level}
        subprocess.run(command, env=env, cwd=folder, check=True, timeout=600)
        with np.load(path) as members:
            numbers[level] = dict(members)
    return numbers


@pytest.mark.slow("a process per level")
@pytest.mark.parametrize("level", ordinal.show_config()["simd_levels"])
def test_every_level_of_vector_code_gives_the_same(level, numbers_of_levels):
    got, expected = numbers_of_levels[level], numbers_of_levels["baseline"]
    for name in ("exp_f4", "exp_f8"):
        assert_array_equal(got[name].dtype, expected[name].dtype)
        rtol = 2 * np.finfo(got[name].dtype).eps
        assert_allclose(got[name], expected[name], rtol=rtol)
    assert_allclose(got["K"], expected["K"], rtol=1e-14)
    for solver in ("smo", "admm"):
        assert_array_equal(got[f"y_{solver}"], expected[f"y_{solver}"])
        assert_allclose(got[f"f_{solver}"], expected[f"f_{solver}"], atol=1e-6)
        assert_allclose(got[f"dual_{solver}"], expected[f"dual_{solver}"], rtol=1e-8)


def test_an_unknown_level_is_refused(tmp_path):
    how = {"env": {**os.environ, "ORDINAL_SIMD": "quantum"}, "cwd": tmp_path}
    command = [sys.executable, "-c", "import ordinal"]
    out = subprocess.run(command, timeout=600, capture_output=True, text=True, **how)
    assert out.returncode != 0
    assert "ORDINAL_SIMD must be one of" in out.stderr
    assert "baseline, got 'quantum'" in out.stderr


@pytest.mark.parametrize("kernel", [*KERNELS, kernels.ARD([1.0, 2.0])])
@pytest.mark.parametrize("A", [[[1.0, np.nan]], [1.0, 2.0], [["a", "b"]]])
def test_the_diagonal_refuses_the_rows_that_the_values_refuse(kernel, A):
    with pytest.raises((TypeError, ValueError)) as refused:
        kernel(A, A)
    raises(refused.type, re.escape(str(refused.value)), kernel.diagonal, A)


@pytest.mark.parametrize("kernel", [kernels.ARD, kernels.LinearARD])
def test_relevances_are_checked(kernel):
    for bad in (1.0, [], [[1.0]]):
        raises(ValueError, r"^gamma must be a vector, got shape \(", kernel, bad)
    for bad in (0.0, -1.0, np.nan, np.inf):
        rule = f"^gamma must be positive and finite, got {bad} for feature 1"
        raises(ValueError, rule, kernel, [1.0, bad])
    made = kernel([1.0, 2.0])
    for A in (np.ones((3, 1)), np.ones((3, 3)), np.ones(2)):
        shape = "do not have the 2 features of gamma|^X must be 2-dimensional"
        raises(ValueError, shape, made, A, np.ones((3, 2)))
        raises(ValueError, shape, made, np.ones((3, 2)), A)
        raises(ValueError, shape, made.diagonal, A)
    rows = CSR.from_any(sparse.csr_array(np.ones((3, 2))))
    with pytest.raises(TypeError, match=r"^the ARD kernels need dense rows, got"):
        made(rows, np.ones((3, 2)))
    with pytest.raises(TypeError, match=r"^CSR rows need a kernel by name that"):
        Evaluator(made, rows, rows)


# Slopes by ln gamma

ONE_GAMMA = [
    kernels.RBF, kernels.Laplacian, partial(kernels.Matern, 1.5),
    partial(kernels.Matern, 2.5),
]  # fmt: skip


@given(
    pairs(),
    st.sampled_from([*ONE_GAMMA, kernels.ARD, kernels.LinearARD]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e4]),
)
def test_slopes_agree_with_differences(AB, make, seed, offset):
    A, B = AB
    if make in (kernels.RBF, kernels.ARD):  # others lose digits of far rows
        A, B = A + offset, B + offset
    rng = np.random.default_rng(seed)
    one = make in ONE_GAMMA
    gamma = rng.uniform(0.05, 1, 1 if one else A.shape[1])
    G, c = rng.normal(size=(len(A), len(B))), rng.normal(size=len(A))

    def made(gamma):
        return make(float(gamma[0])) if one else make(gamma)

    def value(gamma):
        return np.vdot(G, made(gamma)(A, B)), c @ diagonal_of(made(gamma), A)

    kernel = made(gamma)
    got = kernel.slopes(A, B, kernel(A, B), G)
    on_diagonal = kernel.diagonal_slopes(A, c)
    assert got.shape == on_diagonal.shape == gamma.shape
    size = np.abs(G).sum() * (1 + np.abs(AB[0]).max()) ** 2 * gamma.max()
    # what gamma |a|^2 keeps of its digits, far from 0
    noise = 1e-13 * (1 + offset) ** 2
    for j in range(gamma.size):
        step = np.zeros(gamma.size)
        step[j] = 1e-3
        expected = slope(lambda t, s=step: np.array(value(gamma * np.exp(t * s))), 1.0)
        expected *= 1e3
        assert_allclose(got[j], expected[0], atol=1e-8 * size + noise * size / 1e-3)
        assert_allclose(on_diagonal[j], expected[1], atol=1e-8 * (1 + size))


def test_slopes_of_zeros_and_of_kernels_with_nothing_to_learn():
    A = np.array([[0.0], [1e3]])  # K ln K is 0 there, not NaN
    for kernel in (kernels.RBF(1.0), kernels.ARD([1.0])):
        K = kernel(A, A)
        assert K[0, 1] == 0
        assert_allclose(kernel.slopes(A, A, K, np.ones((2, 2))), [0.0])
    A, G = np.ones((3, 2)), np.ones((3, 3))
    for kernel in (kernels.Linear(), kernels.Polynomial(), Custom(min)):
        assert kernel.slopes(A, A, G, G).shape == (0,)
        assert kernel.diagonal_slopes(A, np.ones(3)).shape == (0,)


def problem(X, **options):
    return Problem.from_arrays(X, np.arange(X.shape[0]) % 2, **options)


@given(hnp.arrays(np.float64, (6, 3), elements=numbers))
def test_gamma_scale_is_that_of_sklearn(X):
    if X.var() > 1e-12:
        kernel = make_kernel("rbf", "scale", problem(X))
        svc = SVC(gamma="scale").fit(X, [0, 1] * 3)
        assert_allclose(kernel.gamma, svc._gamma, rtol=1e-9)
        csr = make_kernel("rbf", "scale", problem(sparse.csr_array(X)))
        assert_allclose(csr.gamma, kernel.gamma, rtol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 6, 49])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e6 / 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_gamma_scale_of_constant_features_is_one(n, value, form):
    """And not one over the rounding of a variance."""
    X = form(np.full((n, 2), value))
    assert make_kernel("rbf", "scale", problem(X)).gamma == 1.0


@pytest.mark.parametrize(("kernel", "gamma", "expected"), [
    ("rbf", "auto", kernels.RBF(0.25)),
    ("polynomial", "auto", kernels.Polynomial(3, 0.25, 1.0)),
    ("linear", "scale", kernels.Linear()),
    ("precomputed", "scale", kernels.Precomputed()),
    (kernels.RBF(2.0), "scale", kernels.RBF(2.0)),
    (min, "scale", Custom(min)),
    ("laplacian", "auto", kernels.Laplacian(0.5)),
    ("matern32", 3, kernels.Matern(1.5, 3.0)),
])  # fmt: skip
def test_names_stand_for_kernels(kernel, gamma, expected):
    got = make_kernel(kernel, gamma, problem(np.eye(4)))
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1"])
def test_unusable_parameters_of_kernels_are_refused(bad):
    for made in (kernels.RBF, kernels.Polynomial):
        raises(ValueError, r"^gamma must be a positive", made, gamma=bad)
    if bad != 0:
        with pytest.raises(ValueError, match=r"^coef0 must be a finite number >= 0"):
            kernels.Polynomial(coef0=bad)
    with pytest.raises(ValueError, match=r"^degree must be a positive integer"):
        kernels.Polynomial(degree=bad)


@pytest.mark.parametrize(("kernel", "error", "message"), [
    (lambda A, B: A @ B.T * np.nan, ValueError, "values must be finite"),
    (lambda A, B: A @ B.T * np.inf, ValueError, "values must be finite"),
    (lambda A, B: A[:, 0], ValueError, r"returned shape \(3,\), not \(3, 2\)"),
    (lambda A, B: B @ A.T, ValueError, r"returned shape \(2, 3\), not \(3, 2\)"),
    (lambda A, B: A @ B.T + 0j, TypeError, "real numbers, got dtype complex"),
    (lambda A, B: (A @ B.T).astype(object), TypeError, "got dtype object"),
    (lambda A, B: A @ B.T > 0, TypeError, "got dtype bool"),
    (lambda A, B: None, ValueError, r"returned shape \(\)"),
])  # fmt: skip
def test_what_a_callable_returns_is_checked(kernel, error, message):
    A, B = np.ones((3, 2)), np.ones((2, 2))
    with pytest.raises(error, match=message), np.errstate(invalid="ignore"):
        Evaluator(Custom(kernel), A, B).product(np.eye(2))


def test_a_callable_may_return_lists_or_integers_and_is_given_no_large_block():
    A, B = np.arange(6.0).reshape(3, 2), np.eye(2)
    for form in (np.ndarray.tolist, np.int64, np.float32):
        made = Custom(lambda A, B, form=form: form(A @ B.T))
        assert_array_equal(Evaluator(made, A, B).product(np.eye(2)), A)
        assert_array_equal(diagonal_of(made, A), (A**2).sum(axis=1))
    sizes = []

    def kernel(A, B):
        sizes.append((len(A), len(B)))
        return A @ B.T

    A = np.ones((1500, 2))
    made = Custom(kernel)
    Evaluator(made, A, A).product(np.ones((1500, 1)))
    diagonal_of(made, A)
    assert max(max(size) for size in sizes) <= 512
    assert sum(n * m for n, m in sizes) <= 1500 * 1500 + 1500 * 64


@pytest.mark.parametrize("stored", ["dense", "csr"])
@pytest.mark.parametrize(("fit", "options"), [
    (ordinal.fit_svorim, {}),
    (ordinal.fit_svorim, {"basis": 20}),
    (ordinal.fit_npsvor, {}),
    (ordinal.companions.fit_svc, {"decomposition": "one_vs_all"}),
    (ordinal.companions.fit_opbe, {}),
    (ordinal.companions.fit_kdlor, {}),
])  # fmt: skip
def test_coefficients_by_feature_make_the_scores(fit, options, stored):
    X, y = sample(60, 3)
    kernel = kernels.Linear() if stored == "csr" else kernels.LinearARD([0.5, 1, 2])
    rows = sparse.csr_array(X) if stored == "csr" else X
    model = fit(rows, y, kernel=kernel, **options)
    found = model.coef_by_feature
    assert found.names == ("x1", "x2", "x3")
    scores = model.decision_function(X)
    made = X @ found.values.T
    assert_allclose(scores - scores[0], made - made[0], rtol=1e-8, atol=1e-8)


def test_other_kernels_have_no_coefficients_by_feature():
    model = ordinal.fit_svorim(*sample(30, 3))
    with pytest.raises(AttributeError, match=r"explain\(X\)"):
        _ = model.coef_by_feature
    assert not hasattr(model, "coef_by_feature")
