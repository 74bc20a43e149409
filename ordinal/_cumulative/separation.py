"""Ranks that columns separate: when the likelihood has no maximum, and the proof of it.

A direction (dalpha, dnu, dbeta) of the parameters moves the two predictors of row i by

    up_i  =  (J dalpha)_y - n_i'(J dnu)_y - x_i'dbeta,         for y_i < T
    low_i = -(J dalpha)_(y-1) + n_i'(J dnu)_(y-1) + x_i'dbeta,   for y_i > 0

each divided by s_i > 0. If none of these is negative, every P(y_i) grows along the
direction or stays, whatever F is; if one is positive it grows for ever, and no finite
parameters are the best. That is the certificate. "Complete" separation is that all are
positive, "quasi-complete" that some are 0. Conversely, where F is log-concave and
without columns of the scale, a maximum exists if there is no such direction and none
along which nothing moves (Albert, Anderson, Biometrika 71:1-10, 1984, for the logistic
model; Haberman in McCullagh, JRSS B 42:138-139, 1980, for ordered ranks).

With A the matrix whose rows give up and low, and c = A'1, the direction is that of

    min  1/2 |d - c|^2   s.t.  A d >= 0                                             (1)

which is 0 only if no direction is a certificate: c'd is the sum of what moves.

Free thresholds without nominal effects need not be among the variables. There are some
that go with dbeta where no row of a rank is moved above one of the next rank: the rows
of A are x_k - x_i for y_i = j and y_k = j + 1, of which only the two that a rank's
thresholds would lie between can be violated most. With c the mean of the highest rank
less that of the lowest one, c'd is what is moved along from one end to the other, and 0
only if nothing is. A thousand thresholds cost no more than one.

The dual method of Goldfarb and Idnani (Mathematical Programming 27:1-33, 1983) solves
(1): from d = c it adds violated rows to a set that holds with equality, and drops those
whose multiplier would become negative. O(n p) for each row added, p the variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from .._numerics.rows import take
from .._rows.columns import has_near_rows, rmatvec
from .._rows.sums import Parts
from .._watch.convergence import Status
from .._watch.monitor import Monitor, OutOfTime, check_cancelled
from .design import Design
from .likelihood import Link, cumulative, exceeding

_HOLDS = 1e-9  # of the largest move: what rounding may take from another
_INVOLVED = 1e-6  # of the largest change by a column's spread
_MOVES = 1e-3  # of a predictor: a Newton step at a maximum is far shorter
_FLAT = 1e-12  # of F or 1 - F: few rows of a maximum are as far from a threshold
_ROWS = 65536  # at a time
_DEPENDENT = 1e-9  # of a row's length: what is left of it by the rows of the set
_LARGEST = 1500  # variables up to which (1) is solved, and not one threshold at a time

Row: TypeAlias = tuple[int, int]


def judged(
    design: Design,
    link: Link,
    x: np.ndarray,
    step: np.ndarray,
    status: Status,
    is_penalised: bool,
    monitor: Monitor,
) -> tuple[Status, np.ndarray]:
    """Return the status of a finished descent, and the columns that separate the ranks.

    If the time does not suffice to decide, the status says so.
    """
    find = partial(separated_columns, design, link, x, step, is_penalised)
    return judged_by(find, status, monitor)


def judged_by(
    find: Callable[[], np.ndarray], status: Status, monitor: Monitor
) -> tuple[Status, np.ndarray]:
    """Return what `judged` does, by a function that finds the columns."""
    none = np.zeros(0, dtype=np.int64)
    # The other ends are a limit that the caller set: a certificate would exceed it.
    if status not in (Status.CONVERGED, Status.MAX_ITER, Status.STALLED):
        return status, none
    try:
        with monitor.limited():
            found = find()
    except OutOfTime:
        return Status.MAX_TIME, none
    return (Status.SEPARATED if found.size else status), found


def separated_columns(
    design: Design, link: Link, x: np.ndarray, step: np.ndarray, is_penalised: bool
) -> np.ndarray:
    """Return columns by which ranks are separated, by number; none where they are not.

    Parameters
    ----------
    design : Design
    link : Link
    x, step : (p,) arrays
        Where a descent has ended, and the Newton step from there. A maximum leaves next
        to none, and no predictor where F is flat; along a certificate either steps go
        on, if by ever less likelihood, or predictors have left where derivatives can be
        told from 0. All else is done without looking for a certificate.
    is_penalised : bool
        Whether beta has a price, and must stay as it is.

    Raises
    ------
    OutOfTime
        As `check_cancelled` does.
    """
    none = np.zeros(0, dtype=np.int64)
    # With a penalty on all slopes the loss grows without bound in every direction, so
    # that a minimum exists.
    if is_penalised and not design.nominal.size:
        return none
    # The cheap tests come first: nearly all fits have a maximum, and end at one of
    # them.
    if _is_near(design, link, x, step):
        return none
    if not (_goes_on(design, step) or _is_flat(design, link, x)):
        return none
    if is_penalised:
        # Penalised slopes stay finite; the nominal ones, which have no penalty, may
        # not.
        design = replace(design, location=none)
        step = step[: sum(design.sizes[:2])]
    # The scale divides up and low by a positive number, which changes no sign.
    design = replace(design, scale=none)
    direction = certificate(design, step[: design.n_parameters])
    if direction is None:
        return none
    return involved(design, direction)


def _is_near(D: Design, link: Link, x: np.ndarray, step: np.ndarray) -> bool:
    """Return whether bounds exclude a long step and rows where F is flat.

    The bounds on all predictors, and on their changes by the step, take a third of the
    time of the full check; False if they do not suffice.
    """
    # The bounds hold for predictors whose slopes and scale are those of all rows.
    if D.nominal.size or D.scale.size:
        return False
    offset = 0.0 if D.offset is None else np.abs(D.offset).max()
    bounds = _bound(D, x) + offset, _bound(D, step)
    ends = np.array([bounds[0], -bounds[0]])
    tail = min(exceeding(link, ends)[0], cumulative(link, ends)[1])
    return bool(tail >= _FLAT and bounds[1] <= _MOVES)


def _bound(D: Design, x: np.ndarray) -> float:
    """Return a bound of |J alpha - x_i'beta| over all rows."""
    alpha, _, beta, _ = D.split(x)
    largest = float(D.of_chunks(partial(_largest_score, beta)).max())
    return largest + float(np.abs(D.J @ alpha).max())


