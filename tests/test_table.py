import gzip
import io
import re
import sys

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Layout, read_frame, read_table, readers
from processes import printed
from strategies import raises, slow

from ordinal._files.chunks import table_pieces
from ordinal._files.readers import NULL
from ordinal._input.frame import Column, Frame, number_kind

NAN = np.nan
READERS = [None, "pyarrow"]


# a property below finds that pyarrow reads as we do
@pytest.fixture(params=[None, *slow(*READERS[1:])], ids=lambda name: name or "own")
def reader(request, monkeypatch):
    """Tables are read by our own reader, or by pyarrow however small they are."""
    use(request.param, monkeypatch)


def use(name, monkeypatch):
    monkeypatch.setattr(readers, "WORTH", 0 if name else np.inf)


@pytest.fixture
def table(tmp_path, reader):

    def read(content, name="data.csv", **layout):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(str(path), **layout)

    return read


def test_a_header_and_its_absence(table):
    t = table("age,dose,grade\n30, 1.5 ,2\n40,-2e1,1\n")
    assert t.names == ("age", "dose", "grade")
    assert t.has_header
    np.testing.assert_array_equal(t.numbers(["dose", "age"]), [[1.5, 30], [-20, 40]])
    assert t.numbers(["dose", "age"]).flags.c_contiguous
    t = table("30,1.5,2\n40,2.5,1\n")
    assert t.names == ("x1", "x2", "y")
    assert not t.has_header
    assert len(t) == 2


@pytest.mark.parametrize(("content", "has_header"), [
    ("1,2\n", False),
    ("0,1,y\n5,6,7\n", True),  # numbers for names, as data frames have them
    ("x,y,z\n5.1,3.5,low\n", True),
    ("5.1,3.5,low\n", False),
    ("nan,2\n1,2\n", False),
    ("5.1,low,3\n4.9,,\n", False),
    ("5.1,low,3\n,high,2\n", False),
    ("a,1,low\n4.9,3.0,high\n", True),
    ("RI,Na,Mg\n1,2,3\n", True),  # sodium is not a missing value
])  # fmt: skip
def test_header_detection(table, content, has_header):
    assert table(content).has_header is has_header


def test_gzip_bom_quotes_blank_lines_and_line_ends(table):
    content = '\ufeffa,"b, c"\r\n\r\n1,"2"\r\n3,4\r\n\r\n'.encode()
    for t in (table(content), table(gzip.compress(content, mtime=0), "data.csv.gz")):
        assert t.names == ("a", "b, c")
        np.testing.assert_array_equal(t.numbers(t.names), [[1, 2], [3, 4]])
        assert [t.source.place(row) for row in (0, 1)] == ["line 3", "line 4"]


@pytest.mark.parametrize(("cells", "labels"), [
    ("1,2,10", np.array([1, 2, 10])),
    ("1.0,2,1e1", np.array([1, 2, 10])),
    ("9007199254740993,1", np.array([2.0**53, 1])),
    ("low ,2", np.array(["low", "2"])),
])  # fmt: skip
def test_labels_have_the_plainest_type(table, cells, labels):
    got = table("y\n" + cells.replace(",", "\n")).labels("y")
    assert got.dtype.kind == labels.dtype.kind
    np.testing.assert_array_equal(got, labels)


@pytest.mark.parametrize(("cell", "problem"), [
    ("", "column 'b': is missing"),
    ("NA", "column 'b': 'NA' stands for a missing value"),
    ("nan", "column 'b': 'nan' stands for a missing value"),
    ("?", "column 'b': '?' stands for a missing value"),
    ("inf", "column 'b': 'inf' is not a finite number"),
    ("1_000", "column 'b': '1_000' is not a finite number"),
])  # fmt: skip
def test_a_bad_cell_is_named(table, cell, problem):
    t = table(f"a,b\n1,2\n\n3,{cell}\n4,bad\n")
    raises(ValueError, re.escape(f"data.csv, line 4, {problem}"), t.numbers, ["a", "b"])
    with pytest.raises(ValueError, match=r"other columns with such cells: 'b', 'c'$"):
        table(f"a,b,c,d\nx,{cell},,1\n").numbers(["a", "b", "c", "d"])


