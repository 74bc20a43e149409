"""Cumulative models: (1) and (P) are those of `ordinal.linear`."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from internals import Design, Likelihood, Monitor, Problem, structure_of
from numpy.testing import assert_allclose, assert_array_equal
from oracles import (
    DISTRIBUTIONS,
    TAILS,
    cumulative_edges,
    cumulative_loglik,
    cumulative_terms,
    slopes,
    threshold_columns,
)
from scipy import optimize, sparse, special
from strategies import datasets, raises

import ordinal
from ordinal import fit_pom, inference
from ordinal._cumulative.fitting import newton
from ordinal.exceptions import DisorderedThresholdsWarning

LINKS = list(DISTRIBUTIONS)
TIGHT = 1e-9  # errors; steps are quadratic, so that the last one ends at rounding

links = st.sampled_from(LINKS)
concave = st.sampled_from(LINKS[:4])
may_cross = pytest.mark.filterwarnings(
    "ignore::ordinal.exceptions.DisorderedThresholdsWarning"
)
thresholds = st.sampled_from(["flexible", "symmetric", "equidistant"])
seeds = st.integers(0, 2**32 - 1)


def drawn(seed, n=80, d=3, r=4, noise=1.5):
    """(X, y, weight, offset) of all ranks that no direction separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2, d) + rng.normal(size=d)
    score = (X - X.mean(0)) / X.std(0) @ rng.uniform(-1, 1, d)
    score += noise * rng.logistic(size=n)
    y = np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)
    return X, y, rng.choice([0.5, 1.0, 2.0, 3.0], n), rng.normal(size=n)


def parameters(model):
    """In the order of the covariance."""
    slopes = model.nominal_coef.ravel(), model.coef, model.scale_coef
    return np.concatenate([model.alpha, *slopes])


def errors(model):
    return np.sqrt(np.diag(model.covariance))


def loglik_of(model, X, y, weight, offset):
    """The log likelihood by the oracle, a function of all parameters."""
    by = model.predictor
    columns = (X[:, of] for of in (by.location, by.nominal, by.scale))
    structure = model.classes.size - 1, model.predictor.threshold, *columns, offset
    return lambda x: cumulative_loglik(x, y, weight, model.link, *structure)


def assert_same(one, other):
    """Two maxima of one likelihood, each to rounding."""
    assert_allclose(one.loglik, other.loglik, rtol=1e-11)
    assert_allclose(parameters(one), parameters(other), rtol=1e-7, atol=1e-8)
    assert_allclose(one.covariance, other.covariance, rtol=1e-5, atol=1e-9)


@given(seeds, concave, thresholds, st.sampled_from([0.0, 0.05]))
def test_maximum_of_the_penalised_likelihood(seed, link, threshold, l2):
    X, y, weight, offset = drawn(seed)
    given = {"sample_weight": weight, "offset": offset, "tol": TIGHT}
    plain = fit_pom(X, y, link=link, threshold=threshold, **given)
    model = plain
    if l2:
        model = fit_pom(X, y, link=link, threshold=threshold, l2=l2, **given)
        assert model.covariance is None
    assert model.convergence.converged
    loglik = loglik_of(model, X, y, weight, offset)
    W = weight.sum()

    def objective(x):
        beta = x[model.alpha.size :]
        return loglik(x) - W * l2 / 2 * beta @ beta

    x = parameters(model)
    assert_allclose(loglik(x), model.loglik, rtol=1e-12)
    assert_allclose(model.convergence.primal, -objective(x) / W, rtol=1e-12)
    assert model.statistics.n_obs == pytest.approx(W, rel=1e-14)
    # steps by which the objective falls by 5e-7, and what its third derivative adds
    step = 1e-3 / np.sqrt(np.diag(np.linalg.inv(plain.covariance)))
    slope = [(objective(x + e) - objective(x - e)) / 2e-3 for e in np.diag(step)]
    assert np.abs(slope).max() < 1e-5
    # of a concave function no point is above
    rng = np.random.default_rng(seed)
    for size in (0.01, 1.0):
        there = x + size * errors(plain) * rng.normal(size=x.size)
        with np.errstate(invalid="ignore", divide="ignore"):  # out of order
            value = objective(there)
        assert not value > objective(x)


