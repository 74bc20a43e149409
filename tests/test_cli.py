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
from ordinal.comparison.learner import METHODS as DEFAULT
from ordinal.comparison.learner import TREES
from ordinal.datasets import make_gaussians, make_tlssvor
from ordinal.metrics import accuracy, mae
from ordinal.model_selection import Grid, select, stratified_holdout, stratified_kfold
from ordinal.preprocessing import Binning, Standardizer

NAMES = {1: "low", 2: "mid", 3: "high"}


def write(path, X, y, header="east,north,grade"):
    lines = [header] if header else []
    pairs = zip(X.tolist(), y.tolist(), strict=True)
    lines += [",".join([*map(repr, x), str(k)]) for x, k in pairs]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def rows():
    return make_gaussians(20)


@pytest.fixture
def data(tmp_path, rows):
    """A table whose target is the rank."""
    return write(tmp_path / "clusters.csv", *rows)


@pytest.fixture
def text_data(tmp_path, rows):
    """Write a CSV file whose ranks are strings."""
    X, y = rows
    return write(tmp_path / "words.csv", X, np.array([NAMES[k] for k in y]))


@pytest.fixture
def raw_data(tmp_path, rows):
    """The first feature as a numeric target."""
    X, _ = rows
    path = tmp_path / "raw.csv"
    return write(path, X[:, 1:], X[:, 0], header="north,target")


@pytest.fixture
def run(capsys):
    def run(*argv, code=0):
        """Return the output of the command; after an error, its one line."""
        assert main([str(arg) for arg in argv]) == code
        out, err = capsys.readouterr()
        if code == 0:
            assert err == ""
            return out
        assert err.startswith("ordinal: error: ")
        assert err.count("\n") == 1
        return err

    return run


def replace_fit(monkeypatch, fit):
    method, fixed = METHODS["npsvor"]
    monkeypatch.setitem(METHODS, "npsvor", (replace(method, fit=fit), fixed))


def scores(out):
    """{method: (MAE, accuracy)} of a comparison's output."""
    lines = [line.split() for line in out.splitlines()]
    return {
        cells[0]: (float(cells[1]), float(cells[4]))
        for cells in lines
        if cells and cells[0] in METHODS and cells[2:3] == ["±"]
    }


# compare


def test_compare_reports_the_errors_of_its_folds(run, data, rows):
    X, y = rows
    argv = ["compare", data, "--methods", "npsvor", "--seed", 7, "--rule", "own"]
    for more, splits, sizes in (
        ([], stratified_kfold(y, rng=7), "5 splits of 48 training + 12 test rows"),
        (["--folds", 3], stratified_kfold(y, 3, rng=7), "3 splits of 40 training + 20"),
        (["--splits", 4], stratified_holdout(y, 4, rng=7), "4 splits of 45 training"),
    ):
        out = run(*argv, *more)
        head = "clusters: 60 rows, 2 features, 3 ranks of 'grade'; mean ± standard er"
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
def test_compare_counts_what_does_not_converge(run, data):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        argv = ["compare", data, "--splits", 3, "--methods", "npsvor", "pom"]
        out = run(*argv, "--set", "npsvor.max_iter=1")
    assert not seen
    assert out.endswith("Not converged in every fold: npsvor (max_iter).\n")


@pytest.mark.slow("compares all default methods")
def test_compare_without_data_is_a_first_look(run):
    out = run("compare")
    lines = out.splitlines()
    assert len(lines) <= 15
    table = [line.split()[0] for line in lines if "±" in line][1:]
    assert set(table) == {*DEFAULT, TREES}  # GPOR_ROWS are fewer
    assert " is best by MAE" in lines[-1]
    rows = [line for line in lines if "±" in line and " + " not in line]
    assert rows == sorted(rows, key=lambda line: float(line.split()[1]))


def test_compare_counts_thresholds_out_of_order(run, tmp_path):
    X, y = make_tlssvor()
    data = write(tmp_path / "table.csv", X, y, header="a,b,c,d,e,grade")
    argv = ["compare", data, "--splits", 2, "--methods"]
    out = run(*argv, "svorex", "shashua-levin")
    assert out.endswith("Thresholds out of order: shashua-levin (2/2).\n")
    assert "order" not in run(*argv, "svorim")


# compare with a search, its reports and its picture


def test_a_search_leaves_what_is_set(run, data):
    argv = ["compare", data, "--splits", 1, "--methods", "svorim", "gpor-laplace"]
    out = run(*argv, "--tune", "--verbose", "--set", "svorim.gamma=0.5")
    assert "\nsvorim searches C 0.1, 1, 10, 100, 1000: 5 points in 5 fo" in out
    assert re.search(r"^svorim chose C=\d+(\.\d)? in 1 split$", out, re.MULTILINE)
    assert "gpor-laplace searches" not in out  # as it finds its own arguments


def test_fit_ends_with_a_cross_validated_error(run, tmp_path, data, rows):
    argv = ["fit", data, "--method", "pom", "--out", tmp_path / "m.npz"]
    X, y = rows
    for more, k in (([], 5), (["--folds", 3], 3)):
        result = compare(X, y, methods="pom", cv=stratified_kfold(y, k, rng=0))
        mean, error = result.mean()[0], result.standard_error()[0]
        want = f"in {k} folds: MAE {mean:.4f} ± {error:.4f}"
        assert want in run(*argv, *more)
    assert "folds" not in run(*argv, "--folds", 0)
    assert "--folds must be 2 or more" in run(*argv, "--folds", 1, code=2)


