"""The first pass over rows in blocks: how many there are, their ranks and weights, and
the moments of their columns."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .blocks import CHUNK, Arrays, Block, Reader, Rows, has_blocks
from .checks import as_array, check_spans
from .columns import Categories
from .labels import classes_in_rank_order, declared_categories, ranks_of, read_labels
from .moments import Moments
from .problem import Problem
from .sparse import frozen
from .weights import class_weights, sample_weights, total_weights

_LARGE = 1 << 26  # bytes


@dataclass(frozen=True, slots=True, eq=False)
class BlockProblem(Problem):
    """Training data that are read in blocks: as `Problem`, but

    Attributes
    ----------
    X : Rows
        To be read again at every pass.
    weight, sample_weight : (n,) float64
        Ones that take no memory where no weights are given.
    moments : Moments or None
        Of the columns, by `sample_weight`; None of sparse ones.
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
        for start in range(0, self.rank.size, CHUNK):  # bincount copies what it counts
            rows = slice(start, start + CHUNK)
            mass += np.bincount(self.rank[rows], self.weight[rows], mass.size)
        return mass > 0

    def part(self, numbers: np.ndarray) -> Problem:
        """The problem of rows that are few enough to be held."""
        rank, weight, sample = (
            a[numbers] for a in (self.rank, self.weight, self.sample_weight)
        )
        X = self.X.take(numbers)
        return Problem(X, rank, self.classes, weight, sample, self.feature_names)

    def kept(self, numbers: np.ndarray, share: np.ndarray | None = None) -> Self:
        """The problem of the rows of these numbers, increasing, to be read as all of
        them are, with so much of their weights. It has no moments."""
        return replace(
            self,
            X=self.X.kept(numbers, share),
            rank=frozen(self.rank[numbers]),
            weight=_shared(self.weight, numbers, share),
            sample_weight=_shared(self.sample_weight, numbers, share),
            moments=None,
        )

    def measured(self) -> Self:
        """The same with the moments of its columns, by a pass over dense rows."""
        if self.moments is not None:
            return self
        return replace(self, moments=self.X.moments(self.sample_weight))

    def weighed(self, class_weight: Any) -> Self:
        """The same with the weights of classes, too."""
        if class_weight is None:
            return self
        about = self.classes, self.rank
        weight = total_weights(self.sample_weight, class_weight, *about)
        factor = class_weights(class_weight, *about, self.sample_weight)
        return replace(self, X=self.X.weighed(factor), weight=frozen(weight))

    def blocks(self) -> Generator[Block, None, None]:
        """The rows as a source gives them."""
        start = 0
        with closing(self.X.chunks()) as chunks:
            for X in chunks:
                rows = slice(start, start + X.shape[0])
                y = self.classes[self.rank[rows]]
                yield Block(X, y, self.sample_weight[rows])
                start = rows.stop

    def transformed(
        self, transform: Callable[[Any], np.ndarray], moments: Moments
    ) -> BlockProblem:
        """The same with features that are made of those of some rows, and moments of
        what is made; as many columns of the same names."""
        return replace(self, X=self.X.transformed(transform), moments=moments)

    @classmethod
    def from_blocks(
        cls,
        X: Any,
        y: Any = None,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        missing: bool = False,
    ) -> BlockProblem:
        """Read and validate all rows once.

        Parameters
        ----------
        X : object with `blocks()`, or array such as a numpy.memmap
        y : (n,) labels, beside an array alone
        sample_weight : (n,) weights >= 0, optional, beside an array alone
        classes, class_weight, missing
            As for `Problem.from_arrays`; what may be missing has no moments.

        Raises
        ------
        ValueError, TypeError
            As `Problem.from_arrays`; what is wrong with the rows names their block.
        """
        source, classes = source_of(X, y, classes, sample_weight)
        reader, ranker = Reader(source, missing), _Ranker(classes)
        ranks, weights = [], []
        moments: Moments | None = None
        with closing(reader.chunks(ranks=ranker.ranks)) as chunks:
            for rows, rank, weight in chunks:
                ranks.append(rank.astype(np.min_scalar_type(rank.max())))
                if weight is not None:
                    weights.append(weight)
                if not (reader.is_sparse or missing):
                    w = np.ones(rank.size) if weight is None else weight
                    part = Moments.of(rows, w)
                    moments = moments.joined(part) if moments else part
        rank, classes = ranker.finish(ranks)
        sample, weight = _weights(weights, class_weight, classes, rank)
        names = reader.feature_names
        rows = Rows(reader, rank.size)
        problem = cls(rows, rank, classes, weight, sample, names, moments)
        problem.check_classes()
        return problem


