"""Promises of every `fit_*` about its results; the methods are those of registry.py."""

import functools
import inspect

import numpy as np
import pytest
from files import solution
from internals import method_of, methods, path_of
from numpy.testing import assert_allclose, assert_array_equal
from registry import (
    FITS,
    METHODS,
    OF_STEPS,
    OPTIONAL,
    REQUIRED,
    Method,
    all_methods,
    every_method,
    marks_of,
    those,
    which,
)
from scipy import sparse
from strategies import raises, sample, slow, with_gaps

import ordinal
from ordinal import kernels
from ordinal.exceptions import NoProbabilitiesError

PRECOMPUTED = {"kernel": "precomputed"}


def test_the_registry_holds_every_fit():
    fits = {*FITS.values()}
    paths = {ordinal.fit_npsvor_path, ordinal.fit_pom_path, ordinal.fit_ratio}
    needy = {m.fit for m in methods(every=True) if m.needs}
    assert {method.fit for method in METHODS} == fits - paths - needy
    alone = {method.fit for method in METHODS if not method.composed}
    assert alone == {known.fit for known in methods()}
    assert len({method.name for method in METHODS}) == len(METHODS)


def with_content(X, content):
    """The rows as a table of that content."""
    if content == "sparse":
        return sparse.csr_array(X)
    table = X.astype(object)
    table[:, 0] = np.where(X[:, 0] > 0, "up", "down")
    return table if content == "categories" else with_gaps(X)


@pytest.mark.parametrize("content", ["missing", "categories", "sparse"])
@every_method
def test_a_fit_takes_what_it_declares_and_nothing_else(method, content):
    X, y = sample(40, 3)
    table = with_content(X, content)
    chosen = "categorical" in inspect.signature(method.fit).parameters
    options = {"categorical": [0]} if chosen and content == "categories" else {}
    if content in method_of(method.fit).accepts_with(method.variant):
        assert method.cut_short(table, y, **options, **method.brief).classes.size == 3
        return
    raises((TypeError, ValueError), r"^(X|column 0 of X)\b", method, table, y)


@every_method
def test_scale_free_is_what_the_units_of_features_do_not_matter_to(method):
    if method.precise is None:
        pytest.skip("rows or pairs are drawn")
    X, y = sample(60, 3)
    scaled = X * [4.0, 0.25, 32.0] + [1.0, -2.0, 3.0]
    options = {**method.precise, **({"cv": 3} if method.composed else {})}
    f, g = (method.numbers(method(table, y, **options), table) for table in (X, scaled))
    assert np.allclose(f, g, atol=10 * method.atol) == method_of(method.fit).scale_free


@all_methods
def test_the_registry_knows_the_options_of_a_method(method):
    parameters = inspect.signature(method.fit).parameters
    names = set(parameters) - {"X", "y", "methods"}
    assert names >= REQUIRED | (set() if method.composed else OF_STEPS)
    assert names & OPTIONAL == method.takes
    assert {parameters[name].kind for name in names} == {inspect.Parameter.KEYWORD_ONLY}


# A dual, sums over rows on a basis, a posterior, and sums of a likelihood
IN_PARTS = {"npsvor", "svorim-basis", "gpor-laplace", "pom"}


@pytest.mark.parametrize(
    ("method", "n", "options"),
    [
        pytest.param(
            method, n, options, id=f"{method}-{n}-{options}",
            marks=marks_of(method, () if i else IN_PARTS),
        )
        for method in METHODS
        for i, (n, options) in enumerate(method.threaded)
    ],
)  # fmt: skip
def test_neither_threads_nor_another_run_change_a_byte(
    method, n, options, monkeypatch, regions
):
    X, y = sample(n, 5)
    models, numbers = [], []
    for openmp, n_threads in [(1, 1), (1, 2), (1, 8), (0, 2), (0, 3), (0, 1)]:
        regions(openmp=openmp)
        with_threads = {**options, "n_threads": n_threads}
        with_threads |= {"rng": 7} if method.can("rng") else {}
        models.append(method.cut_short(X, y, **with_threads))
        monkeypatch.setenv("ORDINAL_NUM_THREADS", str(n_threads))
        numbers.append(method.numbers(models[0], X).tobytes())
    assert len({solution(model) for model in models}) == 1
    assert len(set(numbers)) == 1


@which(takes="rng")
def test_a_seed_is_a_number_or_a_generator(method):
    X, y = sample(40, 3)
    a, b = (method(X, y, rng=rng) for rng in (3, np.random.default_rng(3)))
    assert solution(a) == solution(b)