@pytest.mark.filterwarnings("default")
def test_a_fold_that_cannot_be_fitted_is_no_error_of_a_saved_model(tmp_path, capsys):
    table, model = tmp_path / "t.csv", str(tmp_path / "m.npz")
    table.write_text("a,grade\n1,1\n2,1\n3,1\n5,2\n")
    assert main(["fit", str(table), "--method", "svorim", "--out", model]) == 0
    assert ordinal.load(model).n_features == 1
    out, err = capsys.readouterr()
    assert "saved as" in out
    assert "but not cross-validated, because a fit without the rows of a fold" in err


def test_show_prints_a_model(run, tmp_path, data):
    run("fit", data, "--method", "pom", "--out", tmp_path / "m.npz", "--folds", 0)
    assert run("show", tmp_path / "m.npz") == f"{ordinal.load(tmp_path / 'm.npz')}\n"
    wrong = run("show", tmp_path / "m.npz", "--decimal", ",", code=2)
    assert "--decimal is for tables" in wrong


def test_show_lists_the_columns_of_a_table(capsys, tmp_path):
    path = tmp_path / "t.csv"
    days = [f"a,{i % 4},{i / 2},2024-01-{i + 1:02},{i}x" for i in range(22)]
    rows = [*days, "b,,1O,2024-02-01,22x", "?,3,2,2024-02-02,23x"]
    path.write_text("\n".join(["word,rank,size,day,id", *rows]))
    assert main(["show", str(path), "--out", str(tmp_path / "c.csv")]) == 0
    assert (tmp_path / "c.csv").read_text().splitlines() == [
        "column,taken as,missing,values",
        "word,categories,1,\"2: 'a', 'b'\"",
        'rank,whole numbers,1,"0, 1, 2, 3"',
        "size,\"numbers, and text\",0,1: '1O'",
        "day,dates as text,0,\"24: '2024-01-01', '2024-01-02', '2024-01-03', "
        "'2024-01-04', ...\"",
        "id,names or other text,0,\"24: '0x', '10x', '11x', '12x', ...\"",
    ]
    _, first, second, third = capsys.readouterr().err.split("note: ")
    assert first.startswith("24 rows and 5 columns; the ranks are those of 'id'")
    assert (second.split(": ")[1][:6], third.split(": ")[1][:6]) == ("'rank'", "'word'")
    assert main(["show", str(path), "--missing-labels", "drop"]) == 2


