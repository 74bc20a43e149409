"""Fits on a basis whose rows are at workers: their sums, samples and events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._input.types import Matrix
from .._model.kernel_fit import KernelOptions
from .._quadratic.losses import Losses
from .._quadratic.on_basis import RowsOnBasis, SumsOf, basis_rows, cached_chunks
from .._quadratic.proximal import KernelValues
from .._quadratic.sums import FeatureRows, LeadingFeatures, Nodes, RowSums, Sums
from .._rows.sums import Parts, merged, whole
from ..kernels.basis_rows import stratified
from ..kernels.features import Features
from .rows import DaskRows
from .transport import Event, RemoteState, WorkerPart


def needed(events: Sequence[Event]) -> tuple[Event, ...]:
    """Drop events that later events overwrite.

    The events are "begin" (losses, number of features, share of the rows, seed),
    "move_to" (w, b, sigma), "accept", and "double", after which sums are in double
    precision.
    """
    begun = [k for k, event in enumerate(events) if event.name == "begin"]
    events = events[begun[-1] :] if begun else events
    moves = [k for k, event in enumerate(events) if event.name == "move_to"]
    # Sums know the last two points; an accepted point is also in their g.
    accepted = {k - 1 for k, event in enumerate(events) if event.name == "accept"}
    overwritten = set(moves[:-2]) - accepted
    return tuple(event for k, event in enumerate(events) if k not in overwritten)


class BlockFeatures(FeatureRows, Protocol):
    """Features of the rows of a block at a worker."""

    def restricted_to(self, numbers: np.ndarray) -> FeatureRows:
        """Return the features of some of the rows."""
        ...


class BlockState(NamedTuple):
    """Arguments of `RowSums` for the rows of a block.

    `double` are the features in double precision, in which a fit of all rows ends.
    """

    Z: BlockFeatures
    double: FeatureRows
    rank: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        return self.Z.n

    @property
    def size(self) -> int:
        return 4 * self.Z.n * self.Z.m


class BasisPart(WorkerPart):
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
        self, losses: Losses, m: int, share: float = 1, seed: int = 0
    ) -> Iterator[RowSums]:
        """Yield the sums of a problem over each block.

        They are over all rows with all features, or over a share of the rows with the
        first m features.
        """
        for number, block in zip(self._numbers, self._states, strict=True):
            Z, rank, weight = block.Z, block.rank, block.weight
            if share < 1:
                rng = np.random.default_rng([seed, number])
                rows = stratified(rank, round(share * Z.n), rng)
                Z, rank, weight = Z.restricted_to(rows), rank[rows], weight[rows]
                Z = Z if m == Z.m else LeadingFeatures(Z, m)
            yield RowSums(Z, rank, weight, losses, self._n_threads)


class RemoteSums(Sums):
    """`Sums` over rows at workers.

    Parameters
    ----------
    state : RemoteState
        State of `BasisPart`s in which the problem has begun.
    n, m : int
        Numbers of rows and of features.
    losses : Losses
    """

    def __init__(self, state: RemoteState, n: int, m: int, losses: Losses):
        self.n, self.m, self.losses = n, m, losses
        self._state = state

    def accept(self) -> None:
        self._state.record("accept")

    def in_double(self) -> RemoteSums:
        """Return the sums with features in double precision, and with the same g."""
        self._state.record("double")
        return RemoteSums(self._state, self.n, self.m, self.losses)

    def curvature(self, share: float) -> np.ndarray:
        (H,) = self._state.sum("curvature", share, symmetric=True)
        return np.asarray(H / share)

    def _move_to(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        self._state.record("move_to", w, b, sigma)

    def _sum(self, request: str, *arguments: Any) -> Parts:
        return self._state.sum(request, *arguments)


class DaskBasisRows:
    """Rows at workers, where samples are drawn, too.

    Parameters
    ----------
    features, X, rank, weight, options
        As for `BasisFit`; the weights are at the workers already.
    room : int
        Number of rows whose features one worker may cache.
    """

    def __init__(
        self,
        X: DaskRows,
        features: Features,
        rank: np.ndarray,
        weight: np.ndarray,
        room: int,
        options: KernelOptions,
    ):
        # Sums are added over workers, so all workers must compute them alike: from
        # features, not from kernel values, unless one worker may cache all rows.
        self._make = partial(_block_state, features, room < len(X))
        self._X, self._m, self._room = X.with_codes(rank[X.examples]), features.m, room
        self._rng = np.random.default_rng(options.seed)
        self._monitor = options.monitor
        self._state: RemoteState | None = None

    def sample(self, size: int, m: int) -> SumsOf:
        """Draw about `size` rows, stratified by block and rank, with their first m
        features.
        """
        # Workers draw their own rows: only a share and a seed are sent.
        share, seed = size / len(self._X), int(self._rng.integers(2**31))
        return lambda losses: self._sums(losses, m, share, seed)

    def every(self) -> SumsOf:
        """Return a function of the sums over all rows."""
        return lambda losses: self._sums(losses, self._m)

    def in_double(self, sums: Any) -> Sums:
        """Return sums over all rows with features in double precision."""
        double: Sums = sums.in_double()
        return double

    def close(self) -> None:
        """Release the states; dask frees them when nothing refers to them."""
        self._state = None

    def _sums(self, losses: Losses, m: int, *sample: Any) -> RemoteSums:
        """Begin a problem of all rows or of a sample, which replaces the last one."""
        if self._state is None:
            with self._monitor.stage("features"), self._monitor.limited():
                self._state = self._X.with_parts(
                    self._make, self._room, BasisPart, needed
                )
        self._state.record("begin", losses, m, *sample)
        return RemoteSums(self._state, len(self._X), m, losses)


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
    return BlockState(Z, KernelValues(features, X), rank, weight.astype(np.float32))


basis_rows.register(DaskRows, DaskBasisRows)
