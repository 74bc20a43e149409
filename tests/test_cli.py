import csv
import gzip
import importlib.metadata
import inspect
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock
from zipfile import ZipFile

import numpy as np
import pandas
import polars
import pytest
from internals import Line, methods
from numpy.testing import assert_allclose, assert_array_equal
from processes import Terminal
from strategies import slow

import ordinal
from ordinal.__main__ import main
from ordinal._command.compare import REPORTS
from ordinal._command.methods import METHODS, in_options
from ordinal.comparison import compare
from ordinal.datasets import make_gaussians, make_tlssvor
from ordinal.metrics import accuracy, mae
from ordinal.model_selection import Grid, select, stratified_holdout, stratified_kfold
from ordinal.preprocessing import Binning, Standardizer

NAMES = {1: "low", 2: "mid", 3: "high"}


def write(path, X, y, header="east,north,grade"):
    lines = [header] if header else []
    pairs = zip(X.tolist(), np.asarray(y).tolist(), strict=True)
    lines += [",".join([*map(repr, x), str(k)]) for x, k in pairs]
    Path(path).write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def rows():
    return make_gaussians(20)


@pytest.fixture(autouse=True)
def folder(tmp_path, rows, monkeypatch):
    """Go to a folder with three tables: their targets are ranks as numbers, ranks as
    strings, and the first feature."""
    monkeypatch.chdir(tmp_path)
    X, y = rows
    write("data.csv", X, y)
    write("words.csv", X, [NAMES[k] for k in y])
    write("raw.csv", X[:, 1:], X[:, 0], header="north,target")


@pytest.fixture
def told(capsys):
    def told(line, *more, code=0):
        """Return the output of the command, and what it says besides."""
        assert main([*shlex.split(line), *map(str, more)]) == code
        return capsys.readouterr()

    return told


@pytest.fixture
def run(told):
    def run(line, *more, code=0):
        """Return the output of the command; after an error, its one line."""
        out, err = told(line, *more, code=code)
        if code == 0:
            assert err == ""
            return out
        assert err.startswith("ordinal: error: ")
        assert err.count("\n") == 1
        return err

    return run


FIT = "fit data.csv --method npsvor --out m.npz"


def replace_fit(monkeypatch, fit):
    method, fixed = METHODS["npsvor"]
    monkeypatch.setitem(METHODS, "npsvor", (replace(method, fit=fit), fixed))


def scores(out):
    """{method: (MAE, accuracy)} of a comparison's output."""
    return {
        cells[0]: (float(cells[1]), float(cells[4]))
        for cells in [line.split() for line in out.splitlines()]
        if cells and cells[0] in METHODS and cells[2:3] == ["±"]
    }


def test_compare_reports_the_errors_of_its_folds(run, rows):
    X, y = rows
    for more, splits, sizes in (
        ("", stratified_kfold(y, rng=7), "5 splits of 48 training + 12 test rows"),
        ("--folds 3", stratified_kfold(y, 3, rng=7), "3 splits of 40 training + 20"),
        ("--splits 4", stratified_holdout(y, 4, rng=7), "4 splits of 45 training"),
    ):
        out = run(f"compare data.csv --methods npsvor --seed 7 --rule own {more}")
        head = "data: 60 rows, 2 features, 3 ranks of 'grade'; mean ± standard er"
        assert f"{head}ror over {sizes}" in out
        assert "Not converged" not in out
        found = compare(X, y, methods="npsvor", cv=splits, rule="own")
        of = found.mean, found.standard_error
        told = [f(name)[0] for name in ("mae", "accuracy") for f in of]
        assert_allclose(scores(out)["npsvor"], told[::2], atol=6e-4)
        assert f"± {told[1]:.3f}" in out
        assert f"± {told[3]:.3f}" in out
        assert f"npsvor has MAE {told[0]:.4f} ± {told[1]:.4f}." in out


@pytest.mark.slow("compares in three folds")
def test_compare_counts_what_does_not_converge(run):
    argv = "--splits 3 --methods npsvor pom --set npsvor.max_iter=1"
    with warnings.catch_warnings(record=True, action="always") as seen:
        out = run(f"compare data.csv {argv}")
    assert not seen
    assert out.endswith("Not converged in every fold: npsvor (max_iter).\n")


def test_compare_counts_thresholds_out_of_order(run):
    write("t.csv", *make_tlssvor(), header="a,b,c,d,e,grade")
    out = run("compare t.csv --splits 2 --methods svorex shashua-levin")
    assert out.endswith("Thresholds out of order: shashua-levin (2/2).\n")
    assert "order" not in run("compare t.csv --splits 2 --methods svorim")


def test_a_search_leaves_what_is_set(run):
    argv = "--splits 1 --methods svorim gpor-laplace --set svorim.gamma=0.5"
    out = run(f"compare data.csv {argv} --tune --verbose")
    assert "\nsvorim searches C 0.1, 1, 10, 100, 1000: 5 points in 5 fo" in out
    assert re.search(r"^svorim chose C=\d+(\.\d)? in 1 split$", out, re.MULTILINE)
    assert "gpor-laplace searches" not in out  # as it finds its own arguments


def test_fit_ends_with_a_cross_validated_error(run, rows):
    fit = "fit data.csv --method pom --out m.npz"
    X, y = rows
    for more, k in (("", 5), ("--folds 3", 3)):
        result = compare(X, y, methods="pom", cv=stratified_kfold(y, k, rng=0))
        mean, error = result.mean()[0], result.standard_error()[0]
        assert f"in {k} folds: MAE {mean:.4f} ± {error:.4f}" in run(f"{fit} {more}")
    assert "folds" not in run(f"{fit} --folds 0")
    assert "--folds must be 2 or more" in run(f"{fit} --folds 1", code=2)


