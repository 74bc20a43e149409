"""Sums over the rows, through which the proximal solver sees them.

`Sums` is the protocol; its results are small arrays. Arrays with an entry per row
(features, scores, multipliers) stay behind it, so that the rows may be in memory, in a
file or at workers. `LocalSums` implements it for rows of this process.

Sums are taken over chunks of CHUNK rows, and the chunks' sums are added in pairs, pairs
of pairs and so on (`pairwise`), whoever computes them: the bytes of a fit do not depend
on the number of threads or of machines. Within a chunk products are in the precision of
the features, those of a block of `block_rows` rows at a time, and are added in double.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from .._numerics.memory import Scratch, zeros
from .._numerics.rows import strips
from .._numerics.threads import Pool, in_order
from .._rows.source import CHUNK
from .._rows.sums import Node, Parts, merged, whole
from .._solvers import _piecewise_linear
from .._watch.cancellation import check_cancelled
from ..kernels.features import TILE
from .losses import Losses

_ENTRIES = 1 << 19  # entries of Z in a block, so that its products stay in the cache
_SHARES, _MOST = 8, 16  # divisions of a thread's chunks; most chunks of a division
# Columns of a block of a Hessian: wide blocks are faster, but narrow ones give every
# thread some work where there are few columns.
_WIDE, _NARROW = 512, 128
_GOLDEN = 2654435769  # 2^32 over the golden ratio: its multiples fill a circle evenly


def block_rows(width: int) -> int:
    """Return the number of rows of one product, a power of two from 128 to CHUNK.

    It decreases with the number of features or groups per row.
    """
    rows = 128
    while rows < CHUNK and 2 * rows * width <= _ENTRIES:
        rows *= 2
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class BasisPoint:
    """Sums over the rows at (w, b).

    Here t are the multipliers after a proximal step from g with sigma.

    Attributes
    ----------
    sides : (2, T) array
        Sums of the positive and of the negative t.
    costs : (2, T) array
        Sums of phi(t) over the same.
    back : (m,) array
        Sum of z t.
    inside : (T,) array
        Number of t that change with b.
    envelope : float
        Sum of the Moreau envelopes t v - phi(t) - (t - g)^2 / (2 sigma), v = b - f.
    loss : float
        Sum of the losses phi*(v).
    """

    sides: np.ndarray
    costs: np.ndarray
    back: np.ndarray
    inside: np.ndarray
    envelope: float
    loss: float

    @classmethod
    def from_sums(cls, sums: np.ndarray, back: np.ndarray) -> BasisPoint:
        """Make a point from the sums that the kernel `point` returns."""
        by_kind = sums.T
        envelope, loss = by_kind[5:].sum(axis=1)
        return cls(
            by_kind[:2], by_kind[2:4], back, by_kind[4], float(envelope), float(loss)
        )


Nodes: TypeAlias = Generator[Node, None, None]


class FeatureRows(Protocol):
    """Features of certain rows, read in blocks or by number."""

    n: int
    m: int
    costly: bool  # whether features are computed at each use, at a dominating cost

    def mixing(self, chunk: slice) -> np.ndarray | None:
        """Return the matrix M, (m, m), by which blocks of a chunk are to be multiplied.

        The features are `block(rows)` M; None stands for the unit matrix.
        """
        ...

    def block(self, rows: slice, room: np.ndarray) -> np.ndarray:
        """Return features or kernel values of some rows, (rows, m), read-only.

        The result may lie in `room`, an array of as many rows of doubles or more:
        memory that is new costs more to fetch than kernel values to compute. Several
        threads may call at once.
        """
        ...

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Copy the features of some rows of a chunk, by their places, to `out`."""
        ...


class CachedFeatures:
    """Features in memory: all rows of an array, or the rows of these numbers."""

    def __init__(self, Z: np.ndarray, rows: np.ndarray | None = None):
        self._Z, self._rows = Z, rows
        self.n, self.m = len(Z) if rows is None else rows.size, Z.shape[1]
        self.costly = False

    def mixing(self, chunk: slice) -> None:
        return None

    def block(self, rows: slice, room: np.ndarray) -> np.ndarray:
        if self._rows is None:
            return self._Z[rows]
        return self._Z.take(self._rows[rows], axis=0)

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        numbers = rows.start + places
        if self._rows is not None:
            numbers = self._rows[numbers]
        return taken(self._Z, numbers, out)


