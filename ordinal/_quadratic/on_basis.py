"""Fits on a basis: rows with their features, samples of them, and all fits of a path.

Features are computed once for all fits of a path, in this process or at workers, and
cached for as many rows as memory allows. A fit begins on samples of the rows, which
are cheap, and ends on all rows, first in single and then in double precision.

RowsOnBasis       features of rows, cached or computed at each use
BasisRows         protocol of the rows of a fit: samples of them, and all of them
LocalBasisRows    the same for rows of this process
BasisFit          solutions of the problems of one point after the other
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, singledispatch
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from .._input.types import Index, Matrix
from .._model.kernel_fit import KernelOptions
from .._numerics.memory import Scratch
from .._numerics.rows import strips, take
from .._numerics.threads import Pool
from .._rows.rows import Rows
from .._rows.source import CHUNK
from .._solvers import _kernel_values
from .._watch.cancellation import OutOfTime
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor
from ..kernels.basis_rows import sample_sizes, stratified
from ..kernels.features import Features
from .losses import Losses
from .proximal import (
    KernelValues,
    ProximalFit,
    ProximalSolution,
    Start,
    finished,
    is_to_finish,
    look_ahead,
)
from .sums import (
    CachedFeatures,
    FeatureRows,
    LeadingFeatures,
    LocalSums,
    RowSums,
    Sums,
    taken,
)

_LARGEST = 32767  # largest absolute value of a feature stored in 16 bits
_TINY = np.finfo(np.float32).tiny
_LEAST_ROWS = 2000  # rows of the smallest sample
_LEAST_PER_FEATURE = 16  # rows of a sample per feature that is used on it
_NEWTON_STEPS = 200  # most steps for each sample of the rows; some 20 are usual
_LARGEST_BOX = 1e10  # largest bound of a multiplier
_TOGETHER = 2e8  # bytes for problems that are certified in one pass

StartT = TypeVar("StartT", Start, ProximalSolution)
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

    For the other chunks, kernel values V are computed at each use, and features z = V M
    only for rows with a free multiplier: a row takes m (d + 1) operations for its
    kernel values, and m^2 for its features.

    Cached features take 4 bytes each, or 2 if they are packed as integers times a scale
    per column and chunk. Packing causes an error of at most 1.5e-5 of the largest entry
    of the column. Fits end in double precision, where such errors are part of the gap.

    Parameters
    ----------
    features : Features
    X : (n, d) matrix
    keep : (chunks,) array of bool
        The chunks whose features are cached.
    n_threads : int
    costly : bool, optional
        For rows at workers: whether some rows of the same sums have no cached features,
        here or at other workers. Features of these rows are then computed at each use
        instead of kernel values, so that the bytes of the sums do not depend on who has
        room for which rows.
    packed : bool, default False
        Whether cached features take 16 bits.
    m : int, optional
        The number of leading features that are computed, of rows that are all cached.
    """

    def __init__(
        self,
        features: Features,
        X: Matrix,
        keep: np.ndarray,
        n_threads: int,
        costly: bool | None = None,
        packed: bool = False,
        m: int | None = None,
    ):
        self._features, self._X, self._n_threads = features, X, n_threads
        self.n, self.m = len(X), m or features.m
        chunks = [
            rows for rows, kept in zip(strips(self.n, CHUNK), keep, strict=True) if kept
        ]
        n_kept = sum(rows.stop - rows.start for rows in chunks)
        self.kept = np.empty((n_kept, self.m), np.int16 if packed else np.float32)
        self._scale = np.empty((len(keep) if packed else 0, self.m), np.float32)
        self._lag = np.cumsum(~keep) * CHUNK  # rows before a chunk that are not cached
        self._keep, self._packed = keep, packed
        with_values = costly is None and not keep.all()
        self._mixing = features.mixing if with_values else None
        self.costly = bool(costly)

        scratch = Scratch((min(CHUNK, self.n), self.m), np.float32)

        def fill(rows: slice) -> None:
            kept = self.kept[self._places(rows)]
            if not packed:
                features.single(take(X, rows), kept)
                return
            with scratch.lent() as Z:
                Z = features.single(take(X, rows), Z[: len(kept)])
                scale = np.maximum(Z.max(axis=0), -Z.min(axis=0)) / _LARGEST
                # A subnormal scale has few digits, and quotients by it could exceed 16
                # bits; entries of such a column, below 1e-33, become zeros.
                scale[scale < _TINY] = 1
                self._scale[rows.start // CHUNK] = scale
                np.rint(np.divide(Z, scale, out=Z), out=kept, casting="unsafe")

        with Pool(n_threads, brief=True) as pool:
            pool.run(fill, chunks)

    def mixing(self, chunk: slice) -> np.ndarray | None:
        """Return M for a chunk whose blocks are kernel values, otherwise None."""
        return None if self._keep[chunk.start // CHUNK] else self._mixing

    def block(self, rows: slice, room: np.ndarray) -> np.ndarray:
        """Return features of rows of one chunk, or kernel values if `mixing` has M."""
        shape = rows.stop - rows.start, self.m
        kept = self._keep[rows.start // CHUNK]
        if kept and not self._packed:
            return self.kept[self._places(rows)]
        if not kept and self._mixing is not None:
            return self._features.values(take(self._X, rows), room[: shape[0]])
        # The room is of doubles, twice as large as features in single precision need.
        Z = room.reshape(-1).view(np.float32)[: shape[0] * self.m].reshape(shape)
        if kept:
            return self._unpacked(rows, self.kept[self._places(rows)], Z)
        return self._features.single(take(self._X, rows), Z)

    def picked(self, rows: slice, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write features of some rows of a chunk, by their places, to `out`."""
        if self._keep[rows.start // CHUNK]:
            places = self._places(rows).start + places
            if self._packed:
                return self._unpacked(rows, self.kept[places], out)
            return taken(self.kept, places, out)
        some = take(self._X, rows.start + places)
        return self._features.single(some, out, padded=self._mixing is None)

    def _unpacked(self, rows: slice, some: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Return packed features of a chunk in single precision, in `out`."""
        _kernel_values.unpack(some, self._scale[rows.start // CHUNK], out)
        return out

    def _places(self, rows: slice) -> slice:
        """Return the positions in the cache of rows of one chunk."""
        lag = int(self._lag[rows.start // CHUNK])
        return slice(rows.start - lag, rows.stop - lag)

    def restricted_to(self, numbers: np.ndarray, room: int = 0) -> FeatureRows:
        """Return the cached features of some rows, whose numbers increase.

        If all features are cached and `room` rows more fit into memory, they are copied
        once, which makes every later pass faster; otherwise at each use.
        """
        all_cached = len(self.kept) == self.n
        if all_cached and numbers.size <= room:
            Z = np.empty((numbers.size, self.m), np.float32)

            def gather(chunk: slice) -> None:
                start, stop = np.searchsorted(numbers, [chunk.start, chunk.stop])
                self.picked(chunk, numbers[start:stop] - chunk.start, Z[start:stop])

            with Pool(self._n_threads, brief=True) as pool:
                pool.run(gather, strips(self.n, CHUNK))
            return CachedFeatures(Z)
        if all_cached and not self._packed:
            return CachedFeatures(self.kept, numbers)
        some = take(self._X, numbers)
        keep = cached_chunks(len(some), len(some))
        return RowsOnBasis(self._features, some, keep, self._n_threads)


class BasisRows(Protocol):
    """Rows of a fit on a basis, of which samples are drawn."""

    def sample(self, size: int, m: int) -> SumsOf:
        """Draw about `size` rows, stratified by rank, with their first m features."""
        ...

    def every(self) -> SumsOf:
        """Return a function of the sums over all rows."""
        ...

    def in_double(self, sums: Any) -> Sums:
        """Return sums over all rows with features in double precision."""
        ...

    def close(self) -> None:
        """Release what other processes hold for the fit."""
        ...


class LocalBasisRows:
    """Rows of this process.

    Parameters
    ----------
    features, X, rank, weight, options
        As for `BasisFit`.
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
        options: KernelOptions,
    ):
        self._features, self._X = features, X
        self._rank, self._weight, self._room = rank, weight, room
        self._n_threads, self._monitor = options.n_threads, options.monitor
        self._rng = np.random.default_rng(options.seed)
        self._all: RowsOnBasis | None = None

    def sample(self, size: int, m: int) -> SumsOf:
        """Draw about `size` rows, stratified by rank, with their first m features."""
        # No more rows than fit into the cache, because a sample is read many times.
        numbers = stratified(self._rank, min(size, self._room), self._rng)
        n = self._rank.size
        # n rows of 16 bits take the memory of n / 2 rows of 32 bits.
        left = self._room - (n if n <= self._room else -(-n // 2))
        Z: FeatureRows
        if n <= self._room or numbers.size <= left:
            Z = self._cached().restricted_to(numbers, left)
        else:
            Z = self._computed(take(self._X, numbers), numbers.size, m)
        return partial(self._sums, Z if m == Z.m else LeadingFeatures(Z, m), numbers)

    def every(self) -> SumsOf:
        """Return a function of the sums over all rows."""
        return partial(self._sums, self._cached(), slice(None))

    def in_double(self, sums: Any) -> Sums:
        """Return sums over all rows with features in double precision."""
        double: Sums = sums.in_double(KernelValues(self._features, self._X))
        return double

    def close(self) -> None:
        """Do nothing: no other process holds anything."""

    def _sums(self, Z: FeatureRows, rows: Index, losses: Losses) -> LocalSums:
        """Return the sums of a problem over rows with these features."""
        rank, weight = self._rank[rows], self._weight[rows].astype(np.float32)
        return LocalSums(RowSums(Z, rank, weight, losses, self._n_threads))

    def _cached(self) -> RowsOnBasis:
        """Return the features of all rows, which are computed at the first call."""
        if self._all is None:
            self._all = self._computed(self._X, self._room)
        return self._all

    def _computed(self, X: Matrix, room: int, m: int | None = None) -> RowsOnBasis:
        """Compute the features of rows, of which `room` may be cached in 32 bits."""
        with self._monitor.stage("features"), self._monitor.limited():
            # Computing the features of a row takes m times as long as reading them, so
            # twice the rows are cached in 16 bits where memory is short.
            packed = len(X) > room
            keep = cached_chunks(len(X), 2 * room if packed else room)
            return RowsOnBasis(
                self._features, X, keep, self._n_threads, packed=packed, m=m
            )


@singledispatch
def basis_rows(
    X: Any,
    features: Features,
    rank: np.ndarray,
    weight: np.ndarray,
    room: int,
    options: KernelOptions,
) -> BasisRows:
    """Return the rows of a fit, by the back end that is registered for the type of X.

    `room` is the number of rows whose features one process may cache.
    """
    return LocalBasisRows(features, X, rank, weight, room, options)


def record(monitor: Monitor, found: ProximalSolution) -> Convergence:
    """Record the end of a fit on a basis, whose violation is the relative gap."""
    if np.isinf(found.primal):  # time was up before all rows had been seen
        return monitor.record(found.status, found.n_iter, np.inf, np.inf)
    return monitor.record(
        found.status, found.n_iter, found.rel_gap, found.primal, found.dual
    )


class BasisFit:
    """Fits to the rows of one problem on one basis, with any losses.

    Parameters
    ----------
    features : Features
    X : (n, d) matrix or Rows
    rank : (n,) array of int32
        Entry of the tables of losses that applies to each row.
    weight : (n,) array
    options : KernelOptions
        `cache_mb` bounds the memory for features; `seed` draws the samples.
    """

    def __init__(
        self,
        features: Features,
        X: Matrix | Rows,
        rank: np.ndarray,
        weight: np.ndarray,
        options: KernelOptions,
    ):
        self._features, self._monitor = features, options.monitor
        self._max_iter = options.max_iter or _NEWTON_STEPS
        self._n, self._largest_weight = rank.size, float(weight.max())
        self._last: tuple[list[ProximalSolution], Sequence[Losses]] | None = None
        # Number of rows that fit, for all rows and for the copy of a sample.
        room = int(min(2 * rank.size, options.cache_mb * 1e6 / (4 * features.m)))
        self._rows = basis_rows(X, features, rank, weight, room, options)

    def close(self) -> None:
        """Release what other processes hold for the fit."""
        self._rows.close()

    def check(self, problems: Sequence[Losses]) -> None:
        """Raise ValueError if the losses are beyond the range of the solver."""
        largest = max(losses.largest for losses in problems) * self._largest_weight
        # Sums of squares of multipliers must stay within single precision.
        if not 1 / _LARGEST_BOX <= largest <= _LARGEST_BOX:
            raise ValueError(
                "C times the largest cost and weight must be between "
                f"{1 / _LARGEST_BOX:g} and {_LARGEST_BOX:g} on a basis, got "
                f"{largest:.3g}"
            )
        slope = max(float(np.abs(losses.table[..., 2:]).max()) for losses in problems)
        if slope > _LARGEST_BOX:
            raise ValueError(
                f"epsilon must be at most {_LARGEST_BOX:g} on a basis, got {slope:.3g}"
            )

    def following(self, problems: Sequence[Losses]) -> list[Start] | None:
        """Return the starts of problems from the last ones; None for the first."""
        if self._last is None:
            return None
        return [
            # sigma has the scale of the multipliers, which grow with their boxes.
            replace(s.end, sigma=s.end.sigma * new.largest / old.largest)
            for s, old, new in zip(*self._last, problems, strict=True)
        ]

    def fit(
        self, problems: Sequence[Losses], starts: Sequence[Start], *, warm: bool
    ) -> list[ProximalSolution]:
        """Return the solutions of the problems of one point.

        They begin at the starts if `warm`, and otherwise on samples of the rows. If
        time is up before all rows have been seen, the objectives are infinite.
        """
        self.check(problems)
        # The objectives are infinite while rows have not been seen.
        found = [
            ProximalSolution(s.w, s.b, np.inf, -np.inf, Status.MAX_TIME, 0, s, s)
            for s in starts
        ]
        with suppress(OutOfTime):  # during a sum, or while features are computed
            self._fit_levels(problems, warm, found)
        # The callback or the time limit ended problems that have not seen all rows,
        # whatever the end of the fit of a sample was.
        ended = self._monitor.cut_short
        found = [replace(s, status=ended) if np.isinf(s.primal) else s for s in found]
        self._last = found, problems
        return found

    def _fit_levels(
        self, problems: Sequence[Losses], warm: bool, found: list[ProximalSolution]
    ) -> None:
        """Solve the problems on every sample, and then on all rows."""
        for sums_of, every in self._levels(warm):
            for some in self._groups(problems, every):
                self._fit(sums_of, problems, some, every, found)
                if self._monitor.ended:
                    return
            del sums_of  # free memory before the next sample is drawn

    def _levels(self, warm: bool) -> Iterator[tuple[SumsOf, bool]]:
        """Yield a function that makes the sums of a problem over some rows, and whether
        these are all rows.

        Unless `warm`, samples come first; all rows come last.
        """
        # Steps on samples are cheap and leave few steps to the fit of all rows. A warm
        # start is near the optimum, and needs no samples.
        if not warm:
            for size in sample_sizes(self._n, _LEAST_ROWS):
                # Samples grow, and each begins at the solution of the last. A small
                # sample determines few coefficients, and uses fewer basis rows.
                m = min(self._features.m, size // _LEAST_PER_FEATURE)
                yield self._rows.sample(size, m), False
        yield self._rows.every(), True

    def _groups(self, problems: Sequence[Losses], every: bool) -> Iterator[range]:
        """Yield groups of problems that are solved together.

        On a sample these are all problems. On all rows they are as many as fit into
        memory with multipliers and scores in double precision.
        """
        size = len(problems)
        if every:
            # Bytes of the multipliers of every group and of two vectors of scores.
            each = 8 * self._n * (2 + max(losses.T for losses in problems))
            here = isinstance(self._rows, LocalBasisRows)
            size = max(1, int(_TOGETHER / each)) if here else 1
        for some in strips(len(problems), size):
            yield range(some.start, some.stop)

    def _fit(
        self,
        sums_of: SumsOf,
        problems: Sequence[Losses],
        some: range,
        every: bool,
        found: list[ProximalSolution],
    ) -> None:
        """Solve some problems, beginning at the solutions found so far.

        The solutions take the place of these in `found`. Problems of all rows end in
        double precision, and share the first pass over the rows in it.
        """
        tol, max_iter = self._monitor.tol, self._max_iter
        begun, single, ends = [s.n_iter for s in found], {}, {}
        for k in some:
            monitor, sums = self._after(found), sums_of(problems[k])
            start = _resized(found[k].end, sums.m)
            new = ProximalFit(sums, start, tol, monitor, max_iter, exact=False).run()
            m = self._features.m
            last, here = _resized(new.end, m), _resized(new.here, m)
            new = replace(_resized(new, m), end=last, here=here)
            # Single precision has ended its part where `finished` goes on in double.
            seen = every and not is_to_finish(new)
            found[k] = replace(new, n_iter=begun[k] + new.n_iter)
            if not seen:
                found[k] = replace(found[k], primal=np.inf, dual=-np.inf)
            if monitor.ended:
                return
            if every and not seen:
                single[k], ends[k] = new, self._rows.in_double(sums)
            del sums  # free memory before the next ones are made
        # The first pass in double computes features anew: one serves all problems.
        if len(ends) > 1:
            # Without time for it, each problem ends as it does alone.
            with suppress(OutOfTime), self._monitor.limited():
                look_ahead(list(single.values()), list(ends.values()), self._features)
        for k, new in single.items():
            monitor, double = self._after(found, -new.n_iter), partial(ends.pop, k)
            end = finished(new, double, self._features, tol, monitor, max_iter)
            found[k] = replace(end, n_iter=begun[k] + end.n_iter)
            if monitor.ended:
                return

    def _after(self, found: list[ProximalSolution], more: int = 0) -> Monitor:
        """Return the monitor of the next steps, which counts the present ones."""
        return self._monitor.after(sum(s.n_iter for s in found) + more)


def _resized(at: StartT, m: int) -> StartT:
    """Return a start or solution of m coefficients: its first ones, or zeros added."""
    if len(at.w) == m:
        return at
    w = np.zeros(m)
    w[: len(at.w)] = at.w[:m]
    return replace(at, w=w)