def read_problem(
    X: Any,
    y: Any,
    *,
    in_blocks: bool = False,
    in_place: bool = False,
    missing: bool = False,
    categories: Categories | None = None,
    **labels: Any,
) -> Problem:
    """Training data as a fit can take them: all at once or, of a source, a memmap too,
    `in_blocks`. So is a large array in single precision if it may stay `in_place`: a
    copy in double would take twice its memory. A problem that was read in blocks is
    taken as it is, with weights of classes if there are any. TypeError for a source of
    a fit that can not."""
    if in_blocks and isinstance(X, BlockProblem):
        return X.weighed(labels.get("class_weight"))
    stays = in_place and is_single(X) and X.nbytes >= _LARGE
    if in_blocks and (reads_in_blocks(X) or stays):
        return BlockProblem.from_blocks(X, y, missing=missing, **labels)
    if has_blocks(X):
        raise TypeError(
            "X comes in blocks, which a fit reads for a model on a basis alone: pass "
            "how many rows that is to have, such as basis=300"
        )
    return Problem.from_arrays(X, y, missing=missing, categories=categories, **labels)


def reads_in_blocks(X: Any) -> bool:
    """Whether `read_problem` takes X in blocks, whatever its size."""
    return has_blocks(X) or isinstance(X, np.memmap)


def is_single(X: Any) -> bool:
    """Whether X is an array in single precision."""
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float32


def source_of(X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Any, Any]:
    """A source of blocks with labels, and the classes that are known of it, from what a
    caller gives of it or of arrays. ValueError if the two are mixed up."""
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
    """An array, or a map of a file as it is."""
    return values if isinstance(values, np.memmap) else as_array(values, name)


class _Ranker:
    """Makes ranks of labels, block by block.

    Where the classes are not given, ranks are numbers in the order in which labels
    appear, until `finish`.
    """

    def __init__(self, classes: Any):
        self.classes = None if classes is None else _declared(classes)
        self.number: dict[Any, int] = {}

    def ranks(self, y: Any, n: int) -> np.ndarray:
        if self.classes is None and not self.number:
            classes = declared_categories(y)
            self.classes = None if classes is None else _declared(classes)
        labels = read_labels(y, "y")
        if labels.size != n:
            raise ValueError(f"y has shape {labels.shape}, expected ({n},) as X")
        if self.classes is not None:
            return ranks_of(labels, self.classes)
        seen = classes_in_rank_order(labels, None)
        numbers = [self.number.setdefault(v, len(self.number)) for v in seen.tolist()]
        return np.array(numbers)[np.searchsorted(seen, labels)]

    def finish(self, ranks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """All ranks, (n,) int32, and the classes."""
        rank = np.concatenate(ranks)
        if self.classes is not None:
            return frozen(rank.astype(np.int32)), self.classes
        labels = read_labels(list(self.number), "y")
        classes = classes_in_rank_order(labels, None)
        return frozen(ranks_of(labels, classes)[rank]), classes


def _declared(classes: Any) -> np.ndarray:
    return classes_in_rank_order(np.empty(0), classes)


def _shared(
    weight: np.ndarray, numbers: np.ndarray, share: np.ndarray | None
) -> np.ndarray:
    """So much of the weights of some rows; ones that take no memory stay such."""
    if weight.strides == (0,) and share is None:
        return np.broadcast_to(weight[0], numbers.shape)
    return frozen(weight[numbers] if share is None else weight[numbers] * share)


def _weights(
    blocks: list[np.ndarray], class_weight: Any, classes: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sample weights, and these times those of the classes."""
    if blocks:
        sample = sample_weights(np.concatenate(blocks), rank.size)
    else:
        sample = np.broadcast_to(1.0, rank.shape)
        if class_weight is None:
            return sample, sample
    return sample, total_weights(sample, class_weight, classes, rank)