def test_predict_reports_errors_where_labels_are_there(capsys, tmp_path, data, rows):
    model = str(tmp_path / "m.npz")
    assert main(["fit", data, "--method", "pom", "--out", model, "--folds", "0"]) == 0
    capsys.readouterr()
    assert main(["predict", model, data, "--score", "--target", "grade"]) == 0
    out, err = capsys.readouterr()
    _, y = rows
    predicted = [int(line) for line in out.split()[1:]]
    errors = [f(y, predicted, labels=[1, 2, 3]) for f in (mae, accuracy)]
    assert err == "60 rows: MAE {:.4f}, accuracy {:.4f}\n".format(*errors)
    assert main(["predict", model, data, "--score"]) == 0  # the last column
    assert capsys.readouterr().err == err
    assert main(["predict", model, data, "--score", "--target", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
    assert main(["predict", model, data, "--target", "grade"]) == 2
    assert "--score" in capsys.readouterr().err
    first = Path(data).read_text().splitlines()[0].split(",")[0]
    assert main(["predict", model, data, "--score", "--target", first]) == 2
    assert "is a feature of the model" in capsys.readouterr().err


def test_scores_need_the_labels_of_the_fit(capsys, tmp_path, data):
    model = str(tmp_path / "m.npz")
    fit = ["fit", data, "--target", "grade", "--bins", "2", "--method", "lat"]
    assert main([*fit, "--out", model, "--folds", "0"]) == 0
    assert main(["predict", model, data, "--score", "--target", "grade"]) == 2
    err = capsys.readouterr().err
    assert "line 42, column 'grade': '3' is not a rank of the model" in err
    assert "is not a rank of the model, [1, 2]; pass the labels of the fit" in err


def test_the_command_alone_prints_its_help(run):
    out = run()
    assert out.startswith("usage: ordinal")
    assert "examples:" in out


def test_fit_tunes(run, tmp_path, data, rows):
    fit = ["fit", data, "--method", "lit", "--out", tmp_path / "m.npz"]
    out = run(*fit, "--tune", "--seed", 3)
    X, y = rows
    space = Grid(**METHODS["lit"][0].grid)
    rng = np.random.default_rng(3)
    found = select(ordinal.companions.fit_lit, X, y, search=space, rng=rng)
    assert f"chosen among {space.size} points: l2={found.params['l2']:g}" in out
    model = ordinal.load(tmp_path / "m.npz")
    assert_array_equal(model.predict(X), found.predict(X))
    assert "--seed is for --tune only: to seed the" in run(*fit, "--seed", 3, code=2)


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
def test_reports_hold_the_same_numbers(run, data):
    argv = ["compare", data, "--splits", 3, "--methods", "svorim", "npsvor", "--tune"]
    found = json.loads(run(*argv, "--format", "json"))
    assert {m["method"] for m in found["methods"]} == {"svorim", "npsvor"}
    assert (found["rows"], found["features"], found["classes"]) == (60, 2, [1, 2, 3])
    assert (found["training_rows"], found["test_rows"]) == (45, 15)
    lines = list(csv.DictReader(io.StringIO(run(*argv, "--format", "csv"))))
    markdown = run(*argv, "--format", "markdown").splitlines()
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


def test_json_says_null_for_no_score(run, data):
    argv = ["compare", data, "--splits", 2, "--methods", "svr", "--format", "json"]
    (svr,) = json.loads(run(*argv, "--set", "svr.probability=False"))["methods"]
    assert svr["rps"] == [None, None]


@pytest.mark.parametrize("form", REPORTS)
def test_a_report_goes_to_a_file(run, tmp_path, data, form):
    argv = ["compare", data, "--splits", 1, "--methods", "npsvor", "--format", form]
    assert run(*argv, "--out", tmp_path / "report") == ""
    text = (tmp_path / "report").read_text()
    assert len(text.splitlines()) == len(run(*argv).splitlines()) > 1
    assert "is a folder" in run(*argv, "--out", tmp_path, code=2)


@pytest.mark.parametrize("suffix", ["png", *slow("pdf", "svg")])
def test_compare_draws_its_errors(run, tmp_path, data, suffix):
    picture = tmp_path / f"errors.{suffix}"
    argv = ["compare", data, "--splits", 2, "--methods", "lit", "npsvor", "--plot"]
    assert "lit" in run(*argv, picture)
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    assert picture.read_bytes().startswith(start)


def test_a_picture_that_cannot_be_is_found_first(run, monkeypatch, tmp_path, data):
    def never(*_, **__):
        raise AssertionError

    replace_fit(monkeypatch, never)
    argv = ["compare", data, "--methods", "npsvor", "svorim", "--plot"]
    assert "must end with .pdf, .png, .svg" in run(*argv, tmp_path / "p.txt", code=2)
    assert "is in a folder that does" in run(*argv, tmp_path / "no" / "p.png", code=2)
    alone = ["compare", data, "--methods", "npsvor", "--plot", tmp_path / "p.png"]
    assert "two methods or more" in run(*alone, code=2)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "--plot needs matplotlib" in run(*argv, tmp_path / "p.png", code=2)


@pytest.mark.slow("tunes twice")
def test_a_terminal_is_told_how_far_the_work_is(monkeypatch, capsys, data, tmp_path):
    monkeypatch.setattr(Line, "EVERY", 0.0)
    argv = [data, "--methods", "svorim", "--splits", "2", "--seed", "1"]
    for more in ([], ["--tune"]):
        monkeypatch.setattr("sys.stderr", told := Terminal())
        assert main(["compare", *argv, *more]) == 0
        assert "svorim: fold 1 of 2" in told.getvalue()
        assert " s left" in told.getvalue()
        assert more or re.search(r"fold 1 of 2; \d+ steps", told.getvalue())
        assert told.getvalue().endswith(" \r")  # wiped for what is printed
        monkeypatch.setattr("sys.stderr", told := Terminal())
        fit = ["fit", data, "--method", "svorim", "--out", str(tmp_path / "m.npz")]
        assert main([*fit, *more]) == 0
        assert ("125/125 fits" if more else "fit_svorim") in told.getvalue()
    capsys.readouterr()


# compare with a file of splits


@pytest.fixture
def splits(tmp_path):
    """Writes arrays as a file of splits."""

    def save(**arrays):
        np.savez(tmp_path / "splits.npz", **arrays)
        return tmp_path / "splits.npz"

    return save


def stacked(y, n_splits=2):
    train, test = zip(*stratified_holdout(y, n_splits, rng=3), strict=True)
    return np.array(train), np.array(test)


@pytest.mark.slow("four comparisons")
def test_stored_splits_and_labels_are_used(run, data, raw_data, rows, splits):
    """Labels replace the quantiles of a target."""
    X, y = rows
    train, test = stacked(y)
    argv, seeded = ["--methods", "npsvor", "pom"], ["--splits", 2, "--seed", 3]
    path = splits(train_idx=train, test_idx=test)
    assert scores(run("compare", data, "--splits", path, *argv)) == scores(
        run("compare", data, *seeded, *argv)
    )
    path = splits(train_idx_3=train, test_idx_3=test, y3=y.astype(np.int8))
    stored = run("compare", raw_data, "--splits", path, "--bins", 3, *argv)
    ready = raw_data.replace("raw", "ready")
    write(Path(ready), X[:, 1:], y, header="north,rank")
    assert scores(stored) == scores(run("compare", ready, *seeded, *argv))


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"train_idx_5": [[0]], "test_idx_5": [[1]]}, [], ": check --bins against"),
        ({"train_idx": [[0]]}, [], "no train_idx and test_idx"),
        ({"train_idx": [0], "test_idx": [1]}, [], "2-D"),
        ({"train_idx": [[0.5]], "test_idx": [[1.0]]}, [], "2-D row numbers"),
        ({"train_idx": [[0]], "test_idx": [[1], [2]]}, [], "number of splits"),
        ({"train_idx": [[0]], "test_idx": [[60]]}, [], "split 0 has a row outside"),
        ({"train_idx": [[-1]], "test_idx": [[0]]}, [], "split 0 has a row outside"),
        ({"train_idx": [[0, 1]], "test_idx": [[1]]}, [], "split 0 uses a row twice"),
        ({"train_idx": [[0]], "test_idx": [[1]], "y3": [1, 2]}, ["--bins", 3],
         "2 labels for 60 rows"),
        ({"train_idx": [[0]], "test_idx": [[1]], "y3": [0] * 60}, ["--bins", 3],
         "ranks 1 to 3"),
        ({"train_idx": [[0]], "test_idx": [[1]], "y3": [1, 2]},
         ["--bins", 3, "--binning", "length"], "holds the labels y3"),
        ({"train_idx": [[0]], "test_idx": [[1]]}, ["--seed", 1], "--test-size and"),
        ({"train_idx": [[object()]], "test_idx": [[1]]}, [], "holds no splits"),
    ],
)  # fmt: skip
def test_bad_splits(run, data, splits, arrays, options, message):
    path = splits(**{key: np.array(value) for key, value in arrays.items()})
    error = run("compare", data, "--splits", path, *options, code=2)
    assert message in error


def test_splits_must_be_an_npz(run, data):
    assert "is not an .npz file" in run("compare", data, "--splits", data, code=2)


# fit and predict