def assert_same(method: Method, a, b, X, other_X=None):
    """Both models say the same of the rows X, to within the method's tolerance."""
    f = method.numbers(a, X)
    other = method.numbers(b, X if other_X is None else other_X)
    assert_allclose(other, f, atol=method.atol, rtol=method.atol)
    assert_array_equal(b.classes, a.classes)


@which(precise=True)
def test_the_order_of_rows_and_rows_of_weight_zero_do_not_matter(method):
    X, y = sample(40, 3)
    order = np.random.default_rng(1).permutation(40)
    a = method(X, y, **method.precise)
    assert_same(method, a, method(X[order], y[order], **method.precise), X)
    weight = np.where(np.arange(40) % 5 == 0, 0.0, 1.0)
    keep = weight > 0
    X[~keep] += 1.0  # what such rows hold does not matter
    a = method(X, y, sample_weight=weight, **method.precise)
    assert_same(method, a, method(X[keep], y[keep], **method.precise), X[keep])


@which(precise=True, counts_rows=False)
def test_weight_two_is_the_row_written_twice(method):
    X, y = sample(30, 3)
    times = np.random.default_rng(0).integers(0, 4, 30)
    a = method(X, y, sample_weight=times, **method.precise)
    rows = np.repeat(np.arange(30), times)
    assert_same(method, a, method(X[rows], y[rows], **method.precise), X)
    c = method(X, y, **method.precise)  # and weights do matter
    assert np.abs(method.numbers(c, X) - method.numbers(a, X)).max() > 10 * method.atol


@which(precise=True, whole_weights=False, counts_rows=False)
def test_weights_below_one_are_taken(method):
    X, y = sample(40, 3)
    weight = np.random.default_rng(0).uniform(0.1, 0.9, 40)
    a = method(X, y, sample_weight=weight, **method.precise)
    b = method(np.tile(X, (2, 1)), np.tile(y, 2), sample_weight=np.tile(weight / 2, 2),
               **method.precise)  # fmt: skip
    assert_same(method, a, b, X)


@which(takes="class_weight", composed=False)  # features are scaled by sample_weight
def test_class_weights_are_sample_weights(method):
    X, y = sample(60, 3)
    labels = np.array([10, 20, 30])[y]
    factor = {10: 0.3, 30: 2.0}
    given = [0.3, 1.0, 2.0]
    uneven = {"sample_weight": 1 + np.arange(60) % 2}
    uneven |= {"rng": 5} if method.can("rng") else {}
    uneven |= {"gamma": "auto"} if method.can("kernel") else {}
    a = method(X, labels, class_weight=factor, **{**uneven, "sample_weight": None})
    alone = np.array([given[k] for k in y])
    b = method(X, labels, **{**uneven, "sample_weight": alone})
    assert_array_equal(method.numbers(a, X), method.numbers(b, X))
    if hasattr(a, "thresholds"):
        assert_array_equal(a.thresholds, b.thresholds)
    assert_array_equal(a.predict(X), b.predict(X))
    weights = uneven["sample_weight"]
    balanced = method(X, labels, class_weight="balanced", **uneven)
    total = np.bincount(y, weights)
    share = {10 * (k + 1): weights.sum() / (3 * total[k]) for k in range(3)}
    c = method(X, labels, class_weight=share, **uneven)
    f, g = (method.numbers(model, X) for model in (balanced, c))
    assert_allclose(f, g, rtol=1e-6, atol=1e-6)
    assert not np.allclose(method.numbers(a, X), method.numbers(balanced, X))


@which(precise=True, reversible=True)
def test_reversed_ranks_mirror_the_model(method):
    X, y = sample(40, 3)
    a, b = (method(X, sign * y, **method.precise) for sign in (1, -1))
    f, g = (method.numbers(m, X) for m in (a, b))
    sign = 1 if method.decision == "predict_proba" else -1
    mirrored = sign * (g if g.ndim == 1 else g[:, ::-1])
    assert_allclose(f, mirrored, atol=method.atol, rtol=method.atol)
    if hasattr(a, "thresholds"):
        assert_allclose(a.thresholds, -b.thresholds[::-1], atol=10 * method.atol)
    differ = a.predict(X) != -b.predict(X)  # where a row lies between two labels
    assert differ.mean() < 0.1


