"""Sources of blocks of rows, and their validation.

A source is an object whose method `blocks()` starts anew at each call and yields some
rows at a time, as (X, y) or (X, y, weight), or as X alone where no labels are needed.
An array, such as a `numpy.memmap`, is a source as well; its labels and weights are
whole vectors.

Blocks may have any sizes: they are cut into chunks of `CHUNK` rows, so that results
do not depend on how the rows were stored.

A checksum belongs to `SPAN` consecutive rows and does not depend on how a source cuts
them into blocks. It is the CRC-32 of a sample of these rows: of the first 64 and of
every 127th of the others. One of all entries would take longer than reading them from
memory. Every change of 127 neighbouring rows or more is noticed.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from .._input.checks import shown
from .._input.columns import check_shape, feature_names
from .._input.features import read_features
from .._input.frame import Frame
from .._input.labels import row_weights
from .._input.sparse import CSR, is_sparse
from .._input.types import Matrix
from .._numerics.rows import take

SPAN = 8192  # rows of a checksum
_HEAD, _STEP = 64, 127


class Checksums:
    """Checksums of the spans of rows that are read in their order.

    Parameters
    ----------
    first : Checksums, optional
        Checksums of the first pass, with which these are compared.
    start : int
        Number of the first row, which begins a span.

    Attributes
    ----------
    stop : int
        Number of the row to be read next.
    sums : list of int
        In a first pass, one checksum per span that has ended.
    missing : (d,) array of bool, or None
        In a first pass, the columns with missing values; None if there are none.
    unlike : range, or None
        Rows of the first span that differ from the first pass.
    """

    def __init__(self, first: Checksums | None = None, start: int = 0):
        self.stop = start
        self.sums: list[int] = []
        self.missing: np.ndarray | None = None
        self.unlike: range | None = None
        self._first, self._begin, self._sum = first, start, 0

    def add(self, X: Matrix) -> None:
        """Continue with the next rows."""
        done, n = 0, X.shape[0]
        while done < n:
            # Spans are counted from the first row of all, however the source cuts its
            # blocks.
            size = min(self._begin + SPAN - self.stop, n - done)
            place, end = self.stop - self._begin, done + size
            # The first rows of the span, and then the next row that is sampled.
            head = min(done + max(_HEAD - place, 0), end)
            after = done + max(_HEAD - place, (_HEAD - place) % _STEP)
            for rows in (slice(done, head), slice(after, end, _STEP)):
                if rows.start < rows.stop:
                    self._sum = _continued(self._sum, X, rows, place - done)
            done, self.stop = end, self.stop + size
            if self.stop - self._begin == SPAN:
                self.end_span()

    def add_missing(self, X: np.ndarray) -> int | None:
        """Record the columns with missing values.

        In a later pass, return a column that had none in the first pass, if any.
        """
        if not np.isnan(X.min()):  # one comparison per entry, which is cheap
            return None
        found = np.isnan(X).any(axis=0)
        if self._first is None:
            self.missing = found if self.missing is None else self.missing | found
            return None
        known = self._first.missing
        # The fit knows from the first pass which columns may have missing values.
        new = found if known is None else found & ~known
        return int(new.argmax()) if new.any() else None

    def end_span(self) -> None:
        """End a span where one was begun, and compare its checksum."""
        if self.stop == self._begin:
            return
        first = self._first
        if first is None:
            self.sums.append(self._sum)
        # An incomplete span is not compared: the number of rows has then changed, which
        # `LocalRows.chunks` reports.
        elif (
            self.stop == min(self._begin + SPAN, first.stop)
            and self._sum != first.sums[self._begin // SPAN]
            and self.unlike is None
        ):
            self.unlike = range(self._begin, self.stop)
        self._begin, self._sum = self.stop, 0


def _continued(total: int, X: Matrix, rows: slice, place: int) -> int:
    """Return the CRC-32 of some rows of X, continued from `total`.

    `place` is the position of row 0 of X in the span.
    """
    if isinstance(X, np.ndarray):
        # zlib's CRC-32 takes any buffer, without the interpreter's lock.
        return crc32(np.ascontiguousarray(X[rows]).data, total)
    some = X.rows(rows)
    row = np.repeat(place + np.arange(X.shape[0])[rows], np.diff(some.indptr))
    # As triples with the number of the row, so that rows without entries count.
    return crc32(np.column_stack([row, some.indices, some.data]).data, total)


CHUNK = 8192  # rows: 1.3 MB of 20 columns


class Block(NamedTuple):
    """Some rows, as a source yields them or validated, with ranks instead of labels."""

    X: Any
    y: Any = None
    weight: Any = None


class Arrays:
    """Arrays, or objects that are sliced like arrays, as a source of blocks."""

    def __init__(self, X: Any, y: Any = None, weight: Any = None):
        self.X, self.y, self.weight = X, y, weight

    def blocks(self) -> Iterator[Block]:
        check_shape(self.X.shape)
        for start in range(0, self.X.shape[0], CHUNK):
            # Chunks of the size in which they are used: no block is cut or joined
            # later.
            rows = slice(start, start + CHUNK)
            yield Block(*map(partial(_sliced, rows), (self.X, self.y, self.weight)))

    def features(self, rows: slice) -> Any:
        return _sliced(rows, self.X)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the features, those of a mapped file by its path."""
        mapped = _mapping(self.X)
        return (Arrays, (self.X,)) if mapped is None else (_mapped, mapped)