@given(datasets(), concave, st.sampled_from([1e-3, 1.0]))
def test_any_data_with_a_ridge_converge_in_order(data, link, l2):
    X, y, _ = data
    model = fit_pom(X, y, link=link, l2=l2)
    assert model.convergence.converged
    assert (np.diff(model.thresholds) > 0).all()
    P = model.predict_proba(X)
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    assert_allclose(np.log(P[np.arange(y.size), y]).sum(), model.loglik, rtol=1e-9)


@given(
    seeds, links, thresholds, st.sampled_from([0.0, 0.3]),
    st.sampled_from([(), (1,), (0, 2)]), st.sampled_from([(), (0,), (1, 2)]),
)  # fmt: skip
def test_derivatives_are_those_of_the_value(seed, link, threshold, l2, nominal, scale):
    X, y, weight, offset = drawn(seed, n=30, r=5)
    problem = Problem.from_arrays(X, y, sample_weight=weight)
    nominal, scale = np.array(nominal, int), np.array(scale, int)
    location = np.setdiff1d(np.arange(3), nominal)
    design = Design.from_problem(problem, location, nominal, scale, offset, threshold)
    loss = Likelihood(design, link, l2, n_threads=1)
    rng = np.random.default_rng(seed)
    x = loss.start() + 0.05 * rng.normal(size=design.n_parameters)
    here = loss.at(x)
    assume(np.isfinite(here.value))  # a step may have closed in on a row
    # differences of fourth order, and of values that round by 1e-16 / h
    slope = slopes(lambda x: loss.at(x).value, x, 1e-4)
    assert_allclose(here.gradient, slope, rtol=1e-6, atol=1e-8)
    curve = slopes(lambda x: loss.at(x).gradient, x, 1e-4)
    H = here.hessian.dense()
    assert_allclose(H, curve, rtol=1e-5, atol=1e-7 * np.abs(H).max())
    assert_allclose(H, H.T, atol=1e-14 * np.abs(H).max())


@pytest.mark.parametrize("unit", [1e-45, 1e-15, 1e15, 1e45])
def test_the_unit_of_weights_is_that_of_variances_alone(unit):
    X, y, weight, offset = drawn(2)
    a = fit_pom(X, y, sample_weight=weight, offset=offset)
    b = fit_pom(X, y, sample_weight=weight * unit, offset=offset)
    assert_allclose(b.coef, a.coef, rtol=1e-6)
    assert_allclose(b.thresholds, a.thresholds, rtol=1e-6)
    assert_allclose(b.standard_errors * np.sqrt(unit), a.standard_errors, rtol=1e-6)


@pytest.mark.parametrize("fit", [fit_pom, ordinal.fit_pom_path])
def test_offsets_beyond_the_noise_of_any_link_are_refused(fit):
    X, y, _, offset = drawn(4)
    for factor in (1e6, 1e101):
        message = r"^offset must lie between -1(0000|e100) "
        raises(ValueError, message, fit, X, y, offset=factor * offset)
    with pytest.raises(ValueError, match=r"^offset must not contradict the ranks"):
        fit(X, y, offset=-2000.0 * y, link="cloglog")
    weight, found = np.arange(80) != 3, []  # of a row without weight it does not matter
    for offset[3] in (0.0, 1e100):
        found.append(fit(X, y, sample_weight=weight, offset=offset))
    a, b = (model.coefs if fit is not fit_pom else model.coef for model in found)
    assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("link", LINKS)
def test_offsets_may_vary_by_much_more_than_the_noise(link):
    rng = np.random.default_rng(0)
    offset, X = 1000 * rng.normal(size=400), rng.normal(size=(400, 1))
    noise = -DISTRIBUTIONS[link].ppf(rng.uniform(size=400))
    y = np.searchsorted([-500, 0, 500], offset + X[:, 0] + noise)
    near = np.abs(offset[:, None] - [-500, 0, 500]).min(axis=1) < 50
    assert 20 < near.sum() < 100  # the rows that tell anything
    model = fit_pom(X, y, link=link, offset=offset)
    assert model.convergence.converged
    # of steps that move a threshold by a few units of the noise; thrice for cauchit
    assert model.convergence.n_iter < (100 if link in LINKS[:4] else 1000)
    loglik = loglik_of(model, X, y, np.ones(400), offset)
    assert model.loglik > loglik(np.array([-500, 0, 500, 1]))


