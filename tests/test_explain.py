"""explain, reports, and what notebooks show."""

import re
import sys
from html.parser import HTMLParser
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import raises, sample

import ordinal
from ordinal._model.printing import Table, html_table
from ordinal._views.summary import html_thresholds
from ordinal.metrics import accuracy, mae
from ordinal.preprocessing import Standardizer, TablePreprocessor

X, y = sample(90, r=4, seed=3)
EVIL = '<b>&"x'


@pytest.fixture(scope="module")
def evil():
    """A frame, labels and a model whose names hold markup."""
    frame = pd.DataFrame(X, columns=[EVIL, "b", "c"][: X.shape[1]])
    classes = ["<i>low", "mid", "high", "top"]
    labels = np.array(classes)[np.unique(y, return_inverse=True)[1]]
    model = ordinal.fit_svorim(frame, labels, classes=classes, probability=True)
    return frame, labels, classes, model


class Checked(HTMLParser):
    """Collects text, and fails where tags do not nest."""

    VOID = ("meta", "line", "br")

    def __init__(self, html):
        super().__init__()
        self.open, self.words, self.links = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        # A figure refers to its own parts.
        self.links += [v for k, v in attrs if k in ("src", "href") and v[0] != "#"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def words_of(monkeypatch):
    """Return the words of a report without its figures, which take most of the time."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    def words(model, X, y):
        return Checked(model.report(X, y)).words

    return words


def test_terms_of_a_linear_score_add_up_to_it():
    model = ordinal.fit_pom(X, y)
    found = model.explain(X)
    rest = model.decision_function(X) - found.contributions.sum(axis=1)
    assert_allclose(rest, rest[0], atol=1e-10)
    assert found.method == "contributions"
    assert (np.diff(found.importance) <= 0).all()
    assert_allclose(found.importance, found.contributions.std(axis=0))
    order = [int(name[1:]) - 1 for name in found.names]
    assert_allclose(found.importance, (abs(model.coef) * X.std(axis=0))[order])
    scaled = ordinal.fit_pom(X, y, preprocess=Standardizer).explain(X)
    assert scaled.names == found.names
    assert_allclose(scaled.importance, found.importance, rtol=1e-5)


def test_the_standard_error_is_that_of_repeated_draws():
    rng = np.random.default_rng(0)
    model = ordinal.fit_pom(X, y)
    draws = [model.explain(rng.normal(size=(400, X.shape[1]))) for _ in range(200)]
    first = [dict(zip(d.names, d.importance, strict=True))["x1"] for d in draws]
    errors = [dict(zip(d.names, d.standard_error, strict=True))["x1"] for d in draws]
    assert_allclose(np.std(first), np.mean(errors), rtol=0.2)


@pytest.mark.parametrize("with_labels", [False, True])
def test_permutation_is_a_loop_over_columns(with_labels):
    model = ordinal.fit_svorim(X, y)
    found = model.explain(X, y if with_labels else None, n_repeats=2, rng=7)
    rng = np.random.default_rng(7)
    before = model.predict(X)
    want = {}
    for j in range(X.shape[1]):
        changes = []
        for _ in range(2):
            Z = X.copy()
            Z[:, j] = rng.permutation(Z[:, j])
            if with_labels:
                change = abs(model.predict(Z) - y) - abs(before - y)
            else:
                change = abs(model.predict(Z) - before)
            changes.append(change)
        of_rows = np.mean(changes, axis=0)
        want[f"x{j + 1}"] = of_rows.mean(), of_rows.std() / np.sqrt(len(X))
    values = np.column_stack([found.importance, found.standard_error])
    assert_allclose(values, [want[name] for name in found.names], atol=1e-12)
    assert (np.diff(found.importance) <= 0).all()


def test_terms_of_main_effects_and_pairs_add_up_to_the_score():
    own = ordinal.fit_xofm(X, y)
    pieces = (
        own.explain(X).contributions.sum(axis=1) + own.contributions(X).values[:, 0]
    )
    assert_allclose(pieces, own.decision_function(X), atol=1e-12)
    model = ordinal.companions.fit_ofmhs(X, y, l1=0.01)
    found = model.explain(X)
    assert model.n_pairs > 0
    assert set(found.names) == set(model.effects()["name"])
    score = found.contributions.sum(axis=1)
    assert_allclose(score, model.decision_function(X), atol=1e-12)


def test_terms_of_a_formula_are_columns_of_its_design():
    pytest.importorskip("formulaic")
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "rank": y})
    model = ordinal.fit_pom("rank ~ a * b", table)
    found = model.explain(table)
    assert set(found.names) == {"a", "b", "a:b"}
    rest = model.decision_function(table) - found.contributions.sum(axis=1)
    assert_allclose(rest, rest[0], atol=1e-9)
    # effects that differ between thresholds are no part of the score
    nominal = ordinal.fit_pom(table[["a", "b"]], y, nominal=["a"], l2=0.1)
    assert nominal.explain(table).method == "permutation"


def test_numbers_that_are_categories_are_shuffled_as_such():
    zone = np.random.default_rng(0).choice([10, 20, 30], len(y))
    table = pd.DataFrame({"zone": zone, "a": X[:, 0]})
    rank = np.digitize(2.0 * (zone == 20) + 0.1 * X[:, 0], [1.0])
    how = TablePreprocessor(categorical=["zone"])
    model = ordinal.fit_svorim(table, rank, preprocess=how)
    more = table.assign(key="a column that the model does not have")
    found = model.explain(more[["key", "zone", "a"]], rank, n_repeats=1, rng=3)
    assert {*found.names} == {"zone", "a"}
    shuffled = table.assign(zone=np.random.default_rng(3).permutation(zone))
    assert found.names[0] == "zone"
    assert_allclose(found.importance[0], mae(rank, model.predict(shuffled)))


@pytest.mark.parametrize("fit", [ordinal.fit_pom, ordinal.fit_svorim])
@pytest.mark.parametrize("labels", [None, y])
def test_a_long_explanation_says_how_long_before_it_begins(fit, labels, monkeypatch):
    model, views = fit(X, y), "ordinal._views.importances"
    monkeypatch.setattr(f"{views}._MANY", 80)
    monkeypatch.setattr(f"{views}._SOME", 40)
    model.explain(X, labels)
    monkeypatch.setattr(f"{views}._LONG", 0.0)
    with pytest.warns(UserWarning, match=r"explain will take about .* 90 rows of X"):
        model.explain(X, labels)


def test_importances_have_no_rounding_noise():
    """Changes are whole ranks, so those that cancel give exactly 0, not 1e-18."""
    n_repeats = 5  # a fifth is not a binary fraction
    Z = np.column_stack([X, np.ones(len(X))])
    found = ordinal.fit_svorim(Z, y).explain(Z, y, n_repeats=n_repeats, rng=0)
    total = np.round(found.importance * len(X) * n_repeats)
    assert (total != 0).any()
    assert found.names[-1] == f"x{Z.shape[1]}"  # the constant
    assert found.importance[-1] == found.standard_error[-1] == 0
    assert_array_equal(found.importance, total / len(X) / n_repeats)


@pytest.mark.parametrize("fit", [ordinal.fit_pom, ordinal.companions.fit_lat])
def test_terms_of_one_raw_column_are_added_up(fit):
    word = np.array(["u", "v", "w"])[np.random.default_rng(0).integers(3, size=len(y))]
    table = pd.DataFrame({"a": X[:, 0], "word": word})
    table.loc[::9, "a"] = np.nan
    model = fit(table, y, preprocess=TablePreprocessor(), l2=0.1)
    found = model.explain(table)
    assert set(found.names) == {"a", "word"}
    own = getattr(model, "predictor", model)
    Z = own.coding.transform(table)
    made = dict.fromkeys(["a", "word"], 0.0)
    for j, name in enumerate(own.column_names):
        values = (Z[:, j] - Z[:, j].mean()) * model.coef[j]
        made["word" if name.startswith("word") else "a"] += values
    for name, values in zip(found.names, found.contributions.T, strict=True):
        assert_allclose(values, made[name], atol=1e-12)


def test_what_cannot_be_explained(tmp_path):
    for options, message in (
        ({"n_repeats": 0}, "n_repeats must be"),
        ({"rng": -1}, "rng"),
        ({"y": [1.0]}, "one label per row"),
        ({"y": [99] * 90}, "99 in row 0"),
    ):
        raises(ValueError, message, ordinal.fit_svorim(X, y).explain, X, **options)
    with pytest.raises(ValueError, match="X must have two rows or more"):
        ordinal.fit_pom(X, y).explain(X[:0])
    page, model = tmp_path / "page.html", ordinal.fit_pom(X, y)
    raises(ValueError, "two rows or more to be explained, got 1", model.explain, X[:1])
    model.report(X[:1], y[:1], page)
    assert "two rows or more to be explained, got 1" in page.read_text("utf-8")
    sparse = pytest.importorskip("scipy.sparse").csr_array(X)
    raises(TypeError, "X must be dense", ordinal.fit_svorim(sparse, y).explain, sparse)
    K = X @ X.T
    model = ordinal.fit_svorim(K, y, kernel="precomputed")
    raises(TypeError, "precomputed kernel", model.explain, K)
    assert "precomputed kernel" in model.report(K, y)


def test_a_selection_explains_and_reports_its_model(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # figures are slow
    found = ordinal.select("svorim", X, y, search={"C": [1.0]}, cv=2)
    own = found.explain(X, y, n_repeats=1, rng=2)
    want = found.model.explain(X, y, n_repeats=1, rng=2)
    assert_array_equal(own.importance, want.importance)
    found.report(X, y, tmp_path / "a.html", title="t")
    found.model.report(X, y, tmp_path / "b.html", title="t")
    with pytest.raises(TypeError, match="title must be text, got 3"):
        found.report(X, y, tmp_path / "c.html", title=3)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    without = ordinal.select("svorim", X, y, search={"C": [1.0]}, cv=2, refit=False)
    raises(ValueError, "refit=False", without.explain, X)


def test_long_tables_show_their_head_and_print_whole_on_demand():
    linear = ordinal.fit_pom(X, y)
    rows = ordinal.inference.augment(linear, X, y)
    head, *lines = repr(rows).splitlines()
    assert lines[-1].startswith(f"... {len(X) - 10} more rows")
    assert len(lines) == 11
    assert head.split() == list(rows)
    assert len(rows.to_text().splitlines()) == len(X) + 1
    short = linear.table()
    assert repr(short) == short.to_text()
    page = ordinal.inference.summary(linear)._repr_html_()
    assert re.match('<pre style="white-space:pre;.*font-family:monospace">', page)
    assert page.count("\n") == str(ordinal.inference.summary(linear)).count("\n")


def test_importances_are_drawn_and_sorted_as_a_table():
    pytest.importorskip("matplotlib").use("agg")
    found = ordinal.fit_pom(X, y).explain(X)
    ax = found.plot(top=2)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(found.names[:2])
    assert_allclose([bar.get_width() for bar in ax.patches], found.importance[:2])
    raises(TypeError, "explanation must be", ordinal.plot.importance, 3)
    model = ordinal.fit_xofm(X, y)
    found = model.importance()
    frame = found.to_pandas()
    assert (np.diff(frame["value"]) <= 0).all()
    of_frame = zip(frame["name"], frame["value"], strict=True)
    assert {*zip(found.names, found.values, strict=True)} == {*of_frame}
    rows = model.contributions(X).to_pandas()
    assert rows.shape == (len(X), 1 + 3 + 3)
    assert_allclose(rows.sum(axis=1), model.decision_function(X))


def test_what_notebooks_show_has_its_words_and_no_markup_of_names(evil):
    frame, labels, classes, model = evil
    options = {"classes": classes}
    search = {"C": [1.0, 2.0]}
    found = ordinal.select("svorim", frame, labels, search=search, cv=2, **options)
    methods = {EVIL: "pom", "svorim": "svorim"}
    compared = ordinal.compare(frame, labels, methods=methods, cv=2, **options)
    explained = model.explain(frame)
    shown = {
        "Model": model, "2 folds": found, "MAE": compared,
        "permutation": explained, "importance": explained.table(),
        "converged": model.convergence,
    }  # fmt: skip
    table, grid = frame, np.random.default_rng(0).normal(size=(8, 3))
    smaller, larger = (ordinal.fit_pom(of, y) for of in (table[["b", "c"]], table))
    shown |= {
        "chi2": ordinal.inference.lr_test(smaller, larger),
        "p_value": ordinal.comparison.wilcoxon(grid[:, 0], grid[:, 1]),
        "critical_difference": ordinal.comparison.friedman(grid),
        "draw": ordinal.comparison.win_draw_loss([grid]),
        "dev_ratio": ordinal.fit_pom_path(table, y, n_lambdas=5),
        "search": ordinal.model_selection.nested("pom", table, y, outer=2, cv=2),
        "&lt;b&gt;": larger.summary(),
        "value": ordinal.fit_xofm(table, y).importance(),
        "coverage": ordinal.conformal(larger, table, y).evaluate(table, y),
    }
    for word, made in shown.items():
        html = made._repr_html_()
        Checked(html)
        assert word in html
        assert EVIL not in html
        assert "<i>" not in html
    assert EVIL in "".join(Checked(explained._repr_html_()).words)
    assert EVIL in "".join(Checked(compared._repr_html_()).words)
    assert "<i>low" in Checked(model._repr_html_()).words  # on the line of thresholds


def test_thresholds_are_marked_from_left_to_right():
    html = html_thresholds(np.array([-1.0, 0.0, 3.0]), ["a", "b", "c", "d"])
    places = [float(part.split('"')[0]) for part in html.split('<line x1="')[2:]]
    assert len(places) == 3
    assert_allclose((places[2] - places[1]) / (places[1] - places[0]), 3.0, rtol=0.01)
    assert html_thresholds(np.array([]), []) == ""
    assert html_thresholds(np.array([np.inf]), ["a", "b"]) == ""
    assert "70 more rows" in html_table(["a"], [[k] for k in range(100)])
    cells = {"k": ["a", "b"], "x": [0.5, np.nan], "word": ["a", "long"]}
    table = Table({name: np.array(of, object) for name, of in cells.items()})
    assert str(table) == "k   x word\na 0.5 a\nb nan long"
    sides = re.findall(r"align:(\w+)\">\w*<", table._repr_html_())
    assert sides[:3] == ["left", "right", "left"]
    assert "RBF(gamma=0.333333)" in repr(ordinal.fit_svorim(X, y, gamma=1 / 3))
    kernel = ordinal.kernels.ARD(np.full(30, 0.1))
    shown = repr(ordinal.fit_svorim(*sample(40, 3, d=30), kernel=kernel))
    assert max(map(len, shown.splitlines())) < 120


def test_labels_on_the_line_of_thresholds_are_cut_to_their_intervals():
    labels = ["strong Democrat", "weak Democrat", "independent", "Republican"]
    html = html_thresholds(np.array([-2.0, 0.0, 0.5]), labels)
    found = re.findall(r'<text x="([\d.]+)" y="12"[^>]*>([^<]*)<', html)
    texts = [text for _, text in found]
    assert texts[0] == "strong Democrat"  # of 94 pixels
    assert texts[2].endswith("…")
    assert "independent".startswith(texts[2][:-1])
    ends = [(float(x) - 3 * len(t), float(x) + 3 * len(t)) for x, t in found]
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    wide = html_thresholds(np.array([-2.0, 0.0, 0.1]), labels)
    assert "indep" not in wide  # no room for three letters


def test_a_report_holds_the_errors_and_needs_no_other_file(evil, tmp_path):
    frame, labels, classes, model = evil
    model.report(frame, labels, tmp_path / "report.html", title=EVIL)
    html = (tmp_path / "report.html").read_text()
    page = Checked(html)
    text = " ".join(page.words)
    assert page.links == []
    assert EVIL not in html
    assert "<i>" not in html
    predicted = model.predict(frame)
    for metric in (mae, accuracy):
        assert f"{metric(labels, predicted, labels=classes):.4f}" in page.words
    counts = ordinal.metrics.confusion_matrix(labels, predicted, labels=classes)
    start = len(page.words) - 1 - page.words[::-1].index("true label")  # of the table
    size = 1 + len(classes)
    rows = np.array(page.words[start + size : start + size * size]).reshape(-1, size)
    assert_array_equal(rows[:, 1:].astype(float), counts)
    for part in ("Calibration", "Prediction sets", "contain it in", "Importance"):
        assert part in text


def test_a_report_has_figures_baselines_date_and_call(tmp_path, monkeypatch):
    """The figures are those of the package; the same report has the same bytes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(86400 * 366))
    Z, ranks = sample(60, r=6, seed=5)
    ranks = np.array([0, 1, 1, 1, 1, 2])[ranks]  # of unequal shares
    model = ordinal.fit_pom(Z[::2], ranks[::2], link="probit")
    path = tmp_path / "report.html"
    with plt.style.context("dark_background"):
        model.report(Z[1::2], ranks[1::2], path, title="A & B")
    assert plt.get_fignums() == []  # no window
    first = path.read_bytes()
    model.report(Z[1::2], ranks[1::2], path, title="A & B")
    assert path.read_bytes() == first
    page = first.decode()
    words = Checked(page).words
    assert Checked(page).links == []
    assert page.count("<svg") == 1 + 3 + min(3, Z.shape[1])  # thresholds; 3; effects
    for drawn in ("predicted label", "share above", "probability, with"):
        assert any(word.startswith(drawn) for word in words)
    assert "figures of this page need" not in page
    version = f"PomModel of ordinal {ordinal.__version__}, 1971-01-02"
    assert words[words.index(version) - 1] == "A & B"
    assert "Call: fit_pom(X, y, link='probit')" in words
    assert "30 of its training rows, to recognise them: none of these is among" in page
    # the best constants, by trying all
    every = [abs(k - ranks[1::2]) for k in range(3)]
    best = {
        "mean absolute error (ranks)": min(d.mean() for d in every),
        "accuracy": max((d == 0).mean() for d in every),
        "within one rank": max((d <= 1).mean() for d in every),
    }
    share = np.tile(np.bincount(ranks[1::2], minlength=3) / 30, (30, 1))
    rps = ordinal.metrics.rps(ranks[1::2], share, labels=[0, 1, 2])
    best["ranked probability score"] = rps
    for name, value in best.items():
        assert words[words.index(name) + 3] == f"{value:.4f}"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    model.report(Z[::2], ranks[::2], path)
    page = path.read_text()
    assert "figures of this page need matplotlib: pip install" in page
    assert page.count("<svg") == 1
    assert "fitted to these rows. The model keeps digests of 30 of its" in page
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(ValueError, match=r"SOURCE_DATE_EPOCH must be a num.* 'soon'"):
        model.report(Z, ranks, path)
    assert path.read_text() == page


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_report_takes_what_the_fit_took_and_agrees_with_explain(make, words_of):
    day = pd.date_range("2024-01-01", periods=len(X)).strftime("%Y-%m-%d").tolist()
    table = {"a": X[:, 0].copy(), "b": X[:, 1], "day": day, "y": y.astype(float)}
    table["y"][3] = table["a"][5] = np.nan
    data, drop = make(table), {"missing": "drop", "missing_labels": "drop"}
    model = ordinal.fit_pom("y ~ a + b", data, **drop)
    words = words_of(model, data, data["y"])
    assert words == words_of(model, "y ~ a + b", data)
    gone = "1 row without a label and 1 row with missing values: rows 3, 5."
    assert f"Left out: {gone}" in words
    found = model.explain(data[6:])
    words = words_of(model, data[6:], data["y"][6:])
    at = words.index(found.names[0], words.index("Importance of the features"))
    shown = [word.split(" ")[0] for word in words[at + 1 : at + 4 : 2]]
    assert shown == [f"{v:.4g}" for v in found.importance]
    how = TablePreprocessor(dates={"day": ["days"]})
    dated = ordinal.fit_pom(data[["day", "b"]], y, preprocess=how)
    assert {day[0], day[-1]} < {*words_of(dated, data, y)}
    with pytest.raises(TypeError, match="path of the file comes last"):
        model.report("page.html", data, data["y"])