def _largest_score(beta: np.ndarray, D: Design) -> np.ndarray:
    """Return the largest absolute score of a chunk."""
    return np.array([np.abs(D.score(beta)).max()])


def _goes_on(D: Design, step: np.ndarray) -> bool:
    return bool(D.of_chunks(partial(_moved, step))[:, 0].max() > _MOVES)


def _moved(direction: np.ndarray, D: Design) -> np.ndarray:
    """Return the largest and the least change of the predictors of a chunk."""
    moved = moves(D, direction)
    largest = float(np.abs(_finite(moved)).max(initial=0.0))
    return np.array([largest, float(moved.min())])


def _is_flat(D: Design, link: Link, x: np.ndarray) -> bool:
    """Return whether a row has a predictor where F is flat."""
    furthest = D.of_chunks(partial(_furthest, x)).max(axis=0) * [1.0, -1.0]
    tails = exceeding(link, furthest)[0], cumulative(link, furthest)[1]
    return bool(min(tails) < _FLAT)


def _furthest(x: np.ndarray, D: Design) -> np.ndarray:
    """Return the largest predictors of a chunk, up and low."""
    up, low = moves(D, x)
    above, below = D.offset_ends()
    up, low = up - above, low + below
    s = np.exp(D.scale_columns(slice(None)) @ D.split(x)[3])
    return np.array([_finite(side / s).max(initial=-np.inf) for side in (up, low)])


def certificate(design: Design, guess: np.ndarray) -> np.ndarray | None:
    """Return a direction that proves separation, or None; `guess` is tried first.

    Raises
    ------
    OutOfTime
        As `check_cancelled` does.
    """
    # On separated ranks the Newton step itself mostly is a certificate.
    if is_certificate(design, guess):
        return guess
    is_plain = design.is_flexible and not design.nominal.size
    # The general cone reads single rows again and again, each a message to a worker.
    if not (is_plain or has_near_rows(design.X)):
        return None
    cone = _Neighbours(design) if is_plain else _AllRows(design)
    # A step of (1) costs the square of the number of variables.
    if cone.c.size <= _LARGEST:
        found = cone.whole(nearest(cone))
    elif design.is_flexible and design.nominal.size and not design.is_chunked:
        found = _by_thresholds(design)
    else:
        return None
    # The solver of (1) ends at rounding; what is reported is verified from the rows.
    return found if is_certificate(design, found) else None


