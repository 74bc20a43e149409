"""Cumulative link mixed models, beside R's clmm and clmm2: tests/reference/clmm.R."""

import itertools
import json
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from files import loaded
from numpy.testing import assert_allclose
from oracles import ratio_probabilities, slope
from strategies import raises
from test_clmm_averages import grouped
from test_ratio import CASES, FAMILIES

import ordinal
from ordinal import inference
from ordinal.__main__ import main
from ordinal._cumulative.design import Design, structure_of
from ordinal._cumulative.likelihood import cumulative
from ordinal._solvers import _cumulative
from ordinal.mixed.elimination import RandomTerm
from ordinal.mixed.likelihood import MixedLikelihood
from ordinal.mixed.rows import RatioRows

pd = pytest.importorskip("pandas")
pytest.importorskip("formulaic")

DATA = Path(__file__).parent / "data"
REFERENCE = json.loads((DATA / "clmm_reference.json").read_text("utf-8"))
LAPLACE = {"n_quadrature": 1}
TRIANGLE = np.tril(np.ones((2, 2), dtype=bool))


def wine():
    X, y = ordinal.datasets.load_wine(as_frame=True)
    return X.assign(touch=(X["contact"] == "yes").astype(float), rating=y)


WINE = wine()
JUDGE = "rating ~ temp + contact + (1 | judge)"
MODEL = ordinal.fit_clmm(JUDGE, WINE, **LAPLACE)
AUTO = ordinal.fit_clmm(JUDGE, WINE)


@pytest.fixture(scope="module")
def exact():
    return ordinal.fit_clmm(JUDGE, WINE, n_quadrature=10)


@pytest.fixture(scope="module")
def singular():
    return ordinal.fit_clmm(f"{JUDGE} + (1 | bottle)", WINE)


def problem(link, nominal=(), scale=(), seed=0, n=90):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, 4)), rng.uniform(0.2, 2, n)
    rank = rng.integers(0, 4, n).astype(np.int32)
    columns = (np.array(c, dtype=np.int64) for c in ([0, 1], nominal, scale))
    design = Design(
        X, *columns, rng.normal(size=n), rank, w, w.sum(), structure_of("flexible", 3),
        X.mean(axis=0), X.std(axis=0),
    )  # fmt: skip
    effects = np.column_stack([np.ones(n), rng.normal(size=n)])
    return design, effects, rng.integers(0, 9, n), rng.integers(0, 5, n)


def point(loss, nominal, scale):
    n_free = sum(term.free.sum() for term in loss.terms)
    theta = np.random.default_rng(1).uniform(0.3, 0.8, n_free)
    parts = [-1, 0.2, 1.1], [0.05] * 3 * len(nominal), [0.3, -0.2], [0.1] * len(scale)
    return np.concatenate([*parts, theta])


def structures(effects, g, h):
    one, single = effects[:, :1], np.ones((1, 1), dtype=bool)
    intercept = RandomTerm(g, 9, one, single)
    slope = RandomTerm(g, 9, effects, TRIANGLE)
    other = RandomTerm(h, 5, effects, TRIANGLE)
    third = RandomTerm(np.arange(g.size) % 3, 3, one, single)
    nested = [intercept, RandomTerm(g % 3, 3, effects, TRIANGLE)]
    return {
        "intercept": ([intercept], 1),
        "slope": ([slope], 1),
        "crossed": ([slope, other], 1),
        "three factors": ([slope, other, third], 1),
        "nested": (nested, 1),
        "3 nested nodes": (nested, 3),
        "5 nested nodes": ([intercept, RandomTerm(g % 3, 3, one, single)], 5),
        "5 nodes": ([intercept], 5),
        "3 x 3 nodes": ([slope], 3),
    }


def gradient_cases():
    """Yield each family and link with nominal and scale effects, or without."""
    for family, link in [("cumulative", link) for link in _cumulative.LINKS] + CASES:
        for effects in (((), ()), ((3,), (2,) if family == "cumulative" else ())):
            fast = link == "logit" if family == "cumulative" else effects[0]
            marks = () if fast else pytest.mark.slow("links have tests of their own")
            yield pytest.param(family, link, *effects, marks=marks)


def rows_of(family):
    return {} if family == "cumulative" else {"rows_of": partial(RatioRows, family)}


@pytest.mark.parametrize(("family", "link", "nominal", "scale"), [*gradient_cases()])
def test_gradients_are_differences(family, link, nominal, scale):
    design, Z, g, h = problem(link, nominal, scale)
    every = structures(Z, g, h)
    short = family != "cumulative" and link != "logit"
    for name in ("slope", "5 nodes") if short else every:
        terms, nodes = every[name]
        weight = np.linspace(0.5, 2, 9) if len(terms) == 1 else None
        loss = MixedLikelihood(design, link, terms, nodes, 1, weight, **rows_of(family))
        x = point(loss, nominal, scale)
        value, gradient = loss.value_and_gradient(x)
        assert_allclose(loss.value(x), value, rtol=1e-12)
        for way in np.random.default_rng(2).choice([-1.0, 1.0], (2, x.size)):
            found = slope(
                lambda t, x=x, f=loss, d=way: f.value_and_gradient(x + t * d)[0], 3e-4
            )
            assert abs(found - gradient @ way) < 1e-9 * np.abs(gradient).sum()