@pytest.mark.filterwarnings("default")
def test_a_fold_that_cannot_be_fitted_is_no_error_of_a_saved_model(told):
    Path("t.csv").write_text("a,grade\n1,1\n2,1\n3,1\n5,2\n")
    out, err = told("fit t.csv --method svorim --out m.npz")
    assert ordinal.load("m.npz").n_features == 1
    assert "saved as" in out
    assert "but not cross-validated, because a fit without the rows of a fold" in err


def test_show_and_config_print_a_model_and_the_configuration(run):
    lines = dict(line.split(maxsplit=1) for line in run("config").splitlines())
    assert lines == {k: str(v) for k, v in ordinal.show_config().items()}
    assert "examples:" in run("")  # the help
    run("fit data.csv --method pom --out m.npz --folds 0")
    assert run("show m.npz") == f"{ordinal.load('m.npz')}\n"
    assert "--decimal is for tables" in run("show m.npz --decimal ,", code=2)


def test_show_lists_the_columns_of_a_table(told):
    days = [f"a,{i % 4},{i / 2},2024-01-{i + 1:02},{i}x" for i in range(22)]
    rows = [*days, "b,,1O,2024-02-01,22x", "?,3,2,2024-02-02,23x"]
    Path("t.csv").write_text("\n".join(["word,rank,size,day,id", *rows]))
    _, err = told("show t.csv --out c.csv")
    assert Path("c.csv").read_text().splitlines() == [
        "column,taken as,missing,values",
        "word,categories,1,\"2: 'a', 'b'\"",
        'rank,whole numbers,1,"0, 1, 2, 3"',
        "size,\"numbers, and text\",0,1: '1O'",
        "day,dates as text,0,\"24: '2024-01-01', '2024-01-02', '2024-01-03', "
        "'2024-01-04', ...\"",
        "id,names or other text,0,\"24: '0x', '10x', '11x', '12x', ...\"",
    ]
    _, first, second, third = err.split("note: ")
    assert first.startswith("24 rows and 5 columns; the ranks are those of 'id'")
    assert (second.split(": ")[1][:6], third.split(": ")[1][:6]) == ("'rank'", "'word'")
    told("show t.csv --missing-labels drop", code=2)
    with ZipFile("t.xlsx", "w") as file:
        file.writestr("sheet.xml", "")
    assert "Excel workbook" in told("show t.xlsx", code=2).err


def test_predict_reports_errors_where_labels_are_there(run, told, rows):
    run("fit data.csv --method pom --out m.npz --folds 0")
    out, err = told("predict m.npz data.csv --score --target grade")
    _, y = rows
    predicted = [int(line) for line in out.split()[1:]]
    errors = [f(y, predicted, labels=[1, 2, 3]) for f in (mae, accuracy)]
    assert err == "60 rows: MAE {:.4f}, accuracy {:.4f}\n".format(*errors)
    assert told("predict m.npz data.csv --score").err == err  # the last column
    for argv, message in (
        ("--score --target nothing", "nothing"),
        ("--target grade", "--score"),
        ("--score --target east", "is a feature of the model"),
    ):
        assert message in run(f"predict m.npz data.csv {argv}", code=2)
    run("fit data.csv --target grade --bins 2 --method lat --out m.npz --folds 0")
    err = run("predict m.npz data.csv --score --target grade", code=2)
    assert "line 42, column 'grade': '3' is not a rank of the model" in err
    assert "is not a rank of the model, [1, 2]; pass the labels of the fit" in err


def test_fit_tunes(run, rows):
    fit = "fit data.csv --method lit --out m.npz --seed 3"
    out = run(f"{fit} --tune")
    X, y = rows
    space = Grid(**METHODS["lit"][0].grid)
    rng = np.random.default_rng(3)
    found = select(ordinal.companions.fit_lit, X, y, search=space, rng=rng)
    assert f"chosen among {space.size} points: l2={found.params['l2']:g}" in out
    assert_array_equal(ordinal.load("m.npz").predict(X), found.predict(X))
    assert "--seed is for --tune only: to seed the" in run(fit, code=2)


@pytest.mark.slow("two fits per entry of each grid")
def test_every_grid_is_of_arguments_of_its_method(rows):
    for method in methods():
        parameters = inspect.signature(method.fit).parameters
        for name, values in method.grid.items():
            assert name in parameters
            for value in (values[0], values[-1]):
                method.fit(*rows, **{name: value})


def test_the_page_lists_every_grid():
    page = (Path(__file__).parent.parent / "docs/command.md").read_text()
    for name, (method, _) in METHODS.items():
        rows = [line for line in page.splitlines() if line.startswith("| `")]
        (row,) = (row for row in rows if f"`{name}`" in row.split("|")[1])
        for key, values in method.grid.items():
            assert f"`{key}`" in row
            shown = (v if isinstance(v, str) else f"{v:g}" for v in values)
            assert ", ".join(shown) in page
        assert bool(method.grid) != ("nothing" in row)