def test_a_report_of_a_linear_model_has_its_coefficients(words_of):
    plain, penalised = ordinal.fit_pom(X, y), ordinal.fit_pom(X, y, l1=0.1)
    words = words_of(plain, X, y)
    at = words.index("Coefficients")
    table = plain.table()
    columns = (table[key] for key in ("name", "estimate", "standard_error"))
    for name, estimate, error in zip(*columns, strict=True):
        row = words.index(name, at)
        assert words[row + 2 : row + 4] == [f"{estimate:.6g}", f"{error:.6g}"]
    words = words_of(penalised, X, y)
    row = words.index("x1", words.index("Coefficients"))
    assert words[row + 1] == f"{penalised.coef[0]:.6g}"
    with pytest.raises(ValueError, match="l1") as caught:
        penalised.table()
    assert str(caught.value) in words[row:]
    model = ordinal.fit_svorim(X, y)  # without probabilities
    assert "Calibration" not in " ".join(words_of(model, X, y))
    raises(ValueError, "one label per row", words_of, model, X, y[:5])
    raises(ValueError, "99 in row 0", words_of, model, X, [99] * len(X))


def test_a_report_does_not_depend_on_the_order_of_the_labels(words_of):
    """Sets are calibrated on rows of all ranks, though the table is sorted."""
    Z, ranks = sample(300, r=4, seed=5)
    model = ordinal.fit_pom(Z, ranks)
    order = np.argsort(ranks, kind="stable")
    words = words_of(model, Z[order], ranks[order])
    text = next(w for w in words if w.startswith("Calibrated on 150"))
    assert abs(float(text.split(" in ")[1].split()[0]) - 0.9) < 0.08