def _sliced(rows: slice, a: Any) -> Any:
    """Return some rows, copied from a mapped file.

    The pages of the file are released at once: the system reclaims pages only when it
    must, and counts them as memory of this process until then.
    """
    if not isinstance(a, np.memmap):
        return None if a is None else a[rows]
    view = a[rows]
    # A copy: the pages of the view are given back below, before it is used.
    part = np.array(view)
    # Releasing the pages of a copy-on-write map would lose changes to it.
    if a.mode != "c" and view.flags.c_contiguous and hasattr(mmap, "MADV_DONTNEED"):
        file = a._mmap  # type: ignore[attr-defined]
        first = view.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
        page = first - first % mmap.PAGESIZE
        file.madvise(mmap.MADV_DONTNEED, page, first + view.nbytes - page)
    return part


def _mapping(X: Any) -> tuple[Any, ...] | None:
    """Return the arguments of `_mapped` for an array of a file, otherwise None."""
    if not isinstance(X, np.memmap) or X.filename is None:
        return None
    # Another process would not see changes to a copy-on-write map.
    if X.mode == "c" or not X.flags.c_contiguous:
        return None
    file = X._mmap  # type: ignore[attr-defined]
    inside = X.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
    start = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    return str(X.filename), X.dtype, start + inside, X.shape


def _mapped(path: str, dtype: Any, offset: int, shape: tuple[int, ...]) -> Arrays:
    """Return a mapped file as a source, when it is unpickled."""
    return Arrays(np.memmap(path, dtype, "r", offset, shape))


def has_blocks(X: Any) -> bool:
    """Return whether X has a method `blocks()`."""
    return callable(getattr(X, "blocks", None))


