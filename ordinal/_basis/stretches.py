"""Rows of one process whose sums are taken by tasks of an executor.

Each part is a stretch of chunks of the rows, so that its sums are those that one
process would take, and the sums of all parts are added as there. A sample of the rows
has chunks as well: a part takes those that end among its rows, and is sent the few rows
of the first one that lie before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._input.blocks import CHUNK, stacked
from .._input.sent import Sent
from .._input.types import Executor, Matrix
from .._model.monitor import Monitor
from .._numerics.crew import Move, Question
from .._numerics.rows import take
from .._numerics.threads import resolve_n_threads
from .._numerics.tree import Node, merged
from .features import Features
from .levels import stratified
from .losses import Losses
from .placed import RowsOnBasis, SumsOf, keeping
from .precise import Values
from .remote import Remembering, RemoteRows
from .sums import Features as FeaturesOfRows
from .sums import Kept, Rows, Sums
from .tasks import TaskCrew, Tasks

_UNEVEN = 0.05  # share of a part by which another one may be longer


def bounds(chunks: int, parts: int) -> list[int]:
    """Where parts of about as many chunks begin and end: at multiples of large powers
    of two, so that their sums are few nodes of the tree."""
    size, ends = chunks / parts, [0]
    for part in range(1, parts):
        unit = 1 << chunks.bit_length()
        while abs(round(part * size / unit) * unit - part * size) > _UNEVEN * size:
            if unit == 1:
                break
            unit //= 2
        ends.append(round(part * size / unit) * unit)
    return [*ends, chunks]


class Drawn(NamedTuple):
    """What a part is sent of a sample of the rows.

    Attributes
    ----------
    first, of : int
        The number of its first chunk, and how many the sample has.
    before : matrix
        The rows that lie before those of the part.
    numbers : (k,) array
        Of the others, within the part.
    rank, weight : arrays
        Of both.
    """

    first: int
    of: int
    before: Matrix
    numbers: np.ndarray
    rank: np.ndarray
    weight: np.ndarray


class StretchPart(Remembering):
    """A stretch of the rows at a task.

    Parameters
    ----------
    sent : Sent
        The rows.
    features : Features
    rank, weight : arrays
    first, of : int
        The number of the first chunk, and how many there are.
    keep : array of bool
        The chunks whose features are kept.
    costly : bool
        Whether those of some chunk of any part are not.
    n_threads : int
    """

    def __init__(
        self,
        sent: Sent,
        features: Features,
        rank: np.ndarray,
        weight: np.ndarray,
        first: int,
        of: int,
        keep: np.ndarray,
        costly: bool,
        n_threads: int,
    ):
        super().__init__()
        self._X, self._features = sent.opened(), features
        self._labels = rank, weight
        self._whole, self._chunks = (first, of), of
        self._keep, self._costly = keep, costly
        self._n_threads = resolve_n_threads(n_threads)
        self._Z: RowsOnBasis | None = None

    def _begun(self, losses: Losses, drawn: Drawn | None) -> Iterator[Rows]:
        n_threads = self._n_threads
        if drawn is None:
            first, self._chunks = self._whole
            Z: FeaturesOfRows = self._filled()
            yield Rows(Z, *self._labels, losses, n_threads, chunk=first)
            return
        first, self._chunks = drawn.first, drawn.of
        if drawn.rank.size:
            Z = self._sampled(drawn)
            yield Rows(Z, drawn.rank, drawn.weight, losses, n_threads, chunk=first)

    def _doubled(self) -> Iterator[Rows]:
        for rows in self._rows:
            yield rows.in_double(Values(self._features, self._X))

    def _nodes(self, question: Question) -> list[Node]:
        name, arguments = question.name, question.arguments
        return merged(
            (node for rows in self._rows for node in getattr(rows, name)(*arguments)),
            self._chunks,
        )

    def _filled(self) -> RowsOnBasis:
        if self._Z is None:
            self._Z = self._on_basis(self._X, self._keep, self._costly)
        return self._Z

    def _sampled(self, drawn: Drawn) -> FeaturesOfRows:
        if self._costly:
            own = [take(self._X, drawn.numbers)] if drawn.numbers.size else []
            X = stacked([drawn.before, *own] if len(drawn.before) else own)
            return self._on_basis(X, keeping(len(X), len(X)), False)
        k = len(drawn.before)
        before = np.empty((k, self._features.m), np.float32)
        if k:
            self._features.single(drawn.before, before)
        return Joined(before, Kept(self._filled().kept, drawn.numbers))

    def _on_basis(self, X: Any, keep: np.ndarray, costly: bool) -> RowsOnBasis:
        return RowsOnBasis(self._features, X, keep, self._n_threads, costly)


class Joined:
    """Features of some rows, and of others that come after them."""

    costly = False

    def __init__(self, before: np.ndarray, after: Kept):
        self._before, self._after = before, after
        self.n, self.m = len(before) + after.n, after.m

    def block(self, rows: slice) -> np.ndarray:
        size = rows.stop - rows.start
        return self.picked(rows, np.arange(size), np.empty((size, self.m), np.float32))

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        of, k = rows.start + places, len(self._before)
        cut = int(np.searchsorted(of, k))
        out[:cut] = self._before[of[:cut]]
        if cut < of.size:
            self._after.picked(slice(0, self._after.n), of[cut:] - k, out[cut:])
        return out


class Sample(NamedTuple):
    """What all parts are sent of a sample."""

    parts: list[Drawn]


class RowsAtTasks:
    """Rows of this process, sums of which are taken by tasks of an executor.

    Parameters
    ----------
    features, X, rank, weight, n_threads, rng, monitor
        As for `fitting.BasisFit`; n_threads are those of each task.
    room : int
        For how many rows features may be kept by all tasks together.
    executor : Executor
    """

    def __init__(
        self,
        features: Features,
        X: Any,
        rank: np.ndarray,
        weight: np.ndarray,
        room: int,
        executor: Executor,
        n_threads: int,
        rng: np.random.Generator,
        monitor: Monitor,
    ):
        self._features, self._X = features, X
        self._rank, self._weight, self._room = rank, weight, room
        self._n_threads, self._rng, self._monitor = n_threads, rng, monitor
        self._executor = executor
        self._keep = keeping(rank.size, room)
        self._tasks: Tasks | None = None
        self._rows: RemoteRows | None = None

    def sample(self, size: int) -> SumsOf:
        """Of about so many rows: of each rank its share."""
        numbers = stratified(self._rank, min(size, self._room), self._rng)
        rows = self._begun()
        with self._monitor.limited():
            sample = self._drawn(numbers)
        return lambda losses: rows.sums(losses, sample)

    def every(self) -> SumsOf:
        """Of all rows."""
        rows = self._begun()
        return lambda losses: rows.sums(losses, None)

    def in_double(self, sums: Any) -> Sums:
        """For features in double, of what `every` has made."""
        double: Sums = sums.in_double()
        return double

    def close(self) -> None:
        """Tasks end."""
        if self._tasks is not None:
            self._tasks.close()
        self._rows = None

    def _begun(self) -> RemoteRows:
        if self._rows is None:
            self._tasks = self._tasks or Tasks(self._executor)
            with self._monitor.stage("workers"), self._monitor.limited():
                held = self._tasks.gather(self._keep.size)
            self._bounds = bounds(self._keep.size, len(held))
            crew = TaskCrew(self._tasks, held, self._part, _for_part)
            self._rows = RemoteRows(crew, self._rank.size, self._features.m)
        return self._rows

    def _part(self, part: int) -> Any:
        """What makes a part."""
        chunks = slice(*self._bounds[part : part + 2])
        rows = slice(chunks.start * CHUNK, min(chunks.stop * CHUNK, self._rank.size))
        return partial(
            StretchPart, Sent.of(self._X, rows), self._features, self._rank[rows],
            self._weight[rows].astype(np.float32), chunks.start, self._keep.size,
            self._keep[chunks], not self._keep.all(), self._n_threads,
        )  # fmt: skip

    def _drawn(self, numbers: np.ndarray) -> Sample:
        """The chunks of a sample by the parts in which they end."""
        starts = np.array(self._bounds[:-1]) * CHUNK
        chunks = -(-numbers.size // CHUNK)
        last = numbers[np.minimum(np.arange(1, chunks + 1) * CHUNK, numbers.size) - 1]
        of = np.searchsorted(starts, last, side="right") - 1  # the part of each chunk
        ends = np.searchsorted(of, np.arange(len(starts) + 1))
        cut = [numbers[a * CHUNK : b * CHUNK] for a, b in pairwise(ends)]
        before = [own[own < start] for own, start in zip(cut, starts, strict=True)]
        X = take(self._X, np.concatenate(before))
        stops = np.cumsum([some.size for some in before])
        return Sample([
            Drawn(
                int(first), chunks, take(X, slice(int(stop - some.size), int(stop))),
                own[some.size :] - start, self._rank[own],
                self._weight[own].astype(np.float32),
            )
            for first, own, some, start, stop
            in zip(ends[:-1], cut, before, starts, stops, strict=True)
        ])  # fmt: skip


def _for_part(part: int, question: Question) -> Question:
    """A question whose samples are what one part is sent of them."""
    moves = tuple(
        Move(move.name, tuple(_of(part, argument) for argument in move.arguments))
        for move in question.moves
    )
    return question._replace(moves=moves)


def _of(part: int, argument: Any) -> Any:
    return argument.parts[part] if isinstance(argument, Sample) else argument