@pytest.mark.parametrize("link", ["logit", "cauchit"])
@pytest.mark.filterwarnings(
    "ignore::ordinal.exceptions.ConvergenceWarning"
)  # of rounding
def test_a_rank_may_weigh_less_than_the_rounding_of_the_sum(link):
    y = np.append(np.arange(200) % 2, 2)
    X = np.random.default_rng(0).normal(size=(201, 1))
    model = fit_pom(X, y, link=link, sample_weight=np.where(y == 2, 1.0, 1e15))
    assert np.isfinite(model.thresholds).all()
    assert model.loglik > 1e15 * 200 * np.log(0.5) - 1e15


@pytest.mark.parametrize("threshold", ["flexible", "symmetric", "equidistant"])
def test_structures_are_those_of_clm(threshold):
    for T in range(2, 9):
        expected = threshold_columns(threshold, T)
        assert_array_equal(structure_of(threshold, T).dense(), expected)


@given(seeds, links, thresholds, st.sampled_from([(), (2,)]))
def test_probabilities_are_those_of_the_formula(seed, link, threshold, scale):
    X, y, weight, offset = drawn(seed)
    model = fit_pom(
        X, y, link=link, threshold=threshold, scale=scale, sample_weight=weight,
        offset=offset,
    )  # fmt: skip
    eta = cumulative_edges(
        parameters(model), 3, threshold, X, X[:, []], X[:, list(scale)], offset
    )
    with np.errstate(over="ignore"):
        below = TAILS[link][0](eta)
    P = model.predict_proba(X, offset=offset)
    assert_allclose(P, np.diff(below, axis=1), rtol=1e-8, atol=1e-14)
    score = model.decision_function(X, offset=offset)
    assert_allclose(score, X @ model.coef + offset, rtol=1e-12, atol=1e-12)
    median = (below[:, 1:-1] < 0.5).sum(axis=1)
    assert_array_equal(model.predict(X, offset=offset), median)
    assert_array_equal(model.predict(X, offset=offset, rule="mode"), P.argmax(axis=1))


@pytest.mark.parametrize("link", LINKS)
def test_probabilities_keep_their_digits_in_both_tails(link):
    X, y, weight, _ = drawn(1)
    model = fit_pom(X, y, link=link, sample_weight=weight)
    far = X.mean(axis=0) + 12 * (X - X.mean(axis=0))
    edges = cumulative_edges(
        parameters(model), 3, "flexible", far, X[:, []], X[:, []], 0.0
    )
    with np.errstate(divide="ignore"):
        log_P = cumulative_terms(link, edges[:, 1:], edges[:, :-1])
    told = log_P > -600
    assert (log_P[told] < -5).sum() > 10
    assert_allclose(model.predict_proba(far)[told], np.exp(log_P[told]), rtol=1e-9)


