"""Files in pieces give the rows of the whole file, and predictions of blocks too."""

import gzip
import pathlib
import sys

import numpy as np
import pandas
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import ChunkedProblem, read_table
from sources import Cut, mapped
from strategies import raises

import ordinal
from ordinal import data
from ordinal._files import chunks as pieces
from ordinal._files.chunks import end_of_rows, table_pieces
from ordinal.preprocessing import PreprocessedModel

ROWS = "size,age,stars,kind\n" + "".join(
    f"{k / 8},{-k},{k % 3},{'ab'[k % 2]}\n" for k in range(200)
)


@pytest.fixture(params=[64, 1000, 1 << 23], ids="piece={}".format)
def piece(request, monkeypatch):
    """Files are read in pieces of so many bytes, and Parquet of as many rows."""
    monkeypatch.setattr(pieces, "PIECE", request.param)
    monkeypatch.setattr(pieces, "ROWS", request.param)
    return request.param


@pytest.fixture(params=["csv", "csv.gz", "bom.csv", "parquet", "crlf.csv"])
def path(request, tmp_path, piece):
    path = tmp_path / f"t.{request.param}"
    text = ROWS.encode()
    if request.param == "parquet":
        table = pyarrow.csv.read_csv(pyarrow.BufferReader(text))
        pyarrow.parquet.write_table(table, path, row_group_size=37)
    elif request.param == "csv.gz":
        path.write_bytes(gzip.compress(text))
    elif request.param == "bom.csv":
        path.write_bytes(b"\xef\xbb\xbf" + text)
    elif request.param == "crlf.csv":
        path.write_bytes(text.replace(b"\n", b"\r\n"))
    else:
        path.write_bytes(text)
    return str(path)


def joined(source):
    """Return the features and the labels of all blocks of a source."""
    X, y = zip(*source.blocks(), strict=True)
    return np.concatenate([np.asarray(part) for part in X]), np.concatenate(y)


def test_pieces_are_the_whole_table(path, piece):
    whole, parts = read_table(path), list(table_pieces(path))
    assert (len(parts) > 1) == (piece < (200 if "parquet" in path else 3000))
    assert all(t.names == whole.names and t.has_header for t in parts)
    for name in ("size", "age", "stars"):
        joined = np.concatenate([t.numbers([name]) for t in parts])
        np.testing.assert_array_equal(joined, whole.numbers([name]))
    assert [w for t in parts for w in t.cells_of("kind")] == whole.cells_of("kind")
    places = [t.source.place(row) for t in parts for row in range(len(t))]
    assert places == [whole.source.place(row) for row in range(len(whole))]


def test_blocks_of_a_file(path):
    frame = (pandas.read_parquet if path.endswith("parquet") else pandas.read_csv)(path)
    source = data.blocks(path, target="stars", drop=["kind"])
    for _ in range(2):  # each call begins anew
        X, y = joined(source)
        np.testing.assert_array_equal(X, frame[["size", "age"]])
        np.testing.assert_array_equal(y, frame["stars"])
    problem = ChunkedProblem.from_source(source)
    assert problem.feature_names == ("size", "age")
    assert problem.X.shape == (200, 2)
    weighted = data.blocks(path, target="kind", weight="stars", features=["age"])
    problem = ChunkedProblem.from_source(weighted, classes=["b", "a"])
    np.testing.assert_array_equal(problem.weight, frame["stars"])
    np.testing.assert_array_equal(problem.rank, frame["kind"] == "a")
    (X,) = next(data.blocks(path, features=["age", "size"]).blocks())
    assert X.names == ("age", "size")


@pytest.mark.parametrize("piece", [1, 7, 30], indirect=True)
def test_quoted_line_ends_do_not_part_rows(tmp_path, piece):
    path = tmp_path / "t.csv"
    rows = [f'{k},"a ""b""\nc,{k}"' for k in range(9)]
    path.write_text("x,y\n" + "\n".join(rows) + "\n\n")
    words = [w for t in table_pieces(str(path)) for w in t.cells_of("y")]
    assert words == [f'a "b"\nc,{k}' for k in range(9)]


@given(st.text('a"\n', max_size=20))
def test_rows_end_where_quotes_are_even(text):
    ends = [k + 1 for k, c in enumerate(text) if c == "\n"]
    ends = [end for end in ends if not text.count('"', 0, end) % 2]
    assert end_of_rows(text.encode()) == max(ends, default=0)


@pytest.mark.parametrize("piece", [30, 1 << 23], indirect=True)
@pytest.mark.parametrize(("line", "message"), [
    ("1,2", "line 152 has 2 cells, but .* ha.* 3"),
    ("1,x,2", "line 152, column 'b': 'x' is not a finite number"),
    ("1,,2", "line 152, column 'b': is missing"),
    ("1,2,z", "line 152, column 'y': 'z' is not a finite number|holds strings"),
])  # fmt: skip
def test_errors_have_the_line_of_the_file(tmp_path, line, message, piece):
    path = tmp_path / "t.csv"
    lines = ["a,b,y"] + ["1,2,0", "3,4,1"] * 100
    lines[151] = line
    path.write_text("\n".join(lines))
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        ChunkedProblem.from_source(data.blocks(path, target="y"))
    if "strings" not in str(caught.value):
        assert f"{path}, line 152" in str(caught.value)


