"""Where the rows of a fit on a basis are: here, or at workers.

In either place features are kept for as many rows as there is room for, and sums are
taken of samples of the rows and of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._input.at_workers import LabelReader, RowsAtWorkers
from .._input.blocks import CHUNK, Block
from .._input.types import Index, Matrix
from .._model.monitor import Monitor
from .._numerics.crew import DaskCrew
from .._numerics.pool import Pool
from .._numerics.rows import strips, take
from .features import Features
from .levels import stratified
from .losses import Losses
from .precise import Values
from .remote import Labelled, LabelledPart, RemoteRows
from .sums import Features as FeaturesOfRows
from .sums import Kept, LocalSums, Rows, Sums, taken

SumsOf: TypeAlias = Callable[[Losses], Sums]  # of a problem, for the same rows


def keeping(n: int, room: int) -> np.ndarray:
    """Of which chunks of n rows features are kept where there is room for so many: all,
    or some that are spread evenly, so that a share of the chunks has its share."""
    chunks = -(-n // CHUNK)
    if n <= room:
        return np.ones(chunks, bool)
    kept = max(room // CHUNK - 1, 0)  # as the features made of others take room, too
    return np.diff(np.arange(chunks + 1) * kept // chunks) > 0


class RowsOnBasis:
    """Features of rows in single precision: kept for as many as there is memory for,
    and made for the others whenever they are asked for.

    Parameters
    ----------
    features : Features
    X : (n, d) matrix
    keep : (chunks,) array of bool
        Which features are kept.
    n_threads : int
    costly : bool, optional
        Whether those of other rows of the same sums are made whenever they are asked
        for: what is summed must be alike for all rows. By default those of these rows.
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
        self._lag = np.cumsum(~keep) * CHUNK  # of the place of a row behind its number
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
        """Where those of a chunk are kept, or of a part of it."""
        lag = int(self._lag[rows.start // CHUNK])
        return slice(rows.start - lag, rows.stop - lag)

    def among(self, numbers: np.ndarray, room: int = 0) -> FeaturesOfRows:
        """Those of some rows, which are kept. Where there is room for so many rows
        beside, they are gathered once and not at each step."""
        if len(self.kept) == self.n:
            if numbers.size <= room:
                return Kept(self.kept.take(numbers, axis=0))
            return Kept(self.kept, numbers)
        some = take(self._X, numbers)
        return RowsOnBasis(
            self._features, some, keeping(len(some), len(some)), self._n_threads
        )


class RowsHere:
    """Rows of this process.

    Parameters
    ----------
    features, X, rank, weight, n_threads, rng, monitor
        As for `fitting.BasisFit`.
    room : int
        For how many rows features may be kept.
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
        self._whole: RowsOnBasis | None = None

    def sample(self, size: int) -> SumsOf:
        """Of about so many rows: of each rank its share."""
        numbers = stratified(self._rank, min(size, self._room), self._rng)
        if (n := self._rank.size) <= self._room:
            some = self._fill().among(numbers, self._room - n)
            return partial(self._sums, some, numbers)
        some = self._made(take(self._X, numbers), numbers.size)
        return partial(self._sums, some, numbers)

    def every(self) -> SumsOf:
        """Of all rows."""
        return partial(self._sums, self._fill(), slice(None))

    def in_double(self, sums: Any) -> Sums:
        """For features in double, of what `every` has made."""
        double: Sums = sums.in_double(Values(self._features, self._X))
        return double

    def close(self) -> None:
        """All is in this process."""

    def _sums(self, Z: FeaturesOfRows, rows: Index, losses: Losses) -> LocalSums:
        rank, weight = self._rank[rows], self._weight[rows].astype(np.float32)
        return LocalSums(Rows(Z, rank, weight, losses, self._n_threads))

    def _fill(self) -> RowsOnBasis:
        if self._whole is None:
            self._whole = self._made(self._X, self._room)
        return self._whole

    def _made(self, X: Matrix, room: int) -> RowsOnBasis:
        with self._monitor.stage("features"), self._monitor.limited():
            keep = keeping(len(X), room)
            return RowsOnBasis(self._features, X, keep, self._n_threads)


class RowsThere:
    """Rows at workers; samples are drawn where they lie.

    Parameters
    ----------
    features, X, rank, rng, monitor
        As for `fitting.BasisFit`.
    room : int
        For how many rows a worker may keep features.
    """

    def __init__(
        self,
        features: Features,
        X: RowsAtWorkers,
        rank: np.ndarray,
        room: int,
        rng: np.random.Generator,
        monitor: Monitor,
    ):
        costly = room < len(X)
        self._read = BlockReader(features, X.labels, rank[X.examples], costly)
        self._X, self._room, self._rng, self._monitor = X, room, rng, monitor
        self._rows: RemoteRows | None = None

    def sample(self, size: int) -> SumsOf:
        """Of about so many rows: of each block and rank its share."""
        share, seed = size / len(self._X), int(self._rng.integers(2**31))
        return lambda losses: self._begun().sums(losses, share, seed)

    def every(self) -> SumsOf:
        """Of all rows."""
        return self._begun().sums

    def in_double(self, sums: Any) -> Sums:
        """For features in double, of what `every` has made."""
        double: Sums = sums.in_double()
        return double

    def close(self) -> None:
        """Dask lets go of the parts when nothing refers to them."""
        self._rows = None

    def _begun(self) -> RemoteRows:
        if self._rows is None:
            with self._monitor.stage("features"), self._monitor.limited():
                crew = DaskCrew(
                    self._X.client, self._X.blocks, self._room, self._read, LabelledPart
                )
            self._rows = RemoteRows(crew, len(self._X), self._read.features.m)
        return self._rows


@dataclass(frozen=True, slots=True, eq=False)
class BlockReader:
    """Makes of a block at a worker what sums are taken of.

    Attributes
    ----------
    features : Features
    labels : LabelReader
    rank : (r,) array of int32
        Which entry of the tables of losses is that of a class.
    costly : bool
        Whether features of some rows may have to be made at each step. It is for all
        workers, as their sums are added.
    """

    features: Features
    labels: LabelReader
    rank: np.ndarray
    costly: bool

    def __call__(self, block: Block, room: int, n_threads: int) -> Labelled:
        X, of_class, weight, _ = self.labels(block)
        keep = keeping(len(X), room)
        Z = RowsOnBasis(self.features, X, keep, n_threads, self.costly)
        double = Values(self.features, X)
        return Labelled(Z, double, self.rank[of_class], weight.astype(np.float32))