def test_intervals_of_a_report(words_of):
    def interval(metric):
        return [float(v) for v in words[words.index(metric) + 2].split(" to ")]

    Z = np.arange(40.0)[:, None]
    model = ordinal.fit_svorim(Z, np.arange(40) // 20)
    ranks = np.arange(40) // 20
    words = words_of(model, Z, ranks)
    low, high = interval("accuracy")
    z = 1.96  # Wilson at 40 of 40: n / (n + z^2) to 1
    assert_allclose([low, high], [40 / (40 + z**2), 1.0], atol=1e-4)
    assert interval("mean absolute error (ranks)") == [0.0, 0.0]
    words = words_of(model, Z, np.where(np.arange(40) < 4, 1, ranks))
    half = 1.96 * np.sqrt(0.1 * 0.9 / 40)
    want = [0.1 - half, 0.1 + half]
    assert_allclose(interval("mean absolute error (ranks)"), want, atol=1e-4)


def test_a_report_summarises_its_data(evil, words_of):
    frame, labels, classes, _ = evil
    table = frame.assign(word=np.where(X[:, 0] > 0, "<u>", "v"))
    table.iloc[:7, 1] = np.nan
    words = words_of(ordinal.fit_xofm(table, labels, classes=classes), table, labels)
    k = words.index("b")
    assert words[k + 1] == "7"  # values are missing; test_crossings.py has the others
    assert words[words.index("word") + 2] == "2 categories"
    counts = [str((labels == c).sum()) for c in classes]
    at = words.index("share") + 1
    assert words[at + 1 : at + 12 : 3] == counts