def test_predict_takes_columns_without_a_header_by_position(run, tmp_path, data, rows):
    X, y = rows
    model = tmp_path / "m.npz"
    run("fit", data, "--method", "npsvor", "--out", model)
    expected = run("predict", model, data)
    bare = write(tmp_path / "b.csv", X[:, :1], X[:, 1], header=None)
    assert run("predict", model, bare) == expected
    bare = write(tmp_path / "b.csv", X, y, header=None)
    assert "no columns 'east', 'north'" in run("predict", model, bare, code=2)
    table = write(tmp_path / "t.csv", X, y, header=None)
    run("fit", table, "--method", "npsvor", "--out", model)
    bare = write(tmp_path / "b.csv", X[:, :1], X[:, 1], header=None)
    assert run("predict", model, table) == run("predict", model, bare)
    Standardizer.fit(X).save(model)
    assert "holds a Standardizer, not a" in run("predict", model, bare, code=2)


@pytest.mark.parametrize("kind", ["frequency", "length"])
def test_fit_shows_the_bins(run, tmp_path, raw_data, rows, kind):
    fit = ["fit", raw_data, "--method", "npsvor", "--out", tmp_path / "m", "--bins", 3]
    make = {"frequency": Binning.equal_frequency, "length": Binning.equal_length}[kind]
    edges = make(rows[0][:, 0], 3).edges
    said = f"ranks 1 to 3 end at {edges[0]:.6g}, {edges[1]:.6g} and"
    assert said in run(*fit, "--binning", kind)


def test_fit_warns_in_one_line(capsys, tmp_path, data):
    argv = ["fit", data, "--method", "npsvor", "--out", str(tmp_path / "m.npz")]
    assert main([*argv, "--set", "max_iter=1"]) == 0
    out, err = capsys.readouterr()
    assert "max_iter in" in out
    assert err.startswith("ordinal: warning: fit_npsvor: max_iter after")
    assert err.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="no /dev/stdout")
def test_a_model_to_standard_output_is_alone_there(tmp_path, data):
    """The report goes to the other stream."""
    fit = [sys.executable, "-m", "ordinal", "fit", data, "--method", "npsvor", "--out"]
    done = subprocess.run([*fit, "-"], cwd=tmp_path, capture_output=True)
    assert done.stderr.startswith(b"npsvor on 60 rows")
    (tmp_path / "m.npz").write_bytes(done.stdout)
    assert ordinal.load(tmp_path / "m.npz").feature_names == ("east", "north")


def test_an_output_that_cannot_be_is_found_first(run, monkeypatch, tmp_path, data):
    def never(*_):
        raise AssertionError

    model = tmp_path / "m.npz"
    run("fit", data, "--method", "npsvor", "--out", model)
    replace_fit(monkeypatch, never)
    monkeypatch.setattr(ordinal, "load", never)
    fit = ["fit", data, "--method", "npsvor", "--out", tmp_path]
    assert "is a folder, not a file" in run(*fit, code=2)
    assert "is a folder" in run("predict", model, data, "--out", tmp_path, code=2)


@pytest.mark.parametrize("argv", [
    "fit DATA --method pom --out LINK",
    "compare DATA --out LINK",
    "compare DATA --splits SPLITS --out SPLITS",
    "compare DATA --plot p.png --out ./p.png",
    "predict MODEL DATA --out DATA",
    "predict MODEL DATA --out MODEL",
    "predict MODEL - --out DATA",
    "report MODEL DATA --out MODEL",
    "explain MODEL DATA --out LINK",
])  # fmt: skip
def test_no_file_that_is_read_is_written(run, tmp_path, monkeypatch, data, argv):
    files = {"MODEL": tmp_path / "m.npz", "LINK": tmp_path / "other name.csv"}
    files |= {"DATA": data, "SPLITS": tmp_path / "s.npz"}
    for name in ("MODEL", "SPLITS"):
        files[name].write_text(name)
    os.link(data, files["LINK"])
    before = {path: Path(path).read_bytes() for path in files.values()}
    with open(data) as file:
        monkeypatch.setattr("sys.stdin", file)
        error = run(*(files.get(word, word) for word in argv.split()), code=2)
    assert "pass another name" in error
    assert {path: Path(path).read_bytes() for path in before} == before
    if argv == "predict MODEL DATA --out DATA":
        with pytest.raises(ValueError, match="is the file of the rows"):
            ordinal.data.write_predictions(files["LINK"], mock.Mock(), data)