def crossing(seed=0):
    """Data whose nominal effects make thresholds cross at some rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_t(2, size=150), rng.normal(size=150)])
    spread = np.exp(0.5 * np.clip(X[:, 0], -2, 2))
    score = 0.5 * X[:, 1] + spread * rng.logistic(size=150)
    return X, np.searchsorted([-1.5, 0, 1.5], score)


def test_thresholds_that_cross_at_training_rows_are_told():
    X, y = crossing()
    weight = np.ones(150)
    with pytest.warns(DisorderedThresholdsWarning):
        model = fit_pom(X, y, nominal=[0])
    cuts = model.thresholds - X[:, :1] @ model.nominal_coef.T
    weight[np.flatnonzero(cuts[:, 1] > cuts[:, 2])[:3]] = 0.0
    options = {"nominal": [0], "sample_weight": weight}
    with pytest.warns(DisorderedThresholdsWarning, match=r"fit_pom: thresholds out of"):
        model = fit_pom(X, y, **options)
    cuts = model.thresholds - X[weight > 0, :1] @ model.nominal_coef.T
    crossed = (np.diff(cuts, axis=1) < 0).sum(axis=0)
    assert crossed.min() > 0
    assert_array_equal(model.statistics.crossings, [*crossed, 0])
    everywhere = model.thresholds - X[:, :1] @ model.nominal_coef.T
    P, score = model.predict_proba(X), X[:, 1:] @ model.coef
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    below = np.sort(special.expit(everywhere - score[:, None]), axis=1)
    assert_allclose(np.cumsum(P, axis=1)[:, :-1], below, rtol=1e-10)
    rows = np.flatnonzero((np.diff(everywhere, axis=1) < 0).any(axis=1))
    assert_array_equal(inference.negative_rows(model), rows)
    assert_array_equal(inference.negative_rows(model, X[::-1]), 149 - rows[::-1])
    assert ((np.diff(everywhere, axis=1) < 0).sum(axis=0) > crossed).any()
    told = [f"at {n} training row" + "s" * (n > 1) for n in crossed.tolist()]
    pairs = "0|1 is above 1|2", "1|2 is above 2|3"
    assert model.disorder == tuple(map(" ".join, zip(pairs, told, strict=True)))
    # with a rank between that nobody has
    gaps = {"classes": [0, 1, 5, 2, 3], **options}
    with pytest.warns(DisorderedThresholdsWarning, match=r"; 5\|2 is above 2\|3 at "):
        model = fit_pom(X, y, **gaps)
    assert_array_equal(model.statistics.crossings, [crossed[0], 0, crossed[1], 0])


@may_cross
@given(seeds, links)
def test_offsets_that_differ_by_a_constant_shift_the_thresholds(seed, link):
    X, y, weight, offset = drawn(seed)
    shift = np.array([0.7, -0.4, 0.2])  # by which free thresholds may fall
    options = {"link": link, "sample_weight": weight, "nominal": [0], "tol": TIGHT}
    plain = fit_pom(X, y, offset=offset, **options)
    assert_same(fit_pom(X, y, offset=np.tile(offset[:, None], 3), **options), plain)
    model = fit_pom(X, y, offset=offset[:, None] + shift, **options)
    assume(plain.convergence.converged)
    assert_allclose(model.loglik, plain.loglik, rtol=1e-11)
    assert_allclose(model.alpha, plain.alpha + shift, rtol=1e-6, atol=1e-7)
    assert_allclose(model.coef, plain.coef, rtol=1e-6, atol=1e-8)
    assert_allclose(model.covariance, plain.covariance, rtol=1e-4, atol=1e-8)
    assert_allclose(
        model.statistics.null_loglik, plain.statistics.null_loglik, rtol=1e-9
    )
    assert_array_equal(model.statistics.crossings, plain.statistics.crossings)
    P = plain.predict_proba(X, offset=offset)
    assert_allclose(
        model.predict_proba(X, offset=offset[:, None] + shift), P, atol=1e-7
    )
    given_mean = model.decision_function(X, offset=offset[:, None] + shift)
    assert_allclose(given_mean, X[:, 1:] @ model.coef + offset + shift.mean())


@pytest.mark.parametrize("threshold", ["flexible", "symmetric", "equidistant"])
@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_offsets_by_threshold_are_nominal_effects_that_are_known(link, threshold):
    X, y, weight, _ = drawn(5)
    options = {"link": link, "threshold": threshold, "sample_weight": weight}
    free = fit_pom(X, y, nominal=[0], tol=TIGHT, **options)
    known = X[:, :1] * (structure_of(threshold, 3) @ free.nominal_coef).T
    model = fit_pom(X[:, 1:], y, offset=known, tol=TIGHT, **options)
    assert_allclose(model.loglik, free.loglik, rtol=1e-11)
    assert_allclose(model.alpha, free.alpha, rtol=1e-6, atol=1e-8)
    assert_allclose(model.coef, free.coef, rtol=1e-6, atol=1e-8)
    rest = np.delete(
        np.arange(free.parameters.size), np.arange(len(free.alpha)) + len(free.alpha)
    )
    inner = np.linalg.inv(np.linalg.inv(free.covariance)[np.ix_(rest, rest)])
    assert_allclose(model.covariance, inner, rtol=1e-5)
    for name in ("residuals", "predictions"):
        one, other = getattr(model, name)(), getattr(free, name)()
        if name == "predictions":
            one, other = one["estimate"], other["estimate"]
        assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    robust = fit_pom(X[:, 1:], y, offset=known, tol=TIGHT, robust=True, **options)
    loglik_at = robust._remembered.loss
    s = np.vstack([part for _, part in loglik_at.scores(robust._remembered.x)])
    step = 1e-5
    for k in range(robust._remembered.x.size):
        e = step * (np.arange(robust._remembered.x.size) == k)
        up, down = (loglik_at.at(robust._remembered.x + d).value for d in (e, -e))
        slope = (up - down) / 2 / step * -weight.sum()
        assert weight @ s[:, k] == pytest.approx(slope, abs=1e-3)
    leverage = inference.influence(model).leverage
    assert leverage.sum() == pytest.approx(model.parameters.size)


@may_cross
@pytest.mark.parametrize("threshold", ["symmetric", "equidistant"])
def test_a_descent_starts_where_no_offset_makes_thresholds_cross(threshold):
    X, y, _, _ = drawn(5)
    offset = np.outer(np.arange(80) % 2, [0.0, 0.0, 6.0])
    model = fit_pom(X, y, offset=offset, threshold=threshold)
    assert model.convergence.converged
    assert np.diff(model.thresholds)[1] > 6


@may_cross
def test_offsets_by_threshold_of_tables_files_and_crossings(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, _, _ = drawn(6)
    known = np.random.default_rng(1).normal(size=(80, 3))
    data = pd.DataFrame({"a": X[:, 0], "y": y, "p": known[:, 0], "q": known[:, 1],
                         "s": known[:, 2]})  # fmt: skip
    with pytest.warns(DisorderedThresholdsWarning):
        model = fit_pom(X[:, :1], y, offset=known)
    crossed = np.diff(model.thresholds - known, axis=1) < 0
    found = model.statistics.crossings
    assert_array_equal(found, [*crossed.sum(axis=0), 0][: found.size])
    rows = np.flatnonzero(crossed.any(axis=1))
    assert_array_equal(inference.negative_rows(model), rows)
    assert_array_equal(inference.negative_rows(model, X[:, :1], offset=known), rows)
    named = fit_pom("y ~ a + offset(p)", data, offset=["p", "q", "s"])
    twice = fit_pom(X[:, :1], y, offset=known + known[:, :1])
    assert_allclose(named.parameters, twice.parameters)
    model.save(tmp_path / "m")
    loaded = ordinal.load(tmp_path / "m")
    P = model.predict_proba(X[:, :1], offset=known)
    assert_array_equal(loaded.predict_proba(X[:, :1], offset=known), P)
    assert_allclose(P.sum(axis=1), 1)
    # rows that lack an entry are left out
    gaps, keep = known.copy(), np.arange(80) != 5
    gaps[5, 1] = np.nan
    dropped = fit_pom(X[:, :1], y, offset=gaps, missing="drop")
    without = fit_pom(X[keep, :1], y[keep], offset=known[keep])
    assert_array_equal(dropped.parameters, without.parameters)
    for call, match in (
        (lambda: fit_pom(X, y, offset=known[:, :2]), "a column for each of the 3"),
        (lambda: fit_pom(X, y, offset=known, l1=0.1), "fit_pom without l1"),
        (lambda: fit_pom(X, y, offset=known, nominal=[0], in_order=True), "in_order"),
        (lambda: ordinal.fit_pom_path(X, y, offset=known), "fit_pom without l1"),
        (lambda: fit_pom(X, y, offset=known, classes=[0, 1, 2, 9, 3]), "thresholds"),
        (lambda: fit_pom(X, y, offset=gaps), "lack values"),
        (lambda: model.predict(X[:, :1], offset=known[:, :2]), "a column for each"),
        (lambda: model.predict(X[:, :1], offset=known[:3]), "offset has shape"),
        (lambda: fit_pom("y ~ a", data, offset=["p", "x"]), "names 'x'"),
    ):
        raises(ValueError, match, call)


def gaps_of(model, X, rows):
    """The matrix A of A x >= 0, distances of neighbouring thresholds at rows."""
    T = model.classes.size - 1
    J = np.diff(structure_of(model.predictor.threshold, T).dense(), axis=0)
    N = rows[:, model.predictor.nominal]
    by_nu = -J[:, None, :, None] * N[None, :, None, :]
    by_nu = by_nu.reshape(len(J) * len(N), J.shape[1] * N.shape[1])
    A = np.hstack([np.repeat(J, len(N), axis=0), by_nu])
    return np.hstack([A, np.zeros((len(A), model.coef.size))])


@may_cross
# the first step would leave a row nothing of its rank but rounding
@example(459, "cloglog", "symmetric", [0, 1], False)
@given(
    st.integers(0, 500), concave, thresholds, st.sampled_from([[0], [0, 1]]),
    st.booleans(),
)  # fmt: skip
def test_thresholds_in_order_satisfy_kkt(seed, link, threshold, nominal, elsewhere):
    """No multiplier of a distance that is 0 is negative, and the others are 0."""
    X, y = crossing(seed)
    rng = np.random.default_rng(seed)
    weight, offset = rng.choice([0.5, 1.0, 2.0], 150), 0.3 * rng.normal(size=150)
    rows = 3 * rng.normal(size=(20, 2)) if elsewhere else X
    options = {
        "link": link, "threshold": threshold, "nominal": nominal, "offset": offset,
        "sample_weight": weight, "tol": TIGHT,
    }  # fmt: skip
    model = fit_pom(X, y, in_order=rows if elsewhere else True, **options)
    assert model.convergence.converged
    assert inference.negative_rows(model, rows).size == 0
    if not elsewhere:
        assert model.disorder == ()
        assert inference.negative_rows(model).size == 0
    x, A = parameters(model), gaps_of(model, X, rows)
    held = A[A @ x <= 1e-9 * np.abs(A) @ np.abs(x)]
    assert bool(model.statistics.touching.any()) == bool(len(held))
    loglik = loglik_of(model, X, y, weight, offset)
    assert_allclose(loglik(x), model.loglik, rtol=1e-12)
    unit = 1e-4 / np.sqrt(np.diag(np.linalg.inv(model.covariance)))
    slope = [(loglik(x + e) - loglik(x - e)) / 2e-4 for e in np.diag(unit)]
    # slope + sum of multipliers times normals = 0, in the units of the differences
    if len(held):
        _, left = optimize.nnls((held * unit / 1e-4).T, -np.array(slope))
    else:
        left = np.linalg.norm(slope)
    assert left < 1e-4
    free = fit_pom(X, y, **options)
    if not len(inference.negative_rows(free, rows)):
        assert not model.statistics.touching.any()
        assert_same(model, free)
    else:
        assert model.loglik < free.loglik
        raises(ValueError, "meet", model.summary)
        # what has no free coefficients has no tests either
        with pytest.raises(ValueError, match=r"where they meet: \['\d\|\d and"):
            ordinal.inference.lr_test(
                fit_pom(X, y, link=link, threshold=threshold), model
            )


def test_thresholds_in_order_of_many_rows_end_where_values_are_rounding():
    X, y = crossing()
    weight = np.full(150, 1e7)
    options = {"nominal": [0], "in_order": True, "tol": 1e-6}
    model = fit_pom(X, y, sample_weight=weight, **options)
    assert model.convergence.converged
    assert_allclose(parameters(model), parameters(fit_pom(X, y, **options)), rtol=1e-5)


def test_thresholds_in_order_of_a_table_and_of_sparse_rows(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = crossing()
    model = fit_pom(X, y, nominal=[0], in_order=True, tol=TIGHT)
    thin = sparse.csr_matrix(X)
    assert_same(fit_pom(thin, y, nominal=[0], in_order=True, tol=TIGHT), model)
    data = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    coded = fit_pom("y ~ a + b", data, in_order=data, nominal=["a"], tol=TIGHT)
    assert_same(coded, model)
    assert_array_equal(coded.statistics.touching, model.statistics.touching)
    # weight 0 is the row left out
    far, weight = np.vstack([X, [[40.0, 0.0]]]), np.append(np.ones(150), 0.0)
    options = {"nominal": [0], "tol": TIGHT, "in_order": True}
    assert_same(fit_pom(far, [*y, 0], sample_weight=weight, **options), model)
    model.save(tmp_path / "model")
    assert_array_equal(
        ordinal.load(tmp_path / "model").statistics.touching, model.statistics.touching
    )


@pytest.mark.parametrize(("options", "match"), [
    ({"link": "cauchit"}, "in_order is for models with a convex loss.*cauchit"),
    ({"scale": [1]}, "in_order is for models with a convex loss.*scale"),
    ({"l1": 0.1}, "in_order must be False with l1=0.1"),
    ({"in_order": np.ones((2, 5))}, "in_order has 5 .*2"),
    ({"in_order": "rows"}, "in_order must be an array or a data frame"),
])  # fmt: skip
def test_bad_arguments_of_in_order(options, match):
    X, y = crossing()
    with pytest.raises((ValueError, TypeError), match=match):
        fit_pom(X, y, **({"nominal": [0], "in_order": True} | options))


def heavy(seed, n, d, r):
    """Rows with a few far ones, a tenth of them at random ranks."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, size=(n, d))
    slopes = rng.normal(size=d) * rng.choice([0, 1, 3])
    score = X @ slopes + rng.standard_cauchy(size=n)
    y = np.searchsorted(np.quantile(score, np.arange(1, r) / r), score)
    stray = rng.random(n) < 0.1
    y[stray] = rng.integers(0, r, stray.sum())
    return X, y, np.ones(n)