def test_no_byte_depends_on_the_threads():
    n, found = 6000, []
    design, Z, g, h = problem("logit", (3,), (2,), n=n)
    for terms, nodes in structures(Z, g, h).values():
        # so many levels that they are several parts
        many = [replace(terms[0], group=np.arange(n) * 7 % 500, n_levels=500)]
        for n_threads in (1, 2, 3):
            loss = MixedLikelihood(design, "logit", many + terms[1:], nodes, n_threads)
            value, gradient = loss.value_and_gradient(point(loss, (3,), (2,)))
            found.append((value, gradient.tobytes()))
        assert len({*found}) == 1
        found.clear()


def brute_force(family, link, y, eta, thresholds, groups, Z, L):
    """log L by a grid of 73 points per effect, of deviations -9 to 9."""
    grid = np.linspace(-9, 9, 73)
    q = Z.shape[1]
    u = np.array(list(itertools.product(grid, repeat=q)))
    weight = np.exp(-0.5 * (u * u).sum(axis=1)) * ((grid[1] - grid[0]) ** q)
    product = np.ones((groups.max() + 1, len(u))) * weight / (2 * np.pi) ** (q / 2)
    for row, group in enumerate(groups):
        at = thresholds - (eta[row] + Z[row] @ L @ u.T)[:, None]
        if family == "cumulative":
            P = np.diff(cumulative(link, at), prepend=0, append=1, axis=1)
        else:
            P = ratio_probabilities(family, link, at)
        product[group] *= P[:, y[row]]
    return np.log(product.sum(axis=1)).sum()


@pytest.mark.parametrize(("family", "link", "q", "nodes"), [
    ("cumulative", "logit", 1, 40), ("cumulative", "probit", 1, 40),
    ("cumulative", "cloglog", 1, 40), ("cumulative", "logit", 2, 25),
    ("stopping", "logit", 1, 40), ("stopping", "probit", 1, 40),
    ("adjacent", "logit", 1, 40), ("adjacent", "probit", 2, 25),
])  # fmt: skip
def test_quadrature_is_the_integral(family, link, q, nodes):
    design, Z, g, _ = problem(link)
    n = design.n_samples
    design = replace(design, weight=np.ones(n), total=float(n), offset=None)
    L = np.array([[0.7, 0.0], [0.2, 0.5]])[:q, :q]
    term = RandomTerm(g, 9, Z[:, :q], np.tril(np.ones((q, q), dtype=bool)))
    loss = MixedLikelihood(design, link, [term], nodes, **rows_of(family))
    x = np.concatenate([[-1, 0.2, 1.1, 0.3, -0.2], L[np.tril_indices(q)]])
    eta = design.columns(slice(None), design.location) @ x[3:5]
    exact = brute_force(family, link, design.rank, eta, x[:3], g, Z[:, :q], L)
    assert_allclose(-loss.value_and_gradient(x)[0], exact, rtol=1e-9)


FITS = {
    "laplace": (JUDGE, {}),
    "nodes10": (JUDGE, {"n_quadrature": 10}),
    "probit": (JUDGE, {"link": "probit"}),
    # clmm with one term calls this link cloglog, and this package and R's clm loglog
    "swapped": (JUDGE, {"link": "loglog"}),
    "swapped10": (JUDGE, {"link": "cloglog", "n_quadrature": 10}),
    "crossed": (f"{JUDGE} + (1 | bottle)", {}),
    "equidistant": (JUDGE, {"threshold": "equidistant"}),
    "symmetric": (JUDGE, {"threshold": "symmetric"}),
    "slope": ("rating ~ temp + contact + (1 + touch | judge)", {}),
    "scale": (
        "rating ~ contact + temp + (1 | judge)",
        {"scale": ["temp"], "n_quadrature": 10},
    ),
    "nominal": (JUDGE, {"nominal": ["contact"], "n_quadrature": 10}),
}


def assert_fit_is_that_of_r(name, formula, table, options):
    """The reference maximises R's own likelihood to a gradient of 1e-6."""
    model = ordinal.fit_clmm(formula, table, **LAPLACE | options, tol=1e-8)
    record = REFERENCE[name]
    assert model.convergence.converged
    assert record["gradient"] < 1e-5
    assert_allclose(model.loglik, record["loglik"], rtol=1e-9)
    estimates = np.array(record["estimates"])
    if options.get("nominal"):
        q = model.alpha.size  # slopes at the thresholds have the other sign in R
        estimates[q : 2 * q] *= -1
    assert_allclose(model.parameters, estimates, rtol=1e-5)
    assert_allclose(model.deviations["sd"], record["sd"], rtol=1e-5)
    # Differences of R's value of "swapped" reach no gradient below 6e-6, and those of
    # "soup_crossed", with a factor of six levels, differ from ours in the fifth digit.
    rtol = 1e-4 if name in ("swapped", "soup_crossed") else 1e-5
    assert_allclose(model.standard_errors, record["errors"], rtol=rtol)
    if record["sd_errors"]:
        errors = model.deviations["standard_error"]
        assert_allclose(errors, record["sd_errors"], rtol=rtol)


@pytest.mark.parametrize("name", FITS)
def test_fits_are_those_of_r(name):
    formula, options = FITS[name]
    assert_fit_is_that_of_r(name, formula, WINE, options)


