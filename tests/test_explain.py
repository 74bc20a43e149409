"""explain, reports, and what notebooks show."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from strategies import sample

import ordinal
from ordinal._model.printing import html_table, html_thresholds
from ordinal.metrics import accuracy, mae
from ordinal.preprocessing import Standardizer, TablePreprocessor

X, y = sample(90, r=4, seed=3)
EVIL = '<b>&"x'


@pytest.fixture(scope="module")
def evil():
    """A frame, labels and a model whose names hold markup."""
    frame = pd.DataFrame(X, columns=[EVIL, "b", "c"][: X.shape[1]])
    labels = np.array(["<i>low", "mid", "high", "top"])[
        np.unique(y, return_inverse=True)[1]
    ]
    classes = ["<i>low", "mid", "high", "top"]
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
        self.links += [v for k, v in attrs if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_terms_of_a_linear_score_add_up_to_it():
    model = ordinal.fit_pom(X, y)
    found = model.explain(X)
    rest = model.decision_function(X) - found.contributions.sum(axis=1)
    assert_allclose(rest, rest[0], atol=1e-10)
    assert found.method == "contributions"
    assert (np.diff(found.importance) <= 0).all()
    assert_allclose(found.importance, found.contributions.std(axis=0))
    coef = dict(zip(["x1", "x2", "x3"], model.coef, strict=False))
    for name, value in zip(found.names, found.importance, strict=True):
        j = int(name[1:]) - 1
        assert_allclose(value, abs(coef[name]) * X[:, j].std())
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


def test_xofm_is_explained_by_its_own_terms():
    model = ordinal.fit_xofm(X, y)
    found, own = model.explain(X), model.contributions(X)
    terms = dict(zip(own.names[1:], own.values.T[1:], strict=True))
    for j, name in enumerate(found.names):
        assert_array_equal(found.contributions[:, j], terms[name])


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
    for name, *values in zip(
        found.names, found.importance, found.standard_error, strict=True
    ):
        assert_allclose(values, want[name], atol=1e-12)
    assert (np.diff(found.importance) <= 0).all()


def test_a_column_without_use_has_no_importance():
    Z = np.column_stack([X, np.ones(len(X))])
    found = ordinal.fit_svorim(Z, y).explain(Z)
    assert found.names[-1] == f"x{Z.shape[1]}"
    assert found.importance[-1] == found.standard_error[-1] == 0


def test_raw_columns_of_a_table_are_explained():
    table = pd.DataFrame({"a": X[:, 0], "word": np.where(X[:, 1] > 0, "u", "v")})
    table.loc[::9, "a"] = np.nan
    model = ordinal.fit_svorim(table, y, preprocess=TablePreprocessor())
    found = model.explain(table)
    assert set(found.names) == {"a", "word"}
    assert found.to_pandas()["name"].tolist() == list(found.names)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_repeats": 0}, ValueError, "n_repeats must be"),
        ({"rng": -1}, ValueError, "rng"),
        ({"y": [1.0]}, ValueError, "one label per row"),
        ({"y": [99] * 90}, ValueError, "99 in row 0"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        ordinal.fit_svorim(X, y).explain(X, **options)


def test_sparse_rows_are_not_shuffled():
    sparse = pytest.importorskip("scipy.sparse").csr_array(X)
    with pytest.raises(TypeError, match="X must be dense"):
        ordinal.fit_svorim(sparse, y).explain(sparse)


def test_importances_are_drawn():
    pytest.importorskip("matplotlib").use("agg")
    found = ordinal.fit_pom(X, y).explain(X)
    ax = found.plot(top=2)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(found.names[:2])
    assert_allclose([bar.get_width() for bar in ax.patches], found.importance[:2])
    with pytest.raises(TypeError, match="explanation must be"):
        ordinal.plot.importance(3)


# What notebooks show


def test_markup_in_names_is_escaped(evil):
    frame, labels, classes, model = evil
    options = {"classes": classes}
    found = ordinal.select(
        "svorim", frame, labels, search={"C": [1.0, 2.0]}, cv=2, **options
    )
    compared = ordinal.compare(
        frame, labels, methods={EVIL: "pom", "svorim": "svorim"}, cv=2, **options
    )
    explained = model.explain(frame)
    shown = {
        "model": model, "selection": found, "comparison": compared,
        "explanation": explained, "table": explained.table(),
        "convergence": model.convergence,
    }  # fmt: skip
    for made in shown.values():
        html = made._repr_html_()
        Checked(html)
        assert EVIL not in html
        assert "<i>" not in html
    assert EVIL in "".join(Checked(explained._repr_html_()).words)
    assert EVIL in "".join(Checked(compared._repr_html_()).words)
    assert "<i>low" in Checked(model._repr_html_()).words  # on the line of thresholds


def test_a_fit_that_ended_early_shows_its_remedy():
    with pytest.warns(ordinal.ConvergenceWarning):
        model = ordinal.fit_svorim(X, y, C=100.0, max_iter=1)
    assert "raise max_iter" in model._repr_html_()
    assert "raise max_iter" in model.convergence._repr_html_()


def test_the_best_points_come_first():
    found = ordinal.select("svorim", X, y, refit=False)
    words = Checked(found._repr_html_()).words
    mean = float(words[words.index("0") + 4 if "0" in words else 0] or 0)
    assert mean >= 0
    assert f"{found.score:.6g}" in words
    assert found.to_pandas()["mean"].min() == found.score


def test_thresholds_are_marked_from_left_to_right():
    html = html_thresholds(np.array([-1.0, 0.0, 3.0]), ["a", "b", "c", "d"])
    places = [float(part.split('"')[0]) for part in html.split('<line x1="')[2:]]
    assert len(places) == 3
    assert_allclose((places[2] - places[1]) / (places[1] - places[0]), 3.0, rtol=0.01)
    assert html_thresholds(np.array([]), []) == ""
    assert html_thresholds(np.array([np.inf]), ["a", "b"]) == ""
    assert "40 more rows" in html_table(["a"], [[k] for k in range(100)])


# Reports


def test_a_report_holds_the_errors_and_needs_no_other_file(evil, tmp_path):
    frame, labels, classes, model = evil
    model.report(tmp_path / "report.html", frame, labels, title=EVIL)
    html = (tmp_path / "report.html").read_text()
    page = Checked(html)
    text = " ".join(page.words)
    assert page.links == []
    assert EVIL not in html
    assert "<i>" not in html
    told = model.predict(frame)
    for metric in (mae, accuracy):
        assert f"{metric(labels, told, labels=classes):.4f}" in page.words
    counts = ordinal.metrics.confusion_matrix(labels, told, labels=classes)
    start = page.words.index("true label")
    size = 1 + len(classes)
    rows = np.array(page.words[start + size : start + size * size]).reshape(-1, size)
    assert_array_equal(rows[:, 1:].astype(float), counts)
    for part in ("Calibration", "Prediction sets", "hold it in", "Importance"):
        assert part in text


def test_a_report_of_a_model_without_probabilities(tmp_path):
    model = ordinal.fit_svorim(X, y)
    model.report(tmp_path / "report.html", X, y)
    assert "Calibration" not in (tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match="one label per row"):
        model.report(tmp_path / "report.html", X, y[:5])
    with pytest.raises(ValueError, match="99 in row 0"):
        model.report(tmp_path / "report.html", X, [99] * len(X))