@which(precise=True, starts=True)
def test_a_start_at_the_end_takes_few_steps_and_stays_there(method):
    X, y = sample(60, 3)
    model = method(X, y, **method.precise)
    again = method(X, y, start=model, **method.precise)
    assert again.convergence.converged
    assert again.convergence.n_iter < model.convergence.n_iter / 2
    assert_same(method, model, again, X)


@every_method
def test_ranks_without_rows_are_as_if_they_were_not_named(method):
    X, y = sample(60, 3)
    probable = {"probability": True} if method.can("probability") else {}
    model = method(X, y, **probable)
    for held, r in ([2, 3, 4], 7), ([1, 3, 5], 8):
        wider = method(X, np.array(held)[y], classes=range(r), **probable)
        assert_array_equal(wider.classes, range(r))
        P = wider.predict_proba(X)
        assert P.shape == (60, r)
        assert not np.delete(P, held, axis=1).any()
        assert not np.signbit(P).any()  # a zero prints without a sign
        assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        for rule in method.rules:
            if rule != "cost":  # what is between two ranks may cost least
                assert set(wider.predict(X, rule=rule).tolist()) <= set(held)
        if r == 7 or not method.distances:
            assert_allclose(P[:, held], model.predict_proba(X), atol=1e-12)
            assert_array_equal(wider.predict(X), np.array(held)[model.predict(X)])
    X, y = sample(60, 4)
    model = method(X, y, sample_weight=np.where(y == 2, 0, 1))
    assert set(model.predict(X).tolist()) == {0, 1, 3}


def column(*values):
    return np.array(values, float)[:, None]


X40, Y40 = sample(40, 3)
HARD = {
    "one feature": (X40[:, :1], Y40),
    "a constant feature": (X40 * [1, 0, 1] + [0, 3, 0], Y40),
    "constant features": (np.ones((9, 2)), np.arange(9) % 3),
    "two rows": (column(0, 1), [0, 1]),
    "two equal rows": (column(1, 1), [0, 1]),
    "every row twice": (np.tile(X40, (2, 1)), np.tile(Y40, 2)),
    "equal rows of different ranks": (np.repeat(X40[:8], 5, axis=0), np.arange(40) % 5),
    "one row a rank": (column(0, 1, 2, 3, 4, 5), [0, 1, 2, 3, 4, 5]),
    "a rank of one row": (X40, np.where(np.arange(40) == 7, 9, Y40)),
    "more features than rows": (sample(10, 3, d=60)[0], np.arange(10) % 3),
    "huge numbers": (X40 * 1e8, Y40),
    "small numbers": (X40 * 1e-8, Y40),
    "far from zero": (X40 + 1e4, Y40),
    "features of other scales": (X40 * [1e-6, 1, 1e6], Y40),
    "rows of zeros": (np.vstack([X40, np.zeros((3, 3))]), np.append(Y40, [0, 1, 2])),
    "separable": (column(*range(12)), np.arange(12) // 4),
}  # fmt: skip


# "features of other scales" are there to be warned of
@pytest.mark.filterwarnings("ignore::ordinal.exceptions.UnscaledFeaturesWarning")
@pytest.mark.parametrize("name", HARD)
@every_method
def test_hard_sets_give_a_usable_model(method, name):
    X, y = HARD[name]
    if method.composed and len(X) < 9:
        pytest.skip("too few rows for folds")
    y = np.array(y)
    model = method.cut_short(X, y, max_time=600.0)
    assert model.convergence.status is not ordinal.models.Status.MAX_TIME
    assert np.isfinite(method.numbers(model, X)).all()
    labels = model.predict(X)
    assert set(labels.tolist()) <= set(y.tolist())
    if name == "separable":
        assert (labels == y).mean() > 0.7
    if not method.can("probability"):
        assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-12)


SKEW = np.array([[0, 1, 2, 3], [9, 0, 1, 2], [9, 9, 0, 1], [9, 9, 9, 0.0]])


@functools.cache
def with_probabilities(method: Method):
    """Fit with costs where the method takes them: then the rule has these. A pool has
    another default rule with them."""
    X, y = sample(60, 4)
    options = {"probability": True} if method.can("probability") else {}
    if method.can("cost") and not method.composed:
        options |= {"cost": SKEW, **method.directed}
    return X, method(X, 10 * y, **options)


