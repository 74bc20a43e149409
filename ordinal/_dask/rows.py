"""Rows of dask arrays and data frames, which stay where dask holds them.

A block of rows is a future of dask: a worker computes it, holds it, and computes it
anew if it was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._input.features import read_features
from .._input.immutable import read_only
from .._input.labels import ranks_of, read_labels, row_weights
from .._input.sparse import is_sparse
from .._input.types import Matrix
from .._numerics.rows import matvec, strips, take
from .._numerics.threads import in_order
from .._rows.rows import HeldState, Rows, StateFactory
from .._rows.source import CHUNK, Block, stacked
from .._rows.sums import Moments, Parts, joined
from .transport import DaskTransport, Event, RemoteState, WorkerPart


class DaskRows(Rows):
    """Features of n rows in blocks at the workers of a dask cluster.

    Workers hold the features, labels and weights of their rows, and no other vectors.

    Attributes
    ----------
    shape : (n, d)
    client : distributed.Client
    blocks : list of futures
        Futures of `Block`, with labels as dask has them.
    sizes : (blocks,) array
        Numbers of rows.
    classes : (r,) array
    factor : (r,) array, or None
        Weights of the classes.
    rank : (n,) array of int32
    codes : (r,) array of int32, or None
        Numbers that take the place of the ranks at the workers.
    """

    is_near = False

    def __init__(
        self,
        client: Any,
        blocks: Sequence[Any],
        sizes: np.ndarray,
        n_features: int,
        classes: np.ndarray,
        factor: np.ndarray | None,
        rank: np.ndarray,
        codes: np.ndarray | None = None,
    ):
        self.client, self.blocks, self.sizes = client, blocks, sizes
        self.shape = int(sizes.sum()), n_features
        self.classes, self.factor, self.rank = classes, factor, rank
        self.codes = codes
        self._chunk_state: RemoteState | None = None

    def __getitem__(self, rows: slice | np.ndarray) -> Matrix:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        return self.take(rows)

    def check_beside(self, name: str) -> None:
        raise ValueError(
            f"{name} must be None where X is a collection of dask, whose workers hold "
            f"no such vector: leave {name} out, or pass X.compute()"
        )

    def with_codes(self, codes: np.ndarray) -> DaskRows:
        """Return the same rows, where workers use `codes[rank]` instead of ranks."""
        return self._with(codes=codes)

    @property
    def examples(self) -> np.ndarray:
        """Number of a row of each class that has rows, otherwise 0, (r,)."""
        numbers = np.zeros(self.classes.size, np.intp)
        # In reverse order, so that the first row of a class is written last.
        numbers[self.rank[::-1]] = np.arange(self.rank.size)[::-1]
        return numbers

    def with_state(
        self,
        make: StateFactory,
        rank: np.ndarray,
        weight: np.ndarray,
        n_threads: int,
        room: int,
    ) -> RemoteState:
        """Make a state of each block at its worker, from its own ranks and weights."""
        return self.with_parts(make, room)

    def with_parts(
        self,
        make: StateFactory,
        room: int = 0,
        kind: type[WorkerPart] = WorkerPart,
        needed: Callable[[Sequence[Event]], tuple[Event, ...]] = tuple,
    ) -> RemoteState:
        """Make a state of each block at its worker, and keep it there.

        Parameters
        ----------
        make : StateFactory
        room : int
            Number of rows whose features one worker may keep.
        kind, needed
            As for `transport.DaskTransport` and `transport.RemoteState`.
        """
        read = _BlockReader(self._labels, make)
        transport = DaskTransport(self.client, self.blocks, room, read, kind)
        return RemoteState(transport, needed)

    def sum(
        self,
        call: Callable[..., Parts],
        beside: Sequence[np.ndarray] = (),
        n_threads: int = 1,
    ) -> Parts:
        """Return the sum over all chunks of call(X, rank, weight) at the workers."""
        return self._chunks.sum("sums", call)

    def stack(
        self, call: Callable[..., np.ndarray], beside: Sequence[np.ndarray] = ()
    ) -> np.ndarray:
        """Return call(X, rank, weight) of all chunks, stacked along a new axis."""
        return np.concatenate([a for (a,) in self._chunks.map("stack", call)])

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product X v, (n,)."""
        return np.concatenate([f for (f,) in self._chunks.map("matvec", v)])

    @property
    def _chunks(self) -> RemoteState:
        """Return the state that calls functions of the chunks of the blocks."""
        if self._chunk_state is None:
            self._chunk_state = self.with_parts(_Chunks)
        return self._chunk_state

    @property
    def _labels(self) -> _LabelReader:
        return _LabelReader(self.classes, self.factor, self.codes)

    def take(self, numbers: np.ndarray) -> Matrix:
        """Return copies of rows by number, in the order of `numbers`."""
        # `stacked` needs a part that determines the type.
        if len(numbers) == 0:
            return np.empty((0, self.shape[1]))
        # In increasing order, each block is asked once, for a range of the numbers.
        order = np.argsort(numbers, kind="stable")
        wanted = np.asarray(numbers)[order]
        picked = [
            # pure=False: dask would hash the arguments, and share answers between
            # calls.
            self.client.submit(_pick, self.blocks[k], wanted[mine] - first, pure=False)
            for k, first, mine in self._by_block(wanted)
        ]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        found: Matrix = take(stacked(self.client.gather(picked)), place)
        return found

    def subset(self, numbers: np.ndarray, share: np.ndarray | None = None) -> DaskRows:
        """Return rows by number, increasing, which stay at their workers."""
        blocks, sizes = [], []
        for k, first, mine in self._by_block(numbers):
            mask = np.zeros(self.sizes[k], bool)
            mask[numbers[mine] - first] = True
            sizes.append(mine.stop - mine.start)
            part = None if share is None else share[mine]
            # Shares of 1 are the usual case and need not be sent.
            if part is not None and (part == 1).all():
                part = None
            # A bit per row is an eighth of a mask, and usually less than row numbers.
            blocks.append(
                self.client.submit(
                    _subset, self.blocks[k], np.packbits(mask), part, pure=False
                )
            )
        rank = read_only(self.rank[numbers])
        return self._with(blocks=blocks, sizes=np.array(sizes, int), rank=rank)

    def _by_block(self, numbers: np.ndarray) -> Iterator[tuple[int, int, slice]]:
        """Yield each block that has some of these rows, whose numbers increase.

        The values are the number of the block, the number of its first row, and the
        slice of `numbers` that lies in it.
        """
        ends = np.cumsum(self.sizes)
        firsts = ends - self.sizes
        starts, stops = np.searchsorted(numbers, [firsts, ends])
        for k in np.flatnonzero(starts < stops).tolist():
            yield k, int(firsts[k]), slice(int(starts[k]), int(stops[k]))

    def transformed(self, transform: Callable[[Any], np.ndarray]) -> DaskRows:
        """Return rows of transformed features, which workers hold beside the others."""
        blocks = self.client.map(
            _transformed, self.blocks, transform=transform, pure=False
        )
        return self._with(blocks=blocks)

    def close(self) -> None:
        """Do nothing: no pass over the rows runs in this process."""

    def with_class_weights(self, factor: np.ndarray) -> DaskRows:
        return self._with(factor=factor)

    def moments(self, weight: np.ndarray) -> Moments | None:
        """Return the moments of dense columns, by the sample weights at the workers."""
        return self._moments(None)

    def weighted_moments(self, weight: np.ndarray) -> Moments:
        """Return the moments by sample weights times class weights.

        TypeError if the rows are sparse.
        """
        found = self._moments(self._labels)
        if found is None:
            raise TypeError(
                "X must be dense where it is a dask collection, unless a model on "
                "a basis is fitted: pass basis=, or dense chunks"
            )
        return found

    def _moments(self, labels: _LabelReader | None) -> Moments | None:
        """Return the moments by sample weights, or by the weights that labels add."""
        of_blocks = self.client.gather(
            self.client.map(_moments, self.blocks, labels=labels, pure=False)
        )
        if any(parts is None for parts in of_blocks):
            return None
        return joined([part for parts in of_blocks for part in parts])

    def map(self, call: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Apply a function to each block at its worker, and concatenate the results."""
        parts = self.client.map(_map, self.blocks, call=call, pure=False)
        return np.concatenate(self.client.gather(parts))

    def _with(self, **changes: Any) -> DaskRows:
        """Return the rows with some arguments of the constructor changed."""
        arguments: dict[str, Any] = {
            "client": self.client,
            "blocks": self.blocks,
            "sizes": self.sizes,
            "n_features": self.shape[1],
            "classes": self.classes,
            "factor": self.factor,
            "rank": self.rank,
            "codes": self.codes,
        }
        return DaskRows(**arguments | changes)


class _LabelledBlock(NamedTuple):
    """Block with ranks or codes for labels, and with the weights of its rows.

    Dense features keep their precision, which may be single.
    """

    X: Any
    rank: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class _LabelReader:
    """Reader of a block at a worker that has been validated by the first pass."""

    classes: np.ndarray
    factor: np.ndarray | None
    codes: np.ndarray | None

    def __call__(self, block: Block) -> _LabelledBlock:
        # Frames become matrices here; a block that dask computed anew is validated
        # again.
        X = read_features(block.X)
        if isinstance(block.X, np.ndarray):
            X = block.X  # a copy in double would take twice the memory of the block
        rank = ranks_of(read_labels(block.y, "y"), self.classes)
        n = X.shape[0]
        weight = np.ones(n) if block.weight is None else row_weights(block.weight, n)
        if self.factor is not None:
            weight = weight * self.factor[rank]
        return _LabelledBlock(
            X, rank if self.codes is None else self.codes[rank], weight
        )


@dataclass(frozen=True, slots=True, eq=False)
class _BlockReader:
    """Factory of the state of a block at its worker."""

    labels: _LabelReader
    make: StateFactory

    def __call__(self, block: Block, room: int, n_threads: int) -> HeldState:
        return self.make(*self.labels(block), room, n_threads)


class _Chunks:
    """State that calls functions of the chunks of a block."""

    size = 0  # bytes beside the block itself

    def __init__(
        self, X: Matrix, rank: np.ndarray, weight: np.ndarray, room: int, n_threads: int
    ):
        self.n, self._n_threads = len(X), n_threads
        self._rows = X, rank, weight

    def matvec(self, v: np.ndarray) -> Parts:
        """Return the product of the rows with a vector, X v."""
        parts = [matvec(self._chunk(rows), v) for rows in strips(self.n, CHUNK)]
        return (np.concatenate(parts),)

    def sums(self, call: Callable[..., Parts]) -> Iterator[Parts]:
        """Yield call(X, rank, weight) of each chunk."""

        def of_chunk(rows: slice) -> Parts:
            return call(*self._arguments(rows))

        return in_order(of_chunk, strips(self.n, CHUNK), self._n_threads)

    def stack(self, call: Callable[..., np.ndarray]) -> Parts:
        """Return call(X, rank, weight) of the chunks, stacked along a new axis."""
        chunks = strips(self.n, CHUNK)
        return (np.stack([call(*self._arguments(rows)) for rows in chunks]),)

    def _arguments(self, rows: slice) -> tuple[Matrix, np.ndarray, np.ndarray]:
        """Return the features, ranks and weights of a chunk."""
        _, rank, weight = self._rows
        return self._chunk(rows), rank[rows], weight[rows]

    def _chunk(self, rows: slice) -> Matrix:
        """Return the features of a chunk in double precision."""
        return np.ascontiguousarray(take(self._rows[0], rows), np.float64)


# Functions that workers call


def moments_of_chunks(X: Any, weight: np.ndarray) -> list[Moments | None] | None:
    """Return the moments of each chunk, None for one without weight.

    If the rows are sparse, return None.
    """
    if is_sparse(X):
        return None
    chunks = (slice(start, start + CHUNK) for start in range(0, len(X), CHUNK))
    return [Moments.from_rows(X[rows], weight[rows]) for rows in chunks]


def _moments(block: Block, labels: _LabelReader | None) -> list[Moments | None] | None:
    """Return the moments of the chunks of a block, or None if it is sparse."""
    X = read_features(block.X)
    if labels is not None:
        return moments_of_chunks(X, labels(block).weight)
    weight = np.ones(len(X)) if block.weight is None else np.asarray(block.weight)
    return moments_of_chunks(X, weight)


def _transformed(block: Block, transform: Callable[[Any], np.ndarray]) -> Block:
    """Return a block of transformed features."""
    return block._replace(X=transform(read_features(block.X)))


def _map(block: Block, call: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Return the result of a function of the features of a block."""
    return call(read_features(block.X))


def _subset(block: Block, packed: np.ndarray, share: np.ndarray | None) -> Block:
    """Return the rows of a mask, and shares of their weights."""
    n = block.X.shape[0]
    rows = np.flatnonzero(np.unpackbits(packed, count=n))
    weight = None if block.weight is None else np.asarray(block.weight)[rows]
    if share is not None:
        weight = share if weight is None else weight * share
    return Block(take(block.X, rows), np.asarray(block.y)[rows], weight)


def _pick(block: Block, numbers: np.ndarray) -> Matrix:
    """Return the features of some rows of a block."""
    return read_features(take(block.X, numbers))
