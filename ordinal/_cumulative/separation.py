"""Separation of the ranks by columns: detection, and a certificate.

A direction (dalpha, dnu, dbeta) of the parameters moves the two predictors of row i by

    up_i  =  (J dalpha)_y - n_i'(J dnu)_y - x_i'dbeta,         for y_i < T
    low_i = -(J dalpha)_(y-1) + n_i'(J dnu)_(y-1) + x_i'dbeta,   for y_i > 0

each divided by s_i > 0. If none of these is negative, no P(y_i) falls along the
direction, whatever F is. If one is positive, its P(y_i) grows for ever, so that the
likelihood has no finite maximum: the direction is a certificate of separation.
Separation is "complete" if all of them are positive, and "quasi-complete" if some are
0. Conversely, if F is log-concave and there are no scale effects, a maximum exists
unless there is such a direction, or one along which nothing moves (Albert, Anderson,
Biometrika 71:1-10, 1984, for the logistic model; Haberman in McCullagh, JRSS B
42:138-139, 1980, for ordered ranks).

With scale effects the likelihood may also grow for ever with the spread of some rows,
if all of them have one inner rank, or the lowest and the highest rank only. No
direction proves this; `_diverging_scales` recognises it by where the descent ends.

Let A be the matrix whose rows give all up_i and low_i, and c = A'1. The solution of

    min  1/2 |d - c|^2   s.t.  A d >= 0                                             (1)

is a certificate, unless it is 0 and there is none: c'd is the sum of all entries of
A d, and at the solution c'd = |d|^2.

Flexible thresholds without nominal effects need not be among the variables. For a given
dbeta there are suitable dalpha if no row of a rank moves above a row of the next rank.
The rows of A are then x_k - x_i for y_i = j and y_k = j + 1. Of each pair of ranks only
the row of j that moves furthest up and the row of j + 1 that moves furthest down need
to be looked at. With c the mean of the highest rank less that of the lowest one, c'd is
the distance by which these two move apart, and 0 only if no rows do. A thousand
thresholds then cost no more than one.

The dual method of Goldfarb and Idnani (Mathematical Programming 27:1-33, 1983) solves
(1): from d = c it adds violated rows to a working set that holds with equality, and
drops rows whose multiplier would become negative. It takes O(n p) operations per added
row, where p is the number of variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from .._numerics.rows import take
from .._rows.columns import has_near_rows, rmatvec, row_strips
from .._rows.sums import Parts
from .._watch.cancellation import OutOfTime, check_cancelled
from .._watch.convergence import Status
from .._watch.monitor import Monitor
from .design import Design, Structure
from .likelihood import Link, cumulative, exceeding

_HOLDS = 1e-9  # rounding error of a move, relative to the largest one
_INVOLVED = 1e-6  # least coefficient of a separating column, relative to the largest
_MOVES = 1e-3  # change of a predictor; a Newton step at a maximum is far shorter
_FLAT = 1e-12  # value of F or 1 - F that few rows have at a maximum
_SCALES = 10.0  # difference of the outer quantiles of log scales: a factor of 22 000
_TAIL = 0.05  # share of the weight beyond each of these quantiles
_ROWS = 65536  # rows that are processed at a time
_DEPENDENT = 1e-9  # least part of a row outside the span of others, relative to it
_LARGEST = 1500  # most variables for which (1) is solved for all thresholds together

Row: TypeAlias = tuple[int, int]


def check_separation(
    design: Design,
    link: Link,
    x: np.ndarray,
    step: np.ndarray,
    status: Status,
    is_penalised: bool,
    monitor: Monitor,
) -> tuple[Status, np.ndarray]:
    """Look for columns that separate the ranks at the end of a descent.

    Return the status, which is SEPARATED if there are any, or MAX_TIME if the time does
    not suffice to decide; and the indices of these columns, or else those of diverging
    scale effects. The other arguments are those of `separated_columns`.
    """
    end = design, link, x, step, is_penalised
    # Nearly all fits have a maximum, which one look at rows in memory proves.
    if not (design.scale.size or design.is_chunked) and _is_surely_maximum(*end):
        return status, np.zeros(0, dtype=np.int64)
    find = partial(separated_columns, *end)
    status, found = check_separation_by(find, status, monitor)
    if design.scale.size and status in (Status.CONVERGED, Status.STALLED):
        # A descent that has stalled may end with a long step for other reasons.
        is_end = status is Status.CONVERGED
        step = step if is_end else np.zeros(x.size)
        found = _diverging_scales(design, x, step, monitor.tol)
        if found.size:
            status = Status.SEPARATED
    return status, found


def check_separation_by(
    find: Callable[[], np.ndarray], status: Status, monitor: Monitor
) -> tuple[Status, np.ndarray]:
    """Do as `check_separation`, with a function that returns the columns."""
    none = np.zeros(0, dtype=np.int64)
    # Any other status is a limit that the caller set; a search would exceed it.
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
    """Return the indices of columns that separate the ranks; none if none do.

    Parameters
    ----------
    design : Design
    link : Link
    x, step : (p,) arrays
        End of a descent, and the Newton step from there. At a maximum the step is short
        and no predictor lies where F is flat, so that no certificate is sought. With
        separation either steps stay long, or predictors are so large that derivatives
        cannot be told from 0.
    is_penalised : bool
        Whether beta has a penalty. It is then finite, and no direction changes it.

    Raises
    ------
    OutOfTime
        As `check_cancelled` does.
    """
    none = np.zeros(0, dtype=np.int64)
    # The cheap tests come first, because nearly all fits have a maximum.
    if _is_surely_maximum(design, link, x, step, is_penalised):
        return none
    longest = design.of_chunks(partial(_moved, step))[:, 0].max()
    if not (longest > _MOVES or _is_flat(design, link, x)):
        return none
    if is_penalised:  # nominal effects have no penalty, and may diverge
        design = replace(design, location=none)
        step = step[: sum(design.sizes[:2])]
    # The scale divides up and low by a positive number, which changes no sign.
    design = replace(design, scale=none)
    direction = certificate(design, step[: design.n_parameters])
    if direction is None:
        return none
    return involved(design, direction)


def _is_surely_maximum(
    D: Design, link: Link, x: np.ndarray, step: np.ndarray, is_penalised: bool
) -> bool:
    """Return whether bounds exclude a long step and rows where F is flat.

    The bounds on all predictors, and on their changes by the step, take a third of the
    time of the full check. The result is False if they do not suffice.
    """
    # With a penalty on all slopes the loss grows without bound in every direction, so
    # that a minimum exists.
    if is_penalised and not D.nominal.size:
        return True
    # The bounds hold only if all rows have the same slopes and scale.
    if D.nominal.size or D.scale.size:
        return False
    bounds = []  # on |J alpha - x_i'beta|
    for parameters in (x, step):
        alpha, _, beta, _ = D.split(parameters)
        if D.is_chunked:
            scores = D.of_chunks(partial(_largest_score, beta))
        else:
            scores = np.abs(D.score(beta))
        bounds.append(float(scores.max()) + float(np.abs(D.J @ alpha).max()))
    offset = 0.0 if D.offset is None else np.abs(D.offset).max()
    ends = np.array([1.0, -1.0]) * (bounds[0] + offset)
    tail = min(exceeding(link, ends)[0], cumulative(link, ends)[1])
    return bool(tail >= _FLAT and bounds[1] <= _MOVES)


def _largest_score(beta: np.ndarray, D: Design) -> np.ndarray:
    """Return the largest absolute score of a chunk."""
    return np.array([np.abs(D.score(beta)).max()])


def _moved(direction: np.ndarray, D: Design) -> np.ndarray:
    """Return the largest |move| and the least move of the predictors of a chunk."""
    moved = moves(D, direction)
    largest = float(np.abs(_finite(moved)).max(initial=0.0))
    return np.array([largest, float(moved.min())])


def _is_flat(D: Design, link: Link, x: np.ndarray) -> bool:
    """Return whether a row has a predictor where F is flat."""
    furthest = D.of_chunks(partial(_furthest, x)).max(axis=0) * [1.0, -1.0]
    tails = exceeding(link, furthest)[0], cumulative(link, furthest)[1]
    return bool(min(tails) < _FLAT)


def _furthest(x: np.ndarray, D: Design) -> np.ndarray:
    """Return the largest upper predictor a and the largest -b of a chunk."""
    up, low = moves(D, x)  # a and -b, linear in the parameters as their changes are
    above, below = D.offset_ends()
    up, low = up - above, low + below
    s = np.exp(D.scale_columns(slice(None)) @ D.split(x)[3])
    return np.array([_finite(side / s).max(initial=-np.inf) for side in (up, low)])


def _diverging_scales(
    D: Design, x: np.ndarray, step: np.ndarray, tol: float
) -> np.ndarray:
    """Return the indices of columns whose scale effects have no finite optimum.

    Either the spread of rows falls to 0, and Newton steps stay long, or it grows for
    ever, with location effects in proportion, and steps become short. The latter is
    missed for groups with less than `_TAIL` of the weight.
    """
    zeta, change = D.split(x)[3], D.split(step)[3]
    if np.abs(change).max() <= max(_MOVES, tol):  # a loose tolerance permits long steps
        high, low = D.of_chunks(partial(_range_of_scales, zeta)).max(axis=0)
        if high + low <= _SCALES:
            return np.zeros(0, dtype=np.int64)
    return np.asarray(D.scale[np.abs(zeta) >= 0.5 * np.abs(zeta).max()])


def has_diverging_scales(D: Design, x: np.ndarray) -> bool:
    """Return whether scale effects diverge at the end of a descent, without its step.

    Steps are short there, so that only spreads that grow for ever are left to see.
    """
    return bool(D.scale.size and _diverging_scales(D, x, np.zeros(x.size), _MOVES).size)


def _range_of_scales(zeta: np.ndarray, D: Design) -> np.ndarray:
    """Return quantiles of the log scale of a chunk and of its negative, (2,).

    They are quantiles because a single row far out may have any scale.
    """
    used = D.weight > 0
    if not used.any():
        return np.full(2, -np.inf)
    log_scale = D.scale_columns(slice(None))[used] @ zeta
    order = np.argsort(log_scale)
    below = np.cumsum(D.weight[used][order])
    ends = np.searchsorted(below, np.array([1 - _TAIL, _TAIL]) * below[-1])
    return np.asarray(log_scale[order[ends]] * [1.0, -1.0])


def certificate(design: Design, guess: np.ndarray) -> np.ndarray | None:
    """Return a direction that proves separation, (p,), or None.

    `guess` is tried first. The design has no columns of the scale.

    Raises
    ------
    OutOfTime
        The time of the caller is up (`check_cancelled`).
    """
    # With separation the Newton step itself mostly is a certificate.
    if is_certificate(design, guess):
        return guess
    is_plain = design.is_flexible and not design.nominal.size
    is_plain &= design.lower is None
    # The general cone reads single rows again and again, each a message to a worker.
    if not (is_plain or has_near_rows(design.X)):
        return None
    cone = _AdjacentRanks(design) if is_plain else _AllRows(design)
    # Thresholds can be looked at one by one if every row is of one rank.
    by_threshold = design.is_flexible and design.nominal.size and design.lower is None
    # A step of (1) costs the square of the number of variables.
    if cone.c.size <= _LARGEST:
        found = cone.parameters(project(cone))
    elif by_threshold and not design.is_chunked:
        found = _by_thresholds(design)
    else:
        return None
    # The solver of (1) ends at rounding, so that its result is verified from the rows.
    return found if is_certificate(design, found) else None


def _by_thresholds(D: Design) -> np.ndarray:
    """Look for a certificate threshold by threshold, with dbeta = 0.

    The result has the slopes of each threshold whose two ranks they separate, (p,).
    """
    none = np.zeros(0, dtype=np.int64)
    alpha, nu = np.zeros(D.T), np.zeros((D.T, D.nominal.size))
    by_rank, bounds = _grouped(D)
    for j in range(D.T):
        rows = by_rank[bounds[j] : bounds[j + 2]]
        weight = D.weight[rows]
        # The columns of nominal effects are those of the location of this design.
        pair = Design(
            take(D.X, rows), D.nominal, none, none, None, D.rank[rows] - np.int32(j),
            weight, float(weight.sum()), J=Structure(1, 1), centre=D.centre,
            spread=D.spread,
        )  # fmt: skip
        found = certificate(pair, np.zeros(pair.n_parameters))
        if found is not None:
            alpha[j], nu[j] = found[0], found[1:]
    return np.concatenate([alpha, nu.ravel(), np.zeros(D.location.size)])


def _grouped(D: Design) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of rows of positive weight, sorted by rank, and bounds.

    Rank j has the entries from bounds[j] to bounds[j + 1]; the bounds are (T + 2,).
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
    """Return whether a row moves along a direction, and none to the wrong side.

    `largest` and `least` are the largest |move| and the least move of all predictors.
    """
    # The length of a direction is arbitrary, so that moves are compared with it.
    size = np.abs(direction).max()
    return bool(largest > _HOLDS * size and least >= -_HOLDS * largest)


def moves(
    design: Design, direction: np.ndarray, rows: slice = slice(None)
) -> np.ndarray:
    """Return up and low of some rows, (2, n).

    They are inf where a row has no predictor on that side, or no weight.
    """
    D = design
    alpha, nu, beta, _ = D.split(direction)
    f = D.score(beta, rows)
    N = D.columns(rows, D.nominal) if D.nominal.size else None
    moved = np.full((2, f.size), np.inf)
    for side, sign in ((0, 1.0), (1, -1.0)):
        # the threshold on this side
        t = D.first[rows] - 1 if side else D.rank[rows]
        inner = (t >= 0) & (t < D.T) & (D.weight[rows] > 0)
        move = (D.J @ alpha)[t[inner]] - f[inner]
        if N is not None:
            move -= np.einsum("ij,ij->i", N[inner], (D.J @ nu)[t[inner]])
        moved[side, inner] = sign * move
    return moved


def _finite(moved: np.ndarray) -> np.ndarray:
    """Return the finite entries of an array."""
    return np.asarray(moved[np.isfinite(moved)])


class Cone(Protocol):
    """The constraints A d >= 0 of (1), whose rows need not be in memory.

    Attributes
    ----------
    c : (p,) array
        Vector of (1).
    """

    c: np.ndarray

    def worst(self, d: np.ndarray, excluded: Sequence[Row]) -> tuple[Row, float]:
        """Return the row with the least entry of A d, and this entry.

        Rows in `excluded` are left out.
        """

    def normal(self, row: Row) -> np.ndarray:
        """Return one row of A, (p,)."""


class DenseCone:
    """The cone of a matrix A in memory; its rows are (i, 0)."""

    def __init__(self, A: np.ndarray):
        self._A, self.c = A, A.sum(axis=0)

    def worst(self, d: np.ndarray, excluded: Sequence[Row]) -> tuple[Row, float]:
        moved = self._A @ d
        for i, _ in excluded:
            moved[i] = np.inf
        i = int(moved.argmin())
        return (i, 0), float(moved[i])

    def normal(self, row: Row) -> np.ndarray:
        return np.asarray(self._A[row[0]])


def certificate_of(A: np.ndarray, guess: np.ndarray) -> np.ndarray | None:
    """Return a d, (p,), with A d >= 0 and A d != 0, or None; `guess` is tried first.

    This is `certificate` for models that compute A themselves.
    """

    def holds(d: np.ndarray) -> bool:
        moved = A @ d
        return _holds(d, float(np.abs(moved).max(initial=0.0)), float(moved.min()))

    if holds(guess):
        return guess
    if A.shape[1] > _LARGEST:
        return None
    d = project(DenseCone(A))
    return d if holds(d) else None


def involved(design: Design, direction: np.ndarray) -> np.ndarray:
    """Return the indices of the columns that a certificate changes.

    Columns that only rounding has changed do not separate the ranks.
    """
    _, nu, beta, _ = design.split(direction)
    change = np.zeros(design.centre.size)
    change[design.location] = np.abs(beta)
    change[design.nominal] = np.abs(nu).max(axis=0, initial=0.0)
    return np.flatnonzero(change > _INVOLVED * change.max(initial=0.0))


class _AllRows:
    """The cone over all parameters.

    Row (0, i) of A gives up_i, and row (1, i) gives low_i.
    """

    def __init__(self, design: Design):
        self.design = design
        self.c = _sum_of_normals(design)

    def worst(self, d: np.ndarray, excluded: Sequence[Row]) -> tuple[Row, float]:
        D = self.design
        moved = np.hstack([moves(D, d, rows) for rows in row_strips(D.X, _ROWS)])
        for row in excluded:
            moved[row] = np.inf
        side, i = divmod(int(moved.argmin()), D.n_samples)
        return (side, i), float(moved[side, i])

    def normal(self, row: Row) -> np.ndarray:
        D, (side, i) = self.design, row
        i_th = slice(i, i + 1)
        J = D.J.rows(D.first[i] - 1 if side else D.rank[i])
        n, x = D.columns(i_th, D.nominal)[0], D.columns(i_th, D.location)[0]
        up: np.ndarray = np.concatenate([J, -np.outer(J, n).ravel(), -x])
        return up if side == 0 else -up

    def parameters(self, d: np.ndarray) -> np.ndarray:
        """Return the direction of all parameters, (p,)."""
        return d


class _AdjacentRanks:
    """The cone over beta, for flexible thresholds without nominal effects.

    Row (i, k) of A is x_k - x_i, where k is of the rank after that of i.
    """

    def __init__(self, design: Design):
        self.design = D = design
        self._by_rank, self._bounds = _grouped(D)
        mass = D.mass()[[D.T, 0]]
        (apart,) = D.summed(partial(_apart, mass))
        self.c = apart[D.location] / D.spread[D.location]

    def _ends(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return x'd of the rows sorted by rank, and its minima and maxima per rank."""
        f = self.design.score(d)[self._by_rank]
        first = self._bounds[:-1]
        return f, np.minimum.reduceat(f, first), np.maximum.reduceat(f, first)

    def worst(self, d: np.ndarray, excluded: Sequence[Row]) -> tuple[Row, float]:
        f, low, high = self._ends(d)
        between = low[1:] - high[:-1]
        while True:
            j = int(between.argmin())
            start, middle, end = self._bounds[j : j + 3]
            i = self._by_rank[start + f[start:middle].argmax()]
            k = self._by_rank[middle + f[middle:end].argmin()]
            row = int(i), int(k)
            if row not in excluded or between[j] == np.inf:
                return row, float(between[j])
            between[j] = np.inf  # other rows of these ranks have larger entries

    def normal(self, row: Row) -> np.ndarray:
        D = self.design
        x_i, x_k = (D.columns(slice(r, r + 1), D.location)[0] for r in row)
        return np.asarray(x_k - x_i)

    def parameters(self, d: np.ndarray) -> np.ndarray:
        """Return the direction of all parameters, (p,): d, and thresholds for it."""
        _, low, high = self._ends(d)
        return np.concatenate([(low[1:] + high[:-1]) / 2, d])