def test_what_stands_for_a_missing_value(table):
    t = table("a,b\n1.5,\nN/A,-3e2\n?,3\nNull,NA\n")
    expected = [[1.5, NAN], [NAN, -300], [NAN, 3], [NAN, NAN]]
    np.testing.assert_array_equal(t.numbers(["a", "b"], missing=True), expected)
    t = table("a;b\n1,5;NA\n?;2\n", decimal=",")
    expected = [[1.5, NAN], [NAN, 2]]
    np.testing.assert_array_equal(t.numbers(["a", "b"], missing=True), expected)
    with pytest.raises(ValueError, match=r"line 3, column 'y': is missing"):
        table("x,y\n1,low\n2,\n").labels("y")
    with pytest.raises(ValueError, match=r"no column 'c'; it has \['a', 'b'\]"):
        table("a,b\n1,2\n").column("c")


def two_of_one_name():
    file = io.BytesIO()
    pq.write_table(pa.table([[1.0], [2.0]], names=["a", "a"]), file)
    return file.getvalue()


@pytest.mark.parametrize(("content", "message"), [
    ("", "is empty"),
    ("a,b\n", "header but no rows"),
    ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, but line 1 has 2; cells were"),
    ("a;b\n1;2;3\n", "line 2 has .* begin line 1 with a separator .*separator=','"),
    ('a b\n"x" 2\n', "',' expected after '\"'; if cells are not .* separator=' '"),
    ("BZh91AY&SY", "is compressed, and not by gzip: decompress it"),
    ("a,b\n1,2\n1\n", "line 3 has 1 cells"),
    ("a,a\n1,2\n", r"^[^ ]* has two columns 'a' \(columns 1, 2 of 2\): give one"),
    (two_of_one_name(), r"^[^ ]* has two columns 'a' \(columns .*\): give one of them"),
    ("a,,b\n1,2,3\n", "no name for column 2"),
    (b"a,b\n\xff\xfe,2\n", "not a readable table"),
    (b"\x1f\x8b\x08\x00broken", "not a readable table"),
    (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12], "not a readable table"),
    ('a,b\n"1,2\n', "not a readable table"),
])  # fmt: skip
def test_a_bad_file_is_refused(table, content, message):
    raises(ValueError, message, table, content)