def is_remote(X: Any) -> bool:
    """Return whether X is a dask collection, without importing dask."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


class Reader:
    """Reader of the blocks of a source, all of which have the columns of the first.

    Attributes
    ----------
    source : object with `blocks()`
    n_features : int
        Number of columns; 0 before the first block is read.
    feature_names : tuple of str, or None
        Columns that are selected by name where blocks are data frames.
    is_sparse : bool
        Whether blocks are sparse.
    missing : bool
        Whether features may be NaN.
    transform : callable, optional
        Transformation of features that have been read.
    first_pass : Checksums, or None
        Checksums of the first complete pass, with which later passes are compared.
    """

    def __init__(self, source: Any, missing: bool = False):
        self.source, self.missing = source, missing
        self.transform: Callable[[Any], np.ndarray] | None = None
        self.first_pass: Checksums | None = None
        self.n_features = 0
        self.feature_names: tuple[str, ...] | None = None
        self.is_sparse = False

    def blocks(
        self, ranks: Callable[[Any, int], np.ndarray] | None = None
    ) -> Generator[Block, None, None]:
        """Yield validated blocks: features, and ranks and weights if `ranks` is given.

        Parameters
        ----------
        ranks : callable, optional
            Makes ranks of the labels of a block and its number of rows.

        Raises
        ------
        ValueError, TypeError
            If a block is invalid, or has other features than in the first pass. The
            message names the block and its first row, except for the first block. The
            generator of the source is closed after an error, at the end, and with this
            generator.
        """
        start, weighted = 0, None
        seen = Checksums(self.first_pass)
        with closing(raw_blocks(self.source)) as given:
            # The block's number and first row are in every message about it.
            for number, block in enumerate(given):
                with in_block(number, start):
                    X = self._read(block.X)
                    self._compare(seen, X)
                    if ranks is not None:
                        block = _labelled(block, ranks, X.shape[0])
                        if weighted not in (None, block.weight is not None):
                            raise ValueError(
                                "all blocks must have weights, or none of them"
                            )
                        weighted = block.weight is not None
                    X = self._transformed(X)
                # Outside of `in_block`, which must not name the block in errors of the
                # code that uses it.
                yield block._replace(X=X)
                start += X.shape[0]
        if start == 0:
            raise ValueError(
                f"{self._name}.blocks() yielded no blocks: it must yield one or more"
            )
        self._compare(seen)
        self.first_pass = self.first_pass or seen

    def _compare(self, seen: Checksums, X: Matrix | None = None) -> None:
        """Raise ValueError if the next rows differ from those of the first pass.

        Without X all rows have been read.
        """
        if X is None:
            seen.end_span()
        else:
            seen.add(X)
        if seen.unlike is not None:
            raise _changed_rows(
                f"{self._name} yielded other features in rows {seen.unlike[0]} to "
                f"{seen.unlike[-1]} than in the first pass"
            )
        if self.missing and isinstance(X, np.ndarray):
            column = seen.add_missing(X)
            if column is not None:
                names = self.feature_names or range(self.n_features)
                raise _changed_rows(
                    f"{self._name} yielded a missing value in column "
                    f"{shown(names[column])}, which had none in the first pass"
                )

    def _read(self, X: Any) -> Matrix:
        """Validate the features of some rows; the first rows set names and types."""
        if self.n_features == 0:
            self.feature_names = feature_names(X)
        read = read_features(
            X,
            self.n_features or None,
            missing=self.missing,
            feature_names=self.feature_names,
        )
        if self.n_features == 0:
            self.n_features, self.is_sparse = read.shape[1], is_sparse(read)
        # Kernels are chosen once, by the first block.
        if is_sparse(read) != self.is_sparse:
            raise TypeError("X must be sparse in all blocks, or in none")
        return read

    def _transformed(self, X: Matrix) -> Matrix:
        """Apply the transformation, if there is one, which finds columns by name."""
        if self.transform is None:
            return X
        return self.transform(
            Frame.of_numbers(X, self.feature_names) if isinstance(X, np.ndarray) else X
        )

    @property
    def _name(self) -> str:
        """Return the name of the source in messages."""
        return "X" if isinstance(self.source, Arrays) else shown(self.source)

    @property
    def is_seekable(self) -> bool:
        """Return whether some rows can be read without a pass."""
        return isinstance(self.source, Arrays)

    def between(self, start: int, stop: int) -> Matrix | None:
        """Return the features of a range of rows, or None if that takes a pass."""
        if not self.is_seekable:
            return None
        X = self._read(self.source.features(slice(start, stop)))
        # A range that begins a span can be compared with the checksum of the first
        # pass.
        if start % SPAN == 0:
            seen = Checksums(self.first_pass, start)
            self._compare(seen, X)
            self._compare(seen)
        return self._transformed(X)

    def take(self, numbers: np.ndarray) -> Matrix | None:
        """Return the features of rows by number, or None if that takes a pass."""
        source = self.source
        if not isinstance(source, Arrays) or isinstance(source.X, np.memmap):
            return None
        return self._transformed(self._read(source.X[numbers]))

    def chunks(
        self, size: int = CHUNK, ranks: Callable[[Any, int], np.ndarray] | None = None
    ) -> Generator[Block, None, None]:
        """Yield the same rows, `size` at a time; the last chunk may have fewer."""
        held: list[Block] = []
        missing = size
        with closing(self.blocks(ranks)) as blocks:
            for block in blocks:
                start, n = 0, block.X.shape[0]
                # Rows are copied only where a chunk has parts of two blocks.
                while n - start >= missing:
                    held.append(_rows(block, slice(start, start + missing)))
                    yield _joined(held)
                    start, held, missing = start + missing, [], size
                if start < n:
                    held.append(_rows(block, slice(start, n)))
                    missing -= n - start
        if held:
            yield _joined(held)


class SubsetReader(Reader):
    """Reader of the features of a subset of the rows of another reader.

    Parameters
    ----------
    reader : Reader
        A reader that has completed its first pass.
    n : int
        Number of its rows.
    numbers : (k,) array
        Numbers of the rows of the subset, increasing.
    """

    def __init__(self, reader: Reader, n: int, numbers: np.ndarray):
        super().__init__(reader.source)
        self.n_features, self.is_sparse = reader.n_features, reader.is_sparse
        self.feature_names = reader.feature_names
        self._whole, self._n, self._numbers = reader, n, numbers

    def blocks(
        self, ranks: Callable[[Any, int], np.ndarray] | None = None
    ) -> Generator[Block, None, None]:
        """Yield blocks of features alone."""
        start = done = 0
        with closing(self._whole.blocks()) as blocks:
            for block in blocks:
                stop = start + block.X.shape[0]
                to = int(np.searchsorted(self._numbers, stop))
                if to > done:
                    X = take(block.X, self._numbers[done:to] - start)
                    yield Block(self._transformed(X))
                start, done = stop, to
        if start != self._n:
            raise changed_count(self.source, self._n, start)

    @property
    def is_seekable(self) -> bool:
        return False

    def take(self, numbers: np.ndarray) -> Matrix | None:
        X = self._whole.take(self._numbers[numbers])
        return X if X is None else self._transformed(X)


def _changed_rows(what: str) -> ValueError:
    """Return the error for rows that differ from those of the first pass."""
    return ValueError(
        f"{what}: every pass must give the same rows in the same order; shuffle or "
        "change them before the fit, or from a seed that each pass sets anew"
    )


def changed_count(source: Any, n: int, seen: int) -> ValueError:
    """Return the error for another number of rows than the n of the first pass."""
    return ValueError(
        f"{shown(source)} gave {n} rows in the first pass and "
        f"{'more' if seen > n else seen} in a later one"
    )


def raw_blocks(source: Any) -> Generator[Block, None, None]:
    """Yield the blocks of a source without validation of their contents.

    TypeError if one is not X, (X, y) or (X, y, weight).
    """
    given = source.blocks()
    try:
        blocks = iter(given)
    except TypeError:
        raise TypeError(
            "X.blocks() must yield blocks (X, y) or (X, y, weight) of rows, got "
            f"{shown(given)}: make it a generator, with yield"
        ) from None
    try:
        for number, rows in enumerate(blocks):
            block = rows if isinstance(rows, tuple) else (rows,)
            if not 1 <= len(block) <= 3:
                raise TypeError(
                    f"block {number} must be X, (X, y) or (X, y, weight), got a tuple "
                    f"of {len(block)}"
                )
            yield Block(*block)
    finally:  # a generator may hold a file, or a thread
        if hasattr(blocks, "close"):
            blocks.close()


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Stack matrices of one kind and width."""
    if len(parts) == 1:
        return parts[0]
    every: Any = parts
    return CSR.stacked(every) if is_sparse(parts[0]) else np.concatenate(every)