@pytest.mark.slow("tunes two methods three times")
def test_reports_hold_the_same_numbers(run):
    argv = "compare data.csv --splits 3 --methods svorim npsvor --tune --format"
    found = json.loads(run(f"{argv} json"))
    assert {m["method"] for m in found["methods"]} == {"svorim", "npsvor"}
    assert (found["rows"], found["features"], found["classes"]) == (60, 2, [1, 2, 3])
    assert (found["training_rows"], found["test_rows"]) == (45, 15)
    lines = list(csv.DictReader(io.StringIO(run(f"{argv} csv"))))
    markdown = run(f"{argv} markdown").splitlines()
    assert markdown[2] == "| method | MAE | accuracy | RPS | rules | seconds |"
    assert found["verdict"] in markdown[-1]
    for k, of in enumerate(found["methods"]):
        own = [line for line in lines if line["method"] == of["method"]]
        for name in ("mae", "accuracy", "rps"):
            assert [float(line[name]) for line in own] == of[name]
        assert [line["status"] for line in own] == of["status"] == ["converged"] * 3
        point = ", ".join(f"{name}={v:g}" for name, v in of["chosen"][1].items())
        assert own[1]["chosen"] == point
        cells = markdown[4 + k].split(" | ")
        assert cells[0] == f"| {of['method']}"
        mean, sd = np.mean(of["mae"]), np.std(of["mae"], ddof=1)
        assert cells[1] == f"{mean:.3f} ± {sd / 3**0.5:.3f}"


@pytest.mark.parametrize("form", REPORTS)
def test_a_report_goes_to_a_file(run, form):
    line = f"compare data.csv --splits 1 --methods npsvor --format {form}"
    assert run(f"{line} --out report") == ""
    text = Path("report").read_text()
    assert len(text.splitlines()) == len(run(line).splitlines()) > 1
    assert "is a folder" in run(f"{line} --out .", code=2)
    if form == "json":  # which says null for no score
        argv = "--splits 2 --methods svr --format json --set svr.probability=False"
        (svr,) = json.loads(run(f"compare data.csv {argv}"))["methods"]
        assert svr["rps"] == [None, None]


@pytest.mark.parametrize("suffix", ["png", *slow("pdf", "svg")])
def test_compare_draws_its_errors(run, suffix):
    argv = f"--splits 2 --methods lit npsvor --plot errors.{suffix}"
    assert "lit" in run(f"compare data.csv {argv}")
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    assert Path(f"errors.{suffix}").read_bytes().startswith(start)


def test_an_output_that_cannot_be_is_found_first(run, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    run(FIT)
    replace_fit(monkeypatch, never)
    two = "compare data.csv --methods npsvor svorim --plot"
    assert "must end with .pdf, .png, .svg" in run(f"{two} p.txt", code=2)
    assert "folder of this file does not exist" in run(f"{two} no/p.png", code=2)
    one = "compare data.csv --methods npsvor --plot p.png"
    assert "two methods or more" in run(one, code=2)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "--plot needs matplotlib" in run(f"{two} p.png", code=2)
    monkeypatch.setattr(ordinal, "load", never)
    assert "is a folder, not a file" in run(f"{FIT} --out .", code=2)
    assert "is a folder" in run("predict m.npz data.csv --out .", code=2)


@pytest.mark.slow("tunes twice")
def test_a_terminal_is_told_how_far_the_work_is(monkeypatch, told):
    monkeypatch.setattr(Line, "EVERY", 0.0)
    for more in ("", "--tune"):
        monkeypatch.setattr("sys.stderr", seen := Terminal())
        told(f"compare data.csv --methods svorim --splits 2 --seed 1 {more}")
        assert "svorim: fold 1 of 2" in seen.getvalue()
        assert " s left" in seen.getvalue()
        assert more or re.search(r"fold 1 of 2; \d+ steps", seen.getvalue())
        assert seen.getvalue().endswith(" \r")  # wiped for what is printed
        monkeypatch.setattr("sys.stderr", seen := Terminal())
        told(f"fit data.csv --method svorim --out m.npz {more}")
        assert ("125/125 fits" if more else "fit_svorim") in seen.getvalue()


@pytest.mark.slow("four comparisons")
def test_stored_splits_and_labels_are_used(run, rows):
    """Labels replace the quantiles of a target."""
    X, y = rows
    train, test = zip(*stratified_holdout(y, 2, rng=3), strict=True)
    methods, seeded = "--methods npsvor pom", "--splits 2 --seed 3"
    np.savez("s.npz", train_idx=train, test_idx=test)
    stored = run(f"compare data.csv --splits s.npz {methods}")
    assert scores(stored) == scores(run(f"compare data.csv {seeded} {methods}"))
    np.savez("s.npz", train_idx_3=train, test_idx_3=test, y3=y.astype(np.int8))
    stored = run(f"compare raw.csv --splits s.npz --bins 3 {methods}")
    write("ready.csv", X[:, 1:], y, header="north,rank")
    assert scores(stored) == scores(run(f"compare ready.csv {seeded} {methods}"))


ONE = {"train_idx": [[0]], "test_idx": [[1]]}


@pytest.mark.parametrize(("arrays", "options", "message"), [
    ({"train_idx_5": [[0]], "test_idx_5": [[1]]}, "", ": check --bins against"),
    ({"train_idx": [[0]]}, "", "no train_idx and test_idx"),
    ({"train_idx": [[0.5]], "test_idx": [[1.0]]}, "", "2-D row numbers"),
    (ONE | {"test_idx": [[1], [2]]}, "", "number of splits"),
    (ONE | {"test_idx": [[60]]}, "", "split 0 has a row outside"),
    ({"train_idx": [[-1]], "test_idx": [[0]]}, "", "split 0 has a row outside"),
    (ONE | {"train_idx": [[0, 1]]}, "", "split 0 uses a row twice"),
    (ONE | {"y3": [1, 2]}, "--bins 3", "2 labels for 60 rows"),
    (ONE | {"y3": [0] * 60}, "--bins 3", "ranks 1 to 3"),
    (ONE | {"y3": [1, 2]}, "--bins 3 --binning length", "holds the labels y3"),
    (ONE, "--seed 1", "--test-size and"),
    (ONE | {"train_idx": [[object()]]}, "", "holds no splits"),
])  # fmt: skip
def test_bad_splits(run, arrays, options, message):
    np.savez("s.npz", **{key: np.array(value) for key, value in arrays.items()})
    assert message in run(f"compare data.csv --splits s.npz {options}", code=2)


def test_predict_takes_columns_without_a_header_by_position(run, rows):
    X, y = rows
    run(FIT)
    expected = run("predict m.npz data.csv")
    write("bare.csv", X[:, :1], X[:, 1], header=None)
    write("t.csv", X, y, header=None)
    assert run("predict m.npz bare.csv") == expected
    assert "no columns 'east', 'north'" in run("predict m.npz t.csv", code=2)
    run("fit t.csv --method npsvor --out m.npz")
    assert run("predict m.npz t.csv") == run("predict m.npz bare.csv")
    Standardizer.fit(X).save("m.npz")
    assert "holds a Standardizer, not a" in run("predict m.npz bare.csv", code=2)


@pytest.mark.parametrize("kind", ["frequency", "length"])
def test_fit_shows_the_bins(run, rows, kind):
    make = {"frequency": Binning.equal_frequency, "length": Binning.equal_length}[kind]
    edges = make(rows[0][:, 0], 3).edges
    said = f"ranks 1 to 3 end at {edges[0]:.6g}, {edges[1]:.6g} and"
    fit = "fit raw.csv --method npsvor --out m --bins 3"
    assert said in run(f"{fit} --binning {kind}")


def test_fit_warns_in_one_line(told):
    out, err = told(f"{FIT} --set max_iter=1")
    assert "max_iter in" in out
    assert err.startswith("ordinal: warning: fit_npsvor: max_iter after")
    assert err.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="no /dev/stdout")