def test_unknown_categories_are_named_once_per_column(run, tmp_path, capsys):
    table, model = tmp_path / "t.csv", tmp_path / "m.npz"
    lines = [f"{k},{'uvw'[k % 3]},{k % 2}\n" for k in range(30)]
    table.write_text("a,b,y\n" + "".join(lines))
    run("fit", table, "--method", "svorim", "--folds", 0, "--out", model)
    table.write_text(table.read_text().replace("u", "new").replace("v,1", "new,1"))
    with mock.patch("ordinal._files.chunks.PIECE", 50):
        assert main(["predict", str(model), str(table)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 31
    assert err.startswith("ordinal: warning: column 'b' holds 'new', which no tr")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("header", "cells", "note"),
    [
        ("a,b,y", lambda k: f"{k},{k % 4},{k % 2}", ""),
        ("a,constant,y", lambda k: f"{k},7,{k % 2}", ""),
        ("a,b,y", lambda k: f"{k},{k % 4},{k % 2 if k else 99}",
         "99 of 'y' is a rank of a single row: remove the row if it holds a total"),
        ("a,the copy,y", lambda k: f"{k},{'uv'[k % 2]},{k % 2}",
         "'the copy' stands for 'y' one to one: leave it out by --drop 'the copy'"),
    ],
)  # fmt: skip
def test_odd_ranks_are_noted(tmp_path, capsys, header, cells, note):
    table, model = tmp_path / "t.csv", tmp_path / "m.npz"
    table.write_text("\n".join([header, *map(cells, range(40))]))
    fit = ["fit", str(table), "--method", "svorim", "--folds", "0", "--out", str(model)]
    assert main(fit) == 0
    err = capsys.readouterr().err
    assert (f"ordinal: note: {note}" in err) if note else err == ""


def test_all_bad_columns_are_named_with_what_mends_them(run, tmp_path):
    k, table, model = np.arange(60), tmp_path / "t.csv", tmp_path / "m.npz"
    days = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(5 * k, "D")
    texts = {
        "day": days.strftime("%d.%m.%Y"),
        "us": days.strftime("%m/%d/%Y"),
        "count": [f"{1000 + i:,}" for i in k],
        "share": [f"{i} %" for i in k],
        "who": [f"name {i}" for i in k],
    }
    frame = pandas.DataFrame(texts | {"y": days.month % 3})
    frame.to_csv(table, index=False)
    fit = ["fit", table, "--method", "svorim", "--folds", 0, "--out", model]
    error = run(*fit, code=2)
    for said in (
        "column 'day' holds dates as text, such as '01.01.2024': --dates day makes",
        "column 'us' holds dates as text, such as '01/01/2024': write them as 2024-01",
        "such as '1,000': --decimal , reads decimal commas; or remove thousands",
        "column 'share' holds numbers as text, such as '0 %': remove thousands",
        "column 'who': 60 different strings",
    ):
        assert said in error
    argv = ["--drop", "who", "us", "share", "count", "--dates"]
    assert "from year, month, weekday, days" in run(*fit, *argv, "day=hour", code=2)
    run(*fit, *argv, "day=weekday,month")
    expected = run("predict", model, table)
    frame.assign(day=days.strftime("%Y-%m-%d")).to_csv(table, index=False)
    assert run("predict", model, table) == expected


def test_all_wrong_settings_and_columns_are_listed_at_once(run, tmp_path, data):
    fit = ["fit", data, "--method", "svorim", "--out", tmp_path / "m.npz"]
    refused = run(*fit, "--set", "random_state=3", "nonsense=1", "C", code=2)
    assert "has no argument 'random_state'; did you mean rng=?" in refused
    assert "has no argument 'nonsense'; --set C: expected ARG=VALUE; svorim" in refused
    refused = run(*fit, "--set", "some=3", "nonsense=1", code=2)
    assert refused.count("; svorim has C, ") == 1
    refused = run(*fit, "--drop", "up", "east", "--categorical", "down", code=2)
    assert "has no columns 'up', 'down'; it has ['east', 'north', 'grade']" in refused
    compare = ["compare", data, "--methods", "svorim", "pom"]
    refused = run(*compare, "--set", "svorim.l1=1", "pom.C=1", code=2)
    assert "svorim has no argument 'l1'" in refused
    assert "pom has no argument 'C'" in refused


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
def test_predictions_go_through_a_pipe(run, tmp_path, data):
    model, pipe, got = tmp_path / "m.npz", tmp_path / "pipe", []
    run("fit", data, "--method", "npsvor", "--out", model)
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    assert run("predict", model, data, "--out", pipe) == ""
    reader.join(10)
    assert got == [run("predict", model, data)]
    assert pipe.is_fifo()


def test_predict_gives_probabilities(run, tmp_path, text_data, rows):
    path = tmp_path / "model.npz"
    classes = ["--classes", ",".join(NAMES.values())]
    fit = ["fit", text_data, "--method", "svorim", "--out", path, *classes]
    run(*fit)
    refused = run("predict", path, text_data, "--proba", code=2)
    assert "fit it with --set probability=True" in refused
    run(*fit, "--set", "probability=true")
    header, *lines = run("predict", path, text_data, "--proba").splitlines()
    assert header == "prediction," + ",".join(f"P({name})" for name in NAMES.values())
    table = [line.split(",") for line in lines]
    model = ordinal.load(path)
    assert [row[0] for row in table] == model.predict(rows[0]).tolist()
    P = np.array([row[1:] for row in table], dtype=float)
    assert_array_equal(P, model.predict_proba(rows[0]))
    by_mode = np.array(list(NAMES.values()))[P.argmax(axis=1)]
    assert_array_equal(model.predict(rows[0], rule="mode"), by_mode)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "2", "3", "4", "5x", "6"], "line 6, column 'a': '5x' is not a finite"),
        (
            ["1", "2", "3 %", "4", "5"],
            "line 4, column 'a': '3 %' is not a finite number as others are; remove",
        ),
        (["1", "2", "inf", "4", "5", "6"], "line 4, column 'a': 'inf' is not a finite"),
        ([f"name {k}" for k in range(60)], "60 different strings in 60 rows"),
        ([f"2020-01-{k:02}" for k in range(1, 31)], "leave it out by --drop a, or"),
    ],
)
def test_a_column_of_neither_numbers_nor_categories_is_named(
    run, tmp_path, cells, message
):
    rows = [f"{cell},{k},{k % 2}\n" for k, cell in enumerate(cells)]
    path, model = tmp_path / "t.csv", tmp_path / "m.npz"
    path.write_text("".join(["a,b,y\n", *rows]))
    fit = ["fit", path, "--method", "npsvor", "--out", model]
    error = run(*fit, code=2)
    assert message in error
    assert "--categorical a" in error
    run(*fit, "--drop", "a")
    run(*fit, "--categorical", "a")


