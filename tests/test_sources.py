"""Rows in chunks: the same rows, ranks, weights and moments however they are stored."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from internals import CHUNK, ChunkedProblem, Moments, Problem
from sources import Cut, assert_same_problem, mapped
from strategies import raises

import ordinal
from ordinal._model.preparation import make_kernel
from ordinal._rows.source import Reader
from ordinal.preprocessing import Standardizer

from_source, from_arrays = ChunkedProblem.from_source, Problem.from_arrays


def table(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1e-200, 1.0, 1e200][:d] + [0, 1e6, 0][:d]
    return X, rng.integers(0, 4, n) * 10, rng.integers(0, 3, n) * 0.5


@given(st.lists(st.integers(1, 40), max_size=6, unique=True), st.integers(1, 45))
def test_chunks_do_not_depend_on_blocks(ends, size):
    X, y, w = table(41)
    source = Cut(sorted(ends), X, y, w)
    chunks = list(Reader(source).chunks(size, lambda y, n: y))
    assert [len(c.X) for c in chunks[:-1]] == [size] * (41 // size - (41 % size == 0))
    for k, whole in enumerate((X, y, w)):
        np.testing.assert_array_equal(np.concatenate([c[k] for c in chunks]), whole)
    assert source.open == 0


@pytest.mark.parametrize(
    "ends", [[], [1], range(100, 20_000, 1000), [CHUNK, 2 * CHUNK]]
)
@pytest.mark.parametrize("classes", [None, [30, 20, 10, 0, 40]])
@pytest.mark.parametrize("class_weight", [None, "balanced", {10: 3.0}])
def test_a_survey_is_the_problem_of_all_rows(ends, classes, class_weight):
    X, y, w = table(20_000)
    options = {"classes": classes, "class_weight": class_weight}
    whole = from_arrays(X, y, sample_weight=w, **options)
    assert_same_problem(from_source(Cut(ends, X, y, w), **options), whole)
    assert_same_problem(from_source(X, y, sample_weight=w, **options), whole)
    assert_same_problem(
        from_source(Cut(ends, X, y), **options), from_arrays(X, y, **options)
    )


def test_labels_of_any_kind_and_first_seen_in_any_order():
    X = np.arange(8.0)[:, None]
    for y in (
        np.array([7, 7, 3, 3, 5, 5, 1, 1]),
        np.array([True, True, True, True, False, False, True, False]),
        np.array([2.0, 2, 1, 1, 1, 1, 1, 2]),
        pandas.Categorical(list("aabbccba"), ["c", "a", "d", "b"], ordered=True),
    ):
        assert_same_problem(from_source(Cut([2, 4, 6], X, y)), from_arrays(X, y))
        assert_same_problem(from_source(X, y), from_arrays(X, y))
    words = np.array(list("abababab"))
    assert_same_problem(
        from_source(Cut([3], X, words), classes=["b", "a"]),
        from_arrays(X, words, classes=["b", "a"]),
    )


@given(st.permutations(range(30)), st.integers(0, 30))
def test_rows_are_taken_by_number(order, k):
    X, y, _ = table(30)
    problem = from_source(Cut([4, 5, 17], X, y))
    np.testing.assert_array_equal(problem.X.take(order[:k]), X[order[:k]])
    assert problem.X.reader.source.open == 0


def test_rows_of_maps_and_blocks_are_read(tmp_path):
    X, y, w = table(20_001)
    problem = from_source(mapped(X, tmp_path), y, sample_weight=w)
    assert_same_problem(problem, from_arrays(X, y, sample_weight=w))
    chunks = list(problem.X.chunks())
    np.testing.assert_array_equal(np.concatenate(chunks), X)
    assert [len(c) for c in chunks] == [CHUNK, CHUNK, 20_001 - 2 * CHUNK]
    frame = pandas.DataFrame({"a": [1.0, 2, 3, 4], "b": [5.0, 6, 7, 8]})
    y = np.array([0, 1, 0, 1])

    class Source:
        def blocks(self):
            yield frame[:2], y[:2]
            yield frame.loc[2:, ["b", "a"]], y[2:]

    problem = from_source(Source())
    assert problem.feature_names == ("a", "b")
    np.testing.assert_array_equal(next(problem.X.chunks()), frame)


def bad_block(change, number=69, rows=10):
    """A source of 100 blocks of which one is changed."""

    class Source:
        open = 0

        def blocks(self):
            type(self).open += 1
            try:
                for k in range(100):
                    X, y = np.ones((rows, 3)) + k % 2, np.arange(rows) % 3
                    yield change(X, y) if k == number else (X, y)
            finally:
                type(self).open -= 1

    return Source()


def with_nan(X, y):
    X[4, 1] = np.nan
    return X, y


@pytest.mark.parametrize(("change", "error", "message"), [
    (lambda X, y: (X[:, :2], y), ValueError, "X has 2 features"),
    (with_nan, ValueError, "first bad row is 4, with nan in column 1"),
    (lambda X, y: (X, np.where(y == 1, 9, y)), ValueError, "y holds 9 in row 1"),
    (lambda X, y: (X, y[:-1]), ValueError, r"y has shape \(9,\), expected \(10,\)"),
    (lambda X, y: (X, np.where(y == 1, "a", "b")), ValueError,
     "y holds 'b' in row 0"),
    (lambda X, y: (X, y, y), ValueError, "all blocks must have weights, or none"),
    (lambda X, y: (X,), ValueError, "needs blocks"),
    (lambda X, y: (X.astype(str), y), TypeError, "X must hold real numbers"),
    (lambda X, y: (scipy.sparse.csr_array(X), y), TypeError,
     "sparse in all blocks"),
])  # fmt: skip
def test_a_bad_block_is_named_and_nothing_is_left_open(change, error, message):
    source = bad_block(change)
    with pytest.raises(error, match=f"block 69, whose row 0 is row 690 .*{message}"):
        from_source(source, classes=[0, 1, 2])
    assert source.open == 0


@pytest.mark.parametrize("ends", [[], [30]])
def test_an_error_of_the_first_block_needs_no_number_of_a_block(ends):
    """Its rows have the same numbers as among all rows."""
    X, y, _ = table(61)
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"^X must be finite; .* bad row is 7, with"):
        from_source(Cut(ends, X, y))


@pytest.mark.parametrize(("given", "message"), [
    ({"y": [0, 1]}, "y must be None: the blocks of X hold it"),
    ({"sample_weight": [0, 1]}, "sample_weight must be None: the blocks of X"),
    ({"classes": [1, 1]}, "classes must be distinct"),
])  # fmt: skip
def test_blocks_hold_labels_and_weights(given, message):
    raises(ValueError, message, from_source, Cut([], *table(9)), **given)


def test_what_lacks_labels_or_blocks_is_named():
    X, y, w = table(9)
    raises(ValueError, "y must hold the labels of X, got None", from_source, X)
    with pytest.raises(ValueError, match=r"y has shape \(8,\), expected \(9,\) as X"):
        from_source(X, y[:8])
    raises(ValueError, "2-dimensional and non-empty", from_source, X[0], y[:3])
    raises(ValueError, "at least 2 classes", from_source, X, np.zeros(9))
    raises(ValueError, "zero everywhere", from_source, Cut([], X, y, 0 * w))
    for y, message in (([0.3] * 10, "0.3 in row 0"), (["a"] * 10, "holds strings")):
        source = bad_block(lambda X, _, y=y: (X, np.array(y)), number=3)
        raises((TypeError, ValueError), f"block 3, .*{message}", from_source, source)
    with pytest.raises(ValueError, match=r"^a fit needs blocks .* labels as target="):
        ordinal.fit_pom(Features(), None)


@pytest.mark.parametrize("rows", [[], [5], [5, 4]])
def test_a_source_that_changes_is_found_out(rows):
    sizes = [5, 5]

    class Source:
        def blocks(self):
            yield from ((np.ones((k, 2)), np.arange(k)) for k in sizes)

    problem = from_source(Source())
    sizes[:] = rows
    less = "yielded no blocks" if not rows else f"first pass and {sum(rows)} in a later"
    raises(ValueError, less, list, problem.X.chunks())
    sizes[:] = [5, 6]
    with pytest.raises(ValueError, match="10 rows in the first pass and more in a"):
        list(problem.X.chunks())


@pytest.mark.parametrize("held", [1, 4])
def test_rows_are_a_matrix_that_is_read(held):
    X, y, _ = table(61)
    source = Cut([3, 30], X, y)
    rows = from_source(source).X
    rows.size, rows.held = 8, held
    assert rows.shape == X.shape
    assert len(rows) == 61
    for start, stop in [(0, 8), (8, 12), (12, 16), (16, 40), (40, 61), (56, 99)]:
        np.testing.assert_array_equal(rows[start:stop], X[start:stop])
    assert (source.passes, source.open) == (2, 0)  # the first pass, and one of these
    for start, stop in [(3, 8), (16, 24), (17, 25), (40, 61)]:  # near, and far
        rows[:start]
        numbers = np.arange(start, stop)[::-2]
        before = source.passes
        np.testing.assert_array_equal(rows[numbers], X[numbers])
        assert (source.passes == before) == (stop < 26)
    for start, stop in [(5, 60), (0, 3), (60, 61)]:
        np.testing.assert_array_equal(rows[start:stop], X[start:stop])
    np.testing.assert_array_equal(rows[np.array([60, 2])], X[[60, 2]])
    rows[:3]
    assert source.open == 1
    rows.close()
    assert source.open == 0


def test_threads_read_one_pass():
    X, y, _ = table(16 * 50 + 3)
    source = Cut(range(7, 800, 7), X, y)
    rows = from_source(source).X
    rows.size, rows.held = 16, 60
    found = [None] * 51

    def of_chunk(k):
        found[k] = rows[16 * k : 16 * k + 9], rows[16 * k + 9 : 16 * k + 16]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(of_chunk, range(51)))
    parts = [part for pair in found[:-1] for part in pair] + [found[-1][0]]
    np.testing.assert_array_equal(np.concatenate(parts), X)
    assert (source.passes, source.open) == (2, 0)


def test_a_source_that_grows_or_shrinks_while_rows_are_asked_for():
    sizes = [5, 5]

    class Source:
        def blocks(self):
            yield from ((np.ones((k, 2)), np.arange(k)) for k in sizes)

    rows = from_source(Source()).X
    rows.size = 4
    for last, message in ((4, "and 9 in a later one"), (6, "and more in a later one")):
        sizes[1] = last
        assert len(rows[:8]) == 8
        with pytest.raises(ValueError, match=message):
            rows[8:10]
        sizes[1] = 5
        assert len(rows[8:10]) == 2
        rows.close()  # else these are held


def test_gamma_follows_from_the_moments():
    X, y, w = table(3000)
    X[:, [0, 2]] = np.random.default_rng(1).normal(size=(3000, 2)) * [1.0, 30.0]
    whole = make_kernel("rbf", "scale", from_arrays(X, y, sample_weight=w))
    rows = from_source(Cut([100, 1999], X, y, w))
    assert make_kernel("rbf", "scale", rows).gamma == pytest.approx(whole.gamma, 1e-12)
    constant = from_source(np.full((9, 2), 0.1), np.arange(9) % 2)
    assert make_kernel("rbf", "scale", constant).gamma == 1.0
    sparse = scipy.sparse.csr_array(X)
    with pytest.raises(ValueError, match="gamma must be a number where X is sparse"):
        make_kernel("rbf", "scale", from_source(Cut([9], sparse, y)))


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_what_was_written_to_a_map_is_read(mode, tmp_path):
    X, y, _ = table(3 * CHUNK)
    X.tofile(tmp_path / "X")
    stored = np.memmap(tmp_path / "X", X.dtype, mode, shape=X.shape)
    if mode != "r":
        stored[::1000] = X[::1000] = 5.0
    rows = from_source(stored, y).X
    for _ in range(2):
        np.testing.assert_array_equal(
            rows[CHUNK - 7 : 2 * CHUNK], X[CHUNK - 7 : 2 * CHUNK]
        )
        np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), X)
    np.testing.assert_array_equal(from_source(stored[::2], y[::2]).X[: len(X)], X[::2])


def test_moments_of_rows():
    X = np.array([[1.0], [2.0], [4.5], [40.0], [70.0], [60.0]])
    w = np.arange(1.0, 7.0)
    parts = [Moments.from_rows(X[rows], w[rows]) for rows in (slice(3), slice(3, 6))]
    whole = Standardizer.fit(X, w)
    for first, second in (parts, parts[::-1]):
        mean, scale = first.joined(second).mean_and_scale()
        np.testing.assert_allclose(mean, whole.mean, rtol=1e-14)
        np.testing.assert_allclose(scale, whole.scale, rtol=1e-14)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1e-3, 1.0, 1e5] + [1.0, -2.0, 0.0]
    w = rng.uniform(1, 2, 50)
    mean, scale = np.array([1.0, -1.0, 2.0]), np.array([1e-3, 2.0, 7.0])
    made = Moments.from_rows(X, w).standardized(mean, scale)
    direct = Moments.from_rows((X - mean) / scale, w)
    for a, b in zip(made.mean_and_variance(), direct.mean_and_variance(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    np.testing.assert_allclose(made.low, direct.low)
    np.testing.assert_allclose(made.high, direct.high)
    np.testing.assert_array_equal(made.exponent, direct.exponent)
    assert made.weight == direct.weight
    X, y = np.array([[1.0], [2.0], [9.0], [4.0]]), np.array([0, 1, 0, 1])
    source = Cut([2], X, y, np.array([0.0, 0.0, 1.0, 1.0]))
    assert Moments.from_rows(X[:2], np.zeros(2)) is None
    moments = from_source(source).moments
    assert moments.low == 4.0
    assert moments.mean_and_scale() == (6.5, 2.5)
    later = Cut([2], X, y, np.array([1.0, 1.0, 0.0, 0.0]))
    assert from_source(later).moments.mean_and_scale() == (1.5, 0.5)


def test_what_is_iterated_is_closed_though_others_hold_it():
    class Cursor:
        def __init__(self):
            self.rows = iter(
                [(np.ones((3, 1)), [0, 1, 1]), (np.ones((3, 2)), [0, 1, 1])]
            )
            self.closed = False

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.rows)

        def close(self):
            self.closed = True

    class Source:
        def blocks(self):
            self.cursor = Cursor()
            return self.cursor

    source = Source()
    raises(ValueError, "block 1, whose row 0 is row 3", from_source, source)
    assert source.cursor.closed


@pytest.mark.parametrize("fit", [ordinal.fit_pom, ordinal.fit_svorim])
def test_a_fit_without_labels_says_where_they_belong(fit):
    X, y, _ = table(20)
    raises(TypeError, rf"^{fit.__name__}\(\) lacks .* y: pass", fit, X)
    raises(TypeError, r"pass y=None .* \(X, y\) .*data\.blocks\(", fit, Cut([], X, y))
    raises(TypeError, r"lacks .*formula, pass its data frame as y", fit, "y ~ x")


class Features:
    def blocks(self):
        yield np.ones((4, 2))


@pytest.mark.parametrize("labels", [(), ([0, 1],), (None,)])
def test_an_iterator_over_chunks_leads_to_a_source(labels, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    with (
        pandas.read_csv(path, chunksize=1) as parts,
        pytest.raises(TypeError, match=r"iterator \(TextF.*data\.blocks\("),
    ):
        ordinal.fit_pom(parts, *labels)


@pytest.mark.parametrize("given", [None, 5, print])
def test_blocks_that_are_not_iterable_are_refused(given):
    class Source:
        shape = (9, 2)

        def blocks(self):
            return given

    expected = r"^X\.blocks\(\) must yield blocks .* got (None|5|.*print.*): make it a"
    raises(TypeError, expected, ordinal.fit_pom, Source(), None)
    model = ordinal.fit_svorim(np.eye(3), [0, 1, 0])
    raises(TypeError, expected, list, ordinal.data.predictions(model, Source()))
