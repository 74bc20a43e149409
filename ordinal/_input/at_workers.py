"""Rows of dask arrays and data frames, which stay where dask holds them.

A block of rows is a future of dask: a worker computes it, holds it, and computes it
anew if it was lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .blocks import CHUNK, Block, RowsInParts, in_block, rows_of, stacked
from .checks import as_array, shown
from .columns import feature_names
from .features import read_features
from .labels import (
    classes_in_rank_order,
    declared_categories,
    ranks_of,
    read_labels,
)
from .moments import Moments, joined
from .sparse import CSR, frozen
from .survey import BlockProblem
from .types import Matrix
from .weights import class_weights, row_weights, sample_weights, total_weights


def is_at_workers(X: Any) -> bool:
    """Whether X is a collection of dask, which is not imported for that."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


class RowsAtWorkers(RowsInParts):
    """The features of n rows, in blocks that workers of dask hold.

    Attributes
    ----------
    shape : (n, d)
    client : distributed.Client
    blocks : list of futures
        Of `Block`s as dask gave them: labels are labels.
    sizes : (blocks,) array
        Their rows.
    classes : (r,) array
    factor : (r,) array, or None
        What multiplies the weights of a class.
    rank : (n,) array of int32
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
    ):
        self.client, self.blocks, self.sizes = client, blocks, sizes
        self.shape = int(sizes.sum()), n_features
        self.classes, self.factor, self.rank = classes, factor, rank

    def __getitem__(self, numbers: np.ndarray) -> Matrix:
        return self.take(numbers)

    @property
    def labels(self) -> LabelReader:
        """Reads blocks at the workers."""
        return LabelReader(self.classes, self.factor)

    @property
    def examples(self) -> np.ndarray:
        """The number of a row of each class that has any, else 0, (r,)."""
        numbers = np.zeros(self.classes.size, np.intp)
        numbers[self.rank[::-1]] = np.arange(self.rank.size)[::-1]
        return numbers

    def take(self, numbers: np.ndarray) -> Matrix:
        """Copies of the rows of these numbers, in this order."""
        if len(numbers) == 0:
            return np.empty((0, self.shape[1]))
        order = np.argsort(numbers, kind="stable")
        wanted = np.asarray(numbers)[order]
        ends = np.cumsum(self.sizes)
        starts = np.searchsorted(wanted, ends - self.sizes)
        stops = np.searchsorted(wanted, ends)
        picked = [
            self.client.submit(_pick, block, wanted[a:b] - (end - size), pure=False)
            for block, size, end, a, b in zip(
                self.blocks, self.sizes, ends, starts, stops, strict=True
            )
            if a < b
        ]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return rows_of(stacked(self.client.gather(picked)), place)

    def kept(
        self, numbers: np.ndarray, share: np.ndarray | None = None
    ) -> RowsAtWorkers:
        """The rows of these numbers, increasing, and so much of their weights; they
        stay where they are."""
        ends = np.cumsum(self.sizes)
        starts = np.searchsorted(numbers, ends - self.sizes)
        stops = np.searchsorted(numbers, ends)
        blocks = []
        held = np.flatnonzero(starts < stops)
        for k in held.tolist():
            mine = slice(starts[k], stops[k])
            mask = np.zeros(self.sizes[k], bool)
            mask[numbers[mine] - (ends[k] - self.sizes[k])] = True
            part = None if share is None else share[mine]
            if part is not None and (part == 1).all():
                part = None
            blocks.append(
                self.client.submit(
                    _kept, self.blocks[k], np.packbits(mask), part, pure=False
                )
            )
        sizes, rank = (stops - starts)[held], frozen(self.rank[numbers])
        return self._with(blocks=blocks, sizes=sizes, rank=rank)

    def transformed(self, transform: Callable[[Any], np.ndarray]) -> RowsAtWorkers:
        """Blocks of what is made are held beside the others."""
        blocks = self.client.map(
            _transformed, self.blocks, transform=transform, pure=False
        )
        return self._with(blocks=blocks)

    def close(self) -> None:
        """Nothing is read here that had to end."""

    def weighed(self, factor: np.ndarray) -> RowsAtWorkers:
        return self._with(factor=factor)

    def moments(self, weight: np.ndarray) -> Moments | None:
        """By the weights at the workers."""
        return self._moments(None)

    def moments_by_all_weights(self) -> Moments | None:
        """With the factors of the classes."""
        return self._moments(self.labels)

    def _moments(self, labels: LabelReader | None) -> Moments | None:
        of_blocks = self.client.gather(
            self.client.map(_moments, self.blocks, labels=labels, pure=False)
        )
        if any(parts is None for parts in of_blocks):
            return None
        return joined([part for parts in of_blocks for part in parts])

    def mapped(self, call: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Of each block at its worker."""
        parts = self.client.map(_mapped, self.blocks, call=call, pure=False)
        return np.concatenate(self.client.gather(parts))

    def _with(self, **changes: Any) -> RowsAtWorkers:
        about: dict[str, Any] = {
            "client": self.client, "blocks": self.blocks, "sizes": self.sizes,
            "n_features": self.shape[1], "classes": self.classes,
            "factor": self.factor, "rank": self.rank,
        }  # fmt: skip
        return RowsAtWorkers(**about | changes)