def _by_thresholds(D: Design) -> np.ndarray:
    """Return a direction that leaves beta as it is: the slopes of every threshold whose
    two ranks they tell apart.
    """
    none = np.zeros(0, dtype=np.int64)
    alpha, nu = np.zeros(D.T), np.zeros((D.T, D.nominal.size))
    by_rank, bounds = _grouped(D)
    for j in range(D.T):
        rows = by_rank[bounds[j] : bounds[j + 2]]
        weight = D.weight[rows]
        pair = Design(
            take(D.X, rows), D.nominal, none, none, None, D.rank[rows] - np.int32(j),
            weight, float(weight.sum()), np.eye(1), D.centre, D.spread,
        )  # fmt: skip
        found = certificate(pair, np.zeros(pair.n_parameters))
        if found is not None:
            alpha[j], nu[j] = found[0], found[1:]
    return np.concatenate([alpha, nu.ravel(), np.zeros(D.location.size)])


def _grouped(D: Design) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of positive weight in the order of their ranks.

    Where those of each rank begin, and the last ones end.
    """
    used = np.flatnonzero(D.weight > 0)
    by_rank = used[np.argsort(D.rank[used], kind="stable")]
    return by_rank, np.searchsorted(D.rank[by_rank], np.arange(D.T + 2))


def is_certificate(design: Design, direction: np.ndarray) -> bool:
    """Verify from the rows that a direction separates the ranks.

    No predictor of a row of positive weight may move to the wrong side, and one must
    move.
    """
    moved = design.of_chunks(partial(_moved, direction))
    largest, least = float(moved[:, 0].max()), float(moved[:, 1].min())
    return _holds(direction, largest, least)


def _holds(direction: np.ndarray, largest: float, least: float) -> bool:
    """Return whether a row moves by a direction, and none to the wrong side."""
    # The length of a direction means nothing: moves are judged relative to it.
    size = np.abs(direction).max()
    return bool(largest > _HOLDS * size and least >= -_HOLDS * largest)


def moves(
    design: Design, direction: np.ndarray, rows: slice = slice(None)
) -> np.ndarray:
    """Return (2, n): up and low of the rows.

    Inf where a row has no predictor on that side, or no weight.
    """
    D = design
    alpha, nu, beta, _ = D.split(direction)
    f = D.score(beta, rows)
    N = D.columns(rows, D.nominal) if D.nominal.size else None
    moved = np.full((2, f.size), np.inf)
    for side, sign in ((0, 1.0), (1, -1.0)):
        cut = D.rank[rows] - side
        inner = (cut >= 0) & (cut < D.T) & (D.weight[rows] > 0)
        move = (D.J @ alpha)[cut[inner]] - f[inner]
        if N is not None:
            move -= np.einsum("ij,ij->i", N[inner], (D.J @ nu)[cut[inner]])
        moved[side, inner] = sign * move
    return moved


def _finite(moved: np.ndarray) -> np.ndarray:
    return np.asarray(moved[np.isfinite(moved)])


class Cone(Protocol):
    """The directions of (1) that no row of A forbids.

    Attributes
    ----------
    c : (p,) array
    """

    c: np.ndarray

    def worst(self, d: np.ndarray, but: Sequence[Row]) -> tuple[Row, float]:
        """Return the row of A by which d is least allowed, and by how much, of all rows
        that are not among some.
        """

    def normal(self, row: Row) -> np.ndarray:
        """Return the vector (p,) of one row of A."""

    def whole(self, d: np.ndarray) -> np.ndarray:
        """Return all parameters of a direction."""


class _Given:
    """The cone of an A that is held."""

    def __init__(self, A: np.ndarray):
        self._A, self.c = A, A.sum(axis=0)

    def worst(self, d: np.ndarray, but: Sequence[Row]) -> tuple[Row, float]:
        moved = self._A @ d
        for row, _ in but:
            moved[row] = np.inf
        row = int(moved.argmin())
        return (row, 0), float(moved[row])

    def normal(self, row: Row) -> np.ndarray:
        return np.asarray(self._A[row[0]])

    def whole(self, d: np.ndarray) -> np.ndarray:
        return d


def certificate_of(A: np.ndarray, guess: np.ndarray) -> np.ndarray | None:
    """Return a direction along which no row of A d falls and one rises, or None;
    `guess` is tried first. For models whose moves are not `moves`.
    """
    for d in (guess, None):
        if d is None:
            if A.shape[1] > _LARGEST:
                return None
            d = nearest(_Given(A))
        moved = A @ d
        if _holds(d, float(np.abs(moved).max(initial=0.0)), float(moved.min())):
            return d
    return None


def involved(design: Design, direction: np.ndarray) -> np.ndarray:
    """Return the columns that a certificate is of: those that rounding alone has moved
    do not separate.
    """
    _, nu, beta, _ = design.split(direction)
    change = np.zeros(design.centre.size)
    change[design.location] = np.abs(beta)
    change[design.nominal] = np.abs(nu).max(axis=0, initial=0.0)
    return np.flatnonzero(change > _INVOLVED * change.max(initial=0.0))


class _AllRows:
    """The cone over all parameters: a row of A is up or low of a row of the data."""

    def __init__(self, design: Design):
        self.design = design
        self.c = _sum_of_normals(design)

    def worst(self, d: np.ndarray, but: Sequence[Row]) -> tuple[Row, float]:
        D = self.design
        moved = np.hstack([moves(D, d, rows) for rows in D.strips(_ROWS)])
        for row in but:
            moved[row] = np.inf
        side, i = divmod(int(moved.argmin()), D.n_samples)
        return (side, i), float(moved[side, i])

    def normal(self, row: Row) -> np.ndarray:
        D, (side, i) = self.design, row
        i_th = slice(i, i + 1)
        J = D.J[D.rank[i] - side]
        n, x = D.columns(i_th, D.nominal)[0], D.columns(i_th, D.location)[0]
        made: np.ndarray = np.concatenate([J, -np.outer(J, n).ravel(), -x])
        return made if side == 0 else -made

    def whole(self, d: np.ndarray) -> np.ndarray:
        return d


class _Neighbours:
    """The cone over beta: a row of A is the way from a row of one rank to a row of the
    next.
    """

    def __init__(self, design: Design):
        self.design = D = design
        self._by_rank, self._bounds = _grouped(D)
        mass = D.mass()[[D.T, 0]]
        (apart,) = D.summed(partial(_apart, mass))
        self.c = apart[D.location] / D.spread[D.location]

    def _ends(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the least and the largest x'd of each rank, over the rows in use."""
        f = self.design.score(d)[self._by_rank]
        first = self._bounds[:-1]
        return f, np.minimum.reduceat(f, first), np.maximum.reduceat(f, first)

    def worst(self, d: np.ndarray, but: Sequence[Row]) -> tuple[Row, float]:
        f, low, high = self._ends(d)
        between = low[1:] - high[:-1]
        while True:
            j = int(between.argmin())
            start, middle, end = self._bounds[j : j + 3]
            i = self._by_rank[start + f[start:middle].argmax()]
            k = self._by_rank[middle + f[middle:end].argmin()]
            row = int(i), int(k)
            if row not in but or between[j] == np.inf:
                return row, float(between[j])
            between[j] = np.inf  # others of these ranks are violated even less

    def normal(self, row: Row) -> np.ndarray:
        D = self.design
        i, k = (D.columns(slice(at, at + 1), D.location)[0] for at in row)
        return np.asarray(k - i)

    def whole(self, d: np.ndarray) -> np.ndarray:
        _, low, high = self._ends(d)
        return np.concatenate([(low[1:] + high[:-1]) / 2, d])


