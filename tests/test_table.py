import gzip
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordinal._input.table import read_table


@pytest.fixture
def table(tmp_path):
    """Writes a file and reads it."""

    def read(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(str(path))

    return read


def test_header_and_numbers(table):
    t = table("age,dose,grade\n30, 1.5 ,2\n40,-2e1,1\n")
    assert t.names == ("age", "dose", "grade")
    assert t.has_header
    np.testing.assert_array_equal(t.numbers(["dose", "age"]), [[1.5, 30], [-20, 40]])
    assert t.numbers(["dose", "age"]).flags.c_contiguous


def test_without_a_header_names_go_by_position(table):
    t = table("30,1.5,2\n40,2.5,1\n")
    assert t.names == ("x1", "x2", "y")
    assert not t.has_header
    assert len(t.rows) == 2


@pytest.mark.parametrize(
    ("content", "has_header"),
    [
        ("1,2\n", False),
        ("a,b\n1,2\n", True),
        ("a,b\nc,d\n", True),
        ("0,1,y\n5,6,7\n", True),  # numbers for names, as data frames have them
        ("5.1,3.5,low\n4.9,3.0,high\n", False),
        ("x,y,z\n5.1,3.5,low\n", True),
        ("5.1,3.5,low\n", False),
        ("nan,2\n1,2\n", False),
        (",2\n1,2\n", False),
        ("RI,Na,Mg\n1,2,3\n", True),  # sodium is not a missing value
    ],
)
def test_header_detection(table, content, has_header):
    assert table(content).has_header is has_header


def test_gzip_bom_quotes_blank_lines_and_line_ends(table):
    content = '\ufeffa,"b, c"\r\n\r\n1,"2"\r\n3,4\r\n\r\n'.encode()
    for t in (table(content), table(gzip.compress(content, mtime=0), "data.csv.gz")):
        assert t.names == ("a", "b, c")
        np.testing.assert_array_equal(t.numbers(t.names), [[1, 2], [3, 4]])
        assert t.lines == [3, 4]


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ("1,2,10", np.array([1, 2, 10])),
        ("1.0,2,1e1", np.array([1, 2, 10])),
        ("1,2.5", np.array([1, 2.5])),
        ("9007199254740993,1", np.array([2.0**53, 1])),
        ("low ,2", np.array(["low", "2"])),
    ],
)
def test_labels_have_the_plainest_type(table, cells, labels):
    got = table("y\n" + cells.replace(",", "\n")).labels("y")
    assert got.dtype.kind == labels.dtype.kind
    np.testing.assert_array_equal(got, labels)


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("", "column 'b': is missing"),
        ("NA", "column 'b': 'NA' stands for a missing value"),
        ("nan", "column 'b': 'nan' stands for a missing value"),
        ("?", "column 'b': '?' stands for a missing value"),
        ("3x", "column 'b': '3x' is not a finite number"),
        ("inf", "column 'b': 'inf' is not a finite number"),
        ("1e999", "column 'b': '1e999' is not a finite number"),
        ("1_000", "column 'b': '1_000' is not a finite number"),
    ],
)
def test_a_bad_cell_is_named(table, cell, problem):
    t = table(f"a,b\n1,2\n\n3,{cell}\n4,bad\n")
    with pytest.raises(ValueError, match=re.escape(f"data.csv, line 4, {problem}")):
        t.numbers(["a", "b"])


def test_missing_labels_are_named(table):
    with pytest.raises(ValueError, match=r"line 3, column 'y': is missing"):
        table("x,y\n1,low\n2,\n").labels("y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "header but no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells, but line 1 has 2"),
        ("a,b\n1,2\n1\n", "line 3: 1 cells"),
        ("a,a\n1,2\n", "names 'a' twice"),
        (",b\n1,2\n", "no name for column 1"),
        (b"a,b\n\xff\xfe,2\n", "not a readable table"),
        (b"\x1f\x8b\x08\x00broken", "not a readable table"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12], "not a readable table"),
        ('a,b\n"1,2\n', "not a readable table"),
    ],
)
def test_a_bad_file_is_refused(table, content, message):
    with pytest.raises(ValueError, match=message):
        table(content)


def test_unknown_column(table):
    with pytest.raises(ValueError, match=r"no column 'c'; it has \['a', 'b'\]"):
        table("a,b\n1,2\n").column("c")


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
    t = read_table(str(path))
    np.testing.assert_array_equal(t.numbers(t.names), rows)