def test_a_model_to_standard_output_is_alone_there(tmp_path):
    """The report goes to the other stream."""
    fit = [sys.executable, "-m", "ordinal", *FIT.split()[:-1], "-"]
    done = subprocess.run(fit, cwd=tmp_path, capture_output=True)
    assert done.stderr.startswith(b"npsvor on 60 rows")
    Path("m.npz").write_bytes(done.stdout)
    assert ordinal.load("m.npz").feature_names == ("east", "north")


@pytest.mark.parametrize("line", [
    "fit data.csv --method pom --out 'other name.csv'",
    "compare data.csv --out 'other name.csv'",
    "compare data.csv --splits s.npz --out s.npz",
    "compare data.csv --plot p.png --out ./p.png",
    "predict m.npz data.csv --out data.csv",
    "predict m.npz data.csv --out m.npz",
    "predict m.npz - --out data.csv",
    "report m.npz data.csv --out m.npz",
    "explain m.npz data.csv --out 'other name.csv'",
])  # fmt: skip
def test_no_file_that_is_read_is_written(run, tmp_path, monkeypatch, line):
    for name in ("m.npz", "s.npz"):
        Path(name).write_text(name)
    os.link("data.csv", "other name.csv")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with open("data.csv") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert "pass another name" in run(line, code=2)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    if line == "predict m.npz data.csv --out data.csv":
        with pytest.raises(ValueError, match="is the file of the rows"):
            ordinal.data.write_predictions("other name.csv", mock.Mock(), "data.csv")


def test_unknown_categories_are_named_once_per_column(run, told):
    text = "a,b,y\n" + "".join([f"{k / 2},{'uvw'[k % 3]},{k % 2}\n" for k in range(30)])
    Path("t.csv").write_text(text)
    run("fit t.csv --method svorim --folds 0 --out m.npz")
    Path("t.csv").write_text(text.replace("u", "new").replace("v,1", "new,1"))
    with mock.patch("ordinal._files.chunks.PIECE", 50):
        out, err = told("predict m.npz t.csv")
    assert len(out.splitlines()) == 31
    assert err.startswith("ordinal: warning: column 'b' holds 'new', which no tr")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("header", "cells", "note"), [
    ("a,b,y", lambda k: f"{k + (k > 38)},{k % 4},{k % 2 / 2}", ""),
    ("a,constant,y", lambda k: f"{k / 2},7,{k % 2}", ""),
    ("the nr,b,y", lambda k: f"{50 - k},{k % 4},{k % 2}",
     "'the nr' numbers the rows: leave it out by --drop 'the nr' unless"),
    ("a,b,y", lambda k: f"{k / 2},{k % 4},{k % 2 if k else 99}",
     "99 of 'y' is a rank of a single row: remove the row if it holds a total"),
    ("a,the copy,y", lambda k: f"{k / 2},{'uv'[k % 2]},{k % 2}",
     "'the copy' stands for 'y' one to one: leave it out by --drop 'the copy'"),
])  # fmt: skip
def test_odd_ranks_are_noted(told, header, cells, note):
    Path("t.csv").write_text("\n".join([header, *map(cells, range(40))]))
    _, err = told("fit t.csv --method svorim --folds 0 --out m.npz")
    assert (f"ordinal: note: {note}" in err) if note else err == ""


def test_all_bad_columns_are_named_with_what_mends_them(run):
    k = np.arange(60)
    days = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(5 * k, "D")
    texts = {
        "day": days.strftime("%d.%m.%Y"),
        "us": days.strftime("%m/%d/%Y"),
        "count": [f"{1000 + i:,}" for i in k],
        "share": [f"{i} %" for i in k],
        "who": [f"name {i}" for i in k],
    }
    frame = pandas.DataFrame(texts | {"y": days.month % 3})
    frame.to_csv("t.csv", index=False)
    fit = "fit t.csv --method svorim --folds 0 --out m.npz"
    error = run(fit, code=2)
    for said in (
        "column 'day' holds dates as text, such as '01.01.2024': --dates day makes",
        "column 'us' holds dates as text, such as '01/01/2024': write them as 2024-01",
        "such as '1,000': --decimal , reads decimal commas; or remove thousands",
        "column 'share' holds numbers as text, such as '0 %': remove thousands",
        "column 'who': 60 different strings",
    ):
        assert said in error
    fit += " --drop who us share count --dates"
    assert "from year, month, weekday, days" in run(f"{fit} day=hour", code=2)
    run(f"{fit} day=weekday,month")
    expected = run("predict m.npz t.csv")
    frame.assign(day=days.strftime("%Y-%m-%d")).to_csv("t.csv", index=False)
    assert run("predict m.npz t.csv") == expected