def _apart(mass: np.ndarray, D: Design) -> Parts:
    """Return the share of a chunk in the mean difference of the extreme ranks."""
    highest, lowest = (np.where(D.rank == end, D.weight, 0.0) for end in (D.T, 0))
    return (rmatvec(D.X, highest / mass[0] - lowest / mass[1]),)


def _sum_of_normals(D: Design) -> np.ndarray:
    """Return the vector c of (1)."""
    total = np.zeros(D.n_parameters)
    q, qm, *_ = D.sizes
    used = np.flatnonzero(D.weight > 0)
    ends = np.zeros(D.n_samples)  # of rows inside, up and low of beta cancel
    ends[used] = (D.rank[used] == D.T).astype(float) - (D.rank[used] == 0)
    raw = rmatvec(D.X, ends)[D.location] - ends.sum() * D.centre[D.location]
    total[q + qm :] = raw / D.spread[D.location]
    count = np.bincount(D.rank[used], minlength=D.T + 1)
    total[:q] = D.J.T @ (count[:-1] - count[1:])
    if D.nominal.size:
        sums = np.zeros((D.T + 1, D.nominal.size))
        for rows in D.strips(_ROWS):
            has_weight = D.weight[rows] > 0
            N = D.columns(rows, D.nominal)
            np.add.at(sums, D.rank[rows][has_weight], N[has_weight])
        total[q : q + qm] = -(D.J.T @ (sums[:-1] - sums[1:])).ravel()
    return total


