"""Solutions on a basis: features made once for all fits of a path, and fair
samples of the rows to begin with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from .._input.types import Matrix
from .._numerics.rows import strips
from .._rows.remote import RemoteRows
from .._watch.convergence import Convergence, Status
from .._watch.monitor import Monitor, OutOfTime
from ..kernels.basis_rows import sizes
from ..kernels.features import Features
from .losses import Losses
from .proximal import Solution, Start, finished, is_to_finish, look_ahead, solve
from .rows import LocalBasisRows, RemoteBasisRows, SumsOf

_LEAST_ROWS = 2000  # of a sample that is worth a fit of its own
_LEAST_PER_FEATURE = 4
_LARGEST_BOX = 1e10  # of a multiplier
_TOGETHER = 2e8  # bytes, for problems that are certified in one pass
_UNKNOWN = np.inf, -np.inf  # primal and dual, of rows that have not been seen
_ENDED = Status.MAX_TIME, Status.STOPPED


def by_problem(
    lo: np.ndarray,
    hi: np.ndarray,
    pn: np.ndarray,
    pp: np.ndarray,
    ordered: bool = False,
    price: np.ndarray | None = None,
) -> list[Losses]:
    """Return the losses of each problem from (P, T, r) boxes and slopes of a row of
    each rank, as a `Program` has them of rows.
    """
    table = np.stack(np.broadcast_arrays(lo, hi, pn, pp), axis=-1).swapaxes(1, 2)
    free = np.zeros(table.shape[2])
    return [Losses(of, ordered, free if price is None else price) for of in table]


def record(monitor: Monitor, found: Solution) -> Convergence:
    """Record the end of a fit on a basis, whose violation is the relative gap."""
    if np.isinf(found.primal):  # the last rows have not been seen
        return monitor.record(found.status, found.n_iter, np.inf, np.inf)
    return monitor.record(
        found.status, found.n_iter, found.rel_gap, found.primal, found.dual
    )


def _check_boxes(problems: Sequence[Losses], weight: np.ndarray) -> None:
    """Raise ValueError if multipliers may be of a size whose squares single precision
    does not hold beside others.
    """
    largest = max(losses.largest for losses in problems) * float(weight.max())
    if not 1 / _LARGEST_BOX <= largest <= _LARGEST_BOX:
        raise ValueError(
            "C times the largest cost and weight must be between "
            f"{1 / _LARGEST_BOX:g} and {_LARGEST_BOX:g} on a basis, got {largest:.3g}"
        )
    slope = max(float(np.abs(losses.table[..., 2:]).max()) for losses in problems)
    if slope > _LARGEST_BOX:
        raise ValueError(
            f"epsilon must be at most {_LARGEST_BOX:g} on a basis, got {slope:.3g}"
        )


class BasisFit:
    """Fits to the rows of one problem on one basis, of any losses.

    Parameters
    ----------
    features : Features
    X : (n, d) matrix, or RemoteRows
    rank : (n,) array of int32
        Which entry of the tables of losses is that of a row.
    weight : (n,) array
    cache_mb : float
        Memory for features, in 10^6 bytes.
    n_threads : int
    rng : numpy.random.Generator
        Draws the samples of the rows.
    monitor : Monitor
    """

    def __init__(
        self,
        features: Features,
        X: Matrix | RemoteRows,
        rank: np.ndarray,
        weight: np.ndarray,
        cache_mb: float,
        n_threads: int,
        rng: np.random.Generator,
        monitor: Monitor,
    ):
        self._features, self._monitor = features, monitor
        self._n, self._weight = rank.size, weight
        # in rows: for all of them, and for a copy of a sample
        room = int(min(2 * rank.size, cache_mb * 1e6 / (4 * features.m)))
        self._rows: RemoteBasisRows | LocalBasisRows
        if isinstance(X, RemoteRows):
            self._rows = RemoteBasisRows(features, X, rank, room, rng, monitor)
        else:
            self._rows = LocalBasisRows(
                features, X, rank, weight, room, n_threads, rng, monitor
            )

    def close(self) -> None:
        """Release what other processes hold for the fit."""
        self._rows.close()

    def path(
        self,
        points: Sequence[Sequence[Losses]],
        starts: Sequence[Start],
        *,
        warm: bool,
        tol: float,
        max_iter: int,
    ) -> list[list[Solution]]:
        """Return the solutions of the problems of each point.

        The first point begins at the starts, near them if `warm` and else on samples of
        the rows; every other one begins at the solutions of the point before it.

        Where time is up before all rows have been seen, objectives are infinite.
        """
        for problems in points:
            _check_boxes(problems, self._weight)
        found: list[list[Solution]] = []
        for i, problems in enumerate(points):
            if i > 0:
                starts = [
                    # sigma is a length of multipliers, which grow with the boxes.
                    replace(s.end, sigma=s.end.sigma * new.largest / old.largest)
                    for s, old, new in zip(
                        found[-1], points[i - 1], problems, strict=True
                    )
                ]
            with self._monitor.numbered("point", i, len(points)):
                near = warm or i > 0
                found.append(self._point(problems, starts, near, tol, max_iter))
        return found

    def _point(
        self,
        problems: Sequence[Losses],
        starts: Sequence[Start],
        warm: bool,
        tol: float,
        max_iter: int,
    ) -> list[Solution]:
        found = [
            Solution(s.w, s.b, *_UNKNOWN, Status.MAX_TIME, 0, s, s) for s in starts
        ]
        try:
            for sums_of, every in self._levels(warm):
                for some in self._groups(problems, every):
                    self._fit(sums_of, problems, some, every, found, tol, max_iter)
                    if self._monitor.ended:
                        return found
                del sums_of  # before there are those of the next sample
        except OutOfTime:  # in a sum or among features
            pass
        return found

    def _levels(self, warm: bool) -> Iterator[tuple[SumsOf, bool]]:
        """Rows to solve for, as what makes the sums of a problem, and whether they are
        all there are: samples unless `warm`, then all.
        """
        # Samples are cheap, and leave few steps to the fit of all rows; a warm start is
        # near.
        if not warm:
            least = max(_LEAST_ROWS, _LEAST_PER_FEATURE * self._features.m)
            for size in sizes(self._n, least):
                # Growing ones: each begins at the end of the one before.
                yield self._rows.sample(size), False
        yield self._rows.every(), True

    def _groups(self, problems: Sequence[Losses], every: bool) -> Iterator[range]:
        """Problems that are solved together: all of a sample, and of all rows those for
        which there is room for multipliers and scores in double.
        """
        size = len(problems)
        if every:
            # Multipliers of every group, and two vectors of scores.
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
        found: list[Solution],
        tol: float,
        max_iter: int,
    ) -> None:
        """Solve some problems from what has been found on.

        Those of all rows end in double, where the first pass over the rows is one for
        all problems.
        """
        begun, single, ends = [of.n_iter for of in found], {}, {}
        for k in some:
            monitor, sums = self._after(found), sums_of(problems[k])
            new = solve(sums, found[k].end, tol, monitor, max_iter, exact=False)
            seen = every and not is_to_finish(new)
            found[k] = replace(
                new if seen else _unseen(new), n_iter=begun[k] + new.n_iter
            )
            if monitor.ended:
                return
            if every and not seen:
                single[k], ends[k] = new, self._rows.in_double(sums)
            del sums  # before others take its place
        # The first pass in double makes features anew: one pass serves all problems.
        if len(ends) > 1:
            # without time for it each problem ends as it does alone
            with suppress(OutOfTime), self._monitor.limited():
                look_ahead(list(single.values()), list(ends.values()), self._features)
        for k, new in single.items():
            monitor, double = self._after(found, -new.n_iter), partial(ends.pop, k)
            end = finished(new, double, self._features, tol, monitor, max_iter)
            found[k] = replace(end, n_iter=begun[k] + end.n_iter)
            if monitor.ended:
                return

    def _after(self, found: list[Solution], more: int = 0) -> Monitor:
        """Return the monitor of the steps that follow these."""
        return self._monitor.after(sum(of.n_iter for of in found) + more)


def _unseen(found: Solution) -> Solution:
    """Return the solution without objectives, which are not those of all rows yet."""
    primal, dual = _UNKNOWN
    status = found.status if found.status in _ENDED else Status.MAX_TIME
    return replace(found, primal=primal, dual=dual, status=status)
