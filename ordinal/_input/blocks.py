"""Rows that are read in blocks, as often as asked, and never held all at once.

A source is an object whose `blocks()` begins anew at each call and gives some rows at a
time, as (X, y) or (X, y, weight), or X alone where no labels are asked for. An array,
such as a `numpy.memmap`, is a source as well; its labels and weights are whole vectors.

Whatever the sizes of a source's blocks are, its rows come in chunks of `CHUNK` rows, so
that what is computed chunk by chunk does not depend on how the rows were stored.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np

from .checks import shown
from .checksums import SPAN, Checksums
from .columns import check_shape, feature_names
from .features import read_features
from .moments import Moments
from .sparse import CSR
from .types import Matrix
from .weights import row_weights

CHUNK = 8192  # rows: 1.3 MB of 20 columns


class Block(NamedTuple):
    """Some rows: as a source gives them, or validated, with ranks for labels."""

    X: Any
    y: Any = None
    weight: Any = None


class Arrays:
    """Arrays, or what can be sliced as they can, as a source of blocks."""

    def __init__(self, X: Any, y: Any = None, weight: Any = None):
        self.X, self.y, self.weight = X, y, weight

    def blocks(self) -> Iterator[Block]:
        check_shape(self.X.shape)
        for start in range(0, self.X.shape[0], CHUNK):
            rows = slice(start, start + CHUNK)
            yield Block(*map(partial(_sliced, rows), (self.X, self.y, self.weight)))

    def features(self, rows: slice) -> Any:
        return _sliced(rows, self.X)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the features, of a file that is mapped by its path."""
        mapped = _mapping(self.X)
        return (Arrays, (self.X,)) if mapped is None else (_mapped, mapped)


def _sliced(rows: slice, a: Any) -> Any:
    """Some rows. Of a file that is mapped they are copies, and their pages are given
    back: the system takes pages only when it must, and counts them as ours until then.
    """
    if not isinstance(a, np.memmap):
        return None if a is None else a[rows]
    view = a[rows]
    part = np.array(view)
    # what is written to a copy-on-write map is there alone
    if a.mode != "c" and view.flags.c_contiguous and hasattr(mmap, "MADV_DONTNEED"):
        file = a._mmap  # type: ignore[attr-defined]
        first = view.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
        page = first - first % mmap.PAGESIZE
        file.madvise(mmap.MADV_DONTNEED, page, first + view.nbytes - page)
    return part


def _mapping(X: Any) -> tuple[Any, ...] | None:
    """What maps the same part of a file again; None of what no file holds."""
    if not isinstance(X, np.memmap) or X.filename is None:
        return None
    # what is written to a copy-on-write map is there alone
    if X.mode == "c" or not X.flags.c_contiguous:
        return None
    file = X._mmap  # type: ignore[attr-defined]
    inside = X.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
    start = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    return str(X.filename), X.dtype, start + inside, X.shape


def _mapped(path: str, dtype: Any, offset: int, shape: tuple[int, ...]) -> Arrays:
    return Arrays(np.memmap(path, dtype, "r", offset, shape))


def has_blocks(X: Any) -> bool:
    """Whether X is a source by its `blocks()`."""
    return callable(getattr(X, "blocks", None))