@pytest.mark.parametrize(("data", "options", "highest"), [
    # from no effects alone the fit ends at -29.961
    (drawn(24, n=30, r=3, noise=0.5)[:3], {"scale": [0, 1]}, -28.79919),
    (heavy(24, 15, 4, 5), {"link": "cauchit"}, -17.63100),
    (heavy(259, 30, 4, 3), {"link": "cauchit"}, -29.84809),
    (heavy(355, 30, 2, 2), {"link": "cauchit"}, -16.17622),
])  # fmt: skip
def test_the_highest_of_several_maxima(data, options, highest):
    """`highest` is what BFGS of scipy finds from nine random starts."""
    X, y, weight = data
    model = fit_pom(X, y, sample_weight=weight, **options)
    assert model.convergence.converged
    assert model.loglik > highest - 2e-5


def test_a_saddle_point_is_no_maximum():
    """With cauchit one of two rows far out, at x = 1 and -1, is better given up. The
    slope along beta is 0 at beta = 0, where the likelihood is least along it."""
    X = np.array([1.0, -1.0] + 20 * [0.0])[:, None]
    offset = np.array([5.0, 5.0] + 20 * [0.0])
    y = np.array([0, 0] + 10 * [0, 1])
    none = np.zeros(0, dtype=np.int64)
    problem = Problem.from_arrays(X, y)
    design = Design.from_problem(problem, np.array([0]), none, none, offset, "flexible")
    loss = Likelihood(design, "cauchit", 0.0, n_threads=1)
    theta = optimize.brentq(
        lambda t: loss.at(np.array([t, 0.0])).gradient[0], -2, 2, xtol=1e-15
    )
    saddle = np.array([theta, 0.0])
    assert np.abs(loss.at(saddle).gradient).max() < 1e-14
    found = newton(loss, saddle, 100, Monitor("fit_pom", 1e-6))
    assert found.status is ordinal.models.Status.CONVERGED
    assert found.point.value < loss.at(saddle).value - 0.01
    model = fit_pom(X, y, link="cauchit", offset=offset)
    assert_allclose(-22 * found.point.value, model.loglik, rtol=1e-10)
    assert model.convergence.converged
    loglik = loglik_of(model, X, y, np.ones(22), offset)
    assert_allclose(loglik(parameters(model)), model.loglik, rtol=1e-12)
    at_zero = max(loglik(np.array([theta, 0.0])) for theta in np.linspace(-1, 1, 201))
    assert model.loglik > at_zero + 0.1
    found = optimize.minimize(lambda x: -loglik(x), [0.0, 5.0], method="BFGS")
    assert_allclose(model.loglik, -found.fun, rtol=1e-9)
    assert (errors(model) > 0).all()