@contextmanager
def in_block(number: int, start: int) -> Iterator[None]:
    """Name the block in the errors that are raised inside.

    Rows of the first block have the same numbers in the block as among all rows, so its
    errors stay as they are.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if start == 0:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        where = f"block {number}, whose row 0 is row {start} of all"
        raise kind(f"{where}: {error}") from error


def _labelled(block: Block, ranks: Callable[[Any, int], np.ndarray], n: int) -> Block:
    """Return a block of n rows with ranks instead of labels, and checked weights."""
    if block.y is None:
        raise ValueError(
            "a fit needs blocks (X, y) or (X, y, weight), got X alone; "
            "ordinal.data.blocks takes the column of the labels as target="
        )
    weight = None if block.weight is None else row_weights(block.weight, n)
    return Block(block.X, ranks(block.y, n), weight)


def _rows(block: Block, rows: slice) -> Block:
    """Return some rows of a block."""
    if (rows.start, rows.stop) == (0, block.X.shape[0]):
        return block
    y, weight = (None if part is None else part[rows] for part in block[1:])
    return Block(take(block.X, rows), y, weight)


def _joined(held: Sequence[Block]) -> Block:
    """Return one block of the rows of several."""
    y, weight = (
        None if parts[0] is None else np.concatenate(parts)
        for parts in ([b.y for b in held], [b.weight for b in held])
    )
    return Block(stacked([b.X for b in held]), y, weight)