def _apart(mass: np.ndarray, D: Design) -> Parts:
    """Return the contribution of a chunk to the mean difference of the extreme ranks.

    `mass` holds the weights of the highest and the lowest rank.
    """
    highest, lowest = (np.where(D.rank == end, D.weight, 0.0) for end in (D.T, 0))
    return (rmatvec(D.X, highest / mass[0] - lowest / mass[1]),)


def _sum_of_normals(D: Design) -> np.ndarray:
    """Return the vector c = A'1 of `_AllRows`, (p,)."""
    total = np.zeros(D.n_parameters)
    q, qm, *_ = D.sizes
    used = np.flatnonzero(D.weight > 0)
    rank, first = D.rank[used], D.first[used]
    ends = np.zeros(D.n_samples)  # by beta, up and low of a row with both cancel
    ends[used] = (rank == D.T).astype(float) - (first == 0)
    raw = rmatvec(D.X, ends)[D.location] - ends.sum() * D.centre[D.location]
    total[q + qm :] = raw / D.spread[D.location]
    above = np.bincount(rank, minlength=D.T + 1)
    below = np.bincount(first, minlength=D.T + 1)
    total[:q] = D.J.adjoint(above[:-1] - below[1:])
    if D.nominal.size:
        sums, low_sums = np.zeros((2, D.T + 1, D.nominal.size))
        for rows in row_strips(D.X, _ROWS):
            has_weight = D.weight[rows] > 0
            N = D.columns(rows, D.nominal)
            np.add.at(sums, D.rank[rows][has_weight], N[has_weight])
            np.add.at(low_sums, D.first[rows][has_weight], N[has_weight])
        total[q : q + qm] = -D.J.adjoint(sums[:-1] - low_sums[1:]).ravel()
    return total