def problem_at_workers(
    X: Any,
    y: Any,
    *,
    in_blocks: bool = True,
    classes: Any = None,
    sample_weight: Any = None,
    class_weight: Any = None,
) -> BlockProblem:
    """Training data of which the client of dask learns ranks, weights and the moments
    of the columns, and the workers keep the features.

    Parameters
    ----------
    X : (n, d) dask array or data frame
    y, sample_weight : (n,) dask array or series, or whatever fits make arrays of
    in_blocks : bool
        Whether the fit can take them.
    classes, class_weight
        As for `Problem.from_arrays`.

    Raises
    ------
    ValueError, TypeError
        As `Problem.from_arrays`; what is wrong with the rows names their block. There
        is no client.
    """
    if not in_blocks:
        raise TypeError(
            "X is a collection of dask, which a fit reads for a model on a basis "
            "alone: pass how many rows that is to have, such as basis=300"
        )
    if y is None:
        raise ValueError("y must hold the labels of X, got None")
    client = _client()
    if classes is None:
        classes = declared_categories(getattr(y, "_meta", y))
    if classes is not None:
        classes = classes_in_rank_order(np.empty(0), classes)
    names = None if not hasattr(X, "columns") else feature_names(X._meta)
    blocks, sizes = _blocks(client, X, y, sample_weight)
    starts = np.cumsum(sizes) - sizes
    asked = partial(_asked, client, blocks, starts)
    surveys = asked(_survey, ranked=classes is None)
    first = surveys[0]
    for k, survey in enumerate(surveys):
        with in_block(k, starts[k]):
            survey.check_like(first)
    if classes is None:
        seen = np.concatenate([survey.labels for survey in surveys])
        classes = classes_in_rank_order(seen, None)
    rank = frozen(np.concatenate(asked(_ranks, classes=classes)).astype(np.int32))
    if sample_weight is None:
        sample = np.broadcast_to(1.0, rank.shape)
    else:
        sample = sample_weights(np.concatenate(asked(_weights)), rank.size)
    weight, factor = sample, None
    if class_weight is not None:
        weight = total_weights(sample, class_weight, classes, rank)
        factor = class_weights(class_weight, classes, rank, sample)
    moments = joined([part for survey in surveys for part in survey.moments or ()])
    rows = RowsAtWorkers(client, blocks, sizes, first.width, classes, factor, rank)
    problem = BlockProblem(rows, rank, classes, weight, sample, names, moments)
    problem.check_classes()
    return problem


def of_each_block(
    X: Any, y: Any, sample_weight: Any, call: Callable[[Block], Any]
) -> list[Any]:
    """What a function gives for every block, (X, y, weight), at its worker. The
    arguments are those of `problem_at_workers`; an error that the function raises names
    the block."""
    client = _client()
    blocks, sizes = _blocks(client, X, y, sample_weight)
    return _asked(client, blocks, np.cumsum(sizes) - sizes, _called, call=call)


def _asked(
    client: Any, blocks: Sequence[Any], starts: np.ndarray, ask: Any, **options: Any
) -> list[Any]:
    """What all blocks answer; the error of the first one that has any."""
    answers = client.gather(client.map(ask, blocks, pure=False, **options))
    for k, answer in enumerate(answers):
        if isinstance(answer, Exception):
            with in_block(k, starts[k]):
                raise answer
    return list(answers)


def _client() -> Any:
    try:
        return import_module("distributed").get_client()
    except ValueError:
        raise ValueError(
            "X is a collection of dask, which needs a client: make one by "
            "distributed.Client(), or give X.compute()"
        ) from None


def _blocks(client: Any, X: Any, y: Any, weight: Any) -> tuple[list[Any], np.ndarray]:
    """Futures of blocks (X, y, weight), and how many rows each has."""
    dask: Any = import_module("dask")
    da: Any = import_module("dask.array")
    X = _array(X)
    if X.ndim != 2:
        raise ValueError(f"X must be 2-dimensional, got shape {X.shape}")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    parts = [X]
    for name, column in (("y", y), ("sample_weight", weight)):
        if column is None:
            continue
        if is_at_workers(column):
            column = _array(column)
        else:
            column = da.from_array(as_array(column, name))
        if column.shape != X.shape[:1]:
            raise ValueError(
                f"{name} has shape {column.shape}, expected ({X.shape[0]},) as X"
            )
        parts.append(column.rechunk(X.chunks[:1]))
    columns = [part.to_delayed().ravel().tolist() for part in parts]
    held = [dask.delayed(Block)(*block) for block in zip(*columns, strict=True)]
    return list(client.compute(held)), np.array(X.chunks[0])