@pytest.mark.parametrize(("line", "messages"), [
    ("fit data.csv --method svorim --out m --set random_state=3 nonsense=1 C",
     ["has no argument 'random_state'; did you mean rng=?",
      "has no argument 'nonsense'; --set C: expected ARG=VALUE; svorim"]),
    ("fit data.csv --method svorim --out m --drop up east --categorical down",
     ["has no columns 'up', 'down'; it has ['east', 'north', 'grade']"]),
    ("compare data.csv --methods svorim pom --set svorim.l1=1 pom.C=1",
     ["svorim has no argument 'l1'", "pom has no argument 'C'"]),
])  # fmt: skip
def test_all_wrong_settings_and_columns_are_listed_at_once(run, line, messages):
    refused = run(line, code=2)
    assert all(message in refused for message in messages)
    assert refused.count("; svorim has C, ") == ("--set" in line)


def test_advice_is_in_options_of_the_command():
    for given, said in {
        "fit it with probability=True": "fit it with --set probability=True",
        "pass missing='drop', or l2=0.1": "pass --set missing=drop, or --set l2=0.1",
        "--set C=10: wrong; kernel='rbf2'": "--set C=10: wrong; --set kernel=rbf2",
        "pass nominal=['a b']": "pass --set \"nominal=['a b']\"",
        "columns 'a', 'of X' of X differ": "columns 'a', 'of X' differ",
        "with l2 > 0 columns stay": "with --set l2=0.1 columns stay",
        "svorim.C=10 and unknown=3 stay": "svorim.C=10 and unknown=3 stay",
    }.items():
        assert in_options(given) == said


@pytest.mark.skipif(os.name == "nt", reason="no pipes with names")
def test_predictions_go_through_a_pipe(run):
    pipe, got = Path("pipe"), []
    run(FIT)
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run("predict m.npz data.csv --out pipe") == ""
    reader.join(10)
    assert got == [run("predict m.npz data.csv")]
    assert pipe.is_fifo()
    said = run("fit pipe --method svorim --stream --out m.npz", code=2)
    assert "a pipe, can be read only once" in said


def test_predict_gives_probabilities(run, rows):
    fit = "fit words.csv --method svorim --out m.npz --classes low,mid,high"
    run(fit)
    refused = run("predict m.npz words.csv --proba", code=2)
    assert "fit it with --set probability=True" in refused
    run(f"{fit} --set probability=true")
    header, *lines = run("predict m.npz words.csv --proba").splitlines()
    assert header == "prediction,P(low),P(mid),P(high)"
    table = [line.split(",") for line in lines]
    model = ordinal.load("m.npz")
    assert [row[0] for row in table] == model.predict(rows[0]).tolist()
    P = np.array([row[1:] for row in table], dtype=float)
    assert_array_equal(P, model.predict_proba(rows[0]))
    by_mode = np.array(list(NAMES.values()))[P.argmax(axis=1)]
    assert_array_equal(model.predict(rows[0], rule="mode"), by_mode)


@pytest.mark.parametrize(("cells", "message"), [
    (["1", "2", "3", "4", "5x", "6"], "line 6, column 'a': '5x' is not a finite"),
    (["1", "2", "3 %", "4", "5"],
     "line 4, column 'a': '3 %' is not a finite number as others are; remove"),
    (["1", "2", "inf", "4", "5", "6"], "line 4, column 'a': 'inf' is not a finite"),
    (["1", "2", "-", "3", "5", "6"], "are; for missing values: --missing -; or for"),
    ([f"name {k}" for k in range(60)], "60 different strings in 60 rows"),
    ([f"2020-01-{k:02}" for k in range(1, 31)], "leave it out by --drop a, or"),
])  # fmt: skip
def test_a_column_of_neither_numbers_nor_categories_is_named(run, cells, message):
    rows = [f"{cell},{k / 2},{k % 2}\n" for k, cell in enumerate(cells)]
    Path("t.csv").write_text("".join(["a,b,y\n", *rows]))
    fit = "fit t.csv --method npsvor --out m.npz"
    error = run(fit, code=2)
    assert message in error
    assert "--categorical a" in error
    run(f"{fit} --drop a")
    run(f"{fit} --categorical a")


@pytest.mark.parametrize(("name", "separator", "decimal", "options"), [
    ("t.csv", ";", ",", "--decimal ,"),
    ("t.csv", "|", ".", "--separator '|'"),
    ("t.csv", "\t", ",", "--separator tab --decimal ,"),
    ("t.tsv", "\t", ".", ""),
])  # fmt: skip
def test_fit_and_predict_other_layouts(run, name, separator, decimal, options):
    text = Path("data.csv").read_text().replace(",", separator).replace(".", decimal)
    Path(name).write_text(text)
    run(FIT)
    expected = run("predict m.npz data.csv")
    run(f"fit {name} --method npsvor --out m.npz {options}")
    assert run(f"predict m.npz {name} {options}") == expected


