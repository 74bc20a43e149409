"""Columns of dates: their numbers, whatever library and type they come in."""

import datetime
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from files import loaded
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import raises

import ordinal
from ordinal import inference
from ordinal._command.main import main
from ordinal._input.columns import disguise_of
from ordinal.preprocessing import TablePreprocessor

RNG = np.random.default_rng(0)
DAYS = pd.Timestamp("2022-01-05") + pd.to_timedelta(RNG.integers(0, 900, 200), "D")
X = pd.DataFrame({"x": RNG.normal(size=200), "visit": DAYS})
SCORE = X["x"] + 0.5 * X["visit"].dt.day_of_week + RNG.logistic(size=200)
Y = np.digitize(SCORE, [1.0, 2.0])
PARTS = ["year", "month", "weekday", "days"]
DATES = TablePreprocessor(dates=["visit"], standardize=False)


@given(times=st.lists(st.datetimes(datetime.datetime(1800, 1, 1)), min_size=1))
def test_parts_are_those_of_python(times):
    frame = pd.DataFrame({"t": np.array(times, dtype="datetime64[us]")})
    coding = TablePreprocessor(dates=["t"], standardize=False).fit(frame)
    assert coding.feature_names_out == tuple(f"t[{part}]" for part in PARTS)
    epoch, day = datetime.datetime(1970, 1, 1), datetime.timedelta(1)
    expected = [(t.year, t.month, t.weekday(), (t - epoch) / day) for t in times]
    np.testing.assert_allclose(coding.transform(frame), expected, rtol=1e-15)


@pytest.mark.parametrize("form", [
    lambda t: t.dt.strftime("%Y-%m-%d"),
    lambda t: t.dt.strftime("%Y-%m-%dT%H:%M"),
    lambda t: t.dt.strftime("%d.%m.%Y"),
    lambda t: t.dt.strftime("%Y/%m/%d 00:00"),
    lambda t: t.dt.date,
    lambda t: t.dt.tz_localize("Europe/Berlin"),
    lambda t: t.astype("datetime64[s]"),
    lambda t: t.astype(str).astype("category"),
], ids=[
    "text", "time", "dots", "slashes", "python", "zone", "seconds", "category",
])  # fmt: skip
def test_dates_of_every_type_are_the_same(form):
    other = X.assign(visit=form(X["visit"]))
    expected = DATES.fit(X).transform(X)
    assert_array_equal(DATES.fit(other).transform(other), expected)
    assert_array_equal(DATES.fit(X).transform(other), expected)


def test_missing_dates_are_filled_in_and_marked():
    M = X.assign(visit=X["visit"].where(np.arange(200) % 5 > 0))
    coding = DATES.fit(M)
    names = [*(f"visit[{part}]" for part in PARTS), "visit[days] is missing"]
    assert list(coding.feature_names_out[1:]) == names
    Z, expected = coding.transform(M), DATES.fit(X).transform(X)
    there = np.arange(200) % 5 > 0
    assert_array_equal(Z[there, :-1], expected[there])
    assert_array_equal(Z[~there, 1:-1], np.tile(np.median(Z[there, 1:-1], 0), (40, 1)))
    assert_array_equal(Z[:, -1], ~there)
    gone = X.assign(visit=pd.NaT)
    with pytest.warns(ordinal.exceptions.EmptyColumnsWarning, match=r"'visit\[year\]'"):
        assert not DATES.fit(gone).transform(gone)[:, 1:].any()


def test_linear_models_are_stated_in_parts():
    how = TablePreprocessor(dates={"visit": ["month", "weekday"]})
    model = ordinal.fit_pom(X, Y, preprocess=how)
    visit = X["visit"].dt
    plain = pd.DataFrame({"x": X["x"], "m": visit.month, "w": visit.day_of_week})
    same = ordinal.fit_pom(plain.to_numpy(), Y)
    assert model.coef_names == ("x", "visit[month]", "visit[weekday]")
    np.testing.assert_allclose(model.coef, same.coef, atol=1e-5)
    effects = model.marginal_effects()
    assert effects["name"].tolist()[3:] == ["visit[month]"] * 3 + ["visit[weekday]"] * 3
    expected = same.marginal_effects()["effect"][6:]
    np.testing.assert_allclose(effects["effect"][6:], expected, atol=1e-6)
    assert "visit[weekday]" in inference.drop1(model)["name"].tolist()