@given(
    st.lists(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3
        ),
        min_size=1,
    )
)
def test_numbers_are_read_exactly(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("table") / "data.csv"
    path.write_text("".join(",".join(map(repr, row)) + "\n" for row in rows))
    for name in READERS:
        with pytest.MonkeyPatch.context() as monkeypatch:
            use(name, monkeypatch)
            t = read_table(str(path))
            np.testing.assert_array_equal(t.numbers(t.names), rows)


CELLS = st.one_of(
    st.text("0123456789+-.,;eE_ xnaifNA٣\u00a0", max_size=6),
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["NA", "n/a", "?", "", "None", "low", "TRUE", '"a"', '"1"', '"x']),
)


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5),
    st.sampled_from([",.", ";.", ";,", "\t,"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_pyarrow_reads_what_our_own_reader_does(tmp_path_factory, rows, layout, end):
    """The same columns, or the same error."""
    path = tmp_path_factory.mktemp("table") / "data.csv"
    separator, decimal = layout
    path.write_text("".join(separator.join(row) + end for row in rows), newline="")
    found = []
    for name in READERS:
        with pytest.MonkeyPatch.context() as monkeypatch:
            use(name, monkeypatch)
            try:
                t = read_table(str(path), separator=separator, decimal=decimal)
            except ValueError as error:
                found.append(str(error))
                continue
            texts = [t.cells_of(column) for column in t.names]
            found.append((t.names, t.has_header, texts, list(map(as_list, t.columns))))
    assert found[1:] == found[:1]


def as_list(column):
    """A column that can be compared: nan is not itself."""
    return column if isinstance(column, list) else list(map(repr, column.tolist()))


@pytest.mark.parametrize(("text", "regular"), [
    ("1,2\n3,4\n", True),
    ('1,"a,b"\r\n3,4', True),
    ("1\n2\n", False),  # where a blank line and a gap are the same
    ("1,2\n", False),
    ("1,2\n\n3,4\n", False),
    ("1,2\r3,4\r", False),
    ('1,"2\n3",4\n', False),
    ('1,a"b"\n3,4\n', False),
    ('1,"a""b"\n3,4\n', False),
])  # fmt: skip
def test_pyarrow_is_given_long_and_regular_text_alone(monkeypatch, text, regular):
    use("pyarrow", monkeypatch)
    data = text.encode()
    assert readers.is_for_pyarrow(data, Layout()) == regular
    if regular:
        assert len(readers.columns_by_pyarrow(data, Layout())) == 2
        monkeypatch.setattr(readers, "WORTH", len(data) + 1)
        assert not readers.is_for_pyarrow(data, Layout())
        monkeypatch.setattr(readers, "WORTH", 0)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert not readers.is_for_pyarrow(data, Layout())


@pytest.mark.parametrize(("separator", "decimal", "text"), [
    (None, ",", "a;b\n1,5;2\n"),
    ("|", ",", 'a|b\n1,5|"2"\n'),
    (None, ".", "a;b\n1.5;2\n"),
    (None, ".", '\r\n"a"\tb\r\n1.5\t2\r\n'),
    (None, ",", "a\tb\n1,5\t2\n"),
])  # fmt: skip
def test_other_layouts(table, separator, decimal, text):
    t = table(text, separator=separator, decimal=decimal)
    np.testing.assert_array_equal(t.numbers(["a", "b"]), [[1.5, 2]])


@pytest.mark.parametrize(("text", "names"), [
    ("a;x,b\n1;2,3\n", ("a;x", "b")),  # the usual one stands in the first line
    ("a;b\tc\n1;2\t3\n", ("a;b\tc",)),  # two others do
    ('"a;b"\n1\n', ("a;b",)),  # within quotes
    ("a b\n1\n", ("a b",)),
])  # fmt: skip
def test_no_separator_is_guessed_where_it_could_be_another(table, text, names):
    assert table(text).names == names


def test_layouts_of_numbers_follow_the_file(table):
    for mark in "\t,":
        t = table(f"a{mark}b\n1{mark}2\n", "t.tsv")
        np.testing.assert_array_equal(t.numbers(["b"]), [[2]])
    # points stand between thousands, as in 1.234,5
    with pytest.raises(ValueError, match=r"line 3, column 'a': '1\.5' is not"):
        table("a;b\n1,5;2\n1.5;3\n", decimal=",").numbers(["a"])
    word = "a" * 130_000
    t = table("a,b,c\n" + f"{word},{word},1\n" * 9)
    assert t.columns[:2] == ([word] * 9, [word] * 9)
    with pytest.raises(ValueError, match="field larger than field limit"):
        table(f"a,b\n{word}{word},1\n2,3\n")


@pytest.mark.parametrize(("layout", "message"), [
    ({"separator": ""}, "must be one ASCII character"),
    ({"separator": "§"}, "must be one ASCII character"),
    ({"separator": ",", "decimal": ","}, "separator must be one ASCII character"),
    ({"decimal": ";"}, "decimal must be one of"),
])  # fmt: skip
def test_bad_layouts(table, layout, message):
    raises(ValueError, message, table, "a,b\n1,2\n", **layout)


def test_standard_input(monkeypatch, reader):
    content = gzip.compress(b"a,b\n1,2\n3,x\n", mtime=0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    t = read_table("-")
    np.testing.assert_array_equal(t.numbers(["a"]), [[1], [3]])
    with pytest.raises(ValueError, match="standard input, line 2, column 'b': '2' is"):
        raise t.error(0, "b", "is bad")


def test_columns_as_a_fit_takes_them(table):
    t = table("a,b,c,d\n1,low,1,2.0\n,high,2,\nNA,,10,3.50\n")
    frame = t.frame(["d", "b", "a", "c"], {"b", "c", "d"})
    assert frame.names == ("d", "b", "a", "c")
    assert frame.kinds == ("category", "category", "number", "category")
    assert [None if k is None else k.tolist() for k in frame.labels] == [
        ["2", "3.50"], ["high", "low"], None, ["1", "10", "2"]
    ]  # fmt: skip
    nan = np.nan
    expected = [[0, 1, 1, 0], [nan, 0, nan, 2], [1, nan, nan, 1]]
    np.testing.assert_array_equal(frame.values, expected)
    raises(ValueError, "line 2, column 'b': 'low' is not a finite", t.frame, ["b"], ())


@pytest.fixture
def parquet(tmp_path):

    def read(columns):
        frame = pandas.DataFrame(columns)
        path = tmp_path / "t.parquet"
        frame.to_parquet(path)
        return read_table(str(path))

    return read


def test_parquet_and_csv_of_one_table_are_one(parquet, tmp_path):
    """Truth values, digits that are text, categories and dates, with gaps or not."""
    frame = pandas.DataFrame({
        "truth": [True, False, True],
        "gap": pandas.array([True, None, False], dtype="boolean"),
        "code": ["01", "02", None],
        "text": ["true", "maybe", "false"],
        "count": pandas.array([1, None, 3], dtype="Int64"),
        "kind": pandas.Categorical(["low", None, "high"]),
        "day": pandas.to_datetime(["2020-01-01", "2020-01-02", None]),
        "hour": pandas.to_datetime(["2020-01-01 06:30", "2020-01-02 00:00", None]),
        "y": [1, 2, 1],
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    text, columns = read_table(str(tmp_path / "t.csv")), parquet(frame)
    message = r"t\.parquet, row 1, column 'count': is missing"
    raises(ValueError, message, columns.numbers, ["count"])
    assert columns.column("kind") == ["low", NULL, "high"]
    words = {"text", "kind", "day", "hour"}
    for chosen in (words, words | {"truth", "code", "gap"}):
        of_text, of_columns = (t.frame(text.names, chosen) for t in (text, columns))
        np.testing.assert_array_equal(of_text.values, of_columns.values)
        for name, one, other in zip(
            text.names, of_text.labels, of_columns.labels, strict=True
        ):
            assert (one is None) is (other is None) is (name not in chosen)
            if one is not None:
                assert one.tolist() == other.tolist(), name


@pytest.mark.parametrize(("cells", "numbers"), [
    (["True", "False", "True"], [1, 0, 1]),
    (["TRUE", "false", "NA"], [1, 0, np.nan]),
    (["true", "false", "1"], None),
])  # fmt: skip
def test_truth_values_are_numbers_where_all_cells_are(table, cells, numbers):
    t = table("a,b\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))
    column = t.column("a")
    if numbers is None:
        assert column == cells
    else:
        np.testing.assert_array_equal(column, numbers)
    assert t.cells_of("a") == cells


def test_reading_imports_no_pandas(tmp_path):
    """Its import takes longer than reading 100 000 rows."""
    frame = pandas.DataFrame(
        {"a": [1.5, np.nan] * 9, "b": ["u", None] * 9, "k": range(18)}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = printed(
        """
import sys
from ordinal._files import readers
from ordinal._files.table import read_table

readers.WORTH = 0
for name in ("t.csv", "t.parquet"):
    t = read_table(f"{sys.argv[1]}/{name}")
    second = t.column("b")[1]
    print(t.column("a")[:2].tolist(), t.is_missing("b", second), t.labels("k")[:2])
print("pyarrow.csv" in sys.modules, "pandas" in sys.modules)
""",
        str(tmp_path),
    )
    assert out == "[1.5, nan] True [0 1]\n" * 2 + "True False\n"


def test_parquet_needs_a_whole_file_and_pyarrow(parquet, tmp_path, monkeypatch):
    """A file without its end or with a damaged page is refused, whole and in chunks."""
    path = tmp_path / "t.parquet"
    parquet({"a": np.arange(1000.0)})
    whole = path.read_bytes()
    for read in (read_table, lambda path: list(table_pieces(path))):
        for content in (b"PAR1" + bytes(100), b"PAR1" + b"\xff" * 200 + whole[204:]):
            path.write_bytes(content)
            raises(ValueError, "not a readable table", read, str(path))
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "pyarrow", None)
            raises(ValueError, r"t\.parquet is a Parquet file.* insta", read, str(path))


WORDS = np.array(["u", "v"])


@pytest.mark.parametrize(("column", "array"), [
    (Column(np.array([1.0, NAN]), None, "whole"), np.array([1.0, NAN])),
    (Column(np.array([1.0, 2.0**53]), None, "whole"), np.array([1, 2**53])),
    (Column(np.array([1.0, 2.0**54]), None, "whole"), np.array([1.0, 2.0**54])),
    (Column(np.array([1.0, 0.0]), None, "truth"), np.array([True, False])),
    (Column(np.array([1.0, 0.5]), None, "number"), np.array([1.0, 0.5])),
    (Column(np.array([1.0, NAN, 0.0]), WORDS, "category"),
     np.array(["v", None, "u"], dtype=object)),
    (Column(np.array([1.0, 0.0]), np.array([5, 7]), "ordered"),
     np.array([7, 5], dtype=object)),
], ids=str)  # fmt: skip
def test_a_column_of_a_record_is_an_array(column, array):
    made = np.asarray(column)
    assert made.dtype == array.dtype
    assert made.tolist() == pytest.approx(array.tolist(), nan_ok=True)
    assert len(column) == len(array)
    if column.labels is None:
        assert np.asarray(column, np.float32).dtype == np.float32


def test_a_record_of_numbers_is_an_array():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    record = Frame.of_numbers(values, ("a", "b"))
    assert np.asarray(record) is values
    assert np.asarray(record, np.float32).dtype == np.float32
    copied = np.array(record, copy=True)
    assert not np.shares_memory(copied, values)
    np.testing.assert_array_equal(copied, values)
    assert copied.dtype == np.float64
    assert number_kind(np.dtype(np.float32)) == "number"
    words = Frame(
        values - 1, None, (None, np.array(list("uvwx"))), ("number", "category")
    )
    raises(TypeError, r"^column 1 holds categories, not numbers$", np.asarray, words)
    record = Frame.of_numbers(np.eye(2), ("a", "b"))
    assert read_frame(record) is record
    assert read_frame(record, ("a", "b")) is record
    turned = read_frame(record, ("b", "a"))
    assert turned.names == ("b", "a")
    np.testing.assert_array_equal(turned.values, [[0, 1], [1, 0]])


@pytest.mark.parametrize("stored", [True, False])
def test_an_order_is_that_of_a_stored_dictionary(stored, tmp_path):
    """Without one, pyarrow calls the order in which levels appear theirs."""
    codes, levels = pa.array([2, 0, 1], pa.int8()), ["low", "mid", "high"]
    column = pa.DictionaryArray.from_arrays(codes, levels, ordered=True)
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"g": column}), path, use_dictionary=stored)
    assert read_table(path).orders == ({"g": levels} if stored else {})