def test_a_table_of_standard_input(run, told, monkeypatch):
    content = Path("data.csv").read_bytes()
    run(FIT)
    expected = run("predict m.npz data.csv")
    for line, said in (
        ("fit - --method npsvor --out m.npz", "npsvor on 60 rows"),
        ("predict m.npz -", expected),
        ("compare - --methods npsvor --splits 1", "standard input: 60 rows"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert run(line).startswith(said)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    out, err = told("predict m.npz - --score")
    assert (out, err[:8]) == (expected, "60 rows:")


@pytest.mark.parametrize(("line", "message"), [
    ("compare --methods magic", "invalid choice: 'magic'"),
    ("compare --methods bosting", "did you mean 'boosting'?"),
    ("compare --methods pom,svorim", "as in --methods pom svorim"),
    ("compare --methods pom data.csv", "; name the file before --methods"),
    ("compare --treads 2", "did you mean '--threads'? (see `ordinal comp"),
    ("compare data.csv --classes 1, 2", "put quotes around a value"),
    ("compare data.csv --drop east,north", "as in east north"),
    ("compare data.csv --target Grades", "did you mean 'grade'?"),
    ("fit --method C=" + "9" * 500, "invalid choice: 'C=" + "9" * 74 + "..."),
    ("compare --bins 3", "--bins needs DATA"),
    ("compare --target y", "--target needs DATA"),
    ("compare --drop y", "--drop needs DATA"),
    ("compare --order y=a,b", "--order needs DATA"),
    ("compare --missing-labels drop", "--missing-labels needs DATA"),
    ("compare --decimal ,", "--decimal needs DATA"),
    ("compare --separator tab", "--separator needs DATA"),
    ("compare --splits s.npz", "needs DATA"),
    ("compare data.csv --splits data.csv", "is not an .npz file"),
    ("compare --splits 0", "--splits must be a positive integer"),
    ("compare data.csv --order east", "expected NAME=LOW,...,HIGH"),
    ("compare --set C=1", "expected METHOD.ARG=VALUE"),
    ("compare --set npsvor.C", "expected ARG=VALUE"),
    ("compare --set npsvor.CC=1", "no argument 'CC'; npsvor has C"),
    ("compare --methods all --set npsvor-admm.solver=smo",
     "stands for --set solver=admm"),
    ("compare --set npsvor.classes=1", "no argument 'classes'"),
    ("compare --set pom.offset=1", "no argument 'offset'"),
    ("compare data.csv --methods lit constant-mode lat --set lit.l2=-1 lat.l2=-2",
     "every method failed: lit: ValueError: l2 must"),
    ("compare nowhere.csv", "nowhere.csv: No such file"),
    ("compare data.csv --binning length", "--binning needs --bins"),
    ("compare data.csv --test-size 0.5", "--test-size needs hold-out"),
    ("compare data.csv --folds 3 --splits 3", "exclude each other"),
    ("compare data.csv --folds 1", "--folds must be 2 to the number of rows"),
    ("compare data.csv --target east",
     "is not a rank: cut the numbers into ranks with"),
    ("compare data.csv --classes 1,2", "'3' is not in --classes 1,2"),
    ("compare data.csv --classes low,mid", "column 'grade' holds numbers"),
    ("compare data.csv --classes 1 --bins 2", "--classes cannot be"),
    ("compare words.csv", "alphabetical order that is --classes high,low,mid"),
    ("compare words.csv --classes low,high", "line 22, column 'grade': 'mid'"),
    ("compare words.csv --bins 2", "'low' is not a finite number"),
    ("fit data.csv --method npsvor --out no/m", "must be created first"),
    (f"{FIT} --set C=1,gamma=2", "--set C=1,gamma=2: put blanks between arguments"),
    ("predict data.csv data.csv", "not an ordinal model file"),
])  # fmt: skip
def test_errors_take_one_line(run, line, message):
    assert message in run(line, code=2)


@pytest.mark.parametrize(("lines", "message"), [
    ([f"{k / 2},{1000 * k}" for k in range(60)], "60 distinct values; cut it"),
    ([f"{k / 2},{k / 4}" for k in range(60)], "line 3, column 'b': '0.25' is not a"),
    (["1,1", "2,2", "3,1O", "4,2"], "line 4, column 'b': '1O' is not a finite num"),
    (["1 2"], "cells were separated by ',': state another separator, such as"),
    (["1;2,5"], "column 'b': '2,5' is not a finite number; --decimal , reads"),
])  # fmt: skip
def test_a_target_that_holds_no_ranks_is_found(run, lines, message):
    header = f"a{re.search('[,; ]', lines[0])[0]}b"
    Path("t.csv").write_text("\n".join([header, *lines]))
    assert message in run("compare t.csv", code=2)


def test_an_extra_that_is_not_installed_is_named(monkeypatch, run):
    def needy(X, y, **options):
        raise ImportError("it needs lightgbm")

    replace_fit(monkeypatch, needy)
    for line in (FIT, "compare data.csv --methods npsvor"):
        assert "it needs lightgbm" in run(line, code=2)


def test_ctrl_c_is_quiet(monkeypatch, told):
    def interrupted(X, y, **options):
        raise KeyboardInterrupt

    replace_fit(monkeypatch, interrupted)
    assert told("compare data.csv --methods npsvor", code=130).err == ""


@pytest.mark.slow("starts a process")
@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE")
# at the last flush, while writing
@pytest.mark.parametrize("line", ["config", "predict m.npz x.csv"])
def test_a_closed_pipe_is_quiet(tmp_path, rows, line):
    ordinal.fit_npsvor(*rows).save("m.npz")
    Path("x.csv").write_text("1,2\n" * 20_000)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ordinal", *line.split()]
    done = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 128 + signal.SIGPIPE


def test_the_source_tree_says_so(tmp_path):
    files = importlib.metadata.files("ordinal-regression") or []
    if "ordinal/__init__.py" not in {file.as_posix() for file in files}:
        pytest.skip("an editable build, which is found first")
    package = tmp_path / "ordinal"
    (package / "_solvers").mkdir(parents=True)
    for module in Path(ordinal.__file__).parent.glob("*.py"):
        shutil.copy(module, package)
    (package / "_solvers" / "__init__.py").touch()
    (package / "_solvers" / "_pair_smo.pyx").touch()

    def run(*args):
        command = [sys.executable, *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    advice = "this is the source tree, which holds no compiled modules; run from "
    done = run("-m", "ordinal", "config")
    assert done.returncode == 2
    assert done.stderr.startswith(f"ordinal: {advice}")
    assert done.stderr.count("\n") == 1
    assert f"ImportError: {advice}" in run("-c", "import ordinal").stderr


@pytest.fixture
def people():
    """A table whose names need quotes, in an encoding of its own."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"the id": [f"00{k:02}x" for k in range(60)]})
    frame["größe"] = rng.normal(size=60).round(4)
    frame["x y"] = rng.choice(["é", "b"], 60)
    frame["stars"] = 1 + np.argsort(np.argsort(frame["größe"])) // 20
    frame.to_csv("people.csv", index=False, encoding="cp1252")
    return frame


PEOPLE = "people.csv --encoding cp1252"
FIT_POM = "fit people.csv --method pom --set l2=0.1 --folds 0 --out m.npz"


def test_explain_and_report_read_tables_of_other_encodings(people, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = run(FIT_POM, code=2)
    assert "is not text in utf-8: state the encoding of the file, such as --" in error
    error = run(f"{FIT_POM} --encoding cp1252", code=2)
    (remedy,) = re.findall(r"leave it out by (--drop .*?), or keep", error)
    run(f"{FIT_POM} --encoding cp1252 {remedy}")
    made = ordinal.load("m.npz")
    assert made.feature_names == ("größe", "x y")
    rows = people[["größe", "x y"]]
    run(f"report m.npz {PEOPLE} --out page.html --title Größe")
    page = Path("page.html").read_text("utf-8")
    assert "<h1>Größe</h1>" in page
    assert "digests of 60 of its training rows" in page
    assert made.report(rows, people["stars"], title="Größe") == page
    for to_screen in ("", "--out -"):
        assert run(f"explain m.npz {PEOPLE} {to_screen}") == f"{made.explain(rows)}\n"
    errors = made.explain(rows, people["stars"])
    run(f"explain m.npz {PEOPLE} --target stars --out explained.csv")
    found = pandas.read_csv("explained.csv")
    assert list(found["name"]) == list(errors.names)
    assert_allclose(found["importance"], errors.importance)


def test_coefficients_are_shown_by_the_command(people, run, told):
    run(f"fit {PEOPLE} --drop 'the id' --folds 0 --method svorim --out m.npz")
    assert "a SvorModel has no coefficients" in run("show m.npz --coefficients", code=2)
    run(f"{FIT_POM} --encoding cp1252 --drop 'the id'")
    out, err = told("show m.npz --coefficients")
    assert out.splitlines()[0].split() == ["name", "estimate"]
    assert "größe" in out
    assert "penalt" in err
    told("show m.npz --coefficients --out m.csv")
    estimates = [float(line.split()[-1]) for line in out.splitlines()[1:]]
    assert_allclose(pandas.read_csv("m.csv")["estimate"], estimates, rtol=1e-5)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("proba", ["", "--proba"])
def test_predictions_keep_columns_as_they_stand(people, run, suffix, proba):
    run(f"{FIT_POM} --encoding cp1252 --drop 'the id'")
    path = f"predicted.{suffix}"
    run(f"predict m.npz {PEOPLE} {proba} --keep 'the id' 'x y' --out {path}")
    read_csv = partial(pandas.read_csv, dtype={"the id": str})
    found = (read_csv if suffix == "csv" else pandas.read_parquet)(path)
    assert list(found.columns[:3]) == ["the id", "x y", "prediction"]
    assert_array_equal(found[["the id", "x y"]], people[["the id", "x y"]])
    assert_array_equal(found["prediction"], ordinal.load("m.npz").predict(people))
    people.rename(columns={"the id": "prediction"}).to_csv("t.csv", index=False)
    error = run("predict m.npz t.csv --keep prediction", code=2)
    assert "'prediction' cannot be kept" in error


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig", "shift_jis"])
@pytest.mark.parametrize("compressed", [False, True])
def test_files_of_any_encoding_are_read_as_in_utf8(tmp_path, encoding, compressed):
    """In one piece and in chunks that split characters."""
    text = "a,b\n" + "".join(f"{k}.5,{k % 3}\n" for k in range(400))
    text = text.replace("b", "¥" if encoding == "shift_jis" else "é")
    path = tmp_path / "table.csv"
    data = text.encode(encoding, "replace")
    path.write_bytes(gzip.compress(data) if compressed else data)
    name = data.decode(encoding).splitlines()[0].split(",")[1]
    source = ordinal.data.blocks(path, target=name, encoding=encoding)
    with (
        mock.patch("ordinal._files.chunks.PIECE", 111),
        mock.patch("ordinal._files.table._PART", 7),
    ):
        X, y = (np.concatenate(part) for part in zip(*source.blocks(), strict=True))
    assert_array_equal(y, np.arange(400) % 3)
    assert_array_equal(np.asarray(X).ravel(), np.arange(400) + 0.5)
    with pytest.raises(ValueError, match=r"encoding must be one .* got 'klingon'"):
        ordinal.data.blocks(path, encoding="klingon")


@pytest.fixture
def pains():
    """A table of words that often stand for missing values, and its ranks."""
    rng = np.random.default_rng(0)
    pain = rng.choice(["None", "Mild", "Severe"], 90)
    country = rng.choice(["NA", "DE", "FR"], 90)
    score = (pain == "Severe") * 2.0 - (pain == "None") * 2 + (country == "NA")
    grade = np.digitize(score + rng.normal(size=90), [-1, 1])
    words = np.array(["none", "a, b", "c"])[grade]
    table = {"pain": pain, "country": country, "size": rng.normal(size=90)}
    return pandas.DataFrame({**table, "grade": words})


def test_other_words_stand_for_missing_values_if_asked(pains, run):
    pains.assign(size=pains["size"].where(pains.index > 4, "unknown")).to_csv("t.csv")
    fit = "fit t.csv --method svorim --out m.npz --folds 0 --classes"
    classes = """'none,"a, b",c'"""
    error = run(f"{fit} {classes}", code=2)
    assert "column 'size': 'unknown' is not a finite number" in error
    # the words that are missing by default are levels then
    out = run(f"{fit} {classes} --missing Unknown")
    assert "(2 categorical, 1 with missing values)" in out
    assert "quotes around labels that have commas" in run(fit, '"a', code=2)


def test_ordered_categories_of_parquet_are_ranks(run, rows):
    X, y = rows
    words = pandas.Categorical.from_codes(y - 1, list(NAMES.values()), ordered=True)
    frame = pandas.DataFrame(X, columns=["east", "north"])
    frame.assign(grade=words).to_parquet("t.parquet")
    for streamed in ("", "--stream --set basis=20"):
        run(f"fit t.parquet --method svorim --folds 0 --out m.npz {streamed}")
        assert_array_equal(ordinal.load("m.npz").classes, list(NAMES.values()))


@pytest.mark.parametrize(
    ("form", "index"),
    [("csv", None), ("parquet", None), ("parquet", "id"), ("parquet of polars", None)],
)
def test_the_index_of_pandas_is_no_column(form, index, told):
    """Written by `to_parquet` of any filtered frame, and without a name by `to_csv`."""
    table = pandas.read_csv("data.csv")
    some = table[table["east"] > table["east"].min()].rename_axis(index)
    path = f"t.{form[:7]}"
    if form == "csv":
        some.rename_axis(None).to_csv(path)
    else:
        some.to_parquet(path)
    if form == "parquet of polars":  # without the metadata of pandas
        polars.read_parquet(path).write_parquet(path)
    fit = f"fit {path} --method svorim --out m.npz --folds 0"
    assert "59 rows, 2 features, 3 ranks of 'grade'" in told(fit).out
    assert ordinal.load("m.npz").feature_names == ("east", "north")
    for options in ("", "--score"):
        assert len(told(f"predict m.npz {path} {options}").out.splitlines()) == 60
    assert "with the ranks of 'grade'" in told(f"{fit} --stream --set basis=20").out


def test_rows_without_a_label_are_left_out_if_asked(run, told):
    table = pandas.read_csv("data.csv")
    table.loc[[3, 30], "grade"] = np.nan
    table.to_csv("t.csv", index=False)
    fit = "fit t.csv --method svorim --out m.npz --folds 0"
    error = run(fit, code=2)
    assert "line 5, column 'grade': is missing; --missing-labels drop" in error
    drop = "--missing-labels drop"
    out = run(f"{fit} {drop}")
    assert "58 rows, 2 features, 3 ranks of 'grade', without 2 unlabelled rows" in out
    kept = table.dropna()
    names = ["east", "north"]
    expected = ordinal.fit_svorim(kept[names], kept["grade"], preprocess=Standardizer)
    labels = ordinal.load("m.npz").predict(table[names])
    assert_array_equal(labels, expected.predict(table[names]))
    out, err = told(f"predict m.npz t.csv --score {drop}")
    assert "58 rows, without 2 unlabelled rows: MAE" in err
    assert len(out.splitlines()) == 61
    assert "without 2 unlabelled rows" in run(f"compare t.csv --methods pom {drop}")
    assert "leave out --stream" in run(f"{fit} {drop} --stream --set basis=20", code=2)


@pytest.mark.parametrize(("cells", "message"), [
    ([f"{k},5" for k in range(6)], "as '0,5': --decimal , reads decimal commas"),
    ([f"2024-01-{k}" for k in range(10, 16)], "leave it out by --drop age"),
    (["young", "old"] * 3, "such as 'old', and --stream reads numbers: leave it"),
])  # fmt: skip
def test_streams_name_the_remedy_for_numbers_as_text(cells, message, run):
    frame = pandas.DataFrame({"age": cells, "y": [1, 2, 3] * 2})
    frame.to_csv("t.csv", index=False)
    fit = "fit t.csv --method svorim --out m.npz --stream --set basis=2"
    said = run(fit, code=2)
    frame.assign(w=["a", "b"] * 3, age=["c", "d"] * 3, y=frame["y"]).to_csv("s.csv")
    both = run(fit.replace("t.csv", "s.csv --target y"), code=2)
    assert "'age' holds strings, such as 'c', column 'w' holds" in both
    assert "leave them out by --drop age w," in both
    assert "t.csv, column 'age' holds" in said
    assert message in said
    assert "or leave out --stream" in said


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file")
def test_endless_files_are_no_tables(run):
    run(FIT)
    for line in ("compare", "fit --method svorim --out m.npz", "predict m.npz"):
        error = run(f"{line} /dev/zero", code=2)
        assert "/dev/zero is not a table: it holds zero bytes; if it is text" in error