@pytest.mark.parametrize(
    ("name", "separator", "decimal", "options"),
    [
        ("t.csv", ";", ",", ["--decimal", ","]),
        ("t.csv", "|", ".", ["--separator", "|"]),
        ("t.csv", "\t", ",", ["--separator", "tab", "--decimal", ","]),
        ("t.tsv", "\t", ".", []),
    ],
)
def test_fit_and_predict_tables_of_other_layouts(
    run, tmp_path, data, name, separator, decimal, options
):
    text = Path(data).read_text().replace(",", separator).replace(".", decimal)
    (tmp_path / name).write_text(text)
    fit = ["--method", "npsvor", "--out", tmp_path / "m.npz"]
    run("fit", data, *fit)
    expected = run("predict", tmp_path / "m.npz", data)
    run("fit", tmp_path / name, *fit, *options)
    assert run("predict", tmp_path / "m.npz", tmp_path / name, *options) == expected


def test_a_table_of_standard_input(run, monkeypatch, tmp_path, data):
    content = Path(data).read_bytes()
    fit = ["--method", "npsvor", "--out", tmp_path / "m.npz"]
    run("fit", data, *fit)
    expected = run("predict", tmp_path / "m.npz", data)
    for argv in (["fit", "-", *fit], ["predict", tmp_path / "m.npz", "-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        out = run(*argv)
    assert out == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    out = run("compare", "-", "--methods", "npsvor", "--splits", 1)
    assert out.startswith("standard input: 60 rows")


def test_config(run):
    lines = dict(line.split(maxsplit=1) for line in run("config").splitlines())
    assert lines == {k: str(v) for k, v in ordinal.show_config().items()}


# Errors


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["frobnicate"], "invalid choice"),
        (["compare", "--methods", "magic"], "invalid choice: 'magic'"),
        (["compare", "--methods", "bosting"], "did you mean 'boosting'?"),
        (["compare", "--methods", "pom,svorim"], "as in --methods pom svorim"),
        (["compare", "--treads", "2"], "did you mean '--threads'? (see `ordinal comp"),
        (["compare", "DATA", "--classes", "1,", "2"], "put quotes around a value"),
        (["compare", "DATA", "--drop", "east,north"], "as in east north"),
        (["compare", "DATA", "--target", "Grades"], "did you mean 'grade'?"),
        (["fit", "--method", "C=" + "9" * 500],
         "invalid choice: 'C=" + "9" * 74 + "..."),
        (["compare", "--bins", "x"], "invalid int value"),
        (["compare", "--bins", 3], "--bins needs DATA"),
        (["compare", "--target", "y"], "--target needs DATA"),
        (["compare", "--drop", "y"], "--drop needs DATA"),
        (["compare", "--order", "y=a,b"], "--order needs DATA"),
        (["compare", "--missing-labels", "drop"], "--missing-labels needs DATA"),
        (["compare", "--decimal", ","], "--decimal needs DATA"),
        (["compare", "--separator", "tab"], "--separator needs DATA"),
        (["compare", "--splits", "s.npz"], "needs DATA"),
        (["compare", "--splits", 0], "n_splits must be a positive integer"),
        (["compare", "DATA", "--order", "east"], "expected NAME=LOW,...,HIGH"),
        (["compare", "--set", "C=1"], "expected METHOD.ARG=VALUE"),
        (["compare", "--set", "npsvor.C"], "expected ARG=VALUE"),
        (["compare", "--set", "npsvor.CC=1"], "no argument 'CC'; npsvor has C"),
        (["compare", "--methods", "all", "--set", "npsvor-admm.solver=smo"],
         "stands for --set solver=admm"),
        (["compare", "--set", "npsvor.classes=1"], "no argument 'classes'"),
        (["compare", "--set", "pom.offset=1"], "no argument 'offset'"),
        (["compare", "--methods", "npsvor", "--set", "npsvor.C=-1"], "C must be"),
        (["compare", "DATA", "--methods", "lit", "constant-mode", "lat", "--set",
          "lit.l2=-1", "lat.l2=-2"], "every method failed: lit: ValueError: l2 must"),
        (["compare", "nowhere.csv"], "nowhere.csv: No such file"),
        (["compare", "DATA", "--target", "x"], "no column 'x'"),
        (["compare", "DATA", "--binning", "length"], "--binning needs --bins"),
        (["compare", "DATA", "--bins", 1], "n_bins must be an integer >= 2"),
        (["compare", "DATA", "--splits", 3, "--test-size", 60], "test_size=60"),
        (["compare", "DATA", "--test-size", 0.5], "--test-size needs hold-out"),
        (["compare", "DATA", "--folds", 3, "--splits", 3], "exclude each other"),
        (["compare", "DATA", "--folds", 1], "2 to the number of rows"),
        (["compare", "--set", "constant-mode.rule=mean"], "has no arguments"),
        (["compare", "DATA", "--target", "east"],
         "is not a rank: cut the numbers into ranks with"),
        (["compare", "DATA", "--classes", "1,2"], "'3' is not in --classes 1,2"),
        (["compare", "DATA", "--classes", "low,mid"], "column 'grade' holds numbers"),
        (["compare", "DATA", "--classes", "1", "--bins", 2], "--classes cannot be"),
        (["compare", "WORDS"],
         "alphabetical order that is --classes high,low,mid"),
        (["compare", "WORDS", "--classes", "low,high"],
         "line 22, column 'grade': 'mid'"),
        (["compare", "WORDS", "--bins", 2], "'low' is not a finite number"),
        (["fit", "DATA", "--method", "npsvor", "--out", "no/m"], "is in a folder"),
        (["fit", "DATA", "--method", "npsvor"], "required: --out"),
        (["predict", "DATA", "DATA"], "not an ordinal model file"),
    ],
)  # fmt: skip
def test_errors_take_one_line(run, data, text_data, argv, message):
    paths = {"DATA": data, "WORDS": text_data}
    assert message in run(*[paths.get(arg, arg) for arg in argv], code=2)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([f"{k / 2},{1000 * k}" for k in range(60)], "60 distinct values; cut it"),
        (
            [f"{k},{k / 2}" for k in range(60)],
            "line 3, column 'b': '0.5' is not a rank",
        ),
        (["1,1", "2,2", "3,1O", "4,2"], "line 4, column 'b': '1O' is not a finite num"),
        (["1 2"], "cells were separated by ',': state another separator, such as"),
        (["1;2,5"], "column 'b': '2,5' is not a finite number; --decimal , reads"),
    ],
)
def test_a_target_that_holds_no_ranks_is_found(run, tmp_path, lines, message):
    header = f"a{re.search('[,; ]', lines[0])[0]}b"
    (tmp_path / "t.csv").write_text("\n".join([header, *lines]))
    assert message in run("compare", tmp_path / "t.csv", code=2)