@every_method
def test_every_rule_does_what_it_says(method):
    X, model = with_probabilities(method)
    P = model.predict_proba(X)
    assert P.shape == (60, 4)
    assert P.min() >= 0
    assert_allclose(P.sum(axis=1), 1, rtol=1e-13)
    # they say something: more than half of the rows are where they are likely to be
    assert (P.argmax(axis=1) == sample(60, 4)[1]).mean() > 0.5
    assert_array_equal(model.predict(X, rule=method.rules[0]), model.predict(X))
    own = method.can("cost") and not method.composed
    skew = SKEW.T if own else SKEW  # in place of its own
    for rule in method.rules:
        labels = model.predict(X, rule=rule, cost=skew if rule == "cost" else None)
        assert labels.dtype == model.classes.dtype
        assert set(labels.tolist()) <= {0, 10, 20, 30}
    assert_array_equal(model.predict(X, rule="mode"), 10 * P.argmax(axis=1))
    below = np.cumsum(P, axis=1)[:, :-1]
    clear = (np.abs(below - 0.5) > 1e-9).all(axis=1)
    median = 10 * (below < 0.5).sum(axis=1)
    assert_array_equal(model.predict(X, rule="median")[clear], median[clear])
    expected = 10 * (P @ skew).argmin(axis=1)
    assert_array_equal(model.predict(X, rule="cost", cost=skew), expected)
    assert_array_equal(model.predict(X, rule="cost", cost=skew.tolist()), expected)
    distance = np.abs(np.subtract.outer(range(4), range(4)))
    expected = 10 * (P @ (SKEW if own else distance)).argmin(axis=1)
    assert_array_equal(model.predict(X, rule="cost"), expected)
    for cost in (
        np.random.default_rng(0).normal(size=(4, 4)),  # gains on and off the diagonal
        np.array([[0, 2, 1, 3], [1, 0, 1, 0], [0, 0, 0, 0], [5, 1, 4, 0.0]]),
        np.ones((4, 4)),
    ):
        expected = 10 * (P @ cost).argmin(axis=1)
        assert_array_equal(model.predict(X, rule="cost", cost=cost), expected)
        large = np.ldexp(cost, 1000)
        assert_array_equal(model.predict(X, rule="cost", cost=large), expected)


@pytest.mark.parametrize("r", [2, *slow(3, 7)])
@which(takes="cost", fast={m.name for m in METHODS})
def test_asymmetric_costs_move_predictions_in_their_direction(method, r):
    """Where too low a rank costs more, predictions rise; mirrored costs lower them."""
    X, y = sample(120, r, noise=2.0)
    j, k = np.indices((r, r))
    given = {"C": 1.0} if method.can("kernel") else {}

    def mean_rank(too_low, **options):
        cost = np.where(k < j, too_low * (j - k), 1.0 * (k - j))
        fits = [method(X, y, cost=c, **given, **options) for c in (cost, cost.T)]
        return np.array([model.predict(X).mean() for model in fits])

    if method.directed:
        raises(ValueError, r"cost must be symmetric .*'fitted'", mean_rank, 4.0)
    up, down = mean_rank(4.0, **method.directed)
    further_up, further_down = mean_rank(20.0, **method.directed)
    assert down <= method(X, y, **given, **method.directed).predict(X).mean() <= up
    assert up - down > 0.1 * (r - 1)
    assert further_up - further_down > 0.1 * (r - 1)


@every_method
def test_rules_and_costs_that_make_no_sense_are_refused(method):
    X, model = with_probabilities(method)
    choices = ", ".join(map(repr, method.rules))
    for rule in ("mean", 3, ["mode"]):
        with pytest.raises(ValueError, match=f"^rule must be one of {choices}, got"):
            model.predict(X, rule=rule)
    cost = 1 - np.eye(4)
    for rule in method.rules:
        if rule != "cost":
            with pytest.raises(ValueError, match=r"got rule=.*: pass rule='cost'"):
                model.predict(X, rule=rule, cost=cost)
    for bad, message in [
        (1 - np.eye(3), r"^cost has shape \(3, 3\)"),
        (cost * np.nan, "cost must be finite"),
        (np.where(cost > 0, np.inf, 0.0), "cost must be finite"),
    ]:
        raises(ValueError, message, model.predict, X, rule="cost", cost=bad)