@pytest.mark.slow("hundreds of thousands of rows")
@pytest.mark.parametrize("robust", [False, True])
def test_no_copy_of_many_rows_is_made(robust):
    X, y, weight, offset = drawn(0, n=200_000, d=20)
    options = {"sample_weight": weight, "offset": offset, "robust": robust}
    fit_pom(X[:100], y[:100], link="probit")  # what is imported late, is before
    tracemalloc.start()
    fit_pom(X, y, n_threads=1, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * len(X) + 4e6  # of a row, and of blocks of rows; X has 160 a row


@pytest.mark.parametrize("link", LINKS[:4])
def test_a_start_from_some_of_the_rows_changes_steps_only(link, monkeypatch):
    X, y, weight, offset = drawn(1, n=20_000)
    options = {"sample_weight": weight, "offset": offset, "link": link, "tol": TIGHT}
    plain = fit_pom(X, y, **options)
    monkeypatch.setattr("ordinal._cumulative.fitting._LEAST_ROWS", 1000)
    near = fit_pom(X, y, **options)
    assert near.convergence.n_iter < plain.convergence.n_iter
    assert_allclose(parameters(near), parameters(plain), rtol=1e-10)
    assert_allclose(near.covariance, plain.covariance, rtol=1e-9, atol=1e-18)


def test_starts_from_some_of_the_rows_fit_what_they_lack(monkeypatch):
    """A rank of none of these rows, or a row without probability at their optimum."""
    X, y, *_ = drawn(3, n=20_000)
    rare = np.where((np.arange(20_000) % 16 == 5) & (y == 3), 4, y)
    plain = fit_pom(X, rare)
    monkeypatch.setattr("ordinal._cumulative.fitting._LEAST_ROWS", 1000)
    assert_array_equal(fit_pom(X, rare).coef, plain.coef)
    X, y, *_ = drawn(2, n=20_000, d=1)
    X[1], y[1] = -1e5 * np.sign(np.corrcoef(X[:, 0], y)[0, 1]), y.max()
    model = fit_pom(X, y, link="cloglog")
    assert model.convergence.converged
    assert np.isfinite(model.loglik)


def test_probabilities_where_thresholds_cross():
    X, y = crossing()
    with pytest.warns(DisorderedThresholdsWarning):
        model = fit_pom(X, y, nominal=[0])
    P = model.predict_proba(X)
    below = np.cumsum(P, axis=1)[:, :-1]
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    score = X[:, 1:] @ model.coef
    raw = special.expit(
        model.thresholds - X[:, :1] @ model.nominal_coef.T - score[:, None]
    )
    ordered = (np.diff(raw, axis=1) > 0).all(axis=1)
    assert 0 < ordered.sum() < 150
    assert_allclose(below[ordered], raw[ordered], rtol=1e-10)
    assert_allclose(below, np.sort(raw, axis=1), rtol=1e-10)


@pytest.mark.parametrize("link", LINKS)
def test_a_slope_a_threshold_fits_every_group_by_itself(link):
    counts = np.array([[6, 3, 8, 4], [1, 9, 2, 12]])
    X, y = (np.repeat(a.ravel(), counts.ravel()) for a in np.indices(counts.shape))
    model = fit_pom(X[:, None], y, link=link, nominal=[0], tol=TIGHT)
    shares = np.cumsum(counts, axis=1)[:, :3] / counts.sum(axis=1, keepdims=True)
    edges = DISTRIBUTIONS[link].ppf(shares)
    assert_allclose(model.thresholds, edges[0], rtol=1e-9)
    assert_allclose(model.nominal_coef[:, 0], edges[0] - edges[1], rtol=1e-8)
    expected = counts / counts.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba([[0.0], [1.0]]), expected, rtol=1e-9)
    assert model.coef.size == 0