class _Held:
    """Rows of A that hold with equality: N = Q B with orthonormal columns of Q, and
    B^-1.
    """

    def __init__(self, p: int):
        self.rows: list[Row] = []
        self.N, self.Q, self.inverse = (
            np.zeros((p, 0)),
            np.zeros((p, 0)),
            np.zeros((0, 0)),
        )

    def add(
        self, row: Row, normal: np.ndarray, along: np.ndarray, rest: np.ndarray
    ) -> None:
        """Add a row whose part outside the others' span is `rest`."""
        k, length = len(self.rows), float(np.linalg.norm(rest))
        inverse = np.zeros((k + 1, k + 1))
        inverse[:k, :k] = self.inverse
        inverse[:k, k] = -(self.inverse @ along) / length
        inverse[k, k] = 1 / length
        self.inverse = inverse
        self.N = np.column_stack([self.N, normal])
        self.Q = np.column_stack([self.Q, rest / length])
        self.rows.append(row)

    def drop(self, k: int) -> None:
        """Remove the k-th row from the basis, and update its factor.

        O(p k): that of B^-1 is orthogonal to all columns of B but the k-th one, and a
        reflection turns it into the last unit vector.
        """
        del self.rows[k]
        self.N = np.delete(self.N, k, 1)
        v = self.inverse[k] / np.linalg.norm(self.inverse[k])
        v[-1] += math.copysign(1.0, v[-1])
        v *= math.sqrt(2) / np.linalg.norm(v)
        rest = np.delete(self.inverse, k, 0)
        self.Q = (self.Q - np.outer(self.Q @ v, v))[:, :-1]
        self.inverse = (rest - np.outer(rest @ v, v))[:, :-1]


def nearest(cone: Cone) -> np.ndarray:
    """Return the solution of (1), up to a factor; 0 if the rows of the set span
    everything.
    """
    c, size = cone.c, float(np.linalg.norm(cone.c))
    if size == 0:
        return c
    c = c / size
    d, held, multiplier = c.copy(), _Held(c.size), np.zeros(0)
    settled: list[Row] = []  # that the rows held imply, to rounding
    for _ in range(20 * c.size + 100):
        check_cancelled()
        row, moved = cone.worst(d, held.rows + settled)
        if moved >= -1e-14:
            break
        normal, gained = cone.normal(row), 0.0
        while True:
            along = held.Q.T @ normal
            rest = normal - held.Q @ along
            again = held.Q.T @ rest  # what rounding has left in the span
            along, rest = along + again, rest - held.Q @ again
            falls = held.inverse @ along
            free = np.linalg.norm(rest) > _DEPENDENT * np.linalg.norm(normal)
            whole = -float(normal @ d) / float(rest @ rest) if free else np.inf
            ratio = np.full(falls.size, np.inf)
            down = falls > _DEPENDENT * np.abs(falls).max(initial=0.0)
            ratio[down] = multiplier[down] / falls[down]
            part = float(ratio.min(initial=np.inf))
            length = min(whole, part)
            if not np.isfinite(length):  # it is violated by rounding alone
                break
            multiplier = multiplier - length * falls
            gained += length
            if free:
                d = d + length * rest
            if whole <= part:
                break
            first = int(ratio.argmin())
            held.drop(first)
            multiplier = np.delete(multiplier, first)
        if not np.isfinite(length):
            settled.append(row)
            continue
        held.add(row, normal, along, rest)
        multiplier = np.append(multiplier, gained)
        settled.clear()
    Q = np.linalg.qr(held.N)[0]
    d = c - Q @ (Q.T @ c)  # without the rounding of the steps
    return np.asarray(d - Q @ (Q.T @ d))