def test_parquet_errors_have_the_row(tmp_path, piece):
    path = tmp_path / "t.parquet"
    frame = pandas.DataFrame({"a": np.arange(2000.0), "y": np.arange(2000) % 2})
    frame.loc[1500, "a"] = np.nan
    frame.to_parquet(path)
    with pytest.raises(ValueError, match="row 1500, column 'a': is missing"):
        ChunkedProblem.from_source(data.blocks(path, target="y"))
    with pytest.raises(ValueError, match=r"no column 'z'; it has .*'a', 'y'"):
        next(data.blocks(path, target="z").blocks())
    with pytest.raises(ValueError, match="no column 'b'"):
        next(data.blocks(path, features=["b"]).blocks())
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises((ValueError, OSError)):
        next(data.blocks(path, target="y").blocks())


@pytest.mark.parametrize("content", [b"", b"\n\n", b"y,b\n", b"y\n1\n2\n"])
def test_a_file_without_rows_or_features(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    said = "has no columns other than 'y'" if b"1" in content else "is empty|no rows"
    raises(ValueError, said, list, data.blocks(path, target="y").blocks())


def test_files_are_closed_with_the_generator(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    monkeypatch.setattr(pieces, "PIECE", 64)
    opened = []

    def watched(*args):
        opened.append(open(*args))
        return opened[-1]

    monkeypatch.setattr(pieces, "open", watched, raising=False)
    blocks = data.blocks(path, drop=["kind"]).blocks()
    next(blocks)
    assert not opened[0].closed
    blocks.close()
    assert opened[0].closed


@pytest.mark.parametrize("piece", [40, 1 << 23], indirect=True)
def test_blocks_of_another_layout(tmp_path, piece):
    """And without an end of the last line."""
    path = tmp_path / "t.csv"
    path.write_text("a;y\n" + "\n".join(f"{k},5;{k % 3}" for k in range(50)))
    source = data.blocks(path, target="y", separator=";", decimal=",")
    assert (len(list(source.blocks())) > 1) == (piece < 100)
    X, y = joined(source)
    np.testing.assert_array_equal(X[:, 0], np.arange(50) + 0.5)
    np.testing.assert_array_equal(y, np.arange(50) % 3)


@pytest.mark.parametrize("piece", [30, 1 << 23], indirect=True)
def test_labels_are_words_in_every_piece_if_they_are_in_the_first(tmp_path, piece):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,low\n2,high\n" * 5 + "3,7\n" * 20)
    labels = [y for _, y in data.blocks(path, target="y").blocks()]
    assert (len(labels) > 1) == (piece < 100)
    found = [label for y in labels for label in np.asarray(y).tolist()]
    assert found == ["low", "high"] * 5 + ["7"] * 20


def test_an_archive_that_ends_early_is_named(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(ROWS.encode())[:-60])
    with pytest.raises(ValueError, match=r"t\.csv\.gz is not a readable table"):
        list(data.blocks(path, drop=["kind"]).blocks())


def test_parquet_that_is_packed_or_empty(tmp_path):
    path, packed = tmp_path / "t.parquet", str(tmp_path / "t.gz")
    frame = pandas.DataFrame({"a": np.arange(9.0)})
    frame.to_parquet(path)
    pathlib.Path(packed).write_bytes(gzip.compress(path.read_bytes()))
    (table,) = table_pieces(packed)
    np.testing.assert_array_equal(table.numbers(["a"])[:, 0], frame["a"])
    frame[:0].to_parquet(path)
    for read in (read_table, lambda name: list(table_pieces(name))):
        raises(ValueError, r"t\.parquet is empty", read, str(path))


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"path": 7}, TypeError, "path must be a path, got 7"),
    ({"path": ["a"]}, TypeError, r"path must be one file, got \['a'\]: join the files"),
    ({"path": "-"}, ValueError, "standard input can be read only once"),
    ({"target": 3}, ValueError, "target must be a column, got 3"),
    ({"drop": "a"}, ValueError, "drop must be columns by name, got 'a'"),
    ({"features": [1]}, ValueError, "features must be columns by name"),
    ({"drop": None}, ValueError, "drop must be columns by name, got None"),
    ({"separator": "::"}, ValueError, "separator must be one ASCII character"),
    ({"decimal": ";"}, ValueError, "decimal must be one of"),
])  # fmt: skip
def test_arguments_of_blocks(given, error, message):
    raises(error, message, data.blocks, **{"path": "t.csv"} | given)


@pytest.fixture(scope="module")
def model():
    X, y = ordinal.datasets.make_gaussians(40)
    return ordinal.fit_svorim(X, y, C=10.0, probability=True)


