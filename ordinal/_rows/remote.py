"""Rows of dask arrays and data frames, which stay where dask holds them.

A block of rows is a future of dask: a worker computes it, holds it, and computes it
anew if it was lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._input.checks import as_array, shown
from .._input.columns import feature_names
from .._input.features import read_features
from .._input.immutable import read_only
from .._input.labels import (
    classes_in_rank_order,
    declared_categories,
    ranks_of,
    read_labels,
)
from .._input.sparse import CSR
from .._input.types import Matrix
from .._input.weights import class_weights, row_weights, sample_weights, total_weights
from .._numerics.pool import in_order
from .._numerics.rows import matvec, strips, take
from .first_pass import ChunkedProblem
from .rows import Rows
from .source import CHUNK, Block, in_block, stacked
from .sums import Moments, Parts, joined
from .transport import (
    DaskTransport,
    Event,
    HeldState,
    RemoteState,
    WorkerPart,
    all_events,
)

StateFactory: TypeAlias = Callable[[Any, np.ndarray, np.ndarray, int, int], HeldState]
"""Make the state of some rows: (X, ranks, weights, rows to cache, threads)."""


def is_remote(X: Any) -> bool:
    """Return whether X is a dask collection, without importing dask."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


class RemoteRows(Rows):
    """Features of n rows in blocks at the workers of a dask cluster.

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

    def __getitem__(self, numbers: np.ndarray) -> Matrix:
        return self.take(numbers)

    def with_codes(self, codes: np.ndarray) -> RemoteRows:
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
        room: int = 0,
        kind: type[WorkerPart] = WorkerPart,
        needed: Callable[[Sequence[Event]], tuple[Event, ...]] = all_events,
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

    def sum(self, call: Callable[..., Parts]) -> Parts:
        """Return the sum over all chunks of call(X, rank, weight)."""
        return self._chunks.sum("sums", call)

    def stack(self, call: Callable[..., np.ndarray]) -> np.ndarray:
        """Return call(X, rank, weight) of all chunks, stacked along a new axis."""
        return np.concatenate([a for (a,) in self._chunks.map("stack", call)])

    def matvec(self, v: np.ndarray) -> np.ndarray:
        """Return the product X v, (n,)."""
        return np.concatenate([f for (f,) in self._chunks.map("matvec", v)])

    @property
    def _chunks(self) -> RemoteState:
        """Return the state that calls functions of the chunks of the blocks."""
        if self._chunk_state is None:
            self._chunk_state = self.with_state(_Chunks)
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

    def subset(
        self, numbers: np.ndarray, share: np.ndarray | None = None
    ) -> RemoteRows:
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

    def transformed(self, transform: Callable[[Any], np.ndarray]) -> RemoteRows:
        """Return rows of transformed features, which workers hold beside the others."""
        blocks = self.client.map(
            _transformed, self.blocks, transform=transform, pure=False
        )
        return self._with(blocks=blocks)

    def close(self) -> None:
        """Do nothing: no pass over the rows runs in this process."""

    def with_class_weights(self, factor: np.ndarray) -> RemoteRows:
        return self._with(factor=factor)

    def moments(self, weight: np.ndarray) -> Moments | None:
        """Return the moments of dense columns, by the sample weights at the workers."""
        return self._moments(None)

    def moments_by_weight(self) -> Moments | None:
        """Return the moments by sample weights times class weights."""
        return self._moments(self._labels)

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

    def _with(self, **changes: Any) -> RemoteRows:
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
        return RemoteRows(**arguments | changes)


def remote_problem(
    X: Any,
    y: Any,
    *,
    classes: Any = None,
    sample_weight: Any = None,
    class_weight: Any = None,
) -> ChunkedProblem:
    """Read training data of dask: workers keep the features of the rows.

    This process holds ranks, weights and the moments of the columns.

    Parameters
    ----------
    X : (n, d) dask array or data frame
    y, sample_weight : (n,) dask array or series, or whatever fits make arrays of
    classes, class_weight
        As for `Problem.from_arrays`.

    Raises
    ------
    ValueError, TypeError
        As `Problem.from_arrays`; errors in rows name the block. ValueError if there is
        no client.
    """
    if y is None:
        raise ValueError("y must hold the labels of X, got None")
    client = _client()
    if classes is None:
        classes = declared_categories(getattr(y, "_meta", y))
    if classes is not None:
        classes = classes_in_rank_order(np.empty(0), classes)
    # `_meta` is an empty frame: names and categories are known without computing.
    names = None if not hasattr(X, "columns") else feature_names(X._meta)
    blocks, sizes = _blocks(client, X, y, sample_weight)
    starts = np.cumsum(sizes) - sizes
    map_all = partial(_map_blocks, client, blocks, starts)
    summaries = map_all(_summary, ranked=classes is None)
    first = summaries[0]
    # The other blocks are compared with block 0, so that a message can name a block.
    for k, summary in enumerate(summaries):
        with in_block(k, starts[k]):
            summary.check_like(first)
    if classes is None:
        seen = np.concatenate([summary.labels for summary in summaries])
        classes = classes_in_rank_order(seen, None)
    # Ranks are sent in the smallest type that holds them (see `_ranks`).
    rank = read_only(np.concatenate(map_all(_ranks, classes=classes)).astype(np.int32))
    if sample_weight is None:
        # A view of one number takes no memory per row.
        sample = np.broadcast_to(1.0, rank.shape)
    else:
        sample = sample_weights(np.concatenate(map_all(_weights)), rank.size)
    weight, factor = sample, None
    if class_weight is not None:
        weight = total_weights(sample, class_weight, classes, rank)
        factor = class_weights(class_weight, classes, rank, sample)
    moments = joined([part for summary in summaries for part in summary.moments or ()])
    rows = RemoteRows(client, blocks, sizes, first.width, classes, factor, rank)
    problem = ChunkedProblem(rows, rank, classes, weight, sample, names, moments)
    problem.check_classes()
    return problem


def map_blocks(
    X: Any, y: Any, sample_weight: Any, call: Callable[[Block], Any]
) -> list[Any]:
    """Apply a function to every block (X, y, weight) at its worker.

    The other arguments are those of `remote_problem`; errors name the block.
    """
    client = _client()
    blocks, sizes = _blocks(client, X, y, sample_weight)
    return _map_blocks(client, blocks, np.cumsum(sizes) - sizes, _called, call=call)


def _map_blocks(
    client: Any,
    blocks: Sequence[Any],
    starts: np.ndarray,
    answer: Any,
    **options: Any,
) -> list[Any]:
    """Return the results of all blocks, or raise the error of the first that failed."""
    answers = client.gather(client.map(answer, blocks, pure=False, **options))
    for k, answer in enumerate(answers):
        if isinstance(answer, Exception):
            with in_block(k, starts[k]):
                raise answer
    return list(answers)


def _client() -> Any:
    """Return the present client of dask; ValueError without one."""
    try:
        return import_module("distributed").get_client()
    except ValueError:
        raise ValueError(
            "X is a dask collection, which needs a client: make one by "
            "distributed.Client(), or pass X.compute()"
        ) from None


def _blocks(client: Any, X: Any, y: Any, weight: Any) -> tuple[list[Any], np.ndarray]:
    """Return futures of blocks (X, y, weight), and the number of rows of each."""
    dask: Any = import_module("dask")
    da: Any = import_module("dask.array")
    X = _array(X)
    if X.ndim != 2:
        raise ValueError(f"X must be 2-dimensional, got shape {X.shape}")
    # All columns of a row must be at one worker.
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    parts = [X]
    for name, column in (("y", y), ("sample_weight", weight)):
        if column is None:
            continue
        if is_remote(column):
            column = _array(column)
        else:
            column = da.from_array(as_array(column, name))
        if column.shape != X.shape[:1]:
            raise ValueError(
                f"{name} has shape {column.shape}, expected ({X.shape[0]},) as X"
            )
        # Labels and weights are stored with their rows, so no worker asks another one.
        parts.append(column.rechunk(X.chunks[:1]))
    columns = [part.to_delayed().ravel().tolist() for part in parts]
    held = [dask.delayed(Block)(*block) for block in zip(*columns, strict=True)]
    return list(client.compute(held)), np.array(X.chunks[0])


def _array(X: Any) -> Any:
    """Return a dask array of known shape."""
    # A pandas Categorical is no numpy array, which a block must be.
    if hasattr(getattr(X, "dtype", None), "categories"):
        X = X.astype(object)
    if hasattr(X, "to_dask_array"):
        return X.to_dask_array(lengths=True)
    if not hasattr(X, "chunks"):
        raise TypeError(f"X must be a dask array or data frame, got {shown(X)}")
    return X if not np.isnan(X.shape).any() else X.compute_chunk_sizes()


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
        self,
        X: Matrix,
        rank: np.ndarray,
        weight: np.ndarray,
        room: int,
        n_threads: int,
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


class _Summary(NamedTuple):
    """Columns, labels, and moments of the chunks of a dense block."""

    width: int
    labels: np.ndarray
    moments: list[Moments | None] | None

    def check_like(self, first: _Summary) -> None:
        """Raise TypeError or ValueError unless the columns match those of block 0."""
        if self.width != first.width:
            raise ValueError(
                "all blocks of X must have the same number of features, got "
                f"{self.width} in one and {first.width} in block 0"
            )
        if (self.moments is None) != (first.moments is None):
            raise TypeError("X must be sparse in all blocks, or in none")


# Functions that workers call. They return errors instead of raising them, so that the
# client finds the first block that failed.


def _summary(block: Block, ranked: bool) -> _Summary | Exception:
    """Validate a block; if `ranked`, its labels must have an order by themselves."""
    try:
        X, labels = read_features(block.X), read_labels(block.y, "y")
        n = X.shape[0]
        if ranked:
            labels = classes_in_rank_order(labels, None)
        weight = np.ones(n) if block.weight is None else row_weights(block.weight, n)
    except (ValueError, TypeError) as error:
        return error
    moments = None if isinstance(X, CSR) else _moments_of_chunks(X, weight)
    return _Summary(X.shape[1], np.unique(labels), moments)


def _moments_of_chunks(X: np.ndarray, weight: np.ndarray) -> list[Moments | None]:
    """Return the moments of each chunk, None for one without weight."""
    chunks = (slice(start, start + CHUNK) for start in range(0, len(X), CHUNK))
    return [Moments.from_rows(X[rows], weight[rows]) for rows in chunks]


def _moments(block: Block, labels: _LabelReader | None) -> list[Moments | None] | None:
    """Return the moments of the chunks of a block, or None if it is sparse."""
    X = read_features(block.X)
    if isinstance(X, CSR):
        return None
    if labels is not None:
        return _moments_of_chunks(X, labels(block).weight)
    weight = np.ones(len(X)) if block.weight is None else np.asarray(block.weight)
    return _moments_of_chunks(X, weight)


def _transformed(block: Block, transform: Callable[[Any], np.ndarray]) -> Block:
    """Return a block of transformed features."""
    return block._replace(X=transform(read_features(block.X)))


def _map(block: Block, call: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Return the result of a function of the features of a block."""
    return call(read_features(block.X))


def _called(block: Block, call: Callable[[Block], Any]) -> Any:
    """Return the result of a function of a block, or its error."""
    try:
        return call(block)
    except (ValueError, TypeError) as error:
        return error


def _ranks(block: Block, classes: np.ndarray) -> np.ndarray | Exception:
    """Return the ranks of the labels of a block."""
    try:
        rank = ranks_of(read_labels(block.y, "y"), classes)
    except (ValueError, TypeError) as error:
        return error
    # A byte per row instead of four is sent to the client.
    return rank.astype(np.min_scalar_type(classes.size))


def _weights(block: Block) -> np.ndarray:
    """Return the weights of the rows of a block."""
    return row_weights(block.weight, block.X.shape[0])


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