UNDECLARED = TypeError, r"'visit'.*TablePreprocessor\(dates=\['visit'\]\)"
REFUSED = [
    *((partial(fit, X.assign(visit=column)), error, f"column 'visit' of X .*{message}")
      for column, error, message in (
        (["31/01/2024"] * 200, ValueError, "'31/01/2024', which is not written as 202"),
        (np.arange(200.0), TypeError, "must hold dates, got 0 in row 0: pandas.to_da"),
        (np.full(200, 2**63 - 1, "M8[s]"), ValueError, "hold dates within 1e.13 days"),
        (pd.to_timedelta([3] * 200, "D"), TypeError, "got .*; convert times to num"))
      for fit in (DATES.fit, DATES.fit(X).transform)),
    *((partial(TablePreprocessor, dates=dates), ValueError, message)
      for dates, message in (
        ("visit", "must be a sequence of columns by name or number, or a mapping"),
        ({"visit": ["hour"]}, r"dates\['visit'\] must be a sequence of \['year', "),
        ({"visit": "month"}, r"dates\['visit'\] must be a sequence of "),
        ({"visit": []}, r"dates\['visit'\] must be a sequence of "))),
    *((partial(fit, X, Y), *UNDECLARED) for fit in (
        ordinal.fit_pom, ordinal.fit_svorim, ordinal.fit_xofm, ordinal.compare,
        partial(ordinal.select, "xofm"))),
    *((partial(TablePreprocessor(**how).fit, X), *UNDECLARED)
      for how in ({"categorical": ["visit"]}, {"order": {"visit": [1, 2]}})),
    (partial(TablePreprocessor(dates=["day"]).fit, X[["x"]]), ValueError,
     "dates names 'day', which is not among"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_no_date_or_not_declared_is_refused(call, error, message):
    raises(error, message, call)


@pytest.mark.parametrize("method", ["pom", "svorim", "xofm"])
def test_dates_of_a_file_are_predicted_as_those_of_a_table(method, tmp_path, capsys):
    table, out = tmp_path / "t.csv", tmp_path / "m.npz"
    text = X.assign(visit=X["visit"].dt.strftime("%Y-%m-%d"), rank=Y)
    text.to_csv(table, index=False)
    fit = ["fit", str(table), "--method", method, "--folds", "0", "--out", str(out)]
    assert main(fit) == 2
    assert "--dates visit makes year" in capsys.readouterr().err
    assert main([*fit, "--dates", "visit"]) == 0
    fitted = getattr(ordinal, f"fit_{method}")
    model = fitted(X, Y, preprocess=TablePreprocessor(dates=["visit"]))
    capsys.readouterr()
    assert main(["predict", str(out), str(table)]) == 0
    predicted = [int(line) for line in capsys.readouterr().out.split()[1:]]
    assert_array_equal(predicted, model.predict(X))


@pytest.mark.parametrize(("parts", "shift", "far"), [
    (PARTS, 200, True), (["days"], -200, True), (["year"], 900, True),
    (PARTS, 20, False), (["month", "weekday"], 2000, False),
])  # fmt: skip
def test_dates_far_from_the_training_rows_are_warned_of(parts, shift, far):
    how = TablePreprocessor(dates={"visit": parts})
    model = loaded(ordinal.fit_svorim(X, Y, preprocess=how))
    moved = X.assign(visit=X["visit"] + pd.Timedelta(shift, "D"))
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.predict(moved)
    said = [str(w.message) for w in caught]
    assert len(said) == far
    assert all("'visit' of X holds 20" in text for text in said)


@pytest.mark.slow("the checks of scikit-learn, and a search")
def test_pipelines_of_scikit_learn_take_tables():
    pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.utils.estimator_checks import check_estimator

    from ordinal.sklearn import SVORIM, TableTransformer

    check_estimator(TableTransformer(), on_skip=None)
    pipeline = make_pipeline(TableTransformer(dates=["visit"]), SVORIM())
    grid = {"tabletransformer__dates": [["visit"], {"visit": ["weekday"]}]}
    found = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.best_estimator_[0].get_feature_names_out()[0] == "x"
    made = TableTransformer(dates=["visit"]).set_output(transform="pandas")
    assert made.fit_transform(X).columns.tolist()[0] == "x"


NUMBERS = st.floats(0.01, 999).map(lambda v: f"{v:.2f}".replace(".", ","))


@given(words=st.lists(NUMBERS, min_size=12, unique=True), other=st.just("n.a."))
def test_a_stray_value_does_not_hide_numbers(words, other):
    assert disguise_of([*words, other])[0] == "numbers"
    assert disguise_of([*words[:6], "a", "b", "c"]) is None