@which(takes="probability")
def test_the_link_is_an_addition_to_the_model(method):
    X, y = sample(60, 3)
    # a basis that is drawn before the folds is the same
    model, plain = (method(X, y, probability=p) for p in (True, False))
    assert plain.link is None
    assert_array_equal(method.numbers(model, X), method.numbers(plain, X))
    assert_array_equal(model.predict(X), plain.predict(X))
    for rule in ("mode", "median", "cost"):
        with pytest.raises(NoProbabilitiesError, match="with probability=True"):
            plain.predict("rows that are not read", rule=rule)
    with pytest.raises(NoProbabilitiesError, match="with probability=True"):
        plain.predict_proba("rows that are not read")
    rngs = (3, np.random.default_rng(3), 3, 4)
    links = [method(X, y, probability=True, rng=rng).link for rng in rngs]
    a, b, c, d = (link.offsets.tolist() for link in links)
    assert a == b == c != d


NAMED = [
    ("rbf", kernels.RBF(0.3), {"gamma": 0.3}),
    ("linear", kernels.Linear(), {}),
    ("polynomial", kernels.Polynomial(gamma=0.3), {"gamma": 0.3}),
    ("matern52", kernels.Matern(2.5, 0.3), {"gamma": 0.3}),
]


@pytest.mark.parametrize(("name", "kernel", "gamma"), NAMED, ids=lambda v: str(v)[:6])
@which(takes="kernel", precise=True)
def test_the_same_kernel_in_every_form(method, name, kernel, gamma):
    X, y = sample(60, 3)
    rows, new, y = X[::2], X[1::2], y[::2]
    options = dict(method.precise)
    expected = method(rows, y, **{**options, "kernel": kernel})
    K, K_new = kernel(rows, rows), kernel(new, rows)
    diagonal = {}
    if method.needs_diagonal:
        diagonal = {"diagonal": np.array([kernel(x[None], x[None])[0, 0] for x in new])}
    forms = [
        (rows, new, {"kernel": lambda A, B: kernel(A, B)}, {}),
        (K, K_new, PRECOMPUTED, diagonal),
        (sparse.csr_array(rows), sparse.csr_array(new), {"kernel": kernel}, {}),
        (sparse.csr_array(rows), new, {"kernel": kernel}, {}),
        (np.asfortranarray(rows), new.tolist(), {"kernel": kernel}, {}),
    ]
    if "gamma" in inspect.signature(method.fit).parameters:  # GPOR learns it
        forms.append((rows, new, {"kernel": name, **gamma}, {}))
    f = method.numbers(expected, new)
    atol = 1e-4 * max(1.0, np.abs(f).max())
    for X_form, new_form, form, at in forms:
        model = method(X_form, y, **{**options, **form})
        assert_allclose(method.numbers(model, new_form, **at), f, atol=atol)
        if hasattr(model, "thresholds"):
            assert_allclose(model.thresholds, expected.thresholds, atol=atol)
        if method.rules[0] != "nearest":  # ties of two ranks
            assert (model.predict(new_form, **at) == expected.predict(new)).mean() > 0.9


@which(takes="kernel", missing="pearson")
def test_missing_entries_go_with_the_kernel_that_takes_them(method):
    X, y = sample(60, 3, d=40)
    X = with_gaps(X)
    rows, new, y = X[::2], X[1::2], y[::2]
    pearson = kernels.Pearson()
    model = method(rows, y, kernel=pearson)
    K, K_new = pearson(rows, rows), pearson(new, rows)
    expected = method(K, y, **PRECOMPUTED)
    diagonal = {"diagonal": np.ones(30)} if method.needs_diagonal else {}
    f = method.numbers(expected, K_new, **diagonal)
    assert_allclose(method.numbers(model, new), f, atol=1e-3 * np.abs(f).max())
    with pytest.raises(ValueError, match=r"^X must be finite or NaN; first bad row"):
        model.predict(np.where(np.isnan(new), np.inf, new))


WITH_BASIS = [m for m in METHODS if m.can("basis", "kernel")]
WITH_BASIS = [m for m in WITH_BASIS if "basis" not in m.variant]
# which draw rows that suit the kernel that is found, or find no number of them
SEARCHING = ("gpor-ep", "gpor-laplace", "npsvor-admm")


@those([m for m in WITH_BASIS if m.name not in SEARCHING])
def test_a_basis_is_found_large_enough(method):
    """All rows are then fitted to, on as many as were found enough."""
    X, y = sample(600, 3)
    model = method.cut_short(X, y, kernel=kernels.RBF(0.3), basis="auto")
    again = method.cut_short(X, y, kernel=kernels.RBF(0.3), basis=100)
    assert len(model.support) >= 50  # of the 100 that were drawn; some span no more
    assert_array_equal(model.support, again.support)
    assert_array_equal(method.numbers(model, X), method.numbers(again, X))