class LeadingFeatures:
    """First m features of rows, which are those on the first m rows of the basis."""

    def __init__(self, Z: FeatureRows, m: int):
        self._Z, self.n, self.m, self.costly = Z, Z.n, m, Z.costly

    def mixing(self, chunk: slice) -> np.ndarray | None:
        M = self._Z.mixing(chunk)
        # M is upper triangular: a feature depends on the kernel values up to its own.
        return None if M is None else M[: self.m, : self.m]

    def block(self, rows: slice, room: np.ndarray) -> np.ndarray:
        room = np.empty((rows.stop - rows.start, self._Z.m))
        return self._Z.block(rows, room)[:, : self.m]

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        every = np.empty((places.size, self._Z.m), out.dtype)
        out[:] = self._Z.picked(rows, places, every)[:, : self.m]
        return out


def taken(Z: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Copy some of these rows of Z to `out`."""
    # The default mode "raise" would buffer the whole output.
    return Z.take(rows, axis=0, out=out, mode="clip")


def _mixed(back: np.ndarray, M: np.ndarray | None) -> np.ndarray:
    """Return sums of features from those of kernel values; M as in `mixing`."""
    return back if M is None else np.asarray(back @ M)


class Sums(ABC):
    """Sums over rows that a solver requests.

    g is zero at first. In the docstrings "here" is the last point that was evaluated,
    and "before" is the point evaluated before it. Subclasses define how a point and a
    request reach the rows.

    Attributes
    ----------
    n, m : int
        Numbers of rows and of features.
    losses : Losses
    n_threads : int
        Number of threads of this process that the solver may use.
    """

    n: int
    m: int
    losses: Losses
    n_threads: int = 1
    _by_side: np.ndarray | None = None  # (2 T, m) if `point` returns so many rows

    @abstractmethod
    def _move_to(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        """Move to a point, at which the next requests are answered."""

    @abstractmethod
    def _sum(self, request: str, *arguments: Any) -> Parts:
        """Return the sum over all chunks of the method of `RowSums` of this name."""

    @abstractmethod
    def accept(self) -> None:
        """Take the multipliers t of here as g."""

    def at(self, w: np.ndarray, b: np.ndarray, sigma: float) -> BasisPoint:
        """Evaluate the sums at a point."""
        self._move_to(w, b, sigma)
        return self._arrived(*self._sum("point"))

    def _arrived(self, sums: np.ndarray, back: np.ndarray) -> BasisPoint:
        """Return the point of here from the sums of `RowSums.point`."""
        self._by_side = back if len(back) > 1 else None
        return BasisPoint.from_sums(sums, back.sum(axis=0))

    def slopes(self, lengths: np.ndarray) -> np.ndarray:
        """Return the derivatives of the sum of envelopes at K lengths of a line, (K,).

        The line leads from before (length 0) to here (length 1) and beyond; sigma is
        that of here.
        """
        return self._sum("slopes", lengths)[0]

    def scaled_back(self, keep: np.ndarray) -> np.ndarray:
        """Return `back` of here for sides of groups multiplied by (2, T), (m,)."""
        if self._by_side is None:
            return self._sum("scaled_back", keep)[0]
        return np.asarray(keep.ravel() @ self._by_side)

    def curvature(self, share: float) -> np.ndarray:
        """Return the Hessian of the envelopes divided by sigma, (m + T, m + T).

        It is the sum of (z_i, -e_j) (z_i, -e_j)' over the free multipliers here, where
        e_j is a unit vector, for a random share of the rows and scaled up. Only the
        lower triangle is set.
        """
        return self._sum("curvature", share)[0] / share

    def loss(self, b: np.ndarray) -> float:
        """Return the sum of the losses for the scores of here and other thresholds."""
        return float(self._sum("loss", b)[0][0])

    def loss_slopes(self, grid: np.ndarray) -> np.ndarray:
        """Return the right slopes of the losses by each threshold, (T, K).

        They are for the scores of here, at thresholds (T, K) that increase.
        """
        return np.cumsum(self._sum("jumps", grid)[0][:, :-1], axis=1)


class _FreeRows(NamedTuple):
    """Rows of a chunk with a free multiplier, which changes with b.

    `places` (k,) are their places in the chunk; `inside` (T, k) is 1 for a free
    multiplier and 0 for others.
    """

    chunk: slice
    places: np.ndarray
    inside: np.ndarray

    @property
    def size(self) -> int:
        return self.places.size


class RowSums:
    """Rows of this process, with their multipliers and scores.

    Each method returns or yields sums over chunks, in the order of the chunks.

    Parameters
    ----------
    Z : FeatureRows
        In single or double precision, which is also that of multipliers and scores.
    rank : (n,) array of int32
    weight : (n,) array of float32
    losses : Losses
    n_threads : int
    dtype : float32 or float64
        That of Z.
    """

    def __init__(
        self,
        Z: FeatureRows,
        rank: np.ndarray,
        weight: np.ndarray,
        losses: Losses,
        n_threads: int,
        dtype: type[np.floating[Any]] = np.float32,
    ):
        self._Z, self.losses = Z, losses
        self.n, self.m = Z.n, Z.m
        self._dtype, self.n_threads = dtype, n_threads
        self._rows = rank, weight, losses.by_group.astype(dtype)
        # Groups first, rows last: kernels run over the rows of one group.
        self._g = zeros((losses.T, self.n), dtype)
        self._f, self._before = zeros((self.n,), dtype), zeros((self.n,), dtype)
        self._b = self._b_before = np.zeros(losses.T)
        self._scratch = Scratch((min(CHUNK, self.n), self.m), dtype)
        # A block is as large as cache holds of its features or of its multipliers.
        self._block = block_rows(max(self.m, losses.T))
        if Z.costly and dtype == np.float32:  # `RowFeatures.single` fills whole tiles
            self._block = max(self._block, TILE)
        self._room = Scratch((min(self._block, self.n), self.m), np.float64)
        self._sigma = 1.0
        self._w: np.ndarray | None = None  # w of here while its scores are missing
        self._mixed = np.empty(0)  # M w, where a chunk asks for it

    def in_double(self, Z: FeatureRows) -> RowSums:
        """Return the same rows with features in double precision, and the same g."""
        rank, weight, _ = self._rows
        new = RowSums(Z, rank, weight, self.losses, self.n_threads, np.float64)
        # Multipliers in single precision are exact in double: the certificate is of the
        # same t.
        new._g[:] = self._g
        return new

    def move_to(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        """Move to a point; "here" becomes "before".

        Scores are computed when they are asked for.
        """
        self._score()
        # The scores of before are cached, so that a line search needs no pass over
        # features.
        self._f, self._before = self._before, self._f
        self._b, self._b_before, self._sigma = b, self._b, sigma
        self._w = w.astype(self._dtype)
        for chunk in strips(self.n, CHUNK):
            if (M := self._Z.mixing(chunk)) is not None:
                self._mixed = M @ w
                break

    def accept(self) -> None:
        """Take the multipliers t of here as g."""
        self._score()

        def of_chunk(chunk: slice) -> None:
            for rows in self._blocks(chunk):
                self._g[:, rows], _, _ = self._moved(rows, self._b)

        with Pool(self.n_threads, brief=True) as pool:
            pool.run(of_chunk, strips(self.n, CHUNK))

    def point(self, *beside: RowSums) -> Nodes:
        """Yield the arguments of `BasisPoint.from_sums`, with several rows in `back`.

        `back` has one row, or one per side of a group where that saves a pass over
        costly features. The arguments for the problems `beside`, which are over the
        same rows and share their features, follow.
        """
        every = self, *beside

        def of_chunk(chunk: slice) -> Parts:
            sums = [rows._no_point() for rows in every]
            M = self._Z.mixing(chunk)
            with self._room.lent() as room:
                for block in self._blocks(chunk):
                    Z = self._Z.block(block, room)
                    for rows, parts in zip(every, sums, strict=True):
                        rows._add_point(block, Z, M is not None, *parts)
            return tuple(
                part for total, back in sums for part in (total, _mixed(back, M))
            )

        yield from self._by_chunk(of_chunk)
        for rows in every:
            rows._w = None

    def slopes(self, lengths: np.ndarray) -> Nodes:
        self._score()

        def of_chunk(chunk: slice) -> Parts:
            out = np.empty(lengths.size)
            _piecewise_linear.slopes(
                self._before, self._f, *self._rows, self._b_before, self._b, lengths,
                self._g, self._sigma, chunk.start, chunk.stop, out,
            )  # fmt: skip
            return (out,)

        return self._by_chunk(of_chunk)

    def scaled_back(self, keep: np.ndarray) -> Nodes:
        self._score()

        def of_chunk(chunk: slice) -> Parts:
            back = np.zeros(self.m)
            with self._room.lent() as room:
                for rows in self._blocks(chunk):
                    t, _, _ = self._moved(rows, self._b)
                    t *= np.where(t > 0, keep[0][:, None], keep[1][:, None])
                    back += t.sum(axis=0) @ self._Z.block(rows, room)
            return (_mixed(back, self._Z.mixing(chunk)),)

        return self._by_chunk(of_chunk)

    def curvature(self, share: float) -> Nodes:
        self._score()
        out = np.zeros((self.m + self.losses.T,) * 2)
        some: list[_FreeRows] = []

        find = partial(self._free_rows, share=share)
        chunks = strips(self.n, CHUNK)
        with self._scratch.lent() as root, Pool(self.n_threads, brief=True) as pool:
            # Few rows of a chunk are free: products of the rows of several chunks read
            # and write the m^2 sums less often.
            with closing(in_order(find, chunks, self.n_threads)) as found:
                for free in found:
                    if sum(rows.size for rows in some) + free.size > len(root):
                        self._add_curvature(some, root, out, pool)
                        some = []
                    some.append(free)
            self._add_curvature(some, root, out, pool)
        yield Node(0, 0, (out,))

    def loss(self, b: np.ndarray) -> Nodes:
        self._score()

        def of_chunk(chunk: slice) -> Parts:
            each = (self._moved(rows, b)[2] for rows in self._blocks(chunk))
            return (np.array([sum(sums[:, 6].sum() for sums in each)]),)

        return self._by_chunk(of_chunk)

    def jumps(self, grid: np.ndarray) -> Nodes:
        self._score()

        def of_chunk(chunk: slice) -> Parts:
            out = np.empty((grid.shape[0], grid.shape[1] + 1))
            _piecewise_linear.jumps(
                self._f, *self._rows, grid, chunk.start, chunk.stop, out
            )
            return (out,)

        return self._by_chunk(of_chunk)

    def _score(self) -> None:
        """Compute the scores of here, unless `point` has."""
        if self._w is None:
            return
        plain, mixed = self._w, self._mixed

        def of_chunk(chunk: slice) -> None:
            w = plain if self._Z.mixing(chunk) is None else mixed
            with self._room.lent() as room:
                for rows in self._blocks(chunk):
                    np.matmul(self._Z.block(rows, room), w, out=self._f[rows])

        with Pool(self.n_threads, brief=True) as pool:
            pool.run(of_chunk, strips(self.n, CHUNK))
        self._w = None

    def _by_chunk(self, call: Callable[[slice], Parts]) -> Nodes:
        """Return the sums of call(chunk) over adjacent chunks, in the order of these.

        A thread adds up the sums of several chunks, because handing over each of them
        would take the interpreter's lock.
        """
        chunks = -(-self.n // CHUNK)
        fair = chunks // (_SHARES * self.n_threads)
        # A power of 2, so that a thread adds up a node of the tree over chunks, and the
        # sum is the same for every number of threads.
        several = min(_MOST, 1 << max(0, fair.bit_length() - 1))

        def of_each(some: slice) -> Iterator[Node]:
            for k in range(some.start, some.stop):
                check_cancelled()
                chunk = slice(k * CHUNK, min((k + 1) * CHUNK, self.n))
                yield Node(k, 0, call(chunk))

        def of_some(some: slice) -> list[Node]:
            return merged(of_each(some))

        with closing(
            in_order(of_some, strips(chunks, several), self.n_threads)
        ) as found:
            for nodes in found:
                yield from nodes

    def _blocks(self, chunk: slice) -> Iterator[slice]:
        return strips(chunk.stop, self._block, chunk.start)

    def _moved(
        self, rows: slice, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return t, inside (T, rows) and sums (T, 7) of the kernel `point`."""
        shape = self.losses.T, rows.stop - rows.start
        t, inside = np.empty(shape, self._dtype), np.empty(shape, self._dtype)
        sums = np.empty((self.losses.T, 7))
        _piecewise_linear.point(
            self._f, *self._rows, b, self._g, self._sigma, rows.start, t, inside, sums
        )
        return t, inside, sums

    def _no_point(self) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of `point` over no rows: those of the kernel, and `back`."""
        # 2 T rows instead of one spare `scaled_back` a pass that would make all
        # features again.
        sides = 2 * self.losses.T if self._Z.costly else 1
        return np.zeros((self.losses.T, 7)), np.zeros((sides, self.m))

    def _add_point(
        self,
        rows: slice,
        Z: np.ndarray,
        mixed: bool,
        total: np.ndarray,
        back: np.ndarray,
    ) -> None:
        """Add the sums of `point` over a block with features Z to `total` and `back`.

        `mixed` says whether Z are kernel values.
        """
        # The scores are made with the product by which `point` reads the features
        # anyway.
        if self._w is not None:
            np.matmul(Z, self._mixed if mixed else self._w, out=self._f[rows])
        t, _, sums = self._moved(rows, self._b)
        total += sums
        if self._Z.costly:
            back += np.concatenate([np.maximum(t, 0), np.minimum(t, 0)]) @ Z
        else:
            back += t.sum(axis=0) @ Z

    def _free_rows(self, chunk: slice, share: float) -> _FreeRows:
        """Return the rows with a free multiplier of a chunk, or of a share of it."""
        places, inside = [], []
        for rows in self._blocks(chunk):
            _, E, _ = self._moved(rows, self._b)
            # The draw depends on the place of a row alone, and so not on chunks or
            # threads.
            if share < 1:
                E *= _drawn(rows.start, rows.stop, share)
            active = np.flatnonzero(E.any(axis=0))
            places.append(rows.start - chunk.start + active)
            inside.append(E[:, active])
        return _FreeRows(chunk, np.concatenate(places), np.concatenate(inside, axis=1))

    def _add_curvature(
        self, some: Sequence[_FreeRows], root: np.ndarray, out: np.ndarray, pool: Pool
    ) -> None:
        """Add the curvature of the free rows of some chunks to `out`, (m + T, m + T).

        `root` has room for the features of these rows.
        """
        m, T = self.m, self.losses.T
        E = np.concatenate([free.inside for free in some], axis=1)
        ends = np.cumsum([free.size for free in some])
        root, weight = root[: E.shape[1]], np.sqrt(E.sum(axis=0))

        def gather(k: int) -> None:
            rows, places = slice(ends[k] - some[k].size, ends[k]), some[k].places
            Z = self._Z.picked(some[k].chunk, places, root[rows])
            # Z'EZ as a product of one matrix with itself: BLAS needs half the
            # operations.
            Z *= weight[rows, None]

        def multiply(tile: tuple[slice, slice]) -> None:
            I, J = tile
            out[I, J] += root[:, I].T @ root[:, J]
            if I == J:
                out[m:, J] -= (E / weight) @ root[:, J]

        pool.run(gather, [k for k, free in enumerate(some) if free.size])
        columns = list(strips(m, _WIDE if m > 2 * _WIDE else _NARROW))
        pool.run(
            multiply, [(I, J) for I in columns for J in columns if I.start >= J.start]
        )
        out.ravel()[m * (m + T + 1) :: m + T + 1] += E.sum(axis=1)


class LocalSums(Sums):
    """`Sums` of rows of this process."""

    _ahead: BasisPoint | None = None

    def __init__(self, rows: RowSums):
        self._rows = rows
        self.n, self.m, self.losses = rows.n, rows.m, rows.losses
        self.n_threads = rows.n_threads

    def at(self, w: np.ndarray, b: np.ndarray, sigma: float) -> BasisPoint:
        if self._ahead is None:
            return super().at(w, b, sigma)
        point, self._ahead = self._ahead, None
        return point

    @staticmethod
    def look_ahead(
        several: Sequence[LocalSums],
        places: Sequence[tuple[np.ndarray, np.ndarray, float]],
    ) -> None:
        """Move several sums of the same rows, each to its own place, in one pass.

        The first call of `at` of each of them must then be for this place.
        """
        for sums, place in zip(several, places, strict=True):
            sums._move_to(*place)
        first, *others = (sums._rows for sums in several)
        with closing(first.point(*others)) as nodes:
            found = whole(merged(nodes))
        for k, sums in enumerate(several):
            sums._ahead = sums._arrived(*found[2 * k : 2 * k + 2])

    def accept(self) -> None:
        self._rows.accept()

    def in_double(self, Z: FeatureRows) -> LocalSums:
        """Return the same rows with features in double precision, and the same g."""
        return LocalSums(self._rows.in_double(Z))

    def _move_to(self, w: np.ndarray, b: np.ndarray, sigma: float) -> None:
        self._rows.move_to(w, b, sigma)

    def _sum(self, request: str, *arguments: Any) -> Parts:
        with closing(getattr(self._rows, request)(*arguments)) as nodes:
            return whole(merged(nodes))


def _drawn(start: int, stop: int, share: float) -> np.ndarray:
    """Return a mask of a random share of the rows, drawn from their numbers alone."""
    hashed = np.arange(start, stop, dtype=np.uint64) * np.uint64(_GOLDEN)
    return (hashed & np.uint64(0xFFFFFFFF)) < share * 2.0**32