def _array(X: Any) -> Any:
    """A dask array of known shape."""
    if hasattr(getattr(X, "dtype", None), "categories"):
        X = X.astype(object)
    if hasattr(X, "to_dask_array"):
        return X.to_dask_array(lengths=True)
    if not hasattr(X, "chunks"):
        raise TypeError(f"X must be a dask array or data frame, got {shown(X)}")
    return X if not np.isnan(X.shape).any() else X.compute_chunk_sizes()


class Read(NamedTuple):
    """A block as sums are taken of it: its features as they are held if that is dense,
    the ranks of its rows among all classes, their weights, and these without the
    factors of the classes."""

    X: Any
    rank: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class LabelReader:
    """Makes it of a block at a worker, which has been surveyed.

    Attributes
    ----------
    classes : (r,) array
        Of labels.
    factor : (r,) array, or None
        Of the weights of a class.
    """

    classes: np.ndarray
    factor: np.ndarray | None

    def __call__(self, block: Block) -> Read:
        X = read_features(block.X)
        if isinstance(block.X, np.ndarray):
            X = block.X  # which is held anyway, and perhaps in single precision
        rank = ranks_of(read_labels(block.y, "y"), self.classes)
        n = X.shape[0]
        sample = np.ones(n) if block.weight is None else row_weights(block.weight, n)
        weight = sample if self.factor is None else sample * self.factor[rank]
        return Read(X, rank, weight, sample)


class Survey(NamedTuple):
    """What the first pass tells of a block: its columns, its labels, and the moments of
    its chunks unless it is sparse."""

    width: int
    labels: np.ndarray
    moments: list[Moments | None] | None

    def check_like(self, first: Survey) -> None:
        """Raise TypeError or ValueError unless the columns are as another's."""
        if self.width != first.width:
            raise ValueError(f"X has {self.width} features, block 0 {first.width}")
        if (self.moments is None) != (first.moments is None):
            raise TypeError("X must be sparse in all blocks, or in none")


# What workers are asked. Errors are answers, so that it can be told which is the first.


def _survey(block: Block, ranked: bool) -> Survey | Exception:
    """`ranked` says that the labels' own order is that of the ranks."""
    try:
        X, labels = read_features(block.X), read_labels(block.y, "y")
        n = X.shape[0]
        if ranked:
            labels = classes_in_rank_order(labels, None)
        weight = np.ones(n) if block.weight is None else row_weights(block.weight, n)
    except (ValueError, TypeError) as error:
        return error
    moments = None if isinstance(X, CSR) else _of_chunks(X, weight)
    return Survey(X.shape[1], np.unique(labels), moments)


def _of_chunks(X: np.ndarray, weight: np.ndarray) -> list[Moments | None]:
    chunks = (slice(start, start + CHUNK) for start in range(0, len(X), CHUNK))
    return [Moments.of(X[rows], weight[rows]) for rows in chunks]


def _moments(block: Block, labels: LabelReader | None) -> list[Moments | None] | None:
    X = read_features(block.X)
    if isinstance(X, CSR):
        return None
    if labels is not None:
        return _of_chunks(X, labels(block).weight)
    weight = np.ones(len(X)) if block.weight is None else np.asarray(block.weight)
    return _of_chunks(X, weight)


def _transformed(block: Block, transform: Callable[[Any], np.ndarray]) -> Block:
    return block._replace(X=transform(read_features(block.X)))


def _mapped(block: Block, call: Callable[[Any], np.ndarray]) -> np.ndarray:
    return call(read_features(block.X))


def _called(block: Block, call: Callable[[Block], Any]) -> Any:
    try:
        return call(block)
    except (ValueError, TypeError) as error:
        return error


def _ranks(block: Block, classes: np.ndarray) -> np.ndarray | Exception:
    try:
        rank = ranks_of(read_labels(block.y, "y"), classes)
    except (ValueError, TypeError) as error:
        return error
    return rank.astype(np.min_scalar_type(classes.size))


def _weights(block: Block) -> np.ndarray:
    return row_weights(block.weight, block.X.shape[0])


def _kept(block: Block, packed: np.ndarray, share: np.ndarray | None) -> Block:
    """The rows of a mask, and so much of their weights. Labels stay labels."""
    n = block.X.shape[0]
    rows = np.flatnonzero(np.unpackbits(packed, count=n))
    weight = None if block.weight is None else np.asarray(block.weight)[rows]
    if share is not None:
        weight = share if weight is None else weight * share
    return Block(rows_of(block.X, rows), np.asarray(block.y)[rows], weight)


def _pick(block: Block, numbers: np.ndarray) -> Matrix:
    return read_features(rows_of(block.X, numbers))