class Reader:
    """Reads the blocks of a source: all have the columns of the first one.

    Attributes
    ----------
    source : object with `blocks()`
    n_features : int
        Of every block; 0 before the first one is read.
    feature_names : tuple of str, or None
        The columns that are found by name where blocks are data frames.
    is_sparse : bool
        Whether blocks are sparse.
    missing : bool
        Whether features may be NaN.
    transform : callable, optional
        What is done to features that have been read.
    first_pass : Checksums, or None
        Of the first pass that came to its end; all later ones are compared with it.
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
        """Validated blocks: X as `read_features` gives it and, where `ranks` makes
        numbers of the labels of so many rows, these and the weights, if there are any.

        An error names the block and its first row; the source's own generator is
        closed after it, at the end, and when this one is. ValueError for other features
        than in the first pass.
        """
        start, weighted = 0, None
        seen = Checksums(self.first_pass)
        with closing(raw_blocks(self.source)) as given:
            for number, block in enumerate(given):
                with in_block(number, start):
                    X = self._read(block.X)
                    self._compare(seen, X)
                    if ranks is not None:
                        block = _labelled(block, ranks, X.shape[0])
                        if weighted not in (None, block.weight is not None):
                            raise ValueError("all blocks must have weights, or none")
                        weighted = block.weight is not None
                    X = self._transformed(X)
                yield block._replace(X=X)
                start += X.shape[0]
        if start == 0:
            raise ValueError(f"{self._name} gave no blocks")
        self._compare(seen)
        self.first_pass = self.first_pass or seen

    def _compare(self, seen: Checksums, X: Matrix | None = None) -> None:
        """Raise ValueError if the next rows are others than in the first pass; without
        any, all have been read."""
        if X is None:
            seen.end_span()
        else:
            seen.add(X)
        if seen.unlike is not None:
            raise _other_rows(
                f"{self._name} gave other features in rows {seen.unlike[0]} to "
                f"{seen.unlike[-1]} of all than in the first pass"
            )
        if self.missing and isinstance(X, np.ndarray):
            column = seen.add_missing(X)
            if column is not None:
                names = self.feature_names or range(self.n_features)
                raise _other_rows(
                    f"{self._name} gave a missing value in column "
                    f"{shown(names[column])}, which has none in the first pass"
                )

    def _read(self, X: Any) -> Matrix:
        """The features of some rows, before anything is done to them; the first ones
        say what all must be."""
        if self.n_features == 0:
            self.feature_names = feature_names(X)
        read = read_features(
            X,
            self.n_features or None,
            missing=self.missing,
            feature_names=self.feature_names,
        )
        if self.n_features == 0:
            self.n_features, self.is_sparse = read.shape[1], isinstance(read, CSR)
        if isinstance(read, CSR) != self.is_sparse:
            raise TypeError("X must be sparse in all blocks, or in none")
        return read

    def _transformed(self, X: Matrix) -> Matrix:
        return X if self.transform is None else self.transform(X)

    @property
    def _name(self) -> str:
        """The source in a message."""
        return "X" if isinstance(self.source, Arrays) else shown(self.source)

    @property
    def at_hand(self) -> bool:
        """Whether some rows can be had without a pass."""
        return isinstance(self.source, Arrays)

    def between(self, start: int, stop: int) -> Matrix | None:
        """The features of rows that can be had without a pass, else None."""
        if not self.at_hand:
            return None
        X = self._read(self.source.features(slice(start, stop)))
        if start % SPAN == 0:
            seen = Checksums(self.first_pass, start)
            self._compare(seen, X)
            self._compare(seen)
        return self._transformed(X)

    def of_numbers(self, numbers: np.ndarray) -> Matrix | None:
        """The same of rows of these numbers."""
        source = self.source
        if not isinstance(source, Arrays) or isinstance(source.X, np.memmap):
            return None
        return self._transformed(self._read(source.X[numbers]))

    def chunks(
        self,
        size: int = CHUNK,
        ranks: Callable[[Any, int], np.ndarray] | None = None,
    ) -> Generator[Block, None, None]:
        """The same rows, `size` at a time; the last chunk may have fewer."""
        held: list[Block] = []
        missing = size
        with closing(self.blocks(ranks)) as blocks:
            for block in blocks:
                start, n = 0, block.X.shape[0]
                while n - start >= missing:
                    held.append(_rows(block, slice(start, start + missing)))
                    yield _joined(held)
                    start, held, missing = start + missing, [], size
                if start < n:
                    held.append(_rows(block, slice(start, n)))
                    missing -= n - start
        if held:
            yield _joined(held)


class KeptReader(Reader):
    """Reads the features of some rows of what another reader reads, pass by pass.

    Parameters
    ----------
    reader : Reader
        Which has read n rows before.
    n : int
    numbers : (k,) array
        Of the rows that are kept, increasing.
    """

    def __init__(self, reader: Reader, n: int, numbers: np.ndarray):
        super().__init__(reader.source)
        self.n_features, self.is_sparse = reader.n_features, reader.is_sparse
        self.feature_names = reader.feature_names
        self._whole, self._n, self._numbers = reader, n, numbers

    def blocks(
        self, ranks: Callable[[Any, int], np.ndarray] | None = None
    ) -> Generator[Block, None, None]:
        """Features alone."""
        start = done = 0
        with closing(self._whole.blocks()) as blocks:
            for block in blocks:
                stop = start + block.X.shape[0]
                to = int(np.searchsorted(self._numbers, stop))
                if to > done:
                    X = rows_of(block.X, self._numbers[done:to] - start)
                    yield Block(X if self.transform is None else self.transform(X))
                start, done = stop, to
        if start != self._n:
            raise _other_count(self.source, self._n, start)

    @property
    def at_hand(self) -> bool:
        return False

    def of_numbers(self, numbers: np.ndarray) -> Matrix | None:
        X = self._whole.of_numbers(self._numbers[numbers])
        return X if X is None or self.transform is None else self.transform(X)


class RowsInParts(ABC):
    """The features of n rows that are never all at hand.

    Attributes
    ----------
    shape : (n, d)
    """

    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def take(self, numbers: np.ndarray) -> Matrix:
        """Copies of the rows of these numbers, in this order."""

    @abstractmethod
    def kept(self, numbers: np.ndarray, share: np.ndarray | None = None) -> Self:
        """The rows of these numbers, increasing, to be read as all of them are, and so
        much of their weights where these are beside them."""

    @abstractmethod
    def transformed(self, transform: Callable[[Any], np.ndarray]) -> Self:
        """The same with features that are made of those of some rows."""

    @abstractmethod
    def moments(self, weight: np.ndarray) -> Moments | None:
        """Of the columns; None of sparse ones."""

    @abstractmethod
    def mapped(self, call: Callable[[Any], np.ndarray]) -> np.ndarray:
        """What a function gives for some rows, of all of them."""

    def weighed(self, factor: np.ndarray) -> Self:
        """The same where `factor` multiplies the weights of a class, if these are
        beside the rows."""
        return self

    @abstractmethod
    def close(self) -> None:
        """End a pass, if one was begun."""


class Rows(RowsInParts):
    """The features of n rows, of which few are in memory at a time.

    `rows[slice]` and `rows[numbers]` read the source again. Slices are best asked for
    in their order, from the first row to the last: that is one pass over the source.
    Several threads may ask at once, for rows that are near each other; one of them
    reads at a time.

    Attributes
    ----------
    shape : (n, d)
    reader : Reader
        Which has read them all before.
    size : int
        Rows of a chunk.
    held : int
        Chunks of the present pass that are held for those who come late.
    """

    def __init__(self, reader: Reader, n: int):
        self.reader, self.shape = reader, (n, reader.n_features)
        self.size, self.held = CHUNK, 4
        self._lock = Lock()
        self._pass: Generator[Matrix, None, None] | None = None
        self._next = 0  # chunk of the pass
        self._chunks: dict[int, Matrix] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self.reader, len(self))

    def __getitem__(self, rows: slice | np.ndarray) -> Matrix:
        """Rows in a range of step 1, not to be written to, or copies of those of these
        numbers: of the present pass where they are near each other."""
        if not isinstance(rows, slice):
            near = rows.size > 0 and np.ptp(rows) < self.size
            if not near:
                return self.take(rows)
            start = int(rows.min())
            return rows_of(self[start : int(rows.max()) + 1], rows - start)
        start, stop, _ = rows.indices(len(self))
        at_once = self.reader.between(start, stop)
        if at_once is not None:
            return at_once
        parts = []
        for k in range(start // self.size, max(start, stop - 1) // self.size + 1):
            first = k * self.size
            inside = slice(max(start - first, 0), min(stop - first, self.size))
            parts.append(rows_of(self._chunk(k), inside))
        return stacked(parts)

    def _chunk(self, k: int) -> Matrix:
        with self._lock:
            if k not in self._chunks:
                self._advance(k)
            return self._chunks[k]

    def _advance(self, k: int) -> None:
        """Read until this chunk is held."""
        try:
            if self._pass is None or k < self._next:
                self._end()
                self._pass = self.chunks()
            while self._next <= k:
                self._chunks[self._next] = next(self._pass)
                self._chunks.pop(self._next - self.held, None)
                self._next += 1
            if self._next * self.size >= len(self):  # is there more than at first?
                next(self._pass, None)
                self._pass = None
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self._pass is not None:
            self._pass.close()
        self._pass, self._next = None, 0
        self._chunks.clear()

    def close(self) -> None:
        """End a pass, if one was begun: whatever the source holds open is closed."""
        with self._lock:
            self._end()

    def chunks(self) -> Generator[Matrix, None, None]:
        """The rows in their order, `size` at a time, validated; ValueError if they are
        not as many as in the first pass."""
        n, seen = len(self), 0
        with closing(self.reader.chunks(self.size)) as chunks:
            for X, _, _ in chunks:
                seen += X.shape[0]
                if seen > n:
                    break
                yield X
        if seen != n:
            raise _other_count(self.reader.source, n, seen)

    def take(self, numbers: np.ndarray) -> Matrix:
        """Copies of the rows of these numbers, in this order, of a file by a pass that
        ends at the last of them."""
        self.close()
        numbers = np.asarray(numbers, np.intp)
        at_once = self.reader.of_numbers(numbers)
        if at_once is not None:
            return at_once
        order = np.argsort(numbers, kind="stable")
        wanted = numbers[order]
        parts: list[Matrix] = []
        start = done = 0
        with closing(self.chunks()) as chunks:
            for X in chunks:
                to = int(np.searchsorted(wanted, start + X.shape[0]))
                parts.append(rows_of(X, wanted[done:to] - start))
                start, done = start + X.shape[0], to
                if done == wanted.size:
                    break
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return rows_of(stacked(parts), place)

    def moments(self, weight: np.ndarray) -> Moments | None:
        """By a pass."""
        if self.reader.is_sparse:
            return None
        with closing(self.chunks()) as chunks:
            starts = range(0, len(self), self.size)
            return Moments.of_parts(
                (X, weight[start : start + self.size])
                for X, start in zip(chunks, starts, strict=False)
                if isinstance(X, np.ndarray)
            )

    def mapped(self, call: Callable[[Any], np.ndarray]) -> np.ndarray:
        """By a pass."""
        with closing(self.chunks()) as chunks:
            return np.concatenate([call(rows) for rows in chunks])

    def transformed(self, transform: Callable[[Any], np.ndarray]) -> Rows:
        """The same with features that are made of those of some rows."""
        reader = copy(self.reader)
        reader.transform = transform
        return Rows(reader, len(self))

    def kept(self, numbers: np.ndarray, share: np.ndarray | None = None) -> Rows:
        """The rows of these numbers, increasing, to be read as all of them are. Of
        `share`, that of their weights, nothing is held here."""
        return Rows(KeptReader(self.reader, len(self), numbers), numbers.size)


def in_chunks(call: Callable[[Any], np.ndarray], X: Any) -> np.ndarray:
    """What a function gives for the rows of X: some at a time, where they are so."""
    return X.mapped(call) if isinstance(X, RowsInParts) else call(X)


def _other_rows(what: str) -> ValueError:
    return ValueError(
        f"{what}: every pass must give the same rows in the same order; shuffle or "
        "change them before the fit, or from a seed that each pass sets anew"
    )


def _other_count(source: Any, n: int, seen: int) -> ValueError:
    return ValueError(
        f"{shown(source)} gave {n} rows in the first pass and "
        f"{'more' if seen > n else seen} in a later one"
    )


def raw_blocks(source: Any) -> Generator[Block, None, None]:
    """The blocks as a source gives them; TypeError for what is none."""
    blocks = iter(source.blocks())
    try:
        for number, given in enumerate(blocks):
            block = given if isinstance(given, tuple) else (given,)
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
    """Matrices of one kind and width below each other."""
    if len(parts) == 1:
        return parts[0]
    sparse = [part for part in parts if isinstance(part, CSR)]
    if sparse:
        return CSR.stacked(sparse)
    return np.concatenate([part for part in parts if isinstance(part, np.ndarray)])


@contextmanager
def in_block(number: int, start: int) -> Iterator[None]:
    """Errors of a block say which one it is."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        where = f"block {number}, whose row 0 is row {start} of all"
        raise kind(f"{where}: {error}") from error


def _labelled(block: Block, ranks: Callable[[Any, int], np.ndarray], n: int) -> Block:
    if block.y is None:
        raise ValueError("a fit needs blocks (X, y) or (X, y, weight), got X alone")
    weight = None if block.weight is None else row_weights(block.weight, n)
    return Block(block.X, ranks(block.y, n), weight)


def _rows(block: Block, rows: slice) -> Block:
    if (rows.start, rows.stop) == (0, block.X.shape[0]):
        return block
    y, weight = (None if part is None else part[rows] for part in block[1:])
    return Block(rows_of(block.X, rows), y, weight)


def _joined(held: Sequence[Block]) -> Block:
    y, weight = (
        None if parts[0] is None else np.concatenate(parts)
        for parts in ([b.y for b in held], [b.weight for b in held])
    )
    return Block(stacked([b.X for b in held]), y, weight)


def rows_of(X: Matrix, rows: Any) -> Matrix:
    return X.rows(rows) if isinstance(X, CSR) else X[rows]