def test_ctrl_c_is_quiet(monkeypatch, capsys, data):
    def interrupted(X, y, **options):
        raise KeyboardInterrupt

    replace_fit(monkeypatch, interrupted)
    assert main(["compare", data, "--methods", "npsvor"]) == 130
    assert capsys.readouterr().err == ""


# The command as a process


@pytest.mark.slow("starts a process")
@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE")
# at the last flush, while writing
@pytest.mark.parametrize("argv", [["config"], ["predict", "m.npz", "x.csv"]])
def test_a_closed_pipe_is_quiet(tmp_path, rows, argv):
    ordinal.fit_npsvor(*rows).save(tmp_path / "m.npz")
    (tmp_path / "x.csv").write_text("1,2\n" * 20_000)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ordinal", *argv]
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


# Reports, explanations and coefficients


@pytest.fixture
def people(tmp_path):
    """A table whose names need quotes, in an encoding of its own, and its model."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"the id": [f"00{k:02}x" for k in range(60)]})
    frame["größe"] = rng.normal(size=60).round(4)
    frame["x y"] = rng.choice(["é", "b"], 60)
    frame["stars"] = 1 + np.argsort(np.argsort(frame["größe"])) // 20
    frame.to_csv(tmp_path / "people.csv", index=False, encoding="cp1252")
    return frame, tmp_path / "people.csv", tmp_path / "model.npz"


def test_the_command_explains_and_reports_a_table_of_another_encoding(
    people, run, tmp_path, monkeypatch
):
    frame, table, model = people
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    fit = ("fit", table, "--method", "pom", "--set", "l2=0.1", "--folds", 0)
    error = run(*fit, "--out", model, code=2)
    assert "is not text in utf-8: state the encoding of the file, such as --" in error
    cp1252 = ("--encoding", "cp1252")
    error = run(*fit, "--out", model, *cp1252, code=2)
    (remedy,) = re.findall(r"leave it out by (--drop .*?), or keep", error)
    run(*fit, "--out", model, *cp1252, *shlex.split(remedy))
    made = ordinal.load(model)
    assert made.feature_names == ("größe", "x y")
    rows = frame[["größe", "x y"]]
    page = tmp_path / "page.html"
    run("report", model, table, *cp1252, "--out", page, "--title", "Größe")
    told = page.read_text("utf-8")
    assert "<h1>Größe</h1>" in told
    assert "digests of 60 of its training rows" in told
    assert made.report(rows, frame["stars"], title="Größe") == told
    for to_screen in ((), ("--out", "-")):
        told = run("explain", model, table, *cp1252, *to_screen)
        assert told == f"{made.explain(rows)}\n"
    errors = made.explain(rows, frame["stars"])
    out = tmp_path / "explained.csv"
    run("explain", model, table, *cp1252, "--target", "stars", "--out", out)
    found = pandas.read_csv(out)
    assert list(found["name"]) == list(errors.names)
    assert_allclose(found["importance"], errors.importance)
    assert main(["show", str(model), "--coefficients"]) == 0


def test_coefficients_are_shown_by_the_command(people, run, capsys):
    _, table, model = people
    known = (table, "--encoding", "cp1252", "--drop", "the id", "--folds", 0)
    run("fit", *known, "--method", "svorim", "--out", model)
    error = run("show", model, "--coefficients", code=2)
    assert "a SvorModel has no coefficients" in error
    run("fit", *known, "--method", "pom", "--out", model, "--set", "l2=0.1")
    assert main(["show", str(model), "--coefficients"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["name", "estimate"]
    assert "größe" in out
    assert "penalt" in err
    path = model.with_suffix(".csv")
    assert main(["show", str(model), "--coefficients", "--out", str(path)]) == 0
    found = pandas.read_csv(path)
    estimates = [float(line.split()[-1]) for line in out.splitlines()[1:]]
    assert_allclose(found["estimate"], estimates, rtol=1e-5)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("proba", [[], ["--proba"]])
def test_predictions_keep_columns_as_they_stand(people, run, tmp_path, suffix, proba):
    frame, table, model = people
    cp1252 = ("--encoding", "cp1252")
    fit = ("fit", table, "--method", "pom", "--set", "l2=0.1", "--folds", 0, *cp1252)
    run(*fit, "--drop", "the id", "--out", model)
    path = tmp_path / f"predicted.{suffix}"
    keep = ("--keep", "the id", "x y", "--out", path)
    run("predict", model, table, *cp1252, *proba, *keep)
    read_csv = partial(pandas.read_csv, dtype={"the id": str})
    found = (read_csv if suffix == "csv" else pandas.read_parquet)(path)
    assert list(found.columns[:3]) == ["the id", "x y", "prediction"]
    assert_array_equal(found[["the id", "x y"]], frame[["the id", "x y"]])
    want = ordinal.load(model).predict(frame)
    assert_array_equal(found["prediction"], want)
    error = run("predict", model, table, *cp1252, "--keep", "id", code=2)
    assert "no column 'id'" in error
    frame.rename(columns={"the id": "prediction"}).to_csv(table, index=False)
    error = run("predict", model, table, "--keep", "prediction", code=2)
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


# Words that are levels, and rows and columns that are none


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


def test_other_words_stand_for_missing_values_if_asked(pains, tmp_path, capsys):
    path, model = str(tmp_path / "t.csv"), str(tmp_path / "m.npz")
    pains.assign(size=pains["size"].where(pains.index > 4, "unknown")).to_csv(path)
    fit = ["fit", path, "--method", "svorim", "--out", model, "--folds", "0",
           "--classes", 'none,"a, b",c']  # fmt: skip
    assert main(fit) == 2
    assert "column 'size': 'unknown' is not a finite number" in capsys.readouterr().err
    assert main([*fit, "--missing", "Unknown"]) == 0
    # the words that are missing by default are levels then
    assert "(2 categorical, 1 with missing values)" in capsys.readouterr().out
    assert main([*fit[:2], "--classes", '"a', *fit[2:-2]]) == 2
    assert "quotes around labels that have commas" in capsys.readouterr().err


def test_ordered_categories_of_parquet_are_ranks(run, rows, tmp_path):
    X, y = rows
    words = pandas.Categorical.from_codes(y - 1, list(NAMES.values()), ordered=True)
    frame = pandas.DataFrame(X, columns=["east", "north"])
    frame.assign(grade=words).to_parquet(tmp_path / "t.parquet")
    model = tmp_path / "m.npz"
    for streamed in ([], ["--stream", "--set", "basis=20"]):
        fit = "fit", tmp_path / "t.parquet", "--method", "svorim", "--folds", 0
        run(*fit, "--out", model, *streamed)
        assert_array_equal(ordinal.load(model).classes, list(NAMES.values()))


@pytest.mark.parametrize(
    ("form", "index"),
    [("csv", None), ("parquet", None), ("parquet", "id"), ("parquet of polars", None)],
)
def test_the_index_of_pandas_is_no_column(form, index, data, tmp_path, capsys):
    """Written by `to_parquet` of any filtered frame, and without a name by `to_csv`."""
    table = pandas.read_csv(data)
    some = table[table["east"] > table["east"].min()].rename_axis(index)
    path, model = str(tmp_path / f"t.{form[:7]}"), str(tmp_path / "m.npz")
    if form == "csv":
        some.rename_axis(None).to_csv(path)
    else:
        some.to_parquet(path)
    if form == "parquet of polars":  # without the metadata of pandas
        polars.read_parquet(path).write_parquet(path)
    fit = ["fit", path, "--method", "svorim", "--out", model, "--folds", "0"]
    assert main(fit) == 0
    assert "59 rows, 2 features, 3 ranks of 'grade'" in capsys.readouterr().out
    assert ordinal.load(model).feature_names == ("east", "north")
    for options in ([], ["--score"]):
        assert main(["predict", model, path, *options]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 120
    streamed = [*fit, "--stream", "--set", "basis=20"]
    assert main(streamed) == 0
    assert "with the ranks of 'grade'" in capsys.readouterr().out


def test_rows_without_a_label_are_left_out_if_asked(data, tmp_path, capsys):
    table = pandas.read_csv(data)
    table.loc[[3, 30], "grade"] = np.nan
    path, model = str(tmp_path / "t.csv"), str(tmp_path / "m.npz")
    table.to_csv(path, index=False)
    fit = ["fit", path, "--method", "svorim", "--out", model, "--folds", "0"]
    assert main(fit) == 2
    error = capsys.readouterr().err
    assert "line 5, column 'grade': is missing; --missing-labels drop" in error
    drop = ["--missing-labels", "drop"]
    assert main([*fit, *drop]) == 0
    out = capsys.readouterr().out
    assert "58 rows, 2 features, 3 ranks of 'grade', without 2 unlabelled rows" in out
    kept = table.dropna()
    names = ["east", "north"]
    expected = ordinal.fit_svorim(kept[names], kept["grade"], preprocess=Standardizer)
    labels = ordinal.load(model).predict(table[names])
    assert_array_equal(labels, expected.predict(table[names]))
    assert main(["predict", model, path, "--score", *drop]) == 0
    told = capsys.readouterr()
    assert "58 rows, without 2 unlabelled rows: MAE" in told.err
    assert len(told.out.splitlines()) == 61
    assert main(["compare", path, "--methods", "pom", *drop]) == 0
    assert "without 2 unlabelled rows" in capsys.readouterr().out
    streamed = [*fit, *drop, "--stream", "--set", "basis=20"]
    assert main(streamed) == 2
    assert "leave out --stream" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [f"{k},5" for k in range(1, 7)],
            "such as '1,5': --decimal , reads decimal commas",
        ),
        ([f"2024-01-{k}" for k in range(10, 16)], "leave it out by --drop age"),
        (["young", "old"] * 3, "such as 'old', and --stream reads numbers: leave it"),
    ],
)
def test_streams_name_the_remedy_for_numbers_as_text(cells, message, tmp_path, capsys):
    path = str(tmp_path / "table.csv")
    y = [1, 2, 3] * 2
    pandas.DataFrame({"age": cells, "y": y}).to_csv(path, index=False)
    fit = ["fit", path, "--method", "svorim", "--out", str(tmp_path / "m.npz")]
    assert main([*fit, "--stream", "--set", "basis=2"]) == 2
    said = capsys.readouterr().err
    assert f"{path}, column 'age' holds" in said
    assert message in said
    assert "or leave out --stream" in said


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file")
def test_endless_files_are_no_tables(run, data, tmp_path):
    fit = ["--method", "svorim", "--out", tmp_path / "m.npz"]
    run("fit", data, *fit)
    for words in (["compare"], ["fit", *fit], ["predict", tmp_path / "m.npz"]):
        error = run(*words, "/dev/zero", code=2)
        assert "/dev/zero is not a table: it holds zero bytes; if it is text" in error