NESTED = "SURENESS ~ PROD + (1 | RESP) + (1 | PROD:RESP)"
SOUP = {
    "soup_nested": (NESTED, {}),
    # with several terms clmm does not exchange the names of these links
    "soup_cloglog": (NESTED, {"link": "cloglog"}),
    "soup_slope": ("SURENESS ~ PROD + (1 + x | RESP)", {}),
    "soup_crossed": ("SURENESS ~ PROD + (1 | RESP) + (1 | PRODID)", {}),
    "soup_scale": (
        "SURENESS ~ PROD + (1 | RESP)", {"n_quadrature": 10, "scale": ["PROD"]},
    ),
    "soup_nominal": (
        "SURENESS ~ DAY + PROD + (1 | RESP)", {"n_quadrature": 10, "nominal": ["PROD"]},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def soup(tmp_path_factory):
    """The data set of R's package: 1847 rows, 185 respondents."""
    path = tmp_path_factory.mktemp("soup") / "soup.csv"
    script = f"write.csv(ordinal::soup, '{path.as_posix()}', row.names = FALSE)"
    try:
        subprocess.run(["Rscript", "-e", script], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs R with the package ordinal, which has the data set")
    table = pd.read_csv(path, dtype={"PRODID": str, "DAY": str})
    return table.assign(x=(table["PROD"] == "Test").astype(float))


@pytest.mark.slow("1847 rows, and R for the data")
@pytest.mark.parametrize("name", SOUP)
def test_fits_of_soup_are_those_of_r(name, soup):
    formula, options = SOUP[name]
    assert_fit_is_that_of_r(name, formula, soup, options)


def test_a_variance_of_0_is_found_on_the_boundary(singular):
    assert singular.is_singular
    assert singular.deviations["sd"][1] == 0
    assert_allclose(singular.loglik, MODEL.loglik, rtol=1e-9)
    assert "Singular" in singular.summary()
    assert not MODEL.is_singular


def test_nested_and_uncorrelated_terms():
    nested, other, bars, apart = (
        ordinal.fit_clmm(f"rating ~ temp + {terms}", WINE, **LAPLACE)
        for terms in (
            "contact + (1 | judge/temp)", "contact + (1 | judge) + (1 | judge:temp)",
            "(touch || judge)", "(1 | judge) + (0 + touch | judge)",
        )
    )  # fmt: skip
    assert [own.name for own in nested.random] == ["judge:temp", "judge"]
    assert nested.random[0].levels.size == 18
    assert nested.loglik == other.loglik
    assert bars.n_variances == 2
    assert_allclose(bars.loglik, apart.loglik, rtol=1e-10)
    assert bars.random[0].covariance[0, 1] == 0


@pytest.mark.parametrize("text", ["(1 | judge)", " ( 1|bottle )+(1 | judge)"])
def test_random_effects_alone_are_a_model(text):
    alone = ordinal.fit_clmm(f"rating ~ {text}", WINE)
    other = ordinal.fit_clmm(f"rating ~ 1 + {text}", WINE)
    assert alone.coef.size == 0
    assert alone.loglik == other.loglik
    with pytest.raises(ValueError, match=r"pass the formula 'y ~ \(1 \| judge\)'"):
        ordinal.fit_clmm(WINE[["judge"]], WINE["rating"], random="(1 | judge)")


@pytest.mark.parametrize(
    "labels",
    [[10, 9, 2], [10.5, 9.0, -2.0], ["c", "b", "a"], [True, False, "2"], [2**70, 1, 2],
     pd.Categorical(["high", "mid", "low"], ["low", "mid", "high", "top"])],
    ids=["int", "float", "str", "mixed", "huge", "categorical"],
)  # fmt: skip
def test_levels_have_the_type_and_order_of_their_labels(labels):
    """Increasing or, for a categorical type, in the order of its categories."""
    given = pd.Series(labels).iloc[(WINE["judge"].astype(int) - 1) // 3]
    table = WINE.assign(g=given.set_axis(WINE.index))
    model = ordinal.fit_clmm("rating ~ temp + (1 | g)", table)
    levels = model.ranef()["level"].tolist()
    if isinstance(labels, pd.Categorical):
        assert levels == ["low", "mid", "high"]
    elif all(type(v) in (int, float) and v < 2**63 for v in labels):
        assert levels == sorted(labels)
    else:
        assert levels == sorted(map(str, labels))
    P = model.predict_proba(table, effects="known")
    as_text = table.assign(g=[str(v).removesuffix(".0") for v in table["g"]])
    assert (model.predict_proba(as_text, effects="known") == P).all()
    by_text = ordinal.fit_clmm("rating ~ temp + (1 | g)", as_text)
    assert_allclose(by_text.predict_proba(table, effects="known"), P, atol=1e-7)


def test_colons_in_labels_do_not_merge_combinations():
    judge = WINE["judge"].astype(str)
    odd = WINE["judge"].astype(int) % 2 == 1
    a, b = np.where(odd, "x:y", "x"), np.where(odd, "z", "y:z")
    table = WINE.assign(a=a, b=b, judge=judge)
    model = ordinal.fit_clmm("rating ~ temp + contact + (1 | a:b)", table)
    assert model.random[0].levels.tolist() == [r"x:y\:z", r"x\:y:z"]
    table = table.assign(odd=odd)
    mirror = ordinal.fit_clmm("rating ~ temp + contact + (1 | odd)", table)
    assert_allclose(model.loglik, mirror.loglik, rtol=1e-9)
    P, Q = (of.predict_proba(table, effects="known") for of in (model, mirror))
    assert_allclose(P, Q, atol=1e-8)


@pytest.mark.parametrize("family", ["cumulative", "stopping", "adjacent"])
def test_weights_order_and_names_of_groups(family):
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 3, len(WINE))
    fit = partial(ordinal.fit_clmm, JUDGE, family=family, tol=1e-9)
    weighted = fit(WINE, sample_weight=weight)
    repeated = WINE.iloc[rng.permutation(np.repeat(np.arange(len(WINE)), weight))]
    again = fit(repeated.assign(judge=[f"j{10 - int(k)}" for k in repeated["judge"]]))
    assert_allclose(again.parameters, weighted.parameters, atol=1e-6)
    assert_allclose(again.loglik, weighted.loglik, rtol=1e-11)


@pytest.mark.parametrize(
    ("family", "nodes"),
    [("cumulative", 1), ("cumulative", 7), ("stopping", 1), ("adjacent", 3)],
)
def test_a_group_of_weight_2_is_the_group_twice(family, nodes):
    weight = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1])[np.asarray(WINE["judge"], int) - 1]
    rows = np.repeat(np.arange(len(WINE)), weight)
    copy = np.concatenate([np.arange(k) for k in weight])
    twice = WINE.iloc[rows].assign(judge=[f"{j}/{c}" for j, c in zip(
        WINE["judge"].iloc[rows], copy, strict=True)])  # fmt: skip
    fit = partial(ordinal.fit_clmm, JUDGE, family=family, n_quadrature=nodes, tol=1e-9)
    found, expected = fit(WINE.assign(v=weight), group_weight="v"), fit(twice)
    assert_allclose(found.loglik, expected.loglik, rtol=1e-10)
    assert_allclose(found.parameters, expected.parameters, rtol=1e-5)
    assert_allclose(found.standard_errors, expected.standard_errors, rtol=1e-4)
    assert found.statistics.n_obs == expected.statistics.n_obs
    assert_allclose(found.statistics.null_loglik, expected.statistics.null_loglik)
    ends, others = (m.confint_deviations()["upper"] for m in (found, expected))
    assert_allclose(ends, others, rtol=1e-4)


def test_rows_that_lack_any_value_are_left_out_of_everything():
    """Values of features, labels, groups, slopes, clusters and weights of groups."""
    table = WINE.assign(
        cluster=WINE["judge"].astype(int) // 2,
        w=WINE["judge"].astype(int) % 3 + 1.0,
        x=np.arange(72.0) % 7,
    ).astype({"judge": object, "cluster": object, "rating": float, "temp": object})
    lacking = {"judge": 3, "cluster": 7, "x": 11, "rating": 20, "temp": 31, "w": 40}
    gaps = table.copy()
    for name, row in lacking.items():
        gaps.loc[row, name] = None
    gaps.loc[40, "judge"] = None  # whose weight is not read either
    fit = partial(
        ordinal.fit_clmm, "rating ~ temp + contact + (0 + x | judge)",
        cluster="cluster", group_weight="w", classes=sorted(set(WINE["rating"])),
    )  # fmt: skip
    for name, value in (("judge", None), ("cluster", None), ("cluster", np.nan)):
        some = table.copy()
        some.loc[[3, 7], name] = value
        raises(ValueError, r"2 of 72 rows lack (a label|labels)", fit, some)
    model = fit(gaps, missing="drop")
    rest = fit(table.drop(index=list(lacking.values())))
    assert model.statistics.n_missing == len(lacking)
    assert_allclose(model.parameters, rest.parameters, atol=1e-9)
    assert_allclose(model.covariance, rest.covariance, rtol=1e-6)
    gaps.loc[gaps["contact"] == "no", "judge"] = None
    gaps.loc[gaps["contact"] == "yes", "rating"] = None
    with pytest.raises(ValueError, match=r"72 of 72 rows lack values .*'groups' 3"):
        fit(gaps, missing="drop")


@pytest.mark.parametrize(("term", "numbers", "effects"), [
    ("(temp | judge)", "(w | judge)", ["(Intercept)", "temp[warm]"]),
    ("(0 + temp | judge)", "(0 + c + w | judge)", ["temp[cold]", "temp[warm]"]),
    ("(temp || judge)", "(w || judge)", ["(Intercept)", "temp[warm]"]),
    ("(0 + temp + t | judge)", "(0 + c + w + m + h | judge)", None),
])  # fmt: skip
def test_slopes_of_a_category_are_those_of_its_indicators(term, numbers, effects):
    level = WINE["bottle"].astype(int) % 3
    table = WINE.assign(
        c=(WINE["temp"] == "cold") * 1.0, w=WINE["temp"] == "warm",
        t=pd.Categorical.from_codes(level, ["low", "mid", "high"]),
        m=level == 1, h=(level == 2).astype(int),
    )  # fmt: skip
    one, other = (
        ordinal.fit_clmm(f"rating ~ contact + {text}", table, max_iter=500, **LAPLACE)
        for text in (term, numbers)
    )
    assert one.loglik == other.loglik
    assert effects is None or one.random[0].effects == tuple(effects)
    for model in (one, loaded(one)):
        P = model.predict_proba(table[::-1], effects="known")
        assert_allclose(P, other.predict_proba(table[::-1], effects="known"))
    with pytest.raises(ValueError, match="holds 'hot' in row 0"):
        one.predict_proba(table.assign(temp="hot"), effects="known")


def test_effects_of_a_category_with_random_slopes_are_differences():
    model = ordinal.fit_clmm("rating ~ temp + contact + (temp | judge)", WINE)
    tables = (WINE.assign(temp=level) for level in ("cold", "warm"))
    low, high = (model.predict_proba(t, effects="new").mean(axis=0) for t in tables)
    found = model.marginal_effects(WINE, effects="new")
    own = found["name"] == "temp[warm]"
    assert_allclose(found["effect"][own], high - low, atol=1e-7)
    formula = "rating ~ temp + (temp | judge)"
    model = ordinal.fit_clmm(formula, WINE, reference={"temp": "warm"})
    assert model.random[0].effects == ("(Intercept)", "temp[cold]")
    assert model.coef_names == ("temp[cold]",)


def test_null_distributions_of_random_effects():
    """Of a correlation, one variance with other parameters, and two variances."""
    table = WINE.assign(w=(WINE["temp"] == "warm") * 1.0)

    def fit(terms):
        if "|" not in terms:
            return ordinal.fit_pom(f"rating ~ {terms}", table)
        return ordinal.fit_clmm(f"rating ~ {terms}", table, n_quadrature=1)

    plain, one, apart, both, more, crossed = map(fit, (
        "temp", "temp + (1 | judge)", "temp + (w || judge)", "temp + (w | judge)",
        "temp + contact + (1 | judge)", "temp + (1 | judge) + (1 | bottle)",
    ))  # fmt: skip
    tail = scipy.stats.chi2.sf
    for smaller, larger, p_value, null in (
        (apart, both, lambda x: tail(x, 1), "chi2(1)"),
        (one, more, lambda x: tail(x, 1), "chi2(1)"),
        (one, apart, lambda x: tail(x, 1) / 2, "(chi2(0) + chi2(1)) / 2"),
        (one, crossed, lambda x: tail(x, 1) / 2, "(chi2(0) + chi2(1)) / 2"),
        (one, both, lambda x: (tail(x, 1) + tail(x, 2)) / 2, "(chi2(1) + chi2(2)) / 2"),
        (plain, more, lambda x: (tail(x, 1) + tail(x, 2)) / 2,
         "(chi2(1) + chi2(2)) / 2"),
        (plain, both, lambda x: tail(x, 3), "chi2(3), conservative"),
        (plain, crossed, lambda x: tail(x, 2), "chi2(2), conservative"),
    ):  # fmt: skip
        found = ordinal.inference.lr_test(smaller, larger)
        assert_allclose(found.p_value, p_value(found.chi2), rtol=1e-9)
        assert found.null == null
        table_ = ordinal.inference.anova(larger, smaller)
        assert table_["null"].tolist() == ["", null]
        assert table_["p_value"][1] == found.p_value
    for smaller, larger, message in (
        (fit("temp + (1 | bottle)"), more, r"effects \['\(Intercept\)'\] of bottle"),
        (both, fit("temp * contact + (w || judge)"), "which are uncorrelated"),
        (fit("contact + (1 | judge)"), apart, "effects of .contact.yes.. are no"),
        (one, ordinal.fit_clmm("rating ~ temp + contact + (1 | judge)", table,
                               n_quadrature=7), "quadrature nodes, got 1 and 7"),
    ):  # fmt: skip
        raises(ValueError, message, ordinal.inference.lr_test, smaller, larger)


def test_summary_and_tables():
    text = MODEL.summary()
    assert "Random effects (Laplace approximation):" in text
    assert "Number of groups: judge 9" in text
    assert MODEL.dof == 7
    assert_allclose(MODEL.aic, 2 * 7 - 2 * MODEL.loglik)
    assert_allclose(MODEL.icc(), 1.27947 / (1.27947 + np.pi**2 / 3), rtol=1e-4)
    crossed = ordinal.fit_clmm("rating ~ temp + (1 | judge) + (1 | bottle)", WINE)
    shares = [crossed.icc(group) for group in ("judge", "bottle")]
    assert_allclose(sum(shares), crossed.icc())
    assert MODEL.icc("judge") == MODEL.icc()
    raises(ValueError, "group must be one of 'judge', 'bottle'", crossed.icc, "row")
    assert MODEL.confint()["name"].tolist()[-2:] == ["temp[warm]", "contact[yes]"]
    for name in ("proportional_odds_test", "influence", "hosmer_lemeshow"):
        with pytest.raises(TypeError, match=f"{name} is not defined for a ClmmModel: "):
            getattr(inference, name)(MODEL)
    raises(ValueError, "X must be given", MODEL.predictions)
    assert "deviations   judge (Intercept) 1.131" in repr(MODEL)


def test_profile_intervals_of_a_deviation(exact):
    found = exact.confint_deviations()
    # R's ends are of a spline through its profile
    assert_allclose(found["lower"], 0.5048597, rtol=1e-4)
    assert_allclose(found["upper"], 2.272327, rtol=1e-4)
    assert_allclose(found["estimate"], exact.deviations["sd"])
    wide = exact.confint_deviations(0.9999)
    assert wide["lower"][0] == 0
    assert wide["upper"][0] > found["upper"][0]
    table = exact.confint(method="profile")
    assert table["name"].tolist() == ["temp[warm]", "contact[yes]"]
    assert np.all(table["lower"] < exact.coef)
    assert np.all(table["upper"] > exact.coef)
    tidy = inference.tidy(exact, method="profile")
    assert_allclose(tidy["upper"][-2:], table["upper"])


def test_profiles_of_a_slope_do_not_depend_on_the_origin_of_its_column():
    """Its deviation is that of a row of the factor, which moves with the origin."""
    x, y, groups = grouped()
    fit = {"groups": {"g": groups["g"]}, "slopes": {"g": [0]}, "tol": 1e-9, **LAPLACE}
    one, other = (ordinal.fit_clmm(column, y, **fit) for column in (x, 1e3 * (x + 2)))
    assert not one.is_singular
    for side in ("lower", "upper"):
        ends, others = (m.confint_deviations()[side] for m in (one, other))
        assert_allclose(1e3 * others[1], ends[1], rtol=1e-4)
        assert abs(others[0] - ends[0]) > 0.1
        ends, others = (m.confint(method="profile")[side] for m in (one, other))
        assert_allclose(1e3 * others, ends, rtol=1e-4)


def nested_without_schools(seed=3):
    """A model of classes in schools that differ by their classes only."""
    rng = np.random.default_rng(seed)
    group, x = np.repeat(np.arange(24), 8), rng.normal(size=(192, 1))
    score = x[:, 0] + rng.normal(size=24)[group] + rng.logistic(size=192)
    groups = {"class": group, "school": group // 4}
    return ordinal.fit_clmm(x, np.digitize(score, [-1, 1]), groups=groups, **LAPLACE)


@pytest.mark.parametrize("kind", ["crossed", "nested"])
def test_profiles_of_a_singular_model_have_free_variances(singular, kind):
    """Each end lies z^2 below the optimum over all others, those at 0 among them."""
    optimize = pytest.importorskip("scipy.optimize")
    model = singular if kind == "crossed" else nested_without_schools()
    fit, p = model._remembered, model.parameters.size
    ends, coef = model.confint_deviations(), model.confint(method="profile")
    assert ends["estimate"][1] == ends["lower"][1] == 0 < ends["upper"][1] < 2
    unit = fit.x[p - 1] / model.coef[-1]  # of a column in the loss
    held = (
        (p, ends["lower"][0]), (p, ends["upper"][0]), (p + 1, ends["upper"][1]),
        (p - 1, coef["lower"][-1] * unit),
    )  # fmt: skip
    released = []
    for index, end in held:
        free = np.arange(fit.x.size) != index

        def value(v, index=index, end=end, free=free):
            x = np.empty(fit.x.size)
            x[free], x[index] = v, end
            found, gradient = fit.loss.value_and_gradient(x)
            return found, gradient[free]

        start = np.where(fit.x == 0, 0.4, fit.x)[free]
        least = optimize.minimize(value, start, jac=True, method="BFGS")
        assert_allclose(2 * (least.fun + model.loglik), 3.841459, rtol=1e-4)
        released.append(abs(least.x[-1]) > 0.1)
    # Schools take over what classes of a small variance leave.
    assert released[0] == (kind == "nested")


def test_predictions_of_known_average_and_new_groups(exact):
    rows = WINE.iloc[:6]
    modes = [1.69846538, -0.56657866, 0.97052516, -0.0593911, 0.23110483,
             0.47795074, -1.91361429, -0.27303486, -0.55517364]  # fmt: skip
    assert_allclose(exact.ranef("judge")["mode"], modes, atol=1e-5)  # of R's clmm
    average = exact.predict_proba(rows, effects="average")
    fitted = average[np.arange(6), np.searchsorted(exact.classes, rows["rating"])]
    known = [0.6547512, 0.1661397, 0.4958192, 0.0696343, 0.1913894, 0.1913894]
    assert_allclose(fitted, known, atol=1e-6)
    grid = np.linspace(-9, 9, 73)
    density = np.exp(-0.5 * grid**2)
    sd = MODEL.deviations["sd"][0]
    by_hand = sum(
        d * MODEL.predict_proba(rows, effects="average", offset=np.full(6, sd * u))
        for u, d in zip(grid, density, strict=True)
    )
    assert_allclose(MODEL.predict_proba(rows), by_hand / density.sum(), atol=1e-8)
    of_judge = MODEL.predict_proba(rows, effects="known")
    mode = MODEL.ranef()["mode"][0]
    shifted = MODEL.predict_proba(rows, effects="average", offset=np.full(6, mode))
    assert_allclose(of_judge, shifted, rtol=1e-12)
    assert set(MODEL.predict(rows, effects="known")) <= set(MODEL.classes.tolist())
    with pytest.raises(ValueError, match="is not a group of the training rows"):
        MODEL.predict(rows.assign(judge="x"), effects="known")
    some = rows.assign(judge=["1", "x"] * 3)
    found = MODEL.predict_proba(some, effects="known_or_new")
    assert_allclose(found[::2], of_judge[::2], rtol=1e-12)
    assert_allclose(found[1::2], MODEL.predict_proba(some)[1::2], rtol=1e-12)


@pytest.mark.parametrize(("formula", "options", "match"), [
    ("rating ~ temp", {}, "needs random effects"),
    ("rating ~ temp * (1 | judge)", {}, "must be of the form"),
    ("rating ~ . + (1 | judge)", {}, "name the columns"),
    ("rating ~ temp + (log(x) | judge)", {}, "must be of the form|random effects"),
    ("rating ~ temp + (1 | nobody)", {}, "name 'nobody', which is not among"),
    ("rating ~ temp + (1 + price | judge)", {}, "name 'price', which is not among"),
    ("rating ~ temp + (0 | judge)", {}, r"\) must name one or more effects, each"),
    (f"{JUDGE} + (1 | judge)", {}, "twice"),
    (f"{JUDGE} + (1 | bottle)", {"n_quadrature": 5}, "n_quadrature must be 1"),
    (JUDGE, {"n_quadrature": 101}, "at most 100"),
    (JUDGE, {"groups": {}}, "random effects must be given by one of"),
    (JUDGE, {"n_quadrature": 2.5}, "n_quadrature"),
    (JUDGE, {"family": "ratio"}, "family must be"),
    (JUDGE, {"group_weight": np.arange(72.0) + 1}, "the same in all rows of a group"),
    (JUDGE, {"group_weight": np.zeros(72)}, "lie above 0"),
    (JUDGE, {"group_weight": np.ones(71)}, "group_weight"),
    (JUDGE, {"group_weight": "heavy"}, "group_weight names 'heavy', which is not a"),
    (f"{JUDGE} + (1 | bottle)", {"group_weight": np.ones(72)},
     "group_weight is for one grouping"),
    *((JUDGE, {"family": family} | options, match) for family in FAMILIES
      for options, match in (
          ({"threshold": "symmetric"}, "threshold must be 'flexible' with family="),
          ({"scale": ["temp"]}, "scale must be empty with family="),
          ({"link": "log"}, "link must be"))),
])  # fmt: skip
def test_bad_arguments(formula, options, match):
    raises(ValueError, match, ordinal.fit_clmm, formula, WINE, **options)


@pytest.mark.parametrize("family", ["cumulative", *FAMILIES])
def test_separated_ranks_are_refused(family):
    table = WINE.assign(x=(WINE["rating"] > 3).astype(float))
    with pytest.raises(ValueError, match="no finite coefficients"):
        ordinal.fit_clmm("rating ~ x + (1 | judge)", table, family=family)


FRAME = WINE[["temp", "contact", "judge"]]


def test_random_names_columns_of_a_data_frame():
    model = ordinal.fit_clmm(FRAME, WINE["rating"], random="(1 | judge)")
    assert model.feature_names == ("temp", "contact")
    assert_allclose(model.loglik, AUTO.loglik, rtol=1e-12)
    for effects in ("new", "known"):
        expected = AUTO.predict_proba(WINE, effects=effects)
        P = model.predict_proba(FRAME, effects=effects)
        assert_allclose(P, expected, atol=1e-6)
    for random, match in (("1 | judge", "must be random effects"), (3, "must be text"),
                          ("(1 | x)", "name 'x', which")):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=match):
            ordinal.fit_clmm(FRAME, WINE["rating"], random=random)
    with pytest.raises(TypeError, match="random names columns of a data frame"):
        ordinal.fit_clmm(np.ones((4, 1)), [1, 2, 1, 2], random="(1 | judge)")
    model = ordinal.fit_clmm(
        FRAME, WINE["rating"], random="(1 | judge)",
        preprocess=ordinal.preprocessing.TablePreprocessor(),
    )  # fmt: skip
    assert_allclose(model.loglik, AUTO.loglik, rtol=1e-12)
    assert model.random[0].columns == ("judge",)


@pytest.mark.slow("three folds of mixed models")
def test_searches_and_comparisons_take_random_effects():
    found = ordinal.select(
        "clmm", FRAME, WINE["rating"], search={"link": ["logit", "probit"]}, cv=3,
        random="(1 | judge)",
    )  # fmt: skip
    assert isinstance(found.model, ordinal.models.ClmmModel)
    methods = {"clmm": partial(ordinal.fit_clmm, random="(1 | judge)"), "pom": "pom"}
    compared = ordinal.compare(FRAME, WINE["rating"], methods=methods, cv=3)
    assert np.isfinite(compared.mean()).all()
    with pytest.raises(ValueError, match=r"random='\(1 \| judge\)'"):
        ordinal.select("clmm", FRAME, WINE["rating"], search={"link": ["logit"]}, cv=3)


@pytest.mark.slow("imports scikit-learn, and six mixed fits")
def test_the_estimator_takes_groups_by_metadata_routing():
    sklearn = pytest.importorskip("sklearn")
    from sklearn.model_selection import GroupKFold, cross_val_predict

    from ordinal.sklearn import CLMM

    X = np.column_stack([WINE["temp"] == "warm", WINE["touch"]]).astype(float)
    y, judge = WINE["rating"].to_numpy(), WINE["judge"].to_numpy()
    given = CLMM(rule="median", **LAPLACE).fit(X, y, groups=judge)
    assert_allclose(given.model_.loglik, MODEL.loglik, rtol=1e-9)
    assert_allclose(
        given.predict_proba(X, groups=judge),
        MODEL.predict_proba(WINE, effects="known"), atol=1e-6,
    )  # fmt: skip
    assert np.array_equal(given.predict(X), MODEL.predict(WINE))
    of_judges = MODEL.predict(WINE, effects="known")
    assert np.array_equal(given.predict(X, groups=judge), of_judges)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = CLMM().set_fit_request(groups=True).set_predict_request(groups=True)
        given_by = {"groups": judge}
        found = cross_val_predict(routed, X, y, cv=GroupKFold(3), params=given_by)
    train, test = next(iter(GroupKFold(3).split(X, y, judge)))
    fold = ordinal.fit_clmm(X[train], y[train], groups={"groups": judge[train]})
    assert np.array_equal(found[test], fold.predict(X[test], rule="mode"))
    named = sklearn.base.clone(CLMM(random="(1 | judge)")).fit(FRAME, y)
    assert_allclose(named.model_.loglik, AUTO.loglik, rtol=1e-9)


def test_the_command_fits_random_effects(tmp_path, capsys):
    table, out = tmp_path / "wine.csv", tmp_path / "model.npz"
    FRAME.assign(rating=WINE["rating"]).to_csv(table, index=False)
    fit = ["fit", str(table), "--out", str(out), "--folds", "0", "--method"]
    assert main([*fit, "clmm", "--random", "(1 | judge)"]) == 0
    assert_allclose(ordinal.load(out).loglik, AUTO.loglik, rtol=1e-9)
    assert main(["predict", str(out), str(table)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(AUTO.predict(WINE)[-1])
    new, lines = WINE.iloc[:9], {}
    for effects in ("new", "average", "known", "known_or_new"):
        rows = new.assign(judge=[*new["judge"].iloc[:-1], "unknown"])
        rows = new if effects == "known" else rows
        rows.to_csv(table, index=False)
        predict = ["predict", str(out), str(table), "--effects", effects]
        assert main([*predict, "--proba", "--score", "--target", "rating"]) == 0
        captured = capsys.readouterr()
        P = np.array([line.split(",")[1:] for line in captured.out.splitlines()[1:]])
        expected = ordinal.load(out).predict_proba(rows, effects=effects)
        assert_allclose(P.astype(float), expected, rtol=1e-12)
        lines[effects] = captured.err
    assert lines["known"] != lines["new"]  # other labels have other errors
    assert main([*predict[:-1], "known"]) == 2
    assert "judge 'unknown' is not a group of the training" in capsys.readouterr().err
    assert main([*fit, "pom", "--set", "l2=0.1"]) == 0
    assert main(predict) == 2
    assert "has no random effects" in capsys.readouterr().err
    assert main([*fit, "pom", "--random", "(1 | judge)"]) == 2
    assert "clmm only: pom has no random effects" in capsys.readouterr().err


def test_the_command_reads_columns_of_slopes_that_are_no_features(tmp_path, capsys):
    table, out = tmp_path / "wine.csv", tmp_path / "model.npz"
    model = ordinal.fit_clmm("rating ~ temp + (1 + touch | judge)", WINE, **LAPLACE)
    model.save(out)
    WINE.to_csv(table, index=False)
    for effects in ("new", "known"):
        assert main(["predict", str(out), str(table), "--effects", effects]) == 0
        found = capsys.readouterr().out.splitlines()[1:]
        assert found == model.predict(WINE, effects=effects).astype(str).tolist()
    assert {*model.explain(WINE, WINE["rating"]).names} == {"temp", "touch"}
    assert "The model was fitted to these rows" in model.report(WINE, WINE["rating"])
    ordinal.plot.partial_dependence(model, WINE, "temp")


def test_fits_end_at_their_limits(capsys):
    for limit, status in (
        ({"max_time": 1e-9}, ordinal.models.Status.MAX_TIME),
        ({"max_iter": 2}, ordinal.models.Status.MAX_ITER),
        ({"callback": lambda state: state.n_iter > 1}, ordinal.models.Status.STOPPED),
    ):
        kind = ordinal.exceptions.ConvergenceWarning
        with pytest.warns(kind, match=f": {status.value} after"):
            model = ordinal.fit_clmm(JUDGE, WINE, **limit)
        assert model.convergence.status is status
        assert model.covariance is None
    ordinal.fit_clmm(JUDGE, WINE, verbose=True)
    assert "fit_clmm" in capsys.readouterr().err

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ordinal.fit_clmm(JUDGE, WINE, callback=interrupt)


@pytest.mark.parametrize(("random", "message"), [
    # these took time with the square or the cube of the length
    (f"(1 | {'/'.join(f'g{i}' for i in range(3000))})", "at most 20 .*, got 3000"),
    ("(1 | " + "/".join(["g"] * 3000) + ")", "at most 20 .*, got 3000"),
    (" + ".join(f"(0 + v{i} | g)" for i in range(3000)), "random effects name 'v0"),
    ("(1 | g/g)", "different columns, got 2 in 'g/g'"),
    ("(1 | g) + (1 | g)", r"g has the effect \['\(Intercept\)'\] twice"),
    ("(" * 3000 + "1 | g" + ")" * 3000, "random must be random effects"),
    ("(1 | " * 3000 + "g" + ")" * 3000, "random must be random effects"),
])  # fmt: skip
def test_any_text_of_random_effects_is_read_in_time(random, message):
    table = pd.DataFrame({"x": np.arange(8.0), "g": [1, 2] * 4, "y": [0, 0, 1, 1] * 2})
    for call in (
        lambda: ordinal.fit_clmm(table[["x", "g"]], table.y, random=random),
        lambda: ordinal.fit_clmm(f"y ~ x + {random}", table),
    ):
        raises(ValueError, f"{message}|of the form", call)