class _WorkingSet:
    """Rows of A that hold with equality.

    Their normals are the columns of N = Q B, with orthonormal columns of Q, and
    `inverse` is B^-1.
    """

    def __init__(self, p: int):
        self.rows: list[Row] = []
        self.N, self.Q = np.zeros((2, p, 0))
        self.inverse = np.zeros((0, 0))

    def add(
        self, row: Row, normal: np.ndarray, along: np.ndarray, rest: np.ndarray
    ) -> None:
        """Add a row with normal = Q along + rest, where rest is orthogonal to Q."""
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
        """Remove the k-th row, and update the factors in O(p k)."""
        del self.rows[k]
        self.N = np.delete(self.N, k, 1)
        # Row k of B^-1 is orthogonal to all columns of B but the k-th one. A reflection
        # (Householder) turns it into the last unit vector, which is then left out.
        v = self.inverse[k] / np.linalg.norm(self.inverse[k])
        v[-1] += math.copysign(1.0, v[-1])
        v *= math.sqrt(2) / np.linalg.norm(v)
        rest = np.delete(self.inverse, k, 0)
        self.Q = (self.Q - np.outer(self.Q @ v, v))[:, :-1]
        self.inverse = (rest - np.outer(rest @ v, v))[:, :-1]


def project(cone: Cone) -> np.ndarray:
    """Return the solution of (1) for c / |c|, (p,), by the dual active set method.

    It is the projection of c / |c| onto the cone: 0 if the working set spans all.
    """
    c, size = cone.c, float(np.linalg.norm(cone.c))
    if size == 0:
        return c
    c = c / size
    d, active, multiplier = c.copy(), _WorkingSet(c.size), np.zeros(0)
    implied: list[Row] = []  # rows that the working set implies, up to rounding
    for _ in range(20 * c.size + 100):
        check_cancelled()
        row, moved = cone.worst(d, active.rows + implied)
        if moved >= -1e-14:
            break
        normal, gained = cone.normal(row), 0.0
        while True:
            along = active.Q.T @ normal
            rest = normal - active.Q @ along
            again = active.Q.T @ rest  # orthogonalised twice, against rounding
            along, rest = along + again, rest - active.Q @ again
            falls = active.inverse @ along
            free = np.linalg.norm(rest) > _DEPENDENT * np.linalg.norm(normal)
            # The step ends where the row holds with equality, or before, where a
            # multiplier of the working set reaches 0.
            full = -float(normal @ d) / float(rest @ rest) if free else np.inf
            ratio = np.full(falls.size, np.inf)
            down = falls > _DEPENDENT * np.abs(falls).max(initial=0.0)
            ratio[down] = multiplier[down] / falls[down]
            blocked = float(ratio.min(initial=np.inf))
            length = min(full, blocked)
            if not np.isfinite(length):
                break
            multiplier = multiplier - length * falls
            gained += length
            if free:
                d = d + length * rest
            if full <= blocked:
                break
            first = int(ratio.argmin())
            active.drop(first)
            multiplier = np.delete(multiplier, first)
        if not np.isfinite(length):  # the row is violated by rounding alone
            implied.append(row)
            continue
        active.add(row, normal, along, rest)
        multiplier = np.append(multiplier, gained)
        implied.clear()
    # Computed from c once more, without the rounding of the steps.
    Q = np.linalg.qr(active.N)[0]
    d = c - Q @ (Q.T @ c)
    return np.asarray(d - Q @ (Q.T @ d))
