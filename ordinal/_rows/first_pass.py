"""The first pass over a source: number of rows, ranks, weights and column moments."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._input.checks import as_array, check_spans
from .._input.immutable import read_only
from .._input.labels import (
    DROP_ARGUMENT,
    class_weights,
    classes_in_rank_order,
    declared_categories,
    is_by_value,
    ranks_of,
    read_labels,
    sample_weights,
    total_weights,
)
from .._input.problem import Problem
from .rows import LocalRows
from .source import CHUNK, Arrays, Block, Reader, has_blocks
from .sums import Moments


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedProblem(Problem):
    """Training data whose features are read in chunks; otherwise like `Problem`.

    Attributes
    ----------
    X : Rows
        Features, read again at every pass or held by workers.
    weight, sample_weight : (n,) float64
        Without weights, a view of a single 1 that takes no memory.
    moments : Moments or None
        Moments of dense columns, by `sample_weight`.
    """

    X: Any
    moments: Moments | None = None

    def check_spans(self) -> None:
        if self.moments is not None:
            check_spans(self.moments.low, self.moments.high, self.shown_names)

    def close(self) -> None:
        self.X.close()

    @property
    def present(self) -> np.ndarray:
        mass = np.zeros(self.n_classes)
        # By chunks, because bincount copies its arguments.
        for start in range(0, self.rank.size, CHUNK):
            rows = slice(start, start + CHUNK)
            mass += np.bincount(self.rank[rows], self.weight[rows], mass.size)
        return mass > 0

    def part(self, numbers: np.ndarray) -> Problem:
        """Return the problem of some rows, which are read into memory."""
        rank, weight, sample = (
            a[numbers] for a in (self.rank, self.weight, self.sample_weight)
        )
        X = self.X.take(numbers)
        return Problem(X, rank, self.classes, weight, sample, self.feature_names)

    def subset(self, numbers: np.ndarray, share: np.ndarray | None = None) -> Self:
        """Return the problem of the rows of these numbers, increasing, without moments.

        The rows are read as all rows are; `share` multiplies their weights.
        """
        return replace(
            self,
            X=self.X.subset(numbers, share),
            rank=read_only(self.rank[numbers]),
            weight=_shared(self.weight, numbers, share),
            sample_weight=_shared(self.sample_weight, numbers, share),
            moments=None,
        )

    def with_moments(self) -> Self:
        """Return the problem with the moments of dense columns, by one more pass."""
        if self.moments is not None:
            return self
        return replace(self, moments=self.X.moments(self.sample_weight))

    def with_class_weights(self, class_weight: Any) -> Self:
        """Multiply the weights of the rows by those of their classes."""
        if class_weight is None:
            return self
        about = self.classes, self.rank
        weight = total_weights(self.sample_weight, class_weight, *about)
        # Workers multiply by a factor per class: no weights of rows travel.
        factor = class_weights(class_weight, *about, self.sample_weight)
        return replace(
            self, X=self.X.with_class_weights(factor), weight=read_only(weight)
        )

    def blocks(self) -> Generator[Block, None, None]:
        """Yield the rows as a source does."""
        start = 0
        with closing(self.X.chunks()) as chunks:
            for X in chunks:
                rows = slice(start, start + X.shape[0])
                y = self.classes[self.rank[rows]]
                yield Block(X, y, self.sample_weight[rows])
                start = rows.stop

    def transformed(
        self, transform: Callable[[Any], np.ndarray], moments: Moments
    ) -> ChunkedProblem:
        """Return the problem of transformed features, with their moments.

        There are as many columns as before, of the same names.
        """
        return replace(self, X=self.X.transformed(transform), moments=moments)

    @classmethod
    def from_source(
        cls,
        X: Any,
        y: Any = None,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        missing: bool = False,
    ) -> ChunkedProblem:
        """Read and validate all rows once.

        Parameters
        ----------
        X : object with `blocks()`, or array such as a numpy.memmap
        y : (n,) labels, beside an array alone
        sample_weight : (n,) weights >= 0, optional, beside an array alone
        classes, class_weight, missing
            As for `Problem.from_arrays`; there are no moments with missing values.

        Raises
        ------
        ValueError, TypeError
            As `Problem.from_arrays`; errors in rows name the block.
        """
        source, classes = source_of(X, y, classes, sample_weight)
        reader, ranker = Reader(source, missing), _Ranker(classes)
        ranks, weights = [], []
        moments: Moments | None = None
        with closing(reader.chunks(ranks=ranker.ranks)) as chunks:
            for rows, rank, weight in chunks:
                # Mostly a byte per row: all ranks are held until the classes are known.
                ranks.append(rank.astype(np.min_scalar_type(rank.max())))
                if weight is not None:
                    weights.append(weight)
                # Sparse columns are not centred, and a column with NaN has no mean.
                if not (reader.is_sparse or missing):
                    w = np.ones(rank.size) if weight is None else weight
                    part = Moments.from_rows(rows, w)
                    moments = moments.joined(part) if moments else part
        rank, classes = ranker.finish(ranks)
        sample, weight = _weights(weights, class_weight, classes, rank)
        names = reader.feature_names
        rows = LocalRows(reader, rank.size)
        fields = rows, rank, classes, weight, sample, names
        problem = cls(*fields, moments=moments)
        problem.check_classes()
        return problem


def source_of(X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Return a source of labelled blocks, and the classes as far as they are known.

    X is a source, or an array beside arrays of labels and weights; ValueError if a
    source is given labels beside it.
    """
    if has_blocks(X):
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(f"{name} must be None: the blocks of X hold it")
        return X, classes
    if y is None:
        raise ValueError("y must hold the labels of X, got None")
    X = _array(X, "X")
    n = len(X) if X.ndim else 0
    if classes is None:
        classes = declared_categories(y)
    labels = _array(y, "y")
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, expected ({n},) as X")
    weight = None if sample_weight is None else sample_weights(sample_weight, n)
    return Arrays(X, labels, weight), classes