def assert_same_within_certificates(method, a, b, X, other_X):
    """Either dual value bounds the objective of the other model, if they have any."""
    of_a, of_b = a.convergence, b.convergence
    if of_a.dual is None:
        assert_allclose(method.numbers(b, other_X), method.numbers(a, X), atol=1e-4)
    else:
        assert of_a.dual <= of_b.primal + 1e-6 * abs(of_b.primal)
        assert of_b.dual <= of_a.primal + 1e-6 * abs(of_a.primal)


@those(WITH_BASIS)
def test_a_basis_of_all_rows_is_the_whole_kernel(method):
    X, y = sample(90, 3, noise=1.0)
    fit = functools.partial(method.cut_short, X, y, kernel=kernels.RBF(0.3))
    whole, model = (fit(basis=basis) for basis in (None, np.arange(90)))
    assert_same_within_certificates(method, whole, model, X, X)


@pytest.mark.parametrize("basis", [("random", 12), ("kmeans++", 12), ("cholesky", 12)])
# the basis of ADMM is the pivots
@those([m for m in WITH_BASIS if m.name != "npsvor-admm"])
def test_a_basis_that_is_drawn_is_that_of_its_rows(method, basis):
    X, y = sample(90, 3, noise=1.0)
    options = {"kernel": kernels.RBF(0.3), "sample_weight": np.arange(90) % 3}
    if method.decision == "predict_latent":
        options["tol"] = 1e-5
    model = method(X, y, basis=basis, **options)
    rows = (model.support[:, None] == X).all(axis=2).argmax(axis=1)
    assert_array_equal(X[rows], model.support)
    assert len(set(rows)) == 12
    assert (rows % 3).all()  # of positive weight
    named = method(X, y, basis=np.sort(rows), **options)
    assert_same_within_certificates(method, model, named, X, X)


@those([m for m in WITH_BASIS if m.can("probability")])
def test_a_basis_of_a_precomputed_matrix_is_that_of_its_rows(method):
    X, y = sample(90, 3, noise=1.0)
    K, rows = kernels.RBF(0.3)(X, X), np.arange(0, 90, 4)
    of_rows = method.cut_short(X, y, kernel=kernels.RBF(0.3), basis=rows)
    options = PRECOMPUTED | {"basis": rows, "probability": True}
    model = method.cut_short(K, y, **options)
    assert_same_within_certificates(method, of_rows, model, X, K)
    assert_allclose(model.predict_proba(K).sum(axis=1), 1)
    if method.name != "tlssvor":  # which takes thresholds alone where it has no rows
        with pytest.raises(ValueError, match="basis must have rows in two folds of p"):
            method(K, y, **options | {"basis": [0]})


VALUES = {  # of what may vary along a path, and of the others at the same time
    "C": [0.1, 1.0, 30.0], "C2": [0.3], "epsilon": [0.4], "ridge": [1e-4, 1e-2, 1.0],
    "l1": [1e-2, 0.1], "l2": [1e-2], "pair_ratio": [1.0, np.inf], "n_rounds": [9, 3],
}  # fmt: skip
OTHERS = {"C": 3.0, "epsilon": 0.1, "ridge": 1e-3, "l2": 0.1, "pair_ratio": 2.0}


@those([method for method in METHODS if path_of(method.fit) is not None])
def test_points_of_a_path_are_fits_one_by_one(method):
    """They take what they do not name from the arguments of the fit."""
    X, y = sample(90, 3, noise=1.0)
    new, path = X[::3] + 0.1, path_of(method.fit)
    points = [{name: value} for name in path.varying for value in VALUES[name]]
    precise = method.precise or {}
    given = {name: OTHERS[name] for name in path.varying if name in OTHERS}
    options = {"n_threads": 1, **method.variant, **precise, **given}
    models, values = path.fit(X, y, points, None, new, **options)
    for point, model, f in zip(points, models, values, strict=True):
        told = getattr(model, "statistics", model)
        named = {**given, **point}.items()
        assert all(getattr(told, name, v) == v for name, v in named)
        alone = method(X, y, **{**precise, **given, **point})
        if method.precise is not None:
            assert_same(method, alone, model, new)
        else:
            assert_same_within_certificates(method, alone, model, new, new)
        if f is not None:  # what a search judges its test rows by
            assert_allclose(f, model.decision_function(new), rtol=1e-9, atol=1e-9)
            assert_array_equal(model._labels(f), model.predict(new))
