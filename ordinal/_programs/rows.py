"""Rows of a fit on a basis, with their features, in this process or at workers.

Features are cached for as many rows as memory allows. Sums are taken over samples of
the rows, and over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .._input.types import Index, Matrix
from .._numerics.pool import Pool
from .._numerics.rows import strips, take
from .._rows.remote import RemoteRows
from .._rows.source import CHUNK
from .._rows.sums import Parts, merged, whole
from .._rows.transport import Event, Part, RemoteState
from .._watch.monitor import Monitor
from ..kernels.basis_rows import stratified
from ..kernels.features import Features
from .losses import Losses
from .proximal import Values
from .sums import Asked, Kept, LocalSums, Nodes, RowSums, Sums, taken
from .sums import Features as FeaturesOfRows


def needed(events: Sequence[Event]) -> tuple[Event, ...]:
    """Drop events that later events overwrite.

    The events are "begin" (losses, share of the rows, seed), "go" (w, b, sigma),
    "take", and "double", after which sums are in double precision.
    """
    begun = [k for k, event in enumerate(events) if event.name == "begin"]
    events = events[begun[-1] :] if begun else events
    gone = [k for k, event in enumerate(events) if event.name == "go"]
    taken = {k - 1 for k, event in enumerate(events) if event.name == "take"}
    idle = set(gone[:-2]) - taken
    return tuple(event for k, event in enumerate(events) if k not in idle)


class BlockFeatures(FeaturesOfRows, Protocol):
    """Features of the rows of a block."""

    def restricted_to(self, numbers: np.ndarray) -> FeaturesOfRows:
        """Return the features of some of the rows."""
        ...


class BlockState(NamedTuple):
    """Arguments of `RowSums` for the rows of a block.

    `double` are the features in double precision, in which a fit of all rows ends.
    """

    Z: BlockFeatures
    double: FeaturesOfRows
    rank: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        return self.Z.n

    @property
    def size(self) -> int:
        return 4 * self.Z.n * self.Z.m


class BasisPart(Part):
    """Blocks of a worker, each a `BlockState`, with the sums of a problem."""

    def _apply(self, event: Event) -> None:
        if event.name == "begin":
            self._rows.clear()  # frees memory before the sums of the next problem exist
            self._rows = list(self._begun(*event.arguments))
        elif event.name == "double":
            self._rows = [
                rows.in_double(block.double)
                for rows, block in zip(self._rows, self._states, strict=True)
            ]
        else:
            for rows in self._rows:
                getattr(rows, event.name)(*event.arguments)

    def _sum(self, answer: Nodes) -> Parts:
        return whole(merged(answer))

    def _begun(
        self, losses: Losses, share: float = 1, seed: int = 0
    ) -> Iterator[RowSums]:
        """Yield the sums of a problem over all rows, or a share of each block."""
        for number, block in zip(self._numbers, self._states, strict=True):
            Z, rank, weight = block.Z, block.rank, block.weight
            if share < 1:
                rng = np.random.default_rng([seed, number])
                rows = stratified(rank, round(share * Z.n), rng)
                Z, rank, weight = Z.restricted_to(rows), rank[rows], weight[rows]
            yield RowSums(Z, rank, weight, losses, self._n_threads)


class RemoteSums(Asked):
    """`Sums` over rows at workers.

    Parameters
    ----------
    state : RemoteState
        Of `BasisPart`s, with the problem begun.
    n, m : int
        Numbers of rows and of features.
    losses : Losses
    """

    def __init__(self, state: RemoteState, n: int, m: int, losses: Losses):
        self.n, self.m, self.losses = n, m, losses
        self._state = state

    def take(self) -> None:
        self._state.record("take")

    def in_double(self) -> RemoteSums:
        """Return the sums with features in double precision, and with the same g."""
        self._state.record("double")
        return RemoteSums(self._state, self.n, self.m, self.losses)

    def _go(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        self._state.record("go", w, b, sigma)

    def _sum(self, question: str, *arguments: Any) -> Parts:
        return self._state.sum(question, *arguments)


SumsOf: TypeAlias = Callable[[Losses], Sums]  # sums of a problem over some rows


def cached_chunks(n: int, room: int) -> np.ndarray:
    """Choose the chunks whose features are cached, spread evenly; (chunks,) bool.

    `room` is the number of rows whose features fit into memory. With even spacing,
    every part of the rows has its share of cached chunks.
    """
    chunks = -(-n // CHUNK)
    if n <= room:
        return np.ones(chunks, bool)
    # one chunk less, because features that are not cached take room when they are made
    kept = max(room // CHUNK - 1, 0)
    return np.diff(np.arange(chunks + 1) * kept // chunks) > 0


class RowsOnBasis:
    """Features of rows in single precision, cached for some chunks.

    The features of the other chunks are computed at each use.

    Parameters
    ----------
    features : Features
    X : (n, d) matrix
    keep : (chunks,) array of bool
        The chunks whose features are cached.
    n_threads : int
    costly : bool, optional
        Whether some rows of the same sums have no cached features, here or at other
        workers; sums are then organised to use features less often. By default, whether
        some of these rows have none.
    """

    def __init__(
        self,
        features: Features,
        X: Matrix,
        keep: np.ndarray,
        n_threads: int,
        costly: bool | None = None,
    ):
        self._features, self._X, self._n_threads = features, X, n_threads
        self.n, self.m = len(X), features.m
        chunks = [
            rows for rows, kept in zip(strips(self.n, CHUNK), keep, strict=True) if kept
        ]
        n_kept = sum(rows.stop - rows.start for rows in chunks)
        self.kept = np.empty((n_kept, self.m), np.float32)
        self._lag = np.cumsum(~keep) * CHUNK  # rows before a chunk that are not cached
        self._keep = keep
        self.costly = n_kept < self.n if costly is None else costly

        def fill(rows: slice) -> None:
            features.single(take(X, rows), self.kept[self._places(rows)])

        with Pool(n_threads, brief=True) as pool:
            pool.run(fill, chunks)

    def block(self, rows: slice) -> np.ndarray:
        if self._keep[rows.start // CHUNK]:
            return self.kept[self._places(rows)]
        Z = np.empty((rows.stop - rows.start, self.m), np.float32)
        return self._features.single(take(self._X, rows), Z)

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        if self._keep[rows.start // CHUNK]:
            return taken(self.kept, self._places(rows).start + places, out)
        return self._features.single(take(self._X, rows.start + places), out)

    def _places(self, rows: slice) -> slice:
        """Return the place of rows of one chunk in the cache."""
        lag = int(self._lag[rows.start // CHUNK])
        return slice(rows.start - lag, rows.stop - lag)

    def restricted_to(self, numbers: np.ndarray, room: int = 0) -> FeaturesOfRows:
        """Return the features of some rows, cached.

        They are gathered once if there is room for so many rows more, otherwise at
        each use.
        """
        # All features are there: those of some rows are a matter of numbers.
        if len(self.kept) == self.n:
            if numbers.size <= room:
                return Kept(self.kept.take(numbers, axis=0))
            return Kept(self.kept, numbers)
        some = take(self._X, numbers)
        return RowsOnBasis(
            self._features, some, cached_chunks(len(some), len(some)), self._n_threads
        )


class LocalBasisRows:
    """Rows of this process.

    Parameters
    ----------
    features, X, rank, weight, n_threads, rng, monitor
        As for `fitting.BasisFit`.
    room : int
        Number of rows whose features may be cached.
    """

    def __init__(
        self,
        features: Features,
        X: Matrix,
        rank: np.ndarray,
        weight: np.ndarray,
        room: int,
        n_threads: int,
        rng: np.random.Generator,
        monitor: Monitor,
    ):
        self._features, self._X = features, X
        self._rank, self._weight, self._room = rank, weight, room
        self._n_threads, self._rng, self._monitor = n_threads, rng, monitor
        self._all: RowsOnBasis | None = None

    def sample(self, size: int) -> SumsOf:
        """Draw about `size` rows, a fair share of each rank."""
        # No more rows than there is room for: a sample is read again and again.
        numbers = stratified(self._rank, min(size, self._room), self._rng)
        if (n := self._rank.size) <= self._room:
            some = self._cached().restricted_to(numbers, self._room - n)
            return partial(self._sums, some, numbers)
        some = self._made(take(self._X, numbers), numbers.size)
        return partial(self._sums, some, numbers)

    def every(self) -> SumsOf:
        """Return a function of the sums over all rows."""
        return partial(self._sums, self._cached(), slice(None))

    def in_double(self, sums: Any) -> Sums:
        """Return sums over all rows with features in double precision."""
        double: Sums = sums.in_double(Values(self._features, self._X))
        return double

    def close(self) -> None:
        """Do nothing: no other process holds anything."""

    def _sums(self, Z: FeaturesOfRows, rows: Index, losses: Losses) -> LocalSums:
        rank, weight = self._rank[rows], self._weight[rows].astype(np.float32)
        return LocalSums(RowSums(Z, rank, weight, losses, self._n_threads))

    def _cached(self) -> RowsOnBasis:
        if self._all is None:
            self._all = self._made(self._X, self._room)
        return self._all

    def _made(self, X: Matrix, room: int) -> RowsOnBasis:
        with self._monitor.stage("features"), self._monitor.limited():
            keep = cached_chunks(len(X), room)
            return RowsOnBasis(self._features, X, keep, self._n_threads)


class RemoteBasisRows:
    """Rows at workers, where samples are drawn, too.

    Parameters
    ----------
    features, X, rank, rng, monitor
        As for `fitting.BasisFit`.
    room : int
        Number of rows whose features one worker may cache.
    """

    def __init__(
        self,
        features: Features,
        X: RemoteRows,
        rank: np.ndarray,
        room: int,
        rng: np.random.Generator,
        monitor: Monitor,
    ):
        # sums are added over workers, so that all must organise them in the same way
        self._make = partial(_block_state, features, room < len(X))
        self._X, self._m, self._room = X.with_codes(rank[X.examples]), features.m, room
        self._rng, self._monitor = rng, monitor
        self._state: RemoteState | None = None

    def sample(self, size: int) -> SumsOf:
        """Draw about `size` rows, a fair share of each block and rank."""
        # A share and a seed travel, not row numbers: workers draw for themselves.
        share, seed = size / len(self._X), int(self._rng.integers(2**31))
        return lambda losses: self._sums(losses, share, seed)

    def every(self) -> SumsOf:
        """Return a function of the sums over all rows."""
        return self._sums

    def in_double(self, sums: Any) -> Sums:
        """Return sums over all rows with features in double precision."""
        double: Sums = sums.in_double()
        return double

    def close(self) -> None:
        """Release the states; dask frees them when nothing refers to them."""
        self._state = None

    def _sums(self, losses: Losses, *sample: Any) -> RemoteSums:
        """Begin a problem of all rows or of a sample; the one before it is over."""
        if self._state is None:
            with self._monitor.stage("features"), self._monitor.limited():
                self._state = self._X.with_state(
                    self._make, self._room, BasisPart, needed
                )
        self._state.record("begin", losses, *sample)
        return RemoteSums(self._state, len(self._X), self._m, losses)


def _block_state(
    features: Features,
    costly: bool,
    X: Matrix,
    rank: np.ndarray,
    weight: np.ndarray,
    room: int,
    n_threads: int,
) -> BlockState:
    """Make the features of a block at its worker."""
    Z = RowsOnBasis(features, X, cached_chunks(len(X), room), n_threads, costly)
    return BlockState(Z, Values(features, X), rank, weight.astype(np.float32))