def _array(values: Any, name: str) -> np.ndarray:
    """Return an array, and a mapped file as it is."""
    return values if isinstance(values, np.memmap) else as_array(values, name)


class _Ranker:
    """Converter of labels to ranks, block by block.

    Without declared classes, ranks number the labels in their order of appearance
    until `finish` sorts them.
    """

    def __init__(self, classes: Any):
        self._sorted = classes if is_by_value(classes) else None
        known = None if classes is self._sorted else _declared(classes)
        self.classes = known
        self.number: dict[Any, int] = {}

    def ranks(self, y: Any, n: int) -> np.ndarray:
        """Return the numbers of the n labels of a block."""
        if self.classes is None and not self.number and self._sorted is None:
            classes = declared_categories(y)
            self.classes = None if classes is None else _declared(classes)
        labels = read_labels(y, "y", DROP_ARGUMENT)
        if labels.size != n:
            raise ValueError(f"y has shape {labels.shape}, expected ({n},) as X")
        if self.classes is not None:
            return ranks_of(labels, self.classes)
        seen = classes_in_rank_order(labels, self._sorted)
        # The loop is over labels and not over rows, because a block has few labels.
        numbers = [self.number.setdefault(v, len(self.number)) for v in seen.tolist()]
        return np.array(numbers)[np.searchsorted(seen, labels)]

    def finish(self, ranks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return all ranks, (n,) int32, and the classes."""
        rank = np.concatenate(ranks)
        if self.classes is not None:
            return read_only(rank.astype(np.int32)), self.classes
        # Sorted at the end, because a later block may bring a label between two others.
        labels = read_labels(list(self.number), "y")
        classes = classes_in_rank_order(labels, self._sorted)
        return read_only(ranks_of(labels, classes)[rank]), classes


def _declared(classes: Any) -> np.ndarray:
    """Return declared classes in rank order, without labels to check."""
    return classes_in_rank_order(np.empty(0), classes)


def _shared(
    weight: np.ndarray, numbers: np.ndarray, share: np.ndarray | None
) -> np.ndarray:
    """Multiply weights of some rows by shares; a view of one number stays a view."""
    if weight.strides == (0,) and share is None:
        return np.broadcast_to(weight[0], numbers.shape)
    return read_only(weight[numbers] if share is None else weight[numbers] * share)


def _weights(
    blocks: list[np.ndarray], class_weight: Any, classes: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sample weights, and their products with the weights of the classes."""
    if blocks:
        sample = sample_weights(np.concatenate(blocks), rank.size)
    else:
        # A view of one number saves 8 bytes per row.
        sample = np.broadcast_to(1.0, rank.shape)
        if class_weight is None:
            return sample, sample
    return sample, total_weights(sample, class_weight, classes, rank)