def test_predictions_of_blocks_are_those_of_all_rows(model, tmp_path):
    X, _ = ordinal.datasets.make_gaussians(3500, rng=1)
    stored = mapped(X, tmp_path)
    source = Cut([1, 700], X, np.zeros(len(X)))
    for rows in (X, stored, source, pandas.DataFrame(X), X.tolist()):
        labels = np.concatenate(list(data.predictions(model, rows)))
        np.testing.assert_array_equal(labels, model.predict(X))
        P = np.concatenate(list(data.predictions(model, rows, proba=True)))
        np.testing.assert_allclose(P, model.predict_proba(X), rtol=1e-12)
    assert [len(part) for part in data.predictions(model, stored)] == [8192, 2308]


def test_a_bad_block_is_named_and_closed(model):
    X, _ = ordinal.datasets.make_gaussians(10)
    X[25, 1] = np.inf
    source = Cut([10, 20], X)
    blocks = data.predictions(model, source)
    next(blocks)
    assert source.open == 1
    raises(ValueError, r"block 2, whose row 0 is row 20 .* row is 5", list, blocks)
    assert source.open == 0


@pytest.mark.parametrize("proba", [False, True])
def test_predictions_are_written(model, tmp_path, proba):
    X, _ = ordinal.datasets.make_gaussians(10)
    names = [f"P({k})" for k in (1, 2, 3)] if proba else []
    for name, read in (("csv", pandas.read_csv), ("parquet", pandas.read_parquet)):
        path = tmp_path / f"p.{name}"
        data.write_predictions(path, model, Cut([4, 25], X), proba=proba)
        frame = read(path)
        assert list(frame) == ["prediction", *names]
        np.testing.assert_array_equal(frame["prediction"], model.predict(X))
        if proba:
            np.testing.assert_allclose(frame[names], model.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("fitted_on", ["names", "places"])
def test_columns_are_kept_beside_predictions(tmp_path, fitted_on):
    X, y = ordinal.datasets.make_gaussians(10)
    table = pandas.DataFrame(X, columns=["a", "b"])
    model = ordinal.fit_pom(table if fitted_on == "names" else X, y)
    table.insert(1, "id", [f"r{k}" for k in range(len(X))])
    table.loc[3, "id"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    sources = [str(tmp_path / "t.csv")] + [table] * (fitted_on == "names")
    for k, source in enumerate(sources):
        for name in (f"{k}.csv", f"{k}.parquet"):
            data.write_predictions(tmp_path / name, model, source, keep=["id"])
        read = pandas.read_csv(tmp_path / f"{k}.csv")
        assert list(read) == ["id", "prediction"]
        assert read["id"].fillna("").tolist() == table["id"].fillna("").tolist()
        np.testing.assert_array_equal(read["prediction"], model.predict(X))
        kept = pandas.read_parquet(tmp_path / f"{k}.parquet")["id"].fillna("")
        assert kept.tolist() == table["id"].fillna("").tolist()
        with pytest.raises(ValueError, match=r"no column 'ID'|got 'ID'; .* 'id'\?$"):
            data.write_predictions(tmp_path / "p.csv", model, source, keep=["ID"])
    for source, keep, said in (
        (X, ["id"], "of a file or"), (table, "id", "be columns by"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^keep .* {said}"):
            data.write_predictions(tmp_path / "p.csv", model, source, keep=keep)


def test_nothing_is_written_after_an_error(model, tmp_path, monkeypatch):
    X, _ = ordinal.datasets.make_gaussians(10)
    X[25] = np.nan
    for name in ("p.csv.gz", "p.XLSX"):
        with pytest.raises(ValueError, match=r"name that ends in \.csv or"):
            data.write_predictions(tmp_path / name, model, X)
    for name in ("p.csv", "p.parquet"):
        (tmp_path / name).write_text("as it was")
        with pytest.raises(ValueError, match="block 1"):
            data.write_predictions(tmp_path / name, model, Cut([20], X))
        assert (tmp_path / name).read_text() == "as it was"
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(TypeError, match="model must have a method predict, got 7"):
        data.write_predictions(tmp_path / "p.csv", 7, X)
    with pytest.raises(ValueError, match="proba must be True or False"):
        data.predictions(model, X, proba=1)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"p\.parquet needs pyarrow: pip install"):
        data.write_predictions(tmp_path / "p.parquet", model, [[1.0, 2.0]])


@pytest.mark.filterwarnings("ignore::ordinal.exceptions.UnknownLevelsWarning")
def test_words_of_a_file_go_through_its_preprocessor(tmp_path, piece):
    path = tmp_path / "t.csv"
    path.write_text(ROWS + "3,,1,c\n")  # a gap, and a word that no fit has seen
    frame = pandas.read_csv(path)
    X, y = frame[["size", "kind"]], frame["stars"]
    model = PreprocessedModel.fit(ordinal.fit_svorim, X[:200], y[:200], C=10.0)
    labels = np.concatenate(list(data.predictions(model, path)))
    np.testing.assert_array_equal(labels, model.predict(X))
